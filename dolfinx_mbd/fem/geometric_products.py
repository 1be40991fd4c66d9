"""Products of modes with the geometric stiffness of many stresses, on simplices.

With the stress on the reference cell, the products of gradients are the same for all cells. The
matrices of all cells and all stresses are therefore one product of dense matrices:

    A_ab = Σ_q w_q Σ_kl ∂_kφ_a(ξ_q) ∂_lφ_b(ξ_q) S_kl(ξ_q),    S = |det J| J⁻¹ σ J⁻ᵀ.

A form would be assembled once for each stress. Only one half of the symmetric matrices is stored;
entries on the diagonal are halved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import basix
import numpy as np
import scipy
import ufl
from dolfinx import fem
from dolfinx.mesh import Mesh
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.compilation import compiled_expression
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.linalg.blocks import gram

MAX_CELLS, MAX_CASES = 20_000, 6  # numbers of cells and stresses whose matrices are in memory

_Cells = NDArray[np.int32]


def has_simplices(mesh: Mesh) -> bool:
    """Return whether the cells are simplices with a square Jacobian, flat or curved."""
    simplex = mesh.topology.cell_name() in ("triangle", "tetrahedron")
    return simplex and mesh.geometry.dim == mesh.topology.dim


def geometric_products(
    space: fem.FunctionSpace,
    stress: Callable[[Any], Any],
    displacements: Array,
    vectors: Array,
    degree: int,
) -> Iterator[Array]:
    """Yield Ψᵀ K_σ Ψ, shape (n, n), for the stress of each displacement (collective).

    Args:
        space: Displacement space on a mesh with `has_simplices`.
        stress: σ(u) as UFL, symmetric, Pa.
        displacements: Displacements that cause the stresses, shape (owned dofs, k), m.
        vectors: Modes Ψ, shape (owned dofs, n).
        degree: Degree of the quadrature rule.
    """
    mesh = space.mesh
    cell_type = getattr(basix.CellType, mesh.topology.cell_name())
    points, weights = map(np.asarray, basix.make_quadrature(cell_type, degree))
    gradients = _gradient_products(space, points, weights)
    function = fem.Function(space)
    S = compiled_expression(_on_reference_cell(mesh, stress(function)), points)
    entries, indptr, indices = _half_pattern(space)
    num_nodes = len(indptr) - 1
    fields = _with_ghosts(space, displacements)
    modes = np.ascontiguousarray(_with_ghosts(space, vectors))
    nodal = modes.reshape(num_nodes, space.dofmap.bs * modes.shape[1])
    for begin in range(0, fields.shape[1], MAX_CASES):
        block = fields[:, begin : begin + MAX_CASES]
        values = np.zeros((len(indices), block.shape[1]))
        for cells, A in _cell_matrices(S, function, gradients, block):
            part = entries[cells].ravel()
            # A matrix of ones adds the entries of the cells to the entries of the whole matrix
            ones, starts = np.ones(len(part)), np.arange(len(part) + 1)
            sums = scipy.sparse.csc_matrix((ones, part, starts), shape=(len(values), len(part)))
            values += sums @ A.reshape(len(part), -1)
        for column in np.ascontiguousarray(values.T):
            half = scipy.sparse.csr_matrix((column, indices, indptr), shape=(num_nodes, num_nodes))
            product = gram(mesh.comm, modes, (half @ nodal).reshape(modes.shape))
            yield product + product.T


def _cell_matrices(
    S: fem.Expression, function: fem.Function, gradients: Array, fields: Array
) -> Iterator[tuple[_Cells, Array]]:
    """Yield owned cells, and the upper halves of their matrices, (cells, pairs, fields)."""
    mesh = function.function_space.mesh
    count = mesh.topology.index_map(mesh.topology.dim).size_local
    for begin in range(0, count, MAX_CELLS):
        cells = np.arange(begin, min(begin + MAX_CELLS, count), dtype=np.int32)
        stresses = np.empty((len(cells), gradients.shape[1], fields.shape[1]))
        for k, field in enumerate(fields.T):
            function.x.array[:] = field
            stresses[..., k] = S.eval(mesh, cells).reshape(len(cells), -1)
        yield cells, gradients @ stresses


def _gradient_products(space: fem.FunctionSpace, points: Array, weights: Array) -> Array:
    """Return w ∂_kφ_a ∂_lφ_b for a ≤ b and k ≤ l at all points, shape (pairs, points · kl).

    For k < l they are the sums of both orders; for a = b, half of the products.
    """
    element = space.ufl_element().sub_elements[0]
    g = np.asarray(element.tabulate(1, points))[1:]  # (dim, points, functions)
    first, second = np.triu_indices(g.shape[2])
    k, m = np.triu_indices(len(g))
    products = g[k][..., first] * g[m][..., second] + g[m][..., first] * g[k][..., second]
    products *= weights[:, None] * np.where(first == second, 0.5, 1.0)
    products[k == m] *= 0.5
    return np.ascontiguousarray(products.transpose(2, 1, 0).reshape(len(first), -1))


def _on_reference_cell(mesh: Mesh, stress: Any) -> Any:
    """Return the components k ≤ l of |det J| J⁻¹ σ J⁻ᵀ as UFL."""
    inverse = ufl.JacobianInverse(mesh)
    S = abs(ufl.JacobianDeterminant(mesh)) * inverse * stress * inverse.T
    pairs = zip(*np.triu_indices(mesh.topology.dim), strict=True)
    return ufl.as_vector([S[int(k), int(m)] for k, m in pairs])


def _half_pattern(space: fem.FunctionSpace) -> tuple[_Cells, _Cells, _Cells]:
    """Return the pattern of the upper triangle of a scalar matrix of this rank.

    The first array has the entry of each pair a ≤ b of basis functions, shape (cells, pairs); the
    others are the row pointers and the columns. Rows are nodes, with ghosts.
    """
    topology, index_map = space.mesh.topology, space.dofmap.index_map
    nodes = space.dofmap.list[: topology.index_map(topology.dim).size_local]
    size = index_map.size_local + index_map.num_ghosts
    first, second = np.triu_indices(nodes.shape[1])
    a, b = nodes[:, first], nodes[:, second]
    keys = np.minimum(a, b) * np.int64(size) + np.maximum(a, b)
    unique, entries = np.unique(keys.ravel(), return_inverse=True)
    indptr = np.searchsorted(unique, np.arange(size + 1, dtype=np.int64) * size)
    columns = unique % max(size, 1)
    return (
        entries.astype(np.int32).reshape(a.shape),
        indptr.astype(np.int32),
        columns.astype(np.int32),
    )


def _with_ghosts(space: fem.FunctionSpace, vectors: Array) -> Array:
    """Return vectors (owned dofs, k) with the values of ghosts (collective)."""
    function = fem.Function(space)
    columns = [as_function(space, v, function).x.array.copy() for v in vectors.T]
    return np.array(columns).reshape(vectors.shape[1], len(function.x.array)).T
