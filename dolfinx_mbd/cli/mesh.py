"""`dolfinx-mbd mesh`: the parametric connecting rod, and parts from CAD."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dolfinx_mbd.cli.values import assignments, numbers, output_path
from dolfinx_mbd.geometry import ConnectingRod, StepPart, step_surfaces

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add `mesh` to the commands."""
    parser = commands.add_parser("mesh", help="mesh a connecting rod, or a part from CAD")
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)
    rod = parts.add_parser(
        "rod",
        help="a parametric connecting rod",
        description="Mesh a connecting rod with the interfaces big_end and small_end. "
        "Lengths are in metres.",
    )
    described = _described(ConnectingRod)
    for field in fields(ConnectingRod):
        option = "--" + field.name.replace("_", "-")
        told = described.get(field.name, "")
        if isinstance(field.default, bool):
            rod.add_argument(option, action="store_true", help=told)
            continue
        rod.add_argument(
            option,
            type=int if isinstance(field.default, int) else float,
            default=field.default,
            metavar="N" if isinstance(field.default, int) else "M",
            help=f"{told} (default {field.default:g})",
        )
    rod.add_argument("-o", "--output", default="rod.msh", help="file to write (default rod.msh)")
    rod.set_defaults(run=_rod)

    step = parts.add_parser(
        "step",
        help="a part from a STEP file",
        description="Mesh the solids of a STEP file. Its surfaces go by number: --list shows them.",
    )
    step.add_argument("file", help="the STEP file")
    step.add_argument("--list", action="store_true", help="list the surfaces and stop")
    step.add_argument(
        "--interface",
        action="append",
        default=[],
        metavar="NAME=NUMBERS",
        help="name surfaces, for instance pin=3,7-9; once for each interface",
    )
    step.add_argument(
        "--volume",
        action="append",
        default=[],
        metavar="NAME=NUMBERS",
        help="name solids, for several materials (default: all are 'part')",
    )
    step.add_argument("--size", type=float, metavar="M", help="largest size of an element, m")
    step.add_argument("--order", type=int, default=2, choices=(1, 2), help="default 2 (curved)")
    step.add_argument("-o", "--output", help="file to write (default: the part's name, .msh)")
    step.set_defaults(run=_step)


def _rod(options: argparse.Namespace) -> int:
    rod = ConnectingRod(**{f.name: getattr(options, f.name) for f in fields(ConnectingRod)})
    return _write(rod, options.output, "rod.msh")


def _step(options: argparse.Namespace) -> int:
    if options.list:
        from mpi4py import MPI

        if MPI.COMM_WORLD.rank == 0:
            print(_table(options.file))
        return 0
    part = StepPart(
        path=options.file,
        interfaces=_numbered(options.interface, "--interface"),
        volumes=_numbered(options.volume, "--volume") or None,
        size=options.size,
        order=options.order,
    )
    return _write(part, options.output, options.file)


def _write(builder: Any, output: str | None, source: str) -> int:
    from mpi4py import MPI

    from dolfinx_mbd.analysis.meshing import on_rank_zero, write_mesh

    path = output_path(output, source, ".msh")
    on_rank_zero(MPI.COMM_WORLD, lambda: write_mesh(builder, path))
    print(f"wrote {path}")
    return 0


def _numbered(words: list[str], option: str) -> dict[str, list[int]]:
    try:
        return {name: numbers(text) for name, text in assignments(words, option).items()}
    except argparse.ArgumentTypeError as error:
        raise ValueError(f"{option}: {error}") from None


def _table(file: str) -> str:
    lines = ["number  kind              area (mm²)  radius (mm)  centre (mm)"]
    for s in step_surfaces(file):
        radius = "" if s.radius is None else f"{1e3 * s.radius:.6g}"
        centre = ", ".join(f"{1e3 * x + 0.0:.6g}" for x in s.centre)
        lines.append(f"{s.number:6d}  {s.kind:<16} {1e6 * s.area:11.6g}  {radius:>11}  ({centre})")
    return "\n".join(lines)


def _described(dataclass: Any) -> Mapping[str, str]:
    """What the docstring of a dataclass says of its attributes, by name."""
    text = (dataclass.__doc__ or "").partition("Attributes:")[2].partition("Raises:")[0]
    found = re.findall(r"^ +(\w+): (.*(?:\n {9,}.*)*)", text, re.MULTILINE)
    return {name: " ".join(words.split()).rstrip(".").replace("%", "%%") for name, words in found}
