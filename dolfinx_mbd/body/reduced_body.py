"""The reduced flexible body, which every multibody model uses.

The displacement in the floating frame is u(x, t) = Σ ψ_k(x) η_k(t) with the modes ψ_k and the
elastic coordinates η_k. With ψ_0 = x, all inertia properties follow from the mass and the moments

    m = ∫ρ,    S_k = ∫ρ ψ_k,    H_kl^ab = ∫ρ ψ_k^a ψ_l^b.

With η_0 = 1, the centre of mass is at Σ S_k η_k / m. The inertia tensor and the Coriolis,
centrifugal and Euler terms are contractions of S and H with the elastic coordinates and with the
velocities and accelerations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.body_files import read_body, save_body
from dolfinx_mbd.body.damping import Damping, damping_matrix
from dolfinx_mbd.body.gauges import StrainGauge
from dolfinx_mbd.body.multiple import warn_of_cut_groups
from dolfinx_mbd.body.parts import (
    Bore,
    EffectiveMasses,
    Interface,
    LoadPattern,
    MaterialPoint,
    Mode,
    Skin,
    Stiffening,
    mode_rows,
)
from dolfinx_mbd.body.stress_modes import StressModes
from dolfinx_mbd.body.summary import summary
from dolfinx_mbd.body.tree import (
    array_of,
    checked,
    list_of,
    map_arrays,
    number_of,
    part_fields,
    part_of,
    with_values,
)
from dolfinx_mbd.body.validation import check_body
from dolfinx_mbd.checks import array, integer, reject, unknown
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.html import HtmlView
from dolfinx_mbd.parallel import on_rank_zero


@dataclass(frozen=True, eq=False)
class ReducedBody(HtmlView):
    """A flexible body, reduced to the data that a multibody program needs, in SI units.

    A reduced body with n elastic coordinates is frozen: its methods return new bodies.
    `mbd.reduce` computes it, and `ReducedBody.from_arrays` creates it from the matrices of another
    program.

    Attributes:
        name: Name of the body.
        total_mass: Mass ∫ρ, kg.
        first_moments: S_k = ∫ρ ψ_k with ψ_0 = x, shape (n+1, 3), kg m.
        second_moments: H_kl^ab = ∫ρ ψ_k^a ψ_l^b, shape (n+1, n+1, 3, 3), kg m².
        mass: Modal mass matrix M, shape (n, n).
        stiffness: Modal stiffness matrix K, shape (n, n).
        damping: Modal damping matrix C, shape (n, n).
        interfaces: Frames to which joints are attached.
        modes: Descriptions of the n elastic coordinates; generated if empty.
        points: Named material points.
        skin: Surface of the body, or None.
        stiffening: Geometric stiffness for unit products ω_iω_j of angular velocities and unit
            wrenches at the interfaces, or None.
        reference: Reference condition: `mean axis`, `attached to <interface>` or `rigid`.
        provenance: Origin of the numbers, as a dictionary of plain numbers and strings.
        left_out: Modes that the reduction computed but omitted, each with the reason.
        stress: Stress per unit of each elastic coordinate at the nodes of the skin, or None.
        loads: Distributed loads with a known shape.
        effective_masses: Effective masses of the fixed-interface modes, or None.
        gauges: Strain gauges and rosettes; see `mbd.gauges`.
        bores: Elastic bores for oil films, of interfaces that are reduced with pressure modes.

    Example:
        >>> body
        <ReducedBody 'rod': 0.6 kg, 2 modes, left, right>
        >>> damped = body.truncated(1).with_damping(mbd.ModalDamping(0.01))
        >>> path = damped.save("rod")
        >>> ReducedBody.load(path)
        <ReducedBody 'rod': 0.6 kg, 1 modes, left, right>
        >>> print(body.summary())
        Reduced flexible body 'rod'
        ===========================
        mass                     0.6 kg
        ...
    """

    name: str
    total_mass: float = field(metadata=number_of("kg"))
    first_moments: Array = field(metadata=array_of("N3", "kg m"))
    second_moments: Array = field(metadata=array_of("NN33", "kg m2"))
    mass: Array = field(metadata=array_of("nn", "kg m2"))
    stiffness: Array = field(metadata=array_of("nn", "J"))
    damping: Array = field(metadata=array_of("nn", "J s"))
    interfaces: tuple[Interface, ...] = field(default=(), metadata=list_of(Interface, "interface"))
    modes: tuple[Mode, ...] = field(default=(), metadata=list_of(Mode, "mode"))
    points: tuple[MaterialPoint, ...] = field(default=(), metadata=list_of(MaterialPoint, "point"))
    skin: Skin | None = field(default=None, metadata=part_of(Skin, "skin"))
    stiffening: Stiffening | None = field(default=None, metadata=part_of(Stiffening, "stiffening"))
    reference: str = "mean axis"
    provenance: Mapping[str, str | int | float] = field(default_factory=dict)
    left_out: tuple[Mode, ...] = field(default=(), metadata=list_of(Mode, "left_out"))
    stress: StressModes | None = field(default=None, metadata=part_of(StressModes, "stress"))
    loads: tuple[LoadPattern, ...] = field(default=(), metadata=list_of(LoadPattern, "load"))
    effective_masses: EffectiveMasses | None = field(
        default=None, metadata=part_of(EffectiveMasses, "effective_mass")
    )
    gauges: tuple[StrainGauge, ...] = field(default=(), metadata=list_of(StrainGauge, "gauge"))
    bores: tuple[Bore, ...] = field(default=(), metadata=list_of(Bore, "bore", all_modes=True))

    def __post_init__(self) -> None:
        check_body(self)

    @classmethod
    def from_arrays(
        cls,
        *,
        total_mass: float,
        first_moments: ArrayLike,
        second_moments: ArrayLike,
        stiffness: ArrayLike,
        mass: ArrayLike | None = None,
        damping: ArrayLike | None = None,
        name: str = "body",
        **parts: Any,
    ) -> ReducedBody:
        """Create a body from the matrices of another program.

        Args:
            total_mass: Mass ∫ρ, kg.
            first_moments: S_k = ∫ρ ψ_k with ψ_0 = x, shape (n+1, 3), kg m.
            second_moments: H_kl^ab = ∫ρ ψ_k^a ψ_l^b, shape (n+1, n+1, 3, 3), kg m².
            stiffness: Modal stiffness matrix K, shape (n, n).
            mass: Modal mass matrix M, shape (n, n). By default the trace of the second moments,
                which is the consistent mass matrix.
            damping: Modal damping matrix C, shape (n, n). By default zero.
            name: Name of the body.
            **parts: Values of other attributes, such as `interfaces`.

        Raises:
            InputError: A shape does not fit, or a matrix is not symmetric or not positive definite.
            TypeError: A keyword is not an attribute.

        Example:
            >>> ReducedBody.from_arrays(
            ...     total_mass=2.0,
            ...     first_moments=np.zeros((2, 3)),
            ...     second_moments=np.eye(2)[:, :, None, None] * np.eye(3),
            ...     stiffness=[[4e6]],
            ... )
            <ReducedBody 'body': 2 kg, 1 modes, no interfaces>
        """
        expected = "an array of finite numbers of shape (n+1, n+1, 3, 3)"
        H = array("second_moments", second_moments, (None, None, 3, 3), expected=expected)
        n = len(H) - 1
        if H.shape[1] != n + 1 or n < 0:
            reject("second_moments", second_moments, expected)
        return cls(
            name=name,
            total_mass=total_mass,
            first_moments=array("first_moments", first_moments),
            second_moments=H,
            mass=np.einsum("klaa->kl", H[1:, 1:]) if mass is None else array("mass", mass),
            stiffness=array("stiffness", stiffness),
            damping=np.zeros((n, n)) if damping is None else array("damping", damping),
            **parts,
        )

    @property
    def num_modes(self) -> int:
        """Number of elastic coordinates n."""
        return len(self.first_moments) - 1

    @property
    def frequencies(self) -> Array:
        """Frequencies in the table of modes, shape (n,), Hz."""
        return np.array([mode.frequency for mode in self.modes])

    @property
    def centre(self) -> Array:
        """Centre of mass of the undeformed body, shape (3,), m."""
        return self.first_moments[0] / self.total_mass

    @property
    def inertia(self) -> Array:
        """Inertia tensor of the undeformed body about the frame's origin, shape (3, 3), kg m²."""
        second = self.second_moments[0, 0]
        return np.trace(second) * np.eye(3) - second

    @property
    def central_inertia(self) -> Array:
        """Inertia tensor of the undeformed body about its centre of mass, shape (3, 3), kg m²."""
        c = self.centre
        return self.inertia - self.total_mass * (c @ c * np.eye(3) - np.outer(c, c))

    def interface(self, name: str) -> Interface:
        """Return the interface with the given name; an error lists the known names."""
        return self._part("interface", name, self.interfaces)

    def point(self, name: str) -> MaterialPoint:
        """Return the material point with the given name; an error lists the known names."""
        return self._part("point", name, self.points)

    def load_pattern(self, name: str) -> LoadPattern:
        """Return the distributed load with the given name; an error lists the known names."""
        return self._part("load", name, self.loads)

    def gauge(self, name: str) -> StrainGauge:
        """Return the strain gauge with the given name; an error lists the known names."""
        return self._part("gauge", name, self.gauges)

    def bore(self, name: str) -> Bore:
        """Return the elastic bore of an interface; without one, an error tells how to create it."""
        self.interface(name)
        for bore in self.bores:
            if bore.name == name:
                return bore
        raise InputError(
            f"interface {name!r} of body {self.name!r} has no pressure modes, which an oil film in "
            "an elastic bore needs; reduce the body with all its modes and with "
            f"interfaces={{{name!r}: InterfaceSpec(kind='averaged', pressure_modes=0.02)}}",
            argument="bores",
            value=name,
        )

    def _part(self, kind: str, name: str, parts: Sequence[Any]) -> Any:
        """Return the part with the given name; an error lists the known names."""
        for part in parts:
            if isinstance(name, str) and part.name == name:
                return part
        unknown(kind, name, (part.name for part in parts), f"body {self.name!r} has")

    def replace(self, **changes: Any) -> ReducedBody:
        """Return a copy with some attributes changed.

        Args:
            **changes: New values by attribute name.

        Raises:
            InputTypeError: A keyword is not an attribute.
            InputError: A value does not fit the others.
        """
        names = [f.name for f in fields(self)]
        if not set(changes) <= set(names):
            invalid = sorted(set(changes) - set(names))
            reject("changes", invalid, f"attributes of a body: {', '.join(names)}", InputTypeError)
        return replace(self, **changes)

    def truncated(self, num_modes: int) -> ReducedBody:
        """Return the body with only its first elastic coordinates.

        Args:
            num_modes: Number of elastic coordinates to keep.

        Raises:
            InputError: The body has fewer elastic coordinates.
        """
        n = integer("num_modes", num_modes, low=0, high=self.num_modes)
        return self.selected(range(1, n + 1), reason=f"truncated to {n} modes")

    def selected(self, modes: Iterable[int], reason: str = "not selected") -> ReducedBody:
        """Return the body with only some of its elastic coordinates, in their original order.

        A body without some of its coordinates has no elastic bores.

        Args:
            modes: Numbers of the modes to keep, starting at 1, as in the table of modes.
            reason: Reason why the other modes are omitted, for the table of modes.

        Warns:
            AccuracyWarning: Only some modes of a multiple frequency are selected.

        Raises:
            InputError: The body has no such mode, or a number occurs twice.
        """
        k = np.sort(mode_rows("modes", modes, self.num_modes))
        warn_of_cut_groups(self.name, self.stiffness, self.mass, k)
        omitted = (mode for i, mode in enumerate(self.modes) if i not in k)
        selection = tuple(self.modes[i] for i in k)
        left_out = self.left_out + tuple(replace(mode, reason=reason) for mode in omitted)
        body = map_arrays(lambda declaration, values: declaration.selected(values, k), self)
        return self._in_modes(body, modes=selection, left_out=left_out)

    def transformed(self, matrix: ArrayLike) -> ReducedBody:
        """Return the body with other elastic coordinates η′, where η = T η′.

        The table of modes is new, with Rayleigh quotients as frequencies. A body with fewer
        coordinates has no elastic bores.

        Args:
            matrix: Matrix T with linearly independent columns, shape (n, n′).

        Raises:
            InputError: The matrix has another number of rows, or dependent columns.

        Example:
            >>> swapped = body.transformed([[0.0, 1.0], [1.0, 0.0]])
            >>> bool(swapped.stiffness[0, 0] == body.stiffness[1, 1])
            True
        """
        T = array("matrix", matrix, (self.num_modes, None))
        if T.size and np.linalg.matrix_rank(T) < T.shape[1]:
            reject("matrix", matrix, "a matrix with linearly independent columns")
        body = map_arrays(lambda declaration, values: declaration.transformed(values, T), self)
        return self._in_modes(body, modes=())

    def _in_modes(self, body: ReducedBody, **values: Any) -> ReducedBody:
        """Return a body with some attributes changed, after checks of all its parts.

        Parts that need all modes, such as bores, are removed if the body has fewer modes.
        """
        if body.num_modes < self.num_modes:
            parts = part_fields(self).items()
            values |= {name: () if p.is_list else None for name, p in parts if p.all_modes}
        return checked(with_values(body, **values), self)

    def with_damping(self, *dampings: Damping | ArrayLike) -> ReducedBody:
        """Return a copy of the body whose damping is the sum of the arguments.

        Damping acts on the elastic coordinates only and does not resist rigid motion; see the
        module `dolfinx_mbd.body.damping`. A body without damping gets a default damping in a
        mechanism; `FlexibleBody(..., damping_ratio=0.0)` prevents this.

        Args:
            *dampings: `Rayleigh`, `ModalDamping` or matrices C of shape (n, n). They replace the
                present damping of the body.

        Raises:
            InputTypeError: An argument is not a damping.
            InputError: A shape does not fit, or the sum is not positive semidefinite.
        """
        return self.replace(damping=damping_matrix(self.mass, self.stiffness, *dampings))

    def rigid(self) -> ReducedBody:
        """Return the rigid body with the same mass, interfaces, points, loads, gauges and skin."""
        body = self.truncated(0)
        removed = {"stiffening": None, "stress": None, "effective_masses": None}
        return body.replace(reference="rigid", left_out=(), **removed)

    def summary(self) -> str:
        """Return a text with mass properties, interfaces, modes, static errors and provenance."""
        return summary(self)

    def save(self, path: str | Path, *, comm: Any = None) -> Path:
        """Write the body to one `.npz` file, completely or not at all.

        An existing body file is replaced; any other existing file is not.

        Args:
            path: File to write; `.npz` is added if the path has no suffix. Missing directories
                are created.
            comm: MPI communicator of all ranks that call this method: rank 0 writes, and an error
                is raised on all ranks. By default the calling process writes.

        Returns:
            The path with its suffix.

        Raises:
            OverwriteError: The file exists and is not a reduced body.
            OSError: The file cannot be written; an existing file is then unchanged.

        Note: Collective over `comm`.
        """
        return on_rank_zero(comm, lambda: save_body(self, path))

    @classmethod
    def load(cls, path: str | Path) -> ReducedBody:
        """Read a body file.

        Args:
            path: File that `save` or `dolfinx-mbd reduce` wrote.

        Warns:
            FileWarning: The file has format version 1, which has no checksum.

        Raises:
            BodyFileError: The file is not a body, is damaged, or has a newer format version.
            MissingFileError: The file does not exist.
            OSError: The file cannot be opened.
        """
        return read_body(path, cls)

    def __reduce__(self) -> tuple[Any, ...]:  # pickling for other processes
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return partial(type(self), **values | {"provenance": dict(self.provenance)}), ()

    def _html_rows(self) -> list[tuple[str, str]]:
        """Return the titles and the texts of the table that notebooks show."""
        frequencies = ", ".join(f"{mode.frequency:.5g}" for mode in self.modes[:6])
        return [
            ("reduced body", self.name),
            ("mass", f"{self.total_mass:.6g} kg"),
            ("interfaces", ", ".join(f"{i.name} ({i.kind})" for i in self.interfaces) or "none"),
            ("modes", str(self.num_modes)),
            ("first frequencies", f"{frequencies} Hz" if frequencies else "none"),
        ]

    def __repr__(self) -> str:
        names = ", ".join(i.name for i in self.interfaces) or "no interfaces"
        size = f"{self.total_mass:.6g} kg, {self.num_modes} modes"
        return f"<ReducedBody {self.name!r}: {size}, {names}>"
