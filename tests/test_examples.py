"""The examples in the docstrings of the package, and the texts of the objects that they create.

The docstring of each folder's `__init__.py` runs first. The names that it defines are available to
the examples of all modules of the folder, each of which gets its own copy of them. In the folders
of `WITH_BODY` these names are `mbd`, `np`, `body`, `engine` and `run`.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import mechanisms
from tests.models.rods import rod

one_rank = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="examples run on one rank")

FOLDERS = (
    "analyses",
    "design.identification",
    "design.optimization",
    "design.sensitivity",
    "durability",
    "durability.acoustics",
    "durability.recovery",
    "dynamics.start",
    "fem",
    "fem.interfaces",
    "fem.modal",
    "forms",
    "geometry",
    "io.export",
    "io.export.compiled",
    "io.imports",
    "mechanism",
    "mechanism.bearings",
    "reduction",
    "structures.beams",
    "structures.cables",
    "structures.mesh_bodies",
    "structures.prescribed_motion",
    "structures.rotating",
)
"""Folders of `dolfinx_mbd` whose examples are run; their public names must all have one."""

RUNS = ("results", "design.runs", "dynamics.stepping")
"""Further folders with examples for all public names, which use the names of `analyses`."""

SAME_NAMES = dict.fromkeys(
    ("design.identification", "design.optimization", "design.sensitivity", "fem.interfaces"),
    "reduction",
) | {"io.export.compiled": "analyses"}
"""Folders whose examples use the names of another folder."""

WITH_BODY = ("body", "body.response", "plotting")
"""Further such folders, whose examples use a body and a simulation without creating them."""

OTHERS = (
    "analyses.studies",
    "archive",
    "checks",
    "errors",
    "files",
    "io.cli",
    "mechanism.mechanisms",
    "parallel",
)
"""Modules and folders whose examples use the same names; not every public name has one."""

SLOW = ("mechanism.bearings", "structures.cables", "durability", "io.export.compiled")
"""Folders whose examples take several seconds, or a minute of compilation the first time."""

MODULES = ("fem.elastic_model", "fem.modal.natural_modes", "mechanism.system")
"""Modules whose examples are run on any number of ranks."""

SHOWN: set[type] = set()
"""Classes of the package of which an example has created an object."""

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.REPORT_NDIFF


def modules(folder: str) -> list[str]:
    """Return the names of the modules of a folder, and of its subfolders that are not listed."""
    package = importlib.import_module(f"dolfinx_mbd.{folder}")
    if not hasattr(package, "__path__"):
        return [package.__name__]
    paths, prefix = package.__path__, f"{package.__name__}."
    names = [module.name for module in pkgutil.walk_packages(paths, prefix)]
    listed = (f"dolfinx_mbd.{name}" for name in FOLDERS + RUNS + WITH_BODY + OTHERS)
    other = tuple(f"{name}." for name in listed if name.startswith(prefix))
    return [name for name in names if not f"{name}.".startswith(other)]


def examples(module: str, names: dict[str, Any]) -> Iterator[doctest.DocTest]:
    """Yield the examples of the docstrings of a module."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    loaded = importlib.import_module(module)
    yield from (t for t in finder.find(loaded, extraglobs=names) if t.examples)


def run(test: doctest.DocTest) -> None:
    """Run one example and check that the texts of its objects have at most ten lines.

    The globals of the example keep the names that it defines.
    """
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    runner.run(test, out=report.append, clear_globs=False)
    assert not runner.failures, "".join(report)
    for name, value in test.globs.items():
        if type(value).__module__.startswith("dolfinx_mbd."):
            lines = repr(value).count("\n") + 1
            assert lines <= 10, f"{test.name}: the text of {name} has {lines} lines: {value!r}"
            SHOWN.add(type(value))


@lru_cache
def body_names() -> dict[str, Any]:
    """Return a body, a slider-crank with it, and its simulation."""
    body = rod()
    masses = {"crank_mass": 0.5, "piston_mass": 0.2}
    engine = mechanisms.slider_crank(
        body, speed=100.0, crank_radius=0.2, ends=("left", "right"), **masses
    )
    run = mbd.simulate(engine, t_end=0.01, dt=1e-4)
    return {"mbd": mbd, "np": np, "body": body, "engine": engine, "run": run}


def shared_names(folder: str) -> dict[str, Any]:
    """Return the names that examples of a folder may use; run the one in its `__init__.py`."""
    if folder in WITH_BODY + OTHERS:
        return body_names()
    source = "analyses" if folder in RUNS else SAME_NAMES.get(folder, folder)
    package = importlib.import_module(f"dolfinx_mbd.{source}")
    text = inspect.getdoc(package) or ""
    test = doctest.DocTestParser().get_doctest(text, {}, package.__name__, package.__file__, 0)
    run(test)
    with_body = folder in ("analyses", "mechanism")
    return test.globs | ({"body": rod()} if with_body else {})


@one_rank
@pytest.mark.filterwarnings("ignore::dolfinx_mbd.io.imports.FirstOrderInertiaWarning")
@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(
            folder, marks=[pytest.mark.slow, pytest.mark.timeout(1200)] if folder in SLOW else ()
        )
        for folder in FOLDERS + RUNS + WITH_BODY + OTHERS
    ],
)
def test_examples(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = shared_names(folder)
    for module in modules(folder):
        for test in examples(module, names):
            run(test)


@pytest.mark.parametrize("module", MODULES)
def test_examples_on_all_ranks(module: str) -> None:
    tests = list(examples(f"dolfinx_mbd.{module}", {"mbd": mbd, "np": np}))
    assert tests
    for test in tests:
        run(test)


def public_names(folder: str) -> Iterator[tuple[str, Any]]:
    """Yield the names that a folder exports, or that the package exports from its modules."""
    package = importlib.import_module(f"dolfinx_mbd.{folder}")
    if hasattr(package, "__all__"):
        yield from ((name, getattr(package, name)) for name in package.__all__)
        return
    top_folder = importlib.import_module(f"dolfinx_mbd.{folder.split('.')[0]}")
    for name in (*mbd.__all__, *getattr(top_folder, "__all__", ())):
        value = getattr(top_folder, name, None) or getattr(mbd, name)
        if getattr(value, "__module__", "").startswith(f"{package.__name__}."):
            yield name, value


@pytest.mark.parametrize("folder", FOLDERS + RUNS + WITH_BODY)
def test_public_names_have_examples(folder: str) -> None:
    names = list(public_names(folder))
    assert names
    for name, value in names:
        abstract = inspect.isclass(value) and (
            issubclass(value, (BaseException, tuple)) or getattr(value, "_is_protocol", False)
        )
        if (inspect.isclass(value) or inspect.isfunction(value)) and not abstract:
            assert ">>>" in (inspect.getdoc(value) or ""), f"{folder}.{name} has no example"


@pytest.mark.parametrize("folder", FOLDERS + RUNS + WITH_BODY)
def test_records_of_arrays_have_short_texts(folder: str) -> None:
    """No public record prints its arrays: it has a text of its own, not one made by Python."""
    for name, value in public_names(folder):
        types = getattr(value, "__annotations__", {}).values() if inspect.isclass(value) else ()
        if any(re.search(r"Array\b", str(kind)) for kind in types):
            text = value.__repr__  # that of a dataclass has the attribute `__wrapped__`
            written = text.__module__.startswith("dolfinx_mbd") and not hasattr(text, "__wrapped__")
            assert written, f"{folder}.{name}: define __repr__ = short_repr"
