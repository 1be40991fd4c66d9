"""Parameter studies in a folder and on ranks: finished cases are kept and equal on all ranks."""

from __future__ import annotations

import functools
import os
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI
from threadpoolctl import threadpool_limits

from dolfinx_mbd import errors
from dolfinx_mbd.analyses import StudyError, sweep
from dolfinx_mbd.results import RunFileError
from tests.analyses.studies.cases import crank, interrupted, law, noted, product
from tests.analyses.studies.ranks import sweep_on_ranks
from tests.models.beams import slender_rod

GRID = {"x": [1.0, 2.0, 4.0], "y": [8.0, 0.0]}


@pytest.fixture
def shared(comm: MPI.Intracomm, tmp_path: Path) -> Path:
    """Return a folder that all ranks share."""
    path: Path = comm.bcast(tmp_path)
    return path


@pytest.fixture
def folder(comm: MPI.Intracomm, tmp_path: Path) -> Path:
    """Return a folder of this rank."""
    path = tmp_path / f"rank{comm.rank}"
    path.mkdir()
    return path


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Let Ctrl-C raise `KeyboardInterrupt`, also if a shell runs the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def calls(folder: Path) -> dict[int, int]:
    """Return how often each case was computed."""
    numbers = [int(path.name.split("-")[0]) for path in folder.iterdir()]
    return {x: numbers.count(x) for x in sorted(set(numbers))}


# ---- ranks --------------------------------------------------------------------------------------


def test_ranks_share_the_cases(comm: MPI.Intracomm, shared: Path) -> None:
    """Each case is computed once; if there are several ranks, the first one computes none."""
    folder = shared / "calls"
    if comm.rank == 0:
        folder.mkdir()
    comm.Barrier()
    numbers = [3, 1, 4, 5, 9]
    study = sweep_on_ranks(comm, noted, {"x": numbers}, fixed={"folder": str(folder)})
    assert study["result"].values.tolist() == [x * x for x in numbers]
    assert calls(folder) == dict.fromkeys(sorted(numbers), 1)
    processes = {int(path.name.split("-")[2]) for path in folder.iterdir()}
    ranks = comm.allgather(os.getpid())
    assert processes <= set(ranks[1:] or ranks)


@pytest.mark.slow
def test_numbers_are_the_same_bits_on_any_number_of_ranks(comm: MPI.Intracomm) -> None:
    """A mechanism and large matrices give the bits of plain calls on one thread."""
    speeds, rod = [20.0, 30.0, 40.0], slender_rod(bending=2, axial=0)
    fixed = {"damping": 0.01, "rod": rod}
    study = sweep_on_ranks(comm, crank, {"speed": speeds}, fixed=fixed)
    matrices = sweep_on_ranks(comm, product, {"seed": [1, 2, 3, 4]})
    with threadpool_limits(1, user_api="blas"):
        for k, speed in enumerate(speeds):
            run = crank(speed, 0.01, rod)
            assert np.array_equal(study["rod.eta"][k], run.body("rod").eta)
            assert np.array_equal(study["guide.force"][k], run.joint("guide").force)
        assert np.array_equal(matrices["result"], [product(seed) for seed in (1, 2, 3, 4)])


def test_a_case_that_fails_on_a_rank(comm: MPI.Intracomm) -> None:
    """The study does not hang, whether errors are recorded or raised."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        study = sweep_on_ranks(comm, law, GRID)
    values = [w.message.value for w in records if isinstance(w.message, errors.MbdWarning)]
    assert values == ([3] if comm.rank == 0 else [])
    assert np.flatnonzero(study["case_status"] == "failed").tolist() == [1, 3, 5]
    with pytest.raises(RuntimeError) as error:
        sweep_on_ranks(comm, law, GRID, on_error="raise")
    if comm.rank == 0:
        assert isinstance(error.value, StudyError)
        assert set(error.value.cases) <= {1, 3, 5}
        assert "no ratio for x = " in str(error.value)
    if comm.size == 1:
        assert error.value.cases == [1] and error.value.study["ratio"][0, 0] == 0.125
        assert error.value.study["case_status"].values.ravel().tolist()[2:] == ["missing"] * 4


def test_ctrl_c_on_a_rank(comm: MPI.Intracomm, ctrl_c: None) -> None:
    """Ctrl-C ends the study on rank 0, and the finished cases are returned."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        study = sweep_on_ranks(comm, interrupted, {"x": list(range(6))}, fixed={"at": 1})
    kinds = [w.message.quantity for w in records if isinstance(w.message, errors.MbdWarning)]
    assert kinds == (["cases done"] if comm.rank == 0 else [])
    status = study["case_status"].values
    assert status[1] == "missing" and set(status) <= {"done", "missing"}
    assert (
        study["result"].values[status == "done"].tolist()
        == np.flatnonzero(status == "done").tolist()
    )
    if comm.size <= 2:  # (a single process computes one case after the other)
        assert status.tolist() == ["done"] + 5 * ["missing"]


def test_several_ranks_without_an_executor(comm: MPI.Intracomm) -> None:
    """Without an executor, each rank would compute all cases, so that this raises an error."""
    if comm.size > 1:
        for workers in (None, 2):
            with pytest.raises(errors.InputError) as error:
                sweep(law, GRID, workers=workers)
            assert error.value.argument == "workers"
    assert sweep(law, {"x": [1.0], "y": [2.0]}, workers=1)["ratio"].values.tolist() == [[0.5]]


def test_progress(comm: MPI.Intracomm, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.MbdWarning)
        sweep_on_ranks(comm, law, GRID, progress="always")
    output = capfd.readouterr().err
    assert ("6/6" in output and "sweep" in output) == (comm.rank == 0)


def test_a_body_arrives_as_it_was_sent(comm: MPI.Intracomm) -> None:
    """The arrays are identical and read-only, so that kernels are not compiled again."""
    rod = slender_rod()
    rod = rod.replace(provenance={"rank": 0}) if comm.rank == 0 else None
    rod = comm.bcast(rod)
    assert rod.provenance["rank"] == 0 and not rod.second_moments.flags.writeable
    assert not rod.interfaces[0].motion.flags.writeable
    assert np.array_equal(rod.stiffness, slender_rod().stiffness)
    with pytest.raises(TypeError):
        rod.provenance["rank"] = 1


# ---- folders ------------------------------------------------------------------------------------


def test_finished_cases_are_not_computed_again(comm: MPI.Intracomm, shared: Path) -> None:
    folder, path = shared / "calls", shared / "new" / "study"
    if comm.rank == 0:
        folder.mkdir()
    comm.Barrier()
    settings = {"fixed": {"folder": str(folder)}, "path": path}
    numbers = [3, 1, 4, 5]
    first = sweep_on_ranks(comm, noted, {"x": numbers}, **settings)
    if comm.rank == 0:
        (path / "case-000002.npz").unlink()
        # case 0 (x = 3) becomes incomplete, and case 2 (x = 4) is missing
        data = (path / "case-000000.npz").read_bytes()
        (path / "case-000000.npz").write_bytes(data[:100])
    comm.Barrier()
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        second = sweep_on_ranks(comm, noted, {"x": numbers}, **settings)
    left_out = [w for w in records if isinstance(w.message, errors.FileWarning)]
    assert len(left_out) == (comm.rank == 0)
    assert calls(folder) == {1: 1, 3: 2, 4: 2, 5: 1}
    assert second["result"].values.tolist() == first["result"].values.tolist() == [9, 1, 16, 25]
    # one process reads all results from the folder, without a call
    for workers in (0, 1):
        alone = sweep(noted, {"x": numbers}, workers=workers, **settings)
        assert alone["result"].values.tolist() == [9, 1, 16, 25]
    comm.Barrier()
    assert calls(folder) == {1: 1, 3: 2, 4: 2, 5: 1}
    comm.Barrier()


def test_failures_are_kept_and_tried_again_on_request(folder: Path) -> None:
    settings: dict[str, Any] = {"workers": 1, "path": folder / "study"}
    studies = []
    for retry in (False, False, True):
        with pytest.warns(errors.MbdWarning) as records:
            studies.append(sweep(law, GRID, retry_failed=retry, **settings))
        assert [getattr(w.message, "value", None) for w in records] == [3]
    first, loaded, tried = studies
    assert loaded.identical(first)
    with pytest.raises(StudyError) as error:
        sweep(law, GRID, **settings, on_error="raise")
    assert error.value.cases == [1, 3, 5]
    repeated = (tried["case_seconds"] != first["case_seconds"]).values
    assert repeated.tolist() == (first["case_error"] != "").values.tolist()


@pytest.mark.parametrize(
    ("change", "differences"),
    [
        ({"parameters": {"x": [1.0, 3.0], "y": [2.0]}}, ["parameter 'x' differs"]),
        ({"parameters": {"x": [1.0, 2.0, 3.0], "y": [2.0]}}, ["'x' differs", "'y' differs"]),
        ({"run": lambda x, y: x - y}, ["run differs"]),
        ({"run": functools.partial(law, y=2.0)}, ["run differs"]),
        (
            {"parameters": {"x": [1.0, 2.0]}, "fixed": {"y": 2.0}},
            ["parameter 'y' is missing", "fixed argument 'y' is new"],
        ),
    ],
)
def test_another_study_is_refused(folder: Path, change: dict, differences: list[str]) -> None:
    settings = {"run": law, "parameters": {"x": [1.0, 2.0], "y": [2.0]}}
    settings |= {"workers": 1, "path": folder / "study"}
    sweep(**settings)
    with pytest.raises(RunFileError) as error:
        sweep(**settings | change)
    assert error.value.path == str(folder / "study")
    assert all(text in str(error.value) for text in differences)


def test_the_identity_of_a_study(folder: Path) -> None:
    """Names and data of the function, and the list of cases, identify a study."""

    def scaled(factor: float) -> Any:
        def run(x: float, rod: Any) -> float:
            return factor * x * rod.total_mass

        return run

    settings = {"parameters": {"x": [1.0, 2.0]}, "workers": 1, "path": folder / "study"}
    rod = slender_rod()
    first = sweep(scaled(2.0), fixed={"rod": rod}, **settings)
    second = sweep(scaled(2.0), fixed={"rod": slender_rod()}, **settings)
    listed = settings | {"parameters": [{"x": np.float64(1.0)}, {"x": 2.0}]}
    assert second.identical(first)
    assert sweep(scaled(2.0), fixed={"rod": rod}, **listed)["result"].dims == ("case",)
    stiffer = rod.replace(stiffness=2 * rod.stiffness, modes=())
    for run, fixed in ((scaled(3.0), rod), (scaled(2.0), stiffer)):
        with pytest.raises(RunFileError):
            sweep(run, fixed={"rod": fixed}, **settings)


def test_a_study_that_has_no_case_yet_may_change(folder: Path, ctrl_c: None) -> None:
    """A folder without a case contains no results of another study."""
    settings: dict[str, Any] = {"workers": 1, "path": folder / "study"}
    with pytest.warns(errors.MbdWarning) as records:
        sweep(interrupted, {"x": [7]}, fixed={"at": 7}, **settings)
    assert [getattr(w.message, "value", None) for w in records] == [0]
    study = sweep(law, {"x": [7.0], "y": [2.0]}, **settings)
    assert study["ratio"].values.tolist() == [[3.5]]


def test_a_folder_that_cannot_be_made(folder: Path) -> None:
    (folder / "file").touch()
    with pytest.raises(OSError, match="file"):
        sweep(law, GRID, workers=1, path=folder / "file" / "study")


def test_a_full_disk_does_not_end_the_study(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dolfinx_mbd.results.files import case_files

    def full(*_: Any, **options: Any) -> Path:
        raise OSError(28, "cannot write case of a study (No space left on device)")

    monkeypatch.setattr(case_files, "write_run", full)
    with pytest.warns(errors.FileWarning) as records:
        study = sweep(law, {"x": [1, 2, 3], "y": [1]}, workers=1, path=folder / "study")
    assert (study["case_status"] == "done").all() and len(records) == 3


def test_ctrl_c_keeps_finished_cases(folder: Path, ctrl_c: None) -> None:
    """A case that catches Ctrl-C and returns, such as `simulate`, does not count as finished."""
    numbers, path = [10, 20, 30, 40], folder / "study"
    settings: dict[str, Any] = {"fixed": {"at": 30}, "path": path}
    with pytest.warns(errors.MbdWarning) as records:
        study = sweep(interrupted, {"x": numbers}, workers=1, **settings)
    (warning,) = (w.message for w in records if isinstance(w.message, errors.MbdWarning))
    assert (warning.quantity, warning.value, warning.limit) == ("cases done", 2, 4)
    assert study["case_status"].values.tolist() == ["done", "done", "missing", "missing"]
    assert np.isnan(study["result"].values[2:]).all()
    assert study["result"].values[:2].tolist() == [10, 20]
    loaded = sweep(interrupted, {"x": numbers}, workers=0, **settings)
    assert loaded.identical(study)
    assert not list(path.glob(".*"))
