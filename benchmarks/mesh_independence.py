"""A step of the three-cylinder engine, with rods reduced from a coarse and from a fine mesh.

    ./with-fenicsx python3 benchmarks/mesh_independence.py [--rounds 5] [--large]

The rods have 33 thousand and 105 thousand displacements (``--large``: 281 thousand, which needs
3 GB) and the same number of modes, 30.  A body in a mechanism holds matrices of its modes and
nothing of its mesh, so that steps should take equally long; the goal is 5 %.

Each measurement is a process of its own on one thread, both rods take turns in each round; medians
of the clock and of the processor. Motions differ by what the meshes differ ("off": path of a
piston, over the crank radius), and so, by a little, do the numbers of iterations and of
factorizations.
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

STEPS = 2000


def prepare(path: Path, size: float) -> dict[str, Any]:
    """Reduce a rod of a mesh size and write it."""
    from mpi4py import MPI

    from dolfinx_mbd import STEEL, reduce
    from dolfinx_mbd.analysis import build_mesh
    from dolfinx_mbd.geometry import ConnectingRod

    mesh = build_mesh(ConnectingRod(size=size), MPI.COMM_SELF)
    reduction = reduce(mesh, STEEL, interfaces=ENDS, num_modes=24, skin=False, stiffening=False)
    reduction.body.save(path)
    space = reduction.space.dofmap
    return {"dofs": int(space.index_map.size_global * space.index_map_bs)}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--large", action="store_true", help="281 thousand displacements, not 105")
    parser.add_argument("--sizes", nargs=2, type=float, help="or two element sizes, m")
    parser.add_argument("--child", nargs=2, metavar=("WORK", "PATH"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        work, path = arguments.child[0], Path(arguments.child[1])
        report(package(path, STEPS) if work == "step" else prepare(path, float(work)))
        return
    sizes = arguments.sizes or [SIZES["33k"], SIZES["281k" if arguments.large else "105k"]]
    with tempfile.TemporaryDirectory() as directory:
        paths = [str(Path(directory) / f"rod_{k}.npz") for k in range(2)]
        made = [child(__file__, [str(size), path]) for size, path in zip(sizes, paths, strict=True)]
        child(__file__, ["step", paths[0]])  # kernels are compiled
        runs: list[list[dict[str, Any]]] = [[], []]
        for _ in range(arguments.rounds):
            for own, path in zip(runs, paths, strict=True):
                own.append(child(__file__, ["step", path]))
    print("| displacements | ms a step (runs) | ratio | CPU ms | ratio | iterations | off |")
    print("|---|---|---|---|---|---|---|")
    reference = np.array(runs[0][0]["path"])
    for rod, own in zip(made, runs, strict=True):
        every = ", ".join(f"{run['ms']:.3f}" for run in own)
        ratios = {key: median(own, key) / median(runs[0], key) for key in ("ms", "cpu")}
        off = np.abs(np.array(own[0]["path"]) - reference).max() / RADIUS
        print(
            f"| {rod['dofs']:,} | {median(own, 'ms'):.3f} ({every}) | {ratios['ms']:.3f} "
            f"| {median(own, 'cpu'):.3f} | **{ratios['cpu']:.3f}** "
            f"| {median(own, 'iterations'):.3f} | {off:.0e} |"
        )


if __name__ == "__main__":
    main()
