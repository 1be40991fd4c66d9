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
STRESS, FREQUENCY, BUCKLING = 280e6, 1750.0, 100e3  # Pa, at least Hz, at least N
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
    """Return the norm of the greatest stress at the surface of the shank."""
    skin = body.skin
    corners = skin.points[skin.triangles]
    shank = (corners[:, :, 0].min(axis=1) > 0.035) & (corners[:, :, 0].max(axis=1) < 0.118)
    first, second = (corners[shank, k] - corners[shank, 0] for k in (1, 2))
    along = first / np.linalg.norm(first, axis=1, keepdims=True)
    across = second - along * np.sum(second * along, axis=1, keepdims=True)
    axes = np.stack([along, across / np.linalg.norm(across, axis=1, keepdims=True)], axis=1)
    edges = np.stack([first, second], axis=2)  # (triangles, 3, 2)
    u = skin.modes[:, skin.triangles[shank]]
    moved = np.stack([u[:, :, 1] - u[:, :, 0], u[:, :, 2] - u[:, :, 0]], axis=3)
    gradient = axes @ moved @ np.linalg.inv(axes @ edges)
    strain = np.tensordot(cycle(body).body("rod 1").eta, gradient, axes=1)
    strain = (strain + np.swapaxes(strain, 2, 3)) / 2
    E, nu = material.young, material.poisson
    trace = nu * np.trace(strain, axis1=2, axis2=3)[:, :, None, None] * np.eye(2)
    s = E / (1 - nu**2) * ((1 - nu) * strain + trace)
    xx, yy, xy = s[..., 0, 0], s[..., 1, 1], s[..., 0, 1]
    mises = np.sqrt(xx**2 + yy**2 - xx * yy + 3 * xy**2)
    greatest = mises.max(axis=0) / STRESS
    return STRESS * float(np.linalg.norm(greatest, 40))


def stress(table: mbd.BodySensitivities, step: float = 2e-5) -> tuple[float, dict[str, float]]:
    """Return the stress and its derivatives."""
    slopes = {}
    for name, value in table.base.items():
        above, below = (peak(table.at({name: value + s})) for s in (step, -step))
        slopes[name] = (above - below) / (2 * step)
    return peak(table.body), slopes


# -

# ## The optimum
#
# `minimize` calls `rod.at` once for each set of values. `rod.at` moves the mesh, checks the quality
# of its cells, reduces the body and differentiates it; after a small change it returns the body of
# first order instead. Each function returns a number and its derivatives.

# +
start = {parameter.name: 0.0 for parameter in shapes(rod.model.mesh)}
low, high = (-8e-3, -6e-3, -5e-3, -2e-3), (4e-3, 4e-3, 4e-3, 2e-3)
with helpers.timed("optimization"):
    best = mbd.minimize(
        lambda table: (table.body.total_mass, {k: d.total_mass for k, d in table.items()}),
        start,
        {
            "stress": mbd.Limits(stress, high=STRESS),
            "frequency": mbd.Limits(
                lambda table: (
                    table.body.frequencies[0],
                    {k: d.frequencies[0] for k, d in table.items()},
                ),
                low=FREQUENCY,
            ),
            "buckling": mbd.Limits(lambda table: mbd.buckling_load(table, ends), low=BUCKLING),
        },
        bounds=dict(zip(start, zip(low, high, strict=True), strict=True)),
        model=rod.at,
        tolerance=1e-3,
        comm=comm,
    )
report(f"{best.evaluations} evaluations, {rod.count} reductions; active: {dict(best.active)}")
for name, value in best.values.items():
    report(f"{name:<20} {1e3 * value:+.2f} mm")
masses = [1e3 * step.objective for step in best.history]
rows = {"mass (g)": {"": np.array(masses)}}
levels = {"stress (MPa)": [1e-6 * STRESS], "frequency (Hz)": [FREQUENCY], "buckling (kN)": [100.0]}
for (label, limit), name, unit in zip(
    levels.items(), best.constraints, (1e-6, 1, 1e-3), strict=True
):
    rows[label] = {"": np.array([unit * step.constraints[name] for step in best.history])}
helpers.plot_histories(
    results / "history.png", ("iteration", np.arange(len(masses))), rows, levels=levels
)
# -

# ## Check with a finer mesh
#
# A finer mesh with curved cells moves by the same velocities. More modes and a smaller time step
# verify all bounds; the stress is now that of the cells, not that of the triangles of the surface.

# +
fine, greatest = parametric_rod(0.006, 12, 2), {}
for name, values in (("before", start), ("after", best.values)):
    reduction = fine.reduce(values)
    run = cycle(reduction.body, dt=2e-5)
    envelope = mbd.envelope(mbd.recovery.Recovery(reduction), run.body("rod 1"))
    value = mbd.recovery.skin_values(envelope.value)
    x = reduction.body.skin.points[:, 0]
    greatest[name] = value[(x > 0.035) & (x < 0.118)].max()
    title = f"{name}: {1e3 * reduction.body.total_mass:.1f} g"
    picture = results / f"{name}.png"
    limits = (0.0, 1e-6 * STRESS)
    helpers.show(mbd.plotting.plot_skin, reduction.body, value, picture, title=title, limits=limits)
report(f"greatest stress before: {1e-6 * greatest['before']:.0f} MPa")
table = fine.at(best.values)
force = np.abs(run.joint("piston pin 1").force).max()
check("mass after optimization", 1e3 * table.body.total_mass, 120, 146, "g")
check("stress of the finer mesh", 1e-6 * greatest["after"], 0, 1.03e-6 * STRESS, "MPa")
check("first frequency of the finer mesh", table.body.frequencies[0], 0.99 * FREQUENCY, 1e5, "Hz")
load = mbd.buckling_load(table, ends)[0]
check("buckling load of the finer mesh", 1e-3 * load, 0.98e-3 * BUCKLING, 1e4, "kN")
check("buckling load over greatest force", load / force, 3, 10)
