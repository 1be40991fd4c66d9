"""Rounding of coarse surfaces: closer to the exact surface, closed, and without effect on edges."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.mechanism import box_shape, cylinder_shape
from dolfinx_mbd.mechanism.shapes import Shape
from dolfinx_mbd.plotting.pictures.rounding import Rounding

pv = pytest.importorskip("pyvista", exc_type=ImportError)


def rounded(shape: Shape, times: int = 1) -> Shape:
    """Return a shape whose edges are rounded several times."""
    for _ in range(times):
        rounding = Rounding(shape.points, shape.triangles)
        shape = Shape(rounding.points(shape.points), rounding.triangles)
    return shape


def counts_of_edges(shape: Shape) -> np.ndarray:
    """Return the number of triangles at each edge."""
    edges = np.sort(shape.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    return np.unique(edges, axis=0, return_counts=True)[1]


@pytest.mark.parametrize("inside", [False, True])
def test_cylinder_is_rounder(inside: bool) -> None:
    """The error of the radius falls from 1 - cos(π/12) = 3.4 % to below 0.2 %, also in a bore."""
    coarse = cylinder_shape(1.0, 3.0, sides=12)
    if inside:
        coarse = Shape(coarse.points, coarse.triangles[:, ::-1])
    fine = rounded(coarse, 2)
    assert len(fine.triangles) == 16 * len(coarse.triangles)
    assert (counts_of_edges(fine) == 2).all()  # no gap
    wall = fine.points[np.linalg.norm(fine.points[:, :2], axis=1) > 0.9]
    assert np.abs(np.linalg.norm(wall[:, :2], axis=1) - 1).max() < 0.002
    caps = fine.points[np.linalg.norm(fine.points[:, :2], axis=1) < 0.9]
    np.testing.assert_allclose(np.abs(caps[:, 2]), 1.5, atol=1e-12)  # flat faces stay flat


def test_edges_of_a_box_stay_straight() -> None:
    box = box_shape((1.0, 2.0, 3.0))
    for x in rounded(box, 2).points.T:  # two divisions give quarters of the edges
        assert np.isin(np.round(4 * x / np.ptp(x), 9), [-2, -1, 0, 1, 2]).all()


def test_deformed_surface_rotates_with_its_points() -> None:
    shape = cylinder_shape(1.0, 3.0, sides=14)
    rounding = Rounding(shape.points, shape.triangles)
    A = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    rotated = rounding.points(shape.points @ A.T)
    np.testing.assert_allclose(rotated, rounding.points(shape.points) @ A.T, atol=1e-12)
    linear = shape.points @ [1.0, -2.0, 3.0]
    middles = shape.points[rounding.edges].mean(axis=1) @ [1.0, -2.0, 3.0]
    np.testing.assert_allclose(rounding.values(linear), [*linear, *middles], atol=1e-12)


def test_surfaces_without_smooth_or_without_sharp_edges() -> None:
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    rounding = Rounding(corners, faces)
    np.testing.assert_allclose(rounding.points(corners)[4:], corners[rounding.edges].mean(axis=1))
    torus = pv.ParametricTorus(ringradius=2.0, crosssectionradius=1.0, u_res=20, v_res=20).clean()
    points, triangles = np.array(torus.points, dtype=float), torus.faces.reshape(-1, 4)[:, 1:]
    rounding = Rounding(points, triangles)
    middle = rounding.points(points)[len(points) :]

    def error(x: np.ndarray) -> float:
        return float(np.abs(np.hypot(np.hypot(x[:, 0], x[:, 1]) - 2, x[:, 2]) - 1).max())

    assert error(middle) < error(points[rounding.edges].mean(axis=1)) / 5
