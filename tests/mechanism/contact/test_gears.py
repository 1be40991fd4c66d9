"""Gear pairs: derivatives, ratio, forces of the mesh, backlash and errors."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.mechanism.force_elements import FramePair
from tests.kernels.test_floating_frame import differences
from tests.mechanism.test_force_elements import moved

A, B = ("one", "a"), ("two", "b")
ANGLE = math.radians(20.0)
TABLE = 1e4 * np.array([1.0, 1.4, 1.2, 0.9])  # over a mesh cycle, N/m


@pytest.mark.parametrize("teeth", [(20, 31), (20, -55)], ids=["external", "ring"])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_derivatives_and_balance(teeth: tuple[int, int], side: float) -> None:
    mesh = mbd.mechanism.GearPair("g", A, B, teeth, 0.1, TABLE, damping=0.4, backlash=0.01)
    rng = np.random.default_rng(3)
    Q1 = exp_rotation(rng.normal(size=3))
    distance = 0.05 * abs(sum(teeth)) + 0.002  # 2 mm above the reference
    d = distance * np.array([np.cos(0.7), np.sin(0.7), 0.02])
    p1, u1, u2 = rng.normal(size=3), rng.normal(size=6), rng.normal(size=6)
    Q2 = Q1 @ exp_rotation(np.array([0.0, 0.0, 1.3]))
    pair = FramePair(p1, Q1, 0.1 * u1, p1 + Q1 @ d, Q2, 0.1 * u2)
    mesh = mesh.placed(pair)
    mesh = replace(mesh, offset=mesh.offset - side * 0.03)  # onto one flank
    tilt = exp_rotation(np.array([0.02, -0.03, 0.0]))
    pair = pair._replace(Q2=pair.Q2 @ tilt)
    assert (mesh.states(pair)[:, 2] > 0).sum() == 1  # force on one flank
    D, E = mesh.derivatives(pair)
    by_pose = differences(lambda d: mesh.wrenches(moved(pair, d)), 12)
    by_speed = differences(
        lambda d: mesh.wrenches(pair._replace(u1=pair.u1 + d[:6], u2=pair.u2 + d[6:])), 12
    )
    assert np.allclose(D, by_pose, atol=1e-7 * np.abs(D).max())
    assert np.allclose(E, by_speed, atol=1e-7 * np.abs(E).max())
    gaps = differences(lambda d: mesh.states(moved(pair, d))[:, 0], 12)
    assert np.allclose(mesh.states(pair)[:, 1], gaps @ np.concatenate([pair.u1, pair.u2]))
    wrench = mesh.wrenches(pair)
    assert np.allclose(wrench[:3], -wrench[6:9])
    moments = wrench[3:6] + wrench[9:] + np.cross(pair.p1, wrench[:3])
    assert np.allclose(moments + np.cross(pair.p2, wrench[6:9]), 0, atol=1e-9 * np.abs(D).max())
    if side > 0:  # without the work of the varying stiffness, the force is a gradient
        even = replace(mesh, stiffness=1e4)
        still = pair._replace(u1=np.zeros(6), u2=np.zeros(6))
        slope = differences(lambda d: np.array(even.energy(moved(still, d))), 12)
        assert np.allclose(even.wrenches(still), -slope, atol=1e-6 * np.abs(slope).max())


@pytest.mark.parametrize("teeth", [(20, 31), (20, -55)], ids=["external", "ring"])
def test_energy_of_both_flanks(teeth: tuple[int, int]) -> None:
    """Axes that are too close press both flanks; the force is still the gradient of the energy."""
    mesh = mbd.mechanism.GearPair("g", A, B, teeth, 0.1, 1e4)
    close = -0.002 if teeth[1] > 0 else 0.002
    d = np.array([0.05 * abs(sum(teeth)) + close, 0.0, 0.0])
    zero = np.zeros(6)
    pair = FramePair(np.zeros(3), np.eye(3), zero, d, np.eye(3), zero)
    mesh = mesh.placed(pair)
    assert (mesh.states(pair)[:, 2] > 0).all()  # force on both flanks
    slope = differences(lambda d: np.array(mesh.energy(moved(pair, d))), 12)
    wrench = mesh.wrenches(pair)
    assert np.allclose(wrench, -slope, atol=1e-6 * np.abs(wrench).max())


def transmission(teeth: tuple[int, int], torque: float, speed: float, **options) -> mbd.System:
    """Return two wheels; the first is driven, and a torque acts on the second."""
    distance = 0.5e-3 * 2 * abs(sum(teeth))
    ground = mbd.Ground({"one": mbd.Frame(), "two": mbd.Frame((distance, 0, 0))})
    first = mbd.RigidBody("first", 1.0, [1e-4] * 3, frames={"hub": mbd.Frame()})
    frames, place = {"hub": mbd.Frame()}, (distance, 0, 0)
    second = mbd.RigidBody("second", 2.0, [1e-3] * 3, frames=frames, position=place)
    ends = first.frame("hub"), second.frame("hub")
    mesh = mbd.mechanism.GearPair("mesh", *ends, teeth, 2e-3, **options)
    joints = [
        mbd.revolute("one", ground.frame("one"), first.frame("hub")),
        mbd.revolute("two", ground.frame("two"), second.frame("hub")),
    ]
    drive = mbd.Driver("drive", "one", mbd.constant_speed(speed))
    load = mbd.torque("load", second.frame("hub"), (0.0, 0.0, torque))
    return mbd.System([ground, first, second], joints, drivers=[drive], loads=[mesh, load])


@pytest.mark.filterwarnings("ignore:contact:UserWarning")  # the first touch does not matter
@pytest.mark.parametrize("teeth", [(20, 40), (20, -60)], ids=["external", "ring"])
def test_ratio_and_forces_of_the_mesh(teeth: tuple[int, int]) -> None:
    """Teeth wrap around; the force acts along the line of action at the pressure angle."""
    torque, speed, k, b = 5.0, 40.0, 1e7, 2e-5
    system = transmission(teeth, torque, speed, stiffness=k, damping=60.0, backlash=b)
    run = mbd.simulate(system, t_end=0.04, dt=4e-5)
    ratio = -teeth[0] / teeth[1]
    base = 1e-3 * abs(teeth[1]) * math.cos(ANGLE)
    force = torque / base
    turn, late = run.joint("two").rotation, run.time > 0.03
    angle = 0.5 * b / base + force / (k * base)  # lag of the second wheel
    behind = turn[late] - ratio * speed * run.time[late]
    assert behind == pytest.approx(angle, rel=1e-4)
    mesh = run.element("mesh")
    assert mesh.normal_force[late].max(axis=1) == pytest.approx(force, rel=1e-4)
    size = np.abs(mesh.force[late])
    assert size[:, 1] == pytest.approx(force * math.cos(ANGLE), rel=1e-4)
    assert size[:, 0] == pytest.approx(force * math.sin(ANGLE), rel=1e-3)
    push = mesh.force[late, 0] * np.sign(teeth[1])
    assert (push > 0).all()  # external wheels separate; a ring is pushed outwards
    # Without losses, the power of the drive and of the load add up to zero
    drive = run.element("drive").moment[late, 2]
    assert drive == pytest.approx(-torque * ratio, rel=1e-3)


def test_larger_distance_opens_the_backlash() -> None:
    mesh = mbd.mechanism.GearPair("g", A, B, (20, 40), 2e-3, 1e7)
    still = np.zeros(6)
    pair = FramePair(np.zeros(3), np.eye(3), still, np.array([0.06, 0, 0]), np.eye(3), still)
    mesh = mesh.placed(pair)
    assert mesh.states(pair)[:, 0] == pytest.approx(0.0, abs=1e-15)
    apart = mesh.states(pair._replace(p2=np.array([0.06001, 0, 0])))[:, 0]
    assert apart == pytest.approx(1e-5 * math.sin(ANGLE), rel=1e-3)


@pytest.mark.filterwarnings("ignore:contact:UserWarning")
def test_a_varying_stiffness_excites_at_the_tooth_frequency() -> None:
    table = 1e7 * np.array([1.0, 1.3, 1.0, 0.7])
    speed, teeth = 20.0, (20, 40)
    system = transmission(teeth, 5.0, speed, stiffness=table, damping=10.0)
    run = mbd.simulate(system, t_end=0.12, dt=8e-5)
    late = run.time > 0.04
    deviation = run.joint("two").rotation[late] + 0.5 * speed * run.time[late]
    spectrum = np.abs(np.fft.rfft((deviation - deviation.mean())[:-1]))
    peak = np.fft.rfftfreq(len(deviation) - 1, 8e-5)[spectrum.argmax()]
    assert peak == pytest.approx(speed * teeth[0] / (2 * np.pi), abs=13.0)  # 12.5 Hz: resolution


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"teeth": (20, 0)}, "teeth must be two whole numbers, the second negative"),
        ({"teeth": (20, -20)}, "the second negative and larger for a ring gear"),
        ({"teeth": 20}, "teeth must be two whole numbers"),
        ({"module": 0.0}, "module must be a positive"),
        ({"stiffness": -1.0}, "stiffness must be a positive number"),
        ({"stiffness": [1.0, 2.0]}, "three or more positive numbers"),
        ({"backlash": 0.1}, "less than half the base pitch"),
        ({"pressure_angle": 20.0}, "pressure_angle must be a positive"),
    ],
)
def test_invalid_gear_pairs(options: dict, text: str) -> None:
    valid = {"teeth": (20, 40), "module": 2e-3, "stiffness": 1e8}
    with pytest.raises(InputError, match=text):
        mbd.mechanism.GearPair("g", A, B, **(valid | options))


def test_axes_must_be_parallel_and_apart() -> None:
    mesh, still = mbd.mechanism.GearPair("g", A, B, (20, 40), 2e-3, 1e7), np.zeros(6)
    pair = FramePair(np.zeros(3), np.eye(3), still, np.array([0.06, 0, 0]), np.eye(3), still)
    with pytest.raises(InputError, match="not parallel"):
        mesh.placed(pair._replace(Q2=exp_rotation(np.array([0.1, 0, 0]))))
    with pytest.raises(InputError, match=r"reference distance is 0\.06 m"):
        mesh.wrenches(pair._replace(p2=np.array([0.05, 0, 0])))


@pytest.mark.parametrize(
    ("teeth", "reference"), [((20, 40), 0.06), ((20, -60), 0.04)], ids=["external", "ring"]
)
def test_wheels_that_cannot_mesh_are_an_error(teeth: tuple[int, int], reference: float) -> None:
    mesh, still = mbd.mechanism.GearPair("g", A, B, teeth, 2e-3, 1e7), np.zeros(6)
    # The limits differ by two modules, 4 mm, from the reference distance
    for distance, meshes in ((0.0639, True), (0.0641, False), (0.0561, True), (0.0559, False)):
        d = np.array([distance - 0.06 + reference, 0, 0])
        pair = FramePair(np.zeros(3), np.eye(3), still, d, np.eye(3), still)
        if meshes:
            mesh.placed(pair)
            continue
        with pytest.raises(InputError, match=f"teeth mesh at {reference:g} m") as info:
            mesh.placed(pair)
        assert info.value.argument == "module"
