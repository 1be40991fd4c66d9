"""Bearings with tables of ROSS: derivatives, files that ROSS 2.3 wrote, the motion of a rotor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import FileError, InputError
from tests.mechanism.test_force_elements import A, B, differences, moved, random_pair

FILES = Path(__file__).parent / "ross"
SPEED = np.array([50.0, 150.0, 300.0, 500.0])
STIFFNESS_AT_150 = [[9e6, 1.8e6, 0.0], [-2e6, 7e6, 0.0], [0.0, 0.0, 0.0]]
DAMPING_AT_150 = [[2e4, 200.0, 0.0], [200.0, 1.7e4, 0.0], [0.0, 0.0, 0.0]]


def random_table() -> mbd.mechanism.BearingTable:
    """Return a table of random coefficients at four speeds."""
    rng = np.random.default_rng(2)
    return mbd.mechanism.BearingTable([-9.0, -2.0, 1.0, 9.0], *rng.normal(size=(2, 4, 3, 3)))


@pytest.mark.parametrize("outside", ["error", "nearest"])
def test_derivatives_and_balance(outside: str) -> None:
    rng = np.random.default_rng(1)
    bearing = mbd.mechanism.TabulatedBearing("film", A, B, random_table(), outside).placed(
        random_pair(rng)
    )
    for k in range(4):
        pair = random_pair(rng)
        if outside == "nearest" and k % 2:  # beyond the table, where the slope is zero
            pair = pair._replace(u2=pair.u2 + 20.0 * np.r_[0, 0, 0, pair.Q1[:, 2]])
        D, E = bearing.derivatives(pair)
        by_pose = differences(lambda d, pair=pair: bearing.wrenches(moved(pair, d)), 12)
        by_speed = differences(
            lambda d, pair=pair: bearing.wrenches(
                pair._replace(u1=pair.u1 + d[:6], u2=pair.u2 + d[6:])
            ),
            12,
        )
        assert np.allclose(D, by_pose, atol=1e-8 * np.abs(D).max())
        assert np.allclose(E, by_speed, atol=1e-8 * np.abs(E).max())
        wrench = bearing.wrenches(pair)
        assert np.allclose(wrench[:3], -wrench[6:9], atol=1e-13)
        moments = wrench[3:6] + wrench[9:] + np.cross(pair.p1, wrench[:3])
        assert np.allclose(moments + np.cross(pair.p2, wrench[6:9]), 0, atol=1e-12)


@pytest.mark.parametrize("name", ["bearings.toml", "bearings.json", "table.csv"])
def test_files_that_ross_wrote(name: str) -> None:
    tag = None if name == "table.csv" else "drive end"
    table = mbd.mechanism.BearingTable.read(FILES / name, name=tag)
    assert np.array_equal(table.speed, SPEED)
    (K, C), (dK, _) = table.matrices(150.0)
    assert np.array_equal(K, STIFFNESS_AT_150) and np.array_equal(C, DAMPING_AT_150)
    assert dK[0, 0] > 0
    if tag:
        far = mbd.mechanism.BearingTable.read(FILES / name, name="far end")
        assert np.array_equal(far.matrices(1e4)[0][0], np.diag([2e7, 2e7, 0.0]))
        with pytest.raises(FileError, match=r"name=\.\.\..*'drive end', 'far end'"):
            mbd.mechanism.BearingTable.read(FILES / name)


def test_units_and_defaults_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("speed [RPM],kxx [N/m],cxx\n0,1e6,10\n3000,2e6,20\n")
    table = mbd.mechanism.BearingTable.read(path)
    assert table.range == (0.0, pytest.approx(100 * np.pi))
    K, C = table.matrices(50 * np.pi)[0]
    assert np.allclose(K, np.diag([1.5e6, 1.5e6, 0.0])) and np.allclose(C, np.diag([15, 15, 0]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "speed,kxx,cxx\n0,1,1\n0,2,2\n",
        "speed [Hz],kxx,cxx\n0,1,1\n",
        "speed,kxx [lbf/in],cxx\n0,1,1\n",
        "speed,kxx\n0,1\n",
        "speed,kxx,cxx\n0,1\n",
        "speed,kxx,cxx,mxx\n0,1,1,0.5\n",
        "speed,kxx,cxx\n0,1,nan\n",
    ],
)
def test_damaged_tables(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(FileError, match="as ROSS writes them"):
        mbd.mechanism.BearingTable.read(path)


def test_damaged_elements(tmp_path: Path) -> None:
    path = tmp_path / "bearings.json"
    data = json.loads((FILES / "bearings.json").read_text())
    data["BearingElement_drive end"]["cxx"].pop()
    path.write_text(json.dumps(data))
    for name in ("drive end", "other"):
        with pytest.raises(FileError):
            mbd.mechanism.BearingTable.read(path, name=name)
    path.write_text(json.dumps(data)[:-20])
    with pytest.raises(FileError):
        mbd.mechanism.BearingTable.read(path, name="far end")
    with pytest.raises(InputError):
        mbd.mechanism.BearingTable.read(tmp_path / "bearings.xls")


MASS = 40.0


def rotor(speed: float, **options: Any) -> mbd.System:
    """Return a freely spinning disc of 40 kg on a bearing, 10 µm beside its neutral position."""
    ground, start = mbd.Ground({"o": mbd.Frame()}), np.array([1e-5, 0.0, 0.0])
    disc = mbd.RigidBody(
        "disc", MASS, [1.0] * 3, frames={"o": mbd.Frame()}, position=start, omega=(0, 0, speed)
    )
    ends = ground.frame("o"), disc.frame("o")
    table = mbd.mechanism.BearingTable.read(FILES / "table.csv")
    film = mbd.mechanism.TabulatedBearing("film", *ends, table, neutral=np.zeros(3), **options)
    return mbd.System([ground, disc], [mbd.mechanism.planar("plane", *ends)], loads=[film])


@pytest.mark.parametrize("speed", [150.0, 300.0, 600.0])
def test_a_rotor_moves_as_its_coefficients_say(speed: float) -> None:
    """The motion is the exact solution of M ẍ + C ẋ + K x = 0.

    Beyond the table, C and K are those of the nearest speed.
    """
    system = rotor(speed, outside="nearest")
    run = mbd.simulate(system, t_end=0.02, dt=2e-5)
    K, C = mbd.mechanism.BearingTable.read(FILES / "table.csv").matrices(speed)[0][:, :2, :2]
    matrix = np.block([[np.zeros((2, 2)), np.eye(2)], [-K / MASS, -C / MASS]])
    exact = np.array([scipy.linalg.expm(matrix * t)[:2, 0] * 1e-5 for t in run.time])
    film = run.element("film")
    assert np.abs(film.displacement[:, :2] - exact).max() < 1e-4 * 1e-5
    assert np.allclose(film.rotation_rate, speed, rtol=1e-12)
    force = -(film.displacement[:, :2] @ K.T + film.displacement_rate[:, :2] @ C.T)
    assert np.allclose(film.force[:, :2], force, atol=1e-9 * np.abs(force).max())


def test_speeds_outside_the_table() -> None:
    with pytest.raises(InputError, match=r"'film' rotates at 600 rad/s.*50 to 500"):
        mbd.simulate(rotor(600.0), t_end=1e-3, dt=1e-4)
    with pytest.raises(InputError, match="other direction"):
        mbd.simulate(rotor(-100.0), t_end=1e-3, dt=1e-4)
    run = mbd.simulate(rotor(10.0), t_end=1e-3, dt=1e-4)  # between standstill and the table
    assert run.element("film").force[-1, 0] != 0
    assert "bearing" in str(rotor(100.0))
