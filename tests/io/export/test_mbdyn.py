"""MBDyn files: a reader of the grammar alone, and the equations of motion in them.

The equations are compared with those of the package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.export import Units, export
from tests.io.export.equations import fem_rows
from tests.io.export.readers.fem import FemFile, read_fem
from tests.io.export.reduced import KINDS, reduced
from tests.io.export.states import (
    assert_same_rows,
    in_units,
    load_stiffness,
    moment_rows_linear,
    own_rows,
    random_state,
)

MANUAL = """** MBDyn MODAL DATA FILE
** NODE SET "ALL"


** RECORD GROUP 1, HEADER
**   REVISION,  NODE,  NORMAL, ATTACHMENT, CONSTRAINT, REJECTED MODES.
      REV0         3         2         0         0         0
**
** RECORD GROUP 2, FINITE ELEMENT NODE LIST
 1001 1002 1003

**
** RECORD GROUP 3, INITIAL MODAL DISPLACEMENTS
 0 0
**
** RECORD GROUP 4, INITIAL MODALVELOCITIES
 0 0
**
** RECORD GROUP 5, NODAL X COORDINATES
 0
 0
 0
**
** RECORD GROUP 6, NODAL Y COORDINATES
-2.
 0
 2.
**
** RECORD GROUP 7, NODAL Z COORDINATES
 0
 0
 0
**
** RECORD GROUP 8, MODE SHAPES
**    NORMAL MODE SHAPE #  1
0 0 1 0 0 0
0 0 0 0 0 0
0 0 1 0 0 0
**    NORMAL MODE SHAPE #  2
1 0 0 0 0 0
0 0 0 0 0 0
1 0 0 0 0 0
**
** RECORD GROUP 9, MODAL MASS MATRIX
2 0
0 2
**
** RECORD GROUP 10, MODAL STIFFNESS MATRIX
1 0
0 1e2
**
** RECORD GROUP 11, DIAGONAL OF LUMPED MASS MATRIX
1 1 1 1 1 1
1 1 1 1 1 1
1 1 1 1 1 1
"""
"""The dynamic model of three nodes in the manual."""


def written(tmp_path: Path, kind: str, **options: Any) -> FemFile:
    """Return the contents of an exported file."""
    return read_fem(export(reduced(kind), tmp_path / "body", "mbdyn", **options).paths[0])


def test_the_reader_knows_the_sample_of_the_manual(tmp_path: Path) -> None:
    path = tmp_path / "manual.fem"
    path.write_text(MANUAL)
    file = read_fem(path)
    assert file.labels == ["1001", "1002", "1003"]
    assert np.array_equal(file.groups[9], np.diag([2.0, 2.0]))
    assert np.array_equal(file.groups[10], np.diag([1.0, 100.0]))
    lumped, x = file.groups[11], file.positions
    J = np.diag(lumped[:, 3:].sum(axis=0))
    J += np.einsum("p,pab->ab", lumped[:, 0], [x_ @ x_ * np.eye(3) - np.outer(x_, x_) for x_ in x])
    assert lumped[:, 0].sum() == 3 and np.array_equal(J, np.diag([11.0, 3.0, 11.0]))
    U = file.groups[8]
    assert np.array_equal(
        np.einsum("p,jpa,kpa->jk", lumped[:, 0], U[..., :3], U[..., :3]), 2 * np.eye(2)
    )


@pytest.mark.parametrize(
    ("cut", "instead", "text"),
    [
        ("1001 1002 1003", "1001 1002 1003 1004", "left over"),
        ("0 1e2", "0", "expected 4 values"),
        ("GROUP 11", "GROUP 20", "unknown"),
        ("GROUP 11", "GROUP 10", "twice"),
        ("GROUP 10", "GROUP 12", "expected 9 values"),
        ("**    NORMAL MODE SHAPE #  1\n", "", "comment"),
    ],
)
def test_the_reader_raises_errors_for_wrong_grammar(
    tmp_path: Path, cut: str, instead: str, text: str
) -> None:
    path = tmp_path / "broken.fem"
    path.write_text(MANUAL.replace(cut, instead, 1))
    with pytest.raises(ValueError, match=text):
        read_fem(path)


@pytest.mark.parametrize("kind", KINDS)
def test_content(tmp_path: Path, kind: str) -> None:
    body, file = reduced(kind), written(tmp_path, kind)
    assert file.labels == [i.name for i in body.interfaces] + [p.name for p in body.points]
    for k, interface in enumerate(body.interfaces):
        assert np.array_equal(file.positions[k], interface.point)
        assert np.array_equal(file.groups[8][:, k].T, interface.motion)
    for k, point in enumerate(body.points, len(body.interfaces)):
        assert np.array_equal(file.positions[k], point.position)
        assert np.array_equal(file.groups[8][:, k, :3], point.modes)
        assert not file.groups[8][:, k, 3:].any()
    for number, matrix in ((9, body.mass), (10, body.stiffness), (13, body.damping)):
        assert np.array_equal(file.groups[number], matrix)
    assert not file.groups[3].any() and not file.groups[4].any()
    assert file.mass == body.total_mass and np.array_equal(file.centre, body.centre)
    assert np.array_equal(file.inertia, body.central_inertia)
    assert 11 not in file.groups  # it would replace groups 14 to 18


def test_surface_on_request(tmp_path: Path) -> None:
    body, file = reduced("rigid"), written(tmp_path, "rigid", skin=True)
    assert body.skin is not None
    count = len(body.interfaces) + len(body.points)
    assert file.num_nodes == count + len(body.skin.points) == len(set(file.labels))
    assert np.array_equal(file.positions[count:], body.skin.points)
    assert np.array_equal(file.groups[8][:, count:, :3], body.skin.modes)
    with pytest.raises(InputError) as error:
        export(body.replace(skin=None), tmp_path / "no_skin", "mbdyn", skin=True)
    assert error.value.argument == "skin"


@pytest.mark.parametrize("kind", KINDS)
def test_inertia_tensor_of_the_deformed_body(tmp_path: Path, kind: str) -> None:
    body, file = reduced(kind), written(tmp_path, kind)
    eta = random_state(body, 1).q[7:]
    weights = np.concatenate([[1.0], eta])
    # ∫ρ x⊗x of the deformed body, from which follows its inertia J about the origin
    Q = np.einsum("k,l,klab->ab", weights, weights, body.second_moments)
    c = file.centre
    J = file.inertia + file.mass * (c @ c * np.eye(3) - np.outer(c, c))
    I8 = np.einsum("ajb,j->ab", file.groups[16], eta)
    J = J + I8 + I8.T - np.einsum("ajkb,j,k->ab", file.groups[18], eta, eta)
    assert np.allclose(J, np.trace(Q) * np.eye(3) - Q, rtol=0, atol=1e-13 * np.trace(Q))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_equations_of_motion(tmp_path: Path, kind: str, seed: int) -> None:
    """MBDyn's equations with the numbers of the file equal those of the package."""
    body, file = reduced(kind), written(tmp_path, kind)
    state = random_state(body, seed)
    values = fem_rows(file, *state.arguments)
    assert_same_rows(values, moment_rows_linear(body, state))
    if body.stiffening is not None:  # without it, the rows differ by more than the tolerance
        file.stress_stiffening = {k: 0 * K for k, K in file.stress_stiffening.items()}
        change = np.abs(fem_rows(file, *state.arguments) - values)[6:].max()
        assert change > 1e-6 * np.abs(values[6:]).max()
    else:
        assert not file.stress_stiffening


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
def test_geometric_stiffness_of_forces_and_moments(tmp_path: Path, kind: str) -> None:
    """The symmetric part of the tangent is compared; the rest is the rotation of the moments."""
    body, file = reduced(kind), written(tmp_path, kind)
    count = len(body.interfaces)
    # 1 to 6: products of ω; 7 to 12: accelerations, with zeros; then six loads of each interface
    assert sorted(file.stress_stiffening) == list(range(1, 13 + 6 * count))
    assert not any(file.stress_stiffening[k].any() for k in range(7, 13))
    for k in range(count):
        for i in range(6):
            stiffness = load_stiffness(body, k, i)
            expected = file.stress_stiffening[13 + 6 * k + i]
            assert np.allclose(stiffness, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["rigid", "attached"])
def test_units(tmp_path: Path, kind: str) -> None:
    """Rows in other units are those in SI units times the units of force or of moment."""
    body = reduced(kind)
    units = Units("mm-g-ms", length=1e3, mass=1e3, time=1e3, force_name="mN")
    file = written(tmp_path, kind, units=units)
    state = random_state(body, 4)
    scaled_state = in_units(state, units)
    expected = units.moment * moment_rows_linear(body, state)
    expected[:3] *= units.force / units.moment
    assert_same_rows(fem_rows(file, *scaled_state.arguments), expected)


def test_report(tmp_path: Path) -> None:
    report = export(reduced("rigid"), tmp_path / "a.b", "mbdyn", units="mm-t-s")
    assert report.paths == (tmp_path / "a.b",)
    text = str(report)
    for words in (
        "mm-t-s",
        "without the axes",
        "modal equations only",
        "the surface was not written",
        "in this order for group 19: left, right",
        "automatic differentiation",
    ):
        assert words in text
    assert "mm-t-s" in report.paths[0].read_text().splitlines()[2]
    quiet = export(reduced("unstiffened"), tmp_path / "c", "mbdyn", skin=True)
    assert quiet.paths == (tmp_path / "c.fem",) and "group 19" not in str(quiet)


def test_our_rows_notice_geometric_stiffness() -> None:
    """The rows of the package, the reference, change without stiffening."""
    body, state = reduced("rigid"), random_state(reduced("rigid"), 0)
    full, linear = own_rows(body, state), moment_rows_linear(body, state)
    assert np.array_equal(full[6:], linear[6:]) and not np.allclose(
        full[3:6], linear[3:6], rtol=1e-8
    )
