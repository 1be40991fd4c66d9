"""Tables of gas pressure: interpolation, period, files, and tables that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.errors import AccuracyWarning, FileError, InputError, UnitsWarning
from dolfinx_mbd.mechanism import JointLoad
from dolfinx_mbd.mechanism.mechanisms import FourStrokePressure, PressureTable, inline_engine
from tests.models.beams import slender_rod

DEGREES = np.arange(0.0, 720.1, 2.0)


def bar(degrees: Any) -> np.ndarray:
    """Return a periodic pressure (bar) over the crank angle (°)."""
    return 3.0 + np.cos(np.radians(degrees) / 2) + 0.5 * np.sin(np.radians(degrees))


def test_a_smooth_periodic_curve() -> None:
    table = PressureTable(np.radians(DEGREES), 1e5 * bar(DEGREES))
    between = np.linspace(-1500.0, 1500.0, 1001)
    np.testing.assert_allclose(table(np.radians(between)), 1e5 * bar(between), rtol=1e-6)
    one_by_one = [table.at(angle) for angle in np.radians(between).tolist()]
    np.testing.assert_allclose(one_by_one, table(np.radians(between)), rtol=1e-12)
    h, ends = 1e-4, np.array([0.0, 4 * np.pi])
    slopes = (table(ends + h) - table(ends - h)) / (2 * h)
    np.testing.assert_allclose(slopes, 0.5e5, rtol=1e-6)


def test_derivatives_of_gas_forces() -> None:
    """Derivatives of a table are exact, those of a function are differences."""
    table = PressureTable(np.radians(DEGREES), 1e5 * bar(DEGREES))
    h = 1e-4
    for pressure in (table, lambda angle: 1e5 * bar(np.degrees(angle))):
        engine = inline_engine(slender_rod(), speed=300.0, pressure=pressure)
        for load in engine.loads:
            assert isinstance(load, JointLoad)
            for angle in np.linspace(-7.0, 20.0, 21).tolist():
                low, high = (load.magnitude(0.0, angle + s * h, 300.0) for s in (-1, 1))
                by_angle, by_rate = load.derivatives(0.0, angle, 300.0)
                assert by_angle == pytest.approx((high - low) / (2 * h), abs=1e-3)
                assert by_rate == 0.0


def test_derivatives_of_a_joint_load_that_are_not_finite() -> None:
    class Force:
        def __call__(self, t: float, s: float, rate: float) -> float:
            return 2.0 * s

        def derivatives(self, t: float, s: float, rate: float) -> tuple[float, float]:
            return 2.0, rate

    load = JointLoad("push", "slide", "displacement", Force())
    assert load.derivatives(0.0, 1.0, 0.5) == (2.0, 0.5)
    with pytest.raises(InputError, match=r"load 'push': value\.derivatives"):
        load.derivatives(0.0, 1.0, np.nan)


def test_the_end_of_the_period_may_be_absent() -> None:
    whole = PressureTable(np.radians(DEGREES), 1e5 * bar(DEGREES))
    open_end = PressureTable(np.radians(DEGREES[:-1]), 1e5 * bar(DEGREES[:-1]))
    shifted = PressureTable(np.radians(DEGREES - 360), 1e5 * bar(DEGREES - 360))
    angle = np.linspace(-7.0, 20.0, 101)
    np.testing.assert_allclose(open_end(angle), whole(angle), rtol=1e-12)
    np.testing.assert_allclose(shifted(angle), whole(angle), rtol=1e-7)


@pytest.mark.parametrize("unit", ["Pa", "kPa", "bar", "MPa"])
def test_files(tmp_path: Path, unit: Any) -> None:
    size = {"Pa": 1.0, "kPa": 1e3, "bar": 1e5, "MPa": 1e6}[unit]
    lines = [f"{x},{1e5 * y / size},0.1" for x, y in zip(DEGREES, bar(DEGREES), strict=True)]
    path = tmp_path / "gas.csv"
    path.write_text("\ufeffmeasured in spring\nangle,pressure,valve\n" + "\n".join(lines) + "\n\n")
    table = PressureTable.read(path, pressure_unit=unit)
    assert table.at(1.0) == pytest.approx(1e5 * float(bar(np.degrees(1.0))), rel=1e-6)


@pytest.mark.parametrize(
    ("text", "line"), [("", 0), ("angle,bar\n", 1), ("0,1\n2,3\nstop\n4,5", 3), ("0;1\n2;3", 2)]
)
def test_files_without_a_table(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "gas.csv"
    path.write_text(text)
    with pytest.raises(FileError, match=f"line {line}$") as error:
        PressureTable.read(path)
    assert error.value.path == str(path)


@pytest.mark.parametrize(
    ("degrees", "pressure", "argument"),
    [
        (DEGREES[::-1], bar(DEGREES), "angle"),
        (DEGREES[:300], bar(DEGREES[:300]), "angle"),
        (2 * DEGREES, bar(DEGREES), "angle"),
        (DEGREES, bar(DEGREES) - 5.0, "pressure"),
        (DEGREES, bar(DEGREES) + DEGREES / 720, "pressure"),
        (DEGREES, bar(DEGREES)[:-1], "pressure"),
    ],
    ids=["decreasing", "gap", "two periods", "negative", "open", "length"],
)
def test_tables_that_are_refused(degrees: Any, pressure: Any, argument: str) -> None:
    with pytest.raises(InputError) as error:
        PressureTable(np.radians(degrees), 1e5 * np.asarray(pressure))
    assert error.value.argument == argument


@pytest.mark.parametrize("kind", ["noise", "coarse"])
def test_a_table_without_a_smooth_curve_gives_a_warning(kind: str) -> None:
    degrees, pressure = DEGREES, 5.0 * bar(DEGREES)
    if kind == "noise":
        pressure = pressure + np.where(np.arange(len(degrees)) % 2, 1.0, -1.0) * (degrees % 720 > 0)
    else:
        degrees = np.arange(0.0, 721.0, 30.0)
        pressure = 20.0 + 50.0 * np.exp(-(((degrees - 360.0) / 15.0) ** 2))
    with pytest.warns(AccuracyWarning) as warnings:
        PressureTable(np.radians(degrees), 1e5 * pressure)
    assert warnings[0].message.quantity == "roughness"


@pytest.mark.parametrize("factor", [1.0, 1e10], ids=["bar as Pa", "Pa as bar"])
def test_a_wrong_unit_gives_a_warning(factor: float) -> None:
    with pytest.warns(UnitsWarning, match="pressure_unit") as warnings:
        PressureTable(np.radians(DEGREES), factor * bar(DEGREES))
    assert warnings[0].message.quantity == "gas pressure"


def test_a_table_of_the_model_drives_an_engine_as_the_model() -> None:
    rod = slender_rod(0.137)
    model = FourStrokePressure(0.070, 0.040, 0.137)
    angle = np.radians(np.arange(0.0, 720.0, 0.5))
    table = PressureTable(angle, model(angle))
    runs = [
        simulate(inline_engine(rod, speed=300.0, pressure=gas), t_end=2e-3, dt=1e-4)
        for gas in (model, table)
    ]
    forces = [run.element("gas 1").force for run in runs]
    assert np.abs(forces[0]).max() > 1e4
    np.testing.assert_allclose(forces[1], forces[0], atol=1e-3 * np.abs(forces[0]).max())
