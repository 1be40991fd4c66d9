"""Counts that need too much memory are refused before allocation; names are never formulas."""

from __future__ import annotations

import csv
import math
import subprocess
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd import ConnectingRod, checks, errors
from dolfinx_mbd.analyses import simulate, sweep
from dolfinx_mbd.dynamics import System
from dolfinx_mbd.fem import build_mesh
from dolfinx_mbd.io.cli.option_values import numbers
from dolfinx_mbd.mechanism import RigidBody
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, slider_crank
from tests.models.beams import slender_rod

ENGINE = {"crank_radius": 0.1, "crank_mass": 0.2, "piston_mass": 0.1, "speed": 10.0}


def many_cases() -> None:
    """Start a study of 10¹⁶ cases."""
    grid = {name: range(10**4) for name in "abcd"}
    sweep(lambda a, b, c, d: a, grid, workers=1)


def many_steps() -> None:
    """Simulate 10¹³ steps."""
    simulate(slider_crank(slender_rod(), **ENGINE), t_end=1.0, dt=1e-13)


def tiny_step() -> None:
    """Simulate with the smallest positive number as the step."""
    simulate(slider_crank(slender_rod(), **ENGINE), t_end=1.0, dt=5e-324)


CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: EngineDesign(cylinders=10**9), "cylinders"),
    (many_steps, "dt"),
    (tiny_step, "dt"),
    (many_cases, "parameters"),
    (lambda: build_mesh(ConnectingRod(size=1e-7), MPI.COMM_SELF), "size"),
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("call", "argument"), CALLS)
def test_absurd_counts(call: Callable[[], Any], argument: str) -> None:
    with pytest.raises(errors.InputError) as error:
        call()
    assert error.value.argument == argument


def test_memory() -> None:
    checks.memory("frames", 1, 1e6)
    for size in (1e18, math.inf, math.nan):
        with pytest.raises(errors.InputError):
            checks.memory("frames", 1, size)


def test_ranges_on_the_command_line() -> None:
    assert numbers("1,3-5") == [1, 3, 4, 5]
    with pytest.raises(ArgumentTypeError):
        numbers("1-1000000000")


def test_an_animation_has_no_more_pictures_than_times(tmp_path: Path) -> None:
    pytest.importorskip("pyvista")
    from dolfinx_mbd.plotting.pictures.movie import _rows

    run = simulate(slider_crank(slender_rod(), **ENGINE), t_end=1e-3, dt=1e-4)
    assert np.array_equal(_rows(run, None, 10**15), np.arange(11))


def test_a_reduction_starts_no_huge_engine(tmp_path: Path) -> None:
    """The error is raised before a list of that length is allocated."""
    if MPI.COMM_WORLD.size > 1 or not sys.platform.startswith("linux"):
        return
    path = slender_rod().save(tmp_path / "rod.npz")
    script = f"""
import resource
import dolfinx_mbd as mbd
rod = mbd.ReducedBody.load({str(path)!r})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    mbd.mechanisms.EngineDesign(cylinders=10**9)
except mbd.errors.InputError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert int(done.stdout) < 100_000, done.stderr  # KiB


def test_names_in_tables(tmp_path: Path) -> None:
    """Names with line breaks stay in their cell, and none is read as a formula."""
    names = ["=1+1", "@x", "-y", "+z", "two\nlines", 'a "b", c']
    bodies = [RigidBody(name, 1.0, [1.0, 1.0, 1.0]) for name in names]
    run = simulate(System(bodies, []), t_end=0.02, dt=0.01)
    with run.to_csv(tmp_path / "run.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    columns = [column.removesuffix(".position.x [m]") for column in head]
    written = [column for column, whole in zip(columns, head, strict=True) if column != whole]
    assert written == ["'=1+1", "'@x", "'-y", "'+z", "two\nlines", 'a "b", c']
    assert [float(row[0]) for row in rows] == [0.0, 0.01, 0.02]
