"""State space of the small motions of a mechanism with inputs u and outputs y.

The state is x = (z, ż) with the free coordinates z of `small_motions`, without the integrals of the
states of loads, which are the last coordinates. That module defines the
matrices; M, C and K are the reduced matrices. The accelerations and the change of the multipliers
follow from the equations of motion,

    M z̈ = −K z − C ż + NᵀPᵀF u,   (BP)ᵀ δλ = PᵀF u − M_y ÿ − C_y ẏ − K_y y,   y = N z,

where −F is the derivative of the residual with respect to u. The outputs depend on the increments
of q, v, a and λ; their derivatives are central differences of sixth order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.analyses.signals import Inputs
from dolfinx_mbd.analyses.small_motions import SmallMotions
from dolfinx_mbd.body.response.linearized import RANK_TOLERANCE
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.convergence import Measure
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.joints import Driver
from dolfinx_mbd.mechanism.system import State
from dolfinx_mbd.results.outputs import Outputs
from dolfinx_mbd.results.solution import Solution

__all__ = ["OFFSETS", "StateSpace", "check_inputs", "derivative", "input_slopes", "state_space"]

Array = NDArray[np.float64]
StateSpace = tuple[Array, Array, Array, Array]
"""Matrices A, B, C, D of ẋ = A x + B u, y = C x + D u."""

OFFSETS = np.array([1, 2, 3, -1, -2, -3])
"""Multiples of the step in a central difference of sixth order."""
# Weights of the differences between opposite offsets
_WEIGHTS: Array = np.array([0.75, -0.15, 1 / 60])
_STEP = 1e-2  # displacement for finite differences, relative to the size of the mechanism
# Step of an input relative to its value, or the step itself if the value is zero
_INPUT_STEP = 1e-2
_LARGEST = 1e-2  # largest step of a rigid coordinate, rad or m


def check_inputs(inputs: Inputs) -> None:
    """Raise an error if an input is the position of a driver."""
    for driver in (part for part in inputs.parts if isinstance(part, Driver)):
        raise InputError(
            f"driver {driver.name!r} cannot be an input of a linearization, because its position "
            "acts together with its rate and acceleration; use a load on its joint instead",
            argument="inputs",
            value=driver.name,
        )


def state_space(
    eqs: Assembler, t: float, motions: SmallMotions, basis: Array, inputs: Inputs, outputs: Outputs
) -> StateSpace:
    """Return A, B, C and D at the state of the assembler, which must belong to `inputs.system`.

    `motions` are the coefficients of small motions about this state, and `basis` (nv, m) contains
    the free motions.
    """
    state, m, count = eqs.state(t), basis.shape[1], len(inputs.names)
    # The coordinates y resolve motions in axes that rotate with the bodies. For a small y,
    # δq = P y, δv = P (ẏ + 𝒲 y) and δa = P (ÿ + (𝒲 + 𝒟) ẏ + 𝒟𝒲 y)
    P, carry, twist = motions.to_increments, motions.carry, motions.twist
    force, feedthrough = input_slopes(eqs, state, inputs, outputs)
    force = P.T @ force
    M, C, K = motions.reduced(basis)
    # Columns of all matrices below: derivatives with respect to z, ż and the inputs u
    z, dz, u = np.split(np.eye(2 * m + count), [m, 2 * m])
    ddz = np.linalg.solve(M, basis.T @ force @ u - C @ dz - K @ z)
    y, dy, ddy = basis @ z, basis @ dz, basis @ ddz
    unbalanced = force @ u - motions.mass @ ddy - motions.damping @ dy - motions.stiffness @ y
    lam = np.linalg.lstsq(motions.constraints.T, unbalanced, rcond=RANK_TOLERANCE)[0]
    velocity, acceleration = dy + carry @ y, ddy + (carry + twist) @ dy + twist @ carry @ y
    changes = [P @ y, P @ velocity, P @ acceleration, lam]
    slopes = _output_slopes(eqs, state, outputs)
    outputs_by_zu = sum(
        (slope @ change for slope, change in zip(slopes, changes, strict=True)), feedthrough @ u
    )
    rates_by_zu = np.concatenate([dz, ddz])
    free = m - len(motions.states)  # nothing depends on the integrals of the states of loads
    x, by_u = np.r_[:free, m : 2 * m], np.arange(2 * m, 2 * m + count)
    A, B = rates_by_zu[np.ix_(x, x)], rates_by_zu[np.ix_(x, by_u)]
    return A, B, outputs_by_zu[:, x], outputs_by_zu[:, by_u]


def input_slopes(
    eqs: Assembler, state: State, inputs: Inputs, outputs: Outputs
) -> tuple[Array, Array]:
    """Return the derivatives of the forces (nv, nu) and of the outputs (ny, nu)."""
    values: Array = np.array(inputs.values)
    eqs.put(state)

    def evaluate(change: Array) -> Array:
        """Return the forces and the outputs for changed inputs."""
        inputs.put([*map(float, values + change)])
        eqs.residual(state.time)
        (values_of_outputs,) = outputs.of(Solution(eqs.system, [state]))  # one time
        return np.concatenate([-eqs.rows, values_of_outputs])

    columns = np.zeros((eqs.system.num_velocities + len(outputs.names), len(values)))
    for k, value in enumerate(values):
        unit = np.eye(len(values))[k]
        columns[:, k] = _slope(evaluate, _INPUT_STEP * (abs(value) or 1.0), unit)
    inputs.put([*map(float, values)])
    eqs.residual(state.time)
    force, feedthrough = np.split(columns, [eqs.system.num_velocities])
    return force, feedthrough


def _slope(function: Callable[[Array], Array], step: float, unit: Array) -> Array:
    """Return the derivative of a function along a unit vector at zero."""
    try:
        values = [function(offset * step * unit) for offset in OFFSETS]
    except InputError:  # inputs that cannot be negative, such as a stiffness, have linear effects
        values = [function(factor * step * unit) for factor in (1.0, 0.0)]
        return np.asarray((values[0] - values[1]) / step, dtype=float)
    return np.asarray(derivative(np.array(values)) / step, dtype=float)


def derivative(values: Array) -> Array:
    """Return the derivative of values at `OFFSETS` times the step; zero if the values are equal."""
    return np.asarray(np.tensordot(_WEIGHTS, values[:3] - values[3:], 1), dtype=float)


def _output_slopes(eqs: Assembler, state: State, outputs: Outputs) -> list[Array]:
    """Return the derivatives of the outputs with respect to q, v, a (ny, nv) and λ (ny, nc)."""
    s = eqs.system
    if not outputs.names:
        widths = (s.num_velocities,) * 3 + (s.num_constraints,)
        return [np.zeros((0, width)) for width in widths]
    lengths = Measure(s).lengths
    # A state of a load changes by its value, or by 1 if that is smaller
    lengths[s.states] = s.size / np.maximum(1.0, np.abs(state.v[s.states]))
    sizes_of_motion: Array = np.asarray(s.size / lengths, dtype=float)
    displacements: Array = _STEP * sizes_of_motion
    displacements[s.rigid] = np.minimum(displacements[s.rigid], _LARGEST)
    forces = np.full(s.num_constraints, max(1.0, float(np.abs(state.lam).max(initial=0.0))))

    def moved(change: Array) -> State:
        """Return the state after an increment of its coordinates."""
        eqs.put(state)
        eqs.move(state.q, change)
        eqs.update_poses(state.time)
        return eqs.state(state.time)

    changes: list[tuple[Array, Callable[[Array], State]]] = [
        (displacements, moved),
        (displacements, lambda change: replace(state, v=state.v + change)),
        (sizes_of_motion, lambda change: replace(state, a=state.a + change)),
        (forces, lambda change: replace(state, lam=state.lam + change)),
    ]
    slopes = []
    for sizes, changed in changes:
        vectors = np.concatenate([offset * np.diag(sizes) for offset in OFFSETS])
        values = outputs.of(Solution(s, [state, *map(changed, vectors)]))[1:]
        by_offset = values.reshape(len(OFFSETS), len(sizes), len(outputs.names))
        slopes.append((derivative(by_offset) / sizes[:, None]).T)
    eqs.put(state)
    return slopes
