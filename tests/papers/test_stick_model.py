"""Rigid truss elements: their matrices by kinetic energy and virtual work, energy, rigid bodies."""

from __future__ import annotations

import numpy as np
import pytest

from demos.papers.models.stick_model import Rod, StickModel, StickMotion, _Sticks, newmark
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.mechanisms import rigid_rod, slider_crank
from dolfinx_mbd.mechanism.mechanisms.kinematics import SliderCrank

RNG = np.random.default_rng(7)
LENGTH, MASS, STIFFNESS = 0.7, 1.3, 2e7


def free_rod(angle: float) -> tuple[_Sticks, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the model of a free rod, its mass matrix, the rows b and c, and its nodes.

    With the length l and the angle φ, b is ∂l/∂x and c is l ∂φ/∂x.
    """
    ends = 0.2 + np.outer([0, LENGTH], [np.cos(angle), np.sin(angle)])
    sticks = _Sticks(StickModel(ends, [Rod(0, 1, MASS / LENGTH, STIFFNESS)]))
    _, _, b, c = sticks.frames(ends)
    return sticks, sticks.mass_matrix(b), b, c, ends


def rigid_field(ends: np.ndarray, motion: np.ndarray, spin: float = 0.0) -> np.ndarray:
    """Return the vectors d + θ k×r − spin² r at both ends of the rod, (4,)."""
    r = ends - ends[0]
    across = np.column_stack([-r[:, 1], r[:, 0]])
    return (motion[:2] + motion[2] * across - spin**2 * r).ravel()


def quadrature(f: np.ndarray, g: np.ndarray) -> float:
    """Return ∫ρA f·g of two fields that are linear between their values at the ends, (4,)."""
    points, weights = np.polynomial.legendre.leggauss(3)
    s = 0.5 * (1 + points[:, None])
    values = [(1 - s) * h[:2] + s * h[2:] for h in (f, g)]
    return float(0.5 * MASS * weights @ np.sum(values[0] * values[1], axis=1))


@pytest.mark.parametrize("angle", [0.0, 0.4, 2.0, -1.9])
def test_mass_matrix_is_the_papers(angle: float) -> None:
    """Eq. 2 with the last row 0 2 0 4 follows from the shape functions of eq. 1."""
    points, weights = np.polynomial.legendre.leggauss(3)
    local = np.zeros((4, 4))
    for s, w in zip(0.5 * (1 + points), 0.5 * weights, strict=True):
        N = np.array([[0.5, 0, 0.5, 0], [0, 1 - s, 0, s]])
        local += w * MASS * N.T @ N
    printed = np.array([[3, 0, 3, 0], [0, 4, 0, 2], [3, 0, 3, 0], [0, 2, 0, 4]])
    assert np.allclose(local, MASS / 12 * printed, rtol=1e-14)
    rotation = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    T = np.kron(np.eye(2), rotation)
    assert np.allclose(free_rod(angle)[1], T.T @ local @ T, rtol=0, atol=1e-14)


@pytest.mark.parametrize("angle", [0.0, 0.8, -2.3])
def test_held_rod_has_the_papers_matrices(angle: float) -> None:
    """The matrices are those of eqs. 8 and 9 with K₂₂ = b² and the factor ρAL/12."""
    payload = 0.31
    ends = np.outer([0, LENGTH], [np.cos(angle), np.sin(angle)])
    rod = Rod(0, 1, MASS / LENGTH, STIFFNESS)
    sticks = _Sticks(StickModel(ends, [rod], held=[(0, 0), (0, 1)], masses={1: payload}))
    length, _, row, _ = sticks.frames(ends)
    # cosine and sine as in the paper
    a, b, extra = np.cos(angle), np.sin(angle), payload / (MASS / 12)
    m11 = (3 + extra) * a**2 + (4 + extra) * b**2
    m22 = (3 + extra) * b**2 + (4 + extra) * a**2
    mass = MASS / 12 * np.array([[m11, -a * b], [-a * b, m22]])
    assert np.allclose(sticks.mass_matrix(row), mass, atol=1e-14)
    stiffness = STIFFNESS / LENGTH * np.array([[a * a, a * b], [a * b, b * b]])
    assert np.allclose(STIFFNESS / length * row.T @ row, stiffness, atol=1e-8)


@pytest.mark.parametrize("angle", [0.3, 1.7, -2.8])
def test_kinetic_energy_of_a_rigid_rod(angle: float) -> None:
    """½ẋᵀMẋ = ½m|v_c|² + ½(mL²/12)ω² for any rigid motion."""
    _, M, _, _, ends = free_rod(angle)
    motion = RNG.standard_normal(3)
    v = rigid_field(ends, motion)
    v_centre = 0.5 * (v[:2] + v[2:])
    expected = 0.5 * MASS * v_centre @ v_centre + 0.5 * MASS * LENGTH**2 / 12 * motion[2] ** 2
    assert np.isclose(0.5 * v @ M @ v, expected, rtol=1e-13)


@pytest.mark.parametrize("angle", [0.3, 1.7, -2.8])
def test_inertia_forces_of_a_rigid_rod(angle: float) -> None:
    """δxᵀMẍ is the virtual work of a spinning rod's accelerations, for every rigid δx."""
    _, M, b, _, ends = free_rod(angle)
    acceleration = rigid_field(ends, RNG.standard_normal(3), spin=5.0)
    for motion in np.eye(3):
        virtual = rigid_field(ends, motion)
        assert np.isclose(virtual @ M @ acceleration, quadrature(virtual, acceleration), atol=1e-12)
        assert np.allclose(b @ virtual, 0, atol=1e-14)
    linear = MASS / 6 * np.kron([[2, 1], [1, 2]], np.eye(2))
    left_out = (linear - M) @ acceleration
    assert np.allclose(left_out, MASS / 12 * b.T @ (b @ acceleration), atol=1e-12)
    assert np.linalg.norm(left_out) > 1  # the force exists and is along the rod


def test_rows_are_derivatives_of_length_and_angle() -> None:
    sticks, _, b, c, ends = free_rod(0.9)
    h = 1e-6
    for k, direction in enumerate(np.eye(4)):
        step = h * direction.reshape(2, 2)
        ahead, behind = sticks.frames(ends + step), sticks.frames(ends - step)
        assert np.isclose((ahead[0] - behind[0]) / (2 * h), b[0, k], atol=1e-9)
        assert np.isclose((ahead[1] - behind[1]) / (2 * h), c[0, k] / LENGTH, atol=1e-9)


def crank_sticks(angle: float, dt: float, t_end: float, torque: float = 0.3) -> StickMotion:
    """Return a slider-crank with crank and rod of 0.1 and 0.4 m, at rest at a crank angle."""
    pin = 0.1 * np.array([np.cos(angle), np.sin(angle)])
    slider = [pin[0] + np.sqrt(0.4**2 - pin[1] ** 2), 0.0]
    rods = [Rod(0, 1, 2.0, 1e9, torque), Rod(1, 2, 1.0, 1e9)]
    held = [(0, 0), (0, 1), (2, 1)]
    model = StickModel([[0, 0], pin, slider], rods, held=held, masses={2: 0.2})
    return newmark(model, t_end=t_end, dt=dt)


def second_order(coarse: float, fine: float, scale: float) -> bool:
    """Return whether halving the step quarters the error, and the extrapolated error vanishes."""
    return bool(1.9 < np.log2(coarse / fine) < 2.1 and abs(4 * fine - coarse) / 3 < 2e-5 * scale)


def test_energy_is_the_work_of_the_torque() -> None:
    """Kinetic energy over two revolutions up to 60 rad/s; the strain energy (1e-7) is left out."""
    errors = []
    for dt in (5e-4, 2.5e-4):
        motion = crank_sticks(0.6, dt, 0.6)
        v = motion.velocity[-1]
        kinetic = 0.5 * 0.2 * v[2, 0] ** 2
        for first, last, mass in ((0, 1, 0.2), (1, 2, 0.4)):
            p, q = v[first], v[last]
            kinetic += mass / 6 * (p @ p + p @ q + q @ q)
        rotation = motion.angle[-1, 0] - motion.angle[0, 0]
        assert rotation > 3 * np.pi
        errors.append(kinetic - 0.3 * rotation)
    assert second_order(*errors, scale=kinetic)


def test_agrees_with_rigid_bodies_to_second_order() -> None:
    """From rest, angle, velocity and acceleration converge to rigid bodies with order two."""
    system = slider_crank(
        rigid_rod(length=0.4, mass=0.4),
        crank_radius=0.1,
        crank_mass=0.2,
        crank_inertia=0.2 * 0.1**2 / 3,
        piston_mass=0.2,
        torque=0.3,
        angle=0.6,
    )
    # the reference is ten times finer than the finest of the sticks
    run = simulate(system, t_end=0.3, dt=1e-4, stride=100).projected()
    angles = run.joint("main").rotation
    piston = run.body("piston")
    errors = []
    for dt in (5e-3, 2.5e-3, 1.25e-3):
        motion, every = crank_sticks(0.6, dt, 0.3), round(1e-2 / dt)
        v, a = motion.velocity[::every, 2, 0], motion.acceleration[::every, 2, 0]
        delta = np.unwrap(angles) - angles[0] - (motion.angle[::every, 0] - 0.6)
        pairs = ((v, piston.velocity[:, 0]), (a, piston.acceleration[:, 0]))
        errors.append([np.abs(delta).max(), *(np.abs(x - y).max() / np.ptp(y) for x, y in pairs)])
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all((orders > 1.85) & (orders < 2.15)), orders
    assert np.all(np.array(errors[-1]) < 1e-3)


def test_torque_on_a_rod_between_moving_nodes() -> None:
    """A free rod under the forces ±T/l at its ends rotates with 12 T/(mL²), without drift."""
    rod = Rod(0, 1, MASS / LENGTH, STIFFNESS, lambda t, angle, rate: 0.5)
    model = StickModel([[0, 0], [0.0, LENGTH]], [rod])
    rotation = 6 * 0.5 / (MASS * LENGTH**2)  # ½ · 12 T/(mL²) · t², at 1 s
    errors = []
    for dt in (2e-3, 1e-3):
        motion = newmark(model, t_end=1.0, dt=dt)
        errors.append(motion.angle[-1, 0] - motion.angle[0, 0] - rotation)
        assert np.allclose(motion.position.mean(axis=1), [0.0, LENGTH / 2], atol=1e-9)
    assert second_order(*errors, scale=rotation)


def test_axial_force_of_a_spinning_rod() -> None:
    """A massless rod holds a payload with mLω², and the speed remains constant."""
    speed, tip = 20.0, 0.5
    rod = Rod(0, 1, 1e-9, STIFFNESS)
    model = StickModel(
        [[0, 0], [LENGTH, 0]],
        [rod],
        held=[(0, 0), (0, 1)],
        masses={1: tip},
        velocity=[[0, 0], [0, speed * LENGTH]],
    )
    motion = newmark(model, t_end=1.0, dt=1e-3)
    assert motion.angle[-1, 0] > 6 * np.pi
    assert np.allclose(motion.axial[:, 0], tip * LENGTH * speed**2, rtol=2e-4)  # (ω dt)²/4 = 1e-4
    rate = np.linalg.norm(motion.velocity[:, 1], axis=1) / LENGTH
    assert np.allclose(rate, speed, rtol=2e-4)


def test_starts_like_the_closed_form() -> None:
    """The accelerations at the start equal those of rigid rods, also with a rotating crank."""
    crank, angle, speed = SliderCrank(0.1, 0.4), 0.6, 12.0
    crank_motion = crank.motion(angle, speed)
    pin = 0.1 * np.array([np.cos(angle), np.sin(angle)])
    velocity = [[0, 0], [-speed * pin[1], speed * pin[0]], [float(crank_motion.slider_velocity), 0]]
    model = StickModel(
        [[0, 0], pin, [float(crank_motion.slider), 0]],
        [Rod(0, 1, 1e4, 1e12), Rod(1, 2, 1e-3, 1e12)],  # a heavy crank keeps its speed
        held=[(0, 0), (0, 1), (2, 1)],
        velocity=velocity,
    )
    motion = newmark(model, t_end=1e-4, dt=1e-5)
    expected = float(crank_motion.slider_acceleration)
    assert np.isclose(motion.acceleration[0, 2, 0], expected, rtol=1e-5)
    assert np.isclose(motion.acceleration[1, 2, 0], expected, rtol=1e-3)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"nodes": [0.0, 1.0]}, "nodes"),
        ({"velocity": [[0.0, 0.0]]}, "velocity"),
        ({"nodes": [[0.0, 0.0], [np.nan, 0.0]]}, "nodes"),
        ({"nodes": np.eye(3, 2)}, None),
        ({"rods": []}, "rods"),
        ({"rods": [Rod(0, 2, 1.0, 1.0)]}, "number of a node"),
        ({"held": [(-1, 0)]}, "number of a node"),
        ({"held": [(0, 2)]}, "axis of an entry of held"),
        ({"masses": {5: 1.0}}, "number of a node"),
        ({"masses": {1: -1.0}}, "mass of node 1"),
        ({"nodes": [[1.0, 2.0], [1.0, 2.0]]}, None),
    ],
)
def test_invalid_arguments_are_named(change: dict, argument: str | None) -> None:
    good = {"nodes": [[0.0, 0.0], [1.0, 0.0]], "rods": [Rod(0, 1, 1.0, 1.0)]}
    with pytest.raises(InputError) as error:
        StickModel(**(good | change))
    assert error.value.argument == argument


def test_a_rod_without_mass() -> None:
    with pytest.raises(InputError) as error:
        Rod(0, 1, 0.0, 1.0)
    assert error.value.argument == "line_density"


def test_bad_start_and_times() -> None:
    rod = Rod(0, 1, 1.0, 1e6)
    model = StickModel([[0, 0], [1, 0]], [rod])
    with pytest.raises(InputError, match="dt must be a positive"):
        newmark(model, t_end=1.0, dt=0.0)
    stretched = StickModel([[0, 0], [1, 0]], [rod], velocity=[[0, 0], [1, 0]])
    with pytest.raises(ValueError, match="stretch a rod, by 1 m/s"):
        newmark(stretched, t_end=1.0, dt=1e-3)
    spring = Rod(0, 1, 1.0, 1e6, lambda t, angle, rate: -1e5 * angle)
    with pytest.raises(RuntimeError, match=r"does not converge; try a step below 0\.01 s"):
        newmark(StickModel([[0, 0], [1, 0.1]], [spring]), t_end=1.0, dt=1e-2)
