"""Cables and slender rods of any displacement in a mechanism: position and slope at the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from ufl.core.expr import Expr

from dolfinx_mbd import checks
from dolfinx_mbd.cables.line_body import AbsoluteBody, LineForms, hermite
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms.cables import Cable

__all__ = ["CableBody", "CableFrame", "CableMotion"]

Array = NDArray[np.float64]

#: Joints that ask a frame for its point only, and those that also hold its axis z.
_BY_POINT = ("spherical", "distance")
_BY_TANGENT = ("revolute", "cylindrical", "planar", "point_on_line", "point_on_plane")


class CableFrame(NamedTuple):
    """A frame of a cable, by name."""

    body: str
    frame: str


@dataclass(frozen=True, eq=False)
class CableMotion:
    """Motion of a cable over nt saved times at some places.

    Attributes:
        time: (nt,), s.
        places: Unstretched lengths from the start (np,), m.
        position, slope, velocity, acceleration: Global, (nt, np, 3), m, –, m/s, m/s².
        strain: Axial strain of Green and Lagrange, (nt, np).
        curvature: Of the centre line, (nt, np), 1/m.
    """

    time: Array
    places: Array
    position: Array
    slope: Array
    velocity: Array
    acceleration: Array
    strain: Array
    curvature: Array


@dataclass(frozen=True, eq=False)
class CableBody(AbsoluteBody):
    """A cable or slender round rod in a mechanism, in absolute coordinates (see `AbsoluteBody`).

    Deflections and rotations may be as large as they like. It starts straight. Its own spin is not
    resolved: the axis z of a frame is the tangent, and x and y follow by the smallest rotation from
    the reference. Joints may hold the point (spherical, distance) and the direction of the tangent:
    a revolute joint, whose axis is z, **clamps** a cable; so do cylindrical and planar joints and
    points on a line or a plane with the cable's z. A fixed, a prismatic or a universal joint would
    hold the spin: `check` refuses them, and drivers and loads about z.

    Attributes:
        name: Its name in the system and in the results.
        cable: EA, EI, mass per length and damping: numbers.
        start, end: Where its ends are placed, shape (3,), m.
        elements: Number of equal elements, or the unstretched lengths from the start to all nodes,
            from 0 to the length.
        length: Unstretched, m; None: the distance from start to end, or the last of the nodes.
        frames: Further frames than ``start`` and ``end``: unstretched lengths from the start, m.

    Raises:
        ValueError: A value makes no sense; the message says which.
    """

    name: str
    cable: Cable
    start: ArrayLike
    end: ArrayLike
    elements: int | Sequence[float] = 9
    length: float | None = None
    frames: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.name("name", self.name)
        start, end = (
            checks.vector(f"body {self.name!r}: {what}", getattr(self, what), unit="m")
            for what in ("start", "end")
        )
        span = float(np.linalg.norm(end - start))
        if not 0 < span < np.inf:
            raise InputError(f"body {self.name!r}: the distance from start to end is {span:g} m")
        checks.instance(f"body {self.name!r}: cable", self.cable, Cable)
        c = self.cable
        if any(isinstance(v, Expr) for v in vars(c).values()):
            raise InputError(
                f"body {self.name!r}: stiffness, mass and damping of a cable in a mechanism are "
                "numbers, not UFL expressions; join cables of different ones by spherical joints"
            )
        nodes = self._nodes(span)
        object.__setattr__(self, "length", float(nodes[-1]))
        checks.instance(f"body {self.name!r}: frames", self.frames, Mapping)
        places = {"start": 0.0, "end": float(nodes[-1]), **self.frames}
        for key, place in places.items():
            checks.name(f"body {self.name!r}: the name of a frame", key)
            what = f"body {self.name!r}: the place of frame {key!r}"
            checks.number(what, place, low=0.0, high=float(nodes[-1]), unit="m")
        direction = (end - start) / span
        x = np.cross(np.eye(3)[(np.argmax(np.abs(direction)) + 2) % 3], direction)
        x /= np.linalg.norm(x)
        axes = np.column_stack([x, np.cross(direction, x), direction])
        forms = LineForms(c, nodes)
        self._prepare(forms, nodes, axes, start, span, list(places.items()), c.axial_stiffness)

    def _nodes(self, span: float) -> Array:
        given, length, what = self.elements, self.length, f"body {self.name!r}: elements"
        if length is not None:
            length = checks.number(f"body {self.name!r}: length", length, positive=True, unit="m")
        if isinstance(given, (int, np.integer)):
            count = checks.integer(what, given, low=1, high=10**9)
            checks.memory(what, given, 8.0 * (6 * (count + 1)) ** 2)
            end = span if length is None else length
            return np.asarray(np.linspace(0.0, end, count + 1), dtype=np.float64)
        expected = "a number, or the lengths from the start to all nodes, increasing from 0, m"
        nodes = np.array(checks.array(what, given, (None,), expected=expected))
        if len(nodes) < 2 or nodes[0] != 0 or not (np.diff(nodes) > 0).all():
            checks.refuse(what, given, expected)
        if length is not None and not np.isclose(nodes[-1], length, rtol=1e-9):
            raise InputError(
                f"body {self.name!r}: its nodes end at {nodes[-1]:g} m, its length is {length:g} m"
            )
        return nodes

    def frame(self, name: str) -> CableFrame:
        """Reference to a frame of this body, for joints and forces.

        Raises:
            ValueError: If the body has no such frame; the message lists those it has.
        """
        known = checks.choice(f"body {self.name!r}: the name of a frame", name, self.frame_names)
        return CableFrame(self.name, known)

    def check(self, system: Any) -> None:
        """Refuse what would hold or turn the cable's spin, which it does not have.

        Raises:
            ValueError: If a joint, a driver or a load of the system does; the message says which.
        """
        turned = {d.joint for d in system.drivers if getattr(d, "along", None) != "displacement"}
        turned |= {
            load.joint
            for load in system.loads
            if getattr(load, "motion", None) == "rotation" and hasattr(load, "joint")
        }
        for joint in system.joints:
            if self.name not in (joint.first.body, joint.second.body):
                continue
            if joint.kind not in _BY_POINT + _BY_TANGENT:
                raise InputError(
                    f"{joint.kind} joint {joint.name!r} holds how body {self.name!r} is turned "
                    "about its tangent, which a cable does not know; use a spherical joint, or a "
                    "revolute one about the tangent (z of the cable's frame) as a clamp"
                )
            if joint.name in turned and joint.kind in ("revolute", "cylindrical", "planar"):
                raise InputError(
                    f"a driver or a load turns joint {joint.name!r} about the tangent of body "
                    f"{self.name!r}: a cable carries no torsion"
                )

    def motion(self, run: Any, places: ArrayLike | None = None) -> CableMotion:
        """Its motion in a solution, at the nodes or at these unstretched lengths from the start."""
        s = self.nodes if places is None else np.atleast_1d(np.asarray(places, dtype=float))
        q, v, a = self.rows_of(run)
        zero = self.nodal(np.zeros(self.num_coordinates))

        def along(nodal: Array, derivative: int = 0) -> Array:
            weights = hermite(self.nodes, s, derivative)
            return np.einsum("pk,tkc->tpc", weights, nodal.reshape(len(nodal), -1, 3))

        nodal = self.nodal(q)
        slope, second = along(nodal, 1), along(nodal, 2)
        square = np.sum(slope**2, axis=-1)
        bend = np.linalg.norm(np.cross(slope, second), axis=-1)
        return CableMotion(
            np.asarray(run.time),
            s,
            along(nodal),
            slope,
            along(self.nodal(v) - zero),
            along(self.nodal(a) - zero),
            0.5 * (square - 1.0),
            bend / square**1.5,
        )
