"""Meshes of decks, MED and universal files, with their sets, as entities of a gmsh model.

The package `meshlane` parses Abaqus, CalculiX, Ansys and MED files, pyNastran those of Nastran.
Sets of cells become groups of cells; sets of nodes and of surface elements, and surfaces of Abaqus
decks, become groups of facets on the surface of the part. Elements with 20 nodes become elements
with 27 nodes that have the same geometry. All cells of a group have the same material.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.errors import MeshError
from dolfinx_mbd.geometry import nastran_decks
from dolfinx_mbd.geometry.abaqus_decks import FACES, PlainDeck, Surfaces, plain_deck
from dolfinx_mbd.geometry.ansys_decks import (
    ansys_materials,
    unit_of_length,
    with_material_sets,
    without_other_elements,
)
from dolfinx_mbd.geometry.deck_materials import DeckMaterial
from dolfinx_mbd.geometry.universal_meshes import read_universal_mesh
from dolfinx_mbd.optional import optional_module

__all__ = ["SUFFIXES", "Notes", "add_deck"]

SUFFIXES = (".inp", ".cdb", ".med", ".unv", *nastran_decks.SUFFIXES)
"""Suffixes of the files."""

Integers = NDArray[np.int64]


class _Cells(NamedTuple):
    """A type of cells: gmsh's numbers of the types of cells and facets, and the facets.

    A row of `facets` has the local numbers of the nodes of a facet, corners first.
    """

    dim: int
    corners: int  # number of corners of a cell
    kind: int
    facet_kind: int
    facets: list[list[int]]


# gmsh's numbers of types of elements
_LINE2, _TRIANGLE3, _QUAD4, _TETRA4, _HEXAHEDRON8 = 1, 2, 3, 4, 5
_LINE3, _TRIANGLE6, _QUAD9, _TETRA10, _HEXAHEDRON27 = 8, 9, 10, 11, 12
_TET = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
_TET_EDGES = [(0, 1), (1, 2), (0, 2), (0, 3), (2, 3), (1, 3)]  # in gmsh's order
_HEX = [[0, 3, 2, 1], [0, 1, 5, 4], [0, 4, 7, 3], [1, 2, 6, 5], [2, 3, 7, 6], [4, 5, 6, 7]]
_HEX_EDGES = [
    *[(0, 1), (0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (2, 6), (3, 7), (4, 5), (4, 7), (5, 6)],
    (6, 7),
]
_VTK_EDGES = [
    *[(0, 1), (1, 2), (2, 3), (0, 3), (4, 5), (5, 6), (6, 7), (4, 7), (0, 4), (1, 5), (2, 6)],
    (3, 7),
]


def _with_edges(
    faces: list[list[int]], edges: list[tuple[int, int]], first: int
) -> list[list[int]]:
    """Return facets with the nodes on their edges, which are numbered from `first`."""
    number = {edge: first + k for k, edge in enumerate(edges)}
    return [
        [*f, *(number[min(a, b), max(a, b)] for a, b in zip(f, [*f[1:], f[0]], strict=True))]
        for f in faces
    ]


_TETRA10_IN_VTK = [0, 1, 2, 3, 4, 5, 6, 7, 9, 8]  # places of gmsh's nodes in VTK's order
# Nodes of a hexahedron with 27 nodes, and of its faces
_CORNERS, _ON_EDGES, _ON_EDGES_OF_FACE = slice(0, 8), slice(8, 20), slice(4, 8)
_HEX27 = [[*f, 20 + k] for k, f in enumerate(_with_edges(_HEX, _HEX_EDGES, 8))]
_TYPES = {
    "tetra": _Cells(3, 4, _TETRA4, _TRIANGLE3, _TET),
    "tetra10": _Cells(3, 4, _TETRA10, _TRIANGLE6, _with_edges(_TET, _TET_EDGES, 4)),
    "hexahedron": _Cells(3, 8, _HEXAHEDRON8, _QUAD4, _HEX),
    "hexahedron20": _Cells(3, 8, _HEXAHEDRON27, _QUAD9, _HEX27),
    "triangle": _Cells(2, 3, _TRIANGLE3, _LINE2, [[0, 1], [1, 2], [2, 0]]),
    "triangle6": _Cells(2, 3, _TRIANGLE6, _LINE3, [[0, 1, 3], [1, 2, 4], [2, 0, 5]]),
    "quad": _Cells(2, 4, _QUAD4, _LINE2, [[0, 1], [1, 2], [2, 3], [3, 0]]),
}
_SURFACES = {
    "triangle": 3,
    "triangle6": 3,
    "quad": 4,
    "quad8": 4,
    "quad9": 4,
    "line": 2,
    "line3": 2,
}
"""Numbers of corners of surface elements."""


@dataclass
class Notes:
    """What a deck contains besides its mesh.

    Attributes:
        remarks: Texts on contents and sets that are left out, for a warning.
        equal: Groups by the names of equal sets.
        materials: Materials by the name of a group of cells.
        unit: Unit of length that the file declares, m, or None.
    """

    remarks: list[str] = field(default_factory=list)
    equal: dict[str, str] = field(default_factory=dict)
    materials: dict[str, DeckMaterial] = field(default_factory=dict)
    unit: float | None = None


def add_deck(model: Any, path: Path) -> Notes:
    """Add the mesh of a file to a gmsh model, with its sets as physical groups.

    Args:
        model: The model, `gmsh.model`.
        path: The file.

    Raises:
        MeshError: The file cannot be read, or has cells that are not supported.
        ImportError: The package meshlane or pyNastran is missing.
    """
    mesh, deck = _mesh_and_contents(path)
    dim = max((b.dim for b in mesh.cells if hasattr(b, "dim")), default=0)
    names = sorted({b.type for b in mesh.cells if getattr(b, "dim", 0) == max(dim, 2)})
    if len(names) != 1 or names[0] not in _TYPES:
        if not names:
            raise MeshError("it has no solid elements")
        kinds = ", ".join(names)
        known = ", ".join(name for name, kind in _TYPES.items() if kind.dim == max(dim, 2))
        raise MeshError(f"its cells are {kinds}; all cells must be of one of the types {known}")
    (cell_type,) = names
    cells = _TYPES[cell_type]
    blocks = [k for k, block in enumerate(mesh.cells) if block.type == cell_type]
    nodes = np.concatenate([np.asarray(mesh.cells[k].data, dtype=np.int64) for k in blocks])
    points = np.asarray(mesh.points, dtype=float)
    points = np.hstack([points, np.zeros((len(points), 3 - points.shape[1]))])
    if cell_type == "tetra10":
        nodes = nodes[:, _TETRA10_IN_VTK]
    elif cell_type == "hexahedron20":
        points, nodes = _with_inner_nodes(points, nodes)
    starts = np.cumsum(
        [0, *(len(mesh.cells[k].data) for k in blocks)]
    )  # starts of the blocks, and the end
    notes = Notes([*deck.remarks], unit=getattr(mesh, "unit", deck.unit))
    members = _members(mesh.cell_sets, blocks, starts)
    used_materials, material_of = _materials_of_cells(members, deck.sections, int(starts[-1]))
    sets = {name: rows for name, rows in members.items() if name.upper() not in deck.auxiliary}
    only_of_surfaces = {name for name in sets if name.upper() in deck.only_of_surfaces}
    groups = _groups_of_cells(sets, only_of_surfaces, material_of, used_materials, notes)
    if deck.unassigned and not used_materials:
        notes.materials = dict.fromkeys(groups, deck.unassigned)
    for name, rows in groups.items():
        if material_of[rows[0]] >= 0:
            notes.materials[name] = used_materials[material_of[rows[0]]]
    facets, facet_groups = _groups_of_facets(mesh, deck, cells, nodes, notes)
    used = np.unique(nodes)
    model.addDiscreteEntity(cells.dim, 1)
    model.mesh.addNodes(cells.dim, 1, used + 1, points[used].ravel())
    for tag, (name, rows) in enumerate(groups.items(), 1):
        _add(model, cells.dim, tag, name, cells.kind, nodes[rows])
    for tag, (name, rows) in enumerate(facet_groups.items(), 1):
        _add(model, cells.dim - 1, tag, name, cells.facet_kind, facets[rows])
    named = {*groups, *facet_groups}
    notes.equal = {k: v for k, v in notes.equal.items() if k not in named}
    return notes


def _mesh_and_contents(path: Path) -> tuple[Any, PlainDeck]:
    """Return the mesh of a file, and what else it contains."""
    if path.suffix in nastran_decks.SUFFIXES:
        mesh = nastran_decks.read_nastran(path)
        return mesh, PlainDeck(sections=mesh.sections, remarks=[*mesh.remarks])
    if path.suffix == ".unv":
        return read_universal_mesh(path), PlainDeck()
    deck = PlainDeck()
    if path.suffix == ".inp":
        deck = plain_deck(path.read_text(encoding="latin-1"))
        path.write_text(deck.text, encoding="latin-1")
    elif path.suffix == ".cdb":
        text, left_out = without_other_elements(path.read_text(encoding="latin-1"))
        text, numbers = with_material_sets(text)
        path.write_text(text, encoding="latin-1")
        materials = ansys_materials(text)
        deck = PlainDeck(
            auxiliary={name.upper() for name in numbers},
            sections={name: materials[k] for name, k in numbers.items() if k in materials},
            remarks=left_out.remarks(),
            unit=unit_of_length(text),
        )
    return _read(path), deck


def _add(model: Any, dim: int, tag: int, name: str, kind: int, nodes: Integers) -> None:
    """Add elements with the given nodes as a physical group."""
    if (dim, tag) not in model.getEntities(dim):
        model.addDiscreteEntity(dim, tag)
    model.mesh.addElementsByType(tag, kind, [], (nodes + 1).ravel())
    model.addPhysicalGroup(dim, [tag], tag, name)


def _read(path: Path) -> Any:
    """Return the mesh that meshlane reads from a file."""
    meshlane = optional_module("meshlane", f"{path.suffix} files")
    if path.suffix == ".med":
        optional_module("h5py", ".med files")  # meshlane imports it when it reads them
    messages = io.StringIO()
    try:
        with contextlib.redirect_stdout(messages), contextlib.redirect_stderr(messages):
            return meshlane.read(path)
    except (Exception, SystemExit) as error:
        reason = f"{messages.getvalue()} {'' if isinstance(error, SystemExit) else error}"
        reason = " ".join(re.sub(r"Error: Couldn't read file .*|No MAPDL .*", "", reason).split())
        reason = reason[-300:] or "it is empty, incomplete or of another program"
        raise MeshError(f"meshlane cannot read it: {reason}") from error


def _with_inner_nodes(points: Any, nodes: Integers) -> tuple[Any, Integers]:
    """Return points and nodes of cells with 27 nodes, from cells with 20 nodes.

    The new nodes are those of the serendipity functions of the cell: −1/4 of each corner and 1/2
    of each edge of a face, −1/4 of each corner and 1/4 of each edge of the cell.
    """
    position = {edge: 8 + k for k, edge in enumerate(_VTK_EDGES)}
    result = nodes[:, [*range(8), *(position[edge] for edge in _HEX_EDGES)]]
    x = points[result]
    faces = np.array([sorted(face) for face in _HEX])
    corners = np.sort(nodes[:, faces], axis=2).reshape(-1, 4)
    _, first, inverse = np.unique(corners, axis=0, return_index=True, return_inverse=True)
    edges = np.array([face[_ON_EDGES_OF_FACE] for face in _HEX27])
    centres = -0.25 * x[:, faces].sum(axis=2) + 0.5 * x[:, edges].sum(axis=2)
    middle = -0.25 * x[:, _CORNERS].sum(axis=1) + 0.25 * x[:, _ON_EDGES].sum(axis=1)
    on_faces = len(points) + inverse.reshape(len(nodes), 6)
    inside = len(points) + len(first) + np.arange(len(nodes))
    points = np.concatenate([points, centres.reshape(-1, 3)[first], middle])
    return points, np.hstack([result, on_faces, inside[:, None]])


def _members(sets: Mapping[str, Any], blocks: list[int], starts: Any) -> dict[str, Integers]:
    """Return the numbers of the cells in each set that is not empty, in ascending order.

    Args:
        sets: Rows of the cells in each block of the mesh, by the name of a set.
        blocks: Indices of the blocks whose cells are used.
        starts: Number of the first cell of each of these blocks.
    """
    result = {}
    for name, parts in sets.items():
        rows = [starts[i] + np.asarray(parts[k], dtype=np.int64) for i, k in enumerate(blocks)]
        if parts and sum(map(len, rows)):
            result[name] = np.unique(np.concatenate(rows))
    return result


def _materials_of_cells(
    members: Mapping[str, Integers], sections: Mapping[str, DeckMaterial], count: int
) -> tuple[list[DeckMaterial], Integers]:
    """Return the used materials, and the index of the material of each cell; −1 without one."""
    materials: list[DeckMaterial] = []
    result = np.full(count, -1)
    for name, material in sections.items():
        if name not in members:
            continue
        rows = members[name]
        if others := {int(k) for k in result[rows]} - {-1}:
            names = ", ".join(sorted({materials[k].name for k in others} | {material.name}))
            if {materials[k] for k in others} != {material}:
                material = DeckMaterial(names, error="some cells have several materials")
        if material not in materials:
            materials.append(material)
        result[rows] = materials.index(material)
    return materials, result


def _groups_of_cells(
    sets: Mapping[str, Integers],
    only_of_surfaces: set[str],
    material_of: Integers,
    materials: list[DeckMaterial],
    notes: Notes,
) -> dict[str, Integers]:
    """Return disjoint groups of all cells, from the sets that do not overlap smaller ones.

    All cells of a group have the same material. The sets in `only_of_surfaces` come last, so that
    they exclude no other set, and are left out without a remark.
    """
    owner = np.full(len(material_of), -1)
    result: dict[str, Integers] = {}

    def rank(name: str) -> tuple[bool, int]:
        return name in only_of_surfaces, len(sets[name])

    for name in sorted(reversed(list(sets)), key=rank):
        rows = sets[name]
        others = [list(result)[k] for k in np.unique(owner[rows]) if k >= 0]
        equal = [other for other, group in result.items() if np.array_equal(group, rows)]
        has_one_material = len(np.unique(material_of[rows])) == 1
        if (owner[rows] < 0).all() and has_one_material:
            owner[rows] = len(result)
            result[name] = rows
        elif equal:
            notes.equal[name] = equal[0]
        elif name not in only_of_surfaces:
            names = ", ".join(f"'{other}'" for other in others)
            reason = f"overlaps {names}" if names else "has several materials"
            notes.remarks.append(f"the set of cells '{name}' {reason} and is not a group")
    rest = np.unique(material_of[owner < 0])
    for k in rest:
        name = "other cells" if result else "part"
        if len(rest) > 1:
            name = f"cells of {materials[k].name}" if k >= 0 else "cells without a material"
        while name in result:
            name = f"{name} (2)"
        result[name] = np.flatnonzero((owner < 0) & (material_of == k))
    return result


def _groups_of_facets(
    mesh: Any, deck: PlainDeck, cells: _Cells, nodes: Integers, notes: Notes
) -> tuple[Integers, dict[str, Integers]]:
    """Return the facets on the surface of the part, and disjoint groups of them."""
    local = np.array(cells.facets)
    facets = nodes[:, local].reshape(-1, local.shape[1])
    corners_of_facet = 2 if cells.dim == 2 else (3 if cells.corners == 4 else 4)
    corners = np.sort(facets[:, :corners_of_facet], axis=1)
    _, inverse, repeats = np.unique(corners, axis=0, return_inverse=True, return_counts=True)
    is_surface = repeats[inverse.ravel()] == 1
    facets, corners = facets[is_surface], corners[is_surface]
    members = _facets_of_sets(mesh, deck.surfaces, nodes, corners)
    notes.remarks += _empty_sets(mesh, deck.surfaces, {*members, *deck.internal_nodes}, nodes)
    notes.remarks += _almost_whole(mesh, members, corners)
    owner: dict[int, str] = {}
    result: dict[str, Integers] = {}
    for name in sorted(reversed(members), key=lambda name: len(members[name])):
        equal = [other for other in result if members[other] == members[name]]
        if equal:
            notes.equal[name] = equal[0]
            continue
        free = {row for row in members[name] if row not in owner}
        others = sorted({owner[row] for row in members[name] - free})
        names = ", ".join(f"'{other}'" for other in others)
        if others and free:
            count = len(members[name]) - len(free)
            text = f"{count} facets of '{name}' belong to {names} only"
            notes.remarks.append(text)
        elif others:
            text = f"all facets of '{name}' belong to {names}, and it is not a group"
            notes.remarks.append(text)
        if free:
            result[name] = np.array(sorted(free))
            owner.update(dict.fromkeys(free, name))
    return facets, result


def _facets_of_sets(
    mesh: Any, surfaces: Surfaces, nodes: Integers, corners: Integers
) -> dict[str, set[int]]:
    """Return the rows of the facets with the given corners in each set of nodes or surfaces."""
    members: dict[str, set[int]] = {}
    used = np.unique(nodes)
    used = used[used < len(mesh.points)]  # without the nodes that `_with_inner_nodes` has added
    for name, numbers in mesh.point_sets.items():
        inside = np.zeros(int(nodes.max()) + len(mesh.points) + 1, dtype=bool)
        inside[np.asarray(numbers, dtype=np.int64)] = True
        rows = np.flatnonzero(inside[corners].all(axis=1))
        if len(rows) and not inside[used].all():  # a set of all nodes is no group
            members.setdefault(name, set()).update(map(int, rows))
    row_of = {tuple(map(int, row)): k for k, row in enumerate(corners)}
    count = corners.shape[1]
    for name, parts in mesh.cell_sets.items():
        for block, part in zip(mesh.cells, parts, strict=False):
            if _SURFACES.get(block.type) == count and part is not None and len(part):
                rows = np.sort(np.asarray(block.data)[part][:, :count], axis=1)
                keys = [tuple(map(int, row)) for row in rows]
                members.setdefault(name, set()).update(row_of[k] for k in keys if k in row_of)
    for name, faces in surfaces.items():
        for rows in _rows_of_faces(mesh, faces):
            keys = [tuple(map(int, row)) for row in np.sort(rows, axis=1)]
            members.setdefault(name, set()).update(row_of[k] for k in keys if k in row_of)
    return {name: rows for name, rows in members.items() if rows}


def _empty_sets(mesh: Any, surfaces: Surfaces, others: set[str], nodes: Integers) -> list[str]:
    """Return texts on sets of nodes and surfaces that have no facet on the surface of the part."""
    used = np.unique(nodes)
    used = used[used < len(mesh.points)]
    known = {name.upper() for name in others}
    reasons = []
    for name, numbers in mesh.point_sets.items():
        inside = np.intersect1d(used, np.asarray(numbers, dtype=np.int64))
        if name.upper() in known or len(inside) == len(used) or not len(numbers):
            continue
        count = f"{len(numbers)} node{'s' if len(numbers) > 1 else ''}"
        reason = "no whole facet" if len(inside) else "not of solids"
        reasons.append(f"'{name}' ({count}, {reason})")
    for name, faces in surfaces.items():
        if name.upper() not in known and faces:
            rows = any(len(r) for r in _rows_of_faces(mesh, faces))
            labels = ", ".join(label for _, label in faces)
            text = "all faces are inside the part" if rows else f"no element has the face {labels}"
            reasons.append(f"'{name}' ({text})")
    if not reasons:
        return []
    text = "these sets are no groups, because they have no facets on the surface"
    return [f"{text}: {', '.join(reasons)}"]


def _almost_whole(mesh: Any, members: Mapping[str, set[int]], corners: Integers) -> list[str]:
    """Return texts on sets of nodes that miss one of four corners of a few facets."""
    remarks = []
    for name in set(members) & set(mesh.point_sets) if corners.shape[1] == 4 else ():
        inside = np.isin(corners, np.asarray(mesh.point_sets[name]))
        count = int((inside.sum(axis=1) == 3).sum())
        is_small = 3 * count <= len(members[name])  # otherwise, the shape of the set is intended
        if count and is_small:
            text = f"{count} facet{'s have' if count > 1 else ' has'} three of four corners in"
            remarks.append(f"{text} '{name}': add the fourth if the set is meant to contain it")
    return sorted(remarks)


def _rows_of_faces(mesh: Any, faces: list[tuple[str, str]]) -> Iterator[Integers]:
    """Yield the corners of faces of sets of elements, shape (n, corners) each."""
    for elements, label in faces:
        for block, part in zip(mesh.cells, mesh.cell_sets.get(elements, ()), strict=False):
            known = FACES.get(block.type.rstrip("0123456789"), [])
            for k, corners in enumerate(known, 1):
                if len(part) and label in (f"S{k}", ""):
                    yield np.asarray(block.data, dtype=np.int64)[part][:, corners]
