"""Export of nonlinear mechanisms as functional mock-up units in C, which need no Python.

The unit contains the time steps of `kernels.mechanism_steps`, which numba compiles and
`translation` writes as C, and the arrays of the mechanism.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np

from dolfinx_mbd.analyses.simulator import Simulator
from dolfinx_mbd.checks import choice, flag, instance, reject
from dolfinx_mbd.io.export.c_units import (
    archive,
    c_compiler,
    compiled_library,
    identifier_of,
    platform_folder,
)
from dolfinx_mbd.io.export.compiled.lowering import steps_code
from dolfinx_mbd.io.export.compiled.tables import model_of
from dolfinx_mbd.io.export.fmu import check_names, checked_path, write_unit
from dolfinx_mbd.io.export.fmu_slave import _add_units
from dolfinx_mbd.kernels.mechanism_steps.model import BUFFER_OF, BUFFERS, Model

__all__ = ["export_compiled_fmu"]

_NOT_NEGATIVE = ("stiffness", "damping", "length")


def export_compiled_fmu(
    simulator: Simulator,
    path: str | Path,
    *,
    fmi: Literal[2, 3] = 2,
    binary: bool = True,
    overwrite: bool = False,
) -> Path:
    """Export a simulator as an FMU in C for co-simulation, and return its path.

    The unit starts at the present state of the simulator and takes the same steps: values differ
    only by round-off within the tolerance of the steps. The machine that runs it needs no Python.
    The communication step of the importing program must be a multiple of the step of the simulator;
    the FMU discards other steps and keeps its state. Inputs act from the beginning of a
    communication step.

    The mechanism may have rigid bodies, reduced flexible bodies and the ground; joints that
    constrain relative motions of two frames; drivers with a constant speed or as inputs; joint
    loads, forces and torques of constant value or as inputs; and `JointSpring` and `SpringDamper`
    without a law. Outputs are names: parts of the state of a body, and force, moment, motion and
    rate of a joint or driver. Spaces in names become underscores.

    Args:
        simulator: The simulator, with steps of equal length.
        path: File to write, `.fmu`; its stem is the name of the model.
        fmi: Version of the standard: 2 (FMI 2.0) or 3 (FMI 3.0).
        binary: Whether to compile the source for this machine with the C compiler `cc`. Without a
            binary, the importing program must compile the source.
        overwrite: Whether to replace an existing file with other contents.

    Raises:
        InputError: The mechanism has parts or outputs that cannot be exported (the message names
            all of them), a driver rotates by half a turn or more in a step, or the stem of the
            path or a name is not an identifier.
        MissingFileError: numba or the C compiler is not installed.
        SolverError: The compilation failed.
        OSError: The file cannot be written.

    Example:
        >>> simulator = mbd.Simulator(pendulum, dt=1e-3, outputs=["pin.rotation"])
        >>> mbd.io.export.compiled.export_compiled_fmu(simulator, "swing.fmu").name
        'swing.fmu'
    """
    instance("simulator", simulator, Simulator)
    choice("fmi", fmi, (2, 3))
    path = checked_path(path)
    flag("overwrite", overwrite)
    if flag("binary", binary):
        platform_folder(fmi)
        c_compiler()
    names = _variables(simulator)
    check_names(*names)
    for k, name in enumerate(names):
        if name == "time" or name in names[:k]:
            reject("name of an input or output", name, "names that differ, and not 'time'")
    model, folder = model_of(simulator), files("dolfinx_mbd.io.export.compiled")
    main = f"fmi{fmi}.c"
    sources = {name: (folder / name).read_text(encoding="utf-8") for name in ("mechanism.c", main)}
    sources["steps.c"] = steps_code()
    data = _data(simulator, model)
    identifier = identifier_of(*sources.values(), data, path.stem, *names)
    sources["data.h"] = f'#define IDENTIFIER "{identifier}"\n{data}'
    description = _Description(simulator, path.stem, identifier, fmi)
    contents = {f"sources/{name}": text.encode() for name, text in sources.items()}
    contents["modelDescription.xml"] = description.text()
    if fmi == 3:
        contents["sources/buildDescription.xml"] = _build_description(path.stem, main)
    if binary:
        place, suffix = platform_folder(fmi)
        library = compiled_library(main, sources)
        contents[f"binaries/{place}/{path.stem}{suffix}"] = library
    return write_unit(path, archive(contents), overwrite)


def _variables(simulator: Simulator) -> list[str]:
    """Return the names of the inputs and outputs in the unit: without spaces."""
    return [name.replace(" ", "_") for name in (*simulator.inputs, *simulator.outputs)]


# ---- arrays -------------------------------------------------------------------------------------
def _data(simulator: Simulator, model: Model) -> str:
    """Return the arrays as C code."""
    sizes = dict.fromkeys(BUFFERS, 0)
    starts: dict[str, int] = {}
    values: dict[str, list[np.ndarray[Any, Any]]] = {name: [] for name in BUFFERS}
    for name, array in model._asdict().items():
        buffer = BUFFER_OF[name]
        starts[name] = sizes[buffer]
        sizes[buffer] += array.size
        values[buffer].append(array.ravel())
    flat = {name: np.concatenate(parts) for name, parts in values.items()}
    shapes = [[*array.shape, 0, 0, 0][:3] for array in model]
    places = starts["parameters"] + model.places
    signs = [int(name.rpartition(".")[2] in _NOT_NEGATIVE) for name in simulator.inputs]
    numbers = {
        "INPUTS": len(simulator.inputs),
        "OUTPUTS": len(simulator.outputs),
        "ARRAYS": len(model),
        "STATE_SIZE": sizes["state"],
        "SCRATCH_SIZE": sizes["scratch"],
        "OUTPUTS_START": starts["outputs"],
        "TIME_PLACE": starts["now"],
    }
    lines = [f"#define {name} {number}" for name, number in numbers.items()]
    lines.append(f"#define DT {simulator.steps.dt!r}")  # type: ignore[union-attr]
    buffers = [BUFFERS.index(BUFFER_OF[name]) for name in Model._fields]
    lines += [
        _integers("BUFFERS", buffers),
        _integers("STARTS", starts.values()),
        _integers("SHAPES", np.ravel(shapes)),
        _integers("INPUT_PLACES", places),
        _integers("INPUT_SIGNS", signs),
        _integers("INDICES", flat["indices"]),
        _doubles("CONSTANTS", flat["constants"]),
    ]
    for name in ("state", "scratch"):  # most numbers are zero
        nonzero = np.flatnonzero(flat[name])
        lines.append(_integers(f"{name.upper()}_PLACES", nonzero))
        lines.append(_doubles(f"{name.upper()}_NUMBERS", flat[name][nonzero]))
    return "\n".join([*lines, ""])


def _integers(name: str, values: Iterable[int]) -> str:
    text = ", ".join(str(int(x)) for x in values) or "0"
    return f"static const int64_t {name}[] = {{{text}}};"


def _doubles(name: str, values: Iterable[float]) -> str:
    text = ", ".join(repr(float(x)) for x in values) or "0.0"
    return f"static const double {name}[] = {{{text}}};"


# ---- description --------------------------------------------------------------------------------
class _Description:
    """The file `modelDescription.xml`."""

    def __init__(self, simulator: Simulator, name: str, identifier: str, fmi: int) -> None:
        self._simulator, self._name, self._fmi = simulator, name, fmi
        attributes = {"guid" if fmi == 2 else "instantiationToken": identifier}
        attributes |= {"fmiVersion": f"{fmi}.0", "modelName": name, "generationTool": "dolfinx_mbd"}
        self._root = Element(
            "fmiModelDescription", attributes, variableNamingConvention="structured"
        )

    def text(self) -> bytes:
        """Return the contents of the file."""
        simulator, root, fmi = self._simulator, self._root, self._fmi
        unit = SubElement(root, "CoSimulation", modelIdentifier=self._name)
        state = "FMUstate" if fmi == 2 else "FMUState"
        options = "canHandleVariableCommunicationStepSize", f"canGetAndSet{state}"
        for option in (*options, f"canSerialize{state}"):
            unit.set(option, "true")
        dt = repr(simulator.steps.dt)  # type: ignore[union-attr]
        if fmi == 2:
            unit.set("canNotUseMemoryManagementFunctions", "true")
            SubElement(SubElement(unit, "SourceFiles"), "File", name="fmi2.c")
        else:
            unit.set("fixedInternalStepSize", dt)
        SubElement(root, "DefaultExperiment", stepSize=dt)
        variables, structure = SubElement(root, "ModelVariables"), Element("ModelStructure")
        outputs = SubElement(structure, "Outputs") if fmi == 2 else structure
        names, starts = _variables(simulator), [*simulator.inputs.values()]
        for k, name in enumerate(names):
            start = starts[k] if k < len(starts) else None
            self._variable(variables, name, k, "output" if start is None else "input", start)
            if start is None and fmi == 2:
                SubElement(outputs, "Unknown", index=str(k + 1))
            elif start is None:
                SubElement(outputs, "Output", valueReference=str(k))
        self._variable(variables, "time", len(names), "independent", None)
        unknowns = range(len(simulator.inputs), len(names))
        if fmi == 2 and len(unknowns):
            initial = SubElement(structure, "InitialUnknowns")
            for k in unknowns:
                SubElement(initial, "Unknown", index=str(k + 1))
        for k in unknowns if fmi == 3 else ():
            SubElement(structure, "InitialUnknown", valueReference=str(k))
        root.append(structure)
        units = {name.replace(" ", "_"): unit for name, unit in simulator.units.items()}
        _add_units(root, units | {"time": "s"})
        return b'<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root)

    def _variable(
        self, variables: Element, name: str, place: int, causality: str, start: float | None
    ) -> None:
        attributes = {"name": name, "valueReference": str(place), "causality": causality}
        attributes["variability"] = "continuous"
        number = {} if start is None else {"start": repr(start)}
        if self._fmi == 2:
            SubElement(SubElement(variables, "ScalarVariable", attributes), "Real", number)
        else:
            SubElement(variables, "Float64", attributes | number)


def _build_description(name: str, main: str) -> bytes:
    """Return the file `buildDescription.xml` of FMI 3.0."""
    root = Element("fmiBuildDescription", fmiVersion="3.0")
    build = SubElement(root, "BuildConfiguration", modelIdentifier=name)
    SubElement(SubElement(build, "SourceFileSet", language="C99"), "SourceFile", name=main)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root)
