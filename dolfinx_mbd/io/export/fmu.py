"""Export of simulators as functional mock-up units for co-simulation: FMI 2.0 or FMI 3.0.

PythonFMU writes FMUs of FMI 2.0, and PythonFMU3 writes FMUs of FMI 3.0. The FMU contains the
script that builds the simulator and the files that it reads. The machine that runs it needs the
same version of Python, with this package, NumPy and SciPy, but no DOLFINx.
"""

from __future__ import annotations

import re
import runpy
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from dolfinx_mbd.analyses.simulator import Simulator
from dolfinx_mbd.checks import choice, flag, instance, items, reject
from dolfinx_mbd.dynamics.stepping.step_control import FixedSteps
from dolfinx_mbd.errors import InputError, MissingFileError
from dolfinx_mbd.io.export.fmi.names import checked_path, variable_names, write_unit
from dolfinx_mbd.optional import optional_module

__all__ = ["export_fmu"]

_SCRIPT = """\
import ctypes

from {library} import {base}

from dolfinx_mbd.io.export.fmu_slave import slave_class

# PythonFMU executes this file for each instance, and then decrements the reference count of the
# namespace once too often
ctypes.pythonapi.Py_IncRef(ctypes.py_object(globals()))

Simulated = slave_class("{script}", {version})


class {name}(Simulated, {base}):
    pass
"""


class Library(NamedTuple):
    """A Python package for FMUs, and the name of its base class of slaves."""

    package: str
    base: str


LIBRARIES = {2: Library("pythonfmu", "Fmi2Slave"), 3: Library("pythonfmu3", "Fmi3Slave")}
"""Libraries by version of the standard."""

_OPTIONS = {
    2: ("canGetAndSetFMUstate", "canSerializeFMUstate"),
    3: ("canGetAndSetFMUState", "canSerializeFMUState"),
}
"""Capabilities of the FMUs by version of the standard."""


def load_simulator(script: str | Path) -> Simulator:
    """Return the simulator that the function `simulator()` of a script returns.

    Args:
        script: Path of the script.

    Raises:
        MissingFileError: The script does not exist.
        InputError: The script has no such function, the steps are adaptive, or an input or output
            has an invalid name (valid: identifiers separated by dots, and a number at the end).
    """
    simulator: Simulator = value_in_script(script, "simulator", Simulator)
    if not isinstance(simulator.steps, FixedSteps):
        raise InputError("a functional mock-up unit needs steps of equal length")
    variable_names([*simulator.inputs, *simulator.outputs])
    return simulator


def value_in_script(script: str | Path, function: str, kind: type) -> Any:
    """Call a function of a script without arguments, and return its value."""
    path = Path(script)
    if not path.is_file():
        raise MissingFileError(f"there is no script {str(path)!r}")
    definition = runpy.run_path(str(path)).get(function)
    if not callable(definition):
        text = f"{path} must define a function {function}() that returns mbd.{kind.__name__}"
        raise InputError(text)
    return instance(f"value of {function}()", definition(), kind)


def export_fmu(
    script: str | Path,
    path: str | Path,
    *,
    fmi: Literal[2, 3] = 2,
    files: Sequence[str | Path] = (),
    overwrite: bool = False,
) -> Path:
    """Export the simulator of a script as an FMU for co-simulation and return its path.

    The communication step of the importing program must be a multiple of the step of the simulator;
    the FMU discards other steps and keeps its state. Inputs act from the beginning of a
    communication step. The FMU can save, restore and serialize its state exactly. In the names of
    its variables, spaces are underscores, and numbers of components are indices: the output
    ``rod.eta.1`` is the variable ``rod.eta[1]``.

    Args:
        script: Python script with a function `simulator()` that returns a `Simulator`. The script
            finds its files in the folder `Path(__file__).parent`.
        path: File to write, `.fmu`; its stem is the name of the model.
        fmi: Version of the standard: 2 (FMI 2.0) or 3 (FMI 3.0).
        files: Further files and folders that the script reads; they are copied to the folder of the
            script, and their names must differ from each other.
        overwrite: Whether to replace an existing file with other contents.

    Raises:
        ImportError: PythonFMU (FMI 2.0) or PythonFMU3 (FMI 3.0) is not installed.
        InputError: The script does not build a suitable simulator, the stem of the path is not an
            identifier, or two files have the same name.
        OSError: A file cannot be read or written.

    Example:
        >>> _ = Path("arm.py").write_text('''
        ... import dolfinx_mbd as mbd
        ... def simulator():
        ...     ground = mbd.Ground({"pin": mbd.Frame()})
        ...     bar = mbd.RigidBody("bar", 2.0, [0.1] * 3, (1, 0, 0), frames={"pin": mbd.Frame()})
        ...     pin = mbd.revolute("pin", ground.frame("pin"), bar.frame("pin"))
        ...     motor = mbd.JointLoad("motor", "pin", "rotation", 0.0)
        ...     system = mbd.System([ground, bar], [pin], loads=[motor])
        ...     angle = {"angle": lambda run: run.joint("pin").rotation}
        ...     return mbd.Simulator(system, dt=1e-3, inputs=["motor"], outputs=angle)
        ... ''')
        >>> export_fmu("arm.py", "arm.fmu").name
        'arm.fmu'
    """
    library, base = LIBRARIES[choice("fmi", fmi, (2, 3))]
    builder = optional_module(f"{library}.builder", "FMUs").FmuBuilder
    script, path = Path(script).resolve(), checked_path(path)
    simulator = load_simulator(script)
    if fmi == 3 and "time" in (*simulator.inputs, *simulator.outputs):
        reject("name of an input or output", "time", "another name: FMI 3.0 uses it for the time")
    flag("overwrite", overwrite)
    module = re.sub(r"\W", "_", f"{path.stem}_{script.stem}_fmi{fmi}")
    resources = _resources(script, items("files", files, (str, Path)), f"{module}.py")
    with tempfile.TemporaryDirectory() as folder:
        source, fmu = Path(folder) / f"{module}.py", Path(folder) / path.name
        names = {"library": library, "base": base, "script": script.name, "name": path.stem}
        source.write_text(_SCRIPT.format(version=fmi, **names), encoding="utf-8")
        search_path, options = list(sys.path), dict.fromkeys(_OPTIONS[fmi], True)
        try:
            builder.build_FMU(source, folder, project_files=resources, **options)
        finally:
            sys.path[:] = search_path  # PythonFMU changes it, and imports the source
            sys.modules.pop(module, None)
        return write_unit(path, fmu.read_bytes(), overwrite)


def _resources(script: Path, files: Sequence[str | Path], module: str) -> list[Path]:
    """Return the files for the folder of resources; the FMU adds `module` and a text file."""
    paths = dict.fromkeys([script, *(Path(file).resolve() for file in files)])
    names = {module: "the FMU itself", "slavemodule.txt": "the FMU itself"}
    for path in paths:
        if not path.exists():
            raise MissingFileError(f"there is no file {str(path)!r} for the FMU")
        other = names.setdefault(path.name, str(path))
        if other != str(path):
            expected = "files with different names, because the FMU keeps them in one folder"
            reject("files", str(path), f"{expected} (another {path.name!r} is in {other})")
    return [*paths]
