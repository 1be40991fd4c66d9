"""Contacts between shapes: derivatives, Hertz's impact, restitution, energy, friction, steps."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import AccuracyWarning, InputError
from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.mechanism.force_elements import FramePair
from tests.kernels.test_floating_frame import differences
from tests.mechanism.contact.test_laws import RESTITUTION
from tests.mechanism.test_force_elements import moved

A, B = ("one", "a"), ("two", "b")
UP = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # axes with z along y of the ground
LAW = mbd.ContactLaw(1e3, 1.5, 0.3, 0.4, 0.7)
RADIUS = 0.05

# Contacts, and relative positions of the frames in which they touch
CONTACTS = {
    "plane": (mbd.mechanism.plane_contact("c", A, B, 0.3, LAW), (0, 0, 0.2)),
    "spheres": (mbd.mechanism.sphere_contact("c", A, B, (0.3, 0.4), LAW), (0.3, 0.2, 0.1)),
    "socket": (mbd.mechanism.sphere_contact("c", A, B, (-0.5, 0.4), LAW), (0.3, 0.2, 0.1)),
    "bore": (
        mbd.mechanism.bore_contact(
            "c", A, B, clearance=0.1, radius=0.3, law=LAW, length=0.5, slices=3
        ),
        (0.3, 0.2, 0.1),
    ),
    "guide x": (
        mbd.mechanism.guide_contact("c", A, B, clearance=0.01, length=0.5, height=0.3, law=LAW),
        (0.1, 0.2, 0.1),
    ),
    "guide y": (
        mbd.mechanism.guide_contact(
            "c", A, B, clearance=0.01, length=0.5, height=0.3, law=LAW, direction="y"
        ),
        (0.1, 0.2, 0.1),
    ),
}


def touching_pair(x: tuple, seed: int) -> FramePair:
    """Return two frames with the relative position x and a relative rotation of about 0.3 rad."""
    rng = np.random.default_rng(seed)
    p1, u1, u2 = rng.normal(size=3), rng.normal(size=6), rng.normal(size=6)
    Q1 = exp_rotation(rng.normal(size=3))
    rotation = exp_rotation(0.2 * rng.normal(size=3))
    return FramePair(p1, Q1, u1, p1 + Q1 @ np.array(x), Q1 @ rotation, u2)


@pytest.mark.parametrize("name", CONTACTS)
def test_derivatives_gap_rates_energy_and_balance(name: str) -> None:
    contact, x = CONTACTS[name]
    for seed in range(3):
        pair = touching_pair(x, seed)
        assert (contact.states(pair)[:, 0] < 0).any()  # columns: gap, its rate, force
        D, E = contact.derivatives(pair)
        by_pose = differences(lambda d, p=pair: contact.wrenches(moved(p, d)), 12)
        by_speed = differences(
            lambda d, p=pair: contact.wrenches(p._replace(u1=p.u1 + d[:6], u2=p.u2 + d[6:])), 12
        )
        assert np.allclose(D, by_pose, atol=1e-8 * np.abs(D).max())
        assert np.allclose(E, by_speed, atol=1e-8 * np.abs(E).max())
        gaps = differences(lambda d, p=pair: contact.states(moved(p, d))[:, 0], 12)
        rates = gaps @ np.concatenate([pair.u1, pair.u2])
        assert np.allclose(contact.states(pair)[:, 1], rates, atol=1e-8)
        wrench = contact.wrenches(pair)
        assert np.allclose(wrench[:3], -wrench[6:9], atol=1e-12)
        moments = wrench[3:6] + wrench[9:] + np.cross(pair.p1, wrench[:3])
        assert np.allclose(moments + np.cross(pair.p2, wrench[6:9]), 0, atol=1e-11)
        still = pair._replace(u1=np.zeros(6), u2=np.zeros(6))
        slope = differences(lambda d, p=still: np.array(contact.energy(moved(p, d))), 12)
        assert np.allclose(contact.wrenches(still), -slope, atol=1e-8 * np.abs(slope).max())


def test_no_force_without_contact_and_at_the_centre() -> None:
    free = mbd.mechanism.bore_contact("c", A, B, clearance=0.1, radius=0.3, law=LAW)
    zero = np.zeros(3)
    pair = FramePair(zero, np.eye(3), np.ones(6), zero, np.eye(3), -np.ones(6))
    assert not free.wrenches(pair).any()
    assert not np.any(free.derivatives(pair))
    assert free.states(pair).tolist() == [[0.1, 0.0, 0.0]]


def drop(law: mbd.ContactLaw, mass: float, speed: float = 1.0, **options) -> mbd.System:
    """Return a ball above a floor; by default it touches the floor at once."""
    ground = mbd.Ground({"floor": mbd.Frame(axes=UP)})
    position = (0, RADIUS + options.pop("height", 0.0), 0)
    ball = mbd.RigidBody(
        "ball",
        mass,
        [0.4 * mass * RADIUS**2] * 3,
        frames={"centre": mbd.Frame()},
        position=position,
        velocity=options.pop("velocity", (0, -speed, 0)),
    )
    ends = ground.frame("floor"), ball.frame("centre")
    contact = mbd.mechanism.plane_contact("floor", *ends, RADIUS, law)
    return mbd.System([ground, ball], loads=[contact], **options)


def test_elastic_impact_of_hertz() -> None:
    K, mass, speed = mbd.mechanism.hertz_stiffness(RADIUS, None, mbd.STEEL), 4.0, 0.5
    depth = (5 * mass * speed**2 / (4 * K)) ** 0.4
    # Duration: 2 depth/speed times ∫ dx/√(1 − x^(5/2)) from 0 to 1
    period = 2.9432751843 * depth / speed
    run = mbd.simulate(drop(mbd.ContactLaw(K), mass, speed), t_end=1.2 * period, dt=period / 300)
    history = run.element("floor")
    (impact,) = history.impacts
    assert impact.depth == pytest.approx(depth, rel=1e-4)
    assert impact.peak_force == pytest.approx(K * depth**1.5, rel=1e-4)
    assert impact.end - impact.start == pytest.approx(period, rel=1e-4)
    assert run.body("ball").velocity[-1, 1] == pytest.approx(speed, rel=1e-6)
    assert abs(impact.loss) < 1e-6 * mass * speed**2
    total = run.energies().total
    assert np.ptp(total) < 1e-3 * total[0]
    assert total[-1] == pytest.approx(total[0], rel=1e-6)


@pytest.mark.parametrize(
    ("K", "n", "mass", "case"),
    [
        pytest.param(1e9, 1.5, 2.0, ("Flores", 0.7), marks=pytest.mark.slow),
        (1e5, 1.0, 0.3, ("Flores", 0.5)),
        (1e7, 2.2, 30.0, ("Hunt-Crossley", 0.5)),
        pytest.param(1e6, 1.5, 1.0, ("Lankarani-Nikravesh", 0.9), marks=pytest.mark.slow),
        (1e8, 3.0, 5.0, ("Lankarani-Nikravesh", 0.5)),
    ],
)
def test_restitution_for_every_stiffness_exponent_and_mass(K, n, mass, case) -> None:
    """The rebound is that of the law, and the energy balance of the impact is exact to 1e-6."""
    model, nominal = case
    law = mbd.ContactLaw(K, n, mbd.mechanism.contact_damping(nominal, 2.0, model))
    # The depth of an impact with 2 m/s without damping
    depth = ((n + 1) * mass * 4.0 / (2 * K)) ** (1 / (n + 1))
    run = mbd.simulate(drop(law, mass, 2.0), t_end=4.5 * depth, dt=depth / 500)
    e = RESTITUTION[case]
    assert run.body("ball").velocity[-1, 1] / 2.0 == pytest.approx(e, abs=1e-5)
    (impact,) = run.element("floor").impacts
    assert impact.speed == pytest.approx(2.0)
    assert impact.loss == pytest.approx(0.5 * mass * 4.0 * (1 - e * e), rel=1e-4)
    kinetic = run.energies().kinetic
    assert kinetic[0] - kinetic[-1] == pytest.approx(impact.loss, abs=1e-6 * kinetic[0])


def test_resting_ball_stays_at_rest() -> None:
    K, mass = 1e8, 2.0
    sag = (mass * 9.81 / K) ** (2 / 3)
    law = mbd.ContactLaw(K, damping=0.5, friction=0.3)
    system = drop(law, mass, 0.0, height=-sag, gravity=(0, -9.81, 0))
    run = mbd.simulate(system, t_end=0.2, dt=1e-3)
    assert np.abs(run.body("ball").position[:, 1] - RADIUS + sag).max() < 1e-9 * sag
    assert np.abs(run.body("ball").velocity).max() < 1e-12
    (impact,) = run.element("floor").impacts
    assert math.isnan(impact.end)


def test_bouncing_ball() -> None:
    """The times of touch follow from free fall and from the coefficient of restitution."""
    g, law = 9.81, mbd.ContactLaw(1e13, damping=mbd.mechanism.contact_damping(0.7, 4.4))
    system = drop(law, 1.0, 0.0, height=1.0, gravity=(0, -g, 0))
    run = mbd.simulate(system, t_end=1.8, dt=mbd.Adaptive(1e-6))
    impacts = run.element("floor").impacts
    assert len(impacts) == 3
    start, speed = math.sqrt(2 / g), math.sqrt(2 * g)
    assert start == pytest.approx(0.4515236410)
    for impact in impacts:
        assert impact.start == pytest.approx(start, abs=1e-4)
        assert impact.speed == pytest.approx(speed, rel=2e-4)
        rebound = speed * law.restitution(speed)
        start, speed = impact.end + 2 * rebound / g, rebound
    assert np.abs(run.element("floor").gap[1:, 0]).min() < 1e-8  # a step ends at the touch


def test_friction_stops_sliding_and_starts_rolling() -> None:
    """A sliding ball rolls after t = 2 v/(7 μ g), with the speed 5 v/7."""
    mass, g, mu, K = 2.0, 9.81, 0.2, 1e7
    sag = (mass * g / K) ** (2 / 3)
    law = mbd.ContactLaw(K, damping=0.5, friction=mu, friction_speed=1e-3)
    options = {"height": -sag, "velocity": (1.0, 0, 0), "gravity": (0, -g, 0)}
    run = mbd.simulate(drop(law, mass, **options), t_end=0.3, dt=5e-4)
    speed = run.body("ball").velocity[:, 0]
    half = int(np.searchsorted(run.time, 1 / (7 * mu * g)))
    assert speed[half] == pytest.approx(1 - mu * g * run.time[half], rel=1e-3)
    assert speed[-1] == pytest.approx(5 / 7, rel=1e-3)
    assert run.body("ball").omega[-1, 2] * RADIUS == pytest.approx(-5 / 7, rel=1e-3)
    loss = run.element("floor").dissipated[-1]
    assert loss == pytest.approx(0.5 * mass * (1 - 1.4 * 25 / 49), rel=1e-3)


def test_large_steps_give_a_warning() -> None:
    law = mbd.ContactLaw(1e8, damping=0.1)
    period = 2.94 * (5 * 1.0 / (4 * 1e8)) ** 0.4  # duration of an impact at 1 m/s
    system = drop(law, 1.0, height=0.001)
    with pytest.warns(AccuracyWarning, match="contact 'floor': an impact .* steps") as records:
        mbd.simulate(system, t_end=0.003, dt=period / 8)
    assert any(r.message.value == pytest.approx(1 / 8, rel=0.3) for r in records)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mbd.simulate(system, t_end=0.003, dt=period / 40)
        mbd.simulate(system, t_end=0.003, dt="adaptive")


def test_checkpoint_of_adaptive_steps_within_a_contact(tmp_path) -> None:
    system = drop(mbd.ContactLaw(1e8, damping=0.1), 1.0, height=0.001)
    path = tmp_path / "run.npz"
    run = mbd.simulate(system, t_end=0.003, dt="adaptive", path=path)
    resumed = mbd.resume(path, system)
    assert (resumed.q == run.q).all()
    simulator = mbd.Simulator(system, dt=mbd.Adaptive(), t_end=0.003)
    for _ in range(60):
        simulator.step()
    before, states = simulator.save(), [simulator.step().q for _ in range(20)]
    simulator.restore(before)
    assert np.array_equal(states, [simulator.step().q for _ in range(20)])


def test_end_stops() -> None:
    law = mbd.ContactLaw(1e6, 1.5, 0.2)
    stop = mbd.mechanism.JointStop("stop", "slide", law, lower=-0.1, upper=0.2)
    for s, rate in ((0.21, 0.3), (-0.11, 0.4), (0.1, 1.0), (0.201, -9.0)):
        h = 1e-7
        by_s, by_rate = stop.derivatives(0.0, s, rate)
        change = stop.magnitude(0, s + h, rate) - stop.magnitude(0, s - h, rate)
        assert by_s == pytest.approx(change / (2 * h), rel=1e-6)
        change = stop.magnitude(0, s, rate + h) - stop.magnitude(0, s, rate - h)
        assert by_rate == pytest.approx(change / (2 * h), rel=1e-6)
        slope = (stop.energy(s + h) - stop.energy(s - h)) / (2 * h)
        assert stop.magnitude(0, s, 0.0) == pytest.approx(-slope, rel=1e-6)
    ground = mbd.Ground({"rail": mbd.Frame()})
    block = mbd.RigidBody("block", 1.0, [0.1] * 3, frames={"rail": mbd.Frame()})
    rail = mbd.prismatic("slide", ground.frame("rail"), block.frame("rail"))
    system = mbd.System([ground, block], [rail], loads=[stop])
    run = mbd.simulate(system, t_end=0.7, dt=mbd.Adaptive(1e-6), start={"slide": 1.0})
    speed = run.joint("slide").displacement_rate[:, 2]
    e = law.restitution(1.0)
    assert speed.min() == pytest.approx(-e, rel=1e-4)
    assert speed[-1] == pytest.approx(e * law.restitution(e), rel=1e-3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: mbd.mechanism.plane_contact("c", A, A, 1.0, LAW), "with itself"),
        (lambda: mbd.mechanism.plane_contact("c", A, B, -1.0, LAW), "load 'c': radius"),
        (lambda: mbd.mechanism.plane_contact("c", A, B, 1.0, 1e9), "law must be ContactLaw"),
        (
            lambda: mbd.mechanism.sphere_contact("c", A, B, (0.1, -0.2), LAW),
            "second must not be negative",
        ),
        (
            lambda: mbd.mechanism.sphere_contact("c", A, B, (-0.1, 0.2), LAW),
            "larger than the second",
        ),
        (lambda: mbd.mechanism.sphere_contact("c", A, B, 0.1, LAW), "radii must be two"),
        (
            lambda: mbd.mechanism.bore_contact("c", A, B, clearance=0.0, radius=0.1, law=LAW),
            "clearance must be a positive",
        ),
        (
            lambda: mbd.mechanism.bore_contact(
                "c", A, B, clearance=1e-3, radius=0.1, law=LAW, slices=3
            ),
            "several slices need a length",
        ),
        (
            lambda: mbd.mechanism.guide_contact(
                "c", A, B, clearance=0.1, length=1.0, height=1.0, law=LAW, direction="z"
            ),
            "direction must be one of",
        ),
        (lambda: mbd.mechanism.JointStop("s", "j", LAW, lower=0.0), "0; use JointFriction"),
        (
            lambda: mbd.mechanism.JointStop("s", "j", mbd.ContactLaw(1.0)),
            "two limits with lower < upper",
        ),
        (
            lambda: mbd.mechanism.JointStop("s", "j", mbd.ContactLaw(1.0), lower=1.0, upper=0.0),
            "two limits with lower < upper",
        ),
    ],
)
def test_invalid_contacts(call, text: str) -> None:
    with pytest.raises(InputError, match=text):
        call()
