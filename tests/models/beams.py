"""A slender rod reduced by hand: sine modes, integrated by Gauss quadrature."""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.body import Interface, MaterialPoint, ReducedBody


def slender_rod(
    length: float = 0.3,
    side: float = 0.008,
    young: float = 2e11,
    density: float = 7870.0,
    bending: int = 2,
    axial: int = 1,
    start: float = 0.0,
) -> ReducedBody:
    """Return a square bar along x, with its big end at x = ``start``.

    Its modes are `bending` sines in y, which are zero at both ends, and `axial` quarter sines along
    x, which are zero at the big end.
    """
    # inertia: second moment of area
    area, inertia = side**2, side**4 / 12
    points, weights = np.polynomial.legendre.leggauss(40)
    x, w = 0.5 * length * (points + 1), 0.5 * length * weights * density * area
    position = np.column_stack([start + x, np.zeros((len(x), 2))])

    def field(s: np.ndarray) -> np.ndarray:
        """Return all modes (n, points, 3) at distances s from the big end."""
        u = np.zeros((bending + axial, len(s), 3))
        for k in range(bending):
            u[k, :, 1] = np.sin((k + 1) * np.pi * s / length)
        for k in range(axial):
            u[bending + k, :, 0] = np.sin((2 * k + 1) * np.pi * s / (2 * length))
        return u

    n = bending + axial
    fields = np.concatenate([position[None], field(x)])
    S = np.einsum("p,kpa->ka", w, fields)
    H = np.einsum("p,kpa,lpb->klab", w, fields, fields)
    # second moments of the cross section, which the points on the axis do not contain
    H[0, 0] += np.diag([0, 1, 1]) * density * length * inertia
    # wave numbers of the modes, 1/m
    k_y = np.arange(1, bending + 1) * np.pi / length
    k_x = (2 * np.arange(axial) + 1) * np.pi / (2 * length)
    K = np.diag(np.concatenate([young * inertia * k_y**4, young * area * k_x**2]) * length / 2)
    ends = []
    for name, place in (("big_end", 0.0), ("small_end", length)):
        motion = np.zeros((6, n))
        motion[:3] = field(np.array([place]))[:, 0].T
        motion[5, :bending] = k_y * np.cos(k_y * place)
        ends.append(Interface(name, "rigid", np.array([start + place, 0, 0]), np.eye(3), motion))
    middle = MaterialPoint(
        "middle", np.array([start + length / 2, 0, 0]), field(np.array([length / 2]))[:, 0]
    )
    return ReducedBody.from_arrays(
        name="rod",
        total_mass=float(w.sum()),
        first_moments=S,
        second_moments=H,
        stiffness=K,
        interfaces=tuple(ends),
        points=(middle,),
        reference="attached to the chord",
    )
