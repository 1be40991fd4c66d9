"""The command that exports a simulator as a functional mock-up unit."""

from __future__ import annotations

import argparse
from typing import Any

from dolfinx_mbd.errors import InputError

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add `export-fmu` to the commands."""
    text = "Export the mbd.Simulator that the function simulator() of a script returns."
    parser = commands.add_parser(
        "export-fmu", help="export a mechanism for co-simulation", description=text
    )
    parser.add_argument("script", help="a Python script with a function simulator()")
    parser.add_argument("-o", "--output", required=True, help="file to write, for example arm.fmu")
    text = "version of the standard FMI (default 2)"
    parser.add_argument("--fmi", type=int, choices=(2, 3), default=2, help=text)
    text = (
        "export the mbd.LinearizedSystem that the function linearization() of the script returns "
    )
    text += "as C code with a step of DT seconds, which needs no Python"
    parser.add_argument("--linear", type=float, metavar="DT", help=text)
    text = "export the simulator as C code, which needs no Python"
    parser.add_argument("--compiled", action="store_true", help=text)
    text = "a file or folder that the script reads; may be repeated"
    parser.add_argument("--with", dest="files", action="append", default=[], help=text)
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.set_defaults(run=_export_fmu)


def _export_fmu(options: argparse.Namespace) -> int:
    """Write an FMU of a simulator in Python or C, or of a linearized system in C."""
    from dolfinx_mbd.analyses import LinearizedSystem
    from dolfinx_mbd.io.export.compiled import export_compiled_fmu
    from dolfinx_mbd.io.export.fmu import export_fmu, load_simulator, value_in_script
    from dolfinx_mbd.io.export.linear_fmu import export_linear_fmu

    if options.compiled and (options.files or options.linear is not None):
        raise InputError("--compiled needs no files and no linearization: omit --with and --linear")
    if options.compiled:
        path = export_compiled_fmu(
            load_simulator(options.script), options.output, fmi=options.fmi, overwrite=options.force
        )
        print(f"wrote {path}")
        return 0
    if options.linear is not None:
        if options.files:
            raise InputError("--linear needs no files: omit --with")
        linearized = value_in_script(options.script, "linearization", LinearizedSystem)
        path = export_linear_fmu(
            linearized,
            options.output,
            dt=options.linear,
            fmi=options.fmi,
            overwrite=options.force,
        )
        print(f"wrote {path}")
        return 0
    settings = {"fmi": options.fmi, "files": options.files, "overwrite": options.force}
    path = export_fmu(options.script, options.output, **settings)
    print(f"wrote {path}")
    return 0
