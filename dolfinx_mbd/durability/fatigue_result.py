"""Result of a fatigue analysis: fields of damage and life, and a table of the worst locations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from dolfinx import fem

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import choice, file_path, integer, number
from dolfinx_mbd.durability.fatigue_material import FatigueMaterial, SNLine
from dolfinx_mbd.durability.recovery.cell_fields import Points, check_writable
from dolfinx_mbd.durability.recovery.stressed_places import APART, worst_places
from dolfinx_mbd.durability.surface_file import write_surface
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.field_files import SUFFIXES, field_file
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.parallel import on_rank_zero

__all__ = ["DamagedPlace", "FatigueResult", "FatigueTable"]

HOUR = 3600.0  # s
LONGEST = 1e12  # life in fields and files at points without damage, h


@dataclass(frozen=True)
class DamagedPlace:
    """A place of a body with a short fatigue life.

    Attributes:
        damage: Damage per second.
        life: Life, s.
        cycles: Number of cycles until failure, without cycles smaller than a tenth of the largest.
        range: Range of the most damaging cycle, Pa.
        mean: Mean of this cycle, Pa.
        position: Position in the undeformed body, m.
        normal: Normal of the worst plane; zeros for the criteria without planes.
        interface: Name of the nearest interface; "" without interfaces.
        distance: Distance to the origin of this interface, m.

    Example:
        >>> period = np.sin(np.linspace(0, 2 * np.pi, 41))
        >>> runs = [(20 * np.outer(period, eta), 1.0)]
        >>> place = mbd.fatigue(bar, runs, material="AISI 4340").worst(1)[0]
        >>> place.hours == place.life / 3600, place.interface in ("left", "right")
        (True, True)
    """

    damage: float
    life: float
    cycles: float
    range: float
    mean: float
    position: tuple[float, float, float]
    normal: tuple[float, float, float]
    interface: str = ""
    distance: float = float("nan")

    @property
    def hours(self) -> float:
        """Life, h."""
        return self.life / HOUR


class FatigueTable(tuple[DamagedPlace, ...]):
    """Places in ascending order of their lives; `print` shows a table.

    Example:
        >>> period = np.sin(np.linspace(0, 2 * np.pi, 41))
        >>> runs = [(20 * np.outer(period, eta), 1.0)]
        >>> table = mbd.fatigue(bar, runs, material="AISI 4340").worst(2)
        >>> print(table)
            life (h)     cycles    range mean (MPa)  ...
    """

    def __repr__(self) -> str:
        return f"<FatigueTable: {len(self)} places>"

    def __str__(self) -> str:
        head = (
            f"{'life (h)':>11} {'cycles':>10} {'range':>8} {'mean (MPa)':>10} "
            f"{'x, y, z (mm)':>26} {'normal of the plane':>20}  nearest interface"
        )
        lines = [head]
        for p in self:
            at = " ".join(f"{1e3 * x:8.2f}" for x in p.position)
            plane = " ".join(f"{x:6.2f}" for x in p.normal) if any(p.normal) else f"{'-':>20}"
            near = f"{p.interface}, {1e3 * p.distance:.1f} mm" if p.interface else "-"
            lines.append(
                f"{p.hours:11.4g} {p.cycles:10.3g} {1e-6 * p.range:8.4g} {1e-6 * p.mean:10.4g} "
                f"{at} {plane}  {near}"
            )
        return "\n".join(lines) if self else "no damage at any point"


@dataclass(frozen=True, eq=False, kw_only=True)
class FatigueResult:
    """Damage and life at the points of a body; `print` shows the worst locations.

    The arrays are equal on all ranks for a body and for the surface of a reduction. For a
    `Recovery`, they have one entry for each point of this rank.

    Attributes:
        points: Positions, shape (points, 3), m.
        damage: Damage per second, shape (points,); failure is expected at a damage of 1.
        cycles: Number of cycles per second on the worst plane, shape (points,). Cycles smaller than
            a tenth of the largest range are not counted here; the damage includes them.
        range: Range of the most damaging cycle, shape (points,), Pa.
        mean: Mean of this cycle, shape (points,), Pa.
        normal: Normal of the worst plane, shape (points, 3); zeros without damage or without
            planes.
        direction: Direction of the shear stress in this plane, shape (points, 3); zeros for other
            criteria.
        criterion: Name of the criterion.
        material: Fatigue data.
        line: S-N line with all factors, or None for strain life.
        body: The body.
        comm: Communicator of the analysis, or None.
        locations: The points in the cells, for fields; None if the points are on the surface.

    Example:
        >>> period = np.sin(np.linspace(0, 2 * np.pi, 41))
        >>> result = mbd.fatigue(bar, [(40 * np.outer(period, eta), 1.0)], material="AISI 4340")
        >>> result.life.shape == result.equivalent_stress().shape == result.damage.shape
        True
        >>> result.write("fatigue.vtk").name
        'fatigue.vtk'
    """

    points: Array
    damage: Array
    cycles: Array
    range: Array
    mean: Array
    normal: Array
    direction: Array
    criterion: str
    material: FatigueMaterial
    line: SNLine | None
    body: ReducedBody
    comm: Any = None
    locations: Points | None = None

    __repr__ = short_repr

    @property
    def _distribution(self) -> Any:
        """Communicator whose ranks share the points; None if each rank has all of them.

        Points in the cells are on the rank of their cell. Points on the surface, without
        `locations`, are those of the body's skin, which every rank has.
        """
        return None if self.locations is None else self.comm

    @property
    def life(self) -> Array:
        """Life, shape (points,), s; infinite without damage."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / self.damage, dtype=float)

    @property
    def hours(self) -> Array:
        """Life, shape (points,), h; infinite without damage."""
        return np.asarray(self.life / HOUR, dtype=np.float64)

    @property
    def life_cycles(self) -> Array:
        """Number of cycles until failure, (points,); infinite without damage. See `cycles`."""
        cycles = np.where(self.damage > 0.0, self.cycles, 1.0)
        return np.asarray(np.where(self.damage > 0.0, self.life * cycles, np.inf), dtype=float)

    def equivalent_stress(self, frequency: float = 1.0) -> Array:
        """Return the damage-equivalent amplitudes of fully reversed stress, shape (points,), Pa.

        They are zero without damage.

        Args:
            frequency: Frequency of the equivalent stress, Hz.

        Raises:
            InputError: `frequency` is not positive, or the result was computed with strain life.
        """
        if self.line is None:
            raise InputError("strain life has no equivalent stress; use the damage or the life")
        rate = number("frequency", frequency, positive=True, unit="Hz")
        stress, active = np.zeros(len(self.damage)), self.damage > 0.0
        stress[active] = self.line.amplitude(rate * self.life[active])
        return stress

    def worst(self, count: int = 5, apart: float | None = None) -> FatigueTable:
        """Return the places with the shortest lives.

        Args:
            count: Number of places; there may be fewer. Places without damage are left out.
            apart: Minimum distance between two places, m. By default 5 % of the size of the body.

        Note: Collective if the points are distributed.
        """
        comm = self._distribution
        low = self.points.min(axis=0, initial=np.inf)
        high = self.points.max(axis=0, initial=-np.inf)
        local = (low, high, len(self.points))
        parts = [local] if comm is None else comm.allgather(local)
        lows, highs, counts = zip(*parts, strict=True)
        size = float(np.linalg.norm(np.max(highs, axis=0) - np.min(lows, axis=0)))
        first = 0 if comm is None else sum(counts[: comm.rank])  # number of this rank's first point
        radius = APART * size if apart is None else number("apart", apart, positive=True, unit="m")
        places = worst_places(
            comm,
            self.points,
            np.where(self.damage > 0.0, self.damage, -np.inf),
            np.arange(first, first + len(self.points), dtype=float),
            self.body.interfaces,
            count=integer("count", count, low=1),
            apart=radius,
            size=size,
        )
        table = []
        for place in places:
            k = int(place.time) - first  # the "time" is the number of the point over all ranks
            entry = None
            if 0 <= k < len(self.points):
                entry = DamagedPlace(
                    damage=place.value,
                    life=1.0 / place.value,
                    cycles=float(self.cycles[k] / place.value),
                    range=float(self.range[k]),
                    mean=float(self.mean[k]),
                    position=place.position,
                    normal=tuple(self.normal[k].tolist()),
                    interface=place.interface,
                    distance=place.distance,
                )
            entries = [entry] if comm is None else comm.allgather(entry)
            table.append(next(entry for entry in entries if entry is not None))
        return FatigueTable(table)

    def _values(self) -> dict[str, Array]:
        """Return the results with finite values for fields and files, by name."""
        hours = np.minimum(self.hours, LONGEST)
        values = {"log10 of life in hours": np.log10(np.maximum(hours, 1.0 / LONGEST))}
        values |= {"damage per second": self.damage, "range": self.range, "mean": self.mean}
        if self.line is not None:
            values["equivalent stress"] = self.equivalent_stress()
        return values

    def field(self, name: str = "log10 of life in hours") -> fem.Function:
        """Return a result as a discontinuous function on the mesh.

        Args:
            name: `log10 of life in hours` (at most 12), `damage per second`, `range` (Pa), `mean`
                (Pa) or `equivalent stress` (at 1 Hz, Pa).

        Raises:
            InputError: The name is unknown, or the points are on the surface: draw the arrays.

        Note: Collective.
        """
        values = self._values()
        choice("name", name, values)
        if self.locations is None:
            raise InputError(
                "fields need points in all cells: give `fatigue` a Recovery. On the surface, draw "
                "an array such as `equivalent_stress()` with plot_skin",
                argument="name",
            )
        function = fem.Function(self.locations.space(), name=name)
        return self.locations.fill(function, values[name])

    def write(self, path: str | Path) -> Path:
        """Write all fields for ParaView, and return the path.

        Args:
            path: Path that ends with `.vtk` for results on the surface, and with `.bp` or `.pvd`
                for results in all cells.

        Raises:
            InputError: The suffix is wrong, the body has no skin, or the points are quadrature
                points.
            OSError: The file cannot be written.

        Note: Collective.
        """
        if self.locations is None:
            file = file_path("path", path, (".vtk",))
            title, vectors = f"fatigue, {self.criterion}", {"normal": self.normal}
            return on_rank_zero(
                self.comm, lambda: write_surface(file, title, self.body, self._values(), vectors)
            )
        path = file_path("path", path, SUFFIXES)
        check_writable(self.locations)
        with field_file(path, [self.field(name) for name in self._values()], 1) as write:
            write(0.0)
        return path

    def __str__(self) -> str:
        method = "strain life" if self.line is None else "stress life"
        title = f"{method} by the criterion {self.criterion!r}, {self.material.name}"
        return f"{title}\n{self.worst()}"
