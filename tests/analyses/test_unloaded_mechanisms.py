"""Equilibria of flexible mechanisms without loads, where all forces are round-off; small loads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.kernels.rotations import exp_rotation
from tests.models.rods import rod


def unloaded(case: str, place: Any, R: Any) -> mbd.System:
    """Return the ground and one or two bodies in a line without forces at the start.

    One or two bodies are flexible; a spring is unstretched. The centre of the first body is at
    `place`; all bodies have the axes R.
    """
    body, (left, right) = rod(), (np.array([x, 0.0, 0.0]) for x in (-0.5, 0.5))
    points = {"near": left, "far": 2 * right + right}
    ground = mbd.Ground({k: mbd.Frame(tuple(place + R @ x), R) for k, x in points.items()})
    first = mbd.FlexibleBody("first", body, position=tuple(place), rotation=R)
    second = mbd.FlexibleBody("second", body, position=tuple(place + R @ (2 * right)), rotation=R)
    hub = {"o": mbd.Frame()}
    disc = mbd.RigidBody(
        "disc", 1.0, [0.1] * 3, frames=hub, position=tuple(place + R @ right), rotation=R
    )
    coil = mbd.JointSpring("coil", "hinge", stiffness=100.0)
    near, end = (ground.frame("near"), first.frame("left")), first.frame("right")
    if case == "spring at the ground":
        return mbd.System([ground, first], [mbd.revolute("hinge", *near)], loads=[coil])
    held = mbd.fixed("held", *near)
    if case == "spring at a disc":
        hinge = mbd.revolute("hinge", end, disc.frame("o"))
        return mbd.System([ground, first, disc], [held, hinge], loads=[coil])
    if case == "spring between bodies":
        hinge = mbd.revolute("hinge", end, second.frame("left"))
        return mbd.System([ground, first, second], [held, hinge], loads=[coil])
    joints = [
        mbd.revolute("hinge", *near),
        mbd.fixed("seam", end, second.frame("left")),
        mbd.spherical("ball", ground.frame("far"), second.frame("right")),
    ]
    return mbd.System([ground, first, second], joints)


UNLOADED = ("spring at the ground", "spring at a disc", "spring between bodies", "closed loop")


@pytest.mark.parametrize("case", UNLOADED)
@pytest.mark.parametrize("seed", range(6))
def test_no_load(case: str, seed: int) -> None:
    """An equilibrium is found where all forces are round-off; a deformed start ends undeformed."""
    rng = np.random.default_rng(seed)
    place, R = (1.0, 10.0)[seed % 2] * rng.normal(size=3), exp_rotation(rng.normal(size=3))
    system = unloaded(case, place, R)
    q = np.concatenate([body.initial_coordinates() for body in system.bodies])
    flexible = [k for k, body in enumerate(system.bodies) if isinstance(body, mbd.FlexibleBody)]
    if seed > 2 and case != "closed loop":  # deformed bodies would not close the loop
        for k in flexible:
            q[system.q_slices[k]][7:] = 1e-6 * rng.normal(size=2)
    state = mbd.equilibrium(system, q=q)
    for k in flexible:
        assert np.abs(state.q[system.q_slices[k]][7:]).max() < 1e-12
    mbd.linearize(system, state)


@pytest.mark.parametrize("force", [1.0, 1e-6, 1e-10, 1e-14])
def test_small_loads_count(force: float) -> None:
    """The deflection is proportional to the load, also below the round-off of positions."""
    body = rod()
    ground = mbd.Ground({"o": mbd.Frame((-0.5, 0, 0))})
    part = mbd.FlexibleBody("rod", body)
    held = mbd.fixed("held", ground.frame("o"), part.frame("left"))
    push = mbd.force("push", part.frame("right"), (force, 0.0, 0.0))
    state = mbd.equilibrium(mbd.System([ground, part], [held], loads=[push]))
    # The axial mode moves both ends by 1; the mode has the stiffness 5e6 N/m, so that 2 F = K η
    assert state.q[-2] == pytest.approx(2 * force / 5e6, rel=1e-8)
