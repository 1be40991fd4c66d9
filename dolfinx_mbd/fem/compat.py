"""What differs between the DOLFINx versions 0.9 to 0.11: one small function per difference.

No other module of the package asks which version it runs with.
"""

from __future__ import annotations

import importlib
from types import ModuleType

import numpy as np
import numpy.typing as npt
from dolfinx import cpp as _cpp
from dolfinx import default_real_type
from dolfinx.graph import adjacencylist
from dolfinx.io.utils import distribute_entity_data
from dolfinx.mesh import Mesh, MeshTags, create_mesh, meshtags, meshtags_from_entities
from mpi4py import MPI

from dolfinx_mbd.geometry.gmsh_model import MeshArrays

__all__ = ["distribute", "geometry_degree", "geometry_dofmap", "gmsh_io"]


def gmsh_io() -> ModuleType:
    """DOLFINx's module that reads gmsh models: `io.gmsh`, which was `io.gmshio` in 0.9."""
    try:
        return importlib.import_module("dolfinx.io.gmsh")
    except ModuleNotFoundError:
        return importlib.import_module("dolfinx.io.gmshio")


def distribute(comm: MPI.Comm, arrays: MeshArrays) -> tuple[Mesh, MeshTags, MeshTags]:
    """Distribute the mesh of rank 0; return `(mesh, cell_tags, facet_tags)`.

    Args:
        comm: Communicator.
        arrays: The mesh; on other ranks without rows.

    Note:
        Collective over `comm`.
    """
    domain = gmsh_io().ufl_mesh(arrays.cell_type, arrays.gdim, dtype=default_real_type)
    kind = _cpp.mesh.to_type(domain.ufl_coordinate_element().cell_type.name)
    permutation = gmsh_io().cell_perm_array(kind, arrays.cells.shape[1])
    cells, x = arrays.cells[:, permutation].copy(), arrays.points[:, : arrays.gdim].copy()
    mesh = create_mesh(comm, cells=cells, x=x, e=domain)
    tdim = mesh.topology.dim
    cell_tags = _tags(mesh, tdim, cells, arrays.cell_tags)
    if not arrays.facets.shape[1]:
        mesh.topology.create_entities(tdim - 1)
        return mesh, cell_tags, meshtags(mesh, tdim - 1, *2 * [np.empty(0, dtype=np.int32)])
    facet_kind = _cpp.mesh.cell_entity_type(kind, tdim - 1, 0)
    permutation = gmsh_io().cell_perm_array(facet_kind, arrays.facets.shape[1])
    facets = arrays.facets[:, permutation].copy()
    return mesh, cell_tags, _tags(mesh, tdim - 1, facets, arrays.facet_tags)


def _tags(
    mesh: Mesh, dim: int, nodes: npt.NDArray[np.int64], values: npt.NDArray[np.int32]
) -> MeshTags:
    entities, values = distribute_entity_data(mesh, dim, nodes, values)
    mesh.topology.create_connectivity(dim, 0)
    mesh.topology.create_connectivity(dim, mesh.topology.dim)
    return meshtags_from_entities(mesh, dim, adjacencylist(entities), values.astype(np.int32))


def geometry_degree(mesh: Mesh) -> int:
    """Geometric order of a mesh: `geometry.cmap.degree`, where 0.11 prefers a list of maps."""
    geometry = mesh.geometry
    maps = getattr(geometry, "cmaps", None)
    return int((maps[0] if maps else geometry.cmap).degree)


def geometry_dofmap(mesh: Mesh) -> npt.NDArray[np.int32]:
    """Nodes of each local cell, shape (cells, nodes); 0.11 prefers a list of maps."""
    geometry = mesh.geometry
    maps = getattr(geometry, "dofmaps", None)
    if callable(maps):
        return maps(0)
    return maps[0] if maps else geometry.dofmap
