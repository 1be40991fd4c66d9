"""Strength and fatigue life of flexible bodies over a run.

The examples of this folder assume the following lines:

    >>> import numpy as np
    >>> import dolfinx_mbd as mbd
"""

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc

__all__: list[str] = []
