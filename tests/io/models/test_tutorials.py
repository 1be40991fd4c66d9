"""Model files of the mechanisms of the tutorials: all of them are written and read again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mpi4py import MPI

ROOT = Path(__file__).parents[3]
DEMOS = ROOT / "demos"

SCRIPT = """
import functools, runpy, sys
import numpy as np
import yaml
import dolfinx_mbd as mbd
from dolfinx_mbd.io.models import read_model, write_model

create = mbd.System.__init__

def largest_difference(systems):
    # of coordinates and of their second derivatives, relative to the largest ones
    options = {"t_end": 2e-5, "dt": 1e-5, "elastic_start": "undeformed", "redundant": "drop"}
    runs = [mbd.simulate(system, **options) for system in systems]
    values = [(run.q, run.a) for run in runs]
    return max(np.abs(x - y).max() / max(np.abs(x).max(), 1.0) for x, y in zip(*values))

@functools.wraps(create)
def created(system, *arguments, **options):
    create(system, *arguments, **options)
    mbd.System.__init__ = create
    try:
        path = write_model(system, "model.yaml", times=np.linspace(0.0, 1e-3, 5))
        copy = read_model(path).system
        again = write_model(copy, "again.yaml").read_text().replace("again-", "model-")
        same = yaml.safe_load(again) == yaml.safe_load(path.read_text())
        difference = largest_difference((system, copy))
        print("ROUND TRIP", "ok" if same and difference < LIMIT else f"differs: {difference}")
    except Exception as error:
        print("ROUND TRIP", " ".join(str(error).split())[:300])
    raise SystemExit

mbd.System.__init__ = created
runpy.run_path(sys.argv[1], run_name="__main__")
"""
LIMIT = 1e-7
"""Largest difference; motions that become tables are interpolated between five times."""


def tutorials() -> list[Path]:
    """Return the tutorials that create a mechanism."""
    words = r"System\(|slider_crank\(|inline_engine\(|partial\(inline_engine"
    return [p for p in sorted(DEMOS.glob("*.py")) if re.search(words, p.read_text("utf-8"))]


def outcome(path: Path, folder: Path) -> str:
    """Return the outcome of a round trip of the first mechanism that a tutorial creates."""
    variables = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SCRIPT.replace("LIMIT", repr(LIMIT)), str(path)]
    run = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=560
    )
    line = re.search(r"^ROUND TRIP (.*)$", run.stdout, re.MULTILINE)
    return line[1] if line else f"no mechanism: {run.stderr[-300:]}"


@pytest.mark.slow
@pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts other processes")
@pytest.mark.parametrize("path", tutorials(), ids=lambda path: path.name)
def test_first_mechanism_of_a_tutorial(path: Path, tmp_path: Path) -> None:
    """The mechanism is written and read without loss, and both have the same motion."""
    assert outcome(path, tmp_path) == "ok"
