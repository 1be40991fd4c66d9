"""A double pendulum whose lower arm is flexible, from the mesh to the motion.

A rigid arm and a slender elastic one swing from the horizontal. Energy is held against its start,
and the flexible arm against the rigid one as it is made stiffer. A table and a plot go to
`results/double_pendulum`. Runs serial and under `mpirun -n 2`.
"""

# # A double pendulum with a flexible arm
#
# Two arms, two hinges, no drive: everybody's example of a motion that depends on its start more
# than anyone can know it. Long before that shows, an arm that bends moves differently from one that
# does not.

# +
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from dolfinx.mesh import CellType, create_box, locate_entities_boundary, meshtags
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.multibody import revolute

comm = MPI.COMM_WORLD
root = comm.rank == 0
results = Path("results/double_pendulum")
results.mkdir(parents=True, exist_ok=True)


def report(text: str) -> None:
    """Print once, not once a rank."""
    if root:
        print(text, flush=True)


# -

# ## The flexible arm
#
# A bar of acrylic glass, 500 × 20 × 4 mm, that swings in the plane of its thin side. It is meshed
# and reduced once: the other arms are of the same mass and so many times as stiff, and a reduced
# body is data. Its geometric stiffening, of unit loads, does not depend on the stiffness.

# +
length, width, height = 0.500, 0.020, 0.004
low, high = np.array([0.0, -height / 2, -width / 2]), np.array([length, height / 2, width / 2])
bar = create_box(comm, [low, high], [24, 1, 1], CellType.hexahedron)
ends = {"upper": 0.0, "lower": length}
facets = [
    locate_entities_boundary(bar, 2, lambda p, x=x: np.isclose(p[0], x)) for x in ends.values()
]
numbers = np.repeat(np.arange(1, 3, dtype=np.int32), [len(f) for f in facets])
order = np.argsort(np.concatenate(facets))
facet_tags = meshtags(bar, 2, np.concatenate(facets)[order], numbers[order])
groups = {name: (2, k) for k, name in enumerate(ends, 1)}
mesh = mbd.TaggedMesh(bar, facet_tags=facet_tags, groups=groups)
softest = mbd.reduce(
    mesh,
    mbd.Material(3e9, 0.37, 1190.0),
    interfaces={name: mbd.InterfaceSpec(axes=np.eye(3)) for name in ends},
    num_modes=4,
    stiffening=True,
    name="arm",
    options=mbd.ReductionOptions(skin=False),
).body
report(softest.summary())


def arm(factor: float) -> mbd.ReducedBody:
    """The same arm of a material so many times as stiff."""
    return softest.replace(stiffness=factor * softest.stiffness)


# -

# ## The pendulum
#
# The upper arm is a rigid aluminium bar of 300 mm. Two hinges about z, gravity along −y, both arms
# horizontal at the start and at rest, the lower one in the shape in which it is in balance with the
# motion that begins. Nothing is damped.


# +
upper_length, dt, t_end = 0.300, 5e-4, 0.8


def pendulum(lower: mbd.ReducedBody) -> mbd.System:
    """The double pendulum with this lower arm."""
    ground = mbd.Ground({"pivot": mbd.Frame()})
    upper = mbd.RigidBody.box(
        "upper arm",
        (upper_length, 0.010, 0.020),
        density=2700.0,
        centre=(upper_length / 2, 0.0, 0.0),
        frames={"pivot": mbd.Frame(), "elbow": mbd.Frame((upper_length, 0.0, 0.0))},
    )
    flexible = mbd.FlexibleBody(
        "lower arm", lower, position=(upper_length, 0.0, 0.0), damping_ratio=0.0
    )
    joints = [
        revolute("pivot", ground.frame("pivot"), upper.frame("pivot")),
        revolute("elbow", upper.frame("elbow"), flexible.frame("upper")),
    ]
    return mbd.System([ground, upper, flexible], joints, gravity=(0.0, -mbd.STANDARD_GRAVITY, 0.0))


report("\n" + str(pendulum(softest)))
factors = (1.0, 10.0, 100.0)
rigid = mbd.simulate(pendulum(softest.rigid()), t_end=t_end, dt=dt)
runs = [mbd.simulate(pendulum(arm(factor)), t_end=t_end, dt=dt) for factor in factors]
# -

# ## What comes out
#
# How far the tips of the flexible arms are from that of the rigid one, how much they bend, and how
# much the energy strays. Twice the stiffness is half the deflection, and as long as the difference
# is small it falls with the stiffness too.


# +
def tip(run: mbd.Solution) -> np.ndarray:
    """Path of the lower end (nt, 3), m."""
    return run.sensor("lower arm", "lower")


def bending(run: mbd.Solution) -> np.ndarray:
    """Displacement of the lower end across the tangent of the upper one (nt,), m."""
    eta = run.body("lower arm").eta
    upper, lower = (softest.interface(name) for name in ends)
    motion = eta @ lower.motion.T - eta @ upper.motion.T
    return motion[:, 1] - length * (eta @ upper.motion[5])


apart = [np.linalg.norm(tip(run) - tip(rigid), axis=1) for run in runs]
energies = [run.energies() for run in (rigid, *runs)]
strays = [float(np.ptp(e.total) / np.ptp(e.gravity)) for e in energies]
early = rigid.time <= 0.4
lines = ["times as stiff  apart until 0.4 s (mm)  until 0.8 s (mm)  bending (mm)  energy strays"]
for k, factor in enumerate(factors):
    lines.append(
        f"{factor:14.0f}  {1e3 * apart[k][early].max():22.4f}  {1e3 * apart[k].max():16.4f}"
        f"  {1e3 * np.abs(bending(runs[k])).max():12.4f}  {strays[k + 1]:13.2e}"
    )
lines.append(f"         rigid{' ' * 60}{strays[0]:13.2e}")
report("\n" + "\n".join(lines))


def plot() -> None:
    """Paths of the tips, and the energies of the softest."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    canvas, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), constrained_layout=True)
    for name, run in (("rigid", rigid), ("flexible", runs[0])):
        x, y, _ = tip(run).T
        left.plot(x, y, label=name)
    left.set(xlabel="x (m)", ylabel="y (m)", aspect="equal", title="tip of the lower arm")
    left.legend()
    energy = energies[1]
    for name in ("kinetic", "elastic", "gravity", "total"):
        right.plot(energy.time, getattr(energy, name), label=name)
    right.set(xlabel="time (s)", ylabel="energy (J)", title="with the flexible arm")
    right.grid(alpha=0.3)
    right.legend()
    canvas.savefig(results / "pendulum.png", dpi=110)
    plt.close(canvas)


if root:
    (results / "pendulum.txt").write_text("\n".join(lines) + "\n")
    plot()
report(f"\n{results}/pendulum.txt and pendulum.png are written")
# -

# ## Does it hold?

# +
failed = False


def check(what: str, value: float, low: float, high: float) -> None:
    """Print a number with its bounds and remember if it is outside."""
    global failed
    ok = low <= value <= high
    failed |= not ok
    report(f"{'ok  ' if ok else 'FAIL'} {what:<52} {value:10.4g} in [{low:g}, {high:g}]")


report("")
for name, stray in zip(
    ("rigid", *(f"{f:.0f} times as stiff" for f in factors)), strays, strict=True
):
    check(f"{name}: energy strays by", stray, 0, 1e-4)
for k in (0, 1):
    ratio = float(apart[k][early].max() / apart[k + 1][early].max())
    check(f"apart, {factors[k]:.0f} over {factors[k + 1]:.0f} times as stiff", ratio, 9, 11)
sys.exit(failed)
# -
