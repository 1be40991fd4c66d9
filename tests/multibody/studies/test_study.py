"""The table of a parameter study: grids, selection, failures, files."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd import errors
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.errors import OverwriteError
from dolfinx_mbd.multibody import Study, sweep
from dolfinx_mbd.multibody.files.run_files import RunFileError
from tests.models.beams import slender_rod
from tests.multibody.studies.cases import crank, law, product

X, Y = [1.0, 2.0, 4.0], [8.0, 0.0]


@pytest.fixture
def study() -> Study:
    """Two by three cases, of which those with y = 0 fail."""
    with pytest.warns(errors.MbdWarning, match=r"3 of 6 cases failed, .*case 1 \(x=1, y=0\): Zero"):
        return sweep(law, {"x": X, "y": Y}, workers=1)


def same(one: Study, two: Study) -> bool:
    """All that two studies hold, to the bit."""
    rows = [
        [(c.index, c.status, c.error, c.traceback, c.seconds) for c in s.cases] for s in (one, two)
    ]
    names = [*one.plan.values, *one.names()]
    equal = all(np.array_equal(one[n], two[n], equal_nan=one[n].dtype.kind == "f") for n in names)
    return rows[0] == rows[1] and equal and one.names() == two.names() and str(one) == str(two)


def test_results_are_shaped_as_the_grid(study: Study) -> None:
    x, y = np.meshgrid(X, Y, indexing="ij")
    assert study.shape == (3, 2) and len(study) == 6 and study.complete
    assert np.array_equal(study["x"], x) and np.array_equal(study["y"], y)
    good = y != 0
    assert np.array_equal(study["ratio"][good], (x / np.where(good, y, 1))[good])
    assert np.isnan(study["ratio"][~good]).all()
    assert study["row"].shape == (3, 2, 3)
    assert np.array_equal(study["row"][good], np.stack([x, y, x * y], -1)[good])
    assert study["kind"].tolist() == [["small", ""]] * 3
    assert study.names() == ["ratio", "row", "kind"]
    with pytest.raises(KeyError, match="unknown name 'peak'; the study has 'x', 'y', 'ratio'"):
        study["peak"]


def test_failures_are_results(study: Study) -> None:
    assert [case.index for case in study.failed] == [1, 3, 5]
    case = study.failed[1]
    assert case.error == "ZeroDivisionError: no ratio for x = 2.0"
    assert case.traceback.rstrip().endswith(case.error) and "in law" in case.traceback
    assert case.parameters == {"x": 2.0, "y": 0.0} and not case.values
    assert "x (3) × y (2); 3 done, 3 failed" in repr(study)
    text = str(study)
    assert "ratio: 0.125 in case 0 (x=1, y=8) to 0.5 in case 4 (x=4, y=8)" in text
    assert "case 5 (x=4, y=0) failed: ZeroDivisionError: no ratio for x = 4.0" in text


def test_a_part_by_values(study: Study) -> None:
    row = study.at(y=8.0)
    assert row.shape == (3,) and list(row.parameters) == ["x"]
    assert np.array_equal(row["ratio"], np.array(X) / 8.0)
    assert study.at(x=2.0, y=8.0)["ratio"] == 0.25
    assert row["y"].tolist() == [8.0] * 3 and row.at(x=2.0)["x"] == 2.0
    block = study.at(x=[4.0, 1.0])
    assert block.shape == (2, 2) and block["x"][:, 0].tolist() == [4.0, 1.0]
    assert np.array_equal(block["ratio"][:, 0], study["ratio"][[2, 0], 0])
    assert study.at(x=np.float64(4.0) * (1 + 1e-12)).cases[0].index == 4
    with pytest.raises(ValueError, match="x has no value 3; it has 1, 2, 4"):
        study.at(x=3.0)
    with pytest.raises(ValueError, match="one of 'x', 'y'; got 'z'"):
        study.at(z=3.0)


def test_cases_side_by_side() -> None:
    cases = [{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 2.0}, {"x": 3.0, "y": 6.0}]
    listed = sweep(law, cases, workers=1)
    lists = {name: [case[name] for case in cases] for name in ("x", "y")}
    zipped = sweep(law, lists, combine="zip", workers=1)
    for study in (listed, zipped):
        assert study.shape == (3,)
        assert study["ratio"].tolist() == [0.5, 1.5, 0.5]
        assert study["x"].tolist() == [1.0, 3.0, 3.0]
        assert study.at(x=3.0)["ratio"].tolist() == [1.5, 0.5]
        assert study.at(x=3.0, y=6.0).cases[0].index == 2


def test_histories_of_solutions() -> None:
    """A solution is kept as its histories; bodies are parameters like numbers."""
    rods = [slender_rod(bending=2, axial=0), slender_rod(bending=2, axial=0, young=7e10)]
    settings = {"speed": [20.0, 30.0], "rod": rods}
    study = sweep(crank, settings, fixed={"damping": 0.01}, workers=1)
    assert study["rod.eta"].shape == (2, 2, 21, 2)
    assert study["crank pin.force"].shape == (2, 2, 21, 3)
    assert "crank.eta" not in study.names()
    direct = crank(30.0, 0.01, rods[1])
    part = study.at(speed=30.0, rod=rods[1])
    assert np.array_equal(part["time"], direct.time)
    assert np.array_equal(part["rod.position"], direct.body("rod").position)
    assert isinstance(study["rod"][0, 1], ReducedBody)


def test_results_of_other_shapes() -> None:
    study = sweep(lambda n: np.arange(n), {"n": [2, 3]}, workers=1)
    with pytest.raises(ValueError, match=r"'result' has other shapes .*\(2,\), \(3,\)"):
        study["result"]
    assert study.cases[1].values["result"].tolist() == [0, 1, 2]
    assert study["n"].dtype.kind == "i"


def test_saved_and_read_back(study: Study, tmp_path: Path) -> None:
    path = study.save(tmp_path / "study")
    assert path.suffix == ".npz"
    again = Study.load(path)
    assert same(study, again)
    assert same(study.at(y=8.0), Study.load(study.at(y=8.0).save(path)))
    ragged = sweep(lambda n: {"a": np.arange(n), "b": n}, {"n": [2, 3]}, workers=1)
    back = Study.load(ragged.save(path))
    assert back.cases[1].values["a"].tolist() == [0, 1, 2] and back["b"].tolist() == [2, 3]
    rods = sweep(lambda rod: rod.total_mass, {"rod": [slender_rod(), slender_rod()]}, workers=1)
    assert Study.load(rods.save(path))["rod"].tolist() == ["rod", "rod"]
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(RunFileError, match="not a study, or truncated or damaged"):
        Study.load(path)
    with pytest.raises(FileNotFoundError, match="no study"):
        Study.load(tmp_path / "none.npz")
    with pytest.raises(OverwriteError):
        slender_rod().save(path)
    with pytest.raises(RunFileError, match="not a study"):
        Study.load(slender_rod().save(tmp_path / "body"))


def test_a_table_for_other_programs(study: Study, tmp_path: Path) -> None:
    with study.to_csv(tmp_path / "study.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:5] == ["case", "x", "y", "ratio", "row.1"]
    assert [float(row["ratio"]) for row in rows[::2]] == study["ratio"][:, 0].tolist()
    assert [float(row["row.3"]) for row in rows[::2]] == study["row"][:, 0, 2].tolist()
    assert [row["status"] for row in rows] == ["done", "failed"] * 3
    assert rows[3]["error"] == "ZeroDivisionError: no ratio for x = 2.0"
    third = sweep(lambda x: x / 3, {"x": [1.0, 2.0]}, workers=1)
    text = third.to_csv(tmp_path / "third.csv", ["result"]).read_text().splitlines()
    assert [float(line.split(",")[2]) for line in text[1:]] == [1.0 / 3, 2.0 / 3]  # to the bit
    with pytest.raises(OSError, match="cannot write table"):
        study.to_csv(tmp_path / "no" / "table.csv")


def test_one_blas_thread_wherever_it_is_done() -> None:
    """A case has the bits of one thread also where this process has several."""
    from dolfinx_mbd.threads import controls, one_thread

    with one_thread():
        alone = product(3)
    found = controls(0)
    before = [get() for get, _ in found]
    assert before, "no BLAS library is known"
    try:
        for _, put in found:
            put(2)
        study = sweep(product, {"seed": [3]}, workers=1)
        assert all(get() == 2 for get, _ in found)
    finally:
        for (_, put), count in zip(found, before, strict=True):
            put(count)
    assert np.array_equal(study["result"][0], alone)
    total = MPI.COMM_WORLD.allgather(alone.tobytes())
    assert len(set(total)) == 1


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"parameters": {"x": 3.0, "y": Y}}, TypeError, r"'x': expected a list .* fixed=\{'x'"),
        ({"parameters": {"x": [], "y": Y}}, ValueError, "'x' has no values"),
        ({"parameters": {}}, ValueError, "there is no parameter"),
        ({"parameters": 3}, TypeError, "expected lists of values by name"),
        ({"parameters": [{"x": 1}, {"y": 2}]}, ValueError, "the same parameters; case 0 has .'x'"),
        ({"parameters": {"x": X, "y": Y}, "combine": "zip"}, ValueError, "all lists must be as"),
        ({"parameters": {"x": X}, "combine": "all"}, ValueError, "combine must be"),
        (
            {"parameters": {"x": X}},
            TypeError,
            r"law\(.*\) .* cannot be called with x: missing.*'y'",
        ),
        ({"parameters": {"x": X, "z": Y}}, TypeError, "cannot be called with x, z"),
        ({"parameters": {"x": X}, "fixed": {"x": 1.0}}, ValueError, "'x': a parameter as well"),
        ({"parameters": {"a b": X}}, TypeError, "parameter names .* got 'a b'"),
        (
            {"parameters": {"x": X, "y": Y}, "workers": 0},
            ValueError,
            "workers must be a whole number",
        ),
        (
            {"parameters": {"x": X, "y": Y}, "workers": 1.5},
            TypeError,
            "workers must be a whole number",
        ),
        ({"parameters": {"x": X, "y": Y}, "on_error": "stop"}, ValueError, "on_error must be"),
        ({"parameters": {"x": X, "y": Y}, "comm": 3}, TypeError, "comm must be a communicator"),
        ({"parameters": {"x": X, "y": Y}, "run": 3}, TypeError, "run must be a function"),
    ],
)
def test_bad_input(given: dict, kind: type[Exception], message: str) -> None:
    settings = {"run": law, "workers": 1} | given
    with pytest.raises(kind, match=message):
        sweep(**settings)


def test_what_a_run_may_return() -> None:
    with pytest.warns(
        errors.MbdWarning, match="returned PosixPath for 'result'; it must return numbers"
    ):
        sweep(lambda x: Path("."), {"x": [1]}, workers=1)
    with pytest.warns(errors.MbdWarning, match="'x' is the name of a parameter and of a result"):
        sweep(lambda x: {"x": 1}, {"x": [1]}, workers=1)
    with pytest.warns(errors.MbdWarning, match="results must have names, got 1"):
        sweep(lambda x: {1: x}, {"x": [1]}, workers=1)
