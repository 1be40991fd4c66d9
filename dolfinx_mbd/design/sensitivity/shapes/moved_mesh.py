"""Moved meshes and changed functions, and the steps at which cells of a moved mesh degenerate.

A step s along a shape velocity V maps the gradient of the coordinates of a cell to I + s∇V.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import basix
import numpy as np
import ufl
from dolfinx import fem
from dolfinx.mesh import Mesh
from mpi4py import MPI

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.compat import geometry_degree, geometry_dofmap
from dolfinx_mbd.fem.compilation import compiled_expression

CELLS_AT_ONCE = 10_000
SAFE_DETERMINANT = 1e-2  # det(I + sA) above this value is far from zero
DEFECT = 1e-4  # relative imaginary part of an eigenvalue of ∇V that counts as real


@contextmanager
def unchanged(step: float) -> Iterator[None]:
    """Change neither mesh nor functions."""
    yield


@contextmanager
def changed_function(f: fem.Function, direction: fem.Function, step: float) -> Iterator[None]:
    """Add a multiple of a function to another; its values are exactly restored at the end."""
    values = f.x.array.copy()
    f.x.array[:] = values + step * direction.x.array
    try:
        yield
    finally:
        f.x.array[:] = values


@contextmanager
def moved_mesh(mesh: Mesh, velocity: Array, step: float) -> Iterator[None]:
    """Move the nodes of a mesh; their positions are exactly restored at the end.

    Args:
        mesh: The mesh.
        velocity: Result of `nodes_velocity`.
        step: Factor of the velocity.
    """
    positions = mesh.geometry.x.copy()
    mesh.geometry.x[:] = positions + step * velocity
    try:
        yield
    finally:
        mesh.geometry.x[:] = positions


def nodes_velocity(velocity: fem.Function) -> Array:
    """Return the velocity of all geometry nodes of this rank, with ghosts, shape (nodes, 3).

    Args:
        velocity: Function on a Lagrange space of the degree of the mesh.
    """
    mesh = velocity.function_space.mesh
    topology, dim = mesh.topology, mesh.geometry.dim
    cells = topology.index_map(topology.dim)
    count = cells.size_local + cells.num_ghosts
    space, geometry = velocity.function_space, mesh.ufl_domain().ufl_coordinate_element()
    points = geometry.sub_elements[0].basix_element.points
    table = np.asarray(space.ufl_element().sub_elements[0].tabulate(0, points))[0]
    values = table @ velocity.x.array.reshape(-1, dim)[space.dofmap.list[:count]]
    nodes = geometry_dofmap(mesh)[:count]
    result: Array = np.zeros(mesh.geometry.x.shape)
    result[nodes.ravel(), :dim] = values.reshape(nodes.size, dim)
    return result


def step_limits(velocity: fem.Function) -> tuple[float, float]:
    """Return the steps below and above zero at which a cell degenerates (collective).

    These are the roots of det(I + s∇V) that are closest to zero, at the nodes and Gauss points of
    all cells; infinite if there are none.
    """
    mesh = velocity.function_space.mesh
    topology, cell = mesh.topology, mesh.basix_cell()
    degree = geometry_degree(mesh)
    affine = degree == 1 and topology.cell_name() in ("triangle", "tetrahedron")
    points: Array = np.asarray(basix.make_quadrature(cell, 1 if affine else 2 * degree)[0])
    if not affine:
        scalar = velocity.function_space.ufl_element().sub_elements[0]
        points = np.vstack([points, scalar.basix_element.points])
    compiled = compiled_expression(ufl.grad(velocity), points)
    low, high = -np.inf, np.inf
    count, dim = topology.index_map(topology.dim).size_local, mesh.geometry.dim
    for start in range(0, count, CELLS_AT_ONCE):
        cells = np.arange(start, min(start + CELLS_AT_ONCE, count), dtype=np.int32)
        gradients = np.asarray(compiled.eval(mesh, cells)).reshape(-1, dim, dim)
        low, high = _roots(gradients, low, high)
    comm: Any = mesh.comm
    return comm.allreduce(low, op=MPI.MAX), comm.allreduce(high, op=MPI.MIN)


def _roots(gradients: Array, low: float = -np.inf, high: float = np.inf) -> tuple[float, float]:
    """Return the roots of all det(I + sA) that are closest to zero, below and above.

    They are −1/λ for the real eigenvalues λ of A. Eigenvalues are computed only for matrices whose
    determinant 1 + I₁ s + I₂ s² + I₃ s³ may vanish between the limits that are already known.

    Args:
        gradients: Matrices A, shape (·, dim, dim).
        low: Largest root below zero that is already known.
        high: Smallest root above zero that is already known.

    Example:
        >>> _roots(np.diag([2.0, -0.5, 0.0])[None])
        (-0.5, 2.0)
        >>> _roots(np.stack([k * np.diag([2.0, -0.5, 0.0]) for k in (1, 3, 2)]), -0.2)
        (-0.16666666666666666, 0.6666666666666666)
    """
    if not len(gradients):
        return low, high
    first = np.trace(gradients, axis1=1, axis2=2)
    second = 0.5 * (first**2 - np.einsum("cij,cji->c", gradients, gradients))
    third = np.linalg.det(gradients)
    if gradients.shape[1] == 2:
        third = np.zeros_like(first)
    invariants = np.stack([first, second, third])
    extreme = np.unique([invariants.argmin(axis=1), invariants.argmax(axis=1)])
    low, high = _exact_roots(gradients[extreme], low, high)
    possible = np.zeros(len(gradients), dtype=bool)
    for limit in (low, high):
        powers = np.array([limit, limit**2, limit**3])[:, None]
        with np.errstate(invalid="ignore"):  # 0 · ∞ is zero here
            terms = np.where(invariants == 0, 0.0, invariants * powers)
        possible |= 1.0 + np.minimum(terms, 0.0).sum(axis=0) < SAFE_DETERMINANT
    return _exact_roots(gradients[possible], low, high)


def _exact_roots(gradients: Array, low: float, high: float) -> tuple[float, float]:
    """Return the result of `_roots` from the eigenvalues of all matrices."""
    values = np.linalg.eigvals(gradients)
    real = values.real[np.abs(values.imag) <= DEFECT * np.abs(values)]
    least, greatest = float(real.min(initial=0.0)), float(real.max(initial=0.0))
    low = max(low, -1 / greatest if greatest > 0 else -np.inf)
    return low, min(high, -1 / least if least < 0 else np.inf)
