"""Kinematic analysis and inverse dynamics: closed forms, simulations, power, singular positions."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.analyses import KinematicError, inverse_dynamics, kinematic_analysis, simulate
from dolfinx_mbd.dynamics import System
from dolfinx_mbd.mechanism import (
    Driver,
    Frame,
    Ground,
    JointCoordinate,
    RigidBody,
    constant_speed,
    cylindrical,
    prismatic,
    revolute,
    spherical,
)
from dolfinx_mbd.mechanism.mechanisms import rigid_rod, slider_crank
from dolfinx_mbd.mechanism.mechanisms.kinematics import SliderCrank
from tests.models.beams import slender_rod

SETTINGS = {
    "crank_radius": 0.15,
    "crank_mass": 0.36,
    "piston_mass": 0.0755,
    "gravity": (0.0, -9.81, 0.0),
}
TIMES = np.linspace(0.0, 0.05, 51)


def test_driven_slider_crank() -> None:
    """Positions and accelerations follow the closed form over more than a revolution."""
    run = kinematic_analysis(
        slider_crank(rigid_rod(length=0.3, mass=0.15), speed=150.0, **SETTINGS), TIMES
    )
    exact = SliderCrank(0.15, 0.3).motion(150.0 * TIMES, 150.0)
    piston, rod = run.body("piston"), run.body("rod")
    assert np.allclose(piston.position[:, 0], exact.slider, atol=1e-13)
    assert np.allclose(piston.velocity[:, 0], exact.slider_velocity, atol=1e-11)
    assert np.allclose(piston.acceleration[:, 0], exact.slider_acceleration, atol=1e-9)
    assert np.allclose(rod.alpha[:, 2], exact.rod_acceleration, atol=1e-8)
    assert np.isclose(run.joint("main").rotation[-1], 7.5)


def test_drive_torque_is_the_power_balance() -> None:
    """Torque times speed is the rate of kinetic and potential energy, computed from M v̇."""
    system = slider_crank(rigid_rod(length=0.3, mass=0.15), speed=150.0, **SETTINGS)
    run = kinematic_analysis(system, TIMES)
    power = 150.0 * run.joint("drive").moment[:, 2]
    rate = np.zeros(len(TIMES))
    masses = {"crank": 0.36, "rod": 0.15, "piston": 0.0755}
    for name, mass in masses.items():
        body = system.body(name)
        # the centre of the rod is the mean of its ends
        v, a = (
            run.sensor(name, "small_end", key) / 2 + run.sensor(name, "big_end", key) / 2
            if name == "rod"
            else run.sensor(name, (0, 0, 0), key)
            for key in ("velocity", "acceleration")
        )
        rate += mass * np.sum(v * (a - SETTINGS["gravity"]), axis=1)
        inertia = 0.15 * 0.3**2 / 12 if name == "rod" else 0.0
        rate += inertia * run.body(name).omega[:, 2] * run.body(name).alpha[:, 2]
        assert body.typical_mass == mass
    assert np.allclose(power, rate, atol=1e-10 * np.abs(rate).max())


def test_reactions_are_those_of_a_simulation() -> None:
    system = slider_crank(rigid_rod(length=0.3, mass=0.15), speed=150.0, **SETTINGS)
    run = kinematic_analysis(system, TIMES)
    simulated = simulate(system, t_end=0.05, dt=5e-5, stride=20).projected()
    assert np.allclose(simulated.time, TIMES)
    assert np.allclose(run.lam, simulated.lam, atol=1e-9 * np.abs(run.lam).max())
    known = inverse_dynamics(system, simulated)
    assert np.allclose(known.solution.lam, simulated.lam, atol=1e-9 * np.abs(run.lam).max())
    assert known.unbalanced.max() < 1e-10


def test_flexible_rod_without_vibration() -> None:
    """A quasi-static rod agrees with the start of a run, an undeformed one with a rigid rod."""
    rod = slender_rod()
    flexible = slider_crank(rod, speed=150.0, **SETTINGS)
    rigid = slider_crank(rod.rigid(), speed=150.0, **SETTINGS)
    undeformed = kinematic_analysis(flexible, TIMES[:5])
    assert np.allclose(undeformed.lam, kinematic_analysis(rigid, TIMES[:5]).lam, rtol=1e-9)
    settled = kinematic_analysis(flexible, TIMES[:5], elastic_start="quasi-static")
    assert np.abs(settled.body("rod").eta).max() > 1e-6
    simulated = simulate(flexible, t_end=1e-6, dt=1e-6)
    assert np.allclose(settled.lam[0], simulated.lam[0])


def test_torque_of_a_known_motion() -> None:
    """The motion of a mechanism that a torque drives determines the torque and the reactions."""

    def torque(t: float, angle: float, rate: float) -> float:
        return 20.0 + 5.0 * np.sin(300.0 * t)

    driven = slider_crank(slender_rod(), torque=torque, **SETTINGS)
    motion = simulate(driven, t_end=0.03, dt=2e-4)
    passive = System(driven.bodies, driven.joints, gravity=driven.gravity)
    for actuator in ("main", JointCoordinate("main", "rotation")):
        result = inverse_dynamics(passive, motion, actuators=[actuator])
        exact = [torque(t, 0.0, 0.0) for t in motion.time]
        assert np.allclose(result.efforts[actuator], exact, rtol=1e-6)
        size = np.abs(motion.lam).max()
        assert np.allclose(result.solution.lam, motion.lam, atol=1e-6 * size)
        assert np.array_equal(result.solution.angles[-1], motion.angles[-1])
    with pytest.raises(ValueError, match="the axis of a joint only once"):
        inverse_dynamics(passive, motion, actuators=["main", "main"])
    with pytest.raises(ValueError, match=r"no joint, driver or actuator carries .*'crank', moment"):
        inverse_dynamics(passive, motion)
    different = slider_crank(rigid_rod(length=0.3, mass=0.15), speed=1.0, **SETTINGS)
    with pytest.raises(ValueError, match="belongs to other bodies"):
        inverse_dynamics(different, motion)


def four_bar(driven: str, sizes: tuple[float, ...] = (1.0, 0.5, 0.9, 0.8)) -> System:
    """Return a four-bar linkage of base, crank, coupler and rocker with these lengths."""
    base, crank, coupler, rocker = sizes
    ground = Ground({"o": Frame(), "p": Frame((base, 0, 0))})
    angle = 1.0
    tip = crank * np.array([np.cos(angle), np.sin(angle)])
    diagonal = tip - [base, 0.0]
    reach = float(np.hypot(*diagonal))
    angle_at_hinge = np.arccos((rocker**2 + reach**2 - coupler**2) / (2 * rocker * reach))
    rocker_angle = float(np.arctan2(diagonal[1], diagonal[0]) - angle_at_hinge)
    top = np.array([base, 0.0]) + rocker * np.array([np.cos(rocker_angle), np.sin(rocker_angle)])
    coupler_angle = float(np.arctan2(*(top - tip)[::-1]))

    def bar(name: str, length: float, at: np.ndarray, turn: float) -> RigidBody:
        return RigidBody.box(
            name, (length, 0.05, 0.05), mass=1.0, centre=(length / 2, 0, 0),
            frames={"a": Frame(), "b": Frame((length, 0, 0))}, position=(*at, 0.0),
            rotation=(np.cos(turn / 2), 0, 0, np.sin(turn / 2)),
        )  # fmt: skip

    bodies = [
        bar("crank", crank, np.zeros(2), angle),
        bar("coupler", coupler, tip, coupler_angle),
        bar("rocker", rocker, np.array([base, 0.0]), rocker_angle),
    ]
    first, second, third = bodies
    joints = [
        revolute("foot", ground.frame("o"), first.frame("a")),
        cylindrical("knee", first.frame("b"), second.frame("a")),
        spherical("top", second.frame("b"), third.frame("b")),
        revolute("hinge", ground.frame("p"), third.frame("a")),
    ]
    start = {"foot": angle, "hinge": rocker_angle}[driven]
    drive = Driver("drive", driven, constant_speed(1.0, start), offset=0.0)
    return System([ground, *bodies], joints, drivers=[drive])


def test_a_driven_four_bar_closes() -> None:
    run = kinematic_analysis(four_bar("foot"), np.linspace(0, 2 * np.pi, 41))
    assert run.constraint_violation().max() < 1e-12
    for name in ("crank", "coupler", "rocker"):
        assert np.allclose(run.body(name).position[0], run.body(name).position[-1], atol=1e-9)
    assert np.isclose(np.ptp(run.joint("foot").rotation), 2 * np.pi)
    assert np.isclose(run.joint("hinge").rotation[0], run.joint("hinge").rotation[-1])


def test_singular_positions_are_reported() -> None:
    """A rocker cannot be driven past its limits, where crank and coupler are in line."""
    with pytest.raises(KinematicError, match="singular") as error:
        kinematic_analysis(four_bar("hinge"), np.linspace(0, 3, 301))
    run = error.value.solution
    assert run is not None
    assert 0 < run.time[-1] < error.value.time < 3
    # crank and coupler as vectors, which are nearly parallel at the limit
    crank = run.body("coupler").position[-1]
    coupler = run.sensor("coupler", (0.9, 0, 0))[-1] - crank
    sine = np.cross(crank, coupler)[2] / (0.5 * 0.9)
    assert abs(sine) < 0.2
    flat = four_bar("foot", (1.0, 0.5, 1.0, 0.5))  # a parallelogram passes flat positions
    with pytest.raises(KinematicError, match="singular"):
        kinematic_analysis(flat, np.linspace(0, 2 * np.pi, 82))


def test_undetermined_motion_is_an_error() -> None:
    system = slider_crank(rigid_rod(length=0.3, mass=0.15), torque=1.0, **SETTINGS)
    with pytest.raises(KinematicError, match=r"0 drivers leave 1 degree of freedom .*'crank'"):
        kinematic_analysis(system, [0.0])
    with pytest.raises(ValueError, match=r"^times must be .* that increase"):
        kinematic_analysis(system, [0.0, 0.0])
    with pytest.raises(ValueError, match="undeformed"):
        kinematic_analysis(system, [0.0], elastic_start="rigid")  # type: ignore[arg-type]


def test_redundant_joints_may_stay() -> None:
    """A slider on two guides moves as on one, and the guides share the reaction."""
    axes = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    ground = Ground({"o": Frame(), "p": Frame((0, 0.1, 0), axes), "q": Frame((0, -0.1, 0), axes)})
    base = slider_crank(rigid_rod(length=0.3, mass=0.15), speed=150.0, **SETTINGS)
    crank, rod = base.body("crank"), base.body("rod")
    piston = RigidBody(
        "piston", 0.0755, [1e-4] * 3, position=(0.45, 0, 0),
        frames={"pin": Frame(), "p": Frame((0, 0.1, 0), axes), "q": Frame((0, -0.1, 0), axes)},
    )  # fmt: skip
    joints = [
        revolute("main", ground.frame("o"), crank.frame("main")),
        cylindrical("crank pin", crank.frame("pin"), rod.frame("big_end")),
        spherical("piston pin", rod.frame("small_end"), piston.frame("pin")),
        prismatic("upper", ground.frame("p"), piston.frame("p")),
        prismatic("lower", ground.frame("q"), piston.frame("q")),
    ]
    drivers, gravity = base.drivers, base.gravity
    double = System([ground, crank, rod, piston], joints, drivers=drivers, gravity=gravity)
    run, single = (kinematic_analysis(s, TIMES) for s in (double, base))
    assert np.allclose(run.body("piston").position, single.body("piston").position, atol=1e-12)
    assert np.allclose(
        run.joint("drive").moment, single.joint("drive").moment, rtol=1e-9, atol=1e-9
    )
    both = run.joint("upper").force + run.joint("lower").force
    assert np.allclose(both, single.joint("guide").force, atol=1e-8)
