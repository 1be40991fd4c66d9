"""The command itself: its parser, which rank speaks, and what becomes of an error."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import dolfinx_mbd
from dolfinx_mbd.cli import export, look, mesh, reduce

__all__ = ["main", "parser"]

_EXIT_CODES = """\
exit codes:
  0  all went well
  1  it did not; the message says why, and no file was left half-written
  2  the command was not understood
"""

#: What a launcher of MPI processes tells them; without any of these there is one process.
_LAUNCHED = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    result = argparse.ArgumentParser(
        prog="dolfinx-mbd",
        description="Reduced flexible bodies: mesh a part, reduce it, look at it, export it.",
        epilog=_EXIT_CODES + "\nlengths are in metres, all units are SI where nothing else is said",
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

    Note: Collective under `mpirun`; rank 0 speaks.
    """
    rank, abort = _rank()
    with contextlib.ExitStack() as stack:
        if rank:
            silence = stack.enter_context(open(os.devnull, "w"))
            stack.enter_context(contextlib.redirect_stdout(silence))
        try:
            with contextlib.redirect_stderr(silence) if rank else contextlib.nullcontext():
                options = parser().parse_args(arguments)
                stack.enter_context(_spoken(not rank and not getattr(options, "quiet", False)))
                code: int = options.run(options)
                return code
        except SystemExit as done:  # of argparse, the same on every rank
            return int(done.code or 0)
        except KeyboardInterrupt:
            return _fail(abort, "interrupted", 130)
        except BrokenPipeError:  # what reads the output has gone: | head
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except (ImportError, OSError, RuntimeError, ValueError) as error:
            if not rank:
                print(f"dolfinx-mbd: error: {_message(error)}", file=sys.stderr)
            return 1
        except Exception:
            traceback.print_exc()
            return _fail(abort, "this is a fault of dolfinx_mbd; please report it", 1)


def _rank() -> tuple[int, Any]:
    """This process's rank, and how to end the others if it fails alone."""
    if not any(name in os.environ for name in _LAUNCHED):
        return 0, None
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    return comm.rank, comm.Abort if comm.size > 1 else None


def _fail(abort: Any, why: str, code: int) -> int:
    print(f"dolfinx-mbd: {why}", file=sys.stderr, flush=True)
    if abort is not None:
        _abort(abort, code)
    return code


def _abort(abort: Any, code: int) -> NoReturn:
    abort(code)
    raise SystemExit(code)


def _message(error: BaseException) -> str:
    """The error as a sentence; of a file's error also the file."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__


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
