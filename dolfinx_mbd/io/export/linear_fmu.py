"""Export of linearized mechanisms as functional mock-up units in C, which need no Python.

The unit contains the source `state_space.c` and the matrices. Over a step of length h with constant
inputs u, the state x of ẋ = A x + B u changes exactly by

    x(t + h) = Φ x(t) + Γ u,    Φ = exp(A h),    Γ = ∫ exp(A s) ds B    (s from 0 to h).
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Literal

import numpy as np
import scipy.signal

from dolfinx_mbd.analyses.linearized_system import LinearizedSystem
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import choice, flag, instance, number
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.export.fmi.c_unit import CUnit, Variables
from dolfinx_mbd.io.export.fmi.names import checked_path, variable_names

__all__ = ["export_linear_fmu"]


def export_linear_fmu(
    linearized: LinearizedSystem,
    path: str | Path,
    *,
    dt: float,
    fmi: Literal[2, 3] = 2,
    binary: bool = True,
    overwrite: bool = False,
) -> Path:
    """Export a linearized mechanism as an FMU in C for co-simulation, and return its path.

    Inputs and outputs are deviations from their values at the state of the linearization, and the
    unit starts at this state. The communication step of the importing program must be a multiple of
    `dt`. Inputs are constant over a communication step; for such inputs the result is exact.

    Args:
        linearized: Result of `linearize` with inputs and outputs.
        path: File to write, `.fmu`; its stem is the name of the model.
        dt: Step, s.
        fmi: Version of the standard: 2 (FMI 2.0) or 3 (FMI 3.0).
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
    choice("fmi", fmi, (2, 3))
    flag("binary", binary)
    flag("overwrite", overwrite)
    system = linearized.state_space()
    # For inputs that are constant over a step (zero-order hold)
    discrete = scipy.signal.cont2discrete((system.A, system.B, system.C, system.D), dt, "zoh")
    matrices = dict(zip(("PHI", "GAMMA", "C", "D"), discrete[:4], strict=True))
    if not all(np.isfinite(matrix).all() for matrix in matrices.values()):
        raise InputError(f"the motion grows without bound within dt = {dt:g} s", argument="dt")
    source = files("dolfinx_mbd.io.export") / "state_space.c"
    sources = {"model.c": source.read_text(encoding="utf-8"), "data.h": _data(matrices)}
    names = variable_names([*linearized.inputs, *linearized.outputs])
    inputs, outputs = names[: len(linearized.inputs)], names[len(linearized.inputs) :]
    dependencies = {
        name: [inputs[k] for k in np.flatnonzero(row)]
        for name, row in zip(outputs, matrices["D"], strict=True)
    }
    variables = Variables(dict.fromkeys(inputs, 0.0), outputs, dependencies=dependencies)
    return CUnit(path, sources, variables, dt, fmi).write(binary=binary, overwrite=overwrite)


def _data(matrices: dict[str, Array]) -> str:
    """Return C code with the sizes and the matrices."""
    states, inputs = matrices["GAMMA"].shape
    sizes = {"STATES": states, "INPUTS": inputs, "OUTPUTS": len(matrices["C"])}
    lines = [f"#define {name} {size}\n" for name, size in sizes.items()]
    return "".join([*lines, *(_definition(name, matrix) for name, matrix in matrices.items())])


def _definition(name: str, matrix: Array) -> str:
    """Return a C array with the numbers of a matrix row by row."""
    rows = ",\n".join(", ".join(map(repr, row)) for row in np.asarray(matrix, float).tolist())
    return f"static const double {name}[] = {{\n{rows}}};\n"
