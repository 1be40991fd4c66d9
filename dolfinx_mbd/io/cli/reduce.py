"""The command `dolfinx-mbd reduce`, which reduces the body of a mesh."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dolfinx_mbd.body.body_files import is_body_file
from dolfinx_mbd.body.summary import warn_of_units
from dolfinx_mbd.checks import array, file_path, integer, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.cli.named_materials import chosen_materials, known_materials
from dolfinx_mbd.io.cli.option_values import (
    add_unit,
    assignments,
    coordinate,
    frequency,
    length,
    output_path,
    setting,
    shapes,
)

if TYPE_CHECKING:
    from dolfinx_mbd.fem import ElasticModel
    from dolfinx_mbd.fem.facets import FacetGroups

_DESCRIPTION = """\
Reduce the body of a mesh to a few modes (Craig-Bampton), and write all data that
a multibody program needs to one file. Use mpirun for large meshes.

  dolfinx-mbd reduce rod.msh --material steel --interface big_end --interface small_end:averaged
  dolfinx-mbd reduce rod.msh --material steel --pick pin=near:137mm,9.5mm,0
  mpirun -n 4 dolfinx-mbd reduce rod.msh ...
"""


def add_to(commands: Any) -> None:
    """Add `reduce` and `materials` to the commands."""
    parser = commands.add_parser(
        "reduce",
        help="reduce a body to a few modes",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_options(parser)
    parser.set_defaults(run=_reduce)
    table = commands.add_parser("materials", help="list the known materials")
    table.add_argument("--materials", metavar="FILE", help="TOML file with materials of your own")
    table.set_defaults(run=_materials)


def _add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `reduce`."""
    add = parser.add_argument

    def add_list(name: str, metavar: str, help: str, **options: Any) -> None:
        add(name, action="append", default=[], metavar=metavar, help=help, **options)

    def add_flag(name: str, help: str) -> None:
        add(name, action="store_true", help=help)

    add("file", help="mesh, for example of Gmsh with named physical groups (.msh)")
    text = "name of a material; repeat the option for each group of cells, for example"
    text += " --material shank=steel --material bush=bronze (default: the materials of the file)"
    add_list("--material", "[GROUP=]NAME", text)
    add("--materials", metavar="FILE", help="TOML file with materials of your own")
    text = "group of facets at which a joint is attached, rigid (default) or averaged"
    add_list("--interface", "NAME[=GROUP][:KIND]", text)
    text = "interface on facets that a shape selects, for a mesh without names; see dolfinx-mbd"
    text += " faces. Shapes are cylinder:POINT:AXIS:RADIUS, plane:POINT:NORMAL, box:LOW:HIGH and"
    text += " near:POINT, for example pin=cylinder:0,0,0:0,0,1:5mm; join several of them by '+'."
    add_list("--pick", "NAME=SHAPE", f"{text} tolerance:LENGTH sets the tolerance")
    text = "number of fixed-interface modes (default 20)"
    add("--modes", type=int, default=20, metavar="N", help=text)
    text = "keep the fewest of these modes with this share of their total effective mass, for"
    add("--effective-mass", type=float, metavar="SHARE", help=f"{text} example 0.95")
    text = "group of facets on which a pressure can act in a simulation"
    add_list("--pressure", "NAME[=GROUP]", text)
    text = "add a static mode for each pressure, so that its static response is exact"
    add_flag("--load-modes", text)
    text = "omit modes above a frequency, for example 20kHz or 20000"
    add("--up-to", type=frequency, metavar="F", help=text)
    text = "body frame: mean-axis (default) or attached:INTERFACE"
    add("--reference", default="mean-axis", metavar="R", help=text)
    add_flag("--no-stiffening", "omit the geometric stiffening")
    text = "damping ratio of all modes; 0.01 is 1 %%"
    add("--damping", type=float, metavar="ZETA", help=text)
    add_unit(parser)
    text = "polynomial degree of the elements (default 2)"
    add("--degree", type=int, metavar="P", help=text)
    add("--plane", choices=("stress", "strain"), help="state of a plane mesh")
    text = "thickness of a plane mesh, for example 5mm or 0.005"
    add("--thickness", type=length, metavar="LENGTH", help=text)
    text = "coordinates of a point to observe or to load, for example tip=70mm,0,0"
    add_list("--point", "NAME=X,Y,Z", text)
    text = "omit the surface; the file is smaller, but pictures are not possible"
    add_flag("--no-skin", text)
    add_flag("--stress", "store the stress of the modes at the surface")
    text = "write the mode shapes on the mesh for ParaView to a file .bp or .pvd"
    add("--write-modes", metavar="FILE", help=text)
    add("--name", help="name of the body (default: name of the file)")
    text = (
        "direct, double (direct in double precision for all sizes), or iterative with half the "
        "memory; auto (default): direct if memory suffices"
    )
    add("--solver", choices=("auto", "direct", "double", "iterative"), default="auto", help=text)
    text = "PETSc option of the solvers, for example pc_factor_mat_solver_type=mumps"
    add_list("--petsc", "OPTION=VALUE", text)
    add_flag("--dry-run", "check the input, and print size, memory and time without a reduction")
    add("-o", "--output", help="file to write (default: name of the mesh with .npz)")
    add("-q", "--quiet", action="store_true", help="do not print progress")


def _reduce(options: argparse.Namespace) -> int:
    """Reduce the body of a mesh, write its file and print a summary."""
    from mpi4py import MPI

    from dolfinx_mbd.body import ModalDamping
    from dolfinx_mbd.durability.recovery import skin_stress
    from dolfinx_mbd.fem import ElasticModel, read_mesh
    from dolfinx_mbd.fem.facets import facet_groups
    from dolfinx_mbd.fem.field_files import SUFFIXES
    from dolfinx_mbd.reduction import ReductionOptions, pressure, reduce

    integer("--modes", options.modes, low=0)
    degree = _degree(options)
    materials = chosen_materials(options.material, options.materials)
    picks = {k: shapes(k, text) for k, text in assignments(options.pick, "--pick").items()}
    interfaces = _interfaces(options.interface, picks)
    attached_to = _attached_interface(options.reference)
    points = {k: _point(k, text) for k, text in assignments(options.point, "--point").items()}
    output = options.output
    if output and not Path(output).suffix and not Path(output).is_dir():
        output += ".npz"
    path = output_path(output, options.file, ".npz", is_body_file)
    if options.write_modes is not None:
        file_path("--write-modes", options.write_modes, SUFFIXES)
    mesh = read_mesh(options.file, MPI.COMM_WORLD, unit=options.unit)
    _check_material(materials, mesh, options.file)
    interfaces = _with_facets(mesh, interfaces, picks)
    facet_lists = facet_groups(mesh, {name: spec.facets for name, spec in interfaces.items()}, None)
    named_groups = (word.partition("=") for word in options.pressure)
    pressures = {name: pressure(mesh, group or name) for name, _, group in named_groups}
    model_options = {"plane": options.plane, "thickness": options.thickness, **degree}
    model = ElasticModel(mesh, materials, **model_options)
    if options.dry_run:
        print(_dry_run(model, facet_lists, options))
        return 0
    reduction = reduce(
        model,
        interfaces=interfaces,
        num_modes=options.modes,
        attached_to=attached_to,
        stiffening=False if options.no_stiffening else None,
        points=points,
        name=Path(options.file).stem if options.name is None else options.name,
        options=ReductionOptions(
            effective_mass=options.effective_mass,
            up_to=options.up_to,
            loads=pressures,
            load_modes=options.load_modes,
            damping=None if options.damping is None else ModalDamping(options.damping),
            skin=not options.no_skin,
        ),
        solver=options.solver,
        petsc_options={k: setting(v) for k, v in assignments(options.petsc, "--petsc").items()},
    )
    body = reduction.body
    if options.stress:
        body = body.replace(stress=skin_stress(reduction))
    body.save(path, comm=MPI.COMM_WORLD)
    print(body.summary())
    print(f"\nwrote {path} ({path.stat().st_size / 1e6:.2f} MB)")
    if options.write_modes is not None:
        reduction.write_modes(options.write_modes)
        print(f"wrote {options.write_modes}")
    return 0


def _check_material(materials: Any, mesh: Any, file: str) -> None:
    """Raise an error if neither the options nor the mesh have a material."""
    if materials is None and not mesh.materials:
        text = f"--material is missing, and '{file}' contains no materials"
        raise InputError(text, argument="--material")


def _materials(options: argparse.Namespace) -> int:
    """Print a table of the known materials."""
    print("name               E (GPa)     nu   rho (kg/m³)  alpha (1e-6/K)")
    for name, m in sorted(known_materials(options.materials).items()):
        heat = "" if m.thermal_expansion is None else f"{1e6 * m.thermal_expansion:.4g}"
        print(f"{name:<18} {m.young / 1e9:7.4g}  {m.poisson:5.3g}  {m.density:12.6g}  {heat:>14}")
    return 0


def _degree(options: argparse.Namespace) -> dict[str, int]:
    """Return the polynomial degree as an argument of a model; empty for the default."""
    if options.degree is None:
        return {}
    return {"degree": integer("--degree", options.degree, low=1, high=9)}


def _interfaces(words: list[str], picks: Mapping[str, Any]) -> dict[str, Any]:
    """Return the interfaces by name; a pick without an interface is a rigid interface."""
    from dolfinx_mbd.reduction import InterfaceSpec

    result: dict[str, Any] = {}
    for word in words:
        rest, _, kind = word.rpartition(":") if ":" in word else (word, "", "rigid")
        name, _, group = rest.partition("=")
        if not name or kind not in ("rigid", "averaged"):
            reject("--interface", word, "NAME, NAME:averaged or NAME=GROUP:rigid")
        if name in result:
            raise InputError(f"--interface: {name!r} occurs twice", argument="--interface")
        facets: Any = setting(group) if group.isdigit() else group or name
        result[name] = InterfaceSpec(facets, kind=kind)  # type: ignore[arg-type]
    used = {spec.facets for spec in result.values()}
    return {**result, **{name: InterfaceSpec(name) for name in picks if name not in used}}


def _with_facets(
    mesh: Any, interfaces: Mapping[str, Any], picks: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the interfaces with the facets that the shapes of `--pick` select."""
    from dolfinx_mbd.fem import pick

    result = dict(interfaces)
    for name, spec in interfaces.items():
        if spec.facets in picks:
            try:
                result[name] = replace(spec, facets=pick(mesh, **picks[spec.facets]))
            except InputError as error:
                raise InputError(f"--pick {spec.facets}: {error}", argument="--pick") from None
    return result


def _attached_interface(text: str) -> str | None:
    """Return the interface of an attached body frame, or None for a mean-axis frame."""
    if text == "mean-axis":
        return None
    word, _, name = text.partition(":")
    if word != "attached" or not name:
        reject("--reference", text, "mean-axis or attached:INTERFACE")
    return name


def _point(name: str, text: str) -> list[float]:
    """Return the coordinates of a point in a text `X,Y,Z`, m."""
    try:
        return list(
            array(f"--point {name}", [coordinate(part) for part in text.split(",")], (None,))
        )
    except ValueError:
        reject("--point", text, f"{name}=X,Y,Z with finite numbers")


def _dry_run(model: ElasticModel, groups: FacetGroups, options: argparse.Namespace) -> str:
    """Return a text with size and cost of a reduction; warn if the units seem to be wrong."""
    from dolfinx_mbd.fem.linalg.cholmod import expected_entries, library
    from dolfinx_mbd.fem.linalg.memory import factorization_memory
    from dolfinx_mbd.fem.linalg.single_precision import is_large
    from dolfinx_mbd.fem.surface_integrals import body_size, volume_integral

    mesh, V = model.plain_mesh, model.displacements
    mass = (model.thickness or 1.0) * volume_integral(mesh, model.mass_density)
    warn_of_units(mass, body_size(mesh))
    topology, dim = mesh.topology, mesh.geometry.dim
    owned = topology.index_map(dim - 1).size_local
    # Rigid motions of an interface; those of one interface are the rigid motions of the body
    rigid_motions = dim * (dim + 1) // 2
    coordinates = rigid_motions * max(len(groups) - 1, 0) + options.modes
    dofs, degree = dim * V.dofmap.index_map.size_global, V.ufl_element().sub_elements[0].degree
    lines = [f"mesh            {topology.index_map(dim).size_global} cells"]
    for name, facets in groups.items():
        count = mesh.comm.allreduce(int((facets < owned).sum()))
        lines.append(f"interface       {name}, {count} facets")
    ranks = mesh.comm.size
    single = options.solver != "double" and is_large(dofs, ranks)
    known = ranks == 1 and library() is not None
    entries = expected_entries(V.dofmap.list, dim) if known else None
    memory = factorization_memory(dofs, single=single, num_ranks=ranks, entries=entries)
    seconds = expected_time(dofs, options.modes, stiffening=not options.no_stiffening)
    lines += [
        f"displacements   {dofs} degrees of freedom (degree {degree})",
        f"reduced body    {coordinates} elastic coordinates",
        f"expected time   about {seconds:.2g} s on one core",
        f"expected memory {_memory(memory / 1e9)}",
    ]
    return "\n".join(lines)


def expected_time(dofs: int, num_modes: int, *, stiffening: bool) -> float:
    """Return the expected time of a reduction with a direct solver on one core, s.

    The constants are fitted to the measurements in `benchmarks/README.md` (quadratic tetrahedra,
    24 modes, one rank), from which the time differs by at most 1/8. On other computers it is
    accurate to a factor of two.
    """
    seconds = 1.8 * (dofs / 33e3) ** 1.3 * (0.5 + 0.5 * num_modes / 24)
    return 1.45 * seconds if stiffening else seconds


def _memory(gigabytes: float) -> str:
    """Return a text with an amount of memory, and with the memory of this machine if known."""
    try:
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (AttributeError, OSError, ValueError):
        return f"about {gigabytes:.2g} GB"
    fits = "" if gigabytes < 0.9 * available else ": it will not fit"
    return f"about {gigabytes:.2g} GB, this machine has {available:.3g} GB{fits}"
