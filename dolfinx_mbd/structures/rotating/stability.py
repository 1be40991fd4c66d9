"""Campbell diagrams, and the speed at which a rotating body becomes unstable.

References:
    D. R. Merkin: Introduction to the Theory of Stability, Springer 1997, chapter 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array, ComplexArray
from dolfinx_mbd.checks import array, flag, instance, integer, number, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.fem.linalg.dense_problems import dense_modes
from dolfinx_mbd.fem.linalg.factorization import SingularError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.parallel import on_rank_zero
from dolfinx_mbd.structures.rotating.spinning_modes import (
    Eigenvalues,
    RotatingModes,
    modes_of_factor,
    rotating_modes,
)
from dolfinx_mbd.structures.rotating.structure import RotatingStructure, checked_speed

EXTRA_MODES = 3  # number of additional modes at each speed, because modes may cross
SPEED_CHANGE = 1e-8  # if the stiffness is singular, the speed is changed by this fraction
WHIRL_SHOWN = 0.1  # least whirl that the table of a diagram marks
GROWTH_LIMIT = 1e-4  # a vibration grows if Re λ/max(|λ|, Ω) is larger; less may be round-off

# Modes are matched by 1 - MAC + CHANGE_WEIGHT times the relative change of λ (at most MAX_CHANGE)
CHANGE_WEIGHT, MAX_CHANGE = 0.2, 5.0


class Modes(NamedTuple):
    """Modes at one speed; the last axis of each array numbers them."""

    eigenvalues: ComplexArray
    whirl: Array
    vectors: ComplexArray
    momenta: ComplexArray  # M z of the vectors z


@dataclass(frozen=True, eq=False)
class Campbell(Eigenvalues):
    """Modes over the speed; column k follows one mode.

    Example:
        >>> diagram = mbd.structures.campbell(structure, [0.0, 50.0], num_modes=2)
        >>> diagram.frequencies.shape, bool(diagram.growing.any())
        ((2, 2), False)
    """

    speeds: Array  # Ω, shape (m,), rad/s
    eigenvalues: ComplexArray  # λ, Im λ ≥ 0, shape (m, n), 1/s
    whirl: Array  # sense of the orbits in the rotating frame, shape (m, n); see `RotatingModes`
    coriolis: bool  # whether Coriolis forces act
    stiffening: bool  # whether geometric stiffness acts

    __repr__ = short_repr

    def __post_init__(self) -> None:
        for name in ("speeds", "eigenvalues", "whirl"):
            getattr(self, name).flags.writeable = False

    @property
    def growing(self) -> NDArray[np.bool_]:
        """Whether each mode grows at each speed, shape (m, n)."""
        return _is_growing(self.eigenvalues, self.speeds[:, None])

    def summary(self) -> str:
        """Return the frequencies as a table; f: forward whirl, b: backward whirl, !: growing."""
        lines = ["speed (rad/s)   frequencies (Hz)"]
        for speed, f, w, g in zip(
            self.speeds, self.frequencies, self.whirl, self.growing, strict=True
        ):
            marks = np.select([g, w > WHIRL_SHOWN, w < -WHIRL_SHOWN], ["!", "f", "b"], " ")
            row = "".join(f"{a:14.4f}{m}" for a, m in zip(f, marks, strict=True))
            lines.append(f"{speed:13.4f}{row}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class CriticalSpeed:
    """Speed at which the body becomes unstable.

    Example:
        >>> result = mbd.structures.critical_speed(
        ...     structure, 2e4, stiffening=False, num_modes=1, steps=4
        ... )
        >>> result.kind
        'divergence'
    """

    speed: float  # middle of the bracket, rad/s
    bracket: tuple[float, float]  # stable and unstable speed, rad/s
    kind: str  # "divergence": the stiffness is singular, λ = 0; "flutter": a vibration grows
    modes: RotatingModes  # lowest modes at the unstable end of the bracket

    __repr__ = short_repr


def campbell(
    structure: RotatingStructure,
    speeds: ArrayLike,
    *,
    num_modes: int = 6,
    coriolis: bool = True,
    stiffening: bool = True,
    projection: int | None = None,
) -> Campbell:
    """Compute frequencies, damping and whirl over many speeds.

    If the stiffness is singular at a speed, the modes of a slightly larger speed are returned.

    Args:
        structure: Matrices from `rotating_structure` or `rotating_beam`.
        speeds: Ω, shape (m,), rad/s, in an order in which modes change little between neighbours.
        num_modes: Number of modes to follow; these are the lowest modes at the first speed.
        coriolis: Whether Coriolis forces act.
        stiffening: Whether geometric stiffness acts.
        projection: Number of modes at rest onto which the matrices are projected to save time. By
            default the matrices are not projected. For the three lowest modes of a steel strip with
            a tip speed of 600 m/s, the error is 1e-3 with 6, 1.3e-5 with 12 and 2e-6 with 24 modes.

    Returns:
        The modes over the speed.

    Raises:
        InputError: A value is invalid.
        FactorizationError: The linear solver failed.
        EigenError: The eigenvalue solver failed.

    Example:
        >>> mbd.structures.campbell(structure, [0.0, 50.0], num_modes=2, projection=4).whirl.shape
        (2, 2)

    Note: Collective.
    """
    _check_arguments(structure, num_modes, coriolis, stiffening)
    omegas = np.array(array("speeds", speeds, (None,), expected="a list of speeds in rad/s"))
    if not len(omegas):
        reject("speeds", speeds, "a list of speeds in rad/s")
    for omega in omegas:
        checked_speed("speeds", omega)
    comm = structure.problem.comm
    if projection is None:
        solve = _full_order_modes(structure, num_modes, coriolis, stiffening)
    else:
        integer("projection", projection, low=num_modes)
        solve = _projected_modes(structure, num_modes, coriolis, stiffening, projection)
        comm = None  # vectors are equal on all ranks
    diagram: list[tuple[ComplexArray, Array]] = []
    previous: Modes | None = None
    for omega, step in zip(omegas, np.diff(omegas, prepend=0.0), strict=True):
        modes = solve(float(omega))
        order = np.arange(num_modes) if previous is None else _match(comm, previous, modes, step)
        previous = Modes(*(part[..., order] for part in modes))  # type: ignore[arg-type]
        diagram.append(previous[:2])
    values, whirl = map(np.array, zip(*diagram, strict=True))
    return Campbell(omegas, values, whirl, coriolis, stiffening)


def _check_arguments(structure: Any, num_modes: Any, coriolis: Any, stiffening: Any) -> None:
    """Raise an error if an argument that several functions share is invalid."""
    integer("num_modes", num_modes, low=0)
    instance("structure", structure, RotatingStructure, "from rotating_structure")
    flag("coriolis", coriolis)
    flag("stiffening", stiffening)


def _full_order_modes(
    structure: RotatingStructure, num_modes: int, coriolis: bool, stiffening: bool
) -> Callable[[float], Modes]:
    """Return a function from the speed to the modes at full order."""
    problem = structure.problem
    free = problem.num_dofs - problem.comm.allreduce(len(structure.held))
    count = max(num_modes, min(num_modes + EXTRA_MODES, free))

    def solve(omega: float) -> Modes:
        """Return the modes at a speed, or just above it if the stiffness is singular."""
        omega, negative = _factorize(structure, omega, stiffening)
        m = modes_of_factor(structure, omega, count, negative, coriolis=coriolis)
        real, imaginary = (problem.apply_mass(z) for z in (m.vectors.real, m.vectors.imag))
        return Modes(m.eigenvalues, m.whirl, m.vectors, real + 1j * imaginary)

    return solve


def _factorize(
    structure: RotatingStructure, omega: float, stiffening: bool
) -> tuple[float, int | None]:
    """Factorize K(Ω), or K just above a singular speed; return speed and negative eigenvalues."""
    try:
        return omega, structure.factorize(omega, stiffening=stiffening)
    except SingularError:
        omega *= 1 + SPEED_CHANGE
        return omega, structure.factorize(omega, stiffening=stiffening)


def _projected_modes(
    structure: RotatingStructure, num_modes: int, coriolis: bool, stiffening: bool, size: int
) -> Callable[[float], Modes]:
    """Return a function from the speed to the modes in the span of the lowest modes at rest."""
    matrices = structure.speed_matrices(stiffening)
    modes_at_rest = rotating_modes(structure, 0.0, num_modes=size, coriolis=False, stiffening=False)
    basis, comm = np.asfortranarray(modes_at_rest.vectors.real), structure.problem.comm

    def project(A: PETSc.Mat | None, sign: float = 1.0) -> Array:
        """Return a symmetric (sign 1) or skew (sign -1) matrix in the modes at rest."""
        projection = np.zeros((size, size)) if A is None else gram(comm, basis, multiply(A, basis))
        return (projection + sign * projection.T) / 2

    M, K, G = (
        project(structure.mass),
        project(structure.stiffness),
        project(structure.gyroscopic, -1.0),
    )
    D, S = project(structure.damping), np.sum([project(A) for A in matrices], axis=0)
    damped = structure.damping is not None

    def solve(omega: float) -> Modes:
        """Return the modes at a speed in coordinates of the modes at rest."""
        is_gyroscopic = coriolis and omega != 0
        C = D + is_gyroscopic * omega * G if is_gyroscopic or damped else None
        values, z = on_rank_zero(
            comm, lambda: dense_modes(M, C, K + omega**2 * S, min(size, num_modes + EXTRA_MODES))
        )
        z = z / np.sqrt(np.einsum("ik,ij,jk->k", z.conj(), M, z).real)
        whirl = np.einsum("ik,ij,jk->k", z.real, G, z.imag)
        return Modes(values, whirl if omega >= 0 else -whirl, z, M @ z)

    return solve


def _match(comm: Any, previous: Modes, modes: Modes, step: float) -> NDArray[np.intp]:
    """Return the indices of the modes that match the previous ones best in shape and λ.

    If λ passes through zero, the mode continues as the conjugate of a mode with Im λ > 0. Whirl can
    change λ by as much as Ω changes. Therefore a change of λ is measured relative to both λ and Ω.
    """
    old, new = previous.vectors, modes.momenta
    old_parts = np.asfortranarray(np.hstack([old.real, old.imag]))
    new_parts = np.asfortranarray(np.hstack([new.real, new.imag]))
    H = old_parts.T @ new_parts if comm is None else gram(comm, old_parts, new_parts)
    n, k = old.shape[1], new.shape[1]
    # Products of the real (r) and imaginary (i) parts of old and new modes
    rr, ri, ir, ii = H[:n, :k], H[:n, k:], H[n:, :k], H[n:, k:]
    old_values, new_values = previous.eigenvalues[:, None], modes.eigenvalues
    scale = np.maximum(np.abs(old_values) + abs(step), 1e-300)
    cost = np.full((n, k), np.inf)
    # Each mode, and its conjugate
    for overlap, values in (
        (rr + ii + 1j * (ri - ir), new_values),
        (rr - ii - 1j * (ri + ir), new_values.conj()),
    ):
        change = np.minimum(np.abs(values - old_values) / scale, MAX_CHANGE)
        cost = np.minimum(cost, 1 - np.abs(overlap) ** 2 + CHANGE_WEIGHT * change)
    return np.asarray(scipy.optimize.linear_sum_assignment(cost)[1])


def critical_speed(
    structure: RotatingStructure,
    upper: float,
    *,
    lower: float = 0.0,
    steps: int = 16,
    coriolis: bool = True,
    stiffening: bool = True,
    num_modes: int = 6,
    rtol: float = 1e-6,
) -> CriticalSpeed | None:
    """Find the lowest speed at which the body becomes unstable.

    The interval is searched in steps, and the first step with an unstable end is bisected. Each
    speed costs one factorization. It also costs an eigenvalue problem if the number of negative
    eigenvalues of the stiffness does not determine stability. Unstable ranges within one step are
    missed.

    Args:
        structure: Matrices from `rotating_structure` or `rotating_beam`.
        upper: Highest speed, rad/s.
        lower: Lowest speed, rad/s; the body must be stable at this speed.
        steps: Number of steps of the search.
        coriolis: Whether Coriolis forces act.
        stiffening: Whether geometric stiffness acts.
        num_modes: Number of modes to return. At least as many are computed at speeds at which the
            signs of the eigenvalues of the stiffness do not decide whether the body is stable.
        rtol: Width of the bracket relative to the speed; round-off limits it to about 1e-8 if the
            stiffness is exactly singular at a speed of the search.

    Returns:
        The speed, with modes; None if the body is stable up to `upper`.

    Raises:
        InputError: A value is invalid, or the body is unstable at the lower speed.
        FactorizationError: The linear solver failed.

    Example:
        >>> mbd.structures.critical_speed(structure, 100.0, steps=1) is None
        True

    Note: Collective.
    """
    _check_arguments(structure, num_modes, coriolis, stiffening)
    lower, upper = checked_speed("lower", lower), checked_speed("upper", upper)
    integer("steps", steps, low=1, high=10_000)
    rtol = number("rtol", rtol, low=1e-15, high=1.0)
    if not 0 <= lower < upper:
        message = f"0 <= lower < upper is required; got lower={lower:g}, upper={upper:g} rad/s"
        raise InputError(message, argument="upper", value=upper)
    stability = partial(_stability, structure, num_modes, coriolis, stiffening)
    low, is_unstable, num_negative_low = stability(lower)
    if is_unstable:
        raise InputError(f"the body is unstable at lower={lower:g} rad/s", argument="lower")
    for speed in np.linspace(lower, upper, steps + 1)[1:]:
        high, is_unstable, num_negative_high = stability(float(speed))
        if is_unstable:
            break
        low, num_negative_low = high, num_negative_high
    else:
        return None
    while high - low > rtol * high:
        middle, is_unstable, num_negative = stability((low + high) / 2)
        if not low < middle < high:  # neighbouring numbers, or moved away from a singular stiffness
            break
        if is_unstable:
            high, num_negative_high = middle, num_negative
        else:
            low, num_negative_low = middle, num_negative
    kind = "divergence" if num_negative_high > num_negative_low else "flutter"
    modes = rotating_modes(
        structure, high, num_modes=num_modes, coriolis=coriolis, stiffening=stiffening
    )
    return CriticalSpeed((low + high) / 2, (low, high), kind, modes)


def _stability(
    structure: RotatingStructure, num_modes: int, coriolis: bool, stiffening: bool, omega: float
) -> tuple[float, bool, int]:
    """Return the speed Ω, whether the body is unstable, and how many eigenvalues of K(Ω) are < 0.

    The speed is moved if K(Ω) is singular.

    By theorems of Kelvin, Tait and Chetaev, M ü + (Ω G + D) u̇ + K(Ω) u = 0 with a skew G and a
    dissipative D is stable if K(Ω) has no negative eigenvalues. With negative eigenvalues, it is
    unstable if no Coriolis forces act, D damps every motion, or their number is odd: a real λ is
    then positive, however slowly the motion grows. Otherwise, Coriolis forces may stabilize the
    body, and λ is computed. (An example is a point mass on springs that rotates faster than its
    natural frequency.)
    """
    omega, negative = _factorize(structure, omega, stiffening)
    if negative is None:
        raise InputError(
            "the search needs the signs of the eigenvalues, which MUMPS's Cholesky factorization "
            "provides; leave pc_type and pc_factor_mat_solver_type unchanged"
        )
    no_coriolis = structure.damping is None and not coriolis
    if not negative or negative % 2 or structure.damped or no_coriolis:
        return omega, negative > 0, negative
    count = max(num_modes, negative + EXTRA_MODES)
    modes = modes_of_factor(structure, omega, count, negative, coriolis=coriolis)
    return omega, bool(np.any(_is_growing(modes.eigenvalues, omega))), negative


def _is_growing(values: ComplexArray, omega: float | Array) -> NDArray[np.bool_]:
    """Return whether vibrations with the eigenvalues λ grow at the speed Ω."""
    return np.asarray(values.real > GROWTH_LIMIT * np.maximum(np.abs(values), np.abs(omega)))
