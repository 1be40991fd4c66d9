"""Damaged files of runs and studies: an error with the name of the file, or the same contents."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd.analyses import simulate, sweep
from dolfinx_mbd.dynamics import System
from dolfinx_mbd.errors import FileWarning, InputError, MbdWarning
from dolfinx_mbd.mechanism.mechanisms import slider_crank
from dolfinx_mbd.results import RunFileError, Solution
from dolfinx_mbd.results.recorded_run import read_run
from tests.analyses.studies.cases import law
from tests.models.beams import slender_rod

SYSTEM = slider_crank(
    slender_rod(bending=1, axial=0),
    speed=150.0,
    crank_radius=0.15,
    crank_mass=0.36,
    piston_mass=0.1,
)
Load = Callable[[], object]


def of_solution(run: Solution) -> tuple[Any, ...]:
    """Return the contents of a solution, which can be compared."""
    keys = ("time", "q", "v", "a", "lam", "angles")
    memory = repr(run.final_state.memory)
    return run.complete, run.iterations, memory, *(getattr(run, k).tobytes() for k in keys)


def solution(path: Path) -> Load:
    """Save a run, and return a function that loads it."""
    simulate(SYSTEM, t_end=1e-3, dt=1e-4).save(path)
    return lambda: of_solution(Solution.load(path, SYSTEM))


def checkpoint(path: Path) -> Load:
    """Write a run to a folder, copy its checkpoint to `path`, and copy it back for each load."""
    folder = path.with_suffix("")
    simulate(SYSTEM, t_end=1e-3, dt=1e-4, path=folder)
    shutil.copy(folder / "checkpoint.npz", path)

    def load() -> tuple[Any, ...]:
        shutil.copy(path, folder / "checkpoint.npz")
        try:
            with closing(read_run(folder, SYSTEM)) as record:
                stepper = record.run.stepper.memory()
                solution = record.solution()
        except RunFileError as error:
            assert error.path == str(folder / "checkpoint.npz")
            # the tests expect an error that names `path`
            raise RunFileError(f"{path}: {error}", path=path) from error
        memory = {key: np.asarray(value).tobytes() for key, value in stepper.items()}
        run = record.run
        return run.steps.record(), run.state.q.tobytes(), memory, len(solution), record.stride

    return load


def rows(path: Path) -> Load:
    """Do the same as `checkpoint` with `rows.npy`, the saved steps of a run."""
    folder = path.with_suffix("")
    simulate(SYSTEM, t_end=1e-3, dt=1e-4, path=folder)
    shutil.copy(folder / "rows.npy", path)

    def load() -> tuple[Any, ...]:
        shutil.copy(path, folder / "rows.npy")
        try:
            return of_solution(Solution.load(folder, SYSTEM))
        except RunFileError as error:
            assert error.path == str(folder / "rows.npy")
            raise RunFileError(f"{path}: {error}", path=path) from error

    return load


KINDS = pytest.mark.parametrize("write", [solution, checkpoint])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a path for each rank."""
    return tmp_path / f"run{MPI.COMM_WORLD.rank}.npz"


@KINDS
def test_flipped_bits_and_cut_files(path: Path, write: Callable[[Path], Load]) -> None:
    load = write(path)
    data, before = path.read_bytes(), load()
    rng = np.random.default_rng(2)
    bits = rng.choice(8 * len(data), 150, replace=False)
    # bits of the last entry of the directory and of the rest of the ZIP file
    tail = rng.choice(np.arange(8 * data.rindex(b"PK\x01\x02"), 8 * len(data)), 150, replace=False)
    count = 0
    for bit in [*bits.tolist(), *tail.tolist()]:
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            assert load() == before
        except RunFileError as error:
            assert error.path == str(path) and path.name in str(error)
            count += 1
    assert count > 150  # the other bits have no effect on the contents
    for size in (0, 1, 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(RunFileError) as exc_info:
            load()
        assert exc_info.value.path == str(path)


def test_damaged_rows(path: Path) -> None:
    """Each changed bit of a row and each missing byte raises an error."""
    load = rows(path)
    data, before = path.read_bytes(), load()
    start = len(data) - np.load(path).nbytes
    rng = np.random.default_rng(3)
    for bit in rng.choice(np.arange(8 * start, 8 * len(data)), 100, replace=False).tolist():
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(RunFileError, match="do not match"):
            load()
    for size in (0, start, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(RunFileError, match="ends early"):
            load()
    path.write_bytes(data + b"half a row")  # a process that was killed while it wrote a block
    assert load() == before


def test_files_of_version_0_1(path: Path) -> None:
    """Files without a checksum are read with a warning; many wrong values raise an error."""
    load = solution(path)
    before = load()
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(str(arrays.pop("header"))) | {"version": 1}
    del header["arrays"], header["sha256"]

    def rewrite(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        np.savez(path, header=np.array(json.dumps(header)), **arrays)

    rewrite(header, arrays)
    with pytest.warns(FileWarning):
        assert load() == before
    count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FileWarning)
        for key in header:
            for value in (None, [], {"a": 1}, "x", -1, [[[]]]):
                rewrite(header | {key: value}, arrays)
                count += not_loaded(load, path)
        for name in arrays:
            for array in (np.zeros(0), np.zeros((2, 2, 2)), np.array("x"), np.array(1.5)):
                rewrite(header, arrays | {name: array})
                count += not_loaded(load, path)
            rewrite(header, {key: value for key, value in arrays.items() if key != name})
            count += not_loaded(load, path)
    assert count > 2 * len(header)  # without a checksum, some wrong values are loaded


def not_loaded(load: Load, path: Path) -> bool:
    """Return whether loading a file raises an error with its name."""
    try:
        load()
    except RunFileError as error:
        assert error.path == str(path)
        return True
    return False


def test_damaged_cases_of_a_study_are_done_again(tmp_path: Path) -> None:
    """A warning names the file with a flipped bit, and the case is computed again."""
    folder = tmp_path / f"study{MPI.COMM_WORLD.rank}"
    values = {"x": [1.0, 2.0], "y": [2.0, 0.0]}
    with pytest.warns(MbdWarning):
        first = sweep(law, values, workers=1, path=folder).drop_vars("case_seconds")
    rng = np.random.default_rng(3)
    for case in sorted(folder.iterdir()):
        data, rejected = case.read_bytes(), 0
        bits = rng.choice(8 * len(data), 40, replace=False)
        for bit in [*bits.tolist(), None]:
            changed = bytearray(data)
            if bit is None:
                del changed[-30:]
            else:
                changed[bit // 8] ^= 1 << bit % 8
            case.write_bytes(changed)
            with warnings.catch_warnings(record=True) as records:
                warnings.simplefilter("always")
                repeated = sweep(law, values, workers=1, path=folder).drop_vars("case_seconds")
            assert repeated.identical(first)
            texts = [str(w.message) for w in records if isinstance(w.message, FileWarning)]
            assert all(case.name in text for text in texts)
            rejected += len(texts)
        assert rejected > 20


def test_cases_of_an_earlier_version_are_done_again(tmp_path: Path) -> None:
    folder = tmp_path / f"study{MPI.COMM_WORLD.rank}"
    first = sweep(law, {"x": [1.0], "y": [2.0]}, workers=1, path=folder)
    (case,) = folder.iterdir()
    with np.load(case) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(str(arrays.pop("header"))) | {"version": 1}
    del header["arrays"], header["sha256"]
    np.savez(case, header=np.array(json.dumps(header)), **arrays)
    with pytest.warns(FileWarning, match=case.name):
        repeated = sweep(law, {"x": [1.0], "y": [2.0]}, workers=1, path=folder)
    assert repeated["ratio"].identical(first["ratio"])


def test_wrong_arguments(path: Path) -> None:
    load = solution(path)
    load()
    for wrong in (None, "system", SYSTEM.bodies[0]):
        with pytest.raises(InputError) as error:
            Solution.load(path, wrong)  # type: ignore[arg-type]
        assert error.value.argument == "system"
        with pytest.raises(InputError) as error:
            read_run(path, wrong)  # type: ignore[arg-type]
        assert error.value.argument == "system"
    for wrong in (None, 5, ""):
        with pytest.raises(InputError) as error:
            Solution.load(wrong, SYSTEM)  # type: ignore[arg-type]
        assert error.value.argument == "path"
    assert isinstance(SYSTEM, System)
