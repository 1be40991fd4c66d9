"""Oil films as the clearance of joints."""

from __future__ import annotations

from typing import Any

from dolfinx_mbd.checks import choice, reject
from dolfinx_mbd.errors import InputTypeError
from dolfinx_mbd.kernels.columns import ABOUT_X, ABOUT_Y, ALONG_Z
from dolfinx_mbd.mechanism.bearings.film_bearing import FilmBearing
from dolfinx_mbd.mechanism.joints import FrameRef, Joint, JointClearance

__all__ = ["OilFilm"]

_ROWS = {
    "revolute": (ALONG_Z, ABOUT_X, ABOUT_Y),
    "cylindrical": (ABOUT_X, ABOUT_Y),
    "spherical": (ALONG_Z,),
}
"""Motions that a joint with an oil film constrains, by the kind of the joint."""


class OilFilm(JointClearance):
    """Oil film that carries the radial load of a revolute, cylindrical or spherical joint.

    The first frame of the joint is the bore, and the second frame is the journal. The joint keeps
    its other constraints: the axes of a revolute or cylindrical joint remain parallel, and a
    revolute or spherical joint holds the displacement along the axis.

    Args:
        bearing: Class of the bearing, for example `ShortBearing`.
        **arguments: Arguments of the bearing after its frames.

    Raises:
        InputError: An argument is invalid, or the kind of the joint has no radial clearance.

    Example:
        >>> film = mbd.bearings.OilFilm(
        ...     mbd.bearings.ShortBearing, radius=0.02, length=0.01, clearance=2e-5, viscosity=0.01
        ... )
        >>> mbd.revolute("pin", *ends, clearance=film).rows
        (2, 3, 4)
    """

    def __init__(self, bearing: type[FilmBearing], **arguments: Any) -> None:
        if not (isinstance(bearing, type) and getattr(bearing, "has_film", False)):
            reject("bearing", bearing, "a class of bearings, such as ShortBearing", InputTypeError)
        self.bearing, self.arguments = bearing, arguments
        self._create("film", FrameRef("bore", "z"), FrameRef("journal", "z"))  # checks arguments

    def __repr__(self) -> str:
        return f"<OilFilm: {self.bearing.__name__}, {', '.join(self.arguments)}>"

    def _create(self, name: str, first: FrameRef, second: FrameRef) -> FilmBearing:
        """Return the bearing; raise an error for arguments that its class does not have."""
        try:
            return self.bearing(name, first, second, **self.arguments)
        except TypeError as error:
            text = f"arguments of {self.bearing.__name__}: {error}"
            raise InputTypeError(text, argument="arguments", value=self.arguments) from error

    @property
    def size(self) -> tuple[float, float, float]:
        """Radius, length and radial clearance of the bearing, m; 0 if unknown."""
        radius, length, clearance = map(self.arguments.get, ("radius", "length", "clearance"))
        return radius or 0.0, length or 0.0, clearance or 0.0

    def rows(self, joint: Joint) -> tuple[int, ...]:
        """Return the motions that the joint constrains in spite of its clearance."""
        return _ROWS[choice(f"kind of joint {joint.name!r} with an OilFilm", joint.kind, _ROWS)]

    def element(self, name: str, joint: Joint) -> FilmBearing:
        """Return the bearing between the frames of a joint."""
        return self._create(name, joint.first, joint.second)
