"""Derivatives of bodies and runs, optimization, and identification from measurements."""

import lazy_loader

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

__all__ = [
    "Functional",
    "LinearSensitivities",
    "RunGradient",
    "RunSensitivities",
    "linear_sensitivities",
    "run_gradient",
    "run_sensitivities",
]

__getattr__, _, _ = lazy_loader.attach(
    __name__, ["identification", "optimization", "runs", "sensitivity"]
)
