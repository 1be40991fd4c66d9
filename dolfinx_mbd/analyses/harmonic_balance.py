"""Periodic motions as Fourier series with few harmonics; see `harmonic_equations`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.analyses.closed_run import ClosedRun
from dolfinx_mbd.analyses.harmonic_equations import (
    HarmonicEquations,
    SingularEquations,
    interpolated,
    reference_spins,
)
from dolfinx_mbd.analyses.harmonic_stability import multipliers_of
from dolfinx_mbd.analyses.period_checks import check_period
from dolfinx_mbd.analyses.periodic import motion_name
from dolfinx_mbd.analyses.periodic_motion import PeriodicError
from dolfinx_mbd.analyses.shooting import simulate_period
from dolfinx_mbd.analyses.simulator import Simulator, one_blas_thread
from dolfinx_mbd.analyses.small_motions import increment_between
from dolfinx_mbd.checks import instance, integer, memory, number, reject
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.errors import AccuracyWarning, warn
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.deformation_checks import check_deformation
from dolfinx_mbd.results.solution import Solution

__all__ = ["HarmonicMotion", "harmonic_balance"]

_FINE = 4  # states of the result for each instant of the equations
_CLOSED = 1e-10  # largest violation of a constraint relative to the size of the mechanism, or rad
_INACCURATE = 0.02  # unbalanced force between the instants that causes a warning
_SHORTEST = 1 / 64  # shortest fraction of a correction
_GROWTH = 2  # largest growth of the unbalanced forces by a correction


class HarmonicMotion(ClosedRun):
    """A run over one period that consists of few harmonics; see `harmonic_balance`.

    All analyses of a run accept it. Its last time is the first time of the next period.

    Attributes:
        period: Period, s.
        num_harmonics: Number of harmonics.
        residual: Largest unbalanced force between the instants at which the equations hold,
            relative to the acting forces. It decreases with the number of harmonics.
        equations: Equations of the motion at the instants.

    Example:
        >>> spring = mbd.JointLoad("spring", "pin", "rotation", lambda t, x, v: -40 * x - 4 * v)
        >>> push = mbd.JointLoad("push", "pin", "rotation", lambda t, x, v: 5 * np.cos(9 * t))
        >>> rocker = mbd.System([ground, bob], [pin], loads=[spring, push])
        >>> motion = mbd.analyses.harmonic_balance(rocker, 2 * np.pi / 9, num_harmonics=1)
        >>> swing = np.abs(motion.harmonics(motion.joint("pin").rotation, 1)[1])
        >>> print(f"{swing:.6f} rad")  # 5/|40 - 2.01·81 + 4·9i|
        0.039069 rad
        >>> print(f"{np.abs(motion.multipliers).max():.4f}")  # exp(−4/(2·2.01)·2π/9)
        0.4992
    """

    num_harmonics: int
    residual: float
    equations: HarmonicEquations
    autonomous = False

    @cached_property
    def multipliers(self) -> NDArray[np.complex128]:  # type: ignore[override]
        """Floquet multipliers μ by decreasing |μ|, shape (c,), computed when first used.

        A small disturbance grows by the factor μ in each period. There is no error of a time step.

        Warns:
            AccuracyWarning: They are not accurate.
        """
        return multipliers_of(self.equations)

    def __repr__(self) -> str:
        return (
            f"<HarmonicMotion: period {self.period:.6g} s, {self.num_harmonics} harmonics, "
            f"residual {self.residual:.1e} between the instants>"
        )


@one_blas_thread()
def harmonic_balance(
    system: System,
    period: float,
    *,
    num_harmonics: int,
    start: Solution | None = None,
    max_corrections: int = 20,
    tolerance: float = 1e-9,
) -> HarmonicMotion:
    """Find a periodic motion of a driven mechanism as a Fourier series with few harmonics.

    The equations of motion hold at 2 H + 1 instants of the period for H harmonics. There is no time
    integration, hence no error of a time step and no transient; the error decreases faster than any
    power of H if all loads are smooth. Use `periodic` for contacts, clearances and other loads that
    change suddenly, and for large systems.

    Args:
        system: The mechanism.
        period: Period, s. All drivers and loads must repeat after this time.
        num_harmonics: Number H of harmonics of the coordinates.
        start: Run that ends near the periodic motion and has at least one period, for example the
            motion at a similar speed; by default one simulated period with large steps.
        max_corrections: Maximum number of corrections.
        tolerance: Largest unbalanced force at the instants, relative to the acting forces.

    Returns:
        The run over one period.

    Raises:
        PeriodicError: The iteration did not converge, or a motion is free.
        StepError: The simulation of the first period fails.
        InputError: An argument is invalid, a driver or load does not have the period, or the
            mechanism has mesh bodies or constraints on velocities only.

    Warns:
        AccuracyWarning: The unbalanced forces between the instants exceed 2 % of the acting forces.

    Example:
        >>> def motion(t):
        ...     return 0.2 * np.sin(9 * t), 1.8 * np.cos(9 * t), -16.2 * np.sin(9 * t)
        >>> arm = mbd.RigidBody("arm", 1.0, [0.01] * 3, frames={"a": mbd.Frame((0, 1, 0))})
        >>> joints = [pin, mbd.revolute("elbow", bob.frame("pin"), arm.frame("a"))]
        >>> friction = mbd.JointLoad("friction", "elbow", "rotation", lambda t, x, v: -0.5 * v)
        >>> drive = mbd.Driver("drive", "pin", motion)
        >>> shaken = mbd.System(
        ...     [ground, bob, arm], joints, drivers=[drive], loads=[friction], gravity=(0, -9.81, 0)
        ... )
        >>> motion = mbd.analyses.harmonic_balance(shaken, 2 * np.pi / 9, num_harmonics=9)
        >>> motion.residual < 1e-3
        True
    """
    instance("system", system, System)
    integer("max_corrections", max_corrections, low=0)
    number("tolerance", tolerance, positive=True, high=1.0)
    equations = first_equations(system, period, num_harmonics, start)
    solve(equations, max_corrections, tolerance)
    motion = motion_of(equations)
    check_motions([motion])
    return motion


def first_equations(
    system: System, period: float, num_harmonics: int, start: Solution | None
) -> HarmonicEquations:
    """Return the equations at the motion of a run; see `harmonic_balance`."""
    period = number("period", period, low=1e-9, unit="s")
    num_harmonics = integer("num_harmonics", num_harmonics, low=1, high=10_000)
    count = 2 * num_harmonics + 1
    # Four matrices of doubles, each with a row and a column for all velocities at all instants
    memory("num_harmonics", num_harmonics, 4 * 8.0 * (count * system.num_velocities) ** 2)
    system.check_reduced("harmonic_balance")
    system.check_holonomic("harmonic_balance")
    system.check_no_content("harmonic_balance")
    if start is None:
        dt = period / (_FINE * count)
        simulator = Simulator(system, dt=dt)
        stepper = simulator.stepper
        states = simulate_period(stepper, stepper.begin(simulator.state, dt), dt, _FINE * count)
    else:
        states = _last_period(system, start, period, _FINE * count)
    check_period(system, states, period)
    spins = reference_spins(system, states, period)
    return HarmonicEquations(system, states, _FINE, spins)


def _last_period(system: System, run: Solution, period: float, steps: int) -> list[State]:
    """Return states at equally spaced instants of the last period of a run."""
    instance("start", run, Solution, "of simulate, periodic or harmonic_balance")
    if run.q.shape[1] != system.num_coordinates or run.v.shape[1] != system.num_velocities:
        reject("start", run, "a run of the same bodies")
    old_period = run.period if isinstance(run, ClosedRun) else period
    begin = float(run.time[-1]) - old_period
    if begin < float(run.time[0]) - 1e-9 * old_period:
        reject("start", run, f"a run of at least one period, {period:.6g} s")
    eqs, states = Assembler(system), []
    for time in np.linspace(max(begin, float(run.time[0])), float(run.time[-1]), steps + 1):
        k = int(np.clip(np.searchsorted(run.time, time, side="right") - 1, 0, len(run) - 2))
        fraction = (time - run.time[k]) / (run.time[k + 1] - run.time[k])
        eqs.move(run.q[k], fraction * increment_between(system, run.q[k], run.q[k + 1]))
        v, a, lam, angles = (
            (1 - fraction) * x[k] + fraction * x[k + 1] for x in (run.v, run.a, run.lam, run.angles)
        )
        states.append(State(time * period / old_period, eqs.q.copy(), v, a, lam, angles))
    return states


def is_solved(equations: HarmonicEquations, tolerance: float) -> bool:
    """Return whether the equations hold at the instants."""
    size = max(equations.system.size, 1.0)
    return equations.error <= tolerance and equations.violation <= _CLOSED * size


def solve(equations: HarmonicEquations, max_corrections: int, tolerance: float) -> None:
    """Correct the motion until all equations hold at the instants."""
    corrections = 0
    try:
        equations.evaluate()
        while not is_solved(equations, tolerance):
            if corrections == max_corrections:
                break
            change, x, lam = equations.correction(), equations.x, equations.lam.copy()
            error, violation = equations.error, equations.violation
            corrections, fraction = corrections + 1, 1.0
            while True:
                equations.x, equations.lam = x + fraction * change, lam.copy()
                equations.evaluate()
                # An error may grow a little on the way to a solution; a large growth diverges
                acceptable = equations.error <= _GROWTH * error or equations.violation < violation
                if acceptable or fraction <= _SHORTEST:
                    break
                fraction *= 0.5
        else:
            return
    except SingularEquations as singular:
        name = motion_name(equations.system, int(singular.args[0]))
        raise PeriodicError(
            f"the motion is not unique: the motion of {name} is free, or the mechanism "
            "passes a singular position. Hold it by a joint, a driver or a spring"
        ) from None
    except (AssemblyError, np.linalg.LinAlgError) as failure:
        raise PeriodicError(f"the correction of the motion fails: {failure}") from failure
    raise PeriodicError(
        f"no periodic motion after {corrections} corrections: unbalanced forces are "
        f"{equations.error:.2g} of the acting forces, most in "
        f"{equations.system.row_name(equations.row)}. Start nearer to the motion, for example from "
        "that at a similar speed (start), or use periodic",
        closure=equations.error,
    )


def check_motions(motions: Sequence[HarmonicMotion]) -> None:
    """Warn of deformations outside the range of the theory, and of too few harmonics."""
    check_deformation(motions[0].system, [state for motion in motions for state in motion.states])
    residual = max(motion.residual for motion in motions)
    if residual > _INACCURATE:
        text = (
            f"the unbalanced forces between the instants of the equations reach {residual:.2g} of "
            "the acting forces: increase num_harmonics, or use periodic if loads are not smooth"
        )
        warn(AccuracyWarning(text))


def motion_of(equations: HarmonicEquations) -> HarmonicMotion:
    """Return the run with states at and between the instants."""
    angles, system = equations.fine_angles, equations.system
    steps = len(angles) - 1
    x = interpolated(equations.x, steps)
    rate = interpolated(equations.derivative @ equations.x, steps)
    v = equations.velocities(x, rate)
    harmonics = np.fft.rfftfreq(steps, 1 / steps)  # 0, 1, 2, ...
    frequencies = 2 * np.pi * harmonics[:, None] / equations.period
    a = np.fft.irfft(1j * frequencies * np.fft.rfft(v, axis=0), steps, axis=0)
    lam = interpolated(equations.lam, steps)
    states, residual = [], 0.0
    first = float(equations.time[0])
    for i in range(steps + 1):
        j, t = i % steps, first + i * equations.period / steps
        equations.put(t, x[j], v[j], a[j], lam[j], angles[i])
        equations.eqs.residual(t)
        _, ratio = equations.unbalanced(t)
        residual = max(residual, ratio)
        states.append(equations.eqs.state(t))
    motion = HarmonicMotion(system, states)
    motion.period, motion.num_harmonics = equations.period, (len(equations.x) - 1) // 2
    motion.residual, motion.states, motion.equations = residual, states, equations
    return motion
