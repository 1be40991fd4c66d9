"""Linearizations of mechanisms with changed parameters, in coordinates that change smoothly.

Newton steps with the exact tangent determine the equilibrium or steady motion to round-off. They
do not change neutral coordinates, such as the position of a body that moves freely. The free
motions are y = N(p) z, where N(p) is the projection of the basis N at the given values on the
motions that the constraints permit; see `small_motions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.analyses.linearization import SteadyError
from dolfinx_mbd.analyses.linearized_system import LinearizedSystem
from dolfinx_mbd.analyses.signals import Inputs
from dolfinx_mbd.analyses.small_motions import (
    Axes,
    SmallMotions,
    balanced_motions,
    free_directions,
    steady_rates,
)
from dolfinx_mbd.analyses.state_space import state_space
from dolfinx_mbd.analyses.unbalanced_forces import unbalanced
from dolfinx_mbd.body.response.linearized import RANK_TOLERANCE
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.start.position_assembly import coordinates
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.columns import QUATERNION
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.outputs import Outputs

__all__ = ["Matrices", "SteadyMotions"]

Array = NDArray[np.float64]
Matrices = tuple[Array, ...]
"""A, B, C and D of `state_space`, and the increments of all coordinates per unit of z."""

_NEWTON_STEPS = 4  # each squares the error of the state, at first about 1e-3
_BALANCE = 1e-6  # largest unbalanced force relative to the acting forces, as in `linearize`


class SteadyMotions:
    """Linearizations of changed mechanisms in coordinates that are smooth functions of parameters.

    The axes are those of the linearization. If they are common axes of all bodies, `spin` is their
    angular velocity.
    """

    def __init__(
        self,
        linear: LinearizedSystem,
        spin: Array,
        state: Callable[[System], State] | None,
        outputs: Outputs,
    ) -> None:
        self._linear, self._spin, self._outputs = linear, spin, outputs
        self._state = self._near_equilibrium if state is None else state
        self._moved = linear.state.q - coordinates(linear.system)
        eqs = Assembler(linear.system)
        motions = self._put(eqs, linear.state)
        basis = free_directions(motions)
        _, _, K = motions.reduced(basis)
        squares, shapes = np.linalg.eigh(0.5 * (K + K.T))
        order = np.argsort(np.abs(squares))  # neutral motions first
        self._basis = basis @ shapes[:, order]
        self._neutral = int(np.sum(linear.poles == 0))

    def matrices(self, system: System) -> Matrices:
        """Return the matrices at the steady motion of a mechanism."""
        first = self._linear.system
        sizes = [(s.num_velocities, s.num_constraints) for s in (first, system)]
        if sizes[0] != sizes[1]:
            raise InputError("build returns mechanisms of different sizes", argument="build")
        state = self._linear.state if system is first else self._state(system)
        system.check_state("state(system)", state)
        inputs = Inputs(system, self._linear.inputs)
        eqs = Assembler(inputs.system)
        motions = self._put(eqs, state)
        for _ in range(_NEWTON_STEPS):
            N = self._free(motions)[:, self._neutral :]
            y = _least_move(motions, eqs.values)
            force = motions.to_increments.T @ eqs.rows + motions.stiffness @ y
            _, _, K = motions.reduced(N)
            y -= N @ np.linalg.solve(K, N.T @ force)
            eqs.move(eqs.q.copy(), motions.to_increments @ y)
            eqs.v += motions.to_increments @ (motions.carry @ y)
            motions = self._coefficients(eqs, state.time)
        row, ratio = unbalanced(eqs, state.time)
        if not ratio <= _BALANCE:
            raise SteadyError(f"{system.row_name(row)} is not in balance for a changed parameter")
        basis = self._free(motions)
        parts = state_space(eqs, state.time, motions, basis, inputs, self._outputs)
        return *parts, motions.to_increments @ basis

    def _near_equilibrium(self, system: System) -> State:
        """Return a state near the equilibrium, for Newton's method."""
        q = coordinates(system) + self._moved
        for body, part in zip(system.bodies, system.q_slices, strict=True):
            if body.num_coordinates > body.num_velocities:  # a unit quaternion
                q[part][QUATERNION] /= np.linalg.norm(q[part][QUATERNION])
        return replace(self._linear.state, q=q)

    def _put(self, eqs: Assembler, state: State) -> SmallMotions:
        """Set positions and velocities, and return the coefficients of small motions."""
        eqs.q[:], eqs.v[:], eqs.angles[:] = state.q, state.v, state.angles
        return self._coefficients(eqs, state.time)

    def _coefficients(self, eqs: Assembler, t: float) -> SmallMotions:
        """Set accelerations and reactions, and return the coefficients of small motions."""
        axes = Axes.common(eqs.system, self._spin)
        if self._linear.axes == "body":
            axes = Axes.of_bodies(eqs.system, eqs.q, eqs.v)
        eqs.a[:] = steady_rates(eqs, axes)
        return balanced_motions(eqs, t, axes)

    def _free(self, motions: SmallMotions) -> Array:
        """Return the free motions N(p), shape (nv, m), neutral motions first."""
        return self._basis + _least_move(motions, motions.constraints @ self._basis)


def _least_move(motions: SmallMotions, values: Array) -> Array:
    """Return the increments of least kinetic energy that change the constraints by `-values`."""
    scale = 1 / np.sqrt(np.diag(motions.mass))
    rows = motions.constraints * scale
    size = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    right = -(values.T / size).T
    return (np.linalg.lstsq(rows / size[:, None], right, rcond=RANK_TOLERANCE)[0].T * scale).T
