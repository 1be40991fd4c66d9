"""Calls of functions in a separate process, so that a crash of gmsh becomes an error.

The process receives the arguments as JSON on its standard input. It writes warnings, the result or
an error as lines of JSON to its standard output. The CAD kernel of gmsh prints other lines; those
that report errors become a warning.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

from dolfinx_mbd import errors
from dolfinx_mbd.errors import Error, FileError, FileWarning, MbdWarning, SolverError, warn

MARK = "dolfinx_mbd:"
"""Start of the lines that contain JSON."""

_REPORT = re.compile(r"\*+ (ERR .*?) *\*+")
"""Error that the CAD kernel prints, for example of a line of a STEP file that it ignores."""

_LAUNCHER = re.compile(r"(OMPI|PMIX?|PRTE|PRRTE|HYDRA|MPI|MPICH|I_MPI|MV2|SLURM)_")
"""Environment variables of MPI launchers; the separate process must not inherit them."""


class CrashError(SolverError):
    """End of a separate process without a result."""


def environment() -> dict[str, str]:
    """Return the environment of a separate process that imports the same modules."""
    variables = {k: v for k, v in os.environ.items() if not _LAUNCHER.match(k)}
    search = os.pathsep.join(filter(None, sys.path))
    return variables | {"PYTHONPATH": search, "PYTHONSAFEPATH": "1"}


def call_separately(function: Callable[..., Any], **arguments: Any) -> Any:
    """Call a function of a module in a separate process and return its result.

    Arguments and result must be representable in JSON. Warnings and errors of the package are
    passed on. A `CrashError` is raised if the process crashes.
    """
    command = [sys.executable, "-m", __name__, function.__module__, function.__qualname__]
    result: list[Any] = []
    reports: list[str] = []
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            command, env=environment(), stdin=pipe, stdout=pipe, stderr=log, text=True
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(arguments))
            process.stdin.close()
            for line in process.stdout:
                _receive(line, result)
                reports += _REPORT.findall(line)
            code = process.wait()
        except BaseException:
            process.kill()
            raise
        log.seek(0)
        text = log.read().decode("utf-8", "replace").strip()[-500:]
    if result and code == 0:
        if reports:
            text = f"gmsh ignored parts of the file ({'; '.join(reports)})"
            warn(FileWarning(f"{text}: check the geometry, or export the file again from CAD"))
        return result[0]
    name = signal.Signals(-code).name if code < 0 else f"exit status {code}: {text}"
    raise CrashError(f"gmsh crashed ({name})")


def _receive(line: str, result: list[Any]) -> None:
    """Give a warning, raise an error or append the result that a line of the process contains."""
    if not line.startswith(MARK):
        return
    kind, values = json.loads(line.removeprefix(MARK))
    if kind == "result":
        result.append(values)
        return
    known: Any = getattr(errors, values.pop("kind"), SolverError)
    message, path = values.pop("message"), values.pop("path", None)
    if kind == "warning":
        warn(known(message, **values))
    elif issubclass(known, FileError):
        raise known(message, path=path)
    else:
        raise known(message, **values)


def _send(kind: str, values: Any) -> None:
    """Print values with a mark, for the parent process."""
    print(f"\n{MARK}{json.dumps([kind, values], default=str)}", flush=True)


def _description(item: Error | MbdWarning | Warning | Exception) -> dict[str, Any]:
    """Return the class, the message and the attributes of an error or a warning."""
    known = hasattr(errors, type(item).__name__)
    text = str(item) if known else f"{type(item).__name__}: {item}"
    return {"kind": type(item).__name__, "message": text} | (vars(item) if known else {})


def _run(module: str, name: str) -> None:
    """Call a function with the arguments on the standard input."""

    def show(message: Warning | str, *place: Any, **options: Any) -> None:
        if isinstance(message, MbdWarning):
            _send("warning", _description(message))

    arguments = json.load(sys.stdin)
    function = getattr(importlib.import_module(module), name)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        try:
            _send("result", function(**arguments))
        except Exception as error:
            _send("error", _description(error))


if __name__ == "__main__":
    _run(sys.argv[1], sys.argv[2])
