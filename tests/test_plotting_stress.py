"""Pictures of values on the skin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd.body import ReducedBody, Skin

pytest.importorskip("pyvista")

from dolfinx_mbd.plotting.stress import plot_skin

from .body.test_stress_modes import one_mode_body


@pytest.fixture
def body() -> ReducedBody:
    """A tetrahedron."""
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    return one_mode_body().replace(skin=Skin(points, faces, np.zeros((2, 4, 3))))


def test_colours_follow_the_values(body: ReducedBody, tmp_path: Path) -> None:
    """From blue to red; the file is the picture."""
    if MPI.COMM_WORLD.rank:
        return
    pictures = [
        plot_skin(body, values, tmp_path / "a.png", limits=(0, 100), view="iso", window=(300, 220))
        .image[60:150]
        .astype(int)
        for values in (np.full(4, 15e6), np.full(4, 85e6))
    ]
    redness = [np.sum(image[..., 0] - image[..., 2] > 60) for image in pictures]
    blueness = [np.sum(image[..., 2] - image[..., 0] > 60) for image in pictures]
    assert redness[1] > 1000 > redness[0]
    assert blueness[0] > 1000 > blueness[1]
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_bad_input(body: ReducedBody, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected 4 finite values, .* got shape \(3,\)"):
        plot_skin(body, np.zeros(3))
    with pytest.raises(ValueError, match="expected 4 finite values"):
        plot_skin(body, np.full(4, np.nan))
    with pytest.raises(ValueError, match=r"unknown suffix '.txt'"):
        plot_skin(body, np.zeros(4), tmp_path / "a.txt")
    with pytest.raises(ValueError, match="has no skin"):
        plot_skin(body.replace(skin=None), np.zeros(4))
