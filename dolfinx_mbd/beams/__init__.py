"""Beams: the analyses of solids, on a line."""

from __future__ import annotations

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.beams.model import BeamModel
from dolfinx_mbd.beams.reduce import BeamReduction, reduce_beam
from dolfinx_mbd.beams.rotating import rotating_beam
from dolfinx_mbd.beams.statics import BeamModes, beam_forces, beam_modes, beam_statics

__all__ = [
    "BeamModel",
    "BeamModes",
    "BeamReduction",
    "beam_forces",
    "beam_modes",
    "beam_statics",
    "reduce_beam",
    "rotating_beam",
]
