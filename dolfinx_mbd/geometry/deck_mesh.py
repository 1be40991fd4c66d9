"""A mesh with its sets, as the readers of this package return it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.errors import MeshError
from dolfinx_mbd.geometry.deck_materials import DeckMaterial

__all__ = ["Block", "DeckMesh", "Integers", "add_numbers"]

Integers = NDArray[np.int64]

_SHOWN = 5  # repeated numbers in an error


class Block(NamedTuple):
    """Elements of one type: type, nodes (n, nodes per element) in the order of VTK, dimension."""

    type: str
    data: Integers
    dim: int


def add_numbers(known: set[int], numbers: Sequence[int]) -> None:
    """Add the numbers of elements to those that are known.

    Args:
        known: Numbers of the elements before.
        numbers: Numbers of further elements.

    Raises:
        MeshError: Several elements have the same number.
    """
    size = len(known)
    before = known.intersection(numbers)
    known.update(numbers)
    if len(known) == size + len(numbers):
        return
    repeated = sorted(before | {n for n, count in Counter(numbers).items() if count > 1})
    shown = ", ".join(map(str, repeated[:_SHOWN])) + ", ..." * (len(repeated) > _SHOWN)
    raise MeshError(f"several elements have the same number ({shown}); keep one of each number")


class DeckMesh(NamedTuple):
    """A mesh with its sets, in place of a mesh that the package meshlane reads.

    It has the attributes of the latter that `add_deck` uses.

    Attributes:
        points: Positions of the nodes, shape (n, 3), in the units of the file.
        cells: Blocks of elements.
        cell_sets: Rows of the elements of each block, by the name of a set.
        point_sets: Rows of `points` by the name of a set.
        sections: Materials by the name of a set of cells.
        unit: Unit of length that the file declares, m, or None.
        remarks: Texts on contents that are left out, for warnings.
    """

    points: NDArray[np.float64]
    cells: list[Block]
    cell_sets: dict[str, list[Any]]
    point_sets: dict[str, Integers]
    sections: dict[str, DeckMaterial]
    unit: float | None = None
    remarks: Sequence[str] = ()
