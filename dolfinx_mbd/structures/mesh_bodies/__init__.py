"""Bodies of a mechanism on their whole mesh, with large deformation, in parallel."""

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.structures.mesh_bodies.mesh_body import MeshBody
from dolfinx_mbd.structures.mesh_bodies.mesh_motion import MeshMotion

__all__ = ["MeshBody", "MeshMotion"]
