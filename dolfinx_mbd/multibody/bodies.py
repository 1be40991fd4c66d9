"""Rigid bodies and reduced flexible ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import LoadPattern, ModalDamping, ReducedBody
from dolfinx_mbd.multibody.floating_body import FloatingBody, checked_rotation, checked_vector
from dolfinx_mbd.multibody.pattern_loads import PatternRef
from dolfinx_mbd.multibody.protocol import Frame, checked_frame
from dolfinx_mbd.multibody.shapes import Shape, box_shape, cylinder_shape

__all__ = [
    "DEFAULT_DAMPING_RATIO",
    "FlexibleBody",
    "RigidBody",
]

Array = NDArray[np.float64]

#: Modal damping ratio of a flexible body that is given none: 1 %, usual for a bolted metal part.
DEFAULT_DAMPING_RATIO = 0.01


@dataclass(frozen=True, eq=False)
class RigidBody(FloatingBody):
    """A rigid body.

    Attributes:
        name: Its name in the system and in the results.
        mass: kg.
        inertia: Inertia tensor about the centre of mass, body axes, shape (3, 3) or the diagonal
            (3,), kg m².
        centre: Centre of mass in the body frame, shape (3,), m.
        frames: Where joints and forces meet it, by name.
        position: Origin of the body frame where it starts, shape (3,), m.
        rotation: Quaternion (w, x, y, z) or matrix body → global where it starts.
        shape: What to draw, or None.

    Raises:
        ValueError: If mass is not positive or no mass distribution has this inertia tensor.
    """

    name: str
    mass: float
    inertia: ArrayLike
    centre: ArrayLike = (0.0, 0.0, 0.0)
    frames: Mapping[str, Frame] = field(default_factory=dict)
    position: ArrayLike = (0.0, 0.0, 0.0)
    rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0)
    shape: Shape | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.mass, (int, float, np.number)) and 0 < self.mass < np.inf):
            raise ValueError(
                f"body {self.name!r}: mass must be a positive number (kg), got {self.mass!r}"
            )
        J = np.array(self.inertia, dtype=float)
        J = np.diag(J) if J.shape == (3,) else J
        if J.shape != (3, 3) or not np.allclose(J, J.T, atol=1e-12 * np.abs(J).max(initial=0)):
            raise ValueError(
                f"body {self.name!r}: inertia must be a symmetric 3×3 matrix or its diagonal"
            )
        second = 0.5 * np.trace(J) * np.eye(3) - J  # ∫ρ (x−c)⊗(x−c)
        if np.linalg.eigvalsh(second).min() < -1e-9 * np.trace(J):
            raise ValueError(
                f"body {self.name!r}: no body has principal moments {np.linalg.eigvalsh(J)} kg m²; "
                "each must be at most the sum of the other two"
            )
        if np.linalg.eigvalsh(J).min() <= 0:
            raise ValueError(
                f"body {self.name!r}: inertia has a zero moment {np.linalg.eigvalsh(J)} kg m²; "
                "rotation about that axis would have no inertia. Give a thin rod its true small "
                "moment"
            )
        c = checked_vector(self.name, "centre", self.centre)
        second = second + self.mass * np.outer(c, c)
        none = np.zeros((0, 0))
        frames = {
            key: (*checked_frame(self.name, key, frame), np.zeros((6, 0)))
            for key, frame in self.frames.items()
        }
        self._prepare(
            self.mass,
            self.mass * c[None],
            second[None, None],
            (none, none, none),
            frames,
            checked_vector(self.name, "position", self.position),
            checked_rotation(self.name, self.rotation),
        )

    @classmethod
    def box(
        cls,
        name: str,
        size: Sequence[float],
        *,
        density: float | None = None,
        mass: float | None = None,
        centre: ArrayLike = (0.0, 0.0, 0.0),
        frames: Mapping[str, Frame] | None = None,
        position: ArrayLike = (0.0, 0.0, 0.0),
        rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    ) -> RigidBody:
        """A homogeneous box with edges ``size`` (m) along the body axes; give density or mass."""
        sides = checked_vector(name, "size", size)
        if (sides <= 0).any():
            raise ValueError(f"body {name!r}: size must be positive, got {size!r}")
        m = _mass(name, float(np.prod(sides)), density, mass)
        squares = sides**2
        J = m / 12 * (squares.sum() - squares)
        return cls(name, m, J, centre, frames or {}, position, rotation, box_shape(sides, centre))

    @classmethod
    def cylinder(
        cls,
        name: str,
        radius: float,
        length: float,
        *,
        axis: int = 2,
        density: float | None = None,
        mass: float | None = None,
        centre: ArrayLike = (0.0, 0.0, 0.0),
        frames: Mapping[str, Frame] | None = None,
        position: ArrayLike = (0.0, 0.0, 0.0),
        rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    ) -> RigidBody:
        """A homogeneous cylinder along body axis 0, 1 or 2, sizes in m; give density or mass."""
        if not (radius > 0 and length > 0):
            raise ValueError(
                f"body {name!r}: radius and length must be positive, got {radius}, {length}"
            )
        if axis not in (0, 1, 2):
            raise ValueError(f"body {name!r}: axis must be 0, 1 or 2, got {axis!r}")
        m = _mass(name, np.pi * radius**2 * length, density, mass)
        J = np.full(3, m * (3 * radius**2 + length**2) / 12)
        J[axis] = m * radius**2 / 2
        shape = cylinder_shape(radius, length, axis, centre)
        return cls(name, m, J, centre, frames or {}, position, rotation, shape)


def _mass(name: str, volume: float, density: float | None, mass: float | None) -> float:
    if (density is None) == (mass is None):
        raise ValueError(f"body {name!r}: give either density (kg/m³) or mass (kg)")
    return mass if mass is not None else float(density) * volume  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class FlexibleBody(FloatingBody):
    """A reduced flexible body in a mechanism; its frames are the interfaces of the reduced body.

    Attributes:
        name: Its name in the system and in the results.
        reduced: The reduced body; several flexible bodies may share one.
        position: Origin of the body frame where it starts, shape (3,), m.
        rotation: Quaternion (w, x, y, z) or matrix body → global where it starts.
        damping_ratio: Damping ratio of every mode, added to the body's own damping matrix.
            None: :data:`DEFAULT_DAMPING_RATIO` if that matrix is zero, else nothing is added.
        stiffening: Whether the body's geometric stiffening acts; None: if the body has it.

    Raises:
        ValueError: If stiffening is asked for and the body has none, or the damping ratio is
            negative.
    """

    name: str
    reduced: ReducedBody
    position: ArrayLike = (0.0, 0.0, 0.0)
    rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0)
    damping_ratio: float | None = None
    stiffening: bool | None = None

    def __post_init__(self) -> None:
        body = self.reduced
        if not isinstance(body, ReducedBody):
            raise TypeError(
                f"body {self.name!r}: expected a reduced body (reduce(...).body or "
                f"ReducedBody.load(path)), got {type(body).__name__}"
            )
        cases = body.stiffening
        if self.stiffening and cases is None:
            raise ValueError(
                f"body {self.name!r}: its reduced body {body.name!r} holds no stiffening; reduce "
                "it with stiffening=True and the mean-axis reference"
            )
        stiff = cases if self.stiffening is not False else None
        object.__setattr__(self, "stiffening", stiff is not None)
        ratio = self.damping_ratio
        if ratio is None:
            ratio = 0.0 if body.damping.any() else DEFAULT_DAMPING_RATIO
        if not 0 <= ratio < np.inf:
            raise ValueError(
                f"body {self.name!r}: damping ratio must be at least 0 and finite, got {ratio}"
            )
        object.__setattr__(self, "damping_ratio", float(ratio))
        damping = body.damping + ModalDamping(ratio).matrix(body.mass, body.stiffness)
        self._prepare(
            body.total_mass,
            body.first_moments,
            body.second_moments,
            (body.mass, damping, body.stiffness),
            {i.name: (i.point, i.axes, i.motion) for i in body.interfaces},
            checked_vector(self.name, "position", self.position),
            checked_rotation(self.name, self.rotation),
            None if stiff is None else stiff.spin,
            None if stiff is None else stiff.interfaces,
        )

    def load_pattern(self, name: str) -> LoadPattern:
        """The distributed load of the reduced body of this name.

        Raises:
            ValueError: If there is none; the message lists those that are there.
        """
        return self.reduced.load_pattern(name)

    def pattern(self, name: str) -> PatternRef:
        """Reference to a distributed load of the reduced body, for a `PatternLoad`.

        Raises:
            ValueError: If there is none; the message lists those that are there.
        """
        return PatternRef(self.name, self.load_pattern(name).name)
