"""Mesh bodies: protocol, conservation, published cases, restart and errors.

W1, W2, W5, W10, W12 and W13 are cases of the list in `models.py`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem, la
from dolfinx.fem import petsc as fem_petsc
from mpi4py import MPI
from petsc4py import PETSc

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics.assembly.assembler import AssemblyError
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import ElasticModel
from dolfinx_mbd.fem.interfaces.interfaces import InterfaceSpec
from dolfinx_mbd.fem.linalg.blocks import multiply
from dolfinx_mbd.forms import Material
from dolfinx_mbd.forms.hyperelastic import neo_hookean
from dolfinx_mbd.mechanism.protocol import Body, BodyState
from dolfinx_mbd.structures.mesh_bodies import MeshBody
from tests.structures.mesh_bodies.models import RUBBER, STEEL, box, ends, slider_crank


def pendulum(cells: int, kind: str = "hexahedron", degree: int = 2) -> MeshBody:
    """Return the rubber bar of case W5, with an interface at the left end."""
    mesh, tags = box((0, -0.01, -0.01), (1, 0.01, 0.01), (cells, 1, 1), kind)
    model = ElasticModel(mesh, RUBBER, facet_tags=tags, degree=degree)
    return MeshBody("bar", model, ends(0.0, 1.0, ("left",)))


@cache
def bent() -> MeshBody:
    """Return a short bar of second order with two interfaces, damped."""
    mesh, tags = box((0, -0.1, -0.1), (0.5, 0.1, 0.1), (2, 1, 1), "tetrahedron")
    model = ElasticModel(mesh, Material(1e6, 0.3, 1200.0), facet_tags=tags)
    return MeshBody("bar", model, ends(0.0, 0.5), viscosity=1e-3, mass_damping=2.0)


def some_state(body: MeshBody, seed: int) -> tuple[Any, Any, Any]:
    """Return coordinates of a strongly deformed and rotated body, velocities and accelerations."""
    rng = np.random.default_rng(seed)
    q, out = body.initial_coordinates(), np.zeros(body.num_coordinates)
    body.increment(q, 0.3 * rng.normal(size=body.num_velocities), out)
    body.nodal_of(out)[:] += 0.01 * rng.normal(size=(3, len(body.nodes), 3))
    v, a = (rng.normal(size=body.num_velocities) for _ in range(2))
    body.hold(body.nodal_of(out), body.frames_of(out), v, a)
    return out, v, a


def test_it_is_a_body() -> None:
    assert isinstance(bent(), Body)


def test_velocities_of_nodes_and_frames_are_derivatives() -> None:
    body, h = bent(), 1e-6
    q, v, a = some_state(body, 1)
    position, rotation = np.zeros((2, 3)), np.zeros((2, 3, 3))
    states = []
    for sign in (1.0, -1.0):
        moved = np.zeros_like(q)
        body.increment(q, sign * h * v, moved)
        body.hold(body.nodal_of(moved), body.frames_of(moved), v + sign * h * a, a)
        body.poses(moved, position, rotation)
        held = body.nodal_of(moved)[:, body.held].copy()
        states.append((held, position.copy(), rotation.copy()))
    (forward, p1, R1), (backward, p2, R2) = states
    nodal = body.nodal_of(q)[:, body.held]
    assert np.allclose((forward[0] - backward[0]) / (2 * h), nodal[1], atol=1e-7)
    assert np.allclose((forward[1] - backward[1]) / (2 * h), nodal[2], atol=1e-7)
    u = np.zeros((2, 6))
    body.frame_velocities(q, v, u)
    assert np.allclose((p1 - p2) / (2 * h), u[:, :3], atol=1e-8)
    body.poses(q, position, rotation)
    spin = np.einsum("fij,fkj->fik", (R1 - R2) / (2 * h), rotation)
    assert np.allclose(spin[:, [2, 0, 1], [1, 2, 0]], u[:, 3:], atol=1e-8)
    assert np.allclose(np.einsum("fij,j->fi", body.frame_jacobians(q), v), u, atol=1e-13)
    tangents = body.frame_velocity_tangents(q, v)
    for column in range(body.num_velocities):
        delta, pair = np.zeros(len(v)), []
        for sign in (1.0, -1.0):
            delta[column] = sign * h
            moved, out = np.zeros_like(q), np.zeros((2, 6))
            body.increment(q, delta, moved)
            body.frame_velocities(moved, v, out)
            pair.append(out)
        assert np.allclose((pair[0] - pair[1]) / (2 * h), tangents[:, :, column], atol=1e-8)


def test_accelerations_settle_without_residual() -> None:
    """At an instant, frames and nodes with the accelerations of the condensed mass are in balance.

    The condensed mass matrix gives the accelerations of the frames, `settle` those of the nodes.
    """
    body = bent()
    q, v, a = some_state(body, 2)
    gravity, wrenches = np.array([0.3, -9.0, 1.0]), np.zeros((2, 6))
    wrenches[1] = [30.0, -20.0, 10.0, 1.0, -2.0, 3.0]
    rows, scale = np.zeros((2, body.num_velocities))
    state = BodyState(0.0, q, v, a, gravity, wrenches)
    body.residual(state, rows, scale)
    mass = body.tangent(state)[2]
    a = a - np.linalg.solve(mass, rows)
    state = state._replace(a=a)
    body.settle(state, q)
    body.residual(state, rows, scale)
    assert np.abs(rows).max() < 1e-10 * scale.max()
    rates = body.forces.apply_mass(body.nodal_of(q)[2])
    u, w, _ = body.nodal_of(q)
    weight = body.typical_mass * gravity - 2.0 * body.momenta(q, v)[:3]  # with mass damping
    assert np.allclose(rates.sum(axis=0), weight + wrenches[:, :3].sum(axis=0), rtol=1e-9)


@pytest.mark.parametrize("turn", [0.4, 2.0, 3.1])
def test_rotation_causes_no_forces(turn: float) -> None:
    """Case W12: a rotated body has neither elastic energy nor forces, nor viscous forces."""
    body = bent()
    axis = np.array([2.0, -1.0, 2.0]) / 3
    pose = np.concatenate([[0.3, 0.2, -5.0, np.cos(turn / 2)], np.sin(turn / 2) * axis])
    q, v = body.placed(pose, np.array([1.0, 2.0, 3.0, 4.0, -5.0, 6.0]))
    assert body.energies(q, v, np.zeros(3))[1] < 1e-12
    body.forces.set_state(*body.nodal_of(q)[:2])
    assert np.abs(body.forces.elastic()).max() < 1e-8  # stiffness 1e5 N/m
    viscous = body.forces.damping(np.zeros_like(body.nodes))
    assert viscous is not None
    assert np.abs(viscous).max() < 1e-8
    rigid = body.rigid_body()
    expected = rigid.energies(pose, np.array([1.0, 2, 3, 4, -5, 6]), np.zeros(3))[0]
    assert np.isclose(body.energies(q, v, np.zeros(3))[0], expected, rtol=1e-10)
    momenta = rigid.momenta(pose, np.array([1.0, 2, 3, 4, -5, 6]))
    assert np.allclose(body.momenta(q, v), momenta, rtol=1e-10)


def test_tangent_of_a_step_is_the_derivative_of_the_residual() -> None:
    """The matrix of the solver is the symmetric part of that of differences, in a deformed state.

    The derivative of viscous forces with respect to displacements is not symmetric.
    """
    body = bent()
    q, v, a = some_state(body, 3)
    u, w, _ = body.nodal_of(q)
    forces, rng = body.forces, np.random.default_rng(4)
    directions = rng.normal(size=(2, *u.shape))
    b, c, h = 700.0, 30.0, 1e-6  # factors of mass and damping; step of differences

    def total(du: Any) -> Any:
        forces.set_state(u + du, w + c * du)
        damping = forces.nodes.gathered_block(forces.damping(w + c * du))
        return forces.elastic() + damping + b * forces.apply_mass(du)

    differences = [(total(h * d) - total(-h * d)) / (2 * h) for d in directions]
    forces.set_state(u, w)
    A = forces.matrix(b, c)
    owned = directions[:, forces.nodes.owned].reshape(2, -1)
    products = forces.nodes.gathered_block(multiply(A, np.asfortranarray(owned.T)))
    A.destroy()
    J = np.einsum("anj,bnj->ab", directions, differences)
    S = np.einsum("anj,njb->ab", directions, products)
    assert np.abs(J - J.T).max() > 1e-4 * np.abs(J).max()
    assert np.allclose(S, (J + J.T) / 2, rtol=1e-6, atol=1e-6 * np.abs(J).max())


W5 = [(0.99689, -0.04710), (0.96303, -0.25900), (0.79032, -0.61278), (0.44521, -0.89500)]


def rubber_pendulum() -> tuple[MeshBody, mbd.System]:
    """Return the bar of case W5 and the mechanism."""
    bar = pendulum(10)
    ground = mbd.Ground({"origin": mbd.Frame()})
    hinge = mbd.revolute("hinge", ground.frame("origin"), bar.frame("left"))
    return bar, mbd.System([ground, bar], [hinge], gravity=(0, -9.81, 0))


def test_rubber_pendulum() -> None:
    """Case W5, tip at 0.1 to 0.4 s, against a geometrically exact beam."""
    bar, system = rubber_pendulum()
    assert "MeshBody" in str(system)
    run = mbd.simulate(system, t_end=0.4, dt=0.004)
    tip = bar.motion(run).position([(1, 0, 0)])[25::25, 0]
    assert np.abs(tip[:, :2] - W5).max() < 2e-3
    assert np.abs(tip[:, 2]).max() < 1e-9
    energy = run.energies()
    total = energy.kinetic + energy.elastic + energy.gravity
    assert np.abs(total - total[0]).max() < 0.01 * np.ptp(energy.gravity)
    assert run.constraint_violation().max() < 1e-12
    fine = mbd.simulate(system, t_end=0.1, dt=mbd.Adaptive(1e-4, first=1e-3))
    tip = bar.motion(fine).position([(1, 0, 0)])[-1, 0]
    assert np.abs(tip[:2] - W5[0]).max() < 2e-3


@cache
def crank_run(tolerance: float = 1e-8) -> tuple[MeshBody, mbd.results.Solution]:
    """Return the rod and the first revolution of case W1."""
    mesh, tags = box((0, -0.004, -0.004), (0.3, 0.004, 0.004), (16, 1, 1), "tetrahedron")
    model = ElasticModel(mesh, STEEL, facet_tags=tags)
    rod = MeshBody("rod", model, ends(0.0, 0.3), position=(0.15, 0, 0))
    run = mbd.simulate(slider_crank(rod), t_end=2 * np.pi / 150, dt=2e-4, tolerance=tolerance)
    return rod, run


def deflection(rod: MeshBody, run: mbd.results.Solution) -> Any:
    """Return the deflection of the middle of the rod from its chord over time, m."""
    left, middle, right = np.moveaxis(
        rod.motion(run).position([(0, 0, 0), (0.15, 0, 0), (0.3, 0, 0)]), 1, 0
    )
    chord = (right - left) / np.linalg.norm(right - left, axis=1)[:, None]
    offset = middle - 0.5 * (left + right)
    return chord[:, 0] * offset[:, 1] - chord[:, 1] * offset[:, 0]


@pytest.mark.slow
def test_slender_slider_crank() -> None:
    """Case W1 against a geometrically exact beam."""
    rod, run = crank_run()
    w = deflection(rod, run)
    assert np.isclose(w.max(), 1.6371e-3, rtol=0.01)
    assert np.isclose(w.min(), -1.8659e-3, rtol=0.01)
    assert abs(np.degrees(150 * run.time[w.argmax()]) - 33.6) < 2.0
    assert abs(np.degrees(150 * run.time[w.argmin()]) - 308.7) < 2.0
    assert run.iterations < 6 * (len(run) - 1)


@pytest.mark.slow
def test_digits_on_any_number_of_ranks() -> None:
    """Cases W1 and W5 with a tolerance of Newton's method far below the digits."""
    rod, run = crank_run(1e-11)
    w = deflection(rod, run)
    digits = w.max(), w.min(), run.joint("small_end").force[-1, 0]
    expected = 0.00163666097361, -0.00186283137727, -394.17913381
    assert np.allclose(digits, expected, rtol=1e-10, atol=0)
    bar, system = rubber_pendulum()
    # the hinge's force converges slowly: a tolerance of 1e-11 leaves 2e-10 of it
    run = mbd.simulate(system, t_end=0.4, dt=0.004, tolerance=1e-12)
    tip = bar.motion(run).position([(1, 0, 0)])[-1, 0, :2]
    assert np.allclose(tip, [0.445430877684, -0.894879554012], rtol=1e-10, atol=0)
    force = run.joint("hinge").force[-1, :2]
    assert np.allclose(force, [-3.58190375707, 9.43145115845], rtol=1e-10, atol=0)


def forces_of_both_rods() -> Any:
    """Return the forces (2, nt, 3) of the slider's pin in case W13, rod reduced and on its mesh.

    The reduced body starts with a quasi-static deformation, the mesh body without a deformation;
    its vibration decays by the damping of the method before the forces are compared.
    """
    mesh, tags = box((0, -0.01, -0.01), (0.3, 0.01, 0.01), (6, 1, 1))
    model = ElasticModel(mesh, STEEL, facet_tags=tags)
    reduced = mbd.reduce(model, interfaces=ends(0.0, 0.3), num_modes=8).body
    forces = []
    for rod in (
        mbd.FlexibleBody("rod", reduced, position=(0.15, 0, 0), damping_ratio=0.0),
        MeshBody("rod", model, ends(0.0, 0.3), position=(0.15, 0, 0)),
    ):
        system = slider_crank(rod, speed=20.0)
        run = mbd.simulate(system, t_end=0.1, dt=5e-4)
        forces.append(run.joint("small_end").force[100:])
    return np.array(forces)


def test_reduced_and_mesh_body_agree() -> None:
    """Case W13: the rod of the slider-crank, reduced and on its mesh, in the same mechanism."""
    forces = forces_of_both_rods()
    assert np.abs(forces[0] - forces[1]).max() < 0.02 * np.abs(forces[0]).max()


def elastica(load: float) -> tuple[Any, Any]:
    """Return deflection and shortening of case W2 relative to L, and the force of the clamp.

    The force is relative to EI/L².
    """
    mesh, tags = box((0, -0.01, -0.01), (1, 0.01, 0.01), (24, 1, 1))
    bar = MeshBody("bar", ElasticModel(mesh, RUBBER, facet_tags=tags), ends(0.0, 1.0))
    bending = 5e7 * 0.02**4 / 12
    tip = mbd.force("tip", bar.frame("right"), (0, -load * bending, 0))
    ground = mbd.Ground({"origin": mbd.Frame()})
    clamp = mbd.fixed("clamp", ground.frame("origin"), bar.frame("left"))
    state = mbd.equilibrium(mbd.System([ground, bar], [clamp], loads=[tip]))
    place = bar.frames_of(state.q)[1]
    return np.array([-place[1], 1 - place[0]]), state.lam[:3] / bending


@pytest.mark.parametrize(
    ("load", "deflection", "shortening"),
    [
        pytest.param(1, 0.301720774, 0.056433236, marks=pytest.mark.slow),
        pytest.param(3, 0.603253441, 0.254420185, marks=pytest.mark.slow),
        (10, 0.810609025, 0.554995598),
    ],
)
def test_cantilever_with_dead_tip_load(load: float, deflection: float, shortening: float) -> None:
    """Case W2 against the elastica; the shortening differs by the strain and shear of the bar."""
    tip, force = elastica(load)
    assert np.allclose(tip, [deflection, shortening], atol=2e-3)
    assert np.allclose(force, [0, -load, 0], atol=1e-9)


def twisted_by_dirichlet(
    model: ElasticModel, angle: float, energy: Any
) -> tuple[float, float, Any]:
    """Return moment, force and displacement of a twisted box from a plain DOLFINx script."""
    V = model.displacements
    u, v = fem.Function(V), ufl.TestFunction(V)
    dx = ufl.dx(metadata={"quadrature_degree": 5})
    force = ufl.derivative(energy(u) * dx, u, v)
    residual, tangent = fem.form(force), fem.form(ufl.derivative(force, u, ufl.TrialFunction(V)))
    tags = model.facet_tags
    assert tags is not None
    dofs = [fem.locate_dofs_topological(V, 2, tags.find(k)) for k in (1, 2)]
    held = fem.Function(V)
    steps = 8  # of the angle, each solved by Newton's method
    for k in range(1, steps + 1):
        c, s = np.cos(angle * k / steps), np.sin(angle * k / steps)

        def turned(x: Any, c: float = c, s: float = s) -> Any:
            return np.array([0 * x[0], c * x[1] - s * x[2] - x[1], s * x[1] + c * x[2] - x[2]])

        full = fem.Function(V)
        full.interpolate(turned)
        held.x.array[:] = 0.0
        index = (3 * dofs[1][:, None] + np.arange(3)).ravel()
        held.x.array[index] = full.x.array[index]
        conditions = [fem.dirichletbc(held, d) for d in dofs]
        for _ in range(30):
            A = fem_petsc.assemble_matrix(tangent, bcs=conditions)
            A.assemble()
            b = fem_petsc.assemble_vector(residual)
            fem_petsc.apply_lifting(b, [tangent], [conditions], x0=[u.x.petsc_vec], alpha=-1.0)
            b.ghostUpdate(addv=PETSc.InsertMode.ADD, mode=PETSc.ScatterMode.REVERSE)
            fem_petsc.set_bc(b, conditions, u.x.petsc_vec, -1.0)
            solver = PETSc.KSP().create(A.comm)
            solver.setOperators(A)
            solver.setType("preonly")
            solver.getPC().setType("lu")
            solver.getPC().setFactorSolverType("mumps")
            step = A.createVecRight()
            solver.solve(b, step)
            u.x.petsc_vec.axpy(-1.0, step)
            u.x.scatter_forward()
            size = step.norm(PETSc.NormType.INFINITY)
            if size < 1e-13:
                break
    reaction = fem.assemble_vector(residual)
    reaction.scatter_reverse(la.InsertMode.add)
    blocks = dofs[1][dofs[1] < V.dofmap.index_map.size_local]
    forces = reaction.array.reshape(-1, 3)[blocks]
    x = V.tabulate_dof_coordinates()[blocks] + u.x.array.reshape(-1, 3)[blocks]
    local = np.array([*forces.sum(axis=0), *np.cross(x, forces).sum(axis=0)])
    total = V.mesh.comm.allreduce(local)
    return float(total[3]), float(total[0]), u


def twisted_column(degrees: float) -> tuple[Any, Any, float]:
    """Return moment, force of a twisted column and of a plain script (case W10).

    The last result is the largest difference of displacements, m.
    """
    mesh, tags = box((0, -0.5, -0.5), (2, 0.5, 0.5), (3, 1, 1))
    material = Material(1e6, 0.3, 1000.0)
    model = ElasticModel(mesh, material, facet_tags=tags, degree=2)
    angle = np.deg2rad(degrees)
    column = MeshBody("column", model, ends(0.0, 2.0), energy="neo-hookean")
    along_x = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])  # z along x
    ground = mbd.Ground({"root": mbd.Frame(), "end": mbd.Frame((2, 0, 0), along_x)})
    plate = mbd.RigidBody(
        "plate", 1.0, [1, 1, 1], position=(2, 0, 0),
        frames={"hinge": mbd.Frame((0, 0, 0), along_x), "centre": mbd.Frame()},
    )  # fmt: skip
    joints = [
        mbd.fixed("clamp", ground.frame("root"), column.frame("left")),
        mbd.revolute("hinge", ground.frame("end"), plate.frame("hinge")),
        mbd.fixed("bond", plate.frame("centre"), column.frame("right")),
    ]
    ramp = mbd.Driver("motor", "hinge", lambda t: (angle * t, angle, 0.0))
    system = mbd.System([ground, column, plate], joints, drivers=[ramp])
    run = mbd.analyses.quasi_static_motion(system, np.linspace(0, 1, 9)[1:])
    moment, force, u = twisted_by_dirichlet(model, angle, lambda u: neo_hookean(u, material))
    drive = run.joint("motor")
    expected = column.forces.nodes.gathered(u.x.array[: 3 * len(column.forces.nodes.owned)])
    difference = np.abs(column.motion(run).displacement[-1] - expected).max()
    values = [drive.moment[-1, 2], run.joint("clamp").force[-1, 0]]
    return np.abs(values), np.abs([moment, force]), float(difference)


@pytest.mark.parametrize("degrees", [pytest.param(90, marks=pytest.mark.slow), 180])
def test_twisted_column_equals_dirichlet_conditions(degrees: float) -> None:
    """Case W10: a driver twists a neo-Hookean column; a plain DOLFINx script gives the same."""
    values, expected, difference = twisted_column(degrees)
    assert np.allclose(values, expected, rtol=1e-8)
    assert difference < 1e-8
    if degrees == 180:  # equal on any number of ranks
        assert np.allclose(values, [94266.42055152655, 40050.371715070825], rtol=1e-9)


def test_free_flight_conserves_momentum() -> None:
    """A body without interfaces that tumbles and vibrates keeps both momenta."""
    mesh, _ = box((0, 0, 0), (1, 0.4, 0.3), (2, 1, 1), "tetrahedron")
    body = MeshBody(
        "block", ElasticModel(mesh, Material(3e3, 0.3, 100.0)), energy="neo-hookean",
        velocity=(1, 2, 3), omega=(4, -3, 6),
    )  # fmt: skip
    run = mbd.simulate(mbd.System([body]), t_end=0.1, dt=1e-3)
    momenta, energy = run.momenta(), run.energies()
    assert np.allclose(momenta[:, :3], momenta[0, :3], rtol=1e-9)
    assert np.allclose(momenta[:, 3:], momenta[0, 3:], atol=1e-3 * np.abs(momenta[0]).max())
    assert energy.elastic.max() > 0.01 * energy.kinetic[0]
    total = energy.kinetic + energy.elastic
    assert np.allclose(total, total[0], rtol=0.01)
    falling = mbd.simulate(mbd.System([body], gravity=(0, 0, -9.81)), t_end=0.1, dt=1e-3)
    fall = body.motion(falling).displacement[-1] - body.motion(run).displacement[-1]
    assert np.allclose(fall, [0, 0, -0.5 * 9.81 * 0.01], atol=1e-8)


def test_interrupted_run_continues_identically(tmp_path: Path) -> None:
    """A run in a folder that stops after half of its steps equals the whole run."""
    body = pendulum(4)
    folder = Path(MPI.COMM_WORLD.bcast(str(tmp_path), root=0)) / "run"
    ground = mbd.Ground({"origin": mbd.Frame()})
    hinge = mbd.revolute("hinge", ground.frame("origin"), body.frame("left"))
    system = mbd.System([ground, body], [hinge], gravity=(0, -9.81, 0))
    whole = mbd.simulate(system, t_end=0.08, dt=0.004)

    simulator = mbd.Simulator(system, dt=0.004, t_end=0.08)
    for _ in range(10):
        simulator.advance()
    saved = simulator._snapshot()
    continued = mbd.Simulator(system, dt=0.004, t_end=0.08)
    continued._return_to(saved)
    while not continued.steps.done:
        continued.advance()
    assert np.array_equal(continued.state.q, whole.final_state.q)
    written = mbd.simulate(system, t_end=0.08, dt=0.004, path=folder)
    assert np.array_equal(written.q, whole.q)
    resumed = mbd.resume(folder, system)
    assert np.array_equal(resumed.q, whole.q)


def test_errors_name_cause_and_cure() -> None:
    mesh, tags = box((0, 0, 0), (1, 0.2, 0.2), (2, 1, 1))
    model = ElasticModel(mesh, RUBBER, facet_tags=tags)
    pressed = {"left": InterfaceSpec(1, kind="averaged", pressure_modes=0.02)}
    with pytest.raises(InputError, match="pressure_modes") as error:
        MeshBody("bar", model, pressed)
    assert error.value.argument == "interfaces"
    with pytest.raises(InputError, match="at the undeformed shape") as error:
        MeshBody("bar", model, energy=lambda u: 1e5 * ufl.tr(ufl.grad(u)))
    assert error.value.argument == "energy"
    with pytest.raises(InputError, match="scalar UFL") as error:
        MeshBody("bar", model, energy=lambda u: ufl.grad(u))
    assert error.value.argument == "energy"
    with pytest.raises(InputError, match="saint-venant"):
        MeshBody("bar", model, energy="hooke")
    with pytest.raises(InputError, match="nearly-incompressible"):
        MeshBody("bar", box((0, 0, 0), (1, 1, 1), (1, 1, 1))[0], material=RUBBER, energy="u-p")
    body = MeshBody("bar", model, ends(0.0, 1.0))
    ground = mbd.Ground({"origin": mbd.Frame(), "end": mbd.Frame((1.1, 0, 0))})
    joints = [
        mbd.fixed(name, ground.frame(frame), body.frame(end))
        for name, frame, end in (("one", "origin", "left"), ("two", "end", "right"))
    ]
    with pytest.raises(AssemblyError) as wrong:
        mbd.dynamics.consistent_state(mbd.System([ground, body], joints))
    assert wrong.value.joint == "two"
    system = mbd.System([ground, body], joints[:1])
    run = mbd.simulate(system, t_end=0.01, dt=0.005)
    assert run.body("bar").displacement.shape == (3, len(body.nodes), 3)
    with pytest.raises(InputError, match="not in the mesh"):
        body.motion(run).position([(2.0, 0, 0)])
