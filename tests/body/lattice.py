"""A lattice of particles and bars with rigid end faces: full order and reduced without loss."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from dolfinx_mbd.body import Interface, MaterialPoint, ReducedBody, Stiffening

SPINS = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0))
"""Axes i and j of the products ω_i ω_j in the cases of `Stiffening`."""


def skew(a: np.ndarray) -> np.ndarray:
    """Return the matrix of the cross product a×."""
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0.0]])


class Lattice:
    """``count`` × 2 × 2 particles along x, bars between neighbours, ends "left" and "right".

    Full-order coordinates are the six motions of each end and the displacements of the particles
    between; ``T`` maps them to all displacements.  All elastic modes of the free lattice are kept.
    ``axial`` is a factor of the distances along x.
    """

    def __init__(self, count: int = 4, axial: float = 1.0, seed: int = 3) -> None:
        rng = np.random.default_rng(seed)
        grid = np.array(list(product(range(count), range(2), range(2))), dtype=float)
        self.x = 0.05 * grid * [axial, 1.0, 0.8] + [0.02, -0.01, 0.015]
        self.masses = rng.uniform(0.01, 0.02, len(grid))
        self.bars = [
            (i, j)
            for i, j in combinations(range(len(grid)), 2)
            if np.abs(grid[i] - grid[j]).max() <= 1
        ]
        self.rigidity = rng.uniform(1e6, 2e6, len(self.bars))  # EA, N
        size = 3 * len(grid)
        self.K = np.zeros((size, size))
        for bar, EA in zip(self.bars, self.rigidity, strict=True):
            row, length = self._elongation(bar)
            self.K += EA / length * np.outer(row, row)
        self.M = np.diag(np.repeat(self.masses, 3))
        self.ends = {"left": grid[:, 0] == 0, "right": grid[:, 0] == count - 1}
        self.points = {name: self.x[nodes].mean(axis=0) for name, nodes in self.ends.items()}
        self.T = self._transform()
        self.R = self._rigid(self.x, np.zeros(3))
        self.modes = self._modes()

    def _elongation(self, bar: tuple[int, int]) -> tuple[np.ndarray, float]:
        i, j = bar
        d = self.x[j] - self.x[i]
        row = np.zeros(3 * len(self.x))
        row[3 * i : 3 * i + 3], row[3 * j : 3 * j + 3] = -d, d
        return row / np.linalg.norm(d), float(np.linalg.norm(d))

    @staticmethod
    def _rigid(x: np.ndarray, point: np.ndarray) -> np.ndarray:
        return np.vstack([np.hstack([np.eye(3), -skew(p - point)]) for p in x])

    def _transform(self) -> np.ndarray:
        between = np.flatnonzero(~(self.ends["left"] | self.ends["right"]))
        T = np.zeros((3 * len(self.x), 12 + 3 * len(between)))
        for k, (name, nodes) in enumerate(self.ends.items()):
            rows = np.flatnonzero(np.repeat(nodes, 3))
            T[rows, 6 * k : 6 * k + 6] = self._rigid(self.x[nodes], self.points[name])
        for k, node in enumerate(between):
            T[3 * node : 3 * node + 3, 12 + 3 * k : 15 + 3 * k] = np.eye(3)
        return T

    def reduced(self, A: np.ndarray) -> np.ndarray:
        """Return a full-order matrix on the coordinates with rigid ends."""
        return self.T.T @ A @ self.T

    def _modes(self) -> np.ndarray:
        """Return the elastic modes of the free lattice over its coordinates, M-orthonormal."""
        K, M = self.reduced(self.K), self.reduced(self.M)
        L = np.linalg.cholesky(M)
        inverse = np.linalg.inv(L)
        omega_squared, vectors = np.linalg.eigh(inverse @ K @ inverse.T)
        self.omega_squared = omega_squared[6:]
        return inverse.T @ vectors[:, 6:]

    def tensions_stiffness(self, u: np.ndarray) -> np.ndarray:
        """Return the full-order geometric stiffness for the bar tensions in a displacement."""
        size = len(u)
        A = np.zeros((size, size))
        for (i, j), EA in zip(self.bars, self.rigidity, strict=True):
            row, length = self._elongation((i, j))
            block = EA / length * (row @ u) / length * np.eye(3)
            for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                A[3 * a : 3 * a + 3, 3 * b : 3 * b + 3] += sign * block
        return A

    def _stiffening(self) -> Stiffening:
        """Return the geometric stiffness of unit loads with inertia relief, as `reduce` does."""
        loads = np.zeros((3 * len(self.x), 18))
        coordinates = np.zeros((self.T.shape[1], 18))  # unit wrenches at the ends
        for c, (i, j) in enumerate(SPINS):
            w = np.zeros((3, 3))
            w[i, j] = w[j, i] = 1.0
            spin = w - np.trace(w) * np.eye(3)  # ω×(ω×x) = (ωωᵀ − ω² I) x
            loads[:, c] = -(self.x @ spin.T * self.masses[:, None]).ravel()
        coordinates[:12, 6:] = np.eye(12)
        T, R, M = self.T, self.R, self.M
        rigid = np.linalg.lstsq(T, R, rcond=None)[0]
        resultants = R.T @ loads + rigid.T @ coordinates
        loads = loads - M @ R @ np.linalg.solve(R.T @ M @ R, resultants)
        u = T @ np.linalg.pinv(self.reduced(self.K), rcond=1e-10) @ (T.T @ loads + coordinates)
        forces = (self.K @ u - loads).reshape(-1, 3, 18)
        matrices = []
        for c in range(18):
            A = self.modes.T @ self.reduced(self.tensions_stiffness(u[:, c])) @ self.modes
            for k, (name, nodes) in enumerate(self.ends.items()):
                virial = np.einsum(
                    "pi,pj->ij", forces[nodes, :, c], self.x[nodes] - self.points[name]
                )
                rotation = self.modes[6 * k + 3 : 6 * k + 6]
                A = A + rotation.T @ (virial - np.trace(virial) * np.eye(3)) @ rotation
            matrices.append(0.5 * (A + A.T))
        return Stiffening(np.array(matrices[:6]), np.array(matrices[6:]).reshape(2, 6, *A.shape))

    def body(self, stiffening: bool = False) -> ReducedBody:
        """Return the reduced body with all modes; point "middle" is a particle between the ends."""
        # field 0 is the position, field k the mode k
        fields = np.vstack([self.x.ravel(), (self.T @ self.modes).T]).reshape(-1, len(self.x), 3)
        self.node = int(np.flatnonzero(~(self.ends["left"] | self.ends["right"]))[1])
        return ReducedBody.from_arrays(
            name="lattice",
            total_mass=float(self.masses.sum()),
            first_moments=np.einsum("p,kpa->ka", self.masses, fields),
            second_moments=np.einsum("p,kpa,lpb->klab", self.masses, fields, fields),
            stiffness=np.diag(self.omega_squared),
            mass=np.eye(len(self.omega_squared)),
            interfaces=tuple(
                Interface(
                    name, "rigid", self.points[name], np.eye(3), self.modes[6 * k : 6 * k + 6]
                )
                for k, name in enumerate(self.ends)
            ),
            points=(MaterialPoint("middle", self.x[self.node], fields[1:, self.node]),),
            stiffening=self._stiffening() if stiffening else None,
        )
