"""Mechanisms that users create and print."""

from __future__ import annotations

from dolfinx_mbd.multibody.model.system import SystemData
from dolfinx_mbd.multibody.start.summary import summary

__all__ = ["System"]


class System(SystemData):
    """Bodies connected by joints, with drivers and loads; ``print(system)`` shows a table.

    Unspecified distances, offsets and free lengths of joints, drivers and loads are measured at the
    initial positions of the bodies, before the assembly.

    Args:
        bodies: Bodies; at most one of them is a `Ground`.
        joints: Joints between frames of two bodies.
        drivers: Prescribed rotations and displacements of joints.
        loads: Forces and torques, springs, bushings and friction.
        gravity: Acceleration of gravity, global components, shape (3,), m/s².

    Raises:
        InputError: A name is repeated or unknown, or a driver does not fit its joint; the message
            lists the valid names.
    """

    def summary(self) -> str:
        """Return a table of bodies, joints, drivers, loads and degrees of freedom.

        It also lists redundant constraints and the bodies that the assembly at t = 0 moves.
        """
        return summary(self)

    def __str__(self) -> str:
        return self.summary()
