"""The command `view`: pages of bodies and of saved runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.io.cli import main
from tests.plotting.test_plotting import bar

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one process writes pages")

MODEL = """
import dolfinx_mbd as mbd

ground = mbd.Ground({"pivot": mbd.Frame()})
bar = mbd.RigidBody.box(
    "bar", (1.0, 0.1, 0.1), mass=1.0, centre=(0.5, 0.0, 0.0), frames={"pivot": mbd.Frame()}
)
pivot = mbd.revolute("pivot", ground.frame("pivot"), bar.frame("pivot"))
system = mbd.System([ground, bar], [pivot], gravity=(0.0, -9.81, 0.0))
if __name__ == "__main__":
    mbd.simulate(system, t_end=0.1, dt=0.01).save("run.npz")
"""


def test_a_body_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = bar().save(tmp_path / "bar.npz")
    page = tmp_path / "bar.html"
    assert main(["view", str(body), "--scale", "3", "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert '"kind":"modes"' in text and '"scale":3.0' in text and "<title>bar</title>" in text
    assert str(page) in capsys.readouterr().out


def test_a_run_is_shown_with_its_mechanism(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODEL, encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    exec(MODEL, names)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: bool(opened.append(address)) or True)
    assert main(["view", "run.npz", "--model", "model.py"]) == 0
    (address,) = opened
    page = Path(address.removeprefix("file://"))
    assert '"kind":"motion"' in page.read_text(encoding="utf-8")
    assert isinstance(names["system"], mbd.System)


@pytest.mark.parametrize(
    "arguments",
    [["run.npz"], ["run.npz", "--model", "none.py"], ["run.npz", "--model", "empty.py"]],
)
def test_bad_input(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.py").write_text("", encoding="utf-8")
    exec(MODEL, {"__name__": "__main__"})
    assert main(["view", *arguments, "-o", "page.html"]) == 1
    assert not Path("page.html").exists()
