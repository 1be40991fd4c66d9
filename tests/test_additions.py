"""Additions that CONTRIBUTING.md lists: most are made in a copy of the package, and then used.

The tests also count the files of the package that an addition changes, besides its own file.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from mpi4py import MPI

import dolfinx_mbd

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts another Python")

PACKAGE = Path(dolfinx_mbd.__file__).parent
TESTS = Path(__file__).parent
FILES = TESTS / "additions"
CONTRIBUTING = TESTS.parent / "CONTRIBUTING.md"

Changes = tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Addition:
    """An addition to the package, such as a form or a joint.

    Attributes:
        file: New file in the package, with the text of the file of the same name in `FILES`; empty
            if the addition needs no file.
        changes: For each change the file, the text that is replaced, and the new text.
        script: A script that uses the addition.
    """

    file: str
    changes: Changes
    script: str


def public(file: str, name: str) -> Changes:
    """Return the change that lists a name of a new file in the `__init__.py` of its folder."""
    module = "dolfinx_mbd." + file.removesuffix(".py").replace("/", ".")
    listed = f'\nfrom {module} import {name}\n\n__all__ = [\n    "{name}",\n'
    return ((f"{file.partition('/')[0]}/__init__.py", "\n__all__ = [\n", listed),)


BODIES = """
import numpy as np
import dolfinx_mbd as mbd
frames = {"o": mbd.Frame()}
ground = mbd.Ground(frames)
ball = mbd.RigidBody("ball", 2.0, [0.01] * 3, position=(0.3, 0, 0), frames=frames)
ends = ground.frame("o"), ball.frame("o")
"""

REDUCED = """
import numpy as np
import dolfinx_mbd as mbd
from tests.body.complete import complete_body, exact_numbers
body = complete_body(3, exact_numbers())
"""

ADDITIONS = {
    "a form": Addition(
        "forms/foundation.py",
        public("forms/foundation.py", "foundation"),
        """
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI
from dolfinx_mbd.forms import foundation
box = mesh.create_unit_cube(MPI.COMM_SELF, 1, 1, 1)
V = fem.functionspace(box, ("Lagrange", 1, (3,)))
u, v = fem.Function(V), ufl.TestFunction(V)
u.x.array[:] = 1.0
energy = 1.5 * ufl.inner(u, u) * ufl.ds
for form in (foundation(u, v, 3.0), ufl.derivative(energy, u, v)):
    total = fem.assemble_vector(fem.form(form)).array.sum()
    assert abs(total - 3.0 * 6 * 3) < 1e-12  # stiffness, six faces, three components
""",
    ),
    "a material": Addition(
        "",
        (
            (
                "forms/materials.py",
                "        STEEL,\n",
                '        STEEL,\n        Material(141e9, 0.29, 8100.0, "invar", 1.3e-6),\n',
            ),
        ),
        """
import dolfinx_mbd as mbd
from dolfinx_mbd.io.cli.named_materials import chosen_materials
assert mbd.forms.material("invar").density == 8100.0
assert chosen_materials(["invar"], None).young == 141e9
""",
    ),
    "a joint": Addition(
        "mechanism/on_sphere.py",
        (),
        BODIES
        + """
from dolfinx_mbd.mechanism.on_sphere import on_sphere
joint = on_sphere("bowl", *ends, 0.3)
system = mbd.System([ground, ball], [joint], gravity=(0, 0, -9.81))
run = mbd.simulate(system, t_end=0.02, dt=1e-3)
path = run.body("ball").position
assert np.allclose(np.linalg.norm(path, axis=1), 0.3, rtol=0, atol=1e-10)
assert abs(path[-1, 2] + 0.5 * 9.81 * 0.02**2) < 1e-6
assert run.joint("bowl").violation.max() < 1e-10
""",
    ),
    "a joint that constrains some of the six relative motions": Addition(
        "",
        (
            (
                "mechanism/joints.py",
                "JOINT_KINDS: dict[str, tuple[int, ...]] = {\n",
                'JOINT_KINDS: dict[str, tuple[int, ...]] = {\n    "parallel": (3, 4),\n',
            ),
        ),
        BODIES
        + """
joint = mbd.mechanism.Joint("axes", "parallel", *ends)
push = mbd.mechanism.FrameLoad("push", ball.frame("o"), (1.0, 0.0, 2.0), "torque")
system = mbd.System([ground, ball], [joint], loads=[push])
run = mbd.simulate(system, t_end=0.02, dt=1e-3)
moment = run.joint("axes").moment[-1]
assert np.allclose(np.abs(moment), [1.0, 0.0, 0.0], rtol=0, atol=1e-8)
assert np.allclose(run.body("ball").omega[-1], [0.0, 0.0, 2.0 * 0.02 / 0.01], rtol=1e-8)
""",
    ),
    "a force element between two frames": Addition(
        "mechanism/rubber.py",
        public("mechanism/rubber.py", "Rubber"),
        BODIES
        + """
band = mbd.mechanism.Rubber("band", *ends, 800.0)
system = mbd.System([ground, ball], [], loads=[band])
assert "rubber" in str(system)
run = mbd.simulate(system, t_end=0.02, dt=5e-4)
expected = 0.3 * np.cos(20.0 * run.time)
history = run.element("band")
assert np.allclose(run.body("ball").position[:, 0], expected, rtol=0, atol=1e-5)
assert np.allclose(history.force[:, 0], -800.0 * expected, rtol=0, atol=1e-2)
assert np.allclose(history.energy, 400.0 * expected**2, rtol=0, atol=1e-2)
run.save("run.npz")
loaded = mbd.results.Solution.load("run.npz", system)
assert np.array_equal(loaded.element("band").force, history.force)
assert "band.force" in run.to_xarray()
mbd.plotting.player(run, "run.html")
assert "band" in open("run.html", encoding="utf-8").read()
""",
    ),
    "a part of a body": Addition(
        "body/magnets.py",
        (
            (
                "body/reduced_body.py",
                "\nimport numpy as np\n",
                "\nimport numpy as np\nfrom dolfinx_mbd.body.magnets import Magnet\n",
            ),
            (
                "body/reduced_body.py",
                "\n    def __post_init__(self) -> None:\n",
                """    magnets: tuple = field(default=(), metadata=list_of(Magnet, "magnet"))

    def __post_init__(self) -> None:
""",
            ),
        ),
        REDUCED
        + """
from dolfinx_mbd.body.magnets import Magnet
from dolfinx_mbd.io.export.units import scaled
motion = np.arange(18.0).reshape(6, 3)
body = body.replace(magnets=(Magnet("north", 5.0, motion),))
assert np.array_equal(body.selected([1, 3]).magnets[0].motion, motion[:, [0, 2]])
assert np.allclose(scaled(body, "mm-t-s").magnets[0].strength, 5e6)
loaded = mbd.ReducedBody.load(body.save("body"))
assert np.array_equal(loaded.magnets[0].motion, motion)
assert "magnet north: motion (6, 3)" in body.summary()
other = body.replace(magnets=(Magnet("north", 5.5, motion),))
rows = {row.name: row.difference for row in mbd.body.compare(body, other).rows}
assert abs(rows["magnet north"] - 1 / 11) < 1e-12
try:
    Magnet("north", 5.0, motion[:5])
except mbd.errors.InputError as error:
    assert error.argument == "magnet 'north': motion"
else:
    raise AssertionError("a wrong shape was accepted")
""",
    ),
    "an analysis": Addition(
        "analyses/mobility.py",
        public("analyses/mobility.py", "mobility"),
        BODIES
        + """
for joint, number in ((mbd.spherical, 3), (mbd.revolute, 1), (mbd.cylindrical, 2)):
    system = mbd.System([ground, ball], [joint("joint", *ends)])
    assert mbd.analyses.mobility(system) == number
""",
    ),
    "an export": Addition(
        "io/export/masses.py",
        (
            (
                "io/export/common.py",
                '        ("mbdyn", "MBDyn",',
                '        ("masses", "table", ".txt", {*_LOSSES} - {"mass properties"}, "", ""),\n'
                '        ("mbdyn", "MBDyn",',
            ),
        ),
        REDUCED
        + """
from dolfinx_mbd.io.export import FORMATS, export
report = export(body, "body", "masses", units="mm-t-s")
assert report.paths[0].name == "body.txt" and "contains no inertia invariants" in str(report)
lines = report.paths[0].read_text().splitlines()
moments = np.loadtxt(lines[2:])
assert np.isclose(float(lines[1]), 1e-3 * body.total_mass)
assert np.allclose(moments[0], body.first_moments[0])  # t mm = kg m
""",
    ),
}

CHANGED = {
    "a form": {"forms/__init__.py"},
    "a material": {"forms/materials.py"},
    "a joint": set(),
    "a joint that constrains some of the six relative motions": {"mechanism/joints.py"},
    "a force element between two frames": {"mechanism/__init__.py"},
    "a part of a body": {"body/reduced_body.py"},
    "an analysis": {"analyses/__init__.py"},
    "an export": {"io/export/common.py"},
}
"""Files of the package that an addition changes besides its own file."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package, without compiled files."""
    path = tmp_path_factory.mktemp("original") / PACKAGE.name
    shutil.copytree(PACKAGE, path, ignore=shutil.ignore_patterns("__pycache__"))
    return path


def sources(package: Path) -> dict[str, bytes]:
    """Return the contents of all source files by path."""
    return {
        path.relative_to(package).as_posix(): path.read_bytes() for path in package.rglob("*.py*")
    }


@pytest.mark.parametrize("name", ADDITIONS)
def test_an_addition_changes_few_files(name: str, copy: Path, tmp_path: Path) -> None:
    addition = ADDITIONS[name]
    package = tmp_path / PACKAGE.name
    shutil.copytree(copy, package)
    if addition.file:
        assert not (package / addition.file).exists()
        shutil.copy(FILES / Path(addition.file).name, package / addition.file)
    for file, old, new in addition.changes:
        text = (package / file).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} has changed: {old!r}"
        (package / file).write_text(text.replace(old, new), encoding="utf-8")
    before, after = sources(copy), sources(package)
    created = after.keys() - before.keys()
    changed = {file for file in before if before[file] != after[file]}
    assert created == ({addition.file} if addition.file else set())
    assert changed == CHANGED[name]

    imports = os.pathsep.join([str(tmp_path), str(TESTS.parent)])
    settings = {"PYTHONPATH": imports, "DOLFINX_MBD_NUMBA": "0"}
    in_copy = f"import dolfinx_mbd\nassert dolfinx_mbd.__file__.startswith({str(tmp_path)!r})\n"
    run = subprocess.run(
        [sys.executable, "-c", in_copy + addition.script],
        cwd=tmp_path,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_contributing_lists_the_additions() -> None:
    """Each listed addition is made here, or in a test file that its entry names."""
    text = CONTRIBUTING.read_text(encoding="utf-8").partition("To add\n")[2]
    listed = dict(re.findall(r"^- \*\*(.+?)\*\*(.*(?:\n  .*)*)", text, re.MULTILINE))
    assert ADDITIONS.keys() <= listed.keys()
    for name in listed.keys() - ADDITIONS.keys():
        files = re.findall(r"`(tests/\S+\.py)`", listed[name])
        assert files, name
        assert all((TESTS.parent / file).is_file() for file in files), name
