"""Parameters of least mass, or of another objective, within limits.

The examples of this folder assume the same lines as those of `dolfinx_mbd.reduction`.
"""

from dolfinx_mbd.design.optimization.buckling import buckling_load
from dolfinx_mbd.design.optimization.minimization import Limits, minimize
from dolfinx_mbd.design.optimization.optimum import Iterate, Optimum
from dolfinx_mbd.design.optimization.parametric_body import ParametricBody

__all__ = ["Iterate", "Limits", "Optimum", "ParametricBody", "buckling_load", "minimize"]
