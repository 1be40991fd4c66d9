"""A parameter study: how far a connecting rod bends, over its speed and its stiffness.

You run this script serially or under `mpirun -n 2`. Files go to `results/parameter_study`.
"""

# # A parameter study
#
# You want a rod of fibre-reinforced plastic, whose modulus you can choose, and a faster engine. How
# far does the rod bend, and how large is the force in the crank pin? One simulation of a
# slider-crank answers this for one modulus and one speed. `mbd.sweep` simulates all sixteen.

# +
from __future__ import annotations

import shutil
from contextlib import nullcontext
from typing import Any

import numpy as np
import xarray
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.tutorials import check, check_close, report

results = tutorials.results_folder("parameter_study")
moduli = 18e9 * 2.0 ** np.arange(4)  # Pa
speeds = 100 * np.pi * np.sqrt(2.0) ** np.arange(4)  # rad/s, 3000 to 8485 rpm
STEPS = 240  # in a revolution of the crank
# -

# ## One run
#
# A function takes the parameters of a case by name and returns numbers or arrays by name. The modes
# of the reduced rod and its geometric stiffness (per unit force) do not depend on the modulus $E$,
# and its stiffness is proportional to it. So one reduction is enough for all cases. The bending is
# measured from the chord between the ends of the rod.


# +
def reduced_rod() -> mbd.ReducedBody:
    """Return a rod with the least modulus."""
    mesh = mbd.build_mesh(mbd.ConnectingRod(size=0.008), MPI.COMM_WORLD)
    plastic = mbd.Material(density=1600.0, young=moduli[0], poisson=0.3)
    points = {"middle": (0.0685, 0.0, 0.0)}
    ends = ["big_end", "small_end"]
    return mbd.reduce(mesh, plastic, interfaces=ends, num_modes=16, points=points, name="rod").body


def simulated(rod: mbd.ReducedBody, speed: float) -> mbd.results.Solution:
    """Return a revolution of a slider-crank of the size of the engine, without gas forces."""
    mechanism = mbd.mechanisms.slider_crank(
        rod, crank_radius=0.040, crank_mass=0.952, piston_mass=0.214, speed=speed
    )
    return mbd.simulate(mechanism, t_end=2 * np.pi / speed, dt=2 * np.pi / speed / STEPS)


def case(speed: float, modulus: float, rod: mbd.ReducedBody) -> dict[str, np.ndarray]:
    """Return the bending and the pin force over a revolution of the crank, and their maxima."""
    run = simulated(rod.replace(stiffness=modulus / moduli[0] * rod.stiffness, modes=()), speed)
    bending = tutorials.chord_displacement(rod, run.body("rod").eta)[:, 1]
    force = np.linalg.norm(run.joint("crank pin").force, axis=1)
    peaks = {"peak_bending": np.abs(bending).max(), "peak_force": force.max()}
    return {"bending": bending, "force": force, **peaks}


# -

# ## All runs
#
# Two lists make a grid, and the result is an `xarray.Dataset` whose dimensions are the parameters.
# Each case is written to the folder `cases` when it ends. If the study is stopped, by Ctrl-C or
# otherwise, the same call continues it. By default there is a worker process for each core. Under
# MPI, rank 0 hands the cases to the other ranks: any executor of `concurrent.futures` works.


# +
def studied(rod: mbd.ReducedBody) -> xarray.Dataset | None:
    """Return the study on rank 0; cases that its folder contains are not computed again."""
    comm, cases = MPI.COMM_WORLD, results / "cases"
    grid, fixed = {"speed": speeds, "modulus": moduli}, {"rod": rod}
    executor: Any
    with nullcontext() if comm.size == 1 else MPICommExecutor(comm) as executor:
        if comm.rank:  # (this rank has worked for rank 0)
            return None
        return mbd.sweep(case, grid, fixed=fixed, executor=executor, path=cases, progress=True)


# -

# ## What to expect
#
# Over the crank angle, inertia forces are proportional to $\Omega^2$ and elastic forces to $E$.
# Without gas and gravity the deformation depends on $\Omega^2/E$ alone, and forces are $\Omega^2$
# times a function of it. Twice the modulus with $\sqrt2$ times the speed gives the same
# deformation, so that only seven of the sixteen runs differ. This holds with geometric stiffening,
# with modal damping and for equally many steps in a revolution. The bending of a stiff, slow rod is
# $c\,\Omega^2/E$, and its pin force is that of a rigid rod.


# +
def plot(study: xarray.Dataset) -> None:
    """Plot the greatest bending over the speed for each modulus, and as one curve."""
    load = 1e6 * study["speed"] ** 2 / study["modulus"]
    slow = (study["peak_bending"] / load).sel(speed=speeds[0], modulus=moduli[-1]).item()
    with tutorials.figure(results / "study.png", 1, 2) as axes:
        for k, modulus in enumerate(moduli):
            bending = 1e3 * study["peak_bending"].sel(modulus=modulus)
            axes[0].plot(speeds * 30 / np.pi, bending, "o-", label=f"{modulus / 1e9:.0f} GPa")
            axes[1].loglog(load.sel(modulus=modulus), bending, "o", ms=11 - 2 * k)
        ends = np.array([load.min(), load.max()])
        axes[1].loglog(ends, 1e3 * slow * ends, "k:", label="stiff, slow rod: c Ω²/E")
        axes[0].set(xlabel="speed (1/min)", ylabel="greatest bending (mm)")
        axes[1].set(xlabel="Ω²/E (1e-6 s⁻² Pa⁻¹)", ylabel="greatest bending (mm)")
        axes[0].legend()
        axes[1].legend()


# -

# ## Checks
#
# An executor whose processes import this script needs `if __name__ == "__main__"`.

# +
if __name__ == "__main__":
    if tutorials.root:
        shutil.rmtree(results / "cases", ignore_errors=True)
    rod = reduced_rod()
    rigid = np.linalg.norm(simulated(rod.rigid(), speeds[0]).joint("crank pin").force, axis=1)
    study, again = studied(rod), studied(rod)
    if study is not None and again is not None:  # (rank 0)
        report(study)
        study.to_netcdf(results / "study.nc")
        study[["peak_bending", "peak_force"]].to_dataframe().to_csv(results / "study.csv")
        plot(study)
        check("cases that failed", int((study["case_status"] != "done").sum()), 0, 0)
        for name, power in {"bending": 0, "force": 2}.items():
            table = study[name].values / speeds[:, None, None] ** power
            difference = np.abs(table[1:, 1:] - table[:-1, :-1]).max()
            label = f"{name}: modulus × 2 and speed × √2, relative difference"
            check(label, difference / np.abs(table).max(), 0, 1e-8)
        scaled = study["peak_bending"].values[0] * moduli
        check_close("peak bending × E, stiffest rod and half as stiff", scaled[3], scaled[2], 0.01)
        force = study["peak_force"].values[0, 3]
        check_close("pin force of the stiffest and of a rigid rod", force, rigid.max(), 1e-3, "N")
        check("the same study again, from its folder", again.identical(study), 1, 1)
# -
