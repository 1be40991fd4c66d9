"""Initial velocities of bodies: free bodies, chains, contradictions, and files without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import AssemblyError, System, consistent_state
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism import FlexibleBody, Frame, Ground, RigidBody, fixed, revolute, spherical
from dolfinx_mbd.mechanism.mechanisms import SliderCrank, rigid_rod, slider_crank
from dolfinx_mbd.results.files.fingerprint import digest, fingerprint
from tests.models.rods import rod


def test_a_free_body_flies_and_spins() -> None:
    """Parabola of the centre of mass; a spin about a principal axis remains constant."""
    quaternion = (np.cos(0.3), np.sin(0.3), 0.0, 0.0)
    ball = RigidBody.box(
        "ball", (0.1, 0.2, 0.3), mass=1.0, rotation=quaternion, velocity=(3, 4, 0), omega=(0, 0, 9)
    )
    run = simulate(System([ball], gravity=(0, -9.81, 0)), t_end=0.3, dt=1e-3)
    history = run.body("ball")
    fall = np.outer(run.time, (3, 4, 0)) + np.outer(-0.5 * 9.81 * run.time**2, (0, 1, 0))
    np.testing.assert_allclose(history.position, fall, atol=1e-9)
    np.testing.assert_allclose(history.omega, np.tile((0, 0, 9.0), (len(run), 1)), atol=1e-9)


@pytest.mark.parametrize("centre", [(0.2, 0, 0), (0.1, -0.3, 40.0), (0, 0, 0)])
@pytest.mark.parametrize("flexible", [False, True])
def test_a_free_body_has_only_the_velocity_that_it_specifies(centre, flexible: bool) -> None:
    """The centre of mass is not at the origin, and the body flies or spins as specified."""
    turn, fall, spin = (0.6, 0.0, 0.8, 0.0), (1.0, 2.0, -3.0), (0.3, -0.5, 2.0)

    def stone(**velocities) -> FlexibleBody | RigidBody:
        if flexible:
            return FlexibleBody("stone", rod(), rotation=turn, **velocities)
        return RigidBody("stone", 2.0, [0.01, 0.02, 0.02], centre, rotation=turn, **velocities)

    for velocities in ({"velocity": fall}, {"omega": spin}, {"velocity": fall, "omega": spin}):
        state = consistent_state(System([stone(**velocities)]), elastic_start="undeformed")
        np.testing.assert_allclose(state.v[:3], velocities.get("velocity", (0, 0, 0)), atol=1e-12)
        np.testing.assert_allclose(state.v[3:6], velocities.get("omega", (0, 0, 0)), atol=1e-12)
        named = {f"stone.{key}": value for key, value in velocities.items()}
        same = consistent_state(System([stone()]), v=named, elastic_start="undeformed")
        np.testing.assert_allclose(same.v, state.v, atol=1e-12)


def test_joints_permit_a_spin_or_not() -> None:
    """A tail welded to a moving ball does not spin, nor does a bob about its radius to its joint.

    The velocity (0, 3, -1) at the radius (2, 0, 0) requires the angular velocity (0, 0.5, 1.5).
    """
    ball = RigidBody(
        "ball", 1.0, [0.01] * 3, frames={"c": Frame()}, position=(0, 0, 1), velocity=(1, 0, 0)
    )
    tail = RigidBody(
        "tail", 0.5, [0.01] * 3, (0, 0, -0.3), frames={"c": Frame()}, position=(0, 0, 1)
    )
    weld = fixed("weld", ball.frame("c"), tail.frame("c"))
    state = consistent_state(System([ball, tail], [weld]))
    np.testing.assert_allclose(state.v, [1, 0, 0, 0, 0, 0] * 2, atol=1e-12)
    ground = Ground({"o": Frame()})
    bob = RigidBody(
        "bob",
        1.0,
        [0.3, 0.2, 0.1],
        (0.1, 0.1, 0.1),
        frames={"o": Frame((-2.0, 0, 0))},
        position=(2.0, 0, 0),
        velocity=(0, 3.0, -1.0),
    )
    link = spherical("link", ground.frame("o"), bob.frame("o"))
    state = consistent_state(System([ground, bob], [link]))
    np.testing.assert_allclose(state.v, (0, 3.0, -1.0, 0, 0.5, 1.5), atol=1e-12)


def double_pendulum(first: float | None, second: float | None) -> System:
    """Return a double pendulum whose bars have initial angular velocities about z, or None."""
    ends = {"a": Frame((-0.5, 0, 0)), "b": Frame((0.5, 0, 0))}
    ground = Ground({"o": Frame()})
    bars = [
        RigidBody.box(
            name,
            (1.0, 0.1, 0.1),
            mass=1.0,
            frames=ends,
            position=(x, 0, 0),
            omega=None if omega is None else (0, 0, omega),
        )
        for name, x, omega in (("one", 0.5, first), ("two", 1.5, second))
    ]
    joints = [
        revolute("o", ground.frame("o"), bars[0].frame("a")),
        revolute("knee", bars[0].frame("b"), bars[1].frame("a")),
    ]
    return System([ground, *bars], joints)


def test_joints_determine_the_other_velocities() -> None:
    state = consistent_state(double_pendulum(2.0, -3.0))
    np.testing.assert_allclose(state.v[3:6], (0, 0, 2.0), atol=1e-12)
    np.testing.assert_allclose(state.v[:3], (0, 1.0, 0), atol=1e-12)
    np.testing.assert_allclose(state.v[6:9], (0, 2.0 - 1.5, 0), atol=1e-12)


def test_the_rest_has_the_smallest_kinetic_energy() -> None:
    """The free bar gets no moment about the knee: its angular velocity minimizes the energy."""
    system = double_pendulum(2.0, None)
    state = consistent_state(system)
    np.testing.assert_allclose(state.v[3:6], (0, 0, 2.0), atol=1e-12)
    second = state.v[11]
    # the knee moves with 2 m/s: v_c = 2 + ω/2, T = ½ m v_c² + ½ J ω², and dT/dω = 0
    J = (1.0 + 0.01) / 12
    assert second == pytest.approx(-0.5 * 2.0 / (0.25 + J), rel=1e-9)


def test_one_velocity_moves_a_closed_loop_with_flexible_bodies() -> None:
    system = slider_crank(
        rod(),
        crank_radius=0.2,
        crank_mass=0.5,
        piston_mass=0.2,
        torque=0.0,
        angle=0.7,
        ends=("left", "right"),
    )
    crank = replace(system.body("crank"), omega=(0, 0, 5.0))  # type: ignore[type-var]
    moving = System([crank if b.name == "crank" else b for b in system.bodies], system.joints)
    state = consistent_state(moving)
    rates = consistent_state(system, rates={"main": 5.0})
    np.testing.assert_allclose(state.v, rates.v, atol=1e-4 * np.abs(rates.v).max())
    motion = SliderCrank(0.2, 1.0).motion(0.7, 5.0)
    assert state.v[moving.v_slices[moving.body_index("piston")]][0] == pytest.approx(
        float(motion.slider_velocity), rel=1e-3
    )


def test_contradictions_are_errors() -> None:
    ground = Ground({"o": Frame()})
    bar = RigidBody("bar", 1.0, [1.0] * 3, frames={"o": Frame()}, velocity=(1.0, 0, 0))
    joint = revolute("pin", ground.frame("o"), bar.frame("o"))
    with pytest.raises(AssemblyError, match="'bar'"):
        consistent_state(System([ground, bar], [joint]))
    spun = replace(bar, velocity=None, omega=(0, 0, 2.0))
    with pytest.raises(AssemblyError, match="'bar'"):
        consistent_state(System([ground, spun], [joint]), rates={"pin": 3.0})
    agreed = consistent_state(System([ground, spun], [joint]), rates={"pin": 2.0})
    assert agreed.v[5] == pytest.approx(2.0, rel=1e-12)
    with pytest.raises(InputError):
        replace(bar, omega=(1.0, np.nan, 0.0))


def test_files_of_bodies_without_velocities_are_still_read() -> None:
    """The fingerprint is that of the version before there were initial velocities."""
    body = RigidBody("bar", 1.0, [1.0] * 3)
    flexible = FlexibleBody("arm", rod())
    at_rest = fingerprint(System([body, flexible]))
    moving = fingerprint(System([replace(body, omega=(0, 0, 1.0)), flexible]))
    assert {key for key in at_rest if at_rest[key] != moving[key]} == {"body 'bar'"}
    assert digest(body) == "6df54d1eed3f5773fbd0499ce3d827e0" and digest(flexible) != digest(
        replace(flexible, velocity=(1, 0, 0))
    )


def test_rigid_rods_without_inertia_about_their_axis() -> None:
    system = slider_crank(
        rigid_rod(length=0.4, mass=0.3),
        crank_radius=0.1,
        crank_mass=0.5,
        piston_mass=0.2,
        torque=0.0,
        angle=0.4,
    )
    crank = replace(system.body("crank"), omega=(0, 0, 5.0))  # type: ignore[type-var]
    moving = System([crank if b.name == "crank" else b for b in system.bodies], system.joints)
    run = simulate(moving, t_end=1e-3, dt=1e-4)
    assert run.joint("main").rotation_rate[0] == pytest.approx(5.0, rel=1e-9)


def test_a_run_starts_from_another_mechanism_with_the_same_bodies() -> None:
    """The pivot of a spinning double pendulum breaks: momenta and turns of the knee are kept."""
    system = double_pendulum(30.0, None)
    run = simulate(system, t_end=0.5, dt=1e-3)
    free = System(system.bodies, [joint for joint in system.joints if joint.name == "knee"])
    state = run.state_for(free)
    assert state.time == run.time[-1]
    np.testing.assert_allclose(state.q, run.q[-1], atol=1e-9)
    np.testing.assert_allclose(state.v, run.v[-1], atol=1e-3)
    assert abs(run.joint("knee").rotation[-1]) > 2 * np.pi
    assert state.angles[0] == pytest.approx(run.joint("knee").rotation[-1], abs=1e-9)
    flight = simulate(free, t_end=0.6, dt=1e-3, start=state)
    momenta = flight.momenta()
    np.testing.assert_allclose(momenta, np.tile(momenta[0], (len(flight), 1)), atol=1e-3)
    assert np.ptp(flight.energies().total) < 1e-3 * flight.energies().total[0]
    other_kind = System([RigidBody("one", 1.0, [1.0] * 3), FlexibleBody("two", rod())])
    with pytest.raises(InputError, match="'two'"):
        run.state_for(other_kind)
    stranger = System([RigidBody("three", 1.0, [1.0] * 3)])
    with pytest.raises(InputError, match=r"no body of the system .* 'one', 'two'"):
        run.state_for(stranger)
