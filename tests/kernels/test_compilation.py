"""Compiled kernels on disk: loaded by a second process, made anew when another file changes."""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd
from dolfinx_mbd.kernels.compilation import COMPILED, inner_kernel, kernel
from dolfinx_mbd.kernels.precompile import KERNELS, kernel_sources

PROGRAM = """
import numpy as np
from dolfinx_mbd.kernels.rotations import tangent_derivative
value = tangent_derivative(np.zeros(3), np.ones(3))[1, 0]
print(value, sum(tangent_derivative.stats.cache_hits.values()))
"""


def package(folder: Path) -> Path:
    """Return a copy of the part of the package that the program needs, which tests may change."""
    source, copy = Path(dolfinx_mbd.__file__).parent, folder / "dolfinx_mbd"
    (copy / "kernels").mkdir(parents=True)
    (copy / "__init__.py").touch()
    (copy / "kernels" / "__init__.py").touch()
    for name in ("checks.py", "errors.py"):
        shutil.copy(source / name, copy / name)
    names = "body_table", "compilation", "precompile", "small_vectors", "rotations"
    for name in (f"{name}.py" for name in names):
        shutil.copy(source / "kernels" / name, copy / "kernels" / name)
    return copy


@pytest.mark.skipif(not COMPILED, reason="numba keeps nothing where it is not")
@pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts another Python")
def test_a_change_in_another_file_is_noticed(tmp_path: Path) -> None:
    """``tangent_derivative`` is in one file, ``scaled3``, which it calls, in another."""
    copy = package(tmp_path)
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}

    def run() -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert run() == ["0.5", "0"]
    assert run() == ["0.5", "1"]  # from disk
    small = copy / "kernels" / "small_vectors.py"
    text = small.read_text(encoding="utf-8")
    assert text.count("factor * a[2]\n") == 1
    small.write_text(text.replace("factor * a[2]\n", "2.0 * factor * a[2]\n"), encoding="utf-8")
    assert run() == ["1.0", "0"]


def test_the_digest_is_of_files_with_kernels(tmp_path: Path) -> None:
    copy = package(tmp_path)
    kernel_sources.cache_clear()
    before = kernel_sources(copy / "kernels")
    (copy / "kernels" / "other.py").write_text("x = 1\n", encoding="utf-8")
    kernel_sources.cache_clear()
    assert kernel_sources(copy / "kernels") == before
    (copy / "kernels" / "other.py").write_text("@kernel\ndef f(): pass\n", encoding="utf-8")
    kernel_sources.cache_clear()
    assert kernel_sources(copy / "kernels") != before
    kernel_sources.cache_clear()


@pytest.mark.parametrize("line", KERNELS, ids=lambda line: line.split()[0])
def test_precompiled_kernels_have_these_arguments(line: str) -> None:
    name, *arguments = line.split()
    module, _, function = name.partition(".")
    kernel = getattr(importlib.import_module(f"dolfinx_mbd.kernels.{module}"), function)
    assert len(inspect.signature(getattr(kernel, "py_func", kernel)).parameters) == len(arguments)


@kernel
def _quotients(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = np.zeros(len(x))
    for k in range(len(x)):
        out[k] = _quotient(x[k], y[k])
    return out


@inner_kernel
def _quotient(x: float, y: float) -> float:
    return x / y


@pytest.mark.skipif(not COMPILED, reason="needs numba")
def test_an_inner_kernel_has_no_machine_code_but_its_errors() -> None:
    """The inner function has no machine code; its errors are raised, and garbage is collected."""
    ones = np.ones(2)
    _quotients(ones, ones)
    _quotients.recompile()  # type: ignore[attr-defined]  # it may come from the disk
    assert (_quotients(ones, 2 * ones) == 0.5).all()
    with pytest.raises(ZeroDivisionError):
        _quotients(ones, 0 * ones)
    (inner,) = _quotient.overloads.values()
    assert not inner.library.get_pointer_to_function(inner.fndesc.llvm_func_name)
    assert gc.isenabled()


SIMULATION = """
from numba.core.event import Listener, register
from dolfinx_mbd.kernels.precompile import compile_part
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine
from dolfinx_mbd.analyses import simulate
from tests.models.beams import slender_rod

compile_part(0, 1)
class Compiled(Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("dolfinx_mbd"):
            print("compiled:", function.__name__)
    def on_end(self, event):
        pass

register("numba:compile", Compiled())
engine = inline_engine(slender_rod(length=0.14, bending=4, axial=1), EngineDesign(), speed=300.0)
simulate(engine, t_end=5e-5, dt=1e-5)
"""


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="needs numba")
@pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts another Python")
def test_an_engine_needs_only_precompiled_kernels(tmp_path: Path) -> None:
    """Only small kernels of rotations are compiled after the kernels in the list."""
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path),
        "DOLFINX_MBD_PRECOMPILE": "0",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    command = [sys.executable, "-c", SIMULATION]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert set(run.stdout.split()) <= {"compiled:", "skew", "tangent"}
