"""Text of Gmsh's mesh files, without gmsh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dolfinx_mbd.geometry.gmsh_model import MeshArrays

__all__ = ["msh_text"]

_FACETS = {4: 2, 11: 9, 5: 3}
"""gmsh's numbers of the types of facets, by those of the cells."""


def msh_text(mesh: MeshArrays) -> str:
    """Return a mesh of volumes as a file of Gmsh's format 2.2, with all digits of its nodes."""
    return "\n".join(_lines(mesh)) + "\n"


def _lines(mesh: MeshArrays) -> Iterator[str]:
    """Yield the lines of the file."""
    yield from ("$MeshFormat", "2.2 0 8", "$EndMeshFormat")
    names = {**mesh.groups}
    used = {(2, int(tag)) for tag in mesh.facet_tags} | {(3, int(tag)) for tag in mesh.cell_tags}
    groups = [(dim, tag, name) for name, (dim, tag) in names.items() if (dim, tag) in used]
    if groups:
        yield from ("$PhysicalNames", str(len(groups)))
        for dim, tag, name in groups:
            yield f'{dim} {tag} "{name}"'
        yield "$EndPhysicalNames"
    yield from ("$Nodes", str(len(mesh.points)))
    for k, point in enumerate(mesh.points, 1):
        yield f"{k} {' '.join(repr(float(x)) for x in point)}"
    yield from ("$EndNodes", "$Elements", str(len(mesh.facets) + len(mesh.cells)))
    yield from _elements(_FACETS[mesh.cell_type], mesh.facets, mesh.facet_tags, 1)
    yield from _elements(mesh.cell_type, mesh.cells, mesh.cell_tags, 1 + len(mesh.facets))
    yield "$EndElements"


def _elements(kind: int, rows: Any, tags: Any, first: int) -> Iterator[str]:
    """Yield the lines of elements with consecutive numbers."""
    lines = zip((rows + 1).tolist(), tags.tolist(), strict=True)
    for number, (nodes, tag) in enumerate(lines, first):
        yield f"{number} {kind} 2 {tag} {tag} {' '.join(map(str, nodes))}"
