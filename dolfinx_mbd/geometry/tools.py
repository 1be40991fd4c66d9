"""Tools of the parametric parts: extrusion, detection of bores, and repeatable meshes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dolfinx_mbd.checks import memory
from dolfinx_mbd.errors import SolverError

__all__ = ["extrude", "is_bore", "mesh_volumes", "options", "worst_jacobian"]

WORST = 0.1
"""Smallest scaled Jacobian that is accepted."""

ELEMENT = 300
"""Lower bound of the memory that gmsh needs for each tetrahedron, bytes."""

_REPEATABLE = {
    "General.NumThreads": 1,
    "Mesh.MaxNumThreads1D": 1,
    "Mesh.MaxNumThreads2D": 1,
    "Mesh.MaxNumThreads3D": 1,
    "Mesh.RandomSeed": 1,
    "Mesh.Algorithm": 6,  # Frontal-Delaunay
    "Mesh.Algorithm3D": 1,  # Delaunay
    "Mesh.MeshSizeMin": 0,
    "Mesh.MeshSizeFactor": 1,
    "Mesh.MeshSizeFromPoints": 0,
    "Mesh.MeshSizeExtendFromBoundary": 1,
    "Mesh.Optimize": 1,
    "Mesh.ElementOrder": 1,
    "Mesh.SecondOrderLinear": 0,
    "Mesh.HighOrderOptimize": 0,  # (it can abort the process with distorted elements)
}
"""Options of gmsh with which a mesh does not depend on the machine."""

_ATTEMPTS = ((1.0, 12), (1.0, 18), (0.7, 18), (0.5, 27), (0.3, 40))
"""Fraction of the size, and number of elements around a circle, of successive attempts."""


def mesh_volumes(model: Any, volumes: Iterable[int], size: float, order: int) -> None:
    """Mesh volumes with tetrahedra, in the same way at each run.

    Args:
        model: `gmsh.model`.
        volumes: Tags of the volumes.
        size: Largest element size, m.
        order: Order of the elements, 1 or 2.

    Raises:
        InputError: The mesh does not fit into memory.
        SolverError: Elements are too distorted even in the last of `_ATTEMPTS`.
    """
    tags = list(volumes)
    volume = sum(model.occ.getMass(3, tag) for tag in tags)
    memory("size", size, ELEMENT * 6 * 2**0.5 * volume / size**3 if size**3 > 0 else math.inf)
    for share, around in _ATTEMPTS:
        sizes = {"Mesh.MeshSizeMax": share * size, "Mesh.MeshSizeFromCurvature": around}
        with options({**_REPEATABLE, **sizes}):
            model.mesh.clear()
            model.mesh.generate(3)
            model.mesh.setOrder(order)
        if min(worst_jacobian(model, tag) for tag in tags) > WORST:
            return
    raise SolverError(
        f"the mesh of size {size:g} m has nearly inverted elements; choose a smaller size"
    )


def worst_jacobian(model: Any, volume: int) -> float:
    """Return the smallest scaled Jacobian of a volume; it is negative for inverted elements."""
    _, elements, _ = model.mesh.getElements(3, volume)
    return float(min(model.mesh.getElementQualities(elements[0], "minSJ")))


def extrude(occ: Any, surface: int, dz: float) -> tuple[int, int]:
    """Return the volume that a surface sweeps along z."""
    return next((dim, int(tag)) for dim, tag in occ.extrude([(2, surface)], 0, 0, dz) if dim == 3)


def is_bore(model: Any, surface: int, x: float, radius: float) -> bool:
    """Return whether a surface lies on the cylinder about the line through (x, 0) along z."""
    if model.getType(2, surface) != "Cylinder":
        return False
    (u0, v0), (u1, v1) = model.getParametrizationBounds(2, surface)
    for share in (0.2, 0.5, 0.8):
        uv = [u0 + share * (u1 - u0), v0 + share * (v1 - v0)]
        px, py, _ = model.getValue(2, surface, uv)
        if abs(math.hypot(px - x, py) - radius) > 1e-6 * radius:
            return False
    return True


@contextmanager
def options(values: Mapping[str, float]) -> Iterator[None]:
    """Set options of gmsh, and restore them afterwards."""
    import gmsh

    before = {name: gmsh.option.getNumber(name) for name in values}
    try:
        for name, value in values.items():
            gmsh.option.setNumber(name, value)
        yield
    finally:
        for name, value in before.items():
            gmsh.option.setNumber(name, value)
