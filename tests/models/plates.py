"""A small tagged plane mesh for the tests of plane bodies."""

from __future__ import annotations

import numpy as np
from dolfinx.mesh import CellType, create_rectangle, meshtags
from dolfinx.mesh import locate_entities_boundary as on_boundary
from mpi4py import MPI

from dolfinx_mbd.fem.meshing import TaggedMesh
from tests.models.bodies import HEIGHT, LENGTH


def plate(
    comm: MPI.Comm,
    size: tuple[float, float] = (LENGTH, HEIGHT),
    cells: tuple[int, int] = (12, 2),
    cell: CellType = CellType.quadrilateral,
    origin: tuple[float, float] = (0.0, 0.0),
) -> TaggedMesh:
    """A rectangle with the groups "left" and "right", its ends in x."""
    low = np.array(origin)
    mesh = create_rectangle(comm, [low, low + size], list(cells), cell)
    mesh.topology.create_connectivity(1, 2)
    ends = [on_boundary(mesh, 1, lambda x, v=v: np.isclose(x[0], v)) for v in low[0] + (0, size[0])]
    facets = np.concatenate(ends)
    values = np.repeat(np.array([1, 2], dtype=np.int32), [len(e) for e in ends])
    order = np.argsort(facets)
    tags = meshtags(mesh, 1, facets[order], values[order])
    return TaggedMesh(mesh, None, tags, {"left": (1, 1), "right": (1, 2)})
