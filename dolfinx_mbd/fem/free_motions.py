"""Strain-free motions of a body, computed from its mesh and its held degrees of freedom.

Cells that share a facet form a part, and a displacement without strain is a rigid motion of each
part. Parts that share only vertices or edges are hinged there. The motions that hinges and held
degrees of freedom allow are the null space of a small matrix, which depends on positions only.

A statically determinate support resists the rigid motions of a body; its reactions to loads in
equilibrium are zero.
"""

from __future__ import annotations

from typing import Any

import basix
import numpy as np
import scipy
from dolfinx import fem
from mpi4py import MPI
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import InputError, MeshError
from dolfinx_mbd.fem.assembly import ElasticProblem, rigid_motions
from dolfinx_mbd.fem.linalg.blocks import multiply
from dolfinx_mbd.fem.mesh_checks import parts_of_cells
from dolfinx_mbd.fem.surface_integrals import bounding_box
from dolfinx_mbd.parallel import on_rank_zero

Labels = NDArray[np.int64]

RANK_TOLERANCE = 1e-8
"""Relative singular value below which the constraints do not resist a motion.

A small held facet resists a rotation in proportion to its size relative to the body.
"""

STIFFNESS_TOLERANCE = 2e-14
"""K does not resist a motion r if ‖K r‖ / (‖K‖‖r‖) is below this."""

MAX_PARTS = 50
"""Largest number of parts of a mesh; each part adds six rigid motions."""


def free_motions(problem: ElasticProblem, held: NDArray[np.int32]) -> Array:
    """Return a basis of the strain-free motions that held degrees of freedom allow (collective).

    Its shape is (owned dofs, r), with r = 6 for a free body in one part (3 in the plane) and r = 0
    for a held body. Motions that a user-defined stiffness form resists are omitted.
    """
    comm, x = problem.comm, problem.positions
    low, high = bounding_box(comm, x)
    centre, size = (low + high) / 2, float(np.max(high - low)) / 2
    R: Array = rigid_motions((x - centre) / size)
    part, num_parts, meeting_points = _parts(problem.space)
    # The unknowns are the rigid motions of all parts. Two parts have the same displacement where
    # they meet, and held degrees of freedom have none
    unit = np.eye(num_parts)
    constraints = [
        np.kron(unit[a] - unit[b], rigid_motions((points - centre) / size))
        for (a, b), points in meeting_points.items()
    ]
    part_of_dof = np.repeat(part, problem.dim)
    for k in range(num_parts):
        rows = triangular_factor(comm, R[held[part_of_dof[held] == k]])
        constraints.append(np.kron(unit[k], rows))
    combinations = null_space(comm, np.vstack(constraints))
    motions: Array = np.zeros((len(R), combinations.shape[1]), order="F")
    for k, coefficients in enumerate(np.split(combinations, num_parts)):
        in_part = part_of_dof == k
        motions[in_part] = R[in_part] @ coefficients
    motions[held] = 0.0
    if problem.materials is None:
        offset = max(float(np.abs(centre).max()) - size, 0.0) / float(np.min(high - low))
        tolerance = STIFFNESS_TOLERANCE + 4 * np.finfo(float).eps * offset  # round-off in x
        motions = _motions_without_resistance(comm, problem.stiffness, motions, held, tolerance)
    return motions


def is_supported(problem: ElasticProblem) -> bool:
    """Return whether a user-defined stiffness form resists rigid motions (collective).

    Raise an error if parts of the body can move relative to each other without resistance.
    """
    motions = free_motions(problem, np.zeros(0, dtype=np.int32))
    count, num_rigid = motions.shape[1], problem.num_rigid
    if count > num_rigid:
        raise MeshError(
            f"the body has {count} motions without stiffness instead of {num_rigid}: parts are "
            "hinged (they share only vertices or edges of cells) or not connected; let them share "
            "facets, or reduce each as a separate body",
            argument="mesh",
            value=count,
        )
    return count < num_rigid


def check_floating(problem: ElasticProblem, cure: str) -> None:
    """Raise an error that ends with `cure` if a user-defined stiffness form supports the body."""
    if problem.materials is None and is_supported(problem):
        raise InputError(
            "the stiffness form resists rigid motion: it contains a support (an elastic "
            f"foundation, springs to the ground), or it is not invariant under rotations; {cure}",
            argument="stiffness",
        )


def null_space(comm: MPI.Comm, A: Array) -> Array:
    """Return an orthonormal basis of the null space of a small matrix that all ranks have.

    The basis is bitwise identical on all ranks; it consists of unit vectors if the matrix is zero.
    """
    A = np.vstack([A, np.zeros((1, A.shape[1]))])
    tolerance = RANK_TOLERANCE * max(float(np.linalg.norm(A, 2)), 1e-300)
    return on_rank_zero(comm, lambda: _null_vectors(A, tolerance))


def _null_vectors(A: Array, tolerance: float) -> Array:
    """Return right singular vectors of small singular values; unit vectors if all are small."""
    _, values, V = np.linalg.svd(A)
    rank = int(np.sum(values > tolerance))
    return V[rank:].T if rank else np.eye(A.shape[1])


def _motions_without_resistance(
    comm: MPI.Comm, K: PETSc.Mat, R: Array, held: NDArray[np.int32], tolerance: float
) -> Array:
    """Return combinations r of the motions R with ‖K r‖ below the tolerance times ‖K‖‖r‖.

    Forces at held degrees of freedom are ignored.
    """
    if not R.shape[1]:
        return R
    forces = multiply(K, R)
    forces[held] = 0.0
    motion_factor, force_factor = triangular_factor(comm, R), triangular_factor(comm, forces)
    scale = K.norm(PETSc.NormType.NORM_INFINITY)

    def combinations() -> Array:
        to_orthonormal = np.linalg.pinv(motion_factor)  # R times it has orthonormal columns
        vectors = _null_vectors(force_factor @ to_orthonormal, tolerance * scale)
        if vectors.shape[1] == R.shape[1]:
            return np.eye(R.shape[1])  # nothing resists: R itself is the result
        return to_orthonormal @ vectors

    return np.asfortranarray(R @ on_rank_zero(comm, combinations))


def _parts(V: fem.FunctionSpace) -> tuple[Labels, int, dict[tuple[int, int], Array]]:
    """Return the part of each owned block, the number of parts, and points at which parts meet.

    Cells that share facets form a part. A block at which several parts meet belongs to the first
    one.
    """
    index_map, comm, topology = V.dofmap.index_map, V.mesh.comm, V.mesh.topology
    topology.create_connectivity(topology.dim, topology.dim - 1)
    links = topology.connectivity(topology.dim, topology.dim - 1)
    facets_of_cell = len(basix.topology(V.mesh.basix_cell())[topology.dim - 1])
    facets = links.array.reshape(-1, facets_of_cell)
    part_of_cell, number = parts_of_cells(comm, facets, topology.index_map(topology.dim - 1))
    if number > MAX_PARTS:
        raise MeshError(
            f"the mesh has {number} parts that share no facets: check its connectivity",
            argument="mesh",
            value=number,
        )
    if number == 1:
        return np.zeros(index_map.size_local, dtype=np.int64), number, {}
    dofs = V.dofmap.list[: len(part_of_cell)]
    blocks = index_map.local_to_global(dofs.ravel()).reshape(dofs.shape)
    keys = np.unique(blocks * number + part_of_cell[:, None])  # pairs of a block and a part
    blocks, parts = np.divmod(np.unique(np.concatenate(comm.allgather(keys))), number)
    start, end = index_map.local_range
    part = parts[np.searchsorted(blocks, np.arange(start, end))]
    # A block of several parts occurs in successive pairs; its owner has its position
    shared = np.flatnonzero(
        (blocks[1:] == blocks[:-1]) & (start <= blocks[1:]) & (blocks[1:] < end)
    )
    x = V.tabulate_dof_coordinates()[blocks[shared] - start, : V.dofmap.bs]
    meeting_points: dict[tuple[int, int], list[Array]] = {}
    for rows in comm.allgather(list(zip(parts[shared], parts[shared + 1], x, strict=True))):
        for first, second, point in rows:
            meeting_points.setdefault((int(first), int(second)), []).append(point)
    return part, number, {pair: np.array(points) for pair, points in meeting_points.items()}


def triangular_factor(comm: Any, X: Array) -> Array:
    """Return the triangular factor of a distributed tall matrix, bitwise identical on all ranks."""
    factors = comm.gather(np.linalg.qr(X, mode="r"), root=0)
    factor = None if factors is None else np.linalg.qr(np.vstack(factors), mode="r")
    return np.asarray(comm.bcast(factor, root=0))


def centred_motions(problem: ElasticProblem) -> Array:
    """Return rigid motions about the mean of all nodes, shape (owned dofs, 6 or 3)."""
    comm, x = problem.comm, problem.positions
    total, count = comm.allreduce(x.sum(axis=0)), comm.allreduce(len(x))
    return problem.rigid_motions(total / count)


def determinate_dofs(comm: MPI.Intracomm, R: Array) -> NDArray[np.int32]:
    """Return the owned degrees of freedom of a determinate support against rigid motions R.

    The support consists of the pivots of a QR factorization of Rᵀ over all ranks. Collective.
    """
    R = R / np.max(comm.allgather(np.abs(R).max(axis=0, initial=0.0)), axis=0)
    local = _pivots(R)
    candidates = comm.gather(R[local], root=0)
    pivots = comm.bcast(None if candidates is None else _pivots(np.vstack(candidates)), root=0)
    start = comm.exscan(len(local)) or 0
    local_pivots = pivots[(pivots >= start) & (pivots < start + len(local))] - start
    return np.sort(local[local_pivots]).astype(np.int32)


def _pivots(rows: Array) -> NDArray[np.int64]:
    """Return the indices of the most independent rows, at most one for each column."""
    order = scipy.linalg.qr(rows.T, mode="r", pivoting=True)[1] if len(rows) else np.zeros(0)
    return np.asarray(order[: rows.shape[1]], dtype=np.int64)
