"""Contact of a pin with the elastic bore of a flexible body.

In each slice of the bore, the axis of the pin is at e, at the angle φ from x. The normal force F is
a pressure cos(3δ/2) over |δ| = |θ − φ| < 60°, constant along the slice. Its work on the outward
displacement w of the bore is F ŵ(φ), with the mean ŵ of w weighted by this pressure, so that

    g = c − |e| + ŵ(φ)

is the gap with the radial clearance c. f = F ∂g/∂e is the force on the pin, at its axis, and
F ∂g/∂s is the force on the coefficients s of w. The torque −½ e × f cancels the couple of the shear
that the law of films has in addition. The slope of the pin in the bore is small; its square is
neglected.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.body import Bore
from dolfinx_mbd.checks import instance, integer, number, reject
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.columns import NORMAL_FORCE
from dolfinx_mbd.kernels.films.fields import (
    E_X,
    E_X_RATE,
    E_Y,
    E_Y_RATE,
    SPIN,
    T_X,
    T_X_RATE,
    T_Y,
    T_Y_RATE,
)
from dolfinx_mbd.kernels.films.frames import (
    film_motion,
    film_wrenches,
    surface_tangents,
)
from dolfinx_mbd.mechanism.contact.contact_laws import ContactLaw
from dolfinx_mbd.mechanism.force_elements import ContactElement, FramePair
from dolfinx_mbd.mechanism.joints import FrameRef

__all__ = ["ElasticContact", "contact_motion", "elastic_tangents"]


def contact_motion(pair: FramePair, states: Array) -> dict[str, ArrayLike]:
    """Return the states (points, 3) by name, and the relative displacement in the first frame."""
    d = pair.p2 - pair.p1
    rate = pair.u2[:3] - pair.u1[:3] - np.cross(pair.u1[3:], d)
    gap, gap_rate, normal_force = states.T
    return {
        "gap": gap,
        "gap_rate": gap_rate,
        "normal_force": normal_force,
        "displacement": pair.Q1.T @ d,
        "displacement_rate": pair.Q1.T @ rate,
    }


def elastic_tangents(pair: FramePair, g: Array, dg: Array) -> tuple[Array, Array]:
    """Return the derivatives of the wrenches and of the forces on s, two (12 + m, 12 + m) matrices.

    The first is with respect to the poses and s, the second with respect to the velocities and ṡ.

    Args:
        pair: Frames of bore and journal.
        g: Loads (5,), see `kernels.films.frames`, and forces on the coefficients s, (5 + m,).
        dg: Derivatives of g, shape (5 + m, 9 + 2m). The columns are the first nine entries of the
            motion, then s, then ṡ.
    """
    D, E = surface_tangents(*pair, g, dg)
    return D, E


@dataclass(frozen=True, eq=False)
class ElasticContact(ContactElement):
    """A pin without friction in the elastic bore of a flexible body; `bore_contact` creates it.

    Attributes:
        name: Name in the system.
        first: Frame of the bore, an averaged interface that was reduced with pressure modes.
        second: Frame of the pin, with its z axis along the pin.
        clearance: Radial clearance with the undeformed bore, m.
        law: Law of the force of the whole pin, without friction. Its stiffness represents the pin
            and the surfaces; the bore deforms in addition.
        bore: The elastic bore, `body.bore("big_end")` of the reduced body.
        slices: Number of slices along the bore.

    Raises:
        InputError: An argument is invalid, or the law has friction.

    Example:
        >>> bore = mbd.body.Bore("left", 0.02, 0.02, np.zeros((7, 3, 2)))
        >>> law, ends = mbd.ContactLaw(1e9, 1.0), (ground.frame("bearing"), rod.frame("left"))
        >>> sizes = {"clearance": 5e-5, "radius": 0}
        >>> mbd.mechanism.bore_contact("p", *ends, law=law, bore=bore, **sizes).slices
        1
    """

    is_elastic: ClassVar[bool] = True
    name: str
    first: FrameRef
    second: FrameRef
    clearance: float
    law: ContactLaw
    bore: Bore
    slices: int = 1
    _surface: Array = field(init=False, repr=False)  # (m, modes)
    _along: Array = field(init=False, repr=False)  # mean of the polynomials per slice, (slices, 3)
    # Order k of each function of θ, and the weighted mean of cos kδ, (2 harmonics + 1,)
    _orders: Array = field(init=False, repr=False)
    _means: Array = field(init=False, repr=False)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        self._check_ends()
        label = f"load {self.name!r}"
        number(f"{label}: clearance", self.clearance, positive=True, unit="m")
        bore = instance(f"{label}: bore", self.bore, Bore, "body.bore('name')")
        count = integer(f"{label}: slices", self.slices, low=1)
        if instance(f"{label}: law", self.law, ContactLaw, "ContactLaw(1e9, 1.0)").friction:
            reject(f"{label}: friction of the law", self.law.friction, "0 in an elastic bore")
        # Two Gauss points in each slice
        nodes, weights = np.polynomial.legendre.leggauss(2)
        z = 0.5 * bore.length * (np.add.outer(2 * np.arange(count) + 1, nodes) / count - 1)
        _, along = bore.patterns([0.0], z.ravel())
        along = along.reshape(count, 2, -1)
        orders = (np.arange(2 * bore.harmonics + 1) + 1) // 2
        # Integral of cos kδ times the pressure cos(3δ/2), scaled so that it is 1 for k = 1: the
        # resultant of the pressure is F
        means = 2.5 * np.cos(orders * np.pi / 3) / (2.25 - orders**2)
        surface = bore.displacement.reshape(-1, bore.displacement.shape[2])
        assign(self, _surface=surface, _orders=orders, _means=means)
        assign(self, _along=np.einsum("q,iql->il", 0.5 * weights, along))

    @property
    def surface(self) -> Array:
        """Matrix W of the coefficients of w, shape (patterns, modes)."""
        return self._surface

    def placed(self, pair: FramePair) -> ElasticContact:
        """Return the contact itself; it has no lengths to measure at the initial poses."""
        return self

    def _slices(self, y: Array, surface: Array) -> tuple[Array, ...]:
        """Return z, e, ė, n, t, B = ∂ŵ/∂s, ∂B/∂φ, ∂²B/∂φ², and ∂gap/∂e of all slices.

        n and t are the directions along and across e; y is the motion (10,) of `film_motion`, and
        `surface` contains the coefficients s of w and their rates, shape (2, m).
        """
        z = self.bore.length * ((np.arange(self.slices) + 0.5) / self.slices - 0.5)
        e = y[E_X : E_Y + 1] + np.multiply.outer(z, y[T_X : T_Y + 1])
        rate = y[E_X_RATE : E_Y_RATE + 1] + np.multiply.outer(z, y[T_X_RATE : T_Y_RATE + 1])
        r = np.maximum(np.hypot(*e.T), 1e-9 * self.clearance)[:, None]  # e may be zero
        n = e / r
        t = np.column_stack([-n[:, 1], n[:, 0]])
        around, _ = self.bore.patterns(np.arctan2(e[:, 1], e[:, 0]), [0.0])
        around = around * self._means
        derivative = np.zeros_like(around)
        derivative[:, 1::2], derivative[:, 2::2] = -around[:, 2::2], around[:, 1::2]
        orders = self._orders
        B, B1, B2 = (
            np.einsum("ia,il->ial", part, self._along).reshape(len(z), -1)
            for part in (around, orders * derivative, -(orders**2) * around)
        )
        coefficients, _ = surface
        return z, e, rate, n, t, B, B1, B2, (B1 @ coefficients)[:, None] * t / r - n

    @property
    def size(self) -> float:
        """Radius of the bore, m."""
        return self.bore.radius

    def states(self, pair: FramePair, surface: Array | None = None) -> Array:
        """Return gap (m), gap rate (m/s) and normal force (N) of each slice, shape (slices, 3).

        In this and the other methods, `surface` is as in `_slices`, by default zero.
        """
        s = np.zeros((2, len(self._surface))) if surface is None else surface
        return self._states(self._slices(film_motion(*pair), s), s)

    def _states(self, parts: tuple[Array, ...], surface: Array) -> Array:
        """Return `states` from the result of `_slices`."""
        _, e, rate, _, _, B, _, _, a = parts
        coefficients, rates = surface
        gap = self.clearance - np.hypot(*e.T) + B @ coefficients
        gap_rate = (a * rate).sum(axis=1) + B @ rates
        K, power, chi = self._law()
        factor = np.maximum(1.0 - chi * gap_rate, 0.0)
        return np.column_stack([gap, gap_rate, K * np.maximum(-gap, 0.0) ** power * factor])

    def _law(self) -> Array:
        """Return stiffness, exponent and damping factor of one slice, (3,); see `ContactLaw`."""
        return self.law.numbers(1.0 / self.slices)[:3]

    def loads(self, y: Array, surface: Array) -> tuple[Array, Array]:
        """Return loads and surface forces (5 + m,) and their derivatives (5 + m, 9 + 2m).

        The loads are those of `kernels.films.frames`: the force on the pin (x, y), its first
        moments along z, and the torque about z. The columns belong to the first nine entries of the
        motion y (10,) of that module (all but d_z), to s and to ṡ.
        """
        m = len(self._surface)
        parts = self._slices(y, surface)
        coefficients, rates = surface
        loads, slopes = np.zeros(5 + m), np.zeros((5 + m, 9 + 2 * m))
        (K, power, chi), states = self._law(), self._states(parts, surface)
        for i in map(int, np.flatnonzero(states[:, NORMAL_FORCE])):
            gap, gap_rate, F = states[i]
            z, e, rate, n, t, B, B1, B2, a = (part[i] for part in parts)
            r = float(np.hypot(*e))
            f = F * a
            loads += np.concatenate([f, z * f, [0.5 * (e[1] * f[0] - e[0] * f[1])], F * B])
            # Columns: e (2), ė (2), s (m), ṡ (m)
            symmetric = np.outer(t, n) + np.outer(n, t)
            # H = ∂a/∂e
            H = (B2 @ coefficients - r) * np.outer(t, t) - (B1 @ coefficients) * symmetric
            H /= r**2
            phi_rate, zero = t @ rate / r, np.zeros(m)
            d_gap = np.concatenate([a, [0, 0], B, zero])
            d_rate = np.concatenate([H @ rate + (B1 @ rates) * t / r, a, phi_rate * B1, B])
            elastic = K * (-gap) ** power
            dF = power * F / gap * d_gap - chi * elastic * d_rate
            da = np.hstack([H, np.zeros((2, 2)), np.outer(t, B1) / r, np.zeros((2, m))])
            df = np.outer(a, dF) + F * da
            dQ = np.outer(B, dF)
            dQ[:, :2] += F * np.outer(B1, t) / r
            dT = 0.5 * (e[1] * df[0] - e[0] * df[1])
            dT[:2] += 0.5 * np.array([-f[1], f[0]])
            rows = np.vstack([df, z * df, dT, dQ])
            by_e, by_rate, by_s = rows[:, :2], rows[:, 2:4], rows[:, 4:]
            slopes[:, E_X : E_Y + 1] += by_e
            slopes[:, T_X : T_Y + 1] += z * by_e
            slopes[:, E_X_RATE : E_Y_RATE + 1] += by_rate
            slopes[:, T_X_RATE : T_Y_RATE + 1] += z * by_rate
            slopes[:, SPIN + 1 :] += by_s
        return loads, slopes

    def wrenches(self, pair: FramePair, surface: Array | None = None) -> Array:
        """Return forces and moments on both frames, then the forces on s, (12 + m,)."""
        s = np.zeros((2, len(self._surface))) if surface is None else surface
        y = film_motion(*pair)
        loads, _ = self.loads(y, s)
        return np.concatenate([film_wrenches(pair.Q1, y, loads[:5].copy()), loads[5:]])

    def derivatives(self, pair: FramePair, surface: Array | None = None) -> tuple[Array, Array]:
        """Return the derivatives of the wrenches with respect to (poses, s) and (velocities, ṡ)."""
        s = np.zeros((2, len(self._surface))) if surface is None else surface
        return elastic_tangents(pair, *self.loads(film_motion(*pair), s))

    def energy(self, pair: FramePair, surface: Array | None = None) -> float:
        """Return the energy K δⁿ⁺¹/(n + 1) of all slices, J, with the penetrations δ."""
        depth = np.maximum(-self.states(pair, surface)[:, 0], 0.0)
        K, power, _ = self._law()
        return float(K * (depth ** (power + 1.0)).sum() / (power + 1.0))

    def motion(self, pair: FramePair, surface: Array | None = None) -> dict[str, ArrayLike]:
        """Return gaps, normal forces, and the relative displacement in the first frame."""
        return contact_motion(pair, self.states(pair, surface))
