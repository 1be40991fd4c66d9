"""`dolfinx-mbd reduce`: from a mesh to a reduced body, in parallel under `mpirun`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dolfinx_mbd.body.files import is_body_file
from dolfinx_mbd.body.summary import warn_of_units
from dolfinx_mbd.checks import array, integer
from dolfinx_mbd.cli.estimate import estimate
from dolfinx_mbd.cli.materials import chosen_materials, known_materials
from dolfinx_mbd.cli.values import assignments, frequency, length_unit, output_path, setting
from dolfinx_mbd.errors import InputError

if TYPE_CHECKING:
    from dolfinx_mbd.fem import TaggedMesh
    from dolfinx_mbd.fem.facets import FacetGroups

__all__ = ["add_to"]

_DESCRIPTION = """\
Reduce the body of a mesh with named groups to a few modes (Craig-Bampton), and write everything
that a multibody program needs to one file. Run it under mpirun for large meshes.

  dolfinx-mbd reduce rod.msh --material steel --interface big_end --interface small_end:averaged
  mpirun -n 4 dolfinx-mbd reduce rod.msh ...
"""


def add_to(commands: Any) -> None:
    """Add `reduce` and `materials` to the commands."""
    parser = commands.add_parser(
        "reduce",
        help="reduce a body to few modes",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", help="a mesh of gmsh (.msh) with named physical groups")
    add(
        "--material",
        action="append",
        required=True,
        metavar="[GROUP=]NAME",
        help="name of the material; for several volumes repeat it for each group, for example "
        "--material shank=steel --material bush=bronze",
    )
    add("--materials", metavar="FILE", help="TOML file with materials of your own")
    add(
        "--interface",
        action="append",
        default=[],
        metavar="NAME[=GROUP][:KIND]",
        help="a group of facets where a joint meets the body, rigid (default) or averaged",
    )
    add("--modes", type=int, default=20, metavar="N", help="fixed-interface modes (default 20)")
    add(
        "--effective-mass",
        type=float,
        metavar="SHARE",
        help="keep only as many of these modes as have this share of their effective mass, for "
        "example 0.95",
    )
    add(
        "--pressure",
        action="append",
        default=[],
        metavar="NAME[=GROUP]",
        help="a group of facets on which a pressure can act later",
    )
    add(
        "--load-modes",
        action="store_true",
        help="add a static mode for each pressure, for exact statics",
    )
    add(
        "--up-to",
        type=frequency,
        metavar="F",
        help="leave out modes above a frequency, for example 20kHz or 20000",
    )
    add(
        "--reference",
        default="mean-axis",
        metavar="R",
        help="frame of the body: mean-axis (default) or attached:INTERFACE",
    )
    add("--no-stiffening", action="store_true", help="leave out the geometric stiffening")
    add("--damping", type=float, metavar="ZETA", help="damping ratio of all modes, 0.01 for 1 %%")
    add("--unit", type=length_unit, default=1.0, metavar="U", help="unit of the mesh (default m)")
    add("--degree", type=int, metavar="P", help="degree of the elements (default 2)")
    add("--plane", choices=("stress", "strain"), help="state of a plane mesh")
    add("--thickness", type=float, metavar="M", help="thickness of a plane mesh, m")
    add(
        "--point",
        action="append",
        default=[],
        metavar="NAME=X,Y,Z",
        help="a point whose displacement can be recovered later, m",
    )
    add(
        "--no-skin",
        action="store_true",
        help="leave out the surface: a smaller file, but no pictures",
    )
    add("--stress", action="store_true", help="keep the stress of the modes at the surface")
    add("--name", help="name of the body (default: name of the file)")
    add(
        "--solver",
        choices=("auto", "direct", "iterative"),
        default="auto",
        help="direct, or iterative in half the memory; auto (default): direct while it fits",
    )
    add(
        "--petsc",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="option of the solvers, for example pc_factor_mat_solver_type=mumps",
    )
    add(
        "--dry-run",
        action="store_true",
        help="only check the input, and print the size, memory and time",
    )
    add("-q", "--quiet", action="store_true", help="print no progress")
    add("-o", "--output", help="file to write (default: name of the mesh with .npz)")
    parser.set_defaults(run=_reduce)

    table = commands.add_parser("materials", help="list the known materials")
    table.add_argument("--materials", metavar="FILE", help="TOML file with materials of your own")
    table.set_defaults(run=_materials)


def _reduce(options: argparse.Namespace) -> int:
    from mpi4py import MPI

    from dolfinx_mbd.body import ModalDamping
    from dolfinx_mbd.fem import read_mesh
    from dolfinx_mbd.fem.facets import facet_groups
    from dolfinx_mbd.recovery import skin_stress
    from dolfinx_mbd.reduction import pressure, reduce

    integer("--modes", options.modes, low=0)
    if options.degree is not None:
        integer("--degree", options.degree, low=1, high=9)
    materials = chosen_materials(options.material, options.materials)
    interfaces = _interfaces(options.interface)
    attached_to = _attached(options.reference)
    points = {
        name: _point(name, text) for name, text in assignments(options.point, "--point").items()
    }
    output = options.output
    if output and not Path(output).suffix and not Path(output).is_dir():
        output += ".npz"
    path = output_path(output, options.file, ".npz", is_body_file)
    mesh = read_mesh(options.file, MPI.COMM_WORLD, unit=options.unit)
    degree = {} if options.degree is None else {"degree": options.degree}
    groups = facet_groups(mesh, {name: spec.facets for name, spec in interfaces.items()}, None)
    pressures = {}
    for word in options.pressure:
        name, _, group = word.partition("=")
        pressures[name] = pressure(mesh, group or name)
    damping = None if options.damping is None else ModalDamping(options.damping)
    if options.dry_run:
        print(_dry_run(mesh, groups, options))
        _warn_of_units(mesh, materials, options)
        return 0
    reduction = reduce(
        mesh,
        materials,
        interfaces=interfaces,
        num_modes=options.modes,
        effective_mass=options.effective_mass,
        loads=pressures,
        load_modes=options.load_modes,
        attached_to=attached_to,
        up_to=options.up_to,
        stiffening=False if options.no_stiffening else None,
        damping=damping,
        plane=options.plane,
        thickness=options.thickness,
        points=points,
        name=Path(options.file).stem if options.name is None else options.name,
        skin=not options.no_skin,
        solver=options.solver,
        petsc_options={k: setting(v) for k, v in assignments(options.petsc, "--petsc").items()},
        **degree,
    )
    body = reduction.body
    if options.stress:
        body = body.replace(stress=skin_stress(reduction))
    body.save(path, comm=MPI.COMM_WORLD)
    print(body.summary())
    print(f"\nwrote {path} ({path.stat().st_size / 1e6:.2f} MB)")
    return 0


def _materials(options: argparse.Namespace) -> int:
    print("name               E (GPa)     nu   rho (kg/m³)  alpha (1e-6/K)")
    for name, m in sorted(known_materials(options.materials).items()):
        heat = "" if m.thermal_expansion is None else f"{1e6 * m.thermal_expansion:.4g}"
        print(f"{name:<18} {m.young / 1e9:7.4g}  {m.poisson:5.3g}  {m.density:12.6g}  {heat:>14}")
    return 0


def _interfaces(words: list[str]) -> dict[str, Any]:
    from dolfinx_mbd.reduction import InterfaceSpec

    result: dict[str, Any] = {}
    for word in words:
        rest, colon, kind = word.rpartition(":")
        if not colon:
            rest, kind = word, "rigid"
        name, _, group = rest.partition("=")
        if not name or kind not in ("rigid", "averaged"):
            raise InputError(
                f"--interface: expected NAME, NAME:averaged or NAME=GROUP:rigid; got {word!r}"
            )
        if name in result:
            raise InputError(f"--interface: {name!r} is given twice")
        facets: Any = setting(group) if group.isdigit() else group or name
        result[name] = InterfaceSpec(facets, kind=kind)  # type: ignore[arg-type]
    return result


def _attached(text: str) -> str | None:
    if text == "mean-axis":
        return None
    word, colon, name = text.partition(":")
    if word != "attached" or not name:
        raise InputError(f"--reference: expected mean-axis or attached:INTERFACE; got {text!r}")
    return name


def _point(name: str, text: str) -> list[float]:
    try:
        return list(array(f"--point {name}", [float(part) for part in text.split(",")], (None,)))
    except ValueError:
        raise InputError(
            f"--point: expected {name}=X,Y,Z with finite numbers; got {name}={text}",
            argument="--point",
            value=text,
        ) from None


def _warn_of_units(mesh: TaggedMesh, materials: Any, options: argparse.Namespace) -> None:
    """Give the warnings that the reduction would give."""
    from dolfinx_mbd.fem.material_fields import body_materials
    from dolfinx_mbd.fem.mesh_checks import warn_of_materials
    from dolfinx_mbd.fem.surface_integrals import body_size, volume_integral

    made_of = body_materials(mesh, materials, plane=options.plane)
    warn_of_materials(made_of.by_group.values())
    mass = (options.thickness or 1.0) * volume_integral(mesh.mesh, made_of.density)
    warn_of_units(mass, body_size(mesh.mesh))


def _dry_run(mesh: TaggedMesh, groups: FacetGroups, options: argparse.Namespace) -> str:
    """Return what the reduction would be, without doing it."""
    from dolfinx import fem

    from dolfinx_mbd.fem.compat import geometry_degree

    comm, dim = mesh.mesh.comm, mesh.mesh.geometry.dim
    degree = max(options.degree or 2, geometry_degree(mesh.mesh))
    V = fem.functionspace(mesh.mesh, ("Lagrange", degree, (dim,)))
    topology = mesh.mesh.topology
    owned = topology.index_map(dim - 1).size_local
    per = dim * (dim + 1) // 2
    dofs = dim * V.dofmap.index_map.size_global
    lines = [f"mesh            {topology.index_map(dim).size_global} cells"]
    for name, facets in groups.items():
        count = comm.allreduce(int((facets < owned).sum()))
        lines.append(f"interface       {name}, {count} facets")
    coordinates = per * max(len(groups) - 1, 0) + options.modes
    lines.append(f"displacements   {dofs} degrees of freedom (degree {degree})")
    lines.append(f"reduced body    {coordinates} elastic coordinates")
    lines.append(str(estimate(dofs, options.modes, stiffening=not options.no_stiffening)))
    return "\n".join(lines)
