"""Distributions and the files around the package: contents, installation, agreement of versions.

The tests marked slow build the distributions from a copy of the repository's files, as a new clone
would, and install them into new environments on top of the DOLFINx in use.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from mpi4py import MPI

import dolfinx_mbd

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
RECIPE = "conda-recipe/recipe.yaml"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WITH_DOLFINX = {"basix", "dolfinx", "ffcx", "gmsh", "petsc4py", "slepc4py", "ufl"}
"""Modules that come with DOLFINx; `pyproject.toml` says why pip must not look for them."""
EXTRAS = ("ansys", "control", "fast", "fmu", "meshes", "modal", "nastran", "plot", "test")
DISTRIBUTIONS = {
    "ansys": "ansys-mapdl-reader",
    "imageio_ffmpeg": "imageio-ffmpeg",
    "vtkmodules": "vtk",
    "PIL": "matplotlib",
    "yaml": "pyyaml",
}
"""Distributions that provide a module with another name."""
OF_THIS_PROCESS = ("OMPI_", "PMIX_", "PMI_", "PRTE_", "PYTHONPATH")
"""Prefixes of variables of the MPI job of pytest, and of its modules."""

one_rank = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts other programs")


def value(pattern: str, file: str) -> str:
    """Return the first group of a pattern in a file of the repository."""
    match = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert match, f"{file} has nothing like {pattern}"
    return match[1]


def requirements(*extras: str) -> dict[str, str]:
    """Return the versions that the project and its extras require, by normalized name."""
    lines = [*PROJECT["dependencies"]]
    for extra in extras:
        lines += PROJECT["optional-dependencies"][extra]
    names = (re.match(r"([\w.-]+)(\[.*\])?([^;]*)", line) for line in lines)
    return {m[1].lower().replace("_", "-"): m[3].strip() for m in names if m}


# ---- Agreement of the files ----------------------------------------------------------------------


def test_one_version() -> None:
    version = dolfinx_mbd.__version__
    assert PROJECT["dynamic"] == ["version"] and "version" not in PROJECT
    assert value(r"^version: (.*)$", "CITATION.cff") == version
    assert value(r"^## \[(\d.*?)\]", "CHANGELOG.md") == version
    assert value(r'^  version: "(.*)"$', RECIPE) == version
    assert version.startswith(value(r"^Version (\d+\.\d+) runs with", "README.md") + ".")


def test_one_date() -> None:
    date = value(r"^date-released: (.*)$", "CITATION.cff")
    assert value(r"^## \[\d.*?\] - (.*)$", "CHANGELOG.md") == date


def test_one_licence() -> None:
    assert PROJECT["license"] == "LGPL-3.0-or-later"
    assert value(r"^license: (.*)$", "CITATION.cff") == "LGPL-3.0-or-later"
    assert value(r"^  license: (.*)$", RECIPE) == "LGPL-3.0-or-later"
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "GNU GENERAL PUBLIC LICENSE" in (ROOT / "COPYING").read_text(encoding="utf-8")
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])


def test_environment_has_the_companions_of_dolfinx() -> None:
    """DOLFINx has the same range of versions; pip need not compile its companions."""
    conda = (ROOT / "environment.yml").read_text(encoding="utf-8")
    assert f"- fenics-dolfinx{requirements()['fenics-dolfinx']}\n" in conda
    for package in ("petsc=*=real*", "petsc4py", "slepc4py", "gmsh", "python-gmsh"):
        assert f"  - {package}\n" in conda


@pytest.mark.parametrize("section", ["host", "run"])
def test_recipe_requires_what_the_project_requires(section: str) -> None:
    recipe = (ROOT / RECIPE).read_text(encoding="utf-8")
    lines = re.search(rf"^  {section}:\n((?:    - .*\n)+)", recipe, re.MULTILINE)
    assert lines
    items = [line.strip(" -").partition(" ") for line in lines[1].splitlines()]
    packages = {name.replace("_", "-"): version for name, _, version in items}
    if section == "host":
        assert packages["setuptools"] == ">=77"
        return
    required = requirements("fast")
    assert {name: packages.get(name) for name in required} == required
    companions = {"petsc", "petsc4py", "slepc4py", "python-gmsh", "python"}
    assert packages.keys() == required.keys() | companions
    assert packages["petsc"] == "* real*"
    assert f'python_min: "{PROJECT["requires-python"].removeprefix(">=")}"' in recipe


def test_recipe_renders() -> None:
    """rattler-build, which conda-forge uses, accepts the recipe and fills in its variables."""
    rattler_build = pytest.importorskip("rattler_build")
    (variant,) = rattler_build.Stage0Recipe.from_file(ROOT / RECIPE).render()
    recipe = variant.recipe.to_dict()
    version = dolfinx_mbd.__version__
    name = f"dolfinx_mbd-{version}.tar.gz"
    assert recipe["package"] == {"name": "dolfinx_mbd", "version": version}
    assert recipe["source"][0]["url"].endswith(f"/source/d/dolfinx_mbd/{name}")
    assert recipe["build"]["noarch"] == "python"
    commands = [f"{key} = {target}" for key, target in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == commands
    assert recipe["about"]["license_file"] == PROJECT["license-files"]
    assert (
        f"python {PROJECT['requires-python'].removeprefix('>=')}.*"
        in (recipe["requirements"]["host"])
    )


@one_rank
def test_container_file() -> None:
    """hadolint finds no fault in the Dockerfile."""
    if shutil.which("hadolint") is None:
        pytest.skip("needs hadolint")
    run = subprocess.run(
        ["hadolint", str(ROOT / "Dockerfile")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 0, run.stdout


def imported(path: Path) -> set[str]:
    """Return the top-level modules that a file imports."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module.split(".")[0])
    return modules


def test_imports_are_declared() -> None:
    """The package imports nothing that neither pip nor DOLFINx would install."""
    modules = set().union(*map(imported, (ROOT / "dolfinx_mbd").rglob("*.py")))
    foreign = modules - set(sys.stdlib_module_names) - WITH_DOLFINX - {"dolfinx_mbd"}
    names = {DISTRIBUTIONS.get(name, name).lower().replace("_", "-") for name in foreign}
    assert names <= requirements(*EXTRAS).keys()


def test_documents_show_extras_that_exist() -> None:
    extras = PROJECT["optional-dependencies"].keys()
    files = ["README.md", "Dockerfile", "environment.yml", ".devcontainer/devcontainer.json"]
    files += ["docs/start/installation.md", "with-fenicsx"]
    files += [path.relative_to(ROOT).as_posix() for path in ROOT.glob(".github/workflows/*.yml")]
    for file in files:
        text = (ROOT / file).read_text(encoding="utf-8")
        for names in re.findall(r"(?:'\.|dolfinx_mbd)\[([a-z,]+)\]", text):
            assert set(names.split(",")) <= extras, file


@one_rank
def test_script_beside_a_clone_imports_the_package(tmp_path: Path) -> None:
    """A folder with the name of the package does not hide an editable installation."""
    (tmp_path / "dolfinx_mbd").symlink_to(ROOT)
    script = tmp_path / "script.py"
    script.write_text("import dolfinx_mbd\nprint(dolfinx_mbd.__version__)\n", encoding="utf-8")
    settings = {k: v for k, v in os.environ.items() if not k.startswith(OF_THIS_PROCESS)}
    run = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env=settings, capture_output=True,
        text=True, check=False, timeout=60,
    )  # fmt: skip
    assert run.stdout.strip() == dolfinx_mbd.__version__, run.stderr


# ---- The distributions ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tracked() -> set[str]:
    """Return the names of the files of the repository according to git's index."""
    index = ROOT / ".git" / "index"
    if not index.is_file():
        pytest.skip("needs a clone of the repository")
    entries = pytest.importorskip("dulwich.index").Index(str(index))
    names = {name.decode() for name in entries}
    return {name for name in names if (ROOT / name).exists()}


@pytest.fixture(scope="module")
def distributions(tracked: set[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return source distribution and wheel; `python3 -m build` builds the wheel from the former."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("build")
    for name in tracked:
        (folder / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / "clone" / name)
    run = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(folder / "clone")],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    (source,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    return {"source": source, "wheel": wheel}


@one_rank
@pytest.mark.slow
def test_source_distribution_contains_the_repository(
    tracked: set[str], distributions: dict[str, Path]
) -> None:
    name = f"dolfinx_mbd-{dolfinx_mbd.__version__}"
    assert distributions["source"].name == f"{name}.tar.gz"
    with tarfile.open(distributions["source"]) as archive:
        members = {m.name.removeprefix(f"{name}/") for m in archive if m.isfile()}
    generated = {m for m in members if m.startswith("dolfinx_mbd.egg-info/")}
    assert members - generated - {"PKG-INFO", "setup.cfg"} == tracked


@one_rank
@pytest.mark.slow
def test_wheel_contains_the_package(tracked: set[str], distributions: dict[str, Path]) -> None:
    wheel = distributions["wheel"]
    assert wheel.name == f"dolfinx_mbd-{dolfinx_mbd.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        info = next(name.split("/")[0] for name in names if ".dist-info/" in name)
        metadata = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
        commands = archive.read(f"{info}/entry_points.txt").decode()
    package = {name for name in names if not name.startswith(info)}
    assert package == {name for name in tracked if name.startswith("dolfinx_mbd/")}
    for name in (
        "__init__.pyi",
        "py.typed",
        "plotting/assets/player.js",
        "io/export/state_space.c",
    ):
        assert f"dolfinx_mbd/{name}" in package
    for name in PROJECT["license-files"]:
        assert f"{info}/licenses/{name}" in names
    assert metadata["Version"] == dolfinx_mbd.__version__
    assert len(metadata.get_all("Project-URL")) == len(PROJECT["urls"])
    assert commands.split() == ["[console_scripts]", "dolfinx-mbd", "=", "dolfinx_mbd.io.cli:main"]


def environment(folder: Path) -> Path:
    """Create a virtual environment that sees DOLFINx and not this checkout; return its Python."""
    import dolfinx

    subprocess.run(
        [sys.executable, "-m", "venv", "--system-site-packages", str(folder)], check=True
    )
    python = folder / "bin" / "python3"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    purelib = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    parent = Path(dolfinx.__file__).parents[1]  # (DOLFINx may be in a virtual environment itself)
    Path(purelib.stdout.strip(), "zz-dolfinx.pth").write_text(f"{parent}\n")
    return python


@one_rank
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("kind", "extras", "tutorial"),
    [("wheel", "[plot,fast]", "slider_crank.py"), ("source", "", "forms.py")],
)
def test_tutorial_runs_from_an_installation(
    kind: str, extras: str, tutorial: str, distributions: dict[str, Path], tmp_path: Path
) -> None:
    """The tutorial runs in a new environment, with and without optional packages."""
    python = environment(tmp_path / "venv")
    settings = {k: v for k, v in os.environ.items() if not k.startswith(OF_THIS_PROCESS)}
    with tarfile.open(distributions["source"]) as archive:
        archive.extractall(tmp_path, filter="data")
    demos = tmp_path / distributions["source"].name.removesuffix(".tar.gz") / "demos"
    folder = tmp_path / "work"
    folder.mkdir()

    def run(*command: str | Path) -> str:
        result = subprocess.run(
            [str(word) for word in command], cwd=folder, env=settings, capture_output=True,
            text=True, check=False, timeout=400,
        )  # fmt: skip
        assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
        return result.stdout

    pip = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile")
    run(*pip, f"{distributions[kind]}{extras}")
    place = run(python, "-c", "import dolfinx_mbd; print(dolfinx_mbd.__file__)")
    assert Path(place.strip()).is_relative_to(tmp_path / "venv")
    assert dolfinx_mbd.__version__ in run(python.parent / "dolfinx-mbd", "--version")
    assert "ok  " in run(python, demos / tutorial)
