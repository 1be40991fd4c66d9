"""Sound power of vibrating bodies, from the velocities of their surfaces.

The examples of this folder assume the following lines:

    >>> import numpy as np
    >>> from dolfinx.mesh import create_box, locate_entities_boundary
    >>> from mpi4py import MPI
    >>> import dolfinx_mbd as mbd
    >>> box = create_box(MPI.COMM_SELF, [(0, 0, 0), (0.2, 0.1, 0.005)], [8, 4, 1])
    >>> left = locate_entities_boundary(box, 2, lambda x: np.isclose(x[0], 0.0))
    >>> plate = mbd.reduce(box, mbd.STEEL, interfaces={"left": left}, num_modes=4)
    >>> flexible = mbd.FlexibleBody("plate", plate.body)
    >>> ground = mbd.Ground({"wall": mbd.Frame((0.0, 0.05, 0.0025))})
    >>> clamp = mbd.fixed("clamp", ground.frame("wall"), flexible.frame("left"))
    >>> system = mbd.System([ground, flexible], [clamp], gravity=(0.0, 0.0, -9.81))
    >>> run = mbd.simulate(system, t_end=0.02, dt=1e-4, elastic_start="undeformed")
"""

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.durability.acoustics.radiated_power import (
    PowerSpectrum,
    RadiatedPower,
    radiated_power,
)
from dolfinx_mbd.durability.acoustics.radiating_surface import RadiatingSurface, radiating_surface

__all__ = [
    "PowerSpectrum",
    "RadiatedPower",
    "RadiatingSurface",
    "radiated_power",
    "radiating_surface",
]
