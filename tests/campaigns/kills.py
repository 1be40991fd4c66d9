"""SIGKILL during a save: the file then has its old contents or its new ones, never half of them.

A child process, forked from this one, saves an object and is killed. It kills itself at a random
call or return of a function during the save, or is killed after a random time. Then the file is
loaded. The next save must also leave nothing but the file.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses.studies.cases import MISSING
from dolfinx_mbd.results import recorded_run
from dolfinx_mbd.results.files.case_files import CaseFiles
from dolfinx_mbd.results.files.run_folder import CHECKPOINT
from tests.campaigns.bench import Bench
from tests.campaigns.cases import Case
from tests.campaigns.contents import digest

KILLS = 60
"""Number of kills of each way for each kind of file."""

KINDS = ("body", "solution", "study")
CASE = "case-000000.npz"
RUN: dict[str, Any] = {"t_end": 0.01, "dt": 2e-4}

Work = Callable[[], None]
Killer = Callable[[random.Random], Callable[[Work], str | None]]
"""Return, for random numbers, a function that runs some work in a child and kills it."""


class Saved:
    """Two objects of a kind, how they are loaded, and the hashes of both when loaded.

    Attributes:
        objects: Both objects.
        load: Function that loads an object from a path.
        digests: Hashes of both objects when loaded.
        path: A file that holds the first object, in a folder of its own.
        calls: Number of calls and returns in a save of the second one to `path`.
    """

    def __init__(
        self,
        folder: Path,
        objects: tuple[Any, Any],
        load: Callable[[Path], Any],
        name: str = "saved.npz",
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.objects, self.load, self.path = objects, load, folder / name
        self.digests = set()
        for value in objects:
            value.save(self.path)
            self.digests.add(digest(load(self.path)))
        objects[0].save(self.path)
        self.calls = _count(lambda: objects[1].save(self.path))
        objects[0].save(self.path)


class _CaseOfStudy:
    """A case of a study with an array of some length, which is written to its folder."""

    def __init__(self, length: int) -> None:
        self.outcome = MISSING | {"status": "done"}, {"values": np.arange(float(length))}

    def save(self, path: Path) -> None:
        CaseFiles(path.parent, {}).write(0, self.outcome)

    @staticmethod
    def load(path: Path) -> Any:
        return CaseFiles(path.parent, {}).read().get(0)


@cache
def _saved(bench: Bench, kind: str) -> Saved:
    """Return a folder, values to save and the function that loads them."""
    folder = bench.folder / f"kill-{kind}"
    if kind == "body":
        return Saved(folder, (bench.reduction.body, bench.rod), mbd.ReducedBody.load)
    if kind == "solution":
        longer = mbd.simulate(bench.crank, t_end=4e-3, dt=2e-4)
        return Saved(
            folder, (bench.run, longer), lambda path: mbd.results.Solution.load(path, bench.crank)
        )
    return Saved(folder, (_CaseOfStudy(100), _CaseOfStudy(300)), _CaseOfStudy.load, CASE)


def cases(folder: Path, *, only: str | None = None, seed: int = 0) -> Iterator[Case]:
    """Return the kills of each kind of file, and those during a run in a folder.

    All objects are made, and all kernels compiled, before the first case begins.
    """
    bench = Bench(folder)
    for kind in KINDS:
        if only not in (None, kind):
            continue
        calls = _saved(bench, kind).calls
        for way, kill in (("call", _at_call(calls)), ("time", _after_time(0.06))):
            for number in range(KILLS):
                rng = random.Random(f"{seed} {kind} {way} {number}")
                yield Case(
                    kind, f"kill at a {way}", str(number),
                    lambda k=kind, f=kill, c=rng: _killed(_saved(bench, k), f(c)),
                )  # fmt: skip
    if only in (None, "checkpoint"):
        path = bench.folder / "kill-run"
        expected = digest(mbd.simulate(bench.crank, **RUN))
        calls = int(0.99 * _count(lambda: _checkpointed(bench, path)))  # (kill before the end)
        for way, kill in (("call", _at_call(calls)), ("time", _after_time(0.3))):
            for number in range(KILLS):
                rng = random.Random(f"{seed} checkpoint {way} {number}")
                yield Case(
                    "checkpoint", f"kill at a {way}", str(number),
                    lambda f=kill, c=rng: _run_killed(bench, path, f(c), expected),
                )  # fmt: skip


def _at_call(calls: int) -> Killer:
    """Return a way to kill a child at a random one of a number of calls and returns."""

    def killer(rng: random.Random) -> Callable[[Work], str | None]:
        last = rng.randrange(1, calls)

        def count(*_: Any) -> None:
            nonlocal last
            last -= 1
            if last == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        return lambda work: _fork(lambda: _profiled(work, count), None)

    return killer


def _after_time(most: float) -> Killer:
    """Return a way to kill a child after a random time, in seconds."""
    return lambda rng: lambda work: _fork(work, rng.uniform(0.0, most))


def _fork(work: Work, seconds: float | None) -> str | None:
    """Run some work in a child; kill it after some seconds, or let it kill itself.

    Returns:
        What is wrong if the child ends in another way.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) or (seconds is not None and status == 0):
        return None
    return f"the child has not been killed (status {status})"


def _profiled(work: Work, event: Callable[..., None]) -> None:
    """Call a function while events of the interpreter are observed."""
    sys.setprofile(event)
    try:
        work()
    finally:
        sys.setprofile(None)


def _count(work: Work) -> int:
    """Return the number of calls and returns in some work, which is done once before."""
    work()
    number = 0

    def count(*_: Any) -> None:
        nonlocal number
        number += 1

    _profiled(work, count)
    return number


def _killed(saved: Saved, kill: Callable[[Work], str | None]) -> str | None:
    """Kill saves to a path in a child; return what is wrong with the file."""
    first, second = saved.objects

    def work() -> None:
        while True:
            second.save(saved.path)
            first.save(saved.path)

    fault = kill(work)
    try:
        if fault is None and digest(saved.load(saved.path)) not in saved.digests:
            fault = "the file has neither the old nor the new contents"
        first.save(saved.path)
    except mbd.errors.Error as error:  # (`attempt` would take it for handled)
        return f"the file cannot be loaded or replaced: {error}"
    left = sorted(p.name for p in saved.path.parent.iterdir() if p != saved.path)
    return f"left behind: {left}" if fault is None and left else fault


def _checkpointed(bench: Bench, path: Path) -> None:
    """Run a simulation with a checkpoint after each step."""
    (path / CHECKPOINT).unlink(missing_ok=True)  # the child may be killed before it deletes all
    shutil.rmtree(path, ignore_errors=True)
    with mock.patch.object(recorded_run, "_BLOCK_ROWS", 1):
        mbd.simulate(bench.crank, path=path, **RUN)


def _run_killed(
    bench: Bench, path: Path, kill: Callable[[Work], str | None], expected: str
) -> str | None:
    """Kill a run that is written to a folder, resume it, and compare with an undisturbed run."""
    fault = kill(lambda: _checkpointed(bench, path))
    if fault is not None or not (path / CHECKPOINT).exists():
        return fault
    try:
        resumed = mbd.resume(path, bench.crank)
    except mbd.errors.Error as error:  # (`attempt` would take it for handled)
        return f"the run cannot be resumed: {error}"
    return "the resumed run is another one" if digest(resumed) != expected else None
