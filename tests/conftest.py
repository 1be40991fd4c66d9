"""Shared by all tests: the communicator, and tidiness after each test as DOLFINx does it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from mpi4py import MPI


@pytest.fixture
def comm() -> MPI.Intracomm:
    """The communicator of the run; tests must pass on 1, 2 and 3 ranks."""
    return MPI.COMM_WORLD


@pytest.fixture(autouse=True, scope="module")
def _keep_imports() -> None:
    """What is there before a file's tests stays: their collections need not look at it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    """PETSc objects are destroyed together on all ranks, not when a rank happens to collect."""
    yield
    gc.collect()
    MPI.COMM_WORLD.Barrier()
