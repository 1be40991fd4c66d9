"""Pictures of a reduced rod and of an engine: modes, the mechanism at its start, an animation.

Files go to `results/pictures`. Runs on one rank and under `mpirun -n 2`.
"""

# # Pictures
#
# Pictures need the reduced body only: its *skin* is the surface of the mesh with the modes on it,
# $u(x, t) = \sum_k \psi_k(x)\,\eta_k(t)$. You need neither the mesh nor DOLFINx nor a display.

# +
from __future__ import annotations

import numpy as np
from mpi4py import MPI
from PIL import Image, ImageSequence

import dolfinx_mbd as mbd
from dolfinx_mbd import plotting, tutorials
from dolfinx_mbd.tutorials import check

comm = MPI.COMM_WORLD
root = comm.rank == 0
results = tutorials.results_folder("pictures")
# -

# ## A rod
#
# A coarse mesh is sufficient for pictures.

# +
mesh = mbd.build_mesh(mbd.ConnectingRod(size=0.006), comm)
rod = mbd.reduce(
    mesh, mbd.ALUMINIUM_7075, interfaces=["big_end", "small_end"], num_modes=8, name="rod"
).body
# -

# ## Its modes
#
# All ranks have the same reduced body, and one of them draws. A notebook shows a picture that is
# the last expression of a cell. `path` writes it to a file.

if root:
    modes = plotting.plot_modes(rod, path=results / "modes.png")

# ## The engine at its start
#
# The package solves for the initial positions of the bodies; a picture shows whether they are as
# you intended. Revolute and cylindrical joints are drawn as pins, spherical joints as balls, and
# guides as lines. Grey cones mark points on the ground. Purple arrows are forces and moments of
# loads and drivers, here the gas forces and the moment with which the driver keeps the crank's
# speed. `marks` chooses what is drawn.

engine = mbd.mechanisms.inline_engine(rod, speed=628.318)  # rad/s, 6000 rpm
if root:
    marks = ("joints", "ground", "loads", "names")
    start = plotting.plot_system(engine, path=results / "engine.png", marks=marks)

# To turn the mechanism with the mouse, use your own plotter:
#
#     plotter = pyvista.Plotter()
#     plotting.plot_system(engine, plotter=plotter)
#     plotter.show()
#
# If a mechanism cannot be assembled, `assembled=False` draws its bodies where you placed them.

# ## The running engine
#
# The animation shows one turn of the crank. `scale` enlarges the deformation 50 times; the colours
# show the actual values. With `quantity="von Mises"` they show the stress, if the body has the
# stress of its modes. A path that ends in `.mp4` gives a film, if imageio-ffmpeg is installed.

# +
run = mbd.simulate(engine, t_end=0.01, dt=2e-5)
if root:
    animation = plotting.animate(run, results / "engine.gif", scale=50, frames=40)
    plotting.plot_energies(run, results / "energies.png")
    print(modes, start, animation, sep="\n")
# -

# ## An interactive page
#
# `player` writes one HTML file that a browser opens without a server or a network: turn the scene,
# magnify the deformation, colour it, and look at joint forces. A notebook shows the page, which is
# the last expression of the cell.

page = plotting.player(run, results / "engine.html", scale=50) if root else None
page

# ## Checks
#
# No picture is blank, the animation moves, and it shows what the mechanism does: a node in the bore
# moves with the interface, and the skin is at the position of a sensor.

# +
if root:
    for name in ("modes", "engine", "energies"):
        with Image.open(results / f"{name}.png") as picture:
            contrast = float(np.asarray(picture.convert("L")).std())
        check(f"{name}.png, contrast", contrast, 10, 127)
    with Image.open(results / "engine.gif") as film:
        pictures = [np.asarray(one.convert("L"), float) for one in ImageSequence.Iterator(film)]
    change = np.abs(pictures[0] - pictures[len(pictures) // 2]).mean()
    check(f"engine.gif, change over half of its {len(pictures)} pictures", change, 1, 255)

    skin, bore = rod.skin, rod.interface("big_end")
    assert skin is not None
    away = skin.points - bore.point
    radius = np.linalg.norm(away - np.outer(away @ bore.axes[:, 2], bore.axes[:, 2]), axis=1)
    node = int(np.argmin(radius))  # on the bore, where the displacement is d + θ × (x - x_k)
    history = run.body("rod 1")
    eta = history.eta[-1]
    rigid = bore.motion[:3] @ eta + np.cross(bore.motion[3:] @ eta, away[node])
    error = np.abs(plotting.skin_displacement(skin, eta)[node] - rigid).max()
    check("skin at the bore and interface, difference", error, 0, 1e-12, "m")
    pose = {"position": history.position[-1], "rotation": history.rotation[-1]}
    drawn = plotting.skin_points(skin, eta, **pose)
    error = np.abs(drawn[node] - run.sensor("rod 1", skin.points[node])[-1]).max()
    check("drawn skin and sensor, difference", error, 0, 1e-12, "m")
# -
