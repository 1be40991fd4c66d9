"""Normal force, shear forces and moments that one side of a cut exerts on the other.

Let the function χ be 0 on one side of the plane and 1 on the other, and let w be a rigid motion.
The integral ∫ σ(u) : ε(χ w) is then the work of the section forces on w. The finite element
solution satisfies this balance to round-off for every χ w in its space, whereas the integral of the
stress over a plane converges only as fast as the stress. Therefore χ is a function of the space: a
smooth step over a band of two cells on each side of the plane. The result is a mean over the band;
it is exact if the force along the body is a polynomial of degree three.

A mesh body has the first Piola-Kirchhoff stress P in place of σ, and ∇(χ w) with the
present positions in w. The work is then that of the nodal forces of the stress.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem, la
from mpi4py import MPI
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd import forms
from dolfinx_mbd.checks import number, reject, vector
from dolfinx_mbd.durability.recovery.cell_fields import linear_in
from dolfinx_mbd.durability.recovery.mesh_recovery import MeshRecovery
from dolfinx_mbd.durability.recovery.stress import Recovery, Source, any_recovery_of
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import compat
from dolfinx_mbd.fem.assembly import rigid_motions
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.linalg.blocks import gram
from dolfinx_mbd.reduction.stiffening import WRENCH_INDICES
from dolfinx_mbd.structures.mesh_bodies.nodal_rotations import mean_rotation

__all__ = ["SectionForces", "section_forces", "section_modes"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SectionForces:
    """Forces and moments that the side to which the normal points exerts on the other side.

    Attributes:
        time: Instants, shape (nt,), s.
        point: Reference point of the moments, shape (3,), m.
        axes: Normal and axes of the section as columns, in body components, shape (3, 3). The body
            axes of a mesh body are those of the undeformed mesh, which rotate with the section.
        force: Force in body components, shape (nt, 3), N.
        moment: Moment about the point in body components, shape (nt, 3), N m.
    """

    time: Array
    point: Array
    axes: Array
    force: Array
    moment: Array

    @property
    def normal(self) -> Array:
        """Return the normal force, tension positive, shape (nt,), N."""
        return self.force @ self.axes[:, 0]

    @property
    def shear(self) -> Array:
        """Return the shear forces along the two axes of the section, shape (nt, 2), N."""
        return self.force @ self.axes[:, 1:]

    @property
    def torsion(self) -> Array:
        """Return the moment about the normal, shape (nt,), N m."""
        return self.moment @ self.axes[:, 0]

    @property
    def bending(self) -> Array:
        """Return the moments about the two axes of the section, shape (nt, 2), N m."""
        return self.moment @ self.axes[:, 1:]


def section_forces(
    source: Source,
    history: Any,
    point: ArrayLike,
    normal: ArrayLike,
    *,
    axis: ArrayLike | None = None,
    width: float | None = None,
    thickness: float | None = None,
) -> SectionForces:
    """Return section forces and moments over time in a plane that cuts the whole body.

    Args:
        source: A reduction, a `Recovery` with another stress law, or a `MeshBody`.
        history: See `recover`.
        point: Point of the plane, and reference point of the moments, shape (3,), m. For a rod, use
            a point of its centre line. Plane and point of a mesh body are those of the undeformed
            mesh, and move with the rigid motion that fits the nodes of the band best.
        normal: Normal of the plane, shape (3,), of any length.
        axis: Direction whose projection on the plane is the first axis of the section, shape (3,).
            By default the body axis with the largest angle to the normal.
        width: Half the width of the band, m. The result is a mean over a band of material about
            the plane. By default twice the extent of the cut cells along the normal. The band
            must not reach an interface, because the section forces change there.
        thickness: Thickness of a plane body, m; not needed for a body in space.

    Raises:
        InputError: The plane does not cut the body, the stress law or the thickness is missing, or
            the history does not belong to the body.

    Note: Collective.

    Example:
        >>> section = mbd.durability.section_forces(
        ...     bar, eta, point=(0.1, 0.01, 0.005), normal=(1, 0, 0)
        ... )
        >>> section.normal.shape, section.bending.shape
        ((1,), (1, 2))
    """
    recovery = any_recovery_of(source)
    p, axes = _plane(point, normal, axis)
    if isinstance(recovery, MeshRecovery):
        if thickness is not None:
            reject("thickness", thickness, "None for a body in space")
        return _mesh_section(recovery, history, p, axes, width)
    time, factors = recovery.motion(history)
    wrenches_of_modes = section_modes(recovery, p, axes[:, 0], width=width, thickness=thickness)
    wrench = factors @ wrenches_of_modes.T
    return SectionForces(time, p, axes, wrench[:, :3], wrench[:, 3:])


def _mesh_section(
    recovery: MeshRecovery, history: Any, p: Array, axes: Array, width: float | None
) -> SectionForces:
    """Return the section forces of a mesh body; see `section_forces`."""
    if width is not None:
        number("width", width, positive=True, unit="m")
    motion, forces, X = recovery.motion(history), recovery.body.forces, recovery.body.nodes
    distance = (X - p) @ axes[:, 0] / _half_width(forces.space.mesh, p, axes[:, 0], width)
    # Nodes at the edges of the band count as outside on both sides, in spite of round-off
    step, near = _smooth_step(distance), np.abs(distance) < 1 - 1e-9
    result = np.zeros((len(motion.time), 2, 3))
    for row, u, velocity in zip(result, motion.displacement, motion.velocity, strict=True):
        forces.set_state(u, velocity)
        x = X + u
        # Nodal forces of the stress times χ; the sum over all nodes is the section force
        one_side = step[:, None] * forces.internal()
        R = mean_rotation(X[near], x[near])
        point = x[near].mean(axis=0) + R @ (p - X[near].mean(axis=0))  # point of the deformed body
        moment = np.cross(x - point, one_side).sum(axis=0)
        row[:] = np.stack([one_side.sum(axis=0), moment]) @ R
    return SectionForces(motion.time, p, axes, result[:, 0], result[:, 1])


def section_modes(
    recovery: Recovery,
    point: ArrayLike,
    normal: ArrayLike,
    *,
    width: float | None = None,
    thickness: float | None = None,
) -> Array:
    """Return the section force and moment of each mode, shape (6, m); see `section_forces`."""
    if width is not None:
        number("width", width, positive=True, unit="m")
    if thickness is not None:
        number("thickness", thickness, positive=True, unit="m")
    p, axes = _plane(point, normal, None)
    space, stress = recovery.space, recovery.stress
    mesh, dim = space.mesh, space.dofmap.bs
    if stress is None:
        raise InputError(
            "section forces need the stress law: Recovery(..., stress=...)", argument="stress"
        )
    if dim == 2 and thickness is None:
        reject("thickness", thickness, "a positive number in m for a plane body")
    linear_in(space, stress, "stress")
    x = recovery.reduction.positions
    distance = (x - p[:dim]) @ axes[:dim, 0]
    step = _smooth_step(distance / _half_width(mesh, p, axes[:, 0], width))
    motions = rigid_motions(x, p) * np.repeat(step, dim)[:, None]
    v, w = ufl.TestFunction(space), fem.Function(space)
    sigma = stress(v)
    if dim == 2 and sigma.ufl_shape == (3, 3):
        sigma = ufl.as_matrix([[sigma[i, j] for j in range(2)] for i in range(2)])
    depth = fem.Constant(mesh, default_scalar_type(thickness if dim == 2 else 1.0))
    form = compiled_form(depth * ufl.inner(sigma, forms.strain(w)) * ufl.dx)
    work = np.zeros((len(motions), motions.shape[1]), order="F")
    for k in range(motions.shape[1]):
        as_function(space, motions[:, k], w)
        b = fem.assemble_vector(form)
        b.scatter_reverse(la.InsertMode.add)
        work[:, k] = b.array[: len(motions)]
    result = np.zeros((6, recovery.displacements.shape[1]))
    result[WRENCH_INDICES[dim]] = gram(mesh.comm, work, recovery.displacements)
    return result


def _plane(point: ArrayLike, normal: ArrayLike, axis: ArrayLike | None) -> tuple[Array, Array]:
    """Return the point, and a matrix with the normal and the axes of the section as columns."""
    n = _direction("normal", normal)
    first = _direction("axis", np.eye(3)[np.argmin(np.abs(n))] if axis is None else axis)
    first = first - (first @ n) * n
    if not np.linalg.norm(first) > 1e-9:
        reject("axis", axis, "a direction that is not along the normal")
    first = first / np.linalg.norm(first)
    return np.array(vector("point", point)), np.column_stack([n, first, np.cross(n, first)])


def _direction(argument: str, value: ArrayLike) -> Array:
    """Return a unit vector."""
    direction = vector(argument, value)
    greatest = float(np.abs(direction).max())
    if not greatest > 0:
        reject(argument, value, "a vector that is not zero")
    direction = direction / greatest
    return np.asarray(direction / np.linalg.norm(direction))


def _smooth_step(s: NDArray[np.floating[Any]]) -> Array:
    """Return a step from 0 at s = −1 to 1 at s = 1.

    The second moment of the slope 105/64 (1 − s²)² (1 − 3 s²) is zero, so that the mean over the
    band is exact for polynomials of degree three.
    """
    t = np.clip(s, -1.0, 1.0)
    return 0.5 + 105 / 64 * (t - 5 / 3 * t**3 + 7 / 5 * t**5 - 3 / 7 * t**7)


def _half_width(mesh: Any, point: Array, normal: Array, width: float | None) -> float:
    """Return half the width of the band; raise an error if the plane does not cut the body."""
    comm = mesh.comm
    distances = (mesh.geometry.x - point) @ normal
    owned = mesh.topology.index_map(mesh.topology.dim).size_local
    distances_in_cells = distances[compat.geometry_dofmap(mesh)[:owned]]
    low, high = distances_in_cells.min(axis=1), distances_in_cells.max(axis=1)
    start = comm.allreduce(float(low.min(initial=np.inf)), MPI.MIN)
    end = comm.allreduce(float(high.max(initial=-np.inf)), MPI.MAX)
    if not start < 0 < end:
        raise InputError(
            f"the plane does not cut the body, which extends from {start:.6g} to {end:.6g} m along "
            "the normal from the point",
            argument="point",
            value=point,
        )
    if width is not None:
        return float(width)
    cut = (low <= 0) & (high >= 0)
    return 2 * comm.allreduce(float((high - low)[cut].max(initial=0.0)), MPI.MAX)
