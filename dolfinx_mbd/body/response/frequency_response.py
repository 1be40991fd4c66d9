"""Frequency response of a reduced body to harmonic wrenches or harmonic motions of its base.

    H(ω) = B (K + i η K_e + i ω (C + G) − ω² M)⁻¹ Bᵀ

with the matrices of the module `linearized`, the elastic part K_e of K, and the loss factor η of
structural damping. The force of structural damping is in phase with the velocity, and its amplitude
does not depend on the frequency; it is defined for harmonic motion only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array, ComplexArray, assign, freeze, frozen
from dolfinx_mbd.body.reduced_body import ReducedBody
from dolfinx_mbd.body.response.linearized import (
    LinearizedBody,
    interface_map,
    linearize_body,
    name_list,
    null_space,
    point_map,
)
from dolfinx_mbd.checks import array, instance, integer, names, number, reject, unknown
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr

MOTIONS = ("ux", "uy", "uz", "rx", "ry", "rz")
FORCES = ("fx", "fy", "fz", "mx", "my", "mz")

_CHUNK_ENTRIES = 4_000_000  # maximum number of entries of the matrices that are solved together
_MAX_CONDITION = 1e12  # largest condition number of a receptance of independent motions
_INDEPENDENT_MOTIONS = (
    "interfaces with independent motions; this body has too few modes, or is plane and several "
    "interfaces would move out of the plane"
)
_MOTION_TOLERANCE = 1e-8  # largest relative error of the base motions


@dataclass(frozen=True, eq=False)
class FrequencyResponse:
    """Complex amplitudes of outputs per unit amplitude of each input, for e^{iωt}.

    Outputs are displacements `"<name> ux"`, `uy`, `uz` (m) of interfaces and points, and rotations
    `rx`, `ry`, `rz` (rad) of interfaces. Inputs are forces `"<name> fx"`, `fy`, `fz` (N) at
    interfaces and points, moments `mx`, `my`, `mz` (N m) at interfaces, and motions `ux` to `rz`
    of driven interfaces. All components refer to the body axes, which rotate with the body.

    Attributes:
        frequencies: Frequencies, shape (nf,), Hz.
        outputs: Names of the outputs.
        inputs: Names of the inputs.
        values: Receptance (m/N, rad/N, ...) or transmissibility, shape (nf, outputs, inputs).
        body: Name of the body.

    Example:
        >>> response = mbd.body.frequency_response(body, [10.0, 20.0], held=["left"])
        >>> response.outputs[0], response.inputs[0], response.values.shape
        ('right ux', 'right fx', (2, 6, 6))
        >>> response.between("right uy", "right fy").shape
        (2,)
        >>> response.receptance("right").shape
        (2, 6, 6)
    """

    frequencies: Array
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    values: ComplexArray
    body: str = "body"

    __repr__ = short_repr

    def __post_init__(self) -> None:
        freeze(self, frequencies=(-1,))
        for key in ("outputs", "inputs"):
            assign(self, **{key: names(key, getattr(self, key))})
        shape = (len(self.frequencies), len(self.outputs), len(self.inputs))
        assign(self, values=frozen("values", self.values, shape, complex))

    def between(self, output: str, input: str, derivative: int = 0) -> ComplexArray:
        """Return the response of one output to one input, shape (nf,).

        Args:
            output: Name of the output, for example `"small_end uz"`.
            input: Name of the input, for example `"small_end fz"`.
            derivative: 0: displacement (receptance), 1: velocity (mobility), 2: acceleration.

        Raises:
            InputError: The output or the input is unknown; the message lists the known names.
        """
        i, j = _index("output", output, self.outputs), _index("input", input, self.inputs)
        derivative = integer("derivative", derivative, low=0, high=2)
        return self.values[:, i, j] * (2j * np.pi * self.frequencies) ** derivative

    def receptance(self, *names: str) -> ComplexArray:
        """Return the motions of interfaces and points per unit force at them, shape (nf, k, k).

        Args:
            *names: Names of interfaces (six rows each) and points (three rows each). By default all
                interfaces and points with inputs.

        Raises:
            InputError: A name is not both an input and an output.
        """
        for name in names:
            checked_name("every name", name)
        selected = names or tuple(dict.fromkeys(n.rpartition(" ")[0] for n in self.inputs))
        rows: list[int] = []
        columns: list[int] = []
        for name in selected:
            count = sum(output.rpartition(" ")[0] == name for output in self.outputs)
            # At least three, so that `_index` raises an error for an unknown name
            for motion, force in zip(MOTIONS[: max(3, count)], FORCES, strict=False):
                rows.append(_index("output", f"{name} {motion}", self.outputs))
                columns.append(_index("input", f"{name} {force}", self.inputs))
        return self.values[np.ix_(range(len(self.values)), rows, columns)]

    def dynamic_stiffness(self, *names: str) -> ComplexArray:
        """Return the forces per motion at some interfaces and points, shape (nf, k, k).

        The result is the inverse of `receptance`; no forces act at the other interfaces and points.

        Args:
            *names: Names of interfaces and points as for `receptance`.

        Raises:
            InputError: A name is not both an input and an output, or the motions are not
                independent: the body has fewer modes than there are motions at the named places, or
                it is plane and several interfaces are named.
        """
        H = self.receptance(*names)
        size = np.sqrt(np.abs(np.einsum("fii->fi", H)))
        size = np.where(size > 0, size, 1.0)
        scaled = H / (size[:, :, None] * size[:, None, :])
        if len(H) and np.linalg.cond(scaled).max() > _MAX_CONDITION:
            reject("names", names, _INDEPENDENT_MOTIONS)
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
    """Return the steady response of a body to unit harmonic wrenches or unit motions of its base.

    A body that is not held is free: at low frequencies it moves as a rigid body with the response
    −1/(mω²). Damping does not change this response. With `spin`, the axes of the body rotate
    steadily: the interfaces in `held` rotate with them, or, if no interface is held, the body frame
    follows the prescribed rotation. Amplitudes are then relative to the steady state in the
    rotating axes.

    Args:
        body: A reduced body with its damping matrix.
        frequencies: Frequencies, shape (nf,), Hz; positive if the body is free.
        held: Names of interfaces that are fixed, or that rotate steadily with `spin`.
        driven: Names of interfaces with prescribed motion; not together with `spin`.
        inputs: Names of interfaces and points at which unit forces act. By default all that are not
            held, or none if interfaces are driven.
        outputs: Names of interfaces and points whose motion is computed. By default all that are
            not held.
        loss_factor: Loss factor η of structural damping: the elastic stiffness is K_e (1 + iη).
        spin: Steady angular velocity in body axes, shape (3,), rad/s. By default zero.
        about: A point on the axis of rotation, shape (3,), m, or the name of an interface. By
            default the first held interface.
        stiffening: Whether to include geometric stiffness, by default if the body has it.

    Raises:
        InputError: A name is unknown, an option does not fit the others, or a frequency is an
            undamped resonance.

    Example:
        >>> response = mbd.body.frequency_response(body, [0.0], held=["left"])
        >>> static = response.between("right ux", "right fx")[0].real
        >>> f"{static:.1e} m/N"
        '8.0e-07 m/N'
    """
    instance("body", body, ReducedBody)
    f = np.atleast_1d(array("frequencies", frequencies))
    if f.ndim != 1 or (f < 0).any():
        reject("frequencies", frequencies, "a list of numbers of at least 0 in Hz")
    loss_factor = number("loss_factor", loss_factor, low=0.0)
    base, fixed = name_list("driven", driven), name_list("held", held)
    if set(base) & set(fixed):
        reject("driven", base, f"interfaces that are not held ({', '.join(fixed)})")
    if base and spin is not None:
        reject("spin", spin, "None, because driven interfaces require a body that does not rotate")
    if not (base or fixed or spin is not None) and (f == 0).any():
        reject("frequencies", frequencies, "positive for a free body (or hold an interface)")
    system = linearize_body(body, held=fixed, spin=spin, about=about, stiffening=stiffening)
    places = [i.name for i in body.interfaces if i.name not in fixed]
    places += [p.name for p in body.points]
    output_names = places if outputs is None else name_list("outputs", outputs)
    input_names = name_list("inputs", inputs) if inputs is not None else [] if base else places
    rows, row_names = _maps(body, output_names, MOTIONS)
    columns, column_names = _maps(body, input_names, FORCES)
    base_rows, base_names = _maps(body, [body.interface(name).name for name in base], MOTIONS)
    column_names += base_names
    rows, columns, base_rows = (part @ system.basis for part in (rows, columns, base_rows))
    H = _solve(system, f, loss_factor, rows, columns, base_rows, base)
    return FrequencyResponse(f, row_names, column_names, H, body.name)


def _solve(
    system: LinearizedBody,
    f: Array,
    loss_factor: float,
    rows: Array,
    loads: Array,
    base_rows: Array,
    driven: list[str],
) -> ComplexArray:
    """Return the outputs for unit inputs, shape (nf, outputs, loads + base motions).

    The matrices map the coordinates of `system` to motions: `rows` to the outputs, `loads` to the
    motions on which unit loads do work, and `base_rows` to the motions of the `driven` interfaces.
    """
    m = len(system.mass)
    scale = 1 / np.sqrt(np.diag(system.mass))  # to coordinates of unit mass
    complex_stiffness = system.stiffness + 1j * loss_factor * system.elastic
    K: Any = scale[:, None] * complex_stiffness * scale
    C: Any = scale[:, None] * (system.damping + system.gyroscopic) * scale
    M: Any = scale[:, None] * system.mass * scale
    rows, loads, base_rows = rows * scale, loads * scale, base_rows * scale
    # The coordinates are free @ y + base @ (unit motions of the base)
    free: Array = np.eye(m)
    base: Any = np.zeros((m, 0))
    if len(base_rows):
        free, base = (
            null_space(base_rows, np.eye(m)),
            np.linalg.pinv(base_rows, rcond=_MOTION_TOLERANCE),
        )
        if not np.allclose(base_rows @ base, np.eye(len(base_rows)), atol=_MOTION_TOLERANCE):
            reject("driven", driven, _INDEPENDENT_MOTIONS)
    count = free.shape[1]
    H = np.empty((len(f), len(rows), len(loads) + len(base_rows)), dtype=complex)
    chunk = max(1, _CHUNK_ENTRIES // max(1, m * m))  # number of frequencies
    for start in range(0, len(f), chunk):
        w = 2 * np.pi * f[start : start + chunk, None, None]
        Z = K + 1j * w * C - w**2 * M
        rhs = np.empty((len(w), count, H.shape[2]), dtype=complex)
        rhs[:, :, : len(loads)] = free.T @ loads.T
        rhs[:, :, len(loads) :] = -free.T @ Z @ base
        try:
            y = np.linalg.solve(free.T @ Z @ free, rhs)
        except np.linalg.LinAlgError as error:
            text = (
                f"a frequency between {f[start]:g} and {f[start:][:chunk][-1]:g} Hz is an undamped "
                "resonance: give the body damping (with_damping) or a loss factor"
            )
            expected = "frequencies that are not undamped resonances"
            raise InputError(text, argument="frequencies", value=f, expected=expected) from error
        H[start : start + chunk] = (rows @ free) @ y
        H[start : start + chunk, :, len(loads) :] += rows @ base
    return H


def _maps(
    body: ReducedBody, names: Sequence[str], components: Sequence[str]
) -> tuple[Array, tuple[str, ...]]:
    """Return the matrix from z to motions of interfaces and points, and the names of its rows."""
    interfaces = {i.name for i in body.interfaces}
    points = {p.name for p in body.points} - interfaces
    rows: list[Array] = [np.zeros((0, 6 + body.num_modes))]
    labels: list[str] = []
    for name in names:
        if name not in interfaces | points:
            valid_names = [*sorted(interfaces), *sorted(points)]
            unknown("interface or point", name, valid_names, f"body {body.name!r} has")
        block = interface_map(body, name) if name in interfaces else point_map(body, name)
        rows.append(block)
        labels += [f"{name} {c}" for c in components[: len(block)]]
    return np.vstack(rows), tuple(labels)


def _index(kind: str, name: str, names: Sequence[str]) -> int:
    """Return the index of an output or input; an error lists the known names."""
    if isinstance(name, str) and name in names:
        return names.index(name)
    unknown(kind, name, names, "this response has")
