"""From a mesh, a material or the user's own forms to the matrices that a modal analysis needs.

All inertia comes from one *scalar* mass matrix: its degrees of freedom are the blocks of the
displacement space, so that the vector mass matrix is M = M_s ⊗ I, built in place of assembled.
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

from dolfinx_mbd.analysis import compat
from dolfinx_mbd.analysis.la import agreed, multiply, raise_together, require_real
from dolfinx_mbd.analysis.meshing import TaggedMesh
from dolfinx_mbd.forms import Material, elastic_stiffness

__all__ = [
    "ElasticProblem",
    "FacetGroups",
    "elastic_problem",
    "facet_groups",
    "rigid_motions",
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
        positions: x at the owned blocks, shape (owned blocks, 3).
    """

    space: fem.FunctionSpace
    stiffness: PETSc.Mat
    scalar_mass: PETSc.Mat
    positions: Array

    @property
    def comm(self) -> Any:
        """The mesh's MPI communicator."""
        return self.space.mesh.comm

    @property
    def num_owned(self) -> int:
        """Owned displacement degrees of freedom on this rank."""
        return 3 * self.space.dofmap.index_map.size_local

    @property
    def num_dofs(self) -> int:
        """Displacement degrees of freedom of all ranks."""
        return 3 * self.space.dofmap.index_map.size_global

    def mass(self) -> PETSc.Mat:
        """M = M_s ⊗ I without the zeros between components; the caller destroys it.

        Its pattern is a third of that of K, and a product with it takes a third of the time.

        Note: Collective.
        """
        indptr, columns, values = self.scalar_mass.getValuesCSR()
        count = np.diff(indptr)
        start = np.zeros(3 * len(count) + 1, dtype=indptr.dtype)
        np.cumsum(np.repeat(count, 3), out=start[1:])
        # Each row of M_s three times, once for each component; entry j came from source[j].
        source = np.repeat(np.repeat(indptr[:-1], 3) - start[:-1], np.repeat(count, 3))
        source += np.arange(start[-1], dtype=indptr.dtype)
        component = np.repeat(
            np.tile(np.arange(3, dtype=columns.dtype), len(count)), np.diff(start)
        )
        csr = (start, 3 * columns[source] + component, values[source])
        return PETSc.Mat().createAIJ(self.stiffness.getSizes(), bsize=3, csr=csr, comm=self.comm)

    def apply_mass(self, X: Array) -> Array:
        """M X through the scalar mass matrix, X of shape (owned dofs, k).

        Note: Collective.
        """
        return unblocked(multiply(self.scalar_mass, blocked(X)))

    def destroy(self) -> None:
        """Free both matrices."""
        self.stiffness.destroy()
        self.scalar_mass.destroy()


def blocked(X: Array) -> Array:
    """Vectors (owned dofs, k) as scalar fields (owned blocks, 3k), column by column."""
    rows, columns = len(X) // 3, X.shape[1]
    fields = X.reshape(rows, 3, columns).transpose(0, 2, 1)
    return np.asfortranarray(fields.reshape(rows, 3 * columns))


def unblocked(F: Array) -> Array:
    """The inverse of `blocked`."""
    rows, columns = len(F), F.shape[1] // 3
    vectors = F.reshape(rows, columns, 3).transpose(0, 2, 1)
    return np.asfortranarray(vectors.reshape(3 * rows, columns))


def rigid_motions(positions: Array, point: Array | None = None) -> Array:
    """The rigid motions at given positions: three translations, three rotations about `point`.

    Args:
        positions: Shape (m, 3), m.
        point: Shape (3,); the origin by default.

    Returns:
        Shape (3 m, 6), blocked by position, Fortran order.
    """
    r = positions if point is None else positions - point
    R = np.zeros((len(r), 3, 6), order="F")
    for i in range(3):
        R[:, i, i] = 1.0
        R[:, :, 3 + i] = np.cross(np.eye(3)[i], r)
    return np.asfortranarray(R.reshape(-1, 6))


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
        if tags.dim != 2:
            raise ValueError(
                f"facet_tags must tag facets (dimension 2), these have dimension {tags.dim}"
            )
        facets = tags.find(int(key))
    else:
        facets = np.asarray(key, dtype=np.int32).reshape(-1)
    comm = (mesh.mesh if isinstance(mesh, TaggedMesh) else mesh).comm
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
) -> ElasticProblem:
    """Check what was given, assemble K and the scalar mass matrix.

    Args:
        mesh: A three-dimensional mesh.
        material: Isotropic material; may be missing where `stiffness` and `density` are given.
        space: The user's own displacement space on this mesh; by default Lagrange of `degree`.
        degree: Polynomial degree of the default space.
        stiffness: The user's own bilinear form with arguments on `space`.
        density: Number or UFL expression, kg/m³; the material's by default.

    Raises:
        ValueError: Something does not fit; the same error on every rank.
        RuntimeError: PETSc has complex numbers.

    Note: Collective over the mesh's communicator.
    """
    require_real()
    plain = mesh.mesh if isinstance(mesh, TaggedMesh) else mesh
    V = _checked_space(plain, space, degree)
    rho = _checked_density(plain, material, density)
    if stiffness is None:
        if material is None:
            raise ValueError("give a material, or a stiffness form and a density")
        stiffness = _isotropic(V, material)
    else:
        _check_form(stiffness, V)
    K = fem_petsc.assemble_matrix(fem.form(stiffness))
    K.assemble()
    Ms = _scalar_mass(V, rho)
    x = fem.Function(V)
    x.interpolate(lambda points: points)
    positions = x.x.array[: 3 * V.dofmap.index_map.size_local].reshape(-1, 3).copy()
    problem = ElasticProblem(V, K, Ms, positions)
    _check_rigid_motions(problem)
    return problem


def _checked_space(mesh: Mesh, space: fem.FunctionSpace | None, degree: int) -> fem.FunctionSpace:
    if mesh.topology.dim != 3 or mesh.geometry.dim != 3:
        raise ValueError(
            "a body needs a three-dimensional mesh; this one has topological dimension "
            f"{mesh.topology.dim} and geometric dimension {mesh.geometry.dim}"
        )
    order = compat.geometry_degree(mesh)
    if space is None:
        if int(degree) != degree or degree < 1:
            raise ValueError(f"the degree of the space must be 1, 2, ...; got {degree!r}")
        chosen = int(degree)
    else:
        element = space.ufl_element()
        scalar = element.sub_elements[0] if element.num_sub_elements else element
        if (
            space.mesh.ufl_domain() != mesh.ufl_domain()
            or space.dofmap.bs != 3
            or scalar.family_name not in ("P", "Q")
            or scalar.discontinuous
            or scalar.reference_value_shape != ()
        ):
            raise ValueError(
                "the space must be a continuous vector Lagrange space with three components on "
                f"this mesh, functionspace(mesh, ('Lagrange', degree, (3,))); got {element}"
            )
        chosen = scalar.degree
    if chosen < order:
        raise ValueError(
            f"the space has degree {chosen} and the mesh geometric order {order}: rotations would "
            f"not lie in the space; use degree={order} or more"
        )
    return fem.functionspace(mesh, ("Lagrange", chosen, (3,))) if space is None else space


def _checked_density(mesh: Mesh, material: Material | None, density: Any) -> Any:
    rho = density
    if rho is None:
        if material is None:
            raise ValueError("give a material or a density")
        rho = material.density
    if isinstance(rho, (int, float, np.number)):
        if not (np.isfinite(rho) and rho > 0):
            raise ValueError(f"density must be positive, in kg/m^3 (steel: 7850); got {rho}")
        return fem.Constant(mesh, default_scalar_type(rho))
    return rho


def _isotropic(V: fem.FunctionSpace, material: Material) -> ufl.Form:
    """∫σ:ε with the moduli as constants, so that one compiled form serves all materials."""
    moduli = SimpleNamespace(
        shear=fem.Constant(V.mesh, default_scalar_type(material.shear)),
        lame=fem.Constant(V.mesh, default_scalar_type(material.lame)),
    )
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    return elastic_stiffness(u, v, cast(Material, moduli))


def _check_form(form: ufl.Form, V: fem.FunctionSpace) -> None:
    if not isinstance(form, ufl.Form) or len(form.arguments()) != 2:
        raise ValueError("stiffness must be a bilinear UFL form in a trial and a test function")
    if any(argument.ufl_function_space() != V for argument in form.arguments()):
        raise ValueError(
            "the arguments of the stiffness form must be on `space`; give both together"
        )


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
    """A body that floats has K R = 0 for its six rigid motions R, exactly."""
    with agreed(problem.comm):
        centre = problem.positions.mean(axis=0) if len(problem.positions) else np.zeros(3)
    R = rigid_motions(problem.positions, problem.comm.bcast(centre, root=0))
    size = np.array(
        [np.abs(R[:, j]).max(initial=0.0) for j in range(6)]
        + [np.abs(f).max(initial=0.0) for f in multiply(problem.stiffness, R).T]
    )
    size = np.max(problem.comm.allgather(size), axis=0)
    scale = problem.stiffness.norm(PETSc.NormType.NORM_INFINITY)
    ratio = size[6:] / (scale * size[:6])
    if not np.isfinite(ratio).all() or ratio.max() > RIGID_TOLERANCE:
        raise ValueError(
            "the stiffness resists rigid motion (K R is not zero, relative size "
            f"{ratio.max():.1e}); give the elastic stiffness of the free body, without supports"
        )
