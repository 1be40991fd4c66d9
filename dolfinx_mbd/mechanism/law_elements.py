"""Force elements that are laws of the relative motion of two frames.

The kernels of `relation` compute the wrenches on both frames and their derivatives from a law and
its derivatives, so that an element does not transform vectors to other axes.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.relation import pair_tangents, pair_wrenches, relative_motion
from dolfinx_mbd.kernels.rotations import rotation_vector
from dolfinx_mbd.mechanism.force_elements import FramePair, PairElement

__all__ = ["LawElement", "PairMotion"]

Array = NDArray[np.float64]


class PairMotion(NamedTuple):
    """Motion of the second frame relative to the first, in the axes of the first frame.

    Attributes:
        time: Time, s.
        displacement: Position of the second point relative to the first, shape (3,), m.
        rotation: Axes of the second frame as columns, shape (3, 3).
        velocity: Rate of the displacement, shape (3,), m/s.
        omega: Angular velocity of the second frame relative to the first, shape (3,), rad/s.
        states: States of the load, shape (m,).

    Example:
        >>> def spring(motion: mbd.mechanism.PairMotion):
        ...     return -1e4 * motion.displacement, -50.0 * motion.rotation_vector
    """

    time: float
    displacement: Array
    rotation: Array
    velocity: Array
    omega: Array
    states: Array

    @property
    def rotation_vector(self) -> Array:
        """Rotation vector of the second frame relative to the first, shape (3,), rad, |θ| ≤ π."""
        return rotation_vector(self.rotation)

    def __repr__(self) -> str:
        return short_repr(self)


class LawElement(PairElement):
    """Base class of force elements that are a law (F, M, g) = f(t, d, R, v, ω, x).

    t, d, R, v, ω and x are the entries of a `PairMotion`. All vectors have components in the axes
    of the first frame. F and M act on the second frame, and g are the rates of the m states x; most
    elements have none.
    """

    timed: ClassVar[bool] = True  # the methods have time and states as further arguments

    @abstractmethod
    def value(self, motion: PairMotion) -> Array:
        """Return force, moment and rates of the states, shape (6 + m,)."""

    @abstractmethod
    def slopes(self, motion: PairMotion) -> Array:
        """Return the derivatives of `value`, shape (6 + m, 12 + m).

        The columns belong to the displacement, to small rotations θ with the change θ×R of the
        rotation, to velocity, omega and states.
        """

    @abstractmethod
    def stored_energy(self, motion: PairMotion) -> float:
        """Return the stored energy, J."""

    def quantities(self, motion: PairMotion) -> dict[str, ArrayLike]:
        """Return relative motion and its rate by the names of `run_quantities`."""
        return {
            "displacement": motion.displacement,
            "displacement_rate": motion.velocity,
            "rotation": motion.rotation_vector,
            "rotation_rate": motion.omega,
        }

    def relative(
        self, pair: FramePair, t: float = 0.0, states: ArrayLike | None = None
    ) -> PairMotion:
        """Return the relative motion of two frames at a time (s), with the states (m,)."""
        x = self.initial_states if states is None else np.asarray(states, dtype=float)
        return PairMotion(t, *relative_motion(*pair), x)

    def wrenches(self, pair: FramePair, t: float = 0.0, states: Array | None = None) -> Array:
        """Return the wrenches on both frames in global components and the rates, (12 + m,)."""
        motion = self.relative(pair, t, states)
        return pair_wrenches(pair.Q1, motion.displacement, self.value(motion))

    def derivatives(
        self, pair: FramePair, t: float = 0.0, states: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the derivatives with respect to poses, and to velocities and states."""
        motion = self.relative(pair, t, states)
        value, slopes = self.value(motion), self.slopes(motion)
        return pair_tangents(pair.Q1, pair.u1, motion[1:5], value, slopes)

    def energy(self, pair: FramePair, t: float = 0.0, states: Array | None = None) -> float:
        """Return the stored energy, J."""
        return self.stored_energy(self.relative(pair, t, states))

    def motion(
        self, pair: FramePair, t: float = 0.0, states: Array | None = None
    ) -> dict[str, ArrayLike]:
        """Return relative motion, its rate and the states."""
        motion = self.relative(pair, t, states)
        states_by_name: dict[str, ArrayLike] = (
            {"states": motion.states.copy()} if len(motion.states) else {}
        )
        return self.quantities(motion) | states_by_name
