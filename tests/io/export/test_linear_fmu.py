"""Linearized mechanisms as units in C: FMPy validates them, and they equal scipy.signal."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.signal
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError, MissingFileError, OverwriteError
from dolfinx_mbd.io.cli import main
from dolfinx_mbd.io.export.linear_fmu import export_linear_fmu
from tests.io.export.processes import run
from tests.models.rods import rod

pytest.importorskip("fmpy")
pytestmark = [
    pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one process writes the unit"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
]

DT, STEPS = 2e-4, 200
SCRIPT = """
from pathlib import Path

import dolfinx_mbd as mbd


def linearization():
    ground = mbd.Ground({"pin": mbd.Frame((-0.5, 0, 0))})
    arm = mbd.FlexibleBody("arm", mbd.ReducedBody.load(Path(__file__).parent / "rod.npz"))
    pin = mbd.revolute("pin", ground.frame("pin"), arm.frame("left"))
    loads = [
        mbd.JointLoad("motor", "pin", "rotation", 0.0),
        mbd.force("push", arm.frame("right"), (0, 0, 0)),
        mbd.JointSpring("spring", "pin", stiffness=500.0, damping=0.1),
    ]
    system = mbd.System([ground, arm], [pin], loads=loads)
    outputs = {
        "angle": lambda run: run.joint("pin").rotation,
        "force.y": lambda run: run.joint("pin").force[:, 1],
    }
    state = mbd.equilibrium(system)
    return mbd.linearize(system, state, inputs=["motor", "push.y"], outputs=outputs)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Return the script of a linearized arm, beside the file of its body."""
    rod().save(tmp_path / "rod.npz")
    path = tmp_path / "linear_model.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def unit(script: Path) -> Path:
    """Return an FMU (FMI 2.0) of the script."""
    path = script.with_name("arm.fmu")
    assert main(["export-fmu", str(script), "-o", str(path), "--linear", str(DT)]) == 0
    return path


@pytest.fixture
def unit3(script: Path) -> Path:
    """Return the same unit with FMI 3.0."""
    path = script.with_name("arm3.fmu")
    arguments = ["export-fmu", str(script), "-o", str(path), "--linear", str(DT), "--fmi", "3"]
    assert main(arguments) == 0
    return path


def linearized(script: Path) -> mbd.LinearizedSystem:
    """Return the linearized system of the script."""
    names: dict = {"__file__": str(script)}
    exec(script.read_text(), names)
    return names["linearization"]()


def inputs(steps: np.ndarray) -> np.ndarray:
    """Return the two inputs at some steps, (steps, 2)."""
    return np.column_stack([np.sin(0.1 * steps), 3.0 * (steps > 50)])


def test_fmpy_validates_the_units(unit: Path, unit3: Path) -> None:
    code = "from fmpy.validation import validate_fmu\nresult = list(validate_fmu(unit))"
    assert run(code, unit) == [] and run(code, unit3) == []


# Code that other processes run first; the references are 0 and 1 (inputs), 2 and 3 (outputs).
SLAVE = """
import fmpy
from fmpy.fmi2 import FMU2Slave
folder = fmpy.extract(unit)
description = fmpy.read_model_description(folder)
fmu = FMU2Slave(guid=description.guid, unzipDirectory=folder, instanceName="arm",
    modelIdentifier=description.coSimulation.modelIdentifier)
fmu.instantiate()
fmu.setupExperiment()
fmu.enterInitializationMode()
fmu.exitInitializationMode()
def response(u, dt):
    rows = []
    for k, values in enumerate(u):
        fmu.setReal([0, 1], values)
        rows.append(list(fmu.getReal([2, 3])))
        fmu.doStep(k * dt, dt)
    return rows
"""


@pytest.mark.parametrize("stride", [1, 2])
def test_the_response_equals_scipy(unit: Path, script: Path, stride: int) -> None:
    """The inputs change at every communication step, which is one or two steps of the unit."""
    u = inputs(np.arange(STEPS))
    rows = run(f"{SLAVE}result = response({u.tolist()}, {stride * DT})", unit)
    system, time = linearized(script).state_space(), stride * DT * np.arange(STEPS)
    _, expected, _ = scipy.signal.lsim(system, u, time, interp=False)
    # The force follows the inputs without delay, the angle does not.
    assert (np.abs(system.D).max(axis=1) > 0).tolist() == [False, True]
    assert (np.abs(rows - expected) <= 1e-9 * np.abs(expected).max(axis=0)).all()


@pytest.mark.parametrize("name", ["unit", "unit3"])
def test_fmpy_simulates_a_constant_input(
    name: str, script: Path, request: pytest.FixtureRequest
) -> None:
    unit = request.getfixturevalue(name)
    code = f"""
import fmpy
rows = fmpy.simulate_fmu(unit, stop_time={STEPS * DT}, step_size={DT}, output_interval={DT},
    start_values={{"motor": 2.0}})
result = rows["angle"].tolist()
"""
    u = np.tile([2.0, 0.0], (STEPS + 1, 1))
    system, time = linearized(script).state_space(), DT * np.arange(STEPS + 1)
    _, expected, _ = scipy.signal.lsim(system, u, time, interp=False)
    np.testing.assert_allclose(run(code, unit), expected[:, 0], atol=1e-9 * expected[:, 0].max())


def test_the_state_is_restored_exactly(unit: Path) -> None:
    code = f"""{SLAVE}
u = {inputs(np.arange(STEPS)).tolist()}
response(u[:80], {DT})
state = fmu.getFMUstate()
data = fmu.serializeFMUstate(state)
result = [response(u[80:], {DT})]
fmu.setFMUstate(state)
result.append(response(u[80:], {DT}))
fmu.setFMUstate(fmu.deSerializeFMUstate(data))
result.append(response(u[80:], {DT}))
try:
    fmu.doStep(0.0, 1.5 * {DT})
except fmpy.fmi1.FMICallException as error:
    result.append(error.status)
fmu.reset()
result.append(fmu.getReal([0, 1, 2, 3]))
"""
    first, second, third, status, values = run(code, unit)
    assert first == second == third and max(map(max, first)) > 0
    assert status == 2 and values == [0.0] * 4  # the step is discarded


def test_the_source_compiles_without_warnings(unit: Path, unit3: Path, tmp_path: Path) -> None:
    options = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c"]
    for file, fmi in ((unit, 2), (unit3, 3)):
        with zipfile.ZipFile(file) as archive:
            archive.extractall(tmp_path / file.stem)
        sources = tmp_path / file.stem / "sources"
        for prefix in ([], [f"-DFMI{fmi}_FUNCTION_PREFIX=arm_"]):
            subprocess.run(["cc", *options, *prefix, f"fmi{fmi}.c"], cwd=sources, check=True)
        assert f"arm_fmi{fmi}DoStep".encode() in (sources / f"fmi{fmi}.o").read_bytes()


def test_without_a_binary_and_wrong_arguments(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, path = linearized(script), script.with_name("other.fmu")
    export_linear_fmu(system, path, dt=DT, binary=False)
    with zipfile.ZipFile(path) as archive:
        assert not [name for name in archive.namelist() if name.startswith("binaries")]
    before = path.read_bytes()
    export_linear_fmu(system, path, dt=DT, binary=False)
    assert path.read_bytes() == before
    with pytest.raises(OverwriteError):
        export_linear_fmu(system, path, dt=2 * DT, binary=False)
    with pytest.raises(InputError):
        export_linear_fmu(mbd.linearize(system.system, system.state), path, dt=DT)
    with pytest.raises(InputError):
        export_linear_fmu(system, script.with_name("a b.fmu"), dt=DT)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MissingFileError, match="binary=False"):
        export_linear_fmu(system, path, dt=DT)
    arguments = [
        "export-fmu",
        str(script),
        "-o",
        str(path),
        "--linear",
        "1e-3",
        "--with",
        "rod.npz",
    ]
    assert main(arguments) == 1
