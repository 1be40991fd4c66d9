"""Decks of Abaqus with sets, surfaces, parts and included files; two cubes of side 1 m."""

from __future__ import annotations

from pathlib import Path

import dolfinx.fem
import numpy as np
import pytest
import ufl
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import MeshError
from tests.geometry.test_deck_files import integral

pytest.importorskip("meshlane")
pytestmark = [
    pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="two elements"),
    pytest.mark.usefixtures("read_in_this_process"),
]

POINTS = [(x, y, z) for x in (0, 1, 2) for z in (0, 1) for y in (0, 1)]
NODES = "".join(f"{k}, {x}, {y}, {z}\n" for k, (x, y, z) in enumerate(POINTS, 101))
HEXES = "1, 101, 105, 106, 102,\n103, 107, 108, 104\n2, 105, 109, 110, 106, 107, 111, 112, 108\n"
MESH = f"*NODE, NSET=ALL\n{NODES}** elements\n*Element, type=C3D8R, elset=Both\n{HEXES}"


def read(folder: Path, text: str, name: str = "part.inp") -> mbd.fem.TaggedMesh:
    """Write a deck and read its mesh."""
    (folder / name).write_text(text)
    return mbd.read_mesh(folder / name, MPI.COMM_SELF)


def place(mesh: mbd.fem.TaggedMesh, name: str) -> list[float]:
    """Return the area and the centre of a group of facets."""
    measure = ufl.ds(
        domain=mesh.mesh, subdomain_data=mesh.facet_tags, subdomain_id=mesh.groups[name][1]
    )
    x = ufl.SpatialCoordinate(mesh.mesh)
    form = [dolfinx.fem.form(value * measure) for value in (1.0 + 0 * x[0], x[0], x[1], x[2])]
    area, *moments = (float(dolfinx.fem.assemble_scalar(f)) for f in form)
    return [area, *(moment / area for moment in moments)]


# Texts of sets or surfaces, with the area and the centre of the surface `face`.
SETS = {
    "*Nset, nset=face, generate\n109, 112\n": [1, 2, 0.5, 0.5],
    "*Nset, nset=face, GENERATE\n 109, 111, 2\n110, 112, 2\n": [1, 2, 0.5, 0.5],
    "*NSET, NSET=face\n101, 102,\n*NSET, NSET=Face\n103, 104,\n": [1, 0, 0.5, 0.5],
    "*NSET, NSET=low\n101, 102\n*NSET, NSET=face\nLOW, 103\n104\n": [1, 0, 0.5, 0.5],
    "*SURFACE, NAME=face\n2, S4\n": [1, 2, 0.5, 0.5],
    "*SURFACE, NAME=face, TYPE=ELEMENT\n1, S2\n2, S2\n": [2, 1, 0.5, 1],
    "*SURFACE, NAME=face\nboth, S3\n": [2, 1, 0, 0.5],
    "*SURFACE, NAME=face\n2,\n": [5, 1.6, 0.5, 0.5],
    "*ELSET, ELSET=_f, INTERNAL\n1\n*SURFACE,\n NAME=face\n_f, S6\n": [1, 0, 0.5, 0.5],
    "*NSET, NSET=n, GENERATE\n101, 104\n*SURFACE, TYPE=NODE, NAME=face\nn, 1.\n": [1, 0, 0.5, 0.5],
}  # fmt: skip


@pytest.mark.parametrize("text", SETS)
def test_sets_and_surfaces(tmp_path: Path, text: str) -> None:
    mesh = read(tmp_path, f"*HEADING\ntwo, cubes\n{MESH}{text}*STEP\n*END STEP\n")
    assert integral(mesh) == pytest.approx(2.0)
    assert place(mesh, "face") == pytest.approx(SETS[text])
    assert "Both" in mesh.groups and not [name for name in mesh.groups if "_f" in name]


def test_sections_of_internal_sets_are_groups(tmp_path: Path) -> None:
    sets = "*ELSET, ELSET=_Picked1, INTERNAL\n1,\n*ELSET, ELSET=_Picked2, INTERNAL\n2,\n"
    mesh = read(tmp_path, MESH + sets)
    assert {"_Picked1", "_Picked2"} <= mesh.groups.keys()


@pytest.mark.parametrize("inside", [True, False])
def test_surfaces_of_instances(tmp_path: Path, inside: bool) -> None:
    """A part with two instances, one of which is moved and turned by 90° about z."""
    part = "*Elset, elset=end\n2,\n" + "*Surface, type=ELEMENT, name=face\nend, S4\n" * inside
    outside = "*Elset, elset=_face_S4, internal, instance=B\n2,\n"
    outside += "*Surface, type=ELEMENT, name=face\n_face_S4, S4\n"
    outside += "*Nset, nset=foot, instance=B\n101, 102, 103, 104\n*Nset, nset=ends\nfoot, A.last\n"
    mesh = read(
        tmp_path,
        f"*Part, name=Cubes\n{MESH}*Nset, nset=last, generate\n109, 112, 1\n{part}*End Part\n"
        "*Assembly, name=Assembly\n*Instance, name=A, part=Cubes\n*End Instance\n"
        "*Instance, name=B, part=Cubes\n5., 0., 0.\n5., 0., 0., 5., 0., 1., 90.\n*End Instance\n"
        f"{'' if inside else outside}*End Assembly\n",
    )
    assert integral(mesh) == pytest.approx(4.0)
    if inside:  # x = 2 of A, and y = 2 of B, whose x is 4 to 5
        assert place(mesh, "face") == pytest.approx([2, (2 + 4.5) / 2, (0.5 + 2) / 2, 0.5])
    else:
        assert place(mesh, "face") == pytest.approx([1, 4.5, 2, 0.5])
        assert place(mesh, "foot") == pytest.approx([1, 4.5, 0, 0.5])
        # The facet of `foot` belongs to the group `foot` only.
        assert place(mesh, "ends") == pytest.approx([1, 2, 0.5, 0.5])


def test_included_files(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "nodes.txt").write_text(NODES)
    (tmp_path / "parts" / "sets.inp").write_text("*include, input=more.inp\n")
    (tmp_path / "parts" / "more.inp").write_text("*SURFACE, NAME=face\n2, S4\n")
    mesh = read(
        tmp_path,
        f"*NODE, INPUT=parts/nodes.txt, NSET=ALL\n*ELEMENT, TYPE=C3D8\n{HEXES}"
        "*INCLUDE, INPUT=parts/sets.inp\n",
    )
    assert place(mesh, "face") == pytest.approx([1, 2, 0.5, 0.5])


REFUSED = {
    f"*SYSTEM\n1., 0., 0.\n{MESH}": "SYSTEM",
    MESH.replace("*NODE", "*NODE, SYSTEM=C"): "cylindrical",
    f"{MESH}*NGEN\n101, 109, 4\n": "generated nodes",
    f"{MESH}*ELGEN\n1, 2, 4\n": "generated elements",
    f"{MESH}*INCLUDE, INPUT=nothing.inp\n": "nothing.inp' does not exist",
    f"{MESH}*INCLUDE, INPUT=part.inp\n": "includes itself",
}


@pytest.mark.parametrize("text", REFUSED, ids=REFUSED.values())
def test_unsupported_keywords_are_errors(tmp_path: Path, text: str) -> None:
    with pytest.raises(MeshError, match=REFUSED[text]):
        read(tmp_path, text)


def test_nastran_decks_that_include_others(tmp_path: Path) -> None:
    pytest.importorskip("pyNastran")
    grids = "".join(f"GRID,{k},,{x}.,{y}.,{z}.\n" for k, (x, y, z) in enumerate(POINTS, 101))
    hexes = (
        "CHEXA,1,7,101,105,106,102,103,107\n,108,104\nCHEXA,2,7,105,109,110,106,107,111\n,112,108\n"
    )
    (tmp_path / "grids.dat").write_text(grids)
    (tmp_path / "steel.dat").write_text("MAT1,1,2.1+11,,0.3,7850.\n")
    head = "SOL 103\nCEND\nBEGIN BULK\nPSOLID,7,1\nINCLUDE 'steel.dat'\n"
    rest = f"include 'grids.dat'\n{hexes}SPC1,4,123,101,THRU,104\nENDDATA\n"
    mesh = read(tmp_path, head + rest, "part.bdf")
    assert integral(mesh) == pytest.approx(2.0)
    assert place(mesh, "spc_4") == pytest.approx([1, 0, 0.5, 0.5])
    (material,) = mesh.materials.values()
    assert np.isclose(material.young, 2.1e11)
    system = "CORD2R,4,,1.,0.,0.,1.,0.,1.\n,2.,0.,0.\nGRDSET,,4\n"
    with pytest.raises(MeshError, match="GRDSET"):
        read(tmp_path, head + system + rest, "moved.bdf")
