"""Reynolds' equation of a thin oil film between two sliding surfaces.

The mesh is the developed surface: x is along the sliding direction and y across it. The pressure p
satisfies for every test function v

    ∫ h³/(12 μ) grad p·grad v dx + ∫ (½ U ∂h/∂x + ∂h/∂t) v dx = 0

with the film thickness h, the viscosity μ, and the sum U of the speeds of both surfaces. Where p
would be negative, the film ruptures: p ≥ 0 is an obstacle problem. Solve it with bounds (PETSc's
`SNESVINEWTONRSLS`), or add a penalty. Negative pressures then remain, of the order of the sources
divided by the penalty.
"""

from __future__ import annotations

import math
from typing import Any

import ufl
from ufl.constantvalue import Zero, as_ufl
from ufl.form import Form

from dolfinx_mbd.checks import reject
from dolfinx_mbd.forms.arguments import Value, expression, positive, scalar

__all__ = ["reynolds"]


def reynolds(
    p: Any,
    v: Any,
    thickness: Value,
    viscosity: Value,
    *,
    surface_speed: Value = 0.0,
    rate: Value = 0.0,
    penalty: Value | None = None,
) -> Form:
    """Return the residual of Reynolds' equation; linear in v, and in p without a penalty.

    Args:
        p: Pressure, Pa: a function, or a trial function for use with `ufl.system`.
        v: Test function.
        thickness: Film thickness h, m; its derivative along x is taken by UFL.
        viscosity: Viscosity μ, Pa s; it may depend on p.
        surface_speed: Sum U of the speeds of both surfaces along x, m/s; for a journal in a bore
            at rest the product of radius and angular speed.
        rate: Rate of the film thickness at a fixed position, m/s.
        penalty: Coefficient k of a flow −k p into the film where p < 0, m/(Pa s).

    Raises:
        InputError: Film thickness or viscosity is not positive, or a value is not a scalar.

    Example:
        >>> W = fem.functionspace(box, ("Lagrange", 1))
        >>> p, q = ufl.TrialFunction(W), ufl.TestFunction(W)
        >>> h = 1e-5 * (1 + 0.5 * ufl.cos(ufl.SpatialCoordinate(box)[0]))
        >>> residual = reynolds(p, q, h, 0.01, surface_speed=6.0)
        >>> [len(part.arguments()) for part in ufl.system(residual)]
        [2, 1]
    """
    expression("p", p, ((),))
    expression("v", v, ((),))
    h, mu = positive("thickness", thickness, "m"), positive("viscosity", viscosity, "Pa s")
    U, squeeze = scalar("surface_speed", surface_speed), scalar("rate", rate)
    conductance = h * h * h / (12 * mu)  # volume flow per width and pressure gradient
    if isinstance(conductance, float) and not 0.0 < conductance < math.inf:
        reject("thickness", h, "such that h³/(12 μ) is positive and finite")
    # A number h has no derivative along x
    source = as_ufl(squeeze if isinstance(h, float) else 0.5 * U * h.dx(0) + squeeze)
    form = conductance * ufl.inner(ufl.grad(p), ufl.grad(v)) * ufl.dx
    if not isinstance(source, Zero):  # UFL cannot integrate zero
        form += source * v * ufl.dx
    if penalty is not None:
        k = positive("penalty", penalty)
        form += k * ufl.conditional(ufl.lt(p, 0.0), p, 0.0) * v * ufl.dx
    return form
