"""Checks of meshes and materials: bad cells, unconnected parts, units other than SI."""

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

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import InputError, MeshWarning, UnitsWarning, warn
from dolfinx_mbd.fem import compat
from dolfinx_mbd.forms import AnyMaterial, Plane

MIN_VOLUME_RATIO = 1e-12
"""Largest ratio det J / (cell size)^dimension of a cell whose volume counts as zero."""

MIN_SOUND_SPEED, MAX_SOUND_SPEED = 8.0, 1e5
"""Limits of a plausible speed of sound √(E/ρ) of a solid, m/s (a soft gel: 10, diamond: 2e4)."""

LOCKING_RATIO = 0.49
"""Smallest Poisson's ratio for which linear elements cause a warning of volumetric locking."""

OPPOSITE_FACETS = {"quadrilateral": [[1, 2], [0, 3]], "hexahedron": [[2, 3], [1, 4], [0, 5]]}
"""Facets of a cell that are opposite in the directions of its reference coordinates."""

SLENDER = 2.0
"""Smallest ratio of extent to thickness of a wall that can bend; see `bending_factor`."""

MAX_BENDING_FACTOR = 1.05
"""Largest ratio of computed to exact bending frequencies of linear hexahedra or quadrilaterals that
causes no warning."""

SHEAR_RATIO = 1 / 2.6
"""Ratio G/E = 1/(2 (1 + ν)) for ν = 0.3."""

CHUNK_CELLS = 20_000
"""Number of cells that are checked together."""


def check_cells(mesh: Mesh) -> None:
    """Raise an error on all ranks if cells are inverted or have no volume (collective).

    The nodes of a cell may be numbered in either sense, because DOLFINx uses the magnitude of
    det J. A cell is bad if det J changes sign within the cell, or if the cell and its neighbour lie
    on the same side of their common facet.
    """
    topology, comm = mesh.topology, mesh.comm
    tdim = topology.dim
    num_owned = topology.index_map(tdim).size_local
    nodes = compat.geometry_dofmap(mesh)
    invalid = np.zeros(len(nodes), dtype=bool)
    element = mesh.ufl_domain().ufl_coordinate_element().sub_elements[0]
    for start in range(0, num_owned, CHUNK_CELLS):
        cells = slice(start, min(start + CHUNK_CELLS, num_owned))
        x = np.asarray(mesh.geometry.x[nodes[cells]], dtype=float)
        invalid[cells] = _is_invalid(x[:, :, : mesh.geometry.dim], element)
    if nodes.shape[1] == tdim + 1 == mesh.geometry.dim + 1:  # straight triangles or tetrahedra
        invalid[_folded_cells(mesh, nodes)] = True
    indices = np.flatnonzero(invalid[:num_owned])
    centres = comm.allgather([mesh.geometry.x[nodes[cell]].mean(axis=0) for cell in indices[:1]])
    if not any(centres):
        return
    where = next(first[0] for first in centres if first)  # from the first rank with such a cell
    count, total = comm.allreduce(len(indices)), topology.index_map(tdim).size_global
    raise InputError(
        f"{count} of the {total} cells of the mesh are inverted or have no volume, one of them at "
        f"{_coordinates(where)} m; mesh the part again (gmsh: Mesh.Optimize = 1, or a smaller size)"
        " or check the nodes of those cells"
    )


def _coordinates(point: Iterable[float]) -> str:
    """Return the coordinates of a point as a text."""
    return "(" + ", ".join(f"{c:.4g}" for c in point) + ")"


def _is_invalid(x: Array, element: Any) -> NDArray[np.bool_]:
    """Return a mask of cells in which det J is 0 or changes sign; x has shape (cells, nodes, d)."""
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
        limit = MIN_VOLUME_RATIO * size**tdim
        low, high = det.min(axis=1), det.max(axis=1)
        return ~((low > limit) | (high < -limit))


def cell_quality(mesh: Mesh, x: Array) -> Array:
    """Return the quality of the owned cells with the nodes at x, shape (cells,).

    Let T be the Jacobian of the map from the ideal cell to the cell. The quality is the smallest
    value of det T / (|T|²/d)^(d/2) in the cell: 1 for an equilateral simplex, a square or a cube, 0
    for a flat cell. The sign is that of det T.

    Args:
        mesh: Mesh of volumes in space, or of faces in the plane.
        x: Positions of the nodes of this rank, shape (nodes, 3), m.
    """
    dim = mesh.topology.dim
    num_owned = mesh.topology.index_map(dim).size_local
    nodes = compat.geometry_dofmap(mesh)[:num_owned]
    element = mesh.ufl_domain().ufl_coordinate_element().sub_elements[0]
    ideal: Array = np.eye(dim)
    if mesh.topology.cell_name() in ("triangle", "tetrahedron"):  # edges of an equilateral simplex
        ideal = np.asarray(np.linalg.cholesky((np.eye(dim) + 1.0) / 2), dtype=float)
    kind = basix.LatticeType.equispaced
    lattice = np.asarray(basix.create_lattice(element.cell_type, element.degree + 1, kind, True))
    gradients = np.tensordot(np.linalg.inv(ideal), element.tabulate(1, lattice)[1:], axes=1)
    result = np.zeros(num_owned)
    for start in range(0, num_owned, CHUNK_CELLS):
        cells = slice(start, start + CHUNK_CELLS)
        T = np.einsum("dpn,cni->cdpi", gradients[:dim], x[nodes[cells], :dim], optimize=True)
        size = np.einsum("cdpi,cdpi->cp", T, T) / dim
        result[cells] = (_determinant(T) / size ** (dim / 2)).min(axis=1)
    return result


def _determinant(J: Array) -> Array:
    """Return determinants (cells, points) of matrices (cells, d, points, d), faster than LAPACK."""
    if J.shape[1] == 2:
        (a, b), (c, d) = (np.moveaxis(J[:, k], -1, 0) for k in range(2))
        return np.asarray(a * d - b * c)
    return np.asarray(np.sum(np.cross(J[:, 0], J[:, 1]) * J[:, 2], axis=-1))


def _folded_cells(mesh: Mesh, nodes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return owned simplices that lie on the same side of a facet as their neighbour (collective).

    Of two such neighbours, the cell with the larger fraction of such facets is returned.
    """
    topology, tdim = mesh.topology, mesh.topology.dim
    topology.create_connectivity(tdim, tdim - 1)
    num_owned, corners = topology.index_map(tdim).size_local, tdim + 1
    table = topology.connectivity(tdim, tdim - 1).array[: num_owned * corners]
    facets = table.reshape(num_owned, corners)

    def sums(values: Array) -> Array:
        """Return sums over both cells of each facet, for values of shape (cells, corners)."""
        vector = la.vector(topology.index_map(tdim - 1))
        np.add.at(vector.array, facets.ravel(), values.ravel())
        vector.scatter_reverse(la.InsertMode.add)
        vector.scatter_forward()
        return np.asarray(vector.array[facets])

    numbers = mesh.geometry.index_map().local_to_global(nodes[:num_owned].ravel())
    order = np.argsort(numbers.reshape(num_owned, corners), axis=1)
    x = mesh.geometry.x[nodes[:num_owned]][:, :, :tdim]
    sides = np.zeros((num_owned, corners))
    # The facet k of a simplex is opposite to its vertex k. Its vertices are in the order of their
    # global numbers, so that its two cells agree on its orientation
    for k in range(corners):
        others = order[order != k].reshape(num_owned, tdim)
        base = np.take_along_axis(x, others[:, :, None], axis=1)
        edges = np.concatenate([base[:, 1:], x[:, k : k + 1]], axis=1) - base[:, :1]
        sides[:, k] = np.sign(np.linalg.det(edges))
    # Neighbours on both sides of a facet have the sum 0 of the signs, on the same side ±2
    wrong = np.abs(sums(sides)) > 1.5
    inside = sums(np.ones_like(sides)) > 1.5  # facets with two cells
    fraction = (wrong.sum(axis=1) / np.maximum(inside.sum(axis=1), 1))[:, None]
    # The fraction is at least that of the neighbour, up to round-off: 2 f₁ ≥ f₁ + f₂
    larger = 2.001 * fraction > sums(fraction * wrong)
    return np.flatnonzero((wrong & larger).any(axis=1))


def parts_of_cells(comm: Any, entities: NDArray[Any], index_map: Any) -> tuple[Any, int]:
    """Return the part 0, 1, ... of each local cell, and the number of parts (collective).

    Cells that share an entity (a node or a facet) belong to the same part. `entities` holds the
    local entity indices of each cell, shape (cells, k); `index_map` belongs to the entities.
    """
    cells, count = len(entities), index_map.size_local + index_map.num_ghosts
    rows = np.repeat(np.arange(cells), entities.shape[1])
    labels = la.vector(index_map)
    first = comm.exscan(cells + count) or 0
    labels.array[:] = first + _components(rows, cells + entities.ravel(), cells + count)[1][cells:]
    local = labels.array.copy()
    labels.scatter_forward()  # ghosts get the labels of their owners
    pairs = np.stack([local, labels.array], axis=1)[np.unique(entities)]
    pairs = np.unique(pairs, axis=0).astype(np.int64)
    distinct, ends = np.unique(np.concatenate(comm.allgather(pairs)), return_inverse=True)
    ends = ends.reshape(-1, 2)
    number, numbers = _components(ends[:, 0], ends[:, 1], len(distinct))
    return numbers[np.searchsorted(distinct, local[entities[:, 0]])].astype(np.int64), number


def _components(rows: NDArray[Any], columns: NDArray[Any], size: int) -> tuple[int, Any]:
    """Return the number of components of a graph, and the component of each vertex."""
    edges = np.ones(len(rows), dtype=np.int8)
    graph = scipy.sparse.coo_matrix((edges, (rows, columns)), (size, size))
    return scipy.sparse.csgraph.connected_components(graph, directed=False)


def check_in_one_part(mesh: Mesh) -> None:
    """Raise an error on all ranks if the mesh has parts that share no nodes (collective)."""
    nodes, index_map = compat.geometry_dofmap(mesh), mesh.geometry.index_map()
    part_of_cell, parts = parts_of_cells(mesh.comm, nodes, index_map)
    if parts == 1:
        return
    part = np.zeros(len(mesh.geometry.x), dtype=np.int64)
    part[nodes] = part_of_cell[:, None]
    owned = slice(0, index_map.size_local)
    weights = [*mesh.geometry.x[owned].T, None]
    sums = [np.bincount(part[owned], weights=w, minlength=parts) for w in weights]
    x, y, z, count = mesh.comm.allreduce(np.array(sums))
    centres = sorted(zip(x / count, y / count, z / count, strict=True))
    raise InputError(
        f"the mesh has {parts} unconnected parts, near {'; '.join(map(_coordinates, centres[:4]))} "
        "m; let them share nodes (gmsh: occ.fragment, or mesh.removeDuplicateNodes) or reduce each "
        "as a separate body"
    )


def warn_of_elements(
    space: fem.FunctionSpace, materials: Iterable[AnyMaterial], plane: Plane | None
) -> None:
    """Warn about elements of degree one, which are much too stiff (collective).

    With 1, 2 and 4 layers of linear tetrahedra, the first bending frequency of a free bar is too
    high by factors of 1.86, 1.29 and 1.08 for ν = 0.3, and of 4.7, 4.1 and 3.1 for ν = 0.499.
    For linear hexahedra and quadrilaterals see `bending_factor`. With elements of degree two, the
    error is below 1 % for a single layer. In plane stress no material locks in volume.
    """
    if space.ufl_element().sub_elements[0].degree > 1:
        return
    shape = space.mesh.topology.cell_name()
    remedy = "use degree=2 (or a space of degree 2)"
    if shape in ("tetrahedron", "triangle"):
        name = {"tetrahedron": "tetrahedra"}.get(shape, "triangles")
        text = (
            f"linear {name} are much too stiff in bending: frequencies can be twice too high "
            f"where a wall has only one or two layers of cells; {remedy}"
        )
        warn(MeshWarning(text, quantity="degree of the elements", value=1, limit=2))
    elif shape in OPPOSITE_FACETS:
        factor, length, thickness = bending_factor(space.mesh)
        if factor > MAX_BENDING_FACTOR:
            name = {"hexahedron": "hexahedra"}.get(shape, "quadrilaterals")
            text = (
                f"linear {name} are too stiff in bending if they are long compared with the "
                f"thickness of the wall: with cells of {length:.3g} m in a wall of {thickness:.3g} "
                f"m, bending frequencies are about {factor:.3g} times too high, and more layers of "
                f"cells do not help; {remedy}"
            )
            quantity = "factor of bending frequencies"
            warn(MeshWarning(text, quantity=quantity, value=factor, limit=MAX_BENDING_FACTOR))
    ratios = [getattr(m, "poisson", None) for m in materials] if plane != "stress" else []
    largest = max((r for r in ratios if isinstance(r, float)), default=0.0)
    if largest >= LOCKING_RATIO:
        text = (
            f"linear elements of a nearly incompressible material (ν = {largest:g}) cannot deform "
            f"without changing their volume and are several times too stiff; {remedy}"
        )
        warn(MeshWarning(text, quantity="Poisson's ratio", value=largest, limit=LOCKING_RATIO))


def bending_factor(mesh: Mesh) -> tuple[float, float, float]:
    """Estimate the factor by which linear hexahedra or quadrilaterals raise bending frequencies.

    Where a wall of the thickness h bends with the curvature κ, cells of the length a have the shear
    κx, |x| < a/2, which the real wall does not have. The energy of this shear is that of the
    bending times (G/E) (a/h)², for any number of layers; see `SHEAR_RATIO`. The
    thickness and the extent of a wall are the lengths of rows of cells from surface to surface. A
    wall bends if its extent is at least `SLENDER` times its thickness.

    The result is the factor for the most affected cells, their length and the thickness of their
    wall, m; the factor is 1 if less than 1 % of the volume is affected. Collective.
    """
    topology, comm, tdim = mesh.topology, mesh.comm, mesh.topology.dim
    topology.create_connectivity(tdim, tdim - 1)
    owned = topology.index_map(tdim).size_local
    facets = topology.connectivity(tdim, tdim - 1).array[: owned * 2 * tdim]
    pairs = facets.reshape(owned, 2 * tdim)[:, OPPOSITE_FACETS[topology.cell_name()]]
    x = mesh.geometry.x[compat.geometry_dofmap(mesh)[:owned, : 2**tdim]]
    # Corner k is at the upper end of direction d if bit d of k is set, (corners, directions)
    upper = (np.arange(2**tdim)[:, None] >> np.arange(tdim)) % 2 == 1
    edges = np.einsum("kd,cki->cdi", np.where(upper, 1.0, -1.0) / 2 ** (tdim - 1), x)
    lengths = np.linalg.norm(edges, axis=2)  # (cells, directions)
    row, count = parts_of_cells(comm, pairs.reshape(-1, 2), topology.index_map(tdim - 1))
    sums = comm.allreduce(np.bincount(row, weights=lengths.ravel(), minlength=count))
    extent = sums[row].reshape(owned, tdim)
    slender = extent[:, :, None] >= SLENDER * extent[:, None, :]  # (cells, along, across)
    ratio = np.where(slender, lengths[:, :, None] / extent[:, None, :], 0.0)
    ratio = ratio.reshape(owned, tdim * tdim)  # (-1 is ambiguous on a rank without cells)
    worst = ratio.argmax(axis=1)
    cells = np.arange(owned)
    factor = np.sqrt(1 + SHEAR_RATIO * ratio[cells, worst] ** 2)
    volume = lengths.prod(axis=1)
    affected = comm.allreduce(np.array([volume[factor > MAX_BENDING_FACTOR].sum(), volume.sum()]))
    local = (0.0, 0.0, 0.0)
    if owned:
        k = int(factor.argmax())
        along, across = divmod(int(worst[k]), tdim)
        local = float(factor[k]), float(lengths[k, along]), float(extent[k, across])
    largest = max(comm.allgather(local))
    affected_volume, volume_of_body = affected
    return largest if affected_volume > 0.01 * volume_of_body else (1.0, *largest[1:])


def warn_of_materials(materials: Iterable[AnyMaterial]) -> None:
    """Warn about constants that are implausible in SI units; UFL expressions are not checked."""
    for material in materials:
        young, density = material.young, material.density
        young = max(young) if isinstance(young, tuple) else young
        if isinstance(young, Expr) or isinstance(density, Expr):
            continue
        speed = math.sqrt(young / density)
        if not MIN_SOUND_SPEED < speed < MAX_SOUND_SPEED:
            text = (
                f"implausible: E = {young:g} Pa and ρ = {density:g} kg/m³ make a "
                f"speed of sound of {speed:.3g} m/s (steel: 5170); give E in Pa and ρ in kg/m³, "
                "and read a deck with its system of units, such as unit='mm-t-s' or --unit mm-t-s"
            )
            limit = MIN_SOUND_SPEED if speed <= MIN_SOUND_SPEED else MAX_SOUND_SPEED
            warn(UnitsWarning(text, quantity="speed of sound", value=speed, limit=limit))
