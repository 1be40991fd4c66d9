"""A connecting rod at full order, under the motion and the forces of the running engine.

You find out what the modes of a reduced rod leave out, by solving for all degrees of freedom of its
mesh. Files go to `results/prescribed_motion`. Runs on one rank and under `mpirun -n 2`.
"""

# # What the modes leave out
#
# In the engine a rod is a reduced body with some twenty modes. Once the engine has run, the motion
# of its frame and the joint forces are known. Under these, the rod on its mesh obeys a linear
# equation in the same frame,
#
# $$M\ddot u+(C+G(\omega))\,\dot u+(K+K_\sigma+K_\omega+K_\alpha)\,u=f(t),$$
#
# with the Coriolis operator $G$, spin softening $K_\omega$, the Euler operator $K_\alpha$ and the
# geometric stiffness $K_\sigma$ of spin and joint forces. `transient` solves it in parallel with a
# single factorization. The reduced rod obeys the projection of this equation on its modes, so the
# difference of the two is what the modes leave out.

# +
from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.structures.prescribed_motion import modal_transient, quasi_static_deformation
from dolfinx_mbd.tutorials import check, report, timed

results = tutorials.results_folder("prescribed_motion")
# -

# ## The engine
#
# One cylinder runs for one turn at 6000 rpm, from the ignition on. The mesh may be coarse, because
# both models of the rod have the same one. Rayleigh damping, $C = cK$, is the same on the mesh and
# in the modes.

# +
geometry, material = mbd.ConnectingRod(size=0.012), mbd.ALUMINIUM_7075
mesh = mbd.build_mesh(geometry, MPI.COMM_WORLD)
damping = mbd.body.Rayleigh(stiffness=2e-7)
points = {"middle": (geometry.length / 2, 0.0, 0.0)}
ends = ["big_end", "small_end"]
options = mbd.ReductionOptions(damping=damping)
numbers = (0, 2, 4, 8, 12, 20, 40)
with mbd.reduction.Reducer(mesh, material, interfaces=ends) as reducer:
    bodies = {n: reducer.reduce(n, points=points, options=options).body for n in numbers}
rod, speed, t_end, dt = bodies[20], 628.318, 0.01, 2e-5  # –, rad/s, s, s
engine = mbd.mechanisms.inline_engine(rod, mbd.mechanisms.EngineDesign(cylinders=1), speed=speed)
with timed("engine"):
    run = mbd.simulate(engine, t_end=t_end, dt=dt)
history = run.body("rod 1")
# -

# ## The rod on its mesh
#
# The loads of the rod are the motion of its frame and, at the bores, the forces of the joints. The
# bores are rigid, as in the reduction.

# +
motion = mbd.structures.PrescribedMotion.from_history(history, gravity=engine.gravity)
settings: dict[str, Any] = {"motion": motion, "t_end": t_end, "dt": dt}
rod_on_mesh: dict[str, Any] = {"interfaces": ends, "damping": damping}
record = mbd.structures.TransientOptions(points=points, fields_at=np.linspace(0, t_end, 26))
with timed("full order"):
    full = mbd.structures.transient(mesh, material, options=record, **rod_on_mesh, **settings)
report(
    f"{full.num_dofs} degrees of freedom, {full.num_steps} steps, "
    f"{full.num_solves / full.num_steps:.2f} solves with the factor in a step"
)
full.write(results / "rod.bp", history, scale=50.0)
middle = full.points["middle"].displacement


def difference(u: np.ndarray) -> np.ndarray:
    """Return the greatest difference to full order along and across, relative."""
    return np.abs(u - middle)[:, :2].max(axis=0) / np.abs(middle)[:, :2].max(axis=0)


in_engine = history.eta @ rod.point("middle").modes
report(
    f"20 modes in the engine: {difference(in_engine)[0]:.2e} along, "
    f"{difference(in_engine)[1]:.2e} across"
)
# -

# ## How many modes?
#
# The same motion and forces act on rods with fewer and with more fixed-interface modes. Static
# deflections by the joint forces are exact with any number of modes. Vibrations, and deflections by
# the inertia of the rod itself, depend on this number.

# +
errors = {}
report("modes  highest (Hz)  along     across")
for n, body in bodies.items():
    errors[n] = difference(modal_transient(body, **settings).points["middle"].displacement)
    report(f"{n:5d}  {body.frequencies[-1]:12.0f}  {errors[n][0]:.2e}  {errors[n][1]:.2e}")
# -

# ## Simpler models
#
# Papers superpose the modes of the mechanism frozen in one position, so that the motion appears in
# the loads only. Simpler still is the balance $Ku=f$ at every instant.

# +
models = {
    "frozen motion": modal_transient(rod, couplings=False, **settings),
    "quasi-static": quasi_static_deformation(rod, motion, full.time),
    "no geometric stiffening": modal_transient(rod, stiffening=False, **settings),
}
histories = {name: model.points["middle"].displacement for name, model in models.items()}
for name, u in histories.items():
    report(f"{name:<24} {difference(u)[0]:.2e} along, {difference(u)[1]:.2e} across")
tutorials.save_report(results / "truncation.txt")
with tutorials.figure(results / "truncation.png", 1, 3, figsize=(13, 3.8)) as axes:
    degrees = np.rad2deg(speed * full.time)
    for k, name in enumerate(("along", "across")):
        axes[k].plot(degrees, 1e3 * middle[:, k], label="full order")
        axes[k].plot(degrees, 1e3 * in_engine[:, k], "--", label="engine, 20 modes")
        axes[k].plot(degrees, 1e3 * histories["frozen motion"][:, k], ":", label="frozen motion")
        axes[k].set(xlabel="crank angle (°)", ylabel=f"middle of the rod, {name} (mm)")
        axes[2].semilogy(numbers, [errors[n][k] for n in numbers], "o-", label=name)
    axes[2].set(xlabel="fixed-interface modes", ylabel="difference to full order, relative")
    axes[0].legend()
    axes[2].legend()
# -

# ## Checks

# +
for name, error in zip(("along", "across"), difference(in_engine), strict=True):
    check(f"full order and 20 modes in the engine, {name}", error, 0.0, 0.01)
begin = history.eta[0], history.eta_rate[0]
projected = (
    modal_transient(rod, elastic_start=begin, **settings).points["middle"].displacement - in_engine
)
size = np.abs(in_engine[:, :2]).max(axis=0)
error = (np.abs(projected[:, :2]).max(axis=0) / size).max()
check("the same 20 modes in the engine and under its motion", error, 0.0, 1e-3)
check("error with 40 modes over that without, across", errors[40][1] / errors[0][1], 0.0, 0.1)
frozen = difference(histories["frozen motion"])[1] / difference(in_engine)[1]
check("frozen motion, error over that of 20 modes, across", frozen, 2.0, np.inf)
check("solves with the factor in a step, at most", full.most_solves, 1, 3)
# -
