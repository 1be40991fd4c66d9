"""Implicit Euler: exact recurrence, order one in all quantities, satisfied constraints."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import ImplicitEuler, StepError, System, consistent_state
from dolfinx_mbd.mechanism import Frame, FrameMotion, Ground, Joint, RigidBody, State, force

Array = NDArray[np.float64]


def march(system: System, start: State, t_end: float, dt: float) -> tuple[ImplicitEuler, State]:
    """Return the stepper and the last state of equal steps of implicit Euler."""
    stepper = ImplicitEuler(system, tolerance=1e-10)
    steps = round((t_end - start.time) / dt)
    state = stepper.begin(start, (t_end - start.time) / steps)
    for _ in range(steps):
        state = stepper.step(state, (t_end - start.time) / steps)
    return stepper, state


def test_an_oscillator_follows_the_recurrence() -> None:
    """v₁ = v₀ − dt ω² x₁, x₁ = x₀ + dt v₁, with about 16 steps per period 2π/ω, where ω = 2."""
    ball = RigidBody("ball", 2.0, np.ones(3), frames={"centre": Frame()}, position=(1.0, 0.0, 0.0))
    spring = force("spring", ball.frame("centre"), lambda t, m: -8.0 * m.position)
    system = System([ball], loads=[spring])
    start = consistent_state(system, v=np.array([0.0, 3.0, 0.0, 0.0, 0.0, 0.0]))
    dt = 0.2
    _, state = march(system, start, 2.0, dt)
    x, v = np.array([1.0, 0.0, 0.0]), np.array([0.0, 3.0, 0.0])
    for _ in range(10):
        v = (v - dt * 4.0 * x) / (1 + dt * dt * 4.0)
        x = x + dt * v
    assert np.allclose(state.q[:3], x, atol=1e-8)
    assert np.allclose(state.v[:3], v, atol=1e-8)


def pendulum() -> System:
    """Return a double pendulum that moves in space.

    The upper arm hangs on a revolute joint about an oblique axis, and the lower arm on a spherical
    joint.
    """
    rotation = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    rotation = rotation * np.linalg.det(rotation)
    ground = Ground(frames={"pin": Frame((0.0, 0.0, 0.0), rotation)})
    arms = [
        RigidBody(
            name,
            1.0,
            (0.02, 0.3, 0.31),
            frames={"up": Frame((-0.5, 0.0, 0.0), rotation), "down": Frame((0.5, 0.0, 0.0))},
            position=(0.5 + k, 0.0, 0.0),
        )
        for k, name in enumerate(("upper", "lower"))
    ]
    joints = [
        Joint("shoulder", "revolute", ground.frame("pin"), arms[0].frame("up")),
        Joint("elbow", "spherical", arms[0].frame("down"), arms[1].frame("up")),
    ]
    return System([ground, *arms], joints, gravity=(0.0, 0.0, -9.81))


def test_everything_is_of_first_order() -> None:
    system = pendulum()
    start = consistent_state(system)
    exact = simulate(system, t_end=0.4, dt=1e-3, start=start).final_state
    errors = []
    for dt in (4e-3, 2e-3):
        stepper, state = march(system, start, 0.4, dt)
        errors.append([np.abs(getattr(state, k) - getattr(exact, k)).max() for k in ("q", "v")])
        errors[-1].append(np.abs(state.lam - exact.lam).max() / np.abs(exact.lam).max())
        eqs = stepper.assembler
        eqs.q[:] = state.q
        assert np.abs(eqs.constraints(0.4)).max() < 1e-11
    ratios = np.array(errors[0]) / np.array(errors[1])
    assert np.allclose(ratios, 2.0, rtol=0.1), (errors, ratios)
    assert max(errors[1]) < 0.05


def test_it_only_takes_energy() -> None:
    system = pendulum()
    start = consistent_state(system)
    stepper = ImplicitEuler(system)
    state, energies = stepper.begin(start, 5e-3), []
    for _ in range(100):
        energies.append(
            sum(
                body.energies(state.q[qs], state.v[vs], system.gravity).sum()
                for body, qs, vs in zip(
                    system.bodies, system.q_slices, system.v_slices, strict=True
                )
                if body.num_velocities
            )
        )
        state = stepper.step(state, 5e-3)
    assert (np.diff(energies) < 0).all()


def test_a_step_that_fails_is_an_error() -> None:
    ball = RigidBody("ball", 1.0, np.ones(3), frames={"centre": Frame()})

    def push(t: float, motion: FrameMotion) -> tuple[float, float, float]:
        """Return a force towards the other side of x = 0: no step has a solution."""
        return -1e3 if motion.position[0] >= 0 else 1e3, 0.0, 0.0

    system = System([ball], loads=[force("wild", ball.frame("centre"), push)])
    with pytest.raises(StepError, match="does not converge"):
        march(system, consistent_state(system), 1.0, 0.5)
