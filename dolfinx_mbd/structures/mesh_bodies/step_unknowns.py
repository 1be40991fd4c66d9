"""Unknowns of the free nodes of a mesh body in the time steps of one run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.kernels.time_steps import predict
from dolfinx_mbd.structures.mesh_bodies.mesh_solver import FactorState, MeshSolver

if TYPE_CHECKING:
    from dolfinx_mbd.structures.mesh_bodies.mesh_body import MeshBody

__all__ = ["StepUnknowns"]

_LEAST_ERRORS = 3  # number of errors in a step that an estimate of its convergence needs
_COSTLY = 7.0  # number of further iterations that cost as much as a new factorization


class StepUnknowns:
    """Displacements, velocities and accelerations of the free nodes in a step.

    A stepper calls `predict` once, then `put` (which writes the motion of the nodes into the
    coordinates of the body), `error` and `correct` in each iteration. Between
    `start_condensation` and `end_condensation`, the body condenses its free nodes with the matrix
    of the step. An averaged interface has a frame that follows the mean motion of its nodes, by
    constraints with multipliers.

    Args:
        body: The body.

    Attributes:
        solver: Solver for the free nodes, with the factor of their matrix.
        conserves: Whether the step conserves energy and momentum: its forces are then those at its
            middle, and the elastic ones discrete gradients.
        start: Coordinates of the body at the start of the step, which `predict` sets, or of a
            static iteration.
        dt: Length of the step, s.
        forces: Residual of the nodes, shape (nodes, 3), N.
        multipliers: Multipliers of the averaged interfaces, shape (m,), N.
        offset_factor: Factor from 1 to 0 of the forces that statics subtracts while it increases
            the load; see `store_offset`.
        spin: Angular velocity of a steady rotation in statics, shape (3,), rad/s.
    """

    def __init__(self, body: MeshBody) -> None:
        self._body, self.solver = body, MeshSolver(body)
        self.conserves, self.dt = False, 0.0
        self.forces = np.zeros_like(body.nodes)
        self._scale = self._noise = 0.0  # largest term of the forces and its round-off, N
        self._errors: list[float] = []
        self._offset = np.zeros_like(body.nodes)
        self.multipliers: Array = np.zeros(body.constraints.size)
        self._gaps: Array = np.zeros_like(self.multipliers)
        self.offset_factor = 0.0
        self.spin: Array = np.zeros(3)

    # ---- calls of the stepper -------------------------------------------------------------------
    def start_condensation(self) -> None:
        """Let the body condense its free nodes with the matrix of the step."""
        object.__setattr__(self._body, "_solver", self)

    def end_condensation(self) -> None:
        """Let the body no longer condense its free nodes."""
        object.__setattr__(self._body, "_solver", None)

    def initial_memory(self, q: Array) -> Array:
        """Return the memory at the start, shape (3, 3 N + m), for N nodes and m multipliers.

        The first 3 N columns contain the algorithmic accelerations of the generalized-α method, and
        the accelerations of the two steps before the last one; the others contain the multipliers
        of the averaged interfaces in the last three steps. Values of absent steps are NaN.
        """
        _, _, accelerations = self._body.nodal_of(q)
        a = accelerations.ravel()
        memory = np.full((3, a.size + len(self.multipliers)), np.nan)
        memory[0, : a.size] = a
        return memory

    def _split(self, memory: Array) -> tuple[Array, Array]:
        """Return the parts (3, nodes, 3) of nodes and (3, m) of multipliers."""
        count = self._body.nodes.size
        return memory[:, :count].reshape(3, -1, 3), memory[:, count:]

    def predict(
        self, q: Array, memory: Array, parameters: Array, dt: float, derivatives: Sequence[float]
    ) -> None:
        """Predict the motion of the nodes from the coordinates q and the memory of the last step.

        Args:
            q: Coordinates of the body at the start of the step.
            memory: See `initial_memory`.
            parameters: α_m, α_f, β and γ of the method.
            dt: Step, s.
            derivatives: Derivatives of accelerations and velocities with respect to increments,
                and of algorithmic accelerations with respect to accelerations.
        """
        body = self._body
        self.start, self.dt, self._derivatives = q, dt, derivatives
        u, w, a = body.nodal_of(q)  # w: velocities of the nodes
        (algorithmic, *earlier), multipliers = self._split(memory)
        guess = _extrapolated(a, *earlier)
        self.multipliers = _extrapolated(*multipliers).copy()
        self._accelerations, self._last = guess.copy(), (a, earlier[0])
        self._last_multipliers = multipliers[:2]
        self._algorithmic, self._move, self._velocities = (np.empty_like(u) for _ in range(3))
        predict(  # writes into the last three arrays
            guess.ravel(), a.ravel(), algorithmic.ravel(), w.ravel(), parameters, dt,
            self._algorithmic.ravel(), self._move.ravel(), self._velocities.ravel(),
        )  # fmt: skip
        self._errors = []
        # Derivatives of accelerations and velocities with respect to the increments of the step
        a_by_move, v_by_move, _ = derivatives
        # A conserving step has the forces of its middle, which moves half as far as its end
        coefficients = a_by_move, v_by_move, 0.5 if self.conserves else 1.0
        if self.solver.coefficients != coefficients:
            self.factorize_at(q, coefficients)
        self._factor_is_rotated = False

    def put(self, q: Array, v: Array, a: Array) -> None:
        """Write the motion of the nodes into the coordinates q of the body."""
        u, w, accelerations = nodal = self._body.nodal_of(q)  # views of q
        start, _, _ = self._body.nodal_of(self.start)
        u[:], w[:], accelerations[:] = start + self._move, self._velocities, self._accelerations
        if self.spin.any():  # statics of a steady rotation
            w[:] = np.cross(self.spin, self._body.nodes + u)
            accelerations[:] = np.cross(self.spin, w)
        frames = self._body.frames_of(q)
        self._body.hold(nodal, frames, v, a)
        if not self._factor_is_rotated:
            # with the predicted rotation, which is almost that of the step
            self._rotate_factor(u, frames)
            self._factor_is_rotated = True

    def _rotate_factor(self, u: Array, frames: Array) -> None:
        """Rotate the factor with the body, at displacements u (nodes, 3) and frames (frames, 7).

        A factor of an earlier state remains a good approximation after a rotation of the body.
        """
        before, _, _ = self._body.nodal_of(self.start)
        self.solver.turn_to(u, frames, 0.5 * (before + u) if self.conserves else None)

    def error(self, tolerance: float) -> float:
        """Return the largest ratio of a residual to its tolerance.

        Residuals are the forces at the free nodes, and the forces that would close the gaps of the
        averaged interfaces.
        """
        of_nodes = float(np.abs(self._free()).max()) / (tolerance * self._scale + self._noise)
        if not len(self._gaps):
            return of_nodes
        closing = np.abs(self.solver.gap_forces(self._gaps)).max()
        noise = np.abs(self.solver.gap_forces(np.full_like(self._gaps, self._gap_noise))).max()
        scale = max(self._scale, float(np.abs(self.multipliers).max()))
        return max(of_nodes, float(closing) / (tolerance * scale + float(noise)))

    def round_off(self) -> float:
        """Return the round-off of a sum of the forces at all nodes, N."""
        return self._noise * float(np.sqrt(len(self._body.nodes)))

    def add_error(self, error: float) -> None:
        """Record the error of an iteration, relative to the tolerance."""
        self._errors.append(error)

    def refactorize_if_slow(self, q: Array) -> bool:
        """Factorize at the present state if errors decrease slowly; return whether it did."""
        error = self._errors[-1] if self._errors else 0.0
        if error <= 1.0 or len(self._errors) < _LEAST_ERRORS:
            return False
        first, second, last = self._errors[-3:]
        # The first errors of a step are nearly equal even if the iteration converges fast, so that
        # the smaller of two rates of convergence counts
        ratio = min(last / second, (last / first) ** 0.5)
        if ratio < 1.0 and np.log(error) < -_COSTLY * np.log(ratio):
            return False  # less than `_COSTLY` further iterations suffice
        assert self.solver.coefficients is not None
        self.factorize_at(q)
        u, _, _ = self._body.nodal_of(q)
        self._rotate_factor(u, self._body.frames_of(q))
        self._errors = []
        return True

    def factorize_at(
        self, q: Array, coefficients: tuple[float, float, float] | None = None
    ) -> None:
        """Factorize at the coordinates q of the body, by default with the present coefficients.

        With the coefficients b, c and k, the matrix is b M + k (c D + K); those of statics are
        0, 0 and 1.
        """
        u, w, _ = self._body.nodal_of(q)
        frames, pressures = self._body.frames_of(q), self._body.forces.loads.pressures
        is_new_step = coefficients is not None
        coefficients = coefficients or self.solver.coefficients or (0.0, 0.0, 1.0)
        # Zero rates keep the matrix of a new step symmetric. In a steady rotation, the viscosity
        # has no stress and no derivative, which zero rates give as well
        rates = np.zeros_like(w) if self.spin.any() or is_new_step else w.copy()
        state = FactorState(u.copy(), rates, frames.copy(), pressures, self.multipliers.copy())
        self.solver.factorize(coefficients, state, self.spin)

    def _free(self) -> Array:
        """Return the forces at the free nodes, zero at the interfaces, (nodes, 3)."""
        free = self.forces.copy()
        free[self._body.held] = 0.0
        return free

    def correct(self, delta: Array) -> float:
        """Correct the free nodes after increments δs (nv,) of the frames; return the largest, m."""
        a_by_move, v_by_move, ratio = self._derivatives
        frames = delta if len(self._body.frame_names) else None
        solution = self.solver.solution(self._free(), self._gaps, frames)
        change, forces = (-part for part in solution)
        self.multipliers = self.multipliers + forces
        self._move = self._move + change
        self._velocities += v_by_move * change
        self._accelerations += a_by_move * change
        self._algorithmic += ratio * a_by_move * change
        return float(np.abs(change).max())

    def inverted(self, q: Array) -> str:
        """Return a text about an inverted cell; empty without inversion (collective)."""
        u, w, _ = self._body.nodal_of(q)
        self._body.forces.set_state(u, w)
        cell = self._body.forces.inverted_cell()
        if cell is None:
            return ""
        position = ", ".join(f"{x:.4g}" for x in cell)
        name = self._body.name
        return f"; body {name!r}: its cell at ({position}) m of the undeformed mesh is inverted"

    def memory(self) -> Array:
        """Return the memory for the next step; see `initial_memory`."""
        nodal = np.array([self._algorithmic, *self._last]).reshape(3, -1)
        return np.hstack([nodal, np.array([self.multipliers, *self._last_multipliers])])

    # ---- statics --------------------------------------------------------------------------------
    def start_at_rest(self, q: Array) -> None:
        """Start a static iteration at the coordinates q of the body, without velocities.

        With a `spin`, the nodes have the velocities and accelerations of a steady rotation.
        """
        self.spin = np.zeros(3)
        self.start, self._derivatives = q, (0.0, 0.0, 0.0)
        zeros = (np.zeros_like(self._body.nodes) for _ in range(4))
        self._move, self._velocities, self._accelerations, self._algorithmic = zeros
        self.multipliers = np.zeros_like(self.multipliers)
        self._factor_is_rotated = True  # statics factorizes at every state

    @property
    def static_unknowns(self) -> tuple[Array, Array]:
        """Displacements of the nodes since the start, (nodes, 3), m, and multipliers, (m,)."""
        return self._move, self.multipliers

    @static_unknowns.setter
    def static_unknowns(self, values: tuple[Array, Array]) -> None:
        self._move, self.multipliers = values

    def rotate(self, R: Array) -> None:
        """Rotate the body by a rotation matrix (3, 3) about the global origin."""
        start, _, _ = self._body.nodal_of(self.start)
        x = (self._body.nodes + start + self._move) @ R.T
        self._move = x - self._body.nodes - start
        self.multipliers = (self.multipliers.reshape(-1, 3) @ R.T).ravel()

    def store_offset(self) -> None:
        """Store the present forces at the nodes, which are subtracted times `offset_factor`."""
        self._offset = self.forces.copy()

    def offset(self) -> Array:
        """Return the forces (nodes, 3) that are subtracted from the forces at the nodes."""
        return self.offset_factor * self._offset

    # ---- memory of a run ------------------------------------------------------------------------
    def rescaled(self, q: Array, memory: Array, ratio: float) -> Array:
        """Return the memory for a step that is longer by a ratio; see `Stepper.rescaled`."""
        (old, *_), multipliers = self._split(memory)
        (_, _, a), (now, *_) = self._body.nodal_of(q), multipliers
        algorithmic = np.concatenate([(a + ratio * (old - a)).ravel(), now])
        a = np.concatenate([a.ravel(), now])
        # The parabola through the last three values, at one and two longer steps before the last
        _, last, second_last = memory
        slope = a - last
        curve = np.zeros_like(a) if np.isnan(second_last[0]) else a - 2 * last + second_last
        earlier = [a - x * slope + 0.5 * x * (x - 1) * curve for x in (ratio, 2 * ratio)]
        return np.array([algorithmic, *earlier])

    def local_error(self, before: Array, after: Array, factor: float) -> float:
        """Return the local error of the displacements of a step, a mass-weighted RMS value, m.

        Args:
            before: Coordinates of the body before the step.
            after: Coordinates after it.
            factor: Error of Newmark's formula divided by the change of the accelerations, s².
        """
        body = self._body
        (_, _, a0), (_, _, a1) = body.nodal_of(before), body.nodal_of(after)
        change = factor * (a1 - a0)
        force = body.forces.apply_mass(change)
        force[body.held] = 0.0
        error = self._derivatives[0] * self.solver.solution(force, np.zeros_like(self._gaps))[0]
        energy = float(np.vdot(error, body.forces.apply_mass(error)))
        return float(np.sqrt(max(energy, 0.0) / body.typical_mass))

    def factor_memory(self) -> dict[str, Array]:
        """Return the arrays from which `restore` computes an equal factor."""
        if self.solver.coefficients is None:
            return {}
        coefficients = np.array(self.solver.coefficients)
        return {**self.solver.state._asdict(), "coefficients": coefficients}

    def restore(self, memory: dict[str, Array]) -> None:
        """Compute the factor that `factor_memory` describes."""
        if not memory:
            self.solver = MeshSolver(self._body)
            return
        b, c, k = (float(number) for number in memory["coefficients"])
        state = FactorState(*(memory[name] for name in FactorState._fields))
        same = self.solver.coefficients == (b, c, k)
        if not same or not np.array_equal(self.solver.state.u, state.u):
            self.solver.factorize((b, c, k), state)

    # ---- calls of the body ----------------------------------------------------------------------
    def evaluated(
        self, total: Array, terms: Sequence[Array], gaps: Array, noise: tuple[float, float]
    ) -> None:
        """Store the forces (nodes, 3), their terms, the gaps and the round-off of both."""
        self.forces, self._gaps, (self._noise, self._gap_noise) = total, gaps, noise
        self._scale = max(float(np.abs(term).max()) for term in terms)

    def frame_forces(self, forces: Array) -> Array:
        """Return Yᵀf + Eᵀh; see `MeshSolver`."""
        return self.solver.frame_forces(forces, self._gaps)

    def condensed(self) -> Array:
        """Return S − CᵀY; see `MeshSolver`."""
        return self.solver.condensed()


def _extrapolated(now: Array, last: Array, second_last: Array) -> Array:
    """Extrapolate the values of up to three steps; absent ones are NaN, without any it is 0."""
    if np.isnan(now).any():
        return np.zeros_like(now)
    if np.isnan(last).any():
        return now
    return 2 * now - last if np.isnan(second_last).any() else 3 * (now - last) + second_last
