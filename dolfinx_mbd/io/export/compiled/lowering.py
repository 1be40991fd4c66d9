"""Compilation of the time steps by numba to LLVM code without vectors and processor features."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from dolfinx_mbd import kernels as kernel_files
from dolfinx_mbd.errors import MissingFileError, SolverError
from dolfinx_mbd.io.export.compiled.translation import to_c
from dolfinx_mbd.kernels.mechanism_steps.model import BUFFER_OF, DIMENSIONS, Model

_SOURCES = ("instructions.py", "lowering.py", "support.c", "syntax.py", "translation.py")
_OPTIONS = {
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "NUMBA_LOOP_VECTORIZE": "0",
    "NUMBA_SLP_VECTORIZE": "0",
    "DOLFINX_MBD_PRECOMPILE": "0",
    "DOLFINX_MBD_NUMBA": "1",
}


@cache
def steps_code() -> str:
    """Return the C code of the steps.

    The first call after a change of its sources compiles them, which takes about a minute. The code
    is stored for later exports, in the folder that the environment variable `NUMBA_CACHE_DIR` names
    or in ``__pycache__`` beside this file.

    Raises:
        MissingFileError: numba is not installed.
        SolverError: The compilation failed.
    """
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parent / "__pycache__")
    stored = folder / f"steps-{_digest()}.c"
    if stored.is_file():
        return stored.read_text(encoding="utf-8")
    code = llvm_code()
    # The mangled name of `mechanism` (see `_entry`); that of its wrapper for C begins with cfunc
    entry = re.search(r"^define [^\n]*@(_ZN[^\n(]*mechanism[^\n(]*)\(", code, re.M)
    assert entry is not None
    support = (Path(__file__).parent / "support.c").read_text(encoding="utf-8")
    text = support + to_c(code, entry[1])
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        part = stored.with_suffix(f".{os.getpid()}")
        part.write_text(text, encoding="utf-8")
        part.replace(stored)
    return text


def _digest() -> str:
    """Return a digest of all that determines the C code of the steps."""
    try:
        version = importlib.metadata.version("numba")
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingFileError("the export as C code needs numba (pip install numba)") from error
    folder, kernels = Path(__file__).parent, Path(kernel_files.__file__).parent
    paths = [*sorted(kernels.glob("*.py")), *sorted((kernels / "mechanism_steps").glob("*.py"))]
    digest = hashlib.blake2b(version.encode(), digest_size=16)
    for path in [*paths, *(folder / name for name in _SOURCES)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def llvm_code() -> str:
    """Return the LLVM code of the steps.

    Another process compiles it, because `_OPTIONS` are environment variables of a whole process.

    Raises:
        SolverError: The compilation failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join([str(Path(__file__).parents[4]), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | _OPTIONS | {"NUMBA_CACHE_DIR": folder, "PYTHONPATH": path}
        program = f"from {__name__} import write; write({str(Path(folder) / 'steps.ll')!r})"
        process = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if process.returncode:
            raise SolverError(f"the compilation of the steps failed: {process.stderr[-800:]}")
        return (Path(folder) / "steps.ll").read_text(encoding="utf-8")


def write(path: str) -> None:
    """Compile the steps in this process, and write their LLVM code to a file."""
    import numba
    from numba import types

    from dolfinx_mbd.kernels.mechanism_steps.steps import run

    names: dict[str, Any] = {"view": _view(), "numba": numba, "Model": Model, "run": run}
    exec(_entry(), names)
    signature = types.int64(types.CPointer(types.int64), types.CPointer(types.int64), types.int64)
    compiled = numba.cfunc(signature, error_model="numpy")(names["mechanism"])
    Path(path).write_text(compiled.inspect_llvm(), encoding="utf-8")


def _view() -> Any:
    """Return a function of numba that makes a pointer to numbers of a type from an address."""
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def view(context: Any, address: Any, kind: Any) -> Any:
        pointer = types.CPointer(kind.dtype)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(pointer))

        return pointer(address, kind), generate

    return view


def _entry() -> str:
    """Return the source of a function that finds the arrays of a `Model` from their addresses.

    Its arguments are the addresses, three sizes of each array, and the action.
    """
    lines = []
    for k, name in enumerate(Model._fields):
        shape = ", ".join(f"shapes[{3 * k + i}]" for i in range(DIMENSIONS[name]))
        kind = "int64" if BUFFER_OF[name] == "indices" else "float64"
        lines.append(f"        numba.carray(view(addresses[{k}], numba.{kind}), ({shape},)),")
    views = "\n".join(lines)
    return f"""
def mechanism(addresses, shapes, action):
    m = Model(
{views}
    )
    return run(m, action)
"""
