"""Checkpoints: a run that is stopped, or killed, goes on to the same bits; others are refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd import errors
from dolfinx_mbd.mechanisms import slider_crank
from dolfinx_mbd.multibody import Adaptive, RunFileError, Solution, System, resume, simulate
from dolfinx_mbd.multibody.stepping.checkpoints import Checkpoint, read_checkpoint
from tests.models.beams import slender_rod

SETTINGS = {"crank_radius": 0.15, "crank_mass": 0.36, "piston_mass": 0.0755}


def mechanism(torque: float = 20.0, damping: float = 0.02) -> System:
    def motor(t: float, angle: float, rate: float) -> float:
        return torque + 3.0 * np.sin(angle)

    rod = slender_rod(bending=2, axial=0)
    return slider_crank(rod, torque=motor, damping_ratio=damping, **SETTINGS)


def same(one: Solution, two: Solution) -> bool:
    keys = ("time", "q", "v", "a", "lam", "angles")
    equal = all(np.array_equal(getattr(one, key), getattr(two, key)) for key in keys)
    work = (one.iterations, one.factorizations) == (two.iterations, two.factorizations)
    last = (one.final_state.memory["algorithmic"], two.final_state.memory["algorithmic"])
    return equal and work and np.array_equal(*last)


@pytest.mark.parametrize("dt", [1e-4, Adaptive(1e-4)], ids=["fixed", "adaptive"])
@pytest.mark.parametrize("every", [4, 17])
def test_every_checkpoint_leads_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dt: float | Adaptive, every: int
) -> None:
    """Copies of checkpoints on the way, each resumed in a system that is built anew."""
    whole = simulate(mechanism(), t_end=0.01, dt=dt, stride=3)
    path, copies = tmp_path / f"run{MPI.COMM_WORLD.rank}.npz", []
    write = Checkpoint.write

    def copied(self: Checkpoint, run) -> None:
        write(self, run)
        copies.append(path.read_bytes())

    monkeypatch.setattr(Checkpoint, "write", copied)
    run = simulate(
        mechanism(), t_end=0.01, dt=dt, stride=3, checkpoint=path, checkpoint_stride=every
    )
    monkeypatch.undo()
    assert same(run, whole)
    assert len(copies) > 2
    for data in copies[:: max(1, len(copies) // 4)] + copies[-1:]:
        path.write_bytes(data)
        assert same(resume(path, mechanism()), whole)


LONG = {"t_end": 0.06, "dt": 2e-5, "stride": 10}

CHILD = """
import sys
sys.path.insert(0, {root!r})
from tests.multibody.stepping.test_checkpoint import LONG, mechanism, simulate
simulate(mechanism(), checkpoint={path!r}, checkpoint_stride=50, **LONG)
"""


def test_a_killed_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    """kill -9 in the middle of 3,000 steps, with a checkpoint every 50."""
    if MPI.COMM_WORLD.rank:
        return
    path, root = tmp_path / "run.npz", str(Path(__file__).parents[2])
    launched = ("OMPI", "PMIX", "PRTE", "PMI")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(launched)}
    command = [sys.executable, "-c", CHILD.format(root=root, path=str(path))]
    child = subprocess.Popen(command, env=environment)
    try:
        until = time.monotonic() + 120
        seen: set[int] = set()  # the first is written before the first step
        while len(seen) < 2 and child.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
            if path.exists():
                seen.add(path.stat().st_ino)
        assert child.poll() is None
    finally:
        child.kill()
        assert child.wait() == -signal.SIGKILL
    run, _ = read_checkpoint(path, mechanism())
    assert 0 < run.steps.taken < run.steps.total
    assert same(resume(path, mechanism()), simulate(mechanism(), **LONG))


class Motor:
    """A torque; told to, it interrupts the run once as Ctrl-C does."""

    def __init__(self) -> None:
        self.torque = 20.0
        self._stop_at = np.inf  # no part of the fingerprint

    def __call__(self, t: float, angle: float, rate: float) -> float:
        if t > self._stop_at:
            self._stop_at = np.inf
            raise KeyboardInterrupt
        return self.torque


@pytest.mark.parametrize("dt", [1e-4, Adaptive(1e-4)], ids=["fixed", "adaptive"])
def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path: Path, dt: float | Adaptive) -> None:
    """Ctrl-C in the middle of a step writes the state before it."""
    path = tmp_path / f"run{MPI.COMM_WORLD.rank}.npz"

    def driven(motor: Motor) -> System:
        return slider_crank(slender_rod(bending=2, axial=0), torque=motor, **SETTINGS)

    motor = Motor()
    motor._stop_at = 3.21e-3
    with pytest.warns(errors.MbdWarning, match="interrupted at t = 0.003"):
        part = simulate(driven(motor), t_end=0.006, dt=dt, checkpoint=path, checkpoint_stride=10**6)
    assert not part.complete
    rest = resume(path, driven(Motor()))
    assert rest.complete
    assert same(rest, simulate(driven(Motor()), t_end=0.006, dt=dt))


def test_a_finished_run_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / f"run{MPI.COMM_WORLD.rank}.npz"
    run = simulate(mechanism(), t_end=0.002, dt=1e-4, checkpoint=path)
    again = resume(path, mechanism())
    assert again.complete
    assert same(run, again)
    # and it can be gone on from
    on, straight = (
        simulate(mechanism(), t_end=0.003, dt=1e-4, start=r.final_state) for r in (again, run)
    )
    assert np.array_equal(on.q, straight.q)


def test_dropped_constraints_stay_dropped(tmp_path: Path) -> None:
    from tests.multibody.start.test_start import planar_crank

    path = tmp_path / f"run{MPI.COMM_WORLD.rank}.npz"
    settings = {"t_end": 0.02, "dt": 1e-3, "start": {"main": 20.0}, "redundant": "keep"}
    run = simulate(planar_crank(pins=True), checkpoint=path, checkpoint_stride=7, **settings)
    again = resume(path, planar_crank(pins=True))
    assert same(run, again)
    assert np.array_equal(again.joint("guide").force, run.joint("guide").force)


def test_other_systems_and_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / f"run{MPI.COMM_WORLD.rank}.npz"
    simulate(mechanism(), t_end=0.001, dt=1e-4, checkpoint=path)
    with pytest.raises(RunFileError, match="load 'drive' differs"):
        resume(path, mechanism(torque=21.0))
    with pytest.raises(RunFileError, match="body 'rod' differs"):
        resume(path, mechanism(damping=0.03))
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        resume(path.with_name("none.npz"), mechanism())
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(RunFileError, match="not a checkpoint, or truncated or damaged"):
        resume(path, mechanism())
    path.unlink()
    Solution(mechanism(), [simulate(mechanism(), t_end=1e-4, dt=1e-4).final_state]).save(path)
    with pytest.raises(RunFileError, match="not a checkpoint"):
        resume(path, mechanism())
    with pytest.raises(errors.InputError) as caught:
        simulate(mechanism(), t_end=0.001, dt=1e-4, checkpoint_stride=10)
    assert caught.value.argument == "checkpoint_stride"
    with pytest.raises(OSError, match="cannot write checkpoint"):
        simulate(mechanism(), t_end=0.001, dt=1e-4, checkpoint=tmp_path / "no" / "folder.npz")


def test_a_full_disk_does_not_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / f"run{MPI.COMM_WORLD.rank}.npz", Checkpoint.write

    def full(self: Checkpoint, run) -> None:
        if run.steps.taken:
            raise OSError(28, "cannot write checkpoint (No space left on device)")
        write(self, run)

    monkeypatch.setattr(Checkpoint, "write", full)
    with pytest.warns(errors.FileWarning, match="No space left"):
        run = simulate(mechanism(), t_end=0.001, dt=1e-4, checkpoint=path, checkpoint_stride=4)
    monkeypatch.undo()
    assert run.complete
    assert same(run, resume(path, mechanism()))  # from the start
