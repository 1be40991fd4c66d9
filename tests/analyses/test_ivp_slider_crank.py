"""V4: motion and digits of the flexible slider-crank of `tests/models/ivp_slider_crank.py`.

V4 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import consistent_state
from dolfinx_mbd.kernels.rotations import rotation_matrix
from dolfinx_mbd.results import Solution
from tests.models.ivp_slider_crank import (
    ACROSS,
    ACROSS_X,
    AXIAL,
    END,
    J1,
    J2,
    L1,
    L2,
    LONG,
    LONG_X,
    M3,
    MASS,
    MIXED,
    SPEED,
    STIFFNESS,
    components,
    mechanism,
    multipliers,
    precise_run,
    start,
)


def simeon(phi: float, q: np.ndarray, omega: float, rate: np.ndarray, crank: float) -> np.ndarray:
    """Return accelerations of (φ₁, φ₂, x₃, q) and the three multipliers from Simeon's equations.

    `phi` and `omega` are angle and angular velocity of the rod, `q` and `rate` its elastic
    coordinates and their rates, and `crank` is the angle φ₁ of the crank.
    """
    c, s = np.cos(crank - phi), np.sin(crank - phi)
    modal = np.zeros((4, 4))
    modal[0, 0] = modal[1, 1] = 0.5
    modal[2:, 2:] = AXIAL
    M = np.zeros((7, 7))
    M[0, 0] = J1 + MASS * L1**2
    M[0, 1] = L1 * MASS * (0.5 * L2 * c + s * ACROSS @ q + c * LONG @ q)
    M[0, 3:] = MASS * L1 * (-s * LONG + c * ACROSS)
    M[1, 1] = J2 + MASS * (q @ modal @ q + 2 * LONG_X @ q)
    M[1, 3:] = MASS * (ACROSS_X + q @ MIXED)
    M[2, 2] = M3
    M[3:, 3:] = MASS * modal
    M = np.triu(M) + np.triu(M, 1).T
    F = np.zeros(7)
    F[0] = -0.5 * L1 * L2 * omega**2 * s + L1 * omega**2 * (-s * LONG @ q + c * ACROSS @ q)
    F[0] -= 2 * L1 * omega * (c * LONG @ rate + s * ACROSS @ rate)
    F[1] = 0.5 * L1 * L2 * SPEED**2 * s + L1 * SPEED**2 * (s * LONG @ q - c * ACROSS @ q)
    F[1] -= 2 * omega * (LONG_X @ rate + rate @ modal @ q) + rate @ MIXED @ rate
    F[3:] = omega**2 * (modal @ q + LONG_X) + 2 * omega * MIXED @ rate
    F[3:] += L1 * SPEED**2 * (c * LONG + s * ACROSS)
    F *= MASS
    F[3:] -= STIFFNESS @ q
    G = np.zeros((3, 7))
    reach = L2 + q[3]
    G[0, :2], G[0, 6] = [L1 * np.cos(crank), reach * np.cos(phi)], np.sin(phi)
    G[1, :3], G[1, 6] = [L1 * np.sin(crank), reach * np.sin(phi), 1.0], -np.cos(phi)
    G[2, 0] = 1.0
    bias = np.zeros(3)
    bias[0] = -L1 * np.sin(crank) * SPEED**2 - reach * np.sin(phi) * omega**2
    bias[1] = L1 * np.cos(crank) * SPEED**2 + reach * np.cos(phi) * omega**2
    bias[:2] += 2 * omega * rate[3] * np.array([np.cos(phi), np.sin(phi)])
    whole = np.block([[M, G.T], [G, np.zeros((3, 3))]])
    return np.linalg.solve(whole, np.concatenate([F, -bias]))


def test_equations_are_those_of_the_reference() -> None:
    """Accelerations and multipliers agree at random consistent states (round-off)."""
    system = mechanism()
    rng = np.random.default_rng(3)
    for _ in range(5):
        t = float(rng.uniform(0, 0.04))
        q = np.concatenate([body.initial_coordinates() for body in system.bodies])
        v = np.zeros(system.num_velocities)
        q[system.q_slices[2]][7:] = rng.normal(size=4) * [1e-3, 1e-4, 1e-4, 1e-4]
        v[system.v_slices[2]][6:] = rng.normal(size=4)
        angle = -np.arcsin(0.5 * np.sin(SPEED * t))
        q[system.q_slices[1]][3:7] = [np.cos(0.5 * SPEED * t), 0, 0, np.sin(0.5 * SPEED * t)]
        q[system.q_slices[2]][:7] = [
            L1 * np.cos(SPEED * t), L1 * np.sin(SPEED * t), 0,
            np.cos(0.5 * angle), 0, 0, np.sin(0.5 * angle),
        ]  # fmt: skip
        state = consistent_state(system, t, q=q, v=v, elastic_start="undeformed")
        run = Solution(system, [state])
        body = run.body("rod")
        rotation = rotation_matrix(body.rotation[0])
        phi = float(np.arctan2(rotation[1, 0], rotation[0, 0]))
        expected = simeon(phi, body.eta[0], body.omega[0, 2], body.eta_rate[0], SPEED * t)
        computed = [
            0,
            body.alpha[0, 2],
            run.body("piston").acceleration[0, 0],
            *body.eta_acceleration[0],
        ]
        for value, exact in ((computed[1:3], expected[1:3]), (computed[3:], expected[3:7])):
            assert np.allclose(value, exact, rtol=0, atol=1e-9 * np.abs(exact).max())
        assert np.allclose(multipliers(run), expected[7:], atol=1e-8 * np.abs(expected[7:]).max())


def off(run: Solution, key: str) -> np.ndarray:
    """Return the relative deviations of a result from the reference."""
    return np.abs(np.asarray(components(run)[key]) / END[key] - 1)


def test_simulation_tends_to_the_reference() -> None:
    """The error is of order dt² for the deflection, and smaller for angle and slider.

    The free vibration of q₁ (ω = 1277 rad/s) has the phase error (ω dt)²/12 ωt, which is 2.8 % of
    its amplitude at dt = 4e-5.
    """
    system = mechanism()
    begin = start(system)
    coarse, fine = (
        simulate(system, t_end=0.1, dt=dt, start=begin, stride=10**6, tolerance=1e-10)
        for dt in (8e-5, 4e-5)
    )
    for run in (coarse, fine):
        assert off(run, "phi") < 1e-6
        assert off(run, "x") < 1e-6
    assert 3 < off(coarse, "q")[0] / off(fine, "q")[0] < 5
    assert off(fine, "q")[0] < 0.028


@pytest.mark.slow
def test_digits_of_the_reference() -> None:
    """An integrator of high order gives the digits of the reference with these equations.

    Relative deviations are below 1e-9 for φ₂ and x₃, 2e-7 for q₁ and q₂, 1e-6 for velocities and
    1e-5 for the multipliers; the axial deformations of the reference are 5e-6 off.
    """
    run = precise_run()
    assert off(run, "phi") < 1e-9
    assert off(run, "x") < 1e-9
    assert (off(run, "q")[:2] < 2e-7).all()
    assert (off(run, "q")[2:] < 5e-6).all()
    assert off(run, "omega") < 1e-6
    assert off(run, "speed") < 1e-6
    assert (off(run, "lam") < 1e-5).all()
