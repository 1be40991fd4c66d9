"""The ground."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body.parts import assign
from dolfinx_mbd.checks import choice
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.multibody.model.joints import FrameRef
from dolfinx_mbd.multibody.model.protocol import BodyState, Frame, checked_frames

__all__ = ["Ground"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ground:
    """A body that does not move; a system has at most one.

    Attributes:
        frames: Frames by name, in global coordinates.
        name: Name in the system.

    Raises:
        InputError: The frames are not a mapping from names to frames.

    Example:
        >>> ground = mbd.Ground({"bearing": mbd.Frame(), "wall": mbd.Frame((2.0, 0.0, 0.0))})
        >>> ground.frame("wall")
        FrameRef(body='ground', frame='wall')
    """

    frames: Mapping[str, Frame] = field(default_factory=dict)
    name: str = "ground"
    num_coordinates: int = field(default=0, init=False)
    num_velocities: int = field(default=0, init=False)
    num_elastic: int = field(default=0, init=False)
    typical_mass: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        assign(self, frames=checked_frames(checked_name("name", self.name), self.frames))

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Names of the frames."""
        return tuple(self.frames)

    def frame(self, name: str) -> FrameRef:
        """Return a reference to a frame, for joints and loads.

        Args:
            name: Name of the frame.

        Raises:
            InputError: The ground has no such frame; the message lists the names.
        """
        return FrameRef(self.name, choice(f"frame of body {self.name!r}", name, self.frames))

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        """Set positions and orientations of the frames."""
        for k, (point, axes) in enumerate(self.frames.values()):
            position[k], rotation[k] = point, axes

    # The ground has no coordinates: all arrays of coordinates are empty
    def _nothing(self, *arguments: Any) -> None:
        pass

    def _empty(self, *arguments: Any) -> Array:
        return np.zeros((len(self.frames), 6, 0))

    increment = residual = frame_velocities = _nothing
    frame_jacobians = frame_velocity_tangents = _empty

    def initial_coordinates(self) -> Array:
        """Return an empty array."""
        return np.zeros(0)

    def increment_tangent(self, delta: Array) -> Array:
        """Return an empty matrix."""
        return np.zeros((0, 0))

    def tangent(self, state: BodyState) -> tuple[Array, Array, Array]:
        """Return empty matrices."""
        return np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, 0))

    def frame_bias(self, q: Array, v: Array) -> Array:
        """Return zero accelerations."""
        return np.zeros((len(self.frames), 6))

    def energies(self, q: Array, v: Array, gravity: Array) -> Array:
        """Return zero energies."""
        return np.zeros(3)

    def momenta(self, q: Array, v: Array) -> Array:
        """Return zero momenta."""
        return np.zeros(6)
