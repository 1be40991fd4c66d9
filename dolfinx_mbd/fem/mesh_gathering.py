"""A distributed mesh as arrays on rank 0, in the order of its input file."""

from __future__ import annotations

from typing import Any

import numpy as np
from dolfinx.mesh import CellType, Mesh, MeshTags, entities_to_geometry
from numpy.typing import NDArray

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import compat
from dolfinx_mbd.fem.meshing import TaggedMesh, plain_mesh
from dolfinx_mbd.geometry.gmsh_model import MeshArrays

__all__ = ["gathered_mesh"]

_TYPES = {("tetrahedron", 1): 4, ("tetrahedron", 2): 11, ("hexahedron", 1): 5}
"""gmsh's numbers of the types of cells, by the shape and the geometric order."""


def gathered_mesh(
    mesh: TaggedMesh | Mesh,
    cell_tags: MeshTags | None = None,
    facet_tags: MeshTags | None = None,
) -> MeshArrays | None:
    """Return a mesh of volumes as arrays on rank 0, and None on the other ranks (collective).

    Nodes and cells have the order in which the mesh was created. Cells without a tag get one that
    no group has.

    Args:
        mesh: The mesh.
        cell_tags: Tags of cells; by default those of a `TaggedMesh`.
        facet_tags: Tags of facets; by default those of a `TaggedMesh`.

    Raises:
        InputError: The cells have another shape or order than tetrahedra of order 1 or 2, or
            hexahedra of order 1.
    """
    groups = dict(mesh.groups) if isinstance(mesh, TaggedMesh) else {}
    if isinstance(mesh, TaggedMesh):
        cell_tags = mesh.cell_tags if cell_tags is None else cell_tags
        facet_tags = mesh.facet_tags if facet_tags is None else facet_tags
    mesh = plain_mesh(mesh)
    kind = mesh.topology.cell_name(), compat.geometry_degree(mesh)
    if kind not in _TYPES:
        text = f"a mesh of {kind[0]} cells of order {kind[1]} cannot be written to a mesh file"
        known = ", ".join(f"{name} of order {order}" for name, order in _TYPES)
        raise InputError(f"{text}; possible are {known}", argument="mesh", value=mesh)
    tdim, comm = mesh.topology.dim, mesh.comm
    labels = np.asarray(mesh.geometry.input_global_indices)
    cells = labels[compat.geometry_dofmap(mesh)[: mesh.topology.index_map(tdim).size_local]]
    tags = np.zeros(len(cells), dtype=np.int32)
    if cell_tags is not None:
        owned = cell_tags.indices < len(cells)
        tags[cell_tags.indices[owned]] = cell_tags.values[owned]
    numbers = np.asarray(mesh.topology.original_cell_index)[: len(cells)]
    parts: list[Any] = [labels, mesh.geometry.x, numbers, cells, tags, *_facets(mesh, facet_tags)]
    gathered = comm.gather(parts, root=0)
    if gathered is None:
        return None
    return _merged(mesh, groups, gathered)


def _merged(mesh: Mesh, groups: dict[str, tuple[int, int]], gathered: Any) -> MeshArrays:
    """Return the arrays of a mesh from those of all ranks."""
    labels, points, order, cells, tags, facets, values = map(
        np.concatenate, zip(*gathered, strict=True)
    )
    nodes, first = np.unique(labels, return_index=True)
    rows = np.argsort(order)
    cells, tags = np.searchsorted(nodes, cells)[rows], tags[rows]
    tags[tags == 0] = 1 + max([0, *tags, *(tag for _, tag in groups.values())])
    shape = mesh.topology.cell_type
    return MeshArrays(
        points=points[first],
        cell_type=_TYPES[mesh.topology.cell_name(), compat.geometry_degree(mesh)],
        cells=compat.in_gmsh_order(shape, cells),
        cell_tags=tags,
        facets=compat.in_gmsh_order(_facet_shape(shape), np.searchsorted(nodes, facets)),
        facet_tags=values,
        groups=groups,
        gdim=3,
    )


def _facet_shape(shape: CellType) -> CellType:
    """Return the shape of the facets of a tetrahedron or a hexahedron."""
    return CellType.triangle if shape == CellType.tetrahedron else CellType.quadrilateral


def _facets(mesh: Mesh, tags: MeshTags | None) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the nodes of the owned facets with a tag, by their numbers in the input, and tags."""
    topology, dim = mesh.topology, mesh.topology.dim - 1
    topology.create_entities(dim)
    topology.create_connectivity(dim, dim + 1)
    topology.create_connectivity(dim + 1, dim)
    labels = np.asarray(mesh.geometry.input_global_indices)
    facets, values = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)
    if tags is not None:
        owned = tags.indices < topology.index_map(dim).size_local
        facets, values = tags.indices[owned].astype(np.int32), tags.values[owned].astype(np.int32)
    return labels[entities_to_geometry(mesh, dim, facets)], values
