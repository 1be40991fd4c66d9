"""Derivatives of reduced bodies with respect to material constants, fields, sections and shape.

The examples of this folder assume the same lines as those of `dolfinx_mbd.reduction`.
"""

from dolfinx_mbd.design.sensitivity.beam_changes import SectionParameter
from dolfinx_mbd.design.sensitivity.body_derivative import BodyDerivative
from dolfinx_mbd.design.sensitivity.body_sensitivities import sensitivities
from dolfinx_mbd.design.sensitivity.first_order import BodySensitivities
from dolfinx_mbd.design.sensitivity.parameters import Parameter
from dolfinx_mbd.design.sensitivity.shapes.parametric import parametric_velocity
from dolfinx_mbd.design.sensitivity.shapes.velocities import extended_velocity

__all__ = [
    "BodyDerivative",
    "BodySensitivities",
    "Parameter",
    "SectionParameter",
    "extended_velocity",
    "parametric_velocity",
    "sensitivities",
]
