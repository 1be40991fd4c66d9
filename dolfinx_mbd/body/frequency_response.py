"""Frequency response of a reduced body: motions per unit harmonic wrench or base motion.

    H(ω) = B (K + i η K_e + i ω (C + G) − ω² M)⁻¹ Bᵀ

of the small motions of :mod:`dolfinx_mbd.body.linearized`, with a structural loss factor η, which
has a meaning only here: a force in phase with the velocity and independent of the frequency.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body.linearized import (
    LinearizedBody,
    interface_map,
    linearize_body,
    name_list,
    null_space,
    point_map,
)
from dolfinx_mbd.body.parts import assign, frozen
from dolfinx_mbd.body.reduced_body import ReducedBody
from dolfinx_mbd.checks import array, instance, integer, names, number, refuse, short
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError

__all__ = ["FrequencyResponse", "frequency_response"]

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

MOTIONS = ("ux", "uy", "uz", "rx", "ry", "rz")
FORCES = ("fx", "fy", "fz", "mx", "my", "mz")

_CHUNK = 4_000_000  # entries of the dynamic stiffness that are solved with at once
_CONSISTENT = 1e-8  # of base motions, relative


@dataclass(frozen=True, eq=False)
class FrequencyResponse:
    """Complex amplitudes of motions per unit amplitude of each input, e^{iωt}.

    Inputs are ``"<interface> fx"`` ... ``mz`` (force at the interface's point and moment), of named
    points ``fx fy fz``, and of a driven interface its motion ``"<interface> ux"`` ... ``rz``.
    Outputs are ``ux uy uz`` (m) and, of interfaces, the rotations ``rx ry rz`` (rad).  All are in
    the axes of the body, which turn with it.

    Attributes:
        frequencies: Shape (nf,), Hz.
        outputs: Names of the rows.
        inputs: Names of the columns.
        values: Receptance (m/N, rad/N, ...) or transmissibility, shape (nf, outputs, inputs).
        body: The body's name.
    """

    frequencies: Array
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    values: ComplexArray
    body: str = "body"

    def __post_init__(self) -> None:
        assign(self, frequencies=frozen("frequencies", self.frequencies, (-1,)))
        for key in ("outputs", "inputs"):
            assign(self, **{key: names(key, getattr(self, key))})
        shape = (len(self.frequencies), len(self.outputs), len(self.inputs))
        assign(self, values=frozen("values", self.values, shape, complex))

    def between(self, output: str, input: str, derivative: int = 0) -> ComplexArray:
        """One entry over the frequencies, shape (nf,).

        Args:
            output: For example ``"small_end uz"``.
            input: For example ``"small_end fz"``.
            derivative: 0: displacement (receptance), 1: velocity (mobility), 2: acceleration
                (accelerance).

        Raises:
            ValueError: If there is no such output or input; the message lists those there are.
        """
        i, j = _index("output", output, self.outputs), _index("input", input, self.inputs)
        derivative = integer("derivative", derivative, low=0, high=2)
        return self.values[:, i, j] * (2j * np.pi * self.frequencies) ** derivative

    def receptance(self, *names: str) -> ComplexArray:
        """Motions per force at some interfaces and points, square, shape (nf, k, k).

        Args:
            *names: Interfaces (six rows each) and points (three); none: all that are loaded.

        Raises:
            ValueError: If one is not both an input by force and an output.
        """
        for name in names:
            checked_name("every name", name)
        chosen = names or tuple(dict.fromkeys(n.rpartition(" ")[0] for n in self.inputs))
        rows: list[int] = []
        columns: list[int] = []
        for name in chosen:
            count = sum(output.rpartition(" ")[0] == name for output in self.outputs)
            for motion, force in zip(MOTIONS[: max(3, count)], FORCES, strict=False):
                rows.append(_index("output", f"{name} {motion}", self.outputs))
                columns.append(_index("input", f"{name} {force}", self.inputs))
        return self.values[np.ix_(range(len(self.values)), rows, columns)]

    def dynamic_stiffness(self, *names: str) -> ComplexArray:
        """Forces per motion at some interfaces and points, all others being free of force.

        The inverse of :meth:`receptance`, shape (nf, k, k).

        Raises:
            ValueError: If one is not both an input and an output, or their motions are not
                independent: fewer modes than coordinates, or several interfaces of a plane body.
        """
        H = self.receptance(*names)
        size = np.sqrt(np.abs(np.einsum("fii->fi", H)))
        size = np.where(size > 0, size, 1.0)
        scaled = H / (size[:, :, None] * size[:, None, :])
        if len(H) and np.linalg.cond(scaled).max() > 1e12:
            raise InputError(
                "the motions at these interfaces are not independent: the body has too few modes, "
                "or is plane and several interfaces would move out of the plane"
            )
        return np.linalg.inv(scaled) / (size[:, :, None] * size[:, None, :])


def frequency_response(
    body: ReducedBody,
    frequencies: ArrayLike,
    *,
    held: Iterable[str] = (),
    driven: Iterable[str] = (),
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    loss_factor: float = 0.0,
    spin: ArrayLike | None = None,
    about: str | ArrayLike | None = None,
    stiffening: bool | None = None,
) -> FrequencyResponse:
    """Steady motion of a body under unit harmonic wrenches, or motions of its base.

    A body that is not held is free: it moves as a rigid one too, −1/(mω²) at low frequencies, which
    no damping resists.  With `spin` its axes turn steadily: the body is then held by interfaces
    that turn with them, or, if none is held, its frame follows the prescribed rotation.  Amplitudes
    are those in the turning axes, about the steady state.

    Args:
        body: The body, with its damping matrix.
        frequencies: Shape (nf,), Hz; positive where the body is free.
        held: Names of interfaces that are held.
        driven: Names of interfaces whose motion is prescribed; not with `spin`.
        inputs: Interfaces and points where unit forces act; None: all that are not held, or with
            `driven` none.
        outputs: Interfaces and points whose motion is wanted; None: all that are not held.
        loss_factor: η of the structural damping K (1 + iη).
        spin: Steady angular velocity, body components, shape (3,), rad/s; None: none.
        about: A point on the axis, shape (3,), m, or an interface's name; None: the first held
            interface.
        stiffening: Whether the steady state's geometric stiffness acts; None: if the body has it.

    Raises:
        ValueError: If something is unknown or does not fit, or a frequency is a resonance without
            any damping.
    """
    instance("body", body, ReducedBody)
    f = _frequencies(frequencies)
    loss_factor = number("loss_factor", loss_factor, low=0.0)
    base, fixed = name_list("driven", driven), name_list("held", held)
    if set(base) & set(fixed):
        raise InputError(f"held and driven at once: {sorted(set(base) & set(fixed))}")
    if base and spin is not None:
        raise InputError("driven interfaces are for bodies that do not rotate: leave out spin")
    if not (base or fixed or spin is not None) and (f == 0).any():
        raise InputError(
            "a free body has no response at 0 Hz, where it flies away; give positive frequencies "
            "or hold an interface"
        )
    system = linearize_body(body, held=fixed, spin=spin, about=about, stiffening=stiffening)
    places = [i.name for i in body.interfaces if i.name not in fixed]
    places += [p.name for p in body.points]
    to = places if outputs is None else name_list("outputs", outputs)
    by = name_list("inputs", inputs) if inputs is not None else [] if base else places
    rows, row_names = _maps(body, to, MOTIONS)
    columns, column_names = _maps(body, by, FORCES)
    moved = np.vstack([np.zeros((0, 6 + body.num_modes)), *(interface_map(body, b) for b in base)])
    column_names += tuple(f"{name} {motion}" for name in base for motion in MOTIONS)
    H = _solve(system, f, loss_factor, *(part @ system.basis for part in (rows, columns, moved)))
    return FrequencyResponse(f, row_names, column_names, H, body.name)


def _solve(
    system: LinearizedBody, f: Array, loss_factor: float, rows: Array, loads: Array, moved: Array
) -> ComplexArray:
    """Motions of `rows` under unit loads and unit motions of the rows `moved`, (nf, no, ni)."""
    m = len(system.mass)
    scale = 1 / np.sqrt(np.diag(system.mass))
    complex_stiffness = system.stiffness + 1j * loss_factor * system.elastic
    K: Any = scale[:, None] * complex_stiffness * scale
    C: Any = scale[:, None] * (system.damping + system.gyroscopic) * scale
    M: Any = scale[:, None] * system.mass * scale
    rows, loads, moved = rows * scale, loads * scale, moved * scale
    free: Array = np.eye(m)
    base: Any = np.zeros((m, 0))
    if len(moved):
        free, base = null_space(moved, np.eye(m)), np.linalg.pinv(moved, rcond=_CONSISTENT)
        if not np.allclose(moved @ base, np.eye(len(moved)), atol=_CONSISTENT):
            raise InputError(
                "the driven motions are not independent: the body has too few modes, or is plane "
                "and several interfaces would move out of the plane"
            )
    count = free.shape[1]
    H = np.empty((len(f), len(rows), len(loads) + len(moved)), dtype=complex)
    step = max(1, _CHUNK // max(1, m * m))
    for start in range(0, len(f), step):
        w = 2 * np.pi * f[start : start + step, None, None]
        Z = K + 1j * w * C - w**2 * M
        right = np.empty((len(w), count, H.shape[2]), dtype=complex)
        right[:, :, : len(loads)] = free.T @ loads.T
        right[:, :, len(loads) :] = -free.T @ Z @ base
        try:
            y = np.linalg.solve(free.T @ Z @ free, right)
        except np.linalg.LinAlgError as error:
            raise InputError(
                f"a frequency between {f[start]:g} and {f[start:][:step][-1]:g} Hz is a resonance "
                "without any damping: give the body damping (with_damping) or a loss factor"
            ) from error
        H[start : start + step] = (rows @ free) @ y
        H[start : start + step, :, len(loads) :] += rows @ base
    return H


def _frequencies(values: ArrayLike) -> Array:
    f: Array = np.atleast_1d(array("frequencies", values))
    if f.ndim != 1 or (f < 0).any():
        refuse("frequencies", values, "a list of numbers of at least 0 in Hz")
    return f


def _maps(
    body: ReducedBody, names: Sequence[str], components: Sequence[str]
) -> tuple[Array, tuple[str, ...]]:
    """Rows over z of interfaces (six) and points (three), and their names."""
    interfaces = {i.name for i in body.interfaces}
    points = {p.name for p in body.points} - interfaces
    rows: list[Array] = [np.zeros((0, 6 + body.num_modes))]
    labels: list[str] = []
    for name in names:
        if name not in interfaces | points:
            known = ", ".join(map(repr, [*sorted(interfaces), *sorted(points)])) or "none"
            raise InputError(f"unknown interface or point {name!r}; body {body.name!r} has {known}")
        block = interface_map(body, name) if name in interfaces else point_map(body, name)
        rows.append(block)
        labels += [f"{name} {c}" for c in components[: len(block)]]
    return np.vstack(rows), tuple(labels)


def _index(what: str, name: str, names: Sequence[str]) -> int:
    if isinstance(name, str) and name in names:
        return names.index(name)
    known = ", ".join(map(repr, names)) or "none"
    raise InputError(
        f"unknown {what} {short(name)}; this response has {known}",
        argument=what,
        value=name,
        expected=known,
    )
