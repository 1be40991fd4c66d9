"""Functions of model files besides expressions: the gas forces of engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.io.models import ModelFileError, read_model, schema, write_model
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, FourStrokePressure, inline_engine

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="a file of one process")

ANGLE = np.radians(np.arange(0.0, 721.0, 5.0))
CURVE = 2e5 + 1e5 * np.cos(ANGLE / 2)
PRESSURES = {
    "four strokes": lambda: FourStrokePressure(0.07, 0.04, 0.137, peak_pressure=70e5),
    "table": lambda: mbd.mechanisms.PressureTable(ANGLE, CURVE),
    "map": lambda: mbd.mechanisms.PressureMap(ANGLE, [100.0, 300.0], [CURVE, 2 * CURVE]),
}


@pytest.mark.parametrize("kind", PRESSURES)
def test_engines_with_gas_forces(tmp_path: Path, kind: str) -> None:
    """An engine with two cylinders, written and read, has the same forces."""
    rod = mbd.mechanisms.rigid_rod(length=0.137, mass=0.5)
    design = EngineDesign(crank_radius=0.04, cylinders=2)
    engine = inline_engine(rod, design, speed=200.0, pressure=PRESSURES[kind]())
    path = write_model(engine, tmp_path / "engine.yaml")
    copy = read_model(path).system
    run, run_of_copy = (mbd.simulate(system, t_end=5e-3, dt=1e-4) for system in (engine, copy))
    assert np.abs(run.joint("main").force).max() > 100
    assert max(d.largest for d in run.compare(run_of_copy).values()) == 0.0
    jsonschema = pytest.importorskip("jsonschema")
    import yaml

    errors = jsonschema.Draft202012Validator(schema()).iter_errors(yaml.safe_load(path.read_text()))
    assert [e.message for e in errors] == []


ENGINE = """\
model: 1
mechanism:
  type: inline_engine
  rod: {type: rigid_rod, length: 137mm, mass: 0.5}
  design: {crank_radius: 40mm, cylinders: 1}
  speed: 600rpm
  pressure: PRESSURE
"""
FIELDS = "bore: 70mm, crank_radius: 40mm, rod_length: 137mm, peak_pressure: 70 bar"


def test_pressure_of_an_engine(tmp_path: Path) -> None:
    path = tmp_path / "engine.yaml"
    path.write_text(ENGINE.replace("PRESSURE", f"{{type: four_stroke, {FIELDS}}}"))
    system: Any = read_model(path).system
    expected = FourStrokePressure(0.07, 0.04, 0.137, peak_pressure=70e5)
    angle = np.linspace(0, 12, 7)
    np.testing.assert_allclose(system.loads[0].value.pressure(angle), expected(angle), rtol=1e-12)


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (
            "{type: two_stroke}",
            "pressure.type: unknown type 'two_stroke'; did you mean 'four_stroke'?",
        ),
        ("{type: four_stroke}", "the field 'bore', m, is missing"),
        (f"{{type: four_stroke, {FIELDS}, colour: 1}}", "pressure.colour: unknown field"),
    ],
)
def test_errors_have_lines(tmp_path: Path, entry: str, text: str) -> None:
    path = tmp_path / "engine.yaml"
    path.write_text(ENGINE.replace("PRESSURE", entry))
    with pytest.raises(ModelFileError, match=r"line 7: mechanism\.pressure") as error:
        read_model(path)
    assert text in str(error.value)
