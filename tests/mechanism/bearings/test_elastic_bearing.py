"""Bearings with elastic bores: derivatives, rigid limit, equilibrium with the pressure, input.

`film_loads` returns the loads g of the journal (force, its first moment, drag torque), their
derivatives, and facts: smallest gap, peak pressure, side flow and friction power. The motion y of
the journal contains position and slope, their rates, and the speed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.body import Bore
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.mechanism.bearings import ElasticBearing, FiniteBearing
from dolfinx_mbd.mechanism.bearings.finite_bearing import Cavitation
from dolfinx_mbd.mechanism.force_elements import FramePair

# m, m, m, Pa s
RADIUS, LENGTH, CLEARANCE, OIL = 0.02, 0.016, 3e-5, 0.01
SIZES = RADIUS, LENGTH, CLEARANCE, OIL
MASS, NATURAL = 0.4, 1e5  # kg; rad/s of the softest mode of the bore


def elastic_body(softness: float = 1.0) -> mbd.ReducedBody:
    """Return a ring whose modes are patterns of its bore, without inertia coupling."""
    count = 15  # around: the mean and two harmonics, 5; along the axis: 3
    patterns = np.eye(count).reshape(5, 3, count)
    H = np.zeros((count + 1, count + 1, 3, 3))
    H[0, 0] = np.eye(3) * MASS * RADIUS**2
    H[1:, 1:] = np.eye(count)[:, :, None, None] * np.eye(3) * MASS / 30
    frame = mbd.body.Interface("bore", "averaged", np.zeros(3), np.eye(3), np.zeros((6, count)))
    stiffness = np.diag(MASS / 10 * (NATURAL * np.linspace(1, 3, count)) ** 2) / softness
    return mbd.ReducedBody.from_arrays(
        name="ring",
        total_mass=MASS,
        first_moments=np.zeros((count + 1, 3)),
        second_moments=H,
        stiffness=stiffness,
        interfaces=[frame],
        bores=[Bore("bore", RADIUS, LENGTH, patterns)],
    )


def bearing(body: mbd.ReducedBody, **options: Any) -> ElasticBearing:
    """Return the bearing between the ring and a journal."""
    ends = ("ring", "bore"), ("journal", "pin")
    return ElasticBearing("film", *ends, *SIZES, bore=body.bore("bore"), shape=(32, 8), **options)


def pair(rng: np.random.Generator) -> FramePair:
    """Return poses and velocities of a misaligned journal at 58 % of the clearance."""
    Q1 = exp_rotation(rng.normal(size=3))
    e = Q1 @ np.array([0.5, -0.3, 4.0]) * CLEARANCE
    Q2 = Q1 @ exp_rotation(np.array([2e-4, 3e-4, 1.0]))
    u1, u2 = rng.normal(size=(2, 6)) * ([0.01] * 3 + [20.0] * 3)
    u2[:3] += u1[:3]
    u2[3:] = u1[3:] + Q1[:, 2] * 500.0
    p1 = rng.normal(size=3)
    return FramePair(p1, Q1, u1, p1 + e, Q2, u2)


def moved(at: FramePair, step: np.ndarray, rates: np.ndarray) -> FramePair:
    """Return the pair after increments of poses and velocities (12,), in global components."""
    rotations = [exp_rotation(step[k : k + 3]) for k in (3, 9)]
    return FramePair(
        at.p1 + step[:3], rotations[0] @ at.Q1, at.u1 + rates[:6],
        at.p2 + step[6:9], rotations[1] @ at.Q2, at.u2 + rates[6:],
    )  # fmt: skip


@pytest.mark.parametrize("cavitation", ["reynolds", "mass_conserving"])
def test_default_grid(cavitation: Cavitation) -> None:
    """The thin film of an oval bore has the forces of a fine grid within 0.3 %.

    The error is 1.1 % if the entrained thickness is the mean of two nodes.
    """
    forces, bore = [], elastic_body().bore("bore")
    s, supply = np.zeros((2, 15)), [mbd.bearings.OilSupply(2e5, angle=np.pi / 2, arc=0.4)]
    s[0, [9, 12]] = -7e-6, 2e-6  # cos 2θ and sin 2θ
    for shape in ((64, 12), (512, 12)):
        film = ElasticBearing(
            "film", ("ring", "bore"), ("journal", "pin"), *SIZES, bore=bore, shape=shape,
            supply=supply, cavitation=cavitation,
        )  # fmt: skip
        loads, _, _ = film.film_loads(film.motion_vector((0.0, -34.5e-6), speed=500.0), False, s)
        forces.append(loads[5:])  # on the coefficients of w
    assert np.linalg.norm(forces[0] - forces[1]) < 0.003 * np.linalg.norm(forces[1])


@pytest.mark.slow
def test_derivatives() -> None:
    """Derivatives by frames, by the coefficients of w and by all rates agree with differences."""
    rng = np.random.default_rng(3)
    film, motion = bearing(elastic_body()), pair(rng)
    m = len(film.surface)
    s = np.array([rng.normal(size=m) * 2e-6, rng.normal(size=m) * 1e-3])
    D, E = film.derivatives(motion, s)
    scale = np.abs(film.wrenches(motion, s)).max()
    lengths = np.concatenate([np.tile([1e-9] * 3 + [1e-6] * 3, 2), np.full(m, 1e-9)])
    speeds = np.concatenate([np.tile([1e-5] * 3 + [1e-2] * 3, 2), np.full(m, 1e-6)])
    # `number` is 0 for the poses and coefficients, and 1 for their rates
    for columns, steps, number in ((D, lengths, 0), (E, speeds, 1)):
        for k, h in enumerate(steps):
            values = []
            for sign in (1, -1):
                unit = np.zeros(12 + m)
                unit[k] = sign * h
                change = [np.zeros(12), np.zeros(12)]
                change[number] = unit[:12]
                changed = s.copy()
                changed[number] += unit[12:]
                values.append(film.wrenches(moved(motion, *change), changed))
            difference = 0.5 * (values[0] - values[1])
            error = np.abs(columns[:, k] * h - difference).max()
            assert error < 1e-4 * np.abs(difference).max() + 1e-9 * scale, (number, k)


def oval_film() -> tuple[ElasticBearing, np.ndarray]:
    """Return a bearing and the coefficients of an oval bore, with their rates."""
    ends = ("ring", "bore"), ("journal", "pin")
    film = ElasticBearing("film", *ends, *SIZES, bore=elastic_body().bore("bore"), shape=(96, 48))
    s = np.array([np.zeros(15), np.random.default_rng(8).normal(size=15) * 1e-3])
    s[0, [9, 12]] = 4e-6, -8e-6  # cos 2θ and sin 2θ
    return film, s


def test_power_is_that_of_shear_and_of_the_pressure_gradient() -> None:
    """The power of all forces is −∫ h³|∇p|²/(12 μ) dA minus that of the friction of rotation."""
    film, s = oval_film()
    motion = pair(np.random.default_rng(8))
    wrenches, y = film.wrenches(motion, s), film.pair_motion(motion)
    grid = film.grid
    h, q, flow = grid.gap(y, film.displacement(s[0]))[0], grid._q, grid._flow
    assert h.min() > 4 * film.asperities.roughness
    loss = (flow[0] * (np.roll(q, -1, axis=0) - q) ** 2).sum()
    loss += (flow[1, :, :-1] * np.diff(q, axis=1) ** 2).sum()
    friction = OIL * (y[8] * RADIUS) ** 2 * (grid.areas / h).sum()  # y[8]: speed
    power = wrenches @ np.concatenate([motion.u1, motion.u2, s[1]])
    assert -power == pytest.approx(loss / (12 * OIL) + friction, rel=1e-3)


def test_moments_are_those_of_the_tractions_on_both_surfaces() -> None:
    """Shear, and the pressure on the inclined surface of the bore, turn both bodies."""
    film, s = oval_film()
    e, speed = np.array([0.3, -0.2, 0.0]) * CLEARANCE, 500.0
    turning = np.array([0, 0, 0, 0, 0, speed])
    motion = FramePair(np.zeros(3), np.eye(3), np.zeros(6), e, np.eye(3), turning)
    y, s[1] = film.pair_motion(motion), 0.0
    wrenches, p, w = film.wrenches(motion, s), film.pressure(y, s), film.displacement(s[0])
    grid = film.grid
    h = grid.gap(y, w)[0]
    assert h.min() > 4 * film.asperities.roughness

    def by_angle(f: np.ndarray) -> np.ndarray:
        return np.asarray((np.roll(f, -1, axis=0) - np.roll(f, 1, axis=0)) / (2 * grid.theta[1]))

    rotation, gradient = OIL * speed * RADIUS**2 / h, 0.5 * h * by_angle(p)
    journal = ((-rotation - gradient) * grid.areas).sum()
    bore = ((rotation - gradient - p * by_angle(w)) * grid.areas).sum()
    inclined = abs((p * by_angle(w) * grid.areas).sum())
    # Moments about the axis on the journal (11) and on the bore (5)
    assert wrenches[11] == pytest.approx(journal, abs=5e-3 * inclined)
    assert wrenches[5] == pytest.approx(bore, abs=5e-3 * inclined)


def journal_system(film: FiniteBearing, body: mbd.ReducedBody, force: float) -> mbd.System:
    """Return a loaded, rotating journal in the bore of a ring whose frame is held."""
    ground = mbd.Ground({"centre": mbd.Frame()})
    ring = mbd.FlexibleBody("ring", body, damping_ratio=0.3)
    pin = {"pin": mbd.Frame()}
    journal = mbd.RigidBody(
        "journal", 0.5, [1.0] * 3, (0, -1e-5, 0), frames=pin, velocity=(0, 0, 0), omega=(0, 0, 500)
    )
    joints = [
        mbd.fixed("held", ground.frame("centre"), ring.frame("bore")),
        mbd.mechanism.Joint("plane", "planar", ground.frame("centre"), journal.frame("pin")),
    ]
    load = mbd.force("load", journal.frame("pin"), (0.0, -force, 0.0))
    return mbd.System([ground, ring, journal], joints, loads=[film, load])


def settled(
    film: FiniteBearing, body: mbd.ReducedBody, t_end: float, dt: float
) -> mbd.results.Solution:
    """Return a run in which the journal sinks under a force of 3000 N."""
    system = journal_system(film, body, 3000.0)
    return mbd.simulate(system, t_end=t_end, dt=dt, stride=20)


def test_the_bore_is_in_equilibrium_with_the_pressure() -> None:
    """At rest, η is the static deformation by the pressure, and the film carries the load."""
    body = elastic_body()
    film = bearing(body)
    run = settled(film, body, 0.01, 5e-5)
    eta, history = run.body("ring").eta[-1], run.element("film")
    motion = film.motion_vector(
        history.displacement[-1, :2], history.displacement_rate[-1, :2], speed=run_speed(run)
    )
    surface = np.array([film.surface @ eta, film.surface @ run.body("ring").eta_rate[-1]])
    loads, _, facts = film.film_loads(motion, False, surface)
    assert np.hypot(*loads[:2]) == pytest.approx(3000.0, rel=1e-3)
    static = np.linalg.solve(body.stiffness, film.surface.T @ loads[5:])
    np.testing.assert_allclose(eta, static, atol=1e-3 * np.abs(static).max())
    assert np.abs(static).max() > 0.05 * CLEARANCE
    assert history.film_thickness[-1] == pytest.approx(facts[0])
    p = film.pressure(motion, surface)
    normal = np.array([np.cos(film.grid.theta), np.sin(film.grid.theta)])
    force = -normal @ (p * film.grid.areas).sum(axis=1)
    np.testing.assert_allclose(force, loads[:2], rtol=1e-9)


def run_speed(run: mbd.results.Solution) -> float:
    """Return the speed of the journal at the end, rad/s."""
    return float(run.body("journal").omega[-1, 2])


def test_a_stiff_bore_is_a_rigid_bore() -> None:
    """With a million times the stiffness, orbit, gap and pressure are those of a rigid bore."""
    soft, stiff = elastic_body(), elastic_body(1e-6)
    rigid = FiniteBearing("film", ("ring", "bore"), ("journal", "pin"), *SIZES, shape=(32, 8))
    reference = settled(rigid, stiff, 0.003, 1e-5).element("film")
    history = settled(bearing(stiff), stiff, 0.003, 1e-5).element("film")
    for key in ("displacement", "film_thickness", "peak_pressure"):
        # The start excites the stiff modes; the method multiplies their oscillation by 0.8 in each
        # step, so that it has vanished after three outputs, 60 steps
        expected = getattr(reference, key)[3:]
        np.testing.assert_allclose(
            getattr(history, key)[3:], expected, atol=1e-4 * np.abs(expected).max()
        )
    elastic = settled(bearing(soft), soft, 0.003, 1e-5).element("film")
    assert elastic.peak_pressure[-1] < 0.98 * reference.peak_pressure[-1]


def test_the_picture_of_the_pressure_contains_the_deformation_of_the_bore() -> None:
    """At the end of a run, the largest value of the picture is the peak pressure of the history."""
    body = elastic_body()
    film = bearing(body)
    run = settled(film, body, 0.002, 5e-5)
    motion, history = mbd.bearings.journal_motion(run, "film")[-1], run.body("ring")
    with pytest.raises(InputError, match="elastic bore, whose displacement"):
        mbd.plotting.plot_film_pressure(film, motion)
    surface = [film.surface @ history.eta[-1], film.surface @ history.eta_rate[-1]]
    figure = mbd.plotting.plot_film_pressure(film, motion, surface=surface)
    peak = 1e-6 * run.element("film").peak_pressure[-1]
    assert figure.axes[0].collections[0].levels[-1] == pytest.approx(peak)
    assert 1e-6 * film.pressure(motion).max() > 1.02 * peak


def test_errors() -> None:
    """A bore of another size or of another body, and a missing bore, are errors."""
    body = elastic_body()
    with pytest.raises(InputError, match="radius"):
        ElasticBearing("film", ("a", "b"), ("c", "d"), 0.021, *SIZES[1:], bore=body.bore("bore"))
    with pytest.raises(InputError, match="bore"):
        ElasticBearing("film", ("a", "b"), ("c", "d"), *SIZES)
    doubled = replace(body.bores[0], displacement=2.0 * body.bores[0].displacement)
    film = bearing(body.replace(bores=(doubled,)))
    with pytest.raises(InputError, match="same reduced body"):
        journal_system(film, body, 0.0)
    with pytest.raises(InputError, match="pressure modes"):
        journal_system(bearing(body), body.replace(bores=()), 0.0)
