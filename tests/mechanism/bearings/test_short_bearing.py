"""Short bearings: Ocvirk's table, derivatives, power, balance, and errors.

`film_loads` returns the loads g of the journal (force, its first moment, drag torque), their
derivatives, and facts: smallest gap, peak pressure, side flow and friction power. The motion y of
the journal contains position and slope, their rates, and the speed.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_banded

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import System
from dolfinx_mbd.errors import InputError, ModelRangeWarning
from dolfinx_mbd.kernels.films.frames import film_motion
from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.mechanism import Frame, Ground, RigidBody
from dolfinx_mbd.mechanism.bearings import Asperities, FilmBearing, FiniteBearing, ShortBearing
from dolfinx_mbd.mechanism.bearings.film_bearing import gauss_points
from tests.mechanism.bearings.films import (
    CLEARANCE,
    ENDS,
    LENGTH,
    RADIUS,
    SIZES,
    SPEED,
    VISCOSITY,
    journal_pair,
    scaled_differences,
)

FILM = ShortBearing("film", *SIZES, VISCOSITY)
# Relative eccentricity, load / (μ Ω R L³/c²) and attitude angle, °, of Ocvirk's solution
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
        # Components of the force against the displacement, and perpendicular to it
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
    """Return the largest pressure of a short bearing in its middle plane."""
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


# Relative eccentricity and tilt
CASES = [(0.5, 0.0), (0.9, 0.0), (0.4, 0.5), (0.7, 0.5), (0.985, 0.02), (1.01, 0.05)]


@pytest.mark.parametrize(("eccentricity", "tilt"), CASES)
def test_derivatives(eccentricity: float, tilt: float) -> None:
    check_derivatives(FILM, eccentricity, tilt)


def check_derivatives(film: FilmBearing, eccentricity: float, tilt: float) -> None:
    """Compare derivatives with differences, which have the round-off of the wrenches."""
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
    """Assert that the forces and moments on both bodies cancel."""
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
    rotation = exp_rotation(np.array([0.4, -1.0, 0.3]))
    rotated = pair._replace(
        p1=rotation @ pair.p1, Q1=rotation @ pair.Q1, p2=rotation @ pair.p2, Q2=rotation @ pair.Q2,
        u1=np.zeros(6), u2=np.concatenate([rotation @ still.u2[:3], rotation @ still.u2[3:]]),
    )  # fmt: skip
    for part in range(4):
        rows = slice(3 * part, 3 * part + 3)
        before, after = FILM.wrenches(pair)[rows], rotation.T @ FILM.wrenches(rotated)[rows]
        assert np.allclose(before, after, rtol=1e-9, atol=1e-9 * np.abs(before).max())


def test_power_is_the_dissipation_of_the_film() -> None:
    """The power of both wrenches is that of viscous flow: along the axis and by shear."""
    e, rate = np.array([0.6, 0.2]) * CLEARANCE, np.array([-0.1, 0.3]) * CLEARANCE * SPEED
    y = FILM.motion_vector(e, rate, speed=SPEED)
    g = FILM.film_loads(y, False)[0]
    couple = 0.5 * (e[0] * g[1] - e[1] * g[0])
    power = g[:2] @ rate - (g[4] + couple) * SPEED
    theta = np.linspace(0, 2 * np.pi, 100000, endpoint=False)
    # Radial and tangential directions
    n, m = np.array([np.cos(theta), np.sin(theta)]), np.array([-np.sin(theta), np.cos(theta)])
    h = CLEARANCE - e @ n
    rates = -SPEED * (e @ m) - 2 * (rate @ n)
    slope = 6 * VISCOSITY * np.minimum(rates, 0.0) / h**3  # p = ½ slope (z² − l²)
    flow = h**3 / (12 * VISCOSITY) * slope**2 * LENGTH**3 / 12
    shear = VISCOSITY * (RADIUS * SPEED) ** 2 / h * LENGTH
    assert power == pytest.approx(-(flow + shear).mean() * 2 * np.pi * RADIUS, rel=1e-6)


def test_misalignment_to_first_order() -> None:
    """A small tilt causes the moments of the exact solution of the axial equation."""
    slope = np.array([1e-6, 2e-6])
    y = FILM.motion_vector((0.5 * CLEARANCE, 0.0), slope=slope, speed=SPEED)
    g = FILM.film_loads(y, False)[0]
    theta = np.linspace(0, np.pi, 20001)
    n, m = np.array([np.cos(theta), np.sin(theta)]), np.array([-np.sin(theta), np.cos(theta)])
    expected = np.zeros(2)
    # The sums contain both halves of the circumference
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


def axial_solution(film: ShortBearing, y: np.ndarray, n: int = 540, m: int = 300) -> np.ndarray:
    """Return force and first moment (4,) by finite differences along the axis at n angles."""
    e, t, rate, t_rate, speed = y[:2], y[2:4], y[4:6], y[6:8], y[8]
    z = np.linspace(-0.5, 0.5, m + 1) * film.length
    dz, middle = z[1] - z[0], 0.5 * (z[1:] + z[:-1])
    g = np.zeros(4)
    for theta in np.arange(n) * 2 * np.pi / n:
        # Radial and tangential directions
        a, b = np.array([np.cos(theta), np.sin(theta)]), np.array([-np.sin(theta), np.cos(theta)])
        flow = (film.clearance - e @ a - middle * (t @ a)) ** 3 / (12 * film.viscosity * dz**2)
        by_angle, by_time = -(e @ b) - z * (t @ b), -(rate @ a) - z * (t_rate @ a)
        source = 0.5 * speed * by_angle + by_time
        bands = np.zeros((3, m - 1))
        bands[0, 1:], bands[1], bands[2, :-1] = flow[1:-1], -flow[1:] - flow[:-1], flow[1:-1]
        p = np.maximum(solve_banded((1, 1), bands, source[1:-1]), 0.0)
        weights = np.array([p.sum(), p @ z[1:-1]]) * dz * film.radius * 2 * np.pi / n
        g -= np.concatenate([weights[0] * a, weights[1] * a])
    return g


@pytest.mark.parametrize("least", [0.5, 0.2, 0.05])
@pytest.mark.parametrize("ratio", [0.1, 0.5])
def test_misalignment(least: float, ratio: float) -> None:
    """Force and moment of any tilt, with squeeze of the film, against finite differences.

    The smallest gap is `least` times the clearance. Of its reduction, the tilt causes `fraction`.
    """
    rng = np.random.default_rng(int(100 * least + 10 * ratio))
    for fraction, squeeze in ((0.1, 0.0), (0.5, 0.0), (0.9, 0.0), (0.6, 0.3), (0.3, 3.0)):
        length = 2 * RADIUS * ratio
        film = ShortBearing("film", *ENDS, RADIUS, length, CLEARANCE, VISCOSITY)
        e, t, rate, t_rate = rng.normal(size=(4, 2))
        e *= (1.0 - fraction) / np.linalg.norm(e)
        t *= fraction / np.linalg.norm(t)
        reach = max(np.linalg.norm(e + t), np.linalg.norm(e - t))
        size = (1.0 - least) * CLEARANCE / reach
        y = film.motion_vector(
            size * e,
            squeeze * CLEARANCE * SPEED * rate,
            slope=size * t / (0.5 * length),
            slope_rate=squeeze * CLEARANCE * SPEED * t_rate / (0.5 * length),
            speed=SPEED,
        )
        loads, _, facts = film.film_loads(y, False)
        expected = axial_solution(film, y)
        assert facts[0] == pytest.approx(least * CLEARANCE, rel=1e-9)
        for part in (slice(0, 2), slice(2, 4)):
            error = np.linalg.norm(loads[part] - expected[part])
            assert error < 2e-3 * np.linalg.norm(expected[part]), (fraction, squeeze, part)


def test_a_tilt_of_round_off_is_no_tilt() -> None:
    """The solution for aligned surfaces and the general one agree where one replaces the other."""
    rates = {"rate": (1e-3, 2e-3), "slope_rate": (0.02, -0.3), "speed": SPEED}
    place = np.array([0.5, 0.0]) * CLEARANCE
    g, dg, facts = FILM.film_loads(FILM.motion_vector(place, **rates), True)  # type: ignore[arg-type]
    for size in (0.4e-7, 1e-6):  # on both sides of the limit at all angles
        slope = np.array([size, -size]) * CLEARANCE / LENGTH
        y = FILM.motion_vector(place, slope=slope, **rates)  # type: ignore[arg-type]
        tilted, by, state = FILM.film_loads(y, True)
        change = dg[:, 2:4] @ slope
        assert np.allclose(tilted - g, change, rtol=1e-4, atol=1e-9 * np.abs(g[:2]).max() * LENGTH)
        steps = np.array([1, 1, 1 / LENGTH, 1 / LENGTH] * 2 + [SPEED / CLEARANCE])
        steps[4:8] *= SPEED
        scale = np.abs(dg * steps).max(axis=1, keepdims=True)
        assert np.all(np.abs(by - dg) * steps < 1e-5 * scale)
        assert state == pytest.approx(facts, rel=1e-5)


CONTACTS = [(0.99, 0.0), (1.0, 0.1), (0.9, 0.9), (0.8, 1.2)]


@pytest.mark.parametrize("kind", [ShortBearing, FiniteBearing])
@pytest.mark.parametrize(("eccentricity", "tilt"), CONTACTS)
def test_the_force_of_asperities_is_the_gradient_of_their_energy(
    kind: type[FilmBearing], eccentricity: float, tilt: float
) -> None:
    """Forces and moments, and the energy against a quadrature over the whole bore."""
    film = kind("film", *SIZES, 1e-12, asperities=Asperities(1e-6, 3e8, 0.0))
    pair = journal_pair(np.random.default_rng(4), eccentricity, tilt=tilt)
    pair = pair._replace(u1=np.zeros(6), u2=np.zeros(6))
    gradient = np.zeros(12)
    for k in range(12):
        step, energies = 1e-6 * (CLEARANCE if k % 6 < 3 else CLEARANCE / LENGTH), []
        for sign in (1.0, -1.0):
            d = np.zeros(12)
            d[k] = sign * step
            moved = pair._replace(
                p1=pair.p1 + d[:3],
                Q1=exp_rotation(d[3:6]) @ pair.Q1,
                p2=pair.p2 + d[6:9],
                Q2=exp_rotation(d[9:]) @ pair.Q2,
            )
            energies.append(film.energy(moved))
        gradient[k] = (energies[0] - energies[1]) / (2 * step)
    wrenches = film.wrenches(pair)
    rest, size = (wrenches + gradient).reshape(4, 3), np.linalg.norm(wrenches[:3])
    # The model neglects the axial force of a tilted surface and its moment about the origin
    rest[::2] -= np.outer(rest[::2] @ pair.Q1[:, 2], pair.Q1[:, 2])
    neglected = size * tilt * CLEARANCE**2 / LENGTH
    assert size > 1.0 and np.abs(rest[::2]).max() < 1e-6 * size
    assert np.abs(rest[1::2]).max() < neglected + 1e-6 * size * LENGTH
    y = film_motion(*pair)
    theta, (z, weights) = np.arange(20000) * 2 * np.pi / 20000, gauss_points(300)
    normal = np.array([np.cos(theta), np.sin(theta)])
    gap = (CLEARANCE - y[:2] @ normal)[:, None] - np.outer(y[2:4] @ normal, 0.5 * LENGTH * z)
    density = film.asperities.energy(gap) @ weights * 0.5 * LENGTH
    assert film.energy(pair) == pytest.approx(density.mean() * 2 * np.pi * RADIUS, rel=1e-4)


@pytest.mark.parametrize("kind", [ShortBearing, FiniteBearing])
def test_contact_at_the_edges_supplies_no_energy(kind: type[FilmBearing]) -> None:
    """A free journal that touches the bore with both of its ends only loses energy."""
    ground = Ground({"bore": Frame()})
    rotor = RigidBody(
        "rotor", 0.5, [2e-4, 2e-4, 3e-4], frames={"journal": Frame()}, omega=(10.0, 0.0, 200.0)
    )
    film = kind("film", *ENDS, 0.02, 0.02, 4e-5, 1e-4, asperities=Asperities(friction=0.0))
    system = System([ground, rotor], loads=[film])
    with pytest.warns(ModelRangeWarning, match="film"):
        run = simulate(system, t_end=2.5e-3, dt=2.5e-6)
    total, stored = run.energies().total, run.element("film").energy
    assert run.element("film").film_thickness.min() < 0.0 and stored.max() > 1e-3
    assert (total - np.minimum.accumulate(total)).max() < 0.02 * stored.max()


def test_asperities_take_over() -> None:
    """The force against the wall grows without a jump, and energy is its potential."""
    dry = ShortBearing("film", *SIZES, 1e-12, asperities=Asperities(1e-6, 3e8, 0.0))
    assert np.isclose(dry.asperities.pressure(4e-6), 0.0)
    positions = np.linspace(0.94, 1.02, 400) * CLEARANCE
    forces = [-dry.film_loads(dry.motion_vector((x, 0)), False)[0][0] for x in positions]
    assert np.all(np.diff(forces) >= 0) and forces[0] == 0.0 and forces[-1] > 1e5
    pair = journal_pair(np.random.default_rng(0), 0.0)._replace(u1=np.zeros(6), u2=np.zeros(6))
    pair = pair._replace(Q1=np.eye(3), Q2=np.eye(3))
    pairs = [pair._replace(p2=pair.p1 + np.array([x, 0, 0])) for x in positions]
    energies = np.array([dry.energy(pair) for pair in pairs])
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
    for new, old in zip(film.derivatives(slower), FILM.derivatives(pair), strict=True):
        columns = [0, 1, 2, 6, 7, 8]  # rotations of the frames change the relative velocities
        assert np.allclose(new[:, columns], old[:, columns], rtol=1e-9, atol=1e-9 * abs(old).max())
    # The speed is about the z axis of the journal, which may be opposite to that of the bore
    flipped = slower._replace(Q2=slower.Q2 @ np.diag([1.0, -1.0, -1.0]))
    backward = ShortBearing("film", *SIZES, VISCOSITY, journal_speed=-100.0)
    assert np.allclose(backward.wrenches(flipped), FILM.wrenches(pair), rtol=1e-12)
