"""Strong and weak scaling of `reduce` on 1 and 2 ranks, and a model of the times on many ranks.

    ./with-fenicsx python3 benchmarks/scaling.py [--size 105k] [--skip-runs] [--bus 1.4]

The script first times the phases of whole reductions, with the direct solver (MUMPS) and with the
iterative solver: one mesh on 1 and 2 ranks (strong scaling), and a mesh with half the degrees of
freedom on 1 rank (weak scaling). It then times the parts of both solvers on one rank, and the
memory bus with two ranks at once. A model computes the times on many ranks from these values and
from an assumed `LATENCY` and `BANDWIDTH` of the network; see `scaling.md`. Other work on the
machine prevents a measurement of the memory bus; `--bus` gives the factor by which a product takes
longer if all cores are busy.
"""

from __future__ import annotations

import argparse
import logging
import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from children import child, report
from reduction import ENDS, MODES, SIZES

HALF = {"12k": 0.016, "33k": 0.0056, "105k": 0.00325, "281k": 0.00223}
"""Element sizes that give about half the degrees of freedom."""
LATENCY, BANDWIDTH = 3e-6, 5e9
"""Assumed latency of a message, s, and bandwidth of the network per rank, bytes/s."""
NEIGHBOURS, BLOCK = 14, 8
"""Number of neighbours of a part of the mesh, and number of columns solved together."""
STATIC = 24
"""Static right-hand sides: 12 constraint modes and 12 for the truncation, of two interfaces."""
LANCZOS_BLOCKS = 19
"""Number of blocks of eight vectors in block Lanczos for 24 modes, for any mesh."""
ACTIVE = 0.9
"""Assumed mean fraction of the vectors in LOBPCG that have not converged yet."""
PRODUCTS_PER_CYCLE = 4
"""Products with K in a cycle of the two-level preconditioner."""
SUMS_PER_BLOCK, SUMS_PER_ITERATION = 4, 6
"""Assumed sums over all ranks for a block in conjugate gradients, and in an iteration of LOBPCG."""
ORDERING = 0.1
"""Assumed time of the ordering relative to the serial factorization of the measured mesh."""
BYTES_PER_DOF = 3000
"""Assumed memory of the iterative solver, bytes per degree of freedom."""
FRONT_ROWS = 128
"""Rows and columns of a dense front that a rank needs to be busy."""


def phases(path: Path, solver: str) -> dict[str, float]:
    """Return the number of degrees of freedom and the time of each phase of a reduction, s."""
    from mpi4py import MPI

    from dolfinx_mbd import STEEL, read_mesh, reduce

    options = {"pc_factor_mat_solver_type": "mumps"} if solver == "direct" else None
    settings: dict[str, Any] = {"interfaces": ENDS, "stiffening": False, "solver": solver}
    warm = read_mesh(path.with_name("warm_up.msh"), MPI.COMM_WORLD)
    reduce(warm, STEEL, num_modes=2, petsc_options=options, **settings)
    mesh = read_mesh(path, MPI.COMM_WORLD)
    MPI.COMM_WORLD.Barrier()
    start, cpu = time.perf_counter(), time.process_time()
    body = reduce(mesh, STEEL, num_modes=MODES, petsc_options=options, **settings).body
    total = time.perf_counter() - start
    cpu = MPI.COMM_WORLD.allreduce(time.process_time() - cpu, MPI.MAX)
    parts = {
        key.removeprefix("seconds, "): value
        for key, value in body.provenance.items()
        if key.startswith("seconds, ")
    }
    facts = {"dofs": body.provenance["dofs"], **parts}
    return {**facts, "all": total, "all, processor time of a rank": cpu}


def best(call: Callable[[], Any], rounds: int = 3) -> float:
    """Return the smallest processor time of a call, s, after one call that is not timed."""
    call()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def product_alone(path: Path) -> dict[str, float]:
    """Return the processor time of a product with K, distributed over all ranks."""
    from mpi4py import MPI
    from petsc4py import PETSc

    problem, _ = assembled(path)
    problem.stiffness.setOption(PETSc.Mat.Option.SYMMETRIC, True)
    K = problem.stiffness.convert("sbaij", PETSc.Mat())
    x, y = K.createVecs()
    x.set(1.0)
    MPI.COMM_WORLD.Barrier()
    return {"product": best(lambda: K.mult(x, y), 20)}


def assembled(path: Path) -> tuple[Any, Any]:
    """Return the elastic problem and its held degrees of freedom."""
    from mpi4py import MPI

    from dolfinx_mbd import STEEL, ElasticModel, read_mesh
    from dolfinx_mbd.fem.assembly import elastic_problem
    from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces

    mesh = read_mesh(path, MPI.COMM_WORLD)
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    ends = mesh_interfaces(mesh, problem.space, ENDS)
    return problem, np.concatenate([end.dofs for end in ends])


def measured_parts(path: Path) -> dict[str, float]:
    """Return processor times (s) of the parts of both solvers on one rank, and their numbers.

    Products, cycles and solutions are per column.
    """
    from dolfinx_mbd.fem.iterative.modes import lowest_modes_iteratively
    from dolfinx_mbd.fem.iterative.solver import IterativeSolver
    from dolfinx_mbd.fem.linalg import lobpcg
    from dolfinx_mbd.fem.linalg.blocks import solve
    from dolfinx_mbd.fem.linalg.factorization import cholesky
    from dolfinx_mbd.fem.linalg.sparse_matrices import constrain

    counts: list[tuple[Any, ...]] = []

    class Counts(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if str(record.msg).startswith("LOBPCG"):
                counts.append(record.args)  # type: ignore[arg-type]

    log = logging.getLogger("dolfinx_mbd")
    log.setLevel(logging.INFO)
    log.addHandler(Counts())
    assembled(path.with_name("warm_up.msh"))
    start = time.process_time()
    problem, held = assembled(path)
    parts: dict[str, float] = {"assembly": time.process_time() - start, "dofs": problem.num_dofs}
    start = time.process_time()
    solver = IterativeSolver(problem.stiffness, problem.space, held, prefix="scaling_")
    parts["set-up"] = time.process_time() - start
    B = np.asfortranarray(np.random.default_rng(0).standard_normal((solver.rows, BLOCK)))
    B[held] = 0.0
    level: Any = solver.level
    coarse = np.ones((level.interpolation.getLocalSize()[1], BLOCK), order="F")
    parts["product"] = best(lambda: solver.multiply(B)) / BLOCK
    parts["coarse solution"] = best(lambda: level.solve_coarse(coarse)) / BLOCK
    parts["cycle"] = best(lambda: solver.precondition(B)) / BLOCK
    start = time.process_time()
    solver.solve(B)
    parts["iterations"] = float(solver.iterations[0] / solver.iterations[1])
    parts["one solution"] = (time.process_time() - start) / BLOCK
    start = time.process_time()
    lowest_modes_iteratively(solver, problem, MODES)
    parts["modes"] = time.process_time() - start
    parts["mode iterations"], parts["vectors"] = map(float, counts[-1])
    # the small eigenproblem of an iteration, with three blocks of vectors
    k = np.diag(np.arange(1.0, 3 * parts["vectors"] + 1))
    size = int(parts["vectors"])
    parts["small problem"] = best(lambda: lobpcg._small_problem(k, np.eye(len(k)), size, size))
    solver.destroy()
    K = problem.stiffness.copy()
    constrain(K, held, 1.0)
    start = time.process_time()
    ksp = cholesky(K, prefix="scaling_", options={"pc_factor_mat_solver_type": "mumps"})
    parts["factorization"] = time.process_time() - start
    parts["direct solution"] = best(lambda: solve(ksp, B)) / BLOCK
    factor = ksp.getPC().getFactorMatrix()
    parts["factor, operations"] = factor.getMumpsRinfog(3)
    entries = factor.getMumpsInfog(29)
    # MUMPS returns a large number as its negative value in millions
    parts["factor, entries"] = float(entries if entries >= 0 else -1e6 * entries)
    parts["largest front"] = float(factor.getMumpsInfog(11))
    return parts


def direct_model(m: dict[str, float], ratio: float, ranks: int) -> dict[str, float]:
    """Return modelled times of the direct solver, s, with `ratio` times the measured dofs.

    `m` contains the results of `measured_parts`, the powers with which some of them grow, and the
    factor `bus` by which a product takes longer if all cores are busy.
    """
    front = m["largest front"] * ratio ** m["largest front, power of dofs"]
    busy = min(ranks, max(1.0, (front / FRONT_ROWS) ** 2))  # ranks that the largest front employs
    steps = 3 * front / FRONT_ROWS  # successive steps: along the tree, each front has half the size
    hop = LATENCY * max(1.0, math.log2(ranks))  # time of a message to all ranks
    bus = 1.0 if ranks == 1 else max(1.0, m["bus"])
    solves = STATIC / BLOCK + LANCZOS_BLOCKS
    fill = ratio ** m["factor, entries, power of dofs"]  # growth of the entries of the factor
    message = 8 * front * FRONT_ROWS / BANDWIDTH  # time to send FRONT_ROWS columns of a front
    return {
        "assembly": bus * m["assembly"] * ratio / ranks,
        "ordering on one rank": 0.0 if ranks == 1 else ORDERING * m["factorization"] * ratio,
        "factorization": bus
        * m["factorization"]
        * ratio ** m["factor, operations, power of dofs"]
        / busy
        + (steps * (hop + message) if ranks > 1 else 0.0),
        "solutions": solves
        * (
            bus * BLOCK * m["direct solution"] * fill / busy
            + (2 * steps * hop if ranks > 1 else 0.0)
        ),
        "GB of factors a rank": 8e-9 * m["factor, entries"] * fill / ranks,
    }


def iterative_model(m: dict[str, float], ratio: float, ranks: int) -> dict[str, float]:
    """Return modelled times of the iterative solver, s; see `direct_model` for the arguments."""
    bus = 1.0 if ranks == 1 else max(1.0, m["bus"])
    local = bus * ratio / ranks
    hop = LATENCY * math.log2(ranks) if ranks > 1 else 0.0
    # dofs of two layers of nodes on the six faces of a cube
    surface = 2 * 6 * (m["dofs"] * ratio / ranks / 3) ** (2 / 3) * 3
    halo = 0.0 if ranks == 1 else NEIGHBOURS * LATENCY + 8 * BLOCK * surface / BANDWIDTH
    mode_cycles = ACTIVE * m["mode iterations"] * m["vectors"]
    cycles = STATIC * m["iterations"] + mode_cycles  # number of cycles for single columns
    vectors = max(0.0, m["cycle"] - PRODUCTS_PER_CYCLE * m["product"] - m["coarse solution"])
    front = (
        m["largest front"] / 4 * ratio ** m["largest front, power of dofs"]
    )  # linear elements: a quarter of the unknowns
    busy = min(ranks, max(1.0, (front / FRONT_ROWS) ** 2))
    coarse = bus * m["coarse solution"] * ratio ** m["factor, entries, power of dofs"] / busy
    coarse += 2 * 3 * front / FRONT_ROWS * hop / BLOCK
    dense = m["modes"] - mode_cycles * (m["cycle"] + m["product"])
    dense -= m["mode iterations"] * m["small problem"]
    small = 8 * (3 * m["vectors"]) ** 2 / BANDWIDTH  # time to send the small matrix of LOBPCG
    return {
        "assembly": bus * m["assembly"] * ratio / ranks,
        "set-up": m["set-up"] * local,
        "products": cycles * (PRODUCTS_PER_CYCLE + 1) * (m["product"] * local + halo / BLOCK),
        "vectors": cycles * vectors * local,
        "coarse level": cycles * coarse,
        "orthogonalization": max(0.0, dense) * local,
        "sums over ranks": SUMS_PER_BLOCK * hop * cycles / BLOCK
        + m["mode iterations"] * SUMS_PER_ITERATION * (hop + small),
        "small problems": m["mode iterations"] * m["small problem"],
        "GB of matrices a rank": 1e-9 * BYTES_PER_DOF * m["dofs"] * ratio / ranks,
    }


def run(arguments: list[str], ranks: int) -> dict[str, Any]:
    """Run a child process on some ranks, and return the results of the first rank."""
    return child(__file__, arguments, ranks)


def measure_phases(path: Path, half: Path) -> None:
    """Print strong and weak scaling of whole reductions."""
    for solver in ("direct", "iterative"):
        one, two = (run(["phases", str(path), solver], ranks) for ranks in (1, 2))
        weak = run(["phases", str(half), solver], 1)
        print(f"\n{solver}: {one['dofs']:,} dofs, weak from {weak['dofs']:,}\n")
        print(
            "| phase | 1 rank, s | 2 ranks, s | speed-up | half the mesh, 1 rank, s | efficiency |"
        )
        print("|---|---|---|---|---|---|")
        for key in one:
            if key in ("dofs", "peak"):
                continue
            print(
                f"| {key} | {one[key]:.2f} | {two[key]:.2f} | {one[key] / max(two[key], 1e-9):.2f} "
                f"| {weak[key]:.2f} | {weak[key] / max(two[key], 1e-9):.2f} |",
                flush=True,
            )


def show_model(m: dict[str, float]) -> None:
    """Print the measured parameters and the times of the model."""
    print("\nMeasured on one rank (s, per column where it is a product or a solution):\n")
    for key, value in m.items():
        print(f"    {key}: {value:.4g}")
    print(f"    assumed: {LATENCY:.0e} s and {BANDWIDTH:.0e} bytes/s a rank of the network")
    for name, model in (("direct", direct_model), ("iterative", iterative_model)):
        keys = list(model(m, 1.0, 1))
        print(f"\n{name}, model\n\n| dofs | ranks | all, s | " + " | ".join(keys) + " |")
        print("|---" * (3 + len(keys)) + "|")
        for millions in (1, 10, 100):
            for ranks in (1, 2, 64, 1024):
                parts = model(m, millions * 1e6 / m["dofs"], ranks)
                total = sum(value for key, value in parts.items() if not key.startswith("GB"))
                cells = " | ".join(f"{parts[key]:.3g}" for key in keys)
                print(f"| {millions} M | {ranks} | {total:.3g} | {cells} |")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="105k", choices=SIZES)
    parser.add_argument("--skip-runs", action="store_true", help="the model only")
    parser.add_argument("--bus", type=float, help="loss of busy cores at the memory bus")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        from mpi4py import MPI

        what, path, *rest = arguments.child
        calls = {"phases": phases, "product": product_alone, "parts": measured_parts}
        values = calls[what](Path(path), *rest)  # type: ignore[operator]
        if MPI.COMM_WORLD.rank == 0:
            report(values)
        return
    import dolfinx
    from petsc4py import PETSc

    from dolfinx_mbd.fem import write_mesh
    from dolfinx_mbd.geometry import ConnectingRod

    print(f"DOLFINx {dolfinx.__version__}, PETSc {PETSc.Sys.getVersion()}, 1 thread a rank")
    with tempfile.TemporaryDirectory() as directory:
        path, half = Path(directory) / "rod.msh", Path(directory) / "half.msh"
        write_mesh(ConnectingRod(size=0.012), Path(directory) / "warm_up.msh", overwrite=True)
        write_mesh(ConnectingRod(size=SIZES[arguments.size]), path, overwrite=True)
        write_mesh(ConnectingRod(size=HALF[arguments.size]), half, overwrite=True)
        if not arguments.skip_runs:
            measure_phases(path, half)
        m, less = (run(["parts", str(mesh)], 1) for mesh in (path, half))
        for key in ("factor, operations", "factor, entries", "largest front"):
            m[f"{key}, power of dofs"] = math.log(m[key] / less[key]) / math.log(
                m["dofs"] / less["dofs"]
            )
        m["bus"] = arguments.bus or (
            2
            * run(["product", str(path)], 2)["product"]
            / run(["product", str(path)], 1)["product"]
        )
        show_model(m)


if __name__ == "__main__":
    main()
