"""The command that exports a simulator as a functional mock-up unit."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add `export-fmu` to the commands."""
    text = "Export the mbd.Simulator that the function simulator() of a script returns (FMI 2.0)."
    parser = commands.add_parser(
        "export-fmu", help="export a mechanism for co-simulation", description=text
    )
    parser.add_argument("script", help="a Python script with a function simulator()")
    parser.add_argument("-o", "--output", required=True, help="file to write, for example arm.fmu")
    text = "a file or folder that the script reads; may be repeated"
    parser.add_argument("--with", dest="files", action="append", default=[], help=text)
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.set_defaults(run=_export_fmu)


def _export_fmu(options: argparse.Namespace) -> int:
    from dolfinx_mbd.export.fmu import export_fmu

    path = export_fmu(options.script, options.output, files=options.files, overwrite=options.force)
    print(f"wrote {path}")
    return 0
