"""The equations as UFL: materials, elasticity and the inertia terms of a floating frame.

Every function returns a UFL expression or form that can be used in any variational problem; nothing
is assembled. The examples of this folder assume the following lines:

    >>> import ufl
    >>> from dolfinx import fem, mesh
    >>> from mpi4py import MPI
    >>> from dolfinx_mbd.forms import *
    >>> box = mesh.create_box(MPI.COMM_SELF, [(0, 0, 0), (1, 1, 1)], [1, 1, 1])
    >>> V = fem.functionspace(box, ("Lagrange", 1, (3,)))
    >>> u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    >>> line = mesh.create_interval(MPI.COMM_SELF, 4, [0.0, 1.0])
    >>> beam_space = fem.functionspace(line, ("Lagrange", 1, (6,)))
"""

from dolfinx_mbd.forms.beam_fields import BeamField
from dolfinx_mbd.forms.beam_sections import Section
from dolfinx_mbd.forms.beams import Beam, axial_force_of_motion
from dolfinx_mbd.forms.cables import Cable, CableField
from dolfinx_mbd.forms.elasticity import (
    PLANES,
    AnyMaterial,
    Plane,
    elastic_stiffness,
    geometric_stiffness,
    strain,
    stress,
    thermal_stress,
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
    viscous_damping,
)
from dolfinx_mbd.forms.hyperelastic import linear_elastic, neo_hookean, saint_venant_kirchhoff
from dolfinx_mbd.forms.materials import (
    ALUMINIUM,
    ALUMINIUM_7075,
    MATERIALS,
    STEEL,
    GradedMaterial,
    Material,
    Temperature,
    material,
)
from dolfinx_mbd.forms.orthotropic import Orthotropic
from dolfinx_mbd.forms.reynolds import reynolds

__all__ = [
    "ALUMINIUM",
    "ALUMINIUM_7075",
    "MATERIALS",
    "PLANES",
    "STEEL",
    "AnyMaterial",
    "Beam",
    "BeamField",
    "Cable",
    "CableField",
    "GradedMaterial",
    "Material",
    "Orthotropic",
    "Plane",
    "Section",
    "Temperature",
    "axial_force_of_motion",
    "centrifugal_load",
    "centrifugal_stiffness",
    "coriolis",
    "cross",
    "elastic_stiffness",
    "euler_load",
    "euler_stiffness",
    "geometric_stiffness",
    "gravity_load",
    "linear_elastic",
    "mass",
    "material",
    "neo_hookean",
    "reynolds",
    "saint_venant_kirchhoff",
    "strain",
    "stress",
    "thermal_stress",
    "traction_load",
    "translational_load",
    "viscous_damping",
]
