"""Torque of a cylinder on its crank throw, from gas pressure and oscillating mass."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, function, instance, integer, number
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.mechanisms.gas import AMBIENT_PRESSURE
from dolfinx_mbd.mechanism.mechanisms.gas_map import check_pressure
from dolfinx_mbd.mechanism.mechanisms.kinematics import SliderCrank

HALF_ORDERS = tuple(0.5 * k for k in range(1, 25))
"""The first 24 orders of a four-stroke cycle, ½ to 12."""

_SAMPLES = 4096  # samples of a torque over two turns for its orders


@dataclass(frozen=True, eq=False)
class CylinderTorque:
    """Torque of gas and oscillating mass on a crank that rotates at a constant speed.

    With the position x of the piston, the piston area A and the oscillating mass m, the virtual
    work of both forces gives the torque −(A (p − p₀) + m ẍ) dx/dφ.

    Attributes:
        pressure: Absolute gas pressure (Pa) as a function of the crank angle (rad) from firing top
            dead centre, such as a `PressureTable`, or of crank angle and speed (rad/s), such as a
            `PressureMap`.
        crank: Kinematics of crank, rod and piston.
        bore: Bore of the cylinder, m.
        mass: Oscillating mass, kg: the piston and the part of the rod at the piston.
        firing: Angle of the shaft at which the cylinder fires, rad.
        ambient: Pressure p₀ below the piston, Pa.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> crank = mbd.mechanisms.SliderCrank(0.04, 0.137)
        >>> gas = mbd.mechanisms.FourStrokePressure(0.07, 0.04, 0.137)
        >>> cylinder = mbd.mechanisms.CylinderTorque(gas, crank, bore=0.07, mass=0.3)
        >>> print(f"{float(cylinder(np.radians(30.0), 300.0)):.1f} N m")
        687.0 N m
    """

    pressure: Callable[..., ArrayLike]
    crank: SliderCrank
    bore: float
    mass: float = 0.0
    firing: float = 0.0
    ambient: float = AMBIENT_PRESSURE

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_pressure("pressure", self.pressure)
        instance("crank", self.crank, SliderCrank)
        number("bore", self.bore, positive=True, unit="m")
        number("mass", self.mass, low=0.0, unit="kg")
        number("firing", self.firing, unit="rad")
        number("ambient", self.ambient, low=0.0, unit="Pa")

    def __call__(self, angle: ArrayLike, speed: float) -> Array:
        """Return the torque (N m) at angles of the shaft (rad) and a speed (rad/s)."""
        cycle = np.asarray(angle, dtype=float) - self.firing
        motion = self.crank.motion(cycle + self.crank.top_angle)  # at unit speed
        depends_on_speed = getattr(self.pressure, "depends_on_speed", False)
        p = self.pressure(cycle, abs(speed)) if depends_on_speed else self.pressure(cycle)
        force = np.pi * self.bore**2 / 4 * (np.asarray(p) - self.ambient)
        inertia = self.mass * speed * speed * motion.slider_acceleration
        return np.asarray(-(force + inertia) * motion.slider_velocity)

    def at(self, angle: float, speed: float) -> float:
        """Return the torque (N m) at one angle (rad) and speed (rad/s), faster than `__call__`."""
        cycle = float(angle) - self.firing
        velocity, acceleration = self.crank.slider_rates(cycle + self.crank.top_angle)
        pressure: Any = getattr(self.pressure, "at", self.pressure)
        depends_on_speed = getattr(self.pressure, "depends_on_speed", False)
        p = float(pressure(cycle, abs(speed)) if depends_on_speed else pressure(cycle))
        force = math.pi * self.bore**2 / 4 * (p - self.ambient)
        return -(force + self.mass * speed * speed * acceleration) * velocity


def torque_orders(
    torque: Callable[[Array, float], ArrayLike], speed: float, orders: ArrayLike = HALF_ORDERS
) -> Array:
    """Return the complex amplitudes of the orders of a torque with the period 4π.

    The order o of the torque is the real part of the amplitude times exp(i o φ), where φ is the
    angle of the shaft. The torque is sampled at 4096 angles.

    Args:
        torque: Function ``torque(angles, speed)``, such as a `CylinderTorque`.
        speed: Speed of the shaft, rad/s.
        orders: Multiples of ½ between 0 and 500, shape (no,); by default ½, 1, ... 12. Order 0 is
            the mean torque.

    Returns:
        Shape (no,), N m.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> sizes = abs(mbd.mechanisms.torque_orders(lambda angle, _: 3 * np.cos(2 * angle), 1.0))
        >>> int(sizes.argmax()), round(float(sizes.max()), 9)  # the fourth entry is order 2
        (3, 3.0)
    """
    function("torque", torque, "torque(angles, speed)")
    lines = half_orders(orders)
    angle = 4 * np.pi * np.arange(_SAMPLES) / _SAMPLES
    values = array("result of torque", torque(angle, number("speed", speed)), angle.shape)
    amplitudes = 2 * np.fft.rfft(values) / _SAMPLES
    amplitudes[0] *= 0.5
    return np.asarray(amplitudes[lines])


def half_orders(orders: ArrayLike) -> Array:
    """Return twice the orders as integers; raise an error if they are not multiples of ½."""
    values = array("orders", orders, (None,))
    lines = np.rint(2 * values).astype(int)
    if np.abs(2 * values - lines).max(initial=0.0) > 1e-9 or lines.min(initial=0) < 0:
        raise InputError(
            f"orders must be multiples of ½ that are not negative; got {orders!r}",
            argument="orders",
            value=orders,
        )
    integer("largest order", int(lines.max(initial=0)) // 2, high=500)
    return np.asarray(lines)
