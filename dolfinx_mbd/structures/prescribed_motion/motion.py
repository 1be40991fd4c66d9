"""Prescribed motion of the frame of a body, and the forces at its interfaces, over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import (
    array,
    choice,
    function,
    increasing,
    instance,
    object_with,
    reject,
    vector,
)
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.rotations import exp_rotation, rotation_matrix

Vector = ArrayLike | Callable[[float], ArrayLike]

FIELDS = ("omega", "alpha", "acceleration", "gravity")


class Instant(NamedTuple):
    """Motion at one time in body components."""

    omega: Array  # ω, shape (3,), rad/s
    alpha: Array  # α, shape (3,), rad/s²
    acceleration: Array  # a₀ - Aᵀg of the frame's origin, shape (3,), m/s²
    wrenches: dict[str, Array]  # force and moment on the body at interfaces, shape (6,), N and N m


@dataclass(frozen=True, eq=False)
class PrescribedMotion:
    """Motion of the body frame and forces at the interfaces, all in **body components**.

    Each value is an array, or a function of time, s, that returns an array. For a plane body, ω and
    α may be scalars about z, and accelerations may have two components. `from_law` returns the
    motion that a driver prescribes, and `from_run` the motion of a body in a run.

    Attributes:
        omega: Angular velocity ω, shape (3,), rad/s.
        alpha: Angular acceleration α = ω̇, shape (3,), rad/s².
        acceleration: Acceleration a₀ of the frame's origin, shape (3,), m/s².
        gravity: Gravitational acceleration Aᵀg, shape (3,), m/s²; it changes as the frame rotates.
        wrenches: Mapping from interface names to force and moment **on** the body about the
            interface's point, shape (6,), N and N m. No wrench acts at other interfaces.

    Raises:
        InputError: A constant has a wrong shape, or is not finite.

    Example:
        >>> motion = mbd.structures.PrescribedMotion(omega=lambda t: 2.0 * t, alpha=2.0)
        >>> motion(0.5).omega
        array([0., 0., 1.])

    """

    omega: Vector = (0.0, 0.0, 0.0)
    alpha: Vector = (0.0, 0.0, 0.0)
    acceleration: Vector = (0.0, 0.0, 0.0)
    gravity: Vector = (0.0, 0.0, 0.0)
    wrenches: Mapping[str, Vector] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in FIELDS:
            value = getattr(self, name)
            if not callable(value):
                assign(self, **{name: _space_vector(name, value)})
        wrenches = {
            name: value if callable(value) else _wrench(name, value)
            for name, value in instance("wrenches", self.wrenches, Mapping).items()
        }
        assign(self, wrenches=wrenches)

    def __call__(self, t: float) -> Instant:
        """Return the motion at a time.

        Args:
            t: Time, s.

        Raises:
            InputError: A function does not return a vector of finite numbers.
        """

        def evaluate(value: Vector) -> ArrayLike:
            """Return a constant, or a function's value at the time."""
            return value(t) if callable(value) else value

        omega, alpha, acceleration, gravity = (
            _space_vector(name, evaluate(getattr(self, name))) for name in FIELDS
        )
        wrenches = {name: _wrench(name, evaluate(value)) for name, value in self.wrenches.items()}
        return Instant(omega, alpha, acceleration - gravity, wrenches)

    @classmethod
    def from_law(
        cls,
        law: Any,
        *,
        along: Literal["rotation", "displacement"] = "rotation",
        axis: ArrayLike = (0.0, 0.0, 1.0),
        point: ArrayLike = (0.0, 0.0, 0.0),
        gravity: ArrayLike = (0.0, 0.0, 0.0),
    ) -> PrescribedMotion:
        """Return the motion of a body that turns about or moves along a fixed axis.

        Args:
            law: Function of time, s, that returns the angle, rad, or the displacement, m, its rate
                and its acceleration; or a `Driver`. `constant_speed`, `differentiated` and
                `integrated` create such functions.
            along: ``rotation`` about the axis or ``displacement`` along it.
            axis: Direction of the axis in body components, shape (3,).
            point: Point on the axis in the body frame, shape (3,), m.
            gravity: g in body components at the angle 0, shape (3,), m/s².

        Raises:
            InputError: An argument is invalid, or the law does not return three finite numbers.

        Example:
            >>> motion = mbd.structures.PrescribedMotion.from_law(
            ...     mbd.constant_speed(10.0), point=(0, 0.5, 0)
            ... )
            >>> motion(0.2).omega, motion(0.2).acceleration.round(9)
            (array([ 0.,  0., 10.]), array([ 0., 50.,  0.]))
        """
        law = getattr(law, "at", law)
        function("law", law, "a function of time or a driver, for example constant_speed(10.0)")
        is_rotation = choice("along", along, ("rotation", "displacement")) == "rotation"
        direction, g = vector("axis", axis), vector("gravity", gravity, unit="m/s²")
        length = float(np.linalg.norm(direction))
        if length == 0.0:
            reject("axis", axis, "a vector that is not zero")
        n, arm = direction / length, -vector("point", point, unit="m")
        across = np.cross(n, np.cross(n, arm))

        def values(t: float) -> Array:
            """Return the angle or displacement with its rate and acceleration."""
            return array("law", law(t), (3,), expected="value, rate and acceleration")

        def body_gravity(t: float) -> Array:
            """Return the gravity in the axes of the turned body."""
            return exp_rotation(-float(values(t)[0]) * n) @ g

        if not is_rotation:
            return cls(acceleration=lambda t: values(t)[2] * n, gravity=g)
        return cls(
            omega=lambda t: values(t)[1] * n,
            alpha=lambda t: values(t)[2] * n,
            acceleration=lambda t: values(t)[2] * np.cross(n, arm) + values(t)[1] ** 2 * across,
            gravity=body_gravity if g.any() else g,
        )

    @classmethod
    def from_run(cls, run: Any, body: str) -> PrescribedMotion:
        """Return the motion of a body in a run of a mechanism, with its gravity and its forces.

        The forces include all joints, drivers and loads at the interfaces of the body. See
        `from_history` for the interpolation between the saved times.

        Args:
            run: Result of a simulation, see `Solution`.
            body: Name of the body.

        Raises:
            InputError: The name is unknown, or the run has fewer than three times.

        Example:
            >>> bar = mbd.RigidBody.box("bar", (1.0, 0.1, 0.1), mass=1.0, omega=(0, 0, 3.0))
            >>> run = mbd.simulate(mbd.System([bar]), t_end=0.1, dt=0.01)
            >>> mbd.structures.PrescribedMotion.from_run(run, "bar")(0.05).omega.round(9)
            array([0., 0., 3.])
        """
        object_with("run", run, "body", "system")
        return cls.from_history(run.body(body), gravity=run.system.gravity)

    @classmethod
    def from_history(
        cls,
        history: Any,
        *,
        gravity: ArrayLike = (0.0, 0.0, 0.0),
        wrenches: Mapping[str, ArrayLike] | None = None,
    ) -> PrescribedMotion:
        """Return the motion of a simulated body, such as ``run.body("rod 1")``.

        Between the recorded times, values are interpolated by cubic Hermite polynomials, with the
        slope α for ω and with central differences for all other values. The error is of fourth
        order for ω and of third order for all other values.

        Args:
            history: Motion of the frame, an object with `time`, s; `rotation`, quaternions
                w, x, y, z from body to global; `acceleration` of the origin in global components,
                m/s²; `omega` and `alpha` in body components, rad/s and rad/s².
            gravity: g in global components, shape (3,), m/s².
            wrenches: Mapping from interface names to force and moment on the body in body
                components at the recorded times, shape (nt, 6), N and N m. By default the wrenches
                of the history.

        Raises:
            InputError: There are fewer than three ascending times, or a shape is wrong.

        Example:
            >>> mbd.structures.PrescribedMotion.from_history(history)(0.05).omega
            array([0., 0., 3.])
        """
        object_with("history", history, "time", "rotation", "acceleration", "omega", "alpha")
        time = increasing("history.time", history.time, least=3, unit="s")
        apparent = np.asarray(history.acceleration) - vector("gravity", gravity, unit="m/s²")
        in_body = np.array(
            [rotation_matrix(p).T @ a for p, a in zip(history.rotation, apparent, strict=True)]
        )
        instance("wrenches", wrenches, (Mapping, type(None)))
        forces = getattr(history, "wrenches", {}) if wrenches is None else wrenches
        return cls(
            omega=_hermite(time, history.omega, history.alpha),
            alpha=_hermite(time, history.alpha),
            acceleration=_hermite(time, in_body),
            wrenches={
                name: _hermite(time, array(f"the wrench at {name!r}", values, (len(time), 6)))
                for name, values in forces.items()
            },
        )


def check_interfaces(argument: str, names: Iterable[str], valid_names: Iterable[str]) -> None:
    """Raise an error if the name of an interface is unknown."""
    expected = ", ".join(map(repr, valid_names)) or "none"
    for name in names:
        if name not in valid_names:
            text = f"{argument}: unknown interface {name!r}; this body has {expected}"
            raise InputError(text, argument=argument, value=name, expected=expected)


def _hermite(time: Array, values: Array, slopes: Array | None = None) -> Callable[[float], Array]:
    """Return an interpolating function; the slopes are central differences by default."""
    if slopes is None:
        slopes = np.gradient(values, time, axis=0, edge_order=2)
    spline = scipy.interpolate.CubicHermiteSpline(time, values, slopes, extrapolate=False)
    low, high = time[0], time[-1]
    tolerance = 1e-9 * (high - low)

    def interpolate(t: float) -> Array:
        """Return the value at a time within the range, apart from round-off."""
        if not low - tolerance <= t <= high + tolerance:
            raise InputError(f"the motion is known from {low:g} s to {high:g} s, not at {t:g} s")
        return spline(min(max(t, low), high))

    return interpolate


def _space_vector(name: str, value: ArrayLike) -> Array:
    """Return a vector with three components; a vector of a plane body is extended."""
    expected = "three finite numbers in body components"
    numbers = array(name, value, expected=expected)
    if numbers.shape == () and name in ("omega", "alpha"):
        return np.array([0.0, 0.0, float(numbers)])
    if numbers.shape == (2,) and name in ("acceleration", "gravity"):
        return np.array([*numbers, 0.0])
    return np.array(array(name, value, (3,), expected=expected))


def _wrench(name: str, value: ArrayLike) -> Array:
    """Return a force and a moment (6,) as an array; raise an error for other shapes."""
    expected = "six finite numbers, force and moment"
    return np.array(array(f"the wrench at {name!r}", value, (6,), expected=expected))
