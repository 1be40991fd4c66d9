"""Memory, time and disk space of long runs of the engine that are written to a folder.

    ./with-fenicsx python3 benchmarks/long_run.py [--steps 10000 1000000] [--size 0.0043]

The script simulates the engine of `engine.py` with three flexible rods of 30 modes each and dt =
1e-5 s. *States* saves all states. *Outputs* saves the force of a bearing and the position of a
piston. *In memory* keeps the states without a folder (only the shortest run). Each measurement is a
separate process. *Peak* is the largest resident memory of the run, before any results are read.
Afterwards the folder is opened again, which checks all of its rows, and the bearing force is read
at every hundredth time; *peak after* is the largest memory including these steps.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from children import child, report
from engine import DT, inline_three, undeformed


def prepare(folder: Path, size: float) -> dict[str, Any]:
    """Reduce the rod and write it to the folder; return no values."""
    from mpi4py import MPI

    import dolfinx_mbd as mbd

    mesh = mbd.build_mesh(mbd.ConnectingRod(size=size), MPI.COMM_SELF)
    options = mbd.ReductionOptions(skin=False)
    reduction = mbd.reduce(
        mesh,
        mbd.STEEL,
        interfaces=("big_end", "small_end"),
        num_modes=24,
        stiffening=False,
        options=options,
    )
    reduction.body.save(folder / "rod.npz")
    return {}


def measure(folder: Path, what: str, steps: int) -> dict[str, Any]:
    """Simulate, open the folder again, and read a joint force."""
    from dolfinx_mbd.analyses import simulate
    from dolfinx_mbd.results import Solution

    engine = inline_three(folder / "rod.npz")
    first = undeformed(engine)
    path = None if what == "in memory" else folder / f"{what} {steps}"
    outputs = [engine.joints[0].name + ".force", "piston 1.position"] if what == "outputs" else None
    simulate(engine, t_end=5 * DT, dt=DT, start=first)
    before = _peak()
    start = time.perf_counter()
    run = simulate(engine, t_end=steps * DT, dt=DT, start=first, outputs=outputs, path=path)
    seconds, peak = time.perf_counter() - start, _peak()
    assert run.complete and len(run) == steps + 1
    start, reading = time.perf_counter(), 0.0
    size = 0
    if path is not None:
        loaded = Solution.load(path, engine)
        reading = time.perf_counter() - start
        force = loaded[::100].joint(engine.joints[0].name).force
        assert np.isfinite(force).all() and len(force) == steps // 100 + 1
        size = sum(file.stat().st_size for file in path.iterdir())
    return {
        "before": before,
        "run": peak,
        "seconds": seconds,
        "load": reading,
        "disk": size / 1e6,
        "after": _peak(),
    }


def _peak() -> float:
    """Return the largest resident memory of this process so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--size", type=float, default=0.0043, help="largest element, m")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        folder, what, steps = arguments.child
        if what == "prepare":
            report(prepare(Path(folder), arguments.size))
        else:
            report(measure(Path(folder), what, int(steps)))
        return
    steps = sorted(arguments.steps)
    with tempfile.TemporaryDirectory() as folder:
        size = ["--size", str(arguments.size)]
        child(__file__, [folder, "prepare", "0", *size])
        print(
            "| saved | steps | ms per step | MB before | peak MB | disk MB | load s | peak after |"
        )
        print("|---|---|---|---|---|---|---|---|")
        cases = [("in memory", steps[0])]
        cases += [(what, count) for what in ("states", "outputs") for count in steps]
        for what, count in cases:
            m = child(__file__, [folder, what, str(count)])
            print(
                f"| {what} | {count:,} | {1e3 * m['seconds'] / count:.3f} | {m['before']:.0f} | "
                f"{m['run']:.0f} | {m['disk']:.0f} | {m['load']:.2f} | {m['after']:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
