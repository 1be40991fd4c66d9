"""Imports point one way; knowledge of DOLFINx's versions stays in one place; exports exist."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from mpi4py import MPI

import dolfinx_mbd

PACKAGE = Path(dolfinx_mbd.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
#: What a part of the package may import, besides itself; a part that is not here has no place.
MAY_IMPORT = {
    "errors": set(),
    "checks": set(),
    "parallel": set(),
    "forms": set(),
    "body": set(),
    "geometry": set(),
    "analysis": {"forms", "body", "geometry"},
    "multibody": {"body"},
    "export": {"body"},
    "imports": {"body"},
    "cli": {"analysis", "body", "export", "forms", "geometry", "imports", "multibody", "plotting"},
    "plotting": {"analysis", "body", "multibody"},
    "__main__": {"cli"},
    "__init__": {
        "analysis",
        "body",
        "export",
        "forms",
        "geometry",
        "imports",
        "multibody",
        "plotting",
    },
}
#: What every part may import.
SHARED = {"errors", "checks", "parallel"}
MESH_SIDE = {"basix", "dolfinx", "ffcx", "gmsh", "mpi4py", "petsc4py", "slepc4py", "ufl"}


def imports(path: Path) -> set[str]:
    """Dotted names of all that a file imports, wherever in the file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", FILES, ids=place)
def test_imports_point_one_way(path: Path) -> None:
    names = imports(path)
    parts = {name.split(".")[1] for name in names if name.startswith("dolfinx_mbd.")}
    own = part(path)
    assert parts & MAY_IMPORT.keys() <= MAY_IMPORT[own] | {own} | SHARED
    roots = {name.split(".")[0] for name in names}
    if own in ("body", "multibody", "export", "imports", "plotting"):
        assert not roots & MESH_SIDE
    if own == "forms":
        assert not roots & MESH_SIDE - {"ufl"}
    if "gmsh" in roots:
        assert own == "geometry" or place(path) == "analysis/compat.py"


@pytest.mark.parametrize("path", FILES, ids=place)
def test_only_compat_knows_versions_of_dolfinx(path: Path) -> None:
    if place(path) == "analysis/compat.py":
        return
    assert not {n for n in imports(path) if n.startswith("dolfinx.io.gmsh")}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Compare):  # (a record of the version in a file is no branch on it)
            assert "dolfinx.__version__" not in ast.unparse(node)
        if isinstance(node, ast.Attribute):
            assert node.attr not in ("gmshio", "cmap", "cmaps"), f"line {node.lineno}"


@pytest.mark.parametrize("path", FILES, ids=place)
def test_exports_exist(path: Path) -> None:
    name = ".".join(("dolfinx_mbd", *path.relative_to(PACKAGE).with_suffix("").parts))
    module = importlib.import_module(name.removesuffix(".__init__"))
    assert module.__doc__
    exports = getattr(module, "__all__", [])
    assert len(set(exports)) == len(exports)  # (Ruff sees that they are sorted)
    for export in exports:
        assert hasattr(module, export), f"{name}.__all__ names {export!r}, which is not there"


def test_top_level_names_resolve() -> None:
    assert dir(dolfinx_mbd) == sorted(dolfinx_mbd.__all__)
    for name in dir(dolfinx_mbd):
        assert getattr(dolfinx_mbd, name) is not None
    with pytest.raises(AttributeError, match="nothing_like_this"):
        getattr(dolfinx_mbd, "nothing_like_this")


HEAVY = {"gmsh", "h5py", "matplotlib", "pyvista", "scipy.interpolate", "scipy.optimize"}
WITHOUT_MESHES = f"""
import importlib, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {sorted(MESH_SIDE)}:
            raise ImportError("refused: " + name)
sys.meta_path.insert(0, Refuse())
"""


@pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts another Python")
@pytest.mark.parametrize(
    "code",
    [
        "import sys, dolfinx_mbd\n"
        "assert not {'numba', 'numpy', 'gmsh', 'dolfinx', 'mpi4py', 'ufl'} & sys.modules.keys()",
        WITHOUT_MESHES
        + "import dolfinx_mbd.body, dolfinx_mbd.export, dolfinx_mbd.multibody.mechanisms",
        "import sys, dolfinx_mbd.forms\nassert not {'numba', 'dolfinx'} & sys.modules.keys()",
        "import sys, dolfinx_mbd.body, dolfinx_mbd.cli\n"
        "assert not {'numba', 'dolfinx', 'mpi4py', 'scipy.linalg'} & sys.modules.keys()",
        "import sys, dolfinx.fem.petsc, slepc4py.SLEPc\n"
        "before = set(sys.modules)\n"
        "import dolfinx_mbd.analysis, dolfinx_mbd.geometry\n"
        f"assert not {HEAVY} & (sys.modules.keys() - before)",
    ],
    ids=[
        "top level is lazy",
        "mechanisms need no DOLFINx",
        "forms assemble nothing",
        "bodies and command line need little",
        "reductions load what is heavy when it is used",
    ],
)
def test_imports_little(code: str) -> None:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
