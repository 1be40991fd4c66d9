"""Linear expressions of the displacement at points of the cells, once for each mode.

An expression that is linear in u is compiled with an argument in place of u: its kernel gives the
matrix from a cell's degrees of freedom to the values at its points, and one product with the modes'
degrees of freedom there gives all modes together. That it *is* linear is seen by UFL's analysis of
arities, component by component.

Where the points are:

- ``nodes``: those of the smallest discontinuous Lagrange space that holds the strain of a cell with
  straight edges exactly: degree p − 1 on simplices, p on quadrilaterals and hexahedra. On straight
  tetrahedra of degree 2 these are the corners; stress is linear between them and a norm of it, such
  as von Mises stress, convex, so that its greatest value in the cell is at one of them.
- ``quadrature``: Gauss points of degree 2(p − 1), where the stress of a displacement is best, for
  integrals and for comparisons; none is on the surface.
- ``cells``: midpoints, one value a cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import basix
import basix.ufl
import numpy as np
import ufl
from dolfinx import fem
from dolfinx.mesh import Mesh
from numpy.typing import NDArray
from ufl.algorithms.apply_algebra_lowering import apply_algebra_lowering
from ufl.algorithms.apply_derivatives import apply_derivatives
from ufl.algorithms.check_arities import ArityMismatch, check_integrand_arity
from ufl.core.expr import Expr

from dolfinx_mbd.checks import choice
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.parallel import raise_together

__all__ = ["Place", "Points", "field_modes", "flat", "linear_in", "points_of"]

Array = NDArray[np.float64]
Place = Literal["nodes", "quadrature", "cells"]

CELLS_AT_ONCE = 1000
"""Cells whose matrices are in memory at the same time: 6 MB for 4 points of degree 2."""


@dataclass(frozen=True, eq=False)
class Points:
    """Points in the owned cells, and the discontinuous space whose values they hold.

    Attributes:
        mesh: The mesh.
        where: Their kind.
        element: The scalar element.
        reference: In the reference cell, shape (points of a cell, dim).
        cells: Owned cells.
        dofs: Of the scalar space at each point, cell by cell, shape (np,).
    """

    mesh: Mesh
    where: Place
    element: Any
    reference: Array
    cells: NDArray[np.int32]
    dofs: NDArray[np.int32]

    def space(self, shape: tuple[int, ...] = ()) -> fem.FunctionSpace:
        """The space of values of a shape at these points.

        Note: Collective.
        """
        if not shape:
            element = self.element
        elif self.where == "quadrature":
            element = basix.ufl.quadrature_element(
                self.mesh.topology.cell_name(), value_shape=shape, degree=self.element.degree
            )
        else:
            element = basix.ufl.blocked_element(self.element, shape=shape)
        return fem.functionspace(self.mesh, element)

    def fill(self, function: fem.Function, values: Array) -> fem.Function:
        """Put values (np, *shape) into a function on `space(shape)`.

        Note: Collective.
        """
        blocks = function.x.array.reshape(-1, function.function_space.dofmap.bs)
        blocks[self.dofs] = values.reshape(len(self.dofs), blocks.shape[1])
        function.x.scatter_forward()
        return function


def points_of(space: fem.FunctionSpace, where: Place) -> Points:
    """The points of a displacement space's cells.

    Raises:
        ValueError: `where` is unknown.

    Note: Collective.
    """
    choice("where", where, get_args(Place))
    mesh = space.mesh
    name, degree = mesh.topology.cell_name(), space.ufl_element().sub_elements[0].degree
    if where == "quadrature":
        element = basix.ufl.quadrature_element(name, value_shape=(), degree=2 * (degree - 1))
        reference = element.custom_quadrature()[0]
    else:
        simplex = name in ("triangle", "tetrahedron")
        own = 0 if where == "cells" else degree - 1 if simplex else degree
        element = basix.ufl.element("Lagrange", name, own, discontinuous=True)
        reference = element.basix_element.points
    W = fem.functionspace(mesh, element)
    cells = np.arange(mesh.topology.index_map(mesh.topology.dim).size_local, dtype=np.int32)
    return Points(mesh, where, element, reference, cells, W.dofmap.list[cells].ravel())


def flat(expression: Expr) -> Expr:
    """The components of a tensor as a vector, row by row."""
    if expression.ufl_shape == ():
        return ufl.as_vector([expression])
    return ufl.as_vector([expression[i] for i in np.ndindex(expression.ufl_shape)])


def linear_in(
    space: fem.FunctionSpace, function: Callable[[Any], Any], name: str
) -> tuple[Expr, tuple[int, ...]]:
    """An expression of an argument on a space, flattened, after a check that it is linear.

    Args:
        space: Displacement space.
        function: From u to UFL.
        name: What to call it in an error.

    Returns:
        The expression and the shape that it had.

    Raises:
        ValueError: It is not linear in u, or no UFL expression.
    """
    u = ufl.TrialFunction(space)
    try:
        expression = ufl.as_ufl(function(u))
    except (ArityMismatch, Exception) as error:
        raise InputError(f"{name}: no UFL expression of u can be made of it: {error}") from error
    lowered = apply_derivatives(apply_algebra_lowering(flat(expression)))
    found = 0
    for k in range(lowered.ufl_shape[0]):
        component = apply_derivatives(apply_algebra_lowering(lowered[k]))
        if isinstance(component, ufl.constantvalue.Zero):
            continue
        try:
            check_integrand_arity(component, (u,))
        except (ArityMismatch, Exception) as error:  # (ArityMismatch is no Exception)
            raise InputError(
                f"{name} is not linear in the displacement ({error}); ask for its linear "
                "ingredients, or for one of the quantities by name, such as 'von Mises'"
            ) from None
        found += 1
    if not found:
        raise InputError(f"{name} does not depend on the displacement")
    return flat(expression), expression.ufl_shape


def field_modes(space: fem.FunctionSpace, modes: Array, expression: Expr, points: Points) -> Array:
    """Values of a linear expression at points, once for each mode.

    Args:
        space: Displacement space.
        modes: Shape (owned dofs, n).
        expression: A vector of c components with an argument on the space, from `linear_in`.
        points: Where.

    Returns:
        Shape (c, np, n).

    Note: Collective.
    """
    n, components, count = modes.shape[1], expression.ufl_shape[0], len(points.reference)
    compiled = fem.Expression(expression, points.reference)
    function = fem.Function(space)
    everywhere = np.empty((len(function.x.array), n))
    for k in range(n):
        everywhere[:, k] = as_function(space, modes[:, k], function).x.array
    bs = space.dofmap.bs
    result = np.empty((components, len(points.cells) * count, n))
    message = None
    for start in range(0, len(points.cells), CELLS_AT_ONCE):
        cells = points.cells[start : start + CELLS_AT_ONCE]
        dofs = (bs * space.dofmap.list[cells][:, :, None] + np.arange(bs)).reshape(len(cells), -1)
        matrices = np.asarray(compiled.eval(points.mesh, cells))
        matrices = matrices.reshape(len(cells), count * components, dofs.shape[1])
        values = (matrices @ everywhere[dofs]).reshape(-1, components, n)
        result[:, start * count : (start + len(cells)) * count] = values.transpose(1, 0, 2)
    if not np.isfinite(result).all():
        message = "an expression is not finite at some points (a division by zero?)"
    raise_together(points.mesh.comm, message)
    return result
