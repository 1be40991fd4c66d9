"""A force element: rubber bands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.mechanism.force_elements import FramePair
from dolfinx_mbd.mechanism.joints import FrameRef
from dolfinx_mbd.mechanism.law_elements import LawElement, PairMotion

__all__ = ["Rubber"]


@dataclass(frozen=True, eq=False)
class Rubber(LawElement):
    """A band of length zero: the force on the second frame is −k d for its displacement d."""

    kind: ClassVar[str] = "rubber"
    name: str
    first: FrameRef
    second: FrameRef
    stiffness: float
    mark: ClassVar[str] = "coil"

    def placed(self, pair: FramePair) -> Rubber:
        return self

    def value(self, motion: PairMotion) -> Array:
        return np.append(-self.stiffness * motion.displacement, np.zeros(3))

    def slopes(self, motion: PairMotion) -> Array:
        return np.diag([-self.stiffness] * 3 + [0.0] * 9)[:6]

    def stored_energy(self, motion: PairMotion) -> float:
        return 0.5 * self.stiffness * float(motion.displacement @ motion.displacement)
