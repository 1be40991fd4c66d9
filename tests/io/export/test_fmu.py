"""Functional mock-up units: FMPy validates them, simulates them and restores their state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd.errors import InputError, MissingFileError, OverwriteError
from dolfinx_mbd.io.cli import main
from dolfinx_mbd.io.export.fmi.variable_units import add_units
from dolfinx_mbd.io.export.fmu import export_fmu, load_simulator
from tests.io.export.processes import run
from tests.models.rods import rod

pytest.importorskip("pythonfmu")
pytest.importorskip("pythonfmu3")
read_model_description = pytest.importorskip("fmpy").read_model_description
pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one process writes the unit")

DT, STEPS = 1e-3, 60
SCRIPT = """
from pathlib import Path

import dolfinx_mbd as mbd


def simulator():
    ground = mbd.Ground({"pin": mbd.Frame((-0.5, 0, 0))})
    body = mbd.ReducedBody.load(Path(__file__).parent / "rod.npz")
    arm = mbd.FlexibleBody("arm", body)
    pin = mbd.revolute("pin", ground.frame("pin"), arm.frame("left"))
    loads = [
        mbd.JointLoad("motor", "pin", "rotation", 0.5),
        mbd.force("push", arm.frame("right"), (0, 0, 0)),
        mbd.JointSpring("spring", "pin", stiffness=10.0),
    ]
    system = mbd.System([ground, arm], [pin], loads=loads, gravity=(0, -9.81, 0))
    outputs = {
        "angle": lambda run: run.joint("pin").rotation,
        "tip.y": lambda run: run.sensor("arm", "right")[:, 1],
        "force": lambda run: run.joint("pin").force[:, 1],
    }
    return mbd.Simulator(system, dt=1e-3, inputs=["motor", "push.y"], outputs=outputs)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Return the script of an arm, beside the file of its body."""
    rod().save(tmp_path / "rod.npz")
    path = tmp_path / "arm_model.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture(params=[2, 3], ids=["FMI 2", "FMI 3"])
def unit(request: pytest.FixtureRequest, script: Path) -> Path:
    """Return an FMU of the script that contains the file of the body."""
    files = str(script.with_name("rod.npz"))
    path = script.with_name("arm.fmu")
    command = ["export-fmu", str(script), "-o", str(path), "--fmi", str(request.param)]
    assert main([*command, "--with", files]) == 0
    script.with_name("rod.npz").unlink()  # the unit has a copy
    return path


mostly_fmi_3 = pytest.mark.parametrize(
    "unit", [pytest.param(2, marks=pytest.mark.slow), 3], ids=["FMI 2", "FMI 3"], indirect=True
)
"""Runs a test with FMI 2.0 only among the slow tests; another test covers its functions."""


def torque(k: int) -> float:
    """Return the torque in a step, N m."""
    return 2.0 * float(np.sin(0.2 * k))


def stepped(script: Path, inputs: Callable[[int], dict[str, float]]) -> np.ndarray:
    """Return the outputs at the start and after each step of a simulator."""
    rod().save(script.with_name("rod.npz"))
    simulator = load_simulator(script)
    rows = [[*simulator.outputs.values()]]
    for k in range(STEPS):
        simulator.step(inputs(k))
        rows.append([*simulator.outputs.values()])
    return np.array(rows)


def test_fmpy_validates_the_unit(unit: Path) -> None:
    code = "from fmpy.validation import validate_fmu\nresult = list(validate_fmu(unit))"
    assert run(code, unit) == []


def test_fmpy_simulates_what_we_simulate(unit: Path, script: Path) -> None:
    """The values of the inputs differ from those at the start."""
    code = f"""
import fmpy
rows = fmpy.simulate_fmu(unit, stop_time={STEPS * DT}, step_size={DT}, output_interval={DT},
    start_values={{"motor": 1.5, "push.y": -3.0}})
result = [rows[name].tolist() for name in ("angle", "tip.y", "force")]
"""
    values = np.array(run(code, unit)).T
    expected = stepped(script, lambda k: {"motor": 1.5, "push.y": -3.0})
    assert values.shape == expected.shape
    assert (np.abs(values - expected) <= 1e-9 * np.abs(expected).max(axis=0)).all()


def test_the_state_is_restored_exactly(unit: Path, script: Path) -> None:
    """States in memory and serialized ones are restored bitwise.

    One communication step may contain two steps of the simulator.
    """
    code = f"""
import fmpy
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
folder = fmpy.extract(unit)
description = fmpy.read_model_description(folder)
refs = {{v.name: v.valueReference for v in description.modelVariables}}
second = description.fmiVersion == "2.0"
fmu = (FMU2Slave if second else FMU3Slave)(guid=description.guid, unzipDirectory=folder,
    instanceName="arm", modelIdentifier=description.coSimulation.modelIdentifier)
fmu.instantiate()
put, get = (fmu.setReal, fmu.getReal) if second else (fmu.setFloat64, fmu.getFloat64)
if second:
    fmu.setupExperiment()
else:
    fmu.getFMUstate, fmu.setFMUstate = fmu.getFMUState, fmu.setFMUState
    fmu.serializeFMUstate, fmu.deSerializeFMUstate = fmu.serializeFMUState, fmu.deserializeFMUState
fmu.enterInitializationMode()
fmu.exitInitializationMode()
def step(k, size=1):
    put([refs["motor"]], [2.0 * float(np.sin(0.2 * k))])
    fmu.doStep(k * {DT}, size * {DT})
    return list(get([refs[name] for name in ("angle", "tip.y", "force")]))
rows = [step(k) for k in range(20)]
state = fmu.getFMUstate()
data = fmu.serializeFMUstate(state)
rows += [step(k) for k in range(20, {STEPS})]
fmu.setFMUstate(state)
again = [step(k) for k in range(20, {STEPS})]
fmu.setFMUstate(fmu.deSerializeFMUstate(data))
third = [step(k) for k in range(20, {STEPS})]
fmu.setFMUstate(state)
result = [rows, again, third, step(20, 2)]
"""
    rows, again, third, double = run(code, unit)
    assert rows[20:] == again == third
    assert np.array_equal(rows, stepped(script, lambda k: {"motor": torque(k)})[1:])
    # The torque of step 20 also acts in the second half of the double step.
    two_steps = stepped(script, lambda k: {"motor": torque(min(k, 20))})[22]
    assert double == two_steps.tolist()


SLAVES = f"""
import fmpy
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave

def start(path, name):
    folder = fmpy.extract(path)
    description = fmpy.read_model_description(folder)
    second = description.fmiVersion == "2.0"
    fmu = (FMU2Slave if second else FMU3Slave)(guid=description.guid, unzipDirectory=folder,
        instanceName=name, modelIdentifier=description.coSimulation.modelIdentifier)
    fmu.refs = {{v.name: v.valueReference for v in description.modelVariables}}
    fmu.instantiate()
    fmu.put, fmu.get = (fmu.setReal, fmu.getReal) if second else (fmu.setFloat64, fmu.getFloat64)
    if second:
        fmu.setupExperiment()
    else:
        fmu.getFMUstate, fmu.setFMUstate = fmu.getFMUState, fmu.setFMUState
        fmu.serializeFMUstate = fmu.serializeFMUState
        fmu.deSerializeFMUstate = fmu.deserializeFMUState
    fmu.enterInitializationMode()
    fmu.exitInitializationMode()
    return fmu

def step(fmu, k, value, size=1.0):
    fmu.put([fmu.refs["motor"]], [value])
    fmu.doStep(k * {DT}, size * {DT})
    return list(fmu.get([fmu.refs["angle"]]))

def end(fmu):
    fmu.terminate()
    fmu.freeInstance()
"""


@mostly_fmi_3
def test_instances_of_several_units_live_and_end_in_one_process(unit: Path, script: Path) -> None:
    """Twelve instances of three units are used, of which up to four exist at the same time."""
    stiffer = script.with_name("other.py")
    stiffer.write_text(
        SCRIPT.replace("stiffness=10.0", "stiffness=20.0").replace("rod.npz", "copy.npz")
    )
    rod().save(script.with_name("copy.npz"))
    second = script.with_name("second.fmu")
    for fmi in (2, 3):
        export_fmu(
            stiffer, second.with_stem(f"u{fmi}"), fmi=fmi, files=[script.with_name("copy.npz")]
        )
    # In step k, the torque of instance i is 0.1 i + k. The instances of the second of three turns
    # end in the reverse order.
    code = f"""{SLAVES}
import gc
result = []
for turn in range(3):
    paths = [unit, unit, unit.replace("arm.fmu", "u2.fmu"), unit.replace("arm.fmu", "u3.fmu")]
    fmus = [start(path, f"{{turn}} {{k}}") for k, path in enumerate(paths)]
    values = [[step(fmu, k, 0.1 * i + k) for i, fmu in enumerate(fmus)] for k in range(4)]
    result.append(values[-1])
    for fmu in fmus[:: 1 - 2 * (turn % 2)]:
        end(fmu)
    del fmus, fmu
    gc.collect()
"""
    first, *others = run(code, unit)
    assert others == [first, first]
    expected = stepped(script, lambda k: {"motor": 0.1 + k})[4, 0]
    assert first[1] == [expected]
    assert first[0] != first[1]


def test_a_step_that_is_no_multiple_of_dt_is_discarded(unit: Path) -> None:
    """Steps with invalid inputs are also discarded, without an effect on later steps."""
    code = f"""{SLAVES}
import warnings
fmu, plain = start(unit, "one"), start(unit, "two")
result = []
caught = warnings.catch_warnings(record=True)
messages = caught.__enter__()
warnings.simplefilter("always")
for k in range(6):
    for size, value in ((1.5, 1.0), (0.2, 1.0), (2.5, -3.0), (1.0, float("nan"))):
        try:
            step(fmu, k, value, size)
        except Exception as error:
            result.append(error.status)
    assert step(fmu, k, 1.0) == step(plain, k, 1.0)
caught.__exit__(None, None, None)
end(fmu)
end(plain)
result = [result, [str(item.message) for item in messages]]
"""
    statuses, messages = run(code, unit)
    assert statuses == 24 * [2]  # four wrong attempts in each of six steps are discarded
    assert len(messages) in (0, 24)  # FMI 3.0 sends messages to the importing program
    assert (len(messages) == 24) == (read_model_description(unit).fmiVersion == "2.0")
    assert all("discarded" in message for message in messages)


@mostly_fmi_3
def test_a_damaged_state_is_refused(unit: Path) -> None:
    # Ten states are cut off; in ten others, all bits of one byte are inverted.
    code = f"""{SLAVES}
fmu = start(unit, "one")
step(fmu, 0, 1.0)
state = fmu.getFMUstate()
data = bytearray(fmu.serializeFMUstate(state))
result = [data[:2].decode()]
for k in range(20):
    other = start(unit, f"other {{k}}")
    wrong = data[: 50 * k] if k < 10 else data[:]
    if k >= 10:
        wrong[len(data) * (k - 9) // 12] ^= 0xFF
    try:
        other.setFMUstate(other.deSerializeFMUstate(bytes(wrong)))
    except Exception as error:
        result.append(error.status)
    other.freeInstance()
end(fmu)
"""
    result = run(code, unit)
    assert result[0] == "PK"  # an archive of numbers
    assert len(result) == 21
    assert all(status in (3, 4) for status in result[1:])  # error, fatal


def test_variables_have_units(script: Path) -> None:
    model = script.with_name("named.py")
    names = '["pin.rotation", "arm.velocity.x", "pin.moment.z", "arm.rotation.w"]'
    text = SCRIPT.replace("outputs=outputs", f"outputs={names}")
    inputs = '["motor", "push.y", "spring.stiffness", "spring.damping"]'
    model.write_text(text.replace('["motor", "push.y"]', inputs))
    rod().save(script.with_name("rod.npz"))
    for fmi in (2, 3):
        path = export_fmu(
            model, script.with_name(f"named{fmi}.fmu"), fmi=fmi, files=[script.with_name("rod.npz")]
        )
        description = read_model_description(path)
        units = {v.name: v.unit for v in description.modelVariables if v.name != "time"}
        assert units == {
            "motor": "N.m",
            "push.y": "N",
            "spring.stiffness": "N.m/rad",
            "spring.damping": "N.m.s/rad",
            "pin.rotation": "rad",
            "arm.velocity.x": "m/s",
            "pin.moment.z": "N.m",
            "arm.rotation.w": "1",
        }
        bases = {item.name: item.baseUnit for item in description.unitDefinitions}
        base = bases["N.m.s/rad"]
        assert (base.kg, base.m, base.s, base.rad) == (1, 2, -1, -1)
        simulation = description.coSimulation
        assert simulation.canHandleVariableCommunicationStepSize
        assert description.defaultExperiment.stepSize == str(DT)


@pytest.mark.parametrize("fmi", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_components_without_names(fmi: Literal[2, 3], script: Path) -> None:
    """The output `arm.eta.2` is the variable `arm.eta[2]`, and has its values."""
    names = ["arm.eta.2", "pin.force.y"]
    new_script = script.with_name("components.py")
    new_script.write_text(SCRIPT.replace("outputs=outputs", f"outputs={names}"))
    path = script.with_name(f"components{fmi}.fmu")
    export_fmu(new_script, path, fmi=fmi, files=[script.with_name("rod.npz")])
    expected = stepped(new_script, lambda k: {"motor": 2.0})
    code = f"""
import fmpy
from fmpy.validation import validate_fmu
rows = fmpy.simulate_fmu(unit, stop_time={STEPS * DT}, step_size={DT}, output_interval={DT},
    start_values={{"motor": 2.0}}, output=["arm.eta[2]", "pin.force.y"])
result = [list(validate_fmu(unit)), rows["arm.eta[2]"].tolist(), rows["pin.force.y"].tolist()]
"""
    errors, *values = run(code, path)
    assert errors == []
    assert np.abs(expected[1:]).min(axis=0).all()  # no value is zero
    assert (np.abs(np.array(values).T - expected) <= 1e-9 * np.abs(expected).max(axis=0)).all()


def test_units_with_two_slashes() -> None:
    """A second slash divides too; units that are unknown are omitted."""
    root = ET.fromstring(
        "<root><CoSimulation/><ModelVariables>"
        + "".join(f'<Float64 name="{name}"/>' for name in "abcd")
        + "</ModelVariables></root>"
    )
    add_units(root, {"a": "N/m/s", "b": "kN s/(mm s)", "c": "SI", "d": "m^.5"})
    units = {item.attrib["name"]: item[0].attrib for item in root.iter("Unit")}
    assert units == {
        "N/m/s": {"kg": "1", "s": "-3"},
        "kN.s/(mm.s)": {"kg": "1", "s": "-2", "factor": "1000000.0"},
    }
    assert [v.get("unit") for v in root.iter("Float64")] == [*units, None, None]


def test_files_of_a_unit_have_different_names(script: Path) -> None:
    """All files, also those that the export writes, are copied to one folder."""
    folder = script.parent
    rod().save(folder / "rod.npz")
    for name in (script.name, "rod.npz", "arm_arm_model_fmi2.py", "slavemodule.txt"):
        (folder / "more").mkdir(exist_ok=True)
        (folder / "more" / name).write_text("other")
        with pytest.raises(InputError) as error:
            export_fmu(
                script, folder / "arm.fmu", files=[folder / "rod.npz", folder / "more" / name]
            )
        assert error.value.argument == "files"
    with pytest.raises(MissingFileError):
        export_fmu(script, folder / "arm.fmu", files=[folder / "none.npz"])
    export_fmu(script, folder / "arm.fmu", files=[folder / "rod.npz", script, folder / "rod.npz"])


def test_wrong_scripts_and_paths(script: Path) -> None:
    folder = script.parent
    with pytest.raises(MissingFileError):
        export_fmu(folder / "none.py", folder / "a.fmu")
    with pytest.raises(InputError):
        export_fmu(script, folder / "a b.fmu", files=[folder / "rod.npz"])
    with pytest.raises(InputError):
        export_fmu(script, folder / "a.zip", files=[folder / "rod.npz"])
    new_script = folder / "other.py"
    new_script.write_text(SCRIPT.replace('"angle"', '"time"'))
    with pytest.raises(InputError, match="another name"):
        export_fmu(new_script, folder / "a.fmu", fmi=3)
    for old, new in (("def simulator", "def build"), ('"tip.y"', '"tip-y"'), ("return mbd", "mbd")):
        new_script.write_text(SCRIPT.replace(old, new))
        with pytest.raises(InputError):
            export_fmu(new_script, folder / "a.fmu")
    (folder / "arm.fmu").write_text("mine")
    with pytest.raises(OverwriteError):
        export_fmu(script, folder / "arm.fmu", files=[folder / "rod.npz"])
    assert (folder / "arm.fmu").read_text() == "mine"
