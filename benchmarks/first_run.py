"""Time that the first simulation on a machine takes to compile its kernels.

    ./with-fenicsx python3 benchmarks/first_run.py [--rounds 3] [--functions 10]

A process builds the three-cylinder engine with flexible rods from a reduced body in a file and
simulates ten steps: *cold* with an empty cache of compiled kernels, *warm* with the cache that the
cold run wrote. The difference is the compile time. The table shows medians of the rounds. Other
work on the machine affects the processor time less than the time on the clock. `--functions` lists
the kernels with the longest compile times of the last cold run, without the kernels that they call.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from children import child, median, report
from engine import CRANK, DT, ENDS, PISTON, RADIUS, SPACING, SPEED, THROWS
from numba.core.event import Event, Listener, register

CASES = ("plain", "stiffening", "stiffening, gas")
NUM_STEPS = 10


def prepare(path: Path, size: float) -> None:
    """Reduce the rod, with geometric stiffening, and write it."""
    from mpi4py import MPI

    from dolfinx_mbd import STEEL, reduce
    from dolfinx_mbd.fem import build_mesh
    from dolfinx_mbd.geometry import ConnectingRod

    mesh = build_mesh(ConnectingRod(size=size), MPI.COMM_SELF)
    reduction = reduce(mesh, STEEL, interfaces=ENDS, num_modes=24)
    reduction.body.save(path)


class Costs(Listener):
    """Compile time of each function, without the functions that it calls (processor time)."""

    def __init__(self) -> None:
        self.own: dict[str, float] = {}
        self.count = 0
        self._open: list[tuple[float, float]] = []  # start, and the time of inner functions

    def on_start(self, event: Event) -> None:
        """Record the start time of the compilation of a function."""
        self._open.append((time.process_time(), 0.0))

    def on_end(self, event: Event) -> None:
        """Add the time since this start."""
        start, inner = self._open.pop()
        total = time.process_time() - start
        function = event.data["dispatcher"].py_func
        name = f"{function.__module__}.{function.__name__}".removeprefix("dolfinx_mbd.")
        self.own[name] = self.own.get(name, 0.0) + total - inner
        self.count += 1
        if self._open:
            before, sum_of_inner = self._open[-1]
            self._open[-1] = before, sum_of_inner + total


def measure(case: str, path: Path) -> dict[str, Any]:
    """Return the time of the import and of ten steps, and the compile times of the kernels."""
    start = time.perf_counter(), time.process_time()
    costs = Costs()
    register("numba:compile", costs)

    from dolfinx_mbd.analyses import simulate
    from dolfinx_mbd.body import ReducedBody
    from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine

    rod = ReducedBody.load(path)
    if case == "plain":
        rod = rod.replace(stiffening=None)
    design = EngineDesign(
        crank_radius=RADIUS,
        spacing=SPACING,
        piston_mass=PISTON,
        crank_mass=CRANK,
        throw_angles=THROWS,
    )
    engine = inline_engine(rod, design, speed=SPEED, gas="gas" in case)
    run = simulate(engine, t_end=NUM_STEPS * DT, dt=DT)
    seconds, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    return {
        "seconds": seconds,
        "cpu": cpu,
        "compiled": costs.count,
        "own": costs.own,
        "end": float(run.body("piston 2").position[-1, 0]),
    }


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=float, default=0.0043, help="largest element, m")
    parser.add_argument("--functions", type=int, default=0, help="kernels to list")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--child", nargs=2, metavar=("CASE", "PATH"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        report(measure(arguments.child[0], Path(arguments.child[1])))
        return
    cold: dict[str, list[dict[str, Any]]] = {case: [] for case in arguments.cases}
    warm: dict[str, list[dict[str, Any]]] = {case: [] for case in arguments.cases}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rod.npz"
        prepare(path, arguments.size)
        for round_number in range(arguments.rounds):
            for number, case in enumerate(cold):
                cache = str(Path(directory) / f"cache {round_number} {number}")
                for runs in (cold, warm):
                    runs[case].append(child(__file__, [case, str(path)], NUMBA_CACHE_DIR=cache))
                assert not warm[case][-1]["compiled"], "a second process compiles kernels again"
                assert warm[case][-1]["end"] == cold[case][-1]["end"]
    table(cold, warm)
    seconds = cold[arguments.cases[0]][-1]["own"]
    for name in sorted(seconds, key=lambda name: -seconds[name])[: arguments.functions]:
        print(f"{seconds[name]:.2f} s  {name}")


def table(cold: dict[str, list[dict[str, Any]]], warm: dict[str, list[dict[str, Any]]]) -> None:
    """Print the rows."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print(
        "| engine | kernels | cold, s | warm, s | compiling, s | CPU s: cold | warm | compiling |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for case in cold:
        cells = [f"{median(cold[case], 'compiled'):.0f}"]
        for key in ("seconds", "cpu"):
            first, second = median(cold[case], key), median(warm[case], key)
            cells += [f"{first:.1f}", f"{second:.1f}", f"**{first - second:.1f}**"]
        print(f"| {case} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
