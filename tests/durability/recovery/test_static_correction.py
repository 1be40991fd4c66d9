"""Static correction: the work of unit loads, statics, and a mechanism with few modes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx.mesh import CellType, create_rectangle, locate_entities_boundary, meshtags
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import forms
from dolfinx_mbd.durability.recovery.stress import Recovery
from dolfinx_mbd.fem.assembly import elastic_problem, rigid_motions
from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.mechanism.mechanisms import slider_crank
from dolfinx_mbd.reduction.static_correction import (
    plane_unit_work,
    residual_displacements,
    unit_load_histories,
)
from dolfinx_mbd.reduction.stiffening import UnitCases
from dolfinx_mbd.results import Solution
from dolfinx_mbd.results.histories import rotation_matrices
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box, rigid_mass
from tests.models.calls import flat
from tests.models.statics import interpolated, probe, solve_held, static_cases, with_correction

STEEL = mbd.STEEL
NEAR_THE_JOINT = np.array([[0.0061, 0.0031, 0.0023], [0.0113, 0.0171, 0.0101]])
FEW = 3


def unit_displacements(
    mesh: mbd.fem.TaggedMesh, bar: mbd.reduction.Reduction, names: list[str], kind: Any = "rigid"
) -> UnitCases:
    """Return the displacements of unit loads at interfaces."""
    problem = elastic_problem(mbd.ElasticModel(mesh, STEEL, space=bar.space))
    cases = static_cases(
        problem, mesh_interfaces(mesh, bar.space, mbd.InterfaceSpec.each(names, kind))
    )
    problem.destroy()
    return cases


def truncated(bar: mbd.reduction.Reduction, count: int) -> mbd.reduction.Reduction:
    """Return the reduction with some of its modes."""
    return replace(bar, body=bar.body.truncated(count), modes=bar.modes[:, :count])


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
def test_work_of_the_unit_loads(comm: MPI.Intracomm, kind: Any) -> None:
    """Ψᵀf from the body's data equals ΨᵀK u_f from the mesh; u_f contains no rigid motion.

    Ψ are the modes of the body, f the unit loads and u_f their displacements.
    """
    mesh = box(comm, cells=(6, 2, 2), cell=CellType.tetrahedron)
    names = ["left", "right"]
    bar = mbd.reduce(
        mesh, STEEL, interfaces=mbd.InterfaceSpec.each(names, kind), num_modes=4, stiffening=False
    )
    problem = elastic_problem(mbd.ElasticModel(mesh, STEEL, space=bar.space))
    cases = unit_displacements(mesh, bar, names, kind)
    work = gram(comm, bar.modes, multiply(problem.stiffness, cases.displacements))
    scale = np.abs(work).max(axis=0)
    assert np.allclose(plane_unit_work(bar.body, 3) / scale, work / scale, rtol=0, atol=1e-9)
    R = rigid_motions(problem.positions)
    momentum = gram(comm, problem.apply_mass(R), cases.displacements)
    size = np.sqrt(
        np.diag(gram(comm, cases.displacements, problem.apply_mass(cases.displacements)))
    )
    rigid = np.sqrt(np.diag(gram(comm, R, problem.apply_mass(R))))
    assert (np.abs(momentum) < 1e-9 * np.outer(rigid, size)).all()
    # the residual is orthogonal in K to the modes
    residual = residual_displacements(bar.body, bar.modes, cases)
    energy = gram(comm, bar.modes, multiply(problem.stiffness, residual))
    assert np.abs(energy / scale).max() < 1e-8
    problem.destroy()


def test_work_of_the_unit_loads_on_a_plate(comm: MPI.Intracomm) -> None:
    """A plane wrench has three components; spins about x and y are loads, too."""
    mesh = create_rectangle(comm, [[0, 0], [0.2, 0.03]], [8, 2])
    end = locate_entities_boundary(mesh, 1, lambda x: np.isclose(x[0], 0))
    options: dict[str, Any] = {
        "facet_tags": meshtags(mesh, 1, np.sort(end), np.ones(len(end), dtype=np.int32))
    }
    plane: dict[str, Any] = {"plane": "stress", "thickness": 0.01}
    plate = mbd.reduce(
        mbd.ElasticModel(mesh, STEEL, **options, **plane), interfaces={"end": 1}, num_modes=4
    )
    problem = elastic_problem(mbd.ElasticModel(mesh, STEEL, space=plate.space, **plane))
    interfaces = mesh_interfaces(mesh, plate.space, {"end": 1}, options["facet_tags"])
    cases = static_cases(problem, interfaces)
    work = gram(comm, plate.modes, multiply(problem.stiffness, cases.displacements))
    assert work.shape == (4, 9)  # 6 products of the spin and a plane wrench
    assert (np.abs(plane_unit_work(plate.body, 2) - work) <= 1e-9 * np.abs(work).max(axis=0)).all()
    motion = SimpleNamespace(
        time=np.zeros(1), eta=np.zeros((1, 4)), wrenches={"end": np.arange(6.0)[None]}
    )
    _, factors = Recovery(with_correction(plate, cases)).motion(motion)
    assert np.array_equal(factors[0, 4:], [0, 0, 0, 0, 0, 0, 0, 1, 5])  # Fx, Fy, Mz = 0, 1, 5
    problem.destroy()


def test_statics_are_exact(comm: MPI.Intracomm) -> None:
    """A rotating bar with a force at its joint agrees with a direct solution.

    Three modes without the correction have a large error near the joint.
    """
    mesh = box(comm, cells=(9, 3, 2), cell=CellType.tetrahedron)
    bar = mbd.reduce(mesh, STEEL, interfaces=["left"], num_modes=8, stiffening=False)
    few = truncated(bar, FEW)
    correction = with_correction(few, unit_displacements(mesh, bar, ["left"]))
    wrench = np.array([[[400.0, 300.0, -200.0, 3.0, 2.0, 4.0]]])
    omega = np.array([[60.0, -110.0, 240.0]])
    products = np.array(
        [omega[0, i] * omega[0, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0))]
    )
    f = plane_unit_work(few.body, 3) @ np.concatenate([products, wrench.ravel()])
    eta = np.linalg.solve(few.body.stiffness, f)
    motion = SimpleNamespace(
        time=np.zeros(1), eta=eta[None], omega=omega, wrenches={"left": wrench[0]}
    )

    # the rigid acceleration that the wrench and the spin cause
    x0 = bar.body.interface("left").point
    second, c, m, w = bar.body.second_moments[0, 0], bar.body.centre, bar.body.total_mass, omega[0]
    force, moment = wrench[0, 0, :3], wrench[0, 0, 3:]
    T = second @ (np.outer(w, w) - (w @ w) * np.eye(3)).T  # ∫ρ x⊗(ω×(ω×x))
    turning = np.array([T[1, 2] - T[2, 1], T[2, 0] - T[0, 2], T[0, 1] - T[1, 0]])
    rows = np.concatenate(
        [force - np.cross(w, np.cross(w, m * c)), moment + np.cross(x0, force) - turning]
    )
    acceleration = np.linalg.solve(rigid_mass(bar.body), rows)
    x = ufl.SpatialCoordinate(mesh.mesh)
    a, alpha, spin = (ufl.as_vector(list(v)) for v in (acceleration[:3], acceleration[3:], w))
    inertia = -STEEL.density * (a + ufl.cross(alpha, x) + ufl.cross(spin, ufl.cross(spin, x)))
    u = solve_held(bar.space, STEEL, {0.0: None}, inertia)
    direct = probe(interpolated(forms.stress(u, STEEL), mesh.mesh, 1, (3, 3)), NEAR_THE_JOINT)
    size = np.abs(direct).max()
    corrected = Recovery(correction, stress=STEEL).at("stress", motion, NEAR_THE_JOINT)[0]
    assert np.abs(corrected.reshape(-1, 9) - direct).max() < 1e-7 * size
    alone = Recovery(few, stress=STEEL).at("stress", motion, NEAR_THE_JOINT)[0]
    assert np.abs(alone.reshape(-1, 9) - direct).max() > 0.2 * size


def run_of(bar: mbd.reduction.Reduction) -> Solution:
    """Simulate a slider-crank with the bar as its rod at 200 rad/s for 1/20 of a turn."""
    system = slider_crank(
        bar.body,
        crank_radius=0.03,
        crank_mass=0.3,
        piston_mass=0.2,
        speed=200.0,
        damping_ratio=0.05,
    )
    return mbd.simulate(system, t_end=0.0015, dt=1e-4)


@pytest.fixture(scope="module")
def rod() -> tuple[mbd.fem.TaggedMesh, mbd.reduction.Reduction]:
    """Return a box as the rod of a slider-crank, and its reduction."""
    mesh = box(MPI.COMM_WORLD, cells=(9, 3, 2), cell=CellType.tetrahedron)
    names = {
        end: mbd.InterfaceSpec(group, axes=(0, 0, 1))
        for end, group in (("big_end", "left"), ("small_end", "right"))
    }
    return mesh, mbd.reduce(mesh, STEEL, interfaces=names, num_modes=5, stiffening=False)


def test_few_modes_in_a_mechanism(rod: tuple[mbd.fem.TaggedMesh, mbd.reduction.Reduction]) -> None:
    """With the correction, three of the eleven modes give the stress near the joints.

    Without it even all eleven modes have an error above 10 % there, because the inertia load of the
    rod needs many fixed-interface modes. The section force is the force of the joint minus the
    inertia force of the part between the joint and the section.
    """
    mesh, bar = rod
    few = truncated(bar, FEW)
    all_modes, run = run_of(bar), run_of(few)
    motion = run.body("rod")
    cases = unit_displacements(mesh, bar, ["left", "right"])
    correction, whole = (with_correction(r, cases) for r in (few, bar))
    recovery = Recovery(correction, stress=STEEL)

    points = np.array([[0.0061, 0.0031, 0.0023], [LENGTH - 0.0083, 0.0161, 0.0023]])
    exact = Recovery(whole, stress=STEEL).at("stress", all_modes.body("rod"), points)
    values = {
        "few": Recovery(few, stress=STEEL).at("stress", motion, points),
        "all": Recovery(bar, stress=STEEL).at("stress", all_modes.body("rod"), points),
        "few, corrected": recovery.at("stress", motion, points),
    }
    error = {k: np.abs(v - exact).max() / np.abs(exact).max() for k, v in values.items()}
    assert error["few"] > 0.5
    assert error["all"] > 0.1
    assert error["few, corrected"] < 0.005
    greatest = mbd.envelope(correction, motion)
    assert mbd.most_stressed(correction, motion, 1)[0].value == pytest.approx(
        mesh.mesh.comm.allreduce(greatest.values()[0].max(initial=0), MPI.MAX)
    )
    fields = mbd.recover(correction, motion, "von Mises", times=[0.0, 0.0015])
    assert len(fields) == 2
    assert (fields.values(1) <= greatest.values()[0] * (1 + 1e-12)).all()
    assert mbd.durability.skin_stress(correction).stress.shape[-1] == FEW

    x = 0.62 * LENGTH
    section = mbd.durability.section_forces(
        correction, motion, (x, HEIGHT / 2, WIDTH / 2), (1, 0, 0)
    )
    A = rotation_matrices(motion.rotation)
    a0 = np.einsum("tji,tj->ti", A, motion.acceleration)
    w, alpha = motion.omega, motion.alpha
    mass = STEEL.density * HEIGHT * WIDTH * (LENGTH - x)
    centre = np.array([(LENGTH + x) / 2, HEIGHT / 2, WIDTH / 2])
    inertia = mass * (a0 + np.cross(alpha, centre) + np.cross(w, np.cross(w, centre)))
    balance = motion.wrenches["small_end"][:, :3] - inertia
    assert np.abs(balance).max() > 300
    assert np.abs(section.force - balance).max() < 0.02 * np.abs(balance).max()


def test_bad_input(comm: MPI.Intracomm) -> None:
    mesh = box(comm, cells=(4, 1, 1), cell=CellType.tetrahedron)
    names = ["left", "right"]
    bar = mbd.reduce(mesh, STEEL, interfaces=names, num_modes=1, stiffening=False)
    cases = unit_displacements(mesh, bar, names)
    recovery = Recovery(with_correction(bar, cases))
    n, zero = bar.body.num_modes, np.zeros((2, 6))
    motion = SimpleNamespace(time=np.zeros(2), eta=np.zeros((2, n)), omega=np.zeros((2, 3)))
    assert recovery.motion(motion)[1].shape == (2, n + 18)  # 6 products of the spin, 2 wrenches
    motion.wrenches = {"left": zero[:1], "right": zero}
    with pytest.raises(mbd.errors.InputError, match=r"shape \(2, 6\)") as error:
        recovery.motion(motion)
    assert error.value.argument == "wrenches['left']"
    motion.wrenches = {"right": zero + 1, "left": zero}
    assert recovery.motion(motion)[1][0, -12:].tolist() == [0] * 6 + [1] * 6
    for wrong in ({"right": zero, "up": zero}, zero):
        motion.wrenches = wrong
        with pytest.raises(mbd.errors.InputError, match="one for each of 'left', 'right'"):
            recovery.motion(motion)
    loaded = mbd.reduce(
        mesh,
        STEEL,
        interfaces=names,
        num_modes=1,
        points={"left": (0.0, 0.01, 0.006), "top": (0.05, 0.01, 0.012)},  # one with a shared name
    )
    motion.wrenches = {"left": zero, "right": zero, "top": zero}
    with pytest.raises(mbd.errors.InputError, match="forces act at the named points 'top':"):
        unit_load_histories(loaded.body, motion)
    motion.wrenches = {"left": zero, "right": zero + np.nan}
    with pytest.raises(mbd.errors.InputError, match="finite"):
        recovery.motion(motion)
    motion.omega = np.zeros((1, 3))
    with pytest.raises(mbd.errors.InputError) as error:
        recovery.motion(motion)
    assert error.value.argument == "omega"
    with pytest.raises(mbd.errors.InputError, match="elastic coordinates of shape"):
        recovery.motion(np.zeros((2, n + 1)))
    fewer = UnitCases(cases.displacements[:, :12], cases.virials[:12], cases.work[:12])
    with pytest.raises(mbd.errors.InputError, match="another body or space"):
        with_correction(bar, fewer)
    held = mbd.reduce(mesh, STEEL, interfaces=names, num_modes=1, attached_to="left")
    with pytest.raises(ValueError, match="mean-axis reference; this body is attached to left"):
        with_correction(held, cases)
    options = mbd.ReductionOptions(static_correction=True)
    with pytest.raises(ValueError, match="needs interfaces"):
        mbd.reduce(mesh, STEEL, interfaces=[], num_modes=1, options=options)


@pytest.mark.parametrize("stiffening", [None, False])
def test_a_reduction_keeps_the_unit_cases(comm: MPI.Intracomm, stiffening: bool | None) -> None:
    """Apart from rigid motions, the solutions for unit loads equal those of a new factorization."""
    mesh = box(comm, cells=(5, 2, 1))
    names = ["left", "right"]
    options: dict[str, Any] = {"stiffening": stiffening, "static_correction": True}
    bar = flat(mbd.reduce, mesh, STEEL, interfaces=names, num_modes=2, **options)
    assert (bar.body.stiffening is None) == (stiffening is False)
    assert bar.residuals is not None
    expected = with_correction(bar, unit_displacements(mesh, bar, names)).residuals
    assert expected is not None
    scale = np.max(comm.allgather(np.abs(expected).max(axis=0, initial=0.0)), axis=0)
    assert (np.abs(bar.residuals - expected) <= 1e-7 * scale).all()
    assert len(mbd.recover(bar, np.ones(bar.body.num_modes))) == 1


def test_no_correction_without_a_request(comm: MPI.Intracomm) -> None:
    bar = mbd.reduce(box(comm), STEEL, interfaces=["left"], num_modes=1)
    assert bar.residuals is None
    assert Recovery(bar).displacements.shape[1] == bar.body.num_modes
    with pytest.raises(ValueError, match="mean-axis"):
        mbd.reduce(
            box(comm),
            STEEL,
            interfaces=["left"],
            attached_to="left",
            options=mbd.ReductionOptions(static_correction=True),
        )
