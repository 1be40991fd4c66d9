"""Rotation vectors of rotation matrices at all angles, and the inverse of the tangent operator."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.kernels.bushings import bushing_motion
from dolfinx_mbd.kernels.rotations import exp_rotation, tangent


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-6, 0.05, 0.0999, 0.1001, 0.7, 2.0, 2.9, 3.1415])
def test_motion_of_a_bushing(angle: float) -> None:
    """The rotation vector is that of the matrix, and its rate that of the angular velocity."""
    rng = np.random.default_rng(int(1e4 * angle))
    for axis in (*np.eye(3), *-np.eye(3), *rng.normal(size=(20, 3))):
        theta = angle * axis / np.linalg.norm(axis)
        neutral, rotation = rng.normal(size=3), exp_rotation(rng.normal(size=3))
        d, v, omega = rng.normal(size=(3, 3))
        R = rotation @ exp_rotation(theta)
        s, rate, inverse = bushing_motion(neutral, rotation, d, R, v, omega)
        np.testing.assert_allclose(s, [*(d - neutral), *theta], rtol=0, atol=1e-14)
        np.testing.assert_allclose(inverse @ tangent(theta), np.eye(3), rtol=0, atol=1e-13)
        np.testing.assert_allclose(rate, [*v, *(inverse @ R.T @ omega)], rtol=0, atol=1e-13)
