"""States of loads, quantities x with ẋ = g, in the form of bodies of a mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.mechanism.protocol import BodyState

__all__ = ["LoadStates", "state_names"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LoadStates:
    """The m states of a load, in the form of a `Body` without frames.

    The states are the velocities of this body, and the load exerts the forces μ g on it, so that
    its equations are μ (ẋ − g) = 0. The coordinates are the integrals of the states; nothing
    depends on them. The mass μ only scales the equations.

    Attributes:
        load: Name of the load.
        initial: States at the start, shape (m,).
        typical_mass: Mass μ, kg.
    """

    load: str
    initial: Array
    typical_mass: float

    frame_names = ()
    num_elastic = 0

    @property
    def name(self) -> str:
        """Name of the body for messages."""
        return f"{self.load}.states"

    @property
    def num_coordinates(self) -> int:
        """Number m of states."""
        return len(self.initial)

    num_velocities = num_coordinates

    def initial_coordinates(self) -> Array:
        """Return zeros (m,)."""
        return np.zeros(len(self.initial))

    def initial_velocities(self) -> Array:
        """Return the states at the start (m,)."""
        return np.array(self.initial)

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        """Set `out` to the integrals of the states after an increment."""
        out[:] = q + delta

    def increment_tangent(self, delta: Array) -> Array:
        """Return an empty array; states have no rotations."""
        return np.zeros((0, 3))

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        """Do nothing; states have no frames."""

    def frame_velocities(self, q: Array, v: Array, out: Array) -> None:
        """Do nothing; states have no frames."""

    def frame_jacobians(self, q: Array) -> Array:
        """Return an empty array (0, 6, m)."""
        return np.zeros((0, 6, len(self.initial)))

    def frame_velocity_tangents(self, q: Array, v: Array) -> Array:
        """Return an empty array (0, 6, m)."""
        return np.zeros((0, 6, len(self.initial)))

    def frame_bias(self, q: Array, v: Array) -> Array:
        """Return an empty array (0, 6)."""
        return np.zeros((0, 6))

    def residual(self, state: BodyState, out: Array, scale: Array) -> None:
        """Set the residual μ ẋ (m,); the load subtracts μ g."""
        out[:] = self.typical_mass * state.a
        scale[:] = np.abs(out)

    def tangent(self, state: BodyState) -> tuple[Array, Array, Array]:
        """Return the derivatives 0, 0 and μ I of the residual."""
        m = len(self.initial)
        return np.zeros((m, m)), np.zeros((m, m)), self.typical_mass * np.eye(m)

    def energies(self, q: Array, v: Array, gravity: Array) -> Array:
        """Return zeros (3,); the load itself may store energy."""
        return np.zeros(3)

    def momenta(self, q: Array, v: Array) -> Array:
        """Return zeros (6,)."""
        return np.zeros(6)


def state_names(body: Any) -> list[str]:
    """Return the names of the states of a load for messages; empty for other bodies."""
    if not isinstance(body, LoadStates):
        return []
    return [f"state {k + 1} of load {body.load!r}" for k in range(len(body.initial))]
