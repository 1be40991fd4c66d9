"""The dataset of a parameter study: grids, lists of cases, failures, arrays, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from mpi4py import MPI
from threadpoolctl import ThreadpoolController

from dolfinx_mbd import errors
from dolfinx_mbd.analyses import sweep
from dolfinx_mbd.errors import InputError, InputTypeError
from tests.analyses.studies.cases import crank, law, product
from tests.models.beams import slender_rod

X, Y = [1.0, 2.0, 4.0], [8.0, 0.0]


@pytest.fixture
def study() -> xarray.Dataset:
    """Return three by two cases, of which those with y = 0 fail."""
    with pytest.warns(errors.MbdWarning) as warnings:
        table = sweep(law, {"x": X, "y": Y}, workers=1)
    (warning,) = (w.message for w in warnings)
    assert isinstance(warning, errors.MbdWarning)
    assert (warning.quantity, warning.value) == ("cases failed", 3)
    assert "case 1 (x=1.0, y=0.0): ZeroDivisionError" in str(warning)
    return table


def test_results_are_shaped_as_the_grid(study: xarray.Dataset) -> None:
    x, y = np.meshgrid(X, Y, indexing="ij")
    assert dict(study.sizes) == {"x": 3, "y": 2, "row_0": 3}
    assert study["x"].values.tolist() == X and study["y"].values.tolist() == Y
    good = y != 0
    assert study["ratio"].dims == ("x", "y") and study["row"].dims == ("x", "y", "row_0")
    assert np.array_equal(study["ratio"].values[good], (x / np.where(good, y, 1))[good])
    assert np.isnan(study["ratio"].values[~good]).all()
    assert np.array_equal(study["row"].values[good], np.stack([x, y, x * y], -1)[good])
    assert np.isnan(study["row"].values[~good]).all()
    assert study["kind"].values.tolist() == [["small", ""]] * 3


def test_failures_are_results(study: xarray.Dataset) -> None:
    assert study["case_status"].values.tolist() == [["done", "failed"]] * 3
    case = study.sel(x=2.0, y=0.0)
    assert case["case_error"].item() == "ZeroDivisionError: no ratio for x = 2.0"
    trace = case["case_traceback"].item()
    assert trace.rstrip().endswith(case["case_error"].item()) and "in law" in trace
    assert (study["case_seconds"] >= 0).all()
    assert (study["case_error"].sel(y=8.0) == "").all()


def test_a_part_by_values(study: xarray.Dataset) -> None:
    assert np.array_equal(study["ratio"].sel(y=8.0), np.array(X) / 8.0)
    assert study["ratio"].sel(x=[4.0, 1.0]).sel(y=8.0).values.tolist() == [0.5, 0.125]
    assert study["ratio"].sel(x=4 * (1 + 1e-12), y=8.0, method="nearest") == 0.5
    with pytest.raises(KeyError):
        study.sel(x=3.0)


def test_cases_side_by_side() -> None:
    cases = [{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 2.0}, {"x": 3.0, "y": 6.0}]
    for parameters in (cases, iter(cases)):
        study = sweep(law, parameters, workers=1)
        assert study["ratio"].dims == study["x"].dims == ("case",)
        assert study["ratio"].values.tolist() == [0.5, 1.5, 0.5]
        assert study["x"].values.tolist() == [1.0, 3.0, 3.0]
        assert study["ratio"].values[study["x"] == 3.0].tolist() == [1.5, 0.5]


def test_histories_of_solutions() -> None:
    """A solution is stored as its histories; the values of a parameter may be named bodies."""
    soft = slender_rod(bending=2, axial=0, young=7e10).replace(name="soft")
    rods = [slender_rod(bending=2, axial=0), soft]
    study = sweep(crank, {"speed": [20.0, 30.0], "rod": rods}, fixed={"damping": 0.01}, workers=1)
    assert study["rod.eta"].shape == (2, 2, 21, 2)
    assert study["rod.eta"].dims == ("speed", "rod", "step", "rod.eta_1")
    assert study["crank pin.force"].dims == ("speed", "rod", "step", "crank pin.force_1")
    assert "crank.eta" not in study
    assert study["rod"].values.tolist() == ["rod", "soft"]
    direct = crank(30.0, 0.01, soft)
    part = study.sel(speed=30.0, rod="soft")
    assert np.array_equal(part["time"], direct.time)
    assert np.array_equal(part["rod.position"], direct.body("rod").position)


def test_results_of_other_shapes() -> None:
    """Shorter arrays are padded, and the values of parameters keep their type."""
    study = sweep(lambda n: {"a": np.arange(n), "b": n}, {"n": [2, 3]}, workers=1)
    assert study["a"].values[1].tolist() == [0, 1, 2]
    assert study["a"].values[0, :2].tolist() == [0, 1] and np.isnan(study["a"].values[0, 2])
    assert study["n"].dtype.kind == study["b"].dtype.kind == "i"
    study = sweep(lambda n: n if n == 1 else np.full((n, 2), n), {"n": [1, 3]}, workers=1)
    assert study["result"].shape == (2, 3, 2)
    assert study["result"].values[0, 0, 0] == 1 and np.isnan(study["result"].values[0]).sum() == 5
    texts = sweep(lambda n: ["a" * n] * n, {"n": [1, 2]}, workers=1)
    assert texts["result"].values.tolist() == [["a", ""], ["aa", "aa"]]


def test_names_of_dimensions_are_unique() -> None:
    def run(x: float) -> dict[str, Any]:
        return {"row": [x, x], "row_0": 2 * x}

    study = sweep(run, {"x": [1.0, 2.0]}, workers=1)
    assert study["row"].dims == ("x", "row_0_") and study["row_0"].values.tolist() == [2.0, 4.0]


def test_saved_and_read_back(study: xarray.Dataset, tmp_path: Path) -> None:
    path = tmp_path / f"study{MPI.COMM_WORLD.rank}.nc"
    study.to_netcdf(path)
    with xarray.open_dataset(path) as loaded:
        xarray.testing.assert_identical(loaded.load(), study)
    table = study[["ratio", "case_error"]].to_dataframe()
    assert table.loc[(2.0, 8.0), "ratio"] == 0.25
    assert table.loc[(2.0, 0.0), "case_error"].startswith("ZeroDivisionError")


def test_one_blas_thread_wherever_it_is_done() -> None:
    """A case is computed on one BLAS thread, also if this process has several."""
    blas = ThreadpoolController().select(user_api="blas")
    assert blas, "no BLAS library is known"
    with blas.limit(limits=1):
        alone = product(3)
    with blas.limit(limits=2):
        study = sweep(product, {"seed": [3]}, workers=1)
        assert {entry["num_threads"] for entry in blas.info()} == {2}
    assert np.array_equal(study["result"].values[0], alone)
    results = MPI.COMM_WORLD.allgather(alone.tobytes())
    assert len(set(results)) == 1


@pytest.mark.parametrize(
    ("changes", "kind", "argument"),
    [
        ({"parameters": {"x": 3.0, "y": Y}}, InputTypeError, "parameters['x']"),
        ({"parameters": {"x": "ab", "y": Y}}, InputTypeError, "parameters['x']"),
        ({"parameters": {"x": [], "y": Y}}, InputError, "parameters"),
        ({"parameters": {}}, InputError, "parameters"),
        ({"parameters": []}, InputError, "parameters"),
        ({"parameters": {"case_status": X}}, InputError, "parameters"),
        ({"parameters": [{"case_seconds": 1.0}]}, InputError, "parameters"),
        ({"parameters": 3}, InputTypeError, "parameters"),
        ({"parameters": [{"x": 1}, {"y": 2}]}, InputError, "parameters"),
        ({"parameters": {"x": X}}, InputTypeError, "run"),
        ({"parameters": {"x": X, "z": Y}}, InputTypeError, "run"),
        ({"parameters": {"a b": X}}, InputTypeError, "run"),
        ({"fixed": {"x": 1.0}}, InputTypeError, "run"),
        ({"fixed": {1: 1.0}}, InputTypeError, "run"),
        ({"fixed": 1.0}, InputTypeError, "fixed"),
        ({"workers": -1}, InputError, "workers"),
        ({"workers": 1.5}, InputTypeError, "workers"),
        ({"on_error": "stop"}, InputError, "on_error"),
        ({"retry_failed": 1}, InputTypeError, "retry_failed"),
        ({"progress": "yes"}, InputTypeError, "progress"),
        ({"executor": 3, "workers": None}, InputTypeError, "executor"),
        ({"path": 3}, InputTypeError, "path"),
        ({"run": 3}, InputTypeError, "run"),
    ],
)
def test_bad_input(changes: dict[str, Any], kind: type[InputError], argument: str) -> None:
    settings = {"run": law, "parameters": {"x": X, "y": Y}, "workers": 1} | changes
    with pytest.raises(kind) as error:
        sweep(**settings)
    assert error.value.argument == argument


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (lambda x: Path("."), "InputTypeError"),
        (lambda x: {1: x}, "InputTypeError"),
        (lambda x: {"x": 1}, "InputError"),
        (lambda x: {"case": 1}, "InputError"),
        (lambda x: {"case_error": 1}, "InputError"),
    ],
)
def test_a_run_must_return_numbers_by_name(run: Any, kind: str) -> None:
    with pytest.warns(errors.MbdWarning):
        study = sweep(run, {"x": [1]}, workers=1)
    assert study["case_error"].values[0].startswith(f"{kind}: ")
