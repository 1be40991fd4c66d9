"""Model files and commands that take the materials of a deck."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.io.cli import main
from dolfinx_mbd.io.models import ModelFileError, read_model, schema
from tests.geometry.test_materials_of_decks import ALUMINIUM, STEEL, VOLUME, abaqus

pytest.importorskip("meshlane")
pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="a file of one process")

MASS = VOLUME * (7850 + 2700)
TEXT = """\
model: 1
bodies:
  bar:
    type: flexible
    reduced:
      mesh: bar.inp
      unit: mm-t-s
      interfaces: [left, right]
      num_modes: 1
  pad:
    type: mesh_body
    model: {mesh: bar.inp, unit: mm-t-s, degree: 1}
    interfaces: [left]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a deck that includes its materials, and a cache of bodies."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "bar.inp").write_text(abaqus("*INCLUDE, INPUT=materials.inp"))
    (tmp_path / "materials.inp").write_text(STEEL + ALUMINIUM)
    return tmp_path


def written(folder: Path, text: str) -> Path:
    """Return the path of a model file with a text."""
    path = folder / "model.yaml"
    path.write_text(text)
    return path


def test_bodies_without_a_material(folder: Path) -> None:
    jsonschema.validate(yaml.safe_load(TEXT), schema())
    bar, pad = read_model(written(folder, TEXT)).system.bodies
    assert bar.reduced.total_mass == pytest.approx(MASS, rel=1e-12)  # type: ignore[union-attr]
    names = {group: m.name for group, m in pad.model.material.items()}  # type: ignore[union-attr]
    assert names == {"front": "Steel", "BACK": "ALU"}


def test_materials_by_group(folder: Path) -> None:
    """The deck completes the materials of a reduced body, of a mesh body and of the command."""
    text = TEXT.replace("      interfaces", "      material: {front: bronze}\n      interfaces")
    text = text.replace("degree: 1", "degree: 1, material: {front: bronze}")
    jsonschema.validate(yaml.safe_load(text), schema())
    bar, pad = read_model(written(folder, text)).system.bodies
    bronze = mbd.forms.materials.MATERIALS["bronze"]
    mass = VOLUME * (bronze.density + 2700)
    assert bar.reduced.total_mass == pytest.approx(mass, rel=1e-12)  # type: ignore[union-attr]
    assert [m.name for m in pad.model.material.values()] == ["bronze", "ALU"]  # type: ignore[union-attr]
    words = ["--interface", "left", "--modes", "1", "-q", "-o", str(folder / "bar.npz")]
    words += ["--unit", "mm-t-s", "--material", "front=bronze"]
    assert main(["reduce", str(folder / "bar.inp"), *words]) == 0
    assert mbd.ReducedBody.load(folder / "bar.npz").total_mass == pytest.approx(mass, rel=1e-12)
    both = text.replace("{front: bronze}", "{2: steel, front: bronze}")
    with pytest.raises(ModelFileError, match="line 5"):
        read_model(written(folder, both.replace("2: steel", "99: steel")))


def test_a_body_is_reduced_again_if_an_included_file_changes(folder: Path) -> None:
    path = written(folder, TEXT.split("  pad:")[0])
    masses = []
    for density in ("7.85e-09", "7.0e-09"):
        (folder / "materials.inp").write_text(STEEL.replace("7.85e-09", density) + ALUMINIUM)
        body: Any = read_model(path).system.bodies[0]
        masses.append(body.reduced.total_mass)
    assert masses[0] - masses[1] == pytest.approx(VOLUME * 850, rel=1e-9)


def test_warnings_are_repeated_with_a_cached_body(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second time, the body is loaded, and its units are still implausible."""
    path = written(folder, TEXT.split("  pad:")[0].replace("      unit: mm-t-s\n", ""))
    (folder / "materials.inp").write_text(STEEL + "*PLASTIC\n200., 0.\n" + ALUMINIUM)
    texts = []
    for _ in range(2):
        with pytest.warns(mbd.errors.MbdWarning) as record:
            read_model(path)
        texts.append(sorted((type(item.message).__name__, str(item.message)) for item in record))
    assert main(["check", str(path)]) == 0
    assert "implausible: E = 210000 Pa" in capsys.readouterr().err
    assert texts[0] == texts[1]
    assert {name for name, _ in texts[0]} == {"FileWarning", "UnitsWarning"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("unit: mm-t-s", "unit: mm", "line 5: bodies.bar.reduced.*gives only the length"),
        ("mesh: bar.inp", "mesh: bare.inp", "'material' is missing, and '.*bare.inp' has no mat"),
        (
            "left, right",
            "left, right: averaged",
            r"by name, such as \{big: \{\}, small: \{kind: av",
        ),
        ("mesh: bar.inp", "rod: {}", "line 5: .*the field 'material' is missing"),
    ],
)
def test_errors_have_a_line(folder: Path, old: str, new: str, message: str) -> None:
    (folder / "bare.inp").write_text(abaqus(""))
    with pytest.raises(ModelFileError, match=message):
        read_model(written(folder, TEXT.replace(old, new, 1)))


def test_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deck, body = str(folder / "bar.inp"), str(folder / "bar.npz")
    words = ["reduce", deck, "--unit", "mm-t-s", "--interface", "left", "--modes", "1", "-q"]
    assert main([*words, "-o", body]) == 0
    assert mbd.ReducedBody.load(body).total_mass == pytest.approx(MASS, rel=1e-12)
    assert main(["info", deck, "--unit", "mm-t-s"]) == 0
    text = capsys.readouterr().out
    assert "material of front: Steel; E = 210 GPa; ν = 0.3; ρ = 7850 kg/m³; α = 1.2e-05/K\n" in text
    assert main(["info", deck, "--unit", "mm"]) == 0
    assert "gives only the length" in capsys.readouterr().out
    (folder / "bare.inp").write_text(abaqus(""))
    assert main(["reduce", str(folder / "bare.inp"), "--interface", "left"]) == 1
    assert "--material is missing, and" in capsys.readouterr().err
