"""Rotations of the nodes of a deformed mesh."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.linalg.blocks import multiply

if TYPE_CHECKING:
    from dolfinx_mbd.structures.mesh_bodies.mesh_body import MeshBody

__all__ = ["NodalRotations", "mean_rotation"]


_FLAT = 1e-9  # extent of nodes along a direction, relative to the largest, that counts as zero


class NodalRotations:
    """Rotations of the nodes by a fit to the motion of the nodes of adjacent cells.

    The deformation gradient F of a node minimizes Σ w |x − x̄ − F (X − X̄)|² over these nodes, with
    the magnitudes of the consistent mass matrix as weights w. Its rotation is that of the
    quaternion (1 + tr F, axial vector of F − Fᵀ), exact without strain, in axes that turn with the
    mean of all nodes. The nodes of an interface rotate with its frame. All nodes of a body without
    interfaces have the mean rotation: each correction of a step then keeps the linear momentum.

    Args:
        body: The body.
    """

    def __init__(self, body: MeshBody) -> None:
        forces = body.forces
        self._nodes, self._X = forces.nodes, body.nodes
        self._weights = forces.nodes.matrix_rows(forces.scalar_mass)
        first, columns, values = self._weights.getValuesCSR()
        self._weights.setValuesCSR(first, columns, np.abs(values))
        self._weights.assemble()
        ones = np.ones((len(self._X), 1))
        self._sums = self._product(ones)
        self._means = self._product(self._X) / self._sums
        moments = self._moments(self._X)
        size = np.trace(moments, axis1=1, axis2=2)
        # A plane patch has no extent along its normal
        self._inverse = np.linalg.pinv(moments / size[:, None, None], hermitian=True, rcond=_FLAT)
        self._inverse /= size[:, None, None]
        self._normal = np.eye(3) - np.einsum("nij,njk->nik", moments, self._inverse)
        self._interfaces = [
            np.flatnonzero(np.isin(self._nodes.owned, interface.nodes))
            for interface in body.interface_frames
        ]

    def at(self, u: Array, frames: Array) -> Array:
        """Return the rotations (n, 3, 3) of the n owned nodes.

        Args:
            u: Displacements of all nodes (nodes, 3), m.
            frames: Rotations of the interfaces (frames, 3, 3).
        """
        x = self._X + u
        mean = mean_rotation(self._X, x)
        if not self._interfaces:
            return np.broadcast_to(mean, (len(self._sums), 3, 3))
        F = np.einsum("nij,njk->nik", self._moments(x @ mean), self._inverse) + self._normal
        rotations = np.asarray(mean @ _rotations(F))
        for nodes, R in zip(self._interfaces, frames, strict=False):
            rotations[nodes] = R
        return rotations

    def _moments(self, x: Array) -> Array:
        """Return Σ w (x − x̄) ⊗ (X − X̄) at the owned nodes, (n, 3, 3), for nodes x (nodes, 3)."""
        pairs = (x[:, :, None] * self._X[:, None, :]).reshape(len(x), 9)
        sums = self._product(np.hstack([x, pairs]))
        parts = sums[:, 3:].reshape(-1, 3, 3)
        return np.asarray(parts - sums[:, :3, None] * self._means[:, None, :])

    def _product(self, values: Array) -> Array:
        """Return the weighted sums of values (nodes, k) around the owned nodes, (n, k)."""
        return multiply(self._weights, np.asfortranarray(values))


def mean_rotation(reference: Array, positions: Array) -> Array:
    """Return the rotation (3, 3) that fits the motion of points (nodes, 3) best."""
    X, x = (points - points.mean(axis=0) for points in (reference, positions))
    left, _, right = np.linalg.svd(x.T @ X)
    return np.asarray(left @ np.diag([1.0, 1.0, np.linalg.det(left @ right)]) @ right)


def _rotations(F: Array) -> Array:
    """Return the rotations (nodes, 3, 3) of quaternions with the axial vectors of F − Fᵀ."""
    q = np.column_stack([
        1 + np.trace(F, axis1=1, axis2=2),
        F[:, 2, 1] - F[:, 1, 2], F[:, 0, 2] - F[:, 2, 0], F[:, 1, 0] - F[:, 0, 1],
    ])  # fmt: skip
    w, x, y, z = (q / np.linalg.norm(q, axis=1)[:, None]).T
    rows = [
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ]  # fmt: skip
    return np.stack(rows, axis=1).reshape(-1, 3, 3)
