"""Constraints of joints that are functions of the relative motion of two frames.

With the displacement d of the second frame relative to the first, its rotation matrix R, its
velocity v = ḋ and its relative angular velocity ω, all in the axes of the first frame, a constraint
is either g(d, R) = 0, or a condition g_d·v + g_θ·ω = 0 on velocities, which need not be the rate of
a function g (a nonholonomic constraint). Small rotations θ change R by θ×R. The kernels of
`relation` compute gradients, forces and second derivatives from g_d, g_θ and their derivatives.

In formulas of joints, e_x, e_y and e_z are the axes of the first frame, and f_x, f_y and f_z those
of the second frame, the columns of R.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.relation import distance_rows
from dolfinx_mbd.kernels.rotations import skew

if TYPE_CHECKING:
    from dolfinx_mbd.mechanism.force_elements import FramePair

__all__ = ["Distance", "JointRelation"]

Array = NDArray[np.float64]


class JointRelation(ABC):
    """Constraints of a joint that are not among the six relative motions; for new joints.

    A joint has at most six constraints. Each has the number of a motion: 0, 1, 2 for constraints in
    m, and 3, 4, 5 for constraints in rad. A subclass that is a frozen dataclass can be saved,
    compared and differentiated.

    Attributes:
        kind: Name of the kind of joint.
        rows: Names of the constraints of this relation by their numbers.
        held: Relative motions that the joint constrains in addition, as in `JOINT_KINDS`.
        on_velocities: Numbers of the constraints that restrict velocities only.
        motions: Free motions about and along z that are single coordinates.
        point_ends: Ends, ``first`` or ``second``, on which the joint exerts no moment, so that they
            may be named points of flexible bodies.
        reports_multipliers: Whether results contain the negative multipliers by their numbers, and
            not the force and moment on the second frame in components of the first frame.
        mark: Shape of the joint in pictures.

    Example:
        A point on the surface of a sphere:

        >>> from dolfinx_mbd.mechanism.joint_relations import JointRelation
        >>> class Sphere(JointRelation):
        ...     kind, rows = "sphere", {0: "distance from the centre"}
        ...     def values(self, d, R):
        ...         return np.array([d @ d - 1.0]) / 2
        ...     def slopes(self, d, R):
        ...         return np.append(d, np.zeros(3))[None]
        ...     def second(self, d, R):
        ...         return np.diag([1.0, 1, 1, 0, 0, 0])[None]
        >>> ends = ground.frame("bearing"), rod.frame("right")
        >>> joint = mbd.mechanism.Joint("ball", "sphere", *ends, relation=Sphere())
        >>> joint.rows
        (0,)
    """

    kind: ClassVar[str]
    rows: ClassVar[dict[int, str]]
    held: ClassVar[tuple[int, ...]] = ()
    on_velocities: ClassVar[tuple[int, ...]] = ()
    motions: ClassVar[tuple[Literal["rotation", "displacement"], ...]] = ()
    point_ends: ClassVar[tuple[str, ...]] = ()
    reports_multipliers: ClassVar[bool] = False
    mark: ClassVar[Literal["pin", "ball", "rod", "rail", "block"]] = "block"

    @abstractmethod
    def values(self, d: Array, R: Array) -> Array:
        """Return the constraints in the order of `rows`, shape (n,).

        Those of constraints on velocities are not used.

        Args:
            d: Relative displacement in the axes of the first frame, shape (3,), m.
            R: Axes of the second frame as columns, in the axes of the first frame, shape (3, 3).
        """

    @abstractmethod
    def slopes(self, d: Array, R: Array) -> Array:
        """Return the derivatives g_d and g_θ of the constraints, shape (n, 6)."""

    @abstractmethod
    def second(self, d: Array, R: Array) -> Array:
        """Return the derivatives of `slopes` with respect to d and θ, shape (n, 6, 6)."""

    @classmethod
    def parameters(cls, relations: Sequence[Any]) -> Any:
        """Return the parameters of several joints for `evaluate`, by default the relations."""
        return relations

    @classmethod
    def evaluate(cls, parameters: Any, d: Array, R: Array) -> tuple[Array, Array]:
        """Return values (pairs, n) and slopes (pairs, n, 6) of several joints of this class.

        A class of which a mechanism has many joints may compute all of them together.
        """
        points = [(item, d[k], R[k]) for k, item in enumerate(parameters)]
        values = np.array([item.values(*point) for item, *point in points])
        return values, np.array([item.slopes(*point) for item, *point in points])

    def placed(self, label: str, pair: FramePair) -> dict[str, Any]:
        """Return the fields of the joint that follow from its frames at the initial positions.

        They are keyword arguments of `Joint`, for example its `length`; `label` begins messages.
        """
        return {}

    def problem(self, d: Array, R: Array) -> str:
        """Return why the joint cannot be in this position, or an empty text."""
        return ""

    def initial_problem(self, d: Array, R: Array) -> str:
        """Return why a run cannot start in the assembled initial position, or an empty text."""
        return self.problem(d, R)


@dataclass(frozen=True)
class Distance(JointRelation):
    """Distance |d| = L of two points; by default L is the distance at the initial positions."""

    kind: ClassVar[str] = "distance"
    rows: ClassVar[dict[int, str]] = {0: "length"}
    point_ends: ClassVar[tuple[str, ...]] = ("first", "second")
    reports_multipliers: ClassVar[bool] = True
    mark: ClassVar[Literal["pin", "ball", "rod", "rail", "block"]] = "rod"
    length: float | None = None

    def values(self, d: Array, R: Array) -> Array:
        """Return |d| − L."""
        (values,), _ = distance_rows(self.parameters([self]), d[None])
        return np.asarray(values)

    def slopes(self, d: Array, R: Array) -> Array:
        """Return the direction of d."""
        _, (slopes,) = distance_rows(self.parameters([self]), d[None])
        return np.asarray(slopes)

    def second(self, d: Array, R: Array) -> Array:
        """Return (I − nnᵀ)/|d| for the direction n of d."""
        distance = max(float(np.linalg.norm(d)), 1e-300)  # no division by zero
        n, out = d / distance, np.zeros((1, 6, 6))
        out[0, :3, :3] = (np.eye(3) - np.outer(n, n)) / distance
        return out

    @classmethod
    def parameters(cls, relations: Sequence[Any]) -> Array:
        """Return the lengths (pairs,), m; zero for a length that `placed` has yet to measure."""
        return np.array([item.length or 0.0 for item in relations])

    @classmethod
    def evaluate(cls, parameters: Any, d: Array, R: Array) -> tuple[Array, Array]:
        """Return values (pairs, 1) and slopes (pairs, 1, 6) of several distances."""
        return distance_rows(parameters, d)

    def placed(self, label: str, pair: FramePair) -> dict[str, Any]:
        """Return the initial distance of the points as `length`, unless the length is given."""
        if self.length is not None:
            return {}
        length = float(np.linalg.norm(pair.p2 - pair.p1))
        if length == 0.0:
            raise InputError(
                f"{label}: its points coincide at the initial positions of the bodies; specify its "
                "length, or use a spherical joint"
            )
        return {"length": length}


# ---- rotation about z ---------------------------------------------------------------------------
def angle_about_z(R: Array) -> float:
    """Return the angle φ = atan2(e_y·f_x, e_x·f_x) of a relative rotation, rad, |φ| ≤ π."""
    return math.atan2(R[1, 0], R[0, 0])


def angle_slope(R: Array) -> Array:
    """Return the derivative f_x×w/(w·w) of the angle, w = (e_x·f_x) e_y − (e_y·f_x) e_x, (3,).

    The derivative is with respect to small rotations θ.
    """
    x, y, z = R[:, 0]
    square = x * x + y * y  # w·w
    return np.array([-x * z / square, -y * z / square, 1.0])


def angle_second(R: Array) -> Array:
    """Return the derivative (3, 3) of `angle_slope` with respect to small rotations θ."""
    x, y, z = f = R[:, 0]
    square = x * x + y * y
    by_f = np.array(
        [
            [-z / square + 2 * x * x * z / square**2, 2 * x * y * z / square**2, -x / square],
            [2 * x * y * z / square**2, -z / square + 2 * y * y * z / square**2, -y / square],
            [0.0, 0.0, 0.0],
        ]
    )
    return by_f @ -skew(f)  # f_x changes by θ×f_x


def nearest_turn(angle: float) -> float:
    """Return an angle reduced by full turns to the range from −π to π, rad."""
    return angle - 2 * math.pi * round(angle / (2 * math.pi))
