"""Run a mechanism over time: start, steps, what is kept, progress, checkpoints."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np

from dolfinx_mbd.multibody.assembly import Assembler
from dolfinx_mbd.multibody.files.checkpoints import Checkpoint, Run, read_checkpoint
from dolfinx_mbd.multibody.solution import Solution
from dolfinx_mbd.multibody.start import consistent_state, redundancies
from dolfinx_mbd.multibody.stepping.integrators import GeneralizedAlpha, StepError, Stepper
from dolfinx_mbd.multibody.stepping.step_control import Adaptive, AdaptiveSteps, FixedSteps, Steps
from dolfinx_mbd.multibody.system import State, System
from dolfinx_mbd.multibody.threads import one_thread

__all__ = ["resume", "simulate"]


@one_thread()  # the sums of several have other bits, and what is solved is small
def simulate(
    system: System,
    *,
    t_end: float,
    dt: float | Adaptive | Literal["adaptive"],
    t_start: float = 0.0,
    method: GeneralizedAlpha | None = None,
    tolerance: float = 1e-8,
    elastic_start: Literal["quasi-static", "undeformed"] = "quasi-static",
    start: State | None = None,
    rates: Mapping[str, float] | None = None,
    redundant: Literal["stop", "drop", "keep"] = "stop",
    reuse: bool = True,
    save_every: int = 1,
    progress: bool = False,
    checkpoint: str | Path | None = None,
    every: int | None = None,
) -> Solution:
    """Simulate a system from ``t_start`` to ``t_end`` with fixed or adaptive steps.

    The run is the same, bitwise, on every MPI rank that does it and every time it is done; BLAS has
    one thread meanwhile.

    Args:
        system: The mechanism; it is not changed.
        t_end: End time, s; the last step ends there.
        dt: Step, s; the number of steps is rounded, the step fitted to it.  Or an
            :class:`Adaptive` control; ``adaptive``: the one with its defaults.
        t_start: Start time, s.
        method: A row of the generalized-α family; None: ρ∞ = 0.8.
        tolerance: Of Newton's method, relative to the forces that act (:class:`Stepper`).
        elastic_start: See :func:`~dolfinx_mbd.multibody.start.consistent_state`.
        start: A state to start from instead; ``t_start`` and ``elastic_start`` are then not used.
        rates: Rates of joints at the start, by name (rad/s or m/s), for mechanisms that are not
            driven.
        redundant: What to do with constraints that repeat others: ``stop`` with their names;
            ``drop`` them (their joints then carry no such force); ``keep`` them: the same motion,
            and joint forces with the least norm over all constraints.
        reuse: Whether the factorized iteration matrix is kept while it converges fast
            (:class:`Stepper`); results agree to the tolerance, steps take longer without.
        save_every: Keep every so manieth step; the first and the last are always kept.
        progress: Show a progress bar (with tqdm, where it is installed).
        checkpoint: A file to which the run is written now and then, from which :func:`resume` goes
            on, to the same bits; one that is there is replaced.  Under MPI every rank may write it.
        every: Steps between two checkpoints; None: about a minute.

    Returns:
        The solution by names.  After Ctrl-C: what was computed so far, with a warning and
        ``complete == False``.

    Raises:
        AssemblyError: If the mechanism cannot be put together.
        StepError: If a step does not converge; ``error.solution`` holds what was computed before.
        ValueError: If times or steps make no sense.
        OSError: If the first checkpoint cannot be written; later ones give a warning.
    """
    if start is not None:
        t_start = start.time
    _check_times(t_start, t_end, dt)
    if method is not None and not isinstance(method, GeneralizedAlpha):
        raise TypeError(
            "method must be a GeneralizedAlpha, for instance "
            f"GeneralizedAlpha.from_spectral_radius(0.8); got {method!r}"
        )
    if save_every < 1:
        raise ValueError(f"save_every must be at least 1, got {save_every}")
    if every is not None and (checkpoint is None or every < 1):
        raise ValueError(f"every must be at least 1 step, with a checkpoint's path; got {every}")
    if start is not None and len(start.q) != system.num_coordinates:
        raise ValueError(
            f"the start has {len(start.q)} coordinates, the system {system.num_coordinates}: it is "
            "the state of another system"
        )
    system = _resolved(system, t_start, redundant, start)
    stepper = Stepper(system, method, tolerance=tolerance, reuse=reuse)
    writer = None if checkpoint is None else Checkpoint(checkpoint, every, system)
    state = (
        start
        if start is not None
        else consistent_state(system, t_start, elastic=elastic_start, rates=rates)
    )
    steps: Steps
    if isinstance(dt, (Adaptive, str)):
        control = dt if isinstance(dt, Adaptive) else Adaptive()
        steps = AdaptiveSteps(control, system, state, t_end)
    else:
        count = max(1, round((t_end - t_start) / dt))
        steps = FixedSteps((t_end - t_start) / count, count)
    run = Run(system, stepper, steps, steps.begin(stepper, state), [state], save_every)
    if writer is not None:
        run.mark()
        writer.write(run)  # at once: a path that cannot be written is told before the work
    return _finished(run, writer, progress)


@one_thread()
def resume(path: str | Path, system: System, *, progress: bool = False) -> Solution:
    """Go on with a simulation from its checkpoint, to the same bits as if it had not stopped.

    Checkpoints go on to be written to the same file, as often as before.  That of a finished run
    gives its solution at once.

        run = mbd.resume(path, system) if path.exists() else mbd.simulate(..., checkpoint=path)

    Args:
        path: The checkpoint that :func:`simulate` wrote.
        system: The mechanism, built as it was.
        progress: Show a progress bar.

    Returns:
        The whole solution, from the start of the simulation.

    Raises:
        RunFileError: If the file is no checkpoint, damaged, of a newer version, or of another
            system; the message says what differs.
        StepError: As of :func:`simulate`.
        OSError: If the file cannot be read.
    """
    run, writer = read_checkpoint(path, system)
    return _finished(run, writer, progress)


def _check_times(t_start: float, t_end: float, dt: object) -> None:
    given = [("t_end", t_end), ("t_start", t_start)]
    if not isinstance(dt, Adaptive) and dt != "adaptive":
        given.insert(0, ("dt", dt))  # type: ignore[arg-type]
    for key, value in given:
        if not isinstance(value, (int, float, np.number)):
            raise TypeError(f"{key} must be a number of seconds, got {value!r}")
    if given[0][0] == "dt" and not (np.isfinite(given[0][1]) and given[0][1] > 0):
        raise ValueError(f"dt must be a positive number of seconds, got {dt}")
    if not (np.isfinite(t_end) and t_end > t_start):
        raise ValueError(f"t_end must be after the start ({t_start} s), got {t_end}")


def _finished(run: Run, writer: Checkpoint | None, progress: bool) -> Solution:
    """Take the steps that are left."""
    steps, stepper, states, complete = run.steps, run.stepper, run.states, False
    if writer is not None:
        run.mark()
    try:
        with _bar(steps.total, progress) as advance:
            before = 0
            while not steps.done:
                run.state = steps.advance(stepper, run.state)
                if steps.taken % run.save_every == 0 or steps.done:
                    states.append(run.state)
                if writer is not None:
                    run.mark()
                    writer.offer(run)
                if progress:
                    advance(steps.progress - before)
                    before = steps.progress
        complete = True
        if writer is not None:
            writer.write_or_warn(run)
    except StepError as error:
        _keep(states, run.state)
        error.solution = Solution.from_states(run.system, states, stepper, complete=False)
        raise
    except KeyboardInterrupt:
        if writer is not None:
            writer.write_or_warn(run)
        _keep(states, run.state)
        warnings.warn(
            f"interrupted at t = {run.state.time:g} s; what was computed is returned",
            RuntimeWarning,
            stacklevel=3,
        )
    if states[-1].time == run.state.time:
        states[-1] = run.state  # with the integrator's memory, which a resumed history has not
    solution = Solution.from_states(run.system, states, stepper, complete=complete)
    _check_dropped(solution)
    return solution


def _keep(states: list[State], last: State) -> None:
    """Keep the last state before a run ended early, between two that are kept anyway."""
    if last.time > states[-1].time:
        states.append(last)


def _resolved(system: System, t: float, redundant: str, start: State | None) -> System:
    if redundant not in ("stop", "drop", "keep"):
        raise ValueError(f"redundant must be 'stop', 'drop' or 'keep', got {redundant!r}")
    if redundant == "stop":
        return system
    found = redundancies(system, t, None if start is None else start.q)
    return (
        system.without_rows([r.row for r in found], least_norm=redundant == "keep")
        if found
        else system
    )


def _check_dropped(solution: Solution) -> None:
    """Warn if a dropped constraint turns out not to be held by the others."""
    whole = solution.system.whole
    if whole is solution.system:
        return
    at = Assembler(whole)
    for q, t in zip(
        solution.q[:: max(1, len(solution) // 50)],
        solution.time[:: max(1, len(solution) // 50)],
        strict=True,
    ):
        at.q[:] = q
        values = np.abs(at.constraints(float(t)))
        row = int(np.argmax(values))
        if values[row] > 1e-6:
            warnings.warn(
                f"{whole.constraint_name(row)} was left out as redundant at the start, but is off "
                f"by {values[row]:.3g} (m or rad) at t = {t:g} s: it holds something of its own",
                RuntimeWarning,
                stacklevel=3,
            )
            return


@contextmanager
def _bar(steps: int, show: bool) -> Iterator[Callable[[int], object]]:
    if not show:
        yield lambda n: None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        warnings.warn("no progress bar: tqdm is not installed (pip install tqdm)", stacklevel=5)
        yield lambda n: None
        return
    with tqdm(total=steps, desc="simulate", unit="step", mininterval=0.2) as bar:
        yield bar.update
