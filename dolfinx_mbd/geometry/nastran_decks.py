"""Meshes of Nastran bulk data with their groups, parsed by pyNastran.

Solids of each property become a set of cells. Sets of nodes are those of the cards SET1, SPC, SPC1
and ASET1, the dependent nodes of RBE2 elements and the independent nodes of RBE3 elements: all
nodes but the reference node, which is usually that of an interface. Shells on the surface of solids
are sets of surface elements. The materials of solids are those of MAT1 cards.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dolfinx_mbd.errors import MeshError
from dolfinx_mbd.geometry.deck_contents import LeftOut, nastran_card, similar_card
from dolfinx_mbd.geometry.deck_materials import DeckMaterial, shear_error
from dolfinx_mbd.geometry.deck_mesh import Block, DeckMesh
from dolfinx_mbd.geometry.included_files import text_of
from dolfinx_mbd.optional import optional_module

__all__ = ["SUFFIXES", "read_bulk_data", "read_nastran"]

SUFFIXES = (".bdf", ".nas")
"""Suffixes of the files."""

SOLIDS = {
    ("CTETRA", 4): "tetra",
    ("CTETRA", 10): "tetra10",
    ("CHEXA", 8): "hexahedron",
    ("CHEXA", 20): "hexahedron20",
    ("CPENTA", 6): "wedge",
    ("CPENTA", 15): "wedge15",
    ("CPYRAM", 5): "pyramid",
    ("CPYRAM", 13): "pyramid13",
}
SHELLS = {
    **dict.fromkeys(("CTRIA3", "CTRIA6", "CTRIAR"), ("triangle", 3)),
    **dict.fromkeys(("CQUAD4", "CQUAD8", "CQUADR"), ("quad", 4)),
}
"""Types of surface elements and their numbers of corners, which identify a facet of a solid."""

ORDER = {"hexahedron20": [*range(12), 16, 17, 18, 19, 12, 13, 14, 15]}
"""Nodes of Nastran's elements in the order of VTK, where they differ."""


def read_bulk_data(path: Path) -> Any:
    """Return the cards of a Nastran file as a model of pyNastran.

    A file may have executive and case control sections, begin with BEGIN BULK, or contain only
    bulk data.

    Args:
        path: The file.

    Raises:
        MeshError: The file cannot be read.
        ImportError: The package pyNastran is missing.
    """
    BDF = optional_module("pyNastran.bdf.bdf", "files of Nastran").BDF
    text = text_of(path, ".bdf")
    is_bulk = re.search(r"^\s*CEND\b", text, re.MULTILINE | re.IGNORECASE) is None
    begin = re.search(r"^\s*BEGIN\s+BULK.*\n", text, re.MULTILINE | re.IGNORECASE)
    text = text[begin.end() :] if is_bulk and begin else text
    model = BDF(debug=None)
    try:
        with tempfile.TemporaryDirectory(prefix="dolfinx_mbd-") as folder:
            copy = Path(folder, "deck.bdf")
            copy.write_text(text, encoding="latin-1")
            model.read_bdf(str(copy), punch=is_bulk, xref=False, encoding="latin-1")
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())[-300:]
        if match := re.search(r"self\.(\w+) IDs are not unique=\[([^]]*)\]", str(error)):
            reason = f"several {match[1]} have the number {match[2]}; keep one of each"
        raise MeshError(f"pyNastran cannot read it: {reason}") from error
    return model


def read_nastran(path: Path) -> DeckMesh:
    """Return the mesh of a Nastran file with its sets.

    Args:
        path: The file.

    Raises:
        MeshError: The file cannot be read, or has elements without some of their nodes.
        ImportError: The package pyNastran is missing.
    """
    model = read_bulk_data(path)
    if not model.nodes:
        raise MeshError("it has no nodes (GRID)")
    if model.grdset is not None and model.grdset.cp:
        raise MeshError("GRDSET has a coordinate system; write the field CP in each GRID instead")
    nodes, positions = model.get_xyz_in_coord_no_xref(cid=0)  # basic coordinates
    row = {int(number): k for k, number in enumerate(nodes)}
    names: list[str] = []
    blocks: list[Block] = []
    for (pid, kind), elements in sorted(_elements(model).items()):
        dim = 2 if kind in ("triangle", "quad") else 3
        try:
            data = np.array([[row[n] for n in e] for e in elements], dtype=np.int64)
        except KeyError as error:
            raise MeshError(f"an element has the node {error}, which does not exist") from None
        blocks.append(Block(kind, data[:, ORDER.get(kind, slice(None))], dim))
        names.append(f"{'pshell' if dim == 2 else 'psolid'}_{pid}")
    if not any(block.dim == 3 for block in blocks):
        raise MeshError("it has no solid elements (CTETRA, CHEXA)")
    cell_sets: dict[str, list[Any]] = {
        name: [
            np.arange(len(b.data) if n == name else 0) for n, b in zip(names, blocks, strict=True)
        ]
        for name in dict.fromkeys(names)
    }
    point_sets = {
        name: np.array(sorted(row[n] for n in members if n in row), dtype=np.int64)
        for name, members in _node_sets(model).items()
    }
    pids = {pid for pid, kind in _elements(model) if kind not in ("triangle", "quad")}
    sections = {f"psolid_{pid}": _material(model, pid) for pid in pids}
    positions = np.asarray(positions, dtype=float)
    remarks = _left_out(model).remarks()
    return DeckMesh(positions, blocks, cell_sets, point_sets, sections, remarks=remarks)


def _left_out(model: Any) -> LeftOut:
    """Return the cards of a deck that do not describe solids, and the unknown cards."""
    result = LeftOut()
    for name, count in model.card_count.items():
        result.add(nastran_card(name), name, count)
        if name in model.cards_to_read or name == "ENDDATA" or nastran_card(name):
            continue
        lines = [line for card in model.reject_lines for line in card if line.startswith(name)]
        for line in lines[:count] or [name]:
            result.add_unknown(line, similar_card(name))
    for element in model.elements.values():
        if element.type in SHELLS and element.pid in model.properties:
            result.add("shells and membranes", element.type)
    return result


def _material(model: Any, pid: int) -> DeckMaterial:
    """Return the material of a PSOLID property, with the reason if it cannot be used."""
    section = model.properties.get(pid)
    if section is None or section.type != "PSOLID":
        kind = "is missing" if section is None else f"is a {section.type}"
        return DeckMaterial(f"of property {pid}", error=f"the property {kind}, not a PSOLID")
    card = model.materials.get(section.mid)
    kind = getattr(card, "type", "MAT1")
    name = f"{kind} {section.mid}"
    constants = [getattr(card, key, None) for key in ("e", "nu", "g")]
    young, poisson, shear = (None if value is None else float(value) for value in constants)
    error = ""
    if card is None:
        error = "the deck does not contain it"
    elif kind != "MAT1":
        error = "it is not isotropic"
    elif section.mid in model.MATT1:
        error = "it depends on the temperature (MATT1)"
    elif not young or poisson is None or shear is None:
        error = "it lacks two of the constants E, G, NU"
    elif not card.rho:
        error = "it has no density (field RHO)"
    else:
        error = shear_error(young, poisson, shear) if shear else "its shear modulus is zero"
    if error:
        return DeckMaterial(name, error=error)
    assert young is not None and poisson is not None
    remarks: tuple[str, ...] = (f"its damping GE = {card.ge:g} is left out",) if card.ge else ()
    if section.mid in model.MATS1:
        remarks += ("the nonlinear stress of MATS1 is left out",)
    wtmass = model.params["WTMASS"].values[0] if "WTMASS" in model.params else 1.0
    density = float(card.rho) * float(wtmass)
    alpha = float(card.a) if card.a else None
    return DeckMaterial(name, young, poisson, density=density, expansion=alpha, remarks=remarks)


def _elements(model: Any) -> dict[tuple[int, str], list[list[int]]]:
    """Return the node numbers of each solid and shell element, by property and element type."""
    result: dict[tuple[int, str], list[list[int]]] = {}
    for number, element in sorted(model.elements.items()):
        members = list(element.node_ids)
        if element.type in SHELLS:
            kind, corners = SHELLS[element.type]
            members = members[:corners]
        elif element.type in {name for name, _ in SOLIDS}:
            kind = SOLIDS.get((element.type, len(members)), "")
        else:
            continue
        if not kind or None in members:
            text = f"{element.type} {number} lacks some of its mid-side nodes"
            raise MeshError(f"{text}; write elements with all of them or with none")
        result.setdefault((int(element.pid), kind), []).append(list(map(int, members)))
    return result


def _node_sets(model: Any) -> dict[str, set[int]]:
    """Return the node numbers of each set by the name of the set, such as `rbe2_12`."""
    result: dict[str, set[int]] = {}
    for number, card in model.sets.items():
        result.setdefault(f"set_{number}", set()).update(map(int, card.ids))
    for number, cards in model.spcs.items():
        for card in cards:
            if card.type in ("SPC", "SPC1"):
                result.setdefault(f"spc_{number}", set()).update(map(int, card.node_ids))
    for number, element in model.rigid_elements.items():
        if element.type in ("RBE2", "RBE3"):
            members = element.Gmi if element.type == "RBE2" else element.independent_nodes
            result.setdefault(f"{element.type.lower()}_{number}", set()).update(map(int, members))
    for card in model.asets:
        result.setdefault("aset", set()).update(map(int, card.node_ids))
    return result
