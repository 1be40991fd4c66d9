"""Frames on a centre line that knows its tangent and not its spin: kernels.

Frame k is where the coordinates z put a point, r = P z + r₀, and is oriented by the slope there,
p = S z + p₀: its reference axes, whose z is the reference tangent t₀, are turned by the smallest
rotation that takes t₀ to t = p/|p|,

    Q = I + [t₀×t] + [t₀×t]²/(1 + t₀·t),      ω = W(p) ṗ,   W = ([t] + t cᵀ)/|p|,
    c = −(t₀×t)/(1 + t₀·t)

so that only z follows the line. The turn of x and y about it is a convention, which nothing may
depend on that is joined to the line. Where t comes near −t₀ the rotation goes by way of a half turn
about x instead, for it is not defined at −t₀; x and y jump there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.rotations import skew
from dolfinx_mbd.kernels.small_vectors import dot, identity, mm, mv, outer

__all__ = [
    "apply_wrenches",
    "bias",
    "jacobians",
    "poses",
    "velocities",
    "velocity_tangents",
    "wrench_tangent",
]

Array = NDArray[np.float64]

_NEAR = -0.9  # cosine of the angle to the reference beyond which the half turn is taken


@inner_kernel
def _tangent(S: Array, p0: Array, axes: Array, z: Array) -> tuple[Array, float, Array, Array]:
    """t, |p|, the reference that t is measured from, and the axes that have it as z."""
    p = mv(S, z) + p0
    size = np.sqrt(dot(p, p))
    t = p / size
    base = axes.copy()
    if t[0] * base[0, 2] + t[1] * base[1, 2] + t[2] * base[2, 2] < _NEAR:
        for i in range(3):
            base[i, 1] = -base[i, 1]
            base[i, 2] = -base[i, 2]
    reference = np.array([base[0, 2], base[1, 2], base[2, 2]])
    return t, size, reference, base


@inner_kernel
def _cross(a: Array, b: Array) -> Array:
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


@inner_kernel
def _spin(t: Array, reference: Array) -> tuple[Array, Array]:
    """c and its derivative to t."""
    v, d = _cross(reference, t), 1.0 + dot(reference, t)
    dc = outer(v, reference)
    dc /= d
    dc -= skew(reference)
    dc /= d
    v /= -d
    return v, dc


@inner_kernel
def _turning(t: Array, size: float, reference: Array) -> Array:
    """W, (3, 3)."""
    c, _ = _spin(t, reference)
    W = skew(t)
    W += outer(t, c)
    W /= size
    return W


@inner_kernel
def _turning_tangent(t: Array, size: float, reference: Array, rate: Array) -> Array:
    """Derivative of W(p) ṗ to p, ṗ held."""
    c, dc = _spin(t, reference)
    along = dot(c, rate)
    f = _cross(t, rate) + t * along
    D = -skew(rate) + identity(along) + outer(t, mv(dc.T.copy(), rate))
    normal = identity(1.0) - outer(t, t)
    D = mm(D, normal)
    D -= outer(f, t)
    D /= size * size
    return D


@kernel
def poses(
    P: Array,
    r0: Array,
    S: Array,
    p0: Array,
    axes: Array,
    z: Array,
    position: Array,
    rotation: Array,
) -> None:
    """Positions (F, 3) and orientations (F, 3, 3)."""
    for k in range(P.shape[0]):
        position[k] = mv(P[k], z) + r0[k]
        t, _, reference, base = _tangent(S[k], p0[k], axes[k], z)
        v = skew(_cross(reference, t))
        Q = identity(1.0) + v + mm(v, v) / (1.0 + dot(reference, t))
        rotation[k] = mm(Q, base)


@kernel
def jacobians(P: Array, S: Array, p0: Array, axes: Array, z: Array) -> Array:
    """(F, 6, n): velocity and angular velocity per unit of ż."""
    J = np.zeros((P.shape[0], 6, P.shape[2]))
    for k in range(P.shape[0]):
        t, size, reference, _ = _tangent(S[k], p0[k], axes[k], z)
        J[k, :3] = P[k]
        J[k, 3:] = mm(_turning(t, size, reference), S[k])
    return J


@kernel
def apply_wrenches(
    P: Array,
    S: Array,
    p0: Array,
    axes: Array,
    z: Array,
    wrenches: Array,
    rows: Array,
    scale: Array,
) -> None:
    """Take Jᵀw of the wrenches (F, 6) from the rows (n,); add their magnitudes to the scale."""
    for k in range(P.shape[0]):
        t, size, reference, _ = _tangent(S[k], p0[k], axes[k], z)
        moment = mv(_turning(t, size, reference).T.copy(), wrenches[k, 3:])
        for i in range(P.shape[2]):
            push = 0.0
            for c in range(3):
                push += P[k, c, i] * wrenches[k, c] + S[k, c, i] * moment[c]
            rows[i] -= push
            scale[i] += abs(push)


@kernel
def velocities(
    P: Array, S: Array, p0: Array, axes: Array, z: Array, rate: Array, out: Array
) -> None:
    """Velocities and angular velocities into ``out`` (F, 6)."""
    for k in range(P.shape[0]):
        t, size, reference, _ = _tangent(S[k], p0[k], axes[k], z)
        out[k, :3] = mv(P[k], rate)
        out[k, 3:] = mv(_turning(t, size, reference), mv(S[k], rate))


@kernel
def velocity_tangents(P: Array, S: Array, p0: Array, axes: Array, z: Array, rate: Array) -> Array:
    """(F, 6, n): derivative of the velocities to z, ż held."""
    D = np.zeros((P.shape[0], 6, P.shape[2]))
    for k in range(P.shape[0]):
        t, size, reference, _ = _tangent(S[k], p0[k], axes[k], z)
        D[k, 3:] = mm(_turning_tangent(t, size, reference, mv(S[k], rate)), S[k])
    return D


@kernel
def bias(P: Array, S: Array, p0: Array, axes: Array, z: Array, rate: Array) -> Array:
    """(F, 6): accelerations at z̈ = 0."""
    out = np.zeros((P.shape[0], 6))
    for k in range(P.shape[0]):
        t, size, reference, _ = _tangent(S[k], p0[k], axes[k], z)
        slope_rate = mv(S[k], rate)
        out[k, 3:] = mv(_turning_tangent(t, size, reference, slope_rate), slope_rate)
    return out


@kernel
def wrench_tangent(S: Array, p0: Array, axes: Array, z: Array, wrenches: Array) -> Array:
    """Derivative to z of Σ Jᵀw over the frames, wrenches (F, 6) held; (n, n)."""
    n = S.shape[2]
    out = np.zeros((n, n))
    for k in range(S.shape[0]):
        m = wrenches[k, 3:].copy()
        if dot(m, m) == 0.0:
            continue
        t, size, reference, _ = _tangent(S[k], p0[k], axes[k], z)
        c, dc = _spin(t, reference)
        along = dot(m, t)
        g = _cross(m, t) + c * along
        D = skew(m) + along * dc + outer(c, m)
        normal = identity(1.0) - outer(t, t)
        D = mm(D, normal)
        D -= outer(g, t)
        D /= size * size
        out += mm(S[k].T.copy(), mm(D, S[k]))
    return out
