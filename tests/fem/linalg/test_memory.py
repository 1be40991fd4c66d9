"""The estimated memory of a factorization against measurements."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dolfinx_mbd.fem.linalg.memory import GIB, factorization_memory

REPORT = Path(__file__).parents[3] / "benchmarks" / "README.md"
# Rows of its tables. KNOWN: body, displacements, precision, entries of the factor and peak in GiB;
# LARGE: displacements and peak on one rank; SHARED: displacements and peak on two ranks.
KNOWN = re.compile(
    r"^\| ([a-z]+)[\w ,.]* \| ([\d,]+) \| (\w+) \| (\d+) M \| ([\d.]+) \|", re.MULTILINE
)
LARGE = re.compile(r"^\| ([\d,]+) \| 1 \(29 November[^|]*\|[^|]*\| ([\d.]+) \|", re.MULTILINE)
SHARED = re.compile(r"^\| ([\d,]+) \| 2 \| [\d.]+ \| ([\d.]+) \|", re.MULTILINE)


def rods() -> list[tuple[int, bool, float]]:
    """Return displacements, whether the factor is single, and peaks in GiB of all rods."""
    text = REPORT.read_text(encoding="utf-8")
    rows = [(n, kind, peak) for body, n, kind, _, peak in KNOWN.findall(text) if body == "rod"]
    rows += [(n, "single", peak) for n, peak in LARGE.findall(text)]
    return [(int(n.replace(",", "")), kind == "single", float(peak)) for n, kind, peak in rows]


def test_all_measurements_are_read() -> None:
    sizes = {single: [n for n, s, _ in rods() if s == single] for single in (False, True)}
    assert len(sizes[False]) >= 5
    assert len(sizes[True]) >= 2
    assert min(sizes[False]) < 50_000
    assert max(sizes[True]) > 1_000_000


@pytest.mark.parametrize(("size", "single", "gigabytes"), rods())
def test_model_is_that_of_the_measurements(size: int, single: bool, gigabytes: float) -> None:
    model = factorization_memory(size, single=single) / GIB
    assert model == pytest.approx(gigabytes, rel=0.03)


def test_model_of_two_ranks() -> None:
    """The prediction is within 15 %, or 0.25 GiB (memory of the programs) for small bodies."""
    rows = SHARED.findall(REPORT.read_text(encoding="utf-8"))
    assert len(rows) >= 3
    for size, peak in rows:
        model = factorization_memory(int(size.replace(",", "")), num_ranks=2)
        assert model / GIB == pytest.approx(float(peak), rel=0.15, abs=0.25)


def test_model_with_the_entries_of_the_factor() -> None:
    """The prediction is within 15 % for rods, a cube and a plate."""
    rows = KNOWN.findall(REPORT.read_text(encoding="utf-8"))
    assert len(rows) >= 5
    for _, size, precision, millions, peak in rows:
        number, entries, single = int(size.replace(",", "")), int(millions), precision == "single"
        model = factorization_memory(number, single=single, entries=entries * 10**6)
        assert model / GIB == pytest.approx(float(peak), rel=0.15)
