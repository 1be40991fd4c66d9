"""The examples in the docstrings of the package.

The docstring of each folder's `__init__.py` runs first. The names that it defines are available to
the examples of all modules of the folder, each of which gets its own copy of them.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mpi4py import MPI

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="examples run on one rank")

FOLDERS = ("cables", "forms", "geometry", "imports", "export")
"""Folders of `dolfinx_mbd` whose examples are run; their public names must all have one."""

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.REPORT_NDIFF


def modules(folder: str) -> list[str]:
    """Return the names of the modules of a folder and of its subfolders."""
    package = importlib.import_module(f"dolfinx_mbd.{folder}")
    paths, prefix = package.__path__, f"{package.__name__}."
    return [module.name for module in pkgutil.walk_packages(paths, prefix)]


def examples(module: str, names: dict[str, Any]) -> Iterator[doctest.DocTest]:
    """Yield the examples of the docstrings of a module."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    loaded = importlib.import_module(module)
    yield from (t for t in finder.find(loaded, extraglobs=names) if t.examples)


def run(test: doctest.DocTest) -> None:
    """Run one example; its globals keep the names that it defines."""
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    runner.run(test, out=report.append, clear_globs=False)
    assert not runner.failures, "".join(report)


def shared_names(folder: str) -> dict[str, Any]:
    """Return the names that the example in a folder's `__init__.py` defines."""
    package = importlib.import_module(f"dolfinx_mbd.{folder}")
    text = inspect.getdoc(package) or ""
    test = doctest.DocTestParser().get_doctest(text, {}, package.__name__, package.__file__, 0)
    run(test)
    return test.globs


@pytest.mark.filterwarnings("ignore::dolfinx_mbd.imports.FirstOrderInertiaWarning")
@pytest.mark.parametrize("folder", FOLDERS)
def test_examples(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = shared_names(folder)
    for module in modules(folder):
        for test in examples(module, names):
            run(test)


@pytest.mark.parametrize("folder", FOLDERS)
def test_public_names_have_examples(folder: str) -> None:
    package = importlib.import_module(f"dolfinx_mbd.{folder}")
    for name in package.__all__:
        value = getattr(package, name)
        exception = inspect.isclass(value) and issubclass(value, BaseException)
        if (inspect.isclass(value) or inspect.isfunction(value)) and not exception:
            assert ">>>" in (inspect.getdoc(value) or ""), f"{folder}.{name} has no example"
