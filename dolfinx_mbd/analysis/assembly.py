"""From a mesh, a material or the user's own forms to the matrices that a modal analysis needs.

All inertia comes from one *scalar* mass matrix: its degrees of freedom are the blocks of the
displacement space, so that the vector mass matrix is M = M_s ⊗ I, built in place of assembled.
A plane mesh has two components of displacement and three rigid motions; its integrals are
multiplied by the thickness, so that M and K are those of a body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.fem import petsc as fem_petsc
from dolfinx.mesh import Mesh, MeshTags
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.analysis.given import (
    check_form,
    check_plane,
    check_types,
    checked_density,
    checked_space,
)
from dolfinx_mbd.analysis.la import agreed, multiply, raise_together, require_real
from dolfinx_mbd.analysis.mesh_checks import check_cells
from dolfinx_mbd.analysis.meshing import TaggedMesh
from dolfinx_mbd.forms import Material, Plane, elastic_stiffness

__all__ = [
    "ElasticProblem",
    "FacetGroups",
    "blocked",
    "elastic_problem",
    "facet_groups",
    "in_space",
    "num_rigid_motions",
    "point_motion",
    "rigid_motions",
    "unblocked",
]

Array = NDArray[np.float64]
FacetGroups = Mapping[str, NDArray[np.int32]]

RIGID_TOLERANCE = 1e-6
"""‖K R‖ over ‖K‖‖R‖ above which a stiffness is said to resist rigid motion."""


@dataclass(frozen=True, eq=False)
class ElasticProblem:
    """K, the scalar mass matrix and the space they live on, before any interface is held.

    Attributes:
        space: Displacement space, blocked Lagrange.
        stiffness: K, no boundary conditions.
        scalar_mass: M_s, one row per block of the space; M = M_s ⊗ I.
        positions: x at the owned blocks, shape (owned blocks, dim).
        thickness: Of a plane body, m; None in space.
        plane: "strain" or "stress"; None in space, or with the user's own stiffness.
    """

    space: fem.FunctionSpace
    stiffness: PETSc.Mat
    scalar_mass: PETSc.Mat
    positions: Array
    thickness: float | None = None
    plane: Plane | None = None

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
        dim = self.dim
        indptr, columns, values = self.scalar_mass.getValuesCSR()
        count = np.diff(indptr)
        start = np.zeros(dim * len(count) + 1, dtype=indptr.dtype)
        np.cumsum(np.repeat(count, dim), out=start[1:])
        # Each row of M_s once for each component; entry j came from source[j].
        source = np.repeat(np.repeat(indptr[:-1], dim) - start[:-1], np.repeat(count, dim))
        source += np.arange(start[-1], dtype=indptr.dtype)
        component = np.repeat(
            np.tile(np.arange(dim, dtype=columns.dtype), len(count)), np.diff(start)
        )
        csr = (start, dim * columns[source] + component, values[source])
        return PETSc.Mat().createAIJ(self.stiffness.getSizes(), bsize=dim, csr=csr, comm=self.comm)

    def apply_mass(self, X: Array) -> Array:
        """M X through the scalar mass matrix, X of shape (owned dofs, k).

        Note: Collective.
        """
        return unblocked(multiply(self.scalar_mass, blocked(X, self.dim)), self.dim)

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


def facet_groups(
    mesh: TaggedMesh | Mesh, names: Mapping[str, Any] | Any, facet_tags: MeshTags | None
) -> FacetGroups:
    """Local facets of each interface, whichever way it was named.

    Args:
        mesh: A tagged mesh, whose groups go by name, or a plain mesh with `facet_tags`.
        names: Names of groups, or a mapping from name to group name, tag or array of local facets.
        facet_tags: Tags of facets of a plain mesh.

    Raises:
        ValueError: An unknown group, or one without facets on any rank; the same on every rank.

    Note: Collective.
    """
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, Mapping):
        names = list(names)
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"interface {twice[0]!r} is given twice")
        names = {name: name for name in names}
    return {str(name): _facets(mesh, str(name), key, facet_tags) for name, key in names.items()}


def _facets(
    mesh: TaggedMesh | Mesh, name: str, key: Any, facet_tags: MeshTags | None
) -> NDArray[np.int32]:
    if isinstance(key, str):
        if not isinstance(mesh, TaggedMesh):
            raise ValueError(
                f"interface {name!r}: a plain mesh has no group names; give a mapping from name to "
                "tag and facet_tags, or a TaggedMesh"
            )
        facets = mesh.facets(key)
    elif isinstance(key, (int, np.integer)):
        tags = (
            mesh.facet_tags if facet_tags is None and isinstance(mesh, TaggedMesh) else facet_tags
        )
        if tags is None:
            raise ValueError(f"interface {name!r} is tag {key}, but no facet_tags were given")
        plain = mesh.mesh if isinstance(mesh, TaggedMesh) else mesh
        dim = plain.topology.dim - 1
        if tags.dim != dim:
            raise ValueError(
                f"facet_tags must tag facets (dimension {dim}), these have dimension {tags.dim}"
            )
        facets = tags.find(int(key))
    else:
        facets = np.asarray(key, dtype=np.int32).reshape(-1)
    plain = mesh.mesh if isinstance(mesh, TaggedMesh) else mesh
    comm, dim = plain.comm, plain.topology.dim - 1
    plain.topology.create_entities(dim)
    index_map = plain.topology.index_map(dim)
    count = index_map.size_local + index_map.num_ghosts
    known = np.all((facets >= 0) & (facets < count))
    text = None if known else f"interface {name!r}: some of its facets are not on this mesh"
    raise_together(comm, text)
    if comm.allreduce(len(facets)) == 0:
        shown = "" if key == name else f" ({key!r})" if isinstance(key, (str, int)) else ""
        raise ValueError(f"interface {name!r}{shown} has no facets on this mesh")
    return np.unique(facets).astype(np.int32)


def elastic_problem(
    mesh: TaggedMesh | Mesh,
    material: Material | None,
    *,
    space: fem.FunctionSpace | None = None,
    degree: int = 2,
    stiffness: ufl.Form | None = None,
    density: Any = None,
    plane: Plane | None = None,
    thickness: float | None = None,
) -> ElasticProblem:
    """Check what was given, assemble K and the scalar mass matrix.

    Args:
        mesh: A mesh in space, or a plane one.
        material: Isotropic material; may be missing where `stiffness` and `density` are given.
        space: The user's own displacement space on this mesh; by default Lagrange of `degree`.
        degree: Polynomial degree of the default space.
        stiffness: The user's own bilinear form with arguments on `space`; that of a plane body
            includes the thickness.
        density: Number or UFL expression, kg/m³; the material's by default.
        plane: Of a plane body, "strain" or "stress"; not needed with `stiffness`.
        thickness: Of a plane body, m.

    Raises:
        ValueError: Something does not fit; the same error on every rank.
        RuntimeError: PETSc has complex numbers.

    Note: Collective over the mesh's communicator.
    """
    require_real()
    plain = mesh.mesh if isinstance(mesh, TaggedMesh) else mesh
    check_types(plain, material)
    V = checked_space(plain, space, degree)
    check_cells(plain)
    check_plane(V, plane, thickness, stiffness)
    t = None if thickness is None else float(thickness)
    rho = checked_density(plain, material, density)
    if t is not None:
        rho = fem.Constant(plain, default_scalar_type(t)) * rho
    if stiffness is None:
        if material is None:
            raise ValueError("give a material, or a stiffness form and a density")
        stiffness = _isotropic(V, material, plane, t)
    else:
        check_form(stiffness, V)
    K = fem_petsc.assemble_matrix(fem.form(stiffness))
    K.assemble()
    Ms = _scalar_mass(V, rho)
    x = fem.Function(V)
    dim = V.dofmap.bs
    x.interpolate(lambda points: points[:dim])
    positions = x.x.array[: dim * V.dofmap.index_map.size_local].reshape(-1, dim).copy()
    problem = ElasticProblem(V, K, Ms, positions, t, plane)
    _check_rigid_motions(problem)
    return problem


def _isotropic(
    V: fem.FunctionSpace, material: Material, plane: Plane | None, thickness: float | None
) -> ufl.Form:
    """∫σ:ε with the moduli as constants, so that one compiled form serves all materials."""
    moduli = SimpleNamespace(
        shear=fem.Constant(V.mesh, default_scalar_type(material.shear)),
        lame=fem.Constant(V.mesh, default_scalar_type(material.lame)),
    )
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    if plane is None or thickness is None:
        return elastic_stiffness(u, v, cast(Material, moduli))
    across = fem.Constant(V.mesh, default_scalar_type(thickness))
    return elastic_stiffness(u, v, cast(Material, moduli), plane=plane, thickness=across)


def _scalar_mass(V: fem.FunctionSpace, density: Any) -> PETSc.Mat:
    element = V.ufl_element().sub_elements[0]
    W = fem.functionspace(V.mesh, element)
    same = np.array_equal(W.dofmap.list, V.dofmap.list)
    raise_together(
        V.mesh.comm,
        None if same else "the scalar space is not numbered as the blocks of the space",
        RuntimeError,
    )
    p, q = ufl.TrialFunction(W), ufl.TestFunction(W)
    Ms = fem_petsc.assemble_matrix(fem.form(density * p * q * ufl.dx))
    Ms.assemble()
    diagonal = Ms.getDiagonal()
    _, smallest = diagonal.min()
    diagonal.destroy()
    if not smallest > 0:
        raise ValueError(
            "the density is not positive everywhere: the mass matrix has an entry <= 0"
        )
    return Ms


def _check_rigid_motions(problem: ElasticProblem) -> None:
    """A body that floats has K R = 0 for its rigid motions R, exactly."""
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
        raise ValueError(
            "the stiffness resists rigid motion (K R is not zero, relative size "
            f"{ratio.max():.1e}); give the elastic stiffness of the free body, without supports"
        )
