"""The command `dolfinx-mbd reduce`, which reduces the body of a mesh."""

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
    from dolfinx_mbd.fem import ElasticModel
    from dolfinx_mbd.fem.facets import FacetGroups

__all__ = ["add_to"]

_DESCRIPTION = """\
Reduce the body of a mesh with named groups to a few modes (Craig-Bampton), and write all data that
a multibody program needs to one file. Use mpirun for large meshes.

  dolfinx-mbd reduce rod.msh --material steel --interface big_end --interface small_end:averaged
  mpirun -n 4 dolfinx-mbd reduce rod.msh ...
"""


_ARGUMENTS: dict[str, dict[str, Any]] = {
    "file": {"help": "gmsh mesh (.msh) with named physical groups"},
    "--material": {
        "action": "append",
        "required": True,
        "metavar": "[GROUP=]NAME",
        "help": "name of a material; repeat the option for each group of cells, for example "
        "--material shank=steel --material bush=bronze",
    },
    "--materials": {"metavar": "FILE", "help": "TOML file with materials of your own"},
    "--interface": {
        "action": "append",
        "default": [],
        "metavar": "NAME[=GROUP][:KIND]",
        "help": "group of facets at which a joint is attached, rigid (default) or averaged",
    },
    "--modes": {
        "type": int,
        "default": 20,
        "metavar": "N",
        "help": "number of fixed-interface modes (default 20)",
    },
    "--effective-mass": {
        "type": float,
        "metavar": "SHARE",
        "help": "keep the fewest of these modes that have this share of their effective mass, "
        "for example 0.95",
    },
    "--pressure": {
        "action": "append",
        "default": [],
        "metavar": "NAME[=GROUP]",
        "help": "group of facets on which a pressure can act in a simulation",
    },
    "--load-modes": {
        "action": "store_true",
        "help": "add a static mode for each pressure, so that its static response is exact",
    },
    "--up-to": {
        "type": frequency,
        "metavar": "F",
        "help": "omit modes above a frequency, for example 20kHz or 20000",
    },
    "--reference": {
        "default": "mean-axis",
        "metavar": "R",
        "help": "body frame: mean-axis (default) or attached:INTERFACE",
    },
    "--no-stiffening": {"action": "store_true", "help": "omit the geometric stiffening"},
    "--damping": {
        "type": float,
        "metavar": "ZETA",
        "help": "damping ratio of all modes; 0.01 is 1 %%",
    },
    "--unit": {
        "type": length_unit,
        "default": 1.0,
        "metavar": "U",
        "help": "unit of length of the mesh, for example mm (default m)",
    },
    "--degree": {
        "type": int,
        "metavar": "P",
        "help": "polynomial degree of the elements (default 2)",
    },
    "--plane": {"choices": ("stress", "strain"), "help": "state of a plane mesh"},
    "--thickness": {"type": float, "metavar": "M", "help": "thickness of a plane mesh, m"},
    "--point": {
        "action": "append",
        "default": [],
        "metavar": "NAME=X,Y,Z",
        "help": "coordinates of a point whose displacement can be recovered, m",
    },
    "--no-skin": {
        "action": "store_true",
        "help": "omit the surface; the file is smaller, but pictures are not possible",
    },
    "--stress": {"action": "store_true", "help": "store the stress of the modes at the surface"},
    "--name": {"help": "name of the body (default: name of the file)"},
    "--solver": {
        "choices": ("auto", "direct", "iterative"),
        "default": "auto",
        "help": "direct, or iterative with half of the memory; auto (default) uses direct if it "
        "fits",
    },
    "--petsc": {
        "action": "append",
        "default": [],
        "metavar": "OPTION=VALUE",
        "help": "PETSc option of the solvers, for example pc_factor_mat_solver_type=mumps",
    },
    "--dry-run": {
        "action": "store_true",
        "help": "check the input, and print size, memory and time without a reduction",
    },
    "--output": {"help": "file to write (default: name of the mesh with .npz)"},
}
_SHORT = {"--output": ("-o",)}


def add_to(commands: Any) -> None:
    """Add `reduce` and `materials` to the commands."""
    parser = commands.add_parser(
        "reduce",
        help="reduce a body to a few modes",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, options in _ARGUMENTS.items():
        parser.add_argument(*_SHORT.get(name, ()), name, **options)
    parser.add_argument("-q", "--quiet", action="store_true", help="do not print progress")
    parser.set_defaults(run=_reduce)

    table = commands.add_parser("materials", help="list the known materials")
    table.add_argument("--materials", metavar="FILE", help="TOML file with materials of your own")
    table.set_defaults(run=_materials)


def _reduce(options: argparse.Namespace) -> int:
    from mpi4py import MPI

    from dolfinx_mbd.body import ModalDamping
    from dolfinx_mbd.fem import ElasticModel, read_mesh
    from dolfinx_mbd.fem.facets import facet_groups
    from dolfinx_mbd.recovery import skin_stress
    from dolfinx_mbd.reduction import ReductionOptions, pressure, reduce

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
    groups = facet_groups(mesh, {name: spec.facets for name, spec in interfaces.items()}, None)
    pressures = {}
    for word in options.pressure:
        name, _, group = word.partition("=")
        pressures[name] = pressure(mesh, group or name)
    degree = {} if options.degree is None else {"degree": options.degree}
    model = ElasticModel(
        mesh, materials, plane=options.plane, thickness=options.thickness, **degree
    )
    if options.dry_run:
        print(_dry_run(model, groups, options))
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
                f"--interface: expected NAME, NAME:averaged or NAME=GROUP:rigid; got {word!r}",
                argument="--interface",
                value=word,
            )
        if name in result:
            raise InputError(f"--interface: {name!r} occurs twice", argument="--interface")
        facets: Any = setting(group) if group.isdigit() else group or name
        result[name] = InterfaceSpec(facets, kind=kind)  # type: ignore[arg-type]
    return result


def _attached(text: str) -> str | None:
    if text == "mean-axis":
        return None
    word, colon, name = text.partition(":")
    if word != "attached" or not name:
        raise InputError(
            f"--reference: expected mean-axis or attached:INTERFACE; got {text!r}",
            argument="--reference",
            value=text,
        )
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


def _dry_run(model: ElasticModel, groups: FacetGroups, options: argparse.Namespace) -> str:
    """Return the size and the cost of a reduction, with the warnings that it would give."""
    from dolfinx_mbd.fem.surface_integrals import body_size, volume_integral

    mesh, V = model.plain_mesh, model.displacements
    mass = (model.thickness or 1.0) * volume_integral(mesh, model.mass_density)
    warn_of_units(mass, body_size(mesh))
    topology, dim = mesh.topology, mesh.geometry.dim
    owned = topology.index_map(dim - 1).size_local
    per = dim * (dim + 1) // 2
    dofs = dim * V.dofmap.index_map.size_global
    lines = [f"mesh            {topology.index_map(dim).size_global} cells"]
    for name, facets in groups.items():
        count = mesh.comm.allreduce(int((facets < owned).sum()))
        lines.append(f"interface       {name}, {count} facets")
    coordinates = per * max(len(groups) - 1, 0) + options.modes
    degree = V.ufl_element().sub_elements[0].degree
    lines.append(f"displacements   {dofs} degrees of freedom (degree {degree})")
    lines.append(f"reduced body    {coordinates} elastic coordinates")
    lines.append(str(estimate(dofs, options.modes, stiffening=not options.no_stiffening)))
    return "\n".join(lines)
