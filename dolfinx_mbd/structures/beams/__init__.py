"""Modes, statics, reduction and steady rotation of beams.

The examples of this folder assume the following lines:

    >>> from dolfinx.mesh import create_interval
    >>> from mpi4py import MPI
    >>> import dolfinx_mbd as mbd
    >>> from dolfinx_mbd.structures.beams import *
    >>> mesh = create_interval(MPI.COMM_SELF, 8, [0, 0.5])
    >>> model = mbd.BeamModel(mesh, mbd.forms.Section.rectangle(0.02, 0.01), mbd.STEEL)
    >>> reduction = mbd.reduce_beam(model, interfaces={"root": 0, "tip": 0.5}, num_modes=2)
"""

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.structures.beams.beam_reduction import BeamReduction, reduce_beam
from dolfinx_mbd.structures.beams.model import BeamModel
from dolfinx_mbd.structures.beams.rotating import rotating_beam
from dolfinx_mbd.structures.beams.statics import BeamModes, beam_forces, beam_modes, beam_statics

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
