"""Strength and fatigue life of flexible bodies over a run.

The examples of this folder assume the following lines:

    >>> import numpy as np
    >>> import ufl
    >>> from dolfinx.mesh import create_box, locate_entities_boundary
    >>> from mpi4py import MPI
    >>> import dolfinx_mbd as mbd
    >>> box = create_box(MPI.COMM_SELF, [(0, 0, 0), (0.2, 0.02, 0.01)], [8, 1, 1])
    >>> left = locate_entities_boundary(box, 2, lambda x: np.isclose(x[0], 0.0))
    >>> right = locate_entities_boundary(box, 2, lambda x: np.isclose(x[0], 0.2))
    >>> ends = {"left": left, "right": right}
    >>> options = mbd.ReductionOptions(static_correction=True)
    >>> bar = mbd.reduce(box, mbd.STEEL, interfaces=ends, num_modes=2, options=options)
    >>> eta = np.full(bar.body.num_modes, 1e-6)
"""

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.durability.cycles import Cycles, count_cycles, equivalent_range
from dolfinx_mbd.durability.fatigue_material import (
    EXAMPLES,
    FatigueMaterial,
    SNLine,
    StrainLife,
    read_fatigue_materials,
)
from dolfinx_mbd.durability.fatigue_result import DamagedPlace, FatigueResult, FatigueTable
from dolfinx_mbd.durability.inertia_relief import LoadCases, inertia_relief
from dolfinx_mbd.durability.life import fatigue
from dolfinx_mbd.durability.load_spectra import load_spectrum
from dolfinx_mbd.durability.static_strength import strength
from dolfinx_mbd.durability.strength_result import Strength, WeakPlace
from dolfinx_mbd.lazy import names_in

__all__ = [
    "EXAMPLES",
    "Cycles",
    "DamagedPlace",
    "FatigueMaterial",
    "FatigueResult",
    "FatigueTable",
    "LoadCases",
    "SNLine",
    "StrainLife",
    "Strength",
    "WeakPlace",
    "count_cycles",
    "equivalent_range",
    "fatigue",
    "inertia_relief",
    "load_spectrum",
    "read_fatigue_materials",
    "strength",
]

__getattr__ = names_in(__name__, "acoustics", "recovery")
