"""Time and memory of a Craig-Bampton reduction: this package, raw PETSc and SLEPc, and Exudyn.

    ./with-fenicsx python3 benchmarks/reduction.py [--sizes 33k 105k] [--rounds 3] [--large]
    [--programs package averaged]
    ./with-fenicsx python3 benchmarks/reduction.py --sizes 504k
    [--programs package "double precision"]

Each measurement is a separate process on one thread. The programs run one after the other in each
round, and the table shows medians of the time on the clock and of the processor time. Other work on
the machine affects the processor time less. The measurements are:

- *package*: `reduce(...)` as a user calls it, assembly, checks and skin included, without the
  geometric stiffening that the others do not have;
- *ordering of CHOLMOD*: the same with CHOLMOD as PETSc calls it, with its own ordering instead of
  METIS on the nodes of the mesh; any option for CHOLMOD, here of its output, selects this;
- *double precision*: the same with `solver="double"`; *package* has a factor in single precision
  from 500,000 displacements;
- *stiffening*: the same with geometric stiffening for all unit loads; the ratio shows its cost;
- *two threads*: the same with two threads of BLAS, whose time on the clock matters;
- *averaged*: the same with averaged instead of rigid interfaces, which are held by bordering the
  stiffness instead of removing rows;
- *raw*: the reduction as a script of petsc4py and slepc4py calls, assembly included, with MUMPS and
  SLEPc's Krylov-Schur; and as *raw, block* with the package's factorization and block Lanczos,
  which shows what the rest of the package costs;
- *Exudyn*: `ComputeHurtyCraigBamptonModes(RBE2)`, and its interface object with all inertia
  integrals; K and M are assembled before the clock starts.

Forms are compiled, and meshes read, before the clock starts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from children import THREADS, child, median, report

MODES = 24
ENDS = ("big_end", "small_end")
SIZES = {
    "12k": 0.012,
    "33k": 0.0043,
    "105k": 0.0025,
    "281k": 0.00172,
    "504k": 0.00137,
    "891k": 0.00111,
}
"""Element sizes of the mesh of the rod by its approximate number of displacements."""
PROGRAMS = (
    "package",
    "ordering of CHOLMOD",
    "double precision",
    "stiffening",
    "two threads",
    "averaged",
    "raw",
    "raw, block",
    "Exudyn",
)


def package(
    path: Path,
    stiffening: bool = False,
    kind: str = "rigid",
    options: dict[str, Any] | None = None,
    solver: str = "direct",
) -> dict[str, Any]:
    """Reduce the body with the package; return times, memory and frequencies."""
    from dolfinx_mbd import STEEL, InterfaceSpec, reduce

    mesh = read(path)
    ends = InterfaceSpec.each(ENDS, kind)  # type: ignore[arg-type]
    settings: dict[str, Any] = {
        "interfaces": ends,
        "stiffening": stiffening,
        "petsc_options": options,
        "solver": solver,
    }
    reduce(warm_up_mesh(path), STEEL, num_modes=2, **settings)
    start = now()
    body = reduce(mesh, STEEL, num_modes=MODES, **settings).body
    seconds = now() - start
    parts = {key: v for key, v in body.provenance.items() if key.startswith("seconds, ")}
    frequencies = list(body.frequencies[:10])
    return {**clocks(seconds), "dofs": body.provenance["dofs"], "hz": frequencies, **parts}


def raw(path: Path, block: bool = False) -> dict[str, Any]:
    """Reduce the body with a script of PETSc and SLEPc calls, without the package."""
    from raw_reduction import assemble, craig_bampton

    small = warm_up_mesh(path)  # (DOLFINx 0.9 may crash if a matrix outlives its mesh)
    craig_bampton(*assemble(small, ENDS), 2, block=block)
    mesh = read(path)
    start = now()
    matrices = assemble(mesh, ENDS)
    assembled = now()
    frequencies, parts = craig_bampton(*matrices, MODES, block=block)
    seconds = now() - start
    parts = {"assembly": float(assembled[0] - start[0]), **parts}
    dofs = int(matrices[0].getSize()[0])
    return {**clocks(seconds), "dofs": dofs, "hz": list(frequencies[:10]), **parts}


def exudyn(path: Path) -> dict[str, Any]:
    """Compute the modes and the interface object with Exudyn, from K and M in SciPy's format."""
    import scipy.linalg
    from exudyn.FEM import FEMinterface, HCBstaticModeSelection, ObjectFFRFreducedOrderInterface
    from raw_reduction import assemble, scipy_matrices

    fem = FEMinterface()
    mesh = read(path)  # (see `raw`)
    matrices = assemble(mesh, ENDS)
    fem.stiffnessMatrix, fem.massMatrix = scipy_matrices(*matrices[:2])
    positions, nodes = matrices[2], matrices[3]
    fem.nodes = {"Position": positions}
    fem.surface = [{"Name": "none", "Trigs": np.zeros((0, 3), dtype=int)}]
    matrices[0].destroy()
    matrices[1].destroy()
    start = now()
    fem.ComputeHurtyCraigBamptonModes(
        boundaryNodesList=[list(n) for n in nodes],
        nEigenModes=MODES,
        computationMode=HCBstaticModeSelection.RBE2,
        excludeRigidBodyMotion=False,
        timerTreshold=10**9,
    )
    modes = now()
    body = ObjectFFRFreducedOrderInterface(fem)
    end = now()
    squares = scipy.linalg.eigvalsh(body.stiffnessMatrixReduced, body.massMatrixReduced)[6:16]
    return {
        **clocks(end - start),
        "modes": float(modes[0] - start[0]),
        "inertia": float(end[0] - modes[0]),
        "dofs": 3 * len(positions),
        "hz": list(np.sqrt(squares) / (2 * np.pi)),
    }


def now() -> np.ndarray:
    """Return the time on the clock and the processor time, s."""
    return np.array([time.perf_counter(), time.process_time()])


def clocks(seconds: np.ndarray) -> dict[str, float]:
    """Return a difference of two results of `now` as a dictionary."""
    return {"seconds": float(seconds[0]), "cpu": float(seconds[1])}


def read(path: Path) -> Any:
    """Read a mesh."""
    from mpi4py import MPI

    from dolfinx_mbd import read_mesh

    return read_mesh(path, MPI.COMM_SELF)


def warm_up_mesh(path: Path) -> Any:
    """Read a coarse rod, with which all forms are compiled."""
    return read(path.with_name("warm_up.msh"))


def prepare(directory: Path, sizes: list[str]) -> None:
    """Write the meshes."""
    from dolfinx_mbd.fem import write_mesh
    from dolfinx_mbd.geometry import ConnectingRod

    write_mesh(ConnectingRod(size=0.012), directory / "warm_up.msh", overwrite=True)
    for size in sizes:
        write_mesh(ConnectingRod(size=SIZES[size]), directory / f"{size}.msh", overwrite=True)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["33k", "105k"], choices=SIZES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--programs", nargs="+", default=PROGRAMS, choices=PROGRAMS)
    parser.add_argument("--large", action="store_true", help="281k as well, once: 8 GB, 5 minutes")
    parser.add_argument("--child", nargs=2, metavar=("PROGRAM", "MESH"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        program, path = arguments.child
        programs = {
            "package": package,
            "ordering of CHOLMOD": partial(package, options={"mat_cholmod_print": 0}),
            "double precision": partial(package, solver="double"),
            "stiffening": partial(package, stiffening=True),
            "two threads": package,
            "averaged": partial(package, kind="averaged"),
            "raw": raw,
            "raw, block": partial(raw, block=True),
            "Exudyn": exudyn,
        }
        report(programs[program](Path(path)))
        return
    rounds = dict.fromkeys(arguments.sizes, arguments.rounds)
    if arguments.large:
        rounds["281k"] = 1
    with tempfile.TemporaryDirectory() as directory:
        prepare(Path(directory), list(rounds))
        print("| dofs | program | s (runs) | ratio | CPU s | ratio | peak GB | ratio | parts, s |")
        print("|---|---|---|---|---|---|---|---|---|")
        for size, count in rounds.items():
            table(str(Path(directory) / f"{size}.msh"), count, arguments.programs)


def table(path: str, rounds: int, programs: Sequence[str] = PROGRAMS) -> None:
    """Run all programs in turn, and print the rows of one mesh, relative to the first program."""
    runs: dict[str, list[dict[str, Any]]] = {program: [] for program in programs}
    for _ in range(rounds):
        for program in programs:
            environment = dict.fromkeys(THREADS, "2") if program == "two threads" else {}
            runs[program].append(child(__file__, [program, path], **environment))
    reference = runs[programs[0]]
    for program, samples in runs.items():
        difference = np.max(np.abs(np.array(samples[0]["hz"]) / np.array(reference[0]["hz"]) - 1))
        assert difference < 1e-9 or "averaged" in (program, programs[0]), (
            f"{program}: frequencies differ by {difference:.1e}"
        )
        values = {key: median(samples, key) for key in samples[0] if key != "hz"}
        over = {key: values[key] / median(reference, key) for key in ("seconds", "cpu", "peak")}
        every = ", ".join(f"{run['seconds']:.1f}" for run in samples)
        known = ("seconds", "dofs", "cpu", "peak")
        parts = [
            f"{key.removeprefix('seconds, ')} {value:.2f}"
            for key, value in values.items()
            if key not in known
        ]
        print(
            f"| {samples[0]['dofs']:,} | {program} | {values['seconds']:.2f} ({every}) "
            f"| {over['seconds']:.2f} | {values['cpu']:.2f} | **{over['cpu']:.2f}** "
            f"| {values['peak']:.2f} | {over['peak']:.2f} | {', '.join(parts)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
