"""Multipliers of harmonic balance against closed forms, SciPy's integration, and `periodic`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate
from scipy.special import mathieu_a, mathieu_b

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import harmonic_balance, harmonic_curve, periodic
from dolfinx_mbd.errors import AccuracyWarning
from tests.analyses.test_harmonic_balance import duffing, tilting_rotor
from tests.analyses.test_periodic import oscillator
from tests.models.beams import slender_rod


def distance(one: Any, two: Any) -> float:
    """Return the largest distance of a multiplier in `one` from its neighbour in `two`."""
    return float(np.abs(np.asarray(one)[:, None] - np.asarray(two)).min(axis=1).max())


def limit(system: mbd.System, motion: Any, steps: int) -> Any:
    """Return the multipliers of `periodic` for steps that tend to zero."""
    coarse, fine = (
        periodic(system, motion.period, dt=motion.period / n, start=motion, transient=0).multipliers
        for n in (steps, 2 * steps)
    )
    # as the multipliers with fine steps are ordered
    order = [int(np.abs(coarse - mu).argmin()) for mu in fine]
    return fine + (fine - coarse[order]) / 3


@pytest.mark.parametrize("seed", range(3))
def test_a_linear_oscillator(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, c, w = rng.uniform(20, 60), rng.uniform(0.01, 0.3), rng.uniform(3, 9)
    system = oscillator(lambda t, x, v: -k * x - c * v + 2 * np.cos(w * t))
    motion = harmonic_balance(system, 2 * np.pi / w, num_harmonics=1 + seed)
    exact = np.exp(np.roots([1, c, k]) * motion.period)
    assert distance(exact, motion.multipliers) < 1e-9
    assert motion.stability == "stable"
    assert np.allclose(motion.exponents.real, -c / 2, rtol=1e-6)


@pytest.mark.parametrize("delta", [0.1, 0.2, 0.3, 0.95, 1.1, 2.2])
@pytest.mark.parametrize("epsilon", [0.1, 0.8])
def test_mathieu_tongues(delta: float, epsilon: float) -> None:
    """One harmonic describes the motion at rest; its disturbances need more."""
    system = oscillator(lambda t, x, v: -(delta + epsilon * np.cos(t)) * x)
    motion = harmonic_balance(system, 2 * np.pi, num_harmonics=1)

    def rates(t: float, y: Any) -> list[float]:
        stiffness = delta + epsilon * np.cos(t)
        return [y[1], -stiffness * y[0], y[3], -stiffness * y[2]]

    y = scipy.integrate.solve_ivp(rates, (0, 2 * np.pi), [1, 0, 0, 1], rtol=1e-11, atol=1e-13).y
    assert distance(np.linalg.eigvals(y[:, -1].reshape(2, 2)), motion.multipliers) < 1e-7
    # ẍ + (a − 2q cos 2τ) x = 0 with t = 2τ; the sign of q only shifts the time
    a, q = 4 * delta, 2 * epsilon
    stable = any(mathieu_a(k, q) < a < mathieu_b(k + 1, q) for k in range(6))
    assert motion.stability == ("neutral" if stable else "unstable")


@pytest.mark.slow
def test_the_branch_between_the_folds_is_unstable() -> None:
    """The other branches are stable; multipliers agree with `periodic`, and are 1 at a fold."""
    curve = harmonic_curve(
        duffing, (7.2, 8.6), period=lambda w: 2 * np.pi / w, num_harmonics=7, longest=0.2, step=0.1
    )
    first, last = curve.folds
    assert curve.stable[:first].all()
    assert curve.stable[last + 1 :].all()
    assert not curve.stable[first + 1 : last].any()
    assert last - first > 3
    for fold in (first, last):
        assert np.abs(curve.motions[fold].multipliers - 1).min() < 1e-4
    for k in (first // 2, (first + last) // 2):
        motion = curve.motions[k]
        exact = limit(duffing(float(curve.parameter[k])), motion, 400)
        assert distance(exact, motion.multipliers) < 1e-5


@pytest.mark.slow
def test_a_rotor_that_tilts() -> None:
    """The multipliers are right if constraints rotate with the mechanism."""
    system = tilting_rotor(310.0, 2.5)
    motion = harmonic_balance(system, 2 * np.pi / 310.0, num_harmonics=6)
    exact = limit(system, motion, 200)
    assert len(exact) == len(motion.multipliers) == 4
    assert distance(exact, motion.multipliers) < 1e-6


def test_a_flexible_rod() -> None:
    speed = 120.0
    system = mbd.mechanisms.slider_crank(
        slender_rod(), speed=speed, crank_radius=0.1, damping_ratio=0.02
    )
    motion = harmonic_balance(system, 2 * np.pi / speed, num_harmonics=10)
    exact = limit(system, motion, 1000)
    slow = exact[np.abs(exact) > 0.1]
    assert distance(slow, motion.multipliers) < 1e-3


def test_states_of_loads() -> None:
    """Exponents obey (1 + τ s)(s² + c s + k) = g for a force with time constant τ and gain g."""
    w, tau, gain = 5.0, 0.13, 20.0

    def lag(t: float, x: float, v: float, states: Any) -> Any:
        force = states[0]
        return force - 40 * x - 0.3 * v, [(2 * np.cos(w * t) + gain * x - force) / tau]

    block = oscillator(lambda t, x, v: 0.0)
    load = mbd.JointLoad("push", "rail", "displacement", lag, states=[0.0])
    system = mbd.System(block.bodies, block.joints, loads=[load])
    motion = harmonic_balance(system, 2 * np.pi / w, num_harmonics=2)
    poles = np.roots([tau, 1 + 0.3 * tau, 0.3 + 40 * tau, 40 - gain])
    assert len(motion.multipliers) == 3
    assert distance(np.exp(poles * motion.period), motion.multipliers) < 1e-8


def test_multipliers_that_are_not_accurate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stiffness with steep flanks needs larger matrices than the limit, which gives a warning."""
    monkeypatch.setattr("dolfinx_mbd.analyses.harmonic_stability._LARGEST", 100)

    def law(t: float, x: float, v: float) -> float:
        return -(40 + 39 * np.tanh(4000 * np.sin(t))) * x

    motion = harmonic_balance(oscillator(law), 2 * np.pi, num_harmonics=1)
    with pytest.warns(AccuracyWarning, match="multipliers change"):
        assert len(motion.multipliers) == 2
