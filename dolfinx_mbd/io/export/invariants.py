"""Inertia integrals of a reduced body in the form that other programs use.

The integrals are contractions of the second moments H. ψ_0 is the position x, ψ_k (k > 0) are
modes, and ũ is the matrix of the product u×.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import ReducedBody

Array = NDArray[np.float64]


def cross_moments(body: ReducedBody) -> Array:
    """Return ∫ρ ψ_k × ψ_l, shape (n+1, n+1, 3)."""
    H = body.second_moments
    return np.stack(
        [H[..., 1, 2] - H[..., 2, 1], H[..., 2, 0] - H[..., 0, 2], H[..., 0, 1] - H[..., 1, 0]],
        axis=-1,
    )


def skew_moments(body: ReducedBody) -> Array:
    """Return ∫ρ ψ̃_k ψ̃_l, shape (n+1, n+1, 3, 3), from ũṽ = v⊗u − (u·v) I.

    The entry k = l = 0 is the negative inertia tensor of the undeformed body.
    """
    H = body.second_moments
    trace = np.einsum("klaa->kl", H)
    return H.swapaxes(-1, -2) - trace[..., None, None] * np.eye(3)
