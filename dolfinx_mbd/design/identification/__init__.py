"""Parameters from measurements, and the uncertainty of results.

The examples of this folder assume the same lines as those of `dolfinx_mbd.reduction`.
"""

from dolfinx_mbd.design.identification.least_squares import (
    Identification,
    first_order_deviation,
    identify,
)
from dolfinx_mbd.design.identification.measured_modes import ModalMatrices, ModalTest
from dolfinx_mbd.design.identification.modal_pairs import ModalPairs, mac

__all__ = [
    "Identification",
    "ModalMatrices",
    "ModalPairs",
    "ModalTest",
    "first_order_deviation",
    "identify",
    "mac",
]
