"""Runs of mesh bodies that another number of MPI ranks reads, draws and continues."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts other processes"),
    pytest.mark.skipif(shutil.which("mpirun") is None, reason="needs mpirun"),
]

ROOT = Path(__file__).parents[3]
MODEL = """
import json, sys
import numpy as np
from mpi4py import MPI
import dolfinx_mbd as mbd
from dolfinx_mbd.results.recorded_run import RecordedRun
from tests.structures.mesh_bodies.test_distributed_results import swinging

comm, folder = MPI.COMM_WORLD, sys.argv[1]
system, (body, _) = swinging((3, 1, 1))
"""
WRITE = (
    MODEL
    + """
mbd.simulate(system, t_end=0.016, dt=2e-3, path=folder + "/whole")
recorded = RecordedRun(mbd.Simulator(system, dt=2e-3, t_end=0.016), 1, folder=folder + "/part")
recorded.write()
for _ in range(4):
    recorded.advance()
recorded.write()
recorded.close()
"""
)
READ = (
    MODEL
    + """
def values_of(run):
    stress = mbd.recover(body, run, "von Mises")
    peaks = [float(np.abs(stress[k].x.array).max(initial=0.0)) for k in (3, -1)]
    section = mbd.durability.section_forces(body, run, point=(0.15, 0, 0), normal=(1, 0, 0))
    energies = run.energies()
    return {
        "position": body.motion(run).position([(0.25, 0, 0), (0.5, 0.05, 0.05)])[-1].tolist(),
        "stress": [comm.allreduce(peak, op=MPI.MAX) for peak in peaks],
        "envelope": mbd.most_stressed(body, run, 1)[0].value,
        "factor": mbd.strength(body, run, limit=1e6)[0].factor,
        "energies": [float(energies.elastic[-1]), float(energies.kinetic[-1])],
        "hinge": run.joint("hinge").force[-1, :2].tolist(),
        "section": [float(section.normal[-1]), *np.ravel(section.bending[-1])[1:].tolist()],
    }

run = mbd.results.Solution.load(folder + "/whole", system)
result = {"read": values_of(run), "resumed": values_of(mbd.resume(folder + "/part", system))}
mbd.plotting.plot_system(run, 0.016, folder + "/bars.png", quantity="von Mises")
mbd.plotting.player(run, folder + "/bars.html", quantity="von Mises")
mbd.envelope(body, run).write(folder + "/greatest.bp")
if comm.rank == 0:
    print(json.dumps(result))
"""
)


def run_on(ranks: int, script: str, folder: Path) -> str:
    """Return what a script prints on a number of ranks."""
    settings = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = ["mpirun", "--oversubscribe", "-n", str(ranks), sys.executable, "-c", script]
    run = subprocess.run(
        [*command, str(folder)], cwd=ROOT, env=os.environ | settings, capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
    return run.stdout


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the results of a run that one rank wrote and read."""
    folder = tmp_path_factory.mktemp("one")
    run_on(1, WRITE, folder)
    return json.loads(run_on(1, READ, folder).splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize(("writers", "readers"), [(1, 2), (2, 1), (2, 3)])
def test_files_of_another_number_of_ranks(
    tmp_path: Path, expected: dict[str, Any], writers: int, readers: int
) -> None:
    """Motion, stress, envelope, safety, section forces, pictures and a continued run."""
    run_on(writers, WRITE, tmp_path)
    results = json.loads(run_on(readers, READ, tmp_path).splitlines()[-1])
    for kind, values in expected.items():
        for name, exact in values.items():
            size = np.abs(exact).max()
            assert np.allclose(results[kind][name], exact, rtol=0, atol=1e-8 * size), (kind, name)
    for name in ("bars.png", "bars.html", "greatest.bp"):
        assert (tmp_path / name).exists()
