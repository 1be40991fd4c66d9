"""Rainflow counting against ASTM E1049-85 and the library `rainflow`."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.durability import count_cycles, equivalent_range
from dolfinx_mbd.errors import InputError

ASTM = [-2, 1, -3, 5, -1, 3, -4, 4, -2]


def test_reference_case_v16() -> None:
    """The cycles are those of the example in ASTM E1049-85, figure 6.

    Each entry of `expected` is a range, a mean and a count. The equivalent range for the slope 3 is
    (Σ count range³)^(1/3) = 1094^(1/3).
    """
    expected = [
        (3, -0.5, 0.5), (4, -1, 0.5), (4, 1, 1), (8, 1, 0.5), (9, 0.5, 0.5), (8, 0, 0.5),
        (6, 1, 0.5),
    ]  # fmt: skip
    assert list(zip(*map(list, count_cycles(ASTM)), strict=True)) == expected
    assert equivalent_range(ASTM, 3) == pytest.approx(10.303998196, abs=5e-10)
    assert equivalent_range(ASTM, 5) == pytest.approx(9.253256631, abs=5e-10)


@pytest.mark.parametrize("seed", range(60))
def test_random_histories_against_the_library(seed: int) -> None:
    rainflow = pytest.importorskip("rainflow")
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 400))
    history = rng.normal(size=size) if seed % 2 else rng.integers(-4, 5, size=size).astype(float)
    expected = sorted(entry[:3] for entry in rainflow.extract_cycles(history))
    cycles = sorted(zip(*map(list, count_cycles(history)), strict=True))
    assert np.allclose(cycles, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_closed_residue(seed: int) -> None:
    """A closed history has whole cycles and its largest range, wherever it starts."""
    history = np.random.default_rng(seed).normal(size=50)
    ranges, _, counts = count_cycles(history, "closed")
    assert ranges.max() == np.ptp(history)
    assert np.array_equal(counts.sum(), round(counts.sum()))
    for variant in (np.roll(history, 17), np.tile(history, 3)):
        times = len(variant) / len(history)
        damage = equivalent_range(variant, 4, cycles=times, residue="closed")
        assert damage == pytest.approx(equivalent_range(history, 4, residue="closed"), rel=1e-12)


@pytest.mark.parametrize("mean", [0.0, 3.0, -1e3])
def test_round_off_makes_no_cycles(mean: float) -> None:
    """A closed sine is one cycle, wherever it starts; round-off at its ends is no cycle."""
    t = np.linspace(0, 1, 61)
    for phase in np.linspace(0, 2 * np.pi, 200):
        ranges, means, counts = count_cycles(mean + np.sin(2 * np.pi * t + phase), "closed")
        assert counts.sum() == 1
        np.testing.assert_allclose(ranges, 2.0, atol=6e-3)
        np.testing.assert_allclose(means, mean, atol=6e-3)


def test_plateaus_and_constants() -> None:
    assert len(count_cycles([1.0, 1.0, 1.0]).ranges) == 0
    assert equivalent_range([1.0, 1.0], 3) == 0.0
    assert count_cycles([0, 0, 2, 2, 0, 0], "closed").ranges.tolist() == [2.0, 2.0]


def test_errors() -> None:
    for history in ([], [1.0], [0.0, np.nan], [[0.0, 1.0]]):
        with pytest.raises(InputError, match="history"):
            count_cycles(history)
    with pytest.raises(InputError, match="residue"):
        count_cycles([0, 1], "open")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="slope"):
        equivalent_range([0, 1], -3)
