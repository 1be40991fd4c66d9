"""Export of nonlinear mechanisms as functional mock-up units in C, which need no Python.

The unit contains the time steps of `kernels.mechanism_steps`, which numba compiles and
`translation` writes as C, and the arrays of the mechanism.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dolfinx_mbd.analyses.simulator import Simulator
from dolfinx_mbd.checks import choice, flag, instance
from dolfinx_mbd.io.export.compiled.lowering import steps_code
from dolfinx_mbd.io.export.compiled.tables import model_of
from dolfinx_mbd.io.export.fmi.c_unit import CUnit, Variables
from dolfinx_mbd.io.export.fmi.compilation import c_compiler, platform_folder
from dolfinx_mbd.io.export.fmi.names import checked_path, variable_names
from dolfinx_mbd.kernels.mechanism_steps.model import BUFFER_OF, BUFFERS, Model

__all__ = ["export_compiled_fmu"]

_NOT_NEGATIVE = ("stiffness", "damping", "length")
"""Fields of loads that must not be negative as inputs."""


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
    inputs, requests = simulator.inputs, [*simulator.inputs, *simulator.outputs]
    names = variable_names(requests)
    units = [simulator.units[request] for request in requests]
    variables = Variables(
        dict(zip(names, inputs.values(), strict=False)),
        names[len(inputs) :],
        dict(zip(names, units, strict=True)),
    )
    source = files("dolfinx_mbd.io.export.compiled") / "mechanism.c"
    sources = {
        "model.c": source.read_text(encoding="utf-8"),
        "data.h": _data(simulator, model_of(simulator)),
        "steps.c": steps_code(),
    }
    dt: float = simulator.steps.dt  # type: ignore[union-attr]
    return CUnit(path, sources, variables, dt, fmi).write(binary=binary, overwrite=overwrite)


# ---- arrays -------------------------------------------------------------------------------------
def _data(simulator: Simulator, model: Model) -> str:
    """Return the arrays of a model as C code; the arrays of a buffer follow each other in it."""
    sizes = dict.fromkeys(BUFFERS, 0)
    starts: dict[str, int] = {}
    values: dict[str, list[np.ndarray[Any, Any]]] = {name: [] for name in BUFFERS}
    for name, array in model._asdict().items():
        buffer = BUFFER_OF[name]
        starts[name] = sizes[buffer]
        sizes[buffer] += array.size
        values[buffer].append(array.ravel())
    flat = {name: np.concatenate(parts) for name, parts in values.items()}
    # Arrays have at most three dimensions
    shapes = [[*array.shape, 0, 0, 0][:3] for array in model]
    places = starts["parameters"] + model.places
    is_sign_checked = [name.rpartition(".")[2] in _NOT_NEGATIVE for name in simulator.inputs]
    definitions = {
        "INPUTS": len(simulator.inputs),
        "OUTPUTS": len(simulator.outputs),
        "ARRAYS": len(model),
        "STATE_SIZE": sizes["state"],
        "SCRATCH_SIZE": sizes["scratch"],
        "OUTPUTS_START": starts["outputs"],
        "TIME_PLACE": starts["now"],
    }
    lines = [f"#define {name} {number}" for name, number in definitions.items()]
    buffers = [BUFFERS.index(BUFFER_OF[name]) for name in Model._fields]
    lines += [
        _integers("BUFFERS", buffers),
        _integers("STARTS", starts.values()),
        _integers("SHAPES", np.ravel(shapes)),
        _integers("INPUT_PLACES", places),
        _integers("INPUT_SIGNS", is_sign_checked),
        _integers("INDICES", flat["indices"]),
        _doubles("CONSTANTS", flat["constants"]),
    ]
    for name in ("state", "scratch"):  # most numbers are zero
        nonzero = np.flatnonzero(flat[name])
        lines.append(_integers(f"{name.upper()}_PLACES", nonzero))
        lines.append(_doubles(f"{name.upper()}_NUMBERS", flat[name][nonzero]))
    return "\n".join([*lines, ""])


def _integers(name: str, values: Iterable[int]) -> str:
    """Return the definition of an array of integers in C."""
    text = ", ".join(str(int(x)) for x in values) or "0"
    return f"static const int64_t {name}[] = {{{text}}};"


def _doubles(name: str, values: Iterable[float]) -> str:
    """Return the definition of an array of numbers in C."""
    text = ", ".join(repr(float(x)) for x in values) or "0.0"
    return f"static const double {name}[] = {{{text}}};"
