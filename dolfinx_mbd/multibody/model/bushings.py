"""Bushings: springs and dampers in all six relative motions of two frames.

The frames have the points p₁ and p₂ and the axes Q₁ and Q₂. The displacement x = Q₁ᵀ(p₂ − p₁) has
components in the first frame, and θ is the rotation vector of R₀ᵀ Q₁ᵀ Q₂. The neutral pose is (x₀,
R₀). With s = (x − x₀, θ), stiffness K and damping C, the energy is ½ sᵀ K s and the wrenches are
−Hᵀ(K s + C ṡ). The matrix H maps the velocities u of the frames to ṡ = H u. The springs do no net
work on a closed path, even with finite rotations. |θ| must not exceed 3 rad.

A `TabulatedBearing` has the displacement x − x₀ only, with K(Ω) and C(Ω). Ω = e₃·Q₁ᵀ(ω₂ − ω₁) is
the speed of the second frame relative to the first frame, about the z axis of the first frame.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import array, choice, instance, reject, vector
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.rotations import rotation_vector, skew, tangent, tangent_derivative
from dolfinx_mbd.multibody.model.bearing_tables import BearingTable
from dolfinx_mbd.multibody.model.force_elements import FramePair, PairElement
from dolfinx_mbd.multibody.model.joints import FrameRef

__all__ = ["Bushing", "TabulatedBearing"]

Array = NDArray[np.float64]

_LARGEST = 3.0  # largest rotation, rad; the rotation vector is not unique at π
_SPEED_MARGIN = 1e-6  # permitted excess over the speeds of a table, relative to the largest


@dataclass(frozen=True, eq=False)
class Bushing(PairElement):
    """An elastic bearing between two frames, linear in the six relative motions.

    Attributes:
        name: Name in the system.
        first: Frame in whose axes displacements are measured, for example `rod.frame("left")`.
        second: The other frame.
        stiffness: Stiffness along x, y, z (N/m) and about them (N m/rad), shape (6,), or a
            symmetric matrix (6, 6).
        damping: Damping coefficients, N s/m and N m s/rad, with the shape of `stiffness`.
        neutral: Neutral pose: displacement (3,), m, and relative rotation Q₁ᵀQ₂ (3, 3) at which the
            springs exert no load; by default measured at the initial positions.

    Raises:
        InputError: An argument is invalid. Stiffness and damping must be six non-negative numbers
            or a symmetric, positive semi-definite matrix; the neutral rotation must be a rotation
            matrix.

    Example:
        >>> ends = ground.frame("bearing"), rod.frame("left")
        >>> mount = mbd.Bushing("mount", *ends, stiffness=[1e6, 1e6, 1e5, 1e3, 1e3, 0])
    """

    is_elastic: ClassVar[bool] = True
    name: str
    first: FrameRef
    second: FrameRef
    stiffness: ArrayLike
    damping: ArrayLike = (0.0,) * 6
    neutral: tuple[ArrayLike, ArrayLike] | None = None
    _K: Array = field(init=False, repr=False)
    _C: Array = field(init=False, repr=False)
    _neutral: tuple[Array, Array] = field(init=False, repr=False)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        self._check_ends()
        assign(self, _K=self._matrix("stiffness"), _C=self._matrix("damping"))
        label = f"bushing {self.name!r}: neutral"
        expected = "a tuple of a displacement (3,) and a rotation (3, 3)"
        neutral = (np.zeros(3), np.eye(3)) if self.neutral is None else self.neutral
        if not isinstance(neutral, (tuple, list)) or len(neutral) != 2:
            reject(label, neutral, expected, InputTypeError)
        x = array(label, neutral[0], (3,), expected=expected)
        R = array(label, neutral[1], (3, 3), expected=expected)
        if not np.allclose(R.T @ R, np.eye(3), atol=1e-9):
            reject(label, neutral, expected)
        assign(self, _neutral=(x, R))

    def _matrix(self, argument: str) -> Array:
        label, value = f"bushing {self.name!r}: {argument}", getattr(self, argument)
        expected = (
            "six non-negative numbers (three along, three about x, y, z) or a symmetric, positive "
            "semi-definite 6×6 matrix"
        )
        matrix: Array = array(label, value, expected=expected)
        matrix = np.diag(matrix) if matrix.shape == (6,) else matrix
        tolerance = 1e-12 * float(np.abs(matrix).max(initial=0.0))
        if (
            matrix.shape != (6, 6)
            or not np.allclose(matrix, matrix.T, rtol=0, atol=tolerance)
            or np.linalg.eigvalsh(matrix).min() < -tolerance
        ):
            reject(label, value, expected)
        return matrix

    def placed(self, pair: FramePair) -> Bushing:
        """Return the bushing, with the neutral pose measured at `pair` if it is not given."""
        if self.neutral is not None:
            return self
        return replace(self, neutral=(pair.Q1.T @ (pair.p2 - pair.p1), pair.Q1.T @ pair.Q2))

    def coordinates(self, pair: FramePair) -> Array:
        """Return displacement and rotation vector from the neutral pose, shape (6,)."""
        x, R = self._neutral
        theta = rotation_vector(R.T @ pair.Q1.T @ pair.Q2)
        angle = float(np.linalg.norm(theta))
        if angle > _LARGEST:
            raise InputError(
                f"bushing {self.name!r} is turned by {angle:.3g} rad, more than the limit of 3 rad."
                " Use a joint with a JointSpring for large rotations"
            )
        return np.concatenate([pair.Q1.T @ (pair.p2 - pair.p1) - x, theta])

    def _rates(self, pair: FramePair) -> tuple[Array, Array, Array]:
        """Return the coordinates s (6,), H (6, 12) and the rates ṡ = H u (6,)."""
        s = self.coordinates(pair)
        H = np.vstack([_displacement_map(pair), np.zeros((3, 12))])
        H[3:, 9:] = np.linalg.solve(tangent(s[3:]), pair.Q2.T)
        H[3:, 3:6] = -H[3:, 9:]
        return s, H, H @ np.concatenate([pair.u1, pair.u2])

    def wrenches(self, pair: FramePair) -> Array:
        """Return forces and moments on both frames."""
        s, H, rate = self._rates(pair)
        return -H.T @ (self._K @ s + self._C @ rate)

    def derivatives(self, pair: FramePair) -> tuple[Array, Array]:
        """Return the derivatives of the wrenches."""
        s, H, rate = self._rates(pair)
        D = -_gradient_change(pair, s[3:], H, self._K @ s + self._C @ rate)
        D -= H.T @ (self._K @ H + self._C @ _rate_change(pair, s[3:], H, rate))
        return D, -H.T @ self._C @ H

    def energy(self, pair: FramePair) -> float:
        """Return the energy of the springs, J."""
        s = self.coordinates(pair)
        return 0.5 * float(s @ self._K @ s)

    def motion(self, pair: FramePair) -> dict[str, ArrayLike]:
        """Return displacement (m) and rotation vector (rad) from the neutral pose, and rates."""
        s, _, rate = self._rates(pair)
        names = "displacement", "rotation", "displacement_rate", "rotation_rate"
        return dict(zip(names, (*s.reshape(2, 3), *rate.reshape(2, 3)), strict=True))


@dataclass(frozen=True, eq=False)
class TabulatedBearing(PairElement):
    """A bearing of a shaft whose stiffness and damping depend on the speed, from a table.

    The load is linear in the displacement and the velocity of the shaft. The cross-coupled
    coefficients of an oil film can make the rotor unstable. The load has no moment about the point
    of the second frame.

    Attributes:
        name: Name in the system.
        first: Frame of the housing; its z axis is the axis of the bearing, and the coefficients
            refer to its axes.
        second: Frame of the shaft.
        table: Stiffness and damping over the speed. The speed is positive if the shaft rotates from
            x to y relative to the housing.
        outside: At speeds above the table or in the other direction, ``error`` stops the
            simulation, and ``nearest`` uses the coefficients of the nearest speed. Between
            standstill and the table, the coefficients of the nearest speed always act.
        neutral: Displacement at which the springs exert no load, shape (3,), m, in the axes of
            `first`; by default measured at the initial positions.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> table = mbd.BearingTable([0.0], [np.diag([1e7, 1e7, 0])], [np.diag([1e3, 1e3, 0])])
        >>> ends = ground.frame("bearing"), rod.frame("left")
        >>> bearing = mbd.TabulatedBearing("film", *ends, table)
    """

    name: str
    first: FrameRef
    second: FrameRef
    table: BearingTable
    outside: Literal["error", "nearest"] = "error"
    neutral: ArrayLike | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        self._check_ends()
        label = f"bearing {self.name!r}"
        instance(f"{label}: table", self.table, BearingTable, "BearingTable.read(path)")
        choice(f"{label}: outside", self.outside, ("error", "nearest"))
        if self.neutral is not None:
            assign(self, neutral=vector(f"{label}: neutral", self.neutral, unit="m"))

    def placed(self, pair: FramePair) -> TabulatedBearing:
        """Return the bearing, with the neutral position measured at `pair` if it is not given."""
        if self.neutral is not None:
            return self
        return replace(self, neutral=pair.Q1.T @ (pair.p2 - pair.p1))

    def _displacement(self, pair: FramePair) -> Array:
        """Return the displacement from the neutral position in the first frame, (3,), m."""
        neutral = np.zeros(3) if self.neutral is None else np.asarray(self.neutral)
        return np.asarray(pair.Q1.T @ (pair.p2 - pair.p1) - neutral)

    def _speed(self, pair: FramePair) -> float:
        """Return the speed of the shaft relative to the housing, rad/s."""
        return float(pair.Q1[:, 2] @ (pair.u2[3:] - pair.u1[3:]))

    def _coefficients(self, pair: FramePair) -> tuple[Array, Array]:
        """Return stiffness and damping, and their derivatives with respect to the speed."""
        speed, (low, high) = self._speed(pair), self.table.range
        margin = _SPEED_MARGIN * max(abs(low), abs(high))
        if self.outside == "error" and not min(low, 0) - margin <= speed <= max(high, 0) + margin:
            raise InputError(
                f"bearing {self.name!r} rotates at {speed:.6g} rad/s; its table covers {low:.6g} to"
                f" {high:.6g} rad/s. Extend the table, use outside='nearest', or turn both frames "
                "about x by half a turn if the shaft rotates in the other direction"
            )
        return self.table.at(speed)

    def wrenches(self, pair: FramePair) -> Array:
        """Return forces and moments on both frames."""
        (K, C), _ = self._coefficients(pair)
        s, H = self._displacement(pair), _displacement_map(pair)
        return np.asarray(-H.T @ (K @ s + C @ H @ np.concatenate([pair.u1, pair.u2])))

    def derivatives(self, pair: FramePair) -> tuple[Array, Array]:
        """Return the derivatives of the wrenches."""
        (K, C), (dK, dC) = self._coefficients(pair)
        s, H = self._displacement(pair), _displacement_map(pair)
        rate = H @ np.concatenate([pair.u1, pair.u2])
        slope = dK @ s + dC @ rate
        axis, by_pose, by_speed = pair.Q1[:, 2], np.zeros(12), np.zeros(12)
        by_pose[3:6] = axis @ skew(pair.u2[3:] - pair.u1[3:])
        by_speed[3:6], by_speed[9:] = -axis, axis
        D = -_displacement_gradient_change(pair, K @ s + C @ rate)
        D -= H.T @ (K @ H + C @ _displacement_rate_change(pair) + np.outer(slope, by_pose))
        return D, -H.T @ (C @ H + np.outer(slope, by_speed))

    def energy(self, pair: FramePair) -> float:
        """Return zero: a bearing with cross-coupled coefficients has no potential energy."""
        return 0.0

    def motion(self, pair: FramePair) -> dict[str, ArrayLike]:
        """Return the displacement (m) from the neutral position, its rate, and the speed."""
        rate = _displacement_map(pair) @ np.concatenate([pair.u1, pair.u2])
        return {
            "displacement": self._displacement(pair),
            "displacement_rate": rate,
            "rotation_rate": self._speed(pair),
        }


def _displacement_map(pair: FramePair) -> Array:
    """Return the matrix (3, 12) from the velocities of both frames to ẋ."""
    Q = pair.Q1.T
    return np.hstack([-Q, Q @ skew(pair.p2 - pair.p1), Q, np.zeros((3, 3))])


def _displacement_gradient_change(pair: FramePair, f: Array) -> Array:
    """Return the derivative (12, 12) of the map's transpose times a constant force f (3,)."""
    D = np.zeros((12, 12))
    d, L = skew(pair.p2 - pair.p1), skew(pair.Q1 @ f)
    D[:3, 3:6] = L
    D[6:9, 3:6] = -L
    D[3:6, 3:6] = d @ L
    D[3:6, :3] = -L
    D[3:6, 6:9] = L
    return D


def _displacement_rate_change(pair: FramePair) -> Array:
    """Return the derivative (3, 12) of ẋ with respect to both poses for constant velocities."""
    d, w1 = pair.p2 - pair.p1, pair.u1[3:]
    relative = pair.u2[:3] - pair.u1[:3] - np.cross(w1, d)
    by_point, zero = pair.Q1.T @ skew(w1), np.zeros((3, 3))
    return np.hstack([by_point, pair.Q1.T @ skew(relative), -by_point, zero])


def _gradient_change(pair: FramePair, theta: Array, H: Array, g: Array) -> Array:
    """Return the derivative (12, 12) of Hᵀg with respect to both poses for constant g (6,)."""
    D = _displacement_gradient_change(pair, g[:3])
    # The moment Q₂ T⁻ᵀ g rotates with the second frame, and T depends on θ
    inverse = np.linalg.inv(tangent(theta))
    w = inverse.T @ g[3:]
    change = pair.Q2 @ inverse.T @ tangent_derivative(-theta, w) @ H[3:]
    change[:, 9:] -= skew(pair.Q2 @ w)
    D[9:] += change
    D[3:6] -= change
    return D


def _rate_change(pair: FramePair, theta: Array, H: Array, rate: Array) -> Array:
    """Return the derivative (6, 12) of H u with respect to both poses for constant u."""
    D = np.vstack([_displacement_rate_change(pair), np.zeros((3, 12))])
    inverse = np.linalg.inv(tangent(theta))
    D[3:] = -inverse @ tangent_derivative(theta, rate[3:]) @ H[3:]
    D[3:, 9:] += inverse @ pair.Q2.T @ skew(pair.u2[3:] - pair.u1[3:])
    return D
