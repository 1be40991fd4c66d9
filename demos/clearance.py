"""A slider-crank whose piston pin has a clearance, compared with an ideal pin.

You give a joint a clearance, look at the orbit of the pin in its bore and at the impacts, and check
the balance of energy. Figures go to `results/clearance`. Runs on one rank and under `mpirun -n 2`.
"""

# # A joint with clearance
#
# Real joints have a clearance. The pin moves freely inside it. When the pin touches the bore, an
# impact occurs. Its force is many times the force of an ideal joint. Here the piston pin of a
# slider-crank runs in a worn plastic bush with a radial clearance of 0.1 mm.
#
# At the penetration $\delta$ the bush exerts the normal force
#
# $$F = K\,\delta\,(1 + \chi\,\dot\delta).$$
#
# The stiffness $K$ follows from the length of the bush and the material; $\chi$ follows from a
# coefficient of restitution. Coulomb friction acts at the radius of the pin.

# +
from __future__ import annotations

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.tutorials import check, report

results = tutorials.results_folder("clearance")
radius, length, speed = 0.050, 0.300, 60.0  # m, m, rad/s
play, pin_radius, pin_length = 1e-4, 0.008, 0.020  # m

plastic = mbd.Material(young=3e9, poisson=0.35, density=1200.0, name="plastic")
law = mbd.ContactLaw(
    stiffness=mbd.mechanism.line_stiffness(pin_length, mbd.STEEL, plastic),
    exponent=1.0,
    damping=mbd.mechanism.contact_damping(restitution=0.9, speed=0.1),
    friction=0.02,
)
clearance = mbd.Clearance(radial=play, law=law, radius=pin_radius)
report(f"stiffness {law.stiffness:.3g} N/m, restitution at 0.1 m/s {law.restitution(0.1):.3f}")
# -

# ## The mechanism
#
# The models with and without clearance differ in one argument. The first frame of the joint is the
# bore in the rod, the second is the pin in the piston.

# +
along_x = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # columns are axes


def slider_crank(play: mbd.Clearance | None = None) -> mbd.System:
    """Return the mechanism at the top dead centre."""
    guide = mbd.Frame(axes=along_x)
    ground = mbd.Ground({"main": mbd.Frame(), "guide": guide})
    pins = {"main": mbd.Frame(), "pin": mbd.Frame((radius, 0, 0))}
    crank = mbd.RigidBody("crank", 0.5, [1e-4, 1e-3, 1e-3], frames=pins)
    bores = {"big": mbd.Frame((-length / 2, 0, 0)), "small": mbd.Frame((length / 2, 0, 0))}
    middle = (radius + length / 2, 0, 0)
    rod = mbd.RigidBody("rod", 0.2, [1e-5, 1.5e-3, 1.5e-3], frames=bores, position=middle)
    ends = {"pin": mbd.Frame(), "guide": guide}
    top = (radius + length, 0, 0)
    piston = mbd.RigidBody("piston", 0.3, [1e-4] * 3, frames=ends, position=top)
    joints = [
        mbd.revolute("main", ground.frame("main"), crank.frame("main")),
        mbd.cylindrical("crank pin", crank.frame("pin"), rod.frame("big")),
        mbd.cylindrical("piston pin", rod.frame("small"), piston.frame("pin"), clearance=play),
        mbd.prismatic("guide", ground.frame("guide"), piston.frame("guide")),
    ]
    drive = mbd.Driver("drive", "main", mbd.constant_speed(speed))
    return mbd.System([ground, crank, rod, piston], joints, drivers=[drive])


system = slider_crank(clearance)
report(system)
# -

# The cylindrical joint with clearance still keeps the axes parallel; the contact replaces the other
# two constraints. The guide also keeps the axes parallel; `redundant="drop"` removes these
# redundant constraints. At the start, the pin is in the centre of the bore and has the velocity of
# the ideal pin.

# +
period = 2 * np.pi / speed
t_end, dt = 1.25 * period, period / 15000
ideal = mbd.simulate(slider_crank(), t_end=t_end, dt=dt, redundant="drop")
run = mbd.simulate(system, t_end=t_end, dt=dt, redundant="drop")
contact = run.element("piston pin contact")
impacts = [impact for impact in contact.impacts if impact.speed > 0.02]
report(
    f"\n{len(contact.impacts)} contacts, {len(impacts)} of them faster than 0.02 m/s; the first:"
)
for impact in impacts[:4]:
    report(
        f"{1e3 * impact.start:7.2f} ms: {impact.speed:.3f} m/s, {impact.peak_force:6.1f} N, "
        f"{1e3 * impact.loss:.2f} mJ lost"
    )
# -

# ## Results
#
# The force of `run.joint` includes the contact, so that the same line of code works for both
# mechanisms. The displacement of the joint is the orbit of the pin in the bore.

# +
angle = np.rad2deg(speed * run.time)
x, y = 1e6 * run.joint("piston pin").displacement[:, :2].T
with tutorials.figure(results / "clearance.png", 1, 2, width_ratios=(1, 1.7)) as (left, right):
    around = np.linspace(0, 2 * np.pi, 200)
    left.plot(1e6 * play * np.cos(around), 1e6 * play * np.sin(around), "k--", lw=0.8)
    left.plot(x, y, lw=0.7)
    left.set(xlabel="x (µm)", ylabel="y (µm)", aspect="equal", title="centre of the pin")
    left.margins(0.05)
    for name, solution in (("clearance 0.1 mm", run), ("ideal", ideal)):
        force = np.linalg.norm(solution.joint("piston pin").force[:, :2], axis=1)
        right.plot(angle, force, lw=0.8 if solution is run else 1.6, label=name)
    right.set(xlabel="crank angle (°)", ylabel="force (N)", title="force in the piston pin")
    right.set_xticks(np.arange(0, 451, 90))
    right.legend()
# -

# ## Checks
#
# The pin stays in its bore, except for the depth of the contact. The work of the drive equals the
# change of energy plus what the contact dissipates. The piston follows its ideal motion within the
# clearance.

# +
orbit = np.hypot(x, y).max() * 1e-6
depth = max(impact.depth for impact in contact.impacts)
check("largest eccentricity less clearance and depth", orbit - play - depth, -1e-9, 1e-9, "m")
peaks = [np.abs(r.joint("piston pin").force[:, 0]).max() for r in (run, ideal)]
report(f"largest force {peaks[0]:.0f} N, {peaks[0] / peaks[1]:.1f} times that of the ideal joint")
energy, work = run.energies().total, run.element("drive").work
balance = np.abs(energy - energy[0] + contact.dissipated - work).max()
check("balance of energy, relative", balance / np.ptp(energy), 0.0, 2e-3)
difference = run.body("piston").position[:, 0] - ideal.body("piston").position[:, 0]
check("piston, largest distance from its ideal motion", np.abs(difference).max(), 0.0, 1.2e-4, "m")
# -
