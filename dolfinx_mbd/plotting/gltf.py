"""Export of motions and modes to glTF 2.0, for Blender and other programs that show 3D scenes.

The modes of a body are the morph targets of its surface, and the elastic coordinates are their
weights. Lengths are in metres and times in seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import file_path, instance
from dolfinx_mbd.files import write_aside
from dolfinx_mbd.multibody.results.solution import Solution
from dolfinx_mbd.plotting.bodies import skin_of
from dolfinx_mbd.plotting.mechanism import Part, drawn_part, system_length
from dolfinx_mbd.plotting.player_data import continuous

__all__ = ["write_gltf"]

Array = NDArray[np.float64]

FLOAT, UNSIGNED = 5126, 5125
"""Codes of glTF for types of numbers."""
ARRAY, INDICES = 34962, 34963
"""Codes of glTF for kinds of buffers."""


def write_gltf(source: ReducedBody | Solution, path: str | Path) -> Path:
    """Write a body or a simulated motion as a binary glTF file and return its path.

    Args:
        source: A reduced body, whose modes become morph targets; or the result of a simulation,
            whose motion becomes an animation with one key frame for each saved time.
        path: File to write, with the suffix `.glb`.

    Raises:
        ImportError: pygltflib is not installed.
        InputError: The body has no skin.
        OSError: The file cannot be written; an existing file is then unchanged.

    Example:
        >>> mbd.plotting.write_gltf(body, "body.glb").name
        'body.glb'

    Note: Not collective; call this function on one MPI rank.
    """
    instance("source", source, (ReducedBody, Solution))
    path = file_path("path", path, (".glb",))
    file = _File()
    if isinstance(source, ReducedBody):
        labels = [f"{k}: {mode.label}" for k, mode in enumerate(source.modes, 1)]
        file.add_body(source.name, Part(skin_of(source)), labels)
    else:
        _add_motion(file, source)
    return write_aside(path, file.write, "glTF file")


def _add_motion(file: _File, run: Solution) -> None:
    """Add all drawn bodies of a run with their motion."""
    length = system_length(run.system, run.q[0])
    times = file.add(run.time[:, None], "SCALAR", limits=True)
    for body, s in zip(run.system.bodies, run.system.q_slices, strict=True):
        part = drawn_part(body, length)
        if part is None:
            continue
        q, count = run.q[:, s], len(part.skin.modes)
        labels = [f"elastic coordinate {k}" for k in range(1, count + 1)]
        node = file.add_body(body.name, part, labels, q[0])
        turns = continuous(q[:, 3:7])[:, [1, 2, 3, 0]]
        file.animate(node, "translation", times, file.add(q[:, :3], "VEC3"))
        file.animate(node, "rotation", times, file.add(turns, "VEC4"))
        if count:
            weights = file.add(q[:, 7:].reshape(-1, 1), "SCALAR")
            file.animate(node, "weights", times, weights)


class _File:
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

    def add_body(self, name: str, part: Part, labels: list[str], q: Array | None = None) -> int:
        """Add a body with its modes at the coordinates q, and return the index of its node."""
        skin, lib = part.skin, self.gltf
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
        mesh = lib.Mesh(name=name, primitives=[surface], extras={"targetNames": labels})
        mesh.weights = weights
        self.scene.meshes.append(mesh)
        node = lib.Node(name=name, mesh=len(self.scene.meshes) - 1)
        if q is not None:
            node.translation, node.rotation = q[:3].tolist(), q[[4, 5, 6, 3]].tolist()
        self.scene.nodes.append(node)
        self.scene.scenes[0].nodes.append(len(self.scene.nodes) - 1)
        return len(self.scene.nodes) - 1

    def animate(self, node: int, quantity: str, times: int, values: int) -> None:
        """Animate a quantity of a node by key frames; `times` and `values` are accessors."""
        lib = self.gltf
        if not self.scene.animations:
            self.scene.animations.append(lib.Animation(name="motion"))
        animation = self.scene.animations[0]
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
