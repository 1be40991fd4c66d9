"""Surfaces of pages: exact to their steps for any mesh, and small."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.body import Skin
from dolfinx_mbd.plotting.viewer.page import asset, player
from dolfinx_mbd.plotting.viewer.surface_data import SurfaceData
from tests.plotting.pages import scene_in, surface_in
from tests.structures.mesh_bodies.models import STEEL, box, ends, slider_crank

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def one_rank() -> None:
    """Skip the test on other ranks than the first."""
    if MPI.COMM_WORLD.rank > 0:
        pytest.skip("one rank writes pages")


def sphere(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points on a sphere in random order, and the triangles of their convex hull."""
    from scipy.spatial import ConvexHull

    points = RNG.normal(size=(count, 3))
    points *= 0.2 / np.linalg.norm(points, axis=1)[:, None]
    return points + np.array([3.0, -1.0, 0.0]), ConvexHull(points).simplices


SURFACES = {
    "sphere": sphere(300),
    "one edge of three triangles": (RNG.normal(size=(5, 3)), [[0, 1, 2], [1, 0, 3], [4, 0, 1]]),
    "one edge of four": (RNG.normal(size=(6, 3)), [[0, 1, k] for k in (5, 3, 4, 2)]),
    "twice the same": (RNG.normal(size=(3, 3)), [[0, 1, 2], [2, 1, 0]]),
    "no area": (np.eye(3)[[0, 1, 1, 2]], [[0, 1, 2], [1, 1, 3], [2, 2, 2]]),
    "unused node": (RNG.normal(size=(6, 3)), [[5, 1, 0], [1, 5, 3]]),
    "no triangles": (RNG.normal(size=(2, 3)), np.zeros((0, 3), dtype=int)),
    "one point": (np.array([[1.0, 2.0, 3.0]]), np.zeros((0, 3), dtype=int)),
}


def stored(points: Any, triangles: Any, modes: Any, stress: Any, step: float) -> dict[str, Any]:
    """Return the part of a page that describes a surface, with the given step of its modes."""
    data, steps = SurfaceData(Skin(points, np.asarray(triangles), modes)), np.full(len(modes), step)
    part = {"points": data.points(), "triangles": data.triangles()}
    return part | {"modes": data.fields(modes, steps), "stress": data.fields(stress, 0 * steps)}


@pytest.mark.parametrize("name", SURFACES)
def test_what_the_page_contains(name: str) -> None:
    """Positions to half a step, modes to half the given step, triangles with their orientation.

    The step of positions is 2⁻²⁰ of the size; 0.5001 allows for round-off.
    """
    points, triangles = SURFACES[name]
    modes = RNG.normal(size=(3, len(points), 3)) * [[[1e-6]], [[1.0]], [[0.0]]]
    stress = 1e9 * RNG.normal(size=(3, len(points), 6))
    part = stored(points, triangles, modes, stress, 1e-3)
    surface = surface_in(part)
    size = np.ptp(points, axis=0).max()
    assert np.abs(surface.points - points).max() <= 0.5001 * size * 2.0**-20
    assert np.abs(surface.modes - modes).max() <= 0.5001e-3
    assert surface.stress is not None
    # half a step of integers of 16 bits is 1.5e-5
    assert (
        np.abs(surface.stress - stress) / np.abs(stress).max((1, 2))[:, None, None]
    ).max() < 2e-5
    expected = sorted(min(t[k:] + t[:k] for k in range(3)) for t in np.array(triangles).tolist())
    assert surface.triangles.tolist() == expected


def plate(count: int) -> mbd.ReducedBody:
    """Return a curved plate of tetrahedra with stress; nearly all nodes are on its surface."""
    mesh, tags = box((0, -0.05, 0), (0.3, 0.05, 0.004), (3 * count, count, 1), "tetrahedron")
    mesh.geometry.x[:, 2] += 0.01 * np.sin(20 * mesh.geometry.x[:, 0])
    model = mbd.ElasticModel(mesh, STEEL, facet_tags=tags)
    reduction = mbd.reduce(model, interfaces=ends(0.0, 0.3), num_modes=8)
    return reduction.body.replace(stress=mbd.durability.skin_stress(reduction))


def test_bytes_per_node() -> None:
    """50,000 nodes with stress need less than 5 MB (see benchmarks/viewer_page.py)."""
    body = plate(12)
    assert body.skin is not None
    nodes = len(body.skin.points)
    run = mbd.simulate(
        slider_crank(mbd.FlexibleBody("rod", body, position=(0.15, 0, 0))), t_end=0.04, dt=2e-4
    )
    page = player(run, quantity="von Mises")
    (part,) = (part for part in scene_in(page)["parts"] if part["stress"])
    assert len(part["modes"]["scale"]) > 2
    budget = 5e6 - sum(len(asset(name)) for name in ("player.js", "player.css", "three.min.js"))
    assert len(str(part)) / nodes < budget / 50_000
