"""Gas pressure of a four-stroke engine as a function of the crank angle, by a single-zone model.

Compression and expansion are polytropic, and Wiebe's function describes the heat release,

    dp/dθ = ((γ − 1) dQ/dθ − γ p dV/dθ) / V,      Q(θ) = Q₀ (1 − exp(−a ((θ − θ₀)/Δθ)^(m+1))),

between intake valve closing and exhaust valve opening. Q₀ is determined so that the curve has the
requested peak. Elsewhere the pressure is the exhaust or intake pressure, with smooth transitions.

References:
    J. B. Heywood, Internal Combustion Engine Fundamentals, 1988, sections 9.2 and 14.4.
"""

from __future__ import annotations

import math
from bisect import bisect
from dataclasses import dataclass, field, fields

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import number
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanisms.kinematics import SliderCrank

AMBIENT_PRESSURE = 101325.0
"""Standard atmosphere, Pa."""


@dataclass(frozen=True)
class FourStrokePressure:
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
    _curve: scipy.interpolate.CubicSpline = field(init=False, repr=False, compare=False)
    _pieces: tuple[list[float], list[list[float]]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for item in fields(self):
            if item.init:
                positive = item.name not in ("ignition", "intake_closes", "exhaust_opens")
                number(item.name, getattr(self, item.name), positive=positive)
        SliderCrank(self.crank_radius, self.rod_length)  # checks the lengths
        number("compression_ratio", self.compression_ratio, low=math.nextafter(1.0, 2.0))
        events = self.intake_closes, self.ignition, self.exhaust_opens
        if not -180 <= events[0] < events[1] < events[2] <= 180:
            text = "expected -180° <= intake_closes < ignition < exhaust_opens <= 180°; got "
            raise InputError(text + ", ".join(f"{e:g}" for e in events))
        closed = np.arange(self.intake_closes, self.exhaust_opens + 0.125, 0.25, dtype=float)

        def excess(heat: float) -> float:
            return float(self._closed_cycle(closed, heat).max()) - self.peak_pressure

        largest = 50.0 * self.peak_pressure * self.displacement
        if not excess(0.0) <= 0 <= excess(largest):
            peak, compression = self.peak_pressure / 1e5, (excess(0.0) + self.peak_pressure) / 1e5
            text = f"no heat release gives a peak of {peak:.4g} bar"
            raise InputError(f"{text}; compression alone reaches {compression:.4g} bar")
        heat = scipy.optimize.brentq(excess, 0.0, largest, xtol=1e-9 * largest)
        curve = self._whole_cycle(closed, self._closed_cycle(closed, heat))
        assign(self, _curve=curve, _pieces=(curve.x[:-1].tolist(), curve.c.T.tolist()))

    @property
    def area(self) -> float:
        """Piston area, m²."""
        return np.pi * self.bore * self.bore / 4

    @property
    def displacement(self) -> float:
        """Swept volume of the cylinder, m³."""
        return 2 * self.crank_radius * self.area

    def __call__(self, angle: ArrayLike) -> Array:
        """Return the absolute pressure (Pa) at crank angles (rad), with the period 4π."""
        return self._curve(np.mod(np.rad2deg(angle) + 180.0, 720.0) - 180.0)

    def at(self, angle: float) -> float:
        """Return the pressure (Pa) at one crank angle (rad), faster than `__call__`."""
        degrees = (math.degrees(angle) + 180.0) % 720.0 - 180.0
        knots, pieces = self._pieces
        k = bisect(knots, degrees) - 1
        c3, c2, c1, c0 = pieces[k]
        x = degrees - knots[k]
        return ((c3 * x + c2) * x + c1) * x + c0

    def _closed_cycle(self, degrees: Array, heat: float) -> Array:
        """Return the pressure at crank angles with closed valves, by Heun's method."""
        x = np.maximum((degrees - self.ignition) / self.burn_duration, 0.0)
        burnt = 1.0 - np.exp(-self.wiebe_efficiency * x ** (self.wiebe_form + 1))
        clearance = self.displacement / (self.compression_ratio - 1)
        top = self.crank_radius + self.rod_length
        motion = SliderCrank(self.crank_radius, self.rod_length).motion(np.deg2rad(degrees))
        volume = clearance + self.area * (top - motion.slider)
        work = np.diff(burnt) * heat * (self.polytropic - 1)
        # exact along a polytrope; the heat of an interval is released at its mean volume
        ratio = (volume[:-1] / volume[1:]) ** self.polytropic
        gain = work / (0.5 * (volume[:-1] + volume[1:]))
        pressure = np.empty_like(degrees)
        pressure[0] = self.intake_pressure
        for k in range(len(work)):
            pressure[k + 1] = (pressure[k] + 0.5 * gain[k]) * ratio[k] + 0.5 * gain[k]
        return pressure

    def _whole_cycle(self, closed: Array, pressure: Array) -> scipy.interpolate.CubicSpline:
        """Return a periodic spline of the pressure from −180 to 540 degrees."""

        def blend(degrees: Array, start: float, length: float, a: float, b: float):  # type: ignore[no-untyped-def]
            x = np.clip((degrees - start) / length, 0.0, 1.0)
            return a + (b - a) * 0.5 * (1.0 - np.cos(np.pi * x))

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
        return scipy.interpolate.CubicSpline(degrees, values, bc_type="periodic")
