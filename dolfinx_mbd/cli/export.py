"""The command `dolfinx-mbd export`, which writes a reduced body for another program."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.cli.values import add_force, assignments, output_path, setting
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.export import FORMATS, UNITS
from dolfinx_mbd.export import export as export_body

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add `export` to the commands."""
    formats = "\n".join(f"  {f.name:<10} {f.title} (*{f.extension})" for f in FORMATS.values())
    parser = commands.add_parser(
        "export",
        help="write a body for another program",
        description="Write a reduced body for another program, and list the data that its format "
        "cannot contain.",
        epilog=f"formats:\n{formats}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", help="a reduced body (.npz)")
    text = "format; see below"
    add("--to", required=True, choices=tuple(FORMATS), metavar="FORMAT", help=text)
    text = "units of the numbers in the file (default m-kg-s)"
    add("--units", default="m-kg-s", choices=tuple(UNITS), help=text)
    text = "option of the format, for example dialect=fembeam for sid"
    add("--option", action="append", default=[], metavar="NAME=VALUE", help=text)
    text = "file to write (default: name of the input file with the suffix of the format)"
    add("-o", "--output", help=text)
    add_force(parser)
    parser.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> int:
    body = ReducedBody.load(options.file)
    suffix = FORMATS[options.to].extension
    if suffix == Path(options.file).suffix:
        suffix = f"-{options.to}{suffix}"
    path = output_path(options.output, options.file, suffix)
    settings = {k: setting(v) for k, v in assignments(options.option, "--option").items()}
    common = {"units": options.units, "overwrite": options.force}
    try:
        report = export_body(body, path, options.to, **common, **settings)
    except TypeError as error:
        raise InputError(f"--option: {error}") from error
    print(report)
    return 0
