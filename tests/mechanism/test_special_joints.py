"""Screw, rack and pinion, constant velocity, points on curves and rolling against closed forms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics.start.consistent_state import consistent_state
from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.results.histories import rotation_matrices

Array = np.ndarray
G = 9.81
GROUND = mbd.Ground({"o": mbd.Frame()})
O = GROUND.frame("o")  # noqa: E741


def turned(*vector: float) -> Array:
    """Return the rotation matrix of a rotation vector."""
    return exp_rotation(np.array(vector))


def drift(run: mbd.results.Solution) -> float:
    """Return the change of the energy relative to the largest kinetic energy."""
    energies = run.energies()
    return float(np.ptp(energies.total) / energies.kinetic.max())


# ---- screw --------------------------------------------------------------------------------------
def nut(pitch: float, mass: float = 2.0, inertia: float = 1e-3, **options: float) -> mbd.System:
    """Return a nut on a vertical screw under gravity."""
    body = mbd.RigidBody("nut", mass, [inertia] * 3, frames={"o": mbd.Frame()})
    joint = mbd.screw("screw", O, body.frame("o"), pitch, **options)
    return mbd.System([GROUND, body], [joint], gravity=(0, 0, -G))


@pytest.mark.parametrize(("pitch", "mass", "inertia"), [(0.01, 2.0, 1e-3), (-0.3, 1.0, 0.02)])
def test_a_nut_falls_with_the_inertia_of_its_rotation(
    pitch: float, mass: float, inertia: float
) -> None:
    run = mbd.simulate(nut(pitch, mass, inertia), t_end=1.0, dt=0.02)
    per_radian = pitch / (2 * np.pi)
    a = -mass * G / (mass + inertia / per_radian**2)
    joint = run.joint("screw")
    assert np.allclose(joint.displacement[:, 2], 0.5 * a * run.time**2, atol=1e-12 * abs(a))
    assert np.allclose(joint.rotation * per_radian, joint.displacement[:, 2], atol=1e-13)
    assert np.allclose(joint.force, [0, 0, mass * (a + G)])
    assert np.allclose(joint.moment, [0, 0, inertia * a / per_radian])
    assert drift(run) < 1e-12
    assert np.abs(joint.power).max() < 1e-12 * mass * G


def test_full_turns_of_a_screw_follow_from_its_position() -> None:
    """A later start several turns away is consistent, and a driver may prescribe many turns."""
    system = nut(0.01)
    run = mbd.simulate(system, t_end=1.0, dt=0.02)
    assert abs(run.joint("screw").rotation[-1]) > 4 * np.pi
    state = consistent_state(system, q=run.q[-1], v=run.v[-1])
    assert np.allclose(state.q, run.q[-1], atol=1e-12)
    driver = mbd.Driver("spin", "screw", mbd.constant_speed(40.0))
    body = mbd.RigidBody("nut", 1.0, [1e-3] * 3, frames={"o": mbd.Frame()})
    joint = mbd.screw("screw", O, body.frame("o"), 0.02)
    driven = mbd.analyses.kinematic_analysis(
        mbd.System([GROUND, body], [joint], drivers=[driver]), np.linspace(0, 2, 101)
    )
    expected = 0.02 * 40 * driven.time / (2 * np.pi)
    assert np.allclose(driven.joint("screw").displacement[:, 2], expected, atol=1e-12)


def test_a_spring_along_a_screw() -> None:
    """Equilibrium and frequency contain the inertia of the rotation."""
    system = nut(0.05)
    spring = mbd.JointSpring("spring", "screw", stiffness=200.0, motion="displacement")
    sprung = mbd.System(system.bodies, system.joints, loads=[spring], gravity=(0, 0, -G))
    state = mbd.equilibrium(sprung)
    z = -2.0 * G / 200.0
    position = state.q[system.q_slices[system.body_index("nut")]][:3]
    assert np.allclose(position, [0, 0, z], atol=1e-9)
    total = 2.0 + 1e-3 / (0.05 / (2 * np.pi)) ** 2
    (frequency,) = mbd.linearize(sprung, state).frequencies
    assert frequency == pytest.approx(np.sqrt(200.0 / total) / (2 * np.pi), rel=1e-9)


# ---- rack and pinion ----------------------------------------------------------------------------
def steering(radius: float, mass: float = 3.0, inertia: float = 0.02) -> mbd.System:
    """Return a pinion in a bearing and a guided rack, pulled by a force along global x."""
    guide = turned(0, np.pi / 2, 0)  # z of the guide along global x
    ground = mbd.Ground({"bearing": mbd.Frame(), "guide": mbd.Frame((0.2, -radius, 0), guide)})
    rack = mbd.RigidBody(
        "rack",
        mass,
        [0.1] * 3,
        position=(0.2, -radius, 0),
        frames={"guide": mbd.Frame((0, 0, 0), guide), "teeth": mbd.Frame((-0.1, 0, 0))},
    )
    pinion = mbd.RigidBody("pinion", 1.0, [0.1, 0.1, inertia], frames={"o": mbd.Frame()})
    joints = [
        mbd.revolute("bearing", ground.frame("bearing"), pinion.frame("o")),
        mbd.prismatic("guide", ground.frame("guide"), rack.frame("guide")),
        mbd.rack_and_pinion("teeth", rack.frame("teeth"), pinion.frame("o"), radius),
    ]
    pull = mbd.force("pull", rack.frame("guide"), (7.0, 0, 0))
    return mbd.System([ground, rack, pinion], joints, loads=[pull])


@pytest.mark.parametrize(("radius", "mass", "inertia"), [(0.05, 3.0, 0.02), (-0.2, 1.0, 0.15)])
def test_a_rack_moves_with_the_reduced_mass(radius: float, mass: float, inertia: float) -> None:
    system = steering(radius, mass, inertia)
    assert mbd.dynamics.redundancies(system) == []
    run = mbd.simulate(system, t_end=1.0, dt=0.02)
    a = 7.0 / (mass + inertia / radius**2)
    assert np.allclose(run.joint("guide").displacement[:, 2], 0.5 * a * run.time**2, atol=1e-12)
    assert np.allclose(run.joint("bearing").rotation, 0.5 * a / radius * run.time**2, atol=1e-11)
    teeth = run.joint("teeth")  # the force on the teeth is at the distance r from the centre
    assert np.allclose(teeth.force, [inertia * a / radius**2, 0, 0])
    assert np.allclose(teeth.moment, [0, 0, inertia * a / radius])


def tilted_pinion(tilt: float, whole: float) -> mbd.System:
    """Return a pinion with a frame tilted relative to a fixed rack; `whole` rotates both."""
    rack = mbd.Frame((0, 0, 0), turned(whole, 0, 0))
    ground = mbd.Ground({"rack": rack, "bearing": rack})
    frames = {"axle": mbd.Frame(), "teeth": mbd.Frame((0, 0, 0), turned(tilt, 0, 0))}
    pinion = mbd.RigidBody("pinion", 1.0, [0.1] * 3, frames=frames, rotation=turned(whole, 0, 0))
    joints = [
        mbd.cylindrical("bearing", ground.frame("bearing"), pinion.frame("axle")),
        mbd.rack_and_pinion("teeth", ground.frame("rack"), pinion.frame("teeth"), 0.1),
    ]
    return mbd.System([ground, pinion], joints)


@pytest.mark.parametrize("whole", [0.0, 0.4, 1.5])
def test_the_axis_of_a_pinion_is_perpendicular_to_the_rack(whole: float) -> None:
    """Only the angle between rack and pinion counts, and only at the start of a run."""
    for tilt, degrees in ((0.1, "5.73°"), (1.5, "85.9°"), (np.pi / 2, "90°")):
        with pytest.raises(mbd.errors.SolverError, match=f"'teeth'.* tilted by {degrees}"):
            mbd.simulate(tilted_pinion(tilt, whole), t_end=0.1, dt=0.05)
    for tilt in (0.0, 0.02, np.pi):
        mbd.simulate(tilted_pinion(tilt, whole), t_end=0.1, dt=0.05)
    system = tilted_pinion(0.1, whole)
    q = np.concatenate([body.initial_coordinates() for body in system.bodies])
    mbd.dynamics.consistent_state(system, q=q)


# ---- constant velocity --------------------------------------------------------------------------
def shafts(bend: float, kind: str, loads: bool = False) -> mbd.System:
    """Return two shafts that meet at the origin; the second is guided at its far end."""
    R = turned(bend, 0, 0)
    far = R @ [0.0, 0.0, 1.0]
    ground = mbd.Ground({"one": mbd.Frame((0, 0, -1)), "two": mbd.Frame(far, R)})
    one = mbd.RigidBody(
        "one", 1.0, [0.1, 0.1, 0.02], frames={"o": mbd.Frame((0, 0, -1)), "c": mbd.Frame()}
    )
    two = mbd.RigidBody(
        "two",
        1.0,
        [0.1, 0.1, 0.03],
        rotation=(np.cos(bend / 2), np.sin(bend / 2), 0, 0),
        frames={"o": mbd.Frame((0, 0, 1)), "c": mbd.Frame()},
    )
    make = getattr(mbd, kind)
    joints = [
        mbd.revolute("in", ground.frame("one"), one.frame("o"), rate=None),
        make("joint", one.frame("c"), two.frame("c")),
        mbd.point_on_line("out", ground.frame("two"), two.frame("o")),
    ]
    drivers = [mbd.Driver("drive", "in", mbd.constant_speed(4.0))]
    return mbd.System([ground, one, two], joints, drivers=drivers)


@pytest.mark.parametrize(
    "bend", [*(pytest.param(b, marks=pytest.mark.slow) for b in (0.2, 0.9)), 1.5]
)
def test_both_shafts_rotate_by_the_same_angle(bend: float) -> None:
    """Angles are equal to round-off; a universal joint has ratios from cos β to 1/cos β."""
    system = shafts(bend, "constant_velocity")
    assert mbd.dynamics.redundancies(system) == []
    times = np.linspace(0, np.pi, 401)
    axis = turned(bend, 0, 0)[:, 2]

    def speed(run: mbd.results.Solution) -> Array:
        """Return the rotation rate of the second shaft about its axis."""
        return run.body("two").omega[:, 2] * np.sign(axis[2])

    runs = [
        mbd.simulate(system, t_end=np.pi, dt=np.pi / 400),
        mbd.analyses.kinematic_analysis(system, times),
    ]
    for run in runs:
        rotations = rotation_matrices(run.body("two").rotation)
        start = turned(bend, 0, 0)
        turns = np.array([start.T @ R for R in rotations])
        angles = np.unwrap(np.arctan2(turns[:, 1, 0], turns[:, 0, 0]))
        assert np.allclose(angles, run.joint("in").rotation, atol=1e-12)
        assert np.allclose(run.joint("joint").displacement, 0, atol=1e-12)
    universal = mbd.analyses.kinematic_analysis(shafts(bend, "universal"), times)
    ratio = speed(universal) / 4.0
    assert ratio.min() == pytest.approx(np.cos(bend), rel=1e-3)
    assert ratio.max() == pytest.approx(1 / np.cos(bend), rel=1e-3)
    assert np.allclose(speed(runs[1]) / 4.0, 1.0, atol=1e-12)


# ---- points on curves ---------------------------------------------------------------------------
def bead(curve: mbd.mechanism.Curve, u: float) -> mbd.System:
    """Return a bead on a wire at a parameter u of its curve."""
    body = mbd.RigidBody(
        "bead", 1.5, [1e-3] * 3, position=curve.point(u), frames={"o": mbd.Frame()}
    )
    joint = mbd.point_on_curve("wire", O, body.frame("o"), curve)
    return mbd.System([GROUND, body], [joint], gravity=(0, 0, -G))


def cycloid(radius: float, first: float = -3.0) -> mbd.mechanism.Curve:
    """Return a cycloid, on which the period does not depend on the amplitude."""

    def point(u: float) -> tuple[float, float, float]:
        return radius * (u + np.sin(u)), 0.0, radius * (1 - np.cos(u))

    return mbd.mechanism.Curve.of(point, first, 3.0)


@pytest.mark.parametrize(
    ("radius", "start"),
    [
        pytest.param(0.3, 0.5, marks=pytest.mark.slow),
        (0.3, 2.5),
        pytest.param(2.0, 1.7, marks=pytest.mark.slow),
    ],
)
def test_the_period_on_a_cycloid_does_not_depend_on_the_amplitude(
    radius: float, start: float
) -> None:
    curve, period = cycloid(radius), 4 * np.pi * np.sqrt(radius / G)
    errors = []
    for steps in (200, 400):
        run = mbd.simulate(bead(curve, start), t_end=period, dt=period / steps)
        s = curve.arc_coordinate(run.joint("wire").displacement)
        s -= curve.arc_coordinate([[0, 0, 0]])
        exact = 4 * radius * np.sin(start / 2) * np.cos(2 * np.pi * run.time / period)
        errors.append(np.abs(s - exact).max() / np.abs(exact).max())
        assert run.joint("wire").violation.max() < 1e-10 * radius
    assert errors[1] < 4e-4
    assert 3.5 < errors[0] / errors[1] < 4.6
    rest = mbd.equilibrium(bead(curve, start))
    assert mbd.linearize(bead(curve, start), rest).frequencies[-1] == pytest.approx(1 / period)


@pytest.mark.parametrize(
    ("radius", "slope"), [(0.5, 0.1), pytest.param(1.0, 0.2, marks=pytest.mark.slow)]
)
def test_a_bead_on_a_helix(radius: float, slope: float) -> None:
    """The acceleration along the wire is constant, and the normal force is m v²/ρ."""
    helix = mbd.mechanism.Curve.of(
        lambda u: (radius * np.cos(u), radius * np.sin(u), slope * u), -30.0, 0.0, count=600
    )
    run = mbd.simulate(bead(helix, -0.1), t_end=0.8, dt=2e-3)
    size = np.hypot(radius, slope)
    s = helix.arc_coordinate(run.joint("wire").displacement)
    assert np.allclose(s[0] - s, 0.5 * G * slope / size * run.time**2, atol=2e-4 * size)
    speed = G * slope / size * run.time
    inward = -run.joint("wire").displacement * [1, 1, 0] / radius
    force = np.einsum("ti,ti->t", run.joint("wire").force, inward)
    assert np.allclose(force, 1.5 * speed**2 * radius / size**2, atol=2e-3 * 1.5 * G)
    assert drift(run) < 1e-3


def test_a_closed_curve_has_no_end() -> None:
    """A bead passes the start of a vertical ring several times with constant energy."""
    ring = mbd.mechanism.Curve.of(
        lambda u: (0.5 * np.sin(u), 0.0, -0.5 * np.cos(u)), 0.0, 2 * np.pi, closed=True, count=80
    )
    assert ring.length == pytest.approx(np.pi, rel=1e-8)
    system = bead(ring, 0.0)
    start = mbd.dynamics.consistent_state(system, v={"bead.velocity": (5.5, 0, 0)})
    run = mbd.simulate(system, t_end=2.0, dt=2e-3, start=start)
    position = run.body("bead").position
    angle = np.unwrap(np.arctan2(position[:, 0], -position[:, 2]))
    assert angle[-1] > 5 * np.pi
    assert drift(run) < 2e-4
    rate = np.gradient(angle, run.time)[1:-1]
    exact = np.sqrt(5.5**2 / 0.25 - 4 * G * (1 - np.cos(angle[1:-1])))
    assert np.allclose(rate, exact, rtol=2e-3)


def test_the_end_of_an_open_curve() -> None:
    system = bead(cycloid(0.3, first=-0.5), 1.0)
    with pytest.raises(mbd.dynamics.StepError) as record:
        mbd.simulate(system, t_end=2.0, dt=1e-2)
    assert "'wire'" in str(record.value)
    assert 0.2 < record.value.time < 1.5
    assert len(record.value.solution) > 10  # type: ignore[arg-type]
    far = mbd.RigidBody("bead", 1.0, [1] * 3, position=(-2, 0, 0), frames={"o": mbd.Frame()})
    with pytest.raises(mbd.dynamics.AssemblyError) as beyond:
        mbd.dynamics.consistent_state(mbd.System([GROUND, far], system.joints))
    assert "'wire'" in str(beyond.value)


# ---- rolling ------------------------------------------------------------------------------------
def roller(kind: str, ratio: float, angle: float, radius: float = 0.1) -> mbd.System:
    """Return a ball or a disc on an incline; the moment of inertia is `ratio` m r²."""
    inertia = ratio * 2.0 * radius**2
    axes = turned(np.pi / 2, 0, 0) if kind == "rolling_disc" else np.eye(3)
    moments = [0.7 * inertia, inertia, 0.7 * inertia] if kind == "rolling_disc" else [inertia] * 3
    body = mbd.RigidBody(
        "roller", 2.0, moments, position=(0, 0, radius), frames={"o": mbd.Frame((0, 0, 0), axes)}
    )
    joint = getattr(mbd, kind)("contact", O, body.frame("o"), radius)
    down = (G * np.sin(angle), 0, -G * np.cos(angle))
    return mbd.System([GROUND, body], [joint], gravity=down)


@pytest.mark.parametrize("angle", [0.1, 0.9])
@pytest.mark.parametrize(
    ("kind", "ratio"),
    [("rolling_ball", 0.4), ("rolling_ball", 2 / 3), ("rolling_disc", 0.5), ("rolling_disc", 1.0)],
)
def test_rolling_down_an_incline(kind: str, ratio: float, angle: float) -> None:
    run = mbd.simulate(roller(kind, ratio, angle), t_end=1.0, dt=0.02)
    a = G * np.sin(angle) / (1 + ratio)
    body, contact = run.body("roller"), run.joint("contact")
    assert np.allclose(body.position[:, 0], 0.5 * a * run.time**2, atol=1e-11)
    assert np.allclose(body.omega[:, 1], a / 0.1 * run.time, atol=1e-10)
    friction = -ratio / (1 + ratio) * 2.0 * G * np.sin(angle)
    assert np.allclose(contact.force, [friction, 0, 2.0 * G * np.cos(angle)], atol=1e-9)
    assert drift(run) < 1e-10
    assert np.abs(contact.power).max() < 1e-10


def leaning_disc(lean: float, precession: float, radius: float) -> tuple[mbd.System, float]:
    """Return a disc in steady precession, and the radius of the circle of its centre.

    The axis f is at the angle θ, `lean`, from the normal n. With the rate Ω of precession and the
    spin w, ω = Ω (n − f cos θ) + w f. A and C are the moments of inertia. The moment about
    the centre requires (C + m r²) w Ω sin θ − A Ω² sin θ cos θ + m g r cos θ = 0.
    """
    m, A, C = 1.2, 0.25 * 1.2 * radius**2, 0.5 * 1.2 * radius**2
    n, f, s, c = np.eye(3)[2], turned(0, lean, 0)[:, 2], np.sin(lean), np.cos(lean)
    spin = A * precession**2 * s * c - m * G * radius * c
    spin /= (C + m * radius**2) * precession * s
    omega = precession * (n - c * f) + spin * f
    body = mbd.RigidBody(
        "disc",
        m,
        [A, A, C],
        position=(0, 0, radius * s),
        rotation=(np.cos(lean / 2), 0, np.sin(lean / 2), 0),
        velocity=-radius * spin * np.cross(n, f) / s,
        omega=turned(0, lean, 0).T @ omega,
        frames={"o": mbd.Frame()},
    )
    joint = mbd.rolling_disc("contact", O, body.frame("o"), radius)
    system = mbd.System([GROUND, body], [joint], gravity=(0, 0, -G))
    return system, abs(radius * spin / precession)


@pytest.mark.parametrize(
    ("lean", "precession", "radius"),
    [pytest.param(1.1, 2.5, 0.3, marks=pytest.mark.slow), (0.8, 9.0, 0.1)],
)
def test_a_disc_rolls_in_a_circle(lean: float, precession: float, radius: float) -> None:
    system, circle = leaning_disc(lean, precession, radius)
    period = 2 * np.pi / precession
    errors = []
    for steps in (200, 400):
        run = mbd.simulate(system, t_end=period, dt=period / steps)
        position = run.body("disc").position
        middle = position[0] + np.cross([0, 0, 1 / precession], run.body("disc").velocity[0])
        distances = np.linalg.norm((position - middle)[:, :2], axis=1)
        errors.append(np.abs(distances - circle).max() / circle)
        assert np.allclose(position[:, 2], radius * np.sin(lean), rtol=5e-3)
        assert run.joint("contact").violation.max() < 1e-10
    assert errors[1] < 2e-3
    assert 3.0 < errors[0] / errors[1] < 5.5


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_wobbling_disc_keeps_its_energy(seed: int) -> None:
    """The contact point does not slip, and the error of the energy is of second order."""
    values = np.random.default_rng(seed).uniform(-1, 1, 3)
    system, _ = leaning_disc(1.2 + 0.1 * values[0], 3.0, 0.3)
    start = consistent_state(system, v={"disc.omega": 4.0 * values + [0, 0, 6]})
    drifts = []
    for dt in (4e-3, 2e-3):
        run = mbd.simulate(system, t_end=0.6, dt=dt, start=start)
        drifts.append(drift(run))
        body = run.body("disc")
        R = rotation_matrices(body.rotation)
        f, n = R[:, :, 2], np.array([0, 0, 1.0])
        c, s = f @ n, np.linalg.norm(np.cross(f, n), axis=1)
        # From the centre to the lowest point of the disc
        arm = -0.3 * (n - c[:, None] * f) / s[:, None]
        slip = body.velocity + np.cross(np.einsum("tij,tj->ti", R, body.omega), arm)
        assert np.abs(slip[:, :2]).max() < 1e-7
    assert drifts[1] < 2e-3
    assert drifts[1] < 0.35 * drifts[0]


def test_a_disc_that_falls_flat() -> None:
    system, _ = leaning_disc(1.2, 3.0, 0.3)
    start = consistent_state(system, v=np.zeros(6))
    with pytest.raises(mbd.dynamics.StepError):
        mbd.simulate(system, t_end=3.0, dt=1e-3, start=start)


def sleigh(arm: float, mass: float, inertia: float, spin: float) -> mbd.System:
    """Return Chaplygin's sleigh: a body on a knife edge at a distance from its centre of mass."""
    body = mbd.RigidBody(
        "sleigh",
        mass,
        [inertia] * 3,
        position=(arm, 0, 0),
        velocity=(0, arm * spin, 0),
        omega=(0, 0, spin),
        frames={"edge": mbd.Frame((-arm, 0, 0))},
    )
    return mbd.System([GROUND, body], [mbd.knife_edge("edge", O, body.frame("edge"))])


@pytest.mark.parametrize(("arm", "mass", "inertia"), [(0.4, 2.0, 0.3), (0.1, 1.0, 0.05)])
def test_chaplygin_sleigh(arm: float, mass: float, inertia: float) -> None:
    """ω = ω₀/cosh bt and v = k ω₀ tanh bt along the edge, with k² = J/m + a² and b = a ω₀/k."""
    k, spin = np.sqrt(inertia / mass + arm**2), 3.0
    errors = []
    for dt in (0.02, 0.01):
        run = mbd.simulate(sleigh(arm, mass, inertia, spin), t_end=4.0, dt=dt)
        b, angle = arm * spin / k, run.joint("edge").rotation
        body = run.body("sleigh")
        along = body.velocity[:, 0] * np.cos(angle) + body.velocity[:, 1] * np.sin(angle)
        errors.append(
            max(
                np.abs(body.omega[:, 2] - spin / np.cosh(b * run.time)).max(),
                np.abs(along - k * spin * np.tanh(b * run.time)).max(),
            )
        )
        rates = run.joint("edge").displacement_rate
        sideways = rates[:, 1] * np.cos(angle) - rates[:, 0] * np.sin(angle)
        assert np.abs(sideways).max() < 1e-7
    assert errors[1] < 5e-4
    assert 3.5 < errors[0] / errors[1] < 4.5


METHODS: dict[str, Callable[[mbd.System], mbd.results.Solution]] = {
    "adaptive": lambda s: mbd.simulate(s, t_end=1.0, dt="adaptive"),
    "undamped": lambda s: mbd.simulate(
        s, t_end=1.0, dt=5e-3, method=mbd.GeneralizedAlpha.from_spectral_radius(1.0)
    ),
    "damped": lambda s: mbd.simulate(
        s, t_end=1.0, dt=5e-3, method=mbd.GeneralizedAlpha.from_spectral_radius(0.3)
    ),
}


@pytest.mark.parametrize("method", METHODS)
def test_steppers(method: str) -> None:
    system = sleigh(0.4, 2.0, 0.3, 3.0)
    run = METHODS[method](system)
    k = np.sqrt(0.3 / 2.0 + 0.16)
    exact = 3.0 / np.cosh(0.4 * 3.0 / k * run.time)
    assert np.allclose(run.body("sleigh").omega[:, 2], exact, atol=2e-3)


def test_implicit_euler_and_sparse_matrices() -> None:
    system = sleigh(0.4, 2.0, 0.3, 3.0)
    exact = 3.0 / np.cosh(0.4 * 3.0 / np.sqrt(0.3 / 2.0 + 0.16) * 0.2)  # after 20 steps of 10 ms
    steppers = [
        (mbd.dynamics.ImplicitEuler(system), 0.03),
        (mbd.dynamics.Stepper(system, sparse=True), 1e-4),
    ]
    for stepper, tolerance in steppers:
        state = stepper.begin(mbd.dynamics.consistent_state(system), 1e-2)
        for _ in range(20):
            state = stepper.step(state, 1e-2)
        assert state.v[-1] == pytest.approx(exact, abs=tolerance)
