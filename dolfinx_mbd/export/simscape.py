"""MATLAB file for the block *Reduced Order Flexible Solid* of Simscape Multibody.

The variables of the file are parameters of the block:

- `origins` (p, 3) and `quaternions` (p, 4; w, x, y, z): interface frames in the body frame;
- `K`, `M` and, if the body has damping, `C`: matrices with Tx, Ty, Tz, Rx, Ry, Rz of each interface
  along the axes of the body, then m fixed-interface modes. K has six zero eigenvalues, M is
  positive definite;
- `names` of the interfaces, `frequencies` (m, 1) of the modes in Hz (in the unit of time), `units`
  and `description`.

K and M describe the linear body and its rigid mass properties exactly; the block approximates the
coupling of rotation and deformation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
import scipy.io

from dolfinx_mbd.export.common import ExportReport, Task
from dolfinx_mbd.export.superelement import superelement
from dolfinx_mbd.export.text import ascii_text
from dolfinx_mbd.kernels.rotations import quaternion_from_matrix

__all__ = ["write"]


def write(task: Task, *, interfaces: Sequence[str] | None = None) -> ExportReport:
    """Write a MATLAB v5 file with some interfaces as boundary nodes, in order; by default all."""
    body = task.body
    element = superelement(body, interfaces)
    names = np.array([ascii_text(name) for name in element.names], dtype=object)
    data: dict[str, Any] = {
        "origins": element.points,
        "quaternions": np.array([quaternion_from_matrix(i.axes) for i in element.interfaces]),
        "K": element.stiffness,
        "M": element.mass,
        "frequencies": element.frequencies[:, None],
        "names": names[:, None],
        "units": task.report.units.statement,
        "description": ascii_text(f"reduced body {body.name!r}, reference {body.reference}"),
    }
    if element.damping.any():
        data["C"] = element.damping

    def dump(file: BinaryIO) -> None:
        scipy.io.savemat(file, data, format="5", do_compression=False, oned_as="column")
        file.seek(0)  # (replaces the date, so that files of the same body are equal)
        file.write(b"MATLAB 5.0 MAT-file, written by dolfinx_mbd".ljust(116))

    note = "origins, quaternions, K and M are parameters of Reduced Order Flexible Solid"
    return task.save(dump, notes=[note])
