"""Throughput of a parameter study of the three-cylinder engine: worker processes and a plain loop.

    ./with-fenicsx python3 benchmarks/sweep.py [--cases 12] [--steps 4800] [--rounds 3]

The cases are simulations of the engine at 4800 to 7200 rpm with dt = 1e-5 s and three flexible
rods; one takes about 2 s. *Loop* calls the function in a plain loop on one BLAS thread; *loop,
threads* uses the default number of BLAS threads. Each measurement is a separate process, and each
round runs all programs in turn. The table shows medians of the time on the clock and of the
processor time of all processes. The peak forces of all programs on one thread must be bitwise
equal. A study of two empty cases measures the cost of the worker processes; a study of many empty
cases measures the cost per case.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from children import THREADS, child, median, report

PROGRAMS = ("loop", "loop, threads", "1 worker", "2 workers")
EMPTY = 200  # number of cases without work


def engine(speed: float, steps: int, rod: Any) -> dict[str, float]:
    """Return the peak forces of a simulation of the engine in two pins, N."""
    from dolfinx_mbd.analyses import simulate
    from dolfinx_mbd.mechanism.mechanisms import inline_engine

    run = simulate(inline_engine(rod, speed=speed), t_end=1e-5 * steps, dt=1e-5)
    pins = ("crank pin 1", "piston pin 1")
    return {pin: float(np.linalg.norm(run.joint(pin).force, axis=1).max()) for pin in pins}


def nothing(speed: float, rod: Any) -> float:
    """Return the speed: a case without work."""
    return speed


def measure(program: str, directory: str, cases: int, steps: int) -> dict[str, Any]:
    """Measure one program: its time, the processor time and the peak forces."""
    from dolfinx_mbd import ReducedBody, sweep

    rod = ReducedBody.load(Path(directory) / "rod.npz")
    speeds = list(np.linspace(500.0, 750.0, cases))
    fixed = {"rod": rod, "steps": steps}
    engine(speeds[0], 5, rod)  # (compile or load the kernels; each worker loads them itself)
    start, before = time.perf_counter(), processor()
    if program.startswith("loop"):
        peaks = [engine(speed, **fixed)["crank pin 1"] for speed in speeds]
    else:
        workers = int(program.split()[0])
        study = sweep(engine, {"speed": speeds}, fixed=fixed, workers=workers)
        peaks = study["crank pin 1"].values.tolist()
    seconds, cpu = time.perf_counter() - start, processor() - before
    return {"s": seconds, "cpu": cpu, "peaks": peaks}


def overhead(directory: str) -> dict[str, Any]:
    """Return the cost of worker processes, of empty cases and of sending the body, s and MB."""
    import pickle

    from dolfinx_mbd import ReducedBody, sweep

    rod = ReducedBody.load(Path(directory) / "rod.npz")
    times = {}
    for name, cases, workers in (
        ("table", 1, 1),
        ("pool of 2", 2, 2),
        ("cases", EMPTY, 2),
        ("cases here", EMPTY, 1),
    ):
        start = time.perf_counter()
        speeds = list(np.linspace(500.0, 750.0, cases))
        sweep(nothing, {"speed": speeds}, fixed={"rod": rod}, workers=workers)
        times[name] = time.perf_counter() - start
    start = time.perf_counter()
    data = pickle.dumps(rod, pickle.HIGHEST_PROTOCOL)
    middle = time.perf_counter()
    pickle.loads(data)
    times |= {"dumps": middle - start, "loads": time.perf_counter() - middle}
    return times | {"megabytes": len(data) / 1e6}


def processor() -> float:
    """Return the processor time of this process and of the children that have ended, s."""
    this_process, children = map(
        resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return sum(usage.ru_utime + usage.ru_stime for usage in (this_process, children))


def prepare(directory: Path, size: float) -> str:
    """Reduce the rod, write it, and return the versions of the programs."""
    import dolfinx
    import scipy
    from mpi4py import MPI

    import dolfinx_mbd as mbd

    mesh = mbd.build_mesh(mbd.ConnectingRod(size=size), MPI.COMM_SELF)
    ends = ["big_end", "small_end"]
    rod = mbd.reduce(mesh, mbd.ALUMINIUM_7075, interfaces=ends, num_modes=24).body
    rod.save(directory / "rod.npz")
    libraries = Path("/proc/self/maps").read_text().split()
    blas = sorted({Path(name).name for name in libraries if "openblas" in name and ".so" in name})
    return (
        f"{rod.num_modes} modes a rod; DOLFINx {dolfinx.__version__}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, Python {platform.python_version()}, {', '.join(blas)}, "
        f"{len(os.sched_getaffinity(0))} cores"
    )


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=12)
    parser.add_argument("--steps", type=int, default=4800)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=float, default=0.006, help="largest element, m")
    parser.add_argument("--child", nargs=2, metavar=("PROGRAM", "PATH"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        program, directory = arguments.child
        if program == "overhead":
            report(overhead(directory))
        else:
            report(measure(program, directory, arguments.cases, arguments.steps))
        return
    runs: dict[str, list[dict[str, Any]]] = {program: [] for program in (*PROGRAMS, "overhead")}
    sizes = ["--cases", str(arguments.cases), "--steps", str(arguments.steps)]
    with tempfile.TemporaryDirectory() as directory:
        versions = prepare(Path(directory), arguments.size)
        for _ in range(arguments.rounds):
            for program, samples in runs.items():
                count = str(os.cpu_count())
                threads = dict.fromkeys(THREADS, count) if program == "loop, threads" else {}
                samples.append(child(__file__, [program, directory, *sizes], **threads))
    print(f"{arguments.cases} runs of {arguments.steps} steps; {versions}\n")
    table(runs, arguments.cases)


def table(runs: dict[str, list[dict[str, Any]]], cases: int) -> None:
    """Print the rows, and check that all programs have the same results."""
    print("| program | s (rounds) | runs a second | over the loop | CPU s | ratio |")
    print("|---|---|---|---|---|---|")
    loop = runs["loop"]
    for program in PROGRAMS:
        samples = runs[program]
        seconds, cpu = median(samples, "s"), median(samples, "cpu")
        every = ", ".join(f"{run['s']:.2f}" for run in samples)
        speedup, work = median(loop, "s") / seconds, cpu / median(loop, "cpu")
        print(
            f"| {program} | {seconds:.2f} ({every}) | {cases / seconds:.2f} "
            f"| **{speedup:.2f}** | {cpu:.2f} | {work:.2f} |"
        )
        if program != "loop, threads":
            assert all(run["peaks"] == loop[0]["peaks"] for run in samples), (
                f"{program}: other numbers"
            )
    samples = runs["overhead"]
    # ms per case in two workers, with their start, and in this process
    pooled, local = (1e3 * median(samples, key) / EMPTY for key in ("cases", "cases here"))
    start = median(samples, "pool of 2")
    print(
        f"\nTwo worker processes take {start:.2f} s to start and end, and the first table "
        f"{median(samples, 'table'):.2f} s (the import of xarray). A case costs "
        f"{pooled - 1e3 * start / EMPTY:.2f} ms in a worker process and {local:.2f} ms in this "
        f"process. The body has {samples[0]['megabytes']:.1f} MB: "
        f"{1e3 * median(samples, 'dumps'):.1f} ms to pack once, "
        f"{1e3 * median(samples, 'loads'):.1f} ms to unpack in each worker."
    )


if __name__ == "__main__":
    main()
