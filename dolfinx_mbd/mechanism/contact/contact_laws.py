"""Laws of the normal force and the friction in a contact.

At the penetration δ the normal force is F = K δⁿ (1 + χ δ̇), but never negative. An impact at the
speed v of two bodies that are otherwise free has the coefficient of restitution e that solves
β − ln(1 + β) = −β e − ln(1 − β e) with β = χ v, for every K, n and mass.

References:
    K. H. Hunt, F. R. E. Crossley, Journal of Applied Mechanics 42 (1975).
    H. M. Lankarani, P. E. Nikravesh, Journal of Mechanical Design 112 (1990).
    P. Flores, M. Machado, M. T. Silva, J. M. Martins, Multibody System Dynamics 25 (2011).
    K. L. Johnson, Contact Mechanics, 1985 (Hertz's theory).
    V. L. Popov, Contact Mechanics and Friction, 2010 (parallel cylinders, F = π/4 E* L δ).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import choice, number, object_with, reject

__all__ = ["ContactLaw", "contact_damping", "hertz_stiffness", "line_stiffness"]

Model = Literal["Flores", "Hunt-Crossley", "Lankarani-Nikravesh"]

_FACTORS: dict[str, Callable[[float], float]] = {
    "Flores": lambda e: 8.0 * (1.0 - e) / (5.0 * e),
    "Hunt-Crossley": lambda e: 1.5 * (1.0 - e),
    "Lankarani-Nikravesh": lambda e: 0.75 * (1.0 - e * e),
}
"""Products χ v of the damping factor and the impact speed by model."""


@dataclass(frozen=True)
class ContactLaw:
    """Normal force K δⁿ (1 + χ δ̇) of a contact, and regularized Coulomb friction.

    The friction −μ F tanh(|w|/w₀) w/|w| acts against the sliding velocity w. The contact does not
    stick: under a tangential force T below μ F it creeps at a speed of about w₀ T/(μ F).

    Attributes:
        stiffness: Stiffness K, N/mⁿ; `hertz_stiffness` and `line_stiffness` compute it.
        exponent: Exponent n: 1.5 for spheres, 1 for parallel cylinders.
        damping: Factor χ, s/m; `contact_damping` computes it from a coefficient of restitution.
        friction: Coefficient of friction μ.
        friction_speed: Speed w₀ at which tanh(1) = 76 % of the friction acts, m/s; it should be
            small compared with the sliding speeds.

    Raises:
        InputError: A value is negative, stiffness or friction speed is not positive, or the
            exponent is below 1.

    Example:
        >>> chi = mbd.mechanism.contact_damping(0.8, speed=0.5)
        >>> law = mbd.ContactLaw(1e10, damping=chi)
        >>> round(law.force(1e-5, 0.0), 1)
        316.2
        >>> round(law.restitution(0.5), 4)
        0.7885
    """

    stiffness: float
    exponent: float = 1.5
    damping: float = 0.0
    friction: float = 0.0
    friction_speed: float = 1e-3

    def __post_init__(self) -> None:
        number("stiffness of a contact", self.stiffness, positive=True, unit="N/mⁿ")
        number("exponent of a contact", self.exponent, low=1.0)
        number("damping of a contact", self.damping, low=0.0, unit="s/m")
        number("friction of a contact", self.friction, low=0.0)
        number("friction_speed of a contact", self.friction_speed, positive=True, unit="m/s")

    def numbers(self, fraction: float = 1.0) -> Array:
        """Return K (times a fraction), n, χ, μ and w₀ for the kernels, shape (5,)."""
        stiffness = self.stiffness * number("fraction", fraction, positive=True)
        others = self.exponent, self.damping, self.friction, self.friction_speed
        return np.array([stiffness, *others], dtype=float)

    def force(self, penetration: float, rate: float) -> float:
        """Return the normal force, N, for a penetration δ (m) and its rate (m/s)."""
        elastic = self._power(penetration, self.exponent)
        force = elastic * max(1.0 + self.damping * number("rate", rate), 0.0)
        if not math.isfinite(force):
            reject("rate", rate, "such that the force is finite")
        return force

    def slopes(self, penetration: float, rate: float) -> tuple[float, float]:
        """Return the derivatives of `force` with respect to the penetration and its rate."""
        if self.force(penetration, rate) == 0.0:
            return 0.0, 0.0
        elastic = self.stiffness * penetration**self.exponent
        factor = 1.0 + self.damping * rate
        return self.exponent * elastic / penetration * factor, self.damping * elastic

    def energy(self, penetration: float) -> float:
        """Return the stored energy K δⁿ⁺¹/(n + 1), J, for a penetration δ (m)."""
        power = self.exponent + 1.0
        return self._power(penetration, power) / power

    def _power(self, penetration: float, exponent: float) -> float:
        """Return K δⁿ for any exponent n, or 0 without contact."""
        depth = max(number("penetration", penetration), 0.0)
        try:
            result = self.stiffness * depth**exponent
        except OverflowError:
            result = math.inf
        if result == math.inf:
            reject("penetration", penetration, "such that the force is finite")
        return result

    def restitution(self, speed: float) -> float:
        """Return the coefficient of restitution of an impact of free bodies at a speed, m/s.

        It does not depend on stiffness, exponent and masses. It decreases with the speed.
        """
        beta = self.damping * number("speed", speed, positive=True, unit="m/s")
        if beta < 1e-4:
            return 1.0 - 2.0 * beta / 3.0
        left_side = beta - math.log1p(beta)  # of the equation for e, see the module
        # y = −ln(1 − β e) is finite even if β e is close to 1
        y = scipy.optimize.brentq(
            lambda y: y + math.expm1(-y) - left_side, 0.0, left_side + 1.0, rtol=1e-14
        )
        return -math.expm1(-float(y)) / beta


def contact_damping(restitution: float, speed: float, model: Model = "Flores") -> float:
    """Return the damping factor χ of a contact from a nominal coefficient of restitution.

    χ is a constant: at lower speeds the restitution is higher, as in measurements. The nominal
    value is exact only if an impact dissipates little energy; `ContactLaw.restitution` returns the
    value that results. The model of Flores is also useful for soft materials.

    Args:
        restitution: Nominal coefficient of restitution at `speed`, above 0 and at most 1.
        speed: Impact speed v, m/s.
        model: ``Flores`` (χ = 8(1 − e)/(5 e v)), ``Hunt-Crossley`` (χ = 3(1 − e)/(2 v)) or
            ``Lankarani-Nikravesh`` (χ = 3(1 − e²)/(4 v)).

    Returns:
        Damping factor χ, s/m.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> round(mbd.mechanism.contact_damping(0.9, 1.0, "Hunt-Crossley"), 3)
        0.15
    """
    e = number("restitution", restitution, positive=True, high=1.0)
    model = choice("model", model, _FACTORS)
    return _FACTORS[model](e) / number("speed", speed, positive=True, unit="m/s")


def hertz_stiffness(
    first_radius: float | None, second_radius: float | None, material: Any, other: Any = None
) -> float:
    """Return Hertz's stiffness K = 4/3 E* √R* of two spheres, for the exponent n = 1.5.

    Args:
        first_radius: Radius, m; None for a plane, negative for a socket that contains the other
            sphere.
        second_radius: Radius of the other body, m.
        material: Material of the first body: an object with `young` (Pa) and `poisson`.
        other: Material of the second body; by default the same.

    Returns:
        Stiffness K, N/m^1.5.

    Raises:
        InputError: A radius is zero or not a number, or the surfaces do not touch at one point.

    Example:
        >>> ball_on_plane = mbd.mechanism.hertz_stiffness(0.01, None, mbd.STEEL)
        >>> print(f"{ball_on_plane:.3e}")
        1.538e+10
    """
    curvature = _curvature("first_radius", first_radius)
    curvature += _curvature("second_radius", second_radius)
    if curvature <= 0.0:
        expected = "such that 1/R₁ + 1/R₂ is positive: a socket is larger than its ball"
        reject("second_radius", second_radius, expected)
    return 4.0 / 3.0 * _modulus(material, other) / math.sqrt(curvature)


def line_stiffness(length: float, material: Any, other: Any = None) -> float:
    """Return the stiffness K = π/4 E* L of parallel cylinders, for the exponent n = 1.

    The stiffness does not depend on the radii and remains finite for a small clearance; use it for
    pins in bores. A pin that fits closely in its bore is stiffer, because the contact is wide.

    Args:
        length: Length L of the contact along the axis, m.
        material: Material of the first body: an object with `young` (Pa) and `poisson`.
        other: Material of the second body; by default the same.

    Returns:
        Stiffness K, N/m.

    Raises:
        InputError: The length is not positive.

    Example:
        >>> print(f"{mbd.mechanism.line_stiffness(0.02, mbd.STEEL):.3e}")
        1.812e+09
    """
    length = number("length", length, positive=True, unit="m")
    stiffness = 0.25 * math.pi * _modulus(material, other) * length
    if stiffness == math.inf:
        reject("length", length, "such that the stiffness is finite")
    return stiffness


def _curvature(argument: str, radius: Any) -> float:
    """Return the inverse of a radius, or 0 for a plane."""
    if radius is None:
        return 0.0
    radius = number(argument, radius, unit="m")
    if radius == 0.0:
        reject(argument, radius, "a radius in m, None for a plane, negative for a socket")
    return 1.0 / radius


def _modulus(material: Any, other: Any) -> float:
    """Return E* of two materials; 1/E* is the sum of (1 − ν²)/E."""
    total = 0.0
    for label, item in (("material", material), ("other", material if other is None else other)):
        object_with(label, item, "young", "poisson")
        young = number(f"{label}.young", item.young, positive=True, unit="Pa")
        total += (1.0 - number(f"{label}.poisson", item.poisson) ** 2) / young
    return 1.0 / total
