"""Frequency response: limits, peaks, half-power widths, the full-order model, and simulations."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import ModalDamping, Rayleigh, ReducedBody
from dolfinx_mbd.body.response.frequency_response import FrequencyResponse, frequency_response
from dolfinx_mbd.body.response.linearized import linearize_body
from dolfinx_mbd.body.response.resonance import half_power
from dolfinx_mbd.dynamics import GeneralizedAlpha, System
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism import (
    BodyState,
    Driver,
    FlexibleBody,
    Frame,
    FrameLoad,
    Ground,
    constant_speed,
    revolute,
)
from tests.body.lattice import Lattice, skew

SPIN = np.array([30.0, -200.0, 350.0])
ENDS = ("left", "right")


@pytest.fixture(scope="module")
def lattice() -> Lattice:
    """Return a lattice of particles and bars, the full model."""
    return Lattice()


@pytest.fixture(scope="module")
def body(lattice: Lattice) -> ReducedBody:
    """Return the lattice with all its modes, which equals the full model."""
    return lattice.body(stiffening=True)


def close(A: np.ndarray, B: np.ndarray, tolerance: float) -> bool:
    """Return whether the largest difference is small relative to the largest value of B."""
    return bool(np.abs(A - B).max() <= tolerance * np.abs(B).max())


# ---- at rest ------------------------------------------------------------------------------------
def test_free_body_is_the_full_model(lattice: Lattice, body: ReducedBody) -> None:
    """The reference has the damping α (M without rigid part) + β K and complex numbers."""
    alpha, beta = 200.0, 1e-6
    damped = body.with_damping(Rayleigh(alpha, beta))
    K, M = lattice.reduced(lattice.K), lattice.reduced(lattice.M)
    R = np.linalg.lstsq(lattice.T, lattice.R, rcond=None)[0]
    C = alpha * (M - M @ R @ np.linalg.solve(R.T @ M @ R, R.T @ M)) + beta * K
    f = np.array([20.0, 500.0, 3100.0, 7000.0])
    eta = 0.03
    response = frequency_response(damped, f, loss_factor=eta)
    both, middle = response.receptance(*ENDS), response.receptance("middle")
    stiffness = response.dynamic_stiffness(*ENDS)
    row = lattice.T[3 * lattice.node : 3 * lattice.node + 3]
    for k, w in enumerate(2 * np.pi * f):
        H = np.linalg.inv(K * (1 + 1j * eta) + 1j * w * C - w**2 * M)
        assert close(both[k], H[:12, :12], 1e-9)
        assert close(middle[k], row @ H @ row.T, 1e-9)
        assert close(stiffness[k], np.linalg.inv(H[:12, :12]), 1e-8)
    assert close(response.between("left uy", "right fy"), both[:, 1, 7], 1e-14)


def test_free_body_flies_as_a_rigid_one_at_low_frequency(body: ReducedBody) -> None:
    """H → −(1/m + arms²/inertia)/ω², up to an elastic share of (f/f₁)²; damping has no effect."""
    damped = body.with_damping(Rayleigh(mass=1e3), ModalDamping(0.1))
    f = np.array([0.5, 5.0])
    H = frequency_response(damped, f).receptance("left")
    lever = skew(body.interface("left").point - body.centre)
    rigid = np.block([[np.eye(3), -lever], [np.zeros((3, 3)), np.eye(3)]])
    inertia = np.zeros((6, 6))
    inertia[:3, :3] = np.eye(3) / body.total_mass
    inertia[3:, 3:] = np.linalg.inv(body.central_inertia)
    expected = -rigid @ inertia @ rigid.T / (2 * np.pi * f[:, None, None]) ** 2
    ratio = f / body.frequencies[0]
    for k in range(2):
        assert close(H[k], expected[k], 10 * ratio[k] ** 2)
    with pytest.raises(InputError, match=r"^frequencies must be positive"):
        frequency_response(body, [0.0, 1.0])


def test_static_limit_of_a_held_body_is_its_compliance(lattice: Lattice, body: ReducedBody) -> None:
    K = lattice.reduced(lattice.K)
    H = frequency_response(body.with_damping(ModalDamping(0.02)), 0.0, held=["left"])
    compliance = np.linalg.inv(K[6:, 6:])[:6, :6]
    assert H.inputs[:6] == tuple(f"right {c}" for c in ("fx", "fy", "fz", "mx", "my", "mz"))
    assert close(H.receptance("right")[0], compliance, 1e-9)
    assert np.abs(H.values.imag).max() == 0.0


def test_base_motion_and_transmissibility(lattice: Lattice, body: ReducedBody) -> None:
    f = np.array([0.0, 40.0, 1500.0])
    damped = body.with_damping(Rayleigh(stiffness=1e-6))
    response = frequency_response(damped, f, driven=["left"], outputs=["left", "right"])
    K, M = lattice.reduced(lattice.K), lattice.reduced(lattice.M)
    for k, w in enumerate(2 * np.pi * f):
        Z = K * (1 + 1e-6j * w) - w**2 * M
        expected = -np.linalg.solve(Z[6:, 6:], Z[6:, :6])[:6]
        assert close(response.values[k, :6], np.eye(6), 1e-9)
        assert close(response.values[k, 6:], expected, 1e-9)
    lever = skew(body.interface("right").point - body.interface("left").point)
    assert close(response.values[0, 6:9, 3:], -lever, 1e-9)  # a rigid turn about the left end
    held = frequency_response(damped, f, held=["left"], inputs=["right"], outputs=["right"])
    mixed = frequency_response(damped, f, driven=["left"], inputs=["right"], outputs=["right"])
    assert close(mixed.values[:, :, :6], held.values, 1e-9)


# ---- peaks --------------------------------------------------------------------------------------
def peak(
    body: ReducedBody, frequency: float, width: float, entry: tuple[str, str], **options: object
) -> FrequencyResponse:
    """Return the response about a resonance, 200 samples in its half-power width."""
    f = frequency + width * np.linspace(-4.0, 4.0, 1601)
    return frequency_response(body, f, **options).between(*entry), f


@pytest.mark.parametrize("mode", [0, 3])
@pytest.mark.parametrize("kind", ["Rayleigh", "modal", "structural"])
def test_half_power_width_of_free_modes(body: ReducedBody, kind: str, mode: int) -> None:
    """The width is Δf = 2ζf, or η f for structural damping, about the frequency of the mode.

    The other modes add a constant about 2ζ times as large as the peak, and the width of a single
    mode is 2ζ f (1 + O(ζ²)): with ζ = 5e-4 both stay below 2e-3.
    """
    f, zeta = body.frequencies[mode], 5e-4
    damping = {
        "Rayleigh": Rayleigh(stiffness=zeta / (np.pi * f)),
        "modal": ModalDamping(zeta),
        "structural": ModalDamping(0.0),
    }[kind]
    loss = 2 * zeta if kind == "structural" else 0.0
    motion = np.abs(body.point("middle").modes[mode])
    axis = "xyz"[int(np.argmax(motion))]
    H, peak_frequency = peak(
        body.with_damping(damping),
        f,
        2 * zeta * f,
        (f"middle u{axis}", f"middle f{axis}"),
        loss_factor=loss,
    )
    resonance = half_power(peak_frequency, H)
    assert resonance.frequency == pytest.approx(f, rel=1e-5)
    assert resonance.width == pytest.approx(2 * zeta * f, rel=2e-3)
    expected = motion.max() ** 2 / (2 * zeta * (2 * np.pi * f) ** 2)
    assert resonance.height == pytest.approx(expected, rel=5e-3)


def test_peaks_of_a_held_body_are_at_its_poles(body: ReducedBody) -> None:
    """Damping of the free body is not modal for the held body; poles and peaks agree."""
    damped = body.with_damping(Rayleigh(mass=3.0, stiffness=3e-8))
    poles = linearize_body(damped, held=["left"]).poles()
    for pole in poles[:2]:
        f, zeta = np.abs(pole) / (2 * np.pi), -pole.real / np.abs(pole)
        response = frequency_response(
            damped, f + 2 * zeta * f * np.linspace(-4, 4, 1601), held=["left"], inputs=["right"]
        )
        entry = max(
            ("uy", "uz"), key=lambda c: np.abs(response.between(f"right {c}", "right fy")).max()
        )
        peak = half_power(response.frequencies, response.between(f"right {entry}", "right fy"))
        assert peak.frequency == pytest.approx(f, rel=1e-5)
        assert peak.width == pytest.approx(2 * zeta * f, rel=5e-3)


def test_half_power_of_one_mode_in_closed_form() -> None:
    """Structural damping: half power at f√(1±η), and a peak of 1/(kη) at f."""
    f = np.linspace(90.0, 110.0, 4001)
    eta = 0.02
    peak = half_power(f, 1 / (100.0**2 * (1 + 1j * eta) - f**2))
    assert peak.frequency == pytest.approx(100.0, rel=1e-6)
    assert peak.width == pytest.approx(100.0 * (np.sqrt(1 + eta) - np.sqrt(1 - eta)), rel=1e-6)
    assert peak.height == pytest.approx(1 / (100.0**2 * eta), rel=1e-6)
    for band in ((99.9, 110.0), (90.0, 100.1), (99.5, 100.5)):
        g = np.linspace(*band, 101)
        with pytest.raises(InputError) as error:
            half_power(g, 1 / (100.0**2 * (1 + 1j * eta) - g**2))
        assert error.value.argument == "frequencies"
        assert str(error.value.expected).startswith("a wider range")
    g = np.linspace(90.0, 110.0, 21)
    with pytest.raises(InputError) as error:
        half_power(g, 1 / (100.0**2 * (1 + 1j * eta) - g**2))
    assert error.value.argument == "frequencies"
    assert str(error.value.expected).startswith("at least three numbers")


# ---- in rotation --------------------------------------------------------------------------------
def full_rotating(
    lattice: Lattice, point: np.ndarray, stiffening: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return M, G, K of the lattice in axes that rotate about a point.

    Its left end is held in these axes, which rotate with the angular velocity SPIN.
    """
    W = skew(SPIN) @ skew(SPIN)
    # the centrifugal load deforms the lattice by u
    load = -((lattice.x - point) @ W.T * lattice.masses[:, None]).ravel()
    spin = np.kron(np.eye(len(lattice.x)), skew(SPIN))
    T = lattice.T[:, 6:]
    u = T @ np.linalg.solve(T.T @ lattice.K @ T, T.T @ load)
    M, G = T.T @ lattice.M @ T, 2 * T.T @ lattice.M @ spin @ T
    K = T.T @ (lattice.K + lattice.M @ spin @ spin) @ T
    if stiffening:
        K = K + T.T @ lattice.tensions_stiffness(u) @ T
        nodes = lattice.ends["right"]
        forces = (lattice.K @ u - load).reshape(-1, 3)[nodes]
        virial = forces.T @ (lattice.x[nodes] - lattice.points["right"])
        virial = 0.5 * (virial + virial.T)
        K[3:6, 3:6] += virial - np.trace(virial) * np.eye(3)
    return M, G, K


@pytest.mark.parametrize("stiffening", [True, False])
@pytest.mark.parametrize("about", [None, (0.3, 0.2, -0.1)])
def test_held_and_rotating_is_the_full_model(
    lattice: Lattice, body: ReducedBody, about: tuple[float, ...] | None, stiffening: bool
) -> None:
    """Coriolis, centrifugal and geometric stiffness from the mean-axis moments, to round-off.

    At full order the axes turn with the held end; the axes of the body follow its mean motion. The
    rotation of the loads of the body compensates this difference.
    """
    point = lattice.points["left"] if about is None else np.array(about)
    M, G, K = full_rotating(lattice, point, stiffening)
    options: dict = {"held": ["left"], "spin": SPIN, "about": about, "stiffening": stiffening}
    f = np.array([0.0, 300.0, 900.0])
    response = frequency_response(body, f, **options)
    for k, w in enumerate(2 * np.pi * f):
        H = np.linalg.inv(K + 1j * w * G - w**2 * M)
        assert close(response.receptance("right")[k], H[:6, :6], 1e-8)
    n = len(K)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, K), -np.linalg.solve(M, G)]])
    expected = np.linalg.eigvals(A).imag
    expected = np.sort(expected[expected > 0])
    poles = linearize_body(body, **options).poles()
    assert len(poles) == n
    assert np.allclose(poles.imag, expected, rtol=1e-9)
    assert np.abs(poles.real).max() < 1e-9 * np.abs(poles).max()


def test_stiffening_and_loads_matter(body: ReducedBody) -> None:
    at_rest = linearize_body(body, held=["left"]).poles()[0].imag
    stiffened = linearize_body(body, held=["left"], spin=SPIN).poles()[0].imag
    unstiffened = linearize_body(body, held=["left"], spin=SPIN, stiffening=False).poles()[0].imag
    far_axis = linearize_body(body, held=["left"], spin=SPIN, about=(-0.5, 0, 0)).poles()[0].imag
    assert unstiffened < at_rest and unstiffened < stiffened < far_axis


def test_small_motions_are_those_of_the_multibody_kernel(body: ReducedBody) -> None:
    """The response uses the exact tangent of the simulation in axes of the rotating body.

    A perturbation d, θ in body axes changes the velocity by ḋ + ω×d and the angular velocity by
    θ̇ + ω×θ; the accelerations follow by the same rule once more.
    """
    damped = body.with_damping(Rayleigh(mass=50.0, stiffness=1e-6))
    flexible = FlexibleBody("b", damped, damping_ratio=0.0)
    n, w = body.num_modes, skew(SPIN)
    left = body.interface("left").point
    q, v, a = np.zeros(7 + n), np.zeros(6 + n), np.zeros(6 + n)
    q[3] = 1.0
    v[:3], v[3:6], a[:3] = -w @ left, SPIN, -w @ w @ left  # about an axis through the left end
    S, second = body.first_moments[0], body.second_moments[0, 0]
    # force and moment at the held left end: ω̃ω̃ times ∫ρ (x−p)⊗(x−p)
    wrenches = np.zeros((2, 6))
    arm = S - body.total_mass * left
    inner = second - np.outer(left, S) - np.outer(arm, left)
    commutator = inner @ (w @ w) - (w @ w) @ inner
    wrenches[0] = [*(w @ w @ arm), commutator[1, 2], commutator[2, 0], commutator[0, 1]]
    residual, scale = np.zeros(6 + n), np.zeros(6 + n)
    state = BodyState(0.0, q, v, a, np.zeros(3), wrenches)
    flexible.residual(state, residual, scale)
    assert np.abs(residual[:6]).max() < 1e-9 * scale[:6].max()
    Kt, Ct, Mt = flexible.tangent(state)  # derivatives by positions, velocities and accelerations
    a_by_q, v_by_q = np.zeros((6 + n, 6 + n)), np.zeros((6 + n, 6 + n))
    v_by_q[:3, :3] = v_by_q[3:6, 3:6] = w
    a_by_q[:3, :3] = w @ w
    a_by_v = v_by_q.copy()
    a_by_v[:3, :3] = 2 * w
    K, C = Kt + Ct @ v_by_q + Mt @ a_by_q, Ct + Mt @ a_by_v
    system = linearize_body(damped, held=["left"], spin=SPIN)
    B = system.basis
    assert close(system.mass, B.T @ Mt @ B, 1e-12)
    assert close(system.damping + system.gyroscopic, B.T @ C @ B, 1e-11)
    difference = B.T @ K @ B - system.stiffness
    geometric = (
        system.stiffness
        - linearize_body(damped, held=["left"], spin=SPIN, stiffening=False).stiffness
    )
    assert np.abs(difference).max() < 1e-8 * np.abs(geometric).max()


def test_steady_response_of_a_simulation(body: ReducedBody) -> None:
    """The left end rotates at constant speed, and a harmonic force acts on the right end.

    After 13 periods with 10 % damping, the transient is exp(−2π·0.1·13/0.9) = 1e-4 of the response.
    With 150 steps per period the frequency has the error (ω dt)²/12 = 1.5e-4, and the amplitude
    near the resonance a similar one. The radial motion, which the Coriolis force causes, is 1/200
    of the tangential one. The response neglects the steady deformation, which adds 1e-5 of the
    tangential motion to the radial one.
    """
    speed, force = 350.0, 0.2
    left, right = (body.interface(name).point for name in ENDS)
    options: dict = {"held": ["left"], "spin": (0.0, 0.0, speed)}
    natural = np.abs(linearize_body(body, **options).poles()[0])
    damped = body.with_damping(Rayleigh(stiffness=2 * 0.1 / natural))
    w = 0.9 * natural
    frequency = w / (2 * np.pi)
    flexible = FlexibleBody("b", damped, damping_ratio=0.0)
    ground = Ground({"hub": Frame(left)})
    shake = FrameLoad(
        "shake",
        flexible.frame("right"),
        lambda t, _: (0.0, force * np.cos(w * t), 0.0),
        axes="frame",
    )
    system = System(
        [ground, flexible],
        [revolute("pivot", ground.frame("hub"), flexible.frame("left"))],
        drivers=[Driver("motor", "pivot", constant_speed(speed))],
        loads=[shake],
    )
    run = simulate(
        system,
        t_end=16 / frequency,
        dt=1 / (150 * frequency),
        method=GeneralizedAlpha.from_spectral_radius(0.95),
    )
    t = run.time[-451:]
    r = (run.sensor("b", "right") - left)[-451:]
    c, s = np.cos(speed * t), np.sin(speed * t)
    u = np.column_stack([c * r[:, 0] + s * r[:, 1], c * r[:, 1] - s * r[:, 0], r[:, 2]])
    parts = np.column_stack([np.ones_like(t), np.cos(w * t), np.sin(w * t)])
    fit = np.linalg.lstsq(parts, u, rcond=None)[0]
    response = (fit[1] - 1j * fit[2]) / force
    H = frequency_response(damped, frequency, inputs=["right"], outputs=["right"], **options)
    expected = H.receptance("right")[0, :3, 1]
    assert close(response, expected, 5e-4)
    assert close(response[:1], expected[:1], 5e-3)
    at_rest = frequency_response(damped, frequency, held=["left"]).receptance("right")[0, :3, 1]
    assert not close(at_rest[:1], response[:1], 0.5)


def test_a_frame_that_follows_the_rotation(lattice: Lattice, body: ReducedBody) -> None:
    """Without held interfaces only elastic coordinates remain; the axis has no effect."""
    system = linearize_body(body, spin=SPIN)
    assert system.mass.shape == (body.num_modes,) * 2 and system.stiffened
    E = lattice.T @ lattice.modes
    spin = np.kron(np.eye(len(lattice.x)), skew(SPIN))
    assert close(system.gyroscopic, 2 * E.T @ lattice.M @ spin @ E, 1e-10)
    assert close(system.gyroscopic.T, -system.gyroscopic, 1e-12)
    plain = linearize_body(body, spin=SPIN, stiffening=False)
    assert close(plain.stiffness, E.T @ (lattice.K + lattice.M @ spin @ spin) @ E, 1e-10)
    central, shifted = (
        frequency_response(body, [0.0, 500.0], spin=SPIN, about=p) for p in (None, (1, 2, 3))
    )
    assert np.array_equal(central.values, shifted.values)


# ---- what is refused ----------------------------------------------------------------------------
def test_bad_input(body: ReducedBody) -> None:
    def input_error(argument: str, *args: object, **options: object) -> InputError:
        with pytest.raises(InputError) as error:
            frequency_response(body, *(args or (100.0,)), **options)
        assert error.value.argument == argument
        return error.value

    input_error("frequencies", -1.0)
    input_error("frequencies", [1.0, np.nan])
    assert input_error("interface", held=["top"]).expected == "'left', 'right'"
    error = input_error("interface or point", inputs=["top"])
    assert error.expected == "'left', 'right', 'middle'"
    input_error("driven", held=["left"], driven=["left"])
    input_error("spin", driven=["left"], spin=SPIN)
    input_error("spin", spin=10.0)
    input_error("loss_factor", loss_factor=-0.1)
    input_error("outputs", outputs=["left", "left"])
    input_error("held", held=["left", "left"])
    for name, call in {
        "stiffening": lambda: frequency_response(
            body.replace(stiffening=None), 1.0, spin=SPIN, stiffening=True
        ),
        "held": lambda: frequency_response(body.truncated(3), 1.0, held=ENDS),
        "names": lambda: frequency_response(body.truncated(3), 1.0).dynamic_stiffness(*ENDS),
        "driven": lambda: frequency_response(body.truncated(3), 1.0, driven=ENDS),
    }.items():
        with pytest.raises(InputError) as exc_info:
            call()
        assert exc_info.value.argument == name
    assert list(exc_info.value.value) == list(ENDS)  # the error names the driven interfaces
    response = frequency_response(body, 100.0)
    with pytest.raises(InputError) as exc_info:
        response.between("left", "right fx")
    assert exc_info.value.argument == "output"
    assert str(exc_info.value.expected).startswith("'left ux', 'left uy'")
    with pytest.raises(InputError) as exc_info:
        response.between("left ux", "right fx", 3)
    assert exc_info.value.argument == "derivative"
