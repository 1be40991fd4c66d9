"""Selection of the facets at which a body is held or joined, by name, tag or index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from dolfinx import fem
from dolfinx.mesh import Mesh, MeshTags
from numpy.typing import NDArray

from dolfinx_mbd.checks import array, instance, integer, reject
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.checks import names as checked_names
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.fem.meshing import TaggedMesh, plain_mesh, tagged_entities
from dolfinx_mbd.parallel import raise_together

FacetGroups = Mapping[str, NDArray[np.int32]]


def facet_groups(
    mesh: TaggedMesh | Mesh, names: Mapping[str, Any] | Any, facet_tags: MeshTags | None
) -> FacetGroups:
    """Return the local facets of each group; raise an error if a group is empty on all ranks.

    `names` lists group names, or maps names to group names, tags or arrays of local facets.
    """
    instance("mesh", mesh, (TaggedMesh, Mesh))
    instance("facet_tags", facet_tags, (MeshTags, type(None)))
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, Mapping):
        names = {name: name for name in checked_names("interfaces", names)}
    for name in names:
        checked_name("the name of a group", name)
    return {name: _facets(mesh, name, key, facet_tags) for name, key in names.items()}


def held_dofs(space: fem.FunctionSpace, groups: FacetGroups) -> NDArray[np.int32]:
    """Return the local indices of owned degrees of freedom on groups of facets (collective)."""
    facets = np.concatenate([*groups.values(), np.zeros(0, dtype=np.int32)])
    topology, dim = space.mesh.topology, space.dofmap.bs
    topology.create_connectivity(dim - 1, dim)
    blocks = fem.locate_dofs_topological(space, dim - 1, np.unique(facets).astype(np.int32))
    blocks = blocks[blocks < space.dofmap.index_map.size_local]
    return np.asarray((dim * blocks[:, None] + np.arange(dim)).ravel().astype(np.int32))


def _facets(
    mesh: TaggedMesh | Mesh, name: str, key: Any, facet_tags: MeshTags | None
) -> NDArray[np.int32]:
    """Return the facets of a group, by its tag, its name or their numbers (collective)."""
    title = f"group {name!r}"
    key = checked_key(title, key)
    by_name = isinstance(key, (str, int))
    facets = tagged_entities(mesh, title, key, facet_tags, "facet") if by_name else key
    topology, comm = plain_mesh(mesh).topology, plain_mesh(mesh).comm
    topology.create_entities(topology.dim - 1)
    index_map = topology.index_map(topology.dim - 1)
    count = index_map.size_local + index_map.num_ghosts
    inside = np.all((facets >= 0) & (facets < count))
    text = None if inside else f"{title}: some of its facets are not on this mesh"
    raise_together(comm, text, InputError)
    if comm.allreduce(len(facets)) == 0:
        key_text = f" ({key!r})" if by_name and key != name else ""
        raise InputError(
            f"{title}{key_text} has no facets on this mesh", argument="interfaces", value=key
        )
    return np.unique(facets).astype(np.int32)


def checked_key(argument: str, key: Any) -> str | int | NDArray[np.int32]:
    """Check and return the name of a group, a tag, or an array of local facets."""
    if isinstance(key, str):
        return checked_name(argument, key)
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        return integer(argument, key, low=-(2**31), high=2**31 - 1)
    expected = "the name of a group, a tag or an array of local facets"
    facets = array(argument, key, (None,), expected=expected)
    if (facets % 1 != 0).any() or (np.abs(facets) >= 2**31).any():
        reject(argument, key, expected, InputTypeError)
    return facets.astype(np.int32)
