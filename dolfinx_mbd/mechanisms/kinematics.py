"""Closed-form kinematics of the rigid, centric slider-crank, to hold simulations against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import number, refuse

__all__ = ["CrankMotion", "SliderCrank"]

Array = NDArray[np.float64]


class CrankMotion(NamedTuple):
    """Motion at crank angles, (nt,) each: slider in m, m/s, m/s²; rod in rad, rad/s, rad/s²."""

    slider: Array
    slider_velocity: Array
    slider_acceleration: Array
    rod_angle: Array
    rod_velocity: Array
    rod_acceleration: Array


@dataclass(frozen=True)
class SliderCrank:
    """A crank about z at the origin, a slider along x; crank angle 0 is top dead centre.

    Attributes:
        crank_radius: m.
        rod_length: m.

    Raises:
        InputError: The crank is not shorter than the rod, or a length is not positive.
    """

    crank_radius: float
    rod_length: float

    def __post_init__(self) -> None:
        number("crank_radius", self.crank_radius, positive=True, unit="m")
        length = number("rod_length", self.rod_length, positive=True, unit="m")
        if self.crank_radius >= length:
            refuse("crank_radius", self.crank_radius, f"less than the rod length, {length:g} m")

    def motion(
        self, angle: ArrayLike, speed: ArrayLike = 1.0, acceleration: ArrayLike = 0.0
    ) -> CrankMotion:
        """Motion at crank angles (rad), speeds (rad/s) and accelerations (rad/s²), arrays or
        numbers.

        The rod's angle is that of its axis, from big end to small end, against the slider's line.
        """
        angle, speed, acceleration = (
            np.asarray(x, dtype=float) for x in (angle, speed, acceleration)
        )
        r, length = self.crank_radius, self.rod_length
        s, c = np.sin(angle), np.cos(angle)
        rod = -np.arcsin(r / length * s)  # l sin β = −r sin φ
        cos, sin = np.cos(rod), np.sin(rod)
        rate = -r * c * speed / (length * cos)
        rate2 = (-r * (c * acceleration - s * speed**2) / length + sin * rate**2) / cos
        slider = r * c + length * cos
        velocity = -r * s * speed - length * sin * rate
        second = -r * (c * speed**2 + s * acceleration) - length * (cos * rate**2 + sin * rate2)
        return CrankMotion(slider, velocity, second, rod, rate, rate2)
