"""The lightest shank of a connecting rod with bounds on stress, frequency and buckling.

You minimize the mass of a rod by moving its mesh, with derivatives of the reduced body, and check
the result with a finer mesh. Figures go to `results/lighter_rod`. Runs on one rank and under
`mpirun -n 2`.
"""

# # A lighter connecting rod
#
# The shank of a rod at 6000 rpm may become lower, narrower and thinner. Three quantities limit it:
# the stress over a working cycle, the first frequency, and the force at which the shank buckles.

# +
from __future__ import annotations

import numpy as np
import ufl
from mpi4py import MPI

import dolfinx_mbd as mbd
import helpers
from dolfinx_mbd.mechanisms import EngineDesign, FourStrokePressure, inline_engine
from helpers import check, report

comm = MPI.COMM_WORLD
results = helpers.results_folder("lighter_rod")
geometry, material, ends = mbd.ConnectingRod(), mbd.ALUMINIUM_7075, ("big_end", "small_end")
STRESS, FREQUENCY, BUCKLING = 290e6, 1700.0, 100e3  # at most Pa, at least Hz, at least N
SHANK = 0.035, 0.118  # range of x in which the stress is bounded, m
MARGIN = 1.03  # for the error of the mesh
# -

# ## Shapes
#
# Each parameter moves all points of the rod by a velocity $V(X)$ of the original positions $X$, so
# that a point moves to $X+\sum p\,V(X)$. A factor that is zero at the rings and smooth between them
# restricts the motion to the shank. The parameters are changes of four dimensions: the height of
# the shank at both ends, the width of the flanges, and the thickness of the web.


# +
def shapes(mesh: mbd.TaggedMesh) -> list[mbd.Parameter]:
    """Return the parameters of the shank."""
    x, y, z = ufl.SpatialCoordinate(mesh.mesh)
    start, end, length = 0.030, 0.121, geometry.length

    def ramp(s: ufl.core.expr.Expr) -> ufl.core.expr.Expr:
        s = ufl.min_value(ufl.max_value(s / 0.015, 0.0), 1.0)
        return s * s * (3 - 2 * s)

    inside = ramp(x - start) * ramp(end - x)
    height = geometry.shank_big + (geometry.shank_small - geometry.shank_big) * x / length
    web, flange = geometry.web_thickness / 2, geometry.flange_width / 2
    side, depth = ufl.sign(z) * inside / 2, ufl.algebra.Abs(z)
    outer = ufl.max_value(depth - web, 0.0) / (flange - web)
    velocities = {
        "height at big end": (0 * x, y / height * inside * (end - x) / (end - start), 0 * x),
        "height at small end": (0 * x, y / height * inside * (x - start) / (end - start), 0 * x),
        "flange width": (0 * x, 0 * x, side * outer),
        "web thickness": (0 * x, 0 * x, side * (ufl.min_value(depth / web, 1.0) - outer)),
    }
    return [
        mbd.Parameter(name, "shape", velocity=ufl.as_vector(v)) for name, v in velocities.items()
    ]


def parametric_rod(size: float, num_modes: int, order: int = 1) -> mbd.ParametricBody:
    """Return the rod that follows its parameters."""
    mesh = mbd.build_mesh(mbd.ConnectingRod(size=size, order=order), comm)
    model, request = mbd.ElasticModel(mesh, material), {"interfaces": ends, "name": "rod"}
    return mbd.ParametricBody(model, shapes(mesh), num_modes=num_modes, tolerance=1e-3, **request)


rod = parametric_rod(0.009, 6)
# -

# ## The stress over a working cycle
#
# A single cylinder runs for one working cycle with gas pressure. The stress at the surface follows
# from the displacements of its triangles, of which the reduced body also has derivatives. With the
# greatest von Mises stress $\sigma_i$ of each triangle of the shank, the norm
# $(\sum\sigma_i^{40})^{1/40}$ is smooth and slightly above the greatest value. Its derivatives are
# differences of runs with bodies of first order, which need no reduction.

# +
design = EngineDesign(crank_radius=0.040, cylinders=1)
pressure = FourStrokePressure(0.070, crank_radius=0.040, rod_length=geometry.length)


def cycle(body: mbd.ReducedBody, dt: float = 5e-5) -> mbd.Solution:
    """Return one working cycle at 6000 rpm."""
    engine = inline_engine(body, design, speed=628.318, pressure=pressure)
    return mbd.simulate(engine, t_end=0.02, dt=dt)


def peak(body: mbd.ReducedBody) -> float:
    """Return the norm of the greatest stress at the surface of the shank, relative to its bound."""
    eta = cycle(body).body("rod 1").eta
    greatest = helpers.surface_stress(body, eta, material, *SHANK).max(axis=0)
    return float(np.linalg.norm(greatest / STRESS, 40))


def stress(table: mbd.BodySensitivities) -> tuple[float, dict[str, float]]:
    """Return the stress relative to its bound, and its derivatives."""
    slopes, step = {}, 2e-5
    for name, value in table.base.items():
        above, below = (peak(table.at({name: value + s})) for s in (step, -step))
        slopes[name] = (above - below) / (2 * step)
    return peak(table.body), slopes


# -

# The mass, the frequency and the buckling load have derivatives already. The buckling load is that
# of a rod whose ends turn freely in all directions, which is less than that between parallel pins.


# +
def mass(table: mbd.BodySensitivities) -> tuple[float, dict[str, float]]:
    """Return the mass and its derivatives."""
    return table.body.total_mass, {name: d.total_mass for name, d in table.items()}


def frequency(table: mbd.BodySensitivities) -> tuple[float, dict[str, float]]:
    """Return the first frequency and its derivatives."""
    return table.body.frequencies[0], {name: d.frequencies[0] for name, d in table.items()}


def buckling(table: mbd.BodySensitivities) -> tuple[float, dict[str, float]]:
    """Return the buckling load and its derivatives."""
    return mbd.buckling_load(table, ends)


# -

# ## The optimum
#
# `minimize` calls `rod.at` once for each set of values. `rod.at` moves the mesh, checks the quality
# of its cells, reduces the body and differentiates it; after a small change it returns the body of
# first order instead. Each function returns a number and its derivatives.

# +
mm = 1e-3
bounds = {
    "height at big end": (-8 * mm, 4 * mm),
    "height at small end": (-6 * mm, 4 * mm),
    "flange width": (-5 * mm, 4 * mm),
    "web thickness": (-2 * mm, 2 * mm),
}
limits = {
    "stress": mbd.Limits(stress, high=1 / MARGIN),
    "frequency": mbd.Limits(frequency, low=MARGIN * FREQUENCY),
    "buckling": mbd.Limits(buckling, low=MARGIN * BUCKLING),
}
start = dict.fromkeys(bounds, 0.0)
with helpers.timed("optimization"):
    best = mbd.minimize(mass, start, limits, bounds=bounds, model=rod.at, tolerance=1e-3, comm=comm)
report(f"{best.evaluations} evaluations, {rod.count} reductions; active: {dict(best.active)}")
for name, value in best.values.items():
    report(f"{name:<20} {value / mm:+.2f} mm")
rows = {"mass (g)": {"": np.array([1e3 * step.objective for step in best.history])}}
bars = {
    "stress": MARGIN,
    "frequency": 1 / (MARGIN * FREQUENCY),
    "buckling": 1 / (MARGIN * BUCKLING),
}
relative = {k: np.array([f * i.constraints[k] for i in best.history]) for k, f in bars.items()}
rows["relative to the bound"] = relative
iteration = "iteration", np.arange(len(best.history))
levels = {"relative to the bound": [1.0]}
helpers.plot_histories(results / "history.png", iteration, rows, levels=levels)
# -

# ## Check with a finer mesh
#
# A finer mesh with curved cells moves by the same velocities. Its stress is that of the cells, not
# that of the triangles of the surface. All bounds must hold without the margin.

# +
fine, greatest = parametric_rod(0.006, 12, 2), {}
for name, values in (("before", start), ("after", best.values)):
    reduction = fine.reduce(values)
    run = cycle(reduction.body)
    value = mbd.recovery.skin_values(mbd.envelope(reduction, run.body("rod 1")).value)
    x, grams = reduction.body.skin.points[:, 0], 1e3 * reduction.body.total_mass
    greatest[name] = value[(x > SHANK[0]) & (x < SHANK[1])].max()
    options = {"title": f"{name}: {grams:.1f} g", "limits": (0, 1e-6 * STRESS), "view": "iso"}
    helpers.show(mbd.plotting.plot_skin, reduction.body, value, results / f"{name}.png", **options)
report(f"greatest stress before: {1e-6 * greatest['before']:.0f} MPa")
load, force = buckling(mbd.sensitivities(reduction, []))[0], run.joint("piston pin 1").force
check("mass of 153 g after optimization", grams, 135, 145, "g")
check("greatest stress", 1e-6 * greatest["after"], 0, 1e-6 * STRESS, "MPa")
check("first frequency", reduction.body.frequencies[0], FREQUENCY, 1.1 * FREQUENCY, "Hz")
check("buckling load", 1e-3 * load, 1e-3 * BUCKLING, 1.1e-3 * BUCKLING, "kN")
check("buckling load over greatest force", load / np.abs(force).max(), 3, 4)
