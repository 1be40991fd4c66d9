"""The engine's connecting rod at full order, under the motion and forces of the running engine.

What the modes of the reduced rod leave out, over their number; a table and a picture go to
`results/prescribed_motion`. Takes a minute; runs serial and under `mpirun -n 2`.
"""

# # What the modes leave out
#
# In the engine a rod is a reduced body of some twenty modes. Its frame's motion and its joint
# forces are known once the engine has run. With them the rod on its mesh, with all degrees of
# freedom, obeys a linear equation in the same frame,
#
# $$
# M\ddot u + (C + G(\omega))\,\dot u + (K + K_\sigma + K_\omega + K_\alpha)\,u = f(t),
# $$
#
# with the Coriolis operator $G$, spin softening $K_\omega$, the Euler operator $K_\alpha$ and the
# geometric stiffness $K_\sigma$ of spin and joint forces. `transient` solves it in parallel: one
# factorization, nothing assembled in the time loop. The reduced rod obeys its projection on the
# modes, so the difference of the two is what the modes leave out.

# +
from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.body import Rayleigh
from dolfinx_mbd.mechanisms.gas import FourStrokePressure
from dolfinx_mbd.prescribed_motion import PrescribedMotion, modal_transient, quasi_static, transient

comm = MPI.COMM_WORLD
root = comm.rank == 0
results = Path("results/prescribed_motion")
results.mkdir(parents=True, exist_ok=True)


def report(text: str) -> None:
    """Print once, not once a rank."""
    if root:
        print(text, flush=True)


# -

# ## The engine
#
# One cylinder is enough, for the crank turns at constant speed: 6000 rpm and the gas pressure of
# `engine.py`, over one turn from the ignition on. The mesh is coarse; that does not matter here,
# for both rods have it. Damping is Rayleigh's, $C = c\,K$, which mesh and modes can have alike.

# +
geometry = mbd.ConnectingRod(size=0.012)
material = mbd.ALUMINIUM_7075
mesh = mbd.build_mesh(geometry, comm)
damping = Rayleigh(stiffness=2e-7)
points = {"middle": (geometry.length / 2, 0.0, 0.0)}
ends = ["big_end", "small_end"]


def reduced(num_modes: int) -> mbd.ReducedBody:
    """The rod with so many fixed-interface modes."""
    rod = mbd.reduce(
        mesh,
        material,
        interfaces=ends,
        num_modes=num_modes,
        points=points,
        name="rod",
        options=mbd.ReductionOptions(skin=False),
    ).body
    return rod.replace(damping=damping.matrix(rod.mass, rod.stiffness))


rod = reduced(20)
speed, bore, t_end, dt = 628.318, 0.070, 0.01, 2e-5
pressure = FourStrokePressure(bore, crank_radius=0.040, rod_length=mbd.mechanisms.rod_length(rod))
engine = mbd.mechanisms.inline_engine(rod, speed=speed, bore=bore, pressure=pressure, cylinders=1)
start = time.perf_counter()
run = mbd.simulate(engine, t_end=t_end, dt=dt)
report(f"{run}\nin {time.perf_counter() - start:.1f} s")
# -

# ## The rod on its mesh
#
# The motion of its frame, the mean axes, is in the run's history; the wrenches at the bores follow
# from the joint forces. The bores are rigid, as in the reduction.

# +
history = run.body("rod 1")
motion = PrescribedMotion.from_history(
    history, gravity=engine.gravity, wrenches=run.body("rod 1").wrenches
)
settings: dict[str, Any] = {"motion": motion, "t_end": t_end, "dt": dt}
start = time.perf_counter()
record = mbd.TransientOptions(points=points, fields_at=np.linspace(0, t_end, 26))
full = transient(mesh, material, interfaces=ends, damping=damping, options=record, **settings)
per_step = full.num_solves / full.num_steps
report(
    f"{full.num_dofs} degrees of freedom, {full.num_steps} steps in "
    f"{time.perf_counter() - start:.1f} s; solves with the constant factor a step: "
    f"{per_step:.2f} in the mean, {full.most_solves} at most"
)
full.write(results / "rod.bp", history, scale=50.0)
# -

# Its middle against that of the engine's rod, relative to the greatest displacement: along, across.

# +
middle = full.points["middle"].displacement
in_engine = history.eta @ rod.point("middle").modes


def difference(u: np.ndarray) -> np.ndarray:
    """Greatest difference to the full order along and across, relative."""
    return np.abs(u - middle)[:, :2].max(axis=0) / np.abs(middle)[:, :2].max(axis=0)


with_engine = difference(in_engine)
report(f"engine, 20 modes: {with_engine[0]:.2e} along, {with_engine[1]:.2e} across")
# -

# ## How many modes
#
# The same motion and forces act on rods with fewer and with more fixed-interface modes. Static
# deflections by the joint forces are exact with any number, by the constraint modes; the inertia
# loads of the rod itself, and its vibrations, are not.

# +
numbers = (0, 2, 4, 8, 12, 20, 40)
bodies = {n: reduced(n) for n in numbers}
table = {
    n: difference(modal_transient(b, **settings).points["middle"].displacement)
    for n, b in bodies.items()
}
lines = ["modes  highest (Hz)  along     across"]
lines += [
    f"{n:5d}  {bodies[n].frequencies[-1]:12.0f}  {a:.2e}  {b:.2e}" for n, (a, b) in table.items()
]
report("\n" + "\n".join(lines))
# -

# ## As if it stood still
#
# The papers superpose modes of the mechanism as it stands in a position, and the motion appears
# only in the loads. Cheaper still is the balance $K u = f$ at every instant.

# +
frozen = modal_transient(rod, couplings=False, **settings)
balance = quasi_static(rod, motion, frozen.time)
soft = modal_transient(rod, stiffening=False, **settings)
models = {
    "frozen motion, modal superposition": difference(frozen.points["middle"].displacement),
    "frozen motion, quasi-static": difference(balance.points["middle"].displacement),
    "all but geometric stiffening": difference(soft.points["middle"].displacement),
}
for name, (a, b) in models.items():
    lines.append(f"{name:<36} {a:.2e} along, {b:.2e} across")
    report(lines[-1])
if root:
    (results / "truncation.txt").write_text("\n".join(lines) + "\n")
# -

# ## Picture


# +
def plot() -> None:
    """Write the picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    degrees = np.rad2deg(speed * full.time)
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), constrained_layout=True)
    for k, name in enumerate(("along", "across")):
        ax = axes[k]
        ax.plot(degrees, 1e3 * middle[:, k], label="full order")
        ax.plot(degrees, 1e3 * in_engine[:, k], "--", label="engine, 20 modes")
        ax.plot(
            degrees, 1e3 * frozen.points["middle"].displacement[:, k], ":", label="frozen motion"
        )
        ax.set(xlabel="crank angle (°)", ylabel=f"{name} (mm)", title=f"Middle of the rod, {name}")
        ax.grid(alpha=0.3)
    axes[0].legend()
    for k, name in enumerate(("along", "across")):
        axes[2].semilogy(numbers, [table[n][k] for n in numbers], "o-", label=name)
    axes[2].axhline(0.01, color="0.5", ls="--", lw=0.8)
    axes[2].set(xlabel="fixed-interface modes", title="Greatest difference to full order, relative")
    axes[2].grid(alpha=0.3)
    axes[2].legend()
    figure.savefig(results / "truncation.png", dpi=110)
    plt.close(figure)


if root:
    plot()
report(f"\n{results}/truncation.txt, truncation.png and rod.bp (50 times enlarged) are written")
# -

# ## Does it hold?

# +
failed = False


def check(what: str, value: float, low: float, high: float) -> None:
    """Print a number with its bounds and remember if it is outside."""
    global failed
    ok = low <= value <= high
    failed |= not ok
    report(f"{'ok  ' if ok else 'FAIL'} {what:<62} {value:10.3g} in [{low:.3g}, {high:.3g}]")


report("")
for name, error in zip(("along", "across"), with_engine, strict=True):
    check(f"middle, full order against the engine's 20 modes, {name}", error, 0.0, 0.01)
begin = history.eta[0], history.eta_rate[0]
projected = (
    modal_transient(rod, elastic_start=begin, **settings).points["middle"].displacement - in_engine
)
size = np.abs(in_engine[:, :2]).max(axis=0)
check(
    "the same 20 modes in the engine and under its motion",
    float((np.abs(projected[:, :2]).max(axis=0) / size).max()),
    0.0,
    1e-3,
)
check("error with 40 modes over that without any, across", table[40][1] / table[0][1], 0.0, 0.1)
check(
    "frozen motion, across: more than the modes leave out",
    models["frozen motion, modal superposition"][1] / with_engine[1],
    2.0,
    np.inf,
)
check("solves with the constant factor in a step, at most", full.most_solves, 1, 3)
sys.exit(failed)
# -
