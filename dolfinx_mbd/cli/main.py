"""The command line program: its parser, its output under MPI, and its errors."""

from __future__ import annotations

import argparse
import contextlib
import functools
import logging
import os
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import dolfinx_mbd
from dolfinx_mbd.cli import export, look, mesh, reduce
from dolfinx_mbd.cli.output import PipeOutput

__all__ = ["main", "parser"]

_EXIT_CODES = """\
exit codes:
  0  success
  1  an error; the message gives the reason, and no incomplete file is left
  2  a wrong command or option
"""

#: What a launcher of MPI processes tells them; without any of these there is one process.
_LAUNCHED = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")

#: Seconds in which an error that all ranks raise together reaches all of them.
GRACE = 3.0


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    result = argparse.ArgumentParser(
        prog="dolfinx-mbd",
        description="Reduced flexible bodies: mesh a part, reduce it, inspect it and export it.",
        epilog=_EXIT_CODES + "\nAll units are SI, with lengths in metres, unless stated otherwise.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("--version", action="version", version=dolfinx_mbd.__version__)
    commands = result.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in (mesh, reduce, look, export):
        module.add_to(commands)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Words after the program's name; None: those that it was called with.

    Returns:
        The exit code.

    Note: Collective under `mpirun`; rank 0 speaks. If an error is not raised on all ranks, the
        ranks that raised it report it and end all others.
    """
    comm = _communicator()
    speaks = comm is None or comm.rank == 0
    with contextlib.ExitStack() as stack:
        stdout: Any = PipeOutput(sys.stdout)
        stderr: Any = PipeOutput(sys.stderr)
        if not speaks:
            stdout = stack.enter_context(open(os.devnull, "w"))
        stack.enter_context(contextlib.redirect_stdout(stdout))
        stack.enter_context(contextlib.redirect_stderr(stderr))
        stack.callback(stdout.flush)
        try:
            with contextlib.nullcontext() if speaks else contextlib.redirect_stderr(stdout):
                try:
                    options = parser().parse_args(arguments)
                except SystemExit as done:  # (the same on every rank)
                    return int(done.code or 0)
            stack.enter_context(_spoken(speaks and not getattr(options, "quiet", False)))
            code: int = options.run(options)
            return code
        except BaseException as error:
            return _report(error, comm)


@functools.cache
def _communicator() -> Any:
    """Return a communicator of all ranks for this program alone, or None if there is one rank."""
    if not any(name in os.environ for name in _LAUNCHED):
        return None
    from mpi4py import MPI

    return MPI.COMM_WORLD.Dup() if MPI.COMM_WORLD.size > 1 else None


def _report(error: BaseException, comm: Any) -> int:
    """Print an error once; end the other ranks if they do not have one too."""
    everywhere = comm is None or _raised_everywhere(comm)
    code = 130 if isinstance(error, KeyboardInterrupt) else 1
    if comm is None or comm.rank == 0 or not everywhere:
        where = "" if everywhere else f" on rank {comm.rank}"
        if isinstance(error, KeyboardInterrupt):
            print("dolfinx-mbd: interrupted", file=sys.stderr)
        elif isinstance(error, (ImportError, MemoryError, OSError, RuntimeError, ValueError)):
            print(f"dolfinx-mbd: error{where}: {_message(error)}", file=sys.stderr)
        else:
            traceback.print_exception(error)
            print("dolfinx-mbd: this is a fault of dolfinx_mbd; please report it", file=sys.stderr)
    if not everywhere:
        sys.stderr.flush()
        comm.Abort(code)
    return code


def _raised_everywhere(comm: Any) -> bool:
    """Return whether all ranks come here too, each with its error, within some seconds.

    The others cannot be asked: they may be waiting for this one in the middle of a computation.
    """
    request = comm.Ibarrier()
    end = time.monotonic() + GRACE + 0.5 * comm.rank  # (one after the other, so that one reports)
    while not request.Test():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _message(error: BaseException) -> str:
    """Return the error on one line; for an error of a file with the file."""
    text = str(error) or type(error).__name__
    if isinstance(error, MemoryError):
        text = f"not enough memory ({text})"
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return " ".join(text.split())


@contextlib.contextmanager
def _spoken(loud: bool) -> Iterator[None]:
    """The phases of an analysis as they begin, and warnings as plain sentences, on stderr."""
    log = logging.getLogger("dolfinx_mbd")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s ..."))
    level = log.level

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        if loud:
            log.addHandler(handler)
            log.setLevel(logging.INFO)
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.setLevel(level)
