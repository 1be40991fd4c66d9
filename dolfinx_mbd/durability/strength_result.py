"""Safety factors of a body as fields, files and a table of the weakest places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from dolfinx import fem
from numpy.typing import NDArray

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import choice, file_path
from dolfinx_mbd.durability.recovery.cell_fields import Points, check_writable
from dolfinx_mbd.durability.surface_file import write_surface
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.field_files import field_file
from dolfinx_mbd.html import short_repr

__all__ = ["Strength", "WeakPlace"]

Array = NDArray[np.float64]

LARGEST_FACTOR = 1000.0
"""Largest safety factor in fields and files, also used at points without stress."""


@dataclass(frozen=True)
class WeakPlace:
    """A place of a body with a low safety factor.

    Attributes:
        factor: Safety factor, strength / stress.
        stress: Greatest equivalent stress over time, Pa.
        time: Time of this stress, s, or the number of the load case.
        position: Position in the undeformed body, m.
        material: Name of the material or of its group of cells.
        interface: Name of the nearest interface; "" without interfaces.
        distance: Distance to the origin of this interface, m.

    Example:
        >>> place = mbd.strength(bar, eta, limit=355e6).places[0]
        >>> place.material, place.factor > 1
        ('steel', True)
    """

    factor: float
    stress: float
    time: float
    position: tuple[float, float, float]
    material: str
    interface: str = ""
    distance: float = float("nan")


@dataclass(frozen=True, eq=False)
class Strength:
    """Safety factors of a body; `print` shows the weakest places of each material.

    The arrays have one entry for each point of this rank: the points in the cells at which a
    `Recovery` evaluates stresses or, for a body without its mesh, the nodes of its stress modes.

    Attributes:
        criterion: Name of the criterion.
        limits: Strength of each material, Pa.
        points: Positions, shape (points, 3), m.
        stress: Greatest equivalent stress over time, shape (points,), Pa; negative values are
            possible for a criterion of principal stress.
        time: Times of these stresses, shape (points,), s, or the numbers of the load cases.
        utilization: Stress / strength, shape (points,); zero if the stress is negative.
        places: The weakest places of all materials in ascending order of their safety factors,
            equal on all ranks.

    Example:
        >>> result = mbd.strength(bar, eta, limit={"steel": 355e6})
        >>> result.least == result.places[0].factor
        True
        >>> result.field("utilization").name
        'utilization'
        >>> result.write("strength.bp")
    """

    criterion: str
    limits: Mapping[str, float]
    points: Array
    stress: Array
    time: Array
    utilization: Array
    places: tuple[WeakPlace, ...]
    _locations: Points | None = None
    _cases: bool = False
    _body: ReducedBody | None = None

    __repr__ = short_repr

    @property
    def factor(self) -> Array:
        """Safety factor at each point, shape (points,); infinite without stress."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / self.utilization, dtype=float)

    @property
    def least(self) -> float:
        """Least safety factor of the body, equal on all ranks."""
        return min((place.factor for place in self.places), default=float("inf"))

    def field(self, name: str = "safety factor") -> fem.Function:
        """Return a result as a discontinuous function on the mesh.

        Args:
            name: ``safety factor`` (at most 1000), ``utilization``, ``stress`` (Pa) or ``time``.

        Raises:
            InputError: The name is unknown, or the body has no mesh; then draw the arrays.

        Note: Collective.
        """
        values = self._values()
        choice("name", name, values)
        if self._locations is None:
            raise InputError(
                "fields need the mesh: give `strength` a reduction. Without it, draw the array "
                "`utilization` with plot_skin",
                argument="name",
            )
        function = fem.Function(self._locations.space(), name=name)
        return self._locations.fill(function, values[name])

    def write(self, path: str | Path) -> None:
        """Write safety factor, utilization, stress and time as fields for ParaView.

        Args:
            path: Path that ends with ``.bp`` or ``.pvd``, or with ``.vtk`` for the surface of a
                body without its mesh; missing directories are created.

        Raises:
            InputError: The path is invalid, the body has neither mesh nor skin, or the points are
                quadrature points.
            OSError: The file cannot be written.

        Note: Collective.
        """
        if self._locations is None and self._body is not None:
            file = file_path("path", path, (".vtk",))
            write_surface(file, f"safety factor by {self.criterion}", self._body, self._values())
            return
        functions = [self.field(name) for name in self._values()]
        if self._locations is not None:
            check_writable(self._locations)
        with field_file(path, functions, 1) as write:
            write(0.0)

    def _values(self) -> dict[str, Array]:
        """Return the results with finite values for fields and files, by name."""
        values = {"safety factor": np.minimum(self.factor, LARGEST_FACTOR)}
        values |= {"utilization": self.utilization, "stress": self.stress, "time": self.time}
        return values

    def __str__(self) -> str:
        clock, scale = ("load case", 1.0) if self._cases else ("time (ms)", 1e3)
        head = f"{'factor':>9} {'MPa':>9} {'limit':>9} {clock:>11} {'x, y, z (mm)':>29}"
        lines = [f"safety factor by {self.criterion}", f"{head}  material, nearest interface"]
        for p in self.places:
            position = " ".join(f"{1e3 * x:9.3f}" for x in p.position)
            near = f"{p.interface}, {1e3 * p.distance:.1f} mm" if p.interface else "-"
            numbers = (
                f"{p.factor:9.4g} {1e-6 * p.stress:9.4g} {1e-6 * self.limits[p.material]:9.4g}"
            )
            lines.append(f"{numbers} {scale * p.time:11.6g} {position}  {p.material}, {near}")
        return "\n".join(lines)
