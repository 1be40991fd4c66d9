"""Histories of loads, springs, joints and drivers: power balance, action and reaction, geometry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import System
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism import (
    Bushing,
    Driver,
    FlexibleBody,
    Frame,
    Ground,
    JointFriction,
    JointLoad,
    JointSpring,
    PatternLoad,
    RigidBody,
    SpringDamper,
    constant_speed,
    force,
    revolute,
    spherical,
    torque,
)
from dolfinx_mbd.mechanism.mechanisms import SliderCrank, rigid_rod, slider_crank
from dolfinx_mbd.results import Solution
from dolfinx_mbd.results.histories import ElementHistory, rotation_matrices
from tests.models.rods import rod

GRAVITY = (0.3, -9.81, 0.1)
SPRINGS = ("strut", "stop", "mount", "coil")


@pytest.fixture(scope="module")
def run() -> Solution:
    """Return a flexible arm on a hinge, and a driven wheel, with a load of each kind."""
    ground = Ground({"o": Frame(), "far": Frame((1.0, 1.0, 0.2)), "axle": Frame((0, -1.0, 0))})
    arm = FlexibleBody("arm", rod(), position=(0.5, 0, 0), damping_ratio=0.0)
    ends = {"a": Frame((-0.2, 0, 0)), "b": Frame((0.2, 0.1, 0))}
    tilt = (np.cos(0.2), 0.0, 0.0, np.sin(0.2))
    bob = RigidBody("bob", 0.5, (0.01, 0.02, 0.02), frames=ends, position=(1.4, 0.1, 0))
    wheel = RigidBody(
        "wheel",
        1.0,
        (0.02, 0.02, 0.03),
        frames={"c": Frame(), "rim": Frame((0.2, 0, 0))},
        position=(0, -1.0, 0),
        rotation=tilt,
    )
    joints = [
        revolute("hinge", ground.frame("o"), arm.frame("left")),
        revolute("axle", ground.frame("axle"), wheel.frame("c")),
    ]
    loads = [
        SpringDamper("strut", ground.frame("far"), arm.frame("right"), 200.0, 3.0, 0.9),
        SpringDamper(
            "stop", wheel.frame("rim"), bob.frame("b"), law=lambda s, rate: 20 * s**3 + rate
        ),
        Bushing("mount", arm.frame("right"), bob.frame("a"), (900, 800, 700, 4, 5, 6), [0.2] * 6),
        JointSpring("coil", "hinge", 5.0, 0.1),
        JointFriction("brake", "hinge", 0.3, 0.5, viscous=0.02),
        JointLoad("motor", "hinge", "rotation", lambda t, s, rate: 2 * np.sin(9 * t) - 0.1 * rate),
        force("push", bob.frame("b"), (1.0, 2.0, 0.5), axes="frame"),
        torque("twist", wheel.frame("c"), lambda t, motion: -0.1 * motion.omega),
        PatternLoad("gust", arm.pattern("wind"), lambda t: 30 * t),
    ]
    drive = Driver("drive", "axle", constant_speed(4.0))
    system = System(
        [ground, arm, bob, wheel], joints, drivers=[drive], loads=loads, gravity=GRAVITY
    )
    return simulate(system, t_end=0.2, dt=1e-4)


def two_ended(run: Solution) -> list[str]:
    """Return the names of the elements that act on two bodies."""
    return [name for name in elements(run) if run.element(name).first_force.size]


def elements(run: Solution) -> list[str]:
    """Return the names of joints, drivers and loads in a run."""
    return run.names()[len(run._bodies) :]


def test_power_of_all_elements_is_the_rate_of_the_energy_of_the_bodies(run: Solution) -> None:
    bodies = [run.body(name) for name in ("arm", "bob", "wheel")]
    energy = sum(b.kinetic_energy + b.elastic_energy + b.gravity_energy for b in bodies)
    work = sum(run.element(name).work for name in elements(run))
    change = energy - energy[0]
    assert np.abs(change).max() > 1.0
    np.testing.assert_allclose(work, change, atol=1e-5 * np.ptp(energy))


def test_energy_and_power_of_springs(run: Solution) -> None:
    """The work done on springs is their gain of energy plus a dissipation that is not negative."""
    for name in SPRINGS:
        history = run.element(name)
        dissipated = -history.work - (history.energy - history.energy[0])
        assert np.ptp(history.energy) > 0
        assert dissipated.min() > -1e-6 * np.ptp(history.energy)
    stored = sum(run.element(name).energy for name in SPRINGS)
    bodies = sum(run.body(name).elastic_energy for name in ("arm", "bob", "wheel"))
    np.testing.assert_allclose(stored + bodies, run.energies().elastic, rtol=1e-12)
    for name in ("hinge", "axle"):
        assert np.abs(run.element(name).work).max() < 1e-6 * np.ptp(stored)


def test_action_and_reaction(run: Solution) -> None:
    """Forces on both bodies cancel, and so do all moments about the first end."""
    ends = {
        "strut": (("far",), ("arm", "right")),
        "stop": (("wheel", "rim"), ("bob", "b")),
        "mount": (("arm", "right"), ("bob", "a")),
    }
    assert {*ends, "coil", "brake", "motor", "hinge", "axle", "drive"} == {*two_ended(run)}
    for name in two_ended(run):
        history = run.element(name)
        np.testing.assert_array_equal(history.force, -history.first_force)
        moments = history.moment + history.first_moment
        if name in ends:
            first, second = ends[name]
            start = run.sensor(*first) if len(first) == 2 else np.array([1.0, 1.0, 0.2])
            moments += np.cross(run.sensor(*second) - start, history.force)
        size = np.abs(history.moment).max() + np.abs(history.force).max()
        assert np.abs(moments).max() < 1e-6 * size


def test_a_strut_is_a_spring_and_a_damper(run: Solution) -> None:
    history, tip = run.element("strut"), run.sensor("arm", "right")
    span = tip - (1.0, 1.0, 0.2)
    length = np.linalg.norm(span, axis=1)
    rate = np.sum(span * run.sensor("arm", "right", "velocity"), axis=1) / length
    np.testing.assert_allclose(history.length, length, rtol=1e-12)
    np.testing.assert_allclose(history.length_rate, rate, atol=1e-10)
    tension = 200.0 * (length - 0.9) + 3.0 * rate
    np.testing.assert_allclose(history.tension, tension, rtol=1e-9)
    np.testing.assert_allclose(history.force, -tension[:, None] * span / length[:, None], rtol=1e-9)
    np.testing.assert_allclose(history.power, -tension * rate, rtol=1e-7, atol=1e-9)


def test_axes(run: Solution) -> None:
    """Axes of the ends are those of their bodies; joint forces agree with `run.joint`."""
    A = rotation_matrices(run.body("wheel").rotation)
    fixed, moving = run.element("stop"), run.element("stop", axes="first")
    np.testing.assert_allclose(
        np.einsum("tij,tj->ti", A, moving.first_force), fixed.first_force, atol=1e-12
    )
    push = run.element("push", axes="second")
    np.testing.assert_allclose(push.force, np.tile((1.0, 2.0, 0.5), (len(run), 1)), atol=1e-12)
    hinge, joint = run.element("hinge", axes="first"), run.joint("hinge")
    np.testing.assert_allclose(hinge.force, joint.force, atol=1e-9)
    np.testing.assert_allclose(hinge.moment, joint.moment, atol=1e-7)
    gust = run.element("gust", axes="second")
    np.testing.assert_allclose(gust.force, np.outer(30 * run.time, (0, 1, 0)), atol=1e-12)
    np.testing.assert_allclose(gust.amplitude, 30 * run.time, rtol=1e-12)
    with pytest.raises(InputError) as error:
        run.element("push", axes="first")
    assert error.value.value == "first"
    with pytest.raises(InputError):
        run.element("strud")
    with pytest.raises(InputError):
        run.joint("strut")


def test_forces_of_elements_are_those_at_the_interfaces(run: Solution) -> None:
    A = rotation_matrices(run.body("arm").rotation)
    total = sum(
        (run.element("strut").force, run.element("mount").first_force),
        start=np.zeros((len(run), 3)),
    )
    at_end = run.body("arm").wrenches["right"][:, :3]
    np.testing.assert_allclose(np.einsum("tij,tj->ti", A, at_end), total, atol=1e-10)


def test_a_driver_has_its_torque_and_power(run: Solution) -> None:
    drive = run.element("drive")
    np.testing.assert_allclose(drive.rotation_rate, 4.0, rtol=1e-9)
    np.testing.assert_allclose(drive.power, 4.0 * drive.moment[:, 2], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(drive.power, run.joint("drive").power)
    coil, hinge = run.element("coil"), run.joint("hinge")
    np.testing.assert_allclose(coil.rotation, hinge.rotation, atol=1e-14)
    np.testing.assert_array_equal(coil.rotation_rate, hinge.rotation_rate)
    np.testing.assert_allclose(
        coil.moment[:, 2], -5.0 * hinge.rotation - 0.1 * hinge.rotation_rate, atol=1e-9
    )


def test_momenta_of_bodies(run: Solution) -> None:
    parts = [run.body(name) for name in ("arm", "bob", "wheel")]
    total = sum(np.hstack([p.momentum, p.angular_momentum]) for p in parts)
    np.testing.assert_allclose(total, run.momenta(), atol=1e-12 * np.abs(total).max())
    momentum, expected = run.body("bob").momentum, 0.5 * run.body("bob").velocity
    np.testing.assert_allclose(momentum, expected, atol=1e-12 * np.abs(expected).max())


def test_joints_of_a_slider_crank_move_as_the_closed_form_says() -> None:
    system = slider_crank(
        rigid_rod(length=0.4, mass=0.3),
        crank_radius=0.1,
        crank_mass=0.5,
        piston_mass=0.2,
        speed=60.0,
    )
    run = simulate(system, t_end=0.05, dt=1e-4)
    motion = SliderCrank(0.1, 0.4).motion(60.0 * run.time, 60.0)
    guide = run.joint("guide")
    np.testing.assert_allclose(guide.displacement[:, 2], motion.slider, atol=1e-7)
    np.testing.assert_allclose(guide.displacement_rate[:, 2], motion.slider_velocity, atol=1e-4)
    main, pin = run.joint("main"), run.joint("crank pin")
    np.testing.assert_allclose(main.rotation, 60.0 * run.time, atol=1e-9)
    np.testing.assert_allclose(main.rotation_rate, 60.0, rtol=1e-7)
    np.testing.assert_allclose(pin.rotation, motion.rod_angle - 60.0 * run.time, atol=1e-6)
    np.testing.assert_allclose(pin.rotation_rate, motion.rod_velocity - 60.0, atol=1e-3)
    violations = [run.joint(name).violation for name in elements(run)]
    np.testing.assert_array_equal(np.max(violations, axis=0), run.constraint_violation())
    assert 0.0 < np.max(violations) < 1e-7


def test_a_spherical_joint_whose_rotation_is_undefined() -> None:
    """The rotation is undefined if x of the second frame is along z of the first frame.

    Other joints are not affected.
    """
    ground = Ground({"o": Frame(), "p": Frame((1.0, 0, 0))})
    rotated = Frame(axes=np.array([[0, 0, -1.0], [0, 1, 0], [1, 0, 0]]))
    one = RigidBody("one", 1.0, [1.0] * 3, frames={"o": Frame()})
    two = RigidBody("two", 1.0, [1.0] * 3, frames={"p": rotated}, position=(1.0, 0, 0))
    joints = [
        revolute("hinge", ground.frame("o"), one.frame("o")),
        spherical("ball", ground.frame("p"), two.frame("p")),
    ]
    spring = JointSpring("coil", "hinge", 2.0, free=0.1)
    run = simulate(System([ground, one, two], joints, loads=[spring]), t_end=0.1, dt=0.01)
    assert np.isnan(run.joint("ball").rotation_rate).all()
    omega = np.sqrt(2.0)
    np.testing.assert_allclose(
        run.joint("hinge").rotation, 0.1 * (1 - np.cos(omega * run.time)), atol=1e-6
    )


@pytest.mark.parametrize("redundant", ["keep", "drop"])
def test_redundant_hinges_share_or_drop_their_load(redundant: Any) -> None:
    """Two hinges share the weight with minimum norm; a dropped one carries nothing."""
    frames = {"low": Frame((0, 0, -0.5)), "high": Frame((0, 0, 0.5))}
    ground = Ground(frames)
    door = RigidBody.box("door", (0.8, 0.05, 1.2), mass=20.0, centre=(0, 0, 0), frames=frames)
    joints = [revolute(k, ground.frame(k), door.frame(k)) for k in frames]
    system = System([ground, door], joints, gravity=(0, 0, -10.0))
    run = simulate(system, t_end=0.01, dt=1e-3, redundant=redundant)
    forces = {name: run.element(name).force[-1, 2] for name in frames}
    assert sum(forces.values()) == pytest.approx(200.0, rel=1e-9)
    assert max(forces.values()) == pytest.approx(100.0 if redundant == "keep" else 200.0)
    for name in frames:
        element, joint = run.element(name, axes="first"), run.joint(name)
        np.testing.assert_allclose(element.force, joint.force, atol=1e-9)
        np.testing.assert_allclose(element.moment, joint.moment, atol=1e-9)
    total = sum(wrench[:, :3] for wrench in run.body("door").wrenches.values())
    np.testing.assert_allclose(total, np.tile((0, 0, 200.0), (len(run), 1)), atol=1e-7)


def test_fields_that_do_not_apply_are_empty(run: Solution) -> None:
    history = run.element("push")
    assert isinstance(history, ElementHistory)
    assert not history.length.size and not history.first_force.size and not history.rotation.size
    assert run.element("mount").displacement.shape == (len(run), 3)
    assert not history.energy.any()
