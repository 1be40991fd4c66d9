"""A body and a force element of new kinds declare their pictures once; all renderers show them.

Nothing in the package knows these classes.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI
from numpy.typing import ArrayLike, NDArray
from PIL import Image

import dolfinx_mbd as mbd
from dolfinx_mbd import plotting
from dolfinx_mbd.mechanism.force_elements import FramePair
from dolfinx_mbd.mechanism.joints import FrameRef
from dolfinx_mbd.mechanism.law_elements import LawElement, PairMotion
from dolfinx_mbd.mechanism.protocol import BodyState
from dolfinx_mbd.results import Solution
from tests.io.export.readers.gltf import Scene
from tests.plotting.pages import numbers, scene_in
from tests.plotting.test_viewer import Tab

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one rank draws")

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Magnet(LawElement):
    """A force F = -f/|d|³ d between two points, drawn as a damper."""

    name: str
    first: FrameRef
    second: FrameRef
    strength: float = 1.0
    mark = "damper"

    def placed(self, pair: FramePair) -> Magnet:
        return self

    def value(self, motion: PairMotion) -> Array:
        d = motion.displacement
        return np.concatenate([-self.strength * d / np.linalg.norm(d) ** 3, np.zeros(3)])

    def slopes(self, motion: PairMotion) -> Array:
        d = motion.displacement
        r = float(np.linalg.norm(d))
        G = np.zeros((6, 12))
        G[:3, :3] = self.strength * (3 * np.outer(d, d) / r**5 - np.eye(3) / r**3)
        return G

    def stored_energy(self, motion: PairMotion) -> float:
        return -self.strength / float(np.linalg.norm(motion.displacement))


class Chain:
    """Three beads of 0.1 kg that hang in a row on springs, with a frame at the last bead.

    Each bead is also damped, with 0.5 N s/m.
    """

    frame_names = ("end",)
    num_coordinates = num_velocities = 9
    num_elastic = 0
    typical_mass = 0.1

    def __init__(self, name: str, stiffness: float = 500.0) -> None:
        self.name, self.stiffness = name, stiffness
        self.rest = np.array([[0.2 * k, 0.0, 0.0] for k in (1, 2, 3)])

    def frame(self, name: str) -> FrameRef:
        return FrameRef(self.name, name)

    def line(self, q: ArrayLike) -> Array:
        """Return the line of the element in pictures."""
        beads = np.asarray(q).reshape(-1, 3, 3)
        return np.concatenate([np.zeros((len(beads), 1, 3)), beads], axis=1)

    def initial_coordinates(self) -> Array:
        return self.rest.ravel()

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        out[:] = q + delta

    def increment_tangent(self, delta: Array) -> Array:
        return np.zeros((0, 3))

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        position[0], rotation[0] = q[6:], np.eye(3)

    def _pull(self, q: Array) -> Array:
        u = q.reshape(3, 3) - self.rest
        return self.stiffness * np.diff(np.vstack([np.zeros(3), u]), axis=0)

    def residual(self, state: BodyState, out: Array, scale: Array) -> None:
        pull = self._pull(state.q)
        forces = pull - np.vstack([pull[1:], np.zeros(3)])
        forces += 0.1 * (state.a.reshape(3, 3) - state.gravity) + 0.5 * state.v.reshape(3, 3)
        forces[2] -= state.wrenches[0, :3]
        out[:] = forces.ravel()
        scale[:] = np.abs(out) + 1.0

    def tangent(self, state: BodyState) -> tuple[Array, Array, Array]:
        component = self.stiffness * np.array([[2.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
        return np.kron(component, np.eye(3)), 0.5 * np.eye(9), 0.1 * np.eye(9)

    def frame_jacobians(self, q: Array) -> Array:
        J = np.zeros((1, 6, 9))
        J[0, :3, 6:] = np.eye(3)
        return J

    def frame_velocities(self, q: Array, v: Array, out: Array) -> None:
        out[0] = [*v[6:], 0, 0, 0]

    def frame_velocity_tangents(self, q: Array, v: Array) -> Array:
        return np.zeros((1, 6, 9))

    def frame_bias(self, q: Array, v: Array) -> Array:
        return np.zeros((1, 6))

    def energies(self, q: Array, v: Array, gravity: Array) -> Array:
        pull = self._pull(q)
        heights = q.reshape(3, 3) @ gravity
        return np.array(
            [0.05 * v @ v, 0.5 * (pull**2).sum() / self.stiffness, -0.1 * heights.sum()]
        )

    def momenta(self, q: Array, v: Array) -> Array:
        p = 0.1 * v.reshape(3, 3)
        return np.concatenate([p.sum(axis=0), np.cross(q.reshape(3, 3), p).sum(axis=0)])


@pytest.fixture(scope="module")
def run() -> Solution:
    """Return a run of a body and an element of new kinds."""
    ground = mbd.Ground({"wall": mbd.Frame((0.6, 0.4, 0.0))})
    chain = Chain("beads")
    magnet = Magnet("magnet", ground.frame("wall"), chain.frame("end"), 0.02)
    system = mbd.System([ground, chain], [], loads=[magnet], gravity=(0, -9.81, 0))
    return mbd.simulate(system, t_end=0.1, dt=2e-3)


def end_of(run: Solution, k: int) -> Array:
    """Return the position of the last bead of the chain."""
    return run.q[k, -3:]


def test_picture(run: Solution) -> None:
    pv = pytest.importorskip("pyvista", exc_type=ImportError)
    plotter = pv.Plotter(off_screen=True)
    plotting.plot_system(run, run.time[-1], plotter=plotter)
    actors = plotter.actors
    beads = np.array(actors["cable beads"].mapper.dataset.points)
    damper = np.array(actors["spring magnet"].mapper.dataset.points)
    end = end_of(run, -1)
    assert np.linalg.norm(beads - end, axis=1).min() < 0.01
    wall = np.array([0.6, 0.4, 0.0])
    share = (damper - wall) @ (end - wall) / np.sum((end - wall) ** 2)
    assert (share.min(), share.max()) == pytest.approx((0.0, 1.0), abs=1e-4)
    plotter.close()


def test_film(run: Solution, tmp_path: Path) -> None:
    pytest.importorskip("pyvista", exc_type=ImportError)
    shown = plotting.animate(run, tmp_path / "run.gif", frames=2, window=(320, 240))
    with Image.open(shown.path) as film:
        for frame in range(2):
            film.seek(frame)
            image = np.asarray(film.convert("RGB"), dtype=int)
            for colour in ((59, 98, 194), (47, 158, 99)):  # cables, springs
                near = np.abs(
                    image / image.sum(axis=2, keepdims=True) - np.divide(colour, sum(colour))
                )
                assert (near.max(axis=2) < 0.05).sum() > 20


def test_page(run: Solution) -> None:
    scene = scene_in(plotting.player(run))
    (line,) = scene["lines"]
    points = numbers(line["points"]).reshape(-1, 4, 3)
    np.testing.assert_allclose(points[-1, -1], end_of(run, -1), atol=1e-6)
    (magnet,) = (mark for mark in scene["marks"] if mark["group"] == "springs")
    frames = {f["index"]: numbers(f["position"]).reshape(-1, 3) for f in scene["frames"]}
    np.testing.assert_allclose(frames[magnet["second"]][-1], end_of(run, -1), atol=1e-6)
    assert magnet["connects"] and len(magnet["shape"]) == 2  # a rod and a cylinder


def test_browser(browser: Any, run: Solution, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    plotting.player(run, path)
    tab = Tab(browser, path)

    def counts() -> list[int]:
        image = np.asarray(
            Image.open(io.BytesIO(tab.page.locator("#stage").screenshot())), dtype=int
        )
        r, g, b = (image[:-80, :, k] for k in range(3))  # without the triad
        return [int(np.sum((b > r + 40) & (b > g + 40))), int(np.sum((g > r + 40) & (g > b + 20)))]

    tab.do(f"player.seek({run.time[-1]})")
    assert min(counts()) > 50
    for group in ("cables", "springs"):
        tab.page.locator("label", has_text=group).locator("input").uncheck()
    tab.page.wait_for_timeout(100)
    assert max(counts()) == 0


def test_gltf(run: Solution, tmp_path: Path) -> None:
    """The glTF file has gravity along -y already, so that its points need no rotation."""
    scene = Scene(plotting.write_gltf(run, tmp_path / "run.glb"))
    surfaces = scene.surfaces(float(run.time[-1]))
    end = end_of(run, -1)
    near = [np.linalg.norm(points - end, axis=1).min() for points in surfaces]
    assert sum(gap < 2e-3 for gap in near) == 2  # the end of the beads and that of the damper
