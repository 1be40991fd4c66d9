"""Parts for gmsh, parametric or from CAD: callables that add themselves to a model and mesh it."""

from __future__ import annotations

from dolfinx_mbd.geometry.connecting_rod import ConnectingRod
from dolfinx_mbd.geometry.step import StepPart, step_surfaces

__all__ = ["ConnectingRod", "StepPart", "step_surfaces"]
