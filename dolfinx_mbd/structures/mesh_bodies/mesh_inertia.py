"""Inertia of a body with its free nodes condensed: accelerations without elastic waves.

At an instant, the accelerations of the free nodes follow from those s̈ of the frames by the mass
matrix alone: ü = −M⁻¹(M_fc T s̈ + f) with the forces f at the free nodes, their coupling M_fc with
the nodes of the interfaces, and the motion T of these nodes with the frames. The mass matrix acts
on each component alike, so that four solutions for each interface, for a unit displacement and for
its levers, serve for all rotations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.linalg.blocks import solve
from dolfinx_mbd.fem.linalg.sparse_matrices import constrain
from dolfinx_mbd.structures.mesh_bodies.averaged_interfaces import AveragedInterface
from dolfinx_mbd.structures.mesh_bodies.multipliers import Border, Constraints, Motion, scaled
from dolfinx_mbd.structures.mesh_bodies.nodal_forces import NodalForces
from dolfinx_mbd.structures.mesh_bodies.rigid_interfaces import RigidInterface

__all__ = ["CondensedInertia"]

_TOLERANCE, _ITERATIONS = 1e-14, 1000  # for solutions with the mass matrix
# Matrices of e_k× for the unit vectors e_k, (3, 3, 3)
_UNITS = np.array([[[0, 0, 0], [0, 0, -1], [0, 1, 0]], [[0, 0, 1], [0, 0, 0], [-1, 0, 0]],
                   [[0, -1, 0], [1, 0, 0], [0, 0, 0]]], dtype=float)  # fmt: skip


class CondensedInertia:
    """Mass matrix of the frames of a body with condensed free nodes, for all rotations.

    Args:
        forces: Mass of the body.
        interfaces: Its rigid interfaces.
        averaged: Its averaged interfaces, whose frames are the last ones.
        held: Numbers of the nodes of the rigid interfaces.
        held_blocks: Local indices of the owned ones among them.

    Note: Collective.
    """

    def __init__(
        self,
        forces: NodalForces,
        interfaces: Sequence[RigidInterface],
        averaged: Sequence[AveragedInterface],
        held: Array,
        held_blocks: Array,
    ) -> None:
        self._nodes, self._held, self._interfaces = forces.nodes, held, interfaces
        idle = forces.embedding.normal_motions
        self._constraints = Constraints(averaged, len(interfaces), len(forces.nodes), idle)
        # Four shapes of each interface: a unit displacement, and its levers D from its point
        shapes = np.zeros((len(forces.nodes), 4 * len(interfaces)))
        for k, interface in enumerate(interfaces):
            shapes[interface.nodes, 4 * k] = 1.0
            shapes[interface.nodes, 4 * k + 1 : 4 * k + 4] = interface.levers
        product = forces.apply_mass(shapes)
        gram = shapes.T @ product
        matrix = forces.scalar_mass.copy()
        constrain(matrix, held_blocks.astype(np.int32), 1.0)
        self._matrix = matrix
        self._ksp = PETSc.KSP().create(matrix.comm)
        self._ksp.setOperators(matrix)
        self._ksp.setType("cg")
        self._ksp.getPC().setType("jacobi")
        self._ksp.setTolerances(rtol=_TOLERANCE, max_it=_ITERATIONS)
        product[held] = 0.0
        self._motions = self.solution(product)
        self._gram = gram - product.T @ self._motions

    def solution(self, values: Array) -> Array:
        """Return M⁻¹ times values (nodes, k) of free nodes; 0 at interfaces (collective)."""
        local = np.asfortranarray(values[self._nodes.owned])
        X = self._nodes.gathered_block(solve(self._ksp, local))
        X[self._held] = 0.0
        return X

    def settled(self, at: Motion, forces: Array, rates: Array) -> Array:
        """Return the solution (nodes, 3) for forces at the free nodes and gap rates (m,).

        Collective.
        """
        u = self.solution(forces)
        if not self._constraints.size:
            return u
        border = self._border(at)
        return u - border.correction(border.multipliers(u, rates))

    def frame_forces(self, at: Motion, forces: Array, rates: Array) -> Array:
        """Return the forces (6 frames,) on the frames for forces and gap rates as in `settled`.

        They are Yᵀf + Eᵀh, with the motion Y of the free nodes and the multipliers E for unit
        motions of the frames.
        """
        out = np.zeros((len(at.rotations), 6))
        sums = (self._motions.T @ forces).reshape(-1, 4, 3)
        for k, (R, moments) in enumerate(zip(at.rotations, sums, strict=False)):
            force, *by_levers = moments  # Σ f, and Σ D ⊗ f
            out[k, :3] = force
            local = np.array(by_levers) @ R
            out[k, 3:] = np.einsum("akb,ab->k", _UNITS, local)
        result = out.ravel()
        if self._constraints.size:
            border = self._border(at)
            _, E = self._coupling(at, border)
            result += (rates - np.einsum("nim,ni->m", border.W, forces)) @ E
        return result

    def _border(self, at: Motion) -> Border:
        """Return the border of the constraints of averaged interfaces (collective)."""
        G = self._constraints.node_matrix(at)
        W = self.solution(G.reshape(len(G), -1)).reshape(G.shape)
        G[self._held] = 0.0
        border = Border(G, W)
        border.H = border.H - scaled(self._constraints.idle, border.H)
        return border

    def _coupling(self, at: Motion, border: Border) -> tuple[Array, Array]:
        """Return GᵀY − G_s for unit frame motions, and the multipliers E, (m, 6 frames) each.

        G and G_s are the derivatives of the constraints by the nodes and by the frames.
        """
        Y = np.zeros((len(self._nodes), 3, 6 * len(at.rotations)))
        for k, R in enumerate(at.rotations[: len(self._interfaces)]):
            shapes = self._motions[:, 4 * k : 4 * k + 4]
            Y[:, :, 6 * k : 6 * k + 3] = shapes[:, 0, None, None] * np.eye(3)
            # R (e_k × D) for the condensed levers
            Y[:, :, 6 * k + 3 : 6 * k + 6] = np.einsum("na,akb,ib->nik", shapes[:, 1:], _UNITS, R)
        rates = self._constraints.frame_matrix(at)
        return border.products(Y) - rates, border.multipliers(Y, rates)

    def mass(self, at: Motion) -> Array:
        """Return the condensed mass matrix of the frames, shape (6 frames, 6 frames)."""
        rotations = at.rotations[: len(self._interfaces)]
        M = np.zeros((6 * len(at.rotations),) * 2)
        M[: 6 * len(rotations), : 6 * len(rotations)] = self._rigid_mass(rotations)
        if self._constraints.size:
            coupling, E = self._coupling(at, self._border(at))
            M += coupling.T @ E
        return M

    def _rigid_mass(self, rotations: Array) -> Array:
        """Return the matrix of rigid interfaces with rotations, with free averaged interfaces."""
        count = len(self._interfaces)
        M = np.zeros((count, 6, count, 6))
        for k, R in enumerate(rotations):
            for m, Q in enumerate(rotations):
                block = self._gram[4 * k : 4 * k + 4, 4 * m : 4 * m + 4]
                arms = -np.einsum("a,aij->ij", block[0, 1:], _UNITS)
                M[k, :3, m, :3] = block[0, 0] * np.eye(3)
                M[k, :3, m, 3:] = Q @ arms
                M[k, 3:, m, :3] = (-np.einsum("a,aij->ij", block[1:, 0], _UNITS)).T @ R.T
                M[k, 3:, m, 3:] = np.einsum(
                    "ab,aji,jk,bkl->il", block[1:, 1:], _UNITS, R.T @ Q, _UNITS
                )
        return M.reshape(6 * count, 6 * count)
