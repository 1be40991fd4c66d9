"""Functions that hide the differences between DOLFINx 0.9, 0.10 and 0.11.

No other module of the package depends on the version of DOLFINx.
"""

from __future__ import annotations

import importlib

import numpy as np
from dolfinx import cpp as _cpp
from dolfinx import default_real_type, fem
from dolfinx.graph import adjacencylist
from dolfinx.io.utils import distribute_entity_data
from dolfinx.mesh import CellType, Mesh, MeshTags, create_mesh, meshtags, meshtags_from_entities
from mpi4py import MPI
from numpy.typing import NDArray
from ufl.core.expr import Expr
from ufl.domain import extract_domains

from dolfinx_mbd.fem.compilation import compiled_expression
from dolfinx_mbd.geometry.gmsh_model import MeshArrays

try:
    gmsh_io = importlib.import_module("dolfinx.io.gmsh")
except ModuleNotFoundError:  # DOLFINx 0.9
    gmsh_io = importlib.import_module("dolfinx.io.gmshio")


def distribute(comm: MPI.Comm, arrays: MeshArrays) -> tuple[Mesh, MeshTags, MeshTags]:
    """Distribute the mesh of rank 0 and return it with its tags of cells and facets (collective).

    The arrays are empty on the other ranks.
    """
    domain = gmsh_io.ufl_mesh(arrays.cell_type, arrays.gdim, dtype=default_real_type)
    kind = _cpp.mesh.to_type(domain.ufl_coordinate_element().cell_type.name)
    cells = arrays.cells[:, gmsh_io.cell_perm_array(kind, arrays.cells.shape[1])].copy()
    mesh = create_mesh(comm, cells=cells, x=arrays.points[:, : arrays.gdim].copy(), e=domain)
    tdim = mesh.topology.dim
    cell_tags = _tags(mesh, tdim, cells, arrays.cell_tags)
    num_nodes = arrays.facets.shape[1]
    if not num_nodes:
        mesh.topology.create_entities(tdim - 1)
        return mesh, cell_tags, meshtags(mesh, tdim - 1, *2 * [np.empty(0, dtype=np.int32)])
    facet_kind = _cpp.mesh.cell_entity_type(kind, tdim - 1, 0)
    facets = arrays.facets[:, gmsh_io.cell_perm_array(facet_kind, num_nodes)].copy()
    return mesh, cell_tags, _tags(mesh, tdim - 1, facets, arrays.facet_tags)


def _tags(mesh: Mesh, dim: int, nodes: NDArray[np.int64], values: NDArray[np.int32]) -> MeshTags:
    """Return the tags of cells or facets, given on rank 0 by their nodes (collective)."""
    entities, values = distribute_entity_data(mesh, dim, nodes, values)
    mesh.topology.create_connectivity(dim, 0)
    mesh.topology.create_connectivity(dim, mesh.topology.dim)
    return meshtags_from_entities(mesh, dim, adjacencylist(entities), values.astype(np.int32))


def in_gmsh_order(shape: CellType, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the nodes of cells or facets, shape (cells, nodes of a cell), in gmsh's order."""
    result = np.empty_like(nodes)
    result[:, gmsh_io.cell_perm_array(shape, nodes.shape[1])] = nodes
    return result


def geometry_degree(mesh: Mesh) -> int:
    """Return the geometric order of a mesh; DOLFINx 0.11 has a list of coordinate maps."""
    maps = getattr(mesh.geometry, "cmaps", None)
    return int((maps[0] if maps else mesh.geometry.cmap).degree)


def geometry_dofmap(mesh: Mesh) -> NDArray[np.int32]:
    """Return the nodes of local cells, shape (cells, nodes); DOLFINx 0.11 has a list of maps."""
    maps = getattr(mesh.geometry, "dofmaps", None)
    if callable(maps):
        return maps(0)
    return maps[0] if maps else mesh.geometry.dofmap


def interpolated(expression: Expr, space: fem.FunctionSpace) -> fem.Function:
    """Return the interpolation of an expression; DOLFINx 0.10 changed the points (collective)."""
    points = space.element.interpolation_points
    f = fem.Function(space)
    if not extract_domains(expression):  # numbers alone have no mesh
        expression = expression + fem.Constant(space.mesh, np.zeros(expression.ufl_shape))
    f.interpolate(compiled_expression(expression, points() if callable(points) else points))
    f.x.scatter_forward()
    return f
