"""Stress modes at the nodes of the skin, to be kept with a reduced body."""

from __future__ import annotations

import basix
import numpy as np
from mpi4py import MPI

from dolfinx_mbd.analysis import compat
from dolfinx_mbd.analysis.la import agreed
from dolfinx_mbd.analysis.recovery.displacement import surface_nodes
from dolfinx_mbd.analysis.recovery.field_modes import Points, field_modes, linear_in
from dolfinx_mbd.analysis.recovery.stress import Recovery
from dolfinx_mbd.body.stress_modes import StressModes

__all__ = ["skin_stress"]


def skin_stress(recovery: Recovery) -> StressModes:
    """Stress per elastic coordinate at the skin's nodes, the mean of the cells that meet there.

    The nodes are in the order of the body's skin, and the same on every rank:
    ``body.replace(stress=skin_stress(recovery))`` keeps them with the body. The mean is nearer to
    the truth than the stress of one cell; between two materials it is of little use.

    Args:
        recovery: Of a reduction, with a stress law.

    Raises:
        ValueError: There is no stress law.

    Note: Collective.
    """
    space = recovery.space
    mesh, comm, n = space.mesh, space.mesh.comm, recovery.num_modes
    expression, _ = linear_in(space, recovery.stress_components, "stress")
    corners = np.asarray(basix.geometry(mesh.basix_cell()), dtype=float)
    cells = recovery.points.cells
    at = Points(mesh, "nodes", None, corners, cells, np.zeros(0, dtype=np.int32))
    values = field_modes(space, recovery.reduced.modes, expression, at)
    nodes = compat.geometry_dofmap(mesh)[cells][:, : len(corners)].ravel()
    keys = np.asarray(mesh.geometry.input_global_indices)[nodes]
    wanted = surface_nodes(space)
    sums, count = np.zeros((6, len(wanted), n)), np.zeros(len(wanted))
    x = np.full((len(wanted), 3), -np.inf)
    with agreed(comm):
        place = np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)
        mine = wanted[place] == keys
        np.add.at(count, place[mine], 1.0)
        for k in range(6):
            np.add.at(sums[k], place[mine], values[k, mine])
        x[place[mine]] = mesh.geometry.x[nodes[mine]]
    for array, operation in ((sums, MPI.SUM), (count, MPI.SUM), (x, MPI.MAX)):
        total = np.empty_like(array)
        comm.Reduce(array, total, op=operation, root=0)
        comm.Bcast(total, root=0)
        array[:] = total
    return StressModes(x, sums / count[None, :, None])
