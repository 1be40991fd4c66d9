"""Matrices of Ansys: the example of ansys-mapdl-reader, and a free body in a file of this test.

The example, a beam of 40 SOLID186 by Ansys 15, is clamped: its matrices are compared with the
package's own beam, and cannot become a free body.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from dolfinx.mesh import CellType, create_box, locate_entities_boundary
from dolfinx_mbd.imports import (
    FullMatrices,
    MatrixError,
    MatrixFileError,
    NodeInterface,
    read_ansys,
    read_calculix,
    reduce_matrices,
)
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.io.imports import ansys

reader = pytest.importorskip("ansys.mapdl.reader")
from tests.io.imports.ansys_files import write_full  # noqa: E402

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one process reads files")

BAR = Path(__file__).parent / "calculix" / "bar"


def test_frequencies_of_the_example() -> None:
    """K and M at the free displacements have the frequencies of the clamped beam.

    The material is that of the results beside the file. The package computes the beam with the same
    mesh; SOLID186 has 20 nodes and reduced integration, the package's element 27 nodes.
    """
    full, dofs, K, M = ansys.read_full(reader.examples.fullfile)
    results = reader.read_binary(reader.examples.rstfile)
    fixed = {tuple(row) for row in np.asarray(full.const).tolist()}
    free = [k for k, row in enumerate(dofs.tolist()) if tuple(row) not in fixed]
    A, B = (matrix[free][:, free].toarray() for matrix in (K, M))
    assert np.abs(A - A.T).max() == 0.0
    clamped = np.sqrt(scipy.linalg.eigh(A, B, eigvals_only=True, subset_by_index=(0, 7)))
    mesh = create_box(MPI.COMM_SELF, [(0, 0, 0), (1, 1, 5)], [2, 2, 10], CellType.hexahedron)
    root = locate_entities_boundary(mesh, 2, lambda x: np.isclose(x[2], 0.0))
    data = results.materials[1]
    material = mbd.Material(data["EX"], data["NUXY"], data["DENS"])
    with pytest.warns(mbd.errors.UnitsWarning):  # inches and pounds
        model = mbd.ElasticModel(mesh, material, degree=2)
        body = mbd.reduce(model, interfaces={"root": root}, num_modes=8, stiffening=False).body
    assert clamped / (2 * np.pi) == pytest.approx(body.effective_masses.frequencies, rel=4e-3)


def test_supports_are_an_error() -> None:
    with pytest.raises(MatrixFileError, match="at 63 degrees of freedom of 21 nodes"):
        read_ansys(reader.examples.fullfile, reader.examples.rstfile)


def free_file(matrices: FullMatrices, path: Path) -> np.ndarray:
    """Write matrices to a file with another order of the nodes; return the nodes' numbers."""
    random = np.random.default_rng(5)
    count = len(matrices.nodes)
    numbers = random.permutation(np.arange(10, 10 + 3 * count))[:count]
    nodes = random.permutation(count)
    order = (3 * nodes[:, None] + np.arange(3)).ravel()
    K, M = (A[order][:, order] for A in (matrices.stiffness, matrices.mass))
    write_full(path, K, M, numbers[nodes])
    return numbers


def test_free_body(tmp_path: Path) -> None:
    """A free bar has the body of its matrices, with positions from an array or a table."""
    bar, file = read_calculix(BAR), tmp_path / "bar.full"
    numbers = free_file(bar, file)
    nodes = tmp_path / "nodes.txt"
    np.savetxt(nodes, np.column_stack([numbers, bar.nodes]), fmt=["%d", "%.16e", "%.16e", "%.16e"])
    x = bar.nodes[:, 0]
    ends = {"a": np.flatnonzero(x < x.min() + 1e-9), "b": np.flatnonzero(x > x.max() - 1e-9)}
    expected = reduce_matrices(
        bar, {k: NodeInterface(bar.labels[rows]) for k, rows in ends.items()}, num_modes=4
    )
    for matrices in (
        read_ansys(file, bar.nodes, labels=numbers),
        read_ansys(file, nodes),
    ):
        interfaces = {k: NodeInterface(numbers[rows]) for k, rows in ends.items()}
        body = reduce_matrices(matrices, interfaces, num_modes=4)
        assert body.frequencies == pytest.approx(expected.frequencies, rel=1e-8)
        assert body.total_mass == pytest.approx(expected.total_mass, rel=1e-12)
        assert body.inertia == pytest.approx(expected.inertia, rel=1e-10, abs=1e-12)


def test_faults(tmp_path: Path) -> None:
    bar, file = read_calculix(BAR), tmp_path / "bar.full"
    numbers = free_file(bar, file)
    with pytest.raises(MatrixFileError, match="no position of the nodes"):
        read_ansys(file, bar.nodes)
    with pytest.raises(MatrixError, match="different numbers of nodes"):
        read_ansys(file, bar.nodes, labels=numbers[:-1])
    with pytest.raises(MatrixError, match="rigid"):
        read_ansys(file, np.roll(bar.nodes, 1, axis=0), labels=numbers)
    np.savetxt(tmp_path / "nodes.txt", bar.nodes)
    with pytest.raises(MatrixFileError, match="no numbers of nodes"):
        read_ansys(file, tmp_path / "nodes.txt")


def test_incomplete_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result of the reader lacks a displacement, as if the analysis had eliminated it."""
    full, dofs, K, M = ansys.read_full(reader.examples.fullfile)
    rows = np.arange(63, len(dofs) - 1)
    full._const = np.zeros((0, 2), dtype=int)
    values = full, dofs[rows], K[rows][:, rows], M[rows][:, rows]
    monkeypatch.setattr(ansys, "read_full", lambda path: values)
    with pytest.raises(MatrixFileError, match="displacements x, y and z of each node"):
        read_ansys(reader.examples.fullfile, reader.examples.rstfile)


@pytest.mark.parametrize("damage", ["truncated", "cut in the mass", "length", "text", "results"])
def test_damaged_files(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "file.full"
    data = Path(reader.examples.fullfile).read_bytes()
    text = b"a text that is longer than the header of a binary file of Ansys" * 20
    results = Path(reader.examples.rstfile).read_bytes()
    # word 545, the length of a record, is replaced by a wrong one
    length = data[: 4 * 545] + bytes([255, 255, 0, 0]) + data[4 * 546 :]
    contents = {"truncated": data[:5000], "cut in the mass": data[: 4 * 140_000], "length": length}
    path.write_bytes((contents | {"text": text, "results": results})[damage])
    with pytest.raises(MatrixFileError, match=r"file\.full"):
        read_ansys(path, reader.examples.rstfile)


def test_positions_of_results_and_archive() -> None:
    """The positions of the example are the same in its results and in the archive of its mesh."""
    results, archive = (
        ansys._positions(path, None)
        for path in (reader.examples.rstfile, reader.examples.hexarchivefile)
    )
    assert np.array_equal(np.sort(results[0]), np.sort(archive[0]))
    a, b = (points[np.argsort(numbers)] for numbers, points in (results, archive))
    assert a == pytest.approx(b, abs=1e-12)


def test_without_the_reader() -> None:
    code = "import sys; sys.modules['ansys.mapdl'] = None; import dolfinx_mbd as mbd\n"
    code += f"mbd.imports.read_ansys({str(BAR.with_suffix('.sti'))!r}, [[0.0] * 3])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert "pip install ansys-mapdl-reader" in result.stderr
