"""Parts of a reduced body, as frozen data: interfaces, bores, modes, points, loads, skin, ...

In this folder n is the number of elastic coordinates of the body, and vectors have components in
the axes of the body frame.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.body.tree import array_of, freeze_arrays, number_of
from dolfinx_mbd.checks import (
    array,
    choice,
    entries,
    instance,
    integer,
    number,
    reject,
    rotation_matrix,
)
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.html import short_repr, table_head, vector_text

SPINS = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0))
"""Pairs (i, j) of the products ω_iω_j, in the order of `Stiffening.spin`."""


AMPLITUDE = 0.08
"""Default largest displacement of a mode in pictures and scenes, relative to the body's size."""


def mode_rows(argument: str, modes: Any, count: int) -> NDArray[np.int64]:
    """Return the zero-based rows of different modes, whose numbers are from 1 to `count`."""
    expected = f"numbers of modes from 1 to {count}, each at most once"
    modes = entries(argument, modes, expected)
    numbers = [integer(f"every entry of {argument}", k, low=1, high=count) for k in modes]
    if len(set(numbers)) < len(numbers):
        reject(argument, modes, expected)
    return np.array(numbers, dtype=np.int64) - 1


def chosen_modes(modes: Any, count: int) -> list[int]:
    """Return the zero-based rows of modes for a picture; by default of the first six."""
    rows = mode_rows("modes", range(1, min(6, count) + 1) if modes is None else modes, count)
    if not len(rows):
        reject("modes", modes, "a list of numbers of modes that is not empty")
    return [int(k) for k in rows]


@dataclass(frozen=True, eq=False)
class Interface:
    """A frame of the body at which joints are attached; it moves with the elastic coordinates.

    Attributes:
        name: Name of the interface in the mesh, for example `big_end`.
        kind: `rigid`: the facets of the interface move as a rigid body (RBE2). `averaged`: the
            frame follows the average motion of the facets (RBE3).
        point: Origin of the frame, shape (3,), m.
        axes: Axes of the frame as columns, shape (3, 3); the third is the axis of a bore.
        motion: Displacement of the origin (rows 0 to 2, m) and rotation vector (rows 3 to 5, rad)
            per unit of each elastic coordinate, shape (6, n).
        radius: Radius of a bore or a journal, m; 0 if the surface is not a cylinder around the z
            axis, or if its size is unknown.
        length: Length of the bore or journal along z, m: twice the distance from the origin to the
            nearer end.

    Example:
        >>> tip = mbd.body.Interface("tip", "rigid", (1.0, 0.0, 0.0), np.eye(3), np.zeros((6, 2)))
        >>> tip.point
        array([1., 0., 0.])
    """

    name: str
    kind: str
    point: Array = field(metadata=array_of("3", "m"))
    axes: Array = field(metadata=array_of("33", "1"))
    motion: Array = field(metadata=array_of("wn", "m"))
    radius: float = field(default=0.0, metadata=number_of("m"))
    length: float = field(default=0.0, metadata=number_of("m"))
    summary_titles: ClassVar[str] = (
        "interface        kind      point (mm)                         axis z"
    )

    __repr__ = short_repr

    def __post_init__(self) -> None:
        label = f"interface {checked_name('name', self.name)!r}"
        choice(f"{label}: kind", self.kind, ("rigid", "averaged"))
        for key in ("radius", "length"):
            value = number(f"{label}: {key}", getattr(self, key), low=0.0, unit="m")
            assign(self, **{key: value})
        freeze_arrays(self, label)
        rotation_matrix(f"{label}: axes", self.axes)

    def summary_row(self) -> str:
        """Return the row of the interface in the summary of the body."""
        axis = ", ".join(f"{component + 0.0:.3g}" for component in self.axes[:, 2])
        return f"{self.name:<16} {self.kind:<8} {vector_text(self.point, 1e3)}  ({axis})"


@dataclass(frozen=True)
class Mode:
    """Description of one elastic coordinate, a row of the table of modes.

    Attributes:
        label: Name of the mode.
        frequency: Frequency, Hz; the Rayleigh quotient if the mode is not an eigenvector.
        character: Text that describes the shape of the mode, for example `bending y`.
        reason: Reason why the reduction omitted the mode; empty for a mode of the body.

    Example:
        >>> mbd.body.Mode("elastic 1", 4312.0, "bending z").frequency
        4312.0
    """

    label: str
    frequency: float = field(metadata=number_of("Hz"))
    character: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        label = f"mode {checked_name('label', self.label)!r}"
        assign(self, frequency=number(f"{label}: frequency", self.frequency, unit="Hz"))
        for key in ("character", "reason"):
            instance(f"{label}: {key}", getattr(self, key), str)


def mode_titles(modes: Iterable[Mode]) -> list[str]:
    """Return a text for each mode: its number (starting at 1), label and frequency."""
    digits: dict[str, Any] = {"precision": 5, "fractional": False, "trim": "-"}
    return [
        f"{k}: {mode.label}, {np.format_float_positional(mode.frequency, **digits)} Hz"
        for k, mode in enumerate(modes, 1)
    ]


@dataclass(frozen=True, eq=False)
class MaterialPoint:
    """A named material point whose displacement can be recovered.

    Attributes:
        name: Name of the point.
        position: Position in the undeformed body, shape (3,), m.
        modes: Displacement per unit of each elastic coordinate, shape (n, 3), m.

    Example:
        >>> mbd.body.MaterialPoint("middle", (0.5, 0.0, 0.0), np.zeros((2, 3))).name
        'middle'
    """

    name: str
    position: Array = field(metadata=array_of("3", "m"))
    modes: Array = field(metadata=array_of("n3", "m"))
    summary_titles: ClassVar[str] = "point                      position (mm)"

    __repr__ = short_repr

    def __post_init__(self) -> None:
        freeze_arrays(self, f"point {checked_name('name', self.name)!r}")

    def summary_row(self) -> str:
        """Return the row of the point in the summary of the body."""
        return f"{self.name:<24} {vector_text(self.position, 1e3)}"


@dataclass(frozen=True, eq=False)
class LoadPattern:
    """A distributed load with a known shape and an amplitude that a simulation provides.

    The load is for example a pressure. It rotates with the body frame; its direction in the body
    frame does not depend on the deformation. All numbers are for an amplitude of one.

    Attributes:
        name: Name of the load.
        force: Resultant force, shape (3,), N.
        moment: Moment about the origin of the body frame on the undeformed body, shape (3,), N m.
        modes: Work ∫ψ_k·f per unit of each elastic coordinate, shape (n,), J.
        moments: Change ∫ψ_k×f of the moment per unit of each elastic coordinate, shape (n, 3),
            N m.

    Example:
        >>> gas = mbd.body.LoadPattern("gas", (1, 0, 0), (0, 0, 0), np.ones(2), np.zeros((2, 3)))
        >>> gas.force
        array([1., 0., 0.])
    """

    name: str
    force: Array = field(metadata=array_of("3", "N"))
    moment: Array = field(metadata=array_of("3", "N m"))
    modes: Array = field(metadata=array_of("n", "J"))
    moments: Array = field(metadata=array_of("n3", "N m"))
    summary_titles: ClassVar[str] = (
        "load of size 1             resultant (N)                      moment (N m)"
    )

    __repr__ = short_repr

    def __post_init__(self) -> None:
        freeze_arrays(self, f"load {checked_name('name', self.name)!r}")

    def summary_row(self) -> str:
        """Return the row of the load in the summary of the body."""
        return f"{self.name:<24} {vector_text(self.force)}  {vector_text(self.moment)}"


POLYNOMIALS = 3
"""Number of polynomials along a bore: constant, linear and quadratic."""


@dataclass(frozen=True, eq=False)
class Bore:
    """Radial displacement of an elastic bore, for oil films.

    The outward displacement relative to the rigid motion of the interface frame is

        w(θ, z) = Σ (a_kl cos kθ + b_kl sin kθ) P_l(2z/L),

    with Legendre polynomials P_l of degree 0, 1 and 2. θ and z are measured in the axes of the
    interface, from x towards y and from the middle of the bore.

    Attributes:
        name: Name of the averaged interface on the bore.
        radius: Radius of the bore, m.
        length: Length L of the bore, m.
        displacement: Coefficients a_kl and b_kl per unit of each elastic coordinate, shape
            (2K+1, 3, n), m; the rows belong to 1, cos θ, sin θ, ..., cos Kθ, sin Kθ.
        error: Relative error of the compliance of the bore under the pressure of
            `InterfaceSpec.pressure_modes`.

    Example:
        >>> bore = mbd.body.Bore("big_end", 0.024, 0.02, np.ones((3, 3, 1)), 0.01)
        >>> bore.harmonics
        1
        >>> around, along = bore.patterns(np.linspace(0, np.pi, 4), np.array([0.0, 0.01]))
        >>> (around @ bore.displacement[..., 0] @ along.T).shape  # w at 4 angles and 2 positions
        (4, 2)
    """

    name: str
    radius: float = field(metadata=number_of("m"))
    length: float = field(metadata=number_of("m"))
    displacement: Array = field(metadata=array_of("h3n", "m"))
    error: float = field(default=0.0, metadata=number_of("1"))
    summary_titles: ClassVar[str] = (
        "elastic bore     radius (mm)  length (mm)  pressure modes  compliance error"
    )

    __repr__ = short_repr

    def __post_init__(self) -> None:
        label = f"bore {checked_name('name', self.name)!r}"
        for key in ("radius", "length"):
            value = number(f"{label}: {key}", getattr(self, key), positive=True, unit="m")
            assign(self, **{key: value})
        assign(self, error=number(f"{label}: error", self.error, low=0.0))
        freeze_arrays(self, label)
        if len(self.displacement) % 2 == 0:
            expected = "an array with an odd number of rows, for 1, cos θ, sin θ, ..., sin Kθ"
            reject(f"{label}: displacement", self.displacement, expected)

    def summary_row(self) -> str:
        """Return the row of the bore in the summary of the body."""
        size = f"{self.name:<16} {1e3 * self.radius:11.5g}  {1e3 * self.length:11.5g}"
        pressure_modes = len(self.displacement) * POLYNOMIALS
        return f"{size}  {pressure_modes:14}  {100 * self.error:14.2f} %"

    @property
    def harmonics(self) -> int:
        """Highest harmonic K around the bore."""
        return len(self.displacement) // 2

    def patterns(self, theta: ArrayLike, z: ArrayLike) -> tuple[Array, Array]:
        """Return the functions of θ and of z at the points of a grid.

        The pattern of each pressure mode is the product of two of them.

        Args:
            theta: Angles, (nt,), rad.
            z: Positions along the bore, from its middle, (nz,), m.

        Returns:
            Functions of θ, (nt, 2K+1), and of z, (nz, 3).

        Raises:
            InputError: An argument is not an array of one dimension, or the functions of z are not
                finite.
        """
        angles: Array = array("theta", theta, (None,))
        x: Array = np.asarray(2.0 * array("z", z, (None,)) / self.length, dtype=float)
        along = legendre_functions(x)
        if not np.isfinite(along).all():
            expected = (
                f"positions in m from the middle of the bore, which is {self.length:g} m long"
            )
            reject("z", z, f"{expected}; they are so large that the functions of z are not finite")
        return circular_functions(angles, self.harmonics), along


def circular_functions(theta: Array, harmonics: int) -> Array:
    """Return 1, cos θ, sin θ, ..., cos Kθ, sin Kθ as columns, shape (len(theta), 2K+1)."""
    angles = np.multiply.outer(theta, np.arange(1, harmonics + 1))
    pairs = np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(len(angles), 2 * harmonics)
    return np.hstack([np.ones((len(pairs), 1)), pairs])


def legendre_functions(x: Array) -> Array:
    """Return the Legendre polynomials of a `Bore` as columns, shape (len(x), 3)."""
    return np.asarray(np.polynomial.legendre.legvander(x, POLYNOMIALS - 1), dtype=float)


@dataclass(frozen=True, eq=False)
class Skin:
    """The triangulated surface of a body, for pictures and for points on the surface.

    Attributes:
        points: Positions of the nodes, shape (nodes, 3), m.
        triangles: Indices into `points`, shape (nt, 3).
        modes: Displacement of the nodes per unit of each elastic coordinate, shape (n, nodes, 3),
            m.

    Example:
        >>> skin = mbd.body.Skin(np.eye(3), [[0, 1, 2]], np.zeros((2, 3, 3)))
        >>> len(skin.triangles)
        1
    """

    points: Array = field(metadata=array_of("p3", "m"))
    triangles: NDArray[np.int64] = field(metadata=array_of("t3", "1", dtype=np.int64))
    modes: Array = field(metadata=array_of("np3", "m"))

    __repr__ = short_repr

    def __post_init__(self) -> None:
        freeze_arrays(self, "skin")
        count, triangles = len(self.points), self.triangles
        if triangles.size and not 0 <= triangles.min() <= triangles.max() < count:
            reject("skin: triangles", triangles, f"indices from 0 to {count - 1}")


@dataclass(frozen=True, eq=False)
class EffectiveMasses:
    """Shares of the fixed-interface modes of a reduction in the inertia of the rigid body.

    The modes belong to the body with all interfaces held. The elastic coordinates of the body are
    combinations of these modes and the constraint modes.

    Attributes:
        frequencies: Frequencies, shape (m,), Hz.
        shares: Share of each mode in the mass and in the moments of inertia about the centre of
            mass, shape (m, 6), in the plane (m, 3); the sum of a column is at most 1.

    Example:
        >>> masses = mbd.body.EffectiveMasses([900.0, 2400.0], [[0.6, 0, 0], [0.2, 0, 0.5]])
        >>> masses.labels
        ('fixed 1', 'fixed 2')
    """

    frequencies: Array = field(metadata=array_of("f", "Hz"))
    shares: Array = field(metadata=array_of("fd", "1"))

    __repr__ = short_repr

    def __post_init__(self) -> None:
        freeze_arrays(self, "effective masses")
        if self.shares.shape[1] not in (3, 6):
            reject("effective masses: shares", self.shares, "an array with 3 or 6 columns")

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the modes, as in the table of omitted modes."""
        return tuple(f"fixed {k}" for k in range(1, len(self.frequencies) + 1))

    @property
    def directions(self) -> tuple[str, ...]:
        """Names of the columns of `shares`."""
        plane = self.shares.shape[1] == 3
        return ("x", "y", "about z") if plane else ("x", "y", "z", "about x", "about y", "about z")

    def summary_lines(self) -> list[str]:
        """Return the table of effective masses in percent, with their sums, for the summary."""
        columns = "".join(f"  {name:>7}" for name in self.directions)
        lines = table_head(f"     effective mass (%)       frequency (Hz){columns}")
        for label, frequency, shares in zip(
            self.labels, self.frequencies, self.shares, strict=True
        ):
            lines.append(f"     {label:<24} {frequency:14.2f}{_percent(shares)}")
        return [*lines, f"     {'sum':<24} {'':14}{_percent(self.shares.sum(axis=0))}"]


def _percent(shares: Array) -> str:
    """Return the entries of a table row in percent."""
    return "".join(f"  {100 * share:7.2f}" for share in shares)


@dataclass(frozen=True, eq=False)
class Stiffening:
    """Reduced geometric stiffness matrices of the stresses under unit loads.

    A body becomes stiffer under tension and softer under compression. Each unit load is balanced by
    inertia forces (inertia relief), so that gravity and uniform accelerations need no matrix.

    Attributes:
        spin: Matrices for the centrifugal loads of ω_xω_x, ω_yω_y, ω_zω_z, ω_xω_y, ω_yω_z and
            ω_zω_x = 1 (rad/s)², shape (6, n, n).
        interfaces: Matrices for a unit force (1 N) along and a unit moment (1 N m) about the x, y
            and z axes of the body at each interface, shape (interfaces, 6, n, n).
        work: Work of each unit load on the static displacement of the full model under that load,
            spins first, shape (6 + 6 interfaces,), J; None if unknown. `static_errors` uses it.

    Example:
        >>> cases = mbd.body.Stiffening(np.zeros((6, 2, 2)), np.zeros((1, 6, 2, 2)))
        >>> cases.work is None
        True
    """

    spin: Array = field(metadata=array_of("6nn", "kg m2", symmetric=True))
    interfaces: Array = field(metadata=array_of("iwnn", "m", symmetric=True))
    work: Array | None = field(default=None, metadata=array_of("l", "1"))

    __repr__ = short_repr

    def __post_init__(self) -> None:
        freeze_arrays(self, "stiffening")
        if self.work is not None and len(self.work) != 6 + 6 * len(self.interfaces):
            expected = f"an array of shape ({6 + 6 * len(self.interfaces)},)"
            reject("stiffening: work", self.work, expected)
