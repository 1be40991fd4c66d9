"""Small tagged meshes for the tests of the analysis.

V8 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import ufl
from dolfinx import fem, graph
from dolfinx.mesh import CellType, create_box, create_submesh, locate_entities, meshtags
from dolfinx.mesh import locate_entities_boundary as on_boundary
from mpi4py import MPI
from scipy.linalg import eigh

import dolfinx_mbd as mbd
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.fem.meshing import TaggedMesh

LENGTH, HEIGHT, WIDTH = 0.137, 0.020, 0.012
"""The bar of validation case V8."""

AXES, CENTRE = (0.03, 0.025, 0.02), (0.01, -0.02, 0.005)
"""Semi-axes and centre of the ellipsoid, m."""


def box(
    comm: MPI.Comm,
    size: Sequence[float] = (LENGTH, HEIGHT, WIDTH),
    cells: Sequence[int] = (6, 2, 1),
    cell: CellType = CellType.hexahedron,
    gap: bool = False,
    hinge: bool = False,
    empty_rank: int | None = None,
) -> TaggedMesh:
    """Return a box with the groups "left", "right" (ends in x), "top" and "all".

    With `gap`, the middle third in x is left out. With `hinge`, only two opposite quarters remain,
    which share one edge along z. With several ranks, the rank `empty_rank` gets no cell.
    """
    corners = [np.zeros(3), np.asarray(size, dtype=float)]
    mesh = create_box(comm, corners, list(cells), cell, partitioner=without(comm, empty_rank))
    if hinge:  # the factors of half are tolerances for nodes on the middle planes
        half = [(1 + 1e-9) * length / 2 for length in size[:2]]
        low = locate_entities(mesh, 3, lambda x: (x[0] < half[0]) & (x[1] < half[1]))
        half = [(1 - 1e-9) * length / 2 for length in size[:2]]
        high = locate_entities(mesh, 3, lambda x: (x[0] > half[0]) & (x[1] > half[1]))
        mesh = create_submesh(mesh, 3, np.union1d(low, high).astype(np.int32))[0]
    if gap:
        low, high = size[0] / 3, 2 * size[0] / 3
        left = locate_entities(mesh, 3, lambda x: x[0] < low + 1e-9)
        right = locate_entities(mesh, 3, lambda x: x[0] > high - 1e-9)
        mesh = create_submesh(mesh, 3, np.union1d(left, right).astype(np.int32))[0]
    mesh.topology.create_connectivity(2, 3)
    planes = {"left": (0, 0.0), "right": (0, size[0]), "top": (2, size[2])}
    tags = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)
    groups = {}
    for number, (name, (axis, value)) in enumerate(planes.items(), 1):
        facets = on_boundary(mesh, 2, lambda x, a=axis, v=value: np.isclose(x[a], v))
        facets = np.setdiff1d(facets, tags[0]).astype(np.int32)
        tags = (
            np.concatenate([tags[0], facets]),
            np.concatenate([tags[1], np.full(len(facets), number, dtype=np.int32)]),
        )
        groups[name] = (2, number)
    order = np.argsort(tags[0])
    facet_tags = meshtags(mesh, 2, tags[0][order], tags[1][order])
    owned = np.arange(mesh.topology.index_map(3).size_local, dtype=np.int32)
    cell_tags = meshtags(mesh, 3, owned, np.full(len(owned), 1, dtype=np.int32))
    groups["all"] = (3, 1)
    return TaggedMesh(mesh, cell_tags, facet_tags, groups)


def without(comm: MPI.Comm, rank: int | None) -> Callable[..., Any] | None:
    """Return a partitioner that gives no cell to a rank, or None for the default partitioner."""
    if rank is None or comm.size == 1:
        return None
    used = [r for r in range(comm.size) if r != rank % comm.size]

    def partition(comm: Any, count: int, kinds: Any, cells: Any) -> Any:
        corners = {CellType.tetrahedron: 4, CellType.hexahedron: 8}
        # DOLFINx 0.9 passes lists of nodes or a graph
        number = getattr(cells, "num_nodes", None)
        if number is None:
            number = len(cells[0]) // corners[kinds[0]]
        ranks = np.array(used, dtype=np.int32)[np.arange(number) * len(used) // max(number, 1)]
        lists = graph.adjacencylist(ranks, np.arange(number + 1, dtype=np.int32))
        return getattr(lists, "_cpp_object", lists)

    return partition


def rigid_mass(body: ReducedBody) -> np.ndarray:
    """Return the mass matrix of the undeformed body about its origin, shape (6, 6)."""
    m, c = body.total_mass, body.centre
    cross = np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
    return np.block([[m * np.eye(3), -m * cross], [m * cross, body.inertia]])


def dynamic_stiffness(body: ReducedBody, omega: float) -> np.ndarray:
    """Return the forces per harmonic motion of the k interfaces of the free body, (6 k, 6 k).

    This matrix does not depend on the choice of the elastic coordinates.
    """
    D = np.vstack([interface.motion for interface in body.interfaces])
    G = np.vstack(
        [
            np.block([[np.eye(3), -_skew(i.point)], [np.zeros((3, 3)), np.eye(3)]])
            for i in body.interfaces
        ]
    )
    elastic = D @ np.linalg.solve(body.stiffness - omega**2 * body.mass, D.T)
    rigid = -G @ np.linalg.solve(rigid_mass(body), G.T) / omega**2
    return np.linalg.inv(elastic + rigid)


def _skew(w: np.ndarray) -> np.ndarray:
    """Return the matrix of the cross product w×."""
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def ellipsoid(size: float, order: int) -> Callable[[Any], None]:
    """Return a function that meshes a solid ellipsoid with gmsh."""

    def build(model: Any) -> None:
        occ = model.occ
        ball = [(3, occ.addSphere(0, 0, 0, 1.0))]
        occ.dilate(ball, 0, 0, 0, *AXES)
        occ.translate(ball, *CENTRE)
        occ.synchronize()
        model.addPhysicalGroup(3, [tag for _, tag in ball], name="ellipsoid")
        model.mesh.setSize(model.getEntities(0), size)
        import gmsh

        gmsh.option.setNumber("Mesh.MeshSizeMin", size)
        gmsh.option.setNumber("Mesh.MeshSizeMax", size)
        model.mesh.generate(3)
        model.mesh.setOrder(order)

    return build


def ellipsoid_inertia(size: float) -> tuple[list[float], dict[str, float]]:
    """Return mass and moments of inertia of the ellipsoid by curved cells, and the closed forms."""
    mesh = mbd.build_mesh(ellipsoid(size, 2), MPI.COMM_SELF)
    options = mbd.ReductionOptions(skin=False)
    body = mbd.reduce(
        mesh, mbd.STEEL, interfaces={}, num_modes=1, stiffening=False, options=options
    ).body
    c, squares = body.centre, np.square(AXES)
    central = body.inertia - body.total_mass * (c @ c * np.eye(3) - np.outer(c, c))
    mass = float(4 / 3 * np.pi * mbd.STEEL.density * np.prod(AXES))
    moments = mass / 5 * (squares.sum() - squares)
    names = ("Jx, kg m²", "Jy, kg m²", "Jz, kg m²")
    exact = {"mass of an ellipsoid, kg": mass} | dict(zip(names, moments.tolist(), strict=True))
    return [body.total_mass, *np.diag(central).tolist()], exact


def inertia_resultants(spin: float, alpha: float) -> tuple[list[float], dict[str, float]]:
    """Return resultants of the inertia loads of a box about z, and the closed forms."""
    mesh = box(MPI.COMM_SELF, cells=(3, 2, 1), cell=CellType.tetrahedron).mesh
    rho, mass = mbd.STEEL.density, mbd.STEEL.density * LENGTH * HEIGHT * WIDTH
    V = fem.functionspace(mesh, ("Lagrange", 1, (3,)))
    v, x = ufl.TestFunction(V), V.tabulate_dof_coordinates()
    rotations = [fem.Constant(mesh, np.array([0.0, 0.0, s])) for s in (spin, alpha)]
    loads = (
        mbd.forms.centrifugal_load(v, rho, rotations[0]),
        mbd.forms.euler_load(v, rho, rotations[1]),
    )
    pull, swing = (fem.assemble_vector(fem.form(f)).array.reshape(-1, 3) for f in loads)
    exact = {
        "mΩ²c, force of the centrifugal load of a box, N": mass * spin**2 * LENGTH / 2,
        "−Jα, moment of its Euler load, N m": -mass / 3 * (LENGTH**2 + HEIGHT**2) * alpha,
    }
    return [float(pull[:, 0].sum()), float(np.cross(x, swing)[:, 2].sum())], exact


def buckling_load() -> tuple[list[float], dict[str, float]]:
    """Return the load at which a reduced bar buckles, and Euler's with the compliance of shear."""
    length, side, steel = 0.4, 0.01, mbd.STEEL
    mesh = box(MPI.COMM_SELF, (length, side, side), (16, 2, 2))
    body = mbd.reduce(mesh, steel, interfaces=["left", "right"], num_modes=6).body
    assert body.stiffening is not None
    # geometric stiffness of a unit tension; K − P · tension is singular at the buckling load P
    tension = body.stiffening.interfaces[1, 0] - body.stiffening.interfaces[0, 0]
    euler = np.pi**2 * steel.young * side**4 / 12 / length**2
    # 1.2 is the shear coefficient of a rectangle
    exact = float(euler / (1 + 1.2 * euler / (steel.shear * side**2)))
    largest = eigh(tension, body.stiffness, eigvals_only=True)[-1]
    return [1 / float(largest)], {"buckling load of a reduced bar, N": exact}
