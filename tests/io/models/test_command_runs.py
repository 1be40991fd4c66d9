"""`dolfinx-mbd check` and `run`: constraints, periodic motions and errors of the same file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.cli import main
from dolfinx_mbd.io.models import ModelFileError, read_model, schema

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="files of one process")

FOUR_BAR = """\
model: 1
parameters: {a: 100mm, b: 260mm}
bodies:
  ground: {frames: {A: [0, 0, 0], D: [b, 0, 0]}}
  crank:
    {type: cylinder, radius: 8mm, length: a, axis: 0, density: 7850, position: [0, a/2, 0],
     rotation: [0, 0, 90deg], frames: {A: [-a/2, 0, 0], B: [a/2, 0, 0]}}
  coupler:
    {type: cylinder, radius: 6mm, length: b, axis: 0, density: 7850, position: [b/2, a, 0],
     frames: {B: [-b/2, 0, 0], C: [b/2, 0, 0]}}
  rocker:
    {type: cylinder, radius: 6mm, length: a, axis: 0, density: 7850, position: [b, a/2, 0],
     rotation: [0, 0, 90deg], frames: {D: [-a/2, 0, 0], C: [a/2, 0, 0]}}
joints:
  A: {type: revolute, first: ground.A, second: crank.A}
  B: {type: revolute, first: crank.B, second: coupler.B}
  C: {type: revolute, first: coupler.C, second: rocker.C}
  D: {type: revolute, first: ground.D, second: rocker.D}
gravity: [0, -9.81, 0]
"""

SHAKEN = """\
model: 1
parameters: {w: 9, c: 0.6}
gravity: [0, -9.81, 0]
bodies:
  ground: {frames: {pin: [0, 0, 0]}}
  bob: {type: rigid, mass: 2kg, inertia: [0.01, 0.01, 0.01], frames: {pin: [0, 30cm, 0]},
        position: [0, -30cm, 0]}
joints:
  pin: {type: revolute, first: ground.pin, second: bob.pin}
loads:
  drive: {type: joint_load, joint: pin, motion: rotation, value: 2*cos(w*t) - c*rate}
periodic: {period: 2*pi/w, dt: 5ms}
"""


def test_check_says_what_run_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Redundant constraints are errors with a line, or notes if the analysis accepts them."""
    path, out = tmp_path / "bars.yaml", ["--out", str(tmp_path / "out"), "-q"]
    line = FOUR_BAR.splitlines().index(next(t for t in FOUR_BAR.splitlines() if "  D: " in t)) + 1
    place = f"{path}, line {line}: joints.D: redundant in this position"
    for analysis, code in (
        ("simulate: {t_end: 0.02, dt: 2ms}", 1),
        ("simulate: {t_end: 0.02, dt: 2ms, redundant: drop}", 0),
        ("equilibrium: {}", 0),
    ):
        path.write_text(f"{FOUR_BAR}{analysis}\nresults: [csv, picture]\n")
        assert main(["check", str(path)]) == code
        output = capsys.readouterr()
        text = output.err if code else output.out
        assert place in text and ("note: " in text) == (code == 0)
        assert ("redundant: drop" in text) == (code == 1)
        assert main(["run", str(path), *out]) == code
        assert ("redundant" in capsys.readouterr().err) == (code == 1)
    assert (tmp_path / "out" / "mechanism.png").stat().st_size > 1000


def test_check_of_a_mechanism_that_cannot_be_assembled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bars.yaml"
    path.write_text(FOUR_BAR.replace("b: 260mm", "b: 260mm, d: 900mm").replace("D: [b", "D: [d"))
    assert main(["check", str(path)]) == 1
    assert f"{path}, line 1: " in capsys.readouterr().err


@pytest.mark.parametrize("c", [0.6, 1.1])
def test_periodic_motion(tmp_path: Path, c: float, capsys: pytest.CaptureFixture[str]) -> None:
    """The product of the multipliers is exp(-c T / J), with the inertia J about the pin."""
    path, out = tmp_path / "bob.yaml", tmp_path / "out"
    path.write_text(SHAKEN)
    assert main(["run", str(path), "--out", str(out), "--set", f"c={c}", "-q"]) == 0
    assert "stable, period 0.698131701 s" in capsys.readouterr().out
    real, imag = np.loadtxt(out / "multipliers.csv", delimiter=",", skiprows=1).T
    product = np.exp(-c * 2 * np.pi / 9 / (0.01 + 2 * 0.3**2))
    assert np.isclose(np.prod(real + 1j * imag), product, rtol=1e-3)
    table = np.loadtxt(out / "cycle.csv", delimiter=",", skiprows=1)
    assert np.allclose(table[0, 1:4], table[-1, 1:4], atol=1e-8)


def test_rotation_vectors(tmp_path: Path) -> None:
    path = tmp_path / "bob.yaml"
    path.write_text(
        SHAKEN.replace("position: [0", "rotation: [10deg, 0, 0.3 + 5deg], position: [0")
    )
    (body,) = read_model(path).system.mechanical_bodies[1:]
    vector = np.array([np.radians(10), 0.0, 0.3 + np.radians(5)])
    angle = np.linalg.norm(vector)
    expected = [np.cos(angle / 2), *(np.sin(angle / 2) * vector / angle)]
    made = mbd.RigidBody("bob", 1.0, [1.0] * 3, rotation=vector)
    for each in (body, made):
        system = mbd.System([mbd.Ground(), each])
        assert np.allclose(mbd.dynamics.consistent_state(system).q[3:7], expected, atol=1e-15)
    with pytest.raises(InputError, match="rotation vector"):
        mbd.System([mbd.RigidBody("bob", 1.0, [1.0] * 3, rotation=(1.0, 2.0))])


def test_run_prints_a_line_for_each_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bob.yaml"
    path.write_text(SHAKEN.replace("2kg", "2mm").replace("dt: 5ms", "step: 5ms"))
    assert main(["run", str(path)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "dolfinx-mbd: error: 3 errors"
    assert [line.split(":")[0] for line in lines[1:]] == [f"{path}, line {k}" for k in (6, 12, 12)]


def test_completion_in_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion"]) == 0
    script = tmp_path / "completion.bash"
    script.write_text(capsys.readouterr().out)
    (tmp_path / "crank.yaml").touch()
    for words, expected in (
        ("dolfinx-mbd che", "check"),
        ("dolfinx-mbd run --se", "--set"),
        ("dolfinx-mbd check cr", "crank.yaml"),
    ):
        count = len(words.split()) - 1
        text = f"COMP_WORDS=({words}); COMP_CWORD={count}; _dolfinx_mbd; echo ${{COMPREPLY[@]}}"
        command = ["bash", "-c", f"source {script}; {text}"]
        run = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
        )
        assert run.stdout.strip() == expected


# Text: (its replacement, line of the error, message); the parameter w is in rpm.
WRONG = {
    "mass: 2kg": ("mass: w", 6, "expected a value in kg, not in rpm"),
    "dt: 5ms": ("dt: 0", 12, "periodic.dt: expected a positive number; got 0"),
    "model: 1": ("model: 1\ninclude: nothing.yaml", 2, "nothing.yaml' does not exist"),
    "gravity: [0, -9.81, 0]": ("gravity: 9.81", 3, "gravity must be 3 finite numbers"),
    "pin: {type: revolute": ("pin: {type: hinge", 9, "unknown type 'hinge'"),
}


@pytest.mark.parametrize("text", WRONG)
def test_lines_of_errors(tmp_path: Path, text: str) -> None:
    path, (wrong, line, message) = tmp_path / "bob.yaml", WRONG[text]
    path.write_text(SHAKEN.replace("w: 9", "w: 86rpm").replace(text, wrong))
    with pytest.raises(ModelFileError) as error:
        read_model(path)
    assert error.value.errors[0].startswith(f"{path}, line {line}: ")
    assert message in error.value.errors[0]


def test_units_of_parameters_that_are_set(tmp_path: Path) -> None:
    path = tmp_path / "bob.yaml"
    path.write_text(SHAKEN.replace("w: 9", "w: 9, m: 2kg").replace("mass: 2kg", "mass: m"))
    assert read_model(path, {"m": "300 g"}).system.bodies[1].mass == pytest.approx(0.3)
    assert read_model(path, {"m": 0.3}).system.bodies[1].mass == pytest.approx(0.3)
    with pytest.raises(ModelFileError, match="expected a value in kg, not in mm"):
        read_model(path, {"m": "3mm"})


def test_schema_file_is_replaced_with_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "schema.json"
    path.write_text("{}")
    assert main(["schema", "-o", str(path)]) == 1
    assert "add --force" in capsys.readouterr().err and path.read_text() == "{}"
    assert main(["schema", "-o", str(path), "--force"]) == 0
    assert "Model file" in path.read_text()


def test_kinds_in_the_schema() -> None:
    """Editors complete the field `type` by this list."""
    rules = schema()["properties"]["bodies"]["additionalProperties"]
    kinds = [rule["properties"]["type"]["const"] for rule in rules["oneOf"]]
    assert rules["properties"]["type"]["enum"] == kinds and "cylinder" in kinds


OTHER_FORMATS = {
    "bob.toml": """\
model = 1
parameters = {w = 9}
[bodies.ground.frames]
pin = [0, 0, 0]
[bodies."the bob"]
type = "rigid"
mass = "2mm"
inertia = [0.01, 0.01, 0.01]
frames.pin = [0, "30cm", 0]
""",
    "bob.json": """\
{"model": 1,
 "parameters": {"w": 9},
 "bodies": {
  "ground": {"frames": {"pin": [0, 0, 0]}},
  "the bob": {"type": "rigid", "frames": {"pin": [0, "30cm", 0]},

   "mass": "2mm",
   "inertia": [0.01, 0.01, 0.01]}}}
""",
}


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_lines_in_other_formats(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(OTHER_FORMATS[name])
    with pytest.raises(ModelFileError) as error:
        read_model(path)
    (text,) = error.value.errors
    assert text.startswith(f"{path}, line 7: bodies.the bob.mass: ")
    path.write_text(OTHER_FORMATS[name].replace("2mm", "2kg"))
    assert read_model(path).system.bodies[1].mass == 2.0
