"""The big end of a connecting rod on an oil film, at 6000 rpm with gas forces.

Four models of the same bearing: an ideal joint, a short bearing, Reynolds' equation in a rigid bore
and Reynolds' equation in the elastic bore of the rod. Figures go to `results/engine_bearings`. Runs
on one rank and under `mpirun -n 2`.
"""

# # Oil film of a big end
#
# You compare four models of the big end of one cylinder. The oil film is some hundredths of a
# millimetre thick. Its pressure carries the load of the rod, and deforms the bore by about the
# thickness of the film.

# +
from __future__ import annotations

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.mechanism.bearings import ElasticBearing, FiniteBearing, OilFilm, ShortBearing
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine
from dolfinx_mbd.tutorials import check, report

comm = MPI.COMM_WORLD
results = tutorials.results_folder("engine_bearings")
# -

# ## The rod
#
# A rigid interface would keep the bore round; the big end is therefore an averaged interface. Its
# pressure modes are the static deformations under pressures cos kθ and sin kθ around the bore,
# times polynomials along its axis. With `pressure_modes=0.01`, the body gets as many of these modes
# as the compliance of the bore needs for an error of 1 %.

# +
mesh = mbd.build_mesh(mbd.ConnectingRod(size=0.01), comm)
interfaces = {
    "big_end": mbd.InterfaceSpec(kind="averaged", pressure_modes=0.01),
    "small_end": mbd.InterfaceSpec(kind="averaged"),
}
reduction = mbd.reduce(mesh, mbd.ALUMINIUM_7075, interfaces=interfaces, num_modes=8, name="rod")
rod = reduction.body
bore = rod.bore("big_end")
report(f"{rod.num_modes} modes; the compliance of the bore has an error of {bore.error:.2%}")
# -

# ## Four bearings
#
# The radial clearance is 30 µm and the viscosity of the hot oil 10 mPa s. The run starts where the
# load of the bearing is small. Its first 60° of crank angle are left out of the results; the next
# 720° are the working cycle.

# +
speed, dt, start = 2 * np.pi * 100, 2e-5, np.radians(440.0)
size = {"radius": bore.radius, "length": bore.length, "clearance": 30e-6}
oil, grid = 0.010, {"shape": (48, 8)}
bearings = {
    "ideal": None,
    "short": OilFilm(ShortBearing, **size, viscosity=oil),
    "rigid bore": OilFilm(FiniteBearing, **size, oil=oil, **grid),
    "elastic bore": OilFilm(ElasticBearing, **size, oil=oil, **grid, bore=bore),
}
run_in = round(np.radians(60.0) / speed / dt)
runs, films = {}, {}
for name, film in bearings.items():
    big_end = {} if film is None else {"big_end": film}
    design = EngineDesign(cylinders=1)
    engine = inline_engine(rod, design, speed=speed, angle=start, bearings=big_end)
    with tutorials.timed(name):
        runs[name] = mbd.simulate(engine, t_end=0.02 + run_in * dt, dt=dt)
    if film is not None:
        films[name] = runs[name].element("crank pin 1 contact")
# -

# ## Film over a working cycle
#
# The crank angle is measured from the firing top dead centre. In a rigid bore, the journal stays
# inside the clearance (dashed). In the elastic bore it moves farther, because the bore deforms. The
# force that the bearing transmits is almost the same in all models.

# +
cycle = slice(run_in, None)
angle = np.degrees(start + speed * runs["short"].time[cycle]) - 720.0
thickness = {name: 1e6 * film.film_thickness[cycle] for name, film in films.items()}
pressure = {name: 1e-6 * film.peak_pressure[cycle] for name, film in films.items()}
pins = {name: run.joint("crank pin 1").force[cycle] for name, run in runs.items()}
load = {name: 1e-3 * np.linalg.norm(force, axis=1) for name, force in pins.items()}
rows = {
    "smallest film thickness (µm)": thickness,
    "peak pressure (MPa)": pressure,
    "force of the big end (kN)": load,
}
tutorials.plot_histories(results / "film.png", ("crank angle (°)", angle), rows)
circle = 1e6 * size["clearance"] * np.exp(1j * np.linspace(0.0, 2 * np.pi, 100))
with tutorials.figure(results / "orbits.png", 1, 3, title="orbit of the journal (µm)") as axes:
    for ax, (name, history) in zip(axes, films.items(), strict=True):
        ax.plot(*(1e6 * history.displacement[cycle, :2].T))
        ax.plot(circle.real, circle.imag, "k--", lw=0.8)
        ax.set(title=name, aspect="equal", xlim=(-55, 55), ylim=(-55, 55))
# -

# ## Stress of the rod
#
# The envelope is the greatest von Mises stress of the cycle at each corner of each cell. With an
# ideal joint, the averaged interface distributes the force of the pin over the whole bore; the film
# pushes on the loaded side.

# +
stress = {}
for name in ("ideal", "elastic bore"):
    envelope = mbd.envelope(reduction, runs[name].body("rod 1"))
    stress[name] = mbd.most_stressed(reduction, runs[name].body("rod 1"), envelope=envelope)
    report(f"{name}: {stress[name]}")
# -

# ## Checks
#
# The mean pressure on the projected area is the force divided by diameter and length; the peak is
# more than twice this mean. The choice of the film model changes the force of the bearing by at
# most a few per cent.

# +
eccentricity = {n: np.hypot(*film.displacement[cycle, :2].T) for n, film in films.items()}
largest = {name: 1e6 * e.max() for name, e in eccentricity.items()}
peak = {name: p.max() for name, p in pressure.items()}
mean = 1e-3 * load["ideal"].max() / (2 * bore.radius * bore.length)
greatest = {name: 1e-6 * places[0].value for name, places in stress.items()}
for name in films:
    check(f"{name}: smallest film thickness", thickness[name].min(), 0.5, 8.0, "µm")
    check(f"{name}: peak pressure over mean pressure", peak[name] / mean, 2.0, 5.0)
    change = np.abs(load[name] - load["ideal"]).max() / load["ideal"].max()
    check(f"{name}: change of the force", 100 * change, 0.0, 10.0, "%")
check("rigid bore: largest eccentricity", largest["rigid bore"], 20.0, 30.0, "µm")
check("elastic bore: largest eccentricity", largest["elastic bore"], 35.0, 60.0, "µm")
check(
    "stress, elastic bore over ideal joint", greatest["elastic bore"] / greatest["ideal"], 0.6, 0.9
)
