"""Processor time of a step in a loop over `Simulator.step`, compared with `simulate`.

    ./with-fenicsx python3 benchmarks/stepping.py [--rounds 5] [--steps 2000]

Each round runs all variants in turn, and the table shows medians. *Outputs*: two outputs are read
after each step, by functions of a solution or by names. *Inputs*: the torque also changes in each
step. Without a torque the engine stays at rest and `simulate` needs no iterations; therefore, the
last column compares with `simulate` of the same torque as a function of time. The script stops if
the final positions of the plain loop are not bitwise those of `simulate`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from dolfinx.mesh import create_interval
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.mechanism.mechanisms import inline_engine

DT = 1e-5  # s
MOVED = "simulate, torque of time"


def torque(t: float, angle: float, rate: float) -> float:
    """Return the torque of the step that ends at the time t, N m, as in the loop of `variants`."""
    return float(1e-3 * np.sin(round(t / DT) - 1))


def pendulum(value: Any = 0.0) -> mbd.System:
    """Return a rigid pendulum with a motor."""
    ground = mbd.Ground({"pin": mbd.Frame()})
    bob = mbd.RigidBody("bob", 2.0, [0.01] * 3, (1, 0, 0), frames={"pin": mbd.Frame()})
    pin = mbd.revolute("main", ground.frame("pin"), bob.frame("pin"))
    motor = mbd.JointLoad("drive", "main", "rotation", value)
    return mbd.System([ground, bob], [pin], loads=[motor], gravity=(0, -9.81, 0))


def engine(value: Any = 0.0) -> mbd.System:
    """Return the three-cylinder engine with flexible rods, turned by a torque."""
    line = create_interval(MPI.COMM_SELF, 16, [0.0, 0.14])
    model = mbd.BeamModel(line, mbd.forms.Section.rectangle(0.03, 0.01), mbd.STEEL)
    rod = mbd.reduce_beam(model, interfaces={"big_end": 0.0, "small_end": 0.14}, num_modes=20).body
    return inline_engine(rod, torque=value, gas=False)


def variants(
    build: Callable[..., mbd.System], steps: int
) -> dict[str, Callable[[], mbd.mechanism.State]]:
    """Return functions that take `steps` steps."""
    system, with_torque = build(), build(torque)
    body = system.bodies[-1].name
    outputs = {
        "angle": lambda run: run.joint("main").rotation,
        "y": lambda run: run.sensor(body, (0, 0, 0))[:, 1],
    }
    names = ["main.rotation", f"{body}.position.y"]
    t_end = steps * DT

    def loop(read: bool, write: bool, named: bool = False) -> mbd.mechanism.State:
        requests = names if named else outputs
        simulator = mbd.Simulator(system, dt=DT, t_end=t_end, inputs=["drive"], outputs=requests)
        for k in range(steps):
            state = simulator.step({"drive": 1e-3 * np.sin(k)} if write else None)
            if read:
                _ = simulator.outputs
        return state

    return {
        "simulate": lambda: mbd.simulate(system, t_end=t_end, dt=DT).final_state,
        MOVED: lambda: mbd.simulate(with_torque, t_end=t_end, dt=DT).final_state,
        "loop": lambda: loop(False, False),
        "loop, outputs": lambda: loop(True, False),
        "loop, outputs by name": lambda: loop(True, False, True),
        "loop, outputs, inputs": lambda: loop(True, True),
        "loop, outputs by name, inputs": lambda: loop(True, True, True),
    }


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2000)
    options = parser.parse_args()
    title = "| mechanism | variant | µs a step | over `simulate` | with a torque of time |"
    print(f"{title}\n|---|---|---|---|---|")
    for build in (pendulum, engine):
        tasks = variants(build, options.steps)
        states = {name: task() for name, task in tasks.items()}  # also compiles the kernels
        assert np.array_equal(states["simulate"].q, states["loop"].q)
        times: dict[str, list[float]] = {name: [] for name in tasks}
        for _ in range(options.rounds):
            for name, task in tasks.items():
                start = time.process_time()
                task()
                times[name].append(time.process_time() - start)
        base, moved = (float(np.median(times[name])) for name in ("simulate", MOVED))
        for name, values in times.items():
            value = float(np.median(values))
            step = 1e6 * value / options.steps
            ratios = f"{value / base:.3f} | {value / moved:.3f}"
            print(f"| {build.__name__} | {name} | {step:.0f} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
