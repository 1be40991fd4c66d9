"""Examples in the docstrings of bodies, plots, the command line and the files of the package."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import mechanisms
from dolfinx_mbd.body import Interface, LoadPattern, Skin, Stiffening
from dolfinx_mbd.body.static_errors import unit_work

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="writes files")

MODULES = ("archive", "checks", "errors", "files", "parallel")
FOLDERS = ("body", "cli", "plotting")
PUBLIC = ("body", "plotting")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules() -> Iterator[Any]:
    for name in MODULES:
        yield importlib.import_module(f"dolfinx_mbd.{name}")
    for folder in FOLDERS:
        package = importlib.import_module(f"dolfinx_mbd.{folder}")
        for entry in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            yield importlib.import_module(entry.name)


EXAMPLES = [
    example
    for module in modules()
    for example in doctest.DocTestFinder(exclude_empty=True).find(module)
    if example.examples
]


def rod() -> mbd.ReducedBody:
    """A uniform rod of 0.6 kg along x with an axial mode and a bending mode in the x-y plane."""
    points, weights = np.polynomial.legendre.leggauss(12)
    x, masses = 0.5 * points, 0.3 * weights
    shapes = np.zeros((3, len(x), 3))
    shapes[0, :, 0] = x
    shapes[1, :, 0] = np.sin(np.pi * x)
    shapes[2, :, 1] = 4 * x**2 - 1 / 3
    second = np.einsum("p,kpa,lpb->klab", masses, shapes, shapes)
    second[0, 0] += np.diag([0.0, 1e-5, 1e-5])
    motions = np.zeros((2, 6, 2))
    motions[:, 0, 0] = -1.0, 1.0
    motions[:, 1, 1] = 2 / 3
    motions[:, 5, 1] = -4.0, 4.0
    corners = np.array([[x, y, 0.0] for x in (-0.5, 0.5) for y in (-0.02, 0.02)])
    nodes = np.zeros((2, 4, 3))
    nodes[0, :, 0] = -1.0, -1.0, 1.0, 1.0
    nodes[1, :, 1] = 2 / 3
    body = mbd.ReducedBody.from_arrays(
        name="rod",
        total_mass=0.6,
        first_moments=np.einsum("p,kpa->ka", masses, shapes),
        second_moments=second,
        stiffness=np.diag([5e6, 4e4]),
        interfaces=[
            Interface(name, "rigid", (end, 0.0, 0.0), np.eye(3), motion)
            for name, end, motion in zip(("left", "right"), (-0.5, 0.5), motions, strict=True)
        ],
        skin=Skin(corners, [[0, 1, 2], [1, 3, 2]], nodes),
        loads=[LoadPattern("wind", (0, 1, 0), (0, 0, 0), (0, 0.1), np.zeros((2, 3)))],
    )
    work = unit_work(body)
    responses = np.linalg.solve(body.stiffness, work)
    cases = Stiffening(
        np.zeros((6, 2, 2)), np.zeros((2, 6, 2, 2)), np.einsum("kc,kc->c", work, responses)
    )
    return body.replace(stiffening=cases)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """Names that the examples use without an import."""
    body = rod()
    engine = mechanisms.slider_crank(
        body,
        speed=100.0,
        crank_radius=0.2,
        crank_mass=0.5,
        piston_mass=0.2,
        ends=("left", "right"),
    )
    run = mbd.simulate(engine, t_end=0.01, dt=1e-4)
    return {"mbd": mbd, "np": np, "body": body, "engine": engine, "run": run}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example(
    example: doctest.DocTest, names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    example.globs = {**example.globs, **names}
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    report: list[str] = []
    runner.run(example, out=report.append, clear_globs=False)
    assert not runner.failures, "".join(report)


@pytest.mark.parametrize("folder", PUBLIC)
def test_every_public_name_has_an_example(folder: str) -> None:
    package = importlib.import_module(f"dolfinx_mbd.{folder}")
    for name in package.__all__:
        entry = getattr(package, name)
        if inspect.isclass(entry) or inspect.isfunction(entry):
            assert ">>>" in (inspect.getdoc(entry) or ""), f"{folder}.{name}"
