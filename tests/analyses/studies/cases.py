"""The runs of the studies in these tests, in a module that worker processes import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.mechanism.mechanisms import slider_crank
from dolfinx_mbd.results import Solution


def law(x: float, y: float) -> dict[str, Any]:
    """Return a ratio in closed form; it raises an error if y = 0."""
    if y == 0:
        raise ZeroDivisionError(f"no ratio for x = {x}")
    return {"ratio": x / y, "row": np.array([x, y, x * y]), "kind": "big" if x > y else "small"}


def noted(x: int, folder: str) -> int:
    """Return x², and write a file for each call."""
    count = len(list(Path(folder).glob(f"{x}-*")))
    (Path(folder) / f"{x}-{count}-{os.getpid()}").touch()
    return x * x


def noted_slowly(x: int, folder: str) -> int:
    """Return the result of `noted`, after a third of a second if there is no file `at-once`."""
    result = noted(x, folder)
    if not (Path(folder) / "at-once").exists():
        time.sleep(0.3)
    return result


def deadly(x: int) -> int:
    """Return 2 x; kill the process if x = 1."""
    if x == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * x


def environment(name: str) -> str:
    """Return a variable of the environment, or an empty text."""
    return os.environ.get(name, "")


def product(seed: int) -> np.ndarray:
    """Return a product of matrices and a solution, large enough for BLAS to share among threads."""
    random = np.random.default_rng(seed)
    A, B = random.standard_normal((2, 500, 500))
    return np.linalg.solve(A @ B, B[:, 0])


def crank(speed: float, damping: float, rod: ReducedBody) -> Solution:
    """Return a short run of a flexible slider-crank.

    A negative damping ratio raises an error.
    """
    system = slider_crank(
        rod, crank_radius=0.15, crank_mass=0.36, piston_mass=0.0755, speed=speed,
        damping_ratio=damping,
    )  # fmt: skip
    return simulate(system, t_end=2e-3, dt=1e-4)


def interrupted(x: int, at: int) -> int:
    """Return x, or -1 if Ctrl-C interrupts the case x = `at`.

    As `simulate`, the function catches the interruption.
    """
    try:
        if x == at:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10.0)
    except KeyboardInterrupt:
        return -1
    return x
