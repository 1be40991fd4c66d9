"""The ground: what does not move, with frames in global coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import choice
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.multibody.model.joints import FrameRef
from dolfinx_mbd.multibody.model.protocol import BodyState, Frame, checked_frames

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
    _points: Array = field(init=False, repr=False)
    _axes: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        frames = checked_frames(checked_name("name", self.name), self.frames).values()
        object.__setattr__(self, "_points", np.array([f.point for f in frames]).reshape(-1, 3))
        object.__setattr__(self, "_axes", np.array([f.axes for f in frames]).reshape(-1, 3, 3))

    @property
    def frame_names(self) -> tuple[str, ...]:
        return tuple(self.frames)

    def frame(self, name: str) -> FrameRef:
        """Reference to a frame of the ground.

        Raises:
            InputError: There is no such frame; the message lists those there are.
        """
        return FrameRef(self.name, choice(f"frame of body {self.name!r}", name, self.frames))

    def initial_coordinates(self) -> Array:
        return np.zeros(0)

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        pass

    def increment_tangent(self, delta: Array) -> Array:
        return np.zeros((0, 0))

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        position[:], rotation[:] = self._points, self._axes

    def residual(self, state: BodyState, out: Array, scale: Array) -> None:
        pass

    def tangent(self, state: BodyState) -> tuple[Array, Array, Array]:
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
