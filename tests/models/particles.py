"""A flexible body of a few particles: every inertia term is a sum done by hand."""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.body import Interface, ReducedBody, Stiffening


class Particles:
    """Random particles with random modes, and the reduced body that they make.

    x and psi are positions and modes, S and H their first and second mass moments, K and C the
    stiffness and damping matrices.
    """

    def __init__(self, num_modes: int, seed: int = 0, count: int = 12) -> None:
        rng = np.random.default_rng(seed)
        self.masses = rng.uniform(0.1, 1.0, count)
        self.x = rng.normal(size=(count, 3))
        self.psi = rng.normal(size=(num_modes, count, 3))
        fields = np.concatenate([self.x[None], self.psi])
        self.S = np.einsum("p,kpa->ka", self.masses, fields)
        self.H = np.einsum("p,kpa,lpb->klab", self.masses, fields, fields)
        factor = rng.normal(size=(num_modes, num_modes))
        self.K = factor @ factor.T + np.eye(num_modes)
        self.C = 0.1 * self.K
        self.interfaces = tuple(
            Interface(
                name,
                "rigid",
                rng.normal(size=3),
                _rotation(rng),
                0.3 * rng.normal(size=(6, num_modes)),
            )
            for name in ("one", "two")
        )

    def body(self, damping: bool = True, stiffening: bool = False) -> ReducedBody:
        """Return the reduced body."""
        n = len(self.K)
        rng = np.random.default_rng(9)
        spin, wrench = rng.normal(size=(6, n, n)), rng.normal(size=(2, 6, n, n))
        cases = Stiffening(spin + spin.transpose(0, 2, 1), wrench + wrench.transpose(0, 1, 3, 2))
        return ReducedBody.from_arrays(
            total_mass=float(self.masses.sum()),
            first_moments=self.S,
            second_moments=self.H,
            stiffness=self.K,
            damping=self.C if damping else None,
            interfaces=self.interfaces,
            stiffening=cases if stiffening else None,
        )


def _rotation(rng: np.random.Generator) -> np.ndarray:
    """Return a random rotation matrix."""
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return Q * np.sign(np.linalg.det(Q))
