"""Bushings: springs and dampers in all six relative motions of two frames.

The laws depend on the relative motion d, R, v, ω of `relation`. The neutral pose is (x₀, R₀), and
θ is the rotation vector of R₀ᵀR. With s = (d − x₀, θ), stiffness K and damping C, the energy is
½ sᵀKs. With (f, m) = K s + C ṡ, the force is −f and the moment −R T⁻ᵀm, where Rᵀω = T(θ) θ̇. The
springs do no net work on a closed path, even with finite rotations. |θ| must not exceed 3 rad.

A `TabulatedBearing` has the displacement d − x₀ only, with K(Ω) and C(Ω). Ω = ω_z is the speed of
the second frame relative to the first frame, about the z axis of the first frame.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import array, choice, instance, reject, vector
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.bushings import bushing_motion
from dolfinx_mbd.kernels.columns import DISPLACEMENT, FORCE, MOMENT, ROTATION, SPIN, VELOCITY
from dolfinx_mbd.kernels.rotations import skew, tangent_derivative
from dolfinx_mbd.mechanism.bearing_tables import BearingTable
from dolfinx_mbd.mechanism.force_elements import FramePair
from dolfinx_mbd.mechanism.joints import FrameRef
from dolfinx_mbd.mechanism.law_elements import LawElement, PairMotion

__all__ = ["Bushing", "TabulatedBearing"]

Array = NDArray[np.float64]

_MAX_ANGLE = 3.0  # largest rotation, rad; the rotation vector is not unique at π
_SPEED_MARGIN = 1e-6  # permitted excess over the speeds of a table, relative to the largest


@dataclass(frozen=True, eq=False)
class Bushing(LawElement):
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

    kind: ClassVar[str] = "bushing"
    is_elastic: ClassVar[bool] = True
    name: str
    first: FrameRef
    second: FrameRef
    stiffness: ArrayLike
    damping: ArrayLike = (0.0,) * 6
    neutral: tuple[ArrayLike, ArrayLike] | None = None
    _K: Array = field(init=False, repr=False)  # stiffness matrix (6, 6)
    _C: Array = field(init=False, repr=False)  # damping matrix (6, 6)
    # Neutral displacement and rotation
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
        if not np.allclose(R.T @ R, np.eye(3), atol=1e-9) or np.linalg.det(R) < 0:
            reject(label, neutral, expected)
        assign(self, _neutral=(x, R))

    def _matrix(self, argument: str) -> Array:
        """Return a stiffness or damping as a symmetric matrix (6, 6)."""
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

    def coordinates(self, motion: PairMotion) -> Array:
        """Return displacement (m) and rotation vector (rad) from the neutral pose, shape (6,)."""
        return self._motion(motion)[0]

    def _motion(self, motion: PairMotion) -> tuple[Array, Array, Array]:
        """Return s (6,), ṡ (6,) and the inverse of T (3, 3)."""
        s, rate, inverse = bushing_motion(
            *self._neutral, motion.displacement, motion.rotation, motion.velocity, motion.omega
        )
        angle = math.hypot(*s[ROTATION])
        if angle > _MAX_ANGLE:
            raise InputError(
                f"bushing {self.name!r} is turned by {angle:.3g} rad, more than the limit of 3 rad."
                " Use a joint with a JointSpring for large rotations"
            )
        return s, rate, inverse

    def _terms(self, motion: PairMotion) -> tuple[Array, Array, Array, Array]:
        """Return s (6,), ṡ (6,), the inverse of T (3, 3), and g = K s + C ṡ (6,)."""
        s, rate, inverse = self._motion(motion)
        return s, rate, inverse, np.asarray(self._K @ s + self._C @ rate)

    def value(self, motion: PairMotion) -> Array:
        """Return force and moment on the second frame, shape (6,)."""
        _, _, inverse, g = self._terms(motion)
        return -np.concatenate([g[:3], motion.rotation @ (inverse.T @ g[3:])])

    def slopes(self, motion: PairMotion) -> Array:
        """Return the derivatives of force and moment, shape (6, 12)."""
        s, rate, inverse, g = self._terms(motion)
        R, theta = motion.rotation, s[3:]
        by_rotation, w = inverse @ R.T, inverse.T @ g[3:]  # θ̇ = T⁻¹Rᵀω; the moment is −R w
        by_motion, rate_by_motion = np.zeros((6, 12)), np.zeros((6, 12))
        by_motion[DISPLACEMENT, DISPLACEMENT] = rate_by_motion[DISPLACEMENT, VELOCITY] = np.eye(3)
        by_motion[ROTATION, ROTATION] = rate_by_motion[ROTATION, SPIN] = by_rotation
        rate_by_motion[ROTATION, ROTATION] = by_rotation @ skew(motion.omega)
        rate_by_motion[ROTATION, ROTATION] -= (
            inverse @ tangent_derivative(theta, rate[3:]) @ by_rotation
        )
        G = -(self._K @ by_motion + self._C @ rate_by_motion)
        G[3:] = by_rotation.T @ G[3:]
        G[MOMENT, ROTATION] += skew(R @ w)
        G[MOMENT, ROTATION] -= by_rotation.T @ tangent_derivative(-theta, w) @ by_rotation
        return G

    def stored_energy(self, motion: PairMotion) -> float:
        """Return the energy of the springs, J."""
        s = self.coordinates(motion)
        return 0.5 * float(s @ self._K @ s)

    def quantities(self, motion: PairMotion) -> dict[str, ArrayLike]:
        """Return displacement (m) and rotation vector (rad) from the neutral pose, and rates."""
        s, rate, *_ = self._terms(motion)
        names = "displacement", "rotation", "displacement_rate", "rotation_rate"
        return dict(zip(names, (*s.reshape(2, 3), *rate.reshape(2, 3)), strict=True))


@dataclass(frozen=True, eq=False)
class TabulatedBearing(LawElement):
    """A bearing of a shaft whose stiffness and damping depend on the speed, from a table.

    The load is linear in the displacement and the velocity of the shaft. The cross-coupled
    coefficients of an oil film can make the rotor unstable. The load has no moment about the point
    of the second frame.

    Attributes:
        name: Name in the system.
        first: Frame of the housing; its z axis is the axis of the bearing, and the coefficients
            refer to its axes.
        second: Frame of the shaft.
        table: Stiffness and damping over the speed, rad/s. The speed is positive if the shaft
            rotates from x to y relative to the housing.
        outside: At speeds that are neither in the table nor between standstill and the table,
            ``error`` stops the simulation, and ``nearest`` uses the coefficients of the nearest
            speed. Between standstill and the table, these always act.
        neutral: Displacement at which the springs exert no load, shape (3,), m, in the axes of
            `first`; by default measured at the initial positions.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> table = mbd.mechanism.BearingTable(
        ...     [0.0], [np.diag([1e7, 1e7, 0])], [np.diag([1e3, 1e3, 0])]
        ... )
        >>> ends = ground.frame("bearing"), rod.frame("left")
        >>> bearing = mbd.mechanism.TabulatedBearing("film", *ends, table)
    """

    kind: ClassVar[str] = "bearing"
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

    def _displacement(self, motion: PairMotion) -> Array:
        """Return the displacement from the neutral position, shape (3,), m.

        Before `placed`, the neutral position is that of coinciding frames.
        """
        neutral = np.zeros(3) if self.neutral is None else np.asarray(self.neutral)
        return np.asarray(motion.displacement - neutral)

    def _coefficients(self, speed: float) -> tuple[Array, Array]:
        """Return the stiffness and damping at a speed, and their derivatives with respect to it."""
        low, high = self.table.range
        margin = _SPEED_MARGIN * max(abs(low), abs(high))
        if self.outside == "error" and not min(low, 0) - margin <= speed <= max(high, 0) + margin:
            raise InputError(
                f"bearing {self.name!r} rotates at {speed:.6g} rad/s; its table covers {low:.6g} to"
                f" {high:.6g} rad/s. Extend the table, use outside='nearest', or turn both frames "
                "about x by half a turn if the shaft rotates in the other direction"
            )
        return self.table.at(speed)

    def value(self, motion: PairMotion) -> Array:
        """Return force and moment on the second frame, shape (6,)."""
        (K, C), _ = self._coefficients(motion.omega[2])
        force = -(K @ self._displacement(motion) + C @ motion.velocity)
        return np.concatenate([force, np.zeros(3)])

    def slopes(self, motion: PairMotion) -> Array:
        """Return the derivatives of force and moment, shape (6, 12)."""
        (K, C), (dK, dC) = self._coefficients(motion.omega[2])
        G = np.zeros((6, 12))
        G[FORCE, DISPLACEMENT], G[FORCE, VELOCITY] = -K, -C
        G[FORCE, SPIN][:, 2] = -(dK @ self._displacement(motion) + dC @ motion.velocity)
        return G

    def stored_energy(self, motion: PairMotion) -> float:
        """Return zero: a bearing with cross-coupled coefficients has no potential energy."""
        return 0.0

    def quantities(self, motion: PairMotion) -> dict[str, ArrayLike]:
        """Return the displacement (m) from the neutral position, its rate, and the speed."""
        return {
            "displacement": self._displacement(motion),
            "displacement_rate": motion.velocity,
            "rotation_rate": float(motion.omega[2]),
        }
