"""Derivatives of a quasi-static start with respect to parameters.

If the constraints determine all rigid motions, the start follows from three equations: equilibrium
without elastic rates, rates of this equilibrium, and equilibrium with these rates. Their linear
equations have the same matrices for all parameters; differences give the right-hand sides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.design.runs.mechanism_changes import central_difference
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError, extent
from dolfinx_mbd.dynamics.assembly.rates import steady_accelerations
from dolfinx_mbd.dynamics.start.quasi_static import Balance, elastic_derivative
from dolfinx_mbd.kernels.columns import ABOUT_X
from dolfinx_mbd.mechanism.system import State, System

_SAME = 1e-8  # largest difference of accelerations from those of the start, relative to them
_MAX_ITERATIONS = 20
_NEARLY_CLOSED = 1e-8  # error of constraints before the last iteration, relative or rad
_SAME_RATE = 1e-4  # largest error of the elastic rates relative to them


class QuasiStaticSlopes:
    """First-order changes of a quasi-static start when parameters change.

    Args:
        first: State that `consistent_state` returned.
        base: Assembler of the mechanism.

    Attributes:
        valid: Whether the three equations give the first state.
    """

    def __init__(self, first: State, base: Assembler) -> None:
        system = base.system
        self._first, self._t = first, first.time
        self._elastic_dofs, self._rigid_dofs = system.elastic, system.rigid
        bodies = zip(system.bodies, system.q_slices, strict=True)
        self._parts = [slice(q.stop - body.num_elastic, q.stop) for body, q in bodies]
        # Elastic coordinates and rates of the start; `_still` are those without elastic rates
        self._deformed, self._speed = self._elastic(first.q), first.v[self._elastic_dofs]
        base.put(first)
        base.update_poses(first.time)
        length, v = extent(base), np.zeros(system.num_velocities)
        v[self._rigid_dofs] = first.v[self._rigid_dofs]
        balance = Balance(base, first.time, {})
        balance.settle(v)
        self._still = self._elastic(base.q)
        _, self._still_matrix = elastic_derivative(base, first.time, {}, length)
        # Step of time differences, s; the mechanism moves by at most 1e-3 m or rad in it
        self._time_step = min(1e-5, 1e-3 / max(1e-3, float(np.abs(base.v[self._rigid_dofs]).max())))
        rate_error = np.linalg.solve(self._still_matrix, self._rate(base, self._still))
        self._restore(base, first.time, self._deformed, self._speed)
        _, self._matrix = elastic_derivative(base, first.time, {}, length)
        difference = np.abs(base.a - first.a).max() / np.abs(first.a).max()
        same_rate = np.abs(rate_error).max() <= _SAME_RATE * np.abs(self._speed).max()
        self.valid = bool(same_rate and difference <= _SAME)

    @staticmethod
    def applies(system: System) -> bool:
        """Return whether the constraints determine all rigid motions of an elastic mechanism."""
        complete = bool(system.held.all()) and not system.has_clearance
        specified = any(joint.rate is not None for joint in system.joints)
        determined = len(system.rigid) == system.num_constraints
        return complete and determined and len(system.elastic) > 0 and not specified

    def states(self, assemblers: Mapping[int, Assembler], step: float) -> dict[int, State]:
        """Return first-order changed starts; the keys are the multiples of the parameter step."""

        def slope(matrix: Array, residual: Callable[[int, Assembler], Array]) -> Array:
            values = {k: residual(k, eqs) for k, eqs in assemblers.items()}
            solution = np.linalg.solve(matrix, central_difference(values, step))
            return np.asarray(-solution, dtype=float)

        t, still, speed = self._t, self._still, self._speed
        zero = np.zeros_like(speed)
        by_still = slope(self._still_matrix, lambda k, eqs: self._residual(eqs, still, zero))
        by_speed = slope(
            self._still_matrix, lambda k, eqs: self._rate(eqs, still + k * step * by_still)
        )
        by_deformed = slope(
            self._matrix,
            lambda k, eqs: self._residual(eqs, self._deformed, speed + k * step * by_speed),
        )
        states = {}
        for k, eqs in assemblers.items():
            moved = self._deformed + k * step * by_deformed
            self._restore(eqs, t, moved, speed + k * step * by_speed)
            eqs.update_poses(t)
            states[k] = eqs.state(t)
        return states

    def _elastic(self, q: Array) -> Array:
        """Return the elastic coordinates of all bodies, (n,)."""
        return np.concatenate([q[part] for part in self._parts])

    def _restore(self, eqs: Assembler, t: float, deformation: Array, speed: Array) -> None:
        """Satisfy the constraints with elastic coordinates and rates (n,) at t."""
        eqs.put(self._first)
        move, v = np.zeros_like(self._first.v), self._first.v.copy()
        move[self._elastic_dofs] = deformation - self._deformed
        v[self._elastic_dofs] = speed
        eqs.move(self._first.q, move)
        self._determine(eqs, t, v)

    def _determine(self, eqs: Assembler, t: float, v: Array) -> None:
        """Satisfy the constraints and their time derivatives for the elastic rates of v (nv,).

        The constraints determine the rigid motions, so that their matrix is square. Raise an
        `AssemblyError` if it is singular or the constraints cannot be satisfied.
        """
        s, r = eqs.system, self._rigid_dofs
        change = np.zeros(s.num_velocities)
        lengths = np.where(s.row_motion < ABOUT_X, s.size, 1.0)  # scales of distances and of angles
        for _ in range(_MAX_ITERATIONS):
            values = eqs.constraints(t)
            error = float(np.abs(values / lengths).max())
            change[r] = _solved(eqs.constraint_matrix()[:, r], -values)
            eqs.move(eqs.q.copy(), change)
            if error <= _NEARLY_CLOSED:
                break
        else:
            raise AssemblyError("a changed mechanism cannot be assembled", misfit=error)
        eqs.update_poses(t)
        B = eqs.constraint_matrix()
        eqs.v[:] = v
        rates, _ = eqs.constraint_rates(t)
        eqs.v[r] -= _solved(B[:, r], rates + B @ v)
        eqs.a[:], eqs.lam[:] = steady_accelerations(eqs, r), 0.0
        _, bias = eqs.constraint_rates(t)
        eqs.a[r] -= _solved(B[:, r], bias + B @ eqs.a)
        eqs.residual(t)
        eqs.lam[:] = _solved(B[:, r].T, -eqs.rows[r])

    def _residual(self, eqs: Assembler, deformation: Array, speed: Array) -> Array:
        """Return the elastic residual (n,) with elastic coordinates and rates."""
        self._restore(eqs, self._t, deformation, speed)
        eqs.residual(self._t)
        return eqs.rows[self._elastic_dofs].copy()

    def _rate(self, eqs: Assembler, deformation: Array) -> Array:
        """Return the rate of the elastic residual (n,) if the deformation has the start's rate."""
        self._restore(eqs, self._t, deformation, np.zeros_like(self._speed))
        h, q, v, a = self._time_step, eqs.q.copy(), eqs.v.copy(), eqs.a.copy()
        v[self._elastic_dofs] = a[self._elastic_dofs] = 0.0
        moving = v.copy()
        moving[self._elastic_dofs] = self._speed
        rows = []
        for step in (h, -h):
            eqs.move(q, step * moving + 0.5 * h * h * a)
            self._determine(eqs, self._t + step, v + step * a)
            eqs.residual(self._t + step)
            rows.append(eqs.rows[self._elastic_dofs].copy())
        return np.asarray((rows[0] - rows[1]) / (2 * h), dtype=float)


def _solved(matrix: Array, right: Array) -> Array:
    """Return the solution of a linear system."""
    try:
        return np.asarray(np.linalg.solve(matrix, right), dtype=float)
    except np.linalg.LinAlgError:
        raise AssemblyError("a changed mechanism is in a singular position") from None
