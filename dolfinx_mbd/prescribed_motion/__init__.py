"""Deformation of a body whose rigid motion is given, at full order and in modes."""

from __future__ import annotations

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.prescribed_motion.modal_coordinates import (
    ModalTransient,
    modal_transient,
    quasi_static_deformation,
)
from dolfinx_mbd.prescribed_motion.motion import PrescribedMotion
from dolfinx_mbd.prescribed_motion.observation import Transient
from dolfinx_mbd.prescribed_motion.solve import TransientOptions, transient

__all__ = [
    "ModalTransient",
    "PrescribedMotion",
    "Transient",
    "TransientOptions",
    "modal_transient",
    "quasi_static_deformation",
    "transient",
]
