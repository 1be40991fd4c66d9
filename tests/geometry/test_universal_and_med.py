"""Universal files as Salome writes them, and MED files that Salome's library wrote.

`tests/data/salome_med.zip` has two files that medcoupling 9.15, Salome's library, wrote: a box of
200 × 100 × 50 mm with groups of faces, cells and nodes. The universal files are written here in
the layout of Salome: all elements have the same property, and groups are lists of elements and of
nodes. gmsh makes its groups from the properties.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import FileWarning, MeshError
from tests.geometry.test_deck_files import integral, write_files

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="files of one process")

SOLIDS = {111, 115, 116, 118}
"""Types of tetrahedra (111, 118) and hexahedra (115, 116) with linear and quadratic sides."""
NODE, ELEMENT = 7, 8
"""Types of the members of a group."""
PROPERTY, MATERIAL, COLOUR = 2, 1, 7
"""Values that Salome writes for all elements."""


def datasets(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the lines of each dataset of a universal file."""
    rows = iter(text.splitlines())
    for row in rows:
        assert row.strip() == "-1"
        number, content = int(next(rows)), []
        while (row := next(rows)).strip() != "-1":
            content.append(row)
        yield number, content


def line(*words: int) -> str:
    """Return integers in fields of ten characters."""
    return "".join(f"{word:10d}" for word in words)


def dataset(number: int, rows: list[str]) -> str:
    """Return the text of a dataset between its delimiters -1."""
    return "\n".join(["    -1", f"{number:6d}", *rows, "    -1", ""])


def as_by_salome(text: str, groups: int = 2467, *, half: bool = False) -> str:
    """Return a file of gmsh in Salome's layout, with the number of the dataset of the groups."""
    parts = dict(datasets(text))
    x = {
        int(head.split()[0]): [float(word.replace("D", "E")) for word in row.split()]
        for head, row in zip(parts[2411][::2], parts[2411][1::2], strict=True)
    }
    rows, faces, cells, k = [], {}, [], 0
    while k < len(parts[2412]):
        label, kind, *_, count = map(int, parts[2412][k].split())
        size = 1 + (count + 7) // 8
        lines = parts[2412][k + 1 : k + size]
        nodes = [int(word) for row in lines for word in row.split()]
        rows += [line(label, kind, PROPERTY, MATERIAL, COLOUR, count), *lines]
        k += size
        if kind in SOLIDS:
            cells.append(label)
        else:
            faces[label] = np.array([x[n] for n in nodes])
    members = {"body": [(ELEMENT, label) for label in cells]}
    for name, x_face in (("left", 0.0), ("right", 0.2)):
        members[name] = [
            (ELEMENT, k) for k, points in faces.items() if np.allclose(points[:, 0], x_face)
        ]
    members["fixed nodes"] = [(NODE, n) for n, point in x.items() if abs(point[1]) < 1e-9]
    if half:
        members["half"] = members["body"][: len(cells) // 2]
    zeros = [0, 0] if groups >= 2435 else []  # newer datasets have four numbers for each member
    blocks = []
    for k, (name, entries) in enumerate(members.items(), 1):
        words = [word for entry in entries for word in (*entry, *zeros)]
        blocks += [line(k, *[0] * 6, len(entries)), name]
        blocks += [line(*words[i : i + 8]) for i in range(0, len(words), 8)]
    return "".join([dataset(2411, parts[2411]), dataset(2412, rows), dataset(groups, blocks)])


def check(mesh: Any) -> None:
    """Assert that volume and areas of the groups are those of the box."""
    assert integral(mesh) == pytest.approx(0.2 * 0.1 * 0.05, rel=1e-12)
    for name in ("left", "right"):
        assert integral(mesh, name) == pytest.approx(0.1 * 0.05, rel=1e-12)
    assert integral(mesh, "fixed nodes") == pytest.approx(0.2 * 0.05, rel=1e-12)


@pytest.mark.parametrize("hexahedra", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_groups_of_elements_and_of_nodes(tmp_path: Path, order: int, hexahedra: bool) -> None:
    pytest.importorskip("meshlane")
    write_files(tmp_path, order, hexahedra=hexahedra)
    path = tmp_path / "salome.unv"
    path.write_text(as_by_salome((tmp_path / "part.unv").read_text()))
    mesh = mbd.read_mesh(path, MPI.COMM_SELF)
    check(mesh)
    assert set(mesh.groups) == {"body", "left", "right", "fixed nodes"} and not mesh.materials


@pytest.fixture
def text(tmp_path: Path) -> str:
    """Return a universal file of gmsh with linear tetrahedra."""
    write_files(tmp_path, 1, hexahedra=False)
    return (tmp_path / "part.unv").read_text()


@pytest.mark.parametrize("groups", [2477, 2452, 2435, 2432, 2430, 2429, 2417])
def test_numbers_of_the_dataset_of_groups(tmp_path: Path, text: str, groups: int) -> None:
    path = tmp_path / "salome.unv"
    path.write_text(as_by_salome(text, groups))
    check(mbd.read_mesh(path, MPI.COMM_SELF))


def test_groups_that_overlap(tmp_path: Path, text: str) -> None:
    path = tmp_path / "salome.unv"
    path.write_text(as_by_salome(text, half=True))
    with pytest.warns(FileWarning, match="'body' overlaps 'half' and is not a group"):
        mesh = mbd.read_mesh(path, MPI.COMM_SELF)
    assert {"half", "other cells"} <= mesh.groups.keys()


UNITS = "         5mm (milli-newton)        2\n   1.0D+03   1.0D+03   1.0D+00\n   2.7315D+02"


def test_the_unit_of_length_that_a_file_declares(tmp_path: Path, text: str) -> None:
    path = tmp_path / "salome.unv"
    path.write_text(dataset(164, UNITS.splitlines()) + as_by_salome(text))
    with pytest.warns(FileWarning, match=r"unit of length 0.001 m, and is read with 1 m"):
        mbd.read_mesh(path, MPI.COMM_SELF)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  2412\n", "  2413\n", "no elements .dataset 2412"),
        ("  2411\n", "  9999\n", "no nodes .dataset 2411"),
        (
            "       111",
            "       114",
            "dataset 2412 cannot be read: .* a solid of the unknown type 114",
        ),
        ("       111", "       115", "has 4 instead of 8 nodes"),
        ("REPEATED", "", "several elements have the same number"),
    ],
)
def test_files_that_cannot_be_used(
    tmp_path: Path, text: str, old: str, new: str, message: str
) -> None:
    path = tmp_path / "salome.unv"
    content = as_by_salome(text).replace(old, new)
    if old == "REPEATED":  # the elements of the file twice
        content += next(dataset(number, rows) for number, rows in datasets(text) if number == 2412)
    path.write_text(content)
    with pytest.raises(MeshError, match=message):
        mbd.read_mesh(path, MPI.COMM_SELF)
    path.write_text(as_by_salome(text)[:-400])  # an incomplete file
    with pytest.raises(MeshError, match=r"cannot be read|is incomplete"):
        mbd.read_mesh(path, MPI.COMM_SELF)


@pytest.mark.parametrize("name", ["tet10", "hex20"])
def test_files_that_salome_wrote(tmp_path: Path, name: str) -> None:
    pytest.importorskip("meshlane")
    pytest.importorskip("h5py")
    archive = Path(__file__).parents[1] / "data" / "salome_med.zip"
    with zipfile.ZipFile(archive) as file:
        path = Path(file.extract(f"{name}.med", tmp_path))
    if name == "tet10":
        with pytest.warns(FileWarning, match="all facets of 'left and floor' belong to") as seen:
            mesh = mbd.read_mesh(path, MPI.COMM_SELF)
        assert any("'body' overlaps 'half'" in str(w.message) for w in seen)
        assert {"half", "other cells", "left", "right", "floor"} <= mesh.groups.keys()
        assert integral(mesh, "floor") == pytest.approx(0.2 * 0.1, rel=1e-12)
    else:
        mesh = mbd.read_mesh(path, MPI.COMM_SELF)
        assert set(mesh.groups) == {"body", "left", "right", "front nodes"}
    assert integral(mesh) == pytest.approx(0.2 * 0.1 * 0.05, rel=1e-12)
    for face in ("left", "right"):
        assert integral(mesh, face) == pytest.approx(0.1 * 0.05, rel=1e-12)
    assert integral(mesh, "front nodes") == pytest.approx(0.2 * 0.05, rel=1e-12)
