"""Film thickness near contact, and the pressure of touching asperities.

The geometric gap h of two smooth surfaces may become zero or negative in an iteration. Reynolds'
equation uses the thickness H(h) = h for h ≥ s and s²/(2s − h) below, where s is the roughness. H is
positive and continuously differentiable. The asperities carry the pressure K F(h/s) with the fit
F(x) = 4.4086e-5 (4 − x)^6.804 of Greenwood and Tripp's integral for x < 4; above, F is zero.

References:
    J. A. Greenwood, J. H. Tripp, The contact of two nominally flat rough surfaces, 1970.
    N. Patir, H. S. Cheng, Effect of surface roughness orientation on the central film thickness in
    EHD contacts, 1978 (fit of the integral).
"""

from __future__ import annotations

import math

from dolfinx_mbd.kernels.compilation import inner_kernel

ASPERITY_HEIGHT = 4.0  #: Gap at which asperities begin to touch, relative to the roughness
ASPERITY_FACTOR, ASPERITY_POWER = 4.4086e-5, 6.804  #: F(x) = factor (4 − x)^power


@inner_kernel
def thickness(h: float, s: float) -> tuple[float, float]:
    """Return H(h) and its derivative."""
    if h >= s:
        return h, 1.0
    share = s / (2.0 * s - h)
    return s * share, share * share


@inner_kernel
def asperity_pressure(h: float, s: float, modulus: float) -> tuple[float, float]:
    """Return the pressure of the asperities and its derivative with respect to h."""
    x = ASPERITY_HEIGHT - h / s
    if x <= 0.0:
        return 0.0, 0.0
    p = modulus * ASPERITY_FACTOR * x**ASPERITY_POWER
    return p, -ASPERITY_POWER * p / (x * s)


@inner_kernel
def boundary_drag(speed: float, coefficient: float, width: float) -> tuple[float, float]:
    """Return the friction of asperities per contact force at a sliding speed, and its slope."""
    share = math.tanh(speed / width)
    return coefficient * share, coefficient * (1.0 - share * share) / width
