"""Time of a step of the three-cylinder engine, with rods reduced from a coarse and a fine mesh.

    ./with-fenicsx python3 benchmarks/mesh_independence.py [--rounds 15] [--large]

The rods have 33 thousand and 105 thousand displacements (``--large``: 281 thousand, which needs
3 GB) and the same number of modes, 30. The equations of a body in a mechanism contain matrices of
its modes but no data of its mesh. A step should therefore take the same time with both rods; the
goal is a difference of at most 5 %.

The runs with both rods alternate in one process on one thread, because times also differ between
processes; the ratio is the median over the pairs. The motions differ slightly because the meshes
differ ("off": largest difference of the path of a piston, divided by the crank radius), and so do
the numbers of iterations and factorizations.
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
from engine import ENDS, RADIUS, package
from reduction import SIZES

STEPS = 500  # number of steps of each run


def prepare(path: Path, size: float) -> dict[str, Any]:
    """Reduce a rod of a mesh size, write it, and return its number of displacements."""
    from mpi4py import MPI

    from dolfinx_mbd import STEEL, ReductionOptions, reduce
    from dolfinx_mbd.fem import build_mesh
    from dolfinx_mbd.geometry import ConnectingRod

    mesh = build_mesh(ConnectingRod(size=size), MPI.COMM_SELF)
    reduction = reduce(
        mesh,
        STEEL,
        interfaces=ENDS,
        num_modes=24,
        stiffening=False,
        options=ReductionOptions(skin=False),
    )
    reduction.body.save(path)
    space = reduction.space.dofmap
    return {"dofs": int(space.index_map.size_global * space.index_map_bs)}


def in_turn(directory: Path, rounds: int) -> dict[str, Any]:
    """Alternate runs with both rods; omit the first pair, which loads the kernels."""
    pairs = [
        [package(directory / f"rod_{k}.npz", STEPS) for k in (0, 1)] for _ in range(rounds + 1)
    ]
    return {"runs": [[pair[k] for pair in pairs[1:]] for k in (0, 1)]}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--large", action="store_true", help="281 thousand displacements, not 105")
    parser.add_argument("--sizes", nargs=2, type=float, help="or two element sizes, m")
    parser.add_argument("--child", nargs=2, metavar=("WORK", "PATH"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        # WORK is the element size of a rod to reduce, or "x" and the number of rounds to run
        work, path = arguments.child[0], Path(arguments.child[1])
        report(
            in_turn(path, int(work.removeprefix("x")))
            if work[0] == "x"
            else prepare(path, float(work))
        )
        return
    sizes = arguments.sizes or [SIZES["33k"], SIZES["281k" if arguments.large else "105k"]]
    with tempfile.TemporaryDirectory() as directory:
        paths = [str(Path(directory) / f"rod_{k}.npz") for k in range(2)]
        made = [child(__file__, [str(size), path]) for size, path in zip(sizes, paths, strict=True)]
        runs = child(__file__, [f"x{arguments.rounds}", directory])["runs"]
    print("| displacements | CPU ms a step (range) | ratio (middle half) | iterations | off |")
    print("|---|---|---|---|---|")
    times = np.array([[run["cpu"] for run in samples] for samples in runs])
    reference = np.array(runs[0][0]["path"])
    for rod, samples, ms in zip(made, runs, times, strict=True):
        low, middle, high = np.percentile(ms / times[0], [25, 50, 75])
        off = np.abs(np.array(samples[0]["path"]) - reference).max() / RADIUS
        print(
            f"| {rod['dofs']:,} | {np.median(ms):.3f} ({ms.min():.3f} to {ms.max():.3f}) "
            f"| **{middle:.3f}** ({low:.3f} to {high:.3f}) | {median(samples, 'iterations'):.3f} "
            f"| {off:.0e} |"
        )


if __name__ == "__main__":
    main()
