"""Corrections with an outdated factor that rotates with the bodies.

A factor is used in many steps. Most of the change of an iteration matrix in these steps is the
rotation of the bodies, which is known: forces and displacements are taken to axes that rotate with
the body, and back. The gradients of a joint also change with the rotation of its bodies relative to
each other; one more solution with the same factor corrects their effect.
"""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.iteration_matrix import DenseFactor
from dolfinx_mbd.kernels.corotation import from_factor, outdated_gradients, to_factor
from dolfinx_mbd.kernels.rotations import rotation_matrix


class Corotation:
    """Rotations of the bodies since a factorization.

    Bodies on which loads act or depend keep global axes, because stiff loads may not rotate with
    the body.

    Args:
        eqs: Assembler of the system.

    Attributes:
        tables: Tables of bodies and joints, see `kernels.corotation`, and motions of constraints.
        is_useful: Whether a body rotates.
    """

    def __init__(self, eqs: Assembler) -> None:
        s, self._eqs = eqs.system, eqs
        floating, loaded = eqs.frames.bodies.members, eqs.loads.bodies.members
        self._bodies = np.array(
            [
                (
                    q.start + 3 if k in floating else -1,
                    v.start,
                    body.num_velocities,
                    k in floating and k not in loaded,
                )
                for k, (body, q, v) in enumerate(zip(s.bodies, s.q_slices, s.v_slices, strict=True))
            ],
            dtype=np.int64,
        )
        related = {int(k) for k in eqs.joints.relations.entries}
        joints = []
        for k, (frames, rows) in enumerate(
            zip(eqs.frames.entry_frames, s.entry_slices, strict=True)
        ):
            one, two = (int(b) for b in s.frame_body[frames])
            main = max(one, two, key=lambda b: s.bodies[b].num_velocities)
            if k not in related:
                joints.append((one, two, main, rows.start, rows.stop - rows.start, k))
        table = np.array(joints, dtype=np.int64).reshape(-1, 6)
        self._joints, self._entries = np.ascontiguousarray(table[:, :5]), table[:, 5]
        self.tables = self._bodies, self._joints, s.row_motion.astype(np.int64)
        self._turns = np.tile(np.eye(3), (len(s.bodies), 1, 1))
        size = s.num_velocities + s.num_constraints
        self._x, self._residual = np.zeros(size), np.zeros(size)  # in the axes of the factor
        self.is_useful = bool((self._bodies[:, 0] >= 0).any())

    def store(self, factor: DenseFactor, gradients: Array) -> None:
        """Store the present axes, and the gradients of the joints (nc, nv), with a new factor."""
        eqs, bodies = self._eqs, self._bodies[:, 0]
        factor.orientations = np.array(
            [rotation_matrix(eqs.q[k : k + 4]) if k >= 0 else np.eye(3) for k in bodies]
        )
        factor.axes = eqs.joints.axes()[self._entries]
        factor.gradients = gradients

    def solve(self, factor: DenseFactor, right: Array) -> Array:
        """Return the solution for a right-hand side, which is overwritten."""
        to_factor(*self.tables, factor.axes, factor.orientations, self._eqs.q, self._turns, right)
        self._x = factor.solve(right)
        return self._rotated(factor, self._x.copy())

    def refined(self, factor: DenseFactor, solution: Array) -> Array:
        """Return the last solution with the present gradients of the joints."""
        residual = self._residual
        state = *self.tables, factor.axes, self._turns
        if not outdated_gradients(*state, factor.gradients, self._x, residual):
            return solution
        return self._rotated(factor, self._x + factor.solve(residual))

    def _rotated(self, factor: DenseFactor, x: Array) -> Array:
        """Rotate a solution to the present axes, in place."""
        from_factor(*self.tables, factor.axes, self._turns, x)
        return x
