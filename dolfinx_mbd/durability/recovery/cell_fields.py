"""Linear expressions of the displacement, evaluated at points of the cells for each mode.

An expression is compiled with an argument in place of u. Its kernel returns the matrix that maps
the degrees of freedom of a cell to the values at its points. The product of this matrix and the
degrees of freedom of the modes gives the values of all modes. `Fields` and `Envelope` contain
results over time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
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

from dolfinx_mbd.body.quantities import Quantity
from dolfinx_mbd.body.stress_modes import values_over_time
from dolfinx_mbd.checks import choice
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.compilation import compiled_expression
from dolfinx_mbd.fem.field_files import field_file
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.html import HtmlView, short_repr
from dolfinx_mbd.parallel import raise_together

__all__ = [
    "Envelope",
    "Fields",
    "Place",
    "Points",
    "check_writable",
    "field_modes",
    "linear_in",
    "points_of",
]

Array = NDArray[np.float64]
Place = Literal["nodes", "quadrature", "cells"]

CELLS_AT_ONCE = 1000  # number of cell matrices in memory: 6 MB for 4 points, degree 2


@dataclass(frozen=True, eq=False)
class Points:
    """Points in the owned cells, and the discontinuous space of their values."""

    mesh: Mesh
    where: Place
    element: Any  # scalar element
    reference: Array  # points in the reference cell, shape (points of a cell, dim)
    cells: NDArray[np.int32]  # owned cells
    dofs: NDArray[np.int32]  # dofs of the scalar space at the points, cell by cell, shape (points,)

    __repr__ = short_repr

    def space(self, shape: tuple[int, ...] = ()) -> fem.FunctionSpace:
        """Return the space for values of the given shape at these points. Collective."""
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
        """Put values (points, *shape) into a function on `space(shape)`; return it. Collective."""
        blocks = function.x.array.reshape(-1, function.function_space.dofmap.bs)
        blocks[self.dofs] = values.reshape(len(self.dofs), blocks.shape[1])
        function.x.scatter_forward()
        return function


def points_of(space: fem.FunctionSpace, where: Place) -> Points:
    """Return points in the cells of a displacement space; see `Recovery`. Collective.

    For a space of degree p, ``nodes`` are the nodes of the smallest discontinuous Lagrange space
    that contains the strain in cells with straight edges (degree p − 1 on simplices), and
    ``quadrature`` are the Gauss points of degree 2(p − 1).
    """
    choice("where", where, get_args(Place))
    mesh = space.mesh
    name, degree = mesh.topology.cell_name(), space.ufl_element().sub_elements[0].degree
    if where == "quadrature":
        element = basix.ufl.quadrature_element(name, value_shape=(), degree=2 * (degree - 1))
        reference = element.custom_quadrature()[0]
    else:
        strain_degree = degree - 1 if name in ("triangle", "tetrahedron") else degree
        value_degree = 0 if where == "cells" else strain_degree
        element = basix.ufl.element("Lagrange", name, value_degree, discontinuous=True)
        reference = element.basix_element.points
    W = fem.functionspace(mesh, element)
    cells = np.arange(mesh.topology.index_map(mesh.topology.dim).size_local, dtype=np.int32)
    return Points(mesh, where, element, reference, cells, W.dofmap.list[cells].ravel())


def _flatten(expression: Expr) -> Expr:
    """Return the components of a tensor as a vector, row by row."""
    if expression.ufl_shape == ():
        return ufl.as_vector([expression])
    return ufl.as_vector([expression[i] for i in np.ndindex(expression.ufl_shape)])


def linear_in(
    space: fem.FunctionSpace, function: Callable[[Any], Any], name: str
) -> tuple[Expr, tuple[int, ...]]:
    """Return `function` of a trial function as a vector, and the shape of its value.

    UFL's analysis of arities checks that each component is linear in the argument; otherwise an
    `InputError` with `name` in its message is raised.
    """
    u = ufl.TrialFunction(space)
    try:
        expression = ufl.as_ufl(function(u))
    except (ArityMismatch, Exception) as error:  # ArityMismatch is not an Exception
        raise InputError(f"{name}: no UFL expression of u can be made of it: {error}") from error
    lowered = apply_derivatives(apply_algebra_lowering(_flatten(expression)))
    components = [
        apply_derivatives(apply_algebra_lowering(lowered[k])) for k in range(lowered.ufl_shape[0])
    ]
    components = [c for c in components if not isinstance(c, ufl.constantvalue.Zero)]
    if not components:
        raise InputError(f"{name} does not depend on the displacement", argument="what")
    try:
        for component in components:
            check_integrand_arity(component, (u,))
    except (ArityMismatch, Exception) as error:
        raise InputError(
            f"{name} is not linear in the displacement ({error}); use its linear components, or a "
            "quantity by name, such as 'von Mises'",
            argument="what",
        ) from None
    return _flatten(expression), expression.ufl_shape


def field_modes(space: fem.FunctionSpace, modes: Array, expression: Expr, points: Points) -> Array:
    """Return the values of a linear expression for each mode, shape (components, points, n).

    The expression is a vector from `linear_in`; modes have shape (owned dofs, n). Collective.
    """
    n, components, count = modes.shape[1], expression.ufl_shape[0], len(points.reference)
    compiled = compiled_expression(expression, points.reference)
    function = fem.Function(space)
    with_ghosts = np.empty((len(function.x.array), n))
    for k in range(n):
        with_ghosts[:, k] = as_function(space, modes[:, k], function).x.array
    bs = space.dofmap.bs
    result = np.empty((components, len(points.cells) * count, n))
    for start in range(0, len(points.cells), CELLS_AT_ONCE):
        cells = points.cells[start : start + CELLS_AT_ONCE]
        blocks = space.dofmap.list[cells]
        # A rank may have no cells: reshape could not infer the number of columns
        dofs = (bs * blocks[:, :, None] + np.arange(bs)).reshape(len(cells), bs * blocks.shape[1])
        matrices = np.asarray(compiled.eval(points.mesh, cells))
        matrices = matrices.reshape(len(cells), count * components, dofs.shape[1])
        values = (matrices @ with_ghosts[dofs]).reshape(-1, components, n)
        result[:, start * count : (start + len(cells)) * count] = values.transpose(1, 0, 2)
    message = None
    if not np.isfinite(result).all():
        message = "an expression is not finite at some points; check it for a division by zero"
    raise_together(points.mesh.comm, message)
    return result


@dataclass(frozen=True, eq=False)
class Fields:
    """A quantity at several instants; ``fields[k]`` returns a new `fem.Function`."""

    points: Points
    modes: Array  # linear quantities for each mode, shape (ingredients, points, n)
    quantity: Quantity  # defined by the linear quantities
    time: Array  # (nt,), s
    eta: Array  # (nt, n)

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, row: int) -> fem.Function:
        return self.at_row(row)

    def __iter__(self) -> Iterator[fem.Function]:
        return (self.at_row(k) for k in range(len(self)))

    def new(self) -> fem.Function:
        """Return a zero function for values of the quantity. Collective."""
        return fem.Function(self.points.space(self.quantity.shape), name=self.quantity.name)

    def values(self, row: int) -> Array:
        """Return the values at the points of this rank at an instant, (points, *value shape)."""
        return values_over_time(self.modes, self.eta[row][None], self.quantity)[0]

    def at_row(self, row: int, out: fem.Function | None = None) -> fem.Function:
        """Return the quantity at an instant, stored in `out` (from `new`) if given. Collective."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"there are {len(self)} instants, got {row}")
        return self.points.fill(self.new() if out is None else out, self.values(row))


@dataclass(frozen=True, eq=False)
class Envelope(HtmlView):
    """Extreme value of a scalar over time at each point, and the first time of this value."""

    quantity: Quantity
    value: fem.Function  # on a discontinuous space
    time: fem.Function  # on the same space, s
    points: Points

    __repr__ = short_repr

    def _html_rows(self) -> list[tuple[str, str]]:
        """Return the titles and the texts of the table that notebooks show."""
        values, times = self.values()
        factor, unit = (1e-6, "MPa") if self.quantity.unit == "Pa" else (1.0, self.quantity.unit)
        where = "" if self.points.mesh.comm.size == 1 else " on this rank"
        rows = [(f"{self.value.name}", f"{len(values)} points ({self.points.where}){where}")]
        for title, pick in (("largest value", np.argmax), ("smallest value", np.argmin)):
            if len(values):
                k = int(pick(values))
                text = f"{factor * values[k]:.5g} {unit} at t = {1e3 * times[k]:.4g} ms"
                rows.append((f"{title}{where}", text))
        return rows

    def values(self) -> tuple[Array, Array]:
        """Return values and times at the points of this rank, shape (points,) each."""
        return self.value.x.array[self.points.dofs], self.time.x.array[self.points.dofs]

    def write(self, path: str | Path) -> None:
        """Write the extreme values and their times to a file for ParaView.

        Args:
            path: Path that ends with ``.bp`` or ``.pvd``; missing directories are created.

        Raises:
            InputError: The path is invalid, or the values are at quadrature points.
            OSError: The file cannot be written.

        Note: Collective.
        """
        check_writable(self.points)
        with field_file(path, [self.value, self.time], 1) as write:
            write(0.0)


def check_writable(points: Points) -> None:
    """Raise an error for quadrature points, because their values cannot be written."""
    if points.where == "quadrature":
        raise InputError(
            "values at quadrature points cannot be interpolated and therefore cannot be written; "
            "use the values of where='nodes' or 'cells'",
            argument="where",
        )
