"""Fixtures of all tests: the communicator, and the release of PETSc objects after each test."""

from __future__ import annotations

import gc
import importlib.metadata
import importlib.util
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from mpi4py import MPI


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run the whole suite on all cores if pytest-xdist is installed.

    Runs of named files or folders, runs under MPI and runs with `-s`, `--pdb` or `-n` are left
    alone.
    """
    option = config.option
    if not hasattr(config, "workerinput"):
        _set_options_of_forms(config)
    if (
        config.pluginmanager.hasplugin("xdist")
        and not hasattr(config, "workerinput")
        and option.numprocesses is None
        and config.args_source is pytest.Config.ArgsSource.TESTPATHS
        and MPI.COMM_WORLD.size == 1
        and option.capture != "no"
        and not option.usepdb
    ):
        option.numprocesses, option.dist = "auto", "worksteal"


LONGEST_COMPILATION = 200.0
"""Time after which the compilation of a form is regarded as interrupted, s."""


OPTIMIZATION = ["-O1", "-g0"]
"""Options of the C compiler for forms."""


def cache_of_forms() -> Path:
    """Return the folder in which DOLFINx keeps compiled forms."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "fenics")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Import all tests without garbage collection, which would find nothing."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems() -> None:
    """Let Hypothesis try the numbers in the source of this package, not of all packages."""
    if "hypothesis" not in sys.modules:
        return
    with suppress(ImportError, AttributeError):  # older versions read no source
        providers: Any = importlib.import_module("hypothesis.internal.conjecture.providers")
        local = providers.is_local_module_file
        providers.is_local_module_file = lambda path: "dolfinx_mbd" in path and local(path)


def remove_unfinished_forms(folder: Path) -> None:
    """Remove forms whose compilation was interrupted: processes would wait for them in vain.

    A file `.cached` shows that the compilation of a form has ended.
    """
    for path in folder.glob("libffcx_*.c"):
        with suppress(FileNotFoundError):
            old = time.time() - path.stat().st_mtime > LONGEST_COMPILATION
            if old and not path.with_name(f"{path.name}.cached").exists():
                path.unlink()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[Any]:
    """Remove forms whose compilation was interrupted, for example by a time limit."""
    report = yield
    if report.failed:
        remove_unfinished_forms(cache_of_forms())
    return report


def _set_options_of_forms(config: pytest.Config) -> None:
    """Compile forms with -O1, which takes half as long as -O2; tests have few cells.

    A process waits four minutes, not ten seconds, for a form that another one compiles.
    """
    remove_unfinished_forms(cache_of_forms())
    user = Path(os.environ.get("XDG_CONFIG_HOME", Path.home() / ".config"))
    folder = TemporaryDirectory(prefix="pytest-config-")
    config.add_cleanup(folder.cleanup)
    for path in user.glob("*"):
        if path.name != "dolfinx":
            Path(folder.name, path.name).symlink_to(path)
    options = Path(folder.name, "dolfinx", "dolfinx_jit_options.json")
    options.parent.mkdir()
    options.write_text(json.dumps({"timeout": 240, "cffi_extra_compile_args": OPTIMIZATION}))
    os.environ["XDG_CONFIG_HOME"] = folder.name


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let only one worker (gw0) start the processes that compile kernels ahead of their use."""
    worker = getattr(config, "workerinput", {}).get("workerid", "gw0")
    if worker != "gw0":
        os.environ["DOLFINX_MBD_PRECOMPILE"] = "0"


@pytest.fixture(autouse=True, scope="session")
def _look_up_once() -> Iterator[None]:
    """Keep what FFCx and UFL would find or build again for each form, which never changes.

    FFCx lists its whole cache to load a form, setuptools reads the entry points of all installed
    packages six times to compile one, and UFL creates a cell and all its parts each time the cell
    of an element is requested. Processes that tests start do without this.
    """
    import basix.ufl
    from ffcx.codegeneration import jit

    load, make_cell = jit.get_cached_module, basix.ufl._ElementBase.cell.fget
    cells: dict[Any, Any] = {}
    loaded: dict[tuple[str, tuple[str, ...], str], Any] = {}

    def loaded_once(name: str, objects: list[str], folder: str, timeout: int) -> Any:
        key = name, tuple(objects), str(folder)
        if key in loaded and Path(folder, f"{name}.c.cached").exists():
            return loaded[key]
        entry = load(name, objects, folder, timeout)
        if entry[0] is not None:  # None: the form must still be compiled
            loaded[key] = entry
        return entry

    def made_once(element: Any) -> Any:
        kind = element.cell_type
        if kind not in cells:
            cells[kind] = make_cell(element)
        return cells[kind]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit, "get_cached_module", loaded_once)
        patch.setattr(importlib.metadata, "entry_points", cache(importlib.metadata.entry_points))
        patch.setattr(basix.ufl._ElementBase, "cell", property(made_once))
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start Chromium with WebGL in software; skip the test without Chromium or playwright."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None or importlib.util.find_spec("playwright") is None:
        pytest.skip("needs Chromium and the package playwright")
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader"]
    options += ["--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
    with sync_playwright() as driver:
        program = driver.chromium.launch(executable_path=path, args=options)
        yield program
        program.close()


@pytest.fixture
def comm() -> MPI.Intracomm:
    """Return the communicator of the run; tests must pass on 1, 2 and 3 ranks."""
    return MPI.COMM_WORLD


@pytest.fixture(autouse=True, scope="module")
def _keep_imports() -> None:
    """Exclude all present objects from garbage collection, which is then faster in the tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _same_environment() -> Iterator[None]:
    """Restore the environment after a test (executorlib changes the search path of Python)."""
    before = dict(os.environ)
    yield
    before["PYTEST_CURRENT_TEST"] = os.environ["PYTEST_CURRENT_TEST"]  # pytest itself changes it
    if before != dict(os.environ):
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    """Destroy PETSc objects together on all ranks, not when one rank collects garbage."""
    yield
    if MPI.COMM_WORLD.size > 1:
        gc.collect()
        MPI.COMM_WORLD.Barrier()
