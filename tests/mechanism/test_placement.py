"""Bodies stay where they are placed; what the assembly moves is reported."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import System, consistent_state
from dolfinx_mbd.errors import PlacementWarning
from dolfinx_mbd.mechanism import (
    Driver,
    Frame,
    Ground,
    RigidBody,
    constant_speed,
    prismatic,
    revolute,
)
from dolfinx_mbd.mechanism.mechanisms import inline_engine, rigid_rod, slider_crank


def crank(angle: float, *drivers: Driver, away: float = 0.0) -> System:
    """Return a crank, initially at an angle (rad) and at a distance (m) from its bearing."""
    ground = Ground({"o": Frame()})
    body = RigidBody.box(
        "crank",
        (0.1, 0.02, 0.02),
        mass=1.0,
        centre=(0.05, 0, 0),
        frames={"o": Frame(), "pin": Frame((0.1, 0, 0))},
        position=(away, 0, 0),
        rotation=(np.cos(angle / 2), 0, 0, np.sin(angle / 2)),
    )
    joint = revolute("main", ground.frame("o"), body.frame("o"))
    return System([ground, body], [joint], drivers=drivers)


def test_the_angle_of_a_driver_is_relative_to_the_initial_angle() -> None:
    system = crank(np.pi / 3, Driver("drive", "main", constant_speed(10.0)))
    assert "moved by assembly" not in str(system)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = simulate(system, t_end=0.1, dt=1e-3)
    assert run.joint("main").rotation[0] == pytest.approx(np.pi / 3, abs=1e-12)
    assert run.joint("main").rotation[-1] == pytest.approx(np.pi / 3 + 1.0, abs=1e-12)


@pytest.mark.parametrize("offset", [0.0, -0.2])
def test_an_offset_that_contradicts_the_placement_holds_with_a_warning(offset: float) -> None:
    system = crank(np.pi / 3, Driver("drive", "main", constant_speed(10.0), offset=offset))
    with pytest.warns(PlacementWarning) as records:
        run = simulate(system, t_end=0.1, dt=1e-3)
    (warning,) = [w.message for w in records]
    assert warning.quantity == "motion of a body in the assembly"
    chord = 2 * 0.1 * np.sin((np.pi / 3 - offset) / 2)  # motion of the pin
    # The size of the box around the placed frames is its height
    assert warning.value == pytest.approx(chord / (0.1 * np.sin(np.pi / 3)), rel=1e-9)
    assert records[0].filename == __file__
    assert run.joint("main").rotation[0] == pytest.approx(offset, abs=1e-12)
    assert "moved by assembly    body 'crank'" in str(system)


def test_a_body_away_from_its_joint_is_reported() -> None:
    system = crank(0.0, away=0.036)
    with pytest.warns(PlacementWarning) as records:
        consistent_state(system)
    size = 0.136  # size of the box around the placed frames
    assert records[0].message.value == pytest.approx(0.036 / size, rel=1e-6)
    line = next(line for line in str(system).splitlines() if "moved by assembly" in line)
    assert "'crank'" in line and "0.036 m" in line


def test_motion_of_a_driver_at_a_later_start_is_no_assembly() -> None:
    system = crank(0.3, Driver("drive", "main", constant_speed(10.0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PlacementWarning)
        state = consistent_state(system, 0.05)
    assert state.angles[0] == pytest.approx(0.8, abs=1e-12)


@pytest.mark.parametrize("angle", [0.0, 1.0, 4.0, -2.5])
def test_ready_mechanisms_are_placed_where_they_start(angle: float) -> None:
    rod = rigid_rod(length=0.3, mass=0.15)
    sizes = {"crank_radius": 0.1, "crank_mass": 0.4, "piston_mass": 0.1}
    with warnings.catch_warnings():
        warnings.simplefilter("error", PlacementWarning)
        for system in (
            slider_crank(rod, speed=10.0, angle=angle, **sizes),
            slider_crank(rod, torque=0.0, angle=angle, **sizes),
            inline_engine(rod, speed=10.0, angle=angle, gas=False),
        ):
            state = consistent_state(system)
            turns = (state.angles[0] - angle) / (2 * np.pi)
            assert turns == pytest.approx(round(turns), abs=1e-12)
    driven = consistent_state(slider_crank(rod, speed=10.0, angle=angle, **sizes))
    assert driven.angles[0] == pytest.approx(angle, abs=1e-12)


def test_the_displacement_of_a_driver_is_relative_to_the_initial_one() -> None:
    ground = Ground({"o": Frame()})
    body = RigidBody("body", 1.0, [0.1] * 3, frames={"c": Frame()}, position=(0, 0, 0.3))
    joint = prismatic("axis", ground.frame("o"), body.frame("c"))
    drive = Driver("drive", "axis", constant_speed(0.5))
    state = consistent_state(System([ground, body], [joint], drivers=[drive]))
    assert state.q[2] == pytest.approx(0.3, abs=1e-15)
