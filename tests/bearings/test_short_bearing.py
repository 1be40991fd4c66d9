"""Short bearings: Ocvirk's table, derivatives, power, balance, and errors."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.bearings import Asperities, FilmBearing, ShortBearing
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.films.frames import film_motion
from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.multibody import Frame, Ground, RigidBody, System
from tests.bearings.films import (
    CLEARANCE,
    LENGTH,
    RADIUS,
    SIZES,
    SPEED,
    VISCOSITY,
    journal_pair,
    scaled_differences,
)

FILM = ShortBearing("film", *SIZES, VISCOSITY)
TABLE = [
    (0.1, 0.080383, 82.7078),
    (0.3, 0.292375, 68.1781),
    (0.5, 0.750381, 53.6802),
    (0.7, 2.414048, 38.7040),
    (0.9, 24.006143, 20.8261),
]


@pytest.mark.parametrize(("eccentricity", "load", "attitude"), TABLE)
def test_ocvirk(eccentricity: float, load: float, attitude: float) -> None:
    """The journal turns counterclockwise; it yields in the sense of its rotation."""
    for turn in (0.0, 2.0):
        direction = np.array([np.cos(turn), np.sin(turn)])
        y = FILM.motion_vector(eccentricity * CLEARANCE * direction, speed=SPEED)
        g, _, facts = FILM.film_loads(y, False)
        along, across = -g[:2] @ direction, g[:2] @ [-direction[1], direction[0]]
        scale = VISCOSITY * SPEED * RADIUS * LENGTH**3 / CLEARANCE**2
        assert np.hypot(along, across) / scale == pytest.approx(load, abs=6e-7 * max(1, load))
        assert np.degrees(np.arctan2(across, along)) == pytest.approx(attitude, abs=6e-5)
        torque = VISCOSITY * SPEED * RADIUS**3 * LENGTH / CLEARANCE
        assert g[4] == pytest.approx(
            2 * np.pi * torque / np.sqrt(1 - eccentricity**2), rel=1e-9
        )  # Petroff's torque, corrected by Sommerfeld's factor
        assert facts[0] == pytest.approx(CLEARANCE * (1 - eccentricity), rel=1e-3)
        assert facts[2] == pytest.approx(
            SPEED * RADIUS * LENGTH * CLEARANCE * eccentricity, rel=1e-7
        )


def peak(eccentricity: float) -> float:
    """Largest pressure of a short bearing over the angles, in the middle plane."""
    theta = np.linspace(0, np.pi, 200001)
    h = CLEARANCE * (1 + eccentricity * np.cos(theta))
    rate = SPEED * CLEARANCE * eccentricity * np.sin(theta)
    return float((0.75 * VISCOSITY * LENGTH**2 * rate / h**3).max())


def test_peak_pressure() -> None:
    """The largest pressure is that of the quadrature points."""
    y = FILM.motion_vector((0.5 * CLEARANCE, 0.0), speed=SPEED)
    for points, error in ((32, 5e-3), (320, 5e-5)):
        film = ShortBearing("film", *SIZES, VISCOSITY, points=points)
        assert film.film_loads(y, False)[2][1] == pytest.approx(peak(0.5), rel=error)


CASES = [(0.5, 0.0), (0.9, 0.0), (0.4, 0.5), (0.7, 0.5), (0.985, 0.02), (1.01, 0.05)]


@pytest.mark.parametrize(("eccentricity", "tilt"), CASES)
def test_derivatives(eccentricity: float, tilt: float) -> None:
    check_derivatives(FILM, eccentricity, tilt)


def check_derivatives(film: FilmBearing, eccentricity: float, tilt: float) -> None:
    """The differences have the round-off of the wrenches."""
    rng = np.random.default_rng(7)
    for _ in range(2):
        pair = journal_pair(rng, eccentricity, tilt=tilt)
        round_off = 8 * np.finfo(float).eps * np.abs(film.wrenches(pair))
        for exact, of_pose in zip(film.derivatives(pair), (True, False), strict=True):
            numerical, sizes = scaled_differences(film, pair, of_pose=of_pose)
            for rows in (slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 12)):
                size = np.abs(exact[rows] * sizes).max()
                error = np.abs((exact - numerical)[rows] * sizes).max()
                assert error < 2e-6 * size + round_off[rows].max()


def check_balance(film: FilmBearing, pair: object) -> None:
    """Forces and moments of both bodies cancel."""
    p1, _, _, p2, _, _ = pair  # type: ignore[misc]
    W = film.wrenches(pair)  # type: ignore[arg-type]
    assert np.allclose(W[:3], -W[6:9], rtol=1e-12)
    moments = W[3:6] + W[9:] + np.cross(p2 - p1, W[6:9])
    assert np.abs(moments).max() < 1e-9 * np.abs(W[:3]).max() * LENGTH


@pytest.mark.parametrize(("eccentricity", "tilt"), CASES)
def test_balance_and_the_motion_of_the_whole_bearing(eccentricity: float, tilt: float) -> None:
    """A motion of the bearing as a whole changes nothing, although all velocities change."""
    rng = np.random.default_rng(3)
    pair = journal_pair(rng, eccentricity, tilt=tilt)
    check_balance(FILM, pair)
    still = pair._replace(
        u1=np.zeros(6),
        u2=np.concatenate(
            [
                pair.u2[:3] - pair.u1[:3] - np.cross(pair.u1[3:], pair.p2 - pair.p1),
                pair.u2[3:] - pair.u1[3:],
            ]
        ),
    )
    assert np.allclose(film_motion(*pair), film_motion(*still), rtol=1e-10, atol=1e-15)
    turn = exp_rotation(np.array([0.4, -1.0, 0.3]))
    turned = pair._replace(
        p1=turn @ pair.p1, Q1=turn @ pair.Q1, p2=turn @ pair.p2, Q2=turn @ pair.Q2,
        u1=np.zeros(6), u2=np.concatenate([turn @ still.u2[:3], turn @ still.u2[3:]]),
    )  # fmt: skip
    for part in range(4):
        rows = slice(3 * part, 3 * part + 3)
        one, two = FILM.wrenches(pair)[rows], turn.T @ FILM.wrenches(turned)[rows]
        assert np.allclose(one, two, rtol=1e-9, atol=1e-9 * np.abs(one).max())


def test_power_is_the_dissipation_of_the_film() -> None:
    """The power of both wrenches is that of viscous flow: along the axis and by shear."""
    e, rate = np.array([0.6, 0.2]) * CLEARANCE, np.array([-0.1, 0.3]) * CLEARANCE * SPEED
    y = FILM.motion_vector(e, rate, speed=SPEED)
    g = FILM.film_loads(y, False)[0]
    couple = 0.5 * (e[0] * g[1] - e[1] * g[0])
    power = g[:2] @ rate - (g[4] + couple) * SPEED
    theta = np.linspace(0, 2 * np.pi, 100000, endpoint=False)
    n, m = np.array([np.cos(theta), np.sin(theta)]), np.array([-np.sin(theta), np.cos(theta)])
    h = CLEARANCE - e @ n
    rates = -SPEED * (e @ m) - 2 * (rate @ n)
    slope = 6 * VISCOSITY * np.minimum(rates, 0.0) / h**3  # p = ½ slope (z² − l²)
    flow = h**3 / (12 * VISCOSITY) * slope**2 * LENGTH**3 / 12
    shear = VISCOSITY * (RADIUS * SPEED) ** 2 / h * LENGTH
    assert power == pytest.approx(-(flow + shear).mean() * 2 * np.pi * RADIUS, rel=1e-6)


def test_misalignment_to_first_order() -> None:
    """A small tilt of the steady journal: moments of the exact solution of the axial equation."""
    slope = np.array([1e-6, 2e-6])
    y = FILM.motion_vector((0.5 * CLEARANCE, 0.0), slope=slope, speed=SPEED)
    g = FILM.film_loads(y, False)[0]
    theta = np.linspace(0, np.pi, 20001)
    n, m = np.array([np.cos(theta), np.sin(theta)]), np.array([-np.sin(theta), np.cos(theta)])
    expected = np.zeros(2)
    for n, m in ((n, m), (-n, -m)):
        h0 = CLEARANCE - 0.5 * CLEARANCE * n[0]
        g0 = -SPEED * 0.5 * CLEARANCE * m[0]
        h1, g1 = -slope @ n, -SPEED * (slope @ m)
        # (h³ p′)′ = 6 μ g with p₀ = −3 μ g₀/h₀³ (l² − z²) and p₁ = b z (l² − z²)
        half = 0.5 * LENGTH
        b = VISCOSITY * (6 * g0 * h1 / h0**4 - g1 / h0**3)
        moment = np.where(g0 < 0, b, 0.0) * 4 / 15 * half**5
        expected += -np.trapezoid(moment * n, theta) * RADIUS
    assert np.allclose(g[2:4], expected, rtol=1e-3)


def test_asperities_take_over() -> None:
    """The force against the wall grows without a jump, and energy is its potential."""
    dry = ShortBearing("film", *SIZES, 1e-12, asperities=Asperities(1e-6, 3e8, 0.0))
    assert np.isclose(dry.asperities.pressure(4e-6), 0.0)
    positions = np.linspace(0.94, 1.02, 400) * CLEARANCE
    forces = [-dry.film_loads(dry.motion_vector((x, 0)), False)[0][0] for x in positions]
    assert np.all(np.diff(forces) >= 0) and forces[0] == 0.0 and forces[-1] > 1e5
    pair = journal_pair(np.random.default_rng(0), 0.0)._replace(u1=np.zeros(6), u2=np.zeros(6))
    pair = pair._replace(Q1=np.eye(3), Q2=np.eye(3))
    at = [pair._replace(p2=pair.p1 + np.array([x, 0, 0])) for x in positions]
    energies = np.array([dry.energy(pair) for pair in at])
    work = np.concatenate(
        [[0], np.cumsum(np.diff(positions) * (forces[:-1] + np.diff(forces) / 2))]
    )
    assert np.allclose(energies, work, rtol=2e-3, atol=1e-6 * energies[-1])


def test_drag_of_asperities_opposes_sliding() -> None:
    for speed in (SPEED, -SPEED):
        y = FILM.motion_vector((0.99 * CLEARANCE, 0.0), speed=speed)
        rough = FILM.film_loads(y, False)[0][4]
        smooth = ShortBearing("film", *SIZES, VISCOSITY, asperities=Asperities(friction=0.0))
        assert (rough - smooth.film_loads(y, False)[0][4]) * speed > 0


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"viscosity": 0.0}, "viscosity"),
        ({"viscosity": -1.0}, "viscosity"),
        ({"clearance": 0.0}, "clearance"),
        ({"clearance": 0.01}, "clearance"),
        ({"clearance": 1e-6}, "clearance"),
        ({"radius": -1.0}, "radius"),
        ({"length": 0.0}, "length"),
        ({"points": 3}, "points"),
        ({"asperities": 3}, "asperities"),
    ],
)
def test_errors(change: dict[str, object], argument: str) -> None:
    values = dict(zip(("first", "second", "radius", "length", "clearance"), SIZES, strict=True))
    with pytest.raises(InputError) as error:
        ShortBearing(**({"name": "film", "viscosity": VISCOSITY} | values | change))  # type: ignore[arg-type]
    assert argument in (error.value.argument or "")


def test_no_film_at_the_start() -> None:
    ground = Ground({"bore": Frame()})
    for place in ((1.2 * CLEARANCE, 0, 0), (0, 0.3, 0)):
        rotor = RigidBody("rotor", 1.0, [1.0] * 3, frames={"journal": Frame()}, position=place)
        with pytest.raises(InputError, match="film thickness at the start"):
            System([ground, rotor], loads=[FILM])
    tilted = Frame(axes=exp_rotation(np.array([0.02, 0.0, 0.0])))
    rotor = RigidBody("rotor", 1.0, [1.0] * 3, frames={"journal": tilted})
    with pytest.raises(InputError, match="film thickness at the start"):
        System([ground, rotor], loads=[FILM])


def test_opposite_axes_are_allowed() -> None:
    pair = journal_pair(np.random.default_rng(5), 0.5, tilt=0.3)
    flipped = pair._replace(Q2=pair.Q2 @ np.diag([1.0, -1.0, -1.0]))
    assert np.allclose(FILM.wrenches(pair), FILM.wrenches(flipped), rtol=1e-10)


def test_the_speed_of_the_surface_replaces_that_of_the_frame() -> None:
    pair = journal_pair(np.random.default_rng(8), 0.6)
    axis = pair.Q1[:, 2]
    u2 = pair.u2.copy()
    u2[3:] -= 100.0 * axis
    slower = pair._replace(u2=u2)
    film = ShortBearing("film", *SIZES, VISCOSITY, journal_speed=100.0)
    assert np.allclose(film.wrenches(slower), FILM.wrenches(pair), rtol=1e-12)
    for one, two in zip(film.derivatives(slower), FILM.derivatives(pair), strict=True):
        columns = [0, 1, 2, 6, 7, 8]  # rotations of the frames change the relative velocities
        assert np.allclose(one[:, columns], two[:, columns], rtol=1e-9, atol=1e-9 * abs(two).max())
    # The speed is about the z axis of the journal, which may be opposite to that of the bore
    flipped = slower._replace(Q2=slower.Q2 @ np.diag([1.0, -1.0, -1.0]))
    backward = ShortBearing("film", *SIZES, VISCOSITY, journal_speed=-100.0)
    assert np.allclose(backward.wrenches(flipped), FILM.wrenches(pair), rtol=1e-12)
