"""Harmonic balance against closed forms, time integration and the curves of steady whirls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import PeriodicError, harmonic_balance, harmonic_curve, periodic
from dolfinx_mbd.errors import AccuracyWarning, InputError, MbdWarning
from tests.analyses.test_periodic import oscillator
from tests.models.beams import slender_rod

ALONG_X = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # the third axis is along x


def duffing(speed: float, cubic: float = 900.0) -> mbd.System:
    """Return an oscillator with a stiffening spring and a harmonic force."""
    return oscillator(lambda t, x, v: -40 * x - cubic * x**3 - 1.5 * v + 2 * np.cos(speed * t))


@pytest.mark.parametrize("seed", range(3))
def test_a_linear_oscillator_is_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, c, w = rng.uniform(20, 60), rng.uniform(0.01, 0.3), rng.uniform(3, 9)
    system = oscillator(lambda t, x, v: -k * x - c * v + 2 * np.cos(w * t) - np.sin(2 * w * t))
    motion = harmonic_balance(system, 2 * np.pi / w, num_harmonics=2 + seed)
    x = motion.harmonics(motion.body("block").position[:, 2], 2)
    # The complex amplitude of −sin 2ωt is i.
    exact = [2 / (k - w**2 + 1j * c * w), 1j / (k - 4 * w**2 + 2j * c * w)]
    assert np.allclose(x[1:], exact, rtol=1e-8)
    assert motion.residual < 1e-8
    assert np.allclose(motion.body("block").position[0], motion.body("block").position[-1])


def test_the_error_decreases_exponentially() -> None:
    """A nonlinear oscillator equals a numerical integration with a tolerance of 1e-11."""
    speed = 6.0

    def rates(t: float, y: Any) -> list[float]:
        x, v = y
        return [v, -40 * x - 900 * x**3 - 1.5 * v + 2 * np.cos(speed * t)]

    period = 2 * np.pi / speed
    run = scipy.integrate.solve_ivp(rates, (0, 40 * period), [0.0, 0.0], rtol=1e-11, atol=1e-13)
    errors = []
    for count in (3, 6, 12):
        motion = harmonic_balance(duffing(speed), period, num_harmonics=count)
        errors.append(abs(motion.body("block").position[0, 2] - run.y[0, -1]))
    assert errors[1] < 0.1 * errors[0]
    assert errors[2] < 1e-9


def support(stiffness: Any) -> Any:
    """Return the law of a support with two stiffnesses."""

    def law(motion: Any) -> Any:
        force = -stiffness * (motion.displacement[:2] + 2e-3 * motion.velocity[:2])
        return (*force, 0.0), (0.0, 0.0, 0.0)

    return law


def tilting_rotor(speed: float, ratio: float = 1.4) -> mbd.System:
    """Return a disc that is driven through a constant-velocity joint and tilts on two bushings."""
    places = {"o": 0.0, "left": -0.1, "right": 0.25}
    frames = {key: mbd.Frame((x, 0, 0), ALONG_X) for key, x in places.items()}
    inertia = [[0.2, 0.004, 0], [0.004, 0.11, 0], [0, 0, 0.11]]
    ground, centre = mbd.Ground(frames), (0.03, 2e-3, 1e-3)
    flange = mbd.RigidBody("flange", 0.5, [1e-3] * 3, frames={"o": frames["o"]})
    disc = mbd.RigidBody("disc", 8.0, inertia, centre, frames)
    loads = [
        mbd.PairLoad(key, ground.frame(key), disc.frame(key), support(np.array([k, ratio * k])))
        for key, k in {"left": 4e5, "right": 2e5}.items()
    ]
    bearing = mbd.revolute("bearing", ground.frame("o"), flange.frame("o"))
    joint = mbd.constant_velocity("joint", flange.frame("o"), disc.frame("o"))
    drive = mbd.Driver("drive", "bearing", mbd.constant_speed(speed))
    bodies = [ground, flange, disc]
    return mbd.System(bodies, [bearing, joint], drivers=[drive], loads=loads, gravity=(0, -9.81, 0))


def axes(quaternions: Any) -> Any:
    """Return q qᵀ for quaternions q, which does not depend on their sign, shape (t, 4, 4)."""
    return np.einsum("ti,tj->tij", quaternions, quaternions)


@pytest.mark.slow
def test_a_rotor_that_tilts() -> None:
    """The motion, with large rotations, is the limit of `periodic` for small steps."""
    speed = 310.0
    system, period = tilting_rotor(speed, ratio=2.5), 2 * np.pi / speed
    motion = harmonic_balance(system, period, num_harmonics=6)
    assert motion.residual < 1e-5
    tilt = axes(motion.body("disc").rotation)
    cycles = []
    for steps in (208, 416):
        cycle = periodic(system, period, dt=period / steps)
        stride = steps // 52  # to the 4 (2 · 6 + 1) = 52 times of `motion`
        rotation = axes(cycle.body("disc").rotation[::stride])
        cycles.append((rotation, cycle.joint("joint").force[::stride]))
    (coarse, coarse_force), (fine, fine_force) = cycles
    exact = fine + (fine - coarse) / 3  # the error is of order dt²
    assert np.abs(tilt - exact).max() < 1e-5
    limit = fine_force + (fine_force - coarse_force) / 3
    assert np.abs(motion.joint("joint").force - limit).max() < 1e-4 * np.abs(limit).max()


def test_a_slider_crank_with_a_flexible_rod() -> None:
    """Motions and joint forces agree with `periodic`, from a simulated start or another one."""
    speed = 120.0
    system = mbd.mechanisms.slider_crank(
        slender_rod(), speed=speed, crank_radius=0.1, damping_ratio=0.02
    )
    period = 2 * np.pi / speed
    motion = harmonic_balance(system, period, num_harmonics=14)
    cycle = periodic(system, period, dt=period / 928)
    checked = periodic(system, period, dt=period / 928, start=motion, transient=0)
    assert checked.corrections <= 2
    assert np.allclose(np.abs(checked.multipliers), np.abs(cycle.multipliers), atol=1e-6)
    second = harmonic_balance(system, period, num_harmonics=14, start=cycle)
    # 116 = 4 (2 · 14 + 1) times of `motion` are every eighth step of `cycle`
    for joint in system.joints:
        force, exact = motion.joint(joint.name).force, cycle.joint(joint.name).force[::8]
        assert np.abs(force - exact).max() < 1e-4 * np.abs(exact).max()
        assert np.allclose(force, second.joint(joint.name).force, atol=1e-6 * np.abs(force).max())


def jeffcott(speed: float) -> mbd.System:
    """Return an unbalanced disc on a spring that stiffens."""
    mass, stiffness, cubic = 8.0, 4e5, 1e9
    damping = 2 * 0.04 * np.sqrt(stiffness * mass)

    def support(motion: Any) -> Any:
        r, v = motion.displacement[:2], motion.velocity[:2]
        force = -(stiffness + cubic * float(r @ r)) * r - damping * v
        return (*force, 0.0), (0.0, 0.0, 0.0)

    frame = mbd.Frame((0, 0, 0), ALONG_X)
    ground = mbd.Ground({"o": frame})
    disc = mbd.RigidBody("disc", mass, [0.055, 0.03, 0.03], (0, 1e-3, 0), {"o": frame})
    plane = mbd.planar("plane", ground.frame("o"), disc.frame("o"))
    load = mbd.PairLoad("support", ground.frame("o"), disc.frame("o"), support)
    drive = mbd.Driver("drive", "plane", mbd.constant_speed(speed), along="rotation")
    return mbd.System([ground, disc], [plane], drivers=[drive], loads=[load])


@pytest.mark.slow
def test_folds_are_those_of_steady_whirls() -> None:
    span = 0.9 * np.sqrt(5e4), 1.5 * np.sqrt(5e4)  # 5e4 = k/m
    steady = mbd.analyses.continuation(
        jeffcott, span, spin=lambda speed: (speed, 0.0, 0.0), longest=0.1
    )
    curve = harmonic_curve(
        jeffcott, span, period=lambda speed: 2 * np.pi / speed, num_harmonics=1, longest=0.1
    )
    assert len(curve.folds) == 2
    assert np.allclose(curve.parameter[curve.folds], steady.parameter[steady.folds], rtol=1e-7)
    assert curve.parameter[-1] == span[1]


def test_a_curve_in_both_directions() -> None:
    """An oscillator with a stiffening spring has the same two folds in both directions."""
    folds = []
    for span in ((7.5, 8.6), (8.6, 7.5)):
        curve = harmonic_curve(
            duffing, span, period=lambda w: 2 * np.pi / w, num_harmonics=7, longest=0.2, step=0.1
        )
        folds.append(np.sort(curve.parameter[curve.folds]))
    assert len(folds[0]) == 2
    assert np.allclose(*folds, rtol=1e-6)


def test_a_curve_with_too_few_points() -> None:
    with pytest.warns(MbdWarning, match="max_points = 4 points at the value .* from 7.5 to 8.6"):
        curve = harmonic_curve(
            duffing, (7.5, 8.6), period=lambda w: 2 * np.pi / w, num_harmonics=3, max_points=4
        )
    assert len(curve.motions) >= 4 and curve.parameter[-1] < 8.6


def test_states_of_loads() -> None:
    """The response to a force with the time constant τ is x = F/((1 + iωτ)(k − mω² + icω))."""
    w, tau = 5.0, 0.13

    def lag(t: float, x: float, v: float, states: Any) -> Any:
        force = states[0]
        return force - 40 * x - 0.3 * v, [(2 * np.cos(w * t) - force) / tau]

    block = oscillator(lambda t, x, v: 0.0)
    load = mbd.JointLoad("push", "rail", "displacement", lag, states=[0.0])
    system = mbd.System(block.bodies, block.joints, loads=[load])
    motion = harmonic_balance(system, 2 * np.pi / w, num_harmonics=2)
    x = motion.harmonics(motion.body("block").position[:, 2], 1)[1]
    assert np.isclose(x, 2 / (1 + 1j * w * tau) / (40 - w**2 + 0.3j * w), rtol=1e-7)


def test_too_few_harmonics_give_a_warning() -> None:
    with pytest.warns(AccuracyWarning, match="increase num_harmonics"):
        harmonic_balance(duffing(6.0), 2 * np.pi / 6.0, num_harmonics=1)


def test_free_motions_and_wrong_periods_are_named() -> None:
    free = oscillator(lambda t, x, v: np.cos(3 * t))
    with pytest.raises(PeriodicError, match="block"):
        harmonic_balance(free, 2 * np.pi / 3, num_harmonics=2)
    with pytest.raises(InputError, match="is different after the period"):
        harmonic_balance(duffing(6.0), 1.0, num_harmonics=2)
    with pytest.raises(InputError, match="num_harmonics must be"):
        harmonic_balance(duffing(6.0), 2 * np.pi / 6, num_harmonics=0)
    with pytest.raises(InputError, match="num_harmonics"):
        harmonic_balance(duffing(6.0), 2 * np.pi / 6, num_harmonics=9_999)
    run = mbd.simulate(duffing(6.0), t_end=0.5, dt=1e-2)
    with pytest.raises(InputError, match="start must be a run of at least one period"):
        harmonic_balance(duffing(6.0), 2 * np.pi / 6, num_harmonics=2, start=run)
    with pytest.raises(InputError, match="span must be two different"):
        harmonic_curve(duffing, (6.0, 6.0), period=lambda w: 2 * np.pi / w, num_harmonics=2)
