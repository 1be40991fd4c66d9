"""Decorators that compile array functions with numba, if it is installed.

Without numba a kernel is a plain NumPy function. Compiled kernels are cached on disk, so that later
processes start immediately. All kernels are recompiled when any kernel of the package has changed,
because numba does not detect changes in other files.
"""

from __future__ import annotations

import gc
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
try:  # internal names of numba, which save a quarter of the compilation
    if numba is None:
        raise ImportError
    from numba import _dynfunc
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
except ImportError:
    Compiler = None

#: True if kernels are compiled by numba; `DOLFINX_MBD_NUMBA=0` disables the compilation.
COMPILED: bool = numba is not None


def kernel(function: Function) -> Function:
    """Compile an array function with numba if it is installed, otherwise return it unchanged."""
    if numba is None:
        return function
    try:
        compiled = numba.njit(function, cache=True, no_cfunc_wrapper=True, **_KERNELS)
    except RuntimeError:  # neither the source folder nor the user's cache is writable
        return numba.njit(function, no_cfunc_wrapper=True, **_KERNELS)
    _store_digest(compiled)
    return compiled


def inner_kernel(function: Function, **options: Any) -> Function:
    """Compile an array function that only kernels call, with options of numba.

    The function becomes part of the kernels that call it, and is optimized there. It is neither
    cached separately nor callable from Python, because either would take longer than its
    compilation. It has no environment of numba, so that it cannot print.
    """
    if numba is None:
        return function
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled = numba.njit(function, **_INNER_KERNELS, **options)
    template, unliteral = compiled.get_call_template, numba.types.unliteral
    # compile one version for all integers, not one for each constant argument
    compiled.get_call_template = lambda args, kws: template(tuple(map(unliteral, args)), kws)
    return compiled


def sums_in_any_order(function: Function) -> Function:
    """Compile an array function that only kernels call, with sums that are vectorized."""
    return inner_kernel(function, fastmath={"reassoc"})


def without_numba(arrays: Function) -> Callable[[Function], Function]:
    """Return a decorator that replaces a kernel by an array function if numba is not installed."""
    return lambda compiled: arrays if numba is None else compiled


_KERNELS: dict[str, Any] = {}  # options of numba
_INNER_KERNELS: dict[str, Any] = {}

if COMPILED and Compiler is not None:

    class _KernelLibrary(JITCodeLibrary):
        """LLVM code that is optimized only after it is linked with that of inner functions."""

        def _optimize_functions(self, ll_module: Any) -> None:
            """Set the data layout, without an optimization of the functions."""
            ll_module.data_layout = self._codegen._data_layout

    class _InnerLibrary(_KernelLibrary):
        """LLVM code for other libraries only, without optimization and machine code."""

        def _optimize_final_module(self) -> None:
            """Do not optimize the module."""
            pass

        def _finalize_final_module(self) -> None:
            """Mark the module as complete, without a translation to machine code."""
            self._finalize_dynamic_globals()
            self._finalized = True

    class _KernelCompiler(Compiler):
        """Compiles functions that Python calls."""

        def __init__(self, typing: Any, target: Any, library: Any, *options: Any) -> None:
            super().__init__(typing, target, library, *options)
            self.state.library = _KernelLibrary(target.codegen(), "kernel")
            self.state.library.enable_object_caching()

    class _InnerCompiler(Compiler):
        """Compiles functions that only kernels call."""

        def __init__(self, typing: Any, target: Any, library: Any, *options: Any) -> None:
            super().__init__(typing, target, library, *options)
            self.state.library = _InnerLibrary(target.codegen(), "inner functions")
            self.state.targetctx.get_executable = _not_executable

    _KERNELS["pipeline_class"], _INNER_KERNELS["pipeline_class"] = _KernelCompiler, _InnerCompiler


def _not_executable(library: Any, description: Any, environment: Any) -> Any:
    """Return the result of `get_executable` for a library whose code is not loaded, address 0."""
    library._ensure_finalized()
    return _dynfunc.make_function(
        description.lookup_module(), description.qualname, "", 0, environment, (library,)
    )


def _store_digest(compiled: Any) -> None:
    """Store the digest of all kernel sources with the compiled code to detect changes."""
    try:
        file = compiled._cache._cache_file
        file._source_stamp = (file._source_stamp, kernel_sources())
    except AttributeError:  # other versions of numba may store their cache differently
        pass


if COMPILED:
    _NAMES = {f"{__package__}.{line.split()[0]}" for line in KERNELS} if ENABLED else set()

    class _CompilationListener(Listener):
        """Starts helpers when numba compiles a kernel that is not on disk; stops the collector.

        The collector of cyclic garbage would take a tenth of the time of a compilation. The next
        collection of all objects frees the garbage. `_depth` is the number of functions that are
        being compiled for a kernel, one within another.
        """

        def __init__(self) -> None:
            self._depth, self._collecting = 0, False

        def on_start(self, event: Event) -> None:
            function = event.data["dispatcher"].py_func
            name = f"{function.__module__}.{function.__name__}"
            if not self._depth:
                if not name.startswith(f"{__package__}."):
                    return  # a function of the user
                self._collecting = gc.isenabled()
                gc.disable()
            self._depth += 1
            if name in _NAMES:
                start_helpers()

        def on_end(self, event: Event) -> None:
            if not self._depth:
                return
            self._depth -= 1
            if self._collecting and not self._depth:
                if not gc.get_freeze_count():  # move all objects to the oldest generation
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()

    register("numba:compile", _CompilationListener())
