"""Drivers by position, speed and angle; the summary of a system."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import AssemblyError, System, consistent_state
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism import (
    Driver,
    Frame,
    Ground,
    JointFriction,
    JointSpring,
    RigidBody,
    SpringDamper,
    constant_speed,
    cylindrical,
    differentiated,
    integrated,
    planar,
    point_on_line,
    prismatic,
    revolute,
    spherical,
)

MASS, INERTIA, GRAVITY = 2.0, 0.03, 9.81


def lift(make, *drivers: Driver, position=(0.0, 0.0, 0.3), angle: float = 0.0, loads=()) -> System:  # type: ignore[no-untyped-def]
    """Return a body with a joint `make` along the vertical z axis of the ground."""
    ground = Ground({"o": Frame()})
    body = RigidBody(
        "body",
        MASS,
        [INERTIA] * 3,
        frames={"c": Frame()},
        position=position,
        rotation=(np.cos(angle / 2), 0, 0, np.sin(angle / 2)),
    )
    joint = make("axis", ground.frame("o"), body.frame("c"))
    return System([ground, body], [joint], drivers=drivers, loads=loads, gravity=(0, 0, -GRAVITY))


def wave(t: float) -> tuple[float, float, float]:
    """Return an oscillation of amplitude 0.1 with 8 rad/s, its velocity and its acceleration."""
    return 0.1 * np.sin(8 * t), 0.8 * np.cos(8 * t), -6.4 * np.sin(8 * t)


@pytest.mark.parametrize("make", [prismatic, cylindrical, point_on_line])
def test_a_driven_displacement(make) -> None:  # type: ignore[no-untyped-def]
    """The motion is relative to the initial position; the force of the driver is m (a + g)."""
    driver = Driver("drive", "axis", wave, "displacement", None)
    system = lift(make, driver)
    assert system.drivers[0].offset == 0.3
    run = simulate(system, t_end=0.5, dt=1e-3).projected()
    z, rates, accelerations = np.array([wave(t) for t in run.time]).T
    assert np.allclose(run.body("body").position[:, 2], 0.3 + z, atol=1e-12)
    assert np.allclose(run.body("body").velocity[:, 2], rates, atol=1e-11)
    force = run.joint("drive").force
    assert np.allclose(force[:, 2], MASS * (GRAVITY + accelerations), atol=1e-8)
    assert np.all(force[:, :2] == 0)


@pytest.mark.parametrize("make", [revolute, cylindrical, planar])
def test_a_driven_rotation(make) -> None:  # type: ignore[no-untyped-def]
    """The angle is relative to the initial rotation of the body; the moment is J α."""
    driver = Driver("drive", "axis", wave, offset=None)
    run = simulate(lift(make, driver, angle=0.7), t_end=0.5, dt=1e-3).projected()
    angle, _, accelerations = np.array([wave(t) for t in run.time]).T
    assert np.allclose(run.joint("axis").rotation, 0.7 + angle, atol=1e-12)
    assert np.allclose(run.joint("drive").moment[:, 2], INERTIA * accelerations, atol=1e-9)


def test_a_screw_of_two_drivers() -> None:
    """Two drivers prescribe rotation and displacement of one cylindrical joint."""
    drivers = [
        Driver("turn", "axis", constant_speed(20.0)),
        Driver("feed", "axis", constant_speed(0.1), "displacement", None),
    ]
    run = simulate(lift(cylindrical, *drivers), t_end=1.0, dt=2e-3)
    assert run.joint("turn").rotation[-1] == pytest.approx(20.0, abs=1e-9)
    assert run.body("body").position[-1, 2] == pytest.approx(0.4, abs=1e-12)


@pytest.mark.parametrize("angle", [-3.0, -1.7, 1.6, 3.0, 4.0, 9.0, 100.0])
def test_a_driver_finds_its_angle_from_anywhere(angle: float) -> None:
    """The angle is not missed by half a turn, where the equation is zero too; turns are counted."""
    state = consistent_state(
        lift(revolute, Driver("drive", "axis", lambda t: (angle, 0.0, 0.0), offset=0.0))
    )
    assert state.angles[0] == pytest.approx(angle, abs=1e-12)
    w, z = state.q[3], state.q[6]  # w + i z = exp(i angle / 2)
    assert np.exp(1j * angle) == pytest.approx((w + 1j * z) ** 2, abs=1e-12)


def test_assembly_aligns_the_frames_of_a_prismatic_joint() -> None:
    """From any initial angle, the frames become parallel and not opposite by half a turn."""
    for angle in (1.0, 2.0, 3.0):
        state = consistent_state(lift(prismatic, angle=angle))
        assert abs(state.q[3]) == pytest.approx(1.0, abs=1e-12)  # (±1, 0, 0, 0)


def test_a_position_alone_is_differentiated() -> None:
    for t in (0.0, 0.3, 1.0):
        exact = np.sin(40 * t), 40 * np.cos(40 * t), -1600 * np.sin(40 * t)
        assert np.allclose(
            differentiated(lambda s: float(np.sin(40 * s)))(t), exact, atol=1e-8 * 1600
        )
    run = simulate(
        lift(
            prismatic,
            Driver(
                "drive", "axis", differentiated(lambda t: 0.3 + 0.1 * np.sin(8 * t)), offset=0.0
            ),
        ),
        t_end=0.2,
        dt=1e-3,
    )
    exact_run = simulate(
        lift(prismatic, Driver("drive", "axis", wave, offset=0.3)), t_end=0.2, dt=1e-3
    )
    assert np.allclose(run.joint("drive").force, exact_run.joint("drive").force, atol=1e-5)


def test_a_speed_alone_is_integrated() -> None:
    """The integral is exact before and after t = 0, in whatever order its values are computed."""
    motion = integrated(lambda t: 3 * np.cos(7 * t), start=0.2)
    times = [0.5, -0.3, 0.0, 0.01, -0.01, 2.0, 0.5]
    for t in times:
        exact = 0.2 + 3 / 7 * np.sin(7 * t), 3 * np.cos(7 * t), -21 * np.sin(7 * t)
        assert np.allclose(motion(t), exact, atol=1e-9)
        assert motion(t)[0] == pytest.approx(exact[0], abs=1e-14)
        assert motion(t) == integrated(lambda s: 3 * np.cos(7 * s), start=0.2)(t)
    run = simulate(
        lift(revolute, Driver("d", "axis", integrated(lambda t: 50 * t))), t_end=0.4, dt=1e-3
    )
    assert run.joint("d").rotation[-1] == pytest.approx(25 * 0.4**2, abs=1e-12)


def test_a_driver_faster_than_the_step() -> None:
    system = lift(revolute, Driver("drive", "axis", constant_speed(400.0)))
    system.check_step(0.0, 7e-3)  # 2.8 rad per step, less than π
    with pytest.raises(ValueError, match=r"'drive' turns by 4 rad .* a dt below 0.0079"):
        system.check_step(0.0, 0.01)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Driver("d", "axis", wave, "sideways"), "^driver 'd': along must be one of"),  # type: ignore[arg-type]
        (lambda: Driver("d", "axis", wave, offset=np.nan), "^driver 'd': offset must be"),
        (lambda: lift(spherical, Driver("d", "axis", wave)), "spherical joint 'axis' has no"),
        (
            lambda: lift(revolute, Driver("d", "axis", wave, "displacement")),
            "revolute joint 'axis' has no displacement",
        ),
        (
            lambda: lift(prismatic, Driver("d", "axis", wave), Driver("e", "axis", wave)),
            "drivers 'd' and 'e' prescribe the same displacement of joint 'axis'",
        ),
        (
            lambda: consistent_state(lift(prismatic, Driver("d", "axis", np.sin))),
            r"motion\(0\) must return .* differentiated",
        ),
    ],
)  # fmt: skip
def test_bad_drivers(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: differentiated(np.sin, step=0.0), "step"),
        (lambda: integrated(np.sin, panel=-1.0), "panel"),
        (lambda: integrated(np.sin, start=np.nan), "start"),
        (lambda: integrated(3.0), "rate"),  # type: ignore[arg-type]
        (lambda: differentiated("x"), "position"),  # type: ignore[arg-type]
    ],
)
def test_bad_motions(make, argument: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError) as error:
        make()
    assert error.value.argument == argument


def test_a_driver_of_a_held_body_is_named() -> None:
    """A slider that another joint locks cannot be driven."""
    ground = Ground({"o": Frame()})
    body = RigidBody("body", 1.0, [1.0] * 3, frames={"c": Frame()})
    joints = [
        prismatic("rail", ground.frame("o"), body.frame("c")),
        spherical("lock", ground.frame("o"), body.frame("c")),
    ]
    drive = Driver("drive", "rail", constant_speed(1.0))
    with pytest.raises(AssemblyError, match=r"3 of the 9 constraints are redundant.*'drive'"):
        consistent_state(System([ground, body], joints, drivers=[drive]))


def test_the_table_of_a_system_lists_all_its_parts() -> None:
    loads = [
        JointSpring("coil", "axis", 3.0),
        JointFriction("seal", "axis", 1.0, 0.1),
        SpringDamper("strut", ("ground", "o"), ("body", "c"), 10.0),
    ]
    system = lift(cylindrical, Driver("turn", "axis", constant_speed(20.0)), loads=loads)
    text = str(system)
    assert text == system.summary()
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for line in (
        "body RigidBody 2 6 0",
        "axis cylindrical ground: o body: c 4",
        "turn rotation joint axis",
        "coil spring-damper joint axis",
        "seal friction joint axis",
        "strut spring-damper ground: o to body: c",
        "degrees of freedom 1 = 6 coordinates − 5 constraints",
    ):
        assert line in lines
    overconstrained = System(
        system.bodies,
        [*system.joints, spherical("ball", ("ground", "o"), ("body", "c"))],  # type: ignore[arg-type]
    )
    text = overconstrained.summary()
    assert "degrees of freedom   1 = 6 coordinates − 7 constraints + 2 redundant" in text
    assert "held by 'axis'" in text


def test_the_table_of_a_system_that_cannot_be_assembled_says_so() -> None:
    """Apart from this message, the table is complete."""
    ground = Ground({"o": Frame(), "far": Frame((1.0, 0.0, 0.0))})
    body = RigidBody("body", 1.0, [1.0] * 3, frames={"c": Frame()})
    joints = [
        spherical(name, ground.frame(name), body.frame("c"))  # the body cannot be at both points
        for name in ("o", "far")
    ]
    text = str(System([ground, body], joints))
    assert "far    spherical  ground: far" in text
    assert "6 coordinates, 6 constraints; the mechanism cannot be assembled" in text
