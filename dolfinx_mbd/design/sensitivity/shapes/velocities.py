"""Shape velocities from the motion of parts of the surface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import ufl
from dolfinx import fem
from dolfinx.fem import petsc as fem_petsc
from numpy.typing import ArrayLike
from petsc4py import PETSc
from ufl.core.expr import Expr

from dolfinx_mbd.checks import array, instance, names, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.compat import geometry_degree, interpolated
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.linalg.factorization import cholesky
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.forms import strain


def extended_velocity(
    mesh: TaggedMesh, moved: Mapping[str, Expr | ArrayLike], fixed: Iterable[str] = ()
) -> fem.Function:
    """Return a smooth velocity of all points of a body from the velocity of parts of its surface.

    The result is the displacement of an elastic body with ν = 0. Some groups of facets move as
    specified, and the rest of the surface is free. The quality of the cells therefore changes
    little.

    Args:
        mesh: Mesh with named groups of facets.
        moved: Velocity of each moved group per unit of the parameter, a UFL expression or numbers
            of shape (dim,), m.
        fixed: Groups that do not move.

    Returns:
        The velocity at the nodes of the mesh, for `Parameter(..., "shape", velocity=...)`.

    Raises:
        InputError: A group is unknown or given twice, no group moves, or a velocity has the wrong
            shape.

    Note: Collective.

    Example:
        >>> longer = mbd.design.extended_velocity(mesh, {"right": (1.0, 0, 0)}, fixed=["left"])
        >>> length = mbd.Parameter("length", "shape", velocity=longer)
        >>> table = mbd.sensitivities(bar, [length])
        >>> round(table["length"].total_mass / bar.body.total_mass * 0.2, 6)
        1.0
    """
    instance("mesh", mesh, TaggedMesh)
    still = names("fixed", fixed)
    if not instance("moved", moved, Mapping):
        reject("moved", moved, "a mapping from at least one group of facets to its velocity")
    if twice := set(still) & set(moved):
        text = f"the groups {sorted(twice)} are both moved and fixed"
        raise InputError(text, argument="fixed", value=fixed)
    plain = mesh.mesh
    dim = plain.geometry.dim
    V = fem.functionspace(plain, ("Lagrange", geometry_degree(plain), (dim,)))
    conditions = []
    for group, velocity in {**dict.fromkeys(still, np.zeros(dim)), **moved}.items():
        value = interpolated(_expression(group, velocity, dim, plain), V)
        dofs = fem.locate_dofs_topological(V, dim - 1, mesh.facets(group))
        conditions.append(fem.dirichletbc(value, dofs))
    return elastic_extension(V, conditions)


def elastic_extension(V: fem.FunctionSpace, conditions: list[fem.DirichletBC]) -> fem.Function:
    """Return the displacement of an elastic body with ν = 0 and prescribed displacements.

    Args:
        V: Space of displacements.
        conditions: Prescribed displacements, which hold the body.

    Note: Collective.
    """
    plain, dim = V.mesh, V.dofmap.bs
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    form = compiled_form(ufl.inner(strain(u), strain(v)) * ufl.dx)
    zero = fem.Constant(plain, np.zeros(dim))
    right = compiled_form(ufl.inner(zero, v) * ufl.dx)
    A = fem_petsc.assemble_matrix(form, bcs=conditions)
    A.assemble()
    b = fem_petsc.assemble_vector(right)
    fem_petsc.apply_lifting(b, [form], [conditions])
    b.ghostUpdate(PETSc.InsertMode.ADD_VALUES, PETSc.ScatterMode.REVERSE)
    fem_petsc.set_bc(b, conditions)
    solver = cholesky(A, prefix="dolfinx_mbd_extension_", options=None)
    result = fem.Function(V)
    x = b.duplicate()
    solver.solve(b, x)
    owned = dim * V.dofmap.index_map.size_local
    result.x.array[:owned] = x.array_r[:owned]
    result.x.scatter_forward()
    for item in (solver, A, b, x):
        item.destroy()
    return result


def _expression(group: str, velocity: Any, dim: int, mesh: Any) -> Expr:
    """Return a velocity as an expression of shape (dim,)."""
    label = f"moved: {group}"
    if isinstance(velocity, Expr):
        if velocity.ufl_shape != (dim,):
            reject(label, velocity, f"an expression of shape ({dim},)")
        return velocity
    return fem.Constant(mesh, array(label, velocity, (dim,)))
