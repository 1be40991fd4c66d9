"""Contacts of simple shapes: spheres, planes, a pin in a bore and a slider in a guide.

The second body has one or more points. Each point has a gap to a plane, a cylinder or a sphere of
the first body; a gap below zero is a penetration. Derivatives are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.body import Bore
from dolfinx_mbd.checks import array, choice, flag, instance, integer, items, number, reject, vector
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError, UnitsWarning, warn
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.contacts import (
    CYLINDER,
    EXPONENT,
    GAP,
    PLANE,
    SPHERE,
    STIFFNESS,
    contact_derivatives,
    contact_elastic_power,
    contact_wrenches,
)
from dolfinx_mbd.mechanism.contact.contact_laws import ContactLaw
from dolfinx_mbd.mechanism.contact.elastic_bores import ElasticContact, contact_motion
from dolfinx_mbd.mechanism.force_elements import ContactElement, FramePair
from dolfinx_mbd.mechanism.joints import FrameRef

__all__ = ["Contact", "Surface", "bore_contact", "guide_contact", "plane_contact", "sphere_contact"]

_LAW = "for example ContactLaw(1e9, damping=0.1)"
_MAX_CLEARANCE = 1.0  # largest ratio to the radius of a pin or ball without a warning


class Surface(NamedTuple):
    """A surface of the first body and the point of the second body that may touch it.

    Attributes:
        shape: ``PLANE``, ``CYLINDER`` (about z of the first frame) or ``SPHERE`` (about its point).
        point: The point in the axes of the second frame, (3,), m.
        size: Position of a plane along its normal from the point of the first frame, or radius, m:
            the gap is zero if the point is at this distance.
        normal: Unit normal of a plane towards the second body in the axes of the first frame, (3,).
        sign: 1 for a convex surface, −1 for a hollow one.
        radius: Distance of the point from the surface of the second body, m, negative for a socket;
            friction acts there.
    """

    shape: int
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    size: float = 0.0
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    sign: float = 1.0
    radius: float = 0.0


@dataclass(frozen=True, eq=False)
class Contact(ContactElement):
    """A contact between two frames.

    `sphere_contact`, `plane_contact`, `bore_contact` and `guide_contact` create it. `run.element`
    returns its gaps, normal forces and impacts.

    Attributes:
        name: Name in the system.
        first: Frame of the body with the surfaces.
        second: Frame of the body with the points.
        law: Law of the force. All points share its stiffness if `shared` is true.
        surfaces: Surfaces and points.
        shared: Whether each of the P points has the stiffness K/P; otherwise each has the stiffness
            K.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> law = mbd.ContactLaw(1e9)
        >>> ball = mbd.mechanism.plane_contact(
        ...     "floor", ground.frame("bearing"), rod.frame("left"), 0.1, law
        ... )
        >>> ball.law.stiffness
        1000000000.0
    """

    is_elastic: ClassVar[bool] = True
    name: str
    first: FrameRef
    second: FrameRef
    law: ContactLaw
    surfaces: tuple[Surface, ...]
    shared: bool = False
    _points: Array = field(init=False, repr=False)  # in the second frame, (points, 3), m
    _surfaces: Array = field(init=False, repr=False)  # rows of `kernels.contacts`, (points, 7)
    _law: Array = field(init=False, repr=False)  # constants of the contact law

    __repr__ = short_repr

    def __post_init__(self) -> None:
        self._check_ends()
        instance(f"load {self.name!r}: law", self.law, ContactLaw, _LAW)
        label = f"load {self.name!r}: surfaces"
        surfaces = items(label, self.surfaces, Surface, "for example Surface(PLANE)")
        if not surfaces:
            reject(label, self.surfaces, "a list with at least one Surface")
        flag(f"load {self.name!r}: shared", self.shared)
        for surface in surfaces:
            choice(f"{label}: shape", surface.shape, (PLANE, CYLINDER, SPHERE))
            vector(f"{label}: point", surface.point, unit="m")
            vector(f"{label}: normal", surface.normal)
        rows = [(s.shape, *s.normal, s.size, s.sign, s.radius) for s in surfaces]
        fraction = 1.0 / len(rows) if self.shared else 1.0
        assign(
            self,
            surfaces=surfaces,
            _points=np.array([surface.point for surface in surfaces], dtype=float),
            _surfaces=np.array(array(label, rows)),
            _law=self.law.numbers(fraction),
        )

    def placed(self, pair: FramePair) -> Contact:
        """Return the contact itself; it has no lengths to measure at the initial poses."""
        return self

    @property
    def size(self) -> float | None:
        """Smallest radius of the bodies in contact, m; None if no radius is known."""
        radii = [abs(s.radius) for s in self.surfaces]
        radii += [s.size - s.radius for s in self.surfaces if s.shape == SPHERE and s.sign > 0.0]
        return min((radius for radius in radii if radius > 0.0), default=None)

    def states(self, pair: FramePair) -> Array:
        """Return gap (m), gap rate (m/s) and normal force (N) of each point, shape (points, 3)."""
        _, states = contact_wrenches(*pair, self._points, self._surfaces, self._law)
        return states

    def wrenches(self, pair: FramePair) -> Array:
        """Return forces and moments on both frames."""
        wrenches, _ = contact_wrenches(*pair, self._points, self._surfaces, self._law)
        return wrenches

    def elastic_power(self, pair: FramePair) -> float:  # type: ignore[override]
        """Return the power of the elastic forces, W."""
        return contact_elastic_power(*pair, self._points, self._surfaces, self._law)

    def derivatives(self, pair: FramePair) -> tuple[Array, Array]:
        """Return the derivatives of the wrenches."""
        return contact_derivatives(*pair, self._points, self._surfaces, self._law)

    def energy(self, pair: FramePair) -> float:
        """Return the energy K δⁿ⁺¹/(n + 1) of all points, J."""
        depth, power = np.maximum(-self.states(pair)[:, GAP], 0.0), self._law[EXPONENT] + 1.0
        return float(self._law[STIFFNESS] * (depth**power).sum() / power)

    def motion(self, pair: FramePair) -> dict[str, ArrayLike]:
        """Return gaps, normal forces, and the relative displacement in the first frame."""
        return contact_motion(pair, self.states(pair))


def sphere_contact(
    name: str, first: FrameRef, second: FrameRef, radii: Sequence[float], law: ContactLaw
) -> Contact:
    """Return the contact of two spheres about the points of two frames.

    Args:
        name: Name in the system.
        first: Frame at the centre of the first sphere.
        second: Frame at the centre of the second sphere.
        radii: Radii of both spheres, m. A negative first radius is a socket that contains the
            second sphere.
        law: Law of the force; `hertz_stiffness` computes the stiffness.

    Raises:
        InputError: The first radius is zero, the second is negative, or a socket is not larger than
            its ball.

    Example:
        >>> law = mbd.ContactLaw(mbd.mechanism.hertz_stiffness(0.01, 0.02, mbd.STEEL))
        >>> ends = ground.frame("bearing"), rod.frame("left")
        >>> balls = mbd.mechanism.sphere_contact("balls", *ends, (0.01, 0.02), law)
    """
    label = f"load {checked_name('name', name)!r}: radii"
    if not isinstance(radii, Sequence) or len(radii) != 2:
        raise InputError(f"{label} must be two numbers in m; got {radii!r}", argument="radii")
    first_radius, second_radius = (number(label, radius, unit="m") for radius in radii)
    is_socket = first_radius < 0.0
    too_small = is_socket and -first_radius <= second_radius
    if second_radius < 0.0 or first_radius == 0.0 or too_small:
        raise InputError(
            f"{label} must be the radii of both spheres in m. The first must not be zero; if it is "
            "negative, it is that of a socket, which must be larger than the second sphere. The "
            f"second must not be negative; got {radii!r}",
            argument="radii",
            value=radii,
        )
    if is_socket:
        _warn_of_clearance(name, -first_radius - second_radius, second_radius)
    distance = abs(first_radius + second_radius)  # distance of the centres when the surfaces touch
    sign = -1.0 if is_socket else 1.0
    surface = Surface(SPHERE, size=distance, sign=sign, radius=second_radius)
    return Contact(name, first, second, law, (surface,))


def plane_contact(
    name: str, first: FrameRef, second: FrameRef, radius: float, law: ContactLaw
) -> Contact:
    """Return the contact of a sphere with the x-y plane of the first frame, from the side of +z.

    Args:
        name: Name in the system.
        first: Frame of the plane; its z axis points out of the solid.
        second: Frame at the centre of the sphere.
        radius: Radius of the sphere, m; 0 for a point.
        law: Law of the force; `hertz_stiffness(radius, None, ...)` computes the stiffness.

    Raises:
        InputError: The radius is negative.

    Example:
        >>> law = mbd.ContactLaw(mbd.mechanism.hertz_stiffness(0.01, None, mbd.STEEL))
        >>> floor = mbd.mechanism.plane_contact(
        ...     "floor", ground.frame("bearing"), rod.frame("left"), 0.01, law
        ... )
    """
    label = f"load {checked_name('name', name)!r}: radius"
    radius = number(label, radius, low=0.0, unit="m")
    return Contact(name, first, second, law, (Surface(PLANE, size=radius, radius=radius),))


def bore_contact(
    name: str,
    first: FrameRef,
    second: FrameRef,
    *,
    clearance: float,
    radius: float,
    law: ContactLaw,
    length: float = 0.0,
    slices: int = 1,
    bore: Bore | None = None,
) -> Contact | ElasticContact:
    """Return the contact of a pin in a bore; both axes are the z axes of the frames.

    The pin is divided along its axis into slices with equal shares of the stiffness. Several slices
    resist misalignment. The bore is assumed to be at least as long as the pin.

    Args:
        name: Name in the system.
        first: Frame in the centre of the bore.
        second: Frame in the centre of the pin.
        clearance: Radial clearance: radius of the bore minus radius of the pin, m.
        radius: Radius of the pin, m; friction acts at this radius.
        law: Law of the force of the whole pin; `line_stiffness` computes the stiffness.
        length: Length of the pin, m; 0 for a contact at one point, which has one slice.
        slices: Number of slices; a pin with a length needs at least two.
        bore: Elastic bore, `body.bore("big_end")` of a body with pressure modes. The pin presses on
            it on an arc of 120° around the point of contact, over the whole length of the bore.
            The law must have no friction. Radius and length are checked but not used.

    Raises:
        InputError: An argument is invalid; or, without `bore`, there are several slices but no
            length, or a length but only one slice.

    Example:
        >>> law = mbd.ContactLaw(mbd.mechanism.line_stiffness(0.02, mbd.STEEL), exponent=1.0)
        >>> ends = ground.frame("bearing"), rod.frame("left")
        >>> pin = mbd.mechanism.bore_contact("pin", *ends, clearance=5e-5, radius=0.01, law=law)
    """
    label = f"load {checked_name('name', name)!r}"
    clearance = number(f"{label}: clearance", clearance, positive=True, unit="m")
    radius = number(f"{label}: radius", radius, low=0.0, unit="m")
    length = number(f"{label}: length", length, low=0.0, unit="m")
    slices = integer(f"{label}: slices", slices, low=1)
    if bore is not None:
        contact = ElasticContact(name, first, second, clearance, law, bore, slices)
        _warn_of_clearance(name, clearance, bore.radius)
        return contact
    _warn_of_clearance(name, clearance, radius)
    if (slices > 1) != (length > 0.0):
        raise InputError(
            f"{label}: a pin with a length needs at least two slices, and several slices need a "
            f"length; got length={length:g} m and slices={slices}",
            argument="slices",
            value=slices,
        )
    heights = length * ((np.arange(slices) + 0.5) / slices - 0.5)
    surfaces = tuple(
        Surface(CYLINDER, (0.0, 0.0, z), clearance, sign=-1.0, radius=radius)
        for z in map(float, heights)
    )
    return Contact(name, first, second, law, surfaces, shared=True)


def _warn_of_clearance(name: str, clearance: float, radius: float) -> None:
    """Warn if a clearance is larger than the radius of the pin or ball, unless that is zero."""
    ratio = clearance / radius if radius > 0.0 else 0.0
    if ratio > _MAX_CLEARANCE:
        text = (
            f"load {name!r}: the clearance of {clearance:.3g} m is {ratio:.3g} times the radius of "
            f"the pin or ball, {radius:.3g} m. Check the units: both are in m"
        )
        quantity = "clearance relative to the radius"
        warn(UnitsWarning(text, quantity=quantity, value=ratio, limit=_MAX_CLEARANCE))


def guide_contact(
    name: str,
    first: FrameRef,
    second: FrameRef,
    *,
    clearance: float,
    length: float,
    height: float,
    law: ContactLaw,
    direction: str = "x",
) -> Contact:
    """Return the contact of the four corners of a slider with two parallel walls.

    The slider moves along z of the first frame. The walls are normal to x or y of the first frame.

    Args:
        name: Name in the system.
        first: Frame in the middle of the guide.
        second: Frame in the centre of the slider.
        clearance: Gap on each side of a centred slider, m.
        length: Length of the slider along z, m.
        height: Height of the slider between the walls, m.
        law: Law of the force of one corner.
        direction: Normal of the walls, ``x`` or ``y``.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> ends, law = (ground.frame("bearing"), rod.frame("left")), mbd.ContactLaw(1e9)
        >>> guide = mbd.mechanism.guide_contact(
        ...     "guide", *ends, clearance=1e-4, length=0.1, height=0.05, law=law
        ... )
    """
    label = f"load {checked_name('name', name)!r}"
    clearance = number(f"{label}: clearance", clearance, positive=True, unit="m")
    length = number(f"{label}: length", length, positive=True, unit="m")
    height = number(f"{label}: height", height, positive=True, unit="m")
    choice(f"{label}: direction", direction, ("x", "y"))
    surfaces = []
    for side in (-1.0, 1.0):
        x, y = (side, 0.0) if direction == "x" else (0.0, side)
        for end in (-1.0, 1.0):
            corner = 0.5 * height * x, 0.5 * height * y, 0.5 * length * end
            wall = -(0.5 * height + clearance)
            surfaces.append(Surface(PLANE, corner, wall, (-x, -y, 0.0)))
    return Contact(name, first, second, law, tuple(surfaces))
