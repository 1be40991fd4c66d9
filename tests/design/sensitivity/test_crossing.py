"""Modes that cross while a parameter changes: a bar whose height passes its width."""

from __future__ import annotations

import numpy as np
import pytest
import ufl
from mpi4py import MPI

import dolfinx_mbd as mbd
from tests.models.bodies import box, dynamic_stiffness

SIDE, LENGTH, YOUNG = 0.02, 0.15, 200e9
STEEL = mbd.Material(YOUNG, 0.3, 7850.0)


def reduced(comm: MPI.Intracomm, height: float) -> mbd.reduction.Reduction:
    """Return the reduction of a bar with a height."""
    mesh = box(comm, (LENGTH, height, SIDE), (6, 1, 1))
    points = {"end": (LENGTH, height / 2, SIDE / 2)}
    return mbd.reduce(mesh, STEEL, interfaces=["left", "right"], num_modes=6, points=points)


def derivatives(base: mbd.reduction.Reduction, height: float) -> mbd.design.BodySensitivities:
    """Return derivatives with respect to length, height and width, and the material."""
    x = ufl.SpatialCoordinate(base.model.plain_mesh)
    parameters = [mbd.Parameter("E", "young"), mbd.Parameter("rho", "density")]
    for k, (name, size) in enumerate({"l": LENGTH, "h": height, "w": SIDE}.items()):
        parts = [x[j] / size if j == k else 0 * x[j] for j in range(3)]
        parameters.append(mbd.Parameter(name, "shape", velocity=ufl.as_vector(parts)))
    return mbd.sensitivities(base, parameters)


def branches(body: mbd.body.ReducedBody) -> np.ndarray:
    """Return the first bending frequencies along y and along z, by the motion of the end."""
    motion = np.abs(body.point("end").modes[:, 1:])
    first_modes = [np.flatnonzero(motion[:, k] > 1e3 * motion[:, 1 - k])[0] for k in range(2)]
    return body.frequencies[first_modes]


def test_double_modes(comm: MPI.Intracomm) -> None:
    """The traces of the 2×2 derivatives obey the laws and the symmetry of the square."""
    base = reduced(comm, SIDE)
    table, f = derivatives(base, SIDE), base.body.frequencies
    pairs = [slice(0, 2), slice(2, 4)]  # first and second bending
    for pair in pairs:
        assert np.ptp(f[pair]) <= 1e-8 * f[pair.start]
        trace = {name: table[name].frequencies[pair].sum() for name in table}
        total = f[pair].sum()
        assert YOUNG * trace["E"] == pytest.approx(total / 2, rel=1e-8)
        assert STEEL.density * trace["rho"] == pytest.approx(-total / 2, rel=1e-8)
        assert trace["h"] == pytest.approx(trace["w"], rel=1e-8)
        size = LENGTH * trace["l"] + SIDE * (trace["h"] + trace["w"])
        assert size == pytest.approx(-total, rel=1e-8)
        # K contains squares of ω = 2πf, so that tr K′ = 8π² f (f₁′ + f₂′)
        block = np.trace(table["h"].stiffness[pair, pair])
        assert block == pytest.approx(8 * np.pi**2 * f[pair.start] * trace["h"], rel=1e-8)


def test_derivatives_of_branches(comm: MPI.Intracomm) -> None:
    """The derivatives of the group at the crossing are those of the two smooth branches."""
    base = reduced(comm, SIDE)
    derivative = derivatives(base, SIDE)["h"].frequencies[:2]
    step = 2e-3 * SIDE
    a, b, c, d = (branches(reduced(comm, SIDE + s * step).body) for s in (-2, -1, 1, 2))
    difference = (8 * (c - b) - (d - a)) / (12 * step)
    assert difference[0] > 100 * abs(difference[1])  # bending along y changes with the height
    assert np.sort(difference) == pytest.approx(derivative, abs=1e-6 * np.abs(difference).max())


@pytest.mark.parametrize("start", [0.0, -0.004])
def test_first_order_through_the_crossing(comm: MPI.Intracomm, start: float) -> None:
    """Bodies of first order follow both branches; their errors decrease with order 2.

    The base point is the crossing, or lies before it, so that the order of the modes changes.
    """
    height = SIDE * (1 + start)
    base = reduced(comm, height)
    table = derivatives(base, height)
    errors = []
    for step in (0.02, 0.01):
        exact = reduced(comm, height + step * SIDE).body
        first = table.at({"h": step * SIDE})
        changes = branches(first) / branches(exact) - 1
        y, z = branches(exact)
        assert y > z  # after the crossing; before it, y < z
        assert np.abs(np.sort(first.frequencies[:2]) - np.array([z, y])).max() < 5e-3 * y
        errors.append(np.append(changes, stiffness_error(first, exact)))
    if start:
        y, z = branches(base.body)
        assert y < z
    slopes = np.log2(np.abs(errors[0]) / np.abs(errors[1]))
    assert slopes == pytest.approx(2.0, abs=0.1)


def stiffness_error(first: mbd.body.ReducedBody, exact: mbd.body.ReducedBody) -> float:
    """Return the relative error of the dynamic stiffness at 3 kHz, below the first frequency."""
    omega = 2 * np.pi * 3000.0
    a, b = (dynamic_stiffness(body, omega) for body in (first, exact))
    return float(np.abs(a - b).max() / np.abs(b).max())
