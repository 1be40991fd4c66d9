"""Averaged interfaces at any rotation: six constraints between a frame and the nodes of a surface.

The frame with position p and rotation R is the rigid motion that is closest in the mean square to
the motion of the facets Γ. With levers D = X − X_k, positions x and the area A of Γ, it obeys

    ∫ (x − p − R D) dA = 0,    ∫ R D × (x − p) dA = 0.

For small motions this is the averaged interface of `reduce`. With x = Σ φᵢ xᵢ, wᵢ = ∫φᵢ dA / A and
mᵢ = ∫φᵢ D dA / (A ℓ), where ℓ is the root mean square of |D|, the constraints in metres are

    Σ wᵢ xᵢ − p − R d = 0,    Σ R mᵢ × (xᵢ − p) = 0,    d = Σ ℓ mᵢ.

Their multipliers μ, ν (N) cause the forces wᵢ μ + ν × R mᵢ at the nodes, and the opposite wrench at
the frame, which has no mass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.interfaces.averaged import InterfaceMoments
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.structures.mesh_bodies.nodal_vectors import NodalVectors

__all__ = ["AveragedInterface", "averaged_interface"]

_AXES = np.eye(3)


@dataclass(frozen=True, eq=False)
class AveragedInterface:
    """Constraints between a frame and the mean motion of nodes.

    R is the rotation of the frame since the reference, and small rotations θ are in its own
    components. The first three constraints hold the position, the last three the rotation.

    Attributes:
        name: Name of the interface.
        point: Reference position X_k of the frame, shape (3,), m.
        axes: Axes of the frame as columns at the reference, shape (3, 3).
        nodes: Numbers of its n nodes.
        levers: Reference positions of the nodes relative to the point, shape (n, 3), m.
        weights: Weights wᵢ of the nodes, without unit, with the sum 1, shape (n,).
        moments: Vectors mᵢ of the nodes, without unit, shape (n, 3).
        offset: Vector d, shape (3,), m.
    """

    name: str
    point: Array
    axes: Array
    nodes: NDArray[np.int64]
    levers: Array
    weights: Array
    moments: Array
    offset: Array

    def gaps(self, position: Array, R: Array, x: Array) -> Array:
        """Return the violations of the constraints for positions x (n, 3) of the nodes, (6,), m."""
        gap = self.weights @ x - position - R @ self.offset
        return np.concatenate([gap, np.cross(self.moments @ R.T, x - position).sum(axis=0)])

    def node_matrix(self, R: Array) -> Array:
        """Return the derivatives of the constraints with respect to the nodes, (n, 3, 6)."""
        G = np.zeros((len(self.nodes), 3, 6))
        G[:, :, :3] = self.weights[:, None, None] * _AXES
        for k in range(3):
            G[:, :, 3 + k] = np.cross(_AXES[k], self.moments @ R.T)
        return G

    def frame_matrix(self, position: Array, R: Array, x: Array) -> Array:
        """Return the derivatives of the constraints with respect to p and θ, shape (6, 6)."""
        G, arms = np.zeros((6, 6)), x - position
        G[:3, :3] = -_AXES
        moment_sum = R @ self.moments.sum(axis=0)
        for k in range(3):
            G[:3, 3 + k] = -R @ np.cross(_AXES[k], self.offset)
            G[3:, k] = -np.cross(moment_sum, _AXES[k])
            G[3:, 3 + k] = np.cross(np.cross(_AXES[k], self.moments) @ R.T, arms).sum(axis=0)
        return G

    def bias(self, R: Array, v: Array, x: Array, speeds: Array, position: Array) -> Array:
        """Return the second time derivatives of the constraints for zero accelerations, (6,).

        Args:
            R: Rotation of the frame.
            v: ṗ and angular velocity in components of the frame, shape (6,).
            x: Positions of the nodes, shape (n, 3).
            speeds: Their velocities, shape (n, 3).
            position: p, shape (3,).
        """
        spin, m = v[3:], self.moments
        m_rate, m_acceleration = np.cross(spin, m), np.cross(spin, np.cross(spin, m))
        rotation = np.cross(m_acceleration @ R.T, x - position)
        rotation += 2 * np.cross(m_rate @ R.T, speeds - v[:3])
        translation = -R @ np.cross(spin, np.cross(spin, self.offset))
        return np.concatenate([translation, rotation.sum(axis=0)])

    def second_derivatives(
        self, position: Array, R: Array, x: Array, forces: Array
    ) -> tuple[Array, Array]:
        """Return the second derivatives of the constraints, times multipliers (6,).

        The results are the derivatives with respect to p and θ of the forces at the nodes,
        (n, 3, 6), and of those at the frame, (6, 6).
        """
        at_nodes, at_frames = np.zeros((len(self.nodes), 3, 6)), np.zeros((6, 6))
        mu, nu = forces[:3], forces[3:]
        nu_moments = np.cross(x - position, nu) @ R
        m, moment_sum = self.moments, self.moments.sum(axis=0)
        for k, e in enumerate(_AXES):
            at_nodes[:, :, 3 + k] = np.cross(nu, np.cross(e, m) @ R.T)
            at_frames[:3, 3 + k] = -np.cross(nu, R @ np.cross(e, moment_sum))
            at_frames[3:, k] = -np.cross(moment_sum, R.T @ np.cross(e, nu))
            at_frames[3:, 3 + k] = np.cross(self.offset, np.cross(e, R.T @ mu))
            at_frames[3:, 3 + k] -= np.cross(m, np.cross(e, nu_moments)).sum(axis=0)
        return at_nodes, at_frames


def averaged_interface(
    space: Any, nodes: NodalVectors, interface: MeshInterface
) -> AveragedInterface:
    """Return the constraints of an averaged interface (collective).

    Args:
        space: Displacement space.
        nodes: Its nodes.
        interface: The interface on the mesh.
    """
    moments = InterfaceMoments(space, interface.facets, interface.point[: space.dofmap.bs])
    raw = nodes.gathered_block(moments.assembled(moments.form))
    numbers = nodes.numbers_of(interface.blocks)
    part = nodes.embedding.components(raw[numbers])
    # The columns are ∫φᵢ e_k and ∫φᵢ e_k × D; in the plane, ∫φᵢ e_x, ∫φᵢ e_y and ∫φᵢ e_z × D. Their
    # components are ∫φᵢ (the weights) and the first moments ∫φᵢ D
    weights: Array = part[:, 0, 0]
    if nodes.embedding.is_plane:
        firsts: Array = np.column_stack([part[:, 1, 2], -part[:, 0, 2], np.zeros(len(part))])
    else:
        firsts = np.column_stack([part[:, 1, 5], part[:, 2, 3], part[:, 0, 4]])
    levers = nodes.positions[numbers] - interface.point
    area = float(weights.sum())
    radius = float(np.sqrt(np.vdot(firsts, levers) / area))
    return AveragedInterface(
        interface.name,
        interface.point,
        interface.axes,
        numbers,
        levers,
        np.asarray(weights / area),
        np.asarray(firsts / (area * radius)),
        firsts.sum(axis=0) / area,
    )
