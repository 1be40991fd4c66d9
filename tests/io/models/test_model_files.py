"""Model files: reading, errors with lines, writing without loss, and the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError, MissingFileError
from dolfinx_mbd.io.cli import main
from dolfinx_mbd.io.models import (
    Formula,
    ModelFileError,
    TableMotion,
    read_model,
    schema,
    write_model,
)

one_rank = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="a file of one process")
pytestmark = one_rank

CRANK = """\
model: 1
title: slider-crank
parameters: {r: 70mm, l: 3*r, speed: 600rpm}
gravity: [0, -9.81, 0]
bodies:
  ground:
    frames: {bearing: [0, 0, 0], guide: {axes: [1, 0, 0]}}
  crank:
    type: rigid
    mass: 500 g
    inertia: [1e-3, 1e-3, 1e-3]
    frames: {axle: [0, 0, 0], pin: [r, 0, 0]}
  rod:
    type: cylinder
    radius: 5mm
    length: l
    axis: 0
    density: 7850 kg/m3
    frames: {big: [-l/2, 0, 0], small: [l/2, 0, 0]}
    position: [r + l/2, 0, 0]
  piston:
    type: box
    size: [5cm, 5cm, 5cm]
    mass: 0.3
    frames: {pin: [0, 0, 0], guide: {axes: [1, 0, 0]}}
    position: [r + l, 0, 0]
joints:
  main: {type: revolute, first: ground.bearing, second: crank.axle}
  crank pin: {type: revolute, first: crank.pin, second: rod.big}
  piston pin: {type: point_on_line, first: rod.small, second: piston.pin}
  slide: {type: prismatic, first: ground.guide, second: piston.guide}
drivers:
  drive: {joint: main, motion: {speed: speed}}
loads:
  gas: {type: joint_load, joint: slide, motion: displacement, value: -100*sin(speed*t)^2}
  pull: {type: spring_damper, first: ground.bearing, second: piston.pin, stiffness: 2 kN/m}
  drag: {type: force, frame: piston.pin, value: [-3*vx, 0, 0 N]}
simulate: {t_end: 0.05, dt: 5e-4}
"""


def written(folder: Path, text: str, name: str = "model.yaml") -> Path:
    """Return the path of a file with a text."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def crank(speed: float = 20 * np.pi) -> mbd.System:
    """Return the mechanism of the file, from a script."""
    r, length = 0.07, 0.21
    ground = mbd.Ground({"bearing": mbd.Frame(), "guide": mbd.Frame(axes=(1, 0, 0))})
    frames = {"axle": mbd.Frame(), "pin": mbd.Frame((r, 0, 0))}
    arm = mbd.RigidBody("crank", 0.5, [1e-3] * 3, frames=frames)
    frames = {"big": mbd.Frame((-length / 2, 0, 0)), "small": mbd.Frame((length / 2, 0, 0))}
    place: dict[str, Any] = {"frames": frames, "position": (r + length / 2, 0, 0)}
    rod = mbd.RigidBody.cylinder("rod", 5e-3, length, axis=0, density=7850.0, **place)
    frames = {"pin": mbd.Frame(), "guide": mbd.Frame(axes=(1, 0, 0))}
    piston = mbd.RigidBody.box(
        "piston", (0.05, 0.05, 0.05), mass=0.3, frames=frames, position=(r + length, 0, 0)
    )
    joints = [
        mbd.revolute("main", ground.frame("bearing"), arm.frame("axle")),
        mbd.revolute("crank pin", arm.frame("pin"), rod.frame("big")),
        mbd.point_on_line("piston pin", rod.frame("small"), piston.frame("pin")),
        mbd.prismatic("slide", ground.frame("guide"), piston.frame("guide")),
    ]
    drive = mbd.Driver("drive", "main", mbd.constant_speed(speed))
    loads = [
        mbd.JointLoad(
            "gas", "slide", "displacement", lambda t, s, rate: -100 * np.sin(speed * t) ** 2
        ),
        mbd.SpringDamper("pull", ground.frame("bearing"), piston.frame("pin"), 2e3),
        mbd.force("drag", piston.frame("pin"), lambda t, motion: (-3 * motion.velocity[0], 0, 0)),
    ]
    bodies = [ground, arm, rod, piston]
    return mbd.System(bodies, joints, drivers=[drive], loads=loads, gravity=(0, -9.81, 0))


@pytest.mark.parametrize("speed", ["600rpm", "-40"])
def test_same_motion_as_from_a_script(tmp_path: Path, speed: str) -> None:
    model = read_model(written(tmp_path, CRANK), {"speed": speed})
    reference = crank(model.parameters["speed"])
    options: Any = model.analyses["simulate"]
    run, reference_run = (mbd.simulate(system, **options) for system in (model.system, reference))
    scale = np.abs(reference_run.joint("main").force).max()
    assert scale > 100
    for name in ("main", "slide"):  # these forces depend on the motion of all bodies
        error = np.abs(run.joint(name).force - reference_run.joint(name).force).max()
        assert error < 1e-9 * scale
    assert model.title == "slider-crank"


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_written_model_is_the_same(tmp_path: Path, suffix: str) -> None:
    model = read_model(written(tmp_path, CRANK))
    path = write_model(
        model.system, tmp_path / f"copy{suffix}", simulate={"t_end": 0.02, "dt": 1e-3}
    )
    copy = read_model(path)
    runs = [mbd.simulate(s, t_end=0.02, dt=1e-3) for s in (model.system, copy.system)]
    for (name, values), (copied_name, copied) in zip(
        *(r.histories().items() for r in runs), strict=True
    ):
        assert name == copied_name
        np.testing.assert_array_equal(values, copied)
    path_of_copy = write_model(
        copy.system, tmp_path / f"again{suffix}", simulate={"t_end": 0.02, "dt": 1e-3}
    )
    assert path_of_copy.read_text() == path.read_text()


FRAMES = "frames: {a: [0, 0, 0], b: [0.1, 0, 0]}"
PART = f"""\
model: 1
bodies:
  ground: {{frames: {{o: [0, 0, 0], p: {{point: [0, 0, 0.2], axes: [1, 0, 0]}}}}}}
  bob: {{type: rigid, mass: 2, inertia: [0.1, 0.1, 0.1], {FRAMES}}}
  arm: {{type: rigid, mass: 1, inertia: [0.1, 0.1, 0.1], {FRAMES}, position: [0.1, 0, 0]}}
joints:
  hinge: {{type: revolute, first: ground.o, second: bob.a}}
  other: {{type: revolute, first: bob.b, second: arm.a, rate: 3 rad/s}}
"""
LAW = "{stiffness: 1e7, damping: 0.1, friction: 0.1}"
ENTRIES = {
    "joint_spring": "joint: hinge, stiffness: 5 N m/rad, damping: 0.1, free: 10deg",
    "joint_spring with a law": "type: joint_spring, joint: hinge, law: 5*s + 3*s^3 + 0.1*rate",
    "joint_friction": "joint: hinge, limit: 0.3, rate: 0.1",
    "joint_stop": "joint: hinge, law: {stiffness: 100, exponent: 1}, lower: -30deg, upper: 1",
    "joint_load": "joint: other, motion: rotation, value: 2 - 0.1*rate, "
    "of: {joint: hinge, motion: rotation}",
    "spring_damper": "first: ground.p, second: arm.b, law: 100*(length - 0.1) + rate",
    "bushing": "first: ground.o, second: arm.a, stiffness: [1e4, 1e4, 1e4, 10, 10, 10]",
    "torque": "frame: arm.b, value: [0, 0, 0.3*sin(9*t)], axes: frame",
    "sphere_contact": f"first: bob.b, second: arm.b, radii: [1cm, 1cm], law: {LAW}",
    "plane_contact": f"first: ground.p, second: arm.b, radius: 1mm, law: {LAW}",
    "short_bearing": "first: ground.o, second: bob.a, radius: 2cm, length: 1cm, clearance: 50um, "
    "viscosity: 0.01 Pa s, asperities: {roughness: 1um}",
    "finite_bearing": "first: ground.o, second: bob.a, radius: 2cm, length: 1cm, clearance: 50um, "
    "oil: {viscosity: 0.01}, shape: [24, 6], supply: [{pressure: 2 bar, arc: 20deg}]",
}


@pytest.mark.parametrize("kind", ENTRIES)
def test_loads_are_read_and_written(tmp_path: Path, kind: str) -> None:
    entry = ENTRIES[kind] if ENTRIES[kind].startswith("type") else f"type: {kind}, {ENTRIES[kind]}"
    model = read_model(written(tmp_path, f"{PART}loads:\n  it: {{{entry}}}\n"))
    copy = read_model(write_model(model.system, tmp_path / "copy.yaml"))
    options: Any = {"t_end": 0.01, "dt": 5e-4}
    run, run_of_copy = (mbd.simulate(system, **options) for system in (model.system, copy.system))
    assert run.compare(run_of_copy) is not None
    for name, difference in run.compare(run_of_copy).items():
        assert difference.largest == 0.0, name


CLEARANCES = {
    "clearance": f"radial: 50um, radius: 1cm, law: {LAW}",
    "short_bearing": "radius: 2cm, length: 1cm, clearance: 50um, viscosity: 0.01",
}


@pytest.mark.parametrize("kind", CLEARANCES)
def test_joints_with_clearance(tmp_path: Path, kind: str) -> None:
    text = PART.replace(
        "second: bob.a}", f"second: bob.a, clearance: {{type: {kind}, {CLEARANCES[kind]}}}}}"
    )
    model = read_model(written(tmp_path, text))
    assert len(model.system.loads) == 1
    copy = read_model(write_model(model.system, tmp_path / "copy.yaml"))
    assert [type(load) for load in copy.system.loads] == [type(load) for load in model.system.loads]
    assert copy.system.joint("hinge").rows == model.system.joint("hinge").rows


SPECIAL = {
    "screw": "pitch: 2mm, rate: 3",
    "spherical": "",
    "universal": "",
    "constant_velocity": "",
    "distance": "length: 10cm",
    "point_on_plane": "",
}


@pytest.mark.parametrize("kind", SPECIAL)
def test_joints_are_read_and_written(tmp_path: Path, kind: str) -> None:
    fields = f", {SPECIAL[kind]}" if SPECIAL[kind] else ""
    second = "arm.b" if kind == "distance" else "arm.a"
    text = PART.replace(
        "other: {type: revolute, first: bob.b, second: arm.a, rate: 3 rad/s}",
        f"other: {{type: {kind}, first: bob.b, second: {second}{fields}}}",
    )
    joint = read_model(written(tmp_path, text)).system.joint("other")
    copy = read_model(
        write_model(read_model(tmp_path / "model.yaml").system, tmp_path / "copy.yaml")
    )
    assert copy.system.joint("other") == joint
    assert joint.kind.replace("-", "_") == kind or joint.relation is not None


def test_flexible_bodies_are_files_beside_the_model(tmp_path: Path) -> None:
    rod = mbd.mechanisms.rigid_rod(length=0.14, mass=0.5)
    engine = mbd.mechanisms.slider_crank(rod, speed=30.0)
    path = write_model(engine, tmp_path / "sub" / "engine.yaml")
    assert [p.name for p in path.parent.glob("*.npz")] == ["engine-rod-1.npz"]
    copy = read_model(path).system
    run, run_of_copy = (mbd.simulate(system, t_end=0.01, dt=1e-3) for system in (engine, copy))
    assert max(d.largest for d in run.compare(run_of_copy).values()) == 0.0


def test_functions_of_scripts_are_named(tmp_path: Path) -> None:
    system = crank()
    with pytest.raises(InputError, match=r"loads\.gas\.value: the function .* cannot be written"):
        write_model(system, tmp_path / "crank.yaml")
    assert not (tmp_path / "crank.yaml").exists()


def test_motions_of_scripts_become_tables(tmp_path: Path) -> None:
    ground = mbd.Ground({"o": mbd.Frame()})
    bob = mbd.RigidBody("bob", 1.0, [0.1] * 3, frames={"a": mbd.Frame()})
    hinge = mbd.revolute("hinge", ground.frame("o"), bob.frame("a"))
    motion = mbd.mechanism.differentiated(lambda t: 0.3 * np.sin(7 * t))
    system = mbd.System([ground, bob], [hinge], drivers=[mbd.Driver("drive", "hinge", motion)])
    with pytest.raises(InputError, match="pass times="):
        write_model(system, tmp_path / "bob.yaml")
    times = np.linspace(0, 1, 201)
    copy = read_model(write_model(system, tmp_path / "bob.yaml", times=times)).system
    table = copy.drivers[0].motion
    assert isinstance(table, TableMotion)
    for t in (0.0, 0.1234, 1.0):
        np.testing.assert_allclose(table(t), motion(t), rtol=1e-6, atol=1e-6)


BAD = """\
model: 1
bodies:
  ground: {frames: {o: [0, 0, 0]}}
  bob:
    type: rigid
    mass: 5mm
    inertia: [1, 1, x]
    colour: red
  arm: {type: box, size: [1, 1], mass: 1}
joints:
  hinge: {type: revolut, first: ground.o, second: bob.o}
  lid: {type: revolute, first: ground, rate: 3Hz}
drivers:
  drive: {joint: hinge, motion: "__import__('os').system('true')"}
simulate: {t_end: 1, dt: 0.1, tend: 3}
"""
# line and entry of each error
BAD_PLACES = [
    *((8, "bodies.bob.colour"), (6, "bodies.bob.mass"), (7, "bodies.bob.inertia.2")),
    *((9, "bodies.arm.size"), (11, "joints.hinge.type"), (12, "joints.lid")),
    *((12, "joints.lid.first"), (12, "joints.lid.rate"), (14, "drivers.drive.motion")),
    (15, "simulate.tend"),
]


def test_all_errors_have_line_and_entry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, BAD)
    with pytest.raises(ModelFileError) as error:
        read_model(path)
    begins = [f"{path}, line {line}: {place}: " for line, place in BAD_PLACES]
    assert len(error.value.errors) == len(begins)
    for text, begin in zip(error.value.errors, begins, strict=True):
        assert text.startswith(begin)
    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().err.count(", line ") == len(begins)


HEAD = "model: 1\nbodies: {ground: {}}\n"
LOAD = "loads: {f: {type: joint_load, joint: hinge, motion: rotation, value: VALUE}}\n"
CASES = {
    "model: 1\n": "'bodies' or 'mechanism' is missing",
    "bodies: {}\n": "expected 'model: 1'",
    "model: 2\nbodies: {ground: {}}\n": "the version of the format; got 2",
    "model: 1\nbodies: {ground: {}, ground: {}}\n": "line 2: 'ground' occurs twice",
    "model: 1\nbody: {ground: {}}\n": "line 2: body: unknown section 'body'",
    "model: 1\nbodies: [1, 2]\n": "expected entries by name",
    "model: 1\nbodies: {a: 3}\n": "bodies.a: expected fields by name",
    "- 1\n": "a model file consists of sections",
    "a: [\n": "line 2",
    HEAD + "parameters: {a: b, b: a}\n": "depend on each other in a circle",
    HEAD + "parameters: {a: 2*b}\n": "parameters.a: '2*b': unknown name 'b'",
    HEAD + "parameters: {pi: 3}\n": "parameters.pi: 'pi' has another meaning",
    HEAD + "parameters: {min: 3}\n": "parameters.min: 'min' has another meaning",
    HEAD + "parameters: {if: 3}\n": "parameters.if: 'if' has another meaning",
    PART + LOAD.replace("VALUE", "2*rate, states: [0]"): "an empty list: the law has no rates",
    "model: 1\nbodies: {ground: {frames: {o: 3mm}}}\n": "expected a point",
    PART + "sweep: {x: [1]}\n": "not a parameter",
    PART + "results: [pdf]\n": "expected names among csv",
    PART + "results: [[csv]]\n": "expected names among csv",
    "model: 1\nbodies: {a: {type: [box]}}\n": "bodies.a.type: unknown type ['box']",
    PART.replace("type: revolute", "type: [revolute]"): "joints.hinge.type: unknown type",
    PART + "drivers: {d: {joint: [hinge], motion: 't'}}\n": "drivers.d.joint: expected a text",
    PART
    + "loads: {f: {type: force, frame: bob.a, value: {type: [gas]}}}\n": "unknown type ['gas']",
    PART + "mechanism: {type: slider_crank}\n": "a predefined mechanism has no section 'bodies'",
    PART.replace(
        "first: ground.o, second: bob.a", "first: ground.o, second: bob.q"
    ): "joints.hinge",
}


def test_variables_hide_parameters(tmp_path: Path) -> None:
    """A parameter with the name of a variable is used only where the variable does not exist."""
    laws = {"2*t": 3.0, "rate": 0.7, "r*t": 0.75, "s": 0.2, "2*r": 1.0}
    for value, expected in laws.items():
        text = PART.replace("mass: 2", "mass: 2*s") + LOAD.replace("VALUE", value)
        parameters = "parameters: {s: 3, rate: 7, t: 11, r: 0.5}\n"
        system = read_model(written(tmp_path, text + parameters)).system
        assert system.body("bob").mass == 6.0
        assert system.loads[0].magnitude(1.5, 0.2, 0.7) == expected


@pytest.mark.parametrize("text", CASES)
def test_invalid_files(tmp_path: Path, text: str) -> None:
    with pytest.raises(ModelFileError) as error:
        read_model(written(tmp_path, text))
    assert CASES[text] in str(error.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        read_model(tmp_path / "none.yaml")
    with pytest.raises(InputError, match=r"ends with \.yaml"):
        read_model(written(tmp_path, "", "model.txt"))
    with pytest.raises(ModelFileError, match="includes itself"):
        read_model(written(tmp_path, "include: model.yaml\nmodel: 1\n"))
    path = tmp_path / "latin.yaml"
    path.write_bytes("model: 1 # Größe".encode("latin-1"))
    with pytest.raises(ModelFileError, match="UTF-8"):
        read_model(path)


def test_aliases_cannot_multiply_without_limit(tmp_path: Path) -> None:
    rows = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    rows += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 9)]
    with pytest.raises(ModelFileError, match="too many"):
        read_model(written(tmp_path, "\n".join(rows)))


def test_included_files(tmp_path: Path) -> None:
    head, bodies = PART.split("joints:")
    (tmp_path / "parts").mkdir()
    written(tmp_path / "parts", head.removeprefix("model: 1\n"), "bodies.yaml")
    path = written(tmp_path, f"model: 1\ninclude: parts/bodies.yaml\njoints:{bodies}")
    assert [body.name for body in read_model(path).system.bodies] == ["ground", "bob", "arm"]
    written(
        tmp_path / "parts",
        head.removeprefix("model: 1\n").replace("mass: 2", "mass: two"),
        "bodies.yaml",
    )
    with pytest.raises(ModelFileError, match=r"bodies\.yaml, line 3: bodies\.bob\.mass"):
        read_model(path)
    text = (
        f"model: 1\ninclude: parts/bodies.yaml\nbodies: {{bob: {{type: rigid}}}}\njoints:{bodies}"
    )
    with pytest.raises(ModelFileError, match="bob also occurs in"):
        read_model(written(tmp_path, text))


def test_toml_and_json_are_equal(tmp_path: Path) -> None:
    import yaml

    data = yaml.safe_load(PART)
    toml = """\
model = 1
[bodies.ground.frames]
o = [0, 0, 0]
p = {point = [0, 0, 0.2], axes = [1, 0, 0]}
[bodies.bob]
type = "rigid"
mass = 2
inertia = [0.1, 0.1, 0.1]
frames = {a = [0, 0, 0], b = [0.1, 0, 0]}
[bodies.arm]
type = "rigid"
mass = "1000 g"
inertia = [0.1, 0.1, 0.1]
frames = {a = [0, 0, 0], b = [0.1, 0, 0]}
position = ["10cm", 0, 0]
[joints.hinge]
type = "revolute"
first = "ground.o"
second = "bob.a"
[joints.other]
type = "revolute"
first = "bob.b"
second = "arm.a"
rate = 3
"""
    paths = [
        written(tmp_path, toml, "model.toml"),
        written(tmp_path, json.dumps(data), "model.json"),
        written(tmp_path, PART),
    ]
    texts = [
        write_model(read_model(p).system, tmp_path / f"c{k}.yaml").read_text()
        for k, p in enumerate(paths)
    ]
    assert texts[0] == texts[1] == texts[2]


def test_schema_accepts_what_is_read(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    import yaml

    rules = schema()
    jsonschema.Draft202012Validator.check_schema(rules)
    validator = jsonschema.Draft202012Validator(rules)
    loads = {
        kind: yaml.safe_load("{" + (e if e.startswith("type") else f"type: {kind}, {e}") + "}")
        for kind, e in ENTRIES.items()
    }
    for text in (CRANK, PART):
        data = yaml.safe_load(text)
        assert [e.message for e in validator.iter_errors(data)] == []
    data = {**yaml.safe_load(PART), "loads": loads}
    assert [e.message for e in validator.iter_errors(data)] == []
    for change in ({"modle": 1}, {"bodies": {"a": {"type": "rigid"}}}, {"simulate": {"tend": 1}}):
        assert list(validator.iter_errors({**yaml.safe_load(PART), **change}))
    copy = write_model(read_model(written(tmp_path, CRANK)).system, tmp_path / "copy.yaml")
    assert [e.message for e in validator.iter_errors(yaml.safe_load(copy.read_text()))] == []


def test_run_writes_the_requested_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, CRANK + "results: [csv, page]\n")
    folder = tmp_path / "out"
    assert main(["run", str(path), "--out", str(folder), "-q", "--set", "speed=300rpm"]) == 0
    assert "0.05 s, 101 saved instants" in capsys.readouterr().out
    head, *rows = (folder / "run.csv").read_text().splitlines()
    column = head.split(",").index("drive.rotation [rad]")
    assert float(rows[-1].split(",")[column]) == pytest.approx(10 * np.pi * 0.05, rel=1e-9)
    assert (folder / "run.html").stat().st_size > 1e5
    assert main(["run", str(path), "--set", "sped=1"]) == 1
    assert "no parameter 'sped'; it has r, l, speed" in capsys.readouterr().err


def test_run_finds_equilibrium_and_poles(tmp_path: Path) -> None:
    """A pendulum at the angle φ to the x axis, with a torsion spring k, is compared with theory.

    In equilibrium k φ = −m g l cos φ, and ω² = (k − m g l sin φ)/J, with J about the pin.
    """
    text = """\
model: 1
gravity: [0, -9.81, 0]
bodies:
  ground: {frames: {o: [0, 0, 0]}}
  bob:
    type: rigid
    mass: 2
    inertia: [0.01, 0.01, 0.01]
    centre: [0.1, 0, 0]
    frames: {o: [0, 0, 0]}
joints:
  pin: {type: revolute, first: ground.o, second: bob.o}
loads:
  spring: {type: joint_spring, joint: pin, stiffness: 3 N m/rad}
equilibrium: {}
linearize: {}
"""
    assert main(["run", str(written(tmp_path, text)), "--out", str(tmp_path / "out"), "-q"]) == 0
    row = (tmp_path / "out" / "equilibrium.csv").read_text().splitlines()[1].split(",")
    # The columns 4 and 7 are the scalar and the z component of the quaternion.
    angle = 2 * np.arctan2(float(row[7]), float(row[4]))
    moment = 2 * 9.81 * 0.1
    assert 3 * angle + moment * np.cos(angle) == pytest.approx(0, abs=1e-8)
    pole = float((tmp_path / "out" / "poles.csv").read_text().splitlines()[1].split(",")[1])
    stiffness = 3 - moment * np.sin(angle)
    assert pole**2 == pytest.approx(stiffness / (0.01 + 2 * 0.1**2), rel=1e-6)


@pytest.mark.slow
def test_study_of_a_model(tmp_path: Path) -> None:
    import xarray

    text = CRANK.replace("dt: 5e-4}", "dt: 5e-4, outputs: [main.force]}")
    path = written(tmp_path, text + "sweep: {speed: [300rpm, 600rpm]}\n")
    assert main(["run", str(path), "--out", str(tmp_path / "o"), "-q", "--workers", "1"]) == 0
    with xarray.open_dataset(tmp_path / "o" / "sweep.nc") as data:
        np.testing.assert_allclose(data["speed"], [10 * np.pi, 20 * np.pi])
        assert list(data["case_status"]) == ["done", "done"]


@pytest.mark.slow
def test_bodies_are_reduced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rod = (
        "{rod: {size: 14mm}, material: steel, interfaces: [big_end, small_end], num_modes: NUMBER}"
    )
    text = f"model: 1\nmechanism: {{type: slider_crank, speed: 3000rpm, rod: {rod}}}\n"
    systems = []
    for number, count in (("4", 1), ("4", 1), ("5", 2)):
        systems.append(read_model(written(tmp_path, text.replace("NUMBER", number))).system)
        assert len(list((tmp_path / "cache" / "dolfinx_mbd-bodies").glob("*.npz"))) == count
    copy = write_model(systems[2], tmp_path / "copy.yaml")
    run, run_of_copy = (
        mbd.simulate(system, t_end=1e-3, dt=2e-5)
        for system in (systems[2], read_model(copy).system)
    )
    assert max(d.largest for d in run.compare(run_of_copy).values()) == 0.0


def test_formula_in_a_script() -> None:
    formula = Formula("a*t + s", ("t", "s"), {"a": 2.0, "unused": 1.0})
    assert formula(3.0, 1.0) == 7.0
    assert formula.constants == {"a": 2.0}
    with pytest.raises(InputError, match="needs the arguments t, s"):
        formula(1.0)


def test_files_of_the_page(tmp_path: Path) -> None:
    """The files of the how-to page are valid, and the first one runs."""
    jsonschema = pytest.importorskip("jsonschema")
    import yaml

    page = Path(__file__).parents[3] / "docs" / "howto" / "model_files.md"
    texts = [part.split("```")[0] for part in page.read_text().split("```yaml\n")[1:]]
    validator = jsonschema.Draft202012Validator(schema())
    for text in texts:
        assert [e.message for e in validator.iter_errors(yaml.safe_load(text))] == []
    assert len(texts) == 6
    path = written(tmp_path, texts[0].replace("t_end: 0.1", "t_end: 0.01"))
    assert main(["run", str(path), "--out", str(tmp_path / "out"), "-q"]) == 0
