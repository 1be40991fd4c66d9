"""Executors that run each case on several MPI ranks, as those of executorlib do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
from mpi4py import MPI

from dolfinx_mbd import errors
from dolfinx_mbd.analyses import sweep
from tests.analyses.studies.cases import crank
from tests.models.beams import slender_rod

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts other MPI programs")


class RankedExecutor(Executor):
    """An executor that returns a list with one result for each of its ranks."""

    rank = 0

    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        results = []
        for rank in range(3):
            type(self).rank = rank
            results.append(function(*arguments, **options))
        future.set_result(results)
        return future


def on_rank(x: float) -> dict[str, Any]:
    """Return the rank; the case 2 fails on rank 1 only."""
    if x == 2.0 and RankedExecutor.rank == 1:
        raise ValueError("rank 1 failed")
    return {"rank": RankedExecutor.rank, "list": [x, x]}


def test_results_are_those_of_rank_0_and_errors_those_of_any_rank() -> None:
    with RankedExecutor() as executor, pytest.warns(errors.MbdWarning, match="rank 1 failed"):
        study = sweep(on_rank, {"x": [1.0, 2.0, 3.0]}, executor=executor)
    assert study["case_status"].values.tolist() == ["done", "failed", "done"]
    assert study["rank"].sel(x=3.0) == 0
    assert study["list"].sel(x=1.0).values.tolist() == [1.0, 1.0]


@pytest.fixture(scope="module")
def executorlib() -> Iterator[Any]:
    """Return the package executorlib, or skip the test."""
    yield pytest.importorskip("executorlib")


@pytest.mark.slow
def test_runs_on_the_processes_of_executorlib(executorlib: Any) -> None:
    grid = {"speed": [20.0, 30.0], "damping": [0.01]}
    fixed = {"rod": slender_rod(bending=2, axial=0)}
    local = sweep(crank, grid, fixed=fixed, workers=1)
    with executorlib.SingleNodeExecutor(max_workers=2, block_allocation=True) as executor:
        study = sweep(crank, grid, fixed=fixed, executor=executor)
    left_out = ["case_seconds", "case_traceback"]
    assert local.drop_vars(left_out).identical(study.drop_vars(left_out))


SCRIPT = """
import numpy as np
from executorlib import SingleNodeExecutor
import dolfinx_mbd as mbd

def reduction(thickness):
    from dolfinx.mesh import CellType, create_box, locate_entities_boundary
    from mpi4py import MPI

    corners = [np.zeros(3), np.array([0.2, 0.03, thickness])]
    mesh = create_box(MPI.COMM_WORLD, corners, [8, 2, 2], CellType.hexahedron)
    root = locate_entities_boundary(mesh, 2, lambda x: np.isclose(x[0], 0.0))
    body = mbd.reduce(mesh, mbd.STEEL, interfaces={"root": root}, num_modes=3).body
    return {"ranks": MPI.COMM_WORLD.size, "eigenvalues": body.stiffness.diagonal()}

if __name__ == "__main__":
    sizes = {"thickness": [0.01, 0.02]}
    with SingleNodeExecutor(max_cores=2, resource_dict={"cores": 2}) as executor:
        parallel = mbd.sweep(reduction, sizes, executor=executor)
    alone = mbd.sweep(reduction, sizes, workers=1)
    print(parallel["ranks"].values.tolist(), alone["ranks"].values.tolist())
    print(float(abs(parallel["eigenvalues"] / alone["eigenvalues"] - 1.0).max()))
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_reductions_on_two_ranks_each(executorlib: Any, tmp_path: Path) -> None:
    """As in the documentation, a script without MPI has an executor that starts MPI programs."""
    script = tmp_path / "reductions.py"
    script.write_text(SCRIPT, encoding="utf-8")
    launcher = "OMPI_", "PMIX_", "PMI_", "PRTE_", "HYDRA_", "MPI_LOCAL"
    # the script starts MPI programs, so that it must not appear to run inside of another one
    clean = {k: v for k, v in os.environ.items() if not k.startswith(launcher)}
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    run = subprocess.run(
        [sys.executable, script], env=clean | allowed, capture_output=True, text=True, check=False,
        timeout=850,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    ranks, difference = run.stdout.splitlines()[-2:]
    assert ranks == "[2, 2] [1, 1]"
    assert float(difference) < 1e-8
