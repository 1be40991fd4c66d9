"""The estimated memory of a factorization against measurements."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dolfinx_mbd.fem.linalg.memory import GIB, factorization_memory

REPORT = Path(__file__).parents[3] / "benchmarks" / "README.md"
SMALL = re.compile(r"^\| ([\d,]+) \| package \|(?:[^|]*\|){4} ([\d.]+) \|", re.MULTILINE)
LARGE = re.compile(r"^\| ([\d,]+) \| 1 [^|]*\|[^|]*\| ([\d.]+) \|", re.MULTILINE)
SHARED = re.compile(r"^\| ([\d,]+) \| 2 \| [\d.]+ \| ([\d.]+) \|", re.MULTILINE)
KNOWN = re.compile(
    r"^\| [a-z][\w ,.]* \| ([\d,]+) \| (\w+) \| (\d+) M \| ([\d.]+) \|", re.MULTILINE
)
SINGLE = re.compile(r"^\| ([\d,]+) \| single \| ([\d.]+) \|", re.MULTILINE)


def measured() -> list[tuple[int, float]]:
    """Return numbers of displacements and peak memory, GiB, on one rank from the benchmarks."""
    _, _, text = REPORT.read_text(encoding="utf-8").partition("\n## Reduction\n")
    text, _, _ = text.partition("\n## ")
    rows = SMALL.findall(text) + LARGE.findall(text)
    return [(int(size.replace(",", "")), float(peak)) for size, peak in rows]


def test_all_measurements_are_read() -> None:
    sizes = [size for size, _ in measured()]
    assert len(sizes) >= 5
    assert min(sizes) < 50_000
    assert max(sizes) > 1_000_000


@pytest.mark.parametrize(("size", "gigabytes"), measured())
def test_model_is_that_of_the_measurements(size: int, gigabytes: float) -> None:
    assert factorization_memory(size) / GIB == pytest.approx(gigabytes, rel=0.03)


def test_model_of_two_ranks() -> None:
    """The prediction is within 15 %, or 0.25 GiB of programs for small bodies."""
    rows = SHARED.findall(REPORT.read_text(encoding="utf-8"))
    assert len(rows) >= 3
    for size, peak in rows:
        model = factorization_memory(int(size.replace(",", "")), num_ranks=2)
        assert model / GIB == pytest.approx(float(peak), rel=0.15, abs=0.25)


def test_model_of_single_precision() -> None:
    rows = SINGLE.findall(REPORT.read_text(encoding="utf-8"))
    assert len(rows) >= 2
    for size, peak in rows:
        model = factorization_memory(int(size.replace(",", "")), single=True)
        assert model / GIB == pytest.approx(float(peak), rel=0.03)


def test_model_with_the_entries_of_the_factor() -> None:
    """The prediction is within 15 % for rods, a cube and a plate."""
    rows = KNOWN.findall(REPORT.read_text(encoding="utf-8"))
    assert len(rows) >= 5
    for size, precision, millions, peak in rows:
        number, entries, single = int(size.replace(",", "")), int(millions), precision == "single"
        model = factorization_memory(number, single=single, entries=entries * 10**6)
        assert model / GIB == pytest.approx(float(peak), rel=0.15)
