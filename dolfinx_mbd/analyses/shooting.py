"""The map of a state over one period, and its derivative.

A state X = (q, v, a, w) of the integrator has coordinates, velocities, accelerations and
algorithmic accelerations w. A period of N steps maps it to Φ(X). The equations of the steps
(`step_equations`) propagate derivatives, so that Φ' times some columns needs no further
simulations.

Only the free motions survive a period. They have the coordinates c = P δX: m coordinates of the
increments of q that the constraints permit, m coordinates of those of v, and the states of loads.
Other differences, such as those of w, decay within some tens of steps. The columns S of X that
belong to c, with P S = 1, are therefore computed by propagating arbitrary columns over the last K
steps of the period. With E = Φ'S, the increment of X that closes the cycle is Φ(X) − X + E c, and c
solves

    (1 − P E) c = P (Φ(X) − X).

P E is the monodromy matrix; its eigenvalues are the Floquet multipliers. If only the rotation of
`rotors` is not periodic, Φ also turns them back by their rotation in a period.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dolfinx_mbd.analyses.balance import restore_constraints
from dolfinx_mbd.analyses.rotors import Rotors
from dolfinx_mbd.analyses.small_motions import increment_between
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.response.linearized import null_space
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.convergence import count_groups, row_groups
from dolfinx_mbd.dynamics.stepping.halved_steps import step_or_halves
from dolfinx_mbd.dynamics.stepping.integrators import Stepper
from dolfinx_mbd.dynamics.stepping.step_equations import StepEquations
from dolfinx_mbd.mechanism.system import State, System

__all__ = ["PeriodMap", "closure", "closure_of_oil", "difference", "return_to", "simulate_period"]

_DECAY = 1e-10  # factor by which differences of w decay in the steps that prepare the columns
_FEWEST, _MOST = 60, 400  # limits of the number of these steps
_RANK = 1e-12  # singular values of columns below this fraction of the largest are ignored
_FLOOR = 1e-9  # displacements (relative to the mechanism, or rad) that count as zero
_ROUND_OFF = 8 * float(np.finfo(float).eps)  # error of a position, relative to its size
_SAMPLES = 100  # number of states from which the size of the motion is found
_LEAST_SIZE = 1e-3  # smallest size of a mechanism in the round-off of positions, m
_LEAST_STATE = 1e-12  # smallest range of a state of a load
_SMALL = 1e-6  # ranges of motion below this fraction of the largest one do not count
# Without a whirl, the other rotations of a rotor are round-off. Errors of rotations are therefore
# relative to at least this fraction of its angle in the period, and errors of rates to that of its
# speed
_WHIRL = 1e-4


def simulate_period(stepper: Stepper, first: State, dt: float, steps: int) -> list[State]:
    """Return the states of one period, (steps + 1,), from a state that `begin` prepared."""
    states = [first]
    for _ in range(steps):
        states.append(step_or_halves(stepper, states[-1], dt))
    # the sum of the steps has round-off
    states[-1] = replace(states[-1], time=first.time + steps * dt)
    return states


def difference(system: System, first: State, second: State) -> Array:
    """Return the increments of q, v, a and w from a state to another one, (4, nv)."""
    return np.array(
        [
            increment_between(system, first.q, second.q),
            second.v - first.v,
            second.a - first.a,
            _algorithmic(second) - _algorithmic(first),
        ]
    )


def _algorithmic(state: State) -> Array:
    """Return the algorithmic accelerations w (nv,) of a state."""
    return np.asarray(state.memory.get("algorithmic", state.a), dtype=float)


def return_to(eqs: Assembler, first: State, last: State, change: Array | None = None) -> State:
    """Return the last state of a period at the time of the first one.

    Full turns of joints are subtracted from their rotations. `change` (4, nv) is added to the
    state; its coordinates then satisfy the constraints.
    """
    full_rotations = 2 * np.pi * np.round((last.angles - first.angles) / (2 * np.pi))
    state = replace(last, time=first.time, angles=last.angles - full_rotations)
    if change is None:
        return state
    eqs.put(state)
    dq, dv, da, dw = change
    eqs.move(state.q, dq)
    if eqs.system.num_constraints:
        restore_constraints(eqs, first.time)
    eqs.update_poses(first.time)
    memory = {**state.memory, "algorithmic": _algorithmic(state) + dw}
    return replace(
        state,
        q=eqs.q.copy(),
        v=state.v + dv,
        a=state.a + da,
        angles=eqs.frames.joint_rotations(),
        memory=memory,
    )


def closure(rotors: Rotors, states: Sequence[State], period: float) -> tuple[float, int]:
    """Return the relative difference of the first and the last state, and its coordinate.

    The difference is the largest one over all coordinates and velocities, and the second result is
    the index of its coordinate. Displacements and rotations are relative to the largest one of the
    same kind of the same body in the period, and velocities to the largest velocity. The rotation
    of a rotor about its axis is relative to its angle in the period, and its rate to its speed.
    """
    system, first = rotors.system, states[0]
    # Group 3k + kind has the coordinates of body k of one kind: displacements, rotations or elastic
    # coordinates; a group of its own for each state of a load follows
    groups = row_groups(system)
    chosen = [
        rotors.back(state, state.time - first.time)
        for state in [*states[:: max(1, len(states) // _SAMPLES)], states[-1]]
    ]
    moves = np.abs([increment_between(system, first.q, state.q) for state in chosen]).max(axis=0)
    speeds = np.abs([state.v - rotors.spins for state in chosen]).max(axis=0)
    moves = np.maximum(moves, _WHIRL * period * np.abs(rotors.spins))
    speeds = np.maximum(speeds, _WHIRL * np.abs(rotors.spins))
    changes = difference(system, first, chosen[-1])[:2]  # of q and v from the first state
    # The scales above are at least _WHIRL times the angle and the speed of a rotor. Changes of both
    # are multiplied by _WHIRL, so that they count relative to the angle and the speed themselves
    changes = np.abs(changes - (1 - _WHIRL) * rotors.about_axes(changes))
    changes[0, system.states] = 0.0  # integrals of the states of loads are no displacements
    # Round-off of a position, divided by the time step, is an error of a velocity
    noise = (
        _ROUND_OFF
        * (len(states) - 1)
        / period
        * np.array([max(system.size, _LEAST_SIZE), 1.0, 0.0])
    )
    noise_of_rows = np.where(groups < 3 * len(system.bodies), noise[groups % 3], 0)
    changes[1] = np.maximum(changes[1] - noise_of_rows, 0)
    errors = np.zeros(len(groups))
    floors = np.array([_FLOOR * max(system.size, 1.0), _FLOOR, _FLOOR * max(system.size, 1.0)])
    for k, values in enumerate((moves, speeds)):
        sizes = np.zeros(count_groups(system))
        np.maximum.at(sizes, groups, values)
        kinds = np.arange(len(sizes)) % 3
        bodies = np.arange(len(sizes)) < 3 * len(system.bodies)
        for kind in range(3):
            of_kind = bodies & (kinds == kind)
            floor = floors[kind] * (2 * np.pi / period if k else 1.0)
            least = max(_SMALL * float(sizes[of_kind].max(initial=0.0)), floor)
            sizes[of_kind] = np.maximum(sizes[of_kind], least)
        sizes[~bodies] = np.maximum(sizes[~bodies], _LEAST_STATE)
        errors = np.maximum(errors, changes[k] / sizes[groups])
    row = int(np.argmax(errors))
    return float(errors[row]), row


def closure_of_oil(eqs: Assembler, states: Sequence[State]) -> tuple[float, str]:
    """Return how much the oil in the films differs at the end of a period from its start.

    The first result is the largest difference of the oil thickness between the first and the last
    state, divided by the clearance. The second is the name of the film in which it occurs.
    """
    if not eqs.loads.has_content:
        return 0.0, ""
    thickness = []
    for state in (states[0], states[-1]):
        eqs.put(state)
        eqs.residual(state.time)
        thickness.append(eqs.loads.oil_thickness())
    first, last = thickness
    errors = {name: float(np.abs(last[name] - oil).max()) for name, oil in first.items()}
    worst = max(errors, key=lambda name: errors[name])
    return errors[worst], worst


@dataclass(frozen=True, eq=False)
class _Coordinates:
    """Coordinates c = P δX of the increments of a state that the constraints permit.

    Coordinates of velocities are multiplied by T/2π, so that they have the unit of displacements.
    """

    basis: Array  # N, (nv, m)
    project: Array  # NᵀM, (m, nv)
    states: Array  # indices of the states of loads
    scale: float  # T/2π, s

    @classmethod
    def at(cls, eqs: Assembler, state: State, scale: float) -> _Coordinates:
        """Return the coordinates of increments of this state."""
        eqs.put(state)
        eqs.update_poses(state.time)
        M, B = eqs.inertia(state.time)
        s = eqs.system
        count = len(M) - len(s.states)
        basis = null_space(B[:, :count], M[:count, :count])
        if basis.shape[1]:  # NᵀMN = 1
            factor = np.linalg.cholesky(basis.T @ M[:count, :count] @ basis)
            basis = np.linalg.solve(factor, basis.T).T
        rates = np.zeros((len(M), basis.shape[1]))
        rates[:count] = basis
        return cls(rates, rates.T @ M, s.states, scale)

    def of(self, increments: Array) -> Array:
        """Return c (2m + states, ...) of increments (4, nv, ...)."""
        q, v, *_ = increments
        return np.concatenate([self.project @ q, self.scale * (self.project @ v), v[self.states]])

    def columns(self) -> Array:
        """Return increments (4, nv, 2m + states) of q and v alone, one for each coordinate."""
        n, m = self.basis.shape
        out = np.zeros((4, n, 2 * m + len(self.states)))
        out[0, :, :m] = self.basis
        out[1, :, m : 2 * m] = self.basis / self.scale
        out[1, self.states, 2 * m + np.arange(len(self.states))] = 1.0
        return out


class PeriodMap:
    """Derivative of the map of a period at the states of a simulated period.

    Args:
        stepper: The stepper of the run.
        states: States of the period, with the memory of the integrator.
        dt: Time step, s.
        rotors: Rotors that are turned back after the period.

    Attributes:
        rotors: Rotors that are turned back after the period.
        matrix: Monodromy matrix P E, square with the size of c.
        start: Columns S of the state at the start, (4, nv, size of c).
        end: Columns E of the state at the end, with the rotors turned back, (4, nv, size of c).
        residual: P (Φ(X) − X), (size of c,).
    """

    def __init__(
        self, stepper: Stepper, states: Sequence[State], dt: float, rotors: Rotors
    ) -> None:
        system, self.rotors = stepper.system, rotors
        eqs, count = Assembler(system), len(states) - 1
        back = rotors.matrix(dt * count)
        self._coordinates = _Coordinates.at(eqs, states[0], dt * count / (2 * np.pi))
        equations = StepEquations(stepper, dt)
        steps = min(count, _preparation(stepper))
        seeds = _Coordinates.at(eqs, states[count - steps], dt * count / (2 * np.pi)).columns()
        settled = back @ _propagated(equations, states[count - steps :], seeds)
        settled[0, system.states] = 0.0  # states of loads have no positions
        self.start = settled @ np.linalg.pinv(self._coordinates.of(settled), rcond=_RANK)
        self.end = back @ _propagated(equations, states, self.start)
        self.end[0, system.states] = 0.0
        self.matrix = self._coordinates.of(self.end)
        last = rotors.back(states[-1], dt * count)
        self.residual = self.coordinates(difference(system, states[0], last))

    @property
    def growth(self) -> float:
        """Largest factor by which a disturbance grows in the period."""
        return float(np.linalg.norm(self.matrix, 2)) if self.matrix.size else 0.0

    def coordinates(self, increments: Array) -> Array:
        """Return the coordinates c of increments of q, v, a and w, (4, nv, ...)."""
        return self._coordinates.of(increments)


def _preparation(stepper: Stepper) -> int:
    """Return the number of steps in which differences of the accelerations w decay to _DECAY."""
    # The spectral radius of Chung and Hulbert's methods: alpha_m = (2ρ − 1)/(ρ + 1)
    alpha_m = stepper.method.alpha_m
    rho = abs(alpha_m + 1) / abs(2 - alpha_m)
    log_rho = np.log(np.clip(rho, 0.1, 0.999))  # finite and negative
    return int(np.clip(np.log(_DECAY) / log_rho, _FEWEST, _MOST))


def _propagated(equations: StepEquations, states: Sequence[State], columns: Array) -> Array:
    """Return columns of increments (4, nv, n) of the first state, propagated to the last one."""
    x, last = np.array(columns), states[-1]
    no_forces = [np.zeros((len(rows), x.shape[2])) for rows in (last.v, last.lam)]
    for before, after in pairwise(states):
        equations.linearize(before, after)
        x, _ = equations.forward(x, *no_forces)
    return x
