"""Export of simulators as functional mock-up units for co-simulation: FMI 2.0 or FMI 3.0.

PythonFMU writes units of FMI 2.0, and PythonFMU3 writes units of FMI 3.0. The unit contains the
script that builds the simulator and the files that it reads. The machine that runs it needs the
same version of Python, with this package, NumPy and SciPy, but no DOLFINx.
"""

from __future__ import annotations

import importlib
import pickle
import re
import runpy
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal
from xml.etree.ElementTree import Element, SubElement

from dolfinx_mbd.checks import choice, flag, instance, items, reject
from dolfinx_mbd.errors import InputError, MissingFileError
from dolfinx_mbd.files import write_atomically
from dolfinx_mbd.multibody.analyses.simulator import Simulator
from dolfinx_mbd.multibody.stepping.step_control import FixedSteps

__all__ = ["export_fmu"]

_IDENTIFIER = r"[A-Za-z_]\w*"
_SCRIPT = """\
from {library} import {base}

from dolfinx_mbd.export.fmu import slave_class

Simulated = slave_class("{script}", {version})


class {name}(Simulated, {base}):
    pass
"""
_LIBRARIES = {2: ("pythonfmu", "Fmi2Slave"), 3: ("pythonfmu3", "Fmi3Slave")}
_OPTIONS = {
    2: ("canGetAndSetFMUstate", "canSerializeFMUstate"),
    3: ("canGetAndSetFMUState", "canSerializeFMUState"),
}


def load_simulator(script: str | Path) -> Simulator:
    """Return the simulator that the function `simulator()` of a script returns.

    Args:
        script: Path of the script.

    Raises:
        MissingFileError: The script does not exist.
        InputError: The script has no such function, the steps are adaptive, or an input or output
            has an invalid name (valid: identifiers separated by dots).
    """
    simulator: Simulator = value_in_script(script, "simulator", Simulator)
    if not isinstance(simulator.steps, FixedSteps):
        raise InputError("a functional mock-up unit needs steps of equal length")
    check_names(*simulator.inputs, *simulator.outputs)
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


def check_names(*names: str) -> None:
    """Raise an error unless the names of inputs and outputs consist of identifiers and dots."""
    for name in names:
        if not re.fullmatch(rf"{_IDENTIFIER}(\.{_IDENTIFIER})*", name, re.ASCII):
            reject("name of an input or output", name, "letters, digits and underscores, with dots")


def checked_path(path: str | Path) -> Path:
    """Return the path of a unit; its stem is the identifier of the model."""
    path = Path(path)
    if path.suffix != ".fmu" or not re.fullmatch(_IDENTIFIER, path.stem, re.ASCII):
        reject("path", str(path), "a name of letters, digits and underscores that ends with .fmu")
    return path


def write_unit(path: Path, content: bytes, overwrite: bool) -> Path:
    """Write a unit completely or not at all."""

    def write(file: BinaryIO) -> None:
        file.write(content)

    return write_atomically(path, write, "FMU", replaces=lambda path: overwrite)


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
    inputs act from the beginning of a communication step. The unit can save, restore and serialize
    its state bitwise.

    Args:
        script: Python script with a function `simulator()` that returns a `Simulator`. The script
            finds its files in the folder `Path(__file__).parent`.
        path: File to write, `.fmu`; its stem is the name of the model.
        fmi: Version of the standard: 2 (FMI 2.0) or 3 (FMI 3.0).
        files: Further files and folders that the script reads; they are copied to the folder of the
            script.
        overwrite: Whether to replace an existing file with other contents.

    Raises:
        ImportError: PythonFMU (FMI 2.0) or PythonFMU3 (FMI 3.0) is not installed.
        InputError: The script does not build a suitable simulator, or the stem of the path is not
            an identifier.
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
    library, base = _LIBRARIES[choice("fmi", fmi, (2, 3))]
    try:
        builder = importlib.import_module(f"{library}.builder").FmuBuilder
    except ImportError as error:
        raise ImportError(f"export_fmu needs {library} (pip install {library})") from error
    script, path = Path(script).resolve(), checked_path(path)
    simulator = load_simulator(script)
    if fmi == 3 and "time" in (*simulator.inputs, *simulator.outputs):
        reject("name of an input or output", "time", "another name: FMI 3.0 uses it for the time")
    flag("overwrite", overwrite)
    resources = [script, *(Path(file).resolve() for file in items("files", files, (str, Path)))]
    module = f"{path.stem}_fmu"
    with tempfile.TemporaryDirectory() as folder:
        source, fmu = Path(folder) / f"{module}.py", Path(folder) / path.name
        names = {"library": library, "base": base, "script": script.name, "name": path.stem}
        source.write_text(_SCRIPT.format(version=fmi, **names), encoding="utf-8")
        search, options = list(sys.path), dict.fromkeys(_OPTIONS[fmi], True)
        try:
            builder.build_FMU(source, folder, project_files=resources, **options)
        finally:
            sys.path[:] = search
            sys.modules.pop(module, None)
        return write_unit(path, fmu.read_bytes(), overwrite)


class _SteppedSlave:
    """The steps and the state of a slave; inputs take effect in the next step."""

    _simulator: Simulator
    _inputs: dict[str, float]
    _outputs: dict[str, float]

    def do_step(self, current_time: float, step_size: float) -> bool:
        count = round(step_size / self._simulator.steps.dt)
        if count < 1 or abs(count * self._simulator.steps.dt - step_size) > 1e-6 * step_size:
            dt = self._simulator.steps.dt
            raise InputError(f"step {step_size:g} s is not a multiple of dt = {dt:g} s")
        for _ in range(count):
            self._simulator.step(self._inputs)
        self._outputs = self._simulator.outputs
        return True

    def _get_fmu_state(self) -> dict[str, Any]:
        inputs, outputs = dict(self._inputs), dict(self._outputs)
        return {"snapshot": self._simulator.save(), "inputs": inputs, "outputs": outputs}

    def _set_fmu_state(self, state: dict[str, Any]) -> None:
        self._simulator.restore(state["snapshot"])
        self._inputs, self._outputs = dict(state["inputs"]), dict(state["outputs"])

    @staticmethod
    def _fmu_state_to_bytes(state: dict[str, Any]) -> bytes:
        return pickle.dumps(state)

    @staticmethod
    def _fmu_state_from_bytes(state: bytes) -> dict[str, Any]:
        loaded: dict[str, Any] = pickle.loads(state)
        return loaded


def slave_class(script: str, fmi: Literal[2, 3]) -> Any:
    """Return the class of a co-simulation slave for a script in the folder of resources."""
    library = importlib.import_module(_LIBRARIES[fmi][0])
    real = library.Real if fmi == 2 else library.Float64
    causality, variability = (
        getattr(library, f"Fmi{fmi}{name}") for name in ("Causality", "Variability")
    )

    class Slave(_SteppedSlave, getattr(library, _LIBRARIES[fmi][1])):  # type: ignore[misc]
        """A simulator as a slave."""

        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self._simulator = load_simulator(Path(self.resources) / script)
            self._inputs, self._outputs = self._simulator.inputs, self._simulator.outputs
            self.default_experiment = library.DefaultExperiment(step_size=self._simulator.steps.dt)
            for name in self._inputs:
                self._register(
                    name,
                    causality=causality.input,
                    getter=lambda name=name: self._inputs[name],
                    setter=lambda value, name=name: self._inputs.update({name: value}),
                )
            for name in self._outputs:
                self._register(
                    name,
                    causality=causality.output,
                    getter=lambda name=name: self._outputs[name],
                )
            if fmi == 3:  # FMI 3.0 requires the independent variable
                self._register(
                    "time",
                    causality=causality.independent,
                    getter=lambda: self._simulator.state.time,
                )

        def _register(self, name: str, **options: Any) -> None:
            variable = real(name, variability=variability.continuous, **options)
            self.register_variable(variable, nested=False)

        def to_xml(self, *options: Any) -> Element:
            """Add the initial unknowns to the description, because FMI 2.0 requires them."""
            root: Element = super().to_xml(*options)
            structure = root.find("ModelStructure")
            if fmi == 2 and structure is not None and self._outputs:
                unknowns = SubElement(structure, "InitialUnknowns")
                for k in range(len(self._outputs)):
                    SubElement(unknowns, "Unknown", index=str(len(self._inputs) + k + 1))
            return root

    return Slave
