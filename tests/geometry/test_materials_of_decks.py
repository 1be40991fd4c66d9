"""Materials of decks: constants, units, groups of cells, and what cannot be used."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import FileError, FileWarning, InputError, MeshError, UnitsWarning
from dolfinx_mbd.fem.surface_integrals import volume_integral
from dolfinx_mbd.io.cli import main

pytest.importorskip("meshlane")
pytestmark = pytest.mark.usefixtures("read_in_this_process")
comm = MPI.COMM_WORLD

# Two bars of 100 × 10 × 10 mm along x, end to end, of steel and of aluminium
NX = 8
GRID = [(25.0 * i, 10.0 * j, 10.0 * k) for i in range(NX + 1) for j in (0, 1) for k in (0, 1)]
HEX = np.array([0, 4, 6, 2, 1, 5, 7, 3])
CELLS = [[int(n) + 4 * i + 1 for n in HEX] for i in range(NX)]
VOLUME = 100e-3 * 10e-3 * 10e-3
SYSTEMS = "a system of units LENGTH-MASS-TIME, such as 'mm-t-s', with a length of m, dm"


def numbers(values: Any) -> str:
    """Return numbers as text with commas."""
    return ", ".join(map(str, values))


def abaqus(first: str, second: str = "", *, sets: str = "") -> str:
    """Return a deck of the two bars with materials and sections."""
    rows = [f"{k}, {numbers(x)}" for k, x in enumerate(GRID, 1)]
    cells = [f"{k}, {numbers(nodes)}" for k, nodes in enumerate(CELLS, 1)]
    return "\n".join(
        [
            *["*Heading", "two bars", "*Node", *rows, "*Element, type=C3D8", *cells],
            *["*Elset, elset=front, generate", "1, 4, 1", "*Elset, elset=BACK", "5, 6, 7, 8"],
            *["*Nset, nset=left", "1, 2, 3, 4", "*Nset, nset=right", "33, 34, 35, 36"],
            *[sets, first, second, "*Step", "*Frequency", "10", "*End Step", ""],
        ]
    )


STEEL = """\
*Solid Section, elset=Front, material=Steel
,
*Material, name=Steel
*Density
 7.85e-09,
*Elastic
210000., 0.3
*Expansion
 1.2e-05,
"""
ALUMINIUM = """\
*SOLID SECTION, ELSET=BACK, MATERIAL=ALU
*MATERIAL, NAME=ALU
*ELASTIC, TYPE=ISO
 7.0D4, .33, 20.
*DENSITY
 2.7e-9
"""


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Return a function that writes a file on rank 0 and reads it."""

    def of(text: str, name: str = "part.inp", unit: str | float = "mm-t-s") -> Any:
        path: Path = comm.bcast(tmp_path) / name
        if comm.rank == 0:
            path.write_text(text)
        comm.Barrier()
        return mbd.read_mesh(path, comm, unit=unit)

    return of


def by_hand(mesh: Any) -> mbd.ElasticModel:
    """Return the model whose materials are specified in Python."""
    # Names as the sets are defined; the section says "Front", but Abaqus ignores case.
    steel = mbd.Material(210e9, 0.3, 7850.0, "Steel", 12e-6)
    return mbd.ElasticModel(mesh, {"front": steel, "BACK": mbd.Material(70e9, 0.33, 2700.0)})


def test_a_bar_of_two_materials(read: Any) -> None:
    """Mass and frequencies agree with the same materials in a script."""
    mesh = read(abaqus(STEEL, ALUMINIUM))
    steel = mesh.materials["front"]
    assert (steel.name, steel.thermal_expansion) == ("Steel", 1.2e-5)
    assert mesh.materials["BACK"].young == pytest.approx(70e9)
    bodies = [
        mbd.reduce(model, interfaces=["left", "right"], num_modes=2).body
        for model in (mesh, by_hand(mesh))
    ]
    assert bodies[0].total_mass == pytest.approx(VOLUME * (7850 + 2700), rel=1e-12)
    np.testing.assert_allclose(bodies[0].frequencies, bodies[1].frequencies, rtol=1e-9)


def test_one_material_is_that_of_the_body(read: Any) -> None:
    text = STEEL.replace("Front", "all")
    mesh = read(abaqus(text, sets="*ELSET, ELSET=all\nfront, BACK"))
    model = mbd.ElasticModel(mesh)
    assert isinstance(model.material, mbd.Material) and model.material.name == "Steel"
    assert {*mesh.materials} == {"front", "BACK"}  # "all" overlaps these, and is not a group


def test_materials_with_overlapping_sets(read: Any) -> None:
    """`hot` is part of one bar, and `middle` has cells of both."""
    sets = "*ELSET, ELSET=hot\n6\n*ELSET, ELSET=middle\n4, 5\n*ELSET, ELSET=all\nfront, BACK"
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        mesh = read(abaqus(STEEL, ALUMINIUM, sets=sets))
    if comm.rank == 0:
        texts = " ".join(str(w.message) for w in records if w.category is FileWarning)
        assert "'middle' has several materials and is not a group" in texts
    names = {group: material.name for group, material in mesh.materials.items()}
    assert names == {"front": "Steel", "hot": "ALU", "other cells": "ALU"}
    assert mbd.reduce(mesh, interfaces=[], num_modes=1).body.total_mass == pytest.approx(
        VOLUME * (7850 + 2700), rel=1e-12
    )


def test_materials_of_parts_and_instances(read: Any) -> None:
    """Sections belong to a part; a set may follow its section; each instance has the material."""
    part = abaqus("", "").split("*Step")[0].replace("*Heading\ntwo bars\n", "")
    # the section and the material of each text
    (sections, steel), (other, alu) = (
        text.upper().replace("*MATERIAL", "@*MATERIAL").split("@") for text in (STEEL, ALUMINIUM)
    )
    mesh = read(
        f"*Part, name=Bars\n{sections}{other}{part}*End Part\n*Assembly, name=A\n"
        "*Instance, name=one, part=Bars\n*End Instance\n*Instance, name=two, part=Bars\n"
        f"0., 50., 0.\n*End Instance\n*End Assembly\n{steel}{alu}"
    )
    model = mbd.ElasticModel(mesh)
    mass = volume_integral(mesh.mesh, model.mass_density)
    assert mass == pytest.approx(2 * VOLUME * (7850 + 2700), rel=1e-12)


SI = STEEL.replace("7.85e-09", "7850.").replace("210000.", "2.1e11")


@pytest.mark.parametrize(
    ("unit", "density", "young"),
    [
        ("mm-t-s", "7.85e-9", "2.1e5"),
        ("mm-kg-ms", "7.85e-6", "210."),
        ("m-kg-s", "7850.", "2.1e11"),
        ("in-slinch-s", "7.3455e-4", "3.04579e7"),
    ],
)
def test_systems_of_units(read: Any, unit: str, density: str, young: str) -> None:
    text = STEEL.replace("Front", "FRONT").replace("7.85e-09", density).replace("210000.", young)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnitsWarning)  # in this unit the bars may be long
        steel = read(abaqus(text, ALUMINIUM), unit=unit).materials["front"]
    assert steel.density == pytest.approx(7850, rel=1e-4)
    assert steel.young == pytest.approx(210e9, rel=1e-4)


def test_a_unit_of_length_is_not_enough(read: Any) -> None:
    """The mesh is read, and can be used with other materials."""
    mesh = read(abaqus(STEEL, ALUMINIUM), unit="mm")
    with pytest.raises(FileError, match=r"unit='mm' gives only the length.*unit='mm-t-s'"):
        mbd.ElasticModel(mesh)
    assert mbd.ElasticModel(mesh, mbd.STEEL).material is mbd.STEEL
    for unit in ("mm-stone-s", "N-mm-s", "furlong"):
        with pytest.raises(InputError, match=f"a unit of length, such as 'mm', or {SYSTEMS}"):
            read(abaqus(STEEL), unit=unit)
    for unit in ("mm-t", "MM-T-S", "mm_t_s", "mm t s"):
        with pytest.raises(InputError, match=r"LENGTH-MASS-TIME.*did you mean 'mm-t-s'\?"):
            read(abaqus(STEEL), unit=unit)


def test_a_description_with_materials_that_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`info` describes them, and succeeds: the mesh can be used with other materials."""
    path = comm.bcast(tmp_path) / "part.inp"
    if comm.rank == 0:
        path.write_text(abaqus(STEEL.replace("*Density\n 7.85e-09,\n", ""), ALUMINIUM))
    comm.Barrier()
    assert main(["info", str(path), "--unit", "mm-t-s"]) == 0
    output = capsys.readouterr().out
    if comm.rank == 0:
        assert "material of BACK: ALU; E = 70 GPa" in output
        assert "it has no *DENSITY" in output


def test_materials_of_the_deck_complete_others(read: Any) -> None:
    mesh = read(abaqus(STEEL, ALUMINIUM), unit="mm-t-s")
    names = {"front": "bronze", "BACK": "ALU"}
    bronze = mbd.Material(110e9, 0.34, 8800, name="bronze")
    for key in ("front", mesh.groups["front"][1]):
        model = mbd.ElasticModel(mesh, {key: bronze})
        assert [m.name for m in model.material.values()] == list(names.values())
        assert mbd.reduce(model, interfaces=["left"], num_modes=0).body.total_mass == pytest.approx(
            VOLUME * (8800 + 2700), rel=1e-9
        )
    with pytest.raises(
        FileError, match=r"'ALU' of the cells 'BACK' cannot be converted.*--unit mm"
    ):
        mbd.ElasticModel(read(abaqus(STEEL, ALUMINIUM), unit="mm"), {"front": bronze})
    with pytest.raises(InputError, match="unknown region 'frontt'"):
        mbd.ElasticModel(mesh, {"frontt": bronze})


def test_si_units_that_are_wrong_cause_a_warning(read: Any) -> None:
    text = STEEL.replace("Front", "all")
    with pytest.warns(UnitsWarning, match="--unit mm-t-s"):
        mbd.ElasticModel(read(abaqus(text, sets="*ELSET, ELSET=all\nfront, BACK"), unit="m"))


ERRORS = {
    ("*Density\n 7.85e-09,\n", ""): "'Steel'.* it has no .DENSITY",
    ("210000., 0.3", "210000., 0.3, 20.\n190000., 0.3, 400."): "ELASTIC depends on the temp",
    ("7.85e-09,", "7.85e-09, 20.\n7.8e-9, 400."): "DENSITY depends on the temperature",
    (
        "*Elastic\n210000., 0.3",
        "*Hyperelastic, neo hooke\n1., 2.",
    ): "not linear elastic .*HYPERELAS",
    ("*Elastic\n", "*Elastic, type=LAMINA\n"): "TYPE=LAMINA is not read",
    ("*Elastic\n", "*Elastic, dependencies=1\n"): "depends on fields",
    ("210000., 0.3", "210000.,"): "not a list of numbers|less than 2",
    ("210000., 0.3", "<E>, 0.3"): "not a list of numbers",
    ("210000., 0.3", "210000., 0.5"): "'Steel'.*poisson",
    ("material=Steel", "material=Other"): "'Other'.*does not contain it",
    ("material=Steel", "composite"): "composite section",
    ("elset=Front", "elset=none"): "4 of the 8 cells have no material",
}


@pytest.mark.parametrize("change", ERRORS, ids=ERRORS.values())
def test_materials_that_cannot_be_used(read: Any, change: tuple[str, str]) -> None:
    """The mesh is read; the error names the material when it is used."""
    assert change[0] in STEEL
    mesh = read(abaqus(STEEL.replace(*change), ALUMINIUM))
    assert mesh.materials["BACK"].name == "ALU"
    with pytest.raises((FileError, InputError), match=ERRORS[change]):
        mbd.ElasticModel(mesh)
    mbd.ElasticModel(mesh, {"front": mbd.STEEL, "BACK": mesh.materials["BACK"]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("*Plastic\n250., 0.\n300., 0.1\n", r"'Steel'.*left out: \*PLASTIC"),
        ("*Damping, alpha=1.\n", r"left out: \*DAMPING"),
        ("*Expansion\n1e-5, 20.\n2e-5, 400.\n", "expansion is left out, because .*temperature"),
    ],
)
def test_omitted_constants_cause_a_warning(read: Any, text: str, message: str) -> None:
    mesh = read(abaqus(STEEL + text, ALUMINIUM))
    with pytest.warns(FileWarning, match=message):
        material = mesh.materials["front"]
    assert material.young == pytest.approx(210e9)


ORTHOTROPIC = """\
*Orientation, name=along
0., 1., 0., -1., 0., 0.
3, 0.
*Solid Section, elset=front, material=Ply, orientation=along
*Material, name=Ply
*Elastic, type=ENGINEERING CONSTANTS
140000., 10000., 9000., 0.3, 0.28, 0.4, 5000., 4500.,
3500., 20.
*Density
1.6e-9
*Expansion, type=ORTHO
1e-6, 2e-5, 3e-5
"""


def test_engineering_constants_with_an_orientation(read: Any) -> None:
    """Axis 1 is along y: E along y is E1."""
    ply = read(abaqus(ORTHOTROPIC, ALUMINIUM)).materials["front"]
    S = np.linalg.inv(ply.matrix())
    np.testing.assert_allclose(1 / np.diag(S)[:3], [10e9, 140e9, 9e9])
    np.testing.assert_allclose(1 / np.diag(S)[3:], [4.5e9, 3.5e9, 5e9])  # yz is 13, xz is 23
    assert ply.thermal_expansion == (1e-6, 2e-5, 3e-5)
    assert -S[1, 0] / S[1, 1] == pytest.approx(0.3)  # the strain along axis 2 = −x


def test_stiffnesses_of_an_orthotropic_material(read: Any) -> None:
    """TYPE=ORTHO gives the matrix itself."""
    C = mbd.forms.Orthotropic(
        (140e9, 10e9, 9e9), (0.3, 0.28, 0.4), (5e9, 4.5e9, 3.5e9), 1600.0
    ).matrix()
    # in the order of Abaqus: 1111, 1122, 2222, 1133, 2233, 3333, 1212, 1313, 2323
    values = [C[0, 0], C[0, 1], C[1, 1], C[0, 2], C[1, 2], C[2, 2], C[5, 5], C[4, 4], C[3, 3]]
    row = [f"{1e-6 * value:.12g}" for value in values]
    text = ORTHOTROPIC.split("*Elastic")[0].replace(", orientation=along", "")
    text += f"*Elastic, type=ORTHO\n{numbers(row[:8])}\n{row[8]}, 20.\n*Density\n1.6e-9\n"
    ply = read(abaqus(text, ALUMINIUM)).materials["front"]
    np.testing.assert_allclose(ply.matrix(), C, rtol=1e-9, atol=1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name=along", "name=along, system=CYLINDRICAL", "SYSTEM=CYLINDRICAL.* is not read"),
        ("orientation=along", "orientation=other", "orientation 'OTHER' is missing"),
    ],
)
def test_orientations_that_are_not_read(read: Any, old: str, new: str, message: str) -> None:
    mesh = read(abaqus(ORTHOTROPIC.replace(old, new), ALUMINIUM))
    with pytest.raises(FileError, match=message):
        mesh.materials["front"]


def test_the_mass_by_calculix() -> None:
    """The mass agrees with the matrices that CalculiX computed from the deck."""
    folder = Path(__file__).parents[1] / "io" / "imports" / "calculix"
    body = mbd.reduce(mbd.read_mesh(folder / "bar.inp", comm), interfaces=[], num_modes=1).body
    matrices = mbd.imports.read_calculix(folder / "bar")
    along_x = np.tile([1.0, 0.0, 0.0], len(matrices.nodes))
    assert body.total_mass == pytest.approx(along_x @ matrices.mass @ along_x, rel=1e-6)


# Nastran


def grids() -> list[str]:
    """Return the nodes and cells of a bar as cards of Nastran."""
    rows = [f"GRID,{k},,{numbers(x)}" for k, x in enumerate(GRID, 1)]
    for k, nodes in enumerate(CELLS, 1):
        pid = 1 if k <= 4 else 2
        rows += [f"CHEXA,{k},{pid},{numbers(nodes[:6])}", f",{numbers(nodes[6:])}"]
    return rows


FIELDS = {
    "free": "MAT1,11,2.1+5,,.3,7.85-9,1.2-5",
    "small": "MAT1    11      2.1+5           .3      7.85-9  1.2-5",
    "large": "MAT1*   11              210000.                         .3\n"
    "*       7.85E-9         1.2D-5",
    "E and G": "MAT1,11,2.1+5,80769.2308,,7.85-9,1.2-5",
}
SECTIONS = "PSOLID,1,11\nPSOLID,2,12\nMAT1,12,7.+4,,.33,2.7-9\n"


def nastran(material: str, sections: str = SECTIONS) -> str:
    """Return a deck of Nastran with a material."""
    return "\n".join(["BEGIN BULK", *grids(), f"{sections}{material}", "ENDDATA", ""])


@pytest.mark.parametrize("form", FIELDS)
def test_nastran(read: Any, form: str) -> None:
    pytest.importorskip("pyNastran")
    mesh = read(nastran(FIELDS[form]), "part.bdf")
    steel = mesh.materials["psolid_1"]
    constants = steel.young, steel.poisson, steel.density, steel.thermal_expansion
    assert constants == pytest.approx((210e9, 0.3, 7850, 1.2e-5), rel=1e-6)
    mass = mbd.reduce(mesh, interfaces=[], num_modes=1, stiffening=False).body.total_mass
    assert mass == pytest.approx(VOLUME * (7850 + 2700), rel=1e-9)


def test_weights_in_nastran(read: Any) -> None:
    """PARAM,WTMASS converts weights to masses."""
    pytest.importorskip("pyNastran")
    material = FIELDS["free"].replace("7.85-9", "7.7009-5")
    mesh = read(nastran(f"{material}\nPARAM,WTMASS,1.01937-4"), "part.bdf")
    assert mesh.materials["psolid_1"].density == pytest.approx(7850, rel=1e-4)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("MAT1,11,", "MAT1,13,", "MAT1 11.*does not contain it"),
        (",7.85-9", ",", "MAT1 11.*has no density"),
        ("MAT1,11,2.1+5,,.3", "MAT1,11,2.1+5,,", "lacks two of the constants|shear modulus"),
        (",,.3,", ",90000.,.3,", "it is not isotropic"),
        ("MAT1,11,2.1+5,,.3", "MAT9,11,2.1+5,1.,1.", "MAT9 11.*not isotropic"),
        ("1.2-5", "1.2-5\nMATT1,11,3\nTABLEM1,3\n,0.,1.,1.,2.,ENDT", "depends on the temp"),
    ],
)
def test_nastran_materials_that_cannot_be_used(read: Any, old: str, new: str, message: str) -> None:
    pytest.importorskip("pyNastran")
    mesh = read(nastran(FIELDS["free"].replace(old, new)), "part.bdf")
    with pytest.raises(FileError, match=message):
        mesh.materials["psolid_1"]
    assert mesh.materials["psolid_2"].density == pytest.approx(2700)


def test_a_property_that_is_missing(read: Any) -> None:
    pytest.importorskip("pyNastran")
    mesh = read(nastran(FIELDS["free"], SECTIONS.replace("PSOLID,1", "PSOLID,3")), "part.bdf")
    with pytest.raises(FileError, match=r"property 1.*is missing"):
        mesh.materials["psolid_1"]


# Ansys


def ansys(materials: str, *, compact: bool = False) -> str:
    """Return an archive of the two bars; the elements of the second have material 7."""
    nodes = [
        f"{k:9d}{0:9d}{0:9d}" + "".join(f"{c:21.13e}" for c in x) for k, x in enumerate(GRID, 1)
    ]
    head = ["/COM,ANSYS RELEASE 2019 R2", "/PREP7", "ET,1,185", f"NBLOCK,6,SOLID,{len(GRID)}"]
    lines = [*head, "(3i9,6e21.13e3)", *nodes, "N,R5.3,LOC,       -1,"]
    for material, cells in ((1, range(4)), (7, range(4, 8))):
        if compact:
            lines += [f"MAT,{material} $ TYPE,1", "EBLOCK,10,COMPACT,,4", "(15i9)"]
            lines += ["".join(f"{n:9d}" for n in (k + 1, *CELLS[k])) for k in cells]
            lines.append("       -1")
    if not compact:
        lines += ["EBLOCK,19,SOLID,         8,         8", "(19i9)"]
        for k in range(8):
            row = [1 if k < 4 else 7, 1, 1, 1, 0, 0, 0, 0, 8, 0, k + 1, *CELLS[k]]
            lines.append("".join(f"{n:9d}" for n in row))
        lines.append("       -1")
    for name, numbers in (("LEFT", range(1, 5)), ("RIGHT", range(33, 37))):
        lines += [f"CMBLOCK,{name},NODE,4", "(8i10)", "".join(f"{n:10d}" for n in numbers)]
    return "\n".join([*lines, materials, "FINISH", ""])


MPDATA = """\
MPTEMP,R5.0, 1, 1,  0.00000000    ,
MPDATA,R5.0, 1,EX  ,       1, 1, 210000.000    ,
MPDATA,R5.0, 1,NUXY,       1, 1, 0.300000000    ,
MPDATA,R5.0, 1,DENS,       1, 1, 7.850000000E-09,
MPDATA,R5.0, 1,ALPX,       1, 1, 1.200000000E-05,
MP,EX,7,7.E4
MP,PRXY,7,.33 ! aluminium
MP,DENS,7,2.7E-9
"""


@pytest.mark.parametrize("compact", [False, True])
def test_ansys(read: Any, compact: bool) -> None:
    mesh = read(ansys(MPDATA, compact=compact), "part.cdb")
    assert {m.name for m in mesh.materials.values()} == {"MAT 1", "MAT 7"}
    (steel,) = (m for m in mesh.materials.values() if m.name == "MAT 1")
    assert (steel.young, steel.poisson) == pytest.approx((210e9, 0.3))
    assert steel.thermal_expansion == 1.2e-5
    body = mbd.reduce(mesh, interfaces=["LEFT"], num_modes=1, stiffening=False).body
    assert body.total_mass == pytest.approx(VOLUME * (7850 + 2700), rel=1e-12)
    centre = (0.05 * 7850 + 0.15 * 2700) / (7850 + 2700)  # the materials are at their places
    assert body.centre[0] == pytest.approx(centre, rel=1e-9)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("MPDATA,R5.0, 1,DENS", "MPDATA,R5.0, 1,KXX ", "MAT 1.*has no density"),
        ("MPDATA,R5.0, 1,NUXY", "MPDATA,R5.0, 1,KXX ", "has no Poisson"),
        ("210000.000    ,", "210000.,190000.,", "it depends on the temperature \\(EX\\)"),
        ("MPTEMP", "MPDATA,R5.0, 1,EY  ,       1, 1, 9000.\nMPTEMP", "is orthotropic"),
        ("MPTEMP", "MPDATA,R5.0, 1,GXY ,       1, 1, 9000.\nMPTEMP", "not isotropic"),
        ("MPTEMP", "TB,HYPER,1,1,2,MOONEY\nMPTEMP", "not linear elastic .TB,HYPER"),
        ("MPTEMP", "MP,EX,1,young\nMPTEMP", "it is not read"),
        ("MPTEMP", "MP,EX,1,210000,-3.5\nMPTEMP", "it depends on the temperature \\(EX\\)"),
    ],
)
def test_ansys_materials_that_cannot_be_used(read: Any, old: str, new: str, message: str) -> None:
    mesh = read(ansys(MPDATA.replace(old, new)), "part.cdb")
    with pytest.raises(FileError, match=message):
        mbd.ElasticModel(mesh)


@pytest.mark.parametrize(
    ("line", "metres"),
    [
        ("/UNITS,MPA", None),  # the deck is read in mm
        ("/units, user, 0.001, 1000", None),
        ("/UNITS,USER", None),
        ("/UNITS,SI\n/UNITS,MPA ! the last one counts", None),
        ("! /UNITS,SI", None),
        ("/UNITS,SI", "1"),
        ("/UNITS,uMKS", "1e-06"),
        ("/UNITS,BIN", "0.0254"),
        ("/UNITS,USER,0.01", "0.01"),
    ],
)
def test_units_that_differ_from_those_that_ansys_declares_give_a_warning(
    read: Any, line: str, metres: str | None
) -> None:
    """The warning names the length unit of the deck, `metres` in m as text, if it is not mm."""
    text = ansys(MPDATA).replace("/PREP7", f"{line}\n/PREP7")
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        read(text, "part.cdb")
    if comm.rank == 0:
        texts = [str(w.message) for w in record if "unit of length" in str(w.message)]
        assert len(texts) == (metres is not None)
        assert metres is None or f"unit of length {metres} m, and is read with 0.001 m" in texts[0]


def test_several_elements_with_one_number(read: Any) -> None:
    """Two elements of one part with the same number raise an error."""
    repeated = f"*Element, type=C3D8\n8, {numbers(CELLS[0])}\n3, {numbers(CELLS[1])}\n"
    with pytest.raises(MeshError, match=r"several elements have the same number \(3, 8\)"):
        read(abaqus(STEEL, ALUMINIUM).replace("*Elset", f"{repeated}*Elset", 1))
    text = ansys(MPDATA)
    row = "".join(f"{n:9d}" for n in [7, 1, 1, 1, 0, 0, 0, 0, 8, 0, 8, *CELLS[7]])
    assert row in text
    with pytest.raises(MeshError, match=r"several elements have the same number \(8\)"):
        read(text.replace(row, f"{row}\n{row}"), "part.cdb")


def test_plasticity_in_ansys_is_left_out(read: Any) -> None:
    mesh = read(ansys(MPDATA + "TB,BISO,1,1,2\n"), "part.cdb")
    with pytest.warns(FileWarning, match="left out: TB,BISO"):
        mbd.ElasticModel(mesh)


def test_an_archive_that_ansys_wrote() -> None:
    """The example archive of ansys-mapdl-reader, a beam of 40 elements, has one material."""
    examples = pytest.importorskip("ansys.mapdl.reader.examples")
    mesh = mbd.read_mesh(examples.hexarchivefile, comm)
    material = mbd.ElasticModel(mesh).material
    assert isinstance(material, mbd.Material)
    assert (material.young, material.poisson, material.density) == (70e9, 0.35, 2700.0)
    body = mbd.reduce(mesh, interfaces=[], num_modes=1, stiffening=False).body
    assert body.total_mass == pytest.approx(2700 * 1 * 1 * 5, rel=1e-9)
