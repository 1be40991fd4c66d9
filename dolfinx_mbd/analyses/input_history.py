"""Growth of the inputs of a mechanism that is stepped by a controller.

A controller that reads outputs once per step acts on them one step later. If its gains are too
large for the step, the loop is unstable although the same controller is stable in continuous time:
the inputs alternately rise and fall from step to step, with growing amplitude.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice, pairwise

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import AccuracyWarning, warn

__all__ = ["InputHistory"]

# Growth is measured over the last 20 steps, every 10 steps, and over the last 200, every 100
_WINDOWS = 20, 200
_ALTERNATION = 0.8  # smallest fraction of changes of an unstable input that alternate in sign
_GROWTH = 1.3  # growth of the changes from each quarter of a window to the next, for a warning
_LARGE_GROWTH = 10.0  # growth of the changes from half to half, for the text of an error
_SMALL = 1e-6  # increments below this fraction of the largest input are ignored


class InputHistory:
    """The last values of the inputs of a simulator.

    Args:
        names: Names of the inputs.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._values: deque[tuple[float, ...]] = deque(maxlen=_WINDOWS[-1] + 1)
        self._largest, self._steps, self._warned = 0.0, 0, False

    def add(self, values: tuple[float, ...]) -> None:
        """Add the inputs of a step; warn once if they oscillate with a growing amplitude."""
        self._values.append(values)
        self._steps += 1
        if self._warned or not self._names:
            return
        self._largest = max(self._largest, *map(abs, values))
        for window in _WINDOWS:
            if self._steps % (window // 2) == 0 and self._steps > window and not self._warned:
                if self._alternates(window // 2):
                    table = np.array([*islice(reversed(self._values), window + 1)])[::-1]
                    self._warn_of_growth(np.diff(table, axis=0))

    def _alternates(self, count: int) -> bool:
        """Return whether most of the last `count` changes of an input alternate in sign."""
        permitted = (1.0 - _ALTERNATION) * (count - 1) + 1e-9  # 1e-9: round-off of the product
        for x in zip(*islice(reversed(self._values), count + 1), strict=True):
            changes = [new - old for new, old in pairwise(x)]
            exceptions = sum(first * second >= 0.0 for first, second in pairwise(changes))
            if exceptions <= permitted:
                return True
        return False

    def _warn_of_growth(self, changes: Array) -> None:
        """Warn if the changes (window, inputs) of an input alternate in sign and grow."""
        late = changes[len(changes) // 2 :]
        alternation = (late[1:] * late[:-1] < 0.0).mean(axis=0)
        # Largest change in each quarter
        sizes = np.abs(changes.reshape(4, -1, len(self._names))).max(axis=1)
        unstable = (sizes[1:] > _GROWTH * sizes[:-1]).all(axis=0) & (alternation >= _ALTERNATION)
        unstable &= sizes[-1] > _SMALL * self._largest
        if not unstable.any():
            return
        self._warned = True
        growth = sizes[-1] / np.maximum(sizes[0], 1e-300)
        k = int(np.argmax(np.where(unstable, growth, 0.0)))
        text = (
            f"input {self._names[k]!r} alternately rises and falls from step to step; in the last "
            f"{len(changes)} steps its changes grew from {sizes[0, k]:.3g} to {sizes[-1, k]:.3g}: "
            "the loop of controller and mechanism is unstable with this step. Decrease the gains "
            "or dt"
        )
        value, limit = float(growth[k]), _GROWTH**3  # from the first to the fourth quarter
        warn(AccuracyWarning(text, quantity="growth of an input", value=value, limit=limit))

    def growth(self) -> str:
        """Return a text about the inputs whose changes grew in the last steps, or an empty text."""
        values = np.array(self._values)[-_WINDOWS[0] - 1 :]
        changes = np.abs(np.diff(values, axis=0))
        half = len(changes) // 2
        if half < 2 or not self._names:
            return ""
        first, last = changes[: len(changes) - half], changes[len(changes) - half :]
        before, after = first.max(axis=0), last.max(axis=0)
        grown = (after > _LARGE_GROWTH * before) & ((last > before).sum(axis=0) >= 2)
        if not grown.any():
            return ""
        items = (
            f"{self._names[k]!r} from {before[k]:.3g} to {after[k]:.3g}"
            for k in map(int, np.flatnonzero(grown))
        )
        return (
            f"the changes of inputs grew during the last {len(changes)} steps, of "
            f"{' and of '.join(items)}: a controller is unstable if its gains are too large for "
            "the step. Decrease the gains or dt"
        )
