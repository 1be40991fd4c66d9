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

from dolfinx_mbd.analyses.period_checks import (
    check_autonomous,
    check_period,
    check_turned,
)
from dolfinx_mbd.analyses.periodic_motion import PeriodicError, PeriodicMotion
from dolfinx_mbd.analyses.rotors import Rotors
from dolfinx_mbd.analyses.shooting import (
    PeriodMap,
    closure,
    closure_of_oil,
    difference,
    return_to,
    simulate_period,
)
from dolfinx_mbd.analyses.simulator import Simulator, one_blas_thread
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import choice, flag, instance, integer, memory, number
from dolfinx_mbd.dynamics.assembly.assembler import AssemblyError
from dolfinx_mbd.dynamics.stepping.integrators import StepError
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.run_checks import RunChecks
from dolfinx_mbd.results.solution import Solution
from dolfinx_mbd.time_integration import GeneralizedAlpha

__all__ = ["PeriodicError", "PeriodicMotion", "motion_name", "periodic"]

# Singular values of 1 − monodromy below this fraction of the largest one, but at most below
# _FREE · _LARGEST, belong to a free motion
_FREE, _LARGEST = 1e-9, 1e3
_GROWTH = 3.0  # growth of the closure error above which a correction is shortened
_CHAOS = 1e8  # growth of disturbances in a period above which no correction helps
_IDLE = 3  # number of corrections without an improvement before further periods
_LONGEST = 8  # largest number of periods between two corrections
_SHORTEST = 1 / 16  # shortest fraction of a correction
_ALIGNMENTS = 4  # further simulated periods that improve the estimate of an unknown period
_ALIGNED = 1e-3  # error of this estimate, relative to the period
_LATE = 0.25  # largest change of this estimate, relative to the period
_LONGER = 0.3  # largest change of the period by a correction, relative to it
_SHORTENING = 0.25  # factor by which a correction is shortened
_STILL = 1e-6  # speeds below this fraction of the mechanism's size per period count as rest


@one_blas_thread()
def periodic(
    system: System,
    period: float,
    *,
    dt: float,
    start: State | Solution | Mapping[str, float] | None = None,
    find_period: bool = False,
    axes: Literal["body", "global"] = "body",
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
    simulated periods would be. In mass-conserving films, the oil at the end of the period is also
    that at its start: it is taken over from each simulated period to the next one, instead of being
    corrected by Newton's method. The multipliers neglect that the oil depends on the motion.

    Args:
        system: The mechanism.
        period: Period, s. All drivers and loads must repeat after this time, such as two turns of
            the crank of a four-stroke engine.
        dt: Time step, s, adjusted so that a whole number of steps fits in the period.
        start: Initial state, a run whose end is the initial state, or rates of joints by name; by
            default as for `simulate`.
        find_period: Whether `period` is an estimate of an unknown period, of a mechanism that does
            not depend on time. The start must then be near the cycle.
        axes: Axes in which the motion is closed: ``body``, or ``global`` for round rotors, which
            need not make a whole number of turns in the period. They turn with the speeds that the
            bodies have at the start of the mechanism; see `equilibrium`.
        transient: Number of periods that are simulated before the first correction.
        closed: Largest difference of the states at both ends of the period, relative to the motion,
            and of the thickness of the oil, relative to the clearance.
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
            mechanism has mesh bodies or constraints on velocities only.

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
    system.check_reduced("periodic")
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
    turning = choice("axes", axes, ("body", "global")) == "global"
    rotors = Rotors.of(system) if turning else Rotors.none(system)
    cycle = _Cycle(simulator, rotors, period, steps, flag("find_period", find_period))
    cycle.transient(transient)
    cycle.close(closed, max_corrections)
    return cycle.result()


class _Cycle:
    """The states of the last simulated period, and the corrections so far."""

    def __init__(
        self, simulator: Simulator, rotors: Rotors, period: float, steps: int, autonomous: bool
    ) -> None:
        self.stepper, self.system, self.rotors = simulator.stepper, simulator.system, rotors
        self.period, self.steps, self.autonomous = period, steps, autonomous
        self.corrections = self.periods = 0
        self._simulate(simulator.stepper.begin(simulator.state, self.dt))
        if rotors:
            check_turned(rotors, self.states, period, autonomous=autonomous)
        else:
            check = check_autonomous if autonomous else check_period
            check(self.system, self.states, period)

    @property
    def dt(self) -> float:
        """Time step, s."""
        return self.period / self.steps

    def _simulate(self, first: State) -> None:
        """Simulate a period from a state, and compare its ends."""
        self.states = simulate_period(self.stepper, first, self.dt, self.steps)
        self.periods += 1
        self.last = self.rotors.back(self.states[-1], self.period)
        self.error, row = closure(self.rotors, self.states, self.period)
        self.place = self.system.row_name(row)
        oil, film = closure_of_oil(self.stepper.assembler, self.states)
        if oil > self.error:
            self.error, self.place = oil, f"the oil of {film!r}"

    def transient(self, count: int) -> None:
        """Simulate further periods, and improve the estimate of an unknown period meanwhile."""
        aligned = not (self.autonomous and count)
        for k in range(count + _ALIGNMENTS):
            if k >= count and aligned:
                return
            if self.autonomous:
                late = self._delay()
                aligned = abs(late) <= _ALIGNED * self.period
                self.period -= late
            self._simulate(return_to(self.stepper.assembler, self.states[0], self.last))

    def _delay(self) -> float:
        """Return the time since the motion was nearest to its start, near the end of the period."""
        M, _ = self.stepper.assembler.inertia(self.states[-1].time)
        v, *_ = self._last_rates()
        error, *_ = difference(self.system, self.states[0], self.last)  # difference of q
        v[self.system.states] = 0.0
        late = float(error @ M @ v) / max(float(v @ M @ v), 1e-300)
        return late if abs(late) < _LATE * self.period else 0.0

    def close(self, closed: float, max_corrections: int) -> None:
        """Correct the start of the period until the state after it is equal."""
        best, place, num_periods, idle = self.error, self.place, 1, 0
        while True:
            self.map = PeriodMap(self.stepper, self.states, self.dt, self.rotors)
            if self.error <= closed:
                return
            best, place = min((best, place), (self.error, self.place))
            if self.corrections >= max_corrections:
                break
            # corrections that do not help are far from the cycle: let disturbances decay first
            if self._correct():
                idle = 0 if self.error < best else idle + 1
                if idle < _IDLE:
                    continue
            idle = 0
            self.transient(num_periods)
            num_periods = min(2 * num_periods, _LONGEST)
        raise PeriodicError(self._failure(best, place), closure=best)

    def _failure(self, best: float, place: str) -> str:
        """Return the text of an error that says how near the iteration came."""
        text = (
            f"no periodic motion after {self.corrections} corrections and {self.periods} periods: "
            f"the states at both ends of a period differ by {best:.2g} of the motion at best, most "
            f"in {place}"
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
        change, longer = self._newton_correction()
        states, last, error = self.states, self.last, self.error
        period, fraction = self.period, 1.0
        while fraction >= _SHORTEST:
            try:
                self.period = period + fraction * longer
                eqs = self.stepper.assembler
                self._simulate(return_to(eqs, states[0], last, fraction * change))
                if self.error <= _GROWTH * error:
                    return True
            except (StepError, AssemblyError):
                pass
            fraction *= _SHORTENING
        self.states, self.last, self.error, self.period = states, last, error, period
        return False

    def _newton_correction(self) -> tuple[Array, float]:
        """Return the change (4, nv) of the last state, and of the period."""
        period_map = self.map
        count = len(period_map.matrix)
        A = np.eye(count) - period_map.matrix
        if not self.autonomous:
            self._check_free(A)
            return period_map.end @ np.linalg.solve(A, period_map.residual), 0.0
        last_rates = self._last_rates()
        rates_at_end = period_map.coordinates(last_rates)
        rates = _rates(self.states[0], self.states[1], self.dt)
        rates_at_start = period_map.coordinates(self.rotors.relative(self.states[0], rates))
        speeds = np.abs(last_rates[0])  # without the rates of the states of loads
        speeds[self.system.states] = 0.0
        speed = float(speeds.max())
        if speed * self.period <= _STILL * max(self.system.size, 1e-300):
            raise PeriodicError(
                "the motion has come to rest, so that it has no period: start near the cycle",
                closure=self.error,
            )
        # The correction is orthogonal to the rates of the motion: along them it is only a delay
        bordered = np.block([[A, -rates_at_end[:, None]], [rates_at_start, np.zeros(1)]])
        if self.rotors:
            self._check_free(bordered)
        solution = np.linalg.lstsq(bordered, np.append(period_map.residual, 0.0), rcond=1e-14)[0]
        longer = float(solution[-1])
        if abs(longer) > _LONGER * self.period:
            solution *= _LONGER * self.period / abs(longer)
            longer = float(solution[-1])
        return period_map.end @ solution[:-1] + longer * last_rates, longer

    def _last_rates(self) -> Array:
        """Return the rates (4, nv) of the last state, with the rotors turned back."""
        rate = _rates(self.states[-2], self.states[-1], self.dt, at_end=True)
        back = self.rotors.matrix(self.period)
        return np.asarray(self.rotors.relative(self.states[-1], rate) @ back.T)

    def _check_free(self, A: Array) -> None:
        """Raise an error if a disturbance neither grows nor decays."""
        values, vectors = np.linalg.svd(A)[1:]
        if values[-1] > _FREE * min(max(1.0, float(values[0])), _LARGEST):
            return
        motion = np.abs(self.map.start @ vectors[-1, : len(self.map.matrix)])
        moves, rates = motion[0], motion[1] * self.period / (2 * np.pi)
        row = int(np.argmax(np.maximum(rates, moves)))
        raise PeriodicError(
            f"the cycle is not unique: a Floquet multiplier is 1, because the motion of "
            f"{motion_name(self.system, row)} is free. Hold it by a joint, a driver, a spring or "
            "friction",
            closure=self.error,
        )

    def result(self) -> PeriodicMotion:
        """Return the run with the warnings of a simulation.

        A correction changes the motion at the start, but not the reactions λ there; they are set to
        those at the end of the period.
        """
        first = replace(self.states[0], lam=self._reactions())
        self.states = [first, *self.states[1:]]
        checks = RunChecks(self.system, self.stepper, self.states[0])
        eqs = self.stepper.assembler
        for state in self.states[1:]:
            eqs.put(state)
            eqs.residual(state.time)
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

    def _reactions(self) -> Array:
        """Return the reactions λ (nc,) of the first state."""
        lam = self.states[-1].lam
        if self.rotors and len(lam):  # the axes in which they are resolved may turn
            eqs = self.stepper.assembler
            eqs.put(replace(self.states[0], lam=np.zeros_like(lam)))
            eqs.residual(self.states[0].time)
            return np.asarray(-np.linalg.lstsq(eqs.constraint_matrix().T, eqs.rows, rcond=1e-10)[0])
        return lam


def motion_name(system: System, row: int) -> str:
    """Return the name of the motion that belongs to an equation."""
    name = system.row_name(row)
    return name.replace("force along", "displacement along").replace(
        "moment about", "rotation about"
    )


def _rates(first: State, second: State, dt: float, *, at_end: bool = False) -> Array:
    """Return the rates (4, nv) of q, v, a and w at the first or the second of two states."""
    state = second if at_end else first
    jerk = (second.a - first.a) / dt  # nearly the rate of the algorithmic accelerations w, too
    return np.array([state.v, state.a, jerk, jerk])
