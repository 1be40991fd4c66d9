"""Small motions of a reduced body: free, with interfaces held, or in steady rotation.

A small displacement in the steadily turning axes (ω = 0: at rest) is w = d + θ×x + Σ ψ_k η_k, with
coordinates z = (d, θ, η).  All its inertia is contracted from the body's moments,

    M ẅ:  ∫ρ φ_I·φ_J,    G ẇ:  2 ∫ρ φ_I·(ω×φ_J),    K_ω w:  ∫ρ φ_I·(ω×(ω×φ_J)),

and the geometric stiffness of the steady state, whose centrifugal load is b = −ρ ω×(ω×(x−p)) and
whose wrenches at the held interfaces are (F_k, M_k), is

    η, η:  Σ_{i≤j} ω_iω_j K_ij + Σ_k (F_k K_Fk + M_k K_Mk),
    θ, η:  ∫ ψ·(θ×b) + Σ_k d_k·(θ×F_k),    θ, θ: the symmetric part of the same with ψ = θ'×x,

the second variation of the work of b and F_k on the quadratic kinematics of
:class:`~dolfinx_mbd.body.Stiffening` and on ½ θ×(θ×x) + θ×u.  A held interface has
d + θ×x_k + D_k η = 0 and θ + Θ_k η = 0; the coordinates that this leaves are taken from the null
space.  Damping acts on η alone.  (Proved by
``test_small_motions_are_those_of_the_multibody_kernel``.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body.parts import SPINS, assign, frozen
from dolfinx_mbd.body.reduced_body import ReducedBody
from dolfinx_mbd.checks import array, instance, names, vector
from dolfinx_mbd.errors import InputError

__all__ = ["LinearizedBody", "interface_map", "linearize_body", "null_space", "point_map"]

Array = NDArray[np.float64]

RANK_TOLERANCE = 1e-9
"""Relative singular value below which the rows of held interfaces repeat each other."""


@dataclass(frozen=True, eq=False)
class LinearizedBody:
    """M q̈ + (C + G) q̇ + K q = Bᵀf in m coordinates, z = B q.

    Attributes:
        mass: M, shape (m, m).
        damping: C, shape (m, m).
        gyroscopic: G, skew, shape (m, m); zero without rotation.
        stiffness: K with all geometric parts, shape (m, m).
        elastic: The part of K that is elastic, which a loss factor multiplies, shape (m, m).
        basis: B, from q to z = (d, θ, η), shape (6+n, m).
        stiffened: Whether geometric stiffening is in K.
    """

    mass: Array
    damping: Array
    gyroscopic: Array
    stiffness: Array
    elastic: Array
    basis: Array
    stiffened: bool = False

    def __post_init__(self) -> None:
        m = len(array("mass", self.mass, (None, None)))
        for name in ("mass", "damping", "gyroscopic", "stiffness", "elastic"):
            assign(self, **{name: frozen(name, getattr(self, name), (m, m))})
        assign(self, basis=frozen("basis", self.basis, (-1, m)))

    def poles(self) -> NDArray[np.complex128]:
        """The eigenvalues λ of λ² M + λ (C + G) + K, 1/s, those with Im λ ≥ 0 by |λ|.

        A mode's frequency is |λ|/2π, its damping ratio −Re λ/|λ|; Re λ > 0 is an instability.
        """
        m = len(self.mass)
        inverse = np.linalg.inv(self.mass)
        A = np.zeros((2 * m, 2 * m))
        A[:m, m:] = np.eye(m)
        A[m:, :m] = -inverse @ self.stiffness
        A[m:, m:] = -inverse @ (self.damping + self.gyroscopic)
        values = np.linalg.eigvals(A).astype(complex)
        values = values[values.imag >= 0]
        return values[np.argsort(np.abs(values), kind="stable")]


def linearize_body(
    body: ReducedBody,
    *,
    held: Iterable[str] = (),
    spin: ArrayLike | None = None,
    about: str | ArrayLike | None = None,
    stiffening: bool | None = None,
) -> LinearizedBody:
    """The equations of small motions of a body.

    Without `spin` a body that is not held is free and its rigid motion is among the coordinates.
    With `spin` a body that is not held follows the prescribed rotation with its frame, and only
    its elastic coordinates are left.

    Args:
        body: The body.
        held: Names of interfaces that stand still, or turn steadily with `spin`.
        spin: Steady angular velocity ω, body components, shape (3,), rad/s; None: none.
        about: A point on the axis, shape (3,), m, or an interface's name; None: the first held
            interface.  Only the load at held interfaces depends on it.
        stiffening: Whether geometric stiffening acts; None: if the body has it.

    Raises:
        ValueError: If an interface is unknown, nothing can move, or stiffening is asked for and
            the body has none.
    """
    instance("body", body, ReducedBody)
    instance("stiffening", stiffening, (bool, type(None)))
    names = name_list("held", held)
    for name in names:
        body.interface(name)
    if about is not None and not isinstance(about, str):
        expected = "the name of an interface or a point (3,) on the axis in m"
        about = array("about", about, (3,), expected=expected)
    omega = np.zeros(3) if spin is None else vector("spin", spin, unit="rad/s")
    if stiffening and body.stiffening is None:
        raise InputError(
            f"body {body.name!r} holds no stiffening; reduce it with stiffening=True and the "
            "mean-axis reference"
        )
    stiff = bool(omega.any()) and body.stiffening is not None and stiffening is not False
    n = body.num_modes
    full = np.zeros((6 + n, 6 + n))
    elastic, damping = full.copy(), full.copy()
    elastic[6:, 6:], damping[6:, 6:] = body.stiffness, body.damping
    fields, moments = _fields(body), _moments(body)
    pairs = np.einsum("ias,jbs->ijab", fields @ moments, fields, optimize=True)
    mass = np.einsum("ijaa->ij", pairs).copy()
    mass[6:, 6:] = body.mass
    w = _skew(omega)
    gyroscopic = 2.0 * np.einsum("ijab,ab->ij", pairs, w)
    stiffness = elastic + np.einsum("ijab,ab->ij", pairs, w @ w)
    rows = np.vstack([np.zeros((0, 6 + n)), *(interface_map(body, name) for name in names)])
    if names:
        basis = null_space(rows, mass)
    else:
        basis = np.eye(6 + n)[:, 6 if spin is not None else 0 :]
    if not basis.shape[1]:
        raise InputError(
            f"body {body.name!r}: nothing is left to move with "
            f"{', '.join(map(repr, names)) or 'its frame'} held and {n} modes"
        )
    if stiff:
        load = _centrifugal(body, omega, about, names, fields @ moments)
        wrenches = np.zeros((len(names), 6))
        if names:
            force = np.einsum("aaj->j", load)
            reduced = basis.T @ elastic @ basis
            z = basis @ np.linalg.solve(reduced, basis.T @ force)
            reactions = np.linalg.lstsq(rows.T, elastic @ z - force, rcond=None)[0]
            wrenches = reactions.reshape(-1, 6)
        stiffness = stiffness + _geometric(body, omega, names, load, wrenches)
    return LinearizedBody(
        mass=basis.T @ mass @ basis,
        damping=basis.T @ damping @ basis,
        gyroscopic=basis.T @ gyroscopic @ basis,
        stiffness=basis.T @ stiffness @ basis,
        elastic=basis.T @ elastic @ basis,
        basis=basis,
        stiffened=stiff,
    )


def interface_map(body: ReducedBody, name: str) -> Array:
    """Motion (d, θ) of an interface over z = (d, θ, η), body components, shape (6, 6+n)."""
    interface = body.interface(name)
    rigid = np.eye(6)
    rigid[:3, 3:] = -_skew(interface.point)
    return np.hstack([rigid, interface.motion])


def point_map(body: ReducedBody, name: str) -> Array:
    """Displacement of a named point over z = (d, θ, η), body components, shape (3, 6+n)."""
    point = body.point(name)
    return np.hstack([np.eye(3), -_skew(point.position), point.modes.T])


def null_space(rows: Array, mass: Array) -> Array:
    """Motions z that rows (k, 6+n) hold at zero, M-scaled, shape (6+n, m)."""
    scale = 1 / np.sqrt(np.diag(mass))
    scaled = rows * scale
    size = np.linalg.norm(scaled, axis=1, keepdims=True)
    _, values, vectors = np.linalg.svd(scaled / np.where(size > 0, size, 1.0))
    rank = int(np.sum(values > RANK_TOLERANCE * values.max(initial=0.0)))
    return scale[:, None] * vectors[rank:].T


def name_list(argument: str, values: str | Iterable[str]) -> list[str]:
    """Return different names as a list; one name alone is a list of one."""
    return list(names(argument, [values] if isinstance(values, str) else values))


def _skew(a: ArrayLike) -> Array:
    x, y, z = np.asarray(a, dtype=float)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def _fields(body: ReducedBody) -> Array:
    """Components of the fields φ_I over the scalar fields (1, x, ψ_1, ...), (6+n, 3, 3n+4)."""
    n = body.num_modes
    L = np.zeros((6 + n, 3, 4 + 3 * n))
    for i in range(3):
        L[i, i, 0] = 1.0
        L[3 + i, :, 1:4] = _skew(np.eye(3)[i])
    for k in range(n):
        L[6 + k, :, 4 + 3 * k : 7 + 3 * k] = np.eye(3)
    return L


def _moments(body: ReducedBody) -> Array:
    """Gram matrix of the scalar fields (1, x, ψ_1, ...), shape (3n+4, 3n+4)."""
    size = 3 * (body.num_modes + 1)
    G = np.zeros((1 + size, 1 + size))
    G[0, 0] = body.total_mass
    G[0, 1:] = G[1:, 0] = body.first_moments.ravel()
    G[1:, 1:] = body.second_moments.transpose(0, 2, 1, 3).reshape(size, size)
    return G


def _centrifugal(
    body: ReducedBody,
    omega: Array,
    about: str | ArrayLike | None,
    names: Sequence[str],
    weighted: Array,
) -> Array:
    """∫ b^a φ_J^c of the load b = −ρ ω×(ω×(x−p)), shape (3, 3, 6+n)."""
    if about is None:
        point = body.interface(names[0]).point if names else np.zeros(3)
    elif isinstance(about, str):
        point = body.interface(about).point
    else:
        point = np.asarray(about)
    W = _skew(omega) @ _skew(omega)
    load = np.column_stack([W @ point, -W])
    return np.einsum("as,jcs->acj", load, weighted[:, :, :4])


def _geometric(
    body: ReducedBody, omega: Array, names: Sequence[str], load: Array, wrenches: Array
) -> Array:
    """Geometric stiffness of the steady state over z, shape (6+n, 6+n)."""
    cases, n = body.stiffening, body.num_modes
    assert cases is not None
    K = np.zeros((6 + n, 6 + n))
    for c, (i, j) in enumerate(SPINS):
        K[6:, 6:] += omega[i] * omega[j] * cases.spin[c]
    turned = load.copy()
    index = {interface.name: k for k, interface in enumerate(body.interfaces)}
    for name, wrench in zip(names, wrenches, strict=True):
        K[6:, 6:] += np.einsum("c,ckl->kl", wrench, cases.interfaces[index[name]])
        turned += np.multiply.outer(wrench[:3], interface_map(body, name)[:3])
    for i in range(3):
        row = np.einsum("ca,acj->j", _skew(np.eye(3)[i]), turned)
        K[3 + i, 3:] = row[3:]
        K[6:, 3 + i] = row[6:]
    K[3:6, 3:6] = 0.5 * (K[3:6, 3:6] + K[3:6, 3:6].T)
    return K
