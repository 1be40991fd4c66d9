"""What differs between the DOLFINx versions 0.9 to 0.11: one small function per difference.

No other module of the package asks which version it runs with.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from dolfinx.mesh import Mesh, MeshTags
from mpi4py import MPI

__all__ = ["geometry_degree", "geometry_dofmap", "gmsh_io", "model_to_mesh"]


def gmsh_io() -> ModuleType:
    """DOLFINx's module that reads gmsh models: `io.gmsh`, which was `io.gmshio` in 0.9."""
    try:
        return importlib.import_module("dolfinx.io.gmsh")
    except ModuleNotFoundError:
        return importlib.import_module("dolfinx.io.gmshio")


def model_to_mesh(
    model: Any, comm: MPI.Comm, gdim: int
) -> tuple[Mesh, MeshTags | None, MeshTags | None]:
    """`(mesh, cell_tags, facet_tags)` from the gmsh model on rank 0; `model` is not used elsewhere.

    Absent tags may be `None`.

    Note:
        Collective over `comm`.
    """
    mesh, cell_tags, facet_tags = tuple(gmsh_io().model_to_mesh(model, comm, 0, gdim=gdim))[:3]
    return mesh, cell_tags, facet_tags


def geometry_degree(mesh: Mesh) -> int:
    """Geometric order of a mesh: `geometry.cmap.degree`, where 0.11 prefers a list of maps."""
    geometry = mesh.geometry
    maps = getattr(geometry, "cmaps", None)
    return int((maps[0] if maps else geometry.cmap).degree)


def geometry_dofmap(mesh: Mesh) -> npt.NDArray[np.int32]:
    """Nodes of each local cell, shape (cells, nodes); 0.11 prefers a list of maps."""
    geometry = mesh.geometry
    maps = getattr(geometry, "dofmaps", None)
    if callable(maps):
        return maps(0)
    return maps[0] if maps else geometry.dofmap
