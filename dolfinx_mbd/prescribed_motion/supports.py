"""A body whose interfaces are held or loaded: solutions with one factorization, loads, motions.

The motions that the interfaces allow are those with u = d + θ×(x - x_k) on a rigid interface; of
a held one d and θ are zero (of a held averaged one they are zero in the mean). A symmetric matrix A
is factorized with all these interfaces held. With its constraint modes Ψ of the interfaces that are
free to move, for which A Ψ vanishes elsewhere, the solution on the allowed motions is

    A⁻¹ f = A_held⁻¹ f + Ψ (ΨᵀAΨ)⁻¹ Ψᵀf

and costs one solve. Averaged interfaces that are free restrict nothing: a wrench F acts on them
through their averaged rows, u ↦ (d, θ), as the tractions Cᵀ F whose work is F·(d, θ). On a rigid
one only the resultants of the nodal forces matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.fem.assembly import ElasticProblem, rigid_motions
from dolfinx_mbd.linalg.blocks import gram, multiply
from dolfinx_mbd.linalg.options import Options
from dolfinx_mbd.reduction.held_stiffness import HeldStiffness
from dolfinx_mbd.reduction.interfaces import MeshInterface

__all__ = ["MeanAxes", "Supported", "interface_rows"]

Array = NDArray[np.float64]


def interface_rows(problem: ElasticProblem, interface: MeshInterface) -> Array:
    """L, shape (owned dofs of the interface, 6), in the plane 3: its motion is Lᵀu, a wrench F on
    it the load L F.

    Note: Collective.
    """
    if interface.rows is not None:
        return interface.rows
    T = rigid_motions(problem.positions[interface.blocks], interface.point)
    return np.asarray(T @ np.linalg.inv(gram(problem.comm, T, T)))


class Supported:
    """A factorized matrix on the motions that the interfaces allow.

    Args:
        problem: Layout and positions.
        matrix: Symmetric, positive definite for the allowed motions, or `floating`. It is copied.
        interfaces: Which restrict the motion, each either held or free.
        held: Names of the held ones.
        floating: The matrix vanishes for rigid motions, which are allowed: the solution is one up
            to a rigid motion, for loads in balance.
        free: Whether the matrix vanishes for rigid motions; it does not with mass in it.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.

    Attributes:
        constraint: Constraint modes of all interfaces, shape (owned dofs, coordinates).
        solves: Solves so far.

    Raises:
        FactorizationError: A part of the body is not held, or the solver failed.

    Note: Collective, as all methods are.
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
        self.problem, self.solves = problem, 0
        changed = replace(problem, stiffness=matrix)
        self._held = HeldStiffness(changed, tuple(interfaces), prefix, options, free=free)
        self.constraint, _ = self._held.constraint_modes()
        names = np.repeat([i.name for i in interfaces], problem.num_rigid)
        moving = np.flatnonzero([name not in held for name in names])
        self._modes = np.asfortranarray(self.constraint[:, moving])
        small = gram(problem.comm, self._modes, multiply(matrix, self._modes))
        self._inverse = _pseudo_inverse(small, problem.num_rigid if floating else 0)

    def solve(self, loads: Array) -> Array:
        """Displacements under body forces, shape (owned dofs,)."""
        self.solves += 1
        u = self._held.solve_body(loads[:, None])[:, 0]
        if not self._modes.shape[1]:
            return u
        return u + self._modes @ (self._inverse @ self.problem.comm.allreduce(loads @ self._modes))

    def solve_held(self, loads: Array) -> Array:
        """With all interfaces held, shape (owned dofs, k)."""
        return self._held.solve_body(loads)

    def destroy(self) -> None:
        """Free the factors."""
        self._held.destroy()


def _pseudo_inverse(small: Array, num_rigid: int) -> Array:
    """Inverse after scaling to a unit diagonal, without the lowest eigenvalues."""
    if len(small) <= num_rigid:
        return np.zeros_like(small)
    scale = 1 / np.sqrt(np.diag(small))
    values, vectors = np.linalg.eigh(scale[:, None] * (small + small.T) / 2 * scale)
    values, vectors = values[num_rigid:], scale[:, None] * vectors[:, num_rigid:]
    return np.asarray((vectors / values) @ vectors.T)


class MeanAxes:
    """The mean axes of a body: motions without momentum, RᵀM u = 0 for its rigid motions R.

    Note: Collective, as all methods are.
    """

    def __init__(self, problem: ElasticProblem) -> None:
        self._comm = problem.comm
        R = rigid_motions(problem.positions)
        MR = problem.apply_mass(R)
        inverse = np.linalg.inv(np.linalg.cholesky(gram(problem.comm, R, MR)))
        self._rigid, self._momenta = R @ inverse.T, MR @ inverse.T

    def loads(self, r: Array) -> Array:
        """Loads with their resultants balanced by the inertia of a rigid acceleration."""
        return r - self._momenta @ self._comm.allreduce(r @ self._rigid)

    def motions(self, u: Array) -> Array:
        """Motions less their rigid part."""
        return u - self._rigid @ self._comm.allreduce(u @ self._momenta)
