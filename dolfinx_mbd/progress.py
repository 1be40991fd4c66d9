"""Progress of long computations, shown on terminals and in notebooks."""

from __future__ import annotations

import builtins
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import numpy as np

from dolfinx_mbd.checks import reject
from dolfinx_mbd.errors import InputTypeError, MbdWarning, warn
from dolfinx_mbd.optional import optional_module

Progress = bool | Literal["always"]
"""Request for progress: True shows it on a terminal and in a notebook, "always" everywhere."""


def is_shown(progress: Any) -> bool:
    """Return whether to show progress.

    By default, nothing is written to logs of batch systems and other files; "always" writes there.
    """
    if isinstance(progress, str) and progress == "always":
        return True
    if not isinstance(progress, (bool, np.bool_)):
        reject("progress", progress, "True, False or 'always'", InputTypeError)
    stream = sys.stderr
    visible = hasattr(builtins, "get_ipython") or (stream is not None and stream.isatty())
    return bool(progress) and visible


def progress_bar(
    total: int, progress: Progress, title: str, unit: str
) -> AbstractContextManager[Any]:
    """Return a progress bar (in notebooks a widget), or a null context if it is not shown."""
    if is_shown(progress):
        try:
            tqdm = optional_module("tqdm.auto", "progress bars").tqdm
        except ImportError as error:
            warn(MbdWarning(f"no progress bar: {error}"))
        else:
            return tqdm(total=total, desc=title, unit=unit, mininterval=0.2)  # type: ignore[no-any-return]
    return nullcontext()
