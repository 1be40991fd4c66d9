"""Joints and loads: derivatives are compared with differences, and values with closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.dynamics import System
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.kernels import joints as kernels
from dolfinx_mbd.kernels.rotations import exp_rotation, rotation_matrix
from dolfinx_mbd.mechanism import (
    JOINT_KINDS,
    Bushing,
    Driver,
    FlexibleBody,
    Frame,
    FrameLoad,
    Ground,
    Joint,
    JointCoordinate,
    JointFriction,
    JointLoad,
    JointSpring,
    RigidBody,
    SpringDamper,
)
from tests.kernels.test_floating_frame import differences
from tests.models.particles import Particles


def frames(seed: int) -> list[np.ndarray]:
    """Return positions p1, rotations Q1, p2 and Q2 of four random pairs of frames."""
    rng = np.random.default_rng(seed)
    position, rotation = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 4, 3))
    Q = np.array([[exp_rotation(r) for r in side] for side in rotation])
    return [position[0], Q[0], position[1], Q[1]]


def moved(pose: list[np.ndarray], d: np.ndarray) -> list[np.ndarray]:
    """Return the frames after displacements and rotations d (12,) in global axes."""
    p1, Q1, p2, Q2 = pose
    return [p1 + d[:3], exp_rotation(d[3:6]) @ Q1, p2 + d[6:9], exp_rotation(d[9:]) @ Q2]


def test_gradients_and_second_derivatives() -> None:
    pose = frames(0)
    lam = np.random.default_rng(1).normal(size=(4, 6))
    G = kernels.joint_gradients(*pose)
    by_pose = differences(lambda d: kernels.joint_values(*moved(pose, d)), 12)
    assert np.allclose(G, by_pose, atol=1e-8)
    second = differences(
        lambda d: np.einsum("jik,ji->jk", kernels.joint_gradients(*moved(pose, d)), lam), 12
    )
    assert np.allclose(kernels.joint_second_derivatives(*pose, lam), second, atol=1e-8)


def test_bias_is_the_second_time_derivative() -> None:
    pose = frames(2)
    u = np.random.default_rng(3).normal(size=12)
    p1, Q1, p2, Q2 = pose
    rows = np.tile(u, (4, 1))
    bias = kernels.joint_bias(p1, Q1, rows[:, :6].copy(), p2, Q2, rows[:, 6:].copy())
    rate = differences(lambda d: kernels.joint_gradients(*moved(pose, d[0] * u)) @ u, 1)[..., 0]
    assert np.allclose(bias, rate, atol=1e-8)


@pytest.mark.parametrize("kind", sorted(JOINT_KINDS))
def test_a_joint_holds_what_its_mask_says(kind: str) -> None:
    """A small relative motion violates the held rows by its size and sign, and no other row."""
    rows = JOINT_KINDS[kind]
    for motion in range(6):
        size = 1e-6
        d = np.zeros(6)
        d[motion] = size
        identity = np.eye(3)[None]
        values = kernels.joint_values(
            np.zeros((1, 3)), identity, d[None, :3], exp_rotation(d[3:])[None]
        )[0]
        held = values[list(rows)]
        expected = np.array([size if row == motion else 0.0 for row in rows])
        assert np.allclose(held, expected, atol=1e-11)


@pytest.mark.parametrize("angle", np.linspace(-3.0, 3.0, 7))
def test_a_revolute_joint_is_regular_at_every_angle(angle: float) -> None:
    Q2 = exp_rotation(np.array([0.0, 0.0, angle]))
    zero = np.zeros((1, 3))
    values = kernels.joint_values(zero, np.eye(3)[None], zero, Q2[None])[0]
    assert np.allclose(values[:5], 0, atol=1e-15)
    G = kernels.joint_gradients(zero, np.eye(3)[None], zero, Q2[None])[0, :5]
    assert np.linalg.matrix_rank(G) == 5
    assert np.linalg.cond(G) < 3


def random_system() -> tuple[System, Assembler]:
    """Return a system with all kinds of joints and many loads, and its assembler.

    The bodies are flexible and rigid; the coordinates, velocities and forces are random.
    """
    rng = np.random.default_rng(5)
    one, two = (
        FlexibleBody("one", Particles(3, 1).body(stiffening=True)),
        FlexibleBody("two", Particles(2, 2).body()),
    )
    axes = rotation_matrix(np.array([0.5, 0.5, -0.5, 0.5]))
    neutral_rotation = exp_rotation(np.array([0.3, -0.2, 0.5]))
    block = RigidBody.box(
        "block",
        (0.2, 0.3, 0.4),
        mass=2.0,
        centre=(0.1, 0, 0),
        frames={"a": Frame((0.1, 0.2, 0.3), axes)},
    )
    ground = Ground({"base": Frame((0.3, 0.1, 0.0), axes)})
    pairs = [
        (one.frame("one"), ground.frame("base")),
        (two.frame("two"), one.frame("two")),
        (block.frame("a"), two.frame("one")),
        (ground.frame("base"), block.frame("a")),
        (one.frame("one"), block.frame("a")),
        (one.frame("two"), block.frame("a")),
        (ground.frame("base"), two.frame("two")),
        (two.frame("two"), block.frame("a")),
        (one.frame("one"), two.frame("two")),
        (block.frame("a"), one.frame("two")),
    ]
    joints = [
        Joint(kind, kind, *pair) for kind, pair in zip(sorted(JOINT_KINDS), pairs, strict=True)
    ]
    drivers = [
        Driver("spin", "revolute", lambda t: (0.3 + 2 * t, 2.0, 0.0), offset=0.0),
        Driver("push out", "prismatic", lambda t: (0.2 + 3 * t * t, 6 * t, 6.0), offset=0.0),
    ]
    turning = JointCoordinate("cylindrical", "rotation")
    loads = [
        FrameLoad(
            "push", one.frame("two"), lambda t, m: m.position * m.velocity[0] + m.rotation[:, 1]
        ),
        FrameLoad(
            "twist", two.frame("one"), lambda t, m: np.sin(m.omega) + m.position, "torque", "frame"
        ),
        FrameLoad("follow", block.frame("a"), (1.0, 2.0, 3.0), axes="frame"),
        JointLoad("drive", "revolute", "rotation", lambda t, s, rate: np.sin(s) + rate**2),
        JointLoad(
            "gas", "prismatic", "displacement", lambda t, s, rate: np.cos(s) + s * rate, of=turning
        ),
        JointLoad("spring", "cylindrical", "displacement", lambda t, s, rate: -3 * s - 0.5 * rate),
        SpringDamper("strut", one.frame("two"), block.frame("a"), 3.0, 0.4, 0.5),
        SpringDamper(
            "tyre",
            ground.frame("base"),
            two.frame("one"),
            law=lambda length, rate: length**3 + length * np.tanh(rate),
        ),
        Bushing(
            "mount",
            two.frame("two"),
            one.frame("one"),
            np.arange(1.0, 7.0),
            np.arange(2.0, 8.0),
            neutral=(np.ones(3), neutral_rotation),
        ),
        JointSpring("torsion", "revolute", 2.0, 0.3),
        JointSpring("slide", "point_on_line", law=lambda s, rate: s**3 + s * s * rate),
        JointFriction("dry", "planar", 0.7, 0.5, static=1.1, viscous=0.2),
        JointFriction("rail", "prismatic", 0.6, 0.8),
    ]
    system = System(
        [one, two, block, ground], joints, drivers=drivers, loads=loads, gravity=(1, 2, -9.8)
    )
    eqs = Assembler(system)
    for body, qs in zip(system.bodies, system.q_slices, strict=True):
        q = rng.normal(size=body.num_coordinates)
        if len(q):
            q[3:7] /= np.linalg.norm(q[3:7])
            q[7:] *= 0.2
        eqs.q[qs] = q
    eqs.v[:], eqs.a[:] = rng.normal(size=(2, system.num_velocities))
    eqs.lam[:] = rng.normal(size=system.num_constraints)
    return system, eqs


def test_system_tangent_is_the_derivative_of_its_rows() -> None:
    system, eqs = random_system()
    nv = system.num_velocities
    base = eqs.q.copy(), eqs.v.copy(), eqs.a.copy(), eqs.lam.copy()

    def rows(dq=0.0, dv=0.0, da=0.0, dl=0.0):
        """Return the residual and the constraints after changes of q, v, a and λ."""
        q, v, a, lam = base
        eqs.v[:], eqs.a[:], eqs.lam[:] = v + dv, a + da, lam + dl
        delta = np.zeros(nv) + dq
        for body, qs, vs in zip(system.bodies, system.q_slices, system.v_slices, strict=True):
            body.increment(q[qs], delta[vs], eqs.q[qs])
        eqs.residual(0.2)
        return np.concatenate([eqs.rows, eqs.values])

    rows()
    exact = eqs.tangent(0.2)
    by_q, by_v, by_a = (
        differences(lambda d, k=key: rows(**{k: d}), nv) for key in ("dq", "dv", "da")
    )
    by_lam = differences(lambda d: rows(dl=d), system.num_constraints)
    for matrix, difference in ((exact.K, by_q), (exact.C, by_v), (exact.M, by_a)):
        assert np.allclose(matrix, difference[:nv], atol=3e-8 * np.abs(difference).max())
    assert np.allclose(exact.B, by_q[nv:], atol=1e-8)
    assert np.allclose(exact.B.T, by_lam[:nv], atol=1e-8)


def test_blocks_are_parts_of_the_dense_tangent() -> None:
    system, eqs = random_system()
    eqs.residual(0.2)
    for name, dense in eqs.tangent(0.2)._asdict().items():
        rows = system.entry_slices if name == "B" else system.v_slices
        total = np.zeros_like(dense)
        for (row, column), block in getattr(eqs.tangent_blocks(0.2), name).items():
            total[rows[row], system.v_slices[column]] += block
        assert np.allclose(total, dense, rtol=0.0, atol=1e-14 * np.abs(dense).max())


def test_constraint_rates_are_time_derivatives() -> None:
    system, eqs = random_system()
    q, t = eqs.q.copy(), 0.2

    def at_time(dt: float) -> np.ndarray:
        """Return the constraints after a motion with constant velocities for the time dt."""
        for body, qs, vs in zip(system.bodies, system.q_slices, system.v_slices, strict=True):
            body.increment(q[qs], dt * eqs.v[vs], eqs.q[qs])
        eqs.residual(t + dt)
        return eqs.values.copy()

    h = 1e-4
    values = {k: at_time(k * h) for k in (-2, -1, 0, 1, 2)}
    # Central differences of fourth order
    first = (values[-2] - 8 * values[-1] + 8 * values[1] - values[2]) / (12 * h)
    second = (-values[-2] + 16 * values[-1] - 30 * values[0] + 16 * values[1] - values[2]) / (
        12 * h * h
    )
    at_time(0.0)
    rate, bias = eqs.constraint_rates(t)
    B = eqs.constraint_matrix()
    assert np.allclose(B @ eqs.v + rate, first, atol=1e-9)
    assert np.allclose(bias, second, atol=1e-6 * np.abs(second).max())
