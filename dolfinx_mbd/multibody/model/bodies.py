"""Rigid bodies and reduced flexible ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import LoadPattern, ModalDamping, ReducedBody
from dolfinx_mbd.checks import array, flag, instance, number, refuse, vector
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.multibody.model.floating_body import FloatingBody, checked_rotation
from dolfinx_mbd.multibody.model.pattern_loads import PatternRef
from dolfinx_mbd.multibody.model.protocol import Frame, checked_frames
from dolfinx_mbd.multibody.model.shapes import Shape, box_shape, cylinder_shape

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
        InputError: An argument is unusable, for example because the mass is not positive or no
            mass distribution has this inertia tensor.
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
        label = f"body {checked_name('name', self.name)!r}"
        mass = number(f"{label}: mass", self.mass, positive=True, unit="kg")
        c: Array = vector(f"{label}: centre", self.centre, unit="m")
        second = _second_moments(label, self.inertia) + mass * np.outer(c, c)
        instance(f"{label}: shape", self.shape, (Shape, type(None)))
        none = np.zeros((0, 0))
        frames = {
            key: (*frame, np.zeros((6, 0)))
            for key, frame in checked_frames(self.name, self.frames).items()
        }
        self._prepare(
            mass,
            mass * c[None],
            second[None, None],
            (none, none, none),
            frames,
            vector(f"{label}: position", self.position, unit="m"),
            checked_rotation(f"{label}: rotation", self.rotation),
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
        shape = box_shape(size, centre)
        squares = np.square(size, dtype=float)
        m = _mass(name, float(np.prod(size, dtype=float)), density, mass)
        J = m / 12 * (squares.sum() - squares)
        frames = {} if frames is None else frames
        return cls(name, m, J, centre, frames, position, rotation, shape)

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
        shape = cylinder_shape(radius, length, axis, centre)
        m = _mass(name, np.pi * radius * radius * length, density, mass)
        J = np.full(3, m * (3 * radius * radius + length * length) / 12)
        J[axis] = m * radius * radius / 2
        frames = {} if frames is None else frames
        return cls(name, m, J, centre, frames, position, rotation, shape)


def _mass(name: str, volume: float, density: float | None, mass: float | None) -> float:
    if (density is None) == (mass is None):
        raise InputError(f"body {name!r}: give either density (kg/m³) or mass (kg)")
    if mass is not None:
        return number(f"body {name!r}: mass", mass, positive=True, unit="kg")
    rho = number(f"body {name!r}: density", density, positive=True, unit="kg/m³")
    return number(f"body {name!r}: density times volume", rho * volume, positive=True, unit="kg")


def _second_moments(label: str, inertia: ArrayLike) -> Array:
    """Return ∫ρ (x−c)⊗(x−c), shape (3, 3), of an inertia tensor or its diagonal.

    Raises:
        InputError: No body has this tensor.
    """
    J: Array = array(f"{label}: inertia", inertia)
    if J.shape == (3,):
        J = np.diag(J)
    if J.shape != (3, 3) or not np.allclose(J, J.T, atol=1e-12 * np.abs(J).max(initial=0)):
        refuse(f"{label}: inertia", inertia, "a symmetric 3×3 matrix or its diagonal, in kg m²")
    moments = np.linalg.eigvalsh(J)
    second = 0.5 * np.trace(J) * np.eye(3) - J
    if np.linalg.eigvalsh(second).min() < -1e-9 * np.trace(J):
        raise InputError(
            f"{label}: no body has principal moments {moments} kg m²; each must be at most the sum "
            "of the other two",
            argument=f"{label}: inertia",
            value=inertia,
        )
    if moments.min() <= 0:
        raise InputError(
            f"{label}: inertia has a zero moment {moments} kg m²; rotation about that axis would "
            "have no inertia. Give a thin rod its true small moment",
            argument=f"{label}: inertia",
            value=inertia,
        )
    return second


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
        InputError: An argument is unusable, or stiffening is asked for and the body has none.
    """

    name: str
    reduced: ReducedBody
    position: ArrayLike = (0.0, 0.0, 0.0)
    rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0)
    damping_ratio: float | None = None
    stiffening: bool | None = None

    def __post_init__(self) -> None:
        label = f"body {checked_name('name', self.name)!r}"
        hint = "reduce(...).body or ReducedBody.load(path)"
        body: ReducedBody = instance(f"{label}: reduced", self.reduced, ReducedBody, hint)
        active = self.stiffening is None or flag(f"{label}: stiffening", self.stiffening)
        if active and self.stiffening is not None and body.stiffening is None:
            raise InputError(
                f"{label}: its reduced body {body.name!r} holds no stiffening; reduce it with "
                "stiffening=True and the mean-axis reference",
                argument=f"{label}: stiffening",
                value=self.stiffening,
            )
        stiff = body.stiffening if active else None
        object.__setattr__(self, "stiffening", stiff is not None)
        ratio = self.damping_ratio
        if ratio is None:
            ratio = 0.0 if body.damping.any() else DEFAULT_DAMPING_RATIO
        ratio = number(f"{label}: damping_ratio", ratio, low=0.0)
        object.__setattr__(self, "damping_ratio", ratio)
        damping = body.damping + ModalDamping(ratio).matrix(body.mass, body.stiffness)
        self._prepare(
            body.total_mass,
            body.first_moments,
            body.second_moments,
            (body.mass, damping, body.stiffness),
            {i.name: (i.point, i.axes, i.motion) for i in body.interfaces},
            vector(f"{label}: position", self.position, unit="m"),
            checked_rotation(f"{label}: rotation", self.rotation),
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
