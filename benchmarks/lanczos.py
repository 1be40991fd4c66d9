"""Lowest fixed-interface modes: block Lanczos and SLEPc's Krylov-Schur, for each factorization.

    ./with-fenicsx python3 benchmarks/lanczos.py [--sizes 33k 105k 281k] [--rounds 3]

Both methods compute 24 modes of the rod held at both ends, with the same matrices and the same
factors (of MUMPS and, if PETSc has it, of CHOLMOD with METIS on the nodes, and of CHOLMOD as PETSc
calls it). Each measurement is a separate process on one thread. The factorization and solves with
one and with eight right-hand sides are also timed. The eigenvalues must agree to 1e-10; Sylvester's
law of inertia shows that none is missing. `--blocks` compares several block sizes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from children import child, median, report
from reduction import ENDS, MODES, SIZES, prepare, read

PACKAGES = ("cholmod", "cholmod by PETSc", "mumps")


def measure(path: Path, package: str, block: int) -> dict[str, Any]:
    """Return the processor times of one mesh, s, and the difference of the eigenvalues.

    "ours" is block Lanczos, "theirs" Krylov-Schur. "missing" is the number of missed modes.
    """
    from dolfinx_mbd import STEEL, ElasticModel
    from dolfinx_mbd.fem.assembly import elastic_problem
    from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
    from dolfinx_mbd.fem.linalg import block_lanczos as lanczos
    from dolfinx_mbd.fem.linalg import eigenvalues as eigen
    from dolfinx_mbd.fem.linalg.blocks import solve
    from dolfinx_mbd.fem.linalg.factorization import cholesky, count_below, factor_package
    from dolfinx_mbd.fem.linalg.sparse_matrices import constrain

    eigen.BLOCK_SIZE = lanczos.BLOCK_SIZE = block
    mesh = read(path)
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    ends = mesh_interfaces(mesh, problem.space, ENDS)
    held = np.concatenate([i.dofs for i in ends])
    K, M = problem.stiffness, problem.mass()
    constrain(K, held, 1.0)
    constrain(M, held, 0.0)
    chosen: dict[str, dict[str, Any] | None] = {
        "cholmod": None,
        "cholmod by PETSc": {"mat_cholmod_print": 0},  # with any option of CHOLMOD, PETSc calls it
        "mumps": {"pc_factor_mat_solver_type": "mumps"},
    }
    options = chosen[package]
    factor_time, ksp = clocked(lambda: cholesky(K, prefix="b_", options=options))
    assert factor_package(ksp) == package.split()[0]
    B = np.random.default_rng(0).standard_normal((block, problem.num_owned)).T
    solve(ksp, B)
    vector_time, _ = clocked(lambda: solve(ksp, B[:, :1]))
    block_time, _ = clocked(lambda: solve(ksp, B))
    our_time, (values, _) = clocked(lambda: eigen.lowest_modes(K, M, ksp, MODES, held, prefix="b_"))
    krylov_schur = {"eps_type": "krylovschur"}
    slepc_time, (reference, _) = clocked(
        lambda: eigen.lowest_modes(K, M, ksp, MODES, held, prefix="b_", options=krylov_schur)
    )
    result = {
        "dofs": problem.num_dofs,
        "factor": factor_time,
        "one": vector_time,
        "many": block_time,
        "ours": our_time,
        "theirs": slepc_time,
        "difference": float(np.abs(values / reference - 1).max()),
    }
    if problem.num_dofs < 200_000:
        result["missing"] = count_below(K, M, (1 + 1e-8) * values[-1]) - MODES
    return result


def clocked(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time of a call, s, and its result."""
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["33k", "105k"], choices=SIZES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--blocks", nargs="+", type=int, default=[8])
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        path, package, block = arguments.child
        report(measure(Path(path), package, int(block)))
        return
    from petsc4py import PETSc

    packages = [p for p in PACKAGES if PETSc.Sys.hasExternalPackage(p.split()[0])]
    version = ".".join(map(str, PETSc.Sys.getVersion()))
    print(f"PETSc {version}, one rank, one thread; processor time, medians of {arguments.rounds}\n")
    print(
        "| dofs | factor | block size | factorization, s | solve of 1 vector, ms "
        "| solve of a block, ms | Krylov-Schur, s | block Lanczos, s "
        "| ratio of the last two (in each run) | difference of eigenvalues | missed modes |\n"
        + "|---" * 11
        + "|"
    )
    with tempfile.TemporaryDirectory() as directory:
        prepare(Path(directory), arguments.sizes)
        for size in arguments.sizes:
            cases = [(p, b) for p in packages for b in arguments.blocks]
            runs: dict[tuple[str, int], list[dict[str, Any]]] = {case: [] for case in cases}
            for _ in range(arguments.rounds):
                for package, block in cases:
                    path = f"{directory}/{size}.msh"
                    runs[package, block].append(child(__file__, [path, package, str(block)]))
            for (package, block), samples in runs.items():
                row(package, block, samples)


def row(package: str, block: int, runs: list[dict[str, Any]]) -> None:
    """Print a line of the table."""
    ratios = [run["theirs"] / run["ours"] for run in runs]
    difference = max(run["difference"] for run in runs)
    assert difference < 1e-10, f"eigenvalues differ by {difference:.1e}"
    missed = {run.get("missing", "not counted") for run in runs}
    print(
        f"| {runs[0]['dofs']:,} | {package} | {block} | {median(runs, 'factor'):.2f} "
        f"| {1e3 * median(runs, 'one'):.0f} | {1e3 * median(runs, 'many'):.0f} "
        f"| {median(runs, 'theirs'):.2f} | {median(runs, 'ours'):.2f} "
        f"| **{np.median(ratios):.2f}** ({', '.join(f'{r:.2f}' for r in ratios)}) "
        f"| {difference:.0e} | {', '.join(map(str, missed))} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
