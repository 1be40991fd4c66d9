"""The command that computes the fatigue life of a saved body over saved runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dolfinx_mbd.body import ReducedBody

__all__ = ["add_to"]

_CHOICES = {
    "criterion": ("normal", "shear", "von Mises", "principal"),
    "mean-stress": ("none", "Goodman", "Gerber", "Smith-Watson-Topper", "FKM"),
    "rule": ("modified", "elementary", "original"),
    "method": ("stress", "strain"),
    "residue": ("closed", "half"),
}
"""Values of the options that are arguments of `fatigue`."""


def add_to(commands: Any) -> None:
    """Add `fatigue` to the commands."""
    text = "Compute damage and life at the surface of a body with stress modes over saved runs."
    epilog = (
        "A run is a file that run.save() wrote. Append its share of the service "
        "time, for example fast.npz=0.3; without shares, all runs have equal shares."
    )
    parser = commands.add_parser(
        "fatigue", help="fatigue life of a body over runs", description=text, epilog=epilog
    )
    add = parser.add_argument
    add("body", help="a reduced body (.npz) with stress modes")
    add("runs", nargs="+", metavar="RUN[=SHARE]", help="a saved run and its share of the time")
    text = "Python script that assigns the mechanism of the runs to the variable `system`"
    add("--model", required=True, metavar="SCRIPT", help=text)
    text = "name of the body in the mechanism (default: that in the body's file)"
    add("--name", help=text)
    text = "file of fatigue materials (.toml) with one material, FILE:NAME, or an example"
    add("--material", required=True, metavar="FILE", help=text)
    text = "probability of survival (default: that of the material)"
    add("--survival", type=float, metavar="P", help=text)
    for name, values in _CHOICES.items():
        default = "Smith-Watson-Topper" if name == "mean-stress" else values[0]
        add(f"--{name}", choices=values, default=default, help=f"see mbd.fatigue ({default})")
    add("--count", type=int, default=5, metavar="N", help="number of places (default 5)")
    add("-o", "--output", metavar="FILE", help="file for ParaView (.vtk) to write")
    parser.set_defaults(run=_fatigue)


def _fatigue(options: argparse.Namespace) -> int:
    """Print the damage and the places with the shortest lives, and write a file on request."""
    from mpi4py import MPI

    from dolfinx_mbd.body import ReducedBody
    from dolfinx_mbd.checks import integer
    from dolfinx_mbd.durability import fatigue
    from dolfinx_mbd.io.cli.option_values import output_path

    integer("--count", options.count, low=1)
    path = None
    if options.output is not None:
        path = output_path(options.output, options.body, ".vtk")
    body = ReducedBody.load(options.body)
    result = fatigue(
        body,
        _runs(options, body),
        material=_material(options.material),
        criterion=options.criterion,
        mean_stress=options.mean_stress,
        rule=options.rule,
        survival=options.survival,
        method=options.method,
        residue=options.residue,
        comm=MPI.COMM_WORLD,
    )
    print(f"{options.criterion} stress, {result.material.name}")
    print(result.worst(options.count))
    if path is not None:
        print(f"wrote {result.write(path)}")
    return 0


def _runs(options: argparse.Namespace, body: ReducedBody) -> list[tuple[Any, float]]:
    """Return the histories of the body in all runs, with their shares."""
    from dolfinx_mbd.errors import InputError
    from dolfinx_mbd.io.cli.body_commands import name_in, system_of
    from dolfinx_mbd.results import Solution

    system = system_of(options.model)
    name = name_in(system, body, options.name)
    files_and_shares = [
        word.rpartition("=")[::2] if "=" in word else (word, "") for word in options.runs
    ]
    if len({bool(share) for _, share in files_and_shares}) > 1:
        raise InputError("give a share to all runs or to none", argument="runs")
    runs = []
    for file, text in files_and_shares:
        try:
            share = float(text) if text else 1.0 / len(files_and_shares)
        except ValueError:
            raise InputError(f"the share of {file} must be a number; got {text!r}") from None
        runs.append((Solution.load(file, system).body(name), share))
    return runs


def _material(text: str) -> Any:
    """Return the material that `FILE`, `FILE:NAME` or the name of an example denotes."""
    from dolfinx_mbd.checks import unknown
    from dolfinx_mbd.durability import EXAMPLES, read_fatigue_materials
    from dolfinx_mbd.errors import InputError

    if text in EXAMPLES:
        return EXAMPLES[text]
    file, colon, name = (text, "", "") if Path(text).is_file() else text.rpartition(":")
    materials = read_fatigue_materials(file if colon else text)
    if not colon and len(materials) == 1:
        return next(iter(materials.values()))
    if not colon:
        names = ", ".join(materials) or "none"
        raise InputError(f"--material: choose one with {text}:NAME; '{text}' has {names}")
    if name not in materials:
        unknown("material", name, materials, f"'{file}' has")
    return materials[name]
