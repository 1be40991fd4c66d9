"""Linearized mechanisms: closed forms, a body against its own linearization, a motion's decay."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.analyses import SteadyError, equilibrium, linearize, simulate
from dolfinx_mbd.analyses.small_motions import (
    Axes,
    free_directions,
    small_motions,
    steady_rates,
)
from dolfinx_mbd.body import ReducedBody, Stiffening
from dolfinx_mbd.body.response import linearize_body
from dolfinx_mbd.dynamics import System, consistent_state
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.kernels.rotations import exp_rotation, rotation_matrix, rotation_vector
from dolfinx_mbd.mechanism import (
    Bushing,
    Driver,
    FlexibleBody,
    Frame,
    Ground,
    JointLoad,
    RigidBody,
    constant_speed,
    cylindrical,
    fixed,
    force,
    prismatic,
    revolute,
    spherical,
)
from dolfinx_mbd.mechanism.mechanisms import slider_crank
from tests.models.beams import slender_rod
from tests.models.particles import Particles

GRAVITY = 9.81
ALONG_X = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])


def pendulum(angle: float = 0.0, damping: float = 0.0) -> System:
    """Return a pendulum at an initial angle, with a damper in its hinge."""
    ground = Ground({"o": Frame()})
    rotation = (np.cos(angle / 2), 0, 0, np.sin(angle / 2))
    bob = RigidBody(
        "bob", 1.3, [0.02, 0.03, 0.04], (0, -0.5, 0), frames={"o": Frame()}, rotation=rotation
    )
    damper = JointLoad("damper", "pivot", "rotation", lambda t, s, rate: -damping * rate)
    return System(
        [ground, bob],
        [revolute("pivot", ground.frame("o"), bob.frame("o"))],
        loads=[damper] if damping else [],
        gravity=(0, -GRAVITY, 0),
    )


def test_pendulum() -> None:
    """ω² is m g s/J if the pendulum hangs, and −m g s/J upside down."""
    square = 1.3 * GRAVITY * 0.5 / (0.04 + 1.3 * 0.25)
    hanging = pendulum()
    down = linearize(hanging, equilibrium(hanging))
    assert np.allclose(down.poles, [1j * np.sqrt(square)], rtol=1e-12)
    assert down.stability == "stable"
    standing = pendulum(np.pi)
    up = linearize(standing, consistent_state(standing))
    assert np.allclose(np.sort(up.poles.real), np.sqrt(square) * np.array([-1, 1]), rtol=1e-12)
    assert up.stability == "unstable"
    assert "bob" in up.summary()


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99, 1.01])
def test_strut_on_a_torsion_spring(share: float) -> None:
    """J ω² = k − F l: the strut buckles if the load F l exceeds the stiffness k of the spring."""
    ground = Ground({"o": Frame()})
    strut = RigidBody(
        "strut", 1.0, [0.01] * 3, (0, 0.5, 0), frames={"o": Frame(), "top": Frame((0, 2.0, 0))}
    )
    spring = JointLoad("spring", "foot", "rotation", lambda t, s, rate: -80.0 * s)
    load = force("load", strut.frame("top"), (0.0, -40.0 * share, 0.0))
    joint = revolute("foot", ground.frame("o"), strut.frame("o"))
    system = System([ground, strut], [joint], loads=[spring, load])
    linear = linearize(system, consistent_state(system))
    square = 80.0 * (1 - share) / (0.01 + 0.5**2)
    assert np.isclose(linear.poles[0] ** 2, -square, rtol=1e-7)
    assert (linear.stability == "unstable") == (share > 1)


@pytest.mark.parametrize(
    ("damping", "stiffness"), [(1e5, 0.0), (1e9, 0.0), (1e5, 40.0), (1e9, 7.2e10)]
)
def test_slow_pole_beside_a_strong_damper(damping: float, stiffness: float) -> None:
    """The poles obey m λ² + c λ + k = 0, also if one is far smaller than the other, or zero."""
    ground = Ground({"o": Frame()})
    slide = RigidBody("slide", 2.0, [0.1] * 3, frames={"o": Frame()})
    load = JointLoad(
        "damper", "guide", "displacement", lambda t, s, rate: -damping * rate - stiffness * s
    )
    guide = prismatic("guide", ground.frame("o"), slide.frame("o"))
    system = System([ground, slide], [guide], loads=[load])
    poles = linearize(system, consistent_state(system)).poles
    slow = -2 * stiffness / (damping + np.sqrt(damping**2 - 8 * stiffness))  # without cancellation
    assert np.allclose(poles, [slow, -damping / 2 - slow], rtol=1e-6)


def test_two_masses_on_springs() -> None:
    """Two sliders in a row have springs to the wall and between them, and a damper on the first."""
    m1, m2, k1, k2, c = 1.0, 2.0, 300.0, 500.0, 3.0
    ground = Ground({"g": Frame((0, 0, 0), ALONG_X)})
    one, two = (
        RigidBody(name, m, [1.0] * 3, frames={"a": Frame((0, 0, 0), ALONG_X)})
        for name, m in (("one", m1), ("two", m2))
    )
    joints = [
        prismatic("wall", ground.frame("g"), one.frame("a")),
        prismatic("between", one.frame("a"), two.frame("a")),
    ]
    loads = [
        JointLoad("s1", "wall", "displacement", lambda t, s, rate: -k1 * s - c * rate),
        JointLoad("s2", "between", "displacement", lambda t, s, rate: -k2 * s),
    ]
    system = System([ground, one, two], joints, loads=loads)
    linear = linearize(system, consistent_state(system))
    A = np.zeros((4, 4))
    A[:2, 2:] = np.eye(2)
    A[2:, :2] = -np.diag([1 / m1, 1 / m2]) @ np.array([[k1 + k2, -k2], [-k2, k2]])
    A[2, 2] = -c / m1
    poles, vectors = np.linalg.eig(A)
    order = np.argsort(abs(poles) + 1e9 * (poles.imag < 0))[:2]  # those with Im λ ≥ 0
    poles, vectors = poles[order], vectors[:2, order]
    assert np.allclose(linear.poles, poles, rtol=1e-7)  # differences of the loads' functions
    assert np.allclose(linear.damping_ratios, -poles.real / abs(poles), rtol=1e-6)
    assert linear.stability == "asymptotically stable"
    for k in range(2):
        shape = linear.mode("two", k + 1)[0] / linear.mode("one", k + 1)[0]
        assert np.isclose(shape, vectors[1, k] / vectors[0, k], rtol=1e-6)


MASS, ARM, ACROSS, ALONG = 0.5, 0.1, 0.002, 0.001  # of the top; inertia about its centre


def top(spin: float) -> System:
    """Return a top on a ball joint under gravity."""
    ground = Ground({"o": Frame()})
    body = RigidBody("top", MASS, [ACROSS, ACROSS, ALONG], (0, 0, ARM), frames={"o": Frame()})
    joints = [spherical("tip", ground.frame("o"), body.frame("o"))]
    return System([ground, body], joints, gravity=(0, 0, -GRAVITY))


@pytest.mark.parametrize("share", [0.5, 0.99, 1.01, 2.0])
@pytest.mark.parametrize("axes", ["body", "global"])
def test_sleeping_top(share: float, axes: str) -> None:
    """An upright top is stable above ω = 2 √(J m g s)/I; in fixed axes J λ² − i I ω λ = m g s.

    J and I are its moments of inertia across the axis, about the tip, and about the axis; s is the
    distance of its centre of mass from the tip.
    """
    J = ACROSS + MASS * ARM**2
    spin = share * 2 * np.sqrt(J * MASS * GRAVITY * ARM) / ALONG
    system = top(spin)
    state = consistent_state(system, v=np.array([0, 0, 0, 0, 0, spin]))
    linear = linearize(system, state, axes=axes)  # type: ignore[arg-type]
    assert (linear.stability == "unstable") == (share < 1)
    assert linear.poles[0] == 0  # nothing determines the spin of the top
    roots = np.roots([J, -1j * ALONG * spin, -MASS * GRAVITY * ARM])
    if axes == "body":  # where a whirl at ν appears at |ν − ω|
        roots = roots.real + 1j * np.abs(roots.imag - spin)
    for pole in roots:
        assert np.abs(linear.poles[1:] - pole).min() < 1e-9 * spin


def test_top_in_steady_precession() -> None:
    """A tilted top is steady only in axes that rotate with the precession."""
    J, tilt, precession = ACROSS + MASS * ARM**2, 0.4, 5.0
    # steady: I ω₃ Ω = m g s + J Ω² cos θ, with ω₃ about the axis
    spin = (MASS * GRAVITY * ARM / precession + J * precession * np.cos(tilt)) / ALONG
    system = top(spin)
    q = system.bodies[1].initial_coordinates()
    q[3:7] = np.cos(tilt / 2), np.sin(tilt / 2), 0, 0
    v = np.zeros(6)
    v[3:] = 0.0, precession * np.sin(tilt), spin
    state = consistent_state(system, q=q, v=v)
    linear = linearize(system, state, axes=(0, 0, precession))
    assert linear.stability != "unstable"
    # nutation: ω² = (I ω₃/J − 2 Ω cos θ)² + Ω² sin²θ
    across = ALONG * spin / J - 2 * precession * np.cos(tilt)
    exact = np.hypot(across, precession * np.sin(tilt))
    assert np.isclose(linear.poles[-1].imag, exact, rtol=1e-9)
    with pytest.raises(SteadyError, match=r"in body axes .* in global axes"):
        linearize(system, state)


def test_pinned_beam() -> None:
    """On two pins, one of which slides, ω_k = (kπ/l)² √(EI/ρA); no rigid motion remains."""
    length, side, density, young = 0.3, 0.008, 7870.0, 2e11
    rod = slender_rod(length, side, young, density, bending=3, axial=1)
    body = FlexibleBody("rod", rod, damping_ratio=0.0)
    slot = RigidBody(
        "slot",
        1e-6,
        [1e-9] * 3,
        frames={"a": Frame(), "b": Frame((0, 0, 0), ALONG_X)},
        position=(length, 0, 0),
    )
    ground = Ground({"a": Frame(), "b": Frame((length, 0, 0), ALONG_X)})
    joints = [
        cylindrical("a", ground.frame("a"), body.frame("big_end")),
        spherical("b", body.frame("small_end"), slot.frame("a")),
        prismatic("c", ground.frame("b"), slot.frame("b")),
    ]
    system = System([ground, body, slot], joints)
    linear = linearize(system, consistent_state(system))
    k = np.arange(1, 4) * np.pi / length
    expected = k**2 * np.sqrt(young * side**2 / 12 / density) / (2 * np.pi)
    assert linear.frequencies.shape == (4,)  # and the first axial mode
    assert np.allclose(linear.frequencies[:3], expected, rtol=1e-6)


def test_a_held_body_is_as_linearized_by_itself() -> None:
    """A body on a steadily rotating hub has the poles of `linearize_body` (round-off).

    `linearize_body` uses the prestress of the load and the geometry of the undeformed body. The
    test therefore linearizes at the undeformed state. `linearize` uses the deformed geometry, whose
    mass matrix differs to first order in the deformation.
    """
    particles, spin = Particles(4, seed=5), 0.5
    particles.C = 1e-3 * particles.K
    reduced = particles.body(stiffening=True)
    face = reduced.interface("one")
    axis = face.axes[:, 2]  # the hub turns about the interface's z
    ground = Ground({"o": Frame()})
    hub = RigidBody("hub", 1.0, [1.0] * 3, frames={"o": Frame(), "end": Frame()})
    position = -face.axes.T @ face.point
    body = FlexibleBody("body", reduced, position, face.axes.T, damping_ratio=0.0)
    joints = [
        revolute("bearing", ground.frame("o"), hub.frame("o")),
        fixed("held", hub.frame("end"), body.frame("one")),
    ]
    drive = Driver("drive", "bearing", constant_speed(spin))
    system = System([ground, hub, body], joints, drivers=[drive])
    eqs = Assembler(system)
    state = consistent_state(system, elastic_start="undeformed")
    eqs.q[:], eqs.v[:] = state.q, state.v
    axes = Axes.of_bodies(system, eqs.q, eqs.v)
    eqs.a[:] = steady_rates(eqs, axes)
    eqs.residual(0.0)
    B = eqs.constraint_matrix()[:, system.rigid]
    # The reactions balance the rows of the rigid velocities.
    eqs.lam[:] = np.linalg.solve(B.T, -eqs.rows[system.rigid])
    motions = small_motions(eqs, 0.0, axes)
    M, C, K = motions.reduced(free_directions(motions))
    A = np.block([[np.zeros_like(M), np.eye(len(M))], [-K, -C]])  # M is the unit matrix
    poles = np.linalg.eigvals(A)
    expected = linearize_body(reduced, held=["one"], spin=spin * axis, about=face.point).poles()
    still = linearize_body(reduced, held=["one"]).poles()
    assert np.abs(expected[0] / still[0] - 1) > 1e-2
    for pole in expected:
        assert np.abs(poles - pole).min() < 1e-9 * np.abs(expected).max()


def test_a_spinning_rod_on_a_hub() -> None:
    """`linearize` at the deformed state gives these poles up to the strain of the rod."""
    spin, rod = 150.0, spinning_rod()
    body = FlexibleBody("rod", rod, damping_ratio=0.0)
    hub = RigidBody("hub", 1.0, [1.0] * 3, frames={"o": Frame(), "end": Frame()})
    ground = Ground({"o": Frame()})
    joints = [
        revolute("bearing", ground.frame("o"), hub.frame("o")),
        fixed("held", hub.frame("end"), body.frame("big_end")),
    ]
    drive = Driver("drive", "bearing", constant_speed(spin))
    system = System([ground, hub, body], joints, drivers=[drive])
    linear = linearize(system, consistent_state(system))
    assert linear.axes == "body"
    assert linear.stability == "stable"
    expected = linearize_body(rod, held=["big_end"], spin=(0, 0, spin), about="big_end").poles()
    still = linearize_body(rod, held=["big_end"]).poles()
    assert np.abs(expected / still - 1).max() > 3e-3
    assert np.allclose(linear.poles, expected, rtol=1e-4)


def spinning_rod() -> ReducedBody:
    """Return the slender rod with a geometric stiffness of zero.

    Then only the work of the load on the rotation of the held end stiffens the rod, in the
    mechanism and in `linearize_body`.
    """
    rod = slender_rod(bending=2, axial=1)
    none = np.zeros((6, 3, 3))
    return rod.replace(stiffening=Stiffening(none, np.stack([none, none])))


def test_coefficients_are_derivatives_of_the_rows() -> None:
    """C_y and K_y, the matrices for a disturbance y in rotating axes, agree with differences."""
    body = FlexibleBody("body", Particles(2, seed=1).body(stiffening=True), damping_ratio=0.0)
    system = System([body], gravity=(0.3, -9.8, 0.5))
    rng = np.random.default_rng(4)
    eqs = Assembler(system)
    eqs.q[:] = body.initial_coordinates()
    eqs.q[7:] = 0.1 * rng.normal(size=2)
    body.increment(eqs.q.copy(), rng.normal(size=8), eqs.q)
    eqs.v[:] = rng.normal(size=8)
    q, v, W = eqs.q.copy(), eqs.v.copy(), rng.normal(size=3)  # W: angular velocity of the axes
    start = rotation_matrix(q[3:7])
    motions = small_motions(eqs, 0.0, Axes.common(system, W))

    def rows(y: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Return the global components of the rows at t = 0 for a disturbance of a steady motion.

        The disturbance is y + ẏt in the axes that turn with W; `rate` is ẏ.
        """
        h = 1e-4

        def path(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            delta, rotation = y + t * rate, exp_rotation(t * W)
            A = start @ exp_rotation(t * v[3:6])
            A = A @ exp_rotation(A.T @ rotation @ delta[3:6])
            return q[:3] + t * v[:3] + rotation @ delta[:3], A, q[7:] + t * v[6:] + delta[6:]

        before, now, after = path(-h), path(0.0), path(h)
        delta = np.concatenate([now[0] - q[:3], rotation_vector(start.T @ now[1]), now[2] - q[7:]])
        body.increment(q, delta, eqs.q)
        forward, back = (rotation_vector(now[1].T @ x[1]) / h for x in (after, before))
        for part, k in ((slice(0, 3), 0), (slice(6, 8), 2)):
            eqs.v[part] = (after[k] - before[k]) / (2 * h)
            eqs.a[part] = (after[k] - 2 * now[k] + before[k]) / h**2
        eqs.v[3:6], eqs.a[3:6] = 0.5 * (forward - back), (forward + back) / h
        eqs.residual(0.0)
        return np.concatenate([eqs.rows[:3], start @ eqs.rows[3:6], eqs.rows[6:]])

    zero, eps = np.zeros(8), 1e-3
    for k, unit in enumerate(eps * np.eye(8)):
        for matrix, plus, minus in (
            (motions.stiffness[:, k], rows(unit, zero), rows(-unit, zero)),
            (motions.damping[:, k], rows(zero, unit), rows(zero, -unit)),
        ):
            slope = (plus - minus) / (2 * eps)
            assert np.allclose(matrix, slope, atol=1e-4 * np.abs(slope).max()), k


def test_poles_are_those_of_a_simulated_decay() -> None:
    """A decay from about a thousandth of a radian has the pole of the damped pendulum."""
    system = pendulum(damping=0.4)
    pole = linearize(system, equilibrium(system)).poles[0]
    start = consistent_state(system, rates={"pivot": 4e-3})
    run = simulate(system, t_end=6.0, dt=2e-3, start=start)
    angle = run.joint("pivot").rotation
    exact = 4e-3 / pole.imag * np.exp(pole.real * run.time) * np.sin(pole.imag * run.time)
    assert np.abs(angle - exact).max() < 1e-3 * np.abs(exact).max()


def test_constraints_that_repeat_each_other_may_stay() -> None:
    ground = Ground({"o": Frame(), "p": Frame((0, 0, 1.0))})
    bob = RigidBody(
        "bob", 1.0, [0.01] * 3, (0, -0.5, 0), frames={"o": Frame(), "p": Frame((0, 0, 1.0))}
    )
    joints = [
        revolute("one", ground.frame("o"), bob.frame("o")),
        revolute("two", ground.frame("p"), bob.frame("p")),
    ]
    system = System([ground, bob], joints, gravity=(0, -GRAVITY, 0))
    linear = linearize(system, equilibrium(system))
    # J = 0.01 + 0.5² = 0.26 kg m² about the pin
    assert np.allclose(linear.poles, [1j * np.sqrt(GRAVITY * 0.5 / 0.26)], rtol=1e-12)


def test_states_that_are_not_steady_are_errors() -> None:
    crank = slider_crank(
        slender_rod(), crank_radius=0.15, crank_mass=0.36, piston_mass=0.0755, speed=10.0
    )
    with pytest.raises(SteadyError, match="neither an equilibrium nor part of a steady motion"):
        linearize(crank, consistent_state(crank))
    tilted = pendulum(0.3)
    with pytest.raises(SteadyError, match="'bob', moment about its z axis is not in balance"):
        linearize(tilted, consistent_state(tilted))
    with pytest.raises(ValueError, match="state of another system"):
        linearize(crank, consistent_state(tilted))
    with pytest.raises(ValueError, match="axes must be"):
        linearize(tilted, consistent_state(tilted), axes="earth")  # type: ignore[arg-type]


def test_round_off_in_a_spring_without_loads_is_balanced() -> None:
    """A position of 0.05 has a round-off that a stiff bushing turns into a force."""
    place = (0.0, 0.0, 0.05)
    ground = Ground({"a": Frame(place), "b": Frame((0.1, 0.0, 0.05))})
    frames = {"a": Frame((-0.2, 0.1, 0.05)), "b": Frame((-0.1, 0.1, 0.05))}
    body = RigidBody("body", 2.0, [0.1, 0.2, 0.3], frames=frames, position=(0.2, -0.1, 0.0))
    stiffness = [1e6, 1e6, 1e7, 900.0, 900.0, 900.0]
    mounts = [Bushing(n, ground.frame(n), body.frame(n), stiffness) for n in "ab"]
    system = System([ground, body], loads=mounts)
    linear = linearize(system, consistent_state(system))
    assert np.isfinite(linear.poles).all() and len(linear.poles) == 6
