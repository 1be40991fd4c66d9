"""The given motion of a body's frame and the forces at its interfaces, over time.

A body whose rigid motion is known deforms under the inertia of that motion, under gravity and under
the forces of its joints; `PrescribedMotion` is all of it, from functions of time or from the
history of a simulated mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, instance, short, vector
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.kernels.rotations import rotation_matrix

__all__ = ["FrameHistory", "Instant", "PrescribedMotion"]

Array = NDArray[np.float64]
Vector = ArrayLike | Callable[[float], ArrayLike]


class FrameHistory(Protocol):
    """The motion of a body's frame: what a simulation returns for a body."""

    @property
    def time(self) -> Array:
        """Shape (nt,), s."""

    @property
    def rotation(self) -> Array:
        """Quaternions w, x, y, z, body to global, shape (nt, 4)."""

    @property
    def acceleration(self) -> Array:
        """Of the frame's origin, global, shape (nt, 3), m/s²."""

    @property
    def omega(self) -> Array:
        """Angular velocity, body components, shape (nt, 3), rad/s."""

    @property
    def alpha(self) -> Array:
        """Angular acceleration, body components, shape (nt, 3), rad/s²."""


class Instant(NamedTuple):
    """The motion at one time, body components.

    Attributes:
        omega: ω, shape (3,), rad/s.
        alpha: α, shape (3,), rad/s².
        acceleration: a₀ - Aᵀg of the frame's origin, shape (3,), m/s².
        wrenches: Force and moment on the body at each interface, shape (6,), N and N m.
    """

    omega: Array
    alpha: Array
    acceleration: Array
    wrenches: dict[str, Array]


@dataclass(frozen=True, eq=False)
class PrescribedMotion:
    """Motion of the body frame and forces at the interfaces, all in **body components**.

    Each is an array, or a function of time (s) that returns one. In the plane ω and α may be
    scalars about z, accelerations may have two components.

    Attributes:
        omega: ω, shape (3,), rad/s.
        alpha: α = ω̇, shape (3,), rad/s².
        acceleration: a₀ of the frame's origin, shape (3,), m/s².
        gravity: Aᵀg, shape (3,), m/s²: it turns in the frame.
        wrenches: By interface, force and moment **on** the body about the interface's point, shape
            (6,), N and N m. Interfaces that are not named carry none.

    Raises:
        ValueError: A constant has a wrong shape, or is not finite.
    """

    omega: Vector = (0.0, 0.0, 0.0)
    alpha: Vector = (0.0, 0.0, 0.0)
    acceleration: Vector = (0.0, 0.0, 0.0)
    gravity: Vector = (0.0, 0.0, 0.0)
    wrenches: Mapping[str, Vector] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("omega", "alpha", "acceleration", "gravity"):
            value = getattr(self, name)
            if not callable(value):
                object.__setattr__(self, name, _shaped(name, value))
        instance("wrenches", self.wrenches, Mapping)
        fixed = {
            name: value if callable(value) else _wrench(name, value)
            for name, value in self.wrenches.items()
        }
        object.__setattr__(self, "wrenches", fixed)

    def __call__(self, t: float) -> Instant:
        """The motion at a time.

        Raises:
            ValueError: A function returns something else than a vector of finite numbers.
        """
        omega, alpha, acceleration, gravity = (
            _shaped(name, value(t) if callable(value) else value)
            for name, value in (
                ("omega", self.omega),
                ("alpha", self.alpha),
                ("acceleration", self.acceleration),
                ("gravity", self.gravity),
            )
        )
        wrenches = {
            name: _wrench(name, value(t) if callable(value) else value)
            for name, value in self.wrenches.items()
        }
        return Instant(omega, alpha, acceleration - gravity, wrenches)

    @classmethod
    def from_history(
        cls,
        history: FrameHistory,
        *,
        gravity: ArrayLike = (0.0, 0.0, 0.0),
        wrenches: Mapping[str, ArrayLike] | None = None,
    ) -> PrescribedMotion:
        """The motion of a simulated body, such as ``run.body("rod 1")``.

        At the recorded times the values are the recorded ones. Between them each is a cubic Hermite
        polynomial in time: ω with the slope α, the others (α, Aᵀ(R̈ - g) and the wrenches, after
        they were turned into body components) with central differences as slopes. So the error
        between recorded times is of the fourth order for ω and of the third for the others.

        Args:
            history: Motion of the frame.
            gravity: g, global components, shape (3,), m/s².
            wrenches: By interface, force and moment on the body in body components over the
                recorded times, shape (nt, 6), N and N m; None: those of the history, if it has
                any.

        Raises:
            ValueError: Less than three times, times that do not increase, or wrong shapes.
        """
        fields = ("time", "rotation", "acceleration", "omega", "alpha")
        if not all(hasattr(history, name) for name in fields):
            raise InputTypeError(
                f"history must be a motion, such as run.body('rod 1'), with {', '.join(fields)}; "
                f"got {short(history)}",
                argument="history",
                value=history,
            )
        time = array("history.time", history.time, (None,))
        if len(time) < 3 or not (np.diff(time) > 0).all():
            raise InputError("a motion over time needs at least three times that increase")
        apparent = np.asarray(history.acceleration) - vector("gravity", gravity, unit="m/s²")
        turned = np.array(
            [rotation_matrix(p).T @ a for p, a in zip(history.rotation, apparent, strict=True)]
        )
        forces = {}
        instance("wrenches", wrenches, (Mapping, type(None)))
        if wrenches is None:
            wrenches = getattr(history, "wrenches", {})
        for name, values in wrenches.items():
            wrench = array(f"the wrench at {name!r}", values, (len(time), 6))
            forces[name] = _hermite(time, wrench)
        return cls(
            omega=_hermite(time, history.omega, history.alpha),
            alpha=_hermite(time, history.alpha),
            acceleration=_hermite(time, turned),
            wrenches=forces,
        )


def _hermite(time: Array, values: Array, slopes: Array | None = None) -> Callable[[float], Array]:
    if slopes is None:
        slopes = np.gradient(values, time, axis=0, edge_order=2)
    spline = scipy.interpolate.CubicHermiteSpline(time, values, slopes, extrapolate=False)
    low, high = time[0], time[-1]
    margin = 1e-9 * (high - low)

    def at(t: float) -> Array:
        if not low - margin <= t <= high + margin:
            raise InputError(f"the motion is known from {low:g} s to {high:g} s; asked at {t:g} s")
        return spline(min(max(t, low), high))

    return at


def _shaped(name: str, value: ArrayLike) -> Array:
    """A vector of three components; in the plane one about z, or two in it."""
    expected = "three finite numbers, body components"
    numbers = array(name, value, expected=expected)
    if numbers.shape == () and name in ("omega", "alpha"):
        return np.array([0.0, 0.0, float(numbers)])
    if numbers.shape == (2,) and name in ("acceleration", "gravity"):
        return np.array([*numbers, 0.0])
    return np.array(array(name, value, (3,), expected=expected))


def _wrench(name: str, value: ArrayLike) -> Array:
    expected = "six finite numbers, force and moment"
    return np.array(array(f"the wrench at {name!r}", value, (6,), expected=expected))
