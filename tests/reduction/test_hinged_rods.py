"""A planar mechanism of hinges and flexible links, from meshes of bars with two bores."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from dolfinx import fem
from mpi4py import MPI

from dolfinx_mbd import STEEL, reduce
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.dynamics import System, consistent_state, redundancies
from dolfinx_mbd.fem.cylinders import fit_axis
from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
from dolfinx_mbd.fem.meshing import build_mesh
from dolfinx_mbd.mechanism import FlexibleBody, Frame, Ground, cylindrical, revolute, spherical

FRAME, CRANK, COUPLER, ROCKER = 0.12, 0.05, 0.11, 0.09
RADIUS, WIDTH, THICKNESS = 0.005, 0.02, 0.008


def bar(length: float, size: float = 0.01):  # type: ignore[no-untyped-def]
    """Return a bar along x with a bore at each end; its middle plane is z = 0."""

    def build(model: Any) -> None:
        import gmsh

        occ = model.occ
        low, long = -0.01, length + 0.02
        solid = occ.addBox(low, -WIDTH / 2, -THICKNESS / 2, long, WIDTH, THICKNESS)
        bores = [
            (3, occ.addCylinder(x, 0, -THICKNESS, 0, 0, 2 * THICKNESS, RADIUS))
            for x in (0.0, length)
        ]
        occ.cut([(3, solid)], bores)
        occ.synchronize()
        model.addPhysicalGroup(3, [tag for _, tag in model.getEntities(3)], name="bar")
        round_faces = [
            tag for _, tag in model.getEntities(2) if model.getType(2, tag) == "Cylinder"
        ]
        for name, x in (("start", 0.0), ("end", length)):
            tags = [t for t in round_faces if abs(occ.getCenterOfMass(2, t)[0] - x) < 1e-6]
            model.addPhysicalGroup(2, tags, name=name)
        gmsh.option.setNumber("Mesh.MeshSizeMax", size)
        gmsh.option.setNumber("Mesh.MeshSizeFromCurvature", 9)
        model.mesh.generate(3)

    return build


@cache
def link(length: float) -> ReducedBody:
    """Return a reduced bar with a bore at each end."""
    mesh = build_mesh(bar(length), MPI.COMM_SELF)
    return reduce(mesh, STEEL, interfaces=["start", "end"], num_modes=4, name="link").body


def four_bar(*, hinges: bool = True, gravity: tuple[float, float, float]) -> System:
    """Return a four-bar linkage of flexible links, with hinges only or with other joints."""
    pin, pivot = np.array([CRANK, 0.0]), np.array([FRAME, 0.0])
    chord = pivot - pin
    distance = np.linalg.norm(chord)
    projection = (distance**2 + COUPLER**2 - ROCKER**2) / (2 * distance)
    height = np.sqrt(COUPLER**2 - projection**2)
    top = pin + (projection * chord + height * np.array([-chord[1], chord[0]])) / distance

    def body(name: str, length: float, start: Any, end: Any) -> FlexibleBody:
        half = 0.5 * np.arctan2(end[1] - start[1], end[0] - start[0])
        rotation = (np.cos(half), 0, 0, np.sin(half))
        return FlexibleBody(name, link(length), (*start, 0), rotation, damping_ratio=0.02)

    crank = body("crank", CRANK, (0, 0), pin)
    coupler, rocker = body("coupler", COUPLER, pin, top), body("rocker", ROCKER, pivot, top)
    ground = Ground({"crank": Frame(), "rocker": Frame((FRAME, 0, 0))})
    second, third = (revolute, revolute) if hinges else (cylindrical, spherical)
    joints = [
        revolute("1", ground.frame("crank"), crank.frame("start")),
        second("2", crank.frame("end"), coupler.frame("start")),
        third("3", coupler.frame("end"), rocker.frame("end")),
        revolute("4", ground.frame("rocker"), rocker.frame("start")),
    ]
    return System([ground, crank, coupler, rocker], joints, gravity=gravity)


def test_bores_of_all_meshes_agree(comm: MPI.Intracomm) -> None:
    """Points and axes of the bores are those of the geometry, up to round-off, in any mesh."""
    for length, size in ((0.05, 0.01), (0.11, 0.01), (0.11, 0.006)):
        mesh = build_mesh(bar(length, size), comm)
        space = fem.functionspace(mesh.mesh, ("Lagrange", 1, (3,)))
        start, end = mesh_interfaces(mesh, space, ["start", "end"])
        assert np.allclose(start.point, 0.0, atol=1e-15)
        assert np.allclose(end.point, [length, 0, 0], atol=1e-15)
        assert np.allclose(start.axes, np.eye(3), atol=1e-15)
        assert np.allclose(end.axes, np.eye(3), atol=1e-15)
        assert len(set(comm.allgather(start.point.tobytes() + end.axes.tobytes()))) == 1


def corners(around: float = 2 * np.pi, taper: float = 0.0, seed: int = 0) -> np.ndarray:
    """Return random corners on a cylinder or a cone about z, including both rims."""
    rng = np.random.default_rng(seed)
    z = np.concatenate([np.zeros(20), np.ones(20), rng.uniform(0, 1, 60)])
    angle = rng.uniform(0, around, 100)
    radius = 0.4 * (1 + taper * z)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), z])


@pytest.mark.parametrize("seed", range(3))
def test_an_axis_in_any_direction(seed: int) -> None:
    rng = np.random.default_rng(10 + seed)
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    middle = rng.normal(size=3)
    points = (corners(seed=seed) - [0, 0, 0.5]) @ Q.T + middle
    start = Q[:, 2] + 0.02 * rng.normal(size=3)
    centroid = middle + 0.004 * rng.normal(size=3)
    fitted = fit_axis(points, centroid, start / np.linalg.norm(start))
    assert fitted is not None
    assert np.allclose(fitted[0], middle, atol=1e-14)
    assert np.allclose(fitted[1], Q[:, 2], atol=1e-14)


def test_surfaces_that_are_not_a_whole_cylinder() -> None:
    """A cone, a half cylinder, a noisy cylinder and two points do not determine an axis."""
    z, middle = np.array([0, 0, 1.0]), np.array([0, 0, 0.5])
    rng = np.random.default_rng(3)
    for points in (
        corners(taper=0.1),
        corners() * (1 + 1e-3 * rng.normal(size=(100, 1))),
        corners()[:2],
    ):
        assert fit_axis(points, middle, z) is None
    half = corners(around=np.pi)
    assert fit_axis(half, half.mean(axis=0), z) is None


@pytest.mark.parametrize("redundant", ["stop", "drop", "keep"])
def test_a_four_bar_of_flexible_links(redundant: Any) -> None:
    """The motion agrees with that of non-redundant joints, as no force acts normal to the plane."""
    settings = {"t_end": 0.02, "dt": 2e-4}
    gravity = (0.0, -9.81, 0.0)
    system = four_bar(gravity=gravity)
    assert redundancies(system) == []  # with the deformation, all constraints are independent
    run = simulate(system, **settings, redundant=redundant)
    plain = simulate(four_bar(hinges=False, gravity=gravity), **settings)
    ranges = np.ptp(plain.angles, axis=0)
    assert ranges.max() > 0.03
    assert np.allclose(run.angles, plain.angles, atol=1e-4 * ranges.max())
    for name in "1234":
        force, expected = run.joint(name).force[:, :2], plain.joint(name).force[:, :2]
        assert np.allclose(force, expected, atol=1e-2 * np.abs(expected).max())
    assert run.constraint_violation().max() < 1e-9


def test_flexible_links_make_redundant_joints_independent() -> None:
    """With gravity normal to the plane, the start is a static equilibrium and stays at rest.

    The joints at the ground carry the weight together.
    """
    system = four_bar(gravity=(0.0, 0.0, -9.81))
    state = consistent_state(system)
    sag = np.concatenate([state.q[part][7:] for part in system.q_slices[1:]])
    assert np.abs(sag).max() > 0
    weight = 9.81 * sum(body.typical_mass for body in system.bodies[1:])
    elastic = state.a[system.elastic]
    undeformed = consistent_state(system, elastic_start="undeformed")
    assert np.abs(elastic).max() < 1e-3 * np.abs(undeformed.a[system.elastic]).max()
    run = simulate(system, t_end=2e-3, dt=1e-5)
    forces = {name: run.joint(name).force[:, 2] for name in "14"}
    assert np.allclose(forces["1"] + forces["4"], weight, rtol=1e-3)
    for force in forces.values():
        assert np.ptp(force) < 1e-3 * weight
