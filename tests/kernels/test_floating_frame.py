"""Inertia of a floating frame against sums over particles; derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import GeneralizedAlpha, System, consistent_state
from dolfinx_mbd.kernels.rotations import rotation_matrix
from dolfinx_mbd.mechanism import BodyState, FlexibleBody
from tests.models.particles import Particles

MODES = (0, 1, 4)


class Point:
    """A random state of a body and the arguments of its evaluation."""

    def __init__(self, num_modes: int, stiffening: bool = False) -> None:
        rng = np.random.default_rng(1)
        self.particles = Particles(num_modes)
        self.body = FlexibleBody("b", self.particles.body(stiffening=stiffening))
        n = num_modes
        self.q = np.concatenate([rng.normal(size=7), 0.2 * rng.normal(size=n)])
        self.q[3:7] /= np.linalg.norm(self.q[3:7])
        self.v, self.a = rng.normal(size=6 + n), rng.normal(size=6 + n)
        self.gravity = rng.normal(size=3)
        self.wrenches = rng.normal(size=(2, 6))

    def rows(self, q=None, v=None, a=None) -> np.ndarray:
        out, scale = np.zeros(len(self.v)), np.zeros(len(self.v))
        pick = lambda value, default: default if value is None else value  # noqa: E731
        state = (pick(q, self.q), pick(v, self.v), pick(a, self.a))
        self.body.residual(BodyState(0.0, *state, self.gravity, self.wrenches), out, scale)
        return out

    def moved(self, delta: np.ndarray) -> np.ndarray:
        q = np.zeros_like(self.q)
        self.body.increment(self.q, delta, q)
        return q


def differences(function, size: int, step: float = 1e-6) -> np.ndarray:
    """Return central differences of function(delta) at delta = 0."""
    columns = []
    for k in range(size):
        delta = np.zeros(size)
        delta[k] = step
        columns.append((function(delta) - function(-delta)) / (2 * step))
    return np.moveaxis(np.array(columns), 0, -1)


@pytest.mark.parametrize("num_modes", MODES)
def test_rows_are_the_virtual_work_of_particles(num_modes: int) -> None:
    point = Point(num_modes)
    p, n = point.particles, num_modes
    A = rotation_matrix(point.q[3:7])
    eta, rate, acceleration = point.q[7:], point.v[6:], point.a[6:]
    # c and du: positions and relative velocities of the particles in body axes
    c = p.x + np.einsum("k,kpa->pa", eta, p.psi)
    du, ddu = (np.einsum("k,kpa->pa", e, p.psi) for e in (rate, acceleration))
    w, alpha = point.v[3:6], point.a[3:6]
    inner = np.cross(alpha, c) + np.cross(w, np.cross(w, c)) + 2 * np.cross(w, du) + ddu
    force = p.masses[:, None] * (point.a[:3] + inner @ A.T - point.gravity)
    expected = np.zeros(6 + n)
    expected[:3] = force.sum(axis=0)
    expected[3:6] = np.cross(c, force @ A).sum(axis=0)
    expected[6:] = np.einsum("kpa,pa->k", p.psi, force @ A) + p.K @ eta + p.C @ rate
    jacobians = point.body.frame_jacobians(point.q)
    expected -= np.einsum("fiv,fi->v", jacobians, point.wrenches)
    assert np.allclose(point.rows(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("stiffening", [False, True])
@pytest.mark.parametrize("num_modes", MODES)
def test_tangent_is_the_derivative_of_the_rows(num_modes: int, stiffening: bool) -> None:
    point = Point(num_modes, stiffening)
    nv = len(point.v)
    K, C, M = point.body.tangent(
        BodyState(0.0, point.q, point.v, point.a, point.gravity, point.wrenches)
    )
    by_q = differences(lambda d: point.rows(q=point.moved(d)), nv)
    by_v = differences(lambda d: point.rows(v=point.v + d), nv)
    by_a = differences(lambda d: point.rows(a=point.a + d), nv)
    for exact, difference in ((K, by_q), (C, by_v), (M, by_a)):
        assert np.allclose(exact, difference, atol=2e-8 * np.abs(difference).max())
    assert np.allclose(M, M.T, atol=1e-12)


@pytest.mark.parametrize("stiffening", [False, True])
@pytest.mark.parametrize("num_modes", MODES)
def test_frame_jacobians_velocities_and_bias(num_modes: int, stiffening: bool) -> None:
    point = Point(num_modes, stiffening)
    nv, body = len(point.v), point.body

    def poses(q):
        position, rotation = np.zeros((2, 3)), np.zeros((2, 3, 3))
        body.poses(q, position, rotation)
        return position, rotation

    J = body.frame_jacobians(point.q)
    _, Q = poses(point.q)
    by_q = differences(lambda d: poses(point.moved(d))[0], nv)
    assert np.allclose(J[:, :3], by_q, atol=1e-8)
    rotation_change = np.einsum(
        "fabv,fcb->facv", differences(lambda d: poses(point.moved(d))[1], nv), Q
    )
    spin = np.stack(
        [rotation_change[:, 2, 1], rotation_change[:, 0, 2], rotation_change[:, 1, 0]], axis=1
    )
    assert np.allclose(J[:, 3:], spin, atol=1e-8)

    by_q = differences(lambda d: body.frame_jacobians(point.moved(d)) @ point.v, nv)
    assert np.allclose(body.frame_velocity_tangents(point.q, point.v), by_q, atol=3e-8)
    rate = differences(lambda d: body.frame_jacobians(point.moved(d[0] * point.v)) @ point.v, 1)
    assert np.allclose(body.frame_bias(point.q, point.v), rate[..., 0], atol=3e-8)


@pytest.mark.parametrize("num_modes", MODES)
def test_energies_and_momenta_of_particles(num_modes: int) -> None:
    point = Point(num_modes)
    p = point.particles
    A = rotation_matrix(point.q[3:7])
    # c and du: positions and relative velocities of the particles in body axes
    c = p.x + np.einsum("k,kpa->pa", point.q[7:], p.psi)
    du = np.einsum("k,kpa->pa", point.v[6:], p.psi)
    r = point.q[:3] + c @ A.T
    velocity = point.v[:3] + (np.cross(point.v[3:6], c) + du) @ A.T
    kinetic = 0.5 * np.sum(p.masses[:, None] * velocity**2)
    elastic = 0.5 * point.q[7:] @ p.K @ point.q[7:]
    potential = -np.sum(p.masses[:, None] * r * point.gravity)
    energies = point.body.energies(point.q, point.v, point.gravity)
    assert np.allclose(energies, [kinetic, elastic, potential], rtol=1e-12)
    momentum = p.masses[:, None] * velocity
    expected = np.concatenate([momentum.sum(axis=0), np.cross(r, momentum).sum(axis=0)])
    assert np.allclose(point.body.momenta(point.q, point.v), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("num_modes", MODES)
def test_stiffening_is_lagrangian(num_modes: int) -> None:
    """The rows that stiffening adds are Lagrange's equations of ½ ω·ΔJ(η) ω: it adds inertia ΔJ."""
    stiffened, without = Point(num_modes, True), Point(num_modes, False)
    n, no_loads = num_modes, np.zeros((2, 6))
    stiffened.wrenches, without.wrenches = no_loads, no_loads
    added = stiffened.rows() - without.rows()

    def energy(eta: np.ndarray, omega: np.ndarray) -> float:
        parts = []
        for point in (stiffened, without):
            q, v = point.q.copy(), point.v.copy()
            q[7:], v[3:6] = eta, omega
            parts.append(point.body.energies(q, v, point.gravity)[0])
        return parts[0] - parts[1]

    eta, omega, rate, alpha = stiffened.q[7:], stiffened.v[3:6], stiffened.v[6:], stiffened.a[3:6]
    by_eta = differences(lambda d: energy(eta + d, omega), n) if n else np.zeros(0)
    momentum = lambda e, w: differences(lambda d: energy(e, w + d), 3, 1e-3)  # noqa: E731
    h = 1e-5
    change = (
        momentum(eta + h * rate, omega + h * alpha) - momentum(eta - h * rate, omega - h * alpha)
    ) / (2 * h)
    expected = np.concatenate(
        [np.zeros(3), change + np.cross(omega, momentum(eta, omega)), -by_eta]
    )
    assert np.allclose(added, expected, atol=1e-6 * max(1.0, np.abs(expected).max()))


def test_a_force_at_a_frame_does_the_stiffening_work() -> None:
    """At rest the elastic rows of a wrench are minus the derivative of its work, exactly."""
    point = Point(4, True)
    point.q[3:7] = 1, 0, 0, 0
    without = Point(4, False)
    without.q[3:7] = 1, 0, 0, 0
    for case in (point, without):
        case.wrenches[:, 3:] = 0
    bend = point.particles.body(stiffening=True).stiffening.interfaces
    expected = np.einsum("fi,fikl,l->k", point.wrenches[:, :3], bend[:, :3], point.q[7:])
    still = np.zeros(10)
    still_rows = point.rows(v=still) - without.rows(v=still)
    assert np.allclose(still_rows[6:], expected, atol=1e-12)


def test_a_body_that_only_vibrates() -> None:
    """A body without loads keeps energy and momentum; its vibration determines the tolerance."""
    system = System([FlexibleBody("body", Particles(2).body(damping=False), damping_ratio=0.0)])
    start = consistent_state(system, elastic_start="undeformed")
    start.v[6:] = 0.1, -0.2
    run = simulate(system, t_end=1.0, dt=1e-2, start=start, method=GeneralizedAlpha.newmark())
    total = run.energies().total
    assert np.ptp(total) < 1e-3 * total[0]
    momentum = run.momenta()
    np.testing.assert_allclose(momentum, momentum[:1].repeat(len(run), axis=0), atol=1e-5)
