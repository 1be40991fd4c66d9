"""The command `strength`: safety factors of a saved body over saved runs."""

from __future__ import annotations

import argparse
from typing import Any

from dolfinx_mbd.body import ReducedBody

CRITERIA = ("von Mises", "Tresca", "greatest principal", "least principal")


def add_to(commands: Any) -> None:
    """Add `strength` to the commands."""
    parser = commands.add_parser(
        "strength",
        help="safety factors of a body over runs",
        description="Print the least safety factors of a body with stress modes over one or more "
        "saved runs, and the places where they occur.",
    )
    add = parser.add_argument
    add("body", help="a reduced body with stress modes (.npz)")
    add("runs", nargs="+", metavar="RUN", help="a saved run (.npz)")
    text = "Python script that assigns the mechanism of the runs to the variable `system`"
    add("--model", metavar="SCRIPT", required=True, help=text)
    text = "name of the body in the mechanism (default: that in the body's file)"
    add("--name", help=text)
    text = "strength of the material, Pa, for example 355e6"
    add("--limit", type=float, metavar="PA", required=True, help=text)
    add("--criterion", choices=CRITERIA, default=CRITERIA[0], help="default: von Mises")
    add("--count", type=int, default=5, metavar="N", help="number of places (default 5)")
    text = "file for ParaView (.vtk) to write, of the run with the least safety factor"
    add("-o", "--output", metavar="FILE", help=text)
    parser.set_defaults(run=_strength)


def _strength(options: argparse.Namespace) -> int:
    """Print the least safety factors over all runs, and write a file on request."""
    from dolfinx_mbd.durability import strength
    from dolfinx_mbd.io.cli.body_commands import name_in, system_of
    from dolfinx_mbd.io.cli.option_values import output_path
    from dolfinx_mbd.results import Solution

    path = None
    if options.output is not None:
        path = output_path(options.output, options.body, ".vtk")
    body, system = ReducedBody.load(options.body), system_of(options.model)
    name = name_in(system, body, options.name)
    weakest, where = None, ""
    for file in options.runs:
        history = Solution.load(file, system).body(name)
        result = strength(
            body, history, criterion=options.criterion, limit=options.limit, count=options.count
        )
        print(f"{file}\n{result}\n")
        if weakest is None or result.least < weakest.least:
            weakest, where = result, file
    assert weakest is not None  # there is at least one run
    print(f"least safety factor {weakest.least:.4g} in {where}")
    if path is not None:
        weakest.write(path)
        print(f"wrote {path}")
    return 0
