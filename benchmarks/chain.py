"""Time of a step as a function of the number of bodies, for a chain of hinged bars.

    ./with-fenicsx python3 benchmarks/chain.py [--links 20 40 80 160] [--rounds 3]

The chain falls under gravity. *Dense* and *sparse* are two ways to factorize the iteration matrix;
the package chooses by size. The table shows medians of the processor time on one thread, without
the time of compiling the kernels.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from dolfinx_mbd.dynamics import System, consistent_state
from dolfinx_mbd.dynamics.stepping.integrators import Stepper
from dolfinx_mbd.mechanism import Frame, Ground, RigidBody, revolute

DT = 1e-3  # s
DENSE_UP_TO = 160  # links; the dense factorization of longer chains is too slow to measure


def chain(links: int) -> System:
    """Return a chain of hinged bars of 1 kg and 1 m."""
    ground = Ground({"wall": Frame()})
    bodies: list = [ground]
    joints, previous = [], ground.frame("wall")
    ends = {"near": Frame((-0.5, 0.0, 0.0)), "far": Frame((0.5, 0.0, 0.0))}
    for k in range(links):
        inertia = np.array([1e-3, 1 / 12, 1 / 12])
        place = (k + 0.5, 0.0, 0.0)
        bodies.append(RigidBody(f"link {k}", 1.0, inertia, frames=ends, position=place))
        joints.append(revolute(f"hinge {k}", previous, bodies[-1].frame("near")))
        previous = bodies[-1].frame("far")
    return System(bodies, joints, gravity=(0.0, -9.81, 0.0))


def step_time(system: System, sparse: bool, steps: int = 40) -> tuple[float, float]:
    """Return the processor time (ms) and the number of factorizations per step."""
    stepper = Stepper(system, sparse=sparse)
    state = stepper.begin(consistent_state(system), DT)
    for _ in range(5):
        state = stepper.step(state, DT)
    start, factorizations_before = time.process_time(), stepper.factorizations
    for _ in range(steps):
        state = stepper.step(state, DT)
    seconds = time.process_time() - start
    factorizations = stepper.factorizations - factorizations_before
    return 1e3 * seconds / steps, factorizations / steps


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--links", nargs="+", type=int, default=[20, 40, 80, 160])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print("| links | unknowns | chosen | dense, ms a step | sparse, ms a step | LU a step |")
    print("|---|---|---|---|---|---|")
    for links in arguments.links:
        system = chain(links)
        times: dict[bool, list[float]] = {False: [], True: []}
        factorizations = 0.0
        for _ in range(arguments.rounds):
            for sparse, samples in times.items():
                if sparse or links <= DENSE_UP_TO:
                    milliseconds, factorizations = step_time(system, sparse)
                    samples.append(milliseconds)
        shown = [
            f"{statistics.median(samples):.2f}" if samples else "-" for samples in times.values()
        ]
        chosen = "sparse" if Stepper(system).sparse else "dense"
        size = system.num_velocities + system.num_constraints
        print(
            f"| {links} | {size} | {chosen} | {shown[0]} | {shown[1]} | {factorizations:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
