"""Newton's method in a step: residual, iteration matrix, and the correction of the unknowns.

References:
    C. L. Bottasso, D. Dopico, L. Trainelli, On the optimal scaling of index three DAEs in multibody
    dynamics, Multibody System Dynamics 19 (2008) (scaling of equations and multipliers).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.body_factor import BodyFactor, BodyMatrices
from dolfinx_mbd.dynamics.stepping.convergence import Measure
from dolfinx_mbd.dynamics.stepping.corotation import Corotation
from dolfinx_mbd.dynamics.stepping.formulas import Derivatives
from dolfinx_mbd.dynamics.stepping.internal_unknowns import InternalUnknowns
from dolfinx_mbd.dynamics.stepping.iteration_matrix import (
    DenseFactor,
    Factor,
    IterationMatrix,
    SingularMatrix,
    SparseFactor,
    restore_factor,
)
from dolfinx_mbd.dynamics.stepping.open_films import OpenFilms
from dolfinx_mbd.dynamics.stepping.step_errors import StepError
from dolfinx_mbd.dynamics.stepping.step_factor import ExtrapolatedFactor, StepFactor
from dolfinx_mbd.kernels.time_steps import correct, right_hand_side
from dolfinx_mbd.mechanism.system import State

__all__ = ["Corrector", "Step"]

_HALVINGS = 8  # largest number of halvings of a correction that increases the residual
_JUMP_ITERATIONS = 2  # number of corrections after a jump; the second is for outdated matrices


@dataclass(slots=True)
class Step:
    """A time step during its iterations; the assembler contains its v, a and λ.

    Attributes:
        state: State before the step.
        dt: Time step, s.
        time: Time after the step, s.
        derivatives: Derivatives of the unknowns.
        move: Increments since the state, (nv,).
        algorithmic: Algorithmic accelerations after the step, (nv,).
        film_forces: Forces of elastic films before the last correction and their prediction after
            it, or None; see `BodyFactor.predict`.
    """

    state: State
    dt: float
    time: float
    derivatives: Derivatives
    move: Array
    algorithmic: Array
    film_forces: tuple[Array, Array] | None = None


class Corrector:
    """Iteration matrix and corrections of the steps of a system.

    Args:
        eqs: Assembler of the system.
        tolerance: Largest residual of a converged step; see `Stepper`.
        sparse: Whether the iteration matrix is sparse.
        internal: Unknowns that bodies condense.

    Attributes:
        factor: The factorized iteration matrix, or None.
        mass: Mass that scales constraints and multipliers, kg.
        matrix: Evaluation of iteration matrices.
        measure: Measure of the errors.
        corotation: Rotation of the factor with the bodies.
        films: Oil films that corrections keep open.
        renews: Whether factors contain elastic films, which `renew_films` renews.
        by_bodies: Whether the next factor consists of the inverses of the matrices of bodies.
        iterations: Number of corrections.
        factorizations: Number of factorizations.
        renewals: Number of matrices in which only elastic films and axes were renewed.
    """

    def __init__(
        self, eqs: Assembler, tolerance: float, sparse: bool, internal: InternalUnknowns
    ) -> None:
        system = eqs.system
        self.eqs, self.tolerance, self.sparse, self._internal = eqs, tolerance, sparse, internal
        self._condenses = bool(internal)  # whether bodies condense unknowns
        self.iterations = self.factorizations = self.renewals = 0
        self.factor: Factor | BodyFactor | None = None
        self.mass = float(np.mean([b.typical_mass for b in system.bodies if b.num_velocities]))
        self.matrix = IterationMatrix(system, self.mass, sparse)
        self.measure, self._no_values = Measure(system), np.zeros(system.num_constraints)
        self._no_move = np.zeros(system.num_velocities)  # unused increments in calls of `correct`
        self._rhs = np.zeros(system.num_velocities + system.num_constraints)
        self.corotation = Corotation(eqs)
        self.films = OpenFilms(eqs, self.measure.lengths)
        self._has_films = bool(self.films)
        self._bodies = BodyMatrices(eqs, self.mass)
        self._permits_bodies = bool(self._bodies) and not (sparse or internal)
        self.renews = self._permits_bodies and self._bodies.has_films
        self.by_bodies = self._permits_bodies

    # ---- residual and matrix --------------------------------------------------------------------
    def residual_error(self, step: Step) -> float:
        """Evaluate the residual; return its largest ratio to the tolerance, without constraints."""
        eqs, tolerance = self.eqs, self.tolerance
        if self._condenses:
            self._internal.put(eqs)
        eqs.residual(step.time)
        error = self.measure.residual(eqs, tolerance, step.derivatives.a_by_move)
        if self._condenses and math.isfinite(error):
            error = max(error, self._internal.error(tolerance))
            if self._internal.refactorize_if_slow(eqs):
                eqs.residual(step.time)
                self.factor = None
        return error

    def refactor(
        self, t: float, dt: float, move: Array, derivatives: Derivatives
    ) -> Factor | BodyFactor:
        """Factorize the iteration matrix after a residual at the same point, and return it.

        Args:
            t: Time of the point, s.
            dt: Time step, s.
            move: Increments since the last step, (nv,).
            derivatives: Derivatives of a, v and algorithmic a with respect to the increments.
        """
        a_by_move, v_by_move, _ = derivatives
        matrix, mass = self.matrix.evaluate(self.eqs, t, move, a_by_move, v_by_move)
        self.factorizations += 1
        if self.by_bodies:
            tangents = self.matrix.rotation_tangents(move)
            self.factor = self._bodies.factor(matrix, dt, mass, tangents, derivatives)
            if self.factor is not None:
                self.corotation.stop()  # this factor rotates with the bodies itself
                return self.factor
        factorize = SparseFactor if self.sparse else DenseFactor.of
        try:
            self.factor = factorize(matrix, dt, mass)
        except SingularMatrix as error:
            s, row = self.eqs.system, int(error.args[0])
            n = s.num_velocities
            name = s.row_name(row) if row < n else s.constraint_name(row - n)
            raise StepError(
                f"the iteration matrix is singular at t = {t:g} s ({name}); the mechanism may be "
                "in a singular position or have redundant constraints",
                t,
            ) from None
        self.corotation.start()
        return self.factor

    def adopt(self, factor: StepFactor | ExtrapolatedFactor) -> None:
        """Use the factor of a matrix at the point of evaluation, or extrapolated to the next one.

        An extrapolated factor contains the rotation of the bodies already.
        """
        self.factor = factor
        if isinstance(factor, StepFactor):
            self.corotation.start()
        else:
            self.corotation.stop()

    def renew_films(self, step: Step) -> bool:
        """Renew films and axes in the factor after a residual; return whether it contains films.

        A factor without films is not changed. The renewed films are those in elastic bores whose
        forces are inaccurate. The axes of bodies and joints are renewed once in a step. Call it
        with the factor of a step of the same length.
        """
        if not (self.renews and isinstance(self.factor, BodyFactor)):
            return False
        self.factor.renew_films(step.derivatives, step.film_forces)
        self.renewals += 1
        return True

    def connect_bodies(self) -> None:
        """Renew joints and directions of films in a factor of bodies at the poses of a step."""
        if isinstance(self.factor, BodyFactor):
            self.factor.connect()

    def discard(self) -> None:
        """Delete a factor whose iterations converge slowly.

        If they do with new factors of bodies, the next factor is that of the complete matrix.
        """
        is_new = isinstance(self.factor, BodyFactor) and self.factor.steps <= 1
        self.by_bodies = self._permits_bodies and (self.renews or not is_new)
        self.factor = None

    def factor_memory(self) -> dict[str, Any]:
        """Return the arrays from which `restore_factor` creates a bitwise identical factor."""
        flag: dict[str, Any] = {"by_bodies": self.by_bodies} if self._permits_bodies else {}
        if self.factor is not None:
            flag |= self.factor.memory() | self.corotation.memory()
        return flag

    def restore_factor(self, memory: Mapping[str, Any]) -> None:
        """Restore the factor that `memory` describes; None without it or its orientations."""
        self.by_bodies = bool(memory.get("by_bodies", self._permits_bodies))
        if (factor := BodyFactor.restored(self._bodies, memory)) is not None:
            self.factor = factor
            self.corotation.stop()
        else:
            self.factor = restore_factor(memory)
            if not self.corotation.restore(memory):
                self.factor = None

    def has_factor_for(self, dt: float) -> bool:
        """Return whether the factor is that of steps of length dt (s)."""
        return self.factor is not None and self.factor.dt == dt

    # ---- corrections ----------------------------------------------------------------------------
    def correction(self, a_by_move: float) -> Array:
        """Return the next correction: increments (nv,), and multipliers divided by a factor.

        `a_by_move` is the derivative of accelerations with respect to increments, 1/s².
        """
        right_hand_side(self.eqs.rows, self.eqs.values, a_by_move, self.mass, self._rhs)
        return self.solve(self._rhs)

    def solve(self, rhs: Array) -> Array:
        """Return the solution for a right-hand side (unknowns,) at the point of evaluation.

        The factor rotates with the bodies; see `corotation`. The right-hand side is overwritten.
        """
        assert self.factor is not None
        return self.corotation.forward(self.factor.solve(self.corotation.back(rhs)))

    def joint_error(self, correction: Array, a_by_move: float, last: bool) -> float:
        """Return the largest ratio of an error of a joint to its tolerance; see `Measure`.

        `last` states that only the joints may require another correction. The round-off of the
        multipliers is then included; it is computed once for each matrix.
        """
        factor, measure, scale = self.factor, self.measure, a_by_move * self.mass
        assert factor is not None
        noise = factor.noise if len(factor.noise) else self._no_values
        error = measure.forces(self.eqs, correction, scale, noise, self.tolerance)
        if last and error > 1.0 and not len(factor.noise):
            # without rotation: only sums over the components of each force are used
            samples = factor.solve(measure.round_off(self.eqs, a_by_move, self.mass))
            samples = samples[self.eqs.system.num_velocities :]
            factor.noise = scale * np.sqrt((samples * samples).mean(axis=1))
            error = measure.forces(self.eqs, correction, scale, factor.noise, self.tolerance)
        return error

    def apply(self, step: Step, solution: Array) -> bool:
        """Correct increments, v, a, algorithmic a and λ; return whether the change is round-off."""
        eqs, move, (a_by_move, v_by_move, ratio) = self.eqs, step.move, step.derivatives
        if self._has_films:
            limited = self.films.limited(step.state, step.time, move, solution)
            step.film_forces = None  # a correction that the films limit has no prediction
            if isinstance(self.factor, BodyFactor) and limited is solution:
                step.film_forces = self.factor.predict(step.derivatives)
            solution = limited
        correct(
            solution, v_by_move, a_by_move, ratio, self.mass,
            move, eqs.v, eqs.a, step.algorithmic, eqs.lam,
        )  # fmt: skip
        increments = solution[: len(move)]
        nodal = self._internal.correct(increments) if self._condenses else 0.0
        self.iterations += 1
        return self.measure.is_round_off(increments, self.measure.length, nodal)

    def search(self, step: Step, solution: Array) -> bool:
        """Apply a correction, halved until the residual decreases; return the result of `apply`."""
        eqs, a_by_move = self.eqs, step.derivatives.a_by_move
        solution, size = solution.copy(), self._residual_size(a_by_move)
        arrays = step.move, eqs.v, eqs.a, step.algorithmic, eqs.lam
        before = [values.copy() for values in arrays]
        for halvings in range(_HALVINGS + 1):
            small = self.apply(step, 0.5**halvings * solution)
            eqs.move(step.state.q, step.move)
            eqs.residual(step.time)
            # for linear equations, the residual decreases by the fraction 1 / 2ʰ: demand a quarter
            if small or self._residual_size(a_by_move) < (1 - 0.25 * 0.5**halvings) * size:
                break
            if halvings < _HALVINGS:
                self.iterations -= 1
                for values, old in zip(arrays, before, strict=True):
                    values[:] = old
        return small

    def correct_accelerations(self, t: float, loads: Array, algorithmic: Array) -> None:
        """Correct only a and λ for the residual, without the values of the constraints.

        Args:
            t: Time, s.
            loads: Wrenches of the loads on all frames, (frames, 6).
            algorithmic: Algorithmic accelerations (nv,), which change as the accelerations.
        """
        eqs, mass, move = self.eqs, self.mass, self._no_move
        self.connect_bodies()
        for _ in range(_JUMP_ITERATIONS):
            eqs.residual_of_accelerations(t, loads)
            right_hand_side(eqs.rows, self._no_values, 1.0, mass, self._rhs)
            solution = self.solve(self._rhs)
            correct(solution, 0.0, 1.0, 1.0, mass, move, eqs.v, eqs.a, algorithmic, eqs.lam)

    def local_error(
        self, state: State, dt: float, derivatives: Derivatives, change: Array
    ) -> tuple[Array, Array]:
        """Return the local error of the increments of a step, (nv,), and the mass matrix.

        Args:
            state: State after the step.
            dt: Time step, s.
            derivatives: Derivatives of a, v and algorithmic a with respect to the increments.
            change: Local error of Newmark's formula without constraints and stiffness, (nv,).
        """
        n, factor = len(change), self.factor
        if factor is None or factor.dt != dt:
            self.eqs.put(state)
            self.eqs.residual(state.time)
            factor = self.refactor(state.time, dt, np.zeros(n), derivatives)
        rhs = np.zeros(len(self._rhs))
        rhs[:n] = change
        if isinstance(factor, BodyFactor):
            rhs[:n] = factor.inertia(change)
        else:
            rhs[:n] = factor.mass @ self.corotation.back(rhs)[:n]  # the matrix is not rotated
        return self.corotation.forward(factor.solve(rhs))[:n], factor.mass

    def _residual_size(self, a_by_move: float) -> float:
        """Return the norm of the right-hand side of a correction."""
        right_hand_side(self.eqs.rows, self.eqs.values, a_by_move, self.mass, self._rhs)
        return float(np.linalg.norm(self._rhs))
