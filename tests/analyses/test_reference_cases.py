"""Cases with numbers from the literature or computed independently (V1, V2, V10).

V1, V2 and V10 are cases of docs/verification/reference_cases.md.
"""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import System, consistent_state
from dolfinx_mbd.mechanism import RigidBody, State
from dolfinx_mbd.mechanism.mechanisms import inline_engine, rigid_rod
from dolfinx_mbd.mechanism.mechanisms.kinematics import SliderCrank
from tests.models.planar_mechanisms import crank_from_rest, robotic_arm


def test_slider_crank_from_rest() -> None:
    """V1, Table 3 of Hać and Łazęcki: from rest, driven by the torque 0.1 + 0.05 sin φ N m.

    The angles agree to 1e-5 with an independent solution, and to 3e-4 with the paper's Adams run.
    """
    run = simulate(crank_from_rest(), t_end=0.5, dt=1e-4)
    angles = run.joint("main").rotation[1000::1000]
    expected = [0.245340903, 0.801813625, 1.463351621, 2.451874435, 4.211921311]
    adams = [0.245329, 0.801768, 1.463285, 2.451681, 4.210979]
    assert np.allclose(angles, expected, rtol=1e-5)
    assert np.allclose(angles, adams, rtol=3e-4)


def test_robotic_arm() -> None:
    """V1, Table 2 of Hać and Łazęcki: rod with a payload under a torque of 1 + 0.5 sin φ N m."""
    run = simulate(robotic_arm(), t_end=1.0, dt=1e-4)
    angles = run.joint("base").rotation[2000::2000]
    expected = [0.033195, 0.133880, 0.305375, 0.553192, 0.884680]
    assert np.allclose(angles, expected, rtol=1e-5, atol=5e-7)  # the reference has six decimals
    assert np.allclose(angles, [0.033195, 0.13388, 0.305375, 0.553190, 0.884672], rtol=3e-4)


def test_free_rotation() -> None:
    """V10: a body with the principal moments 1, 2, 3 kg m² near its unstable middle axis."""
    system = System([RigidBody("top", 1.0, [1.0, 2.0, 3.0])])
    start = consistent_state(system, v=np.array([0, 0, 0, 0.01, 1.0, 0.01]))
    run = simulate(system, t_end=31.0, dt=1e-3, start=start, tolerance=1e-12)
    omega = run.body("top").omega
    at_20 = omega[np.argmin(np.abs(run.time - 20.0))]
    assert np.allclose(at_20, [-0.00581384, -1.0000331, 0.008828], atol=1e-6)
    k = np.flatnonzero(np.diff(np.sign(omega[:, 1])))
    crossings = run.time[k] - omega[k, 1] * np.diff(run.time)[k] / (omega[k + 1, 1] - omega[k, 1])
    # Errors of order dt² = 1e-6 grow in the unstable motion.
    assert np.allclose(crossings, [10.916913, 30.469781], atol=2e-4)


@pytest.mark.parametrize("cylinder", [1, 2, 3])
def test_rigid_engine_follows_the_closed_form(cylinder: int) -> None:
    """V2: all cylinders of an engine at 6000 rpm over a revolution; r = 40 mm, l = 137 mm."""
    speed = 628.318  # rad/s
    engine = inline_engine(
        rigid_rod(length=0.137, mass=0.153, thickness=0.01), speed=speed, gas=False
    )
    run = simulate(engine, t_end=0.01, dt=1e-5, stride=20).projected()
    throw = {1: 0.0, 3: 2 * np.pi / 3, 2: 4 * np.pi / 3}[cylinder]
    exact = SliderCrank(0.040, 0.137).motion(speed * run.time + throw, speed)
    piston, rod = run.body(f"piston {cylinder}"), run.body(f"rod {cylinder}")
    assert np.allclose(piston.position[:, 0], exact.slider, atol=1e-12)
    # tolerances relative to the greatest absolute values, which the next test checks
    assert np.allclose(piston.velocity[:, 0], exact.slider_velocity, atol=1e-9 * 26)
    assert np.allclose(piston.acceleration[:, 0], exact.slider_acceleration, atol=1e-9 * 2e4)
    assert np.allclose(rod.omega[:, 2], exact.rod_velocity, atol=1e-9 * 183)
    assert np.allclose(rod.alpha[:, 2], exact.rod_acceleration, atol=1e-9 * 1.2e5)


def test_closed_form_has_the_numbers_of_the_engine() -> None:
    """V2: stroke, greatest speed, accelerations at the dead centres, motion of the rod."""
    speed, crank = 628.318, SliderCrank(0.040, 0.137)  # rad/s; radius and rod, m
    angle = np.deg2rad(np.linspace(0, 180, 180_001))
    motion = crank.motion(angle, speed)
    assert np.isclose(motion.slider[0] - motion.slider[-1], 0.080, rtol=1e-12)
    k = np.argmax(np.abs(motion.slider_velocity))
    assert np.isclose(abs(motion.slider_velocity[k]), 26.18855, rtol=1e-6)
    assert np.isclose(np.rad2deg(angle[k]), 74.868, atol=1e-3)
    assert np.isclose(motion.slider_acceleration[0], -20401.95, rtol=1e-6)
    assert np.isclose(motion.slider_acceleration[-1], 11180.73, rtol=1e-6)
    assert np.isclose(np.abs(motion.rod_velocity).max(), 183.4505, rtol=1e-6)
    assert np.isclose(abs(crank.motion(np.pi / 2, speed).rod_acceleration), 120516.5, rtol=1e-6)


def test_closed_form_derivatives() -> None:
    """Velocities and accelerations are derivatives of positions, also at varying speed."""
    crank, h = SliderCrank(0.040, 0.137), 1e-5
    angle = lambda t: 0.3 + 5 * t + 7 * t**2  # noqa: E731
    motions = {k: crank.motion(angle(1 + k * h), 5 + 14 * (1 + k * h), 14.0) for k in (-1, 0, 1)}
    for value, rate in (
        ("slider", "slider_velocity"),
        ("slider_velocity", "slider_acceleration"),
        ("rod_angle", "rod_velocity"),
        ("rod_velocity", "rod_acceleration"),
    ):
        difference = (getattr(motions[1], value) - getattr(motions[-1], value)) / (2 * h)
        assert np.isclose(getattr(motions[0], rate), difference, rtol=1e-6)


def test_a_state_can_be_given_to_start_from() -> None:
    engine = inline_engine(rigid_rod(length=0.137, mass=0.153, thickness=0.01), speed=100.0)
    first = simulate(engine, t_end=1e-3, dt=1e-5)
    assert isinstance(first.final_state, State)
    continued = simulate(engine, t_end=2e-3, dt=1e-5, start=first.final_state)
    whole = simulate(engine, t_end=2e-3, dt=1e-5)
    assert np.allclose(continued.q[-1], whole.q[-1], atol=1e-12)
