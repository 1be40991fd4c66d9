"""From a beam's mesh, section and material to the matrices that the analyses of a body need.

A `BeamProblem` stands where an `ElasticProblem` of a solid stands: its vectors have six components
(d, θ) per vertex, and rotations are part of every rigid motion, interface and load.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem, la
from dolfinx.fem import petsc as fem_petsc
from numpy.typing import NDArray
from petsc4py import PETSc
from ufl.core.expr import Expr

from dolfinx_mbd.beams.model import BeamModel
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.inertia import Inertia, sign_field
from dolfinx_mbd.linalg.blocks import gram, multiply
from dolfinx_mbd.modal.spectrum import ritz_estimate

__all__ = ["BeamModel", "BeamProblem", "beam_problem", "spin_matrices"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BeamProblem:
    """K, M and the inertia couplings of a beam; what an `ElasticProblem` is for a solid.

    Attributes:
        model: The beam.
        stiffness: K of the free beam, no boundary conditions.
        mass_matrix: M.
        couplings: ∫ρ N_i^a N_j^b for components a, b of the displacements N of dofs i, j, at the
            place 3 a + b.
        position_couplings: ∫ρ X^a N_i^b with the position X, shape (owned dofs, 3, 3).
        first_couplings: ∫ρ N_i^a, shape (owned dofs, 3).
        position_moments: ∫ρ [1, X] [1, X]ᵀ, shape (4, 4).
    """

    model: BeamModel
    stiffness: PETSc.Mat
    mass_matrix: PETSc.Mat
    couplings: tuple[PETSc.Mat, ...]
    position_couplings: Array
    first_couplings: Array
    position_moments: Array
    prestress: Any = None

    dim = 3
    num_rigid = 6
    supported = False

    @property
    def space(self) -> fem.FunctionSpace:
        """Displacements and rotations: P1 with six components."""
        return self.model.space

    @property
    def positions(self) -> Array:
        """Positions of the owned vertices, shape (m, 3), m."""
        return self.model.positions

    @property
    def comm(self) -> Any:
        """The mesh's MPI communicator."""
        return self.model.mesh.comm

    @property
    def num_owned(self) -> int:
        """Owned degrees of freedom on this rank."""
        return 6 * len(self.positions)

    @property
    def num_dofs(self) -> int:
        """Degrees of freedom of all ranks."""
        return 6 * len(self.model.chain)

    def mass(self) -> PETSc.Mat:
        """A copy of M; the caller destroys it.

        Note: Collective.
        """
        return self.mass_matrix.copy()

    def inertia_matrix(self, W: Array) -> PETSc.Mat:
        """∫ρ (W u)·v, with the pattern of K; W of shape (3, 3), and the caller destroys it.

        Note: Collective.
        """
        result = self.mass_matrix.copy()
        result.scale(0.0)
        same = PETSc.Mat.Structure.SAME_NONZERO_PATTERN
        for weight, matrix in zip(W.ravel(), self.couplings, strict=True):
            if weight:
                result.axpy(float(weight), matrix, structure=same)
        return result

    def apply_mass(self, X: Array) -> Array:
        """M X, X of shape (owned dofs, k).

        Note: Collective.
        """
        return multiply(self.mass_matrix, X)

    def rigid_motions(
        self, point: Array | None = None, blocks: NDArray[np.int32] | None = None
    ) -> Array:
        """See `BeamModel.rigid_motions`."""
        return self.model.rigid_motions(point, blocks)

    def spin_loads(self) -> Array:
        """Centrifugal loads -∫ρ (ω×(ω×x))·v for ω_iω_j = 1, shape (owned dofs, 6)."""
        return np.stack([self.motion_load(W=W) for W in spin_matrices()], axis=1)

    def motion_load(self, acceleration: Array | None = None, W: Array | None = None) -> Array:
        """Load -∫ρ (a + W X)·v of the acceleration a + W X of the undeformed body, (owned dofs,).

        W is α̃ + ω̃ω̃ of a frame in motion.
        """
        load = np.zeros(self.num_owned)
        if acceleration is not None:
            load -= self.first_couplings @ acceleration
        if W is not None:
            load -= np.einsum("iab,ba->i", self.position_couplings, W)
        return load

    def first_square(self) -> float:
        """Upper bound of the first elastic ω² of the free beam.

        Note: Collective.
        """
        model = self.model
        s = model.chain @ model.direction
        size = (s[-1] - s[0]) / 2
        xi = (self.positions @ model.direction - (s[-1] + s[0]) / 2) / size
        local = np.zeros((len(xi), 2, 3, 4))  # quadratic fields in the beam's axes
        for k, (d, theta, sign) in enumerate(((0, None, 0), (1, 2, 1), (2, 1, -1), (None, 0, 1))):
            if d is not None:
                local[:, 0, d, k] = size * xi**2
            if theta is not None:
                local[:, 1, theta, k] = sign * (2 * xi if d else xi)
        Q = np.einsum("ab,npbk->npak", np.asarray(model.axes), local).reshape(-1, 4)
        R = self.rigid_motions(model.chain.mean(axis=0))
        return ritz_estimate(self, np.asfortranarray(np.hstack([R, Q])), R)  # type: ignore[arg-type]

    def inertia(self, modes: Array) -> Inertia:
        """Total mass, first and second moments of x and of the modes, the same on every rank.

        As `fem.inertia.inertia` has them for a solid, with the section's own moments.

        Args:
            modes: Shape (owned dofs, n).

        Note: Collective.
        """
        n, comm, G = modes.shape[1], self.comm, self.position_moments
        S, H = np.zeros((n + 1, 3)), np.zeros((n + 1, n + 1, 3, 3))
        S[0], H[0, 0] = G[0, 1:], G[1:, 1:]
        S[1:] = gram(comm, modes, self.first_couplings)
        positions = self.position_couplings.reshape(-1, 9)
        H[0, 1:] = gram(comm, modes, positions).reshape(n, 3, 3)
        H[1:, 0] = H[0, 1:].transpose(0, 2, 1)
        for c, matrix in enumerate(self.couplings):
            H[1:, 1:, c // 3, c % 3] = gram(comm, modes, multiply(matrix, modes))
        H[:] = (H + H.transpose(1, 0, 3, 2)) / 2
        centre = S[0] / G[0, 0]
        size = float(np.sqrt(np.trace(H[0, 0]) / G[0, 0] - centre @ centre))
        w = np.stack([sign_field(self.positions + shift, centre, size) for shift in (0, size)], 1)
        w[:, 1] /= size
        field = np.asfortranarray(w.reshape(-1, 1))
        overlap = gram(comm, modes, self.apply_mass(field))[:, 0]
        return Inertia(float(G[0, 0]), S, H, np.where(overlap < 0, -1.0, 1.0))

    def destroy(self) -> None:
        """Free all matrices."""
        for matrix in (self.stiffness, self.mass_matrix, *self.couplings):
            matrix.destroy()


def spin_matrices() -> list[Array]:
    """W with the acceleration W x of ω_iω_j = 1, for all pairs in `Stiffening.spin`'s order."""
    result: list[Array] = []
    for i, j in SPINS:
        W: Array = np.zeros((3, 3))
        if i == j:
            W -= np.eye(3)
        W[i, j] += 1.0
        if i != j:
            W[j, i] += 1.0
        result.append(W)
    return result


def beam_problem(model: BeamModel) -> BeamProblem:
    """Assemble all of a beam's matrices.

    Raises:
        ValueError: Stiffness or density is not positive everywhere.

    Note: Collective.
    """
    V, beam = model.space, model.beam
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    K = fem_petsc.assemble_matrix(fem.form(beam.elastic_stiffness(u, v)))
    K.assemble()
    W = fem.Constant(model.mesh, np.zeros((3, 3), dtype=default_scalar_type))
    a, b, density = beam.field(u), beam.field(v), beam.material.density
    weighted = fem.form(
        beam.over_section(
            lambda y, z: (
                density
                * ufl.dot(ufl.dot(W, a.in_body(a.at(y, z))), b.in_body(b.at(y, z)))
                * beam.measure
            )
        )
    )

    def coupling(weights: Array) -> PETSc.Mat:
        W.value[:] = weights
        matrix = fem_petsc.assemble_matrix(weighted)
        matrix.assemble()
        return matrix

    units = np.eye(9).reshape(9, 3, 3)  # the row's component a, the column's b: W[a, b] = 1
    couplings = tuple(coupling(unit) for unit in units)
    M = coupling(np.eye(3))
    for matrix, what in ((K, "stiffness"), (M, "density")):
        diagonal = matrix.getDiagonal()
        _, smallest = diagonal.min()
        diagonal.destroy()
        if not smallest > 0:
            raise InputError(f"the {what} of the beam is not positive everywhere")
    first, positions = _loads(model, W, v)
    return BeamProblem(model, K, M, couplings, positions, first, _moments(model, W, v))


def _loads(model: BeamModel, W: fem.Constant, v: Any) -> tuple[Array, Array]:
    """∫ρ v^a and ∫ρ X^a v^b."""
    beam, V = model.beam, model.space
    b, density = beam.field(v), beam.material.density
    shift = fem.Constant(model.mesh, np.zeros(3, dtype=default_scalar_type))
    form = fem.form(
        beam.over_section(
            lambda y, z: (
                density
                * ufl.dot(shift + ufl.dot(W, b.position_at(y, z)), b.in_body(b.at(y, z)))
                * beam.measure
            )
        )
    )

    def load(shifted: Array, weights: Array) -> Array:
        shift.value[:], W.value[:] = shifted, weights
        vector = fem.assemble_vector(form)
        vector.scatter_reverse(la.InsertMode.add)
        return vector.array[: 6 * V.dofmap.index_map.size_local].copy()

    none = np.zeros((3, 3))
    first = np.stack([load(e, none) for e in np.eye(3)], axis=1)
    units = np.eye(9).reshape(9, 3, 3)  # v's component b, X's a: W[b, a] = 1
    positions = np.stack([load(np.zeros(3), unit.T) for unit in units], axis=1)
    return first, positions.reshape(-1, 3, 3)


def _moments(model: BeamModel, W: fem.Constant, v: Any) -> Array:
    """∫ρ [1, X] [1, X]ᵀ."""
    beam = model.beam
    b, density = beam.field(v), beam.material.density
    one = fem.Constant(model.mesh, default_scalar_type(0.0))
    shift = fem.Constant(model.mesh, np.zeros(3, dtype=default_scalar_type))

    def fibre(y: Expr, z: Expr) -> ufl.Form:
        X = b.position_at(y, z)
        return density * (one + ufl.dot(shift, X) + ufl.dot(ufl.dot(W, X), X)) * beam.measure

    form = fem.form(beam.over_section(fibre))
    G = np.zeros((4, 4))
    for i in range(4):
        for j in range(i + 1):
            one.value, shift.value[:], W.value[:] = 0.0, 0.0, 0.0
            if i == 0:
                one.value = 1.0
            elif j == 0:
                shift.value[i - 1] = 1.0
            else:
                W.value[i - 1, j - 1] = 1.0
            G[i, j] = G[j, i] = model.mesh.comm.allreduce(fem.assemble_scalar(form))
    return model.mesh.comm.bcast(G, root=0)
