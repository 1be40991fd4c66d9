"""Bushings: six stiffnesses and dampings between two frames.

With x = Q₁ᵀ(p₂ − p₁), the displacement in the first frame's axes, and θ, the rotation vector of
R₀ᵀ Q₁ᵀ Q₂ (R₀ the relative rotation without moment), the bushing stores ½ (x−x₀)ᵀ K (x−x₀) +
½ θᵀ K_θ θ.  Its wrenches are −Hᵀ(K s + C ṡ) with ṡ = H u: they do the work of these six
coordinates, so that a finite rotation costs no energy on a closed path.  θ is in the axes of the
second frame without moment and holds below half a turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, refuse
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.kernels.rotations import rotation_vector, skew, tangent, tangent_derivative
from dolfinx_mbd.multibody.model.force_elements import FramePair, PairElement, checked_ends
from dolfinx_mbd.multibody.model.joints import FrameRef

__all__ = ["Bushing"]

Array = NDArray[np.float64]

_LARGEST = 3.0  # rad: the rotation vector is not unique at π


@dataclass(frozen=True, eq=False)
class Bushing(PairElement):
    """An elastic bearing between two frames, linear in the six relative motions.

    Attributes:
        name: Its name in the system.
        first: Frame whose axes x, y, z the displacements are measured along.
        second: The other frame.
        stiffness: Along x, y, z (N/m) and about them (N m/rad), shape (6,), or symmetric (6, 6).
        damping: The same, N s/m and N m s/rad.
        neutral: Displacement (3,), m, and relative rotation Q₁ᵀQ₂ (3, 3) without force; None: as
            the bodies are placed.

    Raises:
        InputError: An argument is unusable: stiffness or damping are neither six numbers of at
            least 0 nor a symmetric, positive semi-definite matrix, or the neutral rotation is not a
            rotation.
    """

    name: str
    first: FrameRef
    second: FrameRef
    stiffness: ArrayLike
    damping: ArrayLike = (0.0,) * 6
    neutral: tuple[ArrayLike, ArrayLike] | None = None
    _K: Array = field(init=False, repr=False)
    _C: Array = field(init=False, repr=False)
    _neutral: tuple[Array, Array] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        checked_ends(self)
        object.__setattr__(self, "_K", self._matrix("stiffness"))
        object.__setattr__(self, "_C", self._matrix("damping"))
        object.__setattr__(self, "_neutral", (np.zeros(3), np.eye(3)))
        if self.neutral is None:
            return
        label = f"bushing {self.name!r}: neutral"
        expected = "a tuple of a displacement (3,) and a rotation (3, 3)"
        if not isinstance(self.neutral, (tuple, list)) or len(self.neutral) != 2:
            refuse(label, self.neutral, expected, InputTypeError)
        x: Array = array(label, self.neutral[0], (3,), expected=expected)
        R: Array = array(label, self.neutral[1], (3, 3), expected=expected)
        if not np.allclose(R.T @ R, np.eye(3), atol=1e-9):
            refuse(label, self.neutral, expected)
        object.__setattr__(self, "_neutral", (x, R))

    def _matrix(self, what: str) -> Array:
        label, value = f"bushing {self.name!r}: {what}", getattr(self, what)
        expected = (
            "six numbers of at least 0 (three along, three about x, y, z) or a symmetric, positive "
            "semi-definite 6×6 matrix"
        )
        matrix: Array = array(label, value, expected=expected)
        matrix = np.diag(matrix) if matrix.shape == (6,) else matrix
        large = float(np.abs(matrix).max(initial=0.0))
        if (
            matrix.shape != (6, 6)
            or not np.allclose(matrix, matrix.T, rtol=0, atol=1e-12 * large)
            or np.linalg.eigvalsh(matrix).min() < -1e-12 * large
        ):
            refuse(label, value, expected)
        return matrix

    def placed(self, pair: FramePair) -> Bushing:
        if self.neutral is not None:
            return self
        return replace(self, neutral=(pair.Q1.T @ (pair.p2 - pair.p1), pair.Q1.T @ pair.Q2))

    def coordinates(self, pair: FramePair) -> Array:
        """Displacement and rotation vector from the neutral pose, shape (6,).

        Raises:
            ValueError: If the rotation comes near half a turn.
        """
        x, R = self._neutral
        theta = rotation_vector(R.T @ pair.Q1.T @ pair.Q2)
        if np.linalg.norm(theta) > _LARGEST:
            raise InputError(
                f"bushing {self.name!r} is turned by {np.linalg.norm(theta):.3g} rad; its rotation "
                "is measured up to 3 rad. Use a joint with a JointSpring for large rotations"
            )
        return np.concatenate([pair.Q1.T @ (pair.p2 - pair.p1) - x, theta])

    @staticmethod
    def _gradient(pair: FramePair, theta: Array) -> Array:
        """H (6, 12): rates of the coordinates per unit of the frames' velocities."""
        H = np.zeros((6, 12))
        H[:3, :3] = -pair.Q1.T
        H[:3, 3:6] = pair.Q1.T @ skew(pair.p2 - pair.p1)
        H[:3, 6:9] = pair.Q1.T
        H[3:, 9:] = np.linalg.solve(tangent(theta), pair.Q2.T)
        H[3:, 3:6] = -H[3:, 9:]
        return H

    def wrenches(self, pair: FramePair) -> Array:
        s = self.coordinates(pair)
        H = self._gradient(pair, s[3:])
        rate = H @ np.concatenate([pair.u1, pair.u2])
        return -H.T @ (self._K @ s + self._C @ rate)

    def derivatives(self, pair: FramePair) -> tuple[Array, Array]:
        s = self.coordinates(pair)
        H = self._gradient(pair, s[3:])
        rate = H @ np.concatenate([pair.u1, pair.u2])
        g = self._K @ s + self._C @ rate
        D = -_gradient_change(pair, s[3:], H, g)
        D -= H.T @ (self._K @ H + self._C @ _rate_change(pair, s[3:], H, rate))
        return D, -H.T @ self._C @ H

    def energy(self, pair: FramePair) -> float:
        s = self.coordinates(pair)
        return 0.5 * float(s @ self._K @ s)


def _gradient_change(pair: FramePair, theta: Array, H: Array, g: Array) -> Array:
    """Derivative of Hᵀg to both poses, g (6,) held; shape (12, 12)."""
    D = np.zeros((12, 12))
    d, L = skew(pair.p2 - pair.p1), skew(pair.Q1 @ g[:3])
    D[:3, 3:6] = L
    D[6:9, 3:6] = -L
    D[3:6, 3:6] = d @ L
    D[3:6, :3] = -L
    D[3:6, 6:9] = L
    # moment m = Q₂ T⁻ᵀ g: it turns with the second frame, and T changes with θ
    inverse = np.linalg.inv(tangent(theta))
    w = inverse.T @ g[3:]
    change = pair.Q2 @ inverse.T @ tangent_derivative(-theta, w) @ H[3:]
    change[:, 9:] -= skew(pair.Q2 @ w)
    D[9:] += change
    D[3:6] -= change
    return D


def _rate_change(pair: FramePair, theta: Array, H: Array, rate: Array) -> Array:
    """Derivative of H u to both poses, the velocities u held; shape (6, 12)."""
    d, w1 = pair.p2 - pair.p1, pair.u1[3:]
    relative = pair.u2[:3] - pair.u1[:3] - np.cross(w1, d)
    D = np.zeros((6, 12))
    D[:3, 3:6] = pair.Q1.T @ skew(relative)
    D[:3, :3] = pair.Q1.T @ skew(w1)
    D[:3, 6:9] = -D[:3, :3]
    inverse = np.linalg.inv(tangent(theta))
    D[3:] = -inverse @ tangent_derivative(theta, rate[3:]) @ H[3:]
    D[3:, 9:] += inverse @ pair.Q2.T @ skew(pair.u2[3:] - w1)
    return D
