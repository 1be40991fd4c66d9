"""Mechanisms with parameters of bodies, joints, springs, drivers and gravity."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd import mechanisms
from tests.models.rods import rod

GROUND = mbd.Ground({"pivot": mbd.Frame()})


def oscillator(p: Mapping[str, float]) -> mbd.System:
    """Return a mass at y = -1.2 on a spring with the unloaded length 1, from the origin."""
    frames = {"centre": mbd.Frame()}
    weight = mbd.RigidBody("weight", p["m"], [0.01] * 3, position=(0, -1.2, 0), frames=frames)
    ends = GROUND.frame("pivot"), weight.frame("centre")
    spring = mbd.SpringDamper("spring", *ends, p["k"], length=1.0)
    return mbd.System([GROUND, weight], loads=[spring])


def double_pendulum(p: Mapping[str, float]) -> mbd.System:
    """Return two hinged bars with a coil spring.

    The parameters are a mass, a length, a stiffness, gravity g, and optionally gravity along x,
    "side".
    """
    frames = {"a": mbd.Frame((0, p["length"] / 2, 0)), "b": mbd.Frame((0, -0.25, 0))}
    upper = mbd.RigidBody(
        "upper", p["mass"], [0.02, 0.01, 0.02], position=(0, -p["length"] / 2, 0), frames=frames
    )
    lower = mbd.RigidBody(
        "lower",
        1.0,
        [0.03, 0.01, 0.02],
        position=(0.2, -p["length"] / 2 - 0.35, 0.0),
        frames={"a": mbd.Frame((-0.2, 0.1, 0)), "tip": mbd.Frame((0, -0.3, 0.05))},
    )
    pins = [
        mbd.revolute("pin", GROUND.frame("pivot"), upper.frame("a")),
        mbd.universal("hook", upper.frame("b"), lower.frame("a")),
    ]
    coil = mbd.JointSpring("coil", "pin", stiffness=p["k"], damping=0.05)
    return mbd.System(
        [GROUND, upper, lower], pins, loads=[coil], gravity=(p.get("side", 1.0), -p["g"], 0.3)
    )


def slider_crank(p: Mapping[str, float]) -> mbd.System:
    """Return a slider-crank with a flexible rod and a driver.

    Its parameters belong to rod, crank and piston.
    """
    body = rod()
    body = body.replace(stiffness=p["stiffness"] * body.stiffness)
    return mechanisms.slider_crank(
        body,
        speed=100.0 * p.get("speed", 1.0),
        crank_radius=p["radius"],
        ends=("left", "right"),
        crank_mass=0.5,
        piston_mass=p["piston"],
    )


class OwnBody(mbd.RigidBody):
    """A rigid body that overrides a method, so that the kernels for rigid bodies do not apply."""

    def poses(self, q: np.ndarray, position: np.ndarray, rotation: np.ndarray) -> None:
        super().poses(q, position, rotation)


def own_pendulum(p: Mapping[str, float]) -> mbd.System:
    """Return a pendulum with a body of another kind; parameters are its mass and its length."""
    frames = {"pin": mbd.Frame((0, p["length"], 0))}
    bob = OwnBody(
        "bob",
        p["mass"],
        [0.02] * 3,
        position=(p["length"], 0, 0),
        frames=frames,
        rotation=[0.5**0.5, 0, 0, 0.5**0.5],
    )
    pin = mbd.revolute("pin", GROUND.frame("pivot"), bob.frame("pin"))
    return mbd.System([GROUND, bob], [pin], gravity=(0, -9.81, 0))
