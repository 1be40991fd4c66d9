"""Dimensions and firing order of four-stroke engines, and their gas forces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd import checks
from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import array, instance, integer, items, number, reject
from dolfinx_mbd.errors import InputError, UnitsWarning, warn
from dolfinx_mbd.mechanism.loads import JointCoordinate, JointLoad, slopes
from dolfinx_mbd.mechanism.mechanisms.gas import AMBIENT_PRESSURE
from dolfinx_mbd.mechanism.mechanisms.torsional_damper import TorsionalDamper

_BYTES_PER_CYLINDER = 30_000  # minimum memory of the bodies and joints of a cylinder, bytes
_SAME = 1e-6  # angles (rad) or relative positions that differ by less are considered equal
_FIRING_ORDERS = {3: (1, 3, 2), 4: (1, 3, 4, 2)}
"""Default firing orders by the number of cylinders."""

_INLINE_ORDERS = _FIRING_ORDERS | {5: (1, 2, 4, 5, 3), 6: (1, 5, 3, 6, 2, 4)}
"""Default firing orders of engines with a single bank."""

_BORES = (0.2, 10.0)  # plausible ratios of the bore to the crank radius
_ROD_LENGTHS = (0.0, 100.0)  # plausible ratios of the length of a rod to the crank radius
_ROD_MASSES = (0.0, 100.0)  # plausible ratios of the mass of a rod to that of a piston
_DENSITIES = (20.0, 3e4)  # plausible mass of a piston per cube of the bore, kg/m³
_LARGEST_BANK = 2 * np.pi  # largest angle of a bank, rad; a larger one is probably in degrees
# Largest plausible mean piston speed, m/s; above it the crank speed is probably given in rpm
_MAX_PISTON_SPEED = 60.0


@dataclass(frozen=True, eq=False)
class EngineDesign:
    """Dimensions, masses and firing order of an inline or V engine.

    The defaults describe the three-cylinder engine of a paper, Mathematics 13 (2025) 2797.

        four = EngineDesign(cylinders=4, bore=0.08, spacing=0.09)
        engine = inline_engine(rod, four, speed=314.0)
        vee = EngineDesign(cylinders=2, spacing=0.02, bank_angles=np.radians([-45.0, 45.0]))

    Attributes:
        cylinders: Number of cylinders.
        crank_radius: Crank radius, m.
        crank_mass: Mass of the whole crankshaft with all throws, kg.
        crank_inertia: Moment of inertia of the crankshaft about its axis, kg m²; by default that of
            a solid disc with the crank mass and the crank radius.
        piston_mass: Mass of a piston, kg.
        bore: Bore of the cylinders, m; the gas pressure acts on the area of the bore.
        spacing: Distance between cylinders along the shaft, m; 0 only for cylinders of different
            banks on one pin.
        cylinder_positions: Position of each cylinder along the shaft, shape (cylinders,), m, for
            example of cylinders that share a pin; by default they follow from the spacing.
        firing_order: Numbers of the cylinders in firing order; by default 1 3 2 for three
            cylinders and 1 3 4 2 for four; for inline engines also 1 2 4 5 3 for five cylinders
            and 1 5 3 6 2 4 for six; otherwise 1 2 3 ...
        firing_angles: Crank angle from 0 to 4π at which each cylinder fires, shape (cylinders,),
            rad; by default equally spaced in the firing order. Unequal spacing determines the
            firing order. The cylinders of a two-stroke engine fire between 0 and 2π, with a gas
            pressure of period 2π.
        throw_angles: Throw angle of each cylinder, rad; by default it follows from the firing order
            and the banks.
        bank_angles: Angle of each cylinder's axis about the shaft from the x axis, rad; by default
            0, for an inline engine.
        flywheel_inertia: Moment of inertia of a flywheel on the crank about the shaft, kg m².
        damper: A `TorsionalDamper` at the nose of the crank; by default none.
        pin_offset: Distance of the line of each piston pin from the axis of the shaft, m, due to an
            offset of the pin in the piston or of the cylinder: a number, or shape (cylinders,),
            for example with opposite signs for the two banks of a VR engine. If the cylinder is
            along x, the offset is the coordinate y of the line, and the crank pin moves towards +y
            at top dead centre.

    With an offset, crank angles are still counted from the position in which the throw points along
    the axis of the cylinder. Top dead centre, from which the angle of the gas pressure is counted,
    is later by δ with sin δ = offset / (rod length + crank radius).

    Raises:
        InputError: A value is invalid, firing order and throws contradict each other, cylinders of
            one bank overlap, or cylinders with different throws have the same position.
    """

    cylinders: int = 3
    crank_radius: float = 0.040
    crank_mass: float = 0.952
    crank_inertia: float | None = None
    piston_mass: float = 0.214
    bore: float = 0.070
    spacing: float = 0.080
    firing_order: Sequence[int] | None = None
    firing_angles: ArrayLike | None = None
    throw_angles: ArrayLike | None = None
    bank_angles: ArrayLike | None = None
    flywheel_inertia: float = 0.0
    pin_offset: float | Sequence[float] | Array = 0.0
    cylinder_positions: ArrayLike | None = None
    damper: TorsionalDamper | None = None

    def __post_init__(self) -> None:
        count = integer("cylinders", self.cylinders, low=1)
        checks.memory("cylinders", count, _BYTES_PER_CYLINDER * count)
        for key in ("crank_radius", "crank_mass", "piston_mass", "bore"):
            number(key, getattr(self, key), positive=True)
        if self.crank_inertia is not None:
            number("crank_inertia", self.crank_inertia, positive=True, unit="kg m²")
        number("spacing", self.spacing, low=0.0, unit="m")
        number("flywheel_inertia", self.flywheel_inertia, low=0.0, unit="kg m²")
        instance("damper", self.damper, (TorsionalDamper, type(None)), "TorsionalDamper(...)")
        if self.cylinder_positions is not None:
            places = array("cylinder_positions", self.cylinder_positions, (count,))
            assign(self, cylinder_positions=places)
        banks = np.zeros(count) if self.bank_angles is None else self.bank_angles
        banks = array("bank_angles", banks, (count,))
        if np.abs(banks).max() > _LARGEST_BANK:
            reject("bank_angles", self.bank_angles, "angles from −2π to 2π, in rad")
        assign(self, bank_angles=banks)
        if np.ndim(self.pin_offset):
            assign(self, pin_offset=array("pin_offset", self.pin_offset, (count,)))
        else:
            number("pin_offset", self.pin_offset, unit="m")
        if self.firing_order is None and self.firing_angles is None:
            is_inline = np.abs(np.exp(1j * banks) - np.exp(1j * banks[0])).max() < _SAME
            orders = _INLINE_ORDERS if is_inline else _FIRING_ORDERS
            order = orders.get(count, tuple(range(1, count + 1)))
            assign(self, firing_order=order)
        assign(self, firing_angles=self._checked_firing_angles())
        assign(self, throw_angles=self._checked_throws())
        self._check_positions()

    def _checked_firing_angles(self) -> Array:
        """Return the firing angles; set the firing order if only the angles are given."""
        count, order = self.cylinders, None
        if self.firing_order is not None:
            order = items("firing_order", self.firing_order, (int, np.integer))
            if sorted(order) != list(range(1, count + 1)):
                reject("firing_order", order, f"each cylinder from 1 to {count} once")
        if self.firing_angles is None:
            assert order is not None
            angles = np.zeros(count)
            angles[np.array(order) - 1] = 4 * np.pi * np.arange(count) / count
            return angles
        angles = array("firing_angles", self.firing_angles, (count,))
        if angles.min() < 0 or angles.max() >= 4 * np.pi:
            reject("firing_angles", self.firing_angles, "angles from 0 to less than 4π")
        if order is None:
            order = tuple(int(k) + 1 for k in np.argsort(angles, kind="stable"))
            assign(self, firing_order=order)
        elif np.diff(angles[np.array(order) - 1]).min(initial=0.0) < 0:
            raise InputError(
                "firing_order and firing_angles contradict each other; give one of them",
                argument="firing_order",
                value=self.firing_order,
            )
        return angles

    @property
    def positions(self) -> Array:
        """Position of each cylinder along the shaft, shape (cylinders,), m."""
        if self.cylinder_positions is not None:
            return np.asarray(self.cylinder_positions)
        middle = 0.5 * (self.cylinders - 1)
        return np.asarray(self.spacing * (np.arange(self.cylinders) - middle))

    @property
    def pin_offsets(self) -> Array:
        """Offset of the piston pin of each cylinder, shape (cylinders,), m."""
        return np.full(self.cylinders, self.pin_offset, dtype=float)

    def _check_positions(self) -> None:
        """Raise an error if cylinders overlap, or have different throws at one position."""
        places, banks = self.positions, np.exp(1j * np.asarray(self.bank_angles))
        throws = np.exp(1j * np.asarray(self.throw_angles))
        for k, j in combinations(range(self.cylinders), 2):
            distance, same_bank = abs(places[k] - places[j]), abs(banks[k] - banks[j]) < _SAME
            text = ""
            if same_bank and distance < (1 - _SAME) * self.bore:
                text = f"in one bank and {distance:.6g} m apart, less than the bore of "
                text += f"{self.bore:.6g} m"
            elif distance <= _SAME * self.crank_radius and abs(throws[k] - throws[j]) > _SAME:
                text = f"with different throws at the same position, {places[k]:.6g} m"
            if text:
                raise InputError(
                    f"cylinders {k + 1} and {j + 1} are {text}; give a larger spacing, or "
                    "cylinder_positions",
                    argument="spacing" if self.cylinder_positions is None else "cylinder_positions",
                    value=places,
                )

    def check_units(self, rod_lengths: Sequence[float], rod_masses: Sequence[float]) -> None:
        """Warn about a length (m) or a mass (kg) that suggests millimetres or grams."""
        density = self.piston_mass / self.bore / self.bore / self.bore
        length, mass = max(rod_lengths), max(rod_masses)
        for what, value, (low, high), of in (
            ("bore", self.bore / self.crank_radius, _BORES, "crank radius"),
            ("piston mass", density, _DENSITIES, "cube of the bore, kg/m³"),
            ("rod length", length / self.crank_radius, _ROD_LENGTHS, "crank radius"),
            ("rod mass", mass / self.piston_mass, _ROD_MASSES, "piston mass"),
        ):
            if not low <= value <= high:
                text = f"the {what} is {value:.3g} times the {of}; expected {low:g} to {high:g}"
                text += ". Give lengths in m and masses in kg"
                limit = low if value < low else high
                warn(UnitsWarning(text, quantity=what, value=value, limit=limit))

    def check_speed(self, argument: str, speed: float) -> None:
        """Warn about a speed of the crank (rad/s) that suggests revolutions per minute."""
        mean = 2 * self.crank_radius * abs(speed) / np.pi
        if mean > _MAX_PISTON_SPEED:
            text = f"{argument} of {speed:.6g} rad/s moves the pistons at {mean:.3g} m/s on average"
            text += "; multiply revolutions per minute by 2π/60"
            warn(UnitsWarning(text, quantity=argument, value=mean, limit=_MAX_PISTON_SPEED))

    def _checked_throws(self) -> Array:
        """Return the throw angles, rad; by default each cylinder fires at top dead centre."""
        firing = np.asarray(self.firing_angles, dtype=float)
        top = np.mod(np.asarray(self.bank_angles) - firing, 2 * np.pi)  # fire at top dead centre
        if self.throw_angles is None:
            return top
        angles: Array = array("throw_angles", self.throw_angles, firing.shape)
        error = np.abs(np.exp(1j * (angles - top)) - 1)
        if error.max() > 1e-9:
            k = int(np.argmax(error))
            fires, throw, needs = np.rad2deg([firing[k], angles[k], top[k]])
            text = f"cylinder {k + 1} fires at {fires:.6g}°, when its throw ({throw:.6g}°) is not"
            text += f" at top dead centre; it needs a throw of {needs:.6g}° or another firing order"
            raise InputError(text, argument="throw_angles", value=self.throw_angles)
        return angles


def gas_force(
    cylinder: int,
    pressure: Callable[..., ArrayLike],
    firing: float,
    bore: float,
    joint: str,
    direction: int = 1,
) -> JointLoad:
    """Return the force of the gas pressure above ambient on a piston, towards the crank.

    The joint with this name is along the cylinder; the opposite force acts on its first body.
    `firing` is the crank angle of the firing top dead centre, rad; for `direction` see `GasForce`.
    """
    value = GasForce(pressure, firing, np.pi * bore**2 / 4, direction)
    coordinate = JointCoordinate("main", "rotation")
    return JointLoad(f"gas {cylinder}", joint, "displacement", value, of=coordinate)


class GasForce:
    """Force of the gas pressure above ambient over the rotation of the crank.

    Args:
        pressure: Absolute pressure over the crank angle from the firing top dead centre, Pa.
        firing: Crank angle of the firing top dead centre, rad.
        area: Area of the piston, m².
        direction: 1 or −1; with −1 the cycle proceeds as the crank angle decreases.
    """

    def __init__(
        self,
        pressure: Callable[..., ArrayLike],
        firing: float,
        area: float,
        direction: int = 1,
    ) -> None:
        if not callable(pressure):
            reject("pressure", pressure, "a function of the crank angle")
        self.pressure, self.firing, self.area = pressure, float(firing), float(area)
        self.direction = direction
        self.depends_on_speed = bool(getattr(pressure, "depends_on_speed", False))
        self._at: Callable[..., Any] = getattr(pressure, "at", pressure)
        name = "slopes_at" if self.depends_on_speed else "slope_at"
        self._slope: Callable[..., Any] | None = getattr(pressure, name, None)

    def __call__(self, t: float, angle: float, rate: float) -> float:
        """Return the force on the piston, N."""
        cycle = self.direction * (float(angle) - self.firing)
        pressure = float(self._at(cycle, abs(rate)) if self.depends_on_speed else self._at(cycle))
        return -self.area * (pressure - AMBIENT_PRESSURE)

    def derivatives(self, t: float, angle: float, rate: float) -> tuple[float, float]:
        """Return the derivatives with respect to the angle (N/rad) and to its rate (N s/rad)."""
        cycle = self.direction * (float(angle) - self.firing)
        if self._slope is None:
            by_angle, by_rate = slopes(lambda s, w: self(t, s, w), angle, rate)
            return by_angle, by_rate if self.depends_on_speed else 0.0
        if not self.depends_on_speed:
            return -self.area * self.direction * self._slope(cycle), 0.0
        by_angle, by_speed = self._slope(cycle, abs(rate))
        area = -self.area
        return area * self.direction * by_angle, area * by_speed * np.sign(rate)
