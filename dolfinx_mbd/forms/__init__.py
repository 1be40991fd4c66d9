"""The equations as UFL: materials, elasticity and the inertia terms of a floating frame.

Nothing here assembles or knows a mesh; every function returns a UFL expression or form that can be
used in any variational problem.
"""

from __future__ import annotations

from dolfinx_mbd.forms.elasticity import (
    PLANES,
    Plane,
    elastic_stiffness,
    geometric_stiffness,
    strain,
    stress,
)
from dolfinx_mbd.forms.floating_frame import (
    centrifugal_load,
    centrifugal_stiffness,
    coriolis,
    cross,
    euler_load,
    euler_stiffness,
    gravity_load,
    mass,
    traction_load,
    translational_load,
)
from dolfinx_mbd.forms.materials import ALUMINIUM, ALUMINIUM_7075, STEEL, Material

__all__ = [
    "ALUMINIUM",
    "ALUMINIUM_7075",
    "PLANES",
    "STEEL",
    "Material",
    "Plane",
    "centrifugal_load",
    "centrifugal_stiffness",
    "coriolis",
    "cross",
    "elastic_stiffness",
    "euler_load",
    "euler_stiffness",
    "geometric_stiffness",
    "gravity_load",
    "mass",
    "strain",
    "stress",
    "traction_load",
    "translational_load",
]
