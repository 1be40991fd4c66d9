"""The ground, rigid bodies and reduced flexible bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.body import LoadPattern, ModalDamping, ReducedBody, Skin
from dolfinx_mbd.checks import array, choice, flag, instance, number, reject, vector
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.floating_body import FloatingBody
from dolfinx_mbd.mechanism.joints import FrameRef
from dolfinx_mbd.mechanism.pattern_loads import PatternRef
from dolfinx_mbd.mechanism.protocol import BodyState, Frame, checked_frames
from dolfinx_mbd.mechanism.run_quantities import Quantities, RunQuantity
from dolfinx_mbd.mechanism.shapes import Shape, box_shape, cylinder_shape

__all__ = ["DEFAULT_DAMPING_RATIO", "FlexibleBody", "Ground", "RigidBody"]

Array = NDArray[np.float64]

DEFAULT_DAMPING_RATIO = 0.01
"""Default modal damping ratio of flexible bodies: 1 %, typical of bolted metal parts."""


@dataclass(frozen=True, eq=False)
class Ground:
    """A body that does not move; a system has at most one ground.

    Attributes:
        frames: Frames by name, in global coordinates.
        name: Name in the system.

    Raises:
        InputError: The frames are not a mapping from names to frames.

    Example:
        >>> ground = mbd.Ground({"bearing": mbd.Frame(), "wall": mbd.Frame((2.0, 0.0, 0.0))})
        >>> ground.frame("wall")
        FrameRef(body='ground', frame='wall')
    """

    frames: Mapping[str, Frame] = field(default_factory=dict)
    name: str = "ground"
    num_coordinates: int = field(default=0, init=False)
    num_velocities: int = field(default=0, init=False)
    num_elastic: int = field(default=0, init=False)
    typical_mass: float = field(default=0.0, init=False)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        assign(self, frames=checked_frames(checked_name("name", self.name), self.frames))

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Names of the frames."""
        return tuple(self.frames)

    def frame(self, name: str) -> FrameRef:
        """Return a reference to a frame by its name, see `RigidBody.frame`."""
        return FrameRef(self.name, choice(f"frame of body {self.name!r}", name, self.frames))

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        """Set positions and orientations of the frames."""
        for k, (point, axes) in enumerate(self.frames.values()):
            position[k], rotation[k] = point, axes

    # The ground has no coordinates: all arrays of coordinates are empty
    def _do_nothing(self, *arguments: Any) -> None:
        """Do nothing: the ground has no equations."""
        pass

    def _empty_array(self, *arguments: Any) -> Array:
        """Return matrices of the frames without columns, because the ground has no velocities."""
        return np.zeros((len(self.frames), 6, 0))

    increment = residual = frame_velocities = _do_nothing
    frame_jacobians = frame_velocity_tangents = _empty_array

    def initial_coordinates(self) -> Array:
        """Return an empty array."""
        return np.zeros(0)

    def increment_tangent(self, delta: Array) -> Array:
        """Return an empty matrix."""
        return np.zeros((0, 0))

    def tangent(self, state: BodyState) -> tuple[Array, Array, Array]:
        """Return empty matrices."""
        return np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, 0))

    def frame_bias(self, q: Array, v: Array) -> Array:
        """Return zero accelerations."""
        return np.zeros((len(self.frames), 6))

    def energies(self, q: Array, v: Array, gravity: Array) -> Array:
        """Return zero energies."""
        return np.zeros(3)

    def momenta(self, q: Array, v: Array) -> Array:
        """Return zero momenta."""
        return np.zeros(6)


@dataclass(frozen=True, eq=False)
class RigidBody(FloatingBody):
    """A rigid body.

    Attributes:
        name: Name in the system and in the results.
        mass: Mass, kg.
        inertia: Inertia tensor about the centre of mass in body components, shape (3, 3), or its
            diagonal, shape (3,), kg m².
        centre: Centre of mass in the body frame, shape (3,), m.
        frames: Frames for joints and loads by name, in the body frame.
        position: Initial position of the origin of the body frame, shape (3,), m.
        rotation: Initial orientation: rotation vector (3,), rad, quaternion (w, x, y, z) or
            rotation matrix from body to global components.
        shape: Surface for drawings (optional).
        velocity: Initial velocity of the origin of the body frame in global components, (3,), m/s;
            by default zero if `omega` is given and the joints permit it, otherwise it follows from
            the joints and the other bodies. See `consistent_state`.
        omega: Initial angular velocity in body components, (3,), rad/s; by default zero if
            `velocity` is given and the joints permit it.

    Raises:
        InputError: The mass is not positive, the inertia tensor is physically impossible, or
            another argument is invalid.

    Example:
        >>> bob = mbd.RigidBody("bob", 1.0, [0.01] * 3, frames={"tip": mbd.Frame((0, 1, 0))})
        >>> bob.frame("tip")
        FrameRef(body='bob', frame='tip')
    """

    name: str
    mass: float
    inertia: ArrayLike
    centre: ArrayLike = (0.0, 0.0, 0.0)
    frames: Mapping[str, Frame] = field(default_factory=dict)
    position: ArrayLike = (0.0, 0.0, 0.0)
    rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0)
    shape: Shape | None = None
    velocity: ArrayLike | None = None
    omega: ArrayLike | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        label = f"body {checked_name('name', self.name)!r}"
        mass = number(f"{label}: mass", self.mass, positive=True, unit="kg")
        c: Array = vector(f"{label}: centre", self.centre, unit="m")
        second = _second_moments(f"{label}: inertia", self.inertia) + mass * np.outer(c, c)
        instance(f"{label}: shape", self.shape, (Shape, type(None)))
        frames = checked_frames(self.name, self.frames)
        no_modes = np.zeros((0, 0))
        self._prepare(
            mass,
            mass * c[None],
            second[None, None],
            (no_modes, no_modes, no_modes),
            {key: (*frame, np.zeros((6, 0))) for key, frame in frames.items()},
            (self.position, self.rotation, self.velocity, self.omega),
        )

    @property
    def drawing(self) -> Shape | None:
        """Surface for pictures."""
        return self.shape

    @classmethod
    def box(
        cls,
        name: str,
        size: Sequence[float],
        *,
        density: float | None = None,
        mass: float | None = None,
        centre: ArrayLike = (0.0, 0.0, 0.0),
        frames: Mapping[str, Frame] | None = None,
        position: ArrayLike = (0.0, 0.0, 0.0),
        rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        velocity: ArrayLike | None = None,
        omega: ArrayLike | None = None,
    ) -> RigidBody:
        """Return a homogeneous box with edges along the body axes.

        Args:
            name: Name in the system and in the results.
            size: Lengths of the edges, shape (3,), m.
            density: Density, kg/m³; give either the density or the mass.
            mass: Mass, kg.
            centre: Centre of the box, see `RigidBody`.
            frames: Frames for joints and loads, see `RigidBody`; by default no frames.
            position: Initial position, see `RigidBody`.
            rotation: Initial orientation, see `RigidBody`.
            velocity: Initial velocity, see `RigidBody`.
            omega: Initial angular velocity, see `RigidBody`.

        Raises:
            InputError: An argument is invalid.

        Example:
            >>> round(mbd.RigidBody.box("brick", (0.2, 0.1, 0.1), density=2000.0).mass, 9)
            4.0
        """
        shape = box_shape(size, centre)
        squares = np.square(size, dtype=float)
        m = _mass(name, float(np.prod(size, dtype=float)), density, mass)
        J = m / 12 * (squares.sum() - squares)
        frames = {} if frames is None else frames
        return cls(name, m, J, centre, frames, position, rotation, shape, velocity, omega)

    @classmethod
    def cylinder(
        cls,
        name: str,
        radius: float,
        length: float,
        *,
        axis: int = 2,
        density: float | None = None,
        mass: float | None = None,
        centre: ArrayLike = (0.0, 0.0, 0.0),
        frames: Mapping[str, Frame] | None = None,
        position: ArrayLike = (0.0, 0.0, 0.0),
        rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        velocity: ArrayLike | None = None,
        omega: ArrayLike | None = None,
    ) -> RigidBody:
        """Return a homogeneous circular cylinder along a body axis.

        Args:
            name: Name in the system and in the results.
            radius: Radius, m.
            length: Length, m.
            axis: Body axis along the cylinder: 0, 1 or 2.
            density: Density, kg/m³; give either the density or the mass.
            mass: Mass, kg.
            centre: Centre of the cylinder, see `RigidBody`.
            frames: Frames for joints and loads, see `RigidBody`; by default no frames.
            position: Initial position, see `RigidBody`.
            rotation: Initial orientation, see `RigidBody`.
            velocity: Initial velocity, see `RigidBody`.
            omega: Initial angular velocity, see `RigidBody`.

        Raises:
            InputError: An argument is invalid.

        Example:
            >>> mbd.RigidBody.cylinder("wheel", 0.5, 0.05, mass=8.0).inertia[2].item()
            1.0
        """
        shape = cylinder_shape(radius, length, axis, centre)
        m = _mass(name, np.pi * radius * radius * length, density, mass)
        J = np.full(3, m * (3 * radius * radius + length * length) / 12)
        J[axis] = m * radius * radius / 2
        frames = {} if frames is None else frames
        return cls(name, m, J, centre, frames, position, rotation, shape, velocity, omega)


def _mass(name: str, volume: float, density: float | None, mass: float | None) -> float:
    """Return the mass, kg, given or computed from the volume (m³) and the density (kg/m³)."""
    label = f"body {name!r}"
    if (density is None) == (mass is None):
        raise InputError(f"{label}: give either density (kg/m³) or mass (kg)")
    if mass is not None:
        return number(f"{label}: mass", mass, positive=True, unit="kg")
    rho = number(f"{label}: density", density, positive=True, unit="kg/m³")
    return number(f"{label}: density times volume", rho * volume, positive=True, unit="kg")


def _second_moments(argument: str, inertia: ArrayLike) -> Array:
    """Return ∫ρ (x−c)⊗(x−c), shape (3, 3), from an inertia tensor or its diagonal."""
    J: Array = array(argument, inertia)
    if J.shape == (3,):
        J = np.diag(J)
    if J.shape != (3, 3) or not np.allclose(J, J.T, atol=1e-12 * np.abs(J).max(initial=0)):
        reject(argument, inertia, "a symmetric 3×3 matrix or its diagonal, in kg m²")
    moments, problem = np.linalg.eigvalsh(J), ""
    second = 0.5 * np.trace(J) * np.eye(3) - J
    if np.linalg.eigvalsh(second).min() < -1e-9 * np.trace(J):
        problem = "this is impossible: each moment is at most the sum of the other two"
    elif moments.min() <= 0:
        problem = "a moment is zero; give a thin rod its true small moment about its axis"
    if problem:
        text = f"{argument} has the principal moments {moments} kg m²; {problem}"
        raise InputError(text, argument=argument, value=inertia)
    return second


@dataclass(frozen=True, eq=False)
class FlexibleBody(FloatingBody):
    """A reduced flexible body in a mechanism; its frames are the interfaces of the reduced body.

    Its named points (`points` of a reduction) are frames too, with the axes of the body frame. They
    transmit forces, but no moments. Forces, spring-dampers, and spherical and distance joints can
    act at them; joints can keep them on lines, planes and curves. The modes represent only part of
    the deformation that a concentrated force causes; use an interface if the compliance near the
    point matters.

    Attributes:
        name: Name in the system and in the results.
        reduced: The reduced body, `reduce(...).body`; several flexible bodies may share it.
        position: Initial position of the origin of the body frame, shape (3,), m.
        rotation: Initial orientation: rotation vector (3,), rad, quaternion (w, x, y, z) or
            rotation matrix from body to global components.
        damping_ratio: Damping ratio of every mode, added to the damping matrix of the reduced body;
            by default `DEFAULT_DAMPING_RATIO` if that matrix is zero, otherwise 0.
        stiffening: Whether geometric stiffening is included; by default it is if the reduced body
            contains stiffening data.
        velocity: Initial velocity of the origin of the body frame in global components, (3,), m/s;
            by default zero if `omega` is given and the joints permit it, otherwise it follows from
            the joints and the other bodies. See `consistent_state`.
        omega: Initial angular velocity in body components, (3,), rad/s; by default zero if
            `velocity` is given and the joints permit it.

    Raises:
        InputError: An argument is invalid, or `stiffening` is True and the reduced body contains no
            stiffening data.

    Example:
        >>> link = mbd.FlexibleBody("link", body, position=(0.5, 0, 0), damping_ratio=0.02)
        >>> link.frame("left"), link.stiffening
        (FrameRef(body='link', frame='left'), True)
    """

    name: str
    reduced: ReducedBody
    position: ArrayLike = (0.0, 0.0, 0.0)
    rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0)
    damping_ratio: float | None = None
    stiffening: bool | None = None
    velocity: ArrayLike | None = None
    omega: ArrayLike | None = None
    _points: tuple[str, ...] = field(default=(), repr=False)  # named points that are frames

    __repr__ = short_repr

    def __post_init__(self) -> None:
        label = f"body {checked_name('name', self.name)!r}"
        hint = "reduce(...).body or ReducedBody.load(path)"
        body: ReducedBody = instance(f"{label}: reduced", self.reduced, ReducedBody, hint)
        active = self.stiffening is None or flag(f"{label}: stiffening", self.stiffening)
        if active and self.stiffening is not None and body.stiffening is None:
            raise InputError(
                f"{label}: its reduced body {body.name!r} holds no stiffening; reduce it with "
                "stiffening=True and the mean-axis reference",
                argument=f"{label}: stiffening",
                value=self.stiffening,
            )
        stiffening = body.stiffening if active else None
        ratio = self.damping_ratio
        if ratio is None:
            ratio = 0.0 if body.damping.any() else DEFAULT_DAMPING_RATIO
        ratio = number(f"{label}: damping_ratio", ratio, low=0.0)
        assign(self, stiffening=stiffening is not None, damping_ratio=ratio)
        damping = body.damping + ModalDamping(ratio).matrix(body.mass, body.stiffness)
        frames = {i.name: (i.point, i.axes, i.motion) for i in body.interfaces}
        for point in map(body.point, self._points):
            motion = np.vstack([point.modes.T, np.zeros((3, body.num_modes))])
            frames[point.name] = point.position, np.eye(3), motion
        self._prepare(
            body.total_mass,
            body.first_moments,
            body.second_moments,
            (body.mass, damping, body.stiffness),
            frames,
            (self.position, self.rotation, self.velocity, self.omega),
            stiffening,
        )

    @property
    def drawing(self) -> Skin | None:
        """Surface for pictures."""
        return self.reduced.skin

    @property
    def centre(self) -> Array:
        """Centre of mass of the undeformed body in the body frame, shape (3,), m."""
        return self.reduced.centre

    @property
    def run_quantities(self) -> Quantities:
        """Quantities of the body over a run, with the strains of its gauges."""
        labels = [label for gauge in self.reduced.gauges for label in gauge.labels]
        strains = {f"{label}.strain": RunQuantity("1") for label in labels}
        return {**super().run_quantities, **strains}

    @property
    def point_names(self) -> tuple[str, ...]:
        """Names of the points of the reduced body that are not interfaces."""
        names = [i.name for i in self.reduced.interfaces]
        return tuple(p.name for p in self.reduced.points if p.name not in names)

    def with_points(self, names: Sequence[str]) -> FlexibleBody:
        """Return the body with frames at the given named points; `System` calls it."""
        return replace(self, _points=tuple(names))

    def frame(self, name: str) -> FrameRef:
        """Return a reference to an interface or a named point, for joints and loads.

        Args:
            name: Name of the interface or the point.

        Raises:
            InputError: The body has no interface or point with this name; the message lists the
                valid names.
        """
        names = [*(i.name for i in self.reduced.interfaces), *self.point_names]
        return FrameRef(self.name, choice(f"frame of body {self.name!r}", name, names))

    def load_pattern(self, name: str) -> LoadPattern:
        """Return the distributed load of the reduced body with the given name."""
        return self.reduced.load_pattern(name)

    def pattern(self, name: str) -> PatternRef:
        """Return a reference to a distributed load of the reduced body, for a `PatternLoad`.

        Args:
            name: Name of the distributed load.

        Raises:
            InputError: The load is unknown; the message lists the valid names.

        Example:
            >>> mbd.FlexibleBody("sail", body).pattern("wind")
            PatternRef(body='sail', pattern='wind')
        """
        return PatternRef(self.name, self.load_pattern(name).name)
