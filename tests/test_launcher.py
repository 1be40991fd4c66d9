"""./with-fenicsx and .ci/run: what can be seen of them without building anything."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from mpi4py import MPI

ROOT = Path(__file__).parents[1]
LAUNCHER = ROOT / "with-fenicsx"

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts other programs")


def run(*command: str | Path, **settings: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(word) for word in command],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("script", ["with-fenicsx", ".ci/run", ".ci/rank-0-speaks"])
def test_scripts_are_bash(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    assert run("bash", "-n", ROOT / script).stderr == ""


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_usage(arguments: tuple[str, ...]) -> None:
    answer = run(LAUNCHER, *arguments)
    assert answer.returncode == 2
    for setting in ("COMMAND", "CACHE", "USE", "EXTRAS", "SUITE", "MIRROR"):
        assert setting in answer.stderr
    assert "set -e" not in answer.stderr


def test_inside_it_is_transparent() -> None:
    script = 'printf "%s|" "$@"; exit 7'
    answer = run(LAUNCHER, "bash", "-c", script, "sh", "a b", "", "$c", FENICSX_USE="inside")
    assert (answer.returncode, answer.stdout) == (7, "a b||$c|")
