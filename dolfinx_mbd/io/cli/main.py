"""The main function of the command line: parsing, output under MPI, and reports of errors."""

from __future__ import annotations

import argparse
import contextlib
import functools
import logging
import os
import signal
import sys
import sysconfig
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import dolfinx_mbd
from dolfinx_mbd.io.cli import (
    body_commands,
    completion,
    fatigue,
    fmu,
    mesh,
    reduce,
    run_commands,
    strength,
)

_EXIT_CODES = """\
exit codes:
  0  success
  1  an error; the message gives the reason, and no incomplete file is left
  2  a wrong command or option
"""

_LAUNCHER_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
"""Environment variables that MPI launchers set; without any of them there is one process."""

_PACKAGE = Path(dolfinx_mbd.__file__).resolve().parent

GRACE = 3.0
"""Time that rank 0 waits for other ranks to raise an error too, s; others wait slightly longer."""


class _PipeOutput:
    """A text stream that discards output after the end of its reader, such as `head`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with self._ignore_closed_pipe():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._ignore_closed_pipe():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextlib.contextmanager
    def _ignore_closed_pipe(self) -> Iterator[None]:
        """Send further output to the null device when the reader of the pipe has ended."""
        if hasattr(signal, "SIGPIPE") and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # PETSc's handler would end the program
        try:
            yield
        except BrokenPipeError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    result = argparse.ArgumentParser(
        prog="dolfinx-mbd",
        description="Mesh a part, reduce, inspect and export it; run models; export mechanisms.",
        epilog=_EXIT_CODES + "\nAll units are SI, with lengths in metres, unless stated otherwise.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("--version", action="version", version=dolfinx_mbd.__version__)
    commands = result.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in (mesh, reduce, body_commands, run_commands, strength, fatigue, fmu, completion):
        module.add_to(commands)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Words after the name of the program; by default from the command line.

    Returns:
        The exit code.

    Note: Collective under `mpirun`; only rank 0 prints. If only some ranks raise an error, these
        ranks report it and end all other ranks.

    Example:
        >>> from dolfinx_mbd.io.cli import main
        >>> main(["compare", str(body.save("a")), str(body.save("b")), "--tolerance", "0"])
                    rod  rod  difference
        mass (kg)   0.6  0.6    0.00e+00
        ...
        0
    """
    comm = _communicator()
    prints = comm is None or comm.rank == 0
    with contextlib.ExitStack() as stack:
        stdout: Any = _PipeOutput(sys.stdout)
        stderr: Any = _PipeOutput(sys.stderr)
        if not prints:
            stdout = stack.enter_context(open(os.devnull, "w"))
        stack.enter_context(contextlib.redirect_stdout(stdout))
        stack.enter_context(contextlib.redirect_stderr(stderr))
        stack.callback(stdout.flush)
        try:
            with contextlib.nullcontext() if prints else contextlib.redirect_stderr(stdout):
                try:
                    options = parser().parse_args(arguments)
                except SystemExit as end:  # every rank raises it
                    return int(end.code or 0)
            stack.enter_context(_messages(prints and not getattr(options, "quiet", False)))
            code: int = options.run(options)
            return code
        except BaseException as error:
            return _report(error, comm)


@functools.cache
def _communicator() -> Any:
    """Return a private communicator of all ranks, or None if there is only one rank."""
    if not any(name in os.environ for name in _LAUNCHER_VARIABLES):
        return None
    from mpi4py import MPI

    return MPI.COMM_WORLD.Dup() if MPI.COMM_WORLD.size > 1 else None


def _report(error: BaseException, comm: Any) -> int:
    """Print an error once, end the ranks that raised no error, and return the exit code."""
    everywhere = comm is None or _raised_everywhere(comm)
    code = 130 if isinstance(error, KeyboardInterrupt) else 1
    if comm is None or comm.rank == 0 or not everywhere:
        where = "" if everywhere else f" on rank {comm.rank}"
        if isinstance(error, KeyboardInterrupt):
            print("dolfinx-mbd: interrupted", file=sys.stderr)
        elif place := _place_in_script(error):
            traceback.print_exception(error)
            text = f"{type(error).__name__}: {_message(error)}"
            print(f"dolfinx-mbd: error{where} in {place}: {text}", file=sys.stderr)
        elif isinstance(error, (ImportError, MemoryError, OSError, RuntimeError, ValueError)):
            print(f"dolfinx-mbd: error{where}: {_message(error)}", file=sys.stderr)
        else:
            traceback.print_exception(error)
            print("dolfinx-mbd: this is a bug in dolfinx_mbd; please report it", file=sys.stderr)
    if not everywhere:
        sys.stderr.flush()
        comm.Abort(code)
    return code


def _place_in_script(error: BaseException) -> str:
    """Return the line of the user's script that raised an error, or nothing for other errors.

    An error belongs to the script if the script is the last file in the traceback, libraries aside.
    """
    if isinstance(error, SyntaxError) and error.filename and not _is_library(error.filename):
        return f"{error.filename}, line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    files = [f for f in frames if _is_package(f.filename) or not _is_library(f.filename)]
    if not files or _is_package(files[-1].filename):
        return ""
    name = files[-1].name
    function = "" if name.startswith("<") else f", in {name}"
    return f"{files[-1].filename}, line {files[-1].lineno}{function}"


def _is_package(path: str) -> bool:
    """Return whether a file belongs to this package."""
    return Path(path).resolve().is_relative_to(_PACKAGE)


def _is_library(path: str) -> bool:
    """Return whether a file belongs to Python, its packages or the system, or is no file."""
    file = Path(path)
    folders = sysconfig.get_paths().values()
    is_system = any(file.is_relative_to(folder) for folder in (*folders, sys.prefix, "/usr/lib"))
    is_no_file = path.startswith("<")  # such as <string>
    return is_no_file or is_system or "site-packages" in file.parts or _is_package(path)


def _raised_everywhere(comm: Any) -> bool:
    """Return whether all ranks raise an error within a few seconds.

    Each rank with an error enters a barrier that does not block. A reduction over all ranks
    would block, because the other ranks may be waiting for this rank in a computation.
    """
    request = comm.Ibarrier()
    end = time.monotonic() + GRACE + 0.5 * comm.rank  # the lowest rank aborts first
    while not request.Test():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _message(error: BaseException) -> str:
    """Return the message of an error on one line, with the path if it concerns a file.

    The errors of a model file are written on a line each.
    """
    errors = getattr(error, "errors", [])
    if len(errors) > 1:
        return "\n".join([f"{len(errors)} errors", *errors])
    text = str(error) or type(error).__name__
    if isinstance(error, MemoryError):
        text = f"not enough memory ({text})"
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return " ".join(text.split())


@contextlib.contextmanager
def _messages(progress: bool) -> Iterator[None]:
    """Print warnings as plain sentences and, on request, the phases of an analysis to stderr."""
    log = logging.getLogger("dolfinx_mbd")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s ..."))
    level = log.level

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        if progress:
            log.addHandler(handler)
            log.setLevel(logging.INFO)
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.setLevel(level)
