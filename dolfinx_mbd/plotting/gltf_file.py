"""Construction of binary glTF 2.0 files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body.parts import Skin
from dolfinx_mbd.kernels.columns import ETA
from dolfinx_mbd.optional import optional_module

__all__ = ["GENERATOR", "GltfFile"]

Array = NDArray[np.float64]

_GAMMA = 2.2  # exponent from the values of screens to linear intensities
FLOAT, UNSIGNED = 5126, 5125
"""Codes of glTF for types of numbers."""
ARRAY, INDICES = 34962, 34963
"""Codes of glTF for kinds of buffers."""
GENERATOR = b'"generator":"dolfinx_mbd"'
"""Bytes in each file by which it is recognized."""


class GltfFile:
    """A glTF file under construction: its tables and its binary data."""

    def __init__(self) -> None:
        pygltflib = optional_module("pygltflib", "glTF files")
        self.gltf: Any = pygltflib
        self.scene: Any = pygltflib.GLTF2(
            scene=0,
            scenes=[pygltflib.Scene(nodes=[])],
            asset=pygltflib.Asset(version="2.0", generator="dolfinx_mbd"),
            materials=[pygltflib.Material(doubleSided=True)],
        )
        self._materials: dict[str, int] = {}
        self._children: list[int] = self.scene.scenes[0].nodes  # nodes of the scene or of its root
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
        """Add an array and return the index of its accessor.

        Args:
            values: The numbers; the first axis runs over the elements.
            shape: Type of an element in glTF, such as `VEC3`.
            kind: `FLOAT` or `UNSIGNED`.
            target: `ARRAY`, `INDICES`, or None for data that are no part of a mesh.
            limits: Whether to store the least and the largest values.
        """
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
        self,
        name: str,
        skin: Skin,
        extras: Mapping[str, Any],
        q: Array | None = None,
        colour: str = "",
    ) -> int:
        """Add a body with its modes, and return the index of its node.

        Args:
            name: Name of the body.
            skin: Surface, and the displacements for the weight 1 of each target.
            extras: Further data, such as `targetNames`, the names of the modes.
            q: Position, quaternion (w, x, y, z) and weights, shape (7 + n,); by default the surface
                as it is.
            colour: Colour as `#rrggbb`; by default that of the program that shows the file.
        """
        lib = self.gltf
        surface = lib.Primitive(
            attributes=lib.Attributes(
                POSITION=self.add(skin.points, "VEC3", target=ARRAY, limits=True)
            ),
            indices=self.add(
                skin.triangles.reshape(-1, 1), "SCALAR", kind=UNSIGNED, target=INDICES
            ),
            material=self._material(colour),
            targets=[
                {"POSITION": self.add(mode, "VEC3", target=ARRAY, limits=True)}
                for mode in skin.modes
            ],
        )
        weights_at_start = np.zeros(len(skin.modes)) if q is None else q[ETA]
        weights = weights_at_start.tolist() if len(skin.modes) else None
        mesh = lib.Mesh(name=name, primitives=[surface], extras=dict(extras))
        mesh.weights = weights
        self.scene.meshes.append(mesh)
        node = lib.Node(name=name, mesh=len(self.scene.meshes) - 1)
        if q is not None:
            node.translation, node.rotation = q[:3].tolist(), q[[4, 5, 6, 3]].tolist()
        self.scene.nodes.append(node)
        self._children.append(len(self.scene.nodes) - 1)
        return len(self.scene.nodes) - 1

    def _material(self, colour: str) -> int:
        """Return the index of the material with a colour."""
        if colour and colour not in self._materials:
            # Red, green and blue of `#rrggbb`; glTF has linear intensities
            components = [(int(colour[k : k + 2], 16) / 255) ** _GAMMA for k in (1, 3, 5)]
            surface = self.gltf.PbrMetallicRoughness(
                baseColorFactor=[*components, 1.0], metallicFactor=0.1
            )
            material = self.gltf.Material(doubleSided=True, pbrMetallicRoughness=surface)
            self._materials[colour] = len(self.scene.materials)
            self.scene.materials.append(material)
        return self._materials.get(colour, 0)

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
