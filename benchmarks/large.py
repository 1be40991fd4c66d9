"""Time and memory of the reduction of a rod with about a million degrees of freedom.

    ./with-fenicsx python3 benchmarks/large.py [--size 0.00106] [--ranks 2] [--check]

The default is two ranks with one thread each. Creating the mesh with gmsh and compiling the forms
are not timed. ``--solver iterative`` uses the iterative solver; ``--check`` compares the lowest
elastic frequencies with those of the other solver on the same mesh, in a separate process.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from children import child, report

MODES = 24
ENDS = ("big_end", "small_end")


def measure(path: Path, solver: str) -> None:
    """Reduce the rod in this process, and report times and memory."""
    import dolfinx
    from mpi4py import MPI
    from petsc4py import PETSc

    from dolfinx_mbd import STEEL, read_mesh, reduce

    settings: dict[str, Any] = {"interfaces": ENDS, "stiffening": False, "solver": solver}
    comm = MPI.COMM_WORLD
    reduce(read_mesh(path.with_name("warm_up.msh"), comm), STEEL, num_modes=2, **settings)
    mesh = read_mesh(path, comm)
    comm.Barrier()
    wall, cpu = time.perf_counter(), time.process_time()
    body = reduce(mesh, STEEL, num_modes=MODES, **settings).body
    facts = {k: v for k, v in body.provenance.items() if k.startswith("seconds, ")}
    seconds, cpu = time.perf_counter() - wall, comm.reduce(time.process_time() - cpu)
    peak = comm.reduce(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2)
    if comm.rank:
        return
    report(
        {
            "all ranks": peak,
            "dofs": body.provenance["dofs"],
            "seconds": seconds,
            "cpu": cpu,
            "hz": list(body.frequencies[:10]),
            "versions": f"DOLFINx {dolfinx.__version__}, PETSc {PETSc.Sys.getVersion()}",
            **facts,
        }
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=float, default=0.00106, help="largest element, m")
    parser.add_argument("--solver", choices=["direct", "iterative"], default="direct")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--child", nargs=2, metavar=("MESH", "SOLVER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        measure(Path(arguments.child[0]), arguments.child[1])
        return
    from dolfinx_mbd.fem import write_mesh
    from dolfinx_mbd.geometry import ConnectingRod

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rod.msh"
        start = time.perf_counter()
        write_mesh(ConnectingRod(size=0.012), path.with_name("warm_up.msh"), overwrite=True)
        write_mesh(ConnectingRod(size=arguments.size), path, overwrite=True)
        print(f"mesh: {time.perf_counter() - start:.0f} s", flush=True)
        solvers = [arguments.solver]
        if arguments.check:
            solvers += sorted({"direct", "iterative"} - {arguments.solver})
        runs = [child(__file__, [str(path), solver], arguments.ranks) for solver in solvers]
    for solver, run in zip(solvers, runs, strict=True):
        print(
            f"{solver}: {run['dofs']:,} dofs, {run['seconds']:.0f} s, "
            f"processor {run['cpu']:.0f} s, peak {run['all ranks']:.1f} GB of all ranks "
            f"({run['versions']}, {arguments.ranks} ranks, 1 thread each)"
        )
        for key, value in run.items():
            if key.startswith("seconds, "):
                print(f"    {key.removeprefix('seconds, ')}: {value:.1f} s")
    if arguments.check:
        difference = np.max(np.abs(np.array(runs[1]["hz"]) / np.array(runs[0]["hz"]) - 1))
        print(f"frequencies differ by {difference:.1e}")
        assert difference < 1e-9


if __name__ == "__main__":
    main()
