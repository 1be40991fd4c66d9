"""glTF files, evaluated by the reader of VTK: its points are where the sensors are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd import errors
from dolfinx_mbd.mechanisms import slider_crank
from dolfinx_mbd.multibody import Solution, simulate
from dolfinx_mbd.plotting import write_gltf
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


def blocks(reader: Any) -> list[np.ndarray]:
    """Return the points of all surfaces that VTK's reader shows now."""
    from vtkmodules.util.numpy_support import vtk_to_numpy

    data, found = reader.GetOutput(), []
    iterator = data.NewIterator()
    iterator.InitTraversal()
    while not iterator.IsDoneWithTraversal():
        found.append(vtk_to_numpy(iterator.GetCurrentDataObject().GetPoints().GetData()))
        iterator.GoToNextItem()
    return found


def test_motion_read_by_vtk(run: Solution, tmp_path: Path) -> None:
    io = pytest.importorskip("vtkmodules.vtkIOGeometry")
    path = write_gltf(run, tmp_path / "run.glb")
    reader = io.vtkGLTFReader()
    reader.SetFileName(str(path))
    reader.ApplyDeformationsToGeometryOn()
    reader.SetFrameRate(2000)
    reader.UpdateInformation()
    assert reader.GetNumberOfAnimations() == 1
    reader.EnableAnimation(0)
    reader.UpdateInformation()
    skin = bar().skin
    assert skin is not None
    rows = np.linspace(0, len(run) - 1, 20).astype(int)
    worst = 0.0
    for k in rows:
        reader.UpdateTimeStep(float(run.time[k]))
        (surface,) = [points for points in blocks(reader) if len(points) == len(skin.points)]
        for node in (0, 5, len(skin.points) - 1):
            exact = run.sensor("rod", skin.points[node])[k]
            worst = max(worst, float(np.abs(surface[node] - exact).max()))
    assert worst < 1e-6 * 0.3


def test_modes_are_morph_targets(tmp_path: Path) -> None:
    import pygltflib

    body = bar()
    path = write_gltf(body, tmp_path / "body.glb")
    scene = pygltflib.GLTF2().load(str(path))
    (mesh,) = scene.meshes
    assert len(mesh.primitives[0].targets) == 3 and len(mesh.extras["targetNames"]) == 3
    accessor = scene.accessors[mesh.primitives[0].targets[1]["POSITION"]]
    view = scene.bufferViews[accessor.bufferView]
    data = scene.binary_blob()[view.byteOffset : view.byteOffset + view.byteLength]
    assert body.skin is not None
    np.testing.assert_allclose(
        np.frombuffer(data, "<f4").reshape(-1, 3), body.skin.modes[1], atol=1e-7
    )


def test_bad_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.InputError):
        write_gltf(bar(), tmp_path / "body.obj")
    with pytest.raises(errors.InputError):
        write_gltf(bar(skin=False), tmp_path / "body.glb")
    assert list(tmp_path.iterdir()) == []
