"""Meshes from Nastran decks and MED files that other programs write: gmsh, pyNastran, meshlane."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dolfinx.fem
import numpy as np
import pytest
import ufl
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import MeshError
from dolfinx_mbd.geometry.gmsh_model import gmsh_session

meshlane = pytest.importorskip("meshlane")
pytest.importorskip("pyNastran")
pytestmark = [
    pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="files of one process"),
    pytest.mark.usefixtures("read_in_this_process"),
]

SIZES = (0.2, 0.1, 0.05)


def integral(mesh: mbd.fem.TaggedMesh, name: str | None = None) -> float:
    """Return the volume of a mesh, or the area of a group of facets."""
    one = dolfinx.fem.Constant(mesh.mesh, 1.0)
    measure = ufl.dx(mesh.mesh)
    if name is not None:
        tag = mesh.groups[name][1]
        measure = ufl.ds(domain=mesh.mesh, subdomain_data=mesh.facet_tags)(tag)
    return float(dolfinx.fem.assemble_scalar(dolfinx.fem.form(one * measure)))


def write_block(folder: Path, order: int, *, hexahedra: bool) -> None:
    """Write a block as `.msh`, `.inp` and `.bdf` by gmsh, and as `.med` by meshlane."""
    with gmsh_session() as gmsh:
        gmsh.model.occ.addBox(0, 0, 0, *SIZES)
        gmsh.model.occ.synchronize()
        gmsh.option.setNumber("Mesh.MeshSizeMax", 0.05)
        if hexahedra:
            for _, tag in gmsh.model.getEntities(1):
                gmsh.model.mesh.setTransfiniteCurve(tag, 3)
            for _, tag in gmsh.model.getEntities(2):
                gmsh.model.mesh.setTransfiniteSurface(tag)
                gmsh.model.mesh.setRecombine(2, tag)
            gmsh.model.mesh.setTransfiniteVolume(1)
            gmsh.option.setNumber("Mesh.SecondOrderIncomplete", 1)
        gmsh.model.addPhysicalGroup(3, [1], 11, name="body")
        gmsh.model.addPhysicalGroup(2, [1], 1, name="left")
        gmsh.model.addPhysicalGroup(2, [2], 2, name="right")
        gmsh.model.mesh.generate(3)
        gmsh.model.mesh.setOrder(order)
        for name in ("SaveGroupsOfNodes", "SaveGroupsOfElements"):
            gmsh.option.setNumber(f"Mesh.{name}", 1)
        gmsh.option.setNumber("Mesh.SaveElementTagType", 2)  # properties are physical groups
        gmsh.option.setNumber("Mesh.BdfFieldFormat", 0)  # free
        for suffix in ("msh", "inp", "bdf"):
            gmsh.write(str(folder / f"part.{suffix}"))
    meshlane.read(folder / "part.inp").write(folder / "part.med")


NAMES = {"bdf": ("pshell_1", "pshell_2", "psolid_11"), "med": ("left", "right", "body")}


@pytest.mark.parametrize("suffix", NAMES)
@pytest.mark.parametrize("hexahedra", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_files_of_other_programs(tmp_path: Path, suffix: str, order: int, hexahedra: bool) -> None:
    """Volume, areas of groups and frequencies are those of another file of the same mesh.

    The file is `.msh`, or `.inp` for hexahedra with 20 nodes.
    """
    pytest.importorskip("h5py")
    write_block(tmp_path, order, hexahedra=hexahedra)
    mesh = mbd.read_mesh(tmp_path / f"part.{suffix}", MPI.COMM_SELF)
    left, right, body = NAMES[suffix]
    assert integral(mesh) == pytest.approx(np.prod(SIZES), rel=1e-10)
    for name in (left, right):
        assert integral(mesh, name) == pytest.approx(SIZES[1] * SIZES[2], rel=1e-10)
    assert set(mesh.groups) >= {left, right, body}
    if hexahedra and order == 2:
        reference = mbd.read_mesh(tmp_path / "part.inp", MPI.COMM_SELF)
    else:
        reference = mbd.read_mesh(tmp_path / "part.msh", MPI.COMM_SELF)
    bodies = [
        mbd.reduce(m, mbd.STEEL, interfaces=ends, num_modes=3).body
        for m, ends in ((mesh, [left, right]), (reference, ["left", "right"]))
    ]
    rtol = 1e-6 if suffix == "bdf" else 1e-9  # gmsh writes 6 digits of the coordinates
    np.testing.assert_allclose(bodies[0].frequencies, bodies[1].frequencies, rtol=rtol)
    assert bodies[0].total_mass == pytest.approx(bodies[1].total_mass, rel=1e-10)


MED_EDGES = {
    "T10": [(0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)],
    "H20": [
        *[(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4)],
        *[(0, 4), (1, 5), (2, 6), (3, 7)],
    ],
}
"""Edges of the mid-side nodes in the order of the MED documentation."""


@pytest.mark.parametrize("kind", MED_EDGES)
def test_med_files_have_the_order_of_salome(tmp_path: Path, kind: str) -> None:
    """meshlane permutes nodes equally when it reads and writes: check the numbers in the file."""
    h5py = pytest.importorskip("h5py")
    write_block(tmp_path, 2, hexahedra=kind == "H20")
    with h5py.File(tmp_path / "part.med") as file:
        mesh = next(iter(file["ENS_MAA"].values()))
        step = next(iter(mesh.values()))
        points = np.array(step["NOE/COO"]).reshape(3, -1).T
        cells = np.array(step[f"MAI/{kind}/NOD"]).reshape(int(kind[1:]), -1).T - 1
    corners = 4 if kind == "T10" else 8
    for k, edge in enumerate(MED_EDGES[kind]):
        middle = points[cells[:, list(edge)]].mean(axis=1)
        np.testing.assert_allclose(points[cells[:, corners + k]], middle, atol=1e-9)


def written_by_pynastran(path: Path, kind: str = "CHEXA") -> Path:
    """Write two solids of two materials with sets, some nodes in a cylindrical system."""
    from pyNastran.bdf.bdf import BDF

    model: Any = BDF(debug=None)
    model.add_cord2c(5, [0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0])
    corners = [(x, y, z) for x in (0, 10, 20) for z in (0, 4) for y in (0, 2)]
    for k, (x, y, z) in enumerate(corners):
        r, angle = np.hypot(x, y), np.degrees(np.arctan2(y, x))
        coordinates, system = ([r, angle, z], 5) if k % 3 else ([x, y, z], 0)
        model.add_grid(100 + k, [float(c) for c in coordinates], cp=system)
    if kind == "CHEXA":
        for k in range(2):
            nodes = np.array([0, 4, 5, 1, 2, 6, 7, 3]) + 4 * k
            model.add_chexa(k + 1, k + 1, [100 + int(n) for n in nodes])
    else:
        for k in range(2):
            nodes = np.array([0, 4, 1, 2, 6, 3]) + 4 * k
            model.add_cpenta(k + 1, k + 1, [100 + int(n) for n in nodes])
    model.add_psolid(1, 1)
    model.add_psolid(2, 2)
    model.add_mat1(1, 2.1e5, None, 0.3, rho=7.85e-9)
    model.add_mat1(2, 7.0e4, None, 0.33, rho=2.7e-9, a=2.3e-5)
    model.add_set1(9, [100, 101, 104, 105, 108, 109])  # z = 0
    model.add_spc1(3, "123", [100, 101, 102, 103])
    model.add_grid(500, [20.0, 1.0, 2.0])
    model.add_rbe2(77, 500, "123456", [108, 109, 110, 111])
    model.write_bdf(str(path), size=16)
    return path


def test_properties_materials_and_sets(tmp_path: Path) -> None:
    """Two bricks of 10 × 2 × 4 mm: mass, areas of the sets, and coordinate systems."""
    path = written_by_pynastran(tmp_path / "two.bdf")
    mesh = mbd.read_mesh(path, MPI.COMM_SELF, unit="mm-t-s")
    assert set(mesh.groups) == {"psolid_1", "psolid_2", "set_9", "spc_3", "rbe2_77"}
    areas = {"set_9": 20 * 2, "spc_3": 2 * 4, "rbe2_77": 2 * 4}
    for name, area in areas.items():
        assert integral(mesh, name) == pytest.approx(1e-6 * area, rel=1e-9)
    assert mesh.materials["psolid_1"].young == pytest.approx(2.1e11)
    assert mesh.materials["psolid_2"].thermal_expansion == pytest.approx(2.3e-5)
    body = mbd.reduce(mesh, interfaces=["spc_3", "rbe2_77"], num_modes=1).body
    assert body.total_mass == pytest.approx(80e-9 * (7850 + 2700), rel=1e-9)
    np.testing.assert_allclose(body.interface("rbe2_77").point, [0.02, 1e-3, 2e-3], atol=1e-12)


DECK = """\
GRID,1,,0.,0.,0.
GRID,2,,1.,0.,0.
GRID,3,,0.,1.,0.
GRID,4,,0.,0.,1.
GRID,5,,.5,0.,0.
CTETRA,1,1,1,2,3,4
PSOLID,1,1
MAT1,1,1.,,.3,1.
"""
CASES = {
    DECK.replace("3,4\n", "3,4,5\n"): "lacks some of its mid-side nodes",
    DECK.replace("2,3,4\n", "2,3,9\n"): "an element has the node 9",
    DECK.replace("CTETRA,1,1,1,2,3,4", "CTRIA3,1,1,1,2,3"): "no solid elements",
    "PSOLID,1,1\n": "has no nodes",
    "CEND\nBEGIN BULK\nINCLUDE 'other.bdf'\n" + DECK: "does not exist",
    "GRID,1,,x,y,z\n": "pyNastran cannot read it",
}


@pytest.mark.parametrize("text", CASES)
def test_decks_that_cannot_be_used(tmp_path: Path, text: str) -> None:
    path = tmp_path / "part.nas"
    path.write_text(text)
    with pytest.raises(MeshError, match=CASES[text]):
        mbd.read_mesh(path, MPI.COMM_SELF)


def test_headers_of_decks(tmp_path: Path) -> None:
    """Bulk data alone, with BEGIN BULK, or after the control sections."""
    for k, head in enumerate(("", "BEGIN BULK\n", "SOL 101\nCEND\nTITLE = a\nBEGIN BULK\n")):
        path = tmp_path / f"part{k}.BDF"
        path.write_text(head + DECK + "ENDDATA\n")
        mesh = mbd.read_mesh(path, MPI.COMM_SELF)
        assert integral(mesh) == pytest.approx(1 / 6, rel=1e-12)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["part0.BDF", "part1.BDF", "part2.BDF"]


def test_wedges_are_named(tmp_path: Path) -> None:
    with pytest.raises(MeshError, match="its cells are wedge; all cells must be of one of"):
        mbd.read_mesh(written_by_pynastran(tmp_path / "w.bdf", "CPENTA"), MPI.COMM_SELF)
