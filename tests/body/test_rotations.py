"""Axioms of SO(3), and its tangent operator against differences."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.kernels import rotations as so3

ANGLES = [1e-9, 1e-3, 0.0999, 0.1001, 1.0, 3.0]


def vectors(angle: float) -> np.ndarray:
    """Return five random rotation vectors of an angle."""
    rng = np.random.default_rng(3)
    theta = rng.normal(size=(5, 3))
    return angle * theta / np.linalg.norm(theta, axis=1, keepdims=True)


@pytest.mark.parametrize("angle", ANGLES)
def test_exponential_is_a_rotation_by_the_angle(angle: float) -> None:
    for theta in vectors(angle):
        A = so3.exp_rotation(theta)
        assert np.allclose(A.T @ A, np.eye(3), atol=1e-15)
        assert np.isclose(np.linalg.det(A), 1.0)
        assert np.allclose(A @ theta, theta, rtol=1e-14)
        assert np.isclose(np.trace(A), 1 + 2 * np.cos(angle), atol=1e-14)
        assert np.allclose(
            so3.rotation_vector(A), theta, atol=2e-15 / max(np.pi - angle, 1e-3) + 1e-15
        )
        p = so3.quaternion_from_matrix(A)
        assert np.allclose(so3.rotation_matrix(p), A, atol=1e-14)


@pytest.mark.parametrize("angle", [0.0, 1e-13, 1e-9, 1e-3, 1.0, 3.0, np.pi - 1e-6])
def test_rotation_between_quaternions(angle: float) -> None:
    """The vector between two quaternions is independent of their signs, up to half a turn."""
    rng = np.random.default_rng(7)
    for signs in ((1.0, 1.0), (-1.0, 1.0), (1.0, -1.0)):
        axis, start = rng.normal(size=3), rng.normal(size=4)
        theta, start = angle * axis / np.linalg.norm(axis), start / np.linalg.norm(start)
        end = so3.multiply_quaternions(start, so3.exp_quaternion(theta))
        result = so3.rotation_between(signs[0] * start, signs[1] * end)
        np.testing.assert_allclose(result, theta, atol=2e-15)
    beyond = so3.rotation_between(start, so3.multiply_quaternions(start, _half_turn(1e-3)))
    np.testing.assert_allclose(np.linalg.norm(beyond), np.pi - 1e-3, atol=1e-14)


def _half_turn(excess: float) -> np.ndarray:
    """Return the quaternion of a rotation by more than π."""
    return so3.exp_quaternion(np.array([0.0, np.pi + excess, 0.0]))


def test_products_of_quaternions_are_products_of_rotations() -> None:
    first, second = (so3.exp_quaternion(theta) for theta in vectors(1.3)[:2])
    product = so3.multiply_quaternions(first, second)
    expected = so3.rotation_matrix(first) @ so3.rotation_matrix(second)
    assert np.allclose(so3.rotation_matrix(product), expected, atol=1e-15)


@pytest.mark.parametrize("angle", ANGLES)
def test_tangent_operator(angle: float) -> None:
    """exp(θ + δ) = exp(θ) exp(T δ) to first order in δ, and Tᵀ = T(−θ)."""
    h = 1e-6
    for theta in vectors(angle):
        T = so3.tangent(theta)
        A = so3.exp_rotation(theta)
        for k in range(3):
            d = h * np.eye(3)[k]
            spin = A.T @ (so3.exp_rotation(theta + d) - so3.exp_rotation(theta - d)) / (2 * h)
            assert np.allclose(spin, so3.skew(T[:, k]), atol=1e-9)
        assert np.allclose(T.T, so3.tangent(-theta), atol=1e-15)


@pytest.mark.parametrize("angle", ANGLES)
def test_derivative_of_the_tangent_operator(angle: float) -> None:
    h, w = 1e-5, np.array([0.3, -1.2, 0.7])
    for theta in vectors(angle):
        exact = so3.tangent_derivative(theta, w)
        columns = [
            (so3.tangent(theta + h * e) @ w - so3.tangent(theta - h * e) @ w) / (2 * h)
            for e in np.eye(3)
        ]
        assert np.allclose(exact, np.array(columns).T, atol=2e-10)


def test_series_meet_the_closed_forms() -> None:
    """The tangent operator is continuous at the limit of its series (0.1 rad)."""
    direction = np.array([0.6, 0.0, 0.8])
    below, above = (so3.tangent(angle * direction) for angle in (0.1 - 1e-13, 0.1 + 1e-13))
    assert np.allclose(below, above, atol=1e-13)


def test_axial_vector() -> None:
    c, y = np.array([1.0, 2.0, 3.0]), np.array([-0.3, 0.5, 2.0])
    assert np.allclose(so3.axial(np.outer(c, y)), np.cross(c, y))


def test_matrices_that_are_no_rotations_are_errors() -> None:
    with pytest.raises(ValueError, match="orthogonal"):
        so3.quaternion_from_matrix(2 * np.eye(3))
    with pytest.raises(ValueError, match="reflection"):
        so3.quaternion_from_matrix(np.diag([1.0, 1.0, -1.0]))
