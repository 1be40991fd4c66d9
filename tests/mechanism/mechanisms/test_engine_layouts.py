"""Engines of many layouts against exact kinematics, work diagrams and an equation of motion."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError, InputTypeError, UnitsWarning
from dolfinx_mbd.mechanism.mechanisms import (
    AMBIENT_PRESSURE,
    EngineDesign,
    FourStrokePressure,
    PressureMap,
    PressureTable,
    SliderCrank,
    TorsionalDamper,
    engine,
    engine_balance,
    rigid_rod,
)

LENGTH, MASS, CENTRE = 0.137, 0.3, 0.04
# Two point masses at the ends have the same mass, centre of mass and moment of inertia
ROD = rigid_rod(LENGTH, MASS, centre=CENTRE, inertia=MASS * CENTRE * (LENGTH - CENTRE))
V8 = np.repeat([-0.15, -0.05, 0.05, 0.15], 2) + np.tile([-0.01, 0.01], 4)

LAYOUTS: dict[str, dict[str, Any]] = {
    "one": {"cylinders": 1},
    "parallel twin": {"cylinders": 2},
    "180° twin": {"cylinders": 2, "firing_angles": [0.0, np.pi]},
    "five": {"cylinders": 5},
    "six": {"cylinders": 6},
    "V6 60°": {"cylinders": 6, "bank_angles": np.radians([-30, 30] * 3), "spacing": 0.045},
    "V6 90°": {"cylinders": 6, "bank_angles": np.radians([-45, 45] * 3), "spacing": 0.045},
    "V8": {
        "cylinders": 8,
        "bank_angles": np.radians([45, -45] * 4),
        "cylinder_positions": V8,
        "firing_order": (1, 8, 4, 3, 6, 5, 7, 2),
    },
    "boxer four": {
        "cylinders": 4,
        "bank_angles": np.radians([90, -90] * 2),
        "firing_order": (1, 4, 2, 3),
        "spacing": 0.05,
    },
    "two-stroke": {"cylinders": 3, "firing_angles": [0.0, 2 * np.pi / 3, 4 * np.pi / 3]},
    "offset pins": {"cylinders": 2, "pin_offset": 0.008, "crank_radius": 0.05, "bore": 0.06},
}


def two_stroke() -> PressureTable:
    """Return a pressure of period 2π that is larger after top dead centre than before it."""
    angle = np.radians(np.arange(-180.0, 181.0, 3.0))
    return PressureTable(angle, 1.2e5 + 6e6 * np.exp(-(((angle - 0.25) / 0.5) ** 2)), 2 * np.pi)


def gas_of(name: str, design: EngineDesign) -> Any:
    if name == "two-stroke":
        return two_stroke()
    radius, offset = design.crank_radius, float(design.pin_offsets[0])
    return FourStrokePressure(design.bore, radius, LENGTH, pin_offset=offset)


def cycle_work(design: EngineDesign, gas: Any, direction: int) -> float:
    """Return the work of the gas on one piston over two turns: the area of the diagram, J."""
    crank = SliderCrank(design.crank_radius, LENGTH, float(design.pin_offsets[0]))
    angle = np.linspace(0.0, 4 * np.pi, 40001)
    slider = crank.motion(direction * angle + crank.top_angle).slider
    return float(-np.trapezoid(gas(angle) - AMBIENT_PRESSURE, np.pi * design.bore**2 / 4 * slider))


OTHERS = "one", "parallel twin", "five", "six", "V6 60°", "boxer four"  # slow cases


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        *((name, 1) for name in LAYOUTS if name not in OTHERS),
        *(pytest.param(name, 1, marks=pytest.mark.slow) for name in OTHERS),
        ("five", -1),
        ("offset pins", -1),
    ],
)
def test_motion_and_work_over_a_cycle(name: str, direction: int) -> None:
    """The piston motion is exact, and the drive takes up the work of the gas in both directions."""
    design, speed = EngineDesign(**LAYOUTS[name]), 100.0 * direction
    gas = gas_of(name, design)
    period = 4 * np.pi / abs(speed)
    system = engine(ROD, design, speed=speed, pressure=gas)
    run = mbd.simulate(system, t_end=period, dt=period / 720, tolerance=1e-10)
    crank = SliderCrank(design.crank_radius, LENGTH, float(design.pin_offsets[0]))
    work, throws, banks = 0.0, np.asarray(design.throw_angles), np.asarray(design.bank_angles)
    for k, (throw, bank) in enumerate(zip(throws, banks, strict=True), 1):
        motion = crank.motion(speed * run.time + throw - bank, speed)
        axis = np.array([np.cos(bank), np.sin(bank), 0.0])
        piston = run.body(f"piston {k}")
        np.testing.assert_allclose(piston.position @ axis, motion.slider, atol=1e-12)
        rate = piston.velocity @ axis
        error = 1e-4 * design.crank_radius * abs(speed)  # error of the time steps
        np.testing.assert_allclose(rate, motion.slider_velocity, atol=error)
        work += run.element(f"gas {k}").work[-1]
    exact = design.cylinders * cycle_work(design, gas, direction)
    assert work == pytest.approx(exact, rel=1e-4)
    assert run.element("drive").work[-1] == pytest.approx(-work, rel=1e-4)


def test_default_pressure_of_a_reversed_engine() -> None:
    """The mirrored engine that turns the other way has the same forces of the gas."""
    runs = []
    for direction in (1, -1):
        design = EngineDesign(cylinders=1, pin_offset=0.01 * direction)
        system = engine(ROD, design, speed=100.0 * direction)
        runs.append(mbd.simulate(system, t_end=0.02, dt=1e-4).element("gas 1").force[:, 0])
    assert np.ptp(runs[0]) > 1e4
    np.testing.assert_allclose(*runs, atol=1e-6 * np.ptp(runs[0]))


def test_default_firing_orders_in_line() -> None:
    """Six cylinders are balanced in both orders; five leave moments only."""
    six = engine_balance(EngineDesign(cylinders=6), ROD)
    assert max(np.abs(six.force).max(), np.abs(six.moment).max()) < 1e-15
    five = engine_balance(EngineDesign(cylinders=5), ROD)
    assert np.abs(five.force).max() < 1e-15
    # The default order has the smallest moment of order 1
    first, second = np.abs(five.moment).max(axis=1)
    helical = engine_balance(EngineDesign(cylinders=5, firing_order=(1, 2, 3, 4, 5)), ROD)
    assert first < 0.2 * np.abs(helical.moment[0]).max() and second < 2e-3
    banks = np.radians([-30, 30] * 3)
    assert EngineDesign(cylinders=6, bank_angles=banks, spacing=0.045).firing_order == tuple(
        range(1, 7)
    )


def inertia(design: EngineDesign, angle: float) -> float:
    """Return the inertia of a rigid engine referred to the crank, with rods as point masses."""
    oscillating = design.piston_mass + MASS * CENTRE / LENGTH
    rotating = MASS * (1 - CENTRE / LENGTH)
    crank = SliderCrank(design.crank_radius, LENGTH, float(design.pin_offsets[0]))
    angles = angle + np.asarray(design.throw_angles) - np.asarray(design.bank_angles)
    rate = np.asarray(crank.motion(angles, 1.0).slider_velocity)
    total = 0.5 * design.crank_mass * design.crank_radius**2 + design.flywheel_inertia
    total += design.cylinders * rotating * design.crank_radius**2
    return float(total + oscillating * np.sum(rate**2))


@pytest.mark.parametrize(
    ("name", "hub"),
    [
        pytest.param("one", 0.0, marks=pytest.mark.slow),
        ("V6 90°", 0.004),
        pytest.param("boxer four", 0.0, marks=pytest.mark.slow),
        ("offset pins", 0.01),
        ("two-stroke", 0),
    ],
)
def test_free_engine_with_a_damper(name: str, hub: float) -> None:
    """Gas, a load and a damper against the equation of motion of crank and ring in NumPy."""
    damper = TorsionalDamper.tuned(0.01, 120.0, 0.05, hub_inertia=hub)
    design = EngineDesign(**LAYOUTS[name], flywheel_inertia=0.02, damper=damper)
    gas = gas_of(name, design)

    def load(t: float, angle: float, speed: float) -> float:
        return 25.0 * np.cos(40.0 * t) - 0.05 * speed

    system = engine(ROD, design, torque=load, pressure=gas, angle=0.4)
    run = mbd.simulate(system, t_end=0.05, dt=2e-5, tolerance=1e-10)

    crank = SliderCrank(design.crank_radius, LENGTH, float(design.pin_offsets[0]))
    throws, banks = np.asarray(design.throw_angles), np.asarray(design.bank_angles)
    firing, area = np.asarray(design.firing_angles) + crank.top_angle, np.pi * design.bore**2 / 4

    def derivatives(t: float, y: np.ndarray) -> list[float]:
        angle, ring, speed, ring_speed = y
        step = 1e-5
        J, after = inertia(design, angle) + hub, inertia(design, angle + step)
        slope = (after - inertia(design, angle - step)) / (2 * step)
        lever = np.asarray(crank.motion(angle + throws - banks, 1.0).slider_velocity)
        force = area * (np.array([gas(angle - f) for f in firing]) - AMBIENT_PRESSURE)
        rubber = damper.stiffness * (ring - angle) + damper.damping * (ring_speed - speed)
        moment = load(t, angle, speed) - float(force @ lever) + rubber
        # J φ̈ + J′ φ̇²/2 = moment, with the inertia J(φ)
        return [speed, ring_speed, (moment - 0.5 * slope * speed**2) / J, -rubber / damper.inertia]

    options: dict[str, Any] = {"t_eval": run.time[::50], "rtol": 1e-9, "atol": 1e-9}
    exact = solve_ivp(derivatives, (0.0, 0.05), [0.4, 0.4, 0.0, 0.0], **options)
    angle, ring, speed, ring_speed = exact.y
    assert np.abs(speed).max() > 5.0
    twist = np.abs(ring - angle).max()
    np.testing.assert_allclose(run.joint("main").rotation[::50], angle, rtol=1e-5)
    computed = run.joint("damper").rotation[::50]
    np.testing.assert_allclose(computed, ring - angle, atol=2e-3 * twist)
    np.testing.assert_allclose(
        run.body("ring").omega[::50, 2], ring_speed, atol=1e-4 * np.abs(speed).max()
    )


def test_a_run_up_by_a_motion() -> None:
    """The speed may be a function: crank and ring follow it, from its initial angle."""
    damper = TorsionalDamper.tuned(0.01, 200.0, 0.3)
    design = EngineDesign(cylinders=2, damper=damper)
    motion = mbd.mechanism.integrated(lambda t: 100.0 + 1000.0 * t, start=0.3)
    run = mbd.simulate(engine(ROD, design, speed=motion), t_end=0.05, dt=1e-4)
    exact = 0.3 + 100.0 * run.time + 500.0 * run.time**2
    np.testing.assert_allclose(run.joint("main").rotation, exact, atol=1e-9)
    np.testing.assert_allclose(run.body("ring").omega[0], [0.0, 0.0, 100.0], atol=1e-9)
    lag = 0.01 * 1000.0 / damper.stiffness  # the rubber accelerates the ring
    assert run.joint("damper").rotation[-200:].mean() == pytest.approx(-lag, rel=0.1)
    with pytest.raises(InputError) as error:
        engine(ROD, design, speed=motion, angle=1.0)
    assert error.value.argument == "angle"


def test_cylinders_with_different_offsets() -> None:
    """Motion and gas of each cylinder of a VR engine are those of an engine with one cylinder."""
    banks, offsets = np.radians([-7.5, 7.5]), [0.012, -0.008]
    vr = EngineDesign(
        cylinders=2, bank_angles=banks, pin_offset=offsets, firing_angles=[0.0, 2 * np.pi]
    )
    options: dict[str, Any] = {"t_end": 4 * np.pi / 100, "dt": 4 * np.pi / 100 / 720}
    run = mbd.simulate(engine(ROD, vr, speed=100.0), **options)
    for k in range(2):
        one = EngineDesign(cylinders=1, pin_offset=offsets[k])
        single = mbd.simulate(engine(ROD, one, speed=100.0), **options)
        gas, other = run.element(f"gas {k + 1}"), single.element("gas 1")
        assert gas.work[-1] == pytest.approx(other.work[-1], rel=1e-4)
        axis = np.array([np.cos(banks[k]), np.sin(banks[k]), 0.0])
        height = run.body(f"piston {k + 1}").position @ axis
        # Each throw points along its cylinder at the start
        np.testing.assert_allclose(height, single.body("piston 1").position[:, 0], atol=1e-9)
    with pytest.raises(InputError, match="pin_offset"):
        EngineDesign(cylinders=3, pin_offset=offsets)


@pytest.mark.parametrize("name", LAYOUTS)
def test_designs_can_be_changed(name: str) -> None:
    """`dataclasses.replace` keeps the firing of a design."""
    design = EngineDesign(**LAYOUTS[name])
    heavy = replace(design, piston_mass=0.3)
    assert heavy.piston_mass == 0.3
    for key in ("firing_order", "firing_angles", "throw_angles", "bank_angles"):
        np.testing.assert_array_equal(getattr(heavy, key), getattr(design, key))


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"firing_order": (1, 2, 3), "firing_angles": [0.0, 8.0, 4.0]}, "firing_order"),
        ({"bore": 0.09}, "spacing"),
        ({"cylinders": 2, "bank_angles": [0.0, 0.0], "spacing": 0.05}, "spacing"),
        ({"cylinders": 2, "cylinder_positions": [0.0, 0.05]}, "cylinder_positions"),
        ({"cylinders": 2, "bank_angles": [-45.0, 45.0], "spacing": 0.02}, "bank_angles"),
        ({"damper": 1.0}, "damper"),
    ],
)
def test_designs_that_do_not_fit(arguments: dict[str, Any], argument: str) -> None:
    with pytest.raises(InputError) as error:
        EngineDesign(**arguments)
    assert error.value.argument == argument


def bar(angle: float) -> float:
    return float(40.0 + 30.0 * np.cos(angle / 2))


@pytest.mark.parametrize(
    ("design", "options", "quantity"),
    [
        ({"bore": 0.5, "piston_mass": 50.0}, {}, "bore"),
        ({"piston_mass": 214.0}, {}, "piston mass"),
        ({}, {"rod": rigid_rod(137.0, 0.2)}, "rod length"),
        ({}, {"rod": rigid_rod(0.137, 200.0)}, "rod mass"),
        ({}, {"speed": 6000.0}, "speed"),
        ({}, {"pressure": bar}, "gas pressure"),
        ({}, {"pressure": "map in rpm"}, "the largest speed of the pressures"),
    ],
)
def test_wrong_units_give_a_warning(
    design: dict[str, Any], options: dict[str, Any], quantity: str
) -> None:
    options = {"rod": ROD, "speed": 200.0, "pressure": False} | options
    if options["pressure"] == "map in rpm":
        angle = np.radians(np.arange(0.0, 721.0, 5.0))
        options["pressure"] = PressureMap(angle, [1000.0, 2600.0], [2e5 + 0 * angle] * 2)
    with pytest.warns(UnitsWarning) as warned:
        engine(design=EngineDesign(cylinders=1, **design), **options)
    assert [w.message.quantity for w in warned] == [quantity]  # type: ignore[union-attr]


@pytest.mark.parametrize("value", [None, [1e5, 2e5], 1e5 + 0j, "high"])
def test_a_pressure_is_a_number(value: Any) -> None:
    with pytest.raises(InputTypeError) as error:
        engine(ROD, EngineDesign(cylinders=1), speed=200.0, pressure=lambda angle: value)
    assert error.value.argument == "pressure"


def test_plausible_engines_give_no_warning() -> None:
    """The engines are those of a ship, of a model and of a racing car."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for radius, bore, piston, speed in (
            (1.25, 0.9, 3000.0, 10.0),
            (0.006, 0.012, 0.003, 2000.0),
            (0.0265, 0.098, 0.22, 1900.0),
        ):
            design = EngineDesign(
                cylinders=1, crank_radius=radius, bore=bore, piston_mass=piston, crank_mass=1.0
            )
            engine(rigid_rod(3 * radius, piston), design, speed=speed)


@pytest.mark.parametrize(
    "arguments",
    [
        {"inertia": -1.0, "stiffness": 1e3},
        {"inertia": 0.01, "stiffness": 0.0},
        {"inertia": 0.01, "stiffness": 1e3, "damping": -1.0},
        {"inertia": 0.01, "stiffness": 1e3, "radius": 0.0},
    ],
)
def test_invalid_dampers(arguments: dict[str, float]) -> None:
    with pytest.raises(InputError):
        TorsionalDamper(**arguments)
