"""Linear solver for a body whose interfaces are held or free, with one factorization.

A rigid interface allows the motions u = d + θ×(x - x_k) with a displacement d and a rotation θ
about its point x_k. At a held interface d and θ are zero; at a held averaged interface, their
averages are zero. A symmetric matrix A is factorized with all these interfaces held. With the
constraint modes Ψ of the free interfaces, for which A Ψ vanishes outside these interfaces, the
solution on the allowed motions is

    A⁻¹ f = A_held⁻¹ f + Ψ (ΨᵀAΨ)⁻¹ Ψᵀf

This formula requires one solve. Free averaged interfaces impose no constraint. Let Lᵀ be the matrix
that averages u to (d, θ), see `interface_rows`. A wrench F on a free averaged interface acts as the
nodal forces L F; their work is F·(d, θ). On a rigid interface only the resultants of the nodal
forces matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.assembly import ElasticProblem, rigid_motions
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.fem.linalg.options import Options
from dolfinx_mbd.reduction.held_stiffness import HeldStiffness


def interface_rows(problem: ElasticProblem, interface: MeshInterface) -> Array:
    """Return L, shape (owned dofs of the interface, 6), or (..., 3) for a plane body.

    The motion of the interface is Lᵀu, and a wrench F on it is the load L F.
    """
    if interface.rows is not None:
        return interface.rows
    T = rigid_motions(problem.positions[interface.blocks], interface.point)
    return np.asarray(T @ np.linalg.inv(gram(problem.comm, T, T)))


class SupportedMatrix:
    """Factorized symmetric matrix on the motions that the interfaces allow.

    `held` contains the names of the held interfaces; the others are free. `free` states whether the
    matrix vanishes for rigid motions, as a stiffness does; a matrix that includes mass does not. If
    `floating` is True, the supports also allow rigid motions, and the solution for balanced loads
    is determined up to a rigid motion. `constraint` contains the constraint modes of all
    interfaces.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        matrix: PETSc.Mat,
        interfaces: Sequence[MeshInterface],
        held: Sequence[str],
        *,
        floating: bool = False,
        free: bool = True,
        prefix: str,
        options: Options = None,
    ) -> None:
        self._comm = problem.comm
        modified = replace(problem, stiffness=matrix)
        self._held = HeldStiffness(modified, tuple(interfaces), prefix, options, free=free)
        self.constraint, _ = self._held.constraint_modes()
        is_free = np.repeat([i.name not in held for i in interfaces], problem.num_rigid)
        self._modes = np.asfortranarray(self.constraint[:, is_free.astype(bool)])
        projection = gram(problem.comm, self._modes, multiply(matrix, self._modes))
        self._inverse = _pseudo_inverse(projection, problem.num_rigid if floating else 0)

    def solve(self, loads: Array) -> Array:
        """Return the displacements under body forces, shape (owned dofs,)."""
        u = self._held.solve_body(loads[:, None])[:, 0]
        if not self._modes.shape[1]:
            return u
        return u + self._modes @ (self._inverse @ self._comm.allreduce(loads @ self._modes))

    def solve_held(self, loads: Array) -> Array:
        """Return the displacements with all interfaces held, shape (owned dofs, k)."""
        return self._held.solve_body(loads)

    def destroy(self) -> None:
        """Destroy the factors."""
        self._held.destroy()


def _pseudo_inverse(projection: Array, num_rigid: int) -> Array:
    """Return the pseudo-inverse that omits the `num_rigid` lowest eigenvalues.

    They are eigenvalues of the matrix after scaling to a unit diagonal.
    """
    if len(projection) <= num_rigid:
        return np.zeros_like(projection)
    scale = 1 / np.sqrt(np.diag(projection))
    values, vectors = np.linalg.eigh(scale[:, None] * (projection + projection.T) / 2 * scale)
    values, vectors = values[num_rigid:], scale[:, None] * vectors[:, num_rigid:]
    return np.asarray((vectors / values) @ vectors.T)


class MeanAxes:
    """Mean-axis conditions RᵀM u = 0: a displacement u has no momentum along rigid motions R."""

    def __init__(self, problem: ElasticProblem) -> None:
        self._comm = problem.comm
        R = rigid_motions(problem.positions)
        MR = problem.apply_mass(R)
        inverse = np.linalg.inv(np.linalg.cholesky(gram(problem.comm, R, MR)))
        self._rigid, self._momenta = R @ inverse.T, MR @ inverse.T

    def loads(self, r: Array) -> Array:
        """Return the loads r minus the inertia of the rigid acceleration that r causes."""
        return r - self._momenta @ self._comm.allreduce(r @ self._rigid)

    def motions(self, u: Array) -> Array:
        """Return the displacements u without their rigid part, so that RᵀM u = 0."""
        return u - self._rigid @ self._comm.allreduce(u @ self._momenta)
