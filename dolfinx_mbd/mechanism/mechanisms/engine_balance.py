"""Balance of an engine: free forces and moments of the first and second order.

At constant speed ω, with the crank angle φ, the oscillating mass m of cylinder k exerts the force
−m ẍ n on the engine, along the axis n of the cylinder. The Fourier coefficients of ẍ/ω² are those
of the exact motion of the piston. Rotating masses at the pins and the unbalance of the crank add
forces that rotate with the crank, which counterweights can cancel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import array, instance, number, object_with
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.mechanisms.crank_parts import ENDS, rod_length
from dolfinx_mbd.mechanism.mechanisms.kinematics import SliderCrank

if TYPE_CHECKING:
    from dolfinx_mbd.mechanism.mechanisms.engine_design import EngineDesign

Complex = np.ndarray[Any, np.dtype[np.complex128]]

_SAMPLES = 64  # samples of the acceleration over a turn
_ORDERS = (1, 2)


@dataclass(frozen=True, eq=False)
class EngineBalance:
    """Free forces and moments of an engine per square of the speed.

    Order o of a force is ω² times the real part of its complex amplitude times exp(i o φ); φ is the
    angle of the crank and ω its constant speed. Components are along the global x and y axes, and
    moments are about the origin. The moment about the shaft is not part of the balance.

    Attributes:
        rotating_mass: Mass of the rod and of the pin that rotates with each pin, kg.
        oscillating_mass: Oscillating mass of each cylinder, kg.
        static: Unbalance of the crank with the rotating masses: mass times eccentricity, in axes of
            the crank, shape (2,), kg m.
        couple: The same times the position along the shaft, shape (2,), kg m².
        force: Amplitudes of the orders 1 and 2, shape (2, 2), kg m.
        moment: Amplitudes of the orders 1 and 2, shape (2, 2), kg m².

    Example:
        >>> design = mbd.mechanisms.EngineDesign(cylinders=4, spacing=0.09)
        >>> rod = mbd.mechanisms.rigid_rod(length=0.137, mass=0.2)
        >>> balance = mbd.mechanisms.engine_balance(design, rod)
        >>> forces = abs(balance.force_at(314.0)[:, 0])  # along x, of the orders 1 and 2
        >>> print(forces.round())
        [   0. 1478.]
    """

    rotating_mass: float
    oscillating_mass: float
    static: Array
    couple: Array
    force: Complex
    moment: Complex

    __repr__ = short_repr

    def force_at(self, speed: float) -> Complex:
        """Return the orders 1 and 2 of the force at a speed (rad/s), shape (2, 2), N."""
        return np.asarray(self.force * _square(speed))

    def moment_at(self, speed: float) -> Complex:
        """Return the orders 1 and 2 of the moment at a speed (rad/s), shape (2, 2), N m."""
        return np.asarray(self.moment * _square(speed))

    @property
    def counterweight(self) -> tuple[Array, Array]:
        """Additional unbalance (kg m) and couple (kg m²) of the crank, shape (2,) each.

        They cancel the parts of the first order that rotate with the crank. The parts that rotate
        backward remain; they need a balancer shaft.
        """
        # With amplitudes A, F_x + i F_y is ½ (A_x + i A_y) e^{iφ}, which rotates with the crank,
        # plus a part with e^{−iφ}. The moment is z × F, so that (M_y, −M_x) stands for z (F_x, F_y)
        values = []
        for x, y in (self.force[0], (self.moment[0, 1], -self.moment[0, 0])):
            forward = 0.5 * (x + 1j * y)
            values.append(-np.array([forward.real, forward.imag]))
        return values[0], values[1]

    def summary(self, speed: float) -> str:
        """Return a table of the largest forces and moments of both orders at a speed (rad/s)."""
        lines = [f"{'order':>5}{'force, N':>14}{'moment, N m':>14}"]
        rows = zip(_ORDERS, [*self.force_at(speed)], [*self.moment_at(speed)], strict=True)
        lines += [
            f"{o:>5}{_largest(np.asarray(f)):>14.6g}{_largest(np.asarray(m)):>14.6g}"
            for o, f, m in rows
        ]
        return "\n".join(lines)


def engine_balance(
    design: EngineDesign,
    rod: ReducedBody,
    *,
    crank: ReducedBody | None = None,
    pin_mass: float = 0.0,
    unbalance: ArrayLike = (0.0, 0.0),
    couple: ArrayLike = (0.0, 0.0),
    ends: tuple[str, str] = ENDS,
) -> EngineBalance:
    """Compute the free forces and moments of orders 1 and 2 of an engine.

    The rod is replaced by masses at its ends with the same centre of mass, which gives the exact
    forces of a rod whose centre of mass is on the line between its ends.

    Args:
        design: Dimensions of the engine; its crank is balanced, unless `crank` is given.
        rod: The rod of all cylinders; its deformation does not matter.
        crank: A reduced crankshaft along z, whose unbalance and couple are added, for example that
            of `mbd.geometry.Crankshaft` with its pins, webs and counterweights.
        pin_mass: Unbalanced mass at the pin of each cylinder, kg: the pin and the unbalanced part
            of the webs. Cylinders with the same pin share its mass.
        unbalance: Unbalance of the crank without pins, such as that of counterweights: mass times
            eccentricity in axes of the crank, shape (2,), kg m.
        couple: The same times the position along the shaft, shape (2,), kg m².
        ends: Names of the interfaces of the rod at the crank and at the piston.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> vee = mbd.mechanisms.EngineDesign(
        ...     cylinders=2,
        ...     spacing=0.0,
        ...     bank_angles=np.radians([-45.0, 45.0]),
        ...     throw_angles=[0.0, 0.0],
        ...     firing_angles=np.radians([315.0, 45.0]),
        ... )
        >>> rod = mbd.mechanisms.rigid_rod(length=0.137, mass=0.2)
        >>> balance = mbd.mechanisms.engine_balance(vee, rod)
        >>> mass, _ = balance.counterweight
        >>> more = mbd.mechanisms.engine_balance(vee, rod, unbalance=mass)
        >>> bool(abs(more.force[0]).max() < 1e-12)  # a counterweight balances the order 1
        True
    """
    object_with("design", design, "piston_mass", "throw_angles", "bank_angles", "pin_offsets")
    length = rod_length(instance("rod", rod, ReducedBody), ends)
    pin_mass = number("pin_mass", pin_mass, low=0.0, unit="kg")
    big, small = (rod.interface(end).point for end in ends)
    centre = np.asarray(rod.first_moments)[0] / rod.total_mass
    fraction = float((centre - big) @ (small - big)) / length**2
    if not 0 <= fraction <= 1:
        raise InputError(f"rod {rod.name!r}: its centre of mass is not between its ends")
    rotating = pin_mass + (1 - fraction) * rod.total_mass
    oscillating = design.piston_mass + fraction * rod.total_mass
    angle = 2 * np.pi * np.arange(_SAMPLES) / _SAMPLES
    accelerations = [  # of each piston, at unit speed
        SliderCrank(design.crank_radius, length, offset).motion(angle).slider_acceleration
        for offset in map(float, design.pin_offsets)
    ]
    spectra = np.fft.rfft(accelerations)
    coefficients = 2 * spectra[:, list(_ORDERS)].T / _SAMPLES  # (2, n)
    throws, banks = np.asarray(design.throw_angles), np.asarray(design.bank_angles)
    z, orders = design.positions, np.array(_ORDERS)[:, None]
    axes = np.stack([np.cos(banks), np.sin(banks)], axis=1)
    # Amplitudes of the oscillating force of each cylinder along its axis, (2, n)
    waves = -oscillating * coefficients * np.exp(1j * orders * (throws - banks))
    pins = np.stack([np.cos(throws), np.sin(throws)], axis=1)
    static = rotating * design.crank_radius * pins.sum(axis=0)
    static = static + array("unbalance", unbalance, (2,))
    couples = rotating * design.crank_radius * (z @ pins) + array("couple", couple, (2,))
    if instance("crank", crank, (ReducedBody, type(None)), "reduce(...).body") is not None:
        assert crank is not None
        first_moment, *_ = np.asarray(crank.first_moments)
        (_, _, xz), (_, _, yz), _ = np.asarray(crank.second_moments)[0, 0]
        static, couples = static + first_moment[:2], couples + np.array([xz, yz])
    force, force_times_z = waves @ axes, (waves * z) @ axes  # (2, 2) each
    for total, vector in ((force, static), (force_times_z, couples)):
        # (x + i y) exp(iφ) has the components Re((x + i y) e^{iφ}) and Re((y − i x) e^{iφ})
        total[0] += [vector[0] + 1j * vector[1], vector[1] - 1j * vector[0]]
    moment = np.stack([-force_times_z[:, 1], force_times_z[:, 0]], axis=1)  # z × F
    return EngineBalance(rotating, oscillating, static, couples, force, moment)


def _largest(vector: Complex) -> float:
    """Return the largest length of Re(vector exp(iφ)) over φ, the half-axis of an ellipse."""
    square, product = float(np.sum(np.abs(vector) ** 2)), abs(complex(np.sum(vector**2)))
    return float(np.sqrt(0.5 * (square + product)))


def _square(speed: float) -> float:
    """Return the square of a speed, rad²/s²."""
    return number("speed", speed, low=-1e100, high=1e100, unit="rad/s") ** 2
