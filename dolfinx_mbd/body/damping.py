"""Damping of a reduced body as data: Rayleigh's two coefficients, or a ratio for each mode.

All damping of a reduced body acts on its elastic coordinates only, as forces C η̇ on the elastic
rows.  Such forces have no resultant and no moment: the rigid motion, which the floating frame
carries, is never resisted.  What is damped is the motion *relative to the frame*:

- damping proportional to the stiffness, or to each mode, is that of the material.  Stiffness
  vanishes for rigid motions, so the first is the same in every frame;
- damping proportional to the mass, α M, and a viscous density μ, ∫ μ u̇·v, are forces of a medium
  against u̇, not against the absolute velocity: a medium that moves with the frame.  With the
  mean-axis reference that is the least such motion, and free modes are damped as if they stood
  alone; with a frame attached to an interface the motion relative to that interface is damped,
  which is another model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body.parts import assign, frozen

__all__ = ["Damping", "ModalDamping", "Rayleigh", "damping_matrix"]

Array = NDArray[np.float64]


class Damping(Protocol):
    """What gives a body its damping matrix."""

    def matrix(self, mass: ArrayLike, stiffness: ArrayLike) -> Array:
        """C, shape (n, n), for M and K of the same shape."""
        ...


@dataclass(frozen=True)
class Rayleigh:
    """Damping C = mass · M + stiffness · K of the elastic coordinates.

    A mode of frequency f is damped with the ratio mass/(4πf) + stiffness·πf.  The part with the
    mass acts against the motion relative to the body frame, never against rigid motion.

    Attributes:
        mass: Coefficient of the mass matrix, 1/s.
        stiffness: Coefficient of the stiffness matrix, s.

    Raises:
        ValueError: If a coefficient is negative or not finite.
    """

    mass: float = 0.0
    stiffness: float = 0.0

    def __post_init__(self) -> None:
        for name, unit in (("mass", "1/s"), ("stiffness", "s")):
            value = _number(f"Rayleigh damping: the coefficient of the {name} ({unit})", self, name)
            assign(self, **{name: value})

    @classmethod
    def from_ratios(cls, frequencies: ArrayLike, ratios: ArrayLike) -> Rayleigh:
        """The coefficients that give two frequencies their damping ratios.

        Args:
            frequencies: Two different ones, Hz.
            ratios: Their damping ratios; 0.01 is one percent of critical.

        Raises:
            ValueError: If there are not two of each, or the ratios need a negative coefficient.
        """
        f, z = (np.array(values, dtype=float) for values in (frequencies, ratios))
        if f.shape != (2,) or z.shape != (2,) or not np.isfinite([f, z]).all():
            raise ValueError(
                f"expected two frequencies and two ratios, got {frequencies!r} and {ratios!r}"
            )
        if not (f > 0).all() or f[0] == f[1] or (z < 0).any():
            raise ValueError(
                "expected two different positive frequencies (Hz) and ratios that are not "
                f"negative, got {frequencies!r} and {ratios!r}"
            )
        w = 2 * np.pi * f
        mass, stiffness = np.linalg.solve(np.column_stack([0.5 / w, 0.5 * w]), z)
        size = np.abs(z).max() * w.max(), np.abs(z).max() / w.min()
        if mass < -1e-12 * size[0] or stiffness < -1e-12 * size[1]:
            low, high = sorted(z[0] * ratio for ratio in (f[0] / f[1], f[1] / f[0]))
            raise ValueError(
                f"no Rayleigh damping has the ratio {z[0]:g} at {f[0]:g} Hz and {z[1]:g} at "
                f"{f[1]:g} Hz: at {f[1]:g} Hz it can have {low:.4g} to {high:.4g}; ModalDamping "
                "takes any ratios"
            )
        return cls(max(0.0, float(mass)), max(0.0, float(stiffness)))

    def ratio(self, frequency: ArrayLike) -> Array:
        """Damping ratio of modes of given frequencies (Hz), which are positive."""
        w = 2 * np.pi * np.asarray(frequency, dtype=float)
        return np.asarray(0.5 * self.mass / w + 0.5 * self.stiffness * w)

    def matrix(self, mass: ArrayLike, stiffness: ArrayLike) -> Array:
        """C, shape (n, n), of M and K, shape (n, n)."""
        M, K = _pair(mass, stiffness)
        return self.mass * M + self.stiffness * K


@dataclass(frozen=True, eq=False)
class ModalDamping:
    """A damping ratio for every mode of (K, M), or one for all of them.

    Modes are the eigenvectors of K ψ = ω² M ψ in the order of their frequencies, so that the ratios
    are exact also where the elastic coordinates are not orthonormal.

    Attributes:
        ratios: One number, or one for each mode, from the lowest frequency; 0.01 is one percent of
            critical.  Kept as an array of shape () or (n,).

    Raises:
        ValueError: If a ratio is negative or not finite.
    """

    ratios: ArrayLike

    def __post_init__(self) -> None:
        shape = (-1,) * min(1, np.ndim(self.ratios))
        ratios = frozen("modal damping: ratios", self.ratios, shape)
        if (ratios < 0).any():
            raise ValueError(f"modal damping: ratios must not be negative, got {ratios.min():g}")
        assign(self, ratios=ratios)

    def matrix(self, mass: ArrayLike, stiffness: ArrayLike) -> Array:
        """C, shape (n, n), of M and K, shape (n, n).

        Raises:
            ValueError: If the ratios are not as many as the modes.
        """
        M, K = _pair(mass, stiffness)
        ratios, n = np.asarray(self.ratios), len(M)
        if ratios.ndim and len(ratios) != n:
            raise ValueError(
                f"modal damping: {len(ratios)} ratios for {n} modes; give one for each, or one "
                "number for all"
            )
        if n == 0 or not ratios.any():
            return np.zeros_like(M)
        L = np.linalg.cholesky(M)
        half = np.linalg.solve(L, K)
        squares, vectors = np.linalg.eigh(_symmetric(np.linalg.solve(L, half.T)))
        rates = 2 * ratios * np.sqrt(np.maximum(squares, 0.0))
        vectors = L @ vectors
        return _symmetric((vectors * rates) @ vectors.T)


def damping_matrix(mass: ArrayLike, stiffness: ArrayLike, *dampings: Damping | ArrayLike) -> Array:
    """The damping matrix of several kinds of damping together, shape (n, n).

    Args:
        mass: M, shape (n, n).
        stiffness: K, shape (n, n).
        *dampings: :class:`Rayleigh`, :class:`ModalDamping`, or matrices C of shape (n, n).

    Raises:
        TypeError: If something is neither.
        ValueError: If a shape does not fit.
    """
    M, K = _pair(mass, stiffness)
    total = np.zeros_like(M)
    for damping in dampings:
        if hasattr(damping, "matrix"):
            total += damping.matrix(M, K)
            continue
        if isinstance(damping, str) or np.ndim(damping) != 2:
            raise TypeError(
                "damping is Rayleigh(mass, stiffness), ModalDamping(ratios) or a matrix of shape "
                f"{M.shape}; got {damping!r}"
            )
        total += frozen("damping", damping, M.shape)
    return total


def _number(what: str, owner: object, name: str) -> float:
    value = getattr(owner, name)
    real = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not (real and 0 <= value < np.inf):
        raise ValueError(f"{what} must be a finite number and not negative, got {value!r}")
    return float(value)


def _pair(mass: ArrayLike, stiffness: ArrayLike) -> tuple[Array, Array]:
    M, K = np.asarray(mass, dtype=float), np.asarray(stiffness, dtype=float)
    if M.ndim != 2 or M.shape[0] != M.shape[1] or K.shape != M.shape:
        raise ValueError(
            f"mass and stiffness must be square and of one shape, got {M.shape} and {K.shape}"
        )
    return M, K


def _symmetric(A: Array) -> Array:
    return 0.5 * (A + A.T)
