"""The viewer: the page has the motion, needs nothing else, and shows correct numbers."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import errors, plotting
from dolfinx_mbd.analyses import equilibrium, linearize, simulate
from dolfinx_mbd.body import ReducedBody, StressModes
from dolfinx_mbd.dynamics import System, consistent_state
from dolfinx_mbd.forms import Cable
from dolfinx_mbd.mechanism import (
    FlexibleBody,
    Frame,
    Ground,
    RigidBody,
    SpringDamper,
    distance,
    force,
    spherical,
)
from dolfinx_mbd.mechanism.mechanisms import rigid_rod, slider_crank
from dolfinx_mbd.plotting.viewer.data import integers, outline, sampled_rows
from dolfinx_mbd.plotting.viewer.html_page import asset
from dolfinx_mbd.plotting.viewer.page import player
from dolfinx_mbd.results import Solution
from dolfinx_mbd.structures.cables import CableBody
from dolfinx_mbd.structures.rotating import RotatingModes
from tests.plotting.pages import numbers, scene_in, surface_in
from tests.plotting.test_plotting import bar


@pytest.fixture(autouse=True)
def one_rank() -> None:
    """Skip the test on other ranks than the first."""
    if MPI.COMM_WORLD.rank > 0:
        pytest.skip("one rank writes pages")


def stressed_bar() -> ReducedBody:
    """Return the bar with stresses per mode that differ from node to node."""
    body = bar()
    assert body.skin is not None
    count = len(body.skin.points)
    stress = np.random.default_rng(3).normal(size=(6, count, 3)) * 1e11
    return body.replace(stress=StressModes(body.skin.points, stress))


@pytest.fixture(scope="module")
def run() -> Solution:
    """Return a run of a slider-crank whose rod has stress modes."""
    crank = {"crank_radius": 0.05, "crank_mass": 0.9, "piston_mass": 0.2}
    return simulate(
        slider_crank(stressed_bar(), speed=200.0, angle=0.3, **crank), t_end=0.03, dt=1e-4
    )


def vectors_of(arrow: dict[str, Any]) -> np.ndarray:
    """Return the vectors of an arrow, shape (nt, 3)."""
    return float(arrow["vectors"]["scale"]) * numbers(arrow["vectors"]["values"]).reshape(-1, 3)


# ---- what the page contains ---------------------------------------------------------------------
def test_motion_between_the_kept_instants(run: Solution) -> None:
    """Interpolated positions are those of the simulation to 1.5 thousandths of the scene."""
    scene = scene_in(player(run))
    time = numbers(scene["time"])
    assert 4 < len(time) < len(run)
    names = [body["name"] for body in scene["bodies"]]
    rod = scene["bodies"][names.index("rod")]
    points, _, modes, _ = surface_in(scene["parts"][rod["part"]])

    def at(item: dict[str, str], size: int) -> np.ndarray:
        values = numbers(item).reshape(-1, size)
        return np.column_stack([np.interp(run.time, time, column) for column in values.T])

    R, Q, eta = (at(rod[k], n) for k, n in (("position", 3), ("rotation", 4), ("eta", len(modes))))
    worst = 0.0
    skin = bar().skin
    assert skin is not None
    for k in range(len(run)):
        pose = {"position": R[k], "rotation": Q[k] / np.linalg.norm(Q[k])}
        shown = plotting.skin_points(skin, np.zeros(3), **pose)
        # the rotation matrix, from the rigid points
        A = (shown - R[k]).T @ np.linalg.pinv(skin.points).T
        shown = R[k] + (points + np.tensordot(eta[k], modes, axes=1)) @ A.T
        history = run.body("rod")
        exact = plotting.skin_points(
            skin, history.eta[k], position=history.position[k], rotation=history.rotation[k]
        )
        worst = max(worst, float(np.abs(shown - exact).max()))
    assert worst < 1.5e-3 * scene["length"]


def test_thinning_meets_its_bound_and_its_limit() -> None:
    t = np.linspace(0.0, 1.0, 2001)
    curves = np.column_stack([np.sin(20 * t), t**3]) / 1e-3
    rows = sampled_rows(t, curves, limit=2000)
    shown = np.column_stack([np.interp(t, t[rows], c[rows]) for c in curves.T])
    assert np.abs(shown - curves).max() <= 1.0 and len(rows) < 500
    assert len(sampled_rows(t, curves, limit=20)) == 20
    assert sampled_rows(t[:1], curves[:1], limit=20).tolist() == [0]


def test_integers_and_outlines() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 3)) * 1e-6
    for exact in (vectors, 0 * vectors):
        stored = integers(exact)
        shown = stored["scale"] * numbers(stored["values"]).reshape(-1, 3)
        assert np.abs(shown - exact).max() <= 0.5001 * np.abs(exact).max() / 32767
    t = np.linspace(0, 1, 100_000)
    y = np.sin(300 * t)
    y[54_321] = 7.0
    x, shown = outline(t, y)
    assert len(x) < 1300 and shown.max() == 7.0 and shown.min() == y.min()


def test_bodies_with_one_surface_share_it() -> None:
    body, frames = bar(), {"a": Frame((0, 0, 0)), "b": Frame((0, 0.1, 0))}
    ground = Ground(frames)
    first, second = (
        FlexibleBody(name, body, position=(0.0, y, 0.0)) for name, y in (("one", 0.0), ("two", 0.1))
    )
    joints = [
        spherical("at one", ground.frame("a"), first.frame("big_end")),
        spherical("at two", ground.frame("b"), second.frame("big_end")),
    ]
    scene = scene_in(player(System([ground, first, second], joints)))
    assert [item["part"] for item in scene["bodies"]] == [0, 0] and len(scene["parts"]) == 1


def test_a_second_run_is_transparent_over_the_first(run: Solution) -> None:
    """Bodies of the second run move by its own coordinates, at the times of the first run."""
    crank = {"crank_radius": 0.05, "crank_mass": 0.9, "piston_mass": 0.2}
    rigid = slider_crank(stressed_bar().rigid(), speed=200.0, angle=0.3, **crank)
    rigid_run = simulate(rigid, t_end=0.04, dt=2e-4)
    alone, scene = scene_in(player(run)), scene_in(player(run, ghost=rigid_run))
    count = len(alone["bodies"])
    assert [item.get("ghost", False) for item in scene["bodies"]] == count * [False] + count * [
        True
    ]
    assert [item["name"] for item in scene["bodies"][count:]] == [
        f"{item['name']} (second run)" for item in alone["bodies"]
    ]
    time = numbers(scene["time"])
    for item in scene["bodies"][count:]:
        body = item["name"].removesuffix(" (second run)")
        exact = [np.interp(time, rigid_run.time, x) for x in rigid_run.body(body).position.T]
        error = np.abs(numbers(item["position"]).reshape(-1, 3) - np.transpose(exact)).max()
        assert error < 1e-6 and item["ranges"] == {} and "peak" not in item
    short = simulate(rigid, t_end=0.02, dt=2e-4)
    with pytest.raises(errors.InputError, match="ghost must be a run from t = 0 s"):
        player(run, ghost=short)
    with pytest.raises(errors.InputError, match="only the result of a simulation"):
        player(run.system, ghost=rigid_run)


def test_the_page_needs_nothing_else(run: Solution, tmp_path: Path) -> None:
    page = player(run, tmp_path / "new" / "run.html", title="<b>&")
    text = (tmp_path / "new" / "run.html").read_text(encoding="utf-8")
    assert text == page.html and "&lt;b&gt;&amp;" in text and len(text) < 5e6
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="', text)
    assert "default-src 'none'" in text
    assert "<iframe" in page._repr_html_() and "MB" in repr(page)


def test_bad_requests_are_refused(run: Solution, tmp_path: Path) -> None:
    with pytest.raises(errors.InputTypeError) as type_error:
        player("rod.npz")  # type: ignore[arg-type]
    assert type_error.value.argument == "source"
    with pytest.raises(errors.InputError) as shape:
        player(run, signals={"x": [1.0, 2.0]})
    assert shape.value.argument == "signals['x']"
    for modes in ([7], [-1], [], "ab"):
        with pytest.raises(errors.InputError):
            player(bar(), modes=modes)  # type: ignore[arg-type]
    with pytest.raises(errors.InputError):
        player(run, tmp_path / "run.png")
    with pytest.raises(errors.InputError):
        player(bar(skin=False))
    assert list(tmp_path.iterdir()) == []


# ---- lines: cables and beams --------------------------------------------------------------------
def hanging(elements: int = 4) -> tuple[System, CableBody]:
    """Return a cable between two points at unequal heights, and a ball on a rod at its middle."""
    rope = CableBody(
        "rope",
        Cable(axial_stiffness=1e4, bending_stiffness=1e-2, linear_density=0.2, damping=1e-3),
        (0.0, 0.0, 0.0),
        (1.0, 0.0, 0.3),
        elements=elements,
        length=1.3,
        frames={"middle": 0.65},
    )
    ground = Ground({"left": Frame(), "right": Frame((1.0, 0.0, 0.3))})
    ball = RigidBody("ball", 0.3, [1e-4] * 3, frames={"o": Frame()}, position=(0.5, 0.0, -0.6))
    joints = [
        spherical("left", ground.frame("left"), rope.frame("start")),
        spherical("right", ground.frame("right"), rope.frame("end")),
        distance("rod", rope.frame("middle"), ball.frame("o"), 0.2),
    ]
    return System([ground, rope, ball], joints, gravity=(0.0, 0.0, -9.81)), rope


def test_cables_are_lines_that_follow_the_run() -> None:
    system, rope = hanging()
    run = simulate(system, start=equilibrium(system), t_end=0.02, dt=2e-3)
    scene = scene_in(player(run))
    (line,) = scene["lines"]
    points = numbers(line["points"]).reshape(-1, line["count"], 3)
    time = numbers(scene["time"])
    places = np.linspace(0.0, 1.3, line["count"])
    exact = rope.motion(run, places).position
    for t, shown in zip(time, points, strict=True):
        assert np.abs(shown - exact[np.argmin(np.abs(run.time - t))]).max() < 1e-6
    hull = np.array(scene["hull"])
    assert hull[:, 2].min() <= points[:, :, 2].min() + 1e-6 < -0.2  # the camera sees the sag


def test_modes_of_a_cable_end_at_its_frames() -> None:
    system, _ = hanging()
    linearized = linearize(system, equilibrium(system))
    scene = scene_in(player(linearized, modes=[4, 5, 6]))  # after rotations of the ball
    for view in scene["views"]:
        line = np.array(view["lines"][0]).reshape(2, -1, 3)
        frames = np.array(view["frames"])
        middle = system.frame_index(system.joints[2].first)
        assert np.allclose(line[:, 8], frames[middle, :, :3], atol=1e-5)
        assert np.allclose(line[:, [0, -1]], 0.0, atol=1e-5)
        assert np.abs(line).max() > 1e-3


def beam_model(comm: MPI.Comm = MPI.COMM_SELF) -> mbd.BeamModel:
    """Return a straight square beam."""
    from dolfinx.mesh import create_interval

    return mbd.BeamModel(
        create_interval(comm, 8, [0.0, 0.5]), mbd.forms.Section.rectangle(0.02, 0.02), mbd.STEEL
    )


def test_reduced_beams_are_surfaces(browser: Any, tmp_path: Path) -> None:
    beam = mbd.reduce_beam(
        beam_model(), interfaces={"big_end": 0.0, "small_end": 0.5}, num_modes=4, name="beam"
    ).body
    crank = {"crank_radius": 0.05, "crank_mass": 0.9, "piston_mass": 0.2}
    run = simulate(slider_crank(beam, speed=100.0, **crank), t_end=0.01, dt=1e-4)
    player(run, tmp_path / "run.html", scale=10)
    tab = Tab(browser, tmp_path / "run.html")
    tab.do("player.seek(0)")
    hits = picked(tab, "rod")
    assert len(hits) > 20
    points = np.array([hit["reference"] for hit in hits])
    sides = points[(points[:, 0] > 1e-6) & (points[:, 0] < 0.5 - 1e-6)]
    # edges of the section of 20 × 20 mm, to half a step of 0.5 m/2²⁰
    assert np.abs(np.abs(sides[:, 1:]) - 0.01).max() < 3e-7
    assert beam.skin is not None


# ---- complex modes ------------------------------------------------------------------------------
def orbits(scene: dict[str, Any], k: int) -> np.ndarray:
    """Return the complex displacement of the surface in one view of a page, shape (ns, 3)."""
    shapes = surface_in(scene["parts"][0]).modes
    real, imaginary = scene["views"][k]["bodies"][0]["eta"]
    return np.tensordot(np.array(real) + 1j * np.array(imaginary), shapes, axes=1)


def shaft(speed: float) -> RotatingModes:
    """Return a square shaft along its axis of rotation z: its bending modes are circles."""
    from dolfinx.mesh import CellType, create_box, locate_entities_boundary

    corners = [(-0.01, -0.01, 0.0), (0.01, 0.01, 0.4)]
    mesh = create_box(MPI.COMM_SELF, corners, [1, 1, 10], CellType.hexahedron)
    foot = locate_entities_boundary(mesh, 2, lambda x: np.isclose(x[2], 0.0))
    structure = mbd.structures.rotating_structure(
        mesh, mbd.STEEL, held={"foot": foot}, axis=(0, 0, 1)
    )
    return mbd.structures.rotating_modes(structure, speed, num_modes=2)


@pytest.mark.parametrize("speed", [60.0, -60.0])
def test_whirl_of_a_shaft(speed: float) -> None:
    """Points orbit the axis on circles, in the sense of the whirl in the title."""
    modes = shaft(speed)
    scene = scene_in(player(modes))
    titles = [view["title"] for view in scene["views"]]
    # after the words "mode 1: " or "mode 2: "
    assert sorted(title[8:] for title in titles) == ["backward whirl", "forward whirl"]
    for k, title in enumerate(titles):
        z = orbits(scene, k)
        tip = z[np.argmax(np.abs(z).sum(axis=1))]
        first, later = tip.real, (tip * np.exp(0.5j)).real  # half a radian later
        sine = np.cross(first, later)[2] / np.linalg.norm(first) ** 2
        forward = "forward" in title
        assert sine == pytest.approx(np.sin(0.5) * (1 if forward == (speed > 0) else -1), rel=0.02)
        view = scene["views"][k]
        assert view["frequency"] == pytest.approx(modes.frequencies[k])
        # AMPLITUDE of `mode_scenes`; it is that of vectors, z contains components
        assert np.abs(z).max() == pytest.approx(0.06 * scene["length"], rel=0.5)


def test_rotating_modes_in_a_browser(browser: Any, tmp_path: Path) -> None:
    player(shaft(60.0), tmp_path / "shaft.html")
    tab = Tab(browser, tmp_path / "shaft.html")
    titles = tab.page.locator("#titles").inner_text()
    assert "forward whirl" in titles and "backward whirl" in titles and "Hz" in titles
    limits = []
    for phase in (0.0, 0.1, 0.2, 0.3):  # circles: the displacement is constant
        tab.do(f"player.seek({phase})")
        tab.do("player.set('range', 'running')")
        limits.append(tab.do("player.limit"))
    assert np.ptp(limits) < 0.03 * max(limits)


def test_critical_speeds_and_rotating_beams(tmp_path: Path) -> None:
    structure = mbd.structures.rotating_beam(beam_model(), held=[0.0], axis=(0, 1, 0))
    result = mbd.structures.critical_speed(structure, 2e4, stiffening=False, num_modes=3, steps=8)
    assert result is not None
    page = player(result, tmp_path / "critical.html", modes=[1])
    scene = scene_in(page)
    assert scene["title"].startswith(f"{result.kind} at ")
    assert (tmp_path / "critical.html").exists()
    z = orbits(scene, 0)
    points = surface_in(scene["parts"][0]).points
    size = np.abs(z).sum(axis=1)
    assert size[points[:, 0] < 1e-9].max() < 1e-6 < size[points[:, 0] > 0.49].min()


def test_whirl_of_a_gyroscope() -> None:
    """A top that hangs: J λ² − i I ω λ = −m g s has a forward and a slower backward whirl.

    J and I are the inertias across and along the axis, ω is the spin, and s is the arm.
    """
    inertia, axial, mass, arm, spin = 0.002, 0.001, 0.5, 0.1, 60.0
    ground = Ground({"o": Frame()})
    top = RigidBody("top", mass, [inertia, inertia, axial], (0, 0, -arm), frames={"o": Frame()})
    system = System(
        [ground, top],
        [spherical("tip", ground.frame("o"), top.frame("o"))],
        gravity=(0, 0, -9.81),
    )
    state = consistent_state(system, v=np.array([0, 0, 0, 0, 0, spin]))
    scene = scene_in(player(linearize(system, state, axes="global")))
    J = inertia + mass * arm**2
    roots = np.roots([J, -axial * spin, -mass * 9.81 * arm])  # ν in exp(iνt)
    senses = {abs(root) / (2 * np.pi): root > 0 for root in roots}
    whirls = [view for view in scene["views"] if "whirl" in view["title"]]
    assert len(whirls) == 2
    for view in whirls:
        frequency = min(senses, key=lambda f: abs(f - view["frequency"]))
        assert view["frequency"] == pytest.approx(frequency, rel=1e-6)
        assert ("forward" in view["title"]) == senses[frequency]


# ---- in a browser -------------------------------------------------------------------------------
class Tab:
    """A page in the browser, with its messages and its requests."""

    def __init__(self, browser: Any, path: Path, width: int = 1000, height: int = 700) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": height})
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("#panel > *", state="attached", timeout=30_000)
        assert self.messages == []
        assert self.requests == [path.as_uri()]

    def do(self, text: str) -> Any:
        return self.page.evaluate(text)

    def image(self) -> np.ndarray:
        from PIL import Image

        shot = self.page.locator("#stage").screenshot()
        return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(float)


def picked(tab: Tab, body: str) -> list[dict[str, Any]]:
    """Return what the pointer finds on a body on a grid of pixels."""
    items = tab.do(
        "Array.from({length: 1600}, (_, i) =>"
        " player.probe(10 + 18 * (i % 40), 8 + 15 * Math.floor(i / 40)))"
    )
    return [item for item in items if item and item["body"] == body]


def test_second_run_in_a_browser(browser: Any, run: Solution, tmp_path: Path) -> None:
    """The second run is drawn at its own positions and changes no colours of the first run."""
    crank = {"crank_radius": 0.05, "crank_mass": 0.9, "piston_mass": 0.2}
    system = slider_crank(stressed_bar(), speed=200.0, angle=1.3, **crank)
    path, alone = tmp_path / "two.html", tmp_path / "one.html"
    second = simulate(system, t_end=0.03, dt=1e-4)
    player(run, path, ghost=second)
    player(run, alone)
    tab, single_tab = Tab(browser, path), Tab(browser, alone)
    for page in (tab, single_tab):
        page.do("player.seek(0.01)")
    assert tab.do("player.limit") == pytest.approx(single_tab.do("player.limit"), rel=1e-9)
    assert len(picked(tab, "rod")) > 20
    rod, skin = second.body("rod"), stressed_bar().skin
    k = int(np.argmin(np.abs(second.time - 0.01)))
    assert skin is not None
    points = plotting.skin_points(
        skin, rod.eta[k], position=rod.position[k], rotation=rod.rotation[k]
    )
    ghosts = picked(tab, "rod (second run)")
    assert ghosts and all(item["value"] is None for item in ghosts)
    for item in ghosts:  # half a pixel of 0.2 m on 1000 pixels, between the instants of the page
        assert np.abs(np.array(item["position"]) - points[item["node"]]).max() < 1e-4
    assert np.abs(tab.image() - single_tab.image()).max() > 30


def test_field_in_a_browser(browser: Any, run: Solution, tmp_path: Path) -> None:
    """Constant values colour a body, whatever its deformation."""
    skin = stressed_bar().skin
    assert skin is not None
    values = 1e-3 * skin.points[:, 0] / skin.points[:, 0].max()
    path = tmp_path / "field.html"
    player(run, path, field={"rod": values}, field_name=("damage", "1/s"))
    tab = Tab(browser, path)
    assert tab.do("player.limit") == pytest.approx(1e-3, rel=1e-6)
    for time in (0.0, 0.02):
        tab.do(f"player.seek({time})")
        hits = picked(tab, "rod")
        assert len(hits) > 20
        assert all(abs(hit["value"] - values[hit["node"]]) < 1e-9 for hit in hits)
    assert "damage (1/s)" in tab.do("document.getElementById('legend').textContent")


def test_fields_that_do_not_fit(run: Solution) -> None:
    skin = stressed_bar().skin
    assert skin is not None
    count = len(skin.points)
    with pytest.raises(errors.InputError, match="rod"):
        player(run, field={"piston": np.zeros(count)})
    with pytest.raises(errors.InputError, match=str(count)):
        player(run, field={"rod": np.zeros(count + 1)})
    with pytest.raises(errors.InputError, match="not negative"):
        player(run, field={"rod": -np.ones(count)})
    with pytest.raises(errors.InputError, match="only the result of a simulation"):
        player(stressed_bar(), field={"rod": np.zeros(count)})


@pytest.mark.slow
def test_motion_in_a_browser(browser: Any, run: Solution, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    player(run, path)
    tab = Tab(browser, path)
    tab.do("player.seek(0.01)")
    k = int(np.argmin(np.abs(run.time - 0.01)))
    first = tab.image()
    assert first.std() > 5

    body, history = stressed_bar(), run.body("rod")
    assert body.skin is not None and body.stress is not None
    u = np.tensordot(history.eta[k], body.skin.modes, axes=1)
    values = {
        "displacement": np.linalg.norm(u, axis=1),
        "stress": body.stress.values("von Mises", history, times=[run.time[k]])[0],
    }
    exact = plotting.skin_points(
        body.skin, history.eta[k], position=history.position[k], rotation=history.rotation[k]
    )
    images = []
    for quantity, expected in values.items():
        tab.do(f"player.set('colour', '{quantity}')")
        images.append(tab.image())
        hits = picked(tab, "rod")
        assert len(hits) > 20
        for hit in hits:
            error = abs(hit["value"] - expected[hit["node"]]) / expected.max()
            assert error < 0.02  # (interpolated between the instants of the page)
            assert np.abs(hit["position"] - exact[hit["node"]]).max() < 1e-3 * 0.3
    assert np.abs(images[0] - images[1]).max() > 50  # other colours
    largest = body.stress.envelope("von Mises", history).value.max()
    assert tab.do("player.limit") == pytest.approx(largest, rel=0.02)
    tab.do("player.set('range', 'running')")
    assert tab.do("player.limit") == pytest.approx(values["stress"].max(), rel=0.02)

    tab.do("player.seek(0.02)")
    assert np.abs(tab.image() - images[1]).max() > 50
    before = tab.do("player.time")
    tab.page.keyboard.press("Space")
    tab.page.wait_for_timeout(400)
    tab.page.keyboard.press("Space")
    assert tab.do("player.time") != before
    tab.page.locator("label", has_text="rod").locator("input").uncheck()
    assert picked(tab, "rod") == []
    assert tab.messages == []


def test_hover_and_picture(browser: Any, run: Solution, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    player(run, path)
    tab = Tab(browser, path)
    tab.do("player.seek(0)")
    x, y = next(
        (x, y)
        for x in range(10, 700, 10)
        for y in range(10, 550, 10)
        if (tab.do(f"player.probe({x}, {y})") or {}).get("body") == "rod"
    )
    tab.page.mouse.move(x, y)
    text = tab.page.locator("#hint").inner_text()
    assert "rod" in text and "position" in text and "displacement" in text
    with tab.page.expect_download() as download:
        tab.page.keyboard.press("p")
    assert Path(download.value.path()).read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("width", [390, 1000])
def test_modes_side_by_side(browser: Any, tmp_path: Path, width: int) -> None:
    path = tmp_path / "modes.html"
    player(stressed_bar(), path, modes=[1, 2, 3])
    tab = Tab(browser, path, width)
    titles = tab.page.locator("#titles").inner_text()
    assert [f"{k}: " in titles for k in (1, 2, 3)] == [True] * 3 and "Hz" in titles
    tab.do("player.seek(0)")
    first = tab.image()
    tab.do("player.seek(0.5)")
    assert np.abs(tab.image() - first).max() > 50
    visible = tab.do("document.documentElement.scrollWidth <= window.innerWidth")
    assert visible
    dark = "document.documentElement.classList.contains('dark')"
    for theme in ("dark", "light"):  # as the page around an embedded viewer says
        tab.do(f"window.postMessage({{theme: '{theme}'}}, '*')")
        tab.page.wait_for_function(dark if theme == "dark" else f"!{dark}", timeout=5000)


def test_mechanisms_at_rest_and_their_modes(browser: Any, tmp_path: Path) -> None:
    ground = Ground({"pivot": Frame(), "wall": Frame((0.3, 0.1, 0.0))})
    block = RigidBody.box(
        "block",
        (0.2, 0.02, 0.02),
        mass=1.0,
        frames={"a": Frame((-0.1, 0, 0)), "b": Frame((0.1, 0, 0))},
        position=(0.1, 0.0, 0.0),
    )
    system = System(
        [ground, block],
        [spherical("pivot", ground.frame("pivot"), block.frame("a"))],
        loads=[
            SpringDamper("spring", ground.frame("wall"), block.frame("b"), stiffness=1e4),
            force("push", block.frame("b"), (0.0, 0.0, -1e-3)),
        ],
    )
    rest = tmp_path / "rest.html"
    scene = scene_in(player(system, rest))
    groups = [mark["group"] for mark in scene["marks"]]
    assert [groups.count("joints"), groups.count("springs"), len(scene["arrows"])] == [1, 1, 1]
    tab = Tab(browser, rest)
    assert tab.image().std() > 3 and not tab.page.locator("#bar").is_visible()

    system = System(system.bodies, system.joints, loads=system.loads[:1])
    modes = tmp_path / "modes.html"
    player(linearize(system, equilibrium(system)), modes)
    assert "Hz" in Tab(browser, modes).page.locator("#titles").inner_text()


def test_marks_are_at_their_frames_and_forces_balance() -> None:
    """A weight that hangs at rest from a ball joint and a spring, which share its weight."""
    ground = Ground({"ceiling": Frame((0.0, 0.0, 0.5)), "left": Frame((-0.1, 0.0, 0.6))})
    weight = RigidBody(
        "weight",
        2.0,
        [1e-2] * 3,
        frames={"top": Frame((0.0, 0.0, 0.2)), "side": Frame((-0.1, 0.0, 0.2))},
        position=(0.0, 0.0, 0.3),
    )
    top = weight.frame("top")
    system = System(
        [ground, weight],
        [spherical("hook", ground.frame("ceiling"), top)],
        loads=[
            SpringDamper("spring", ground.frame("left"), weight.frame("side"), stiffness=1e-6),
            force("lift", top, (0.0, 0.0, 4.0)),
        ],
        gravity=(0.0, 0.0, -10.0),
    )
    run = simulate(system, t_end=0.01, dt=1e-3)
    scene = scene_in(player(run))
    frames = {f["index"]: numbers(f["position"]).reshape(-1, 3) for f in scene["frames"]}
    marks = {mark["name"]: mark for mark in scene["marks"]}
    hook, spring = marks["joint hook"], marks["spring spring"]
    assert np.allclose(frames[hook["first"]], [0.0, 0.0, 0.5], atol=1e-6)
    assert np.allclose(frames[hook["second"]], [0.0, 0.0, 0.5], atol=1e-6)
    tubes = [scene["tubes"][k] for k in marks["ground"]["shape"]]
    tips = [tube for tube in tubes if tube["radii"][-1] == 0.0]
    tips = [np.reshape(tube["points"], (-1, 3))[-1] for tube in tips]
    supported = [[0.0, 0.0, 0.5], [-0.1, 0.0, 0.6]]
    assert np.allclose(sorted(map(tuple, tips)), sorted(map(tuple, supported)), atol=1e-3)
    assert np.allclose(frames[spring["second"]], run.sensor("weight", "side")[0], atol=1e-4)
    arrows = {arrow["group"]: vectors_of(arrow) for arrow in scene["arrows"]}
    assert np.allclose(arrows["loads"], [0.0, 0.0, 4.0])
    assert np.allclose(arrows["joint forces"], [0.0, 0.0, 16.0], atol=1e-3)  # force on the weight


def test_a_body_without_modes_is_refused() -> None:
    with pytest.raises(errors.InputError):
        player(rigid_rod(length=0.2, mass=1.0))


# ---- pictures of the documentation --------------------------------------------------------------
@pytest.mark.slow
def test_pictures_of_the_documentation(browser: Any, tmp_path: Path) -> None:
    """Screenshots for README and documentation; see CONTRIBUTING for how to renew them."""
    mesh = mbd.build_mesh(mbd.ConnectingRod(size=0.004), MPI.COMM_SELF)
    reduction = mbd.reduce(
        mesh, mbd.ALUMINIUM_7075, interfaces=["big_end", "small_end"], num_modes=12, name="rod"
    )
    rod = reduction.body.replace(stress=mbd.durability.skin_stress(reduction))
    engine = mbd.mechanisms.inline_engine(rod, speed=628.3)
    run = simulate(engine, t_end=0.01, dt=2e-5)
    folder = Path(os.environ.get("DOLFINX_MBD_PICTURES", tmp_path))
    player(run, tmp_path / "engine.html", scale=100, title="Engine at 6000 rpm")
    player(rod, tmp_path / "modes.html")
    for name, time in (("engine", 0.0012), ("modes", 0.0)):
        tab = Tab(browser, tmp_path / f"{name}.html", 1200, 640)
        tab.do(f"player.set('colour', 'stress'); player.seek({time})")
        path = folder / f"viewer-{name}.png"
        tab.page.screenshot(path=path)
        assert 20_000 < path.stat().st_size < 300_000
        assert tab.image().std() > 5


def test_view_and_opacity(run: Solution) -> None:
    """A page opens in a direction and with opacities of its user."""
    scene = player(run, view=(0.0, 0.0, -2.0), opacity={"crank": 0.2})._scene
    assert np.allclose(scene["towards"], (0.0, 0.0, -1.0))
    assert [body["opacity"] for body in scene["bodies"] if "opacity" in body] == [0.2]
    with pytest.raises(errors.InputError, match="'crankshaft'"):
        player(run, opacity={"crankshaft": 0.2})
    with pytest.raises(errors.InputError, match="opacity"):
        player(run, opacity={"crank": 2.0})
    with pytest.raises(errors.InputError, match="view"):
        player(bar(), view="xy")


def test_functions_of_the_page_have_different_names() -> None:
    """A second function of the same name would replace the first one without an error."""
    names = re.findall(r"^ *function (\w+)\(", asset("player.js"), re.MULTILINE)
    assert len(names) > 50
    assert sorted(names) == sorted(set(names))
