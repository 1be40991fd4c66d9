"""Distributed loads on flexible bodies: load patterns of the reduced body with an amplitude.

At amplitude p, the resultant is p F, the moment about the origin of the body frame is p (m₀ + Σ m_k
η_k), and the generalized force on the elastic coordinate η_k is p f_k. F, m₀, m_k and f_k are
constants of the `LoadPattern` in body components.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.body import LoadPattern
from dolfinx_mbd.checks import function, number, reject
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputTypeError
from dolfinx_mbd.kernels.rotations import rotation_matrix, skew
from dolfinx_mbd.multibody.model.loads import JointCoordinate, check_coordinate, slopes

__all__ = ["PatternLoad", "PatternRef", "pattern_rows", "pattern_tangent"]

Array = NDArray[np.float64]


class PatternRef(NamedTuple):
    """Names of a flexible body and one of its distributed loads, see `FlexibleBody.pattern`."""

    body: str
    pattern: str


@dataclass(frozen=True, eq=False)
class PatternLoad:
    """A distributed load on a flexible body, for example a pressure or a field of body forces.

    Attributes:
        name: Name in the system.
        pattern: The distributed load with amplitude 1, `body.pattern("name")`.
        value: Amplitude: a number, or a function `value(t, s, rate)` of time (s), a joint
            coordinate s (rad or m) and its rate; s and the rate are 0 if `of` is not given.
        of: The joint coordinate s, if the load depends on one.

    Raises:
        InputError: An argument is invalid. If `value` is a function, its result is checked at each
            call.

    Example:
        >>> sail = mbd.FlexibleBody("sail", body)
        >>> gust = mbd.PatternLoad("gust", sail.pattern("wind"), lambda t, s, rate: 5.0 * t)
        >>> gust.size(2.0, 0.0, 0.0)
        10.0
    """

    name: str
    pattern: PatternRef
    value: float | Callable[[float, float, float], float]
    of: JointCoordinate | None = None

    def __post_init__(self) -> None:
        label = f"load {checked_name('name', self.name)!r}"
        if not (isinstance(self.pattern, tuple) and len(self.pattern) == 2):
            expected = "a distributed load of a flexible body, body.pattern('name')"
            reject(f"{label}: pattern", self.pattern, expected, InputTypeError)
        check_coordinate(f"{label}: of", self.of)
        assign(self, pattern=PatternRef(*self.pattern))
        if callable(self.value):
            function(f"{label}: value", self.value, "value(t, s, rate)")
        else:
            self.size(0.0, 0.0, 0.0)

    def size(self, t: float, s: float, rate: float) -> float:
        """Return the amplitude of the load at time t (s) for a joint coordinate and its rate."""
        value = self.value(t, s, rate) if callable(self.value) else self.value
        return number(f"load {self.name!r}: value", value)

    def derivatives(self, t: float, s: float, rate: float) -> tuple[float, float]:
        """Return the derivatives of the amplitude with respect to the coordinate and its rate."""
        if not callable(self.value) or self.of is None:
            return 0.0, 0.0
        return slopes(lambda x, w: self.size(t, x, w), s, rate)


def pattern_rows(pattern: LoadPattern, q: Array) -> Array:
    """Return global force, body-frame moment and elastic forces for amplitude 1, (6 + n,)."""
    A, eta = rotation_matrix(q[3:7]), q[7:]
    moment = pattern.moment + eta @ pattern.moments
    return np.concatenate([A @ pattern.force, moment, pattern.modes])


def pattern_tangent(pattern: LoadPattern, q: Array) -> Array:
    """Return the derivative of `pattern_rows` with respect to increments of q, (6 + n, 6 + n)."""
    n = len(pattern.modes)
    D = np.zeros((6 + n, 6 + n))
    D[:3, 3:6] = -rotation_matrix(q[3:7]) @ skew(pattern.force)
    D[3:6, 6:] = pattern.moments.T
    return D
