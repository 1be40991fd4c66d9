"""Functions that the package hands to VTX files, recorded at each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd.fem import field_files

Written = list[tuple[float, dict[str, np.ndarray]]]


def recorded(monkeypatch: pytest.MonkeyPatch) -> Written:
    """Return a list to which each write to a VTX file adds its time and the values by name."""
    written: Written = []

    class Recorder(field_files.VTXWriter):
        def __init__(self, comm: MPI.Comm, path: str, output: list[Any], **options: Any) -> None:
            super().__init__(comm, path, output, **options)
            self.functions = output

        def write(self, t: float) -> None:
            super().write(t)
            written.append((t, {f.name: f.x.array.copy() for f in self.functions}))

    monkeypatch.setattr(field_files, "VTXWriter", Recorder)
    return written
