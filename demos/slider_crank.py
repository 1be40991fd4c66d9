"""A slider-crank with a flexible rod, built from bodies, joints and a driver.

You connect a ground, a crank, a flexible rod and a piston, simulate two turns, and compare the
result with closed forms. Figures go to `results/slider_crank`. Runs on one rank and under
`mpirun -n 2`.
"""

# # A slider-crank
#
# A crank of radius $r$ turns at constant speed $\Omega$ and drives a piston through a rod of length
# $l$. With the rod angle $\beta$ from $l\sin\beta = -r\sin\Omega t$, a rigid rod puts the piston at
#
# $$x = r\cos\Omega t + l\cos\beta.$$
#
# `mbd.mechanisms.slider_crank` gives you this mechanism in one call. Here you build it yourself, as
# you would build any other mechanism.

# +
from __future__ import annotations

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.mechanism.mechanisms.kinematics import SliderCrank
from dolfinx_mbd.tutorials import check, check_close, report

results = tutorials.results_folder("slider_crank")
radius, length, side, speed = 0.050, 0.300, 0.008, 60.0  # m, m, m, rad/s
# -

# ## The rod
#
# The rod is a steel bar of 300 × 8 × 8 mm; its end faces are the interfaces. You can use any other
# mesh with tagged surfaces; see `demos/rod.py`.

# +
mesh = tutorials.tagged_bar((length, side, side), (24, 1, 1), ("big_end", "small_end"))
points = {"middle": (length / 2, 0.0, 0.0)}
axes_of_ends = {name: mbd.InterfaceSpec(axes=np.eye(3)) for name in ("big_end", "small_end")}
body = mbd.reduce(
    mesh, mbd.STEEL, interfaces=axes_of_ends, num_modes=6, points=points, name="rod"
).body
# -

# ## Bodies
#
# Each body has named frames; a joint connects a frame of one body to a frame of another. The third
# axis of a frame, its z axis, is the axis of the joint: for the guide, which slides along the
# global x, the frame is turned. A reduced body offers its interfaces as frames.

# +
guide = mbd.Frame((0.0, 0.0, 0.0), axes=(1.0, 0.0, 0.0))  # z along x


def slider_crank(reduced: mbd.ReducedBody) -> mbd.System:
    """Return the slider-crank with a rod, at the top dead centre."""
    ground = mbd.Ground({"main": mbd.Frame(), "guide": guide})
    pins = {"main": mbd.Frame(), "pin": mbd.Frame((radius, 0.0, 0.0))}
    crank = mbd.RigidBody("crank", 0.5, (1e-4, 1e-3, 1e-3), frames=pins)
    rod = mbd.FlexibleBody("rod", reduced, position=(radius, 0.0, 0.0))
    ends = {"pin": mbd.Frame(), "guide": guide}
    piston = mbd.RigidBody(
        "piston", 0.2, (1e-4, 1e-4, 1e-4), frames=ends, position=(radius + length, 0.0, 0.0)
    )
    joints = [
        mbd.revolute("main", ground.frame("main"), crank.frame("main")),
        mbd.cylindrical("crank pin", crank.frame("pin"), rod.frame("big_end")),
        mbd.spherical("piston pin", rod.frame("small_end"), piston.frame("pin")),
        mbd.prismatic("guide", ground.frame("guide"), piston.frame("guide")),
    ]
    drive = mbd.Driver("drive", "main", mbd.constant_speed(speed))
    return mbd.System([ground, crank, rod, piston], joints, drivers=[drive])


# -

# With four revolute joints, several constraints that keep the mechanism in its plane would be
# redundant. The cylindrical and the spherical joint leave exactly one motion, which the driver
# prescribes. `print(system)` lists bodies, joints and degrees of freedom.

# +
system = slider_crank(body)
report(f"{system}\n")
period = 2 * np.pi / speed
run = mbd.simulate(system, t_end=2 * period, dt=period / 1000)
rigid_run = mbd.simulate(slider_crank(body.rigid()), t_end=2 * period, dt=period / 1000).projected()
# -

# ## Results
#
# A run gives histories by name: motions of bodies, forces in joints. Inertia bends the rod. If the
# middle of a bar between two pins has the transverse acceleration $a_m$, its deflection is
# $w = -5\rho A a_m l^4/(384EI)$, which is the closed form in the figure.

# +
exact = SliderCrank(radius, length).motion(speed * run.time, speed)
middle = tutorials.chord_displacement(body, run.body("rod").eta)[:, 1]
acceleration = tutorials.middle_acceleration(radius, length, speed, run.time)[:, 1]
bar = -5 * mbd.STEEL.density * acceleration * length**4 / (384 * mbd.STEEL.young * side**2 / 12)
torque = run.joint("drive").moment[:, 2]
rows = {
    "deflection (mm)": {"flexible rod": 1e3 * middle, "rigid motion, pinned bar": 1e3 * bar},
    "crank pin (N)": {"": np.linalg.norm(run.joint("crank pin").force, axis=1)},
    "drive torque (N m)": {"": torque},
}
angle = "crank angle (°)", np.rad2deg(speed * run.time)
tutorials.plot_histories(results / "slider_crank.png", angle, rows, xticks=np.arange(0, 721, 90))
# -

# Watch the mechanism, with the deformation of the rod enlarged 100 times.

tutorials.show(mbd.plotting.player, run, results / "slider_crank.html", scale=100)

# ## Checks
#
# Without gas and friction the drive does no work over a whole turn, and its work since the start is
# the change of energy. At this speed the second harmonic of the load is at a tenth of the first
# bending frequency, 208 Hz, so that dynamics changes the deflection by about one percent.

# +
rigid_piston = rigid_run.body("piston").position[:, 0]
check("rigid rod, piston and closed form", np.abs(rigid_piston - exact.slider).max(), 0, 1e-9, "m")
second = slice(1000, None)
size = np.abs(bar[second]).max()
off = np.abs(middle - bar)[second].max() / size
check("deflection and pinned bar in the second turn, relative", off, 0.0, 0.03)
energy = run.energies().total
work = np.cumsum(0.5 * (torque[1:] + torque[:-1])) * speed * (period / 1000)
error = np.abs(work - (energy[1:] - energy[0])).max() / np.ptp(energy)
check("work of the drive and change of energy, relative", error, 0.0, 1e-3)
ready = mbd.mechanisms.slider_crank(
    body, crank_radius=radius, crank_mass=0.5, piston_mass=0.2, speed=speed
)
same = mbd.simulate(ready, t_end=2 * period, dt=period / 1000).body("piston").position[-1, 0]
check_close(
    "final piston position, ready mechanism", run.body("piston").position[-1, 0], same, 1e-9
)
# -
