"""Coordinates of Nastran matrices: grid points, scalar points and their coordinate systems."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import scipy.sparse

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.io.imports.full_matrices import FullMatrices, MatrixError, MatrixFileError, in_file
from dolfinx_mbd.io.imports.reduced_matrices import ReducedMatrices
from dolfinx_mbd.optional import optional_module

Coordinate = tuple[int, int]
"""Number of a point, and its component: 1 to 6 of a grid, 0 or 1 of a scalar point."""

Entries = dict[tuple[Coordinate, Coordinate], float]
"""Values of a matrix by the coordinates of row and column."""

STIFFNESS = ("KAAX", "KAA", "KXX", "MATK")
MASS = ("MAAX", "MAA", "MXX", "MATM")
DAMPING = ("BAAX", "BAA", "BXX", "MATB")
"""Names of the matrices of a superelement in DMIG entries, OUTPUT4 and OUTPUT2 files."""

_SUPER = re.compile(r"^[ \t]*BEGIN[ \t]+SUPER[ \t=]*(\d+)[^\n]*$", re.MULTILINE | re.IGNORECASE)
"""Line before the bulk data of a superelement, with its number."""


def matrix_names(
    path: Path,
    available: Sequence[str],
    stiffness: str | None,
    mass: str | None,
    damping: str | None,
) -> tuple[str, str, str | None]:
    """Return the names of stiffness, mass and damping; the default is the first known name.

    The name of the damping is None if it is not given and no known matrix exists.
    """

    def choose(name: str | None, known: Sequence[str]) -> str:
        choice = name or next((n for n in known if n in available), known[0])
        if choice not in available:
            names = ", ".join(map(repr, available)) or "none"
            raise MatrixFileError(f"{path}: no matrix {choice!r}; the file has {names}", path=path)
        return choice

    is_damped = damping is not None or any(name in available for name in DAMPING)
    damping_name = choose(damping, DAMPING) if is_damped else None
    return choose(stiffness, STIFFNESS), choose(mass, MASS), damping_name


def new_model() -> Any:
    """Return an empty model of pyNastran."""
    return optional_module("pyNastran.bdf.bdf", "files of Nastran").BDF(debug=None)


def read_bulk_data(path: Path) -> Any:
    """Return the model of a file: a deck, a part of one, or the punch file of a superelement."""
    text = path.read_text(encoding="utf-8", errors="replace")
    model, source = new_model(), str(path)
    punch = "BEGIN BULK" not in text.upper()
    parts = _SUPER.findall(text)
    if punch and len(set(parts)) > 1:
        text = f"the superelements {', '.join(dict.fromkeys(parts))}; expected one"
        raise MatrixFileError(f"{path}: has {text}", path=path)
    with in_file(path, "bulk data"):
        model.read_bdf(
            io.StringIO(_SUPER.sub("", text)) if punch and parts else source,
            punch=punch,
            xref=False,
        )
        resolve(model)
    return model


def resolve(model: Any) -> None:
    """Compute the positions of grids and the axes of coordinate systems."""
    model.cross_reference(
        xref_elements=False, xref_nodes_with_elements=False, xref_properties=False,
        xref_masses=False, xref_materials=False, xref_loads=False, xref_constraints=False,
        xref_aero=False, xref_sets=False, xref_optimization=False,
    )  # fmt: skip


def retained(model: Any) -> list[Coordinate]:
    """Return the coordinates of the analysis set in the order of Nastran, by ascending points."""
    coordinates = set()
    for card in (*model.asets, *model.bsets, *model.csets, *model.qsets):
        same = isinstance(card.components, (str, int))
        for k, point in enumerate(card.ids):
            components = card.components if same else card.components[k]
            if point in model.spoints:  # its component in the set is 0, 1 or blank
                components = 0
            coordinates |= {(int(point), int(c)) for c in str(components)}
    if not coordinates:
        coordinates = {(int(grid), c) for grid in model.nodes for c in range(1, 7)}
        coordinates |= {(int(point), 0) for point in model.spoints}
    return sorted(coordinates)


def matrices_of_entries(
    path: Path, matrices: Sequence[Entries | None], model: Any, names: Sequence[str] | None
) -> ReducedMatrices | FullMatrices:
    """Return a superelement or a full model from stiffness, mass and damping (or None)."""
    used = sorted({key for A in matrices[:2] for row in A or () for key in row})
    with in_file(path, "matrices of the same points"):
        sorted_matrices = [None if A is None else _matrix(A, used) for A in matrices]
    return matrices_of_points(path, sorted_matrices, used, model, names)


def _matrix(entries: Entries, order: Sequence[Coordinate]) -> Any:
    """Return a sparse matrix with rows and columns in the given order of coordinates."""
    index = {key: k for k, key in enumerate(order)}
    missing = {key for pair in entries for key in pair} - set(index)
    if missing:
        raise MatrixError(f"only the damping has the coordinates {sorted(missing)[:5]}")
    rows, columns = ([index[pair[k]] for pair in entries] for k in (0, 1))
    shape = len(order), len(order)
    return scipy.sparse.csr_array((list(entries.values()), (rows, columns)), shape=shape)


def matrices_of_points(
    path: Path,
    matrices: Sequence[Any],
    coordinates: Sequence[Coordinate],
    model: Any,
    names: Sequence[str] | None,
) -> ReducedMatrices | FullMatrices:
    """Return a superelement, or a full model if the points only have displacements.

    Args:
        path: The file, for errors.
        matrices: Stiffness, mass and damping; the damping may be None.
        coordinates: Those of the rows of the matrices.
        model: The points, a model of pyNastran.
        names: Names of the interfaces in ascending order of the grids.
    """
    scalars = sorted({key for key in coordinates if key[0] in model.spoints})
    grids = sorted({point for point, _ in coordinates if point not in model.spoints})
    unknown = [g for g in grids if g not in model.nodes]
    if unknown:
        raise MatrixError(f"{path}: the matrices have points {unknown[:5]} without GRID or SPOINT")
    full = not scalars and all(component <= 3 for _, component in coordinates)
    order = [(g, c) for g in grids for c in range(1, 4 if full else 7)] + scalars
    row = {key: k for k, key in enumerate(order)}
    wrong = sorted(set(coordinates) - set(row))
    if wrong:
        raise MatrixError(f"{path}: grid {wrong[0][0]} has no component {wrong[0][1]}")
    lost = [] if full else sorted(set(row) - set(coordinates))
    if lost:
        present = "".join(str(c) for point, c in sorted(coordinates) if point == lost[0][0])
        text = f"grid {lost[0][0]} has only the components {present}"
        raise MatrixError(f"{path}: {text}; the grids of a superelement need all six")
    # P sorts the coordinates by grids, with zeros for displacements without entries, and scalars
    target = [row[key] for key in coordinates]
    shape = len(order), len(coordinates)
    P = scipy.sparse.coo_array((np.ones(len(target)), (target, range(len(target)))), shape=shape)
    T = _to_basic_axes(path, model, grids, 1 if full else 2, len(scalars)) @ P.tocsr()
    K, M, C = (cast(Any, None if A is None else T @ A @ T.T) for A in matrices)
    places = np.array([model.nodes[g].get_position() for g in grids], dtype=float)
    if full:
        return FullMatrices(K, M, places, np.array(grids), damping=C)
    labels = names if names is not None else [f"grid {g}" for g in grids]
    return ReducedMatrices(K, M, places, labels, C)


def _to_basic_axes(path: Path, model: Any, grids: Sequence[int], triples: int, modes: int) -> Any:
    """Return the matrix from components along the displacement axes (CD) to basic components."""
    blocks: list[Array] = []
    for grid in grids:
        node = model.nodes[grid]
        axes = np.eye(3)
        if node.Cd() not in (0, -1):
            system = model.coords.get(node.Cd())
            if system is None or system.type not in ("CORD1R", "CORD2R"):
                text = f"grid {grid} has the displacement coordinate system (CD) {node.Cd()}"
                reason = "which is missing" if system is None else "which is not rectangular"
                raise MatrixError(f"{path}: {text}, {reason}; write the matrices in the basic one")
            axes = system.beta().T
        blocks += [axes] * triples
    return scipy.sparse.csr_array(scipy.sparse.block_diag([*blocks, np.eye(modes)]))
