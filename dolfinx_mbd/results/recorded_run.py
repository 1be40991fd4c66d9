"""A run whose states or outputs are saved in memory, or in blocks in a folder.

After each block, and at least once a minute, a checkpoint is written, from which the run continues
with bitwise identical results. Blocks and checkpoints do not change the run.
"""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.archive import errors_as
from dolfinx_mbd.checks import file_path, instance, reject
from dolfinx_mbd.dynamics.stepping.integrators import Stepper
from dolfinx_mbd.dynamics.stepping.run import Run
from dolfinx_mbd.dynamics.stepping.step_control import FixedSteps, steps_from
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.distributed_rows import Distribution
from dolfinx_mbd.results.files.run_files import (
    check_system,
    row_bytes,
    state_arrays,
    state_from,
    system_rows,
)
from dolfinx_mbd.results.files.run_folder import CHECKPOINT, KIND, RunFolder, read_folder
from dolfinx_mbd.results.outputs import Outputs
from dolfinx_mbd.results.run_checks import RunChecks
from dolfinx_mbd.results.saved_outputs import SavedOutputs
from dolfinx_mbd.results.saved_states import SavedStates
from dolfinx_mbd.results.solution import Solution, solution_of
from dolfinx_mbd.results.solution_files import saved_rows
from dolfinx_mbd.results.state_rows import StateRows
from dolfinx_mbd.time_integration import GeneralizedAlpha

__all__ = ["RecordedRun", "read_run"]

_PERIOD = 60.0  # longest time between two checkpoints, s
_BLOCK_BYTES, _BLOCK_ROWS = 2**23, 5000  # largest size and number of the states in a block
_UNLIMITED = sys.maxsize  # number of rows of a block that remains in memory


class RecordedRun:
    """A run, and its states or outputs after every `stride` steps.

    Args:
        run: The run.
        stride: Number of steps from one saved state to the next.
        outputs: Outputs that are saved instead of the states.
        folder: Folder to which the saved values are written; by default they remain in memory.
    """

    def __init__(
        self, run: Run, stride: int, outputs: Outputs | None = None, folder: Path | None = None
    ) -> None:
        self.run, self.stride, self.outputs = run, stride, outputs
        self.checks = RunChecks(run.system, run.stepper, run.state)
        self._distribution = Distribution(run.system)
        self._last = run.state.time
        self._rows: list[NDArray[np.void]] = []
        self._folder: RunFolder | None = None
        self._oil = run.stepper.assembler.loads.steady_content()
        remains_in_memory = outputs is None and folder is None
        self._limit = _UNLIMITED if remains_in_memory else self._block_rows()
        self._block = self._new_block()  # saved states that were not written yet
        self._block.append(run.state)
        if folder is not None:
            self.use(RunFolder(folder, system=run.system, comm=self._distribution.comm))

    def use(self, folder: RunFolder) -> None:
        """Write the saved values to a folder."""
        self._folder, self._limit = folder, self._block_rows()
        self._identity = system_rows(self.run.system)
        self._written = time.monotonic()

    def _block_rows(self) -> int:
        """Return the largest number of states in a block that is written."""
        return min(_BLOCK_ROWS, 1 + _BLOCK_BYTES // row_bytes(self.run.state, self._oil))

    def advance(self) -> State:
        """Take one step, save the state if it is due, and return it."""
        state = self.run.advance()
        self.checks.update(state, saved=self._is_due)
        self.record()
        return state

    @property
    def _is_due(self) -> bool:
        """Return whether the present state is one that is saved."""
        return self.run.steps.taken % self.stride == 0 or self.run.steps.done

    def record(self) -> None:
        """Save the present state if it is due and not saved yet; write a block if it is full."""
        if self._is_due and self._last < self.run.state.time:
            self._block.append(self.run.state)
            self._last = self.run.state.time
        if len(self._block) >= self._limit or self._is_checkpoint_due():
            self.write()

    def _new_block(self) -> StateRows:
        """Return an empty block, whose arrays have the size of the whole run if it is known."""
        remains, steps = self._limit == _UNLIMITED, self.run.steps
        rows = self._limit
        if remains:
            rows = 2 + steps.total // self.stride if isinstance(steps, FixedSteps) else 0
        return StateRows(
            self.run.system, self._distribution, rows or None, local=remains, oil=self._oil
        )

    def _is_checkpoint_due(self) -> bool:
        """Return whether a checkpoint is due; ranks that share a mesh write it together."""
        if self._folder is None:
            return False
        late, comm = time.monotonic() - self._written > _PERIOD, self._distribution.comm
        return late if comm is None else bool(comm.bcast(late, root=0))

    def write(self) -> None:
        """Move the block to the saved values, and write a checkpoint."""
        if self._limit == _UNLIMITED:
            return
        if self._block:
            block = solution_of(self.run.system, self._block.saved(), self.run.state)
            self.checks.inspect(block)
            rows = _saved_rows(block, self._block, self.outputs)
            if self._folder is None:
                self._rows.append(rows)
            else:
                self._folder.append(rows)
            self._block.clear()
        if self._folder is not None:
            header, arrays = self._checkpoint()
            self._folder.write(header, arrays)
        self._written = time.monotonic()

    def solution(self) -> Solution:
        """Return the saved values, with the present state as the last state."""
        counts = {key: getattr(self.run.stepper, key) for key in ("iterations", "factorizations")}
        facts: dict[str, Any] = {"complete": self.run.steps.done, **counts}
        saved: SavedStates | SavedOutputs
        if self._limit == _UNLIMITED:
            saved = self._block.saved(self.run.state)
            run = solution_of(self.run.system, saved, self.run.state, **facts)
            self.checks.inspect(run)
            return run
        if self._folder is None:
            if self._block:
                self.write()
            assert self.outputs is not None
            names = [*self.outputs.names]
            saved = SavedOutputs(self.run.system, np.concatenate(self._rows), names)
        else:
            assert self._folder.rows is not None
            saved = saved_rows(self.run.system, self._folder.rows, self._requested_outputs())
        return solution_of(self.run.system, saved, self.run.state, **facts)

    def close(self) -> None:
        """Permit other processes to write to the folder."""
        if self._folder is not None:
            self._folder.close()

    def _requested_outputs(self) -> list[str] | None:
        """Return the names of the outputs, or None if the states are saved."""
        return None if self.outputs is None else [*self.outputs.names]

    def _checkpoint(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the header and the arrays of a checkpoint."""
        header = {
            **self._identity,
            "method": asdict(self.run.stepper.method),
            "tolerance": self.run.stepper.tolerance,
            "reuse": self.run.stepper.reuse,
            "steps": self.run.steps.record(),
            "stride": self.stride,
            "requested": self._requested_outputs(),
            "functions": [] if self.outputs is None else [*self.outputs.functions],
            "checks": self.checks.memory(),
            "complete": self.run.steps.done,
            "iterations": self.run.stepper.iterations,
            "factorizations": self.run.stepper.factorizations,
            "last": self._last,
        }
        memory = {f"stepper_{k}": np.asarray(v) for k, v in self.run.stepper.memory().items()}
        return header, state_arrays("now", self.run.state) | memory


def read_run(path: str | Path, system: System, outputs: Outputs | None = None) -> RecordedRun:
    """Return the run that a folder contains; it continues in the same folder.

    If the outputs of the run are functions, which the folder does not contain, pass them again as
    `outputs`.
    """
    instance("system", system, System)
    path = file_path("path", path)
    header, arrays, rows = read_folder(path)
    with errors_as(KIND, path / CHECKPOINT):
        system = check_system(path, header, arrays, system)
        method = GeneralizedAlpha(**header["method"])
        stepper = Stepper(
            system, method, tolerance=header["tolerance"], reuse=bool(header["reuse"])
        )
        memory = {k: v for k, v in arrays.items() if k.startswith("stepper_")}
        stepper.restore({k.removeprefix("stepper_"): v for k, v in memory.items()})
        run = Run(system, stepper, steps_from(header["steps"]), state_from("now", arrays))
        requested, functions = header["requested"], header["functions"]
        if not functions:
            outputs = None if requested is None else Outputs([str(name) for name in requested])
        recorded = RecordedRun(run, int(header["stride"]), outputs)
        recorded.checks.restore(header["checks"])
        recorded._last = float(header["last"])
    if functions and (outputs is None or [*outputs.functions] != functions):
        names = ", ".join(map(repr, functions))
        reject("outputs", outputs, f"the functions {names}, as in the call of simulate")
    recorded.use(RunFolder(path, rows, comm=recorded._distribution.comm))
    recorded._block = recorded._new_block()
    return recorded


def _saved_rows(block: Solution, states: StateRows, outputs: Outputs | None) -> NDArray[np.void]:
    """Return the states or outputs of a block as an array with one row per time."""
    if outputs is None:
        arrays = states.arrays()
    else:
        arrays = {"time": block.time, **outputs.arrays(block)}
    rows = np.empty(len(block), [(key, "<f8", v.shape[1:]) for key, v in arrays.items()])
    for key, values in arrays.items():
        rows[key] = values
    return rows
