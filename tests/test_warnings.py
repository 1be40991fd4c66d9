"""Warnings reach the user's terminal, in whatever order the user imports DOLFINx.

DOLFINx 0.9 redirects Python's warnings to a logger without a handler; what counts is therefore the
standard error of a fresh process.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from mpi4py import MPI

from dolfinx_mbd import errors

if MPI.COMM_WORLD.size > 1:
    pytest.skip("starts processes of its own", allow_module_level=True)

HEAVY = """
from dolfinx.mesh import CellType, create_box
from mpi4py import MPI
mesh = create_box(MPI.COMM_WORLD, [(0, 0, 0), (137, 20, 12)], (4, 1, 1), CellType.tetrahedron)
body = mbd.reduce(mesh, {material}, interfaces={{}}, num_modes=1).body
"""
INTERRUPTED = """
from dolfinx_mbd import Frame, RigidBody, System
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.mechanism import Ground
from dolfinx_mbd.mechanism.loads import force
def press(t, motion):
    if t > 0.025:
        raise KeyboardInterrupt
    return 0.0, 1.0, 0.0
bob = RigidBody("bob", 1.0, [1.0, 1.0, 1.0], frames={"o": Frame()})
run = simulate(System([Ground(), bob], [], loads=[force("push", bob.frame("o"), press)]),
               t_end=0.1, dt=0.01)
"""


def stderr_of(*words: str) -> str:
    """Return the standard error of a process that must succeed."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONWARNINGS"}
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "imports",
    ["import dolfinx.fem, dolfinx_mbd as mbd", "import dolfinx_mbd as mbd, dolfinx.fem"],
    ids=["before", "after"],
)
@pytest.mark.parametrize(
    ("script", "category", "line"),
    [
        (
            HEAVY.format(material="mbd.STEEL"),
            "UnitsWarning: implausible: the body",
            "body = mbd.reduce(",
        ),
        (
            HEAVY.format(material="mbd.Material(2.1e5, 0.3, 7850.0)"),
            "UnitsWarning: implausible: E",
            "body = ",
        ),
        (INTERRUPTED, "MbdWarning", "run = simulate("),
    ],
    ids=["mesh in millimetres", "material in MPa", "interrupted run"],
)
def test_scripts_show_warnings(
    imports: str, script: str, category: str, line: str, tmp_path: Path
) -> None:
    """The warning names the user's line, which Python prints below it."""
    path = tmp_path / "script.py"
    path.write_text(f"{imports}\n{script}")
    text = stderr_of(str(path))
    number = 1 + next(
        k for k, row in enumerate(path.read_text().splitlines()) if row.startswith(line)
    )
    assert f"{path}:{number}: {category}" in text


@pytest.mark.slow
def test_commands_show_warnings(tmp_path: Path) -> None:
    """`info` of a mesh and of a body, a dry run and a reduction show their warnings."""
    mesh, body = str(tmp_path / "rod.msh"), str(tmp_path / "rod.npz")
    run = ("-m", "dolfinx_mbd")
    script = f"""
import dolfinx_mbd as mbd
from mpi4py import MPI
rod = mbd.ConnectingRod(size=0.012, order=1)
mbd.fem.write_mesh(rod, {mesh!r})
import gmsh
gmsh.initialize(); gmsh.option.setNumber("General.Terminal", 0); gmsh.open({mesh!r})
gmsh.model.mesh.affineTransform([1e3, 0, 0, 0, 0, 1e3, 0, 0, 0, 0, 1e3, 0]); gmsh.write({mesh!r})
"""
    stderr_of("-c", script)
    reduce = ["reduce", mesh, "--material", "steel", "--interface", "big_end", "--modes", "1"]
    reduce += ["-q", "--degree", "1", "--no-stiffening", "-o", body]
    for words in (["info", mesh], [*reduce, "--dry-run"], reduce, ["info", body]):
        text = stderr_of(*run, *words)
        assert text.count("warning: implausible") == 1, words
        assert "--unit mm" in text, words
    assert "implausible" not in stderr_of(*run, *reduce, "--dry-run", "--unit", "mm")


def test_a_handler_of_the_users_own_is_kept() -> None:
    """Captured warnings stay captured if something handles them."""
    logger, handler = logging.getLogger("py.warnings"), logging.StreamHandler()
    with warnings.catch_warnings():
        try:
            logging.captureWarnings(True)
            logger.addHandler(handler)
            captured = warnings.showwarning
            errors.restore_warnings()
            assert warnings.showwarning is captured
        finally:
            logger.removeHandler(handler)
            logging.captureWarnings(False)
