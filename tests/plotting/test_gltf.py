"""glTF files, evaluated by the reader of VTK: its points are where the sensors are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd import errors
from dolfinx_mbd.mechanisms import slider_crank
from dolfinx_mbd.multibody import Solution, simulate
from dolfinx_mbd.plotting import write_gltf
from tests.export.readers.gltf import Scene
from tests.plotting.test_plotting import bar


@pytest.fixture(autouse=True)
def one_rank() -> None:
    if MPI.COMM_WORLD.rank > 0:
        pytest.skip("one rank writes files")
    pytest.importorskip("pygltflib")


@pytest.fixture(scope="module")
def run() -> Solution:
    crank = {"crank_radius": 0.05, "crank_mass": 0.9, "piston_mass": 0.2}
    return simulate(
        slider_crank(bar(), speed=200.0, angle=0.3, **crank), t_end=0.03, dt=1e-4, stride=4
    )


def test_motion_read_by_vtk(run: Solution, tmp_path: Path) -> None:
    scene = Scene(write_gltf(run, tmp_path / "run.glb"))
    assert scene.num_animations == 1
    skin = bar().skin
    assert skin is not None
    rows = np.linspace(0, len(run) - 1, 20).astype(int)
    worst = 0.0
    for k in rows:
        surfaces = scene.surfaces(float(run.time[k]))
        (surface,) = [points for points in surfaces if len(points) == len(skin.points)]
        for node in (0, 5, len(skin.points) - 1):
            exact = run.sensor("rod", skin.points[node])[k]
            worst = max(worst, float(np.abs(surface[node] - exact).max()))
    assert worst < 1e-6 * 0.3


def test_bad_requests_are_refused(run: Solution, tmp_path: Path) -> None:
    with pytest.raises(errors.InputError):
        write_gltf(run, tmp_path / "run.obj")
    with pytest.raises(errors.InputTypeError):
        write_gltf(bar(), tmp_path / "body.glb")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
