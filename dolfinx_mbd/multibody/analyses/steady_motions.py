"""Linearizations of mechanisms with changed parameters, in coordinates that change smoothly.

Newton steps with the exact tangent determine the equilibrium or steady motion to round-off. The
free motions are y = N(p) z, where N(p) is the projection of the basis N at the given values on the
motions that the constraints permit; see `small_motions`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body.linearized import RANK_TOLERANCE
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.multibody.analyses.equilibrium import equilibrium
from dolfinx_mbd.multibody.analyses.linearization import (
    LinearizedSystem,
    SteadyError,
    unbalanced,
)
from dolfinx_mbd.multibody.analyses.signals import Inputs
from dolfinx_mbd.multibody.analyses.small_motions import (
    Axes,
    SmallMotions,
    balanced_motions,
    free_directions,
    steady_rates,
)
from dolfinx_mbd.multibody.analyses.state_space import state_space
from dolfinx_mbd.multibody.assembly.assembler import Assembler
from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.results.outputs import Outputs
from dolfinx_mbd.multibody.start.consistent_state import check_state
from dolfinx_mbd.multibody.start.position_assembly import coordinates

__all__ = ["Matrices", "SteadyMotions"]

Array = NDArray[np.float64]
Matrices = tuple[Array, ...]
"""A, B, C and D of `state_space`, and the increments of all coordinates per unit of z."""

_NEWTON_STEPS = 2  # each squares the error of the state
_BALANCE = 1e-6  # largest unbalanced force relative to the acting forces, as in `linearize`
_NEUTRAL = 1e-14  # stiffness of neutral motions relative to the largest one


class SteadyMotions:
    """Linearizations of changed mechanisms in coordinates that are smooth functions of parameters.

    The axes are those of the linearization; `spin` is the angular velocity of given axes.
    """

    def __init__(
        self,
        linear: LinearizedSystem,
        spin: Array,
        state: Callable[[SystemData], State] | None,
        outputs: Outputs,
    ) -> None:
        self._linear, self._spin, self._outputs = linear, spin, outputs
        self._state = self._near_equilibrium if state is None else state
        self._moved = linear.state.q - coordinates(linear.system)
        self._basis = self._balanced(linear.system, linear.state)[2]

    def matrices(self, system: SystemData) -> Matrices:
        """Return the matrices at the steady motion of a mechanism."""
        first = self._linear.system
        sizes = [(s.num_velocities, s.num_constraints) for s in (first, system)]
        if sizes[0] != sizes[1]:
            raise InputError("build returns mechanisms of different sizes", argument="build")
        state = self._linear.state if system is first else self._state(system)
        check_state("state(system)", state, system)
        inputs = Inputs(system, self._linear.inputs)
        at, motions, _ = self._balanced(inputs.system, state)
        row, share = unbalanced(at, state.time)
        if not share <= _BALANCE:
            raise SteadyError(f"{system.row_name(row)} is not in balance for a changed parameter")
        basis = self._basis + _least_move(motions, motions.constraints @ self._basis)
        parts = state_space(at, state.time, motions, basis, inputs, self._outputs)
        return *parts, motions.resolve @ basis

    def _near_equilibrium(self, system: SystemData) -> State:
        """Return the equilibrium near that of the linearization."""
        q = coordinates(system) + self._moved
        for body, part in zip(system.bodies, system.q_slices, strict=True):
            if body.num_coordinates > body.num_velocities:  # a unit quaternion
                q[part][3:7] /= np.linalg.norm(q[part][3:7])
        return equilibrium(system, q=q, angles=self._linear.state.angles)

    def _balanced(self, system: SystemData, state: State) -> tuple[Assembler, SmallMotions, Array]:
        """Return the steady motion near a state, its coefficients and free motions (nv, m)."""
        at = Assembler(system)
        at.q[:], at.v[:], at.angles[:] = state.q, state.v, state.angles
        for remaining in range(_NEWTON_STEPS, -1, -1):
            axes = Axes.common(system, self._spin)
            if self._linear.axes == "body":
                axes = Axes.of_bodies(system, at.q, at.v)
            at.a[:] = steady_rates(at, axes)
            motions = balanced_motions(at, state.time, axes)
            basis = free_directions(motions)
            K = motions.reduced(basis)[2]
            squares, shapes = np.linalg.eigh(0.5 * (K + K.T))
            basis = basis @ shapes
            if not remaining:
                break
            y = _least_move(motions, at.values)
            N = basis[:, np.abs(squares) > _NEUTRAL * np.abs(squares).max()]
            force = motions.resolve.T @ at.rows + motions.stiffness @ y
            y -= N @ np.linalg.solve(motions.reduced(N)[2], N.T @ force)
            at.move(at.q.copy(), motions.resolve @ y)
            at.v += motions.resolve @ (motions.carry @ y)
        return at, motions, basis


def _least_move(motions: SmallMotions, values: Array) -> Array:
    """Return the increments with the least kinetic energy that change constraints by −values."""
    scale = 1 / np.sqrt(np.diag(motions.mass))
    rows = motions.constraints * scale
    size = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    right = -(values.T / size).T
    return (np.linalg.lstsq(rows / size[:, None], right, rcond=RANK_TOLERANCE)[0].T * scale).T
