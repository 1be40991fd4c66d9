"""A body that another program has reduced already: K and M in coordinates of its interfaces.

The coordinates are six for each interface (displacement of its point and rotation vector, along the
body's axes), then m modal ones.  What such a pair gives:

- exact: all linear dynamics, that is frequencies and the interfaces' dynamic stiffness; mass,
  centre of mass and inertia tensor, from M under the rigid motions, with the points of the
  interfaces; and so all coupling of elastic coordinates with accelerations of the frame (in the
  mean-axis frame there is none);
- lost, for want of the modes' shapes: how centrifugal loads deform the body (the symmetric part of
  ∫ρ x⊗ψ_k), how its inertia tensor changes with the deformation to first order (the same), the
  Coriolis coupling between modes (∫ρ ψ_k×ψ_l); and of ∫ρ ψ_k⊗ψ_l only the trace is known, so
  that spin softening is taken as the same in all directions, two thirds of M;
- lost, for want of the stress: geometric stiffening.

What is lost grows with (Ω/ω₁)², the speed of rotation over the first natural frequency.
`FirstOrderInertiaWarning` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import Interface, Mode, ReducedBody
from dolfinx_mbd.checks import array, instance, names, refuse
from dolfinx_mbd.errors import ModelRangeWarning, warn
from dolfinx_mbd.imports.matrices import (
    MatrixError,
    checked_matrix,
    positions,
    rigid_motions,
    unit_factors,
)
from dolfinx_mbd.imports.modes import mean_axis_modes

__all__ = ["FirstOrderInertiaWarning", "ReducedMatrices", "body_from_reduced"]

Array = NDArray[np.float64]

RIGID_TOLERANCE = 1e-5
"""Size of K R, and of what in RᵀMR is no rigid body's, over that of their terms."""


class FirstOrderInertiaWarning(ModelRangeWarning):
    """A body has inertia to first order only: an already reduced pair of matrices has no more."""


@dataclass(frozen=True, eq=False)
class ReducedMatrices:
    """Reduced matrices of a free body, and where its interfaces are.

    Attributes:
        stiffness: K, shape (6 p + m, 6 p + m); six zero modes.
        mass: M, likewise; of the free body, its rigid motion included.
        points: Of the interfaces, shape (p, 3), m.
        names: Of the interfaces; None: ``interface 1`` ...
        damping: C, likewise; or None.
        axes: Of the interfaces, for joints, shape (p, 3, 3); None: those of the body. K, M and C
            are along the body's axes in any case.
    """

    stiffness: Array
    mass: Array
    points: Array
    names: Sequence[str] | None = None
    damping: Array | None = None
    axes: ArrayLike | None = None

    def __post_init__(self) -> None:
        points = positions("points", self.points)
        count = len(points)
        labels = (
            tuple(f"interface {k + 1}" for k in range(count))
            if self.names is None
            else names("names", self.names)
        )
        if len(labels) != count:
            refuse("names", self.names, f"names of {count} interfaces", MatrixError)
        shape = getattr(self.stiffness, "shape", None) or array("stiffness", self.stiffness).shape
        size = shape[0] if shape else 0
        if size < 6 * count:
            raise MatrixError(
                f"stiffness: expected at least 6 coordinates for each of {count} interfaces, got "
                f"{size}"
            )
        values: dict[str, object] = {"points": points, "names": labels}
        for name in ("stiffness", "mass", "damping"):
            matrix = getattr(self, name)
            if name == "damping" and matrix is None:
                continue
            why = f"6 for each of {count} interfaces and {size - 6 * count} modes"
            values[name] = checked_matrix(name, matrix, size, why).toarray()
        identity = np.tile(np.eye(3), (count, 1, 1))
        axes = identity if self.axes is None else array("axes", self.axes, (count, 3, 3))
        values["axes"] = axes
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def in_si(
        self, *, length: float = 1.0, mass: float = 1.0, time: float = 1.0
    ) -> ReducedMatrices:
        """The same body in SI; modal coordinates stay as they are, number for number.

        Args:
            length: The unit of length in m; for mm 1e-3.
            mass: The unit of mass in kg; for t 1e3.
            time: The unit of time in s.
        """
        length, mass, time = unit_factors(length=length, mass=mass, time=time)
        points = np.asarray(self.points)
        scale = np.ones(len(self.stiffness))
        scale[: 6 * len(points)] = np.tile(np.repeat([length, 1.0], 3), len(points))
        factor = mass * length**2 / np.outer(scale, scale)
        return replace(
            self,
            stiffness=self.stiffness * factor / time**2,
            mass=self.mass * factor,
            points=points * length,
            damping=None if self.damping is None else self.damping * factor / time,
        )


def body_from_reduced(element: ReducedMatrices, *, name: str = "body") -> ReducedBody:
    """The reduced body of a superelement, in its mean-axis frame.

    Args:
        element: In SI.
        name: The body's name.

    Warns:
        FirstOrderInertiaWarning: Always; see the module for what is exact and what is lost.

    Raises:
        MatrixError: The stiffness resists rigid motion, the mass is not positive definite or not
            that of a body under rigid motion, or parts move without stiffness.
    """
    instance("element", element, ReducedMatrices)
    K, M, points = element.stiffness, element.mass, np.asarray(element.points)
    R = _rigid_motions(K, points)
    total, centre, inertia = _rigid_body(M, R)
    count = 6 * len(points)
    squares, T, dependent = mean_axis_modes(K, M, R, np.eye(count, len(K)))
    n = len(squares)
    first, second = np.zeros((n + 1, 3)), np.zeros((n + 1, n + 1, 3, 3))
    first[0] = total * centre
    second[0, 0] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    second[1:, 1:] = np.eye(n)[:, :, None, None] * np.eye(3) / 3
    damping: NDArray = np.zeros((n, n))
    if element.damping is not None:
        damping = T.T @ element.damping @ T
    frequencies = np.sqrt(squares) / (2 * np.pi)
    limit = frequencies[0] if n else np.inf
    text = (
        f"body {name!r} comes from matrices that were reduced already: its linear dynamics and its "
        "rigid mass properties are exact, but deformation by centrifugal loads, Coriolis coupling "
        "of modes and the change of inertia with the deformation are not known, and geometric "
        f"stiffening neither. Use it well below {60 * limit:.3g} rpm, or import the full matrices"
    )
    warn(FirstOrderInertiaWarning(text, quantity="speed", limit=2 * np.pi * limit))
    left_out = [Mode(f"rigid {k + 1}", 0.0, reason="the body frame carries it") for k in range(6)]
    left_out += [
        Mode(f"dependent {k + 1}", 0.0, reason="coordinates depend on others")
        for k in range(dependent)
    ]
    assert element.names is not None
    return ReducedBody(
        name=name,
        total_mass=total,
        first_moments=first,
        second_moments=second,
        mass=np.eye(n),
        stiffness=np.diag(squares),
        damping=damping,
        interfaces=tuple(
            Interface(label, "rigid", point, axes, T[6 * k : 6 * k + 6])
            for k, (label, point, axes) in enumerate(
                zip(element.names, points, np.asarray(element.axes), strict=True)
            )
        ),
        modes=tuple(Mode(f"elastic {7 + k}", float(f)) for k, f in enumerate(frequencies)),
        left_out=tuple(left_out),
        reference="mean axis",
        provenance={
            "source": "matrices that another program has reduced",
            "inertia": "rigid body and linear dynamics exact; centrifugal deformation, Coriolis "
            "coupling and change of inertia unknown",
        },
    )


def _rigid_motions(K: Array, points: Array) -> Array:
    """Coefficients of the rigid motions about the origin, shape (6 p + m, 6).

    Modal coordinates follow the interfaces such that nothing is strained; those of fixed-interface
    modes are zero.
    """
    count = 6 * len(points)
    R = np.zeros((len(K), 6))
    R[:count] = np.vstack([_motion_of_point(point) for point in points])
    if len(K) > count:
        inner = K[count:, count:]
        load = K[count:, :count] @ R[:count]
        try:
            R[count:] = -scipy.linalg.solve(inner, load, assume_a="pos")
        except np.linalg.LinAlgError as error:
            raise MatrixError(
                "the stiffness of the modal coordinates is not positive definite: with all "
                "interfaces held something still moves freely"
            ) from error
    size = np.abs(K) @ np.abs(R)
    ratio = np.max(np.abs(K @ R).max(axis=0) / np.where(size.max(axis=0) > 0, size.max(axis=0), 1))
    if ratio > RIGID_TOLERANCE:
        raise MatrixError(
            f"the stiffness resists rigid motion (K R is not zero, relative size {ratio:.1e}): "
            "export it without supports, six coordinates for each interface in the order of the "
            "points, and the points in the same units"
        )
    return R


def _motion_of_point(point: Array) -> Array:
    motion = np.eye(6)
    motion[:3] = rigid_motions(point[None])
    return motion


def _rigid_body(M: Array, R: Array) -> tuple[float, NDArray, NDArray]:
    """Mass, centre and inertia tensor about the origin.

    Raises:
        MatrixError: If M is not positive definite, or RᵀMR no rigid body's.
    """
    _check_definite(M)
    G = R.T @ M @ R
    total = float(np.trace(G[:3, :3]) / 3)
    first = np.array([G[1, 5] - G[2, 4], G[2, 3] - G[0, 5], G[0, 4] - G[1, 3]]) / 2
    x, y, z = first
    coupling = np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])
    inertia = (G[3:, 3:] + G[3:, 3:].T) / 2
    length = np.sqrt(np.trace(inertia) / total)
    off = np.abs(G[:3, :3] - total * np.eye(3)).max() / total
    off = max(off, np.abs(G[:3, 3:] - coupling).max() / (total * length))
    if off > RIGID_TOLERANCE:
        raise MatrixError(
            "the mass matrix is not that of a body under rigid motion (one mass in all directions, "
            f"one centre): off by {off:.1e}; check order, axes and units of the coordinates and "
            "points"
        )
    centre = first / total
    least = np.linalg.eigvalsh(0.5 * np.trace(inertia) * np.eye(3) - inertia).min()
    if least < -RIGID_TOLERANCE * np.trace(inertia):
        raise MatrixError("the inertia tensor is not that of a body: a moment exceeds the others")
    return total, centre, inertia


def _check_definite(M: Array) -> None:
    """Refuse a mass matrix that is not positive definite, round-off aside."""
    diagonal = np.diag(M)
    good = bool((diagonal > 0).all())
    if good:
        scale = 1 / np.sqrt(diagonal)
        good = bool(np.linalg.eigvalsh(M * np.outer(scale, scale)).min() > -1e-12)
    if not good:
        raise MatrixError("mass: expected a positive definite matrix of the free body")
