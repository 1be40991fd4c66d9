"""Periodic motions by harmonic balance and by time steps, at equal accuracy.

    ./with-fenicsx python3 benchmarks/harmonic_balance.py [--accuracy 1e-4]

Both methods are refined until the error of all joint forces is below the accuracy, relative to the
largest force of each joint. The reference is a harmonic balance with many harmonics. The table
shows processor times on one thread, with compiled kernels.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from dolfinx.mesh import create_interval
from mpi4py import MPI
from scipy.interpolate import CubicSpline

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import PeriodicError, harmonic_balance, periodic

ALONG_X = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # columns are axes; the third is along x


def support(stiffness: Any) -> Any:
    """Return the law of a damped support; `stiffness` (2,) in N/m grows with the displacement."""

    def law(motion: Any) -> Any:
        r = motion.displacement[:2]
        force = -stiffness * ((1 + 1e6 * float(r @ r)) * r + 2e-3 * motion.velocity[:2])
        return (*force, 0.0), (0.0, 0.0, 0.0)

    return law


def rotor(speed: float = 310.0) -> mbd.System:
    """Return an unbalanced disc that tilts on two supports, driven through a joint."""
    places = {"o": 0.0, "left": -0.1, "right": 0.25}
    frames = {key: mbd.Frame((x, 0, 0), ALONG_X) for key, x in places.items()}
    inertia = [[0.2, 0.004, 0], [0.004, 0.11, 0], [0, 0, 0.11]]
    ground, centre = mbd.Ground(frames), (0.03, 1e-4, 0)
    flange = mbd.RigidBody("flange", 0.5, [1e-3] * 3, frames={"o": frames["o"]})
    disc = mbd.RigidBody("disc", 8.0, inertia, centre, frames)
    loads = [
        mbd.PairLoad(key, ground.frame(key), disc.frame(key), support(np.array([k, 1.6 * k])))
        for key, k in {"left": 4e5, "right": 2e5}.items()
    ]
    bearing = mbd.revolute("bearing", ground.frame("o"), flange.frame("o"))
    joint = mbd.constant_velocity("joint", flange.frame("o"), disc.frame("o"))
    drive = mbd.Driver("drive", "bearing", mbd.constant_speed(speed))
    bodies = [ground, flange, disc]
    return mbd.System(bodies, [bearing, joint], drivers=[drive], loads=loads, gravity=(0, -9.81, 0))


def crank(speed: float = 300.0) -> mbd.System:
    """Return a slider-crank with a beam as its rod."""
    section = mbd.forms.Section.rectangle(0.02, 0.012)
    line = create_interval(MPI.COMM_SELF, 10, [0.0, 0.25])
    model = mbd.BeamModel(line, section, mbd.STEEL)
    rod = mbd.reduce_beam(model, interfaces={"big_end": 0.0, "small_end": 0.25}, num_modes=4).body
    return mbd.mechanisms.slider_crank(rod, speed=speed, crank_radius=0.06, damping_ratio=0.02)


SYSTEMS: dict[str, tuple[Callable[[], mbd.System], float]] = {
    "rotor on two supports": (rotor, 2 * np.pi / 310.0),
    "slider-crank with a flexible rod": (crank, 2 * np.pi / 300.0),
}


def error(run: mbd.results.Solution, reference: mbd.results.Solution) -> float:
    """Return the largest error of a joint force, relative to the largest force of the joint."""
    largest_error, run_time = 0.0, run.time - run.time[0]
    reference_time = reference.time - reference.time[0]
    for joint in run.system.joints:
        reference_force = reference.joint(joint.name).force
        expected = CubicSpline(reference_time, reference_force)(run_time)
        difference = float(np.abs(run.joint(joint.name).force - expected).max())
        largest_error = max(largest_error, difference / float(np.abs(reference_force).max()))
    return largest_error


def refined(
    solve: Callable[[int], Any], sizes: Any, reference: Any, accuracy: float
) -> tuple[int, float]:
    """Return the first of the sizes whose result is accurate enough, and its processor time, s."""
    for size in sizes:
        try:
            solve(size)
        except PeriodicError:  # too few harmonics
            continue
        begin = time.process_time()
        run = solve(size)
        seconds = time.process_time() - begin
        if (last_error := error(run, reference)) <= accuracy:
            return size, seconds
    raise SystemExit(f"no result has the accuracy {accuracy:g}; the last one has {last_error:.2g}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accuracy", type=float, default=1e-4)
    accuracy = parser.parse_args().accuracy
    warnings.simplefilter("ignore")
    print("| mechanism | harmonics | s | steps | s | ratio |\n|---|---|---|---|---|---|")
    for name, (build, period) in SYSTEMS.items():
        system = build()
        reference = harmonic_balance(system, period, num_harmonics=48)
        harmonics, balance_seconds = refined(
            lambda n: harmonic_balance(system, period, num_harmonics=n),
            (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24), reference, accuracy,
        )  # fmt: skip
        steps, step_seconds = refined(
            lambda n: periodic(system, period, dt=period / n),
            (100, 150, 200, 300, 400, 600, 800, 1200, 1600, 2400), reference, accuracy,
        )  # fmt: skip
        ratio = step_seconds / balance_seconds
        cells = f"{harmonics} | {balance_seconds:.4f} | {steps} | {step_seconds:.4f}"
        print(f"| {name} | {cells} | {ratio:.1f} |")


if __name__ == "__main__":
    main()
