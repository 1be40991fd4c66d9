"""Coordinates of a bushing and their rates.

The coordinates s (6,) are the displacement from the neutral pose and the rotation vector θ of R₀ᵀR.
With the tangent operator T(θ), the rate of the rotation is θ̇ = T⁻¹Rᵀω.
"""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.kernels.compilation import kernel
from dolfinx_mbd.kernels.rotations import inverse_tangent3, rotation_vector3
from dolfinx_mbd.kernels.small_vectors import (
    Array,
    mm3,
    mv3,
    put3,
    tmv3,
    transposed3,
    vector3,
)


@kernel
def bushing_motion(
    neutral: Array, turn: Array, d: Array, R: Array, v: Array, omega: Array
) -> tuple[Array, Array, Array]:
    """Return s (6,), ṡ (6,) and T⁻¹ (3, 3).

    Args:
        neutral: Displacement (3,) of the neutral pose.
        turn: Rotation R₀ (3, 3) of the neutral pose.
        d: Displacement of the second frame relative to the first, (3,).
        R: Its rotation, (3, 3).
        v: Rate of the displacement, (3,).
        omega: Angular velocity, (3,).
    """
    R0 = vector3(turn[0], 0), vector3(turn[1], 0), vector3(turn[2], 0)
    A = vector3(R[0], 0), vector3(R[1], 0), vector3(R[2], 0)
    theta = rotation_vector3(mm3(transposed3(R0), A))
    inverse = inverse_tangent3(theta)
    s, rate = np.empty(6), np.empty(6)
    s[:3], rate[:3] = d - neutral, v
    put3(s, 3, theta)
    put3(rate, 3, mv3(inverse, tmv3(A, vector3(omega, 0))))
    return s, rate, np.array(inverse)
