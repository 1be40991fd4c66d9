"""Estimated memory of a reduction with a direct solver, and the free memory."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from mpi4py import MPI

GIB = 1024.0**3  # bytes
BASE_MEMORY = 0.2  # the programs, GiB
MATRIX_MEMORY = 1.63  # matrices and vectors of a million dofs, GiB
FACTOR_MEMORY, SINGLE_FACTOR_MEMORY = 9.1, 6.1  # CHOLMOD's factor of a million dofs, GiB
# For a factor with a known number of entries: matrices and vectors of a million dofs in GiB, and
# memory for the factor relative to the bytes of its entries
BODY_MEMORY, ENTRY_FACTOR = 3.4, 1.12
# For MUMPS on several ranks: programs of each rank, matrices and factor of a million dofs, GiB
PARALLEL_MEMORY = 0.25, 2.8, 11.5


def factorization_memory(
    num_dofs: int, *, single: bool = False, num_ranks: int = 1, entries: int | None = None
) -> float:
    """Return the expected peak memory of a reduction with a direct solver on all ranks, in bytes.

    The model is m = 0.2 + 1.63 n + 9.1 n^(4/3) GiB for n million displacement degrees of freedom.
    The last term is the growth of the factors of a solid with nested dissection. The coefficients
    are a fit to these measurements (quadratic tetrahedra of a connecting rod, 24 modes, one rank,
    DOLFINx 0.9, PETSc 3.22 with CHOLMOD; `benchmarks/README.md`, "Memory of other shapes"):

    | n, million | measured, GiB | model, GiB |
    |---|---|---|
    | 0.033075 | 0.35 | 0.35 |
    | 0.057228 | 0.50 | 0.49 |
    | 0.104826 | 0.82 | 0.82 |
    | 0.278724 | 2.31 | 2.31 |
    | 0.504117 | 4.78 | 4.67 |

    On P ranks, where MUMPS factorizes, the model is m = 0.25 P + 2.8 n + 11.5 n^(4/3) GiB; 1.0245
    million dofs needed 15.3 GiB on two ranks. Thin bodies and bodies in the plane need less.

    With `single`, the factor on one rank has single precision, and the coefficient of n^(4/3) is
    6.1: 3.5 GiB for 504,117 dofs (measured: 3.57) and 8.2 GiB for 1,026,216 (measured: 8.0).

    The factor of a stout body is larger than that of a rod. If its number of `entries` is known
    (`cholmod.expected_entries`), the memory on one rank is 0.2 + 3.4 n GiB and 1.12 times the bytes
    of the factor; this is within 7 % of measurements of rods, a cube and a plate.
    """
    if entries is not None and num_ranks == 1:
        known = BASE_MEMORY + BODY_MEMORY * num_dofs / 1e6
        return GIB * known + ENTRY_FACTOR * (4 if single else 8) * entries
    millions = num_dofs / 1e6
    base, matrices = BASE_MEMORY, MATRIX_MEMORY
    factor = SINGLE_FACTOR_MEMORY if single else FACTOR_MEMORY
    if num_ranks > 1:
        base, matrices, factor = PARALLEL_MEMORY
    return GIB * (base * num_ranks + matrices * millions + factor * millions ** (4 / 3))


def free_memory(comm: MPI.Comm) -> float:
    """Return the total free memory of all nodes of a communicator, bytes, equal on all ranks."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    free = 0.0
    if node.rank == 0:
        free = _available()
    node.Free()
    return float(comm.bcast(comm.reduce(free, root=0), root=0))


def _available() -> float:
    """Return the memory that is available to programs on this node, bytes.

    On Linux it includes memory with cached files, which the system releases when it is needed.
    """
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    return float(os.sysconf("SC_AVPHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
