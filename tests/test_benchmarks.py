"""Every benchmark runs with a very small size; its measurements there are meaningless.

Most benchmarks also compare the results of several programs, and stop if these differ.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mpi4py import MPI

ROOT = Path(__file__).parents[1]
SCRIPTS = {
    "against.py": "{root} --pairs 1 contact",
    "assembly.py": "--sizes 12k --rounds 1",
    "bearings.py": "--rounds 1 --steps 10",
    "chain.py": "--links 4 --rounds 1",
    "compiled_unit.py": "--size 0.012 --rounds 1 --steps 200",
    "crank_fillet.py": "--sizes 3mm",
    "engine.py": "--size 0.012 --rounds 1",
    "engine_block.py": "--rounds 1 --steps 5 --size 0.03",
    "fatigue.py": "--points 200 --instants 200 --modes 6",
    "first_run.py": "--size 0.012 --rounds 1 --functions 1 --cases plain",
    "harmonic_balance.py": "--accuracy 1e-2",
    "imports.py": "--rounds 1",
    "iterative.py": "--sizes 12k",
    "lanczos.py": "--sizes 12k --rounds 1",
    "large.py": "--size 0.012",
    "long_run.py": "--steps 20 60 --size 0.012",
    "mesh_bodies.py": "--cells 1 --steps 10 --rounds 1",
    "mesh_independence.py": "--sizes 0.014 0.012 --rounds 2",
    "operators.py": "--sizes 12k --rounds 1",
    "profiles.py": "reduction",
    "reduction.py": "--sizes 12k --rounds 1",
    "scaling.py": "--size 12k --skip-runs",
    "sensitivities.py": "--size 0.014 --rounds 1 --steps 10 --only stiffening engine",
    "stepping.py": "--rounds 1 --steps 20",
    "sweep.py": "--cases 2 --steps 20 --rounds 1 --size 0.012",
    "transient.py": "--sizes 12k --rounds 1 --steps 4",
    "viewer_page.py": "--nodes 60 --frames 5 --kinds reduced mesh rod",
}
OPTIONS = [*SCRIPTS.items()] + [
    ("iterative.py", f"--sizes 12k {table}") for table in ("--solvers", "--modes")
]
OPTIONS += [
    ("mesh_bodies.py", f"--cells 1 --steps 20 --rounds 1 {table}")
    for table in ("--peers", "--ranks", "--rubber", "--large")
]
HELPERS = {"children.py", "raw_mesh_bodies.py", "raw_reduction.py"}
MPI_VARIABLES = ("OMPI_", "PMIX_", "PMI_", "PRTE_")


def test_all_are_here() -> None:
    assert {path.name for path in (ROOT / "benchmarks").glob("*.py")} == set(SCRIPTS) | HELPERS
    readme = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert not [name for name in SCRIPTS if f"`{name}`" not in readme]


@pytest.mark.slow
@pytest.mark.timeout(600)  # (first_run.py compiles everything several times)
@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=map(" ".join, OPTIONS))
def test_benchmark_runs(name: str, options: str, comm: MPI.Intracomm, tmp_path: Path) -> None:
    """The benchmark runs with its smallest size and prints a table."""
    if comm.size > 1:
        pytest.skip("starts other processes")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(MPI_VARIABLES)}
    command = [sys.executable, str(ROOT / "benchmarks" / name), *options.format(root=ROOT).split()]
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=580,
        check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
    assert "|" in run.stdout or " s" in run.stdout
