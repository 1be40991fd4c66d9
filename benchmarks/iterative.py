"""Reduction with a factorization against the iterative solver: time, memory, accuracy.

    ./with-fenicsx python3 benchmarks/iterative.py [--sizes 33k 105k 281k] [--rounds 1]
        [--solvers] [--modes] [--large]

Each measurement is a separate process on one thread; each round runs the solvers in turn.
``--large`` adds about 900 k dofs (11 GB for the factors, 10 minutes). ``--solvers`` compares
preconditioners of PETSc's conjugate gradients for one load: PCMG with other formats and smoothers
than in the package, GAMG and hypre. ``--modes`` compares LOBPCG of the package and of SLEPc with
the same preconditioner, start vectors and number of guard vectors.
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

LARGE = {"900k": 0.00111}  # element size, m, of the mesh that `--large` adds
MEMORY = 24.0
"""Memory of the computer for which the limit of the factorization is computed, GB."""
TWO_LEVELS = {
    "PCMG": {},
    "PCMG, 3 Chebyshev steps": {"mg_levels_ksp_max_it": 3},
    "PCMG, AIJ": {"format": "aij"},
    "PCMG, AIJ, SOR": {
        "format": "aij",
        "mg_levels_ksp_type": "richardson",
        "mg_levels_ksp_max_it": 1,
        "mg_levels_pc_type": "sor",
    },
    "PCMG, GAMG on the coarse level": {"mg_coarse_pc_type": "gamg"},
}
"""Options of the package's preconditioner, and the format of its matrix."""
SLEPC_TOLERANCE, SLEPC_ITERATIONS = 1e-6, 60
"""Tolerance of SLEPc's LOBPCG, |K x - λ M x| / λ, and its largest number of iterations."""
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
    """Reduce the body, and return times, memory and frequencies."""
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


def held_problem(path: Path) -> tuple[Any, Any]:
    """Return the elastic problem, and its degrees of freedom at the interfaces, which are held."""
    from dolfinx_mbd import STEEL, ElasticModel
    from dolfinx_mbd.fem.assembly import elastic_problem
    from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces

    mesh = read(path)
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    ends = mesh_interfaces(mesh, problem.space, ENDS)
    return problem, np.concatenate([end.dofs for end in ends])


def one_solver(name: str, path: Path) -> dict[str, Any]:
    """Solve random loads with one preconditioner to an error of 1e-10; return the times."""
    from petsc4py import PETSc

    from dolfinx_mbd.fem.iterative.preconditioner import TwoLevel
    from dolfinx_mbd.fem.linalg.options import configured
    from dolfinx_mbd.fem.linalg.sparse_matrices import constrain, set_near_null_space

    problem, held = held_problem(path)
    B = np.random.default_rng(0).standard_normal((problem.num_owned, 3))
    B[held] = 0.0
    start = now()
    K = problem.stiffness.copy()
    constrain(K, held, 1.0)
    K.setOption(PETSc.Mat.Option.SPD, True)
    ksp = PETSc.KSP().create(K.comm)
    ksp.setType("cg")
    ksp.setNormType(PETSc.KSP.NormType.NATURAL)
    ksp.setTolerances(rtol=1e-10, max_it=1000)
    ksp.setErrorIfNotConverged(True)
    if name in TWO_LEVELS:
        options = dict(TWO_LEVELS[name])
        fine = K if options.pop("format", "") == "aij" else K.convert("sbaij", PETSc.Mat())
        level = TwoLevel(K, fine, problem.space, held, None, prefix="bench_", options=options)
        ksp.setOperators(fine)
        ksp.setPC(level.pc)
        ksp.setUp()
    else:
        motions = problem.rigid_motions(problem.positions.mean(axis=0))
        set_near_null_space(K, motions, held)
        ksp.setOperators(K)
        with configured(ksp, "bench_", SOLVERS[name]):
            ksp.setUp()
    facts: dict[str, Any] = {"dofs": problem.num_dofs, "setup": float((now() - start)[1])}
    b, x = K.createVecs()
    iterations = []
    start = now()
    for column in B.T:
        b.array[:] = column
        ksp.solve(b, x)
        iterations.append(ksp.getIterationNumber())
    return {**facts, "load": float((now() - start)[1]) / 3, "iterations": max(iterations)}


def compare_solvers(paths: list[str]) -> None:
    """Print the table of preconditioners."""
    print("| dofs | preconditioner | set-up, s | iterations | a load, s | over PCMG | peak GB |")
    print("|---|---|---|---|---|---|---|")
    for path in paths:
        first = None
        for name in (*TWO_LEVELS, *SOLVERS):
            run = child(__file__, ["solver " + name, path])
            first = first or run["load"]
            print(
                f"| {run['dofs']:,} | {name} | {run['setup']:.2f} | {run['iterations']:.0f} "
                f"| {run['load']:.2f} | {run['load'] / first:.2f} | {run['peak']:.2f} |",
                flush=True,
            )


def eigensolver(name: str, path: Path) -> dict[str, Any]:
    """Compute the lowest modes with an eigensolver; return its time, eigenvalues and error.

    The error is the largest rᵀT r / λ of a mode, with the residual r, the preconditioner T and
    unit modal mass.
    """
    from petsc4py import PETSc

    from dolfinx_mbd.fem.iterative.modes import lowest_modes_iteratively
    from dolfinx_mbd.fem.iterative.solver import IterativeSolver

    problem, held = held_problem(path)
    solver = IterativeSolver(problem.stiffness, problem.space, held, prefix="bench_")
    run = lowest_modes_iteratively if name == "package" else slepc_modes
    start = now()
    try:
        values, vectors = run(solver, problem, MODES)
    except (PETSc.Error, RuntimeError) as error:
        seconds = float((now() - start)[1])
        failure = str(error).strip().splitlines()[-1]
        return {"dofs": problem.num_dofs, "cpu": seconds, "failure": failure}
    seconds = float((now() - start)[1])
    images = problem.apply_mass(vectors)
    images[held] = 0.0
    R = solver.multiply(vectors) - images * values
    error = np.einsum("ij,ij->j", R, solver.precondition(R)) / values
    error /= np.einsum("ij,ij->j", vectors, images)
    facts = {"dofs": problem.num_dofs, "cpu": seconds, "values": list(values)}
    return {**facts, "error": float(error.max())}


class _Shell:
    """A preconditioner that keeps its own matrices when SLEPc uses it.

    SLEPc replaces the matrices of a preconditioner by its own and finally destroys them. The
    preconditioner of the package would then refer to destroyed matrices.
    """

    def __init__(self, pc: Any) -> None:
        self._pc = pc

    def apply(self, _: Any, x: Any, y: Any) -> None:
        """Set y to the preconditioned x."""
        self._pc.apply(x, y)


def slepc_modes(solver: Any, problem: Any, num_modes: int) -> tuple[Any, Any]:
    """Return the modes that SLEPc's LOBPCG finds in `SLEPC_ITERATIONS`."""
    from petsc4py import PETSc
    from slepc4py import SLEPc

    from dolfinx_mbd.fem.iterative.modes import start_vectors
    from dolfinx_mbd.fem.linalg.lobpcg import guard_vectors
    from dolfinx_mbd.fem.linalg.sparse_matrices import constrain

    size = num_modes + guard_vectors(num_modes)
    start = start_vectors(solver, problem, size)
    K, M = problem.stiffness.copy(), problem.mass()
    constrain(K, solver.held, 1.0)
    constrain(M, solver.held, 1e-13)  # SLEPc's products need AIJ, and M must not be singular
    eps = SLEPc.EPS().create(M.comm)
    eps.setOperators(K, M)
    eps.setProblemType(SLEPc.EPS.ProblemType.GHEP)
    eps.setType(SLEPc.EPS.Type.LOBPCG)
    eps.setDimensions(num_modes, 4 * size)
    eps.setLOBPCGBlockSize(size)
    eps.setWhichEigenpairs(SLEPc.EPS.Which.SMALLEST_REAL)
    eps.setTolerances(SLEPC_TOLERANCE, SLEPC_ITERATIONS)
    vectors = []
    for column in start.T:
        vectors.append(M.createVecRight())
        vectors[-1].array[:] = column
    eps.setInitialSpace(vectors)
    st = eps.getST()
    st.setType(SLEPc.ST.Type.PRECOND)
    st.getKSP().setType("preonly")
    shell = _Shell(solver.level.pc)
    st.getKSP().setPC(PETSc.PC().createPython(shell, comm=M.comm))
    eps.solve()
    count = min(eps.getConverged(), num_modes)
    if not count:
        raise RuntimeError(f"no mode converged in {eps.getIterationNumber()} iterations")
    x = M.createVecRight()
    modes = np.empty((problem.num_owned, count), order="F")
    for k in range(count):
        eps.getEigenvector(k, x)
        modes[:, k] = x.array_r
    print(f"{count} modes, {eps.getIterationNumber()} iterations", file=sys.stderr)
    return np.array([eps.getEigenvalue(k).real for k in range(count)]), modes


def compare_eigensolvers(paths: list[str]) -> None:
    """Print the table of eigensolvers."""
    print("| dofs | LOBPCG | modes | CPU s | over package | rᵀT r / λ | eigenvalues differ by |")
    print("|---|---|---|---|---|---|---|")
    for path in paths:
        first: dict[str, Any] = {}
        for name in ("package", "SLEPc"):
            run = child(__file__, ["modes " + name, path])
            first = first or run
            if "failure" in run:
                print(f"| {run['dofs']:,} | {name} | {run['failure']} | {run['cpu']:.1f} | | | |")
                continue
            count = len(run["values"])
            difference = np.max(np.abs(np.divide(run["values"], first["values"][:count]) - 1))
            print(
                f"| {run['dofs']:,} | {name} | {count} | {run['cpu']:.1f} "
                f"| {run['cpu'] / first['cpu']:.2f} | {run['error']:.0e} | {difference:.0e} |",
                flush=True,
            )


def compare_paths(paths: list[str], rounds: int) -> None:
    """Print the table of both solvers, and the size at which their costs are equal."""
    print("| dofs | path | s | CPU s | peak GB | all frequencies differ by | parts, s |")
    print("|---|---|---|---|---|---|---|")
    measured: dict[str, list[tuple[float, float, float]]] = {"direct": [], "iterative": []}
    for path in paths:
        runs: dict[str, list[dict[str, Any]]] = {path: [] for path in measured}
        for _ in range(rounds):
            for solver, samples in runs.items():
                samples.append(child(__file__, [solver, path]))
        reference = np.array(runs["direct"][0]["hz"])
        for solver, samples in runs.items():
            error = np.max(np.abs(np.array(samples[0]["hz"]) / reference - 1))
            assert error < 1e-9, f"{solver}: frequencies differ by {error:.1e}"
            keys = [key for key in samples[0] if key.startswith("seconds, ")]
            parts = ", ".join(
                f"{k.removeprefix('seconds, ')} {median(samples, k):.1f}" for k in keys
            )
            cpu, peak = median(samples, "cpu"), median(samples, "peak")
            print(
                f"| {samples[0]['dofs']:,} | {solver} | {median(samples, 'seconds'):.1f} "
                f"| {cpu:.1f} | {peak:.2f} | {error:.0e} | {parts} |",
                flush=True,
            )
            measured[solver].append((float(samples[0]["dofs"]), cpu, peak))
    if len(paths) > 1:
        break_even({solver: np.array(values) for solver, values in measured.items()})


def break_even(measured: dict[str, np.ndarray]) -> None:
    """Extrapolate time and memory from the two largest sizes, and print where they are equal."""
    growth: dict[str, np.ndarray] = {}
    for solver, values in measured.items():
        (n1, *first), (n2, *last) = values[-2:]
        growth[solver] = np.log(np.divide(last, first)) / np.log(n2 / n1)
        print(
            f"{solver}: between the largest sizes processor time grows as "
            f"n^{growth[solver][0]:.2f}, peak memory as n^{growth[solver][1]:.2f}"
        )
    for solver, values in measured.items():
        size, _, peak = values[-1]
        limit = size * (MEMORY / peak) ** (1 / growth[solver][1])
        print(f"{solver}: passes {MEMORY:.0f} GB at about {limit / 1e6:.1f} million dofs")
    ratio = measured["iterative"][-1, 1] / measured["direct"][-1, 1]
    difference = growth["direct"][0] - growth["iterative"][0]
    if ratio > 1 and difference <= 0:
        print(f"iterative takes {ratio:.1f} times the processor time; the ratio does not fall")
        return
    meet = measured["direct"][-1, 0] * ratio ** (1 / difference)
    print(f"equal processor time at about {meet / 1e6:.1f} million dofs (ratio now {ratio:.1f})")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["33k", "105k", "281k"], choices=SIZES)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--solvers", action="store_true", help="compare preconditioners instead")
    parser.add_argument("--modes", action="store_true", help="compare eigensolvers instead")
    parser.add_argument("--large", action="store_true", help="900k as well")
    parser.add_argument("--child", nargs=2, metavar=("WHAT", "MESH"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        what, path = arguments.child
        if what.startswith("solver "):
            report(one_solver(what.removeprefix("solver "), Path(path)))
        elif what.startswith("modes "):
            report(eigensolver(what.removeprefix("modes "), Path(path)))
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
        elif arguments.modes:
            compare_eigensolvers(paths)
        else:
            compare_paths(paths, arguments.rounds)


if __name__ == "__main__":
    main()
