"""Assembly of the matrices of a beam for analyses that also apply to solids.

A `BeamProblem` replaces the `ElasticProblem` of a solid: its vectors have six components (d, θ) per
vertex, and rotations are part of every rigid motion, interface and load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem, la
from petsc4py import PETSc
from ufl.core.expr import Expr

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import Bore, Interface, LoadPattern, MaterialPoint, Skin, Stiffening
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import assembled_matrix
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.inertia import Inertia, sign_field
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.fem.modal.spectrum import ritz_estimate
from dolfinx_mbd.fem.operators import spin_matrix
from dolfinx_mbd.forms.beams import Beam
from dolfinx_mbd.reduction.projection import Contents
from dolfinx_mbd.reduction.stiffening import UnitCases, inertia_relief
from dolfinx_mbd.structures.beams.beam_shapes import beam_points, beam_skin
from dolfinx_mbd.structures.beams.model import BeamModel, rigid_modes

Combination: TypeAlias = Callable[[Callable[[Beam], ufl.Form]], ufl.Form]


@dataclass(eq=False)
class BeamProblem:
    """K, M and the inertia couplings of a beam, with the interface of an `ElasticProblem`."""

    model: BeamModel
    stiffness: PETSc.Mat  # K of the free beam
    mass_matrix: PETSc.Mat
    couplings: tuple[PETSc.Mat, ...]  # entry 3a + b: ∫ρ N_i^a N_j^b, N_i: displacement of dof i
    position_couplings: Array  # ∫ρ X^a N_i^b with the position X, shape (owned dofs, 3, 3)
    prestress: Any = None

    dim = 3
    num_rigid = 6
    supported = False

    def __post_init__(self) -> None:
        model = self.model
        self.comm, self.space, self.positions = model.mesh.comm, model.space, model.positions
        self.num_owned, self.num_dofs = 6 * len(model.positions), 6 * len(model.chain)
        self.rigid_motions = partial(rigid_modes, model)

    def mass(self) -> PETSc.Mat:
        """Return a copy of M; the caller destroys it."""
        return self.mass_matrix.copy()

    def inertia_matrix(self, W: Array) -> PETSc.Mat:
        """Return ∫ρ (W u)·v for W (3, 3) with the pattern of K; the caller destroys it."""
        result = self.mass_matrix.copy()
        result.scale(0.0)
        same_pattern = PETSc.Mat.Structure.SAME_NONZERO_PATTERN
        for weight, matrix in zip(W.ravel(), self.couplings, strict=True):
            if weight:
                result.axpy(float(weight), matrix, structure=same_pattern)
        return result

    def apply_mass(self, X: Array) -> Array:
        """Return M X for X of shape (owned dofs, k)."""
        return multiply(self.mass_matrix, X)

    def spin_loads(self) -> Array:
        """Return the centrifugal loads of the six unit products ω_iω_j, shape (owned dofs, 6).

        The load of an angular velocity ω is -∫ρ (ω×(ω×x))·v.
        """
        return np.stack([self.motion_load(np.zeros(3), W) for W in spin_matrices()], axis=1)

    def motion_load(self, acceleration: Array, W: Array) -> Array:
        """Return the inertia load -∫ρ (a + W x)·v of the undeformed body, shape (owned dofs,)."""
        translation = self.rigid_motions()[:, :3] @ acceleration
        load = self.apply_mass(translation[:, None])[:, 0]
        return -load - np.einsum("iab,ba->i", self.position_couplings, W)

    def first_square(self) -> float:
        """Return an upper bound of the first elastic ω² of the free beam."""
        model = self.model
        s = model.chain @ model.direction
        size = (s[-1] - s[0]) / 2
        xi = (self.positions @ model.direction - (s[-1] + s[0]) / 2) / size
        # Displacement and rotation (index 1) in the axes of the beam, x along it, of four motions
        # (last index): quadratic extension, two quadratic bending motions, and linear torsion
        local = np.zeros((len(xi), 2, 3, 4))
        local[:, 0, [0, 1, 2], [0, 1, 2]] = size * xi[:, None] ** 2
        local[:, 1, 2, 1], local[:, 1, 1, 2], local[:, 1, 0, 3] = 2 * xi, -2 * xi, xi
        Q = np.einsum("ab,npbk->npak", np.asarray(model.axes), local).reshape(-1, 4)
        R = self.rigid_motions(model.chain.mean(axis=0))
        return ritz_estimate(self, np.asfortranarray(np.hstack([R, Q])), R)  # type: ignore[arg-type]

    def inertia(self, modes: Array) -> Inertia:
        """Return the moments of x and of modes (owned dofs, n), as `fem.inertia` does for a solid.

        The second moments of x follow from the motions e_c × x of rotations.
        """
        comm = self.comm
        X = np.asfortranarray(np.hstack([self.rigid_motions(), modes]))
        F = gram(comm, X, self.apply_mass(X[:, :3]))
        P = gram(comm, X, self.position_couplings.reshape(-1, 9)).reshape(-1, 3, 3)
        C = [gram(comm, modes, multiply(matrix, modes)) for matrix in self.couplings]
        mass, S, H = moments(F, P, np.array(C))
        centre = S[0] / mass
        # An arbitrary field fixes the signs of modes; that at shifted points serves for rotations
        size = float(np.sqrt(np.trace(H[0, 0]) / mass - centre @ centre))
        w = np.stack([sign_field(self.positions + shift, centre, size) for shift in (0, size)], 1)
        w[:, 1] /= size
        overlap = gram(comm, modes, self.apply_mass(w.reshape(-1, 1)))[:, 0]
        return Inertia(mass, S, H, np.where(overlap < 0, -1.0, 1.0))

    def stiffening(
        self, cases: UnitCases, vectors: Array, frames: tuple[Interface, ...], contents: Contents
    ) -> Stiffening:
        """Return the geometric stiffness of all unit loads.

        Bodies of solid cells need a correction for the rotations of interfaces, see
        `dolfinx_mbd.reduction.stiffening`. Beams need no correction, because the rotations of nodes
        and of interfaces are both rotation vectors.
        """
        solid: Any = self
        R, n = self.rigid_motions(), vectors.shape[1]
        relief = inertia_relief(
            solid, contents.interfaces, R, self.apply_mass(R), self.spin_loads()
        )
        accelerations = -np.array([spin_matrix(alpha) for alpha in relief[3:].T])
        accelerations[: len(SPINS)] += spin_matrices()
        reduced = np.zeros((len(accelerations), n, n))
        matrices = initial_stress_matrices(self.model, cases.displacements, accelerations)
        for c, A in enumerate(matrices):
            K = gram(self.comm, vectors, multiply(A, vectors))
            A.destroy()
            reduced[c] = 0.5 * (K + K.T)
        return Stiffening(reduced[:6], reduced[6:].reshape(len(frames), 6, n, n), cases.work)

    def points(self, vectors: Array, points: Mapping[str, Any]) -> tuple[MaterialPoint, ...]:
        """Return the modes at material points."""
        return beam_points(self.model, self.model.gather(vectors), points)

    def skin(self, vectors: Array) -> Skin:
        """Return a surface around the axis with its modes."""
        return beam_skin(self.model, self.model.gather(vectors))

    def loads(self, vectors: Array, contents: Contents) -> tuple[LoadPattern, ...]:
        """Return no loads, which beams do not have."""
        return ()

    def bores(
        self, vectors: Array, frames: tuple[Interface, ...], contents: Contents
    ) -> tuple[Bore, ...]:
        """Return no bores, which beams do not have."""
        return ()

    def destroy(self) -> None:
        """Destroy all matrices."""
        for matrix in (self.stiffness, self.mass_matrix, *self.couplings):
            matrix.destroy()


def moments(F: Array, P: Array, C: Array) -> tuple[float, Array, Array]:
    """Return the mass, the first moments S and the second moments H of a body.

    As in `ReducedBody`, S (n + 1, 3) and H (n + 1, n + 1, 3, 3) are those of the position and of
    the n modes. The results are linear functions of three arrays:

    Args:
        F: XᵀM X₃ of rigid motions and modes X and the translations X₃, shape (6 + n, 3).
        P: ∫ρ x^a ψ_k^b of rigid motions and modes ψ_k, shape (6 + n, 3, 3), which follow from
            `BeamProblem.position_couplings`.
        C: Projections of `BeamProblem.couplings` on the modes, shape (9, n, n).
    """
    n = C.shape[1]
    S, H = np.zeros((n + 1, 3)), np.zeros((n + 1, n + 1, 3, 3))
    S[0], S[1:] = P[0, :, 0], F[6:]
    # The y component of the unit rotation about z (motion 5) is x, and so on: ∫ρ X X of positions X
    H[0, 0] = np.stack([P[5, :, 1], P[3, :, 2], P[4, :, 0]], axis=1)
    H[0, 1:] = P[6:]
    H[1:, 0] = H[0, 1:].transpose(0, 2, 1)
    H[1:, 1:] = C.reshape(3, 3, n, n).transpose(2, 3, 0, 1)
    return float(F[0, 0]), S, (H + H.transpose(1, 0, 3, 2)) / 2


def spin_matrices() -> Array:
    """Return W with ω×(ω×x) = W x per unit of each product ω_iω_j in `SPINS`, shape (6, 3, 3)."""
    unit = [spin_matrix(e) for e in np.eye(3)]
    return np.array([unit[i] @ unit[j] + (i != j) * unit[j] @ unit[i] for i, j in SPINS])


def beam_problem(model: BeamModel) -> Any:
    """Assemble a `BeamProblem`; functions of an `ElasticProblem` accept it.

    Raises an error if the stiffness or the density is not positive everywhere.
    """
    matrices = beam_matrices(model, lambda form_of: form_of(model.beam))
    stiffness, mass, *_ = matrices
    for matrix, property_name in ((stiffness, "stiffness"), (mass, "density")):
        diagonal = matrix.getDiagonal()
        _, smallest = diagonal.min()
        diagonal.destroy()
        if not smallest > 0:
            raise InputError(f"the {property_name} of the beam is not positive everywhere")
    return BeamProblem(model, *matrices)


def beam_matrices(
    model: BeamModel, combine: Combination
) -> tuple[PETSc.Mat, PETSc.Mat, tuple[PETSc.Mat, ...], Array]:
    """Return K, M and the couplings of a `BeamProblem`.

    Args:
        model: The beam.
        combine: Function that takes a function `form_of(beam)` and returns a form. For the matrices
            themselves it returns `form_of(model.beam)`; for derivatives, a derivative of it.
    """
    V = model.space
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    K = assembled_matrix(combine(lambda beam: beam.elastic_stiffness(u, v)))
    W = fem.Constant(model.mesh, np.zeros((3, 3), dtype=default_scalar_type))

    def integral(beam: Beam, x: Callable[[Expr, Expr], Expr]) -> ufl.Form:
        """Return ∫ρ (W x)·v for a function x(y, z) of the section."""
        b, density = beam.field(v), beam.material.density
        return beam.over_section(
            lambda y, z: (
                density * ufl.dot(ufl.dot(W, x(y, z)), b.in_body(b.at(y, z))) * beam.measure
            )
        )

    def of_displacement(beam: Beam) -> ufl.Form:
        """Return ∫ρ (W u)·v of displacements u."""
        a = beam.field(u)
        return integral(beam, lambda y, z: a.in_body(a.at(y, z)))

    bilinear = compiled_form(combine(of_displacement))
    linear = compiled_form(combine(lambda beam: integral(beam, beam.field(v).position_at)))

    def coupling(weights: Array) -> PETSc.Mat:
        """Return ∫ρ (W u)·v for a matrix W."""
        W.value[:] = weights
        return assembled_matrix(bilinear)

    def load(weights: Array) -> Array:
        """Return ∫ρ (W x)·v of the positions x for a matrix W."""
        W.value[:] = weights
        vector = fem.assemble_vector(linear)
        vector.scatter_reverse(la.InsertMode.add)
        return vector.array[: 6 * V.dofmap.index_map.size_local].copy()

    units = np.eye(9).reshape(9, 3, 3)  # W[a, b] = 1 couples component a of v with b of u
    couplings = tuple(coupling(unit) for unit in units)
    positions = np.stack([load(unit.T) for unit in units], axis=1).reshape(-1, 3, 3)
    return K, coupling(np.eye(3)), couplings, positions


def initial_stress_matrices(
    model: BeamModel,
    displacements: Array,
    accelerations: Array,
    combine: Combination | None = None,
) -> Iterator[PETSc.Mat]:
    """Yield K_σ, with second-order rotations, for each column of displacements (owned dofs, k).

    In the motion of a column, each point x has the acceleration W x; `accelerations` contains the
    matrices W, shape (k, 3, 3). Only the variation of this acceleration over a section has an
    effect. The caller destroys the matrices. `combine` is described in `beam_matrices`.
    """
    V, axes = model.space, np.asarray(model.axes)
    W = fem.Constant(model.mesh, np.zeros((3, 3), dtype=default_scalar_type))
    q, u, v = fem.Function(V), ufl.TrialFunction(V), ufl.TestFunction(V)

    def stiffness(beam: Beam) -> ufl.Form:
        """Return the form of K_σ under the stress of the displacement q."""

        def body_force(y: Expr, z: Expr) -> Expr:
            """Return the part of the inertia force that varies over the section."""
            return -beam.material.density * ufl.dot(W, ufl.as_vector([0.0, y, z]))

        return beam.initial_stress_stiffness(u, v, q, body_force=body_force)

    form = compiled_form(stiffness(model.beam) if combine is None else combine(stiffness))
    for displacement, acceleration in zip(displacements.T, accelerations, strict=True):
        as_function(V, displacement, q)
        W.value[:] = axes.T @ acceleration @ axes
        yield assembled_matrix(form)
