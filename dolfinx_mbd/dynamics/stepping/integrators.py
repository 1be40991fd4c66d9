"""Time integration of index-3 systems on R³×SO(3) by generalized-α methods.

Increments of rotations are rotation vectors in body components.

References:
    M. Arnold, O. Brüls, A. Cardona, Convergence analysis of generalized-α Lie group time
    integrators for constrained systems, Multibody Dynamics 2011.
    C. L. Bottasso, D. Dopico, L. Trainelli, On the optimal scaling of index three DAEs in multibody
    dynamics, Multibody System Dynamics 19 (2008) (scaling of equations and multipliers).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import flag, instance, number
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.assembly.loads import CONTENT_MEMORY
from dolfinx_mbd.dynamics.assembly.rates import jerk_at, restart
from dolfinx_mbd.dynamics.stepping.convergence import Measure, Monitor
from dolfinx_mbd.dynamics.stepping.internal_unknowns import InternalUnknowns
from dolfinx_mbd.dynamics.stepping.iteration_matrix import (
    DenseFactor,
    Factor,
    IterationMatrix,
    SingularMatrix,
    SparseFactor,
    restore_factor,
)
from dolfinx_mbd.dynamics.stepping.step_errors import (
    StepError,
    check_conserving,
    failed_step,
    far_frames,
)
from dolfinx_mbd.dynamics.stepping.step_factor import StepFactor
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.kernels.time_steps import correct, predict, right_hand_side
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.time_integration import GeneralizedAlpha

Derivatives = tuple[float, float, float]

_MAX_ITERATIONS = 15
# Largest fraction of an oil film that a correction may close, and largest number of halvings
_LARGEST_CLOSURE, _HALVINGS = 0.7, 8
_STEP_HALVINGS = 6  # largest number of halvings of a step with bodies on their mesh or oil films
# Share of the last change of accelerations that continues in a smooth motion; below it, the mean of
# two accelerations would have predicted the next one better than their extrapolation
_ALIKE = 0.25
_NO_CLOSURE = 0.01  # a displacement below this fraction of the gap is not checked
_JUMP_ITERATIONS = 2  # number of corrections after a jump; the second is for outdated matrices
# The matrix of a system of many bodies is sparse above this number of unknowns
_SPARSE_UNKNOWNS = 400


class Stepper:
    """Time steps of a system with a generalized-α method, for user-defined time loops.

    Args:
        system: The mechanism.
        method: Generalized-α method; by default with ρ∞ = 0.8.
        tolerance: Largest residual of a converged step. The residual of a body is relative to the
            forces, moments and elastic forces on that body. The error of the force and of the
            moment of each joint and driver in one iteration is at most five tolerances of this
            force or moment. In a run, the errors of these forces are larger, up to a few 1e-6 of
            their size for the default tolerance.
        sparse: Whether the iteration matrix is sparse; by default it is if the system has more than
            20 bodies and 400 unknowns.
        reuse: Whether iterations and steps share a factorized iteration matrix while they converge
            fast. The results with and without reuse agree within the tolerance.

    Attributes:
        iterations: Number of Newton iterations.
        factorizations: Number of factorizations of the iteration matrix.
        halvings: Number of steps with bodies on their mesh, or with oil films, that failed and were
            halved.
        assembler: Assembler of the equations at the last accepted state.
        is_evaluated: Whether the assembler contains the residual of this state. It does not if the
            residual after the last correction was predicted.

    Example:
        >>> stepper = mbd.dynamics.Stepper(pendulum)
        >>> state = stepper.begin(mbd.dynamics.consistent_state(pendulum), 0.01)
        >>> while state.time < 0.1 - 1e-9:
        ...     state = stepper.step(state, 0.01)
        >>> print(f"{state.time:.2f} s, {state.angles[0]:.4f} rad")
        0.10 s, -0.0488 rad
    """

    def __init__(
        self,
        system: System,
        method: GeneralizedAlpha | None = None,
        *,
        tolerance: float = 1e-8,
        sparse: bool | None = None,
        reuse: bool = True,
    ) -> None:
        self.system = instance("system", system, System)
        if method is None:
            method = GeneralizedAlpha.from_spectral_radius()
        hint = "for example GeneralizedAlpha.from_spectral_radius(0.8)"
        self.method: GeneralizedAlpha = instance("method", method, GeneralizedAlpha, hint)
        self.tolerance = number("tolerance", tolerance, positive=True, high=1.0)
        self.reuse = flag("reuse", reuse)
        self.iterations = self.factorizations = self.halvings = 0
        size = system.num_velocities + system.num_constraints
        large = size > _SPARSE_UNKNOWNS and len(system.bodies) > 20
        self.sparse = large if sparse is None else flag("sparse", sparse)
        self.assembler = Assembler(system)
        self._parameters = np.array([method.alpha_m, method.alpha_f, method.beta, method.gamma])
        if method.conserves:
            check_conserving(system)
        self._internal = InternalUnknowns(system, self._parameters, conserves=method.conserves)
        self._condenses = bool(self._internal)  # whether bodies condense unknowns
        self._rhs = np.zeros(size)
        self._factor: Factor | None = None
        self.is_evaluated = False
        self._mass = float(np.mean([b.typical_mass for b in system.bodies if b.num_velocities]))
        self._matrix = IterationMatrix(system, self._mass, self.sparse)
        self._measure, self._no_noise = Measure(system), np.zeros(system.num_constraints)
        # loads and other bodies may have jumps; floating bodies, joints and drivers are smooth
        self._gaps: Array = np.zeros((0, 2))  # gaps and clearances of oil films
        # contents of oil films before the step, and its length
        self._content: tuple[Array, float] = np.zeros(0), 0.0
        self._has_films = bool(self.assembler.loads.films())
        # the step into a stiff contact is repeated if it fails; a film must not be closed then
        self._repeats = self.assembler.loads.has_contacts and not self._has_films
        self._smooth = not (system.loads or self.assembler.frames.has_others)

    def begin(self, state: State, dt: float) -> State:
        """Return a consistent state prepared for the first step.

        The algorithmic accelerations of the method are larger than the accelerations by (α_m − α_f)
        dt v̈. In constrained directions, the velocities of the method are larger than the exact
        velocities by (1/6 − β + (γ − 1/2)/2) dt² v̈. A start with these differences avoids
        first-order transients.

        Args:
            state: A state returned by `consistent_state` or by an earlier step.
            dt: First time step, s.
        """
        if "algorithmic" in state.memory:
            return state
        self._check_films(state)
        if self._internal:
            memory = {"algorithmic": state.a, **self._internal.initial_memory(state)}
            return replace(state, memory=memory)
        jerk, constrained = jerk_at(self.system, state, dt)
        acceleration_offset, velocity_offset = self._start_offsets(dt)
        return replace(
            state,
            memory={
                "algorithmic": state.a + acceleration_offset * jerk,
                "velocity": state.v + velocity_offset * constrained,
            },
        )

    def step(self, state: State, dt: float) -> State:
        """Return the state at `state.time + dt`.

        Args:
            state: A state returned by `begin`, `rescaled` or an earlier step.
            dt: Time step, s.

        Raises:
            StepError: Newton's method does not converge; the message names the time and equation.
            InputError: A driver rotates by half a turn or more in the step.
        """
        if self.system.drivers:
            self._check_turns(state.time, number("dt", dt))
        return self._step(state, dt)

    def step_in_parts(self, state: State, dt: float, halvings: int = _STEP_HALVINGS) -> State:
        """Return the result of `step`, of two halves if a step with oil films fails.

        The film of a journal that approaches a bore fast may need shorter steps.
        """
        try:
            return self.step(state, dt)
        except StepError:
            if not (self._has_films and halvings):
                raise
            try:
                return self._two_halves(state, dt, halvings)
            except StepError:
                pass
            raise  # the error of the whole step names the cause

    def _two_halves(self, state: State, dt: float, halvings: int) -> State:
        """Return the state after two halves of a step, or parts of them."""
        self.halvings += 1
        half, films = 0.5 * dt, _content(state)
        if "earlier" in state.memory:
            state = self.rescaled(state, dt, half)
        else:  # the first step
            state = self.begin(replace(state, memory=films), half)
        for _ in range(2):
            state = self.step_in_parts(state, half, halvings - 1)
        return self.rescaled(state, half, dt)

    def _check_turns(self, t: float, dt: float) -> None:
        """Raise an error if a driver rotates by half a turn or more; see `System.check_step`."""
        before, after = (self.assembler.driver_motions(time) for time in (t, t + dt))
        if any(abs(one[0] - two[0]) >= math.pi for one, two in zip(before, after, strict=True)):
            self.system.check_step(t, dt)

    def repeat(self, state: State, dt: float, corrections: int, keeps: bool) -> State:
        """Return the result of an earlier `step` bitwise, without its last test of convergence.

        The counters and the factorization must be those before the earlier step.

        Args:
            state: The state before the step.
            dt: Time step, s.
            corrections: Number of corrections of the earlier step.
            keeps: Whether the factorization was kept after it; see `has_factor`.
        """
        state = self._step(state, dt, corrections)
        if not keeps:
            self._factor = None
        return state

    @property
    def has_factor(self) -> bool:
        """Whether the next step starts with the factorization of earlier steps."""
        return self._factor is not None

    def _step(self, state: State, dt: float, corrections: int = -1) -> State:
        """Return the state after a step; if `corrections` is positive, make this number."""
        if self._condenses:
            return self._halved(state, dt, _STEP_HALVINGS)
        before = self.iterations
        try:
            return self._iterate(state, dt, corrections)
        except StepError:
            if not self._repeats:
                raise
            corrections = max(corrections - (self.iterations - before), -1)
        # an impact may be the cause: the matrix and the accelerations of before do not help then
        return self._iterate(state, dt, corrections, from_rest=True)

    def _halved(self, state: State, dt: float, halvings: int) -> State:
        """Return the state after a step with condensed unknowns, of two halves if it fails."""
        try:
            return self._step_with_nodes(state, dt)
        except StepError:
            if not halvings:
                raise
        self.halvings += 1
        half = 0.5 * dt
        for _ in range(2):
            # an extrapolation of the accelerations may be the cause of the failure
            memory = self._internal.without_history(self.rescaled(state, dt, half).memory)
            state = self._halved(replace(state, memory=memory), half, halvings - 1)
            state = self.rescaled(state, half, dt)
        return state

    def _step_with_nodes(self, state: State, dt: float) -> State:
        """Return the state after one step; raise an error also if a cell is inverted."""
        self._factor = None  # the matrix of the step turns with the bodies
        t = state.time + dt
        try:
            with self._internal.step(state, dt, self._step_derivatives(dt)):
                state = self._iterate(state, dt, -1)
        except StepError:
            raise
        except SolverError as error:  # of a matrix that is not positive definite
            raise StepError(
                f"the step from t = {t - dt:.6g} s to {t:.6g} s (dt = {dt:g} s) fails: {error}"
                f"{self._internal.inverted(self.assembler)}. A body on its mesh is compressed too "
                "strongly, or dt is too large",
                t,
            ) from error
        if text := self._internal.inverted(self.assembler):
            raise StepError(f"the step to t = {t:.6g} s (dt = {dt:g} s) fails{text}", t)
        return state

    def _iterate(
        self, state: State, dt: float, corrections: int, *, from_rest: bool = False
    ) -> State:
        """Return the state after the iterations of a step; see `_step`.

        With `from_rest`, they begin with zero accelerations, each one has its own matrix, and a
        correction that increases the residual is halved.
        """
        eqs, t = self.assembler, state.time + dt
        derivatives = self._step_derivatives(dt)
        if eqs.loads.has_content:
            self._content = eqs.content(state), dt
            eqs.loads.begin_step(*self._content)
        eqs.angles[:] = state.angles
        eqs.rate_scale = 1.0 / derivatives[1]
        move, algorithmic = self._predict(state, dt, from_rest)
        reuse, most = self.reuse and not from_rest, _MAX_ITERATIONS * (3 if from_rest else 1)
        correct_by = self._search if from_rest else self._apply_correction
        if self._has_films:
            self._correct_prediction(state, dt, move, algorithmic, derivatives)
        if self._factor is not None and self._factor.dt != dt:
            self._factor = None
        monitor = Monitor(self._smooth)
        for iteration in range(most + 1):
            eqs.move(state.q, move)
            error = self._residual_error(t, derivatives[0])
            if not math.isfinite(error):
                break
            outdated = self._factor is not None
            if self._factor is None:
                self._refactor(t, dt, move, derivatives)
            solution = self._correction(derivatives[0])
            if len(eqs.lam):
                last = error <= 1.0 or monitor.is_round_off
                error = max(error, self._joint_error(solution, derivatives[0], last))
            monitor.add_error(error)
            if self._condenses:
                self._internal.add_error(error)
            self.is_evaluated = error <= 1.0 or monitor.exhausted
            if self.is_evaluated:
                return self._accept(state, t, algorithmic, monitor)
            if not math.isfinite(error) or iteration == most:
                break
            remaining = most - iteration - 1
            if outdated and (not reuse or monitor.too_slow(remaining)):
                self._refactor(t, dt, move, derivatives)
                solution, outdated = self._correction(derivatives[0]), False
            if not outdated:
                monitor.reset()
            monitor.is_round_off = correct_by(state, t, move, algorithmic, derivatives, solution)
            if monitor.skips_residual or iteration + 1 == corrections:
                eqs.move(state.q, move)
                eqs.update_poses(t)
                return self._accept(state, t, algorithmic, monitor)
        self._factor = None
        overload = _overload(eqs, 0.0) if self._has_films else ""
        raise failed_step(
            t, dt, eqs, overload + far_frames(self.system) + self._internal.inverted(eqs)
        )

    def adopt(self, factor: StepFactor) -> None:
        """Let the next step start with the factor of the exact tangent at the last state."""
        if not self.sparse:
            self._factor = factor

    def memory(self) -> dict[str, Any]:
        """Return the counters and the last factorization, to store them in a checkpoint."""
        counts: dict[str, Any] = {
            "iterations": self.iterations,
            "factorizations": self.factorizations,
            "halvings": self.halvings,
            **self._internal.factor_memory(),
        }
        return counts if self._factor is None else counts | self._factor.memory()

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Restore the data that `memory` of another stepper of the same system returned."""
        self.iterations = int(memory["iterations"])
        self.factorizations = int(memory["factorizations"])
        self.halvings = int(memory.get("halvings", 0))
        self._factor = restore_factor(memory)
        self._internal.restore(memory)

    # ---- changes of the step --------------------------------------------------------------------
    def rescaled(self, state: State, dt: float, new: float) -> State:
        """Return the state after a step of length `dt`, prepared for a step of length `new`.

        The differences described in `begin` are adapted to the new step. In constrained directions
        the differences are computed from the constraints; otherwise errors would accumulate.
        """
        if new == dt:
            return state
        if self._internal:
            return self._rescaled_with_nodes(state, new / dt)
        consistent, constrained, free, by_positions = restart(
            self.system, state, dt, state.memory["algorithmic"] - state.a
        )
        acceleration_offset, velocity_offset = self._start_offsets(new)
        memory = {
            "algorithmic": consistent.a + (new / dt) * free + acceleration_offset * constrained,
            "velocity": consistent.v + velocity_offset * by_positions,
            "earlier": _resample(state, new / dt),
            **_content(state),
        }
        return replace(consistent, memory=memory)

    def _rescaled_with_nodes(self, state: State, ratio: float) -> State:
        """Return the state for a longer step if bodies condense unknowns: also their memory."""
        memory = {
            "algorithmic": state.a + ratio * (state.memory["algorithmic"] - state.a),
            **self._internal.rescaled(state, ratio),
            **_content(state),
        }
        if "earlier" in state.memory:
            memory["earlier"] = _resample(state, ratio)
        return replace(state, memory=memory)

    def after_jump(self, state: State, dt: float) -> State:
        """Return a state prepared for the next step after a jump of the loads at its time.

        Accelerations and multipliers change, so that the loads of the next step act from its
        beginning. Motions that are too stiff for the step do not react to the jump here; they
        follow the loads in the next step.

        Args:
            state: A state returned by `begin` or `step` before the loads changed.
            dt: Next time step, s.
        """
        if self._internal:  # the nodes of bodies on their mesh follow the loads in the next step
            return state
        eqs, derivatives, n = self.assembler, self._step_derivatives(dt), self.system.num_velocities
        eqs.put(state)
        for _ in range(_JUMP_ITERATIONS):
            eqs.residual(state.time)
            if self._factor is None or self._factor.dt != dt:
                self._refactor(state.time, dt, np.zeros(n), derivatives)
            assert self._factor is not None
            rhs = np.zeros(len(self._rhs))
            rhs[:n] = -eqs.rows
            solution = self._factor.solve(rhs)
            eqs.a += solution[:n]
            eqs.lam += self._mass * solution[n:]
        a, lam = eqs.a - state.a, eqs.lam - state.lam
        memory = state.memory | {
            "algorithmic": state.memory["algorithmic"] + a,
            "earlier": tuple((x + a, y + lam) for x, y in state.memory.get("earlier", ())),
        }
        return replace(state, a=state.a + a, lam=state.lam + lam, memory=memory)

    def local_error(self, before: State, after: State, dt: float) -> tuple[Array, Array]:
        """Return the local error of the increments of a step (nv,), and the mass matrix.

        The error of Newmark's formula is c dt³ v̈; see `GeneralizedAlpha.error_constant`. The
        iteration matrix projects this error onto the free motions and reduces components that are
        too stiff for the step.
        """
        eqs, n = self.assembler, self.system.num_velocities
        if self._factor is None or self._factor.dt != dt:
            eqs.put(after)
            eqs.residual(after.time)
            self._refactor(after.time, dt, np.zeros(n), self._step_derivatives(dt))
        assert self._factor is not None
        c = self.method.error_constant
        rhs = np.zeros(n + self.system.num_constraints)
        rhs[:n] = self._factor.mass @ (c * dt * dt * (after.a - before.a))
        return self._factor.solve(rhs)[:n], self._factor.mass

    def nodal_error(self, before: State, after: State, dt: float) -> float:
        """Return the local error of the nodes of bodies on their mesh in a step, m."""
        return self._internal.local_error(before, after, self.method.error_constant * dt * dt)

    # ---- formulas of the method -----------------------------------------------------------------
    def _step_derivatives(self, dt: float) -> Derivatives:
        """Return ∂a/∂q, ∂v/∂q and the derivative of algorithmic accelerations with respect to a."""
        m = self.method
        ratio = (1 - m.alpha_f) / (1 - m.alpha_m)
        return 1 / (dt * dt * m.beta * ratio), m.gamma / (dt * m.beta), ratio

    def _start_offsets(self, dt: float) -> tuple[float, float]:
        """Return the factors of v̈ in the differences that `begin` describes."""
        m = self.method
        return ((m.alpha_m - m.alpha_f) * dt, (1 / 6 - m.beta + 0.5 * (m.gamma - 0.5)) * dt * dt)

    def _predict(self, state: State, dt: float, from_rest: bool) -> tuple[Array, Array]:
        """Predict a, λ and v; return the increments and the algorithmic accelerations (nv,)."""
        eqs = self.assembler
        if from_rest:
            eqs.a[:], eqs.lam[:] = 0.0, state.lam
        else:
            lengths = self._measure.lengths if self._has_films else None
            eqs.a[:], eqs.lam[:] = _extrapolate(state, lengths)
        old = state.memory.get("algorithmic", state.a)
        velocity = state.memory.get("velocity", state.v)
        algorithmic, move = np.empty(len(old)), np.empty(len(old))
        predict(eqs.a, state.a, old, velocity, self._parameters, dt, algorithmic, move, eqs.v)
        return move, algorithmic

    def _accept(self, state: State, t: float, algorithmic: Array, monitor: Monitor) -> State:
        if self._has_films and not self._gaps[:, 0].min() >= 0.0:
            if overload := _overload(self.assembler, 1.0):
                raise StepError(f"t = {t:.6g} s{overload}, or try a smaller dt", t)
        if problem := self.assembler.problem():
            raise StepError(f"t = {t:.6g} s: {problem}", t)
        if monitor.slow and not self._condenses:
            self._factor = None
        earlier = (state.a, state.lam), *state.memory.get("earlier", ())[:1]
        memory = {"algorithmic": algorithmic, "earlier": earlier}
        if self._condenses:
            memory |= self._internal.memory()
        if self.assembler.loads.has_content:
            memory |= self.assembler.loads.content_memory(*self._content)
        return self.assembler.state(t, memory)

    # ---- Newton's method ------------------------------------------------------------------------
    def _residual_error(self, t: float, by_rate: float) -> float:
        """Evaluate the residual; return its largest ratio to the tolerance, without constraints."""
        eqs, tolerance = self.assembler, self.tolerance
        if self._condenses:
            self._internal.put(eqs)
        eqs.residual(t)
        error = self._measure.residual(eqs, tolerance, by_rate)
        if self._condenses and math.isfinite(error):
            error = max(error, self._internal.error(tolerance))
            if self._internal.refactorized(eqs):
                eqs.residual(t)
                self._factor = None
        return error

    def _refactor(self, t: float, dt: float, move: Array, derivatives: Derivatives) -> None:
        matrix, mass = self._matrix.evaluate(self.assembler, t, move, *derivatives[:2])
        factorize = SparseFactor if self.sparse else DenseFactor.of
        try:
            self._factor = factorize(matrix, dt, mass)
        except SingularMatrix as error:
            s, row = self.system, int(error.args[0])
            n = s.num_velocities
            name = s.row_name(row) if row < n else s.constraint_name(row - n)
            raise StepError(
                f"the iteration matrix is singular at t = {t:g} s ({name}); the mechanism may be "
                "in a singular position or have redundant constraints",
                t,
            ) from None
        self.factorizations += 1

    def _correct_prediction(
        self, state: State, dt: float, move: Array, algorithmic: Array, derivatives: Derivatives
    ) -> None:
        """Predict constant velocities if the extrapolation closes an oil film."""
        eqs, mass, (by_rate, by_speed, ratio) = self.assembler, self._mass, derivatives
        t = state.time + dt
        self._gaps = self._film_gaps(state, np.zeros_like(move), t)
        if _is_closing(self._gaps, self._film_gaps(state, move, t)):
            change = np.zeros(len(self._rhs))
            change[: len(move)] = dt * state.v - move
            correct(
                change, by_speed, by_rate, ratio, mass, move, eqs.v, eqs.a, algorithmic, eqs.lam
            )
            self._gaps = self._film_gaps(state, move, t)

    def _check_films(self, state: State) -> None:
        """Raise an error if the deformation at the start closes an oil film."""
        films = self.assembler.loads.films()
        if not films:
            return
        self.assembler.angles[:] = state.angles
        gaps = self._film_gaps(state, np.zeros_like(state.v), state.time)[:, 0]
        k = int(np.argmin(gaps))
        if gaps[k] <= 0.0:
            raise InputError(
                f"bearing {films[k].name!r}: the deformation at the start closes the oil film; its "
                f"smallest gap is {gaps[k]:.3g} m. Start where the load of the bearing is small, "
                "or with elastic_start='undeformed'",
                argument="start",
                value=float(gaps[k]),
            )

    def _film_gaps(self, state: State, move: Array, t: float) -> Array:
        """Return the gaps of oil films after increments."""
        eqs = self.assembler
        eqs.move(state.q, move)
        eqs.update_poses(t)
        return eqs.loads.film_gaps()

    def _limit_correction(self, state: State, t: float, move: Array, solution: Array) -> Array:
        """Return the correction, halved until it leaves all oil films open."""
        n = len(move)
        if np.abs(solution[:n] * self._measure.lengths).sum() < _NO_CLOSURE * self._gaps.min():
            return solution
        for _ in range(_HALVINGS):
            gaps = self._film_gaps(state, move + solution[:n], t)
            if not _is_closing(self._gaps, gaps):
                break
            solution = 0.5 * solution
        self._gaps = gaps
        return solution

    def _correction(self, by_rate: float) -> Array:
        """Return the next correction: increments (nv,), and multipliers divided by a factor."""
        assert self._factor is not None
        eqs = self.assembler
        right_hand_side(eqs.rows, eqs.values, by_rate, self._mass, self._rhs)
        return self._factor.solve(self._rhs)

    def _joint_error(self, correction: Array, by_rate: float, last: bool) -> float:
        """Return the largest ratio of an error of a joint to its tolerance; see `Measure`.

        `last` states that only the joints may require another correction. The round-off of the
        multipliers is then included; it is computed once for each matrix.
        """
        factor, measure, scale = self._factor, self._measure, by_rate * self._mass
        assert factor is not None
        point = self.assembler, correction, scale
        noise = factor.noise if len(factor.noise) else self._no_noise
        error = measure.forces(*point, noise, self.tolerance)
        if last and error > 1.0 and not len(factor.noise):
            samples = factor.solve(measure.round_off(self.assembler, by_rate, self._mass))
            samples = samples[self.system.num_velocities :]
            factor.noise = scale * np.sqrt((samples * samples).mean(axis=1))
            error = measure.forces(*point, factor.noise, self.tolerance)
        return error

    def _apply_correction(
        self,
        state: State,
        t: float,
        move: Array,
        algorithmic: Array,
        derivatives: Derivatives,
        solution: Array,
    ) -> bool:
        """Correct increments, v, a, algorithmic a and λ; return whether the change is round-off."""
        eqs, mass, (by_rate, by_speed, ratio) = self.assembler, self._mass, derivatives
        if self._has_films:
            solution = self._limit_correction(state, t, move, solution)
        correct(solution, by_speed, by_rate, ratio, mass, move, eqs.v, eqs.a, algorithmic, eqs.lam)
        nodal = self._internal.correct(solution[: len(move)]) if self._condenses else 0.0
        self.iterations += 1
        return self._measure.is_round_off(solution[: len(move)], self._measure.length, nodal)

    def _search(
        self,
        state: State,
        t: float,
        move: Array,
        algorithmic: Array,
        derivatives: Derivatives,
        solution: Array,
    ) -> bool:
        """Apply a correction as `_apply_correction`, halved until the residual decreases."""
        eqs, solution, size = self.assembler, solution.copy(), self._residual_size(derivatives[0])
        arrays = move, eqs.v, eqs.a, algorithmic, eqs.lam
        before = [values.copy() for values in arrays]
        for halvings in range(_HALVINGS + 1):
            small = self._apply_correction(
                state, t, move, algorithmic, derivatives, 0.5**halvings * solution
            )
            eqs.move(state.q, move)
            eqs.residual(t)
            if small or self._residual_size(derivatives[0]) < (1 - 0.25 * 0.5**halvings) * size:
                break
            if halvings < _HALVINGS:
                self.iterations -= 1
                for values, old in zip(arrays, before, strict=True):
                    values[:] = old
        return small

    def _residual_size(self, by_rate: float) -> float:
        """Return the norm of the right-hand side of a correction."""
        eqs = self.assembler
        right_hand_side(eqs.rows, eqs.values, by_rate, self._mass, self._rhs)
        return float(np.linalg.norm(self._rhs))


def _overload(eqs: Assembler, limit: float) -> str:
    """Return a text about the films whose surfaces overlap by more than `limit` clearances."""
    text = ""
    for film, (gap, clearance) in zip(eqs.loads.films(), eqs.loads.film_gaps(), strict=True):
        if not gap >= -limit * clearance:
            text += (
                f"; the load presses the journal through oil film {film.name!r}: the surfaces "
                f"overlap by {-gap:.3g} m, and the clearance is {clearance:.3g} m. Check load, "
                "clearance and viscosity"
            )
    return text


def _is_closing(before: Array, after: Array) -> bool:
    """Return whether a gap decreases too much; rows (F, 2) are gap and clearance of each film."""
    gaps = np.maximum(before[:, 0], 0.02 * before[:, 1])
    return bool(np.any(before[:, 0] - after[:, 0] > _LARGEST_CLOSURE * gaps))


def _extrapolate(state: State, lengths: Array | None) -> tuple[Array, Array]:
    """Return the next accelerations and multipliers, extrapolated from up to three states.

    The parabola through three states amplifies vibrations that are too stiff for the step, whose
    accelerations change their sign in each step, by seven. With `lengths` (see `Measure`), a + a₁ −
    a₂ replaces it where the last two changes of the accelerations are not alike. It is exact for
    linear and for alternating accelerations.
    """
    earlier = state.memory.get("earlier", ())
    if len(earlier) == 2:
        (a1, lam1), (a2, lam2) = earlier
        if lengths is not None:
            change, before = lengths * (state.a - a1), lengths * (a1 - a2)
            if change @ before < _ALIKE * (before @ before):
                return state.a + a1 - a2, state.lam + lam1 - lam2
        return 3 * (state.a - a1) + a2, 3 * (state.lam - lam1) + lam2
    if len(earlier) == 1:
        ((a1, lam1),) = earlier
        return 2 * state.a - a1, 2 * state.lam - lam1
    return state.a.copy(), state.lam


def _content(state: State) -> dict[str, Any]:
    """Return the contents of oil films in the memory of a state."""
    return {key: state.memory[key] for key in CONTENT_MEMORY if key in state.memory}


def _resample(state: State, ratio: float) -> tuple[tuple[Array, Array], ...]:
    """Return a and λ at one and two new steps before the state, interpolated between old steps."""

    def interpolate(x: float, now: Array, *before: Array) -> Array:
        slope = now - before[0]
        if len(before) == 1:
            return now + x * slope
        return now + x * slope + 0.5 * x * (x + 1) * (now - 2 * before[0] + before[1])

    a, lam = zip((state.a, state.lam), *state.memory["earlier"], strict=True)
    return tuple((interpolate(-k * ratio, *a), interpolate(-k * ratio, *lam)) for k in (1, 2))
