"""Scenes of modes, side by side: of a body, of a linearized mechanism, and complex shapes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.analyses.linearized_system import LinearizedSystem
from dolfinx_mbd.body import ReducedBody, Skin, StressModes
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.columns import ELASTIC, OMEGA, ORIGIN, RIGID
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.plotting.scene.camera import camera_of, length_of
from dolfinx_mbd.plotting.scene.description import Mode, Scene
from dolfinx_mbd.plotting.scene.mechanism_scene import mechanism_scene
from dolfinx_mbd.plotting.scene.moving_surface import Surface
from dolfinx_mbd.plotting.scene.surfaces import body_lines, skin_of, stress_on_skin
from dolfinx_mbd.results.histories import rotation_matrices
from dolfinx_mbd.results.solution import Solution

__all__ = [
    "body_modes",
    "largest_displacements",
    "linearized_modes",
    "shapes_scene",
    "whirl_title",
]

Array = NDArray[np.float64]

AMPLITUDE = 0.06
"""Largest displacement of a mode relative to the size of the scene."""

WHIRL = 0.1
"""Whirl from which a title names its sense."""


def body_modes(body: ReducedBody, numbers: list[int]) -> Scene:
    """Return the scene of modes of a body."""
    skin, stress = skin_of(body), stress_on_skin(body)
    titles = [f"{k + 1}: {body.modes[k].label}" for k in numbers]
    heads = [
        Mode(title, body.modes[k].frequency, None, (), ())
        for title, k in zip(titles, numbers, strict=True)
    ]
    chosen = None if stress is None else StressModes(stress.points, stress.stress[:, :, numbers])
    return shapes_scene(body.name, skin, skin.modes[numbers], heads, chosen)


def shapes_scene(
    name: str, skin: Skin, shapes: Any, heads: list[Mode], stress: StressModes | None = None
) -> Scene:
    """Return the scene that shows real or complex shapes of a surface.

    Args:
        name: Name of the body.
        skin: The surface at rest.
        shapes: Modes z at its points, shape (m, nodes, 3).
        heads: Titles, frequencies and damping ratios of the modes.
        stress: Stress of the real modes, or None.
    """
    length, m, is_complex = length_of(skin.points), len(shapes), np.iscomplexobj(shapes)
    parts = np.concatenate([shapes.real, shapes.imag]) if is_complex else shapes
    sizes, modes = largest_displacements(np.abs(shapes)), []
    for k, head in enumerate(heads):
        eta = np.zeros(len(parts), dtype=complex)
        eta[k] = AMPLITUDE * length / (sizes[k] or 1.0)
        if is_complex:
            eta[m + k] = 1j * eta[k]
        modes.append(head._replace(rigid=[np.zeros(6)], eta=[eta]))
    pose = np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0, 0.0]]), np.zeros((1, len(parts)))
    surface = Surface(name, Skin(skin.points, skin.triangles, parts), *pose, stress=stress)
    camera = camera_of(skin.points, None)
    return Scene(np.zeros(1), [surface], camera, skin.points, modes=modes)


def largest_displacements(modes: Array) -> Array:
    """Return the largest displacement of each mode (m, nodes, 3), shape (m,)."""
    return np.asarray(np.sqrt((modes**2).sum(axis=2).max(axis=1, initial=0.0)))


def whirl_title(number: int, whirl: float) -> str:
    """Return the title of a mode with its whirl (1 for forward circles)."""
    sense = "forward whirl" if whirl > 0 else "backward whirl"
    return f"mode {number + 1}" + (f": {sense}" if abs(whirl) > WHIRL else "")


# ---- mechanisms ---------------------------------------------------------------------------------
def linearized_modes(linearized: LinearizedSystem, numbers: list[int]) -> Scene:
    """Return the scene of modes of a mechanism."""
    system, state = linearized.system, linearized.state
    if linearized.displacements:
        raise InputError(
            "modes of mesh bodies have no pictures; draw the attribute `displacements`, "
            "for example with pyvista or in ParaView",
            argument="source",
            value=linearized,
        )
    scene = mechanism_scene(Solution(system, [state]), np.zeros(1, dtype=np.int64))
    jacobians = _frame_jacobians(system, state.q)
    axis = _spin_axis(system, state)
    v_slices = {body.name: v for body, v in zip(system.bodies, system.v_slices, strict=True)}
    modes = []
    for number in numbers:
        z = linearized.modes[:, number]
        frames = jacobians @ z
        lines = _line_increments(system, state, z)
        increments = [z[v_slices[surface.name]] for surface in scene.surfaces]
        shapes = [_displacement(s, z_s) for s, z_s in zip(scene.surfaces, increments, strict=True)]
        line_points = [line.reshape(-1, 3) for line in lines]
        displacement = np.vstack([*shapes, *line_points, frames[:, :3]])
        (size,) = largest_displacements(np.abs(displacement)[None])
        factor = AMPLITUDE * scene.length / (size or 1.0)
        modes.append(
            Mode(
                title=whirl_title(number, _whirl(displacement, axis)),
                frequency=float(abs(linearized.poles[number].imag) / (2 * np.pi)),
                damping=float(linearized.damping_ratios[number]),
                rigid=[factor * increment[RIGID] for increment in increments],
                eta=[factor * increment[ELASTIC] for increment in increments],
                frames=factor * frames,
                lines=[factor * line for line in lines],
            )
        )
    return replace(scene, modes=modes)


def _line_increments(system: System, state: State, vector: Any) -> list[Any]:
    """Return the complex displacements (1, points, 3) of each line for an increment (nv,)."""
    states = []
    for change in (np.zeros_like(vector.real), vector.real, vector.imag):
        q = state.q.copy()
        for qs, vs in zip(system.q_slices, system.v_slices, strict=True):
            if qs.stop - qs.start == vs.stop - vs.start:  # all bodies with lines
                q[qs] += change[vs]
        states.append(q)
    lines = body_lines(system, np.array(states), 0.0)
    return [
        real - rest + 1j * (imaginary - rest)
        for rest, real, imaginary in (line.points for line in lines)
    ]


def _displacement(surface: Surface, vector: Any) -> Any:
    """Return the complex displacement of a surface in global components, shape (nodes, 3)."""
    displacement = np.cross(vector[OMEGA], surface.skin.points)
    if surface.flexible:
        displacement = displacement + np.tensordot(vector[ELASTIC], surface.skin.modes, axes=1)
    return vector[ORIGIN] + displacement @ rotation_matrices(surface.rotation[0]).T


def _spin_axis(system: System, state: State) -> Array:
    """Return the unit vector of the fastest rotation of a frame, or zero if nothing rotates."""
    rates = _frame_jacobians(system, state.q) @ state.v
    spins = rates[:, 3:]
    speeds = np.linalg.norm(spins, axis=1)
    fastest = int(np.argmax(speeds))
    return np.asarray(spins[fastest] / (speeds[fastest] or 1.0))


def _whirl(displacement: Any, axis: Array) -> float:
    """Return the sense of the orbits of points about an axis.

    For displacements Re((a + ib) exp(iωt)) and the axis n, the result is -2 Σ n·(a×b)/Σ(|a|² +
    |b|²): 1 for forward circles, 0 for straight lines, -1 for backward circles.
    """
    size = float((np.abs(displacement) ** 2).sum())
    area = float((np.cross(displacement.real, displacement.imag) @ axis).sum())
    return -2 * area / size if size else 0.0


def _frame_jacobians(system: System, q: Array) -> Array:
    """Return the motion of all frames per unit of each increment, shape (frames, 6, nv)."""
    jacobians = np.zeros((system.num_frames, 6, system.num_velocities))
    for body, qs, vs, fs in zip(
        system.bodies, system.q_slices, system.v_slices, system.frame_slices, strict=True
    ):
        jacobians[fs, :, vs] = body.frame_jacobians(q[qs])
    return jacobians
