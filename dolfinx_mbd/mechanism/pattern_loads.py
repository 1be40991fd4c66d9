"""Distributed loads on flexible bodies: load patterns of the reduced body with an amplitude.

At amplitude p, the resultant is p F, the moment about the origin of the body frame is p (m₀ + Σ m_k
η_k), and the generalized force on the elastic coordinate η_k is p f_k. F, m₀, m_k and f_k are
constants of the `LoadPattern` in body components.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.body import LoadPattern
from dolfinx_mbd.checks import function, number, reject
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputTypeError
from dolfinx_mbd.kernels.columns import ELASTIC, ETA, FORCE, MOMENT, OMEGA, QUATERNION
from dolfinx_mbd.kernels.rotations import rotation_matrix, skew
from dolfinx_mbd.mechanism.joints import FrameRef
from dolfinx_mbd.mechanism.load_protocol import Load, LoadInput, Port
from dolfinx_mbd.mechanism.loads import (
    FrameMotion,
    JointCoordinate,
    check_coordinate,
    motion_derivatives,
    slopes,
)
from dolfinx_mbd.mechanism.run_quantities import LOAD, Quantities, RunQuantity

if TYPE_CHECKING:
    from dolfinx_mbd.mechanism.initial_poses import InitialPoses

__all__ = ["PatternLoad", "PatternRef", "pattern_rows", "pattern_tangent"]

Array = NDArray[np.float64]


class PatternRef(NamedTuple):
    """Names of a flexible body and one of its distributed loads, see `FlexibleBody.pattern`."""

    body: str
    pattern: str


@dataclass(frozen=True, eq=False)
class PatternLoad(Load):
    """A distributed load on a flexible body, for example a pressure or a field of body forces.

    Attributes:
        name: Name in the system.
        pattern: The distributed load with amplitude 1, `body.pattern("name")`.
        value: Amplitude: a number, or a function. Without `of` the function is `value(t)` of time
            (s). With a joint coordinate it is `value(t, s, rate)` of time, the coordinate (rad or
            m) and its rate. With frames it is `value(t, motion, ...)` of time and a `FrameMotion`
            for each frame. Its derivatives are central differences.
        of: The motion on which the amplitude depends: None, a joint coordinate, a frame
            `body.frame("name")` or a list of frames. The frames may belong to the loaded body. A
            frame at a named point has the rotation of the body.

    Raises:
        InputError: An argument is invalid. If `value` is a function, its result is checked at each
            call.

    Example:
        >>> sail = mbd.FlexibleBody("sail", body)
        >>> gust = mbd.mechanism.PatternLoad("gust", sail.pattern("wind"), lambda t: 5.0 * t)
        >>> gust.size(2.0)
        10.0

        A wind of 12 m/s along y. Its pressure follows the speed of the right end:

        >>> def drag(t, end):
        ...     relative = 12.0 - end.velocity[1]
        ...     return 0.6 * relative * abs(relative)
        >>> wind = mbd.mechanism.PatternLoad(
        ...     "wind", sail.pattern("wind"), drag, of=sail.frame("right")
        ... )
    """

    kind: ClassVar[str] = "distributed load"
    port: ClassVar[Port] = "pattern"
    run_quantities: ClassVar[Quantities] = {**LOAD, "amplitude": RunQuantity("1")}
    name: str
    pattern: PatternRef
    value: float | Callable[..., float]
    of: JointCoordinate | FrameRef | Sequence[FrameRef] | None = None

    @property
    def location(self) -> str:
        """Body and pattern of the load, for tables."""
        return f"{self.pattern.body}: {self.pattern.pattern}"

    @property
    def loaded_body(self) -> str:
        """Name of the body on which the load acts."""
        return self.pattern.body

    @property
    def acts_on_modes(self) -> bool:
        """True."""
        return True

    @property
    def mark(self) -> str:
        """An arrow for the resultant."""
        return "arrow"

    def placed_in(self, poses: InitialPoses) -> PatternLoad:
        """Return the load; raise an error if it depends on what does not exist."""
        poses.system.load_pattern(self)
        for frame in self.frames:
            poses.system.frame_index(frame)
        if self.coordinate is not None:
            joint, motion = self.coordinate
            poses.system.joint(joint).free_motion(motion, f"load {self.name!r}")
        return self

    def inputs(self) -> Iterator[LoadInput]:
        """Yield the amplitude."""
        yield LoadInput(self.name, "value", any_number=True)

    def record(self, *arguments: Any) -> dict[str, ArrayLike]:
        """Return the amplitude, the only argument."""
        return {"amplitude": arguments[0]}

    @property
    def sources(self) -> tuple[FrameRef, ...]:
        """Frames on whose motion the amplitude depends."""
        return self.frames

    def __post_init__(self) -> None:
        label = f"load {checked_name('name', self.name)!r}"
        if not (isinstance(self.pattern, tuple) and len(self.pattern) == 2):
            expected = "a distributed load of a flexible body, body.pattern('name')"
            reject(f"{label}: pattern", self.pattern, expected, InputTypeError)
        assign(self, pattern=PatternRef(*self.pattern), of=_checked_source(label, self.of))
        if callable(self.value):
            self._check_function(f"{label}: value", self.value)
        else:
            number(f"{label}: value", self.value)

    @property
    def coordinate(self) -> JointCoordinate | None:
        """Joint coordinate on which the amplitude depends, if there is one."""
        return self.of if isinstance(self.of, JointCoordinate) else None

    @property
    def frames(self) -> tuple[FrameRef, ...]:
        """Frames on whose motion the amplitude depends."""
        if self.of is None or isinstance(self.of, JointCoordinate):
            return ()
        return (self.of,) if isinstance(self.of, FrameRef) else tuple(self.of)

    def _check_function(self, label: str, value: Callable[..., float]) -> None:
        """Raise an error if a function does not accept the time and the motion."""
        motion = ["s", "rate"] if self.coordinate else ["motion"] * len(self.frames)
        try:
            function(label, value, f"value({', '.join(['t', *motion])})")
        except InputTypeError as error:
            if self.of is not None:
                raise
            hint = "a function that depends on a motion needs of=, a joint coordinate or frames"
            raise InputTypeError(
                f"{error}; {hint}", argument=error.argument, value=error.value
            ) from None

    def size(self, t: float, *motion: Any) -> float:
        """Return the amplitude of the load.

        Args:
            t: Time, s.
            *motion: Joint coordinate and its rate, or a `FrameMotion` for each frame; see `of`.
        """
        value = self.value(t, *motion) if callable(self.value) else self.value
        return number(f"load {self.name!r}: value", value)

    def derivatives(self, t: float, s: float, rate: float) -> tuple[float, float]:
        """Return the derivatives of the amplitude with respect to the coordinate and its rate."""
        return slopes(lambda x, w: self.size(t, x, w), s, rate)

    def frame_derivatives(self, t: float, motions: Sequence[FrameMotion], length: float) -> Array:
        """Return the derivatives with respect to poses and velocities of the frames, (F, 12).

        The step for positions is 1e-6 times `length` (m).
        """

        def partial(k: int) -> Array:
            def size(motion: FrameMotion) -> Array:
                return np.array([self.size(t, *motions[:k], motion, *motions[k + 1 :])])

            return motion_derivatives(size, motions[k], length)[0]

        return np.array([partial(k) for k in range(len(motions))])


def _checked_source(label: str, of: Any) -> Any:
    """Return a joint coordinate, a frame, a tuple of frames or None."""
    if of is None or isinstance(of, FrameRef):
        return of
    if isinstance(of, JointCoordinate):
        check_coordinate(f"{label}: of", of)
        return of
    if isinstance(of, (list, tuple)) and of and all(isinstance(ref, FrameRef) for ref in of):
        return tuple(of)
    expected = (
        "a joint coordinate, mbd.mechanism.JointCoordinate(joint, 'rotation'), a frame of a body, "
        "body.frame('name'), or a list of frames"
    )
    return reject(f"{label}: of", of, expected, InputTypeError)


def pattern_rows(pattern: LoadPattern, q: Array) -> Array:
    """Return global force, body-frame moment and elastic forces for amplitude 1, (6 + n,)."""
    A, eta = rotation_matrix(q[QUATERNION]), q[ETA]
    moment = pattern.moment + eta @ pattern.moments
    return np.concatenate([A @ pattern.force, moment, pattern.modes])


def pattern_tangent(pattern: LoadPattern, q: Array) -> Array:
    """Return the derivative of `pattern_rows` with respect to increments of q, (6 + n, 6 + n)."""
    n = len(pattern.modes)
    D = np.zeros((6 + n, 6 + n))
    D[FORCE, OMEGA] = -rotation_matrix(q[QUATERNION]) @ skew(pattern.force)
    D[MOMENT, ELASTIC] = pattern.moments.T
    return D
