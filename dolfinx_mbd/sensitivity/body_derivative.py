"""`BodyDerivative`: the derivative of a reduced body with respect to one parameter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import LoadPattern, ReducedBody
from dolfinx_mbd.body.multiple import groups_of
from dolfinx_mbd.html import short_repr


@dataclass(frozen=True, eq=False)
class BodyDerivative:
    """Derivative of a reduced body with respect to one parameter, per unit of the parameter.

    The n elastic coordinates are those of the body at the base point. When the parameter changes,
    the modal mass matrix remains the unit matrix, and the modes rotate as little as possible within
    their span. The derivative of the stiffness matrix is therefore full, and modes may cross.

    Attributes:
        total_mass: Derivative of the mass.
        centre: Derivative of the centre of mass, shape (3,).
        central_inertia: Derivative of the inertia tensor about the centre of mass, shape (3, 3).
        first_moments: Derivative of S, shape (n+1, 3).
        second_moments: Derivative of H, shape (n+1, n+1, 3, 3).
        stiffness: Derivative of the modal stiffness matrix, shape (n, n).
        damping: Derivative of the modal damping matrix, shape (n, n); a damping that was given as a
            matrix is constant.
        frequencies: Derivatives of the frequencies, shape (n,), Hz; those of a multiple frequency
            are the derivatives of its branches in ascending order.
        interface_points: Derivatives of the points of the interfaces, shape (interfaces, 3).
        interface_motions: Derivatives of `Interface.motion`, shape (interfaces, 6, n).
        positions: Derivatives of the positions of the material points, shape (points, 3).
        point_modes: Derivatives of `MaterialPoint.modes`, shape (points, n, 3).
        skin_positions: Derivatives of the positions of the skin, shape (ns, 3), or None.
        skin_modes: Derivatives of the modes at the skin, shape (n, ns, 3), or None.
        spin_stiffening: Derivative of `Stiffening.spin`, shape (6, n, n), or None.
        interface_stiffening: Derivative of `Stiffening.interfaces`, shape
            (interfaces, 6, n, n), or None.
        stress: Derivative of the stress modes at the nodes of the skin, shape (6, ns, n), or None
            if the body has no stress modes; see `recovery.skin_stress`.
        loads: Derivatives of the distributed loads, as load patterns.
        bores: Derivatives of `Bore.displacement`.
        gauges: Derivatives of `StrainGauge.modes`, or None if the surface under gauges moves.
        limits: Steps below and above zero at which a cell of the mesh degenerates;
            infinite unless the parameter is a shape.
        second_order: Largest term of second order in a modal stiffness that follows from first
            derivatives, relative to that stiffness, per square of the unit of the parameter.

    Example:
        >>> derivative = mbd.sensitivities(bar, [mbd.Parameter("rho", "density")])["rho"]
        >>> round(derivative.total_mass / bar.body.total_mass * 7850.0, 9)
        1.0
    """

    total_mass: float
    centre: Array
    central_inertia: Array
    first_moments: Array
    second_moments: Array
    stiffness: Array
    damping: Array
    frequencies: Array
    interface_points: Array
    interface_motions: Array
    positions: Array
    point_modes: Array
    skin_positions: Array | None
    skin_modes: Array | None
    spin_stiffening: Array | None
    interface_stiffening: Array | None
    stress: Array | None
    loads: tuple[LoadPattern, ...]
    bores: tuple[Array, ...]
    gauges: tuple[Array, ...] | None
    limits: tuple[float, float]
    second_order: float

    __repr__ = short_repr

    @property
    def inertia(self) -> Array:
        """Derivative of the inertia tensor about the origin of the frame, shape (3, 3)."""
        second = self.second_moments[0, 0]
        return np.asarray(np.trace(second) * np.eye(3) - second)


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


def second_order_size(body: ReducedBody, energies: Array, masses: Array) -> float:
    """Return the largest term of second order in a modal stiffness, relative to that stiffness.

    With ΨᵀMΨ = I, the component of Ψ″/2 along the same mode is −diag(Ψ′ᵀMΨ′ + 2Ψ′ᵀM′Ψ)/2.

    Args:
        body: The body at the base point.
        energies: Diagonal of Ψ′ᵀKΨ′ + 2Ψ′ᵀK′Ψ, shape (n,).
        masses: Diagonal of Ψ′ᵀMΨ′ + 2Ψ′ᵀM′Ψ, shape (n,).
    """
    return float(np.max(np.abs(energies / np.diag(body.stiffness) - masses), initial=0.0))


def in_modes(
    derivative: BodyDerivative, body: ReducedBody, W: Array, step: float
) -> BodyDerivative:
    """Return a derivative in the modes Ψ W of a body; W is orthogonal, shape (n, n).

    `step` is the difference of the parameter from the former base value.
    """
    d, T = derivative, scipy.linalg.block_diag(1.0, W)
    stiffness = W.T @ d.stiffness @ W

    def product(subscripts: str, values: Array | None, *others: Array) -> Any:
        return None if values is None else np.einsum(subscripts, W, values, *others)

    loads = [replace(p, modes=W.T @ p.modes, moments=W.T @ p.moments) for p in d.loads]
    low, high = d.limits
    return replace(
        d,
        limits=(low - step, high - step),
        first_moments=T.T @ d.first_moments,
        second_moments=np.einsum("ki,klab,lj->ijab", T, d.second_moments, T),
        stiffness=stiffness,
        damping=W.T @ d.damping @ W,
        frequencies=frequency_derivatives(body, stiffness),
        interface_motions=d.interface_motions @ W,
        point_modes=np.einsum("ki,pka->pia", W, d.point_modes),
        skin_modes=product("ki,kpa->ipa", d.skin_modes),
        spin_stiffening=product("ki,ckl,lj->cij", d.spin_stiffening, W),
        interface_stiffening=product("ki,ackl,lj->acij", d.interface_stiffening, W),
        stress=None if d.stress is None else d.stress @ W,
        loads=tuple(loads),
        bores=tuple(bore @ W for bore in d.bores),
        gauges=None if d.gauges is None else tuple(gauge @ W for gauge in d.gauges),
    )
