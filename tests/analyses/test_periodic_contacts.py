"""Periodic motions with clearances and backlash against the last cycle of long simulations."""

from __future__ import annotations

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import periodic
from dolfinx_mbd.analyses.periodic import PeriodicError, PeriodicMotion
from dolfinx_mbd.arrays import Array

ALONG_X = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])


def slider_crank(
    speed: float, stiffness: float, force: float = 0.0, friction: float = 0.0
) -> mbd.System:
    """Return a rigid slider-crank whose piston pin has a clearance of 50 µm.

    `force` (N) pushes the piston towards the crank.
    """
    law = mbd.ContactLaw(stiffness, 1.0, 0.5, friction)
    guide = mbd.Frame((0, 0, 0), ALONG_X)
    ground = mbd.Ground({"main": mbd.Frame(), "guide": guide})
    pins = {"main": mbd.Frame(), "pin": mbd.Frame((0.05, 0, 0))}
    crank = mbd.RigidBody("crank", 1.0, [1e-3] * 3, frames=pins)
    bores = {"big": mbd.Frame((-0.06, 0, 0)), "small": mbd.Frame((0.06, 0, 0))}
    rod = mbd.RigidBody("rod", 0.3, [1e-5, 1e-3, 1e-3], frames=bores, position=(0.11, 0, 0))
    ends = {"pin": mbd.Frame(), "guide": guide}
    piston = mbd.RigidBody("piston", 0.2, [1e-4] * 3, frames=ends, position=(0.17, 0, 0))
    play = mbd.Clearance(radial=5e-5, law=law, radius=0.008)
    joints = [
        mbd.revolute("main", ground.frame("main"), crank.frame("main")),
        mbd.revolute("crank pin", crank.frame("pin"), rod.frame("big")),
        mbd.revolute("piston pin", rod.frame("small"), piston.frame("pin"), clearance=play),
        mbd.prismatic("guide", ground.frame("guide"), piston.frame("guide")),
    ]
    push = mbd.JointLoad("push", "guide", "displacement", lambda t, x, v: -force)
    drive = mbd.Driver("drive", "main", mbd.constant_speed(speed))
    return mbd.System([ground, crank, rod, piston], joints, drivers=[drive], loads=[push])


def last_force(cycle: PeriodicMotion, count: int, name: str) -> tuple[Array, Array]:
    """Return the contact force of a cycle, and of the last of `count` simulated periods."""
    steps = len(cycle) - 1
    run = mbd.simulate(
        cycle.system, t_end=count * cycle.period, dt=cycle.period / steps,
        tolerance=1e-9, redundant="drop",
    )  # fmt: skip
    return cycle.element(name).normal_force, run.element(name).normal_force[-steps - 1 :]


@pytest.mark.filterwarnings("ignore:contact:dolfinx_mbd.errors.AccuracyWarning")
@pytest.mark.parametrize(
    ("speed", "stiffness", "force", "friction", "steps", "count", "closed"),
    [
        (20.0, 1e6, 900.0, 0.0, 400, 4, True),
        (20.0, 1e8, 900.0, 0.0, 400, 4, True),
        (100.0, 1e8, 300.0, 0.1, 500, 15, True),
        (100.0, 1e6, 50.0, 0.1, 500, 15, False),
        pytest.param(100.0, 1e6, 0.0, 0.0, 1000, 60, False, marks=pytest.mark.slow),
    ],
)
def test_clearance(
    speed: float, stiffness: float, force: float, friction: float, steps: int, count: int,
    closed: bool,
) -> None:  # fmt: skip
    """Pins that stay in contact, and pins that lose it, by a force or by inertia."""
    system = slider_crank(speed, stiffness, force, friction)
    period = 2 * np.pi / speed
    cycle = periodic(system, period, dt=period / steps, redundant="drop")
    assert cycle.stability == "stable"
    one, two = last_force(cycle, count, "piston pin contact")
    assert (one.min() > 0.0) == closed
    rest = np.abs(cycle.multipliers[0]) ** (count - 1)
    assert np.abs(one - two).max() <= (1e-5 + 1e2 * rest) * one.max()


def test_rattle_that_does_not_repeat() -> None:
    """Weakly damped impacts are chaotic; the error says so, and how far it came."""
    period = 2 * np.pi / 20
    with pytest.raises(PeriodicError, match=r"after 2 corrections.*grow by the factor") as error:
        periodic(
            slider_crank(20.0, 1e6), period, dt=period / 500, max_corrections=2, redundant="drop"
        )
    assert 1e-3 < error.value.closure < 1.0


@pytest.mark.filterwarnings("ignore::dolfinx_mbd.errors.AccuracyWarning")
@pytest.mark.parametrize(
    ("speed", "stiffness", "friction"),
    [(100.0, 1e8, 0.0), (100.0, 1e9, 0.0), (20.0, 1e8, 0.0), (20.0, 1e6, 0.1), (100.0, 1e8, 0.1)],
)
def test_impact_in_a_long_step(speed: float, stiffness: float, friction: float) -> None:
    """Steps converge although the predicted pin is far beyond the bore, and friction reverses."""
    system, dt = slider_crank(speed, stiffness, 0.0, friction), 2 * np.pi / speed / 500
    run = mbd.simulate(system, t_end=1000 * dt, dt=dt, redundant="drop")
    assert len(run) == 1001
    assert run.element("piston pin contact").normal_force.max() > 0.0
