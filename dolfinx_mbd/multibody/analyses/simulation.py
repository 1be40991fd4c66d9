"""Simulation of a mechanism over time, and its continuation from a checkpoint."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dolfinx_mbd.checks import file_path, flag, integer, memory, number, reject
from dolfinx_mbd.errors import MbdWarning, warn
from dolfinx_mbd.multibody.analyses.simulator import Simulator, one_blas_thread
from dolfinx_mbd.multibody.files.run_files import HISTORY
from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.results.run_checks import RunChecks
from dolfinx_mbd.multibody.results.solution import Solution
from dolfinx_mbd.multibody.stepping.checkpoints import Checkpoint, read_checkpoint
from dolfinx_mbd.multibody.stepping.integrators import StepError
from dolfinx_mbd.multibody.stepping.run import RecordedRun
from dolfinx_mbd.multibody.stepping.step_control import Adaptive
from dolfinx_mbd.time_integration import GeneralizedAlpha


@one_blas_thread()
def simulate(
    system: SystemData,
    *,
    t_end: float,
    dt: float | Adaptive | Literal["adaptive"],
    method: GeneralizedAlpha | None = None,
    tolerance: float = 1e-8,
    start: State | Mapping[str, float] | None = None,
    elastic_start: Literal["quasi-static", "undeformed"] = "quasi-static",
    redundant: Literal["stop", "drop", "keep"] = "stop",
    stride: int = 1,
    progress: bool = False,
    checkpoint: str | Path | None = None,
    checkpoint_stride: int | None = None,
) -> Solution:
    """Simulate a system with fixed or adaptive steps.

    The results are bitwise equal on every MPI rank and in every repetition; BLAS uses one thread
    during the simulation.

    Args:
        system: The mechanism; it is not changed.
        t_end: End time, s, at which the last step ends.
        dt: Time step, s, adjusted so that a whole number of steps fits; or an `Adaptive` control;
            or ``adaptive`` for a control with default values.
        method: Generalized-α method; by default with ρ∞ = 0.8.
        tolerance: Tolerance of Newton's method, relative to the acting forces; see `Stepper`.
        start: Rates of joints at t = 0 by name, rad/s or m/s, for mechanisms without drivers; or an
            initial state with its time. By default as drivers and initial velocities prescribe.
        elastic_start: Initial deformation, unless `start` is a state: ``quasi-static`` or
            ``undeformed``; see `consistent_state`.
        redundant: Treatment of redundant constraints: ``stop`` raises an error with their names;
            ``drop`` ignores them, so that their forces are zero; ``keep`` gives the same motion and
            the joint forces of minimum norm. Initial misfits of redundant constraints, up to 1e-5
            of the size of the mechanism, remain constant. Constraints that are independent only
            because bodies deform are not redundant.
        stride: Save every n-th step; the first and the last state are always saved.
        progress: Whether to show a progress bar, if tqdm is installed.
        checkpoint: File to which the run is written periodically. `resume` reads it and continues
            the run bitwise equally. An existing file is replaced. Under MPI every rank may write
            it.
        checkpoint_stride: Number of steps between two checkpoints; by default the number of steps
            that take about a minute.

    Returns:
        The histories by name. After Ctrl-C, the solution contains the results so far, with a
        warning and ``complete == False``.

    Raises:
        AssemblyError: The mechanism cannot be assembled.
        StepError: A step does not converge; ``error.solution`` contains the results before it.
        InputError: An argument is invalid, or the angle, rate and acceleration of a driver
            contradict each other.
        OSError: The first checkpoint cannot be written; later failures give a warning.

    Example:
        >>> run = mbd.simulate(pendulum, t_end=0.5, dt=1e-3)
        >>> print(f"{run.joint('pin').rotation[-1]:.4f} rad")
        -1.1637 rad
        >>> run = mbd.simulate(pendulum, t_end=0.5, dt="adaptive", start={"pin": 2.0})
        >>> print(f"{run.joint('pin').rotation[-1]:.2f} rad")
        -0.21 rad
    """
    control = Adaptive() if isinstance(dt, str) and dt == "adaptive" else dt
    stride = integer("stride", stride, low=1, high=sys.maxsize)
    flag("progress", progress)
    if checkpoint is not None:
        file_path("checkpoint", checkpoint)
    if checkpoint_stride is not None:
        integer("checkpoint_stride", checkpoint_stride, low=1)
        if checkpoint is None:
            reject("checkpoint_stride", checkpoint_stride, "absent without a checkpoint")
    simulator = Simulator(
        system,
        dt=control,  # type: ignore[arg-type]
        t_end=number("t_end", t_end, unit="s"),
        method=method,
        tolerance=tolerance,
        start=start,
        elastic_start=elastic_start,
        redundant=redundant,
    )
    run = RecordedRun(simulator, [simulator.state], stride)
    if not isinstance(control, Adaptive):
        size = sum(np.size(getattr(run.state, key)) for key in HISTORY)
        memory("dt", control, 8 * (1 + run.steps.total / stride) * size)
    writer = Checkpoint(checkpoint, checkpoint_stride, run.system)
    writer.write(run)  # before the first step, so that an invalid path raises an error immediately
    return _finished(run, writer, progress)


@one_blas_thread()
def resume(path: str | Path, system: SystemData, *, progress: bool = False) -> Solution:
    """Continue a simulation from its checkpoint, as if it had not been interrupted.

    The results are bitwise equal. Checkpoints are written to the same file as often as before. For
    a finished run, the solution is returned immediately.

    Args:
        path: The checkpoint that `simulate` wrote.
        system: The mechanism, built in the same way. Its names, numbers and arrays, and the names
            of its functions, are compared; a change inside a function is not detected.
        progress: Whether to show a progress bar, if tqdm is installed.

    Returns:
        The whole solution, from the start of the simulation.

    Raises:
        RunFileError: The file is not a checkpoint, is damaged or of a newer version, or belongs to
            another system; the message names the differences.
        StepError: A step does not converge; see `simulate`.
        OSError: The file cannot be read.

    Example:
        >>> run = mbd.simulate(pendulum, t_end=0.5, dt=1e-3, checkpoint="run.npz")
        >>> len(mbd.resume("run.npz", pendulum)) == len(run)
        True
    """
    flag("progress", progress)
    return _finished(*read_checkpoint(path, system), progress)


def _finished(run: RecordedRun, writer: Checkpoint, progress: bool) -> Solution:
    """Take the remaining steps and return the solution."""
    checks = RunChecks(run.system, run.stepper, run.state)
    try:
        with progress_bar(run.steps.total, progress, "simulate", "step") as bar:
            while not run.steps.done:
                run.advance()
                checks.see(run.state, saved=run.record())
                writer.update(run)
                if bar is not None:
                    bar.update(run.steps.progress - bar.n)
        writer.write_or_warn(run)
    except StepError as error:
        error.solution = solution = _solution(run)
        checks.warn(solution)
        raise
    except KeyboardInterrupt:
        run.record()
        writer.write_or_warn(run)
        time = run.state.time
        text = f"interrupted at t = {time:g} s; the results so far are returned"
        warn(MbdWarning(text, quantity="time", value=time))
    solution = _solution(run)
    checks.warn(solution)
    return solution


def _solution(run: RecordedRun) -> Solution:
    """Return a solution with the saved states; the last state includes the integrator's memory."""
    earlier = [state for state in run.states[-1:] if state.time < run.state.time]
    states = [*run.states[:-1], *earlier, run.state]
    counts = {key: getattr(run.stepper, key) for key in ("iterations", "factorizations")}
    return Solution(run.system, states, complete=run.steps.done, **counts)


def progress_bar(total: int, show: bool, title: str, unit: str) -> AbstractContextManager[Any]:
    """Return a progress bar (in notebooks a widget), or a null context without `show` or tqdm."""
    if show:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            warn(MbdWarning("no progress bar: tqdm is not installed (pip install tqdm)"))
        else:
            return tqdm(total=total, desc=title, unit=unit, mininterval=0.2)  # type: ignore[no-any-return]
    return nullcontext()
