"""Groups of facets by name, tag or number: where a body is held or joined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from dolfinx.mesh import Mesh, MeshTags
from numpy.typing import NDArray

from dolfinx_mbd.analysis.la import raise_together
from dolfinx_mbd.analysis.meshing import TaggedMesh

__all__ = ["FacetGroups", "facet_groups"]

FacetGroups = Mapping[str, NDArray[np.int32]]


def facet_groups(
    mesh: TaggedMesh | Mesh, names: Mapping[str, Any] | Any, facet_tags: MeshTags | None
) -> FacetGroups:
    """Local facets of each interface, whichever way it was named.

    Args:
        mesh: A tagged mesh, whose groups go by name, or a plain mesh with `facet_tags`.
        names: Names of groups, or a mapping from name to group name, tag or array of local facets.
        facet_tags: Tags of facets of a plain mesh.

    Raises:
        ValueError: An unknown group, or one without facets on any rank; the same on every rank.

    Note: Collective.
    """
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, Mapping):
        names = list(names)
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"interface {twice[0]!r} is given twice")
        names = {name: name for name in names}
    return {str(name): _facets(mesh, str(name), key, facet_tags) for name, key in names.items()}


def _facets(
    mesh: TaggedMesh | Mesh, name: str, key: Any, facet_tags: MeshTags | None
) -> NDArray[np.int32]:
    if isinstance(key, str):
        if not isinstance(mesh, TaggedMesh):
            raise ValueError(
                f"interface {name!r}: a plain mesh has no group names; give a mapping from name to "
                "tag and facet_tags, or a TaggedMesh"
            )
        facets = mesh.facets(key)
    elif isinstance(key, (int, np.integer)):
        tags = (
            mesh.facet_tags if facet_tags is None and isinstance(mesh, TaggedMesh) else facet_tags
        )
        if tags is None:
            raise ValueError(f"interface {name!r} is tag {key}, but no facet_tags were given")
        plain = mesh.mesh if isinstance(mesh, TaggedMesh) else mesh
        dim = plain.topology.dim - 1
        if tags.dim != dim:
            raise ValueError(
                f"facet_tags must tag facets (dimension {dim}), these have dimension {tags.dim}"
            )
        facets = tags.find(int(key))
    else:
        facets = np.asarray(key, dtype=np.int32).reshape(-1)
    plain = mesh.mesh if isinstance(mesh, TaggedMesh) else mesh
    comm, dim = plain.comm, plain.topology.dim - 1
    plain.topology.create_entities(dim)
    index_map = plain.topology.index_map(dim)
    count = index_map.size_local + index_map.num_ghosts
    known = np.all((facets >= 0) & (facets < count))
    text = None if known else f"interface {name!r}: some of its facets are not on this mesh"
    raise_together(comm, text)
    if comm.allreduce(len(facets)) == 0:
        shown = "" if key == name else f" ({key!r})" if isinstance(key, (str, int)) else ""
        raise ValueError(f"interface {name!r}{shown} has no facets on this mesh")
    return np.unique(facets).astype(np.int32)
