"""Reduced flexible bodies from a mesh with interfaces: modes, inertia, loads, stiffening.

The examples of this folder assume the following lines:

    >>> import numpy as np
    >>> from dolfinx.mesh import create_box, locate_entities_boundary, meshtags
    >>> from mpi4py import MPI
    >>> import dolfinx_mbd as mbd
    >>> box = create_box(MPI.COMM_SELF, [(0, 0, 0), (0.2, 0.02, 0.01)], [8, 1, 1])
    >>> left = locate_entities_boundary(box, 2, lambda x: np.isclose(x[0], 0.0))
    >>> right = locate_entities_boundary(box, 2, lambda x: np.isclose(x[0], 0.2))
    >>> facets, tags = np.concatenate([left, right]), np.repeat([1, 2], len(left))
    >>> order = np.argsort(facets)
    >>> facet_tags = meshtags(box, 2, facets[order], tags[order].astype(np.int32))
    >>> groups = {"left": (2, 1), "right": (2, 2)}
    >>> mesh = mbd.fem.TaggedMesh(box, facet_tags=facet_tags, groups=groups)
    >>> bar = mbd.reduce(mesh, mbd.STEEL, interfaces=["left", "right"], num_modes=2)
"""

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.fem.interfaces.interfaces import InterfaceSpec
from dolfinx_mbd.reduction.distributed_loads import body_force, pressure, traction
from dolfinx_mbd.reduction.mesh_damping import Viscous, with_damping
from dolfinx_mbd.reduction.reducer import Reducer, reduce
from dolfinx_mbd.reduction.reduction_options import ReductionOptions
from dolfinx_mbd.reduction.result import Reduction

__all__ = [
    "InterfaceSpec",
    "Reducer",
    "Reduction",
    "ReductionOptions",
    "Viscous",
    "body_force",
    "pressure",
    "reduce",
    "traction",
    "with_damping",
]
