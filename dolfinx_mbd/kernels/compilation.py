"""Decorators that compile array functions with numba, if it is installed.

Without numba a kernel is a plain NumPy function. Compiled kernels are cached on disk, so that later
processes start immediately. All kernels are recompiled when any kernel of the package has changed,
because numba does not detect changes in other files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from dolfinx_mbd.kernels.precompile import ENABLED, KERNELS, kernel_sources, start_helpers

Function = TypeVar("Function", bound=Callable)

try:
    if os.environ.get("DOLFINX_MBD_NUMBA", "1") == "0":
        raise ImportError
    import numba
    from numba.core.event import Event, Listener, register
except ImportError:
    numba = None

#: True if kernels are compiled by numba; `DOLFINX_MBD_NUMBA=0` disables the compilation.
COMPILED: bool = numba is not None


def kernel(function: Function) -> Function:
    """Compile an array function with numba if it is installed, otherwise return it unchanged."""
    if numba is None:
        return function
    try:
        compiled = numba.njit(function, cache=True, no_cfunc_wrapper=True)
    except RuntimeError:  # neither the source folder nor the user's cache is writable
        return numba.njit(function, no_cfunc_wrapper=True)
    _store_digest(compiled)
    return compiled


def inner_kernel(function: Function) -> Function:
    """Compile an array function that only kernels call.

    The function becomes part of the kernels that call it. The compiled function is neither cached
    separately nor callable from Python, because either would take longer than its compilation.
    """
    if numba is None:
        return function
    compiled = numba.njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    template, unliteral = compiled.get_call_template, numba.types.unliteral
    # compile one version for all integers, not one for each constant argument
    compiled.get_call_template = lambda args, kws: template(tuple(map(unliteral, args)), kws)
    return compiled


def without_numba(arrays: Function) -> Callable[[Function], Function]:
    """Return a decorator that replaces a kernel by an array function if numba is not installed."""
    return lambda compiled: arrays if numba is None else compiled


def _store_digest(compiled: Any) -> None:
    """Store the digest of all kernel sources with the compiled code to detect changes."""
    try:
        file = compiled._cache._cache_file
        file._source_stamp = (file._source_stamp, kernel_sources())
    except AttributeError:  # other versions of numba may store their cache differently
        pass


if COMPILED and ENABLED:
    _NAMES = {f"{__package__}.{line.split()[0]}" for line in KERNELS}

    class _CompilationListener(Listener):
        """Starts helper processes when numba compiles a kernel that is not on disk."""

        def on_start(self, event: Event) -> None:
            function = event.data["dispatcher"].py_func
            if f"{function.__module__}.{function.__name__}" in _NAMES:
                start_helpers()

        def on_end(self, event: Event) -> None:
            """Do nothing."""

    register("numba:compile", _CompilationListener())
