"""The ground: what does not move, with frames in global coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.multibody.joints import FrameRef
from dolfinx_mbd.multibody.protocol import Frame, checked_frame

__all__ = ["Ground"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ground:
    """What does not move: frames in global coordinates."""

    frames: Mapping[str, Frame] = field(default_factory=dict)
    name: str = "ground"
    num_coordinates: int = field(default=0, init=False)
    num_velocities: int = field(default=0, init=False)
    num_elastic: int = field(default=0, init=False)
    typical_mass: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        for key, frame in self.frames.items():
            checked_frame(self.name, key, frame)

    @property
    def frame_names(self) -> tuple[str, ...]:
        return tuple(self.frames)

    def frame(self, name: str) -> FrameRef:
        """Reference to a frame of the ground.

        Raises:
            ValueError: If there is no such frame; the message lists those there are.
        """
        if name not in self.frames:
            known = ", ".join(map(repr, self.frames)) or "none"
            raise ValueError(f"unknown frame {name!r}; {self.name!r} has {known}")
        return FrameRef(self.name, name)

    def initial_coordinates(self) -> Array:
        return np.zeros(0)

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        pass

    def increment_tangent(self, delta: Array) -> Array:
        return np.zeros((0, 0))

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        for k, (point, axes) in enumerate(Frame(*frame) for frame in self.frames.values()):
            position[k], rotation[k] = np.asarray(point), np.asarray(axes)

    def residual(
        self,
        t: float,
        q: Array,
        v: Array,
        a: Array,
        gravity: Array,
        wrenches: Array,
        out: Array,
        scale: Array,
    ) -> None:
        pass

    def tangent(
        self, t: float, q: Array, v: Array, a: Array, gravity: Array, wrenches: Array
    ) -> tuple[Array, Array, Array]:
        empty = np.zeros((0, 0))
        return empty, empty, empty

    def frame_jacobians(self, q: Array) -> Array:
        return np.zeros((len(self.frames), 6, 0))

    def frame_velocities(self, q: Array, v: Array, out: Array) -> None:
        pass

    def frame_velocity_tangents(self, q: Array, v: Array) -> Array:
        return np.zeros((len(self.frames), 6, 0))

    def frame_bias(self, q: Array, v: Array) -> Array:
        return np.zeros((len(self.frames), 6))

    def energies(self, q: Array, v: Array, gravity: Array) -> Array:
        return np.zeros(3)

    def momenta(self, q: Array, v: Array) -> Array:
        return np.zeros(6)
