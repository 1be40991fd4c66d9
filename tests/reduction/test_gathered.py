"""No data of the size of the mesh are gathered on one rank; all pickled messages are measured."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from dolfinx.mesh import CellType
from mpi4py import MPI

import dolfinx_mbd
from dolfinx_mbd import STEEL, InterfaceSpec, ReductionOptions, reduce
from dolfinx_mbd.fem.linalg.block_lanczos import BLOCK_SIZE, largest_space
from tests.models.bodies import box

PACKAGE = Path(dolfinx_mbd.__file__).parent
INTERFACES = {"left": "left", "right": InterfaceSpec("right", kind="averaged")}
CELLS, MODES = (12, 4, 4), 6
SMALL = largest_space(MODES) + 2 * BLOCK_SIZE
"""Largest length of a small message: the number of vectors of block Lanczos."""
BUFFERS = {"Gather", "Gatherv", "Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Scatterv"}


def longest(value: object) -> int:
    """Return the length of the longest array, list or mapping in an object."""
    if isinstance(value, (str, bytes)) or value is None:
        return 0
    if hasattr(value, "shape"):  # dense or sparse array
        return int(max(value.shape, default=0))
    if isinstance(value, Mapping):
        return max(len(value), longest(list(value.values())))
    if isinstance(value, (tuple, list, set)):
        return max(len(value), *map(longest, value), 0)
    return longest(list(getattr(value, "__dict__", {}).values()))


@contextmanager
def counted() -> Iterator[list[int]]:
    """Record the `longest` of each object that this process sends or receives as a pickle.

    ``gather``, ``allgather``, ``bcast``, ``scatter``, ``send`` ... of any communicator use pickles.
    """
    lengths: list[int] = []

    def dumps(value: object, protocol: int = pickle.HIGHEST_PROTOCOL) -> bytes:
        lengths.append(longest(value))
        return pickle.dumps(value, protocol)

    def loads(data: bytes) -> object:
        value = pickle.loads(data)
        lengths.append(longest(value))
        return value

    MPI.pickle.__init__(dumps, loads)
    try:
        yield lengths
    finally:
        MPI.pickle.__init__()


def most_sent(comm: MPI.Intracomm, solver: str, skin: bool) -> tuple[int, int]:
    """Return the longest array of a reduction on any rank, and the fewest dofs of a rank."""
    mesh = box(comm, cells=CELLS, cell=CellType.tetrahedron)
    with counted() as lengths:
        reduction = reduce(
            mesh,
            STEEL,
            interfaces=INTERFACES,
            num_modes=MODES,
            solver=solver,
            options=ReductionOptions(skin=skin),
        )
    return comm.allreduce(max(lengths), MPI.MAX), comm.allreduce(len(reduction.modes), MPI.MIN)


def test_the_count_detects_a_gathered_vector(comm: MPI.Intracomm) -> None:
    """Otherwise the other tests of this file could not fail."""
    with counted() as lengths:
        comm.gather((comm.rank, {"part": np.zeros((500, 2))}), root=0)
    assert comm.allreduce(max(lengths, default=0), MPI.MAX) == 500
    with counted() as lengths:
        comm.bcast([scipy.sparse.eye(600)], root=0)
    assert max(lengths) == 600


@pytest.mark.parametrize("solver", ["direct", pytest.param("iterative", marks=pytest.mark.slow)])
def test_only_small_matrices_are_sent(comm: MPI.Intracomm, solver: str) -> None:
    """No message has more rows than the eigensolver has vectors, so none contains mesh data."""
    sent, owned = most_sent(comm, solver, skin=False)
    assert 6 < sent <= SMALL
    assert owned > 4 * SMALL


def test_skin_grows_with_the_surface(comm: MPI.Intracomm) -> None:
    """The skin is part of the reduced body, which is plain data on every rank; it can be left out.

    Its arrays are at most as long as the triangles of the surface have corners.
    """
    sent, _ = most_sent(comm, "direct", skin=True)
    nx, ny, nz = CELLS
    triangles = 4 * (nx * ny + ny * nz + nz * nx)
    assert SMALL < sent <= 3 * triangles


WHOLE_STATES = PACKAGE / "structures" / "mesh_bodies" / "nodal_vectors.py"
"""The only file that may gather arrays: every rank has the whole state of a mechanism."""


def test_no_gathering_of_buffers() -> None:
    """Communication of arrays without pickles, and PETSc's scatters to one rank, are not used."""
    assert "Allgatherv" in WHOLE_STATES.read_text(encoding="utf-8")
    forbidden = BUFFERS | {"toAll", "toZero", "createRedundantMatrix"}
    for path in sorted({*PACKAGE.rglob("*.py")} - {WHOLE_STATES}):
        source = path.read_text(encoding="utf-8")
        if any(name in source for name in forbidden):  # (parsing all files takes a second)
            nodes = ast.walk(ast.parse(source))
            names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
            assert not names & forbidden, path
