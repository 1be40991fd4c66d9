"""Periodic motions and their Floquet multipliers against long simulations and closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
from scipy.special import mathieu_a, mathieu_b

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import PeriodicError, periodic
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, FourStrokePressure, inline_engine
from tests.models.beams import slender_rod

Law = Callable[[float, float, float], float]


def oscillator(law: Law, mass: float = 1.0) -> mbd.System:
    """Return a mass on a rail with the force law(t, x, v) along it."""
    ground = mbd.Ground({"o": mbd.Frame()})
    block = mbd.RigidBody("block", mass, [0.01] * 3, frames={"o": mbd.Frame()})
    rail = mbd.prismatic("rail", ground.frame("o"), block.frame("o"))
    push = mbd.JointLoad("push", "rail", "displacement", law)
    return mbd.System([ground, block], [rail], loads=[push])


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])
def test_a_driven_linear_oscillator(seed: int) -> None:
    """The cycle is F/(k − mω² + icω), and the multipliers are exp(λT)."""
    rng = np.random.default_rng(seed)
    k, c, w = rng.uniform(20, 60), rng.uniform(0.01, 0.3), rng.uniform(3, 9)
    system = oscillator(lambda t, x, v: -k * x - c * v + 2.0 * np.cos(w * t))
    cycle = periodic(system, 2 * np.pi / w, dt=2 * np.pi / w / 2000)
    assert cycle.corrections <= 2
    x = cycle.harmonics(cycle.body("block").position[:, 2], 3)
    assert np.isclose(x[1], 2.0 / (k - w**2 + 1j * c * w), rtol=1e-4)
    assert np.abs(x[[0, 2, 3]]).max() < 1e-9
    poles = np.roots([1.0, c, k])
    exact = np.exp(poles * cycle.period)
    assert np.allclose(np.sort_complex(cycle.multipliers), np.sort_complex(exact), atol=1e-4)
    assert cycle.stability == "stable"
    assert np.isclose(cycle.exponents.real.max(), -c / 2, rtol=1e-2)


@pytest.mark.parametrize("delta", [0.1, 0.2, 0.3, 0.6, 0.95, 1.1, 2.2])
@pytest.mark.parametrize(
    "epsilon", [*(pytest.param(e, marks=pytest.mark.slow) for e in (0.1, 0.4)), 0.8]
)
def test_mathieu_chart(delta: float, epsilon: float) -> None:
    """The mass is unstable between the characteristic values a_k and b_k of Mathieu's equation."""
    system = oscillator(lambda t, x, v: -(delta + epsilon * np.cos(t)) * x)
    cycle = periodic(system, 2 * np.pi, dt=2 * np.pi / 1200)
    # ẍ + (a − 2q cos 2τ) x = 0 with t = 2τ; the sign of q only shifts the time
    a, q = 4 * delta, 2 * epsilon
    stable = any(mathieu_a(k, q) < a < mathieu_b(k + 1, q) for k in range(6))

    def rates(t: float, y: Any) -> list[float]:
        stiffness = delta + epsilon * np.cos(t)
        return [y[1], -stiffness * y[0], y[3], -stiffness * y[2]]

    exact = scipy.integrate.solve_ivp(
        rates, (0, 2 * np.pi), [1, 0, 0, 1], rtol=1e-11, atol=1e-13
    ).y[:, -1]
    reference = np.linalg.eigvals(exact.reshape(2, 2).T)
    assert np.isclose(np.abs(cycle.multipliers).max(), np.abs(reference).max(), rtol=2e-4)
    assert stable == (np.abs(reference).max() < 1 + 1e-8)


MASS, SOFT, STIFF = 2.0, 8e4, 8e4 * 1.2**2  # mass and both stiffnesses of a shaft


def two_stiffnesses(speed: float) -> mbd.System:
    """Return a disc on a shaft with two stiffnesses that turns in rigid bearings."""
    ground = mbd.Ground({"o": mbd.Frame()})
    hub = mbd.RigidBody("hub", 1.0, [0.01] * 3, frames={"o": mbd.Frame()})
    disc = mbd.RigidBody("disc", MASS, [0.01] * 3, frames={"o": mbd.Frame()})
    joints = [
        mbd.revolute("axle", ground.frame("o"), hub.frame("o")),
        mbd.planar("plane", hub.frame("o"), disc.frame("o")),
    ]
    stiffness = [SOFT, STIFF, 0, 0, 0, 1e3]
    shaft = mbd.Bushing("shaft", hub.frame("o"), disc.frame("o"), stiffness, [0, 0, 0, 0, 0, 3.0])
    drive = mbd.Driver("drive", "axle", mbd.constant_speed(speed))
    return mbd.System([ground, hub, disc], joints, drivers=[drive], loads=[shaft])


@pytest.mark.parametrize(
    "ratio", [0.98, 1.1, *(pytest.param(r, marks=pytest.mark.slow) for r in (0.5, 1.25))]
)
def test_shaft_with_two_stiffnesses(ratio: float) -> None:
    """Between √(k₁/m) and √(k₂/m) the shaft is unstable; its growth rate has a closed form."""
    speed = ratio * np.sqrt(SOFT / MASS)
    system = two_stiffnesses(speed)
    cycle = periodic(system, 2 * np.pi / speed, dt=2 * np.pi / speed / 600)
    soft, stiff = SOFT / MASS, STIFF / MASS
    poles = np.roots([1, 0, soft + stiff + 2 * speed**2, 0, (soft - speed**2) * (stiff - speed**2)])
    exact = float(np.exp(poles.real.max() * cycle.period))
    assert np.isclose(np.abs(cycle.multipliers).max(), max(exact, 1.0), rtol=1e-3)
    assert (exact > 1 + 1e-6) == (1.0 < ratio < 1.2)
    if exact > 1 + 1e-6:
        assert cycle.stability == "unstable"


def crank(speed: float = 200.0) -> mbd.System:
    """Return a one-cylinder engine with a flexible rod and gas pressure."""
    rod = slender_rod(length=0.3, side=0.012, young=7e10, density=2700.0, bending=2, axial=1)
    design = EngineDesign(crank_radius=0.04)
    length = mbd.mechanisms.rod_length(rod)
    pressure = FourStrokePressure(0.03, crank_radius=0.04, rod_length=length)
    return inline_engine(rod, design, speed=speed, pressure=pressure)


@pytest.mark.slow
def test_slider_crank_against_twenty_cycles() -> None:
    """The joint forces of the cycle equal those of the last of 20 simulated cycles to 1e-7."""
    speed, steps = 200.0, 300
    system, period = crank(speed=speed), 4 * np.pi / speed
    # the errors of the steps add up over the period; with 1e-11, the closure was 3e-11 at best
    cycle = periodic(system, period, dt=period / steps, closed=1e-11, tolerance=1e-13)
    assert cycle.corrections <= 5
    assert cycle.periods <= 10
    assert np.abs(cycle.multipliers).max() ** 20 < 1e-9  # of disturbances at the start
    run = mbd.simulate(system, t_end=20 * period, dt=period / steps, tolerance=1e-11)
    for joint in system.joints:
        last = run.joint(joint.name).force[-steps - 1 :]
        error = np.abs(cycle.joint(joint.name).force - last).max()
        assert error <= 1e-7 * np.abs(last).max()


def test_free_motion() -> None:
    """A disc that may rotate freely has the multiplier 1, and the error names it."""
    ground = mbd.Ground({"o": mbd.Frame()})
    disc = mbd.RigidBody("disc", 1.0, [0.01] * 3, frames={"o": mbd.Frame()})
    axle = mbd.cylindrical("axle", ground.frame("o"), disc.frame("o"))
    twist = mbd.JointLoad("twist", "axle", "rotation", lambda t, x, v: np.cos(9 * t) - x - v)
    system = mbd.System([ground, disc], [axle], loads=[twist])
    with pytest.raises(PeriodicError, match=r"multiplier is 1.*'disc', displacement along z"):
        periodic(system, 2 * np.pi / 9, dt=0.01)


def test_no_common_period() -> None:
    ground = mbd.Ground({"a": mbd.Frame(), "b": mbd.Frame((1, 0, 0))})
    discs = [mbd.RigidBody(n, 1.0, [0.01] * 3, frames={"o": mbd.Frame()}) for n in "ab"]
    discs[1] = mbd.RigidBody("b", 1.0, [0.01] * 3, frames={"o": mbd.Frame()}, position=(1, 0, 0))
    axles = [mbd.revolute(f"axle {d.name}", ground.frame(d.name), d.frame("o")) for d in discs]

    def driven(ratio: float) -> mbd.System:
        speeds = {"a": 10.0, "b": 10.0 * ratio}
        drives = [
            mbd.Driver(f"drive {n}", f"axle {n}", mbd.constant_speed(w)) for n, w in speeds.items()
        ]
        return mbd.System([ground, *discs], axles, drivers=drives)

    with pytest.raises(InputError, match=r"'drive a' and 'drive b' are incommensurable"):
        periodic(driven(np.sqrt(2)), 2 * np.pi / 10, dt=0.01)
    with pytest.raises(InputError, match=r"repeat after 1\.25663706 s"):
        periodic(driven(1.5), 2 * np.pi / 10, dt=0.01)
    system = oscillator(lambda t, x, v: -x - v + np.cos(t) + np.cos(1.5 * t))
    with pytest.raises(InputError, match="load 'push' is different after the period"):
        periodic(system, 2 * np.pi, dt=0.01)
    with pytest.raises(InputError, match="depends on time"):
        periodic(system, 4 * np.pi, dt=0.01, find_period=True)


def van_der_pol(mu: float) -> tuple[float, Any]:
    """Return period and multipliers of the cycle of ẍ = μ(1 − x²)ẋ − x, integrated by SciPy."""

    def rates(t: float, y: Any) -> list[float]:
        # y contains x, v and the derivatives of both by their initial values
        J = np.array([[0, 1], [-2 * mu * y[0] * y[1] - 1, mu * (1 - y[0] ** 2)]])
        return [
            y[1],
            mu * (1 - y[0] ** 2) * y[1] - y[0],
            *(J @ np.asarray(y[2:]).reshape(2, 2)).ravel(),
        ]

    def upward_crossing(t: float, y: Any) -> float:
        """Return x, whose zeros SciPy finds, but 1 at t = 0, so that the start is no crossing."""
        return float(y[0]) if t > 1e-9 else 1.0

    upward_crossing.direction = 1.0  # type: ignore[attr-defined]
    tight = {"rtol": 1e-11, "atol": 1e-12}
    settled = scipy.integrate.solve_ivp(
        lambda t, y: rates(t, [*y, 1, 0, 0, 1])[:2],
        (0, 60),
        [1, 1],
        events=upward_crossing,
        **tight,
    )
    period = float(np.diff(settled.t_events[0])[-1])
    initial = [*settled.y_events[0][-1], 1, 0, 0, 1]
    y = scipy.integrate.solve_ivp(rates, (0, period), initial, **tight).y[2:, -1]
    return period, np.sort(np.abs(np.linalg.eigvals(y.reshape(2, 2))))


def van_der_pol_cycle(mu: float, dt: float) -> Any:
    """Return the cycle of the same oscillator from `periodic`."""
    system = oscillator(lambda t, x, v: mu * (1 - x * x) * v - x)
    start = mbd.simulate(system, t_end=20.0, dt=0.02, start={"rail": 1.0})
    return periodic(system, 7.0, dt=dt, start=start, find_period=True, closed=1e-7)


@pytest.mark.slow
def test_van_der_pol() -> None:
    """The period and the multiplier of the cycle agree with an integration by SciPy."""
    cycle, (period, exact) = van_der_pol_cycle(1.5, 0.002), van_der_pol(1.5)
    assert np.isclose(cycle.period, period, rtol=1e-5)
    assert np.allclose(np.sort(np.abs(cycle.multipliers)), exact, atol=1e-4)
    assert cycle.stability == "stable"


def test_far_start() -> None:
    """The error states how close the iteration came to a cycle, and names the least closed body."""
    system = oscillator(lambda t, x, v: -x - 5 * x**3 - 0.05 * v + 3 * np.cos(1.2 * t))
    period = 2 * np.pi / 1.2
    with pytest.raises(PeriodicError, match=r"after 1 corrections.*'block'") as error:
        periodic(system, period, dt=period / 200, start={"rail": 30.0}, max_corrections=1)
    assert 1e-6 < error.value.closure < 10.0
    assert periodic(system, period, dt=period / 200).closure < 1e-8


def test_repeated_periods() -> None:
    """Several periods form a continuous run with full revolutions of the crank."""
    system, period = crank(), 4 * np.pi / 200.0
    cycle = periodic(system, period, dt=period / 300)
    assert cycle.corrections > 0  # the forces at the start are those after the last correction
    for joint in system.joints:
        force = cycle.joint(joint.name).force
        assert np.allclose(force[0], force[-1], rtol=0, atol=1e-7 * np.abs(force).max())
    run = cycle.repeated(3)
    assert len(run) == 901
    assert np.isclose(run.joint("drive").rotation[-1] - run.joint("drive").rotation[0], 12 * np.pi)
    force = run.joint("crank pin 1").force
    assert np.allclose(force[:301], force[600:], atol=1e-6 * np.abs(force).max())


CLEARANCE = 5e-5


def journal(speed: float) -> mbd.System:
    """Return half of a rigid rotor in a short bearing under its weight; it only translates."""
    along_x = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    along_y = np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])
    ground = mbd.Ground({"o": mbd.Frame(), "x": mbd.Frame((0, 0, 0), along_x)})
    slides = {"x": mbd.Frame((0, 0, 0), along_x), "y": mbd.Frame((0, 0, 0), along_y)}
    slide = mbd.RigidBody("slide", 1e-3, [1e-6] * 3, frames=slides)
    frames = {"o": mbd.Frame(), "y": mbd.Frame((0, 0, 0), along_y)}
    body = mbd.RigidBody("rotor", 5.0, [0.01] * 3, frames=frames)
    joints = [
        mbd.prismatic("across", ground.frame("x"), slide.frame("x")),
        mbd.prismatic("up", slide.frame("y"), body.frame("y")),
    ]
    film = mbd.bearings.ShortBearing(
        "film", ground.frame("o"), body.frame("o"), 0.02, 0.012, CLEARANCE, 0.02,
        journal_speed=speed,
    )  # fmt: skip
    gravity = (0, -mbd.STANDARD_GRAVITY, 0)
    return mbd.System([ground, slide, body], joints, loads=[film], gravity=gravity)


def growth(speed: float) -> complex:
    """Return the least damped pole of the rotor at rest in its film."""
    system = journal(speed)
    poles = mbd.linearize(system, mbd.equilibrium(system)).poles
    return complex(max(poles, key=lambda pole: pole.real))


@pytest.mark.slow
def test_oil_whip_above_its_threshold() -> None:
    """The limit cycle at 1.05 of the threshold speed equals the end of a long simulation."""
    threshold = scipy.optimize.brentq(lambda speed: growth(speed).real, 1000.0, 1500.0, xtol=1e-3)
    pole, system = growth(threshold), journal(1.05 * threshold)
    guess = 2 * np.pi / abs(pole.imag)
    dt = guess / 200
    run = mbd.simulate(system, t_end=40 * guess, dt=dt, start={"across": 0.01})
    cycle = periodic(
        system, guess, dt=dt, start=run, find_period=True, closed=1e-10, tolerance=1e-11
    )
    assert cycle.stability == "stable"
    assert np.abs(cycle.multipliers - 1).min() < 1e-6
    far = mbd.simulate(  # 70 more whirls
        system, t_end=run.time[-1] + 70 * cycle.period, dt=cycle.period / 200,
        start=run.final_state, tolerance=1e-11,
    )  # fmt: skip
    orbit, simulated = cycle.body("rotor").position[:, :2], far.body("rotor").position[-201:, :2]
    # Both runs sample one orbit at different times, so that only amplitudes can be compared.
    for axis in (0, 1):
        expected, computed = (np.abs(np.fft.rfft(x[:-1, axis]))[:4] for x in (orbit, simulated))
        assert np.abs(expected - computed).max() < 1e-6 * expected.max()
