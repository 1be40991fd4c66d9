"""Derivatives of bodies and runs, optimization, and identification from measurements."""

from dolfinx_mbd.design.runs.cycle_sensitivities import (
    cycle_sensitivities,
)
from dolfinx_mbd.design.runs.functionals import (
    Functional,
)
from dolfinx_mbd.design.runs.linear_sensitivities import (
    LinearSensitivities,
    linear_sensitivities,
)
from dolfinx_mbd.design.runs.run_gradient import (
    RunGradient,
    run_gradient,
)
from dolfinx_mbd.design.runs.run_sensitivities import (
    RunSensitivities,
    run_sensitivities,
)
from dolfinx_mbd.lazy import names_in

__all__ = [
    "Functional",
    "LinearSensitivities",
    "RunGradient",
    "RunSensitivities",
    "cycle_sensitivities",
    "linear_sensitivities",
    "run_gradient",
    "run_sensitivities",
]

__getattr__ = names_in(__name__, "identification", "optimization", "runs", "sensitivity")
