"""Derivatives of poles, modes and frequency responses of a mechanism with respect to parameters.

`SteadyMotions` provides the matrices A, B, C, D of the state space ẋ = A x + B u, y = C x + D u as
smooth functions of the parameters. A prime denotes their central difference of sixth order. With
the left and right eigenvectors L, R of equal poles, LᴴR = I, and with S = (sI − A)⁻¹,

    λ′ are the eigenvalues of LᴴA′R,   (C S B + D)′ = C′ S B + C S A′ S B + C S B′ + D′.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.analyses.equilibrium import equilibrium
from dolfinx_mbd.analyses.linearization import linearize
from dolfinx_mbd.analyses.linearized_system import LinearizedSystem
from dolfinx_mbd.analyses.state_space import OFFSETS, derivative
from dolfinx_mbd.checks import array, function, instance, integer
from dolfinx_mbd.design.runs.eigenspaces import (
    Eigenspace,
    count_zeros,
    eigenspaces,
    pole_slopes,
)
from dolfinx_mbd.design.runs.parameter_terms import checked_steps, checked_values
from dolfinx_mbd.design.runs.steady_motions import Matrices, SteadyMotions
from dolfinx_mbd.errors import AccuracyWarning, InputError, warn
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.outputs import Outputs, Requests

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_STEP = 1e-3  # step of differences, relative to the parameter
# Sixth difference at `OFFSETS`; it vanishes for smooth functions and amplifies round-off
_EVEN: Array = np.array([15.0, -6.0, 1.0, 15.0, -6.0, 1.0])
_AMPLIFICATION = 30.0  # ratio of its round-off to that of the derivative of unit step
_LARGEST_ERROR, _ERROR_LIMIT = 1e-2, 1e-6  # relative errors: not differentiable, inaccurate
_RESONANCE = 1e-9  # smallest distance of an excitation from a pole, relative to the pole


@dataclass(frozen=True, eq=False)
class LinearSensitivities:
    """A linearization with the derivatives of its poles, modes and frequency responses.

    Attributes:
        linearization: The linearization at the given values.
        values: Values of the parameters by name.
        poles: Derivatives of `linearization.poles` by the names of the parameters, shape (p,) each.
            Those of a multiple pole are the derivatives of its branches, by increasing imaginary
            part, or real part if that is larger. NaN if a pole has no derivative.

    Example:
        >>> def swing(p):
        ...     frames = {"pin": mbd.Frame((0, p["length"], 0))}
        ...     ball = mbd.RigidBody(
        ...         "ball", 2.0, [1e-9] * 3, position=(0, -p["length"], 0), frames=frames
        ...     )
        ...     pin = mbd.revolute("pin", ground.frame("pin"), ball.frame("pin"))
        ...     return mbd.System([ground, ball], [pin], gravity=(0, -9.81, 0))
        >>> result = mbd.design.linear_sensitivities(swing, {"length": 0.5})
        >>> print(result.linearization.frequencies.round(3))
        [0.705]
        >>> print(result.frequencies["length"].round(3))  # −f/(2 length)
        [-0.705]
    """

    linearization: LinearizedSystem
    values: Mapping[str, float]
    poles: Mapping[str, Complex]
    _base: Matrices
    _changes: Mapping[str, Matrices]
    _spaces: Sequence[Eigenspace | None]

    __repr__ = short_repr

    @property
    def frequencies(self) -> dict[str, Array]:
        """Derivatives of the frequencies |λ|/2π by parameter, shape (p,) each, Hz."""
        poles = self.linearization.poles
        direction = poles.conj() / np.maximum(np.abs(poles), 1e-300)
        return {k: (direction * slope).real / (2 * np.pi) for k, slope in self.poles.items()}

    @property
    def damping_ratios(self) -> dict[str, Array]:
        """Derivatives of the damping ratios −Re λ/|λ| by parameter, shape (p,) each."""
        poles = self.linearization.poles
        size = np.maximum(np.abs(poles), 1e-300)
        direction = poles / size
        turned = {k: (slope * direction.conj()).imag for k, slope in self.poles.items()}
        return {k: direction.imag * turn / size for k, turn in turned.items()}

    def mode(self, body: str, number: int) -> dict[str, Complex]:
        """Return the derivatives of the mode of a body by parameter; see `LinearizedSystem.mode`.

        The largest component of the mode of the mechanism remains 1.

        Args:
            body: Name of the body.
            number: Number of the mode, starting at 1.

        Returns:
            Shape (6+n,) for each parameter.

        Raises:
            InputError: The body or the mode does not exist, or its pole is zero or multiple.
        """
        linear = self.linearization
        part = linear.system.v_slices[linear.system.body_index(body)]
        k = integer("number", number, low=1, high=linear.modes.shape[1]) - 1
        space = self._spaces[k]
        if space is None or len(space.left) > 1:
            text = f"pole {number} is zero or multiple, and its mode has no derivative"
            raise InputError(text, argument="number", value=number)
        state_matrix, *_, basis = self._base
        A = state_matrix * space.scale
        x, m = space.right, len(A) // 2
        largest = int(np.abs(linear.modes[:, k]).argmax())
        bordered = np.block(
            [[A - linear.poles[k] * np.eye(2 * m), x], [x.conj().T, np.zeros((1, 1))]]
        )
        unit, derivatives = (basis @ x[:m, 0])[largest], {}
        for name, (by_state, *_, change) in self._changes.items():
            right = np.append(-(by_state * space.scale) @ x[:, 0], 0.0)
            slope = change @ x[:m, 0] + basis @ np.linalg.solve(bordered, right)[:m]
            slope = (slope - linear.modes[:, k] * slope[largest]) / unit
            derivatives[name] = slope[part]
        return derivatives

    def response(self, frequencies: ArrayLike) -> dict[str, Complex]:
        """Return the derivatives of `LinearizedSystem.response` by parameter.

        Args:
            frequencies: Frequencies, shape (nf,), Hz.

        Returns:
            Shape (nf, ny, nu) for each parameter.

        Raises:
            InputError: The linearization has no inputs or no outputs, or a frequency is that of an
                undamped pole.
        """
        self.linearization.state_space()
        f = np.asarray(array("frequencies", frequencies, (None,)))
        s, poles = 2j * np.pi * f[:, None], self.linearization.poles
        near = np.abs(np.abs(s) * 1j - poles) <= _RESONANCE * np.abs(poles)
        if near.any():
            row, pole = np.argwhere(near)[0]
            text = (
                f"the response at {f[row]:g} Hz is infinite: it is the frequency of the undamped "
                f"pole {pole + 1}"
            )
            raise InputError(text, argument="frequencies", value=frequencies)
        A, B, C, *_ = self._base
        Z = s[:, :, None] * np.eye(len(A)) - A
        x = np.linalg.solve(Z, np.tile(B, (len(f), 1, 1)))
        y = np.linalg.solve(Z.transpose(0, 2, 1), np.tile(C.T, (len(f), 1, 1))).transpose(0, 2, 1)
        return {k: c @ x + y @ (a @ x + b) + d for k, (a, b, c, d, _) in self._changes.items()}


def linear_sensitivities(
    build: Callable[[Mapping[str, float]], System],
    values: Mapping[str, float],
    *,
    state: Callable[[System], State] | None = None,
    axes: Literal["auto", "body", "global"] | ArrayLike = "auto",
    inputs: Sequence[str] = (),
    outputs: Requests | None = None,
    steps: Mapping[str, float] | None = None,
) -> LinearSensitivities:
    """Linearize a mechanism, and differentiate the linearization with respect to parameters.

    The equilibrium or steady motion changes with the parameters, and the derivatives include its
    effect. For reduced bodies that change, `build` may call
    `table.at(values, own_modes=False)` of `sensitivities`.

    Args:
        build: Function that returns the mechanism for values by name, as for `run_sensitivities`.
            All mechanisms must have the same bodies and joints.
        values: Values of the parameters by name.
        state: Function that returns an equilibrium or a state of the steady motion of a mechanism,
            for example `consistent_state` for a rotor with an initial angular velocity. By default
            it is the equilibrium that is found from the initial positions, and for changed
            parameters the equilibrium near it.
        axes: Axes in which the coefficients are constant, see `linearize`.
        inputs: Names of the inputs of frequency responses, as for `linearize`.
        outputs: Outputs of frequency responses, as for `linearize`.
        steps: Steps of the differences by parameter, by default 1e-3 of the value; required for
            parameters with the value zero.

    Returns:
        The linearization and its derivatives.

    Warns:
        AccuracyWarning: A pole has no derivative, or its derivative is inaccurate.

    Raises:
        InputError: A value is not finite, a step is missing, `build` returns mechanisms of
            different sizes, a load has states, or the mechanism is not a smooth function of a
            parameter.
        SteadyError: A state is neither an equilibrium nor part of a steady motion.

    Example:
        >>> def hanging(p):
        ...     frames = {"top": mbd.Frame()}
        ...     weight = mbd.RigidBody("bob", 2.0, [0.1] * 3, position=(0, -1, 0), frames=frames)
        ...     ends = ground.frame("pin"), weight.frame("top")
        ...     spring = mbd.JointSpring("spring", "slide", stiffness=p["k"], damping=p["c"])
        ...     slide = mbd.prismatic("slide", *ends)
        ...     return mbd.System([ground, weight], [slide], loads=[spring])
        >>> result = mbd.design.linear_sensitivities(hanging, {"k": 800.0, "c": 4.0})
        >>> print(result.damping_ratios["c"], "per N s/m")  # 1/(2√(km))
        [0.0125] per N s/m
    """
    function("build", build, "build(values)")
    if state is not None:
        function("state", state, "state(system)")
    values = checked_values(values)
    sizes = checked_steps(values, steps, _STEP)
    system = instance("build(values)", build(dict(values)), System)
    system.check_no_states("linear_sensitivities")
    first = equilibrium(system) if state is None else state(system)
    linear = linearize(system, first, axes=axes, inputs=inputs, outputs=outputs)
    spin = np.zeros(3) if isinstance(axes, str) else np.asarray(axes, dtype=float)
    steady = SteadyMotions(linear, spin, state, Outputs(outputs))
    base = steady.matrices(system)
    spaces = eigenspaces(base[0], linear.poles)
    changes: dict[str, Matrices] = {}
    slopes: dict[str, Complex] = {}
    for name, value in values.items():
        step = sizes[name]
        offsets = [value + step * float(k) for k in OFFSETS]
        points = [steady.matrices(build({**values, name: x})) for x in offsets]
        parts: list[Array] = [np.array(part) for part in zip(*points, strict=True)]
        changes[name] = tuple(np.asarray(derivative(part) / step) for part in parts)
        slopes[name] = pole_slopes(changes[name][0], spaces)
        lost = [k for k, pole in enumerate(linear.poles) if spaces[k] is None and pole != 0]
        if any(count_zeros(A) != count_zeros(base[0]) for A in parts[0]):
            lost += [k for k, pole in enumerate(linear.poles) if pole == 0]
        slopes[name][lost] = np.nan
        even = np.tensordot(_EVEN, parts[0] - base[0], 1)
        remainder = np.asarray(even / (_AMPLIFICATION * step), dtype=float)
        scale = np.fmax(np.abs(slopes[name]), _STEP * np.abs(linear.poles) / step)
        errors = np.abs(pole_slopes(remainder, spaces)) / np.maximum(scale, 1e-300)
        _check(name, lost, float(errors.max(initial=0.0)))
    return LinearSensitivities(linear, dict(values), slopes, base, changes, spaces)


def _check(name: str, lost: list[int], error: float) -> None:
    """Warn of poles without derivatives and of inaccurate derivatives, or raise an error."""
    if lost:
        numbers = ", ".join(str(k + 1) for k in sorted(lost))
        text = f"pole {numbers} has no derivative with respect to {name!r} (NaN): it is zero or "
        warn(AccuracyWarning(f"{text}defective, and splits when {name!r} changes"))
    text = f"relative error of the derivatives with respect to {name!r}"
    if error > _LARGEST_ERROR:
        raise InputError(
            f"the estimated {text} is {error:.1e}: the mechanism, its state or the coordinates of "
            "a body are not smooth functions of the parameter (see the argument own_modes of "
            "BodySensitivities.at)",
            argument="build",
        )
    if error > _ERROR_LIMIT:
        words = f"the estimated {text} is {error:.1e}"
        warn(AccuracyWarning(words, quantity=text, value=error, limit=_ERROR_LIMIT))
