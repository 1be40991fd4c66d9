"""Export of simulated motions to glTF 2.0, for Blender and other programs that show 3D scenes.

The modes of a body are the morph targets of its surface, and the elastic coordinates are the
weights of the targets. Lengths are in metres and times in seconds. The format `gltf` of
`dolfinx_mbd.export` writes a single body with its modes.
"""

from __future__ import annotations

from pathlib import Path

from dolfinx_mbd.checks import file_path, instance
from dolfinx_mbd.export.gltf import GENERATOR, Scene
from dolfinx_mbd.files import contains, write_atomically
from dolfinx_mbd.multibody.results.solution import Solution
from dolfinx_mbd.plotting.scenes.mechanism import drawn_part, system_length
from dolfinx_mbd.plotting.viewer.data import continuous

__all__ = ["write_gltf"]


def write_gltf(run: Solution, path: str | Path) -> Path:
    """Write a simulated motion as a binary glTF file and return its path.

    The motion becomes an animation with one key frame for each saved time.

    Args:
        run: The result of a simulation.
        path: File to write, with the suffix `.glb`. It may replace a file that this package wrote.

    Raises:
        ImportError: pygltflib is not installed.
        InputError: The run or the path is invalid.
        OverwriteError: The path is a file that this package has not written.
        OSError: The file cannot be written; an existing file is then unchanged.

    Example:
        >>> mbd.plotting.write_gltf(run, "run.glb").name
        'run.glb'

    Note: Not collective; call this function on one MPI rank.
    """
    hint = "dolfinx_mbd.export.export(body, path, 'gltf') writes a body"
    instance("run", run, Solution, hint)
    path = file_path("path", path, (".glb",))
    scene = Scene()
    _add_motion(scene, run)
    return write_atomically(path, scene.write, "glTF file", replaces=contains(GENERATOR))


def _add_motion(scene: Scene, run: Solution) -> None:
    """Add all drawn bodies of a run with their motion."""
    length = system_length(run.system, run.q[0])
    times = scene.add(run.time[:, None], "SCALAR", limits=True)
    for body, s in zip(run.system.bodies, run.system.q_slices, strict=True):
        part = drawn_part(body, length)
        if part is None:
            continue
        q, count = run.q[:, s], len(part.skin.modes)
        labels = [f"elastic coordinate {k}" for k in range(1, count + 1)]
        node = scene.add_body(body.name, part.skin, {"targetNames": labels}, q[0])
        turns = continuous(q[:, 3:7])[:, [1, 2, 3, 0]]
        scene.animate(node, "translation", times, scene.add(q[:, :3], "VEC3"))
        scene.animate(node, "rotation", times, scene.add(turns, "VEC4"))
        if count:
            weights = scene.add(q[:, 7:].reshape(-1, 1), "SCALAR")
            scene.animate(node, "weights", times, weights)
