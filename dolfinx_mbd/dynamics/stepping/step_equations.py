"""The linear equations that the derivatives of a time step satisfy, and their adjoint.

Each time step solves R(q, v, a, λ; p) = 0 and Φ(q; p) = 0 together with the formulas of the
generalized-α method. Differentiation gives one linear system with the exact tangent of the step for
all parameters; its transpose propagates the derivatives of a functional backwards. Symbols:
residual R, constraints Φ, coordinates q, velocities v, accelerations a, multipliers λ, parameters
p, algorithmic accelerations w. Derivatives of q are increments: translations in global components,
rotation vectors in body components, elastic coordinates.
"""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.integrators import StepError, Stepper
from dolfinx_mbd.dynamics.stepping.step_factor import ExtrapolatedFactor, StepFactor
from dolfinx_mbd.kernels.matrices import fill
from dolfinx_mbd.kernels.time_steps import rotate_rows, step_rotations
from dolfinx_mbd.mechanism.system import State
from dolfinx_mbd.time_integration import GeneralizedAlpha

_OTHERS = [0, 1, 3]  # q, v and w in the derivatives of a state
_AS_THEY_ARE, _TRANSPOSED = False, True  # blocks in `rotate_rows`


class StepEquations:
    """Linear equations of a step of constant length.

    Derivatives of a state are arrays (4, nv, columns) of q, v, a and w.

    Args:
        stepper: The stepper of the run.
        dt: Time step, s.
        adjoint: Whether `backward` is called after `linearize`, and not `forward`.
        during_run: Whether `linearize` is called after each step of the stepper. The stepper then
            uses the exact tangents of the last two steps in its next step.
    """

    def __init__(
        self, stepper: Stepper, dt: float, *, adjoint: bool = False, during_run: bool = False
    ) -> None:
        self._system, m = stepper.system, stepper.method
        self._at, self._dt = stepper.assembler if during_run else Assembler(self._system), dt
        self._run = stepper if during_run else None
        self._beta, self._gamma = m.beta, m.gamma
        ratio = (1 - m.alpha_f) / (1 - m.alpha_m)
        self._move_by_a, self._v_by_a = m.beta * dt * dt * ratio, m.gamma * dt * ratio
        self._correction = np.array([self._move_by_a, self._v_by_a, ratio])[:, None, None]
        self._prediction = _prediction(m, dt)
        masses = [b.typical_mass for b in self._system.bodies if b.num_velocities]
        self._mass = float(np.mean(masses))
        columns = [
            part.start + 3
            for body, part in zip(self._system.bodies, self._system.v_slices, strict=True)
            if body.num_coordinates > body.num_velocities
        ]
        self._columns = np.array(columns, dtype=np.int64)
        self._adjoint = adjoint
        self._factor, self._matrix = self._new_factor()
        # factor and matrix of the step before the last one, and the number of linearized steps
        self._before = self._new_factor() if during_run else (self._factor, self._matrix)
        self._count = 0
        self._tangent = self._at.zero_tangent()
        # For the rotation vector θ of each body in the step: the tangent operator T(θ), and
        # T(−θ)⁻¹, which maps an increment of the rotation before the step to one of θ
        self._turns = np.zeros((len(columns), 3, 3))
        self._carried = np.zeros((len(columns), 3, 3))

    def _new_factor(self) -> tuple[StepFactor, Array]:
        """Return a factor and its matrix, which LAPACK may overwrite."""
        size = self._system.num_velocities + self._system.num_constraints
        return StepFactor(self._at), np.zeros((size, size), order="F")

    def linearize(self, before: State, after: State) -> None:
        """Compute the equations of the step between two states."""
        at, n = self._at, self._system.num_velocities
        if self._run is None or not self._run.is_evaluated:
            at.put(after)
            at.update_wrenches(after.time)
        K, C, M, B = at.tangent(after.time, self._tangent)
        step_rotations(self._move(before, after), self._columns, self._turns, self._carried)
        (self._factor, S), self._before = self._before, (self._factor, self._matrix)
        self._matrix = S
        S[n:, n:] = 0.0
        # Derivatives of accelerations and velocities with respect to the increments of the step
        a_by_move, v_by_move = 1.0 / self._move_by_a, self._v_by_a / self._move_by_a
        fill(K, C, M, B, self._columns, self._turns, a_by_move, v_by_move, self._mass, S)
        self._K, self._C, self._B = K, C, B  # columns of K and B refer to the increment of the step
        if self._factor.factorize(S, self._adjoint) > 0:
            raise StepError(f"the exact tangent is singular at t = {after.time:g} s", after.time)
        if self._run is not None:
            self._factor.dt, self._factor.mass = self._dt, M
            last, _ = self._before
            self._run.adopt(ExtrapolatedFactor(self._factor, last) if self._count else self._factor)
            self._count += 1

    def _move(self, before: State, after: State) -> Array:
        """Return the increment of the step (nv,)."""
        dt, old, new = self._dt, before.memory["algorithmic"], after.memory["algorithmic"]
        velocity = before.memory.get("velocity", before.v)
        return dt * velocity + dt * dt * ((0.5 - self._beta) * old + self._beta * new)

    def forward(self, x: Array, rows: Array, values: Array) -> tuple[Array, Array]:
        """Return the derivatives of the next state and of its multipliers (nc, columns).

        Args:
            x: Derivatives of the state before the step, (4, nv, columns).
            rows: ∂R/∂p, (nv, columns).
            values: ∂Φ/∂p, (nc, columns).
        """
        n, columns = x.shape[1:]
        x = np.array(x)
        rotate_rows(self._carried, self._columns, _AS_THEY_ARE, x[0])
        predicted = (self._prediction @ x.reshape(4, -1)).reshape(3, n, columns)
        q, v, _ = predicted
        right = np.empty((n + len(values), columns), order="F")
        right[:n] = -(rows + self._K @ q + self._C @ v)
        right[n:] = -self._mass / self._move_by_a * (values + self._B @ q)
        solution = self._factor.solve(right)
        x[2] = a = solution[:n]
        x[_OTHERS] = predicted + self._correction * a
        rotate_rows(self._turns, self._columns, _AS_THEY_ARE, x[0])
        return x, self._mass * solution[n:]

    def backward(self, y: Array, lam: Array) -> tuple[Array, Array, Array]:
        """Return the adjoint before the step, and the adjoints of ∂R/∂p and of ∂Φ/∂p.

        Args:
            y: Derivatives of the functionals with respect to the state after the step, (4, nv,
                columns).
            lam: Derivatives with respect to the multipliers after the step, (nc, columns).
        """
        n, columns = y.shape[1:]
        y = np.array(y)
        rotate_rows(self._turns, self._columns, _TRANSPOSED, y[0])
        right = np.empty((n + len(lam), columns), order="F")
        right[:n] = y[2] + (self._correction * y[_OTHERS]).sum(axis=0)
        right[n:] = self._mass * lam
        solution = self._factor.solve(right)
        rows, values = -solution[:n], -self._mass / self._move_by_a * solution[n:]
        predicted = y[_OTHERS]
        predicted[0] += self._K.T @ rows + self._B.T @ values
        predicted[1] += self._C.T @ rows
        y = (self._prediction.T @ predicted.reshape(3, -1)).reshape(4, n, columns)
        rotate_rows(self._carried, self._columns, _TRANSPOSED, y[0])
        return y, rows, values


def _prediction(method: GeneralizedAlpha, dt: float) -> Array:
    """Return the matrix (3, 4) from (q, v, a, w) to q, v and w after a step without change of a."""
    m, w = method, np.zeros(4)
    w[2:] = m.alpha_f / (1 - m.alpha_m), -m.alpha_m / (1 - m.alpha_m)
    q, v = m.beta * dt * dt * w, m.gamma * dt * w
    q += [1.0, dt, 0.0, dt * dt * (0.5 - m.beta)]
    v += [0.0, 1.0, 0.0, dt * (1 - m.gamma)]
    return np.array([q, v, w])
