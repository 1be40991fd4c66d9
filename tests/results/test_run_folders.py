"""Runs in folders: a run continues with identical results after it was interrupted or killed."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd import errors
from dolfinx_mbd.analyses import Simulator, resume, simulate
from dolfinx_mbd.dynamics import Adaptive, System
from dolfinx_mbd.mechanism.mechanisms import slider_crank
from dolfinx_mbd.results import RunFileError, Solution, recorded_run, run_checks
from dolfinx_mbd.results.files.run_folder import Rows, RunFolder
from dolfinx_mbd.results.recorded_run import RecordedRun
from tests.models.beams import slender_rod

SETTINGS = {"crank_radius": 0.15, "crank_mass": 0.36, "piston_mass": 0.0755}


def mechanism(torque: float = 20.0, damping: float = 0.02) -> System:
    """Return a slider-crank with a motor and a flexible rod."""

    def motor(t: float, angle: float, rate: float) -> float:
        return torque + 3.0 * np.sin(angle)

    rod = slender_rod(bending=2, axial=0)
    return slider_crank(rod, torque=motor, damping_ratio=damping, **SETTINGS)


def same(one: Solution, two: Solution) -> bool:
    """Return whether two runs are bitwise identical."""
    keys = ("time", "q", "v", "a", "lam", "angles")
    if "drive" in one.names() and "crank" in one.names():
        equal = all(np.array_equal(getattr(one, key), getattr(two, key)) for key in keys)
    else:  # outputs only
        pairs = one.histories(), two.histories()
        equal = pairs[0].keys() == pairs[1].keys()
        equal &= all(np.array_equal(value, pairs[1][key]) for key, value in pairs[0].items())
    work = (one.iterations, one.factorizations) == (two.iterations, two.factorizations)
    last = (one.final_state.memory["algorithmic"], two.final_state.memory["algorithmic"])
    return equal and work and np.array_equal(*last)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a folder for each rank."""
    return tmp_path / f"run{MPI.COMM_WORLD.rank}"


def block_of(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Let a block, after which a checkpoint is written, have some number of saved states."""
    monkeypatch.setattr(recorded_run, "_BLOCK_ROWS", rows)


@pytest.mark.parametrize("dt", [1e-4, Adaptive(1e-4)], ids=["fixed", "adaptive"])
@pytest.mark.parametrize("rows", [2, 7])
@pytest.mark.parametrize("outputs", [None, ["rod", "drive.work"]], ids=["states", "outputs"])
def test_every_checkpoint_leads_to_the_same_end(
    path: Path, monkeypatch: pytest.MonkeyPatch, dt: float | Adaptive, rows: int, outputs: Any
) -> None:
    """Each copy of a checkpoint is resumed with a new system."""
    options: dict[str, Any] = {"t_end": 0.01, "dt": dt, "stride": 3}
    whole, copies = simulate(mechanism(), outputs=outputs, **options), []
    write = RecordedRun.write

    def copied(self: RecordedRun) -> None:
        write(self)
        copies.append(path.with_name(f"{path.name} {len(copies)}"))
        shutil.copytree(path, copies[-1])

    block_of(monkeypatch, rows)
    monkeypatch.setattr(RecordedRun, "write", copied)
    run = simulate(mechanism(), path=path, outputs=outputs, **options)
    monkeypatch.undo()
    assert same(run, whole)
    assert len(copies) > 2
    for folder in copies[:: max(1, len(copies) // 4)] + copies[-1:]:
        assert same(resume(folder, mechanism()), whole)


LONG = {"t_end": 0.06, "dt": 2e-5, "stride": 10}

CHILD = """
import sys
sys.path.insert(0, {root!r})
from tests.results.test_run_folders import LONG, mechanism, recorded_run, simulate
recorded_run._BLOCK_ROWS = 5
simulate(mechanism(), path={path!r}, **LONG)
"""


def test_a_killed_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    """`kill -9` ends a run of 3,000 steps with a checkpoint every 50 steps."""
    if MPI.COMM_WORLD.rank:
        return
    path, root = tmp_path / "run", str(Path(__file__).parents[2])
    launched = ("OMPI", "PMIX", "PRTE", "PMI")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(launched)}
    command = [sys.executable, "-c", CHILD.format(root=root, path=str(path))]
    child = subprocess.Popen(command, env=environment)
    try:
        deadline = time.monotonic() + 120
        checkpoints: set[int] = set()  # inodes; the first file is written before any step
        while len(checkpoints) < 2 and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
            if (path / "checkpoint.npz").exists():
                checkpoints.add((path / "checkpoint.npz").stat().st_ino)
        assert child.poll() is None
    finally:
        child.kill()
        assert child.wait() == -signal.SIGKILL
    with pytest.warns(errors.FileWarning, match="the run has not ended"):
        part = Solution.load(path, mechanism())
    whole = simulate(mechanism(), **LONG)
    assert not part.complete and 1 < len(part) < len(whole)
    assert np.array_equal(part.q, whole.q[: len(part)])
    assert same(resume(path, mechanism()), whole)


class Motor:
    """A torque that can interrupt the run once, as Ctrl-C does."""

    def __init__(self) -> None:
        self.torque = 20.0
        self._stop_at = np.inf  # no part of the fingerprint

    def __call__(self, t: float, angle: float, rate: float) -> float:
        if t > self._stop_at:
            self._stop_at = np.inf
            raise KeyboardInterrupt
        return self.torque


@pytest.mark.parametrize("dt", [1e-4, Adaptive(1e-4)], ids=["fixed", "adaptive"])
def test_an_interrupted_run_goes_on_to_the_same_bits(path: Path, dt: float | Adaptive) -> None:
    """Ctrl-C in the middle of a step writes the state before it."""

    def driven(motor: Motor) -> System:
        return slider_crank(slender_rod(bending=2, axial=0), torque=motor, **SETTINGS)

    motor = Motor()
    motor._stop_at = 3.21e-3
    with pytest.warns(errors.MbdWarning, match="interrupted at t = 0.003"):
        part = simulate(driven(motor), t_end=0.006, dt=dt, path=path)
    assert not part.complete
    resumed = resume(path, driven(Motor()))
    assert resumed.complete
    assert same(resumed, simulate(driven(Motor()), t_end=0.006, dt=dt))


def test_a_finished_run_is_given_back(path: Path) -> None:
    run = simulate(mechanism(), t_end=0.002, dt=1e-4, path=path)
    resumed = resume(path, mechanism())
    assert resumed.complete
    assert same(run, resumed)
    # the solution can be the start of another run
    continued, expected = (
        simulate(mechanism(), t_end=0.003, dt=1e-4, start=r.final_state) for r in (resumed, run)
    )
    assert np.array_equal(continued.q, expected.q)


def test_dropped_constraints_stay_dropped(path: Path) -> None:
    from tests.dynamics.start.test_start import planar_crank

    settings = {"t_end": 0.02, "dt": 1e-3, "start": {"main": 20.0}, "redundant": "keep"}
    run = simulate(planar_crank(pins=True), path=path, **settings)
    resumed = resume(path, planar_crank(pins=True))
    assert same(run, resumed)
    assert np.array_equal(resumed.joint("guide").force, run.joint("guide").force)


def test_other_systems_and_files_are_refused(path: Path) -> None:
    simulate(mechanism(), t_end=0.001, dt=1e-4, path=path)
    with pytest.raises(RunFileError, match="load 'drive' differs"):
        resume(path, mechanism(torque=21.0))
    with pytest.raises(RunFileError, match="body 'rod' differs"):
        resume(path, mechanism(damping=0.03))
    with pytest.raises(FileNotFoundError, match="no run"):
        resume(path.with_name("none"), mechanism())
    file = path.with_suffix(".npz")
    Solution(mechanism(), [simulate(mechanism(), t_end=1e-4, dt=1e-4).final_state]).save(file)
    with pytest.raises(RunFileError, match="a run is saved in a folder"):
        resume(file, mechanism())
    with pytest.raises(OSError):
        simulate(mechanism(), t_end=0.001, dt=1e-4, path=file / "folder")
    (path / "notes.txt").write_text("mine")
    with pytest.raises(errors.OverwriteError, match=r"notes\.txt"):
        simulate(mechanism(), t_end=0.001, dt=1e-4, path=path)


def test_an_earlier_run_in_the_folder_keeps_its_data_in_memory(path: Path) -> None:
    first = simulate(mechanism(), t_end=0.002, dt=1e-4, path=path)
    before = first.q.copy()
    second = simulate(mechanism(), t_end=0.002, dt=5e-5, path=path)
    assert np.array_equal(first.q, before) and len(second) == 41
    assert len(simulate(mechanism(), t_end=0.001, dt=1e-4, path=path)) == 11


@pytest.mark.parametrize("complete", [True, False])
def test_a_run_of_another_mechanism_is_not_replaced(path: Path, complete: bool) -> None:
    if complete:
        simulate(mechanism(), t_end=0.001, dt=1e-4, path=path)
    else:
        simulator = Simulator(mechanism(), dt=1e-4, t_end=0.001)
        with closing(RecordedRun(simulator, 1, None, path)) as run:
            run.advance()
            run.write()
    files = {file.name: file.read_bytes() for file in path.iterdir()}
    for changed in (mechanism(torque=10.0), mechanism(damping=0.03)):
        with pytest.raises(errors.OverwriteError, match="another mechanism"):
            simulate(changed, t_end=0.001, dt=1e-4, path=path)
        assert {file.name: file.read_bytes() for file in path.iterdir()} == files
    assert len(simulate(mechanism(), t_end=0.001, dt=1e-4, path=path)) == 11  # not locked
    shutil.rmtree(path)
    assert len(simulate(mechanism(torque=10.0), t_end=0.001, dt=1e-4, path=path)) == 11


@pytest.mark.filterwarnings("error")
def test_no_file_remains_open(path: Path) -> None:
    """A file that is open when its object is deleted gives a warning, here an error."""
    unraisable: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        values = simulate(mechanism(), t_end=0.001, dt=1e-4, path=path).q[-1].copy()
        for load in (lambda: Solution.load(path, mechanism()), lambda: resume(path, mechanism())):
            run = load()
            gc.collect()
            assert np.array_equal(run.q[-1], values)
            del run
            gc.collect()
    finally:
        sys.unraisablehook = hook
    assert not unraisable


def test_only_one_process_writes_to_a_folder(path: Path) -> None:
    run = simulate(mechanism(), t_end=0.001, dt=1e-4, path=path)
    with closing(RunFolder(path)) as folder:
        if MPI.COMM_WORLD.size == 1:
            with pytest.raises(errors.InputError, match="another process writes"):
                simulate(mechanism(), t_end=0.001, dt=1e-4, path=path)
        else:  # the second rank writes the same rows to a temporary file
            second = simulate(mechanism(), t_end=0.001, dt=1e-4, path=path)
            assert same(run, second) and same(run, resume(path, mechanism()))
        assert folder.path == path


def test_a_full_disk_ends_a_run_that_can_continue(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Rows.append

    def full(self: Rows, rows: Any) -> None:
        if self.count > 4:
            raise OSError(28, "No space left on device")
        append(self, rows)

    block_of(monkeypatch, 3)
    monkeypatch.setattr(Rows, "append", full)
    with pytest.raises(OSError, match=r"No space left on device.*resume continues it"):
        simulate(mechanism(), t_end=0.001, dt=1e-4, path=path)
    monkeypatch.undo()
    assert same(resume(path, mechanism()), simulate(mechanism(), t_end=0.001, dt=1e-4))


def test_functions_among_the_outputs_are_given_again(path: Path) -> None:
    def speed(run: Solution) -> np.ndarray:
        return run.body("rod").omega[:, 2]

    motor = Motor()
    motor._stop_at = 1.21e-3
    rod = slender_rod(bending=2, axial=0)
    options: dict[str, Any] = {"t_end": 2e-3, "dt": 1e-4, "outputs": {"speed": speed}}
    with pytest.warns(errors.MbdWarning, match="interrupted"):
        simulate(slider_crank(rod, torque=motor, **SETTINGS), path=path, **options)
    with pytest.raises(errors.InputError, match="the functions 'speed'"):
        resume(path, slider_crank(rod, torque=Motor(), **SETTINGS))
    whole = simulate(slider_crank(rod, torque=Motor(), **SETTINGS), **options)
    system = slider_crank(rod, torque=Motor(), **SETTINGS)
    resumed = resume(path, system, outputs={"speed": speed})
    assert np.array_equal(resumed.histories()["speed"], whole.histories()["speed"])


def test_a_run_with_too_many_rows_for_the_disk(path: Path) -> None:
    with pytest.raises(errors.InputError, match=r"GB in .* but its disk has"):
        simulate(mechanism(), t_end=1e6, dt=1e-6, path=path)
    assert not path.exists()


@pytest.mark.parametrize("outputs", [None, ["rod.position"]], ids=["states", "outputs"])
def test_the_memory_of_a_long_run_does_not_grow(
    path: Path, monkeypatch: pytest.MonkeyPatch, outputs: Any
) -> None:
    """The memory in use after a block is constant, unlike the peak memory of the process.

    The rows of these 1,000 steps have 680 kB, or 32 kB if only outputs are saved.
    """
    write, memory = RecordedRun.write, []

    def measured(self: RecordedRun) -> None:
        write(self)
        gc.collect()
        memory.append(tracemalloc.get_traced_memory()[0])

    block_of(monkeypatch, 100)
    monkeypatch.setattr(run_checks, "_SAMPLES", 5)  # at most ten states for the energies
    monkeypatch.setattr(RecordedRun, "write", measured)
    system = mechanism()
    tracemalloc.start()
    try:
        run = simulate(system, t_end=0.01, dt=1e-5, path=path, outputs=outputs)
    finally:
        tracemalloc.stop()
    assert len(run) == 1001 and len(memory) > 10
    assert max(memory[2:]) < memory[2] + 20e3, memory  # bytes
