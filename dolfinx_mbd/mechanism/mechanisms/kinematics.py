"""Closed-form kinematics of the rigid slider-crank, centric or with an offset.

With the crank radius r, the rod length l and the offset e, the crank angle φ, the rod angle β and
the position x of the slider satisfy

    l sin β = e − r sin φ,    x = r cos φ + l cos β.

When crank and rod are in line, x has an extreme value. The largest is (r + l) cos δ at φ = δ with
sin δ = e / (l + r); the smallest occurs at sin φ = −e / (l − r).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import number, reject
from dolfinx_mbd.html import short_repr

_MAX_LENGTH = 1e6  # largest length of a rod in crank radii; longer ones have much round-off


class CrankMotion(NamedTuple):
    """Motion of a slider-crank at nt crank angles.

    Attributes:
        slider: Position of the slider, shape (nt,), m.
        slider_velocity: Velocity of the slider, shape (nt,), m/s.
        slider_acceleration: Acceleration of the slider, shape (nt,), m/s².
        rod_angle: Angle between the rod, from big end to small end, and the line of the slider,
            shape (nt,), rad.
        rod_velocity: Angular velocity of the rod, shape (nt,), rad/s.
        rod_acceleration: Angular acceleration of the rod, shape (nt,), rad/s².
    """

    slider: Array
    slider_velocity: Array
    slider_acceleration: Array
    rod_angle: Array
    rod_velocity: Array
    rod_acceleration: Array

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True)
class SliderCrank:
    """A crank about z at the origin and a slider along x; at crank angle 0 the crank is along x.

        exact = SliderCrank(0.04, 0.137).motion(angle=0.3, speed=628.3)

    Attributes:
        crank_radius: Crank radius, m.
        rod_length: Length of the rod, m.
        pin_offset: Position y of the line on which the piston pin moves, m.

    Raises:
        InputError: The rod is not longer than crank and offset together, is longer than a million
            crank radii, or a length is not positive.
    """

    crank_radius: float
    rod_length: float
    pin_offset: float = 0.0

    def __post_init__(self) -> None:
        number("crank_radius", self.crank_radius, positive=True, unit="m")
        length = number("rod_length", self.rod_length, positive=True, unit="m")
        if self.crank_radius >= length:
            reject("crank_radius", self.crank_radius, f"less than the rod length, {length:g} m")
        offset = number("pin_offset", self.pin_offset, unit="m")
        if self.crank_radius + abs(offset) >= length:
            limit = length - self.crank_radius
            text = f"between ±{limit:g} m, the rod length minus the crank radius"
            reject("pin_offset", offset, text)
        if length > _MAX_LENGTH * self.crank_radius:
            limit = _MAX_LENGTH * self.crank_radius
            reject("rod_length", length, f"at most {_MAX_LENGTH:g} crank radii, {limit:g} m")

    @property
    def top_angle(self) -> float:
        """Crank angle of top dead centre, rad; zero without an offset."""
        return float(np.arcsin(self.pin_offset / (self.rod_length + self.crank_radius)))

    @property
    def stroke(self) -> float:
        """Distance between the dead centres, m."""
        # Crank and rod in line: their lengths add at the top and subtract at the bottom
        top = math.sqrt((self.rod_length + self.crank_radius) ** 2 - self.pin_offset**2)
        bottom = math.sqrt((self.rod_length - self.crank_radius) ** 2 - self.pin_offset**2)
        return top - bottom

    def slider_rates(self, angle: float) -> tuple[float, float]:
        """Return dx/dφ (m/rad) and d²x/dφ² (m/rad²) at one crank angle, faster than `motion`."""
        r, length = self.crank_radius, self.rod_length
        s, c = math.sin(angle), math.cos(angle)
        # Of the rod: sine and cosine of its angle, and dβ/dφ and d²β/dφ²
        sin = (self.pin_offset - r * s) / length
        cos = math.sqrt(1.0 - sin * sin)
        rate = -r * c / (length * cos)
        rate2 = (r * s / length + sin * rate * rate) / cos
        return -r * s - length * sin * rate, -r * c - length * (cos * rate * rate + sin * rate2)

    def motion(
        self, angle: ArrayLike, speed: ArrayLike = 1.0, acceleration: ArrayLike = 0.0
    ) -> CrankMotion:
        """Compute the motion at given crank angles.

        Args:
            angle: Crank angles, rad: a number or an array.
            speed: Crank speeds, rad/s.
            acceleration: Angular accelerations of the crank, rad/s².

        Returns:
            The motion of the slider and the rod.
        """
        angle, speed, acceleration = map(np.asarray, (angle, speed, acceleration))
        r, length = self.crank_radius, self.rod_length
        s, c = np.sin(angle), np.cos(angle)
        rod = np.arcsin((self.pin_offset - r * s) / length)
        cos, sin = np.cos(rod), np.sin(rod)
        rate = -r * c * speed / (length * cos)
        rate2 = (-r * (c * acceleration - s * speed**2) / length + sin * rate**2) / cos
        slider = r * c + length * cos
        velocity = -r * s * speed - length * sin * rate
        second = -r * (c * speed**2 + s * acceleration) - length * (cos * rate**2 + sin * rate2)
        return CrankMotion(slider, velocity, second, rod, rate, rate2)
