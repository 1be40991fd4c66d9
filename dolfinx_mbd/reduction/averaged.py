"""Averaged interfaces (RBE3): their motion is a mean over the facets, which stay free to deform.

With ξ = x - x_c about the centroid x_c of the facets Γ,

    θ = I_Γ⁻¹ ∫ξ×u,    I_Γ = ∫(|ξ|²I - ξξᵀ),    d = mean(u) + θ×(x_k - x_c),

which is the rigid motion d + θ×(x - x_k) that is closest to u on Γ in the mean square. These are
six rows C of integrals, C u = (d, θ), in a plane three. A unit motion of such an interface, and the
modes with all interfaces held, come from the bordered matrix

    [K  Cᵀ] [u]   [0]
    [C  0 ] [λ] = [c]

in which λ is minus the force and moment that move the interface.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
import ufl
from dolfinx import fem
from dolfinx.la import InsertMode
from dolfinx.mesh import meshtags
from numpy.typing import NDArray

from dolfinx_mbd.fem.assembly import rigid_motions
from dolfinx_mbd.linalg.blocks import gram

__all__ = ["averaged_rows", "border_rows"]

Array = NDArray[np.float64]


def averaged_rows(space: fem.FunctionSpace, facets: NDArray[np.int32], point: Array) -> Array:
    """The rows C of an averaged interface, as columns: Cᵀ, shape (owned dofs, 6), in a plane 3.

    C times the rigid motions about `point` is the identity.

    Args:
        space: Displacement space.
        facets: Local facets, exterior ones; a rank may have none.
        point: Reference point, shape (gdim,), m.

    Note: Collective.
    """
    mesh = space.mesh
    gdim, fdim = mesh.geometry.dim, mesh.topology.dim - 1
    tags = meshtags(mesh, fdim, facets, np.ones(len(facets), dtype=np.int32))
    ds = ufl.Measure("ds", domain=mesh, subdomain_data=tags)(1)
    origin, shift = (fem.Constant(mesh, np.zeros(gdim)) for _ in range(2))
    spin = fem.Constant(mesh, np.zeros((gdim, gdim)))
    origin.value[:] = point
    motion = shift + spin * (ufl.SpatialCoordinate(mesh) - origin)
    form = fem.form(ufl.inner(motion, ufl.TestFunction(space)) * ds)
    units = rigid_motions(np.vstack([np.zeros(gdim), np.eye(gdim)]))  # at the origin and on axes
    units = units.reshape(gdim + 1, gdim, -1)
    num_owned = gdim * space.dofmap.index_map.size_local
    raw = np.zeros((num_owned, units.shape[2]), order="F")
    for k in range(units.shape[2]):
        shift.value[:] = units[0, :, k]
        spin.value[:] = (units[1:, :, k] - units[0, :, k]).T
        b = fem.assemble_vector(form)
        b.scatter_reverse(InsertMode.add)
        raw[:, k] = b.array[:num_owned]
    x = space.tabulate_dof_coordinates()[: num_owned // gdim, :gdim]
    G = gram(mesh.comm, raw, rigid_motions(x, point))
    return np.asfortranarray(raw @ np.linalg.inv(G).T)


def border_rows(
    num_owned: int, parts: Sequence[tuple[NDArray[np.int32], Array]]
) -> scipy.sparse.csr_matrix:
    """Cᵀ of all averaged interfaces side by side, owned rows.

    Args:
        num_owned: Owned degrees of freedom.
        parts: For each interface its owned degrees of freedom and its rows there, shape
            (len(dofs), 6).
    """
    blocks = []
    for dofs, rows in parts:
        width = rows.shape[1]
        indices = np.repeat(dofs, width), np.tile(np.arange(width), len(dofs))
        shape = num_owned, width
        blocks.append(scipy.sparse.coo_matrix((rows.ravel(), indices), shape=shape))
    return scipy.sparse.hstack(blocks, format="csr")
