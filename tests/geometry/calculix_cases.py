"""A ring sector and a shaft with a step, computed by CalculiX and by the package on the same deck.

`python3 -m tests.geometry.calculix_cases` prints a table of the differences. It needs the program
ccx, for example from Debian's package calculix-ccx.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import gmsh
import numpy as np
import scipy.sparse.linalg
import ufl
from dolfinx import fem
from mpi4py import MPI

import dolfinx_mbd as mbd

YOUNG, POISSON, DENSITY = 2.1e11, 0.3, 7850.0
NUM_MODES = 10  # elastic ones; CalculiX computes six rigid modes as well
STEP = f"""
*MATERIAL, NAME=STEEL
*ELASTIC
{YOUNG}, {POISSON}
*DENSITY
{DENSITY}
*SOLID SECTION, ELSET=part, MATERIAL=STEEL
*STEP
*FREQUENCY
{NUM_MODES + 6}
*EL PRINT, ELSET=part, TOTALS=ONLY
EVOL
*END STEP
"""


class Case(NamedTuple):
    """Elements of a deck: their name in CalculiX, order, and shape of the part."""

    element: str
    order: int
    part: Callable[[], None]


def ring_sector() -> None:
    """Add a third of a ring of hexahedra, 15 mm thick, with radii of 20 and 35 mm, to gmsh."""
    occ = gmsh.model.occ
    profile = occ.addRectangle(0.02, 0.0, 0.0, 0.015, 0.015)
    occ.revolve([(2, profile)], 0, 0, 0, 0, 1, 0, 2 * np.pi / 3, [8], recombine=True)
    occ.synchronize()
    for _, curve in gmsh.model.getBoundary([(2, profile)]):
        gmsh.model.mesh.setTransfiniteCurve(abs(curve), 4)
    gmsh.model.mesh.setTransfiniteSurface(profile)
    gmsh.model.mesh.setRecombine(2, profile)


def stepped_shaft() -> None:
    """Add a shaft of tetrahedra, 80 mm long, with the diameters 20 and 14 mm, to gmsh."""
    occ = gmsh.model.occ
    thick = occ.addCylinder(0, 0, 0, 0.05, 0, 0, 0.01)
    thin = occ.addCylinder(0.05, 0, 0, 0.03, 0, 0, 0.007)
    occ.fuse([(3, thick)], [(3, thin)])
    occ.synchronize()
    gmsh.option.setNumber("Mesh.MeshSizeMax", 0.005)


CASES = {
    "C3D4": Case("C3D4", 1, stepped_shaft),
    "C3D10": Case("C3D10", 2, stepped_shaft),
    "C3D8": Case("C3D8", 1, ring_sector),
    "C3D20": Case("C3D20", 2, ring_sector),
}


class Properties(NamedTuple):
    """Properties of a free part.

    Volume in m³, mass in kg, moments of inertia about the axes in kg m², and frequencies in Hz.
    """

    volume: float
    mass: float
    inertia: np.ndarray
    frequencies: np.ndarray


def write_deck(case: Case, path: Path) -> None:
    """Write the mesh of a case as a deck by gmsh, with the elements of the case."""
    gmsh.initialize(interruptible=False)
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.option.setNumber("Mesh.SecondOrderIncomplete", 1)
        case.part()
        volume = gmsh.model.getEntities(3)[0][1]
        gmsh.model.addPhysicalGroup(3, [volume], 1, "part")
        gmsh.model.mesh.generate(3)
        gmsh.model.mesh.setOrder(case.order)
        gmsh.write(str(path))
    finally:
        gmsh.finalize()
    text = re.sub(r"type=C3D\d+", f"type={case.element}", path.read_text())
    path.write_text(text)


def by_calculix(deck: Path) -> Properties:
    """Return the properties that CalculiX computes."""
    job = deck.with_name("job")
    job.with_suffix(".inp").write_text(f"*INCLUDE, INPUT={deck.name}\n{STEP}")
    run = subprocess.run(
        ["ccx", "job"], cwd=deck.parent, capture_output=True, text=True, timeout=250, check=False
    )
    if run.returncode or "*ERROR" in run.stdout:
        raise RuntimeError(run.stdout[-1000:])
    lines = job.with_suffix(".dat").read_text().splitlines()
    first = next(k for k, line in enumerate(lines) if "E I G E N V A L U E" in line)
    rows = [line.split() for line in lines[first + 1 :]]
    table = [row for row in rows if len(row) == 5 and row[0].isdecimal()][: NUM_MODES + 6]
    frequencies = np.array([float(row[3]) for row in table])
    # "TOTAL" precedes the effective masses: three of translations, and three of rotations.
    masses = next(row for row in map(str.split, lines) if row and row[0] == "TOTAL")
    k = next(k for k, line in enumerate(lines) if line.strip().startswith("total volume"))
    volume, totals = float(lines[k + 2]), np.array(masses[1:], dtype=float)
    return Properties(volume, totals[0], totals[3:], frequencies[6:])


def by_package(case: Case, deck: Path) -> Properties:
    """Return the properties of the imported mesh, with elements of the order of the deck."""
    mesh = mbd.read_mesh(deck, MPI.COMM_SELF)
    model = mbd.ElasticModel(mesh, mbd.Material(YOUNG, POISSON, DENSITY), degree=case.order)
    body = mbd.reduce(model, interfaces=[], num_modes=NUM_MODES, stiffening=False).body
    volume = MPI.COMM_SELF.allreduce(fem.assemble_scalar(fem.form(1.0 * ufl.dx(mesh.mesh))))
    return Properties(volume, body.total_mass, np.diag(body.inertia), body.frequencies)


def with_one_point(deck: Path) -> np.ndarray:
    """Return frequencies of linear tetrahedra whose mass is integrated with one point, Hz.

    CalculiX integrates the mass of C3D4 in this way: a single tetrahedron of 1 kg has the mass 1/16
    kg in each entry of its matrix `.mas`; the exact entries are 1/10 kg (diagonal) and 1/20 kg.
    """
    mesh = mbd.read_mesh(deck, MPI.COMM_SELF).mesh
    V = fem.functionspace(mesh, ("Lagrange", 1, (3,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    material = mbd.Material(YOUNG, POISSON, DENSITY)
    one_point = ufl.dx(metadata={"quadrature_degree": 0})
    K, M = (
        fem.assemble_matrix(fem.form(form)).to_scipy()
        for form in (
            mbd.forms.elastic_stiffness(u, v, material),
            DENSITY * ufl.inner(u, v) * one_point,
        )
    )
    shift = -((2 * np.pi * 1e3) ** 2)  # below the rigid modes
    squares = scipy.sparse.linalg.eigsh(
        K.tocsc(), NUM_MODES + 6, M.tocsc(), sigma=shift, return_eigenvectors=False
    )
    return np.sqrt(np.sort(squares)[6:]) / (2 * np.pi)


def compare(name: str) -> tuple[Properties, Properties, np.ndarray]:
    """Return the properties by CalculiX and by the package, and frequencies for the same mass.

    The last array differs from the package's frequencies for linear tetrahedra only.
    """
    case = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        deck = Path(folder, "mesh.inp")
        write_deck(case, deck)
        calculix, package = by_calculix(deck), by_package(case, deck)
        return calculix, package, with_one_point(deck) if name == "C3D4" else package.frequencies


def main() -> None:
    """Print the largest relative differences of each case."""
    if shutil.which("ccx") is None:
        raise SystemExit("the program ccx is not installed")
    print("| element | volume | mass | moments of inertia | frequencies |\n|---|---|---|---|---|")
    for name in CASES:
        a, b, same_mass = compare(name)  # by CalculiX and by the package
        rows = {name: b.frequencies}
        if same_mass is not b.frequencies:
            rows[f"{name}, mass of one point"] = same_mass
        for label, frequencies in rows.items():
            differences = frequencies / a.frequencies - 1
            print(
                f"| {label} | {b.volume / a.volume - 1:.1e} | {b.mass / a.mass - 1:.1e} "
                f"| {np.abs(b.inertia / a.inertia - 1).max():.1e} "
                f"| {differences.min():.1e} to {differences.max():.1e} |"
            )


if __name__ == "__main__":
    main()
