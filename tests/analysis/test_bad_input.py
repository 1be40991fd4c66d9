"""Bad input: one clear error, the same on every rank, and no hang."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.mesh import CellType, create_box, create_unit_square, locate_entities, meshtags
from mpi4py import MPI

from dolfinx_mbd.analysis import la
from dolfinx_mbd.analysis.la import FactorizationError, agreed, raise_together
from dolfinx_mbd.analysis.meshing import build_mesh
from dolfinx_mbd.analysis.modal import modal_analysis
from dolfinx_mbd.analysis.reduction import reduce
from dolfinx_mbd.forms import STEEL, elastic_stiffness
from dolfinx_mbd.geometry import ConnectingRod
from tests.analysis.bodies import box


def refused(comm: MPI.Intracomm, kind: type[Exception], text: str, call: Callable[[], Any]) -> None:
    """The call raises the same error on every rank."""
    with pytest.raises(kind, match=text) as caught:
        call()
    assert len(set(comm.allgather(str(caught.value)))) == 1


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("unknown interface 'lift'.*'left', 'right'", {"interfaces": ["lift"]}),
        ("'left' and 'top' share .* nodes", {"interfaces": ["left", "top"]}),
        ("'left' is given twice", {"interfaces": ["left", "left"]}),
        ("'pin' .*has no facets", {"interfaces": {"pin": 77}}),
        ("needs a name", {"interfaces": {1: 1}}),
        ("num_modes must be 0, 1, 2", {"num_modes": -1}),
        ("num_modes must be 0, 1, 2", {"num_modes": 2.5}),
        ("num_modes=5000, but the mesh has", {"num_modes": 5000}),
        ("num_modes=5000, but the mesh has", {"num_modes": 5000, "interfaces": ()}),
        ("degree of the space must be", {"degree": 0}),
        ("density must be positive", {"density": -1.0}),
        ("density is not positive everywhere", {"density": ufl.as_ufl(-1.0)}),
        ("'far' at .* is not in the mesh; the nearest node", {"points": {"far": (1, 0, 0)}}),
        ("'flat': expected three finite numbers", {"points": {"flat": (1, 0)}}),
        ("give a material or a density", {"material": None}),
        ("give a material, or a stiffness", {"material": None, "density": 1.0}),
    ],
)
def test_refused(comm: MPI.Intracomm, text: str, given: dict[str, Any]) -> None:
    """What was expected, what came, what would do."""
    arguments = {"material": STEEL, "interfaces": ["left"], "num_modes": 2, "degree": 1} | given
    refused(comm, ValueError, text, lambda: reduce(box(comm), **arguments))


def test_plain_mesh_without_tags(comm: MPI.Intracomm) -> None:
    """Names and tags need something that gives them a meaning."""
    mesh = box(comm).mesh
    refused(comm, ValueError, "no group names", lambda: reduce(mesh, STEEL, interfaces=["left"]))
    refused(comm, ValueError, "no facet_tags", lambda: reduce(mesh, STEEL, interfaces={"left": 1}))


def test_unknown_keyword(comm: MPI.Intracomm) -> None:
    """A typo is an error."""
    with pytest.raises(TypeError, match="num_mode"):
        reduce(box(comm), STEEL, interfaces=["left"], num_mode=3)  # type: ignore[call-arg]


def test_plane_mesh(comm: MPI.Intracomm) -> None:
    """It has no mass without its thickness."""
    mesh = create_unit_square(comm, 2, 2)
    refused(comm, ValueError, "needs its thickness", lambda: reduce(mesh, STEEL, interfaces=()))


def test_degree_below_geometry(comm: MPI.Intracomm) -> None:
    """x would not lie in the space (the mass would be wrong)."""
    mesh = build_mesh(ConnectingRod(size=0.02), comm)
    refused(
        comm,
        ValueError,
        "degree 1 and the mesh geometric order 2",
        lambda: reduce(mesh, STEEL, interfaces=["big_end"], degree=1),
    )


def test_spaces_that_do_not_fit(comm: MPI.Intracomm) -> None:
    """Discontinuous, scalar, or of another mesh."""
    mesh = box(comm).mesh
    other = create_box(comm, [np.zeros(3), np.ones(3)], [2, 2, 2], CellType.hexahedron)
    for space in (
        fem.functionspace(mesh, ("DG", 1, (3,))),
        fem.functionspace(mesh, ("Lagrange", 1)),
        fem.functionspace(other, ("Lagrange", 1, (3,))),
    ):
        refused(
            comm,
            ValueError,
            "continuous vector Lagrange space",
            lambda space=space: reduce(mesh, STEEL, interfaces=(), space=space),
        )


def test_stiffness_forms_that_do_not_fit(comm: MPI.Intracomm) -> None:
    """Of another space, linear, or with a support that a floating body must not have."""
    mesh = box(comm).mesh
    spaces = [fem.functionspace(mesh, ("Lagrange", 1, (3,))) for _ in range(2)]
    (u, w), (v, _) = [[f(V) for V in spaces] for f in (ufl.TrialFunction, ufl.TestFunction)]
    for text, form in (
        ("on `space`", elastic_stiffness(w, ufl.TestFunction(spaces[1]), STEEL)),
        ("bilinear", v[0] * ufl.dx),
        ("resists rigid motion", elastic_stiffness(u, v, STEEL) + 1e12 * ufl.inner(u, v) * ufl.ds),
    ):
        refused(
            comm,
            ValueError,
            text,
            lambda form=form: reduce(mesh, STEEL, interfaces=(), space=spaces[0], stiffness=form),
        )


def test_body_in_two_parts(comm: MPI.Intracomm) -> None:
    """One part loose: the factorization says so. Both held: two bodies. None held: counted."""
    apart = box(comm, gap=True)

    def call(*interfaces: str) -> Callable[[], Any]:
        return lambda: reduce(apart, STEEL, interfaces=interfaces, num_modes=2)

    refused(comm, FactorizationError, "not held|not connected|singular", call("left"))
    refused(comm, ValueError, "in parts that are not connected", call("left", "right"))
    refused(comm, ValueError, "12 motions without stiffness", call())


def test_facets_inside_the_body(comm: MPI.Intracomm) -> None:
    """They have no surface to find an axis on."""
    mesh = create_box(comm, [np.zeros(3), np.ones(3)], [2, 1, 1], CellType.hexahedron)
    facets = locate_entities(mesh, 2, lambda x: np.isclose(x[0], 0.5))
    tags = meshtags(mesh, 2, facets, np.ones(len(facets), dtype=np.int32))
    refused(
        comm,
        ValueError,
        "no facets on the surface",
        lambda: reduce(mesh, STEEL, interfaces={"in": 1}, facet_tags=tags),
    )


def test_modal_analysis_refuses(comm: MPI.Intracomm) -> None:
    """The same checks."""
    mesh = box(comm)
    refused(
        comm, ValueError, "unknown interface", lambda: modal_analysis(mesh, STEEL, held=["lift"])
    )
    refused(
        comm, ValueError, "num_modes must be", lambda: modal_analysis(mesh, STEEL, num_modes=-2)
    )


def test_complex_petsc(comm: MPI.Intracomm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Says which PETSc is needed."""
    monkeypatch.setattr(la.PETSc, "ScalarType", np.complex128)
    refused(comm, RuntimeError, "complex", lambda: reduce(box(comm), STEEL, interfaces=["left"]))


def test_errors_of_one_rank_are_errors_of_all(comm: MPI.Intracomm) -> None:
    """Whichever rank sees them."""
    last = comm.size - 1

    def one_sided() -> None:
        with agreed(comm):
            if comm.rank == last:
                raise KeyError("only here")

    refused(comm, KeyError, "only here", one_sided)
    message = "told" if comm.rank == last else None
    refused(comm, OSError, "told", lambda: raise_together(comm, message, OSError))
    raise_together(comm, None)
