"""Output into a pipe whose reader may end early, as in `dolfinx-mbd info rod.npz | head -3`."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any, TextIO

__all__ = ["PipeOutput"]


class PipeOutput:
    """A text stream that discards output after its reader has ended, so that commands continue.

    Args:
        stream: The underlying stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text to the stream, or discard it if its reader has ended; return its length."""
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
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # PETSc's handler would end the program
        try:
            yield
        except BrokenPipeError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)
