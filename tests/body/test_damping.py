"""Rayleigh and modal damping: matrices in closed form, and the decay of simulated free modes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import ModalDamping, Rayleigh, ReducedBody
from dolfinx_mbd.dynamics import GeneralizedAlpha, System
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism import FlexibleBody, State
from tests.body.lattice import Lattice


@pytest.fixture(scope="module")
def body() -> ReducedBody:
    """Return a free body with twelve orthonormal modes."""
    return Lattice().body().truncated(12)


def ratios(body: ReducedBody) -> np.ndarray:
    """Return damping ratios of the modes of (M, K, C), in the order of their frequencies."""
    n = body.num_modes
    inverse = np.linalg.inv(body.mass)
    A = np.block(
        [[np.zeros((n, n)), np.eye(n)], [-inverse @ body.stiffness, -inverse @ body.damping]]
    )
    poles = np.linalg.eigvals(A)
    poles = poles[poles.imag > 0]
    poles = poles[np.argsort(np.abs(poles))]
    return -poles.real / np.abs(poles)


def mixed(body: ReducedBody, seed: int = 1) -> ReducedBody:
    """Return the same body in other elastic coordinates, which are not orthonormal."""
    n = body.num_modes
    T = np.random.default_rng(seed).normal(size=(n, n)) + 4 * np.eye(n)
    full = np.zeros((n + 1, n + 1))
    full[0, 0], full[1:, 1:] = 1.0, T
    return ReducedBody.from_arrays(
        total_mass=body.total_mass,
        first_moments=full.T @ body.first_moments,
        second_moments=np.einsum("ki,klab,lj->ijab", full, body.second_moments, full),
        stiffness=T.T @ body.stiffness @ T,
    )


def test_rayleigh_ratio_of_each_mode(body: ReducedBody) -> None:
    damping = Rayleigh(mass=30.0, stiffness=2e-7)
    w = 2 * np.pi * body.frequencies
    expected = 0.5 * (30.0 / w + 2e-7 * w)
    for variant in (body, mixed(body)):
        assert np.allclose(ratios(variant.with_damping(damping)), expected, rtol=1e-7)
    assert np.allclose(damping.ratio(body.frequencies), expected, rtol=1e-12)


def test_rayleigh_from_two_ratios(body: ReducedBody) -> None:
    f = body.frequencies[[0, 6]]
    damping = Rayleigh.from_ratios(f, (0.02, 0.015))
    assert np.allclose(ratios(body.with_damping(damping))[[0, 6]], (0.02, 0.015), rtol=1e-9)
    only_stiffness = Rayleigh.from_ratios((100.0, 300.0), (0.01, 0.03))
    assert only_stiffness.mass == pytest.approx(0.0, abs=1e-10)
    assert only_stiffness.stiffness == pytest.approx(0.01 / (np.pi * 100.0))


@pytest.mark.parametrize("number", ["one", "each"])
def test_modal_ratios_in_any_coordinates(body: ReducedBody, number: str) -> None:
    n = body.num_modes
    expected = np.full(n, 0.03) if number == "one" else np.linspace(0.0, 0.04, n)
    damping = ModalDamping(0.03 if number == "one" else expected)
    for variant in (body, mixed(body)):
        damped = variant.with_damping(damping)
        assert np.allclose(ratios(damped), expected, rtol=1e-6, atol=1e-9)
        # the eigenvectors are those without damping: M⁻¹C and M⁻¹K commute
        A, B = (np.linalg.solve(variant.mass, X) for X in (damped.damping, variant.stiffness))
        assert np.abs(A @ B - B @ A).max() < 1e-9 * np.abs(A).max() * np.abs(B).max()


def test_dampings_add_up_and_replace(body: ReducedBody) -> None:
    parts = Rayleigh(mass=10.0), ModalDamping(0.01), 0.5 * np.eye(body.num_modes)
    together = body.with_damping(*parts).damping
    apart = sum(body.with_damping(part).damping for part in parts)
    assert np.allclose(together, apart, rtol=1e-14)
    replaced = body.with_damping(*parts).with_damping(Rayleigh(mass=10.0))
    assert np.allclose(replaced.damping, 10.0 * body.mass)
    assert not body.with_damping(*parts).with_damping().damping.any()
    assert not body.damping.any()


def test_damping_survives_a_file(
    body: ReducedBody, tmp_path_factory: pytest.TempPathFactory
) -> None:
    damped = body.with_damping(ModalDamping(0.01))
    path = damped.save(tmp_path_factory.mktemp("damped") / "body.npz")
    assert np.array_equal(ReducedBody.load(path).damping, damped.damping)


def free_decay(body: ReducedBody, mode: int, step: float) -> np.ndarray:
    """Return time, η of a mode and the deviation of the frame from free fall, from a simulation.

    The body falls because, without any force, the tolerance of its rigid motion would be zero.
    """
    g = np.array([0.0, 0.0, -9.81])
    system = System([FlexibleBody("b", body, damping_ratio=0.0)], gravity=g)
    n = body.num_modes
    q, v = np.zeros(7 + n), np.zeros(6 + n)
    q[3], q[7 + mode] = 1.0, 1e-7
    v[:3] = (3.0, -2.0, 1.0)
    a = np.zeros(6 + n)
    a[:3] = g
    a[6:] = -np.linalg.solve(body.mass, body.stiffness @ q[7:])
    period = 1 / body.frequencies[mode]
    run = simulate(
        system,
        t_end=12 * period,
        dt=step * period,
        method=GeneralizedAlpha.newmark(),
        start=State(0.0, q, v, a, np.zeros(0), np.zeros(0)),
    )
    b, t = run.body("b"), run.time[:, None]
    deviation = b.position - v[:3] * t - 0.5 * g * t**2
    return np.column_stack([run.time, b.eta[:, mode], deviation, b.rotation[:, 1:]])


def decrement(time: np.ndarray, x: np.ndarray) -> float:
    """Return the logarithmic decrement of a free oscillation, fitted to its maxima."""
    k = np.flatnonzero((x[1:-1] > x[:-2]) & (x[1:-1] >= x[2:])) + 1
    left, top, right = x[k - 1], x[k], x[k + 1]
    peaks = top - (right - left) ** 2 / (8 * (left - 2 * top + right))
    return -float(np.polyfit(np.arange(len(peaks)), np.log(peaks), 1)[0])


@pytest.mark.parametrize("mode", [0, 4])
@pytest.mark.parametrize(
    "damping",
    [Rayleigh(mass=400.0), Rayleigh(stiffness=2e-6), ModalDamping(0.02)],
    ids=["Rayleigh, mass", "Rayleigh, stiffness", "modal"],
)
def test_logarithmic_decrement_of_a_simulated_mode(
    body: ReducedBody, damping: Rayleigh | ModalDamping, mode: int
) -> None:
    """δ = 2πζ/√(1−ζ²), corrected for the trapezoidal rule.

    The rule replaces a pole λ by (2/dt) artanh(λ dt/2) ≈ λ + λ³dt²/12. The real part of this
    correction lowers the decay rate by the fraction (ω dt)²/4, which is 2.5e-4 at 200 steps per
    period, and its imaginary part lowers the frequency by the fraction (ω dt)²/12. The body falls
    as a rigid one does: no damping resists it.
    """
    damped = body.with_damping(damping)
    w = 2 * np.pi * body.frequencies[mode]
    zeta = damping.ratio(body.frequencies[mode]) if isinstance(damping, Rayleigh) else 0.02
    out = free_decay(damped, mode, 1 / 200)
    measured = decrement(out[:, 0], out[:, 1])
    exact = 2 * np.pi * zeta / np.sqrt(1 - zeta**2)
    assert measured == pytest.approx(exact, rel=5e-4)
    z = (-zeta + 1j * np.sqrt(1 - zeta**2)) * w / (200 * body.frequencies[mode]) / 2
    exponent = np.log((1 + z) / (1 - z))
    assert measured == pytest.approx(-2 * np.pi * exponent.real / exponent.imag, rel=2e-5)
    # m, and half rotations in rad; the body falls by millimetres
    assert np.abs(out[:, 2:]).max() < 1e-12


@contextmanager
def input_error(argument: str, expected: str = "") -> Iterator[None]:
    """Assert that the block raises an error about an argument."""
    with pytest.raises(InputError) as error:
        yield
    assert error.value.argument == argument
    assert expected in str(error.value.expected)


def test_bad_input(body: ReducedBody) -> None:
    for wrong in (-1.0, np.nan, np.inf, "1", True, None):
        with input_error("Rayleigh damping: mass"):
            Rayleigh(mass=wrong)
    with input_error("modal damping: ratios"):
        ModalDamping((0.1, -0.1))
    with input_error("modal damping: ratios"):
        ModalDamping("much")
    with input_error("modal damping: ratios"):
        body.with_damping(ModalDamping((0.1, 0.2)))
    with input_error("ratios", "from 0.005 to 0.02 at 200 Hz"):
        Rayleigh.from_ratios((100.0, 200.0), (0.01, 0.03))
    with input_error("frequencies"):
        Rayleigh.from_ratios((100.0,), (0.01,))
    with input_error("frequencies"):
        Rayleigh.from_ratios((100.0, 100.0), (0.01, 0.02))
    for wrong in (0.01, "Rayleigh", [1.0]):
        with input_error("damping"):
            body.with_damping(wrong)
    with input_error("damping"):
        body.with_damping(np.eye(3))
    with input_error("damping"):
        body.with_damping(-np.eye(12))
