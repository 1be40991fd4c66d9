"""Outputs that are entries of the state of a mechanism, so that they need no evaluation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dolfinx_mbd.mechanism.joints import Driver, Joint
from dolfinx_mbd.mechanism.run_quantities import BODY
from dolfinx_mbd.mechanism.system import State, System

__all__ = ["StateEntry", "state_entry"]


class StateEntry(NamedTuple):
    """An output that is an entry of the state, times a sign.

    Attributes:
        array: Name of the array of the state.
        column: Index of the entry; -1 for an output that is always zero, such as a force along a
            free axis.
        increment: Index of the entry among the increments of q; equal to `column` for other arrays.
        sign: 1 or -1; 0 for an output that is always zero.
    """

    array: str
    column: int
    increment: int
    sign: float

    def value(self, state: State) -> float:
        """Return the value of the output."""
        return self.sign * float(getattr(state, self.array)[self.column]) if self.sign else 0.0


def state_entry(system: System, output: str) -> StateEntry | None:
    """Return the entry of the state that an output consists of, or None if it needs an evaluation.

    The entries are motions of bodies with a floating frame, and rotations, forces and moments of
    joints and drivers.

    Args:
        system: The mechanism.
        output: Valid name of a single number, such as ``pin.force.x``.
    """
    name, _, quantity = output.partition(".")
    key, _, axis = quantity.rpartition(".")
    parts = zip(system.bodies, system.q_slices, system.v_slices, strict=True)
    for body, coordinates, velocities in parts:
        floating = body.num_coordinates > body.num_velocities and not hasattr(body, "motion")
        place = BODY[key].place if key in BODY and key != "rotation" else None
        if body.name == name and floating and place is not None:
            number = "xyz".index(axis) if axis in ("x", "y", "z") else int(axis) - 1
            column = place.columns.start + number
            # η follows four numbers of the rotation, but three of ω
            increment = velocities.start + column - (key == "eta")
            first = coordinates.start if place.array == "q" else velocities.start
            return StateEntry(place.array, first + column, increment, 1.0)
    joints: list[Joint | Driver] = [*system.joints, *system.drivers]
    names = [joint.name for joint in joints]
    if name not in names:
        return None
    entry, count = names.index(name), len(system.joints)
    if quantity == "rotation":
        # A driver has the angle of its joint
        column = entry if entry < count else int(system.driven_joints[entry - count])
        return StateEntry("angles", column, column, 1.0)
    return _force(system, entry, key, axis)


def _force(system: System, entry: int, key: str, axis: str) -> StateEntry | None:
    """Return the entry of a force or moment of a joint or driver, minus its multiplier.

    The force needs an evaluation if the joint does not report its multipliers, or if constraints of
    the system were removed as redundant.
    """
    joints: list[Joint | Driver] = [*system.joints, *system.drivers]
    reports = getattr(joints[entry], "reports_multipliers", True)
    if key not in ("force", "moment") or not reports or not system.held.all():
        return None
    motion = "xyz".index(axis) + (3 if key == "moment" else 0)
    rows = np.flatnonzero((system.row_entry == entry) & (system.row_motion == motion))
    if not len(rows):
        return StateEntry("lam", -1, -1, 0.0)
    return StateEntry("lam", int(rows[0]), int(rows[0]), -1.0)
