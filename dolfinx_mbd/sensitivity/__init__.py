"""Derivatives of reduced bodies with respect to material constants, fields and shape.

The examples of this folder assume the same lines as those of `dolfinx_mbd.reduction`.
"""

from dolfinx_mbd.sensitivity.buckling import buckling_load
from dolfinx_mbd.sensitivity.identification import (
    Identification,
    first_order_deviation,
    identify,
)
from dolfinx_mbd.sensitivity.optimization import Limits, minimize
from dolfinx_mbd.sensitivity.optimum import Iterate, Optimum
from dolfinx_mbd.sensitivity.parameters import Parameter
from dolfinx_mbd.sensitivity.parametric_body import ParametricBody
from dolfinx_mbd.sensitivity.reduced import BodyDerivative, BodySensitivities, sensitivities
from dolfinx_mbd.sensitivity.shape import extended_velocity

__all__ = [
    "BodyDerivative",
    "BodySensitivities",
    "Identification",
    "Iterate",
    "Limits",
    "Optimum",
    "Parameter",
    "ParametricBody",
    "buckling_load",
    "extended_velocity",
    "first_order_deviation",
    "identify",
    "minimize",
    "sensitivities",
]
