"""Run a mechanism over time: start, steps, what is kept, progress."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np

from dolfinx_mbd.multibody.integrators import GeneralizedAlpha, StepError, Stepper
from dolfinx_mbd.multibody.solution import Solution
from dolfinx_mbd.multibody.start import consistent_state
from dolfinx_mbd.multibody.system import State, System

__all__ = ["simulate"]


def simulate(
    system: System,
    *,
    t_end: float,
    dt: float,
    t_start: float = 0.0,
    method: GeneralizedAlpha | None = None,
    tolerance: float = 1e-8,
    elastic_start: Literal["quasi-static", "undeformed"] = "quasi-static",
    start: State | None = None,
    save_every: int = 1,
    progress: bool = False,
) -> Solution:
    """Simulate a system from ``t_start`` to ``t_end`` with fixed steps.

    The run is the same, bitwise, on every MPI rank that does it and every time it is done.

    Args:
        system: The mechanism; it is not changed.
        t_end: End time, s; the last step ends there.
        dt: Step, s; the number of steps is rounded, the step fitted to it.
        t_start: Start time, s.
        method: A row of the generalized-α family; None: ρ∞ = 0.8.
        tolerance: Of Newton's method, relative to the forces that act (:class:`Stepper`).
        elastic_start: See :func:`~dolfinx_mbd.multibody.start.consistent_state`.
        start: A state to start from instead; ``t_start`` and ``elastic_start`` are then not used.
        save_every: Keep every so manieth step; the first and the last are always kept.
        progress: Show a progress bar (with tqdm, where it is installed).

    Returns:
        The solution by names.  After Ctrl-C: what was computed so far, with a warning and
        ``complete == False``.

    Raises:
        AssemblyError: If the mechanism cannot be put together.
        StepError: If a step does not converge; ``error.solution`` holds what was computed before.
        ValueError: If times or steps make no sense.
    """
    if start is not None:
        t_start = start.time
    if not (np.isfinite(dt) and dt > 0):
        raise ValueError(f"dt must be a positive number of seconds, got {dt}")
    if not (np.isfinite(t_end) and t_end > t_start):
        raise ValueError(f"t_end must be after the start ({t_start} s), got {t_end}")
    if save_every < 1:
        raise ValueError(f"save_every must be at least 1, got {save_every}")
    steps = max(1, round((t_end - t_start) / dt))
    dt = (t_end - t_start) / steps
    stepper = Stepper(system, method, tolerance=tolerance)
    state = start if start is not None else consistent_state(system, t_start, elastic=elastic_start)
    states = [state]
    state = stepper.begin(state, dt)
    complete = False
    try:
        with _bar(steps, progress) as advance:
            for k in range(1, steps + 1):
                state = stepper.step(state, dt)
                if k % save_every == 0 or k == steps:
                    states.append(state)
                advance()
        complete = True
    except StepError as error:
        error.solution = Solution.from_states(system, states, stepper, complete=False)
        raise
    except KeyboardInterrupt:
        warnings.warn(
            f"interrupted at t = {state.time:g} s; what was computed is returned", RuntimeWarning, stacklevel=2
        )
    return Solution.from_states(system, states, stepper, complete=complete)


@contextmanager
def _bar(steps: int, show: bool) -> Iterator[Callable[[], object]]:
    if not show:
        yield lambda: None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        warnings.warn("no progress bar: tqdm is not installed (pip install tqdm)", stacklevel=4)
        yield lambda: None
        return
    with tqdm(total=steps, desc="simulate", unit="step", mininterval=0.2) as bar:
        yield bar.update
