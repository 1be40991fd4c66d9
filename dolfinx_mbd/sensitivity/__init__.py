"""Derivatives of reduced bodies with respect to material constants, fields and shape.

The examples of this folder assume the same lines as those of `dolfinx_mbd.reduction`.
"""

from dolfinx_mbd.sensitivity.beam_changes import SectionParameter
from dolfinx_mbd.sensitivity.body_derivative import BodyDerivative
from dolfinx_mbd.sensitivity.first_order import BodySensitivities
from dolfinx_mbd.sensitivity.identification import (
    Identification,
    first_order_deviation,
    identify,
)
from dolfinx_mbd.sensitivity.measured_modes import ModalMatrices, ModalTest
from dolfinx_mbd.sensitivity.modal_pairs import ModalPairs, mac
from dolfinx_mbd.sensitivity.parameters import Parameter
from dolfinx_mbd.sensitivity.parametric import parametric_velocity
from dolfinx_mbd.sensitivity.reduced import sensitivities
from dolfinx_mbd.sensitivity.shape import extended_velocity

__all__ = [
    "BodyDerivative",
    "BodySensitivities",
    "Identification",
    "ModalMatrices",
    "ModalPairs",
    "ModalTest",
    "Parameter",
    "SectionParameter",
    "extended_velocity",
    "first_order_deviation",
    "identify",
    "mac",
    "parametric_velocity",
    "sensitivities",
]
