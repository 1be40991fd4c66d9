"""The iteration matrix of a step: derivatives of all rows to the corrections of increments and
multipliers, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.matrices import fill
from dolfinx_mbd.multibody.assembly.assembler import Assembler, TangentBlocks
from dolfinx_mbd.multibody.assembly.blocks import SparseBlocks, Stacked
from dolfinx_mbd.multibody.model.system import SystemData

__all__ = ["IterationMatrix"]

Array = NDArray[np.float64]


class IterationMatrix:
    """Makes the iteration matrix of a system again and again.

    Rows of forces are divided by ``by_rate``, the change of accelerations per increment, those of
    the constraints and the multipliers scaled by a mass, so that its condition does not grow as dt
    falls.

    Args:
        system: The mechanism.
        mass: kg.
        sparse: Whether the matrix is sparse.
    """

    def __init__(self, system: SystemData, mass: float, sparse: bool) -> None:
        self._system, self._mass, self.sparse = system, mass, sparse
        n = system.num_velocities
        rows = [slice(s.start + n, s.stop + n) for s in system.entry_slices]
        self._unknowns = [*system.v_slices, *rows]
        self._stacked = Stacked(self._unknowns, self._unknowns)
        self._stacked_mass = Stacked(system.v_slices, system.v_slices)
        still = np.zeros(n)
        turning = [
            k
            for k, (body, part) in enumerate(zip(system.bodies, system.v_slices, strict=True))
            if body.num_velocities and len(body.increment_tangent(still[part]))
        ]
        self._place = {k: place for place, k in enumerate(turning)}
        self._columns = np.array([system.v_slices[k].start + 3 for k in turning], dtype=np.int64)

    def at(
        self, at: Assembler, t: float, move: Array, by_rate: float, by_speed: float
    ) -> tuple[Any, Any]:
        """Iteration matrix and mass matrix, after the residual at the same point.

        Args:
            at: The point of evaluation.
            t: Its time, s.
            move: Increments since the last step (nv,).
            by_rate: Change of accelerations per increment, 1/s².
            by_speed: Change of velocities per increment, 1/s.
        """
        turns = self._turns(move)
        if self.sparse:
            return self._by_blocks(at.tangent_blocks(t), turns, by_rate, by_speed)
        tangent = at.tangent(t)
        size = len(tangent.M) + len(tangent.B)
        S = np.zeros((size, size), order="F")
        fill(tangent.K, tangent.C, tangent.M, tangent.B, self._columns, turns,
             by_rate, by_speed, self._mass, S)  # fmt: skip
        return S, tangent.M

    def _by_blocks(
        self, tangent: TangentBlocks, turns: Array, by_rate: float, by_speed: float
    ) -> tuple[Any, Any]:
        """The same without the blocks that are zero."""
        bodies, S = len(self._system.bodies), SparseBlocks(self._unknowns)
        for (i, j), block in tangent.M.items():
            S.add(i, j, block)
        for (i, j), block in tangent.C.items():
            S.add(i, j, (by_speed / by_rate) * block)
        for (i, j), block in tangent.K.items():
            S.add(i, j, self._turned(block, turns, j) / by_rate)
        for (entry, j), block in tangent.B.items():
            scaled = self._mass * block
            S.add(j, bodies + entry, scaled.T)
            S.add(bodies + entry, j, self._turned(scaled, turns, j))
        return self._stacked.matrix(S), self._stacked_mass.matrix(tangent.M)

    def _turns(self, move: Array) -> Array:
        """Tangent operators of the increments of the bodies that turn, shape (·, 3, 3)."""
        bodies, slices = self._system.bodies, self._system.v_slices
        turns = [bodies[k].increment_tangent(move[slices[k]]) for k in self._place]
        return np.array(turns).reshape(-1, 3, 3)

    def _turned(self, block: Array, turns: Array, body: int) -> Array:
        """A block's columns of the rotation, to the corrections of an increment."""
        if body not in self._place:
            return block
        block = block.copy()
        block[:, 3:6] = block[:, 3:6] @ turns[self._place[body]]
        return block
