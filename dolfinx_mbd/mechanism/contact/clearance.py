"""Clearances of joints: a contact replaces the constraints that the clearance releases.

An ideal joint and the same joint with clearance share frames, name, drivers and loads.

References:
    J. Ambrósio, P. Pombo, A unified formulation for mechanical joints with and without
    clearances/bushings and/or stops in the framework of multibody systems, Multibody System
    Dynamics 42 (2018).
"""

from __future__ import annotations

from dataclasses import dataclass

from dolfinx_mbd.body import Bore
from dolfinx_mbd.checks import choice, instance, integer, number
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.columns import ABOUT_X, ABOUT_Y, ABOUT_Z, ALONG_X, ALONG_Y, ALONG_Z
from dolfinx_mbd.mechanism.contact.contact_laws import ContactLaw
from dolfinx_mbd.mechanism.contact.elastic_bores import ElasticContact
from dolfinx_mbd.mechanism.contact.elements import (
    Contact,
    bore_contact,
    guide_contact,
    sphere_contact,
)
from dolfinx_mbd.mechanism.joints import Joint, JointClearance

__all__ = ["Clearance", "GuideClearance"]

_LAW = "for example ContactLaw(1e9, damping=0.1)"


@dataclass(frozen=True)
class Clearance(JointClearance):
    """Radial clearance of a revolute, cylindrical or spherical joint.

    A revolute or cylindrical joint becomes a pin in a bore: the first frame is the bore, and the
    second frame is the pin. Without `length`, the axes remain parallel. With `length`, the pin can
    tilt until it touches both ends of the bore. A revolute joint holds the displacement along the
    axis in both cases. A spherical joint becomes a ball in a socket.

    Attributes:
        radial: Radius of the bore minus radius of the pin, m.
        law: Law of the contact of the whole pin.
        radius: Radius of the pin, m; needed for friction.
        length: Length of the pin along the axis, m; by default the axes remain parallel.
        slices: Number of slices along the length.
        bore: Elastic bore of a body with pressure modes, see `bore_contact`.

    Raises:
        InputError: A value is invalid, the law has friction but the pin has no radius, or the kind
            of the joint has no radial clearance.

    Example:
        >>> law = mbd.ContactLaw(mbd.mechanism.line_stiffness(0.02, mbd.STEEL), exponent=1.0)
        >>> ends = ground.frame("bearing"), rod.frame("left")
        >>> pin = mbd.revolute("pin", *ends, clearance=mbd.Clearance(radial=5e-5, law=law))
        >>> pin.rows, mbd.revolute("pin", *ends).rows
        ((2, 3, 4), (0, 1, 2, 3, 4))
    """

    radial: float
    law: ContactLaw
    radius: float = 0.0
    length: float | None = None
    slices: int = 5
    bore: Bore | None = None

    def __post_init__(self) -> None:
        number("radial clearance", self.radial, positive=True, unit="m")
        instance("law of a clearance", self.law, ContactLaw, _LAW)
        number("radius of a pin", self.radius, low=0.0, unit="m")
        if self.length is not None:
            number("length of a pin", self.length, positive=True, unit="m")
        integer("slices of a pin", self.slices, low=2)
        instance("bore of a clearance", self.bore, (Bore, type(None)))
        if self.law.friction and not self.radius:
            raise InputError(
                "a clearance with friction needs the radius of the pin, at which friction acts",
                argument="radius",
                value=self.radius,
            )

    @property
    def size(self) -> tuple[float, float, float]:
        """Radius and length of the pin, and radial clearance, m; 0 if unknown."""
        return self.radius, self.length or 0.0, self.radial

    def rows(self, joint: Joint) -> tuple[int, ...]:
        """Return the motions that the joint constrains in spite of its clearance."""
        tilt = () if self.length is not None else (ABOUT_X, ABOUT_Y)
        rows = {"revolute": (ALONG_Z, *tilt), "cylindrical": tilt, "spherical": ()}
        for key in ("length", "bore") if joint.kind == "spherical" else ():
            if getattr(self, key) is not None:
                raise InputError(
                    f"joint {joint.name!r}: the clearance of a spherical joint has no {key}",
                    argument=key,
                    value=getattr(self, key),
                )
        return rows[choice(f"kind of joint {joint.name!r} with a Clearance", joint.kind, rows)]

    def element(self, name: str, joint: Joint) -> Contact | ElasticContact:
        """Return the contact between the frames of a joint."""
        ends = joint.first, joint.second
        if joint.kind == "spherical":
            radii = (-(self.radius + self.radial), self.radius)
            return sphere_contact(name, *ends, radii, self.law)
        length, slices = (0.0, 1) if self.length is None else (self.length, self.slices)
        return bore_contact(
            name,
            *ends,
            clearance=self.radial,
            radius=self.radius,
            law=self.law,
            length=length,
            slices=slices,
            bore=self.bore,
        )


@dataclass(frozen=True)
class GuideClearance(JointClearance):
    """Clearance of a prismatic joint: a slider between two walls, which its four corners touch.

    The slider can move along the normal of the walls and tilt in their plane. The other motions of
    a prismatic joint remain constrained.

    Attributes:
        gap: Gap on each side of the centred slider, m.
        length: Length of the slider along the axis, m.
        height: Height of the slider between the walls, m.
        law: Law of the contact of one corner.
        direction: Normal of the walls in the first frame, ``x`` or ``y``.

    Raises:
        InputError: A value is invalid, or the joint is not prismatic.

    Example:
        >>> free = mbd.mechanism.GuideClearance(1e-4, 0.1, 0.05, mbd.ContactLaw(1e9))
        >>> ends = ground.frame("bearing"), rod.frame("left")
        >>> mbd.prismatic("guide", *ends, clearance=free).rows
        (1, 3, 5)
    """

    gap: float
    length: float
    height: float
    law: ContactLaw
    direction: str = "x"

    def __post_init__(self) -> None:
        number("gap of a guide", self.gap, positive=True, unit="m")
        number("length of a slider", self.length, positive=True, unit="m")
        number("height of a slider", self.height, positive=True, unit="m")
        instance("law of a clearance", self.law, ContactLaw, _LAW)
        choice("direction of a guide", self.direction, ("x", "y"))

    def rows(self, joint: Joint) -> tuple[int, ...]:
        """Return the motions that the joint constrains in spite of its clearance."""
        choice(f"kind of joint {joint.name!r} with a GuideClearance", joint.kind, ("prismatic",))
        if self.direction == "x":
            return ALONG_Y, ABOUT_X, ABOUT_Z
        return ALONG_X, ABOUT_Y, ABOUT_Z

    def element(self, name: str, joint: Joint) -> Contact:
        """Return the contact between the frames of a joint."""
        return guide_contact(
            name,
            joint.first,
            joint.second,
            clearance=self.gap,
            length=self.length,
            height=self.height,
            law=self.law,
            direction=self.direction,
        )
