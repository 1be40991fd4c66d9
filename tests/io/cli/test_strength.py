"""The command `strength`: safety factors of a saved body over saved runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.body import StressModes
from dolfinx_mbd.io.cli import main
from tests.models.rods import rod

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one process writes files")

MODEL = """
import dolfinx_mbd as mbd

body = mbd.ReducedBody.load("rod.npz")
system = mbd.mechanisms.slider_crank(
    body, speed=100.0, crank_radius=0.2, ends=("left", "right"), crank_mass=0.5, piston_mass=0.2
)
"""


def test_strength_over_two_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    stress = np.zeros((6, 4, 2))
    stress[0] = [[1e11, 2e11], [1e11, -2e11], [1e11, 2e11], [1e11, -2e11]]
    skin = rod().skin
    assert skin is not None
    body = rod().replace(stress=StressModes(skin.points, stress))
    body.save("rod.npz")
    Path("model.py").write_text(MODEL, encoding="utf-8")
    names: dict[str, mbd.System] = {}
    exec(MODEL, names)
    for name, end in (("short", 0.002), ("long", 0.01)):
        mbd.simulate(names["system"], t_end=end, dt=1e-4).save(f"{name}.npz")
    run = mbd.results.Solution.load("long.npz", names["system"])
    expected = mbd.strength(body, run.body("rod"), limit=250e6).least
    command = ["strength", "rod.npz", "short.npz", "long.npz", "--model", "model.py"]
    assert main([*command, "--limit", "250e6", "--count", "2"]) == 0
    text = capsys.readouterr().out
    assert text.count("safety factor by von Mises") == 2
    assert f"least safety factor {expected:.4g} in long.npz" in text
    assert main([*command, "--limit", "250e6", "-o", "factors.vtk"]) == 0
    assert "wrote factors.vtk" in capsys.readouterr().out
    assert "safety_factor" in Path("factors.vtk").read_text(encoding="utf-8")
    assert main([*command, "--limit", "-1"]) == 1
    assert "limit must be" in capsys.readouterr().err
    rod().save("bare.npz")
    assert main(["strength", "bare.npz", *command[2:], "--limit", "1e8"]) == 1
    assert "no stress modes" in capsys.readouterr().err
    body.replace(name="body").save("rod.npz")
    Path("model.py").write_text(MODEL.replace('"rod.npz"', '"renamed.npz"'), encoding="utf-8")
    body.save("renamed.npz")
    assert main([*command, "--limit", "1e8"]) == 1
    assert "called 'body'" in (text := capsys.readouterr().err) and "add --name 'rod'" in text
    assert main([*command, "--limit", "1e8", "--name", "rod"]) == 0
