"""Time steps of M ü + (C + G(ω)) u̇ + (K + K_σ + K_ω + K_α) u = f(t) with one factorization.

In Arnold and Brüls's form of a generalized-α method, the equation holds at the end of each step,
and weighted means act on an *algorithmic* acceleration. A step is a linear system for the new
acceleration a,

    (S + N(t)) a = b,    S = M + γ' C + β' K,    N = γ' G + β' (K_σ + K_ω + K_α),

with the step size h, γ' = γ h (1-α_f)/(1-α_m) and β' = β h² (1-α_f)/(1-α_m). For the matrices see
`transient`. The constant S is factorized once. N is of the order h ω relative to S and is only
multiplied by vectors. The iteration

    a ← a + S⁻¹ (b - (S + N) a)

converges like (h ω)^k. Each correction costs one solve with S and one product with N. If N is not
small, a minimal residual step (GCR, which is equivalent to GMRES) replaces the full correction.

References:
    M. Arnold, O. Brüls, Convergence of the generalized-α scheme for constrained mechanical systems,
    Multibody System Dynamics 18 (2007) 185-202.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, instance, integer, number, reject
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.parallel import shared_errors
from dolfinx_mbd.time_integration import GeneralizedAlpha

Start = Literal["quasi-static", "undeformed"] | tuple[ArrayLike, ArrayLike]

MAX_STEPS = 1e9  # maximum number of steps of a run; more steps indicate a wrong time
MAX_SOLVES = 30  # maximum number of solves with the factorized S in one step
PLAIN_CONTRACTION = 0.3  # largest reduction factor of the residual for plain corrections
ROUND_OFF_STEPS = 1000.0  # velocities below displacement/(this number · dt) count as round-off


class Equations(Protocol):
    """Equations of motion; vectors are the owned part of a rank, scalars are equal on all ranks."""

    comm: Any
    size: int  # number of owned unknowns
    start_names: str  # description of u and v for errors

    def factorize(self, velocity_factor: float, displacement_factor: float) -> None:
        """Prepare `solve` for S = M + velocity_factor C + displacement_factor K."""

    def move_to(self, t: float) -> None:
        """Set G, K_σ, K_ω, K_α and f for the time t."""

    def balance(self, u: Array, v: Array) -> Array:
        """Return f - (C + G) v - (K + K_σ + K_ω + K_α) u."""

    def motion_terms(self, u: Array, v: Array) -> Array:
        """Return G v + (K_σ + K_ω + K_α) u."""

    def solve(self, r: Array) -> Array:
        """Return S⁻¹ r, in the space of motions that the supports allow."""

    def dot(self, x: Array, y: Array) -> float:
        """Return xᵀy over all ranks."""

    def acceleration(self, t: float, u: Array, v: Array) -> Array:
        """Return the solution a of M a = f - (C + G) v - (K + K_σ + K_ω + K_α) u at time t."""

    def static_solution(self, t: float, v: Array | None = None, a: Array | None = None) -> Array:
        """Return the solution u of (K + K_σ + K_ω + K_α) u = f - (C + G) v - M a at time t."""


class MotionState(NamedTuple):
    """Displacement, velocity, acceleration and the algorithmic acceleration of the method."""

    time: float
    u: Array
    v: Array
    a: Array
    algorithmic: Array
    earlier: tuple[Array, ...] = ()  # accelerations of up to two previous steps


class MotionStepper:
    """Steps of constant size.

    `tolerance` is the permitted error of the displacements and velocities due to the iterative
    solution of the linear system of a step, relative to the largest norm of each so far. `steps` is
    the number of steps, `solves` the number of solves with the factorized S, and `most_solves` the
    largest number of these solves in one step.
    """

    def __init__(
        self,
        equations: Equations,
        dt: float,
        method: GeneralizedAlpha | None = None,
        *,
        tolerance: float = 1e-7,
    ) -> None:
        self.equations, self.dt, self.tolerance = equations, dt, tolerance
        self.method = GeneralizedAlpha.from_spectral_radius() if method is None else method
        m = self.method
        self.ratio = (1 - m.alpha_f) / (1 - m.alpha_m)
        self.velocity_factor = dt * m.gamma * self.ratio
        self.displacement_factor = dt * dt * m.beta * self.ratio
        self.steps = self.solves = self.most_solves = 0
        self._largest_displacement = self._largest_velocity = 0.0
        equations.factorize(self.velocity_factor, self.displacement_factor)

    def step(self, state: MotionState) -> MotionState:
        """Return the state one step later, or raise a `SolverError`."""
        m, h, a = self.method, self.dt, state.a
        t = state.time + h
        # The new algorithmic acceleration is `old_part` plus `ratio` times the new acceleration
        old_part = (m.alpha_f * a - m.alpha_m * state.algorithmic) / (1 - m.alpha_m)
        v = state.v + h * ((1 - m.gamma) * state.algorithmic + m.gamma * old_part)
        u = state.u + h * state.v
        u += h * h * ((0.5 - m.beta) * state.algorithmic + m.beta * old_part)
        self.equations.move_to(t)
        new = self._solve(self.equations.balance(u, v), _extrapolate(state), t)
        u += self.displacement_factor * new
        v += self.velocity_factor * new
        self._largest_displacement = max(self._largest_displacement, self._norm(u))
        self._largest_velocity = max(self._largest_velocity, self._norm(v))
        self.steps += 1
        return MotionState(t, u, v, new, old_part + self.ratio * new, (a, *state.earlier[:1]))

    def _solve(self, b: Array, guess: Array, t: float) -> Array:
        """Return the solution a of (S + N) a = b."""
        eq = self.equations
        x = eq.solve(b - self._motion_terms(guess))
        change = x - guess
        norm, tolerance = self._norm(change), self._error_limit(x)
        z = eq.solve(-self._motion_terms(change))  # the residual, S⁻¹ (b - (S + N) x)
        solves, residual = 2, self._norm(z)
        contraction = residual / norm if norm > 0 else 0.0
        is_plain = contraction <= PLAIN_CONTRACTION
        directions: list[tuple[Array, Array]] = []
        # A last plain correction follows and leaves an error of z times the contraction.
        while not residual * (contraction if is_plain else 1.0) <= tolerance:
            if solves >= MAX_SOLVES or not np.isfinite(residual):
                raise SolverError(
                    f"the step to t = {t:g} s was not solved in {solves} corrections: reduce dt "
                    "times ω, and check that the body is stable at this speed"
                )
            p, q = z, z + eq.solve(self._motion_terms(z))
            solves += 1
            if not is_plain:
                p, q = self._conjugate(p, q, directions)
                length = eq.dot(z, q)
                p, q = length * p, length * q
            x, z = x + p, z - q
            previous, residual = residual, self._norm(z)
            if is_plain:
                contraction = residual / previous
        if is_plain:
            x = x + z
        self.solves += solves
        self.most_solves = max(self.most_solves, solves)
        return x

    def _conjugate(
        self, p: Array, q: Array, directions: list[tuple[Array, Array]]
    ) -> tuple[Array, Array]:
        """Return p and q = (I + S⁻¹N) p, with q a unit vector orthogonal to all earlier q."""
        dot = self.equations.dot
        for P, Q in directions:
            weight = dot(q, Q)
            p, q = p - weight * P, q - weight * Q
        scale = 1 / np.sqrt(dot(q, q))
        directions.append((scale * p, scale * q))
        return directions[-1]

    def _motion_terms(self, a: Array) -> Array:
        """Return N a."""
        return self.equations.motion_terms(self.displacement_factor * a, self.velocity_factor * a)

    def _norm(self, x: Array) -> float:
        """Return the Euclidean norm over all ranks."""
        return float(np.sqrt(self.equations.dot(x, x)))

    def _error_limit(self, x: Array) -> float:
        """Return the error of the acceleration that causes the permitted errors of u and v."""
        size = self._norm(x)
        displacement = max(self._largest_displacement, self.displacement_factor * size)
        velocity = max(
            self._largest_velocity,
            self.velocity_factor * size,
            displacement / (ROUND_OFF_STEPS * self.dt),
        )
        return self.tolerance * min(
            displacement / self.displacement_factor, velocity / self.velocity_factor
        )


def _extrapolate(state: MotionState) -> Array:
    """Return a guess of the next acceleration, extrapolated from up to three earlier ones."""
    if len(state.earlier) == 2:
        last, second_last = state.earlier
        return 3 * (state.a - last) + second_last
    if len(state.earlier) == 1:
        return 2 * state.a - state.earlier[0]
    return state.a


def time_steps(t_start: float, t_end: float, dt: float) -> tuple[int, float]:
    """Return the number of steps, and the step size for which the last step ends at `t_end`."""
    t_start, t_end = number("t_start", t_start, unit="s"), number("t_end", t_end, unit="s")
    dt = number("dt", dt, positive=True, unit="s")
    if not t_end > t_start:
        reject("t_end", t_end, f"after t_start = {t_start:g} s")
    steps = max(1, round(min((t_end - t_start) / dt, 2.0 * MAX_STEPS)))
    if steps > MAX_STEPS:
        reject("dt", dt, f"greater: at most {MAX_STEPS:g} steps are possible")
    return steps, (t_end - t_start) / steps


def check_stepping(method: Any, tolerance: Any, stride: Any) -> None:
    """Raise an error if the method, the tolerance or the stride is unusable."""
    if method is not None:
        hint = "for example GeneralizedAlpha.from_spectral_radius(0.8)"
        instance("method", method, GeneralizedAlpha, hint)
    if not 0 < number("tolerance", tolerance) < 1:
        reject("tolerance", tolerance, "between 0 and 1")
    integer("stride", stride, low=1)


def check_start(start: Any) -> None:
    """Raise an error unless `start` is a known name, or a pair of coordinates and rates."""
    named = isinstance(start, str) and start in ("quasi-static", "undeformed")
    if not named and not (isinstance(start, (tuple, list)) and len(start) == 2):
        expected = "'quasi-static', 'undeformed', or coordinates and their rates"
        reject("elastic_start", start, expected)
    for values in () if named else start:
        array("elastic_start", values, (None,))


def start_state(equations: Equations, start: Start, t: float, dt: float) -> MotionState:
    """Return the state at the start, with an acceleration that satisfies the equations.

    For `start` see `TransientOptions.elastic_start`. If it is quasi-static, velocity and
    acceleration follow from the static solutions at three times, and u is the static solution with
    this velocity and acceleration.
    """
    if isinstance(start, str) and start == "quasi-static":
        first, second, third = (equations.static_solution(t + k * dt) for k in range(3))
        v: Array = np.asarray((4 * second - 3 * first - third) / (2 * dt), dtype=np.float64)
        a: Array = np.asarray((third - 2 * second + first) / dt**2, dtype=np.float64)
        return MotionState(t, equations.static_solution(t, v, a), v, a, a)
    u: Array = np.zeros(equations.size)
    v = u.copy()
    if not isinstance(start, str):
        with shared_errors(equations.comm):
            u, v = (np.array(array("elastic_start", x)) for x in start)
            if u.shape != (equations.size,) or v.shape != u.shape:
                raise InputError(
                    f"elastic_start needs two arrays of shape ({equations.size},), "
                    f"{equations.start_names}; got {u.shape} and {v.shape}",
                    argument="elastic_start",
                )
    a = equations.acceleration(t, u, v)
    return MotionState(t, u, v, a, a)
