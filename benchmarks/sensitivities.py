"""Derivatives of a reduced body against its reduction, and of an engine run against the run.

    ./with-fenicsx python3 benchmarks/sensitivities.py [--size 0.0043] [--rounds 3] [--steps 2000]
        [--only rod stiffening engine]

The body is the connecting rod with rigid bores (`--size 0.0025`: about 105,000 displacements). The
parameters are Young's modulus, Poisson's ratio, the density and seven shapes, which stretch and
bend the rod. "Reuse" is with the matrices and factors of an open `Reducer`. "Columns" is the number
of vectors to which a factor is applied in the task. The engine has three cylinders with flexible
rods of 30 coordinates; 2000 steps are one cycle of four strokes at 6000 rpm. Its parameters are the
stiffness of the rods, the mass of the pistons, the speed, and the stiffness of seven modes; the
functional of the adjoint is a norm of the force in a crank pin. The table shows medians of the
processor time on one thread. Forms and kernels are compiled before the measurement.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import ufl
from dolfinx.mesh import create_interval
from mpi4py import MPI
from threadpoolctl import threadpool_limits

import dolfinx_mbd as mbd
from dolfinx_mbd.fem.linalg import blocks, eigenvalues
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine
from dolfinx_mbd.reduction import held_stiffness

ENDS = ["big_end", "small_end"]
MODELS = ["rod", "stiffening", "engine"]


def parameters(mesh: mbd.fem.TaggedMesh) -> list[mbd.Parameter]:
    """Return three constants of the material and seven shapes."""
    x = ufl.SpatialCoordinate(mesh.mesh)
    one, zero, length = ufl.as_ufl(1.0), 0 * x[0], 0.14
    bow = ufl.sin(np.pi * x[0] / length)
    fields = {
        "longer": (x[0], zero, zero),
        "higher": (zero, x[1], zero),
        "wider": (zero, zero, x[2]),
        "bow y": (zero, length * bow, zero),
        "bow z": (zero, zero, length * bow),
        "waist y": (zero, x[1] * bow, zero),
        "waist z": (zero, zero, x[2] * bow * one),
    }
    shapes = [
        mbd.Parameter(name, "shape", velocity=ufl.as_vector(field))
        for name, field in fields.items()
    ]
    return [mbd.Parameter(q, q) for q in ("young", "poisson", "density")] + shapes  # type: ignore


def body_tasks(size: float, stiffening: bool) -> dict[str, Callable[[], Any]]:
    """Return the reduction and its sensitivities."""
    mesh = mbd.build_mesh(mbd.ConnectingRod(size=size), MPI.COMM_SELF)
    model = mbd.ElasticModel(mesh, mbd.STEEL)

    def reduction() -> mbd.reduction.Reduction:
        return mbd.reduce(
            model, interfaces=ENDS, num_modes=20, stiffening=stiffening, solver="direct"
        )

    ten = parameters(mesh)
    reducer = mbd.reduction.Reducer(model, interfaces=ENDS, solver="direct")
    base = reducer.reduce(20, stiffening=stiffening)
    shape = ten[3:4]
    return {
        "reduction": reduction,
        "Young's modulus": lambda: mbd.sensitivities(base, ten[:1]),
        "Young's modulus, reuse": lambda: mbd.sensitivities(base, ten[:1], reducer=reducer),
        "1 shape": lambda: mbd.sensitivities(base, shape),
        "1 shape, reuse": lambda: mbd.sensitivities(base, shape, reducer=reducer),
        "10 parameters": lambda: mbd.sensitivities(base, ten),
        "10 parameters, reuse": lambda: mbd.sensitivities(base, ten, reducer=reducer),
    }


def count_columns(task: Callable[[], Any]) -> int:
    """Return the number of vectors to which a task applies a factor."""
    widths: list[int] = []

    def counted(ksp: Any, B: Any) -> Any:
        widths.append(B.shape[1])
        return blocks.solve(ksp, B)

    modules = held_stiffness, eigenvalues
    for module in modules:
        vars(module)["solve"] = counted
    task()
    for module in modules:
        vars(module)["solve"] = blocks.solve
    return sum(widths)


def engine_tasks(steps: int) -> dict[str, Callable[[], Any]]:
    """Return an engine run and its sensitivities."""
    line = create_interval(MPI.COMM_SELF, 16, [0.0, 0.14])
    model = mbd.BeamModel(line, mbd.forms.Section.rectangle(0.03, 0.01), mbd.STEEL)
    rod = mbd.reduce_beam(model, interfaces={"big_end": 0.0, "small_end": 0.14}, num_modes=24).body

    modes = {f"mode {k}": 1.0 for k in range(1, 8)}  # factors of the stiffness of single modes
    three, dt = {"stiffness": 1.0, "piston": 0.4, "speed": 1.0}, 1e-5
    ten = three | modes

    def build(p: Mapping[str, float]) -> mbd.System:
        p = ten | dict(p)
        stiffness = p["stiffness"] * rod.stiffness
        for k, name in enumerate(modes):
            stiffness[k, k] *= p[name]
        design = EngineDesign(crank_radius=0.04, piston_mass=p["piston"])
        return inline_engine(rod.replace(stiffness=stiffness), design, speed=628.3 * p["speed"])

    peak = mbd.design.Functional("crank pin 1.force.x", "norm", order=16)
    options = {"t_end": steps * dt, "dt": dt}
    one, few = {"stiffness": 1.0}, max(1, round(steps**0.5))  # parameters; number of checkpoints
    return {
        "run": lambda: mbd.simulate(build(ten), **options),
        "1 parameter": lambda: mbd.run_sensitivities(build, one, **options),
        "3 parameters": lambda: mbd.run_sensitivities(build, three, **options),
        "10 parameters": lambda: mbd.run_sensitivities(build, ten, **options),
        "adjoint, 1 parameter": lambda: mbd.design.run_gradient(build, one, peak, **options),
        "adjoint, 10 parameters": lambda: mbd.design.run_gradient(build, ten, peak, **options),
        f"adjoint, 10 parameters, {few} checkpoints": lambda: mbd.design.run_gradient(
            build, ten, peak, checkpoints=few, **options
        ),
    }


def measure(title: str, tasks: Mapping[str, Callable[[], Any]], rounds: int) -> None:
    """Run the tasks in turn, and print the median of each and its ratio to the first task."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    columns = {name: count_columns(task) for name, task in tasks.items()}  # compiles forms, too
    for _ in range(rounds):
        for name, task in tasks.items():
            start = time.process_time()
            task()
            times[name].append(time.process_time() - start)
    base = float(np.median(next(iter(times.values()))))
    for name, values in times.items():
        value = float(np.median(values))
        row = f"| {title} | {name} | {value:.2f} | {value / base:.2f} |"
        print(f"{row} {columns[name] or '–'} |", flush=True)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=0.0043)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--only", nargs="+", choices=MODELS, default=MODELS)
    options = parser.parse_args()
    print("| model | task | s | relative to the first task | columns |\n|---|---|---|---|---|")
    with threadpool_limits(1):
        for name in options.only:
            if name == "engine":
                measure(name, engine_tasks(options.steps), options.rounds)
                continue
            title = "rod with stiffening" if name == "stiffening" else "rod"
            measure(title, body_tasks(options.size, name == "stiffening"), options.rounds)


if __name__ == "__main__":
    main()
