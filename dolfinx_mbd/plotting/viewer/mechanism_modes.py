"""Scene of the viewer for modes of a linearized mechanism, with the sense of their whirl."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.analyses.linearization import LinearizedSystem
from dolfinx_mbd.mechanism.protocol import Body
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.plotting.scenes.mechanism import drawn_part
from dolfinx_mbd.plotting.viewer.marks import cable_increments
from dolfinx_mbd.plotting.viewer.scene import (
    MODE_AMPLITUDE,
    increment,
    largest_displacements,
    motion_scene,
    real_and_imaginary,
    whirl_title,
)
from dolfinx_mbd.results.histories import rotation_matrices
from dolfinx_mbd.results.solution import Solution

__all__ = ["linearized_scene"]

Array = NDArray[np.float64]


def linearized_scene(linearized: LinearizedSystem, modes: list[int]) -> dict[str, Any]:
    """Return the scene that shows modes of a mechanism side by side."""
    system, state = linearized.system, linearized.state
    scene = motion_scene(Solution(system, [state]), signals={})
    jacobians = _frame_increments(system, state.q)
    axis = _spin_axis(system, state)
    bodies = [
        (body, q, v)
        for body, q, v in zip(system.bodies, system.q_slices, system.v_slices, strict=True)
        if drawn_part(body, scene["length"]) is not None
    ]
    views = []
    for number in modes:
        vector = linearized.modes[:, number]
        frames = jacobians @ vector
        lines = cable_increments(system, state, vector)
        surfaces = [_displacement(body, state.q[q], vector[v]) for body, q, v in bodies]
        displacement = np.vstack([*surfaces, *lines, frames[:, :3]])
        amount = (
            MODE_AMPLITUDE
            * scene["length"]
            / (largest_displacements(np.abs(displacement)[None])[0] or 1.0)
        )
        views.append(
            {
                "title": whirl_title(number, _whirl(displacement, axis)),
                "frequency": float(abs(linearized.poles[number].imag) / (2 * np.pi)),
                "damping": float(linearized.damping_ratios[number]),
                "bodies": [
                    increment(amount * vector[v][:6], amount * vector[v][6:]) for _, _, v in bodies
                ],
                "frames": [real_and_imaginary(amount * frame) for frame in frames],
                "cables": [real_and_imaginary(amount * line.ravel()) for line in lines],
            }
        )
    return {**scene, "kind": "modes", "views": views}


def _displacement(body: Body, q: Array, vector: Any) -> Any:
    """Return the complex displacement of a body's surface in global components, shape (ns, 3)."""
    part = drawn_part(body, 1.0)
    assert part is not None
    displacement = np.cross(vector[3:6], part.skin.points)
    if part.flexible:
        displacement = displacement + np.tensordot(vector[6:], part.skin.modes, axes=1)
    return vector[:3] + displacement @ rotation_matrices(q[3:7]).T


def _spin_axis(system: System, state: State) -> Array:
    """Return the unit vector of the fastest rotation of a frame, or zero if nothing rotates."""
    rates = _frame_increments(system, state.q) @ state.v
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


def _frame_increments(system: System, q: Array) -> Array:
    """Return the motion of all frames per unit of each increment, shape (F, 6, nv)."""
    jacobians = np.zeros((system.num_frames, 6, system.num_velocities))
    for body, qs, vs, fs in zip(
        system.bodies, system.q_slices, system.v_slices, system.frame_slices, strict=True
    ):
        jacobians[fs, :, vs] = body.frame_jacobians(q[qs])
    return jacobians
