"""Laws of reduced bodies with every optional part: modes, files, and derivatives as trees."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dolfinx_mbd as mbd
from dolfinx_mbd.body.tree import checked, leaves, map_arrays, part_fields
from tests.body.complete import complete_body, exact_numbers, random_numbers

DATA = Path(__file__).parents[1] / "data"
sizes = st.integers(1, 5)
seeds = st.integers(0, 2**32 - 1)
bodies = st.builds(lambda n, seed: complete_body(n, random_numbers(seed)), sizes, seeds)


def assert_same(first: mbd.ReducedBody, second: mbd.ReducedBody, tolerance: float = 0.0) -> None:
    """Compare all arrays relative to their size; a tolerance of 0 means equal bits."""
    pairs = zip(leaves(first), leaves(second), strict=True)
    for (place, _, a), (other, _, b) in pairs:
        assert place == other
        size = np.abs(a).max(initial=0.0)
        assert np.abs(a - b).max(initial=0.0) <= tolerance * size, place


def invertible(n: int, seed: int) -> np.ndarray:
    """Return a matrix with singular values from 0.5 to 2."""
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    return U @ np.diag(rng.uniform(0.5, 2.0, n)) @ V


def test_file_of_an_earlier_version() -> None:
    """The file was written before the arrays had declarations."""
    expected = complete_body(3, exact_numbers())
    body = mbd.ReducedBody.load(DATA / "body_version_2.body")
    assert_same(body, expected)
    assert body.summary() == expected.summary()


@given(bodies, st.data())
@settings(max_examples=20, deadline=None)
def test_selection_is_a_change_of_modes(body: mbd.ReducedBody, data: st.DataObject) -> None:
    n = body.num_modes
    modes = data.draw(st.lists(st.integers(1, n), unique=True).map(sorted))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbd.errors.AccuracyWarning)
        selected = body.selected(modes)
    columns = np.eye(n)[:, np.array(modes, dtype=int) - 1]
    assert_same(body.transformed(columns), selected)
    assert [m.label for m in selected.modes] == [body.modes[k - 1].label for k in modes]
    assert len(selected.left_out) == 1 + n - len(modes)


@given(bodies, seeds)
@settings(max_examples=20, deadline=None)
def test_change_of_modes_and_back(body: mbd.ReducedBody, seed: int) -> None:
    T = invertible(body.num_modes, seed)
    assert_same(body, body.transformed(T).transformed(np.linalg.inv(T)), 1e-6)


@given(bodies)
@settings(max_examples=10, deadline=None)
def test_sum_of_a_body_and_a_difference(body: mbd.ReducedBody) -> None:
    other = map_arrays(lambda _, a: 1.5 * a, body)
    difference = map_arrays(lambda _, a, b: b - a, body, other)
    assert_same(map_arrays(lambda _, a, d: a + d, body, difference), other, 1e-6)
    assert all(getattr(difference, name) for name in part_fields(body))
    assert_same(checked(map_arrays(lambda _, a: a, body)), body)


def test_bodies_of_different_structure() -> None:
    body = complete_body(2, exact_numbers())
    for other in (
        body.replace(gauges=body.gauges[:1]),
        body.replace(points=body.points[::-1]),
        body.replace(skin=mbd.body.Skin(body.skin.points, [[0, 1, 2]], body.skin.modes)),
    ):
        with pytest.raises(mbd.errors.InputError) as caught:
            map_arrays(lambda _, a, b: a - b, body, other)
        assert caught.value.argument in ("gauges", "points", "triangles")
    without = map_arrays(lambda _, a, b: a - b, body, body.replace(skin=None))
    assert without.skin is None
    with pytest.raises(mbd.errors.InputError) as caught:
        body.transformed(np.ones((2, 2)))
    assert caught.value.argument == "matrix"
