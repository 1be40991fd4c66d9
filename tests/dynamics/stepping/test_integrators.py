"""Laws of the time integration: order two, drift, energy, momentum, identical repetition."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.dynamics import GeneralizedAlpha, System, consistent_state
from dolfinx_mbd.dynamics.stepping.integrators import Stepper
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism import FlexibleBody
from dolfinx_mbd.mechanism.mechanisms import slider_crank
from tests.models.beams import slender_rod

METHODS = [
    GeneralizedAlpha.from_spectral_radius(0.8),
    GeneralizedAlpha.from_spectral_radius(0.5),
    GeneralizedAlpha.hht(0.1),
]


def flexible_crank(speed: float = 150.0) -> System:
    """Return a driven slider-crank with a rod of two bending modes."""
    return slider_crank(
        slender_rod(bending=2, axial=0),  # frequencies that every step resolves
        crank_radius=0.15,
        crank_mass=0.36,
        piston_mass=0.0755,
        speed=speed,
        damping_ratio=0.02,
    )


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_order_two_in_dt(method: GeneralizedAlpha) -> None:
    """Positions, velocities and multipliers are of second order, also in the first steps."""
    system = flexible_crank()
    start = consistent_state(system)
    steps = (1e-4, 5e-5, 2.5e-5, 3.125e-6)
    strides = [round(steps[0] / dt) for dt in steps]
    runs = [
        simulate(system, t_end=5e-3, dt=dt, start=start, method=method, tolerance=1e-10, stride=k)
        for dt, k in zip(steps, strides, strict=True)
    ]
    for key in ("q", "v", "lam"):
        values = [getattr(run, key) for run in runs]
        errors = [np.sqrt(np.mean((value - values[-1]) ** 2)) for value in values[:-1]]
        orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
        assert np.all(orders > 1.8), (key, errors, orders)


def test_constraints_do_not_drift() -> None:
    run = simulate(flexible_crank(), t_end=0.1, dt=1e-4)
    assert run.constraint_violation().max() < 1e-9 * 0.45  # relative to the length of the mechanism
    assert (
        run.constraint_violation()[-100:].max()
        < 3 * run.constraint_violation()[1:100].max() + 1e-14
    )


def spinning_body() -> ReducedBody:
    """Return a free undamped rod with its mean-axis modes about its centre of mass."""
    rod = slender_rod(bending=4, axial=0, start=-0.15)
    n = rod.num_modes
    M = np.einsum("klaa->kl", rod.second_moments[1:, 1:])
    fields = np.concatenate([rod.first_moments[1:], _moments(rod)], axis=1)  # work on rigid motions
    # combinations of modes without momentum, which are orthonormalized in the mass
    null = np.linalg.svd(fields.T)[2][np.linalg.matrix_rank(fields) :].T
    L = np.linalg.cholesky(null.T @ M @ null)
    basis = np.eye(n + 1, 1 + null.shape[1])
    basis[1:, 1:] = null @ np.linalg.inv(L).T
    T = basis[1:, 1:]
    return ReducedBody.from_arrays(
        total_mass=rod.total_mass,
        first_moments=basis.T @ rod.first_moments,
        second_moments=np.einsum("km,klab,ln->mnab", basis, rod.second_moments, basis),
        stiffness=T.T @ rod.stiffness @ T,
    )


def _moments(rod: ReducedBody) -> np.ndarray:
    """Return ∫ρ x×ψ of all modes, (n, 3)."""
    H = rod.second_moments[1:, 0]  # ∫ρ ψ⊗x
    return np.stack(
        [H[:, 2, 1] - H[:, 1, 2], H[:, 0, 2] - H[:, 2, 0], H[:, 1, 0] - H[:, 0, 1]], axis=1
    )


def free_spin(dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Return energies and momenta of the rod tumbling at 1500 rpm and ringing, over a turn."""
    body = spinning_body()
    assert 1 <= body.num_modes <= 6
    system = System([FlexibleBody("rod", body, damping_ratio=0.0)])
    speed = 1500 * 2 * np.pi / 60
    v = np.zeros(system.num_velocities)
    v[:6] = 0.3, -0.2, 0.1, 0.05 * speed, 0.1 * speed, speed
    q = system.bodies[0].initial_coordinates()
    q[7:] = 5e-5  # about 2 % of the energy
    start = consistent_state(system, q=q, v=v, elastic_start="undeformed")
    undamped = GeneralizedAlpha.from_spectral_radius(1.0)  # no numerical damping of the vibrations
    run = simulate(system, t_end=0.04, dt=dt, start=start, tolerance=1e-12, method=undamped)
    return run.energies().total, run.momenta()


def test_energy_and_momentum_of_a_free_flexible_body() -> None:
    coarse, _ = free_spin(2e-5)
    fine, momenta = free_spin(1e-5)
    errors = [np.abs(energy - energy[0]).max() / energy[0] for energy in (coarse, fine)]
    assert errors[1] < 1e-5
    assert errors[0] / errors[1] > 3.5  # dt²
    linear, angular = momenta[:, :3], momenta[:, 3:]
    # With the frame at the centre of mass the force rows are linear in the accelerations, so linear
    # momentum is kept to round-off; angular momentum is kept to dt², as by any generalized-α.
    assert np.ptp(linear, axis=0).max() < 1e-13 * np.abs(linear[0]).max()
    assert np.ptp(angular, axis=0).max() < 1e-6 * np.linalg.norm(angular[0])


def test_two_runs_are_bitwise_identical() -> None:
    system = flexible_crank()
    first, second = (simulate(system, t_end=2e-3, dt=1e-5) for _ in range(2))
    for key in ("q", "v", "a", "lam"):
        assert np.array_equal(getattr(first, key), getattr(second, key))


@pytest.mark.parametrize("speed", [150.0, 20.0])
def test_repeated_steps_are_bitwise_identical(speed: float) -> None:
    """The repeated run evaluates no last residual, but has the same corrections and factors."""
    system, dt = flexible_crank(speed), 1e-4
    first, second = Stepper(system), Stepper(system)
    state = repeated = first.begin(consistent_state(system), dt)
    for _ in range(150):
        before = first.iterations
        state = first.step(state, dt)
        repeated = second.repeat(repeated, dt, first.iterations - before, first.has_factor)
        for name in ("q", "v", "a", "lam", "angles"):
            assert np.array_equal(getattr(state, name), getattr(repeated, name))
    assert np.array_equal(state.memory["algorithmic"], repeated.memory["algorithmic"])
    assert second.iterations == first.iterations > 150
    assert second.factorizations == first.factorizations < 150


def test_methods_are_data() -> None:
    trapezoidal = GeneralizedAlpha.from_spectral_radius(1.0)
    assert np.allclose([trapezoidal.beta, trapezoidal.gamma], [0.25, 0.5])
    assert np.isclose(trapezoidal.alpha_m, trapezoidal.alpha_f)
    assert GeneralizedAlpha.newmark().beta == 0.25
    for make, argument in (
        (lambda: GeneralizedAlpha.from_spectral_radius(1.5), "rho"),
        (lambda: GeneralizedAlpha.hht(0.5), "alpha"),
        (lambda: GeneralizedAlpha.newmark(beta=0.0), "beta"),
        (lambda: GeneralizedAlpha(1.0, 0.0, 0.25, 0.5), "alpha_m"),
        (lambda: GeneralizedAlpha(0.0, np.nan, 0.25, 0.5), "alpha_f"),
    ):
        with pytest.raises(InputError) as error:
            make()
        assert error.value.argument == argument


def test_stiff_rod_tends_to_the_rigid_mechanism() -> None:
    """A modulus 100 times as large reduces the differences by about 100, down to round-off."""
    speed, gaps = 150.0, []
    settings = {"crank_radius": 0.15, "crank_mass": 0.36, "piston_mass": 0.0755, "speed": speed}
    rigid = simulate(slider_crank(slender_rod().rigid(), **settings), t_end=0.02, dt=1e-4)
    for factor in (1e2, 1e4, 1e6):
        rod = slender_rod(young=2e11 * factor)
        run = simulate(slider_crank(rod, **settings), t_end=0.02, dt=1e-4)
        gaps.append(np.abs(run.body("piston").position - rigid.body("piston").position).max())
    assert gaps[1] < 0.02 * gaps[0]
    assert gaps[2] < 1e-10
