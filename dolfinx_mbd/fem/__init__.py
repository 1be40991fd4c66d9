"""From a mesh to matrices: meshes with tags, materials, assembly, inertia operators, fields."""

from __future__ import annotations

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.fem.meshing import (
    TaggedMesh,
    build_mesh,
    read_mesh,
    write_mesh,
)
from dolfinx_mbd.fem.operators import (
    apply_inertia,
    frame_load,
    inertia_matrix,
)

__all__ = [
    "ElasticModel",
    "TaggedMesh",
    "apply_inertia",
    "build_mesh",
    "frame_load",
    "inertia_matrix",
    "read_mesh",
    "write_mesh",
]
