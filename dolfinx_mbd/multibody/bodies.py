"""Bodies: rigid ones, reduced flexible ones, the ground, and the small protocol that they share.

The core asks a body for its residual, its tangent and the frames where joints and forces meet it,
and for nothing else.  A body that is not in a floating frame fits in by giving the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.rotations import quaternion_from_matrix
from dolfinx_mbd.multibody import floating_frame as kernels
from dolfinx_mbd.multibody import frames as frame_kernels
from dolfinx_mbd.multibody.joints import FrameRef
from dolfinx_mbd.multibody.shapes import Shape, box_shape, cylinder_shape

__all__ = [
    "DEFAULT_DAMPING_RATIO",
    "Body",
    "FlexibleBody",
    "Frame",
    "Ground",
    "RigidBody",
    "modal_damping",
]

Array = NDArray[np.float64]

#: Modal damping ratio of a flexible body that is given none: 1 %, usual for a bolted metal part.
DEFAULT_DAMPING_RATIO = 0.01


class Frame(NamedTuple):
    """A frame fixed to a body: its point (3,) in m and its axes, columns in body components."""

    point: ArrayLike = (0.0, 0.0, 0.0)
    axes: ArrayLike = np.eye(3)


class Body(Protocol):
    """What the core needs of a body.

    Coordinates q (nq) begin with position and quaternion if the body has any; velocities v, their
    rates a and increments of q have nv entries.  Frames are numbered; wrenches (F, 6) are force and
    moment at a frame's point in global components.  Rows are forces that balance to zero.
    """

    @property
    def name(self) -> str:
        """Its name in the system."""

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Names of its frames."""

    @property
    def num_coordinates(self) -> int:
        """nq."""

    @property
    def num_velocities(self) -> int:
        """nv."""

    @property
    def num_elastic(self) -> int:
        """How many of the coordinates, the last ones, are elastic."""

    @property
    def typical_mass(self) -> float:
        """Its mass, kg, for scaling."""

    def initial_coordinates(self) -> Array:
        """Where the body starts before the mechanism is assembled, shape (nq,)."""

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        """q moved by an increment."""

    def increment_tangent(self, delta: Array) -> Array:
        """T (3, 3) of the rotation rows: ``q∘exp(δ+ε) = (q∘exp(δ))∘exp(Tε)``."""

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        """Fill in positions (F, 3) and orientations (F, 3, 3) of the frames."""

    def residual(
        self,
        t: float,
        q: Array,
        v: Array,
        a: Array,
        gravity: Array,
        wrenches: Array,
        out: Array,
        scale: Array,
    ) -> None:
        """Fill in the rows (nv,) and the magnitudes of their terms (nv,)."""

    def tangent(
        self, t: float, q: Array, v: Array, a: Array, gravity: Array, wrenches: Array
    ) -> tuple[Array, Array, Array]:
        """Derivatives of the rows to q (increments), v and a; (nv, nv) each."""

    def frame_jacobians(self, q: Array) -> Array:
        """(F, 6, nv): velocity and angular velocity of the frames per unit of v, global."""

    def frame_velocities(self, q: Array, v: Array, out: Array) -> None:
        """Fill in velocities and angular velocities of the frames (F, 6), global."""

    def frame_velocity_tangents(self, q: Array, v: Array) -> Array:
        """(F, 6, nv): derivative of the frames' velocities to q (increments)."""

    def frame_bias(self, q: Array, v: Array) -> Array:
        """(F, 6): accelerations of the frames at zero rates of v."""

    def energies(self, q: Array, v: Array, gravity: Array) -> Array:
        """Kinetic, elastic and gravitational energy, shape (3,), J."""

    def momenta(self, q: Array, v: Array) -> Array:
        """Linear momentum and angular momentum about the global origin, shape (6,)."""


def _rotation(name: str, rotation: ArrayLike) -> Array:
    given = np.array(rotation, dtype=float)
    if given.shape == (3, 3):
        return quaternion_from_matrix(given)
    if given.shape == (4,) and 0 < np.linalg.norm(given) < np.inf:
        return given / np.linalg.norm(given)
    raise ValueError(
        f"body {name!r}: rotation must be a quaternion (w, x, y, z), not zero, or a 3×3 matrix; "
        f"got {rotation!r}"
    )


def _vector(name: str, what: str, value: ArrayLike) -> Array:
    vector = np.array(value, dtype=float)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise ValueError(f"body {name!r}: {what} must be three finite numbers, got {value!r}")
    return vector


def _frame(body: str, name: str, given: object) -> Frame:
    """A frame after a check of its point and axes."""
    what = f"body {body!r}, frame {name!r}"
    try:
        point, axes = (np.array(part, dtype=float) for part in Frame(*given))  # type: ignore[misc]
    except (TypeError, ValueError):
        point = axes = np.zeros(0)
    if point.shape != (3,) or axes.shape != (3, 3) or not np.isfinite(point).all():
        raise ValueError(
            f"{what}: expected Frame(point, axes) with three finite numbers (m) and a 3×3 matrix; "
            f"got {given!r}"
        )
    if not np.allclose(axes.T @ axes, np.eye(3), atol=1e-9) or np.linalg.det(axes) < 0:
        raise ValueError(f"{what}: its axes are not a right-handed orthonormal triad (columns)")
    return Frame(point, axes)


class _FloatingBody:
    """A body in a floating frame: arrays for the kernels, made once."""

    name: str
    frame_names: tuple[str, ...]
    num_coordinates: int
    num_velocities: int
    num_elastic: int
    typical_mass: float
    _q0: Array

    def _prepare(
        self,
        total_mass: float,
        S: Array,
        H: Array,
        matrices: tuple[Array, Array, Array],
        frames: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]],
        position: Array,
        rotation: Array,
        spin: Array | None = None,
        bend: Array | None = None,
    ) -> None:
        n = len(S) - 1
        rows = np.ascontiguousarray(H.transpose(0, 2, 3, 1)).reshape(9 * (n + 1), n + 1)
        pairs = np.ascontiguousarray(H).reshape((n + 1) ** 2, 9)
        count = len(frames)
        points, axes, motion = (
            np.zeros((count, 3)),
            np.zeros((count, 3, 3)),
            np.zeros((count, 6, n)),
        )
        for k, (point, triad, move) in enumerate(frames.values()):
            points[k], axes[k], motion[k] = np.asarray(point), np.asarray(triad), np.asarray(move)
        M, C, K = (np.array(m, dtype=float, order="C") for m in matrices)
        values = {
            "frame_names": tuple(frames),
            "num_elastic": n,
            "num_coordinates": 7 + n,
            "num_velocities": 6 + n,
            "typical_mass": float(total_mass),
            "_q0": np.concatenate([position, rotation, np.zeros(n)]),
            "_points": points,
            "_axes": axes,
            "_motion": (
                motion,
                np.zeros((0, 6, n, n)) if bend is None else np.array(bend, order="C"),
            ),
            "_spin": np.zeros((0, n, n)) if spin is None else np.array(spin, order="C"),
            "_inertia": (float(total_mass), np.array(S, dtype=float, order="C"), rows),
            "_pairs": pairs,
            "_matrices": (M, C, K),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    _points: Array
    _axes: Array
    _motion: tuple[Array, Array]  # motion and bend
    _spin: Array
    _inertia: tuple[float, Array, Array]
    _pairs: Array
    _matrices: tuple[Array, Array, Array]

    def frame(self, name: str) -> FrameRef:
        """Reference to a frame of this body, for joints and forces.

        Raises:
            ValueError: If the body has no such frame; the message lists those it has.
        """
        if name not in self.frame_names:
            known = ", ".join(map(repr, self.frame_names)) or "none"
            raise ValueError(f"unknown frame {name!r}; body {self.name!r} has {known}")
        return FrameRef(self.name, name)

    def initial_coordinates(self) -> Array:
        return self._q0.copy()

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        kernels.increment(q, delta, out)

    def increment_tangent(self, delta: Array) -> Array:
        return kernels.tangent(delta[3:6])

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        frame_kernels.frame_poses(self._points, self._axes, *self._motion, q, position, rotation)

    def residual(
        self,
        t: float,
        q: Array,
        v: Array,
        a: Array,
        gravity: Array,
        wrenches: Array,
        out: Array,
        scale: Array,
    ) -> None:
        kernels.body_residual(
            *self._inertia,
            *self._matrices,
            self._spin,
            self._points,
            *self._motion,
            q,
            v,
            a,
            gravity,
            wrenches,
            out,
            scale,
        )

    def tangent(
        self, t: float, q: Array, v: Array, a: Array, gravity: Array, wrenches: Array
    ) -> tuple[Array, Array, Array]:
        return kernels.body_tangent(
            *self._inertia,
            self._pairs,
            *self._matrices,
            self._spin,
            self._points,
            *self._motion,
            q,
            v,
            a,
            gravity,
            wrenches,
        )

    def frame_jacobians(self, q: Array) -> Array:
        return frame_kernels.frame_jacobians(self._points, *self._motion, q)

    def frame_velocities(self, q: Array, v: Array, out: Array) -> None:
        frame_kernels.frame_velocities(self._points, *self._motion, q, v, out)

    def frame_velocity_tangents(self, q: Array, v: Array) -> Array:
        return frame_kernels.frame_velocity_tangents(self._points, *self._motion, q, v)

    def frame_bias(self, q: Array, v: Array) -> Array:
        return frame_kernels.frame_bias(self._points, *self._motion, q, v)

    def energies(self, q: Array, v: Array, gravity: Array) -> Array:
        M, _, K = self._matrices
        return kernels.body_energies(*self._inertia, M, K, self._spin, q, v, gravity)

    def momenta(self, q: Array, v: Array) -> Array:
        return kernels.body_momenta(*self._inertia, self._spin, q, v)


@dataclass(frozen=True, eq=False)
class RigidBody(_FloatingBody):
    """A rigid body.

    Attributes:
        name: Its name in the system and in the results.
        mass: kg.
        inertia: Inertia tensor about the centre of mass, body axes, shape (3, 3) or the diagonal
            (3,), kg m².
        centre: Centre of mass in the body frame, shape (3,), m.
        frames: Where joints and forces meet it, by name.
        position: Origin of the body frame where it starts, shape (3,), m.
        rotation: Quaternion (w, x, y, z) or matrix body → global where it starts.
        shape: What to draw, or None.

    Raises:
        ValueError: If mass is not positive or no mass distribution has this inertia tensor.
    """

    name: str
    mass: float
    inertia: ArrayLike
    centre: ArrayLike = (0.0, 0.0, 0.0)
    frames: Mapping[str, Frame] = field(default_factory=dict)
    position: ArrayLike = (0.0, 0.0, 0.0)
    rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0)
    shape: Shape | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.mass, (int, float, np.number)) and 0 < self.mass < np.inf):
            raise ValueError(
                f"body {self.name!r}: mass must be a positive number (kg), got {self.mass!r}"
            )
        J = np.array(self.inertia, dtype=float)
        J = np.diag(J) if J.shape == (3,) else J
        if J.shape != (3, 3) or not np.allclose(J, J.T, atol=1e-12 * np.abs(J).max(initial=0)):
            raise ValueError(
                f"body {self.name!r}: inertia must be a symmetric 3×3 matrix or its diagonal"
            )
        second = 0.5 * np.trace(J) * np.eye(3) - J  # ∫ρ (x−c)⊗(x−c)
        if np.linalg.eigvalsh(second).min() < -1e-9 * np.trace(J):
            raise ValueError(
                f"body {self.name!r}: no body has principal moments {np.linalg.eigvalsh(J)} kg m²; "
                "each must be at most the sum of the other two"
            )
        if np.linalg.eigvalsh(J).min() <= 0:
            raise ValueError(
                f"body {self.name!r}: inertia has a zero moment {np.linalg.eigvalsh(J)} kg m²; "
                "rotation about that axis would have no inertia. Give a thin rod its true small "
                "moment"
            )
        c = _vector(self.name, "centre", self.centre)
        second = second + self.mass * np.outer(c, c)
        none = np.zeros((0, 0))
        frames = {
            key: (*_frame(self.name, key, frame), np.zeros((6, 0)))
            for key, frame in self.frames.items()
        }
        self._prepare(
            self.mass,
            self.mass * c[None],
            second[None, None],
            (none, none, none),
            frames,
            _vector(self.name, "position", self.position),
            _rotation(self.name, self.rotation),
        )

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
    ) -> RigidBody:
        """A homogeneous box with edges ``size`` (m) along the body axes; give density or mass."""
        sides = _vector(name, "size", size)
        if (sides <= 0).any():
            raise ValueError(f"body {name!r}: size must be positive, got {size!r}")
        m = _mass(name, float(np.prod(sides)), density, mass)
        squares = sides**2
        J = m / 12 * (squares.sum() - squares)
        return cls(name, m, J, centre, frames or {}, position, rotation, box_shape(sides, centre))

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
    ) -> RigidBody:
        """A homogeneous cylinder along body axis 0, 1 or 2, sizes in m; give density or mass."""
        if not (radius > 0 and length > 0):
            raise ValueError(
                f"body {name!r}: radius and length must be positive, got {radius}, {length}"
            )
        if axis not in (0, 1, 2):
            raise ValueError(f"body {name!r}: axis must be 0, 1 or 2, got {axis!r}")
        m = _mass(name, np.pi * radius**2 * length, density, mass)
        J = np.full(3, m * (3 * radius**2 + length**2) / 12)
        J[axis] = m * radius**2 / 2
        shape = cylinder_shape(radius, length, axis, centre)
        return cls(name, m, J, centre, frames or {}, position, rotation, shape)


def _mass(name: str, volume: float, density: float | None, mass: float | None) -> float:
    if (density is None) == (mass is None):
        raise ValueError(f"body {name!r}: give either density (kg/m³) or mass (kg)")
    return mass if mass is not None else float(density) * volume  # type: ignore[arg-type]


def modal_damping(mass: Array, stiffness: Array, ratio: float) -> Array:
    """Damping matrix (n, n) with the same damping ratio in every mode of (K, M).

    Raises:
        ValueError: If the ratio is negative.
    """
    if not 0 <= ratio < np.inf:
        raise ValueError(f"damping ratio must be at least 0 and finite, got {ratio}")
    if len(mass) == 0 or ratio == 0:
        return np.zeros_like(mass)
    L = np.linalg.cholesky(mass)
    inverse = np.linalg.inv(L)
    squares, vectors = np.linalg.eigh(inverse @ stiffness @ inverse.T)
    rates = 2 * ratio * np.sqrt(np.maximum(squares, 0.0))
    damping = L @ (vectors * rates) @ vectors.T @ L.T
    return 0.5 * (damping + damping.T)


@dataclass(frozen=True, eq=False)
class FlexibleBody(_FloatingBody):
    """A reduced flexible body in a mechanism; its frames are the interfaces of the reduced body.

    Attributes:
        name: Its name in the system and in the results.
        reduced: The reduced body; several flexible bodies may share one.
        position: Origin of the body frame where it starts, shape (3,), m.
        rotation: Quaternion (w, x, y, z) or matrix body → global where it starts.
        damping_ratio: Damping ratio of every mode, added to the body's own damping matrix.
            None: :data:`DEFAULT_DAMPING_RATIO` if that matrix is zero, else nothing is added.
        stiffening: Whether the body's geometric stiffening acts; None: if the body has it.

    Raises:
        ValueError: If stiffening is asked for and the body has none, or the damping ratio is
            negative.
    """

    name: str
    reduced: ReducedBody
    position: ArrayLike = (0.0, 0.0, 0.0)
    rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0)
    damping_ratio: float | None = None
    stiffening: bool | None = None

    def __post_init__(self) -> None:
        body = self.reduced
        if not isinstance(body, ReducedBody):
            raise TypeError(
                f"body {self.name!r}: expected a reduced body (reduce(...).body or "
                f"ReducedBody.load(path)), got {type(body).__name__}"
            )
        cases = body.stiffening
        if self.stiffening and cases is None:
            raise ValueError(
                f"body {self.name!r}: its reduced body {body.name!r} holds no stiffening; reduce "
                "it with stiffening=True and the mean-axis reference"
            )
        stiff = cases if self.stiffening is not False else None
        object.__setattr__(self, "stiffening", stiff is not None)
        ratio = self.damping_ratio
        if ratio is None:
            ratio = 0.0 if body.damping.any() else DEFAULT_DAMPING_RATIO
        object.__setattr__(self, "damping_ratio", float(ratio))
        damping = body.damping + modal_damping(body.mass, body.stiffness, ratio)
        self._prepare(
            body.total_mass,
            body.first_moments,
            body.second_moments,
            (body.mass, damping, body.stiffness),
            {i.name: (i.point, i.axes, i.motion) for i in body.interfaces},
            _vector(self.name, "position", self.position),
            _rotation(self.name, self.rotation),
            None if stiff is None else stiff.spin,
            None if stiff is None else stiff.interfaces,
        )


@dataclass(frozen=True, eq=False)
class Ground:
    """What does not move: frames in global coordinates."""

    frames: Mapping[str, Frame] = field(default_factory=dict)
    name: str = "ground"
    num_coordinates: int = field(default=0, init=False)
    num_velocities: int = field(default=0, init=False)
    num_elastic: int = field(default=0, init=False)
    typical_mass: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        for key, frame in self.frames.items():
            _frame(self.name, key, frame)

    @property
    def frame_names(self) -> tuple[str, ...]:
        return tuple(self.frames)

    def frame(self, name: str) -> FrameRef:
        """Reference to a frame of the ground.

        Raises:
            ValueError: If there is no such frame; the message lists those there are.
        """
        if name not in self.frames:
            known = ", ".join(map(repr, self.frames)) or "none"
            raise ValueError(f"unknown frame {name!r}; {self.name!r} has {known}")
        return FrameRef(self.name, name)

    def initial_coordinates(self) -> Array:
        return np.zeros(0)

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        pass

    def increment_tangent(self, delta: Array) -> Array:
        return np.zeros((0, 0))

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        for k, (point, axes) in enumerate(Frame(*frame) for frame in self.frames.values()):
            position[k], rotation[k] = np.asarray(point), np.asarray(axes)

    def residual(
        self,
        t: float,
        q: Array,
        v: Array,
        a: Array,
        gravity: Array,
        wrenches: Array,
        out: Array,
        scale: Array,
    ) -> None:
        pass

    def tangent(
        self, t: float, q: Array, v: Array, a: Array, gravity: Array, wrenches: Array
    ) -> tuple[Array, Array, Array]:
        empty = np.zeros((0, 0))
        return empty, empty, empty

    def frame_jacobians(self, q: Array) -> Array:
        return np.zeros((len(self.frames), 6, 0))

    def frame_velocities(self, q: Array, v: Array, out: Array) -> None:
        pass

    def frame_velocity_tangents(self, q: Array, v: Array) -> Array:
        return np.zeros((len(self.frames), 6, 0))

    def frame_bias(self, q: Array, v: Array) -> Array:
        return np.zeros((len(self.frames), 6))

    def energies(self, q: Array, v: Array, gravity: Array) -> Array:
        return np.zeros(3)

    def momenta(self, q: Array, v: Array) -> Array:
        return np.zeros(6)
