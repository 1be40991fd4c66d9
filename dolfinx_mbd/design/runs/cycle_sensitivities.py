"""Derivatives of a periodic motion with respect to parameters of the mechanism.

The state X at the start of a cycle satisfies X = Φ(X; p). The increment of X per parameter solves
δX = Φ_p + Φ' δX, with the monodromy matrix of the cycle (`analyses/shooting.py`): no further
simulation is needed. The equations of the steps then propagate it through the period.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dolfinx_mbd.analyses.period_checks import check_period
from dolfinx_mbd.analyses.periodic import PeriodicMotion, periodic
from dolfinx_mbd.analyses.simulator import one_blas_thread
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.design.runs.parameter_terms import Build, ParameterTerms
from dolfinx_mbd.design.runs.run_sensitivities import BLOCK, RunSensitivities, neighbours
from dolfinx_mbd.dynamics.stepping.integrators import Stepper
from dolfinx_mbd.dynamics.stepping.step_equations import StepEquations
from dolfinx_mbd.errors import InputError

__all__ = ["cycle_sensitivities"]


@one_blas_thread()
def cycle_sensitivities(
    build: Build,
    values: Mapping[str, float],
    period: float,
    *,
    dt: float,
    steps: Mapping[str, float] | None = None,
    **options: Any,
) -> RunSensitivities:
    """Find a periodic motion, and differentiate it with respect to parameters.

    Args:
        build: Function that returns the mechanism for values by name. All mechanisms must have the
            same bodies, joints and loads, and the period.
        values: Values of the parameters by name.
        period: Period, s.
        dt: Time step, s, adjusted so that a whole number of steps fits in the period.
        steps: Steps of the differences of the equations by name of the parameter; by default 1e-4
            of the value. A parameter with the value 0 needs a step.
        **options: Other arguments of `periodic`, except `find_period`, `axes`
            and `redundant`.

    Returns:
        The periodic motion (`run`) and its derivatives.

    Raises:
        InputError: An argument is invalid, the mechanism is not a smooth function of a parameter or
            of the motion, or a parameter changes the period.
        PeriodicError: No periodic motion was found.

    Example:
        >>> def rocker(p):
        ...     def law(t, x, v):
        ...         return -p["k"] * x - 4 * v + 5 * np.cos(9 * t)
        ...     spring = mbd.JointLoad("spring", "pin", "rotation", law)
        ...     return mbd.System([ground, bob], [pin], loads=[spring])
        >>> ground = mbd.Ground({"pin": mbd.Frame()})
        >>> bob = mbd.RigidBody("bob", 2.0, [0.01] * 3, (1, 0, 0), frames={"pin": mbd.Frame()})
        >>> pin = mbd.revolute("pin", ground.frame("pin"), bob.frame("pin"))
        >>> result = mbd.design.cycle_sensitivities(rocker, {"k": 40.0}, 2 * np.pi / 9, dt=5e-3)
        >>> def largest(run):
        ...     return abs(np.fft.rfft(run.joint("pin").rotation[:-1])[1]) / (len(run) - 1) * 2
        >>> slope = result.derivative(largest)["k"]
        >>> exact = 5 * (2.01 * 81 - 40) / ((40 - 2.01 * 81) ** 2 + 36**2) ** 1.5
        >>> bool(abs(slope / exact - 1) < 1e-3)
        True
    """
    for name in ("find_period", "axes", "redundant"):
        if name in options:
            raise InputError(f"cycle_sensitivities has no argument {name}", argument=name)
    terms = ParameterTerms(build, values, steps)
    cycle = periodic(terms.system, period, dt=dt, **options)
    for name in terms.values:
        for factor in (-1, 1):
            try:
                check_period(terms.system_at(name, factor), cycle.states, period)
            except InputError as error:
                raise InputError(
                    f"parameter {name!r} changes the period: {error}", argument="values"
                ) from error
    derivatives = _derivatives(cycle, terms, options)
    return RunSensitivities(
        cycle, terms.values, derivatives[0], neighbours(terms, cycle, derivatives)
    )


def _derivatives(
    cycle: PeriodicMotion, terms: ParameterTerms, options: Mapping[str, Any]
) -> tuple[Array, Array, Array, Array]:
    """Return the derivatives of q, v, a (nt, nv, parameters) and λ (nt, nc, parameters)."""
    states, period_map = cycle.states, cycle.period_map
    dt = cycle.period / (len(states) - 1)
    stepper = Stepper(terms.system, options.get("method"))
    equations = StepEquations(stepper, dt)
    explicit: list[tuple[Array, Array]] = []
    for first in range(0, len(states) - 1, BLOCK):
        block = states[first : first + BLOCK + 1]
        terms.check_jumps(block)
        explicit += zip(*terms.equations(block[1:]), strict=True)

    def propagated(x: Array) -> tuple[list[Array], list[Array]]:
        """Return the increments (4, nv, parameters) of all states, and of the multipliers."""
        history, multipliers = [x], []
        for before, after, parts in zip(states[:-1], states[1:], explicit, strict=True):
            equations.linearize(before, after)
            x, lam = equations.forward(x, *parts)
            history.append(x)
            multipliers.append(lam)
        return history, [multipliers[-1], *multipliers]

    closing = np.eye(len(period_map.matrix)) - period_map.matrix
    x: Array = np.zeros((4, len(states[0].v), len(terms.values)))
    # The parameters also change the accelerations at the start, which the columns of the map do
    # not contain; the second correction removes their effect
    for _ in range(2):
        last = propagated(x)[0][-1]
        correction = np.linalg.solve(closing, period_map.coordinates(last - x))
        x = np.asarray(last + period_map.end @ correction)
    history, multipliers = propagated(x)
    q, v, a, _ = np.moveaxis(np.array(history), 1, 0)
    return q, v, a, np.array(multipliers)
