"""Time steps of M ü + (C + G(ω)) u̇ + (K + K_σ + K_ω + K_α) u = f(t) with one factorization.

In Arnold and Brüls's form of a generalized-α method, the equation holds at the end of each step,
and weighted means act on an *algorithmic* acceleration. A step is a linear system for the new
acceleration a,

    (S + N(t)) a = b,    S = M + γ' C + β' K,    N = γ' G + β' (K_σ + K_ω + K_α),

with γ' = γ h (1-α_f)/(1-α_m), and β' likewise with β h². The constant S is factorized once. N is of
the order h ω relative to S and is only multiplied by vectors. Therefore

    a ← a + S⁻¹ (b - (S + N) a)

converges like (h ω)^k; each correction costs one solve with S and one product with N, and its
residual is known without S. If N is not small, a minimal residual step (GCR, which is equivalent to
GMRES) replaces the full correction.

References:
    M. Arnold, O. Brüls, Convergence of the generalized-α scheme for constrained mechanical systems,
    Multibody System Dynamics 18 (2007) 185-202.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, instance, integer, number, refuse
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.parallel import agreed
from dolfinx_mbd.time_integration import GeneralizedAlpha

__all__ = [
    "Equations",
    "MotionState",
    "MotionStepper",
    "Start",
    "check_stepping",
    "checked_start",
    "start_state",
    "time_steps",
]

Array = NDArray[np.float64]
Start = Literal["quasi-static", "undeformed"] | tuple[ArrayLike, ArrayLike]

MAX_STEPS = 1e9  # maximum number of steps of a run; more steps indicate a wrong time
MAX_SOLVES = 30  # maximum number of solves with the constant factor in one step
ACCELERATE = 0.3  # contraction of a correction above which minimal residual steps are taken
SLOW = 1000.0  # velocities below displacement/(SLOW dt) are treated as round-off


class Equations(Protocol):
    """Equations of motion; vectors are the owned part of a rank, scalars are equal on all ranks."""

    comm: Any
    size: int  # number of owned unknowns
    start_names: str  # description of u and v for errors

    def factorize(self, by_speed: float, by_move: float) -> None:
        """Prepare `solve` for S = M + by_speed C + by_move K."""

    def move_to(self, t: float) -> None:
        """Set G, K_σ, K_ω, K_α and f for the time t."""

    def balance(self, u: Array, v: Array) -> Array:
        """Return f - (C + G) v - (K + K_σ + K_ω + K_α) u."""

    def moving(self, v: Array, u: Array) -> Array:
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

    `tolerance` is the error of the linear system of a step, relative to the largest displacement
    and velocity so far. `steps`, `solves` and `most_solves` are the numbers of steps, of solves
    with the constant factor, and the largest number of solves in one step.
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
        self.by_speed = dt * m.gamma * self.ratio
        self.by_move = dt * dt * m.beta * self.ratio
        self.steps = self.solves = self.most_solves = 0
        self._greatest_move = self._greatest_speed = 0.0
        equations.factorize(self.by_speed, self.by_move)

    def step(self, state: MotionState) -> MotionState:
        """Return the state one step later, or raise a `SolverError`."""
        m, h, a = self.method, self.dt, state.a
        t = state.time + h
        known = (m.alpha_f * a - m.alpha_m * state.algorithmic) / (1 - m.alpha_m)
        v = state.v + h * ((1 - m.gamma) * state.algorithmic + m.gamma * known)
        u = state.u + h * state.v
        u += h * h * ((0.5 - m.beta) * state.algorithmic + m.beta * known)
        self.equations.move_to(t)
        new = self._solve(self.equations.balance(u, v), _extrapolated(state), t)
        u += self.by_move * new
        v += self.by_speed * new
        self._greatest_move = max(self._greatest_move, self._norm(u))
        self._greatest_speed = max(self._greatest_speed, self._norm(v))
        self.steps += 1
        return MotionState(t, u, v, new, known + self.ratio * new, (a, *state.earlier[:1]))

    def _solve(self, b: Array, guess: Array, t: float) -> Array:
        """Return the solution a of (S + N) a = b."""
        eq = self.equations
        x = eq.solve(b - self._moving(guess))
        change = x - guess
        size, allowed = self._norm(change), self._allowed(x)
        z = eq.solve(-self._moving(change))  # the residual, S⁻¹ (b - (S + N) x)
        solves, left = 2, self._norm(z)
        contraction = left / size if size > 0 else 0.0
        plain = contraction <= ACCELERATE
        directions: list[tuple[Array, Array]] = []
        # After a last plain correction, the error is z multiplied by the contraction.
        while not left * (contraction if plain else 1.0) <= allowed:
            if solves >= MAX_SOLVES or not np.isfinite(left):
                raise SolverError(
                    f"the step to t = {t:g} s was not solved in {solves} corrections: reduce dt "
                    "times ω, and check that the body is stable at this speed"
                )
            p, q = z, z + eq.solve(self._moving(z))
            solves += 1
            if not plain:
                p, q = self._conjugate(p, q, directions)
                amount = eq.dot(z, q)
                p, q = amount * p, amount * q
            x, z = x + p, z - q
            before, left = left, self._norm(z)
            if plain:
                contraction = left / before
        if plain:
            x = x + z
        self.solves += solves
        self.most_solves = max(self.most_solves, solves)
        return x

    def _conjugate(
        self, p: Array, q: Array, directions: list[tuple[Array, Array]]
    ) -> tuple[Array, Array]:
        """Return a direction p whose q = (I + S⁻¹N) p is a unit vector orthogonal to the others."""
        dot = self.equations.dot
        for P, Q in directions:
            weight = dot(q, Q)
            p, q = p - weight * P, q - weight * Q
        scale = 1 / np.sqrt(dot(q, q))
        directions.append((scale * p, scale * q))
        return directions[-1]

    def _moving(self, a: Array) -> Array:
        """Return N a."""
        return self.equations.moving(self.by_speed * a, self.by_move * a)

    def _norm(self, x: Array) -> float:
        return float(np.sqrt(self.equations.dot(x, x)))

    def _allowed(self, x: Array) -> float:
        """Return the error of an acceleration with which u and v reach the tolerance."""
        size = self._norm(x)
        move = max(self._greatest_move, self.by_move * size)
        speed = max(self._greatest_speed, self.by_speed * size, move / (SLOW * self.dt))
        return self.tolerance * min(move / self.by_move, speed / self.by_speed)


def _extrapolated(state: MotionState) -> Array:
    """Return a guess of the next acceleration, extrapolated from up to three times."""
    if len(state.earlier) == 2:
        one, two = state.earlier
        return 3 * (state.a - one) + two
    if len(state.earlier) == 1:
        return 2 * state.a - state.earlier[0]
    return state.a


def time_steps(t_start: float, t_end: float, dt: float) -> tuple[int, float]:
    """Return the number of steps, and the step size with which the last step ends at `t_end`."""
    t_start, t_end = number("t_start", t_start, unit="s"), number("t_end", t_end, unit="s")
    dt = number("dt", dt, positive=True, unit="s")
    if not t_end > t_start:
        refuse("t_end", t_end, f"after t_start = {t_start:g} s")
    steps = max(1, round(min((t_end - t_start) / dt, 2.0 * MAX_STEPS)))
    if steps > MAX_STEPS:
        refuse("dt", dt, f"greater: at most {MAX_STEPS:g} steps are possible")
    return steps, (t_end - t_start) / steps


def check_stepping(method: Any, tolerance: Any, stride: Any) -> None:
    """Raise an error if the method, the tolerance or the stride is unusable."""
    if method is not None:
        hint = "for example GeneralizedAlpha.from_spectral_radius(0.8)"
        instance("method", method, GeneralizedAlpha, hint)
    if not 0 < number("tolerance", tolerance) < 1:
        refuse("tolerance", tolerance, "between 0 and 1")
    integer("stride", stride, low=1)


def checked_start(start: Any) -> None:
    """Raise an error unless `start` is a known name, or a pair of coordinates and rates."""
    named = isinstance(start, str) and start in ("quasi-static", "undeformed")
    if not named and not (isinstance(start, (tuple, list)) and len(start) == 2):
        expected = "'quasi-static', 'undeformed', or coordinates and their rates"
        refuse("elastic_start", start, expected)
    for values in () if named else start:
        array("elastic_start", values, (None,))


def start_state(equations: Equations, start: Start, t: float, dt: float) -> MotionState:
    """Return the state at the start, with an acceleration that satisfies the equations.

    For `start` see `TransientOptions.elastic_start`. If it is quasi-static, the static solutions at
    three times give velocity and acceleration, from which u is computed.
    """
    if isinstance(start, str) and start == "quasi-static":
        now, next_, last = (equations.static_solution(t + k * dt) for k in range(3))
        v: Array = np.asarray((4 * next_ - 3 * now - last) / (2 * dt), dtype=np.float64)
        a: Array = np.asarray((last - 2 * next_ + now) / dt**2, dtype=np.float64)
        return MotionState(t, equations.static_solution(t, v, a), v, a, a)
    u: Array = np.zeros(equations.size)
    v = u.copy()
    if not isinstance(start, str):
        with agreed(equations.comm):
            u, v = (np.array(array("elastic_start", x)) for x in start)
            if u.shape != (equations.size,) or v.shape != u.shape:
                raise InputError(
                    f"elastic_start needs {equations.start_names} of shape ({equations.size},); "
                    f"got {u.shape} and {v.shape}",
                    argument="elastic_start",
                )
    a = equations.acceleration(t, u, v)
    return MotionState(t, u, v, a, a)
