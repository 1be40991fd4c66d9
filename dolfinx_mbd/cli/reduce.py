"""`dolfinx-mbd reduce`: from a mesh to a reduced body, in parallel under `mpirun`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dolfinx_mbd.cli.estimate import estimate
from dolfinx_mbd.cli.materials import chosen_materials, known_materials
from dolfinx_mbd.cli.values import (
    assignments,
    frequency,
    length_unit,
    output_path,
    setting,
)

if TYPE_CHECKING:
    from dolfinx_mbd.analysis import TaggedMesh
    from dolfinx_mbd.analysis.facets import FacetGroups

__all__ = ["add_to"]

_DESCRIPTION = """\
Reduce the body of a mesh with named groups to few modes (Craig-Bampton), with all that a multibody
program needs, in one file. Run it under mpirun for large meshes.

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
    add("file", help="the mesh: what gmsh reads, with named physical groups")
    add(
        "--material",
        action="append",
        required=True,
        metavar="[GROUP=]NAME",
        help="a material by name; of several volumes once for each group, for instance "
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
        help="of these keep the fewest with this share of the effective mass of all: 0.95",
    )
    add(
        "--pressure",
        action="append",
        default=[],
        metavar="NAME[=GROUP]",
        help="a group of facets on which a pressure will act: the body knows its work",
    )
    add("--load-modes", action="store_true", help="a static mode for each pressure: exact statics")
    add("--up-to", type=frequency, metavar="F", help="leave modes above out: 20kHz, 20000 ...")
    add(
        "--reference",
        default="mean-axis",
        metavar="R",
        help="mean-axis (default), or attached:INTERFACE",
    )
    add("--no-stiffening", action="store_true", help="leave the geometric stiffening out")
    add("--damping", type=float, metavar="ZETA", help="damping ratio of all modes, 0.01 for 1 %%")
    add("--unit", type=length_unit, default=1.0, metavar="U", help="unit of the mesh (default m)")
    add("--degree", type=int, metavar="P", help="of the elements (default 2)")
    add("--plane", choices=("stress", "strain"), help="of a plane mesh")
    add("--thickness", type=float, metavar="M", help="of a plane mesh, m")
    add(
        "--point",
        action="append",
        default=[],
        metavar="NAME=X,Y,Z",
        help="a point whose displacement will be wanted, m",
    )
    add("--no-skin", action="store_true", help="leave the surface out: a smaller file, no pictures")
    add("--stress", action="store_true", help="keep the stress of the modes at the surface")
    add("--name", help="the body's name (default: the file's)")
    add(
        "--solver",
        choices=("auto", "direct", "iterative"),
        default="auto",
        help="a factor, or iteration in half the memory; auto (default): a factor while it fits",
    )
    add(
        "--petsc",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="an option of the solvers, for instance pc_factor_mat_solver_type=mumps",
    )
    add("--dry-run", action="store_true", help="check everything, say size, memory and time")
    add("-q", "--quiet", action="store_true", help="no progress")
    add("-o", "--output", help="file to write (default: the mesh's name, .npz)")
    parser.set_defaults(run=_reduce)

    table = commands.add_parser("materials", help="list the materials that have a name")
    table.add_argument("--materials", metavar="FILE", help="TOML file with materials of your own")
    table.set_defaults(run=_materials)


def _reduce(options: argparse.Namespace) -> int:
    from mpi4py import MPI

    from dolfinx_mbd.analysis import pressure, read_mesh, reduce
    from dolfinx_mbd.analysis.facets import facet_groups
    from dolfinx_mbd.body import ModalDamping

    materials = chosen_materials(options.material, options.materials)
    interfaces = _interfaces(options.interface)
    attached_to = _attached(options.reference)
    points = {
        name: _point(name, text) for name, text in assignments(options.point, "--point").items()
    }
    path = output_path(options.output, options.file, ".npz")
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
        name=options.name or Path(options.file).stem,
        skin=not options.no_skin,
        solver=options.solver,
        petsc_options={k: setting(v) for k, v in assignments(options.petsc, "--petsc").items()},
        **degree,
    )
    body = reduction.with_stress() if options.stress else reduction.body
    body.save(path)
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
    from dolfinx_mbd.analysis import InterfaceSpec

    result: dict[str, Any] = {}
    for word in words:
        rest, colon, kind = word.rpartition(":")
        if not colon:
            rest, kind = word, "rigid"
        name, _, group = rest.partition("=")
        if not name or kind not in ("rigid", "averaged"):
            raise ValueError(
                f"--interface: expected NAME, NAME:averaged or NAME=GROUP:rigid; got {word!r}"
            )
        if name in result:
            raise ValueError(f"--interface: {name!r} is given twice")
        facets: Any = setting(group) if group.isdigit() else group or name
        result[name] = InterfaceSpec(facets, kind=kind)  # type: ignore[arg-type]
    return result


def _attached(text: str) -> str | None:
    if text == "mean-axis":
        return None
    word, colon, name = text.partition(":")
    if word != "attached" or not name:
        raise ValueError(f"--reference: expected mean-axis or attached:INTERFACE; got {text!r}")
    return name


def _point(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--point: expected {name}=X,Y,Z; got {name}={text}") from None


def _dry_run(mesh: TaggedMesh, groups: FacetGroups, options: argparse.Namespace) -> str:
    """What the reduction would be; nothing is assembled."""
    from dolfinx import fem

    from dolfinx_mbd.analysis.compat import geometry_degree

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
