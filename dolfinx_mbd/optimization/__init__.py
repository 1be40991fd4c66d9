"""Parameters of least mass, or of another objective, within limits.

The examples of this folder assume the same lines as those of `dolfinx_mbd.reduction`.
"""

from dolfinx_mbd.optimization.buckling import buckling_load
from dolfinx_mbd.optimization.minimization import Limits, minimize
from dolfinx_mbd.optimization.optimum import Iterate, Optimum
from dolfinx_mbd.optimization.parametric_body import ParametricBody

__all__ = ["Iterate", "Limits", "Optimum", "ParametricBody", "buckling_load", "minimize"]
