"""Forces and moments between two frames from a user's law of their relative motion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import array, function, number, reject, vector
from dolfinx_mbd.errors import InputTypeError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.columns import DISPLACEMENT, OTHERS, ROTATION, SPIN, VELOCITY
from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.mechanism.expressions.laws import check_states
from dolfinx_mbd.mechanism.force_elements import FramePair
from dolfinx_mbd.mechanism.joints import FrameRef
from dolfinx_mbd.mechanism.law_elements import LawElement, PairMotion

__all__ = ["PairLoad"]

Array = NDArray[np.float64]

_STEP = 1e-6  # step of a difference relative to the size of its variable
_SMALLEST_SIZE = 1e-2  # smallest displacement for the step of a difference, m


Law = Callable[[PairMotion], tuple[ArrayLike, ...]]
"""Function of a relative motion that returns force, moment and, with states, their rates."""


@dataclass(frozen=True, eq=False)
class PairLoad(LawElement):
    """A force and a moment between two frames, from a law of their relative motion.

    The law acts on the second frame; the opposite force and moment act on the first body at the
    same point. A load may have states x with the rates ẋ = g, for example the integral of a
    controller, the current of a motor or the force of a Maxwell damper. The states are integrated
    together with the mechanism.

    Derivatives of the law are central differences. A law that is an object with a method
    ``derivatives(motion)`` returns them instead: the derivatives of force, moment and rates with
    respect to displacement, rotation (by small rotation vectors θ, with the change θ×R), velocity,
    omega and states, shape (6 + m, 12 + m).

    Attributes:
        name: Name in the system.
        first: Frame in whose axes the law has its components, for example `ground.frame("base")`.
        second: Frame on which the force and the moment act.
        law: Function ``law(motion)`` of a `PairMotion` that returns the force (N) on the second
            frame and the moment (N m) about its point, shape (3,) each, in the axes of the first
            frame. With states, the function returns their rates as a third result, shape (m,).
        states: States at the start, shape (m,); by default the load has none.
        potential: Function ``potential(motion)`` that returns the stored energy, J; by default the
            method ``energy`` of the law if it has one, otherwise the load stores no energy.

    Raises:
        InputError: An argument is invalid. The results of the law are checked at each call.

    Example:
        A Maxwell damper: a spring of 2 kN/m in series with a damper of 30 N s/m.

        >>> def maxwell(motion):
        ...     stretch = motion.states  # of the spring
        ...     force = -2e3 * stretch
        ...     return force, (0, 0, 0), motion.velocity - 2e3 / 30.0 * stretch
        >>> ends = ground.frame("bearing"), rod.frame("right")
        >>> damper = mbd.PairLoad("damper", *ends, maxwell, states=(0, 0, 0))
    """

    name: str
    first: FrameRef
    second: FrameRef
    law: Law
    states: ArrayLike = ()
    potential: Callable[[PairMotion], float] | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        self._check_ends()
        label = f"load {self.name!r}"
        function(f"{label}: law", self.law, "law(motion)")
        if self.potential is not None:
            function(f"{label}: potential", self.potential, "potential(motion)")
        states = array(
            f"{label}: states", self.states, (None,), expected="a list of finite numbers"
        )
        check_states(label, self.law, states)
        assign(self, states=states)

    @property
    def initial_states(self) -> Array:
        """States at the start, shape (m,)."""
        return np.asarray(self.states)

    def placed(self, pair: FramePair) -> PairLoad:
        """Return the load itself; it has no unspecified lengths."""
        return self

    def value(self, motion: PairMotion) -> Array:
        """Return force, moment and rates of the states, shape (6 + m,)."""
        result, label, m = self.law(motion), f"load {self.name!r}", len(motion.states)
        names = ("force", "moment") if m == 0 else ("force", "moment", "rates of the states")
        if not isinstance(result, (tuple, list)) or len(result) != len(names):
            expected = f"a tuple of {len(names)} arrays: {', '.join(names)}"
            reject(f"{label}: result of the law", result, expected, InputTypeError)
        sizes = (3, 3, m)
        parts = [
            vector(f"{label}: {name} of the law", part, size)
            for name, part, size in zip(names, result, sizes, strict=False)
        ]
        return np.concatenate(parts)

    def slopes(self, motion: PairMotion) -> Array:
        """Return the derivatives of `value`, shape (6 + m, 12 + m)."""
        exact = getattr(self.law, "derivatives", None)
        if exact is None:
            return self._differences(motion)
        m = len(motion.states)
        G = np.array(exact(motion), dtype=float)
        if G.shape != (6 + m, 12 + m) or not np.isfinite(G).all():
            expected = f"an array of finite numbers of shape {(6 + m, 12 + m)}"
            reject(f"load {self.name!r}: derivatives of the law", G, expected)
        return G

    def _differences(self, motion: PairMotion) -> Array:
        """Return the derivatives of `value` by central differences."""
        sizes = [
            np.full(3, max(_SMALLEST_SIZE, np.abs(motion.displacement).max())),
            np.ones(3),
            np.full(3, max(1.0, np.abs(motion.velocity).max())),
            np.full(3, max(1.0, np.abs(motion.omega).max())),
            np.maximum(1.0, np.abs(motion.states)),
        ]
        steps = _STEP * np.concatenate(sizes)
        columns = [
            (self.value(_displaced(motion, step)) - self.value(_displaced(motion, -step)))
            for step in np.diag(steps)
        ]
        return np.asarray(np.array(columns).T / (2 * steps))

    def stored_energy(self, motion: PairMotion) -> float:
        """Return the stored energy, J."""
        potential = self.potential or getattr(self.law, "energy", None)
        if potential is None:
            return 0.0
        energy = potential(motion)
        return number(f"load {self.name!r}: value of the potential", energy, unit="J")


def _displaced(motion: PairMotion, step: Array) -> PairMotion:
    """Return a motion after increments (12 + m,)."""
    return PairMotion(
        motion.time,
        motion.displacement + step[DISPLACEMENT],
        exp_rotation(step[ROTATION]) @ motion.rotation,
        motion.velocity + step[VELOCITY],
        motion.omega + step[SPIN],
        motion.states + step[OTHERS],
    )
