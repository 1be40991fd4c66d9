"""Solution of the equations of the free nodes of a body in a time step.

With the unknowns u of the free nodes and s of the frames, an iteration of a step solves

    [A  C ] [δu]     [r_u]
    [Cᵀ S ] [δs] = − [r_s],    A = b M + c D + K,

where b and c are derivatives of the time integration. With Y = A⁻¹C, the frames obey

    (S − CᵀY) δs = −(r_s − Yᵀr_u),    δu = −A⁻¹r_u − Y δs.

A body that rotates by Λ after its matrix was factorized and hardly strains has the matrix Λ A Λᵀ.
The same factor therefore serves for many steps of a stiff body, whatever its rotation. If the
iteration converges slowly, the matrix is factorized again at the present state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.linalg.blocks import multiply, solve
from dolfinx_mbd.fem.linalg.factorization import FactorizationError, cholesky
from dolfinx_mbd.fem.linalg.matrices import constrain

if TYPE_CHECKING:
    from dolfinx_mbd.structures.mesh_bodies.mesh_body import MeshBody

__all__ = ["FactorState", "MeshSolver", "mean_rotation"]


class FactorState(NamedTuple):
    """State of a body at which its matrix is factorized."""

    u: Array  # displacements of the nodes (N, 3), m
    w: Array  # their velocities (N, 3), m/s
    frames: Array  # positions and quaternions of the frames (F, 7)
    pressures: Array  # values of the pressures, Pa

    @classmethod
    def reference(cls, body: MeshBody) -> FactorState:
        """Return the state of the undeformed body at the origin without pressures."""
        return cls(*body.reference_state(), 0.0 * body.forces.loads.pressures)


def mean_rotation(reference: Array, positions: Array) -> Array:
    """Return the rotation (3, 3) that fits the motion of points (N, 3) best in the mean square."""
    X, x = (points - points.mean(axis=0) for points in (reference, positions))
    left, _, right = np.linalg.svd(x.T @ X)
    return np.asarray(left @ np.diag([1.0, 1.0, np.linalg.det(left @ right)]) @ right)


class MeshSolver:
    """Factor of the matrix A of a body, rotated with the body, and the condensed matrices.

    Args:
        body: The body.

    Attributes:
        factorizations: Number of factorizations.
        coefficients: The coefficients b, c and the factor of K in A; None without a factor.
        state: State of the body at the factorization.
    """

    def __init__(self, body: MeshBody) -> None:
        self._body = body
        self.factorizations = 0
        self.coefficients: tuple[float, float, float] | None = None
        self.state = FactorState.reference(body)
        self._ksp: PETSc.KSP | None = None
        self._turn = np.eye(3)
        self._turns = np.zeros((0, 2, 3, 3))

    def factorize(self, coefficients: tuple[float, float, float], state: FactorState) -> None:
        """Factorize A at a state and compute Y and S − CᵀY (collective).

        Args:
            coefficients: b, c and the factor of K.
            state: State of the body.

        Raises:
            FactorizationError: The matrix is not positive definite.
        """
        body, forces = self._body, self._body.forces
        frames = state.frames
        forces.set_state(state.u, state.w)
        forces.loads.pressures = state.pressures
        A = forces.matrix(*coefficients)
        T = body.frame_matrices(frames)
        product = self._product(A, T)
        held = 3 * body.held_blocks[:, None] + np.arange(3)
        constrain(A, held.ravel().astype(np.int32), 1.0)
        self.destroy()
        self._matrix = A
        self.factorizations += 1
        self._ksp = cholesky(A, prefix="dolfinx_mbd_mesh_body_")
        stiffness = np.einsum("nik,nil->kl", T, product)
        product[body.held] = 0.0
        self._Y = self._block_solution(product)
        self._condensed = stiffness - np.einsum("nik,nil->kl", product, self._Y)
        self.coefficients, self.state = coefficients, state
        self._rotation = mean_rotation(body.nodes, body.nodes + state.u)
        self._frames = body.rotations_of(frames)
        self._set_turns(np.eye(3), self._frames)

    def turn_to(self, u: Array, frames: Array) -> None:
        """Turn the factor with the body at displacements u (N, 3) and frames (F, 7).

        The nodes turn with their mean rotation, the rotations of the frames with the frames.
        """
        nodes = self._body.nodes
        turn = mean_rotation(nodes, nodes + u) @ self._rotation.T
        self._set_turns(turn, self._body.rotations_of(frames))

    def _set_turns(self, turn: Array, frames: Array) -> None:
        self._turn = turn
        spins = np.einsum("fji,kj,fkl->fil", self._frames, turn, frames)
        self._turns = np.stack([np.broadcast_to(turn.T, spins.shape), spins], axis=1)

    def solution(self, forces: Array) -> Array:
        """Return A⁻¹f for forces f (N, 3) at the free nodes (collective)."""
        assert self._ksp is not None
        local = (forces @ self._turn)[self._body.forces.nodes.owned]
        b, x = self._matrix.createVecs()
        b.array[:] = local.ravel()
        try:
            self._ksp.solve(b, x)
        except PETSc.Error as error:
            raise FactorizationError(f"the linear solver failed: {error}") from error
        result = self._body.forces.nodes.gathered(x.array_r)
        b.destroy()
        x.destroy()
        result[self._body.held] = 0.0
        return np.asarray(result @ self._turn.T)

    def frame_forces(self, forces: Array) -> Array:
        """Return Yᵀf for forces f (N, 3), shape (6 F,)."""
        raw = np.einsum("nik,ni->k", self._Y, forces @ self._turn)
        return self._turned(raw)

    def motion(self, delta: Array) -> Array:
        """Return Y δs, shape (N, 3)."""
        local = self._turned(delta, inverse=True)
        return np.asarray((self._Y @ local) @ self._turn.T)

    def condensed(self) -> Array:
        """Return S − CᵀY, shape (6 F, 6 F)."""
        rows = np.array([self._turned(column) for column in self._condensed.T]).T
        return np.array([self._turned(row) for row in rows])

    def destroy(self) -> None:
        """Free the factor."""
        if self._ksp is not None:
            self._ksp.destroy()
            self._matrix.destroy()
        self._ksp = None

    def _turned(self, vector: Array, *, inverse: bool = False) -> Array:
        """Return forces (6 F,) of the factorized body turned to the present body.

        With `inverse`, increments of the present frames are turned to the factorized body.
        """
        subscripts = "fpij,fpj->fpi" if inverse else "fpji,fpj->fpi"
        return np.einsum(subscripts, self._turns, vector.reshape(-1, 2, 3)).ravel()

    def _product(self, A: PETSc.Mat, columns: Array) -> Array:
        """Return A X for nodal columns X (N, 3, k)."""
        return self._body.forces.nodes.gathered_block(multiply(A, self._local(columns)))

    def _block_solution(self, columns: Array) -> Array:
        assert self._ksp is not None
        X = self._body.forces.nodes.gathered_block(solve(self._ksp, self._local(columns)))
        X[self._body.held] = 0.0
        return X

    def _local(self, columns: Array) -> Array:
        owned = columns[self._body.forces.nodes.owned]
        return np.asfortranarray(owned.reshape(3 * len(owned), columns.shape[2]))
