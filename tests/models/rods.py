"""A reduced rod with two modes, from formulas: the body of the examples in the docstrings."""

from __future__ import annotations

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd.body import Interface, LoadPattern, Skin, Stiffening
from dolfinx_mbd.body.static_errors import unit_work


def rod() -> mbd.ReducedBody:
    """Return a uniform rod of 0.6 kg along x, with an axial mode and a bending mode in x-y."""
    points, weights = np.polynomial.legendre.leggauss(12)
    x, masses = 0.5 * points, 0.3 * weights
    shapes = np.zeros((3, len(x), 3))  # position, axial mode, bending mode
    shapes[0, :, 0] = x
    shapes[1, :, 0] = np.sin(np.pi * x)
    shapes[2, :, 1] = 4 * x**2 - 1 / 3
    second_moments = np.einsum("p,kpa,lpb->klab", masses, shapes, shapes)
    second_moments[0, 0] += np.diag([0.0, 1e-5, 1e-5])  # of the cross section, kg m²
    motions = np.zeros((2, 6, 2))
    motions[:, 0, 0] = -1.0, 1.0
    motions[:, 1, 1] = 2 / 3
    motions[:, 5, 1] = -4.0, 4.0
    corners = np.array([[x, y, 0.0] for x in (-0.5, 0.5) for y in (-0.02, 0.02)])
    nodes = np.zeros((2, 4, 3))
    nodes[0, :, 0] = -1.0, -1.0, 1.0, 1.0
    nodes[1, :, 1] = 2 / 3
    body = mbd.ReducedBody.from_arrays(
        name="rod",
        total_mass=0.6,
        first_moments=np.einsum("p,kpa->ka", masses, shapes),
        second_moments=second_moments,
        stiffness=np.diag([5e6, 4e4]),
        interfaces=[
            Interface(name, "rigid", (end, 0.0, 0.0), np.eye(3), motion)
            for name, end, motion in zip(("left", "right"), (-0.5, 0.5), motions, strict=True)
        ],
        skin=Skin(corners, [[0, 1, 2], [1, 3, 2]], nodes),
        loads=[LoadPattern("wind", (0, 1, 0), (0, 0, 0), (0, 0.1), np.zeros((2, 3)))],
    )
    # work of unit loads on the modes, and the static responses to these loads
    work = unit_work(body)
    responses = np.linalg.solve(body.stiffness, work)
    cases = Stiffening(
        np.zeros((6, 2, 2)), np.zeros((2, 6, 2, 2)), np.einsum("kc,kc->c", work, responses)
    )
    return body.replace(stiffening=cases)
