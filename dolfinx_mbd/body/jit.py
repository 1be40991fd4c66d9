"""One source for two speeds: an array function is compiled where numba is installed.

Without numba a kernel is the plain NumPy function that it is written as.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

__all__ = ["COMPILED", "kernel"]

Function = TypeVar("Function", bound=Callable)

try:
    if os.environ.get("DOLFINX_MBD_NUMBA", "1") == "0":
        raise ImportError
    import numba
except ImportError:
    numba = None

#: True where kernels are compiled by numba (``DOLFINX_MBD_NUMBA=0`` turns it off).
COMPILED: bool = numba is not None


def kernel(function: Function) -> Function:
    """Compile an array function with numba, if numba is there; else return it as it is."""
    if numba is None:
        return function
    try:
        return numba.njit(function, cache=True)
    except RuntimeError:  # neither the source folder nor the user's cache can be written to
        return numba.njit(function)
