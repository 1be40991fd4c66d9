"""Reduced flexible bodies as plain NumPy data.

The parts of the package that use a mesh create a `ReducedBody`; the parts that simulate mechanisms
use it. Neither depends on the other, and this folder does not import DOLFINx.
"""

from dolfinx_mbd.body.axisymmetry import axisymmetric
from dolfinx_mbd.body.body_files import BodyFileError
from dolfinx_mbd.body.comparison import Comparison, compare
from dolfinx_mbd.body.damping import ModalDamping, Rayleigh
from dolfinx_mbd.body.gauges import GaugeHistory, StrainGauge
from dolfinx_mbd.body.participation import Participation, participation
from dolfinx_mbd.body.parts import (
    Bore,
    EffectiveMasses,
    Interface,
    LoadPattern,
    MaterialPoint,
    Mode,
    Skin,
    Stiffening,
)
from dolfinx_mbd.body.reduced_body import ReducedBody
from dolfinx_mbd.body.static_errors import static_errors
from dolfinx_mbd.body.stress_modes import StressModes
from dolfinx_mbd.lazy import names_in

__all__ = [
    "BodyFileError",
    "Bore",
    "Comparison",
    "EffectiveMasses",
    "GaugeHistory",
    "Interface",
    "LoadPattern",
    "MaterialPoint",
    "ModalDamping",
    "Mode",
    "Participation",
    "Rayleigh",
    "ReducedBody",
    "Skin",
    "Stiffening",
    "StrainGauge",
    "StressModes",
    "axisymmetric",
    "compare",
    "participation",
    "static_errors",
]

__getattr__ = names_in(__name__, "response")
