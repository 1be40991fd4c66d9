"""Import of bodies from the matrices of other finite element programs.

Full matrices of a solid, together with the positions of its nodes, determine everything except
geometric stiffening. Matrices that are already reduced (`ReducedMatrices`) determine the linear
body and its rigid mass properties exactly, but only part of the inertia that couples rotation and
deformation; see the module `reduced_matrices`.

The examples of this folder assume the following lines, which assemble the matrices of a small block
in place of another program:

    >>> import numpy as np
    >>> import ufl
    >>> from dolfinx import fem, mesh
    >>> from mpi4py import MPI
    >>> import dolfinx_mbd as mbd
    >>> from dolfinx_mbd import forms
    >>> from dolfinx_mbd.io.export import export
    >>> from dolfinx_mbd.io.export.superelement import superelement
    >>> from dolfinx_mbd.io.imports import *
    >>> block = mesh.create_box(MPI.COMM_SELF, [(0, 0, 0), (0.2, 0.1, 0.1)], [2, 1, 1])
    >>> V = fem.functionspace(block, ("Lagrange", 1, (3,)))
    >>> u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    >>> stiffness = forms.elastic_stiffness(u, v, forms.STEEL)
    >>> mass = forms.mass(u, v, forms.STEEL.density)
    >>> K, M = (fem.assemble_matrix(fem.form(a)).to_scipy().tocsr() for a in (stiffness, mass))
    >>> x = V.tabulate_dof_coordinates()
    >>> left, right = np.flatnonzero(x[:, 0] < 0.01), np.flatnonzero(x[:, 0] > 0.19)
    >>> ends = {"left": NodeInterface(left), "right": NodeInterface(right)}
    >>> body = reduce_matrices(FullMatrices(K, M, x), ends, num_modes=3)
"""

from dolfinx_mbd.io.imports.ansys import read_ansys
from dolfinx_mbd.io.imports.calculix import read_calculix
from dolfinx_mbd.io.imports.full_matrices import FullMatrices, MatrixError, MatrixFileError
from dolfinx_mbd.io.imports.matrix_files import read_matrices
from dolfinx_mbd.io.imports.nastran import read_dmig, read_op4
from dolfinx_mbd.io.imports.nastran_op2 import read_op2
from dolfinx_mbd.io.imports.nodal_modes import NodalModes, read_universal
from dolfinx_mbd.io.imports.reduced_matrices import (
    FirstOrderInertiaWarning,
    ReducedMatrices,
    body_from_reduced,
)
from dolfinx_mbd.io.imports.sparse_reduction import NodeInterface, reduce_matrices

__all__ = [
    "FirstOrderInertiaWarning",
    "FullMatrices",
    "MatrixError",
    "MatrixFileError",
    "NodalModes",
    "NodeInterface",
    "ReducedMatrices",
    "body_from_reduced",
    "read_ansys",
    "read_calculix",
    "read_dmig",
    "read_matrices",
    "read_op2",
    "read_op4",
    "read_universal",
    "reduce_matrices",
]
