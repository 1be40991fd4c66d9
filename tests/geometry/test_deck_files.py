"""Meshes of other programs: files that gmsh writes, compared with the same mesh as `.msh`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dolfinx.fem
import numpy as np
import pytest
import ufl
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import FileWarning, MeshError
from dolfinx_mbd.geometry.gmsh_model import gmsh_session

pytest.importorskip("meshlane")
comm = MPI.COMM_WORLD

SIZES = (0.2, 0.1, 0.05)


def write_files(folder: Path, order: int, *, hexahedra: bool, curved: bool = False) -> None:
    """Write a block or a quarter of a tube with the groups `left` and `right` to several files."""
    with gmsh_session() as gmsh:
        occ = gmsh.model.occ
        if curved:
            section = occ.addRectangle(0.1, 0, 0, 0.1, 0.05)
            swept = occ.revolve(
                [(2, section)], 0, 0, 0, 0, 1, 0, np.pi / 2, numElements=[4], recombine=True
            )
            left, right = section, swept[0][1]
        else:
            occ.addBox(0, 0, 0, *SIZES)
            left, right = 1, 2
        occ.synchronize()
        volume = gmsh.model.getEntities(3)[0][1]
        gmsh.option.setNumber("Mesh.MeshSizeMax", 0.04)
        if hexahedra:
            for _, tag in gmsh.model.getEntities(1):
                gmsh.model.mesh.setTransfiniteCurve(tag, 3)
            for _, tag in gmsh.model.getEntities(2):
                gmsh.model.mesh.setTransfiniteSurface(tag)
                gmsh.model.mesh.setRecombine(2, tag)
            if not curved:
                gmsh.model.mesh.setTransfiniteVolume(volume)
            gmsh.option.setNumber("Mesh.SecondOrderIncomplete", 1)
        gmsh.model.addPhysicalGroup(3, [volume], name="body")
        gmsh.model.addPhysicalGroup(2, [left], name="left")
        gmsh.model.addPhysicalGroup(2, [right], name="right")
        gmsh.model.mesh.generate(3)
        gmsh.model.mesh.setOrder(order)
        gmsh.option.setNumber("Mesh.SaveGroupsOfNodes", 1)
        gmsh.option.setNumber("Mesh.SaveGroupsOfElements", 1)
        for suffix in ("inp", "unv", "msh"):
            gmsh.write(str(folder / f"part.{suffix}"))


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes the files on rank 0 and returns their folder on all ranks."""

    def write(*arguments: Any, **options: Any) -> Path:
        folder: Path = comm.bcast(tmp_path)
        if comm.rank == 0:
            write_files(folder, *arguments, **options)
        comm.Barrier()
        return folder

    return write


def integral(mesh: mbd.fem.TaggedMesh, name: str | None = None) -> float:
    """Return the volume of a mesh, or the area of a group of facets."""
    one = dolfinx.fem.Constant(mesh.mesh, 1.0)
    measure = ufl.dx(mesh.mesh)
    if name is not None:
        tag = mesh.groups[name][1]
        measure = ufl.ds(domain=mesh.mesh, subdomain_data=mesh.facet_tags)(tag)
    return float(comm.allreduce(dolfinx.fem.assemble_scalar(dolfinx.fem.form(one * measure))))


@pytest.mark.parametrize("hexahedra", [False, True])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("suffix", ["inp", "unv"])
def test_sets_become_groups(
    written: Callable[..., Path], suffix: str, order: int, hexahedra: bool
) -> None:
    folder = written(order, hexahedra=hexahedra)
    mesh = mbd.read_mesh(folder / f"part.{suffix}", comm)
    assert integral(mesh) == pytest.approx(np.prod(SIZES), rel=1e-12)
    for name in ("left", "right"):
        assert integral(mesh, name) == pytest.approx(SIZES[1] * SIZES[2], rel=1e-12)
    assert {"left", "right", "body"} <= mesh.groups.keys()


@pytest.mark.parametrize("suffix", ["inp", "unv"])
def test_frequencies_of_the_same_mesh(written: Callable[..., Path], suffix: str) -> None:
    """The nodes of quadratic cells have the right order: the bodies have equal frequencies."""
    folder = written(2, hexahedra=False)
    frequencies = []
    for name in (f"part.{suffix}", "part.msh"):
        mesh = mbd.read_mesh(folder / name, comm)
        body = mbd.reduce(mesh, mbd.STEEL, interfaces=["left", "right"], num_modes=4).body
        frequencies.append([mode.frequency for mode in body.modes])
    np.testing.assert_allclose(frequencies[0], frequencies[1], rtol=1e-7)


def test_cells_with_20_nodes_keep_their_shape(written: Callable[..., Path]) -> None:
    """A quarter of a tube of quadratic cells has the exact volume up to the error of parabolas."""
    folder = written(2, hexahedra=True, curved=True)
    mesh = mbd.read_mesh(folder / "part.inp", comm)
    exact = np.pi / 4 * (0.2**2 - 0.1**2) * 0.05
    assert integral(mesh) == pytest.approx(exact, rel=1e-3)
    assert integral(mesh, "left") == pytest.approx(0.1 * 0.05, rel=1e-12)


DECK = """\
*NODE
1, 0, 0, 0
2, 1, 0, 0
3, 1, 1, 0
4, 0, 1, 0
5, 0, 0, 1
6, 1, 0, 1
7, 1, 1, 1
8, 0, 1, 1
9, 2, 0, 0
10, 2, 1, 0
11, 2, 0, 1
12, 2, 1, 1
*ELEMENT, TYPE=C3D8, ELSET=one
1, 1, 2, 3, 4, 5, 6, 7, 8
*ELEMENT, TYPE=C3D8, ELSET=two
2, 2, 9, 10, 3, 6, 11, 12, 7
*NSET, NSET=left
1, 4, 5, 8
*NSET, NSET=corner
1, 4, 5
*NSET, NSET=floor
1, 2, 3, 4, 9, 10
*NSET, NSET=wide
1, 2, 3, 4, 5, 6, 7, 8
"""


def test_sets_that_overlap_are_named(tmp_path: Path) -> None:
    """`wide` contains facets of `left` and `floor`; `corner` contains no facet."""
    path: Path = comm.bcast(tmp_path) / "part.inp"
    if comm.rank == 0:
        path.write_text(DECK)
    comm.Barrier()
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        mesh = mbd.read_mesh(path, comm)
    messages = [str(w.message) for w in records if isinstance(w.message, FileWarning)]
    assert (len(messages) == 1) == (comm.rank == 0)
    assert all("of 'wide' belong to 'floor', 'left' only" in text for text in messages)
    assert set(mesh.groups) == {"left", "floor", "wide", "one", "two"}
    assert integral(mesh, "floor") == pytest.approx(2.0)
    assert integral(mesh, "wide") == pytest.approx(3.0)


# Decks and patterns of the errors; a dot stands for the asterisk of a keyword. The third deck has a
# hexahedron and a wedge.
CASES = {
    "*NODE\n1, 0, 0, 0\n": "it has no elements",
    "*NODE\n1, 0, 0\n*ELEMENT\n": "the type of elements is missing: '.ELEMENT'",
    DECK.replace("C3D8, ELSET=two", "C3D6, ELSET=two").replace("6, 11, 12, 7", "6, 11"): "wedge",
    "": "it has no nodes and elements",
}


@pytest.mark.parametrize("text", CASES)
def test_decks_that_cannot_be_used(tmp_path: Path, text: str) -> None:
    path: Path = comm.bcast(tmp_path) / "part.inp"
    if comm.rank == 0:
        path.write_text(text)
    comm.Barrier()
    with pytest.raises(MeshError, match=CASES[text]):
        mbd.read_mesh(path, comm)
