"""From a mesh to numbers: everything that needs DOLFINx, PETSc or SLEPc, collective over MPI."""

from __future__ import annotations

from dolfinx_mbd.analysis.requirements import check_requirements

check_requirements()

from mpi4py import MPI  # noqa: E402

from dolfinx_mbd.analysis.absolute.cables import CableBody, CableMotion  # noqa: E402
from dolfinx_mbd.analysis.beams.reduce import (  # noqa: E402
    BeamModel,
    BeamModes,
    BeamReduction,
    beam_forces,
    beam_modes,
    beam_statics,
    reduce_beam,
)
from dolfinx_mbd.analysis.beams.rotating import rotating_beam  # noqa: E402
from dolfinx_mbd.analysis.meshing import TaggedMesh, build_mesh, read_mesh, write_mesh  # noqa: E402
from dolfinx_mbd.analysis.modal import ModalAnalysis, modal_analysis  # noqa: E402
from dolfinx_mbd.analysis.operators import (  # noqa: E402
    apply_inertia,
    frame_load,
    inertia_matrix,
)
from dolfinx_mbd.analysis.prescribed_motion.modes import (  # noqa: E402
    ModalTransient,
    modal_transient,
    quasi_static,
)
from dolfinx_mbd.analysis.prescribed_motion.motion import PrescribedMotion  # noqa: E402
from dolfinx_mbd.analysis.prescribed_motion.observation import Transient  # noqa: E402
from dolfinx_mbd.analysis.prescribed_motion.solve import transient  # noqa: E402
from dolfinx_mbd.analysis.recovery.most_stressed import most_stressed  # noqa: E402
from dolfinx_mbd.analysis.recovery.section_forces import section_forces  # noqa: E402
from dolfinx_mbd.analysis.recovery.skin_stress import skin_values  # noqa: E402
from dolfinx_mbd.analysis.recovery.static_correction import StaticCorrection  # noqa: E402
from dolfinx_mbd.analysis.recovery.stress import Recovery  # noqa: E402
from dolfinx_mbd.analysis.reduction.damping import Viscous, with_damping  # noqa: E402
from dolfinx_mbd.analysis.reduction.distributed_loads import body_force, pressure, traction  # noqa: E402
from dolfinx_mbd.analysis.reduction.interfaces import InterfaceSpec  # noqa: E402
from dolfinx_mbd.analysis.reduction.reduce import reduce  # noqa: E402
from dolfinx_mbd.analysis.reduction.reducer import Reducer  # noqa: E402
from dolfinx_mbd.analysis.reduction.result import Reduction  # noqa: E402
from dolfinx_mbd.analysis.rotating.hyperelastic import (  # noqa: E402
    SpinningEquilibrium,
    spinning_equilibrium,
)
from dolfinx_mbd.analysis.rotating.modes import RotatingModes, rotating_modes  # noqa: E402
from dolfinx_mbd.analysis.rotating.stability import (  # noqa: E402
    Campbell,
    CriticalSpeed,
    campbell,
    critical_speed,
)
from dolfinx_mbd.analysis.rotating.structure import (  # noqa: E402
    RotatingStructure,
    rotating_structure,
)
from dolfinx_mbd.parallel import end_job_on_errors  # noqa: E402

end_job_on_errors(MPI.COMM_WORLD)

__all__ = [
    "BeamModel",
    "BeamModes",
    "BeamReduction",
    "CableBody",
    "CableMotion",
    "Campbell",
    "CriticalSpeed",
    "InterfaceSpec",
    "ModalAnalysis",
    "ModalTransient",
    "PrescribedMotion",
    "Recovery",
    "Reducer",
    "Reduction",
    "RotatingModes",
    "RotatingStructure",
    "SpinningEquilibrium",
    "StaticCorrection",
    "TaggedMesh",
    "Transient",
    "Viscous",
    "apply_inertia",
    "beam_forces",
    "beam_modes",
    "beam_statics",
    "body_force",
    "build_mesh",
    "campbell",
    "critical_speed",
    "frame_load",
    "inertia_matrix",
    "modal_analysis",
    "modal_transient",
    "most_stressed",
    "pressure",
    "quasi_static",
    "read_mesh",
    "reduce",
    "reduce_beam",
    "rotating_beam",
    "rotating_modes",
    "rotating_structure",
    "section_forces",
    "skin_values",
    "spinning_equilibrium",
    "traction",
    "transient",
    "with_damping",
    "write_mesh",
]
