"""Geometric stiffness of many stresses in one pass over the cells, against assembled forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dolfinx import mesh as dmesh
from mpi4py import MPI

from dolfinx_mbd import STEEL, ConnectingRod, ElasticModel, build_mesh
from dolfinx_mbd.fem import geometric_products
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.forms import Orthotropic
from dolfinx_mbd.reduction import stiffening

PLY = Orthotropic((1e11, 2e10, 5e9), (0.3, 0.2, 0.4), (5e8, 6e8, 1e9), 1500.0)


def solid(comm: MPI.Comm, cell: str) -> dmesh.Mesh:
    """Return a sheared box, whose cells have Jacobians without zeros."""
    mesh = dmesh.create_box(
        comm, [(0, 0, 0), (0.3, 0.04, 0.05)], (5, 2, 2), cell_type=dmesh.CellType[cell]
    )
    x = mesh.geometry.x
    x[:] = x @ np.array([[1.0, 0.1, -0.2], [0.3, 1.1, 0.2], [0.1, -0.3, 0.9]])
    return mesh


def products(model: ElasticModel, monkeypatch: pytest.MonkeyPatch, *, forms: bool) -> np.ndarray:
    """Return the products of five smooth fields for three stresses."""
    problem = elastic_problem(model)
    x = problem.positions
    fields = [np.sin((k + 1.0) * x @ np.arange(1, x.shape[1] + 1) + k) for k in range(5)]
    vectors = np.column_stack([np.outer(f, np.cos(np.arange(x.shape[1]) + k)).ravel()
                               for k, f in enumerate(fields)])  # fmt: skip
    if forms:
        monkeypatch.setattr(stiffening, "has_simplices", lambda mesh: False)
    assert problem.materials is not None
    arguments: Any = problem, problem.materials.stress, vectors[:, 2:], np.asfortranarray(vectors)
    result = np.array(list(stiffening._products(*arguments)))
    problem.destroy()
    return result


@pytest.mark.parametrize("max_cells", [7, 20_000])
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("material", [STEEL, PLY], ids=["steel", "ply"])
def test_solids(
    comm: MPI.Comm, degree: int, material: Any, max_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(geometric_products, "MAX_CELLS", max_cells)
    mesh = solid(comm, "tetrahedron")
    assert geometric_products.has_simplices(mesh)
    model = ElasticModel(mesh, material, degree=degree)
    computed = products(model, monkeypatch, forms=False)
    expected = products(model, monkeypatch, forms=True)
    assert np.abs(computed - expected).max() < 1e-12 * np.abs(expected).max()


def test_plates(comm: MPI.Comm, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = dmesh.create_rectangle(comm, [(0, 0), (0.3, 0.1)], (6, 3))
    model = ElasticModel(mesh, STEEL, plane="stress", thickness=0.004)
    computed = products(model, monkeypatch, forms=False)
    expected = products(model, monkeypatch, forms=True)
    assert np.abs(computed - expected).max() < 1e-12 * np.abs(expected).max()


def test_curved_cells(comm: MPI.Comm, monkeypatch: pytest.MonkeyPatch) -> None:
    """The products of a connecting rod of quadratic cells agree."""
    model = ElasticModel(build_mesh(ConnectingRod(size=0.02), comm), STEEL)
    computed = products(model, monkeypatch, forms=False)
    expected = products(model, monkeypatch, forms=True)
    assert np.abs(computed - expected).max() < 1e-12 * np.abs(expected).max()


def test_other_cells(comm: MPI.Comm) -> None:
    assert not geometric_products.has_simplices(solid(comm, "hexahedron"))
