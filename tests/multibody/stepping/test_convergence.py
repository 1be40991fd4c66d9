"""The measure of a step's residual: each body by itself."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.multibody import (
    Bushing,
    Driver,
    Frame,
    Ground,
    RigidBody,
    Solution,
    SpringDamper,
    System,
    constant_speed,
    fixed,
    revolute,
    simulate,
)

MASS, FREQUENCY = 1e-3, 20.0


def oscillator(machine: float, *, hung_from_machine: bool) -> Solution:
    """A part of 1 g on a spring, on the ground or on a bolted machine of a mass, for 1 s."""
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
        assert np.abs(x - exact).max() < 2e-4 * amplitude  # (of which the step takes 1e-4)
        assert np.abs(x - reference.body("part").position[:, 0]).max() < 1e-6 * amplitude
        assert run.iterations <= 1.1 * reference.iterations


def test_a_body_without_forces_on_a_stiff_support_converges() -> None:
    """Its forces are round-off of its support, 1e9 N/m, while another body turns fast."""
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
