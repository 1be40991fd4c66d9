"""Full-order prescribed motion: time of a step relative to one solve with the constant factor.

    ./with-fenicsx python3 benchmarks/transient.py [--sizes 33k 105k] [--rounds 3] [--steps 40]

Each measurement is a separate process on one thread; the table shows medians. The angular velocity
and the pin forces of the rod are harmonic functions with the magnitudes of the engine at 6000 rpm;
dt is 1e-5 s, and geometric stiffening is included. The time of a step includes recording two
interfaces and a point. One solve with the same factor is timed after the loop. The script counts
the solves of each step.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from children import child, median, report
from operators import seconds, versions
from reduction import ENDS, SIZES, prepare, read

CRANK, LENGTH, SPEED, DT = 0.040, 0.137, 628.318, 1e-5  # crank radius, rod, m; crank, rad/s; s


def engine_motion() -> Any:
    """Return a harmonic spin and harmonic pin forces with the magnitudes of the engine."""
    from dolfinx_mbd.structures.prescribed_motion.motion import PrescribedMotion

    ratio = CRANK / LENGTH * SPEED

    def omega(t: float) -> list[float]:
        return [0.0, 0.0, -ratio * np.cos(SPEED * t)]

    def alpha(t: float) -> list[float]:
        return [0.0, 0.0, ratio * SPEED * np.sin(SPEED * t)]

    def pull(t: float) -> list[float]:
        return [2e4 * np.cos(SPEED * t), 2e3 * np.sin(SPEED * t), 0.0, 0.0, 0.0, 0.0]

    def hold(t: float) -> list[float]:
        return [-value for value in pull(t)]

    return PrescribedMotion(omega, alpha, wrenches={"big_end": hold, "small_end": pull})


def measure(path: Path, steps: int) -> dict[str, Any]:
    """Return the times and the number of solves for one mesh."""
    from dolfinx_mbd import ALUMINIUM_7075 as material
    from dolfinx_mbd import ElasticModel
    from dolfinx_mbd.fem.assembly import elastic_problem
    from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
    from dolfinx_mbd.fem.linalg.blocks import multiply
    from dolfinx_mbd.structures.prescribed_motion.full_order import FullOrder
    from dolfinx_mbd.structures.prescribed_motion.observation import Observer
    from dolfinx_mbd.structures.prescribed_motion.time_stepping import MotionStepper, start_state

    mesh = read(path)
    problem = elastic_problem(ElasticModel(mesh, material))
    interfaces = mesh_interfaces(mesh, problem.space, ENDS)
    began = time.perf_counter()
    equations = FullOrder(
        problem, interfaces, (), engine_motion(), stiffening=True, prefix="benchmark_"
    )
    observer = Observer(problem, interfaces, {"middle": (LENGTH / 2, 0.0, 0.0)}, [])
    state = start_state(equations, "quasi-static", 0.0, DT)
    equations.end_of_start()
    stepper = MotionStepper(equations, DT)
    prepared = time.perf_counter() - began
    times = []
    for k in range(1, steps + 1):
        began = time.perf_counter()
        state = stepper.step(state)
        observer(k, state, steps, 1)
        times.append(time.perf_counter() - began)
    x = state.u
    return {
        "step": float(np.median(times)),
        "solve": seconds(lambda: equations.solve(x), 11),
        "K": seconds(lambda: multiply(problem.stiffness, x[:, None]), 11),
        "solves": stepper.solves / stepper.steps,
        "most": stepper.most_solves,
        "prepared": prepared,
        "dofs": problem.num_dofs,
        "versions": versions(),
    }


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["33k", "105k"], choices=SIZES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--child", nargs=2, metavar=("MESH", "STEPS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        report(measure(Path(arguments.child[0]), int(arguments.child[1])))
        return
    with tempfile.TemporaryDirectory() as directory:
        prepare(Path(directory), arguments.sizes)
        for number, size in enumerate(arguments.sizes):
            path = str(Path(directory) / f"{size}.msh")
            runs = [child(__file__, [path, str(arguments.steps)]) for _ in range(arguments.rounds)]
            if not number:
                print(f"{runs[0]['versions']}; medians of {arguments.rounds} runs\n")
                print(
                    "| dofs | step, ms | one solve, ms | step over solve | solves a step (most) "
                    "| K u, ms | start and factors, s | peak GB |"
                )
                print("|---|---|---|---|---|---|---|---|")
            print(row(runs), flush=True)


def row(runs: list[dict[str, Any]]) -> str:
    """Return one line of the table."""
    values = {key: median(runs, key) for key in runs[0] if key != "versions"}
    most = max(run["most"] for run in runs)
    return (
        f"| {runs[0]['dofs']:,} | {1e3 * values['step']:.1f} | {1e3 * values['solve']:.1f} "
        f"| **{values['step'] / values['solve']:.2f}** | **{values['solves']:.2f}** ({most}) "
        f"| {1e3 * values['K']:.2f} | {values['prepared']:.1f} | {values['peak']:.2f} |"
    )


if __name__ == "__main__":
    main()
