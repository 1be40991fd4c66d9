"""Files with results at the nodes of the skin of a body, for ParaView."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.files import write_atomically

__all__ = ["write_surface"]


def write_surface(
    path: Path,
    title: str,
    body: ReducedBody,
    values: Mapping[str, Array],
    vectors: Mapping[str, Array] | None = None,
) -> Path:
    """Write values (points,) and vectors (points, 3) on the skin of a body as VTK; return the path.

    Args:
        path: Path of the file.
        title: Title in the file.
        body: The body.
        values: Values at the nodes of its skin, by name.
        vectors: Vectors at the nodes, by name.

    Raises:
        InputError: The body has no skin, or the values belong to other points.
        OSError: The file cannot be written.
    """
    skin = body.skin
    if skin is None or any(len(v) != len(skin.points) for v in values.values()):
        raise InputError(f"body {body.name!r} has no skin with these points", argument="path")
    # VTK writes the number of corners before the corners of each polygon
    polygons = np.insert(skin.triangles, 0, 3, axis=1)

    def write(file: BinaryIO) -> None:
        head = f"# vtk DataFile Version 3.0\n{title}\nASCII\nDATASET POLYDATA\n"
        file.write(f"{head}POINTS {len(skin.points)} double\n".encode())
        np.savetxt(file, skin.points)
        file.write(f"POLYGONS {len(polygons)} {polygons.size}\n".encode())
        np.savetxt(file, polygons, fmt="%d")
        file.write(f"POINT_DATA {len(skin.points)}\n".encode())
        for name, numbers in values.items():
            line = f"SCALARS {name.replace(' ', '_')} double 1\nLOOKUP_TABLE default\n"
            file.write(line.encode())
            np.savetxt(file, numbers)
        for name, arrows in (vectors or {}).items():
            file.write(f"VECTORS {name.replace(' ', '_')} double\n".encode())
            np.savetxt(file, arrows)

    return write_atomically(path, write, "file of results")
