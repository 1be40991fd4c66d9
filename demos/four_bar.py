"""A four-bar linkage: joints that fit, a driven crank, a spring, friction and an energy balance.

You find out which joints are redundant, drive the linkage against a spring with friction, and
compare its path with the closed form. Files go to `results/four_bar`. Runs on one rank and under
`mpirun -n 2`.
"""

# # A four-bar linkage
#
# A crank turns, a coupler follows, a rocker swings. In a plane the linkage has four hinges. In
# space, four hinges have three constraints too many, because each of them keeps the linkage in its
# plane.

# +
from __future__ import annotations

import numpy as np
from scipy.integrate import trapezoid

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.tutorials import check, report

results = tutorials.results_folder("four_bar")
frame, crank_length, coupler_length, rocker_length = 0.40, 0.10, 0.35, 0.25
speed = 10.0  # rad/s
# -

# The sum of the shortest and the longest link, 0.5 m, is less than the sum of the others, 0.6 m: by
# Grashof's law the crank can turn fully.
#
# ## Positions of the links
#
# At the crank angle $\varphi$ the crank pin is at $P = r(\cos\varphi, \sin\varphi)$. The pin of the
# rocker is where a circle about $P$, as large as the coupler, meets a circle about the bearing, as
# large as the rocker. The closed form places the links, and later checks the simulation.


# +
def rocker_pin(angle: np.ndarray) -> np.ndarray:
    """Return the pin between coupler and rocker (nt, 2), the upper one of two solutions."""
    pin = crank_length * np.column_stack([np.cos(angle), np.sin(angle)])
    chord = np.array([frame, 0.0]) - pin
    length = np.linalg.norm(chord, axis=1)
    along = (length**2 + coupler_length**2 - rocker_length**2) / (2 * length)
    across = np.sqrt(coupler_length**2 - along**2)
    x = chord / length[:, None]
    return pin + along[:, None] * x + across[:, None] * np.column_stack([-x[:, 1], x[:, 0]])


def link(name: str, length: float, start: np.ndarray, end: np.ndarray) -> mbd.RigidBody:
    """Return a steel bar of 20 × 10 mm between two points of the plane."""
    tilt = 0.5 * np.arctan2(end[1] - start[1], end[0] - start[0])
    return mbd.RigidBody.box(
        name,
        (length, 0.020, 0.010),
        density=7850.0,
        centre=(length / 2, 0.0, 0.0),
        frames={"start": mbd.Frame(), "end": mbd.Frame((length, 0.0, 0.0))},
        position=(*start, 0.0),
        rotation=(np.cos(tilt), 0.0, 0.0, np.sin(tilt)),
    )


pin, top = np.array([crank_length, 0.0]), rocker_pin(np.zeros(1))[0]
ground = mbd.Ground({"crank": mbd.Frame(), "rocker": mbd.Frame((frame, 0.0, 0.0))})
crank = link("crank", crank_length, np.zeros(2), pin)
coupler = link("coupler", coupler_length, pin, top)
rocker = link("rocker", rocker_length, np.array([frame, 0.0]), top)
bodies: list[mbd.mechanism.Body] = [ground, crank, coupler, rocker]
ends = [
    ("main", ground.frame("crank"), crank.frame("start")),
    ("crank pin", crank.frame("end"), coupler.frame("start")),
    ("rocker pin", coupler.frame("end"), rocker.frame("end")),
    ("bearing", ground.frame("rocker"), rocker.frame("start")),
]
# -

# ## The joints
#
# Try four hinges first: `print(system)` tells you which constraints repeat others. A cylindrical
# crank pin and a spherical rocker pin leave $18-(5+4+3+5)=1$ degree of freedom. The rocker works
# against a spring and a damper, and its bearing has dry friction of 0.3 N m, as a smooth function
# of the rate: `limit` times tanh(rate/`width`).

# +
hinges = mbd.System(bodies, [mbd.revolute(*end) for end in ends])
report(hinges)
kinds = (mbd.revolute, mbd.cylindrical, mbd.spherical, mbd.revolute)
stiffness, damping, limit, width = 4.0, 0.05, 0.3, 0.02  # N m/rad, N m s/rad, N m, rad/s
linkage = mbd.System(
    bodies,
    [kind(*end) for kind, end in zip(kinds, ends, strict=True)],
    drivers=[mbd.Driver("drive", "main", mbd.constant_speed(speed))],
    loads=[
        mbd.JointSpring("return spring", "bearing", stiffness, damping),
        mbd.mechanism.JointFriction("bearing friction", "bearing", limit, width),
    ],
)
report(f"\n{linkage}\n")
period = 2 * np.pi / speed
run = mbd.simulate(linkage, t_end=2 * period, dt=period / 1000).projected()
# -

# The positions satisfy the constraints. `projected` makes velocities and forces satisfy them, too.

# +
angle, time = run.joint("main").rotation, run.time
torque, rate = run.joint("drive").moment[:, 2], run.body("rocker").omega[:, 2]
tip = run.sensor("rocker", "end")
tilt = np.unwrap(np.arctan2(tip[:, 1], tip[:, 0] - frame))
with tutorials.figure(results / "linkage.png", 1, 2) as (left, right):
    for k in range(1000, 2000, 125):
        points = [(0, 0, 0), run.sensor("crank", "end")[k], tip[k], (frame, 0, 0)]
        left.plot(*np.array(points).T[:2], "o-", color="0.7", markersize=3)
    left.plot(*run.sensor("coupler", (coupler_length / 2, 0.0, 0.0)).T[:2], label="coupler, middle")
    left.set(xlabel="x (m)", ylabel="y (m)", aspect="equal", xmargin=0.05)
    left.legend()
    right.plot(np.degrees(angle - angle[0])[1000:] - 360, torque[1000:])
    right.set(xlabel="crank angle in the second turn (°)", ylabel="drive torque (N m)")
tutorials.show(mbd.plotting.player, run, results / "four_bar.html")
# -

# ## Checks
#
# The second turn ends in the state in which it begins, so that the work of the drive equals the
# energy that damper and friction dissipate. In the first half turn the rest of the work is stored.

# +
dissipated = damping * rate**2 + limit * np.tanh(rate / width) * rate
stored = run.energies().kinetic + 0.5 * stiffness * (tilt - tilt[0]) ** 2
path_error = np.abs(run.sensor("coupler", "end")[:, :2] - rocker_pin(angle)).max()
turn, half = slice(1000, None), slice(0, 501)
work, lost = (trapezoid(power[turn], time[turn]) for power in (torque * speed, dissipated))
gain = trapezoid((torque * speed - dissipated)[half], time[half])
check("redundant constraints of four hinges", len(mbd.dynamics.redundancies(hinges)), 3, 3)
check("path and closed form, difference", path_error, 0, 1e-9, "m")
check("work of a turn over the dissipated energy, minus one", abs(work / lost - 1), 0, 1e-4)
error = abs(gain - (stored[500] - stored[0])) / np.ptp(stored)
check("energy balance of the first half turn, relative error", error, 0, 1e-4)
# -
