"""Co-simulation slaves: the classes that PythonFMU runs inside a functional mock-up unit."""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import importlib
import io
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from dolfinx_mbd.analyses.simulator import Simulator
from dolfinx_mbd.archive import Kind, archive_writer, read_archive_file
from dolfinx_mbd.dynamics.stepping.run import Snapshot
from dolfinx_mbd.dynamics.stepping.step_control import steps_from
from dolfinx_mbd.errors import FileError, InputError, MbdWarning, warn
from dolfinx_mbd.io.export.fmi.names import variable_names
from dolfinx_mbd.io.export.fmi.variable_units import add_units
from dolfinx_mbd.io.export.fmu import LIBRARIES, load_simulator
from dolfinx_mbd.results.files.run_files import state_arrays, state_from

__all__ = ["slave_class"]

_STATE = Kind("dolfinx_mbd FMU state", "state of an FMU", 2)
_DIGEST_SIZE = hashlib.sha256().digest_size  # bytes


class _SteppedSlave:
    """The steps and the state of a slave; inputs take effect in the next step."""

    _simulator: Simulator
    _inputs: dict[str, float]
    _outputs: dict[str, float]
    _discarded: Any  # status of a step that is discarded
    _logs: bool  # whether importing programs receive messages without asking for them
    log: Any

    def do_step(self, current_time: float, step_size: float) -> bool:
        """Take a communication step, or discard it and keep the present state."""
        before = self._simulator.save()
        try:
            dt = self._simulator.steps.dt
            count = round(step_size / dt)
            if count < 1 or abs(count * dt - step_size) > 1e-6 * step_size:
                raise InputError(f"step {step_size:g} s is not a multiple of dt = {dt:g} s")
            for _ in range(count):
                self._simulator.step(self._inputs)
            self._outputs = self._simulator.outputs
        except Exception as error:  # after an exception, PythonFMU would end the simulation
            self._simulator.restore(before)
            text = str(error) or type(error).__name__
            self.log(text, self._discarded)
            if not self._logs:
                warn(MbdWarning(f"the step at t = {current_time:g} s is discarded: {text}"))
            return False
        return True

    def _get_fmu_state(self) -> dict[str, Any]:
        """Return a snapshot of the simulator, and the values of inputs and outputs."""
        inputs, outputs = dict(self._inputs), dict(self._outputs)
        return {"snapshot": self._simulator.save(), "inputs": inputs, "outputs": outputs}

    def _set_fmu_state(self, state: dict[str, Any] | bytes) -> None:
        """Return to a state from `_get_fmu_state`, which may be serialized."""
        try:
            if isinstance(state, bytes):
                state = _state_from(state)
            self._simulator.restore(state["snapshot"])
            self._inputs, self._outputs = dict(state["inputs"]), dict(state["outputs"])
        except Exception:
            # PythonFMU releases these objects after an exception, and again with the instance
            for item in (type(self), self, self.log_queue):  # type: ignore[attr-defined]
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(item))
            raise

    @staticmethod
    def _fmu_state_to_bytes(state: dict[str, Any] | bytes) -> bytes:
        """Return a serialized state."""
        return state if isinstance(state, bytes) else _state_bytes(state)

    @staticmethod
    def _fmu_state_from_bytes(state: bytes) -> bytes:
        """Return the bytes of a serialized state."""
        return bytes(state)  # `_set_fmu_state` reads and checks them


def _state_bytes(state: dict[str, Any]) -> bytes:
    """Return a state as an archive of numbers, followed by the SHA-256 digest of the archive."""
    snapshot: Snapshot = state["snapshot"]
    header = {
        "inputs": state["inputs"],
        "outputs": state["outputs"],
        "steps": snapshot.steps.record(),
        "values": snapshot.inputs,
        "origin": snapshot.origin,
    }
    stepper = {f"stepper_{key}": np.asarray(value) for key, value in snapshot.stepper.items()}
    file = io.BytesIO()
    archive_writer(_STATE, header, state_arrays("now", snapshot.state) | stepper)(file)
    data = file.getvalue()
    return data + hashlib.sha256(data).digest()


def _state_from(data: bytes) -> dict[str, Any]:
    """Return the state in an archive; a damaged archive raises a `FileError`."""
    data, digest = data[:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
    if hashlib.sha256(data).digest() != digest:
        raise FileError("the serialized state is damaged: it does not match its checksum")
    header, arrays = read_archive_file(io.BytesIO(data), len(data), _STATE, "serialized state")
    prefix = "stepper_"
    stepper = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
    values, origin = tuple(map(float, header["values"])), header["origin"]
    snapshot = Snapshot(
        state_from("now", arrays), steps_from(header["steps"]), stepper, values, origin
    )
    return {"snapshot": snapshot, "inputs": header["inputs"], "outputs": header["outputs"]}


def slave_class(script: str, fmi: Literal[2, 3]) -> Any:
    """Return the class of a co-simulation slave for a script in the folder of resources."""
    library = importlib.import_module(LIBRARIES[fmi].package)
    real = library.Real if fmi == 2 else library.Float64
    enums = importlib.import_module(f"{library.__name__}.enums")
    causality, variability, status = (
        getattr(enums, f"Fmi{fmi}{name}") for name in ("Causality", "Variability", "Status")
    )

    class Slave(_SteppedSlave, getattr(library, LIBRARIES[fmi].base)):  # type: ignore[misc]
        """A simulator as a slave."""

        _discarded, _logs = status.discard, fmi == 3

        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            _empty_at_exit(Path(self.resources).parent / "binaries", type(self).__name__)
            self._simulator = load_simulator(Path(self.resources) / script)
            self._inputs, self._outputs = self._simulator.inputs, self._simulator.outputs
            self.default_experiment = library.DefaultExperiment(step_size=self._simulator.steps.dt)
            requests = [*self._inputs, *self._outputs]
            self._names = dict(zip(requests, variable_names(requests), strict=True))
            for name in self._inputs:
                self._register(
                    self._names[name],
                    causality=causality.input,
                    getter=lambda name=name: self._inputs[name],
                    setter=lambda value, name=name: self._inputs.update({name: value}),
                )
            for name in self._outputs:
                self._register(
                    self._names[name],
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
            """Register a real variable that changes continuously."""
            variable = real(name, variability=variability.continuous, **options)
            self.register_variable(variable, nested=False)

        def to_xml(self, *options: Any) -> Element:
            """Add units, the initial unknowns of FMI 2.0 and the step of FMI 3.0."""
            root: Element = super().to_xml(*options)
            structure, unit = root.find("ModelStructure"), root.find("CoSimulation")
            if fmi == 2 and structure is not None and self._outputs:
                unknowns = SubElement(structure, "InitialUnknowns")
                for k in range(len(self._outputs)):
                    SubElement(unknowns, "Unknown", index=str(len(self._inputs) + k + 1))
            if unit is not None:
                unit.set("canHandleVariableCommunicationStepSize", "true")
                if fmi == 3:
                    unit.set("fixedInternalStepSize", repr(self._simulator.steps.dt))
            units = {self._names[name]: unit for name, unit in self._simulator.units.items()}
            add_units(root, units | ({"time": "s"} if fmi == 3 else {}))
            return root

    return Slave


# ---- end of the process -------------------------------------------------------------------------
_REGISTERED: set[str] = set()
"""Libraries whose pointers are set to null at the end of the process."""


def _empty_at_exit(binaries: Path, name: str) -> None:
    """Set the static pointer of the library of an FMU to null before the process ends.

    PythonFMU's library shares its interpreter state through a static pointer. At the end of the
    process, the destructor of this pointer deletes the state, and the library then sets the pointer
    to null, which writes to deleted memory; whether this ends the process with an error depends on
    the memory of all other libraries. A null pointer causes no error.
    """
    for path in _libraries(binaries, name):
        # Errors: the library is not loaded, or has no such function
        with suppress(OSError, AttributeError):
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD)
            atexit.register(library.finalizePythonInterpreter)
            _REGISTERED.add(path)


def _libraries(binaries: Path, name: str) -> Iterable[str]:
    """Return the libraries of an FMU that are not registered yet."""
    if not hasattr(os, "RTLD_NOLOAD"):  # Windows resets the pointer before its destructor
        return []
    return [path for path in map(str, binaries.glob(f"*/{name}.so")) if path not in _REGISTERED]
