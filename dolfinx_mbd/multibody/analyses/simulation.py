"""Simulation of a mechanism over time, and its continuation from a checkpoint."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.linalg  # noqa: F401  (loads the BLAS of SciPy, for `_blas`)
from threadpoolctl import ThreadpoolController

from dolfinx_mbd.checks import choice, file_path, flag, instance, integer, memory, number, refuse
from dolfinx_mbd.errors import MbdWarning, warn
from dolfinx_mbd.multibody.files.run_files import HISTORY
from dolfinx_mbd.multibody.model.motions import check_drivers
from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.results.run_checks import RunChecks
from dolfinx_mbd.multibody.results.solution import Solution
from dolfinx_mbd.multibody.start.consistent_state import check_state, consistent_state
from dolfinx_mbd.multibody.start.position_assembly import fitted
from dolfinx_mbd.multibody.stepping.checkpoints import Checkpoint, Run, read_checkpoint
from dolfinx_mbd.multibody.stepping.integrators import StepError, Stepper
from dolfinx_mbd.multibody.stepping.step_control import Adaptive, AdaptiveSteps, FixedSteps, Steps
from dolfinx_mbd.time_integration import GeneralizedAlpha


@cache
def _blas() -> ThreadpoolController:
    """Return the controller of the BLAS threads, cached because it is slow to create."""
    return ThreadpoolController()


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Use one BLAS thread: more threads change round-off and do not speed up small problems."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


@_one_blas_thread()
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
            initial state with its time. By default the mechanism is at rest or follows its drivers.
        elastic_start: Initial deformation, unless `start` is a state: ``quasi-static`` or
            ``undeformed``; see `consistent_state`.
        redundant: Treatment of redundant constraints: ``stop`` raises an error with their names;
            ``drop`` leaves them out, so that they carry no forces; ``keep`` gives the same motion
            and the joint forces of minimum norm. Initial misfits of redundant constraints, up to
            1e-5 of the size of the mechanism, remain constant. Constraints that are independent
            only because bodies deform are not redundant.
        stride: Save every n-th step; the first and the last are always saved.
        progress: Whether to show a progress bar, if tqdm is installed.
        checkpoint: File to which the run is written periodically and from which `resume` continues
            it bitwise equally. An existing file is replaced. Under MPI every rank may write it.
        checkpoint_stride: Number of steps between two checkpoints; by default as many as take about
            a minute.

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
    instance("system", system, SystemData)
    instance("start", start, (State, Mapping, type(None)), "a state or rates of joints by name")
    state = start if isinstance(start, State) else None
    if state is not None:
        check_state("start", state, system)
    control = Adaptive() if isinstance(dt, str) and dt == "adaptive" else dt
    first = 0.0 if state is None else state.time
    t_end = number("t_end", t_end, unit="s")
    if not t_end > first:
        refuse("t_end", t_end, f"after the start, {first:g} s")
    if not isinstance(control, Adaptive):
        control = number("dt", control, positive=True, unit="s, an Adaptive control or 'adaptive'")
    choice("elastic_start", elastic_start, ("quasi-static", "undeformed"))
    choice("redundant", redundant, ("stop", "drop", "keep"))
    stride = integer("stride", stride, low=1, high=sys.maxsize)
    flag("progress", progress)
    if checkpoint is not None:
        file_path("checkpoint", checkpoint)
    if checkpoint_stride is not None:
        integer("checkpoint_stride", checkpoint_stride, low=1)
        if checkpoint is None:
            refuse("checkpoint_stride", checkpoint_stride, "absent without a checkpoint")
    check_drivers(system, first, t_end)
    if redundant != "stop":
        system, repeated = fitted(system, first, None if state is None else state.q)
        if repeated:
            rows = [r.row for r in repeated]
            system = system.without_rows(rows, least_norm=redundant == "keep")
    stepper = Stepper(system, method, tolerance=tolerance)
    if state is None:
        rates = start if isinstance(start, Mapping) else None
        state = consistent_state(system, first, elastic_start=elastic_start, rates=rates)
    steps = _steps(control, system, state, t_end, stride)
    run = Run(system, stepper, steps, state, [state], stride)
    writer = Checkpoint(checkpoint, checkpoint_stride, system)
    writer.mark(run)
    writer.write(run)  # before the first step, so that an invalid path raises an error immediately
    return _finished(run, writer, progress)


@_one_blas_thread()
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


def _steps(
    control: float | Adaptive, system: SystemData, state: State, t_end: float, stride: int
) -> Steps:
    """Return the steps of a simulation; raise an error if its results do not fit into memory."""
    span = t_end - state.time
    if isinstance(control, Adaptive):
        return AdaptiveSteps.of(control, system, state.time, t_end)
    size = sum(np.size(getattr(state, key)) for key in HISTORY)
    memory("dt", control, 8 * (1 + span / control / stride) * size)
    count = max(1, round(span / control))
    return FixedSteps(span / count, count)


def _finished(run: Run, writer: Checkpoint, progress: bool) -> Solution:
    """Take the remaining steps and return the solution."""
    steps = run.steps
    checks = RunChecks(run.system, run.stepper, run.state)
    writer.mark(run)
    try:
        with progress_bar(steps.total, progress, "simulate", "step") as bar:
            while not steps.done:
                run.state = steps.advance(run.stepper, run.state)
                saved = steps.taken % run.stride == 0 or steps.done
                if saved:
                    run.states.append(run.state)
                checks.see(run.state, saved=saved)
                writer.offer(run)
                if bar is not None:
                    bar.update(steps.progress - bar.n)
        writer.write_or_warn(run)
    except StepError as error:
        error.solution = solution = _solution(run)
        checks.warn(solution)
        raise
    except KeyboardInterrupt:
        writer.write_or_warn(run)
        time = run.state.time
        text = f"interrupted at t = {time:g} s; the results so far are returned"
        warn(MbdWarning(text, quantity="time", value=time))
    solution = _solution(run)
    checks.warn(solution)
    return solution


def _solution(run: Run) -> Solution:
    """Return the saved states and the last state, which includes the integrator's memory."""
    earlier = [state for state in run.states[-1:] if state.time < run.state.time]
    states = [*run.states[:-1], *earlier, run.state]
    counts = {key: getattr(run.stepper, key) for key in ("iterations", "factorizations")}
    return Solution(run.system, states, complete=run.steps.done, **counts)


def progress_bar(total: int, show: bool, title: str, unit: str) -> AbstractContextManager[Any]:
    """Return a progress bar, in notebooks their own, or a null context without `show` or tqdm."""
    if show:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            warn(MbdWarning("no progress bar: tqdm is not installed (pip install tqdm)"))
        else:
            return tqdm(total=total, desc=title, unit=unit, mininterval=0.2)  # type: ignore[no-any-return]
    return nullcontext()
