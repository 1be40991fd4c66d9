"""Solution of the equations of the free nodes of a body in a time step.

With the unknowns u of the free nodes and s of the frames, an iteration of a step solves

    [A  C ] [δu]     [r_u]
    [Cᵀ S ] [δs] = − [r_s],    A = b M + c D + K,

where b and c are derivatives of the time integration, and r are residuals. S contains the stiffness
and inertia of the nodes that move with the frames, C their coupling. With Y = A⁻¹C, the frames obey

    (S − CᵀY) δs = −(r_s − Yᵀr_u),    δu = −A⁻¹r_u − Y δs.

A body that rotates by Λ after its matrix was factorized and hardly strains has the matrix Λ A Λᵀ.
The same factor therefore serves for many steps of a stiff body, whatever its rotation. A slender
body bends while it hardly strains: Λ contains the rotation of each node and not one mean rotation,
whose error is of first order in the slope of bending, while that of the former is of second order.
If the iteration converges slowly, the matrix is factorized again at the present state.

Multipliers of averaged interfaces are condensed together with the free nodes; see `Border`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.iterative.solver_choice import factor_fits
from dolfinx_mbd.fem.linalg.blocks import multiply, solve
from dolfinx_mbd.fem.linalg.factorization import FactorizationError, cholesky
from dolfinx_mbd.fem.linalg.multigrid import GAMG
from dolfinx_mbd.fem.linalg.options import Options, database_options
from dolfinx_mbd.fem.linalg.sparse_matrices import constrain
from dolfinx_mbd.fem.linalg.substructures import Substructures
from dolfinx_mbd.parallel import summed
from dolfinx_mbd.structures.mesh_bodies.multipliers import Border, Motion, scaled
from dolfinx_mbd.structures.mesh_bodies.nodal_rotations import NodalRotations

if TYPE_CHECKING:
    from dolfinx_mbd.structures.mesh_bodies.mesh_body import MeshBody

__all__ = ["PREFIX", "FactorState", "MeshSolver"]

PREFIX = "dolfinx_mbd_mesh_body_"
"""Prefix of PETSc's options for the solver of a body."""

MULTIGRID = {**GAMG, "ksp_type": "cg", "ksp_rtol": 1e-8}
"""Options of the solver of a body in space whose factor does not fit into the memory."""


class FactorState(NamedTuple):
    """State of a body at which its matrix is factorized."""

    u: Array  # displacements of the nodes (nodes, 3), m
    w: Array  # their velocities (nodes, 3), m/s
    frames: Array  # positions and quaternions of the frames (frames, 7)
    pressures: Array  # values of the pressures, Pa
    multipliers: Array  # multipliers of the averaged interfaces (m,), N

    @classmethod
    def reference(cls, body: MeshBody) -> FactorState:
        """Return the state of the undeformed body at the origin without loads."""
        pressures = np.zeros_like(body.forces.loads.pressures)
        return cls(*body.reference_state(), pressures, np.zeros(body.constraints.size))


class MeshSolver:
    """Factor of the matrix A of a body, rotated with the body, and the condensed matrices.

    Args:
        body: The body.

    Attributes:
        factorizations: Number of factorizations.
        coefficients: The coefficients b, c and the scale of c D + K in A; None without a factor.
        state: State of the body at the factorization.
    """

    def __init__(self, body: MeshBody) -> None:
        self._body = body
        self.factorizations = 0
        self.coefficients: tuple[float, float, float] | None = None
        self.state = FactorState.reference(body)
        self._ksp: PETSc.KSP | None = None
        self._rotations = NodalRotations(body)
        self._parts = Substructures.of(body.forces.space)
        self._nodes = nodes = body.forces.nodes
        self._held = np.flatnonzero(np.isin(nodes.owned, body.held))  # among the owned nodes
        # Rotations of the body since the factorization: `_turns` for the displacements (in global
        # axes) and the rotations (in axes of the frame) of each frame, (frames, 2, 3, 3)
        self._turns = np.zeros((0, 2, 3, 3))
        self._multigrid: bool | None = None  # whether a factor does not fit; None if unknown

    def factorize(
        self,
        coefficients: tuple[float, float, float],
        state: FactorState,
        spin: Array | None = None,
    ) -> None:
        """Factorize A at a state and compute Y and S − CᵀY (collective).

        Args:
            coefficients: b, c and the scale of c D + K.
            state: State of the body.
            spin: Angular velocity of a steady rotation, shape (3,), rad/s; by default none.

        Raises:
            FactorizationError: The matrix is not positive definite.
        """
        body, forces = self._body, self._body.forces
        frames, at = state.frames, body.motion_at(state.frames, state.u)
        forces.set_state(state.u, state.w)
        forces.loads.pressures = state.pressures
        A = forces.matrix(*coefficients, spin)
        T = body.frame_matrices(frames)[self._nodes.owned]
        product = self._nodes.unpacked(multiply(A, self._nodes.packed(T)))
        at_nodes, at_frames = body.constraints.second_derivatives(at, state.multipliers)
        stiffness = self._total(np.einsum("nik,nil->kl", T, product)) + at_frames
        product += at_nodes[self._nodes.owned]
        product[self._held] = 0.0
        constrain(A, forces.nodes.dofs_of(body.held_blocks), 1.0)
        pins = self._pinned(A, *coefficients[:1])
        self.destroy()
        self._matrix, self.coefficients = A, None
        self.factorizations += 1
        options = self._options()
        if options or database_options(PREFIX):
            self._set_rigid_motions(A, at)
        self._ksp = cholesky(A, prefix=PREFIX, options=options, parts=self._parts)
        self._Y = self._block_solution(product)
        self._set_border(at, pins)
        rates = np.zeros((len(self._border.H), T.shape[2]))
        rates[: body.constraints.size] = body.constraints.frame_matrix(at)
        self._E = self._border.multipliers(self._Y, rates)
        coupling = self._border.products(self._Y) - rates
        stiffness -= self._total(np.einsum("nik,nil->kl", product, self._Y))
        self._condensed = stiffness + coupling.T @ self._E
        self._Y = self._Y - self._border.correction(self._E)
        self.coefficients, self.state = coefficients, state
        self._frames = body.rotations_of(frames)
        self._rotation = self._rotations.at(state.u, self._frames)
        self._set_turns(self._frames)  # no rotation yet
        self._turn = self._force_turn = np.broadcast_to(np.eye(3), self._rotation.shape)

    def _options(self) -> Options:
        """Return the user's options, or those of multigrid if a factor does not fit.

        The first factorization decides, so that the memory does not change the digits of a run.
        """
        body = self._body
        chosen = body.petsc_options or database_options(PREFIX)
        if self._multigrid is None:
            size = self._matrix.getSize()[0]
            self._multigrid = not (
                chosen
                or body.embedding.is_plane
                or factor_fits(self._matrix.comm.tompi4py(), size, other=f"multigrid, {body.name}")
            )
        return MULTIGRID if self._multigrid else body.petsc_options

    def _set_rigid_motions(self, A: PETSc.Mat, at: Motion) -> None:
        """Tell multigrid the rigid motions at the present positions."""
        positions = A.createVecRight()
        positions.array[:] = self._body.forces.nodes.owned_rows(at.positions[:, :, None]).ravel()
        positions.setBlockSize(self._body.embedding.dim)
        motions = PETSc.NullSpace().createRigidBody(positions)
        A.setNearNullSpace(motions)
        motions.destroy()
        positions.destroy()

    def _pinned(self, A: PETSc.Mat, mass: float) -> list[tuple[int, float]]:
        """Add springs that hold a body without mass and rigid interfaces; return nodes, stiffness.

        Without them, A would be singular, because only the constraints of averaged interfaces hold
        the body. The border subtracts the springs, so that they do not change the solution.
        """
        body = self._body
        if mass or len(body.held) or not body.constraints.size:
            return []
        x = body.nodes
        first = int(np.argmax(np.linalg.norm(x - x.mean(axis=0), axis=1)))
        levers = x - x[first]
        farthest = int(np.argmax(np.linalg.norm(levers, axis=1)))
        widest = int(np.argmax(np.linalg.norm(np.cross(levers, levers[farthest]), axis=1)))
        diagonal = A.getDiagonal()
        stiffness = float(diagonal.max()[1])
        owned = np.flatnonzero(np.isin(body.forces.nodes.owned, (first, farthest, widest)))
        diagonal.array[self._body.forces.nodes.dofs_of(owned)] += stiffness
        A.setDiagonal(diagonal)
        diagonal.destroy()
        return [(node, stiffness) for node in (first, farthest, widest)]

    def _set_border(self, at: Motion, pins: list[tuple[int, float]]) -> None:
        """Set the border of the constraints, and of the springs of `_pinned`."""
        G = self._body.constraints.node_matrix(at)
        size = G.shape[2]
        if pins:
            extra = np.zeros((*G.shape[:2], 3 * len(pins)))
            for k, (node, _) in enumerate(pins):
                extra[node, :, 3 * k : 3 * k + 3] = np.eye(3)
            G = np.concatenate([G, extra], axis=2)
        G = G[self._nodes.owned]
        self._border = border = Border(G, self._block_solution(G), self._total)
        compliance = np.zeros_like(border.H)
        idle = self._body.constraints.idle
        compliance[:size, :size] = scaled(idle, border.H[:size, :size])
        for k, (_, stiffness) in enumerate(pins):
            part = slice(size + 3 * k, size + 3 * k + 3)
            compliance[part, part] = np.eye(3) / stiffness
        border.H = border.H - compliance

    def turn_to(self, u: Array, frames: Array, middle: Array | None = None) -> None:
        """Turn the factor with the body at displacements u (nodes, 3) and frames (frames, 7).

        The forces of a conserving step turn with the mean of the displacements before and after it,
        `middle` (nodes, 3), as S : sym(F_mᵀ∇v) shows.
        """
        rotations = self._body.rotations_of(frames)
        back = self._rotation.transpose(0, 2, 1)
        self._set_turns(rotations)
        self._turn = self._force_turn = self._rotations.at(u, rotations) @ back
        if middle is not None:
            self._force_turn = self._rotations.at(middle, rotations) @ back

    def _set_turns(self, rotations: Array) -> None:
        """Set the rotations since the factorization for frames with rotations (frames, 3, 3)."""
        self._frame_turns = np.einsum("fij,fkj->fik", rotations, self._frames)
        first = self._body.num_frames - self._body.constraints.size // 6  # averaged interface
        # Each averaged interface has two vectors of gaps: of the position and of the rotation
        self._gap_turns = np.repeat(self._frame_turns[first:], 2, axis=0)
        turns = self._frame_turns.transpose(0, 2, 1)
        self._turns = np.stack([turns, np.broadcast_to(np.eye(3), turns.shape)], axis=1)

    def solution(
        self, forces: Array, gaps: Array, delta: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the solution (nodes, 3), (m,) for forces at the free nodes and gaps (m,).

        With increments δs (6 frames,), the result of `motion` is added. Collective.
        """
        result, multipliers = self._solution(forces, gaps)
        if delta is not None:
            local = self._turned_frames(delta, inverse=True)
            result = result + self._Y @ local
            multipliers = np.asarray(multipliers + self._E @ local)
        return self._whole(result), self._unbordered(multipliers)

    def _solution(self, forces: Array, gaps: Array) -> tuple[Array, Array]:
        """Return the solution at the owned nodes (n, 3) and of the border, not turned."""
        assert self._ksp is not None
        b, x = self._matrix.createVecs()
        owned = _back(self._force_turn, forces[self._nodes.owned])
        b.array[:] = self._nodes.packed(owned[:, :, None]).ravel()
        try:
            self._ksp.solve(b, x)
        except PETSc.Error as error:
            raise FactorizationError(f"the linear solver failed: {error}") from error
        result = self._nodes.unpacked(x.array_r[:, None])[:, :, 0].copy()
        b.destroy()
        x.destroy()
        result[self._held] = 0.0
        if not len(self._border.H):
            return result, np.zeros(0)
        multipliers = self._border.multipliers(result, self._bordered(gaps))
        return result - self._border.correction(multipliers), multipliers

    def _whole(self, result: Array) -> Array:
        """Return the turned values (nodes, 3) of all nodes from those of the owned nodes."""
        return self._nodes.gathered_block(_turned(self._turn, result))

    def _total(self, local: Array) -> Array:
        """Return the sum of an array over the ranks."""
        return np.asarray(summed(self._body.forces.comm, local))

    def gap_forces(self, gaps: Array) -> Array:
        """Return the multipliers that close gaps (m,), N."""
        multipliers = np.asarray(np.linalg.solve(self._border.H, self._bordered(gaps)), dtype=float)
        return self._unbordered(multipliers)

    def _bordered(self, gaps: Array) -> Array:
        """Return gaps turned to the factorized body, with zeros for the springs."""
        out = np.zeros(len(self._border.H))
        out[: len(gaps)] = _back(self._gap_turns, gaps.reshape(-1, 3)).ravel()
        return out

    def _unbordered(self, multipliers: Array) -> Array:
        """Return the multipliers (m,) of the constraints, turned to the present body."""
        part = multipliers[: self._body.constraints.size]
        return _turned(self._gap_turns, part.reshape(-1, 3)).ravel()

    def frame_forces(self, forces: Array, gaps: Array) -> Array:
        """Return Yᵀf + Eᵀh for forces f (nodes, 3) and gaps h (m,), shape (6 frames,).

        E are the multipliers of unit motions of the frames. Collective.
        """
        owned = _back(self._turn, forces[self._nodes.owned])
        raw = self._total(np.einsum("nik,ni->k", self._Y, owned))
        return self._turned_frames(raw + self._bordered(gaps) @ self._E)

    def motion(self, delta: Array) -> tuple[Array, Array]:
        """Return Y δs, shape (nodes, 3), and the multipliers E δs, shape (m,) (collective)."""
        local = self._turned_frames(delta, inverse=True)
        return self._whole(self._Y @ local), self._unbordered(self._E @ local)

    def condensed(self) -> Array:
        """Return S − CᵀY, shape (6 frames, 6 frames)."""
        rows = np.array([self._turned_frames(column) for column in self._condensed.T]).T
        return np.array([self._turned_frames(row) for row in rows])

    def destroy(self) -> None:
        """Free the factor."""
        if self._ksp is not None:
            self._ksp.destroy()
            self._matrix.destroy()
        self._ksp = None

    def _turned_frames(self, vector: Array, *, inverse: bool = False) -> Array:
        """Return forces (6 frames,) of the factorized body turned to the present body.

        With `inverse`, increments of the present frames are turned to the factorized body.
        """
        subscripts = "fpij,fpj->fpi" if inverse else "fpji,fpj->fpi"
        return np.einsum(subscripts, self._turns, vector.reshape(-1, 2, 3)).ravel()

    def _block_solution(self, columns: Array) -> Array:
        """Return the solutions for columns (n, 3, k) of the owned nodes."""
        assert self._ksp is not None
        X = self._nodes.unpacked(solve(self._ksp, self._nodes.packed(columns)))
        X[self._held] = 0.0
        return X


def _turned(turns: Array, vectors: Array) -> Array:
    """Return the products of matrices (nodes, 3, 3) and vectors (nodes, 3)."""
    return np.einsum("nij,nj->ni", turns, vectors)


def _back(turns: Array, vectors: Array) -> Array:
    """Return the products of the transposes of matrices (nodes, 3, 3) and vectors (nodes, 3)."""
    return np.einsum("nji,nj->ni", turns, vectors)
