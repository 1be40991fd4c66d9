"""Inertia of a body with its free nodes condensed: accelerations without elastic waves.

At an instant, the accelerations of the free nodes follow from those of the frames by the mass
matrix alone: ü = −M⁻¹(M_fc T s̈ + f). The mass matrix acts on each component alike, so that four
solutions for each interface, for a unit displacement and for its levers, serve for all rotations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.linalg.blocks import solve
from dolfinx_mbd.fem.linalg.matrices import constrain
from dolfinx_mbd.structures.mesh_bodies.nodal_forces import NodalForces
from dolfinx_mbd.structures.mesh_bodies.rigid_interfaces import RigidInterface

__all__ = ["CondensedInertia"]

_TOLERANCE = 1e-14  # of the solution with the mass matrix
_UNITS = np.array([[[0, 0, 0], [0, 0, -1], [0, 1, 0]], [[0, 0, 1], [0, 0, 0], [-1, 0, 0]],
                   [[0, -1, 0], [1, 0, 0], [0, 0, 0]]], dtype=float)  # fmt: skip


class CondensedInertia:
    """Mass matrix of the frames of a body with condensed free nodes, for all rotations.

    Args:
        forces: Mass of the body.
        interfaces: Its interfaces.
        held: Numbers of the nodes of the interfaces.
        held_blocks: Local indices of the owned ones among them.

    Note: Collective.
    """

    def __init__(
        self,
        forces: NodalForces,
        interfaces: Sequence[RigidInterface],
        held: Array,
        held_blocks: Array,
    ) -> None:
        self._nodes, self._held, self._interfaces = forces.nodes, held, interfaces
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
        self._ksp.setTolerances(rtol=_TOLERANCE, max_it=1000)
        product[held] = 0.0
        self._motions = self.solution(product)
        self._gram = gram - product.T @ self._motions

    def solution(self, values: Array) -> Array:
        """Return M⁻¹ times values (N, k) of the free nodes; zero at the interfaces (collective)."""
        local = np.asfortranarray(values[self._nodes.owned])
        X = self._nodes.gathered_block(solve(self._ksp, local))
        X[self._held] = 0.0
        return X

    def frame_forces(self, rotations: Array, forces: Array) -> Array:
        """Return Yᵀf for forces (N, 3) at the free nodes, shape (6 F,); see `MeshSolver`."""
        out = np.zeros((len(self._interfaces), 6))
        sums = (self._motions.T @ forces).reshape(-1, 4, 3)
        for k, (R, moments) in enumerate(zip(rotations, sums, strict=True)):
            out[k, :3] = moments[0]
            local = moments[1:] @ R  # Σ D ⊗ Rᵀf
            out[k, 3:] = np.einsum("akb,ab->k", _UNITS, local)
        return out.ravel()

    def mass(self, rotations: Array) -> Array:
        """Return the condensed mass matrix of the frames with given rotations, (6 F, 6 F)."""
        count = len(self._interfaces)
        M = np.zeros((count, 6, count, 6))
        for k, R in enumerate(rotations):
            for m, Q in enumerate(rotations):
                block = self._gram[4 * k : 4 * k + 4, 4 * m : 4 * m + 4]
                turns = -np.einsum("a,aij->ij", block[0, 1:], _UNITS)
                M[k, :3, m, :3] = block[0, 0] * np.eye(3)
                M[k, :3, m, 3:] = Q @ turns
                M[k, 3:, m, :3] = (-np.einsum("a,aij->ij", block[1:, 0], _UNITS)).T @ R.T
                M[k, 3:, m, 3:] = np.einsum(
                    "ab,aji,jk,bkl->il", block[1:, 1:], _UNITS, R.T @ Q, _UNITS
                )
        return M.reshape(6 * count, 6 * count)
