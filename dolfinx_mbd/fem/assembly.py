"""Stiffness and mass matrices of an `ElasticModel`.

All inertia terms use one *scalar* mass matrix M_s with one degree of freedom per block of the
displacement space; M = M_s ⊗ I is built from M_s without assembly. On a plane mesh, a displacement
has two components and there are three rigid motions. Integrals over a plane mesh are multiplied by
the thickness.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
import ufl
from dolfinx import default_scalar_type, fem, jit, la
from dolfinx.fem import petsc as fem_petsc
from numpy.typing import NDArray
from petsc4py import PETSc
from ufl.core.expr import Expr

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.fem.material_fields import BodyMaterials
from dolfinx_mbd.fem.operators import inertia_matrix
from dolfinx_mbd.forms import Plane, geometric_stiffness, strain
from dolfinx_mbd.parallel import raise_together

VECTOR_OPERATIONS = ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math")
"""Options of C compilers for vector operations in sums: a stiffness takes 0.6 of the time."""


@dataclass(frozen=True, eq=False)
class ElasticProblem:
    """Stiffness and scalar mass matrix of a free body, and the space of its displacements."""

    space: fem.FunctionSpace  # blocked Lagrange
    stiffness: PETSc.Mat  # K, no boundary conditions
    scalar_mass: PETSc.Mat  # M_s, one row per block of the space; M = M_s ⊗ I
    positions: Array  # positions x of the nodes of the owned blocks, shape (owned blocks, dim), m
    thickness: float | None = None  # thickness of a plane body, m
    plane: Plane | None = None  # None in space, or with a user-defined stiffness form
    materials: BodyMaterials | None = None  # None with a user-defined stiffness form
    prestress: Any = None  # a `Prestress`; K contains its stiffness
    supported: bool = False  # whether a user-defined stiffness form resists rigid motions

    @property
    def dim(self) -> int:
        """Number of components of a displacement: 3, or 2 in the plane."""
        return int(self.space.dofmap.bs)

    @property
    def num_rigid(self) -> int:
        """Number of rigid motions, and of coordinates of an interface: 6, or 3 in the plane."""
        return num_rigid_motions(self.dim)

    @property
    def comm(self) -> Any:
        """MPI communicator of the mesh."""
        return self.space.mesh.comm

    @property
    def num_owned(self) -> int:
        """Number of owned displacement degrees of freedom of this rank."""
        return self.dim * self.space.dofmap.index_map.size_local

    @property
    def num_dofs(self) -> int:
        """Number of displacement degrees of freedom of all ranks."""
        return self.dim * self.space.dofmap.index_map.size_global

    def mass(self) -> PETSc.Mat:
        """Return M = M_s ⊗ I without the zeros between components; the caller destroys it.

        Its sparsity pattern is a subset of the pattern of K (a third of it in space). Collective.
        """
        return inertia_matrix(self, np.eye(self.dim))

    def apply_mass(self, X: Array) -> Array:
        """Return M X through the scalar mass matrix, X of shape (owned dofs, k) (collective)."""
        return unblocked(multiply(self.scalar_mass, blocked(X, self.dim)), self.dim)

    def rigid_motions(
        self, point: Array | None = None, blocks: NDArray[np.int32] | None = None
    ) -> Array:
        """Return rigid motions of some or all owned blocks about a point; see `rigid_motions`."""
        return rigid_motions(self.positions if blocks is None else self.positions[blocks], point)

    def spin_loads(self) -> Array:
        """Return loads -∫ρ (ω×(ω×x))·v per unit of each ω_iω_j, (owned dofs, 6) (collective)."""
        return self.apply_mass(spin_fields(self.positions))

    def destroy(self) -> None:
        """Free both matrices."""
        self.stiffness.destroy()
        self.scalar_mass.destroy()


def blocked(X: Array, dim: int = 3) -> Array:
    """Return vectors (owned dofs, k) as scalar fields (owned blocks, dim·k), column by column."""
    rows, columns = len(X) // dim, X.shape[1]
    fields = X.reshape(rows, dim, columns).transpose(0, 2, 1)
    return np.asfortranarray(fields.reshape(rows, dim * columns))


def unblocked(fields: Array, dim: int = 3) -> Array:
    """Return the vectors (owned dofs, k) of scalar fields (owned blocks, dim·k); see `blocked`."""
    rows, columns = len(fields), fields.shape[1] // dim
    vectors = fields.reshape(rows, columns, dim).transpose(0, 2, 1)
    return np.asfortranarray(vectors.reshape(dim * rows, columns))


def projected(comm: Any, A: PETSc.Mat, fields: Array, dim: int) -> Array:
    """Return ΨᵀAΨ for `blocked` vectors Ψ and a scalar matrix A that acts on each component."""
    image = multiply(A, fields)
    parts = [gram(comm, fields[:, a::dim], image[:, a::dim]) for a in range(dim)]
    return np.asarray(np.sum(parts, axis=0))


def num_rigid_motions(dim: int) -> int:
    """Return the number of rigid motions in the plane (3) or in space (6)."""
    return dim * (dim + 1) // 2


def rigid_motions(positions: Array, point: Array | None = None) -> Array:
    """Return the rigid motions at positions (m, dim): translations, then rotations about a point.

    The shape is (3 m, 6), or (2 m, 3) in the plane with the rotation about z; the components of a
    position are consecutive rows. The point, by default the origin, has at least `dim` coordinates.
    The array is in Fortran order.
    """
    dim = positions.shape[1]
    r = positions if point is None else positions - np.asarray(point)[:dim]
    motions = np.zeros((len(r), dim, num_rigid_motions(dim)), order="F")
    motions[:, :, :dim] = np.eye(dim)
    if dim == 2:
        motions[:, 0, 2], motions[:, 1, 2] = -r[:, 1], r[:, 0]
    else:
        for i in range(3):
            motions[:, :, 3 + i] = np.cross(np.eye(3)[i], r)
    return np.asfortranarray(motions.reshape(len(r) * dim, motions.shape[2]))


def spin_fields(positions: Array) -> Array:
    """Return accelerations −ω×(ω×x) per unit of each product ω_iω_j, m, shape (dim·m, 6).

    For i ≠ j the field is −(e_i x_j + e_j x_i), the sum of the fields for ω_iω_j and ω_jω_i.
    """
    x, dim = in_space(positions), positions.shape[1]
    fields = np.zeros((len(x), 3, 6))
    for k, (i, j) in enumerate(SPINS):
        if i == j:
            fields[:, :, k] = x
            fields[:, i, k] = 0.0
        else:
            fields[:, i, k], fields[:, j, k] = -x[:, j], -x[:, i]
    return np.asfortranarray(fields[:, :dim].reshape(dim * len(x), 6))


def point_motion(r: Array, dim: int = 3) -> Array:
    """Return the motion (d, θ) of a point at r for unit rigid motions about the origin.

    The shape is (6, 6). In the plane the motion is (ux, uy, θz), and the shape is (3, 3).
    """
    motion = np.eye(num_rigid_motions(dim))
    motion[:dim] = rigid_motions(r[None, :dim])
    return motion


def in_space(vectors: Array, axis: int = -1) -> Array:
    """Return vectors with three components along an axis; z = 0 is appended to plane vectors."""
    width = [(0, 0)] * vectors.ndim
    width[axis] = (0, 3 - vectors.shape[axis])
    return np.pad(vectors, width) if width[axis][1] else vectors


def elastic_problem(model: ElasticModel) -> ElasticProblem:
    """Assemble the stiffness matrix K and the scalar mass matrix of a model, without prestress.

    Raise an error on all ranks if a diagonal entry is not positive; a user-defined stiffness is not
    checked. Collective.
    """
    V, density, materials = model.displacements, model.mass_density, model.materials
    thickness, factor = None, 1
    if model.thickness is not None:
        thickness = float(model.thickness)
        factor = fem.Constant(V.mesh, default_scalar_type(thickness))
    if materials is None:
        K = assembled_matrix(model.stiffness)
    else:
        u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
        energy = ufl.inner(materials.stress(u), strain(v))
        K = assembled_matrix(_vectorized(factor * energy * ufl.dx))
        _check_diagonal(
            K,
            "the stiffness is not positive everywhere: the matrix has an entry <= 0 on its "
            "diagonal; a material constant is out of range somewhere",
        )
    W = scalar_space(V)
    equal = np.array_equal(W.dofmap.list, V.dofmap.list)
    text = None if equal else "the scalar space is not numbered like the blocks of the space"
    raise_together(V.mesh.comm, text, SolverError)
    p, q = ufl.TrialFunction(W), ufl.TestFunction(W)
    Ms = assembled_matrix(factor * density * p * q * ufl.dx)
    _check_diagonal(Ms, "the density is not positive everywhere: the mass matrix has an entry <= 0")
    dim = V.dofmap.bs
    x = fem.Function(V)
    x.interpolate(lambda points: points[:dim])
    positions = x.x.array[: dim * V.dofmap.index_map.size_local].reshape(-1, dim).copy()
    return ElasticProblem(V, K, Ms, positions, thickness, model.plane, materials)


def scalar_space(space: fem.FunctionSpace) -> fem.FunctionSpace:
    """Return the space of one component of a displacement (collective)."""
    return fem.functionspace(space.mesh, space.ufl_element().sub_elements[0])


def _vectorized(form: ufl.Form) -> fem.Form:
    """Compile a form with `VECTOR_OPERATIONS` in addition to the user's options (collective)."""
    options = [*jit.get_options()["cffi_extra_compile_args"], *VECTOR_OPERATIONS]
    return compiled_form(form, jit_options={"cffi_extra_compile_args": options})


def assembled_matrix(form: ufl.Form | fem.Form) -> PETSc.Mat:
    """Assemble a bilinear form; the caller destroys the matrix (collective)."""
    A = fem_petsc.assemble_matrix(compiled_form(form))
    A.assemble()
    return A


def reproducible_matrix(form: ufl.Form | fem.Form) -> PETSc.Mat:
    """Assemble a symmetric form with the same digits in each run; the caller destroys the matrix.

    A matrix of PETSc adds the entries of other ranks in the order of their arrival, which changes
    from run to run if more than two ranks share a node. DOLFINx adds them in the order of ranks.
    Collective.
    """
    compiled = compiled_form(form)
    if compiled.mesh.comm.size < 3:
        return assembled_matrix(compiled)
    A = fem.create_matrix(compiled, la.BlockMode.expanded)
    fem.assemble_matrix(A, compiled)
    A.scatter_reverse()
    unknowns = A.index_map(0)
    num_owned, num_global = unknowns.size_local, unknowns.size_global
    indptr = A.indptr[: num_owned + 1]  # without the rows of ghosts
    columns = A.index_map(1).local_to_global(A.indices[: indptr[-1]])
    rows = scipy.sparse.csr_matrix(
        (A.data[: indptr[-1]], columns, indptr), shape=(num_owned, num_global)
    )
    rows.sort_indices()
    indptr, columns = (a.astype(PETSc.IntType) for a in (rows.indptr, rows.indices))
    return PETSc.Mat().createAIJ(
        ((num_owned, num_global), (num_owned, num_global)),
        bsize=compiled.function_spaces[0].dofmap.bs,
        csr=(indptr, columns, rows.data),
        comm=compiled.mesh.comm,
    )


def _check_diagonal(A: PETSc.Mat, message: str) -> None:
    """Raise an error on all ranks if a diagonal entry is NaN or not positive."""
    diagonal = A.getDiagonal()
    positive = bool((diagonal.array_r > 0).all())
    diagonal.destroy()
    raise_together(A.comm.tompi4py(), None if positive else message, InputError)


def geometric_matrix(
    problem: ElasticProblem, stress: Expr, measure: ufl.Measure = ufl.dx
) -> PETSc.Mat:
    """Assemble the geometric stiffness K_σ of a stress (dim, dim), Pa; the caller destroys it."""
    W = scalar_space(problem.space)
    p, q = ufl.TrialFunction(W), ufl.TestFunction(W)
    A = assembled_matrix(geometric_stiffness(p, q, stress, measure))
    if problem.thickness is not None:
        A.scale(problem.thickness)
    K = inertia_matrix(replace(problem, scalar_mass=A), np.eye(problem.dim))
    A.destroy()
    return K
