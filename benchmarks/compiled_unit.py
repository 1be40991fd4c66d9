"""Time of a step of the three-cylinder engine as an FMU in C, compared with `Simulator`.

    ./with-fenicsx python3 benchmarks/compiled_unit.py [--size 0.0043] [--steps 2000] [--rounds 3]

The engine is that of `engine.py`: 6000 rpm, dt = 1e-5 s, 30 modes per rod, no gas force. Unlike in
that script, the rods start with their quasi-static deformation. FMPy runs the FMU with
communication steps of 1e-3 s. Both run in turn on one thread; the table shows the medians. "Real
time" is the time of a step divided by dt, and "off" the largest difference between the positions of
a piston along its cylinder, divided by the crank radius.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
from engine import DT, ENDS, RADIUS, inline_three
from fmpy.fmi2 import FMU2Slave
from mpi4py import MPI

from dolfinx_mbd import STEEL, ReductionOptions, Simulator, reduce
from dolfinx_mbd.fem import build_mesh
from dolfinx_mbd.geometry import ConnectingRod
from dolfinx_mbd.io.export.compiled import export_compiled_fmu

OUTPUT = "piston 2.position.x"
STEPS_PER_COMMUNICATION = 100  # time steps between two communication points


def simulator(rod_file: Path) -> Simulator:
    """Return a simulator of the engine."""
    return Simulator(inline_three(rod_file), dt=DT, outputs=[OUTPUT])


def run_package(model: Simulator, steps: int) -> tuple[float, list[float]]:
    """Return the time of a step, s, and the output after every 100 steps."""
    values, start = [], time.perf_counter()
    for k in range(steps):
        model.step()
        if (k + 1) % STEPS_PER_COMMUNICATION == 0:
            values.extend(model.outputs.values())
    return (time.perf_counter() - start) / steps, values


def run_fmu(folder: str, steps: int) -> tuple[float, list[float]]:
    """Return the time of a step of the FMU, s, and the output after every 100 steps."""
    description: Any = fmpy.read_model_description(folder)
    name = description.coSimulation.modelIdentifier
    fmu = FMU2Slave(
        guid=description.guid, unzipDirectory=folder, instanceName="engine", modelIdentifier=name
    )
    fmu.instantiate()
    fmu.setupExperiment()
    fmu.enterInitializationMode()
    fmu.exitInitializationMode()
    values, start = [], time.perf_counter()
    interval = STEPS_PER_COMMUNICATION * DT
    for k in range(steps // STEPS_PER_COMMUNICATION):
        fmu.doStep(k * interval, interval)
        values.extend(fmu.getReal([0]))
    seconds = time.perf_counter() - start
    fmu.terminate()
    fmu.freeInstance()
    return seconds / steps, values


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=float, default=0.0043, help="largest element, m")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        rod_file = Path(directory) / "rod.npz"
        mesh = build_mesh(ConnectingRod(size=arguments.size), MPI.COMM_SELF)
        options = ReductionOptions(skin=False)
        reduced = reduce(
            mesh, STEEL, interfaces=ENDS, num_modes=24, stiffening=False, options=options
        )
        reduced.body.save(rod_file)
        path = export_compiled_fmu(simulator(rod_file), Path(directory) / "engine.fmu")
        folder = fmpy.extract(str(path))
        times: dict[str, list[float]] = {"Simulator": [], "FMU in C": []}
        off = 0.0
        for _ in range(arguments.rounds):
            model = simulator(rod_file)
            package_time, expected = run_package(model, arguments.steps)
            fmu_time, values = run_fmu(folder, arguments.steps)
            times["Simulator"].append(package_time)
            times["FMU in C"].append(fmu_time)
            off = max(off, float(np.abs(np.subtract(values, expected)).max()) / RADIUS)
            counts = model.stepper
        per_step = counts.iterations / arguments.steps, counts.factorizations / arguments.steps
    reference = statistics.median(times["Simulator"])
    print("| program | ms a step (runs) | ratio | real time |")
    print("|---|---|---|---|")
    for program, samples in times.items():
        median = statistics.median(samples)
        runs = ", ".join(f"{1e3 * sample:.3f}" for sample in samples)
        ratio, over_real_time = median / reference, median / DT
        print(f"| {program} | {1e3 * median:.3f} ({runs}) | {ratio:.2f} | {over_real_time:.1f} |")
    print(f"\n{per_step[0]:.2f} iterations and {per_step[1]:.3f} factorizations a step; ", end="")
    print(f"off {off:.1e}, FMU of {path.name}")


if __name__ == "__main__":
    main()
