"""Multipliers of the averaged interfaces of a body, condensed together with its free nodes.

With the derivatives G of the constraints g with respect to the nodes and a solver for A, the system

    [A  G] [u]   [f]
    [Gᵀ 0] [μ] = [h]

has the solution μ = H⁻¹(Gᵀ A⁻¹f − h), u = A⁻¹f − W μ, with W = A⁻¹G and H = GᵀW.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.structures.mesh_bodies.averaged_interfaces import AveragedInterface

__all__ = ["Border", "Constraints", "Motion", "scaled"]


class Motion(NamedTuple):
    """Motion of the frames and nodes of a body."""

    frames: Array  # positions and quaternions (frames, 7)
    rotations: Array  # rotation matrices (frames, 3, 3)
    positions: Array  # positions of the nodes (nodes, 3)


class Constraints:
    """Constraints of the averaged interfaces of a body; m is their number.

    Args:
        interfaces: Averaged interfaces.
        first: Number of frames before theirs.
        num_nodes: Number of nodes of the body.
        idle: Projector (6, 6) on constraints of an interface without effect; see `Embedding`.
    """

    def __init__(
        self, interfaces: Sequence[AveragedInterface], first: int, num_nodes: int, idle: Array
    ) -> None:
        self._active: Array = np.eye(6) - idle
        # The same projector for the constraints of all interfaces, (m, m)
        self.idle: Array = np.asarray(np.kron(np.eye(len(interfaces)), idle), dtype=float)
        # Number, interface, rows of its constraints and columns of its frame
        self._parts = [
            (k, interface, slice(6 * k, 6 * k + 6), slice(6 * (first + k), 6 * (first + k) + 6))
            for k, interface in enumerate(interfaces)
        ]
        self._first, self._num_nodes = first, num_nodes
        self.size = 6 * len(interfaces)
        self._columns = 6 * (first + len(interfaces))

    def gaps(self, at: Motion) -> Array:
        """Return the violations of the constraints, shape (m,), m."""
        out = np.zeros(self.size)
        for k, interface, rows, _ in self._parts:
            f = self._first + k
            gaps = interface.gaps(at.frames[f, :3], at.rotations[f], at.positions[interface.nodes])
            out[rows] = self._active @ gaps
        return out

    def rates(self, at: Motion, v: Array, a: Array, speeds: Array, accelerations: Array) -> Array:
        """Return the second time derivatives of the constraints, shape (m,).

        Args:
            at: Motion of the body.
            v: Velocities of the frames, shape (6 frames,).
            a: Their rates, shape (6 frames,).
            speeds: Velocities of the nodes, shape (nodes, 3).
            accelerations: Their accelerations, shape (nodes, 3).
        """
        if not self.size:
            return np.zeros(0)
        out = np.einsum("nim,ni->m", self.node_matrix(at), accelerations)
        out += self.frame_matrix(at) @ a
        for k, interface, rows, columns in self._parts:
            position, R = at.frames[self._first + k, :3], at.rotations[self._first + k]
            x = at.positions[interface.nodes]
            out[rows] += self._active @ interface.bias(
                R, v[columns], x, speeds[interface.nodes], position
            )
        return out

    def node_matrix(self, at: Motion) -> Array:
        """Return G, shape (nodes, 3, m)."""
        G = np.zeros((self._num_nodes, 3, self.size))
        for k, interface, rows, _ in self._parts:
            G[interface.nodes, :, rows] = (
                interface.node_matrix(at.rotations[self._first + k]) @ self._active
            )
        return G

    def frame_matrix(self, at: Motion) -> Array:
        """Return the derivatives of the constraints with respect to the frames, (m, 6 frames)."""
        out = np.zeros((self.size, self._columns))
        for k, interface, rows, columns in self._parts:
            f = self._first + k
            x = at.positions[interface.nodes]
            matrix = interface.frame_matrix(at.frames[f, :3], at.rotations[f], x)
            out[rows, columns] = self._active @ matrix
        return out

    def forces(self, at: Motion, multipliers: Array) -> Array:
        """Return G μ, the forces at the nodes, shape (nodes, 3), N."""
        out = np.zeros((self._num_nodes, 3))
        for k, interface, rows, _ in self._parts:
            out[interface.nodes] += (
                interface.node_matrix(at.rotations[self._first + k]) @ multipliers[rows]
            )
        return out

    def second_derivatives(self, at: Motion, multipliers: Array) -> tuple[Array, Array]:
        """Return derivatives with respect to the frames of the forces of constant multipliers.

        The forces at the nodes have the derivatives (nodes, 3, 6 frames), those at the frames
        (6 frames, 6 frames).
        """
        at_nodes = np.zeros((self._num_nodes, 3, self._columns))
        at_frames = np.zeros((self._columns, self._columns))
        for k, interface, rows, columns in self._parts:
            f = self._first + k
            motion = at.frames[f, :3], at.rotations[f], at.positions[interface.nodes]
            at_nodes[interface.nodes, :, columns], at_frames[columns, columns] = (
                interface.second_derivatives(*motion, multipliers[rows])
            )
        return at_nodes, at_frames


def scaled(idle: Array, products: Array) -> Array:
    """Return the projector `idle` (m, m), in the size of the compliances GᵀW, `products` (m, m).

    It replaces the compliances of constraints without effect, which are zero.
    """
    size = float(np.trace(products)) if idle.any() else 0.0
    return size / max(len(idle), 1) * idle


class Border:
    """Algebra of the bordered matrix, for all nodes or for those of each rank.

    Args:
        G: Derivatives of the constraints, shape (nodes, 3, m).
        W: A⁻¹G, shape (nodes, 3, m).
        total: Sum of an array over the ranks; by default this rank has all nodes.

    Attributes:
        H: GᵀW at first, shape (m, m). If the second row of the system is Gᵀu + D μ = h, the caller
            subtracts D.
    """

    def __init__(self, G: Array, W: Array, total: Callable[[Array], Array] = np.asarray) -> None:
        self.G, self.W, self._total = G, W, total
        self.H = self.products(W)

    def products(self, u: Array) -> Array:
        """Return Gᵀu for (nodes, 3) or (nodes, 3, s), shape (m,) or (m, s)."""
        return self._total(np.einsum("nim,ni...->m...", self.G, u))

    def multipliers(self, u: Array, gaps: Array) -> Array:
        """Return μ for u = A⁻¹f, (nodes, 3) or (nodes, 3, s), and h, (m,) or (m, s)."""
        return np.asarray(np.linalg.solve(self.H, self.products(u) - gaps))

    def correction(self, multipliers: Array) -> Array:
        """Return W μ, the part of u that multipliers (m,) or (m, s) cause."""
        return np.asarray(np.tensordot(self.W, multipliers, axes=(2, 0)))
