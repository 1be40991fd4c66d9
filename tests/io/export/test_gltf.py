"""Modes in glTF files, evaluated by VTK's reader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.export import export
from dolfinx_mbd.io.export.gltf import PERIOD
from tests.io.export.readers.gltf import Scene
from tests.io.export.reduced import reduced

pygltflib = pytest.importorskip("pygltflib")


@pytest.fixture(scope="module")
def body() -> ReducedBody:
    """Return a reduced box."""
    return reduced("rigid")


@pytest.mark.parametrize("units", ["m-kg-s", "mm-t-s"])
def test_modes_read_by_vtk(tmp_path: Path, body: ReducedBody, units: str) -> None:
    """Half of the period shows each mode with its largest displacement, 5 % of the size."""
    report = export(body, tmp_path / "box", "gltf", units=units, amplitude=0.05)
    skin, factor = body.skin, report.units.length
    assert skin is not None
    points, size = factor * skin.points, factor * np.linalg.norm(np.ptp(skin.points, axis=0))
    assert Scene(report.paths[0]).num_animations == body.num_modes
    assert bool(report.notes) == (factor != 1.0)
    for k, mode in enumerate(skin.modes):
        scene = Scene(report.paths[0], k)
        shape = 0.05 * size * mode / np.linalg.norm(mode, axis=1).max()
        for phase, sign in ((0.0, -1.0), (0.25, 0.0), (0.5, 1.0)):
            (surface,) = scene.surfaces(phase * PERIOD)
            np.testing.assert_allclose(surface, points + sign * shape, atol=1e-6 * size)


def test_names_and_numbers_of_the_modes(tmp_path: Path, body: ReducedBody) -> None:
    """The extras are in SI units; a weight of one is the elastic coordinate of the extras."""
    path = export(body, tmp_path / "box", "gltf", units="mm-kg-ms").paths[0]
    scene = pygltflib.GLTF2().load(str(path))
    (mesh,) = scene.meshes
    (surface,), extras = mesh.primitives, mesh.extras
    assert body.skin is not None
    assert extras["frequencies"] == [mode.frequency for mode in body.modes]
    for k, (title, mode) in enumerate(zip(extras["targetNames"], body.modes, strict=True)):
        number, _, rest = title.partition(": ")
        label, _, frequency = rest.rpartition(", ")
        assert (int(number), label) == (k + 1, mode.label)
        assert float(frequency.removesuffix(" Hz")) == pytest.approx(mode.frequency, rel=1e-4)
        assert scene.animations[k].name == title
        view = scene.bufferViews[scene.accessors[surface.targets[k]["POSITION"]].bufferView]
        data = scene.binary_blob()[view.byteOffset : view.byteOffset + view.byteLength]
        shape = 1e3 * extras["elasticCoordinates"][k] * body.skin.modes[k]
        target = np.frombuffer(data, "<f4").reshape(-1, 3)
        np.testing.assert_allclose(target, shape, atol=1e-6 * np.abs(shape).max())


def test_bad_requests(tmp_path: Path, body: ReducedBody) -> None:
    for wrong, argument in ((body.rigid(), "body"), (body.replace(skin=None), "body")):
        with pytest.raises(InputError) as error:
            export(wrong, tmp_path / "box", "gltf")
        assert error.value.argument == argument
    with pytest.raises(InputError) as error:
        export(body, tmp_path / "box", "gltf", amplitude=0.0)
    assert error.value.argument == "amplitude"
    assert list(tmp_path.iterdir()) == []
