"""SID_FEM files: a reader of the grammar alone, identities, and the equations of motion in them.

The equations are compared with those of the package.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.export import UNITS, Units, export
from dolfinx_mbd.kernels.rotations import skew
from tests.io.export.equations import sid_rows
from tests.io.export.readers.sid import SidFile, Taylor, read_sid
from tests.io.export.reduced import KINDS, reduced
from tests.io.export.states import (
    State,
    assert_same_rows,
    in_units,
    load_stiffness,
    moment_rows_linear,
    random_state,
)

BY_AXIS, BY_MODE = "(a-1)*nq+l", "3*(l-1)+a"
COLUMNS = {"simpack": BY_AXIS, "embslib": BY_MODE, "fembeam": BY_MODE}
"""Order of the columns of Gr and Ge that the programs of a dialect read."""
DIALECTS = tuple(COLUMNS)
SAMPLE = """   1   2 : sample
part
   new modal
      refmod
         mass              = 2.5D+00
         nelastq           = 2
         ielastq (   1)    = first : 1.0 Hz
         ielastq (   2)    = second : 2.0 Hz
      end refmod
      frame
         new node          = 17
            rframe         = body ref
            psi
               order       = 1
               nrow        = 3
               ncol        = 2
               nq          = 2
               nqn         = 0
               structure   = 3
               m0( 1, 2)   =-1.5D-01
               m1( 3, 1, 2)= 4.0D+02
            end psi
         end node
      end frame
      Ke
         order             = 0
         nrow              = 2
         ncol              = 2
         nq                = 2
         nqn               = 0
         structure         = 2
         m0( 1, 1)         = 1.0D+00
         m0( 2, 1)         = 0.5E+00
      end Ke
   end modal
end part
"""


def written(tmp_path: Path, kind: str, dialect: str = "simpack", **options: Any) -> SidFile:
    """Return the contents of a file that is exported in a dialect."""
    path = export(
        reduced(kind), tmp_path / "body", "sid", dialect=dialect, overwrite=True, **options
    ).paths[0]
    return read_sid(path, q_second=dialect != "fembeam")


def test_the_reader_knows_the_grammar(tmp_path: Path) -> None:
    path = tmp_path / "sample"
    path.write_text(SAMPLE)
    for q_second, at in ((True, (2, 0, 1)), (False, (2, 1, 0))):
        file = read_sid(path, q_second=q_second)
        assert file.mass == 2.5 and file.modes[1] == "second : 2.0 Hz"
        psi = file.nodes["17"]["psi"]
        assert np.array_equal(psi.m0, [[0, -0.15], [0, 0], [0, 0]])
        assert psi.m1[at] == 400 and np.count_nonzero(psi.m1) == 1
        assert np.array_equal(file["Ke"].m0, [[1, 0.5], [0.5, 0]])


@pytest.mark.parametrize(
    ("cut", "instead", "text"),
    [
        ("structure         = 2", "structure         = 1", "structure 1"),
        ("structure         = 2", "structure         = 0", "structure 0"),
        ("order       = 1", "order       = 0", "order 0"),
        ("end psi", "end phi", "expected an entry"),
        ("end modal", "J", "expected order"),
        ("nelastq           = 2", "nelastq           = 3", "3 modes"),
        ("frame\n         new", "new frame\n         new", "expected 'frame'"),
    ],
)
def test_the_reader_raises_errors_for_wrong_grammar(
    tmp_path: Path, cut: str, instead: str, text: str
) -> None:
    assert cut in SAMPLE
    path = tmp_path / "broken"
    path.write_text(SAMPLE.replace(cut, instead, 1))
    with pytest.raises(ValueError, match=text):
        read_sid(path, q_second=True)


@pytest.mark.parametrize("kind", KINDS)
def test_content(tmp_path: Path, kind: str) -> None:
    body, file = reduced(kind), written(tmp_path, kind)
    assert file.mass == body.total_mass
    assert len(file.modes) == body.num_modes
    for mode, line in zip(body.modes, file.modes, strict=True):
        assert float(line.split(" : ")[1].removesuffix(" Hz")) == pytest.approx(mode.frequency)
    assert list(file.nodes) == [str(k + 1) for k in range(len(body.interfaces) + len(body.points))]
    nodes = list(file.nodes.values())
    for node, interface in zip(nodes, body.interfaces, strict=False):
        assert np.array_equal(node["origin"].m0[:, 0], interface.point)
        assert np.array_equal(np.vstack([node["phi"].m0, node["psi"].m0]), interface.motion)
    for node, point in zip(nodes[len(body.interfaces) :], body.points, strict=True):
        assert np.array_equal(node["origin"].m0[:, 0], point.position)
        assert np.array_equal(node["phi"].m0.T, point.modes) and not node["psi"].m0.any()
    assert np.array_equal(file["mdCM"].m0[:, 0], body.first_moments[0])
    for name, matrix in (("Me", body.mass), ("Ke", body.stiffness), ("De", body.damping)):
        assert np.array_equal(file[name].m0, matrix)
    assert not file["ksigma"].m0.any()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", KINDS)
def test_identities(tmp_path: Path, kind: str, dialect: str) -> None:
    """Identities of the data in any SID file (except for geometric stiffness in Oe.M1)."""
    file = written(tmp_path, kind, dialect)
    for node in file.nodes.values():
        assert np.array_equal(node["origin"].m1[:, :, 0], node["phi"].m0)
        turns = np.stack([skew(psi) for psi in node["psi"].m0.T], axis=1)
        assert np.array_equal(node["AP"].m1, turns) and np.array_equal(node["AP"].m0, np.eye(3))
    assert np.array_equal(file["mdCM"].m1[:, :, 0], file["Ct"].m0.T)
    J0, J1 = _tensors(file["J"])
    close = {"rtol": 0, "atol": 1e-13 * np.abs(J1).max()}
    Oe = file["Oe"]
    for a in range(3):
        assert np.allclose(Oe.m0[:, a], -J1[a, a] / 2, **close)
    for column, (a, b) in zip((3, 4, 5), ((0, 1), (1, 2), (0, 2)), strict=True):
        assert np.allclose(Oe.m0[:, column], -J1[a, b], **close)
    # Wallrapp's matrices C4 of the modes, (3, 3, nq), with Gr = −2 C4
    C4 = -file.by_mode("Gr", COLUMNS[dialect]).transpose(1, 2, 0) / 2
    assert np.allclose(J1, -(C4 + C4.transpose(1, 0, 2)), **close)
    Ge = file.by_mode("Ge", COLUMNS[dialect])
    Cr1 = file["Cr"].m1
    assert np.array_equal(Ge, 2 * Cr1.transpose(1, 0, 2)) and np.array_equal(
        Cr1, -Cr1.transpose(1, 0, 2)
    )
    cross = np.stack([C4[2, 1] - C4[1, 2], C4[0, 2] - C4[2, 0], C4[1, 0] - C4[0, 1]])
    assert np.allclose(file["Cr"].m0.T, cross, **close)
    assert np.linalg.eigvalsh(J0).min() > 0
    # In the sum over ωx², ωy² and ωz², the inertia terms of Oe.M1 are −2 ∫ρ ψ·ψ.
    trace = Oe.m1[:, :, :3].sum(axis=2)
    Me = file["Me"].m0
    cases = reduced(kind).stiffening
    stiffness = 0.0 if cases is None else cases.spin[:3].sum(axis=0)
    assert np.allclose(trace - stiffness, -2 * Me, rtol=0, atol=1e-12 * np.abs(trace).max())


def _tensors(J: Taylor) -> tuple[np.ndarray, np.ndarray]:
    """Return J and its derivative (3, 3, n) from either shape."""
    if J.m0.shape == (3, 3):
        return J.m0, J.m1.transpose(0, 2, 1)
    index = np.array([[0, 3, 4], [3, 1, 5], [4, 5, 2]])
    return J.m0[index, 0], J.m1[index, :, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_dialects_contain_the_same_data(tmp_path: Path, kind: str) -> None:
    file, *other_files = (written(tmp_path, kind, dialect) for dialect in DIALECTS)
    for other in other_files:
        for name in file.parts.keys() - {"J", "Gr", "Ge"}:
            assert np.array_equal(file[name].m0, other[name].m0)
            assert np.array_equal(file[name].m1, other[name].m1)
        for first, second in zip(_tensors(file["J"]), _tensors(other["J"]), strict=True):
            assert np.array_equal(first, second)
        for name in ("Gr", "Ge"):
            assert np.array_equal(file.by_mode(name, BY_AXIS), other.by_mode(name, BY_MODE))
    # The last written file has the dialect "fembeam", whose m1 has q as the third index.
    with pytest.raises(ValueError, match="lies outside"):
        read_sid(tmp_path / "body.SID_FEM", q_second=True)


@pytest.mark.parametrize("kind", KINDS)
def test_frequencies(tmp_path: Path, kind: str) -> None:
    body = reduced(kind)
    expected = _hz(body.stiffness, body.mass)
    # 1e3 ms in a second
    for units, per_second in (("m-kg-s", 1.0), ("mm-t-s", 1.0), ("mm-kg-ms", 1e3)):
        file = written(tmp_path, kind, units=units)
        assert file.mass == pytest.approx(UNITS[units].mass * body.total_mass)
        assert np.allclose(per_second * _hz(file["Ke"].m0, file["Me"].m0), expected, rtol=1e-9)


def _hz(K: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return the frequencies of K and M per unit of time of the matrices (Hz in SI units)."""
    return np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(M, K)).real)) / (2 * np.pi)


def second_order_moment(body: ReducedBody, state: State) -> np.ndarray:
    """Return the moment (N m) of inertia terms of second order in η, which the series omit."""
    eta, rate = state.q[7:], state.v[6:]
    omega, alpha = state.v[3:6], state.a[3:6]
    H = body.second_moments[1:, 1:]
    Q, Q_rate = (np.einsum("k,l,klab->ab", eta, e, H) for e in (eta, rate))
    J = np.trace(Q) * np.eye(3) - Q
    coriolis = np.trace(Q_rate) * np.eye(3) - Q_rate.T  # −∫ρ ũ ũ̇
    return J @ alpha + np.cross(omega, J @ omega) + 2 * coriolis @ omega


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_equations_of_motion(tmp_path: Path, kind: str, dialect: str, seed: int) -> None:
    """Rows equal those of the package, except for moments of second order in η."""
    body, file = reduced(kind), written(tmp_path, kind, dialect)
    state = random_state(body, seed)
    values = sid_rows(file, *state.arguments, columns=COLUMNS[dialect])
    expected = moment_rows_linear(body, state)
    left_out = second_order_moment(body, state)
    assert np.abs(left_out).max() > 1e-9 * np.abs(expected[3:6]).max()
    expected[3:6] -= left_out
    assert_same_rows(values, expected)


ENTRY = re.compile(r"(m[01])\(([\d ,]+)\)\s*=\s*(\S+)")


def entries(path: Path, name: str) -> dict[tuple[str, tuple[int, ...]], float]:
    """Return the entries of a part of a file by ``m0`` or ``m1`` and indices from 1."""
    text = path.read_text(encoding="ascii")
    block = re.search(rf"^ +{name}$(.*?)^ +end {name}$", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    return {
        (key, tuple(map(int, indices.split(",")))): float(value.replace("D", "e"))
        for key, indices, value in ENTRY.findall(block.group(1))
    }


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_gr_and_ge(tmp_path: Path, kind: str, dialect: str) -> None:
    """Identities of entries hold with the dialect's columns and fail with other columns.

    Gr_l + Gr_lᵀ = 2 J.M1_l, Ge = 2 Cr.M1, and Oe.M0 is −1/4 (diagonal) or −1/2 of Gr_l + Gr_lᵀ.
    """
    path = export(reduced(kind), tmp_path / "body", "sid", dialect=dialect).paths[0]
    Gr, Ge, J, Cr, Oe = (entries(path, name) for name in ("Gr", "Ge", "J", "Cr", "Oe"))
    nq, axes = reduced(kind).num_modes, (1, 2, 3)
    pairs = [(1, 1), (2, 2), (3, 3), (1, 2), (2, 3), (1, 3)]

    # entry (a, b) of J.M1 of mode q, from 1
    def inertia(q: int, a: int, b: int) -> float:
        if dialect == "fembeam":
            return J.get(("m1", (a, b, q)), 0.0)
        row = {(1, 1): 1, (2, 2): 2, (3, 3): 3, (1, 2): 4, (1, 3): 5, (2, 3): 6}
        return J.get(("m1", (row[min(a, b), max(a, b)], q, 1)), 0.0)

    # relative errors of the three identities if column(q, a) is that of mode q and axis a
    def errors(column) -> list[float]:
        modes = range(1, nq + 1)
        sums = {
            (q, a, b): Gr.get(("m0", (a, column(q, b))), 0.0)
            + Gr.get(("m0", (b, column(q, a))), 0.0)
            for q in modes for a in axes for b in axes
        }  # fmt: skip
        j_errors = [sums[q, a, b] - 2 * inertia(q, a, b) for q, a, b in sums]
        oe_errors = [
            Oe.get(("m0", (q, k)), 0.0) + sums[q, a, b] / (4 if a == b else 2)
            for q in modes for k, (a, b) in enumerate(pairs, 1)
        ]  # fmt: skip
        ge_errors = [
            Ge.get(("m0", (k, column(q, a))), 0.0)
            - 2 * Cr.get(("m1", (k, a, q) if dialect == "fembeam" else (k, q, a)), 0.0)
            for k in modes for q in modes for a in axes
        ]  # fmt: skip
        sizes = [max(map(abs, part.values())) for part in (Gr, Gr, Ge)]
        return [
            max(map(abs, rows)) / size
            for rows, size in zip((j_errors, oe_errors, ge_errors), sizes, strict=True)
        ]

    rules = {BY_AXIS: lambda q, a: (a - 1) * nq + q, BY_MODE: lambda q, a: 3 * (q - 1) + a}
    for columns, rule in rules.items():
        if columns == COLUMNS[dialect]:
            assert max(errors(rule)) < 1e-13
        else:
            assert min(errors(rule)) > 0.01


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
def test_geometric_stiffness_of_forces_and_moments(tmp_path: Path, kind: str) -> None:
    """phi.M1 and psi.M1 are the symmetric parts of the tangent, as in test_mbdyn.py."""
    body, file = reduced(kind), written(tmp_path, kind)
    for k in range(len(body.interfaces)):
        node = file.nodes[str(k + 1)]
        m1 = np.concatenate([node["phi"].m1, node["psi"].m1])
        for i in range(6):
            stiffness = load_stiffness(body, k, i)
            assert np.allclose(stiffness, -m1[i], rtol=0, atol=1e-10 * np.abs(m1[i]).max())


def test_units(tmp_path: Path) -> None:
    """Rows in other units are those in SI units times the units of force or of moment."""
    body = reduced("rigid")
    units = Units("mm-g-ms", length=1e3, mass=1e3, time=1e3, force_name="mN")
    si_file, other_file = written(tmp_path, "rigid"), written(tmp_path, "rigid", units=units)
    state = random_state(body, 4)
    scaled_state = in_units(state, units)
    expected = units.moment * sid_rows(si_file, *state.arguments)
    expected[:3] *= units.force / units.moment
    assert_same_rows(sid_rows(other_file, *scaled_state.arguments), expected)


def test_requirements_of_other_readers(tmp_path: Path) -> None:
    """The file has the layout that EMBSlib, FEMBS and PyMbs read.

    EMBSlib needs two integers at the start, lines below 512 characters, exponents with D, and
    mantissas below 20 characters.
    """
    path = export(
        reduced("rigid"), tmp_path / "body", "sid", units="mm-kg-ms", overwrite=True
    ).paths[0]
    lines = path.read_text(encoding="ascii").splitlines()
    # numbers of nodes (two interfaces and a point) and of modes
    assert lines[0].split()[:2] == ["3", str(reduced("rigid").num_modes)] and lines[1] == "part"
    for words in ("dialect simpack", "m1(row,q,col)", "xx yy zz xy xz yz", BY_AXIS, "mm-kg-ms"):
        assert words in lines[0]
    assert max(map(len, lines)) < 512
    # the form of FEMBS; PyMbs needs the name
    assert re.fullmatch(r" +new modal +=  ?\w+", lines[2])
    modes = [line for line in lines if "ielastq" in line]
    for k, line in enumerate(modes, 1):
        match = re.fullmatch(r" +ielastq \( *(\d+)\) +=( Eigen Mode +(\d+) ): +\d+\.\d+ Hz", line)
        assert match is not None and match.group(1, 3) == (str(k), str(k))
        assert len(match.group(2)) < 20  # EMBSlib's buffer
    entries = [line for line in lines[1:] if re.search(r"\bm[01]\(", line)]
    assert len(entries) > 100
    for line in entries:
        assert re.fullmatch(r" *m[01]\([ \d,]+\) *= (-?\d\.\d{16})D[+-]\d+", line)
        assert len(line.split("= ")[1].split("D")[0]) < 20


def test_surface_on_request(tmp_path: Path) -> None:
    body, file = reduced("rigid"), written(tmp_path, "rigid", skin=True)
    assert body.skin is not None
    count = len(body.interfaces) + len(body.points)
    assert len(file.nodes) == count + len(body.skin.points)
    for k, node in enumerate(list(file.nodes.values())[count:]):
        assert np.array_equal(node["origin"].m0[:, 0], body.skin.points[k])
        assert np.array_equal(node["phi"].m0.T, body.skin.modes[:, k])
    with pytest.raises(InputError) as error:
        export(body.replace(skin=None), tmp_path / "no_skin", "sid", skin=True)
    assert error.value.argument == "skin"


def test_report(tmp_path: Path) -> None:
    report = export(reduced("rigid"), tmp_path / "body", "sid")
    assert report.paths == (tmp_path / "body.SID_FEM",)
    text = str(report)
    for words in ("first order", "without the axes", "effect of geometric stiffness", "1 'left'"):
        assert words in text
    with pytest.raises(InputError) as error:
        export(reduced("rigid"), tmp_path / "other", "sid", dialect="simpak")
    assert (error.value.argument, error.value.value) == ("dialect", "simpak")
    assert not (tmp_path / "other.SID_FEM").exists()
