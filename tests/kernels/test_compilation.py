"""Compiled kernels on disk: loaded by a second process, made anew when another file changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mpi4py import MPI

import dolfinx_mbd
from dolfinx_mbd.kernels.compilation import COMPILED, kernel_sources

PROGRAM = """
import numpy as np
from dolfinx_mbd.kernels.rotations import tangent_derivative
value = tangent_derivative(np.zeros(3), np.ones(3))[1, 0]
print(value, sum(tangent_derivative.stats.cache_hits.values()))
"""


def package(folder: Path) -> Path:
    """The part of the package that the program needs, to be changed."""
    source, copy = Path(dolfinx_mbd.__file__).parent, folder / "dolfinx_mbd"
    (copy / "kernels").mkdir(parents=True)
    (copy / "__init__.py").touch()
    (copy / "kernels" / "__init__.py").touch()
    for name in ("checks.py", "errors.py"):
        shutil.copy(source / name, copy / name)
    for name in ("body_table.py", "compilation.py", "small_vectors.py", "rotations.py"):
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
