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
from dolfinx_mbd.kernels.matrices import fill
from dolfinx_mbd.kernels.time_steps import rotated_rows, step_rotations
from dolfinx_mbd.multibody.assembly.assembler import Assembler
from dolfinx_mbd.multibody.model.system import State
from dolfinx_mbd.multibody.sensitivities.step_factor import StepFactor
from dolfinx_mbd.multibody.stepping.integrators import StepError, Stepper


class StepEquations:
    """Linear equations of a step of constant length.

    Derivatives of a state are arrays (4, nv, columns) of q, v, a and w.

    Args:
        stepper: The stepper of the run.
        dt: Time step, s.
        adjoint: Whether `backward` is called after `linearize`, and not `forward`.
    """

    def __init__(self, stepper: Stepper, dt: float, *, adjoint: bool = False) -> None:
        self._system, m = stepper.system, stepper.method
        self._at, self._dt = Assembler(self._system), dt
        self._old, self._older = m.alpha_f / (1 - m.alpha_m), m.alpha_m / (1 - m.alpha_m)
        self._beta, self._gamma = m.beta, m.gamma
        self._ratio = (1 - m.alpha_f) / (1 - m.alpha_m)
        self._by_a, self._by_speed = m.beta * dt * dt * self._ratio, m.gamma * dt * self._ratio
        masses = [b.typical_mass for b in self._system.bodies if b.num_velocities]
        self._mass = float(np.mean(masses))
        columns = [
            part.start + 3
            for body, part in zip(self._system.bodies, self._system.v_slices, strict=True)
            if body.num_coordinates > body.num_velocities
        ]
        self._columns = np.array(columns, dtype=np.int64)
        self._adjoint, self._factor = adjoint, StepFactor(self._at)
        self._turns = np.zeros((len(columns), 3, 3))  # tangent operators of the rotations
        self._carried = np.zeros((len(columns), 3, 3))

    def linearize(self, before: State, after: State) -> None:
        """Compute the equations of the step between two states."""
        at, n = self._at, self._system.num_velocities
        at.put(after)
        at.update_wrenches(after.time)
        K, C, M, B = at.tangent(after.time)
        step_rotations(self._move(before, after), self._columns, self._turns, self._carried)
        S = np.zeros((n + len(B), n + len(B)), order="F")
        by_rate, by_speed = 1.0 / self._by_a, self._by_speed / self._by_a
        fill(K, C, M, B, self._columns, self._turns, by_rate, by_speed, self._mass, S)
        self._K, self._C, self._B = K, C, B  # columns of K and B refer to the increment of the step
        if self._factor.factorize(S, self._adjoint) > 0:
            raise StepError(f"the exact tangent is singular at t = {after.time:g} s", after.time)

    def _move(self, before: State, after: State) -> Array:
        """Return the increment of the step (nv,)."""
        dt, old, new = self._dt, before.memory["algorithmic"], after.memory["algorithmic"]
        velocity = before.memory.get("velocity", before.v)
        return dt * velocity + dt * dt * ((0.5 - self._beta) * old + self._beta * new)

    def _rotated(self, blocks: Array, x: Array, transposed: bool = False) -> Array:
        """Return x (nv, columns) with the rotations of bodies multiplied by blocks (·, 3, 3)."""
        out = np.empty(x.shape)
        rotated_rows(blocks, self._columns, transposed, np.ascontiguousarray(x), out)
        return out

    def forward(self, x: Array, rows: Array, values: Array) -> tuple[Array, Array]:
        """Return the derivatives of the next state and of its multipliers (nc, columns).

        Args:
            x: Derivatives of the state before the step, (4, nv, columns).
            rows: ∂R/∂p, (nv, columns).
            values: ∂Φ/∂p, (nc, columns).
        """
        dt, n, (q, v, a, old) = self._dt, x.shape[1], x
        w = self._old * a - self._older * old
        q = self._rotated(self._carried, q)
        q += dt * v + dt * dt * ((0.5 - self._beta) * old + self._beta * w)
        v = v + dt * ((1 - self._gamma) * old + self._gamma * w)
        right = np.empty((n + len(values), x.shape[2]), order="F")
        right[:n] = -(rows + self._K @ q + self._C @ v)
        right[n:] = -self._mass / self._by_a * (values + self._B @ q)
        solution = self._factor.solve(right)
        a = solution[:n]
        q = self._rotated(self._turns, q + self._by_a * a)
        new = np.array([q, v + self._by_speed * a, a, w + self._ratio * a])
        return new, self._mass * solution[n:]

    def backward(self, y: Array, lam: Array) -> tuple[Array, Array, Array]:
        """Return the adjoint before the step, and the adjoints of ∂R/∂p and of ∂Φ/∂p.

        Args:
            y: Derivatives of the functionals with respect to the state after the step, (4, nv,
                columns).
            lam: Derivatives with respect to the multipliers after the step, (nc, columns).
        """
        dt, n, (q, v, a, w) = self._dt, y.shape[1], y
        q = self._rotated(self._turns, q, transposed=True)
        right = np.empty((n + len(lam), y.shape[2]), order="F")
        right[:n] = a + self._ratio * w + self._by_speed * v + self._by_a * q
        right[n:] = self._mass * lam
        solution = self._factor.solve(right)
        rows, values = -solution[:n], -self._mass / self._by_a * solution[n:]
        q = q + self._K.T @ rows + self._B.T @ values
        v = v + self._C.T @ rows
        w = w + dt * dt * self._beta * q + dt * self._gamma * v
        old = dt * dt * (0.5 - self._beta) * q + dt * (1 - self._gamma) * v - self._older * w
        carried = self._rotated(self._carried, q, transposed=True)
        return np.array([carried, v + dt * q, self._old * w, old]), rows, values
