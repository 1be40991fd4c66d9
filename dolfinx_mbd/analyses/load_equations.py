"""Weighted least squares for the loads of a body at all frequencies; see `load_identification`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.response import linearize_body
from dolfinx_mbd.body.response.linearized import spin_loads
from dolfinx_mbd.kernels.columns import ELASTIC, RIGID

Array = NDArray[np.float64]

REGULARIZATIONS = np.logspace(-8, 0, 65)
"""Values of the regularization from which the default is chosen."""

PADDING = 0.1
"""Length by which a signal is continued at each end, relative to its own length.

The continuation is the odd reflection of the signal.
"""

CHUNK = 256  # frequencies that are solved together


class LinearSensor(NamedTuple):
    """Linear signals of a gauge (one for each grid) or an accelerometer."""

    labels: tuple[str, ...]
    rows: Array  # factors of the rigid acceleration a and of η, shape (grids, 6 + n)
    spin: Array  # factors of the products ω_iω_j, shape (grids, 6)
    is_accelerometer: bool  # the factors of η apply to its second derivative
    values: Array  # measured, shape (nt, grids)


class LoadResponse:
    """Weighted response of all signals to the scaled loads and to the products ω_iω_j.

    Args:
        body: The body.
        sensors: Its sensors.
        inputs: Work of the scaled loads on rigid motion and modes, (6 + n, loads).
        weights: Factors of the signals, (signals,).
    """

    def __init__(
        self, body: ReducedBody, sensors: list[LinearSensor], inputs: Array, weights: Array
    ) -> None:
        self.free = linearize_body(body)
        self.inputs = np.hstack([inputs, spin_loads(body)])
        self.rows = np.vstack([s.rows for s in sensors])
        self.spin = np.vstack([s.spin for s in sensors])
        self.is_acceleration = np.concatenate(
            [np.full(len(s.rows), s.is_accelerometer) for s in sensors]
        )
        self.weights, self.count = weights, inputs.shape[1]

    def response(self, frequencies: Array) -> tuple[Any, Any]:
        """Return the responses to loads (k, signals, loads) and products ω_iω_j (k, signals, 6)."""
        w = 2 * np.pi * np.asarray(frequencies)[:, None, None]
        M, C, K = self.free.mass, self.free.damping, self.free.stiffness
        elastic = K[:, ELASTIC] + 1j * w * C[:, ELASTIC] - w**2 * M[:, ELASTIC]
        rigid = np.broadcast_to(M[:, RIGID], (len(w), *M[:, RIGID].shape))
        state = np.linalg.solve(np.concatenate([rigid, elastic], axis=2), self.inputs + 0j)
        factors = np.where(self.is_acceleration[:, None], -(w**2), 1.0)
        signals = self.rows[:, RIGID] @ state[:, RIGID] + factors * (
            self.rows[:, ELASTIC] @ state[:, ELASTIC]
        )
        signals[:, :, self.count :] += self.spin
        signals *= self.weights[:, None]
        return signals[:, :, : self.count], signals[:, :, self.count :]


class LoadEquations:
    """Weighted least squares for the loads at all frequencies up to the highest one.

    Args:
        model: Weighted response of the signals.
        y: Measured signals, (nt, signals).
        spins: Products ω_iω_j of the angular velocity, (nt, 6).
        rate: Sampling rate, Hz.
        highest: Highest frequency, Hz.
    """

    def __init__(
        self, model: LoadResponse, y: Array, spins: Array, rate: float, highest: float
    ) -> None:
        self.model, self.count = model, len(y)
        self.pad = max(2, int(PADDING * self.count))
        Y, P = _extend_signal(y * model.weights, self.pad), _extend_signal(spins, self.pad)
        lines = [np.linspace(X[0], X[-1], len(X)) for X in (Y, P)]  # subtracted for periodic ends
        self.steady, spin = (H[0].real for H in model.response(np.zeros(1)))  # at 0 Hz
        self.rest = lines[0] - lines[1] @ spin.T  # without the effect of the rotation
        Y, P = (X - line for X, line in zip((Y, P), lines, strict=True))
        self.Y, self.P = np.fft.rfft(Y, axis=0), np.fft.rfft(P, axis=0)
        frequencies = np.fft.rfftfreq(len(Y), 1 / rate)
        self.frequencies = np.asarray(frequencies[frequencies <= highest], dtype=float)

    def chunks(self) -> Iterator[tuple[slice, Any, Any, Any]]:
        """Yield slices of frequencies, responses H, signals due to the rotation, and the others b.

        The loads F satisfy H F ≈ b.
        """
        for start in range(0, len(self.frequencies), CHUNK):
            chunk = slice(start, min(start + CHUNK, len(self.frequencies)))
            H, spin = self.model.response(self.frequencies[chunk])
            known = (spin @ self.P[chunk, :, None])[:, :, 0]
            yield chunk, H, known, self.Y[chunk] - known

    def best_regularization(self, scale: float) -> float:
        """Return the regularization with the least expected error of the explained signals.

        At each frequency, the loads explain the fraction s²/(s² + λ²) of the component of the
        signals along the singular vector of the singular value s. The expected error is, up to a
        constant, the sum of squares of the unexplained components, plus twice the variance of the
        noise times the sum of the fractions. This variance is that of the residuals with the least
        regularization, if it is larger than that of the given noise. `scale` is the largest
        singular value of the responses at 0 Hz, to which the regularization is relative.
        """
        size = float(self.count + 2 * self.pad)
        # the straight lines between the ends; Σ|ŷ|² over frequencies is size/2 times Σ|y|²
        lines = np.sqrt(size / 2) * np.linalg.qr(self.rest, mode="r")
        unexplained, explained = _unexplained(self.steady[None], lines[None], scale)
        for _, H, _, b in self.chunks():
            added = _unexplained(H, b[:, None], scale)
            unexplained, explained = unexplained + added[0], explained + added[1]
        noise = size  # sum over the instants of a unit variance
        if len(self.steady) > self.model.count:
            # degrees of freedom of the residuals; one more than frequencies for the straight lines
            free = (len(self.frequencies) + 1) * len(self.steady) - explained[0]
            noise = max(noise, float(unexplained[0] / free))
        return float(REGULARIZATIONS[np.argmin(unexplained + 2 * noise * explained)])

    def solve(self, damp: float) -> tuple[Array, Array]:
        """Return the scaled loads (nt, loads) and the weighted residuals (nt, signals).

        Args:
            damp: Regularization λ, in the units of the singular values of the responses.
        """
        F = np.zeros((len(self.Y), self.model.count), dtype=complex)
        explained = np.zeros_like(self.Y)
        for chunk, H, known, b in self.chunks():
            F[chunk] = (_damped_inverse(H, damp) @ b[:, :, None])[:, :, 0]
            explained[chunk] = known + (H @ F[chunk, :, None])[:, :, 0]
        line = self.rest @ _damped_inverse(self.steady, damp).T
        inside, size = slice(self.pad, self.pad + self.count), self.count + 2 * self.pad
        loads, unexplained = (np.fft.irfft(X, n=size, axis=0) for X in (F, self.Y - explained))
        return (loads + line)[inside], (unexplained + self.rest - line @ self.steady.T)[inside]


def _unexplained(H: Any, b: Any, scale: float) -> tuple[Array, Array]:
    """Return the unexplained squares and the explained fractions for `REGULARIZATIONS`.

    H are responses (k, signals, loads), and b signals (k, m, signals). The first result is the sum
    of the squares that the loads do not explain, the second the sum of the fractions s²/(s² + λ²).
    """
    U, s, _ = np.linalg.svd(H, full_matrices=False)
    sizes = np.sum(np.abs(b @ U.conj()) ** 2, axis=1)
    outside = max(0.0, float(np.sum(np.abs(b) ** 2) - np.sum(sizes)))
    squares = (scale * REGULARIZATIONS[:, None, None]) ** 2
    filter_factors = 1 / (1 + squares / np.maximum(s**2, 1e-300))
    unexplained = np.sum((1 - filter_factors) ** 2 * sizes, axis=(1, 2)) + outside
    return unexplained, np.asarray(filter_factors.sum(axis=(1, 2)))


def _damped_inverse(H: Any, damp: float) -> Any:
    """Return (HᴴH + λ²)⁻¹Hᴴ of matrices (..., signals, loads)."""
    U, s, right = np.linalg.svd(H, full_matrices=False)
    gains = s / (s**2 + damp**2)
    return np.conj(np.swapaxes(right, -1, -2)) @ (
        gains[..., None] * np.conj(np.swapaxes(U, -1, -2))
    )


def _extend_signal(signal: Array, pad: int) -> Array:
    """Return a signal (nt, m) that is continued by its odd reflections at both ends."""
    before = 2 * signal[0] - signal[pad:0:-1]
    after = 2 * signal[-1] - signal[-2 : -pad - 2 : -1]
    return np.concatenate([before, signal, after])
