"""Cables and slender rods with large rotations as bodies in absolute coordinates."""

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.structures.cables.cable_body import CableBody, CableMotion

__all__ = ["CableBody", "CableMotion"]
