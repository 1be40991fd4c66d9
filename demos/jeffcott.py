"""An unbalanced rotor on a stiffening support, through its critical speed up and down.

You compute the curve of the whirl over the speed with its folds, and simulate the run-up and the
run-down, which jump at the folds. Figures go to `results/jeffcott`. Runs on one rank and under
`mpirun -n 2`.
"""

# # A rotor that jumps
#
# A disc of 8 kg, whose centre of mass has an offset of 1 mm, is supported by a spring whose
# stiffness grows with the displacement. Its axis moves on a circle, the whirl. In a range of
# speeds, three steady whirls exist: two are stable, and the one between them is not.

# +
from __future__ import annotations

from typing import Any

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.tutorials import check, report

results = tutorials.results_folder("jeffcott")
mass, offset, stiffness, cubic = 8.0, 1e-3, 4e5, 1e9  # kg, m, N/m, N/m³
critical = np.sqrt(stiffness / mass)  # rad/s
damping = 2 * 0.04 * mass * critical  # damping ratio 0.04, N s/m
along_x = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # the third axis is along x
spring = "-(k + k3*(x^2 + y^2))"
support_law = mbd.mechanism.PairFormula(
    force=(f"{spring}*x - c*vx", f"{spring}*y - c*vy", 0),
    constants={"k": stiffness, "k3": cubic, "c": damping},
)


def rotor(motion: Any, start: Any = (0.0, 0.0)) -> mbd.System:
    """Return the rotor; a driver turns it by the function `motion`."""
    frame = mbd.Frame((0, 0, 0), along_x)
    ground = mbd.Ground({"o": frame})
    disc = mbd.RigidBody(
        "disc", mass, [0.055, 0.03, 0.03], (0, offset, 0), {"o": frame}, position=(0, *start)
    )
    plane = mbd.planar("plane", ground.frame("o"), disc.frame("o"))
    support = mbd.PairLoad("support", ground.frame("o"), disc.frame("o"), support_law)
    drive = mbd.Driver("drive", "plane", motion, along="rotation")
    return mbd.System([ground, disc], [plane], drivers=[drive], loads=[support])


# -

# ## The curve of steady whirls
#
# `continuation` follows the steady rotations of the whole mechanism over the speed, also around the
# folds, where the curve turns back. The poles of a linearization decide on the stability of each
# point.

# +
low, high = 0.9 * critical, 1.5 * critical


def at_speed(speed: float) -> mbd.System:
    """Return the rotor at a constant speed."""
    return rotor(mbd.constant_speed(speed))


with tutorials.timed("curve"):
    curve = mbd.analyses.continuation(
        at_speed, (low, high), spin=lambda speed: (speed, 0.0, 0.0), longest=0.1
    )
radius = curve.values(lambda system, state: np.hypot(*state.q[1:3]))
up, down = (float(curve.parameter[k]) for k in curve.folds)
report(f"{len(curve.states)} points, folds at {up:.2f} rad/s and {down:.2f} rad/s")
# -

# ## Up and down
#
# The speed changes by 134 rad/s in two seconds. The run-up follows the upper branch to its end and
# falls; the run-down stays on the lower branch until it ends at the other fold.

# +
time, dt = 2.0, 5e-4


def ramp(first: float, last: float) -> str:
    """Return a motion whose speed changes linearly."""
    return f"{first}*t + {(last - first) / time / 2}*t^2"


runs = {}
for name, first, last in (("up", low, high), ("down", high, low)):
    steady = curve.states[0 if name == "up" else -1]
    system = rotor(ramp(first, last))
    start = mbd.dynamics.consistent_state(system, q=steady.q, v=steady.v)
    with tutorials.timed(f"run {name}"):
        run = mbd.simulate(system, t_end=time, dt=dt, start=start)
    speed = first + (last - first) / time * run.time
    runs[name] = speed, np.hypot(*run.body("disc").position[:, 1:].T)
with tutorials.figure(results / "jump.png", title="Whirl of a rotor on a stiffening support") as ax:
    for name, (speed, whirl) in runs.items():
        ax.plot(speed, 1e3 * whirl, lw=0.8, label=f"run {name}")
    for stable, style in ((True, "k-"), (False, "k--")):
        part = np.where(curve.stable == stable, 1e3 * radius, np.nan)
        ax.plot(curve.parameter, part, style, label="steady, " + "un" * (not stable) + "stable")
    ax.set(xlabel="speed (rad/s)", ylabel="radius (mm)")
    ax.legend()
# -

# ## Checks
#
# With the mass $m$, the offset $e$, the stiffnesses $k$, $k_3$ and the damping $c$, the radius $r$
# of the whirl satisfies $((k + k_3r^2 - m\Omega^2)^2 + (c\Omega)^2)\,r^2 = (me\Omega^2)^2$. In a
# run, the jump comes somewhat after the fold, because the speed changes meanwhile. It is where the
# smoothed radius passes the mean of the smallest radius and that of the first fold.

# +
speed = curve.parameter
left = ((stiffness + cubic * radius**2 - mass * speed**2) ** 2 + (damping * speed) ** 2) * radius**2
error = np.abs(left / (mass * offset * speed**2) ** 2 - 1).max()
check("steady whirl, relative error", error, 0.0, 1e-6)
middle = 0.5 * (up + down)
jumps = {}
for name, (speed, whirl) in runs.items():
    smooth = np.convolve(whirl, np.ones(60) / 60, "same")[60:-60]
    limit = np.interp(0.5, [0, 1], [radius.min(), radius[curve.folds[0]]])
    jumps[name] = speed[60:-60][np.flatnonzero(np.diff(np.sign(smooth - limit)))[-1]]
check("jump of the run-up, over its fold", jumps["up"] / max(up, down), 0.98, 1.15)
check("jump of the run-down, over its fold", jumps["down"] / min(up, down), 0.85, 1.05)
# -
