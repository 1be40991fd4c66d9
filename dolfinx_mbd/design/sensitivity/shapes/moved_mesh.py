"""Stress on a mesh that moves with a shape velocity V, and the steps at which cells degenerate.

While the nodal values of u are constant, the gradient ∇u changes by −∇u ∇V. A step s maps the
gradient of the coordinates of a cell to I + s∇V.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import basix
import numpy as np
import ufl
from dolfinx import fem
from mpi4py import MPI
from ufl.algorithms.apply_algebra_lowering import apply_algebra_lowering
from ufl.algorithms.apply_derivatives import apply_derivatives
from ufl.classes import GeometricQuantity, Grad, SpatialCoordinate
from ufl.core.expr import Expr
from ufl.corealg.traversal import unique_pre_traversal

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.compat import geometry_degree, interpolated
from dolfinx_mbd.fem.material_fields import BodyMaterials
from dolfinx_mbd.forms import strain

CELLS_AT_ONCE = 10_000
SAFE_DETERMINANT = 1e-2  # det(I + sA) above this value is far from zero
DEFECT = 1e-4  # relative imaginary part of an eigenvalue of ∇V that counts as real


def stress_of_moved_mesh(
    materials: BodyMaterials, velocity: fem.Function
) -> Callable[[Expr], Expr]:
    """Return the function u ↦ derivative of the stress in space for constant nodal values of u.

    Args:
        materials: Materials of the body.
        velocity: Shape velocity at the nodes of the mesh.

    Raises:
        InputError: The stress law depends on other quantities of the mesh than its coordinates. The
            returned function raises this error.
    """
    mesh = velocity.function_space.mesh
    x = ufl.SpatialCoordinate(mesh)

    def change(u: Expr) -> Expr:
        moved = materials.law_in_space(ufl.sym(-ufl.dot(ufl.grad(u), ufl.grad(velocity))))
        stress = apply_derivatives(apply_algebra_lowering(materials.law_in_space(strain(u))))
        parts = list(unique_pre_traversal(stress))
        geometry = {type(p) for p in parts if isinstance(p, GeometricQuantity)}
        gradients = {p for p in parts if isinstance(p, Grad) and not p.ufl_operands[0] == u}
        if geometry - {SpatialCoordinate} or gradients:
            raise InputError(
                "the stress law depends on the cells of the mesh or on gradients of functions; "
                "its derivative with respect to the shape is unknown",
                argument="parameters",
            )
        if not geometry:
            return moved
        position = interpolated(x, velocity.function_space)
        explicit = ufl.replace(stress, {x: position})
        return moved + ufl.derivative(explicit, position, velocity)

    return change


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
    compiled = fem.Expression(ufl.grad(velocity), points)
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
