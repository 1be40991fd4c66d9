"""Tools of the viewer in a browser: range, cut, isolation, curves, trace, camera, film, keys."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI
from PIL import Image
from scipy.spatial.transform import Rotation

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import Skin, StressModes
from dolfinx_mbd.dynamics import System
from dolfinx_mbd.errors import FileWarning
from dolfinx_mbd.mechanism import FlexibleBody
from dolfinx_mbd.mechanism.mechanisms import slider_crank
from dolfinx_mbd.plotting import player
from dolfinx_mbd.plotting.scene.surfaces import body_surfaces
from dolfinx_mbd.results import Solution
from tests.plotting.test_viewer import Tab, picked, stressed_bar

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one rank writes pages")


@pytest.fixture(scope="module")
def run() -> Solution:
    """Return a run of a slider-crank whose rod has stress modes."""
    crank = {"crank_radius": 0.05, "crank_mass": 0.9, "piston_mass": 0.2}
    return simulate(
        slider_crank(stressed_bar(), speed=200.0, angle=0.3, **crank),  # type: ignore[arg-type]
        t_end=0.03,
        dt=1e-4,
    )


@pytest.fixture
def tab(browser: Any, run: Solution, tmp_path: Path) -> Tab:
    """Return a tab of the browser that shows the run."""
    player(run, tmp_path / "run.html")
    tab = Tab(browser, tmp_path / "run.html")
    tab.do("player.seek(0.01)")
    return tab


def pixel_of(tab: Tab, body: str) -> tuple[int, int]:
    """Return a pixel at which the pointer finds a body."""
    pixels = [(x, y) for x in range(20, 700, 15) for y in range(20, 480, 15)]
    hits = tab.do(f"{[list(p) for p in pixels]}.map(([x, y]) => player.probe(x, y)?.body)")
    on_body = [p for p, name in zip(pixels, hits, strict=True) if name == body]
    return on_body[len(on_body) // 2]


def test_range_by_hand(tab: Tab) -> None:
    """Limits in the unit of the legend; values at or below the lower limit have one colour."""
    factor = 1e3 if tab.do("player.limit") >= 1e-4 else 1e6
    first_limit = factor * tab.do("player.limit")
    tab.do("player.set('range', 'by hand')")
    assert tab.do("player.settings.high") == pytest.approx(first_limit, rel=0.01)
    before = tab.image()
    upper = tab.page.get_by_label("upper limit")
    upper.fill(str(2 * first_limit))
    upper.press("Tab")
    tab.page.wait_for_timeout(100)
    assert factor * tab.do("player.limit") == pytest.approx(2 * first_limit, rel=1e-3)
    legend = tab.page.locator("#legend").inner_text()
    assert np.abs(tab.image() - before).max() > 50
    assert float(legend.split()[-1]) == pytest.approx(2 * first_limit, rel=1e-2)
    tab.do(f"player.set('low', {1.9 * first_limit})")  # above all values: the rod is dark blue
    x, y = pixel_of(tab, "rod")
    red, green, blue = tab.image()[y, x]
    assert blue > red and blue > green


def test_range_by_hand_of_another_quantity(tab: Tab) -> None:
    """The limits start again, with the unit of the new quantity beside them."""
    tab.do("player.set('range', 'by hand')")
    unit = tab.page.locator("#ends output")
    assert unit.inner_text() in ("mm", "µm")
    tab.page.get_by_label("colour").select_option("stress")
    tab.do("player.probe(0, 0)")  # draws
    ranges = [body["ranges"].get("stress", 0.0) for body in tab.do("player.data.bodies")]
    assert unit.inner_text() == "MPa" and tab.do("player.settings.range") == "by hand"
    assert tab.do("player.settings.high") == pytest.approx(1e-6 * max(ranges), rel=1e-2)
    assert tab.messages == []


def test_cutting_plane(tab: Tab) -> None:
    """Points beyond the plane are neither drawn nor found by the pointer."""
    before = tab.image()
    points = np.array([hit["position"] for hit in picked(tab, "rod")])
    tab.do("player.set('cut', 'x')")
    hull = np.array(tab.do("player.data.hull"))[:, 0]
    middle = 0.5 * (points[:, 0].min() + points[:, 0].max())
    tab.do(f"player.set('place', {(middle - hull.min()) / np.ptp(hull)})")
    cut = np.array([hit["position"] for hit in picked(tab, "rod")])
    assert len(cut) > 5 and cut[:, 0].max() < middle + 0.02 < points[:, 0].max()
    assert np.abs(tab.image() - before).max() > 50


def test_a_click_isolates_a_body(tab: Tab) -> None:
    before = tab.image()
    x, y = pixel_of(tab, "rod")
    tab.page.mouse.click(x, y)
    tab.page.wait_for_timeout(100)
    assert tab.do("player.settings.isolated") == "rod"
    assert np.abs(tab.image() - before).max() > 20  # the other bodies are faint
    tab.page.keyboard.press("Escape")
    tab.page.mouse.move(990, 690)  # away from the scene
    tab.page.wait_for_timeout(100)
    assert tab.do("player.settings.isolated") is None
    assert np.abs(tab.image() - before).mean() < 0.5


def test_trace_of_a_point(tab: Tab, run: Solution) -> None:
    """The trace passes through the positions of the node in the run."""
    x, y = pixel_of(tab, "piston")
    hit = tab.do(f"player.probe({x}, {y})")
    tab.page.keyboard.down("Shift")
    tab.page.mouse.click(x, y)
    tab.page.keyboard.up("Shift")
    for _ in range(50):  # the first frame after the click computes the path
        tab.page.wait_for_timeout(100)
        paths = tab.do("player.paths")
        if paths and paths[0]:
            break
    (path,) = paths
    points = np.reshape(path, (-1, 3))
    exact = run.sensor("piston", hit["reference"])
    gaps = np.linalg.norm(points[:, None] - exact[None], axis=2)
    assert gaps.min(axis=1).max() < 1e-5 and np.ptp(points[:, 0]) > 0.09


def test_curves(tab: Tab, run: Solution) -> None:
    """The CSV file has the values of the shown curves; the wheel zooms, a double click resets."""
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="CSV").click()
    with Path(download.value.path()).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    name = run.system.joints[0].name
    assert {row["curve"] for row in rows} == {f"{name}: force (N)"}
    time, value = (np.array([float(row[k]) for row in rows]) for k in ("time (s)", "value"))
    force = np.linalg.norm(run.joint(name).force, axis=1)
    np.testing.assert_allclose(value, np.interp(time, run.time, force), rtol=1e-6, atol=1e-3)
    box = tab.page.locator("#curves canvas").bounding_box()
    tab.page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 40)
    tab.page.mouse.wheel(0, -100)
    tab.page.wait_for_timeout(100)
    low, high = tab.do("player.span")  # the wheel reduces the span to 80 %
    assert (low, high) == pytest.approx((0.1 * 0.03, 0.9 * 0.03), rel=0.02)
    tab.page.mouse.dblclick(box["x"] + 0.5 * box["width"], box["y"] + 40)
    tab.page.wait_for_timeout(100)
    assert tab.do("player.span") == pytest.approx([0.0, 0.03])


@pytest.mark.parametrize("width", [500, 1200])
def test_orbits(browser: Any, run: Solution, tmp_path: Path, width: int) -> None:
    """A marker moves on an orbit beside the scene; a click on the orbit goes to its time."""
    centre = run.body("rod").position
    path = np.column_stack([1e3 * centre[:, 0], 1e3 * centre[:, 1]])
    player(run, tmp_path / "run.html", signals={"rod (mm)": path, "x (m)": centre[:, 0]})
    tab = Tab(browser, tmp_path / "run.html", width)
    for time in (0.004, 0.011, 0.0237):
        tab.do(f"player.seek({time})")
        (marker,) = tab.do("player.markers")
        exact = [np.interp(time, run.time, values) for values in path.T]
        # The page omits points of an orbit within an error of 1/500 of its size.
        assert np.abs(np.subtract(marker, exact)).max() < 1.01 / 500 * np.ptp(path, axis=0).max()
    orbit, below = (tab.page.locator(f"#{name} canvas") for name in ("orbits", "curves"))
    box, stage = orbit.bounding_box(), tab.page.locator("#stage").bounding_box()
    assert below.count() == 1 and box is not None and stage is not None
    beside = box["x"] >= stage["x"] + stage["width"] - 1
    assert beside == (width > 800) and stage["width"] > 400 and stage["height"] > 300
    # The larger extent of the orbit takes `scale` pixels: the canvas without 50 pixels of margins,
    # as in `orbitScale` (player.js). There 15 and 3 pixels, see below, are offsets of the centre
    scale = min(box["width"], box["height"]) - 50
    high, low = path.max(axis=0), path.min(axis=0)
    k = int(np.argmax(path[:200, 1]))  # the uppermost point
    x, y = (path[k] - 0.5 * (high + low)) * scale / (high - low).max()
    tab.page.mouse.click(
        box["x"] + 15 + 0.5 * box["width"] + x, box["y"] + 3 + 0.5 * box["height"] - y
    )
    (marker,) = tab.do("player.markers")
    assert np.abs(np.subtract(marker, path[k])).max() < 0.02 * (high - low).max()
    with tab.page.expect_download() as download:
        tab.page.keyboard.press("v")
    with Path(download.value.path()).open(encoding="utf-8", newline="") as file:
        names = {row["curve"] for row in csv.DictReader(file)}
    assert names == {"rod (mm), x", "rod (mm), y", "x (m)"}
    assert tab.messages == []
    with pytest.raises(mbd.errors.InputError, match="rod"):
        player(run, signals={"rod": centre})


def test_curve_of_round_off_is_not_shown_at_first(
    browser: Any, run: Solution, tmp_path: Path
) -> None:
    """The first curve that exceeds the round-off of the largest one is shown at first."""
    noise = 1e-13 * np.sin(run.time)
    player(run, tmp_path / "run.html", signals={"a": noise, "b": 0.1 + noise, "c": 3e4 + noise})
    tab = Tab(browser, tmp_path / "run.html")
    boxes = [tab.page.get_by_label(name, exact=True).is_checked() for name in "abc"]
    assert boxes == [False, True, False]


def test_legend_is_below_the_mode_shapes(browser: Any, tmp_path: Path) -> None:
    """The legend is below all pixels at which `probe` finds a mode shape.

    A page of mode shapes does not list the key F, which makes the camera follow a body of a run.
    """
    player(stressed_bar(), tmp_path / "modes.html", quantity="von Mises")
    for width, height in ((1000, 700), (390, 720)):
        tab = Tab(browser, tmp_path / "modes.html", width, height)
        pixels = [[x, y] for x in range(5, 260, 24) for y in range(0, height, 6)]
        hits = tab.do(f"{pixels}.map(([x, y]) => player.probe(x, y) ? y : 0)")
        assert 0 < max(hits) < tab.page.locator("#legend").bounding_box()["y"]
        assert "F" not in tab.page.locator("kbd").all_inner_texts()


def test_the_button_of_the_settings_is_beside_the_title(
    browser: Any, run: Solution, tmp_path: Path
) -> None:
    player(run, tmp_path / "run.html", title="A slider-crank with a rod and a long title")
    tab = Tab(browser, tmp_path / "run.html", 390, 700)
    title = tab.page.locator("#titles div").bounding_box()
    assert title["x"] + title["width"] <= tab.page.locator("#menu").bounding_box()["x"]
    assert title["height"] > 35  # two lines


def test_large_pages_give_a_warning(
    run: Solution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = player(run)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page.save(tmp_path / "run.html")
    size = (tmp_path / "run.html").stat().st_size
    monkeypatch.setattr("dolfinx_mbd.plotting.viewer.page.LARGE", size - 1)
    with pytest.warns(FileWarning, match="surfaces and their modes") as record:
        player(run, tmp_path / "run.html")
    (warning,) = (entry.message for entry in record)
    assert (warning.value, warning.limit) == (size, size - 1)


def test_scale_bar(tab: Tab) -> None:
    """The bar has a round length, and this length at the centre of the scene on the screen."""
    data = tab.do("({...document.getElementById('triad').dataset})")
    length, width = float(data["length"]), float(data["width"])
    # length 1, 2 or 5 times a power of ten, m; width at most 130 pixels
    digit = length / 10 ** np.floor(np.log10(length) + 1e-9)
    assert round(digit, 6) in (1, 2, 5) and 40 < width <= 131
    tab.page.keyboard.press("z")
    tab.page.wait_for_timeout(100)
    width = float(tab.do("document.getElementById('triad').dataset.width"))
    length = float(tab.do("document.getElementById('triad').dataset.length"))
    pixels = [(x, y) for x in range(20, 730, 5) for y in range(10, 480, 10)]
    hits = tab.do(f"{[list(p) for p in pixels]}.map(([x, y]) => player.probe(x, y))")
    on_rod = [(p, h) for (p, _), h in zip(pixels, hits, strict=True) if h and h["body"] == "rod"]
    (first, start), (last, end) = on_rod[0], on_rod[-1]
    distance = abs(end["position"][0] - start["position"][0])  # between the ends of the rod, m
    assert last - first > 100 and tab.messages == []
    assert distance == pytest.approx((last - first) * length / width, rel=0.1)  # perspective


def centre_of(run: Solution, body: str, time: float) -> np.ndarray:
    """Return the centre of the box around the surface of a body at a time, m."""
    k = int(np.argmin(np.abs(run.time - time)))
    surfaces = body_surfaces(run.system, run.q[k : k + 1], 1.0)
    surface = next(surface for surface in surfaces if surface.name == body)
    x = surface.skin.points
    middle = 0.5 * (x.min(axis=0) + x.max(axis=0))
    rotation = Rotation.from_quat(np.roll(surface.rotation[0], -1))
    return np.asarray(surface.position[0] + rotation.apply(middle))


def test_camera_follows_a_body(tab: Tab, run: Solution) -> None:
    """The centre of the view is that of the body at all times; the direction does not change."""
    direction = np.subtract(tab.do("player.eye"), tab.do("player.target"))
    for body in ("piston", "crank", "rod"):
        tab.do(f"player.set('follow', '{body}')")
        for time in (0.01, 0.0, 0.027):
            tab.do(f"player.seek({time})")
            exact = centre_of(run, body, time)
            # the page omits instants within an error of half a pixel, see PIXEL of `page_scene`
            np.testing.assert_allclose(tab.do("player.target"), exact, rtol=0, atol=3e-4)
            new_direction = np.subtract(tab.do("player.eye"), tab.do("player.target"))
            np.testing.assert_allclose(new_direction, direction, rtol=0, atol=1e-9)
    tab.do("player.set('follow', '')")
    fixed = tab.do("player.target")
    tab.do("player.seek(0.01)")
    assert tab.do("player.target") == fixed
    tab.page.keyboard.press("f")  # the first body after the ground
    tab.do("player.probe(0, 0)")  # draws, which moves the target
    name = tab.do("player.settings.follow")
    assert name == run.system.bodies[1].name and tab.messages == []
    exact = centre_of(run, name, 0.01)
    np.testing.assert_allclose(tab.do("player.target"), exact, rtol=0, atol=3e-4)
    tab.page.keyboard.press("z")  # another direction; the body remains in the centre
    tab.do("player.probe(0, 0)")  # draws
    np.testing.assert_allclose(tab.do("player.target"), exact, rtol=0, atol=3e-4)


def test_opacity(tab: Tab) -> None:
    """A transparent rod shows the background through it; an opaque piston hides what is behind."""
    x, y = pixel_of(tab, "rod")
    background = tab.image()[3, -30]  # at the top right, where no body is
    before = tab.image()
    tab.do("player.set('opacity', 0.1)")
    clear = np.abs(tab.image()[y, x] - background).sum()
    assert clear < 0.5 * np.abs(before[y, x] - background).sum()
    tab.do("player.set('opacity', 1)")
    x, y = pixel_of(tab, "piston")
    assert np.abs(tab.image()[y, x] - before[y, x]).sum() > 10


def stage_of(tab: Tab) -> list[int]:
    """Return height and width of the scene, pixels."""
    sides: list[int] = tab.do(
        "(({clientHeight, clientWidth}) => [clientHeight, clientWidth])(stage)"
    )
    return sides


def test_picture_has_legend_and_time(tab: Tab) -> None:
    """The file is the scene with the texts and the colour bar of the screen."""
    tab.do("player.set('colour', 'stress')")
    with tab.page.expect_download() as download:
        tab.page.keyboard.press("p")
    with Image.open(download.value.path()) as file:
        picture = np.asarray(file.convert("RGB")).astype(float)
    assert list(picture.shape) == [*stage_of(tab), 3]
    height = len(picture)
    bar = picture[height - 64 : height - 20, 22:252]  # red at its right end, blue on its left
    assert (bar[:, -20:, 0] - bar[:, -20:, 2]).max() > 120
    assert (bar[:, 30:60, 2] - bar[:, 30:60, 0]).max() > 120
    background = picture[3, -30]
    for title, width in ((slice(8, 26), 60), (slice(28, 44), 60)):  # name and time
        assert np.abs(picture[title, 12:width] - background).max() > 200
    triad = picture[height - 78 : height - 8, -60:-8]
    assert np.abs(triad - background).max() > 80


@pytest.mark.slow
def test_film(tab: Tab, tmp_path: Path) -> None:
    """The film shows the whole motion at the chosen speed."""
    imageio = pytest.importorskip("imageio_ffmpeg")
    tab.page.get_by_label("speed").select_option("2")
    with tab.page.expect_download(timeout=30_000) as download:
        tab.page.keyboard.press("m")
    assert tab.do("player.settings.playing") is False
    assert tab.do("player.time") == pytest.approx(0.03) and tab.messages == []
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.suffix == ".webm" and path.read_bytes()[:4] == b"\x1a\x45\xdf\xa3"
    reader = imageio.read_frames(str(path), output_params=["-fps_mode", "passthrough"])
    meta = next(reader)
    width, height = meta["size"]
    assert [height, width] == stage_of(tab)
    frames = [np.frombuffer(frame, np.uint8).astype(float) for frame in reader]
    assert len(frames) > 5
    middle = frames[len(frames) // 2]
    assert np.abs(middle - frames[0]).max() > 80 < np.abs(middle - frames[-1]).max()


@pytest.mark.slow
def test_large_surfaces(browser: Any, tmp_path: Path) -> None:
    """Pages open, also with 150,000 points at the surface."""
    body = stressed_bar()
    assert body.skin is not None
    length = body.skin.points[:, 0].max()
    # Points along the bar and around it: 50,000, whose indices have 16 bits, and 150,000
    for count, with_stress in ((224, False), (388, True)):
        positions, angle = np.linspace(0, length, count), np.linspace(0, 2 * np.pi, count, False)
        x, phi = (grid.ravel() for grid in np.meshgrid(positions, angle, indexing="ij"))
        points = np.column_stack([x, 0.01 * np.cos(phi), 0.01 * np.sin(phi)])
        i = np.arange(count**2).reshape(count, count)
        a, b = i[:-1].ravel(), i[1:].ravel()
        c, d = np.roll(i[:-1], -1, axis=1).ravel(), np.roll(i[1:], -1, axis=1).ravel()
        triangles = np.vstack([np.column_stack([a, b, c]), np.column_stack([b, d, c])])
        modes = np.zeros((3, count**2, 3))
        modes[:, :, 1] = [np.sin((k + 1) * np.pi * x / length) for k in range(3)]
        values = 1e11 * np.random.default_rng(0).normal(size=(6, count**2, 3))
        stress = StressModes(points, values) if with_stress else None
        fine = body.replace(skin=Skin(points, triangles, modes), stress=stress)
        path = tmp_path / f"{count}.html"
        player(System([FlexibleBody("bar", fine)]), path)
        # The viewer has 0.65 MB. Each point would have three coordinates of 32 bits,
        # two triangles, and in 16 bits three displacements and six stresses of each mode,
        # uncompressed in base64
        corner, values_of_mode = (4, 3 + 6) if with_stress else (2, 3)
        bytes_of_point = 4 / 3 * (3 * 4 + 2 * 3 * corner + len(modes) * values_of_mode * 2)
        assert path.stat().st_size < 0.65e6 + bytes_of_point * count**2
        tab = Tab(browser, path)
        assert tab.do("player.data.parts.length") == 1 and tab.image().std() > 3


@pytest.mark.slow
def test_documented_size() -> None:
    """A coarse rod takes 5 bytes per node for each mode, and 11 more for the stress of a mode."""
    pytest.importorskip("gmsh")
    mesh = mbd.build_mesh(mbd.ConnectingRod(size=0.005), MPI.COMM_SELF)
    reduction = mbd.reduce(mesh, mbd.STEEL, interfaces=["big_end", "small_end"], num_modes=3)
    body = reduction.body.replace(stress=mbd.durability.skin_stress(reduction))
    assert body.skin is not None
    sizes = {}
    for modes in ([1, 2, 3], [1, 2]):
        for with_stress in (True, False):
            shown = body if with_stress else body.replace(stress=None)
            page = player(shown, modes=modes).html
            sizes[len(modes), with_stress] = len(page) / len(body.skin.points)
    assert sizes[3, False] - sizes[2, False] == pytest.approx(5, rel=0.15)
    assert sizes[3, True] - sizes[3, False] == pytest.approx(3 * 11, rel=0.1)


def test_keys(tab: Tab, run: Solution) -> None:
    """Settings change without a mouse."""
    press = tab.page.keyboard.press
    for key, name, value in (
        ("r", "range", "running"),
        ("k", "cut", "x"),
        ("]", "place", 0.55),
        ("[", "place", 0.5),
        (",", "opacity", 0.9),
        ("i", "isolated", run.system.bodies[1].name),
        ("i", "isolated", run.system.bodies[2].name),
        ("Escape", "isolated", None),
        ("c", "colour", "stress"),
    ):
        press(key)
        assert tab.do(f"player.settings.{name}") == (
            pytest.approx(value) if isinstance(value, float) else value
        )
    for _ in range(3):
        press("k")
    assert tab.do("player.settings.cut") == "none"
    x, y = pixel_of(tab, "rod")
    tab.page.mouse.move(x, y)
    press("t")
    tab.do("player.probe(0, 0)")  # draws
    assert len(tab.do("player.paths")) == 1
    press("t")
    tab.do("player.probe(0, 0)")  # draws
    assert tab.do("player.paths") == [] and tab.messages == []
