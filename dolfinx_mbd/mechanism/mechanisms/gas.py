"""Gas pressure of an engine as a function of the crank angle: a single-zone model, or a table.

In the model of a four-stroke engine, compression and expansion are polytropic, and Wiebe's function
describes the heat release,

    dp/dθ = ((γ − 1) dQ/dθ − γ p dV/dθ) / V,      Q(θ) = Q₀ (1 − exp(−a ((θ − θ₀)/Δθ)^(m+1))),

between intake valve closing and exhaust valve opening. p, V and Q are the pressure, the volume and
the released heat at the crank angle θ; θ₀ and Δθ are the start and the duration of the heat
release. Q₀ is determined so that the curve has the requested peak. With open valves, the pressure
is the exhaust or intake pressure, with smooth transitions.

References:
    J. B. Heywood, Internal Combustion Engine Fundamentals, 1988, sections 9.2 and 14.4.
"""

from __future__ import annotations

import math
from bisect import bisect
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import array, choice, file_path, increasing, number, reject
from dolfinx_mbd.errors import AccuracyWarning, FileError, InputError, UnitsWarning, warn
from dolfinx_mbd.files import read_text
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.mechanisms.kinematics import SliderCrank

AMBIENT_PRESSURE = 101325.0
"""Standard atmosphere, Pa."""


_UNITS = {"Pa": 1.0, "kPa": 1e3, "bar": 1e5, "MPa": 1e6, "deg": math.pi / 180, "rad": 1.0}
_LARGEST_GAP = math.radians(30.0)  # largest gap between neighbouring angles of a table, rad
_MAX_JUMP = 0.05  # largest difference of the ends of a period relative to the range of pressure
_MAX_ROUGHNESS = 0.1  # largest error of a spline through every second row relative to this range
_PLAUSIBLE_PEAKS = 1e4, 1e8  # smallest and largest plausible peak pressure, Pa


class _Curve:
    """A periodic cubic spline over the crank angle in degrees."""

    _curve: scipy.interpolate.CubicSpline
    _pieces: tuple[float, list[float], list[list[float]]]

    def _set_curve(self, degrees: Array, values: Array) -> None:
        """Set the spline through values at angles in degrees."""
        curve = scipy.interpolate.CubicSpline(degrees, values, bc_type="periodic")
        knots = curve.x.tolist()
        pieces = knots[-1] - knots[0], knots[:-1], curve.c.T.tolist()
        assign(self, _curve=curve, _pieces=pieces)

    def __call__(self, angle: ArrayLike) -> Array:
        """Return the absolute pressure (Pa) at crank angles (rad)."""
        return self._curve(np.rad2deg(angle))  # the spline is periodic: any angle is valid

    def at(self, angle: float) -> float:
        """Return the pressure (Pa) at one crank angle (rad), faster than `__call__`."""
        x, (c3, c2, c1, c0) = self._piece(angle)
        return ((c3 * x + c2) * x + c1) * x + c0

    def slope_at(self, angle: float) -> float:
        """Return the derivative of the pressure at one crank angle (rad), Pa/rad."""
        x, (c3, c2, c1, _) = self._piece(angle)
        return math.degrees((3 * c3 * x + 2 * c2) * x + c1)

    def _piece(self, angle: float) -> tuple[float, list[float]]:
        """Return the distance from the last knot in degrees, and the coefficients of the cubic."""
        period, knots, pieces = self._pieces
        degrees = knots[0] + (math.degrees(angle) - knots[0]) % period
        k = bisect(knots, degrees) - 1
        return degrees - knots[k], pieces[k]


@dataclass(frozen=True, eq=False)
class PressureTable(_Curve):
    """Absolute pressure in a cylinder from a table over the crank angle, such as a measurement.

    A periodic cubic spline interpolates the table. Angle 0 is the firing top dead centre.

    Attributes:
        angle: Increasing crank angles, shape (n,), rad. They cover a period without a gap of more
            than 30°; the end of the period may be included.
        pressure: Absolute pressures, shape (n,), Pa.
        period: Period, rad; by default two turns, for four strokes.

    Warns:
        AccuracyWarning: The table is too coarse or too noisy: a spline through every second row
            deviates from the other rows by more than 10 % of the range of the pressure.
        UnitsWarning: The largest pressure is less than 0.1 bar or more than 1000 bar.

    Raises:
        InputError: The angles do not increase or do not cover the period, a pressure is not
            positive, or the pressures at both ends of the period differ by more than 5 % of their
            range.

    Example:
        >>> angle = np.radians(np.arange(0.0, 721.0, 5.0))
        >>> gas = mbd.mechanisms.PressureTable(angle, 2e5 + 1e5 * np.cos(angle / 2))
        >>> round(float(gas(4 * np.pi)))
        300000
    """

    angle: ArrayLike
    pressure: ArrayLike
    period: float = 4 * math.pi
    # Pressure over the angle in degrees
    _curve: scipy.interpolate.CubicSpline = field(init=False, repr=False)
    # Period, knots and coefficients of `_curve` as plain numbers
    _pieces: tuple[float, list[float], list[list[float]]] = field(init=False, repr=False)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        angle, p = closed_cycle("pressure", self.angle, self.pressure, self.period)
        self._set_curve(np.rad2deg(angle), p)
        if self(np.linspace(angle[0], angle[-1], 10 * len(angle))).min() <= 0:
            text = "a smooth curve; its spline has negative pressures"
            reject("pressure", self.pressure, text)
        self._check_smoothness(np.rad2deg(angle), p)
        check_peak(float(p.max()))

    def _check_smoothness(self, degrees: Array, p: Array) -> None:
        """Warn if a spline through every second row of the table does not fit the other rows."""
        rows = np.union1d(np.arange(0, len(p), 2), [len(p) - 1])
        spline = scipy.interpolate.CubicSpline(degrees[rows], p[rows], bc_type="periodic")
        error = float(np.abs(spline(degrees) - p).max()) / max(float(np.ptp(p)), 1e-300)
        if error > _MAX_ROUGHNESS:
            text = (
                "the table of the gas pressure is too coarse or too noisy for a smooth curve: "
                f"every second row predicts the others with an error of {100 * error:.2g} % of "
                "the range of the pressure. Smooth the table or add angles"
            )
            warn(AccuracyWarning(text, quantity="roughness", value=error, limit=_MAX_ROUGHNESS))

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        angle_unit: Literal["deg", "rad"] = "deg",
        pressure_unit: Literal["Pa", "kPa", "bar", "MPa"] = "bar",
        period: float = 4 * math.pi,
    ) -> PressureTable:
        """Read a file of comma-separated values with columns of angle and pressure.

        Args:
            path: Path of the file, in UTF-8, UTF-16 or Windows-1252. Lines before the first line of
                numbers are skipped, and columns after the second are ignored.
            angle_unit: Unit of the angles.
            pressure_unit: Unit of the absolute pressures.
            period: Period, rad; by default two turns, for four strokes.

        Raises:
            FileError: The file does not contain two columns of numbers.
            InputError: The table is not a pressure over a period; see `PressureTable`.
            OSError: The file cannot be read.

        Example:
            >>> degrees = np.arange(0.0, 721.0, 5.0)
            >>> table = np.column_stack([degrees, 2 + np.cos(np.radians(degrees / 2))])
            >>> np.savetxt("gas.csv", table, delimiter=",", header="degrees,bar")
            >>> round(float(mbd.mechanisms.PressureTable.read("gas.csv")(0.0)))
            300000
        """
        choice("angle_unit", angle_unit, ("deg", "rad"))
        choice("pressure_unit", pressure_unit, ("Pa", "kPa", "bar", "MPa"))
        path = file_path("path", path)
        lines = read_text(path, "a table of pressures").splitlines()
        first = next((k for k, line in enumerate(lines) if _numbers(line)), len(lines))
        rows = [(k, line) for k, line in enumerate(lines[first:], first + 1) if line.strip()]
        table = [_numbers(line) for _, line in rows]
        if not table or None in table:
            k = rows[table.index(None)][0] if table else len(lines)
            text = f"{path}: expected an angle and a pressure, separated by a comma, in line {k}"
            raise FileError(text, path=path)
        angle, pressure = np.array(table, dtype=float).T
        return cls(angle * _UNITS[angle_unit], pressure * _UNITS[pressure_unit], period)


_SIGNED = ("ignition", "intake_closes", "exhaust_opens", "pin_offset")  # may be negative
_PRESSURES = "positive absolute pressures, one for each angle, in Pa"  # expected, in messages


def check_peak(peak: float) -> None:
    """Warn if the largest pressure (Pa) is not that of an engine, because its unit is wrong."""
    lowest, highest = _PLAUSIBLE_PEAKS
    if not lowest <= peak <= highest:
        text = f"the largest gas pressure is {peak:.3g} Pa; give absolute pressures in Pa"
        text += ", or the unit of a file: PressureTable.read(path, pressure_unit=...)"
        limit = lowest if peak < lowest else highest
        warn(UnitsWarning(text, quantity="gas pressure", value=peak, limit=limit))


def closed_cycle(
    argument: str, angle: ArrayLike, pressure: ArrayLike, period: float
) -> tuple[Array, Array]:
    """Return angles (rad) and pressures (Pa) that cover a period including its end.

    `argument` is the name of the pressures in error messages. See `PressureTable` for the checks.
    """
    period = number("period", period, positive=True, unit="rad")
    x = np.array(increasing("angle", angle, least=4, unit="rad"), dtype=float)
    p = np.array(array(argument, pressure, x.shape, expected=_PRESSURES))
    if p.min() <= 0:
        reject(argument, pressure, _PRESSURES)
    extent, spread = x[-1] - x[0], float(np.ptp(p))
    if extent > period * (1 + 1e-9):
        reject("angle", angle, f"angles within one period, {math.degrees(period):g}°")
    if extent > period * (1 - 1e-9):
        if abs(p[-1] - p[0]) > _MAX_JUMP * spread:
            text = f"equal at both ends of the period; got {p[0]:g} Pa and {p[-1]:g} Pa"
            reject(argument, pressure, text)
        p[0] = p[-1] = 0.5 * (p[0] + p[-1])
    else:
        x, p = np.append(x, x[0] + period), np.append(p, p[0])
    gap = float(np.diff(x).max())
    if gap > _LARGEST_GAP * (1 + 1e-9):
        text = f"angles over the whole period; there is a gap of {math.degrees(gap):.4g}°"
        reject("angle", angle, text)
    return x, p


def _numbers(line: str) -> tuple[float, float] | None:
    """Return the first two numbers of a line of comma-separated values, or None."""
    cells = line.split(",")
    try:
        return float(cells[0]), float(cells[1])
    except (IndexError, ValueError):
        return None


@dataclass(frozen=True)
class FourStrokePressure(_Curve):
    """Absolute pressure in a cylinder as a function of the crank angle.

    Angle 0 is the firing top dead centre.

        gas = FourStrokePressure(0.07, 0.04, 0.137, peak_pressure=80e5)
        engine = inline_engine(rod, speed=628.3, pressure=gas)

    Attributes:
        bore: Bore of the cylinder, m.
        crank_radius: Crank radius, m.
        rod_length: Distance between the bores of the rod, m.
        peak_pressure: Largest pressure, Pa.
        compression_ratio: Largest volume divided by the smallest volume.
        intake_pressure: Pressure in the intake manifold, Pa.
        exhaust_pressure: Pressure in the exhaust manifold, Pa.
        polytropic: Exponent γ of compression and expansion.
        ignition: Start of the heat release, degrees of crank angle.
        burn_duration: Duration of the heat release, degrees of crank angle.
        intake_closes: Closing of the intake valve, degrees of crank angle.
        exhaust_opens: Opening of the exhaust valve, degrees of crank angle.
        wiebe_efficiency: Parameter a of Wiebe's function.
        wiebe_form: Parameter m of Wiebe's function.
        pin_offset: Offset of the piston pin, m; see `EngineDesign`.

    Raises:
        InputError: An argument is invalid, or no heat release gives the peak pressure.
    """

    bore: float
    crank_radius: float
    rod_length: float
    peak_pressure: float = 91e5
    compression_ratio: float = 10.0
    intake_pressure: float = 0.95e5
    exhaust_pressure: float = 1.10e5
    polytropic: float = 1.32
    ignition: float = -15.0
    burn_duration: float = 50.0
    intake_closes: float = -140.0
    exhaust_opens: float = 130.0
    wiebe_efficiency: float = 5.0
    wiebe_form: float = 2.0
    pin_offset: float = 0.0
    _curve: scipy.interpolate.CubicSpline = field(init=False, repr=False, compare=False)
    _pieces: tuple[float, list[float], list[list[float]]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for item in fields(self):
            if item.init:
                positive = item.name not in _SIGNED
                number(item.name, getattr(self, item.name), positive=positive)
        self._kinematics()  # checks the lengths
        number("compression_ratio", self.compression_ratio, low=math.nextafter(1.0, 2.0))
        events = self.intake_closes, self.ignition, self.exhaust_opens
        if not -180 <= events[0] < events[1] < events[2] <= 180:
            text = "expected -180° <= intake_closes < ignition < exhaust_opens <= 180°; got "
            raise InputError(text + ", ".join(f"{e:g}" for e in events))
        # Angles with closed valves in steps of 0.25°, including the end
        closed = np.arange(self.intake_closes, self.exhaust_opens + 0.125, 0.25, dtype=float)

        largest_heat = 50.0 * self.peak_pressure * self.displacement  # more than enough, J
        compression, hottest = (self._closed_cycle(closed, heat) for heat in (0.0, largest_heat))

        def pressure(fraction: float) -> Array:  # the equation is linear in the heat
            return compression + fraction * (hottest - compression)

        def excess(fraction: float) -> float:
            return float(pressure(fraction).max()) - self.peak_pressure

        if not excess(0.0) <= 0 <= excess(1.0):
            peak, reached = self.peak_pressure / 1e5, compression.max() / 1e5
            text = f"no heat release gives a peak of {peak:.4g} bar"
            raise InputError(f"{text}; compression alone reaches {reached:.4g} bar")
        fraction = float(scipy.optimize.brentq(excess, 0.0, 1.0, xtol=1e-12))
        self._set_curve(*self._whole_cycle(closed, pressure(fraction)))

    @property
    def area(self) -> float:
        """Piston area, m²."""
        return np.pi * self.bore * self.bore / 4

    @property
    def displacement(self) -> float:
        """Swept volume of the cylinder, m³."""
        return self._kinematics().stroke * self.area

    def _kinematics(self) -> SliderCrank:
        """Return the motion of crank, rod and piston."""
        return SliderCrank(self.crank_radius, self.rod_length, self.pin_offset)

    def _closed_cycle(self, degrees: Array, heat: float) -> Array:
        """Return the pressure at crank angles with closed valves, by Heun's method."""
        x = np.maximum((degrees - self.ignition) / self.burn_duration, 0.0)
        burnt = 1.0 - np.exp(-self.wiebe_efficiency * x ** (self.wiebe_form + 1))
        clearance = self.displacement / (self.compression_ratio - 1)
        crank = self._kinematics()
        top = crank.motion(crank.top_angle).slider
        motion = crank.motion(np.deg2rad(degrees) + crank.top_angle)
        volume = clearance + self.area * (top - motion.slider)
        gain_times_volume = np.diff(burnt) * heat * (self.polytropic - 1)
        # Exact along a polytrope; the heat of an interval is released at its mean volume
        ratio = (volume[:-1] / volume[1:]) ** self.polytropic
        gain = gain_times_volume / (0.5 * (volume[:-1] + volume[1:]))
        pressure = np.empty_like(degrees)
        pressure[0] = self.intake_pressure
        for k in range(len(gain)):
            pressure[k + 1] = (pressure[k] + 0.5 * gain[k]) * ratio[k] + 0.5 * gain[k]
        return pressure

    def _whole_cycle(self, closed: Array, pressure: Array) -> tuple[Array, Array]:
        """Return crank angles from −180 to 540 degrees and the pressure at them."""

        def blend(degrees: Array, start: float, length: float, a: float, b: float):  # type: ignore[no-untyped-def]
            """Return a smooth step from a to b that begins at the angle `start`."""
            x = np.clip((degrees - start) / length, 0.0, 1.0)
            return a + (b - a) * 0.5 * (1.0 - np.cos(np.pi * x))

        # The pressure falls to that of the exhaust over 70°, and to that of the intake over 40°
        # around the top dead centre of the gas exchange, 360°
        before = np.arange(-180.0, closed[0], 1.0)
        exhaust = np.arange(float(closed[-1]) + 1.0, 340.0, 1.0, dtype=float)
        overlap = np.arange(340.0, 540.0 + 0.5, 1.0, dtype=float)
        opening = blend(exhaust, closed[-1], 70.0, float(pressure[-1]), self.exhaust_pressure)
        intake = blend(overlap, 340.0, 40.0, self.exhaust_pressure, self.intake_pressure)
        degrees = np.concatenate([before, closed, exhaust, overlap])
        values = np.concatenate(
            [np.full(len(before), self.intake_pressure), pressure, opening, intake]
        )
        values[-1] = values[0]
        return degrees, values
