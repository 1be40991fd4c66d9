"""Random meshes, valid and invalid, read from a file on 1 to 3 ranks and reduced.

A mesh that is accepted must have the mass of the cells in its file, and the same body on every
number of ranks. Meshes for which no computation is possible (`INVALID`) may be rejected.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from tests.campaigns.cases import Case

MESHES = 6
"""Number of meshes of each kind."""


class File:
    """The nodes and elements of a box of tetrahedra, to be written in the format MSH 2.2.

    Attributes:
        nodes: Number and position of each node.
        cells: Nodes of each tetrahedron.
        facets: Nodes and number of the group of each triangle.
        groups: Dimension, number and name of each group.
        quadratic: Nodes of each tetrahedron of second order.
    """

    def __init__(self, rng: random.Random, shift: float = 0.0) -> None:
        n = [rng.randint(1, 3) for _ in range(3)]
        size = [rng.uniform(0.05, 0.2) for _ in range(3)]
        grid = list(product(*(range(k + 1) for k in n)))
        number = {place: k + 1 for k, place in enumerate(grid)}
        self.nodes = {
            number[p]: [p[k] * size[k] / n[k] + (shift if k == 0 else 0.0) for k in range(3)]
            for p in grid
        }
        self.cells: list[list[int]] = []
        for corner in product(*(range(k) for k in n)):
            for order in permutations(range(3)):
                path, place = [number[corner]], list(corner)
                for axis in order:
                    place[axis] += 1
                    path.append(number[(place[0], place[1], place[2])])
                self.cells.append(path)
        self.facets = [([number[p] for p in t], 2) for t in _end(n)]
        self.groups = [(3, 1, "body"), (2, 2, "end")]
        self.quadratic: list[list[int]] = []

    def join(self, other: File) -> None:
        """Add another box beside this one."""
        start = max(self.nodes)
        self.nodes |= {start + k: x for k, x in other.nodes.items()}
        self.cells += [[start + k for k in cell] for cell in other.cells]

    def volume(self) -> float:
        """Return the volume of the cells."""
        total = 0.0
        for cell in [*self.cells, *(c[:4] for c in self.quadratic)]:
            x = np.array([self.nodes[k] for k in cell])
            total += abs(np.linalg.det(x[1:] - x[0])) / 6
        return total

    def text(self) -> str:
        """Return the file in the format MSH 2.2."""
        elements = [f"2 2 {g} {g} " + " ".join(map(str, f)) for f, g in self.facets]
        elements += ["4 2 1 1 " + " ".join(map(str, c)) for c in self.cells]
        elements += ["11 2 1 1 " + " ".join(map(str, c)) for c in self.quadratic]
        lines = ["$MeshFormat", "2.2 0 8", "$EndMeshFormat", "$PhysicalNames"]
        lines += [str(len(self.groups)), *(f'{d} {n} "{name}"' for d, n, name in self.groups)]
        lines += ["$EndPhysicalNames", "$Nodes", str(len(self.nodes))]
        lines += [f"{k} {x[0]!r} {x[1]!r} {x[2]!r}" for k, x in self.nodes.items()]
        lines += ["$EndNodes", "$Elements", str(len(elements))]
        lines += [f"{k} {element}" for k, element in enumerate(elements, 1)]
        return "\n".join([*lines, "$EndElements", ""])


def _end(n: list[int]) -> Iterator[list[tuple[int, int, int]]]:
    """Yield the triangles of the face x = 0, each as three places in the grid."""
    for j, k in product(range(n[1]), range(n[2])):
        a, b, c, d = (0, j, k), (0, j + 1, k), (0, j + 1, k + 1), (0, j, k + 1)
        yield [a, b, c]
        yield [a, c, d]


Change = Callable[[File, random.Random], Any]
"""A function that changes a file in place; it may draw random numbers."""


def _reversed(file: File, rng: random.Random) -> None:
    """Reverse the orientation of half of the cells."""
    for cell in rng.sample(file.cells, len(file.cells) // 2):
        cell[0], cell[1] = cell[1], cell[0]


def _renumbered(file: File, rng: random.Random) -> None:
    """Renumber the nodes randomly."""
    new = dict(zip(file.nodes, rng.sample(range(1, 10**6), len(file.nodes)), strict=True))
    file.nodes = {new[k]: x for k, x in file.nodes.items()}
    file.cells = [[new[k] for k in cell] for cell in file.cells]
    file.facets = [([new[k] for k in facet], group) for facet, group in file.facets]


def _degenerate(file: File, rng: random.Random) -> None:
    """Move a corner of a cell into the plane of the others."""
    cell = rng.choice(file.cells)
    file.nodes[cell[3]] = list(np.mean([file.nodes[k] for k in cell[:3]], axis=0))


def _folded(file: File, rng: random.Random) -> None:
    """Move a node by a random distance."""
    node = rng.choice(list(file.nodes))
    file.nodes[node] = [x + rng.uniform(-0.3, 0.3) for x in file.nodes[node]]


def _second_order_cell(file: File, rng: random.Random) -> None:
    """Replace a cell by one of second order."""
    cell = file.cells.pop(rng.randrange(len(file.cells)))
    middles = []
    for i, j in ((0, 1), (1, 2), (0, 2), (0, 3), (2, 3), (1, 3)):
        middles.append(max(file.nodes) + 1)
        file.nodes[middles[-1]] = list(
            np.mean([file.nodes[cell[i]], file.nodes[cell[j]]], axis=0).tolist()
        )
    file.quadratic.append(cell + middles)


VALID: dict[str, Change] = {
    "valid": lambda file, rng: None,
    "reversed cells": _reversed,
    "numbers with gaps": _renumbered,
    "shuffled cells": lambda file, rng: rng.shuffle(file.cells),
    "empty group": lambda file, rng: file.groups.append((2, 7, "empty")),
}
"""Changes after which the mesh must be accepted."""

INVALID: dict[str, Change] = {
    "degenerate cell": _degenerate,
    "folded cells": _folded,
    "duplicate cell": lambda file, rng: file.cells.append(list(rng.choice(file.cells))),
    "duplicate node": lambda file, rng: _duplicate_node(file, rng),
    "several parts": lambda file, rng: file.join(File(rng, shift=1.0)),
    "touching parts": lambda file, rng: file.join(File(rng)),
    "missing cell": lambda file, rng: file.cells.pop(rng.randrange(len(file.cells))),
    "missing node": lambda file, rng: file.nodes.pop(rng.choice(list(file.nodes))),
    "missing last node": lambda file, rng: file.nodes.pop(max(file.nodes)),
    "unused node": lambda file, rng: file.nodes.update({10**6: [0.0, 0.0, 0.0]}),
    "not finite": lambda file, rng: file.nodes.update({1: [float("nan"), 0.0, 0.0]}),
    "huge": lambda file, rng: file.nodes.update({1: [1e200, 0.0, 0.0]}),
    "mixed orders": _second_order_cell,
    "group without a name": lambda file, rng: file.groups.pop(),
    "same name": lambda file, rng: file.groups.append((2, 3, "end")),
    "same number": lambda file, rng: file.groups.append((2, 2, "other")),
    "facet inside": lambda file, rng: file.facets.append((rng.choice(file.cells)[:3], 2)),
    "facet of no cell": lambda file, rng: file.facets.append(([1, 2, max(file.nodes)], 2)),
    "no facets": lambda file, rng: file.facets.clear(),
    "no cells": lambda file, rng: file.cells.clear(),
    "cell with a node twice": lambda file, rng: _node_twice(file, rng),
    "cell with a wrong node": lambda file, rng: _wrong_node(file, rng),
    "facet of three cells": lambda file, rng: _third_cell(file, rng),
}
"""Changes after which the mesh may be rejected with an error."""


def _duplicate_node(file: File, rng: random.Random) -> None:
    """Give a cell a copy of one of its nodes."""
    cell = rng.choice(file.cells)
    new = max(file.nodes) + 1
    file.nodes[new] = list(file.nodes[cell[0]])
    cell[0] = new


def _node_twice(file: File, rng: random.Random) -> None:
    """Replace a node of a cell by another node of this cell."""
    cell = rng.choice(file.cells)
    cell[1] = cell[0]


def _wrong_node(file: File, rng: random.Random) -> None:
    """Replace a node of a cell by a node of another cell."""
    first, *others = file.cells
    rng.choice(others)[1] = first[0]


def _third_cell(file: File, rng: random.Random) -> None:
    """Add a third cell at a facet."""
    new = max(file.nodes) + 1
    file.nodes[new] = [0.5, 0.5, 0.5]
    file.cells.append([*rng.choice(file.cells)[:3], new])


def cases(folder: Path, *, only: str | None = None, seed: int = 0) -> Iterator[Case]:
    """Return all cases; all kernels are compiled before the first one begins."""
    _mesh(folder, "valid", "compile")
    for kind in (*VALID, *INVALID):
        if only not in (None, kind):
            continue
        for number in range(MESHES):
            yield Case(
                kind, f"{MPI.COMM_WORLD.size} ranks", str(number),
                lambda k=kind, n=number: _mesh(folder, k, f"{seed} {k} {n}"),
            )  # fmt: skip


def _mesh(folder: Path, kind: str, seed: str) -> str | None:
    """Read and reduce a mesh; return what is wrong with the body."""
    comm = MPI.COMM_WORLD
    rng = random.Random(seed)
    file = File(rng)
    (VALID | INVALID)[kind](file, rng)
    path = folder / "mesh.msh"
    if comm.rank == 0:
        path.write_text(file.text())
    comm.Barrier()
    body = _reduced(path, comm)
    if comm.size > 1:
        difference = _difference(body, _reduced(path, MPI.COMM_SELF))
        if difference:
            return f"on {comm.size} ranks and on one: {difference}"
    if isinstance(body, mbd.errors.Error):
        if kind in VALID:
            return f"a valid mesh is rejected: {type(body).__name__}: {body}"
        raise body
    expected = mbd.STEEL.density * file.volume()
    if not abs(body.total_mass - expected) <= 1e-9 * expected:
        return f"the mass is {body.total_mass:g}, not {expected:g} kg"
    return None


def _reduced(path: Path, comm: MPI.Comm) -> mbd.ReducedBody | mbd.errors.Error:
    """Return the body of a mesh, or the error with which the mesh is rejected."""
    try:
        mesh = mbd.read_mesh(path, comm)
        groups = [n for n, (dim, _) in mesh.groups.items() if dim == 2 and n == "end"]
        return mbd.reduce(
            mbd.ElasticModel(mesh, mbd.STEEL, degree=1), interfaces=groups, num_modes=2
        ).body
    except mbd.errors.Error as error:
        return error


def _difference(a: mbd.ReducedBody | Exception, b: mbd.ReducedBody | Exception) -> str:
    """Return how two bodies differ; the signs of their modes may."""
    if isinstance(a, Exception) or isinstance(b, Exception):
        return "" if type(a) is type(b) else f"{a} and {b}"
    if a.num_modes != b.num_modes:
        return f"{a.num_modes} and {b.num_modes} modes"
    for name in ("mass", "stiffness"):
        x, y = (np.linalg.eigvalsh(getattr(body, name)) for body in (a, b))
        error = np.abs(x - y).max(initial=0.0) / np.abs(y).max(initial=1e-300)
        if error > 1e-6:
            return f"the eigenvalues of the {name} differ by {error:.1g}"
    return ""
