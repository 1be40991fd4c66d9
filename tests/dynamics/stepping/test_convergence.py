"""The convergence of a step is measured for each body separately."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import Adaptive, System
from dolfinx_mbd.mechanism import (
    Bushing,
    Driver,
    Frame,
    Ground,
    RigidBody,
    SpringDamper,
    constant_speed,
    cylindrical,
    fixed,
    force,
    prismatic,
    revolute,
    spherical,
    torque,
)
from dolfinx_mbd.results import Solution

MASS, FREQUENCY = 1e-3, 20.0


def oscillator(machine: float, *, hung_from_machine: bool) -> Solution:
    """Simulate 0.5 s of a part of 1 g on a spring from the ground or from a bolted machine."""
    ground = Ground({"bolt": Frame(), "spring": Frame((0, 5, 0))})
    heavy = RigidBody(
        "machine",
        machine,
        [0.1 * machine] * 3,
        frames={"bolt": Frame(), "spring": Frame((0, 5, 0))},
    )
    part = RigidBody("part", MASS, [1e-7] * 3, frames={"end": Frame()}, position=(0.1, 5, 0))
    top = heavy if hung_from_machine else ground
    spring = SpringDamper(
        "spring",
        top.frame("spring"),
        part.frame("end"),
        stiffness=MASS * FREQUENCY**2,
        length=0.09,
    )
    bolt = fixed("bolt", ground.frame("bolt"), heavy.frame("bolt"))
    system = System([ground, heavy, part], [bolt], loads=[spring], gravity=(-9.81, 0, 0))
    return simulate(system, t_end=0.5, dt=5e-4)


@pytest.mark.parametrize("hung_from_machine", [False, True])
def test_a_heavy_body_at_rest_does_not_change_the_motion_of_a_light_one(
    hung_from_machine: bool,
) -> None:
    """x = x₀ + (0.1 − x₀) cos ωt with x₀ = l₀ − g/ω², whatever the mass of the machine."""
    centre = 0.09 - 9.81 / FREQUENCY**2
    amplitude = 0.1 - centre
    reference = oscillator(MASS, hung_from_machine=hung_from_machine)
    for machine in (1e4, 1e7):
        run = oscillator(machine, hung_from_machine=hung_from_machine)
        x = run.body("part").position[:, 0]
        exact = centre + amplitude * np.cos(FREQUENCY * run.time)
        assert np.abs(x - exact).max() < 2e-4 * amplitude  # the step has an error of 1e-4
        assert np.abs(x - reference.body("part").position[:, 0]).max() < 1e-6 * amplitude
        assert run.iterations <= 1.1 * reference.iterations


def test_a_body_without_forces_on_a_stiff_support_converges() -> None:
    """The only forces on a body are round-off of its support, 1e9 N/m; another body turns fast."""
    ground = Ground({"axle": Frame(), "support": Frame((3.0, 0.7, 0.1))})
    rotor = RigidBody("rotor", 10.0, [0.1] * 3, (0.1, 0, 0), frames={"axle": Frame()})
    block = RigidBody(
        "block", 1.0, [0.1] * 3, frames={"foot": Frame((0.3, 0, 0))}, position=(2.7, 0.7, 0.1)
    )
    foot = Bushing(
        "foot",
        ground.frame("support"),
        block.frame("foot"),
        stiffness=[1e9] * 3 + [1e7] * 3,
    )
    system = System(
        [ground, rotor, block],
        [revolute("axle", ground.frame("axle"), rotor.frame("axle"))],
        drivers=[Driver("drive", "axle", constant_speed(100.0))],
        loads=[foot],
    )
    run = simulate(system, t_end=0.2, dt=1e-3)
    assert np.abs(run.body("block").position - [2.7, 0.7, 0.1]).max() < 1e-13
    assert run.iterations <= 5 * 200
    angle = 100.0 * run.time
    exact = np.column_stack([np.cos(0.5 * angle), 0 * angle, 0 * angle, np.sin(0.5 * angle)])
    assert np.abs(run.body("rotor").rotation - exact).max() < 1e-9


@pytest.mark.parametrize("mass", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("pull", [1e4, 1e6])
def test_a_small_torque_of_a_drive_beside_large_forces(mass: float, pull: float) -> None:
    """A drive turns a light disc, and its torque is the load on a heavy disc bolted to it.

    The speed is constant. An error ε of the angle causes the torque J ε/(β dt²) with the inertia of
    both discs.
    """

    def load(t: float) -> float:
        return mass * (1.0 + 0.5 * float(np.sin(50.0 * t)))

    ground = Ground({"axle": Frame()})
    frames = {"axle": Frame(), "bolt": Frame((0, 0, 0.1))}
    first = RigidBody("first", mass, [1e-3 * mass] * 3, frames=frames)
    second = RigidBody(
        "second", 1e3 * mass, [mass] * 3, frames={"bolt": Frame()}, position=(0, 0, 0.1)
    )
    system = System(
        [ground, first, second],
        [
            revolute("axle", ground.frame("axle"), first.frame("axle")),
            fixed("bolt", first.frame("bolt"), second.frame("bolt")),
        ],
        drivers=[Driver("drive", "axle", constant_speed(10.0))],
        loads=[
            torque("load", second.frame("bolt"), lambda t, motion: (0, 0, -load(t))),
            force("pull", first.frame("axle"), (pull * mass, 0.3 * pull * mass, 0)),
        ],
    )
    run = simulate(system, t_end=0.5, dt=1e-3)
    measured = np.abs(run.joint("drive").power / 10.0)
    assert np.abs(measured - [load(t) for t in run.time])[20:].max() < 1e-6 * mass
    assert run.iterations <= 2 * 500


def slider_crank(offset: float, dt: float | Adaptive, t_end: float) -> Solution:
    """Return a rigid slider-crank; the frame of its rod is `offset` metres away from the rod."""
    slide = Frame(axes=[[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    origin, end = offset * np.array([1.0, -0.5, 0.2]), np.array([0.3, 0, 0])
    ground = Ground({"o": Frame(), "x": slide})
    crank = RigidBody("crank", 1.0, [1e-2] * 3, frames={"o": Frame(), "p": Frame((0.15, 0, 0))})
    rod = RigidBody(
        "rod",
        0.15,
        [1e-6, 1.1e-3, 1.1e-3],
        centre=origin + end / 2,
        frames={"a": Frame(origin), "b": Frame(origin + end)},
        position=0.5 * end - origin,
    )
    slider = RigidBody(
        "slider", 0.08, [1e-4] * 3, frames={"p": Frame(), "x": slide}, position=(0.45, 0, 0)
    )
    joints = [
        revolute("main", ground.frame("o"), crank.frame("o")),
        cylindrical("crank pin", crank.frame("p"), rod.frame("a")),
        spherical("pin", rod.frame("b"), slider.frame("p")),
        prismatic("guide", ground.frame("x"), slider.frame("x")),
    ]
    drive = Driver("drive", "main", constant_speed(150.0))
    system = System([ground, crank, rod, slider], joints, drivers=[drive])
    return simulate(system, t_end=t_end, dt=dt)


@pytest.mark.parametrize("offset", [3.0, 10.0, 100.0, 1000.0])
@pytest.mark.parametrize("dt", [1e-5, 2e-6])
def test_a_frame_far_from_its_body_converges(offset: float, dt: float) -> None:
    """The forces agree up to round-off and truncation, which grow with the distance."""
    far, near = (slider_crank(x, dt, 200 * dt) for x in (offset, 0.0))
    exact, size = (np.linalg.norm(run.joint("crank pin").force, axis=1) for run in (near, far))
    if offset < 1000:
        assert np.abs(size - exact)[5:].max() < (1e-5 + 5e-6 * offset) * exact.max()
    assert far.iterations < 5 * 200


@pytest.mark.parametrize("offset", [10.0, 100.0])
def test_adaptive_steps_with_a_frame_far_from_its_body(offset: float) -> None:
    control = Adaptive(1e-7)
    far, near = (slider_crank(x, control, 0.02).body("slider").position[-1] for x in (offset, 0.0))
    assert far == pytest.approx(near, abs=1e-6)
