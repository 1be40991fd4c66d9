"""Time steps of M ü + (C + G(ω)) u̇ + (K + K_σ + K_ω + K_α) u = f(t) with one factorization.

A step of the generalized-α family (Arnold and Brüls's form: the equation holds at the end of each
step, and weighted means act on an *algorithmic* acceleration) is a linear system for the new
acceleration a,

    (S + N(t)) a = b,    S = M + γ' C + β' K,    N = γ' G + β' (K_σ + K_ω + K_α),

with γ' = γ h (1-α_f)/(1-α_m) and β' likewise with β h². S is constant and factorized once; N, which
changes with time, is of the order h ω beside it and is only ever applied. So

    a ← a + S⁻¹ (b - (S + N) a)

converges like (h ω)^k; each correction costs one solve with S and one application of N, and its
residual is known without S. Where N is not small, a minimal residual step (GCR, which is GMRES in
another form) takes the place of the full one.

References:
    M. Arnold, O. Brüls, Convergence of the generalized-α scheme for constrained mechanical systems,
    Multibody System Dynamics 18 (2007) 185-202.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.time_integration import GeneralizedAlpha

__all__ = ["Equations", "MotionState", "MotionStepper"]

Array = NDArray[np.float64]

MAX_SOLVES = 30
"""Solves with the constant factor in one step, after which it has failed."""

ACCELERATE = 0.3
"""Contraction of a correction above which minimal residual steps are taken."""


SLOW = 1000.0
"""Steps in which a displacement comes about at least: slower velocities are taken for round-off."""


class Equations(Protocol):
    """What the steps need of the equations; vectors are a rank's part, numbers are everywhere the
    same."""

    def factorize(self, by_speed: float, by_move: float) -> None:
        """Prepare `solve` for S = M + by_speed C + by_move K."""

    def move_to(self, t: float) -> None:
        """Make G, K_σ, K_ω, K_α and f those of a time."""

    def balance(self, u: Array, v: Array) -> Array:
        """f - (C + G) v - (K + K_σ + K_ω + K_α) u."""

    def moving(self, v: Array, u: Array) -> Array:
        """G v + (K_σ + K_ω + K_α) u."""

    def solve(self, r: Array) -> Array:
        """S⁻¹ r, in the space of motions that the supports allow."""

    def dot(self, x: Array, y: Array) -> float:
        """Over all ranks."""


class MotionState(NamedTuple):
    """Displacement, velocity, acceleration and the method's algorithmic acceleration.

    Attributes:
        time: s.
        u, v, a: m, m/s, m/s², a rank's part (or elastic coordinates).
        algorithmic: m/s².
        earlier: Accelerations of the one or two steps before.
    """

    time: float
    u: Array
    v: Array
    a: Array
    algorithmic: Array
    earlier: tuple[Array, ...] = ()


@dataclass
class _Sizes:
    """Greatest norms so far, to which errors are relative."""

    move: float = 0.0
    speed: float = 0.0


class MotionStepper:
    """Takes steps of constant size.

    Attributes:
        steps: How many were taken.
        solves: Solves with the constant factor, all steps together.
        most_solves: In any one step.

    Args:
        equations: What to solve.
        dt: Step, s.
        method: Of the generalized-α family; None: ρ∞ = 0.8.
        tolerance: Error of a step's linear system, relative to the greatest displacement and
            velocity so far.
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
        self._sizes = _Sizes()
        equations.factorize(self.by_speed, self.by_move)

    def step(self, state: MotionState) -> MotionState:
        """The state one step later.

        Raises:
            RuntimeError: The linear system was not solved.
        """
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
        self._measure(u, v)
        self.steps += 1
        return MotionState(t, u, v, new, known + self.ratio * new, (a, *state.earlier[:1]))

    def _solve(self, b: Array, guess: Array, t: float) -> Array:
        """a of (S + N) a = b."""
        eq = self.equations
        x = eq.solve(b - self._moving(guess))
        change = x - guess
        size, allowed = self._norm(change), self._allowed(x)
        z = eq.solve(-self._moving(change))  # the residual, S⁻¹ (b - (S + N) x)
        solves, left = 2, self._norm(z)
        contraction = left / size if size > 0 else 0.0
        plain = contraction <= ACCELERATE
        directions: list[tuple[Array, Array]] = []
        # What a last plain correction leaves is smaller than z by the contraction.
        while not left * (contraction if plain else 1.0) <= allowed:
            if solves >= MAX_SOLVES or not np.isfinite(left):
                raise SolverError(
                    f"the step to t = {t:g} s was not solved in {solves} corrections: the terms "
                    "of the motion are not small beside inertia and stiffness (is dt times ω "
                    "small, and the body stable at this speed?)"
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
        """A direction p whose q = (I + S⁻¹N) p is a unit vector normal to those of the others."""
        dot = self.equations.dot
        for P, Q in directions:
            weight = dot(q, Q)
            p, q = p - weight * P, q - weight * Q
        scale = 1 / np.sqrt(dot(q, q))
        directions.append((scale * p, scale * q))
        return directions[-1]

    def _moving(self, a: Array) -> Array:
        """N a."""
        return self.equations.moving(self.by_speed * a, self.by_move * a)

    def _norm(self, x: Array) -> float:
        return float(np.sqrt(self.equations.dot(x, x)))

    def _allowed(self, x: Array) -> float:
        """Error of an acceleration that displacement and velocity do not see."""
        size, sizes = self._norm(x), self._sizes
        move = max(sizes.move, self.by_move * size)
        speed = max(sizes.speed, self.by_speed * size, move / (SLOW * self.dt))
        return self.tolerance * min(move / self.by_move, speed / self.by_speed)

    def _measure(self, u: Array, v: Array) -> None:
        self._sizes.move = max(self._sizes.move, self._norm(u))
        self._sizes.speed = max(self._sizes.speed, self._norm(v))


def _extrapolated(state: MotionState) -> Array:
    """Guess of the next acceleration, from up to three times."""
    if len(state.earlier) == 2:
        one, two = state.earlier
        return 3 * (state.a - one) + two
    if len(state.earlier) == 1:
        return 2 * state.a - state.earlier[0]
    return state.a
