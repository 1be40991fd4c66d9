"""Buckling loads: Euler's formula, and derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest
import ufl
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from tests.models.bodies import box

SIZE = 0.5, 0.02, 0.012
ENDS = "left", "right"


def column(comm: MPI.Intracomm, degree: int = 2) -> mbd.design.ParametricBody:
    """Return a bar of steel with three changes of shape.

    `length` stretches the bar, `width` thickens it along z, more so at the right end, and `skew`
    moves the right end sideways.
    """
    model = mbd.ElasticModel(box(comm, SIZE, (10, 1, 1)), mbd.STEEL, degree=degree)
    x, y, z = ufl.SpatialCoordinate(model.plain_mesh)
    velocities = {
        "length": (x, 0 * x, 0 * x),
        "width": (0 * x, 0 * x, (z - SIZE[2] / 2) * (1 + x)),
        "skew": (0 * x, 0 * x, 0.2 * x),
    }
    parameters = [
        mbd.Parameter(name, "shape", velocity=ufl.as_vector(v)) for name, v in velocities.items()
    ]
    return mbd.design.ParametricBody(model, parameters, interfaces=ENDS, num_modes=6)


@pytest.mark.slow
def test_euler(comm: MPI.Intracomm) -> None:
    """P = π²EI/L², reduced by shear to P/(1 + P/(k G A)) (Engesser); the ends rotate freely.

    The bar buckles in the direction of its thickness w, with I = h w³/12, A = h w, k = 5/6 and
    G = E/2.6. Elements of degree three are needed: with ten of degree two, the load is 0.5 % too
    high.
    """
    load, slopes = mbd.design.buckling_load(column(comm, degree=3).at({}), ENDS)
    L, h, w = SIZE
    euler = np.pi**2 * 210e9 * h * w**3 / 12 / L**2
    exact = euler / (1 + euler / (5 / 6 * 210e9 / 2.6 * h * w))
    assert load == pytest.approx(exact, rel=6e-4)
    assert slopes["length"] / load == pytest.approx(-2, rel=1e-2)  # P ∝ L⁻², up to shear
    assert abs(slopes["skew"]) / load < 1e-6  # the skew bar is longer only in second order


@pytest.mark.slow
def test_derivatives(comm: MPI.Intracomm) -> None:
    bar = column(comm)
    base, step = {"length": 0.1, "width": 0.2, "skew": 0.3}, 1e-4
    _, slopes = mbd.design.buckling_load(bar.at(base), ENDS)
    for name, slope in slopes.items():
        above, below = (
            mbd.design.buckling_load(bar.at({**base, name: base[name] + s}), ENDS)[0]
            for s in (step, -step)
        )
        assert slope == pytest.approx((above - below) / (2 * step), rel=1e-5)


def test_errors(comm: MPI.Intracomm) -> None:
    table = column(comm).at({})
    with pytest.raises(InputError, match="two interfaces"):
        mbd.design.buckling_load(table, ("left",))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unknown interface"):
        mbd.design.buckling_load(table, ("left", "top"))
    bare = mbd.design.BodySensitivities(table.body.replace(stiffening=None), table.base, {})
    with pytest.raises(InputError, match="geometric stiffening"):
        mbd.design.buckling_load(bare, ENDS)
