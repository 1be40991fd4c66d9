"""Bodies of revolution: how a rotation about their axis acts on the elastic coordinates.

If a body is rotated by the angle θ about its axis n, its displacement ψ_k(x) becomes R ψ_k(Rᵀx).
If the body is round and its modes are complete pairs, this is a displacement of the body as well:

    R ψ_k(Rᵀx) = Σ_l ψ_l(x) T_lk,   T = exp(θ G).

The generator G is the derivative of T with respect to θ at θ = 0. It follows from the arrays of the
body, because all of them must be invariant. With N = ñ, the derivatives of these conditions are
linear in G:

    GᵀM + M G = 0,   GᵀK + K G = 0,   Σ_l S_l G_lk = N S_k,   Φ G = diag(N, N) Φ,
    Σ_m (G_mk H_ml + H_km G_ml) = N H_kl + H_kl Nᵀ,

where k, l and m are modes, S_k are the first and second moments of mode k with the undeformed body,
H_kl (3, 3) the second moments of two modes, and Φ is the motion of a frame on the axis. In modes of
unit mass, G is skew-symmetric and couples modes of the same eigenvalue only. The other conditions
are solved by least squares; the residual is the deviation from a body of revolution. G need not be
unique: each solution leaves the equations of motion unchanged.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.parts import SPINS, Stiffening
from dolfinx_mbd.body.reduced_body import ReducedBody
from dolfinx_mbd.checks import instance, number, reject, vector
from dolfinx_mbd.errors import InputError

__all__ = ["axisymmetric", "rotation_generator"]

_MORE_ANGLES = 4
"""Number of averaged angles, minus twice the largest number m of waves around the axis.

A rotated array contains up to 2 m + 2 waves: m from each T and one from each R. A mean over more
angles than waves is exact.
"""

_ROUND_OFF = 1e-9  # eigenvalues relative to the largest one that are considered equal to zero


def rotation_generator(
    body: ReducedBody, axis: Array, tolerance: float, *, damping: Array | None = None
) -> Array:
    """Return the generator G (modes, modes) of rotations about an axis through the origin.

    Args:
        body: The body.
        axis: Unit vector along the axis in body components, shape (3,).
        tolerance: Largest deviation from a body of revolution.
        damping: Damping matrix, shape (modes, modes); by default that of the body.

    Raises:
        InputError: The body is not round; the message names the deviation.
    """
    basis, generator = _modal_generator(body, axis, tolerance)
    matrix = body.damping if damping is None else damping
    _check_deviations(body, axis, tolerance, basis, generator, matrix)
    return np.asarray(basis @ generator @ basis.T @ body.mass)


def axisymmetric(body: ReducedBody, axis: ArrayLike, *, tolerance: float = 0.02) -> ReducedBody:
    """Return a body of revolution: the average of a nearly round body over its rotations.

    The mesh of a round solid is not exactly round, and the two frequencies of a pair of bending
    modes differ slightly. `linearize` of a rotor in global axes needs equal ones. Mass, moments,
    stiffness, damping, the motion of the interfaces on the axis and geometric stiffening are
    averaged. Skin, stress, gauges, points, distributed loads and interfaces off the axis remain
    unchanged.

    Args:
        body: The body. It must contain both modes of each pair, such as bending in two
            perpendicular planes.
        axis: Direction of the axis in body components, shape (3,); it passes through the origin of
            the body frame.
        tolerance: Largest relative deviation of the body from a body of revolution.

    Returns:
        The body with averaged arrays; `provenance` contains the deviation.

    Raises:
        InputError: The deviation is larger than the tolerance; the message names the array.

    Example:
        >>> shaft = mbd.body.ReducedBody.from_arrays(  # index 0: undeformed body; 2 bending modes
        ...     total_mass=2.0,
        ...     first_moments=np.diag([0.0, 1.0, 1.0]),  # mode 1 along y, mode 2 along z
        ...     second_moments=np.diag([0.1, 1, 1])[:, :, None, None] * np.diag([0.2, 0.4, 0.4]),
        ...     stiffness=np.diag([4.00e6, 4.02e6]),
        ... )
        >>> mbd.body.axisymmetric(shaft, (1, 0, 0)).stiffness.diagonal() / 1e6
        array([4.01, 4.01])
    """
    instance("body", body, ReducedBody)
    n = vector("axis", axis)
    if not n.any():
        reject("axis", axis, "a direction that is not zero")
    n = n / np.linalg.norm(n)
    number("tolerance", tolerance, positive=True, high=0.5)
    basis, generator = _modal_generator(body, n, tolerance)
    # Eigenvalues i k of the generator of a round body: k is the number of waves around the axis
    waves, vectors = np.linalg.eigh(1j * generator)
    numbers = np.round(waves)
    generator = np.real(-1j * (vectors * numbers) @ vectors.conj().T)
    deviation = _check_deviations(body, n, tolerance, basis, generator, body.damping)
    count = 2 * int(np.abs(numbers).max(initial=1.0)) + _MORE_ANGLES
    generator_on_modes = basis @ generator @ basis.T @ body.mass
    angles = 2 * np.pi * np.arange(count) / count
    rotations = [(_rotation(n, a), scipy.linalg.expm(a * generator_on_modes)) for a in angles]
    return _average(body, n, rotations, deviation, tolerance)


def _skew(n: Array) -> Array:
    """Return the matrix of the product n×."""
    return np.array([[0.0, -n[2], n[1]], [n[2], 0.0, -n[0]], [-n[1], n[0], 0.0]])


def _rotation(n: Array, angle: float) -> Array:
    """Return the matrix of a rotation by an angle about a unit vector n."""
    N = _skew(n)
    return np.asarray(np.eye(3) + np.sin(angle) * N + (1 - np.cos(angle)) * N @ N)


def _length(body: ReducedBody) -> float:
    """Return a length of the body: its radius of gyration about the origin."""
    return float(np.sqrt(np.trace(body.second_moments[0, 0]) / body.total_mass))


def _on_axis(body: ReducedBody, n: Array, place: Array, tolerance: float) -> bool:
    """Return whether a place (3,) is on the axis with the direction n through the origin."""
    return float(np.linalg.norm(np.cross(n, place))) <= tolerance * _length(body)


def _frame_motions(body: ReducedBody, n: Array, tolerance: float) -> tuple[Array, Array]:
    """Return displacements and rotations (frames, 3, modes) of the frames on the axis n.

    Material points on the axis only have displacements.
    """
    interfaces = [i for i in body.interfaces if _on_axis(body, n, i.point, tolerance)]
    points = [p for p in body.points if _on_axis(body, n, p.position, tolerance)]
    shape = (-1, 3, body.num_modes)
    translations = [i.motion[:3] for i in interfaces] + [p.modes.T for p in points]
    rotations = [i.motion[3:] for i in interfaces]
    return np.reshape(translations, shape), np.reshape(rotations, shape)


def _conditions(
    body: ReducedBody, n: Array, tolerance: float, basis: Array
) -> dict[str, tuple[Array, Array]]:
    """Return arrays A and B for the conditions A G = B on the generator G of rotations.

    The last axis of the arrays runs over the modes `basis`, the others over components.

    B is the derivative of A with respect to the angle if A rotates about the axis n: N A, and for
    second moments N A + A Nᵀ. The arrays of a pair are divided by the size of A, and at least by
    the size that the unit mass of the modes suggests.
    """
    N = _skew(n)
    translations, rotations = (part @ basis for part in _frame_motions(body, n, tolerance))
    first = body.first_moments[1:].T @ basis
    second = np.einsum("lab,lk->abk", body.second_moments[0, 1:], basis)
    rotated = np.einsum("ac,cbk->abk", N, second) + np.einsum("bc,ack->abk", N, second)
    root_mass, root_inertia = np.sqrt([body.total_mass, np.trace(body.second_moments[0, 0])])
    conditions = {
        "first moments": (first, N @ first, root_mass),
        "second moments": (second, rotated, root_inertia),
        "displacements of the frames": (translations, N @ translations, 1 / root_mass),
        "rotations of the frames": (rotations, N @ rotations, 1 / root_inertia),
    }
    sizes = {key: max(float(np.linalg.norm(A)), least) for key, (A, _, least) in conditions.items()}
    return {key: (A / sizes[key], B / sizes[key]) for key, (A, B, _) in conditions.items()}


def _modal_moments(body: ReducedBody, basis: Array) -> Array:
    """Return the second moments of the modes, shape (modes, modes, 3, 3)."""
    H = np.tensordot(basis, body.second_moments[1:, 1:], axes=(0, 0))
    return np.asarray(np.moveaxis(np.tensordot(basis, H, axes=(0, 1)), 0, 1))


def _rotation_rate(N: Array, H: Array) -> Array:
    """Return the derivative N H + H Nᵀ of second moments that rotate."""
    return np.asarray(N @ H - H @ N)


def _modal_generator(body: ReducedBody, n: Array, tolerance: float) -> tuple[Array, Array]:
    """Return modes of unit mass, and the generator of rotations about the axis n in these modes.

    Both have the shape (modes, modes). The columns of the first are coordinates of the body; the
    second is skew-symmetric.
    """
    count = body.num_modes
    if not count:
        return np.zeros((0, 0)), np.zeros((0, 0))
    values, basis = scipy.linalg.eigh(body.stiffness, body.mass)
    floor = _ROUND_OFF * float(values[-1])
    roots = np.sqrt(np.maximum(values, floor))
    equal = np.abs(roots[:, None] - roots) <= tolerance * np.minimum(roots[:, None], roots)
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count) if equal[i, j]]
    generator = np.zeros((count, count))
    if not pairs:
        return basis, generator
    conditions = list(_conditions(body, n, tolerance, basis).values())
    H = _modal_moments(body, basis)
    right = [B.ravel() for _, B in conditions]
    right.append(_rotation_rate(_skew(n), H).ravel() / np.linalg.norm(H))
    columns = []
    for i, j in pairs:
        unit = np.zeros((count, count))
        unit[i, j], unit[j, i] = 1.0, -1.0
        parts = [(A @ unit).ravel() for A, _ in conditions]
        columns.append(np.concatenate([*parts, _mode_rate(H, unit).ravel() / np.linalg.norm(H)]))
    matrix = np.array(columns).T
    solution = np.linalg.lstsq(matrix, np.concatenate(right), rcond=max(tolerance, 1e-10))[0]
    for (i, j), value in zip(pairs, solution, strict=True):
        generator[i, j], generator[j, i] = value, -value
    return basis, generator


def _mode_rate(H: Array, G: Array) -> Array:
    """Return Σ_m (G_mk H_ml + H_km G_ml) of modes k and l, shape (modes, modes, 3, 3) as H."""
    first = np.tensordot(G, H, axes=(0, 0))
    second = np.moveaxis(np.tensordot(H, G, axes=(1, 0)), -1, 1)
    return np.asarray(first + second)


def _check_deviations(
    body: ReducedBody, n: Array, tolerance: float, basis: Array, G: Array, damping: Array
) -> float:
    """Return the largest relative deviation from a body of revolution about the axis n.

    G is the generator in the modes `basis`.

    Raises:
        InputError: The deviation exceeds the tolerance.
    """
    N, deviations = _skew(n), {}
    inertia = body.second_moments[0, 0]  # of the undeformed body
    offset = float(np.linalg.norm(N @ body.centre)) / _length(body)
    deviations["centre of mass"] = offset
    deviations["inertia tensor"] = float(
        np.linalg.norm(_rotation_rate(N, inertia)) / np.linalg.norm(inertia)
    )
    if len(G):
        values = np.diag(basis.T @ body.stiffness @ basis)
        roots = np.sqrt(np.maximum(values, _ROUND_OFF * values.max()))
        deviations["frequencies"] = float(
            (np.abs(G) * np.abs(roots[:, None] - roots) / np.minimum(roots[:, None], roots)).max()
        )
        for key, (A, B) in _conditions(body, n, tolerance, basis).items():
            deviations[key] = float(np.linalg.norm(A @ G - B))
        H = _modal_moments(body, basis)
        deviations["second moments of the modes"] = float(
            np.linalg.norm(_mode_rate(H, G) - _rotation_rate(N, H)) / np.linalg.norm(H)
        )
        C = basis.T @ damping @ basis / np.sqrt(np.outer(roots, roots))
        size = max(float(np.linalg.norm(C)), 1e-300)
        deviations["damping"] = float(np.linalg.norm(G.T @ C + C @ G)) / size
    key = max(deviations, key=lambda name: deviations[name])
    if deviations[key] > tolerance:
        raise InputError(
            f"body {body.name!r} is not round about the axis {np.round(n, 6)} through the origin "
            f"of its frame: its {key} deviate{'s' * (key in _SINGULAR)} by "
            f"{deviations[key]:.2g}, relative to their size. Both modes of each pair of bending "
            "modes must be selected; mbd.body.axisymmetric averages a body whose mesh is not "
            "exactly round",
            argument="body",
            value=body.name,
        )
    return deviations[key]


_SINGULAR = {"centre of mass", "inertia tensor", "damping"}
"""Names of deviations that are grammatically singular, for the message."""


def _average(
    body: ReducedBody,
    n: Array,
    rotations: list[tuple[Array, Array]],
    deviation: float,
    tolerance: float,
) -> ReducedBody:
    """Return the body with the averages of its arrays over rotations R with matrices T."""
    count = len(rotations)

    def mean(values: list[Array]) -> Array:
        return np.asarray(sum(values[1:], values[0]) / count)

    def matrix(A: Array) -> Array:
        average = mean([T.T @ A @ T for _, T in rotations])
        return 0.5 * (average + average.T)

    first, second, interfaces = [], [], list(body.interfaces)
    for R, T in rotations:
        E = scipy.linalg.block_diag(1.0, T)  # with index 0, the undeformed body
        first.append(E.T @ body.first_moments @ R)
        H = np.einsum("km,ln,klab->mnab", E, E, body.second_moments, optimize=True)
        second.append(np.einsum("ca,mncd,db->mnab", R, H, R, optimize=True))
    for k, interface in enumerate(body.interfaces):
        if _on_axis(body, n, interface.point, tolerance):
            motion = mean([scipy.linalg.block_diag(R, R).T @ interface.motion @ T
                           for R, T in rotations])  # fmt: skip
            interfaces[k] = replace(interface, point=n * (n @ interface.point), motion=motion)
    stiffening = body.stiffening
    if stiffening is not None:
        stiffening = mean_stiffening(stiffening, rotations)
    return body.replace(
        first_moments=mean(first),
        second_moments=mean(second),
        mass=matrix(body.mass),
        stiffness=matrix(body.stiffness),
        damping=matrix(body.damping),
        interfaces=tuple(interfaces),
        stiffening=stiffening,
        provenance={**body.provenance, "deviation from a body of revolution": deviation},
    )


def mean_stiffening(data: Stiffening, rotations: list[tuple[Array, Array]]) -> Stiffening:
    """Return the averages of the geometric stiffness over rotations R with matrices T."""
    n = data.spin.shape[-1]
    tensor = np.zeros((3, 3, n, n))  # stiffness for ω_i ω_j; symmetric in i and j
    for (i, j), K in zip(SPINS, data.spin, strict=True):
        tensor[i, j] += 0.5 * K
        tensor[j, i] += 0.5 * K
    wrenches = data.interfaces.reshape(-1, 2, 3, n, n)
    spins, loads = np.zeros_like(tensor), np.zeros_like(wrenches)
    for R, T in rotations:
        projected = T.T @ tensor @ T
        spins += np.einsum("ai,bj,abkl->ijkl", R, R, projected, optimize=True) / len(rotations)
        projected = T.T @ wrenches @ T
        loads += np.einsum("ai,fpakl->fpikl", R, projected, optimize=True) / len(rotations)
    spin = np.array([spins[i, j] * (1 if i == j else 2) for i, j in SPINS])
    return replace(data, spin=spin, interfaces=loads.reshape(data.interfaces.shape))
