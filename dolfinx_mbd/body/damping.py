"""Damping of a reduced body: Rayleigh damping, modal damping ratios, or a matrix.

All damping acts on the elastic coordinates only, as generalized forces C η̇. These have no resultant
force and no moment, so that rigid motion is not damped. The damped motion is the motion *relative
to the body frame*:

- Stiffness-proportional and modal damping represent the material. Stiffness vanishes for rigid
  motions, so that stiffness-proportional damping is the same for every reference condition.
- Mass-proportional damping α M and a viscous density μ (∫ μ u̇·v) represent a medium that moves
  with the body frame and resists u̇. With the mean-axis reference the resisted motion is the
  smallest possible one, and free modes are damped independently of one another. With a frame that
  is attached to an interface, the motion relative to this interface is damped; this is a different
  model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import array, number, reject, vector


class Damping(Protocol):
    """A damping model that provides a damping matrix."""

    def matrix(self, mass: ArrayLike, stiffness: ArrayLike) -> Array:
        """Return the damping matrix C, shape (n, n), for M and K of the same shape."""
        ...


@dataclass(frozen=True)
class Rayleigh:
    """Damping C = mass · M + stiffness · K of the elastic coordinates.

    A mode with frequency f has the damping ratio mass/(4πf) + stiffness·πf.

    Attributes:
        mass: Coefficient of the mass matrix, 1/s.
        stiffness: Coefficient of the stiffness matrix, s.

    Raises:
        InputError: A coefficient is negative or not finite.

    Example:
        >>> mbd.body.Rayleigh(stiffness=1e-6).matrix(np.eye(2), 1e6 * np.eye(2))
        array([[1., 0.],
               [0., 1.]])
    """

    mass: float = 0.0
    stiffness: float = 0.0

    def __post_init__(self) -> None:
        for name, unit in (("mass", "1/s"), ("stiffness", "s")):
            label = f"Rayleigh damping: {name}"
            assign(self, **{name: number(label, getattr(self, name), low=0.0, unit=unit)})

    @classmethod
    def from_ratios(cls, frequencies: ArrayLike, ratios: ArrayLike) -> Rayleigh:
        """Create Rayleigh damping with the given damping ratios at two frequencies.

        Args:
            frequencies: Two different positive frequencies, Hz.
            ratios: Damping ratios at these frequencies; 0.01 is one percent of critical damping.

        Raises:
            InputError: A value is out of range, or the ratios require a negative coefficient.

        Example:
            >>> damping = mbd.body.Rayleigh.from_ratios((100.0, 1000.0), (0.01, 0.02))
            >>> damping.ratio([100.0, 1000.0])
            array([0.01, 0.02])
        """
        f, z = vector("frequencies", frequencies, 2, unit="Hz"), vector("ratios", ratios, 2)
        (first, second), (ratio, _) = f, z
        if not (f > 0).all() or first == second:
            reject("frequencies", frequencies, "two different positive numbers in Hz")
        if (z < 0).any():
            reject("ratios", ratios, "two numbers of at least 0")
        w = 2 * np.pi * f
        # Damping ratio = mass/(2ω) + stiffness·ω/2
        mass, stiffness = np.linalg.solve(np.column_stack([0.5 / w, 0.5 * w]), z)
        largest = np.abs(z).max()
        if mass < -1e-12 * largest * w.max() or stiffness < -1e-12 * largest / w.min():
            low, high = sorted((ratio * first / second, ratio * second / first))
            expected = f"from {low:.4g} to {high:.4g} at {second:g} Hz"
            reason = f"{ratio:g} at {first:g} Hz; ModalDamping accepts any ratios"
            reject("ratios", ratios, f"{expected}, for Rayleigh damping with the ratio {reason}")
        return cls(max(0.0, float(mass)), max(0.0, float(stiffness)))

    def ratio(self, frequency: ArrayLike) -> Array:
        """Return the damping ratio of modes.

        Args:
            frequency: Positive frequencies, any shape, Hz.

        Raises:
            InputError: A frequency is not positive.
        """
        f = array("frequency", frequency)
        if not (f > 0).all():
            reject("frequency", frequency, "positive numbers in Hz")
        w = 2 * np.pi * f
        return np.asarray(0.5 * self.mass / w + 0.5 * self.stiffness * w)

    def matrix(self, mass: ArrayLike, stiffness: ArrayLike) -> Array:
        """Return the damping matrix C, shape (n, n), for M and K of the same shape."""
        M, K = _pair(mass, stiffness)
        return self.mass * M + self.stiffness * K


@dataclass(frozen=True, eq=False)
class ModalDamping:
    """A damping ratio for each mode of (K, M), or one ratio for all modes.

    The modes are the eigenvectors of K ψ = ω² M ψ, so that the ratios are exact also if the elastic
    coordinates are not orthonormal.

    Attributes:
        ratios: One ratio, or one for each mode in ascending order of the frequencies; 0.01 is one
            percent of critical damping. Stored as an array of shape () or (n,).

    Raises:
        InputError: A ratio is negative or not finite.

    Example:
        >>> mbd.ModalDamping(0.01).matrix(np.eye(1), [[1e4]])
        array([[2.]])
    """

    ratios: ArrayLike

    def __post_init__(self) -> None:
        ratios = array("modal damping: ratios", self.ratios)
        if ratios.ndim > 1 or (ratios < 0).any():
            reject(
                "modal damping: ratios", self.ratios, "a number or a list of numbers, at least 0"
            )
        assign(self, ratios=ratios)

    def matrix(self, mass: ArrayLike, stiffness: ArrayLike) -> Array:
        """Return the damping matrix C, shape (n, n), for M and K of the same shape."""
        M, K = _pair(mass, stiffness)
        ratios, n = np.asarray(self.ratios), len(M)
        if ratios.ndim and len(ratios) != n:
            reject("modal damping: ratios", ratios, f"one number or {n} numbers, one for each mode")
        if n == 0 or not ratios.any():
            return np.zeros_like(M)
        squares, vectors = scipy.linalg.eigh(K, M)
        momenta = M @ vectors
        C = (momenta * 2 * ratios * np.sqrt(np.maximum(squares, 0.0))) @ momenta.T
        return 0.5 * (C + C.T)


def damping_matrix(mass: ArrayLike, stiffness: ArrayLike, *dampings: Damping | ArrayLike) -> Array:
    """Return the sum of the damping matrices of the arguments, shape (n, n)."""
    M, K = _pair(mass, stiffness)
    total = np.zeros_like(M)
    for damping in dampings:
        if hasattr(damping, "matrix"):
            total += damping.matrix(M, K)
            continue
        expected = f"Rayleigh(mass, stiffness), ModalDamping(ratios) or a matrix of shape {M.shape}"
        total += array("damping", damping, M.shape, expected=expected)
    return total


def _pair(mass: ArrayLike, stiffness: ArrayLike) -> tuple[Array, Array]:
    """Return the checked matrices M and K."""
    M = array("mass", mass, (None, None))
    if M.shape[0] != M.shape[1]:
        reject("mass", mass, "a square matrix")
    return M, array("stiffness", stiffness, M.shape)
