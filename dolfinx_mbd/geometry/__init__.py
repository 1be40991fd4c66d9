"""Parametric parts for gmsh: callables that add themselves to a given gmsh model and mesh it."""

from __future__ import annotations

from dolfinx_mbd.geometry.connecting_rod import ConnectingRod

__all__ = ["ConnectingRod"]
