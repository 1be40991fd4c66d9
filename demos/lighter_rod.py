"""The lightest shank of a connecting rod with bounds on stress, frequency and buckling.

You move the mesh of a rod until its mass is least, and verify the result with a finer mesh. Figures
go to `results/lighter_rod`. Runs on one rank and under `mpirun -n 2`.
"""

# # A lighter connecting rod
#
# The shank of a rod at 6000 rpm may become lower, narrower and thinner. The stress over a working
# cycle has an upper limit, the first frequency and the buckling load have lower limits.

# +
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import ufl
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import design, tutorials
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, FourStrokePressure, inline_engine
from dolfinx_mbd.tutorials import check, report

comm, results = MPI.COMM_WORLD, tutorials.results_folder("lighter_rod")
rod, material, ends, mm = mbd.ConnectingRod(), mbd.ALUMINIUM_7075, ("big_end", "small_end"), 1e-3
STRESS, FREQUENCY, BUCKLING = 290e6, 1700.0, 100e3  # at most Pa, at least Hz, at least N
MARGIN, SHANK = 1.03, (35 * mm, 118 * mm)  # margin of coarse meshes; x where stress is bounded
EYE = 0.55, 0.45, 1.0  # direction of the view
# -

# ## Shapes
#
# Each parameter moves all points of the rod by a velocity $V(X)$ of the original positions $X$, so
# that a point moves to $X+\sum p\,V(X)$. A factor that is zero at the rings and rises smoothly to 1
# between them restricts the motion to the shank. The parameters are changes of four dimensions:
# the height of the shank at both ends, the width of its flanges, and the thickness of its web.


# +
def parametric_rod(size: float, order: int = 1) -> design.ParametricBody:
    """Return the rod with a mesh that moves with its parameters."""
    mesh = mbd.build_mesh(mbd.ConnectingRod(size=size, order=order), comm)
    x, y, z = ufl.SpatialCoordinate(mesh.mesh)
    s, t = (ufl.min_value(ufl.max_value(d / (15 * mm), 0), 1) for d in (x - 30 * mm, 121 * mm - x))
    inside = s * s * (3 - 2 * s) * t * t * (3 - 2 * t)
    share, zero = x / rod.length, 0 * x
    height = y / (rod.shank_big + (rod.shank_small - rod.shank_big) * share) * inside
    web, flange = rod.web_thickness / 2, rod.flange_width / 2
    side, depth = ufl.sign(z) * inside / 2, ufl.algebra.Abs(z)
    outer = ufl.max_value(depth - web, 0) / (flange - web)
    velocities = {
        "height at big end": (zero, height * (1 - share), zero),
        "height at small end": (zero, height * share, zero),
        "flange width": (zero, zero, side * outer),
        "web thickness": (zero, zero, side * (ufl.min_value(depth / web, 1) - outer)),
    }
    shapes = [mbd.Parameter(k, "shape", velocity=ufl.as_vector(v)) for k, v in velocities.items()]
    request: dict[str, Any] = {"tolerance": 1e-3, "stress": True, "interfaces": ends}
    return design.ParametricBody(mbd.ElasticModel(mesh, material), shapes, num_modes=6, **request)


coarse = parametric_rod(9 * mm)
# -

# ## Stress, frequency and buckling
#
# A single cylinder runs for one working cycle. With the greatest von Mises stress $\sigma_i$ at the
# nodes of the surface of the shank, the norm $(\sum\sigma_i^{40})^{1/40}$ is a smooth function of
# the parameters, slightly above the greatest stress. `run_sensitivities` differentiates the whole
# cycle, with a function that builds the engine for given parameters. The elastic coordinates remain
# those of the base body (`own_modes=False`), so that frequencies may cross. The buckling load is
# that of a rod whose ends turn freely.

# +
sizes = EngineDesign(crank_radius=0.040, cylinders=1)
pressure = FourStrokePressure(0.070, crank_radius=0.040, rod_length=rod.length)
cycle: dict[str, Any] = {"t_end": 0.02, "dt": 5e-5}  # s
engine = partial(inline_engine, design=sizes, speed=628.318, pressure=pressure)


def peak(run: mbd.results.Solution) -> float:
    """Return the norm of the greatest stress at the surface of the shank, relative to its bound."""
    body: Any = run.system.body("rod 1")
    greatest = body.reduced.stress.envelope("von Mises", run.body("rod 1")).value
    x = body.reduced.stress.points[:, 0]
    return float(np.linalg.norm(greatest[(x > SHANK[0]) & (x < SHANK[1])] / STRESS, 40))


def quantities(values: dict[str, float]) -> dict[str, Any]:
    """Return the mass and the bounded quantities, each with its derivatives."""
    table, steps = coarse.at(values), dict.fromkeys(values, 2e-4 * mm)
    result = mbd.run_sensitivities(
        lambda p: engine(table.at(p, own_modes=False)), values, steps=steps, **cycle
    )
    return {
        "mass": (table.body.total_mass, {k: d.total_mass for k, d in table.items()}),
        "stress": (peak(result.run), result.derivative(peak)),
        "frequency": (table.body.frequencies[0], {k: d.frequencies[0] for k, d in table.items()}),
        "buckling": design.buckling_load(table, ends),
    }


# -

# ## The optimum
#
# `minimize` calls the model once per point. `coarse.at` moves the mesh, checks its cells, reduces
# and differentiates the body. After a small change it returns the first-order body instead.

# +
start, edges = coarse.values, ((-8, 4), (-6, 4), (-5, 4), (-2, 2))  # no changes; bounds in mm
bounds = {k: (mm * a, mm * b) for k, (a, b) in zip(start, edges, strict=True)}
limits = {
    "stress": design.Limits(lambda q: q["stress"], high=1 / MARGIN),
    "frequency": design.Limits(lambda q: q["frequency"], low=MARGIN * FREQUENCY),
    "buckling": design.Limits(lambda q: q["buckling"], low=MARGIN * BUCKLING),
}
options: dict[str, Any] = {"bounds": bounds, "model": quantities, "tolerance": 1e-3, "comm": comm}
best = mbd.minimize(lambda q: q["mass"], start, limits, **options)
report(f"{best.evaluations} evaluations, {coarse.count} reductions; active: {dict(best.active)}")
report("\n".join(f"{name:<20} {value / mm:+.2f} mm" for name, value in best.values.items()))
steps, ticks = best.history, np.arange(len(best.history))
curves = {k: np.array([i.constraints[k] / best.constraints[k] for i in steps]) for k in limits}
rows = {"mass (g)": {"": np.array([1e3 * i.objective for i in steps])}, "ratio to optimum": curves}
tutorials.plot_histories(results / "history.png", ("iteration", ticks), rows, xticks=ticks)
# -

# ## Check with a finer mesh
#
# A finer mesh of curved cells moves by the same velocities. Here the bounds apply without margin.

# +
fine = parametric_rod(6 * mm, 2)
for name, values in (("before", start), ("after", best.values)):
    reduction = fine.reduce(values)
    run, grams = mbd.simulate(engine(reduction.body), **cycle), 1e3 * reduction.body.total_mass
    stress = 1e-6 * mbd.durability.skin_values(mbd.envelope(reduction, run.body("rod 1")).value)
    options = {"title": f"{name}: {grams:.1f} g", "limits": (0, 290), "factor": 1, "view": EYE}
    picture = results / f"{name}.png"
    tutorials.show(mbd.plotting.plot_skin, reduction.body, stress, picture, **options)
    report(f"{name}: {grams:.1f} g, greatest averaged stress {stress.max():.0f} MPa")
load = design.buckling_load(mbd.sensitivities(reduction, []), ends)[0]
check("mass of 153 g after optimization", grams, 135, 145, "g")
check("greatest stress", stress.max(), 0, 1e-6 * STRESS, "MPa")
check("first frequency", reduction.body.frequencies[0], FREQUENCY, 1.1 * FREQUENCY, "Hz")
check("buckling load", 1e-3 * load, 1e-3 * BUCKLING, 1.1e-3 * BUCKLING, "kN")
check("buckling load over joint force", load / np.abs(run.joint("piston pin 1").force).max(), 3, 4)
