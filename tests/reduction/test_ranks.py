"""A reduction does not depend on the number of ranks, and is bitwise the same on each rank."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from mpi4py import MPI

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.fem.meshing import TaggedMesh, build_mesh
from dolfinx_mbd.forms import STEEL
from dolfinx_mbd.geometry import ConnectingRod
from dolfinx_mbd.reduction import reduce
from tests.models.bodies import LENGTH, box, dynamic_stiffness


def _bar(comm: MPI.Intracomm) -> tuple[TaggedMesh, tuple[str, ...], dict[str, Any]]:
    """Return the mesh of a box, its interfaces and a point."""
    return box(comm), ("left", "right"), {"inside": (LENGTH / 3, 0.007, 0.005)}


def _rod(comm: MPI.Intracomm) -> tuple[TaggedMesh, tuple[str, ...], dict[str, Any]]:
    """Return the mesh of a connecting rod, its interfaces and a point."""
    mesh = build_mesh(ConnectingRod(size=0.012), comm)
    return mesh, ("big_end", "small_end"), {"middle": (LENGTH / 2, 0.0, 0.0)}


def _body(case: Any, comm: MPI.Intracomm) -> ReducedBody:
    """Return the reduced body of a case on a communicator."""
    mesh, interfaces, points = case(comm)
    return reduce(mesh, STEEL, interfaces=interfaces, num_modes=8, points=points).body


@pytest.mark.parametrize("case", [_bar, _rod])
def test_same_body_on_any_number_of_ranks(comm: MPI.Intracomm, case: Any) -> None:
    """Eigenvalues (1e-9), dynamic stiffness (1e-8) and subspaces (1e-6) agree with one rank."""
    alone, shared = _body(case, MPI.COMM_SELF), _body(case, comm)
    assert np.diag(shared.stiffness) == pytest.approx(np.diag(alone.stiffness), rel=1e-9)
    assert shared.total_mass == pytest.approx(alone.total_mass, rel=1e-12)
    assert np.allclose(shared.inertia, alone.inertia, atol=1e-12 * np.abs(alone.inertia).max())
    for factor in (0.3, 1.3):
        omega = factor * 2 * np.pi * alone.frequencies[0]
        a, b = dynamic_stiffness(alone, omega), dynamic_stiffness(shared, omega)
        scale = np.sqrt(np.abs(np.outer(np.diag(a), np.diag(a))))
        assert (np.abs(a - b) / scale).max() < 1e-8
    assert alone.skin is not None
    assert shared.skin is not None
    assert np.allclose(alone.skin.points, shared.skin.points, atol=1e-12)
    assert np.array_equal(alone.skin.triangles, shared.skin.triangles)
    n = alone.num_modes
    x, y = (body.skin.modes.reshape(n, -1).T for body in (alone, shared))
    assert scipy.linalg.subspace_angles(x, y).max() < 1e-6
    # No mode of these bodies is double, so that the sign rule makes even single vectors equal.
    assert np.allclose(x, y, atol=1e-6 * np.abs(x).max())
    point_modes = [body.points[0].modes for body in (alone, shared)]
    assert np.allclose(*point_modes, atol=1e-6 * np.abs(point_modes[0]).max())


def test_same_bits_on_every_rank(comm: MPI.Intracomm) -> None:
    """All arrays of the body are bitwise identical on all ranks."""

    def arrays(value: Any) -> list[bytes]:
        if isinstance(value, np.ndarray):
            return [value.tobytes()]
        if dataclasses.is_dataclass(value):
            return [b for f in dataclasses.fields(value) for b in arrays(getattr(value, f.name))]
        if isinstance(value, tuple):
            return [b for item in value for b in arrays(item)]
        return [str(value).encode()]

    everywhere = comm.allgather(arrays(_body(_bar, comm)))
    assert all(bits == everywhere[0] for bits in everywhere)
