"""One BLAS thread for each run, and how many runs this machine may do at once.

The sums of a product of matrices are formed in another order on more threads; their last bits
differ.  The matrices of a mechanism are too small to gain from them, and runs that go on side by
side would be in each other's way.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["THREADS", "available_cores", "controls", "one_thread"]

#: Variables that tell a process that starts how many threads to have.
THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)

#: Functions that read and set the number of threads, as the libraries name them.
_CONTROLS = (
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("openblas_get_num_threads64_", "openblas_set_num_threads64_"),
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
)


def available_cores() -> int:
    """Cores that this process may use (its affinity, which batch systems and taskset set)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def one_thread() -> Iterator[None]:
    """One BLAS thread in this process; afterwards as many as before.

    It knows OpenBLAS, MKL and BLIS where the system tells which libraries are loaded (Linux).
    """
    before = [(put, get()) for get, put in controls(len(sys.modules))]
    for put, _ in before:
        put(1)
    try:
        yield
    finally:
        for put, count in before:
            put(count)


@functools.lru_cache(maxsize=1)
def controls(modules: int) -> list[tuple[Callable[[], int], Callable[[int], object]]]:
    """How to read and to set the threads of each BLAS that is loaded.

    Args:
        modules: Number of modules that are imported: with another there may be another BLAS.
    """
    found = []
    for path in _loaded():
        try:
            library = ctypes.CDLL(path)
        except OSError:  # not a library of its own, or replaced on disk
            continue
        for get, put in _CONTROLS:
            if hasattr(library, get) and hasattr(library, put):
                found.append((getattr(library, get), getattr(library, put)))
                break
    return found


def _loaded() -> list[str]:
    """Paths of the BLAS libraries of this process."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    paths = {line.split(maxsplit=5)[5] for line in lines if line.count("/")}
    names = ("openblas", "mkl_rt", "libblis")
    return sorted(p for p in paths if any(name in Path(p).name for name in names))
