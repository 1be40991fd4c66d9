"""`dolfinx-mbd info`, `compare` and `modes`: look at a reduced body, or at a mesh."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dolfinx_mbd.body import ReducedBody, compare
from dolfinx_mbd.cli.values import length_unit, numbers, output_path

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add `info`, `compare` and `modes` to the commands."""
    info = commands.add_parser("info", help="say what a body, or a mesh, is")
    info.add_argument("file", help="a reduced body (.npz), or a mesh")
    info.add_argument("--unit", type=length_unit, default=1.0, metavar="U", help="of a mesh")
    info.set_defaults(run=_info)

    parser = commands.add_parser(
        "compare",
        help="compare two reduced bodies",
        description="Compare mass, centre, inertia, interfaces and frequencies.",
    )
    parser.add_argument("first", help="a reduced body (.npz)")
    parser.add_argument("second", help="another")
    parser.add_argument(
        "--tolerance",
        type=float,
        metavar="T",
        help="exit with 1 if a relative difference is greater",
    )
    parser.set_defaults(run=_compare)

    modes = commands.add_parser("modes", help="draw the modes of a body")
    modes.add_argument("file", help="a reduced body (.npz) with its skin")
    modes.add_argument("--modes", type=numbers, metavar="LIST", help="1,2,5-8 (default: first six)")
    modes.add_argument("-o", "--output", help="picture to write (default: FILE-modes.png)")
    modes.set_defaults(run=_modes)


def _info(options: argparse.Namespace) -> int:
    if Path(options.file).suffix == ".npz":
        print(ReducedBody.load(options.file).summary())
        return 0
    from mpi4py import MPI

    from dolfinx_mbd.analysis import read_mesh

    tagged = read_mesh(options.file, MPI.COMM_WORLD, unit=options.unit)
    mesh = tagged.mesh
    comm, topology, x = mesh.comm, mesh.topology, mesh.geometry.x
    low = [min(comm.allgather(x[:, i].min(initial=float("inf")))) for i in range(3)]
    high = [max(comm.allgather(x[:, i].max(initial=-float("inf")))) for i in range(3)]
    size = " x ".join(f"{1e3 * (b - a):.6g}" for a, b in zip(low, high, strict=True))
    print(f"{topology.index_map(topology.dim).size_global} cells ({topology.cell_name()})")
    print(f"{mesh.geometry.index_map().size_global} nodes\nsize (mm)  {size}")
    print("group              what    tag  how many")
    for name, (dim, tag) in tagged.groups.items():
        cells = dim == topology.dim
        tags = tagged.cell_tags if cells else tagged.facet_tags
        assert tags is not None
        owned = int((tags.find(tag) < topology.index_map(dim).size_local).sum())
        print(f"{name:<18} {'cells' if cells else 'facets':<6} {tag:4d}  {comm.allreduce(owned)}")
    return 0


def _compare(options: argparse.Namespace) -> int:
    comparison = compare(ReducedBody.load(options.first), ReducedBody.load(options.second))
    print(comparison)
    if options.tolerance is not None and not comparison.greatest <= options.tolerance:
        print(f"they differ by more than {options.tolerance:g}")
        return 1
    return 0


def _modes(options: argparse.Namespace) -> int:
    from dolfinx_mbd.plotting import plot_modes

    path = output_path(options.output, options.file, "-modes.png")
    body = ReducedBody.load(options.file)
    chosen = None if options.modes is None else [k - 1 for k in options.modes]
    plot_modes(body, chosen, path)
    print(f"wrote {path}")
    return 0
