"""Integrals over the facets of an interface and over all cells, and the size of a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.mesh import Mesh, meshtags
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.compilation import compiled_form


@dataclass(frozen=True, eq=False)
class SurfaceMoments:
    """Moments of a group of exterior facets Γ (edges in the plane)."""

    area: float  # ∫1, m² (m in the plane); zero if no facet is on the boundary
    centroid: Array  # shape (gdim,), m
    spread: Array  # mean of ξ⊗ξ with ξ = x - centroid, shape (gdim, gdim), m²
    mean_nn: Array  # mean of n⊗n, shape (gdim, gdim), trace 1

    @property
    def radii(self) -> Array:
        """Radii of gyration along the principal directions, ascending, m."""
        return np.sqrt(np.maximum(np.linalg.eigvalsh(self.spread), 0.0))


def surface_moments(mesh: Mesh, facets: NDArray[np.int32]) -> SurfaceMoments:
    """Return the moments of exterior local facets, bitwise identical on all ranks (collective).

    All integrals of all interfaces use one compiled form, with constants as weights.
    """
    gdim, fdim = mesh.geometry.dim, mesh.topology.dim - 1
    tags = meshtags(mesh, fdim, facets, np.ones(len(facets), dtype=np.int32))
    ds = ufl.Measure("ds", domain=mesh, subdomain_data=tags)(1)
    amplitude = fem.Constant(mesh, np.float64(0.0))
    origin, first = (fem.Constant(mesh, np.zeros(gdim)) for _ in range(2))
    second, normal = (fem.Constant(mesh, np.zeros((gdim, gdim))) for _ in range(2))
    n, r = ufl.FacetNormal(mesh), ufl.SpatialCoordinate(mesh) - origin
    quadratic = ufl.dot(r, second * r) + ufl.dot(n, normal * n)
    form = compiled_form((amplitude + ufl.dot(first, r) + quadratic) * ds)

    def integral(weight: fem.Constant, entry: int | tuple[int, ...]) -> float:
        weight.value[entry] = 1.0
        value: float = mesh.comm.allreduce(fem.assemble_scalar(form))
        weight.value[entry] = 0.0
        return value

    area = mesh.comm.bcast(integral(amplitude, ()), root=0)
    centroid, spread, mean_nn = np.zeros(gdim), np.zeros((gdim, gdim)), np.zeros((gdim, gdim))
    if area > 0:
        centroid = np.array([integral(first, i) for i in range(gdim)]) / area
        origin.value[:] = centroid = mesh.comm.bcast(centroid, root=0)
        for i in range(gdim):
            for j in range(i + 1):
                spread[i, j] = spread[j, i] = integral(second, (i, j)) / area
                mean_nn[i, j] = mean_nn[j, i] = integral(normal, (i, j)) / area
    result: SurfaceMoments = mesh.comm.bcast(
        SurfaceMoments(area, centroid, spread, mean_nn), root=0
    )
    return result


def bounding_box(comm: Any, x: Any) -> tuple[Any, Any]:
    """Return the lowest and the highest coordinates of points on all ranks (collective)."""
    # One reduction finds both, because max x = −min(−x)
    ends = np.stack([x.min(axis=0, initial=np.inf), -x.max(axis=0, initial=-np.inf)])
    low, negative_high = np.min(comm.allgather(ends), axis=0)
    return low, -negative_high


def body_size(mesh: Mesh) -> float:
    """Return the diagonal of the bounding box of a mesh, m (collective)."""
    low, high = bounding_box(mesh.comm, mesh.geometry.x)
    return float(np.linalg.norm(high - low))


def volume_integral(mesh: Mesh, integrand: Any) -> float:
    """Return the integral of a UFL expression over all cells (collective)."""
    form = compiled_form(integrand * ufl.dx(domain=mesh))
    return float(mesh.comm.allreduce(fem.assemble_scalar(form)))


def squared_norms(mesh: Mesh, *expressions: Any, weight: Any = 1) -> tuple[float, ...]:
    """Return the weighted integrals of the squares of UFL expressions (collective)."""
    unit = fem.Constant(mesh, default_scalar_type(1.0))  # for expressions without a mesh, such as 1
    return tuple(volume_integral(mesh, weight * unit * ufl.inner(f, f)) for f in expressions)
