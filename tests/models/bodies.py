"""Small tagged meshes for the tests of the analysis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from dolfinx.mesh import CellType, create_box, create_submesh, locate_entities, meshtags
from dolfinx.mesh import locate_entities_boundary as on_boundary
from mpi4py import MPI

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.fem.meshing import TaggedMesh

LENGTH, HEIGHT, WIDTH = 0.137, 0.020, 0.012
"""The bar of validation case V8."""


def box(
    comm: MPI.Comm,
    size: Sequence[float] = (LENGTH, HEIGHT, WIDTH),
    cells: Sequence[int] = (6, 2, 1),
    cell: CellType = CellType.hexahedron,
    gap: bool = False,
    hinge: bool = False,
) -> TaggedMesh:
    """A box with the groups "left", "right" (ends in x), "top" and "all"; in two parts if `gap`.

    If `hinge`, two halves that share one edge along z.
    """
    mesh = create_box(comm, [np.zeros(3), np.asarray(size, dtype=float)], list(cells), cell)
    if hinge:
        half = [(1 + 1e-9) * length / 2 for length in size[:2]]
        low = locate_entities(mesh, 3, lambda x: (x[0] < half[0]) & (x[1] < half[1]))
        half = [(1 - 1e-9) * length / 2 for length in size[:2]]
        high = locate_entities(mesh, 3, lambda x: (x[0] > half[0]) & (x[1] > half[1]))
        mesh = create_submesh(mesh, 3, np.union1d(low, high).astype(np.int32))[0]
    if gap:
        low, high = size[0] / 3, 2 * size[0] / 3
        left = locate_entities(mesh, 3, lambda x: x[0] < low + 1e-9)
        right = locate_entities(mesh, 3, lambda x: x[0] > high - 1e-9)
        mesh = create_submesh(mesh, 3, np.union1d(left, right).astype(np.int32))[0]
    mesh.topology.create_connectivity(2, 3)
    planes = {"left": (0, 0.0), "right": (0, size[0]), "top": (2, size[2])}
    tags = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)
    groups = {}
    for number, (name, (axis, value)) in enumerate(planes.items(), 1):
        facets = on_boundary(mesh, 2, lambda x, a=axis, v=value: np.isclose(x[a], v))
        facets = np.setdiff1d(facets, tags[0]).astype(np.int32)
        tags = (
            np.concatenate([tags[0], facets]),
            np.concatenate([tags[1], np.full(len(facets), number, dtype=np.int32)]),
        )
        groups[name] = (2, number)
    order = np.argsort(tags[0])
    facet_tags = meshtags(mesh, 2, tags[0][order], tags[1][order])
    own = np.arange(mesh.topology.index_map(3).size_local, dtype=np.int32)
    cell_tags = meshtags(mesh, 3, own, np.full(len(own), 1, dtype=np.int32))
    groups["all"] = (3, 1)
    return TaggedMesh(mesh, cell_tags, facet_tags, groups)


def rigid_mass(body: ReducedBody) -> np.ndarray:
    """Mass matrix of the undeformed body about its origin, shape (6, 6)."""
    m, c = body.total_mass, body.centre
    cross = np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
    return np.block([[m * np.eye(3), -m * cross], [m * cross, body.inertia]])


def dynamic_stiffness(body: ReducedBody, omega: float) -> np.ndarray:
    """Forces over motions of the interfaces of the free body, 6 k by 6 k, unique to the body."""
    D = np.vstack([interface.motion for interface in body.interfaces])
    G = np.vstack(
        [
            np.block([[np.eye(3), -_skew(i.point)], [np.zeros((3, 3)), np.eye(3)]])
            for i in body.interfaces
        ]
    )
    elastic = D @ np.linalg.solve(body.stiffness - omega**2 * body.mass, D.T)
    rigid = -G @ np.linalg.solve(rigid_mass(body), G.T) / omega**2
    return np.linalg.inv(elastic + rigid)


def _skew(w: np.ndarray) -> np.ndarray:
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
