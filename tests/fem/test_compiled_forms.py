"""Forms are compiled once: other numbers, meshes and groups use the same code."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ffcx.codegeneration.jit as ffcx_jit
import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.jit import DOLFINX_DEFAULT_JIT_OPTIONS
from dolfinx.mesh import create_unit_square
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import ElasticModel, ReductionOptions
from dolfinx_mbd.durability.recovery.sections import section_modes
from dolfinx_mbd.durability.recovery.stress import Recovery, envelope
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.fem.modal.natural_modes import modal_analysis
from dolfinx_mbd.forms import (
    GradedMaterial,
    Material,
    Orthotropic,
    Temperature,
    elastic_stiffness,
    neo_hookean,
    strain,
)
from dolfinx_mbd.reduction import reduce
from dolfinx_mbd.reduction.distributed_loads import body_force, pressure, traction
from dolfinx_mbd.reduction.mesh_damping import Viscous
from dolfinx_mbd.reduction.result import Reduction
from tests.conftest import LONGEST_COMPILATION, cache_of_forms, remove_unfinished_forms
from tests.fem.test_materials import grouped
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box
from tests.models.calls import flat

ENDS = ("left", "right")


@contextmanager
def compilations() -> Iterator[list[str]]:
    """Record the modules that FFCx generates and compiles in a with block, on this rank."""
    commands: list[str] = []
    compile_objects = ffcx_jit._compile_objects

    def counted(*arguments: object, **settings: object) -> object:
        commands.append(str(arguments[3]))
        return compile_objects(*arguments, **settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ffcx_jit, "_compile_objects", counted)
        yield commands


def material(k: int) -> Material:
    """Return one of two isotropic materials."""
    return Material(
        (2e11, 7e10)[k], (0.3, 0.33)[k], (7850.0, 2700.0)[k], f"no. {k}", (1e-5, 2e-5)[k]
    )


def timber(k: int) -> Orthotropic:
    """Return one of two orthotropic materials."""
    E = 1e9 * np.array([(10.0, 0.8, 0.5), (12.0, 0.9, 0.6)][k])
    return Orthotropic(E, (0.3, 0.2, 0.4), 1e8 * np.array([5.0, 6.0, 1.0 + k]), 500.0 + k)


def bar(comm: MPI.Intracomm, k: int) -> TaggedMesh:
    """Return one of two bars with different lengths and meshes."""
    return box(comm, (LENGTH * (1 + k), HEIGHT, WIDTH), (3 + k, 1, 1))


def reduced(comm: MPI.Intracomm, k: int, **options: object) -> Reduction:
    """Return the reduction of one of the bars."""
    middle = {"middle": (LENGTH * (0.4 + 0.1 * k), 0.0, 0.0)}
    settings = {"interfaces": ENDS, "num_modes": 2 + k, "points": middle} | options
    return flat(reduce, bar(comm, k), material(k), **settings)


def in_groups(comm: MPI.Intracomm, k: int) -> None:
    """Reduce a bar of two materials under a temperature."""
    mesh = grouped(bar(comm, k), lambda x: x[0] < LENGTH / 2)
    parts = {"a": material(k), "b": material(1 - k)}
    reduce(ElasticModel(mesh, parts, prestress=Temperature(20.0 + k)), interfaces=ENDS, num_modes=2)


def with_loads(comm: MPI.Intracomm, k: int) -> None:
    """Reduce a bar with loads."""
    mesh = bar(comm, k)
    loads = {
        "gas": pressure(mesh, "top"),
        "wind": traction(mesh, "top", (1.0, 2.0 + k, 0.0)),
        "fall": body_force([0.0, 0.0, -9.0 - k]),
    }
    reduce(
        mesh,
        material(k),
        interfaces=ENDS,
        num_modes=2,
        options=ReductionOptions(loads=loads, load_modes=True),
    )


def stress(comm: MPI.Intracomm, k: int) -> None:
    """Recover stress and section forces of a bar."""
    recovery = Recovery(reduced(comm, k, stiffening=False))
    eta = 1e-6 * np.ones((2, recovery.displacements.shape[1]))
    envelope(recovery, eta, "von Mises")
    section_modes(recovery, (LENGTH / 2, 0.0, 0.0), (1.0, 0.1 * k, 0.0))


def own_stiffness(comm: MPI.Intracomm, k: int) -> None:
    """Find modes of a bar with a user-defined stiffness and density."""
    mesh = bar(comm, k).mesh
    V = fem.functionspace(mesh, ("Lagrange", 2, (3,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    moduli = (2e11, 7e10)[k] * np.array([[1.3, 0.4, 0.3], [0.4, 1.1, 0.6], [0.3, 0.6, 0.9]])
    normal = [ufl.as_vector([strain(w)[i, i] for i in range(3)]) for w in (u, v)]
    form = ufl.inner(ufl.as_matrix(moduli + 1e9 * k) * normal[0], normal[1]) * ufl.dx
    form = form + elastic_stiffness(u, v, material(k))
    density = (7850 + k) * (1 + (0.3, 0.9)[k] * ufl.SpatialCoordinate(mesh)[0])
    model = ElasticModel(mesh, space=V, stiffness=form, density=density)
    modal_analysis(model, num_modes=2)


def graded(comm: MPI.Intracomm, k: int) -> None:
    """Reduce a bar whose constants depend on the position."""
    mesh = bar(comm, k)
    x = ufl.SpatialCoordinate(mesh.mesh)
    E = ufl.conditional(ufl.lt(x[0], 0.11 + k), (2e11, 7e10)[k] * (1 + (0.3, 0.9)[k] * x[0]), 9e10)
    reduce(mesh, GradedMaterial(E, 0.3 + 0.01 * k, 7850.0 - k), interfaces=ENDS, num_modes=2)


def own_energy(comm: MPI.Intracomm, k: int) -> None:
    """Simulate a bar with a user-defined energy density, with two constants and two exponents."""
    rubber = Material((1e6, 3e6)[k], (0.3, 0.35)[k], 1000.0 + k)
    (a, b), (m, n) = ((1e5, 3e5), (3.1e5, 1.1e5))[k], ((1.3, 2.7), (2.9, 1.7))[k]

    def energy(u: Any) -> Any:
        F = ufl.variable(ufl.Identity(3) + ufl.grad(u))
        E = (F.T * F - ufl.Identity(3)) / 2
        stretches = 1 + ufl.inner(E, E)
        return neo_hookean(u, rubber) + a * (stretches**m - 1) + b * (stretches**n - 1)

    body = mbd.MeshBody("bar", bar(comm, k), material=rubber, energy=energy)
    mbd.simulate(mbd.System([body], gravity=(0, 0, -9.81 - k)), t_end=1e-4, dt=1e-4)


def own_loads(comm: MPI.Intracomm, k: int) -> None:
    """Reduce a bar with loads that are UFL expressions."""
    mesh = bar(comm, k)
    x, (a, b) = ufl.SpatialCoordinate(mesh.mesh), ((0.11, 0.9), (0.9, 0.11))[k]
    loads = {
        "wind": traction(mesh, "top", ufl.as_vector([a * x[0] + b * x[1] ** 2, 300 + k, 1.7 + k])),
        "fall": body_force((a * ufl.sin(30 * x[0]), b, 0.0)),
    }
    options = ReductionOptions(loads=loads)
    reduce(mesh, material(k), interfaces=ENDS, num_modes=2, options=options)


def own_criterion(comm: MPI.Intracomm, k: int) -> None:
    """Compute a user-defined equivalent stress."""
    recovery = Recovery(reduced(comm, k, stiffening=False))
    eta = 1e-6 * np.ones((2, recovery.displacements.shape[1]))
    weight = (0.8, 0.3)[k]

    def criterion(sigma: Any) -> Any:
        s = ufl.dev(sigma)
        return weight * ufl.sqrt(1.5 * ufl.inner(s, s)) + (1 - weight) * ufl.tr(sigma)

    mbd.strength(recovery, eta, criterion=criterion, limit=250e6 + k)


CASES: dict[str, Callable[[MPI.Intracomm, int], object]] = {
    "rigid interfaces": reduced,
    "averaged interfaces": lambda comm, k: reduced(comm, k, kind="averaged"),
    "no interfaces": lambda comm, k: modal_analysis(bar(comm, k), material(k), num_modes=2),
    "orthotropic": lambda comm, k: reduce(bar(comm, k), timber(k), interfaces=ENDS, num_modes=2),
    "damping": lambda comm, k: reduced(comm, k, damping=Viscous(1e3 + k), stiffening=False),
    "groups of cells, heat": in_groups,
    "heat": lambda comm, k: reduced(comm, k, prestress=Temperature(60.0 + k), stiffening=False),
    "loads": with_loads,
    "stress, section forces": stress,
    "own stiffness, own density": own_stiffness,
    "graded material": graded,
    "own energy": own_energy,
    "own loads": own_loads,
    "own criterion": own_criterion,
}


@pytest.mark.parametrize("case", CASES)
def test_other_numbers_need_no_new_code(comm: MPI.Intracomm, case: str) -> None:
    CASES[case](comm, 0)
    with compilations() as commands:
        CASES[case](comm, 1)
    assert comm.allgather(commands) == [[]] * comm.size


def test_a_number_in_a_form_of_dolfinx_is_new_code(comm: MPI.Intracomm) -> None:
    """The counter of the other tests finds new forms."""
    mesh = bar(comm, 0).mesh
    number = comm.bcast(float(np.random.default_rng().random()), root=0)
    with compilations() as commands:
        for _ in range(3):
            fem.form(number * ufl.dx(domain=mesh))
    assert sum(map(len, comm.allgather(commands))) == 1


one_rank = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="compiles on one rank")


def compiled(folder: Path) -> float:
    """Return the area of a square by a form that is compiled in a folder.

    DOLFINx waits at most a second for another process.
    """
    options = {"cache_dir": str(folder), "timeout": 1}
    area = 1.0 * ufl.dx(domain=create_unit_square(MPI.COMM_SELF, 1, 1))
    return fem.assemble_scalar(fem.form(area, jit_options=options))


def interrupt(source: Path, age: float) -> None:
    """Leave the files of a compiler that was interrupted, with an age in seconds."""
    source.with_name(f"{source.name}.cached").unlink()
    os.utime(source, (time.time() - age,) * 2)


@one_rank
def test_an_interrupted_compilation_is_removed_before_tests(tmp_path: Path) -> None:
    """DOLFINx would wait for the missing library; without these files it compiles the form."""
    assert compiled(tmp_path) == pytest.approx(1.0)
    (source,) = tmp_path.glob("libffcx_*.c")
    interrupt(source, LONGEST_COMPILATION + 10)
    with pytest.raises(TimeoutError):
        compiled(tmp_path)
    remove_unfinished_forms(tmp_path)
    assert not source.exists()
    assert compiled(tmp_path) == pytest.approx(1.0)
    assert source.exists()


@one_rank
def test_other_files_of_compiled_forms_are_kept(tmp_path: Path) -> None:
    """Files of a running compiler, complete files, and files of other programs stay."""
    files = {"libffcx_forms_young.c": 10.0}
    files |= dict.fromkeys(("libffcx_forms_old.c", "libffcx_elements_old.c"), 1e3)
    current = ("libffcx_forms_ready.c", "libffcx_forms_ready.c.cached", "libffcx_forms_ready.so")
    files |= dict.fromkeys((*current, "other.c", "libffcx_forms_old.o"), 1e3)
    for name, age in files.items():
        Path(tmp_path, name).touch()
        os.utime(Path(tmp_path, name), (time.time() - age,) * 2)
    remove_unfinished_forms(tmp_path)
    removed = files.keys() - {path.name for path in tmp_path.iterdir()}
    assert removed == {"libffcx_forms_old.c", "libffcx_elements_old.c"}
    remove_unfinished_forms(tmp_path / "missing")


@one_rank
def test_the_cache_folder_is_that_of_dolfinx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache_of_forms() == Path("/elsewhere/fenics")
    monkeypatch.undo()
    assert Path(DOLFINX_DEFAULT_JIT_OPTIONS["cache_dir"][0]) == cache_of_forms()
