"""Parts of a reduced body: interfaces, modes, points, loads, skin, stiffening; frozen data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, choice, instance, integer, number, refuse
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError, InputTypeError

__all__ = [
    "SPINS",
    "Interface",
    "LoadPattern",
    "Mode",
    "Skin",
    "Station",
    "Stiffening",
    "assign",
    "frozen",
    "mode_numbers",
]

Array = NDArray[np.float64]

_KINDS = ("rigid", "averaged")


def frozen(name: str, value: ArrayLike, shape: tuple[int, ...], dtype: type = float) -> NDArray:
    """Return a read-only copy of an array in C order, after a check.

    Args:
        name: Name of the argument, for messages.
        value: Real numbers, or complex numbers if `dtype` is complex.
        shape: Length of each axis, −1 for any length.
        dtype: float; or complex, for which an array may be complex; or an integer type, for which
            the numbers must be whole.
    """
    sizes = tuple(None if length == -1 else length for length in shape)
    if isinstance(value, np.ndarray) and np.iscomplexobj(value) and dtype is complex:
        numbers = array(name, value.real, sizes) + 1j * array(name, value.imag, sizes)
    else:
        numbers = array(name, value, sizes)
    result: NDArray = np.array(numbers, dtype=dtype, order="C")
    if np.issubdtype(dtype, np.integer) and not np.array_equal(result, numbers):
        refuse(name, value, "whole numbers")
    result.flags.writeable = False
    return result


def assign(owner: object, **values: Any) -> None:
    """Set attributes of a frozen dataclass in its making."""
    for name, value in values.items():
        object.__setattr__(owner, name, value)


def mode_numbers(argument: str, modes: Any, count: int) -> NDArray[np.int64]:
    """Return numbers of elastic coordinates from 0, each at most once."""
    expected = f"numbers of elastic coordinates from 0 to {count - 1}, each at most once"
    if isinstance(modes, (str, bytes)) or not isinstance(modes, Iterable):
        refuse(argument, modes, expected, InputTypeError)
    numbers = [integer(f"every entry of {argument}", k, low=0, high=count - 1) for k in modes]
    if len(set(numbers)) < len(numbers):
        refuse(argument, modes, expected)
    return np.array(numbers, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Interface:
    """Where a joint meets the body: a frame that moves with the elastic coordinates.

    Attributes:
        name: Its name in the mesh, for example ``big_end``.
        kind: ``rigid`` (the facets move as one, RBE2) or ``averaged`` (RBE3).
        point: Reference point x_k, shape (3,), m.
        axes: Columns are the frame's axes in body components; z is the axis of a bore; shape (3,
            3).
        motion: Rows 0 to 2: displacement of the point, rows 3 to 5: rotation vector, per unit
            elastic coordinate, body components; shape (6, n).
    """

    name: str
    kind: str
    point: Array
    axes: Array
    motion: Array

    def __post_init__(self) -> None:
        label = f"interface {checked_name('name', self.name)!r}"
        choice(f"{label}: kind", self.kind, _KINDS)
        axes = frozen(f"{label}: axes", self.axes, (3, 3))
        if not np.allclose(axes.T @ axes, np.eye(3), atol=1e-9) or np.linalg.det(axes) < 0:
            raise InputError(f"{label}: its axes are not a right-handed orthonormal triad")
        motion = frozen(f"{label}: motion", self.motion, (6, -1))
        assign(self, point=frozen(f"{label}: point", self.point, (3,)), axes=axes, motion=motion)


@dataclass(frozen=True)
class Mode:
    """One row of the table of modes.

    Attributes:
        label: Its name.
        frequency: Hz; of what is no eigenvector its Rayleigh quotient.
        character: What it is, in words, for a person.
        reason: Why it was left out; empty for a mode that is there.
    """

    label: str
    frequency: float
    character: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        label = f"mode {checked_name('label', self.label)!r}"
        assign(self, frequency=number(f"{label}: frequency", self.frequency, unit="Hz"))
        for key in ("character", "reason"):
            instance(f"{label}: {key}", getattr(self, key), str)


@dataclass(frozen=True, eq=False)
class Station:
    """A named material point: position (3,), m; displacement per elastic coordinate (n, 3)."""

    name: str
    position: Array
    modes: Array

    def __post_init__(self) -> None:
        label = f"point {checked_name('name', self.name)!r}"
        assign(
            self,
            position=frozen(f"{label}: position", self.position, (3,)),
            modes=frozen(f"{label}: modes", self.modes, (-1, 3)),
        )


@dataclass(frozen=True, eq=False)
class LoadPattern:
    """A distributed load whose shape is known and whose size comes later, a pressure for instance.

    It turns with the body frame and keeps its direction in it as the body deforms. All numbers are
    for a size of one, in whatever unit the size is given.

    Attributes:
        name: Its name.
        force: Resultant in body components, shape (3,), N.
        moment: Moment about the frame's origin on the undeformed body, shape (3,), N m.
        modes: Work on a unit of each elastic coordinate, ∫ψ_k·f, shape (n,).
        moments: Moment that a unit of each elastic coordinate adds, ∫ψ_k×f, shape (n, 3).
    """

    name: str
    force: Array
    moment: Array
    modes: Array
    moments: Array

    def __post_init__(self) -> None:
        label = f"load {checked_name('name', self.name)!r}"
        modes = frozen(f"{label}: modes", self.modes, (-1,))
        assign(
            self,
            force=frozen(f"{label}: force", self.force, (3,)),
            moment=frozen(f"{label}: moment", self.moment, (3,)),
            modes=modes,
            moments=frozen(f"{label}: moments", self.moments, (len(modes), 3)),
        )


@dataclass(frozen=True, eq=False)
class Skin:
    """The surface, for pictures and for points on it.

    Attributes:
        points: Surface nodes, shape (ns, 3), m.
        triangles: Indices into ``points``, shape (nt, 3).
        modes: Displacement of the nodes per unit elastic coordinate, shape (n, ns, 3).
    """

    points: Array
    triangles: NDArray[np.int64]
    modes: Array

    def __post_init__(self) -> None:
        points = frozen("skin: points", self.points, (-1, 3))
        triangles = frozen("skin: triangles", self.triangles, (-1, 3), np.int64)
        if triangles.size and not 0 <= triangles.min() <= triangles.max() < len(points):
            raise InputError(f"skin: triangles refer to nodes outside 0 ... {len(points) - 1}")
        modes = frozen("skin: modes", self.modes, (-1, len(points), 3))
        assign(self, points=points, triangles=triangles, modes=modes)


SPINS = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0))
"""Pairs i, j of ω_iω_j, in the order of `Stiffening.spin`."""


@dataclass(frozen=True, eq=False)
class Stiffening:
    """Geometric stiffness of unit loads, reduced: what makes a body stiffer in tension, softer in
    compression.

    Each case is a self-equilibrated stress (inertia relief), so that a = α = 0 and gravity give
    none.

    Attributes:
        spin: Of the centrifugal loads of ω_xω_x, ω_yω_y, ω_zω_z, ω_xω_y, ω_yω_z, ω_zω_x = 1
            (rad/s)², shape (6, n, n).
        interfaces: Of a unit force along and moment about x, y, z (body axes) at each interface,
            shape (interfaces, 6, n, n).
        work: Work of each unit load on the static displacement of the full model that it causes,
            shape (6 + 6 interfaces,), first the spins; None if it is unknown. See
            `body.static_errors`.
    """

    spin: Array
    interfaces: Array
    work: Array | None = None

    def __post_init__(self) -> None:
        spin = frozen("stiffening: spin", self.spin, (6, -1, -1))
        n = spin.shape[-1]
        interfaces = frozen("stiffening: interfaces", self.interfaces, (-1, 6, n, n))
        for name, matrices in (("spin", spin), ("interfaces", interfaces)):
            size = np.abs(matrices).max(initial=0.0)
            if not np.allclose(matrices, np.swapaxes(matrices, -1, -2), rtol=0, atol=1e-9 * size):
                raise InputError(f"stiffening: {name}: expected symmetric matrices")
        assign(self, spin=spin, interfaces=interfaces)
        if self.work is not None:
            shape = (6 + 6 * len(interfaces),)
            assign(self, work=frozen("stiffening: work", self.work, shape))

    def selected(self, modes: NDArray[np.int64]) -> Stiffening:
        """Return the cases for some elastic coordinates only."""
        modes = mode_numbers("modes", modes, self.spin.shape[-1])
        rows = modes[:, None]
        spin, interfaces = self.spin[:, rows, modes], self.interfaces[:, :, rows, modes]
        return Stiffening(spin, interfaces, self.work)
