"""The spin-up of a cantilever by Kane, Ryan and Banerjee (1987), data of Simo and Vu-Quoc (V5).

V5 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

import numpy as np
from dolfinx.mesh import create_interval
from mpi4py import MPI

import dolfinx_mbd as mbd

# m, N, N m², kg/m; duration of the spin-up, s, and final speed, rad/s
LENGTH, EA, EI, LINE_DENSITY, PERIOD, SPEED = 10.0, 2.8e7, 1.4e4, 1.2, 15.0, 6.0

EXACT = {
    2: -0.10237,
    4: -0.34225,
    5: -0.46844,
    6: -0.54356,
    7: -0.57125,
    8: -0.54276,
    10: -0.36269,
    12: -0.15088,
    14: -0.02028,
}
"""Tip deflection, m, at times, s, of a geometrically exact beam."""


def motion(t: float) -> tuple[float, float, float]:
    """Return the angle of the hub, its rate and its acceleration."""
    if t >= PERIOD:
        return SPEED * (t - PERIOD / 2), SPEED, 0.0
    w = 2 * np.pi / PERIOD
    angle = t**2 / 2 + (np.cos(w * t) - 1) / w**2
    values = np.array([angle, t - np.sin(w * t) / w, 1 - np.cos(w * t)])
    rotation, rate, acceleration = SPEED / PERIOD * values
    return float(rotation), float(rate), float(acceleration)


def cantilever(num_modes: int = 8) -> mbd.ReducedBody:
    """Return the beam on 16 elements, reduced with its hub as the only interface."""
    # an area of 1 m² with Young's modulus EA/m²
    section = mbd.forms.Section(1.0, EI / EA, EI / EA, EI / EA)
    line = create_interval(MPI.COMM_SELF, 16, [0.0, LENGTH])
    return mbd.reduce_beam(
        mbd.BeamModel(line, section, mbd.Material(EA, 0.0, LINE_DENSITY)),
        interfaces={"hub": 0.0},
        num_modes=num_modes,
        points={"tip": LENGTH},
        options=mbd.ReductionOptions(skin=False),
    ).body


def tip_deflection(t_end: float, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the times, s, and the deflection of the tip across the hub's direction, m."""
    ground = mbd.Ground({"o": mbd.Frame()})
    beam = mbd.FlexibleBody("beam", cantilever(), damping_ratio=0.0)
    joint = mbd.revolute("hub", ground.frame("o"), beam.frame("hub"))
    system = mbd.System([ground, beam], [joint], drivers=[mbd.Driver("spin", "hub", motion)])
    run = mbd.simulate(system, t_end=t_end, dt=dt)
    angle = np.array([motion(float(t))[0] for t in run.time])
    tip = run.sensor("beam", "tip")
    return run.time, tip[:, 1] * np.cos(angle) - tip[:, 0] * np.sin(angle)
