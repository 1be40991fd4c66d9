"""A stage on two leaf springs that bend by large angles, on their whole meshes.

You push the stage aside by more than half the length of the leaves, compare its place with the
elastica, and see how its natural frequency changes. Runs in about a minute, on one rank and under
`mpirun -n 2`.
"""

# # A stage on two leaf springs
#
# Two thin strips of glass fibres in resin carry a stage and bend to the shape of an S. Strains are
# small but rotations are large: the farther the stage is pushed aside, the lower it sinks and the
# stiffer the leaves become. A reduced body is linear and cannot describe this.

# +
from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ellipe, ellipeinc, ellipk, ellipkinc

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.tutorials import check_close

results = tutorials.results_folder("leaf_spring")
LENGTH, WIDTH, THICKNESS, GAP = 0.3, 0.010, 0.002, 0.12  # m
FIBRES = mbd.forms.Material(4e10, 0.3, 1900.0)  # glass fibres in resin
BENDING = FIBRES.young * WIDTH * THICKNESS**3 / 12  # N m²
STAGE, CARRIAGE = 0.05, 4.0  # masses, kg
# -

# ## The mechanism
#
# The leaves stand along x on the ground. A carriage slides along y and pushes the stage, which may
# sink along x in the carriage.

# +
ends = ("foot", "head")
bar = tutorials.tagged_bar((LENGTH, THICKNESS, WIDTH), (48, 1, 1), ends)
model = mbd.ElasticModel(bar, FIBRES)
places = {s: mbd.Frame((0, y, 0)) for s, y in (("left", -GAP / 2), ("right", GAP / 2))}
leaves = {s: mbd.MeshBody(s, model, ends, position=f.point) for s, f in places.items()}
rails = {"rail": mbd.Frame(axes=(0, 1, 0)), "slot": mbd.Frame(axes=(1, 0, 0))}
ground = mbd.Ground(places | rails)
carriage = mbd.RigidBody("carriage", CARRIAGE, [1e-4] * 3, frames=rails)
head = (LENGTH, 0, 0)
stage = mbd.RigidBody("stage", STAGE, [1e-4] * 3, frames=places | rails, position=head)
joints = [
    mbd.prismatic("rail", ground.frame("rail"), carriage.frame("rail")),
    mbd.prismatic("slot", carriage.frame("slot"), stage.frame("slot")),
]
for side, leaf in leaves.items():
    joints.append(mbd.fixed(f"{side} foot", ground.frame(side), leaf.frame("foot")))
    joints.append(mbd.fixed(f"{side} head", leaf.frame("head"), stage.frame(side)))


def guide(force: Any) -> mbd.System:
    """Return the mechanism with a force along y on the carriage, N."""
    push = mbd.force("push", carriage.frame("rail"), force)
    return mbd.System([ground, carriage, stage, *leaves.values()], joints, loads=[push])


# -

# ## Pushing it aside
#
# The force grows in eight equilibria. Each half of a leaf is a cantilever with the load
# $\alpha = F L^2 / (8 E I)$.

# +
STRONGEST = 5.0  # largest α
UNIT = 8 * BENDING / LENGTH**2  # force for α = 1, N
pushed = guide(("0", f"{STRONGEST * UNIT}*t", "0"))
slow = mbd.analyses.quasi_static_motion(pushed, np.linspace(0, 1, 9)[1:])
force = STRONGEST * UNIT * slow.time
place = slow.body("stage").position
moved = {"aside": place[:, 1], "down": LENGTH - place[:, 0]}
# -

# The leaves at the largest force, coloured by stress.

picture = results / "leaf_spring.png"
mbd.plotting.plot_system(slow, 1.0, picture, quantity="von Mises", marks=["loads"], view="xy")

# ## The elastica
#
# A cantilever whose tip has the slope $\theta$ carries $\sqrt\alpha = K(k) - F(\varphi, k)$ with
# $k^2 = (1 + \sin\theta)/2$ and $k \sin\varphi = 1/\sqrt 2$, in elliptic integrals.


# +
def elastica(alpha: float) -> tuple[float, float]:
    """Return how far the tip of a cantilever of unit length moves aside and along its axis."""

    def excess(slope: float) -> float:
        m = (1 + np.sin(slope)) / 2
        return float(ellipk(m) - ellipkinc(np.arcsin(1 / np.sqrt(2 * m)), m) - np.sqrt(alpha))

    slope = brentq(excess, 1e-9, np.pi / 2 - 1e-9, xtol=1e-14)
    m = (1 + np.sin(slope)) / 2
    second = ellipe(m) - ellipeinc(np.arcsin(1 / np.sqrt(2 * m)), m)
    return 1 - 2 * second / np.sqrt(alpha), 1 - np.sqrt(2 * np.sin(slope) / alpha)


exact = LENGTH * np.array([elastica(f / UNIT) for f in force])
# -

# ## Vibrations about the deformed leaves
#
# The elastica gives the stiffness $dF/dy$. The carriage has nearly all of the mass.


# +
def closed_form(alpha: float) -> float:
    """Return the frequency at a load α, without the mass of the leaves, Hz."""
    step = 1e-4 * alpha
    dy, dx = LENGTH * np.subtract(elastica(alpha + step), elastica(alpha - step))
    mass = CARRIAGE + STAGE * (1 + (dx / dy) ** 2)
    return float(np.sqrt(2 * step * UNIT / dy / mass) / (2 * np.pi))


LOADS = [(0, UNIT * alpha, 0) for alpha in (0.5, 2.0, 5.0)]
modes = [mbd.structures.vibration_modes(s, mbd.equilibrium(s), 1) for s in map(guide, LOADS)]
frequencies = [float(m.frequencies[0]) for m in modes]
alphas = np.linspace(0.05, STRONGEST, 60)
curve = LENGTH * np.array([elastica(alpha) for alpha in alphas])
with tutorials.figure(results / "curves.png", columns=2) as (left, right):
    for k, (name, way) in enumerate(moved.items()):
        left.plot(1e3 * curve[:, k], UNIT * alphas, f"C{k}-", label=f"{name}, elastica")
        left.plot(1e3 * way, force, f"C{k}o", label=f"{name}, mesh")
    left.set(xlabel="displacement of the stage (mm)", ylabel="force (N)", xlim=(0, 225))
    right.plot(UNIT * alphas, [closed_form(alpha) for alpha in alphas], label="elastica")
    right.plot([y for _, y, _ in LOADS], frequencies, "o", label="mesh")
    right.set(xlabel="force (N)", ylabel="natural frequency (Hz)", xlim=(0, 125))
    left.legend()
    right.legend()
# -

# ## Checks

# +
for k, (name, way) in enumerate(moved.items()):
    for load in (2, -1):
        check_close(f"{name} at {force[load]:.0f} N, m", way[load], exact[load, k], 0.015)
for (_, force_y, _), frequency in zip(LOADS, frequencies, strict=True):
    check_close(f"frequency at {force_y:.0f} N", frequency, closed_form(force_y / UNIT), 0.01)
# -
