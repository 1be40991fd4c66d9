"""Derivatives of the modes and of the geometric stiffening of a reduced beam.

The formulas are those of solids, see `dolfinx_mbd.design.sensitivity.mode_derivatives`. Beams have
few degrees of freedom, so that the bordered system of each fixed-interface mode is factorized:

    (K − λM) Φ′ + MΦ μ = −(K′ − λM′) Φ,    ΦᵀM Φ′ = 0.

Every rank solves these systems for the whole beam.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from petsc4py import PETSc
from scipy.sparse.linalg import splu

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.design.sensitivity.beam_changes import BeamChange
from dolfinx_mbd.design.sensitivity.mode_derivatives import SplitModes
from dolfinx_mbd.fem.assembly import point_motion
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.fem.operators import spin_matrix
from dolfinx_mbd.reduction.held_stiffness import FreeStiffness
from dolfinx_mbd.reduction.stiffening import inertia_relief
from dolfinx_mbd.structures.beams.model import BeamModel, rigid_modes
from dolfinx_mbd.structures.beams.problem import (
    BeamProblem,
    beam_matrices,
    initial_stress_matrices,
    spin_matrices,
)


class ChangedMatrices(BeamProblem):
    """Derivatives of the matrices of a beam, and of its rigid motions about the origin."""

    def __init__(self, model: BeamModel, change: BeamChange) -> None:
        super().__init__(model, *beam_matrices(model, change.combine))
        self.change = change
        velocity = np.outer(change.velocity, model.direction)
        turned = np.zeros_like(rigid_modes(model)).reshape(-1, 6, 6)
        for c, axis in enumerate(np.eye(3)):
            turned[:, :3, 3 + c] = np.cross(axis, velocity)
        self.turned = np.asfortranarray(turned.reshape(-1, 6))


def mode_derivatives(
    problem: BeamProblem,
    interfaces: tuple[MeshInterface, ...],
    split: SplitModes,
    matrices: ChangedMatrices,
) -> tuple[Array, Array]:
    """Return Ψ′ (owned dofs, n), and the derivative of the interface motions (coordinates, n).

    Args:
        problem: Matrices of the beam.
        interfaces: Its interfaces.
        split: Its modes and rigid motions.
        matrices: Derivatives of the matrices.

    Note: Collective.
    """
    comm, modes = problem.comm, split.modes
    constraint = modes - split.fixed @ split.shares  # C N
    forces = np.hstack(
        [
            multiply(matrices.stiffness, constraint),
            multiply(matrices.stiffness, split.fixed)
            - matrices.apply_mass(split.fixed) * split.squares,
        ]
    )
    solution = _solutions(problem, interfaces, split, -forces)
    n, count = modes.shape[1], len(split.rigid_factor)
    Y = solution[:, :n] + solution[:, n:] @ split.shares  # Ψ′ up to motions in the span
    span = np.asfortranarray(np.hstack([split.rigid, modes]))
    coefficients = -gram(comm, problem.apply_mass(span), Y)
    mass = gram(comm, span, matrices.apply_mass(modes))
    turned = matrices.turned[:, :count] @ split.rigid_factor
    moved = gram(comm, turned, problem.apply_mass(modes))
    coefficients[:count] -= mass[:count] + moved
    coefficients[count:] -= mass[count:] / 2
    motions = np.hstack([split.rigid_interfaces, split.motions]) @ coefficients
    return np.asfortranarray(Y + span @ coefficients), motions


def _solutions(
    problem: BeamProblem, interfaces: tuple[MeshInterface, ...], split: SplitModes, forces: Array
) -> Array:
    """Return displacements of the beam with held interfaces under nodal forces.

    The last columns belong to the fixed-interface modes; their systems have the shifts λ.
    """
    comm = problem.comm
    free = np.ones(problem.num_owned, dtype=bool)
    for interface in interfaces:
        free[interface.dofs] = False
    fixed = _joined(comm, split.fixed)
    F, mask = _joined(comm, forces), _joined(comm, free[:, None])[:, 0]
    K, M = (_gathered(A)[mask][:, mask] for A in (problem.stiffness, problem.mass_matrix))
    B = M @ fixed[mask]
    u = np.zeros_like(F)
    n = forces.shape[1] - len(split.squares)
    if interfaces:
        u[mask, :n] = splu(K.tocsc()).solve(F[mask, :n])
    scale = abs(K).max() / max(abs(B).max(initial=0.0), 1e-300)
    zero = np.zeros(len(split.squares))
    for k, square in enumerate(split.squares):
        shifted = scipy.sparse.block_array([[K - square * M, scale * B], [scale * B.T, None]])
        right = np.concatenate([F[mask, n + k], zero])
        u[mask, n + k] = splu(shifted.tocsc()).solve(right)[: len(B)]
    start = comm.exscan(problem.num_owned) or 0
    return u[start : start + problem.num_owned]


def _joined(comm: Any, rows: Array) -> Array:
    """Return the rows of all ranks."""
    return np.concatenate(comm.allgather(rows))


def _gathered(A: PETSc.Mat) -> scipy.sparse.csr_array:
    """Return a distributed matrix as a whole on every rank."""
    starts, columns, values = A.getValuesCSR()
    local = scipy.sparse.csr_array((values, columns, starts), shape=(len(starts) - 1, A.size[1]))
    return scipy.sparse.vstack(A.comm.tompi4py().allgather(local)).tocsr()


class StiffeningRates:
    """Derivatives of the geometric stiffening of a beam; all methods are collective.

    The stress of a unit load with inertia relief does not depend on the supports.
    """

    def __init__(
        self, problem: BeamProblem, interfaces: tuple[MeshInterface, ...], split: SplitModes
    ) -> None:
        self.problem, self.interfaces, self.split = problem, interfaces, split
        R = problem.rigid_motions()
        self._inertia, self._spins = problem.apply_mass(R), problem.spin_loads()
        self._mass = gram(problem.comm, R, self._inertia)
        solid: Any = problem
        self._relief = inertia_relief(solid, interfaces, R, self._inertia, self._spins)
        factor = np.linalg.inv(np.linalg.cholesky(self._mass)).T
        self._stiffness = FreeStiffness(solid, np.asfortranarray(R @ factor), "dolfinx_mbd_")
        loads = -self._inertia @ self._relief
        loads[:, :6] += self._spins
        for k, interface in enumerate(interfaces):
            loads[interface.dofs, 6 + 6 * k : 12 + 6 * k] += np.eye(6)[: len(interface.dofs)]
        self._displacements = self._stiffness.solve_body(loads)

    def __call__(self, matrices: ChangedMatrices, changes: Array) -> tuple[Array, Array]:
        """Return the derivatives of `Stiffening.spin` and `Stiffening.interfaces`.

        Args:
            matrices: Derivatives of the matrices.
            changes: Ψ′, shape (owned dofs, n).
        """
        comm, model = self.problem.comm, matrices.model
        modes = self.split.modes[:, : changes.shape[1]]  # without those above `up_to`
        loads, relief = self._load_rates(matrices)
        u = self._displacements
        moved = self._stiffness.solve_body(loads - multiply(matrices.stiffness, u))
        # Accelerations W x of the unit loads: by the balancing rotation, and centrifugal of spins
        W, W_moved = (-np.array([spin_matrix(a) for a in r[3:].T]) for r in (self._relief, relief))
        W[: len(SPINS)] += spin_matrices()
        reduced = np.zeros((len(W), *2 * [modes.shape[1]]))
        sequences = (
            initial_stress_matrices(model, u, W),
            initial_stress_matrices(model, moved, W_moved),
            initial_stress_matrices(model, u, W, matrices.change.combine),
        )
        for c, (A, of_load, explicit) in enumerate(zip(*sequences, strict=True)):
            cross = gram(comm, changes, multiply(A, modes))
            K = cross + gram(comm, modes, multiply(A, changes))
            for B in (of_load, explicit):
                K += gram(comm, modes, multiply(B, modes))
            reduced[c] = (K + K.T) / 2
            for item in (A, of_load, explicit):
                item.destroy()
        return reduced[:6], reduced[6:].reshape(len(self.interfaces), 6, *reduced.shape[1:])

    def _load_rates(self, matrices: ChangedMatrices) -> tuple[Array, Array]:
        """Return the derivatives of the unit loads, and of the accelerations that balance them."""
        problem, model = self.problem, matrices.model
        comm, R, turned = problem.comm, problem.rigid_motions(), matrices.turned
        spins = matrices.spin_loads()
        inertia = matrices.apply_mass(R) + problem.apply_mass(turned)
        mass = gram(comm, R, inertia) + gram(comm, turned, self._inertia)
        resultants = [gram(comm, R, spins) + gram(comm, turned, self._spins)]
        for speed in matrices.change.at(model, self.interfaces):
            resultants.append((point_motion(speed * model.direction) - np.eye(6)).T)
        right = np.hstack(resultants) - mass @ self._relief
        relief: Array = np.asarray(np.linalg.solve(self._mass, right), dtype=float)
        loads = -inertia @ self._relief - self._inertia @ relief
        loads[:, :6] += spins
        return np.asfortranarray(loads), relief

    def destroy(self) -> None:
        """Free the factor."""
        self._stiffness.destroy()
