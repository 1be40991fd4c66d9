"""Derivatives of a simulation with respect to parameters of the mechanism.

The derivatives of the results of each step solve a linear system with the exact tangent of the
step; see `step_equations`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.analyses.simulator import one_blas_thread
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, function, instance, integer
from dolfinx_mbd.design.runs.mechanism_changes import (
    FACTORS,
    FOURTH_ORDER,
    central_difference,
)
from dolfinx_mbd.design.runs.parameter_terms import (
    Build,
    ParameterTerms,
    checked_rates,
    checked_times,
)
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.start.consistent_state import consistent_state
from dolfinx_mbd.dynamics.stepping.integrators import Stepper
from dolfinx_mbd.dynamics.stepping.step_equations import StepEquations
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.motions import check_drivers
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.saved_states import SavedStates
from dolfinx_mbd.results.solution import Solution, solution_of
from dolfinx_mbd.time_integration import GeneralizedAlpha

# Largest increment of a parameter in a difference quotient of outputs, relative to the increment in
# difference quotients of the equations of motion
OUTPUT_INCREMENT = 100.0
LARGEST_MOVE = 1e-3  # largest increment of a coordinate in a difference of outputs, m or rad
INCREMENT_FRACTIONS = (1.0, 1 / 4, 1 / 16, 1 / 64)  # of the largest increment, tried in this order
ORDER_TOLERANCE = 1e-2  # accepted relative difference between quotients of second and fourth order
BLOCK = 64  # number of steps whose terms of the parameters or loads are computed together


@dataclass(frozen=True, eq=False)
class RunSensitivities:
    """A simulation with its derivatives with respect to parameters.

    Attributes:
        run: The simulation at the given values.
        values: Values of the parameters by name.
        increments: Derivatives of the coordinates as increments: translations in global
            components, rotation vectors in body components, elastic coordinates, shape
            (nt, nv, parameters).

    Example:
        >>> def swing(p):
        ...     frames = {"pin": mbd.Frame((0, 0.5, 0))}
        ...     bob = mbd.RigidBody(
        ...         "bob", p["mass"], [0.01] * 3, position=(0, -0.5, 0), frames=frames
        ...     )
        ...     pin = mbd.revolute("pin", ground.frame("pin"), bob.frame("pin"))
        ...     return mbd.System([ground, bob], [pin], gravity=(0, -9.81, 0))
        >>> result = mbd.run_sensitivities(swing, {"mass": 2.0}, t_end=0.1, dt=0.01)
        >>> force = result.derivative(lambda run: run.joint("pin").force[-1, 1])["mass"]
        >>> print(f"{force:.3f} N/kg")
        9.810 N/kg
    """

    run: Solution
    values: Mapping[str, float]
    increments: Array
    _neighbours: _Neighbours = field(repr=False)

    __repr__ = short_repr

    def derivative(self, output: Callable[[Solution], ArrayLike]) -> dict[str, Any]:
        """Return the derivatives of a result as a mapping from names of parameters.

        Args:
            output: Function that returns a number or an array for a simulation, for example
                ``lambda run: run.joint("pin").force``.

        Returns:
            Derivatives of the shape of the output, per unit of each parameter.

        Raises:
            InputError: The output is not a function.
        """
        function("output", output, "output(run)")
        return {name: self._derivative(name, output) for name in self.values}

    def _derivative(self, name: str, output: Callable[[Solution], ArrayLike]) -> Array:
        """Return the difference of fourth order with the step whose error is smallest.

        A smaller step is tried only if the largest one is too long for the output.
        """
        results: list[tuple[float, Array]] = []
        for fraction in INCREMENT_FRACTIONS:
            step, runs = self._neighbours.of(name, fraction)
            values = {factor: array("output(run)", output(run)) for factor, run in runs.items()}
            slope = central_difference(values, step)
            remainder = slope - central_difference({k: values[k] for k in FACTORS}, step)
            largest = float(np.abs(slope).max(initial=0.0))
            error = float(np.abs(remainder).max(initial=0.0)) / max(largest, 1e-300)
            results.append((error, slope))
            if error <= ORDER_TOLERANCE:
                break
        return min(results, key=lambda pair: pair[0])[1]


@one_blas_thread()
def run_sensitivities(
    build: Build,
    values: Mapping[str, float],
    *,
    t_end: float,
    dt: float,
    method: GeneralizedAlpha | None = None,
    tolerance: float = 1e-8,
    start: Mapping[str, float] | None = None,
    stride: int = 1,
    steps: Mapping[str, float] | None = None,
) -> RunSensitivities:
    """Simulate a mechanism, and differentiate the simulation with respect to parameters.

    The derivatives are those of the computed motion, with its errors of time integration. Loads and
    drivers must be smooth functions of the motion and of the parameters. They may jump at fixed
    times.

    Args:
        build: Function that returns the mechanism for values by name. All mechanisms must have the
            same bodies, joints and loads.
        values: Values of the parameters by name.
        t_end: End time, s.
        dt: Time step, s, adjusted so that a whole number of steps fits.
        method: Generalized-α method; by default with ρ∞ = 0.8.
        tolerance: Tolerance of Newton's method; see `Stepper`.
        start: Rates of joints at t = 0 by name, as in `simulate`.
        stride: Number of steps between saved results.
        steps: Steps of the differences of the equations by name of the parameter; by default 1e-4
            of the value. A parameter with the value 0 needs a step.

    Returns:
        The simulation and its derivatives.

    Raises:
        InputError: A value is zero and has no step, `build` returns mechanisms of different sizes,
            the mechanism is not a smooth function of a parameter, a load jumps at a time that
            depends on the motion or on a parameter, or the mechanism has contacts, end stops or
            constraints on velocities only, such as those of `rolling_ball`.
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
        >>> result = mbd.run_sensitivities(hanging, {"k": 800.0}, t_end=0.05, dt=1e-3)
        >>> slope = result.derivative(lambda run: run.body("bob").position[-1, 1])["k"]
        >>> print(f"{slope:.3e} m per N/m")
        1.195e-06 m per N/m
    """
    stride = integer("stride", stride, low=1)
    # about 1000 bytes per saved step and parameter
    size = 1000.0 * len(instance("values", values, Mapping)) / min(stride, sys.maxsize)
    dt, count = checked_times(t_end, dt, size)
    start = checked_rates(start)
    terms = ParameterTerms(build, values, steps)
    check_drivers(terms.system, 0.0, t_end)
    stepper, values = Stepper(terms.system, method, tolerance=tolerance), terms.values
    state = stepper.begin(consistent_state(terms.system, rates=start), dt)
    x, multipliers, velocity = terms.start(state, stepper, dt, start)
    states, derivatives = [state], [(*x[:3], multipliers)]
    # The first step uses the velocities in the memory of the method instead of v
    x = np.array([x[0], velocity, *x[2:]])
    unchecked, loads = [state], list[Array | None]([None])
    equations = StepEquations(stepper, dt, during_run=True)
    for k in range(1, count + 1):
        after = stepper.step(state, dt)
        equations.linearize(state, after)
        loads.append(terms.load_values(stepper.assembler, after.time))
        unchecked.append(state := after)
        if len(unchecked) > BLOCK or k == count:
            terms.check_jumps(unchecked, loads)
            unchecked, loads = unchecked[-1:], loads[-1:]
        (rows,), (misfits,) = terms.equations([state])
        x, multipliers = equations.forward(x, rows, misfits)
        if k % stride == 0 or k == count:
            states.append(state)
            derivatives.append((*x[:3], multipliers))
    run = Solution(
        terms.system,
        states,
        iterations=stepper.iterations,
        factorizations=stepper.factorizations,
    )
    q, v, a, lam = (np.array(part) for part in zip(*derivatives, strict=True))
    return RunSensitivities(run, values, q, _Neighbours(terms, run, (q, v, a, lam)))


def neighbours(
    terms: ParameterTerms, run: Solution, derivatives: tuple[Array, Array, Array, Array]
) -> _Neighbours:
    """Return the runs for changed parameters, from the derivatives of q, v, a and λ."""
    return _Neighbours(terms, run, derivatives)


class _Neighbours:
    """Runs to first order for changed parameters, computed when they are needed."""

    def __init__(
        self, terms: ParameterTerms, run: Solution, derivatives: tuple[Array, ...]
    ) -> None:
        self._terms, self._run, self._derivatives = terms, run, derivatives
        self._runs: dict[tuple[str, float], tuple[float, dict[int, Solution]]] = {}

    def of(self, name: str, fraction: float) -> tuple[float, dict[int, Solution]]:
        """Return a step of a parameter and the runs at its multiples -2, -1, 1 and 2.

        `fraction` is the ratio of the step to the largest one.
        """
        if (name, fraction) not in self._runs:
            terms = self._terms
            k, step = list(terms.values).index(name), terms.steps[name]
            parts = [part[:, :, k] for part in self._derivatives]
            h = LARGEST_MOVE / max(float(np.abs(parts[0]).max()), 1e-300)
            h = fraction * min(OUTPUT_INCREMENT * step, h)
            runs = {
                f: _moved(terms.changed(name, f * h), self._run, parts, f * h) for f in FOURTH_ORDER
            }
            self._runs[name, fraction] = h, runs
        return self._runs[name, fraction]


def _moved(system: System, run: Solution, derivatives: list[Array], step: float) -> Solution:
    """Return the simulation to first order for a change of one parameter.

    `derivatives` contains those of q, v, a and λ, (nt, ·) each.
    """
    q, angles, eqs = np.empty_like(run.q), np.empty_like(run.angles), Assembler(system)
    increments, *others = derivatives
    for k, t in enumerate(map(float, run.time)):
        eqs.angles[:] = run.angles[k]
        eqs.move(run.q[k], step * increments[k])
        eqs.update_poses(t)
        q[k], angles[k] = eqs.q, eqs.frames.joint_rotations()
    v, a, lam = (x + step * d for x, d in zip((run.v, run.a, run.lam), others, strict=True))
    arrays = {"time": run.time, "q": q, "v": v, "a": a, "lam": lam, "angles": angles}
    last = State(*(values[-1] for values in arrays.values()))
    return solution_of(system, SavedStates.of_arrays(system, arrays), last)
