"""Throughput of a parameter study of the three-cylinder engine: worker processes and a plain loop.

    ./with-fenicsx python3 benchmarks/sweep.py [--cases 12] [--steps 400] [--rounds 3]

The cases are engine runs at 4800 to 7200 rpm, dt = 1e-5 s, three flexible rods of one reduced body,
which is sent to each worker. *Loop*: the function called in a plain loop, on one BLAS thread;
*loop, threads*: as many as BLAS takes by itself. Each measurement is a process of its own, all take
turns in each round; the table shows medians, on the clock and of all processors together. Peak
forces of all programs on one thread are compared to the bit. What a pool costs is a study in which
nothing is done; what a case costs beside its work, one of many such cases.
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
EMPTY = 200  # cases in which nothing is done


def engine(speed: float, steps: int, rod: Any) -> dict[str, float]:
    """Peak forces of an engine run."""
    from dolfinx_mbd.mechanisms.engines import inline_engine
    from dolfinx_mbd.multibody import simulate

    run = simulate(inline_engine(rod, speed=speed), t_end=1e-5 * steps, dt=1e-5)
    pins = ("crank pin 1", "piston pin 1")
    return {pin: float(np.linalg.norm(run.joint(pin).force, axis=1).max()) for pin in pins}


def nothing(speed: float, rod: Any) -> float:
    """What is left of a case without its work."""
    return speed


def measure(program: str, directory: str, cases: int, steps: int) -> dict[str, Any]:
    """One study in this process and its workers."""
    from dolfinx_mbd import ReducedBody, sweep

    rod = ReducedBody.load(Path(directory) / "rod.npz")
    speeds = list(np.linspace(500.0, 750.0, cases))
    fixed = {"rod": rod, "steps": steps}
    engine(speeds[0], 5, rod)  # compiled, or loaded from its cache; workers do that for themselves
    start, before = time.perf_counter(), processor()
    if program.startswith("loop"):
        peaks = [engine(speed, **fixed)["crank pin 1"] for speed in speeds]
    else:
        workers = int(program.split()[0])
        study = sweep(engine, {"speed": speeds}, fixed=fixed, workers=workers)
        peaks = study["crank pin 1"].tolist()
    seconds, cpu = time.perf_counter() - start, processor() - before
    return {"s": seconds, "cpu": cpu, "peaks": peaks}


def overhead(directory: str) -> dict[str, Any]:
    """What a pool costs to start, a case to hand out, and the body to send."""
    import pickle

    from dolfinx_mbd import ReducedBody, sweep

    rod = ReducedBody.load(Path(directory) / "rod.npz")
    times = {}
    for name, cases, workers in (
        ("pool of 1", 2, None),
        ("pool of 2", 2, 2),
        ("cases", EMPTY, 2),
        ("cases here", EMPTY, 1),
    ):
        start = time.perf_counter()
        if name == "pool of 1":  # a study of one worker is done here: the pool itself
            alone(rod)
        else:
            speeds = list(np.linspace(500.0, 750.0, cases))
            sweep(nothing, {"speed": speeds}, fixed={"rod": rod}, workers=workers)
        times[name] = time.perf_counter() - start
    start = time.perf_counter()
    data = pickle.dumps(rod, pickle.HIGHEST_PROTOCOL)
    middle = time.perf_counter()
    pickle.loads(data)
    times |= {"dumps": middle - start, "loads": time.perf_counter() - middle}
    return times | {"megabytes": len(data) / 1e6}


def alone(rod: Any) -> None:
    """A pool of one worker that does nothing."""
    from dolfinx_mbd.multibody.studies.outcomes import Call
    from dolfinx_mbd.multibody.studies.plan import Plan
    from dolfinx_mbd.multibody.studies.pool import in_workers, packed

    plan = Plan.of({"speed": [500.0, 600.0]}, "product")
    data = packed(Call(nothing, {"rod": rod}, plan))
    assert len(list(in_workers(data, [0, 1], 1))) == 2


def processor() -> float:
    """Processor time of this process and of the children that have ended, s."""
    own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in (own, children))


def prepare(directory: Path, size: float) -> str:
    """Reduce the rod and write it; what was used."""
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
    parser.add_argument("--steps", type=int, default=400)
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
            for program, own in runs.items():
                count = str(os.cpu_count())
                free = dict.fromkeys(THREADS, count) if program == "loop, threads" else {}
                own.append(child(__file__, [program, directory, *sizes], **free))
    print(f"{arguments.cases} runs of {arguments.steps} steps; {versions}\n")
    table(runs, arguments.cases)


def table(runs: dict[str, list[dict[str, Any]]], cases: int) -> None:
    """The rows, and the check that all did the same."""
    print("| program | s (rounds) | runs a second | over the loop | CPU s | ratio |")
    print("|---|---|---|---|---|---|")
    loop = runs["loop"]
    for program in PROGRAMS:
        own = runs[program]
        seconds, cpu = median(own, "s"), median(own, "cpu")
        every = ", ".join(f"{run['s']:.2f}" for run in own)
        speedup, work = median(loop, "s") / seconds, cpu / median(loop, "cpu")
        print(
            f"| {program} | {seconds:.2f} ({every}) | {cases / seconds:.2f} "
            f"| **{speedup:.2f}** | {cpu:.2f} | {work:.2f} |"
        )
        if program != "loop, threads":
            assert all(run["peaks"] == loop[0]["peaks"] for run in own), f"{program}: other numbers"
    own = runs["overhead"]
    each, here = (1e3 * median(own, key) / EMPTY for key in ("cases", "cases here"))
    start = median(own, "pool of 2")
    print(
        f"\nA pool of one worker takes {median(own, 'pool of 1'):.2f} s to start and end, of two "
        f"{start:.2f} s. A case costs {each - 1e3 * start / EMPTY:.2f} ms to hand to a worker and "
        f"back, {here:.2f} ms in this process. The body is {own[0]['megabytes']:.1f} MB: "
        f"{1e3 * median(own, 'dumps'):.1f} ms to pack once, {1e3 * median(own, 'loads'):.1f} ms to "
        "unpack in each worker."
    )


if __name__ == "__main__":
    main()
