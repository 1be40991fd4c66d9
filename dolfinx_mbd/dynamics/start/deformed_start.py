"""Quasi-static start of mechanisms whose joints fit only if the bodies deform.

The constraints that are redundant for rigid bodies are satisfied last, by the deformation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.assembly.rates import accelerations, saddle, velocities
from dolfinx_mbd.dynamics.start.position_assembly import assemble, redundant_rows
from dolfinx_mbd.mechanism.system import State

__all__ = ["rows_held_by_deformation", "with_held_rows"]

Index = NDArray[np.integer]

_MAX_ITERATIONS = 50


def rows_held_by_deformation(eqs: Assembler, t: float) -> list[int]:
    """Return the constraints that are redundant for rigid bodies, but not for deformable bodies."""
    limit = assemble(eqs, t)
    rows = [r.row for r in redundant_rows(eqs, limit, eqs.system.rigid)]
    return [] if rows and redundant_rows(eqs, limit) else rows


def with_held_rows(eqs: Assembler, state: State, rows: list[int]) -> State:
    """Return the quasi-static state in which deformation also satisfies the constraints `rows`."""
    s, t = eqs.system, state.time
    others, free = np.setdiff1d(np.arange(s.num_constraints), rows), np.arange(s.num_velocities)
    eqs.q[:], eqs.v[:], eqs.a[:], eqs.angles[:] = (state.q, state.v, state.a, state.angles)
    eqs.lam[:], eqs.lam[others] = 0.0, state.lam
    _deform(eqs, t, rows, others)
    velocities(eqs, t, state.v, free)
    accelerations(eqs, t, free)
    return eqs.state(t)


def _deform(eqs: Assembler, t: float, rows: list[int], others: Index) -> None:
    """Deform the bodies so that they satisfy constraints that are redundant for rigid bodies.

    H and R are the gradients of the redundant and of the other constraints, with the columns Hᵣ and
    Rᵣ of rigid motions and the columns Hₑ and Rₑ of elastic coordinates. R determines the rigid
    motion δ = −Rᵣ⁺ Rₑ ε due to a deformation ε. With W = Hᵣ Rᵣ⁺, the redundant constraints then
    have the gradient H̃ = Hₑ − W Rₑ with respect to ε. The multipliers μ of H̃ change the
    multipliers of R by −Wᵀμ:

        [K H̃ᵀ; H̃ 0] (ε, μ) = −(elastic residual, values of H − W R)
    """
    s = eqs.system
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
            return
    raise AssemblyError(
        "no quasi-static start in which the deformation of the bodies satisfies the constraints "
        "was found; simulate with elastic_start='undeformed'"
    )
