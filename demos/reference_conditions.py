"""Mean axis or attached frame: speeds at which two reference conditions give different results.

You simulate the same slender rod in its mean-axis frame and in frames attached to either end, at
speeds from 15 to 150 rad/s. Files go to `results/reference_conditions`. Runs on one rank and under
`mpirun -n 2`.
"""

# # Mean axis or attached frame
#
# A flexible body in a floating frame moves as $r = R + A\,(x+u)$. You choose which part of the
# motion belongs to the frame, $R$ and $A$, and which part is the deformation $u$. This choice is
# the *reference condition*:
#
# - **mean axis** (the default of `reduce`): $\int\rho\,u = 0$ and $\int\rho\,x\times u = 0$. The
#   frame follows the mass, and the deformation is as small as possible in the mean square.
# - **attached** (`reduce(..., attached_to="big_end")`): the frame moves with an interface, where
#   then $u=0$. Many programs do this, and you need it if the motion of the frame is prescribed.
#
# Both describe the same displacements. But the strains are linear in $u$, and the error of this
# approximation depends on the frame: a bar that deflects by $w$ becomes shorter by
# $\tfrac12\int w'^2$ along the axis *of its frame*, and a force $N$ along the bar does work on this
# shortening. The ratio of this work to the bending energy is about $N/N_{crit}$, with the buckling
# load $N_{crit}$. The forces grow as $\Omega^2$, and so does the difference that you measure here.

# +
from __future__ import annotations

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.tutorials import check, report

results = tutorials.results_folder("reference_conditions")
length, side = 0.300, 0.008
mesh = tutorials.tagged_bar((length, side, side), (24, 1, 1), ("big_end", "small_end"))
# -

# ## The rod
#
# The rod is a square steel bar of 300 × 8 × 8 mm. Its first bending frequency between two pins is
# 208 Hz.


# +
def reduced(attached_to: str | None) -> mbd.ReducedBody:
    """Return the rod with one of the reference conditions."""
    return mbd.reduce(
        mesh,
        mbd.STEEL,
        interfaces=["big_end", "small_end"],
        num_modes=6,
        attached_to=attached_to,
        stiffening=attached_to is None,
        points={"middle": (length / 2, 0.0, 0.0)},
        name="rod",
        options=mbd.ReductionOptions(skin=False),
    ).body


rods = {rod.reference: rod for rod in map(reduced, (None, "big_end", "small_end"))}
for name, rod in rods.items():
    report(f"{name:<22}" + "".join(f"{f:10.1f}" for f in rod.frequencies[:6]) + " Hz")
# -

# The frequencies differ: with the mean axis they belong to the free rod, with the attached frame to
# a cantilever. Both sets only describe the elastic coordinates; the frequencies of the mechanism
# also depend on its joints.
#
# ## The mechanism
#
# The mechanism has a crank of 50 mm and a piston of 0.2 kg and runs at constant speed for one turn.
# Nothing is damped, since modal damping acts on the modes of each reference condition and would be
# another difference. The deflection of the middle from the chord between the ends does not depend
# on the frame.

# +
speeds = np.array([15.0, 50.0, 90.0, 150.0])


def deflection(rod: mbd.ReducedBody, speed: float) -> np.ndarray:
    """Return the displacement of the middle across the chord over one turn (nt,), m."""
    system = mbd.mechanisms.slider_crank(
        rod, crank_radius=0.050, crank_mass=0.5, piston_mass=0.2, speed=speed, damping_ratio=0.0
    )
    run = mbd.simulate(system, t_end=2 * np.pi / speed, dt=1e-4)
    return tutorials.chord_displacement(rod, run.body("rod").eta)[:, 1]


def rms(w: np.ndarray) -> float:
    """Return the root mean square of a history."""
    return float(np.sqrt(np.mean(w**2)))


histories = [{name: deflection(rod, speed) for name, rod in rods.items()} for speed in speeds]
differences = {
    name: np.array([rms(w[name] - w["mean axis"]) / rms(w["mean axis"]) for w in histories])
    for name in rods
    if name != "mean axis"
}
slopes = {name: np.diff(np.log(d)) / np.diff(np.log(speeds)) for name, d in differences.items()}
report("\nspeed (rad/s)  deflection (mm)" + "".join(f"{name:>24}" for name in differences))
for k, speed in enumerate(speeds):
    peak = 1e3 * np.abs(histories[k]["mean axis"]).max()
    values = "".join(f"{100 * d[k]:22.4f} %" for d in differences.values())
    report(f"{speed:13.0f}  {peak:15.5f}{values}")
for name, slope in slopes.items():
    report(f"exponent of the speed, {name}: " + "  ".join(f"{s:.3f}" for s in slope))
tutorials.save_report(results / "difference.txt")

with tutorials.figure(results / "difference.png", 1, 2) as (left, right):
    for name, difference in differences.items():
        left.loglog(speeds, difference, "o-", label=name)
    slowest = differences["attached to big_end"][0]
    left.loglog(speeds, slowest * (speeds / speeds[0]) ** 2, "k:", label="slope 2")
    left.set(xlabel="speed (rad/s)", ylabel="difference to the mean axis, relative")
    left.legend()
    for name, w in histories[-1].items():
        right.plot(np.linspace(0, 360, len(w)), 1e3 * w, label=name)
    right.set(xlabel="crank angle (°)", ylabel="deflection (mm)", title=f"{speeds[-1]:.0f} rad/s")
    right.legend()
# -

# At 15 rad/s both conditions agree. At 150 rad/s they differ by some percent. Both neglect
# geometric stiffening, whose effect has the same size. It is therefore needed at this speed;
# `reduce` adds it only to bodies with the mean axis.
#
# ## Checks
#
# The exponent is two at low speed. Near 150 rad/s it is larger, because the rod comes close to the
# load where its deflection would grow without limit.

# +
for name, slope in slopes.items():
    check(f"{name}: exponent at the lowest speeds", slope[0], 1.95, 2.05)
    check(f"{name}: greatest exponent", slope.max(), 2.0, 2.3)
    whole = np.log(differences[name][-1] / differences[name][0]) / np.log(speeds[-1] / speeds[0])
    check(f"{name}: exponent from 15 to 150 rad/s", whole, 1.97, 2.12)
    check(f"{name}: difference at 15 rad/s", differences[name][0], 1e-4, 1e-3)
    check(f"{name}: difference at 150 rad/s", differences[name][-1], 0.02, 0.10)
    motion = rods[name].interface(name.removeprefix("attached to ")).motion
    check(f"{name}: motion of that interface in the frame", np.abs(motion).max(), 0.0, 0.0)
# -
