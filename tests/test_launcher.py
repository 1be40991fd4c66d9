"""./with-fenicsx and .ci/run: the parts that can be tested without building anything."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from mpi4py import MPI

ROOT = Path(__file__).parents[1]
LAUNCHER = ROOT / "with-fenicsx"
SCRIPTS = [
    "with-fenicsx",
    *(f".ci/{name}" for name in ("run", "actionlint", "rank-0-speaks", "install-calculix")),
]

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts other programs")


def run(*command: str | Path, **settings: str) -> subprocess.CompletedProcess:
    """Run a command with settings in its environment."""
    return subprocess.run(
        [str(word) for word in command],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_are_bash(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    assert run("bash", "-n", ROOT / script).stderr == ""


@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck_has_no_warning(script: str) -> None:
    if not shutil.which("shellcheck"):
        pytest.skip("needs shellcheck")
    assert run("shellcheck", "--severity=warning", ROOT / script).stdout == ""


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


def test_without_a_home(tmp_path: Path) -> None:
    """A folder that others could have prepared is not used; a new one is private."""
    private = tmp_path / f"dolfinx_mbd-{os.getuid()}"
    script = LAUNCHER.read_text().replace("/var/tmp/dolfinx_mbd-", f"{tmp_path}/dolfinx_mbd-")
    script = script.partition("# ---- A virtual environment")[0] + 'printf "%s" "$HOME"\n'
    launcher = tmp_path / "launcher"
    launcher.write_text(script)

    def home() -> subprocess.CompletedProcess:
        return run("env", "-u", "HOME", "-u", "FENICSX_USE", "bash", launcher, "true")

    assert home().stdout == str(private)
    assert private.stat().st_mode & 0o777 == 0o700
    assert home().stdout == str(private)
    private.chmod(0o755)
    assert home().returncode == 69
    private.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    private.symlink_to(tmp_path / "elsewhere")
    answer = home()
    assert (answer.returncode, answer.stdout) == (69, "")
    assert run("env", "-u", "FENICSX_USE", "HOME=/somewhere", "bash", launcher, "true").stdout == (
        "/somewhere"
    )


@pytest.mark.parametrize(
    ("command", "extras"),
    [
        ("python3 demos/engine.py", "fast,plot,meshes,nastran"),
        ("python3 -m pytest", "fast,plot,meshes,nastran,test"),
        ("mpirun -n 2 python3 -m pytest -q tests/fem", "fast,plot,meshes,nastran,test"),
        ("jupytext --to ipynb demos/rod.py", "fast,plot,meshes,nastran,notebooks"),
        ("python3 pytest.py", "fast,plot,meshes,nastran"),
    ],
)
def test_extras(command: str, extras: str, tmp_path: Path) -> None:
    """The first use installs little; extras for tests and notebooks follow with their commands."""
    launcher = tmp_path / "launcher"
    head = LAUNCHER.read_text().partition("# ---- A virtual environment")[0]
    launcher.write_text(head + 'printf "%s" "$extras"\n')
    clean = ["env", "-u", "FENICSX_USE", "-u", "FENICSX_EXTRAS", "HOME=/somewhere"]
    assert run(*clean, "bash", launcher, *command.split()).stdout == extras
    assert run(*clean, "FENICSX_EXTRAS=dev", "bash", launcher, *command.split()).stdout == "dev"
    assert run(*clean, "FENICSX_EXTRAS=", "bash", launcher, *command.split()).stdout == ""


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([], "|"),
        (["PYTHONDONTWRITEBYTECODE=1"], "|/venv/bytecode"),
        (["PYTHONDONTWRITEBYTECODE=1", "PYTHONPYCACHEPREFIX=/own"], "|/own"),
    ],
)
def test_bytecode_is_kept(settings: list[str], expected: str, tmp_path: Path) -> None:
    """Without bytecode each start takes a second longer; it is kept outside the project."""
    launcher = tmp_path / "launcher"
    head = LAUNCHER.read_text().partition("# ---- 1. DOLFINx on this machine")[0]
    show = 'printf "%s|%s" "${PYTHONDONTWRITEBYTECODE:-}" "${PYTHONPYCACHEPREFIX:-}"'
    launcher.write_text(f"{head}quick_imports /venv\n{show}\n")
    clean = [
        "env",
        "-u",
        "FENICSX_USE",
        "-u",
        "PYTHONDONTWRITEBYTECODE",
        "-u",
        "PYTHONPYCACHEPREFIX",
    ]
    assert run(*clean, "HOME=/somewhere", *settings, "bash", launcher, "true").stdout == expected
