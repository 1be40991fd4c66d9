"""Reduction with a factor against the iterative path: time, memory, accuracy, and where they meet.

    ./with-fenicsx python3 benchmarks/iterative.py [--sizes 33k 105k 281k] [--rounds 1] [--solvers]
        [--large]

Each reduction is a process of its own on one thread; the two take turns. ``--large`` adds about
900 k dofs (11 GB for the factor, 10 minutes). ``--solvers`` compares preconditioners instead: how
conjugate gradients with algebraic multigrid (GAMG and hypre through PETSc) and with the two levels
of the package solve for one load, and for eight at once.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from children import child, median, report
from reduction import ENDS, MODES, SIZES, clocks, now, read, warm_up_mesh

LARGE = {"900k": 0.00111}
MEMORY = 24.0
"""GB of the computer for which the limit of the factor is told."""
SOLVERS = {
    "GAMG, 3 Jacobi sweeps": {
        "pc_type": "gamg",
        "pc_gamg_threshold": 0.01,
        "pc_gamg_aggressive_coarsening": 1,
        "mg_levels_ksp_max_it": 3,
        "mg_levels_pc_type": "jacobi",
    },
    "GAMG, 2 SOR sweeps": {
        "pc_type": "gamg",
        "pc_gamg_threshold": 0.01,
        "pc_gamg_aggressive_coarsening": 1,
        "mg_levels_ksp_max_it": 2,
        "mg_levels_pc_type": "sor",
    },
    "hypre BoomerAMG": {
        "pc_type": "hypre",
        "pc_hypre_type": "boomeramg",
        "pc_hypre_boomeramg_strong_threshold": 0.5,
        "pc_hypre_boomeramg_coarsen_type": "HMIS",
        "pc_hypre_boomeramg_interp_type": "ext+i",
    },
    "hypre, nodal": {
        "pc_type": "hypre",
        "pc_hypre_type": "boomeramg",
        "pc_hypre_boomeramg_strong_threshold": 0.5,
        "pc_hypre_boomeramg_coarsen_type": "HMIS",
        "pc_hypre_boomeramg_nodal_coarsen": 4,
        "pc_hypre_boomeramg_vec_interp_variant": 2,
    },
}


def reduction(solver: str, path: Path) -> dict[str, Any]:
    """The whole call."""
    from dolfinx_mbd import STEEL, reduce

    settings: dict[str, Any] = {"interfaces": ENDS, "stiffening": False, "solver": solver}
    reduce(warm_up_mesh(path), STEEL, num_modes=2, **settings)
    mesh = read(path)
    start = now()
    body = reduce(mesh, STEEL, num_modes=MODES, **settings).body
    seconds = now() - start
    parts = {key: v for key, v in body.provenance.items() if key.startswith("seconds, ")}
    hz = list(body.frequencies)
    return {**clocks(seconds), "dofs": body.provenance["dofs"], "hz": hz, **parts}


def one_solver(name: str, path: Path) -> dict[str, Any]:
    """Random loads with one preconditioner, error 1e-10."""
    from petsc4py import PETSc

    from dolfinx_mbd import STEEL, ElasticModel
    from dolfinx_mbd.fem.assembly import elastic_problem
    from dolfinx_mbd.iterative.conjugate_gradients import IterativeSolver
    from dolfinx_mbd.linalg.factorization import configure, constrain
    from dolfinx_mbd.reduction.interfaces import mesh_interfaces

    mesh = read(path)
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    ends = mesh_interfaces(mesh, problem.space, ENDS)
    held = np.concatenate([end.dofs for end in ends])
    B = np.asfortranarray(np.random.default_rng(0).standard_normal((problem.num_owned, 8)))
    B[held] = 0.0
    facts: dict[str, Any] = {"dofs": problem.num_dofs}
    start = now()
    if name not in SOLVERS:
        solver = IterativeSolver(problem.stiffness, problem.space, held, prefix="bench_")
        facts["setup"] = float((now() - start)[1])
        for columns in (1, 8):
            solver.iterations[:] = 0
            start = now()
            solver.solve(B[:, :columns], tolerance=1e-10)
            facts[f"{columns} at once"] = float((now() - start)[1]) / columns
            facts["iterations"] = float(solver.iterations[0] / solver.iterations[1])
        return facts
    K = problem.stiffness.copy()
    constrain(K, held, 1.0)
    K.setOption(PETSc.Mat.Option.SPD, True)
    motions = problem.rigid_motions(problem.positions.mean(axis=0))
    motions[held] = 0.0
    vectors = []
    for column in np.linalg.qr(motions)[0].T:
        vectors.append(K.createVecRight())
        vectors[-1].array[:] = column
    K.setNearNullSpace(PETSc.NullSpace().create(vectors=vectors, comm=K.comm))
    ksp = PETSc.KSP().create(K.comm)
    ksp.setOperators(K)
    ksp.setType("cg")
    ksp.setTolerances(rtol=1e-10, max_it=1000)
    ksp.setErrorIfNotConverged(True)
    configure(ksp, "bench_", SOLVERS[name])
    ksp.setUp()
    facts["setup"] = float((now() - start)[1])
    b, x = K.createVecs()
    b.array[:] = B[:, 0]
    start = now()
    ksp.solve(b, x)
    facts["1 at once"] = float((now() - start)[1])
    return {**facts, "iterations": ksp.getIterationNumber()}


def compare_solvers(paths: list[str]) -> None:
    """The table of preconditioners."""
    print("| dofs | preconditioner | set-up, s | iterations | 1 load, s | of 8, s each | peak GB |")
    print("|---|---|---|---|---|---|---|")
    for path in paths:
        for name in ("two levels", *SOLVERS):
            run = child(__file__, ["solver " + name, path])
            eight = f"{run['8 at once']:.2f}" if "8 at once" in run else ""
            print(
                f"| {run['dofs']:,} | {name} | {run['setup']:.2f} | {run['iterations']:.0f} "
                f"| {run['1 at once']:.2f} | {eight} | {run['peak']:.2f} |",
                flush=True,
            )


def compare_paths(paths: list[str], rounds: int) -> None:
    """The table of both paths, and where they meet."""
    print("| dofs | path | s | CPU s | peak GB | all frequencies differ by | parts, s |")
    print("|---|---|---|---|---|---|---|")
    found: dict[str, list[tuple[float, float, float]]] = {"direct": [], "iterative": []}
    for path in paths:
        runs: dict[str, list[dict[str, Any]]] = {path: [] for path in found}
        for _ in range(rounds):
            for solver, own in runs.items():
                own.append(child(__file__, [solver, path]))
        reference = np.array(runs["direct"][0]["hz"])
        for solver, own in runs.items():
            error = np.max(np.abs(np.array(own[0]["hz"]) / reference - 1))
            assert error < 1e-9, f"{solver}: frequencies differ by {error:.1e}"
            keys = [key for key in own[0] if key.startswith("seconds, ")]
            parts = ", ".join(f"{k.removeprefix('seconds, ')} {median(own, k):.1f}" for k in keys)
            cpu, peak = median(own, "cpu"), median(own, "peak")
            print(
                f"| {own[0]['dofs']:,} | {solver} | {median(own, 'seconds'):.1f} | {cpu:.1f} "
                f"| {peak:.2f} | {error:.0e} | {parts} |",
                flush=True,
            )
            found[solver].append((float(own[0]["dofs"]), cpu, peak))
    if len(paths) > 1:
        break_even({solver: np.array(values) for solver, values in found.items()})


def break_even(found: dict[str, np.ndarray]) -> None:
    """Growth between the two largest sizes, and what it leads to."""
    growth: dict[str, np.ndarray] = {}
    for solver, values in found.items():
        (n1, *first), (n2, *last) = values[-2:]
        growth[solver] = np.log(np.divide(last, first)) / np.log(n2 / n1)
        print(
            f"{solver}: between the largest sizes processor time grows as "
            f"n^{growth[solver][0]:.2f}, peak memory as n^{growth[solver][1]:.2f}"
        )
    for solver, values in found.items():
        size, _, peak = values[-1]
        limit = size * (MEMORY / peak) ** (1 / growth[solver][1])
        print(f"{solver}: passes {MEMORY:.0f} GB at about {limit / 1e6:.1f} million dofs")
    ratio = found["iterative"][-1, 1] / found["direct"][-1, 1]
    difference = growth["direct"][0] - growth["iterative"][0]
    if ratio > 1 and difference <= 0:
        print(f"iterative takes {ratio:.1f} times the processor time, and does not gain")
        return
    meet = found["direct"][-1, 0] * ratio ** (1 / difference)
    print(f"equal processor time at about {meet / 1e6:.1f} million dofs (ratio now {ratio:.1f})")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["33k", "105k", "281k"], choices=SIZES)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--solvers", action="store_true", help="compare preconditioners instead")
    parser.add_argument("--large", action="store_true", help="900k as well")
    parser.add_argument("--child", nargs=2, metavar=("WHAT", "MESH"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        what, path = arguments.child
        if what.startswith("solver "):
            report(one_solver(what.removeprefix("solver "), Path(path)))
        else:
            report(reduction(what, Path(path)))
        return
    import dolfinx
    from petsc4py import PETSc

    from dolfinx_mbd.fem import write_mesh
    from dolfinx_mbd.geometry import ConnectingRod

    sizes = {size: SIZES[size] for size in arguments.sizes} | (LARGE if arguments.large else {})
    print(f"DOLFINx {dolfinx.__version__}, PETSc {PETSc.Sys.getVersion()}, 1 rank, 1 thread")
    with tempfile.TemporaryDirectory() as directory:
        write_mesh(ConnectingRod(size=0.012), Path(directory) / "warm_up.msh", overwrite=True)
        for name, size in sizes.items():
            write_mesh(ConnectingRod(size=size), Path(directory) / f"{name}.msh", overwrite=True)
        paths = [str(Path(directory) / f"{name}.msh") for name in sizes]
        if arguments.solvers:
            compare_solvers(paths)
        else:
            compare_paths(paths, arguments.rounds)


if __name__ == "__main__":
    main()
