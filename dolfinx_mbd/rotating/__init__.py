"""Bodies that rotate steadily: frequencies, Campbell diagrams, loss of stability."""

from __future__ import annotations

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.rotating.hyperelastic import SpinningEquilibrium, spinning_equilibrium
from dolfinx_mbd.rotating.modes import RotatingModes, rotating_modes
from dolfinx_mbd.rotating.stability import Campbell, CriticalSpeed, campbell, critical_speed
from dolfinx_mbd.rotating.structure import RotatingStructure, rotating_structure

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
