"""Export of the modes of a body to glTF 2.0, for Blender and other programs that show 3D scenes.

The modes are the morph targets of the surface. `plotting.write_gltf` writes simulated
motions.
"""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.body.parts import AMPLITUDE, Skin, mode_titles
from dolfinx_mbd.checks import number
from dolfinx_mbd.io.export.common import ExportReport, Task

PERIOD, FRAMES = 2.0, 33
"""Duration of the animation of a mode, s, and its number of key frames."""


def write_gltf(task: Task, *, amplitude: float = AMPLITUDE) -> ExportReport:
    """Write a binary glTF file (`.glb`) with the surface of the body and its modes.

    Each mode is a morph target (a shape key in Blender) with an animation that shows one
    oscillation. It starts at the weight -1, because Blender takes the range of a shape key from the
    first key frame. At the weight 1, the largest displacement is `amplitude` times the size of the
    body. The names of the targets contain the labels and the frequencies of the modes. The extras
    of the mesh are `targetNames`, `frequencies` (Hz) and `elasticCoordinates` (values at the weight
    1).
    """
    skin = task.body.skin
    assert skin is not None  # the format needs a skin
    diagonal = np.linalg.norm(np.ptp(skin.points, axis=0))
    displacement = number("amplitude", amplitude, positive=True) * diagonal
    # Largest displacement of each mode for η = 1
    greatest = np.linalg.norm(skin.modes, axis=2).max(axis=1)
    eta = displacement / np.where(greatest > 0.0, greatest, 1.0)
    modes, titles = task.original.modes, mode_titles(task.original.modes)
    frequencies = [mode.frequency for mode in modes]
    extras = {"targetNames": titles, "frequencies": frequencies, "elasticCoordinates": eta.tolist()}
    scaled = Skin(skin.points, skin.triangles, eta[:, None, None] * skin.modes)
    from dolfinx_mbd.plotting.gltf_file import GltfFile

    scene = GltfFile()
    node = scene.add_body(task.body.name, scaled, extras)
    t = np.linspace(0.0, PERIOD, FRAMES)
    times = scene.add(t[:, None], "SCALAR", limits=True)
    for k, title in enumerate(titles):
        weights = np.zeros((FRAMES, len(titles)))
        weights[:, k] = -np.cos(2 * np.pi * t / PERIOD)
        scene.animate(node, "weights", times, scene.add(weights.reshape(-1, 1), "SCALAR"), title)
    notes = []
    if task.report.units.length != 1.0:
        factor = f"{task.report.units.length:g}"
        notes.append(f"programs assume metres in glTF and show the body {factor} times as large")
    return task.save(scene.write, notes=notes)
