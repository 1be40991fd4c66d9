"""Prescribed motion at full order: closed forms, bodies with all modes, order and energy.

V5 and V7 are cases of docs/verification/reference_cases.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from dolfinx.mesh import CellType
from mpi4py import MPI

from dolfinx_mbd import ElasticModel, InterfaceSpec, ReductionOptions
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import MaterialPoint, Rayleigh
from dolfinx_mbd.dynamics import GeneralizedAlpha
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
from dolfinx_mbd.forms import STEEL, Material
from dolfinx_mbd.mechanism.mechanisms import slider_crank
from dolfinx_mbd.reduction import reduce
from dolfinx_mbd.structures import TransientOptions
from dolfinx_mbd.structures.prescribed_motion.full_order import FullOrder
from dolfinx_mbd.structures.prescribed_motion.modal_coordinates import (
    modal_transient,
    quasi_static_deformation,
)
from dolfinx_mbd.structures.prescribed_motion.motion import PrescribedMotion
from dolfinx_mbd.structures.prescribed_motion.observation import Transient
from dolfinx_mbd.structures.prescribed_motion.solve import transient
from dolfinx_mbd.structures.prescribed_motion.time_stepping import MotionState, MotionStepper
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box
from tests.models.calls import flat
from tests.models.plates import plate
from tests.models.spin_up import EXACT

ENDS = ("left", "right")
PLATE: Mapping[str, Any] = {"plane": "stress", "thickness": WIDTH}
ALONE = MPI.COMM_SELF
"""Communicator of one rank, for small meshes on which several ranks would save no time."""

TRAPEZOIDAL = GeneralizedAlpha.newmark()


def angular_velocity(t: float) -> np.ndarray:
    """Return an angular velocity that varies over time, rad/s."""
    return np.array([300.0, -200.0, 900.0]) * np.sin(4000 * t) + np.array([100.0, 50.0, 400.0])


def angular_acceleration(t: float) -> np.ndarray:
    """Return the time derivative of `angular_velocity`, rad/s²."""
    return np.array([300.0, -200.0, 900.0]) * 4000 * np.cos(4000 * t)


def right_wrench(t: float) -> np.ndarray:
    """Return a wrench at the right interface, mainly a tension, N and N m."""
    force, moment = np.array([4e4, 300.0, -200.0]), np.array([3.0, -5.0, 8.0])
    return np.concatenate([force * np.cos(3000 * t), moment * np.sin(5000 * t)])


def left_wrench(t: float) -> np.ndarray:
    """Return a wrench at the left interface, mainly along x, N and N m."""
    return np.concatenate([[-2e4 * np.cos(3000 * t), 100.0, 50.0], [2.0, 4.0, -6.0]])


COMPLETE_MOTION = PrescribedMotion(
    omega=angular_velocity,
    alpha=angular_acceleration,
    acceleration=lambda t: [4000 * np.cos(2000 * t), 3000.0, -1000.0],
    gravity=(0.0, -9.81, 1.0),
    wrenches={"left": left_wrench, "right": right_wrench},
)
ATTACHED_MOTION = PrescribedMotion(
    omega=angular_velocity,
    alpha=angular_acceleration,
    acceleration=COMPLETE_MOTION.acceleration,
    wrenches={"right": right_wrench},
)
"""The motion for a body whose left interface is held, without gravity."""
DAMPING = Rayleigh(mass=40.0, stiffness=3e-7)


class Case(NamedTuple):
    """A mesh, the kind of its interfaces, the held interface, and options of `reduce`."""

    mesh: Any
    kind: str
    held: str | None
    settings: dict[str, Any]


def case(name: str, comm: MPI.Comm) -> Case:
    """Return the case with the given name."""
    solid, flat = box(comm, cells=(3, 1, 1)), {"degree": 1, **PLATE}
    match name:
        case "rigid":
            return Case(solid, "rigid", None, {"degree": 1})
        case "averaged":
            return Case(solid, "averaged", None, {"degree": 1})
        case "attached":
            return Case(solid, "rigid", "left", {"degree": 1})
        case "attached averaged":
            return Case(solid, "averaged", "left", {"degree": 1})
        case _:
            return Case(plate(comm, cells=(4, 1)), "rigid", None, flat)


@pytest.mark.parametrize(
    "name", ["rigid", "averaged", "attached", "attached averaged", "plane"], ids=str
)
def test_a_body_with_all_modes_agrees_with_the_full_model(comm: MPI.Intracomm, name: str) -> None:
    """The inertia terms of the mesh and of the reduced body's mass integrals agree over 40 steps.

    The body keeps all modes of a small mesh, so nothing is truncated: 1e-6 is round-off of its
    highest modes.
    """
    body = case(name, comm)
    shared: dict[str, Any] = {"interfaces": ENDS, "kind": body.kind, **body.settings}
    problem = elastic_problem(ElasticModel(body.mesh, STEEL, **body.settings))
    num_rigid = problem.num_rigid
    facets = mesh_interfaces(body.mesh, problem.space, InterfaceSpec.each(ENDS, body.kind))
    # all fixed-interface modes: the dofs without those of rigid and the conditions of averaged ends
    rigid = sum(len(i.dofs) for i in facets if i.kind == "rigid")
    averaged = num_rigid * sum(i.kind == "averaged" for i in facets)
    num_modes = problem.num_dofs - problem.comm.allreduce(rigid) - averaged
    points = {"middle": (LENGTH / 2, HEIGHT / 3, WIDTH / 4)[: problem.dim]}
    reduction = flat(
        reduce,
        body.mesh,
        STEEL,
        num_modes=num_modes,
        attached_to=body.held,
        points=points,
        skin=False,
        **shared,
    )
    reduced = reduction.body
    assert reduced.num_modes == num_modes + num_rigid
    damping = DAMPING.mass * reduced.mass + DAMPING.stiffness * reduced.stiffness
    reduced = reduced.replace(damping=damping)
    motion = ATTACHED_MOTION if body.held else COMPLETE_MOTION
    stiffening = body.held is None
    times: dict[str, Any] = {"t_end": 4e-4, "dt": 1e-5, "stiffening": stiffening}
    full = flat(
        transient,
        body.mesh,
        STEEL,
        motion=motion,
        held=body.held or (),
        damping=DAMPING,
        points=points,
        tolerance=1e-12,
        **shared,
        **times,
    )
    modal = modal_transient(reduced, motion, **times)
    assert len(full.time) == 41
    assert full.time == pytest.approx(modal.time)
    pairs = [(full.points["middle"], modal.points["middle"])]
    pairs += [(full.interfaces[end], modal.interfaces[end]) for end in ENDS]
    for history, expected in pairs:
        for key in ("displacement", "velocity"):
            size = np.abs(getattr(modal.points["middle"], key)).max()
            error = getattr(history, key)[:, :3] - getattr(expected, key)[:, :3]
            assert np.abs(error).max() < 1e-6 * size
    uncoupled = modal_transient(reduced, motion, couplings=False, **times | {"stiffening": False})
    difference = uncoupled.points["middle"].displacement - modal.points["middle"].displacement
    assert np.abs(difference).max() > 1e-3 * np.abs(modal.points["middle"].displacement).max()


def test_reproduces_a_body_in_a_mechanism(comm: MPI.Intracomm) -> None:
    """A rod under its motion and joint forces in a slider-crank agrees within 1 %."""
    mesh = box(comm, cells=(6, 1, 1))
    points = {"inside": (0.3 * LENGTH, HEIGHT / 2, WIDTH / 2)}
    shared: dict[str, Any] = {"interfaces": ENDS, "points": points}
    body = reduce(
        mesh, STEEL, num_modes=12, name="rod", options=ReductionOptions(skin=False), **shared
    ).body
    damping = Rayleigh(stiffness=1e-6)
    body = body.replace(damping=damping.matrix(body.mass, body.stiffness))
    parts: dict[str, Any] = {"crank_radius": 0.03, "crank_mass": 1.0, "piston_mass": 0.3}
    system = slider_crank(body, speed=400.0, ends=ENDS, gravity=(0.0, -9.81, 0.0), **parts)
    run = simulate(system, t_end=4e-3, dt=2e-5)
    history = run.body("rod")
    motion = PrescribedMotion.from_history(
        history, gravity=system.gravity, wrenches=run.body("rod").wrenches
    )
    times: dict[str, Any] = {"t_end": 4e-3, "dt": 2e-5}
    full = flat(transient, mesh, STEEL, motion=motion, damping=damping, **shared, **times)
    reduced = history.eta @ body.point("inside").modes
    error = np.abs(full.points["inside"].displacement - reduced)[:, :2].max(axis=0)
    assert (error < 0.01 * np.abs(reduced)[:, :2].max(axis=0)).all(), error
    assert full.most_solves <= 3
    start: Any = history.eta[0], history.eta_rate[0]
    modal = modal_transient(body, motion, elastic_start=start, **times)
    assert np.abs(modal.eta - history.eta).max() < 1e-3 * np.abs(history.eta).max()


@pytest.mark.parametrize("held", [None, "left"])
@pytest.mark.parametrize("kind", ["rigid", "averaged"])
def test_static_forces_at_interfaces(comm: MPI.Intracomm, kind: Any, held: str | None) -> None:
    """Craig-Bampton is exact for static forces at interfaces, with any number of modes."""
    mesh = box(comm, cells=(6, 2, 1))
    load = np.array([1e3, 40.0, -30.0, 2.0, 3.0, -4.0])
    wrenches = {"right": load}
    if held is None:
        arm = np.cross([LENGTH, 0.0, 0.0], load[:3])
        wrenches["left"] = -load - np.concatenate([np.zeros(3), arm])
    motion = PrescribedMotion(wrenches=wrenches)
    settings: dict[str, Any] = {"interfaces": InterfaceSpec.each(ENDS, kind)}
    body = reduce(
        mesh, STEEL, num_modes=1, attached_to=held, options=ReductionOptions(skin=False), **settings
    ).body
    expected = quasi_static_deformation(body, motion, 0.0)
    run = transient(
        mesh,
        STEEL,
        motion=motion,
        held=held or (),
        t_end=3e-5,
        dt=1e-5,
        stiffening=False,
        **settings,
    )
    relative = [x["right"].displacement - x["left"].displacement for x in _ends(expected, run)]
    extension = load[0] * LENGTH / (STEEL.young * HEIGHT * WIDTH)
    assert relative[1][0, 0] == pytest.approx(extension, rel=0.02)
    for row in relative[1]:
        assert np.abs(row - relative[0][0]).max() < 1e-6 * np.abs(relative[0]).max()
        assert row[:3] == pytest.approx(relative[0][0, :3], rel=1e-4)


def _ends(*runs: Any) -> list[Any]:
    """Return the interfaces of some runs."""
    return [run.interfaces for run in runs]


SLENDER = Material(STEEL.young, 0.0, STEEL.density)
"""A material with ν = 0, so that a clamp does not prevent a lateral contraction."""


def bar(comm: MPI.Intracomm, **settings: Any) -> Transient:
    """Simulate a slender bar along x with its axis at y = z = 0."""
    size = 0.3, 0.01, 0.01
    mesh = box(comm, size, (12, 2, 2))
    mesh.mesh.geometry.x[:, 1:] -= 0.005
    shown = {"tip": (0.3, 0.0, 0.0), "root": (0.0, 0.0, 0.0)}
    times = {"t_end": 5e-5, "dt": 1e-5}
    return flat(transient, mesh, SLENDER, points=shown, **times, **settings)


def test_clamped_bar_under_centrifugal_load(comm: MPI.Intracomm) -> None:
    """V7: u(L) = ρΩ²L³/3E; spin softening adds about (ΩL)²ρ/E = 3e-5."""
    motion = PrescribedMotion(omega=(0.0, 0.0, 100.0))
    run = bar(comm, motion=motion, interfaces=["left"], held="left")
    expected = STEEL.density * 100.0**2 * 0.3**3 / (3 * STEEL.young)
    tip = run.points["tip"].displacement
    assert tip[:, 0] == pytest.approx(expected, rel=1e-4)
    assert np.abs(tip[:, 1:]).max() < 1e-6 * expected


def test_free_bar_about_its_centre(comm: MPI.Intracomm) -> None:
    """V7: u(L/2) = ρΩ²L³/24E of both ends, with no interface held."""
    motion = PrescribedMotion(omega=(0.0, 0.0, 100.0), acceleration=(-(100.0**2) * -0.15, 0.0, 0.0))
    run = bar(comm, motion=motion, interfaces={"left": "left"}, kind="averaged")
    expected = STEEL.density * 100.0**2 * 0.3**3 / (24 * STEEL.young)
    ends = [run.points[name].displacement[:, 0] for name in ("root", "tip")]
    assert ends[1] == pytest.approx(expected, rel=1e-4)
    assert ends[0] == pytest.approx(-expected, rel=1e-4)


def test_clamped_bar_under_angular_acceleration(comm: MPI.Intracomm) -> None:
    """V7: w(L) = 11ρAαL⁵/120EI against α; shear adds about (h/L)² = 0.1 %."""
    motion = PrescribedMotion(alpha=(0.0, 0.0, 200.0))
    run = bar(comm, motion=motion, interfaces=["left"], held="left", stiffening=False)
    expected = -11 * STEEL.density * 200.0 * 0.3**5 / (10 * STEEL.young * 0.01**2)
    assert run.points["tip"].displacement[:, 1] == pytest.approx(expected, rel=0.005)


def test_spin_up() -> None:
    """V5: a strip with EA, EI and ρA of the beam agrees within 1 % at full order.

    Without geometric stiffening the deflection of the same strip exceeds its length at 10 s.
    """
    length, axial, bending, line = 10.0, 2.8e7, 1.4e4, 1.2  # L, EA, EI and ρA
    height = np.sqrt(12 * bending / axial)
    material = Material(axial / height, 0.3, line / height)
    T, final = 15.0, 6.0

    def omega(t: float) -> float:
        phase = 2 * np.pi * min(t, T) / T
        return final / T * (min(t, T) - T / (2 * np.pi) * np.sin(phase))

    def alpha(t: float) -> float:
        return final / T * (1 - np.cos(2 * np.pi * t / T)) if t < T else 0.0

    def tip(t_end: float, stiffening: bool) -> tuple[np.ndarray, Transient]:
        run = transient(
            ElasticModel(
                plate(ALONE, (length, height), (30, 1), origin=(0.0, -height / 2)),
                material,
                plane="stress",
                thickness=1.0,
            ),
            motion=PrescribedMotion(omega=omega, alpha=alpha),
            interfaces=["left"],
            held="left",
            t_end=t_end,
            dt=0.04,
            stiffening=stiffening,
            options=TransientOptions(elastic_start="undeformed", points={"tip": (length, 0.0)}),
        )
        return run.points["tip"].displacement, run

    stiff, run = tip(18.0, True)
    steps = [round(t / 0.04) for t in EXACT]
    assert stiff[steps, 1] == pytest.approx(list(EXACT.values()), rel=0.01)
    assert stiff[:, 1].min() == pytest.approx(-0.5738, rel=0.003)
    assert run.time[np.argmin(stiff[:, 1])] == pytest.approx(6.76, abs=0.04)
    assert stiff[-75:, 0].mean() == pytest.approx(5.14e-4, rel=0.003)  # last 3 s
    assert run.most_solves <= 3
    soft, _ = tip(10.0, False)
    assert soft[-1, 1] < -10


def strip(comm: MPI.Intracomm, **settings: Any) -> Transient:
    """Simulate a small plane bar that is held at its left end, pulled and rotated."""
    motion = PrescribedMotion(
        omega=lambda t: 2000 * np.sin(6000 * t) ** 4,
        alpha=lambda t: 4 * 2000 * 6000 * np.sin(6000 * t) ** 3 * np.cos(6000 * t),
        wrenches={"right": lambda t: [0, 2e2 * (1 - np.cos(8000 * t)) ** 2, 0, 0, 0, 0]},
    )
    return flat(
        transient,
        plate(comm, cells=(6, 1)),
        STEEL,
        motion=motion,
        interfaces=ENDS,
        held="left",
        points={"tip": (LENGTH, HEIGHT / 2)},
        elastic_start="undeformed",
        **PLATE,
        **settings,
    )


@pytest.mark.parametrize(
    "method",
    [TRAPEZOIDAL, None, GeneralizedAlpha.hht(0.1)],
    ids=["Newmark", "default", "HHT"],
)
def test_second_order_in_time(method: Any) -> None:
    """Differences of the solutions with h, h/2 and h/4 decrease by the factor four."""

    def tip(dt: float) -> np.ndarray:
        run = strip(ALONE, t_end=8e-5, dt=dt, method=method, tolerance=1e-12, stride=10**6)
        history = run.points["tip"]
        assert len(history.displacement) == 2
        return np.concatenate([history.displacement[-1, :2], 1e-4 * history.velocity[-1, :2]])

    values = [tip(dt) for dt in (4e-6, 2e-6, 1e-6)]
    coarse, fine = (np.linalg.norm(a - b) for a, b in itertools.pairwise(values))
    assert np.log2(coarse / fine) == pytest.approx(2, abs=0.15)


def test_energy_is_kept() -> None:
    """½vᵀMv + ½uᵀ(K + K_σ + K_ω)u − fᵀu is constant, because G does no work.

    M and K are mass and stiffness, K_σ and K_ω those of prestress and rotation, f is the load and G
    the gyroscopic matrix. The angular velocity is constant, and the method is the trapezoidal rule.
    The bar starts far from its equilibrium, so that the Coriolis force is large.
    """
    mesh = box(ALONE, cells=(4, 1, 1))
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    motion = PrescribedMotion(
        omega=(200.0, -300.0, 900.0), wrenches={"right": [2e4, 0.0, 0.0, 0.0, 0.0, 0.0]}
    )
    facets = mesh_interfaces(mesh, problem.space, ENDS)
    equations = FullOrder(problem, facets, ["left"], motion, stiffening=True, prefix="energy_")
    equations.move_to(0.0)
    nothing = np.zeros(problem.num_owned)
    load = equations.balance(nothing, nothing)

    def energy(state: MotionState) -> np.ndarray:
        elastic = -equations.balance(state.u, nothing)
        kinetic = problem.apply_mass(state.v[:, None])[:, 0]
        total = equations.dot(state.u, elastic) - equations.dot(state.u, load)
        return np.array(
            [0.5 * (equations.dot(state.v, kinetic) + total), equations.dot(state.v, kinetic)]
        )

    a = equations.acceleration(0.0, nothing, nothing)
    state = MotionState(0.0, nothing, nothing, a, a)
    stepper = MotionStepper(equations, 2e-6, TRAPEZOIDAL, tolerance=1e-12)
    values = []
    for _ in range(60):
        state = stepper.step(state)
        values.append(energy(state))
    total, kinetic = np.array(values).T
    assert np.abs(total).max() < 1e-9 * kinetic.max()
    power = equations.dot(state.v, equations.motion_terms(nothing, state.v))
    magnitude = np.sqrt(equations.dot(*[equations.motion_terms(nothing, state.v)] * 2))
    assert abs(power) < 1e-13 * magnitude * np.sqrt(equations.dot(state.v, state.v))
    equations.destroy()


def test_ranks_agree(comm: MPI.Intracomm) -> None:
    """Points, interfaces and the norm of a field on one rank and on all ranks agree."""
    results = []
    for ranks in (MPI.COMM_SELF, comm):
        run = transient(
            box(ranks, cells=(5, 2, 1), cell=CellType.tetrahedron),
            STEEL,
            motion=COMPLETE_MOTION,
            interfaces=ENDS,
            t_end=1e-4,
            dt=1e-5,
            damping=DAMPING,
            options=TransientOptions(
                points={"middle": (LENGTH / 2, HEIGHT / 3, WIDTH / 4)}, fields_at=[0.0, 5.2e-5]
            ),
        )
        assert run.fields.time == pytest.approx([0.0, 5e-5])
        squares = ranks.allreduce(np.sum(run.fields.displacement**2, axis=0))
        results.append((run, squares))
    (single, size), (many, many_size) = results
    assert many_size == pytest.approx(size, rel=1e-7)
    middle = single.points["middle"].displacement
    assert np.abs(many.points["middle"].displacement - middle).max() < 1e-7 * np.abs(middle).max()
    for end in ENDS:
        moved = single.interfaces[end].displacement
        assert np.abs(many.interfaces[end].displacement - moved).max() < 1e-7 * np.abs(moved).max()


def test_fields_are_those_of_the_points(comm: MPI.Intracomm, tmp_path: Path) -> None:
    """A field evaluated at a vertex is the point's displacement; the file is written."""
    run = strip(comm, t_end=2e-5, dt=1e-6, fields_at=[1e-5, 2e-5])
    u = run.displacement(1)
    tip = np.flatnonzero(np.isclose(run.positions, [LENGTH, HEIGHT / 2]).all(axis=1))
    local = u.x.array.reshape(-1, 2)[tip].sum(axis=0)
    expected = run.points["tip"].displacement[-1, :2]
    assert comm.allreduce(local) == pytest.approx(expected, rel=1e-9)
    path = comm.bcast(str(tmp_path / "strip.bp"))
    run.write(path, scale=10)
    history = SimpleNamespace(
        time=np.array([0.0, 2e-5]),
        position=np.zeros((2, 3)),
        rotation=np.tile([1.0, 0.0, 0.0, 0.0], (2, 1)),
    )
    run.write(comm.bcast(str(tmp_path / "turned.bp")), history)
    comm.barrier()
    assert Path(path).exists()


def test_uniform_acceleration_deforms_nothing(comm: MPI.Intracomm) -> None:
    """In mean axes the load is in equilibrium with the inertia of the body."""
    free = PrescribedMotion(acceleration=(30.0, -20.0, 10.0))
    run = transient(
        box(comm, cells=(2, 1, 1)), STEEL, motion=free, interfaces=ENDS, t_end=1e-4, dt=1e-5
    )
    assert run.num_steps == 10
    for end in ENDS:
        assert np.abs(run.interfaces[end].displacement).max() < 1e-12 * 30.0 / 1e6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"held": "middle"}, "held: unknown interface 'middle'; this body has 'left', 'right'"),
        ({"held": "right"}, "interface 'right' is held, so its wrench is a reaction"),
        ({"motion": PrescribedMotion(wrenches={"top": np.zeros(6)})}, "unknown interface 'top'"),
        ({"motion": None}, "motion must be PrescribedMotion"),
        ({"interfaces": []}, "at least one interface"),
        ({"dt": -1.0}, "dt must be a positive"),
        ({"t_end": "1"}, "t_end must be a finite number"),
        ({"fields_at": [1.0]}, "fields_at must lie between 0 s and"),
        ({"method": "newmark"}, "^method must be .*GeneralizedAlpha"),
        ({"damping": 0.01}, "^damping must be"),
        ({"damping": SimpleNamespace(mass=-1, stiffness=0)}, "^damping.mass must be"),
        ({"elastic_start": "rest"}, "elastic_start must be 'quasi-static', 'undeformed', or"),
        ({"elastic_start": (np.zeros(1), np.zeros(1))}, "owned degrees of freedom"),
        ({"stride": 0}, "stride must be a whole"),
        ({"tolerance": 2.0}, "between 0 and 1"),
        ({"points": {"far": (9.0, 0.0, 0.0)}}, "'far' at .* is not in the mesh"),
        ({"held": ENDS, "stiffening": True, "motion": PrescribedMotion()}, "at most one held"),
    ],
)
def test_bad_input(comm: MPI.Intracomm, change: dict[str, Any], message: str) -> None:
    motion = PrescribedMotion(wrenches={"right": right_wrench})
    settings: dict[str, Any] = {"motion": motion, "interfaces": ENDS, "t_end": 1e-5, "dt": 1e-5}
    with pytest.raises(ValueError, match=message):
        flat(transient, box(comm, cells=(2, 1, 1)), STEEL, degree=1, **settings | change)


def test_a_force_at_a_named_point_is_that_at_an_interface(comm: MPI.Intracomm) -> None:
    """The point moves as the origin of an interface; a moment there raises an error."""
    body = reduce(
        ElasticModel(box(comm, cells=(2, 1, 1)), STEEL, degree=1), interfaces=["left"], num_modes=2
    ).body
    left = body.interface("left")
    body = body.replace(points=(MaterialPoint("hook", left.point, left.motion[:3].T),))
    wrench = np.array([1.0, 20.0, -3.0, 0.0, 0.0, 0.0])
    etas = []
    for name in ("left", "hook"):
        motion = PrescribedMotion(wrenches={name: wrench}, gravity=(0.0, -9.81, 0.0))
        result = modal_transient(body, motion, t_end=1e-3, dt=1e-5, stiffening=False)
        etas.append(result.eta)
    np.testing.assert_allclose(etas[1], etas[0], rtol=1e-10, atol=1e-14)
    turning = PrescribedMotion(wrenches={"hook": np.ones(6)})
    with pytest.raises(InputError, match="named point 'hook' has no moment"):
        modal_transient(body, turning, t_end=1e-3, dt=1e-5)


def test_bad_input_of_modal_transient(comm: MPI.Intracomm) -> None:
    """Errors name unknown interfaces, missing stiffening and a start of another size."""
    settings: dict[str, Any] = {"interfaces": ["left"], "num_modes": 2, "stiffening": False}
    body = reduce(
        ElasticModel(box(comm, cells=(2, 1, 1)), STEEL, degree=1),
        options=ReductionOptions(skin=False),
        **settings,
    ).body
    times: dict[str, Any] = {"t_end": 1e-5, "dt": 1e-5}
    with pytest.raises(ValueError, match="unknown interface 'right'; this body has 'left'"):
        modal_transient(body, ATTACHED_MOTION, **times)
    with pytest.raises(ValueError, match="unknown interface 'right'"):
        quasi_static_deformation(body, ATTACHED_MOTION, 0.0)
    rest = PrescribedMotion()
    for call in (modal_transient, quasi_static_deformation):
        options = times if call is modal_transient else {"times": 0.0}
        with pytest.raises(ValueError, match="holds no stiffening"):
            call(body, rest, stiffening=True, **options)
    with pytest.raises(
        ValueError, match=r"elastic_start needs two arrays of shape \(2,\), elastic"
    ):
        modal_transient(body, rest, elastic_start=(np.zeros(1), np.zeros(2)), **times)
    with pytest.raises(ValueError, match="elastic_start must be"):
        modal_transient(body, rest, elastic_start="rest", **times)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dt must be a positive"):
        modal_transient(body, rest, t_end=1.0, dt=0.0)


def test_a_start_needs_two_vectors_of_one_size() -> None:
    with pytest.raises(InputError) as error:
        TransientOptions(elastic_start=(np.zeros(2), np.zeros(3)))
    assert error.value.argument == "elastic_start"
