"""Pictures of a reduced rod and of an engine: modes, the mechanism before it is run, an animation.

Everything goes to `results/pictures`. Takes half a minute; runs serial and under `mpirun -n 2`.
"""

# # Pictures
#
# What is drawn comes from the reduced body alone: its *skin* is the surface of the mesh with the
# modes on it, $u(x, t) = \sum_k \psi_k(x)\,\eta_k(t)$. Neither the mesh nor DOLFINx is needed for
# it, nor a display.

# +
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI
from PIL import Image, ImageSequence

import dolfinx_mbd as mbd
from dolfinx_mbd import plotting

comm = MPI.COMM_WORLD
root = comm.rank == 0
results = Path("results/pictures")
# -

# ## A rod
#
# On a coarse mesh, good enough to look at.

# +
mesh = mbd.build_mesh(mbd.ConnectingRod(size=0.006), comm)
rod = mbd.reduce(
    mesh, mbd.ALUMINIUM_7075, interfaces=["big_end", "small_end"], num_modes=8, name="rod"
).body
# -

# ## Its modes
#
# All ranks have the same reduced body; one of them draws. In a notebook the picture shows when it
# is the last thing in a cell; `save` writes it, as does a path given to the function.

if root:
    modes = plotting.plot_modes(rod, path=results / "modes.png")

# ## The engine, before it is run
#
# Where a mechanism stands is solved for, not typed; a picture says whether it stands as it was
# meant to. Pins are joints that turn, balls are spherical ones, lines are what slides.

engine = mbd.mechanisms.inline_engine(rod, speed=628.318)
if root:
    start = plotting.plot_system(engine, path=results / "engine.png", marks=("joints", "names"))

# To turn it with the mouse, give a plotter of your own:
#
#     plotter = pyvista.Plotter()
#     plotting.plot_system(engine, plotter=plotter)
#     plotter.show()
#
# If a mechanism cannot be put together, `assembled=False` draws its bodies where they were put.

# ## The engine, running
#
# One turn of the crank. The elastic part is 50 times enlarged, the colours are not. A path that
# ends in `.mp4` gives a film, where imageio-ffmpeg is installed.

# +
run = mbd.simulate(engine, t_end=0.01, dt=2e-5)
if root:
    animation = plotting.animate(run, results / "engine.gif", scale=50, frames=40)
    plotting.plot_energies(run, results / "energies.png")
    print(f"{modes}\n{start}\n{animation}\nare in {results}/")
# -

# ## Does it hold?
#
# No picture is blank, the animation moves, and what is drawn is what the mechanism does: a node in
# the bore moves with the interface, and the skin is where the sensors are.

# +
failed = False


def check(what: str, ok: bool) -> None:
    """Print what was checked and remember if it fails."""
    global failed
    failed |= not ok
    print(f"{'ok  ' if ok else 'FAIL'} {what}", flush=True)


if root:
    for name in ("modes", "engine", "energies"):
        with Image.open(results / f"{name}.png") as picture:
            check(f"{name}.png is not blank", float(np.asarray(picture.convert("L")).std()) > 10)
    with Image.open(results / "engine.gif") as film:
        pictures = [np.asarray(one.convert("L"), float) for one in ImageSequence.Iterator(film)]
    change = np.abs(pictures[0] - pictures[len(pictures) // 2]).mean()
    check(f"engine.gif has {len(pictures)} pictures, and they differ", change > 1)

    skin, bore = rod.skin, rod.interface("big_end")
    assert skin is not None
    away = skin.points - bore.point
    radius = np.linalg.norm(away - np.outer(away @ bore.axes[:, 2], bore.axes[:, 2]), axis=1)
    node = int(np.argmin(radius))  # on the bore; it moves with the interface, by d + θ × (x - x_k)
    history = run.body("rod 1")
    eta = history.eta[-1]
    rigidly = bore.motion[:3] @ eta + np.cross(bore.motion[3:] @ eta, away[node])
    error = np.abs(plotting.skin_displacement(skin, eta)[node] - rigidly).max()
    check(f"the skin at the bore moves with the interface (to {error:.1e} m)", error < 1e-12)
    drawn = plotting.skin_points(
        skin, eta, position=history.position[-1], rotation=history.rotation[-1]
    )
    error = np.abs(drawn[node] - run.sensor("rod 1", skin.points[node])[-1]).max()
    check(f"the skin is drawn where the sensors are (to {error:.1e} m)", error < 1e-12)
sys.exit(comm.bcast(failed))
# -
