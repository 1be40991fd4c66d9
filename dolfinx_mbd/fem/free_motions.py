"""Motions of a body that nothing resists, from its mesh and from what holds it.

A displacement without strain is a rigid motion of each part, where cells that share a facet belong
to the same part. Parts that share only vertices or edges are joined there (hinged), and held
degrees of freedom do not move. The motions that are left are the null space of a small matrix that
only depends on positions: the stiffness of the body, which may be very small, plays no role.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from dolfinx import fem, la
from dolfinx.mesh import Mesh
from mpi4py import MPI
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.errors import InputError, MeshError
from dolfinx_mbd.fem.assembly import ElasticProblem, rigid_motions
from dolfinx_mbd.linalg.blocks import multiply
from dolfinx_mbd.parallel import agreed

__all__ = [
    "check_floating",
    "free_motions",
    "is_supported",
    "null_space",
    "parts_of_mesh",
    "triangle",
    "unresisted",
]

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

RANK_TOLERANCE = 1e-8
"""Relative singular value below which a motion is not felt by what holds the body.

A facet that holds the body resists a rotation about its own axes in proportion to its size over
that of the body; coordinates have an error of 1e-16 of their size.
"""

STIFFNESS_TOLERANCE = 2e-14
"""‖K r‖ over ‖K‖‖r‖ below which a stiffness form does not resist a rigid motion r (round-off)."""

MOST_PARTS = 50
"""Parts of a mesh above which it is refused: each has six rigid motions of its own."""


def free_motions(problem: ElasticProblem, held: NDArray[np.int32]) -> Array:
    """Return a basis of the motions without strain that held degrees of freedom allow.

    Args:
        problem: Matrices of the body.
        held: Owned degrees of freedom without displacement (local numbers).

    Returns:
        Shape (owned dofs, r): the six rigid motions of a free body in one part (three in the
        plane), no columns if the body is held. With the user's own stiffness only motions that it
        does not resist.

    Raises:
        MeshError: The mesh is in more than `MOST_PARTS` parts.

    Note: Collective.
    """
    comm, x = problem.comm, problem.positions
    box = np.array([x.min(axis=0, initial=np.inf), -x.max(axis=0, initial=-np.inf)])
    low, high = np.min(comm.allgather(box), axis=0) * [[1.0], [-1.0]]
    centre, size = (low + high) / 2, float(np.max(high - low)) / 2
    R: Array = rigid_motions((x - centre) / size)
    labels, number = parts_of_mesh(problem.space.mesh)
    if number > MOST_PARTS:
        raise MeshError(
            f"the mesh has {number} parts that share no facets: check its connectivity",
            argument="mesh",
            value=number,
        )
    part, joints = _parts_of_blocks(problem.space, labels, number)
    constraints = [
        _constraint(rigid_motions((points - centre) / size), {a: 1.0, b: -1.0}, number)
        for (a, b), points in joints.items()
    ]
    of_dof = np.repeat(part, problem.dim)
    for k in range(number):
        rows = triangle(comm, R[held[of_dof[held] == k]])
        constraints.append(_constraint(rows, {k: 1.0}, number))
    combinations = null_space(comm, np.vstack(constraints))
    count = R.shape[1]
    motions: Array = np.zeros((len(R), combinations.shape[1]), order="F")
    for k in range(number):
        rows = of_dof == k
        motions[rows] = R[rows] @ combinations[count * k : count * (k + 1)]
    motions[held] = 0.0
    if problem.materials is None:
        far = max(float(np.abs(centre).max()) - size, 0.0) / float(np.min(high - low))
        tolerance = STIFFNESS_TOLERANCE + 4 * np.finfo(float).eps * far  # cells have lost digits
        motions = unresisted(comm, problem.stiffness, motions, held, tolerance)
    return motions


def is_supported(problem: ElasticProblem) -> bool:
    """Return whether the user's own stiffness resists rigid motions.

    Raises:
        MeshError: Parts of the body move against each other without resistance.

    Note: Collective.
    """
    number, rigid = free_motions(problem, np.zeros(0, dtype=np.int32)).shape[1], problem.num_rigid
    if number > rigid:
        raise MeshError(
            f"the body has {number} motions without stiffness instead of {rigid}: parts are hinged "
            "(they share only vertices or edges of cells) or not connected; let them share facets, "
            "or reduce each as a body of its own",
            argument="mesh",
            value=number,
        )
    return number < rigid


def check_floating(problem: ElasticProblem, cure: str) -> None:
    """Raise an error if the user's own stiffness supports the body.

    Args:
        problem: Matrices of the body.
        cure: What to do, for the message.

    Note: Collective.
    """
    if problem.materials is None and is_supported(problem):
        raise InputError(
            "the stiffness form resists rigid motion: it contains a support (an elastic "
            f"foundation, springs to the ground), or it is not invariant under rotations; {cure}",
            argument="stiffness",
        )


def null_space(comm: MPI.Comm, A: Array) -> Array:
    """Return an orthonormal basis of the null space of a small matrix that all ranks have.

    Returns:
        Shape (columns of `A`, r), the same bits on every rank; the unit vectors if `A` is zero.
    """
    basis = None
    with agreed(comm):
        if comm.rank == 0:
            _, values, V = np.linalg.svd(np.vstack([A, np.zeros((1, A.shape[1]))]))
            rank = int(np.sum(values > RANK_TOLERANCE * max(values.max(), 1e-300)))
            basis = V[rank:].T if rank else np.eye(A.shape[1])
    return np.asarray(comm.bcast(basis, root=0))


def unresisted(
    comm: MPI.Comm, K: PETSc.Mat, R: Array, held: NDArray[np.int32], tolerance: float
) -> Array:
    """Return those combinations of some motions that a stiffness does not resist.

    Args:
        comm: Communicator of the rows.
        K: Stiffness.
        R: Motions of unit size, shape (owned dofs, k).
        held: Owned held degrees of freedom, at which forces do not count.
        tolerance: ‖K r‖ over ‖K‖‖r‖ below which there is no resistance.

    Note: Collective.
    """
    forces = multiply(K, R)
    forces[held] = 0.0
    triangles = triangle(comm, R), triangle(comm, forces)
    scale = K.norm(PETSc.NormType.NORM_INFINITY)
    combinations = None
    with agreed(comm):
        if comm.rank == 0 and R.shape[1]:
            orthonormal = np.linalg.pinv(triangles[0])
            _, values, V = np.linalg.svd(triangles[1] @ orthonormal)
            rank = int(np.sum(values > tolerance * scale))
            combinations = orthonormal @ V[rank:].T if rank else np.eye(R.shape[1])
    combinations = comm.bcast(combinations, root=0)
    return R if combinations is None else np.asfortranarray(R @ combinations)


def parts_of_mesh(mesh: Mesh) -> tuple[Labels, int]:
    """Return the part of each local cell, and the number of parts; cells of a part share facets.

    Returns:
        Part of the local cells, ghosts included, shape (cells,): 0, 1, ...

    Note: Collective.
    """
    comm, tdim = mesh.comm, mesh.topology.dim
    mesh.topology.create_connectivity(tdim, tdim - 1)
    links = mesh.topology.connectivity(tdim, tdim - 1)
    cells, facets = len(links.offsets) - 1, mesh.topology.index_map(tdim - 1)
    count = facets.size_local + facets.num_ghosts
    graph = scipy.sparse.csr_matrix(
        (np.ones(len(links.array), dtype=np.int8), links.array, links.offsets), (cells, count)
    )
    joined = scipy.sparse.bmat([[None, graph], [graph.T, None]], format="csr")
    local = scipy.sparse.csgraph.connected_components(joined, directed=False)[1]
    # The names that this rank gives to its parts, and those that the owners of its ghosts give.
    names = la.vector(facets)
    names.array[:] = (comm.exscan(cells + count) or 0) + local[cells:]
    own = names.array.copy()
    names.scatter_forward()
    used = np.isin(np.arange(count), links.array)  # (a ghost facet may have no local cell)
    pairs = np.unique(np.stack([own, names.array], axis=1)[used], axis=0).astype(np.int64)
    known, ends = np.unique(np.concatenate(comm.allgather(pairs)), return_inverse=True)
    ends = ends.reshape(-1, 2)
    whole = scipy.sparse.coo_matrix(
        (np.ones(len(ends)), (ends[:, 0], ends[:, 1])), (len(known), len(known))
    )
    number, label = scipy.sparse.csgraph.connected_components(whole, directed=False)
    first = links.array[links.offsets[:-1]]
    return label[np.searchsorted(known, own[first].astype(np.int64))].astype(np.int64), int(number)


def _parts_of_blocks(
    V: fem.FunctionSpace, cells: Labels, number: int
) -> tuple[Labels, dict[tuple[int, int], Array]]:
    """Part of each owned block, one of them where several meet; positions where two parts meet."""
    index_map, comm = V.dofmap.index_map, V.mesh.comm
    blocks = index_map.size_local
    if number == 1:
        return np.zeros(blocks, dtype=np.int64), {}
    dofs = V.dofmap.list[: len(cells)]
    pairs = np.unique(np.stack([dofs.ravel(), np.repeat(cells, dofs.shape[1])], 1), axis=0)
    # All parts at a block are the same if n Σ l² = (Σ l)² over the ranks that have it.
    sums = []
    for power in range(3):
        values = la.vector(index_map)
        np.add.at(values.array, pairs[:, 0], pairs[:, 1].astype(float) ** power)
        values.scatter_reverse(la.InsertMode.add)
        values.scatter_forward()
        sums.append(np.rint(values.array).astype(np.int64))
    several = sums[0] * sums[2] != sums[1] ** 2
    part = sums[1][:blocks] // np.maximum(sums[0][:blocks], 1)
    x = V.tabulate_dof_coordinates()
    shared = pairs[several[pairs[:, 0]]]
    table = np.column_stack(
        [index_map.local_to_global(shared[:, 0].astype(np.int32)), shared[:, 1]]
    )
    table, places = (
        np.concatenate(comm.allgather(rows)) for rows in (table, x[shared[:, 0], : V.dofmap.bs])
    )
    table, first = np.unique(table, axis=0, return_index=True)
    joints: dict[tuple[int, int], list[Array]] = {}
    start = index_map.local_range[0]
    for (block, label), (before, other), place in zip(
        table[1:], table[:-1], places[first[1:]], strict=True
    ):
        if block == before:
            joints.setdefault((int(other), int(label)), []).append(place)
            if start <= block < start + blocks:
                part[block - start] = label
    return part, {pair: np.array(points) for pair, points in joints.items()}


def _constraint(rows: Array, factors: dict[int, float], number: int) -> Array:
    """Rows that act on the motions of some parts, with a factor each."""
    count = rows.shape[1]
    result = np.zeros((len(rows), count * number))
    for part, factor in factors.items():
        result[:, count * part : count * (part + 1)] = factor * rows
    return result


def triangle(comm: Any, X: Array) -> Array:
    """Return the triangular factor of a distributed tall matrix; the same bits on every rank."""
    local = np.linalg.qr(X, mode="r")
    gathered = comm.gather(local, root=0)
    result = None if gathered is None else np.linalg.qr(np.vstack(gathered), mode="r")
    return np.asarray(comm.bcast(result, root=0))
