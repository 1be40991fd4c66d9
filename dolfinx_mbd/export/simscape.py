"""MATLAB file for Simscape Multibody's *Reduced Order Flexible Solid*.

Variables of the file, which are parameters of the block:

- ``origins`` (p, 3) and ``quaternions`` (p, 4; w, x, y, z): interface frames in the body frame;
- ``K``, ``M`` and, if the body has damping, ``C``: square matrices of 6 p + m coordinates, for each
  interface in turn Tx, Ty, Tz, Rx, Ry, Rz along the body's axes, then m fixed-interface modes. K
  has six zero modes, M is positive definite;
- ``names`` of the interfaces, ``frequencies`` (m, 1) of the modes in Hz (of the unit of time),
  ``units``, ``description``.

K and M hold the linear body and its rigid mass properties exactly; terms of rotation and
deformation together are what the block makes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.io

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.export.common import SI, ExportReport, Units, ascii_text, prepare, write_binary
from dolfinx_mbd.export.superelement import superelement
from dolfinx_mbd.kernels.rotations import quaternion_from_matrix

__all__ = ["write"]


def write(
    body: ReducedBody,
    path: str | Path,
    *,
    units: Units | str = SI,
    interfaces: Sequence[str] | None = None,
    overwrite: bool = False,
) -> ExportReport:
    """Write a MATLAB v5 file with K and M in coordinates of interfaces and modes.

    Args:
        body: In SI, with interfaces.
        path: The file; ``.mat`` is added if it has no suffix.
        units: Of the numbers in the file.
        interfaces: Those to keep as boundary nodes, in order; None: all.
        overwrite: Replace a file that is there already and has another content.

    Raises:
        ValueError: If there are no interfaces, or their motions are dependent.
        OverwriteError: If the file is there already, with another content.
        OSError: If the file cannot be written.
    """
    scaled, path, report = prepare(body, path, "simscape", units)
    element = superelement(scaled, interfaces)
    names = np.array([ascii_text(name) for name in element.names], dtype=object)
    data: dict[str, Any] = {
        "origins": element.points,
        "quaternions": np.array([quaternion_from_matrix(i.axes) for i in element.interfaces]),
        "K": element.stiffness,
        "M": element.mass,
        "frequencies": element.frequencies[:, None],
        "names": names[:, None],
        "units": report.units.statement,
        "description": ascii_text(f"reduced body {body.name!r}, reference {body.reference}"),
    }
    if element.damping.any():
        data["C"] = element.damping

    def dump(file: BinaryIO) -> None:
        scipy.io.savemat(file, data, format="5", do_compression=False, oned_as="column")
        file.seek(0)  # (SciPy writes the date here; without it the same body is the same file)
        file.write(b"MATLAB 5.0 MAT-file, written by dolfinx_mbd".ljust(116))

    return report.with_files(
        write_binary(path, dump, "MATLAB file", overwrite=overwrite),
        notes=["origins, quaternions, K and M are parameters of Reduced Order Flexible Solid"],
    )
