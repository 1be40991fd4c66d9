"""Arrays of a mechanism for compiled time steps.

Four buffers contain all arrays: constants, indices (integers), the state that a unit saves and
restores, and scratch arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.small_vectors import Array

Indices = NDArray[np.int64]

BUFFERS = ("indices", "constants", "state", "scratch")

#: Indices in `Model.numbers`
DT, TOLERANCE, MASS, RADIUS, ALPHA_M, ALPHA_F, BETA, GAMMA, SMOOTH = range(9)
#: Indices in `Model.flags`: number of earlier accelerations, and whether the velocities of the
#: method, the factorization and the round-off of the multipliers are present
EARLIER, VELOCITY, FACTOR, NOISE = range(4)
#: Kinds of loads on joints
CONSTANT, SPRING = range(2)
#: Columns of `Model.drivers`, `joint_loads`, `frame_loads` and `springs`. DRIVER_ENTRY is the index
#: of a driver among joints and drivers, DRIVEN_JOINT that of its joint among the joints;
#: DRIVER_MOTION and MOTION are ABOUT for a rotation or torque and ALONG for a displacement or
#: force; the components of a frame load are global, or IN_AXES of the frame
DRIVER_ENTRY, DRIVER_MOTION, DRIVEN_JOINT = range(3)
KIND, JOINT, MOTION = range(3)
FRAME, IS_TORQUE, IN_AXES = range(3)
FIRST_FRAME, SECOND_FRAME = range(2)  # columns, also of `Model.ends` and `end_starts`
#: Columns of `Model.rows_of`
JOINT_OF_ROW, MOTION_OF_ROW = range(2)
#: Rows of `Model.earlier_a` and `earlier_lam`: the last step and the one before it
LAST, SECOND_LAST = range(2)
#: Indices in `Model.largest`: largest coordinate of frames, and of frames and bodies
OF_FRAMES, OF_ALL = range(2)
#: Kinds of outputs
Q, V, A, MULTIPLIER, ROTATION, ROTATION_RATE, DISPLACEMENT, DISPLACEMENT_RATE = range(8)
#: Numbers of `Model.parameters` for each driver (angle, speed, offset), load on a joint (value,
#: stiffness, damping, free), load at a frame (components), and spring (stiffness, damping, length)
DRIVER_NUMBERS, JOINT_NUMBERS, FRAME_NUMBERS, SPRING_NUMBERS = 3, 4, 3, 3
#: Kinds of loads in the order of their numbers
OF_JOINT_LOAD, OF_FRAME_LOAD, OF_SPRING = range(3)
#: Places of these numbers after the first one
ANGLE, SPEED, OFFSET = range(3)
VALUE, JOINT_STIFFNESS, JOINT_DAMPING, FREE_POSITION = range(4)
STIFFNESS, DAMPING, FREE_LENGTH = range(3)


class Model(NamedTuple):
    """All arrays of a mechanism; `BUFFER_OF` has the buffer of each.

    E are joints and drivers, J joints, D drivers, L loads on joints, P loads at frames, R springs,
    N unknowns, G groups of unknowns. The names of the arrays are those of `Assembler`, `Frames` and
    `FloatingBodies`; groups, parts, pairs, rotations, signs, lengths and sizes are those of
    `Measure`, columns are those of `IterationMatrix`, and rotating and orientations those of
    `Corotation`.
    """

    # indices
    table: Indices
    counts: Indices
    first_v: Indices
    origins: Indices
    first: Indices
    second: Indices
    joint_first: Indices
    joint_second: Indices
    ends: Indices  # (E, 2)
    end_starts: Indices  # (E, 2), first velocities of the bodies of both frames
    widths: Indices  # (frames,), numbers of velocities of the frames' bodies
    starts: Indices  # (frames,), first velocities of the frames' bodies
    rows_of: Indices  # (nc, 2), joint and motion of each constraint
    groups: Indices
    parts: Indices
    pairs: Indices
    rotations: NDArray[np.bool_]  # stored as integers
    columns: Indices
    rotating: Indices  # (G, 4), groups of unknowns whose factors rotate
    drivers: Indices  # (D, 3): DRIVER_ENTRY, DRIVER_MOTION, DRIVEN_JOINT
    row_drivers: Indices  # (nc,), driver of each displacement that is driven, or -1
    joint_loads: Indices  # (L, 3): KIND, JOINT, MOTION
    frame_loads: Indices  # (P, 3): FRAME, IS_TORQUE, IN_AXES
    springs: Indices  # (R, 2): FIRST_FRAME, SECOND_FRAME
    places: Indices  # (inputs,), places of the inputs in `parameters`
    reported: Indices  # (outputs, 3): kind, index, component
    # constants
    data: Array
    gravity: Array
    axes_signs: Array
    misfit: Array  # (nc,), violations at the start of redundant constraints, which remain
    lengths: Array
    signs: Array
    numbers: Array
    # state
    now: Array  # (1,), time
    q0: Array
    v0: Array
    a0: Array
    lam0: Array
    angles0: Array
    algorithmic: Array
    velocity: Array
    earlier_a: Array
    earlier_lam: Array
    flags: Array
    lu: Array
    pivots: Array
    orientations: Array  # (G, 3, 3), those of the groups at the factorization
    noise: Array
    parameters: Array
    outputs: Array
    # scratch: point of evaluation
    q: Array
    v: Array
    a: Array
    lam: Array
    # (J,), rad: earlier rotations of the joints, or those that drivers prescribe. A new rotation is
    # known up to full turns only; of its possible values, the one closest to the entry is used.
    angles: Array
    rows: Array
    scale: Array
    values: Array
    position: Array
    rotation: Array
    velocities: Array
    wrenches: Array
    turns: Array  # (E,), rotations that drivers prescribe, otherwise 0
    offsets: Array  # (nc,), displacements that drivers prescribe, plus `misfit`
    spread: Array  # multipliers by joint or driver and motion, (E, 6)
    jacobians: Array
    tangents: Array
    blocks: Array
    K: Array
    C: Array
    M: Array
    B: Array
    carried: Array
    group_turns: Array  # (G, 3, 3)
    right: Array
    move: Array
    new: Array
    sizes: Array
    largest: Array
    no_noise: Array
    samples: Array


_FIRST = {"indices": "table", "constants": "data", "state": "now", "scratch": "q"}


def _buffers() -> dict[str, str]:
    """Return the buffer of each field of `Model`."""
    names = [*Model._fields]
    starts = [names.index(_FIRST[buffer]) for buffer in BUFFERS]
    pairs = zip(starts, [*starts[1:], len(names)], strict=True)
    parts = zip(BUFFERS, pairs, strict=True)
    return {name: buffer for buffer, (i, j) in parts for name in names[i:j]}


BUFFER_OF: dict[str, str] = _buffers()
"""Buffer of each array of a `Model`."""

DIMENSIONS: dict[str, int] = dict.fromkeys(Model._fields, 1) | dict.fromkeys(
    ["table", "ends", "end_starts", "rows_of", "pairs", "drivers", "joint_loads", "frame_loads",
     "springs", "reported", "rotating", "signs", "earlier_a", "earlier_lam", "lu", "position",
     "velocities", "wrenches", "spread", "K", "C", "M", "B", "samples"], 2
) | dict.fromkeys(["rotation", "jacobians", "tangents", "carried", "orientations",
                   "group_turns"], 3)  # fmt: skip
"""Number of dimensions of each array of a `Model`."""
