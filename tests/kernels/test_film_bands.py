"""Band factors of oil films, against SciPy's and dense solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import solveh_banded

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.kernels.compilation import COMPILED
from dolfinx_mbd.kernels.films import band, mass_conserving, mass_conserving_gradients
from dolfinx_mbd.kernels.vector_operations import LANES
from dolfinx_mbd.mechanism.bearings import Asperities, FiniteBearing, Oil, OilSupply
from tests.mechanism.bearings.films import ENDS

#: Numbers of unknowns and bandwidths: below, at and above multiples of four; short and full bands
SIZES = [(1, 1), (3, 2), (9, 3), (40, 4), (30, 5), (23, 7), (64, 8), (120, 11), (50, 22), (6, 5)]


def callable_kernel(function: Any) -> Any:
    """Return a function that calls an inner kernel from Python."""
    if not COMPILED:
        return function
    import numba

    return numba.njit(lambda *arguments: function(*arguments))


factorize, substitute, substitute_columns, lu, solve_lu, solve_transposed = map(
    callable_kernel,
    (
        band.factorize,
        band.substitute,
        band.substitute_columns,
        mass_conserving._factorize,
        mass_conserving._substitute,
        mass_conserving_gradients._substitute_transposed,
    ),
)


def symmetric(count: int, width: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the rows of a band, with padding, and SciPy's lower form of it, diagonal first."""
    rows = np.zeros((count, width + 1 + band.PADDING))
    for k in range(min(width, count - 1) + 1):
        rows[: count - k, k] = rng.uniform(-1.0, 1.0, count - k)
    rows[:, 0] = 2.0 * width + rng.uniform(1.0, 2.0, count)
    return rows, np.ascontiguousarray(rows[:, : width + 1].T)


@pytest.mark.parametrize(("count", "width"), SIZES)
@pytest.mark.parametrize("columns", [4, 24])
def test_symmetric(count: int, width: int, columns: int) -> None:
    """Factors and solutions agree with SciPy's Cholesky factorization of a band."""
    rng = np.random.default_rng(count + width)
    rows, lower = symmetric(count, width, rng)
    size, inverse, x = (
        np.array([count, width]),
        np.empty(count),
        np.zeros(count + width + band.PADDING),
    )
    right, X = rng.normal(size=count), rng.normal(size=(count, columns))
    x[:count] = right
    lower = lower[: min(width, count - 1) + 1]
    expected = solveh_banded(lower, np.column_stack([right, X]), lower=True)
    factorize(size, rows, inverse, x)
    assert not rows[:, width + 1 :].any()
    substitute(size, rows, inverse, x)
    np.testing.assert_allclose(x[:count], expected[:, 0], rtol=0, atol=1e-14)
    substitute_columns(size, rows.ravel(), X)
    np.testing.assert_allclose(X, expected[:, 1:], rtol=0, atol=1e-14)


@pytest.mark.parametrize(("count", "width"), SIZES)
def test_general(count: int, width: int) -> None:
    """Factors of unsymmetric matrices and of their transposes agree with dense solutions."""
    rng = np.random.default_rng(count + width)
    A = rng.uniform(-1.0, 1.0, (count, count))
    i, j = np.indices(A.shape)
    A[abs(i - j) > width] = 0.0
    A[abs(i - j) == width - 1] = 0.0  # zero factors are skipped
    A += (2.0 * width + 1.0) * np.eye(count)
    rows = np.zeros((count, 2 * width + 1 + LANES))
    for r, c in zip(*np.nonzero(A), strict=True):
        rows[r, width + c - r] = A[r, c]
    size, x, X = np.array([count, width]), rng.normal(size=count), rng.normal(size=(count, 8))
    expected, transposed = np.linalg.solve(A, x), np.linalg.solve(A.T, X)
    lu(size, rows)
    assert not rows[:, 2 * width + 1 :].any()
    solve_lu(size, rows, x)
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-14)
    solve_transposed(size, rows, X)
    np.testing.assert_allclose(X, transposed, rtol=0, atol=1e-14)


HOLE = OilSupply(4e5, angle=np.pi, arc=0.3, length=0.006, round=True)
ROUGH = Asperities(1.5e-6, 2e9, friction=0.1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"supply": [HOLE]},
        {"oil": Oil(0.01, pressure_coefficient=2e-8), "asperities": ROUGH},
        {"supply": [HOLE], "cavitation": "mass_conserving"},
    ],
    ids=["plain", "supply", "piezoviscous", "mass-conserving"],
)
def test_patterns(options: dict[str, Any]) -> None:
    """Derivatives by patterns of the gap are sums of those by the gap at the nodes."""
    options = {"oil": 0.01, "shape": (32, 8)} | options
    grid = FiniteBearing("film", *ENDS, 0.02, 0.02, 2e-5, **options).grid
    motion = np.array([1.2e-5, 6e-6, 2e-4, -1e-4, 1e-3, -2e-3, 0.01, 0.02, 300.0, 0.0])
    h, rate = grid.gap(motion)
    grid.solve(h, rate, 300.0)
    rng = np.random.default_rng(0)
    C, around, along = (
        rng.normal(size=(6, 32, 9)),
        rng.normal(size=(32, 5)),
        rng.normal(size=(9, 3)),
    )
    by_gap, by_rate, by_speed = grid.gradients(C)
    weights = np.ascontiguousarray(C.transpose(1, 2, 0))
    parts = grid.pattern_derivatives(weights, around, along)
    for part, nodal in zip(parts, (by_gap, by_rate), strict=False):
        expected = np.einsum("kij,ia,jl->kal", nodal, around, along).reshape(len(nodal), -1)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(part[: len(nodal)], expected, rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(parts[2][: len(C)], by_speed, rtol=1e-12)


THIN = Asperities(4e-6, 2e9, friction=0.1)
# Motions of the journal: eccentricity, slope, their rates (two components each), speed and 0.
MOTIONS = {
    "cavitated": [1.2e-5, 6e-6, 2e-4, -1e-4, 1e-3, -2e-3, 0.01, 0.02, 300.0, 0.0],
    "full with a supply": [1e-6, 0.0, 1e-5, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0],
    "touching": [1.3e-5, -8e-6, -2e-4, 1e-4, 2e-3, 1e-3, 0.0, 0.0, -200.0, 0.0],
    "at rest": [1e-6, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
}


@pytest.mark.parametrize("motion", MOTIONS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"supply": [HOLE]},
        {"oil": Oil(0.01, pressure_coefficient=2e-8), "asperities": THIN},
        {"supply": [HOLE], "asperities": Asperities(4e-6, 2e9, pattern=3.0)},
        {"supply": [HOLE], "asperities": THIN, "cavitation": "mass_conserving"},
    ],
    ids=["plain", "supply", "piezoviscous", "flow factors", "mass-conserving"],
)
def test_pattern_stiffness(options: dict[str, Any], motion: str) -> None:
    """Derivatives by direct solutions agree with those by adjoint solutions.

    They are the derivatives by the gap plus 1e4 1/s times those by its rate.
    """
    options = {"oil": 0.01, "shape": (32, 8)} | options
    grid = FiniteBearing("film", *ENDS, 0.02, 0.02, 2e-5, **options).grid
    h, rate = grid.gap(np.array(MOTIONS[motion]))
    grid.solve(h, rate, MOTIONS[motion][8])
    rng = np.random.default_rng(1)
    around, along = rng.normal(size=(32, 5)), rng.normal(size=(9, 3))
    patterns = np.einsum("ia,jm->ijam", around, along).reshape(32, 9, -1)
    C = patterns * grid.areas[:, :, None]
    gap, by_rate, _ = grid.pattern_derivatives(C, around, along)
    stiffness = grid.pattern_stiffness(C, around, along, 1e4)
    expected = (gap + 1e4 * by_rate)[: C.shape[2]]
    assert np.abs(expected).max() > 0.0
    scale = np.abs(expected).max()
    np.testing.assert_allclose(stiffness, expected, rtol=0, atol=1e-12 * scale)
