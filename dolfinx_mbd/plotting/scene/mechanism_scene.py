"""The scene of a mechanism at rest or in motion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import Skin
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.start.consistent_state import consistent_state
from dolfinx_mbd.dynamics.start.position_assembly import coordinates, independent_system
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.plotting.scene.arrows import (
    frame_histories,
    frame_poses,
    joint_arrows,
    load_arrows,
)
from dolfinx_mbd.plotting.scene.camera import Camera, camera_of, length_of, outermost
from dolfinx_mbd.plotting.scene.description import MARK_SIZE, Arrow, Frames, Scene
from dolfinx_mbd.plotting.scene.marks import (
    axes_of_frames,
    element_marks,
    joint_marks,
    supports,
)
from dolfinx_mbd.plotting.scene.mesh_surfaces import mesh_surfaces
from dolfinx_mbd.plotting.scene.moving_surface import DISPLACEMENT, Surface
from dolfinx_mbd.plotting.scene.surfaces import body_lines, body_surfaces
from dolfinx_mbd.results.distributed_rows import local_row
from dolfinx_mbd.results.solution import Solution

__all__ = ["DRAWN", "MARKS", "initial_state", "mechanism_scene", "system_length"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

MARKS = ("joints", "springs", "ground", "loads", "joint forces", "frames", "names")
"""Kinds of marks."""
DRAWN = ("joints", "springs", "ground", "loads")
"""Marks that are drawn by default."""
LARGE = 2000
"""Number of points of a surface above which only its outermost points determine the view."""
OUTERMOST = 300
"""Number of directions in which the outermost points of a large surface are found."""
VIEW_INSTANTS = 40
"""Number of instants whose points determine the view of the camera."""


def mechanism_scene(
    run: Solution,
    rows: Rows,
    kinds: Iterable[str] = DRAWN,
    *,
    scale: float = 1.0,
    view: str | ArrayLike | None = None,
    values: Mapping[str, Array] | None = None,
    quantity: str = DISPLACEMENT,
    accuracy: float = 0.0,
) -> Scene:
    """Return the scene of a mechanism at saved times of a run.

    Args:
        run: Result of a simulation, or a solution with one state.
        rows: Indices of the saved times.
        kinds: Kinds of marks to draw, from `MARKS`.
        scale: Factor of the elastic displacements for the choice of the view.
        view: View as for `plot_system`.
        values: Given values at the nodes of skins, by name of the body.
        quantity: Quantity that determines the colours; see `mesh_surfaces`.
        accuracy: Accuracy of the motion of mesh bodies; see `mesh_surfaces`.
    """
    system, q, kinds = run.system, run.q[rows], tuple(kinds)
    surfaces = body_surfaces(system, q, system_length(system, local_row(q, 0)), values)
    surfaces += mesh_surfaces(system, q, quantity, values, accuracy)
    frames = Frames(*frame_histories(system, q), _fixed_frames(system))
    lines = body_lines(system, q, 0.0)
    instants = np.unique(np.linspace(0, len(rows) - 1, VIEW_INSTANTS).round().astype(int))
    visible = [frames.position[0]]
    for surface in map(_outermost_part, surfaces):
        visible += [surface.points(k, scale) for k in instants]
    visible += [line.points[instants].reshape(-1, 3) for line in lines]
    points = np.vstack(visible)
    camera = mechanism_camera(system, frames, points, view)
    length, r = camera.depth, MARK_SIZE * camera.depth
    lines = [replace(line, radius=0.3 * r) for line in lines]
    marks = supports(system, frames, r, camera.up) if "ground" in kinds else []
    marks += joint_marks(system, frames, r) if "joints" in kinds else []
    marks += element_marks(system, frames, r) if "springs" in kinds else []
    lines += axes_of_frames(frames, length, r) if "frames" in kinds else []
    names = [(joint.name, system.frame_index(joint.second)) for joint in system.joints]
    return Scene(
        time=run.time[rows],
        surfaces=surfaces,
        camera=camera,
        points=points,
        frames=frames,
        marks=marks,
        lines=lines,
        arrows=_arrows(run, rows, kinds),
        names=names if "names" in kinds else [],
        gravity=system.gravity,
    )


def _outermost_part(surface: Surface) -> Surface:
    """Return a surface, or only the outermost points of a large surface."""
    skin = surface.skin
    if len(skin.points) <= LARGE:
        return surface
    rows = outermost(skin.points, OUTERMOST)
    part = Skin(skin.points[rows], np.zeros((0, 3), dtype=np.int64), skin.modes[:, rows])
    return replace(surface, skin=part, stress=None)


def _arrows(run: Solution, rows: Rows, kinds: tuple[str, ...]) -> list[Arrow]:
    """Return the arrows of loads and of joint forces, if their kinds are in `kinds`."""
    arrows: list[Arrow] = []
    if "loads" in kinds:
        arrows += load_arrows(run, rows) + joint_arrows(run, rows, drivers=True)
    if "joint forces" in kinds:
        arrows += joint_arrows(run, rows)
    return arrows


def _fixed_frames(system: System) -> NDArray[np.bool_]:
    """Return which frames belong to bodies that do not move, shape (frames,)."""
    bodies = [not system.bodies[body].num_velocities for body in system.frame_body]
    return np.array(bodies, dtype=bool)


def initial_state(system: System, t: float = 0.0, *, assembled: bool = True) -> Solution:
    """Return the initial state of a mechanism, or the bodies at their given positions.

    The forces of redundant constraints are zero.
    """
    if assembled:
        try:
            return Solution(system, [consistent_state(system, t)])
        except AssemblyError:
            independent = independent_system(Assembler(system), t)
            if independent.num_constraints == system.num_constraints:
                raise
            return Solution(independent, [consistent_state(independent, t)])
    v, lam = np.zeros(system.num_velocities), np.zeros(system.num_constraints)
    state = State(t, coordinates(system), v, v, lam, np.zeros(len(system.joints)))
    return Solution(system, [state])


def system_length(system: System, q: Array) -> float:
    """Return the size of a mechanism from its frames and the origins of its bodies, m."""
    slices = system.q_slices[: len(system.mechanical_bodies)]
    origins = [q[s][:3] for s in slices if s.stop > s.start]
    return length_of(np.vstack([frame_poses(system, q)[0], *origins]))


def mechanism_camera(
    system: System, frames: Frames, points: Array, view: str | ArrayLike | None
) -> Camera:
    """Return a camera that shows points (points, 3), by default obliquely to the joints' plane."""
    pins = [system.frame_index(j.first) for j in system.joints if j.mark == "pin"]
    normal = None
    if pins:
        z = frames.rotation[0, pins, :, 2]
        normal = np.linalg.eigh(z.T @ z)[1][:, -1]  # the direction nearest to all axes
        normal = normal * np.sign(normal[np.argmax(np.abs(normal))])
    up = -system.gravity if system.gravity.any() else None
    return camera_of(points, view, normal=normal, up=up)
