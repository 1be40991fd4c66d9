"""The array versions of kernels against the compiled kernels, for random arguments."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dolfinx_mbd.kernels import array_versions, matrices, time_steps
from dolfinx_mbd.kernels.compilation import COMPILED

pytestmark = pytest.mark.skipif(not COMPILED, reason="compares with compiled kernels")


def fill(random: np.random.Generator, n: int) -> list[Any]:
    """Return random arguments of the kernel `fill`."""
    nc = n // 3
    K, C, M = random.standard_normal((3, n, n))
    B, turns = random.standard_normal((nc, n)), random.standard_normal((2, 3, 3))
    columns, S = np.array([0, n - 3]), np.zeros((n + nc, n + nc), order="F")
    return [K, C, M, B, columns, turns, 3.0, 0.7, 2.0, S]


def relative_residual(random: np.random.Generator, n: int) -> list[Any]:
    """Return random arguments of the kernel `relative_residual`."""
    groups = random.integers(0, 4, n)
    return [random.standard_normal(n), random.random(n), groups, 1e-8, np.ones(5)]


def largest_product(random: np.random.Generator, n: int) -> list[Any]:
    """Return random arguments of the kernel `largest_product`."""
    return [random.standard_normal(n), random.random(n)]


def right_hand_side(random: np.random.Generator, n: int) -> list[Any]:
    """Return random arguments of the kernel `right_hand_side`."""
    rows, values = random.standard_normal(n), random.standard_normal(n // 2)
    return [rows, values, 4e3, 0.3, np.empty(n + n // 2)]


def correct(random: np.random.Generator, n: int) -> list[Any]:
    """Return random arguments of the kernel `correct`."""
    state = list(random.standard_normal((4, n)))
    return [random.standard_normal(n + 4), 3.0, 5.0, 0.6, 2.0, *state, np.ones(4)]


def predict(random: np.random.Generator, n: int) -> list[Any]:
    """Return random arguments of the kernel `predict`."""
    known = list(random.standard_normal((4, n)))
    return [*known, np.array([0.2, 0.4, 0.3, 0.6]), 0.01, *np.empty((3, n))]


@pytest.mark.parametrize(
    "arguments",
    [fill, relative_residual, largest_product, right_hand_side, correct, predict],
    ids=lambda function: function.__name__,
)
@pytest.mark.parametrize(("n", "seed"), [(7, 0), (40, 1)])
def test_arrays_give_the_results_of_the_kernel(
    arguments: Callable[..., list[Any]], n: int, seed: int
) -> None:
    name = arguments.__name__
    module = matrices if name == "fill" else time_steps
    first = arguments(np.random.default_rng(seed), n)
    second = copy.deepcopy(first)
    results = getattr(module, name)(*first), getattr(array_versions, name)(*second)
    if results[0] is not None:
        assert results[1] == pytest.approx(results[0], rel=1e-14)
    for expected, computed in zip(first, second, strict=True):
        if name == "fill" and expected is not first[-1]:
            continue  # S is the result; the kernel overwrites other arguments
        np.testing.assert_allclose(computed, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_values_that_are_not_finite(wrong: float) -> None:
    rows, scale, groups = np.array([1.0, wrong]), np.ones(2), np.zeros(2, np.int64)
    assert array_versions.relative_residual(rows, scale, groups, 1e-8, np.zeros(1)) == math.inf
    for module in (array_versions, time_steps):
        result = module.largest_product(np.array([1.0, math.nan]), np.ones(2))
        assert math.isnan(result)
