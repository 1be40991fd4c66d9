"""Torsional vibration of the nine-mass model of a six-cylinder engine, and of small chains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.mechanisms import HALF_ORDERS, TorsionalChain, torque_orders
from tests.models import mwm_engine as mwm

CYCLE = 4 * np.pi * np.arange(1440) / 1440  # crank angles of two turns, rad


def test_frequencies_of_the_nine_mass_model() -> None:
    chain = mwm.chain()
    np.testing.assert_allclose(chain.frequencies[1:], mwm.FREQUENCIES, rtol=1e-6)
    assert chain.critical_speed(6.0) / mwm.RPM == pytest.approx(2165.84, rel=1e-5)


def test_frequencies_of_the_mechanism() -> None:
    """The linearized mechanism has the same frequencies, at rest and while it rotates."""
    free = TorsionalChain(mwm.INERTIAS, mwm.STIFFNESSES)
    system = free.system(0.0)
    result = mbd.linearize(system, mbd.equilibrium(system))
    np.testing.assert_allclose(result.frequencies[1:], mwm.FREQUENCIES, rtol=1e-6)
    state = mbd.dynamics.consistent_state(free.system(200.0))
    steady = mbd.linearize(free.system(200.0), state)
    np.testing.assert_allclose(steady.frequencies[1:], mwm.FREQUENCIES, rtol=1e-6)


@pytest.mark.parametrize("rpm", mwm.PEAKS)
def test_orders_of_the_forced_response(rpm: float) -> None:
    expected, orders = mwm.reference(rpm, 16384)
    response = mwm.chain().response(rpm * mwm.RPM, mwm.series_torques())
    np.testing.assert_array_equal(response.orders, orders)
    scale = np.abs(expected).max(axis=0)
    np.testing.assert_allclose(response.torque / scale, expected / scale, rtol=0, atol=2e-4)
    history = response.torque_at(CYCLE)[:, 7]  # shaft 8
    peak, sixth = mwm.PEAKS[rpm]  # published values
    assert np.abs(history).max() == pytest.approx(peak, rel=1e-3)
    assert abs(response.torque[11, 7]) == pytest.approx(sixth, rel=1e-3)  # order 6


def test_speed_of_the_largest_order() -> None:
    chain, torques = mwm.chain(), mwm.series_torques()
    speeds = np.arange(2155.0, 2175.0, 1.0)
    sixth = [abs(chain.response(s * mwm.RPM, torques, [6.0]).torque[0, 7]) for s in speeds]
    assert abs(speeds[int(np.argmax(sixth))] - 2164.0) <= 1.0
    assert max(sixth) == pytest.approx(6261.6, rel=1e-3)


def test_torques_with_exact_kinematics() -> None:
    """Only order 2 differs, where the series of the reference omits terms of size λ³/4."""
    expected, _ = mwm.reference(2165.8)
    response = mwm.chain().response(2165.8 * mwm.RPM, mwm.torques())
    # Order 6 in shaft 8
    assert abs(response.torque[11, 7]) == pytest.approx(abs(expected[11, 7]), rel=1e-3)
    mass = mwm.torques()[3]
    angle = np.linspace(-20.0, 20.0, 77)
    for speed in (100.0, 230.0):
        one_by_one = [mass.at(a, speed) for a in angle.tolist()]
        np.testing.assert_allclose(one_by_one, mass(angle, speed), rtol=1e-9, atol=1e-8)


def test_power_of_the_oscillating_mass() -> None:
    """The torque of the mass alone is −dE/dφ of its kinetic energy at constant speed."""
    crank = mbd.mechanisms.SliderCrank(0.05, 0.16, pin_offset=0.004)
    cylinder = mbd.mechanisms.CylinderTorque(lambda a: 0.0 * a, crank, 0.08, 0.7, 1.3, ambient=0.0)
    angle, h, speed = np.linspace(0.0, 12.0, 50), 1e-5, 250.0
    energies = [
        0.5 * 0.7 * crank.motion(angle + x - 1.3 + crank.top_angle, speed).slider_velocity ** 2
        for x in (-h, h)
    ]
    slope = (energies[1] - energies[0]) / (2 * h)
    np.testing.assert_allclose(cylinder(angle, speed), -slope, rtol=0, atol=1e-6 * slope.max())


def harmonic_amplitudes(chain: TorsionalChain, speed: float, order: float) -> np.ndarray:
    """Return the twists of the shafts of the linearized mechanism at one order."""
    frequency = order * speed / (2 * np.pi)
    torques = mwm.series_torques()
    # Torques of zero, so that the system has inputs at these discs
    quiet = {disc: (lambda angle, speed: 0.0 * np.asarray(angle)) for disc in torques}
    system = chain.system(0.0, quiet, loss_frequency=frequency)
    result = mbd.linearize(
        system,
        mbd.equilibrium(system),
        inputs=[f"torque {disc}" for disc in torques],
        outputs=[f"bearing {k + 1}.rotation" for k in range(chain.count)],
    )
    force = [torque_orders(torque, speed, [order])[0] for torque in torques.values()]
    rotations = result.response([frequency])[0] @ force
    return np.diff(rotations)


@pytest.mark.parametrize("order", [1.5, 6.0, 12.0])
def test_harmonic_solution_of_the_mechanism(order: float) -> None:
    """The mechanism with the viscous damping of one order has the response with a loss factor."""
    chain, speed = mwm.chain(), 2150.0 * mwm.RPM
    expected, orders = mwm.reference(2150.0, 16384)
    twist = harmonic_amplitudes(chain, speed, order)
    exact = expected[list(orders).index(order)]
    np.testing.assert_allclose(twist * mwm.STIFFNESSES, exact, rtol=0, atol=1e-3 * abs(exact).max())


def truncated(torques: dict[int, Any], speed: float) -> dict[int, Any]:
    """Return the torques with 24 half orders only."""
    orders = np.array(HALF_ORDERS)

    def series(amplitudes: np.ndarray) -> Any:
        return lambda angle, speed: np.real(
            np.exp(1j * np.multiply.outer(angle, orders)) @ amplitudes
        )

    return {disc: series(torque_orders(torque, speed)) for disc, torque in torques.items()}


def time_domain(rpm: float, dt: float, cycles: int) -> np.ndarray:
    """Return the torque in the eighth shaft over the last cycle of a simulation."""
    speed = rpm * mwm.RPM
    system = mwm.chain().system(speed, truncated(mwm.series_torques(), speed))
    cycle = 4 * np.pi / speed
    run = mbd.simulate(system, t_end=cycles * cycle, dt=dt)
    twist = run.joint("bearing 9").rotation - run.joint("bearing 8").rotation
    return np.asarray(mwm.STIFFNESSES[7] * twist[run.time > (cycles - 1) * cycle])


def viscous_peak(rpm: float) -> float:
    """Return the peak in the eighth shaft with viscous damping equal at the first frequency."""
    lines, orders = mwm.reference(rpm, 4096, mwm.FREQUENCIES[0])
    return float(np.abs(np.real(np.exp(1j * np.outer(CYCLE, orders)) @ lines[:, 7])).max())


def test_viscous_damping_instead_of_the_loss_factor() -> None:
    """Peaks change by less than 1 %, and by 1.4 % at 1000 rpm, where no order dominates."""
    errors = {rpm: viscous_peak(rpm) / peak - 1 for rpm, (peak, _) in mwm.PEAKS.items()}
    assert errors.pop(1000.0) == pytest.approx(0.014, abs=1e-3)
    assert max(np.abs(list(errors.values()))) < 1e-2


@pytest.mark.slow
def test_time_domain() -> None:
    """The mechanism in the time domain has the peaks of the frequency domain with its damping."""
    rpm = 2150.0
    cycles = int(np.ceil(0.32 * rpm / 120))  # 0.32 s: the first mode decays by more than exp(-7)
    history = time_domain(rpm, 5e-5, cycles)
    assert np.abs(history).max() == pytest.approx(viscous_peak(rpm), rel=5e-3)


def test_drive_keeps_the_speed() -> None:
    """Under the gas torque, the mean speed returns with a time constant of 0.2 s."""
    speed, torques = 1700 * mwm.RPM, mwm.torques()
    cycle = 4 * np.pi / speed
    run = mbd.simulate(mwm.chain().system(speed, torques), t_end=10 * cycle, dt=cycle / 160)
    rates = run.body("disc 9").omega[:-1, 2].reshape(10, 160).mean(axis=1)
    assert abs(rates[-1] - speed) < 5e-4 * speed
    assert abs(rates[-1] - speed) < 0.1 * abs(rates[0] - speed)
    still = mbd.simulate(mwm.chain().system(speed), t_end=0.01, dt=1e-3)
    np.testing.assert_allclose(still.joint("bearing 4").rotation_rate, speed, rtol=1e-9)


def ramp(start: float, end: float, duration: float) -> Any:
    """Return the motion of a run-up with a constant acceleration; speeds in rad/s."""
    rate = (end - start) / duration
    return lambda t: (start * t + 0.5 * rate * t * t, start + rate * t, rate)


def damped(inertia: float = 0.06, ratio: float = 0.2) -> TorsionalChain:
    """Return the nine-mass model with a damper on the pulley, tuned to the first mode."""
    chain = mwm.chain()
    w = 2 * np.pi * chain.frequencies[1] * 0.8  # below the first mode
    return chain.with_damper(1, inertia, inertia * w * w, 2 * ratio * inertia * w)


def run_up(chain: TorsionalChain) -> Any:
    """Return the waterfall of the torque in the eighth shaft from 1950 to 2400 rpm."""
    motion = ramp(1950 * mwm.RPM, 2400 * mwm.RPM, 1.2)
    run = mbd.simulate(chain.system(motion, mwm.torques()), t_end=1.2, dt=2e-4)
    twist = run.joint("bearing 9").rotation - run.joint("bearing 8").rotation
    angle = run.joint("bearing 9").rotation
    torque = mwm.STIFFNESSES[7] * twist
    return mbd.analyses.waterfall(run.time, torque, angle, axis="order", length=8.0)


@pytest.mark.slow
def test_waterfall_of_a_run_up_with_and_without_damper() -> None:
    plain = run_up(mwm.chain())
    sixth = plain.cut(6.0)
    k = int(np.nanargmax(sixth))
    assert plain.speed[k] / mwm.RPM == pytest.approx(2165.0, abs=30.0)
    stationary = abs(mwm.chain().response(plain.speed[k], mwm.torques()).torque[11, 7])
    # the amplitude is a mean over 8 turns, in which the speed passes through the resonance
    assert 0.8 * stationary < sixth[k] < 1.02 * stationary
    with_damper = run_up(damped()).cut(6.0)
    assert np.nanmax(with_damper) < 0.5 * sixth[k]


def test_damper_lowers_the_resonance() -> None:
    plain, damper = mwm.chain(), damped()
    speeds = np.arange(1500.0, 2600.0, 20.0) * mwm.RPM
    torques = mwm.series_torques()
    peaks = [
        max(abs(chain.response(s, torques, [6.0]).torque[0, 7]) for s in speeds)
        for chain in (plain, damper)
    ]
    assert peaks[1] < 0.5 * peaks[0]
    assert damper.count == 10 and damper.frequencies[2] > plain.frequencies[1]


def test_fixed_points_of_a_damper() -> None:
    """Den Hartog: with a damper of the optimal frequency, both fixed points have equal responses.

    The disc of 10⁹ kg m² is the ground; μ is the ratio of inertias. The responses at the fixed
    points are √(1 + 2/μ) times the static one.
    """
    mu, J, k = 0.25, 0.8, 3e5
    w = np.sqrt(k / J) / (1 + mu)
    squares = (1 + np.array([-1, 1]) * np.sqrt(mu / (2 + mu))) / (1 + mu) * k / J
    base = TorsionalChain([1e9, J], [k])
    for c in (0.0, 10.0, 300.0):
        chain = base.with_damper(2, mu * J, mu * J * w * w, c)
        for speed in np.sqrt(squares):
            response = chain.response(speed, {2: lambda a, s: 7.0 * np.cos(a)}, [1.0])
            static = 7.0 / k
            assert abs(response.twist[0, 0]) == pytest.approx(
                static * np.sqrt(1 + 2 / mu), rel=1e-6
            )


def test_a_branched_chain() -> None:
    """Three discs J at a hub I: the squares of the frequencies are k/J twice, and k (1/J + 3/I)."""
    chain = TorsionalChain([5.0, 2.0, 2.0, 2.0], [8e3] * 3, shafts=[[1, 2], [1, 3], [1, 4]])
    squares = (2 * np.pi * chain.frequencies) ** 2
    np.testing.assert_allclose(squares, [0, 4e3, 4e3, 8e3 * (1 / 2 + 3 / 5)], rtol=1e-9, atol=1e-6)
    system = chain.system(0.0)
    result = mbd.linearize(system, mbd.equilibrium(system))
    np.testing.assert_allclose(result.frequencies[1:], chain.frequencies[1:], rtol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"inertias": [1.0]}, "inertias"),
        ({"inertias": [1.0, -1.0, 1.0]}, "inertias"),
        ({"stiffnesses": [1.0]}, "stiffnesses"),
        ({"stiffnesses": [1.0, 0.0]}, "stiffnesses"),
        ({"damping": [1.0, 0.0]}, "damping"),
        ({"damping": [1.0, 0.0, -1.0]}, "damping"),
        ({"loss_factor": -0.1}, "loss_factor"),
        ({"loss_factor": [0.1]}, "loss_factor"),
        ({"shafts": [[1, 2], [1, 2]]}, "shafts"),
        ({"shafts": [[1, 2], [2, 4]]}, "shafts"),
        ({"shafts": [[0, 1], [1, 2]]}, "shafts"),
    ],
)
def test_invalid_chains(arguments: dict[str, Any], argument: str) -> None:
    with pytest.raises(InputError) as error:
        TorsionalChain(**{"inertias": [1.0, 1.0, 1.0], "stiffnesses": [1.0, 1.0], **arguments})
    assert error.value.argument == argument


def test_invalid_responses() -> None:
    chain = TorsionalChain([1.0, 1.0], [1.0])
    for orders in ([0.0], [0.3], [-1.0]):
        with pytest.raises(InputError) as error:
            chain.response(1.0, {}, orders)
        assert error.value.argument == "orders"
    with pytest.raises(InputError, match="number of a disc"):
        chain.response(1.0, {3: lambda a, s: a})
    with pytest.raises(InputError):
        chain.system(1.0, {1: "torque"})  # type: ignore[dict-item]
    with pytest.raises(InputError):
        chain.with_damper(3, 1.0, 1.0)
