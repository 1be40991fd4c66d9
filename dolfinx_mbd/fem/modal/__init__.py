"""Natural frequencies and modes of a free or held body."""

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.fem.modal.natural_modes import ModalAnalysis, modal_analysis

__all__ = ["ModalAnalysis", "modal_analysis"]
