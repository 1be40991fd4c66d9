"""Laws that the constraints of every joint obey, at random poses and velocities.

A new joint needs one line in `CASES`. hypothesis chooses the motion, and simplifies it if a joint
violates a law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.kernels.rotations import exp_rotation, rotation_matrix
from dolfinx_mbd.mechanism.joints import JOINT_KINDS, FrameRef
from dolfinx_mbd.mechanism.mechanisms.engine_block import free_motion
from tests.properties.test_force_elements import few_examples, vectors

Array = np.ndarray
ENDS = FrameRef("one", "end"), FrameRef("two", "end")
TILT = (0.4, 1.3, 0.2)


@dataclass(frozen=True)
class Case:
    """A joint, and the relative poses at which it is tested.

    `place` and `turn` are a relative position (m) and rotation vector (rad), `reach` and `twist`
    the largest deviations from them.
    """

    joint: mbd.mechanism.Joint
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0)
    reach: float = 0.3
    twist: float = 0.5


def knot(u: float) -> tuple[float, float, float]:
    """Return a point of a trefoil knot."""
    return (np.cos(u) * (2 + np.cos(3 * u)), np.sin(u) * (2 + np.cos(3 * u)), np.sin(3 * u))


TREFOIL = mbd.mechanism.Curve.of(knot, 0.0, 2 * np.pi, closed=True)
PARABOLA = mbd.mechanism.Curve.of(lambda u: (u, 0.3 * u**2, 0.1 * u**3), -2.0, 2.0, count=60)
CASES = {
    **{
        kind: Case(mbd.mechanism.Joint("joint", kind, *ENDS), (0.7, 0.2, -0.4))
        for kind in JOINT_KINDS
    },
    "opposite axes": Case(mbd.revolute("joint", *ENDS), turn=(3.0, 0.0, 0.0)),
    "long distance": Case(mbd.distance("joint", *ENDS, 3.0), (2.0, 2.0, 0.3), reach=1.0, twist=3.0),
    "screw": Case(mbd.screw("joint", *ENDS, 0.4, offset=0.1), (0.0, 0.0, 0.1)),
    "left-hand screw": Case(
        mbd.screw("joint", *ENDS, -3.0, offset=0.0), (0.1, 0.0, 2.0), (0.0, 0.0, 2.0)
    ),
    "rack": Case(mbd.rack_and_pinion("joint", *ENDS, 0.7, offset=0.0)),
    "rack above": Case(mbd.rack_and_pinion("joint", *ENDS, -0.3, offset=0.2), turn=(0, 0, 2.5)),
    "constant velocity": Case(mbd.constant_velocity("joint", *ENDS), twist=1.2),
    "open curve": Case(mbd.point_on_curve("joint", *ENDS, PARABOLA), (0.6, 0.1, 0.0), reach=0.1),
    "closed curve": Case(mbd.point_on_curve("joint", *ENDS, TREFOIL), knot(1.0), reach=0.05),
    "ball": Case(mbd.rolling_ball("joint", *ENDS, 0.3), twist=3.0),
    "disc": Case(mbd.rolling_disc("joint", *ENDS, 0.4), turn=TILT),
    "free": Case(free_motion("joint", *ENDS)),
    "knife edge": Case(mbd.knife_edge("joint", *ENDS), twist=1.0),
}
# place (m) and rotation vector (rad) of the frame of each body
POSES = {"one": ((0.3, -0.2, 0.1), (0.4, -0.7, 0.2)), "two": ((-0.1, 0.2, 0.4), (-0.3, 0.1, 1.1))}
motions = st.tuples(*[vectors] * 8)


@cache
def assembler_of(name: str) -> Assembler:
    """Return the assembler of two bodies with a joint."""
    bodies = [
        mbd.RigidBody(
            body,
            1.3,
            (0.3, 0.4, 0.5),
            frames={"end": mbd.Frame(place, exp_rotation(np.array(turn)))},
            position=(0.0, 0.0, 5.0 * (body == "two")),
        )
        for body, (place, turn) in POSES.items()
    ]
    return Assembler(mbd.System(bodies, [CASES[name].joint]))


def quaternion(R: Array) -> Array:
    """Return the quaternion of a rotation matrix, with the scalar first."""
    return Rotation.from_matrix(R).as_quat(scalar_first=True)


def moved_assembler(name: str, motion: tuple[Array, ...]) -> Assembler:
    """Return the assembler of a case at a pose and with velocities that follow from `motion`."""
    eqs, case = assembler_of(name), CASES[name]
    p1, turn, v1, w1, d, twist, v2, w2 = motion
    Q1 = exp_rotation(3.0 * turn)
    p2 = p1 + Q1 @ (np.array(case.place) + case.reach * d)
    Q2 = Q1 @ exp_rotation(case.twist * twist) @ exp_rotation(np.array(case.turn))
    for k, (p, Q) in enumerate(((p1, Q1), (p2, Q2))):
        place, axes = [*POSES.values()][k]
        R = Q @ exp_rotation(np.array(axes)).T
        eqs.q[7 * k : 7 * k + 3], eqs.q[7 * k + 3 : 7 * k + 7] = p - R @ place, quaternion(R)
    eqs.v[:] = np.concatenate([v1, w1, v2, w2])
    eqs.a[:] = 0.0
    eqs.lam[:] = np.linspace(1.0, -2.0, len(eqs.lam))
    eqs.rate_scale = 1.0
    eqs.update_poses(0.0)
    return eqs


def slopes(eqs: Assembler, function: Callable[[], Array], h: float = 4e-4) -> Array:
    """Return the derivatives with respect to the increments, by differences of sixth order."""
    q, columns = eqs.q.copy(), []
    weights = {1: 0.75, 2: -0.15, 3: 1 / 60}
    for e in np.eye(len(eqs.v)):
        total = 0.0
        for k, weight in weights.items():
            for sign in (1, -1):
                eqs.move(q, sign * k * h * e)
                total = total + sign * weight / h * function()
        columns.append(total)
    eqs.move(q, np.zeros(len(eqs.v)))
    eqs.update_poses(0.0)
    return np.array(columns).T


def close(one: Array, other: Array, tolerance: float = 1e-9) -> bool:
    """Return whether the largest difference is below `tolerance` times max(1, largest value)."""
    size = max(1.0, float(np.abs(other).max(initial=0.0)))
    return float(np.abs(one - other).max(initial=0.0)) < tolerance * size


def matrix(eqs: Assembler) -> Array:
    """Return the constraint matrix at the present coordinates."""
    eqs.update_poses(0.0)
    return eqs.constraint_matrix()


@pytest.mark.parametrize("name", CASES)
@given(motion=motions)
@few_examples
def test_gradients_agree_with_finite_differences(name: str, motion: tuple[Array, ...]) -> None:
    eqs = moved_assembler(name, motion)
    positions = ~eqs.system.velocity_rows
    expected = slopes(eqs, lambda: eqs.constraints(0.0))
    eqs.constraints(0.0)
    assert close(eqs.constraint_matrix()[positions], expected[positions])
    assert not expected[~positions].any()


@pytest.mark.parametrize("name", CASES)
@given(motion=motions)
@few_examples
def test_second_derivatives_agree_with_finite_differences(
    name: str, motion: tuple[Array, ...]
) -> None:
    eqs = moved_assembler(name, motion)
    expected = slopes(eqs, lambda: matrix(eqs) @ eqs.v)
    assert close(eqs.constraint_derivatives(eqs.v), expected)
    assert close(eqs.constraint_rates(0.0)[1], expected @ eqs.v)  # Φ̈ for zero accelerations


@pytest.mark.parametrize("name", CASES)
@given(motion=motions)
@few_examples
def test_the_stiffness_of_joint_forces_agrees_with_finite_differences(
    name: str, motion: tuple[Array, ...]
) -> None:
    eqs = moved_assembler(name, motion)
    eqs.v[:] = 0.0
    eqs.residual(0.0)
    K = eqs.tangent(0.0).K

    def forces() -> Array:
        eqs.residual(0.0)
        return eqs.rows.copy()

    assert close(K, slopes(eqs, forces))
    eqs.residual(0.0)
    assert close(eqs.rows, eqs.constraint_matrix().T @ eqs.lam)


@pytest.mark.parametrize("name", CASES)
@given(motion=motions)
@few_examples
def test_joint_forces_have_no_power(name: str, motion: tuple[Array, ...]) -> None:
    """The power on motions that the constraints permit is zero, and the forces balance."""
    eqs = moved_assembler(name, motion)
    B = eqs.constraint_matrix()
    permitted = scipy.linalg.null_space(B) if len(B) else np.eye(len(eqs.v))
    eqs.v[:] = permitted @ np.linspace(-1, 2, permitted.shape[1])
    (w,) = eqs.joint_wrenches()
    u, system = eqs.frames.update_velocities(), eqs.system
    size = np.abs(w).max()
    assert abs(w @ np.hstack([u[system.first[0]], u[system.second[0]]])) < 1e-12 * max(1.0, size)
    eqs.residual(0.0)
    assert np.abs(eqs.values[system.velocity_rows]).max(initial=0.0) < 1e-12
    points = eqs.position[system.first[0]], eqs.position[system.second[0]]
    assert close(w[:3] + w[6:9], np.zeros(3), 1e-12 * max(1.0, size))
    moments = w[3:6] + w[9:12] + np.cross(points[0], w[:3]) + np.cross(points[1], w[6:9])
    assert close(moments, np.zeros(3), 1e-11 * max(1.0, size))


@pytest.mark.parametrize("name", CASES)
@given(motion=motions, rigid=st.tuples(*[vectors] * 2))
@few_examples
def test_a_rigid_motion_of_the_mechanism_rotates_the_joint_forces(
    name: str, motion: tuple[Array, ...], rigid: tuple[Array, ...]
) -> None:
    """The values of the constraints and the joint forces in rotated axes do not change."""
    eqs = moved_assembler(name, motion)
    values, (w,), Q = (
        eqs.constraints(0.0).copy(),
        eqs.joint_wrenches(),
        exp_rotation(3.0 * rigid[0]),
    )
    for part in eqs.system.q_slices:
        p, orientation = eqs.q[part][:3], eqs.q[part][3:]
        eqs.q[part][:3] = rigid[1] + Q @ p
        eqs.q[part][3:] = quaternion(Q @ rotation_matrix(orientation))
    eqs.update_poses(0.0)
    assert close(eqs.constraints(0.0), values, 1e-12)
    assert close(eqs.joint_wrenches()[0], (w.reshape(4, 3) @ Q.T).ravel(), 1e-11)


def test_every_kind_of_joint_has_a_case() -> None:
    kinds = {case.joint.kind for case in CASES.values()}
    relations = {
        r.kind for r in mbd.mechanism.JointRelation.__subclasses__() if "tests" not in r.__module__
    }
    assert kinds >= set(JOINT_KINDS) | relations
