"""A bar reduced from its mesh, and its matrices in the form of another program."""

from __future__ import annotations

from functools import cache

import numpy as np

from dolfinx_mbd import mechanisms
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.forms import STEEL
from dolfinx_mbd.io.imports import FullMatrices, NodeInterface
from tests.exudyn.models import Model
from tests.models.bodies import box

ENDS = ("left", "right")
NUM_MODES = 6


@cache
def bar() -> Model:
    """Return a slender steel bar of quadratic tetrahedra, on one rank."""
    from dolfinx.mesh import CellType
    from mpi4py import MPI

    mesh = box(MPI.COMM_SELF, (0.3, 0.008, 0.006), (8, 1, 1), CellType.tetrahedron)
    mesh.mesh.geometry.x[:, 1] -= 0.004
    mesh.mesh.geometry.x[:, 2] -= 0.003
    return Model(mesh, STEEL, ENDS, NUM_MODES)


@cache
def matrices() -> FullMatrices:
    """Return K, M and the nodes of the bar."""
    K, M, nodes = bar().matrices
    return FullMatrices(K, M, nodes)


@cache
def reference() -> ReducedBody:
    """Return the bar reduced by `reduce`, without stiffening."""
    return bar().reduction("mean axis").body.replace(stiffening=None)


def ends(first: int = 0) -> dict[str, NodeInterface]:
    """Return the interfaces by the numbers of their nodes, which start from `first`."""
    return {
        name: NodeInterface(nodes + first, point=reference().interface(name).point)
        for name, nodes in zip(ENDS, bar().nodes, strict=True)
    }


def relative(values: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference divided by the largest expected value."""
    assert np.shape(values) == np.shape(expected)
    return float(np.abs(np.subtract(values, expected)).max() / np.abs(expected).max())


def inertia_at_interfaces(body: ReducedBody) -> tuple[np.ndarray, ...]:
    """Return ∫ρ x⊗u_p and ∫ρ u_p⊗u_q of the deformations u_p by unit wrenches at the interfaces.

    The shapes are (w, 3, 3) and (w, w, 3, 3) for w wrench components. The results do not depend on
    the sign of modes, nor on which vectors of close modes are taken.
    """
    D = np.vstack([i.motion for i in body.interfaces])
    c = np.linalg.solve(body.stiffness, D.T)  # coordinates under unit wrenches
    H = body.second_moments
    return (
        np.einsum("kab,kp->pab", H[0, 1:], c),
        np.einsum("klab,kp,lq->pqab", H[1:, 1:], c, c),
    )


def piston(rod: ReducedBody) -> np.ndarray:
    """Return the position of a slider-crank's piston at 150 rad/s, shape (times, 3)."""
    system = mechanisms.slider_crank(
        rod, crank_radius=0.1, crank_mass=0.4, piston_mass=0.1, speed=150.0, ends=ENDS
    )
    return simulate(system, t_end=0.01, dt=5e-5, stride=5).body("piston").position
