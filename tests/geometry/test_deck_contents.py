"""Contents of decks besides solids are omitted; one warning names them and the reasons."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import FileError, FileWarning, MeshError
from tests.geometry.test_abaqus_features import HEXES, MESH, NODES, POINTS
from tests.geometry.test_materials_of_decks import MPDATA, abaqus, ansys

pytest.importorskip("meshlane")
pytestmark = [
    pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="two elements"),
    pytest.mark.usefixtures("read_in_this_process"),
]


def read(path: Path, text: str) -> tuple[mbd.fem.TaggedMesh, list[str]]:
    """Return the mesh of a deck and the texts of its warnings."""
    path.write_text(text)
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        mesh = mbd.read_mesh(path, MPI.COMM_SELF)
    return mesh, [str(w.message) for w in records if w.category is FileWarning]


MATERIAL = "*MATERIAL, NAME=steel\n*ELASTIC\n2.1e11, 0.3\n*DENSITY\n7850.\n"
SECTION = "*SOLID SECTION, ELSET=Both, MATERIAL=steel\n"
FACE = "*NSET, NSET=face, GENERATE\n109, 112\n"

# Texts that follow the mesh, a material and a section, and parts of the warning.
ABAQUS = {
    "*ELEMENT, TYPE=MASS, ELSET=m\n9, 101\n*MASS, ELSET=m\n1.\n": ["point masses (1 MASS)"],
    "*ELEMENT, TYPE=S4, ELSET=s\n8, 101, 102, 104, 103\n": ["shells and membranes (1 S4)"],
    "*ELEMENT, TYPE=B31\n8, 101, 102\n9, 102, 103\n": ["beams and bars (2 B31)"],
    "*ELEMENT, TYPE=SPRINGA\n8, 101, 102\n": ["springs and dampers (1 SPRINGA)"],
    "*ELEMENT, TYPE=XY7\n8, 101, 102\n": ["elements of other types (1 XY7)"],
    "*RIGID BODY, NSET=face, REF NODE=101\n": ["rigid elements and constraints (1 *RIGID BODY)"],
    "*STEP\n*BOUNDARY\nface, 1\n*CLOAD\n101, 1, 2.\n*END STEP\n": [
        *("boundary conditions (1 *BOUNDARY)", "loads (1 *CLOAD)"),
    ],
    "*ELEMNT, TYPE=C3D8\n3, 1, 2, 3, 4\n": ["'*ELEMNT, TYPE=C3D8' (is it *ELEMENT?)"],
    "*STEP\n*BUONDARY\nface, 1\n*MY OWN\n*END STEP\n": ["'*BUONDARY' (is it *BOUNDARY?)"],
    "*SOMETHING\n1, 2\n": ["unknown and are ignored with their data: '*SOMETHING'"],
    "*NSET, NSET=line\n101, 102, 105\n": ["'line' (3 nodes, no whole facet)"],
    "*NODE, NSET=far\n7, 9., 9., 9.\n": ["'far' (1 node, not of solids)"],
    "*NSET, NSET=sum\nfase\n": ["the set 'sum' names the unknown set 'fase'"],
    "*ELSET, ELSET=sum\n1, 77\n": ["the set 'sum' has the element 77, which does not exist"],
    "*SURFACE, NAME=top\nBoth, S7\n": ["'top' (no element has the face S7)"],
    "*SURFACE, NAME=top\n1, S4\n": ["'top' (all faces are inside the part)"],
    "*SURFACE, NAME=top\nBoht, S1\n": ["the surface 'top' names the unknown set 'Boht'"],
    "*ELSET, ELSET=one\n1\n": ["the set of cells 'Both' overlaps 'one' and is not a group"],
    "*SOLID SECTION, ELSET=Boht, MATERIAL=steel\n": ["*SOLID SECTION names the unknown set 'Boht'"],
}  # fmt: skip


@pytest.mark.parametrize("text", ABAQUS)
def test_what_an_abaqus_deck_contains_besides_the_solids(tmp_path: Path, text: str) -> None:
    _, messages = read(tmp_path / "part.inp", MESH + FACE + MATERIAL + SECTION + text)
    assert len(messages) == 1
    assert all(part in messages[0] for part in ABAQUS[text]), messages
    assert "*MY OWN" not in messages[0]


def test_a_set_without_one_of_its_nodes(tmp_path: Path) -> None:
    """The set of a side of the bar lacks one of its corner nodes."""
    side = "".join(f"{4 * i + 1}, {4 * i + 2}\n" for i in range(9)).replace(", 34", "")
    text = abaqus("", sets=f"*NSET, NSET=side\n{side.rstrip()}")
    _, messages = read(tmp_path / "part.inp", text)
    assert len(messages) == 1 and "1 facet has three of four corners in 'side'" in messages[0]


QUIET = [
    "*STEP\n*FREQUENCY\n10\n*NODE PRINT, NSET=face\nU\n*EL FILE\nS\n*END STEP\n",
    "*NSET, NSET=_Picked, INTERNAL\n101\n*SURFACE INTERACTION, NAME=i\n*FRICTION\n0.1\n",
    "*TRANSFORM, NSET=face\n1., 0., 0., 0., 1., 0.\n*AMPLITUDE, NAME=a\n0., 0., 1., 1.\n",
    "*ELSET, ELSET=end\n2\n*SURFACE, NAME=top\nend, S4\n",
    "*ELEMENT, TYPE=SFM3D4, ELSET=skin\n8, 101, 102, 104, 103\n",
]


@pytest.mark.parametrize("text", QUIET)
def test_decks_without_a_warning(tmp_path: Path, text: str) -> None:
    """Requests for results, internal sets, systems and surface elements cause no warning."""
    mesh, messages = read(tmp_path / "part.inp", MESH + FACE + MATERIAL + SECTION + text)
    assert not messages
    assert [*mesh.materials] == ["Both"]


OTHER = MATERIAL.replace("7850", "2700")
ASSIGNMENTS = {
    MATERIAL + OTHER + SECTION: "'steel' of the cells 'Both' .*defines it several times",
    MATERIAL: r"'steel' of the cells 'Both' .*no cells have it \(no \*SOLID SECTION\)",
    MATERIAL + SECTION.replace("Both", "Boht"): r"no cells have it .*names 'Boht', without solids",
}


@pytest.mark.filterwarnings("ignore::dolfinx_mbd.errors.FileWarning")
@pytest.mark.parametrize("text", ASSIGNMENTS)
def test_materials_without_cells_or_twice(tmp_path: Path, text: str) -> None:
    mesh, _ = read(tmp_path / "part.inp", MESH + text)
    with pytest.raises(FileError, match=ASSIGNMENTS[text]):
        mesh.materials["Both"]


def test_the_same_material_twice(tmp_path: Path) -> None:
    mesh, messages = read(tmp_path / "part.inp", MESH + MATERIAL + MATERIAL + SECTION)
    assert not messages and mesh.materials["Both"].density == 7850


# Decks and patterns of the errors; a dot stands for the asterisk of a keyword.
REFUSED = {
    MESH.replace("C3D8R", "C3D88"): "the type of elements C3D88 is unknown: '.Element",
    MESH.replace("105, 106", "105, 106, 7"): "the element 1 has 9 nodes instead of 8",
    MESH.replace("2, 105", "2, 999"): "elements have the node 999, which does not exist",
    MESH.replace("104\n2,", "104\n2.5,"): "has data that are not read: .*'2.5'",
    f"{MESH}*NSET, NSET=face\n101, 9999\n": "the set 'face' has the node 9999",
    f"*NODE\n{NODES}8, 1., 2., 3., 4.\n*ELEMENT, TYPE=C3D8\n{HEXES}": "has 4 coordinates",
    f"*NODE\n{NODES}": r"it has no elements \(.ELEMENT\)",
    "": "it has no nodes and elements .*of another program",
    "GIF89a": "it has no nodes and elements",
    MESH.replace("*NODE,", "*NODDE,"): r"node 101, which does not exist.*\(is it \*NODE\?\)",
}


@pytest.mark.parametrize("text", REFUSED, ids=REFUSED.values())
def test_errors_name_the_cause(tmp_path: Path, text: str) -> None:
    with pytest.raises(MeshError, match=REFUSED[text]) as error:
        read(tmp_path / "part.inp", text)
    assert "mesh.inp" not in str(error.value)  # the name of an internal copy


@pytest.mark.parametrize("kind", ["C3D8T", "C3D8RT", "c3d8i"])
def test_types_of_solids(tmp_path: Path, kind: str) -> None:
    mesh, messages = read(tmp_path / "part.inp", MESH.replace("C3D8R", kind))
    assert mesh.mesh.topology.index_map(3).size_global == 2 and not messages


GRIDS = "".join(f"GRID,{k},,{x}.,{y}.,{z}.\n" for k, (x, y, z) in enumerate(POINTS, 101))
CARDS = "CHEXA,1,7,101,105,106,102,103,107\n,108,104\nCHEXA,2,7,105,109,110,106,107,111\n,112,108\n"
BULK = f"{GRIDS}{CARDS}PSOLID,7,1\nMAT1,1,2.1+11,,0.3,7850.\n"
NASTRAN = {
    "CONM2,9,101,,1.\nCONM2,10,102,,1.\n": "point masses (2 CONM2)",
    "PBARL,9,1,,ROD\n,5.\nCBAR,9,9,101,109,0.,0.,1.\n": "beams and bars (1 CBAR)",
    "RBAR,9,101,109,123456,,,123456\n": "rigid elements and constraints (1 RBAR)",
    "CELAS2,9,5.,101,1,109,1\n": "springs and dampers (1 CELAS2)",
    "PSHELL,8,1,.01\nCQUAD4,9,8,101,102,104,103\n": "shells and membranes (1 CQUAD4)",
    "CHXEA,3,7,105,109,110,106,107,111\n,112,108\n": "'CHXEA,3,7,105,109,110,106,107,111' (is it",
    "SET1,4,101,102\n": "'set_4' (2 nodes, no whole facet)",
}


@pytest.mark.parametrize("text", NASTRAN)
def test_what_a_nastran_deck_contains_besides_the_solids(tmp_path: Path, text: str) -> None:
    pytest.importorskip("pyNastran")
    _, messages = read(tmp_path / "part.bdf", BULK + text)
    assert len(messages) == 1 and NASTRAN[text] in messages[0], messages


def test_nastran_decks_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("pyNastran")
    text = (
        f"SOL 103\nCEND\nBEGIN BULK\nEIGRL,1,,,10\nPARAM,POST,-1\n{BULK}SPC1,4,123,101,THRU,104\n"
    )
    assert not read(tmp_path / "part.bdf", f"{text}ENDDATA\n")[1]
    with pytest.raises(MeshError, match="several materials have the number 1; keep one"):
        read(tmp_path / "part.bdf", f"{text}MAT1,1,7.+10,,0.3,2700.\nENDDATA\n")


@pytest.mark.parametrize("compact", [False, True])
def test_other_elements_of_ansys(tmp_path: Path, compact: bool) -> None:
    """Point masses and surface elements, also in blocks of their own, are no cells."""
    text = ansys(MPDATA, compact=compact).replace("ET,1,185", "ET,1,185\nET,2,MASS21\nET,3,154")
    rows = "".join(
        "".join(f"{n:9d}" for n in [1, kind, 1, 1, 0, 0, 0, 0, len(n_), 0, 90 + kind, *n_]) + "\n"
        for kind, n_ in ((2, [1]), (3, [1, 2, 4, 3]))
    )
    block = f"EBLOCK,19,SOLID,93,2\n(19i9)\n{rows}       -1\n"
    if compact:
        block = "MAT,1 $ TYPE,2\nEBLOCK,10,COMPACT,,1\n(15i9)\n       92        1\n       -1\n"
    mesh, messages = read(
        tmp_path / "part.cdb", text.replace("CMBLOCK,LEFT", f"{block}CMBLOCK,LEFT")
    )
    assert mesh.mesh.topology.index_map(3).size_global == 8
    assert [m.name for m in mesh.materials.values()] == ["MAT 1", "MAT 7"]
    assert "point masses (1 of type 21)" in messages[0]
    assert compact or "surface effects (1 of type 154)" in messages[0]


def test_misspelt_commands_and_constraints_of_ansys(tmp_path: Path) -> None:
    text = ansys(MPDATA.replace("MPDATA,R5.0, 1,ALPX", "MPDTAA,R5.0, 1,ALPX") + "D,1,UX,0\n")
    _, messages = read(tmp_path / "part.cdb", text)
    assert len(messages) == 1 and "boundary conditions (1 D)" in messages[0]
    assert "'MPDTAA,R5.0, 1,ALPX" in messages[0] and "(is it MPDATA?)" in messages[0]
