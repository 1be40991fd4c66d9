"""Contacts that begin and end within a step, deep penetrations, and wide clearances."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics.stepping.contact_events import closings
from dolfinx_mbd.errors import AccuracyWarning, MbdWarning, ModelRangeWarning, UnitsWarning

MISSED = "step over a contact"


def two_balls(
    path: float, speed: float, radii: tuple[float, float], aside: float = 0.0, mass: float = 1.0
) -> mbd.System:
    """Return a ball that flies towards a fixed ball and reaches it after half of a path."""
    ground = mbd.Ground({"centre": mbd.Frame()})
    ball = mbd.RigidBody(
        "ball",
        mass,
        [0.4 * mass * radii[1] ** 2] * 3,
        frames={"centre": mbd.Frame()},
        position=(0, aside, 0.5 * path),
        velocity=(0, 0, -speed),
    )
    depth = 0.02 * min(radii)  # of the impact, about
    law = mbd.ContactLaw(mass * speed**2 / depth**2.5)
    ends = ground.frame("centre"), ball.frame("centre")
    return mbd.System(
        [ground, ball], loads=[mbd.mechanism.sphere_contact("balls", *ends, radii, law)]
    )


def quantities(records: list[warnings.WarningMessage]) -> list[str | None]:
    """Return the quantities of the warnings of the package."""
    return [w.message.quantity for w in records if isinstance(w.message, MbdWarning)]


@pytest.mark.parametrize(
    ("path", "speed", "radii"),
    [
        (4.0, 5.0, (0.01, 0.01)),
        (20.0, 5.0, (0.01, 0.01)),
        (1e3, 300.0, (0.02, 0.003)),
        (0.5, 0.01, (1e-3, 1e-4)),
    ],
)
def test_adaptive_steps_find_a_contact_between_their_ends(path, speed, radii) -> None:
    system = two_balls(path, speed, radii)
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        run = mbd.simulate(system, t_end=path / speed, dt="adaptive")
    history = run.body("ball")
    assert history.velocity[-1, 2] == pytest.approx(speed, rel=2e-3)
    assert history.position[-1, 2] == pytest.approx(0.5 * path + 2.0 * sum(radii), rel=0.05)
    (impact,) = run.element("balls").impacts
    assert impact.speed == pytest.approx(speed, rel=1e-6)
    assert not quantities(records)


@pytest.mark.parametrize("aside", [1.0001, 1.01, 1.3, 3.0])
def test_a_near_miss_costs_few_steps(aside: float) -> None:
    system = two_balls(20.0, 5.0, (0.01, 0.01), aside=0.02 * aside)
    run = mbd.simulate(system, t_end=4.0, dt="adaptive")
    assert not run.element("balls").impacts
    np.testing.assert_allclose(run.v[-1], run.v[0], atol=1e-12)
    assert len(run) < 70


def test_a_bar_in_free_rotation_does_not_turn_through_a_ball() -> None:
    """The bar is free, its spin is constant, and without contact a step may be many turns long."""
    ground = mbd.Ground({"ball": mbd.Frame((0.0, 1.0, 0.0))})
    bar = mbd.RigidBody.box(
        "bar", (2.0, 0.01, 0.01), mass=1.0, frames={"tip": mbd.Frame((1, 0, 0))}, omega=(0, 0, 30.0)
    )
    law = mbd.ContactLaw(1e10)
    balls = mbd.mechanism.sphere_contact(
        "balls", ground.frame("ball"), bar.frame("tip"), (4e-3, 4e-3), law
    )
    run = mbd.simulate(mbd.System([ground, bar], loads=[balls]), t_end=2.0, dt="adaptive")
    assert len(run.element("balls").impacts) >= 1
    # The impact of the tip: the mass there is 1 / (1/m + L²/J) = m/4, and J = m L²/3
    start = run.element("balls").impacts[0].start
    assert start == pytest.approx((math.pi / 2 - 8e-3) / 30.0, rel=1e-4)
    after = int(np.searchsorted(run.time, start + 2e-3))
    assert run.body("bar").omega[after, 2] == pytest.approx(-15.0, rel=2e-2)
    assert run.body("bar").velocity[after, 0] == pytest.approx(15.0, rel=2e-2)


def test_fixed_steps_over_a_contact_give_a_warning() -> None:
    system = two_balls(0.4, 5.0, (0.01, 0.01))
    with pytest.warns(AccuracyWarning, match="'balls'") as records:
        run = mbd.simulate(system, t_end=0.08, dt=9e-3)
    assert quantities(list(records)) == [MISSED]
    assert run.body("ball").position[-1, 2] < -0.1  # the ball has passed through
    for path, aside, dt in ((0.05, 0.0, 2e-6), (0.4, 0.05, 9e-3)):
        with warnings.catch_warnings(record=True) as records:
            warnings.simplefilter("always")
            variant = two_balls(path, 5.0, (0.01, 0.01), aside)
            run = mbd.simulate(variant, t_end=path / 5.0, dt=dt, stride=100)
        assert not quantities(records)
        assert (run.body("ball").velocity[-1, 2] > 0.0) == (aside == 0.0)


def test_closings_of_straight_motions() -> None:
    """The distance of points in straight motion is known at each time.

    Its curvature is at most v²/n with the smallest distance n, so that its tangents at the ends of
    a step meet at most v² dt²/(8 n) below it: near misses by more than this are not reported.
    """
    rng = np.random.default_rng(3)
    x, v = rng.normal(size=(2, 400, 3))
    dt = rng.uniform(0.1, 10.0, size=400)
    x -= rng.uniform(0.0, 1.0, size=(400, 1)) * dt[:, None] * v
    ends = x, x + dt[:, None] * v
    lengths = [np.linalg.norm(end, axis=1) for end in ends]
    speed = np.linalg.norm(v, axis=1)
    nearest = np.linalg.norm(np.cross(x, v), axis=1) / speed
    time = -(x * v).sum(axis=1) / (v * v).sum(axis=1)
    between = (time > 0) & (time < dt)
    radius = rng.uniform(0.0, 1.0, 400) * np.minimum(*lengths)
    apart = nearest - (speed * dt) ** 2 / (8 * nearest) > radius
    count = 0
    for k in range(400):
        before, after = (
            np.array([[d[k] - radius[k], e[k] @ v[k] / d[k]]])
            for d, e in zip(lengths, ends, strict=True)
        )
        (fraction,) = closings(before, after, dt[k], np.array([1e-9]))
        touches = between[k] and nearest[k] < radius[k]
        count += bool(touches)
        # The fraction is at the end of the contact or before it
        if touches:
            assert (
                0.0
                < fraction * dt[k]
                <= time[k] + math.sqrt(radius[k] ** 2 - nearest[k] ** 2) / speed[k]
            )
        elif apart[k] or not between[k]:
            assert np.isnan(fraction)
    assert 50 < count < 350
    assert (apart & between).any()


@pytest.mark.parametrize(("stiffness", "height"), [(1e3, 1.0), (10.0, 1.0), (1e5, -0.05)])
def test_deep_penetrations_give_a_warning(stiffness: float, height: float) -> None:
    ground = mbd.Ground({"floor": mbd.Frame()})
    ball = mbd.RigidBody(
        "ball", 1.0, [0.01] * 3, frames={"c": mbd.Frame()}, position=(0, 0, height)
    )
    law = mbd.ContactLaw(stiffness, damping=0.1)
    floor = mbd.mechanism.plane_contact("floor", ground.frame("floor"), ball.frame("c"), 0.01, law)
    system = mbd.System([ground, ball], loads=[floor], gravity=(0, 0, -9.81))
    with pytest.warns(ModelRangeWarning, match="'floor'") as records:
        run = mbd.simulate(system, t_end=0.6, dt=1e-3)
    (warning,) = (w.message for w in records if isinstance(w.message, ModelRangeWarning))
    depth = 0.01 - run.body("ball").position[:, 2].min()
    assert warning.value == pytest.approx(depth / 0.01, rel=1e-9)
    assert warning.value > 5.0 > warning.limit


def test_wide_clearances_give_a_warning() -> None:
    ends = ("ground", "bore"), ("arm", "pin")
    law = mbd.ContactLaw(1e8, exponent=1.0)
    with pytest.warns(UnitsWarning, match="'pin'") as records:
        mbd.mechanism.bore_contact("pin", *ends, clearance=0.05, radius=0.01, law=law)
    assert records[0].message.value == pytest.approx(5.0)
    with pytest.warns(UnitsWarning, match="'socket'"):
        mbd.mechanism.sphere_contact("socket", *ends, (-0.06, 0.01), law)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mbd.mechanism.bore_contact("pin", *ends, clearance=5e-5, radius=0.01, law=law)
        mbd.mechanism.bore_contact("pin", *ends, clearance=5e-5, radius=0.0, law=law)
        mbd.mechanism.sphere_contact("socket", *ends, (-0.0101, 0.01), law)
