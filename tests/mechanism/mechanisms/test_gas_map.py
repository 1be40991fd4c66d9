"""Gas pressure over crank angle and speed: interpolation, derivatives and invalid tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.errors import AccuracyWarning, InputError, InputTypeError
from dolfinx_mbd.mechanism.mechanisms import (
    CylinderTorque,
    EngineDesign,
    PressureMap,
    PressureTable,
    SliderCrank,
    inline_engine,
)
from tests.models.beams import slender_rod
from tests.models.mwm_engine import gas, tables

DEGREES = np.arange(0.0, 720.1, 2.0)
SPEEDS = np.array([100.0, 150.0, 300.0])


def curve(degrees: Any) -> np.ndarray:
    """Return a periodic pressure (Pa) over the crank angle (°)."""
    return 1e5 * (3.0 + np.cos(np.radians(degrees) / 2) + 0.5 * np.sin(np.radians(degrees)))


def a_map(interpolation: Any = "cubic") -> PressureMap:
    """Return a map of the pressure `curve`, multiplied by a factor for each speed."""
    rows = np.outer([1.0, 2.0, 1.5], curve(DEGREES))
    return PressureMap(np.radians(DEGREES), SPEEDS, rows, interpolation=interpolation)


@pytest.mark.parametrize("interpolation", ["cubic", "linear"])
def test_values(interpolation: Any) -> None:
    """Values are linear in the speed, constant outside of the table and periodic in the angle."""
    # 200 rad/s is a third of the way from 150 to 300: 2 − 0.5/3 = 11/6
    table, angle = a_map(interpolation), np.linspace(-1500.0, 1500.0, 301)
    for speed, factor in [(100, 1), (125, 1.5), (150, 2), (200, 11 / 6), (0, 1), (900, 1.5)]:
        expected = factor * curve(angle)
        pressure = table(np.radians(angle), float(speed))
        np.testing.assert_allclose(
            pressure, expected, rtol=1e-6 if interpolation == "cubic" else 3e-4
        )
        one_by_one = [table.at(a, float(speed)) for a in np.radians(angle).tolist()]
        np.testing.assert_allclose(one_by_one, pressure, rtol=1e-12)
    speeds = np.linspace(80.0, 320.0, len(angle))
    pairs = zip(np.radians(angle).tolist(), speeds.tolist(), strict=True)
    one_by_one = [table.at(a, speed) for a, speed in pairs]
    np.testing.assert_allclose(table(np.radians(angle), speeds), one_by_one, rtol=1e-12)


def test_one_row_is_a_pressure_table() -> None:
    angle = np.linspace(-7.0, 20.0, 101)
    table = PressureTable(np.radians(DEGREES), curve(DEGREES))
    np.testing.assert_allclose(a_map()(angle, 100.0), table(angle), rtol=1e-12)


@pytest.mark.parametrize("interpolation", ["cubic", "linear"])
def test_derivatives(interpolation: Any) -> None:
    table, h = a_map(interpolation), 1e-6
    for angle in np.linspace(-7.0, 20.0, 14).tolist():
        for speed in (60.0, 120.0, 290.0, 400.0):
            by_angle, by_speed = table.slopes_at(angle, speed)
            low, high = (table.at(angle + s * h, speed) for s in (-1, 1))
            assert by_angle == pytest.approx((high - low) / (2 * h), rel=1e-4, abs=1.0)
            low, high = (table.at(angle, speed + s * 1e-3) for s in (-1, 1))
            assert by_speed == pytest.approx((high - low) / 2e-3, rel=1e-6, abs=1e-3)


def test_pressure_of_the_mwm_engine() -> None:
    """The map reproduces both published tables at their points."""
    table, (pressures, peaks) = gas(), tables()
    # 15.2 is the peak of the curve, whose scale is arbitrary
    for rpm, peak in peaks:
        p = table(np.radians(pressures[1:-1, 0] - 360), rpm * np.pi / 30)
        np.testing.assert_allclose(p, 1e6 * peak / 15.2 * pressures[1:-1, 1], rtol=1e-9)


def test_an_engine_whose_gas_depends_on_the_speed() -> None:
    """The force on the piston has exact derivatives, and the pressure of the current speed."""
    table = a_map()
    engine = inline_engine(slender_rod(), torque=5.0, pressure=table, angle=0.3)
    load, h = engine.loads[-1], 1e-4
    for rate in (-120.0, 120.0, 200.0):
        for angle in (0.4, 5.0):
            by_angle, by_rate = load.derivatives(0.0, angle, rate)  # type: ignore[attr-defined]
            values = [load.magnitude(0.0, angle + s * h, rate) for s in (-1, 1)]  # type: ignore[attr-defined]
            assert by_angle == pytest.approx((values[1] - values[0]) / (2 * h), rel=1e-5, abs=1e-2)
            values = [load.magnitude(0.0, angle, rate + s * h) for s in (-1, 1)]  # type: ignore[attr-defined]
            assert by_rate == pytest.approx((values[1] - values[0]) / (2 * h), rel=1e-5, abs=1e-6)
    run = simulate(engine, t_end=0.004, dt=1e-4, start={"main": 130.0})
    angle, rate = run.joint("main").rotation, run.joint("main").rotation_rate
    area = np.pi * 0.07**2 / 4
    expected = -area * (table(angle, rate) - 101325.0)
    assert angle[0] == pytest.approx(0.3, abs=1e-5)  # the elastic rod is deformed
    np.testing.assert_allclose(run.element("gas 1").force[:, 0], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"speed": [100.0]}, "speed"),
        ({"speed": [0.0, 1.0, 2.0]}, "speed must be positive"),
        ({"speed": [1.0, 3.0, 2.0]}, "speed"),
        ({"pressure": np.ones((2, 361))}, "pressure must be absolute pressures"),
        ({"pressure": -np.ones((3, 361))}, "pressure at 100 rad/s"),
        ({"interpolation": "nearest"}, "interpolation"),
        ({"period": 2 * np.pi}, "angle must be angles within one period"),
    ],
)
def test_invalid_maps(changes: dict[str, Any], message: str) -> None:
    rows = np.tile(curve(DEGREES), (3, 1))
    arguments = {"angle": np.radians(DEGREES), "speed": SPEEDS, "pressure": rows, **changes}
    with pytest.raises(InputError, match=message):
        PressureMap(**arguments)


def test_a_curve_that_does_not_close() -> None:
    rows = np.tile(curve(DEGREES), (3, 1))
    rows[1] += np.linspace(0.0, 5e4, len(DEGREES))
    with pytest.raises(InputError, match=r"pressure at 150 rad/s must be equal at both ends"):
        PressureMap(np.radians(DEGREES), SPEEDS, rows)


def test_a_coarse_table_and_functions_without_speed() -> None:
    coarse = np.arange(0.0, 721.0, 20.0)
    spike = 1e5 + 9e6 * np.exp(-(((coarse - 360.0) / 20) ** 2))
    with pytest.warns(AccuracyWarning, match="too coarse"):
        PressureMap(np.radians(coarse), SPEEDS, np.tile(spike, (3, 1)))
    PressureMap(np.radians(coarse), SPEEDS, np.tile(spike, (3, 1)), interpolation="linear")
    with pytest.raises(InputTypeError, match=r"pressure\(angle\)"):
        inline_engine(slender_rod(), speed=1.0, pressure=lambda angle, speed: angle)


def test_functions_that_do_not_close() -> None:
    """A function of the angle must repeat after 720°, also at other angles than the ends."""
    degrees, crank = np.arange(-360.0, 361.0, 2.0), SliderCrank(0.04, 0.137)
    rows = np.radians(degrees), 1e5 + 8e6 * np.exp(-((degrees / 40.0) ** 2))

    def clipped(angle: Any) -> Any:
        return np.interp(angle, *rows)

    def closed(angle: Any) -> Any:
        return np.interp(angle, *rows, period=4 * np.pi)

    engine: dict[str, Any] = {"design": EngineDesign(cylinders=1), "speed": 1.0}
    for bad in (clipped, lambda angle: 1e5 + 1e3 * angle, lambda angle: 1e5 * np.cos(angle / 3)):
        with pytest.raises(InputError, match="720° later; it must have the period 4π"):
            inline_engine(slender_rod(), pressure=bad, **engine)
        with pytest.raises(InputError, match="720° later"):
            CylinderTorque(bad, crank, 0.08)
    with pytest.raises(InputError, match="finite"):
        CylinderTorque(lambda angle: np.nan, crank, 0.08)
    for good in (closed, lambda angle: 2e5 + 1e5 * np.cos(angle), lambda angle: 1e5):
        inline_engine(slender_rod(), pressure=good, **engine)
        CylinderTorque(good, crank, 0.08)
