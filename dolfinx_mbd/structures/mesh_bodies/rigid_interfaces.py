"""Rigid interfaces: groups of nodes that follow a frame, at any rotation of the frame.

The nodes with the reference positions X of an interface at X_k have the positions

    x = p + R (X − X_k)

where p and R are position and rotation of the frame. The velocities of a frame are ṗ in global
components and its angular velocity ω in its own components, so that ẋ = T (ṗ, ω) with
T = [I, −R D̂] and D = X − X_k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.kernels.rotations import skew

__all__ = ["RigidInterface", "magnitude"]


def magnitude(levers: Array, forces: Array) -> Array:
    """Return the sums of the magnitudes of forces (n, 3) at levers and of their moments, (6,)."""
    sizes = np.linalg.norm(forces, axis=1)
    arms = np.linalg.norm(levers, axis=1)
    return np.repeat([sizes.sum(), arms @ sizes], 3)


@dataclass(frozen=True, eq=False)
class RigidInterface:
    """Nodes that move with the frame of an interface.

    Attributes:
        name: Name of the interface.
        point: Reference position X_k of the frame, shape (3,), m.
        axes: Axes of the frame as columns at the reference, shape (3, 3).
        nodes: Numbers of its nodes.
        levers: D, reference positions of the nodes relative to the point, shape (n, 3), m.
    """

    name: str
    point: Array
    axes: Array
    nodes: NDArray[np.int64]
    levers: Array

    def positions(self, position: Array, R: Array) -> Array:
        """Return the positions of the nodes, shape (n, 3), m."""
        return np.asarray(position + self.levers @ R.T)

    def velocities(self, R: Array, v: Array) -> Array:
        """Return the velocities of the nodes for velocities v (6,) of the frame, (n, 3)."""
        return np.asarray(v[:3] + self.levers @ (R @ skew(v[3:])).T)

    def accelerations(self, R: Array, v: Array, a: Array) -> Array:
        """Return the accelerations of the nodes, shape (n, 3)."""
        spin = skew(v[3:])
        return np.asarray(a[:3] + self.levers @ (R @ (skew(a[3:]) + spin @ spin)).T)

    def resultant(self, R: Array, forces: Array) -> Array:
        """Return TᵀF for forces (n, 3) at the nodes: force and moment in components of R, (6,)."""
        products = self.levers.T @ forces @ R  # Σ D ⊗ Rᵀf
        moments = products - products.T
        return np.array([*forces.sum(axis=0), moments[1, 2], moments[2, 0], moments[0, 1]])

    def matrix(self, R: Array) -> Array:
        """Return T, shape (n, 3, 6)."""
        T = np.zeros((len(self.nodes), 3, 6))
        T[:, :, :3] = np.eye(3)
        for k in range(3):
            T[:, :, 3 + k] = np.cross(np.eye(3)[k], self.levers) @ R.T
        return T

    def lever_stiffness(self, R: Array, forces: Array) -> Array:
        """Return the derivative of the moment of constant forces (n, 3), shape (3, 3).

        A small rotation θ of the frame, in its own components, changes the moment D × Rᵀf by
        D × (Rᵀf × θ) = D̂ (Rᵀf)^ θ.
        """
        local = forces @ R
        products = self.levers.T @ local  # Σ D ⊗ Rᵀf
        return np.asarray(products.T - np.trace(products) * np.eye(3))
