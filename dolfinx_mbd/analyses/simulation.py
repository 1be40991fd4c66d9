"""Simulation of a mechanism over time, and its continuation in a folder."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Literal

from dolfinx_mbd.analyses.simulator import Simulator, one_blas_thread
from dolfinx_mbd.checks import file_path, instance, integer, memory, number
from dolfinx_mbd.dynamics.stepping.integrators import StepError
from dolfinx_mbd.dynamics.stepping.step_control import Adaptive
from dolfinx_mbd.errors import MbdWarning, warn
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.progress import Progress, is_shown, progress_bar
from dolfinx_mbd.results.distributed_rows import Distribution
from dolfinx_mbd.results.files.run_files import row_bytes
from dolfinx_mbd.results.files.run_folder import check_disk
from dolfinx_mbd.results.outputs import Output, Outputs, Requests
from dolfinx_mbd.results.recorded_run import RecordedRun, read_run
from dolfinx_mbd.results.solution import Solution
from dolfinx_mbd.time_integration import GeneralizedAlpha


@one_blas_thread()
def simulate(
    system: System,
    *,
    t_end: float,
    dt: float | Adaptive | Literal["adaptive"],
    method: GeneralizedAlpha | None = None,
    tolerance: float = 1e-8,
    start: State | Mapping[str, float] | None = None,
    elastic_start: Literal["quasi-static", "undeformed"] = "quasi-static",
    redundant: Literal["stop", "drop", "keep"] = "stop",
    stride: int = 1,
    progress: Progress = False,
    outputs: Requests | None = None,
    path: str | Path | None = None,
) -> Solution:
    """Simulate a system with fixed or adaptive steps.

    The results are bitwise identical on every MPI rank and in every repetition; BLAS uses one
    thread during the simulation. Repetitions with a `MeshBody` agree to about 1e-9 if MUMPS
    factorizes its matrix on several ranks, because MUMPS does not add in the same order; other
    solvers do.

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
        progress: Whether to show a bar (with tqdm) on a terminal or in a notebook; "always"
            also shows it if the output goes to a file.
        outputs: Quantities to save instead of the states, which saves memory: names of bodies,
            joints, drivers and loads, of their quantities (``pin.force``) or components
            (``pin.force.x``) as in `Solution.histories`; or functions by name. The argument of a
            function is a `Solution` at some of the times; it returns one number per time. By
            default all states are saved, from which all quantities follow.
        path: Folder to which the run is written in blocks, so that the memory does not grow.
            If the run is interrupted, `resume` continues it with bitwise identical results;
            `Solution.load` reads it. An earlier run of the same mechanism in the folder is
            replaced.

    Returns:
        The solution, with the histories of bodies, joints and loads by their names; with `path`
        they are read from the folder when they are used. After Ctrl-C, the solution contains the
        results so far, with a warning and ``complete == False``.

    Raises:
        AssemblyError: The mechanism cannot be assembled.
        StepError: A step does not converge; ``error.solution`` contains the results before it.
        InputError: An argument is invalid, or the angle, rate and acceleration of a driver
            contradict each other.
        OSError: The folder cannot be written.

    Example:
        >>> run = mbd.simulate(pendulum, t_end=0.5, dt=1e-3)
        >>> print(f"{run.joint('pin').rotation[-1]:.4f} rad")
        -1.1637 rad
        >>> run = mbd.simulate(pendulum, t_end=0.5, dt="adaptive", start={"pin": 2.0})
        >>> print(f"{run.joint('pin').rotation[-1]:.2f} rad")
        -0.21 rad
        >>> run = mbd.simulate(pendulum, t_end=0.5, dt=1e-3, outputs=["pin", "bob.position"])
        >>> run.joint("pin").force.shape, run.body("bob").position.shape
        ((501, 3), (501, 3))
    """
    control = Adaptive() if isinstance(dt, str) and dt == "adaptive" else dt
    stride = integer("stride", stride, low=1, high=sys.maxsize)
    is_shown(progress)  # checks the argument
    folder = None if path is None else file_path("path", path)
    requests = None if outputs is None else Outputs(outputs)
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
    state = simulator.state
    # Oil content of films with cavitation that conserves mass, which is saved with each state
    oil = simulator.stepper.assembler.loads.steady_content()
    size = row_bytes(state, oil)
    if requests is not None:
        first = requests.arrays(Solution(simulator.system, [state]))
        size = 8 * (1 + sum(values.size for values in first.values()))
    if not isinstance(control, Adaptive):
        total = (1 + simulator.steps.total / stride) * size
        if folder is None:
            distribution = Distribution(simulator.system)
            fraction = len(distribution.columns) / max(1, distribution.width)
            memory("dt", control, total * (fraction if requests is None else 1.0))
        else:
            check_disk(folder, total)
    run = RecordedRun(simulator, stride, requests, folder)
    run.write()  # before the first step, so that an invalid path raises an error immediately
    return _run_to_end(run, progress)


@one_blas_thread()
def resume(
    path: str | Path,
    system: System,
    *,
    outputs: Mapping[str, Output] | None = None,
    progress: Progress = False,
) -> Solution:
    """Continue a simulation in its folder, as if it had not been interrupted.

    The results are bitwise identical to those of an uninterrupted `simulate`. For a finished run,
    the solution is returned immediately.

    Args:
        path: The folder to which `simulate` wrote the run.
        system: The mechanism, built in the same way. Its names, numbers and arrays, and the names
            of its functions, are compared; a change inside a function is not detected.
        outputs: The functions by name, if the outputs of the run are functions.
        progress: Whether to show a bar (with tqdm) on a terminal or in a notebook; "always"
            also shows it if the output goes to a file.

    Returns:
        The whole solution, from the start of the simulation.

    Raises:
        RunFileError: The folder contains no run, the run is damaged or of a newer version, or it
            belongs to another system; the message names the differences.
        StepError: A step does not converge; see `simulate`.
        OSError: The folder cannot be read or written.

    Example:
        >>> run = mbd.simulate(pendulum, t_end=0.5, dt=1e-3, path="pendulum")
        >>> len(mbd.resume("pendulum", pendulum)) == len(run)
        True
    """
    is_shown(progress)  # checks the argument
    instance("outputs", outputs, (Mapping, type(None)))
    return _run_to_end(read_run(path, system, Outputs(outputs)), progress)


def _run_to_end(record: RecordedRun, progress: Progress) -> Solution:
    """Take the remaining steps and return the solution."""
    with closing(record):
        try:
            with progress_bar(record.run.steps.total, progress, "simulate", "step") as bar:
                while not record.run.steps.done:
                    record.advance()
                    if bar is not None:
                        bar.update(record.run.steps.progress - bar.n)
            record.write()
        except StepError as error:
            record.write()
            error.solution = record.solution()
            record.checks.warn()
            raise
        except KeyboardInterrupt:
            record.record()
            record.write()
            time = record.run.state.time
            text = f"interrupted at t = {time:g} s; the results so far are returned"
            warn(MbdWarning(text, quantity="time", value=time))
        solution = record.solution()
        record.checks.warn()
        return solution
