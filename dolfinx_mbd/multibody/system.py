"""The mechanism that users create and print."""

from __future__ import annotations

from dolfinx_mbd.multibody.model.system import SystemData
from dolfinx_mbd.multibody.start.summary import summary

__all__ = ["System"]


class System(SystemData):
    """Bodies connected by joints, driven and loaded; ``print(system)`` is a table of it.

    What joints, drivers and loads leave to be measured (a distance, an offset, a free length) is
    measured here, where the bodies are placed, before they are put together.

    Args:
        bodies: Bodies; at most one of them a :class:`Ground`.
        joints: Joints between frames of two bodies.
        drivers: Prescribed rotations and displacements of joints.
        loads: Forces and torques, springs, bushings and friction.
        gravity: Acceleration of gravity, global components, shape (3,), m/s².

    Raises:
        InputError: An argument is unusable: names repeat or refer to nothing, or a driver does not
            fit its joint; the message says which and lists what is there.
    """

    def summary(self) -> str:
        """Return a page with bodies, joints, drivers, loads and the degrees of freedom.

        It also lists redundant constraints and the bodies that the assembly at t = 0 moves.
        """
        return summary(self)

    def __str__(self) -> str:
        return self.summary()
