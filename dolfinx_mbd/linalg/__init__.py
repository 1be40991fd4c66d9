"""Linear algebra on PETSc and SLEPc: factorizations and eigenvalue problems."""

from __future__ import annotations

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
