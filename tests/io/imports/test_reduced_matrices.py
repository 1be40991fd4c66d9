"""Import of reduced K and M: exact parts of the body, reported approximations, bad input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dolfinx_mbd.errors import InputError, MissingFileError
from dolfinx_mbd.io.export import export
from dolfinx_mbd.io.export.superelement import superelement
from dolfinx_mbd.io.imports import (
    FirstOrderInertiaWarning,
    FullMatrices,
    MatrixError,
    MatrixFileError,
    ReducedMatrices,
    body_from_reduced,
    read_dmig,
    read_op4,
)
from tests.io.imports.bars import ENDS, NUM_MODES, piston, reference, relative
from tests.models.bodies import dynamic_stiffness

pytest.importorskip("pyNastran")

UNITS = {"m-kg-s": {}, "mm-t-s": {"length": 1e-3, "mass": 1e3}}


def imported(matrices: Any) -> Any:
    """Return the body of reduced matrices, which have a warning about their inertia."""
    with pytest.warns(
        FirstOrderInertiaWarning, match="Coriolis coupling.*Use it well below .* rpm"
    ):
        return body_from_reduced(matrices)


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("format, digits", [("op4", 1e-9), ("dmig", 1e-7)])
def test_exported_matrices_are_imported(
    tmp_path: Path, format: str, digits: float, units: str
) -> None:
    """A file that pyNastran reads preserves linear dynamics and rigid mass properties.

    `digits` is the relative tolerance.
    """
    source = reference().replace(damping=1e-6 * reference().stiffness)
    path = export(source, tmp_path / "bar", format, units=units).paths[0]
    read = (read_op4 if format == "op4" else read_dmig)(path)
    assert isinstance(read, ReducedMatrices)
    body = imported(read.in_si(**UNITS[units]))
    assert body.num_modes == source.num_modes
    assert relative(body.frequencies, source.frequencies) < digits
    assert body.total_mass == pytest.approx(source.total_mass, rel=digits)
    assert relative(body.centre, source.centre) < digits
    assert relative(body.inertia, source.inertia) < digits
    assert relative(body.damping, 1e-6 * body.stiffness) < 10 * digits
    omega = 2 * np.pi * 0.9 * source.frequencies[0]
    assert relative(dynamic_stiffness(body, omega), dynamic_stiffness(source, omega)) < digits
    assert not body.second_moments[0, 1:].any() and not body.first_moments[1:].any()
    assert "unknown" in body.provenance["inertia"] and body.stiffening is None


def test_modal_coordinates_of_any_kind() -> None:
    """Modes that move with the interfaces contain the rigid motion; the body is the same."""
    element = superelement(reference())
    n, random = len(element.stiffness), np.random.default_rng(2)
    change = np.eye(n)
    change[12:] += 0.3 * random.standard_normal((NUM_MODES, n)) * np.abs(element.mass[12:]).max()
    pair = [change.T @ A @ change for A in (element.stiffness, element.mass)]
    body = imported(ReducedMatrices(pair[0], pair[1], element.points, ENDS))
    assert [i.name for i in body.interfaces] == list(ENDS)
    assert relative(body.frequencies, reference().frequencies) < 1e-7
    assert relative(body.inertia, reference().inertia) < 1e-9


def test_error_of_reduced_matrices_in_a_slider_crank() -> None:
    """At 150 rad/s, 7 % of the first frequency, the elastic motion changes by less than 2 %."""
    body, element = reference(), superelement(reference())
    pair = ReducedMatrices(element.stiffness, element.mass, element.points, ENDS)
    rigid, expected = piston(body.rigid()), piston(body)
    assert np.abs(expected - rigid).max() > 1e-6
    error = relative(piston(imported(pair)) - rigid, expected - rigid)
    assert 1e-4 < error < 0.02


def good() -> dict[str, Any]:
    """Return the arguments of valid matrices."""
    element = superelement(reference())
    return {
        "stiffness": element.stiffness, "mass": element.mass, "points": element.points,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change", "argument", "reason"),
    [
        ("points", lambda x: x[:, :2], "points", "positions"),
        ("points", lambda x: x * np.nan, "points", "finite"),
        ("points", lambda x: np.vstack([x, x]), "stiffness", "at least 6 .* for each of 4"),
        ("points", lambda x: 1e3 * x, "stiffness", "resists rigid motion"),
        ("points", lambda x: x[::-1], "stiffness", "resists rigid motion"),
        ("stiffness", lambda K: K[:, :-1], "stiffness", "its shape is"),
        ("stiffness", lambda K: np.tril(K), "stiffness", "from its transpose"),
        ("stiffness", lambda K: K + 1e-3 * np.diag(np.diag(K)), "stiffness", "rigid motion"),
        (
            "stiffness",
            lambda K: K - 2 * np.diag([0] * (len(K) - 1) + [K[-1, -1]]),
            "stiffness",
            "definite",
        ),
        ("mass", lambda M: M[:-1, :-1], "mass", "its shape is"),
        ("mass", lambda M: -M, "mass", "positive definite"),
        ("mass", lambda M: M + np.diag([1.0] + [0.0] * (len(M) - 1)), "mass", "of a rigid body"),
        ("names", lambda _: ["one"], "names", "2 interfaces"),
        ("axes", lambda _: np.eye(3), "axes", "shape"),
    ],
)
def test_bad_matrices(name: str, change: Callable[[Any], Any], argument: str, reason: str) -> None:
    values = good()
    with pytest.raises(InputError, match=reason) as error:
        body_from_reduced(ReducedMatrices(**values | {name: change(values.get(name))}))
    assert error.value.argument == argument


def test_interfaces_without_stiffness_are_errors() -> None:
    """Without stiffness between them, the interfaces can move freely."""
    values = good()
    K = np.zeros_like(values["stiffness"])
    K[12:, 12:] = values["stiffness"][12:, 12:]
    with pytest.raises(MatrixError, match="without stiffness") as error:
        body_from_reduced(ReducedMatrices(K, values["mass"], values["points"]))
    assert error.value.argument == "stiffness"


def test_op4_without_a_line(tmp_path: Path) -> None:
    """Each missing line raises an error; pyNastran would read missing values as zeros."""
    op4 = export(reference(), tmp_path / "bar", "op4").paths[0]
    lines = op4.read_text().splitlines()
    for k in range(len(lines)):
        op4.write_text("\n".join(lines[:k] + lines[k + 1 :]) + "\n")
        with pytest.raises(MatrixFileError) as error:
            read_op4(op4)
        assert error.value.path == str(op4)


def test_bad_files(tmp_path: Path) -> None:
    op4 = export(reference(), tmp_path / "bar", "op4").paths[0]
    pch = export(reference(), tmp_path / "bar", "dmig").paths[0]
    for read in (read_op4, read_dmig):
        with pytest.raises(MissingFileError, match="nothing"):
            read(tmp_path / "nothing")  # type: ignore[operator]
    with pytest.raises(MatrixFileError, match="'KAAX', 'MAAX', 'XYZ'"):
        read_op4(op4, stiffness="KGG")
    with pytest.raises(MatrixFileError, match="'KAAX', 'MAAX'"):
        read_dmig(pch, stiffness="KGG")
    with pytest.raises(MatrixError, match="3 for each of") as exc_info:
        read_op4(op4, nodes=np.zeros((4, 3)))  # matrices with 12 rows are expected
    assert exc_info.value.argument == "stiffness"
    text = op4.read_text().split("\n")
    xyz = next(k for k, line in enumerate(text) if "XYZ" in line)
    (tmp_path / "matrices.op4").write_text("\n".join(text[:xyz]) + "\n")
    with pytest.raises(MatrixFileError) as error:
        read_op4(tmp_path / "matrices.op4")
    assert error.value.path == str(tmp_path / "matrices.op4")
    for size in (30, 1000, 5000):
        (tmp_path / "part.op4").write_text(op4.read_text()[:size])
        with pytest.raises(MatrixError):
            read_op4(tmp_path / "part.op4")
        (tmp_path / "part.pch").write_text(pch.read_text()[:size])
        with pytest.raises(MatrixError):
            read_dmig(tmp_path / "part.pch")


def test_coordinate_systems_of_grids(tmp_path: Path) -> None:
    """Positions may be in local systems; axes of displacements must be rectangular."""
    path = export(reference(), tmp_path / "bar", "dmig").paths[0]
    lines = path.read_text().split("\n")
    system = ["CORD2R  5               0.0     0.0     0.0     1.0     0.0     0.0",
              "        0.0     1.0     0.0"]  # fmt: skip
    first_line = next(k for k, line in enumerate(lines) if line.startswith("GRID*"))
    changed = list(lines)
    # second line of GRID*: the third field is CD, the system of displacements
    changed[first_line + 1] = changed[first_line + 1][:24] + f"{5:16}"
    (tmp_path / "turned.pch").write_text("\n".join(changed + system) + "\n")
    turn = np.kron(np.eye(2), [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    # (from components in system 5, of force and moment, to those in the basic system)
    for name in ("stiffness", "mass"):
        local, basic = (getattr(read_dmig(p), name) for p in (path, tmp_path / "turned.pch"))
        assert relative(basic[:6, :6], turn @ local[:6, :6] @ turn.T) < 1e-12
        assert relative(basic[6:, :6], local[6:, :6] @ turn.T) < 1e-12
        assert np.array_equal(basic[6:, 6:], local[6:, 6:])
    text = (tmp_path / "turned.pch").read_text()
    (tmp_path / "turned.pch").write_text(text.replace("CORD2R", "CORD2C"))
    with pytest.raises(MatrixError, match="which is not rectangular"):
        read_dmig(tmp_path / "turned.pch")
    axes = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])  # z along x, x along y
    from dolfinx_mbd.io.export.matrix_formats import field

    for k, point in enumerate(superelement(reference()).points):
        x, y, z = (field(v, "E") for v in axes @ point)
        place = [n for n, line in enumerate(lines) if line.startswith("GRID*")][k]
        lines[place] = f"{lines[place][:24]}{5:16}{x}{y}"
        lines[place + 1] = f"{'*':<8}{z}"
    (tmp_path / "placed.pch").write_text("\n".join(lines + system) + "\n")
    read = read_dmig(tmp_path / "placed.pch")
    assert isinstance(read, ReducedMatrices) and not isinstance(read, FullMatrices)
    assert relative(read.points, superelement(reference()).points) < 1e-9
