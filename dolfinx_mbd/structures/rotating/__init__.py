"""Bodies that rotate steadily: frequencies, Campbell diagrams, loss of stability.

The examples of this folder assume the following lines:

    >>> import numpy as np
    >>> from dolfinx.mesh import create_box, locate_entities_boundary
    >>> from mpi4py import MPI
    >>> import dolfinx_mbd as mbd
    >>> from dolfinx_mbd.structures.rotating import *
    >>> mesh = create_box(MPI.COMM_SELF, [(0, 0, 0), (0.2, 0.02, 0.02)], [4, 1, 1])
    >>> root = locate_entities_boundary(mesh, 2, lambda x: np.isclose(x[0], 0.0))
    >>> structure = mbd.structures.rotating_structure(mesh, mbd.STEEL, held={"root": root})
    >>> modes = mbd.structures.rotating_modes(structure, 100.0, num_modes=2)
    >>> energy = lambda u: mbd.forms.saint_venant_kirchhoff(u, mbd.STEEL)
"""

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.structures.rotating.spinning_hyperelastic import (
    SpinningEquilibrium,
    spinning_equilibrium,
)
from dolfinx_mbd.structures.rotating.spinning_modes import RotatingModes, rotating_modes
from dolfinx_mbd.structures.rotating.stability import (
    Campbell,
    CriticalSpeed,
    campbell,
    critical_speed,
)
from dolfinx_mbd.structures.rotating.structure import RotatingStructure, rotating_structure

__all__ = [
    "Campbell",
    "CriticalSpeed",
    "RotatingModes",
    "RotatingStructure",
    "SpinningEquilibrium",
    "campbell",
    "critical_speed",
    "rotating_modes",
    "rotating_structure",
    "spinning_equilibrium",
]
