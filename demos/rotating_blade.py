"""A rotating blade: its frequencies over the speed, and why it needs geometric stiffness.

You compute the Campbell diagram of a slender blade with solid elements and compare it with the
literature. Files go to `results/rotating_blade`. Runs on one rank and under `mpirun -n 2`.
"""

# # The Campbell diagram of a rotating blade
#
# A blade turns with the constant speed $\Omega$ about an axis $n$ through its root. The centrifugal
# load stretches it, and small vibrations about that state, seen from the turning frame, obey
#
# $$M\ddot u+(\Omega G+D)\,\dot u+\big(K+\Omega^2(K_\sigma+K_\omega)\big)\,u = 0.$$
#
# - $G$, from $2\int\rho\,(n\times\dot u)\cdot v$, is the skew Coriolis matrix. It does no work.
# - $K_\omega$, from $\int\rho\,(n\times(n\times u))\cdot v$, is *spin softening*: points that move
#   outwards in the plane of rotation are pulled further out.
# - $K_\sigma$, from $\int(\nabla u\,\sigma_0):\nabla v$, is the geometric stiffness of the
#   centrifugal stress: the centrifugal force tightens the blade like a string.
#
# $D$ is the damping. All matrices are constant, assembled once. Each speed costs a factorization.

# +
from __future__ import annotations

from functools import partial

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import structures, tutorials
from dolfinx_mbd.forms import saint_venant_kirchhoff
from dolfinx_mbd.tutorials import check, report

comm = MPI.COMM_WORLD
results = tutorials.results_folder("rotating_blade")
# -

# ## The blade
#
# The steel blade is 1 m long, 20 mm wide in the plane of rotation and 15 mm high along the axis.
# It bends along the axis (*flap*) and in the plane (*lag*). Elements are short at the clamped root.

# +
length, width, height = 1.0, 0.020, 0.015
steel = mbd.Material(young=2.1e11, poisson=0.3, density=7850.0, name="steel")
blade = tutorials.tagged_bar((length, width, height), (24, 1, 1), ("root", "tip"))
blade.mesh.geometry.x[:, 0] **= 2
structure = structures.rotating_structure(blade, steel, held=["root"])  # about z
# -

# ## Comparison with the literature
#
# For a slender cantilever with its root on the axis, Wright, Smith, Thresher and Wang (1982) give
# $\omega\sqrt{\rho AL^4/EI}$ over $\gamma=\Omega\sqrt{\rho AL^4/EI}$. Their beam has no shear, no
# rotary inertia and no Coriolis coupling of lag to stretching. The effects of shear and rotary
# inertia nearly cancel in $\omega^2(\Omega)-\omega^2(0)$; `coriolis=False` leaves the coupling out.

# +
literature = {
    "flap": (3.51602, 3.68165, 4.13732, 4.79728, 5.58500, 6.44954),  # γ = 0 to 5
    "lag": (3.51602, 3.54324, 3.62180, 3.74351, 3.89772, 4.07390),
}
scale = {
    kind: np.sqrt(12 * steel.density / steel.young) * length**2 / depth
    for kind, depth in (("flap", height), ("lag", width))
}


def first(kind: str, gamma: float) -> float:
    """Return the first dimensionless frequency of flap or lag."""
    modes = structures.rotating_modes(structure, gamma / scale[kind], num_modes=4, coriolis=False)
    shapes = modes.vectors.real.reshape(-1, 3, modes.vectors.shape[1])
    size = comm.allreduce(np.sum(shapes**2, axis=0))
    across = size[2 if kind == "flap" else 1] > 0.9 * size.sum(axis=0)
    return float(modes.eigenvalues.imag[across][0] * scale[kind])


errors = []
for kind, expected in literature.items():
    report(f"\n{kind}: γ, computed, literature, error of ω²(Ω) − ω²(0)")
    values = [first(kind, gamma) for gamma in range(6)]
    for gamma in range(1, 6):
        rise, expected_rise = (f[gamma] ** 2 - f[0] ** 2 for f in (values, expected))
        errors.append(rise / expected_rise - 1)
        row = f"  {gamma}  {values[gamma]:9.5f}  {expected[gamma]:9.5f}"
        report(f"{row}  {100 * errors[-1]:8.3f} %")
# -

# ## The diagram
#
# The diagram includes Coriolis forces and a little damping. Engine orders are $1, 2, \dots$ times
# the speed; where one crosses a mode, a load that is fixed in space excites the mode.
# Flap gains $1.19\,\Omega^2$ and lag only $0.19\,\Omega^2$, so flap overtakes lag.

# +
top = 3000 * np.pi / 30
speeds = np.linspace(0.0, top, 13)
slight = mbd.body.Rayleigh(stiffness=2e-5)
damped = structures.rotating_structure(blade, steel, held=["root"], damping=slight)
diagram = structures.campbell(damped, speeds, num_modes=4)
report(f"\n{diagram.summary()}")
mbd.plotting.player(structures.rotating_modes(damped, top, num_modes=4), results / "modes.html")
# -

# ## Without geometric stiffness
#
# Small-strain elasticity in a turning frame leaves $K_\sigma$ out. The frequency of the lag mode is
# then zero if the speed equals its frequency at rest, $\gamma=3.516$; simulations at higher speeds
# diverge. With $K_\sigma$ the blade is stable at any speed that its strength allows.

# +
without = structures.campbell(structure, speeds, num_modes=4, stiffening=False)
lost = structures.critical_speed(structure, top, stiffening=False)
unbounded = structures.critical_speed(structure, 2 * top, steps=4)
gamma_lost = lost.speed * scale["lag"] if lost else np.nan
# -

# ## Large displacements
#
# The stress above follows from a linear static solution. A hyperelastic material (St. Venant and
# Kirchhoff) in equilibrium in the deformed position gives slightly different frequencies: the
# relative difference is of the order of the strain, $\rho\Omega^2L^2/2E$.

# +
state = structures.spinning_equilibrium(structure, lambda u: saint_venant_kirchhoff(u, steel), top)
linear = structures.rotating_modes(structure, top, num_modes=4).frequencies
difference = np.abs(state.modes(4).frequencies / linear - 1).max()
strain = steel.density * top**2 * length**2 / (2 * steel.young)
tutorials.save_report(results / "campbell.txt")
for name, part in (("with_stiffening", diagram), ("without_stiffening", without)):
    draw = partial(mbd.plotting.campbell_diagram, whirl=part.whirl, growing=part.growing)
    path, title = results / f"{name}.png", name.replace("_", " ")
    tutorials.show(draw, speeds, part.frequencies, path, title=title)
# -

# ## Checks

# +
f = diagram.frequencies
check("greatest error against the literature", np.abs(errors).max(), 0.0, 0.005)
overtakes = bool(f[0, 0] < f[0, 1] and f[-1, 0] > f[-1, 1])
check("flap overtakes lag", overtakes, 1, 1)
ratio = diagram.damping_ratios[0, 0] / (np.pi * 2e-5 * f[0, 0])
check("damping ratio of flap at rest over π f β", ratio, 0.999, 1.001)
check("growing modes with geometric stiffness", diagram.growing.sum(), 0, 0)
check("γ at which lag is unstable without geometric stiffness", gamma_lost, 3.50, 3.53)
check("critical speeds with geometric stiffness", unbounded is not None, 0, 0)
check("hyperelastic against linear, over the strain", difference / strain, 0.0, 1.0)
# -
