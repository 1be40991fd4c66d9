"""Whether a script would start a parameter study again when a worker process imports it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

__all__ = ["unguarded_line"]


def unguarded_line() -> str | None:
    """Where the main module is at work outside of ``if __name__ == "__main__":``, or None.

    None also where a new process would not import it (``python -m pytest``), or where its source
    cannot be read.
    """
    main = sys.modules["__main__"]
    name = getattr(getattr(main, "__spec__", None), "name", "")
    path = getattr(main, "__file__", None)
    line = _line_at_work(main.__dict__)
    if path is None or line is None or name.endswith("__main__"):
        return None
    try:
        tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
            if node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0):
                return None
    return f"line {line} of {path}"


def _line_at_work(scope: dict[str, object]) -> int | None:
    """The line that the top level of a module is at."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals is scope and frame.f_code.co_name == "<module>":
            return frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None
