"""One source for two speeds: an array function is compiled where numba is installed.

Without numba a kernel is the plain NumPy function that it is written as.  Compiled kernels are kept
on disk, so that a second process starts at once; they are made anew when any kernel of the package
has changed, also one in another file, which numba does not look at.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["COMPILED", "inner_kernel", "kernel", "kernel_sources"]

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
        compiled = numba.njit(function, cache=True, no_cfunc_wrapper=True)
    except RuntimeError:  # neither the source folder nor the user's cache can be written to
        return numba.njit(function, no_cfunc_wrapper=True)
    _stamp(compiled)
    return compiled


def inner_kernel(function: Function) -> Function:
    """Compile an array function that only kernels call; else as `kernel`.

    It becomes part of the kernels that call it, and is not kept on disk by itself, nor can it be
    called from Python where it is compiled: both take more time than compiling it.
    """
    if numba is None:
        return function
    compiled = numba.njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    template, unliteral = compiled.get_call_template, numba.types.unliteral
    # one version for all integers, not one for each constant that a caller passes
    compiled.get_call_template = lambda args, kws: template(tuple(map(unliteral, args)), kws)
    return compiled


def _stamp(compiled: Any) -> None:
    """Add the package's kernels to what the cached code of one must agree with to be loaded."""
    try:
        file = compiled._cache._cache_file
        file._source_stamp = (file._source_stamp, kernel_sources())
    except AttributeError:  # another numba keeps its cache in another way, which stays as it is
        pass


@cache
def kernel_sources(folder: Path = Path(__file__).parent) -> str:
    """Return a digest of all source files with kernels."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(folder.glob("*.py")):
        source = path.read_bytes()
        if b"@kernel" in source or b"@inner_kernel" in source:
            digest.update(source)
    return digest.hexdigest()
