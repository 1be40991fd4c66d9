"""The integral of squared normal velocities over the surface of a body, as a matrix.

The generalized velocity w = (V, ω, η̇) of a body in its own axes consists of the velocity of the
origin of the body frame, the angular velocity and the rates of the elastic coordinates. A point x
of the surface with the unit normal n has the normal velocity v_n = n·(V + ω×x + Σ ψ_k η̇_k), so that

    ∫ v_n² dS = wᵀ B w,    B_ij = ∫ (n·φ_i) (n·φ_j) dS

where the φ_i are the six rigid motions, then the modes ψ_k. The matrix is computed once, either on
the mesh or on the triangles of the skin. The deformation of the surface is neglected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import ufl
from dolfinx import fem
from dolfinx.mesh import locate_entities_boundary, meshtags
from numpy.typing import NDArray

from dolfinx_mbd.arrays import freeze
from dolfinx_mbd.body import ReducedBody, Skin
from dolfinx_mbd.checks import function, instance, number, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import assembled_matrix, rigid_motions
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.parallel import shared_errors
from dolfinx_mbd.reduction.result import Reduction

__all__ = ["RadiatingSurface", "radiating_surface"]

Array = NDArray[np.float64]
Where = Callable[[Array], Any]


@dataclass(frozen=True, eq=False)
class RadiatingSurface:
    """A part of the surface of a body that radiates sound.

    Attributes:
        area: Area of the surface, m².
        products: Integrals B of products of normal motions over the surface, shape (6 + n, 6 + n)
            for n modes: translations, rotations about the origin of the body frame, modes.

    Example:
        >>> surface = mbd.durability.radiating_surface(plate)
        >>> round(surface.area, 6), surface.products.shape[0] - plate.body.num_modes
        (0.043, 6)
    """

    area: float
    products: Array

    __repr__ = short_repr

    def __post_init__(self) -> None:
        number("area", self.area, positive=True, unit="m²")
        freeze(self, "radiating surface", products=(-1, -1))
        B = self.products
        symmetric = B.shape[0] == B.shape[1] and np.allclose(B, B.T, atol=1e-9 * np.abs(B).max())
        if not symmetric or len(B) < 6:
            reject("products", B, "a symmetric matrix of shape (6 + n, 6 + n)")


def radiating_surface(
    source: Reduction | ReducedBody, where: Where | None = None
) -> RadiatingSurface:
    """Return the surface of a body for `radiated_power`, computed once for many runs.

    Args:
        source: A reduction, whose surface and modes are integrated exactly; or a reduced body with
            a skin, on whose triangles the modes are interpolated linearly.
        where: Function that marks the points of the radiating part, from coordinates of shape
            (3, points), m, as in `dolfinx.mesh.locate_entities_boundary`. A facet radiates if all
            its corners are marked. By default the whole surface, including surfaces of cavities.

    Raises:
        InputError: The body is plane or has no skin, or no facet is marked.

    Note: Collective with a reduction.

    Example:
        >>> top = mbd.durability.radiating_surface(plate, lambda x: np.isclose(x[2], 0.005))
        >>> round(top.area, 6)
        0.02
    """
    instance("source", source, (Reduction, ReducedBody))
    if where is not None:
        function("where", where, "where(x), x of shape (3, points)")
    if isinstance(source, Reduction):
        return _mesh_surface(source, where)
    if source.skin is None or not len(source.skin.triangles):
        how = "reduce it with a skin, or give the reduction"
        reject("source", source, "a body with a skin", hint=how)
    return _skin_surface(source.skin, where)


def _mesh_surface(reduction: Reduction, where: Where | None) -> RadiatingSurface:
    """Return the surface of a reduction (collective)."""
    space, mesh = reduction.space, reduction.space.mesh
    if space.dofmap.bs != 3:
        raise InputError("a plane body has no radiating surface; mesh it in space")
    dim = mesh.topology.dim - 1
    mesh.topology.create_connectivity(dim, dim + 1)
    with shared_errors(mesh.comm):
        facets = locate_entities_boundary(mesh, dim, lambda x: _select_points(where, x))
    tags = meshtags(mesh, dim, np.sort(facets), np.ones(len(facets), dtype=np.int32))
    ds = ufl.Measure("ds", domain=mesh, subdomain_data=tags)(1)
    one = fem.Constant(mesh, np.float64(1.0))
    area = float(mesh.comm.allreduce(fem.assemble_scalar(compiled_form(one * ds))))
    _check_area(area)
    u, v, n = ufl.TrialFunction(space), ufl.TestFunction(space), ufl.FacetNormal(mesh)
    A = assembled_matrix(ufl.dot(u, n) * ufl.dot(v, n) * ds)
    motions = np.hstack([rigid_motions(reduction.positions), reduction.modes])
    products = gram(mesh.comm, motions, multiply(A, np.asfortranarray(motions)))
    A.destroy()
    return RadiatingSurface(area, 0.5 * (products + products.T))


def _skin_surface(skin: Skin, where: Where | None) -> RadiatingSurface:
    """Return the surface of a skin; the normal motions are linear in each triangle."""
    marked = _select_points(where, skin.points.T)
    corners = skin.triangles[marked[skin.triangles].all(axis=1)]
    first, second, third = (skin.points[corners[:, k]] for k in range(3))
    area_vectors = 0.5 * np.cross(second - first, third - first)
    areas = np.linalg.norm(area_vectors, axis=1)
    _check_area(float(areas.sum()))
    normals = area_vectors / np.where(areas > 0, areas, 1.0)[:, None]
    rigid = rigid_motions(skin.points).reshape(len(skin.points), 3, 6)
    motions = np.concatenate([rigid, skin.modes.transpose(1, 2, 0)], axis=2)
    at_corners = [np.einsum("ti,tik->tk", normals, motions[corners[:, k]]) for k in range(3)]
    # ∫ of the product of linear functions with the values v_i and w_j at the corners of a triangle
    # with the area A: Σ A/12 (1 + δ_ij) v_i w_j = A/12 (Σ v_i Σ w_j + Σ v_i w_i)
    weights = (areas / 12)[:, None]
    products = sum(v.T @ (weights * v) for v in (sum(at_corners), *at_corners))
    return RadiatingSurface(float(areas.sum()), np.asarray(products, dtype=float))


def _select_points(where: Where | None, x: Array) -> NDArray[np.bool_]:
    """Return the truth values (points,) of `where` at points x (3, points); by default all true."""
    marked = np.ones(x.shape[1], dtype=bool) if where is None else np.asarray(where(x))
    if marked.dtype != bool or marked.shape != (x.shape[1],):
        reject("where", where, "a function that returns one truth value for each point")
    return marked


def _check_area(area: float) -> None:
    """Raise an error if no facet is marked."""
    if not area > 0:
        raise InputError("no facet of the surface is marked", argument="where", value=area)
