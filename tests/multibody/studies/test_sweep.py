"""Parameter studies on a folder and on ranks: what is done stays, and is the same everywhere."""

from __future__ import annotations

import functools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd import errors
from dolfinx_mbd.multibody import CaseError, RunFileError, Study, sweep
from dolfinx_mbd.multibody.studies.sweep import dealt
from tests.models.beams import slender_rod
from tests.multibody.studies.cases import LIMIT, crank, interrupted, law, noted, product

GRID = {"x": [1.0, 2.0, 4.0], "y": [8.0, 0.0]}


@pytest.fixture
def shared(comm: MPI.Intracomm, tmp_path: Path) -> Path:
    """A folder that all ranks have in common."""
    path: Path = comm.bcast(tmp_path)
    return path


def calls(folder: Path) -> dict[int, int]:
    """How often each case was done."""
    found = [int(path.name.split("-")[0]) for path in folder.iterdir()]
    return {x: found.count(x) for x in sorted(set(found))}


def test_ranks_share_the_cases_and_have_the_same_study(comm: MPI.Intracomm, shared: Path) -> None:
    """Five cases, each done once, on two or three ranks by more than one of them."""
    folder = shared / "calls"
    if comm.rank == 0:
        folder.mkdir()
    comm.Barrier()
    numbers = [3, 1, 4, 5, 9]
    study = sweep(noted, {"x": numbers}, fixed={"folder": str(folder)}, comm=comm, workers=1)
    assert study["result"].tolist() == [x * x for x in numbers]
    assert calls(folder) == dict.fromkeys(sorted(numbers), 1)
    who = {path.name.split("-")[2] for path in folder.iterdir()}
    assert len(who) == comm.size
    assert len(set(comm.allgather(str(study)))) == 1


def test_numbers_are_the_same_bits_on_any_number_of_ranks(comm: MPI.Intracomm) -> None:
    """Against plain calls on one thread, of a mechanism and of large matrices."""
    from dolfinx_mbd.threads import one_thread

    speeds, rod = [20.0, 30.0, 40.0], slender_rod(bending=2, axial=0)
    study = sweep(
        crank, {"speed": speeds}, fixed={"damping": 0.01, "rod": rod}, comm=comm, workers=1
    )
    matrices = sweep(product, {"seed": [1, 2, 3, 4]}, comm=comm, workers=1)
    with one_thread():
        for k, speed in enumerate(speeds):
            run = crank(speed, 0.01, rod)
            assert np.array_equal(study["rod.eta"][k], run.body("rod").eta)
            assert np.array_equal(study["guide.force"][k], run.joint("guide").force)
        assert np.array_equal(matrices["result"], [product(seed) for seed in (1, 2, 3, 4)])
    assert len(set(comm.allgather(study["guide.force"].tobytes()))) == 1


def test_a_case_that_fails_on_one_rank(comm: MPI.Intracomm) -> None:
    """Nothing hangs, and all ranks say the same, whether it is kept or raised."""
    with pytest.warns(errors.MbdWarning, match="3 of 6 cases failed, the first of them case 1"):
        study = sweep(law, GRID, comm=comm, workers=1)
    assert [case.index for case in study.failed] == [1, 3, 5]
    with pytest.raises(
        CaseError, match=r"case 1 \(x=1, y=0\): ZeroDiv.* no ratio for x = 1"
    ) as told:
        sweep(law, GRID, comm=comm, workers=1, on_error="raise")
    texts = comm.allgather((str(told.value), str(told.value.study)))
    assert len(set(texts)) == 1
    assert told.value.case.index == 1 and told.value.study["ratio"][0, 0] == 0.125
    if comm.size == 1:
        assert [case.status for case in told.value.study.cases][2:] == ["missing"] * 4


def test_what_is_done_is_not_done_again(comm: MPI.Intracomm, shared: Path) -> None:
    folder, path = shared / "calls", shared / "new" / "study"
    if comm.rank == 0:
        folder.mkdir()
    comm.Barrier()
    settings = {"fixed": {"folder": str(folder)}, "comm": comm, "workers": 1, "path": path}
    numbers = [3, 1, 4, 5]
    first = sweep(noted, {"x": numbers}, **settings)
    comm.Barrier()
    if comm.rank == 0:
        (path / "case-000002.npz").unlink()
        data = (path / "case-000000.npz").read_bytes()
        (path / "case-000000.npz").write_bytes(data[:100])
    comm.Barrier()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        again = sweep(noted, {"x": numbers}, **settings)
    said = [str(w.message) for w in told if "a case is left out" in str(w.message)]
    assert len(said) == (comm.rank == 0)
    comm.Barrier()
    assert calls(folder) == {1: 1, 3: 2, 4: 2, 5: 1}
    assert again["result"].tolist() == first["result"].tolist() == [9, 1, 16, 25]
    # the folder itself is the study, and goes on in one process as well
    assert Study.load(path)["result"].tolist() == [9, 1, 16, 25]
    comm.Barrier()
    if comm.rank == 0:
        alone = sweep(noted, {"x": numbers}, **settings | {"comm": None})
        assert alone["result"].tolist() == [9, 1, 16, 25]
        assert calls(folder) == {1: 1, 3: 2, 4: 2, 5: 1}
    comm.Barrier()


def test_failures_are_kept_and_tried_again_if_asked(comm: MPI.Intracomm, shared: Path) -> None:
    settings = {"comm": comm, "workers": 1, "path": shared / "study"}
    with pytest.warns(errors.MbdWarning, match="3 of 6 cases failed"):
        first = sweep(law, GRID, **settings)
    with pytest.warns(errors.MbdWarning, match="3 of 6 cases failed"):
        kept = sweep(law, GRID, **settings)
    assert [c.seconds for c in kept.cases] == [c.seconds for c in first.cases]
    with pytest.raises(CaseError, match="case 1"):
        sweep(law, GRID, **settings, on_error="raise")
    with pytest.warns(errors.MbdWarning, match="3 of 6 cases failed"):
        tried = sweep(law, GRID, **settings, retry_failed=True)
    for case, old in zip(tried.cases, first.cases, strict=True):
        assert (case.seconds == old.seconds) == (old.error is None)


def reads(x: float) -> float:
    """It depends on a table of its module."""
    return x * LIMIT_HERE["sum"]


LIMIT_HERE = dict(LIMIT)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"parameters": {"x": [1.0, 3.0], "y": [2.0]}}, "parameter 'x' differs"),
        ({"parameters": {"y": [2.0], "x": [1.0, 2.0]}}, "how parameters are combined differs"),
        ({"run": lambda x, y: x - y}, "the function law is missing, the function <lambda> is new"),
        ({"run": functools.partial(law, y=2.0)}, "the function law differs"),
        (
            {"parameters": {"x": [1.0, 2.0]}, "fixed": {"y": 2.0}},
            "parameter 'y' is missing, fixed 'y' is new",
        ),
    ],
)
def test_another_study_is_refused(
    comm: MPI.Intracomm, shared: Path, change: dict, what: str
) -> None:
    settings = {"run": law, "parameters": {"x": [1.0, 2.0], "y": [2.0]}}
    settings |= {"comm": comm, "workers": 1, "path": shared / "study"}
    sweep(**settings)
    with pytest.raises(RunFileError, match=f"holds another study: .*{what}.* Give another path"):
        sweep(**settings | change)


def test_a_study_that_has_no_case_yet_may_change(comm: MPI.Intracomm, shared: Path) -> None:
    """One whose first case was interrupted holds nothing that could be mistaken."""
    settings = {"comm": comm, "workers": 1, "path": shared / "study"}
    with pytest.warns(errors.MbdWarning, match="interrupted after 0 of 1 cases"):
        sweep(interrupted, {"x": [7]}, fixed={"at": 7}, **settings)
    assert sweep(law, {"x": [7.0], "y": [2.0]}, **settings)["ratio"].tolist() == [[3.5]]


def test_what_the_function_reads_counts(
    comm: MPI.Intracomm, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"comm": comm, "workers": 1, "path": shared / "study"}
    sweep(reads, {"x": [1.0, 2.0]}, **settings)
    monkeypatch.setitem(LIMIT_HERE, "sum", 101.0)
    with pytest.raises(RunFileError, match="the function reads differs"):
        sweep(reads, {"x": [1.0, 2.0]}, **settings)


def test_a_folder_that_cannot_be_made(comm: MPI.Intracomm, shared: Path) -> None:
    if comm.rank == 0:
        (shared / "file").touch()
    comm.Barrier()
    with pytest.raises(OSError, match="file"):
        sweep(law, GRID, comm=comm, workers=1, path=shared / "file" / "study")


def test_a_full_disk_does_not_end_the_study(
    comm: MPI.Intracomm, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dolfinx_mbd.multibody.studies import study_files

    write = study_files.write_run

    def full(path: Path, *rest: Any, **options: Any) -> Path:
        if "case" in path.name:
            raise OSError(28, "cannot write case of a study (No space left on device)")
        return write(path, *rest, **options)

    monkeypatch.setattr(study_files, "write_run", full)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        study = sweep(law, {"x": [1, 2, 3], "y": [1]}, comm=comm, workers=1, path=shared / "study")
    assert study.complete and not study.failed
    said = [w for w in told if "goes on without: " in str(w.message)]
    assert len(said) == len(dealt(range(3), comm.rank, comm.size))


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    """A run that returns in spite of it, as one with `simulate` does, is not taken for done."""
    numbers, path = [10, 20, 30, 40], tmp_path / "study"
    settings = {"fixed": {"at": 30}, "workers": 1, "path": path}
    with pytest.warns(errors.MbdWarning, match="interrupted after 2 of 4 cases"):
        study = sweep(interrupted, {"x": numbers}, **settings)
    assert not study.complete
    assert [case.status for case in study.cases] == ["done", "done", "missing", "missing"]
    assert np.isnan(study["result"][2:]).all() and study["result"][:2].tolist() == [10, 20]
    assert Study.load(path)["result"][:2].tolist() == [10, 20]
    assert not list(path.glob(".*"))


def test_ctrl_c_on_one_rank(comm: MPI.Intracomm) -> None:
    """The others do their part, and all know."""
    numbers = list(range(6))
    with pytest.warns(errors.MbdWarning, match="interrupted after"):
        study = sweep(interrupted, {"x": numbers}, fixed={"at": 1}, comm=comm, workers=1)
    shares = [dealt(numbers, rank, comm.size) for rank in range(comm.size)]
    share = next(share for share in shares if 1 in share)
    assert [case.index for case in study.cases if not case.done] == share[share.index(1) :]


def test_progress(comm: MPI.Intracomm, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    with pytest.warns(errors.MbdWarning, match="3 of 6 cases failed"):
        sweep(law, GRID, comm=comm, workers=1, progress=True)
    said = capfd.readouterr().err
    if comm.rank == 0:
        share = dealt(range(6), 0, comm.size)
        failed = sum(k % 2 for k in share)
        assert f"{len(share)}/{len(share)}" in said and (f"failed={failed}" in said or not failed)
    else:
        assert "sweep" not in said


def test_several_processes_of_mpi_without_a_communicator(comm: MPI.Intracomm) -> None:
    """Each would do all cases, in a pool of its own."""
    if comm.size > 1:
        with pytest.raises(ValueError, match=r"one of \d that MPI has started: give comm=MPI.COMM"):
            sweep(law, GRID, workers=2)
    assert sweep(law, {"x": [1.0], "y": [2.0]}, workers=1)["ratio"].tolist() == [[0.5]]


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_no_rank_has_all_of_a_row(size: int) -> None:
    """Whatever is slow in a grid of twelve by `size` cases is spread over the ranks."""
    cases = list(range(12 * size))
    shares = [dealt(cases, rank, size) for rank in range(size)]
    assert sorted(k for share in shares for k in share) == cases
    for share in shares:
        assert len(share) == 12
        columns = np.bincount(np.array(share) % size, minlength=size)
        assert columns.max() <= 8


def test_a_body_arrives_as_it_was_sent(comm: MPI.Intracomm) -> None:
    """Numbers to the bit, read-only as before, so that kernels are not compiled again."""
    rod = slender_rod()
    rod = rod.replace(provenance={"rank": 0}) if comm.rank == 0 else None
    rod = comm.bcast(rod)
    assert rod.provenance["rank"] == 0 and not rod.second_moments.flags.writeable
    assert not rod.interfaces[0].motion.flags.writeable
    assert np.array_equal(rod.stiffness, slender_rod().stiffness)
    with pytest.raises(TypeError):
        rod.provenance["rank"] = 1
