"""Superelements in files that Nastran wrote, and in OUTPUT2 files.

`tests/data/nastran_superelements.zip` has files of NX Nastran 9 from the tests of pyyeti: two parts
of a truss (`EXTSEOUT(ASMBULK,EXTBULK,MATOP4)`), and DMIG entries in a punch and an OUTPUT2 file.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.export.superelement import superelement
from dolfinx_mbd.io.imports import (
    FirstOrderInertiaWarning,
    MatrixError,
    MatrixFileError,
    ReducedMatrices,
    body_from_reduced,
    read_dmig,
    read_op2,
    read_op4,
)
from tests.io.imports.bars import ENDS, reference, relative
from tests.io.imports.op2_files import Words, write_op2

pytest.importorskip("pyNastran")

from pyNastran.op4.op4 import read_op4 as read_matrices

from dolfinx_mbd.io.export.matrix_formats import _dmig_matrix
from dolfinx_mbd.io.imports.nastran_op2 import Op2File
from dolfinx_mbd.io.imports.nastran_points import read_bulk_data, retained

GRIDS = (3, 11, 19, 27)
PLACES = np.array([[600.0, 0, 300], [600, 300, 300], [600, 300, 0], [600, 0, 0]])  # mm
# Mass (kg) and centre of mass (mm) that Nastran prints (grid point weight generator, inboard.out)
MASS, CENTRE = 1.755052, (1039.998, 150.0, 150.0)
# Eigenvalues (rad/s)² that Nastran computes from both superelements (assemble.out), modes 7 to 18
SQUARES = (
    1.139316e2, 1.233310e2, 1.362450e2, 4.616507e2, 1.947847e3, 1.948512e3, 4.539855e3, 4.761744e3,
    7.591218e3, 8.174772e3, 8.473940e3, 9.112438e3,
)  # fmt: skip
# Relative accuracy of matrices by bytes of a word and type of the reals (1 single, 2 double); a
# real of single precision fills one word, also of eight bytes
ACCURACY = {(4, 1): 1e-5, (4, 2): 1e-14, (8, 1): 1e-14, (8, 2): 1e-14}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of Nastran's superelements."""
    folder = tmp_path_factory.mktemp("nastran")
    archive = Path(__file__).parents[2] / "data" / "nastran_superelements.zip"
    zipfile.ZipFile(archive).extractall(folder)
    return folder


def part(files: Path, name: str) -> ReducedMatrices:
    """Return a superelement from its OP4 and punch files."""
    element = read_op4(files / f"{name}.op4", bulk=files / f"{name}.pch")
    assert isinstance(element, ReducedMatrices)
    return element


def local_matrices(files: Path, name: str) -> tuple[list[Any], list[tuple[int, int]]]:
    """Return K and M as they are in the file, and the coordinates of their rows."""
    entries = read_matrices(str(files / f"{name}.op4"), debug=None)
    data = [
        entries[n].data if hasattr(entries[n], "data") else entries[n][1] for n in ("KXX", "MXX")
    ]
    dense = [np.asarray(A.toarray() if hasattr(A, "toarray") else A) for A in data]
    return dense, retained(read_bulk_data(files / f"{name}.pch"))


def body(element: Any) -> Any:
    """Return the body of reduced matrices, which have a warning about their inertia."""
    with pytest.warns(FirstOrderInertiaWarning):
        return body_from_reduced(element)


def test_mass_of_a_superelement_of_nastran(files: Path) -> None:
    """The rigid body is that of Nastran's deck, although grid 11 has other displacement axes."""
    element = part(files, "inboard")
    assert element.names == tuple(f"grid {g}" for g in GRIDS)
    assert np.array_equal(element.points, PLACES) and element.damping is None
    inboard = body(element)
    assert inboard.total_mass == pytest.approx(MASS, rel=1e-6)
    assert inboard.centre == pytest.approx(CENTRE, rel=1e-6)
    with pytest.raises(MatrixError, match="resists rigid motion"):  # without the axes of grid 11
        body_from_reduced(read_op4(files / "inboard.op4", points=PLACES))


def test_frequencies_of_two_superelements(files: Path) -> None:
    """Two superelements with common grids have the frequencies that Nastran computes."""
    parts = [part(files, name) for name in ("inboard", "outboard")]
    # The four common grids have 24 degrees of freedom.
    shared, modes = 24, [len(p.stiffness) - 24 for p in parts]
    K, M = np.zeros((2, shared + sum(modes), shared + sum(modes)))
    for k, element in enumerate(parts):
        start = shared + sum(modes[:k])
        dofs = np.r_[:shared, start : start + modes[k]]
        K[np.ix_(dofs, dofs)] += element.stiffness
        M[np.ix_(dofs, dofs)] += element.mass
    # M is singular, as the deck does not use all modes: their inverse eigenvalues are zero.
    shift = 1e3
    inverse = scipy.linalg.eigvalsh(M, K + shift * M)
    squares = 1 / inverse[inverse > 1e-9][::-1] - shift
    assert np.abs(squares[:6]).max() < 1e-3
    assert squares[6 : 6 + len(SQUARES)] == pytest.approx(SQUARES, rel=1e-6)


def test_punch_file_of_one_superelement(files: Path, tmp_path: Path) -> None:
    """Entries as Nastran punches them agree with DMIG entries of the same matrices."""
    (K, M), coordinates = local_matrices(files, "inboard")
    text = (files / "inboard.pch").read_text()
    lines = [*_dmig_matrix("KAAX", K, coordinates), *_dmig_matrix("MAAX", M, coordinates)]
    path = tmp_path / "inboard.pch"
    path.write_text(text + "\n".join(lines) + "\n")
    element, expected = read_dmig(path), part(files, "inboard")
    assert np.array_equal(element.points, expected.points) and element.names == expected.names
    assert relative(element.stiffness, expected.stiffness) < 1e-9
    assert relative(element.mass, expected.mass) < 1e-9
    path.write_text(path.read_text() + text.replace("SUPER      102", "SUPER      103"))
    with pytest.raises(MatrixFileError, match="superelements 102, 103; expected one"):
        read_dmig(path)


@pytest.mark.parametrize("component", ["0", "1", ""])
@pytest.mark.parametrize("card", ["ASET1", "QSET1"])
def test_forms_of_the_analysis_set(files: Path, tmp_path: Path, card: str, component: str) -> None:
    """Newer versions write the scalar points as a range, in the same set or another one."""
    lines = (files / "inboard.pch").read_text().splitlines()
    other_lines = [line for line in lines if not re.match("ASET     2995", line)]
    assert len(other_lines) == len(lines) - 2
    path = tmp_path / "inboard.pch"
    entry = f"{card:<8}{component:>8} 2995001    THRU 2995008"
    path.write_text("\n".join([*other_lines, entry]) + "\n")
    element, expected = read_op4(files / "inboard.op4", bulk=path), part(files, "inboard")
    assert np.array_equal(element.stiffness, expected.stiffness)
    assert np.array_equal(element.mass, expected.mass)


def test_errors_of_a_punch_file(files: Path, tmp_path: Path) -> None:
    text = (files / "inboard.pch").read_text()
    path = tmp_path / "inboard.pch"
    path.write_text(text.replace("ASET           3  123456", "ASET           3  123   "))
    with pytest.raises(MatrixError, match=r"shapes \[\(32, 32\)\], and .* has 29 coordinates"):
        read_op4(files / "inboard.op4", bulk=path)
    (K, M), coordinates = local_matrices(files, "inboard")
    rows = [k for k, key in enumerate(coordinates) if key not in ((3, 4), (3, 5))]
    pair = {n: A[np.ix_(rows, rows)] for n, A in (("KAA", K), ("MAA", M))}
    places = [coordinates[k] for k in rows]
    lines = [line for n, A in pair.items() for line in _dmig_matrix(n, A, places)]
    path.write_text(text + "\n".join(lines) + "\n")
    with pytest.raises(MatrixError, match=r"grid 3 has only the components 1236; .* need all six"):
        read_dmig(path)
    path.write_text(text.replace("CORD2R*", "CORD2C*"))
    with pytest.raises(MatrixError, match=r"grid 11 .* 10, which is not rectangular"):
        read_op4(files / "inboard.op4", bulk=path)
    path.write_text(re.sub(r"CORD2R.*\n\*.*\n\*.*\n", "", text))
    with pytest.raises(MatrixError, match="10"):
        read_op4(files / "inboard.op4", bulk=path)
    with pytest.raises(MatrixFileError, match="no matrix 'KAAX'; the file has none"):
        read_dmig(files / "inboard.pch")
    with pytest.raises(InputError, match="only one of points, nodes and bulk"):
        read_op4(files / "inboard.op4", bulk=files / "inboard.pch", points=PLACES)
    with pytest.raises(OSError, match="no file"):
        read_op4(files / "inboard.op4", bulk=tmp_path / "outboard.pch")


def test_dmig_of_an_op2_file_of_nastran(files: Path) -> None:
    """The records contain the numbers that Nastran printed in its punch file."""
    file = Op2File((files / "matrix.op2").read_bytes())
    blocks = {block.name: block.records[0] for block in file.blocks() if file.is_dmig(block)}
    assert list(blocks) == ["MPATRN", "MIDENT", "MRANDM", "MCMPLX"]
    printed = read_bulk_data(files / "matrix_factory.pch").dmig
    for name, count in (("PATRN", 441), ("IDENT", 21), ("RANDM", 441)):
        card, entries = printed[name], file.entries(name, blocks[f"M{name}"])
        assert len(entries) == len(card.Real) == count
        for row, column, value in zip(card.GCi, card.GCj, card.Real, strict=True):
            assert entries[tuple(row), tuple(column)] == pytest.approx(value, rel=1e-9)
    with pytest.raises(MatrixError, match="complex"):
        read_op2(files / "matrix.op2", stiffness="MCMPLX", mass="MIDENT")
    with pytest.raises(MatrixError, match=r"points .* without GRID"):
        read_op2(files / "matrix.op2", stiffness="MIDENT", mass="MIDENT")
    with pytest.raises(MatrixError, match="no matrix 'KAAX'; the file has 'MPATRN', 'MIDENT'"):
        read_op2(files / "matrix.op2")


def test_op2_with_records_of_nastran(files: Path, tmp_path: Path) -> None:
    """Grids, axes and scalar points are the records of Nastran's file of results."""
    geometry = list(Op2File((files / "inboard.op2").read_bytes()).blocks())
    records = [block.records for block in geometry if block.name in ("GEOM1S", "GEOM2S")]
    (K, M), coordinates = local_matrices(files, "inboard")
    words, path = Words(), tmp_path / "inboard.op2"
    matrices = {"MATK": words.dmig(K, coordinates), "MATM": words.dmig(M, coordinates)}
    path.write_bytes(words.superelement(records, matrices))
    element, expected = read_op2(path), part(files, "inboard")
    assert np.array_equal(element.points, PLACES) and element.names == expected.names
    assert relative(element.stiffness, expected.stiffness) < 1e-12  # (one triangle of it)
    assert relative(element.mass, expected.mass) < 1e-12
    assert body(element).total_mass == pytest.approx(MASS, rel=1e-6)
    path.write_bytes(words.superelement([*records, records[0]], matrices))  # the grids twice
    assert np.array_equal(read_op2(path).stiffness, element.stiffness)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("size", "kind"), ACCURACY)
def test_words_of_op2_files(tmp_path: Path, size: int, kind: int, order: str) -> None:
    """Words have four or eight bytes in either order; long records are divided."""
    source = reference().replace(damping=1e-6 * reference().stiffness)
    expected, path = superelement(source), tmp_path / "bar.op2"
    for label, most in ((True, 10**9), (False, 57)):
        write_op2(path, source, Words(size, order), kind=kind, label=label, most=most)
        element = read_op2(path, names=ENDS)
        assert np.array_equal(element.points, expected.points) and element.names == tuple(ENDS)
        for name in ("stiffness", "mass", "damping"):
            assert relative(getattr(element, name), getattr(expected, name)) < ACCURACY[size, kind]
    if kind == 2:
        assert relative(body(element).frequencies, source.frequencies) < 1e-7
    write_op2(path, source, Words(size, order), double=False)
    assert relative(read_op2(path).points, expected.points) < 1e-6


def test_files_without_a_superelement(files: Path, tmp_path: Path) -> None:
    with pytest.raises(MatrixFileError, match=r"no matrices of a superelement.*DMIGOP2.*GEOM1S"):
        read_op2(files / "inboard.op2")
    for path in (files / "inboard.pch", files / "LICENSE.txt"):
        with pytest.raises(MatrixFileError, match="not an OUTPUT2 file"):
            read_op2(path)
    with pytest.raises(MatrixFileError):
        read_op2(files / "inboard.op4")  # (also has records of Fortran)
    empty = tmp_path / "empty.op2"
    empty.write_bytes(b"")
    with pytest.raises(MatrixFileError, match="not an OUTPUT2 file"):
        read_op2(empty)
    with pytest.raises(InputError, match="stiffness"):
        read_op2(files / "inboard.op2", stiffness=3)  # type: ignore[arg-type]


def test_damaged_op2_files(tmp_path: Path) -> None:
    """A file that is truncated anywhere, and a wrong directory, are errors."""
    path = tmp_path / "bar.op2"
    write_op2(path, reference())
    data = path.read_bytes()
    for size in (0, 3, 100, 1000, len(data) // 2, len(data) - 200, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(MatrixFileError, match=r"bar\.op2: "):
            read_op2(path)
    write_op2(path, reference(), first=7)
    with pytest.raises(MatrixError, match="grid 1 has no component 7"):
        read_op2(path)
    path.write_bytes(data.replace(b"MATM    ", b"MATK    "))
    with pytest.raises(MatrixFileError, match="matrices of the same name"):
        read_op2(path)
    path.write_bytes(data.replace(b"MATM    ", b"PVT0    "))
    with pytest.raises(MatrixFileError, match="4 data blocks EXTDB, and the directory names 3"):
        read_op2(path)
    path.write_bytes(data.replace(b"MATM    ", b"MATV    "))
    with pytest.raises(MatrixFileError, match="no matrix 'MAAX'; the file has 'MATK', 'MATV'"):
        read_op2(path)
