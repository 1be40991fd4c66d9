"""Embedding of the mesh of a body in space: volumes, or a plane mesh that moves in a plane.

The mesh of a plane body has two coordinates, and its displacement two components in the axes of a
fixed plane, which the initial position o and orientation Q of the body define:

    x = o + Q (X + u),   X = (X₁, X₂, 0),   u = (u₁, u₂, 0).

Nodal vectors, frames and loads of every body have three components in global axes. Only this file
knows the difference. Forms use the deformation gradient in space (3, 3),

    F = [F₂ 0; 0 s],   F₂ = 1 + ∂u/∂X in the plane (2, 2),

where s is the stretch normal to the plane, which is one for plane strain. In plane stress, S₃₃ = 0
of Hooke's law for large rotations gives E₃₃ = −λ'/(2μ) tr E and s² = 1 + 2 E₃₃, with the strain
E = (F₂ᵀF₂ − 1)/2, and λ' = 2λμ/(λ+2μ) in place of Lamé's constant λ.

The frames of a plane body have six velocities. A stiff spring holds each frame in the plane: the
body carries forces normal to its plane and moments about axes in the plane.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import basix.ufl
import numpy as np
import ufl
from ufl.algorithms import extract_coefficients
from ufl.algorithms.apply_algebra_lowering import apply_algebra_lowering
from ufl.algorithms.apply_derivatives import apply_derivatives
from ufl.algorithms.replace import replace
from ufl.core.expr import Expr

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.kernels.rotations import rotation_matrix
from dolfinx_mbd.structures.mesh_bodies.energies import HOOKE, moduli_of

__all__ = ["Embedding", "energy_of_gradient"]

#: Largest component normal to the plane that counts as round-off, relative to the largest component
#: of a vector, or to the size of the mechanism
_OUT_OF_PLANE = 1e-9
_MISPLACED = 1e-6  # largest distance or speed of a frame out of the plane, relative to the motion


@dataclass(frozen=True, eq=False)
class Embedding:
    """Position of a mesh in space.

    Attributes:
        label: Name of the body for messages.
        model: Its mesh and material.
        origin: Position o of the origin of a plane mesh, shape (3,), m; zero for volumes.
        quaternion: Orientation Q of a plane mesh as a quaternion; (1, 0, 0, 0) for volumes.
        axes: Q as a rotation matrix, shape (3, 3); the third column is the normal of a plane.
    """

    label: str
    model: ElasticModel
    origin: Array
    quaternion: Array
    axes: Array

    @classmethod
    def of(cls, label: str, model: ElasticModel, position: Array, quaternion: Array) -> Embedding:
        """Return the embedding of a body with an initial position and orientation."""
        if model.displacements.dofmap.bs == 3:
            position, quaternion = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
        return cls(label, model, position, quaternion, rotation_matrix(quaternion))

    @property
    def dim(self) -> int:
        """Number of components of the displacement in forms."""
        return int(self.model.displacements.dofmap.bs)

    @property
    def is_plane(self) -> bool:
        """Whether the body moves in a plane."""
        return self.dim == 2

    @property
    def normal(self) -> Array:
        """Normal of the plane, shape (3,)."""
        return np.asarray(self.axes[:, 2])

    # ---- nodal values ---------------------------------------------------------------------------
    def components(self, vectors: Array) -> Array:
        """Return the components of vectors (n, 3) or (n, 3, k) on the mesh, (n, dim) or (.., k)."""
        if not self.is_plane:
            return vectors
        return np.asarray(np.einsum("ia,ni...->na...", self.axes[:, :2], vectors))

    def vectors(self, components: Array) -> Array:
        """Return vectors (n, 3) or (n, 3, k) in space from their components on the mesh."""
        if not self.is_plane:
            return components
        return np.asarray(np.einsum("ia,na...->ni...", self.axes[:, :2], components))

    def mesh_displacements(self, X: Array, u: Array) -> Array:
        """Return displacements (n, dim) on the mesh from those in space, (n, 3)."""
        if not self.is_plane:
            return u
        return self.components(X + u - self.origin) - X[:, :2]

    def displacements(self, X: Array, u: Array) -> Array:
        """Return displacements (n, 3) in space from those on the mesh, (n, dim)."""
        if not self.is_plane:
            return u
        return np.asarray(self.origin + self.vectors(X[:, :2] + u) - X)

    def flat(self, vectors: Array) -> Array:
        """Return vectors (n, 3) or (n, 3, k) without their components normal to the plane."""
        return self.vectors(self.components(vectors)) if self.is_plane else vectors

    # ---- frames and loads -----------------------------------------------------------------------
    @property
    def normal_motions(self) -> Array:
        """Projector (6, 6) on the motions that the plane prevents, in global axes; 0 in space."""
        P = np.zeros((6, 6))
        if self.is_plane:
            P[:3, :3] = np.outer(self.normal, self.normal)
            P[3:, 3:] = np.eye(3) - P[:3, :3]
        return P

    @property
    def frame_motions(self) -> Array:
        """Projector (6, 6) on motions of a frame in the plane, rotations in its own axes."""
        P = np.eye(6)
        if self.is_plane:
            P[:3, :3] -= np.outer(self.normal, self.normal)
            P[3, 3] = P[4, 4] = 0.0
        return P

    def stiffness(self, size: float) -> Array:
        """Return the stiffness (6, 6) of springs, 1 N/m, that hold a frame in the plane.

        Rotations are in the axes of the frame; `size` (m) is the lever of their springs.
        """
        P = np.zeros((6, 6))
        if self.is_plane:
            P[:3, :3] = np.outer(self.normal, self.normal)
            P[3, 3] = P[4, 4] = size**2
        return P

    def departure(self, position: Array, R: Array) -> Array:
        """Return the displacement (3,) of a frame out of the plane, m, and its tilt (3,), rad."""
        tilt = np.cross(R.T @ self.normal, [0.0, 0.0, 1.0])
        return np.concatenate([self.normal * (self.normal @ (position - self.origin)), tilt])

    def check_vector(self, name: str, vector: Array) -> None:
        """Raise an error if a vector (3,), such as gravity, is not in the plane."""
        if self.is_plane and abs(vector @ self.normal) > _OUT_OF_PLANE * np.abs(vector).max():
            raise InputError(
                f"{self.label} moves in its plane with the normal {self.normal}: {name} = {vector} "
                "must be in the plane. Rotate the body with `rotation`, or use a mesh of volumes",
                argument=name,
                value=vector,
            )

    def check_pose(self, position: Array, R: Array, velocity: Array, size: float) -> None:
        """Raise an error if a pose or velocity (6,) of the body frame leaves the plane.

        `size` (m) is the size of the body.
        """
        if not self.is_plane:
            return
        departure = self.departure(position, R) / np.repeat([size, 1.0], 3)
        largest = max(np.abs(velocity[:3]).max(), size * np.abs(velocity[3:]).max(), 1e-300)
        rate = np.array([velocity[:3] @ self.normal, *(size * velocity[3:5])]) / largest
        if max(np.abs(departure).max(), np.abs(rate).max()) > _MISPLACED:
            raise InputError(
                f"{self.label} moves in the plane of its initial `position` and `rotation`, but "
                "the joints place or move it out of this plane; give both so that the joints fit",
                argument="position",
                value=position,
            )

    # ---- forms ----------------------------------------------------------------------------------
    @property
    def depth(self) -> float:
        """Factor of integrals over the mesh: thickness of a plane body, m, otherwise 1."""
        return float(self.model.thickness) if self.is_plane else 1.0  # type: ignore[arg-type]

    def vector(self, v: Any) -> Any:
        """Return a vector on the mesh as UFL with three components in the axes of the mesh."""
        return ufl.as_vector([v[0], v[1], 0.0]) if self.is_plane else v

    def deformation(self, u: Any) -> Expr:
        """Return the deformation gradient F, shape (3, 3)."""
        F = ufl.Identity(self.dim) + ufl.grad(u)
        if not self.is_plane:
            return F
        stretch: Any = 1.0
        if self.model.plane == "stress":
            assert self.model.materials is not None
            shear, lame = moduli_of(self.model.materials, 2)
            stretch = ufl.sqrt(1 - lame / (2 * shear) * (ufl.inner(F, F) - 2))
        return ufl.as_matrix([[F[0, 0], F[0, 1], 0], [F[1, 0], F[1, 1], 0], [0, 0, stretch]])

    def rotation_matrix(self) -> Expr:
        """Return Q as UFL, shape (3, 3)."""
        return ufl.as_matrix(self.axes.tolist())

    def rotated(self, tensor: Expr) -> Expr:
        """Return a tensor (3, 3) in global axes from that in the axes of the mesh."""
        if not self.is_plane:
            return tensor
        Q = self.rotation_matrix()
        return Q * tensor * Q.T

    def density(self, energy: Callable[[Any], Any], kind: Any) -> Callable[[Any], Any]:
        """Return an energy density, of the given kind, as a function of u on the mesh.

        Hooke's law is a function of it already; see `checked_energy`.
        """
        if not self.is_plane or kind == HOOKE:
            return energy
        identity = ufl.Identity(3)
        return lambda u: energy_of_gradient(energy, None)(self.deformation(u) - identity)


def energy_of_gradient(energy: Callable[[Any], Any], u: Any) -> Callable[[Expr], Expr]:
    """Return an energy as a function of the displacement gradient H, shape (3, 3).

    Args:
        energy: Energy density as UFL of a displacement.
        u: Displacement to call it with; None for an abstract displacement in space.

    Raises:
        InputError: The energy is not a function of the gradient of an abstract displacement.
    """
    abstract = u is None
    if abstract:
        element = basix.ufl.element("Lagrange", "tetrahedron", 2, shape=(3,))
        corners = basix.ufl.element("Lagrange", "tetrahedron", 1, shape=(3,))
        u = ufl.Coefficient(ufl.FunctionSpace(ufl.Mesh(corners), element))
    density = energy(u)
    if not isinstance(density, Expr) or density.ufl_shape != ():
        raise InputError(
            f"the energy must be a scalar UFL expression, J/m³; got {density!r}",
            argument="energy",
            value=density,
        )
    lowered = apply_derivatives(apply_algebra_lowering(density))

    def of_gradient(H: Expr) -> Expr:
        """Return the energy with H in place of the displacement gradient."""
        result = replace(lowered, {ufl.grad(u): H})
        if abstract and u in extract_coefficients(result):
            raise InputError(
                "the energy of a plane body must depend on ufl.grad(u) only, not on u",
                argument="energy",
                value=energy,
            )
        return result

    return of_gradient
