"""A bracket with strain gauges as the coupler of a four-bar linkage.

You reduce a meshed part with named faces, attach strain gauges to it, place it in a linkage with a
strut and a controlled motor, and plot the signals. Files go to `results/bracket`. Runs on one rank
and under mpirun.
"""

# # A bracket with strain gauges
#
# The coupler of this four-bar linkage is your own part: a steel bracket with two bores and an ear.
# A strut acts on the ear, and a motor with a PI controller turns the crank. Three strain gauges on
# the bracket show its loads.

# +
import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.tutorials import check

results, speed = tutorials.results_folder("bracket"), 20.0  # rad/s
# -

# ## The part and its gauges
#
# `write_bracket` takes the place of your mesh generator. The bores are the groups `left` and
# `right` of the mesh, and the strut acts at the named point `hook`. A gauge has a position on the
# surface, the direction of its first grid and the length of its grids. The gauge `web` is a 45°
# rosette.

# +
tutorials.write_bracket(results / "bracket.msh")
mesh = mbd.read_mesh(results / "bracket.msh", MPI.COMM_WORLD)
part = mbd.reduce(
    mesh,
    mbd.STEEL,
    interfaces=["left", "right"],
    num_modes=6,
    points={"hook": (0.1, 0.06, 0.0)},
)
gauges = {
    "edge": mbd.durability.GaugeSpec((0.07, -0.02, 0.0), (1, 0, 0), "3mm"),
    "web": mbd.durability.GaugeSpec((0.06, 0.0, 0.006), (1, 0, 0), "3mm", "rectangular"),
    "ear": mbd.durability.GaugeSpec((0.085, 0.03, 0.0), (0, 1, 0), "3mm"),
}
part = mbd.gauges(part, gauges)
# -

# ## The linkage
#
# `place` puts a frame of a body at a point, or at a frame of another body. A cylindrical and a
# spherical joint avoid the redundant constraints of four hinges. In the torque of the motor, `s` is
# the rotation of the joint and `rate` its angular velocity; the controller has a gain of 8 N m s
# for the error of the speed and of 60 N m for the error of the angle.

# +
points = {"main": (0.0, 0.0, 0.0), "low": (0.2, -0.12, 0.0), "up": (0.1, 0.3, 0.0)}
ground = mbd.Ground({name: mbd.Frame(x) for name, x in points.items()})
crank = mbd.RigidBody.cylinder(
    "crank",
    radius=0.08,
    length=0.02,
    density=7850.0,
    frames={"main": mbd.Frame(), "pin": mbd.Frame((0.0, 0.06, 0.0))},
)
rocker = mbd.RigidBody.box(
    "rocker",
    (0.03, 0.18, 0.01),
    density=7850.0,
    frames={"low": mbd.Frame((0.0, -0.09, 0.0)), "pin": mbd.Frame((0.0, 0.09, 0.0))},
)
bracket = mbd.place(mbd.FlexibleBody("bracket", part.body), by="left", at=(crank, "pin"))
rocker = mbd.place(rocker, by="low", at=(ground, "low"))
joints = [
    mbd.revolute("main", ground.frame("main"), crank.frame("main")),
    mbd.cylindrical("crank pin", crank.frame("pin"), bracket.frame("left")),
    mbd.spherical("rocker pin", bracket.frame("right"), rocker.frame("pin")),
    mbd.revolute("bearing", ground.frame("low"), rocker.frame("low")),
]
system = mbd.System(
    [ground, crank, bracket, rocker],
    joints,
    loads=[
        mbd.SpringDamper(
            "strut", ground.frame("up"), bracket.frame("hook"), 4e3, 40.0, length=0.15
        ),
        mbd.JointLoad("motor", "main", "rotation", f"8*({speed} - rate) + 60*({speed}*t - s)"),
    ],
    gravity=(0.0, -9.81, 0.0),
)
run = mbd.simulate(system, t_end=4 * np.pi / speed, dt=5e-4, start={"main": speed})
# -

# ## The signals
#
# `run.gauge` returns the strains of the grids, and for a rosette also the principal strains.

# +
motor, strut, web = run.element("motor"), run.element("strut"), run.gauge("bracket", "web")
rows = {
    "motor (N m)": {"": motor.moment[:, 2]},
    "strut (N)": {"": strut.tension},
    "strain (µm/m)": {name: 1e6 * run.gauge("bracket", name).strain[:, 0] for name in gauges},
    "principal (µm/m)": {"greatest": 1e6 * web.principal[:, 0], "least": 1e6 * web.principal[:, 1]},
}
tutorials.plot_histories(results / "signals.png", ("time (s)", run.time), rows)
tutorials.show(mbd.plotting.player, run, results / "bracket.html", scale=100)
# -

# ## Checks
#
# The gauges agree with the strain of the mesh at their centres. The energy that the motor supplies
# is stored or dissipated in the damper of the strut. The speed stays above 90 % of its set value.

# +
places = np.array([gauge.position for gauge in part.body.gauges])
strain = mbd.durability.Recovery(part).at("strain", run.body("bracket"), places)
for k, (name, axis) in enumerate({"edge": 0, "web": 0, "ear": 1}.items()):
    error = run.gauge("bracket", name).strain[:, 0] - strain[:, k, axis, axis]
    check(f"gauge {name}, error", np.abs(error).max() / np.abs(strain[:, k]).max(), 0.0, 0.02)
energy = run.energies().total
lost = np.trapezoid(40.0 * strut.length_rate**2, run.time)
balance = (motor.work[-1] - (energy[-1] - energy[0]) - lost) / np.abs(motor.work).max()
check("energy balance, relative error", abs(balance), 0.0, 2e-3)
check("lowest speed", run.joint("main").rotation_rate.min(), 0.9 * speed, speed, "rad/s")
# -
