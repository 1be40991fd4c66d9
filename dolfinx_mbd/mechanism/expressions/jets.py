"""Values with first and second derivatives, and the functions of expressions in model files."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["FUNCTIONS", "Jet"]


@dataclass(frozen=True)
class Jet:
    """A value with its first and second derivative with respect to one variable.

    Attributes:
        value: Value.
        first: First derivative.
        second: Second derivative.
    """

    value: float
    first: float = 0.0
    second: float = 0.0

    def through(self, value: float, slope: float, curvature: float) -> Jet:
        """Return f of this jet, from f and its first and second derivatives at the value."""
        return Jet(value, slope * self.first, slope * self.second + curvature * self.first**2)

    def __add__(self, other: Any) -> Jet:
        b = _jet(other)
        return Jet(self.value + b.value, self.first + b.first, self.second + b.second)

    def __neg__(self) -> Jet:
        return Jet(-self.value, -self.first, -self.second)

    def __pos__(self) -> Jet:
        return self

    def __sub__(self, other: Any) -> Jet:
        return self + (-_jet(other))

    def __rsub__(self, other: Any) -> Jet:
        return _jet(other) + (-self)

    def __mul__(self, other: Any) -> Jet:
        b = _jet(other)
        second = self.second * b.value + 2 * self.first * b.first + self.value * b.second
        return Jet(self.value * b.value, self.first * b.value + self.value * b.first, second)

    def __truediv__(self, other: Any) -> Jet:
        b = _jet(other)
        x = 1.0 / b.value
        return self * b.through(x, -(x**2), 2 * x**3)

    def __rtruediv__(self, other: Any) -> Jet:
        return _jet(other) / self

    def __pow__(self, power: Any) -> Jet:
        if isinstance(power, Jet) and (power.first or power.second):
            return _exp(power * _log(self))
        n, x = float(_jet(power).value), self.value
        # `math.pow` raises an error where `**` returns a complex number
        slope = 0.0 if n == 0.0 else n * math.pow(x, n - 1)
        curvature = 0.0 if n in (0.0, 1.0) else n * (n - 1) * math.pow(x, n - 2)
        return self.through(math.pow(x, n), slope, curvature)

    def __rpow__(self, base: Any) -> Jet:
        return _exp(self * math.log(base))

    __radd__ = __add__
    __rmul__ = __mul__

    def __lt__(self, other: Any) -> bool:
        return self.value < _jet(other).value

    def __le__(self, other: Any) -> bool:
        return self.value <= _jet(other).value

    def __gt__(self, other: Any) -> bool:
        return self.value > _jet(other).value

    def __ge__(self, other: Any) -> bool:
        return self.value >= _jet(other).value


def _jet(x: Any) -> Jet:
    """Return a number as a jet of a constant."""
    return x if isinstance(x, Jet) else Jet(float(x))


Triple = Callable[[float], tuple[float, float, float]]
"""Function that returns the value, the slope and the curvature of another function."""


def _lifted(function: Callable[[float], float], derivatives: Triple) -> Callable[[Any], Any]:
    """Return a function of numbers and jets, from its value, slope and curvature."""

    def lifted(x: Any) -> Any:
        return x.through(*derivatives(x.value)) if isinstance(x, Jet) else function(x)

    return lifted


def _sqrt(x: float) -> tuple[float, float, float]:
    """Return √x with its first and second derivative."""
    root = math.sqrt(x)
    return root, 0.5 / root, -0.25 / root**3


def _tan(x: float) -> tuple[float, float, float]:
    """Return tan x with its first and second derivative."""
    t = math.tan(x)
    return t, 1 + t * t, 2 * t * (1 + t * t)


def _tanh(x: float) -> tuple[float, float, float]:
    """Return tanh x with its first and second derivative."""
    t = math.tanh(x)
    return t, 1 - t * t, -2 * t * (1 - t * t)


def _asin(x: float) -> tuple[float, float, float]:
    """Return arcsin x with its first and second derivative."""
    c = 1 / math.sqrt(1 - x * x)
    return math.asin(x), c, x * c**3


def _acos(x: float) -> tuple[float, float, float]:
    """Return arccos x with its first and second derivative."""
    c = 1 / math.sqrt(1 - x * x)
    return math.acos(x), -c, -x * c**3


def _atan(x: float) -> tuple[float, float, float]:
    """Return arctan x with its first and second derivative."""
    c = 1 / (1 + x * x)
    return math.atan(x), c, -2 * x * c * c


_exp = _lifted(math.exp, lambda x: (math.exp(x),) * 3)
_log = _lifted(math.log, lambda x: (math.log(x), 1 / x, -1 / x**2))


def _sign(x: Any) -> float:
    """Return the sign of a number."""
    return float((x > 0) - (x < 0))


def _least(*numbers: Any) -> Any:
    """Return the least of several numbers."""
    return min(numbers)


def _greatest(*numbers: Any) -> Any:
    """Return the greatest of several numbers."""
    return max(numbers)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sin": _lifted(math.sin, lambda x: (math.sin(x), math.cos(x), -math.sin(x))),
    "cos": _lifted(math.cos, lambda x: (math.cos(x), -math.sin(x), -math.cos(x))),
    "tan": _lifted(math.tan, _tan),
    "asin": _lifted(math.asin, _asin),
    "acos": _lifted(math.acos, _acos),
    "atan": _lifted(math.atan, _atan),
    "sinh": _lifted(math.sinh, lambda x: (math.sinh(x), math.cosh(x), math.sinh(x))),
    "cosh": _lifted(math.cosh, lambda x: (math.cosh(x), math.sinh(x), math.cosh(x))),
    "tanh": _lifted(math.tanh, _tanh),
    "exp": _exp,
    "log": _log,
    "sqrt": _lifted(math.sqrt, _sqrt),
    "abs": lambda x: x if x >= 0 else -x,
    "sign": _sign,
    "min": _least,
    "max": _greatest,
}
"""Functions of expressions by name."""
