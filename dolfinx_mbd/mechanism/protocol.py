"""The interface that every body of a mechanism implements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import axes_along
from dolfinx_mbd.checks import array, instance, metres, name, reject, vector
from dolfinx_mbd.errors import InputTypeError
from dolfinx_mbd.html import short_repr

__all__ = ["Body", "BodyState", "Frame", "checked_frames"]

Array = NDArray[np.float64]

_AXES = np.eye(3)


class Frame(NamedTuple("_Frame", [("point", ArrayLike), ("axes", ArrayLike)])):
    """A frame fixed to a body.

    Attributes:
        point: Point of the frame in the body frame, shape (3,), m, or with units such as
            ``("5mm", 0, 0)``; by default the origin.
        axes: Axes as columns in body components, shape (3, 3), or only the direction of z,
            shape (3,); x is then the projection of the body's x axis (y axis if z is close to x).
            By default the body axes.

    Raises:
        InputError: The point is not three finite numbers, or the axes are not a right-handed
            orthonormal triad.

    Example:
        >>> tip = mbd.Frame((0.5, 0, 0))
        >>> print(mbd.Frame(axes=(1, 0, 0)).axes)  # z along x
        [[0. 0. 1.]
         [1. 0. 0.]
         [0. 1. 0.]]
    """

    __slots__ = ()

    def __new__(cls, point: ArrayLike = (0.0, 0.0, 0.0), axes: ArrayLike = _AXES) -> Frame:
        """Check the point and the axes."""
        point = metres(point)
        vector("point of a frame", point, unit="m")
        expected = (
            "a 3×3 matrix whose columns are a right-handed orthonormal triad, "
            "or the direction of z, three numbers"
        )
        A: Array = array("axes of a frame", axes, expected=expected)
        if A.shape == (3,) and A.any():
            axes = A = axes_along(A)
        if A.shape != (3, 3):
            reject("axes of a frame", axes, expected)
        if not np.allclose(A.T @ A, np.eye(3), atol=1e-9) or np.linalg.det(A) < 0:
            reject("axes of a frame", axes, expected)
        return super().__new__(cls, point, axes)


class BodyState(NamedTuple):
    """State of a body at one time, with the forces that act on it."""

    t: float
    q: Array  # coordinates (nq,)
    v: Array  # velocities (nv,)
    a: Array  # rates of the velocities (nv,)
    gravity: Array  # in global components (3,), m/s²
    wrenches: Array  # forces and moments at the frames in global components (frames, 6), N and N m

    def __repr__(self) -> str:
        return short_repr(self)


@runtime_checkable
class Body(Protocol):
    """The interface of a body in a mechanism.

    Coordinates q (nq) begin with position and quaternion if the body has them. Velocities v, their
    rates a and increments of q have nv entries. Derivatives with respect to q are derivatives with
    respect to increments of q. Wrenches (frames, 6) are forces and moments at the points of the
    frames in global components.

    A body may have four more methods. `initial_velocities()` returns the velocities at the start
    (nv,), with NaN for velocities that follow from the constraints. `steady_rates(q, v)` returns
    the rates of v (nv,) in a rotation without deformation, for a quasi-static start.
    `check(system)` raises an error if a system cannot contain the body. `motion(solution)` returns
    the history of a body whose motion is not described by position, rotation and η.

    For pictures, a body with position and quaternion has a property `drawing`, its surface as a
    `Skin` with modes or a `Shape`; if it is None, bars from the `centre` of mass to the frames
    represent the body. Other bodies may have a method `line(q)` that returns points (nt, points, 3)
    on their centre line for coordinates q (nt, nq), or a property `drawing`, a `Skin` without
    modes, and a method `surface(q)` that returns the positions of its points (nt, nodes, 3), m.
    """

    @property
    def name(self) -> str:
        """Name in the system."""

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Names of the frames."""

    @property
    def num_coordinates(self) -> int:
        """Number nq of coordinates."""

    @property
    def num_velocities(self) -> int:
        """Number nv of velocities."""

    @property
    def num_elastic(self) -> int:
        """Number of elastic coordinates, which are the last ones."""

    @property
    def typical_mass(self) -> float:
        """Mass for scaling, kg."""

    def initial_coordinates(self) -> Array:
        """Return the coordinates before the mechanism is assembled, shape (nq,)."""

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        """Set `out` to the coordinates q after an increment."""

    def increment_tangent(self, delta: Array) -> Array:
        """Return T (3, 3) with `q∘exp(δ+ε) = (q∘exp(δ))∘exp(Tε)` for rotations q and small ε."""

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        """Set positions (frames, 3) and orientations (frames, 3, 3) of the frames."""

    def residual(self, state: BodyState, out: Array, scale: Array) -> None:
        """Set the residual (nv,) and the sums of the magnitudes of its terms (nv,)."""

    def tangent(self, state: BodyState) -> tuple[Array, Array, Array]:
        """Return the derivatives of the residual with respect to q, v and a, (nv, nv) each."""

    def frame_jacobians(self, q: Array) -> Array:
        """Return the derivative of `frame_velocities` with respect to v, shape (frames, 6, nv)."""

    def frame_velocities(self, q: Array, v: Array, out: Array) -> None:
        """Set velocities and angular velocities (frames, 6) of the frames in global components."""

    def frame_velocity_tangents(self, q: Array, v: Array) -> Array:
        """Return the derivative of `frame_velocities` with respect to q, shape (frames, 6, nv)."""

    def frame_bias(self, q: Array, v: Array) -> Array:
        """Return the accelerations of the frames for v̇ = 0, shape (frames, 6)."""

    def energies(self, q: Array, v: Array, gravity: Array) -> Array:
        """Return kinetic, elastic and gravitational energy, shape (3,), J."""

    def momenta(self, q: Array, v: Array) -> Array:
        """Return linear and angular momentum about the global origin, shape (6,)."""


def checked_frames(body: str, frames: Any) -> dict[str, Frame]:
    """Return the frames of a body by name; a frame may also be a tuple (point, axes)."""
    checked = {}
    for key, frame in instance(f"body {body!r}: frames", frames, Mapping).items():
        label = f"body {body!r}: frame {name('every name of a frame', key)!r}"
        if not isinstance(frame, (tuple, list)) or len(frame) > 2:
            reject(label, frame, "Frame(point, axes)", InputTypeError)
        checked[key] = Frame(*frame)
    return checked
