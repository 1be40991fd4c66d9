"""From a mesh to numbers: everything that needs DOLFINx, PETSc or SLEPc, collective over MPI."""

from __future__ import annotations

from dolfinx_mbd.analysis.requirements import check_requirements

check_requirements()

from dolfinx_mbd.analysis.interfaces import InterfaceSpec  # noqa: E402
from dolfinx_mbd.analysis.meshing import TaggedMesh, build_mesh, read_mesh, write_mesh  # noqa: E402
from dolfinx_mbd.analysis.modal import ModalAnalysis, modal_analysis  # noqa: E402
from dolfinx_mbd.analysis.reduction import Reduction, reduce  # noqa: E402

__all__ = [
    "InterfaceSpec",
    "ModalAnalysis",
    "Reduction",
    "TaggedMesh",
    "build_mesh",
    "modal_analysis",
    "read_mesh",
    "reduce",
    "write_mesh",
]
