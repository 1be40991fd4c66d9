"""Beams in model files: frequencies in closed form, errors with lines, schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd.io.models import ModelFileError, read_model, schema

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="a file of one process")

TEXT = """\
model: 1
parameters: {l: 600mm}
bodies:
  shaft:
    type: flexible
    reduced:
      beam: {length: l, circle: 5mm, elements: 60}
      material: steel
      num_modes: 8
      interfaces: [start, end]
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep bodies of model files in a cache of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def written(folder: Path, text: str) -> Path:
    """Return the path of a model file with a text."""
    path = folder / "model.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("length", [0.6, 0.4])
def test_first_bending_frequency_of_a_free_beam(tmp_path: Path, length: float) -> None:
    """f = (4.730²/2π) sqrt(EI/(ρA l⁴)); shear and rotary inertia are below 0.1 % here."""
    body: Any = read_model(written(tmp_path, TEXT), {"l": f"{1e3 * length!r}mm"}).system.bodies[0]
    young, density, radius = 210e9, 7850.0, 5e-3
    assert body.reduced.total_mass == pytest.approx(density * np.pi * radius**2 * length, rel=1e-9)
    frequency = 4.730041**2 / (2 * np.pi) * np.sqrt(young * radius**2 / 4 / density) / length**2
    assert body.reduced.frequencies[0] == pytest.approx(frequency, rel=1e-3)
    np.testing.assert_allclose(np.ptp([i.point[0] for i in body.reduced.interfaces]), length)


# Text: (its replacement, line of the error, message).
CASES = {
    "interfaces: [start, end]": ("interfaces: [start, middle]", 10, "interfaces: expected start"),
    "circle: 5mm": ("square: 5mm", 7, "beam.square: unknown field 'square'"),
    "circle: 5mm, ": (
        "",
        7,
        "beam: expected length and one of the sections circle, tube, rectangle",
    ),
    "length: l": ("length: 5 N", 7, "beam.length: '5 N': expected a value in m"),
}


@pytest.mark.parametrize("old", CASES)
def test_errors_have_lines(tmp_path: Path, old: str) -> None:
    new, line, text = CASES[old]
    with pytest.raises(ModelFileError) as error:
        read_model(written(tmp_path, TEXT.replace(old, new)))
    assert f"line {line}: bodies.shaft.reduced.{text}" in str(error.value)


def test_interfaces_by_distance_and_schema(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    import yaml

    text = TEXT.replace("[start, end]", "{root: 0, gear: l/3}")
    text = text.replace("circle: 5mm", "rectangle: [2cm, 5mm]")
    body: Any = read_model(written(tmp_path, text)).system.bodies[0]
    assert [i.name for i in body.reduced.interfaces] == ["root", "gear"]
    assert body.reduced.total_mass == pytest.approx(7850 * 0.02 * 0.005 * 0.6, rel=1e-9)
    validator = jsonschema.Draft202012Validator(schema())
    for sample in (text, TEXT):
        assert [e.message for e in validator.iter_errors(yaml.safe_load(sample))] == []
    assert list(validator.iter_errors(yaml.safe_load(TEXT.replace("circle", "square"))))
