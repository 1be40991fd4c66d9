"""Derivatives of stiffness and mass with respect to a shape.

With a stress law and a density that are constant in each cell, the derivatives of the element
matrices follow from a few small products. Let V be the velocity of the points and g the gradient of
a basis function in physical space. Then g′ = −g ∇V, and the volume dx has the derivative div V dx.
All cells of a block are computed at once, which takes less than half the time of a compiled form.
Other laws use compiled forms. Both ways use the quadrature of K and M, so that they differentiate
the assembled matrices exactly, also in cells with curved edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import basix
import numpy as np
import ufl
from dolfinx import fem
from petsc4py import PETSc
from ufl.algorithms.analysis import extract_type
from ufl.checks import is_cellwise_constant
from ufl.classes import GeometricQuantity

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.assembly import ElasticProblem, assembled_matrix
from dolfinx_mbd.fem.compat import geometry_dofmap
from dolfinx_mbd.fem.elastic_model import ElasticModel

BLOCK = 256
"""Number of cells that are computed at once; their matrices fit into the cache."""


def shape_matrices(
    model: ElasticModel, problem: ElasticProblem, forms: tuple[ufl.Form, ufl.Form], velocity: Any
) -> tuple[PETSc.Mat, PETSc.Mat]:
    """Return K′ and the derivative of the scalar mass matrix; the caller destroys them.

    Args:
        model: The model of the body.
        problem: Its matrices.
        forms: Forms of K and of the scalar mass matrix.
        velocity: Velocity of the points, a function.

    Note: Collective.
    """
    constants = _CONSTANTS.get(problem)
    if constants is None:
        constants = _CONSTANTS[problem] = _Constants(model, problem, forms)
    (stiffness, mass), law, density = constants.degrees, constants.law, constants.density
    if law is None:
        K = _by_form(forms[0], stiffness, velocity)
    else:
        K = _stiffness(problem, law, stiffness, velocity)
    if density is None:
        return K, _by_form(forms[1], mass, velocity)
    return K, _mass(problem, density, mass, velocity)


class _Constants:
    """Degrees of quadrature, and constants of the cells, which all shapes of a body share."""

    def __init__(
        self, model: ElasticModel, problem: ElasticProblem, forms: tuple[ufl.Form, ufl.Form]
    ) -> None:
        self.degrees = quadrature_degree(forms[0]), quadrature_degree(forms[1])
        factor = 1.0 if problem.thickness is None else problem.thickness
        self.law: Array | None = None  # (cells, dim⁴), in the order of `_constant_law`
        self.density: Array | None = None  # (cells,)
        law = None if model.materials is None else _constant_law(model)
        if law is not None:
            self.law = factor * _cell_values(problem, law)
        density = ufl.as_vector([model.mass_density])
        if _is_constant(density):
            self.density = factor * _cell_values(problem, density)[:, 0]


_CONSTANTS: WeakKeyDictionary[ElasticProblem, _Constants] = WeakKeyDictionary()


def quadrature_degree(form: ufl.Form) -> int:
    """Return the degree of the quadrature that FFCx chooses for a form with one integral."""
    data = ufl.algorithms.compute_form_data(
        form,
        do_apply_function_pullbacks=True,
        do_apply_integral_scaling=True,
        do_apply_geometry_lowering=True,
        preserve_geometry_types=(ufl.classes.Jacobian,),
    )
    integrals = [i for item in data.integral_data for i in item.integrals]
    return int(max(i.metadata()["estimated_polynomial_degree"] for i in integrals))


def _by_form(form: ufl.Form, degree: int, velocity: Any) -> PETSc.Mat:
    """Return the derivative of a matrix by a compiled form with the quadrature of the matrix."""
    exact = ufl.Form(
        [
            i.reconstruct(metadata={"quadrature_degree": degree, **i.metadata()})
            for i in form.integrals()
        ]
    )
    x = ufl.SpatialCoordinate(velocity.function_space.mesh)
    return assembled_matrix(ufl.algorithms.expand_derivatives(ufl.derivative(exact, x, velocity)))


def _constant_law(model: ElasticModel) -> Any:
    """Return ∂σ_ak/∂(∂u_b/∂x_l) as a vector in the order (k, l, a, b), or None if it varies."""
    assert model.materials is not None
    dim = model.displacements.dofmap.bs
    units = np.eye(dim)
    stress = {}
    for b in range(dim):
        for m in range(dim):
            gradient = ufl.as_matrix(np.outer(units[b], units[m]).tolist())
            stress[b, m] = model.materials.law(ufl.sym(gradient))
    r = range(dim)
    entries = [stress[b, m][a, k] for k in r for m in r for a in r for b in r]
    law = ufl.as_vector(entries)
    return law if _is_constant(law) else None


def _is_constant(expression: Any) -> bool:
    """Return whether an expression is constant in each cell and independent of the shape."""
    return is_cellwise_constant(expression) and not extract_type(expression, GeometricQuantity)


def _cell_values(problem: ElasticProblem, expression: Any) -> Array:
    """Return a vector that is constant in each cell, shape (owned cells, components)."""
    mesh = problem.space.mesh
    cells = np.arange(_num_cells(problem), dtype=np.int32)
    middle = np.asarray(basix.geometry(mesh.basix_cell())).mean(axis=0, keepdims=True)
    zero = fem.Constant(mesh, np.zeros(expression.ufl_shape))  # numbers have no mesh
    compiled = fem.Expression(expression + zero, middle)
    return np.reshape(compiled.eval(mesh, cells), (len(cells), -1))


def _num_cells(problem: ElasticProblem) -> int:
    topology = problem.space.mesh.topology
    return int(topology.index_map(topology.dim).size_local)


class _Cells:
    """Geometry of blocks of cells at the points of a quadrature rule."""

    def __init__(self, problem: ElasticProblem, degree: int, velocity: Any) -> None:
        mesh, self.dim = problem.space.mesh, problem.dim
        rule = basix.make_quadrature(mesh.basix_cell(), degree)
        self._points, self._weights = (np.asarray(x, dtype=float) for x in rule)
        element = mesh.ufl_domain().ufl_coordinate_element().sub_elements[0]
        self._geometry = self._gradients(element)
        space = velocity.function_space
        self._motion = self._gradients(space.ufl_element().sub_elements[0])
        element = problem.space.ufl_element().sub_elements[0]
        table = np.asarray(element.tabulate(1, self._points))
        self.values, self.derivatives = table[0], np.moveaxis(table[1:], 0, 2)
        self._nodes, self._dofs = geometry_dofmap(mesh), space.dofmap.list
        self._x = mesh.geometry.x[:, : self.dim]
        self._V = velocity.x.array.reshape(-1, self.dim)
        self._count = _num_cells(problem)

    def _gradients(self, element: Any) -> Array:
        """Return ∂N/∂r, shape (points · dim, functions)."""
        table = np.asarray(element.tabulate(1, self._points))[1:]
        return np.ascontiguousarray(np.swapaxes(table, 0, 1).reshape(-1, table.shape[2]))

    def __iter__(self) -> Iterator[tuple[slice, Array, Array, Array]]:
        """Yield cells, weights dx (cells, points), ∂r/∂x and ∂V_a/∂x_l, both with (..., dim, dim).

        The rows of ∂r/∂x are derivatives of a reference coordinate.
        """
        d, count = self.dim, len(self._weights)
        for first in range(0, self._count, BLOCK):
            cells = slice(first, min(first + BLOCK, self._count))
            shape = (cells.stop - first, count, d, d)
            J = (self._geometry @ self._x[self._nodes[cells]]).reshape(shape)  # ∂x_a/∂r, [r, a]
            motion = (self._motion @ self._V[self._dofs[cells]]).reshape(shape)
            inverse, volume = _inverse(np.swapaxes(J, 2, 3))
            gradient = np.swapaxes(motion, 2, 3) @ inverse
            yield cells, np.abs(volume) * self._weights, inverse, gradient


def _inverse(J: Array) -> tuple[Array, Array]:
    """Return the inverses and determinants of matrices of shape (..., 2, 2) or (..., 3, 3)."""
    if J.shape[-1] == 2:
        cofactors = np.stack([J[..., 1, 1], -J[..., 0, 1], -J[..., 1, 0], J[..., 0, 0]], axis=-1)
        cofactors = cofactors.reshape(J.shape)
    else:
        a, b, c = (J[..., k, :] for k in range(3))
        cofactors = np.stack([_cross(b, c), _cross(c, a), _cross(a, b)], axis=-1)
    determinant = (J[..., 0, :] * cofactors[..., :, 0]).sum(axis=-1)
    return cofactors / determinant[..., None, None], determinant


def _cross(a: Array, b: Array) -> Array:
    """Return a × b; NumPy's function is slower."""
    k, m = [1, 2, 0], [2, 0, 1]
    return np.asarray(a[..., k] * b[..., m] - a[..., m] * b[..., k])


def _stiffness(problem: ElasticProblem, law: Array, degree: int, velocity: Any) -> PETSc.Mat:
    """Return K′ for a law (cells, dim⁴) in the order of `_constant_law`."""
    d, dofs = problem.dim, problem.space.dofmap.list
    cells = _Cells(problem, degree, velocity)
    law = law.reshape(-1, d * d, d * d)
    count = dofs.shape[1]
    matrix = problem.stiffness.duplicate(copy=False)
    for block, weights, inverse, gradient in cells:
        size = len(weights)
        g = cells.derivatives @ inverse  # (cells, points, functions, dim)
        half = -gradient
        half[..., range(d), range(d)] += np.trace(gradient, axis1=2, axis2=3)[..., None] / 2
        changed = g @ (half * weights[..., None, None])
        g, changed = (X.reshape(size, -1, count * d) for X in (g, changed))
        S = np.swapaxes(changed, 1, 2) @ g
        S = (S + np.swapaxes(S, 1, 2)).reshape(size, count, d, count, d)
        S = np.ascontiguousarray(S.swapaxes(2, 3)).reshape(size, count * count, d * d)
        K = (S @ law[block]).reshape(size, count, count, d, d).swapaxes(2, 3)
        _add(matrix, dofs[block], np.ascontiguousarray(K))
    matrix.assemble()
    return matrix


def _mass(problem: ElasticProblem, density: Array, degree: int, velocity: Any) -> PETSc.Mat:
    """Return the derivative of the scalar mass matrix for a density in each cell."""
    dofs, cells = problem.space.dofmap.list, _Cells(problem, degree, velocity)
    N = cells.values
    products = np.einsum("qi,qj->qij", N, N).reshape(len(N), -1)
    matrix = problem.scalar_mass.duplicate(copy=False)
    for block, weights, _, gradient in cells:
        change = weights * np.trace(gradient, axis1=2, axis2=3) * density[block, None]
        _add(matrix, dofs[block], change @ products)
    matrix.assemble()
    return matrix


def _add(matrix: PETSc.Mat, dofs: Any, values: Array) -> None:
    """Add element matrices to a matrix; `dofs` are local blocks, shape (cells, functions)."""
    flat = values.reshape(len(dofs), -1)
    matrix.setValuesBlockedLocalRCV(dofs, dofs, flat, PETSc.InsertMode.ADD_VALUES)
