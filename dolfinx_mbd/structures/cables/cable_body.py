"""Cables and slender rods with large displacements in a mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from ufl.core.expr import Expr

from dolfinx_mbd import checks
from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms.cables import Cable
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.run_quantities import Quantities, RunQuantity
from dolfinx_mbd.structures.cables.line_body import AbsoluteBody, LineForms, hermite

_LINES = 4
"""Number of straight lines that represent an element in pictures."""

_POINT_JOINTS = ("spherical",)
"""Kinds of joints that constrain only the point of a frame.

Joints with a `constraint` do so at the ends that are among its `point_ends`.
"""

_TANGENT_JOINTS = ("revolute", "cylindrical", "planar", "point_on_line", "point_on_plane")
"""Kinds of joints that may also constrain the z axis of a frame, the tangent of the cable."""


class CableFrame(NamedTuple):
    """Reference to a frame of a cable, by the names of body and frame."""

    body: str
    frame: str


@dataclass(frozen=True, eq=False)
class CableMotion:
    """Motion of a cable at several points and nt times of a run; see `CableBody.motion`.

    Attributes:
        time: Times, shape (nt,), s.
        places: Unstretched lengths from the start, shape (points,), m.
        position: Positions in global components, shape (nt, points, 3), m.
        slope: Derivative of the position with respect to unstretched length, shape (nt, points, 3).
        velocity: Velocities in global components, shape (nt, points, 3), m/s.
        acceleration: Accelerations in global components, shape (nt, points, 3), m/s².
        strain: Axial Green-Lagrange strain, shape (nt, points).
        curvature: Curvature of the centre line, shape (nt, points), 1/m.

    Example:
        >>> import dolfinx_mbd as mbd
        >>> from dolfinx_mbd.forms import Cable
        >>> cable = Cable(1e4, 1e-3, 0.1, 0.05)
        >>> rope = CableBody("rope", cable, (0, 0, 0), (1, 0, 0), elements=4)
        >>> ground = mbd.Ground({"origin": mbd.Frame()})
        >>> pin = mbd.spherical("pin", ground.frame("origin"), rope.frame("start"))
        >>> system = mbd.System([ground, rope], [pin])
        >>> run = mbd.simulate(system, t_end=0.02, dt=0.002)
        >>> rope.motion(run, places=[1.0]).position.shape
        (11, 1, 3)
    """

    time: Array
    places: Array
    position: Array
    slope: Array
    velocity: Array
    acceleration: Array
    strain: Array
    curvature: Array

    __repr__ = short_repr


@dataclass(frozen=True, eq=False)
class CableBody(AbsoluteBody):
    """A cable or slender round rod in a mechanism.

    Deflections and rotations may be arbitrarily large. The cable is initially straight, so that a
    slack cable is compressed: start it from its `mbd.equilibrium`. Rotation about the tangent is
    not modelled: the z axis of a frame is the tangent, and the smallest rotation from the reference
    determines x and y. Joints may constrain the point (spherical, distance) and the direction of
    the tangent. A revolute joint about z **clamps** a cable. Cylindrical and planar joints and
    points on a line or a plane are also possible. Fixed, prismatic and universal joints, and
    drivers and loads about z, raise an error.

    Args:
        name: Name in the system and in the results.
        cable: Axial and bending stiffness, mass per length and damping, as numbers.
        start: Position of the start in global components, shape (3,), m.
        end: Position of the end in global components, shape (3,), m.
        elements: Number of equal elements (default: 9), or the unstretched lengths from the start
            to all nodes, increasing from 0 to `length`, m.
        length: Unstretched length, m. The default is the distance from start to end, or the
            unstretched length at the last node if `elements` lists the nodes.
        frames: Unstretched lengths from the start to further frames by name, m; `start` and `end`
            always exist.

    Raises:
        InputError: A value is invalid.

    Example:
        >>> from dolfinx_mbd.forms import Cable
        >>> cable = Cable(1e5, 0.2, 0.1)
        >>> rope = CableBody("rope", cable, (0, 0, 0), (1, 0, 0), frames={"middle": 0.5})
        >>> rope.frame_names
        ('start', 'end', 'middle')
    """

    run_quantities: ClassVar[Quantities] = {
        "position": RunQuantity("m", "xyz"),
        "slope": RunQuantity("1", "xyz"),
        "velocity": RunQuantity("m/s", "xyz"),
        "acceleration": RunQuantity("m/s²", "xyz"),
        "strain": RunQuantity("1", counts="place"),
        "curvature": RunQuantity("1/m", counts="place"),
    }
    name: str
    cable: Cable
    start: ArrayLike
    end: ArrayLike
    elements: int | Sequence[float] = 9
    length: float | None = None
    frames: Mapping[str, float] = field(default_factory=dict)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        checks.name("name", self.name)
        start, end = (
            checks.vector(f"body {self.name!r}: {key}", getattr(self, key), unit="m")
            for key in ("start", "end")
        )
        span = float(np.linalg.norm(end - start))
        if not 0 < span < np.inf:
            raise InputError(f"body {self.name!r}: the distance from start to end is {span:g} m")
        checks.instance(f"body {self.name!r}: cable", self.cable, Cable)
        if any(isinstance(v, Expr) for v in vars(self.cable).values()):
            raise InputError(
                f"body {self.name!r}: stiffness, mass and damping of a cable in a mechanism are "
                "numbers, not UFL expressions; connect different cables with spherical joints"
            )
        nodes = self._nodes(span)
        assign(self, length=float(nodes[-1]))
        checks.instance(f"body {self.name!r}: frames", self.frames, Mapping)
        ends = {"start": 0.0, "end": float(nodes[-1])}
        places = {**ends, **self.frames}
        for key, place in places.items():
            checks.name(f"body {self.name!r}: the name of a frame", key)
            argument = f"body {self.name!r}: the place of frame {key!r}"
            place = checks.number(argument, place, low=0.0, high=ends["end"], unit="m")
            if place != ends.get(key, place):
                checks.reject(argument, place, f"{ends[key]:g} m, or have another name")
        direction = (end - start) / span
        # The axis before the one nearest to the cable is not parallel to it: y for a cable along z
        x = np.cross(np.eye(3)[(np.argmax(np.abs(direction)) + 2) % 3], direction)
        x /= np.linalg.norm(x)
        axes = np.column_stack([x, np.cross(direction, x), direction])
        forms = LineForms(self.cable, nodes)
        self._prepare(forms, nodes, axes, start, span, places, self.cable.axial_stiffness)

    def _nodes(self, span: float) -> Array:
        """Return the unstretched lengths from the start to all nodes, m; `span` is the distance."""
        elements, length, argument = self.elements, self.length, f"body {self.name!r}: elements"
        if length is not None:
            length = checks.number(f"body {self.name!r}: length", length, positive=True, unit="m")
        if isinstance(elements, int | np.integer):
            count = checks.integer(argument, elements, low=1, high=10**9)
            checks.memory(argument, elements, 8.0 * (6 * (count + 1)) ** 2)
            end = span if length is None else length
            return np.asarray(np.linspace(0.0, end, count + 1), dtype=np.float64)
        expected = "a number, or the lengths from the start to all nodes, increasing from 0, m"
        nodes = np.array(checks.array(argument, elements, (None,), expected=expected))
        if len(nodes) < 2 or nodes[0] != 0 or not (np.diff(nodes) > 0).all():
            checks.reject(argument, elements, expected)
        if length is not None and not np.isclose(nodes[-1], length, rtol=1e-9):
            raise InputError(
                f"body {self.name!r}: the last node is at {nodes[-1]:g} m, length is {length:g} m"
            )
        return nodes

    def _checked_places(self, places: ArrayLike) -> Array:
        """Return unstretched lengths from the start, (points,), m; the cable must contain them."""
        end = float(self.nodes[-1])
        s = np.array(checks.array("places", np.atleast_1d(np.asarray(places)), (None,)))
        tolerance = 1e-9 * end
        if s.min(initial=0.0) < -tolerance or s.max(initial=0.0) > end + tolerance:
            checks.reject("places", places, f"lengths from 0 to {end:g} m")
        return s

    def frame(self, name: str) -> CableFrame:
        """Return a reference to a frame of this body, for joints and forces.

        Args:
            name: `start`, `end` or a name of `frames`.

        Returns:
            The reference.

        Raises:
            InputError: The body has no such frame; the message lists its frames.
        """
        frame = checks.choice(f"body {self.name!r}: the name of a frame", name, self.frame_names)
        return CableFrame(self.name, frame)

    def check(self, system: Any) -> None:
        """Verify that a system does not act on the rotation of the cable about its tangent.

        Args:
            system: The system with this body.

        Raises:
            InputError: A joint, a driver or a load acts on this rotation; the message names it.
        """
        rotated = {d.joint for d in system.drivers if d.along != "displacement"}
        loaded = [load.acting_frames(system) for load in system.loads if load.along == "rotation"]
        for joint in system.joints:
            if self.name not in (joint.first.body, joint.second.body):
                continue
            end = "first" if joint.first.body == self.name else "second"
            by_point = joint.constraint is not None and end in joint.constraint.point_ends
            if joint.kind not in _POINT_JOINTS + _TANGENT_JOINTS and not by_point:
                raise InputError(
                    f"{joint.kind} joint {joint.name!r} holds the rotation of body {self.name!r} "
                    "about its tangent, which a cable does not have; use a spherical joint, or a "
                    "revolute one about the tangent (z of the cable's frame) as a clamp"
                )
            rotates = joint.name in rotated or (joint.first, joint.second) in loaded
            if rotates and joint.kind in ("revolute", "cylindrical", "planar"):
                raise InputError(
                    f"a driver or a load rotates joint {joint.name!r} about the tangent of body "
                    f"{self.name!r}: a cable carries no torsion"
                )

    def line(self, q: ArrayLike) -> Array:
        """Return points on the centre line for pictures: the nodes and three between them.

        Args:
            q: Coordinates of the cable, shape (nt, nq).

        Returns:
            Points, shape (nt, points, 3), m.
        """
        last = len(self.nodes) - 1
        steps = _LINES * last
        places = np.interp(np.linspace(0, last, steps + 1), np.arange(last + 1), self.nodes)
        nodal = self.nodal(np.asarray(q))
        weights = hermite(self.nodes, places)
        return np.einsum("pk,tkc->tpc", weights, nodal.reshape(len(nodal), -1, 3))

    def motion(self, run: Any, places: ArrayLike | None = None) -> CableMotion:
        """Return the motion of the cable in a run.

        Args:
            run: The solution.
            places: Unstretched lengths from the start, shape (points,), m. The default is all
                nodes.

        Returns:
            Positions, slopes, velocities, accelerations, strains and curvatures over time.

        Raises:
            InputError: A place is not on the cable.
        """
        s = self.nodes if places is None else self._checked_places(places)
        q, v, a = self.rows_of(run)
        zero = self.nodal(np.zeros(self.num_coordinates))  # the constant part, without a rate

        def interpolate(nodal: Array, derivative: int = 0) -> Array:
            """Return the interpolation of nodal values (nt, nodes, 2, 3), (nt, points, 3)."""
            weights = hermite(self.nodes, s, derivative)
            return np.einsum("pk,tkc->tpc", weights, nodal.reshape(len(nodal), -1, 3))

        nodal = self.nodal(q)
        slope, second = interpolate(nodal, 1), interpolate(nodal, 2)
        square = np.sum(slope**2, axis=-1)
        normal_part = np.linalg.norm(np.cross(slope, second), axis=-1)
        return CableMotion(
            np.asarray(run.time),
            s,
            interpolate(nodal),
            slope,
            interpolate(self.nodal(v) - zero),
            interpolate(self.nodal(a) - zero),
            0.5 * (square - 1.0),
            normal_part / square**1.5,
        )
