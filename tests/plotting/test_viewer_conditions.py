"""The viewer with hostile texts, in pages with many viewers, and in browsers without WebGL."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd.analyses import linearize, simulate
from dolfinx_mbd.dynamics import System, consistent_state
from dolfinx_mbd.mechanism import FlexibleBody, Frame, Ground, SpringDamper, force, spherical
from dolfinx_mbd.plotting.viewer.page import player
from dolfinx_mbd.results import Solution
from tests.plotting.test_plotting import bar
from tests.plotting.test_viewer import Tab, stressed_bar

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one rank writes pages")

HOSTILE = (
    '<img src=x onerror="window.attack = 1">\'"&<b>%SCENE%</script><script>attack = 2</script>'
)
"""A text that runs a script wherever a page interprets the text as HTML."""


def hostile_run() -> Solution:
    """Return a run in which all names that a user chooses are hostile texts."""
    ground = Ground({HOSTILE: Frame(), "wall": Frame((0.0, 0.2, 0.0))})
    rod = FlexibleBody(HOSTILE, stressed_bar())
    system = System(
        [ground, rod],
        [spherical(f"{HOSTILE} joint", ground.frame(HOSTILE), rod.frame("big_end"))],
        loads=[
            SpringDamper(
                f"{HOSTILE} spring", ground.frame("wall"), rod.frame("small_end"), stiffness=1e3
            ),
            force(f"{HOSTILE} load", rod.frame("small_end"), (0.0, 1.0, 0.0)),
        ],
    )
    return simulate(system, t_end=2e-3, dt=1e-4)


def test_texts_are_never_interpreted(browser: Any, tmp_path: Path) -> None:
    run = hostile_run()
    skin = stressed_bar().skin
    assert skin is not None
    player(
        run,
        tmp_path / "run.html",
        title=HOSTILE,
        signals={HOSTILE: np.zeros(len(run))},
        field={HOSTILE: np.ones(len(skin.points))},
        field_name=(HOSTILE, f"unit {HOSTILE}"),
    )
    body = stressed_bar()
    modes = tuple(replace(mode, label=HOSTILE) for mode in body.modes)
    player(body.replace(name=HOSTILE, modes=modes), tmp_path / "modes.html")
    free = System(run.system.bodies, run.system.joints)
    player(linearize(free, consistent_state(free)), tmp_path / "linearized.html", title=HOSTILE)
    for name in ("run", "modes", "linearized"):
        tab = Tab(browser, tmp_path / f"{name}.html")
        for quantity in ("field", "displacement", "stress"):
            tab.do(f"player.set('colour', '{quantity}')")
        tab.do("player.seek(0)")
        for hit in picked_pixels(tab):
            tab.page.mouse.move(*hit)
        tab.page.wait_for_timeout(100)
        assert tab.do("window.attack") is None
        assert tab.do("document.querySelectorAll('img').length") == 0
        assert tab.do("document.title") == HOSTILE
        assert tab.messages == []
    texts = (
        "['legend', 'panel', 'titles', 'hint'].map((k) => document.getElementById(k).textContent)"
    )
    tab = Tab(browser, tmp_path / "run.html")
    legend, panel, titles, _ = tab.do(texts)
    assert legend.startswith(f"{HOSTILE} (unit {HOSTILE})")
    assert panel.count(HOSTILE) >= 2 and titles == HOSTILE  # body and curve


def picked_pixels(tab: Tab) -> list[tuple[int, int]]:
    """Return some pixels at which the pointer is on a body."""
    pixels = [(x, y) for x in range(20, 700, 20) for y in range(20, 500, 20)]
    hits = tab.do(f"{[list(p) for p in pixels]}.map(([x, y]) => player.probe(x, y) !== null)")
    return [pixel for pixel, hit in zip(pixels, hits, strict=True) if hit][:3]


def test_other_scripts_are_refused(browser: Any, tmp_path: Path) -> None:
    """The policy of the page permits the two scripts of the viewer only."""
    path = tmp_path / "page.html"
    text = player(bar(), path).html
    path.write_text(
        text.replace(
            "</main>", "<img src=x onerror='attack = 1'><script>attack = 2</script></main>"
        )
    )
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("#panel > *", state="attached", timeout=30_000)
    page.wait_for_timeout(100)
    assert page.evaluate("window.attack") is None


def test_titles_from_names_of_files(tmp_path: Path) -> None:
    """A name that is not UTF-8 on the disk can be a title."""
    player(bar(), tmp_path / "page.html", title="caf\udce9")
    assert "<title>caf?" in (tmp_path / "page.html").read_text(encoding="utf-8")


# ---- many viewers -------------------------------------------------------------------------------
STATE = """() => {
  const canvas = document.querySelector("#stage > canvas");
  if (!canvas) return "none";
  return canvas.getContext("webgl2").isContextLost() ? "lost" : "open";
}"""


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until a condition holds, without `eval` in the page, which its policy forbids."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_pages_with_many_viewers(browser: Any, tmp_path: Path) -> None:
    """Scenes exist while they are visible, so that more viewers than WebGL contexts work."""
    count, viewer = 20, player(bar(), modes=[1])._repr_html_()
    path = tmp_path / "many.html"
    path.write_text(f"<!doctype html><body>{viewer * count}</body>", encoding="utf-8")
    page = browser.new_page(viewport={"width": 500, "height": 800}, reduced_motion="reduce")
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.goto(path.as_uri())
    frames = page.locator("iframe")
    assert frames.count() == count
    for k in [*range(count), 10, 0]:  # to the end, and again from the start
        frames.nth(k).scroll_into_view_if_needed()
        frame = frames.nth(k).element_handle().content_frame()
        wait_until(lambda frame=frame: frame.evaluate(STATE) == "open")
    page.wait_for_timeout(2000)
    states = [frame.evaluate(STATE) for frame in page.frames[1:]]
    assert states[0] == "open" and "lost" not in states
    assert states.count("open") <= 3  # those on the screen
    assert messages == []
    image = frames.nth(0).screenshot(path=tmp_path / "first.png")
    assert len(image) > 5_000  # a white rectangle has less


def test_scene_that_the_browser_closes(browser: Any, tmp_path: Path) -> None:
    """Browsers close scenes if too many are visible; a click opens the scene again."""
    player(bar(), tmp_path / "page.html", modes=[1])
    tab = Tab(browser, tmp_path / "page.html", 500, 400)
    context = "document.querySelector('#stage > canvas').getContext('webgl2')"
    tab.do("player.seek(0)")
    before = tab.image()
    tab.do(f"{context}.getExtension('WEBGL_lose_context').loseContext()")
    tab.page.wait_for_selector("#message button", state="visible")
    assert tab.do(f"({STATE})()") == "none"
    tab.page.locator("#message button").click()
    assert tab.do(f"({STATE})()") == "open"
    assert not tab.page.locator("#message").is_visible()
    tab.do("player.seek(0)")
    assert np.abs(tab.image() - before).mean() < 1.0


# ---- no WebGL -----------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["run", "modes"])
def test_browsers_without_webgl(browser: Any, tmp_path: Path, kind: str) -> None:
    """Curves, titles and the time bar work; a message names the reason."""
    options = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-3d-apis",
        "--disable-software-rasterizer",
    ]
    program_path = shutil.which("chromium") or shutil.which("chromium-browser")
    program = browser.browser_type.launch(executable_path=program_path, args=options)
    try:
        path = tmp_path / "page.html"
        player(hostile_run() if kind == "run" else bar(), path, title="shown")
        page = program.new_page(viewport={"width": 900, "height": 600})
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("#panel > *", state="attached", timeout=30_000)
        message = page.locator("#message").inner_text()
        assert "WebGL" in message and "Curves" in message
        before = page.evaluate("player.time")
        page.wait_for_timeout(400)
        assert page.evaluate("player.time") != before
        page.keyboard.press("Space")
        page.keyboard.press("p")
        page.evaluate("player.set('colour', 'stress')")
        clock = page.locator("#bar output").inner_text()
        if kind == "run":
            assert page.locator("#curves canvas").is_visible() and clock.endswith("ms")
        else:
            assert "Hz" in page.locator("#titles").inner_text()
        assert errors == []
    finally:
        program.close()
