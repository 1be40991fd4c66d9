"""Periodic motions with clearances, backlash and oil films against long simulations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import periodic
from dolfinx_mbd.analyses.periodic import PeriodicError, PeriodicMotion
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.mechanism.bearings import ElasticBearing, FiniteBearing, ShortBearing
from tests.mechanism.bearings.test_elastic_bearing import SIZES, elastic_body

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
        # with 500 steps, a step with an impact before the cycle fails on some processors
        pytest.param(100.0, 1e8, 300.0, 0.1, 1000, 15, True, marks=pytest.mark.slow),
        pytest.param(100.0, 1e6, 50.0, 0.1, 500, 15, False, marks=pytest.mark.slow),
        pytest.param(100.0, 1e6, 0.0, 0.0, 1000, 40, False, marks=pytest.mark.slow),
    ],
)
def test_clearance(
    speed: float, stiffness: float, force: float, friction: float, steps: int, count: int,
    closed: bool,
) -> None:  # fmt: skip
    """The pins stay in contact, or lose it because of a force or of inertia."""
    system = slider_crank(speed, stiffness, force, friction)
    period = 2 * np.pi / speed
    cycle = periodic(system, period, dt=period / steps, redundant="drop")
    assert cycle.stability == "stable"
    contact, simulated = last_force(cycle, count, "piston pin contact")
    assert (contact.min() > 0.0) == closed
    rest = np.abs(cycle.multipliers[0]) ** (count - 1)  # of disturbances
    assert np.abs(contact - simulated).max() <= (1e-5 + 10 * rest) * contact.max()


def test_rattle_that_does_not_repeat() -> None:
    """Weakly damped impacts are chaotic; the error states how close the iteration came."""
    period = 2 * np.pi / 20
    with pytest.raises(PeriodicError, match=r"after 2 corrections.*grow by the factor") as error:
        periodic(
            slider_crank(20.0, 1e6), period, dt=period / 500, max_corrections=2, redundant="drop"
        )
    assert 1e-3 < error.value.closure < 1.0


@pytest.mark.filterwarnings("ignore::dolfinx_mbd.errors.AccuracyWarning")
@pytest.mark.parametrize(
    ("speed", "stiffness", "friction"),
    [
        (100.0, 1e8, 0.1),
        *(
            pytest.param(*values, marks=pytest.mark.slow)
            for values in ((100.0, 1e9, 0.0), (100.0, 1e8, 0.0), (20.0, 1e8, 0.0), (20.0, 1e6, 0.1))
        ),
    ],
)
def test_impact_in_a_long_step(speed: float, stiffness: float, friction: float) -> None:
    """Steps converge although the predicted pin is far outside the bore and friction reverses."""
    system, dt = slider_crank(speed, stiffness, 0.0, friction), 2 * np.pi / speed / 500
    run = mbd.simulate(system, t_end=1000 * dt, dt=dt, redundant="drop")
    assert len(run) == 1001
    assert run.element("piston pin contact").normal_force.max() > 0.0


def gears(mean: float, speed: float) -> mbd.System:
    """Return wheels with backlash; mean + 5 sin 2ωt N m and a damper act on the second one.

    The damper acts on the deviation of the wheel from half of the speed ω of the first one.
    """
    teeth, place = (20, 40), (0.06, 0, 0)
    ground = mbd.Ground({"one": mbd.Frame(), "two": mbd.Frame(place)})
    hub = {"hub": mbd.Frame()}
    first = mbd.RigidBody("first", 1.0, [1e-4] * 3, frames=hub)
    second = mbd.RigidBody("second", 2.0, [1e-3] * 3, frames=dict(hub), position=place)
    mesh = mbd.mechanism.GearPair(
        "mesh", first.frame("hub"), second.frame("hub"), teeth, 2e-3,
        stiffness=1e6, damping=60.0, backlash=2e-5,
    )  # fmt: skip
    joints = [
        mbd.revolute("one", ground.frame("one"), first.frame("hub")),
        mbd.revolute("two", ground.frame("two"), second.frame("hub")),
    ]

    def torque(t: float, x: float, v: float) -> float:
        return float(mean + 5 * np.sin(2 * speed * t) - 0.2 * (v + 0.5 * speed))

    load = mbd.JointLoad("load", "two", "rotation", torque)
    drive = mbd.Driver("drive", "one", mbd.constant_speed(speed))
    return mbd.System([ground, first, second], joints, drivers=[drive], loads=[mesh, load])


@pytest.mark.slow
@pytest.mark.parametrize(("mean", "speed"), [(8.0, 100.0), (1.0, 100.0)])
def test_backlash(mean: float, speed: float) -> None:
    """A torque that changes its sign drives the teeth through the backlash."""
    period, start = 4 * np.pi / speed, {"two": -speed / 2}  # a turn of the second wheel
    steps = round(500 * 100 / speed)  # an equal step size at all speeds
    cycle = periodic(gears(mean, speed), period, dt=period / steps, start=start)
    force = cycle.element("mesh").normal_force
    assert (force.max(axis=0) > 0.0).all() == (mean < 5.0)
    assert (force.min(axis=0) > 0.0).any() == (mean > 5.0)
    run = mbd.simulate(
        cycle.system, t_end=5 * period, dt=period / steps, start=start, tolerance=1e-9
    )
    simulated = run.element("mesh").normal_force[-steps - 1 :]
    assert np.abs(force - simulated).max() < 1e-6 * force.max()
    assert np.abs(cycle.multipliers).max() < 0.5


JOURNAL_SPEED = 500.0


def journal(kind: str) -> mbd.System:
    """Return a journal in an elastic ring under a force that rotates and pulsates."""
    body = elastic_body()
    ground = mbd.Ground({"centre": mbd.Frame()})
    ring = mbd.FlexibleBody("ring", body, damping_ratio=0.3)
    pin = mbd.RigidBody(
        "journal", 0.5, [1.0] * 3, (0, -1e-5, 0),
        frames={"pin": mbd.Frame()}, omega=(0, 0, JOURNAL_SPEED),
    )  # fmt: skip
    joints = [
        mbd.fixed("held", ground.frame("centre"), ring.frame("bore")),
        mbd.mechanism.Joint("plane", "planar", ground.frame("centre"), pin.frame("pin")),
    ]
    ends = ("ring", "bore"), ("journal", "pin")
    grid = {"shape": (32, 8)}
    films: dict[str, Any] = {
        "short": lambda: ShortBearing("film", *ends, *SIZES),
        "finite": lambda: FiniteBearing("film", *ends, *SIZES, **grid),
        "elastic": lambda: ElasticBearing("film", *ends, *SIZES, bore=body.bore("bore"), **grid),
    }

    def force(t: float, motion: Any) -> Any:
        phase = JOURNAL_SPEED * t
        return 600 * np.cos(phase), -2500 + 400 * np.sin(2 * phase), 0.0

    loads = [films[kind](), mbd.force("load", pin.frame("pin"), force)]
    drive = mbd.Driver("drive", "plane", mbd.constant_speed(JOURNAL_SPEED))
    return mbd.System([ground, ring, pin], joints, drivers=[drive], loads=loads)


@pytest.mark.parametrize(
    "kind", ["short", *(pytest.param(k, marks=pytest.mark.slow) for k in ("finite", "elastic"))]
)
def test_oil_films(kind: str) -> None:
    """The orbit in the film and the decay of disturbances agree with a simulation."""
    steps, period = 120, 2 * np.pi / JOURNAL_SPEED
    cycle = periodic(journal(kind), period, dt=period / steps, closed=1e-10)
    run = mbd.simulate(cycle.system, t_end=5 * period, dt=period / steps, tolerance=1e-9)
    force, simulated = cycle.element("film").force, run.element("film").force
    # after one, two and four periods
    errors = [np.abs(simulated[k * steps :][: steps + 1] - force).max() for k in (1, 2, 4)]
    assert errors[2] < 1e-8 * np.abs(force).max()
    decay = np.abs(cycle.multipliers).max()
    assert 0.0 < errors[1] / errors[0] < 10 * decay < 1.0
