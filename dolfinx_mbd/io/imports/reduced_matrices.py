"""Import of reduced matrices from another program, in coordinates of interfaces and modes.

The matrices have six coordinates for each interface (displacement of its point and rotation vector,
along the axes of the body), then m modal coordinates. The quantities of the body are:

- exact: linear dynamics (frequencies, dynamic stiffness of the interfaces); mass, centre of mass
  and inertia tensor; the coupling of elastic coordinates with accelerations of the frame;
- unknown without the shapes of the modes: the deformation by centrifugal loads and the first-order
  change of the inertia tensor (symmetric part of ∫ρ x⊗ψ_k), and the Coriolis coupling between modes
  (∫ρ ψ_k×ψ_l). Only the trace of ∫ρ ψ_k⊗ψ_l is known; spin softening is approximated by ⅔ Ω² M for
  every axis of rotation;
- unknown without the stress: geometric stiffening.

The error grows with (Ω/ω₁)², the squared ratio of the speed of rotation to the first natural
frequency. The warning `FirstOrderInertiaWarning` states this frequency.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.body import Interface, Mode, ReducedBody
from dolfinx_mbd.checks import array, instance, names, reject
from dolfinx_mbd.errors import ModelRangeWarning, warn
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.io.imports.full_matrices import (
    MatrixError,
    check_free,
    checked_matrices,
    positions,
    rigid_coefficients,
    unit_factors,
)

DEPENDENT_TOLERANCE = 1e-10
"""Coordinates are dependent if an eigenvalue of M, scaled to a unit diagonal, is smaller."""

ROUND_OFF = 1e-12
"""Eigenvalues count as zero if their ratio to the largest one is smaller."""

RIGID_TOLERANCE = 1e-5
"""Largest permitted relative size of K R and of the error of RᵀMR, for rigid motions R.

K R must be zero, and RᵀMR must be the mass matrix of a rigid body.
"""


class FirstOrderInertiaWarning(ModelRangeWarning):
    """Warning that the change of a body's inertia with its deformation is unknown."""


@dataclass(frozen=True, eq=False)
class ReducedMatrices:
    """Reduced matrices of a free body, and the positions of its p interfaces.

    Attributes:
        stiffness: K, with six zero eigenvalues, shape (6 p + m, 6 p + m).
        mass: M of the free body, including rigid motion, of the same shape.
        points: Points of the interfaces, m, shape (p, 3).
        names: Names of the interfaces; by default `interface 1` ...
        damping: Damping matrix of the same shape; by default no damping.
        axes: Axes of the interfaces for joints, shape (p, 3, 3); by default the axes of the body.
            The components in K, M and C are always along the axes of the body.

    Raises:
        MatrixError: Shapes do not match, or a matrix is not real, finite and symmetric.

    Example:
        >>> other = superelement(body)  # in place of another program
        >>> matrices = ReducedMatrices(other.stiffness, other.mass, other.points, other.names)
    """

    stiffness: Array
    mass: Array
    points: Array
    names: Sequence[str] | None = None
    damping: Array | None = None
    axes: ArrayLike | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        points = positions("points", self.points)
        count = len(points)
        labels = tuple(f"interface {k + 1}" for k in range(count))
        if self.names is not None and len(labels := names("names", self.names)) != count:
            reject("names", self.names, f"names of {count} interfaces", MatrixError)
        shape = getattr(self.stiffness, "shape", None) or array("stiffness", self.stiffness).shape
        size = shape[0] if shape else 0
        if size < 6 * count:
            expected = f"a matrix with at least 6 coordinates for each of {count} interfaces"
            reject("stiffness", self.stiffness, expected, MatrixError)
        reason = f"6 for each of {count} interfaces and {size - 6 * count} modes"
        matrices = checked_matrices(self, size, reason)
        axes = np.tile(np.eye(3), (count, 1, 1)) if self.axes is None else self.axes
        values: dict[str, object] = {name: A.toarray() for name, A in matrices.items()}
        values |= {"axes": array("axes", axes, (count, 3, 3)), "points": points, "names": labels}
        assign(self, **values)

    def in_si(
        self, *, length: float = 1.0, mass: float = 1.0, time: float = 1.0
    ) -> ReducedMatrices:
        """Return the same body in SI units; see `FullMatrices.in_si`.

        The values of the modal coordinates do not change.
        """
        length, mass, time = unit_factors(length=length, mass=mass, time=time)
        points = np.asarray(self.points)
        scale = np.ones(len(self.stiffness))
        scale[: 6 * len(points)] = np.tile(np.repeat([length, 1.0], 3), len(points))
        factor = mass * length**2 / np.outer(scale, scale)
        K, M = self.stiffness * factor / time**2, self.mass * factor
        C = None if self.damping is None else self.damping * factor / time
        return replace(self, stiffness=K, mass=M, points=points * length, damping=C)


def body_from_reduced(element: ReducedMatrices, *, name: str = "body") -> ReducedBody:
    """Return the reduced body of a superelement, in its mean-axis frame.

    Args:
        element: The matrices, in SI units.
        name: Name of the body.

    Warns:
        FirstOrderInertiaWarning: Always; the module describes the missing terms.

    Raises:
        MatrixError: The stiffness resists rigid motions, the mass matrix is not positive definite
            or is not the mass matrix of a rigid body for rigid motions, or parts are not connected.

    Example:
        >>> other = superelement(body)
        >>> matrices = ReducedMatrices(other.stiffness, other.mass, other.points, other.names)
        >>> copy = body_from_reduced(matrices)
        >>> np.allclose(copy.frequencies, body.frequencies)
        True
    """
    instance("element", element, ReducedMatrices)
    K, M, points = element.stiffness, element.mass, np.asarray(element.points)
    R = _rigid_motions(K, points)
    total, centre, inertia = _rigid_body(M, R)
    count = 6 * len(points)
    modes = mean_axis_modes(K, M, R, np.eye(count, len(K)))
    n = len(modes.squares)
    first, second = np.zeros((n + 1, 3)), np.zeros((n + 1, n + 1, 3, 3))
    first[0] = total * centre
    second[0, 0] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    # Of these moments only the trace δ_kl, the modal mass, is known
    second[1:, 1:] = np.eye(n)[:, :, None, None] * np.eye(3) / 3
    limit = modes.frequencies[0] if n else np.inf
    text = (
        f"body {name!r} is based on reduced matrices: linear dynamics and rigid mass properties "
        "are exact; deformation by centrifugal loads, Coriolis coupling of modes, the change of "
        "inertia with the deformation and geometric stiffening are unknown. Use it well below "
        f"{60 * limit:.3g} rpm, or import the full matrices"
    )
    warn(FirstOrderInertiaWarning(text, quantity="speed", limit=2 * np.pi * limit))
    assert element.names is not None
    parts = zip(element.names, points, np.asarray(element.axes), strict=True)
    return modes.body(
        name,
        [(label, "rigid", point, axes) for label, point, axes in parts],
        element.damping,
        total_mass=total,
        first_moments=first,
        second_moments=second,
        provenance={
            "source": "matrices that another program has reduced",
            "inertia": "rigid body and linear dynamics exact; centrifugal deformation, Coriolis "
            "coupling and change of inertia unknown",
        },
    )


def _rigid_motions(K: Array, points: Array) -> Array:
    """Return the coefficients of the rigid motions about the origin, shape (6 p + m, 6).

    The modal coordinates make the strain zero; they are zero for fixed-interface modes.
    """
    count = 6 * len(points)
    R = np.zeros((len(K), 6))
    R[:count] = rigid_coefficients(points)
    if len(K) > count:
        inner = K[count:, count:]
        load = K[count:, :count] @ R[:count]
        try:
            R[count:] = -scipy.linalg.solve(inner, load, assume_a="pos")
        except np.linalg.LinAlgError as error:
            raise MatrixError(
                "the stiffness of the modal coordinates is not positive definite: a part of the "
                "body can move freely with fixed interfaces",
                argument="stiffness",
            ) from error
    size = (np.abs(K) @ np.abs(R)).max(axis=0)
    check_free(
        float(np.max(np.abs(K @ R).max(axis=0) / np.where(size > 0, size, 1))),
        RIGID_TOLERANCE,
        "with six coordinates for each interface in the order of the points, and with the points "
        "in the same units",
    )
    return R


def _rigid_body(M: Array, R: Array) -> tuple[float, NDArray, NDArray]:
    """Return the mass, centre of mass and inertia tensor about the origin."""
    diagonal = np.diag(M)
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    least_eigenvalue = np.linalg.eigvalsh(M * np.outer(scale, scale))[0]
    if not (diagonal > 0).all() or not least_eigenvalue > -ROUND_OFF:
        reject("mass", M, "a positive definite matrix of the free body", MatrixError)
    G = R.T @ M @ R
    total = float(np.trace(G[:3, :3]) / 3)
    first = np.array([G[1, 5] - G[2, 4], G[2, 3] - G[0, 5], G[0, 4] - G[1, 3]]) / 2
    coupling = -np.cross(np.eye(3), first)
    inertia = (G[3:, 3:] + G[3:, 3:].T) / 2
    length = np.sqrt(np.trace(inertia) / total)
    error = np.abs(G[:3, :3] - total * np.eye(3)).max() / total
    error = max(error, np.abs(G[:3, 3:] - coupling).max() / (total * length))
    if error > RIGID_TOLERANCE:
        raise MatrixError(
            "the mass matrix for rigid motions is not the mass matrix of a rigid body: mass and "
            f"centre differ between directions (relative error {error:.1e}); check order, axes "
            "and units of the coordinates and the points",
            argument="mass",
        )
    centre = first / total
    least = np.linalg.eigvalsh(0.5 * np.trace(inertia) * np.eye(3) - inertia).min()
    if least < -RIGID_TOLERANCE * np.trace(inertia):
        raise MatrixError(
            "the inertia tensor is impossible: one principal moment exceeds the sum of the others",
            argument="mass",
        )
    return total, centre, inertia


@dataclass(frozen=True, eq=False)
class MeanAxisModes:
    """Modes that are orthogonal to the rigid motions, with unit modal masses."""

    squares: Array  # ω² of each mode, rad²/s², shape (n,)
    coefficients: Array  # the modes in the c coordinates of the matrices, shape (c, n)
    dependent: int  # number of linearly dependent columns of the basis

    @property
    def frequencies(self) -> Array:
        """Natural frequencies, Hz."""
        return np.sqrt(self.squares) / (2 * np.pi)

    def body(
        self,
        name: str,
        interfaces: Iterable[tuple[str, str, Array, Array]],
        damping: Array | None,
        **parts: Any,
    ) -> ReducedBody:
        """Return the reduced body; `parts` are further attributes, such as the mass properties.

        `interfaces` contains the name, kind, point and axes of each interface. The first
        coordinates of K, M and `damping` (c, c) are the six motions of each interface in this
        order.
        """
        T, n = self.coefficients, len(self.squares)
        C = np.zeros((n, n)) if damping is None else T.T @ damping @ T
        left_out = [Mode(f"rigid {k}", 0.0, reason="motion of the body frame") for k in range(1, 7)]
        reason = "linearly dependent on other coordinates"
        left_out += [Mode(f"dependent {k + 1}", 0.0, reason=reason) for k in range(self.dependent)]
        parts["interfaces"] = tuple(
            Interface(*interface, T[6 * k : 6 * k + 6]) for k, interface in enumerate(interfaces)
        )
        return ReducedBody(
            name=name,
            mass=np.eye(n),
            stiffness=np.diag(self.squares),
            damping=(C + C.T) / 2,
            modes=tuple(Mode(f"elastic {k + 1}", float(f)) for k, f in enumerate(self.frequencies)),
            left_out=tuple(left_out),
            reference="mean axis",
            **parts,
        )


def mean_axis_modes(K: Array, M: Array, R: Array, motion: Array) -> MeanAxisModes:
    """Return the modes of K and M (c, c) that are orthogonal to the rigid motions R (c, 6).

    The largest component of `motion` @ mode is positive; `motion` has the shape (any, c).
    """
    scale = 1 / np.sqrt(np.diag(M))
    Ks, Ms = K * np.outer(scale, scale), M * np.outer(scale, scale)
    sizes, V = np.linalg.eigh((Ms + Ms.T) / 2)
    V = V[:, sizes > DEPENDENT_TOLERANCE]
    # Z is a basis of the coordinates that are orthogonal to R with respect to M
    B = V.T @ Ms @ (R / scale[:, None])
    Q, _ = np.linalg.qr(B / np.linalg.norm(B, axis=0), mode="complete")
    Z = V @ Q[:, R.shape[1] :]
    Kz, Mz = Z.T @ Ks @ Z, Z.T @ Ms @ Z
    squares, Y = scipy.linalg.eigh((Kz + Kz.T) / 2, (Mz + Mz.T) / 2)
    count = int(np.sum(squares < ROUND_OFF * squares.max(initial=0.0)))
    if count:
        raise MatrixError(
            f"{count} modes without stiffness remain after the rigid motions: the body consists "
            "of parts that are not connected or are hinged",
            argument="stiffness",
        )
    T = scale[:, None] * (Z @ Y)
    rows = motion @ T
    if rows.size:
        largest = rows[np.abs(rows).argmax(axis=0), np.arange(T.shape[1])]
        T = T * np.where(largest < 0, -1.0, 1.0)
    return MeanAxisModes(squares, T, int(np.sum(sizes <= DEPENDENT_TOLERANCE)))
