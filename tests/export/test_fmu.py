"""Functional mock-up units: FMPy validates them, simulates them and restores their state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd.cli import main
from dolfinx_mbd.errors import InputError, MissingFileError, OverwriteError
from dolfinx_mbd.export.fmu import export_fmu, load_simulator
from tests.export.processes import run
from tests.models.rods import rod

pytest.importorskip("pythonfmu")
pytest.importorskip("pythonfmu3")
pytest.importorskip("fmpy")
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
    rod().save(tmp_path / "rod.npz")
    path = tmp_path / "arm_model.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture(params=[2, 3], ids=["FMI 2", "FMI 3"])
def unit(request: pytest.FixtureRequest, script: Path) -> Path:
    files = str(script.with_name("rod.npz"))
    path = script.with_name("arm.fmu")
    command = ["export-fmu", str(script), "-o", str(path), "--fmi", str(request.param)]
    assert main([*command, "--with", files]) == 0
    script.with_name("rod.npz").unlink()  # the unit has a copy
    return path


def torque(k: int) -> float:
    return 2.0 * float(np.sin(0.2 * k))


def stepped(script: Path, inputs: Callable[[int], dict[str, float]]) -> np.ndarray:
    """Return the outputs at the start and after each step of our own simulator."""
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
    """With values of the inputs that differ from those at the start."""
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


def test_the_state_is_restored_to_the_bit(unit: Path, script: Path) -> None:
    """By a state in memory, and by one that was serialized; two steps of ours in one of FMI."""
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
    twice = stepped(script, lambda k: {"motor": torque(min(k, 20))})[22]
    assert double == twice.tolist()


def test_wrong_scripts_and_paths(script: Path) -> None:
    folder = script.parent
    with pytest.raises(MissingFileError):
        export_fmu(folder / "none.py", folder / "a.fmu")
    with pytest.raises(InputError):
        export_fmu(script, folder / "a b.fmu", files=[folder / "rod.npz"])
    with pytest.raises(InputError):
        export_fmu(script, folder / "a.zip", files=[folder / "rod.npz"])
    other = folder / "other.py"
    other.write_text(SCRIPT.replace('"angle"', '"time"'))
    with pytest.raises(InputError, match="another name"):
        export_fmu(other, folder / "a.fmu", fmi=3)
    for old, new in (("def simulator", "def build"), ('"tip.y"', '"tip y"'), ("return mbd", "mbd")):
        other.write_text(SCRIPT.replace(old, new))
        with pytest.raises(InputError):
            export_fmu(other, folder / "a.fmu")
    (folder / "arm.fmu").write_text("mine")
    with pytest.raises(OverwriteError):
        export_fmu(script, folder / "arm.fmu", files=[folder / "rod.npz"])
    assert (folder / "arm.fmu").read_text() == "mine"
