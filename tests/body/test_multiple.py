"""Groups of modes with the same frequency."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dolfinx_mbd.body.multiple import end_of_group, groups_of
from dolfinx_mbd.body.participation import most_of
from dolfinx_mbd.errors import AccuracyWarning
from tests.body.test_reduced_body import body


def test_end_of_group() -> None:
    """Values belong to one group if they differ by less than 1e-6 of them, or by their errors."""
    values = np.array([1.0, 4.0, 4.0 + 3e-6, 4.0 + 6e-6, 4.1, 9.0])
    assert [end_of_group(values, k) for k in range(7)] == [0, 1, 4, 4, 4, 5, 6]
    errors = np.full(6, 0.06)
    assert end_of_group(values, 2, errors) == 5
    assert end_of_group(np.zeros(0), 0) == 0


def test_groups() -> None:
    """The order of the values has no effect."""
    assert groups_of(np.array([9.0, 4.0, 1.0, 4.0])).tolist() == [2, 1, 0, 1]
    assert groups_of(np.zeros(0)).tolist() == []


def test_shares_of_groups_do_not_depend_on_the_basis_of_the_pair() -> None:
    """However a pair of modes is rotated, both modes are selected or none."""
    groups = np.array([0, 1, 1, 2])
    for angle in np.linspace(0.0, np.pi, 9):
        weights = np.array([[0.1], [0.5 * np.cos(angle) ** 2], [0.5 * np.sin(angle) ** 2], [0.4]])
        assert most_of(weights, 0.45, groups) == [1, 2]
        assert most_of(weights, 0.95, groups) == [0, 1, 2, 3]


def test_a_selection_that_cuts_a_pair_is_reported() -> None:
    """A body with the frequencies 1, 2, 2 is selected as [1], [2, 3] and [1, 2]."""
    pair = body(3).replace(mass=np.eye(3), stiffness=np.diag([1.0, 4.0, 4.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pair.selected([1])
        pair.selected([2, 3])
    with pytest.warns(AccuracyWarning) as records:
        pair.selected([1, 2])
    (warning,) = [w.message for w in records if isinstance(w.message, AccuracyWarning)]
    assert (warning.quantity, warning.value) == ("multiple frequencies that are cut", 1)
