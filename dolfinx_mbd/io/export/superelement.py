"""Superelements: reduced bodies in coordinates of their interfaces and fixed-interface modes.

The coordinates of a free body are z = (r, η), six rigid motions r about its origin and the elastic
coordinates η. Its interfaces move by q = G r + D η, with six components each. If these motions are
independent, the body has Craig-Bampton coordinates y = (q, ξ) with

    z = T y = T_c q + Φ ξ,

where T_c contains the motions of minimum strain energy for given q, and Φ contains the modes with
fixed interfaces. Let Q be a basis of the interface forces f in equilibrium (Gᵀf = 0). With the
compliance F = D K⁻¹ Dᵀ, the stiffness of the interfaces is

    K_c = Q (Qᵀ F Q)⁻¹ Qᵀ.

K_c has exactly six zero modes. Because Qᵀ F Q is a sum of positive terms, K_c is accurate for soft
modes even if other modes are very stiff. For a Craig-Bampton body the change of coordinates is
exact: K and M are the matrices of its constraint and fixed-interface modes. If modes were omitted
from the body, there are fewer modal coordinates, and K_c is stiffer. If the body has fewer
coordinates than its interfaces, the motions of the interfaces are dependent and these matrices do
not exist. In this case write fewer interfaces.

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
from dolfinx_mbd.checks import names as checked_names
from dolfinx_mbd.checks import reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.io.export.invariants import cross_moments
from dolfinx_mbd.kernels.rotations import skew

Array = NDArray[np.float64]

INTERFACE_COORDINATES = ("Tx", "Ty", "Tz", "Rx", "Ry", "Rz")  # in body components

ROUND_OFF = 1e-14
"""Eigenvalues of the stiffness count as zero if their ratio to the largest one is smaller."""

DEPENDENT_TOLERANCE = 1e-6
"""Motions count as dependent if a pivot of their QR factors is smaller, relative to the largest."""


@dataclass(frozen=True, eq=False)
class Superelement:
    """Matrices of a free body in coordinates of p interfaces and m fixed-interface modes.

    The coordinates of an interface are `INTERFACE_COORDINATES`, along the axes of the body. All
    matrices but T = `transform` refer to y = (q, ξ): the motions of the interfaces, then the modes.
    """

    interfaces: tuple[Interface, ...]
    stiffness: Array  # with six zero eigenvalues, shape (6 p + m, 6 p + m)
    mass: Array  # positive definite, including rigid motion
    damping: Array
    frequencies: Array  # fixed-interface modes, cycles per unit of time
    transform: Array  # T in (r, η) = T y with n elastic coordinates η, shape (6 + n, 6 p + m)

    __repr__ = short_repr

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the interfaces."""
        return tuple(i.name for i in self.interfaces)

    @property
    def points(self) -> Array:
        """Points of the interfaces, shape (p, 3)."""
        return np.array([i.point for i in self.interfaces])

    @property
    def num_modes(self) -> int:
        """Number m of modal coordinates."""
        return len(self.frequencies)

    def nastran_matrices(self) -> dict[str, Array]:
        """Return the matrices by their names in Nastran; a damping of zero is omitted."""
        matrices = {"KAAX": self.stiffness, "MAAX": self.mass}
        return matrices | ({"BAAX": self.damping} if self.damping.any() else {})


def superelement(body: ReducedBody, interfaces: Sequence[str] | None = None) -> Superelement:
    """Return the superelement for the given interfaces in their order, by default for all."""
    selected = _selected_interfaces(body, interfaces)
    G, D = _motions(selected)
    M, K, n = _mass_matrix(body), body.stiffness, body.num_modes
    eigenvalues = np.linalg.eigvalsh(K)
    if n and not eigenvalues[0] > ROUND_OFF * eigenvalues[-1]:
        text = f"body {body.name!r} has elastic coordinates without stiffness, so that it is a"
        text += " mechanism; a superelement can have six zero modes only"
        raise InputError(text, argument="body", value=body)
    X = _orthonormal_basis(M)
    rows = np.hstack([G, D]) @ X  # interface motions for coordinates of equal kinetic energy
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    _check_independent(body, selected, rows)

    # Scaled by the radius of gyration, all motions q are lengths. Q is the basis of forces in
    # equilibrium.
    gyration = np.sqrt(np.trace(body.central_inertia) / body.total_mass)
    S = np.tile(np.repeat([1.0, gyration], 3), len(selected))
    Q = np.linalg.qr(S[:, None] * G, mode="complete")[0][:, 6:]
    QD = Q.T @ (S[:, None] * D)
    compliance = scipy.linalg.solve(K, QD.T, assume_a="pos") if n else QD.T  # η per force
    # Interface forces in the basis Q, and elastic coordinates, per motion of the interfaces
    forces = scipy.linalg.solve(QD @ compliance, Q.T * S, assume_a="pos") if Q.shape[1] else Q.T
    eta = compliance @ forces
    rigid = np.linalg.lstsq(S[:, None] * G, np.diag(S) - S[:, None] * (D @ eta), rcond=None)[0]
    squares, fixed = _fixed_interface_modes(K, X, rows)

    T = np.hstack([np.vstack([rigid, eta]), fixed])
    stiffness = scipy.linalg.block_diag((Q * S[:, None]) @ forces, np.diag(squares))
    elastic = T[6:]
    return Superelement(
        interfaces=selected,
        stiffness=_symmetrize(stiffness),
        mass=_symmetrize(T.T @ M @ T),
        damping=_symmetrize(elastic.T @ body.damping @ elastic),
        frequencies=np.sqrt(squares) / (2 * np.pi),
        transform=T,
    )


def _selected_interfaces(body: ReducedBody, names: Sequence[str] | None) -> tuple[Interface, ...]:
    """Return the interfaces with the given names, or all interfaces."""
    selected = body.interfaces
    if names is not None:
        names = checked_names("interfaces", [names] if isinstance(names, str) else names)
        selected = tuple(body.interface(name) for name in names)
    if not selected:
        reject("interfaces", names, "at least one interface")
    return selected


def _motions(interfaces: tuple[Interface, ...]) -> tuple[Array, Array]:
    """Return G and D of q = G r + D η for p interfaces, shapes (6 p, 6) and (6 p, n)."""
    G = np.tile(np.eye(6), (len(interfaces), 1))
    for k, interface in enumerate(interfaces):
        G[6 * k : 6 * k + 3, 3:] = -skew(interface.point)
    return G, np.vstack([interface.motion for interface in interfaces])


def _mass_matrix(body: ReducedBody) -> Array:
    """Return the mass matrix of (r, η), shape (6 + n, 6 + n)."""
    S, cross = body.first_moments[1:], cross_moments(body)[0, 1:]
    moment = skew(body.first_moments[0])
    translation = [body.total_mass * np.eye(3), -moment, S.T]
    return np.block([translation, [moment, body.inertia, cross.T], [S, cross, body.mass]])


def _orthonormal_basis(M: Array) -> Array:
    """Return X with XᵀMX = I."""
    scale = 1 / np.sqrt(np.diag(M))
    L = np.linalg.cholesky(M * np.outer(scale, scale))
    return scale[:, None] * scipy.linalg.solve_triangular(L.T, np.eye(len(M)))


def _check_independent(body: ReducedBody, interfaces: tuple[Interface, ...], rows: Array) -> None:
    """Raise an error if the interface motions, the `rows`, are linearly dependent."""
    _, R, order = scipy.linalg.qr(rows.T, pivoting=True, mode="economic")
    pivots = np.abs(np.diag(R))
    rank = int(np.sum(pivots > DEPENDENT_TOLERANCE * pivots[0]))
    if rank == len(rows):
        return
    names = [f"{axis} of {i.name!r}" for i in interfaces for axis in INTERFACE_COORDINATES]
    dependent = ", ".join(names[k] for k in sorted(order[rank:]))
    hint = f"{dependent} depend on the other motions: the body has {body.num_modes} elastic and 6 "
    hint += f"rigid coordinates, but the interfaces have {len(rows)} motions. "
    hint += "Reduce the body with more modes (a plane body has none out"
    names = [i.name for i in interfaces]
    hint += f" of its plane), or write fewer interfaces, for example interfaces={names[:1]}"
    reject("interfaces", names, "interfaces with independent motions", hint=hint)


def _fixed_interface_modes(K: Array, X: Array, rows: Array) -> tuple[Array, Array]:
    """Return ω² and the modes (r, η) = X v for fixed interfaces, that is, `rows` @ v = 0."""
    Z = X @ np.linalg.qr(rows.T, mode="complete")[0][:, len(rows) :]
    squares, V = np.linalg.eigh(_symmetrize(Z[6:].T @ K @ Z[6:]))
    modes = Z @ V
    if modes.shape[1]:
        elastic = modes[6:]  # signs that follow from η do not depend on the units
        largest = np.abs(elastic).argmax(axis=0), np.arange(modes.shape[1])
        modes = modes * np.sign(elastic[largest])
    return squares, modes


def _symmetrize(A: Array) -> Array:
    """Return the symmetric part of a matrix."""
    return (A + A.T) / 2
