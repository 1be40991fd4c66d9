"""Displacement, stress and section forces on the mesh, from the motion of a reduced body."""

from __future__ import annotations

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.recovery.sections import section_forces
from dolfinx_mbd.recovery.skin_stress import skin_stress, skin_values
from dolfinx_mbd.recovery.stress import Recovery, envelope, recover
from dolfinx_mbd.recovery.stressed_places import most_stressed

__all__ = [
    "Recovery",
    "envelope",
    "most_stressed",
    "recover",
    "section_forces",
    "skin_stress",
    "skin_values",
]
