"""What runs in parallel: a distributed reduction, identical runs, and a different run on each rank.

You run this script under `mpirun -n 2 python3 -m mpi4py demos/parallel.py`, or on any other number
of ranks. Files go to `results/parallel`.
"""

# # Parallel runs
#
# Three parts of the work use MPI in three ways:
#
# - the mesh and its matrices are distributed over the ranks of a communicator, and the reduction
#   works on all ranks together (it is *collective*: every rank has to make the same calls);
# - the reduced body is a few hundred kilobytes, and every rank holds the same one;
# - a simulation is too small to distribute. Every rank computes the same motion, or each rank
#   computes other motions.

# +
from __future__ import annotations

import hashlib

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.tutorials import check, report

comm = MPI.COMM_WORLD
results = tutorials.results_folder("parallel")
# -

# ## A distributed reduction
#
# `build_mesh` and `read_mesh` distribute the mesh over the communicator that you give them. A mesh
# on `MPI.COMM_SELF` belongs to one rank alone, which then makes its own reduction. Both must give
# the same body, except for round-off.


# +
def reduced(on: MPI.Intracomm) -> tuple[mbd.ReducedBody, int]:
    """Return the rod, reduced on a communicator, and the number of cells of this rank."""
    mesh = mbd.build_mesh(mbd.ConnectingRod(size=0.008), on)
    ends = ["big_end", "small_end"]
    points = {"middle": (0.0685, 0.0, 0.0)}
    reduction = mbd.reduce(mesh, mbd.STEEL, interfaces=ends, num_modes=8, points=points, name="rod")
    return reduction.body, mesh.mesh.topology.index_map(3).size_local


rod, cells = reduced(comm)
alone, all_cells = reduced(MPI.COMM_SELF)
report(f"{comm.size} ranks with {comm.allgather(cells)} cells each; {all_cells} cells on one rank")
# -

# Set `OMP_NUM_THREADS=1` when you use several ranks. Otherwise each rank starts threads of its own,
# and they compete for the same cores. The launcher sets it for you.
#
# ## The same motion on every rank
#
# After a collective reduction you can go on as if there were one rank: every rank has the same body
# and simulates the same motion, to the last bit. Only what you print or write needs a condition on
# the rank. Here a hash of all elastic coordinates stands for the motion.


# +
def mechanism(speed: float) -> mbd.System:
    """Return a slider-crank with the rod at a speed, rad/s."""
    return mbd.mechanisms.slider_crank(
        rod, crank_radius=0.040, crank_mass=0.952, piston_mass=0.214, speed=speed
    )


def bending(speed: float) -> tuple[float, str]:
    """Return the greatest bending of the rod in a turn, m, and a hash of its motion."""
    period = 2 * np.pi / speed
    run = mbd.simulate(mechanism(speed), t_end=period, dt=period / 200)
    eta = run.body("rod").eta
    across = tutorials.chord_displacement(rod, eta)[:, 1]
    return float(np.abs(across).max()), hashlib.sha256(eta.tobytes()).hexdigest()


hashes = comm.allgather(bending(300.0)[1])
report(f"different motions on {comm.size} ranks: {len(set(hashes))}")
# -

# ## Other runs on every rank
#
# Independent runs need no communication: rank $r$ of $n$ computes the cases $r, r+n, r+2n, \dots$
# and the results are gathered at the end. `mbd.sweep` does the same for whole studies, over
# processes or ranks, and keeps finished cases in files; see `demos/parameter_study.py`.

# +
speeds = np.linspace(100.0, 400.0, 7)
mine = {k: bending(speeds[k]) for k in range(comm.rank, len(speeds), comm.size)}
gathered = {k: case for part in comm.allgather(mine) for k, case in part.items()}
peaks = np.array([gathered[k][0] for k in range(len(speeds))])
report("\nspeed (rad/s)  greatest bending (µm)")
for speed, peak in zip(speeds, peaks, strict=True):
    report(f"{speed:13.0f}  {1e6 * peak:21.4f}")
with tutorials.figure(results / "bending.png") as axes:
    axes.loglog(speeds, 1e6 * peaks, "o-", label="simulated")
    axes.loglog(
        speeds, 1e6 * peaks[0] * (speeds / speeds[0]) ** 2, "k:", label="square of the speed"
    )
    axes.set(xlabel="speed (rad/s)", ylabel="greatest bending (µm)")
    axes.legend()
# -

# ## Checks
#
# Inertia forces grow with the square of the speed, and so does the bending of a stiff rod.

# +
error = np.abs(rod.frequencies / alone.frequencies - 1).max()
check("frequencies, all ranks together and one alone, relative", error, 0.0, 1e-8)
check("cells of all ranks, sum less those on one rank", comm.allreduce(cells) - all_cells, 0, 0)
check("different motions on all ranks", len(set(hashes)), 1, 1)
check("different bodies on all ranks", len(set(comm.allgather(rod.stiffness.tobytes()))), 1, 1)
again = bending(speeds[-1])
check("a case on another rank, hashes that differ", again[1] != gathered[len(speeds) - 1][1], 0, 0)
slope = np.polyfit(np.log(speeds), np.log(peaks), 1)[0]
check("exponent of the speed in the bending", slope, 1.95, 2.05)
# -
