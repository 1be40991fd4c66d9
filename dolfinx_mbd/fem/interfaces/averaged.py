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
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.linalg.blocks import gram

if TYPE_CHECKING:
    from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface


def averaged_rows(space: fem.FunctionSpace, facets: NDArray[np.int32], point: Array) -> Array:
    """Return Cᵀ of an averaged interface, shape (owned dofs, 6), or (owned dofs, 3) in the plane.

    C times the rigid motions about `point` is the identity. Collective.
    """
    moments = InterfaceMoments(space, facets, point)
    raw = moments.assembled(moments.form)
    G = gram(space.mesh.comm, raw, rigid_motions(owned_positions(space), point))
    return np.asfortranarray(raw @ np.linalg.inv(G).T)


class InterfaceMoments:
    """The integrals ∫ r·v over the facets of an interface for unit rigid motions r about a point.

    `form` is the integral for a rigid motion `shift` + `spin` (x − `origin`).
    """

    def __init__(self, space: fem.FunctionSpace, facets: NDArray[np.int32], point: Array) -> None:
        mesh = space.mesh
        gdim, fdim = mesh.geometry.dim, mesh.topology.dim - 1
        tags = meshtags(mesh, fdim, facets, np.ones(len(facets), dtype=np.int32))
        self.ds = ufl.Measure("ds", domain=mesh, subdomain_data=tags)(1)
        self.test = ufl.TestFunction(space)
        self.shift, origin = (fem.Constant(mesh, np.zeros(gdim)) for _ in range(2))
        self.spin = fem.Constant(mesh, np.zeros((gdim, gdim)))
        origin.value[:] = point
        motion = self.shift + self.spin * (ufl.SpatialCoordinate(mesh) - origin)
        self.form = ufl.inner(motion, self.test) * self.ds
        self._size = gdim * space.dofmap.index_map.size_local

    def assembled(self, form: ufl.Form) -> Array:
        """Return the vectors of a form for all unit motions, shape (owned dofs, motions)."""
        gdim, compiled = len(self.shift.value), compiled_form(form)
        units = rigid_motions(np.vstack([np.zeros(gdim), np.eye(gdim)]))  # at 0 and on the axes
        units = units.reshape(gdim + 1, gdim, -1)
        raw = np.zeros((self._size, units.shape[2]), order="F")
        for k in range(units.shape[2]):
            self.shift.value[:] = units[0, :, k]
            self.spin.value[:] = (units[1:, :, k] - units[0, :, k]).T
            b = fem.assemble_vector(compiled)
            b.scatter_reverse(InsertMode.add)
            raw[:, k] = b.array[: self._size]
        return raw


def owned_positions(space: fem.FunctionSpace) -> Array:
    """Return the positions of the owned blocks, shape (owned blocks, dim), m."""
    count, gdim = space.dofmap.index_map.size_local, space.mesh.geometry.dim
    return space.tabulate_dof_coordinates()[:count, :gdim]


def border_rows(
    num_owned: int, interfaces: Sequence[MeshInterface]
) -> scipy.sparse.csr_matrix | None:
    """Return the owned rows of Cᵀ of all averaged interfaces side by side, or None without any."""
    blocks = []
    for interface in interfaces:
        if interface.rows is not None:
            width = interface.rows.shape[1]
            indices = (
                np.repeat(interface.dofs, width),
                np.tile(np.arange(width), len(interface.dofs)),
            )
            entries = interface.rows.ravel(), indices
            blocks.append(scipy.sparse.coo_matrix(entries, shape=(num_owned, width)))
    return scipy.sparse.hstack(blocks, format="csr") if blocks else None
