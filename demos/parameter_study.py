"""A parameter study: how far a connecting rod bends, over its speed and its stiffness.

Sixteen runs of a slider-crank side by side, in worker processes or on MPI ranks; a table and a plot
go to `results/parameter_study`. Runs serial and under `mpirun -n 2`.
"""

# # A parameter study
#
# A rod shall be made of a fibre-reinforced plastic, whose modulus can be chosen, and the engine
# shall run faster. How far does the rod bend, and how large is the force in the crank pin? One
# simulation of a slider-crank answers this for one modulus and one speed; `mbd.sweep` does all.

# +
from __future__ import annotations

import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import xarray
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor

import dolfinx_mbd as mbd

results = Path("results/parameter_study")
geometry, density, poisson = mbd.ConnectingRod(size=0.008), 1600.0, 0.3
moduli = 18e9 * 2.0 ** np.arange(4)  # Pa
speeds = 100 * np.pi * np.sqrt(2.0) ** np.arange(4)  # rad/s, 3000 to 8485 rpm
STEPS = 240  # in a turn of the crank


def report(text: str) -> None:
    """Print once, not once a rank."""
    if MPI.COMM_WORLD.rank == 0:
        print(text, flush=True)


# -

# ## One run
#
# A function takes the parameters of a case by name and returns numbers or arrays by name. The modes
# of the reduced rod and its geometric stiffness (per unit force) do not depend on the modulus $E$,
# and its stiffness is proportional to it. So one reduction is enough for all cases. The bending is
# measured from the chord between the ends of the rod.


# +
def mechanism(rod: mbd.ReducedBody, speed: float) -> mbd.System:
    """Return a slider-crank of the size of the engine, without gas forces."""
    return mbd.mechanisms.slider_crank(
        rod, crank_radius=0.040, crank_mass=0.952, piston_mass=0.214, speed=speed
    )


def run(speed: float, modulus: float, rod: mbd.ReducedBody) -> dict[str, np.ndarray]:
    """Return bending and pin force over a turn of the crank, and their peaks."""
    rod = rod.replace(stiffness=modulus * rod.stiffness, modes=())
    turn = 2 * np.pi / speed
    solution = mbd.simulate(mechanism(rod, speed), t_end=turn, dt=turn / STEPS)
    eta = solution.body("rod").eta
    big, small, middle = rod.interface("big_end"), rod.interface("small_end"), rod.point("middle")
    shape = middle.modes - 0.5 * (big.motion + small.motion)[:3].T
    bending = (eta @ shape)[:, 1]
    force = np.linalg.norm(solution.joint("crank pin").force, axis=1)
    peaks = {"peak_bending": np.abs(bending).max(), "peak_force": force.max()}
    return {"bending": bending, "force": force, **peaks}


# -

# ## All runs
#
# Two lists make a grid, and the result is an `xarray.Dataset` whose dimensions are the parameters.
# Each case is written to the folder `cases` when it ends. If the study is stopped, by Ctrl-C or
# otherwise, the same call goes on from there. By default there is a worker process for each core.
# Under MPI, rank 0 hands the cases to the other ranks: any executor of `concurrent.futures` works.


# +
def reduced_rod() -> mbd.ReducedBody:
    """Return a rod with a modulus of 1 Pa."""
    material = mbd.Material(density=density, young=1.0, poisson=poisson)
    mesh = mbd.build_mesh(geometry, MPI.COMM_WORLD)
    middle = {"middle": (geometry.length / 2, 0.0, 0.0)}
    ends = ["big_end", "small_end"]
    reduction = mbd.reduce(mesh, material, interfaces=ends, num_modes=6, points=middle, name="rod")
    return reduction.body


def studied(rod: mbd.ReducedBody) -> xarray.Dataset | None:
    """Return the study on rank 0; cases that its folder has are not done again."""
    comm = MPI.COMM_WORLD
    executor: Any
    with nullcontext() if comm.size == 1 else MPICommExecutor(comm) as executor:
        if comm.rank:  # (this rank has worked for rank 0)
            return None
        return mbd.sweep(
            run,
            {"speed": speeds, "modulus": moduli},
            fixed={"rod": rod},
            executor=executor,
            path=results / "cases",
            progress=True,
        )


# -

# ## What to expect
#
# Over the crank angle, inertia forces are proportional to $\Omega^2$ and elastic forces to $E$.
# Without gas and gravity the deformation depends on $\Omega^2/E$ alone, and forces are $\Omega^2$
# times a function of it. Twice the modulus with $\sqrt2$ times the speed gives the same
# deformation, so that only seven of the sixteen runs differ. This holds with geometric stiffening,
# with modal damping and for equally many steps in a turn. The bending of a stiff, slow rod is
# $c\,\Omega^2/E$, and its pin force is that of a rigid rod.


# +
def plot(study: xarray.Dataset, path: Path) -> None:
    """Plot the greatest bending over the speed for each modulus, and as one curve."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    canvas, axes = plt.subplots(1, 2, figsize=(11, 4), constrained_layout=True)
    load = study["speed"] ** 2 / study["modulus"]
    slow = (study["peak_bending"] / load).sel(speed=speeds[0], modulus=moduli[-1]).item()
    for k, modulus in enumerate(moduli):
        bending = 1e3 * study["peak_bending"].sel(modulus=modulus)
        label = f"{1e-9 * modulus:.0f} GPa"
        axes[0].plot(speeds * 30 / np.pi, bending, "o-", label=label)
        axes[1].loglog(1e6 * load.sel(modulus=modulus), bending, "o", ms=11 - 2 * k, label=label)
    ends = np.array([load.min(), load.max()])
    axes[1].loglog(1e6 * ends, 1e3 * slow * ends, "k:", lw=1)
    axes[0].set(xlabel="speed (1/min)", ylabel="greatest bending (mm)")
    axes[1].set(xlabel="Ω²/E (1e-6 s⁻² Pa⁻¹)", ylabel="greatest bending (mm)")
    axes[0].legend()
    axes[1].legend(title="dotted: c Ω²/E")
    for ax in axes:
        ax.grid(alpha=0.3)
    canvas.savefig(path, dpi=110)
    plt.close(canvas)


# -

# ## Does it hold?


# +
def checked(study: xarray.Dataset, again: xarray.Dataset, rigid: float) -> bool:
    """Print each number with its bounds, and return whether all are inside."""
    fine = True

    def check(what: str, value: float, low: float, high: float) -> None:
        nonlocal fine
        ok = low <= value <= high
        fine &= ok
        report(f"{'ok  ' if ok else 'FAIL'} {what:<56} {value:10.3g} in [{low:g}, {high:g}]")

    force = study["force"] / study["speed"] ** 2
    check("cases that failed", int((study["case_status"] != "done").sum()), 0, 0)
    for what, table in (
        ("bending", study["bending"].values),
        ("pin force over Ω²", force.transpose("speed", "modulus", ...).values),
    ):
        off = np.abs(table[1:, 1:] - table[:-1, :-1]).max(axis=-1) / np.abs(table[1:, 1:]).max(-1)
        check(f"{what}: E twice, Ω √2 times, relative difference", off.max(), 0, 1e-8)
    stiff = study["peak_bending"].values[0] * moduli / speeds[0] ** 2
    check(
        "bending of the stiffest, E/Ω² over half of E, off by",
        abs(stiff[3] / stiff[2] - 1),
        0,
        0.01,
    )
    off = abs(study["peak_force"].values[0, 3] / speeds[0] ** 2 / rigid - 1)
    check("pin force of the stiffest over a rigid rod's, off by", off, 0, 1e-3)
    check("the folder gives the study back, and no case is done", again.identical(study), 1, 1)
    return fine


def main() -> bool:
    """Do the study, write its files and check it."""
    if MPI.COMM_WORLD.rank == 0:
        shutil.rmtree(results, ignore_errors=True)
    MPI.COMM_WORLD.Barrier()
    rod = reduced_rod()
    study, again = studied(rod), studied(rod)
    twin = mbd.simulate(mechanism(rod.rigid(), 1.0), t_end=2 * np.pi, dt=2 * np.pi / STEPS)
    rigid = np.linalg.norm(twin.joint("crank pin").force, axis=1).max()
    if study is None or again is None:  # (on the other ranks)
        return True
    report(str(study))
    study.to_netcdf(results / "study.nc")
    study[["peak_bending", "peak_force"]].to_dataframe().to_csv(results / "study.csv")
    plot(study, results / "study.png")
    report(f"\n{results}/study.nc, study.csv and study.png are written\n")
    return checked(study, again, float(rigid))


if __name__ == "__main__":
    sys.exit(not main())
# -
