"""Export of simulated motions to glTF 2.0, for Blender and other programs that show 3D scenes.

The modes of a body are the morph targets of its surface. A weight of a target is 0 for the smallest
value of an elastic coordinate in the run and 1 for the largest, because Blender limits the weights
to this range. Marks of joints and springs are nodes with a motion; arrows change their length, and
lines change their shape by morph targets. Lengths are in metres and times in seconds. The format
`gltf` of `dolfinx_mbd.io.export` writes a single body with its modes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.parts import Skin
from dolfinx_mbd.checks import file_path, instance, number
from dolfinx_mbd.files import contains, write_atomically
from dolfinx_mbd.plotting.gltf_file import GENERATOR, GltfFile
from dolfinx_mbd.plotting.pictures.mechanism_pictures import check_marks
from dolfinx_mbd.plotting.scene.description import COLOURS, Arrow, Lines, Mark, Scene
from dolfinx_mbd.plotting.scene.mechanism_scene import DRAWN, mechanism_scene
from dolfinx_mbd.plotting.scene.mesh_surfaces import ACCURACY
from dolfinx_mbd.plotting.scene.moving_surface import Surface
from dolfinx_mbd.plotting.scene.tubes import (
    ORIGIN,
    SHAPES,
    Tube,
    Z,
    force_arrow,
    mesh_of,
    moment_arrow,
)
from dolfinx_mbd.plotting.viewer.data import continuous
from dolfinx_mbd.results.solution import Solution

__all__ = ["write_gltf"]

_LINE_ERROR = 1e-3  # permitted error of the points of lines relative to the size of the scene
_OPPOSITE = 1e-12  # 1 + cosine below which a direction is opposite to the z axis


def write_gltf(
    run: Solution,
    path: str | Path,
    *,
    slow_motion: float = 1.0,
    scale: float = 1.0,
    marks: Iterable[str] = DRAWN,
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
        marks: Additional objects as for `plot_system`, without names; () writes bodies and cables.

    Raises:
        ImportError: pygltflib is not installed.
        InputError: The run, the path or a mark is invalid, or a factor is not positive.
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
    kinds = check_marks(marks)
    file = GltfFile()
    scene = mechanism_scene(run, np.arange(len(run)), kinds, accuracy=ACCURACY)
    file.add_root("mechanism", _rotation_to_y(-scene.gravity))
    writer = _Writer(file, scene, slow_motion)
    for surface in scene.surfaces:
        writer.add_surface(surface, scale)
    for line in scene.lines:
        writer.add_lines(line)
    for mark in scene.marks:
        writer.add_mark(mark)
    for index, arrow in enumerate(scene.arrows):
        writer.add_arrow(index, arrow)
    return write_atomically(path, file.write, "glTF file", replaces=contains(GENERATOR))


class _Writer:
    """Nodes and animations of a scene."""

    def __init__(self, file: GltfFile, scene: Scene, slow_motion: float) -> None:
        self.file, self.scene = file, scene
        self.times = file.add(slow_motion * scene.time[:, None], "SCALAR", limits=True)

    def _move(self, node: int, position: Array, rotation: Array) -> None:
        """Animate a node by positions (nt, 3) and quaternions (w, x, y, z), (nt, 4)."""
        quaternions = continuous(rotation)[:, [1, 2, 3, 0]]
        self.file.animate(node, "translation", self.times, self.file.add(position, "VEC3"))
        self.file.animate(node, "rotation", self.times, self.file.add(quaternions, "VEC4"))

    def _deform(self, node: int, weights: Array) -> None:
        """Animate the weights (nt, n) of the morph targets of a node."""
        values = self.file.add(weights.reshape(-1, 1), "SCALAR")
        self.file.animate(node, "weights", self.times, values)

    def add_surface(self, surface: Surface, scale: float) -> None:
        """Add the surface of a body."""
        eta = surface.eta
        labels = [f"elastic coordinate {k}" for k in range(1, eta.shape[1] + 1)]
        skin, smallest, span = _scaled_to_weights(surface.skin, eta, scale)
        extras = {"targetNames": labels, "smallest": smallest.tolist(), "range": span.tolist()}
        start = np.concatenate([surface.position[0], surface.rotation[0], eta[0]])
        node = self.file.add_body(surface.name, skin, extras, start)
        self._move(node, surface.position, surface.rotation)
        if eta.shape[1]:
            self._deform(node, (eta - smallest) / span)

    def add_lines(self, lines: Lines) -> None:
        """Add tubes around lines; the morph targets are the principal parts of their motion."""
        for points in np.moveaxis(lines.points, 1, 0):
            motion = (points - points[0]).reshape(len(points), -1)
            u, sizes, parts = np.linalg.svd(motion, full_matrices=False)
            count = int(np.sum(sizes > _LINE_ERROR * self.scene.length))
            eta = u[:, :count] * sizes[:count]
            tube = Tube(points[0], np.full(len(points[0]), lines.radius), 8)
            mesh = mesh_of([tube])
            ring = np.arange(len(mesh.points)) // tube.sides
            nearest = np.clip(ring - 1, 0, len(points[0]) - 1)  # the ends have two rings
            modes = parts[:count].reshape(count, len(points[0]), 3)[:, nearest]
            whole = Skin(mesh.points, mesh.triangles, modes)
            skin, smallest, span = _scaled_to_weights(whole, eta, 1.0)
            node = self._add_static(lines.name, lines.group, skin)
            if count:
                self._deform(node, (eta - smallest) / span)

    def _add_static(self, name: str, group: str, skin: Skin) -> int:
        """Add a surface in global coordinates, and return the index of its node."""
        start = np.concatenate([[0, 0, 0, 1.0, 0, 0, 0], np.zeros(len(skin.modes))])
        return self.file.add_body(name, skin, {}, start, COLOURS[group])

    def _add_tubes(self, name: str, group: str, tubes: Iterable[Tube]) -> int:
        """Add tubes as one surface without modes, and return the index of its node."""
        mesh = mesh_of(tubes)
        points = mesh.points
        return self._add_static(
            name, group, Skin(points, mesh.triangles, np.zeros((0, len(points), 3)))
        )

    def _stretch(self, node: int, position: Array, z: Array, scale: Array) -> None:
        """Animate a node whose z axis has the direction z (nt, 3), with scales (nt, 3)."""
        self._move(node, position, np.array([_quaternion(axis) for axis in z]))
        self.file.animate(node, "scale", self.times, self.file.add(scale, "VEC3"))

    def add_mark(self, mark: Mark) -> None:
        """Add a mark; one that connects frames is stretched, or becomes a sleeve at the start."""
        frames = self.scene.frames
        if frames is None or mark.first < 0:
            self._add_tubes(mark.name, mark.group, mark.tubes)
            return
        start, end = frames.position[:, mark.first], frames.position[:, mark.second]
        z = frames.rotation[:, mark.first, :, 2]
        lengths = np.linalg.norm(end - start, axis=1)
        close = mark.shape != "rod" and lengths[0] < 2 * mark.size
        if not mark.connects or close:
            tubes, place = mark.tubes, end
            if mark.connects:
                tubes, place = SHAPES["sleeve"](mark.size), 0.5 * (start + end)
            node = self._add_tubes(mark.name, mark.group, tubes)
            self._move(node, place, np.array([_quaternion(axis) for axis in z]))
            return
        tubes_at_start = [
            Tube(tube.points * [1, 1, lengths[0]], tube.radii, tube.sides) for tube in mark.tubes
        ]
        node = self._add_tubes(mark.name, mark.group, tubes_at_start)
        along = (end - start) / np.maximum(lengths, 1e-300)[:, None]
        ratio = lengths / (lengths[0] or 1.0)
        scale = np.column_stack([np.ones((len(ratio), 2)), ratio])
        self._stretch(node, start, along, scale)

    def add_arrow(self, index: int, arrow: Arrow) -> None:
        """Add an arrow whose length follows the force; too small forces have the length 0."""
        scene = self.scene
        vectors = scene.arrow_scale(arrow) * arrow.vectors
        longest = np.linalg.norm(vectors, axis=1).max()
        shape = force_arrow if arrow.unit == "N" else moment_arrow
        name = f"{arrow.group}: {arrow.name} ({arrow.unit})"
        node = self._add_tubes(name, arrow.group, shape(ORIGIN, longest * Z, scene.radius))
        lengths = np.linalg.norm(vectors, axis=1)
        visible = [scene.arrow_ends(index, k) is not None for k in range(len(scene.time))]
        ratio = np.where(visible, lengths / longest, 0.0)
        starts = arrow.points - (index in scene.inward) * vectors
        z = vectors / np.maximum(lengths, 1e-300)[:, None]
        self._stretch(node, starts, z, np.repeat(ratio[:, None], 3, axis=1))


def _scaled_to_weights(skin: Skin, eta: Array, scale: float) -> tuple[Skin, Array, Array]:
    """Return a skin for weights from 0 to 1, and smallest values and ranges of coordinates.

    Its points are those for the smallest values of the elastic coordinates η (nt, n), and its modes
    are the displacements from the smallest to the largest values, scaled.
    """
    smallest, span = eta.min(axis=0), np.ptp(eta, axis=0)
    span[span == 0.0] = 1.0  # constant coordinates
    points = skin.points + scale * np.einsum("k,kpa->pa", smallest, skin.modes)
    return Skin(points, skin.triangles, scale * span[:, None, None] * skin.modes), smallest, span


def _quaternion(z: Array) -> Array:
    """Return the quaternion (w, x, y, z) that rotates the z axis to a unit vector."""
    quaternion = np.array([1.0 + z[2], -z[1], z[0], 0.0])
    if quaternion[0] < _OPPOSITE:
        quaternion = np.array([0.0, 1.0, 0.0, 0.0])  # 180° about x
    return quaternion / np.linalg.norm(quaternion)


def _rotation_to_y(up: Array) -> Array:
    """Return the quaternion (x, y, z, w) that rotates a direction to y; identity if it is zero."""
    length = np.linalg.norm(up)
    if not length:
        return np.array([0.0, 0.0, 0.0, 1.0])
    x, y, z = up / length
    if y < -0.5:  # 180° about x, after the rotation of the opposite direction
        a, _, c, w = _rotation_to_y(-up)
        return np.array([w, -c, 0.0, -a])
    quaternion = np.array([-z, 0.0, x, 1.0 + y])
    return np.asarray(quaternion / np.linalg.norm(quaternion))
