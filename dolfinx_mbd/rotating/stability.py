"""Campbell diagram of a rotating body, and the speed at which it loses its stability.

Modes are followed from speed to speed by their shapes. At full order a speed costs one numerical
factorization of the stiffness; the matrices are constant and the symbolic one is done once.

Stability of M ü + (Ω G + D) u̇ + K(Ω) u = 0, with G skew and D taking energy, by theorems of Kelvin,
Tait and Chetaev, from the number of negative eigenvalues of K(Ω), which the factorization gives for
nothing:

- none: stable;
- some, without Coriolis forces, or with a D that damps every motion, however weakly: unstable;
- some, with Coriolis forces and no damping: an odd number is unstable, since det(λ²M + λC + K) is
  negative at λ = 0 and positive for great λ. An even number may be held by the Coriolis forces (a
  point on isotropic springs beyond their frequency). Here the eigenvalues are looked at.

References:
    D. R. Merkin: Introduction to the Theory of Stability, Springer 1997, chapter 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from petsc4py import PETSc

from dolfinx_mbd.checks import array, flag, instance, integer, number, refuse
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.linalg.blocks import gram, multiply
from dolfinx_mbd.linalg.dense_problems import dense_modes
from dolfinx_mbd.linalg.factorization import SingularError
from dolfinx_mbd.modal.natural_modes import check_num_modes
from dolfinx_mbd.parallel import agreed
from dolfinx_mbd.rotating.modes import RotatingModes, modes_of_factor, rotating_modes
from dolfinx_mbd.rotating.structure import RotatingStructure, checked_speed

__all__ = ["Campbell", "CriticalSpeed", "campbell", "critical_speed"]

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
Modes = tuple[ComplexArray, Array, ComplexArray, ComplexArray]
"""λ, whirl, z and M z."""

SPARE = 3
"""Modes beyond those wanted, computed at each speed, from which a crossing one may come."""

GROWTH = 1e-4
"""Re λ over the greater of |λ| and Ω above which a vibration is said to grow.

Where λ passes zero, λ² has the round-off of K, 1e-16 times the square of the ratio of the highest
frequency of the mesh to Ω, and λ the root of that.
"""

NUDGE = 1e-8
"""Relative step to another speed from one at which the stiffness is singular."""

CHANGE_WEIGHT, GREATEST_CHANGE = 0.2, 5.0
"""Of a relative change of λ, against 1 - MAC, in following modes; what is more does not matter."""


@dataclass(frozen=True, eq=False)
class Campbell:
    """Modes over the speed; column k is one mode, followed.

    Attributes:
        speeds: Ω, shape (m,), rad/s.
        eigenvalues: λ, Im λ ≥ 0, shape (m, n), 1/s.
        whirl: Sense of the orbits in the turning frame, shape (m, n); see `RotatingModes`.
        coriolis: With Coriolis forces.
        stiffening: With geometric stiffness.
    """

    speeds: Array
    eigenvalues: ComplexArray
    whirl: Array
    coriolis: bool
    stiffening: bool

    def __post_init__(self) -> None:
        for name in ("speeds", "eigenvalues", "whirl"):
            getattr(self, name).flags.writeable = False

    @property
    def frequencies(self) -> Array:
        """Im λ/2π, shape (m, n), Hz; zero where λ is real."""
        return np.asarray(self.eigenvalues.imag / (2 * np.pi))

    @property
    def damping_ratios(self) -> Array:
        """-Re λ/|λ|, shape (m, n); negative where a vibration grows."""
        return np.asarray(-self.eigenvalues.real / np.abs(self.eigenvalues))

    @property
    def growing(self) -> NDArray[np.bool_]:
        """Where a followed mode grows, shape (m, n)."""
        return _growing(self.eigenvalues, self.speeds[:, None])

    def summary(self) -> str:
        """The frequencies as a table: ``f`` forward, ``b`` backward whirl, ``!`` growing."""
        lines = ["speed (rad/s)   frequencies (Hz)"]
        for speed, f, w, g in zip(
            self.speeds, self.frequencies, self.whirl, self.growing, strict=True
        ):
            marks = np.where(g, "!", np.where(w > 0.1, "f", np.where(w < -0.1, "b", " ")))
            row = "".join(f"{a:14.4f}{m}" for a, m in zip(f, marks, strict=True))
            lines.append(f"{speed:13.4f}{row}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class CriticalSpeed:
    """Where stability is lost.

    Attributes:
        speed: The middle of the bracket, rad/s.
        bracket: Stable and unstable speed around it, rad/s.
        kind: "divergence" if a static stiffness is lost, λ = 0; "flutter" if a vibration grows.
        modes: The lowest modes at the unstable end of the bracket.
    """

    speed: float
    bracket: tuple[float, float]
    kind: str
    modes: RotatingModes


def campbell(
    structure: RotatingStructure,
    speeds: ArrayLike,
    *,
    num_modes: int = 6,
    coriolis: bool = True,
    stiffening: bool = True,
    projection: int | None = None,
) -> Campbell:
    """Frequencies, damping and whirl over many speeds.

    At a speed that makes the stiffness singular the modes are those of a speed just above.

    Args:
        structure: From `rotating_structure`.
        speeds: Ω, shape (m,), rad/s, in an order in which modes change little from one to the next.
        num_modes: Modes to follow, the lowest at the first speed.
        coriolis: With Coriolis forces.
        stiffening: With geometric stiffness.
        projection: None for full order. A number n: on the n lowest modes at rest, dense and cheap.
            For the three lowest modes of a steel strip, one tenth as high as long, at 600 m/s at
            its tip the error is 1e-3 with 6, 1.3e-5 with 12 (the first longitudinal mode, to which
            Coriolis forces couple, is among them) and 2e-6 with 24.

    Raises:
        ValueError: Something given does not fit.
        FactorizationError: The linear solver failed.
        EigenError: The eigenvalue solver failed.

    Note: Collective.
    """
    check_num_modes(num_modes)
    _check_arguments(structure, coriolis, stiffening)
    omegas = np.array(array("speeds", speeds, (None,), expected="a list of speeds in rad/s"))
    if not len(omegas):
        refuse("speeds", speeds, "a list of speeds in rad/s")
    for omega in omegas:
        checked_speed("speeds", omega)
    if projection is None:
        solve = _full_order(structure, num_modes, coriolis, stiffening)
    else:
        check_num_modes(projection)
        if projection < num_modes:
            raise InputError(
                f"{num_modes} modes cannot come from a projection on {projection}; raise it"
            )
        solve = _projected(structure, num_modes, coriolis, stiffening, projection)
    comm = structure.problem.comm if projection is None else None
    values, whirl = [], []
    last: Modes | None = None
    for omega, step in zip(omegas, np.diff(omegas, prepend=0.0), strict=True):
        found = solve(float(omega))
        order = np.arange(num_modes) if last is None else _follow(comm, last, found, step)
        last = found[0][order], found[1][order], found[2][:, order], found[3][:, order]
        values.append(last[0])
        whirl.append(last[1])
    return Campbell(omegas, np.array(values), np.array(whirl), coriolis, stiffening)


def _check_arguments(structure: Any, coriolis: Any, stiffening: Any) -> None:
    instance("structure", structure, RotatingStructure, "from rotating_structure")
    flag("coriolis", coriolis)
    flag("stiffening", stiffening)


def _full_order(
    structure: RotatingStructure, num_modes: int, coriolis: bool, stiffening: bool
) -> Callable[[float], Modes]:
    problem = structure.problem
    free = problem.num_dofs - problem.comm.allreduce(len(structure.held))
    wanted = max(num_modes, min(num_modes + SPARE, free))

    def modes_at(omega: float) -> RotatingModes:
        return rotating_modes(
            structure, omega, num_modes=wanted, coriolis=coriolis, stiffening=stiffening
        )

    def solve(omega: float) -> Modes:
        try:
            m = modes_at(omega)
        except SingularError:
            m = modes_at(omega * (1 + NUDGE))
        parts = problem.apply_mass(np.hstack([m.vectors.real, m.vectors.imag]))
        n = m.vectors.shape[1]
        return m.eigenvalues, m.whirl, m.vectors, parts[:, :n] + 1j * parts[:, n:]

    return solve


def _projected(
    structure: RotatingStructure, num_modes: int, coriolis: bool, stiffening: bool, size: int
) -> Callable[[float], Modes]:
    matrices = structure.speed_matrices(stiffening=stiffening)
    rest = rotating_modes(structure, 0.0, num_modes=size, coriolis=False, stiffening=False)
    basis, comm = np.asfortranarray(rest.vectors.real), structure.problem.comm
    wanted = min(size, num_modes + SPARE)

    def small(A: PETSc.Mat | None) -> Array:
        return np.zeros((size, size)) if A is None else gram(comm, basis, multiply(A, basis))

    M, K, G = small(structure.mass), small(structure.stiffness), small(structure.gyroscopic)
    M, K, G = (M + M.T) / 2, (K + K.T) / 2, (G - G.T) / 2
    S = np.sum([small(A) for A in matrices], axis=0)
    S = (S + S.T) / 2
    D = None if structure.damping is None else small(structure.damping)

    def solve(omega: float) -> Modes:
        C = D
        if coriolis and omega != 0:
            C = omega * G + (0.0 if D is None else D)
        found = None
        with agreed(comm):
            if comm.rank == 0:
                found = dense_modes(M, C, K + omega**2 * S, wanted)
        values, z = comm.bcast(found, root=0)
        z = z / np.sqrt(np.einsum("ik,ij,jk->k", z.conj(), M, z).real)
        sense = np.einsum("ik,ij,jk->k", z.real, G, z.imag)
        return values, sense if omega >= 0 else -sense, z, M @ z

    return solve


def _follow(comm: object, last: Modes, found: Modes, step: float) -> NDArray[np.intp]:
    """Which of the modes found continues each of the last ones: shape and λ agree best.

    A mode whose λ passes zero goes on as the conjugate of one with Im λ > 0. A whirl changes λ by
    as much as Ω changes, so that a change of λ is measured by both.
    """
    n, old, new = len(last[0]), last[2], found[3]
    left = np.asfortranarray(np.hstack([old.real, old.imag]))
    right = np.asfortranarray(np.hstack([new.real, new.imag]))
    H = left.T @ right if comm is None else gram(comm, left, right)  # type: ignore[arg-type]
    k = new.shape[1]
    rr, ri, ir, ii = H[:n, :k], H[:n, k:], H[n:, :k], H[n:, k:]
    before, after = last[0][:, None], found[0]
    size = np.maximum(np.abs(before) + abs(step), 1e-300)
    cost = np.full((n, k), np.inf)
    for overlap, rate in (
        (rr + ii + 1j * (ri - ir), after),
        (rr - ii - 1j * (ri + ir), after.conj()),
    ):
        change = np.minimum(np.abs(rate - before) / size, GREATEST_CHANGE)
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
    """The lowest speed at which stability is lost, None if there is none up to `upper`.

    The interval is searched in steps and the first one that ends unstable bisected. A step or
    bisection costs one factorization where the number of negative eigenvalues of the stiffness
    decides (see the module), else also the eigenvalues. An unstable range that lies within one step
    is not seen.

    Args:
        structure: From `rotating_structure`.
        upper: Greatest speed, rad/s.
        lower: Least speed, rad/s, stable.
        steps: Of the search.
        coriolis: With Coriolis forces.
        stiffening: With geometric stiffness.
        num_modes: Modes to look at where the inertia does not decide, and to return.
        rtol: Width of the bracket over the speed.

    Raises:
        ValueError: Something given does not fit, or the lower speed is unstable already.
        FactorizationError: The linear solver failed.

    Note: Collective.
    """
    _check_arguments(structure, coriolis, stiffening)
    check_num_modes(num_modes)
    lower, upper = checked_speed("lower", lower), checked_speed("upper", upper)
    integer("steps", steps, low=1, high=10_000)
    rtol = number("rtol", rtol, low=1e-15, high=1.0)
    if not 0 <= lower < upper:
        raise InputError(
            f"give 0 <= lower < upper (rad/s); got lower={lower!r}, upper={upper!r}",
            argument="upper",
            value=upper,
        )

    def unstable(omega: float) -> tuple[float, bool, int]:
        return _unstable(structure, omega, num_modes, coriolis, stiffening)

    speeds = np.linspace(lower, upper, steps + 1)
    low, bad, before = unstable(float(speeds[0]))
    if bad:
        raise InputError(f"unstable at lower={lower:g} rad/s already")
    for speed in map(float, speeds[1:]):
        high, bad, after = unstable(speed)
        if bad:
            break
        low, before = high, after
    else:
        return None
    while high - low > rtol * high:
        middle, bad, count = unstable((low + high) / 2)
        if bad:
            high, after = middle, count
        else:
            low, before = middle, count
    kind = "divergence" if after > before else "flutter"
    modes = rotating_modes(
        structure, high, num_modes=num_modes, coriolis=coriolis, stiffening=stiffening
    )
    return CriticalSpeed((low + high) / 2, (low, high), kind, modes)


def _unstable(
    structure: RotatingStructure, omega: float, num_modes: int, coriolis: bool, stiffening: bool
) -> tuple[float, bool, int]:
    """The speed, whether it is unstable, and the number of negative eigenvalues of the stiffness.

    At a speed that makes the stiffness singular the answer is that of a speed just above.
    """
    try:
        negative = structure.factorize(omega, stiffening=stiffening)
    except SingularError:
        omega *= 1 + NUDGE
        negative = structure.factorize(omega, stiffening=stiffening)
    if negative is None:
        raise InputError(
            "the search needs the signs of the eigenvalues, which MUMPS's Cholesky factorization "
            "tells; leave pc_type and pc_factor_mat_solver_type as they are"
        )
    if not negative or structure.damped or (structure.damping is None and not coriolis):
        return omega, negative > 0, negative
    found = modes_of_factor(
        structure, omega, max(num_modes, negative + SPARE), negative, coriolis=coriolis
    )
    return omega, bool(np.any(_growing(found.eigenvalues, omega))), negative


def _growing(values: ComplexArray, omega: float | Array) -> NDArray[np.bool_]:
    return np.asarray(values.real > GROWTH * np.maximum(np.abs(values), np.abs(omega)))
