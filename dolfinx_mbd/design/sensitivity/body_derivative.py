"""`BodyDerivative`: the derivative of a reduced body with respect to one parameter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import LoadPattern, ReducedBody, StrainGauge
from dolfinx_mbd.body.multiple import groups_of
from dolfinx_mbd.body.parts import EffectiveMasses
from dolfinx_mbd.body.tree import map_arrays, with_values
from dolfinx_mbd.fem.assembly import point_motion
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.columns import ELASTIC, OMEGA, ORIGIN, RIGID
from dolfinx_mbd.reduction.stiffening import WRENCH_INDICES

SAME = 1e-6  # relative difference of two computations of the same frequency


@dataclass(frozen=True, eq=False)
class BodyDerivative:
    """Derivative of a reduced body with respect to one parameter, per unit of the parameter.

    The n elastic coordinates are those of the body at the base point. When the parameter changes,
    the modal mass matrix remains the unit matrix, and the modes rotate as little as possible within
    their span. The derivative of the stiffness matrix is therefore full, and modes may cross.

    Attributes:
        arrays: Derivatives of all arrays and numbers of the body, in the structure of a body. The
            texts are those of the body. A part that is not differentiated is None.
        centre: Derivative of the centre of mass, shape (3,).
        central_inertia: Derivative of the inertia tensor about the centre of mass, shape (3, 3).
        limits: Steps below and above zero at which a cell of the mesh degenerates;
            infinite unless the parameter is a shape.
        second_order: Largest term of second order in a modal stiffness that follows from first
            derivatives, relative to that stiffness, per square of the unit of the parameter.

    A damping that was given as a matrix is constant. The frequencies of a multiple frequency have
    the derivatives of its branches in ascending order. The centre of a strain gauge moves with the
    body; the direction of its first grid does not turn, except with the surface. The effective
    masses are None if the body does not contain all fixed-interface modes; of modes with a multiple
    frequency, only the sums of the derivatives of the shares are meaningful.

    Example:
        >>> derivative = mbd.sensitivities(bar, [mbd.Parameter("rho", "density")])["rho"]
        >>> round(derivative.total_mass / bar.body.total_mass * 7850.0, 9)
        1.0
    """

    arrays: ReducedBody
    centre: Array
    central_inertia: Array
    limits: tuple[float, float]
    second_order: float

    __repr__ = short_repr

    @property
    def total_mass(self) -> float:
        """Derivative of the mass."""
        return self.arrays.total_mass

    @property
    def first_moments(self) -> Array:
        """Derivative of S, shape (n+1, 3)."""
        return self.arrays.first_moments

    @property
    def second_moments(self) -> Array:
        """Derivative of H, shape (n+1, n+1, 3, 3)."""
        return self.arrays.second_moments

    @property
    def inertia(self) -> Array:
        """Derivative of the inertia tensor about the origin of the frame, shape (3, 3)."""
        return self.arrays.inertia

    @property
    def stiffness(self) -> Array:
        """Derivative of the modal stiffness matrix, shape (n, n)."""
        return self.arrays.stiffness

    @property
    def damping(self) -> Array:
        """Derivative of the modal damping matrix, shape (n, n)."""
        return self.arrays.damping

    @property
    def frequencies(self) -> Array:
        """Derivatives of the frequencies, shape (n,), Hz."""
        return self.arrays.frequencies

    @property
    def interface_points(self) -> Array:
        """Derivatives of the points of the interfaces, shape (interfaces, 3)."""
        return np.array([i.point for i in self.arrays.interfaces]).reshape(-1, 3)

    @property
    def interface_motions(self) -> Array:
        """Derivatives of `Interface.motion`, shape (interfaces, 6, n)."""
        return np.array([i.motion for i in self.arrays.interfaces]).reshape(
            len(self.arrays.interfaces), 6, self.arrays.num_modes
        )

    @property
    def positions(self) -> Array:
        """Derivatives of the positions of the material points, shape (points, 3)."""
        return np.array([p.position for p in self.arrays.points]).reshape(-1, 3)

    @property
    def point_modes(self) -> Array:
        """Derivatives of `MaterialPoint.modes`, shape (points, n, 3)."""
        return np.array([p.modes for p in self.arrays.points]).reshape(
            len(self.arrays.points), self.arrays.num_modes, 3
        )

    @property
    def skin_positions(self) -> Array | None:
        """Derivatives of the positions of the skin, shape (nodes, 3), or None."""
        return None if self.arrays.skin is None else self.arrays.skin.points

    @property
    def skin_modes(self) -> Array | None:
        """Derivatives of the modes at the skin, shape (n, nodes, 3), or None."""
        return None if self.arrays.skin is None else self.arrays.skin.modes

    @property
    def spin_stiffening(self) -> Array | None:
        """Derivative of `Stiffening.spin`, shape (6, n, n), or None."""
        return None if self.arrays.stiffening is None else self.arrays.stiffening.spin

    @property
    def interface_stiffening(self) -> Array | None:
        """Derivative of `Stiffening.interfaces`, shape (interfaces, 6, n, n), or None."""
        return None if self.arrays.stiffening is None else self.arrays.stiffening.interfaces

    @property
    def stress(self) -> Array | None:
        """Derivative of `StressModes.stress`, shape (6, nodes, n), or None."""
        return None if self.arrays.stress is None else self.arrays.stress.stress

    @property
    def loads(self) -> tuple[LoadPattern, ...]:
        """Derivatives of the distributed loads."""
        return self.arrays.loads

    @property
    def bores(self) -> tuple[Array, ...]:
        """Derivatives of `Bore.displacement`."""
        return tuple(bore.displacement for bore in self.arrays.bores)

    @property
    def gauges(self) -> tuple[StrainGauge, ...]:
        """Derivatives of the strain gauges."""
        return self.arrays.gauges

    @property
    def effective_masses(self) -> EffectiveMasses | None:
        """Derivatives of the effective masses, or None."""
        return self.arrays.effective_masses


def central_derivatives(
    body: ReducedBody, mass: float, first: Array, second: Array
) -> tuple[Array, Array]:
    """Return the derivatives of the centre of mass and of the inertia tensor about it.

    Args:
        body: The body at the base point.
        mass: Derivative of the mass.
        first: Derivative of S, shape (n+1, 3).
        second: Derivative of H, shape (n+1, n+1, 3, 3).
    """
    m, c = body.total_mass, body.centre
    moved = (first[0] - mass * c) / m
    change = second[0, 0] - mass * np.outer(c, c) - m * (np.outer(moved, c) + np.outer(c, moved))
    return moved, np.asarray(np.trace(change) * np.eye(3) - change)


def frequency_derivatives(body: ReducedBody, stiffness: Array) -> Array:
    """Return df = dλ/(8π² f) with dλ from the derivative of the stiffness, group by group."""
    squares = np.diag(body.stiffness)
    groups = groups_of(squares)
    out = np.zeros(len(squares))
    for group in np.unique(groups):
        k = np.flatnonzero(groups == group)
        values = np.linalg.eigvalsh(stiffness[np.ix_(k, k)])
        out[k] = values / (2.0 * np.sqrt(squares[k].mean()))
    return np.asarray(out / (2 * np.pi), dtype=float)


def effective_mass_derivatives(
    body: ReducedBody,
    moments: tuple[float, Array, Array],
    stiffness: Array,
    points: Array,
    motions: Array,
) -> EffectiveMasses | None:
    """Return the derivatives of the effective masses, or None if the body does not determine them.

    Args:
        body: The body at the base point.
        moments: Derivatives of the mass, of S and of H.
        stiffness: Derivative of the modal stiffness, shape (n, n).
        points: Derivatives of the points of the interfaces, shape (interfaces, 3).
        motions: Derivatives of `Interface.motion`, shape (interfaces, 6, n).
    """
    masses = body.effective_masses
    if masses is None:
        return None
    rigid = WRENCH_INDICES[2 if masses.shares.shape[1] == 3 else 3]
    index, interfaces = [*rigid, *range(6, 6 + body.num_modes)], body.interfaces
    B, B_change = (
        np.vstack([np.hstack([turn, motion])[np.ix_(rigid, index)] for turn, motion in rows])
        for rows in (
            [(point_motion(i.point), i.motion) for i in interfaces],
            [(point_motion(v) - np.eye(6), N) for v, N in zip(points, motions, strict=True)],
        )
    )
    base = body.total_mass, body.first_moments, body.second_moments
    M, M_change = (_coupled_mass(*m)[np.ix_(index, index)] for m in (base, moments))
    M_change[len(rigid) :, len(rigid) :] = 0.0
    K, K_change = (
        scipy.linalg.block_diag(np.zeros((len(rigid),) * 2), A) for A in (body.stiffness, stiffness)
    )
    squares, rates, modes, modes_change = _held_modes((K, K_change), (M, M_change), (B, B_change))
    frequencies = np.sqrt(np.maximum(squares, 0.0)) / (2 * np.pi)
    rows = _matches(masses.frequencies, frequencies)
    if rows is None:
        return None
    centre = central_derivatives(body, *moments)[0]
    # Unit motions about the centre of mass, as motions of the origin
    T = point_motion(-body.centre)[np.ix_(rigid, rigid)]
    T_change = (point_motion(-centre) - np.eye(6))[np.ix_(rigid, rigid)]
    count = len(rigid)
    momenta, change = M[:, :count] @ T, M_change[:, :count] @ T + M[:, :count] @ T_change
    p, p_change = modes.T @ momenta, modes_change.T @ momenta + modes.T @ change
    total = np.sum(T * momenta[:count], axis=0)
    total_change = np.sum(T_change * momenta[:count] + T * change[:count], axis=0)
    shares = (2 * p * p_change - p**2 * (total_change / total)) / total
    return EffectiveMasses((rates / (8 * np.pi**2 * frequencies))[rows], shares[rows])


def _held_modes(
    stiffness: tuple[Array, Array], mass: tuple[Array, Array], rows: tuple[Array, Array]
) -> tuple[Array, Array, Array, Array]:
    """Return λ, λ′, y and y′ of the modes with K y = λ M y, B y = 0 and yᵀM y = 1.

    A motion Z with B Z = 0 changes by Z′ = −B⁺B′Z. The arguments are K, M and B with derivatives.
    """
    scale = np.linalg.norm(rows[0], axis=1)[:, None]
    B, B_change = (A / scale for A in rows)
    Z = scipy.linalg.null_space(B)
    Z_change = -np.linalg.pinv(B) @ (B_change @ Z)
    squares, y = scipy.linalg.eigh(*(Z.T @ A @ Z for A, _ in (stiffness, mass)))
    k, m = (
        y.T @ (Z_change.T @ A @ Z + Z.T @ A @ Z_change + Z.T @ change @ Z) @ y
        for A, change in (stiffness, mass)
    )
    groups = groups_of(squares)
    equal_frequency = groups[:, None] == groups
    Q = np.zeros_like(k)  # turns multiple modes to the branches of their frequency
    for group in np.unique(groups):
        block = np.ix_(groups == group, groups == group)
        Q[block] = np.linalg.eigh((k - m * squares)[block])[1]
    y, k, m = y @ Q, Q.T @ k @ Q, Q.T @ m @ Q
    gaps = np.where(equal_frequency, 1.0, squares - squares[:, None])
    coefficients = np.where(equal_frequency, -m / 2, (k - m * squares) / gaps)
    rates = np.diag(k) - squares * np.diag(m)
    return squares, rates, Z @ y, Z_change @ y + Z @ y @ coefficients


def _coupled_mass(mass: float, S: Array, H: Array) -> Array:
    """Return the mass matrix of rigid motions about the origin and elastic coordinates."""
    n = len(S) - 1
    M = np.eye(6 + n)
    M[:3, :3] *= mass
    M[ORIGIN, OMEGA] = np.cross(np.eye(3), S[0]).T
    M[OMEGA, ORIGIN] = M[ORIGIN, OMEGA].T
    M[OMEGA, OMEGA] = np.trace(H[0, 0]) * np.eye(3) - H[0, 0]
    M[ORIGIN, ELASTIC] = S[1:].T
    M[OMEGA, ELASTIC] = np.array(
        [H[0, 1:, a, b] - H[0, 1:, b, a] for a, b in ((1, 2), (2, 0), (0, 1))]
    )
    M[ELASTIC, RIGID] = M[RIGID, ELASTIC].T
    return M


def _matches(values: Array, others: Array) -> list[int] | None:
    """Return the index of each value in ascending `others`, or None if a value is missing."""
    rows: list[int] = []
    for value in values:
        near = np.flatnonzero(np.abs(others - value) <= SAME * value)
        free = [int(k) for k in near if k not in rows]
        if not free:
            return None
        rows.append(free[0])
    return rows


def second_order_size(body: ReducedBody, energies: Array, masses: Array) -> float:
    """Return the largest term of second order in a modal stiffness, relative to that stiffness.

    With ΨᵀMΨ = I, the component of Ψ″/2 along the same mode is −diag(Ψ′ᵀMΨ′ + 2Ψ′ᵀM′Ψ)/2.

    Args:
        body: The body at the base point.
        energies: Diagonal of Ψ′ᵀKΨ′ + 2Ψ′ᵀK′Ψ, shape (n,).
        masses: Diagonal of Ψ′ᵀMΨ′ + 2Ψ′ᵀM′Ψ, shape (n,).
    """
    return float(np.max(np.abs(energies / np.diag(body.stiffness) - masses), initial=0.0))


def derivative_from(body: ReducedBody, entries: Mapping[str, Any]) -> BodyDerivative:
    """Return a derivative from arrays by name.

    Args:
        body: The body at the base point.
        entries: Derivatives by attribute of `ReducedBody`; of interfaces, points, skin, stiffening
            and stress as `interface_points`, `interface_motions`, `positions`, `point_modes`,
            `skin_positions`, `skin_modes`, `spin_stiffening`, `interface_stiffening` and `stress`,
            of bores their displacements; and `limits` and `second_order`, which are attributes of
            `BodyDerivative`.
    """
    e, zero = entries, map_arrays(lambda _, value: 0 * value, with_values(body, left_out=()))
    moments = e["total_mass"], e["first_moments"], e["second_moments"]
    centre, central_inertia = central_derivatives(body, *moments)
    motions = e["interface_points"], e["interface_motions"]
    rates = frequency_derivatives(body, e["stiffness"])
    skin, stiffening, stress = zero.skin, zero.stiffening, zero.stress
    if skin is not None:
        skin = with_values(skin, points=e["skin_positions"], modes=e["skin_modes"])
    if stiffening is not None:
        spin, interfaces = e["spin_stiffening"], e["interface_stiffening"]
        stiffening = with_values(stiffening, spin=spin, interfaces=interfaces, work=None)
    if stress is not None:
        points = e["skin_positions"]
        stress = with_values(stress, points=points, stress=e["stress"], cells=None)

    def parts(name: str, **values: Any) -> Any:
        rows = zip(getattr(zero, name), *values.values(), strict=True)
        return tuple(with_values(p, **dict(zip(values, row, strict=True))) for p, *row in rows)

    arrays = with_values(
        zero,
        total_mass=e["total_mass"],
        first_moments=e["first_moments"],
        second_moments=e["second_moments"],
        stiffness=e["stiffness"],
        damping=e.get("damping", zero.damping),
        interfaces=parts("interfaces", point=motions[0], motion=motions[1]),
        modes=parts("modes", frequency=rates),
        points=parts("points", position=e["positions"], modes=e["point_modes"]),
        skin=skin,
        stiffening=stiffening,
        stress=stress,
        loads=e.get("loads", ()),
        effective_masses=effective_mass_derivatives(body, moments, e["stiffness"], *motions),
        gauges=e.get("gauges", ()),
        bores=parts("bores", displacement=e.get("bores", ())),
    )
    return BodyDerivative(arrays, centre, central_inertia, e["limits"], e["second_order"])


def in_modes(
    derivative: BodyDerivative, body: ReducedBody, W: Array, step: float
) -> BodyDerivative:
    """Return a derivative in the modes Ψ W of a body; W is orthogonal, shape (n, n).

    `step` is the difference of the parameter from the former base value.
    """
    low, high = derivative.limits
    arrays = map_arrays(lambda array, value: array.transformed(value, W), derivative.arrays)
    rates = frequency_derivatives(body, arrays.stiffness)
    modes = tuple(
        with_values(m, frequency=float(f)) for m, f in zip(arrays.modes, rates, strict=True)
    )
    return replace(
        derivative, arrays=with_values(arrays, modes=modes), limits=(low - step, high - step)
    )
