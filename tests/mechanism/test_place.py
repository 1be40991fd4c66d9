"""`place`: positions and axes of frames in global coordinates."""

from __future__ import annotations

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.body import MaterialPoint
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.rotations import exp_rotation
from tests.models.rods import rod

TILTED = exp_rotation(np.array([0.3, -0.8, 1.1]))
AXES = exp_rotation(np.array([-1.3, 0.2, 0.7]))


def rigid() -> mbd.RigidBody:
    """Return a rigid link with two frames, one of which is tilted."""
    frames = {"a": mbd.Frame((0.1, 0.2, -0.3), TILTED), "b": mbd.Frame((-0.4, 0.1, 0.6))}
    return mbd.RigidBody("link", 2.0, [0.1] * 3, frames=frames, position=(7, 8, 9), rotation=AXES)


def flexible() -> mbd.FlexibleBody:
    """Return a flexible arm with two points."""
    body = rod()
    point = MaterialPoint("a", (0.2, 0.0, 0.01), np.zeros((body.num_modes, 3)))
    end = MaterialPoint("b", (-0.1, 0.3, 0.02), np.zeros((body.num_modes, 3)))
    return mbd.FlexibleBody("arm", body.replace(points=(point, end)), velocity=(1, 2, 3))


def pose(body: mbd.RigidBody | mbd.FlexibleBody, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the position and axes of a frame, computed from the attributes of the body."""
    if isinstance(body, mbd.RigidBody):
        x, F = (np.asarray(part) for part in body.frames[name])
    else:
        x, F = body.reduced.point(name).position, np.eye(3)
    R = np.asarray(body.rotation)
    return np.asarray(body.position) + R @ x, R @ F


@pytest.mark.parametrize("body", [rigid(), flexible()], ids=["rigid", "flexible"])
def test_frames_have_the_requested_positions_and_axes(
    body: mbd.RigidBody | mbd.FlexibleBody,
) -> None:
    position = np.array([0.3, -0.2, 0.9])
    moved = mbd.place(body, by="a", at=position)
    assert pose(moved, "a")[0] == pytest.approx(position)
    before = np.asarray(body.rotation) if isinstance(body, mbd.RigidBody) else np.eye(3)
    assert moved.rotation == pytest.approx(before)
    rotated = mbd.place(body, by="a", at=position, axes=AXES)
    assert pose(rotated, "a")[0] == pytest.approx(position)
    assert pose(rotated, "a")[1] == pytest.approx(AXES)
    for rotation in (TILTED, np.array([0.3, -0.8, 1.1])):
        assert mbd.place(body, by="b", at=position, rotation=rotation).rotation == pytest.approx(
            TILTED
        )
    goal = np.array([3.0, 1.0, -2.0])
    aimed = mbd.place(body, by="a", at=position, axes=AXES, towards=("b", goal))
    d = pose(aimed, "b")[0] - pose(aimed, "a")[0]
    assert pose(aimed, "a")[0] == pytest.approx(position)
    assert d / np.linalg.norm(d) == pytest.approx(
        (goal - position) / np.linalg.norm(goal - position)
    )
    assert (type(aimed), aimed.name, aimed.velocity) == (type(body), body.name, body.velocity)


def test_positions_with_units() -> None:
    frames = {"tip": mbd.Frame(("100mm", 0, "-2cm")), "end": mbd.Frame()}
    body = mbd.RigidBody("link", 2.0, [0.1] * 3, frames=frames, position=("1m", 2, "30cm"))
    assert frames["tip"].point == pytest.approx([0.1, 0.0, -0.02])
    assert body.position == pytest.approx([1.0, 2.0, 0.3])
    arm = mbd.FlexibleBody("arm", rod(), position=("5mm", 0, 0))
    assert arm.position == pytest.approx([0.005, 0.0, 0.0])
    placed = mbd.place(body, by="tip", at=("5mm", 0.2, 0), towards=("end", (0, 0, "1ft")))
    assert pose(placed, "tip")[0] == pytest.approx([0.005, 0.2, 0.0])
    with pytest.raises(InputError, match="point of a frame must be 3 finite numbers in m"):
        mbd.Frame(("5mmm", 0, 0))


def test_frames_of_other_bodies_are_targets() -> None:
    ground = mbd.Ground({"o": mbd.Frame((1.0, 2.0, 3.0), AXES)})
    first = mbd.place(rigid(), by="b", at=(ground, "o"))
    second = mbd.place(flexible(), by="a", at=(first, "a"), towards=("b", (ground, "o")))
    assert pose(first, "b")[0] == pytest.approx((1.0, 2.0, 3.0))
    assert pose(second, "a")[0] == pytest.approx(pose(first, "a")[0])
    d, goal = pose(second, "b")[0] - pose(second, "a")[0], (1.0, 2.0, 3.0) - pose(first, "a")[0]
    assert np.cross(d, goal) == pytest.approx(0, abs=1e-12) and d @ goal > 0


@pytest.mark.parametrize("angle", [0.0, 1e-7, np.pi - 1e-7, np.pi])
def test_small_and_half_turns(angle: float) -> None:
    """Half a turn is about z, so that a plane mechanism stays in its plane."""
    ends = {"a": mbd.Frame((0, 0, 0)), "b": mbd.Frame((1, 0, 0))}
    bar = mbd.RigidBody("bar", 1.0, [0.1] * 3, frames=ends)
    goal = np.array([np.cos(angle), np.sin(angle), 0.0])
    rotated = mbd.place(bar, by="a", at=(0, 0, 0), towards=("b", goal))
    assert pose(rotated, "b")[0] == pytest.approx(goal, abs=1e-12)
    assert np.asarray(rotated.rotation)[:, 2] == pytest.approx((0, 0, 1))


def test_wrong_arguments() -> None:
    body = rigid()
    calls = {
        "frame of body 'link'": {"by": "c"},
        "not both": {"axes": np.eye(3), "rotation": np.eye(3)},
        "coincides with 'a'": {"towards": ("a", (1, 2, 3))},
        "towards: its position": {"towards": ("b", (0, 0, 0))},
        "axes must be a rotation matrix": {"axes": np.diag([1, 1, -1.0])},
        "at must be": {"at": ("link", "a")},
        "towards must be": {"towards": (1, 2, 3)},
    }
    for text, options in calls.items():
        with pytest.raises(InputError, match=text):
            mbd.place(body, **{"by": "a", "at": (0, 0, 0), **options})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="body must be RigidBody or FlexibleBody"):
        mbd.place(mbd.Ground(), by="a", at=(0, 0, 0))  # type: ignore[type-var]


@pytest.mark.parametrize("z", [(1, 0, 0), (0, 0, -2), (0.3, -0.4, 0.5)])
def test_axes_from_the_direction_of_z(z: tuple[float, ...]) -> None:
    """A frame accepts the direction of its z axis, with the same x axis as an interface."""
    axes = np.asarray(mbd.Frame(axes=z).axes)
    assert np.allclose(axes[:, 2], np.array(z) / np.linalg.norm(z))
    assert np.allclose(axes.T @ axes, np.eye(3)) and np.linalg.det(axes) > 0
    assert np.array_equal(axes, mbd.InterfaceSpec(axes=z).axes)
    with pytest.raises(InputError, match="direction of z"):
        mbd.Frame(axes=(0, 0, 0))
