"""Matrices that CalculiX 2.20 stored: the body has the frequencies that CalculiX computed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import ufl
from dolfinx import fem
from dolfinx.mesh import CellType, create_box
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import MissingFileError
from dolfinx_mbd.io.imports import (
    MatrixError,
    MatrixFileError,
    NodeInterface,
    read_calculix,
    reduce_matrices,
)

JOB = Path(__file__).parent / "calculix" / "bar"
FREE = [5142.682, 5813.457, 7615.705, 13328.69, 14952.74, 16084.71]  # Hz, from its file .dat
CLAMPED = [786.7350, 919.7712, 3780.102, 5011.587, 5584.469, 6666.626]  # left end fixed
LEFT, RIGHT = [10, 20, 30, 40], [170, 180, 190, 200]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Return the path, without suffix, of a copy of the job of CalculiX."""
    for suffix in (".inp", ".sti", ".mas", ".dof"):
        shutil.copy(JOB.with_suffix(suffix), tmp_path)
    return tmp_path / "bar"


def edit(path: Path, change: Callable[[str], str]) -> None:
    """Replace the text of a file by a changed text."""
    path.write_text(change(path.read_text()))


def test_the_frequencies_of_the_free_solid() -> None:
    matrices = read_calculix(JOB)
    K, M = matrices.stiffness.toarray(), matrices.mass.toarray()
    values = scipy.linalg.eigh(K, M, eigvals_only=True)
    assert np.abs(values[:6]).max() < 1e-9 * values[6]
    np.testing.assert_allclose(np.sqrt(values[6:12]) / (2 * np.pi), FREE, rtol=1e-6)
    assert matrices.scalar_mass.sum() == pytest.approx(7850 * 0.2 * 0.02 * 0.03, rel=1e-9)
    assert matrices.nodes[matrices.rows([190], "nodes")].tolist() == [[0.2, 0.02, 0.0]]


def test_bricks_have_the_matrices_of_the_package() -> None:
    """C3D8 is the linear hexahedron with full integration."""
    imported = read_calculix(JOB)
    bar = create_box(MPI.COMM_SELF, [(0, 0, 0), (0.2, 0.02, 0.03)], [4, 1, 1], CellType.hexahedron)
    V = fem.functionspace(bar, ("Lagrange", 1, (3,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    x = V.tabulate_dof_coordinates()
    distances = np.linalg.norm(x[None] - imported.nodes[:, None], axis=2)
    rows = (3 * distances.argmin(axis=1)[:, None] + np.arange(3)).ravel()
    material = mbd.Material(2.1e11, 0.3, 7850.0)
    forms = mbd.forms.elastic_stiffness(u, v, material), mbd.forms.mass(u, v, material.density)
    for form, matrix in zip(forms, (imported.stiffness, imported.mass), strict=True):
        A = fem.assemble_matrix(fem.form(form)).to_scipy().toarray()[np.ix_(rows, rows)]
        assert np.abs(A - matrix.toarray()).max() < 1e-12 * np.abs(A).max()


def test_the_frequencies_of_the_reduced_clamped_body() -> None:
    ends = {"left": NodeInterface(LEFT), "right": NodeInterface(RIGHT, kind="averaged")}
    body = reduce_matrices(read_calculix(JOB.with_suffix(".sti")), ends, num_modes=40)
    poles = mbd.body.linearize_body(body, held=["left"]).poles()
    np.testing.assert_allclose(np.abs(poles[:6]) / (2 * np.pi), CLAMPED, rtol=1e-6)


def test_units_and_decks_with_included_files(job: Path) -> None:
    expected = read_calculix(job)
    deck = job.with_suffix(".inp")
    head, _, rest = deck.read_text().partition("*ELEMENT")
    (job.parent / "nodes.inc").write_text(head)
    other_deck = job.parent / "other.deck"
    other_deck.write_text('*Include, Input="nodes.inc"\n*ELEMENT' + rest)
    deck.unlink()
    matrices = read_calculix(job, nodes=other_deck)
    assert np.array_equal(matrices.nodes, expected.nodes)
    assert matrices.in_si(length=2.0).nodes.max() == 0.4
    with pytest.raises(MissingFileError):
        read_calculix(job)
    edit(job.parent / "nodes.inc", lambda text: text + "*INCLUDE, INPUT=nodes.inc\n")
    with pytest.raises(MatrixFileError, match="includes itself"):
        read_calculix(job, nodes=other_deck)


def test_includes_that_multiply(job: Path) -> None:
    """Thirty files that include the next one twice would be read a billion times."""
    expected = read_calculix(job)
    deck = job.with_suffix(".inp")
    nodes = deck.read_text().partition("*ELEMENT")[0]
    for k in range(30):
        (job.parent / f"{k}.inc").write_text(f"*INCLUDE, INPUT={k + 1}.inc\n" * 2)
    (job.parent / "30.inc").write_text(nodes)
    deck.write_text("*INCLUDE, INPUT=0.inc\n")
    assert np.array_equal(read_calculix(job).nodes, expected.nodes)
    for k in range(30, 80):
        (job.parent / f"{k}.inc").write_text(f"*INCLUDE, INPUT={k + 1}.inc\n")
    (job.parent / "80.inc").write_text(nodes)
    with pytest.raises(MatrixFileError, match="chain"):
        read_calculix(job)
    deck.write_text("*INCLUDE, INPUT=/dev/zero\n")
    with pytest.raises(MatrixFileError, match="not a device"):
        read_calculix(job)


@pytest.mark.parametrize(
    ("suffix", "change", "text"),
    [
        (".dof", lambda s: s.replace("10.1\n", ""), "remove supports"),
        (".dof", lambda s: s.replace("10.2\n", "10.1\n"), "twice"),
        (".dof", lambda s: "", "empty"),
        (".sti", lambda s: s[: len(s) // 2], "damaged"),
        (".sti", lambda s: s.replace("60 60 ", "60 59 "), "upper triangle"),
        (".mas", lambda s: "\n".join(s.splitlines()[:-1]), "mass matrix"),
        (".mas", lambda s: "1 1 1 1\n", "damaged"),
        (".inp", lambda s: s.replace("\n190, ", "\n191, "), "190"),
        (".inp", lambda s: s.replace("NSET=NALL", "SYSTEM=C"), "rectangular"),
        (".inp", lambda s: s.replace("190, 0.2,", "190, x,"), "damaged"),
    ],
)
def test_damaged_files(job: Path, suffix: str, change: Callable[[str], str], text: str) -> None:
    edit(job.with_suffix(suffix), change)
    with pytest.raises(MatrixError, match=text):
        read_calculix(job)


def test_nodes_in_another_order(job: Path) -> None:
    """The stiffness resists the rigid motions of positions that belong to other nodes."""
    swap = {"\n190, ": "\n+, ", "\n180, ": "\n190, ", "\n+, ": "\n180, "}
    for old, new in swap.items():
        edit(job.with_suffix(".inp"), lambda s, old=old, new=new: s.replace(old, new))
    with pytest.raises(MatrixError, match="rigid motion"):
        read_calculix(job)
