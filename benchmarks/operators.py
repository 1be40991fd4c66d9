"""Time of full-order inertia operators from the scalar mass matrix, compared with K and with UFL.

    ./with-fenicsx python3 benchmarks/operators.py [--sizes 33k 105k] [--rounds 3] [--large]

Each measurement is a separate process on one thread; the table shows medians. For each body it
times:

- a product of the stiffness K with a vector, as the reference;
- the application of one operator, (M_s ⊗ W) u, where M_s is the mass matrix of one displacement
  component and the 3×3 matrix W, here of the Coriolis force at ω, is computed in each call; the
  column "over K u" is its ratio to the reference;
- the assembly of its matrix from M_s, for a general ω (six entries per block), for ω along z (two
  entries), and for the mass;
- the assembly of the same Coriolis form with DOLFINx, into a new and into an existing matrix; the
  columns "over new" are ratios to the new matrix.

The script stops if the matrices, or the products, differ by more than 1e-12.
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
from reduction import SIZES, prepare, read

OMEGA = np.array([20.0, -30.0, 180.0])  # rad/s


def measure(path: Path) -> dict[str, Any]:
    """Return the times for one body, s, each the median of several calls."""
    import ufl
    from dolfinx import fem
    from dolfinx.fem import petsc
    from petsc4py import PETSc

    from dolfinx_mbd import STEEL, ElasticModel, forms
    from dolfinx_mbd.fem.assembly import elastic_problem
    from dolfinx_mbd.fem.linalg.blocks import multiply
    from dolfinx_mbd.fem.operators import apply_inertia, coriolis, inertia_matrix

    problem = elastic_problem(ElasticModel(read(path), STEEL))
    u, v = ufl.TrialFunction(problem.space), ufl.TestFunction(problem.space)
    omega = fem.Constant(problem.space.mesh, OMEGA)
    form = fem.form(forms.coriolis(u, v, STEEL.density, omega))
    existing = petsc.create_matrix(form)
    W = coriolis(OMEGA)

    def assemble() -> None:
        A = petsc.assemble_matrix(form)
        A.assemble()
        A.destroy()

    def refill() -> None:
        existing.zeroEntries()
        petsc.assemble_matrix(existing, form)
        existing.assemble()

    x = np.random.default_rng(1).normal(size=problem.num_owned)
    X, Y = problem.stiffness.createVecRight(), problem.stiffness.createVecLeft()
    X.array[:] = x
    times = {
        "K": seconds(lambda: problem.stiffness.mult(X, Y), 31),
        "K, block": seconds(lambda: multiply(problem.stiffness, x[:, None]), 31),
        "apply": seconds(lambda: apply_inertia(problem, coriolis(OMEGA), x), 31),
        "build": seconds(lambda: inertia_matrix(problem, W).destroy(), 7),
        "build, z": seconds(lambda: inertia_matrix(problem, coriolis([0, 0, 1.0])).destroy(), 7),
        "build, mass": seconds(lambda: inertia_matrix(problem, np.eye(3)).destroy(), 7),
        "assemble": seconds(assemble, 5),
        "refill": seconds(refill, 5),
    }
    matrix = inertia_matrix(problem, W)
    existing.mult(X, Y)
    difference = np.abs(apply_inertia(problem, W, x) - Y.array).max() / np.abs(Y.array).max()
    scale = existing.norm(PETSc.NormType.NORM_INFINITY)
    existing.axpy(-1.0, matrix, structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
    difference = max(difference, existing.norm(PETSc.NormType.NORM_INFINITY) / scale)
    assert difference < 1e-12, f"operators differ by {difference:.1e}"
    return {**times, "dofs": problem.num_dofs, "versions": versions()}


def seconds(call: Callable[[], Any], count: int) -> float:
    """Return the median time of a call, s, after one call that is not timed."""
    call()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def versions() -> str:
    """Return the versions of the libraries."""
    import dolfinx
    from petsc4py import PETSc

    petsc = ".".join(map(str, PETSc.Sys.getVersion()))
    return f"DOLFINx {dolfinx.__version__}, PETSc {petsc}, NumPy {np.__version__}"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["33k", "105k"], choices=SIZES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="281k as well")
    parser.add_argument("--child", metavar="MESH", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        report(measure(Path(arguments.child)))
        return
    sizes = [*arguments.sizes, *(["281k"] if arguments.large else [])]
    with tempfile.TemporaryDirectory() as directory:
        prepare(Path(directory), sizes)
        shown = False
        for size in sizes:
            path = str(Path(directory) / f"{size}.msh")
            runs = [child(__file__, [path]) for _ in range(arguments.rounds)]
            if not shown:
                print(f"{runs[0]['versions']}; medians of {arguments.rounds} runs, ms\n")
                print(
                    "| dofs | K u | apply (M_s ⊗ W) u | over K u | UFL, new matrix | UFL, existing "
                    "| build, any ω | over new | build, ω along z | over new | mass |"
                )
                print("|---|---|---|---|---|---|---|---|---|---|---|")
                shown = True
            print(row(runs), flush=True)


def row(runs: list[dict[str, Any]]) -> str:
    """Return one line of the table; K u is the faster of two matrix formats of PETSc."""
    ms = {key: 1e3 * median(runs, key) for key in runs[0] if key not in ("versions", "dofs")}
    product = min(ms["K"], ms["K, block"])
    return (
        f"| {runs[0]['dofs']:,} | {product:.2f} | {ms['apply']:.2f} "
        f"| **{ms['apply'] / product:.2f}** | {ms['assemble']:.0f} | {ms['refill']:.0f} "
        f"| {ms['build']:.1f} | **{ms['build'] / ms['assemble']:.3f}** | {ms['build, z']:.1f} "
        f"| **{ms['build, z'] / ms['assemble']:.3f}** | {ms['build, mass']:.1f} |"
    )


if __name__ == "__main__":
    main()
