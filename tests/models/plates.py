"""Small plane bodies: a tagged rectangle, and a square on springs."""

from __future__ import annotations

from typing import Any

import numpy as np
import ufl
from dolfinx import fem
from dolfinx.mesh import CellType, create_rectangle, meshtags
from dolfinx.mesh import locate_entities_boundary as on_boundary
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.structures.rotating import rotating_structure
from dolfinx_mbd.structures.rotating.structure import RotatingStructure
from tests.models.bodies import HEIGHT, LENGTH

SOFT = mbd.Material(2e7, 0.3, 1000.0)


def plate(
    comm: MPI.Comm,
    size: tuple[float, float] = (LENGTH, HEIGHT),
    cells: tuple[int, int] = (12, 2),
    cell: CellType = CellType.quadrilateral,
    origin: tuple[float, float] = (0.0, 0.0),
) -> TaggedMesh:
    """Return a rectangle with the groups "left" and "right", its ends in x."""
    low = np.array(origin)
    mesh = create_rectangle(comm, [low, low + size], list(cells), cell)
    mesh.topology.create_connectivity(1, 2)
    ends = [on_boundary(mesh, 1, lambda x, v=v: np.isclose(x[0], v)) for v in low[0] + (0, size[0])]
    facets = np.concatenate(ends)
    values = np.repeat(np.array([1, 2], dtype=np.int32), [len(e) for e in ends])
    order = np.argsort(facets)
    tags = meshtags(mesh, 1, facets[order], values[order])
    return TaggedMesh(mesh, None, tags, {"left": (1, 1), "right": (1, 2)})


def on_springs(
    comm: MPI.Comm, squares: tuple[float, float], n: int = 2, **options: Any
) -> RotatingStructure:
    """Return a soft square on a foundation ω²ρ, whose translations are exact eigenvectors.

    `squares` are ω² along x and y; the mesh has n × n cells.
    """
    square = create_rectangle(comm, [[-0.5, -0.5], [0.5, 0.5]], [n, n], CellType.quadrilateral)
    V = fem.functionspace(square, ("Lagrange", 2, (2,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    constants = [fem.Constant(square, SOFT.density * s) for s in squares]
    springs = sum((c * u[i] * v[i] for i, c in enumerate(constants)), start=0.0) * ufl.dx
    return rotating_structure(
        mbd.ElasticModel(square, SOFT, space=V, plane="stress", thickness=1.0),
        springs=springs,
        **options,
    )
