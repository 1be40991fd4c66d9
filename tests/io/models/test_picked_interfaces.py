"""Interfaces of model files that geometry selects: the same body as with named groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.io.cli import main
from dolfinx_mbd.io.models import ModelFileError, read_model, schema

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="a file of one process")

ROD = mbd.ConnectingRod(size=0.02)
# r is a radius in m without a unit; 500 times a diameter is a radius in mm.
TEXT = f"""\
model: 1
parameters: {{r: {ROD.big_bore / 2!r}, tip: {1e3 * ROD.length!r}mm}}
bodies:
  rod:
    type: flexible
    reduced:
      mesh: rod.msh
      material: steel
      num_modes: 2
      interfaces:
        big:
          pick:
            cylinder: [[0, 0, 0], [0, 0, 1], r]
            box: [[-1, -1, -1], [1, 1, 100cm]]
        small: {{kind: averaged, pick: {{near: ["tip - {500 * ROD.small_bore!r}mm", 0, 0]}}}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a mesh and a cache of bodies."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    mbd.fem.write_mesh(ROD, tmp_path / "rod.msh")
    return tmp_path


def written(folder: Path, text: str) -> Path:
    """Return the path of a model file with a text."""
    path = folder / "model.yaml"
    path.write_text(text)
    return path


def test_same_body_as_with_names(folder: Path) -> None:
    body: Any = read_model(written(folder, TEXT)).system.bodies[0]
    mesh = mbd.read_mesh(folder / "rod.msh", MPI.COMM_SELF)
    kinds = {
        "big": mbd.InterfaceSpec("big_end"),
        "small": mbd.InterfaceSpec("small_end", kind="averaged"),
    }
    named = mbd.reduce(mesh, mbd.STEEL, interfaces=kinds, num_modes=2).body
    np.testing.assert_allclose(body.reduced.frequencies, named.frequencies, rtol=1e-9)
    assert [i.kind for i in body.reduced.interfaces] == ["rigid", "averaged"]
    assert main(["check", str(folder / "model.yaml")]) == 0


def test_a_parameter_of_a_shape_selects_other_facets(folder: Path) -> None:
    """The cached body depends on the values of the expressions, not on their texts."""
    path = written(folder, TEXT)
    read_model(path)
    cache = folder / "cache" / "dolfinx_mbd-bodies"
    with pytest.raises(ModelFileError, match="lies on the cylinder"):
        read_model(path, {"r": "30mm"})
    assert len(list(cache.glob("*.npz"))) == 1
    read_model(path, {"r": f"{0.5e3 * ROD.big_bore * (1 + 1e-9)!r}mm"})
    assert len(list(cache.glob("*.npz"))) == 2


CASES = {
    ("r]", "30mm]"): (12, "pick: no boundary facet lies on the cylinder and the box"),
    ("[0, 0, 1], r", "[0, 0, 0], r"): (13, "pick.cylinder: the axis of cylinder must be"),
    ("box:", "bax:"): (14, "pick.bax: unknown field 'bax'; did you mean 'box'? Known are cylinder"),
    ("100cm", "100N"): (14, "pick.box.1.2: '100N': expected a value in m, not in N"),
    ("{near:", "{facets: x, near:"): (15, "pick.facets: unknown field"),
    ("kind: averaged,", "facets: a,"): (15, "pick: expected either facets or pick"),
    ("kind: averaged", "kind: avg"): (15, "kind: expected one of rigid, averaged"),
    ("{near:", "{box: [[0, 0, 0], [1, 1, 1]], near:"): (15, "pick: give one or more of cylinder"),
}


@pytest.mark.parametrize("change", CASES)
def test_errors_have_lines(folder: Path, change: tuple[str, str]) -> None:
    line, text = CASES[change]
    with pytest.raises(ModelFileError) as error:
        read_model(written(folder, TEXT.replace(*change)))
    assert f"model.yaml, line {line}: bodies.rod.reduced.interfaces." in str(error.value)
    assert text in str(error.value)


def test_schema_of_shapes() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(schema())
    assert [e.message for e in validator.iter_errors(yaml.safe_load(TEXT))] == []
    for old, new in (("box:", "bax:"), ("kind: averaged", "kind: avg")):
        assert list(validator.iter_errors(yaml.safe_load(TEXT.replace(old, new))))


def test_a_field_without_a_type_for_files_accepts_nothing() -> None:
    """The schema stays valid if no type of a field can be written in a file."""
    jsonschema = pytest.importorskip("jsonschema")
    from dolfinx_mbd.io.models.declarations import Declared
    from dolfinx_mbd.io.models.schema import _field

    rule = _field("", Declared("law", ("Callable[[float], float]",), None, "", ""))
    jsonschema.Draft202012Validator.check_schema(rule)
    assert list(jsonschema.Draft202012Validator(rule).iter_errors(3))


def with_rod(fields: str) -> str:
    """Return the text of a model whose rod is a `ConnectingRod` with these fields."""
    rod = f"rod: {{size: 20mm, {fields}}}"
    names = "interfaces: [big_end, small_end]\n"
    return TEXT.replace("mesh: rod.msh", rod).split("interfaces:")[0] + names


def test_numbers_and_truth_values_of_a_rod(folder: Path) -> None:
    """The order of the elements is a whole number, and lengths have units."""
    text = with_rod("order: 1, split_big_end: true, big_bore: 44mm")
    body: Any = read_model(written(folder, text)).system.bodies[0]
    rod = mbd.ConnectingRod(size=0.02, order=1, split_big_end=True, big_bore=0.044)
    mesh = mbd.build_mesh(rod, MPI.COMM_SELF)
    ends = ["big_end", "small_end"]
    named = mbd.reduce(mesh, mbd.STEEL, interfaces=ends, num_modes=2).body
    np.testing.assert_allclose(body.reduced.frequencies, named.frequencies, rtol=1e-9)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("sizes: 3mm", "rod.sizes: unknown field 'sizes'; did you mean 'size'"),
        ("order: 1.5", "rod.order: expected a whole number; got 1.5"),
        ("order: true", "rod.order: expected a whole number"),
        ("split_big_end: 1", "rod.split_big_end: expected true or false; got 1"),
        ("big_bore: true", "rod.big_bore: expected a number"),
        ("big_bore: 4kg", "rod.big_bore: "),
    ],
)
def test_fields_of_a_rod_are_checked(folder: Path, fields: str, message: str) -> None:
    with pytest.raises(ModelFileError, match=f"line 7: bodies.rod.reduced.{message}"):
        read_model(written(folder, with_rod(fields)))
