"""Reference conditions: attached and mean axis, the raw basis, the cut-off, the table of modes.

V8 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from mpi4py import MPI

from dolfinx_mbd import ElasticModel
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
from dolfinx_mbd.fem.modal.natural_modes import modal_analysis
from dolfinx_mbd.forms import STEEL
from dolfinx_mbd.reduction import reduce
from dolfinx_mbd.reduction.basis import Column, ColumnKind
from dolfinx_mbd.reduction.craig_bampton import craig_bampton_basis
from dolfinx_mbd.reduction.reduction_options import ReductionOptions
from dolfinx_mbd.reduction.reference import reduced_modes
from dolfinx_mbd.reduction.result import Reduction
from tests.fem.test_bad_input import assert_raises
from tests.models.bodies import box, rigid_mass
from tests.models.calls import flat

ENDS = ("left", "right")
NUM_MODES = 6


def bar(**arguments: Any) -> Reduction:
    """Return the bar of V8 with both ends as interfaces."""
    options: dict[str, Any] = {"interfaces": ENDS, "num_modes": NUM_MODES, "name": "bar"}
    return flat(reduce, box(MPI.COMM_WORLD), STEEL, **options | arguments)


def receptance(body: ReducedBody, omega: float) -> np.ndarray:
    """Return the receptance of the free body at its interfaces, for any reference condition."""
    S, H = body.first_moments, body.second_moments
    skew = H[0, 1:] - H[0, 1:].transpose(0, 2, 1)
    angular = np.stack([skew[:, 1, 2], skew[:, 2, 0], skew[:, 0, 1]], axis=1)  # ∫ρ x×ψ
    coupling = np.vstack([S[1:].T, angular.T])
    M = np.block([[rigid_mass(body), coupling], [coupling.T, body.mass]])
    K = scipy.linalg.block_diag(np.zeros((6, 6)), body.stiffness)
    rows = []
    for i in body.interfaces:
        x, y, z = i.point
        rotation = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])  # θ×x
        rigid = np.block([[np.eye(3), rotation], [np.zeros((3, 3)), np.eye(3)]])
        rows.append(np.hstack([rigid, i.motion]))
    G = np.vstack(rows)
    return G @ np.linalg.solve(K - omega**2 * M, G.T)


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
def test_attached(comm: MPI.Intracomm, kind: Any) -> None:
    """The interface does not move in the body frame; M = I; K = diag ω²."""
    body = bar(attached_to="left", kind=kind).body
    assert body.reference == "attached to left"
    n = body.num_modes
    assert n == 6 + NUM_MODES
    assert not body.interface("left").motion.any()
    assert body.interface("right").motion.any()
    S, H = body.first_moments, body.second_moments
    assert np.allclose(np.einsum("klaa->kl", H[1:, 1:]), np.eye(n), atol=1e-10)
    assert np.array_equal(body.mass, np.eye(n))
    omega = 2 * np.pi * body.frequencies
    assert np.allclose(body.stiffness, np.diag(omega**2), rtol=1e-12)
    assert np.abs(S[1:]).max() > 0.1 * np.sqrt(body.total_mass)  # not a mean axis


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
@pytest.mark.parametrize("orthonormalize", [True, False])
def test_same_physics_at_rest(kind: Any, orthonormalize: bool) -> None:
    """Rigid motions and modes span the same space, so that the response is the same."""
    mean = bar(kind=kind).body
    attached = bar(kind=kind, attached_to="right", orthonormalize=orthonormalize).body
    for factor in (0.3, 1.3, 2.7):
        omega = factor * 2 * np.pi * mean.frequencies[0]
        a, b = receptance(mean, omega), receptance(attached, omega)
        scale = np.sqrt(np.abs(np.outer(np.diag(a), np.diag(a))))
        assert (np.abs(a - b) / scale).max() < 1e-8


def test_attached_to_the_only_interface(comm: MPI.Intracomm) -> None:
    """The remaining modes are those of the clamped body."""
    body = bar(interfaces=["left"], attached_to="left", num_modes=5).body
    clamped = modal_analysis(box(comm), STEEL, num_modes=5, held=["left"])
    assert body.frequencies == pytest.approx(clamped.frequencies, rel=1e-9)


def test_attached_converges_to_the_clamped_body(comm: MPI.Intracomm) -> None:
    """Frequencies converge from above, with constraint modes of the free end and fixed modes."""
    body = bar(attached_to="left", num_modes=12, kind="averaged").body
    clamped = modal_analysis(box(comm), STEEL, num_modes=4, held=["left"])
    # (An averaged end is held in the mean only, which is softer than a clamp.)
    assert (body.frequencies[:4] < clamped.frequencies).all()
    rigid = bar(attached_to="left", num_modes=12).body
    assert (rigid.frequencies[:4] > clamped.frequencies).all()
    assert rigid.frequencies[:4] == pytest.approx(clamped.frequencies, rel=2e-2)


def test_raw_basis() -> None:
    """Columns are unit motions as in other programs; K has two blocks; frequencies are equal."""
    raw = bar(attached_to="left", orthonormalize=False).body
    body = bar(attached_to="left").body
    assert [m.label for m in raw.modes[:2]] == ["constraint right ux", "constraint right uy"]
    assert [m.label for m in raw.modes[6:]] == [f"fixed {k}" for k in range(1, NUM_MODES + 1)]
    assert np.array_equal(raw.interface("right").motion, np.eye(6, 6 + NUM_MODES))
    assert not raw.interface("left").motion.any()
    size = np.sqrt(np.diag(raw.stiffness))
    assert np.abs(raw.stiffness[:6, 6:] / np.outer(size[:6], size[6:])).max() < 1e-6
    assert np.allclose(np.einsum("klaa->kl", raw.second_moments[1:, 1:]), raw.mass, atol=1e-12)
    squares = scipy.linalg.eigh(raw.stiffness, raw.mass, eigvals_only=True)
    assert np.sqrt(squares) / (2 * np.pi) == pytest.approx(body.frequencies, rel=1e-9)


@pytest.mark.parametrize("attached_to", [None, "left"])
def test_cut_off(comm: MPI.Intracomm, attached_to: str | None) -> None:
    """Modes above the limit are omitted and listed; modes below it are unchanged."""
    whole = bar(attached_to=attached_to).body
    limit = float(whole.frequencies[4:6].mean())
    result = bar(attached_to=attached_to, up_to=limit)
    body = result.body
    assert body.num_modes == 5 == result.modes.shape[1]
    assert body.frequencies == pytest.approx(whole.frequencies[:5], rel=1e-10)
    above = [mode for mode in body.left_out if mode.reason == f"above {limit:g} Hz"]
    assert [mode.label for mode in above] == [mode.label for mode in whole.modes[5:]]
    assert len(body.modes) + len(body.left_out) == 12 + NUM_MODES
    assert body.provenance["up to (Hz)"] == limit
    skin, whole_skin = body.skin, whole.skin
    assert skin is not None
    assert whole_skin is not None
    assert np.allclose(skin.modes, whole_skin.modes[:5], atol=1e-7 * np.abs(skin.modes).max())


def test_table_of_modes(comm: MPI.Intracomm, tmp_path: Path) -> None:
    """Each column of the basis is a mode or omitted with a reason, also in the file."""
    mean, fixed = bar().body, bar(attached_to="right").body
    assert [mode.label for mode in mean.left_out] == [f"rigid {k}" for k in range(1, 7)]
    assert [mode.label for mode in mean.modes] == [f"elastic {k}" for k in range(1, 13)]
    assert [mode.label for mode in fixed.modes] == [f"elastic {k}" for k in range(1, 13)]
    assert {mode.reason for mode in fixed.left_out} == {"the body frame is attached to right"}
    assert fixed.left_out[0].label == "constraint right ux"
    # A bar of 20 by 12 mm bends first over its flat side, in z, and then in y.
    assert mean.modes[0].character.startswith("moves 97 % z; strain energy ")
    assert mean.modes[1].character.startswith("moves 93 % y, 7 % x; strain energy ")
    assert all(mode.character.endswith(" % in constraint modes") for mode in mean.modes)
    stretch = [mode for mode in mean.modes if mode.character.startswith("moves 100 % x;")]
    assert len(stretch) == 1
    text = mean.summary()
    assert all(mode.label in text and mode.character in text for mode in mean.modes)
    assert "rigid 6                                0.00  motion of the body frame" in text
    path = comm.bcast(tmp_path, root=0) / f"bar{comm.rank}.npz"
    loaded = ReducedBody.load(fixed.save(path))
    assert (loaded.modes, loaded.left_out) == (fixed.modes, fixed.left_out)
    assert loaded.reference == "attached to right"
    cut = fixed.truncated(10)
    assert [mode.reason for mode in cut.left_out[-2:]] == ["truncated to 10 modes"] * 2


def test_static_share_is_that_of_the_constraint_modes(comm: MPI.Intracomm) -> None:
    """The constraint modes have all static energy without fixed modes; free bodies state none."""
    static = "; strain energy 100 % in constraint modes"
    assert all(mode.character.endswith(static) for mode in bar(num_modes=0).body.modes)
    free = bar(interfaces=(), num_modes=3).body
    assert [mode.label for mode in free.modes] == ["elastic 1", "elastic 2", "elastic 3"]
    assert all("strain" not in mode.character for mode in free.modes)
    assert len(free.left_out) == 6


@pytest.mark.parametrize("condition", ["mean axis", "attached"])
def test_dependent_columns_are_named(comm: MPI.Intracomm, condition: str) -> None:
    """A dependent column is dropped; the table names the other columns."""
    mesh = box(comm)
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    ends = mesh_interfaces(mesh, problem.space, ENDS)
    basis = craig_bampton_basis(problem, ends, 2, prefix="test_reference_")
    weights = np.zeros((14, 1))
    weights[[7, 12]] = [[1.0], [-0.5]]  # right uy − fixed 1 / 2
    more = replace(
        basis,
        vectors=np.asfortranarray(np.hstack([basis.vectors, basis.vectors @ weights])),
        columns=(*basis.columns, Column(ColumnKind.LOAD, "twice")),
    )

    def modes(basis: Any) -> Any:
        attached_to = "left" if condition == "attached" else None
        return reduced_modes(problem, basis, attached_to, ReductionOptions())

    plain, result = modes(basis), modes(more)
    lost = [mode for mode in result.left_out if mode.reason.startswith("depends on")]
    assert len(lost) == 1
    names = {"constraint right uy", "fixed 1", "load twice"}
    assert lost[0].label in names
    assert names - {lost[0].label} == set(lost[0].reason.removeprefix("depends on ").split(", "))
    assert lost[0].frequency > 0
    assert result.squares == pytest.approx(plain.squares, rel=1e-8)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("attached_to must be one of 'left', 'right', None; got 'end'", {"attached_to": "end"}),
        ("attached_to must be one of None; got 'left'", {"attached_to": "left", "interfaces": ()}),
        ("no mode is below up_to=10 Hz; the first is at", {"up_to": 10}),
        ("orthonormalize=False needs attached_to", {"orthonormalize": False}),
        (
            "up_to needs modes that have frequencies",
            {"orthonormalize": False, "attached_to": "left", "up_to": 1e4},
        ),
    ],
)
def test_refused(comm: MPI.Intracomm, text: str, options: dict[str, Any]) -> None:
    """Errors contain the names of the user, on every rank."""
    assert_raises(comm, ValueError, text, lambda: bar(**options))


def test_names_of_interfaces_do_not_matter() -> None:
    """Columns have types, so that names which look like labels change nothing."""
    names = {"left": "left", "right": "right"}, {"fixed 1": "left", "constraint fixed 1 u": "right"}
    plain, odd = (
        bar(interfaces=ends, attached_to=next(iter(ends)), orthonormalize=False).body
        for ends in names
    )
    assert odd.num_modes == plain.num_modes == 6 + NUM_MODES
    assert np.allclose(odd.stiffness, plain.stiffness, rtol=1e-9, atol=1e-9 * plain.stiffness.max())
    basis = Column(ColumnKind.CONSTRAINT, "left", "ux"), Column(ColumnKind.FIXED, number=3)
    assert [column.label for column in basis] == ["constraint left ux", "fixed 3"]
