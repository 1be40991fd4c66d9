"""The command line in separate processes: closed pipes, and errors on one rank of several."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.io.cli import main

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts other processes")

COMMAND = [sys.executable, "-m", "dolfinx_mbd"]


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the mesh of a coarse rod."""
    path = tmp_path_factory.mktemp("processes") / "rod.msh"
    assert main(["mesh", "rod", "--size", "0.012", "--order", "1", "-o", str(path)]) == 0
    return path


def _reduce(mesh: Path, output: Path) -> list[str]:
    """Return the arguments of a reduction of the mesh."""
    ends = ["--interface", "big_end", "--interface", "small_end"]
    words = ["--material", "steel", *ends, "--modes", "3", "--degree", "1", "-o", str(output)]
    return ["reduce", str(mesh), *words]


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_reduce_into_a_closed_pipe(mesh: Path, tmp_path: Path, stream: str) -> None:
    """Piped into `head`, the command writes the body without a message about the pipe."""
    read, write = os.pipe()
    os.close(read)
    pipes: dict[str, int] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: write}
    path = tmp_path / "rod.npz"
    run = subprocess.run([*COMMAND, *_reduce(mesh, path)], **pipes, text=True)  # type: ignore
    os.close(write)
    assert run.returncode == 0
    assert ReducedBody.load(path).num_modes == 9  # 3 modes, and 6 static ones of two interfaces
    for word in ("PETSC", "Traceback", "Broken", "Abort", "ignored"):
        assert word not in (run.stdout or "") + (run.stderr or "")


@pytest.mark.parametrize(
    "words", [["materials"], ["--help"], ["info", "{}"], ["mesh", "rod", "--help"]], ids=str
)
def test_other_commands_into_a_closed_pipe(mesh: Path, words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    words = [word.replace("{}", str(mesh)) for word in words]
    run = subprocess.run([*COMMAND, *words], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (run.returncode, run.stderr) == (0, "")


# "inj" "ected": the line of code in a traceback does not contain the word that a test counts.
FAILS = """
import sys
from mpi4py import MPI
import dolfinx_mbd.reduction.{module} as module
from dolfinx_mbd.io.cli import main

def fail(*arguments, **options):
    raise {error}("inj" "ected")

if MPI.COMM_WORLD.rank in {ranks}:
    module.{name} = fail
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mpirun") is None, reason="needs mpirun")
@pytest.mark.parametrize(
    ("ranks", "module", "name", "error"),
    [
        ((0,), "reducer", "CraigBampton", "RuntimeError"),
        ((1,), "reducer", "CraigBampton", "RuntimeError"),
        ((1,), "reducer", "mesh_interfaces", "KeyError"),
        ((1,), "held_stiffness", "solve", "RuntimeError"),
        ((0, 1), "held_stiffness", "solve", "RuntimeError"),
        ((0, 1), "reducer", "CraigBampton", "KeyError"),
    ],
)
def test_an_error_on_one_rank_ends_all(
    mesh: Path, tmp_path: Path, ranks: tuple[int, ...], module: str, name: str, error: str
) -> None:
    script = FAILS.format(ranks=ranks, module=module, name=name, error=error)
    path = tmp_path / "rod.npz"
    command = ["mpirun", "-n", "2", sys.executable, "-c", script, *_reduce(mesh, path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert run.returncode != 0
    assert run.stderr.count("injected") == 1
    # An error on all ranks needs no abort: each rank ends by itself.
    assert ("MPI_ABORT" in run.stderr) == (len(ranks) == 1)
    assert not path.exists()


SAVES = """
import sys
import numpy as np
from mpi4py import MPI
import dolfinx_mbd.body.body_files as files
from dolfinx_mbd.body import ReducedBody

comm, writes, write_atomically = MPI.COMM_WORLD, [], files.write_atomically

def counted(path, *arguments, **options):
    writes.append(path)
    return write_atomically(path, *arguments, **options)

files.write_atomically = counted
body = ReducedBody.load(sys.argv[1])
body.save(sys.argv[2], comm=comm)
assert comm.allgather(len(writes)) == [1, 0, 0]
try:
    body.save(sys.argv[2] + "/in/a/file.npz", comm=comm)
except OSError as error:
    errors = comm.allgather((type(error).__name__, str(error)))
    assert len(set(errors)) == 1, errors
else:
    raise AssertionError
"""


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="needs mpirun")
def test_a_body_is_written_once(mesh: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.npz", tmp_path / "second.npz"
    assert main(["-q", *_reduce(mesh, first)][1:]) == 0
    command = ["mpirun", "-n", "3", sys.executable, "-m", "mpi4py", "-c", SAVES]
    run = subprocess.run([*command, str(first), str(second)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    bodies = ReducedBody.load(first), ReducedBody.load(second)
    assert np.array_equal(bodies[0].stiffness, bodies[1].stiffness)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["first.npz", "second.npz"]


ERROR = """
from mpi4py import MPI
import dolfinx_mbd as mbd
from dolfinx_mbd.fem import meshing

def fail(*arguments, **options):
    raise RuntimeError("injected")

if MPI.COMM_WORLD.rank == 1:
    meshing.TaggedMesh.__post_init__ = fail
mesh = mbd.build_mesh(mbd.ConnectingRod(size=0.02), MPI.COMM_WORLD)
mesh.mesh.comm.barrier()
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mpirun") is None, reason="needs mpirun")
@pytest.mark.parametrize("runner", [[], ["-m", "mpi4py"]], ids=["python3", "mpi4py"])
def test_an_error_on_one_rank_ends_a_program_on_all(runner: list[str]) -> None:
    command = ["mpirun", "-n", "2", sys.executable, *runner, "-c", ERROR]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert run.returncode != 0
    assert "RuntimeError: injected" in run.stderr
