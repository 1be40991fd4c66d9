"""Mechanisms as units in C: FMPy validates them, they equal `Simulator`, and need no Python."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics.stepping import convergence, corrections, integrators
from dolfinx_mbd.errors import InputError, MissingFileError, SolverError
from dolfinx_mbd.io.cli import main
from dolfinx_mbd.io.export.compiled import export_compiled_fmu
from dolfinx_mbd.io.export.compiled.translation import to_c
from dolfinx_mbd.kernels.mechanism_steps import steps
from tests.io.export.processes import run
from tests.models.rods import rod
from tests.structures.mesh_bodies.models import box, ends

pytest.importorskip("fmpy")
pytest.importorskip("numba")
pytestmark = [
    pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one process writes the unit"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
]


def slow(test: Any) -> Any:
    """Mark a test that compiles; the first one compiles the steps, which takes a minute or more."""
    return pytest.mark.slow(pytest.mark.timeout(1200)(test))


DT, STEPS = 5e-4, 80
INPUTS = ["motor", "push.z", "strut.stiffness"]
OUTPUTS = ["pin.rotation", "arm.velocity.y", "tip.position.y", "tip.omega.z", "pin.force.y",
           "pin.rotation_rate", "ball.displacement.x"]  # fmt: skip


def simulator(**options: object) -> mbd.Simulator:
    """Return a simulator of a flexible arm with a rigid tip, and loads of all kinds with C code."""
    ground = mbd.Ground({"pin": mbd.Frame((-0.5, 0, 0)), "wall": mbd.Frame((0.3, 0.8, 0.2))})
    arm = mbd.FlexibleBody("arm", rod())
    frames = {"ball": mbd.Frame(), "end": mbd.Frame((0.3, 0, 0.1))}
    tip = mbd.RigidBody(
        "tip", 0.4, [0.01, 0.02, 0.03], (0.2, 0, 0), frames=frames, position=(0.5, 0, 0)
    )
    joints = [
        mbd.revolute("pin", ground.frame("pin"), arm.frame("left")),
        mbd.spherical("ball", arm.frame("right"), tip.frame("ball")),
    ]
    loads = [
        mbd.JointLoad("motor", "pin", "rotation", 0.5),
        mbd.JointSpring("spring", "pin", stiffness=40.0, damping=0.3),
        mbd.SpringDamper("strut", ground.frame("wall"), tip.frame("end"), 200.0, 1.5),
        mbd.force("push", tip.frame("end"), (0, 0, 2.0), axes="frame"),
        mbd.torque("twist", tip.frame("end"), (0, 0.1, 0.05)),
    ]
    system = mbd.System([ground, arm, tip], joints, loads=loads, gravity=(0, -9.81, 0))
    options = {"dt": DT, "inputs": INPUTS, "outputs": OUTPUTS} | options
    return mbd.Simulator(system, **options)  # type: ignore[arg-type]


def values(k: int) -> list[float]:
    """Return the inputs of step k: a moment (N m), a force (N) and a stiffness (N/m)."""
    return [2.0 * float(np.sin(0.1 * k)), 2.0 if k < 30 else -4.0, 200.0 if k < 50 else 300.0]


@pytest.fixture(scope="module", params=[2, 3], ids=["FMI 2", "FMI 3"])
def unit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an FMU of the arm, in a folder with a space in its name."""
    path = tmp_path_factory.mktemp("a folder") / "arm.fmu"
    return export_compiled_fmu(simulator(), path, fmi=request.param)


# Code that other processes run first: it starts the unit as `fmu`; `step` returns its outputs.
SLAVE = f"""
import fmpy
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
folder = fmpy.extract(unit)
description = fmpy.read_model_description(folder)
second = description.fmiVersion == "2.0"
def start(name):
    fmu = (FMU2Slave if second else FMU3Slave)(guid=description.guid, unzipDirectory=folder,
        instanceName=name, modelIdentifier=description.coSimulation.modelIdentifier)
    fmu.instantiate()
    fmu.put, fmu.take = (fmu.setReal, fmu.getReal) if second else (fmu.setFloat64, fmu.getFloat64)
    if second:
        fmu.setupExperiment()
    else:
        fmu.getFMUstate, fmu.setFMUstate = fmu.getFMUState, fmu.setFMUState
        fmu.serializeFMUstate = fmu.serializeFMUState
        fmu.deSerializeFMUstate = fmu.deserializeFMUState
    fmu.enterInitializationMode()
    fmu.exitInitializationMode()
    return fmu
names = [v.name for v in description.modelVariables if v.causality == "output"]
inputs = [v.valueReference for v in description.modelVariables if v.causality == "input"]
def step(fmu, k, u, size=1, dt={DT}):
    fmu.put(inputs, u)
    fmu.doStep(k * dt, size * dt)
    return list(fmu.take([len(inputs) + i for i in range(len(names))]))
u = {[values(k) for k in range(STEPS)]}
fmu = start("one")
"""


@slow
def test_fmpy_validates_the_unit(unit: Path) -> None:
    code = "from fmpy.validation import validate_fmu\nresult = list(validate_fmu(unit))"
    assert run(code, unit) == []


@slow
def test_the_steps_equal_those_of_the_simulator(unit: Path) -> None:
    """The forces of joints differ by the round-off of positions divided by dt²."""
    rows = np.array(run(f"{SLAVE}result = [step(fmu, k, u[k]) for k in range({STEPS})]", unit))
    model, expected = simulator(), []
    for k in range(STEPS):
        model.step(dict(zip(INPUTS, values(k), strict=True)))
        expected.append([*model.outputs.values()])
    error = np.abs(rows - expected).max(axis=0)
    size = np.abs(expected).max(axis=0)
    force = OUTPUTS.index("pin.force.y")
    assert error[force] <= 1e-7 * size[force]
    small = OUTPUTS.index("ball.displacement.x")  # zero apart from round-off
    assert error[small] <= 1e-12
    others = [k for k in range(len(OUTPUTS)) if k not in (force, small)]
    assert (error[others] <= 1e-10 * size[others]).all()


@slow
def test_states_resets_and_instances(unit: Path) -> None:
    code = f"""{SLAVE}
first = [step(fmu, k, u[k]) for k in range(20)]
state = fmu.getFMUstate()
data = fmu.serializeFMUstate(state)
other = start("two")
rest = [step(fmu, k, u[k]) for k in range(20, 40)]
again = [step(other, k, u[k]) for k in range(20)]
fmu.setFMUstate(state)
result = [first == again, rest == [step(fmu, k, u[k]) for k in range(20, 40)]]
other.setFMUstate(other.deSerializeFMUstate(data))
result.append(rest == [step(other, k, u[k]) for k in range(20, 40)])
fmu.reset()
if second:
    fmu.setupExperiment()
fmu.enterInitializationMode()
fmu.exitInitializationMode()
result.append(first == [step(fmu, k, u[k]) for k in range(20)])
before = list(fmu.take([3, 4]))
for size, wrong in ((1.5, u[0]), (1, [float("nan"), 0.0, 0.0]), (1, [0.0, 0.0, -1.0])):
    try:
        step(fmu, 20, wrong, size)
    except Exception as error:
        result.append(error.status)
result.append(before == list(fmu.take([3, 4])))
result.append(rest[0] == step(fmu, 20, u[20]))
"""
    # The references 3 and 4 are the first two outputs; the status 2 is "discard".
    assert run(code, unit) == [True, True, True, True, 2, 2, 2, True, True]


# A program that runs 10 steps and prints the first output, whose reference is 3.
DRIVER = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **arguments)
{
    void *library = dlopen(arguments[1], RTLD_NOW);
    void *(*create)(const char *, int, const char *, const char *, const void *, int, int);
    int (*step)(void *, double, double, int);
    int (*get)(void *, const unsigned[], size_t, double[]);
    *(void **)&create = dlsym(library, "fmi2Instantiate");
    *(void **)&step = dlsym(library, "fmi2DoStep");
    *(void **)&get = dlsym(library, "fmi2GetReal");
    void *unit = create("arm", 1, arguments[2], "", 0, 0, 0);
    unsigned reference = 3;
    double value = 0.0;
    int status = step(unit, 0.0, 10 * 5e-4, 0);
    get(unit, &reference, 1, &value);
    printf("%d %.17g\n", status, value);
    return count != 3;
}
"""


@slow
def test_the_unit_needs_no_python(tmp_path: Path) -> None:
    """A program in C runs it; the library depends on the C library only."""
    fmpy = pytest.importorskip("fmpy")
    path = export_compiled_fmu(simulator(), tmp_path / "arm.fmu")
    folder = fmpy.extract(str(path), str(tmp_path / "unit"))
    (library,) = Path(folder).glob("binaries/*/arm.so")
    needed = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    assert "python" not in needed.lower() and len(needed.splitlines()) <= 5
    (tmp_path / "driver.c").write_text(DRIVER)
    program = str(tmp_path / "driver")
    subprocess.run(["cc", tmp_path / "driver.c", "-o", program, "-ldl"], check=True)
    guid = fmpy.read_model_description(folder).guid
    result = subprocess.run(
        [program, library, guid], capture_output=True, text=True, check=True, env={}
    )
    status, value = result.stdout.split()
    model = simulator()
    for _ in range(10):
        model.step()
    assert status == "0" and float(value) == pytest.approx(model.outputs[OUTPUTS[0]], rel=1e-11)


@slow
def test_a_binary_from_the_sources_alone(unit: Path, tmp_path: Path) -> None:
    """`cc` compiles the sources in a folder with a space; the new unit moves as the first one."""
    folder = tmp_path / "of a user"
    with zipfile.ZipFile(unit) as archive:
        archive.extractall(folder)
    (main,), (binary,) = (folder / "sources").glob("fmi?.c"), folder.glob("binaries/*/arm.so")
    binary.unlink()
    options = ["-std=c99", "-Wall", "-Werror=implicit", "-O1", "-ffp-contract=off", "-fPIC"]
    command = ["cc", *options, "-shared", main.name, "-o", str(binary), "-lm"]
    subprocess.run(command, cwd=main.parent, check=True, capture_output=True)
    copied = unit.with_name("again.fmu")
    with zipfile.ZipFile(copied, "w") as archive:
        for path in folder.rglob("*"):
            archive.write(path, path.relative_to(folder))
    code = f"{SLAVE}result = [step(fmu, k, u[k]) for k in range(20)]"
    assert run(code, copied) == run(code, unit)


@slow
def test_the_source_compiles_with_a_prefix(unit: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(unit) as archive:
        archive.extractall(tmp_path / "unit")
    (main,) = (tmp_path / "unit" / "sources").glob("fmi?.c")
    prefix = f"-D{main.stem.upper()}_FUNCTION_PREFIX=arm_"
    command = ["cc", "-std=c99", "-O0", "-w", "-c", prefix, main.name]
    subprocess.run(command, cwd=main.parent, check=True)
    assert f"arm_{main.stem}DoStep".encode() in main.with_suffix(".o").read_bytes()


def slider() -> mbd.Simulator:
    """Return a simulator of a block on an inclined guide, with a bar that a driver turns on it.

    A spring and a force act along the guide.
    """
    tilt = mbd.Frame((0, 0, 0), [[0.6, 0, 0.8], [0, 1, 0], [-0.8, 0, 0.6]])
    ground = mbd.Ground({"guide": tilt})
    block = mbd.RigidBody("block", 2.0, [0.1] * 3, frames={"guide": tilt, "pin": mbd.Frame()})
    bar = mbd.RigidBody("a bar", 0.5, [0.01] * 3, (0.2, 0, 0), frames={"pin": mbd.Frame()})
    joints = [
        mbd.prismatic("guide", ground.frame("guide"), block.frame("guide")),
        mbd.revolute("pin", block.frame("pin"), bar.frame("pin")),
    ]
    loads = [
        mbd.JointSpring("coil", "guide", stiffness=300.0, damping=2.0, free=-0.02),
        mbd.JointLoad("pull", "guide", "displacement", 3.0),
    ]
    drivers = [mbd.Driver("turn", "pin", mbd.constant_speed(40.0, angle=0.3))]
    system = mbd.System([ground, block, bar], joints, loads=loads, drivers=drivers,
                        gravity=(0, 0, -9.81))  # fmt: skip
    outputs = ["guide.displacement.z", "guide.displacement_rate.z", "pin.rotation", "turn.moment.z",
               "a bar.omega.z"]  # fmt: skip
    return mbd.Simulator(system, dt=2e-4, inputs=["pull", "coil.free"], outputs=outputs)


def lifted() -> mbd.Simulator:
    """Return a simulator of a spinning body on a slide, whose displacement is an input."""
    ground = mbd.Ground({"slide": mbd.Frame()})
    top = mbd.RigidBody("top", 0.3, [0.01, 0.02, 0.015], (0, 0, 0.1), omega=(1, 20, 3),
                        frames={"pin": mbd.Frame()})  # fmt: skip
    carriage = mbd.RigidBody("carriage", 1.0, [0.1] * 3, frames={"slide": mbd.Frame()})
    joints = [
        mbd.prismatic("slide", ground.frame("slide"), carriage.frame("slide")),
        mbd.spherical("pin", carriage.frame("slide"), top.frame("pin")),
    ]
    drivers = [mbd.Driver("lift", "slide", mbd.constant_speed(0.0), offset=0.0)]
    system = mbd.System([ground, carriage, top], joints, drivers=drivers, gravity=(0, 0, -9.81))
    outputs = ["slide.displacement.z", "top.omega.x", "top.position.z"]
    return mbd.Simulator(system, dt=1e-3, inputs=["lift"], outputs=outputs)


def engine() -> mbd.Simulator:
    """Return a simulator of a three-cylinder engine with flexible rods and without gas."""
    design = mbd.mechanisms.EngineDesign(
        crank_radius=0.2, spacing=0.5, piston_mass=0.3, crank_mass=2.0,
        throw_angles=(0.0, 4 * np.pi / 3, 2 * np.pi / 3),
    )  # fmt: skip
    system = mbd.mechanisms.inline_engine(
        rod(), design, speed=100.0, gas=False, ends=("left", "right")
    )
    outputs = ["piston 2.position.x", "main.rotation", "rod 1.velocity.y"]
    return mbd.Simulator(system, dt=5e-5, outputs=outputs)


@slow
@pytest.mark.filterwarnings("ignore::dolfinx_mbd.errors.PlacementWarning")
@pytest.mark.parametrize(
    ("model", "size", "before"), [(slider, 1, 0), (slider, 5, 30), (lifted, 2, 0), (engine, 10, 7)]
)
def test_other_mechanisms(model: Any, size: int, before: int, tmp_path: Path) -> None:
    """Mechanisms are exported after `before` steps; a communication step has `size` steps."""
    simulation = model()
    for _ in range(before):
        simulation.step()
    path = export_compiled_fmu(simulation, tmp_path / "one.fmu", fmi=2 + size % 2)
    dt, count = simulation.steps.dt, 60 // size
    start = np.array([*simulation.inputs.values()])
    u = [(start + 1e-3 * np.sin(0.5 * k)).tolist() for k in range(count)]
    code = f"{SLAVE}u = {u}\nresult = [step(fmu, k * {size}, u[k], {size}, {dt!r}) "
    rows = np.array(run(f"{code}for k in range({count})]", path))
    expected = []
    for values_of_step in u:
        for _ in range(size):
            simulation.step(dict(zip(simulation.inputs, values_of_step, strict=True)))
        expected.append([*simulation.outputs.values()])
    scale = np.abs(expected).max(axis=0)
    assert (np.abs(rows - expected).max(axis=0) <= 1e-8 * scale).all()


def test_errors_name_all_parts_without_c_code(tmp_path: Path) -> None:
    model = simulator(outputs={"angle": lambda run: run.joint("pin").rotation})
    system = mbd.System(
        model.system.bodies,
        model.system.joints,
        loads=[
            *model.system.loads,
            mbd.mechanism.JointFriction("rub", "pin", 1.0, 0.1),
            mbd.force("wind", ("tip", "end"), lambda t, motion: (0, 0, t)),
        ],
    )
    whole = mbd.Simulator(system, dt=DT, outputs={"angle": lambda run: run.joint("pin").rotation})
    with pytest.raises(InputError) as error:
        export_compiled_fmu(whole, tmp_path / "arm.fmu")
    assert all(name in str(error.value) for name in ("'rub'", "'wind'", "'angle'"))
    with pytest.raises(InputError):
        export_compiled_fmu(simulator(outputs=["pin.power"]), tmp_path / "arm.fmu")
    assert not [*tmp_path.iterdir()]


GROUND = mbd.Ground({"pin": mbd.Frame(), "plane": mbd.Frame((0, 0, -1))})
BALL = mbd.RigidBody("ball", 1.0, [0.1] * 3, frames={"pin": mbd.Frame()})
PIN = mbd.revolute("pin", GROUND.frame("pin"), BALL.frame("pin"))
LAW = mbd.ContactLaw(1e6)


def unsupported(name: str) -> dict[str, Any]:
    """Return arguments of a system with a part that has no C code."""
    plane, pin = GROUND.frame("plane"), BALL.frame("pin")
    return {
        "contact": {"loads": [mbd.mechanism.plane_contact("hit", plane, pin, 0.1, LAW)]},
        "law": {"loads": [mbd.SpringDamper("hit", plane, pin, law="9*(length - 1)")]},
        "expression": {"loads": [mbd.JointLoad("hit", "pin", "rotation", "2 - 0.1*rate")]},
        "vector": {"loads": [mbd.force("hit", pin, ("0", "sin(t)", "0"))]},
        "driver": {"drivers": [mbd.Driver("hit", "pin", "0.3*sin(7*t)")]},
    }[name]


@pytest.mark.parametrize("name", ["contact", "law", "expression", "vector", "driver"])
def test_parts_without_c_code(name: str, tmp_path: Path) -> None:
    system = mbd.System([GROUND, BALL], [PIN], **unsupported(name))
    with pytest.raises(InputError, match="'hit'"):
        export_compiled_fmu(mbd.Simulator(system, dt=DT), tmp_path / "one.fmu")
    assert not [*tmp_path.iterdir()]


def test_bodies_on_their_mesh(tmp_path: Path) -> None:
    mesh, tags = box((0, 0, 0), (1, 0.1, 0.1), (2, 1, 1))
    model = mbd.ElasticModel(mesh, mbd.STEEL, facet_tags=tags, degree=2)
    bar = mbd.structures.MeshBody("soft bar", model, ends(0.0, 1.0))
    with pytest.raises(InputError, match="'soft bar'"):
        export_compiled_fmu(mbd.Simulator(mbd.System([bar]), dt=DT), tmp_path / "one.fmu")
    assert not [*tmp_path.iterdir()]


def test_invalid_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = mbd.System([GROUND, BALL], [PIN])
    fast = mbd.Driver("spin", "pin", mbd.constant_speed(3.2 / DT))  # more than π in a step
    models = {
        "adaptive": mbd.Simulator(system, dt=mbd.Adaptive(1e-5, first=1e-4), t_end=1.0),
        "spin": mbd.Simulator(mbd.System([GROUND, BALL], [PIN], drivers=[fast]), dt=DT),
    }
    for word, model in models.items():
        with pytest.raises(InputError, match=word):
            export_compiled_fmu(model, tmp_path / "one.fmu")
    good = mbd.Simulator(system, dt=DT)
    for wrong in ({"path": tmp_path / "one.zip"}, {"fmi": 1}, {"binary": 2}, {"simulator": system}):
        with pytest.raises(InputError):
            export_compiled_fmu(**{"simulator": good, "path": tmp_path / "one.fmu"} | wrong)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MissingFileError, match="binary=False"):
        export_compiled_fmu(good, tmp_path / "one.fmu")
    assert not [*tmp_path.iterdir()]


@slow
def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "model.py"
    script.write_text(SCRIPT)
    path = tmp_path / "new" / "one.fmu"
    line = ["export-fmu", str(script), "-o", str(path), "--compiled"]
    assert main([*line, "--linear", "1e-3"]) == 1
    assert main([*line, "--with", str(script)]) == 1
    assert not path.parent.exists()
    assert main([*line, "--fmi", "3"]) == 0
    before = path.read_bytes()
    assert main([*line, "--fmi", "2"]) == 1  # the file has another content
    assert path.read_bytes() == before
    assert main([*line, "--fmi", "2", "--force"]) == 0
    assert path.read_bytes() != before and [*path.parent.iterdir()] == [path]
    code = "from fmpy.validation import validate_fmu\nresult = list(validate_fmu(unit))"
    assert run(code, path) == []


SCRIPT = """
import dolfinx_mbd as mbd

def simulator():
    bar = mbd.RigidBody("bar", 2.0, [0.1] * 3, (1, 0, 0))
    return mbd.Simulator(mbd.System([bar]), dt=1e-3, outputs=["bar.position.x"])
"""

LLVM = """
@table = internal constant [2 x double] [double 1.5, double 0x4000000000000000]

define double @start(i64 %n) {
entry:
  %more = icmp sgt i64 %n, 0
  br i1 %more, label %loop, label %end

loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi double [ 0.0, %entry ], [ %total, %loop ]
  %parity = and i64 %k, 1
  %place = getelementptr inbounds double, ptr @table, i64 %parity
  %x = load double, ptr %place, align 8
  %total = fadd double %sum, %x
  %next = add nsw i64 %k, 1
  %go = icmp slt i64 %next, %n
  br i1 %go, label %loop, label %end

end:
  %result = phi double [ -1.0, %entry ], [ %total, %loop ]
  ret double %result
}
"""


def test_translation_of_a_loop(tmp_path: Path) -> None:
    """The C code computes sums of 1.5, 2, 1.5, ..., and −1 without terms."""
    support = files("dolfinx_mbd.io.export.compiled").joinpath("support.c").read_text()
    program = "\n#include <stdio.h>\nint main(void) { for (int n = -1; n < 4; n++)"
    program += ' printf("%g ", mechanism_run((uint64_t)n)); return 0; }'
    (tmp_path / "loop.c").write_text(support + to_c(LLVM, "start") + program)
    command = ["cc", "-std=c99", "-w", "loop.c", "-o", "loop", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    result = subprocess.run([tmp_path / "loop"], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["-1", "-1", "1.5", "3.5", "5"]


@pytest.mark.parametrize(
    "line", ["%y = fadd <2 x double> %x, %x", "%y = call i8 @llvm.ctpop(i8 3)"]
)
def test_instructions_without_translation(line: str) -> None:
    code = f"define double @start(i64 %n) {{\nentry:\n  {line}\n  ret double 0.0\n}}\n"
    with pytest.raises(SolverError, match="without translation"):
        to_c(code, "start")


def test_constants_are_those_of_the_solver() -> None:
    assert integrators._MAX_ITERATIONS == steps.MAX_ITERATIONS
    assert corrections._JUMP_ITERATIONS == steps.JUMP_ITERATIONS
    names = "SAFETY", "NEXT_STEP_RATIO", "THIS_STEP_RATIO", "ROUND_OFF", "COSTLY_ITERATIONS"
    assert all(getattr(convergence, f"_{name}") == getattr(steps, name) for name in names)
