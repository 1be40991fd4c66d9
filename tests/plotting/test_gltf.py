"""glTF files, evaluated by the reader of VTK: its points are where the sensors are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd import errors
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import System
from dolfinx_mbd.kernels.rotations import rotation_matrix
from dolfinx_mbd.mechanism import Frame, Ground, RigidBody, SpringDamper
from dolfinx_mbd.mechanism.mechanisms import slider_crank
from dolfinx_mbd.plotting import write_gltf
from dolfinx_mbd.results import Solution
from tests.io.export.readers.gltf import Scene
from tests.plotting.test_plotting import bar

pygltflib = pytest.importorskip("pygltflib")


@pytest.fixture(autouse=True)
def one_rank() -> None:
    """Skip the test on other ranks than the first."""
    if MPI.COMM_WORLD.rank > 0:
        pytest.skip("one rank writes files")


@pytest.fixture(scope="module")
def run() -> Solution:
    """Return a run of a slider-crank with a flexible rod."""
    crank = {"crank_radius": 0.05, "crank_mass": 0.9, "piston_mass": 0.2}
    return simulate(
        slider_crank(bar(), speed=200.0, angle=0.3, **crank), t_end=0.03, dt=1e-4, stride=4
    )


@pytest.mark.parametrize(("slow_motion", "scale"), [(1.0, 1.0), (100.0, 1.0), (7.0, 300.0)])
def test_motion_read_by_vtk(
    run: Solution, tmp_path: Path, slow_motion: float, scale: float
) -> None:
    path = write_gltf(run, tmp_path / "run.glb", slow_motion=slow_motion, scale=scale)
    scene = Scene(path)
    assert scene.num_animations == 1
    skin = bar().skin
    assert skin is not None
    rows = np.linspace(0, len(run) - 1, 20).astype(int)
    body = run.body("rod")
    worst = 0.0
    for k in rows:
        surfaces = scene.surfaces(slow_motion * float(run.time[k]))
        (surface,) = [points for points in surfaces if len(points) == len(skin.points)]
        Q = rotation_matrix(body.rotation[k])
        for node in (0, 5, len(skin.points) - 1):
            rigid = body.position[k] + Q @ skin.points[node]
            elastic = run.sensor("rod", skin.points[node])[k] - rigid
            worst = max(worst, float(np.abs(surface[node] - rigid - scale * elastic).max()))
    assert worst < 1e-6 * 0.3  # single precision in a mechanism of 0.3 m


def test_weights_and_keys_as_blender_needs_them(run: Solution, tmp_path: Path) -> None:
    """The weights of each coordinate reach both 0 and 1, and the times are in slow motion."""
    scene = pygltflib.GLTF2().load(str(write_gltf(run, tmp_path / "run.glb", slow_motion=50.0)))

    def numbers(accessor: int) -> np.ndarray:
        view = scene.bufferViews[scene.accessors[accessor].bufferView]
        data = scene.binary_blob()[view.byteOffset : view.byteOffset + view.byteLength]
        return np.frombuffer(data, "<f4")

    (animation,) = scene.animations
    channels = [c for c in animation.channels if c.target.path == "weights"]
    assert channels
    for channel in channels:
        sampler = animation.samplers[channel.sampler]
        weights = numbers(sampler.output).reshape(len(run), -1)
        assert (weights.min(axis=0) == 0.0).all() and (weights.max(axis=0) == 1.0).all()
        assert np.allclose(numbers(sampler.input), 50.0 * run.time, rtol=1e-6)
        mesh = scene.meshes[scene.nodes[channel.target.node].mesh]
        eta = np.array(mesh.extras["smallest"]) + weights * np.array(mesh.extras["range"])
        exact = run.body(mesh.name).eta
        assert np.abs(eta - exact).max() < 1e-6 * np.abs(exact).max()


@pytest.mark.parametrize("gravity", [(0, 0, -9.81), (0, -1, 0), (0, 2, 0), (3, 0, 0), (1, 2, -3)])
def test_gravity_points_downwards(gravity: tuple[float, float, float], tmp_path: Path) -> None:
    """glTF has the y-axis upwards: a falling body moves along -y."""
    ball = RigidBody("ball", 1.0, [0.1] * 3, frames={"c": Frame()}, position=(1, 2, 3))
    run = simulate(System([Ground({"o": Frame()}), ball], gravity=gravity), t_end=0.2, dt=0.1)
    scene = Scene(write_gltf(run, tmp_path / "run.glb"))
    first, last = (
        max(scene.surfaces(time), key=len).mean(axis=0) for time in (run.time[0], run.time[-1])
    )
    fall = 0.5 * np.linalg.norm(gravity) * 0.2**2
    np.testing.assert_allclose(last - first, (0.0, -fall, 0.0), atol=1e-5 * fall + 1e-6)
    if gravity[1] < 0:
        np.testing.assert_allclose(first, (1, 2, 3), atol=1e-6)


def test_sleeve_of_a_short_spring_is_halfway(tmp_path: Path) -> None:
    """A spring that is shorter than its mark is a sleeve between both frames."""
    ground, c = Ground({"o": Frame(), "far": Frame((1, 0, 0))}), {"c": Frame()}
    place, velocity = (0.01, 0, 0), (0, 0.1, 0)
    ball = RigidBody("ball", 1.0, [0.1] * 3, frames=c, position=place, velocity=velocity)
    spring = SpringDamper("spring", ground.frame("o"), ball.frame("c"), 100.0)
    run = simulate(System([ground, ball], loads=[spring]), t_end=0.2, dt=0.01)
    scene = Scene(write_gltf(run, tmp_path / "run.glb"))
    for k in (0, 10, 20):
        middle = 0.5 * run.body("ball").position[k]
        centres = [points.mean(axis=0) for points in scene.surfaces(float(run.time[k]))]
        assert np.linalg.norm(centres - middle, axis=1).min() < 1e-6


def test_bad_requests_are_refused(run: Solution, tmp_path: Path) -> None:
    with pytest.raises(errors.InputError):
        write_gltf(run, tmp_path / "run.obj")
    for factor in (0.0, -1.0, float("nan")):
        for name in ("slow_motion", "scale"):
            with pytest.raises(errors.InputError) as error:
                write_gltf(run, tmp_path / "run.glb", **{name: factor})
            assert error.value.argument == name
    with pytest.raises(errors.InputTypeError):
        write_gltf(bar(), tmp_path / "body.glb")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
