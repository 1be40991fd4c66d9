"""The numbered faces of a mesh are those that `pick` finds, on any number of ranks."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from dolfinx.mesh import CellType, create_box, create_rectangle
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.cli import main

pytest.importorskip("gmsh")


@pytest.mark.parametrize("order", [1, 2])
def test_faces_of_a_rod(order: int) -> None:
    part = mbd.ConnectingRod(size=0.014, order=order)
    mesh = mbd.build_mesh(part, MPI.COMM_WORLD)
    faces = mbd.fem.smooth_faces(mesh.mesh)
    assert [face.number for face in faces] == list(range(1, len(faces) + 1))
    assert all(a.area > b.area * (1 - 1e-5) for a, b in itertools.pairwise(faces))
    for face in faces:
        assert np.array_equal(face.facets, mbd.fem.pick(mesh, near=face.point))
    bores = {round(f.radius, 9): f for f in faces if f.radius is not None}
    for name, diameter, x in (
        ("big_end", part.big_bore, 0.0),
        ("small_end", part.small_bore, part.length),
    ):
        bore = bores[round(diameter / 2, 9)]
        assert bore.kind == "cylinder" and bore.direction is not None
        assert np.array_equal(bore.facets, mesh.facets(name))
        np.testing.assert_allclose(bore.direction, [0, 0, 1], atol=1e-9)
        np.testing.assert_allclose(bore.centre, [x, 0, 0], atol=1e-9)
        # 0.02 m is the width of the small end.
        exact = math.pi * diameter * (part.big_width if name == "big_end" else 0.02)
        assert 0.9 * exact < bore.area < exact * (1 + 1e-12)


@pytest.mark.parametrize("cell", [CellType.tetrahedron, CellType.hexahedron])
def test_faces_of_a_box(comm: MPI.Intracomm, cell: CellType) -> None:
    """Equal areas are in the order of their centres."""
    size = np.array([2.0, 1.0, 0.5])
    faces = mbd.fem.smooth_faces(create_box(comm, [(0, 0, 0), size], (6, 4, 3), cell))
    assert [round(face.area, 12) for face in faces] == [2.0, 2.0, 1.0, 1.0, 0.5, 0.5]
    for face, axis in zip(faces, (2, 2, 1, 1, 0, 0), strict=True):
        assert face.kind == "plane" and face.direction is not None
        side = -1.0 if face.number % 2 else 1.0
        np.testing.assert_allclose(face.direction, side * np.eye(3)[axis], atol=1e-12)
        centre = size / 2
        centre[axis] *= 1 + side
        np.testing.assert_allclose(face.centre, centre, atol=1e-12)


def test_a_mesh_of_the_plane_has_no_faces(comm: MPI.Intracomm) -> None:
    with pytest.raises(InputError, match="a mesh of solids; got triangle"):
        mbd.fem.smooth_faces(create_rectangle(comm, [(0, 0), (1, 1)], (2, 2)))


def test_command_lists_and_draws(
    comm: MPI.Intracomm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A point of the list, in the option `--pick`, selects the bore."""
    pytest.importorskip("pyvista")
    folder: Path = comm.bcast(tmp_path)
    mesh = str(folder / "rod.msh")
    assert main(["mesh", "rod", "--size", "14mm", "--order", "1", "-o", mesh]) == 0
    comm.Barrier()
    capsys.readouterr()
    assert main(["faces", mesh, "-o", str(folder / "faces.png")]) == 0
    comm.Barrier()
    text = comm.bcast(capsys.readouterr().out)
    rows = [line.split() for line in text.splitlines()[1:-1]]
    assert (folder / "faces.png").stat().st_size > 10_000
    bore = next(row for row in rows if row[1] == "cylinder" and row[3] == "21")
    words = ["reduce", mesh, "-q", "--material", "steel", "--modes", "1", "--degree", "1"]
    words += ["--interface", "small_end", "--interface", "big:averaged"]
    out = folder / "rod.npz"
    assert main([*words, "--pick", f"big=near:{bore[-1]}", "-o", str(out)]) == 0
    comm.Barrier()
    big = mbd.body.ReducedBody.load(out).interface("big")
    np.testing.assert_allclose(big.point, [0, 0, 0], atol=1e-9)
    assert big.kind == "averaged"


# Values of the option `--pick`, and the exit status of the command.
PICKS = {
    "big=cylinder:0,0,0:0,0,1:21mm+box:-1,-1,-1:1,1,0.1mm": 0,
    "big=plane:0,0,-10mm:0,0,1": 0,
    "big=cylinder:0,0,0:0,0,1": 1,
    "big=sphere:0,0,0": 1,
    "big=near:0,x,0": 1,
    "big=near:9,9,9": 1,
    "big": 1,
}


@pytest.mark.parametrize("word", PICKS)
def test_shapes_on_the_command_line(
    comm: MPI.Intracomm, tmp_path: Path, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mesh = str(comm.bcast(tmp_path) / "rod.msh")
    assert main(["mesh", "rod", "--size", "14mm", "--order", "1", "-o", mesh]) == 0
    comm.Barrier()
    words = ["reduce", mesh, "--material", "steel", "--pick", word, "--dry-run"]
    assert main(words) == PICKS[word]
    if comm.rank == 0:
        output = capsys.readouterr()
        assert "interface       big" in output.out or "--pick" in output.err
