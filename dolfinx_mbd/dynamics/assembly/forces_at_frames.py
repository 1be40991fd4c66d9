"""Assembly of forces and torques at frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.frames import Frames
from dolfinx_mbd.dynamics.assembly.load_terms import LoadDerivatives
from dolfinx_mbd.mechanism.loads import FrameLoad, FrameMotion


class ForcesAtFrames:
    """Loads with the port ``frame``."""

    def __init__(self, frames: Frames, loads: Iterable[FrameLoad]) -> None:
        self._frames = frames
        self.items = [(load, frames.system.frame_index(load.frame)) for load in loads]

    def groups(self) -> list[set[int]]:
        """Return, for each load, the bodies on whose motion it depends or acts."""
        return [{*self._frames.bodies_of((k, k))} for _, k in self.items]

    def arguments(self, load: FrameLoad, frame: int) -> tuple[FrameMotion]:
        """Return the arguments of `Load.record`."""
        return (self._frames.motion(frame),)

    def wrenches(self, t: float) -> Iterator[tuple[FrameLoad, tuple[int, ...], Array]]:
        """Yield each load with its frame and the wrench on the frame, (6,)."""
        for load, frame in self.items:
            yield load, (frame,), load.wrench(t, self._frames.motion(frame))

    def add_derivatives(self, t: float, target: LoadDerivatives) -> None:
        """Add the derivatives of the loads."""
        length = self._frames.length()
        for load, frame in self.items:
            if callable(load.value) or load.axes == "frame":
                # Derivatives of the wrench by pose (D) and velocity (E) of the frame, which is
                # treated as the first one of a pair; the second one has no effect
                D, E = np.zeros((2, 12, 12))
                D[:6, :6], E[:6, :6] = load.derivatives(t, self._frames.motion(frame), length)
                target.add_pair(np.array([[frame, frame]]), -D, -E)
