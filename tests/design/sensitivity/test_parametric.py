"""Shape velocities from numbers of CAD geometries: closed forms, and the changed geometry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import gmsh
import numpy as np
import pytest
import ufl
from dolfinx import fem
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.compat import geometry_dofmap
from dolfinx_mbd.fem.meshing import read_mesh, write_mesh
from dolfinx_mbd.geometry import surface_motion
from dolfinx_mbd.geometry.gmsh_model import gmsh_session
from dolfinx_mbd.parallel import on_rank_zero

LENGTH, RADIUS, DEPTH, SIDE = 0.1, 0.02, 0.01, 0.05
CENTRE = np.array([0.06, 0.05, 0.0])


def meshed(add: Callable[[Any], object], size: float = 0.02, order: int = 2) -> Any:
    """Return the builder of a geometry with the groups "body" and "bottom" (at z = 0)."""

    def build(model: Any) -> None:
        add(model.occ)
        model.occ.synchronize()
        volumes = [tag for _, tag in model.getEntities(3)]
        model.addPhysicalGroup(3, volumes, name="body")
        below = [tag for _, tag in model.getEntities(2) if model.getBoundingBox(2, tag)[5] < 1e-6]
        model.addPhysicalGroup(2, below, name="bottom")
        gmsh.option.setNumber("Mesh.MeshSizeMax", size)
        model.mesh.generate(3)
        model.mesh.setOrder(order)

    return build


def box(length: float) -> Any:
    """Return the geometry of a box with a length."""
    return meshed(lambda occ: occ.addBox(0, 0, 0, length, SIDE, DEPTH))


def cylinder(radius: float) -> Any:
    """Return the geometry of a cylinder with a radius."""
    return meshed(lambda occ: occ.addCylinder(0, 0, 0, 0, 0, LENGTH, radius))


def longer_cylinder(length: float) -> Any:
    """Return the geometry of a cylinder with a length."""
    return meshed(lambda occ: occ.addCylinder(0, 0, 0, 0, 0, length, RADIUS))


def sphere(radius: float) -> Any:
    """Return the geometry of a sphere with a radius."""
    return meshed(lambda occ: occ.addSphere(0, 0, 0, radius))


def plate(radius: float) -> Any:
    """Return the geometry of a plate whose hole has a radius."""

    def add(occ: Any) -> None:
        block = occ.addBox(0, 0, 0, 2 * LENGTH, LENGTH, DEPTH)
        hole = occ.addCylinder(*CENTRE[:2], -1, 0, 0, 2, radius)
        occ.cut([(3, block)], [(3, hole)])

    return meshed(add)


def derivative(comm: MPI.Intracomm, build: Any, value: float) -> tuple[Any, Any, np.ndarray]:
    """Return a free body, its derivative, and that of H = ∫ρ x xᵀ of the undeformed body."""
    mesh = mbd.build_mesh(build(value), comm)
    velocity = mbd.design.parametric_velocity(mesh, build, value)
    reduction = mbd.reduce(mesh, mbd.STEEL, interfaces=[], num_modes=2)
    table = mbd.sensitivities(reduction, [mbd.Parameter("p", "shape", velocity=velocity)])
    return reduction.body, table["p"], table["p"].second_moments[0, 0]


def test_box(comm: MPI.Intracomm) -> None:
    """Mass, first and second moments of a box are exact, and so are their derivatives."""
    rho = mbd.STEEL.density
    _, change, H = derivative(comm, box, LENGTH)
    assert change.total_mass == pytest.approx(rho * SIDE * DEPTH, rel=1e-8)
    S = rho * SIDE * DEPTH * np.array([LENGTH, SIDE / 2, DEPTH / 2])
    assert change.first_moments[0] == pytest.approx(S, rel=1e-8)
    assert H[0, 0] == pytest.approx(rho * SIDE * DEPTH * LENGTH**2, rel=1e-8)
    assert H[1, 1] == pytest.approx(rho * SIDE**3 / 3 * DEPTH, rel=1e-8)
    assert H[0, 1] == pytest.approx(rho * LENGTH * SIDE**2 / 2 * DEPTH, rel=1e-8)


def test_cylinder(comm: MPI.Intracomm) -> None:
    """With the nodes on a circle, m ~ r² h, H_xx ~ r⁴ h and H_zz ~ r² h³ hold on the mesh."""
    body, change, H = derivative(comm, cylinder, RADIUS)
    base = body.second_moments[0, 0]
    assert change.total_mass == pytest.approx(2 * body.total_mass / RADIUS, rel=1e-8)
    assert np.diag(H) == pytest.approx(np.array([4, 4, 2]) * np.diag(base) / RADIUS, rel=1e-8)
    slope = 2 * np.pi * RADIUS * LENGTH * mbd.STEEL.density
    mesh_error = abs(body.total_mass / (slope * RADIUS / 2) - 1)
    assert change.total_mass == pytest.approx(slope, rel=1.1 * mesh_error) and mesh_error < 1e-3
    body, change, H = derivative(comm, longer_cylinder, LENGTH)
    base = body.second_moments[0, 0]
    assert change.total_mass == pytest.approx(body.total_mass / LENGTH, rel=1e-8)
    assert np.diag(H) == pytest.approx(np.array([1, 1, 3]) * np.diag(base) / LENGTH, rel=1e-8)


def test_hole(comm: MPI.Intracomm) -> None:
    """The missing material scales as a cylinder; the edges of the plate do not move."""
    rho = mbd.STEEL.density
    body, change, H = derivative(comm, plate, RADIUS)
    missing = rho * 2 * LENGTH * LENGTH * DEPTH - body.total_mass
    assert change.total_mass == pytest.approx(-2 * missing / RADIUS, rel=1e-8)
    assert missing == pytest.approx(rho * np.pi * RADIUS**2 * DEPTH, rel=1e-3)
    middle = np.array([LENGTH, LENGTH / 2, DEPTH / 2])
    S = body.first_moments[0] - rho * 2 * LENGTH**2 * DEPTH * middle
    assert change.first_moments[0] == pytest.approx(2 * S / RADIUS, rel=1e-8)
    assert change.first_moments[0][:2] == pytest.approx(CENTRE[:2] * change.total_mass, rel=1e-4)


def test_sphere(comm: MPI.Intracomm) -> None:
    """The surface has a seam, but no boundary; m′ = 3 m/r up to the error of curved cells."""
    body, change, _ = derivative(comm, sphere, RADIUS)
    assert change.total_mass == pytest.approx(3 * body.total_mass / RADIUS, rel=1e-4)


def test_plane(comm: MPI.Intracomm) -> None:
    """The boundary of a rectangle in the plane z = 0 consists of its curves."""

    def rectangle(length: float) -> Any:
        def build(model: Any) -> None:
            face = model.occ.addRectangle(0, 0, 0, length, SIDE)
            model.occ.synchronize()
            model.addPhysicalGroup(2, [face], name="body")
            gmsh.option.setNumber("Mesh.MeshSizeMax", 0.02)
            model.mesh.generate(2)

        return build

    mesh = mbd.build_mesh(rectangle(LENGTH), comm)
    velocity = mbd.design.parametric_velocity(mesh, rectangle, LENGTH)
    x = ufl.SpatialCoordinate(mesh.mesh)
    difference = velocity - ufl.as_vector([x[0] / LENGTH, 0.0])
    square = comm.allreduce(fem.assemble_scalar(fem.form(difference**2 * ufl.dx)))
    assert square < 1e-24


def nodal_values(mesh: mbd.fem.TaggedMesh, velocity: fem.Function) -> np.ndarray:
    """Return the velocity of each node of a mesh in space."""
    nodal = np.zeros_like(mesh.mesh.geometry.x)
    dofs = velocity.function_space.dofmap.list
    nodal[geometry_dofmap(mesh.mesh)] = velocity.x.array.reshape(-1, 3)[dofs]
    return nodal


def distance(comm: MPI.Intracomm, mesh: Any, velocity: Any, build: Any, value: float, d: float):
    """Return the largest distance of moved surface nodes from the geometry for value + d.

    The nodes are moved by d times the velocity. Rank 0 finds the nodes of each entity in the
    geometry for `value`, and their closest points on the entity in the geometry for value + d.
    """
    plain, nodal = mesh.mesh, nodal_values(mesh, velocity)
    rows = plain.geometry.input_global_indices
    parts = comm.gather((rows, plain.geometry.x + d * nodal), root=0)

    def work() -> float:
        moved = np.zeros((max(int(r.max()) for r, _ in parts) + 1, 3))
        for indices, x in parts:
            moved[indices] = x
        with gmsh_session() as session:
            build(value)(session.model)
            entities = surface_motion._entities(session.model)
        with gmsh_session() as session:
            build(value + d)(session.model)
            sizes = [0.0]
            for e in entities:
                if len(e.rows):
                    x = moved[e.rows]
                    place = session.model.getClosestPoint if e.dim else session.model.getValue
                    closest = place(e.dim, e.tag, x.ravel() if e.dim else [])
                    closest = np.reshape(closest[0] if e.dim else closest, (-1, 3))
                    sizes.append(float(np.abs(closest - x).max()))
        return max(sizes)

    return on_rank_zero(comm, work)


DIMENSIONS = [f.name for f in fields(mbd.ConnectingRod)[:15]]  # without options of the mesh


@pytest.mark.slow
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_moved_boundary_of_the_rod(comm: MPI.Intracomm, dimension: str) -> None:
    """The nodes leave the changed geometry with second order if they move, otherwise with first."""
    value = getattr(mbd.ConnectingRod(), dimension)

    def build(number: float) -> Any:
        return mbd.ConnectingRod(**{dimension: number}, size=0.02, order=1)

    mesh = mbd.build_mesh(build(value), comm)
    velocity = mbd.design.parametric_velocity(mesh, build, value)
    steps = 8e-3 * value, 4e-3 * value
    far, near = (distance(comm, mesh, velocity, build, value, d) for d in steps)
    assert near < 1e-14 or 3.7 < far / near < 4.3
    assert comm.allreduce(np.abs(velocity.x.array).max(initial=0.0), MPI.MAX) < 1.2
    velocity.x.array[:] = 0.0
    far, near = (distance(comm, mesh, velocity, build, value, d) for d in steps)
    assert 1.9 < far / near < 2.1


@pytest.mark.slow
def test_sensitivities_of_the_rod(comm: MPI.Intracomm) -> None:
    """The body of first order agrees with the reduction of the moved mesh to second order."""
    mesh = mbd.build_mesh(rod(0.137), comm)
    velocity = mbd.design.parametric_velocity(mesh, rod, 0.137)
    ends = {"interfaces": ["big_end", "small_end"], "num_modes": 2}
    base = mbd.reduce(mesh, mbd.STEEL, **ends)
    table = mbd.sensitivities(base, [mbd.Parameter("length", "shape", velocity=velocity)])
    assert table["length"].interface_points[:, 0] == pytest.approx([0.0, 1.0], abs=1e-9)
    errors, points = [], mesh.mesh.geometry.x.copy()
    nodal = nodal_values(mesh, velocity)
    for step in (2e-4, 1e-4):
        mesh.mesh.geometry.x[:] = points + step * nodal
        exact = mbd.reduce(mesh, mbd.STEEL, **ends).body.frequencies
        errors.append(np.abs(table.at({"length": step}).frequencies / exact - 1).max())
    assert 3.5 < errors[0] / errors[1] < 4.5


def rod(length: float) -> Any:
    """Return a connecting rod with a length."""
    return mbd.ConnectingRod(length=length, size=0.02, order=1)


def test_errors(comm: MPI.Intracomm) -> None:
    mesh = mbd.build_mesh(box(LENGTH), comm)
    with pytest.raises(InputError, match=r"mesh is not that of build\(0.11\)"):
        mbd.design.parametric_velocity(mesh, box, 0.11)
    with pytest.raises(InputError, match="does not depend"):
        mbd.design.parametric_velocity(mesh, lambda p: box(LENGTH), LENGTH)
    with pytest.raises(InputError, match="step"):
        mbd.design.parametric_velocity(mesh, lambda p: box(LENGTH + p), 0.0)
    with pytest.raises(InputError, match="smoothly"):
        mbd.design.parametric_velocity(mesh, lambda p: box(LENGTH + abs(p)), 0.0, step=1e-4)
    mesh.mesh.geometry.x[:] *= 1.01
    with pytest.raises(InputError, match="away from its position"):
        mbd.design.parametric_velocity(mesh, box, LENGTH)


def test_change_of_topology(comm: MPI.Intracomm) -> None:
    """A hole that reaches the edge of the plate changes the topology, which raises an error.

    Steps of 1 µm leave a part of the gap of 5 µm at the edge, and the velocity of the hole is 1.
    """

    def drilled(place: float) -> Any:
        def add(occ: Any) -> None:
            block = occ.addBox(0, 0, 0, LENGTH, SIDE, DEPTH)
            hole = occ.addCylinder(place, SIDE / 2, -1, 0, 0, 2, DEPTH)
            occ.cut([(3, block)], [(3, hole)])

        return meshed(add)

    place = 1.0005 * DEPTH
    mesh = mbd.build_mesh(drilled(place), comm)
    with pytest.raises(InputError, match="topology of the geometry changes"):
        mbd.design.parametric_velocity(mesh, drilled, place)
    velocity = mbd.design.parametric_velocity(mesh, drilled, place, step=1e-6)
    x = mesh.mesh.geometry.x
    hole = np.isclose(np.hypot(x[:, 0] - place, x[:, 1] - SIDE / 2), DEPTH, rtol=1e-9)
    assert comm.allreduce(hole.sum()) > 0
    assert np.abs(nodal_values(mesh, velocity)[hole] - [1.0, 0.0, 0.0]).max(initial=0.0) < 1e-9


def test_discrete_geometry(comm: MPI.Intracomm, tmp_path: Any) -> None:
    """A mesh file contains no CAD geometry, which raises an error."""
    path = comm.bcast(str(tmp_path / "box.msh"), root=0)
    if comm.rank == 0:
        write_mesh(box(LENGTH), path)
    comm.barrier()

    def read(value: float) -> Any:
        return lambda model: gmsh.merge(path)

    mesh = read_mesh(path, comm)
    with pytest.raises(InputError, match="no CAD geometry"):
        mbd.design.parametric_velocity(mesh, read, 1.0)
