"""Shared by the tests of geometry and mesh files."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dolfinx_mbd.geometry import mesh_files


@pytest.fixture
def read_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read meshes in the process of the tests, which has imported the readers.

    Their import takes up to a second. `test_deck_files.py` and `test_mesh_files.py` read meshes
    in separate processes, as users do.
    """

    def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        *_, folder, gdim = command
        mesh_files._read(Path(folder), int(gdim))
        return subprocess.CompletedProcess(command, 0, "", "")

    replacement = SimpleNamespace(run=run, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr(mesh_files, "subprocess", replacement)
