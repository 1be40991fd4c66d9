"""Averaged interfaces of mesh bodies at any rotation.

W12 is a case of the list in `models.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.fem import ElasticModel
from dolfinx_mbd.fem.interfaces.interfaces import InterfaceSpec, mesh_interfaces
from dolfinx_mbd.forms import Material
from dolfinx_mbd.kernels.rotations import exp_quaternion, rotation_matrix
from dolfinx_mbd.mechanism.protocol import BodyState
from dolfinx_mbd.structures.mesh_bodies import MeshBody
from tests.structures.mesh_bodies.models import RUBBER, STEEL, box, slider_crank

SOFT = Material(1e6, 0.3, 1200.0)
PLACE = 0.010500349990643532  # y of the middle of the rod at 0.02 s, m
KINDS = [("averaged", "averaged"), ("averaged", "rigid"), ("rigid", "averaged")]


def specs(lower: float, upper: float, kinds: Any, shift: float = 0.0) -> dict[str, Any]:
    """Return interfaces at the ends of a box along x; `shift` moves the points off the centres."""
    return {
        name: InterfaceSpec(k, point=(x, shift, 0), axes=np.eye(3), kind=kind)
        for k, (name, x, kind) in enumerate(
            zip(("left", "right"), (lower, upper), kinds, strict=True), 1
        )
    }


def bar(kinds: Any = KINDS[0], material: Material = SOFT, shift: float = 0.03) -> MeshBody:
    """Return a short bar with interfaces of given kinds."""
    mesh, tags = box((0, -0.1, -0.1), (0.5, 0.1, 0.1), (2, 1, 1), "tetrahedron")
    model = ElasticModel(mesh, material, facet_tags=tags)
    return MeshBody("bar", model, specs(0.0, 0.5, kinds, shift), viscosity=1e-3)


def some_motion(body: MeshBody, seed: int) -> tuple[Any, Any]:
    """Return poses of the frames and displacements of the nodes, which do not fit each other."""
    rng = np.random.default_rng(seed)
    q, out = body.initial_coordinates(), np.zeros(body.num_coordinates)
    body.increment(q, 0.4 * rng.normal(size=body.num_velocities), out)
    return body.frames_of(out).copy(), 0.05 * rng.normal(size=body.nodes.shape)


def test_small_motions_equal_the_averaged_interface_of_reduce() -> None:
    """The linearized constraints hold for the motion (d, θ) = C u of a reduced interface."""
    body = bar()
    model = body.model
    assert isinstance(model, ElasticModel)
    groups = mesh_interfaces(
        model.mesh, model.displacements, specs(0.0, 0.5, KINDS[0], 0.03), model.facet_tags
    )
    rng = np.random.default_rng(1)
    u = rng.normal(size=body.nodes.shape)
    u = body.forces.comm.bcast(u)
    owned = u[body.forces.nodes.owned].ravel()
    _, _, frames = body.reference_state()
    pose = body.motion_at(frames, 0 * u)
    motion = []
    for group in groups:
        assert group.rows is not None
        motion.append(body.forces.comm.allreduce(group.rows.T @ owned[group.dofs]))
    nodal = np.einsum("nim,ni->m", body.constraints.node_matrix(pose), u)
    frame = body.constraints.frame_matrix(pose) @ np.concatenate(motion)
    assert np.abs(nodal).max() > 0.01
    assert np.abs(nodal + frame).max() < 1e-12


def test_derivatives_of_the_constraints() -> None:
    body, h = bar(), 1e-6
    frames, u = some_motion(body, 2)
    constraints, rng = body.constraints, np.random.default_rng(3)
    mu = rng.normal(size=12)
    du, ds = rng.normal(size=u.shape), rng.normal(size=12)

    def moved(sign: float, nodal: bool = True) -> Any:
        q, out = body.initial_coordinates(), np.zeros(body.num_coordinates)
        body.frames_of(q)[:] = frames
        body.increment(q, sign * h * ds, out)
        return body.motion_at(body.frames_of(out), u + nodal * sign * h * du)

    pose, pair = moved(0.0), (moved(1.0), moved(-1.0))
    difference = (constraints.gaps(pair[0]) - constraints.gaps(pair[1])) / (2 * h)
    G, g = constraints.node_matrix(pose), constraints.frame_matrix(pose)
    assert np.allclose(np.einsum("nim,ni->m", G, du) + g @ ds, difference, atol=1e-8)
    assert np.allclose(constraints.forces(pose, mu), G @ mu, atol=1e-14)
    nodal, at_frames = constraints.second_derivatives(pose, mu)
    plus, minus = (constraints.forces(p, mu) for p in pair)
    assert np.allclose(nodal @ ds, (plus - minus) / (2 * h), atol=1e-8)
    plus, minus = (mu @ constraints.frame_matrix(moved(s, nodal=False)) for s in (1.0, -1.0))
    assert np.allclose(at_frames @ ds, (plus - minus) / (2 * h), atol=1e-8)
    plus, minus = (mu @ constraints.frame_matrix(p) for p in pair)
    both = at_frames @ ds + np.einsum("nis,ni->s", nodal, du)
    assert np.allclose(both, (plus - minus) / (2 * h), atol=1e-8)


def test_multipliers_are_a_wrench_without_resultant() -> None:
    """Forces at the nodes and at the frame are in balance if the gaps are closed."""
    body = bar()
    quaternion = exp_quaternion(np.array([0.7, -1.9, 1.2]))
    q, _ = body.placed(np.concatenate([[0.3, -2.0, 1.0], quaternion]), np.zeros(6))
    pose = body.motion_at(body.frames_of(q), body.nodal_of(q)[0])
    assert np.abs(body.constraints.gaps(pose)).max() < 1e-14
    mu = np.random.default_rng(4).normal(size=12)
    nodal = body.constraints.forces(pose, mu)
    frame = (mu @ body.constraints.frame_matrix(pose)).reshape(2, 6)
    moment = np.cross(pose.positions, nodal).sum(axis=0)
    for k in range(2):
        moment += np.cross(pose.frames[k, :3], frame[k, :3]) + pose.rotations[k] @ frame[k, 3:]
    assert np.abs(nodal.sum(axis=0) + frame[:, :3].sum(axis=0)).max() < 1e-13
    assert np.abs(moment).max() < 1e-13


def test_second_time_derivatives_of_the_constraints() -> None:
    body, h = bar(), 1e-4
    frames, u = some_motion(body, 5)
    rng = np.random.default_rng(6)
    v, a = rng.normal(size=(2, 12))
    w, b = rng.normal(size=(2, *u.shape))
    values = []
    for t in (-h, 0.0, h):
        q, out = body.initial_coordinates(), np.zeros(body.num_coordinates)
        body.frames_of(q)[:] = frames
        body.increment(q, t * v + t * t / 2 * a, out)
        moved = u + t * w + t * t / 2 * b
        values.append(body.constraints.gaps(body.motion_at(body.frames_of(out), moved)))
    difference = (values[0] - 2 * values[1] + values[2]) / h**2
    rates = body.constraints.rates(body.motion_at(frames, u), v, a, w, b)
    assert np.allclose(rates, difference, atol=1e-5 * np.abs(rates).max())


@pytest.mark.parametrize("kinds", KINDS)
def test_accelerations_settle_without_residual(kinds: Any) -> None:
    """At an instant, frames and nodes are in balance and the gaps stay closed."""
    body = bar(kinds)
    pose = np.concatenate([[0.1, 0.2, -0.3], exp_quaternion(np.array([0.4, 1.1, -0.8]))])
    q, v = body.placed(pose, np.array([1.0, -2.0, 0.5, 3.0, -1.0, 2.0]))
    wrenches = np.zeros((2, 6))
    wrenches[1] = [30.0, -20.0, 10.0, 1.0, -2.0, 3.0]
    wrenches[0] = [3.0, 5.0, -10.0, -1.0, 2.0, 2.0]
    rows, scale = np.zeros((2, 12))
    gravity = np.array([0.3, -9.0, 1.0])
    state = BodyState(0.0, q, v, np.zeros(12), gravity, wrenches)
    body.residual(state, rows, scale)
    mass = body.tangent(state)[2]
    assert np.allclose(mass, mass.T, atol=1e-12 * np.abs(mass).max())
    a = -np.linalg.solve(mass, rows)
    state = state._replace(a=a)
    body.settle(state, q)
    body.residual(state, rows, scale)
    assert np.abs(rows).max() < 1e-9 * scale.max()
    rates = body.forces.apply_mass(body.nodal_of(q)[2]).sum(axis=0)
    weight = body.typical_mass * gravity + wrenches[:, :3].sum(axis=0)
    assert np.allclose(rates, weight, rtol=1e-9)
    interface_motion = body.motion_at(body.frames_of(q), body.nodal_of(q)[0])
    gaps = body.constraints.rates(interface_motion, v, a, body.nodal_of(q)[1], body.nodal_of(q)[2])
    assert np.abs(gaps).max() < 1e-8 * np.abs(a).max()


@pytest.mark.parametrize("kinds", KINDS)
def test_statics_equal_the_reduced_body(kinds: Any) -> None:
    """The static modes of `reduce` are exact for small static loads."""
    body = bar(kinds, shift=0.02)
    model = body.model
    reduced = mbd.reduce(model, interfaces=specs(0.0, 0.5, kinds, 0.02)).body
    load = np.array([1.0, 0.5, -0.7])
    places = []
    for part in (body, mbd.FlexibleBody("bar", reduced)):
        ground = mbd.Ground({"origin": mbd.Frame((0, 0.02, 0))})
        clamp = mbd.fixed("clamp", ground.frame("origin"), part.frame("left"))
        tip = mbd.force("tip", part.frame("right"), load)
        system = mbd.System([ground, part], [clamp], loads=[tip])
        state = mbd.equilibrium(system)
        count = len(part.frame_names)
        position, rotation = np.zeros((count, 3)), np.zeros((count, 3, 3))
        part.poses(state.q, position, rotation)
        k = part.frame_names.index("right")
        small_rotation = rotation[k][[2, 0, 1], [1, 2, 0]]
        places.append(np.concatenate([position[k] - [0.5, 0.02, 0], small_rotation]))
    assert np.abs(places[0]).max() > 1e-4
    assert np.allclose(places[0], places[1], atol=2e-3 * np.abs(places[1]).max())


@pytest.mark.parametrize("kinds", KINDS)
def test_rotation_causes_no_stress(kinds: Any) -> None:
    """Case W12: a mechanism turns the whole body by any angle in an equilibrium without stress."""
    for angle in (0.9, 2.2, 3.1):
        vector = angle * np.array([2.0, -1.0, 2.0]) / 3
        R = rotation_matrix(exp_quaternion(vector))
        body = bar(kinds)
        rotated = MeshBody(
            "bar", body.model, specs(0.0, 0.5, kinds, 0.03), rotation=exp_quaternion(vector)
        )
        place = R @ [0, 0.03, 0]
        ground = mbd.Ground({"origin": mbd.Frame(place, R)})
        clamp = mbd.fixed("clamp", ground.frame("origin"), rotated.frame("left"))
        state = mbd.equilibrium(mbd.System([ground, rotated], [clamp]))
        rotated.forces.set_state(rotated.nodal_of(state.q)[0], 0 * rotated.nodes)
        assert np.abs(rotated.forces.elastic()).max() < 1e-8  # stiffness 1e5 N/m
        assert np.abs(state.lam).max() < 1e-8


@pytest.mark.slow
def test_slider_crank_with_averaged_interfaces() -> None:
    """The motion of the slider-crank hardly depends on the kind of its interfaces."""
    runs = []
    for kinds in (("averaged", "averaged"), ("rigid", "rigid")):
        mesh, tags = box((0, -0.004, -0.004), (0.3, 0.004, 0.004), (8, 1, 1), "tetrahedron")
        model = ElasticModel(mesh, STEEL, facet_tags=tags)
        rod = MeshBody("rod", model, specs(0.0, 0.3, kinds), position=(0.15, 0, 0))
        run = mbd.simulate(slider_crank(rod), t_end=0.02, dt=2e-4, tolerance=1e-11)
        assert run.iterations < 9 * (len(run) - 1)
        x = rod.motion(run)
        gaps = [
            rod.constraints.gaps(rod.motion_at(rod.frames_of(q[run.system.q_slices[2]]), u))
            for q, u in zip(run.q, x.displacement, strict=True)
        ]
        assert np.abs(gaps).max(initial=0.0) < 1e-12
        runs.append(x.position([(0.15, 0, 0)])[:, 0])
    assert np.abs(runs[0] - runs[1]).max() < 3e-5
    # equal on any number of ranks
    assert np.isclose(runs[0][-1, 1], PLACE, rtol=1e-9)


def test_interrupted_run_continues_identically() -> None:
    mesh, tags = box((0, -0.01, -0.01), (1, 0.01, 0.01), (4, 1, 1))
    model = ElasticModel(mesh, RUBBER, facet_tags=tags)
    body = MeshBody("bar", model, specs(0.0, 1.0, ("averaged", "averaged")))
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
    adaptive = mbd.simulate(system, t_end=0.08, dt=mbd.Adaptive(1e-5, first=1e-3))
    tips = [body.motion(r).position([(1, 0, 0)])[-1, 0] for r in (whole, adaptive)]
    assert np.abs(tips[0] - tips[1]).max() < 1e-4
    assert MPI.COMM_WORLD.allreduce(tips[0][1], op=MPI.MAX) == tips[0][1]
