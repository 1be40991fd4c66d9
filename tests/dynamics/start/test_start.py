"""The consistent start, and mechanisms that cannot be started."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import (
    AssemblyError,
    GeneralizedAlpha,
    StepError,
    System,
    consistent_state,
    redundancies,
)
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.errors import ModelRangeWarning
from dolfinx_mbd.mechanism import (
    Driver,
    FlexibleBody,
    Frame,
    FrameMotion,
    Ground,
    RigidBody,
    cylindrical,
    force,
    prismatic,
    revolute,
    spherical,
)
from dolfinx_mbd.mechanism.mechanisms import rigid_rod, slider_crank
from tests.models.beams import slender_rod

CRANK = {"crank_radius": 0.15, "crank_mass": 0.36, "piston_mass": 0.0755}


def evaluated(system: System, state) -> Assembler:
    """Return an assembler that contains a state and its residual."""
    eqs = Assembler(system)
    eqs.q[:], eqs.v[:], eqs.a[:], eqs.lam[:] = state.q, state.v, state.a, state.lam
    eqs.residual(state.time)
    return eqs


@pytest.mark.parametrize("elastic", ["quasi-static", "undeformed"])
def test_all_levels_are_consistent(elastic: str) -> None:
    system = slider_crank(slender_rod(), speed=150.0, angle=0.7, **CRANK)
    state = consistent_state(system, elastic_start=elastic)  # type: ignore[arg-type]
    eqs = evaluated(system, state)
    rate, bias = eqs.constraint_rates(0.0)
    B = eqs.constraint_matrix()
    assert np.abs(eqs.values).max() < 1e-13
    assert np.abs(B @ state.v + rate).max() < 1e-10
    assert np.abs(B @ state.a + bias).max() < 1e-9 * np.abs(bias).max()
    assert np.abs(eqs.rows).max() < 1e-9 * eqs.scale.max()
    eta = state.q[system.q_slices[2]][7:]
    if elastic == "undeformed":
        assert np.all(eta == 0)
        assert np.all(state.v[system.elastic] == 0)
    else:
        assert np.abs(eta).max() > 1e-7
        assert np.all(state.a[system.elastic] == 0)


def test_a_quasi_static_start_does_not_ring() -> None:
    system = slider_crank(slender_rod(), speed=150.0, angle=0.7, damping_ratio=0.0, **CRANK)
    variations = {}
    for elastic in ("quasi-static", "undeformed"):
        run = simulate(system, t_end=2e-3, dt=2e-6, elastic_start=elastic)  # type: ignore[arg-type]
        axial = run.joint("piston pin").force[:, 0]
        variations[elastic] = np.abs(np.diff(axial)).sum()
    assert variations["quasi-static"] < 0.2 * variations["undeformed"]


def test_a_driver_may_run_up_from_rest() -> None:
    """At the start nothing moves, whatever the driver does later."""
    system = slider_crank(slender_rod(), speed=1.0, angle=0.7, **CRANK)
    drive = Driver(
        "drive", "main", lambda t: (0.7 + 50.0 * t**4, 200.0 * t**3, 600.0 * t**2), offset=0.0
    )
    system = System(system.bodies, system.joints, drivers=[drive])
    state = consistent_state(system)
    assert np.abs(state.v).max() < 1e-9
    assert np.abs(state.q[system.q_slices[2]][7:]).max() < 1e-12
    run = simulate(system, t_end=0.01, dt=1e-4)
    assert np.isclose(run.joint("main").rotation[-1], 0.7 + 50.0 * 0.01**4, atol=1e-12)


def test_quasi_static_deflection_under_gravity() -> None:
    """A rod pinned at both ends sags by η = m g (2/π) / (EI π⁴/(2 l³)) in its first sine mode."""
    length, side, density, young = 0.3, 0.008, 7870.0, 2e11
    rod = slender_rod(length, side, young, density, bending=1, axial=1)
    body = FlexibleBody("rod", rod)
    axes = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])
    slot = RigidBody(
        "slot",
        0.1,
        [1e-4] * 3,
        frames={"a": Frame(), "b": Frame((0, 0, 0), axes)},
        position=(length, 0, 0),
    )
    ground = Ground({"a": Frame(), "b": Frame((length, 0, 0), axes)})
    joints = [
        cylindrical("a", ground.frame("a"), body.frame("big_end")),
        spherical("b", body.frame("small_end"), slot.frame("a")),
        prismatic("c", ground.frame("b"), slot.frame("b")),
    ]
    state = consistent_state(System([ground, body, slot], joints, gravity=(0, -9.81, 0)))
    area_moment = side**4 / 12
    eta = (
        -density
        * side**2
        * 9.81
        * length
        * 2
        / np.pi
        / (young * area_moment * np.pi**4 / (2 * length**3))
    )
    assert np.isclose(state.q[7], eta, rtol=1e-9)


def test_positions_are_solved_for() -> None:
    """Joints close although bodies are placed roughly, and the driven angle is exact."""
    system = slider_crank(rigid_rod(length=0.3, mass=0.15), speed=10.0, angle=0.5, **CRANK)
    exact = consistent_state(system)
    moved = exact.q.copy()
    moved[system.q_slices[3]][:3] += [0.02, -0.03, 0.01]
    state = consistent_state(system, q=moved)
    assert np.allclose(state.q, exact.q, atol=1e-12)
    assert np.isclose(state.angles[0], 0.5)


ALONG_X = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])


def planar_crank(pins: bool) -> System:
    """Return a slider-crank, either with revolute pins only or with non-redundant joints."""
    ground = Ground({"main": Frame(), "guide": Frame((0, 0, 0), ALONG_X)})
    bar = {"a": Frame(), "b": Frame((0.3, 0, 0))}
    crank = RigidBody.box(
        "crank",
        (0.1, 0.01, 0.01),
        mass=1.0,
        centre=(0.05, 0, 0),
        frames={"a": Frame(), "b": Frame((0.1, 0, 0))},
    )
    rod = RigidBody.box(
        "rod", (0.3, 0.01, 0.01), mass=1.0, centre=(0.15, 0, 0), frames=bar, position=(0.1, 0, 0)
    )
    piston = RigidBody.box(
        "piston",
        (0.1, 0.1, 0.1),
        mass=1.0,
        frames={"pin": Frame(), "guide": Frame((0, 0, 0), ALONG_X)},
        position=(0.4, 0, 0),
    )
    crank_joint, piston_joint = (revolute, revolute) if pins else (cylindrical, spherical)
    joints = [
        revolute("main", ground.frame("main"), crank.frame("a")),
        crank_joint("crank pin", crank.frame("b"), rod.frame("a")),
        piston_joint("piston pin", rod.frame("b"), piston.frame("pin")),
        prismatic("guide", ground.frame("guide"), piston.frame("guide")),
    ]
    return System([ground, crank, rod, piston], joints)


def test_redundant_constraints_are_named() -> None:
    message = r"3 of the 20 .* redundant.*'guide', rotation about z \(held by 'main', 'crank pin'"
    with pytest.raises(AssemblyError, match=message):
        consistent_state(planar_crank(pins=True))
    assert redundancies(planar_crank(pins=False)) == []
    redundant = redundancies(planar_crank(pins=True))
    assert len(redundant) == 3
    assert all(r.held_by for r in redundant)


@pytest.mark.parametrize("redundant", ["drop", "keep"])
def test_redundant_constraints_can_be_left_out(redundant: str) -> None:
    """The motion is that without redundancy; with all constraints, the forces have least norm."""
    rates = {"main": 20.0}
    plain = simulate(planar_crank(pins=False), t_end=0.1, dt=1e-3, start=rates)
    run = simulate(planar_crank(pins=True), t_end=0.1, dt=1e-3, start=rates, redundant=redundant)
    assert np.isclose(run.v[0, 5], 20.0)
    assert np.allclose(run.body("piston").position, plain.body("piston").position, atol=1e-9)
    assert run.constraint_violation().max() < 1e-9
    norms = {}
    for solution in (run, plain):
        joints = [solution.joint(name) for name in ("main", "crank pin", "piston pin", "guide")]
        norms[id(solution)] = sum(float(np.sum(j.force[5] ** 2)) for j in joints)
    if redundant == "keep":
        assert norms[id(run)] <= norms[id(plain)] * (1 + 1e-9)
    a = run.sensor("piston", (0, 0, 0), "acceleration")
    # the forces of the integrator belong to accelerations with errors of order dt², see `projected`
    pull = run.projected().joint("piston pin").force
    # The force is in the axes of the rod, which has the direction (cos, sin)
    direction = run.sensor("piston", "pin") - run.sensor("rod", "a")
    along_x = (
        np.sum(pull[:, :1] * direction[:, :1] / 0.3, axis=1) - pull[:, 1] * direction[:, 1] / 0.3
    )
    assert np.allclose(along_x, 1.0 * a[:, 0], atol=2e-3 * np.abs(a).max())


def test_constraints_that_are_redundant_only_at_the_start_are_reported() -> None:
    """A flat parallelogram linkage has dependent constraints only until it opens."""
    ground = Ground({"o": Frame(), "x": Frame((1.0, 0, 0))})
    bar = {"a": Frame(), "b": Frame((0.5, 0, 0)), "c": Frame((1.0, 0, 0))}

    def link(name: str, x: float) -> RigidBody:
        return RigidBody.box(
            name, (1, 0.1, 0.1), mass=1.0, centre=(0.5, 0, 0), frames=bar, position=(x, 0, 0)
        )

    left, right, coupler = link("left", 0.0), link("right", 1.0), link("coupler", 0.5)
    joints = [
        revolute("left foot", ground.frame("o"), left.frame("a")),
        revolute("right foot", ground.frame("x"), right.frame("a")),
        cylindrical("left top", left.frame("b"), coupler.frame("a")),
        spherical("right top", coupler.frame("c"), right.frame("b")),
    ]
    system = System([ground, left, right, coupler], joints)
    assert [r.name for r in redundancies(system)] != []
    push = force("push", left.frame("b"), (0.0, 30.0, 0.0))
    loaded = System([ground, left, right, coupler], joints, loads=[push])
    with pytest.warns(ModelRangeWarning) as records:
        simulate(loaded, t_end=0.2, dt=1e-3, redundant="drop")
    (warning,) = [w.message for w in records if isinstance(w.message, ModelRangeWarning)]
    assert isinstance(warning, ModelRangeWarning)
    assert warning.quantity == "misfit of a redundant constraint"
    assert warning.value > warning.limit
    with pytest.raises(ValueError, match="redundant must be"):
        simulate(system, t_end=0.1, dt=1e-3, redundant="ignore")  # type: ignore[arg-type]


def test_rates_at_the_start() -> None:
    system = planar_crank(pins=False)
    state = consistent_state(system, rates={"main": 20.0})
    assert np.isclose(state.v[system.v_slices[1]][5], 20.0)
    with pytest.raises(ValueError, match="spherical joint 'piston pin' has no single rate"):
        consistent_state(system, rates={"piston pin": 1.0})
    with pytest.raises(ValueError, match=r"^name of a joint must be .* got 'axle'"):
        consistent_state(system, rates={"axle": 1.0})


def pendulum(load) -> System:
    """Return a pendulum with a load at its tip."""
    ground = Ground({"o": Frame()})
    bob = RigidBody(
        "bob", 1.0, [0.01] * 3, (0.5, 0, 0), frames={"o": Frame(), "tip": Frame((1.0, 0, 0))}
    )
    return System(
        [ground, bob], [revolute("pivot", ground.frame("o"), bob.frame("o"))], loads=[load(bob)]
    )


def test_a_step_that_does_not_converge_says_when_and_where() -> None:
    """The load pushes the tip to the other side of y = 0: a step of 0.01 s has no solution."""

    def push(t: float, motion: FrameMotion) -> tuple[float, float, float]:
        if t <= 0.005:
            return 0.0, 0.0, 0.0
        return 0.0, -1e3 if motion.position[1] >= 0 else 1e3, 0.0

    system = pendulum(lambda bob: force("push", bob.frame("tip"), push))
    with pytest.raises(StepError, match=r"t = .* does not converge.*'pivot'.*body 'bob'") as error:
        simulate(system, t_end=1.0, dt=0.01)
    assert error.value.solution is not None
    assert len(error.value.solution) >= 1


def test_implausible_methods_do_not_pass_silently() -> None:
    system = slider_crank(slender_rod(), speed=150.0, **CRANK)
    unstable = GeneralizedAlpha(0.0, 0.0, 0.05, 0.3, "unstable")
    with pytest.raises((StepError, ValueError)):
        simulate(system, t_end=0.1, dt=1e-3, method=unstable)
