"""Mistakes that can be told from a mesh and a mass: bad cells, loose parts, other units than SI."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import basix
import numpy as np
import scipy
from dolfinx import fem, la
from dolfinx.mesh import Mesh
from numpy.typing import NDArray
from ufl.core.expr import Expr

from dolfinx_mbd.errors import InputError, MeshWarning, UnitsWarning, warn
from dolfinx_mbd.fem import compat
from dolfinx_mbd.forms import AnyMaterial, Plane

__all__ = ["check_cells", "check_in_one_part", "warn_of_elements", "warn_of_materials"]

Array = NDArray[np.float64]

FLAT = 1e-12
"""det J over the size of the cell, to the power of the dimension, of a cell without volume."""

SLOW, FAST = 8.0, 1e5
"""Speed of sound √(E/ρ) outside which no solid lies, m/s (a soft gel: 10, diamond: 2e4)."""

INCOMPRESSIBLE = 0.49
"""Poisson's ratio from which linear elements lock in volume."""

CHUNK = 20_000
"""Cells that are looked at together."""


def check_cells(mesh: Mesh) -> None:
    """Refuse cells that are inverted (partly, or against their neighbours) or have no volume.

    DOLFINx takes the magnitude of det J, so that the numbering of a cell's nodes may have either
    sense; a sign that changes within a cell, or a cell that lies on the same side of a facet as its
    neighbour, is wrong.

    Raises:
        ValueError: How many there are and where one is; the same error on every rank.

    Note: Collective.
    """
    topology, comm = mesh.topology, mesh.comm
    tdim = topology.dim
    num_owned = topology.index_map(tdim).size_local
    nodes = compat.geometry_dofmap(mesh)
    bad = np.zeros(len(nodes), dtype=bool)
    element = mesh.ufl_domain().ufl_coordinate_element().sub_elements[0]
    for start in range(0, num_owned, CHUNK):
        cells = slice(start, min(start + CHUNK, num_owned))
        x = np.asarray(mesh.geometry.x[nodes[cells]], dtype=float)
        bad[cells] = _is_bad(x[:, :, : mesh.geometry.dim], element)
    if nodes.shape[1] == tdim + 1 == mesh.geometry.dim + 1:  # straight triangles or tetrahedra
        bad[_folded(mesh, nodes)] = True
    found = np.flatnonzero(bad[:num_owned])
    count = comm.allreduce(len(found))
    if not count:
        return
    centre = mesh.geometry.x[nodes[found[0]]].mean(axis=0) if len(found) else None
    where = next(c for c in comm.allgather(centre) if c is not None)
    total = topology.index_map(tdim).size_global
    shown = ", ".join(f"{c:.4g}" for c in where)
    raise InputError(
        f"{count} of the {total} cells of the mesh are inverted or have no volume, one of them at "
        f"({shown}) m; mesh the part again (gmsh: Mesh.Optimize = 1, or a smaller size) or check "
        "the nodes of those cells"
    )


def _is_bad(x: Array, element: Any) -> NDArray[np.bool_]:
    """Whether det J vanishes or changes its sign in cells with nodes x, shape (cells, nodes, d)."""
    tdim = x.shape[2]
    affine = x.shape[1] == tdim + 1
    n = 1 if affine else element.degree + 1
    lattice = basix.create_lattice(element.cell_type, n, basix.LatticeType.equispaced, True)
    table = element.tabulate(1, np.asarray(lattice)[:1] if affine else np.asarray(lattice))
    size = np.ptp(x, axis=1).max(axis=1)
    gradients = table[1 : tdim + 1]
    num_points = gradients.shape[1]
    jacobians = gradients.reshape(tdim * num_points, -1) @ x  # (cells, directions · points, d)
    with np.errstate(invalid="ignore"):
        det = _determinant(jacobians.reshape(len(x), tdim, num_points, tdim))
        limit = FLAT * size**tdim
        low, high = det.min(axis=1), det.max(axis=1)
        return ~((low > limit) | (high < -limit))


def _determinant(J: Array) -> Array:
    """Of shape (cells, points) from (cells, d, points, d): LAPACK takes longer for each."""
    if J.shape[1] == 2:
        (a, b), (c, d) = (np.moveaxis(J[:, k], -1, 0) for k in range(2))
        return np.asarray(a * d - b * c)
    return np.asarray(np.sum(np.cross(J[:, 0], J[:, 1]) * J[:, 2], axis=-1))


def _folded(mesh: Mesh, nodes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Local simplices that lie on the same side of a facet as their neighbour.

    Of the two it is the one with the greater share of such facets. The share of a ghost is unknown
    here, because not all of its neighbours are; beside a ghost the owned cell is always returned.
    """
    topology, tdim = mesh.topology, mesh.topology.dim
    topology.create_connectivity(tdim, tdim - 1)
    corners = tdim + 1
    flat = topology.connectivity(tdim, tdim - 1).array[: len(nodes) * corners]
    order = np.argsort(flat, kind="stable")
    same = np.flatnonzero(flat[order[1:]] == flat[order[:-1]])
    first, second = order[same], order[same + 1]  # pairs of (cell, facet), numbered through
    a, b = first // corners, second // corners
    x = mesh.geometry.x[nodes][:, :, :tdim]
    # The facet i of a simplex is opposite to its vertex i.
    others = np.array([[k for k in range(corners) if k != i] for i in range(corners)])
    base = x[a[:, None], others[first % corners]]
    origin, edges = base[:, 0], base[:, 1:] - base[:, :1]
    tips = x[a, first % corners] - origin, x[b, second % corners] - origin
    sides = [np.linalg.det(np.concatenate([edges, tip[:, None]], axis=1)) for tip in tips]
    wrong = np.sign(sides[0]) * np.sign(sides[1]) > 0
    a, b = a[wrong], b[wrong]
    inside = np.bincount(np.concatenate([first, second]) // corners, minlength=len(nodes))
    share = np.bincount(np.concatenate([a, b]), minlength=len(nodes)) / np.maximum(inside, 1)
    share[topology.index_map(tdim).size_local :] = 0.0
    return np.unique(np.concatenate([a[share[a] >= share[b]], b[share[b] >= share[a]]]))


def check_in_one_part(mesh: Mesh) -> None:
    """Refuse a mesh in parts that share no nodes.

    Raises:
        ValueError: How many there are, and where they are; the same error on every rank.

    Note: Collective.
    """
    comm, nodes = mesh.comm, compat.geometry_dofmap(mesh)
    index_map = mesh.geometry.index_map()
    count, owned = len(mesh.geometry.x), index_map.size_local
    rows = np.repeat(np.arange(len(nodes)), nodes.shape[1])
    links = np.ones(nodes.size, dtype=np.int8)
    graph = scipy.sparse.coo_matrix((links, (rows, nodes.ravel())), shape=(len(nodes), count))
    joined = scipy.sparse.bmat([[None, graph], [graph.T, None]], format="csr")
    local = scipy.sparse.csgraph.connected_components(joined, directed=False)[1][len(nodes) :]
    # What this rank calls its parts, and what the owners of its ghosts call them.
    names = la.vector(index_map)
    start = comm.exscan(count) or 0
    names.array[:] = start + local
    own = names.array.copy()
    names.scatter_forward()
    pairs = np.unique(np.stack([own, names.array], axis=1), axis=0).astype(np.int64)
    pairs = np.concatenate(comm.allgather(pairs))
    known, ends = np.unique(pairs, return_inverse=True)
    ends = ends.reshape(-1, 2)
    shape = len(known), len(known)
    whole = scipy.sparse.coo_matrix((np.ones(len(ends)), tuple(ends.T)), shape=shape)
    parts, label = scipy.sparse.csgraph.connected_components(whole, directed=False)
    if parts == 1:
        return
    number = label[np.searchsorted(known, own[:owned].astype(np.int64))]
    x = mesh.geometry.x[:owned]
    centres = []
    for part in range(parts):
        mine = x[number == part]
        sums = comm.allreduce(np.array([*mine.sum(axis=0), len(mine)]))
        centres.append(tuple(sums[:3] / sums[3]))
    shown = "; ".join(
        "(" + ", ".join(f"{c:.4g}" for c in centre) + ")" for centre in sorted(centres)[:4]
    )
    raise InputError(
        f"the mesh has {parts} unconnected parts, about {shown} m; let them share nodes "
        "(gmsh: occ.fragment, or mesh.removeDuplicateNodes) or reduce each as a body of its own"
    )


def warn_of_elements(
    space: fem.FunctionSpace, materials: Iterable[AnyMaterial], plane: Plane | None
) -> None:
    """Warn of elements of degree one that are much too stiff.

    The first bending frequency of a free bar with square cells (ν = 0.3) is 1.86, 1.29 and 1.08
    times too high with 1, 2 and 4 layers of linear tetrahedra; with ν = 0.499 it is 4.7, 4.1 and
    3.1 times too high, and 1.6, 1.3 and 1.2 times with linear hexahedra. Elements of degree two
    are within 1 % with a single layer, also with ν = 0.4999.

    Args:
        space: The displacement space.
        materials: Materials of the body; a ratio that is a function of space is not judged.
        plane: Assumption of a plane body; in plane stress no material locks.
    """
    if space.ufl_element().sub_elements[0].degree > 1:
        return
    cell = space.mesh.topology.cell_name()
    remedy = "use degree=2 (or a space of degree 2)"
    if cell in ("tetrahedron", "triangle"):
        shape = {"tetrahedron": "tetrahedra", "triangle": "triangles"}[cell]
        text = (
            f"linear {shape} are much too stiff in bending: frequencies can be twice too high "
            f"where a wall has only one or two layers of them; {remedy}"
        )
        warn(MeshWarning(text, quantity="degree of the elements", value=1, limit=2))
    ratios = [getattr(m, "poisson", None) for m in materials] if plane != "stress" else []
    largest = max((r for r in ratios if isinstance(r, float)), default=0.0)
    if largest >= INCOMPRESSIBLE:
        text = (
            f"linear elements of a nearly incompressible material (ν = {largest:g}) cannot deform "
            f"without changing their volume and are several times too stiff; {remedy}"
        )
        warn(MeshWarning(text, quantity="Poisson's ratio", value=largest, limit=INCOMPRESSIBLE))


def warn_of_materials(materials: Iterable[AnyMaterial]) -> None:
    """Warn of materials that no body has in SI units; functions of space are not judged."""
    for material in materials:
        young, density = material.young, material.density
        young = max(young) if isinstance(young, tuple) else young
        if isinstance(young, Expr) or isinstance(density, Expr):
            continue
        speed = math.sqrt(young / density)
        if not SLOW < speed < FAST:
            text = (
                f"implausible: E = {young:g} Pa and ρ = {density:g} kg/m³ make a "
                f"speed of sound of {speed:.3g} m/s (steel: 5170); give E in Pa and ρ in kg/m³"
            )
            limit = SLOW if speed <= SLOW else FAST
            warn(UnitsWarning(text, quantity="speed of sound", value=speed, limit=limit))
