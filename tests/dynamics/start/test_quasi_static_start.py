"""The quasi-static start of slender and fast bodies, and starts without an equilibrium."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI
from numpy.typing import NDArray

from dolfinx_mbd.analyses import equilibrium, linearize, simulate
from dolfinx_mbd.dynamics import AssemblyError, EquilibriumError, System, consistent_state
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.start import quasi_static
from dolfinx_mbd.dynamics.start.position_assembly import restore as restore_state
from dolfinx_mbd.dynamics.start.quasi_static import Balance, elastic_derivative
from dolfinx_mbd.errors import ModelRangeWarning
from dolfinx_mbd.forms import STEEL
from dolfinx_mbd.mechanism import (
    Driver,
    FlexibleBody,
    Frame,
    FrameMotion,
    Ground,
    JointSpring,
    RigidBody,
    State,
    constant_speed,
    fixed,
    force,
    revolute,
)
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine, slider_crank
from dolfinx_mbd.reduction import InterfaceSpec, reduce
from tests.models.beams import slender_rod
from tests.models.bodies import box

Array = NDArray[np.float64]

CRANK = {"crank_radius": 0.15, "crank_mass": 0.36, "piston_mass": 0.0755}
SIDE, YOUNG, DENSITY, LENGTH = 0.008, 2e11, 7870.0, 0.3


def with_driver() -> tuple[System, float]:
    """Return a driven slider-crank with a flexible rod, and a time."""
    return slider_crank(slender_rod(), speed=300.0, angle=0.7, **CRANK), 0.0


def with_gravity_and_rates() -> tuple[System, float]:
    """Return a slider-crank without a driver under gravity, and a time; tests choose the rates."""
    driven, _ = with_driver()
    return System(driven.bodies, driven.joints, gravity=(0, -9.81, 0)), 0.0


def with_swinging_driver_and_spring() -> tuple[System, float]:
    """Return a slider-crank whose driver oscillates, and a time."""
    driven, _ = with_driver()
    drive = Driver(
        "drive",
        "main",
        lambda t: (0.7 + 100 * np.sin(3 * t), 300 * np.cos(3 * t), -900 * np.sin(3 * t)),
    )
    spring = JointSpring("spring", "guide", stiffness=1e5)
    return System(driven.bodies, driven.joints, drivers=[drive], loads=[spring]), 0.2


def with_three_cylinders() -> tuple[System, float]:
    """Return a three-cylinder engine with flexible rods, and a time."""
    design = EngineDesign(
        crank_radius=0.04,
        spacing=0.08,
        piston_mass=0.2,
        crank_mass=0.95,
        throw_angles=(0, 4 * np.pi / 3, 2 * np.pi / 3),
    )
    engine = inline_engine(
        slender_rod(0.14, 0.02, YOUNG, DENSITY),
        design,
        speed=600.0,
    )
    return engine, 0.0


def blade(axial: int, radius: float, speed: float) -> System:
    """Return a blade along x at a radius on a driven hub, with two bending modes and axial ones."""
    body = slender_rod(LENGTH, SIDE, YOUNG, DENSITY, bending=2, axial=axial)
    ground = Ground({"axle": Frame()})
    hub = RigidBody("hub", 1.0, [0.01] * 3, frames={"axle": Frame(), "root": Frame((radius, 0, 0))})
    part = FlexibleBody("blade", body, position=(radius, 0, 0))
    joints = [
        revolute("axle", ground.frame("axle"), hub.frame("axle")),
        fixed("root", hub.frame("root"), part.frame("big_end")),
    ]
    drivers = [Driver("drive", "axle", constant_speed(speed))]
    return System([ground, hub, part], joints, drivers=drivers)


def elastic_residual(system: System, state: State) -> float:
    """Return the largest elastic residual relative to the largest elastic force."""
    at = Assembler(system)
    at.q[:], at.v[:], at.a[:], at.lam[:] = state.q, state.v, state.a, state.lam
    at.residual(state.time)
    return float(np.abs(at.rows[system.elastic]).max() / at.scale[system.elastic].max())


@pytest.mark.parametrize(
    ("mechanism", "rates"),
    [
        (with_driver, {}),  # {}: no rate of a joint is prescribed
        (with_gravity_and_rates, {}),
        (with_gravity_and_rates, {"main": 300.0}),
        (with_swinging_driver_and_spring, {}),
        (with_three_cylinders, {}),
    ],
)
def test_the_derivative_is_that_of_the_elastic_rows(
    mechanism: Any, rates: Mapping[str, float]
) -> None:
    """The derivative of the elastic rows by the elastic coordinates equals their differences.

    The constraints are restored after each step of the differences.
    """
    system, t = mechanism()
    random = np.random.default_rng(0)
    e = system.elastic  # the velocities of elastic coordinates
    at, restore = Assembler(system), partial(restore_state, free=system.rigid)
    at.q[:] = np.concatenate([body.initial_coordinates() for body in system.bodies])
    restore(at, t, np.zeros(system.num_velocities), rates)
    v = at.v.copy()
    v[e] = 1e-2 * random.normal(size=len(e))
    deformation = np.zeros(system.num_velocities)
    deformation[e] = 3e-5 * random.normal(size=len(e))
    at.move(at.q.copy(), deformation)
    restore(at, t, v, rates)
    # increments of all coordinates per unit of each elastic one, which satisfy the constraints, and
    # derivative of the elastic rows; 0.3 m is a length of the mechanism
    increments, slope = elastic_derivative(at, t, rates, 0.3)
    q, step = at.q.copy(), 1e-7
    for j in range(len(e)):
        rows = []
        for sign in (1.0, -1.0):
            at.move(q, sign * step * increments[:, j])
            restore(at, t, v, rates)
            at.residual(t)
            rows.append(at.rows[e].copy())
        difference = (rows[0] - rows[1]) / (2 * step)
        size = np.sqrt(np.abs(np.diag(slope) * slope[j, j]))
        assert (np.abs(slope[:, j] - difference) < 1e-8 * size).all()


@pytest.mark.parametrize(
    ("create", "count"), [(with_three_cylinders, 3), (with_gravity_and_rates, 1)]
)
def test_independent_bodies_share_differences(
    create: Any, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coordinates of rods in different cylinders are displaced together, with the same result.

    `count` is the number of rods.
    """
    system, t = create()
    state, at = consistent_state(system), Assembler(system)
    at.put(state)
    at.v += np.linspace(-1.0, 1.0, len(at.v))
    groups: list[int] = []
    find = quasi_static._groups

    def counted(affected: NDArray[np.bool_]) -> list[list[int]]:
        result = find(affected)
        groups.append(len(result))
        return result

    monkeypatch.setattr(quasi_static, "_groups", counted)
    together = elastic_derivative(at, t, {}, 0.3)
    assert groups == [len(system.elastic) // count]
    monkeypatch.setattr(quasi_static, "_groups", lambda rows: [[k] for k in range(rows.shape[1])])
    monkeypatch.setattr(quasi_static, "_ZERO", 0.0)
    monkeypatch.setattr(
        quasi_static,
        "_affected",
        lambda s, moved: np.ones((s.num_constraints + len(s.elastic), moved.shape[1]), dtype=bool),
    )
    for value, expected in zip(together, elastic_derivative(at, t, {}, 0.3), strict=True):
        assert np.abs(value - expected).max() <= 1e-9 * np.abs(expected).max()


@pytest.mark.filterwarnings("ignore::dolfinx_mbd.errors.ModelRangeWarning")
@pytest.mark.parametrize("radius", [0.0, LENGTH])
@pytest.mark.parametrize("axial", [0, 1, 10])
@pytest.mark.parametrize("gamma", [2.0, 12.0])
def test_a_blade_on_a_hub(radius: float, axial: int, gamma: float) -> None:
    """The place w = r + x + u of a point obeys w″ + β²w = 0 with β² = ρΩ²/E, w(0) = r, w′(L) = 1.

    r is the radius of the hub, x the distance from the root, u the displacement and Ω the speed,
    `gamma` √(EI/(ρAL⁴)). The bending modes are not loaded; without axial modes nothing is. Without
    stiffening a fast blade is unstable in bending, but its balance exists.
    """
    speed = gamma * np.sqrt(YOUNG * SIDE**2 / 12 / DENSITY / LENGTH**4)
    system = blade(axial, radius, speed)
    beta = speed * np.sqrt(DENSITY / YOUNG)
    c, s = np.cos(beta * LENGTH), np.sin(beta * LENGTH)
    exact = radius * c + (1 + radius * beta * s) * s / (beta * c) - radius - LENGTH
    for state in (equilibrium(system, spin=(0, 0, speed)), consistent_state(system)):
        assert elastic_residual(system, state) < 1e-9
        eta = state.q[system.q_slices[2]][7:]
        assert np.abs(eta[:2]).max() < 1e-9 * exact
        stretch = eta[2:] @ (-1.0) ** np.arange(axial)  # axial modes are ±1 at the tip
        if axial == 10:
            assert stretch == pytest.approx(exact, rel=1e-4)
        repeated = consistent_state(system, q=state.q, v=state.v)
        assert np.abs(repeated.q - state.q).max() < 1e-9 * LENGTH
        run = simulate(system, t_end=5e-4, dt=1e-5, start=state)
        # an undeformed start rings with twice the stretch, a step turns the hub by up to 0.016 rad
        assert np.ptp(run.q[:, system.q_slices[2]][:, 7:], axis=0).max() < 2e-3 * exact


def pulled_bar(pull: float, curvature: float) -> tuple[System, float]:
    """Return a bar pulled along its axis, and the stiffness k of its only axial mode.

    The force at its end is F₀ + k₂ u² for the displacement u.
    """
    body = slender_rod(LENGTH, SIDE, YOUNG, DENSITY, bending=1, axial=1)
    ground = Ground({"root": Frame()})
    part = FlexibleBody("bar", body)

    def law(t: float, motion: FrameMotion) -> tuple[float, float, float]:
        return pull + curvature * (motion.position[0] - LENGTH) ** 2, 0.0, 0.0

    joints = [fixed("root", ground.frame("root"), part.frame("big_end"))]
    loads = [force("pull", part.frame("small_end"), law)]
    return System([ground, part], joints, loads=loads), float(body.stiffness[1, 1])


def test_a_load_with_and_without_an_equilibrium() -> None:
    """k u = F₀ + k₂ u² has a solution while 4 k₂ F₀ < k².

    If F₀ and k₂ are multiplied by the share p of the load, it exists up to p = k/(2√(k₂ F₀)).
    """
    pull = 1e4
    _, k = pulled_bar(pull, 0.0)
    for share in (0.5, 0.99):
        curvature = share * k**2 / (4 * pull)
        system, _ = pulled_bar(pull, curvature)
        u = (k - np.sqrt(k**2 - 4 * curvature * pull)) / (2 * curvature)
        state = consistent_state(system)
        assert state.q[-1] == pytest.approx(u, rel=1e-9)
        repeated = consistent_state(system, q=state.q, v=state.v)
        assert repeated.q[-1] == pytest.approx(u, rel=1e-9)
    system, _ = pulled_bar(pull, 2.0 * k**2 / (4 * pull))
    with pytest.raises(EquilibriumError, match="elastic_start='undeformed'") as error:
        consistent_state(system)
    assert error.value.load == pytest.approx(1 / np.sqrt(2.0), abs=5e-3)
    assert simulate(system, t_end=1e-5, dt=1e-6, elastic_start="undeformed").complete


def test_loads_in_steps_lead_to_the_same_balance() -> None:
    system, t = with_driver()
    at, restore = Assembler(system), partial(restore_state, free=system.rigid)
    at.q[:] = np.concatenate([body.initial_coordinates() for body in system.bodies])
    restore(at, t, np.zeros(system.num_velocities), {})
    v, q = at.v.copy(), at.q.copy()
    direct, stepwise = (Balance(at, t, {}) for _ in range(2))
    direct.settle(v)
    expected = at.q.copy()
    at.q[:] = q
    restore(at, t, v, {})
    stepwise._v = v
    stepwise._apply_in_steps()
    assert np.abs(expected - q).max() > 1e-5
    assert np.abs(at.q - expected).max() < 1e-12


def test_an_unstable_balance_gives_a_warning() -> None:
    """At the larger solution of k u = F₀ + k₂ u², 2 k₂ u > k: the load grows faster than k u."""
    pull = 1e4
    _, k = pulled_bar(pull, 0.0)
    curvature = 0.75 * k**2 / (4 * pull)
    system, _ = pulled_bar(pull, curvature)
    q = np.concatenate([body.initial_coordinates() for body in system.bodies])
    q[-1] = (k + np.sqrt(k**2 - 4 * curvature * pull)) / (2 * curvature)
    with pytest.warns(ModelRangeWarning) as records:
        state = consistent_state(system, q=q)
    assert state.q[-1] == pytest.approx(q[-1], rel=1e-9)
    warning: Any = records[0].message
    assert warning.quantity == "static stiffness"
    assert warning.value == pytest.approx(1 - 2 * curvature * q[-1] / k, rel=1e-6)


@pytest.mark.parametrize("elastic", ["quasi-static", "undeformed"])
@pytest.mark.parametrize("side", [0.008, 0.005])
def test_rates_of_joints_are_exact(elastic: Any, side: float) -> None:
    driven = slider_crank(slender_rod(side=side), speed=30.0, angle=0.7, **CRANK)
    system = System(driven.bodies, driven.joints)
    for rate in (30.0, 150.0):
        run = simulate(system, t_end=1e-5, dt=1e-5, start={"main": rate}, elastic_start=elastic)
        assert run.body("crank").omega[0, 2] == pytest.approx(rate, rel=1e-14)


def test_rates_that_contradict_a_driver_are_refused() -> None:
    system, _ = with_driver()
    with pytest.raises(AssemblyError):
        consistent_state(system, rates={"main": 299.0})


def test_body_far_from_its_origin(comm: MPI.Intracomm) -> None:
    """A blade on a hub, meshed 300 m from its origin, vibrates like one at its origin."""
    frequencies = []
    for x in (0.0, 300.0):
        offset, centre = np.array([x, -x / 2, 0.0]), np.array([0.0, 0.004, 0.004])
        mesh = box(comm, (0.3, 0.008, 0.008), (12, 1, 1))
        mesh.mesh.geometry.x[:] += offset
        points = {"left": offset + centre, "right": offset + centre + np.array([0.3, 0, 0])}
        ends = {name: InterfaceSpec(name, point=tuple(p)) for name, p in points.items()}
        blade = reduce(mesh, STEEL, interfaces=ends, num_modes=8).body
        ground = Ground({"o": Frame()})
        hub = RigidBody("hub", 1.0, [1e-2] * 3, frames={"o": Frame(), "c": Frame((0.05, 0, 0))})
        arm = FlexibleBody("arm", blade, position=np.array([0.05, -0.004, -0.004]) - offset)
        joints = [
            revolute("hinge", ground.frame("o"), hub.frame("o")),
            fixed("weld", hub.frame("c"), arm.frame("left")),
        ]
        drive = Driver("drive", "hinge", constant_speed(300.0))
        system = System([ground, hub, arm], joints, drivers=[drive])
        frequencies.append(linearize(system, consistent_state(system)).frequencies[:4])
    assert np.allclose(frequencies[1], frequencies[0], rtol=1e-4, atol=0)
