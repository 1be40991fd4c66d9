"""Bodies from other finite element programs: their matrices become a `ReducedBody`.

    matrices = read_matrices("K.mtx", "M.mtx", "nodes.csv").in_si(length=1e-3, mass=1e3)
    ends = {"big_end": NodeInterface(nodes), "small_end": NodeInterface(others, kind="averaged")}
    rod = reduce_matrices(matrices, ends, num_modes=20)

Full matrices of a solid with the positions of its nodes give everything but geometric stiffening.
Those that were reduced already (`ReducedMatrices`) give the exact linear body and exact rigid mass
properties, but only part of the inertia that couples rotation and deformation; `reduced` says
which.
"""

from __future__ import annotations

from dolfinx_mbd.imports.craig_bampton import NodeInterface, reduce_matrices
from dolfinx_mbd.imports.files import read_matrices
from dolfinx_mbd.imports.matrices import FullMatrices, MatrixError, MatrixFileError
from dolfinx_mbd.imports.nastran import read_dmig, read_op4
from dolfinx_mbd.imports.reduced import FirstOrderInertiaWarning, ReducedMatrices, body_from_reduced

__all__ = [
    "FirstOrderInertiaWarning",
    "FullMatrices",
    "MatrixError",
    "MatrixFileError",
    "NodeInterface",
    "ReducedMatrices",
    "body_from_reduced",
    "read_dmig",
    "read_matrices",
    "read_op4",
    "reduce_matrices",
]
