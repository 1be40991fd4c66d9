"""Film between rough surfaces: mean gap, flow factors and shear of the average Reynolds equation.

Between surfaces whose heights have the combined standard deviation σ (Patir and Cheng),

    div(φ h³/(12μ) grad p) = ½ Ω ∂(h_T + σ (2 V − 1) φ_s)/∂θ + ∂h_T/∂t,    shear stress μ Ω R φ_f/h

with the mean gap h_T of Gaussian surfaces, the factors φ around and along the bore, the shear flow
factor φ_s, and the part V of σ² on the journal. φ = 1 − C e^{−r h/σ}, or 1 + C (h/σ)^{−r} for
patterns along the flow; φ_s = A₁ x^{a₁} e^{−a₂ x + a₃ x²} with x = h/σ ≤ 5, and A₂ e^{−x/4} above.
Below h = σ, where these fits are not valid, φ is that at h = σ, and φ_s is proportional to h_T.
φ_f = h ∫ f(δ)/(h + δ) dδ is that of heights with the density f = 35/96 (1 − δ²/(9σ²))³/σ, where
gaps below σ/100 do not count. Without flow factors, all thicknesses are H(h) of `thickness`.

References:
    N. Patir, H. S. Cheng, An average flow model for determining effects of three-dimensional
    roughness on partial hydrodynamic lubrication, J. Lubrication Technology 100 (1978);
    Application of average flow model to lubrication between rough sliding surfaces, 101 (1979).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dolfinx_mbd.kernels.compilation import inner_kernel
from dolfinx_mbd.kernels.films.fields import (
    FACTORS,
    FLOW_ALONG,
    FLOW_AROUND,
    ROUGHNESS,
    SHEAR_A1,
    SHEAR_A2,
    SHEAR_POWER,
    SHEAR_RATE,
    SHEAR_SQUARE,
    SHEAR_WEIGHT,
)
from dolfinx_mbd.kernels.films.thickness import thickness
from dolfinx_mbd.kernels.small_vectors import Array

_SHEAR_JOIN = 5.0  # h/σ at which the fit of φ_s changes
_SERIES = 4.0  # h/(3σ) above which φ_f is a series of moments of the density
_LEAST_MEAN = -3.0  # h/σ below which the mean gap is continued by a hyperbola


class Film(NamedTuple):
    """Thicknesses of the film at a node, with their derivatives with respect to the gap h.

    Attributes:
        around: Thickness whose cube is the conductance around the bore, m.
        along: Thickness whose cube is the conductance along the axis, m.
        entrained: Thickness that the motion of the journal entrains, m.
        content_slope: Derivative of the mean gap; `content_second` is its second derivative, 1/m.
        shear: Shear stress divided by μ Ω R, 1/m.
    """

    around: float
    around_slope: float
    along: float
    along_slope: float
    entrained: float
    entrained_slope: float
    content_slope: float
    content_second: float
    shear: float
    shear_slope: float


@inner_kernel
def _flow_factor(x: float, C: float, r: float) -> tuple[float, float]:
    """Return φ and its derivative at x = h/σ; C is negative for patterns along the flow."""
    if C >= 0.0:
        drop = C * math.exp(-r * x)
        return 1.0 - drop, r * drop
    rise = -C * x**-r
    return 1.0 + rise, -r * rise / x


@inner_kernel
def _flow_thickness(H: float, slope: float, s: float, C: float, r: float) -> tuple[float, float]:
    """Return φ^⅓ H, for the thickness H and s = σ, and its derivative with respect to the gap h.

    `slope` is dH/dh. C and r are the constants of φ, which is evaluated at H/σ, but not below 1.
    """
    x = H / s
    factor, by = _flow_factor(max(x, 1.0), C, r)
    if x < 1.0:
        by = 0.0
    root = factor ** (1.0 / 3.0)
    return root * H, slope * root * (1.0 + by * x / (3.0 * factor))


@inner_kernel
def mean_gap(x: float) -> tuple[float, float, float]:
    """Return h_T/σ of Gaussian surfaces at x = h/σ, and its first two derivatives."""
    y = max(x, _LEAST_MEAN)
    above, density = 0.5 * math.erfc(-y / math.sqrt(2.0)), math.exp(-0.5 * y * y)
    density /= math.sqrt(2.0 * math.pi)
    mean = y * above + density
    if x >= _LEAST_MEAN:
        return mean, above, density
    part = 1.0 / (1.0 - above / mean * (x - y))  # hyperbola with the same value and slope at y
    return mean * part, above * part * part, 2.0 * above * above / mean * part**3


@inner_kernel
def _shear_flow(x: float, values: Array) -> tuple[float, float]:
    """Return φ_s and its derivative at x = h/σ."""
    if x > _SHEAR_JOIN:
        factor = values[SHEAR_A2] * math.exp(-0.25 * x)
        return factor, -0.25 * factor
    exponent = -values[SHEAR_RATE] * x + values[SHEAR_SQUARE] * x * x
    factor = values[SHEAR_A1] * x ** values[SHEAR_POWER] * math.exp(exponent)
    slope = values[SHEAR_POWER] / x - values[SHEAR_RATE] + 2.0 * values[SHEAR_SQUARE] * x
    return factor, factor * slope


@inner_kernel
def friction_factor(z: float) -> tuple[float, float]:
    """Return φ_f and its derivative at z = h/(3σ), by integration of f over the heights."""
    if z > _SERIES:
        y = 1.0 / (z * z)
        rest = y * (1.0 / 9.0 + y * (1.0 / 33.0 + y * (5.0 / 429.0 + y * 7.0 / 1287.0)))
        slope = 1.0 / 9.0 + y * (2.0 / 33.0 + y * (15.0 / 429.0 + y * 28.0 / 1287.0))
        return 1.0 + rest, -2.0 * y / z * slope
    # φ_f = 35/32 z ((1 − z²)³ log + rest). `rest_by` is the derivative of `rest`, plus (1 − z²)³
    # times that of the logarithm
    square = 1.0 - z * z
    if z > 1.0:
        log = math.log((z + 1.0) / (z - 1.0))
        rest, rest_by = z / 15.0 * (66.0 + z * z * (30.0 * z * z - 80.0)), 2.0 * square * square
        rest_by += (66.0 + z * z * (150.0 * z * z - 240.0)) / 15.0
    else:
        log = math.log(300.0 * (z + 1.0))  # gaps below σ/100 = 3σ/300 do not count
        rest = -160.0 + z * (-405.0 + z * (60.0 + z * 147.0))
        rest = (-55.0 + z * (132.0 + z * (345.0 + z * rest))) / 60.0
        rest_by = -480.0 + z * (-1620.0 + z * (300.0 + z * 882.0))
        rest_by = (132.0 + z * (690.0 + z * rest_by)) / 60.0 + square**3 / (z + 1.0)
    total = square**3 * log + rest
    by = -6.0 * z * square * square * log + rest_by
    return 35.0 / 32.0 * z * total, 35.0 / 32.0 * (total + z * by)


@inner_kernel
def _rough_film(h: float, values: Array) -> Film:
    """Return the thicknesses of the film between rough surfaces."""
    s = values[ROUGHNESS]
    H, slope = thickness(h, s)
    shear, shear_slope = 1.0 / H, -slope / (H * H)
    around, around_slope = _flow_thickness(
        H, slope, s, values[FLOW_AROUND], values[FLOW_AROUND + 1]
    )
    along, along_slope = _flow_thickness(H, slope, s, values[FLOW_ALONG], values[FLOW_ALONG + 1])
    mean, above, density = mean_gap(h / s)
    factor, by = _shear_flow(max(h / s, 1.0), values)
    if h < s:
        by = factor * above / mean_gap(1.0)[0]
        factor *= mean / mean_gap(1.0)[0]
    weight = values[SHEAR_WEIGHT]
    entrained, entrained_slope = s * (mean + weight * factor), above + weight * by
    friction, friction_by = friction_factor(H / (3.0 * s))
    shear_slope = friction * shear_slope + friction_by * slope / (3.0 * s) * shear
    return Film(
        around, around_slope, along, along_slope, entrained, entrained_slope, above, density / s,
        friction * shear, shear_slope,
    )  # fmt: skip


@inner_kernel
def film_at(h: float, values: Array) -> Film:
    """Return the thicknesses of the film at a gap h."""
    if values[FACTORS] != 0.0:
        return _rough_film(h, values)
    s = values[ROUGHNESS]
    H, slope = thickness(h, s)
    bend = 2.0 * slope * H / (s * s) if h < s else 0.0
    inverse = 1.0 / H
    return Film(
        H, slope, H, slope, H, slope, slope, bend, inverse, -slope * inverse * inverse
    )  # fmt: skip
