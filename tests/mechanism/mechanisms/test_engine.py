"""Engines: banks, rods, flywheel, stiffening, offset pistons, uneven firing, and the defaults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import trapezoid

from dolfinx_mbd.analyses import kinematic_analysis, simulate
from dolfinx_mbd.dynamics import consistent_state
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism import FlexibleBody, RigidBody
from dolfinx_mbd.mechanism.mechanisms import (
    AMBIENT_PRESSURE,
    EngineDesign,
    FourStrokePressure,
    PressureTable,
    SliderCrank,
    inline_engine,
    rigid_rod,
    slider_crank,
)
from dolfinx_mbd.mechanism.system import System
from tests.models.rods import rod as flexible_rod

ROD = rigid_rod(length=0.137, mass=0.3, thickness=0.01)


def position(system: System, name: str) -> np.ndarray:
    """Return the initial position of a body, m."""
    q = consistent_state(system).q
    return q[system.q_slices[system.body_index(name)]][:3]


def test_the_pistons_of_a_v_engine_fire_at_their_top_dead_centres() -> None:
    """At its firing angle each piston is r + l from the shaft along the axis of its bank."""
    banks = np.radians([-45.0, 45.0, -45.0, 45.0])
    design = EngineDesign(cylinders=4, bank_angles=banks, firing_order=(1, 4, 3, 2))
    for k, firing in enumerate(design.firing_angles):
        engine = inline_engine(ROD, design, speed=100.0, angle=float(firing))
        top = position(engine, f"piston {k + 1}")
        axis = np.array([np.cos(banks[k]), np.sin(banks[k])])
        np.testing.assert_allclose(top[:2], (0.040 + 0.137) * axis, atol=1e-9)


def test_a_bank_turns_the_motion() -> None:
    """A single cylinder in a bank moves as one along x, rotated about the shaft."""
    bank, runs = 0.7, []
    for angle in (0.0, bank):
        design = EngineDesign(cylinders=1, bank_angles=[angle])
        engine = inline_engine(ROD, design, speed=200.0)
        runs.append(simulate(engine, t_end=5e-3, dt=1e-4, tolerance=1e-11))
    c, s = np.cos(bank), np.sin(bank)
    rotation = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    for name in ("rod 1", "piston 1"):
        flat, rotated = (run.body(name).position for run in runs)
        np.testing.assert_allclose(rotated, flat @ rotation.T, atol=1e-9)
    for name in ("gas 1", "main", "drive"):
        flat, rotated = (run.element(name).force for run in runs)
        np.testing.assert_allclose(
            rotated, flat @ rotation.T, atol=1e-5 * np.abs(flat).max() + 1e-9
        )


def test_different_rods() -> None:
    """The rods move equally: the rod of twice the mass has twice the kinetic energy."""
    heavy = rigid_rod(length=0.137, mass=0.6, thickness=0.01)
    design = EngineDesign(cylinders=2)
    run = simulate(inline_engine([ROD, heavy], design, speed=100.0), t_end=5e-3, dt=1e-4)
    light = run.body("rod 1").kinetic_energy
    np.testing.assert_allclose(run.body("rod 2").kinetic_energy, 2 * light, rtol=1e-9)
    with pytest.raises(InputError) as error:
        inline_engine([ROD, heavy, ROD], design, speed=100.0)
    assert error.value.argument == "rod"


def test_inertia_of_a_rigid_rod() -> None:
    """The moment of inertia about z is the given one, also of a thick rod, or that of a bar."""
    for inertia, expected in ((5e-4, 5e-4), (None, 0.3 * (0.137**2 + 0.01**2) / 12)):
        rod = rigid_rod(0.137, 0.3, centre=0.05, inertia=inertia, thickness=0.01)
        xx, yy, _ = np.diag(rod.second_moments[0, 0])
        assert xx + yy - 0.3 * 0.05**2 == pytest.approx(expected, rel=1e-12)
    with pytest.raises(InputError) as error:
        rigid_rod(0.137, 0.3, inertia=1e-9, thickness=0.01)
    assert error.value.argument == "inertia"


def test_a_flywheel_stores_energy() -> None:
    energies = []
    for inertia in (0.0, 0.3):
        design = EngineDesign(cylinders=1, flywheel_inertia=inertia)
        run = simulate(inline_engine(ROD, design, speed=50.0), t_end=1e-3, dt=1e-3)
        energies.append(run.body("crank").kinetic_energy[0])
    assert energies[1] - energies[0] == pytest.approx(0.5 * 0.3 * 50.0**2, rel=1e-12)
    with pytest.raises(InputError):
        EngineDesign(flywheel_inertia=-1.0)


def test_stiffening_can_be_turned_off() -> None:
    body, options = flexible_rod(), {"speed": 10.0, "ends": ("left", "right")}
    for stiffening in (None, True, False):
        slider = slider_crank(body, stiffening=stiffening, **options)  # type: ignore[arg-type]
        multi = inline_engine(body, stiffening=stiffening, **options)  # type: ignore[arg-type]
        for rod in (slider.body("rod"), multi.body("rod 1"), multi.body("rod 3")):
            assert isinstance(rod, FlexibleBody) and rod.stiffening is (stiffening is not False)


def test_both_mechanisms_have_the_same_defaults() -> None:
    slider = slider_crank(ROD, speed=1.0)
    multi = inline_engine(ROD, speed=1.0)
    for single, several in (("crank", "crank"), ("piston", "piston 1")):
        first, second = slider.body(single), multi.body(several)
        assert isinstance(first, RigidBody) and isinstance(second, RigidBody)
        assert first.mass == second.mass
    assert position(slider, "piston")[0] == pytest.approx(position(multi, "piston 1")[0], rel=1e-12)


RADIUS, LENGTH = 0.040, 0.137


@pytest.mark.parametrize("offset", [0.0, 0.012, -0.03])
def test_the_kinematics_with_an_offset(offset: float) -> None:
    """Lengths of crank and rod, derivatives and dead centres obey the geometry."""
    crank, angle = SliderCrank(RADIUS, LENGTH, offset), np.linspace(0.0, 2 * np.pi, 400)
    motion = crank.motion(angle, 70.0, 900.0)
    pin = RADIUS * np.column_stack([np.cos(angle), np.sin(angle)])
    rod = np.column_stack([motion.slider, np.full_like(angle, offset)]) - pin
    np.testing.assert_allclose(np.linalg.norm(rod, axis=1), LENGTH, rtol=1e-14)
    np.testing.assert_allclose(np.arctan2(rod[:, 1], rod[:, 0]), motion.rod_angle, atol=1e-14)
    h = 1e-5
    before, after = (crank.motion(angle + s * h * 70.0, 70.0 + s * h * 900.0) for s in (-1, 1))
    for name in ("slider", "rod"):
        x = "slider" if name == "slider" else "rod_angle"
        rate = (getattr(after, x) - getattr(before, x)) / (2 * h)
        np.testing.assert_allclose(getattr(motion, f"{name}_velocity"), rate, atol=2e-4)
        v = f"{name}_velocity"
        rate = (getattr(after, v) - getattr(before, v)) / (2 * h)
        second = getattr(motion, f"{name}_acceleration")
        np.testing.assert_allclose(second, rate, atol=1e-4 * np.abs(second).max())
    fine = crank.motion(np.linspace(0.0, 2 * np.pi, 200_001)).slider
    assert crank.motion(crank.top_angle).slider == pytest.approx(fine.max(), abs=1e-11)
    assert crank.stroke == pytest.approx(np.ptp(fine), abs=1e-10)


@pytest.mark.parametrize("offset", [0.012, -0.03])
def test_a_slider_crank_with_an_offset(offset: float) -> None:
    system = slider_crank(ROD, speed=100.0, pin_offset=offset)
    run = kinematic_analysis(system, np.linspace(0.0, 0.0628, 60))
    exact = SliderCrank(RADIUS, LENGTH, offset).motion(100.0 * run.time, 100.0)
    piston, rod = run.body("piston"), run.body("rod")
    np.testing.assert_allclose(piston.position[:, 1], offset, atol=1e-9)
    for computed, expected in (
        (piston.position[:, 0], exact.slider),
        (piston.velocity[:, 0], exact.slider_velocity),
        (piston.acceleration[:, 0], exact.slider_acceleration),
        (rod.omega[:, 2], exact.rod_velocity),
        (rod.alpha[:, 2], exact.rod_acceleration),
    ):
        np.testing.assert_allclose(computed, expected, atol=1e-7 * np.abs(expected).max())


def test_both_mechanisms_share_the_offset() -> None:
    design = EngineDesign(cylinders=1, pin_offset=0.012)
    slider = slider_crank(ROD, speed=1.0, angle=0.7, pin_offset=0.012)
    multi = inline_engine(ROD, design, speed=1.0, angle=0.7)
    np.testing.assert_allclose(position(slider, "piston"), position(multi, "piston 1"), atol=1e-12)
    # The limit is l − r = 0.097 m
    for offset in (0.097, -0.1):
        with pytest.raises(InputError, match=r"^pin_offset must be between ±"):
            slider_crank(ROD, speed=1.0, pin_offset=offset)
    with pytest.raises(TypeError, match=r"slider_crank.*'pinoffset'"):
        slider_crank(ROD, speed=1.0, pinoffset=0.1)


def test_the_gas_acts_from_the_top_dead_centre_of_an_offset_piston() -> None:
    """The force is p − p₀ on the bore, counted from the crank angle at which the piston is highest.

    The work over a cycle is the integral of the pressure over the volume.
    """
    design = EngineDesign(cylinders=2, pin_offset=0.015)
    crank = SliderCrank(RADIUS, LENGTH, 0.015)
    gas = FourStrokePressure(design.bore, RADIUS, LENGTH, pin_offset=0.015)
    engine = inline_engine(ROD, design, speed=300.0, pressure=gas)
    run = simulate(engine, t_end=4 * np.pi / 300.0, dt=4 * np.pi / 300.0 / 1440)
    area, angle = np.pi * design.bore**2 / 4, 300.0 * run.time
    for k, firing in enumerate(design.firing_angles, 1):
        force = -area * (gas(angle - firing - crank.top_angle) - AMBIENT_PRESSURE)
        element = run.element(f"gas {k}")
        np.testing.assert_allclose(element.force[:, 0], force, atol=1e-6 * np.abs(force).max())
        x = crank.motion(angle - firing).slider
        work = np.sum(0.5 * (force[1:] + force[:-1]) * np.diff(x))
        assert element.work[-1] == pytest.approx(work, rel=1e-3)
    assert gas.displacement == pytest.approx(area * crank.stroke, rel=1e-14)
    assert gas(0.3) != FourStrokePressure(design.bore, RADIUS, LENGTH)(0.3)


def test_uneven_firing() -> None:
    """A V-twin of 90° with one common throw fires after 450° and 270°."""
    banks, firing = np.radians([-45.0, 45.0]), np.radians([0.0, 450.0])
    design = EngineDesign(cylinders=2, bank_angles=banks, firing_angles=firing, spacing=0.02)
    assert design.firing_order == (1, 2)
    throws = np.exp(1j * np.asarray(design.throw_angles))
    assert throws[0] == pytest.approx(throws[1], abs=1e-14)
    engine = inline_engine(ROD, design, speed=100.0, angle=float(firing[1]))
    axis = np.array([np.cos(banks[1]), np.sin(banks[1])])
    top = position(engine, "piston 2")[:2]
    np.testing.assert_allclose(top, (RADIUS + LENGTH) * axis, atol=1e-9)
    assert EngineDesign(firing_angles=np.radians([0, 500, 200])).firing_order == (1, 3, 2)
    for options in (
        {"firing_angles": [0.0, 1.0]},
        {"firing_angles": [0.0, 1.0, 4 * np.pi]},
        {"firing_angles": [0.0, 1.0, 2.0], "firing_order": (1, 3, 2)},
        {"firing_angles": [0.0, 1.0, 2.0], "throw_angles": [0.0, 1.0, 2.0]},
    ):
        with pytest.raises(InputError):
            EngineDesign(**options)  # type: ignore[arg-type]


def test_a_measured_pressure_and_two_different_rods(tmp_path: Path) -> None:
    """A V-twin has offset pistons, a rigid and a flexible rod, and a table of pressures.

    The work of the gas equals the work that the drive takes up over a cycle.
    """
    degrees = np.arange(0.0, 720.0, 2.0)
    bar = 1e-5 * FourStrokePressure(0.07, RADIUS, 1.0)(np.radians(degrees))
    header = "crank angle,pressure\ndeg,bar"
    table = np.column_stack([degrees, bar])
    np.savetxt(tmp_path / "p.csv", table, delimiter=",", header=header, comments="")
    design = EngineDesign(
        cylinders=2,
        bank_angles=np.radians([-45.0, 45.0]),
        firing_angles=np.radians([0.0, 450.0]),
        pin_offset=0.01,
    )
    stiff = rigid_rod(length=1.0, mass=0.6, thickness=0.02)
    ends = {"left": "big_end", "right": "small_end"}
    body = flexible_rod()
    flexible = body.replace(
        interfaces=tuple(
            item.__class__(ends[item.name], item.kind, item.point, item.axes, item.motion)
            for item in body.interfaces
        ),
        stiffening=None,
    )
    pressure = PressureTable.read(tmp_path / "p.csv")
    engine = inline_engine([stiff, flexible], design, speed=60.0, pressure=pressure)
    period = 4 * np.pi / 60.0
    run = simulate(engine, t_end=2 * period, dt=period / 1440)
    angle, last = 60.0 * run.time, slice(len(run) // 2, None)
    for k, name in enumerate(("gas 1", "gas 2")):
        top = SliderCrank(RADIUS, 1.0, 0.01).top_angle
        area = np.pi * design.bore**2 / 4
        p = pressure(angle - np.asarray(design.firing_angles)[k] - top)
        size = np.linalg.norm(run.element(name).force, axis=1)
        np.testing.assert_allclose(size, area * np.abs(p - AMBIENT_PRESSURE), rtol=1e-5, atol=1.0)
    assert np.abs(run.body("rod 2").eta).max() > 0
    gas = sum(trapezoid(run.element(n).power[last], run.time[last]) for n in ("gas 1", "gas 2"))
    drive = trapezoid(run.element("drive").power[last], run.time[last])
    # The difference is the damping of the rod
    assert drive < 0 < gas and -drive == pytest.approx(gas, rel=2e-3)
