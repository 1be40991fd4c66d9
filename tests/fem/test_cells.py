"""Every kind of cell in every degree: mass and inertia, rigid motion, consistent frequencies.

V8 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dolfinx.mesh import CellType
from mpi4py import MPI

from dolfinx_mbd import ElasticModel
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.fem import compat
from dolfinx_mbd.fem.meshing import TaggedMesh, build_mesh
from dolfinx_mbd.fem.modal.natural_modes import modal_analysis
from dolfinx_mbd.forms import STEEL
from dolfinx_mbd.reduction import reduce
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box
from tests.models.plates import plate

PLATE: dict[str, Any] = {"plane": "stress", "thickness": WIDTH}
INNER, OUTER, DEPTH = 0.02, 0.03, 0.025
"""A ring, which needs curved cells."""

V8 = {3: [3311.33, 5286.47, 8732.7], 2: [5286.47, 13132.0]}
"""Frequencies of the free bar by dimension, Hz: upper bounds by Ritz's method."""

STRAIGHT = {
    "tetrahedron": lambda comm: box(comm, cells=(4, 1, 1), cell=CellType.tetrahedron),
    "hexahedron": lambda comm: box(comm, cells=(4, 1, 1)),
    "triangle": lambda comm: plate(comm, cells=(4, 1), cell=CellType.triangle),
    "quadrilateral": lambda comm: plate(comm, cells=(4, 1)),
}


def _options(mesh: TaggedMesh) -> dict[str, Any]:
    """Return the options of plane bodies, or none for solids."""
    return PLATE if mesh.mesh.topology.dim == 2 else {}


@pytest.mark.parametrize("cell", STRAIGHT)
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_mass_and_inertia_are_exact(comm: MPI.Intracomm, cell: str, degree: int) -> None:
    mesh = STRAIGHT[cell](comm)
    model = ElasticModel(mesh, STEEL, degree=degree, **_options(mesh))
    body = reduce(model, interfaces=["left", "right"], num_modes=1).body
    a, b, c = LENGTH, HEIGHT, WIDTH
    m = STEEL.density * a * b * c
    assert body.total_mass == pytest.approx(m, rel=1e-12)
    z = 0.0 if mesh.mesh.topology.dim == 2 else c / 2
    assert body.centre == pytest.approx([a / 2, b / 2, z], rel=1e-12)
    J = np.diag([b * b + c * c, c * c + a * a, a * a + b * b]) * m / 12
    assert np.allclose(body.central_inertia, J, atol=1e-12 * J.max())
    _rigid_motion_is_exact(body)


def _rigid_motion_is_exact(body: ReducedBody) -> None:
    """Assert that the modes are M-orthogonal to the six rigid motions."""
    S, H = body.first_moments, body.second_moments
    size = np.sqrt(body.total_mass)
    assert np.abs(S[1:]).max() < 1e-9 * size
    # Angular momenta of the modes: the antisymmetric part of ∫ρ x⊗ψ.
    angular = H[0, 1:] - H[0, 1:].transpose(0, 2, 1)
    assert np.abs(angular).max() < 1e-9 * size * np.sqrt(np.trace(body.inertia) / size**2)
    assert body.frequencies.min() > 100


@pytest.mark.parametrize("cell", STRAIGHT)
def test_frequencies_fall_with_the_degree_to_the_same_limit(comm: MPI.Intracomm, cell: str) -> None:
    """Cubics are within 0.5 % (in the plane 1 %) of case V8, because a larger space is softer."""
    mesh = STRAIGHT[cell](comm)
    dim = mesh.mesh.topology.dim
    frequencies = [
        modal_analysis(
            ElasticModel(mesh, STEEL, degree=degree, **_options(mesh)), num_modes=4
        ).frequencies
        for degree in (1, 2, 3)
    ]
    assert (frequencies[0] > frequencies[1]).all()
    assert (frequencies[1] > frequencies[2]).all()
    count = len(V8[dim])
    assert frequencies[2][:count] == pytest.approx(V8[dim], rel={3: 0.005, 2: 0.01}[dim])


def _ring(recombine: bool, solid: bool, size: float = 0.012) -> Callable[[Any], None]:
    """Return a ring of second-order cells with the groups "bore" and "rim" (outer surface)."""

    def build(model: Any) -> None:
        occ = model.occ
        ring, _ = occ.cut(
            [(2, occ.addDisk(0, 0, 0, OUTER, OUTER))], [(2, occ.addDisk(0, 0, 0, INNER, INNER))]
        )
        # In two halves that share their sides, so that curves are not periodic.
        half = [(2, occ.addRectangle(-2 * OUTER, 0, 0, 4 * OUTER, 2 * OUTER))]
        upper, _ = occ.intersect(ring, half, removeObject=False, removeTool=False)
        lower, _ = occ.cut(ring, half)
        occ.fragment(upper, lower)
        occ.synchronize()
        faces = [tag for _, tag in model.getEntities(2)]
        if solid:
            layers = {"numElements": [2], "recombine": True} if recombine else {}
            swept = occ.extrude([(2, f) for f in faces], 0, 0, DEPTH, **layers)
            occ.synchronize()
            faces = [tag for dim, tag in swept if dim == 3]
        dim = 3 if solid else 2
        model.addPhysicalGroup(dim, faces, name="ring")
        for name, radius in (("bore", INNER), ("rim", OUTER)):
            model.addPhysicalGroup(dim - 1, _round(model, dim - 1, radius), name=name)
        model.mesh.setSize(model.getEntities(0), size)
        for tag in [t for _, t in model.getEntities(2)] if recombine else ():
            model.mesh.setRecombine(2, tag)
        model.mesh.generate(dim)
        model.mesh.setOrder(2)

    return build


def _round(model: Any, dim: int, radius: float) -> list[int]:
    """Return the entities whose points are all at a given radius from the z axis."""
    tags = []
    for _, tag in model.getEntities(dim):
        low, high = (np.array(b) for b in model.getParametrizationBounds(dim, tag))
        points = [model.getValue(dim, tag, low + s * (high - low)) for s in (0.1, 0.4, 0.9)]
        if all(abs(np.hypot(x, y) - radius) < 1e-6 * radius for x, y, _ in points):
            tags.append(tag)
    return tags


CURVED = {
    "tetrahedron": _ring(False, True),
    "hexahedron": _ring(True, True),
    "triangle": _ring(False, False),
    "quadrilateral": _ring(True, False),
}


@pytest.mark.slow
@pytest.mark.parametrize("cell", CURVED)
@pytest.mark.parametrize("degree", [2, 3])
def test_curved_ring(comm: MPI.Intracomm, cell: str, degree: int) -> None:
    """Mass and inertia are within 1e-3, as the error of a quadratic boundary has order four."""
    mesh = build_mesh(CURVED[cell], comm)
    assert mesh.mesh.topology.cell_name() == cell
    assert compat.geometry_degree(mesh.mesh) == 2
    solid = mesh.mesh.topology.dim == 3
    depth = DEPTH if solid else 0.004
    options = {} if solid else {"plane": "stress", "thickness": depth}
    model = ElasticModel(mesh, STEEL, degree=degree, **options)  # type: ignore[arg-type]
    body = reduce(model, interfaces=["bore"], num_modes=3).body
    m = STEEL.density * np.pi * (OUTER**2 - INNER**2) * depth
    assert body.total_mass == pytest.approx(m, rel=1e-3)
    radii = OUTER**2 + INNER**2
    J = np.diag([3 * radii + depth**2] * 2 + [6 * radii]) * m / 12
    assert np.allclose(body.central_inertia, J, atol=1e-3 * J.max())
    middle = depth / 2 if solid else 0.0
    assert body.centre == pytest.approx([0, 0, middle], abs=1e-3 * OUTER)
    assert body.interface("bore").point == pytest.approx([0, 0, middle], abs=1e-3 * OUTER)
    assert np.allclose(body.interface("bore").axes[:, 2], [0, 0, 1])
    _rigid_motion_is_exact(body)


def test_frequencies_of_plane_rings_agree(comm: MPI.Intracomm) -> None:
    """The lowest (double) modes of free rings agree for both cells and for degree 2 and 3."""
    options: dict[str, Any] = {"plane": "stress", "thickness": 0.004}
    meshes = [build_mesh(_ring(recombine, False, 0.005), comm) for recombine in (False, True)]
    frequencies = [
        modal_analysis(ElasticModel(mesh, STEEL, degree=degree, **options), num_modes=2).frequencies
        for mesh in meshes
        for degree in (2, 3)
    ]
    finest = frequencies[-1].mean()
    for pair in frequencies:
        assert pair.mean() == pytest.approx(finest, rel=0.01)
        assert pair[1] == pytest.approx(pair[0], rel=0.01)


@pytest.mark.parametrize("cell", CURVED)
def test_degree_below_the_geometry_raises_an_error(comm: MPI.Intracomm, cell: str) -> None:
    """The space would not contain rigid rotations."""
    mesh = build_mesh(CURVED[cell], comm)
    with pytest.raises(ValueError, match=r"degree 1 and the mesh geometric order 2.*degree=2"):
        reduce(ElasticModel(mesh, STEEL, degree=1, **_options(mesh)), interfaces=["bore"])


@pytest.mark.parametrize("cell", STRAIGHT)
def test_skin_of_every_cell_is_triangles(comm: MPI.Intracomm, cell: str) -> None:
    """Quadrilateral faces are split in two; area and, in space, the enclosed volume are exact."""
    mesh = STRAIGHT[cell](comm)
    skin = reduce(
        ElasticModel(mesh, STEEL, **_options(mesh)), interfaces=["left"], num_modes=0
    ).body.skin
    assert skin is not None
    x = skin.points[skin.triangles]
    normal = np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]) / 2
    a, b, c = LENGTH, HEIGHT, WIDTH
    area = a * b if mesh.mesh.topology.dim == 2 else 2 * (a * b + b * c + c * a)
    assert np.linalg.norm(normal, axis=1).sum() == pytest.approx(area, rel=1e-12)
    if mesh.mesh.topology.dim == 3:
        volume = np.einsum("ki,ki->", x[:, 0], normal) / 3
        assert volume == pytest.approx(a * b * c, rel=1e-12)
