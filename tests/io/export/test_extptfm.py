"""Superelements for OpenFAST, read by the rules of its reader; statics and modes of the tower."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scipy.linalg

import dolfinx_mbd as mbd
from dolfinx_mbd.body import LoadPattern, ReducedBody
from dolfinx_mbd.body.response.linearized import interface_map
from dolfinx_mbd.errors import FileError, InputError
from dolfinx_mbd.io.cli import main
from dolfinx_mbd.io.export import export
from dolfinx_mbd.io.export.superelement import superelement
from tests.io.export.rods import NUM_MODES, relative, rod

TOP, BASE = "left", "right é"


class Superelement(NamedTuple):
    """Matrices of a file, and the forces on its coordinates (times, n) over time."""

    mass: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    time: np.ndarray
    forces: np.ndarray


def read(path: Path) -> Superelement:
    """Read a file as OpenFAST does: keywords at the start of a line, numbers at fixed columns."""
    lines = iter(path.read_text().splitlines())
    count, step, end, matrices = -1, -1.0, -1.0, {}
    for line in lines:
        upper = line.upper()
        if upper.startswith("!DIMENSION"):
            count = int(line[11:].split()[0])
        elif upper.startswith("!TIME INCREMENT IN SIMULATION:"):
            step = float(line[30:].split()[0])
        elif upper.startswith("!TOTAL SIMULATION TIME IN FILE:"):
            end = float(line[31:].split()[0])
        elif upper.startswith(("!MASS MATRIX", "!STIFFNESS MATRIX", "!DAMPING MATRIX")):
            next(lines)
            rows = [np.array(next(lines).split()[:count], float) for _ in range(count)]
            matrices[upper[1:].split()[0]] = np.array(rows)
        elif upper.startswith("!LOADING"):
            next(lines)
            rows = [next(lines) for _ in range(round(end / step) + 1)]
            assert max(map(len, rows)) <= 4096
            table = np.array([row.split()[: count + 1] for row in rows], float)
    ordered = (matrices[name] for name in ("MASS", "STIFFNESS", "DAMPING"))
    return Superelement(*ordered, table[:, 0], table[:, 1:])


def read_strictly(path: Path) -> Superelement:
    """Read a file by the rules of NREL's openfast_toolbox, with fixed lines and columns."""
    lines = path.read_text().splitlines()
    assert lines[0][0] == lines[1][0] == "!" and "flex" in lines[1].lower()
    assert lines[2].lower().startswith("!dimension")
    numbers, tables, k = {}, {}, 2
    while k < len(lines):
        line = lines[k].lower()
        for key in ("!dimension", "!time increment", "!total simulation time"):
            if line.startswith(key):
                numbers[key] = float(line.split(":")[1])
        count = int(numbers["!dimension"])
        rows, columns = 0, count
        if line.startswith(("!mass", "!stiffness", "!damping")):
            rows = int(lines[k + 1].split(":")[1])
            assert rows == count
        elif line.startswith("!loading"):
            steps = numbers["!total simulation time"] / numbers["!time increment"]
            rows, columns = int(steps) + 1, count + 1  # openfast_toolbox truncates `steps`
        elif line.strip() and line[0] != "!":
            raise ValueError(f"unexpected line {k}")
        if rows:
            table = [np.array(row.split(), float) for row in lines[k + 2 : k + 2 + rows]]
            assert all(len(row) == columns for row in table)
            tables[line[1:].split()[0]] = np.array(table)
            k += 1 + rows
        k += 1
    loading = tables["loading"]
    return Superelement(
        *(tables[key] for key in ("mass", "stiffness", "damping")), loading[:, 0], loading[:, 1:]
    )


def written(body: ReducedBody, folder: Path, **options: object) -> Superelement:
    """Return the data of an exported file."""
    report = export(body, folder / "tower", "extptfm", overwrite=True, **options)
    assert report.paths[0].name == "tower.dat"
    return both(report.paths[0])


def both(path: Path) -> Superelement:
    """Return the data of a file, which are the same by both readers."""
    data, strict_data = read(path), read_strictly(path)
    assert all(np.array_equal(a, b) for a, b in zip(data, strict_data, strict=True))
    return data


def test_the_modes_of_the_held_structure(tmp_path: Path) -> None:
    """The modes are those of the held body; the matrices are those of the superelement."""
    body = rod()
    tower = written(body, tmp_path, interface=TOP)
    assert tower.mass.shape == (6 + NUM_MODES,) * 2
    squares = scipy.linalg.eigh(tower.stiffness, tower.mass, eigvals_only=True)
    held = mbd.body.linearize_body(body, held=[BASE])
    expected = scipy.linalg.eigh(held.stiffness, held.mass, eigvals_only=True)
    assert relative(np.sqrt(squares), np.sqrt(expected)) < 1e-9
    whole = superelement(body, [TOP, BASE])
    columns = np.r_[0:6, 12 : 12 + NUM_MODES]  # the top and the modes, with a fixed base
    for name in ("mass", "stiffness", "damping"):
        assert np.array_equal(getattr(tower, name), getattr(whole, name)[np.ix_(columns, columns)])
    assert np.array_equal(written(body, tmp_path).stiffness, tower.stiffness)
    assert not np.allclose(tower.stiffness, written(body, tmp_path, interface=BASE).stiffness)


def test_gravity(tmp_path: Path) -> None:
    """The load of a rigid motion is the weight; the sag is that of the linearized body."""
    body, g = rod(), np.array([0.3, -2.0, -9.0])
    free = written(body, tmp_path, interface=TOP, held=[], gravity=g)
    np.testing.assert_allclose(free.forces[0, :3], body.total_mass * g, rtol=1e-10)
    arm = body.centre - body.interface(TOP).point
    np.testing.assert_allclose(
        free.forces[0, 3:6], np.cross(arm, body.total_mass * g), rtol=1e-9, atol=1e-12
    )
    assert np.array_equal(free.forces[0], free.forces[-1]) and free.time.tolist() == [0.0, 1.0]
    tower = written(body, tmp_path, interface=TOP, gravity=g)
    sag = np.linalg.solve(tower.stiffness, tower.forces[0])[:6]
    held = mbd.body.linearize_body(body, held=[BASE])
    # generalized weight: force, moment about the origin, elastic coordinates
    moment = np.cross(body.first_moments[0], g)
    weight = np.concatenate([body.total_mass * g, moment, body.first_moments[1:] @ g])
    motion = held.basis @ np.linalg.solve(held.stiffness, held.basis.T @ weight)
    assert relative(sag, interface_map(body, TOP) @ motion) < 1e-8


def loaded() -> ReducedBody:
    """Return the rod with two load patterns, whose numbers are random."""
    rng, n = np.random.default_rng(3), rod().num_modes
    loads = tuple(
        LoadPattern(
            name, rng.normal(size=3), rng.normal(size=3), rng.normal(size=n), np.zeros((n, 3))
        )
        for name in ("wave", "wind")
    )
    return rod().replace(loads=loads)


@pytest.mark.parametrize(
    ("step", "count"), [(0.5, 5), (0.1, 4), (0.01, 30), (1 / 3, 50), (0.07, 100), (1e-3, 2)]
)
def test_loads_over_time(tmp_path: Path, step: float, count: int) -> None:
    """The loads are transformed to the coordinates of the superelement by their work."""
    body = loaded()
    k = np.arange(count)
    table = np.column_stack([step * k, np.sin(k), k**2])
    path = tmp_path / "loads.csv"
    np.savetxt(path, table, delimiter=",", header="time,wind,wave", comments="")
    file = str(body.save(tmp_path / "body.npz"))
    output = tmp_path / "tower.dat"
    options = [f"interface={TOP}", "gravity=(0, 0, 0)", f"loads={path}"]
    command = ["export", file, "--to", "extptfm", "-o", str(output)]
    assert main([*command, *(word for option in options for word in ("--option", option))]) == 0
    tower = both(output)
    assert np.array_equal(tower.time, table[:, 0])
    T = superelement(body, [TOP, BASE]).transform[:, np.r_[0:6, 12 : 12 + NUM_MODES]]
    works = {p.name: np.concatenate([p.force, p.moment, p.modes]) for p in body.loads}
    expected = (np.outer(table[:, 1], works["wind"]) + np.outer(table[:, 2], works["wave"])) @ T
    np.testing.assert_allclose(tower.forces, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "header"),
        ("time,tide\n0,1\n1,1\n", "wave, wind"),
        ("time,wave,wave\n0,1,1\n1,1,1\n", "header"),
        ("time,wave\n0,1\n", "two rows"),
        ("time,wave\n0,1\n1,x\n", "not a table"),
        ("time,wave\n0,1\n1,1\n3,1\n", "equal steps"),
        ("time,wave\n1,1\n2,1\n", "start at 0"),
    ],
)
def test_wrong_loads(tmp_path: Path, text: str, match: str) -> None:
    path = tmp_path / "loads.csv"
    path.write_text(text)
    with pytest.raises(FileError, match=match):
        export(loaded(), tmp_path / "tower", "extptfm", interface=TOP, loads=path)


def test_wrong_options(tmp_path: Path) -> None:
    for options in (
        {"interface": "middle"},
        {"interface": TOP, "held": [TOP]},
        {"interface": TOP, "gravity": (0, 0)},
        {"interface": TOP, "units": "mm-t-s"},
    ):
        with pytest.raises(InputError):
            export(rod(), tmp_path / "tower", "extptfm", **options)
