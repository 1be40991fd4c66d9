"""Derivatives of reduced bodies with respect to material constants, fields and shape.

The examples of this folder assume the same lines as those of `dolfinx_mbd.reduction`.
"""

from dolfinx_mbd.sensitivity.beam_changes import SectionParameter
from dolfinx_mbd.sensitivity.body_derivative import BodyDerivative
from dolfinx_mbd.sensitivity.buckling import buckling_load
from dolfinx_mbd.sensitivity.first_order import BodySensitivities
from dolfinx_mbd.sensitivity.identification import (
    Identification,
    first_order_deviation,
    identify,
)
from dolfinx_mbd.sensitivity.measured_modes import ModalMatrices, ModalTest
from dolfinx_mbd.sensitivity.modal_pairs import ModalPairs, mac
from dolfinx_mbd.sensitivity.optimization import Limits, minimize
from dolfinx_mbd.sensitivity.optimum import Iterate, Optimum
from dolfinx_mbd.sensitivity.parameters import Parameter
from dolfinx_mbd.sensitivity.parametric import parametric_velocity
from dolfinx_mbd.sensitivity.parametric_body import ParametricBody
from dolfinx_mbd.sensitivity.reduced import sensitivities
from dolfinx_mbd.sensitivity.shape import extended_velocity

__all__ = [
    "BodyDerivative",
    "BodySensitivities",
    "Identification",
    "Iterate",
    "Limits",
    "ModalMatrices",
    "ModalPairs",
    "ModalTest",
    "Optimum",
    "Parameter",
    "ParametricBody",
    "SectionParameter",
    "buckling_load",
    "extended_velocity",
    "first_order_deviation",
    "identify",
    "mac",
    "minimize",
    "parametric_velocity",
    "sensitivities",
]
