"""A step of a slider-crank with a rod on its mesh: solves and assemblies, and time on the clock.

    ./with-fenicsx python3 benchmarks/mesh_bodies.py [--cells 2 4] [--steps 50] [--rounds 3]

The slender rod of case W1, 8×8×300 mm of steel, has n×n quadratic hexahedra in its section and 36 n
along it. The crank turns at 150 rad/s with a step of 0.1 ms. A solve is an application of the
constant factor; an assembly is one of the elastic forces. The reduced body has the same mesh and
eight modes. The measurements on one and on two ranks and with the reduced body alternate. The
deflections on one and on two ranks must agree to 1e-9 of their size.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))  # for the models of the tests
from children import child, median, report

CASES = {"one": ("mesh", 1), "two": ("mesh", 2), "reduced": ("reduced", 1)}
STEP = 1e-4


def measure(cells: int, steps: int, kind: str) -> dict[str, Any]:
    """Return numbers and times of the steps after the first tenth."""
    from mpi4py import MPI

    import dolfinx_mbd as mbd
    from dolfinx_mbd.structures.mesh_bodies.mesh_solver import MeshSolver
    from dolfinx_mbd.structures.mesh_bodies.nodal_forces import NodalForces
    from tests.structures.mesh_bodies.models import STEEL, box, ends, slider_crank

    calls = {"solution": 0, "elastic": 0, "factorize": 0}

    def counted(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def call(*arguments: Any) -> Any:
            calls[name] += 1
            return function(*arguments)

        setattr(owner, name, call)

    for owner, name in (
        (MeshSolver, "solution"), (MeshSolver, "factorize"), (NodalForces, "elastic"),
    ):  # fmt: skip
        counted(owner, name)
    mesh, tags = box((0, -0.004, -0.004), (0.3, 0.004, 0.004), (36 * cells, cells, cells))
    model, specs = mbd.ElasticModel(mesh, STEEL, facet_tags=tags), ends(0.0, 0.3)
    rod: Any
    if kind == "mesh":
        rod = mbd.MeshBody("rod", model, specs, position=(0.15, 0, 0))
    else:
        body = mbd.reduce(model, interfaces=specs, num_modes=8).body
        rod = mbd.FlexibleBody("rod", body, position=(0.15, 0, 0))
    simulator = mbd.Simulator(slider_crank(rod), dt=STEP, t_end=STEP * steps)
    skipped = max(1, steps // 10)
    for _ in range(skipped):
        simulator.advance()
    before, start, processor = dict(calls), time.perf_counter(), time.process_time()
    for _ in range(steps - skipped):
        simulator.advance()
    count = steps - skipped
    result: dict[str, Any] = {"time": (time.perf_counter() - start) / count}
    spent = (time.process_time() - processor) / count
    result["processor"] = mesh.comm.allreduce(spent, MPI.MAX)  # of the busiest rank
    result |= {name: (calls[name] - before[name]) / count for name in calls}
    dofmap = model.displacements.dofmap
    result["dofs"] = dofmap.index_map.size_global * dofmap.index_map_bs
    if kind == "mesh":
        system, state = simulator.system, simulator.state
        u = rod.nodal_of(state.q[system.q_slices[system.body_index("rod")]])[0]
        result["place"] = u[len(u) // 2].tolist()
    return result


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", nargs="+", type=int, default=[2, 4])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        cells, steps, kind = arguments.child
        values = measure(int(cells), int(steps), kind)
        from mpi4py import MPI

        if MPI.COMM_WORLD.rank == 0:
            report(values)
        return
    print(f"time on the clock and of the busiest processor, medians of {arguments.rounds}\n")
    print(
        "| dofs | solves a step | assemblies a step | factorizations a step | step, ms "
        "| of a reduced body, ms | on two ranks, ms | one over two ranks | processor, ms "
        "| on two ranks, ms | one over two ranks |\n" + "|---" * 11 + "|"
    )
    for cells in arguments.cells:
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in CASES}
        for _ in range(arguments.rounds):
            for name, (kind, ranks) in CASES.items():
                values = [str(cells), str(arguments.steps), kind]
                runs[name].append(child(__file__, values, ranks))
        row(runs)


def row(runs: dict[str, list[dict[str, Any]]]) -> None:
    """Print a line of the table."""
    one, two = (np.array(runs[name][0]["place"]) for name in ("one", "two"))
    difference = np.abs(one - two).max() / np.abs(one).max()
    assert difference < 1e-9, f"one and two ranks differ by {difference:.1e}"
    first = runs["one"][0]
    times = {name: 1e3 * median(samples, "time") for name, samples in runs.items()}
    work = {name: 1e3 * median(samples, "processor") for name, samples in runs.items()}
    print(
        f"| {first['dofs']:,} | {first['solution']:.1f} | {first['elastic']:.1f} "
        f"| {first['factorize']:.2f} | {times['one']:.1f} | {times['reduced']:.2f} "
        f"| {times['two']:.1f} | **{times['one'] / times['two']:.2f}** "
        f"| {work['one']:.1f} | {work['two']:.1f} | **{work['one'] / work['two']:.2f}** |",
        flush=True,
    )


if __name__ == "__main__":
    main()
