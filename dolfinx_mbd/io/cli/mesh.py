"""The command `dolfinx-mbd mesh` for parametric connecting rods and parts from CAD files."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.geometry import ConnectingRod, StepPart, step_surfaces
from dolfinx_mbd.io.cli.option_values import add_force, assignments, length, numbers, output_path


def add_to(commands: Any) -> None:
    """Add `mesh` to the commands."""
    parser = commands.add_parser("mesh", help="mesh a connecting rod, or a part from CAD")
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)
    _add_rod(parts)
    _add_step(parts)


def _add_rod(parts: Any) -> None:
    """Add `mesh rod`, with an option for each dimension of a rod."""
    rod = parts.add_parser(
        "rod",
        help="a parametric connecting rod",
        description="Mesh a connecting rod with the interfaces big_end and small_end. "
        "Lengths are in metres, or have a unit, for example 5mm.",
    )
    descriptions = _descriptions(ConnectingRod)
    for field in fields(ConnectingRod):
        option = "--" + field.name.replace("_", "-")
        text = descriptions.get(field.name, "")
        if isinstance(field.default, bool):
            rod.add_argument(option, action="store_true", help=text)
            continue
        is_count = isinstance(field.default, int)
        kind, metavar = (int, "N") if is_count else (length, "LENGTH")
        text = f"{text} (default {field.default:g})"
        rod.add_argument(option, type=kind, default=field.default, metavar=metavar, help=text)
    rod.add_argument("-o", "--output", default="rod.msh", help="file to write (default rod.msh)")
    add_force(rod)
    rod.set_defaults(run=_rod)


def _add_step(parts: Any) -> None:
    """Add `mesh step`."""
    step = parts.add_parser(
        "step",
        help="a part from a STEP file",
        description="Mesh the solids of a STEP file. Surfaces and solids have numbers; --list "
        "prints the numbers of the surfaces.",
    )
    add = step.add_argument
    add("file", help="the STEP file")
    add("--list", action="store_true", help="list the surfaces; write no file")
    lists: dict[str, Any] = {"action": "append", "default": [], "metavar": "NAME=NUMBERS"}
    text = "interface on these surfaces, for example pin=3,7-9; repeat it for each interface"
    add("--interface", **lists, help=text)
    text = "group of these solids, for several materials (default: 'part' for all solids)"
    add("--volume", **lists, help=text)
    text = "largest size of an element, for example 5mm or 0.005 (default: 1/20 of the part)"
    add("--size", type=length, metavar="LENGTH", help=text)
    text = "order of the elements, 1 (straight) or 2 (curved, default)"
    add("--order", type=int, default=2, choices=(1, 2), help=text)
    add("-o", "--output", help="file to write (default: name of the STEP file with .msh)")
    add_force(step)
    step.set_defaults(run=_step)


def _rod(options: argparse.Namespace) -> int:
    """Mesh a connecting rod."""
    rod = ConnectingRod(**{f.name: getattr(options, f.name) for f in fields(ConnectingRod)})
    return _write(rod, options.output, None, options.force)


def _step(options: argparse.Namespace) -> int:
    """Mesh the part of a STEP file, or print its surfaces with --list."""
    if options.list:
        from mpi4py import MPI

        from dolfinx_mbd.parallel import on_rank_zero

        print(on_rank_zero(MPI.COMM_WORLD, lambda: _table(options.file)))
        return 0
    part = StepPart(
        path=options.file,
        interfaces=_named_numbers(options.interface, "--interface"),
        volumes=_named_numbers(options.volume, "--volume") or None,
        size=options.size,
        order=options.order,
    )
    return _write(part, options.output, options.file, options.force)


def _write(builder: Any, output: str | None, source: str | None, force: bool) -> int:
    """Build a mesh and write it to a file."""
    from mpi4py import MPI

    from dolfinx_mbd.fem.meshing import write_mesh
    from dolfinx_mbd.parallel import on_rank_zero

    path = output_path(output, source, ".msh")
    on_rank_zero(MPI.COMM_WORLD, lambda: write_mesh(builder, path, overwrite=force))
    print(f"wrote {path}")
    return 0


def _named_numbers(words: list[str], option: str) -> dict[str, list[int]]:
    """Return the whole numbers by name of an option with texts `NAME=NUMBERS`."""
    try:
        return {name: numbers(text) for name, text in assignments(words, option).items()}
    except argparse.ArgumentTypeError as error:
        raise InputError(f"{option}: {error}", argument=option, value=words) from None


def _table(file: str) -> str:
    """Return a table of the surfaces of a STEP file."""
    lines = ["number  kind              area (mm²)  radius (mm)  centre (mm)"]
    for s in step_surfaces(file):
        radius = "" if s.radius is None else f"{1e3 * s.radius:.6g}"
        centre = ", ".join(f"{1e3 * x + 0.0:.6g}" for x in s.centre)  # + 0.0: no "-0"
        lines.append(f"{s.number:6d}  {s.kind:<16} {1e6 * s.area:11.6g}  {radius:>11}  ({centre})")
    return "\n".join(lines)


def _descriptions(dataclass: Any) -> Mapping[str, str]:
    """Return the texts of the attributes in the docstring of a dataclass as help of options."""
    text = (inspect.getdoc(dataclass) or "").partition("Attributes:")[2].partition("Raises:")[0]
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", text, re.MULTILINE)
    texts = {name: " ".join(words.split()).rstrip(".") for name, words in entries}
    # argparse formats help with %
    return {name: (s[0].lower() + s[1:]).replace("%", "%%") for name, s in texts.items()}
