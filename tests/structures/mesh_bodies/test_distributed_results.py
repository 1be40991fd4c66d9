"""Results of mesh bodies on several ranks: each rank stores the values of its own nodes."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import FileWarning
from dolfinx_mbd.fem import ElasticModel
from dolfinx_mbd.fem.linalg.cholmod import library
from dolfinx_mbd.results.distributed_rows import DistributedRows
from dolfinx_mbd.results.recorded_run import RecordedRun
from dolfinx_mbd.structures.mesh_bodies import MeshBody
from tests.structures.mesh_bodies.models import RUBBER, box, ends

COMM = MPI.COMM_WORLD


def swinging(cells: tuple[int, int, int], **options: Any) -> tuple[mbd.System, list[MeshBody]]:
    """Return a double pendulum of two rubber bars, with a rigid body and a spring."""
    bodies = []
    for name, shift in (("upper", 0.0), ("lower", 0.5)):
        mesh, tags = box((0, -0.05, -0.05), (0.5, 0.05, 0.05), cells)
        model = ElasticModel(mesh, RUBBER, facet_tags=tags)
        body = MeshBody(
            name, model, ends(0.0, 0.5), position=(shift, 0, 0), viscosity=1e-3, **options
        )
        bodies.append(body)
    ground = mbd.Ground({"origin": mbd.Frame()})
    weight = mbd.RigidBody(
        "weight", 0.2, [1e-3] * 3, frames={"eye": mbd.Frame()}, position=(1, 0, 0)
    )
    upper, lower = bodies
    joints = [
        mbd.revolute("hinge", ground.frame("origin"), upper.frame("left")),
        mbd.revolute("elbow", upper.frame("right"), lower.frame("left")),
        mbd.fixed("bolt", lower.frame("right"), weight.frame("eye")),
    ]
    spring = mbd.SpringDamper(
        "spring", ground.frame("origin"), weight.frame("eye"), stiffness=5.0, damping=0.1
    )
    bodies_of_system = [ground, weight, upper, lower]
    return mbd.System(bodies_of_system, joints, loads=[spring], gravity=(0, -9.81, 0)), bodies


@pytest.mark.parametrize("cells", [(4, 1, 1), (2, 1, 1)])
def test_stored_nodes_and_gathered_values(cells: tuple[int, int, int]) -> None:
    """The states of all steps, of which every rank has a part; a rank may have no cell."""
    system, bodies = swinging(cells)
    recorded = RecordedRun(mbd.Simulator(system, dt=2e-3, t_end=0.012), 1)
    states = [recorded.run.state, *(recorded.advance() for _ in range(6))]
    exact = np.array([state.q for state in states])
    run = recorded.solution()
    assert np.array_equal(run.final_state.q, exact[-1])
    assert run.q.shape == exact.shape and len(run.q) == 7
    assert np.array_equal(np.asarray(run.q), exact)
    assert np.array_equal(run.q[2], exact[2]) and np.array_equal(run.q[-1], exact[-1])
    assert np.array_equal(np.asarray(run.q[::3]), exact[::3])
    assert np.array_equal(run[1:3].body("weight").position, run.body("weight").position[1:3])
    assert isinstance(run.q, DistributedRows) == (COMM.size > 1)
    for body in bodies:
        part = exact[:, system.q_slices[system.body_index(body.name)]]
        motion = body.motion(run)
        kinds = motion.displacement, motion.velocity, motion.acceleration
        for kind, values in enumerate(kinds):
            expected = body.nodal_history(part, kind)
            assert np.array_equal(values[3], expected[3])
            assert np.array_equal(np.asarray(values), expected)
            assert values.shape == expected.shape
            own_nodes = body.forces.nodes.stored
            assert np.array_equal(motion.stored(values, 4), expected[4][own_nodes])
        total = COMM.allreduce(len(body.forces.nodes.stored))
        assert total == len(body.nodes)
    if COMM.size > 1:
        nodal = sum(9 * len(body.forces.nodes.stored) for body in bodies)
        poses = sum(7 * body.num_frames for body in bodies) + 7  # of the frames and the weight
        assert run.q._stored.shape[1] == nodal + poses


def test_quantities_without_other_ranks() -> None:
    """Histories of joints, loads and other bodies do not need the nodes of other ranks."""
    system, _ = swinging((3, 1, 1))
    run = mbd.simulate(system, t_end=0.01, dt=2e-3)
    whole = mbd.results.Solution(system, [run.final_state])
    if COMM.rank == COMM.size - 1:  # a collective call would not return
        for name in ("hinge", "elbow", "bolt"):
            for key in ("force", "moment"):
                values = getattr(run.joint(name), key)
                assert np.allclose(values[-1], getattr(whole.joint(name), key)[0], rtol=1e-12)
        assert np.array_equal(run.element("spring").force[-1], whole.element("spring").force[0])
        assert run.constraint_violation().max() < 1e-8
        assert np.isfinite(run.body("weight").velocity).all()
    energies = run.energies()
    assert np.isclose(energies.elastic[-1], whole.energies().elastic[0], rtol=1e-12)
    assert np.allclose(run.momenta()[-1], whole.momenta()[0], rtol=1e-12)
    assert np.isfinite(run.projected().q[-1]).all()


def shared(path: Path) -> Path:
    """Return the folder of rank 0 on all ranks."""
    return Path(COMM.bcast(str(path), root=0))


ITERATIVE = {"ksp_type": "cg", "ksp_rtol": 1e-10, "pc_type": "bjacobi"}
REDUNDANT = {"pc_type": "redundant"}  # every rank factorizes the whole matrix


@pytest.mark.parametrize(("stop", "solver"), [(3, None), (7, None), (4, ITERATIVE), (5, REDUNDANT)])
def test_folder_of_several_ranks(tmp_path: Path, stop: int, solver: Any) -> None:
    """One file has the rows of all ranks; an interrupted run continues identically.

    MUMPS, which is used if PETSc has no CHOLMOD, adds in another order in every run.
    """
    system, (body, _) = swinging((3, 1, 1), petsc_options=solver)
    whole = np.asarray(mbd.simulate(system, t_end=0.02, dt=2e-3).q)
    is_mumps = COMM.size > 1 and solver is None and library() is None
    tolerance = 1e-9 * np.abs(whole).max() * is_mumps
    folder = shared(tmp_path) / "run"

    recorded = RecordedRun(mbd.Simulator(system, dt=2e-3, t_end=0.02), 1, folder=folder)
    recorded.write()
    for k in range(stop + 2):
        recorded.advance()
        if k + 1 == stop:
            recorded.write()
    recorded.close()
    COMM.Barrier()
    with pytest.warns(FileWarning):
        part = mbd.results.Solution.load(folder, system)
    assert len(part) == stop + 1
    assert np.allclose(part.q, whole[: stop + 1], rtol=0, atol=tolerance)
    run = mbd.resume(folder, system)
    assert np.array_equal(run.q[: stop + 1], part.q)
    assert np.allclose(run.q, whole, rtol=0, atol=tolerance)
    assert np.array_equal(run.final_state.q, run.q[-1])
    COMM.Barrier()
    assert sorted(path.name for path in folder.iterdir()) == ["checkpoint.npz", "rows.npy"]
    loaded = mbd.results.Solution.load(folder, system)
    points = [(0.25, 0.0, 0.0), (0.5, 0.05, 0.05)]
    expected = body.motion(run).position(points)
    assert np.array_equal(body.motion(loaded).position(points), expected)
    corner = int(np.abs(body.nodes - points[1]).max(axis=1).argmin())
    moved = body.nodes[corner] + body.motion(run).displacement[:, corner]
    assert np.allclose(expected[:, 1], moved, rtol=1e-12)


@cache
def whole_run() -> mbd.results.Solution:
    """Return the run of the compact mesh without a restart."""
    return mbd.simulate(swinging((4, 4, 4))[0], dt=4e-3, t_end=0.06)


@pytest.mark.skipif(library() is None, reason="CHOLMOD 5 with PETSc")
@pytest.mark.parametrize("stop", [1, 9])
def test_run_continues_identically_if_ranks_share_nodes_of_three(tmp_path: Path, stop: int) -> None:
    """The mesh is compact, and its matrix is factorized again after the restart."""
    system, _ = swinging((4, 4, 4))
    simulator = mbd.Simulator(system, dt=4e-3, t_end=0.06)
    folder = shared(tmp_path) / "run"
    recorded = RecordedRun(simulator, 1, folder=folder)
    recorded.write()
    for k in range(stop + 1):
        time.sleep(0.01 * ((COMM.rank + k) % 3))  # messages arrive in another order
        recorded.advance()
        if k + 1 == stop:
            recorded.write()
    recorded.close()
    COMM.Barrier()
    whole = whole_run()
    time.sleep(0.05 * COMM.rank)
    run = mbd.resume(folder, swinging((4, 4, 4))[0])
    assert np.array_equal(np.asarray(run.q), np.asarray(whole.q))
    assert np.array_equal(run.lam, whole.lam)


def test_file_of_a_run(tmp_path: Path) -> None:
    system, (body, _) = swinging((3, 1, 1))
    run = mbd.simulate(system, t_end=0.01, dt=2e-3, stride=2)
    path = run.save(shared(tmp_path) / f"run {COMM.rank}.npz")
    loaded = mbd.results.Solution.load(path, system)
    assert isinstance(loaded.q, DistributedRows) == (COMM.size > 1)
    assert np.array_equal(np.asarray(loaded.q), np.asarray(run.q))
    assert np.array_equal(body.motion(loaded).displacement[-1], body.motion(run).displacement[-1])


def test_outputs_of_a_run() -> None:
    """Functions of the nodes are saved without the states."""
    system, (body, _) = swinging((3, 1, 1))
    tip: Any = {"tip": lambda run: body.motion(run).position([(0.5, 0.0, 0.0)])[:, 0, 1]}
    run = mbd.simulate(system, t_end=0.01, dt=2e-3, outputs=tip)
    expected = tip["tip"](mbd.simulate(system, t_end=0.01, dt=2e-3))
    assert np.allclose(run.histories()["tip"], expected, rtol=1e-12)
