"""Equilibria at rest, in rotation and under slow loads, and systems without equilibrium."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from dolfinx_mbd.analyses import equilibrium, linearize, quasi_static_motion
from dolfinx_mbd.dynamics import AssemblyError, EquilibriumError, System
from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.mechanism import (
    Clearance,
    ContactLaw,
    Driver,
    FlexibleBody,
    Frame,
    Ground,
    JointLoad,
    JointSpring,
    RigidBody,
    constant_speed,
    constant_velocity,
    cylindrical,
    fixed,
    force,
    prismatic,
    revolute,
    spherical,
    torque,
)
from tests.models.beams import slender_rod

GRAVITY = 9.81
ALONG_X = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
LENGTH, SIDE, DENSITY, YOUNG = 2.0, 0.01, 7870.0, 2e9


@pytest.mark.parametrize("start", [0.0, 1.2, 1.5, -0.3])
def test_hanging_flexible_pendulum(start: float) -> None:
    """The rod hangs straight; its weight stretches mode k by 2 ρ g l²/E (2/((2k+1)π))³."""
    axial = 8
    rod = slender_rod(LENGTH, SIDE, YOUNG, DENSITY, bending=2, axial=axial)
    body = FlexibleBody("rod", rod, rotation=(np.cos(start / 2), 0, 0, np.sin(start / 2)))
    ground = Ground({"o": Frame()})
    joint = revolute("pin", ground.frame("o"), body.frame("big_end"))
    system = System([ground, body], [joint], gravity=(0, -GRAVITY, 0))
    state = equilibrium(system)
    eta = state.q[7:]
    waves = (2 * np.arange(axial) + 1) * np.pi / 2
    exact = 2 * DENSITY * GRAVITY * LENGTH**2 / YOUNG / waves**3
    assert np.allclose(eta[2:], exact, rtol=1e-7)
    assert np.abs(eta[:2]).max() < 1e-8 * exact[0]
    assert np.isclose(state.angles[0], -np.pi / 2, atol=1e-9)  # the nearer way round
    tip = float(np.sum(eta[2:] * (-1.0) ** np.arange(axial)))
    assert np.isclose(tip, DENSITY * GRAVITY * LENGTH**2 / (2 * YOUNG), rtol=1e-2)  # 8 modes
    weight = DENSITY * SIDE**2 * LENGTH * GRAVITY
    lam = -state.lam[system.row_motion < 3]
    assert np.allclose(lam, [0, weight, 0], atol=1e-8 * weight)
    assert not state.v.any()
    assert linearize(system, state).stability != "unstable"


def lever(tip_force: float | None, stiffness: float = 40.0) -> System:
    """Return a lever on a torsion spring with a force down at its tip: k φ = −F l cos φ."""
    ground = Ground({"o": Frame()})
    arm = RigidBody(
        "arm", 1.0, [0.01] * 3, (0.5, 0, 0), frames={"o": Frame(), "tip": Frame((1.0, 0, 0))}
    )
    spring = JointLoad("spring", "pin", "rotation", lambda t, s, rate: -stiffness * s)
    value = (0.0, -tip_force, 0.0) if tip_force is not None else lambda t, m: (0.0, -10.0 * t, 0.0)
    load = force("load", arm.frame("tip"), value)
    joint = revolute("pin", ground.frame("o"), arm.frame("o"))
    return System([ground, arm], [joint], loads=[spring, load])


def lever_angle(load: float, stiffness: float = 40.0) -> float:
    """Return the angle φ of the lever from k φ = −F l cos φ with l = 1 m."""
    return float(brentq(lambda x: stiffness * x + load * np.cos(x), -1.6, 0.0, xtol=1e-14))


@pytest.mark.parametrize("load", [0.0, 5.0, 60.0, 1000.0])
def test_spring_loaded_lever(load: float) -> None:
    state = equilibrium(lever(load))
    assert np.isclose(state.angles[0], lever_angle(load), atol=1e-8)


def test_slow_load() -> None:
    """The equilibria form a sequence, in which each one starts from the one before."""
    times = np.linspace(0.0, 6.0, 7)
    run = quasi_static_motion(lever(None), times)
    assert np.allclose(run.time, times)
    exact = [lever_angle(10.0 * t) for t in times]
    assert np.allclose(run.joint("pin").rotation, exact, atol=1e-8)
    assert np.allclose(run.joint("pin").force[-1], [0, 60.0, 0], atol=1e-7)
    with pytest.raises(ValueError, match=r"^times must be .* that increase"):
        quasi_static_motion(lever(None), [1.0, 0.5])


def test_linkage_of_springs_and_bars() -> None:
    """A toggle of two bars and a slider on a spring, pushed down at its knee.

    With both bars at the angle φ to the slider's line, the spring's force N and the load F balance
    at F = 2 N tan φ, with N = 2 k l (cos φ − cos φ₀) and the initial angle φ₀.
    """
    length, initial, stiffness, load = 1.0, 0.6, 800.0, 100.0
    ground = Ground({"o": Frame(), "line": Frame((0, 0, 0), ALONG_X)})
    frames = {"a": Frame(), "b": Frame((length, 0, 0))}

    def bar(name: str, position: tuple[float, float, float], angle: float) -> RigidBody:
        quaternion = (np.cos(angle / 2), 0, 0, np.sin(angle / 2))
        return RigidBody.box(
            name, (1, 0.1, 0.1), mass=1.0, centre=(0.5, 0, 0), frames=frames,
            position=position, rotation=quaternion,
        )  # fmt: skip

    span = 2 * length * np.cos(initial)
    left = bar("left", (0, 0, 0), initial)
    right = bar("right", (length * np.cos(initial), length * np.sin(initial), 0), -initial)
    slider = RigidBody(
        "slider", 1.0, [0.1] * 3,
        frames={"pin": Frame(), "line": Frame((0, 0, 0), ALONG_X)}, position=(span, 0, 0),
    )  # fmt: skip
    joints = [
        revolute("foot", ground.frame("o"), left.frame("a")),
        cylindrical("knee", left.frame("b"), right.frame("a")),
        spherical("hand", right.frame("b"), slider.frame("pin")),
        prismatic("guide", ground.frame("line"), slider.frame("line")),
    ]
    loads = [
        JointLoad("spring", "guide", "displacement", lambda t, s, rate: -stiffness * (s - span)),
        force("push", left.frame("b"), (0.0, -load, 0.0)),
    ]
    system = System([ground, left, right, slider], joints, loads=loads)
    state = equilibrium(system)

    def unbalanced(phi: float) -> float:
        return load - 2 * stiffness * (2 * length * np.cos(phi) - span) * np.tan(phi)

    exact = brentq(unbalanced, 0.3, initial, xtol=1e-14)
    assert np.isclose(initial + state.angles[0] - initial, exact, atol=1e-8)
    assert np.isclose(state.q[system.q_slices[3]][0], 2 * length * np.cos(exact), atol=1e-8)
    linear = linearize(system, state)
    assert linear.stability == "stable"
    assert linear.frequencies.shape == (1,)


@pytest.mark.parametrize("speed", [3.0, 6.0, 20.0])
def test_governor(speed: float) -> None:
    """A pendulum on a rotating shaft rises to cos θ = m g s/(Ω² ΔJ) above a certain speed.

    It swings there with ω² = Ω² (ΔJ/J) sin²θ. J is its moment of inertia about the pin at the
    distance s from its centre of mass, and ΔJ that by which J exceeds the one about its long axis.
    """
    mass, arm, inertia_across, inertia_along = 2.0, 0.5, 0.02, 0.005
    hinge = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # z of the frame along −y
    ground = Ground({"o": Frame()})
    shaft = RigidBody(
        "shaft", 1.0, [0.1] * 3, frames={"o": Frame(), "pin": Frame((0, 0, 0), hinge)}
    )
    quaternion = (np.cos(0.2), 0, np.sin(0.2), 0)
    bob = RigidBody(
        "bob", mass, [inertia_across, inertia_across, inertia_along], (0, 0, -arm),
        frames={"pin": Frame((0, 0, 0), hinge)}, rotation=quaternion,
    )  # fmt: skip
    joints = [
        revolute("bearing", ground.frame("o"), shaft.frame("o")),
        revolute("pin", shaft.frame("pin"), bob.frame("pin")),
    ]
    drive = Driver("drive", "bearing", constant_speed(speed))
    system = System([ground, shaft, bob], joints, drivers=[drive], gravity=(0, 0, -GRAVITY))
    state = equilibrium(system, spin=(0, 0, speed))
    J = inertia_across + mass * arm**2
    cosine = min(1.0, mass * GRAVITY * arm / (speed**2 * (J - inertia_along)))
    assert np.isclose(np.cos(state.angles[1]), cosine, atol=1e-9)
    linear = linearize(system, state)
    square = speed**2 * (J - inertia_along) / J * (1 - cosine**2)
    if cosine == 1.0:  # it hangs straight down
        square = (mass * GRAVITY * arm - speed**2 * (J - inertia_along)) / J
    assert np.allclose(linear.poles, [1j * np.sqrt(square)], rtol=1e-6)
    with pytest.raises(ValueError, match="driver 'drive' would move at"):
        equilibrium(system, spin=(0, 0, 2 * speed))


def test_an_equilibrium_may_be_indifferent() -> None:
    """A free body without loads is in a neutral equilibrium at any position."""
    free = System([RigidBody("ball", 1.0, [0.1] * 3, position=(1.0, 2.0, 3.0))])
    assert np.array_equal(equilibrium(free).q[:3], [1.0, 2.0, 3.0])
    assert linearize(free, equilibrium(free)).stability == "neutral"


def test_no_equilibrium() -> None:
    falling = System([RigidBody("ball", 1.0, [0.1] * 3)], gravity=(0, 0, -GRAVITY))
    with pytest.raises(EquilibriumError, match=r"'ball', force along z is left with 9\.81"):
        equilibrium(falling)
    ground = Ground({"o": Frame()})
    arm = RigidBody("arm", 1.0, [0.01] * 3, (0.5, 0, 0), frames={"o": Frame()})
    motor = JointLoad("motor", "pin", "rotation", 6.0)  # above m g s = 4.9
    joint = revolute("pin", ground.frame("o"), arm.frame("o"))
    turning = System([ground, arm], [joint], loads=[motor], gravity=(0, -GRAVITY, 0))
    message = r"no equilibrium .*'arm', moment about its z axis .* after 40 steps\. Perhaps nothing"
    with pytest.raises(EquilibriumError, match=message):
        equilibrium(turning, max_iterations=40)
    with pytest.raises(ValueError, match="spin"):
        equilibrium(turning, spin=3.0)
    far = RigidBody("far", 1.0, [0.01] * 3, frames={"a": Frame(), "b": Frame((1, 0, 0))})
    holders = Ground({"o": Frame(), "p": Frame((3.0, 0, 0))})
    apart = [
        spherical("one", holders.frame("o"), far.frame("a")),
        spherical("two", holders.frame("p"), far.frame("b")),
    ]
    with pytest.raises(AssemblyError, match="cannot be assembled"):
        equilibrium(System([holders, far], apart))


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
def test_a_stiffness_that_is_not_finite() -> None:
    """A stop of the moment exp(s/ε) at the angle s, whose stiffness overflows far from s = 0."""
    ground, width, load = Ground({"o": Frame()}), 1e-3, 3.0
    arm = RigidBody("arm", 1.0, [0.01] * 3, frames={"o": Frame(), "tip": Frame((0.5, 0, 0))})
    pin = revolute("pin", ground.frame("o"), arm.frame("o"))
    stop = JointLoad("stop", "pin", "rotation", lambda t, s, rate: -float(np.exp(s / width)))
    push = force("push", arm.frame("tip"), (0.0, load, 0.0))
    system = System([ground, arm], [pin], loads=[stop, push])
    start = 0.7095  # exp(709.5) is 1.5e308
    with pytest.raises(EquilibriumError, match=r"after 0 steps\. The stiffness is not finite"):
        equilibrium(system, q=at_angle(start), angles=[start])
    (angle,) = equilibrium(system, q=at_angle(0.01), angles=[0.01]).angles
    assert np.exp(angle / width) == pytest.approx(0.5 * load * np.cos(angle), rel=1e-8)


def at_angle(angle: float) -> np.ndarray:
    """Return the coordinates (7,) of a body at the origin that is rotated about z."""
    return np.array([0, 0, 0, np.cos(angle / 2), 0, 0, np.sin(angle / 2)])


@pytest.mark.parametrize("seed", range(3))
def test_no_free_motion(seed: int) -> None:
    """Reactions balance any load of a body that cannot move, except for round-off."""
    rng = np.random.default_rng(seed)
    ground = Ground({"o": Frame()})
    body = RigidBody("body", 1.0, [0.01] * 3, rng.normal(size=3), frames={"o": Frame()})
    weld = fixed("weld", ground.frame("o"), body.frame("o"))
    push = force("push", body.frame("o"), rng.normal(size=3))
    system = System([ground, body], [weld], loads=[push], gravity=rng.normal(size=3))
    assert np.allclose(equilibrium(system).q, at_angle(0.0), rtol=0, atol=1e-14)
    with pytest.raises(EquilibriumError, match=r"constraints permit no motion.* tolerance"):
        equilibrium(system, tolerance=1e-300)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["shafts", "bent shafts"])
def test_moments_without_forces(kind: str, seed: int) -> None:
    """Shafts that transfer a moment have no forces, except for round-off of any size."""
    rng = np.random.default_rng(seed)
    place, R = 10.0 * rng.normal(size=3), exp_rotation(rng.normal(size=3))
    masses, radii = 10 ** rng.uniform(-3, 3, 3), 10 ** rng.uniform(-2, 0, 3)
    moment, stiffness = (10 ** rng.uniform(-3, 5) * np.array([1.0, 2.0])).tolist()
    bends = np.zeros(3) if kind == "shafts" else np.array([0.0, *rng.uniform(-1, 1, 2)])
    turns = [R @ exp_rotation(np.array([bend, 0.0, 0.0])) for bend in bends]
    ground = Ground({str(k): Frame(tuple(place), turn) for k, turn in enumerate(turns)})
    shafts = [
        RigidBody(
            f"shaft {k}", masses[k], masses[k] * radii[k] ** 2 * np.array([1, 1, 1e-2]),
            frames={"o": Frame()}, position=tuple(place), rotation=turn,
        )
        for k, turn in enumerate(turns)
    ]  # fmt: skip
    if kind == "shafts":
        parts = [ground, *shafts]
        ends = [(parts[k].frame("0" if k == 0 else "o"), shafts[k].frame("o")) for k in range(3)]
        joints = [revolute(f"joint {k}", *pair) for k, pair in enumerate(ends)]
        springs = [JointSpring(f"spring {k}", f"joint {k}", stiffness=stiffness) for k in range(3)]
    else:
        joints = [
            cylindrical(f"joint {k}", ground.frame(str(k)), shafts[k].frame("o")) for k in range(3)
        ]
        joints += [
            constant_velocity(f"bend {k}", shafts[k].frame("o"), shafts[k + 1].frame("o"))
            for k in range(2)
        ]
        springs = [JointSpring("spring 0", "joint 2", stiffness=stiffness)]
    load = torque("load", shafts[-1].frame("o"), turns[-1] @ [0, 0, moment])
    system = System([ground, *shafts], joints, loads=[*springs, load])
    state = equilibrium(system)
    assert state.angles[:3] == pytest.approx([0.5] * 3, rel=1e-9)
    assert linearize(system, state).stability == "stable"


@pytest.mark.parametrize("angle", [0.0, 0.4])
def test_loads_on_one_frame_cancel(angle: float) -> None:
    """A pin with clearance, loaded at its own frame, rests on the bore."""
    load, law = 2e4, ContactLaw(1e9, 1.0)
    ground = Ground({"bore": Frame((0.1, 0.2, 0.3))})
    pin = RigidBody("pin", 1.0, [1e-3] * 3, (0.1, 0.2, 0.3), frames={"pin": Frame()})
    ends = ground.frame("bore"), pin.frame("pin")
    joint = revolute("joint", *ends, Clearance(3e-5, law, length=0.02))
    direction = np.array([np.cos(angle), np.sin(angle), 0.0])
    system = System([ground, pin], [joint], loads=[force("load", ends[1], load * direction)])
    moved = equilibrium(system).q[:3] - [0.1, 0.2, 0.3]
    assert moved == pytest.approx(direction * (3e-5 + load / law.stiffness), abs=1e-12)


@pytest.mark.parametrize("length", [40.0, 2000.0])
def test_rotations_of_steps_do_not_depend_on_the_size(length: float) -> None:
    """A long lever reaches the equilibrium of a short one; no first step is a full turn."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        moment, start = rng.uniform(1, 60), rng.uniform(-3, 3)
        free, stiffness = start + rng.uniform(-1, 1), rng.uniform(0.2, 3)
        angles = []
        for arm in (1.0, length):
            ground = Ground({"o": Frame()})
            frames = {"o": Frame(), "tip": Frame((arm, 0, 0))}
            rotation = (np.cos(start / 2), 0, 0, np.sin(start / 2))
            body = RigidBody("lever", 1.0, [1.0] * 3, rotation=rotation, frames=frames)
            pin = revolute("pin", ground.frame("o"), body.frame("o"))
            coil = JointSpring("coil", "pin", stiffness=stiffness, free=free)
            weight = force("weight", body.frame("tip"), (0, -moment / arm, 0))
            angles.append(equilibrium(System([ground, body], [pin], loads=[coil, weight])).angles)
        assert np.allclose(*angles, rtol=0, atol=1e-6)
