"""Time integration: generalized-α on R³×SO(3) for index-3 systems.

A method is four numbers; the stepper takes a state and returns the next.  Increments of rotations
are rotation vectors in body components, so no parameter constraint is needed.

References:
    M. Arnold, O. Brüls, A. Cardona, Convergence analysis of generalized-α Lie group time
    integrators for constrained systems, Multibody Dynamics 2011.
    C. L. Bottasso, D. Dopico, L. Trainelli, On the optimal scaling of index three DAEs in multibody
    dynamics, Multibody System Dynamics 19 (2008) (scaling of rows and multipliers with dt).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import flag, instance, number
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.kernels.time_steps import correct, predict, right_side
from dolfinx_mbd.multibody.assembly.assembler import Assembler
from dolfinx_mbd.multibody.assembly.rates import jerk_at, restart
from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.stepping.convergence import Measure, Monitor
from dolfinx_mbd.multibody.stepping.factors import (
    DenseFactor,
    Factor,
    SingularMatrix,
    SparseFactor,
    restored,
)
from dolfinx_mbd.multibody.stepping.iteration_matrix import IterationMatrix
from dolfinx_mbd.time_integration import GeneralizedAlpha

__all__ = ["StepError", "Stepper"]

Array = NDArray[np.float64]

_MAX_ITERATIONS = 15
_LARGE = 400  # rows from which the iteration matrix of many bodies is sparse


class StepError(SolverError):
    """A time step does not converge.

    Attributes:
        time: The time that could not be reached, s.
        solution: What was computed before, set by :func:`~dolfinx_mbd.multibody.simulate`.
    """

    def __init__(self, message: str, time: float) -> None:
        super().__init__(message)
        self.time = time
        self.solution: object | None = None


class Stepper:
    """Takes steps of a system with one method.

    Args:
        system: The mechanism.
        method: A row of the family; None: ρ∞ = 0.8.
        tolerance: Greatest residual of a converged step: that of a body is relative to the sum of
            the magnitudes of the forces, moments and elastic forces on that body; constraints are
            held to what that means for the accelerations of their bodies.
        sparse: Whether the iteration matrix is sparse; None: if it is large and has many bodies.
        reuse: Whether the factorized iteration matrix is kept, from iteration to iteration and step
            to step, as long as corrections with it converge fast.  Results agree to the tolerance.
    """

    def __init__(
        self,
        system: SystemData,
        method: GeneralizedAlpha | None = None,
        *,
        tolerance: float = 1e-8,
        sparse: bool | None = None,
        reuse: bool = True,
    ) -> None:
        hint = "for example GeneralizedAlpha.from_spectral_radius(0.8)"
        self.system = instance("system", system, SystemData)
        self.method: GeneralizedAlpha = (
            GeneralizedAlpha.from_spectral_radius()
            if method is None
            else instance("method", method, GeneralizedAlpha, hint)
        )
        self.tolerance = number("tolerance", tolerance, positive=True, high=1.0)
        self.reuse = flag("reuse", reuse)
        self.iterations = 0
        self.factorizations = 0
        m = self.method
        self._numbers = np.array([m.alpha_m, m.alpha_f, m.beta, m.gamma])
        self._right = np.zeros(system.num_velocities + system.num_constraints)
        self._at = Assembler(system)
        self._factor: Factor | None = None
        size = system.num_velocities + system.num_constraints
        many = len(system.bodies) > 20
        self.sparse = (size > _LARGE and many) if sparse is None else flag("sparse", sparse)
        self._mass = float(np.mean([b.typical_mass for b in system.bodies if b.num_velocities]))
        self._matrix = IterationMatrix(system, self._mass, self.sparse)
        self._measure = Measure(system)
        # what users give may jump; bodies in floating frames, joints and drivers do not
        self._smooth = not (system.loads or self._at.has_others)

    @property
    def assembler(self) -> Assembler:
        """The equations where the last step was accepted."""
        return self._at

    def begin(self, state: State, dt: float) -> State:
        """A consistent state made ready for the first step.

        Solutions of the method have algorithmic accelerations off by (α_m − α_f) dt v̈ and, in
        constrained directions, velocities off by (1/6 − β + (γ − 1/2)/2) dt² v̈; starting there
        avoids the first-order transient of accelerations and multipliers that an exact start has.
        """
        if "algorithmic" in state.memory:
            return state
        m = self.method
        jerk, held = jerk_at(self.system, state, dt)
        memory = {
            "algorithmic": state.a + (m.alpha_m - m.alpha_f) * dt * jerk,
            "velocity": state.v + (1 / 6 - m.beta + 0.5 * (m.gamma - 0.5)) * dt * dt * held,
        }
        return replace(state, memory=memory)

    def step(self, state: State, dt: float) -> State:
        """The state at ``state.time + dt``.

        Raises:
            StepError: If Newton's method does not converge; the message says when and where it is
                stuck.
            ValueError: If a driver turns by half a turn or more in the step.
        """
        m, at = self.method, self._at
        if self.system.drivers:
            self.system.check_step(state.time, dt)
        t = state.time + dt
        old = state.memory.get("algorithmic", state.a)
        ratio = (1 - m.alpha_f) / (1 - m.alpha_m)
        by_rate, by_speed = 1 / (dt * dt * m.beta * ratio), m.gamma / (dt * m.beta)

        at.a[:], at.lam[:] = _extrapolated(state)
        velocity = state.memory.get("velocity", state.v)
        new, move = np.empty(len(old)), np.empty(len(old))
        predict(at.a, state.a, old, velocity, self._numbers, dt, new, move, at.v)
        at.angles[:] = state.angles
        if self._factor is not None and self._factor.dt != dt:
            self._factor = None

        monitor = Monitor(self._smooth)
        for iteration in range(_MAX_ITERATIONS + 1):
            at.move(state.q, move)
            at.residual(t)
            error = self._error(by_rate)
            monitor.see(error)
            if error <= 1.0 or monitor.exhausted:
                return self._accept(state, t, new, monitor)
            if not np.isfinite(error) or iteration == _MAX_ITERATIONS:
                break
            left = _MAX_ITERATIONS - iteration - 1
            if self._factor is None or not self.reuse or monitor.too_slow(left):
                self._refactor(t, dt, move, by_rate, by_speed)
                monitor.renewed()
            monitor.tiny = self._correct(move, new, by_rate, by_speed, ratio)
            if monitor.last:
                at.move(state.q, move)
                at.update_poses(t)
                return self._accept(state, t, new, monitor)
        self._factor = None
        raise self._failure(t, dt)

    def memory(self) -> dict[str, Any]:
        """What steps share, for a checkpoint: counts, and the factorization if there is one."""
        counts = {"iterations": self.iterations, "factorizations": self.factorizations}
        return counts if self._factor is None else counts | self._factor.memory()

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on with the :meth:`memory` of another stepper of the same system."""
        self.iterations = int(memory["iterations"])
        self.factorizations = int(memory["factorizations"])
        self._factor = restored(memory)

    # ---- changes of the step --------------------------------------------------------------------
    def rescaled(self, state: State, dt: float, new: float) -> State:
        """A state after a step ``dt`` made ready for a step ``new``.

        The algorithmic accelerations are off the true ones in proportion to dt, and in constrained
        directions velocities are off in proportion to dt² (:meth:`begin`).  Without bringing both
        to the new step each change of the step starts a transient of first order.  In constrained
        directions both are made from the constraints: taken over, their errors would add up.
        """
        if new == dt:
            return state
        m = self.method
        offset = state.memory["algorithmic"] - state.a
        fresh, held, free = restart(self.system, state, dt, offset)
        lag = (m.alpha_m - m.alpha_f) * new
        off = (1 / 6 - m.beta + 0.5 * (m.gamma - 0.5)) * new * new
        memory = {
            "algorithmic": fresh.a + (new / dt) * free + lag * held,
            "velocity": fresh.v + off * held,
            "earlier": _resampled(state, new / dt),
        }
        return replace(fresh, memory=memory)

    def local_error(self, before: State, after: State, dt: float) -> tuple[Array, Array]:
        """Local error of the coordinates of a step, as increments (nv,), and the mass matrix.

        That of Newmark's formula is c dt³ v̈ with c = β + (α_m − α_f)/2 − 1/6.  The iteration matrix
        takes it to the motions that the constraints leave, and takes out what is too stiff for the
        step.
        """
        m, at, n = self.method, self._at, self.system.num_velocities
        if self._factor is None or self._factor.dt != dt:
            ratio = (1 - m.alpha_f) / (1 - m.alpha_m)
            by_rate, by_speed = 1 / (dt * dt * m.beta * ratio), m.gamma / (dt * m.beta)
            at.q[:], at.v[:], at.a[:], at.lam[:] = after.q, after.v, after.a, after.lam
            at.residual(after.time)
            self._refactor(after.time, dt, np.zeros(n), by_rate, by_speed)
        assert self._factor is not None
        c = m.beta + 0.5 * (m.alpha_m - m.alpha_f) - 1 / 6
        right = np.zeros(n + self.system.num_constraints)
        right[:n] = self._factor.mass @ (c * dt * dt * (after.a - before.a))
        return self._factor.solve(right)[:n], self._factor.mass

    # ---- parts of a step ------------------------------------------------------------------------
    def _error(self, by_rate: float) -> float:
        """Greatest residual over its tolerance."""
        at = self._at
        return self._measure.error(
            at.rows, at.scale, at.values, self._length, self.tolerance, by_rate
        )

    @property
    def _length(self) -> float:
        """Greatest coordinate of a frame, m."""
        return float(np.max(np.abs(self._at.position), initial=1e-3))

    def _refactor(self, t: float, dt: float, move: Array, by_rate: float, by_speed: float) -> None:
        matrix, mass = self._matrix.at(self._at, t, move, by_rate, by_speed)
        try:
            self._factor = (
                SparseFactor(matrix, dt, mass) if self.sparse else DenseFactor(matrix, dt, mass)
            )
        except SingularMatrix as error:
            raise StepError(
                f"the iteration matrix is singular at t = {t:g} s "
                f"({_where(self.system, error.row)}); the mechanism may be in a singular position "
                "or have redundant constraints",
                t,
            ) from None
        self.factorizations += 1

    def _correct(
        self, move: Array, new: Array, by_rate: float, by_speed: float, ratio: float
    ) -> bool:
        """Solve for a correction and add it to increments, v, a, algorithmic a and λ.

        Return whether the increments were round-off.
        """
        assert self._factor is not None
        at = self._at
        right_side(at.rows, at.values, by_rate, self._mass, self._right)
        solution = self._factor.solve(self._right)
        correct(solution, by_speed, by_rate, ratio, self._mass, move, at.v, at.a, new, at.lam)
        self.iterations += 1
        return self._measure.is_round_off(solution[: len(move)], self._length)

    def _accept(self, state: State, t: float, new: Array, monitor: Monitor) -> State:
        at = self._at
        if monitor.slow:
            self._factor = None
        earlier = (state.a, state.lam), *state.memory.get("earlier", ())[:1]
        memory = {"algorithmic": new, "earlier": earlier}
        return replace(at.state(t), memory=memory)

    def _failure(self, t: float, dt: float) -> StepError:
        s, at = self.system, self._at
        where = []
        if len(at.values):
            row = int(np.argmax(np.abs(np.nan_to_num(at.values, nan=np.inf))))
            where.append(f"{s.constraint_name(row)} is off by {abs(at.values[row]):.3g}")
        relative = np.abs(np.nan_to_num(at.rows, nan=np.inf)) / np.maximum(at.scale, 1e-300)
        row = int(np.argmax(relative))
        where.append(
            f"the largest unbalanced row is {s.row_name(row)}, {abs(at.rows[row]):.3g} (N or N m)"
        )
        return StepError(
            f"the step from t = {t - dt:.6g} s to {t:.6g} s (dt = {dt:g} s) does not converge in "
            f"{_MAX_ITERATIONS} iterations: {'; '.join(where)}. Try a smaller dt; if that fails, "
            "look for a singular position, a load that jumps, or a body that is too soft",
            t,
        )


def _extrapolated(state: State) -> tuple[Array, Array]:
    """Guess of the next accelerations and multipliers, from up to three times."""
    earlier = state.memory.get("earlier", ())
    if len(earlier) == 2:
        (a1, lam1), (a2, lam2) = earlier
        return 3 * (state.a - a1) + a2, 3 * (state.lam - lam1) + lam2
    if len(earlier) == 1:
        ((a1, lam1),) = earlier
        return 2 * state.a - a1, 2 * state.lam - lam1
    return state.a.copy(), state.lam


def _resampled(state: State, ratio: float) -> tuple[tuple[Array, Array], ...]:
    """The values one and two new steps earlier, on the polynomial through those of the old step."""
    earlier = state.memory["earlier"]

    def at(x: float, now: Array, *before: Array) -> Array:
        slope = now - before[0]
        if len(before) == 1:
            return now + x * slope
        return now + x * slope + 0.5 * x * (x + 1) * (now - 2 * before[0] + before[1])

    pairs = (state.a, *(a for a, _ in earlier)), (state.lam, *(lam for _, lam in earlier))
    return tuple((at(-k * ratio, *pairs[0]), at(-k * ratio, *pairs[1])) for k in (1, 2))


def _where(system: SystemData, row: int) -> str:
    if row < system.num_velocities:
        return system.row_name(row)
    return system.constraint_name(row - system.num_velocities)
