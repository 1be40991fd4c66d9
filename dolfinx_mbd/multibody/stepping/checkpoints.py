"""Periodic checkpoint files: a simulation restored from one continues bitwise equally.

Writing a checkpoint does not change the run. The file is replaced only when the new one is
complete, so that the process may be killed at any time.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from dolfinx_mbd.archive import errors_as, read_archive
from dolfinx_mbd.checks import instance
from dolfinx_mbd.errors import FileWarning, warn
from dolfinx_mbd.multibody.files.run_files import (
    HISTORY,
    check_system,
    run_kind,
    state_arrays,
    state_from,
    states_from,
    system_rows,
    write_run,
)
from dolfinx_mbd.multibody.model.system import SystemData
from dolfinx_mbd.multibody.stepping.integrators import Stepper
from dolfinx_mbd.multibody.stepping.run import RecordedRun, Run
from dolfinx_mbd.multibody.stepping.step_control import steps_from
from dolfinx_mbd.time_integration import GeneralizedAlpha

_KIND = run_kind("checkpoint")
_PERIOD = 60.0  # time between two checkpoints if no stride is given, s
_WRITING_RATIO = 20.0  # minimum ratio of the period to the time that writing takes


class Checkpoint:
    """Periodic checkpoints of a run in one file; without a path nothing is written.

    `stride` is the number of steps between two checkpoints; by default a checkpoint is written
    about every minute, or less often if writing takes long.
    """

    def __init__(self, path: str | Path | None, stride: int | None, system: SystemData) -> None:
        self.path, self.stride = path, stride
        self._system_header = {} if path is None else system_rows(system)
        self._written, self._duration = time.monotonic(), 0.0

    def update(self, run: RecordedRun) -> None:
        """Write the run if a checkpoint is due."""
        if self.stride is not None:
            due = run.steps.taken % self.stride == 0
        else:
            due = time.monotonic() - self._written > max(_PERIOD, _WRITING_RATIO * self._duration)
        if due:
            self.write_or_warn(run)

    def write_or_warn(self, run: RecordedRun) -> None:
        """Write the run, or warn if it cannot be written."""
        try:
            self.write(run)
        except OSError as error:
            warn(FileWarning(f"the run continues without a checkpoint: {error}"))

    def write(self, run: RecordedRun) -> None:
        """Write the run."""
        if self.path is None:
            return
        start = time.monotonic()
        header: dict[str, Any] = {
            **self._system_header,
            "every": self.stride,
            "method": asdict(run.stepper.method),
            "tolerance": run.stepper.tolerance,
            "reuse": run.stepper.reuse,
            "steps": run.steps.record(),
            "save_every": run.stride,
        }
        arrays = {key: np.array([getattr(s, key) for s in run.states]) for key in HISTORY}
        arrays |= state_arrays("now", run.state)
        arrays |= {f"stepper_{k}": np.asarray(value) for k, value in run.stepper.memory().items()}
        write_run(self.path, _KIND, header, arrays)
        self._written = time.monotonic()
        self._duration = self._written - start


def read_checkpoint(path: str | Path, system: SystemData) -> tuple[RecordedRun, Checkpoint]:
    """Return the run that a file contains, and a `Checkpoint` that writes to the same file."""
    instance("system", system, SystemData)
    header, arrays = read_archive(path, _KIND)
    with errors_as(_KIND, path):
        system = check_system(path, header, arrays, system)
        method = GeneralizedAlpha(**header["method"])
        reuse = bool(header.get("reuse", True))
        stepper = Stepper(system, method, tolerance=header["tolerance"], reuse=reuse)
        stepper.restore(
            {k.removeprefix("stepper_"): v for k, v in arrays.items() if "stepper_" in k}
        )
        state, steps = state_from("now", arrays), steps_from(header["steps"])
        run = Run(system, stepper, steps, state)
        recorded = RecordedRun(run, states_from(arrays), int(header["save_every"]))
        return recorded, Checkpoint(path, header["every"], system)
