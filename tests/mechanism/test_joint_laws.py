"""Every kind of joint: what it conserves, the reactions that it reports, closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import (
    AssemblyError,
    GeneralizedAlpha,
    System,
    consistent_state,
    redundancies,
)
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.kernels.rotations import exp_rotation, quaternion_from_matrix
from dolfinx_mbd.mechanism import (
    JOINT_KINDS,
    Driver,
    FlexibleBody,
    Frame,
    FrameRef,
    Ground,
    Joint,
    RigidBody,
    State,
    constant_speed,
    cylindrical,
    distance,
    force,
    planar,
    point_on_line,
    point_on_plane,
    prismatic,
    revolute,
    torque,
    universal,
)
from dolfinx_mbd.mechanism.mechanisms import ALONG_X, rigid_rod, slider_crank
from tests.models.particles import Particles

# The assembly moves bodies from their random initial positions, which gives this warning
pytestmark = pytest.mark.filterwarnings("ignore::dolfinx_mbd.errors.PlacementWarning")

KINDS = sorted(JOINT_KINDS)
GRAVITY = 9.81


def pair_of_bodies(kind: str, flexible: bool, gravity: tuple[float, float, float]) -> System:
    """Return two free bodies in random positions, with a joint between them."""
    rng = np.random.default_rng(KINDS.index(kind))
    block = RigidBody.box(
        "block",
        (0.2, 0.3, 0.4),
        mass=2.0,
        centre=(0.1, 0.05, 0.0),
        frames={"a": Frame((0.1, 0.2, 0.3), exp_rotation(rng.normal(size=3)))},
        position=rng.normal(size=3),
        rotation=quaternion_from_matrix(exp_rotation(rng.normal(size=3))),
    )
    other: RigidBody | FlexibleBody
    place = {"position": rng.normal(size=3), "rotation": (0.5, 0.5, 0.5, 0.5)}
    if flexible:
        reduced = Particles(2, 3).body()
        other = FlexibleBody(
            "other", reduced.replace(damping=np.zeros((2, 2))), damping_ratio=0.0, **place
        )
        end = "one"
    else:
        frames = {"b": Frame((-0.2, 0.1, 0.0), exp_rotation(rng.normal(size=3)))}
        other = RigidBody.box("other", (0.3, 0.1, 0.2), mass=1.0, frames=frames, **place)
        end = "b"
    joint = Joint("joint", kind, block.frame("a"), other.frame(end))
    return System([block, other], [joint], gravity=gravity)


def moving_start(system: System) -> State:
    """Return a state with random velocities."""
    rng = np.random.default_rng(8)
    v = rng.normal(size=system.num_velocities)
    return consistent_state(system, elastic_start="undeformed", v=v)


@pytest.mark.parametrize("flexible", [False, True], ids=["rigid", "flexible"])
@pytest.mark.parametrize("kind", KINDS)
def test_energy_and_momentum(kind: str, flexible: bool) -> None:
    """No joint does work or exerts an external force: errors are of the order dt²."""
    system = pair_of_bodies(kind, flexible, (0.0, 0.0, 0.0))
    start = moving_start(system)
    method = GeneralizedAlpha.from_spectral_radius(0.9)
    changes = []
    for dt in (4e-3, 2e-3):
        run = simulate(system, t_end=0.2, dt=dt, start=start, method=method, tolerance=1e-10)
        energy, momentum = run.energies().total, run.momenta()
        assert run.constraint_violation().max() < 1e-10
        changes.append([np.ptp(energy) / energy[0], np.abs(momentum - momentum[0]).max()])
    coarse, fine = np.array(changes)
    assert (fine < 2e-3 * np.array([1.0, np.abs(momentum[0]).max()])).all()
    assert (fine < 0.35 * coarse + 1e-8).all()


def joint_axes(kind: str, pose: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the axes in which a joint reports its force and its moment."""
    p1, Q1, p2, Q2 = pose
    forces = moments = Q1
    if kind == "distance":
        forces = np.zeros((3, 3))
        forces[:, 0] = (p2 - p1) / np.linalg.norm(p2 - p1)
    if kind == "universal":
        moments = np.zeros((3, 3))
        moments[:, 2] = np.cross(Q2[:, 0], Q1[:, 1])  # normal to both pins
    return forces, moments


@pytest.mark.parametrize("flexible", [False, True], ids=["rigid", "flexible"])
@pytest.mark.parametrize("kind", KINDS)
def test_reported_reactions_replace_the_joint(kind: str, flexible: bool) -> None:
    """As loads on both bodies, the reported force and moment give the same accelerations."""
    system = pair_of_bodies(kind, flexible, (1.0, 2.0, -9.0))
    start = moving_start(system)
    run = simulate(system, t_end=1e-3, dt=1e-3, start=start)
    history = run.joint("joint")
    eqs = Assembler(system)
    eqs.q[:] = start.q
    eqs.update_poses(0.0)
    joint = system.joints[0]
    i, j = system.frame_index(joint.first), system.frame_index(joint.second)
    pose = eqs.position[i], eqs.rotation[i], eqs.position[j], eqs.rotation[j]
    forces, moments = joint_axes(kind, pose)
    F, M = forces @ history.force[0], moments @ history.moment[0]  # on the second body
    lever = pose[2] - pose[0]
    loads = [
        force("f2", joint.second, F),
        torque("m2", joint.second, M),
        force("f1", joint.first, -F),
        torque("m1", joint.first, -M - np.cross(lever, F)),
    ]
    free = Assembler(System(system.bodies, loads=loads, gravity=system.gravity))
    free.q[:], free.v[:], free.a[:] = start.q, start.v, start.a
    free.residual(0.0)
    assert np.abs(F).max() + np.abs(M).max() > 1e-3
    assert np.abs(free.rows).max() < 1e-9 * free.scale.max()


def test_universal_joint_has_the_velocity_ratio_of_cardan() -> None:
    """ω₂/ω₁ = cos β / (1 − sin²β cos²θ), and the torques are in the inverse ratio.

    At the angle θ = 0 of the first shaft, its pin is in the plane of both shafts.
    """
    bend, speed, load = 0.6, 10.0, 3.0
    tilted = exp_rotation(np.array([bend, 0.0, 0.0]))
    ground = Ground({"in": Frame(), "tip": Frame(tilted @ [0, 0, 0.5], tilted)})
    inertia = [0.01, 0.01, 1e-9]
    first = RigidBody("first", 1.0, [0.01] * 3, frames={"o": Frame()})
    second = RigidBody(
        "second",
        1e-6,  # nearly without mass
        np.array(inertia) * 1e-6 + 1e-12,
        frames={"o": Frame(), "tip": Frame((0, 0, 0.5))},
        rotation=quaternion_from_matrix(tilted),
    )
    joints = [
        revolute("bearing", ground.frame("in"), first.frame("o")),
        universal("cross", first.frame("o"), second.frame("o")),
        point_on_line("guide", ground.frame("tip"), second.frame("tip")),
    ]
    drivers = [Driver("drive", "bearing", constant_speed(speed))]
    brake = torque("brake", second.frame("o"), (0, 0, -load), "frame")
    system = System([ground, first, second], joints, drivers=drivers, loads=[brake])
    assert redundancies(system) == []
    run = simulate(system, t_end=2 * np.pi / speed, dt=2 * np.pi / speed / 200).projected()
    angle = run.joint("bearing").rotation
    ratio = run.body("second").omega[:, 2] / speed
    exact = np.cos(bend) / (1 - (np.sin(bend) * np.sin(angle + np.pi / 2)) ** 2)
    assert np.ptp(exact) > 0.3
    assert np.allclose(ratio, exact, rtol=1e-6)
    assert np.allclose(run.joint("drive").moment[:, 2], load * exact, rtol=1e-4)
    axis = run.joint("cross").moment
    assert np.all(axis[:, :2] == 0)


def test_conical_pendulum_on_a_distance() -> None:
    """Ω² = g/(L cos θ), tension m g/cos θ."""
    length, tilt, mass = 0.8, 0.5, 1.5
    bob = RigidBody(
        "bob",
        mass,
        [1e-3] * 3,
        frames={"c": Frame()},
        position=(length * np.sin(tilt), 0, -length * np.cos(tilt)),
    )
    ground = Ground({"o": Frame()})
    joints = [distance("rod", ground.frame("o"), bob.frame("c"))]
    system = System([ground, bob], joints, gravity=(0, 0, -GRAVITY))
    assert np.isclose(system.joints[0].length, length, rtol=1e-15)
    omega = np.sqrt(GRAVITY / (length * np.cos(tilt)))
    v = np.array([0, omega * length * np.sin(tilt), 0, 0, 0, 0])
    start = consistent_state(system, v=v)
    run = simulate(system, t_end=2 * np.pi / omega, dt=2 * np.pi / omega / 2000, start=start)
    assert np.allclose(-run.joint("rod").force[:, 0], mass * GRAVITY / np.cos(tilt), rtol=1e-5)
    position = run.body("bob").position
    assert np.allclose(position[:, 2], -length * np.cos(tilt), atol=1e-6)
    assert np.allclose(position[-1], position[0], atol=1e-5)


@pytest.mark.parametrize("make", [planar, point_on_line, point_on_plane])
def test_sliding_on_an_incline(make) -> None:  # type: ignore[no-untyped-def]
    """The normal force is m g cos α, and the acceleration from rest is g sin α.

    The z axis of the frames is normal to a plane, but along a line.
    """
    tilt, mass = 0.4, 2.0
    normal = np.array([np.sin(tilt), 0.0, np.cos(tilt)])
    down = np.array([np.cos(tilt), 0.0, -np.sin(tilt)])
    across = np.array([0.0, 1.0, 0.0])
    columns = [normal, across, -down] if make is point_on_line else [down, across, normal]
    axes = np.column_stack(columns)
    ground = Ground({"o": Frame((0, 0, 0), axes)})
    block = RigidBody.box("block", (0.1,) * 3, mass=mass, frames={"c": Frame((0, 0, 0), axes)})
    system = System(
        [ground, block],
        [make("slide", ground.frame("o"), block.frame("c"))],
        gravity=(0, 0, -GRAVITY),
    )
    run = simulate(system, t_end=0.3, dt=1e-3)
    normal_force = run.joint("slide").force[:, 0 if make is point_on_line else 2]
    assert np.allclose(normal_force, mass * GRAVITY * np.cos(tilt), rtol=1e-9)
    travelled = run.body("block").position[-1]
    assert np.allclose(travelled, 0.5 * GRAVITY * np.sin(tilt) * 0.3**2 * down, atol=1e-9)


@pytest.mark.parametrize("make", [revolute, cylindrical, planar])
def test_opposite_axes(make) -> None:  # type: ignore[no-untyped-def]
    """Opposite axes y and z of the second frame change no result: z is that of the first frame."""
    histories = []
    for axes in (np.eye(3), np.diag([1.0, -1.0, -1.0])):
        bar = RigidBody.box(
            "bar",
            (1, 0.1, 0.2),
            mass=1.0,
            centre=(0.5, 0.0, 0.3),
            frames={"o": Frame((0, 0, 0), axes)},
        )
        ground = Ground({"o": Frame()})
        joint = make("axis", ground.frame("o"), bar.frame("o"))
        system = System([ground, bar], [joint], gravity=(1.0, -GRAVITY, 0.5))
        start = consistent_state(system, v=np.array([0.0, 0, 0, 0, 0, 7.0]))
        run = simulate(system, t_end=0.3, dt=5e-3, start=start)
        histories.append(run.joint("axis"))
    assert np.ptp(histories[0].rotation) > 1.0
    for key in ("force", "moment", "rotation"):
        equal, opposite = (getattr(history, key) for history in histories)
        assert np.allclose(equal, opposite, atol=1e-9)


def test_redundant_new_joints_are_named() -> None:
    """A distance to a point on the axis of a hinge is redundant; so is a second plane."""
    ground = Ground({"o": Frame(), "p": Frame((1.0, 0.0, 0.0))})
    bar = RigidBody.box(
        "bar", (1, 0.1, 0.1), mass=1.0, frames={"o": Frame(), "c": Frame((0, 0, 0.2))}
    )
    pivot = revolute("pivot", ground.frame("o"), bar.frame("o"))
    rod = distance("rod", ground.frame("o"), bar.frame("c"))
    (redundancy,) = redundancies(System([ground, bar], [pivot, rod]))
    assert str(redundancy) == "distance joint 'rod', length (held by 'pivot' already)"
    planes = [planar(name, ground.frame(name), bar.frame("o")) for name in ("o", "p")]
    names = [str(r) for r in redundancies(System([ground, bar], planes))]
    assert names[0] == "planar joint 'p', displacement along z (held by 'o' already)"
    assert len(names) == 3
    line = point_on_line("line", ground.frame("o"), bar.frame("o"))
    (redundancy,) = redundancies(
        System([ground, bar], [line, universal("cross", ground.frame("o"), bar.frame("o"))])
    )[:1]
    assert redundancy.name.startswith(("point-on-line joint 'line'", "universal joint 'cross'"))


def dead_centre(**settings) -> System:  # type: ignore[no-untyped-def]
    """Return a slider-crank mechanism at its dead centre, with drivers or loads."""
    system = slider_crank(
        rigid_rod(length=0.3, mass=0.15),
        crank_radius=0.1,
        crank_mass=0.4,
        piston_mass=0.1,
        torque=0.0,
    )
    return System(system.bodies, system.joints, **settings)


def test_dead_centre() -> None:
    """At a dead centre, the slider cannot be driven, and a force on it does not rotate the crank.

    A crank that rotates passes the dead centre.
    """
    push = Driver("push", "guide", constant_speed(-0.1), offset=None)
    with pytest.raises(AssemblyError, match=r"1 of the .* are redundant in this position"):
        consistent_state(dead_centre(drivers=[push]))
    with pytest.raises(AssemblyError, match="the rates of 'guide' contradict"):
        consistent_state(dead_centre(), rates={"guide": 0.1})
    system = dead_centre()
    piston = system.body("piston")
    load = force("gas", FrameRef("piston", piston.frame_names[0]), (-50.0, 0.0, 0.0))
    system = dead_centre(loads=[load])
    run = simulate(system, t_end=0.02, dt=1e-4)
    assert np.abs(run.joint("main").rotation).max() < 1e-9
    run = simulate(system, t_end=0.02, dt=1e-4, start={"main": 5.0})
    assert run.joint("main").rotation[-1] > 0.105  # 0.1 rad without the force


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda a, b: distance("rod", a, b, 0.0), "^joint 'rod': length must be"),
        (lambda a, b: distance("rod", a, b, np.nan), "^joint 'rod': length must be"),
        (lambda a, b: Joint("pin", "revolute", a, b, 1.0), "^joint 'pin': length must be None"),
        (lambda a, b: universal("cross", a, a), "connects body 'ground' with itself"),
        (
            lambda a, b: planar("plane", a, FrameRef("wall", "c")),
            "'wall', which is not one of the bodies",
        ),
        (
            lambda a, b: planar("plane", a, FrameRef("bob", "x")),
            "^frame of body 'bob' must be .* 'x'",
        ),
        (lambda a, b: distance("rod", a, b), "'rod': its points coincide at the initial positions"),
    ],
)
def test_bad_joints(make, message: str) -> None:  # type: ignore[no-untyped-def]
    ground, bob = Ground({"o": Frame()}), RigidBody("bob", 1.0, [1.0] * 3, frames={"c": Frame()})
    with pytest.raises(ValueError, match=message):
        System([ground, bob], [make(ground.frame("o"), bob.frame("c"))])


def test_a_rod_that_is_too_short_cannot_be_assembled() -> None:
    """The rod is shorter than the distance between two rails."""
    rail = Frame((0, 0, 0), ALONG_X)
    ground = Ground({"low": rail, "high": Frame((0, 1.0, 0), ALONG_X)})
    low, high = (
        RigidBody.box(
            name,
            (0.1,) * 3,
            mass=1.0,
            frames={"c": Frame(), "rail": rail},
            position=(0, y, 0),
        )
        for name, y in (("one", 0.0), ("two", 1.0))
    )
    joints = [
        prismatic("lower", ground.frame("low"), low.frame("rail")),
        prismatic("upper", ground.frame("high"), high.frame("rail")),
        distance("rod", low.frame("c"), high.frame("c"), 0.5),
    ]
    with pytest.raises(AssemblyError, match=r"cannot be assembled.*is off by"):
        consistent_state(System([ground, low, high], joints))
