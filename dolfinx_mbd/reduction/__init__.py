"""Reduced flexible bodies from a mesh with interfaces: modes, inertia, loads, stiffening."""

from __future__ import annotations

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.reduction.damping import Viscous, with_damping
from dolfinx_mbd.reduction.distributed_loads import body_force, pressure, traction
from dolfinx_mbd.reduction.front_end import reduce
from dolfinx_mbd.reduction.interfaces import InterfaceSpec
from dolfinx_mbd.reduction.options import ReductionOptions
from dolfinx_mbd.reduction.reducer import Reducer
from dolfinx_mbd.reduction.result import Reduction

__all__ = [
    "InterfaceSpec",
    "Reducer",
    "Reduction",
    "ReductionOptions",
    "Viscous",
    "body_force",
    "pressure",
    "reduce",
    "traction",
    "with_damping",
]
