"""Run a mechanism over time: start, steps, what is kept, progress, checkpoints."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.linalg  # noqa: F401  (loads the BLAS of SciPy, for `_blas`)
from threadpoolctl import ThreadpoolController

from dolfinx_mbd.checks import choice, file_path, flag, instance, integer, memory, number, refuse
from dolfinx_mbd.errors import MbdWarning, warn
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

__all__ = ["progress_bar", "resume", "simulate"]


@cache
def _blas() -> ThreadpoolController:
    """Return the controller of the BLAS threads; to create it takes milliseconds."""
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Use one BLAS thread: on more, sums have other bits, and small problems are not faster."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


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

        run = mbd.simulate(system, t_end=0.04, dt=1e-5)
        run = mbd.simulate(system, t_end=0.04, dt="adaptive", start={"main": 628.3})

    The results are the same bits on every MPI rank and in every repetition; BLAS uses one thread
    meanwhile.

    Args:
        system: The mechanism; it is not changed.
        t_end: End time, s; the last step ends there.
        dt: Time step, s, adjusted so that a whole number of steps fits; or an `Adaptive` control;
            or ``adaptive`` for a control with its defaults.
        method: Method of the generalized-α family; None: ρ∞ = 0.8.
        tolerance: Tolerance of Newton's method, relative to the acting forces; see `Stepper`.
        start: Rates of joints at t = 0 by name, rad/s or m/s, for mechanisms without drivers; or a
            state from which to start, at its time; None: at rest, or as the drivers demand.
        elastic_start: Deformation at the start, unless it is given by a state: ``quasi-static`` or
            ``undeformed``; see `consistent_state`.
        redundant: Treatment of constraints that repeat others: ``stop`` raises an error with their
            names; ``drop`` leaves them out, so that their joints carry no such force; ``keep``
            gives the same motion and the joint forces of least norm. Small misfits of redundant
            constraints, up to 1e-5 of the size of the mechanism, stay as they are at the start.
            Constraints that only the deformation of bodies distinguishes are not redundant.
        stride: Save every n-th step; the first and the last are always saved.
        progress: Whether to show a progress bar, if tqdm is installed.
        checkpoint: File to which the run is written periodically and from which `resume` continues
            it with the same bits. An existing file is replaced. Under MPI every rank may write it.
        checkpoint_stride: Number of steps between two checkpoints; None: as many as take about a
            minute.

    Returns:
        The histories by name. After Ctrl-C: those computed so far, with a warning and
        ``complete == False``.

    Raises:
        AssemblyError: The mechanism cannot be assembled.
        StepError: A step does not converge; ``error.solution`` holds the results before it.
        InputError: An argument is unusable, or the angle, rate and acceleration of a driver
            contradict each other.
        OSError: The first checkpoint cannot be written; later failures give a warning.
    """
    instance("system", system, SystemData)
    instance("start", start, (State, Mapping, type(None)), "a state or rates of joints by name")
    state = start if isinstance(start, State) else None
    if state is not None:
        check_state("start", state, system)
    control = Adaptive() if isinstance(dt, str) and dt == "adaptive" else dt
    first = 0.0 if state is None else state.time
    t_end, dt = _times(first, t_end, 1.0 if isinstance(control, Adaptive) else control)
    choice("elastic_start", elastic_start, ("quasi-static", "undeformed"))
    stride = integer("stride", stride, low=1, high=sys.maxsize)
    flag("progress", progress)
    _check_checkpoint(checkpoint, checkpoint_stride)
    check_drivers(system, first, t_end)
    system = _resolved(system, first, redundant, state)
    stepper = Stepper(system, method, tolerance=tolerance)
    writer = None if checkpoint is None else Checkpoint(checkpoint, checkpoint_stride, system)
    if state is None:
        rates = start if isinstance(start, Mapping) else None
        state = consistent_state(system, first, elastic_start=elastic_start, rates=rates)
    steps: Steps
    if isinstance(control, Adaptive):
        steps = AdaptiveSteps(control, system, state, t_end)
    else:
        saved = 1 + (t_end - first) / dt / stride
        memory("dt", dt, 8 * saved * sum(np.size(getattr(state, key)) for key in _HISTORY))
        count = max(1, round((t_end - first) / dt))
        steps = FixedSteps((t_end - first) / count, count)
    run = Run(system, stepper, steps, steps.begin(stepper, state), [state], stride)
    if writer is not None:
        run.mark()
        writer.write(run)  # before the first step, so that an error of the path comes at once
    return _finished(run, writer, progress)


@one_blas_thread()
def resume(path: str | Path, system: SystemData, *, progress: bool = False) -> Solution:
    """Go on with a simulation from its checkpoint, to the same bits as if it had not stopped.

    Checkpoints go on to be written to the same file, as often as before.  That of a finished run
    gives its solution at once.

        run = mbd.resume(path, system) if path.exists() else mbd.simulate(..., checkpoint=path)

    Args:
        path: The checkpoint that :func:`simulate` wrote.
        system: The mechanism, built as it was. Its names, numbers and arrays, and the names of its
            functions, are compared with the checkpoint; a change inside a function is not noticed.
        progress: Show a progress bar.

    Returns:
        The whole solution, from the start of the simulation.

    Raises:
        RunFileError: The file is not a checkpoint, is damaged or of a newer version, or belongs to
            another system; the message names the differences.
        StepError: As of :func:`simulate`.
        OSError: If the file cannot be read.
    """
    flag("progress", progress)
    run, writer = read_checkpoint(path, system)
    return _finished(run, writer, progress)


_HISTORY = ("q", "v", "a", "lam", "angles")
"""What a solution keeps of each saved state."""


def _times(t_start: float, t_end: float, dt: object) -> tuple[float, float]:
    """Return the end time and the time step as numbers."""
    t_end = number("t_end", t_end, unit="s")
    if not t_end > t_start:
        refuse("t_end", t_end, f"after the start, {t_start:g} s")
    unit = "s, an Adaptive control or 'adaptive'"
    return t_end, number("dt", dt, positive=True, unit=unit)


def _check_checkpoint(path: str | Path | None, stride: int | None) -> None:
    """Raise an error if the path or the stride of checkpoints is unusable."""
    if path is not None:
        file_path("checkpoint", path)
    if stride is not None:
        integer("checkpoint_stride", stride, low=1)
        if path is None:
            refuse("checkpoint_stride", stride, "absent without the path of a checkpoint")


def _finished(run: Run, writer: Checkpoint | None, progress: bool) -> Solution:
    """Take the steps that are left."""
    steps, stepper, states, complete = run.steps, run.stepper, run.states, False
    checks = RunChecks(run.system, stepper, run.state)
    if writer is not None:
        run.mark()
    try:
        with progress_bar(steps.total, progress, "simulate", "step") as bar:
            while not steps.done:
                run.state = steps.advance(stepper, run.state)
                kept = steps.taken % run.save_every == 0 or steps.done
                if kept:
                    states.append(run.state)
                checks.see(run.state, kept=kept)
                if writer is not None:
                    run.mark()
                    writer.offer(run)
                if bar is not None:
                    bar.update(steps.progress - bar.n)
        complete = True
        if writer is not None:
            writer.write_or_warn(run)
    except StepError as error:
        _keep(states, run.state)
        error.solution = Solution.from_states(run.system, states, stepper, complete=False)
        checks.warn(error.solution)
        raise
    except KeyboardInterrupt:
        if writer is not None:
            writer.write_or_warn(run)
        _keep(states, run.state)
        time = run.state.time
        text = f"interrupted at t = {time:g} s; what was computed is returned"
        warn(MbdWarning(text, quantity="time", value=time))
    if states[-1].time == run.state.time:
        states[-1] = run.state  # with the integrator's memory, which a resumed history has not
    solution = Solution.from_states(run.system, states, stepper, complete=complete)
    checks.warn(solution)
    return solution


def _keep(states: list[State], last: State) -> None:
    """Keep the last state before a run ended early, between two that are kept anyway."""
    if last.time > states[-1].time:
        states.append(last)


def _resolved(system: SystemData, t: float, redundant: str, start: State | None) -> SystemData:
    choice("redundant", redundant, ("stop", "drop", "keep"))
    if redundant == "stop":
        return system
    system, found = fitted(system, t, None if start is None else start.q)
    return (
        system.without_rows([r.row for r in found], least_norm=redundant == "keep")
        if found
        else system
    )


@contextmanager
def progress_bar(total: int, show: bool, title: str, unit: str) -> Iterator[Any]:
    """Show a bar of tqdm; None if it is not to be shown, or tqdm is not installed."""
    if not show:
        yield None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        warn(MbdWarning("no progress bar: tqdm is not installed (pip install tqdm)"))
        yield None
        return
    with tqdm(total=total, desc=title, unit=unit, mininterval=0.2) as bar:
        yield bar
