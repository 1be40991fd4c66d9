"""Reader of glTF files: VTK evaluates the morph targets and the animations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


class Scene:
    """glTF file in VTK's reader, with one active animation."""

    def __init__(self, path: Path, animation: int = 0) -> None:
        io = pytest.importorskip("vtkmodules.vtkIOGeometry")
        self.reader = io.vtkGLTFReader()
        self.reader.SetFileName(str(path))
        self.reader.ApplyDeformationsToGeometryOn()
        self.reader.SetFrameRate(2000)
        self.reader.UpdateInformation()
        for k in range(self.num_animations):
            (self.reader.EnableAnimation if k == animation else self.reader.DisableAnimation)(k)
        self.reader.UpdateInformation()

    @property
    def num_animations(self) -> int:
        return int(self.reader.GetNumberOfAnimations())

    def surfaces(self, time: float) -> list[np.ndarray]:
        """Return the points of all surfaces at a time of the animation, s."""
        from vtkmodules.util.numpy_support import vtk_to_numpy

        self.reader.UpdateTimeStep(time)
        points = []
        iterator = self.reader.GetOutput().NewIterator()
        iterator.InitTraversal()
        while not iterator.IsDoneWithTraversal():
            data = iterator.GetCurrentDataObject().GetPoints().GetData()
            points.append(np.array(vtk_to_numpy(data)))
            iterator.GoToNextItem()
        return points
