"""A reduced body in the coordinates of its interfaces, as superelements of other programs have it.

A free body moves by z = (r, η): six rigid motions r about its origin, and its elastic coordinates.
Its interfaces move by q = G r + D η, six each, with D their motion maps.  If these motions are
independent, the same body has as coordinates y = (q, p): Craig and Bampton's, with

    z = T_c q + Φ p,

T_c the motions of least strain energy for given q and Φ the modes with all interfaces held.  With
f = Q g all interface forces in equilibrium (Gᵀf = 0) and F = D K⁻¹ Dᵀ the compliance,

    K_c = Q (Qᵀ F Q)⁻¹ Qᵀ,

whose only zero modes are the six rigid ones; it is a sum of positive terms inverted, so that stiff
modes do not spoil soft ones.  This is a change of coordinates: for a Craig-Bampton body K and M are
those of its constraint and fixed-interface modes, and nothing is lost that K and M can hold.  If
modes were left out of the body there are as many fewer modal coordinates, and K_c is stiffer.  If
fewer are left than the interfaces have coordinates, their motions are dependent and no such
matrices exist; then fewer interfaces can be kept.

References:
    Craig, Bampton (1968), Coupling of substructures for dynamic analyses, AIAA J. 6, 1313-1319.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from dolfinx_mbd.body import Interface, ReducedBody
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.rotations import axial, skew

__all__ = ["INTERFACE_COORDINATES", "Superelement", "superelement"]

Array = NDArray[np.float64]

INTERFACE_COORDINATES = ("Tx", "Ty", "Tz", "Rx", "Ry", "Rz")
"""Coordinates of an interface: displacement of its point, rotation vector; body components."""

DEPENDENT_TOLERANCE = 1e-6
"""What is new in the motion of an interface's coordinate, in the norm of the kinetic energy and
relative to all of it, below which it is dependent on others (pivots of a QR factorization)."""


@dataclass(frozen=True, eq=False)
class Superelement:
    """K, M and C of a free body in coordinates of its interfaces and of fixed-interface modes.

    Attributes:
        interfaces: Six coordinates each, `INTERFACE_COORDINATES`, along the axes of the body.
        stiffness: Shape (6 p + m, 6 p + m) for p interfaces and m modes; six zero modes.
        mass: Likewise; positive definite, of the whole body, its rigid motion included.
        damping: Likewise.
        frequencies: Of the m modes with all interfaces held, Hz (1 over the unit of time).
        transform: (r, η) = transform · (q, p), shape (6 + n, 6 p + m).
    """

    interfaces: tuple[Interface, ...]
    stiffness: Array
    mass: Array
    damping: Array
    frequencies: Array
    transform: Array

    @property
    def names(self) -> tuple[str, ...]:
        """Of the interfaces."""
        return tuple(i.name for i in self.interfaces)

    @property
    def points(self) -> Array:
        """Of the interfaces, shape (p, 3)."""
        return np.array([i.point for i in self.interfaces])

    @property
    def num_modes(self) -> int:
        """Modal coordinates m."""
        return len(self.frequencies)


def superelement(body: ReducedBody, interfaces: Sequence[str] | None = None) -> Superelement:
    """Change from rigid motion and elastic coordinates to interface and modal coordinates.

    Args:
        body: With at least one interface; any reference condition, any consistent units.
        interfaces: Names of those to keep, in order; None: all.

    Raises:
        ValueError: If there are no interfaces, or their motions are dependent, or the body is a
            mechanism.
    """
    kept = _kept(body, interfaces)
    G, D = _motions(kept)
    M, K = _mass_matrix(body), body.stiffness
    n = body.num_modes
    stiff = np.linalg.eigvalsh(K)
    if n and not stiff[0] > 1e-14 * stiff[-1]:
        raise InputError(
            f"body {body.name!r} has elastic coordinates without stiffness, in which it is a "
            "mechanism; a superelement has six zero modes only"
        )
    _check_independent(body, kept, np.hstack([G, D]), M)

    size = np.sqrt(np.trace(body.central_inertia) / body.total_mass)  # rotations count as lengths
    S = np.tile(np.repeat([1.0, size], 3), len(kept))
    Q = np.linalg.qr(S[:, None] * G, mode="complete")[0][:, 6:]
    QD = Q.T @ (S[:, None] * D)
    loads = scipy.linalg.solve(K, QD.T, assume_a="pos") if n else QD.T
    forces = scipy.linalg.solve(QD @ loads, Q.T * S, assume_a="pos") if Q.shape[1] else Q.T
    eta = loads @ forces
    rigid = np.linalg.lstsq(S[:, None] * G, np.diag(S) - S[:, None] * (D @ eta), rcond=None)[0]
    squares, held = _held_modes(K, M, np.hstack([G, D]))

    T = np.hstack([np.vstack([rigid, eta]), held])
    stiffness = scipy.linalg.block_diag((Q * S[:, None]) @ forces, np.diag(squares))
    elastic = T[6:]
    return Superelement(
        interfaces=kept,
        stiffness=_symmetric(stiffness),
        mass=_symmetric(T.T @ M @ T),
        damping=_symmetric(elastic.T @ body.damping @ elastic),
        frequencies=np.sqrt(squares) / (2 * np.pi),
        transform=T,
    )


def _kept(body: ReducedBody, names: Sequence[str] | None) -> tuple[Interface, ...]:
    if isinstance(names, str):
        names = [names]
    kept = body.interfaces if names is None else tuple(body.interface(name) for name in names)
    if not kept:
        raise InputError(f"body {body.name!r} needs at least one interface to be a superelement")
    twice = sorted({i.name for i in kept if sum(j.name == i.name for j in kept) > 1})
    if twice:
        raise InputError(f"interface {twice[0]!r} is given twice")
    return kept


def _motions(interfaces: tuple[Interface, ...]) -> tuple[Array, Array]:
    """G and D of q = G r + D η, shapes (6 p, 6) and (6 p, n)."""
    G = np.tile(np.eye(6), (len(interfaces), 1))
    for k, i in enumerate(interfaces):
        G[6 * k : 6 * k + 3, 3:] = -skew(i.point)
    return G, np.vstack([i.motion for i in interfaces])


def _mass_matrix(body: ReducedBody) -> Array:
    """Of (r, η): the undeformed body's and the modes', shape (6 + n, 6 + n)."""
    n, m, S = body.num_modes, body.total_mass, body.first_moments
    M = np.zeros((6 + n, 6 + n))
    M[:3, :3] = m * np.eye(3)
    M[:3, 3:6], M[3:6, :3] = -skew(S[0]), skew(S[0])
    M[3:6, 3:6] = body.inertia
    M[:3, 6:] = S[1:].T
    for k in range(n):
        M[3:6, 6 + k] = axial(body.second_moments[0, 1 + k])
    M[6:, :6] = M[:6, 6:].T
    M[6:, 6:] = body.mass
    return M


def _whitened(M: Array) -> Array:
    """X with XᵀMX = I."""
    scale = 1 / np.sqrt(np.diag(M))
    L = np.linalg.cholesky(M * np.outer(scale, scale))
    return scale[:, None] * scipy.linalg.solve_triangular(L.T, np.eye(len(M)))


def _check_independent(
    body: ReducedBody, interfaces: tuple[Interface, ...], W: Array, M: Array
) -> None:
    rows = W @ _whitened(M)
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    _, R, order = scipy.linalg.qr(rows.T, pivoting=True, mode="economic")
    pivots = np.abs(np.diag(R))
    rank = int(np.sum(pivots > DEPENDENT_TOLERANCE * pivots[0]))
    if rank == len(rows):
        return
    dependent = ", ".join(
        f"{INTERFACE_COORDINATES[k % 6]} of {interfaces[k // 6].name!r}"
        for k in sorted(order[rank:])
    )
    raise InputError(
        f"body {body.name!r}: the motions of its interfaces are not independent ({dependent} "
        f"follow from the others; {body.num_modes} elastic and 6 rigid coordinates, {len(rows)} of "
        "interfaces). Reduce it with more modes (a plane body has none out of its plane), or keep "
        f"fewer interfaces, for instance interfaces=[{interfaces[0].name!r}]"
    )


def _held_modes(K: Array, M: Array, W: Array) -> tuple[Array, Array]:
    """ω² and the modes, in (r, η), of the body with its interfaces held: W z = 0."""
    X = _whitened(M)
    rows = W @ X
    q, _ = np.linalg.qr((rows / np.linalg.norm(rows, axis=1)[:, None]).T, mode="complete")
    Z = X @ q[:, len(W) :]
    squares, V = np.linalg.eigh(_symmetric(Z[6:].T @ K @ Z[6:]))
    held = Z @ V
    if held.shape[1]:
        elastic = held[6:]  # (in these the sign does not depend on units)
        largest = np.abs(elastic).argmax(axis=0), np.arange(held.shape[1])
        held = held * np.sign(elastic[largest])
    return squares, held


def _symmetric(A: Array) -> Array:
    return (A + A.T) / 2
