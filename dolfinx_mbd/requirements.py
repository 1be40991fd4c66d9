"""Check, on import of this module, that DOLFINx, PETSc and SLEPc are available and suitable."""

from __future__ import annotations

import importlib

from dolfinx_mbd.errors import restore_warnings
from dolfinx_mbd.parallel import end_job_on_errors

_CURE = (
    "Run your command through ./with-fenicsx of the dolfinx_mbd repository, which installs missing "
    "packages, or get DOLFINx 0.9 to 0.11 from conda (conda install -c conda-forge fenics-dolfinx "
    "'petsc=*=real*' slepc4py gmsh python-gmsh), Docker (dolfinx/dolfinx:stable) or apt "
    "(python3-dolfinx-real python3-slepc4py-real python3-gmsh on Debian 13 and Ubuntu 25.10)"
)


def check_requirements() -> None:
    """Raise an error if DOLFINx, petsc4py or slepc4py is missing, or if PETSc is complex."""
    for name in ("dolfinx", "petsc4py", "slepc4py"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            text = f"dolfinx_mbd needs {name}, which this Python cannot import ({error})"
            raise ImportError(f"{text}. {_CURE}") from error
    restore_warnings()
    from petsc4py import PETSc

    if PETSc.ScalarType().dtype.kind == "c":
        text = "dolfinx_mbd needs PETSc with real scalars; this one has complex scalars"
        raise ImportError(f"{text}. {_CURE}")


check_requirements()

from mpi4py import MPI  # noqa: E402

end_job_on_errors(MPI.COMM_WORLD)
