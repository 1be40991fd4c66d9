"""Forms are compiled once: other numbers, meshes and groups are served by the same code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import ffcx.codegeneration.jit as ffcx_jit
import numpy as np
import pytest
import ufl
from dolfinx import fem
from mpi4py import MPI

from dolfinx_mbd import ElasticModel, ReductionOptions
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.forms import Material, Orthotropic, Temperature
from dolfinx_mbd.modal.natural_modes import modal_analysis
from dolfinx_mbd.recovery.sections import section_modes
from dolfinx_mbd.recovery.stress import Recovery, envelope
from dolfinx_mbd.reduction import reduce
from dolfinx_mbd.reduction.damping import Viscous
from dolfinx_mbd.reduction.distributed_loads import body_force, pressure, traction
from dolfinx_mbd.reduction.result import Reduction
from tests.fem.test_materials import grouped
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box
from tests.models.calls import flat

ENDS = ("left", "right")


@contextmanager
def compilations() -> Iterator[list[str]]:
    """The modules that FFCx generates and compiles in a with block, on this rank."""
    found: list[str] = []
    compile_objects = ffcx_jit._compile_objects

    def counted(*arguments: object, **settings: object) -> object:
        found.append(str(arguments[3]))
        return compile_objects(*arguments, **settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ffcx_jit, "_compile_objects", counted)
        yield found


def material(k: int) -> Material:
    return Material(
        (2e11, 7e10)[k], (0.3, 0.33)[k], (7850.0, 2700.0)[k], f"no. {k}", (1e-5, 2e-5)[k]
    )


def timber(k: int) -> Orthotropic:
    E = 1e9 * np.array([(10.0, 0.8, 0.5), (12.0, 0.9, 0.6)][k])
    return Orthotropic(E, (0.3, 0.2, 0.4), 1e8 * np.array([5.0, 6.0, 1.0 + k]), 500.0 + k)


def bar(comm: MPI.Intracomm, k: int) -> TaggedMesh:
    return box(comm, (LENGTH * (1 + k), HEIGHT, WIDTH), (3 + k, 1, 1))


def reduced(comm: MPI.Intracomm, k: int, **options: object) -> Reduction:
    middle = {"middle": (LENGTH * (0.4 + 0.1 * k), 0.0, 0.0)}
    settings = {"interfaces": ENDS, "num_modes": 2 + k, "points": middle} | options
    return flat(reduce, bar(comm, k), material(k), **settings)


def in_groups(comm: MPI.Intracomm, k: int) -> None:
    mesh = grouped(bar(comm, k), lambda x: x[0] < LENGTH / 2)
    both = {"a": material(k), "b": material(1 - k)}
    reduce(ElasticModel(mesh, both, prestress=Temperature(20.0 + k)), interfaces=ENDS, num_modes=2)


def with_loads(comm: MPI.Intracomm, k: int) -> None:
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
    recovery = Recovery(reduced(comm, k, stiffening=False))
    eta = 1e-6 * np.ones((2, recovery.displacements.shape[1]))
    envelope(recovery, eta, "von Mises")
    section_modes(recovery, (LENGTH / 2, 0.0, 0.0), (1.0, 0.1 * k, 0.0))


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
}


@pytest.mark.parametrize("case", CASES)
def test_other_numbers_need_no_new_code(comm: MPI.Intracomm, case: str) -> None:
    CASES[case](comm, 0)
    with compilations() as found:
        CASES[case](comm, 1)
    assert comm.allgather(found) == [[]] * comm.size


def test_a_number_in_a_form_is_new_code(comm: MPI.Intracomm) -> None:
    """The counter of the other tests finds new forms."""
    mesh = bar(comm, 0).mesh
    number = comm.bcast(float(np.random.default_rng().random()), root=0)
    with compilations() as found:
        fem.form(number * ufl.dx(domain=mesh))
    assert sum(map(len, comm.allgather(found))) == 1
