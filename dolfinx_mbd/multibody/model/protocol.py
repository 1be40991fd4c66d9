"""What the core needs of a body: the small protocol through which anything joins a mechanism.

The core asks a body for its residual, its tangent and the frames where joints and forces meet it,
and for nothing else.  A body that is not in a floating frame fits in by giving the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, instance, name, refuse, vector
from dolfinx_mbd.errors import InputTypeError

__all__ = ["Body", "BodyState", "Frame", "checked_frames"]

Array = NDArray[np.float64]

_AXES = np.eye(3)


class _Frame(NamedTuple):
    point: ArrayLike
    axes: ArrayLike


class Frame(_Frame):
    """A frame fixed to a body: its point (3,) in m and its axes, columns in body components.

    Raises:
        InputError: The point is not three finite numbers, or the axes are not a right-handed
            orthonormal triad.
    """

    __slots__ = ()

    def __new__(cls, point: ArrayLike = (0.0, 0.0, 0.0), axes: ArrayLike = _AXES) -> Frame:
        vector("point of a frame", point, unit="m")
        expected = "a 3×3 matrix whose columns are a right-handed orthonormal triad"
        A: Array = array("axes of a frame", axes, (3, 3), expected=expected)
        if not np.allclose(A.T @ A, np.eye(3), atol=1e-9) or np.linalg.det(A) < 0:
            refuse("axes of a frame", axes, expected)
        return super().__new__(cls, point, axes)


class BodyState(NamedTuple):
    """State of a body at a time, with the forces that act on it.

    Attributes:
        t: Time, s.
        q: Coordinates, shape (nq,).
        v: Velocities, shape (nv,).
        a: Rates of the velocities, shape (nv,).
        gravity: Acceleration of gravity, global components, shape (3,), m/s².
        wrenches: Force and moment at each frame, global components, shape (F, 6), N and N m.
    """

    t: float
    q: Array
    v: Array
    a: Array
    gravity: Array
    wrenches: Array


@runtime_checkable
class Body(Protocol):
    """What the core needs of a body.

    Coordinates q (nq) begin with position and quaternion if the body has any; velocities v, their
    rates a and increments of q have nv entries.  Frames are numbered; wrenches (F, 6) are force and
    moment at a frame's point in global components.  Rows are forces that balance to zero.

    Optional: ``steady_rates(q, v)``, rates of v (nv,) where the body turns without deforming, for a
    quasi-static start; ``check(system)`` refuses what the body cannot do; ``motion(solution)``
    gives its motion by name where that is not position, rotation and η.
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

    def residual(self, state: BodyState, out: Array, scale: Array) -> None:
        """Fill in the rows (nv,) and the sums of the magnitudes of their terms (nv,)."""

    def tangent(self, state: BodyState) -> tuple[Array, Array, Array]:
        """Return the derivatives of the rows to q (increments), v and a, (nv, nv) each."""

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


def checked_frames(body: str, frames: Any) -> dict[str, Frame]:
    """Return the frames of a body by name; a frame may be a tuple of its point and its axes.

    Raises:
        InputError: The frames are not a mapping from names to frames.
    """
    checked = {}
    for key, frame in instance(f"body {body!r}: frames", frames, Mapping).items():
        label = f"body {body!r}: frame {name('every name of a frame', key)!r}"
        if not isinstance(frame, (tuple, list)) or len(frame) > 2:
            refuse(label, frame, "Frame(point, axes)", InputTypeError)
        checked[key] = Frame(*frame)
    return checked
