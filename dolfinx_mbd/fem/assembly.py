"""Stiffness and mass matrices of an `ElasticModel`.

All inertia comes from one *scalar* mass matrix: its degrees of freedom are the blocks of the
displacement space, so that the vector mass matrix is M = M_s ⊗ I, built in place of assembled.
A plane mesh has two components of displacement and three rigid motions; its integrals are
multiplied by the thickness, so that M and K are those of a body.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.fem import petsc as fem_petsc
from numpy.typing import NDArray
from petsc4py import PETSc
from ufl.core.expr import Expr

from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.fem.material_fields import BodyMaterials
from dolfinx_mbd.fem.operators import inertia_matrix
from dolfinx_mbd.forms import Plane, geometric_stiffness, strain
from dolfinx_mbd.linalg.blocks import gram, multiply
from dolfinx_mbd.parallel import agreed, raise_together

__all__ = [
    "ElasticProblem",
    "blocked",
    "check_rigid_motions",
    "elastic_problem",
    "geometric_matrix",
    "in_space",
    "num_rigid_motions",
    "point_motion",
    "projected",
    "rigid_motions",
    "spin_fields",
    "unblocked",
]

Array = NDArray[np.float64]

RIGID_TOLERANCE = 1e-6
"""‖K R‖ over ‖K‖‖R‖ above which a stiffness is said to resist rigid motion."""


@dataclass(frozen=True, eq=False)
class ElasticProblem:
    """Stiffness and scalar mass matrix of a free body, and the space of its displacements.

    Attributes:
        space: Displacement space, blocked Lagrange.
        stiffness: K, no boundary conditions.
        scalar_mass: M_s, one row per block of the space; M = M_s ⊗ I.
        positions: x at the owned blocks, shape (owned blocks, dim).
        thickness: Of a plane body, m; None in space.
        plane: "strain" or "stress"; None in space, or with the user's own stiffness.
        materials: What the body is made of, and its stress; None with the user's own stiffness.
        prestress: Whose stiffness is a part of K; None if there is none.
        supported: Whether K resists rigid motions: the user's own stiffness has supports.
    """

    space: fem.FunctionSpace
    stiffness: PETSc.Mat
    scalar_mass: PETSc.Mat
    positions: Array
    thickness: float | None = None
    plane: Plane | None = None
    materials: BodyMaterials | None = None
    prestress: Any = None
    supported: bool = False

    @property
    def dim(self) -> int:
        """Components of a displacement: 3, or 2 in the plane."""
        return int(self.space.dofmap.bs)

    @property
    def num_rigid(self) -> int:
        """Rigid motions, and coordinates of an interface: 6, or 3 in the plane."""
        return num_rigid_motions(self.dim)

    @property
    def comm(self) -> Any:
        """The mesh's MPI communicator."""
        return self.space.mesh.comm

    @property
    def num_owned(self) -> int:
        """Owned displacement degrees of freedom on this rank."""
        return self.dim * self.space.dofmap.index_map.size_local

    @property
    def num_dofs(self) -> int:
        """Displacement degrees of freedom of all ranks."""
        return self.dim * self.space.dofmap.index_map.size_global

    def mass(self) -> PETSc.Mat:
        """M = M_s ⊗ I without the zeros between components; the caller destroys it.

        Its pattern is a part of that of K (a third in space), and so is the time of a product.

        Note: Collective.
        """
        return inertia_matrix(self, np.eye(self.dim))

    def apply_mass(self, X: Array) -> Array:
        """M X through the scalar mass matrix, X of shape (owned dofs, k).

        Note: Collective.
        """
        return unblocked(multiply(self.scalar_mass, blocked(X, self.dim)), self.dim)

    def rigid_motions(
        self, point: Array | None = None, blocks: NDArray[np.int32] | None = None
    ) -> Array:
        """Rigid motions about a point as displacements of owned blocks, by default of all.

        Shape (dofs of these blocks, 6), in the plane 3; see the function `rigid_motions`.
        """
        return rigid_motions(self.positions if blocks is None else self.positions[blocks], point)

    def spin_loads(self) -> Array:
        """Centrifugal loads -∫ρ (ω×(ω×x))·v for ω_iω_j = 1, shape (owned dofs, 6).

        Note: Collective.
        """
        return self.apply_mass(spin_fields(self.positions))

    def destroy(self) -> None:
        """Free both matrices."""
        self.stiffness.destroy()
        self.scalar_mass.destroy()


def blocked(X: Array, dim: int = 3) -> Array:
    """Vectors (owned dofs, k) as scalar fields (owned blocks, dim·k), column by column."""
    rows, columns = len(X) // dim, X.shape[1]
    fields = X.reshape(rows, dim, columns).transpose(0, 2, 1)
    return np.asfortranarray(fields.reshape(rows, dim * columns))


def unblocked(F: Array, dim: int = 3) -> Array:
    """The inverse of `blocked`."""
    rows, columns = len(F), F.shape[1] // dim
    vectors = F.reshape(rows, columns, dim).transpose(0, 2, 1)
    return np.asfortranarray(vectors.reshape(dim * rows, columns))


def projected(comm: Any, A: PETSc.Mat, fields: Array, dim: int) -> Array:
    """ΨᵀA Ψ of a scalar matrix that acts on each component alike, of `blocked` vectors Ψ.

    Note: Collective.
    """
    image = multiply(A, fields)
    parts = [gram(comm, fields[:, a::dim], image[:, a::dim]) for a in range(dim)]
    return np.asarray(np.sum(parts, axis=0))


def num_rigid_motions(dim: int) -> int:
    """Rigid motions in the plane (3) or in space (6)."""
    return dim * (dim + 1) // 2


def rigid_motions(positions: Array, point: Array | None = None) -> Array:
    """The rigid motions at given positions: translations, then rotations about `point`.

    In space three of each; in the plane two translations and the rotation about z.

    Args:
        positions: Shape (m, dim), m; dim is 3, or 2 in the plane.
        point: Shape (3,) or (dim,); the origin by default.

    Returns:
        Shape (dim·m, 6) or, in the plane, (2 m, 3), blocked by position, Fortran order.
    """
    dim = positions.shape[1]
    r = positions if point is None else positions - np.asarray(point)[:dim]
    R = np.zeros((len(r), dim, num_rigid_motions(dim)), order="F")
    for i in range(dim):
        R[:, i, i] = 1.0
    if dim == 2:
        R[:, 0, 2], R[:, 1, 2] = -r[:, 1], r[:, 0]
    else:
        for i in range(3):
            R[:, :, 3 + i] = np.cross(np.eye(3)[i], r)
    return np.asfortranarray(R.reshape(len(r) * dim, R.shape[2]))


def spin_fields(positions: Array) -> Array:
    """Centrifugal accelerations −ω×(ω×x) for ω_iω_j = 1, shape (dim·m, 6), 1/s² per (rad/s)².

    Those of i ≠ j are −(e_i x_j + e_j x_i): one case for both orders.
    """
    x, dim = in_space(positions), positions.shape[1]
    b = np.zeros((len(x), 3, 6))
    for c, (i, j) in enumerate(SPINS):
        if i == j:
            b[:, :, c] = x
            b[:, i, c] = 0.0
        else:
            b[:, i, c], b[:, j, c] = -x[:, j], -x[:, i]
    return np.asfortranarray(b[:, :dim].reshape(dim * len(x), 6))


def point_motion(r: Array, dim: int = 3) -> Array:
    """Motion (d, θ) of a point at r for unit rigid motions about the origin, shape (6, 6).

    In the plane the motion is (ux, uy, θz), shape (3, 3).
    """
    motion = np.eye(num_rigid_motions(dim))
    motion[:dim] = rigid_motions(r[None, :dim])
    return motion


def in_space(vectors: Array, axis: int = -1) -> Array:
    """Vectors of two components along an axis with z = 0 as a third; those of three as they are."""
    short = 3 - vectors.shape[axis]
    if not short:
        return vectors
    width = [(0, 0)] * vectors.ndim
    width[axis] = (0, short)
    return np.pad(vectors, width)


def elastic_problem(model: ElasticModel) -> ElasticProblem:
    """Assemble the stiffness matrix K and the scalar mass matrix of a model, without prestress.

    Raises:
        InputError: A matrix is not positive; the same error on every rank.

    Note: Collective over the communicator of the mesh.
    """
    V, rho = model.displacements, model.mass_density
    t = None if model.thickness is None else float(model.thickness)
    if t is not None:
        rho = fem.Constant(V.mesh, default_scalar_type(t)) * rho
    if model.materials is None:
        K = fem_petsc.assemble_matrix(fem.form(model.stiffness))
        K.assemble()
    else:
        K = _stiffness(V, model.materials, t)
    Ms = _scalar_mass(V, rho)
    x = fem.Function(V)
    dim = V.dofmap.bs
    x.interpolate(lambda points: points[:dim])
    positions = x.x.array[: dim * V.dofmap.index_map.size_local].reshape(-1, dim).copy()
    return ElasticProblem(V, K, Ms, positions, t, model.plane, model.materials)


def _stiffness(V: fem.FunctionSpace, materials: BodyMaterials, thickness: float | None) -> Any:
    """∫σ:ε, of a plane body times its thickness."""
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    density = ufl.inner(materials.stress(u), strain(v))
    if thickness is not None:
        density = fem.Constant(V.mesh, default_scalar_type(thickness)) * density
    K = fem_petsc.assemble_matrix(fem.form(density * ufl.dx))
    K.assemble()
    diagonal = K.getDiagonal()
    smallest = np.min(V.mesh.comm.allgather(diagonal.array.min(initial=np.inf)))
    diagonal.destroy()
    if not smallest > 0:  # (nor is NaN)
        raise InputError(
            "the stiffness is not positive everywhere: the matrix has an entry <= 0 on its "
            "diagonal; a constant of the material is out of its range somewhere"
        )
    return K


def _scalar_mass(V: fem.FunctionSpace, density: Any) -> PETSc.Mat:
    element = V.ufl_element().sub_elements[0]
    W = fem.functionspace(V.mesh, element)
    same = np.array_equal(W.dofmap.list, V.dofmap.list)
    raise_together(
        V.mesh.comm,
        None if same else "the scalar space is not numbered as the blocks of the space",
        SolverError,
    )
    p, q = ufl.TrialFunction(W), ufl.TestFunction(W)
    Ms = fem_petsc.assemble_matrix(fem.form(density * p * q * ufl.dx))
    Ms.assemble()
    diagonal = Ms.getDiagonal()
    _, smallest = diagonal.min()
    diagonal.destroy()
    if not smallest > 0:
        raise InputError(
            "the density is not positive everywhere: the mass matrix has an entry <= 0"
        )
    return Ms


def geometric_matrix(
    problem: ElasticProblem, stress: Expr, measure: ufl.Measure = ufl.dx
) -> PETSc.Mat:
    """Assemble the geometric stiffness K_σ of a stress; the caller destroys it.

    Args:
        problem: Space, and thickness of a plane body.
        stress: σ₀ as UFL, shape (dim, dim), Pa.
        measure: Measure of the integral.

    Note: Collective.
    """
    W = fem.functionspace(problem.space.mesh, problem.space.ufl_element().sub_elements[0])
    p, q = ufl.TrialFunction(W), ufl.TestFunction(W)
    A = fem_petsc.assemble_matrix(fem.form(geometric_stiffness(p, q, stress, measure)))
    A.assemble()
    if problem.thickness is not None:
        A.scale(problem.thickness)
    K = inertia_matrix(replace(problem, scalar_mass=A), np.eye(problem.dim))
    A.destroy()
    return K


def check_rigid_motions(problem: ElasticProblem) -> None:
    """Raise an error if a prestressed stiffness resists rigid motions R: K R is not zero.

    Note: Collective.
    """
    with agreed(problem.comm):
        centre = np.zeros(problem.dim)
        if len(problem.positions):
            centre = problem.positions.mean(axis=0)
    R = rigid_motions(problem.positions, problem.comm.bcast(centre, root=0))
    size = np.array(
        [np.abs(r).max(initial=0.0) for r in R.T]
        + [np.abs(f).max(initial=0.0) for f in multiply(problem.stiffness, R).T]
    )
    size = np.max(problem.comm.allgather(size), axis=0)
    scale = problem.stiffness.norm(PETSc.NormType.NORM_INFINITY)
    ratio = size[problem.num_rigid :] / (scale * size[: problem.num_rigid])
    if not np.isfinite(ratio).all() or ratio.max() > RIGID_TOLERANCE:
        raise InputError(
            "the stiffness with prestress resists rigid motion (K R is not zero, relative size "
            f"{ratio.max():.1e}): the prestress of the free body is not in equilibrium",
            argument="prestress",
            value=float(ratio.max()),
        )
