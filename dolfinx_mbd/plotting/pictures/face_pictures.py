"""Picture of the smooth faces of a mesh with their numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import entries, reject
from dolfinx_mbd.plotting.pictures import canvas
from dolfinx_mbd.plotting.pictures.output import Picture, check_drawing, taken
from dolfinx_mbd.plotting.scene.camera import Camera, camera_of

Array = NDArray[np.float64]

PALETTE = "tab20"
COLOURS = 20  # number of colours of the palette
CANDIDATES = 40  # largest number of facets of a face that are tried for its label


def plot_faces(
    faces: Any, path: str | Path | None = None, *, window: tuple[int, int] = (1300, 620)
) -> Picture:
    """Draw the smooth faces of a mesh with their numbers, from two opposite directions.

    A number is drawn only where its face is visible. The caption lists the faces that are visible
    from neither direction.

    Args:
        faces: The result of `mbd.fem.smooth_faces`, or some of it. On several ranks, draw on one.
        path: File to write (`.png`, `.jpg` or `.pdf`); by default no file is written.
        window: Width and height, pixels.

    Raises:
        InputError: There are no faces, or an option is invalid.

    Example:
        >>> from mpi4py import MPI
        >>> mesh = mbd.build_mesh(mbd.ConnectingRod(size=0.02), MPI.COMM_SELF)
        >>> mbd.plotting.plot_faces(mbd.fem.smooth_faces(mesh), window=(200, 100))
        <Picture: 200 × 100 pixels>
    """
    expected = "faces from mbd.fem.smooth_faces"
    items = entries("faces", faces, expected)
    if not len(items) or not all(hasattr(face, "corners") for face in items):
        reject("faces", faces, expected)
    check_drawing(path, PALETTE, window)
    plotter = canvas.new_plotter(window, shape=(1, 2))
    pieces = [_surface(face.corners, face.number) for face in items]
    whole = pieces[0].merge(pieces[1:]) if len(pieces) > 1 else pieces[0]
    first = camera_of(np.asarray(whole.points), None)
    hidden = {face.number for face in items}
    for k, camera in enumerate((first, camera_of(np.asarray(whole.points), -first.towards))):
        plotter.subplot(0, k)
        plotter.add_mesh(
            whole,
            scalars="number",
            cmap=PALETTE,
            clim=(0, COLOURS),
            show_scalar_bar=False,
            ambient=0.3,
        )
        for piece in pieces:
            edges = piece.extract_feature_edges(40.0, feature_edges=False, manifold_edges=False)
            if edges.n_points:
                plotter.add_mesh(edges, color=canvas.INK, line_width=2)
        points = {face.number: _visible_point(whole, face, camera) for face in items}
        labels = {number: point for number, point in points.items() if point is not None}
        hidden -= labels.keys()
        if labels:
            places = np.array(list(labels.values()))
            canvas.add_labels(plotter, places, list(map(str, labels)), f"labels {k}")
        canvas.apply_camera(camera, plotter, below=0.06, above=0.06)
        plotter.add_axes(color=canvas.INK, line_width=2)
    if hidden:
        text = f"not visible: {', '.join(map(str, sorted(hidden)))}"
        canvas.add_text(plotter, text, align=("left", "top"))
    return taken(plotter, None, path)


def _surface(corners: Array, number: int) -> Any:
    """Return the facets of a face; their colour depends on its number."""
    points, nodes = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    nodes = nodes.reshape(corners.shape[:2])
    if nodes.shape[1] == 4:
        nodes = nodes[:, [0, 1, 3, 2]]  # from the order of DOLFINx to that around the facet
    cells = np.column_stack([np.full(len(nodes), nodes.shape[1]), nodes])
    mesh = canvas.pyvista().PolyData(points, cells.ravel())
    mesh.cell_data["number"] = np.full(len(nodes), (number - 1) % COLOURS + 0.5)
    return mesh


def _visible_point(whole: Any, face: Any, camera: Camera) -> Array | None:
    """Return a point of a face that a camera sees, close to the middle, or None."""
    centres = face.corners.mean(axis=1)
    order = np.argsort(np.linalg.norm(centres - face.point, axis=1))
    step = max(1, len(order) // CANDIDATES)
    for centre in centres[order[::step]]:
        start = centre + 1e-3 * camera.depth * camera.towards
        hits, _ = whole.ray_trace(start, centre + 2 * camera.depth * camera.towards)
        if len(hits) == 0:
            return np.asarray(start)
    return None
