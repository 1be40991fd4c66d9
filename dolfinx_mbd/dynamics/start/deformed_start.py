"""Quasi-static start of mechanisms whose joints fit only if the bodies deform.

The constraints that are redundant for rigid bodies are satisfied last, by the deformation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.assembly.rates import accelerations, saddle, velocities
from dolfinx_mbd.dynamics.start.position_assembly import assemble, redundant_rows
from dolfinx_mbd.dynamics.stepping.convergence import Measure
from dolfinx_mbd.mechanism.system import State, System

__all__ = ["rows_held_by_deformation", "with_held_rows"]

Index = NDArray[np.integer]

Start = Callable[[float, Array, Array], State]

_MAX_ITERATIONS = 50
_INTERVAL = 1e-4  # motion between the two deformations of a difference / size of the system
_MAX_GROWTH = 0.01  # largest relative change of the speed between them
_REST = 1e-12  # largest square of the speed of a system at rest / (acceleration × size)


def rows_held_by_deformation(eqs: Assembler, t: float) -> list[int]:
    """Return the constraints that are redundant for rigid bodies, but not for deformable bodies.

    The list is empty if some constraints are redundant for deformable bodies, too; `restore` then
    raises an error.
    """
    limit = assemble(eqs, t)
    rows = [r.row for r in redundant_rows(eqs, limit, eqs.system.rigid)]
    return [] if rows and redundant_rows(eqs, limit) else rows


def with_held_rows(
    eqs: Assembler, t: float, rows: list[int], q: Array, v: Array, start: Start
) -> State:
    """Return the quasi-static state in which deformation also satisfies the constraints `rows`.

    The elastic rates are the difference to the deformation a little later, over the time between;
    they are zero for a system at rest.
    Rates that satisfy the constraints with the least kinetic energy would excite vibrations.

    Args:
        eqs: Assembler of the system.
        t: Time, s.
        rows: The constraints that the deformation satisfies.
        q: Coordinates, shape (nq,).
        v: Velocities, shape (nv,).
        start: Function that returns the quasi-static state without these constraints for a time
            (s), coordinates and velocities.
    """
    s = eqs.system
    state = start(t, q, v)
    others = _deform(eqs, t, state, rows)
    speeds = state.v.copy()
    lengths = Measure(s).lengths
    fastest, growth = (float(np.abs(lengths * x).max()) for x in (state.v, state.a))
    if fastest**2 > _REST * growth * s.size:
        dt, later = _INTERVAL * s.size / fastest, Assembler(s)
        if growth > 0.0:
            dt = min(dt, _MAX_GROWTH * fastest / growth)
        later.move(state.q, dt * state.v + 0.5 * dt * dt * state.a)
        after = start(t + dt, later.q.copy(), state.v + dt * state.a)
        _deform(later, t + dt, after, rows)
        elastic = _elastic_coordinates(s)
        speeds[s.elastic] = (later.q[elastic] - eqs.q[elastic]) / dt
        # the rigid motions follow the deformation without a change of its rates
        eqs.update_poses(t)
        explicit, _ = eqs.constraint_rates(t)
        B = eqs.constraint_matrix()[others]
        error = B @ speeds + explicit[others]
        speeds[s.rigid] -= np.linalg.pinv(B[:, s.rigid], rcond=1e-10) @ error
    all_velocities = np.arange(s.num_velocities)
    velocities(eqs, t, speeds, all_velocities)
    accelerations(eqs, t, all_velocities)
    return eqs.state(t)


def _elastic_coordinates(system: System) -> NDArray[np.int64]:
    """Return the coordinates q whose rates are the velocities `system.elastic`."""
    parts = zip(system.bodies, system.q_slices, strict=True)
    return np.concatenate([np.arange(q.stop - body.num_elastic, q.stop) for body, q in parts])


def _deform(eqs: Assembler, t: float, state: State, rows: list[int]) -> Index:
    """Deform the bodies at a state so that they satisfy the constraints `rows`; return the others.

    The constraints `rows` are redundant for rigid bodies.

    H and R are the gradients of the redundant and of the other constraints, with the columns Hᵣ and
    Rᵣ of rigid motions and the columns Hₑ and Rₑ of elastic coordinates. R determines the rigid
    motion δ = −Rᵣ⁺ Rₑ ε due to a deformation ε. With W = Hᵣ Rᵣ⁺, the redundant constraints then
    have the gradient H̃ = Hₑ − W Rₑ with respect to ε. The multipliers μ of H̃ change the
    multipliers of R by −Wᵀμ:

        [K H̃ᵀ; H̃ 0] (ε, μ) = −(elastic residual, values of H − W R)
    """
    s = eqs.system
    others = np.setdiff1d(np.arange(s.num_constraints), rows)
    eqs.q[:], eqs.v[:], eqs.a[:], eqs.angles[:] = (state.q, state.v, state.a, state.angles)
    eqs.lam[:], eqs.lam[others] = 0.0, state.lam
    for _ in range(_MAX_ITERATIONS):
        eqs.residual(t)
        tangent = eqs.tangent(t)
        rigid, elastic = tangent.B[:, s.rigid], tangent.B[:, s.elastic]
        inverse = np.linalg.pinv(rigid[others], rcond=1e-10)
        W = rigid[rows] @ inverse
        error = W @ eqs.values[others] - eqs.values[rows]
        step, change = saddle(
            tangent.K[np.ix_(s.elastic, s.elastic)],
            elastic[rows] - W @ elastic[others],
            -eqs.rows[s.elastic],
            error,
        )
        delta = np.zeros(s.num_velocities)
        delta[s.elastic] = step
        delta[s.rigid] = -inverse @ (eqs.values[others] + elastic[others] @ step)
        eqs.move(eqs.q.copy(), delta)
        eqs.lam[rows] += change
        eqs.lam[others] -= W.T @ change
        if np.abs(error).max() <= 1e-12 * s.size:
            return others
    raise AssemblyError(
        "no quasi-static start in which the deformation of the bodies satisfies the constraints "
        "was found; simulate with elastic_start='undeformed'"
    )
