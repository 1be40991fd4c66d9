"""Export of simulated motions to glTF 2.0, for Blender and other programs that show 3D scenes.

The modes of a body are the morph targets of its surface. A weight of a target is 0 for the smallest
value of an elastic coordinate in the run and 1 for the largest, because Blender limits the weights
to this range. Lengths are in metres and times in seconds. The format `gltf` of
`dolfinx_mbd.io.export` writes a single body with its modes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.parts import Skin
from dolfinx_mbd.checks import file_path, instance, number
from dolfinx_mbd.files import contains, write_atomically
from dolfinx_mbd.io.export.gltf import GENERATOR, Scene
from dolfinx_mbd.plotting.scenes.mechanism import drawn_part, system_length
from dolfinx_mbd.plotting.viewer.data import continuous
from dolfinx_mbd.results.solution import Solution

__all__ = ["write_gltf"]


def write_gltf(
    run: Solution, path: str | Path, *, slow_motion: float = 1.0, scale: float = 1.0
) -> Path:
    """Write a simulated motion as a binary glTF file and return its path.

    The motion becomes an animation with one key frame for each saved time. The y-axis of glTF
    points upwards; the mechanism is rotated such that its gravity points downwards.

    Args:
        run: The result of a simulation.
        path: File to write, with the suffix `.glb`. It may replace a file that this package wrote.
        slow_motion: Duration of the animation relative to that of the run. A run of 20 ms is half a
            frame at 24 frames per second; with `slow_motion=100` it takes 2 s.
        scale: Scale factor of the elastic displacement.

    Raises:
        ImportError: pygltflib is not installed.
        InputError: The run or the path is invalid, or a factor is not positive.
        OverwriteError: The path is a file that this package has not written.
        OSError: The file cannot be written; an existing file is then unchanged.

    Example:
        >>> mbd.plotting.write_gltf(run, "run.glb", slow_motion=100.0, scale=50.0).name
        'run.glb'

    Note: Not collective; call this function on one MPI rank.
    """
    hint = "dolfinx_mbd.io.export.export(body, path, 'gltf') writes a body"
    instance("run", run, Solution, hint)
    path = file_path("path", path, (".glb",))
    slow_motion = number("slow_motion", slow_motion, positive=True)
    scale = number("scale", scale, positive=True)
    scene = Scene()
    scene.add_root("mechanism", _rotation_to_y(-run.system.gravity))
    _add_motion(scene, run, slow_motion * run.time, scale)
    return write_atomically(path, scene.write, "glTF file", replaces=contains(GENERATOR))


def _add_motion(scene: Scene, run: Solution, time: Array, scale: float) -> None:
    """Add all drawn bodies of a run with their motion over a time (nt,)."""
    length = system_length(run.system, run.q[0])
    times = scene.add(time[:, None], "SCALAR", limits=True)
    for body, s in zip(run.system.bodies, run.system.q_slices, strict=True):
        part = drawn_part(body, length)
        if part is None:
            continue
        q, count = np.array(run.q[:, s]), len(part.skin.modes)
        labels = [f"elastic coordinate {k}" for k in range(1, count + 1)]
        eta = q[:, 7 : 7 + count]  # a body without a skin is drawn without its deformation
        skin, smallest, span = _within_range(part.skin, eta, scale)
        extras = {"targetNames": labels, "smallest": smallest.tolist(), "range": span.tolist()}
        node = scene.add_body(body.name, skin, extras, q[0])
        turns = continuous(q[:, 3:7])[:, [1, 2, 3, 0]]
        scene.animate(node, "translation", times, scene.add(q[:, :3], "VEC3"))
        scene.animate(node, "rotation", times, scene.add(turns, "VEC4"))
        if count:
            weights = scene.add(((eta - smallest) / span).reshape(-1, 1), "SCALAR")
            scene.animate(node, "weights", times, weights)


def _within_range(skin: Skin, eta: Array, scale: float) -> tuple[Skin, Array, Array]:
    """Return a skin for weights from 0 to 1, and smallest values and ranges of coordinates.

    Its points are those for the smallest values of the elastic coordinates η (nt, n), and its modes
    are the displacements from the smallest to the largest values, scaled.
    """
    smallest, span = eta.min(axis=0), np.ptp(eta, axis=0)
    span[span == 0.0] = 1.0  # constant coordinates
    points = skin.points + scale * np.einsum("k,kpa->pa", smallest, skin.modes)
    return Skin(points, skin.triangles, scale * span[:, None, None] * skin.modes), smallest, span


def _rotation_to_y(up: Array) -> Array:
    """Return the quaternion (x, y, z, w) that rotates a direction to y; identity if it is zero."""
    length = np.linalg.norm(up)
    if not length:
        return np.array([0.0, 0.0, 0.0, 1.0])
    x, y, z = up / length
    if y < -0.5:  # 180° about x, after the rotation of the opposite direction
        a, _, c, w = _rotation_to_y(-up)
        return np.array([w, -c, 0.0, -a])
    turn = np.array([-z, 0.0, x, 1.0 + y])
    return np.asarray(turn / np.linalg.norm(turn))
