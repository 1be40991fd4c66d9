"""A flexible rotor on two oil films: the speed above which it whirls, computed in two ways.

You reduce a shaft to a flexible body, let it run in two journal bearings, and find the onset of oil
whip from the eigenvalues and from a run-up. Files go to `results/rotor_on_oil_films`.
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

comm = MPI.COMM_WORLD
results = tutorials.results_folder("rotor_on_oil_films")
# -

# ## Shaft, disk and films
#
# The shaft lies along $z$ and gravity acts along $-y$. A disk of 10 kg is near the left film. It
# tilts while it turns, so that gyroscopic moments act on it.

# +
length, radius = 0.6, 0.015
along_z = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
mesh = create_interval(comm, 20, [0.0, length])
beam = mbd.BeamModel(mesh, mbd.forms.Section.circle(radius), mbd.STEEL, along_z)
places = {"left": 0.0, "disk": 0.3 * length, "right": length}
shaft = mbd.reduce_beam(beam, interfaces=places, num_modes=2, name="shaft").body
film: dict[str, Any] = {"radius": radius, "length": 0.012, "clearance": 4e-5, "viscosity": 0.012}
gravity = (0.0, -mbd.STANDARD_GRAVITY, 0.0)


def rotor(motion: Any, start: Any = (0.0, -2e-5)) -> mbd.System:
    """Return the rotor, displaced by `start`; a clutch turns it by the function `motion`."""
    ends = {"left": mbd.Frame(), "right": mbd.Frame((0, 0, length))}
    ground = mbd.Ground(ends)
    turning: dict[str, Any] = {"omega": (0, 0, motion(0.0)[1]), "velocity": (0, 0, 0)}
    body = mbd.FlexibleBody("shaft", shaft, position=(*start, 0.0), **turning)
    seat = (*start, places["disk"])
    hole = {"centre": mbd.Frame()}
    disk = mbd.RigidBody("disk", 10.0, [0.05, 0.05, 0.09], frames=hole, position=seat, **turning)
    clutch = mbd.RigidBody("clutch", 0.1, [1e-4] * 3, frames=hole, **turning)
    joints = [
        mbd.fixed("seat", body.frame("disk"), disk.frame("centre")),
        mbd.revolute("axle", ground.frame("left"), clutch.frame("centre")),
    ]
    drivers = [mbd.Driver("drive", "axle", motion)]
    springs = [0, 0, 1e6, 0, 0, 1e3]  # the clutch holds the shaft along and about z only
    losses = [0, 0, 5e3, 0, 0, 10.0]
    loads: list[Any] = [
        mbd.Bushing("clutch plate", clutch.frame("centre"), body.frame("left"), springs, losses)
    ]
    for name in ends:
        pair = ground.frame(name), body.frame(name)
        loads.append(mbd.bearings.ShortBearing(f"{name} film", *pair, **film))
    return mbd.System([ground, body, disk, clutch], joints, drivers=drivers, loads=loads,
                      gravity=gravity)  # fmt: skip


# -

# ## From the eigenvalues
#
# The rotor turns, but its axis stays where film forces and weight balance. `equilibrium` finds
# this place in global axes. `linearize` returns constant coefficients in the same axes, because the
# shaft is round; the stiffness of the films depends on the direction.


# +
def steady(speed: float) -> Any:
    """Return the turning rotor and its equilibrium."""
    system = rotor(mbd.constant_speed(speed))
    return system, mbd.equilibrium(system, axes="global")


def growth(speed: float) -> tuple[float, float]:
    """Return the growth rate (1/s) and the frequency (rad/s) of the least damped whirl."""
    poles = mbd.linearize(*steady(speed), axes="global").poles
    pole = max(poles[poles.imag > 1.0], key=lambda pole: pole.real)
    return pole.real, pole.imag


speeds = np.linspace(400.0, 1200.0, 9)
rates = np.array([growth(speed) for speed in speeds])
threshold = brentq(lambda speed: growth(speed)[0], speeds[0], speeds[-1], xtol=0.1)
whirl = growth(threshold)[1]
report(f"threshold {threshold:.1f} rad/s, whirl {whirl:.1f} rad/s, {whirl / threshold:.3f} of it")
# -

# ## From a run-up
#
# The turning rotor starts below the threshold with a small disturbance and accelerates. The whirl
# first decays and then grows; its smallest amplitude marks the threshold.

# +
low, rate, time, dt = 0.85 * threshold, threshold / 3, 0.9, 2e-4


def ramp(t: float) -> tuple[float, float, float]:
    """Return angle, speed and acceleration of the clutch."""
    return low * t + rate * t * t / 2, low + rate * t, rate


at_rest, system = steady(low)[1], rotor(ramp)
q = at_rest.q.copy()
for part in system.q_slices[1:3]:
    q[part][0] += 4e-6  # the disturbance: shaft and disk are displaced
start = mbd.dynamics.consistent_state(system, elastic_start="undeformed", q=q, v=at_rest.v)
run = mbd.simulate(system, t_end=time, dt=dt, start=start)
orbit = run.element("left film", axes="first").displacement[:, :2]
width = round(2 * np.pi / whirl / dt)  # saved times in one whirl
window = np.ones(width) / width
mean = np.array([np.convolve(x, window, "same") for x in orbit.T]).T
size = np.sqrt(np.convolve(((orbit - mean) ** 2).sum(axis=1), window, "same"))
speed = low + rate * run.time
inner = slice(3 * width, -3 * width)
onset = speed[inner][np.argmin(size[inner])]
report(f"onset in the run-up {onset:.1f} rad/s")
# -

# ## Picture and checks

# +
with tutorials.figure(results / "whirl.png", 1, 2, title="Oil whip") as (left, right):
    left.plot(speeds, rates[:, 0], "o-")
    left.axhline(0.0, color="0.6")
    left.set(xlabel="speed in rad/s", ylabel="growth rate in 1/s", title="eigenvalues")
    right.semilogy(speed[inner], size[inner] / film["clearance"])
    right.axvline(threshold, color="0.6")
    right.set(xlabel="speed in rad/s", ylabel="whirl / clearance", title="run-up")
check("onset in the run-up over threshold", onset / threshold, 0.98, 1.02)
check("whirl frequency over speed", whirl / threshold, 0.4, 0.55)
check("smallest film thickness over clearance",
      run.element("left film").film_thickness.min() / film["clearance"], 0.01, 1.0)  # fmt: skip
# -
