"""Accuracy of the systems of the modes' derivatives for a free sphere, whose modes are multiple."""

from __future__ import annotations

from typing import Any

import gmsh
import numpy as np
import pytest
import ufl
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.design.sensitivity import mode_derivatives
from dolfinx_mbd.errors import AccuracyWarning, SolverError
from dolfinx_mbd.fem.linalg import shifted_systems


@pytest.fixture
def sphere(comm: MPI.Intracomm) -> mbd.reduction.Reduction:
    """Return the reduction of a free sphere."""

    def build(model: Any) -> None:
        model.occ.addSphere(0, 0, 0, 0.05)
        model.occ.synchronize()
        model.addPhysicalGroup(3, [1], name="body")
        gmsh.option.setNumber("Mesh.MeshSizeMax", 0.03)
        model.mesh.generate(3)

    model = mbd.ElasticModel(mbd.build_mesh(build, comm), mbd.STEEL)
    return mbd.reduce(model, interfaces=[], num_modes=12)


def stretched(sphere: mbd.reduction.Reduction) -> mbd.design.BodySensitivities:
    """Return derivatives of the sphere with respect to ν and two velocities of its shape."""
    assert sphere.model is not None
    x = ufl.SpatialCoordinate(sphere.model.plain_mesh)
    fields = ufl.as_vector([x[0], 0 * x[0], 0 * x[0]]), ufl.as_vector([x[1] * x[0], x[1], 0 * x[0]])
    shapes = [mbd.Parameter(f"shape {k}", "shape", velocity=V) for k, V in enumerate(fields)]
    return mbd.sensitivities(sphere, [mbd.Parameter("nu", "poisson"), *shapes])


@pytest.mark.filterwarnings("error::dolfinx_mbd.errors.AccuracyWarning")
def test_round_off(sphere: mbd.reduction.Reduction, monkeypatch: pytest.MonkeyPatch) -> None:
    """Round-off does not grow: errors a hundred times below the tolerance are possible."""
    monkeypatch.setattr(shifted_systems, "TOLERANCE", 1e-10)
    stretched(sphere)


def test_warning(sphere: mbd.reduction.Reduction, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tolerance below round-off is not reached: the estimated error is reported."""
    monkeypatch.setattr(shifted_systems, "TOLERANCE", 1e-20)
    with pytest.warns(AccuracyWarning, match="round-off limits the accuracy") as records:
        stretched(sphere)
    values = [w.message.value for w in records if isinstance(w.message, AccuracyWarning)]
    assert all(1e-20 < v < 1e-8 for v in values), values


def test_error(sphere: mbd.reduction.Reduction, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solution that is not accurate raises an error on every rank."""
    monkeypatch.setattr(shifted_systems, "MAX_STEPS", 1)
    with pytest.raises(SolverError, match="do not converge"):
        stretched(sphere)


def test_systems_solved_together(
    sphere: mbd.reduction.Reduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result does not depend on the number of parameters that are solved together."""
    together = stretched(sphere)
    monkeypatch.setattr(mode_derivatives, "GROUP", 1)
    alone = stretched(sphere)
    for name, derivative in together.items():
        difference = np.abs(derivative.stiffness - alone[name].stiffness).max()
        assert difference <= 1e-7 * np.abs(derivative.stiffness).max()


def test_few_combinations() -> None:
    """The parts of residuals R outside a few combinations R c are below the limit."""
    rng = np.random.default_rng(1)
    R = rng.standard_normal((50, 8)) @ np.diag(10.0 ** -np.arange(8)) @ rng.standard_normal((8, 20))
    errors = np.full(20, 1e-5)
    errors[:3] = 1e-9
    inaccurate = errors > shifted_systems.TOLERANCE
    c = shifted_systems._combinations(R.T @ R, errors, inaccurate)
    assert c.shape[1] < 8 and not c[~inaccurate].any()
    q, _ = np.linalg.qr(R @ c)
    outside = np.linalg.norm(R - q @ (q.T @ R), axis=0) / np.linalg.norm(R, axis=0)
    assert outside[inaccurate].max() <= shifted_systems.SHARE
