"""Displacement, stress and section forces on the mesh, from the motion of a reduced body.

The examples of this folder assume the following lines:

    >>> import numpy as np
    >>> from dolfinx.mesh import create_box, locate_entities_boundary
    >>> from mpi4py import MPI
    >>> import dolfinx_mbd as mbd
    >>> box = create_box(MPI.COMM_SELF, [(0, 0, 0), (0.2, 0.02, 0.01)], [8, 1, 1])
    >>> left = locate_entities_boundary(box, 2, lambda x: np.isclose(x[0], 0.0))
    >>> right = locate_entities_boundary(box, 2, lambda x: np.isclose(x[0], 0.2))
    >>> ends = {"left": left, "right": right}
    >>> bar = mbd.reduce(box, mbd.STEEL, interfaces=ends, num_modes=2)
    >>> eta = np.full(bar.body.num_modes, 1e-6)
"""

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.durability.recovery.gauge_recovery import GaugeSpec, gauges
from dolfinx_mbd.durability.recovery.mesh_recovery import MeshRecovery
from dolfinx_mbd.durability.recovery.mode_comparison import ModeComparison, compare_with_modes
from dolfinx_mbd.durability.recovery.sections import section_forces
from dolfinx_mbd.durability.recovery.skin_stress import skin_stress, skin_values
from dolfinx_mbd.durability.recovery.stress import Recovery, envelope, recover
from dolfinx_mbd.durability.recovery.stressed_places import most_stressed

__all__ = [
    "GaugeSpec",
    "MeshRecovery",
    "ModeComparison",
    "Recovery",
    "compare_with_modes",
    "envelope",
    "gauges",
    "most_stressed",
    "recover",
    "section_forces",
    "skin_stress",
    "skin_values",
]
