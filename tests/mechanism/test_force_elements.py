"""Springs, dampers, bushings, friction: derivatives, energies, closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import GeneralizedAlpha, System, consistent_state
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.mechanism import (
    Bushing,
    FlexibleBody,
    Frame,
    Ground,
    JointFriction,
    JointLoad,
    JointSpring,
    RigidBody,
    SpringDamper,
    prismatic,
    revolute,
    spherical,
)
from dolfinx_mbd.mechanism.force_elements import FramePair, PairElement
from dolfinx_mbd.results import Solution
from tests.kernels.test_floating_frame import differences
from tests.models.particles import Particles

A, B = ("one", "a"), ("two", "b")  # body and frame at both ends of an element
# Axes of a frame whose z axis is along global x
ALONG_X = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])


def random_pair(rng: np.random.Generator) -> FramePair:
    """Return two moving frames whose orientations differ by about 1 rad."""
    Q1 = exp_rotation(rng.normal(size=3))
    Q2 = Q1 @ exp_rotation(0.6 * rng.normal(size=3))
    x, u = rng.normal(size=(2, 3)), rng.normal(size=(2, 6))
    return FramePair(x[0], Q1, u[0], x[1], Q2, u[1])


def moved(pair: FramePair, d: np.ndarray) -> FramePair:
    """Return the frames after displacements and rotations d (12,) in global axes."""
    return pair._replace(
        p1=pair.p1 + d[:3],
        Q1=exp_rotation(d[3:6]) @ pair.Q1,
        p2=pair.p2 + d[6:9],
        Q2=exp_rotation(d[9:]) @ pair.Q2,
    )


def full(seed: int) -> np.ndarray:
    """Return a random positive definite matrix (6, 6)."""
    factor = np.random.default_rng(seed).normal(size=(6, 6))
    return factor @ factor.T


ELEMENTS = [
    SpringDamper("linear", A, B, 3.0, 0.4, 0.3),
    SpringDamper("law", A, B, law=lambda s, rate: s**3 + s * np.tanh(rate)),
    Bushing("diagonal", A, B, np.arange(1.0, 7.0), np.arange(2.0, 8.0)),
    Bushing("full", A, B, full(1), full(2), (np.ones(3), exp_rotation(np.array([0.3, 0.1, -0.2])))),
]


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda e: e.name)
def test_derivatives_and_energy_of_elements_between_frames(element: PairElement) -> None:
    """Derivatives equal differences; at rest, wrenches are minus the gradient of the energy.

    Forces and moments sum to zero. D and E are the derivatives by the poses and the velocities.
    """
    rng = np.random.default_rng(4)
    element = element.placed(random_pair(rng))
    for _ in range(3):
        pair = random_pair(rng)
        D, E = element.derivatives(pair)
        by_pose = differences(lambda d: element.wrenches(moved(pair, d)), 12)
        by_speed = differences(
            lambda d: element.wrenches(pair._replace(u1=pair.u1 + d[:6], u2=pair.u2 + d[6:])), 12
        )
        assert np.allclose(D, by_pose, atol=1e-8 * np.abs(D).max())
        assert np.allclose(E, by_speed, atol=1e-8 * np.abs(E).max())
        wrench = element.wrenches(pair)
        assert np.allclose(wrench[:3], -wrench[6:9], atol=1e-13)
        moments = wrench[3:6] + wrench[9:] + np.cross(pair.p1, wrench[:3])
        assert np.allclose(moments + np.cross(pair.p2, wrench[6:9]), 0, atol=1e-12)
        still = pair._replace(u1=np.zeros(6), u2=np.zeros(6))
        slope = differences(lambda d: np.array(element.energy(moved(still, d))), 12)
        assert np.allclose(element.wrenches(still), -slope, atol=1e-8 * np.abs(slope).max())


@pytest.mark.parametrize(
    "element",
    [
        JointSpring("linear", "j", 3.0, 0.4, 0.2),
        JointSpring("law", "j", free=0.1, law=lambda s, rate: s**3 + s * s * rate),
        JointFriction("dry", "j", 0.7, 0.5),
        JointFriction("stick", "j", 0.7, 0.5, static=1.2, stribeck=0.9, viscous=0.1),
    ],
    ids=lambda e: e.name,
)
def test_derivatives_and_energy_along_joints(element: JointSpring | JointFriction) -> None:
    for s, rate in ((0.4, 0.3), (-0.7, -1.1), (0.9, 0.0)):
        exact = element.derivatives(0.0, s, rate)
        h = 1e-6
        by_s = element.magnitude(0, s + h, rate) - element.magnitude(0, s - h, rate)
        by_rate = element.magnitude(0, s, rate + h) - element.magnitude(0, s, rate - h)
        assert np.allclose(exact, np.array([by_s, by_rate]) / (2 * h), atol=1e-8)
        slope = (element.energy(s + h) - element.energy(s - h)) / (2 * h)
        if isinstance(element, JointSpring):
            assert np.isclose(element.magnitude(0, s, 0.0), -slope, atol=1e-8)
        else:
            assert element.magnitude(0, s, rate) * rate <= 0


def energy_of_bodies(run: Solution) -> np.ndarray:
    """Return the sum of kinetic, elastic and gravitational energy of the bodies over time."""
    s, energy = run.system, np.zeros(len(run))
    for body, qs, vs in zip(s.bodies, s.q_slices, s.v_slices, strict=True):
        states = zip(run.q[:, qs], run.v[:, vs], strict=True)
        energy += [body.energies(q, v, s.gravity).sum() for q, v in states]
    return energy


def stored(run: Solution) -> np.ndarray:
    """Return the energy in springs and bushings over time."""
    eqs, energy = Assembler(run.system), []
    for t, q, angles in zip(run.time, run.q, run.angles, strict=True):
        eqs.q[:], eqs.angles[:] = q, angles
        eqs.update_poses(float(t))
        energy.append(eqs.loads.stored_energy())
    return np.array(energy)


def slider(*elements: object, mass: float = 2.0) -> System:
    """Return a mass on a rail along x, 0.5 m from a wall."""
    ground = Ground({"wall": Frame(), "rail": Frame((0, 0, 0), ALONG_X)})
    block = RigidBody.box(
        "block",
        (0.1,) * 3,
        mass=mass,
        frames={"c": Frame(), "rail": Frame((0, 0, 0), ALONG_X)},
        position=(0.5, 0, 0),
    )
    rail = prismatic("rail", ground.frame("rail"), block.frame("rail"))
    return System([ground, block], [rail], loads=elements)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["spring", "along the joint", "bushing"])
def test_oscillator(kind: str) -> None:
    """Position x₀ + v₀/ω sin ωt, ω² = k/m; the trapezoidal rule changes ω by −ω (ω dt)²/12."""
    k, m, v0 = 800.0, 2.0, 1.0
    ends = ("ground", "wall"), ("block", "c")
    element = {
        "spring": SpringDamper("spring", *ends, k),
        "along the joint": JointSpring("spring", "rail", k),
        "bushing": Bushing("spring", *ends, (k, 0, 0, 0, 0, 0)),
    }[kind]
    system, omega = slider(element, mass=m), np.sqrt(k / m)
    dt = 2 * np.pi / omega / 400
    run = simulate(
        system, t_end=800 * dt, dt=dt, start={"rail": v0}, method=GeneralizedAlpha.newmark()
    )
    x = run.body("block").position[:, 0] - 0.5
    omega_of_steps = omega * (1 - (omega * dt) ** 2 / 12)
    assert np.allclose(x, v0 / omega * np.sin(omega_of_steps * run.time), atol=2e-5 * v0 / omega)
    energy = energy_of_bodies(run) + stored(run)
    assert np.ptp(energy) < 1e-6 * energy[0]
    assert stored(run).max() > 0.999 * energy[0]


def test_damped_torsional_oscillator() -> None:
    """φ = φ₀ exp(−δt) (cos ωt + δ/ω sin ωt), with δ = c/2J, ω² = k/J − δ²."""
    inertia, k, c, start = 0.02, 5.0, 0.05, 0.4
    ground = Ground({"o": Frame()})
    half = 0.5 * start
    disc = RigidBody(
        "disc",
        1.0,
        [0.01, 0.01, inertia],
        frames={"o": Frame()},
        rotation=(np.cos(half), 0, 0, np.sin(half)),
    )
    spring = JointSpring("spring", "axle", k, c, free=0.0)
    joint = revolute("axle", ground.frame("o"), disc.frame("o"))
    run = simulate(System([ground, disc], [joint], loads=[spring]), t_end=1.0, dt=2e-4)
    delta = c / (2 * inertia)
    omega = np.sqrt(k / inertia - delta**2)
    t = run.time
    exact = start * np.exp(-delta * t) * (np.cos(omega * t) + delta / omega * np.sin(omega * t))
    assert np.allclose(run.joint("axle").rotation, exact, atol=1e-5 * start)


def test_coulomb_stop() -> None:
    """Regularized with tanh: sinh(v/w) = sinh(V/w) exp(−F t/(m w)) with the initial speed V.

    Without the regularization, the block stops at t = m V/F.
    """
    mass, limit, width, speed = 2.0, 3.0, 0.01, 0.6
    system = slider(JointFriction("dry", "rail", limit, width), mass=mass)
    stop = mass * speed / limit
    run = simulate(system, t_end=1.2 * stop, dt=stop / 4000, start={"rail": speed})
    v, t = run.body("block").velocity[:, 0], run.time
    exact = width * np.arcsinh(np.sinh(speed / width) * np.exp(-limit * t / (mass * width)))
    assert np.allclose(v, exact, atol=1e-4 * speed)
    assert np.interp(0.05 * speed, v[::-1], t[::-1]) == pytest.approx(0.95 * stop, rel=1e-3)
    assert abs(v[-1]) < 1e-6 * speed
    x = run.body("block").position[:, 0]
    assert x[-1] - x[0] == pytest.approx(0.5 * speed * stop, rel=1e-3)


def test_creep_under_a_force_below_the_limit_of_friction() -> None:
    """Regularized friction with the limit F_c and the width w: v = w artanh(F/F_c)."""
    width, limit, push = 1e-3, 3.0, 1.5
    friction = JointFriction("dry", "rail", limit, width)
    system = slider(friction, JointLoad("push", "rail", "displacement", push))
    run = simulate(system, t_end=0.05, dt=1e-4)
    v = run.body("block").velocity[-1, 0]
    assert v == pytest.approx(width * np.arctanh(push / limit), rel=1e-4)


@pytest.mark.parametrize("flexible", [False, True], ids=["rigid", "flexible"])
@pytest.mark.parametrize("kind", ["spring", "law", "bushing"])
def test_energy_and_momentum_of_bodies_on_springs(kind: str, flexible: bool) -> None:
    """Energy and momentum of two free bodies are constant up to errors of the order dt²."""
    rng = np.random.default_rng(3)
    one = RigidBody.box(
        "one", (0.2, 0.3, 0.4), mass=2.0, centre=(0.1, 0, 0), frames={"a": Frame((0.1, 0.2, 0.3))}
    )
    two: RigidBody | FlexibleBody
    if flexible:
        reduced = Particles(num_modes=2, seed=3).body().replace(damping=np.zeros((2, 2)))
        two = FlexibleBody("two", reduced, (0.5, 0.6, 0.1), damping_ratio=0.0)
        end = reduced.interfaces[0].name
    else:
        frames, end = {"b": Frame()}, "b"
        two = RigidBody.box("two", (0.3,) * 3, mass=1.0, frames=frames, position=(0.5, 0.6, 0.1))
    ends = one.frame("a"), two.frame(end)
    stiff = 200.0
    element = {
        "spring": SpringDamper("e", *ends, stiff),
        "law": SpringDamper("e", *ends, length=0.6, law=lambda s, rate: 20.0 * (s - 0.6) * s),
        "bushing": Bushing("e", *ends, (stiff, stiff, 2 * stiff, 5.0, 6.0, 7.0)),
    }[kind]
    system = System([one, two], loads=[element])
    v = 0.5 * rng.normal(size=system.num_velocities)
    start = consistent_state(system, elastic_start="undeformed", v=v)
    changes = []
    for dt in (4e-3, 2e-3):
        run = simulate(system, t_end=0.4, dt=dt, start=start, tolerance=1e-10)
        spring, momentum = stored(run), run.momenta()
        energy = energy_of_bodies(run) + spring
        assert np.ptp(spring) > 1e-3 * energy[0]
        changes.append([np.ptp(energy) / energy[0], np.abs(momentum - momentum[0]).max()])
    coarse, fine = np.array(changes)
    assert (fine < 2e-3 * np.array([1.0, np.abs(momentum[0]).max()])).all()
    assert (fine < 0.35 * coarse + 1e-8).all()


def test_a_damper_dissipates_the_integral_of_its_power() -> None:
    """The energy decreases by ∫ c v² dt."""
    system = slider(SpringDamper("strut", ("ground", "wall"), ("block", "c"), 300.0, 4.0))
    run = simulate(system, t_end=0.5, dt=1e-4, start={"rail": 2.0})
    v = run.body("block").velocity[:, 0]
    energy = energy_of_bodies(run) + stored(run)
    power = 4.0 * v**2
    lost = np.sum(0.5 * (power[1:] + power[:-1]) * np.diff(run.time))
    assert lost > 0.2 * energy[0]
    assert energy[0] - energy[-1] == pytest.approx(lost, rel=1e-5)


def test_defaults_are_free_of_force_at_the_initial_positions() -> None:
    """By default, lengths, angles and neutral poses without force are the initial ones."""
    ends = ("ground", "wall"), ("block", "c")
    elements = (
        SpringDamper("a", *ends, 10.0),
        Bushing("b", *ends, (10.0,) * 6),
        JointSpring("c", "rail", 10.0),
    )
    system = slider(*elements)
    assert system.loads[0].length == 0.5  # type: ignore[union-attr]
    assert system.loads[2].motion == "displacement"  # type: ignore[union-attr]
    eqs = Assembler(system)
    eqs.q[:] = system.body("block").initial_coordinates()
    eqs.residual(0.0)
    assert np.abs(eqs.rows).max() < 1e-13
    assert eqs.loads.stored_energy() < 1e-25


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: SpringDamper("s", A, B, -1.0), ValueError, "^load 's': stiffness must be"),
        (lambda: SpringDamper("s", A, B, 1.0, np.nan), ValueError, "^load 's': damping must be"),
        (lambda: SpringDamper("s", A, B, length=-1), ValueError, "'s': length must"),
        (lambda: SpringDamper("s", A, "b", 1.0), TypeError, "second must be a frame of a body"),
        (lambda: SpringDamper("s", A, A, 1.0), ValueError, "connects frame 'a' of body 'one' with"),
        (
            lambda: slider(SpringDamper("s", ("block", "c"), ("block", "rail"), 1.0)),
            ValueError,
            "connects body 'block', which does not deform, with itself",
        ),
        (lambda: SpringDamper("s", A, B, 1.0, law=max), ValueError, "either a law or stiffness"),
        (lambda: SpringDamper("s", A, B, law=3.0), TypeError, "law must be a function"),
        (lambda: JointSpring("s", "rail", "soft"), ValueError, "^load 's': stiffness must be"),
        (lambda: JointSpring("s", "rail", 1.0, free=np.inf), ValueError, "a finite number"),
        (lambda: JointFriction("f", "rail", 1.0, 0.0), ValueError, "^load 'f': rate must be"),
        (lambda: JointFriction("f", "rail", -1.0, 1.0), ValueError, "^load 'f': limit must be"),
        (lambda: JointFriction("f", "rail", 2.0, 1.0, 1.0), ValueError, "'f': static must be"),
        (lambda: Bushing("b", A, B, (1, 2, 3)), ValueError, "^bushing 'b': stiffness"),
        (lambda: Bushing("b", A, B, (1, 2, 3, 4, 5, -6)), ValueError, "^bushing 'b': stiffness"),
        (lambda: Bushing("b", A, B, np.triu(np.ones((6, 6)))), ValueError, "'b': stiffness"),
        (lambda: Bushing("b", A, B, (1,) * 6, neutral=(0, 1)), ValueError, "neutral must be"),
        (
            lambda: Bushing("b", A, B, (1,) * 6, neutral=(np.zeros(3), np.diag([1, 1, -1]))),
            ValueError,
            "neutral must be",
        ),
        (lambda: slider(SpringDamper("s", A, B, 1.0)), ValueError, "is not one of the bodies"),
        (
            lambda: slider(JointSpring("s", "rail", 1.0, motion="rotation")),
            ValueError,
            "load 's': prismatic joint 'rail' has no rotation",
        ),
        (lambda: slider(JointFriction("f", "axle", 1, 1)), ValueError, "^name of a joint must"),
    ],
)  # fmt: skip
def test_bad_elements(make, kind: type[Exception], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(kind, match=message):
        make()


def test_a_spring_across_one_flexible_body() -> None:
    """Between two interfaces of a body, it acts on the modes and not on the rigid motion."""
    reduced = Particles(2, 3).body()
    body = FlexibleBody("body", reduced)
    system = System(
        [body], loads=[SpringDamper("tie", *map(body.frame, ("one", "two")), 5.0, 0, 0)]
    )
    eqs = Assembler(system)
    eqs.q[:] = body.initial_coordinates()
    eqs.residual(0.0)
    assert np.abs(eqs.rows[:6]).max() < 1e-12
    assert np.abs(eqs.rows[6:]).max() > 1e-2
    slope = []
    for k in range(2):
        energies = []
        for h in (1e-6, -1e-6):
            eqs.q[7 + k] = h
            eqs.update_poses(0.0)
            energies.append(eqs.loads.stored_energy())
        eqs.q[7 + k] = 0.0
        slope.append((energies[0] - energies[1]) / 2e-6)
    assert np.allclose(eqs.rows[6:], slope, atol=1e-8)


def ball(*loads: object, **start: object) -> System:
    """Return a body on a spherical joint."""
    ground = Ground({"o": Frame()})
    body = RigidBody("bob", 1.0, [0.1] * 3, frames={"c": Frame()}, **start)  # type: ignore[arg-type]
    joint = spherical("ball", ground.frame("o"), body.frame("c"))
    return System([ground, body], [joint], loads=loads)  # type: ignore[arg-type]


def test_elements_outside_of_their_range_are_errors() -> None:
    """A spring whose ends meet, a bushing rotated by π, and a law that returns NaN are errors."""
    ends = ("ground", "o"), ("bob", "c")
    with pytest.raises(ValueError, match="spring 's': its ends meet"):
        simulate(ball(SpringDamper("s", *ends, 1.0, 0.0, 1.0)), t_end=0.1, dt=0.01)
    mount = Bushing("mount", *ends, (1.0,) * 6, neutral=(np.zeros(3), np.eye(3)))
    with pytest.raises(ValueError, match=r"bushing 'mount' is turned by 3\.1"):
        simulate(ball(mount, rotation=(0, 0, 0, 1)), t_end=0.1, dt=0.01)
    with pytest.raises(ValueError, match=r"^load 's': value of the law must be"):
        law = SpringDamper("s", ("ground", "wall"), ("block", "c"), law=lambda s, rate: np.nan)
        simulate(slider(law), t_end=0.1, dt=0.01)
