"""Checkpoints of a simulation: all that the rest of the run depends on, to the bit.

A checkpoint holds the states that are kept, the state that is reached with the integrator's memory,
the factorized iteration matrix that the next steps share, and where the steps are.  Writing one
changes nothing in the run.  The file is replaced when the next one is complete, so that a process
may be killed at any time.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dolfinx_mbd.archive import damage_as, read_archive
from dolfinx_mbd.checks import instance
from dolfinx_mbd.errors import FileWarning, warn
from dolfinx_mbd.multibody.files.run_files import (
    check_system,
    run_kind,
    state_arrays,
    state_from,
    states_from,
    system_rows,
    write_run,
)
from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.stepping.integrators import Stepper
from dolfinx_mbd.multibody.stepping.step_control import Steps, steps_from
from dolfinx_mbd.time_integration import GeneralizedAlpha

__all__ = ["Checkpoint", "Mark", "Run", "read_checkpoint"]

_KIND = run_kind("checkpoint")
_PERIOD = 60.0  # s of the clock between two checkpoints, unless steps are counted
_SHARE = 20.0  # and at least so many times what writing one takes


class Mark(NamedTuple):
    """What was reached: the state, how many are kept, and the records of steps and stepper."""

    state: State
    kept: int
    steps: dict[str, Any]
    memory: dict[str, Any]


@dataclass
class Run:
    """A simulation between two steps.

    Attributes:
        system: With the constraints that are kept.
        stepper: The method.
        steps: Which steps it takes, and where they are.
        state: What is reached.
        states: What is kept.
        save_every: Keep every so manieth step.
        marked: What was reached with the last whole step, where that is written.
    """

    system: SystemData
    stepper: Stepper
    steps: Steps
    state: State
    states: list[State]
    save_every: int
    marked: Mark | None = None

    def mark(self) -> None:
        """Note what is reached: a step that is interrupted may change steps and stepper."""
        self.marked = Mark(self.state, len(self.states), self.steps.record(), self.stepper.memory())


class Checkpoint:
    """Writes a run to a file now and then.

    Args:
        path: Of the file.
        every: Steps between two; None: about a minute, and longer where writing takes long.
        system: The system of the run.
    """

    def __init__(self, path: str | Path, every: int | None, system: SystemData) -> None:
        self.path, self.every = Path(path), every
        self._rows = system_rows(system)
        self._written, self._took = time.monotonic(), 0.0

    def offer(self, run: Run) -> None:
        """Write the run if it is time to; a warning if it cannot be written."""
        if self.every is not None:
            due = run.steps.taken % self.every == 0
        else:
            wait = max(_PERIOD, _SHARE * self._took)
            due = time.monotonic() - self._written > wait
        if due:
            self.write_or_warn(run)

    def write_or_warn(self, run: Run) -> None:
        """Write the run; that it cannot be written does not end it."""
        try:
            self.write(run)
        except OSError as error:
            warn(FileWarning(f"the run goes on without: {error}"))

    def write(self, run: Run) -> None:
        """Write what the run has marked.

        Raises:
            OSError: If the file cannot be written.
        """
        start = time.monotonic()
        assert run.marked is not None
        state, number, steps, memory = run.marked
        header: dict[str, Any] = {
            **self._rows,
            "every": self.every,
            "method": asdict(run.stepper.method),
            "tolerance": run.stepper.tolerance,
            "reuse": run.stepper.reuse,
            "steps": steps,
            "save_every": run.save_every,
        }
        arrays = {
            key: np.array([getattr(kept, key) for kept in run.states[:number]])
            for key in ("time", "q", "v", "a", "lam", "angles")
        }
        arrays |= state_arrays("now", state)
        arrays |= {f"stepper_{key}": np.asarray(value) for key, value in memory.items()}
        write_run(self.path, _KIND, header, arrays)
        self._written = time.monotonic()
        self._took = self._written - start


def read_checkpoint(path: str | Path, system: SystemData) -> tuple[Run, Checkpoint]:
    """A run as a checkpoint holds it, and the checkpoint to go on writing to.

    Raises:
        RunFileError: If the file is none, damaged, of a newer version, or of another system.
        OSError: If it cannot be read.
    """
    instance("system", system, SystemData)
    header, arrays = read_archive(path, _KIND)
    with damage_as(_KIND, path):
        system = check_system(path, header, arrays, system)
        method = GeneralizedAlpha(**header["method"])
        reuse = bool(header.get("reuse", True))
        stepper = Stepper(system, method, tolerance=header["tolerance"], reuse=reuse)
        prefix = "stepper_"
        memory = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        stepper.restore(memory)
        state = state_from("now", arrays)
        steps = steps_from(header["steps"], system, state)
        run = Run(system, stepper, steps, state, states_from(arrays), int(header["save_every"]))
        return run, Checkpoint(path, header["every"], system)
