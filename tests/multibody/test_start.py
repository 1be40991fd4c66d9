"""The consistent start, and mechanisms that cannot be started."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.multibody import (
    AssemblyError,
    Driver,
    FlexibleBody,
    Frame,
    GeneralizedAlpha,
    Ground,
    JointLoad,
    RigidBody,
    StepError,
    System,
    consistent_state,
    constant_speed,
    cylindrical,
    force,
    prismatic,
    revolute,
    simulate,
    spherical,
)
from dolfinx_mbd.multibody.assembly import Assembler
from dolfinx_mbd.multibody.mechanisms import rigid_rod, slider_crank

from .beams import slender_rod

CRANK = {"crank_radius": 0.15, "crank_mass": 0.36, "piston_mass": 0.0755}


def evaluated(system: System, state) -> Assembler:
    at = Assembler(system)
    at.q[:], at.v[:], at.a[:], at.lam[:] = state.q, state.v, state.a, state.lam
    at.residual(state.time)
    return at


@pytest.mark.parametrize("elastic", ["quasi-static", "undeformed"])
def test_all_levels_are_consistent(elastic: str) -> None:
    system = slider_crank(slender_rod(), speed=150.0, angle=0.7, **CRANK)
    state = consistent_state(system, elastic=elastic)  # type: ignore[arg-type]
    at = evaluated(system, state)
    rate, bias = at.constraint_rates(0.0)
    B = at.constraint_matrix(at.jacobians())
    assert np.abs(at.values).max() < 1e-13
    assert np.abs(B @ state.v + rate).max() < 1e-10
    assert np.abs(B @ state.a + bias).max() < 1e-9 * np.abs(bias).max()
    assert np.abs(at.rows).max() < 1e-9 * at.scale.max()
    eta = state.q[system.q_slices[2]][7:]
    if elastic == "undeformed":
        assert np.all(eta == 0)
    else:
        assert np.abs(eta).max() > 1e-7
        assert np.all(state.a[system.elastic] == 0)


def test_a_quasi_static_start_does_not_ring() -> None:
    system = slider_crank(slender_rod(), speed=150.0, angle=0.7, damping_ratio=0.0, **CRANK)
    ranges = {}
    for elastic in ("quasi-static", "undeformed"):
        run = simulate(system, t_end=2e-3, dt=2e-6, elastic_start=elastic)  # type: ignore[arg-type]
        axial = run.joint("piston pin").force[:, 0]
        ranges[elastic] = np.abs(np.diff(axial)).sum()
    assert ranges["quasi-static"] < 0.2 * ranges["undeformed"]


def test_quasi_static_deflection_under_gravity() -> None:
    """A rod pinned at both ends sags as its sine modes say: η = m g (2/π) / (EI π⁴/(2 l³)) for the first."""
    length, side, density, young = 0.3, 0.008, 7870.0, 2e11
    rod = slender_rod(length, side, young, density, bending=1, axial=1)
    body = FlexibleBody("rod", rod)
    along = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])
    slot = RigidBody(
        "slot", 0.1, [1e-4] * 3, frames={"a": Frame(), "b": Frame((0, 0, 0), along)}, position=(length, 0, 0)
    )
    ground = Ground({"a": Frame(), "b": Frame((length, 0, 0), along)})
    joints = [
        cylindrical("a", ground.frame("a"), body.frame("big_end")),
        spherical("b", body.frame("small_end"), slot.frame("a")),
        prismatic("c", ground.frame("b"), slot.frame("b")),
    ]
    state = consistent_state(System([ground, body, slot], joints, gravity=(0, -9.81, 0)))
    second = side**4 / 12
    eta = -density * side**2 * 9.81 * length * 2 / np.pi / (young * second * np.pi**4 / (2 * length**3))
    assert np.isclose(state.q[7], eta, rtol=1e-9)


def test_positions_are_solved_for() -> None:
    """Bodies placed by eye are put together; the driven angle is met."""
    system = slider_crank(rigid_rod(0.3, 0.15), speed=10.0, angle=0.5, **CRANK)
    rough = consistent_state(system)
    moved = rough.q.copy()
    moved[system.q_slices[3]][:3] += [0.02, -0.03, 0.01]
    state = consistent_state(system, q=moved)
    assert np.allclose(state.q, rough.q, atol=1e-12)
    assert np.isclose(state.angles[0], 0.5)


def test_a_mechanism_that_cannot_be_assembled_names_the_joint() -> None:
    ground = Ground({"a": Frame(), "b": Frame((1.0, 0, 0))})
    link = RigidBody("link", 1.0, [0.1] * 3, frames={"a": Frame(), "b": Frame((0.4, 0, 0))})
    joints = [
        revolute("left", ground.frame("a"), link.frame("a")),
        spherical("right", link.frame("b"), ground.frame("b")),
    ]
    with pytest.raises(AssemblyError, match=r"cannot be assembled.*(left|right).*is off by"):
        simulate(System([ground, link], joints), t_end=1.0, dt=0.1)


def test_redundant_constraints_are_named() -> None:
    """A planar slider-crank of revolute joints only holds some motions twice."""
    along = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])
    ground = Ground({"main": Frame(), "guide": Frame((0, 0, 0), along)})
    crank = RigidBody.box(
        "crank", (0.1, 0.01, 0.01), mass=1.0, centre=(0.05, 0, 0), frames={"a": Frame(), "b": Frame((0.1, 0, 0))}
    )
    rod = RigidBody.box(
        "rod",
        (0.3, 0.01, 0.01),
        mass=1.0,
        centre=(0.15, 0, 0),
        frames={"a": Frame(), "b": Frame((0.3, 0, 0))},
        position=(0.1, 0, 0),
    )
    piston = RigidBody.box(
        "piston",
        (0.1, 0.1, 0.1),
        mass=1.0,
        frames={"pin": Frame(), "guide": Frame((0, 0, 0), along)},
        position=(0.4, 0, 0),
    )
    joints = [
        revolute("main", ground.frame("main"), crank.frame("a")),
        revolute("crank pin", crank.frame("b"), rod.frame("a")),
        revolute("piston pin", rod.frame("b"), piston.frame("pin")),
        prismatic("guide", ground.frame("guide"), piston.frame("guide")),
    ]
    system = System([ground, crank, rod, piston], joints)
    with pytest.raises(AssemblyError, match=r"3 of the 20 constraints are redundant.*revolute joint 'main'"):
        consistent_state(system)
    joints[1] = cylindrical("crank pin", crank.frame("b"), rod.frame("a"))
    joints[2] = spherical("piston pin", rod.frame("b"), piston.frame("pin"))
    consistent_state(System([ground, crank, rod, piston], joints))


def pendulum(load) -> System:
    ground = Ground({"o": Frame()})
    bob = RigidBody("bob", 1.0, [0.01] * 3, (0.5, 0, 0), frames={"o": Frame(), "tip": Frame((1.0, 0, 0))})
    return System([ground, bob], [revolute("pivot", ground.frame("o"), bob.frame("o"))], loads=[load(bob)])


def test_a_step_that_does_not_converge_says_when_and_where() -> None:
    system = pendulum(
        lambda bob: force("push", bob.frame("tip"), lambda t, m: (0, 1e9 * np.sign(np.cos(1e9 * m.position[1])), 0))
    )
    with pytest.raises(StepError, match=r"t = .* does not converge.*'pivot'.*body 'bob'") as caught:
        simulate(system, t_end=1.0, dt=0.01)
    assert caught.value.solution is not None
    assert len(caught.value.solution) >= 1


def test_a_load_that_returns_nonsense_is_named() -> None:
    system = pendulum(lambda bob: force("push", bob.frame("tip"), lambda t, m: (np.nan, 0, 0)))
    with pytest.raises(ValueError, match="load 'push': expected three finite numbers"):
        simulate(system, t_end=1.0, dt=0.01)


def test_bad_arguments_of_a_simulation() -> None:
    system = pendulum(lambda bob: force("push", bob.frame("tip"), (0.0, 1.0, 0.0)))
    for arguments, message in (
        ({"t_end": 1.0, "dt": 0.0}, "dt must be a positive"),
        ({"t_end": 1.0, "dt": float("nan")}, "dt must be a positive"),
        ({"t_end": -1.0, "dt": 0.1}, "t_end must be after"),
        ({"t_end": 1.0, "dt": 0.1, "save_every": 0}, "save_every"),
        ({"t_end": 1.0, "dt": 0.1, "tolerance": 0.0}, "tolerance"),
        ({"t_end": 1.0, "dt": 0.1, "elastic_start": "warm"}, "quasi-static"),
    ):
        with pytest.raises(ValueError, match=message):
            simulate(system, **arguments)
    with pytest.raises(TypeError, match="stepsize"):
        simulate(system, t_end=1.0, dt=0.1, stepsize=3)  # type: ignore[call-arg]


def test_bad_systems() -> None:
    ground = Ground({"o": Frame(), "x": Frame()})
    bob = RigidBody("bob", 1.0, [0.01] * 3, frames={"o": Frame()})
    pivot = revolute("pivot", ground.frame("o"), bob.frame("o"))
    ball = spherical("ball", ground.frame("x"), bob.frame("o"))
    spin = constant_speed(1.0)
    for arguments, message in (
        (([ground], []), "at least one body that can move"),
        (([bob], [pivot]), "unknown body 'ground'; the system has 'bob'"),
        (([ground, bob], [ball], {"drivers": [Driver("d", "ball", spin)]}), "which is spherical"),
        (([ground, bob], [pivot], {"drivers": [Driver("d", "axle", spin)]}), "unknown joint 'axle'"),
        (
            ([ground, bob], [pivot], {"drivers": [Driver("d", "pivot", spin), Driver("e", "pivot", spin)]}),
            "'d' and 'e' both turn 'pivot'",
        ),
        (([ground, bob], [pivot], {"loads": [JointLoad("m", "pivot", "displacement", 1.0)]}), "prismatic"),
        (([ground, bob], [pivot], {"gravity": (0, 0)}), "three finite numbers"),
    ):
        options = arguments[2] if len(arguments) > 2 else {}
        with pytest.raises(ValueError, match=message):
            System(arguments[0], arguments[1], **options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, [1, 1, 1]), "mass must be a positive"),
        ((1.0, [1, 1, 3]), "at most the sum of the other two"),
        ((1.0, [0, 1, 1]), "zero moment"),
        ((1.0, [1, 2]), "symmetric 3×3"),
        ((1.0, [1, 1, 1], (0, 0)), "centre must be three"),
    ],
)
def test_bad_rigid_bodies(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RigidBody("b", *arguments)


def test_bad_shapes_and_damping() -> None:
    with pytest.raises(ValueError, match="either density"):
        RigidBody.box("b", (1, 1, 1))
    with pytest.raises(ValueError, match="size must be positive"):
        RigidBody.box("b", (1, -1, 1), mass=1.0)
    with pytest.raises(ValueError, match="axis must be"):
        RigidBody.cylinder("b", 1.0, 1.0, axis=4, mass=1.0)
    with pytest.raises(ValueError, match="damping ratio"):
        FlexibleBody("b", slender_rod(), damping_ratio=-0.1)
    with pytest.raises(ValueError, match="rotation must be"):
        RigidBody("b", 1.0, [1, 1, 1], rotation=(1, 0))


def test_implausible_methods_do_not_pass_silently() -> None:
    system = slider_crank(slender_rod(), speed=150.0, **CRANK)
    unstable = GeneralizedAlpha(0.0, 0.0, 0.05, 0.3, "unstable")
    with pytest.raises((StepError, ValueError)):
        simulate(system, t_end=0.1, dt=1e-3, method=unstable)
