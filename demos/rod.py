"""From a mesh of a connecting rod to a reduced body.

You mesh a part, reduce it to a few modes, find out how many modes are enough, and save the result.
Files go to `results/rod`. Runs on one rank and under `mpirun -n 2`.
"""

# # From a rod to a reduced body
#
# A finite element model of a rod has some ten thousand displacements. In a mechanism the rod moves
# far but deforms little, so a few dozen shapes are enough. In the frame of the rod,
#
# $$u(x, t) = \sum_k \psi_k(x)\,\eta_k(t).$$
#
# Craig and Bampton proposed the shapes $\psi_k$: the static shapes that follow when one of the
# interfaces moves, and the lowest vibration modes with all interfaces held. The elastic coordinates
# $\eta_k$ and the motion of the frame are the unknowns of the simulation.

# +
from __future__ import annotations

from itertools import pairwise

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.tutorials import check, check_close, report

comm = MPI.COMM_WORLD
results = tutorials.results_folder("rod")
# -

# ## The mesh
#
# `ConnectingRod` is a parametric rod for gmsh. It tags the surfaces of its two bores as `big_end`
# and `small_end`. Read your own mesh with `mbd.read_mesh("part.msh", comm)`;
# `demos/step_part.py` starts from a CAD file. All lengths are in metres.

# +
geometry, material = mbd.ConnectingRod(size=0.006), mbd.ALUMINIUM_7075
mesh = mbd.build_mesh(geometry, comm)
cells = mesh.mesh.topology.index_map(3).size_global
report(f"{cells} cells, surfaces: {', '.join(mesh.groups)}")
# -

# ## The reduction
#
# Interfaces are where joints will be attached. A rigid interface (the default) moves like a pin
# that fills the bore. With two interfaces, the rod gets $6\cdot 2 - 6 = 6$ static shapes besides
# its vibration modes; the six rigid motions belong to the frame.

# +
interfaces = ["big_end", "small_end"]
reduction = mbd.reduce(mesh, material, interfaces=interfaces, num_modes=20, name="rod")
rod = reduction.body
report(f"\n{rod.summary()}")
# -

# The summary lists mass, centre of mass, interfaces and modes. The shapes are orthogonal with
# respect to mass and stiffness, so each has a frequency. Except for the highest ones, these
# frequencies are close to those of the free rod.
#
# ## How many modes?
#
# A `Reducer` shares the expensive part of the work, one factorization, between several reductions.
# Compare the frequencies of the free rod with those of the whole mesh. By Rayleigh's principle the
# reduced frequencies are too high, never too low. An interface of the kind `averaged` follows the
# mean motion of its surface, which stays free to deform.

# +
full = mbd.modal_analysis(mesh, material, num_modes=8)
numbers = (0, 5, 10, 20, 40)
averaged = mbd.InterfaceSpec.each(interfaces, "averaged")
with mbd.reduction.Reducer(mesh, material, interfaces=averaged) as reducer:
    bodies = {n: reducer.reduce(n).body for n in numbers}
errors = {n: body.frequencies[:5] / full.frequencies[:5] - 1 for n, body in bodies.items()}
stiffer = rod.frequencies[:5] / full.frequencies[:5] - 1
report("\nmodes      relative error of the first five frequencies of the free rod")
for n, error in errors.items():
    report(f"{n:5d}      " + "  ".join(f"{e:9.1e}" for e in error))
report("20, rigid  " + "  ".join(f"{e:9.1e}" for e in stiffer))
# -

# The last row has rigid interfaces. Its larger deviations are not an error: pins that fill the
# bores keep them from deforming, which raises these frequencies. Choose `averaged` where a bore is
# free to deform.

# +
with tutorials.figure(results / "convergence.png") as axes:
    for k in range(5):
        label = f"{full.frequencies[k]:.0f} Hz"
        axes.semilogy(numbers, [errors[n][k] for n in numbers], "o-", label=label)
    axes.set(xlabel="fixed-interface modes", ylabel="relative error of the frequency")
    axes.legend(title="free rod")
tutorials.show(mbd.plotting.plot_modes, rod, path=results / "modes.png")
# -

# In the viewer the modes move; rotate and magnify them.

tutorials.show(mbd.plotting.player, rod, results / "modes.html")

# ## Files
#
# The reduced body is plain NumPy data. `save` writes one small file, and loading it needs neither
# DOLFINx nor the mesh. The file contains the static shapes and the inertia integrals too.

# +
reduction.save(results / "rod.npz")
loaded = mbd.ReducedBody.load(results / "rod.npz")
difference = np.abs(loaded.stiffness - rod.stiffness).max()
# -

# ## Checks
#
# The rod in the paper of the engine (Mathematics 13 (2025) 2797) weighs 0.153 kg. The frequencies
# of the whole mesh come from another solver, without any interfaces.

# +
check_close("mass of the rod", rod.total_mass, 0.153, 0.003, "kg")
for n, error in errors.items():
    check(f"{n} modes, least relative error of a frequency", error.min(), -1e-8, 1.0)
worse = max(float((errors[b] - errors[a]).max()) for a, b in pairwise(numbers))
check("more modes, greatest growth of an error", worse, -1.0, 1e-8)
check("20 modes, greatest error of five frequencies", errors[20].max(), -1e-8, 2e-3)
check("rigid bores, least rise of a frequency", stiffer.min(), 0.01, 1.0)
check("stiffness after saving and loading, difference", difference, 0.0, 0.0)
# -
