"""Oil and its supply: viscosity laws, grooves and holes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, flag, increasing, number, reject
from dolfinx_mbd.errors import InputError

__all__ = ["Oil", "OilSupply", "vogel"]


@dataclass(frozen=True)
class Oil:
    """Viscosity of the oil at the temperature of the film, and its growth with pressure.

    The temperature is uniform in the film. Use `vogel` to obtain the viscosity at a temperature.

    Attributes:
        viscosity: Viscosity μ₀ at atmospheric pressure, Pa s.
        pressure_coefficient: Coefficient α of Barus' law μ = μ₀ e^{αp}, 1/Pa; mineral oils have
            about 1e-8 to 2.5e-8. Above p = 9.2/α, where μ = 1e4 μ₀, its tangent is used.

    Raises:
        InputError: The viscosity is not positive, or the coefficient is negative.

    Example:
        >>> mbd.bearings.Oil(0.01, pressure_coefficient=1.5e-8)
        Oil(viscosity=0.01, pressure_coefficient=1.5e-08)
    """

    viscosity: float
    pressure_coefficient: float = 0.0

    def __post_init__(self) -> None:
        number("viscosity", self.viscosity, positive=True, unit="Pa s")
        number("pressure_coefficient", self.pressure_coefficient, low=0.0, high=1e-4, unit="1/Pa")


def vogel(temperatures: ArrayLike, viscosities: ArrayLike) -> Callable[[float], float]:
    """Return Vogel's law μ(T) = a exp(b/(T − c)) through three measured viscosities.

    Args:
        temperatures: Three increasing temperatures, °C or K.
        viscosities: Viscosities at these temperatures, Pa s; they must decrease, and fall more
            steeply at the lower temperatures.

    Returns:
        Function that returns the viscosity (Pa s) at a temperature in the same unit.

    Raises:
        InputError: No law of this form passes through the three values.

    Example:
        >>> viscosity = mbd.bearings.vogel([40, 70, 100], [0.085, 0.026, 0.0115])
        >>> print(f"{viscosity(85):.4f} Pa s")
        0.0167 Pa s
    """
    T = array("temperatures", increasing("temperatures", temperatures, least=3), (3,))
    mu = array("viscosities", viscosities, (3,))
    if not (mu > 0.0).all():
        raise InputError("viscosities must be positive", argument="viscosities", value=viscosities)
    first, second = np.log(mu[0] / mu[1]), np.log(mu[1] / mu[2])
    # ln μ₁/μ₂ = b (T₂ − T₁)/((T₁ − c)(T₂ − c)), so that the ratio of both determines c
    ratio = first / second * (T[2] - T[1]) / (T[1] - T[0]) if second > 0.0 else 0.0
    if ratio <= 1.0:
        raise InputError(
            "viscosities must decrease with the temperature, and more steeply at lower "
            f"temperatures; got {mu} Pa s at {T}",
            argument="viscosities",
            value=viscosities,
        )
    c = (ratio * T[0] - T[2]) / (ratio - 1.0)
    b = first * (T[0] - c) * (T[1] - c) / (T[1] - T[0])
    a = mu[0] / np.exp(b / (T[0] - c))

    def viscosity(temperature: float) -> float:
        value = number("temperature", temperature)
        if value <= c:
            raise InputError(f"temperature must be above {c:.4g}, the pole of Vogel's law")
        return float(a * np.exp(b / (value - c)))

    return viscosity


@dataclass(frozen=True)
class OilSupply:
    """An area of the bore with a prescribed pressure: a groove along or around it, or a hole.

    Angles and positions are measured in the axes of the bore. The edges of the area may be anywhere
    between the nodes of the grid. A hole that is too small to meet the lines of the grid is
    represented by the nearest node, with a warning.

    Attributes:
        pressure: Pressure relative to the pressure at the ends, Pa.
        angle: Angle of the middle, rad.
        arc: Angle over which the area extends, rad; 2π for a groove around the bore.
        position: Axial position of the middle, m.
        length: Extent along the axis, m; by default the whole bearing. The length of a round area
            is at most that of the bearing.
        round: Whether the area is an ellipse, for example an oil hole.

    Raises:
        InputError: The pressure is negative, an extent is not positive, or a round area extends
            over more than a full turn.

    Example:
        >>> groove = mbd.bearings.OilSupply(2e5, angle=np.pi / 2, arc=np.radians(20))
        >>> hole = mbd.bearings.OilSupply(2e5, angle=np.pi, arc=0.2, length=0.004, round=True)
        >>> around = mbd.bearings.OilSupply(2e5, arc=2 * np.pi, length=0.003)
    """

    pressure: float
    angle: float = 0.0
    arc: float = 0.35
    position: float = 0.0
    length: float | None = None
    round: bool = False

    def __post_init__(self) -> None:
        number("pressure", self.pressure, low=0.0, unit="Pa")
        number("angle", self.angle, unit="rad")
        number("arc", self.arc, positive=True, unit="rad")
        number("position", self.position, unit="m")
        if self.length is not None:
            number("length", self.length, positive=True, unit="m")
        if flag("round", self.round) and self.arc > 2.0 * math.pi:
            expected = "at most 2π for a round supply: its diameter over the radius of the bearing"
            reject("arc", self.arc, expected)

    def covers(self, theta: Array, z: Array) -> NDArray[np.bool_]:
        """Return which nodes at angles (n,) and positions (m,) are in the area, Boolean (n, m)."""
        return np.asarray(self._distance(theta, z) <= 1.0 + 1e-9)

    def nearest(self, theta: Array, z: Array) -> tuple[int, int]:
        """Return the indices of the node that is nearest to the middle, relative to the size."""
        i, j = np.unravel_index(np.argmin(self._distance(theta, z)), (len(theta), len(z)))
        return int(i), int(j)

    def extent(self, theta: Array, z: Array) -> tuple[Array, Array]:
        """Return half of the extents along the lines of a grid, negative where they miss the area.

        The first array (m,) contains angles (rad) at the positions z, the second array (n,) lengths
        (m) at the angles theta.
        """
        half_length = self._half_length(z)
        around = self._angle_from_middle(theta) / (0.5 * self.arc)  # 1 at the edge of the area
        axial = np.abs(z - self.position) / half_length
        parts = []
        for distance, half in ((axial, 0.5 * self.arc), (around, half_length)):
            inside = distance <= 1.0 + 1e-9
            width = np.sqrt(np.maximum(1.0 - distance**2, 0.0)) if self.round else 1.0
            parts.append(np.where(inside, half * width, -1.0))
        return parts[0], parts[1]

    def _half_length(self, z: Array) -> float:
        """Return half the extent along the axis, m; infinite for a groove over all nodes z."""
        if self.length is not None:
            return 0.5 * self.length
        return 0.5 * float(np.ptp(z)) if self.round else math.inf

    def _angle_from_middle(self, theta: Array) -> Array:
        """Return the absolute angles from the middle of the area, rad."""
        return np.abs((theta - self.angle + math.pi) % (2.0 * math.pi) - math.pi)

    def _distance(self, theta: Array, z: Array) -> Array:
        """Return the distances of nodes from the middle, 1 at the edge of the area, (n, m)."""
        x = self._angle_from_middle(theta) / (0.5 * self.arc)
        y = np.abs(z - self.position) / self._half_length(z)
        distance = np.hypot(x[:, None], y) if self.round else np.maximum(x[:, None], y)
        return np.asarray(distance)
