"""A flexible body, reduced to what a multibody program needs: frozen plain data.

Displacements are body components in a floating frame, u(x, t) = Σ ψ_k(x) η_k(t).  All inertia is in
the moments of the modes with ψ_0 = x,

    S_k = ∫ρ ψ_k,    H_kl^ab = ∫ρ ψ_k^a ψ_l^b,

of which mass, centre, inertia tensor, Coriolis, centrifugal and Euler terms are contractions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body.damping import Damping, damping_matrix
from dolfinx_mbd.body.files import read_body, save_body
from dolfinx_mbd.body.multiple import warn_of_cut_groups
from dolfinx_mbd.body.parts import (
    Interface,
    LoadPattern,
    Mode,
    Skin,
    Station,
    Stiffening,
    assign,
    frozen,
    mode_numbers,
)
from dolfinx_mbd.body.stress_modes import StressModes
from dolfinx_mbd.body.summary import summary
from dolfinx_mbd.checks import array, instance, integer, name, number, refuse, short
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.parallel import on_rank_zero

__all__ = ["ReducedBody"]

Array = NDArray[np.float64]


def _unique(what: str, names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"duplicate {what} {', '.join(map(repr, twice))}: names must be unique")


@dataclass(frozen=True, eq=False)
class ReducedBody:
    """A reduced flexible body in SI units; n elastic coordinates η, ψ_0 = x.

    Attributes:
        name: The body's name.
        total_mass: ∫ρ, kg.
        first_moments: S_k = ∫ρ ψ_k, shape (n+1, 3).
        second_moments: H_kl^ab = ∫ρ ψ_k^a ψ_l^b, shape (n+1, n+1, 3, 3).
        mass: Modal mass matrix M, shape (n, n).
        stiffness: Modal stiffness matrix K, shape (n, n).
        damping: Modal damping matrix C, shape (n, n).
        interfaces: Where joints meet the body.
        modes: What each elastic coordinate is; n rows.
        points: Named material points.
        skin: The surface, or None.
        stiffening: Geometric stiffness of unit spins and of unit wrenches at the interfaces, or
            None.
        reference: The reference condition, ``mean axis`` or ``attached to <interface>``.
        provenance: Where the numbers come from; plain numbers and strings.
        left_out: Modes that the reduction computed and left out, each with its reason.
        stress: Stress per elastic coordinate at the nodes of the skin, or None.
        loads: Distributed loads that are known by their shape.
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
        shapes = {
            "first_moments": (n + 1, 3),
            "second_moments": (n + 1, n + 1, 3, 3),
            "mass": (n, n),
            "stiffness": (n, n),
            "damping": (n, n),
        }
        assign(self, total_mass=number("total_mass", self.total_mass, positive=True, unit="kg"))
        for key, shape in shapes.items():
            assign(self, **{key: frozen(key, getattr(self, key), shape)})
        for key in ("mass", "stiffness", "damping"):
            _check_matrix(key, getattr(self, key))
        if not np.allclose(self.second_moments, self.second_moments.transpose(1, 0, 3, 2)):
            refuse("second_moments", self.second_moments, "an array with H_kl^ab = H_lk^ba")
        self._check_types()
        assign(self, modes=self.modes or _default_modes(self.mass, self.stiffness))
        instance("provenance", self.provenance, Mapping)
        assign(self, provenance=MappingProxyType(dict(self.provenance)))
        self._check_parts(n)

    def _check_types(self) -> None:
        for key, kind in _LISTS.items():
            entries = getattr(self, key)
            if isinstance(entries, (str, bytes)) or not isinstance(entries, Iterable):
                refuse(key, entries, f"a list of {kind.__name__}s", InputTypeError)
            entries = tuple(instance(f"every entry of {key}", entry, kind) for entry in entries)
            assign(self, **{key: entries})
        for key, kind in (("skin", Skin), ("stiffening", Stiffening), ("stress", StressModes)):
            instance(key, getattr(self, key), (kind, type(None)))

    def _check_parts(self, n: int) -> None:
        if len(self.modes) != n:
            raise InputError(f"modes: expected {n} rows, got {len(self.modes)}")
        _unique("interface", [i.name for i in self.interfaces])
        _unique("point", [p.name for p in self.points])
        _unique("load", [p.name for p in self.loads])
        for i in self.interfaces:
            if i.motion.shape != (6, n):
                raise InputError(
                    f"interface {i.name!r}: motion has {i.motion.shape[1]} modes, not {n}"
                )
        for p in self.points:
            if len(p.modes) != n:
                raise InputError(f"point {p.name!r}: has {len(p.modes)} modes, not {n}")
        for load in self.loads:
            if len(load.modes) != n:
                raise InputError(f"load {load.name!r}: has {len(load.modes)} modes, not {n}")
        if self.skin is not None and len(self.skin.modes) != n:
            raise InputError(f"skin: has {len(self.skin.modes)} modes, not {n}")
        if self.stress is not None and self.stress.num_modes != n:
            raise InputError(f"stress: has {self.stress.num_modes} modes, not {n}")
        if self.stiffening is not None:
            expected = (len(self.interfaces), 6, n, n)
            if self.stiffening.interfaces.shape != expected:
                raise InputError(
                    f"stiffening: expected interfaces of shape {expected}, got "
                    f"{self.stiffening.interfaces.shape}"
                )

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
        """A body from matrices that come from elsewhere; what is missing is derived.

        Args:
            total_mass: ∫ρ, kg.
            first_moments: S, shape (n+1, 3).
            second_moments: H, shape (n+1, n+1, 3, 3).
            stiffness: K, shape (n, n).
            mass: M, shape (n, n); None: the trace of H, as for a consistent mass.
            damping: C, shape (n, n); None: zero.
            name: The body's name.
            **parts: Any other field of :class:`ReducedBody`.

        Raises:
            ValueError: If a shape does not fit or a matrix is not symmetric.
            TypeError: If a keyword is not a field.
        """
        expected = "an array of finite numbers of shape (n+1, n+1, 3, 3)"
        H = array("second_moments", second_moments, (None, None, 3, 3), expected=expected)
        n = len(H) - 1
        if H.shape[1] != n + 1 or n < 0:
            refuse("second_moments", second_moments, expected)
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
        """Frequencies of the modes as the table has them, shape (n,), Hz."""
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
        """The interface of this name.

        Raises:
            ValueError: If there is none; the message lists those that are there.
        """
        return _find("interface", name, self.interfaces, self.name)

    def point(self, name: str) -> Station:
        """The named material point.

        Raises:
            ValueError: If there is none; the message lists those that are there.
        """
        return _find("point", name, self.points, self.name)

    def load_pattern(self, name: str) -> LoadPattern:
        """The distributed load of this name.

        Raises:
            ValueError: If there is none; the message lists those that are there.
        """
        return _find("load", name, self.loads, self.name)

    def replace(self, **changes: Any) -> ReducedBody:
        """A copy with some fields changed, checked as a new body is."""
        unknown = set(changes) - {f.name for f in fields(self)}
        if unknown:
            raise InputTypeError(
                f"unknown fields {sorted(unknown)}; a body has {[f.name for f in fields(self)]}"
            )
        return replace(self, **changes)

    def truncated(self, num_modes: int) -> ReducedBody:
        """The body with its first ``num_modes`` elastic coordinates only.

        Raises:
            ValueError: If the body has fewer.
        """
        n = integer("num_modes", num_modes, low=0, high=self.num_modes)
        return self.selected(range(n), reason=f"truncated to {n} modes")

    def selected(self, modes: Iterable[int], reason: str = "not selected") -> ReducedBody:
        """The body with some of its elastic coordinates only, in the order of the body.

        Take all modes of a multiple frequency or none: a warning is given otherwise.

        Args:
            modes: Numbers of the coordinates to keep, from 0.
            reason: Why the others are left out, for the table of modes.

        Raises:
            ValueError: If the body has no such coordinate, or one is given twice.
        """
        k = np.sort(mode_numbers("modes", modes, self.num_modes))
        warn_of_cut_groups(self.name, self.stiffness, self.mass, k)
        lost = (mode for i, mode in enumerate(self.modes) if i not in k)
        both, rows = np.ix_(k, k), np.concatenate([[0], k + 1])
        skin, cases, stress = self.skin, self.stiffening, self.stress
        return self.replace(
            first_moments=self.first_moments[rows],
            second_moments=self.second_moments[np.ix_(rows, rows)],
            mass=self.mass[both],
            stiffness=self.stiffness[both],
            damping=self.damping[both],
            interfaces=tuple(replace(i, motion=i.motion[:, k]) for i in self.interfaces),
            modes=tuple(self.modes[i] for i in k),
            left_out=self.left_out + tuple(replace(mode, reason=reason) for mode in lost),
            points=tuple(replace(p, modes=p.modes[k]) for p in self.points),
            loads=tuple(replace(p, modes=p.modes[k], moments=p.moments[k]) for p in self.loads),
            skin=None if skin is None else replace(skin, modes=skin.modes[k]),
            stiffening=None if cases is None else cases.selected(k),
            stress=None if stress is None else stress.selected(k),
        )

    def with_damping(self, *dampings: Damping | ArrayLike) -> ReducedBody:
        """The body with another damping, the sum of those given; its own is replaced.

        Damping acts on the elastic coordinates only and never resists rigid motion
        (:mod:`dolfinx_mbd.body.damping`).  A body whose damping is zero gets a default in a
        mechanism, unless ``FlexibleBody(..., damping_ratio=0.0)`` says otherwise.

        Args:
            *dampings: :class:`~dolfinx_mbd.body.Rayleigh`, :class:`~dolfinx_mbd.body.ModalDamping`
                or matrices C, shape (n, n).

        Raises:
            TypeError: If something is neither.
            ValueError: If a shape does not fit, or the matrix feeds energy in.
        """
        return self.replace(damping=damping_matrix(self.mass, self.stiffness, *dampings))

    def rigid(self) -> ReducedBody:
        """The body without its elastic coordinates: the same mass, interfaces and points."""
        return self.truncated(0).replace(
            reference="rigid", stiffening=None, stress=None, left_out=()
        )

    def summary(self) -> str:
        """The body on one page, for a person."""
        return summary(self)

    def save(self, path: str | Path, *, comm: Any = None) -> Path:
        """Write the body to one ``.npz`` file; either all of it is written or nothing.

        A body file of that name is replaced; any other file is not.

        Args:
            path: The file; ``.npz`` is added if it has no suffix.
            comm: Under MPI, a communicator of all ranks that call this: rank 0 writes, and an error
                is raised on all. None: the process that calls this writes.

        Raises:
            OverwriteError: There is a file that is not a reduced body.
            OSError: The file cannot be written.

        Note: Collective over ``comm``.
        """
        return on_rank_zero(comm, lambda: save_body(self, path))

    @classmethod
    def load(cls, path: str | Path) -> ReducedBody:
        """Read a body that :meth:`save` wrote.

        Raises:
            BodyFileError: If the file is not a body, is damaged, or is of a newer version.
            OSError: If the file cannot be read.
        """
        return read_body(path, cls)

    def __reduce__(self) -> tuple[Any, ...]:
        """For processes to send to one another; a file is written by :meth:`save`."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return _rebuilt, (type(self), values | {"provenance": dict(self.provenance)})

    def __repr__(self) -> str:
        names = ", ".join(i.name for i in self.interfaces) or "no interfaces"
        size = f"{self.total_mass:.6g} kg, {self.num_modes} modes"
        return f"<ReducedBody {self.name!r}: {size}, {names}>"


_LISTS: dict[str, type[Any]] = {
    "interfaces": Interface,
    "modes": Mode,
    "points": Station,
    "left_out": Mode,
    "loads": LoadPattern,
}
"""Attributes that are lists, and the class of their entries."""


def _check_matrix(argument: str, matrix: Array) -> None:
    """Check that a matrix is positive definite; stiffness and damping may be zero."""
    size = np.abs(matrix).max(initial=0.0)
    if argument != "damping" and not np.allclose(matrix, matrix.T, atol=1e-9 * size):
        refuse(argument, matrix, "a symmetric matrix")
    least = np.linalg.eigvalsh(0.5 * (matrix + matrix.T)).min(initial=np.inf)
    if least < -1e-9 * size or (argument == "mass" and least <= 0):
        raise InputError(
            f"{argument} must be a positive definite matrix (stiffness and damping may be zero); "
            f"got one with an eigenvalue of {least:.3g}",
            argument=argument,
            value=matrix,
        )


def _default_modes(mass: Array, stiffness: Array) -> tuple[Mode, ...]:
    squares = np.diag(stiffness) / np.maximum(np.diag(mass), np.finfo(float).tiny)
    frequencies = np.sqrt(np.maximum(squares, 0.0)) / (2 * np.pi)
    return tuple(Mode(f"mode {k + 1}", float(f)) for k, f in enumerate(frequencies))


def _rebuilt(kind: type[ReducedBody], values: dict[str, Any]) -> ReducedBody:
    return kind(**values)


def _find(what: str, name: str, items: Sequence[Any], owner: str) -> Any:
    for item in items:
        if isinstance(name, str) and item.name == name:
            return item
    known = ", ".join(repr(item.name) for item in items) or "none"
    raise InputError(
        f"unknown {what} {short(name)}; body {owner!r} has {known}",
        argument="name",
        value=name,
        expected=known,
    )
