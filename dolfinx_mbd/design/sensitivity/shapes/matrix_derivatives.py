"""Derivatives of stiffness and mass with respect to shapes and constants of materials.

With a stress law and a density that are constant in each cell, the derivatives of the element
matrices follow from a few small products. Let V be the velocity of the points and g the gradient of
a basis function in physical space. Then g′ = −g ∇V, and the volume dx has the derivative div V dx.
All cells of a block are computed at once, which takes less than half the time of a compiled form.
The matrices of the cells of K′ are not assembled or stored, because only products with few vectors
are needed. Other laws use compiled forms and assembled matrices. Shapes use the quadrature of K and
M, so that they differentiate the assembled matrices exactly, also in cells with curved edges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import basix
import numpy as np
import scipy
import ufl
from dolfinx import fem, la
from petsc4py import PETSc
from ufl.algorithms.analysis import extract_type
from ufl.algorithms.apply_algebra_lowering import apply_algebra_lowering
from ufl.algorithms.apply_derivatives import apply_derivatives
from ufl.checks import is_cellwise_constant
from ufl.classes import GeometricQuantity

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.assembly import ElasticProblem, assembled_matrix
from dolfinx_mbd.fem.compat import geometry_degree, geometry_dofmap
from dolfinx_mbd.fem.compilation import compiled_expression
from dolfinx_mbd.fem.elastic_model import ElasticModel

BLOCK = 256
"""Number of cells that are computed at once; their fields fit into the cache."""
SIMPLICES = ("triangle", "tetrahedron")

_Sums = tuple[slice, Any, scipy.sparse.csr_matrix]
"""Some cells, their nodes, and the matrix that sums values of cells at the nodes."""


def shape_matrices(
    model: ElasticModel, problem: ElasticProblem, forms: tuple[ufl.Form, ufl.Form], velocity: Any
) -> tuple[PETSc.Mat | CellMatrices, PETSc.Mat]:
    """Return K′ and the derivative of the scalar mass matrix; the caller destroys them.

    Args:
        model: The model of the body.
        problem: Its matrices.
        forms: Forms of K and of the scalar mass matrix.
        velocity: Velocity of the points, a function.

    Note: Collective.
    """
    constants = _constants(model, problem, forms)
    law, density = constants.law, constants.density
    stiffness_form, mass_form = forms
    K: PETSc.Mat | CellMatrices
    if law is None or model.prestress is not None:
        K = _by_form(stiffness_form, constants.stiffness_degree, velocity)
    else:
        K = _stiffness(problem, constants, law, velocity)
    if density is None:
        return K, _by_form(mass_form, constants.mass_degree, velocity)
    divergence = constants.mass_cells.divergence(velocity)
    return K, _mass(problem, divergence * density[:, None], constants.mass_cells)


def value_matrices(
    model: ElasticModel,
    problem: ElasticProblem,
    forms: tuple[ufl.Form, ufl.Form],
    variable: tuple[ElasticModel, tuple[ufl.Form, ufl.Form]],
    derivative: Callable[[Any], Any],
) -> tuple[PETSc.Mat | CellMatrices | None, PETSc.Mat | None]:
    """Return K′ and the derivative of the scalar mass matrix, None if zero (collective).

    Args:
        model: The model of the body.
        problem: Its matrices.
        forms: Forms of K and of the scalar mass matrix.
        variable: Model and forms that contain the variable.
        derivative: Function that returns the derivative of a form or of an expression.
    """
    variable_model, variable_forms = variable
    stiffness, mass = (
        ufl.algorithms.expand_derivatives(derivative(form)) for form in variable_forms
    )
    constants = _constants(model, problem, forms)
    factor = 1.0 if problem.thickness is None else problem.thickness
    K: PETSc.Mat | CellMatrices | None = None
    if not stiffness.empty():
        law = None
        if model.materials is not None and model.prestress is None:
            law = _constant_law(variable_model, derivative)
        if law is None:
            K = assembled_matrix(stiffness)
        else:
            values, cells = factor * _cell_values(problem, law), constants.stiffness_cells
            K = CellMatrices(
                problem.space,
                constants.sums,
                lambda part: _cell_matrices(cells, part, values[part], 0.5 * cells.inverse[part]),
            )
    if mass.empty():
        return K, None
    density = _explicit(derivative(ufl.as_vector([variable_model.mass_density])))
    if not _is_constant(density):
        return K, assembled_matrix(mass)
    return K, _mass(problem, factor * _cell_values(problem, density), constants.mass_cells)


def _constants(
    model: ElasticModel, problem: ElasticProblem, forms: tuple[ufl.Form, ufl.Form]
) -> _Constants:
    """Return the constants of a body, which are computed once."""
    constants = _CONSTANTS.get(problem)
    if constants is None:
        constants = _CONSTANTS[problem] = _Constants(model, problem, forms)
    return constants


class _Constants:
    """Degrees of quadrature, and constants of the cells, which all shapes of a body share."""

    def __init__(
        self, model: ElasticModel, problem: ElasticProblem, forms: tuple[ufl.Form, ufl.Form]
    ) -> None:
        self.stiffness_degree, self.mass_degree = map(quadrature_degree, forms)
        factor = 1.0 if problem.thickness is None else problem.thickness
        self.law: Array | None = None  # (cells, dim⁴), in the order of `_constant_law`
        self.density: Array | None = None  # (cells,)
        law = None if model.materials is None else _constant_law(model)
        if law is not None:
            self.law = factor * _cell_values(problem, law)
        density = ufl.as_vector([model.mass_density])
        if _is_constant(density):
            self.density = factor * _cell_values(problem, density)[:, 0]
        self.stiffness_cells = _Cells(problem, self.stiffness_degree)
        self.mass_cells = _Cells(problem, self.mass_degree)
        self.sums = _sums(problem)


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


def _constant_law(model: ElasticModel, derivative: Callable[[Any], Any] | None = None) -> Any:
    """Return ∂σ_ak/∂(∂u_b/∂x_m) as a vector in the order (k, m, a, b), or None if it varies.

    With a function `derivative`, it is applied to the vector.
    """
    assert model.materials is not None
    dim = model.displacements.dofmap.bs
    units = np.eye(dim)
    stress = {}
    for b in range(dim):
        for m in range(dim):
            gradient = ufl.as_matrix(np.outer(units[b], units[m]).tolist())
            stress[b, m] = model.materials.law(ufl.sym(gradient))
    order = np.ndindex(dim, dim, dim, dim)
    entries = [stress[b, m][a, k] for k, m, a, b in order]
    law = ufl.as_vector(entries)
    if derivative is not None:
        law = _explicit(derivative(law))
    return law if _is_constant(law) else None


def _explicit(expression: Any) -> Any:
    """Return an expression whose derivatives are carried out."""
    return apply_derivatives(apply_algebra_lowering(expression))


def _is_constant(expression: Any) -> bool:
    """Return whether an expression is constant in each cell and independent of the shape."""
    return is_cellwise_constant(expression) and not extract_type(expression, GeometricQuantity)


def _cell_values(problem: ElasticProblem, expression: Any) -> Array:
    """Return a vector that is constant in each cell, shape (owned cells, components)."""
    mesh = problem.space.mesh
    cells = np.arange(_num_cells(problem), dtype=np.int32)
    middle = np.asarray(basix.geometry(mesh.basix_cell())).mean(axis=0, keepdims=True)
    zero = fem.Constant(mesh, np.zeros(expression.ufl_shape))  # numbers have no mesh
    compiled = compiled_expression(expression + zero, middle)
    return np.reshape(compiled.eval(mesh, cells), (len(cells), zero.value.size))


def _num_cells(problem: ElasticProblem) -> int:
    """Return the number of cells that this rank owns."""
    topology = problem.space.mesh.topology
    return int(topology.index_map(topology.dim).size_local)


class _Cells:
    """Geometry of the owned cells at the points of a quadrature rule.

    It serves all shape parameters with their velocities V of the mesh. r are the coordinates in the
    reference cell and x those in space. In cells of constant ∂r/∂x, one point represents all.
    """

    def __init__(self, problem: ElasticProblem, degree: int) -> None:
        mesh, d = problem.space.mesh, problem.dim
        rule = basix.make_quadrature(mesh.basix_cell(), degree)
        points, self.weights = (np.asarray(x, dtype=float) for x in rule)
        element = problem.space.ufl_element().sub_elements[0]
        table = np.asarray(element.tabulate(1, points))
        # Values (points, functions) and derivatives by r (points, d, functions) of the functions
        # of the element
        self.values = table[0]
        self.derivatives = np.ascontiguousarray(np.moveaxis(table[1:], 0, 1))
        affine = geometry_degree(mesh) == 1 and mesh.topology.cell_name() in SIMPLICES
        self._points = points[:1] if affine else points
        coordinates = mesh.ufl_domain().ufl_coordinate_element().sub_elements[0]
        nodes, x = geometry_dofmap(mesh)[: _num_cells(problem)], mesh.geometry.x[:, :d]
        shape = len(nodes), len(self._points), d, d
        J = (self._gradients(coordinates) @ x[nodes]).reshape(shape)  # ∂x_a/∂r, [r, a]
        inverse, volume = _inverse(np.swapaxes(J, 2, 3))
        self.inverse = np.ascontiguousarray(inverse)  # ∂r/∂x
        self.volume = np.abs(volume)  # dx/dr, (cells, points)
        self._buffers: dict[str, Array] = {}

    def buffer(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return an array without values; new memory for each block of cells would be slow."""
        size = int(np.prod(shape))
        if self._buffers.get(name, np.empty(0)).size < size:
            self._buffers[name] = np.empty(size)
        return self._buffers[name][:size].reshape(shape)

    def _gradients(self, element: Any) -> Array:
        """Return the derivatives by r of an element's functions, shape (points · d, functions)."""
        table = np.asarray(element.tabulate(1, self._points))[1:]
        return np.ascontiguousarray(np.swapaxes(table, 0, 1).reshape(-1, table.shape[2]))

    def velocity_gradients(self, velocity: Any) -> Array:
        """Return ∂V_a/∂x_l of a velocity V of the mesh, shape (cells, points, dim, dim)."""
        return np.asarray(np.swapaxes(self._motion(velocity), 2, 3) @ self.inverse)

    def divergence(self, velocity: Any) -> Array:
        """Return div V of a velocity V of the mesh, shape (cells, points)."""
        return np.einsum("cqra,cqra->cq", self._motion(velocity), self.inverse)

    def _motion(self, velocity: Any) -> Array:
        """Return ∂V_a/∂r, shape (cells, points, dim, dim); the rows belong to coordinates r."""
        space, d = velocity.function_space, self.inverse.shape[-1]
        table = self._gradients(space.ufl_element().sub_elements[0])
        V = velocity.x.array.reshape(-1, d)[space.dofmap.list[: len(self.inverse)]]
        return np.asarray((table @ V).reshape(self.inverse.shape))


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


class CellMatrices:
    """A matrix K′ = Σ K_c of a body as the matrices K_c of its cells.

    The matrices are neither assembled nor stored: they are computed for each product.

    Args:
        space: Space of the displacements.
        sums: Sums over the owned cells in blocks.
        block: Function that returns K_c for a slice of the owned cells, shape (cells, dofs of a
            cell, dofs of a cell).
    """

    def __init__(
        self, space: fem.FunctionSpace, sums: list[_Sums], block: Callable[[slice], Array]
    ) -> None:
        self._space, self._sums, self._block = space, sums, block
        self._diagonal: Array | None = None

    def multiply(self, X: Array) -> Array:
        """Return K′X for X of shape (owned dofs, k) (collective)."""
        space, d, columns = self._space, self._space.dofmap.bs, X.shape[1]
        U = _with_ghosts(space, X).reshape(_num_local(space), d * columns)
        F = np.zeros((len(U), d * (columns + 1)))  # the last column is the diagonal
        forces: Array = np.empty((0, 0, 0))
        values = forces
        for cells, distinct, sums in self._sums:
            K, dofs = self._block(cells), space.dofmap.list[cells]
            if len(forces) != len(K):
                forces = np.empty((*K.shape[:2], columns + 1))
                values = np.empty((*dofs.shape, d * columns))
            np.take(U, dofs, axis=0, out=values, mode="clip")  # faster than "raise"
            np.matmul(K, values.reshape(len(K), -1, columns), out=forces[..., :columns])
            forces[..., columns] = np.diagonal(K, axis1=1, axis2=2)
            F[distinct] += sums @ forces.reshape(dofs.size, -1)
        sums = _owned_sums(space, F.reshape(-1, columns + 1))
        self._diagonal = sums[:, columns].copy()
        return sums[:, :columns]

    def diagonal(self) -> Array:
        """Return the diagonal of K′, shape (owned dofs,) (collective)."""
        if self._diagonal is None:
            space = self._space
            self.multiply(np.zeros((space.dofmap.bs * space.dofmap.index_map.size_local, 0)))
        assert self._diagonal is not None
        return self._diagonal

    def destroy(self) -> None:
        """Free the data of the cells."""
        del self._block


def _stiffness(
    problem: ElasticProblem, constants: _Constants, law: Array, velocity: Any
) -> CellMatrices:
    """Return K′ for a law (cells, dim⁴) in the order of `_constant_law`, on a moving mesh."""
    cells = constants.stiffness_cells
    gradients = cells.velocity_gradients(velocity)

    def block(part: slice) -> Array:
        gradient, inverse = gradients[part], cells.inverse[part]
        half = 0.5 * np.trace(gradient, axis1=2, axis2=3)[..., None, None] * np.eye(problem.dim)
        return _cell_matrices(cells, part, law[part], inverse @ (half - gradient))

    return CellMatrices(problem.space, constants.sums, block)


def _cell_matrices(cells: _Cells, part: slice, law: Array, changed: Array) -> Array:
    """Return ∫ (g_i g̃_jᵀ + g̃_i g_jᵀ) : C dx with g̃ = ∂N/∂r · `changed` for some of the cells.

    The next call overwrites the result.
    """
    inverse, derivatives = cells.inverse[part], cells.derivatives  # (points, d, functions)
    weights = cells.volume[part] * cells.weights
    size, d, (points, _, n) = len(inverse), inverse.shape[-1], derivatives.shape
    # g_k and g̃_k of all functions, (cells, points, d · functions)
    g, moved = (cells.buffer(name, (size, points, d, n)) for name in ("gradients", "moved"))
    np.matmul(np.swapaxes(inverse, 2, 3), derivatives, out=g)
    np.matmul(np.swapaxes(changed * weights[..., None, None], 2, 3), derivatives, out=moved)
    g, moved = (X.reshape(size, points, d * n) for X in (g, moved))
    first, second = (cells.buffer(name, (size, d * n, d * n)) for name in ("first", "second"))
    np.matmul(np.swapaxes(moved, 1, 2), g, out=first)
    np.add(first, np.swapaxes(first, 1, 2), out=second)  # (k, i) by (m, j)
    np.copyto(first.reshape(size, d, d, n, n), second.reshape(size, d, n, d, n).swapaxes(2, 3))
    of_pairs = np.swapaxes(law.reshape(size, d * d, d * d), 1, 2)
    shape = size, d * d, n * n
    np.matmul(of_pairs, first.reshape(shape), out=second.reshape(shape))  # (a, b) by (i, j)
    pairs = second.reshape(size, d, d, n, n).transpose(0, 3, 1, 4, 2)
    np.copyto(first.reshape(size, n, d, n, d), pairs)
    return first


def _num_local(space: fem.FunctionSpace) -> int:
    """Return the number of nodes on this rank, including ghosts."""
    index_map = space.dofmap.index_map
    return int(index_map.size_local + index_map.num_ghosts)


def _with_ghosts(space: fem.FunctionSpace, X: Array) -> Array:
    """Return the values of all local degrees of freedom, shape (local dofs, k), in C order."""
    out = np.empty((space.dofmap.bs * _num_local(space), X.shape[1]))
    out[: len(X)] = X
    if space.mesh.comm.size > 1:
        function = fem.Function(space)
        for column, x in enumerate(X.T):
            function.x.array[: len(x)] = x
            function.x.scatter_forward()
            out[len(X) :, column] = function.x.array[len(X) :]
    return out


def _owned_sums(space: fem.FunctionSpace, values: Array) -> Array:
    """Add the values of ghosts to those of their owners; return (owned dofs, k)."""
    owned = space.dofmap.bs * space.dofmap.index_map.size_local
    if space.mesh.comm.size > 1:
        function = fem.Function(space)
        for column, x in enumerate(values.T):
            function.x.array[:] = x
            function.x.scatter_reverse(la.InsertMode.add)
            values[:owned, column] = function.x.array[:owned]
    return np.asfortranarray(values[:owned])


def _sums(problem: ElasticProblem) -> list[_Sums]:
    """Return the sums over the owned cells in blocks."""
    count, sums = _num_cells(problem), []
    for cells in (slice(k, min(k + BLOCK, count)) for k in range(0, count, BLOCK)):
        flat = problem.space.dofmap.list[cells].ravel()
        order = np.argsort(flat, kind="stable")
        distinct, first = np.unique(flat[order], return_index=True)
        entries = np.ones(len(flat)), order, np.append(first, len(flat))
        S = scipy.sparse.csr_matrix(entries, (len(distinct), len(flat)))
        sums.append((cells, distinct, S))
    return sums


def _mass(problem: ElasticProblem, factors: Array, cells: _Cells) -> PETSc.Mat:
    """Return the scalar matrix of factors in each cell, shape (cells, points or 1)."""
    dofs, N = problem.space.dofmap.list, cells.values
    products = np.einsum("qi,qj->qij", N, N).reshape(len(N), -1)
    change = cells.volume * factors * cells.weights
    matrix = problem.scalar_mass.duplicate(copy=False)
    count = 8 * BLOCK  # scalar matrices of cells are smaller than those of displacements
    for first in range(0, len(change), count):
        block = change[first : first + count]
        _add(matrix, dofs[first : first + len(block)], block @ products)
    matrix.assemble()
    return matrix


def _add(matrix: PETSc.Mat, dofs: Any, values: Array) -> None:
    """Add element matrices to a matrix; `dofs` are local blocks, shape (cells, functions)."""
    flat = values.reshape(len(dofs), -1)
    matrix.setValuesBlockedLocalRCV(dofs, dofs, flat, PETSc.InsertMode.ADD_VALUES)
