"""Mechanisms as units in C: FMPy validates them, they equal `Simulator`, and need no Python."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics.stepping import convergence, integrators
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.export.compiled import export_compiled_fmu
from dolfinx_mbd.kernels.mechanism_steps import steps
from tests.io.export.processes import run
from tests.models.rods import rod

pytest.importorskip("fmpy")
pytest.importorskip("numba")
pytestmark = [
    pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one process writes the unit"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
    pytest.mark.timeout(600),  # the first test compiles the steps
]

DT, STEPS = 5e-4, 80
INPUTS = ["motor", "push.z", "strut.stiffness"]
OUTPUTS = ["pin.rotation", "arm.velocity.y", "tip.position.y", "tip.omega.z", "pin.force.y",
           "pin.rotation_rate", "ball.displacement.x"]  # fmt: skip


def simulator(**options: object) -> mbd.Simulator:
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
    return [2.0 * float(np.sin(0.1 * k)), 2.0 if k < 30 else -4.0, 200.0 if k < 50 else 300.0]


@pytest.fixture(params=[2, 3], ids=["FMI 2", "FMI 3"])
def unit(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return export_compiled_fmu(simulator(), tmp_path / "arm.fmu", fmi=request.param)


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
def step(fmu, k, u, size=1):
    fmu.put([0, 1, 2], u)
    fmu.doStep(k * {DT}, size * {DT})
    return list(fmu.take(list(range(3, {3 + len(OUTPUTS)}))))
u = {[values(k) for k in range(STEPS)]}
fmu = start("one")
"""


def test_fmpy_validates_the_unit(unit: Path) -> None:
    code = "from fmpy.validation import validate_fmu\nresult = list(validate_fmu(unit))"
    assert run(code, unit) == []


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
    assert run(code, unit) == [True, True, True, True, 2, 2, 2, True, True]


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


def test_the_source_compiles_with_a_prefix(unit: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(unit) as archive:
        archive.extractall(tmp_path / "unit")
    (main,) = (tmp_path / "unit" / "sources").glob("fmi?.c")
    prefix = f"-D{main.stem.upper()}_FUNCTION_PREFIX=arm_"
    subprocess.run(["cc", "-std=c99", "-w", "-c", prefix, main.name], cwd=main.parent, check=True)
    assert f"arm_{main.stem}DoStep".encode() in main.with_suffix(".o").read_bytes()


def test_errors_name_all_parts_without_c_code(tmp_path: Path) -> None:
    model = simulator(outputs={"angle": lambda run: run.joint("pin").rotation})
    system = mbd.System(
        model.system.bodies,
        model.system.joints,
        loads=[
            *model.system.loads,
            mbd.JointFriction("rub", "pin", 1.0, 0.1),
            mbd.force("wind", ("tip", "end"), lambda t, motion: (0, 0, t)),
        ],
    )
    other = mbd.Simulator(system, dt=DT, outputs={"angle": lambda run: run.joint("pin").rotation})
    with pytest.raises(InputError) as error:
        export_compiled_fmu(other, tmp_path / "arm.fmu")
    assert all(name in str(error.value) for name in ("'rub'", "'wind'", "'angle'"))
    with pytest.raises(InputError):
        export_compiled_fmu(simulator(outputs=["pin.power"]), tmp_path / "arm.fmu")
    assert not [*tmp_path.iterdir()]


def test_constants_are_those_of_the_solver() -> None:
    assert integrators._MAX_ITERATIONS == steps.MAX_ITERATIONS
    assert integrators._JUMP_ITERATIONS == steps.JUMP_ITERATIONS
    names = "SAFETY", "NEXT_STEP_RATIO", "THIS_STEP_RATIO", "ROUND_OFF", "COSTLY_ITERATIONS"
    assert all(getattr(convergence, f"_{name}") == getattr(steps, name) for name in names)
