"""A rotating blade: its frequencies over the speed, against the literature, and lost stability.

Solid finite elements of a slender blade with prestress, spin softening and Coriolis forces. A
Campbell diagram and a table go to `results/campbell`. Runs serial and under `mpirun -n 2`.
"""

# # The Campbell diagram of a rotating blade
#
# A blade turns steadily with the speed $\Omega$ about the axis $n$ through its root. The
# centrifugal load pulls it straight, and small vibrations about that state, seen from the turning
# frame, obey
#
# $$
# M\ddot u + (\Omega G + D)\,\dot u + \big(K + \Omega^2 (K_\sigma + K_\omega)\big)\,u = 0 .
# $$
#
# - $G$, from $2\int\rho\,(n\times\dot u)\cdot v$, is the Coriolis matrix: skew, does no work;
# - $K_\omega$, from $\int\rho\,(n\times(n\times u))\cdot v$, is *spin softening*: what has moved
#   outwards in the plane of rotation is drawn further out;
# - $K_\sigma$, from $\int(\nabla u\,\sigma_0):\nabla v$, is the geometric stiffness of the
#   centrifugal stress: the blade is a string as well as a beam.
#
# All of them are constant. They are assembled once, and each speed costs a factorization.

# +
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from dolfinx.mesh import CellType, create_box, locate_entities_boundary, meshtags
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.body import Rayleigh
from dolfinx_mbd.forms import saint_venant_kirchhoff
from dolfinx_mbd.plotting.charts import campbell_diagram
from dolfinx_mbd.rotating import (
    campbell,
    critical_speed,
    rotating_modes,
    rotating_structure,
    spinning_equilibrium,
)

comm = MPI.COMM_WORLD
root = comm.rank == 0
results = Path("results/campbell")
lines: list[str] = []


def report(text: str) -> None:
    """Print once, not once a rank, and keep it."""
    lines.append(text)
    if root:
        print(text, flush=True)


# -

# ## The blade
#
# Steel, one metre long, 20 mm wide in the plane of rotation and 15 mm high along the axis. It bends
# along the axis (*flap*) and in the plane (*lag*). The clamp keeps the section from contracting
# within about a width of it, so that the elements are shorter there.

# +
length, width, height = 1.0, 0.020, 0.015
steel = mbd.Material(young=2.1e11, poisson=0.3, density=7850.0, name="steel")

low, high = np.array([0.0, -width / 2, -height / 2]), np.array([length, width / 2, height / 2])
box = create_box(comm, [low, high], [24, 1, 1], CellType.hexahedron)
box.geometry.x[:, 0] **= 2
end = locate_entities_boundary(box, 2, lambda x: np.isclose(x[0], 0.0))
tags = meshtags(box, 2, np.sort(end), np.full(len(end), 1, dtype=np.int32))
blade = mbd.TaggedMesh(box, None, tags, {"root": (2, 1)})

structure = rotating_structure(blade, steel, held=["root"], axis=(0, 0, 1), point=(0, 0, 0))
# -

# ## Against the literature
#
# For a slender cantilever whose root is on the axis, Wright, Smith, Thresher and Wang (1982) give
# $\omega\sqrt{\rho AL^4/EI}$ over $\gamma=\Omega\sqrt{\rho AL^4/EI}$. Beam theory has no shear and
# no rotary inertia, which the solid has; in $\omega^2(\Omega)-\omega^2(0)$ they cancel but for
# $(b/L)^2$. The beam has no Coriolis forces either, which couple lag to stretching, and they are
# left out here.

# +
literature = {
    "flap": {0: 3.51602, 1: 3.68165, 2: 4.13732, 3: 4.79728, 4: 5.58500, 5: 6.44954},
    "lag": {0: 3.51602, 1: 3.54324, 2: 3.62180, 3: 3.74351, 4: 3.89772, 5: 4.07390},
}
time = {
    kind: np.sqrt(12 * steel.density / steel.young) * length**2 / depth
    for kind, depth in (("flap", height), ("lag", width))
}


def first(kind: str, gamma: float) -> float:
    """The first frequency of that kind without dimension."""
    modes = rotating_modes(structure, gamma / time[kind], num_modes=4, coriolis=False)
    z = modes.vectors.real.reshape(-1, 3, modes.vectors.shape[1])
    size = comm.allreduce(np.sum(z**2, axis=0))
    across = size[2 if kind == "flap" else 1] > 0.9 * size.sum(axis=0)
    return float(modes.eigenvalues.imag[across][0] * time[kind])


errors = []
for kind, table in literature.items():
    report(f"\n{kind}: γ, computed, literature, difference of the squares to rest: error")
    rest = first(kind, 0.0)
    for gamma, expected in table.items():
        value = first(kind, gamma)
        text = ""
        if gamma:
            rise = expected**2 - table[0] ** 2
            errors.append((value**2 - rest**2) / rise - 1)
            text = f"{100 * errors[-1]:8.3f} %"
        report(f"  {gamma}  {value:9.5f}  {expected:9.5f} {text}")
# -

# ## The diagram
#
# With Coriolis forces and a little damping, up to 3000 revolutions per minute. Where a line of the
# engine orders, $1\times, 2\times, \dots$ the speed, meets a mode, a load that is fixed in space
# drives it. Flap gains $1.19\,\Omega^2$ and lag only $0.19\,\Omega^2$ (flap minus one: spin
# softening), so that flap overtakes lag.

# +
top = 3000 * np.pi / 30
damped = rotating_structure(blade, steel, held=["root"], damping=Rayleigh(stiffness=2e-5))
diagram = campbell(damped, np.linspace(0.0, top, 13), num_modes=4)
report("\n" + diagram.summary())
f = diagram.frequencies
overtaken = bool(f[0, 0] < f[0, 1] and f[-1, 0] > f[-1, 1])
report(f"flap overtakes lag: {overtaken}")
ratio = diagram.damping_ratios[0, 0] / (np.pi * 2e-5 * f[0, 0])
# -

# ## Without the stress
#
# Leaving $K_\sigma$ out, as small-strain elasticity in a floating frame does, is not a small
# matter: lag softens to nothing where $\Omega$ reaches its frequency at rest, $\gamma=3.516$, and
# the solution of any simulation diverges there. With $K_\sigma$ the blade is stable at any speed
# it withstands.

# +
lost = critical_speed(structure, top, stiffening=False)
assert lost is not None
gamma_lost = lost.speed * time["lag"]
kept = critical_speed(structure, 2 * top, steps=4)
report(
    f"\nwithout geometric stiffness: {lost.kind} at {lost.speed * 30 / np.pi:.2f} 1/min, "
    f"γ = {gamma_lost:.4f} (3.516); with it: {'stable' if kept is None else kept.speed}"
)
without = campbell(structure, np.linspace(0.0, top, 13), num_modes=4, stiffening=False)
# -

# ## Great displacements
#
# The stress above is that of a linear static solution. A hyperelastic energy, St. Venant and
# Kirchhoff's, about its equilibrium in the deformed position gives the frequencies that differ
# by the strain, here $\rho\Omega^2L^2/2E$.

# +
state = spinning_equilibrium(structure, lambda u: saint_venant_kirchhoff(u, steel), top)
exact, linear = state.modes(4).frequencies, rotating_modes(structure, top, num_modes=4).frequencies
strain = steel.density * top**2 * length**2 / (2 * steel.young)
difference = float(np.abs(exact / linear - 1).max())
report(
    f"\nhyperelastic against linear prestress at {top * 30 / np.pi:.0f} 1/min: "
    f"{difference:.1e} (strain {strain:.1e})"
)
# -

# ## Pictures

# +
if root:
    results.mkdir(parents=True, exist_ok=True)
    (results / "campbell.txt").write_text("\n".join(lines).lstrip() + "\n")
    for name, part in (("with_stiffening", diagram), ("without_stiffening", without)):
        campbell_diagram(
            part.speeds,
            part.frequencies,
            results / f"{name}.png",
            whirl=part.whirl,
            growing=part.growing,
            title=f"blade, {name.replace('_', ' ')}",
        )
    print(f"\n{results}/campbell.txt, with_stiffening.png and without_stiffening.png are written")
# -

# ## Does it hold?

# +
failed = False


def check(what: str, value: float, low: float, high: float) -> None:
    """Print a number with its bounds and remember if it is outside."""
    global failed
    ok = low <= value <= high
    failed |= not ok
    report(f"{'ok  ' if ok else 'FAIL'} {what:<58} {value:10.5g} in [{low:g}, {high:g}]")


report("")
check("greatest error against the literature", float(np.abs(errors).max()), 0.0, 0.005)
check("flap overtakes lag", overtaken, 1, 1)
check("damping ratio of flap at rest over π f β", ratio, 0.999, 1.001)
check("modes of the blade that grow, with stiffening", int(diagram.growing.sum()), 0, 0)
check("γ at which lag is lost without stiffening", gamma_lost, 3.50, 3.53)
check("speed at which it is lost with stiffening: none", kept is None, 1, 1)
check("hyperelastic against linear, over the strain", difference / strain, 0.0, 1.0)
sys.exit(failed)
# -
