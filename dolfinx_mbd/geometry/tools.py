"""Tools of the parametric parts: extrusion, detection of bores, and repeatable meshes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dolfinx_mbd.checks import memory
from dolfinx_mbd.errors import MeshWarning, SolverError, warn

__all__ = ["extrude", "is_bore", "mesh_volumes"]

WORST = 0.1  # smallest scaled Jacobian that is accepted
ELEMENT = 300  # lower bound of the memory that gmsh needs for each tetrahedron, bytes
MANY = 250_000  # number of tetrahedra, about a million degrees of freedom, that causes a warning

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
    """Mesh volumes with tetrahedra of a largest size (m), in the same way at each run."""
    tags = list(volumes)
    volume = sum(model.occ.getMass(3, tag) for tag in tags)
    count = 6 * 2**0.5 * volume / size**3 if size**3 > 0 else math.inf  # regular tetrahedra
    memory("size", size, ELEMENT * count)
    if count > MANY:
        text = f"elements of {size:g} m divide the {volume:.3g} m³ of the part into about"
        text = f"{text} {count:.2g} tetrahedra, and meshing takes long"
        text = f"{text}; check the dimensions, which are in metres, or choose a larger size"
        warn(MeshWarning(text, quantity="number of cells", value=count, limit=MANY))
    for share, around in _ATTEMPTS:
        sizes = {"Mesh.MeshSizeMax": share * size, "Mesh.MeshSizeFromCurvature": around}
        with _options({**_REPEATABLE, **sizes}):
            model.mesh.clear()
            model.mesh.generate(3)
            model.mesh.setOrder(order)
        elements = [element for tag in tags for element in model.mesh.getElements(3, tag)[1][0]]
        if min(model.mesh.getElementQualities(elements, "minSJ")) > WORST:
            return
    text = f"the mesh of size {size:g} m has nearly inverted elements; choose a smaller size"
    raise SolverError(text)


def extrude(occ: Any, surface: int, dz: float) -> tuple[int, int]:
    """Return the volume that a surface sweeps along z."""
    return next((dim, int(tag)) for dim, tag in occ.extrude([(2, surface)], 0, 0, dz) if dim == 3)


def is_bore(model: Any, surface: int, x: float, radius: float) -> bool:
    """Return whether a surface lies on the cylinder about the line through (x, 0) along z."""
    if model.getType(2, surface) != "Cylinder":
        return False
    (u0, v0), (u1, v1) = model.getParametrizationBounds(2, surface)
    points = [
        model.getValue(2, surface, [u0 + share * (u1 - u0), v0 + share * (v1 - v0)])
        for share in (0.2, 0.5, 0.8)
    ]
    return all(abs(math.hypot(p[0] - x, p[1]) - radius) <= 1e-6 * radius for p in points)


@contextmanager
def _options(values: Mapping[str, float]) -> Iterator[None]:
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
