"""A double pendulum with a flexible arm, from the mesh to the motion.

You let a rigid arm and a slender elastic one swing from the horizontal, and make the elastic arm
stiffer until it moves like a rigid one. Files go to `results/double_pendulum`. Runs on one rank and
under `mpirun -n 2`.
"""

# # A double pendulum with a flexible arm
#
# The motion of a double pendulum is chaotic: small differences in the initial state can grow
# exponentially. Long before this effect is visible, a flexible arm moves differently from a rigid
# one.

# +
from __future__ import annotations

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.tutorials import check, report

results = tutorials.results_folder("double_pendulum")
# -

# ## The flexible arm
#
# A bar of acrylic glass, 500 × 4 × 20 mm, bends in the direction of its thickness of 4 mm. You
# reduce it once. The same bar of a stiffer material needs no new reduction: its stiffness matrix
# is proportional to Young's modulus. (Its geometric stiffening per unit of force does not depend
# on the modulus.)

# +
length = 0.500
mesh = tutorials.tagged_bar((length, 0.004, 0.020), (24, 1, 1), ("upper", "lower"))
softest = mbd.reduce(
    mesh,
    mbd.Material(young=3e9, poisson=0.37, density=1190.0),
    interfaces={name: mbd.InterfaceSpec(axes=np.eye(3)) for name in ("upper", "lower")},
    num_modes=4,
    name="arm",
).body
report(softest.summary())
# -

# ## The pendulum
#
# The upper arm is a rigid aluminium bar of 300 mm. Both arms start from rest in the horizontal; the
# flexible one starts in its quasi-static shape. Nothing is damped.


# +
def pendulum(lower: mbd.ReducedBody) -> mbd.System:
    """Return the double pendulum with a reduced body as its lower arm."""
    ground = mbd.Ground({"pivot": mbd.Frame()})
    upper = mbd.RigidBody.box(
        "upper arm",
        (0.300, 0.010, 0.020),
        density=2700.0,
        centre=(0.150, 0.0, 0.0),
        frames={"pivot": mbd.Frame(), "elbow": mbd.Frame((0.300, 0.0, 0.0))},
    )
    arm = mbd.FlexibleBody("lower arm", lower, position=(0.300, 0.0, 0.0), damping_ratio=0.0)
    joints = [
        mbd.revolute("pivot", ground.frame("pivot"), upper.frame("pivot")),
        mbd.revolute("elbow", upper.frame("elbow"), arm.frame("upper")),
    ]
    return mbd.System([ground, upper, arm], joints, gravity=(0.0, -mbd.STANDARD_GRAVITY, 0.0))


report(f"\n{pendulum(softest)}")
factors = (1.0, 10.0, 100.0)
arms = {f"{f:.0f} times": softest.replace(stiffness=f * softest.stiffness) for f in factors}
arms["rigid"] = softest.rigid()
runs = {name: mbd.simulate(pendulum(arm), t_end=0.8, dt=5e-4) for name, arm in arms.items()}
# -

# ## Results
#
# The table shows how far the tips of the flexible arms are from the tip of the rigid one, how much
# they bend, and how well the energy is conserved: the change of the total energy is divided by the
# range of the potential energy of gravity. As long as the distance is small, an arm with ten times
# the stiffness has a tenth of the distance. Below, `upper` and `lower` are the ends of this arm.

# +
tips = {name: run.sensor("lower arm", "lower") for name, run in runs.items()}
energies = {name: run.energies() for name, run in runs.items()}
time = runs["rigid"].time
early = time <= 0.4
apart, drift = {}, {}
report("\nstiffness  apart until 0.4 s (mm)  until 0.8 s (mm)  bending (mm)  change of energy")
for name, run in runs.items():
    eta = run.body("lower arm").eta
    upper, lower = (arms[name].interface(end).motion for end in ("upper", "lower"))
    bending = eta @ (lower - upper)[1] - length * (eta @ upper[5])
    distance = 1e3 * np.linalg.norm(tips[name] - tips["rigid"], axis=1)
    apart[name] = distance[early].max()
    drift[name] = np.ptp(energies[name].total) / np.ptp(energies[name].gravity)
    report(
        f"{name:<9}  {apart[name]:22.4f}  {distance.max():16.4f}"
        f"  {1e3 * np.abs(bending).max():12.4f}  {drift[name]:16.2e}"
    )
tutorials.save_report(results / "pendulum.txt")

with tutorials.figure(results / "pendulum.png", 1, 2) as (left, right):
    for name in ("rigid", "1 times"):
        left.plot(tips[name][:, 0], tips[name][:, 1], label=name)
    left.set(xlabel="x (m)", ylabel="y (m)", aspect="equal", title="tip of the lower arm")
    left.margins(0.05)
    left.legend(title="stiffness")
    for kind in ("kinetic", "elastic", "gravity", "total"):
        right.plot(time, getattr(energies["1 times"], kind), label=kind)
    right.set(xlabel="time (s)", ylabel="energy (J)", title="with the softest arm")
    right.legend()
# -

# The softest arm, with its deformation enlarged 5 times:

tutorials.show(mbd.plotting.player, runs["1 times"], results / "pendulum.html", scale=5)

# ## Checks

# +
for name, value in drift.items():
    check(f"stiffness {name}: change of energy, relative", value, 0, 1e-4)
names = list(arms)
for softer, stiffer in ((0, 1), (1, 2)):
    ratio = apart[names[softer]] / apart[names[stiffer]]
    check(f"distance, {names[softer]} over {names[stiffer]}", ratio, 9, 11)
# -
