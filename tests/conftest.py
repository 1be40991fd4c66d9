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


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    yield
    gc.collect()
    MPI.COMM_WORLD.Barrier()
