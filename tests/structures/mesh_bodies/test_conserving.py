"""Conserving steps of bodies in free flight: energy and momenta, accuracy, errors, case W11.

W11 is a case of the list in `models.py`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy
import ufl

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics import GeneralizedAlpha
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import ElasticModel
from dolfinx_mbd.forms import Material, linear_elastic
from dolfinx_mbd.structures.mesh_bodies import MeshBody, Traction
from tests.structures.mesh_bodies.models import box, ends
from tests.structures.mesh_bodies.test_steady_spin import ring

SOFT = Material(1e5, 0.3, 1000.0)
RUBBER = Material(3e6, 0.4999, 1000.0)


def mooney_rivlin(u: Any) -> Any:
    """Return the energy density of a Mooney-Rivlin material, J/m³."""
    F = ufl.Identity(3) + ufl.grad(u)
    C, J = F.T * F, ufl.det(F)
    I1, I2 = ufl.tr(C), (ufl.tr(C) ** 2 - ufl.tr(C * C)) / 2
    c1, c2, k = 1.5e4, 5e3, 8e4
    return c1 * (I1 - 3) + c2 * (I2 - 3) - (2 * c1 + 4 * c2) * ufl.ln(J) + k / 2 * ufl.ln(J) ** 2


def thrown(energy: Any, cells: Any = (3, 1, 1), kind: str = "hexahedron", **options: Any) -> Any:
    """Return a body in free flight that rotates, stretches and bends."""
    mesh, tags = box((0, -0.1, -0.1), (1, 0.1, 0.1), cells, kind)
    x = ufl.SpatialCoordinate(mesh)
    rates = ufl.as_vector([2 * (x[0] - 0.5), 3 * x[0] ** 2 - 1, 0.5 * x[0]])
    motion: dict[str, Any] = {"omega": (1.0, 2.0, 6.0), "velocity": (1.0, 0, 0.5)}
    model = ElasticModel(mesh, SOFT, facet_tags=tags, degree=2)
    return MeshBody("bar", model, energy=energy, relative_velocity=rates, **motion, **options)


def changes(run: Any) -> tuple[float, Any]:
    """Return the largest change of the energy and of the momenta (2,), relative to their size."""
    energies, momenta = run.energies(), run.momenta().reshape(-1, 2, 3)
    total = energies.kinetic + energies.elastic
    shift = np.abs(momenta - momenta[0]).max(axis=(0, 2))
    return np.abs(total / total[0] - 1).max(), shift / np.linalg.norm(momenta[0], axis=1)


@pytest.mark.parametrize(
    ("energy", "dt"),
    [
        ("saint-venant-kirchhoff", 0.004),
        (mooney_rivlin, 0.004),
        *(
            pytest.param(energy, dt, marks=pytest.mark.slow)
            for energy, dt in (
                ("saint-venant-kirchhoff", 0.015),
                ("neo-hookean", 0.004),
                ("neo-hookean", 0.015),
                (mooney_rivlin, 0.015),
            )
        ),
    ],
)  # fmt: skip
def test_energy_and_momenta_are_conserved(energy: Any, dt: float) -> None:
    """Several revolutions with strains of 20 % keep their energy; generalized-α loses some."""
    system = mbd.System([thrown(energy)])
    run = mbd.simulate(system, t_end=100 * dt, dt=dt, method=GeneralizedAlpha.conserving())
    energy_change, shifts = changes(run)
    assert run.energies().elastic.max() > 0.08 * run.energies().kinetic[0]
    assert energy_change < 1e-8
    assert shifts.max() < 1e-8
    if dt == 0.015:
        dissipative = mbd.simulate(system, t_end=100 * dt, dt=dt)
        assert changes(dissipative)[0] > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("energy", "tolerance"), [("saint-venant-kirchhoff", 1e-6), ("neo-hookean", 1e-10)]
)
def test_long_runs(energy: str, tolerance: float) -> None:
    """In 3000 steps, energy and angular momentum change by about the tolerance."""
    system = mbd.System([thrown(energy, (2, 1, 1))])
    run = mbd.simulate(
        system,
        t_end=30.0,
        dt=0.01,
        tolerance=tolerance,
        method=GeneralizedAlpha.conserving(),
        stride=20,
    )
    energy_change, shifts = changes(run)
    assert energy_change < 10 * tolerance
    assert shifts[0] < 1e-12
    assert shifts[1] < 10 * tolerance


def test_the_method_is_of_second_order() -> None:
    """The error relative to another method is four times smaller with half of the step."""
    body = thrown("neo-hookean", (2, 1, 1))
    system = mbd.System([body])

    def final(dt: float, method: Any) -> Any:
        run = mbd.simulate(system, t_end=0.12, dt=dt, method=method, tolerance=1e-10)
        return body.motion(run).displacement[-1]

    generalized = GeneralizedAlpha.from_spectral_radius(1.0)
    coarse, fine = (final(dt, generalized) for dt in (0.001, 0.0005))
    exact = (4 * fine - coarse) / 3  # generalized-α is of second order, too
    method = GeneralizedAlpha.conserving()
    errors = [np.linalg.norm(final(dt, method) - exact) for dt in (0.004, 0.002, 0.001)]
    ratios = np.array(errors[:-1]) / errors[1:]
    assert (np.abs(ratios - 4) < 0.8).all(), errors


def test_loads_and_damping() -> None:
    """Gravity and tractions give momentum exactly; viscosity takes energy, but no momentum."""
    size, dt = np.array([4.0, -3.0, 10.0]), 0.01
    loads = {"push": Traction(2, lambda t: size * np.exp(-t / 0.05))}
    body = thrown("neo-hookean", loads=loads, viscosity=0.01)
    run = mbd.simulate(
        mbd.System([body], gravity=(0, 0, -9.81)),
        t_end=0.3,
        dt=dt,
        method=GeneralizedAlpha.conserving(),
    )
    middle = run.time[1:] - 0.5 * dt
    impulse = 0.04 * size * dt * np.exp(-middle / 0.05).sum()  # area 0.04 m²
    impulse = impulse + 0.3 * body.typical_mass * np.array([0, 0, -9.81])
    momenta = run.momenta()
    assert np.allclose(momenta[-1, :3] - momenta[0, :3], impulse, rtol=0, atol=1e-6)
    damped = thrown("neo-hookean", viscosity=0.01)
    run = mbd.simulate(mbd.System([damped]), t_end=0.3, dt=dt, method=GeneralizedAlpha.conserving())
    energies = run.energies()
    total = energies.kinetic + energies.elastic
    assert (np.diff(total) < 0).all()
    assert total[-1] < 0.97 * total[0]
    assert changes(run)[1].max() < 1e-8


def test_a_rotation_does_not_strain() -> None:
    """A stiff body that rotates by 0.2 rad a step is stretched by its rotation only.

    Its stress is σ = ρω²(L²/4 − x²)/2 in the mean; it starts without stress, so that the strain
    reaches twice this value.
    """
    mesh, tags = box((-0.5, -0.1, -0.1), (0.5, 0.1, 0.1), (2, 1, 1))
    steel = Material(2e11, 0.3, 7870.0)
    body = MeshBody("bar", ElasticModel(mesh, steel, facet_tags=tags), omega=(0, 0, 20.0))
    run = mbd.simulate(mbd.System([body]), t_end=0.5, dt=0.01, method=GeneralizedAlpha.conserving())
    energies = run.energies()
    mean = 0.04 * 7870**2 * 20.0**4 / (240 * 2e11)  # ∫σ²A/2E dx, L = 1 m
    assert 3.5 * mean < energies.elastic.max() < 4.2 * mean
    assert changes(run)[0] < 1e-8


def test_adaptive_steps_and_snapshots() -> None:
    body = thrown("neo-hookean", (2, 1, 1))
    method = GeneralizedAlpha.conserving()
    control = mbd.dynamics.Adaptive(1e-4)
    run = mbd.simulate(mbd.System([body]), t_end=0.3, dt=control, method=method)
    assert np.ptp(np.diff(run.time)) > 0
    assert changes(run)[0] < 1e-7
    simulator = mbd.Simulator(mbd.System([body]), dt=0.01, method=method)
    for _ in range(4):
        simulator.step()
    saved = simulator.save()
    after = simulator.step()
    restored = mbd.Simulator(mbd.System([body]), dt=0.01, method=method)
    restored.restore(saved)
    assert np.array_equal(restored.step().q, after.q)


def test_tetrahedra() -> None:
    body = thrown("neo-hookean", (4, 1, 1), "tetrahedron")
    run = mbd.simulate(mbd.System([body]), t_end=0.4, dt=0.02, method=GeneralizedAlpha.conserving())
    energy_change, shifts = changes(run)
    assert max(energy_change, shifts.max()) < 1e-8


def test_mechanisms_without_conserving_steps() -> None:
    """The error names the body and the reason; energies that a rotation changes are errors too."""
    method = GeneralizedAlpha.conserving()
    mesh, tags = box((0, 0, 0), (1, 0.2, 0.2), (2, 1, 1))
    model = ElasticModel(mesh, SOFT, facet_tags=tags)
    held = MeshBody("held", model, ends(0.0, 1.0, ("left",)))
    block = mbd.RigidBody("block", 1.0, [1.0, 1.0, 1.0])
    cases = {"held": mbd.System([held]), "block": mbd.System([MeshBody("bar", model), block])}
    for name, system in cases.items():
        with pytest.raises(InputError, match=f"'{name}'") as error:
            mbd.simulate(system, t_end=0.1, dt=0.1, method=method)
        assert error.value.argument == "method"
    wrong = (lambda u: linear_elastic(u, SOFT), lambda u: 1e3 * ufl.inner(u, u))
    for energy in wrong:
        system = mbd.System([MeshBody("bar", model, energy=energy)])
        with pytest.raises(InputError) as error:
            mbd.simulate(system, t_end=0.1, dt=0.1, method=method)
        assert error.value.argument == "energy"
    constant = 1e9  # J/m³; the error states the change of the energy, which it does not affect
    body = MeshBody("bar", model, energy=lambda u: linear_elastic(u, SOFT) + constant)
    with pytest.raises(InputError, match="strained body changes it by") as error:
        mbd.simulate(mbd.System([body]), t_end=0.1, dt=0.1, method=method)
    stated = float(str(error.value).split("changes it by ")[1].split()[0])
    assert 0.0 < stated < 0.01 * constant * 0.04  # volume 0.04 m³
    with pytest.raises(InputError) as error:
        GeneralizedAlpha(0.0, 0.0, 0.25, 0.5, conserves=True)
    assert error.value.argument == "conserves"


def thin_ring(share: float, **options: Any) -> tuple[MeshBody, float, float]:
    """Return the ring of case W11, the square of its radius of gyration, and its speed.

    The share is ρω²R²/μ.
    """
    mesh, _ = ring(24)
    plain = MeshBody("ring", mesh, material=RUBBER, energy="nearly-incompressible")
    X, weights = plain.nodes, plain.forces.lumped / plain.typical_mass
    square = float(weights @ (X[:, 0] ** 2 + X[:, 1] ** 2))
    speed = float(np.sqrt(share * RUBBER.shear / RUBBER.density / square))
    omega = (0, 0, speed)
    energy = "nearly-incompressible"
    return MeshBody("ring", mesh, material=RUBBER, energy=energy, omega=omega), square, speed


def stretches(body: MeshBody, run: Any, square: float) -> Any:
    """Return the radius of gyration over time, relative to that at rest, shape (nt,)."""
    x = body.nodes + body.motion(run).displacement
    squares = np.einsum("n,tni->t", body.forces.lumped, x[:, :, :2] ** 2) / body.typical_mass
    return np.sqrt(squares / square)


def breathing(share: float, steps: int, method: Any) -> tuple[Any, Any, Any]:
    """Simulate case W11 from the undeformed shape over half a revolution at the first speed.

    Returns the run, its stretches, and those of a thin incompressible ring, whose radius obeys
    λ̈ = ω²/λ³ − (μ/ρR²)(λ − λ⁻²).
    """
    body, square, speed = thin_ring(share)
    t_end, stiffness = np.pi / speed, RUBBER.shear / RUBBER.density / square
    run = mbd.simulate(mbd.System([body]), t_end=t_end, dt=t_end / steps, method=method)

    def rates(t: float, y: Any) -> Any:
        return [y[1], speed**2 / y[0] ** 3 - stiffness * (y[0] - y[0] ** -2)]

    options: Any = {"rtol": 1e-10, "atol": 1e-12, "dense_output": True}
    exact = scipy.integrate.solve_ivp(rates, (0, t_end), [1.0, 0.0], **options).sol(run.time)[0]
    return run, stretches(body, run, square), exact


@pytest.mark.slow
def test_breathing_ring() -> None:
    """Case W11 in free flight: the ring breathes about λ³ = 1/(1 − ρω²R²/μ) as a thin ring."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # many halved steps would give one
        run, values, exact = breathing(share := 0.3, 100, GeneralizedAlpha.conserving())
    assert values.max() > 1 + 0.5 * share
    assert np.abs(values - exact).max() < 0.02 * (exact.max() - 1)
    energy_change, shifts = changes(run)
    assert energy_change < 1e-8
    assert shifts[1] < 1e-8


def steady_ring(share: float, turns: float, steps: int) -> Any:
    """Return stretches and motion of case W11 in free flight, from the steady rotation."""
    body, square, speed = thin_ring(share)
    mesh, outer = ring(24)
    spec = mbd.InterfaceSpec(outer, point=(0, 0, 0), axes=np.eye(3), kind="averaged")
    twin = MeshBody("ring", mesh, {"rim": spec}, material=RUBBER, energy="nearly-incompressible")
    ground = mbd.Ground({"pin": mbd.Frame()})
    pin = mbd.spherical("pin", ground.frame("pin"), twin.frame("rim"))
    pinned = mbd.System([ground, twin], [pin])
    state = mbd.equilibrium(pinned, spin=(0, 0, speed))
    free = mbd.System([body])
    q, v = mbd.dynamics.consistent_state(free).q.copy(), np.zeros(6)
    body.nodal_of(q)[:] = twin.nodal_of(state.q[pinned.q_slices[1]])
    start = mbd.dynamics.consistent_state(free, q=q, v=v)
    time = turns * 2 * np.pi / speed
    run = mbd.simulate(free, t_end=time, dt=time / steps, start=start)
    return stretches(body, run, square), body.motion(run)


@pytest.mark.slow
def test_steady_ring_in_free_flight() -> None:
    """Case W11: a ring that starts in its steady rotation keeps its stretch and its circle."""
    share = 0.3
    values, motion = steady_ring(share, 0.5, 100)  # the equilibrium takes most of the time
    assert np.abs(values - (1 - share) ** (-1 / 3)).max() < 2e-3
    assert np.ptp(values) < 1e-5
    first, last = (motion.body.nodes + motion.displacement[k] for k in (0, -1))
    assert np.abs(last + first)[:, :2].max() < 0.01  # half a revolution
