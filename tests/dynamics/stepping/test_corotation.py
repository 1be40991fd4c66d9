"""Factors that rotate with the bodies: exact where a mechanism only rotates, else fewer factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics import Stepper, System, consistent_state
from dolfinx_mbd.dynamics.stepping import corotation
from dolfinx_mbd.kernels.compilation import COMPILED
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine
from tests.mechanism.bearings.rotors import rigid_rotor
from tests.models.beams import slender_rod

pytestmark = pytest.mark.skipif(not COMPILED, reason="without numba, factors do not rotate")

BODY = slender_rod(length=0.3, bending=4, axial=1)
START, END = (interface.name for interface in BODY.interfaces)


def spun(joint: str, order: int, weight: float = 9.81, speed: float = 80.0) -> System:
    """Return a flexible rod that a driver, or its velocity, rotates about z or obliquely.

    With `order` -1, the ground is the second frame of the joint.
    """
    ground = mbd.Ground({"pin": mbd.Frame()})
    spin: dict[str, Any] = {"omega": (0.5 * speed, 0.0, speed)} if joint == "spherical" else {}
    rod = mbd.FlexibleBody("rod", BODY, position=-BODY.interface(END).point, **spin)
    ends = (ground.frame("pin"), rod.frame(END))[::order]
    drivers = [mbd.Driver("drive", "pin", mbd.constant_speed(order * speed), "rotation")]
    pin = mbd.mechanism.Joint("pin", joint, *ends)
    held = [mbd.point_on_plane("held", *ends)] if joint == "cylindrical" else []
    drivers = [] if joint == "spherical" else drivers
    return System([ground, rod], [pin, *held], drivers=drivers, gravity=(0.0, -weight, 0.0))


def top() -> System:
    """Return a rigid top, whose centre of mass is not its origin."""
    ground = mbd.Ground({"tip": mbd.Frame()})
    spin: Any = {"frames": {"tip": mbd.Frame()}, "omega": (1.0, 3.0, 200.0)}
    body = mbd.RigidBody("top", 1.0, [2e-2, 2e-2, 2e-3], (0.01, 0.0, 0.1), **spin)
    tip = mbd.spherical("tip", ground.frame("tip"), body.frame("tip"))
    return System([ground, body], [tip], gravity=(0.0, 0.0, -9.81))


def engine() -> System:
    """Return an engine of two cylinders with gas: cylindrical, spherical and prismatic joints."""
    rod = slender_rod(length=0.14, bending=4, axial=1)
    return inline_engine(rod, EngineDesign(cylinders=2), speed=300.0)


def on_a_curve() -> System:
    """Return a spinning flexible rod with a collar whose point slides on a curve."""
    curve = mbd.mechanism.Curve.of(lambda u: (u, 0.3 * u**2, 0.0), -2.0, 2.0, count=60)
    ground = mbd.Ground({"curve": mbd.Frame()})
    rod = mbd.FlexibleBody(
        "rod", BODY, position=-BODY.interface(START).point, omega=(0.0, 60.0, 60.0)
    )
    slide = mbd.point_on_curve("slide", ground.frame("curve"), rod.frame(START), curve)
    return System([ground, rod], [slide], gravity=(0.0, -9.81, 0.0))


def geared() -> System:
    """Return two flexible rods on gear wheels; a driver turns the first wheel."""
    places = {"one": (0.0, 0.0, 0.0), "two": (0.1, 0.0, 0.0)}
    ground = mbd.Ground({name: mbd.Frame(place) for name, place in places.items()})
    bodies, joints = [], []
    for name, place in places.items():
        hub = {"hub": mbd.Frame()}
        wheel = mbd.RigidBody(name, 0.5, [1e-3] * 3, frames=hub, position=place)
        origin = np.array(place) - BODY.interface(START).point
        rod = mbd.FlexibleBody(f"rod {name}", BODY, position=origin)
        bodies += [wheel, rod]
        joints.append(mbd.revolute(f"axle {name}", ground.frame(name), wheel.frame("hub")))
        joints.append(mbd.fixed(f"seat {name}", wheel.frame("hub"), rod.frame(START)))
    wheels = mbd.mechanism.FrameRef("one", "hub"), mbd.mechanism.FrameRef("two", "hub")
    gear = mbd.mechanism.GearPair("gears", *wheels, (20, 20), 5e-3, 1e7, damping=0.1)
    drive = mbd.Driver("drive", "axle one", mbd.constant_speed(60.0), "rotation")
    return System([ground, *bodies], joints, drivers=[drive], loads=[gear])


def linkage() -> System:
    """Return two flexible rods with a universal and a revolute joint, which swing in space."""
    ground = mbd.Ground({"pin": mbd.Frame()})
    one = mbd.FlexibleBody("one", BODY, position=-BODY.interface(START).point)
    two = mbd.FlexibleBody(
        "two", BODY, position=BODY.interface(END).point - 2 * BODY.interface(START).point
    )
    joints = [
        mbd.universal("cross", ground.frame("pin"), one.frame(START)),
        mbd.revolute("pin", two.frame(START), one.frame(END)),
    ]
    return System([ground, one, two], joints, gravity=(0.0, -40.0, 9.81))


def in_a_film() -> System:
    """Return a rotor in an oil film."""
    ends = mbd.mechanism.FrameRef("ground", "bore"), mbd.mechanism.FrameRef("rotor", "journal")
    film = mbd.bearings.FiniteBearing(
        "film", *ends, 0.02, 0.02, 4e-5, mbd.bearings.Oil(0.02), shape=(24, 6)
    )
    return rigid_rotor(film, 2.0, 300.0, 20.0, np.array([1e-5, -1e-5]))


# Mechanism, length of the steps (s), and largest ratio of factorizations with and without rotation
MOTIONS: dict[str, tuple[Callable[[], System], float, float]] = {
    "revolute": (lambda: spun("revolute", 1), 1e-3, 0.1),
    "revolute, ground last": (lambda: spun("revolute", -1), 1e-3, 0.1),
    "cylindrical": (lambda: spun("cylindrical", 1), 1e-3, 0.1),
    "spherical": (lambda: spun("spherical", 1), 1e-4, 0.5),
    "top": (top, 1e-4, 0.1),
    "engine": (engine, 1e-5, 0.9),
    "curve": (on_a_curve, 1e-4, 0.95),
    "gears": (geared, 1e-4, 0.95),
    "linkage": (linkage, 1e-3, 0.95),
    "film": (in_a_film, 2e-5, 0.8),
}


def run(system: System, dt: float, steps: int, **options: Any) -> tuple[Any, Stepper]:
    """Return the last state after some steps, and the stepper."""
    stepper = Stepper(system, **options)
    state = stepper.begin(consistent_state(system), dt)
    for _ in range(steps):
        state = stepper.step(state, dt)
    return state, stepper


@pytest.mark.parametrize("name", MOTIONS)
def test_the_motion_is_that_with_a_factor_of_each_iteration(name: str) -> None:
    """Rotating factors do not change the motion beyond the tolerance."""
    build, dt, _ = MOTIONS[name]
    system, tolerance = build(), 1e-10
    state, stepper = run(system, dt, 150, tolerance=tolerance)
    expected, renewing = run(system, dt, 150, tolerance=tolerance, reuse=False)
    assert 2 * stepper.factorizations < renewing.factorizations
    round_off = 1e-13 / dt**2  # of accelerations, as that of angles of about 1 rad is 1e-13
    for key, allowed, floor in (("q", 1e-8, 0), ("v", 1e-7, 0), ("a", 1e-5, 1), ("lam", 1e-5, 1)):
        value, reference = getattr(state, key), getattr(expected, key)
        limit = allowed * np.abs(reference).max(initial=floor) + round_off * (key == "a")
        assert np.abs(value - reference).max() < limit, key


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n == "gears" else n for n in MOTIONS],
)
def test_fewer_factorizations(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Factors are used longer than without rotation, and there are hardly more iterations."""
    build, dt, ratio = MOTIONS[name]
    system = build()
    # The teeth of the gears meet when the motion begins, and both need new factors for that.
    steps = 1600 if name == "gears" else 400
    _, stepper = run(system, dt, steps)
    assert len(stepper.corrector.corotation.groups)
    monkeypatch.setattr(corotation, "_groups", lambda eqs: [])
    _, plain = run(system, dt, steps)
    assert stepper.factorizations <= ratio * plain.factorizations
    assert stepper.iterations <= 1.05 * plain.iterations


@pytest.mark.parametrize(
    ("joint", "order"), [("revolute", 1), ("revolute", -1), ("cylindrical", 1)]
)
def test_the_factor_of_a_steady_rotation_is_exact(joint: str, order: int) -> None:
    """After a rotation by more than a radian, the old factor has the solution of a new one."""
    system, dt = spun(joint, order, weight=0.0), 1e-3
    state, stepper = run(system, dt, 20)
    corrector, derivatives = stepper.corrector, stepper.formulas.derivatives(dt)
    assert stepper.factorizations <= 2
    rhs = np.random.default_rng(3).normal(size=system.num_velocities + system.num_constraints)
    corrector.eqs.put(state)
    corrector.eqs.residual(state.time)
    old, unrotated = corrector.solve(rhs.copy()), corrector.factor.solve(rhs.copy())  # type: ignore[union-attr]
    corrector.refactor(state.time, dt, dt * state.v, derivatives)
    new = corrector.solve(rhs.copy())
    size = np.abs(new).max()
    # without the rotation, the error of the old factor is above 1 %
    assert np.abs(old - new).max() < 1e-4 * size < 1e-2 * np.abs(unrotated - new).max()


def test_local_errors_are_those_of_a_new_factor() -> None:
    """The mass matrix of the factor rotates as well."""
    system, dt = top(), 1e-4
    state, stepper = run(system, dt, 200)  # it rotates by 4 rad with the same factor
    assert stepper.factorizations == 1
    after = stepper.step(state, dt)
    error, _ = stepper.local_error(state, after, dt)
    stepper.corrector.factor = None
    expected, _ = stepper.local_error(state, after, dt)
    assert np.abs(error - expected).max() < 1e-3 * np.abs(expected).max()


def test_a_stepper_continues_identically_from_memory() -> None:
    """The orientations are part of the memory."""
    system, dt = engine(), 1e-5
    state, stepper = run(system, dt, 50)
    restored = Stepper(system)
    restored.restore(stepper.memory())
    for _ in range(20):
        state, same = stepper.step(state, dt), restored.step(state, dt)
        for key in ("q", "v", "a", "lam"):
            np.testing.assert_array_equal(getattr(same, key), getattr(state, key))
    assert restored.factorizations == stepper.factorizations


def test_a_stepper_continues_from_memory_of_an_earlier_version() -> None:
    """Without orientations, the first step has a new factor."""
    system, dt = engine(), 1e-5
    state, stepper = run(system, dt, 50)
    memory = stepper.memory()
    assert memory.pop("orientations").shape[1:] == (3, 3)
    restored = Stepper(system)
    restored.restore(memory)
    assert not restored.has_factor and stepper.has_factor
    state, same = stepper.step(state, dt), restored.step(state, dt)
    assert np.abs(same.q - state.q).max() < 1e-9 * np.abs(state.q).max()


def test_rigid_bodies_in_a_chain_have_no_groups() -> None:
    """They rotate relative to each other: no rotation helps, and none is computed."""
    ground, bar = (
        mbd.Ground({"pin": mbd.Frame()}),
        {"a": mbd.Frame(), "b": mbd.Frame((1.0, 0.0, 0.0))},
    )
    bars = [
        mbd.RigidBody(name, 1.0, [0.1] * 3, frames=bar, position=(k, 0, 0))
        for k, name in enumerate(("one", "two"))
    ]
    joints = [
        mbd.revolute("upper", ground.frame("pin"), bars[0].frame("a")),
        mbd.revolute("lower", bars[0].frame("b"), bars[1].frame("a")),
    ]
    system = System([ground, *bars], joints, gravity=(0, -9.81, 0))
    assert not len(Stepper(system).corrector.corotation.groups)
