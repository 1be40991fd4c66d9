"""Assembly of a stiffness for PETSc and for CHOLMOD: today's path, and blocks of DOLFINx.

    ./with-fenicsx python3 benchmarks/assembly.py [--sizes 33k 105k] [--rounds 5]

A reduction needs the stiffness twice: in PETSc's format for products, and for CHOLMOD as its upper
triangle, in which the rows of the held interfaces are those of the identity. *Today* is the path of
the package, which assembles in PETSc's format and takes the upper triangle from it. *Blocks*
assembles blocks of 3 x 3 in DOLFINx's format and converts them to both formats. Times, in s, are
the smallest processor times in one process. The mass matrix is assembled for one component only,
because it is the same for all three.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from children import child, report
from reduction import ENDS, SIZES, prepare, read

DIM = 3


def measure(path: Path, rounds: int) -> dict[str, float]:
    """Return the smallest processor time of each part, s."""
    import ufl
    from dolfinx import fem, la

    from dolfinx_mbd import STEEL, ElasticModel
    from dolfinx_mbd.fem.assembly import _vectorized, assembled_matrix, scalar_space
    from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
    from dolfinx_mbd.fem.linalg.cholmod import _upper_triangle
    from dolfinx_mbd.forms import strain

    mesh = read(path)
    model = ElasticModel(mesh, STEEL)
    space, materials = model.displacements, model.materials
    assert materials is not None
    u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
    stiffness = _vectorized(ufl.inner(materials.stress(u), strain(v)) * ufl.dx)
    W = scalar_space(space)
    mass = fem.form(model.mass_density * ufl.TrialFunction(W) * ufl.TestFunction(W) * ufl.dx)
    held = np.concatenate([end.dofs for end in mesh_interfaces(mesh, space, ENDS)])
    free = np.ones(DIM * space.dofmap.index_map.size_local, dtype=bool)
    free[held] = False
    times: dict[str, float] = {}

    def blocks() -> Any:
        A = fem.create_matrix(stiffness, la.BlockMode.compact)
        fem.assemble_matrix(A, stiffness)
        return A

    def clocked(name: str, call: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = call()
        seconds = time.process_time() - start
        times[name] = min(times.get(name, np.inf), seconds)
        return result

    for _ in range(rounds):
        K = clocked("today: stiffness", lambda: assembled_matrix(stiffness))
        upper = clocked("today: upper triangle", lambda: _upper_triangle(K, held))
        A = clocked("blocks: stiffness", blocks)
        scalar_rows = clocked("blocks: for PETSc", lambda: expanded(A, upper=False))
        from_blocks = clocked(
            "blocks: upper triangle", lambda: constrained(expanded(A, upper=True), free)
        )
        clocked("mass", lambda: assembled_matrix(mass)).destroy()
        clocked("copy of K", K.copy).destroy()
        scale = np.abs(upper.data).max()
        assert abs(upper - from_blocks).max() < 1e-12 * scale
        indptr, columns, values = K.getValuesCSR()
        assert np.array_equal(indptr, scalar_rows.indptr)
        assert np.array_equal(columns, scalar_rows.indices)
        assert np.abs(values - scalar_rows.data).max() < 1e-12 * scale
        K.destroy()
    today = times["today: stiffness"] + times["today: upper triangle"]
    direct = sum(times[f"blocks: {part}"] for part in ("stiffness", "for PETSc", "upper triangle"))
    return {"dofs": len(free), **times, "today": today, "blocks": direct}


def expanded(A: Any, upper: bool) -> Any:
    """Return a matrix of blocks by scalar rows, or its upper triangle with full diagonal blocks."""
    import scipy.sparse

    nodes, columns = len(A.indptr) - 1, A.indices
    values, counts = A.data.reshape(-1, DIM, DIM), np.diff(A.indptr)
    if upper:
        mask = columns >= np.repeat(np.arange(nodes, dtype=np.int32), counts)
        columns, values = columns[mask], values[mask]
        counts = np.add.reduceat(mask, A.indptr[:-1], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)])
    per_row = np.repeat(DIM * counts, DIM)
    indptr = np.concatenate([[0], np.cumsum(per_row)]).astype(np.int32)
    # place of the first component of each block in the first of its three rows
    places = DIM * DIM * np.repeat(starts[:-1], counts) + DIM * (
        np.arange(len(columns)) - np.repeat(starts[:-1], counts)
    )
    data, indices = np.empty(len(columns) * DIM * DIM), np.empty(len(columns) * DIM**2, np.int32)
    width = np.repeat(DIM * counts, counts)
    for i in range(DIM):
        for j in range(DIM):
            at = places + i * width + j
            data[at], indices[at] = values[:, i, j], DIM * columns + j
    return scipy.sparse.csr_matrix((data, indices, indptr), shape=(DIM * nodes, DIM * nodes))


def constrained(upper: Any, free: np.ndarray) -> Any:
    """Return the upper triangle without stored zeros; rows that are not free become unit rows."""
    import scipy.sparse

    rows = np.repeat(np.arange(len(free), dtype=np.int32), np.diff(upper.indptr))
    diagonal = upper.indices == rows
    mask = (upper.data != 0.0) & (upper.indices >= rows) & free[upper.indices] & free[rows]
    held = diagonal & ~free[rows]
    upper.data[held] = 1.0
    mask |= held
    starts = np.concatenate([[0], np.cumsum(mask)])[upper.indptr].astype(np.int32)
    return scipy.sparse.csr_matrix((upper.data[mask], upper.indices[mask], starts), upper.shape)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["33k", "105k"], choices=SIZES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", nargs=2, metavar=("MESH", "ROUNDS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        path, rounds = arguments.child
        report(measure(Path(path), int(rounds)))
        return
    with tempfile.TemporaryDirectory() as directory:
        prepare(Path(directory), arguments.sizes)
        for number, size in enumerate(arguments.sizes):
            path = Path(directory) / f"{size}.msh"
            values = child(__file__, [str(path), str(arguments.rounds)])
            del values["peak"]
            if not number:
                print("| " + " | ".join(values) + " |")
                print("|---" * len(values) + "|")
            cells = (f"{v:.3f}" if key != "dofs" else f"{v:,}" for key, v in values.items())
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
