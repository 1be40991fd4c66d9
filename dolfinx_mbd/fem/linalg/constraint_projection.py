"""Preconditioners for systems with constraints C u = c, by projection.

With a preconditioner T ≈ K⁻¹, G = T Cᵀ and S = C G,

    P = T - G S⁻¹ Gᵀ

is a preconditioner for K on all u with C u = 0. The residual of the solution is Cᵀλ.

References:
    Gould, Hribar, Nocedal (2001), On the solution of equality constrained quadratic programming
    problems arising in optimization, SIAM J. Sci. Comput. 23, 1376-1395.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from mpi4py import MPI
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.linalg.blocks import gram


class Projection:
    """The preconditioner P; it can be the Python context of a PETSc PC.

    `border` holds the owned rows of Cᵀ, with zeros at degrees of freedom that are held;
    `approximate_inverse` returns T R for blocks of vectors of shape (owned rows, k).
    """

    def __init__(
        self,
        comm: MPI.Comm,
        border: scipy.sparse.csr_matrix,
        approximate_inverse: Callable[[Array], Array],
    ) -> None:
        self.comm, self.border, self._approximate_inverse = comm, border, approximate_inverse
        columns = border.toarray(order="F")
        self._G = approximate_inverse(columns)
        S = gram(comm, columns, self._G)
        self._inverse = np.linalg.inv((S + S.T) / 2)

    def precondition(self, R: Array) -> Array:
        """Return P R, and subtract the forces Cᵀλ of the constraints from R in place."""
        R -= self.forces(R)
        Z = self._approximate_inverse(R)
        Z -= self.motion(self.constraints(Z))  # nonzero by round-off only
        return Z

    def apply(self, pc: PETSc.PC, r: PETSc.Vec, z: PETSc.Vec) -> None:
        """Set z = P r; PETSc calls this method."""
        z.array[:] = self.precondition(r.array_r[:, None].copy())[:, 0]

    def multipliers(self, R: Array) -> Array:
        """Return the λ that minimizes R - Cᵀλ in the norm of T, shape (constraints, k)."""
        return np.asarray(self._inverse @ gram(self.comm, self._G, R))

    def forces(self, R: Array) -> Array:
        """Return Cᵀλ with the λ of `multipliers`."""
        return np.asarray(self.border @ self.multipliers(R))

    def motion(self, c: Array) -> Array:
        """Return a displacement with C u = c."""
        return np.asfortranarray(self._G @ (self._inverse @ c))

    def constraints(self, X: Array) -> Array:
        """Return C X."""
        return gram(self.comm, self.border, X)  # type: ignore[arg-type]
