"""Run a measurement in a separate process on one thread, and read the results that it prints."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["child", "median", "one_thread", "report"]

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


MPI_SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
"""Settings of Open MPI for containers and for processors that other programs also use."""


def one_thread() -> dict[str, str]:
    """Return the environment with all libraries limited to one thread."""
    return os.environ | dict.fromkeys(THREADS, "1")


def child(
    script: str, arguments: Sequence[str], ranks: int = 1, **environment: str
) -> dict[str, Any]:
    """Run ``script --child arguments`` and return the JSON object of its last line.

    On several ranks only the first rank prints; waiting ranks yield the processor.
    """
    command = [sys.executable, script, "--child", *arguments]
    if ranks > 1:
        command = ["mpirun", "-n", str(ranks), *command]
    run = subprocess.run(
        command,
        env=one_thread() | MPI_SETTINGS | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise RuntimeError(
            f"{' '.join(arguments)} failed:\n{run.stdout[-2000:]}{run.stderr[-4000:]}"
        )
    return json.loads(run.stdout.strip().splitlines()[-1])


def report(values: dict[str, Any]) -> None:
    """Print the results of a child process and its peak memory, GB, as its last line."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print()
    print(json.dumps(values | {"peak": peak}))


def median(runs: Sequence[dict[str, Any]], key: str) -> float:
    """Return the median of one value over several runs."""
    return statistics.median(run[key] for run in runs)
