"""Export of the modes of a body to glTF 2.0, for Blender and other programs that show 3D scenes.

The modes are the morph targets of the surface. `plotting.write_gltf` writes simulated motions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body.parts import AMPLITUDE, Skin, mode_titles
from dolfinx_mbd.checks import number
from dolfinx_mbd.io.export.common import ExportReport, Task

Array = NDArray[np.float64]

FLOAT, UNSIGNED = 5126, 5125
"""Codes of glTF for types of numbers."""
ARRAY, INDICES = 34962, 34963
"""Codes of glTF for kinds of buffers."""
GENERATOR = b'"generator":"dolfinx_mbd"'
"""Bytes in each file by which it is recognized."""
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
    size = number("amplitude", amplitude, positive=True) * np.ptp(skin.points, axis=0)
    greatest = np.linalg.norm(skin.modes, axis=2).max(axis=1)
    eta = np.linalg.norm(size) / np.where(greatest > 0.0, greatest, 1.0)
    modes, titles = task.original.modes, mode_titles(task.original.modes)
    frequencies = [mode.frequency for mode in modes]
    extras = {"targetNames": titles, "frequencies": frequencies, "elasticCoordinates": eta.tolist()}
    scaled = Skin(skin.points, skin.triangles, eta[:, None, None] * skin.modes)
    scene = Scene()
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


class Scene:
    """A glTF scene under construction: its tables and its binary data."""

    def __init__(self) -> None:
        try:
            import pygltflib
        except ImportError as error:
            raise ImportError("glTF is written with pygltflib: pip install pygltflib") from error
        self.gltf: Any = pygltflib
        self.scene: Any = pygltflib.GLTF2(
            scene=0,
            scenes=[pygltflib.Scene(nodes=[])],
            asset=pygltflib.Asset(version="2.0", generator="dolfinx_mbd"),
            materials=[pygltflib.Material(doubleSided=True)],
        )
        self._children: list[int] = self.scene.scenes[0].nodes  # of the scene or of its root
        self.data = bytearray()

    def add(
        self,
        values: Any,
        shape: str,
        *,
        kind: int = FLOAT,
        target: int | None = None,
        limits: bool = False,
    ) -> int:
        """Add an array and return the index of its accessor."""
        numbers = np.ascontiguousarray(values, "<f4" if kind == FLOAT else "<u4")
        view = self.gltf.BufferView(
            buffer=0, byteOffset=len(self.data), byteLength=numbers.nbytes, target=target
        )
        self.data += numbers.tobytes()
        self.scene.bufferViews.append(view)
        accessor = self.gltf.Accessor(
            bufferView=len(self.scene.bufferViews) - 1,
            componentType=kind,
            count=len(numbers),
            type=shape,
            min=numbers.min(axis=0).tolist() if limits else None,
            max=numbers.max(axis=0).tolist() if limits else None,
        )
        self.scene.accessors.append(accessor)
        return len(self.scene.accessors) - 1

    def add_root(self, name: str, rotation: Array) -> None:
        """Add a node with a rotation (x, y, z, w) that becomes the parent of all bodies."""
        node = self.gltf.Node(name=name, rotation=rotation.tolist(), children=[])
        self.scene.nodes.append(node)
        self.scene.scenes[0].nodes.append(len(self.scene.nodes) - 1)
        self._children = node.children

    def add_body(
        self, name: str, skin: Skin, extras: Mapping[str, Any], q: Array | None = None
    ) -> int:
        """Add a body with its modes, and return the index of its node.

        Args:
            name: Name of the body.
            skin: Surface, and the displacements for the weight 1 of each target.
            extras: Further data, such as `targetNames`, the names of the modes.
            q: Position, quaternion (w, x, y, z) and weights, shape (7 + n,); by default the surface
                as it is.
        """
        lib = self.gltf
        surface = lib.Primitive(
            attributes=lib.Attributes(
                POSITION=self.add(skin.points, "VEC3", target=ARRAY, limits=True)
            ),
            indices=self.add(
                skin.triangles.reshape(-1, 1), "SCALAR", kind=UNSIGNED, target=INDICES
            ),
            material=0,
            targets=[
                {"POSITION": self.add(mode, "VEC3", target=ARRAY, limits=True)}
                for mode in skin.modes
            ],
        )
        start = np.zeros(len(skin.modes)) if q is None else q[7:]
        weights = start.tolist() if len(skin.modes) else None
        mesh = lib.Mesh(name=name, primitives=[surface], extras=dict(extras))
        mesh.weights = weights
        self.scene.meshes.append(mesh)
        node = lib.Node(name=name, mesh=len(self.scene.meshes) - 1)
        if q is not None:
            node.translation, node.rotation = q[:3].tolist(), q[[4, 5, 6, 3]].tolist()
        self.scene.nodes.append(node)
        self._children.append(len(self.scene.nodes) - 1)
        return len(self.scene.nodes) - 1

    def animate(
        self, node: int, quantity: str, times: int, values: int, name: str = "motion"
    ) -> None:
        """Animate a quantity of a node by key frames; `times` and `values` are accessors.

        Consecutive calls with the same name belong to one animation.
        """
        lib, animations = self.gltf, self.scene.animations
        if not animations or animations[-1].name != name:
            animations.append(lib.Animation(name=name))
        animation = animations[-1]
        animation.samplers.append(
            lib.AnimationSampler(input=times, output=values, interpolation="LINEAR")
        )
        animation.channels.append(
            lib.AnimationChannel(
                sampler=len(animation.samplers) - 1,
                target=lib.AnimationChannelTarget(node=node, path=quantity),
            )
        )

    def write(self, file: BinaryIO) -> None:
        """Write the binary file."""
        self.scene.buffers = [self.gltf.Buffer(byteLength=len(self.data))]
        self.scene.set_binary_blob(bytes(self.data))
        file.write(b"".join(self.scene.save_to_bytes()))
