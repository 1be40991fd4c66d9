"""Progress of long computations: where it is shown, and which stages it names."""

from __future__ import annotations

import fcntl
import logging
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from typing import Any

import pytest
from dolfinx.mesh import create_box, create_interval
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import errors

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="rank 0 shows the progress")


def simulated(progress: Any) -> None:
    """Simulate a body with a display of the progress."""
    bar = mbd.RigidBody.box("bar", (1.0, 0.1, 0.1), mass=1.0, omega=(0, 0, 3.0))
    mbd.simulate(mbd.System([bar]), t_end=0.01, dt=1e-3, progress=progress)


def reduced(progress: Any) -> None:
    """Reduce a body with a display of the progress."""
    mesh = create_box(MPI.COMM_SELF, [(0, 0, 0), (0.2, 0.02, 0.02)], [2, 1, 1])
    mbd.reduce(mesh, mbd.STEEL, interfaces=[], num_modes=2, progress=progress)


def reduced_beam(progress: Any) -> None:
    """Reduce a beam with a display of the progress."""
    axis = create_interval(MPI.COMM_SELF, 4, [0, 0.5])
    model = mbd.BeamModel(axis, mbd.forms.Section.rectangle(0.02, 0.01), mbd.STEEL)
    mbd.reduce_beam(model, interfaces={"root": 0}, num_modes=2, progress=progress)


def swept(progress: Any) -> None:
    """Run a study with a display of the progress."""
    mbd.sweep(lambda x: {"y": x}, {"x": [1.0, 2.0]}, workers=1, progress=progress)


COMPUTATIONS = [simulated, reduced, reduced_beam, swept]


@pytest.mark.parametrize("compute", COMPUTATIONS)
def test_a_file_gets_no_progress_unless_always(
    compute: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    compute(True)
    assert capfd.readouterr().err == ""
    if compute in (simulated, swept):
        pytest.importorskip("tqdm")
    compute("always")
    assert re.search(r"100%|done", capfd.readouterr().err)


@pytest.mark.parametrize("compute", COMPUTATIONS)
@pytest.mark.parametrize("value", ["yes", 1, None])
def test_bad_requests(compute: Any, value: Any) -> None:
    with pytest.raises(errors.InputError) as error:
        compute(value)
    assert error.value.argument == "progress"


def test_stages_of_a_reduction(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Each stage has a line with the time at which it begins; the logger gets the same stages."""
    with caplog.at_level(logging.INFO, "dolfinx_mbd"):
        reduced("always")
    lines = capfd.readouterr().err.splitlines()
    rows = [re.fullmatch(r"reduce +(\d+\.\d) s  (.+)", line) for line in lines]
    assert all(rows)
    times, stages = zip(*((float(row[1]), row[2]) for row in rows if row), strict=True)
    assert list(times) == sorted(times)
    assert stages[0] == "assembly" and "factorization" in stages and stages[-1] == "done"
    assert set(stages) - {"done"} <= {record.getMessage() for record in caplog.records}


def test_a_terminal_shows_progress() -> None:
    code = "from tests.test_progress import *; simulated(True); reduced(True)"
    pytest.importorskip("tqdm")
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    try:
        subprocess.run([sys.executable, "-c", code], stderr=terminal, check=True, timeout=200)
        text = os.read(master, 100_000).decode()
    finally:
        os.close(terminal)
        os.close(master)
    assert "simulate" in text and "10/10" in text and "assembly" in text and "done" in text
