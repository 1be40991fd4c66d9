"""Periodic motions of a mechanism by Newton's method on the map of one period; see `shooting`.

References:
    A. H. Nayfeh, B. Balachandran, Applied Nonlinear Dynamics, Wiley 1995, sections 3.3 (Floquet
    theory) and 6.5 (shooting, for known and unknown periods).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from dolfinx_mbd.analyses.closed_run import ClosedRun
from dolfinx_mbd.analyses.period_checks import check_autonomous, check_period, check_reduced
from dolfinx_mbd.analyses.shooting import (
    PeriodMap,
    closure,
    return_to,
    simulate_period,
)
from dolfinx_mbd.analyses.simulator import Simulator, one_blas_thread
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import flag, instance, integer, memory, number
from dolfinx_mbd.dynamics.assembly.assembler import AssemblyError
from dolfinx_mbd.dynamics.stepping.integrators import StepError
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.run_checks import RunChecks
from dolfinx_mbd.results.solution import Solution
from dolfinx_mbd.time_integration import GeneralizedAlpha

__all__ = ["PeriodicError", "PeriodicMotion", "periodic"]

Complex = np.typing.NDArray[np.complex128]

_FREE = 1e-9  # singular values of 1 − monodromy below this have a free motion
_GREAT = 1e3  # growth of disturbances that hides a free motion
_GROWTH = 3.0  # growth of the closure error above which a correction is shortened
_CHAOS = 1e8  # growth of disturbances in a period above which no correction helps
_IDLE = 3  # number of corrections without an improvement before further periods
_LONGEST = 8  # largest number of periods between two corrections
_SHORTEST = 1 / 16  # shortest fraction of a correction
_NEUTRAL = 1e-6  # distance of a multiplier from the unit circle that counts as zero
_STILL = 1e-6  # speeds below this fraction of the mechanism's size per period count as rest


class PeriodicError(SolverError):
    """No periodic motion was found.

    Args:
        message: Text of the error.
        closure: Smallest relative difference of the states at both ends of a period, or NaN. The
            error has an attribute with the same name.
    """

    def __init__(self, message: str, *, closure: float = float("nan")) -> None:
        super().__init__(message)
        self.closure = closure


class PeriodicMotion(ClosedRun):
    """A run over one period whose last state equals its first one; see `periodic`.

    All analyses of a run accept it. Its last time is the first time of the next period.

    Attributes:
        period: Period, s.
        multipliers: Floquet multipliers μ by decreasing |μ|, shape (c,): a small disturbance grows
            by the factor μ in each period. Disturbances decay if all |μ| are below 1.
        closure: Largest relative difference of the states at both ends.
        corrections: Number of corrections of the state.
        periods: Number of simulated periods.
        autonomous: Whether the period was unknown; one multiplier is then 1.
        states: States at all times, with the memory of the integrator.
        period_map: Derivative of the state after a period with respect to the state at its start.

    Example:
        >>> spring = mbd.JointLoad("spring", "pin", "rotation", lambda t, x, v: -40 * x - 4 * v)
        >>> push = mbd.JointLoad("push", "pin", "rotation", lambda t, x, v: 5 * np.cos(9 * t))
        >>> rocker = mbd.System([ground, bob], [pin], loads=[spring, push])
        >>> cycle = mbd.analyses.periodic(rocker, 2 * np.pi / 9, dt=5e-3)
        >>> cycle.stability
        'stable'
        >>> swing = np.abs(cycle.harmonics(cycle.joint("pin").rotation, 1)[1])
        >>> print(f"{swing:.4f} rad")  # 5/|40 - 2.01·81 + 4·9i|
        0.0391 rad
    """

    multipliers: Complex
    closure: float
    corrections: int
    periods: int
    autonomous: bool
    period_map: PeriodMap

    @property
    def stability(self) -> Literal["stable", "neutral", "unstable"]:
        """Whether small disturbances decay, persist or grow.

        The multiplier 1 of a motion with unknown period is not counted: it only delays the motion.
        """
        sizes = np.abs(self.multipliers)
        if self.autonomous:
            sizes = np.delete(sizes, int(np.argmin(np.abs(self.multipliers - 1))))
        largest = float(sizes.max(initial=0.0))
        if abs(largest - 1) <= _NEUTRAL:
            return "neutral"
        return "stable" if largest < 1 else "unstable"

    @property
    def exponents(self) -> Complex:
        """Floquet exponents ln μ/T, shape (c,), 1/s; imaginary parts are between ±π/T."""
        safe = np.where(self.multipliers == 0, 1e-300, self.multipliers)
        return np.asarray(np.log(safe.astype(complex)) / self.period)

    def __repr__(self) -> str:
        largest = float(np.abs(self.multipliers).max(initial=0.0))
        return (
            f"<PeriodicMotion: period {self.period:.6g} s, {self.stability}, largest multiplier "
            f"{largest:.6g}, closed to {self.closure:.1e} after {self.corrections} corrections, "
            f"{self.periods} periods of simulation>"
        )


@one_blas_thread()
def periodic(
    system: System,
    period: float,
    *,
    dt: float,
    start: State | Solution | Mapping[str, float] | None = None,
    find_period: bool = False,
    transient: int = 1,
    closed: float = 1e-8,
    max_corrections: int = 10,
    method: GeneralizedAlpha | None = None,
    tolerance: float = 1e-9,
    redundant: Literal["stop", "drop", "keep"] = "stop",
) -> PeriodicMotion:
    """Find a periodic motion of a driven or self-excited mechanism, and its stability.

    Newton's method corrects the state at the start until the state after a period equals it. The
    derivative of the state after a period follows from the linear equations of its steps, so that
    each correction needs one simulated period. Unstable periodic motions are found as well.

    The result is the motion of the time integration with the step `dt`, as the last of many
    simulated periods would be.

    Args:
        system: The mechanism.
        period: Period, s. All drivers and loads must repeat after this time, such as two turns of
            the crank of a four-stroke engine.
        dt: Time step, s, adjusted so that a whole number of steps fits in the period.
        start: Initial state, a run whose end is the initial state, or rates of joints by name; by
            default as for `simulate`.
        find_period: Whether `period` is an estimate of an unknown period, of a mechanism that does
            not depend on time. The start must then be near the cycle.
        transient: Number of periods that are simulated before the first correction.
        closed: Largest difference of the states at both ends of the period, relative to the motion.
        max_corrections: Maximum number of corrections.
        method: Generalized-α method; by default with ρ∞ = 0.8.
        tolerance: Tolerance of Newton's method in the steps; see `Stepper`.
        redundant: Treatment of redundant constraints; see `simulate`.

    Returns:
        The run over one period, with its Floquet multipliers.

    Raises:
        PeriodicError: The iteration did not converge, or a motion is free: a multiplier is 1.
        StepError: A step of the first periods does not converge.
        InputError: An argument is invalid, a driver or load does not have the period, or the
            mechanism has bodies on their mesh or constraints on velocities only.

    Example:
        >>> def motion(t):
        ...     return 0.2 * np.sin(9 * t), 1.8 * np.cos(9 * t), -16.2 * np.sin(9 * t)
        >>> arm = mbd.RigidBody("arm", 1.0, [0.01] * 3, frames={"a": mbd.Frame((0, 1, 0))})
        >>> joints = [pin, mbd.revolute("elbow", bob.frame("pin"), arm.frame("a"))]
        >>> def friction(t, x, v):
        ...     return -0.5 * v
        >>> loads = [mbd.JointLoad("friction", "elbow", "rotation", friction)]
        >>> drive = mbd.Driver("drive", "pin", motion)
        >>> shaken = mbd.System(
        ...     [ground, bob, arm], joints, drivers=[drive], loads=loads, gravity=(0, -9.81, 0)
        ... )
        >>> cycle = mbd.analyses.periodic(shaken, 2 * np.pi / 9, dt=0.01)
        >>> bool(np.abs(cycle.multipliers).max() < 1)
        True
    """
    instance("system", system, System)
    period = number("period", period, positive=True, unit="s")
    number("dt", dt, positive=True, high=period, unit="s")
    number("closed", closed, positive=True, high=1.0)
    integer("transient", transient, low=0, high=100_000)
    integer("max_corrections", max_corrections, low=0)
    memory("dt", dt, 8.0 * (system.num_coordinates + 2 * system.num_velocities) * (period / dt))
    check_reduced(system)
    system.check_holonomic("periodic")
    first = start.final_state if isinstance(start, Solution) else start
    steps = max(round(period / dt), 4)
    simulator = Simulator(
        system,
        dt=period / steps,
        method=method,
        tolerance=tolerance,
        start=first,
        redundant=redundant,
    )
    cycle = _Cycle(simulator, period, steps, flag("find_period", find_period))
    cycle.transient(transient)
    cycle.close(closed, max_corrections)
    return cycle.result()


class _Cycle:
    """The states of the last simulated period, and the corrections so far."""

    def __init__(self, simulator: Simulator, period: float, steps: int, autonomous: bool) -> None:
        self.stepper, self.system = simulator.stepper, simulator.system
        self.period, self.steps, self.autonomous = period, steps, autonomous
        self.corrections = self.periods = 0
        self._simulate(simulator.stepper.begin(simulator.state, self.dt))
        check = check_autonomous if autonomous else check_period
        check(self.system, self.states, period)

    @property
    def dt(self) -> float:
        """Time step, s."""
        return self.period / self.steps

    def _simulate(self, first: State) -> None:
        self.states = simulate_period(self.stepper, first, self.dt, self.steps)
        self.periods += 1
        self.error, self.row = closure(self.system, self.states, self.period)

    def transient(self, count: int) -> None:
        """Simulate further periods."""
        for _ in range(count):
            self._simulate(return_to(self.stepper.assembler, self.states[0], self.states[-1]))

    def close(self, closed: float, max_corrections: int) -> None:
        """Correct the start of the period until the state after it is equal."""
        best, waits, idle = (self.error, self.row), 1, 0
        while True:
            self.map = PeriodMap(self.stepper, self.states, self.dt)
            if self.error <= closed:
                return
            best = min(best, (self.error, self.row))
            if self.corrections >= max_corrections:
                break
            # corrections that do not help are far from the cycle: let disturbances decay first
            if self._correct():
                idle = 0 if self.error < best[0] else idle + 1
                if idle < _IDLE:
                    continue
            idle = 0
            self.transient(waits)
            waits = min(2 * waits, _LONGEST)
        raise PeriodicError(self._failure(*best), closure=best[0])

    def _failure(self, best: float, row: int) -> str:
        """Return the text of an error that says how near the iteration came."""
        text = (
            f"no periodic motion after {self.corrections} corrections and {self.periods} periods: "
            f"the states at both ends of a period differ by {best:.2g} of the motion at best, most "
            f"in {self.system.row_name(row)}"
        )
        if self.map.growth > _CHAOS:
            text += (
                f". Disturbances grow by the factor {self.map.growth:.1g} in a period, as in "
                "rattling contacts: such a motion does not repeat, or only for a smaller dt, more "
                "damping or a force that keeps the contact closed. Simulate it instead"
            )
            return text
        return text + (
            ". Start nearer to the cycle: simulate more periods first (transient), or start from "
            "the cycle of similar parameters; impacts need a smaller dt. Or no cycle has this "
            "period, for example because the period doubles"
        )

    def _correct(self) -> bool:
        """Correct the start and simulate a period; return whether a correction was possible."""
        self.corrections += 1
        if self.map.growth > _CHAOS:
            return False
        change, longer = self._solution()
        states, error, period, fraction = self.states, self.error, self.period, 1.0
        while fraction >= _SHORTEST:
            try:
                self.period = period + fraction * longer
                at = self.stepper.assembler
                self._simulate(return_to(at, states[0], states[-1], fraction * change))
                if self.error <= _GROWTH * error:
                    return True
            except (StepError, AssemblyError):
                pass
            fraction *= 0.25
        self.states, self.error, self.period = states, error, period
        return False

    def _solution(self) -> tuple[Array, float]:
        """Return the change (4, nv) of the last state, and of the period."""
        phi = self.map
        count = len(phi.matrix)
        A = np.eye(count) - phi.matrix
        if not self.autonomous:
            self._check_free(A)
            return phi.end @ np.linalg.solve(A, phi.residual), 0.0
        rate = self._rate()
        last = phi.coordinates(rate)
        first = phi.coordinates(_rate(self.states[0], self.states[1], self.dt))
        speeds = np.abs(self.states[-1].v)
        speeds[self.system.states] = 0.0
        speed = float(speeds.max())
        if speed * self.period <= _STILL * max(self.system.size, 1e-300):
            raise PeriodicError(
                "the motion has come to rest, so that it has no period: start near the cycle",
                closure=self.error,
            )
        # the correction is orthogonal to the motion, which would only delay it
        bordered = np.block([[A, -last[:, None]], [first, np.zeros(1)]])
        solution = np.linalg.lstsq(bordered, np.append(phi.residual, 0.0), rcond=1e-14)[0]
        longer = float(solution[-1])
        if abs(longer) > 0.3 * self.period:
            solution *= 0.3 * self.period / abs(longer)
            longer = float(solution[-1])
        return phi.end @ solution[:-1] + longer * rate, longer

    def _rate(self) -> Array:
        """Return the rate (4, nv) of the last state."""
        return _rate(self.states[-2], self.states[-1], self.dt, last=True)

    def _check_free(self, A: Array) -> None:
        """Raise an error if a disturbance neither grows nor decays."""
        values, vectors = np.linalg.svd(A)[1:]
        if values[-1] > _FREE * min(max(1.0, float(values[0])), _GREAT):
            return
        motion = np.abs(self.map.start @ vectors[-1])
        rates, moves = motion[1] * self.period / (2 * np.pi), motion[0]
        row = int(np.argmax(np.maximum(rates, moves)))
        raise PeriodicError(
            f"the cycle is not unique: a Floquet multiplier is 1, because the motion of "
            f"{_motion_name(self.system, row)} is free. Hold it by a joint, a driver, a spring or "
            "friction",
            closure=self.error,
        )

    def result(self) -> PeriodicMotion:
        """Return the run with the warnings of a simulation.

        A correction changes the motion at the start and not the multipliers, which are those of the
        end of the period.
        """
        first = replace(self.states[0], lam=self.states[-1].lam)
        self.states = [first, *self.states[1:]]
        checks = RunChecks(self.system, self.stepper, self.states[0])
        at = self.stepper.assembler
        for state in self.states[1:]:
            at.put(state)
            at.residual(state.time)
            checks.update(state, saved=True)
        run = PeriodicMotion(
            self.system,
            self.states,
            iterations=self.stepper.iterations,
            factorizations=self.stepper.factorizations,
        )
        checks.inspect(run)
        checks.warn()
        multipliers = np.linalg.eigvals(self.map.matrix).astype(complex)
        run.multipliers = multipliers[np.argsort(-np.abs(multipliers), kind="stable")]
        run.period, run.closure, run.autonomous = self.period, self.error, self.autonomous
        run.corrections, run.periods = self.corrections, self.periods
        run.states, run.period_map = self.states, self.map
        return run


def _motion_name(system: System, row: int) -> str:
    """Return the name of the motion that belongs to an equation."""
    name = system.row_name(row)
    return name.replace("force along", "displacement along").replace(
        "moment about", "rotation about"
    )


def _rate(one: State, two: State, dt: float, *, last: bool = False) -> Array:
    """Return the rates (4, nv) of the first or the last of two states."""
    state = two if last else one
    jerk = (two.a - one.a) / dt
    return np.array([state.v, state.a, jerk, jerk])
