"""Derivatives of a simulation with respect to parameters of the mechanism.

The derivatives of the results of each step solve a linear system with the exact tangent of the
step; see `step_equations`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, function, integer, number
from dolfinx_mbd.checks import memory as check_memory
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.multibody.analyses.simulator import one_blas_thread
from dolfinx_mbd.multibody.assembly.assembler import Assembler
from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.results.solution import Solution
from dolfinx_mbd.multibody.sensitivities.parameter_terms import (
    FOURTH_ORDER,
    Build,
    ParameterTerms,
    checked_steps,
    checked_values,
)
from dolfinx_mbd.multibody.sensitivities.step_equations import StepEquations
from dolfinx_mbd.multibody.start.consistent_state import consistent_state
from dolfinx_mbd.multibody.stepping.integrators import Stepper
from dolfinx_mbd.time_integration import GeneralizedAlpha

OUTPUT_STEP = 10.0  # largest step of differences of outputs, relative to those of the equations
SHORTEST = 1e-12  # shortest time step, s
LARGEST_MOVE = 1e-3  # largest increment of a coordinate in a difference of outputs, m or rad
BLOCK = 64  # number of steps whose terms of the parameters are computed together


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
    _changed: tuple[tuple[tuple[float, Solution], ...], ...]  # weights of runs to first order

    __repr__ = short_repr

    def derivative(self, output: Callable[[Solution], ArrayLike]) -> dict[str, Any]:
        """Return the derivatives of a result by the names of the parameters.

        Args:
            output: Function that returns a number or an array for a simulation, for example
                ``lambda run: run.joint("pin").force``.

        Returns:
            Derivatives of the shape of the output, per unit of each parameter.

        Raises:
            InputError: The output is not a function.
        """
        function("output", output, "output(run)")
        derivatives = {}
        for name, runs in zip(self.values, self._changed, strict=True):
            parts = [weight * array("output(run)", output(run)) for weight, run in runs]
            derivatives[name] = np.sum(parts, axis=0)
        return derivatives


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
    drivers must be smooth functions of time and of the parameters.

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
        steps: Steps of the differences of the equations by name of the parameter; by default 1e-3
            of the value. A parameter with the value 0 needs a step.

    Returns:
        The simulation and its derivatives.

    Raises:
        InputError: A value is zero and has no step, `build` returns mechanisms of different sizes,
            or the mechanism has contacts or end stops.
        StepError: A step does not converge.

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
    function("build", build, "build(values)")
    values = checked_values(values)
    steps_of = checked_steps(values, steps)
    t_end, dt = (number(k, v, low=SHORTEST, unit="s") for k, v in (("t_end", t_end), ("dt", dt)))
    stride = integer("stride", stride, low=1)
    count = max(1, round(t_end / dt))
    dt = t_end / count
    check_memory("t_end", t_end, 1000.0 * len(values) * (count // stride))
    terms = ParameterTerms(build, values, steps_of)
    stepper = Stepper(terms.system, method, tolerance=tolerance)
    state = stepper.begin(consistent_state(terms.system, rates=start), dt)
    x, multipliers, velocity = terms.start(state, stepper, dt, start)
    states, derivatives = [state], [(*x[:3], multipliers)]
    x = np.array([x[0], velocity, *x[2:]])
    equations = StepEquations(stepper, dt)
    for first in range(0, count, BLOCK):
        block = []
        for _ in range(first, min(first + BLOCK, count)):
            block.append(stepper.step(block[-1] if block else state, dt))
        for k, (after, *explicit) in enumerate(
            zip(block, *terms.equations(block), strict=True), start=first + 1
        ):
            equations.linearize(state, after)
            x, multipliers = equations.forward(x, *explicit)
            state = after
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
    changed = []
    for k, (name, step) in enumerate(steps_of.items()):
        h = min(OUTPUT_STEP * step, LARGEST_MOVE / max(float(np.abs(q[:, :, k]).max()), 1e-300))
        runs = []
        for factor, weight in FOURTH_ORDER.items():
            moved = [part[:, :, k] for part in (q, v, a, lam)]
            runs.append(
                (weight / h, _moved(terms.changed(name, factor * h), states, moved, factor * h))
            )
        changed.append(tuple(runs))
    return RunSensitivities(run, values, q, tuple(changed))


def _moved(
    system: SystemData, states: list[State], derivatives: list[Array], step: float
) -> Solution:
    """Return the simulation to first order for a change of one parameter.

    `derivatives` contains those of q, v, a and λ, (nt, ·) each.
    """
    at, moved = Assembler(system), []
    for state, q, *others in zip(states, *derivatives, strict=True):
        at.put(state)
        at.move(state.q, step * q)
        at.update_poses(state.time)
        changes = zip(("v", "a", "lam"), others, strict=True)
        values = {key: getattr(state, key) + step * change for key, change in changes}
        moved.append(replace(state, q=at.q.copy(), angles=at.joint_rotations(), **values))
    return Solution(system, moved)
