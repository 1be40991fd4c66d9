"""Equilibria of mechanisms whose contacts are open at the start: gears with backlash, end stops."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import equilibrium
from dolfinx_mbd.dynamics import EquilibriumError
from dolfinx_mbd.results import Solution

ANGLE = math.radians(20.0)
MODULE, STIFFNESS = 2e-3, 2e8


def involute(angle: float) -> float:
    """Return inv α = tan α − α."""
    return math.tan(angle) - angle


def gears(
    teeth: tuple[int, int],
    torque: float,
    spring: float | None,
    extra_distance: float,
    backlash: float,
) -> mbd.System:
    """Return a pair of gears: a torque acts on gear one, and a torsion spring on gear two.

    `extra_distance` increases the centre distance beyond the standard one, m.
    """
    distance = 0.5 * MODULE * abs(sum(teeth)) + extra_distance
    place = (distance * math.cos(0.4), distance * math.sin(0.4), 0)
    ground = mbd.Ground({"a": mbd.Frame(), "b": mbd.Frame(place)})
    one = mbd.RigidBody("one", 1.0, [1e-3] * 3, frames={"c": mbd.Frame()})
    two = mbd.RigidBody("two", 2.0, [4e-3] * 3, position=place, frames={"c": mbd.Frame()})
    joints = [
        mbd.revolute("a", ground.frame("a"), one.frame("c")),
        mbd.revolute("b", ground.frame("b"), two.frame("c")),
    ]
    mesh = mbd.mechanism.GearPair(
        "mesh",
        one.frame("c"),
        two.frame("c"),
        teeth=teeth,
        module=MODULE,
        stiffness=STIFFNESS,
        backlash=backlash,
    )
    loads = [mesh, mbd.JointLoad("T", "a", "rotation", torque)]
    if spring is not None:
        loads.append(mbd.JointSpring("spring", "b", stiffness=spring))
    return mbd.System([ground, one, two], joints, loads=loads)


@pytest.mark.parametrize(
    ("teeth", "extra_distance"),
    [((20, 41), 0.0), ((20, 41), 5e-4), ((17, 17), 0.0), ((20, -60), 0.0)],
)
@pytest.mark.parametrize(
    ("torque", "spring", "backlash"),
    [
        (5.0, 800.0, 5e-5),
        (-5.0, 800.0, 1e-3),
        (40.0, 90.0, 2e-4),
        (-1e-3, 10.0, 2e-3),
        (3.0, 5.0, 0.0),
    ],
)
def test_gears_with_backlash(teeth, extra_distance, torque, spring, backlash) -> None:
    """The rotation follows from the spring, the backlash and the compression of the teeth.

    The softest springs let the wheels rotate by many teeth.
    """
    state = equilibrium(gears(teeth, torque, spring, extra_distance, backlash))
    base1, base2 = (0.5 * MODULE * z * math.cos(ANGLE) for z in teeth)  # signed base radii
    force, side = abs(torque) / base1, math.copysign(1.0, torque)
    wheel = -side * force * base2 / spring  # its angle, from the balance of torques
    # pressure angle at this distance of the centres
    alpha = math.acos(
        (base1 + base2)
        / math.copysign(0.5 * MODULE * abs(sum(teeth)) + extra_distance, base1 + base2)
    )
    opening = 0.5 * backlash + (base1 + base2) * (involute(alpha) - involute(ANGLE))
    angle = side * (force / STIFFNESS + opening) / base1 - wheel * base2 / base1
    np.testing.assert_allclose(state.angles, (angle, wheel), rtol=1e-6)


def test_a_train_of_gears_closes_one_backlash_after_the_other() -> None:
    z, count, torque, spring, b = 20, 4, 2.0, 50.0, 3e-4  # z teeth, backlash b
    radius = 0.5 * MODULE * z
    places = [(2 * radius * k, 0, 0) for k in range(count)]
    ground = mbd.Ground({f"g{k}": mbd.Frame(place) for k, place in enumerate(places)})
    wheels = [
        mbd.RigidBody(f"w{k}", 1.0, [1e-3] * 3, position=place, frames={"c": mbd.Frame()})
        for k, place in enumerate(places)
    ]
    joints = [
        mbd.revolute(f"j{k}", ground.frame(f"g{k}"), wheel.frame("c"))
        for k, wheel in enumerate(wheels)
    ]
    loads: list = [
        mbd.mechanism.GearPair(
            f"m{k}",
            wheels[k].frame("c"),
            wheels[k + 1].frame("c"),
            teeth=(z, z),
            module=MODULE,
            stiffness=STIFFNESS,
            backlash=b,
        )
        for k in range(count - 1)
    ]
    loads += [
        mbd.JointLoad("T", "j0", "rotation", torque),
        mbd.JointSpring("spring", f"j{count - 1}", stiffness=spring),
    ]
    state = equilibrium(mbd.System([ground, *wheels], joints, loads=loads))
    base = radius * math.cos(ANGLE)
    # Rotation in one pair of wheels by the backlash and by the compression of the teeth
    lag = (0.5 * b + torque / base / STIFFNESS) / base
    expected = [(-1) ** k * (torque / spring + (count - 1 - k) * lag) for k in range(count)]
    np.testing.assert_allclose(state.angles, expected, rtol=1e-6)


def test_gears_without_resistance_have_no_equilibrium() -> None:
    with pytest.raises(EquilibriumError, match="nothing resists"):
        equilibrium(gears((20, 41), 5.0, None, 0.0, 5e-5))


@pytest.mark.parametrize(("lower", "stiffness"), [(-0.05, 1e6), (-1.4, 30.0), (-1e-6, 1e9)])
def test_an_arm_falls_onto_its_stop(lower: float, stiffness: float) -> None:
    """The torque of the stop balances that of the weight."""
    ground = mbd.Ground({"o": mbd.Frame()})
    arm = mbd.RigidBody("arm", 1.0, [0.01] * 3, (0.2, 0, 0), frames={"o": mbd.Frame()})
    stop = mbd.mechanism.JointStop(
        "stop", "pin", mbd.ContactLaw(stiffness, exponent=1.0), lower=lower
    )
    pin = mbd.revolute("pin", ground.frame("o"), arm.frame("o"))
    system = mbd.System([ground, arm], [pin], loads=[stop], gravity=(0, -9.81, 0))
    state = equilibrium(system)
    (angle,) = state.angles
    assert angle < lower
    assert stiffness * (lower - angle) == pytest.approx(9.81 * 0.2 * math.cos(angle), rel=1e-7)


@pytest.mark.parametrize("height", [1e-6, 0.01, 3.0])
def test_a_box_falls_onto_three_balls(height: float) -> None:
    """Moments determine the three contact forces; the contacts close one after the other."""
    points = {"a": (0.1, 0.2, 0), "b": (-0.3, 0.1, 0), "c": (0.05, -0.25, 0)}
    ground = mbd.Ground({"floor": mbd.Frame()})
    frames = {key: mbd.Frame(point) for key, point in points.items()}
    tilt = (math.cos(0.01), math.sin(0.01), 0, 0)
    box = mbd.RigidBody(
        "box", 6.0, [0.1, 0.2, 0.3], frames=frames, position=(0, 0, height), rotation=tilt
    )
    law = mbd.ContactLaw(1e8, friction=0.2)
    loads: list = [
        mbd.mechanism.plane_contact(key, ground.frame("floor"), box.frame(key), 0.01, law)
        for key in points
    ]
    # A weak bushing determines the position in the plane and the rotation about z.
    loads.append(
        mbd.Bushing(
            "hold",
            ground.frame("floor"),
            box.frame("a"),
            stiffness=[1e-3, 1e-3, 0, 0, 0, 1e-3],
        )
    )
    system = mbd.System([ground, box], loads=loads, gravity=(0, 0, -9.81))
    run = Solution(system, [equilibrium(system)])
    forces = [float(run.element(key).normal_force[0, 0]) for key in points]
    matrix = np.vstack([np.ones(3), np.array([*points.values()])[:, :2].T])
    expected = np.linalg.solve(matrix, [6.0 * 9.81, 0, 0])
    np.testing.assert_allclose(forces, expected, rtol=2e-3)
