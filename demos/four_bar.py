"""A four-bar linkage: joints that fit, a driven crank, a spring, friction, an energy balance.

Rigid links, the rocker on a spring-damper with dry friction in its bearing. The path is held
against the closed form, the work of the drive against what is stored and lost. A table and a plot
go to `results/four_bar`. Runs serial and under `mpirun -n 2`.
"""

# # A four-bar linkage
#
# A crank turns, a coupler carries on, a rocker swings: the linkage with the fewest links that does
# something useful. In a plane it has four hinges. In space four hinges hold three motions too many,
# since all that they say about the motion out of the plane is said several times.

# +
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.multibody import (
    Body,
    Driver,
    constant_speed,
    cylindrical,
    redundancies,
    revolute,
    spherical,
)
from dolfinx_mbd.multibody.model.force_elements import JointFriction, JointSpring

root = MPI.COMM_WORLD.rank == 0
results = Path("results/four_bar")
results.mkdir(parents=True, exist_ok=True)


def report(text: str) -> None:
    """Print once, not once a rank."""
    if root:
        print(text, flush=True)


frame, crank_length, coupler_length, rocker_length = 0.40, 0.10, 0.35, 0.25
speed = 10.0  # rad/s
# -

# The sum of the shortest and the longest link, 0.5 m, is less than that of the others, 0.6 m: by
# Grashof's law the crank turns fully.
#
# ## Where the links are
#
# With the crank's angle $\varphi$ its pin is at $P = r(\cos\varphi, \sin\varphi)$, and the rocker's
# pin is where a circle of the coupler's length about $P$ meets one of the rocker's length about its
# bearing. That places the links, and is what the simulation is held against.


# +
def rocker_pin(angle: np.ndarray) -> np.ndarray:
    """Where the coupler meets the rocker (nt, 2), the upper of the two ways to close."""
    pin = crank_length * np.column_stack([np.cos(angle), np.sin(angle)])
    chord = np.array([frame, 0.0]) - pin
    length = np.linalg.norm(chord, axis=1)
    along = (length**2 + coupler_length**2 - rocker_length**2) / (2 * length)
    across = np.sqrt(coupler_length**2 - along**2)
    x = chord / length[:, None]
    return pin + along[:, None] * x + across[:, None] * np.column_stack([-x[:, 1], x[:, 0]])


def link(name: str, length: float, start: np.ndarray, end: np.ndarray) -> mbd.RigidBody:
    """A steel bar of 20 × 10 mm between two points of the plane."""
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
bodies: list[Body] = [ground, crank, coupler, rocker]
ends = [
    ("main", ground.frame("crank"), crank.frame("start")),
    ("crank pin", crank.frame("end"), coupler.frame("start")),
    ("rocker pin", coupler.frame("end"), rocker.frame("end")),
    ("bearing", ground.frame("rocker"), rocker.frame("start")),
]
# -

# ## The joints
#
# Four hinges first. A `System` says of itself what repeats what:

# +
hinges = [revolute(*end) for end in ends]
report(str(mbd.System(bodies, hinges)))
# -

# A cylindrical crank pin and a spherical rocker pin hold what the two hinges in the middle do not
# hold already: $18 - (5 + 4 + 3 + 5) = 1$. The rocker works against a spring and a damper, whose
# free angle is the one that it is placed with, and dry friction in its bearing, of 0.3 N m from
# some 0.02 rad/s on.

# +
kinds = (revolute, cylindrical, spherical, revolute)
joints = [kind(*end) for kind, end in zip(kinds, ends, strict=True)]
stiffness, damping, limit, width = 4.0, 0.05, 0.3, 0.02
linkage = mbd.System(
    bodies,
    joints,
    drivers=[Driver("drive", "main", constant_speed(speed))],
    loads=[
        JointSpring("return spring", "bearing", stiffness, damping),
        JointFriction("bearing friction", "bearing", limit, width),
    ],
)
report("\n" + str(linkage))
period = 2 * np.pi / speed
# with velocities and forces that meet the constraints exactly
run = mbd.simulate(linkage, t_end=2 * period, dt=period / 1000).projected()
# -

# ## What comes out
#
# The crank turns at a constant speed, so that after a turn everything is where it was. What the
# drive does in that turn is lost in the damper and in the friction.

# +
angle, time = run.joint("main").rotation, run.time
ways = run.sensor("coupler", "end")[:, :2] - rocker_pin(angle)
tilt = np.unwrap(np.arctan2(*(run.sensor("rocker", "end") - [frame, 0.0, 0.0]).T[1::-1]))
rate = run.body("rocker").omega[:, 2]
torque = run.joint("drive").moment[:, 2]
dissipated = damping * rate**2 + limit * np.tanh(rate / width) * rate


def integral(values: np.ndarray, part: slice) -> float:
    """Over time, by the trapezoidal rule."""
    y, t = values[part], time[part]
    return float(np.sum(0.5 * (y[1:] + y[:-1]) * np.diff(t)))


turn, half = slice(1000, None), slice(0, 501)
work, lost = integral(torque * speed, turn), integral(dissipated, turn)
kinetic = run.energies().kinetic
stored = kinetic + 0.5 * stiffness * (tilt - tilt[0]) ** 2
gain = integral(torque * speed, half) - integral(dissipated, half)
lines = [
    f"swing of the rocker           {np.degrees(np.ptp(tilt)):8.3f}°",
    f"greatest drive torque         {torque.max():8.3f} N m",
    f"least drive torque            {torque.min():8.3f} N m",
    f"work of the drive in a turn   {work:8.4f} J",
    f"lost in damper and friction   {lost:8.4f} J",
    f"stored in the first half turn {stored[500] - stored[0]:8.4f} J",
    f"work less losses in it        {gain:8.4f} J",
]
report("\n" + "\n".join(lines))


def plot() -> None:
    """The linkage with the path of the coupler's middle, and the torque that it takes."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    canvas, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), constrained_layout=True)
    pins, tops = run.sensor("crank", "end"), run.sensor("rocker", "end")
    for k in range(1000, 2000, 125):
        x, y, _ = np.array([[0, 0, 0], pins[k], tops[k], [frame, 0, 0]]).T
        left.plot(x, y, "o-", color="0.7", markersize=3)
    x, y, _ = run.sensor("coupler", (coupler_length / 2, 0.0, 0.0))[1000:].T
    left.plot(x, y, label="middle of the coupler")
    left.set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
    left.legend()
    right.plot(np.degrees(angle[1000:] - angle[1000]), torque[1000:])
    right.set(xlabel="crank angle (°)", ylabel="drive torque (N m)")
    right.grid(alpha=0.3)
    canvas.savefig(results / "linkage.png", dpi=110)
    plt.close(canvas)


if root:
    (results / "linkage.txt").write_text("\n".join(lines) + "\n")
    plot()
report(f"\n{results}/linkage.txt and linkage.png are written")
# -

# ## Does it hold?

# +
failed = False


def check(what: str, value: float, low: float, high: float) -> None:
    """Print a number with its bounds and remember if it is outside."""
    global failed
    ok = low <= value <= high
    failed |= not ok
    report(f"{'ok  ' if ok else 'FAIL'} {what:<48} {value:10.3g} in [{low:g}, {high:g}]")


report("")
check("redundant hinges", len(redundancies(mbd.System(bodies, hinges))), 3, 3)
check("path off the closed form (m)", float(np.abs(ways).max()), 0, 1e-9)
check("work of a turn over what is lost, off one by", abs(work / lost - 1), 0, 1e-4)
balance = abs(gain - (stored[500] - stored[0])) / np.ptp(stored)
check("energy of the first half turn, off by", balance, 0, 1e-4)
sys.exit(failed)
# -
