"""Structure of the package: imports without cycles, versions of DOLFINx in one file, exports."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from mpi4py import MPI

import dolfinx_mbd
from tests.models.sources import Rule, offences

PACKAGE = Path(dolfinx_mbd.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
COMPAT = PACKAGE / "fem" / "compat.py"
WITHOUT_MESH = (
    "analyses/",
    "body/",
    "dynamics/",
    "io/export/",
    "io/imports/",
    "kernels/",
    "mechanism/",
    "results/",
)
"""Folders that must not import the libraries of meshes and distributed matrices."""
MESH_LIBRARIES = {"basix", "dolfinx", "ffcx", "gmsh", "mpi4py", "petsc4py", "slepc4py", "ufl"}


def module_name(path: Path) -> str:
    """Return the dotted name of a file of the package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in FILES}


class Imports(ast.NodeVisitor):
    """Names that a file imports, by where the import stands.

    Attributes:
        top: Imports that run when the file is loaded.
        inner: Imports inside functions.
        typing: Imports for type checkers only; these never run.
    """

    def __init__(self, path: Path) -> None:
        self.top: set[str] = set()
        self.inner: set[str] = set()
        self.typing: set[str] = set()
        self._current = self.top
        self.visit(ast.parse(path.read_text(encoding="utf-8")))

    def visit_Import(self, node: ast.Import) -> None:
        self._current |= {alias.name for alias in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        assert node.level == 0, "relative import"
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            self._current.add(full if full in MODULES else str(node.module))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._within(node, self.typing if self._current is self.typing else self.inner)

    def visit_If(self, node: ast.If) -> None:
        typing = "TYPE_CHECKING" in ast.unparse(node.test)
        self._within(node, self.typing if typing else self._current)

    def _within(self, node: ast.AST, names: set[str]) -> None:
        outer, self._current = self._current, names
        self.generic_visit(node)
        self._current = outer


@cache
def all_imports() -> dict[str, Imports]:
    """Return the imports of each module of the package."""
    return {name: Imports(path) for name, path in MODULES.items()}


def graph(*, inner: bool) -> dict[str, set[str]]:
    """Return the modules of the package that each module imports; `inner`: also in functions."""
    return {
        name: {m for m in imports.top | (imports.inner if inner else set()) if m in MODULES}
        - {name}
        for name, imports in all_imports().items()
    }


def folder(module: str) -> str:
    """Return the folder of a module.

    Files directly in the package are folders of their own, and so are the files `__init__.py`.
    """
    parts = module.split(".")
    if len(parts) == 1 or MODULES[module].name == "__init__.py":
        return f"{module}.__init__"
    return ".".join(parts[:-1]) if len(parts) > 2 else module


def folder_graph(*, inner: bool) -> dict[str, set[str]]:
    """Return the folders that each folder imports from."""
    folders: dict[str, set[str]] = {}
    for name, targets in graph(inner=inner).items():
        imported = folders.setdefault(folder(name), set())
        imported |= {folder(target) for target in targets} - {folder(name)}
    return folders


def cycle_in(edges: Mapping[str, set[str]]) -> list[str]:
    """Return one cycle of a directed graph, or an empty list."""
    done: set[str] = set()
    for start in sorted(edges):
        path: list[str] = []
        stack = [(start, iter(sorted(edges[start])))] if start not in done else []
        path += [start] if stack else []
        while stack:
            target = next(stack[-1][1], None)
            if target is None:
                done.add(path.pop())
                stack.pop()
            elif target in path:
                return [*path[path.index(target) :], target]
            elif target not in done:
                path.append(target)
                stack.append((target, iter(sorted(edges.get(target, ())))))
    return []


def test_a_cycle_is_found() -> None:
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


@pytest.mark.parametrize("inner", [False, True], ids=["top level", "and inside functions"])
def test_imports_between_files_have_no_cycle(inner: bool) -> None:
    assert cycle_in(graph(inner=inner)) == []


@pytest.mark.parametrize("inner", [False, True], ids=["top level", "and inside functions"])
def test_imports_between_folders_have_no_cycle(inner: bool) -> None:
    assert cycle_in(folder_graph(inner=inner)) == []


def test_few_imports_inside_functions() -> None:
    """Imports inside functions serve fast starts of the command line and optional packages."""
    inner = [(n, m) for n, imports in all_imports().items() for m in imports.inner if m in MODULES]
    assert {name.split(".")[1] for name, _ in inner} <= {"io", "plotting"}


def mesh_libraries(path: Path) -> Iterator[str]:
    """Yield the libraries of meshes that a file imports outside the folders allowed for them."""
    imports = all_imports()[module_name(path)]
    names = imports.top | imports.inner
    roots = {name.split(".")[0] for name in names}
    part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if path.relative_to(PACKAGE).as_posix().startswith(WITHOUT_MESH):
        yield from sorted(roots & MESH_LIBRARIES)
    if part == "forms":
        yield from sorted(roots & MESH_LIBRARIES - {"ufl"})
    if "gmsh" in roots and part != "geometry" and path != COMPAT:
        yield "gmsh"


def versions_of_dolfinx(path: Path) -> Iterator[str]:
    """Yield the lines outside `fem/compat.py` that depend on the version of DOLFINx."""
    if path == COMPAT:
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("dolfinx.io.gmsh"):
            yield f"line {node.lineno}: {node.module}"
        if isinstance(node, ast.Compare) and "dolfinx.__version__" in ast.unparse(node):
            yield f"line {node.lineno}"  # a record of the version in a file is allowed
        if isinstance(node, ast.Attribute) and node.attr in ("gmshio", "cmap", "cmaps"):
            yield f"line {node.lineno}: {node.attr}"


def compiled_functions(path: Path) -> Iterator[str]:
    """Yield the functions outside `kernels` that are decorated for numba."""
    if path.relative_to(PACKAGE).parts[0] == "kernels":
        return
    if "numba" in all_imports()[module_name(path)].top:
        yield "imports numba"
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for decorator in getattr(node, "decorator_list", []):
            if "kernel" in ast.unparse(decorator):
                yield f"line {getattr(node, 'lineno', 0)}"


def wrong_exports(path: Path) -> Iterator[str]:
    """Yield the names in `__all__` that do not exist or occur twice, and a missing docstring."""
    module = importlib.import_module(module_name(path))
    if not module.__doc__:
        yield "has no docstring"
    exports = getattr(module, "__all__", [])  # Ruff checks the order
    for name in sorted(set(exports)):
        if exports.count(name) > 1 or not hasattr(module, name):
            yield f"__all__ names {name!r} twice or without a definition"


def load_classes() -> dict[str, Path]:
    """Return the file of each class of loads by the name of the class."""
    classes = [
        (node, path)
        for path in FILES
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]
    loads = {"Load": PACKAGE / "mechanism" / "load_protocol.py"}
    while True:
        more = {
            node.name: path
            for node, path in classes
            if node.name not in loads and not loads.keys().isdisjoint(map(ast.unparse, node.bases))
        }
        if not more:
            return loads
        loads |= more


LOADS = load_classes()


def names_in(node: ast.AST) -> set[str]:
    """Return the names and attributes in an expression."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return names | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def switches_on_loads(path: Path) -> Iterator[str]:
    """Yield the tests of the class of a load outside the file of the class."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    values = {
        ast.unparse(target): names_in(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
    }
    for node in ast.walk(tree):
        names: set[str] = set()
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            names = names_in(node.args[1])
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node):
            names = names_in(node)
        elif isinstance(node, ast.MatchClass):
            names = names_in(node.cls)
        names |= {name for key in names for name in values.get(key, ())}
        kinds = sorted(name for name in names & LOADS.keys() if LOADS[name] != path)
        if kinds:
            yield f"line {getattr(node, 'lineno', 0)} asks for {', '.join(kinds)}"


def test_loads_are_asked_for_their_declarations() -> None:
    """No file but its own asks for the class of a load: all loads obey one protocol."""
    assert len(LOADS) > 15
    assert offences(FILES, switches_on_loads) == []


def test_libraries_of_meshes_stay_in_their_folders() -> None:
    assert offences(FILES, mesh_libraries) == []


def test_only_compat_depends_on_the_version_of_dolfinx() -> None:
    assert offences(FILES, versions_of_dolfinx) == []


def test_compiled_functions_are_in_kernels() -> None:
    """Only files of `kernels` decorate functions for numba."""
    assert offences(FILES, compiled_functions) == []


def test_exports_exist() -> None:
    assert offences(FILES, wrong_exports) == []


@pytest.mark.parametrize(
    ("rule", "part", "source"),
    [
        (mesh_libraries, "body", "import petsc4py"),
        (mesh_libraries, "dynamics", "def f():\n    import ufl"),
        (mesh_libraries, "forms", "import basix"),
        (mesh_libraries, "reduction", "import gmsh"),
        (versions_of_dolfinx, "fem", "from dolfinx.io.gmsh import model_to_mesh"),
        (versions_of_dolfinx, "fem", "new = dolfinx.__version__ > '0.9'"),
        (versions_of_dolfinx, "fem", "geometry.cmap"),
        (compiled_functions, "body", "import numba"),
        (compiled_functions, "body", "@kernel\ndef f(): pass"),
        (switches_on_loads, "results", "if isinstance(load, FrameLoad | mbd.JointLoad): pass"),
        (switches_on_loads, "plotting", "kinds = (Contact, Joint)\nisinstance(load, kinds)"),
        (switches_on_loads, "design", "found = type(load) is GearPair"),
        (switches_on_loads, "io", "match load:\n    case Bushing():\n        pass"),
        (wrong_exports, "body", "'Doc.'\n__all__ = ['missing']"),
        (wrong_exports, "body", "'Doc.'\nx = 1\n__all__ = ['x', 'x']"),
        (wrong_exports, "body", "x = 1"),
    ],
)
def test_rules_name_the_file(
    rule: Rule, part: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule reports the file that breaks it, and reports nothing after the file is corrected."""
    path = tmp_path / "sample" / part / "sample.py"
    path.parent.mkdir(parents=True)
    path.write_text(source)
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path / "sample")
    monkeypatch.setitem(all_imports(), f"sample.{part}.sample", Imports(path))
    monkeypatch.syspath_prepend(str(tmp_path))
    (text,) = offences([path], rule)
    assert text.startswith(f"{path}: ")
    for name in [name for name in sys.modules if name.split(".")[0] == "sample"]:
        monkeypatch.delitem(sys.modules, name)
    path.write_text('"""Doc."""\nx = 1\n__all__ = ["x"]\n')
    monkeypatch.setitem(all_imports(), f"sample.{part}.sample", Imports(path))
    assert offences([path], rule) == []


def test_top_level_names_resolve() -> None:
    assert dir(dolfinx_mbd) == sorted(dolfinx_mbd.__all__)
    for name in dir(dolfinx_mbd):
        assert getattr(dolfinx_mbd, name) is not None
    with pytest.raises(AttributeError, match="nothing_like_this"):
        getattr(dolfinx_mbd, "nothing_like_this")


def test_public_names_have_one_meaning() -> None:
    """A name that two folders export is the same object in both."""
    meanings: dict[str, dict[int, list[str]]] = {}
    for name in sorted(n for n, path in MODULES.items() if path.name == "__init__.py"):
        module = importlib.import_module(name)
        for export in getattr(module, "__all__", []):
            value = getattr(module, export)
            if not isinstance(value, ModuleType):
                meanings.setdefault(export, {}).setdefault(id(value), []).append(name)
    assert {name: objects for name, objects in meanings.items() if len(objects) > 1} == {}


HEAVY = {"gmsh", "h5py", "matplotlib", "pyvista", "scipy.interpolate", "scipy.optimize"}
WITHOUT_MESHES = f"""
import importlib, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {sorted(MESH_LIBRARIES)}:
            raise ImportError("refused: " + name)
sys.meta_path.insert(0, Refuse())
"""


@pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts another Python")
@pytest.mark.parametrize(
    "code",
    [
        "import sys, dolfinx_mbd\n"
        "assert not {'numba', 'numpy', 'gmsh', 'dolfinx', 'mpi4py', 'ufl'} & sys.modules.keys()",
        WITHOUT_MESHES + "import dolfinx_mbd.body, dolfinx_mbd.io.export\n"
        "import dolfinx_mbd.mechanism.mechanisms, dolfinx_mbd.analyses",
        "import sys, dolfinx_mbd.forms\nassert not {'numba', 'dolfinx'} & sys.modules.keys()",
        "import sys, dolfinx_mbd.body, dolfinx_mbd.io.cli\n"
        "assert not {'numba', 'dolfinx', 'mpi4py', 'scipy.linalg'} & sys.modules.keys()",
        "import sys, dolfinx.fem.petsc, slepc4py.SLEPc\n"
        "before = set(sys.modules)\n"
        "import dolfinx_mbd.durability.recovery, dolfinx_mbd.reduction, dolfinx_mbd.geometry\n"
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
