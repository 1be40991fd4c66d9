"""Mechanisms that users create and print."""

from __future__ import annotations

from dolfinx_mbd.multibody.model.system import SystemData
from dolfinx_mbd.multibody.start.summary import summary

__all__ = ["System"]


class System(SystemData):
    """Bodies connected by joints, with drivers and loads; `print(system)` shows a table.

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

    Example:
        >>> ground = mbd.Ground({"bearing": mbd.Frame()})
        >>> bob = mbd.RigidBody("bob", 1.0, [0.01] * 3, frames={"pivot": mbd.Frame((0, 1, 0))})
        >>> hinge = mbd.revolute("hinge", ground.frame("bearing"), bob.frame("pivot"))
        >>> mbd.System([ground, bob], [hinge], gravity=(0, -9.81, 0))
        <System: 2 bodies, 1 joints, 0 drivers, 0 loads; 6 velocities (0 elastic), 5 constraints>
    """

    def summary(self) -> str:
        """Return a table of bodies, joints, drivers, loads and degrees of freedom.

        It also lists redundant constraints and the bodies that the assembly at t = 0 moves.
        """
        return summary(self)

    def __str__(self) -> str:
        return self.summary()
