"""Time integration of index-3 systems on R³×SO(3) by generalized-α methods.

Increments of rotations are rotation vectors in body components. A step predicts the motion
(`formulas`), corrects it with Newton's method (`corrections`) and accepts it here. `step_control`
chooses the length of the steps. `a_by_move` and `v_by_move` are the derivatives of accelerations
and velocities with respect to the increments of a step.
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
from dolfinx_mbd.dynamics.assembly.rates import jerk_at
from dolfinx_mbd.dynamics.stepping import restarts
from dolfinx_mbd.dynamics.stepping.convergence import Monitor
from dolfinx_mbd.dynamics.stepping.corrections import Corrector, Step
from dolfinx_mbd.dynamics.stepping.formulas import AlphaFormulas
from dolfinx_mbd.dynamics.stepping.internal_unknowns import InternalUnknowns
from dolfinx_mbd.dynamics.stepping.step_errors import (
    StepError,
    check_conserving,
    failed_step,
    far_frames,
)
from dolfinx_mbd.dynamics.stepping.step_factor import ExtrapolatedFactor, StepFactor
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.time_integration import GeneralizedAlpha

_MAX_ITERATIONS = 15
# A step renews the elastic films of the matrix this number of times before it uses a new matrix
_RENEWALS = 6
_FILM_ITERATIONS = 2  # this number of iterations costs more than a renewal of the films
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
        factorizations: Number of factorizations of the iteration matrix. With elastic oil films
            and in large systems, the inverses of the matrices of all bodies count as one.
        halves_steps: Whether a load or a body declares that shorter steps may succeed if one fails,
            so that `step_or_halves` repeats it in halves.
        halvings: Number of steps that failed and were halved.
        assembler: Assembler of the equations at the last accepted state.
        formulas: Formulas of the method.
        corrector: Iteration matrix and corrections of the steps.
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
        self.reuse, self.halvings = flag("reuse", reuse), 0
        size = system.num_velocities + system.num_constraints
        large = size > _SPARSE_UNKNOWNS and len(system.bodies) > 20
        self.sparse = large if sparse is None else flag("sparse", sparse)
        self.assembler = Assembler(system)
        self.formulas = AlphaFormulas(method)
        if method.conserves:
            check_conserving(system)
        self._internal = InternalUnknowns(
            system, self.formulas.parameters, conserves=method.conserves
        )
        self._condenses = bool(self._internal)  # whether bodies condense unknowns
        self.corrector = Corrector(self.assembler, self.tolerance, self.sparse, self._internal)
        self._films = self.corrector.films
        self._has_films = bool(self._films)
        # displacements per unit of the coordinates, by which films limit extrapolations
        self._lengths = self._films.lengths if self._has_films else None
        self.is_evaluated = False
        # contents of oil films at the start of the present step, and the length of the step, s
        self._content: tuple[Array, float] = np.zeros(0), 0.0
        parts: tuple[Any, ...] = (*system.bodies, *system.loads)
        self.halves_steps = any(getattr(part, "halves_steps", False) for part in parts)
        # A step into a stiff contact may fail, and is then repeated with `Corrector.search`. This
        # does not restore the gaps by which `OpenFilms` prevents overlapping surfaces in a film
        self._repeats = self.assembler.loads.has_contacts and not self._has_films
        # forces of loads and of other bodies may jump; floating bodies, joints, drivers are smooth
        self._smooth = not (system.loads or self.assembler.frames.has_others)

    @property
    def iterations(self) -> int:
        """Number of Newton iterations."""
        return self.corrector.iterations

    @property
    def factorizations(self) -> int:
        """Number of factorizations of the iteration matrix."""
        return self.corrector.factorizations

    @property
    def has_factor(self) -> bool:
        """Whether the next step starts with the factorization of earlier steps."""
        return self.corrector.factor is not None

    # ---- steps ----------------------------------------------------------------------------------
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
        self._films.check_start(state)
        if self._internal:
            memory = {"algorithmic": state.a, **self._internal.initial_memory(state)}
            return replace(state, memory=memory)
        jerk, constrained = jerk_at(self.system, state, dt)
        acceleration_offset, velocity_offset = self.formulas.start_offsets(dt)
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

    def _check_turns(self, t: float, dt: float) -> None:
        """Raise an error if a driver rotates by half a turn or more; see `System.check_step`."""
        before, after = (self.assembler.driver_motions(time) for time in (t, t + dt))
        if any(abs(old[0] - new[0]) >= math.pi for old, new in zip(before, after, strict=True)):
            self.system.check_step(t, dt)

    def repeat(self, state: State, dt: float, corrections: int, keeps: bool) -> State:
        """Repeat an earlier `step` with a bitwise identical result, without its last test.

        The counters and the factorization must be those before the earlier step.

        Args:
            state: The state before the step.
            dt: Time step, s.
            corrections: Number of corrections of the earlier step.
            keeps: Whether the factorization was kept after it; see `has_factor`.
        """
        state = self._step(state, dt, corrections)
        if not keeps and self.has_factor:
            self.corrector.discard()
        return state

    def _step(self, state: State, dt: float, corrections: int = -1) -> State:
        """Return the state after a step; if `corrections` is positive, make this number of them."""
        if self._condenses:
            return self._step_with_nodes(state, dt)
        before = self.iterations
        try:
            return self._iterate(state, dt, corrections)
        except StepError:
            if not self._repeats:
                raise
            corrections = max(corrections - (self.iterations - before), -1)
        # an impact may be the cause; the matrix and the accelerations before it do not help then
        return self._iterate(state, dt, corrections, from_rest=True)

    def _step_with_nodes(self, state: State, dt: float) -> State:
        """Return the state after one step; raise an error also if a cell is inverted."""
        self.corrector.factor = None  # condensed matrices rotate with the bodies: no reuse
        with self._internal.step(self.assembler, state, dt, self.formulas.derivatives(dt)):
            return self._iterate(state, dt, -1)

    # ---- one step -------------------------------------------------------------------------------
    def _iterate(
        self, state: State, dt: float, corrections: int, *, from_rest: bool = False
    ) -> State:
        """Return the state after the iterations of a step; see `_step`.

        With `from_rest`, they begin with zero accelerations, each one has its own matrix, and a
        correction that increases the residual is halved.
        """
        step, eqs, corrector = self._predict(state, dt, from_rest), self.assembler, self.corrector
        a_by_move, has_joints = step.derivatives.a_by_move, len(eqs.lam) > 0
        reuse, limit = self.reuse and not from_rest, _MAX_ITERATIONS * (3 if from_rest else 1)
        correct_by = corrector.search if from_rest else corrector.apply
        if not corrector.has_factor_for(dt):
            corrector.factor = None
        monitor, renewals = Monitor(self._smooth), 0
        for iteration in range(limit + 1):
            eqs.move(state.q, step.move)
            error = corrector.residual_error(step)
            if not math.isfinite(error):
                break
            outdated = corrector.factor is not None  # the factor is that of another point
            if not outdated:
                corrector.refactor(step.time, dt, step.move, step.derivatives)
            elif not iteration:
                corrector.connect_bodies()
            remaining = limit - iteration - 1
            renews = reuse and corrector.renews and renewals < _RENEWALS
            # the number of further iterations that are cheaper than new films, or a new matrix
            worthwhile = min(remaining, _FILM_ITERATIONS) if renews else remaining
            # before the correction, if slow convergence is certain
            renewed = (
                renews
                and outdated
                and remaining >= 0
                and monitor.will_be_too_slow(error, worthwhile)
                and corrector.renew_films(step)
            )
            solution = corrector.correction(a_by_move)
            if has_joints:
                last = error <= 1.0 or monitor.is_round_off
                error = max(error, corrector.joint_error(solution, a_by_move, last))
            monitor.add_error(error)
            if self._condenses:
                self._internal.add_error(error)
            self.is_evaluated = error <= 1.0 or monitor.exhausted
            if self.is_evaluated:
                return self._accept(step, monitor)
            if not math.isfinite(error) or iteration == limit:
                break
            if outdated and not renewed and (not reuse or monitor.too_slow(worthwhile)):
                renewed = renews and corrector.renew_films(step)
                if not renewed:
                    corrector.refactor(step.time, dt, step.move, step.derivatives)
                solution, outdated = corrector.correction(a_by_move), False
            renewals += renewed
            if renewed or not outdated:
                monitor.reset()
            monitor.is_round_off = correct_by(step, solution)
            # `repeat` makes the corrections of the first time, without a test after the last one
            if monitor.skips_residual or iteration + 1 == corrections:
                eqs.move(state.q, step.move)
                eqs.update_poses(step.time)
                return self._accept(step, monitor)
        raise self._failure(step)

    def _predict(self, state: State, dt: float, from_rest: bool) -> Step:
        """Return the predicted step, with its v, a and λ in the assembler."""
        eqs, derivatives = self.assembler, self.formulas.derivatives(dt)
        if eqs.loads.has_content:
            self._content = eqs.content(state), dt
            eqs.loads.begin_step(*self._content)
        eqs.angles[:] = state.angles
        eqs.rate_scale = 1.0 / derivatives.v_by_move
        motion = self.formulas.predict(eqs, state, dt, self._lengths, from_rest=from_rest)
        if self._has_films:
            self._films.correct_prediction(state, dt, *motion, derivatives)
        return Step(state, dt, state.time + dt, derivatives, *motion)

    def _accept(self, step: Step, monitor: Monitor) -> State:
        """Return the state after a step whose iterations have converged."""
        eqs, t, before = self.assembler, step.time, step.state
        if self._has_films and not self._films.are_open and (text := self._films.overload(1.0)):
            raise StepError(f"t = {t:.6g} s{text}, or try a smaller dt", t)
        if problem := eqs.problem():
            raise StepError(f"t = {t:.6g} s: {problem}", t)
        if monitor.slow and not (self._condenses or self.corrector.renews):
            self.corrector.discard()
        earlier = (before.a, before.lam), *before.memory.get("earlier", ())[:1]
        memory = {"algorithmic": step.algorithmic, "earlier": earlier}
        if self._condenses:
            memory |= self._internal.memory()
        if eqs.loads.has_content:
            memory |= eqs.loads.content_memory(*self._content)
        state = eqs.state(t, memory)
        if self._has_films:
            self._films.accept(state)
        return state

    def _failure(self, step: Step) -> StepError:
        """Return the error of a step that does not converge, and delete its matrix."""
        self.corrector.factor = None
        remarks = self._films.overload(0.0) + far_frames(self.system)
        remarks += self._internal.inverted(self.assembler)
        return failed_step(step.time, step.dt, self.assembler, remarks)

    # ---- memory ---------------------------------------------------------------------------------
    def adopt(self, factor: StepFactor | ExtrapolatedFactor) -> None:
        """Let the next step start with a factor from the exact tangents at the last states."""
        if not self.sparse:
            self.corrector.adopt(factor)

    def memory(self) -> dict[str, Any]:
        """Return the counters and the last factorization, to store them in a checkpoint."""
        counts: dict[str, Any] = {
            "iterations": self.iterations,
            "factorizations": self.factorizations,
            "renewals": self.corrector.renewals,
            "halvings": self.halvings,
        }
        if self._condenses:
            counts |= self._internal.factor_memory()
        return counts | self.corrector.factor_memory()

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Restore the data that `memory` of another stepper of the same system returned."""
        self.corrector.iterations = int(memory["iterations"])
        self.corrector.factorizations = int(memory["factorizations"])
        self.corrector.renewals = int(memory.get("renewals", 0))
        self.halvings = int(memory.get("halvings", 0))
        self.corrector.restore_factor(memory)
        self._internal.restore(memory)

    # ---- changes between steps ------------------------------------------------------------------
    def rescaled(self, state: State, dt: float, new: float) -> State:
        """Return the state after a step of length `dt`, prepared for a step of length `new`.

        The differences described in `begin` are adapted to the new step. In constrained directions
        the differences are computed from the constraints; otherwise errors would accumulate.
        """
        if new == dt:
            return state
        if self._internal:
            return restarts.rescaled_with_nodes(self._internal, state, new / dt)
        if "earlier" not in state.memory:  # before the first step
            return self.begin(replace(state, memory=restarts.content_memory(state)), new)
        return restarts.rescaled(self.system, self.formulas, state, dt, new)

    def without_history(self, state: State) -> State:
        """Return the state for a step that does not extrapolate the motion of mesh bodies.

        Their extrapolation may be the cause if a step has failed.
        """
        if not self._internal:
            return state
        return replace(state, memory=self._internal.without_history(state.memory))

    def put(self, state: State) -> None:
        """Set the assembler to a state after parameters of loads or drivers have changed."""
        self.assembler.put(state)
        self._films.reset()

    def after_jump(self, state: State, dt: float) -> State:
        """Return a state prepared for the next step, if the loads jump at the time of the state.

        Accelerations and multipliers change, so that the loads of the next step act from its
        beginning. Motions that are too stiff for the step do not react to the jump here; they
        follow the loads in the next step.

        Args:
            state: A state returned by `begin` or `step` before the loads changed.
            dt: Next time step, s.
        """
        if self._condenses:  # the nodes of mesh bodies follow the loads in the next step
            return state
        return restarts.after_jump(self.corrector, self.formulas, state, dt)

    # ---- errors of a step -----------------------------------------------------------------------
    def local_error(self, before: State, after: State, dt: float) -> tuple[Array, Array]:
        """Return the local error of the increments of a step (nv,), and the mass matrix.

        The error of Newmark's formula is c dt³ v̈; see `GeneralizedAlpha.error_constant`. The
        iteration matrix projects this error onto the free motions and reduces components that are
        too stiff for the step.
        """
        change = self.method.error_constant * dt * dt * (after.a - before.a)
        return self.corrector.local_error(after, dt, self.formulas.derivatives(dt), change)

    def nodal_error(self, before: State, after: State, dt: float) -> float:
        """Return the local error of the nodes of mesh bodies in a step, m."""
        return self._internal.local_error(before, after, self.method.error_constant * dt * dt)
