"""Worker processes: bitwise identical results, no lost case, no remaining process, clear errors."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd import errors
from dolfinx_mbd.analyses import StudyError, sweep
from tests.analyses.studies.cases import crank, deadly, environment, law, noted, noted_slowly
from tests.models.beams import slender_rod

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts worker processes")


@pytest.mark.slow
def test_workers_give_the_bits_of_this_process() -> None:
    """Results and failures of a study agree bitwise in workers, another executor and here."""
    rod = slender_rod(bending=2, axial=0)
    grid = {"speed": [20.0, 30.0, 40.0], "damping": [0.01, -1.0]}
    before = dict(os.environ)
    studies = []
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        for choice in ({"workers": 1}, {"workers": 2}, {"executor": pool}):
            # the three cases with the damping -1 fail
            with pytest.warns(errors.MbdWarning) as warnings:
                studies.append(sweep(crank, grid, fixed={"rod": rod}, **choice))
            assert [getattr(w.message, "value", None) for w in warnings] == [3]
    local = studies[0].drop_vars(["case_seconds", "case_traceback"])
    assert "rod.eta" in local
    for study in studies[1:]:
        assert local.identical(study.drop_vars(["case_seconds", "case_traceback"]))
    assert dict(os.environ) == before


def test_functions_need_no_module() -> None:
    """Lambdas, functions in functions and the variables that they read are sent to workers."""
    factor = np.array([2.0, 3.0])

    def run(x: float) -> np.ndarray:
        return x * factor

    study = sweep(run, {"x": [1.0, 2.0, 3.0]}, workers=2)
    assert study["result"].values.tolist() == [[2.0, 3.0], [4.0, 6.0], [6.0, 9.0]]
    study = sweep(lambda rod: rod(2.0), {"rod": [lambda x: x, lambda x: -x]}, workers=2)
    assert study["result"].values.tolist() == [2.0, -2.0]


@pytest.mark.slow
def test_a_worker_that_is_killed(tmp_path: Path) -> None:
    """The error names the cases that may be the reason; a second call computes the others."""
    folder = tmp_path / "study"
    with pytest.raises(StudyError) as error:
        sweep(deadly, {"x": [0, 1, 2, 3]}, workers=2, path=folder)
    lost = error.value.cases
    assert 1 in lost and len(lost) <= 2
    assert str(folder) in str(error.value) and "case 1 (x=1)" in str(error.value)
    assert (error.value.study["case_status"].values[lost] == "failed").all()
    with pytest.warns(errors.MbdWarning):
        rest = sweep(deadly, {"x": [0, 1, 2, 3]}, workers=2, path=folder)
    done = [x for x in range(4) if x not in lost]
    assert rest["result"].values[done].tolist() == [2.0 * x for x in done]
    assert all("ended early" in rest["case_error"].values[k] for k in lost)
    with pytest.raises(StudyError) as error:
        sweep(deadly, {"x": [0, 1, 2, 3]}, workers=2, path=folder, retry_failed=True)
    assert 1 in error.value.cases


STUDY = """
import signal
import sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # (a shell may have turned it off)
sys.path.insert(0, {root!r})
import dolfinx_mbd as mbd
from tests.analyses.studies.cases import noted_slowly

settings = {{"fixed": {{"folder": {folder!r}}}, "path": {path!r}}}
print(mbd.sweep(noted_slowly, {{"x": {numbers}}}, workers=2, **settings))
"""
NUMBERS = list(range(1, 41))


def alive(process: int) -> bool:
    """Return whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait(what: str, seconds: float = 120.0) -> Iterator[None]:
    """Yield every 20 ms until the caller breaks; raise an error after some seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        yield
        time.sleep(0.02)
    raise AssertionError(f"{what} did not come in {seconds} s")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "group"),
    [(signal.SIGKILL, False), (signal.SIGINT, True), (signal.SIGINT, False)],
    ids=["kill -9", "Ctrl-C", "kill -INT"],
)
def test_a_study_that_is_stopped_goes_on(
    tmp_path: Path, number: signal.Signals, group: bool
) -> None:
    """Stopped in the middle of 40 cases, a study leaves no worker and no incomplete case."""
    folder, path = tmp_path / "calls", tmp_path / "study"
    folder.mkdir()
    script = tmp_path / "script.py"
    names = {"root": str(ROOT), "folder": str(folder), "path": str(path), "numbers": NUMBERS}
    script.write_text(STUDY.format(**names))
    child = subprocess.Popen(
        [sys.executable, str(script)], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    for _ in wait("three cases"):
        if len(list(path.glob("case-*.npz"))) >= 3 or child.poll() is not None:
            break
    assert child.poll() is None, child.stderr.read()
    if group:
        os.killpg(child.pid, number)  # a terminal signals workers, too
    else:
        child.send_signal(number)
    output = child.communicate(timeout=60)[1]
    workers = {int(file.name.split("-")[2]) for file in folder.iterdir()}
    assert len(workers) == 2
    for _ in wait("the end of the workers", 20.0):
        if not any(map(alive, workers)):
            break
    if number == signal.SIGINT:
        assert child.returncode == 0 and "of 40 cases; the completed ones are returned" in output
        assert "Traceback" not in output
    settings = {"fixed": {"folder": str(folder)}, "path": path}
    before = set(folder.iterdir())
    part = sweep(noted_slowly, {"x": NUMBERS}, workers=0, **settings)
    assert set(folder.iterdir()) == before
    done = np.flatnonzero(part["case_status"] == "done").tolist()
    assert 3 <= len(done) < 40
    assert part["result"].values[done].tolist() == [NUMBERS[k] ** 2 for k in done]
    # This call computes the cases that are not finished, and no others.
    (folder / "at-once").touch()
    whole = sweep(noted_slowly, {"x": NUMBERS}, workers=1, **settings)
    assert whole["result"].values.tolist() == [x * x for x in NUMBERS]
    new = {int(f.name.split("-")[0]) for f in set(folder.glob("*-*-*")) - before}
    assert new == {x for k, x in enumerate(NUMBERS) if k not in done}


@pytest.mark.slow
def test_idle_workers_end_with_the_study(tmp_path: Path) -> None:
    sweep(noted, {"x": [1, 2, 3, 4]}, fixed={"folder": str(tmp_path)}, workers=2)
    workers = {int(file.name.split("-")[2]) for file in tmp_path.iterdir()}
    assert os.getpid() not in workers
    assert not any(map(alive, workers))


GUARDED = """
import dolfinx_mbd as mbd

print("begun")
POWER = 3

def power(x):
    return x**POWER

def run(x):
    return {{"cube": power(x)}}

{guard}study = mbd.sweep(run, {{"x": [1.0, 2.0, 3.0]}}, workers=2)
{indent}print(study["cube"].values.tolist())
"""
UNDER = """
import dolfinx_mbd as mbd

if __name__ == "__main__":
    print("begun")

    def run(x):
        return x**3

    print(mbd.sweep(run, {"x": [1.0, 2.0, 3.0]}, workers=2)["result"].values.tolist())
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", [[], ["-c"]], ids=["file", "no file"])
@pytest.mark.parametrize(
    "script",
    [
        GUARDED.format(guard='if __name__ == "__main__":\n    ', indent="    "),
        GUARDED.format(guard="", indent=""),
        UNDER,
    ],
    ids=["guarded", "no guard", "under the guard"],
)
def test_scripts_with_the_function_in_them(tmp_path: Path, script: str, command: list[str]) -> None:
    """Scripts work with and without `if __name__ == "__main__":`; workers do not run them."""
    path = tmp_path / "script.py"
    path.write_text(script)
    arguments = [*command, script] if command else [str(path)]
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout == "begun\n[1.0, 8.0, 27.0]\n"


def test_objects_that_cannot_be_sent() -> None:
    """Such objects raise an error before a process starts; they can be used in this process."""
    with pytest.raises(errors.InputError):
        sweep(law, {"x": [1.0, 2.0]}, fixed={"y": threading.Lock()}, workers=2)
    with pytest.raises(errors.InputError):
        sweep(lambda lock: 1, {"lock": [threading.Lock(), threading.Lock()]}, workers=2)
    assert sweep(lambda lock: 1, {"lock": [threading.Lock()]}, workers=1)["result"].values == [1]


@pytest.mark.slow
def test_a_worker_is_no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of a script that mpirun started must not take part in its MPI job."""
    launched = {"OMPI_COMM_WORLD_RANK": "0", "PMIX_RANK": "0", "OMPI_MCA_pml": "ob1"}
    for name, value in launched.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    names = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "OMPI_MCA_pml", "OMP_NUM_THREADS"]
    study = sweep(environment, {"name": names}, workers=2)
    assert study["result"].values.tolist() == ["", "", "ob1", "1"]
    assert launched.items() <= os.environ.items() and "OMP_NUM_THREADS" not in os.environ


@pytest.mark.slow
def test_a_study_in_a_worker_starts_no_workers() -> None:
    """Otherwise each core would have as many processes as there are cores."""
    study = sweep(nested, {"x": [1, 2]}, workers=2)
    assert re.fullmatch(r"(True,?)+", ",".join(map(str, study["alone"].values)))


def nested(x: int) -> dict[str, bool]:
    """Return whether a study inside of a case runs in the process of the case."""
    inner = sweep(lambda y: os.getpid(), {"y": [1, 2, 3]})
    return {"alone": bool((inner["result"] == os.getpid()).all())}
