"""The commands `info`, `faces`, `compare`, `modes`, `view` and `export`: bodies and meshes."""

from __future__ import annotations

import argparse
import runpy
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

import numpy as np

from dolfinx_mbd.body import ReducedBody, compare
from dolfinx_mbd.body.summary import warn_of_units
from dolfinx_mbd.checks import integer, number
from dolfinx_mbd.errors import FileError, InputError
from dolfinx_mbd.forms import STEEL, Material
from dolfinx_mbd.io.cli.option_values import (
    add_force,
    add_unit,
    assignments,
    numbers,
    output_path,
    setting,
    unit_system,
)
from dolfinx_mbd.io.export import FORMATS, OPTIONS, export


def add_to(commands: Any) -> None:
    """Add `info`, `faces`, `compare`, `modes`, `view` and `export` to the commands."""
    text = (
        "Describe a reduced body, or a mesh with its groups and the materials of its file. A "
        "material that cannot be used is no error here, because the mesh can be used with others."
    )
    info = commands.add_parser("info", help="describe a reduced body or a mesh", description=text)
    info.add_argument("file", help="a reduced body (.npz) or a mesh")
    add_unit(info)
    info.set_defaults(run=_info)

    text = "Compare mass, centre, inertia, interfaces and frequencies of two bodies."
    parser = commands.add_parser("compare", help="compare two reduced bodies", description=text)
    parser.add_argument("first", help="a reduced body (.npz)")
    parser.add_argument("second", help="another reduced body")
    text = "largest relative difference for which the exit code is 0"
    parser.add_argument("--tolerance", type=float, metavar="T", help=text)
    parser.set_defaults(run=_compare)

    modes = commands.add_parser("modes", help="draw the modes of a body")
    modes.add_argument("file", help="a reduced body (.npz) with a skin")
    text = "numbers of the modes, for example 1,2,5-8 (default: the first six)"
    modes.add_argument("--modes", type=numbers, metavar="LIST", help=text)
    modes.add_argument("-o", "--output", help="picture to write (default: FILE-modes.png)")
    modes.set_defaults(run=_modes)
    faces = commands.add_parser(
        "faces",
        help="list and draw the smooth faces of a mesh",
        description="List the smooth faces of a mesh without names, with a point of each for the "
        "option '--pick NAME=near:POINT' of 'dolfinx-mbd reduce', and draw them with numbers.",
    )
    faces.add_argument("file", help="a mesh")
    add_unit(faces)
    faces.add_argument("-o", "--output", help="picture to write, for example faces.png")
    add_force(faces)
    faces.set_defaults(run=_faces)
    _add_view(commands)
    _add_export(commands)


def _info(options: argparse.Namespace) -> int:
    """Print a description of a body or a mesh."""
    if Path(options.file).suffix == ".npz":
        body = ReducedBody.load(options.file)
        print(body.summary())
        points = [i.point for i in body.interfaces] if body.skin is None else body.skin.points
        warn_of_units(body.total_mass, float(np.linalg.norm(np.ptp(points, axis=0))))
    else:
        _describe_mesh(options.file, options.unit)
    return 0


def _describe_mesh(file: str, unit: str) -> None:
    """Print size, groups and materials of a mesh, and warn if its units seem to be wrong."""
    from dolfinx import fem
    from mpi4py import MPI

    from dolfinx_mbd.fem import read_mesh
    from dolfinx_mbd.fem.surface_integrals import body_size, volume_integral

    tagged = read_mesh(file, MPI.COMM_WORLD, unit=unit)
    mesh = tagged.mesh
    comm, topology, x = mesh.comm, mesh.topology, mesh.geometry.x
    lowest = np.min(comm.allgather(x.min(axis=0, initial=np.inf)), axis=0)
    highest = np.max(comm.allgather(x.max(axis=0, initial=-np.inf)), axis=0)
    size = " x ".join(f"{extent:.6g}" for extent in 1e3 * (highest - lowest))
    print(f"{topology.index_map(topology.dim).size_global} cells ({topology.cell_name()})")
    print(f"{mesh.geometry.index_map().size_global} nodes\nsize (mm)  {size}")
    print("group              kind    tag  count")
    for name, (dim, tag) in tagged.groups.items():
        is_cells = dim == topology.dim
        tags = tagged.cell_tags if is_cells else tagged.facet_tags
        assert tags is not None
        owned = int((tags.find(tag) < topology.index_map(dim).size_local).sum())
        print(
            f"{name:<18} {'cells' if is_cells else 'facets':<6} {tag:4d}  {comm.allreduce(owned)}"
        )
    for name in tagged.materials:
        try:
            print(f"material of {name}: {_constants(tagged.materials[name])}")
        except FileError as error:
            print(error)
    if topology.dim == 3:  # the mass of a plane mesh depends on its thickness
        mass = volume_integral(mesh, fem.Constant(mesh, np.float64(STEEL.density)))
        warn_of_units(mass, body_size(mesh), "would, in steel, weigh")


def _constants(material: Any) -> str:
    """Return a text with the name and the constants of a material of a file, with units."""
    # Value in SI units, unit of the text, and factor from SI units to this unit
    values = {"E": (material.young, " GPa", 1e-9), "ν": (material.poisson, "", 1.0)}
    values["G"] = getattr(material, "shear", None), " GPa", 1e-9
    if isinstance(material, Material):  # isotropic: E and ν determine G
        del values["G"]
    values["ρ"] = material.density, " kg/m³", 1.0
    values["α"] = material.thermal_expansion, "/K", 1.0
    texts = [material.name] if material.name else []
    for symbol, (value, unit, factor) in values.items():
        if value is not None:
            entries = ", ".join(f"{factor * x:.6g}" for x in np.atleast_1d(value))
            texts.append(f"{symbol} = {entries}{unit}")
    return "; ".join(texts)


def _faces(options: argparse.Namespace) -> int:
    """Print the smooth faces of a mesh and, on request, draw them."""
    from mpi4py import MPI

    from dolfinx_mbd.fem import read_mesh, smooth_faces
    from dolfinx_mbd.parallel import on_rank_zero
    from dolfinx_mbd.plotting import plot_faces

    path = None
    if options.output is not None:
        path = output_path(options.output, options.file, ".png", options.force)
    faces = smooth_faces(read_mesh(options.file, MPI.COMM_WORLD, unit=options.unit))
    print("number  kind      area (mm²)  radius (mm)  near")
    for face in faces:
        radius = "" if face.radius is None else f"{1e3 * face.radius:.6g}"
        place = ",".join(f"{1e3 * x:.7g}mm" for x in _without_noise(face.point))
        print(f"{face.number:6d}  {face.kind:<8} {1e6 * face.area:11.6g}  {radius:>11}  {place}")
    if path is not None:
        on_rank_zero(MPI.COMM_WORLD, lambda: plot_faces(faces, path))
        print(f"wrote {path}")
    return 0


def _without_noise(point: np.ndarray) -> np.ndarray:
    """Return a point with 0 for coordinates that differ from 0 by rounding errors only."""
    return np.where(np.abs(point) <= 1e-9 * np.abs(point).max(), 0.0, point)


def _compare(options: argparse.Namespace) -> int:
    """Print the differences of two bodies; the exit code is 1 above the tolerance."""
    if options.tolerance is not None:
        number("--tolerance", options.tolerance, low=0.0)
    comparison = compare(ReducedBody.load(options.first), ReducedBody.load(options.second))
    print(comparison)
    if options.tolerance is not None and not comparison.greatest <= options.tolerance:
        print(f"they differ by more than {options.tolerance:g}")
        return 1
    return 0


def _modes(options: argparse.Namespace) -> int:
    """Write a picture of the modes of a body."""
    from dolfinx_mbd.plotting import plot_modes

    path = output_path(options.output, options.file, "-modes.png")
    body = ReducedBody.load(options.file)
    for k in options.modes or ():
        integer("--modes", k, low=1, high=body.num_modes)
    plot_modes(body, options.modes, path)
    print(f"wrote {path}")
    return 0


def _add_view(commands: Any) -> None:
    """Add `view` to the commands."""
    text = "Show the modes of a body, or a saved run, in the browser, or write the page to a file."
    parser = commands.add_parser("view", help="show a body or a run in 3D", description=text)
    parser.add_argument("file", help="a reduced body with a skin, or a saved run (.npz)")
    text = "Python script that assigns the mechanism of a run to the variable `system`"
    parser.add_argument("--model", metavar="SCRIPT", help=text)
    text = "scale factor of the elastic displacement (default 1)"
    parser.add_argument("--scale", type=float, default=1.0, metavar="S", help=text)
    text = "page to write (.html) instead of opening the browser"
    parser.add_argument("-o", "--output", metavar="PAGE", help=text)
    parser.set_defaults(run=_view)


def system_of(script: str) -> Any:
    """Return the mechanism that a Python script assigns to the variable `system`."""
    from dolfinx_mbd.io.imports.matrix_files import existing_file
    from dolfinx_mbd.mechanism.system import System

    system = runpy.run_path(str(existing_file("--model", script))).get("system")
    if not isinstance(system, System):
        raise InputError(f"--model: {script} defines no mechanism called system")
    return system


def name_in(system: Any, body: ReducedBody, name: str | None) -> str:
    """Return the name of a body in a mechanism: the option --name, or the name in its file."""
    from dolfinx_mbd.mechanism import FlexibleBody

    label = body.name if name is None else name
    known = [b.name for b in system.bodies if isinstance(b, FlexibleBody)]
    if label not in known:
        source = "the body in the file is called" if name is None else "--name is"
        names = ", ".join(map(repr, known)) or "none"
        text = f"{source} {label!r}, but the flexible bodies of the mechanism are {names}"
        hint = f"; add --name {known[0]!r}" if name is None and known else ""
        raise InputError(text + hint, argument="--name", value=label, expected=names)
    return label


def _view(options: argparse.Namespace) -> int:
    """Write the page of a body or a run, and open it in the browser without --output."""
    from dolfinx_mbd.plotting import player
    from dolfinx_mbd.results import Solution

    source: Any
    if options.model is None:
        source = ReducedBody.load(options.file)
    else:
        source = Solution.load(options.file, system_of(options.model))
    title = Path(options.file).stem
    path = Path(options.output or Path(tempfile.mkdtemp()) / f"{title}.html")
    player(source, path, scale=options.scale, title=title)
    print(f"wrote {path}")
    if options.output is None and not webbrowser.open(path.resolve().as_uri()):
        print("no browser was found; open the page yourself")
    return 0


def _add_export(commands: Any) -> None:
    """Add `export`, with a list of the formats and their options, to the commands."""
    formats = [
        f"  {f.name:<10} {f'{f.title} (*{f.extension})':<27} {', '.join(f.options)}".rstrip()
        for f in FORMATS.values()
    ]
    options = [f"  {name:<12} {text}" for name, text in OPTIONS.items()]
    epilog = "\n".join(["formats and their options:", *formats, "", "--option:", *options])
    parser = commands.add_parser(
        "export",
        help="write a body for another program",
        description="Write a reduced body for another program, and list the data that its format "
        "cannot contain.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", help="a reduced body (.npz)")
    text = "format; see below"
    add("--to", required=True, choices=tuple(FORMATS), metavar="FORMAT", help=text)
    text = "units of the numbers in the file, LENGTH-MASS-TIME, for example mm-t-s (default m-kg-s)"
    add("--units", type=unit_system, default="m-kg-s", metavar="U", help=text)
    text = "option of the format, for example dialect=fembeam for sid; see below"
    add("--option", action="append", default=[], metavar="NAME=VALUE", help=text)
    text = "file to write (default: name of the input file with the suffix of the format)"
    add("-o", "--output", help=text)
    add_force(parser)
    parser.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> int:
    """Write a body in the format of another program, and print what the format omits."""
    body = ReducedBody.load(options.file)
    suffix = FORMATS[options.to].extension
    if suffix == Path(options.file).suffix:
        suffix = f"-{options.to}{suffix}"
    path = output_path(options.output, options.file, suffix)
    settings = {k: setting(v) for k, v in assignments(options.option, "--option").items()}
    common = {"units": options.units, "overwrite": options.force}
    try:
        report = export(body, path, options.to, **common, **settings)
    except TypeError as error:
        raise InputError(f"--option: {error}") from error
    print(report)
    return 0
