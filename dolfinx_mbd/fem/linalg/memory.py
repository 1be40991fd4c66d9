"""Estimated memory of a reduction with a direct solver, and the free memory."""

from __future__ import annotations

import os

from mpi4py import MPI

BASE_MEMORY = 0.25  # the programs, on each rank, GB
MATRIX_MEMORY, SHARED_MATRIX_MEMORY = 2.8, 5.6  # per million dofs, on one and on several ranks, GB
FACTOR_MEMORY, SINGLE_FACTOR_MEMORY = 9.6, 5.85  # of a million dofs by CHOLMOD, GB
SHARED_FACTOR_MEMORY = 8.8  # of a million dofs by MUMPS, GB


def factorization_memory(num_dofs: int, *, single: bool = False, num_ranks: int = 1) -> float:
    """Return the expected peak memory of a reduction with a direct solver on all ranks, in bytes.

    The model is m = 0.25 + 2.8 n + 9.6 n^(4/3) GB for n million displacement degrees of freedom.
    The last term is the growth of the factors of a solid with nested dissection. The coefficients
    are a fit to these measurements (quadratic tetrahedra of a connecting rod, 24 modes, one rank,
    DOLFINx 0.9, PETSc 3.22 with CHOLMOD; `benchmarks/README.md`, "Reduction" and "A million"):

    | n, million | measured, GB | model, GB |
    |---|---|---|
    | 0.033081 | 0.44 | 0.44 |
    | 0.105078 | 1.02 | 1.02 |
    | 0.279369 | 2.76 | 2.78 |
    | 0.891327 | 10.9 | 11.0 |
    | 1.024500 | 13.1 | 13.0 |

    On several ranks, where MUMPS factorizes, the model is m = 0.25 P + 5.6 n + 8.8 n^(4/3) GB; it
    is a fit to measurements on P = 2 ranks (0.033, 0.105 and 1.02 million; "Memory" in
    `benchmarks/README.md`). Thin bodies and bodies in the plane need less.

    With `single`, the factor has single precision, and the last coefficient is 5.85: 4.0 GB for
    504,117 dofs (measured: 4.05) and 7.7 GB for 889,155 (measured: 7.67).
    """
    millions = num_dofs / 1e6
    matrix, factor = MATRIX_MEMORY, SINGLE_FACTOR_MEMORY if single else FACTOR_MEMORY
    if num_ranks > 1:
        matrix, factor = SHARED_MATRIX_MEMORY, SHARED_FACTOR_MEMORY
    return 1e9 * (BASE_MEMORY * num_ranks + matrix * millions + factor * millions ** (4 / 3))


def free_memory(comm: MPI.Comm) -> float:
    """Return the total free memory of all nodes of a communicator, bytes, equal on all ranks."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    free = 0.0
    if node.rank == 0:
        free = float(os.sysconf("SC_AVPHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    node.Free()
    return float(comm.bcast(comm.reduce(free, root=0), root=0))
