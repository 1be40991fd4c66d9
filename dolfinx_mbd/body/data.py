"""The data of a reduced body and the checks of them.

The displacement in the floating frame is u(x, t) = Σ ψ_k(x) η_k(t) with the modes ψ_k and the
elastic coordinates η_k. With ψ_0 = x, all inertia properties follow from the moments

    S_k = ∫ρ ψ_k,    H_kl^ab = ∫ρ ψ_k^a ψ_l^b.

Mass, centre of mass, inertia tensor, and Coriolis, centrifugal and Euler terms are contractions of
these moments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body.parts import (
    Interface,
    LoadPattern,
    Mode,
    Skin,
    Station,
    Stiffening,
    assign,
    freeze,
    frozen,
)
from dolfinx_mbd.body.stress_modes import StressModes
from dolfinx_mbd.checks import array, instance, items, name, number, refuse, unknown
from dolfinx_mbd.errors import InputError

Array = NDArray[np.float64]

_LISTS: dict[str, type[Any]] = {
    "interfaces": Interface,
    "modes": Mode,
    "points": Station,
    "left_out": Mode,
    "loads": LoadPattern,
}
_PARTS: dict[str, type[Any]] = {"skin": Skin, "stiffening": Stiffening, "stress": StressModes}


@dataclass(frozen=True, eq=False)
class BodyData:
    """Data of a reduced body in SI units, with n elastic coordinates.

    Attributes:
        name: Name of the body.
        total_mass: Mass ∫ρ, kg.
        first_moments: S_k = ∫ρ ψ_k, shape (n+1, 3), kg m.
        second_moments: H_kl^ab = ∫ρ ψ_k^a ψ_l^b, shape (n+1, n+1, 3, 3), kg m².
        mass: Modal mass matrix M, shape (n, n).
        stiffness: Modal stiffness matrix K, shape (n, n).
        damping: Modal damping matrix C, shape (n, n).
        interfaces: Frames to which joints are attached.
        modes: Descriptions of the n elastic coordinates; generated if empty.
        points: Named material points.
        skin: Surface of the body, or None.
        stiffening: Geometric stiffness for unit spins and unit wrenches at the interfaces, or
            None.
        reference: Reference condition: `mean axis`, `attached to <interface>` or `rigid`.
        provenance: Origin of the numbers, as a dictionary of plain numbers and strings.
        left_out: Modes that the reduction computed but left out, each with the reason.
        stress: Stress per unit of each elastic coordinate at the nodes of the skin, or None.
        loads: Distributed loads with a known shape.

    Example:
        >>> body.total_mass, body.first_moments.shape
        (0.6, (3, 3))
    """

    name: str
    total_mass: float
    first_moments: Array
    second_moments: Array
    mass: Array
    stiffness: Array
    damping: Array
    interfaces: tuple[Interface, ...] = ()
    modes: tuple[Mode, ...] = ()
    points: tuple[Station, ...] = ()
    skin: Skin | None = None
    stiffening: Stiffening | None = None
    reference: str = "mean axis"
    provenance: Mapping[str, str | int | float] = field(default_factory=dict)
    left_out: tuple[Mode, ...] = ()
    stress: StressModes | None = None
    loads: tuple[LoadPattern, ...] = ()

    def __post_init__(self) -> None:
        rows = "an array of finite numbers of shape (n+1, 3), with a row for ψ_0 = x"
        n = len(array("first_moments", self.first_moments, (None, 3), expected=rows)) - 1
        if n < 0:
            refuse("first_moments", self.first_moments, rows)
        name("name", self.name)
        instance("reference", self.reference, str)
        assign(self, total_mass=number("total_mass", self.total_mass, positive=True, unit="kg"))
        freeze(self, first_moments=(n + 1, 3), second_moments=(n + 1, n + 1, 3, 3))
        freeze(self, mass=(n, n), stiffness=(n, n), damping=(n, n))
        for key in ("mass", "stiffness", "damping"):
            _check_matrix(key, getattr(self, key))
        if not np.allclose(self.second_moments, self.second_moments.transpose(1, 0, 3, 2)):
            refuse("second_moments", self.second_moments, "an array with H_kl^ab = H_lk^ba")
        for key, kind in _LISTS.items():
            assign(self, **{key: items(key, getattr(self, key), kind)})
        for key, kind in _PARTS.items():
            instance(key, getattr(self, key), (kind, type(None)))
        provenance = instance("provenance", self.provenance, Mapping)
        assign(self, provenance=MappingProxyType(dict(provenance)))
        assign(self, modes=self.modes or _default_modes(self.mass, self.stiffness))
        self._check_parts(n)

    def _check_parts(self, n: int) -> None:
        for argument in ("interfaces", "points", "loads"):
            names = [part.name for part in getattr(self, argument)]
            if len(set(names)) < len(names):
                refuse(argument, names, "a list of parts with different names")
        counts = {"modes": len(self.modes)}
        counts |= {f"interface {i.name!r}": i.motion.shape[1] for i in self.interfaces}
        counts |= {f"point {p.name!r}": len(p.modes) for p in self.points}
        counts |= {f"load {p.name!r}": len(p.modes) for p in self.loads}
        if self.skin is not None:
            counts["skin"] = len(self.skin.modes)
        if self.stress is not None:
            counts["stress"] = self.stress.num_modes
        for argument, count in counts.items():
            if count != n:
                text = f"{argument}: {count} modes, but the matrices of the body have {n}"
                raise InputError(text, argument=argument, value=count, expected=f"{n} modes")
        if self.stiffening is not None:
            shape = (len(self.interfaces), 6, n, n)
            frozen("stiffening: interfaces", self.stiffening.interfaces, shape)

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
        """Return the interface with a name; if it is unknown, the error lists the interfaces."""
        return self._part("interface", name, self.interfaces)

    def point(self, name: str) -> Station:
        """Return the material point with a name; if it is unknown, the error lists the points."""
        return self._part("point", name, self.points)

    def load_pattern(self, name: str) -> LoadPattern:
        """Return the distributed load with a name; if it is unknown, the error lists the loads."""
        return self._part("load", name, self.loads)

    def _part(self, kind: str, name: str, parts: Sequence[Any]) -> Any:
        for part in parts:
            if isinstance(name, str) and part.name == name:
                return part
        unknown(kind, name, (part.name for part in parts), f"body {self.name!r} has")


def _check_matrix(argument: str, matrix: Array) -> None:
    """Check that a matrix is positive definite; stiffness and damping may be semidefinite."""
    size = np.abs(matrix).max(initial=0.0)
    if argument != "damping" and not np.allclose(matrix, matrix.T, atol=1e-9 * size):
        refuse(argument, matrix, "a symmetric matrix")
    least = np.linalg.eigvalsh(0.5 * (matrix + matrix.T)).min(initial=np.inf)
    if least < -1e-9 * size or (argument == "mass" and least <= 0):
        expected = f"a positive {'definite' if argument == 'mass' else 'semidefinite'} matrix"
        text = f"{argument} must be {expected}; its least eigenvalue is {least:.3g}"
        raise InputError(text, argument=argument, value=matrix, expected=expected)


def _default_modes(mass: Array, stiffness: Array) -> tuple[Mode, ...]:
    squares = np.diag(stiffness) / np.maximum(np.diag(mass), np.finfo(float).tiny)
    frequencies = np.sqrt(np.maximum(squares, 0.0)) / (2 * np.pi)
    return tuple(Mode(f"mode {k + 1}", float(f)) for k, f in enumerate(frequencies))
