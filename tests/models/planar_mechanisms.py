"""Rigid planar mechanisms of M. Hać and J. Łazęcki (V1), driven by torques from rest.

V1 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

import numpy as np

import dolfinx_mbd as mbd
from demos.papers.models.stick_model import Rod, StickModel, newmark
from dolfinx_mbd.mechanism.mechanisms import rigid_rod, slider_crank

DENSITY, YOUNG = 7800.0, 2.1e11
AREAS, LENGTHS = (2.564e-4, 1.282e-4), (0.1, 0.4)
"""Areas, m², and lengths, m, of crank and rod of the slider-crank."""


def robotic_arm() -> mbd.System:
    """Return the arm of their Table 2: a rod of 1 m with a payload, torque 1 + 0.5 sin φ (N m)."""
    mass, payload = DENSITY * 0.9295e-4, 0.3625  # area of the rod in m², payload in kg
    total = mass + payload
    centre = (0.5 * mass + payload) / total
    about_centre = mass / 3 + payload - total * centre**2
    moments = (1e-6, about_centre, about_centre)
    ground = mbd.Ground({"base": mbd.Frame()})
    arm = mbd.RigidBody("arm", total, moments, (centre, 0, 0), frames={"base": mbd.Frame()})
    base = mbd.revolute("base", ground.frame("base"), arm.frame("base"))
    motor = mbd.JointLoad("motor", "base", "rotation", lambda t, angle, _: 1 + 0.5 * np.sin(angle))
    return mbd.System([ground, arm], [base], loads=[motor])


def crank_torque(t: float, angle: float, rate: float) -> float:
    """Return the torque on the crank, N m."""
    return 0.1 + 0.05 * np.sin(angle)


def crank_from_rest() -> mbd.System:
    """Return the slider-crank of uniform bars of their Table 3, with the torque `crank_torque`."""
    masses = [DENSITY * area * length for area, length in zip(AREAS, LENGTHS, strict=True)]
    return slider_crank(
        rigid_rod(LENGTHS[1], masses[1]),
        crank_radius=LENGTHS[0],
        crank_mass=masses[0],
        crank_inertia=masses[0] * LENGTHS[0] ** 2 / 3,
        piston_mass=0.2,
        torque=crank_torque,
    )


def stick_angle() -> float:
    """Return the crank angle at 0.5 s by the paper's rigid truss elements and Newmark's method."""
    crank = Rod(0, 1, DENSITY * AREAS[0], YOUNG * AREAS[0], crank_torque)
    rod = Rod(1, 2, DENSITY * AREAS[1], YOUNG * AREAS[1])
    places = np.array([[0, 0], [LENGTHS[0], 0], [sum(LENGTHS), 0]])
    model = StickModel(places, [crank, rod], held=[(0, 0), (0, 1), (2, 1)], masses={2: 0.2})
    return float(newmark(model, t_end=0.5, dt=1e-4).angle[-1, 0])
