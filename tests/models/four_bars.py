"""A chain of N parallel four-bars, which is singular when it is horizontal.

All cranks stay parallel, so that the mechanism is a pendulum in closed form. In the horizontal
position the couplers may fold the other way; a solver must pass through it or report it.

References:
    IFToMM Technical Committee for Multibody Dynamics, Library of Computational Benchmark Problems,
    "N four-bar mechanism".
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

import dolfinx_mbd as mbd

GRAVITY = 9.81


def chain(loops: int) -> mbd.System:
    """Return vertical cranks of 1 m and 1 kg on a line, connected by couplers of the same size."""

    def link(name: str, position: tuple[float, float, float], angle: float) -> mbd.RigidBody:
        return mbd.RigidBody(
            name,
            1.0,
            (1e-4, 1 / 12, 1 / 12),
            centre=(0.5, 0.0, 0.0),
            frames={"start": mbd.Frame(), "end": mbd.Frame((1.0, 0.0, 0.0))},
            position=position,
            rotation=(np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)),
        )

    count = loops + 1
    ground = mbd.Ground({str(k): mbd.Frame((float(k), 0.0, 0.0)) for k in range(count)})
    cranks = [link(f"crank {k}", (float(k), 0.0, 0.0), np.pi / 2) for k in range(count)]
    couplers = [link(f"coupler {k}", (float(k), 1.0, 0.0), 0.0) for k in range(loops)]
    pin = mbd.point_on_line
    joints = [mbd.revolute("drive", ground.frame("0"), cranks[0].frame("start"))]
    joints += [
        pin(f"foot {k}", ground.frame(str(k)), cranks[k].frame("start")) for k in range(1, count)
    ]
    for k, coupler in enumerate(couplers):
        joints.append(pin(f"left {k}", cranks[k].frame("end"), coupler.frame("start")))
        joints.append(pin(f"right {k}", cranks[k + 1].frame("end"), coupler.frame("end")))
    joints += [
        mbd.planar(f"plane of {body.name}", ground.frame("0"), body.frame("start"))
        for body in (*cranks[1:], *couplers)
    ]
    bodies = [ground, *cranks, *couplers]
    return mbd.System(bodies, joints, gravity=(0.0, -GRAVITY, 0.0))


def pendulum(loops: int, times: np.ndarray) -> np.ndarray:
    """Return the position of the end of the first crank (nt, 2), from the equivalent pendulum.

    Masses (kg) and lengths (m) are 1; the cranks start upright with −1 rad/s.
    """
    inertia, moment = (loops + 1) / 3 + loops, (loops + 1) / 2 + loops

    def rates(t: float, y: np.ndarray) -> list[float]:
        return [y[1], -moment / inertia * GRAVITY * np.cos(y[0])]

    span = (0.0, float(times[-1]))
    motion = solve_ivp(rates, span, [np.pi / 2, -1.0], t_eval=times, rtol=1e-12, atol=1e-12).y[0]
    return np.column_stack([np.cos(motion), np.sin(motion)])
