"""Tools of the viewer in a browser: range, cut, isolation, curves, trace, scale bar."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.mechanism.mechanisms import slider_crank
from dolfinx_mbd.plotting import player
from dolfinx_mbd.results import Solution
from tests.plotting.test_viewer import Tab, picked, stressed_bar

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one rank writes pages")


@pytest.fixture(scope="module")
def run() -> Solution:
    crank = {"crank_radius": 0.05, "crank_mass": 0.9, "piston_mass": 0.2}
    return simulate(
        slider_crank(stressed_bar(), speed=200.0, angle=0.3, **crank),  # type: ignore[arg-type]
        t_end=0.03,
        dt=1e-4,
    )


@pytest.fixture
def tab(browser: Any, run: Solution, tmp_path: Path) -> Tab:
    player(run, tmp_path / "run.html")
    tab = Tab(browser, tmp_path / "run.html")
    tab.do("player.seek(0.01)")
    return tab


def pixel_of(tab: Tab, body: str) -> tuple[int, int]:
    pixels = [(x, y) for x in range(20, 700, 15) for y in range(20, 480, 15)]
    hits = tab.do(f"{[list(p) for p in pixels]}.map(([x, y]) => player.probe(x, y)?.body)")
    on_body = [p for p, name in zip(pixels, hits, strict=True) if name == body]
    return on_body[len(on_body) // 2]


def test_range_by_hand(tab: Tab) -> None:
    """Limits in the unit of the legend; values at or below the lower limit have one colour."""
    factor = 1e3 if tab.do("player.limit") >= 1e-4 else 1e6
    whole = factor * tab.do("player.limit")
    tab.do("player.set('range', 'by hand')")
    assert tab.do("player.settings.high") == pytest.approx(whole, rel=0.01)
    before = tab.image()
    upper = tab.page.get_by_label("upper limit")
    upper.fill(str(2 * whole))
    upper.press("Tab")
    tab.page.wait_for_timeout(100)
    assert factor * tab.do("player.limit") == pytest.approx(2 * whole, rel=1e-3)
    legend = tab.page.locator("#legend").inner_text()
    assert np.abs(tab.image() - before).max() > 50
    assert float(legend.split()[-1]) == pytest.approx(2 * whole, rel=1e-2)
    tab.do(f"player.set('low', {1.9 * whole})")  # above all values: the rod is dark blue
    x, y = pixel_of(tab, "rod")
    red, green, blue = tab.image()[y, x]
    assert blue > red and blue > green


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
    tab.page.wait_for_timeout(100)
    (path,) = tab.do("player.paths")
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
    low, high = tab.do("player.span")
    assert (low, high) == pytest.approx((0.1 * 0.03, 0.9 * 0.03), rel=0.02)
    tab.page.mouse.dblclick(box["x"] + 0.5 * box["width"], box["y"] + 40)
    tab.page.wait_for_timeout(100)
    assert tab.do("player.span") == pytest.approx([0.0, 0.03])


def test_scale_bar(tab: Tab) -> None:
    """The bar has a round length, and this length at the centre of the scene on the screen."""
    data = tab.do("({...document.getElementById('triad').dataset})")
    length, width = float(data["length"]), float(data["width"])
    digit = length / 10 ** np.floor(np.log10(length) + 1e-9)
    assert round(digit, 6) in (1, 2, 5) and 40 < width <= 131
    tab.page.keyboard.press("z")
    tab.page.wait_for_timeout(100)
    width = float(tab.do("document.getElementById('triad').dataset.width"))
    length = float(tab.do("document.getElementById('triad').dataset.length"))
    pixels = [(x, y) for x in range(20, 730, 5) for y in range(10, 480, 10)]
    hits = tab.do(f"{[list(p) for p in pixels]}.map(([x, y]) => player.probe(x, y))")
    on_rod = [(p, h) for (p, _), h in zip(pixels, hits, strict=True) if h and h["body"] == "rod"]
    (first, one), (last, two) = on_rod[0], on_rod[-1]
    way = abs(two["position"][0] - one["position"][0])  # from one end of the rod to the other
    assert last - first > 100 and tab.messages == []
    assert way == pytest.approx((last - first) * length / width, rel=0.1)  # in perspective
