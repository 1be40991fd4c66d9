"""Rotation of the factors of an iteration matrix with the bodies.

The iteration matrix contains displacements in global axes and constraints in the axes of the first
frame of their joint. As bodies rotate, it changes although it hardly changes in axes that rotate
with them. With the factors of S₀, the matrix at a later time is approximated by S ≈ T S₀ Tᵀ. T
rotates groups of three unknowns: T = A A₀ᵀ, where A is the orientation of the axes that a group
follows, in the axes of its unknowns, and A₀ is that at the factorization. Only the convergence of
the iterations depends on T. These rules choose the axes:

- The displacement of a flexible body follows the body, because its inertia couples displacement and
  deformation. So does that of a rigid body with joints to at most one flexible body or the ground.
  Those of other rigid bodies stay in global axes, and so do those of rigid bodies with springs or
  films, whose stiffness need not rotate.
- The forces of a joint follow the body with more coordinates if its displacement does, and stay in
  global axes if one of the bodies is the ground and the other does not. The matrix then remains the
  same for this body, and changes for the other one with their relative rotation.
- The moments normal to the axis of a joint follow the body with more coordinates.

Rigid bodies with joints between them rotate relative to each other. If there are no flexible bodies
besides them, nothing is rotated, because it would hardly help.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.kernels.body_table import FIRST_V
from dolfinx_mbd.kernels.columns import (
    ABOUT_X,
    ABOUT_Y,
    ABOUT_Z,
    ALONG_X,
    ALONG_Y,
    ALONG_Z,
    RIGID,
)
from dolfinx_mbd.kernels.compilation import COMPILED
from dolfinx_mbd.kernels.group_rotations import (
    BODY,
    PLANE,
    SPACE,
    orientations,
    rotate_back,
    rotate_forward,
)
from dolfinx_mbd.mechanism.joints import TURNING

__all__ = ["Corotation"]

_NAME = "orientations"  # of the entry in the memory of a stepper


class Corotation:
    """Groups of unknowns in whose axes a factorized iteration matrix is reused.

    Without numba there are no groups, because the rotations would take longer than they save.

    Args:
        eqs: Assembler of the system; its poses are those of the corrections.
    """

    def __init__(self, eqs: Assembler) -> None:
        self._eqs = eqs
        rows = _groups(eqs) if COMPILED else []
        self.groups = np.array(rows, dtype=np.int64).reshape(-1, 4)
        self._origin, self._turns = np.zeros((2, len(rows), 3, 3))
        self._rotates = len(rows) > 0

    def stop(self) -> None:
        """Do not rotate the present factor."""
        self._rotates = False

    def start(self) -> None:
        """Store the present orientations as those of a new factor."""
        self._rotates = len(self.groups) > 0
        self._origin = np.empty_like(self._turns)  # the memory may contain the old array
        orientations(self.groups, self._eqs.q, self._eqs.rotation, self._origin)

    def back(self, x: Array) -> Array:
        """Rotate an array (unknowns,) to the orientations of the factor, in place; return it."""
        if self._rotates:
            q, rotation = self._eqs.q, self._eqs.rotation
            rotate_back(self.groups, q, rotation, self._origin, self._turns, x)
        return x

    def forward(self, x: Array) -> Array:
        """Rotate an array (unknowns,) to the orientations of the last `back`; return it."""
        if self._rotates:
            rotate_forward(self.groups, self._turns, x)
        return x

    def memory(self) -> dict[str, Array]:
        """Return the entry of the memory of a stepper with a factor."""
        return {_NAME: self._origin} if self._rotates else {}

    def restore(self, memory: Mapping[str, Any]) -> bool:
        """Restore the orientations; return False if they are not those of the present groups.

        Files of earlier versions have none, and those of runs without numba have none either.
        """
        origin = np.array(memory.get(_NAME, self._turns[:0]), dtype=np.float64)
        if origin.shape != self._turns.shape:
            return False
        self._origin, self._rotates = origin, len(self.groups) > 0
        return True


def _groups(eqs: Assembler) -> list[tuple[int, int, int, int]]:
    """Return the table of groups that rotate relative to the axes of their unknowns."""
    s, bodies = eqs.system, eqs.frames.bodies
    sizes = [body.num_velocities for body in s.bodies]
    ranks = [int(size == 0) for size in sizes]  # 0: global axes; 1: ground
    partners = _partners(eqs)
    rigid = {k for k, size in enumerate(sizes) if 0 < size <= RIGID.stop}
    if max(sizes) <= RIGID.stop and any(partners[k] & rigid for k in rigid):
        return []
    pairs: list[Any] = [load for load in s.loads if load.port == "pair"]
    loaded = {s.body_index(end.body) for load in pairs for end in (load.first, load.second)}
    free = {k for k in rigid - loaded if len(partners[k]) <= 1 and not partners[k] & rigid}
    table = []
    for k, q, v in zip(bodies.members, bodies.origins, bodies.table[:, FIRST_V], strict=True):
        if sizes[k] > RIGID.stop or k in free:
            ranks[k] = sizes[k]  # displacements follow the body
            table.append((BODY, int(v), int(q) + 3, 0))
    motions = [int(motion) for motion in eqs.joints.motion_rows[:, 1]]
    for entry, part in enumerate(s.entry_slices[: len(s.joints)]):
        rows = motions[part]
        frames = int(s.first[entry]), int(s.second[entry])
        first_body, second_body = (s.frame_body[frame] for frame in frames)
        turns = s.joints[entry].kind in TURNING
        if {ABOUT_X, ABOUT_Y, ABOUT_Z} <= {*rows}:
            continue  # the bodies do not rotate relative to each other
        row = s.num_velocities + part.start
        if ranks[second_body] > ranks[first_body]:
            if rows[:3] == [ALONG_X, ALONG_Y, ALONG_Z]:
                table.append((SPACE, row, *frames))
            elif rows[:2] == [ALONG_X, ALONG_Y] and turns:
                # the table of a group `PLANE` has the place before its two constraints
                table.append((PLANE, row - 1, *frames))
        if sizes[second_body] > sizes[first_body] and turns and {ABOUT_X, ABOUT_Y} <= {*rows}:
            table.append((PLANE, row + rows.index(ABOUT_X) - 1, *frames))
    return table


def _partners(eqs: Assembler) -> list[set[int]]:
    """Return, for each body, the other bodies to which joints connect it, with the ground."""
    s = eqs.system
    partners: list[set[int]] = [set() for _ in s.bodies]
    for pair in eqs.frames.entry_frames:
        first, second = (int(s.frame_body[frame]) for frame in pair)
        partners[first].add(second)
        partners[second].add(first)
    return partners
