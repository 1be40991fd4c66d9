"""Progress of long computations, shown where somebody can see it."""

from __future__ import annotations

import builtins
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

from dolfinx_mbd.checks import flag, reject
from dolfinx_mbd.errors import MbdWarning, warn

Progress = bool | Literal["always"]
"""Request for progress: True shows it on a terminal and in a notebook, "always" everywhere."""


def is_shown(progress: Any) -> bool:
    """Return whether to show progress.

    Logs of batch systems and other files get no progress unless it is requested by "always".
    """
    if isinstance(progress, str):
        if progress != "always":
            reject("progress", progress, "True, False or 'always'")
        return True
    stream = sys.stderr
    visible = hasattr(builtins, "get_ipython") or (stream is not None and stream.isatty())
    return flag("progress", progress) and visible


def progress_bar(
    total: int, progress: Progress, title: str, unit: str
) -> AbstractContextManager[Any]:
    """Return a progress bar (in notebooks a widget), or a null context if it is not shown."""
    if is_shown(progress):
        try:
            from tqdm.auto import tqdm
        except ImportError:
            warn(MbdWarning("no progress bar: tqdm is not installed (pip install tqdm)"))
        else:
            return tqdm(total=total, desc=title, unit=unit, mininterval=0.2)  # type: ignore[no-any-return]
    return nullcontext()
