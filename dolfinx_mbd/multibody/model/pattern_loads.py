"""Distributed loads on flexible bodies: the reduced body knows the shape, a function the size.

In body components a pattern f of size p has the resultant p F, the moment p (m₀ + Σ m_k η_k) about
the frame's origin and the work p f_k on each elastic coordinate: it turns with the body frame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import LoadPattern
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.checks import number, refuse
from dolfinx_mbd.errors import InputTypeError
from dolfinx_mbd.kernels.rotations import rotation_matrix, skew
from dolfinx_mbd.multibody.model.loads import JointCoordinate, check_coordinate

__all__ = ["PatternLoad", "PatternRef", "pattern_rows", "pattern_tangent"]

Array = NDArray[np.float64]


class PatternRef(NamedTuple):
    """A distributed load of a flexible body, by their names."""

    body: str
    pattern: str


@dataclass(frozen=True, eq=False)
class PatternLoad:
    """A distributed load on a flexible body: a pressure, a field of body forces.

    Attributes:
        name: Its name in the system.
        pattern: What acts where: ``body.pattern("gas")``.
        value: Its size, a number, or ``value(t, s, rate)`` of a joint coordinate s (rad or m) and
            its rate; both are 0 without `of`.
        of: The coordinate that the function sees.

    Raises:
        InputError: An argument is unusable; the value of a function is checked when it is called.
    """

    name: str
    pattern: PatternRef
    value: float | Callable[[float, float, float], float]
    of: JointCoordinate | None = None

    def __post_init__(self) -> None:
        label = f"load {checked_name('name', self.name)!r}"
        if not (isinstance(self.pattern, tuple) and len(self.pattern) == 2):
            expected = "a distributed load of a flexible body, body.pattern('name')"
            refuse(f"{label}: pattern", self.pattern, expected, InputTypeError)
        check_coordinate(f"{label}: of", self.of)
        object.__setattr__(self, "pattern", PatternRef(*self.pattern))
        if not callable(self.value):
            self.size(0.0, 0.0, 0.0)

    def size(self, t: float, s: float, rate: float) -> float:
        """The size of the load at a time and a state.

        Raises:
            InputError: It is not a finite number.
        """
        value = self.value(t, s, rate) if callable(self.value) else self.value
        return number(f"load {self.name!r}: value", value)

    def derivatives(self, t: float, s: float, rate: float) -> tuple[float, float]:
        """Derivatives of the size to the coordinate and to its rate."""
        if not callable(self.value) or self.of is None:
            return 0.0, 0.0
        h, k = 1e-6 * max(1e-2, abs(s)), 1e-6 * max(1.0, abs(rate))
        by_s = (self.size(t, s + h, rate) - self.size(t, s - h, rate)) / (2 * h)
        by_rate = (self.size(t, s, rate + k) - self.size(t, s, rate - k)) / (2 * k)
        return by_s, by_rate


def pattern_rows(pattern: LoadPattern, q: Array) -> Array:
    """Force (global), moment (body) and work on the elastic coordinates for size 1, (6 + n,).

    Args:
        pattern: The load.
        q: Coordinates of the body: position, quaternion, η; shape (7 + n,).
    """
    A, eta = rotation_matrix(q[3:7]), q[7:]
    moment = pattern.moment + eta @ pattern.moments
    return np.concatenate([A @ pattern.force, moment, pattern.modes])


def pattern_tangent(pattern: LoadPattern, q: Array) -> Array:
    """Derivative of `pattern_rows` to increments of q, shape (6 + n, 6 + n)."""
    n = len(pattern.modes)
    D = np.zeros((6 + n, 6 + n))
    D[:3, 3:6] = -rotation_matrix(q[3:7]) @ skew(pattern.force)
    D[3:6, 6:] = pattern.moments.T
    return D
