"""Stress modes and values of functions at the nodes of a body's skin (its surface)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import basix
import numpy as np
from dolfinx import fem
from dolfinx.mesh import Mesh
from mpi4py import MPI
from numpy.typing import NDArray

from dolfinx_mbd.body.stress_modes import StressModes
from dolfinx_mbd.checks import flag, instance, reject
from dolfinx_mbd.durability.recovery.cell_fields import Points, field_modes, linear_in, points_of
from dolfinx_mbd.durability.recovery.mesh_recovery import MeshRecovery
from dolfinx_mbd.durability.recovery.stress import Recovery, recovery_of
from dolfinx_mbd.errors import InputTypeError
from dolfinx_mbd.fem import compat
from dolfinx_mbd.fem.compilation import compiled_expression
from dolfinx_mbd.fem.fields import surface_nodes
from dolfinx_mbd.parallel import on_rank_zero, shared_errors
from dolfinx_mbd.reduction.result import Reduction
from dolfinx_mbd.structures.mesh_bodies import MeshBody, MeshMotion

__all__ = ["mesh_skin_stress", "skin_averages", "skin_stress", "skin_values"]

Array = NDArray[np.float64]

_INSTANTS = 16  # number of instants whose stress is in memory at the same time


def skin_stress(source: Reduction | Recovery, *, peaks: bool = True) -> StressModes:
    """Return the stress of each mode at the nodes of the skin, averaged over adjacent cells.

    The average is more accurate than the stress of one cell, but is lower at a peak, and is
    meaningless at the boundary between two materials. The values have the order of the nodes of the
    body's skin, on every rank.

    Args:
        source: A reduction, or a `Recovery` with another stress law.
        peaks: Whether to add the stress of single cells at the surface, so that pictures and the
            viewer can show the same peak as `mbd.most_stressed`. It takes about six times the
            memory of the averages, also in the file of the body.

    Raises:
        InputError: The stress law is not known.

    Note: Collective.

    Example:
        >>> body = bar.body.replace(stress=mbd.durability.skin_stress(bar))
        >>> body.stress.values("von Mises", eta).shape == (1, len(body.skin.points))
        True
    """
    recovery = recovery_of(source)
    modes, law = recovery.reduction.modes, recovery.stress_components
    points, averages = skin_averages(recovery.space, modes, law, "stress")
    cells = _single_cells(recovery.space, modes, law, "stress") if flag("peaks", peaks) else None
    return StressModes(points, averages, cells)


def mesh_skin_stress(body: MeshBody, q: Array) -> Array:
    """Return the Cauchy stress of a mesh body at the points of its `drawing`, (nt, 6, nodes), Pa.

    The components xx, yy, zz, xy, yz, zx are global and averaged over adjacent cells.

    Args:
        body: The body.
        q: Its coordinates, shape (nt, nq).

    Note: Collective.
    """
    mesh = body.forces.space.mesh
    time: Array = np.arange(len(q), dtype=np.float64)
    # displacements, velocities and accelerations
    motion = MeshMotion(body, time, *(body.nodal_history(q, kind) for kind in range(3)))
    corners = np.asarray(basix.geometry(mesh.basix_cell()), dtype=float)
    cells = np.arange(mesh.topology.index_map(mesh.topology.dim).size_local, dtype=np.int32)
    rows = np.arange(len(cells) * len(corners), dtype=np.int32)
    recovery = MeshRecovery(body)
    recovery.points = Points(mesh, "nodes", None, corners, cells, rows)
    fields = recovery.fields(motion, "stress", lambda time: np.arange(len(time), dtype=np.int64))
    parts = []
    for start in range(0, len(q), _INSTANTS):
        block = [fields.evaluate(k) for k in range(start, min(start + _INSTANTS, len(q)))]
        _, averages = _averages(mesh, cells, np.stack(block, axis=2))
        parts.append(np.moveaxis(averages, 2, 0))
    return np.concatenate(parts)


def skin_averages(
    space: fem.FunctionSpace, modes: Array, function: Callable[[Any], Any], name: str
) -> tuple[Array, Array]:
    """Return the nodes of the skin (nodes, 3), and averages of a linear function of u at them.

    Args:
        space: Displacement space.
        modes: Displacements, shape (owned dofs, n).
        function: Function that returns UFL, linear in u.
        name: Name of the function in errors.

    Returns:
        Nodes, and averages over adjacent cells, shape (components, nodes, n), equal on every rank.
        Collective.
    """
    mesh = space.mesh
    expression, _ = linear_in(space, function, name)
    corners = np.asarray(basix.geometry(mesh.basix_cell()), dtype=float)
    cells = np.arange(mesh.topology.index_map(mesh.topology.dim).size_local, dtype=np.int32)
    points = Points(mesh, "nodes", None, corners, cells, np.zeros(0, dtype=np.int32))
    return _averages(mesh, cells, field_modes(space, modes, expression, points))


def _single_cells(
    space: fem.FunctionSpace, modes: Array, function: Callable[[Any], Any], name: str
) -> Array:
    """Return a linear function of u at points of single cells at the surface.

    The points are those of `Recovery` in the cells with a node on the surface, except corners
    inside the body.

    Returns:
        Values, shape (components, values of all cells, n), equal on every rank.
        Collective.
    """
    mesh, points = space.mesh, points_of(space, "nodes")
    skin = surface_nodes(fem.functionspace(mesh, ("Lagrange", 1)))
    corners = np.asarray(basix.geometry(mesh.basix_cell()), dtype=float)
    nodes = compat.geometry_dofmap(mesh)[points.cells][:, : len(corners)]
    on_skin = np.isin(np.asarray(mesh.geometry.input_global_indices)[nodes], skin)
    near = on_skin.any(axis=1)
    cells = points.cells[near]
    expression, _ = linear_in(space, function, name)
    values = field_modes(space, modes, expression, replace(points, cells=cells))
    chosen = np.ones((len(cells), len(points.reference)), dtype=bool)
    for k, corner in enumerate(corners):
        at_corner = np.linalg.norm(points.reference - corner, axis=1) < 1e-9
        chosen[:, at_corner] &= on_skin[near, k, None]
    order = np.repeat(mesh.topology.original_cell_index[cells], chosen.sum(axis=1))
    parts = mesh.comm.gather((order, values[:, chosen.ravel()].astype(np.float32)), root=0)

    def sorted_by_cell() -> Array:
        numbers, arrays = zip(*parts, strict=True)
        rows = np.argsort(np.concatenate(numbers), kind="stable")
        return np.concatenate(arrays, axis=1)[:, rows]

    return on_rank_zero(mesh.comm, sorted_by_cell)


def skin_values(function: fem.Function) -> Array:
    """Return a scalar function at the nodes of the skin, averaged over adjacent cells.

    Args:
        function: A scalar function on the mesh of the body, for example the value of an envelope.

    Returns:
        Values at the nodes of the body's skin, shape (nodes,), equal on every rank.

    Raises:
        InputTypeError: `function` is not a scalar function.
        InputError: `function` has values at quadrature points only.

    Note: Collective.

    Example:
        >>> mbd.durability.skin_values(mbd.envelope(bar, eta).value).shape
        (36,)
    """
    instance("function", function, fem.Function)
    space = function.function_space
    if function.ufl_shape != ():
        reject("function", function, "a scalar function", InputTypeError)
    if space.ufl_element().family_name == "quadrature":
        reject("function", function, "a function on a space with values at the nodes")
    mesh = space.mesh
    corners = np.asarray(basix.geometry(mesh.basix_cell()), dtype=float)
    cells = np.arange(mesh.topology.index_map(mesh.topology.dim).size_local, dtype=np.int32)
    values = np.reshape(compiled_expression(function, corners).eval(mesh, cells), (1, -1, 1))
    _, averages = _averages(mesh, cells, values)
    return averages[0, :, 0]  # one component, one mode


def _averages(mesh: Mesh, cells: NDArray[np.int32], values: Array) -> tuple[Array, Array]:
    """Return the nodes of the skin (nodes, 3), and the average of the corner values at each node.

    The values have the shape (components, cells · corners, n) for the owned cells, and the averages
    (components, nodes, n), equal on every rank.
    """
    comm = mesh.comm
    corners = values.shape[1] // max(len(cells), 1)
    nodes = compat.geometry_dofmap(mesh)[cells][:, :corners].ravel()
    keys = np.asarray(mesh.geometry.input_global_indices)[nodes]
    skin = surface_nodes(fem.functionspace(mesh, ("Lagrange", 1)))
    sums, count = np.zeros((len(values), len(skin), values.shape[2])), np.zeros(len(skin))
    x = np.full((len(skin), 3), -np.inf)
    with shared_errors(comm):
        index = np.minimum(np.searchsorted(skin, keys), len(skin) - 1)
        on_skin = skin[index] == keys
        np.add.at(count, index[on_skin], 1.0)
        for k in range(len(values)):
            np.add.at(sums[k], index[on_skin], values[k, on_skin])
        x[index[on_skin]] = mesh.geometry.x[nodes[on_skin]]
    for array, operation in ((sums, MPI.SUM), (count, MPI.SUM), (x, MPI.MAX)):
        total = np.empty_like(array)
        comm.Reduce(array, total, op=operation, root=0)
        comm.Bcast(total, root=0)
        array[:] = total
    return x, sums / count[None, :, None]
