"""A parameter study: how far a connecting rod bends, over its speed and its stiffness.

Sixteen runs of a slider-crank side by side, over worker processes or MPI ranks, kept as they are
done; a table and a plot go to `results/parameter_study`. Runs serial and under `mpirun -n 2`.
"""

# # A parameter study
#
# A rod shall be made of a fibre-reinforced plastic, whose modulus can be chosen, and the engine
# shall run faster. How far does the rod bend, and what does the crank pin have to bear? One run of
# a slider-crank answers that for one modulus at one speed, `mbd.sweep` for all of them.

# +
from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

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
# A function that takes the parameters of a case by name and returns numbers or arrays by name. The
# rod comes reduced. Its modes and its geometric stiffness, which is that of given forces, do not
# depend on the modulus $E$, and its stiffness is proportional to it: one reduction does for all.
# The middle of the rod is seen from the chord between its ends, as the floating frame is nobody's
# measure.


# +
def mechanism(rod: mbd.ReducedBody, speed: float) -> mbd.System:
    """A slider-crank of the engine's size, without gas: what acts is inertia."""
    return mbd.mechanisms.slider_crank(
        rod, crank_radius=0.040, crank_mass=0.952, piston_mass=0.214, speed=speed
    )


def run(speed: float, modulus: float, rod: mbd.ReducedBody) -> dict[str, np.ndarray]:
    """A turn of the crank: bending and pin force over it, and their peaks."""
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
# Two lists make a grid, results come as arrays of its shape. The rod is sent to each worker once.
# What is done is in the folder `cases` at once: if the study is stopped, by Ctrl-C or otherwise,
# the same call goes on where it was. The workers import this file for the function in it; what
# must not start anew there is under `if __name__ == "__main__":`.


# +
def reduced_rod() -> mbd.ReducedBody:
    """A rod with a modulus of 1 Pa."""
    material = mbd.Material(density=density, young=1.0, poisson=poisson)
    mesh = mbd.build_mesh(geometry, MPI.COMM_WORLD)
    middle = {"middle": (geometry.length / 2, 0.0, 0.0)}
    ends = ["big_end", "small_end"]
    reduction = mbd.reduce(mesh, material, interfaces=ends, num_modes=6, points=middle, name="rod")
    return reduction.body


def studied(rod: mbd.ReducedBody) -> mbd.Study:
    """The study, from what its folder has."""
    return mbd.sweep(
        run,
        {"speed": speeds, "modulus": moduli},
        fixed={"rod": rod},
        comm=MPI.COMM_WORLD,
        path=results / "cases",
        progress=True,
    )


# -

# ## What to expect
#
# With the crank angle instead of time, inertia grows with $\Omega^2$ and elastic forces with $E$:
# without gas and gravity the deformation depends on $\Omega^2/E$ alone, and forces are $\Omega^2$
# times a function of it. So each doubling of $E$ does what $\sqrt2$ in speed does, and the sixteen
# runs are only seven different ones. That holds with geometric stiffening and modal damping, and
# with as many steps in a turn. For a stiff and slow rod the bending is $c\,\Omega^2/E$, and the
# pin force that of a rigid rod.


# +
def plot(study: mbd.Study, path: Path) -> None:
    """The greatest bending over speed for each modulus, and as one curve."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    canvas, axes = plt.subplots(1, 2, figsize=(11, 4), constrained_layout=True)
    least = study.at(speed=speeds[0], modulus=moduli[-1])
    slow = least["peak_bending"] * moduli[-1] / speeds[0] ** 2
    load = study["speed"] ** 2 / study["modulus"]
    for k, modulus in enumerate(moduli):
        bending, label = (
            1e3 * study.at(modulus=modulus)["peak_bending"],
            f"{1e-9 * modulus:.0f} GPa",
        )
        axes[0].plot(speeds * 30 / np.pi, bending, "o-", label=label)
        axes[1].loglog(1e6 * load[:, k], bending, "o", ms=11 - 2 * k, label=label)
    axes[1].loglog(
        1e6 * np.sort(load, axis=None), 1e3 * slow * np.sort(load, axis=None), "k:", lw=1
    )
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
def checked(study: mbd.Study, again: mbd.Study, rigid: float) -> bool:
    """Print each number with its bounds; whether all are inside."""
    fine = True

    def check(what: str, value: float, low: float, high: float) -> None:
        nonlocal fine
        ok = low <= value <= high
        fine &= ok
        report(f"{'ok  ' if ok else 'FAIL'} {what:<56} {value:10.3g} in [{low:g}, {high:g}]")

    bending, force = study["bending"], study["force"] / study["speed"][..., None] ** 2
    check("cases that failed", len(study.failed), 0, 0)
    for what, table in (("bending", bending), ("pin force over Ω²", force)):
        off = np.abs(table[1:, 1:] - table[:-1, :-1]).max(axis=-1) / np.abs(table[1:, 1:]).max(-1)
        check(f"{what}: E twice, Ω √2 times, relative difference", off.max(), 0, 1e-8)
    stiff = study["peak_bending"][0] * study["modulus"][0] / speeds[0] ** 2
    check(
        "bending of the stiffest, E/Ω² over half of E, off by",
        abs(stiff[3] / stiff[2] - 1),
        0,
        0.01,
    )
    off = abs(study["peak_force"][0, 3] / speeds[0] ** 2 / rigid - 1)
    check("pin force of the stiffest over a rigid rod's, off by", off, 0, 1e-3)
    same = np.array_equal(bending, again["bending"])
    times = [case.seconds for case in study.cases] == [case.seconds for case in again.cases]
    check("the folder gives the study back, and nothing is done", same and times, 1, 1)
    return fine


def main() -> bool:
    """The study, its files and its checks."""
    if MPI.COMM_WORLD.rank == 0:
        shutil.rmtree(results, ignore_errors=True)
    MPI.COMM_WORLD.Barrier()
    rod = reduced_rod()
    study = studied(rod)
    report(str(study))
    again = studied(rod)
    twin = mbd.simulate(mechanism(rod.rigid(), 1.0), t_end=2 * np.pi, dt=2 * np.pi / STEPS)
    rigid = np.linalg.norm(twin.joint("crank pin").force, axis=1).max()
    if MPI.COMM_WORLD.rank == 0:
        study.save(results / "study.npz")
        study.to_csv(results / "study.csv")
        plot(study, results / "study.png")
    report(f"\n{results}/study.npz, study.csv and study.png are written\n")
    return checked(study, again, float(rigid))


if __name__ == "__main__":
    sys.exit(not main())
# -
