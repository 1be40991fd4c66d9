"""Derivatives of reduced bodies with respect to material constants, fields and shape.

The examples of this folder assume the lines of `dolfinx_mbd.reduction`.
"""

from dolfinx_mbd.sensitivity.parameters import Parameter
from dolfinx_mbd.sensitivity.reduced import BodyDerivative, BodySensitivities, sensitivities

__all__ = ["BodyDerivative", "BodySensitivities", "Parameter", "sensitivities"]
