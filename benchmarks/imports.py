"""Time of the import of the package, compared with the imports of its dependencies.

    ./with-fenicsx python3 benchmarks/imports.py [--rounds 7]

Each measurement is a separate process; each round runs all statements in turn. All files are
compiled to bytecode and in the cache of the system, as in a second run of a program. Names of
`dolfinx_mbd` are loaded when they are first used; some rows therefore also use a name.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from children import child, report

DOLFINX = "import dolfinx"
SOLVERS = "import dolfinx.fem.petsc, slepc4py.SLEPc"
HELP = """
try:
    main(["--help"])
except SystemExit:
    pass
"""
ROWS = {
    "import dolfinx_mbd": (f"{DOLFINX}\nimport dolfinx_mbd", DOLFINX),
    "from dolfinx_mbd import reduce": (f"{SOLVERS}\nfrom dolfinx_mbd import reduce", SOLVERS),
    "from dolfinx_mbd import simulate": ("from dolfinx_mbd import simulate", "import numpy"),
    "import dolfinx_mbd.body": ("import dolfinx_mbd.body", "import numpy"),
    "import dolfinx_mbd.forms": ("import dolfinx_mbd.forms", "import ufl"),
    "dolfinx-mbd --help": (f"from dolfinx_mbd.io.cli import main{HELP}", "import numpy"),
}
"""Measured imports, each with the imports of its dependencies.

The goal, 0.1 s more than the dependencies, refers to the first row.
"""
# Packages that some statements load and others do not
HEAVY = (
    *("gmsh", "h5py", "matplotlib", "numba", "pyvista", "ufl"),
    *("scipy.interpolate", "scipy.linalg", "scipy.optimize", "scipy.sparse"),
)


def measure(code: str) -> dict[str, object]:
    """Return the time of some statements, s, and the large packages that they load."""
    program = compile(code, "statements", "exec")
    start = time.perf_counter(), time.process_time()
    exec(program, {})
    end = time.perf_counter(), time.process_time()
    loaded = [name for name in HEAVY if name in sys.modules]
    return {"seconds": end[0] - start[0], "cpu": end[1] - start[1], "loaded": loaded}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--child", metavar="CODE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        report(measure(arguments.child))
        return
    codes = dict.fromkeys(code for row in ROWS.values() for code in row)
    with tempfile.TemporaryDirectory() as directory:
        bytecode = {"PYTHONPYCACHEPREFIX": directory, "PYTHONDONTWRITEBYTECODE": ""}
        runs: dict[str, list[dict[str, Any]]] = {code: [] for code in codes}
        for code in codes:
            child(__file__, [code], **bytecode)
        for _ in range(arguments.rounds):
            for code in codes:
                runs[code].append(child(__file__, [code], **bytecode))
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, {arguments.rounds} rounds\n")
    print("| statement | over | ms more (spread) | CPU ms more (spread) | loads as well |")
    print("|---|---|---|---|---|")
    for name, (code, base) in ROWS.items():
        wall, cpu = (
            [1e3 * (a[key] - b[key]) for a, b in zip(runs[code], runs[base], strict=True)]
            for key in ("seconds", "cpu")
        )
        added = [m for m in runs[code][0]["loaded"] if m not in runs[base][0]["loaded"]]
        times = f"{spread(wall)} | **{spread(cpu)}**"
        print(f"| `{name}` | `{base}` | {times} | {', '.join(added) or '–'} |")


def spread(values: list[float]) -> str:
    """Return the median and the quartiles of some times as text."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.0f} ({low:.0f} to {high:.0f})"


if __name__ == "__main__":
    main()
