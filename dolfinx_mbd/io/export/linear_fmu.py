"""Export of linearized mechanisms as functional mock-up units in C, which need no Python.

The unit (FMI 2.0, co-simulation) contains the source `state_space.c` and the matrices. Over a step
of length h with constant inputs u, the state x of ẋ = A x + B u changes exactly by

    x(t + h) = Φ x(t) + Γ u,    Φ = exp(A h),    Γ = ∫ exp(A s) ds B    (s from 0 to h).
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np
import scipy.signal

from dolfinx_mbd.analyses.linearized_system import LinearizedSystem
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import flag, instance, number
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.export.c_units import (
    archive,
    compiled_library,
    identifier_of,
    platform_folder,
)
from dolfinx_mbd.io.export.fmu import check_names, checked_path, write_unit

__all__ = ["export_linear_fmu"]

_SOURCE = "state_space.c"


def export_linear_fmu(
    linearized: LinearizedSystem,
    path: str | Path,
    *,
    dt: float,
    binary: bool = True,
    overwrite: bool = False,
) -> Path:
    """Export a linearized mechanism as an FMU in C (FMI 2.0, co-simulation), and return its path.

    Inputs and outputs are deviations from their values at the state of the linearization, and the
    unit starts at this state. The communication step of the importing program must be a multiple of
    `dt`. Inputs are constant over a communication step; for such inputs the result is exact.

    Args:
        linearized: Result of `linearize` with inputs and outputs.
        path: File to write, `.fmu`; its stem is the name of the model.
        dt: Step, s.
        binary: Whether to compile the source for this machine with the C compiler `cc`. Without a
            binary, the importing program must compile the source.
        overwrite: Whether to replace an existing file with other contents.

    Raises:
        InputError: The linearization has no inputs or outputs or grows too fast for the step, or
            the stem of the path is not an identifier.
        MissingFileError: There is no C compiler, or no binary can be made for this machine.
        SolverError: The compiler reports an error.
        OSError: The file cannot be written.

    Example:
        >>> from dolfinx_mbd.io.export.linear_fmu import export_linear_fmu
        >>> ground = mbd.Ground({"pin": mbd.Frame()})
        >>> bar = mbd.RigidBody("bar", 2.0, [0.1] * 3, (0, -1, 0), frames={"pin": mbd.Frame()})
        >>> pin = mbd.revolute("pin", ground.frame("pin"), bar.frame("pin"))
        >>> motor = mbd.JointLoad("motor", "pin", "rotation", 0.0)
        >>> system = mbd.System([ground, bar], [pin], loads=[motor], gravity=(0, -9.81, 0))
        >>> angle = {"angle": lambda run: run.joint("pin").rotation}
        >>> state = mbd.equilibrium(system)
        >>> linearized = mbd.linearize(system, state, inputs=["motor"], outputs=angle)
        >>> export_linear_fmu(linearized, "bar.fmu", dt=1e-3).name
        'bar.fmu'
    """
    instance("linearized", linearized, LinearizedSystem)
    dt = number("dt", dt, positive=True, unit="s")
    path = checked_path(path)
    flag("overwrite", overwrite)
    check_names(*linearized.inputs, *linearized.outputs)
    system = linearized.state_space()
    discrete = scipy.signal.cont2discrete((system.A, system.B, system.C, system.D), dt, "zoh")
    matrices = dict(zip(("PHI", "GAMMA", "C", "D"), discrete[:4], strict=True))
    if not all(np.isfinite(matrix).all() for matrix in matrices.values()):
        raise InputError(f"the motion grows without bound within dt = {dt:g} s", argument="dt")
    source = (files("dolfinx_mbd.io.export") / _SOURCE).read_text(encoding="utf-8")
    numbers = "".join(_definition(name, matrix) for name, matrix in matrices.items())
    guid = identifier_of(source, numbers, dt, path.stem, *linearized.inputs, *linearized.outputs)
    header = _header(matrices, dt, guid) + numbers
    contents = {f"sources/{_SOURCE}": source.encode(), "sources/matrices.h": header.encode()}
    contents["modelDescription.xml"] = _description(linearized, path.stem, matrices["D"], dt, guid)
    if flag("binary", binary):
        folder, suffix = platform_folder()
        sources = {_SOURCE: source, "matrices.h": header}
        library = compiled_library(_SOURCE, sources)
        contents[f"binaries/{folder}/{path.stem}{suffix}"] = library
    return write_unit(path, archive(contents), overwrite)


def _header(matrices: dict[str, Array], dt: float, guid: str) -> str:
    states, inputs = matrices["GAMMA"].shape
    sizes = {"STATES": states, "INPUTS": inputs, "OUTPUTS": len(matrices["C"])}
    lines = [f"#define {name} {size}" for name, size in sizes.items()]
    return "\n".join([*lines, f"#define DT {dt!r}", f'#define GUID "{guid}"', ""])


def _definition(name: str, matrix: Array) -> str:
    """Return a C array with the numbers of a matrix row by row."""
    rows = ",\n".join(", ".join(map(repr, row)) for row in np.asarray(matrix, float).tolist())
    return f"static const double {name}[] = {{\n{rows}}};\n"


def _description(
    linearized: LinearizedSystem, name: str, feedthrough: Array, dt: float, guid: str
) -> bytes:
    """Return the file `modelDescription.xml`."""
    root = Element(
        "fmiModelDescription",
        fmiVersion="2.0",
        modelName=name,
        guid=guid,
        generationTool="dolfinx_mbd",
        variableNamingConvention="structured",
    )
    options = ("canHandleVariableCommunicationStepSize", "canGetAndSetFMUstate")
    unit = SubElement(root, "CoSimulation", modelIdentifier=name)
    for option in (*options, "canSerializeFMUstate", "canNotUseMemoryManagementFunctions"):
        unit.set(option, "true")
    SubElement(SubElement(unit, "SourceFiles"), "File", name=_SOURCE)
    SubElement(root, "DefaultExperiment", stepSize=repr(dt))
    variables, structure = SubElement(root, "ModelVariables"), Element("ModelStructure")
    outputs = SubElement(structure, "Outputs")
    unknowns = SubElement(structure, "InitialUnknowns")
    common = {"variability": "continuous"}
    for k, label in enumerate((*linearized.inputs, *linearized.outputs)):
        row = k - len(linearized.inputs)
        causality = "input" if row < 0 else "output"
        item = {"name": label, "valueReference": str(k), "causality": causality}
        variable = SubElement(variables, "ScalarVariable", item | common)
        SubElement(variable, "Real", {"start": "0.0"} if row < 0 else {})
        if row >= 0:
            dependencies = " ".join(str(j + 1) for j in np.flatnonzero(feedthrough[row]))
            SubElement(outputs, "Unknown", index=str(k + 1), dependencies=dependencies)
            SubElement(unknowns, "Unknown", index=str(k + 1), dependencies=dependencies)
    root.append(structure)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root)
