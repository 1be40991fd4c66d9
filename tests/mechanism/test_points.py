"""Forces and joints act at named points of flexible bodies as at interfaces, without moments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import MaterialPoint, ReducedBody
from dolfinx_mbd.dynamics import System
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism import (
    Bushing,
    FlexibleBody,
    Frame,
    Ground,
    RigidBody,
    SpringDamper,
    distance,
    fixed,
    force,
    point_on_line,
    point_on_plane,
    revolute,
    spherical,
    torque,
)
from dolfinx_mbd.results import Solution
from tests.models.rods import rod

GROUND = Ground({"o": Frame(), "up": Frame((1.0, 0.7, 0.1)), "end": Frame((1.0, 0.0, 0.0))})


def with_point() -> ReducedBody:
    """Return the rod with a point that moves as its right interface."""
    body = rod()
    right = body.interface("right")
    return body.replace(points=(MaterialPoint("tip", right.point, right.motion[:3].T),))


def parts(kind: str, end: Any) -> dict[str, Any]:
    """Return joints and loads of a kind at an end of the arm."""
    return {
        "spring": {"loads": [SpringDamper("spring", GROUND.frame("up"), end, 400.0, 2.0, 0.5)]},
        "first end": {"loads": [SpringDamper("spring", end, GROUND.frame("up"), 400.0, 2.0, 0.5)]},
        "force": {"loads": [force("push", end, lambda t, motion: (1, 9, 5) - motion.velocity)]},
        "spherical": {"joints": [spherical("ball", GROUND.frame("end"), end)]},
        "spherical, first": {"joints": [spherical("ball", end, GROUND.frame("end"))]},
        "distance": {"joints": [distance("rod", GROUND.frame("up"), end)]},
        "line": {"joints": [point_on_line("rail", GROUND.frame("end"), end)]},
        "plane": {"joints": [point_on_plane("table", GROUND.frame("end"), end)]},
    }[kind]


def swing(kind: str, frame: str) -> Solution:
    """Simulate the arm under gravity and a gust, with a part of a kind at a frame."""
    arm = FlexibleBody("arm", with_point(), position=(0.5, 0, 0), damping_ratio=0.0)
    options = parts(kind, arm.frame(frame))
    loads = [*options.get("loads", []), force("gust", arm.frame("left"), (0.0, 3.0, 2.0))]
    system = System([GROUND, arm], options.get("joints", []), loads=loads, gravity=(0, -9.81, 0))
    return simulate(system, t_end=0.05, dt=5e-4, tolerance=1e-11)


KINDS = [
    "spring",
    "first end",
    "force",
    "spherical",
    "spherical, first",
    "distance",
    "line",
    "plane",
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_point_acts_as_the_interface_with_its_motion(kind: str) -> None:
    point, interface = swing(kind, "tip"), swing(kind, "right")
    assert np.ptp(interface.q, axis=0).max() > 1e-3
    np.testing.assert_allclose(point.q, interface.q, atol=1e-9)
    # Only the name is needed, so any frame will do
    name = (parts(kind, ("a", "b")).get("joints") or parts(kind, ("a", "b"))["loads"])[0].name
    np.testing.assert_allclose(
        point.element(name).force,
        interface.element(name).force,
        atol=1e-6 * np.abs(interface.element(name).force).max(),
    )


def test_the_energy_is_the_work_at_the_points() -> None:
    run = swing("spring", "tip")
    arm = run.body("arm")
    energy = arm.kinetic_energy + arm.elastic_energy + arm.gravity_energy
    work = sum(run.element(name).work for name in ("gust", "spring"))
    np.testing.assert_allclose(work, energy - energy[0], atol=1e-3 * np.ptp(energy))
    assert {*arm.wrenches} == {"left", "right", "tip"}


@pytest.mark.parametrize(
    "create",
    [
        lambda end: {"loads": [torque("part", end, (0, 0, 1.0))]},
        lambda end: {"loads": [Bushing("part", GROUND.frame("o"), end, [1.0] * 6)]},
        lambda end: {"joints": [revolute("part", GROUND.frame("end"), end)]},
        lambda end: {"joints": [fixed("part", end, GROUND.frame("end"))]},
        lambda end: {"joints": [point_on_line("part", end, GROUND.frame("end"))]},
    ],
    ids=["torque", "bushing", "revolute", "fixed", "line of a point"],
)
def test_moments_at_a_point_are_errors(create: Any) -> None:
    arm = FlexibleBody("arm", with_point(), position=(0.5, 0, 0))
    options = create(arm.frame("tip"))
    with pytest.raises(InputError, match=r"'part'.*'tip' of body 'arm'") as error:
        System([GROUND, arm], options.get("joints", []), loads=options.get("loads", []))
    assert error.value.value == ("arm", "tip")


def test_frames_by_name() -> None:
    arm = FlexibleBody("arm", with_point())
    assert arm.point_names == ("tip",)
    with pytest.raises(InputError, match="'left', 'right', 'tip'"):
        arm.frame("elbow")
    mass = RigidBody("mass", 1.0, [1.0] * 3, frames={"c": Frame()}, position=(0.5, 1, 0))
    spring = SpringDamper("spring", arm.frame("tip"), mass.frame("c"), 10.0)
    assert System([arm, mass], loads=[spring]).body("arm").frame_names == ("left", "right", "tip")
    assert System([arm, mass]).body("arm") is arm  # points are frames only where they are used
