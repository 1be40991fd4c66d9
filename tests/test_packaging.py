"""The files around the package agree with it: version, licence, conda environment."""

from __future__ import annotations

import re
from pathlib import Path

import dolfinx_mbd

ROOT = Path(__file__).parents[1]


def found(pattern: str, file: str) -> str:
    match = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert match, f"{file} has nothing like {pattern}"
    return match[1]


def test_one_version() -> None:
    version = dolfinx_mbd.__version__
    assert found(r'^version = "(.*)"$', "pyproject.toml") == version
    assert found(r"^version: (.*)$", "CITATION.cff") == version
    assert found(r"^## \[(\d.*?)\]", "CHANGELOG.md") == version


def test_one_licence() -> None:
    assert found(r'^license = "(.*)"$', "pyproject.toml") == "LGPL-3.0-or-later"
    assert found(r"^license: (.*)$", "CITATION.cff") == "LGPL-3.0-or-later"
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "GNU GENERAL PUBLIC LICENSE" in (ROOT / "COPYING").read_text(encoding="utf-8")


def test_conda_has_what_pip_would_not_find() -> None:
    """DOLFINx in the same range, and its companions, which pip must not compile."""
    conda = (ROOT / "environment.yml").read_text(encoding="utf-8")
    assert found(r"fenics-dolfinx(>=[^\"]*)\"", "pyproject.toml") == found(
        r"- fenics-dolfinx(.*)$", "environment.yml"
    )
    for package in ("petsc=*=real*", "slepc4py", "gmsh", "python-gmsh"):
        assert f"  - {package}\n" in conda
