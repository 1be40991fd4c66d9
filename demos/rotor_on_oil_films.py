"""A flexible rotor on two oil films: the speed above which it whirls, and its orbit.

You find the onset of oil whip from the eigenvalues and from a run-up, and compute the limit cycle.
Files go to `results/rotor_on_oil_films`.
"""

# # Oil whip of a flexible rotor
#
# An oil film supports a journal only if the journal is displaced from the centre. The film also
# pushes the journal sideways, in the sense of the rotation. Above a certain speed this push feeds
# more energy into a whirl than the film dissipates: the rotor whirls at about half its speed.

# +
from __future__ import annotations

from typing import Any

import numpy as np
from dolfinx.mesh import create_interval
from mpi4py import MPI
from scipy.optimize import brentq

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.tutorials import check, report

results = tutorials.results_folder("rotor_on_oil_films")
# -

# ## Shaft, disk and films
#
# The shaft lies along $z$ and gravity acts along $-y$. A disk of 10 kg is near the left film.

# +
length, radius = 0.6, 0.025
along_z = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
mesh = create_interval(MPI.COMM_WORLD, 20, [0.0, length])
beam = mbd.BeamModel(mesh, mbd.forms.Section.circle(radius), mbd.STEEL, along_z)
places = {"left": 0.0, "disk": 0.3 * length, "right": length}
shaft = mbd.reduce_beam(beam, interfaces=places, num_modes=2, name="shaft").body
film: dict[str, Any] = {"radius": radius, "length": 0.01, "clearance": 5e-5, "viscosity": 0.03}


def rotor(motion: Any, start: Any = (0.0, -2e-5)) -> mbd.System:
    """Return the rotor, displaced by `start`; a clutch turns it by the function `motion`."""
    ends = {"left": mbd.Frame(), "right": mbd.Frame((0, 0, length))}
    turning: dict[str, Any] = {"omega": (0, 0, motion(0.0)[1]), "velocity": (0, 0, 0)}
    ground = mbd.Ground(ends)
    body = mbd.FlexibleBody("shaft", shaft, position=(*start, 0.0), **turning)
    seat, hole = (*start, places["disk"]), {"centre": mbd.Frame()}
    disk = mbd.RigidBody("disk", 10.0, [0.05, 0.05, 0.09], frames=hole, position=seat, **turning)
    clutch = mbd.RigidBody("clutch", 0.1, [1e-4] * 3, frames=hole, **turning)
    seats = mbd.fixed("seat", body.frame("disk"), disk.frame("centre"))
    joints = [seats, mbd.revolute("axle", ground.frame("left"), clutch.frame("centre"))]
    spring, damping = [0, 0, 1e6, 0, 0, 1e3], [0, 0, 5e3, 0, 0, 10.0]  # along and about z only
    loads: Any = [mbd.Bushing("plate", clutch.frame("centre"), body.frame("left"), spring, damping)]
    for name in ends:
        pair = ground.frame(name), body.frame(name)
        loads.append(mbd.bearings.ShortBearing(f"{name} film", *pair, **film))
    parts: dict[str, Any] = {"drivers": [mbd.Driver("drive", "axle", motion)], "loads": loads}
    return mbd.System([ground, body, disk, clutch], joints, gravity=(0, -9.81, 0), **parts)


# -

# ## From the eigenvalues
#
# The rotor turns, but its axis stays where film forces and weight balance. `equilibrium` finds this
# place in global axes, and `linearize` has constant coefficients there, because the shaft is round.


# +
def steady(speed: float) -> Any:
    """Return the turning rotor and its equilibrium."""
    system = rotor(mbd.constant_speed(speed))
    return system, mbd.equilibrium(system, axes="global")


def growth(speed: float) -> tuple[float, float]:
    """Return the growth rate (1/s) and the frequency (rad/s) of the least damped whirl."""
    poles = mbd.linearize(*steady(speed), axes="global").poles
    return max((pole.real, pole.imag) for pole in poles if pole.imag > 1.0)


speeds = np.linspace(400.0, 1200.0, 5)
rates = np.array([growth(speed) for speed in speeds])
threshold = brentq(lambda speed: growth(speed)[0], speeds[0], speeds[-1], xtol=0.1)
whirl = growth(threshold)[1]
report(f"threshold {threshold:.1f} rad/s, whirl {whirl:.1f} rad/s, {whirl / threshold:.3f} of it")
# -

# ## From a run-up
#
# The rotor accelerates, with a disturbance at the start. The whirl decays until the onset of whip.

# +
low, rate, time, dt = 0.88 * threshold, threshold / 4, 0.9, 2e-4


def disturbed(system: mbd.System, state: Any) -> Any:
    """Return a state with shaft and disk displaced a little."""
    q = state.q.copy()
    for part in system.q_slices[1:3]:
        q[part][0] += 4e-6
    return mbd.dynamics.consistent_state(system, elastic_start="undeformed", q=q, v=state.v)


system = rotor(lambda t: (low * t + rate * t * t / 2, low + rate * t, rate))
run = mbd.simulate(system, t_end=time, dt=dt, start=disturbed(system, steady(low)[1]))
orbit = run.element("left film", axes="first").displacement[:, :2]
width = round(2 * np.pi / whirl / dt)  # saved times in one whirl
window = np.ones(width) / width
mean = np.array([np.convolve(x, window, "same") for x in orbit.T]).T
size = np.sqrt(np.convolve(((orbit - mean) ** 2).sum(axis=1), window, "same"))
speed, inner = low + rate * run.time, slice(3 * width, -3 * width)
onset = speed[inner][np.argmin(size[inner])]
# -

# ## The limit cycle
#
# Whirl and rotation have no common period. But the shaft is round: after one whirl, the motion
# repeats except for the angle of the rotor, which `axes="global"` disregards. The period is
# unknown, so that one Floquet multiplier is 1; the others are smaller: the whirl is stable.

# +
fast = 1.1 * threshold
options: dict[str, Any] = {"find_period": True, "axes": "global", "transient": 40}
system, start = steady(fast)[0], disturbed(*steady(fast))
period = 2 * np.pi / growth(fast)[1]
cycle = mbd.analyses.periodic(system, period, dt=period / 80, start=start, **options)
report(f"{cycle}, onset in the run-up {onset:.1f} rad/s")
path = cycle.element("left film", axes="first").displacement[:, :2] / film["clearance"]
# -

# ## Picture and checks

# +
with tutorials.figure(results / "whirl.png", 1, 3, title="Oil whip") as (left, middle, right):
    left.plot(speeds, rates[:, 0], "o-")
    left.set(xlabel="speed in rad/s", ylabel="growth rate in 1/s", title="linearization")
    middle.semilogy(speed[inner], size[inner] / film["clearance"])
    middle.set(xlabel="speed in rad/s", ylabel="whirl / clearance", title="run-up")
    right.plot(*path.T)
    right.set(xlabel="x / clearance", ylabel="y / clearance", title="limit cycle", aspect="equal",
              xlim=(-1, 1), ylim=(-1, 1))  # fmt: skip
check("onset in the run-up over threshold", onset / threshold, 0.98, 1.02)
check("whirl frequency over speed", whirl / threshold, 0.4, 0.55)
check("largest eccentricity in the cycle", np.hypot(*path.T).max(), 0.5, 0.95)
check("second largest multiplier", np.abs(cycle.multipliers)[1], 0.0, 0.999)
# -
