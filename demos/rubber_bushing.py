"""A rubber bushing between two arms, on its whole mesh, at large strains.

You push one arm against the other, slowly and fast, and draw the force over the displacement. Runs
in about a minute, on one rank and under `mpirun -n 2`.
"""

# # A rubber bushing on its whole mesh
#
# A reduced body is linear, and rubber is not. A `MeshBody` accepts any energy density. You
# compute the force of a bushing between two arms over its displacement, and its hysteresis.

# +
from __future__ import annotations

import numpy as np
from dolfinx import mesh
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.tutorials import check_close, report

comm = MPI.COMM_WORLD
results = tutorials.results_folder("rubber_bushing")
INNER, OUTER, LENGTH = 0.01, 0.02, 0.03  # radii and length, m
STROKE, VISCOSITY = 0.003, 1e-3  # m; retardation time, s
RUBBER = mbd.forms.Material(3e6, 0.45, 1100.0)
# -

# ## The mesh
#
# A box of hexahedra is bent to a ring with a slit. The facets on the sleeves get the tags 1 and 2.

# +
ring = mesh.create_box(comm, [np.zeros(3), np.ones(3)], [2, 12, 1], mesh.CellType.hexahedron)
find = mesh.locate_entities_boundary
sleeves = [find(ring, 2, lambda x, s=s: np.isclose(x[0], s)) for s in (0, 1)]
facets = np.concatenate(sleeves)
values = np.repeat(np.array([1, 2], dtype=np.int32), [len(f) for f in sleeves])
order = np.argsort(facets)
tags = mesh.meshtags(ring, 2, facets[order], values[order])
s, around, along = ring.geometry.x.T.copy()
radius, angle = INNER + (OUTER - INNER) * s, 0.02 + (2 * np.pi - 0.04) * around
x = [radius * np.cos(angle), radius * np.sin(angle), LENGTH * (along - 0.5)]
ring.geometry.x[:] = np.transpose(x)
model = mbd.ElasticModel(ring, RUBBER, facet_tags=tags, degree=2)
interfaces = {
    name: mbd.InterfaceSpec(tag, point=(0, 0, 0), axes=np.eye(3))
    for name, tag in (("inner", 1), ("outer", 2))
}
# -

# ## The material
#
# This energy stiffens at large strains. It is an expression of the invariants of the deformation; a
# function that returns UFL for the displacement is another possibility. The body checks that the
# energy has no forces at rest.

# +
BULK = RUBBER.young / (3 * (1 - 2 * RUBBER.poisson))
stretch = "(I1*J^(-2/3) - 3)"
stiffening = f"{RUBBER.shear / 2}*({stretch} + 0.2*{stretch}^2) + {BULK / 2}*(J - 1)^2"
pad = mbd.MeshBody("bushing", model, interfaces, energy=stiffening, viscosity=VISCOSITY)
# -

# ## The mechanism
#
# A driver moves the arm at the inner sleeve along x. The arm at the outer sleeve does not move.

# +
along_x = mbd.Frame(axes=(1, 0, 0))
arm = mbd.RigidBody("arm", 0.5, [1e-3] * 3, frames={"eye": mbd.Frame(), "guide": along_x})
ground = mbd.Ground({"eye": mbd.Frame(), "guide": along_x})


def cycle(frequency: float, stroke: float = STROKE) -> mbd.System:
    """Return the mechanism whose arm oscillates between 0 and the stroke, m."""
    w, half = 2 * np.pi * frequency, stroke / 2
    guide = mbd.prismatic("guide", ground.frame("guide"), arm.frame("guide"))
    inner = mbd.fixed("inner", arm.frame("eye"), pad.frame("inner"))
    outer = mbd.fixed("outer", ground.frame("eye"), pad.frame("outer"))
    drivers = [mbd.Driver("push", "guide", f"{half}*(1 - cos({w}*t))")]
    return mbd.System([ground, arm, pad], [guide, inner, outer], drivers=drivers)


# -

# ## The characteristic curve
#
# Equilibria at eight displacements give the curve; viscosity has no effect there.

# +
slow = mbd.analyses.quasi_static_motion(cycle(1.0), np.linspace(0, 0.5, 9)[1:])
curve_x = STROKE * (1 - np.cos(2 * np.pi * slow.time)) / 2
curve_f = np.abs(slow.joint("outer").force[:, 0])
secant = curve_f / curve_x
report(f"stiffness: {secant[0] / 1e3:.1f} to {secant[-1] / 1e3:.1f} N/mm")
# -

# ## The hysteresis
#
# In a fast cycle the viscosity opens the curve. The area of the loop is the loss of a cycle.


# +
def loop(stroke: float, frequency: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return displacements, m, and forces, N, of one cycle."""
    run = mbd.simulate(cycle(frequency, stroke), t_end=1 / frequency, dt=1 / frequency / steps)
    force = run.joint("outer").force[:, 0]
    place = stroke * (1 - np.cos(2 * np.pi * frequency * run.time)) / 2
    return place, force * np.sign(force[steps // 2])


FREQUENCY = 20.0  # Hz
loop_x, loop_f = loop(STROKE, FREQUENCY, 100)
report(f"loss at {FREQUENCY:g} Hz: {1e3 * (loss := np.trapezoid(loop_f, loop_x)):.1f} mJ")
report(mbd.most_stressed(pad, slow, 1, what="greatest principal"))
with tutorials.figure(results / "rubber_bushing.png") as axes:
    axes.plot(1e3 * curve_x, curve_f, "o-", label="slow")
    axes.plot(1e3 * loop_x, loop_f, label=f"{FREQUENCY:g} Hz")
    axes.set(xlabel="displacement (mm)", ylabel="force (N)", title="Rubber bushing")
    axes.legend()
# -

# ## Checks
#
# The work along the slow curve is the elastic energy of the rubber. A linear bushing with the
# stiffness $k$, the retardation time $\tau$ and the amplitude $X$ loses $\pi\tau\omega k X^2$ in a
# cycle at the angular frequency $\omega$; at a small amplitude, this one loses the same.

# +
fit = np.polyfit(np.r_[0.0, curve_x], np.r_[0.0, curve_f], 5)
work = np.polyval(np.polyint(fit), STROKE)
check_close("work / elastic energy", work / slow.energies().elastic[-1], 1.0, 1e-5)
small_loss = float(np.trapezoid(*loop(1e-4, FREQUENCY, 40)[::-1]))
linear = np.pi * VISCOSITY * 2 * np.pi * FREQUENCY * secant[0]
report(f"loss / loss if it were linear: {loss / linear / (STROKE / 2) ** 2:.3f}")
check_close("the same at a small amplitude", small_loss / linear / 0.5e-4**2, 1.0, 0.05)
# -
