"""Bad input raises one clear error, which is the same on every rank, without a deadlock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.mesh import CellType, create_box, locate_entities, meshtags
from mpi4py import MPI

from dolfinx_mbd import ElasticModel
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.forms import STEEL, elastic_stiffness
from dolfinx_mbd.parallel import raise_together, shared_errors
from dolfinx_mbd.reduction import reduce
from tests.models.bodies import box


def assert_raises(
    comm: MPI.Intracomm, kind: type[Exception], text: str, call: Callable[[], Any]
) -> None:
    """Assert that a call raises the same error on every rank."""
    with pytest.raises(kind, match=text) as error:
        call()
    assert len(set(comm.allgather(str(error.value)))) == 1


def test_spaces_that_do_not_fit(comm: MPI.Intracomm) -> None:
    """Spaces must not be discontinuous, scalar or on another mesh."""
    mesh = box(comm).mesh
    other = create_box(comm, [np.zeros(3), np.ones(3)], [2, 2, 2], CellType.hexahedron)
    for space in (
        fem.functionspace(mesh, ("DG", 1, (3,))),
        fem.functionspace(mesh, ("Lagrange", 1)),
        fem.functionspace(other, ("Lagrange", 1, (3,))),
    ):
        assert_raises(
            comm,
            ValueError,
            "continuous vector Lagrange space",
            lambda space=space: reduce(ElasticModel(mesh, STEEL, space=space), interfaces=()),
        )


def test_stiffness_forms_that_do_not_fit(comm: MPI.Intracomm) -> None:
    """Forms on another space, linear forms, and elastic supports in the stiffness raise errors."""
    mesh = box(comm).mesh
    spaces = [fem.functionspace(mesh, ("Lagrange", 1, (3,))) for _ in range(2)]
    (u, w), (v, _) = [[f(V) for V in spaces] for f in (ufl.TrialFunction, ufl.TestFunction)]
    for text, form in (
        ("on `space`", elastic_stiffness(w, ufl.TestFunction(spaces[1]), STEEL)),
        ("bilinear", v[0] * ufl.dx),
        ("contains a support", elastic_stiffness(u, v, STEEL) + 1e12 * ufl.inner(u, v) * ufl.ds),
    ):
        assert_raises(
            comm,
            ValueError,
            text,
            lambda form=form: reduce(
                ElasticModel(mesh, STEEL, space=spaces[0], stiffness=form), interfaces=()
            ),
        )


def test_facets_inside_the_body(comm: MPI.Intracomm) -> None:
    """The point and axes of an interface follow from facets on the surface of the body."""
    mesh = create_box(comm, [np.zeros(3), np.ones(3)], [2, 1, 1], CellType.hexahedron)
    facets = locate_entities(mesh, 2, lambda x: np.isclose(x[0], 0.5))
    tags = meshtags(mesh, 2, facets, np.ones(len(facets), dtype=np.int32))
    assert_raises(
        comm,
        ValueError,
        "no facets on the surface",
        lambda: reduce(ElasticModel(mesh, STEEL, facet_tags=tags), interfaces={"in": 1}),
    )


def test_errors_of_one_rank_are_errors_of_all(comm: MPI.Intracomm) -> None:
    """An error on any one rank is raised on all ranks."""
    last = comm.size - 1

    def one_sided() -> None:
        with shared_errors(comm):
            if comm.rank == last:
                raise KeyError("only here")

    assert_raises(comm, KeyError, "only here", one_sided)

    def with_an_object_that_cannot_be_sent() -> None:
        with shared_errors(comm):
            if comm.rank == last:
                raise InputTypeError("only here", argument="x", value=lambda: None)

    assert_raises(comm, InputTypeError, "only here", with_an_object_that_cannot_be_sent)
    message = "told" if comm.rank == last else None
    assert_raises(comm, OSError, "told", lambda: raise_together(comm, message, OSError))
    raise_together(comm, None)


def test_errors_name_the_rank(comm: MPI.Intracomm) -> None:
    """The message names the rank; for errors of other libraries, a note of the error names it.

    If all ranks have the error, no rank is named.
    """
    last = comm.size - 1
    expected = f"(on rank {last} of {comm.size} ranks)" if last else ""
    with pytest.raises(InputError) as error:
        raise_together(comm, "told" if comm.rank == last else None)
    assert str(error.value) == f"told {expected}".strip()
    with pytest.raises(InputError, match=r"^told$"):
        raise_together(comm, "told")
    with pytest.raises(KeyError) as other, shared_errors(comm):
        if comm.rank == last:
            raise KeyError("only here")
    if sys.version_info >= (3, 11):
        assert getattr(other.value, "__notes__", []) == ([expected] if last else [])
