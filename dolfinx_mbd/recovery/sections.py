"""Normal force, shear forces and moments that one side of a cut exerts on the other.

With a function χ that is 0 on one side of the plane and 1 on the other, and w a rigid motion,

    ∫ σ(u) : ε(χ w)

is the work of the section's forces on w: where ∇χ is not zero lies the cut, and σ ∇χ is its
traction. By the weak form the same number is the work of all forces on the far side, the inertia
included, on χ w: the displacement of a finite element solution fulfils that balance for every χ w
of its space to round-off, however coarse the mesh is, while stress integrated over a plane through
the cells converges as stress does. So χ is taken from the space: a smooth step over a band of two
cells on both sides of the plane. The result is a mean of the section's force over the band, with
weights χ' that are symmetric and whose second moment is zero: exact where the force changes along
the body as a polynomial of degree three, as under gravity or centrifugal load of a prismatic bar.

The form is linear in u: six vectors, assembled once, give the section's forces per elastic
coordinate.
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
from dolfinx_mbd.checks import number, refuse, vector
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import compat
from dolfinx_mbd.fem.assembly import rigid_motions
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.linalg.blocks import gram
from dolfinx_mbd.recovery.field_modes import linear_in
from dolfinx_mbd.recovery.stress import Recovery, recovery_of
from dolfinx_mbd.reduction.result import Reduction
from dolfinx_mbd.reduction.stiffening import WRENCH_INDICES

__all__ = ["SectionForces", "section_forces", "section_modes"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SectionForces:
    """What the side to which the normal points exerts on the other, over nt instants.

    Attributes:
        time: Shape (nt,), s.
        point: To which the moments refer, shape (3,), m.
        axes: Columns are the normal and the two axes of the section, body components, (3, 3).
        force: Body components, shape (nt, 3), N.
        moment: About the point, body components, shape (nt, 3), N m.
    """

    time: Array
    point: Array
    axes: Array
    force: Array
    moment: Array

    @property
    def normal(self) -> Array:
        """Normal force N, tension positive, shape (nt,), N."""
        return self.force @ self.axes[:, 0]

    @property
    def shear(self) -> Array:
        """Shear forces along the two axes of the section, shape (nt, 2), N."""
        return self.force @ self.axes[:, 1:]

    @property
    def torsion(self) -> Array:
        """Moment about the normal, shape (nt,), N m."""
        return self.moment @ self.axes[:, 0]

    @property
    def bending(self) -> Array:
        """Moments about the two axes of the section, shape (nt, 2), N m."""
        return self.moment @ self.axes[:, 1:]


def section_forces(
    source: Reduction | Recovery,
    history: Any,
    point: ArrayLike,
    normal: ArrayLike,
    *,
    axis: ArrayLike | None = None,
    width: float | None = None,
    thickness: float | None = None,
) -> SectionForces:
    """Forces and moments over time in a plane cut through the whole body.

    Args:
        source: A reduction, or a `Recovery` with another stress law.
        history: As in `recover`.
        point: Of the plane, shape (3,), m; the moments are about it. For a rod its centre line.
        normal: Of the plane, shape (3,); its length does not matter.
        axis: Along which the first axis of the section is, as nearly as the plane allows; None: the
            body axis that is farthest from the normal.
        width: Of half the band, m; None: twice the extent of the cut cells along the normal.
        thickness: Of a plane body, m.

    Raises:
        ValueError: The plane misses the body, the body has no stress law, a plane body no
            thickness, or the history does not fit.

    Note: Collective. The band must not reach into an interface: there the forces change along it.
    """
    recovery = recovery_of(source)
    if width is not None:
        number("width", width, positive=True, unit="m")
    if thickness is not None:
        number("thickness", thickness, positive=True, unit="m")
    p, axes = _plane(point, normal, axis)
    time, factors = recovery.motion(history)
    modes = section_modes(recovery, p, axes[:, 0], width=width, thickness=thickness)
    wrench = factors @ modes.T
    return SectionForces(time, p, axes, wrench[:, :3], wrench[:, 3:])


def section_modes(
    source: Reduction | Recovery,
    point: ArrayLike,
    normal: ArrayLike,
    *,
    width: float | None = None,
    thickness: float | None = None,
) -> Array:
    """Force and moment in a plane per elastic coordinate, body components, shape (6, n).

    Args:
        source: As in `section_forces`.
        point: As in `section_forces`.
        normal: As in `section_forces`.
        width: As in `section_forces`.
        thickness: As in `section_forces`.

    Raises:
        ValueError: As in `section_forces`.

    Note: Collective.
    """
    recovery = recovery_of(source)
    p, axes = _plane(point, normal, None)
    space, stress = recovery.space, recovery.stress
    mesh, dim = space.mesh, space.dofmap.bs
    if stress is None:
        raise InputError("section forces need the stress law: Recovery(..., stress=...)")
    if dim == 2 and (thickness is None or not thickness > 0):
        raise InputError(f"a plane body needs its thickness, m; got {thickness!r}")
    linear_in(space, stress, "stress")
    half = _band(mesh, p, axes[:, 0], width)
    x = _positions(space)
    step = _smooth(np.asarray((x - p[:dim]) @ axes[:dim, 0] / half, dtype=float))
    motions = rigid_motions(x, p) * np.repeat(step, dim)[:, None]
    v, w = ufl.TestFunction(space), fem.Function(space)
    sigma = stress(v)
    if dim == 2 and sigma.ufl_shape == (3, 3):
        sigma = ufl.as_matrix([[sigma[i, j] for j in range(2)] for i in range(2)])
    across = fem.Constant(mesh, default_scalar_type(thickness if dim == 2 and thickness else 1.0))
    form = fem.form(across * ufl.inner(sigma, forms.strain(w)) * ufl.dx)
    work = np.zeros((len(motions), motions.shape[1]), order="F")
    for k in range(motions.shape[1]):
        as_function(space, motions[:, k], w)
        b = fem.assemble_vector(form)
        b.scatter_reverse(la.InsertMode.add)
        work[:, k] = b.array[: len(motions)]
    result = np.zeros((6, recovery.num_fields))
    result[WRENCH_INDICES[dim]] = gram(mesh.comm, work, recovery.displacements)
    return result


def _plane(point: ArrayLike, normal: ArrayLike, axis: ArrayLike | None) -> tuple[Array, Array]:
    """The point, and normal and axes of the section as columns."""
    n = _direction("normal", normal)
    longest = _direction("axis", np.eye(3)[np.argmin(np.abs(n))] if axis is None else axis)
    first = longest - (longest @ n) * n
    if not np.linalg.norm(first) > 1e-9:
        raise InputError(
            "the axis is along the normal; give one that lies in the plane",
            argument="axis",
            value=axis,
        )
    first = first / np.linalg.norm(first)
    return np.array(vector("point", point)), np.column_stack([n, first, np.cross(n, first)])


def _direction(argument: str, value: ArrayLike) -> Array:
    """Return a unit vector."""
    direction = vector(argument, value)
    greatest = float(np.abs(direction).max())
    if not greatest > 0:
        refuse(argument, value, "a vector that is not zero")
    direction = direction / greatest
    return np.asarray(direction / np.linalg.norm(direction))


def _positions(space: fem.FunctionSpace) -> Array:
    """x at the owned blocks, shape (blocks, dim)."""
    dim = space.dofmap.bs
    x = fem.Function(space)
    x.interpolate(lambda points: points[:dim])
    return x.x.array[: dim * space.dofmap.index_map.size_local].reshape(-1, dim)


def _smooth(s: Array) -> Array:
    """From 0 at s = −1 to 1 at s = 1; the slope (1 − s²)²(1 − 3s²) 105/64 has no second moment."""
    t = np.clip(s, -1.0, 1.0)
    return 0.5 + 105 / 64 * (t - 5 / 3 * t**3 + 7 / 5 * t**5 - 3 / 7 * t**7)


def _band(mesh: Any, point: Array, normal: Array, width: float | None) -> float:
    """Half the width of the band, and a check that the plane cuts the body."""
    comm = mesh.comm
    s = (mesh.geometry.x - point) @ normal
    owned = mesh.topology.index_map(mesh.topology.dim).size_local
    cells = s[compat.geometry_dofmap(mesh)[:owned]]
    low, high = cells.min(axis=1), cells.max(axis=1)
    ends = (
        comm.allreduce(float(low.min(initial=np.inf)), MPI.MIN),
        comm.allreduce(float(high.max(initial=-np.inf)), MPI.MAX),
    )
    if not ends[0] < 0 < ends[1]:
        raise InputError(
            "the plane does not cut the body, which reaches from "
            f"{ends[0]:.6g} to {ends[1]:.6g} m along the normal from the point"
        )
    if width is None:
        cut = (low <= 0) & (high >= 0)
        return 2 * comm.allreduce(float((high - low)[cut].max(initial=0.0)), MPI.MAX)
    if not 0 < width < np.inf:
        raise InputError(f"width: expected a positive number, m, got {width!r}")
    return float(width)
