"""Geometric stiffness in SID files: a spinning blade from the numbers of the file alone.

The blade is clamped to a hub that spins about z. The stiffness comes from the spin (Oe.M1, the free
body) and from the force that the hub exerts (phi.M1, psi.M1); only their sum, with these signs and
without terms of accelerations, gives the frequencies of the beam of Euler and Bernoulli.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from dolfinx import mesh as dmesh
from mpi4py import MPI
from scipy.linalg import eigh, null_space

import dolfinx_mbd as mbd
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.io.export import export
from dolfinx_mbd.kernels.rotations import rotation_matrix
from tests.io.export.equations import sid_rows
from tests.io.export.readers.sid import SidFile, read_sid

LENGTH, SIDE = 0.3, 0.006
STEEL = mbd.Material(2.0e11, 0.0, 7850.0)
SCALE = np.sqrt(STEEL.young * SIDE**2 / 12 / STEEL.density) / LENGTH**2
"""√(EI/ρA)/L², rad/s: frequencies and spins are given as multiples of it."""


@cache
def blade() -> ReducedBody:
    """Return a slender blade along x, held at its root by the interface "hub"."""
    corners = [np.array([0.0, -SIDE / 2, -SIDE / 2]), np.array([LENGTH, SIDE / 2, SIDE / 2])]
    box = dmesh.create_box(MPI.COMM_WORLD, corners, (36, 1, 1), cell_type=dmesh.CellType.hexahedron)
    facets = dmesh.locate_entities_boundary(box, 2, lambda x: np.isclose(x[0], 0.0))
    tags = dmesh.meshtags(box, 2, np.sort(facets), np.ones(len(facets), dtype=np.int32))
    return mbd.reduce(
        mbd.ElasticModel(box, STEEL, facet_tags=tags), interfaces={"hub": 1}, num_modes=8
    ).body


def flap(gamma: float) -> float:
    """Return the first flap frequency of a clamped Euler-Bernoulli beam, over `SCALE`.

    `gamma` is the spin γ over `SCALE`. With lengths over `LENGTH`, the deflection w follows
    w'''' − γ²/2 ((1 − x²) w')' = ω² w; Galerkin's method uses the powers x² to x⁹.
    """
    x, weights = np.polynomial.legendre.leggauss(24)
    x, weights = (x + 1) / 2, weights / 2
    powers = np.arange(2, 10)
    w = x[:, None] ** powers
    slope = powers * x[:, None] ** (powers - 1)
    curvature = powers * (powers - 1) * x[:, None] ** (powers - 2)
    K = curvature.T @ (weights[:, None] * curvature)
    K += gamma**2 / 2 * slope.T @ ((weights * (1 - x**2))[:, None] * slope)
    return float(np.sqrt(eigh(K, w.T @ (weights[:, None] * w), eigvals_only=True)[0]))


def rows(file: SidFile, z: np.ndarray, rates: np.ndarray, force: np.ndarray, spin: float):
    """Return the rows of a body at rest in a frame that spins about the third axis.

    z contains the position, the rotation vector and the elastic coordinates in this frame; `rates`
    are accelerations relative to it, and `force` are the force and moment of the hub.
    """
    rotation = z[3:6]
    size = np.linalg.norm(rotation)
    axis = rotation / size if size else np.array([1.0, 0.0, 0.0])
    quaternion = np.array([np.cos(size / 2), *(np.sin(size / 2) * axis)])
    R, Omega = rotation_matrix(quaternion), np.array([0.0, 0.0, spin])
    q = np.concatenate([z[:3], quaternion, z[6:]])
    v = np.concatenate([np.cross(Omega, z[:3]), R.T @ Omega, np.zeros(len(z) - 6)])
    a = rates.copy()
    a[:3] += np.cross(Omega, np.cross(Omega, z[:3]))
    return sid_rows(file, q, v, a, np.zeros(3), force[None])


def clamp(file: SidFile) -> np.ndarray:
    """Return the motion of the hub's node per unit of z, linearized at z = 0."""
    node = next(iter(file.nodes.values()))
    x, y, z = node["origin"].m0[:, 0]
    arm = np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])
    return np.block(
        [[np.eye(3), arm, node["phi"].m0], [np.zeros((3, 3)), np.eye(3), node["psi"].m0]]
    )


def frequencies(file: SidFile, spin: float) -> tuple[float, float]:
    """Return lag and flap frequency, rad/s, of the blade in equilibrium with the spin."""
    G = clamp(file)
    # The columns of N are the motions z with a fixed hub; scaling G makes the rank clear.
    N = null_space(G / np.linalg.norm(G, axis=0)) / np.linalg.norm(G, axis=0)[:, None]
    size = N.shape[0]
    # steps of central differences for positions (m), rotations (rad) and elastic coordinates
    step = np.concatenate([np.full(3, 1e-9), np.full(3, 1e-8), np.full(size - 6, 1e-9)])
    zero = np.zeros(size)

    def derivative(z: np.ndarray, force: np.ndarray) -> np.ndarray:
        return np.column_stack(
            [
                (rows(file, z + e, zero, force, spin) - rows(file, z - e, zero, force, spin))
                / (2 * e.max())
                for e in np.diag(step)
            ]
        )

    z, force = zero, np.zeros(6)
    for _ in range(4):  # Newton's method: the force of the hub, then the motion
        residual = rows(file, z, zero, force, spin)
        force = force + np.linalg.lstsq(G[:, :6].T, residual[:6], rcond=None)[0]
        residual = rows(file, z, zero, force, spin)
        K = N.T @ derivative(z, force) @ N
        z = z - N @ np.linalg.solve(K, N.T @ residual)
    M = np.column_stack(
        [rows(file, z, e, force, spin) - rows(file, z, zero, force, spin) for e in np.eye(size)]
    )
    K, M = N.T @ derivative(z, force) @ N, N.T @ M @ N
    squares = eigh((K + K.T) / 2, (M + M.T) / 2, eigvals_only=True)
    return float(np.sqrt(max(squares[0], 0.0))), float(np.sqrt(squares[1]))


@pytest.mark.parametrize("gamma", [0.0, 2.0, 5.0])
def test_spin_raises_the_flap_frequency(tmp_path: Path, gamma: float) -> None:
    assert flap(0.0) == pytest.approx(3.5160, abs=1e-4)  # 1.8751², the cantilever at rest
    path = export(blade(), tmp_path / "blade", "sid").paths[0]
    lag, flapping = frequencies(read_sid(path, q_second=True), gamma * SCALE)
    assert flapping / SCALE == pytest.approx(flap(gamma), rel=1e-3)
    # In the plane of rotation, the centrifugal force reduces the stiffness by ρA Ω².
    assert lag**2 == pytest.approx(flapping**2 - (gamma * SCALE) ** 2, rel=2e-3)
