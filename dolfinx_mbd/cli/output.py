"""Output into a pipe whose reader may go away, as in ``dolfinx-mbd info rod.npz | head -3``."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any, TextIO

__all__ = ["PipeOutput"]


class PipeOutput:
    """A text stream that drops what nobody reads any more, so that the command goes on quietly."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text to the stream, or drop it if its reader has gone."""
        with self._unless_closed():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        with self._unless_closed():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextlib.contextmanager
    def _unless_closed(self) -> Iterator[None]:
        if hasattr(signal, "SIGPIPE") and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # (PETSc's handler ends the program)
        try:
            yield
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
