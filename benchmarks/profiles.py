"""Profile of a reduction and of the engine demo by parts of the computation.

    ./with-fenicsx python3 benchmarks/profiles.py [reduction] [engine]

Each runs in a separate process on one thread under Python's profiler, after a run that compiles all
forms and kernels. The profiler measures processor time. Its own cost increases the times of parts
with many short calls, mainly of the time loop. The time of a part is the time in its functions,
including the functions of other packages that they call.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import io
import os
import pstats
import runpy
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from children import child, report

ENGINE = Path(__file__).parents[1] / "demos" / "engine.py"
#: Parts of the work, each with words in the file paths and names of its functions.
PARTS = {
    "modules imported": ("importlib", "marshal", "create_dynamic", "open_code"),
    "kernels: loaded or compiled": ("numba", "llvmlite"),
    "mesh by gmsh": ("gmsh", "meshing.py", "create_mesh"),
    "forms: UFL, FFCx, caches": ("/ufl/", "ffcx", "jit.py", "basix", "cffi", "forms.py"),
    "assembly": (
        "fem/petsc.py",
        "fem/assemble.py",
        "dolfinx_mbd/fem/assembly.py",
        "fem/function.py",
    ),
    "factorization": ("'setUp' of 'petsc4py.PETSc.KSP'", "'setUp' of 'petsc4py.PETSc.PC'"),
    "solutions with the factors": ("'matSolve'", "'solve' of 'petsc4py"),
    "eigenvalue solver": ("slepc4py", "eigenvalues.py", "lanczos.py"),
    "products with matrices": (
        "'matMult'",
        "'mult' of 'petsc4py",
        "linalg/blocks.py",
        "'transposeMatMult'",
    ),
    "checks of the mesh": ("mesh_checks.py",),
    "reduction, the rest": ("dolfinx_mbd/reduction",),
    "stress and fields": ("dolfinx_mbd/durability/recovery", "stress_modes.py", "quantities.py"),
    "start and redundancy": ("dynamics/start", "redundancy.py"),
    "time loop": ("dolfinx_mbd/dynamics", "dolfinx_mbd/kernels", "dolfinx_mbd/body"),
    "pictures": ("matplotlib", "pyvista", "vtk", "PIL", "dolfinx_mbd/plotting"),
    "files": ("dolfinx/io", "files", "zipfile", "zlib"),
}


def part_of(function: tuple[str, int, str]) -> str | None:
    """Return the part to which a function belongs; None if several parts may use it."""
    text = f"{function[0]} {function[2]}"
    return next((part for part, words in PARTS.items() if any(w in text for w in words)), None)


def shares(profile: cProfile.Profile) -> tuple[dict[str, float], list[tuple[str, int, float]]]:
    """Return the time of each part, s, and the functions with the longest times without callees."""
    stats: dict[Any, Any] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    seconds: Counter[str] = Counter()
    for function, (_, _, own_seconds, _, callers) in stats.items():
        part = part_of(function)
        if part is not None or not callers:
            seconds[part or "other"] += own_seconds
            continue
        for caller, (_, _, seconds_for_caller, _) in callers.items():
            seconds[part_of(caller) or "other"] += seconds_for_caller
    listed = sorted(
        ((own_seconds, calls, f) for f, (_, calls, own_seconds, _, _) in stats.items()),
        reverse=True,
    )
    top = [
        (f"{Path(f[0]).name}: {f[2]}".removeprefix("~: "), n, own_seconds)
        for own_seconds, n, f in listed[:15]
    ]
    return dict(seconds.most_common()), top


def profiled(work: Any) -> dict[str, Any]:
    """Run a function under the profiler."""
    profile = cProfile.Profile(time.process_time)
    start = time.perf_counter(), time.process_time()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        profile.enable()
        work()
        profile.disable()
    parts, top = shares(profile)
    wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    return {"seconds": wall, "cpu": cpu, "parts": parts, "top": top}


def reduction() -> dict[str, Any]:
    """Profile the reduction of the rod with 33,000 degrees of freedom to 24 modes."""
    from reduction import ENDS, MODES, prepare, read, warm_up_mesh

    from dolfinx_mbd import STEEL, reduce

    with tempfile.TemporaryDirectory() as directory:
        prepare(Path(directory), ["33k"])
        path = Path(directory) / "33k.msh"
        reduce(warm_up_mesh(path), STEEL, interfaces=ENDS, num_modes=2)
        mesh = read(path)
        return profiled(lambda: reduce(mesh, STEEL, interfaces=ENDS, num_modes=MODES))


def engine() -> dict[str, Any]:
    """Profile the whole demo, including imports."""
    with contextlib.suppress(ImportError):  # its thread would disturb the profiler
        from tqdm import tqdm

        tqdm.monitor_interval = 0
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        return profiled(demo)


def demo() -> None:
    """Run the demo."""
    runpy.run_path(str(ENGINE), run_name="__main__")


WORKS = {"reduction": reduction, "engine": engine}


def main() -> None:
    """Profile and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("works", nargs="*", default=list(WORKS), help=" or ".join(WORKS))
    parser.add_argument("--child", choices=WORKS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        report(WORKS[arguments.child]())
        return
    for name in arguments.works:
        child(__file__, [name])
        profile = child(__file__, [name])
        total = sum(profile["parts"].values())
        print(f"\n{name}: {profile['seconds']:.1f} s, {profile['cpu']:.1f} s of the processor\n")
        print("| part | s | % |\n|---|---|---|")
        for part, seconds in profile["parts"].items():
            print(f"| {part} | {seconds:.2f} | {100 * seconds / total:.0f} |")
        print("\n| function | calls | s by itself |\n|---|---|---|")
        for function, calls, seconds in profile["top"]:
            print(f"| `{function}` | {calls:,} | {seconds:.2f} |")


if __name__ == "__main__":
    main()
