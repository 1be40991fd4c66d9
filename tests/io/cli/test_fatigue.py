"""The command `fatigue`: life of a saved body over saved runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.body import StressModes
from dolfinx_mbd.io.cli import main
from tests.models.beams import slender_rod

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one process writes files")

MODEL = """
import dolfinx_mbd as mbd

rod = mbd.FlexibleBody("rod", mbd.ReducedBody.load("rod.npz"), omega=(0.0, 0.0, 300.0))
system = mbd.System([rod], [])
if __name__ == "__main__":
    run = mbd.simulate(system, t_end=2e-3, dt=1e-5, elastic_start="undeformed")
    run.save("run.npz")
"""
MATERIALS = """
[weak]
knee_stress = 5e6
knee_cycles = 1e6
slope = 5

[strong]
knee_stress = 500e6
knee_cycles = 1e6
slope = 5
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a body, its model, a run and materials."""
    monkeypatch.chdir(tmp_path)
    body = slender_rod()
    points = np.linspace((0, 0, 0), (0.3, 0, 0), 5)
    stress = 1e10 * np.random.default_rng(1).normal(size=(6, 5, body.num_modes))
    body.replace(stress=StressModes(points, stress), name="rod").save("rod.npz")
    Path("model.py").write_text(MODEL, encoding="utf-8")
    Path("fatigue.toml").write_text(MATERIALS, encoding="utf-8")
    exec(MODEL, {"__name__": "__main__"})
    return tmp_path


def test_life_of_a_body(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["fatigue", "rod.npz", "run.npz=0.25", "run.npz=0.75", "--model", "model.py"]
    words += ["--material", "fatigue.toml:weak", "--criterion", "von Mises", "--count", "1"]
    assert main(words) == 0
    out = capsys.readouterr().out
    body = mbd.ReducedBody.load("rod.npz")
    names: dict[str, object] = {}
    exec(MODEL, names)
    run = mbd.results.Solution.load("run.npz", names["system"])  # type: ignore[arg-type]
    material = mbd.durability.read_fatigue_materials("fatigue.toml")["weak"]
    # The shares 0.25 and 0.75 of the same run equal the share 1.
    result = mbd.fatigue(body, [(run.body("rod"), 1.0)], material=material, criterion="von Mises")
    assert 0 < result.hours.min() < np.inf
    assert f"{result.hours.min():.4g}" in out
    assert str(result.worst(1)) in out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["run.npz", "--material", "fatigue.toml"], "fatigue.toml:NAME"),
        (["run.npz", "--material", "fatigue.toml:lead"], "'weak', 'strong'"),
        (["run.npz", "--material", "none.toml"], "no file of fatigue materials"),
        (["run.npz=x", "--material", "AISI 4340"], "share"),
        (["run.npz=0.5", "run.npz", "--material", "AISI 4340"], "all runs or to none"),
        (["run.npz", "--material", "AISI 4340", "--name", "crank"], "crank"),
        (["none.npz", "--material", "AISI 4340"], "none.npz"),
    ],
)
def test_bad_input(
    words: list[str], text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fatigue", "rod.npz", *words, "--model", "model.py"]) == 1
    assert text in capsys.readouterr().err
