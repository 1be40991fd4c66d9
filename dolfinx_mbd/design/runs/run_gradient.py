"""Gradients of functionals of a run with respect to many parameters, by the discrete adjoint.

The adjoint equations are the transposes of the linear equations of the steps (`step_equations`), in
reverse order. One pass computes the derivatives with respect to all parameters. If the states need
too much memory, only checkpoints are saved, and the states between them are computed again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from dolfinx_mbd.analyses.simulator import one_blas_thread
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import instance, integer, reject
from dolfinx_mbd.design.runs.functionals import Functional, evaluate
from dolfinx_mbd.design.runs.output_derivatives import OutputDerivatives
from dolfinx_mbd.design.runs.parameter_terms import (
    Build,
    ParameterTerms,
    checked_rates,
    checked_times,
)
from dolfinx_mbd.dynamics.start.consistent_state import consistent_state
from dolfinx_mbd.dynamics.stepping.integrators import Stepper
from dolfinx_mbd.dynamics.stepping.step_equations import StepEquations
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.motions import check_drivers
from dolfinx_mbd.mechanism.system import State
from dolfinx_mbd.time_integration import GeneralizedAlpha

_MAX_BYTES = 2**28  # bytes of states that are saved without recomputation
_SEGMENT = 64  # number of steps between checkpoints if all states are saved


@dataclass(frozen=True, eq=False)
class RunGradient:
    """A functional of a run and its derivatives.

    Attributes:
        value: Value of the functional.
        gradient: Derivatives of the value by the names of the parameters.
        time: Times of the steps, (nt,), s.
        output: Output of the functional over time, (nt,).

    Example:
        >>> def swing(p):
        ...     frames = {"pin": mbd.Frame((0, 0.5, 0))}
        ...     bob = mbd.RigidBody(
        ...         "bob", p["mass"], [0.01] * 3, position=(0, -0.5, 0), frames=frames
        ...     )
        ...     pin = mbd.revolute("pin", ground.frame("pin"), bob.frame("pin"))
        ...     return mbd.System([ground, bob], [pin], gravity=(0, -9.81, 0))
        >>> load = mbd.design.Functional("pin.force.y", "mean")
        >>> result = mbd.design.run_gradient(swing, {"mass": 2.0}, load, t_end=0.1, dt=0.01)
        >>> print(f"{result.value:.2f} N, {result.gradient['mass']:.3f} N/kg")
        19.62 N, 9.810 N/kg
    """

    value: float
    gradient: Mapping[str, float]
    time: Array = field(repr=False)
    output: Array = field(repr=False)

    __repr__ = short_repr


@overload
def run_gradient(
    build: Build,
    values: Mapping[str, float],
    functional: Functional,
    *,
    t_end: float,
    dt: float,
    method: GeneralizedAlpha | None = None,
    tolerance: float = 1e-8,
    start: Mapping[str, float] | None = None,
    steps: Mapping[str, float] | None = None,
    checkpoints: int | None = None,
) -> RunGradient: ...


@overload
def run_gradient(
    build: Build,
    values: Mapping[str, float],
    functional: Mapping[str, Functional],
    *,
    t_end: float,
    dt: float,
    method: GeneralizedAlpha | None = None,
    tolerance: float = 1e-8,
    start: Mapping[str, float] | None = None,
    steps: Mapping[str, float] | None = None,
    checkpoints: int | None = None,
) -> dict[str, RunGradient]: ...


@one_blas_thread()
def run_gradient(
    build: Build,
    values: Mapping[str, float],
    functional: Functional | Mapping[str, Functional],
    *,
    t_end: float,
    dt: float,
    method: GeneralizedAlpha | None = None,
    tolerance: float = 1e-8,
    start: Mapping[str, float] | None = None,
    steps: Mapping[str, float] | None = None,
    checkpoints: int | None = None,
) -> RunGradient | dict[str, RunGradient]:
    """Simulate a mechanism, and compute the gradient of a functional by the discrete adjoint.

    The gradient is that of the computed run. It equals the result of `run_sensitivities` within the
    tolerance of both runs, but the work hardly grows with the number of parameters.

    Args:
        build: Function that returns the mechanism for values by name. All mechanisms must have the
            same bodies, joints and loads.
        values: Values of the parameters by name.
        functional: The functional, or several functionals by name, which share the simulation.
        t_end: End time, s.
        dt: Time step, s, adjusted so that a whole number of steps fits.
        method: Generalized-α method; by default with ρ∞ = 0.8.
        tolerance: Tolerance of Newton's method; see `Stepper`.
        start: Rates of joints at t = 0 by name, as in `simulate`.
        steps: Steps of the differences of the equations by name of the parameter; by default 1e-4
            of the value. A parameter with the value 0 needs a step.
        checkpoints: Number of checkpoints, from which the states are computed again. By default all
            states are saved if they need at most 256 MB; otherwise √N checkpoints for N steps.

    Returns:
        Value and gradient, or a dictionary of them by the names of the functionals.

    Raises:
        InputError: A value is zero and has no step, `build` returns mechanisms of different sizes,
            the output is not a single number or depends on other times, the mechanism is not a
            smooth function of a parameter, a load jumps at a time that depends on the motion or on
            a parameter, or the mechanism has contacts, end stops or constraints on velocities only,
            such as those of `rolling_ball`.
        StepError: A step does not converge.

    Warns:
        AccuracyWarning: A load has a small jump, at most 1 % of its largest value, or a step of the
            differences is too long.

    Example:
        >>> def hanging(p):
        ...     frames = {"top": mbd.Frame()}
        ...     weight = mbd.RigidBody("bob", 2.0, [0.1] * 3, position=(0, -1, 0), frames=frames)
        ...     ends = ground.frame("pin"), weight.frame("top")
        ...     spring = mbd.SpringDamper("spring", *ends, p["k"], length=1.0)
        ...     return mbd.System([ground, weight], loads=[spring], gravity=(0, -9.81, 0))
        >>> height = mbd.design.Functional("bob.position.y", "final")
        >>> result = mbd.design.run_gradient(hanging, {"k": 800.0}, height, t_end=0.05, dt=1e-3)
        >>> print(f"{result.gradient['k']:.3e} m per N/m")
        1.195e-06 m per N/m
    """
    several = isinstance(functional, Mapping)
    functionals = (
        dict(functional) if isinstance(functional, Mapping) else {"functional": functional}
    )
    if not functionals:
        reject("functional", functional, "a Functional, or a mapping from names to Functionals")
    for name, item in functionals.items():
        instance(f"functional[{name!r}]" if several else "functional", item, Functional)
    dt, count = checked_times(t_end, dt, 40.0 * len(functionals))  # about 40 bytes for each output
    start = checked_rates(start)
    if checkpoints is not None:
        checkpoints = integer("checkpoints", checkpoints, low=1)
    terms = ParameterTerms(build, values, steps)
    check_drivers(terms.system, 0.0, t_end)
    stepper = Stepper(terms.system, method, tolerance=tolerance)
    history = _History(stepper, dt, count, start, checkpoints)
    outputs = [OutputDerivatives(terms, f.output, history.first) for f in functionals.values()]
    series = history.simulate(outputs, terms)
    items = list(zip(functionals.values(), series, strict=True))
    results = [evaluate(f, history.time, y) for f, y in items]
    slopes = np.array([slope for _, slope in results])
    table = _adjoint(terms, history, outputs, slopes, start)
    gradients = {
        name: RunGradient(
            value, dict(zip(terms.values, column.tolist(), strict=True)), history.time, y
        )
        for name, (value, _), column, y in zip(functionals, results, table.T, series, strict=True)
    }
    return gradients if several else gradients["functional"]


class _History:
    """States of a run in segments; if they need too much memory, only the first of each segment."""

    def __init__(
        self,
        stepper: Stepper,
        dt: float,
        count: int,
        start: Mapping[str, float] | None,
        checkpoints: int | None,
    ) -> None:
        self.stepper, self.dt = stepper, dt
        self.first = stepper.begin(consistent_state(stepper.system, rates=start), dt)
        first = self.first
        # Numbers of 8 bytes: q, v, a, algorithmic accelerations, multipliers and joint rotations
        state_bytes = 8 * (len(first.q) + 3 * len(first.v) + len(first.lam) + len(first.angles))
        self._saves_all = checkpoints is None and count * state_bytes <= _MAX_BYTES
        num_segments = checkpoints or math.ceil(math.sqrt(count))
        length = _SEGMENT if self._saves_all else math.ceil(count / num_segments)
        self.time: Array = np.array([k * dt for k in range(count + 1)])
        self.segments = [range(k, min(k + length, count)) for k in range(0, count, length)]
        self._saved: list[list[State]] = []
        self._memory: list[dict[str, Any]] = []
        self._corrections = np.zeros(count, dtype=np.int32)  # Newton corrections of each step
        self._keeps = np.zeros(count, dtype=bool)  # whether the factorization is kept after it

    def simulate(self, outputs: list[OutputDerivatives], terms: ParameterTerms) -> list[Array]:
        """Take all steps, save the checkpoints, and return each output over time (nt,).

        Raise an error if a load jumps at a time that depends on the motion or on a parameter.
        """
        columns, state = [[output.values([self.first]) for output in outputs]], self.first
        for steps in self.segments:
            self._memory.append({} if self._saves_all else self.stepper.memory())
            states = self._advance(state, steps)
            terms.check_jumps(states)
            columns.append([output.values(states[1:]) for output in outputs])
            self._saved.append(states if self._saves_all else states[:1])
            state = states[-1]
        return [np.concatenate(parts, dtype=float) for parts in zip(*columns, strict=True)]

    def states(self, segment: int) -> list[State]:
        """Return the states of a segment, including the state before its first step.

        The repeated steps from a checkpoint give bitwise identical states.
        """
        states = self._saved[segment]
        if not self._saves_all:
            self.stepper.restore(self._memory[segment])
            states = states[:1]
            for k in self.segments[segment]:
                record = int(self._corrections[k]), bool(self._keeps[k])
                states.append(self.stepper.repeat(states[-1], self.dt, *record))
        return states

    def _advance(self, state: State, steps: range) -> list[State]:
        """Return a state and those after the given steps; record the corrections of each step."""
        states, stepper = [state], self.stepper
        for k in steps:
            before = stepper.iterations
            states.append(stepper.step(states[-1], self.dt))
            self._corrections[k] = stepper.iterations - before
            self._keeps[k] = stepper.has_factor
        return states


def _adjoint(
    terms: ParameterTerms,
    history: _History,
    outputs: list[OutputDerivatives],
    slopes: Array,
    start: Mapping[str, float] | None,
) -> Array:
    """Return the gradients (parameters, functionals).

    `slopes` (functionals, nt) contains the derivatives of the functionals with respect to outputs.
    """
    nv, nc, count = terms.system.num_velocities, terms.system.num_constraints, len(outputs)
    # y: derivatives of the functionals by q, v, a and w of a state, from the steps after it
    gradient, y = np.zeros((len(terms.values), count)), np.zeros((4, nv, count))
    equations = StepEquations(history.stepper, history.dt, adjoint=True)
    for segment in reversed(range(len(history.segments))):
        states, steps = history.states(segment), history.segments[segment]
        rows, values = np.zeros((len(steps), nv, count)), np.zeros((len(steps), nc, count))
        inputs, multipliers = _by_states(outputs, states[1:], slopes[:, steps.start + 1 :])
        gradient += _by_parameters(outputs, states[1:], slopes[:, steps.start + 1 :])
        for k in reversed(range(len(steps))):
            y[:3] += inputs[k]
            equations.linearize(states[k], states[k + 1])
            y, rows[k], values[k] = equations.backward(y, multipliers[k])
        gradient += terms.products(states[1:], rows, values)
    inputs, multipliers = _by_states(outputs, [history.first], slopes)
    gradient += _by_parameters(outputs, [history.first], slopes)
    # x: derivatives of the first q, v, a and algorithmic accelerations. The first step uses the
    # velocities in the memory of the method instead of v; `velocity` contains their derivatives.
    x, lam, velocity = terms.start(history.first, history.stepper, history.dt, start)
    for derivatives, adjoint in (
        (x[:3], inputs[0]),
        (lam[None], multipliers[0][None]),
        (np.array([x[0], velocity, *x[2:]]), y),
    ):
        gradient += np.einsum("inp,inf->pf", derivatives, adjoint)
    return gradient


def _by_states(
    outputs: list[OutputDerivatives], states: list[State], slopes: Array
) -> tuple[Array, Array]:
    """Return derivatives of functionals with respect to states (nt, 3, nv, ·) and λ (nt, nc, ·)."""
    inputs, multipliers = [], []
    for output, weights in zip(outputs, slopes, strict=True):
        d, weight = output.by_state(states), weights[: len(states), None]
        inputs.append(np.array([d.q, d.v, d.a]) * weight)
        multipliers.append(d.lam * weight)
    return np.array(inputs).transpose(2, 1, 3, 0), np.array(multipliers).transpose(1, 2, 0)


def _by_parameters(outputs: list[OutputDerivatives], states: list[State], slopes: Array) -> Array:
    """Return derivatives of functionals with respect to the parameters alone, (parameters, ·)."""
    pairs = zip(outputs, slopes, strict=True)
    return np.array([s[: len(states)] @ output.by_parameters(states) for output, s in pairs]).T
