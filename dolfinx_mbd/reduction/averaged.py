"""Averaged interfaces (RBE3): their motion is a mean over facets that remain free to deform.

The motion d + θ×(x - x_k) of an interface with the point x_k is the rigid motion closest to u on
its facets Γ in the mean square. This motion is linear in u: (d, θ) = C u are six (in the plane
three) integrals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy
import ufl
from dolfinx import fem
from dolfinx.la import InsertMode
from dolfinx.mesh import meshtags
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.assembly import rigid_motions
from dolfinx_mbd.linalg.blocks import gram

if TYPE_CHECKING:
    from dolfinx_mbd.reduction.interfaces import MeshInterface


def averaged_rows(space: fem.FunctionSpace, facets: NDArray[np.int32], point: Array) -> Array:
    """Return Cᵀ of an averaged interface, shape (owned dofs, 6), or (owned dofs, 3) in the plane.

    C times the rigid motions about `point` is the identity. Collective.
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
    num_owned: int, interfaces: Sequence[MeshInterface]
) -> scipy.sparse.csr_matrix | None:
    """Return the owned rows of Cᵀ of all averaged interfaces side by side, or None without any."""
    blocks = []
    for i in interfaces:
        if i.rows is not None:
            width = i.rows.shape[1]
            indices = np.repeat(i.dofs, width), np.tile(np.arange(width), len(i.dofs))
            entries = i.rows.ravel(), indices
            blocks.append(scipy.sparse.coo_matrix(entries, shape=(num_owned, width)))
    return scipy.sparse.hstack(blocks, format="csr") if blocks else None
