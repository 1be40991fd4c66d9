"""Constraints that rigid bodies would repeat and that the deformation of the bodies holds."""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.multibody.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.multibody.assembly.rates import saddle

__all__ = ["hold_by_deformation"]

_ITERATIONS = 50


def hold_by_deformation(at: Assembler, t: float, rows: list[int]) -> None:
    """Deform the bodies so that they fulfil constraints that rigid bodies would repeat.

    The other constraints R of the rigid motion determine how the bodies move rigidly when they
    deform, δ = −Rᵣ⁺ Rₑ ε, and which part W of R the repeated constraints H repeat. What is left
    for the deformation is H̃ = Hₑ − W Rₑ, with multipliers μ that act on R by −Wᵀμ:

        [K H̃ᵀ; H̃ 0] (ε, μ) = −(elastic rows, values of H)

    Args:
        at: Assembler at a quasi-static state of the system without the constraints H; coordinates
            and multipliers are changed.
        t: Time, s.
        rows: Numbers of the constraints H.
    """
    s = at.system
    others = np.setdiff1d(np.arange(s.num_constraints), rows)
    for _ in range(_ITERATIONS):
        at.residual(t)
        tangent = at.tangent(t)
        rigid, elastic = tangent.B[:, s.rigid], tangent.B[:, s.elastic]
        inverse = np.linalg.pinv(rigid[others], rcond=1e-10)
        W = rigid[rows] @ inverse
        below = W @ at.values[others] - at.values[rows]
        step, change = saddle(
            tangent.K[np.ix_(s.elastic, s.elastic)],
            elastic[rows] - W @ elastic[others],
            -at.rows[s.elastic],
            below,
        )
        delta = np.zeros(s.num_velocities)
        delta[s.elastic] = step
        delta[s.rigid] = -inverse @ (at.values[others] + elastic[others] @ step)
        at.move(at.q.copy(), delta)
        at.lam[rows] += change
        at.lam[others] -= W.T @ change
        if np.abs(below).max() <= 1e-12 * s.size:
            return
    raise AssemblyError(
        "no quasi-static start in which the deformation of the bodies holds the constraints was "
        "found; simulate with elastic_start='undeformed'"
    )
