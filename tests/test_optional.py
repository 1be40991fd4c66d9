"""Optional packages: every import of one names the missing package and its cure."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from dolfinx_mbd.files import tomllib
from dolfinx_mbd.optional import PACKAGES, optional_module

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "dolfinx_mbd").rglob("*.py"))
# Files that may handle import errors, because they work without the module or report all errors
WITHOUT = {
    "fem/compat.py",  # names of modules of DOLFINx
    "io/cli/main.py",  # reports errors of all kinds
    "kernels/compilation.py",
    "progress.py",
    "requirements.py",
    "results/files/run_folder.py",  # a module of Python that only Unix has
}
# The only file that imports an optional package directly, because it subclasses a class of
# matplotlib; this file is imported late
FIGURES = "plotting/figures.py"


@pytest.mark.parametrize("root", PACKAGES)
def test_missing_packages_are_named(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == root]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, root, None)
    package = PACKAGES[root]
    with pytest.raises(ImportError) as raised:
        optional_module(f"{root}.part", "tests")
    text = str(raised.value)
    assert text.startswith(f"tests require the package {package.name}")
    assert (package.cure or f"pip install {package.name}") in text
    assert raised.value.name == f"{root}.part"
    if package.extra:
        assert f"dolfinx_mbd[{package.extra}]" in text
    monkeypatch.setenv("FENICSX_USE", "inside")
    with pytest.raises(ImportError) as raised:
        optional_module(root, "tests")
    launcher = f"FENICSX_EXTRAS={package.extra} ./with-fenicsx"
    assert (launcher in str(raised.value)) == bool(package.extra)


def test_extras_contain_the_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    for package in PACKAGES.values():
        if package.extra:
            names = [re.split(r"[>=\[]", entry)[0] for entry in extras[package.extra]]
            assert package.name in names
        else:
            assert package.cure


def test_every_optional_import_names_the_package() -> None:
    """Imports of optional packages go through `optional_module`, which alone handles errors."""
    imports, handlers = [], []
    for path in SOURCES:
        place = path.relative_to(ROOT / "dolfinx_mbd").as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            elif isinstance(node, ast.ExceptHandler) and node.type is not None:
                if re.search("ImportError|ModuleNotFoundError", ast.unparse(node.type)):
                    handlers.append(place)
            imports += [place for name in names if name.partition(".")[0] in PACKAGES]
    assert set(imports) == {FIGURES}
    assert set(handlers) <= {"optional.py", *WITHOUT}
