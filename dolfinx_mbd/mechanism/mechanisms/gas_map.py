"""Gas pressure of an engine from a table over the crank angle and the speed."""

from __future__ import annotations

import math
from bisect import bisect
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import array, choice, function, increasing, reject
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.mechanisms.gas import (
    FourStrokePressure,
    PressureTable,
    check_peak,
    closed_cycle,
)


@dataclass(frozen=True, eq=False)
class PressureMap:
    """Absolute pressure in a cylinder over the crank angle and the speed of the crank.

    Between the speeds the pressure is linear. At speeds outside the table it is that of the nearest
    speed of the table, so that an engine can start from rest. Angle 0 is the firing top dead
    centre.

    Attributes:
        angle: Increasing crank angles, shape (n,), rad; see `PressureTable`.
        speed: Increasing positive speeds, shape (m,), rad/s, at least two.
        pressure: Absolute pressures at each speed, shape (m, n), Pa.
        period: Period, rad; by default two turns, for four strokes.
        interpolation: Curve over the angle: ``cubic`` for a periodic cubic spline, or ``linear``,
            which never overshoots a coarse table.

    Warns:
        AccuracyWarning: A row is too coarse or too noisy for a cubic spline; see `PressureTable`.
        UnitsWarning: The largest pressure of a row is less than 0.1 bar or more than 1000 bar.

    Raises:
        InputError: An argument is invalid, or a curve does not close over the period; see
            `PressureTable`.

    Example:
        >>> angle = np.radians(np.arange(0.0, 721.0, 5.0))
        >>> curve = 2e5 + 1e5 * np.cos(angle / 2)
        >>> gas = mbd.mechanisms.PressureMap(angle, [100.0, 200.0], [curve, 2 * curve])
        >>> round(float(gas(4 * np.pi, 150.0)))
        450000
    """

    depends_on_speed: ClassVar[bool] = True
    angle: ArrayLike
    speed: ArrayLike
    pressure: ArrayLike
    period: float = 4 * math.pi
    interpolation: Literal["cubic", "linear"] = "cubic"
    _speeds: list[float] = field(init=False, repr=False)  # speed of each row, rad/s
    _knots: list[float] = field(init=False, repr=False)  # angles at which pieces begin, rad
    _pieces: Array = field(init=False, repr=False)  # coefficients of cubics, (4, n − 1, m), Pa

    __repr__ = short_repr

    def __post_init__(self) -> None:
        choice("interpolation", self.interpolation, ("cubic", "linear"))
        speeds = increasing("speed", self.speed, least=2, unit="rad/s")
        if speeds[0] <= 0:
            reject("speed", self.speed, "positive speeds, in rad/s")
        table = array("pressure", self.pressure, (len(speeds), None), expected=_ROWS)
        pieces = []
        for speed, row in zip(speeds, table, strict=True):
            label = f"pressure at {speed:g} rad/s"
            angle, p = closed_cycle(label, self.angle, row, self.period)
            if self.interpolation == "cubic":
                PressureTable(self.angle, row, self.period)  # warns about a coarse table
                pieces.append(scipy.interpolate.CubicSpline(angle, p, bc_type="periodic").c)
            else:
                check_peak(float(p.max()))
                slopes, zeros = np.diff(p) / np.diff(angle), np.zeros(len(p) - 1)
                pieces.append(np.array([zeros, zeros, slopes, p[:-1]]))
        assign(self, _speeds=list(map(float, speeds)), _knots=angle[:-1].tolist())
        assign(self, _pieces=np.stack(pieces, axis=-1))

    @property
    def largest_speed(self) -> float:
        """Largest speed of the table, rad/s."""
        return self._speeds[-1]

    def __call__(self, angle: ArrayLike, speed: ArrayLike) -> Array:
        """Return the absolute pressure (Pa) at crank angles (rad) and speeds (rad/s)."""
        angles, speeds = np.broadcast_arrays(np.asarray(angle, float), np.asarray(speed, float))
        known = np.asarray(self._speeds)
        row = np.clip(np.searchsorted(known, speeds, side="right") - 1, 0, len(known) - 2)
        weight = np.clip((speeds - known[row]) / (known[row + 1] - known[row]), 0.0, 1.0)
        knots = np.asarray(self._knots)
        x = knots[0] + (angles - knots[0]) % self.period
        k = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 1)
        x = x - knots[k]
        c = (1 - weight) * self._pieces[:, k, row] + weight * self._pieces[:, k, row + 1]
        return np.asarray(_cubic(c, x))

    def at(self, angle: float, speed: float) -> float:
        """Return the pressure (Pa) at one crank angle (rad) and speed, faster than `__call__`."""
        x, c, _ = self._piece(angle, speed)
        return float(_cubic(c, x))

    def slopes_at(self, angle: float, speed: float) -> tuple[float, float]:
        """Return the derivatives with respect to the angle (Pa/rad) and the speed (Pa s/rad)."""
        x, c, slope = self._piece(angle, speed)
        cube, square, linear, _ = c
        return float((3 * cube * x + 2 * square) * x + linear), float(_cubic(slope, x))

    def _piece(self, angle: float, speed: float) -> tuple[float, Array, Array]:
        """Return the distance from the last knot, the cubic, and its derivative by the speed."""
        speeds, knots = self._speeds, self._knots
        row = min(max(bisect(speeds, speed) - 1, 0), len(speeds) - 2)
        low, high = speeds[row], speeds[row + 1]
        x = knots[0] + (angle - knots[0]) % self.period
        k = bisect(knots, x) - 1
        first, second = self._pieces[:, k, row], self._pieces[:, k, row + 1]
        slope = np.asarray((second - first) / (high - low))
        c = np.asarray(first + (min(max(speed, low), high) - low) * slope)
        return x - knots[k], c, slope if low <= speed <= high else np.zeros(4)


_ANGLES = (-5.3, -0.4, 0.7, 3.1)  # where the period of a function is checked, rad
_SPEED = 100.0  # speed of this check, rad/s
_CYCLE = [4 * math.pi * k / 144 for k in range(144)]  # where the unit of a function is checked, rad
_MAX_CHANGE = 1e-6  # largest relative change of the pressure after a period
_ROWS = "absolute pressures in Pa, one row for each speed and one column for each angle"


def _number(argument: str, value: Any) -> float:
    """Return the value of a function as a float."""
    try:
        return float(value)
    except (TypeError, ValueError):
        reject(argument, value, "a function that returns a number in Pa", InputTypeError)


def check_pressure(argument: str, pressure: Any) -> bool:
    """Check a function of the crank angle, or of angle and speed; return whether it is the latter.

    An object with a true attribute `depends_on_speed` has angle and speed as arguments. The
    pressure must have the period 4π. A largest pressure that is not that of an engine gives a
    warning.
    """
    depends_on_speed = bool(getattr(pressure, "depends_on_speed", False))
    call = "pressure(angle, speed)" if depends_on_speed else "pressure(angle)"
    function(argument, pressure, f"{call}, for example a PressureTable or a PressureMap")
    more = (_SPEED,) if depends_on_speed else ()
    values = array(
        argument,
        [
            [_number(argument, pressure(angle + turn, *more)) for turn in (0.0, 4 * math.pi)]
            for angle in _ANGLES
        ],
        expected="a function with finite values in Pa",
    )
    error = np.abs(values[:, 1] - values[:, 0])
    if error.max() > _MAX_CHANGE * np.abs(values).max():
        k = int(np.argmax(error))
        first, next_cycle = values[k]
        text = (
            f"{argument} at {math.degrees(_ANGLES[k]):.0f}° is {first:.6g} Pa, and {next_cycle:.6g}"
        )
        text += (
            " Pa 720° later; it must have the period 4π, for example a PressureTable or np.interp"
        )
        raise InputError(text + " with period=", argument=argument, value=pressure)
    if not isinstance(pressure, (FourStrokePressure, PressureTable, PressureMap)):
        check_peak(max(float(pressure(angle, *more)) for angle in _CYCLE))
    return depends_on_speed


def _cubic(coefficients: Array, x: Any) -> Any:
    """Return a cubic polynomial, whose coefficients begin with that of x³."""
    cube, square, linear, constant = coefficients
    return ((cube * x + square) * x + linear) * x + constant
