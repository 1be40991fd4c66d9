"""The commands `dolfinx-mbd info`, `compare` and `modes`, which inspect bodies and meshes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from dolfinx_mbd.body import ReducedBody, compare
from dolfinx_mbd.body.summary import warn_of_units
from dolfinx_mbd.checks import integer, number
from dolfinx_mbd.cli.values import add_unit, numbers, output_path
from dolfinx_mbd.forms import STEEL


def add_to(commands: Any) -> None:
    """Add `info`, `compare` and `modes` to the commands."""
    info = commands.add_parser("info", help="describe a reduced body or a mesh")
    info.add_argument("file", help="a reduced body (.npz) or a mesh")
    add_unit(info)
    info.set_defaults(run=_info)

    text = "Compare mass, centre, inertia, interfaces and frequencies of two bodies."
    parser = commands.add_parser("compare", help="compare two reduced bodies", description=text)
    parser.add_argument("first", help="a reduced body (.npz)")
    parser.add_argument("second", help="another reduced body")
    text = "greatest relative difference for which the exit code is 0"
    parser.add_argument("--tolerance", type=float, metavar="T", help=text)
    parser.set_defaults(run=_compare)

    modes = commands.add_parser("modes", help="draw the modes of a body")
    modes.add_argument("file", help="a reduced body (.npz) with a skin")
    text = "numbers of the modes, for example 1,2,5-8 (default: the first six)"
    modes.add_argument("--modes", type=numbers, metavar="LIST", help=text)
    modes.add_argument("-o", "--output", help="picture to write (default: FILE-modes.png)")
    modes.set_defaults(run=_modes)


def _info(options: argparse.Namespace) -> int:
    if Path(options.file).suffix == ".npz":
        body = ReducedBody.load(options.file)
        print(body.summary())
        points = [i.point for i in body.interfaces] if body.skin is None else body.skin.points
        warn_of_units(body.total_mass, float(np.linalg.norm(np.ptp(points, axis=0))))
    else:
        _describe_mesh(options.file, options.unit)
    return 0


def _describe_mesh(file: str, unit: float) -> None:
    from dolfinx import fem
    from mpi4py import MPI

    from dolfinx_mbd.fem import read_mesh
    from dolfinx_mbd.fem.surface_integrals import body_size, volume_integral

    tagged = read_mesh(file, MPI.COMM_WORLD, unit=unit)
    mesh = tagged.mesh
    comm, topology, x = mesh.comm, mesh.topology, mesh.geometry.x
    low = np.min(comm.allgather(x.min(axis=0, initial=np.inf)), axis=0)
    high = np.max(comm.allgather(x.max(axis=0, initial=-np.inf)), axis=0)
    size = " x ".join(f"{extent:.6g}" for extent in 1e3 * (high - low))
    print(f"{topology.index_map(topology.dim).size_global} cells ({topology.cell_name()})")
    print(f"{mesh.geometry.index_map().size_global} nodes\nsize (mm)  {size}")
    print("group              kind    tag  count")
    for name, (dim, tag) in tagged.groups.items():
        cells = dim == topology.dim
        tags = tagged.cell_tags if cells else tagged.facet_tags
        assert tags is not None
        owned = int((tags.find(tag) < topology.index_map(dim).size_local).sum())
        print(f"{name:<18} {'cells' if cells else 'facets':<6} {tag:4d}  {comm.allreduce(owned)}")
    if topology.dim == 3:  # the mass of a plane mesh depends on its thickness
        mass = volume_integral(mesh, fem.Constant(mesh, np.float64(STEEL.density)))
        warn_of_units(mass, body_size(mesh), "would, in steel, weigh")


def _compare(options: argparse.Namespace) -> int:
    if options.tolerance is not None:
        number("--tolerance", options.tolerance, low=0.0)
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
    for k in options.modes or ():
        integer("--modes", k, low=1, high=body.num_modes)
    modes = None if options.modes is None else [k - 1 for k in options.modes]
    plot_modes(body, modes, path)
    print(f"wrote {path}")
    return 0
