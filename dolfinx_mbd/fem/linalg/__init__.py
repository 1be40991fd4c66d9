"""Linear algebra on PETSc and SLEPc: factorizations and eigenvalue problems.

Functions of distributed matrices and vectors are collective. Small results are bitwise identical on
all ranks. The caller destroys the PETSc objects that a function returns.
"""

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
