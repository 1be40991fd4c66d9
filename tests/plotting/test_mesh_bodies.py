"""Pictures, films, pages and glTF files of mesh bodies, on any number of ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI
from PIL import Image
from scipy.spatial.transform import Rotation

import dolfinx_mbd as mbd
from dolfinx_mbd import errors, plotting
from dolfinx_mbd.plotting.scene.mechanism_scene import initial_state
from dolfinx_mbd.plotting.scene.mesh_surfaces import mesh_surfaces, shared_mesh
from dolfinx_mbd.results import Solution
from dolfinx_mbd.structures.mesh_bodies import MeshMotion
from dolfinx_mbd.tutorials import tagged_bar
from tests.io.export.readers.gltf import Scene
from tests.plotting.pages import numbers, scene_in, surface_in
from tests.plotting.test_viewer import Tab, picked
from tests.structures.mesh_bodies.models import STEEL, box, ends, slider_crank

COMM = MPI.COMM_WORLD
LOW, HIGH = np.array([0, -0.01, -0.015]), np.array([0.3, 0.01, 0.015])
CRANK = {"crank_radius": 0.05, "crank_mass": 0.9, "piston_mass": 0.2}
Case = tuple[mbd.MeshBody, Solution]


@pytest.fixture(scope="module")
def case() -> Case:
    """Return a rod in a slider-crank that its inertia bends; all vertices are on its boundary."""
    mesh, tags = box(tuple(LOW), tuple(HIGH), (6, 1, 2))
    model = mbd.ElasticModel(mesh, STEEL, facet_tags=tags)
    rod = mbd.MeshBody("rod", model, ends(0.0, 0.3), viscosity=1e-5, position=(0.15, 0, 0))
    return rod, mbd.simulate(slider_crank(rod), t_end=0.003, dt=3e-4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that all ranks share."""
    return Path(COMM.bcast(str(tmp_path), root=0))


def averaged(rod: mbd.MeshBody, run: Any, k: int, points: Any) -> Any:
    """Return the mean of the recovered stress in all cells around each point, (points, 3, 3)."""
    field = mbd.recover(rod, run, "stress")[k]
    space = field.function_space
    count = space.dofmap.index_map.size_local
    x = space.tabulate_dof_coordinates()[:count]
    values = field.x.array.reshape(-1, 9)[:count]
    x, values = (np.concatenate(COMM.allgather(part)) for part in (x, values))
    near = np.linalg.norm(points[:, None] - x, axis=2) < 1e-9
    return ((near @ values) / near.sum(axis=1)[:, None]).reshape(-1, 3, 3)


def von_mises(sigma: Any) -> Any:
    """Return the von Mises stress of tensors (n, 3, 3)."""
    deviator = sigma - np.trace(sigma, axis1=1, axis2=2)[:, None, None] * np.eye(3) / 3
    return np.sqrt(1.5 * (deviator**2).sum(axis=(1, 2)))


def test_points_follow_the_run(case: Case) -> None:
    """All vertices of the boundary are drawn where they are in the run."""
    rod, run = case
    rows = np.array([0, 3, 7, 10])
    (surface,) = mesh_surfaces(run.system, run.q[rows])
    x = surface.skin.points
    assert len(x) == 7 * 2 * 3 and (np.isclose(x, LOW) | np.isclose(x, HIGH)).any(axis=1).all()
    exact = rod.motion(run).position(x)
    for i, k in enumerate(rows):
        np.testing.assert_allclose(surface.points(i, 1.0), exact[k], rtol=0, atol=1e-12)
    a, b, c = np.moveaxis(exact[-1][surface.skin.triangles], 1, 0)
    volume = np.einsum("ti,ti->", a, np.cross(b, c)) / 6
    assert volume == pytest.approx(0.3 * 0.02 * 0.03, rel=1e-3)  # closed, normals outwards


def test_omitted_modes_are_invisible(case: Case) -> None:
    rod, run = case
    (whole,) = mesh_surfaces(run.system, run.q)
    (part,) = mesh_surfaces(run.system, run.q, accuracy=1e-3)
    assert len(part.skin.modes) < len(whole.skin.modes) == len(run)
    bound = 2e-3 * whole.limits("displacement")[1]
    for k in range(len(run)):
        assert np.abs(part.points(k, 1.0) - whole.points(k, 1.0)).max() < bound


def test_displacement_contains_no_rigid_motion() -> None:
    mesh, _ = box((0, 0, 0), (0.2, 0.1, 0.05), (2, 1, 1), "tetrahedron")
    body = mbd.MeshBody("block", mesh, material=STEEL)
    pose = np.array([1, 2, 3, 0.5, 0.5, 0.5, 0.5])
    q, _ = body.placed(pose, np.zeros(6))
    (surface,) = mesh_surfaces(mbd.System([body]), q[None])
    np.testing.assert_allclose(surface.position[0], pose[:3], atol=1e-12)
    np.testing.assert_allclose(np.abs(surface.rotation[0]), 0.5, atol=1e-12)
    assert surface.quantity(0, "displacement").max() < 1e-12


def test_colours_are_the_recovered_stress(case: Case) -> None:
    """Means over the cells around each vertex, of invariants and in the axes of the motion."""
    rod, run = case
    rows = np.array([1, 4, 10])
    (surface,) = mesh_surfaces(run.system, run.q[rows], "von Mises")
    for i, k in enumerate(rows):
        sigma = averaged(rod, run, int(k), surface.skin.points)
        exact, x = (
            von_mises(sigma),
            Rotation.from_quat(np.roll(surface.rotation[i], -1)).apply([1.0, 0, 0]),
        )
        assert exact.max() > 1e5
        shown = surface.quantity(i, "von Mises")
        np.testing.assert_allclose(shown, exact, rtol=0, atol=1e-8 * exact.max())
        stress_xx = np.einsum("i,pij,j->p", x, sigma, x)
        shown = surface.quantity(i, "stress xx")
        np.testing.assert_allclose(shown, stress_xx, rtol=0, atol=1e-8 * exact.max())


def test_stress_of_a_tagged_mesh() -> None:
    body = mbd.MeshBody("bar", tagged_bar((0.2, 0.1, 0.05), (2, 1, 1), ("a", "b")), material=STEEL)
    comm = shared_mesh(initial_state(mbd.System([body])), "von Mises")
    assert comm is None if COMM.size == 1 else comm.size == COMM.size


def test_stress_of_quadratic_tetrahedra() -> None:
    """Two large deformations at once, which are not linear in position."""
    mesh, _ = box((0, 0, 0), (0.2, 0.1, 0.05), (2, 1, 1), "tetrahedron")
    body = mbd.MeshBody("pad", mbd.ElasticModel(mesh, STEEL, degree=2), energy="neo-hookean")
    q = np.array([body.initial_coordinates()] * 2)
    x, y, z = body.nodes.T
    for row, size in zip(q, (1.0, -2.0), strict=True):
        body.nodal_of(row)[0] = size * np.stack([0.1 * x * y, x**2, 0.2 * z + x * z], axis=1)
    (surface,) = mesh_surfaces(mbd.System([body]), q, "von Mises")
    u = np.array([body.nodal_of(row)[0] for row in q])
    motion = MeshMotion(body, np.arange(2.0), u, 0 * u, 0 * u)
    for k in range(2):
        exact = von_mises(averaged(body, motion, k, surface.skin.points))
        shown = surface.quantity(k, "von Mises")
        np.testing.assert_allclose(shown, exact, rtol=0, atol=1e-8 * exact.max())


def test_pages_without_stress_reject_its_colours(case: Case) -> None:
    _, run = case
    rigid = mbd.mechanism.mechanisms.slider_crank(
        mbd.mechanism.mechanisms.rigid_rod(length=0.3, mass=1.0), speed=10.0, **CRANK
    )
    with pytest.raises(errors.InputError) as error:
        plotting.player(rigid, quantity="von Mises")
    assert error.value.argument == "quantity"
    with pytest.raises(errors.InputError):
        plotting.player(run, quantity="stress xx")


def test_picture(case: Case, folder: Path) -> None:
    """Rank 0 draws the stress for all ranks; every rank draws displacements on its plotter."""
    pv = pytest.importorskip("pyvista", exc_type=ImportError)
    rod, run = case
    path = folder / "rod.png"
    options: dict[str, Any] = {"quantity": "von Mises", "window": (320, 240)}
    picture = plotting.plot_system(run, run.time[-1], path, **options)
    colours = {tuple(c) for c in picture.image.reshape(-1, 3).tolist()}
    assert picture.image.shape == (240, 320, 3) and len(colours) > 100
    COMM.Barrier()
    with Image.open(path) as image:
        assert np.array_equal(np.asarray(image.convert("RGB")), picture.image)
    exact = rod.motion(run).position(rod.drawing.points)[-1]
    plotter = pv.Plotter(off_screen=True)
    plotting.plot_system(run, run.time[-1], plotter=plotter)
    mappers = [getattr(actor, "mapper", None) for actor in plotter.actors.values()]
    meshes = [m.dataset for m in mappers if hasattr(m, "dataset")]
    (mesh,) = (m for m in meshes if "values" in m.point_data)
    gaps = np.linalg.norm(np.array(mesh.points)[:, None] - exact, axis=2)
    assert gaps.min(axis=0).max() < 1e-6  # single precision
    plotter.close()


def test_film(case: Case, folder: Path) -> None:
    pytest.importorskip("pyvista", exc_type=ImportError)
    _, run = case
    options: dict[str, Any] = {"frames": 2, "window": (160, 120), "quantity": "von Mises"}
    film = plotting.animate(run, folder / "rod.gif", scale=1.0, **options)
    COMM.Barrier()
    with Image.open(film.path) as images:
        assert images.n_frames == 2  # type: ignore[attr-defined]


def test_page(case: Case, folder: Path) -> None:
    """The page has the surface to half a pixel, and its stress on request."""
    rod, run = case
    page = scene_in(plotting.player(run, folder / "run.html", quantity="von Mises"))
    COMM.Barrier()
    assert (folder / "run.html").exists() and page["colour"] == "stress"
    body = next(body for body in page["bodies"] if body["name"] == "rod")
    part = page["parts"][body["part"]]
    surface = surface_in(part)
    points = surface.points
    eta = numbers(body["eta"]).reshape(len(numbers(page["time"])), -1)
    modes = {"modes": surface.modes, "stress": surface.stress}
    fields = {name: np.tensordot(eta, np.asarray(values), 1) for name, values in modes.items()}
    R = Rotation.from_quat(np.roll(numbers(body["rotation"]).reshape(-1, 4), -1, axis=1))
    exact = rod.motion(run).position(rod.drawing.points)
    for i, t in enumerate(numbers(page["time"])):
        k = int(np.argmin(np.abs(run.time - t)))
        moved = R[i].apply(points + fields["modes"][i])
        x = numbers(body["position"]).reshape(-1, 3)[i] + moved
        assert np.abs(x - exact[k]).max() < 1e-3 * page["length"]
    tensor = fields["stress"][-1][:, [[0, 3, 5], [3, 1, 4], [5, 4, 2]]]
    mises = von_mises(averaged(rod, run, -1, rod.drawing.points))
    np.testing.assert_allclose(von_mises(tensor), mises, rtol=0, atol=0.01 * mises.max())
    page = scene_in(plotting.player(run))
    assert "colour" not in page and page["parts"][body["part"]]["stress"] is None


def test_field_on_a_mesh_body(case: Case) -> None:
    rod, run = case
    values = np.arange(float(len(rod.drawing.points)))
    page = scene_in(plotting.player(run, field={"rod": values}))
    body = next(body for body in page["bodies"] if body["name"] == "rod")
    np.testing.assert_allclose(numbers(page["parts"][body["part"]]["field"]), values)
    with pytest.raises(errors.InputError) as error:
        plotting.player(run, field={"rod": values[1:]})
    assert error.value.argument == "field of body 'rod'"


@pytest.mark.skipif(COMM.size > 1, reason="one rank writes")
def test_gltf(case: Case, tmp_path: Path) -> None:
    rod, run = case
    scene = Scene(plotting.write_gltf(run, tmp_path / "run.glb"))
    exact = rod.motion(run).position(rod.drawing.points)
    for k in (0, 4, len(run) - 1):
        shown = [x for x in scene.surfaces(float(run.time[k])) if len(x) >= len(exact[k])]
        gaps = [np.linalg.norm(x[:, None] - exact[k], axis=2).min(axis=0).max() for x in shown]
        assert min(gaps) < 1e-6  # (single precision)


@pytest.mark.skipif(COMM.size > 1, reason="one rank writes pages")
def test_browser(browser: Any, case: Case, tmp_path: Path) -> None:
    rod, run = case
    path = tmp_path / "run.html"
    plotting.player(run, path, quantity="von Mises")
    tab = Tab(browser, path)
    tab.do(f"player.seek({run.time[-1]})")
    hits = picked(tab, "rod")
    sigma = averaged(rod, run, -1, rod.drawing.points)
    mises, exact = von_mises(sigma), rod.motion(run).position(rod.drawing.points)[-1]
    assert len(hits) > 20
    for hit in hits:
        assert hit["quantity"] == "stress"
        assert abs(hit["value"] - mises[hit["node"]]) < 0.01 * mises.max()
        assert np.abs(hit["position"] - exact[hit["node"]]).max() < 1e-3 * 0.3
