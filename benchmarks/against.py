"""Compare the speed of this checkout with a checkout of another version.

    git worktree add ../other 1b8dbd2
    ./with-fenicsx python3 benchmarks/against.py ../other [--pairs 5] [engine contact ...]

Each task runs in turn in both versions, each time in a new process, with one thread. The table
shows the median of the ratios of processor times: a ratio above 1 means that this checkout is
slower. Compiled kernels are cached, except in the task `compilation`, which measures the first run
with an empty cache.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]

START = """
import sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from mpi4py import MPI
import dolfinx_mbd as mbd
from dolfinx_mbd import mechanisms, bearings

def measured(run, repeat=1):
    run()
    begin = time.process_time()
    for _ in range(repeat):
        run()
    print(time.process_time() - begin)

def rod(size):
    mesh = mbd.build_mesh(mbd.ConnectingRod(size=size), MPI.COMM_SELF)
    return mesh, {"interfaces": ["big_end", "small_end"], "num_modes": 10}

def engine_body():
    mesh, options = rod(0.02)
    return mbd.reduce(mesh, mbd.STEEL, **options).body
"""

TASKS = {
    "engine": """
engine = mechanisms.inline_engine(engine_body(), speed=300.0)
measured(lambda: mbd.simulate(engine, t_end=0.02, dt=1e-5))
""",
    "contact": """
law = mbd.ContactLaw(1e9, damping=0.2, friction=0.1)
gap = mbd.Clearance(radial=2e-4, law=law, radius=0.01)
ground = mbd.Ground({"bearing": mbd.Frame()})
ends = {"left": mbd.Frame((-0.2, 0, 0)), "right": mbd.Frame((0.2, 0, 0))}
bars = [
    mbd.RigidBody.box(f"bar {k}", (0.4, 0.02, 0.02), density=7850, frames=ends, position=(x, 0, 0))
    for k, x in enumerate((0.2, 0.6))
]
pins = [
    mbd.revolute("upper", ground.frame("bearing"), bars[0].frame("left")),
    mbd.revolute("lower", bars[0].frame("right"), bars[1].frame("left"), clearance=gap),
]
system = mbd.System([ground, *bars], pins, gravity=(0, -9.81, 0))
measured(lambda: mbd.simulate(system, t_end=0.2, dt=2e-5))
""",
    "film": """
ground = mbd.Ground({"bore": mbd.Frame()})
journal = {"journal": mbd.Frame()}
shaft = mbd.RigidBody("shaft", 2.0, [1e-3, 1e-3, 2e-3], frames=journal, omega=(0, 0, 300))
ends = ground.frame("bore"), shaft.frame("journal")
oil = bearings.Oil(0.02)
# radius, length and clearance in m, viscosity in Pa s
film = bearings.FiniteBearing("film", *ends, 0.02, 0.02, 4e-5, oil, shape=(48, 8))
planar = mbd.planar("plane", *ends)
system = mbd.System([ground, shaft], [planar], loads=[film], gravity=(0, -9.81, 0))
measured(lambda: mbd.simulate(system, t_end=4e-3, dt=2e-5))
""",
    "reduction": """
mesh, options = rod(0.004)
measured(lambda: mbd.reduce(mesh, mbd.STEEL, **options))
""",
    "derivative": """
mesh, options = rod(0.008)
reduction = mbd.reduce(mesh, mbd.STEEL, **options)
parameters = [mbd.Parameter("E", "young"), mbd.Parameter("rho", "density")]
measured(lambda: mbd.sensitivities(reduction, parameters))
""",
    "compilation": """
body = engine_body()
begin = time.process_time()
mbd.simulate(mechanisms.inline_engine(body, speed=300.0), t_end=2e-5, dt=1e-5)
print(time.process_time() - begin)
""",
}


def processor_time(folder: Path, task: str, caches: Path) -> float:
    """Return the processor time of a task in seconds."""
    with tempfile.TemporaryDirectory() as empty:
        cache = empty if task == "compilation" else str(caches)
        settings = {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "NUMBA_CACHE_DIR": cache}
        run = subprocess.run(
            [sys.executable, "-c", START + TASKS[task]],
            cwd=folder, env=os.environ | settings, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if run.returncode:
        raise SystemExit(f"{task} fails in {folder}:\n{run.stderr[-2000:]}")
    return float(run.stdout.split()[-1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", help="folder of the other version")
    parser.add_argument("tasks", nargs="*", help=f"any of {', '.join(TASKS)}")
    parser.add_argument("--pairs", type=int, default=5, help="number of runs of each version")
    options = parser.parse_args()
    other = Path(options.other).resolve()
    if not (other / "dolfinx_mbd").is_dir():
        parser.error(f"{other} is not a checkout of this project")
    print(f"{'task':<12} {'this, s':>9} {'other, s':>9} {'ratio':>7}   range")
    with tempfile.TemporaryDirectory() as folder:
        caches = Path(folder) / "this", Path(folder) / "other"
        for task in options.tasks or TASKS:
            pairs = []
            for _ in range(options.pairs):
                this_time = processor_time(ROOT, task, caches[0])
                pairs.append((this_time, processor_time(other, task, caches[1])))
            times = np.array(pairs)
            ratios = times[:, 0] / times[:, 1]
            this_median, other_median = np.median(times, axis=0)
            print(
                f"{task:<12} {this_median:9.3f} {other_median:9.3f} {np.median(ratios):7.3f}   "
                f"{ratios.min():.3f} to {ratios.max():.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
