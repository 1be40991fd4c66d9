"""Your own part, from a STEP file to a swinging pendulum.

You read a part from CAD, choose the surfaces that become interfaces, mesh and reduce the part, and
hang it up in a mechanism. Files go to `results/step_part`. Runs on one rank and under mpirun.
"""

# # Your own part
#
# The part is a steel lever of 120 × 40 × 10 mm with a bore near each end. It hangs on one of its
# bores and swings. For a small amplitude $\theta$, a rigid lever with the moment of inertia $J$
# about the pivot and the centre of mass at the distance $d$ swings with the period
#
# $$T = 2\pi\sqrt{\frac{J}{m g d}}\left(1 + \frac{\theta^2}{16}\right).$$

# +
from __future__ import annotations

from pathlib import Path

import gmsh
import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.geometry import step_surfaces
from dolfinx_mbd.tutorials import check, check_close, report

comm = MPI.COMM_WORLD
results = tutorials.results_folder("step_part")
length, width, height, radius, offset = 0.120, 0.040, 0.010, 0.010, 0.035  # bores at ± offset
# -

# ## The STEP file
#
# Your part comes from a CAD program. Here a few lines of gmsh take its place, in millimetres, as
# CAD programs export. One rank writes the file.


# +
def write_lever(path: Path) -> None:
    """Write the lever to a STEP file."""
    gmsh.initialize(readConfigFiles=False, interruptible=False)
    gmsh.option.setNumber("General.Terminal", 0)
    occ = gmsh.model.occ
    block = occ.addBox(-60, -20, -5, 120, 40, 10)
    bores = [(3, occ.addCylinder(x, 0, -5, 0, 0, 10, 10)) for x in (-35, 35)]
    occ.cut([(3, block)], bores)
    occ.synchronize()
    gmsh.write(str(path))
    gmsh.finalize()


step_file = results / "lever.step"
if comm.rank == 0:
    write_lever(step_file)
comm.Barrier()
# -

# ## Interfaces by surface number
#
# A STEP file numbers its surfaces but rarely names them. `step_surfaces` lists them, so that you
# can recognize the bores by their radius and centre.

# +
surfaces = comm.bcast(step_surfaces(step_file) if comm.rank == 0 else None)
report("surface  kind      area (mm²)  radius (mm)  centre (mm)")
for s in surfaces:
    at = ", ".join(f"{1e3 * x:.1f}" for x in s.centre)
    size = f"{1e3 * s.radius:.1f}" if s.radius else "-"
    report(f"{s.number:7d}  {s.kind:<9} {1e6 * s.area:10.1f}  {size:>11}  {at}")
bores = sorted((s for s in surfaces if s.kind == "Cylinder"), key=lambda s: s.centre[0])
interfaces = {"pivot": [bores[0].number], "end": [bores[1].number]}
# -

# In your own script you type the numbers: `interfaces={"pivot": [7], "end": [8]}`.
#
# ## Mesh and reduction
#
# `StepPart` converts the unit of the file to metres. Curved elements follow the bores.

# +
part = mbd.StepPart(path=step_file, interfaces=interfaces, size=0.006)
mesh = mbd.build_mesh(part, comm)
lever = mbd.reduce(mesh, mbd.STEEL, interfaces=["pivot", "end"], num_modes=8, name="lever").body
report(f"\n{lever.summary()}")
if comm.rank == 0:
    mbd.plotting.plot_modes(lever, path=results / "modes.png")
# -

# ## The pendulum
#
# Gravity acts along $-y$. The lever starts 0.05 rad from the vertical: the rotation is a vector
# along z. `place` moves its bore, not its body frame, to the pivot.

# +
tilt, amplitude = -np.pi / 2 + 0.05, 0.05
ground = mbd.Ground({"pivot": mbd.Frame()})
body = mbd.FlexibleBody("lever", lever)
body = mbd.place(body, by="pivot", at=(ground, "pivot"), rotation=(0.0, 0.0, tilt))
pivot = mbd.revolute("pivot", ground.frame("pivot"), body.frame("pivot"))
gravity = (0.0, -mbd.STANDARD_GRAVITY, 0.0)
run = mbd.simulate(mbd.System([ground, body], [pivot], gravity=gravity), t_end=1.5, dt=1e-3)

angle = np.unwrap(np.arctan2(*(run.sensor("lever", "end").T[[1, 0]]))) + np.pi / 2
rows = {
    "angle (mrad)": {"": 1e3 * angle},
    "pin (N)": {"": np.linalg.norm(run.joint("pivot").force, axis=1)},
}
tutorials.plot_histories(results / "pendulum.png", ("time (s)", run.time), rows)
tutorials.show(mbd.plotting.player, run, results / "pendulum.html")
# -

# ## Checks
#
# The checks compare the mass and the moment of inertia with a plate with two holes, and the period
# with the formula above. Only the damping of the elastic modes dissipates energy.

# +
hole = np.pi * radius**2
area = length * width - 2 * hole
polar = length * width * (length**2 + width**2) / 12 - 2 * hole * (radius**2 / 2 + offset**2)
rho = mbd.STEEL.density
check_close("mass", lever.total_mass, rho * height * area, 5e-5, "kg")
check_close("moment of inertia", lever.central_inertia[2, 2], rho * height * polar, 5e-5, "kg m²")

inertia = rho * height * (polar + area * offset**2)
weight = rho * height * area * mbd.STANDARD_GRAVITY
period = 2 * np.pi * np.sqrt(inertia / (weight * offset)) * (1 + amplitude**2 / 16)
crossings = np.flatnonzero((angle[:-1] > 0) & (angle[1:] <= 0))
times = run.time[crossings] + 1e-3 * angle[crossings] / (angle[crossings] - angle[crossings + 1])
check_close("period of the pendulum", float(np.diff(times).mean()), period, 1e-4, "s")
energy = run.energies()
drift = np.ptp(energy.total) / np.ptp(energy.gravity)
check("change of the total energy over that of the potential", drift, 0.0, 1e-3)
# -
