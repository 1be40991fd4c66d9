"""Pictures: positions of the drawn mechanism, complete files, and errors that state the cure."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd import errors, plotting
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.parts import Interface, MaterialPoint, Skin
from dolfinx_mbd.dynamics import AssemblyError, System
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism import (
    FlexibleBody,
    Frame,
    Ground,
    RigidBody,
    cylinder_shape,
    fixed,
    revolute,
)
from dolfinx_mbd.mechanism.mechanisms import rigid_rod, slider_crank
from dolfinx_mbd.plotting.pictures.drawing import Drawing
from dolfinx_mbd.plotting.scene.camera import camera_of
from dolfinx_mbd.plotting.scene.colours import rounded_up, unit_of
from dolfinx_mbd.plotting.scene.surfaces import skin_of_body
from dolfinx_mbd.results import Solution

SMALL = (320, 240)
BAR_HEIGHT = 80
"""Height of the colour bar below a grid of modes, pixels."""


@pytest.fixture
def one_rank() -> None:
    """Draw on one rank; the others come here too, for the barrier after each test."""
    if MPI.COMM_WORLD.rank > 0:
        pytest.skip("one rank draws")


@pytest.fixture
def pv(one_rank: None) -> Any:
    """Return pyvista, or skip the test."""
    return pytest.importorskip("pyvista", reason="pictures need pyvista", exc_type=ImportError)


def bar(skin: bool = True) -> ReducedBody:
    """Return a round bar along x that stretches and bends in two planes, in closed form."""
    length, mass = 0.2, 0.5
    ring = cylinder_shape(0.01, length, 0, (length / 2, 0.0, 0.0), sides=12)
    t = np.linspace(0.0, 1.0, 9)[:, None]
    points = np.vstack([end + t[1:-1] * [length, 0, 0] for end in ring.points[:12]] + [ring.points])

    def modes(x: np.ndarray) -> np.ndarray:
        s, u = x[:, 0] / length, np.zeros((3, len(x), 3))
        u[0, :, 0] = s - 0.5
        for k, axis in ((1, 1), (2, 2)):
            u[k, :, axis] = np.sin(np.pi * s) - 2 / np.pi
            u[k, :, 0] = -x[:, axis] * np.pi / length * np.cos(np.pi * s)
        return u

    weights = np.full(len(points), mass / len(points))
    psi = np.concatenate([points[None], modes(points)])
    ends = []
    for name, x in (("big_end", 0.0), ("small_end", length)):
        motion = np.zeros((6, 3))
        motion[:3] = modes(np.array([[x, 0.0, 0.0]]))[:, 0].T
        motion[5, 1] = np.pi / length * np.cos(np.pi * x / length)
        motion[4, 2] = -motion[5, 1]
        ends.append(Interface(name, "rigid", np.array([x, 0.0, 0.0]), np.eye(3), motion))
    return ReducedBody.from_arrays(
        name="bar",
        total_mass=mass,
        first_moments=np.einsum("i,kia->ka", weights, psi),
        second_moments=np.einsum("i,kia,lib->klab", weights, psi, psi),
        stiffness=np.diag([4e7, 2e6, 2e6]),
        interfaces=tuple(ends),
        points=(MaterialPoint("middle", points[3], modes(points)[:, 3]),),
        skin=Skin(points, ring.triangles + len(points) - len(ring.points), modes(points))
        if skin
        else None,
    )


@pytest.fixture(scope="module")
def run() -> Solution:
    """Return a run of a slider-crank with a flexible rod."""
    crank = {"crank_radius": 0.05, "crank_mass": 0.9, "piston_mass": 0.2}
    return simulate(
        slider_crank(bar(), speed=200.0, angle=0.3, **crank), t_end=0.03, dt=1e-4, stride=10
    )


def contrast(image: np.ndarray) -> float:
    """Return the standard deviation of the pixels, which is small for an empty picture."""
    return float(image.astype(float).std())


# ---- where things are --------------------------------------------------------------------------
def test_skin_is_where_the_sensors_are(run: Solution) -> None:
    body = bar()
    history, skin = run.body("rod"), body.skin
    assert skin is not None
    for k in (0, 7, len(run) - 1):
        pose = {"position": history.position[k], "rotation": history.rotation[k]}
        drawn = plotting.skin_points(skin, history.eta[k], **pose)
        for node in (0, 20, len(skin.points) - 1):
            np.testing.assert_allclose(
                drawn[node], run.sensor("rod", skin.points[node])[k], rtol=0, atol=1e-14
            )


def test_scale_enlarges_the_elastic_part_only() -> None:
    skin, eta = bar().skin, np.array([1e-4, 2e-4, -1e-4])
    assert skin is not None
    pose = {"position": (1.0, 2.0, 3.0), "rotation": (0.5, 0.5, 0.5, 0.5)}  # x → y → z → x
    rigid = plotting.skin_points(skin, 0 * eta, **pose)
    np.testing.assert_allclose(rigid, skin.points[:, [2, 0, 1]] + [1.0, 2.0, 3.0], atol=1e-15)
    unit, large = (plotting.skin_points(skin, eta, scale=s, **pose) - rigid for s in (1.0, 50.0))
    np.testing.assert_allclose(large, 50 * unit, atol=1e-13)
    magnitude = np.linalg.norm(plotting.skin_displacement(skin, eta), axis=1)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), magnitude, atol=1e-15)


def test_drawn_surfaces_are_at_those_points(pv: Any, run: Solution) -> None:
    plotter = pv.Plotter(off_screen=True)
    k = int(np.argmin(np.abs(run.time - 0.02)))
    plotting.plot_system(run, 0.02, scale=10.0, marks=(), plotter=plotter)
    rod, skin = run.body("rod"), bar().skin
    assert skin is not None
    expected = plotting.skin_points(
        skin, rod.eta[k], scale=10.0, position=rod.position[k], rotation=rod.rotation[k]
    )
    elastic = [mesh for mesh in plotter.meshes if "values" in mesh.point_data]
    assert len(elastic) == 1
    gaps = np.linalg.norm(elastic[0].points[:, None] - expected[None], axis=2)
    used = np.unique(skin.triangles)
    assert gaps[:, used].min(axis=0).max() < 1e-6  # (single precision)
    assert gaps.min(axis=1).max() < 0.01  # points on edges between them
    millimetres = 1e3 * np.linalg.norm(plotting.skin_displacement(skin, rod.eta[k]), axis=1)
    factor = elastic[0]["values"].max() / millimetres[used].max()
    assert factor == pytest.approx(1.0) or factor == pytest.approx(1e3)  # mm or µm, never scaled
    piston = run.body("piston").position[k]
    assert any(np.linalg.norm(mesh.center - piston) < 1e-6 for mesh in plotter.meshes)
    plotter.close()


def test_bodies_without_shape_are_bars_to_their_frames() -> None:
    frames = {"a": Frame((0.0, 0.0, 0.0)), "b": Frame((0.0, 0.3, 0.4))}
    body = RigidBody("link", 1.0, (1.0, 1.0, 1.0), (0.0, 0.1, 0.0), frames)
    part = skin_of_body(body, 1.0)
    assert part is not None
    skin, bars = part
    assert bars and len(skin.modes) == 0
    for point, _ in frames.values():
        assert np.linalg.norm(skin.points - np.asarray(point), axis=1).min() < 0.009
    assert skin_of_body(Ground(), 1.0) is None
    rod = skin_of_body(FlexibleBody("rod", rigid_rod(length=0.2, mass=1.0)), 1.0)
    assert rod is not None and rod[1] and np.ptp(rod[0].points[:, 0]) > 0.199


@pytest.mark.parametrize("view", [None, "xy", "iso", (1.0, 2.0, 3.0), (0.0, 1.0, 0.0)])
def test_camera_shows_all_points(view: Any) -> None:
    points = np.random.default_rng(1).normal(size=(200, 3)) * (3.0, 2.0, 0.5) + 7.0
    camera = camera_of(points, view)
    right = np.cross(camera.up, camera.towards)
    axes = np.array([right, camera.up, camera.towards])
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-14)
    seen = (points - camera.centre) @ axes[:2].T
    np.testing.assert_allclose([seen.max(axis=0), -seen.min(axis=0)], [camera.half] * 2, rtol=1e-12)
    if view is None:
        assert np.argmax(np.abs(camera.towards)) == 2  # onto the plane in which the points extend


@pytest.mark.parametrize(
    ("value", "expected"), [(35.9, 36.0), (8.24, 8.4), (0.137, 0.16), (40.0, 40.0), (0.0, 1.0)]
)
def test_colour_bars_end_at_round_numbers(value: float, expected: float) -> None:
    assert rounded_up(value) == pytest.approx(expected)


def test_units_keep_numbers_readable() -> None:
    assert [unit_of(x)[1] for x in (2.0, 3e-3, 2e-5, 3e-9, 0.0)] == ["m", "mm", "µm", "nm", "mm"]


# ---- pictures ----------------------------------------------------------------------------------
def test_modes_are_a_grid(pv: Any, tmp_path: Path) -> None:
    picture = plotting.plot_modes(bar(), path=tmp_path / "new" / "modes.png", panel=SMALL)
    assert (tmp_path / "new" / "modes.png").read_bytes() == picture._repr_png_()
    assert picture.image.shape == (240 + BAR_HEIGHT, 3 * 320, 3)
    for panel in np.split(picture.image[:240], 3, axis=1):
        assert contrast(panel) > 10
    pair = plotting.plot_modes(bar(), [3, 1], columns=1, panel=SMALL)
    assert pair.image.shape == (2 * 240 + BAR_HEIGHT, 320, 3)
    assert pair.save(tmp_path / "two.jpg").stat().st_size > 1000
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "new",
        "two.jpg",
    ]  # no parts of files are left


def test_body_is_coloured_and_moves(pv: Any) -> None:
    still, bent = (
        plotting.plot_body(bar(), eta, window=SMALL) for eta in (np.zeros(3), [0, 1e-4, 0])
    )
    assert contrast(still.image) > 10
    assert np.abs(still.image.astype(float) - bent.image).mean() > 2


@pytest.mark.parametrize(
    "options", [{}, {"marks": ("joints", "names", "frames")}, {"opacity": 1.0}, {"view": "xy"}]
)
def test_system_before_it_is_run(pv: Any, run: Solution, options: dict[str, Any]) -> None:
    picture = plotting.plot_system(run.system, window=SMALL, **options)
    assert picture.image.shape == (240, 320, 3) and contrast(picture.image) > 10
    if not options:
        later = plotting.plot_system(run, 0.01, window=SMALL)
        assert np.abs(picture.image.astype(float) - later.image).mean() > 2


def test_system_that_does_not_fit_together_can_be_seen(pv: Any) -> None:
    ground = Ground({"a": Frame(), "b": Frame((1.0, 0.0, 0.0))})
    body = RigidBody.box("box", (0.2, 0.1, 0.1), mass=1.0, frames={"end": Frame((0.1, 0.0, 0.0))})
    ends = [fixed(name, ground.frame(name), body.frame("end")) for name in "ab"]
    system = System([ground, body], ends)
    with pytest.raises(AssemblyError):
        plotting.plot_system(system)
    assert contrast(plotting.plot_system(system, assembled=False, window=SMALL).image) > 5


def test_animation_moves_and_keeps_its_time(pv: Any, run: Solution, tmp_path: Path) -> None:
    from PIL import Image

    shown = plotting.animate(run, tmp_path / "run.gif", frames=5, window=SMALL, fps=20)
    np.testing.assert_allclose(
        shown.time, run.time[np.linspace(0, len(run) - 1, 5).round().astype(int)]
    )
    with Image.open(shown.path) as film:
        assert film.n_frames == 5 and film.info["duration"] == 50
        pictures = []
        for k in range(5):
            film.seek(k)
            pictures.append(np.asarray(film.convert("RGB"), dtype=float))
    assert all(np.abs(a - b).mean() > 1 for a, b in itertools.pairwise(pictures))
    assert (pictures[0][60:100, 2] == 255).all()  # the background stays white
    assert shown._repr_mimebundle_().keys() == {"image/gif", "text/plain"}
    at_times = plotting.animate(run, tmp_path / "at.gif", times=[0.0, 0.0101], window=SMALL)
    np.testing.assert_allclose(at_times.time, [0.0, 0.01])
    every_20th = plotting.animate(run, tmp_path / "every.gif", times=run.time[::20], window=SMALL)
    assert len(every_20th.time) == 2


def test_film(pv: Any, run: Solution, tmp_path: Path) -> None:
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    shown = plotting.animate(run, tmp_path / "run.mp4", frames=6, window=SMALL)
    reader = ffmpeg.read_frames(str(shown.path))
    size = next(reader)["size"]
    pictures = [np.frombuffer(data, np.uint8) for data in reader]
    assert size == SMALL and len(pictures) == 6 and contrast(pictures[0]) > 5
    assert np.abs(pictures[0].astype(float) - pictures[3]).mean() > 1
    assert "text/html" in shown._repr_mimebundle_()
    with pytest.raises(InputError) as error:
        plotting.animate(run, tmp_path / "odd.mp4", window=(321, 240))
    assert (error.value.argument, error.value.value) == ("window", (321, 240))


def test_energies_leave_matplotlib_alone(one_rank: None, run: Solution, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    before = dict(matplotlib.rcParams)
    figure = plotting.plot_energies(run, tmp_path / "energies.png")
    upper, lower = figure.axes
    lines = {line.get_label(): line.get_ydata() for axes in (upper, lower) for line in axes.lines}
    np.testing.assert_allclose(lines["elastic"], run.energies().elastic)
    np.testing.assert_allclose(lines["total"], lines["kinetic"] + lines["elastic"])
    assert dict(matplotlib.rcParams) == before and (tmp_path / "energies.png").stat().st_size > 1000


# ---- errors ------------------------------------------------------------------------------------
PICTURES = "a path that ends with .jpg or .pdf or .png"


@pytest.mark.parametrize(
    ("call", "argument", "expected"),
    [
        (lambda: plotting.plot_modes(bar(skin=False)), "body", "a body with a skin"),
        (lambda: plotting.plot_body(bar(skin=False), np.zeros(3)), "body", "a body with a skin"),
        (lambda: plotting.plot_modes(bar(), [1, 4]), "every entry of modes", "from 1 to 3"),
        (lambda: plotting.plot_modes(bar(), [0]), "every entry of modes", "from 1 to 3"),
        (lambda: plotting.plot_modes(bar(), []), "modes", "not empty"),
        (lambda: plotting.plot_modes(bar().rigid()), "body", "with modes"),
        (lambda: plotting.plot_modes(bar(), path="modes.bmp"), "path", PICTURES),
        (lambda: plotting.plot_body(bar(), np.zeros(3), "body"), "path", PICTURES),
        (lambda: camera_of(np.eye(3), (0.0, 0.0, 0.0)), "view", "three numbers"),
    ],
)
def test_errors_of_bodies(call: Any, argument: str, expected: str) -> None:
    with pytest.raises(InputError) as error:
        call()
    assert error.value.argument == argument
    assert expected in str(error.value.expected)


@pytest.mark.parametrize(
    ("options", "argument", "expected"),
    [
        ({"path": "run.avi"}, "path", ".gif or .mp4"),
        ({"times": [0.0, 1.0]}, "times", "within the solution, 0 to 0.03 s"),
        ({"quantity": "heat"}, "quantity", "'von Mises'"),
        ({"quantity": "von Mises"}, "quantity", "no body has stress"),
    ],
)
def test_errors_of_animations(
    run: Solution, tmp_path: Path, options: dict[str, Any], argument: str, expected: str
) -> None:
    options = {"path": tmp_path / "run.gif", **options}
    with pytest.raises(InputError) as error:
        plotting.animate(run, **options)
    assert error.value.argument == argument
    assert expected in str(error.value.expected)
    assert not list(tmp_path.iterdir())


def test_time_must_be_in_the_solution(run: Solution) -> None:
    with pytest.raises(InputError) as error:
        plotting.plot_system(run, 0.5)
    assert error.value.argument == "time"
    assert error.value.expected == "within the solution, 0 to 0.03 s"


def test_path_that_cannot_be_written_is_an_error_before_drawing(
    run: Solution, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    for call in (
        lambda path: plotting.plot_modes(bar(), path=path / "x.png"),
        lambda path: plotting.animate(run, path / "x.gif"),
    ):
        with pytest.raises(OSError):
            call(tmp_path / "file")


def test_interrupted_animation_leaves_the_old_file(
    pv: Any, run: Solution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.gif"
    path.write_text("old")

    def interrupt(drawing: Drawing, q: np.ndarray) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Drawing, "move", interrupt)
    with pytest.raises(KeyboardInterrupt):
        plotting.animate(run, path, window=SMALL)
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["run.gif"]


@pytest.mark.parametrize(("missing", "suffix"), [("pyvista", "gif"), ("imageio_ffmpeg", "mp4")])
def test_missing_libraries_are_named(
    run: Solution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, suffix: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=f"pip install {missing.replace('_', '-')}"):
        plotting.animate(run, tmp_path / f"run.{suffix}")
    assert not list(tmp_path.iterdir())


def test_nothing_of_pyvista_is_changed(pv: Any, run: Solution) -> None:
    theme, off_screen = pv.global_theme.to_dict(), pv.OFF_SCREEN
    open_before = len(pv.plotting.plotter._ALL_PLOTTERS)
    plotting.plot_system(run.system, window=SMALL)
    assert pv.global_theme.to_dict() == theme and pv.OFF_SCREEN == off_screen
    assert len(pv.plotting.plotter._ALL_PLOTTERS) == open_before  # no window is left open


def test_joints_are_marked(pv: Any) -> None:
    ground = Ground({"a": Frame((0.3, 0.1, 0.2))})
    body = RigidBody.box("box", (0.2, 0.1, 0.1), mass=1.0, frames={"end": Frame((0.1, 0.0, 0.0))})
    system = System([ground, body], [revolute("hinge", ground.frame("a"), body.frame("end"))])
    plotter = pv.Plotter(off_screen=True)
    plotting.plot_system(system, plotter=plotter)
    assert any(
        np.linalg.norm(mesh.center - np.array((0.3, 0.1, 0.2))) < 1e-6 for mesh in plotter.meshes
    )
    plotter.close()


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: plotting.plot_body(bar(), np.zeros(4)), "eta"),
        (lambda: plotting.plot_body(bar(), "bent"), "eta"),
        (lambda: plotting.plot_body("bar", np.zeros(3)), "body"),
        (lambda: plotting.plot_body(bar(), np.zeros(3), scale=np.nan), "scale"),
        (lambda: plotting.plot_body(bar(), np.zeros(3), window=(10**9, 10)), "window"),
        (lambda: plotting.plot_modes(bar(), 3), "modes"),
        (lambda: plotting.plot_modes(bar(), columns=0), "columns"),
        (lambda: plotting.plot_modes(bar(), panel=(0.5, 10)), "panel"),
        (lambda: plotting.plot_system(bar()), "source"),
        (lambda: plotting.plot_energies(None), "solution"),
        (lambda: plotting.campbell_diagram("fast", [[1.0]]), "speeds"),
        (lambda: camera_of(np.eye(3), "north"), "view"),
        (lambda: camera_of(np.eye(3), (0.0, 0.0, 0.0)), "view"),
        (lambda: camera_of(np.eye(3), (0.0, np.nan, 0.0)), "view"),
    ],
)
def test_arguments_are_checked(call: Any, argument: str) -> None:
    with pytest.raises(errors.InputError) as error:
        call()
    assert error.value.argument == argument


@pytest.mark.parametrize(
    "options",
    [{"fps": 0}, {"fps": np.inf}, {"frames": 0}, {"frames": 0.5}, {"opacity": 2}, {"times": ["a"]}],
)
def test_arguments_of_animations(run: Solution, tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(errors.InputError) as error:
        plotting.animate(run, tmp_path / "run.gif", **options)
    assert error.value.argument == next(iter(options))
    assert not list(tmp_path.iterdir())
