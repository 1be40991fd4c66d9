"""Checks of cells that do not depend on how a mesh is distributed."""

from __future__ import annotations

import numpy as np
import pytest
from dolfinx.mesh import CellType, GhostMode, create_box
from mpi4py import MPI

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import build_mesh, compat
from dolfinx_mbd.fem.mesh_checks import check_cells
from dolfinx_mbd.fem.modal import modal_analysis
from dolfinx_mbd.forms import STEEL
from dolfinx_mbd.geometry import ConnectingRod


@pytest.mark.parametrize("ghosts", [GhostMode.none, GhostMode.shared_facet])
def test_folded_cells(comm: MPI.Intracomm, ghosts: GhostMode) -> None:
    """A moved node folds cells exactly if det J changes its sign, also between two ranks."""
    corners, rng, folded = [np.zeros(3), np.ones(3)], np.random.default_rng(0), 0
    for _ in range(30):
        box = create_box(comm, corners, [2, 2, 2], CellType.tetrahedron, ghost_mode=ghosts)
        nodes = compat.geometry_dofmap(box)[: box.topology.index_map(3).size_local]
        x = box.geometry.x
        before = np.linalg.det(x[nodes][:, 1:] - x[nodes][:, :1])
        node, displacement = rng.integers(0, 3, 3) / 2, rng.uniform(-0.6, 0.6, 3)
        x[np.linalg.norm(x - node, axis=1) < 1e-9] += displacement
        after = np.linalg.det(x[nodes][:, 1:] - x[nodes][:, :1])
        if comm.allreduce(int(np.sum(before * after < 0))):
            folded += 1
            with pytest.raises(InputError, match="inverted or have no volume"):
                check_cells(box)
        else:
            check_cells(box)
    assert 5 < folded < 30


def test_single_precision_and_no_communicator(comm: MPI.Intracomm) -> None:
    """Meshes of float32 numbers and null communicators raise errors; DOLFINx permits them."""
    corners = [np.zeros(3), np.ones(3)]
    single = create_box(comm, corners, [2, 2, 2], CellType.tetrahedron, dtype=np.float32)
    with pytest.raises(InputError, match="float32 numbers, but this package needs float64"):
        modal_analysis(single, STEEL, num_modes=1)
    with pytest.raises(InputError, match="COMM_NULL"):
        build_mesh(ConnectingRod(), MPI.COMM_NULL)
