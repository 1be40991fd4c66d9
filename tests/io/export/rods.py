"""A small rod for the tests of exports, and checks of its superelement."""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.linalg
from mpi4py import MPI

from dolfinx_mbd import STEEL, reduce
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.reduction import InterfaceSpec
from tests.models.bodies import box, dynamic_stiffness

NUM_MODES = 5
TURNED = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


@cache
def rod() -> ReducedBody:
    """Return a steel bar with a rigid and an averaged end, with damping."""
    ends = {"left": InterfaceSpec(axes=TURNED), "right é": InterfaceSpec("right", kind="averaged")}
    body = reduce(
        box(MPI.COMM_SELF, cells=(4, 1, 1)), STEEL, interfaces=ends, num_modes=NUM_MODES, name="rød"
    ).body
    n = body.num_modes
    return body.replace(damping=1e-6 * body.stiffness + np.diag(np.arange(1.0, n + 1)))


def relative(values: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference divided by the largest expected value."""
    assert np.shape(values) == np.shape(expected)
    return float(np.abs(np.subtract(values, expected)).max() / np.abs(expected).max())


def check_superelement(body: ReducedBody, K: np.ndarray, M: np.ndarray, digits: float) -> None:
    """Assert that K and M are those of the body in coordinates of its interfaces, then of modes.

    `digits` is the relative tolerance.
    """
    count = 6 * len(body.interfaces)
    assert K.shape == M.shape == (6 + body.num_modes,) * 2
    assert relative(K, K.T) < digits and relative(M, M.T) < digits
    scipy.linalg.cholesky(M)
    # K is scaled to a unit diagonal; with one interface, its first six rows are zero.
    size = np.sqrt(np.where(np.diag(K) > 0, np.diag(K), 1.0))
    values = np.linalg.eigvalsh(K / np.outer(size, size))
    assert np.abs(values[:6]).max() < 10 * digits < 1e-4 * values[6]
    rigid = np.zeros((len(K), 6))
    for k, i in enumerate(body.interfaces):
        rigid[6 * k : 6 * k + 6] = np.eye(6)
        for a in range(3):
            rigid[6 * k : 6 * k + 3, 3 + a] = np.cross(np.eye(3)[a], i.point)
    mass = rigid.T @ M @ rigid  # of the rigid motions: translations, rotations about the origin
    assert relative(mass[:3, :3], body.total_mass * np.eye(3)) < digits
    assert relative(mass[3:, 3:], body.inertia) < digits
    # These entries of the coupling block are the mass times the coordinates of its centre.
    assert relative(mass[[1, 2, 0], [5, 3, 4]], body.total_mass * body.centre[[0, 1, 2]]) < digits
    squares = scipy.linalg.eigh(K, M, eigvals_only=True)[6:]
    assert relative(np.sqrt(squares) / (2 * np.pi), body.frequencies) < digits
    omega = 2 * np.pi * 0.7 * body.frequencies[0]  # below the first resonance
    Z = K - omega**2 * M
    condensed = Z[:count, :count] - Z[:count, count:] @ np.linalg.solve(
        Z[count:, count:], Z[count:, :count]
    )
    assert relative(condensed, dynamic_stiffness(body, omega)) < 100 * digits
