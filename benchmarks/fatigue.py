"""Critical-plane damage of many surface points over a long run: seconds and peak memory.

    ./with-fenicsx python3 benchmarks/fatigue.py [--points 20000] [--instants 4000] [--modes 30]

The stress modes are random, and each elastic coordinate is a mean value plus three sines of random
frequencies, which is harder than a periodic run: each history has hundreds of turning points. Each
measurement is a separate run on one or two ranks, with one thread each and compiled kernels. The
rows differ in the number of planes of the first search, in the stress, and in the number of
instants; the peak memory is the sum over the ranks, and "start" is the peak memory before the call.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from children import child, report


def measure(points: int, instants: int, modes: int, planes: int, criterion: str) -> None:
    """Compute the damage on all ranks, and print seconds, processor time and memory on rank 0."""
    from mpi4py import MPI

    import dolfinx_mbd as mbd
    from dolfinx_mbd.body import Interface, StressModes

    comm, rng = MPI.COMM_WORLD, np.random.default_rng(0)
    stress = StressModes(rng.random((points, 3)), 2e7 * rng.normal(size=(6, points, modes)))
    body = mbd.ReducedBody.from_arrays(
        total_mass=1.0,
        first_moments=np.zeros((modes + 1, 3)),
        second_moments=np.eye(modes + 1)[:, :, None, None] * np.eye(3),
        stiffness=np.eye(modes),
        interfaces=(Interface("a", "rigid", np.zeros(3), np.eye(3), np.zeros((6, modes))),),
        stress=stress,
    )
    t = np.linspace(0.0, 1.0, instants)
    phases = rng.uniform(0, 2 * np.pi, (3, modes))
    speeds = 2 * np.pi * rng.uniform(5.0, 0.1 * instants, (3, modes))
    eta = 0.5 + np.sin(t[:, None, None] * speeds + phases).sum(axis=1)
    runs = [(SimpleNamespace(time=t, eta=eta), 1.0)]
    options = {"material": "AISI 4340", "comm": comm, "criterion": criterion, "planes": planes}
    two_points = body.replace(stress=StressModes(stress.points[:2], stress.stress[:, :2]))
    mbd.fatigue(two_points, runs, **options)  # loads the kernels
    before = comm.allreduce(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    comm.Barrier()
    start, cpu = time.perf_counter(), time.process_time()
    result = mbd.fatigue(body, runs, **options)
    comm.Barrier()
    seconds, cpu = time.perf_counter() - start, comm.allreduce(time.process_time() - cpu)
    peak = comm.allreduce(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    if comm.rank == 0:
        cycles, least = float(result.cycles.mean()), float(result.hours.min())
        sizes = {"start": before / 1024**2, "memory": peak / 1024**2}  # GB from KiB
        report({"s": seconds, "cpu": cpu, "cycles": cycles, "least": least, **sizes})


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=20_000)
    parser.add_argument("--instants", type=int, default=4000)
    parser.add_argument("--modes", type=int, default=30)
    parser.add_argument("--child", nargs=2, metavar=("PLANES", "CRITERION"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        planes, criterion = options.child
        measure(options.points, options.instants, options.modes, int(planes), criterion)
        return
    print(
        "| points | instants | planes | stress | ranks | s | CPU s | start GB | peak GB "
        "| cycles per point | least life, h |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    n, nt = options.points, options.instants
    rows = [(n, nt, 36, "normal", 2), (n, nt, 36, "normal", 1), (n, nt, 36, "shear", 2)]
    rows += [(n, nt, 200, "normal", 2), (n, nt, 200, "von Mises", 2)]
    rows += [(n // 4, 4 * nt, 36, "normal", 2)]
    for points, instants, planes, criterion, ranks in rows:
        words = [str(planes), criterion, "--points", str(points), "--instants", str(instants)]
        run = child(__file__, [*words, "--modes", str(options.modes)], ranks)
        print(
            f"| {points:,} | {instants:,} | {planes} | {criterion} | {ranks} | **{run['s']:.1f}** "
            f"| {run['cpu']:.1f} | {run['start']:.2f} | {run['memory']:.2f} | {run['cycles']:.0f} "
            f"| {run['least']:.3g} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
