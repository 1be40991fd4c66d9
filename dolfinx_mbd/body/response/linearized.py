"""Small motions of a reduced body that is free, held at interfaces, or in steady rotation.

A small displacement in axes that rotate steadily with ω (or are at rest, ω = 0) is
w = d + θ×x + Σ ψ_k η_k, with the coordinates z = (d, θ, η) and the fields φ_I = ∂w/∂z_I. The mass
matrix, the gyroscopic matrix and the centrifugal stiffness are contractions of the body's moments:

    M:  ∫ρ φ_I·φ_J,    G:  2 ∫ρ φ_I·(ω×φ_J),    K_ω:  ∫ρ φ_I·(ω×(ω×φ_J)).

The steady state has the centrifugal load b = −ρ ω×(ω×(x−p)), with a point p on the axis of
rotation, and wrenches (F_k, M_k) at the held interfaces. Let x_k be the point of interface k, let
D_k η and Θ_k η be its displacement and rotation, and let d_k be its displacement due to ψ. With the
matrices K_ij, K_Fk and K_Mk of `Stiffening`, the geometric stiffness of the steady state is

    η, η:  Σ_{i≤j} ω_iω_j K_ij + Σ_k (F_k K_Fk + M_k K_Mk),
    θ, η:  ∫ ψ·(θ×b) + Σ_k d_k·(θ×F_k),    θ, θ:  the symmetric part of θ, η with ψ = θ'×x.

This stiffness is the second variation of the work of b and F_k on the quadratic kinematics of
`Stiffening` and on ½ θ×(θ×x) + θ×u. A held interface satisfies d + θ×x_k + D_k η = 0 and
θ + Θ_k η = 0; the null space of these conditions provides the remaining coordinates. Damping acts
on η only.
The test `test_small_motions_are_those_of_the_multibody_kernel` verifies these equations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import Array, freeze
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.body.reduced_body import ReducedBody
from dolfinx_mbd.checks import array, instance, names, reject, vector
from dolfinx_mbd.html import short_repr

RANK_TOLERANCE = 1e-9  # relative singular value below which conditions are treated as dependent


@dataclass(frozen=True, eq=False)
class LinearizedBody:
    """Linear equations of motion M q̈ + (C + G) q̇ + K q = Bᵀf in m coordinates, with z = B q.

    Attributes:
        mass: M, shape (m, m).
        damping: C, shape (m, m).
        gyroscopic: G, skew-symmetric, shape (m, m); zero without rotation.
        stiffness: K with centrifugal and geometric stiffness, shape (m, m).
        elastic: Elastic part of K, which a loss factor multiplies, shape (m, m).
        basis: B, which maps q to z = (d, θ, η), shape (6+n, m).
        stiffened: Whether K contains geometric stiffness.

    Example:
        >>> mbd.body.linearize_body(body, held=["left"]).mass.shape
        (2, 2)
    """

    mass: Array
    damping: Array
    gyroscopic: Array
    stiffness: Array
    elastic: Array
    basis: Array
    stiffened: bool = False

    __repr__ = short_repr

    def __post_init__(self) -> None:
        freeze(self, mass=(-1, -1))
        m = len(self.mass)
        freeze(self, mass=(m, m), damping=(m, m), gyroscopic=(m, m), stiffness=(m, m))
        freeze(self, elastic=(m, m), basis=(-1, m))

    def poles(self) -> NDArray[np.complex128]:
        """Return the eigenvalues λ of λ² M + λ (C + G) + K with Im λ ≥ 0, sorted by |λ|, 1/s.

        The frequency of a mode is |λ|/2π and its damping ratio −Re λ/|λ|. Re λ > 0 means that the
        motion is unstable.
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
    """Return the linear equations of small motions of a body.

    Without `spin`, a body that is not held is free, and the coordinates include its rigid motion.
    With `spin`, the frame of a body that is not held follows the prescribed rotation, and only the
    elastic coordinates remain.

    Args:
        body: A reduced body.
        held: Names of interfaces that are fixed, or that rotate steadily with `spin`.
        spin: Steady angular velocity ω in body axes, shape (3,), rad/s. By default zero.
        about: A point on the axis of rotation, shape (3,), m, or the name of an interface. By
            default the first held interface. The point has no effect if no interface is held.
        stiffening: Whether to include geometric stiffness, by default if the body has it.

    Raises:
        InputError: An interface is unknown, no coordinate remains, or `stiffening` is True and the
            body has no geometric stiffness.

    Example:
        >>> mbd.body.linearize_body(body).mass.shape
        (8, 8)
    """
    instance("body", body, ReducedBody)
    instance("stiffening", stiffening, (bool, type(None)))
    held_names = name_list("held", held)
    for name in held_names:
        body.interface(name)
    if about is not None and not isinstance(about, str):
        expected = "the name of an interface or a point (3,) on the axis in m"
        about = array("about", about, (3,), expected=expected)
    omega = np.zeros(3) if spin is None else vector("spin", spin, unit="rad/s")
    if stiffening and body.stiffening is None:
        reject(
            "stiffening",
            stiffening,
            f"None or False: body {body.name!r} has no geometric stiffness; reduce it with "
            "stiffening=True and the mean-axis reference",
        )
    n = body.num_modes
    elastic, damping = np.zeros((6 + n, 6 + n)), np.zeros((6 + n, 6 + n))
    elastic[6:, 6:], damping[6:, 6:] = body.stiffness, body.damping
    fields, moments = _fields(body), _moments(body)
    # pairs[i, j, a, b] = ∫ρ φ_ia φ_jb, with component a of the field φ_i
    pairs = np.einsum("ias,jbs->ijab", fields @ moments, fields, optimize=True)
    mass = np.einsum("ijaa->ij", pairs).copy()
    mass[6:, 6:] = body.mass
    w = _skew(omega)
    gyroscopic = 2.0 * np.einsum("ijab,ab->ij", pairs, w)
    stiffness = elastic + np.einsum("ijab,ab->ij", pairs, w @ w)
    rows = np.vstack([np.zeros((0, 6 + n)), *(interface_map(body, x) for x in held_names)])
    basis = null_space(rows, mass) if held_names else np.eye(6 + n)[:, 0 if spin is None else 6 :]
    if not basis.shape[1]:
        reject(
            "held", held_names, f"fewer interfaces: with {n} modes, no motion of the body remains"
        )
    stiffened = bool(omega.any()) and body.stiffening is not None and stiffening is not False
    if stiffened:
        load = _centrifugal_moments(body, omega, about, held_names, fields @ moments)
        wrenches = _reactions(load, elastic, rows, basis)
        stiffness = stiffness + _geometric_stiffness(body, omega, held_names, load, wrenches)
    M, C, G, K, E = (basis.T @ A @ basis for A in (mass, damping, gyroscopic, stiffness, elastic))
    return LinearizedBody(M, C, G, K, E, basis, stiffened)


def _reactions(load: Array, elastic: Array, rows: Array, basis: Array) -> Array:
    """Return the wrenches at the held interfaces under the steady load, shape (interfaces, 6).

    `load` is the result of `_centrifugal_moments`; its trace is the load on the coordinates z.
    """
    if not len(rows):
        return np.zeros((0, 6))
    force = np.einsum("aaj->j", load)
    z = basis @ np.linalg.solve(basis.T @ elastic @ basis, basis.T @ force)
    return np.linalg.lstsq(rows.T, elastic @ z - force, rcond=None)[0].reshape(-1, 6)


def interface_map(body: ReducedBody, name: str) -> Array:
    """Return the matrix from z = (d, θ, η) to the motion of an interface, shape (6, 6+n)."""
    interface = body.interface(name)
    motions = np.eye(6)
    motions[:3, 3:] = -_skew(interface.point)
    return np.hstack([motions, interface.motion])


def point_map(body: ReducedBody, name: str) -> Array:
    """Return the matrix from z = (d, θ, η) to the displacement of a point, shape (3, 6+n)."""
    point = body.point(name)
    return np.hstack([np.eye(3), -_skew(point.position), point.modes.T])


def spin_fields(points: Array) -> Array:
    """Return −ω×(ω×x) at points (m, 3) per unit of each ω_iω_j of `SPINS`, shape (6, m, 3)."""
    fields = []
    for i, j in SPINS:
        unit = np.zeros((3, 3))
        unit[i, j] = unit[j, i] = -1.0
        fields.append(points @ (np.eye(3) + unit if i == j else unit))
    return np.array(fields)


def spin_loads(body: ReducedBody) -> Array:
    """Return the loads −∫ρ φ·(ω×(ω×x)) on z = (d, θ, η) for the products ω_iω_j, (6+n, 6)."""
    S, H = body.first_moments, body.second_moments
    matrices = spin_fields(np.eye(3))  # symmetric
    twisted = np.einsum("cab,bd->cad", matrices, H[0, 0])
    # Loads on the rotations about x, y and z: the skew-symmetric parts
    moments = [twisted[:, k, j] - twisted[:, j, k] for j, k in ((1, 2), (2, 0), (0, 1))]
    elastic = np.einsum("cab,kab->kc", matrices, H[1:, 0])
    return np.vstack([(matrices @ S[0]).T, moments, elastic])


def null_space(rows: Array, mass: Array) -> Array:
    """Return a basis, scaled by the masses, of the motions z with rows @ z = 0, shape (6+n, m)."""
    sizes = np.diag(mass)
    # A thin rod has no moment of inertia about its axis
    scale = 1 / np.sqrt(np.where(sizes > 0, sizes, sizes[sizes > 0].min(initial=1.0)))
    scaled = rows * scale
    size = np.linalg.norm(scaled, axis=1, keepdims=True)
    _, values, vectors = np.linalg.svd(scaled / np.where(size > 0, size, 1.0))
    rank = int(np.sum(values > RANK_TOLERANCE * values.max(initial=0.0)))
    return scale[:, None] * vectors[rank:].T


def name_list(argument: str, values: str | Iterable[str]) -> list[str]:
    """Return different names as a list; a single string becomes a list with one name."""
    return list(names(argument, [values] if isinstance(values, str) else values))


def _skew(a: ArrayLike) -> Array:
    """Return the matrix of the product a×."""
    x, y, z = np.asarray(a, dtype=float)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


_UNIT_ROTATIONS = np.stack([_skew(axis) for axis in np.eye(3)])  # θ×x for unit rotations θ


def _fields(body: ReducedBody) -> Array:
    """Return the fields φ_I as combinations of the fields (1, x, ψ_1, ...), (6+n, 3, 3n+4)."""
    n = body.num_modes
    L = np.zeros((6 + n, 3, 4 + 3 * n))
    L[:3, :, 0] = np.eye(3)
    L[3:6, :, 1:4] = _UNIT_ROTATIONS
    L[6:, :, 4:] = np.eye(3 * n).reshape(n, 3, 3 * n)
    return L


def _moments(body: ReducedBody) -> Array:
    """Return the Gram matrix of the scalar fields (1, x, ψ_1, ...), shape (3n+4, 3n+4)."""
    size = 3 * (body.num_modes + 1)
    G = np.zeros((1 + size, 1 + size))
    G[0, 0] = body.total_mass
    G[0, 1:] = G[1:, 0] = body.first_moments.ravel()
    G[1:, 1:] = body.second_moments.transpose(0, 2, 1, 3).reshape(size, size)
    return G


def _centrifugal_moments(
    body: ReducedBody,
    omega: Array,
    about: str | ArrayLike | None,
    names: Sequence[str],
    weighted: Array,
) -> Array:
    """Return ∫ b^a φ_J^c of the load b = −ρ ω×(ω×(x−p)), shape (3, 3, 6+n).

    `weighted` contains the integrals of ρ φ_J^c times each of the fields (1, x, ψ_1, ...).
    """
    if about is None:
        point = body.interface(names[0]).point if names else np.zeros(3)
    elif isinstance(about, str):
        point = body.interface(about).point
    else:
        point = np.asarray(about)
    W = _skew(omega) @ _skew(omega)
    load = np.column_stack([W @ point, -W])
    return np.einsum("as,jcs->acj", load, weighted[:, :, :4])


def _geometric_stiffness(
    body: ReducedBody, omega: Array, names: Sequence[str], load: Array, wrenches: Array
) -> Array:
    """Return the geometric stiffness of the steady state for z, shape (6+n, 6+n)."""
    cases, n = body.stiffening, body.num_modes
    assert cases is not None
    K = np.zeros((6 + n, 6 + n))
    K[6:, 6:] = np.einsum("c,ckl->kl", [omega[i] * omega[j] for i, j in SPINS], cases.spin)
    rotation_load = load.copy()
    index = {interface.name: k for k, interface in enumerate(body.interfaces)}
    for name, wrench in zip(names, wrenches, strict=True):
        K[6:, 6:] += np.einsum("c,ckl->kl", wrench, cases.interfaces[index[name]])
        rotation_load += np.multiply.outer(wrench[:3], interface_map(body, name)[:3])
    rows = np.einsum("ica,acj->ij", _UNIT_ROTATIONS, rotation_load)
    K[3:6, 3:], K[6:, 3:6] = rows[:, 3:], rows[:, 6:].T
    K[3:6, 3:6] = 0.5 * (K[3:6, 3:6] + K[3:6, 3:6].T)
    return K
