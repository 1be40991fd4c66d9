"""Worker processes: the same bits, nothing lost, nothing left over, and errors that say what to do.

Under mpirun there are no workers; what these tests start is then left out.
"""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd import errors
from dolfinx_mbd.multibody import Study, sweep
from dolfinx_mbd.multibody.studies.outcomes import Call
from dolfinx_mbd.multibody.studies.plan import Plan
from dolfinx_mbd.multibody.studies.pool import packed
from tests.models.beams import slender_rod
from tests.multibody.studies.cases import crank, deadly, law, noted_slowly

ROOT = Path(__file__).parents[3]
SERIAL = MPI.COMM_WORLD.size == 1


def test_workers_give_the_bits_of_this_process() -> None:
    """A mechanism with a failure among its cases, on two workers and here."""
    if not SERIAL:
        return
    rod = slender_rod(bending=2, axial=0)
    settings = {"fixed": {"rod": rod}}
    grid = {"speed": [20.0, 30.0, 40.0], "damping": [0.01, -1.0]}
    environment = dict(os.environ)
    with pytest.warns(errors.MbdWarning, match="3 of 6 cases failed"):
        here = sweep(crank, grid, workers=1, **settings)
    with pytest.warns(errors.MbdWarning, match="3 of 6 cases failed"):
        there = sweep(crank, grid, workers=2, **settings)
    assert [case.error for case in here.cases] == [case.error for case in there.cases]
    assert here.names() == there.names() and "rod.eta" in here.names()
    for name in here.names():
        assert np.array_equal(here[name], there[name], equal_nan=True), name
    assert dict(os.environ) == environment


def test_a_case_that_takes_its_process_with_it() -> None:
    if not SERIAL:
        return
    with pytest.warns(errors.MbdWarning, match="WorkerDied: .* was killed by signal 9"):
        study = sweep(deadly, {"x": [0, 1, 2, 3]}, workers=2)
    assert [case.status for case in study.cases] == ["done", "failed", "done", "done"]
    assert study["result"][[0, 2, 3]].tolist() == [0.0, 4.0, 6.0]


STUDY = """
import sys
sys.path.insert(0, {root!r})
import dolfinx_mbd as mbd
from tests.multibody.studies.cases import noted_slowly

settings = {{"fixed": {{"folder": {folder!r}}}, "path": {path!r}}}
print(mbd.sweep(noted_slowly, {{"x": {numbers}}}, workers=2, **settings))
"""
NUMBERS = list(range(1, 41))


def alive(process: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait(what: str, seconds: float = 120.0) -> Iterator[None]:
    """Again and again until the caller is content."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        yield
        time.sleep(0.02)
    raise AssertionError(f"{what} did not come in {seconds} s")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_a_study_that_is_stopped_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    """In the middle of 40 cases; no worker outlives it, no case is lost or half-written."""
    if not SERIAL:
        return
    folder, path = tmp_path / "calls", tmp_path / "study"
    folder.mkdir()
    script = tmp_path / "script.py"  # without a guard: what it runs is in a module
    names = {"root": str(ROOT), "folder": str(folder), "path": str(path), "numbers": NUMBERS}
    script.write_text(STUDY.format(**names))
    child = subprocess.Popen(
        [sys.executable, str(script)], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    for _ in wait("three cases"):
        if len(list(path.glob("case-*.npz"))) >= 3 or child.poll() is not None:
            break
    assert child.poll() is None, child.stderr.read()
    if number == signal.SIGKILL:
        child.kill()
    else:
        os.killpg(child.pid, number)  # as a terminal does
    said = child.communicate(timeout=30)[1]
    workers = {int(file.name.split("-")[2]) for file in folder.iterdir()}
    assert len(workers) == 2
    for _ in wait("the end of the workers", 20.0):
        if not any(map(alive, workers)):
            break
    if number == signal.SIGINT:
        assert child.returncode == 0 and "of 40 cases; what was done is returned" in said
        assert "Traceback" not in said
    part = Study.load(path)
    done = [case.index for case in part.cases if case.done]
    assert 3 <= len(done) < 40
    assert [int(part.cases[k].values["result"]) for k in done] == [NUMBERS[k] ** 2 for k in done]
    # the rest, and only the rest, is done here
    before = set(folder.iterdir())
    (folder / "at-once").touch()
    fixed = {"folder": str(folder)}
    whole = sweep(noted_slowly, {"x": NUMBERS}, fixed=fixed, workers=1, path=path)
    assert whole["result"].tolist() == [x * x for x in NUMBERS]
    new = {int(f.name.split("-")[0]) for f in set(folder.glob("*-*-*")) - before}
    assert new == {x for k, x in enumerate(NUMBERS) if k not in done}


GUARDED = """
import dolfinx_mbd as mbd

def run(x):
    return {{"cube": x**3}}

{guard}study = mbd.sweep(run, {{"x": [1.0, 2.0, 3.0]}}, workers=2)
{indent}print(study["cube"].tolist())
"""
UNDER = """
import dolfinx_mbd as mbd

if __name__ == "__main__":

    def run(x):
        return x

    mbd.sweep(run, {"x": [1.0, 2.0]}, workers=2)
"""
LATE = """
import dolfinx_mbd as mbd

def run(x):
    return x

def main():
    print(mbd.sweep(run, {"x": [1.0, 2.0]}, workers=2))

main()
"""


@pytest.mark.parametrize(
    ("script", "command", "expected"),
    [
        (GUARDED.format(guard='if __name__ == "__main__":\n    ', indent="    "), [], ""),
        (
            GUARDED.format(guard="", indent=""),
            [],
            "SolverError: line 7 of .*script.py starts worker processes when it is imported, and "
            "each of them imports it anew for the function in it: put what starts the study under",
        ),
        (LATE, [], "SolverError: line 10 of .*script.py starts worker processes"),
        (UNDER, [], "WorkerError: a worker process cannot take the run .*not under if __name__ =="),
        (
            GUARDED.format(guard="", indent=""),
            ["-c"],
            "InputError: the run is defined in a notebook, an interactive session or python -c",
        ),
    ],
    ids=["guarded", "no guard", "no guard, in a function", "under the guard", "no file"],
)
def test_scripts_with_the_function_in_them(
    tmp_path: Path, script: str, command: list[str], expected: str
) -> None:
    if not SERIAL:
        return
    path = tmp_path / "script.py"
    path.write_text(script)
    arguments = [*command, script] if command else [str(path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if expected:
        assert run.returncode == 1 and re.search(expected, run.stderr), run.stderr
        assert run.stdout == ""
    else:
        assert (run.returncode, run.stderr) == (0, ""), run.stderr
        assert run.stdout == "[1.0, 8.0, 27.0]\n"


def test_what_cannot_be_sent() -> None:
    """The cause and the cure, before any process is started."""
    plan = Plan.of({"x": [1, 2]}, "product")
    with pytest.raises(
        ValueError, match=r"the run cannot be sent .* by def at the top .*workers=1"
    ):
        packed(Call(lambda x: x, {}, plan))
    with pytest.raises(ValueError, match=r"fixed 'law' cannot be sent .* make it inside the run"):
        packed(Call(law, {"law": lambda x: x}, plan))
    with pytest.raises(ValueError, match="a value of 'x' cannot be sent"):
        packed(Call(law, {}, Plan.of({"x": [lambda x: x]}, "product")))
    rod = slender_rod()
    call = Call(*pickle.loads(packed(Call(crank, {"rod": rod}, plan))))
    assert np.array_equal(call.fixed["rod"].second_moments, rod.second_moments)
    if SERIAL:
        with pytest.raises(ValueError, match="the run cannot be sent"):
            sweep(lambda x: x, {"x": [1, 2]}, workers=2)


def test_a_worker_is_no_rank() -> None:
    """A script that mpirun started, with MPI in its workers as well: they are on their own."""
    if not SERIAL:
        return
    from dolfinx_mbd.multibody.studies.pool import _surroundings

    launched = {"OMPI_COMM_WORLD_RANK": "0", "PMIX_RANK": "0", "OMPI_MCA_pml": "ob1"}
    threads, before = os.environ.get("OMP_NUM_THREADS"), sys.modules["__main__"]
    os.environ.update(launched)
    try:
        with _surroundings(main=False):
            assert os.environ["OMP_NUM_THREADS"] == "1" and os.environ["OMPI_MCA_pml"] == "ob1"
            assert "OMPI_COMM_WORLD_RANK" not in os.environ and "PMIX_RANK" not in os.environ
            assert not hasattr(sys.modules["__main__"], "__file__")
        assert launched.items() <= os.environ.items()
        assert os.environ.get("OMP_NUM_THREADS") == threads
        assert sys.modules["__main__"] is before
    finally:
        for name in set(launched):
            os.environ.pop(name, None)
