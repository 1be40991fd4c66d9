"""Estimated memory of a reduction with a direct solver, and the free memory."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from mpi4py import MPI

GIB = 1024.0**3  # bytes
BASE_MEMORY = 0.25  # the programs, on each rank, GiB
MATRIX_MEMORY = 2.8  # matrices and vectors of a million dofs, GiB
FACTOR_MEMORY, SINGLE_FACTOR_MEMORY = 9.6, 5.85  # of a million dofs by CHOLMOD, GiB
BODY_MEMORY, ENTRY_FACTOR = 4.6, 1.12  # with a known factor: per million dofs, GiB, and per byte
SHARED_FACTOR_MEMORY = 11.5  # of a million dofs by MUMPS on several ranks, GiB


def factorization_memory(
    num_dofs: int, *, single: bool = False, num_ranks: int = 1, entries: int | None = None
) -> float:
    """Return the expected peak memory of a reduction with a direct solver on all ranks, in bytes.

    The model is m = 0.25 + 2.8 n + 9.6 n^(4/3) GiB for n million displacement degrees of freedom.
    The last term is the growth of the factors of a solid with nested dissection. The coefficients
    are a fit to these measurements (quadratic tetrahedra of a connecting rod, 24 modes, one rank,
    DOLFINx 0.9, PETSc 3.22 with CHOLMOD; `benchmarks/README.md`, "Reduction" and "A million"):

    | n, million | measured, GiB | model, GiB |
    |---|---|---|
    | 0.033081 | 0.44 | 0.44 |
    | 0.105078 | 1.02 | 1.02 |
    | 0.279369 | 2.76 | 2.78 |
    | 0.891327 | 10.9 | 11.0 |
    | 1.024500 | 13.1 | 13.0 |

    On P ranks, where MUMPS factorizes, the model is m = 0.25 P + 2.8 n + 11.5 n^(4/3) GiB; the last
    case needed 15.3 GiB on two ranks. Thin bodies and bodies in the plane need less.

    With `single`, the factor has single precision, and the last coefficient is 5.85: 4.0 GiB for
    504,117 dofs (measured: 4.05) and 7.7 GiB for 889,155 (measured: 7.67).

    The factor of a stout body is larger than that of a rod. If its number of `entries` is known
    (`cholmod.expected_entries`), the memory on one rank is 0.25 + 4.6 n GiB and 1.12 times the
    bytes of the factor; this is within 7 % of measurements of rods, a cube and a plate.
    """
    if entries is not None and num_ranks == 1:
        known = BASE_MEMORY + BODY_MEMORY * num_dofs / 1e6
        return GIB * known + ENTRY_FACTOR * (4 if single else 8) * entries
    millions = num_dofs / 1e6
    factor = SINGLE_FACTOR_MEMORY if single else FACTOR_MEMORY
    if num_ranks > 1:
        factor = SHARED_FACTOR_MEMORY
    return GIB * (BASE_MEMORY * num_ranks + MATRIX_MEMORY * millions + factor * millions ** (4 / 3))


def free_memory(comm: MPI.Comm) -> float:
    """Return the total free memory of all nodes of a communicator, bytes, equal on all ranks."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    free = 0.0
    if node.rank == 0:
        free = _available()
    node.Free()
    return float(comm.bcast(comm.reduce(free, root=0), root=0))


def _available() -> float:
    """Return the memory of this node without that of programs, bytes; files' cache is free."""
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    return float(os.sysconf("SC_AVPHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
