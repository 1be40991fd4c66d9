"""Histories of bodies, joints, elements and energies over the saved times of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import cumulative_trapezoid

from dolfinx_mbd.html import HtmlView, short_repr
from dolfinx_mbd.kernels.rotations import rotation_rows
from dolfinx_mbd.results.impacts import Impact, find_impacts
from dolfinx_mbd.results.tables import unit_of

Array = NDArray[np.float64]

# The Python function without numba, which also accepts arrays of quaternions
_rows = getattr(rotation_rows, "py_func", rotation_rows)


def rotation_matrices(quaternions: ArrayLike) -> Array:
    """Return the rotation matrices (nt, 3, 3) of unit quaternions (nt, 4)."""
    components = np.moveaxis(np.asarray(quaternions, dtype=float), -1, 0)
    return np.moveaxis(np.array(_rows(*components)), (0, 1), (-2, -1))


def _empty_array() -> Array:
    return np.zeros((0, 6))


@dataclass(frozen=True, eq=False)
class BodyHistory:
    """Motion of a body's frame and its elastic coordinates over nt saved times.

    Attributes:
        name: Name of the body.
        time: Saved times, (nt,), s.
        position: Position of the body frame's origin in global components, (nt, 3), m.
        rotation: Quaternions (w, x, y, z) from body to global axes, (nt, 4).
        velocity: Velocity of the origin in global components, (nt, 3), m/s.
        omega: Angular velocity of the body frame in body components, (nt, 3), rad/s.
        acceleration: Acceleration of the origin in global components, (nt, 3), m/s².
        alpha: Angular acceleration of the body frame in body components, (nt, 3), rad/s².
        eta: Elastic coordinates, (nt, n), m for modes whose modal mass is 1 kg; n = 0 for a rigid
            body.
        eta_rate: Rates of the elastic coordinates, (nt, n), m/s.
        eta_acceleration: Accelerations of the elastic coordinates, (nt, n), m/s².

    Example:
        >>> bob = run.body("bob")
        >>> print(bob.omega[-1].round(3))
        [ 0.     0.    -4.234]
        >>> print(f"{bob.kinetic_energy[-1]:.3f} J")
        18.017 J
    """

    name: str
    time: Array
    position: Array
    rotation: Array
    velocity: Array
    omega: Array
    acceleration: Array
    alpha: Array
    eta: Array
    eta_rate: Array
    eta_acceleration: Array
    _wrenches: Callable[[], dict[str, Array]] = field(default=dict, repr=False)
    _energies: Callable[[], Array] = field(default=_empty_array, repr=False)
    _momenta: Callable[[], Array] = field(default=_empty_array, repr=False)

    @cached_property
    def _energy(self) -> Array:
        return self._energies()

    @property
    def kinetic_energy(self) -> Array:
        """Kinetic energy, (nt,), J."""
        return self._energy[:, 0]

    @property
    def elastic_energy(self) -> Array:
        """Elastic energy of the deformation, (nt,), J."""
        return self._energy[:, 1]

    @property
    def gravity_energy(self) -> Array:
        """Gravitational energy, (nt,), J."""
        return self._energy[:, 2]

    @cached_property
    def _momentum(self) -> Array:
        return self._momenta()

    @property
    def momentum(self) -> Array:
        """Linear momentum in global components, (nt, 3), kg m/s."""
        return self._momentum[:, :3]

    @property
    def angular_momentum(self) -> Array:
        """Angular momentum about the global origin in global components, (nt, 3), kg m²/s."""
        return self._momentum[:, 3:]

    __repr__ = short_repr

    @cached_property
    def wrenches(self) -> dict[str, Array]:
        """Forces and moments on the body at each interface, by name, (nt, 6), N and N m.

        Joints, drivers and loads exert these forces and moments at the interfaces and at the named
        points on which they act (frames of a rigid body). The components are in the body frame;
        moments are about the current point of the interface. Distributed loads and the forces of
        dropped redundant constraints are not included; with ``redundant="keep"`` the forces have
        minimum norm.
        """
        return self._wrenches()


@dataclass(frozen=True, eq=False)
class JointHistory:
    """Forces and motion of a joint or a driver over nt saved times.

    `Solution.element` returns the forces on both bodies, also in other axes.

    Attributes:
        name: Name of the joint or driver.
        time: Saved times, (nt,), s.
        force: Force on the second body in the axes of the first frame, (nt, 3), N. The force of a
            distance joint acts along the line from the first point to the second; it is reported as
            force x and is negative in tension.
        moment: Moment on the second body about the point of its frame in the axes of the first
            frame, (nt, 3), N m. The moment of a universal joint is normal to both pins and is
            reported as moment z.
        rotation: Rotation about the axis, including full turns, (nt,), rad.

    Example:
        >>> history = run.joint("pin")
        >>> print(f"{history.rotation[-1]:.4f} rad, {history.force[-1, 1]:.3f} N")
        -1.1637 rad, 49.485 N
        >>> print(f"{history.rotation_rate[-1]:.3f} rad/s")
        -4.234 rad/s
    """

    name: str
    time: Array
    force: Array
    moment: Array
    rotation: Array
    _motion: Callable[[], Mapping[str, Array]] = field(default=dict, repr=False)

    __repr__ = short_repr

    @property
    def rotation_rate(self) -> Array:
        """Rate of the rotation, (nt,), rad/s; NaN if x of the second frame is along the axis."""
        return self._motion()["rotation_rate"]

    @property
    def displacement(self) -> Array:
        """Position of the second point relative to the first in the first frame, (nt, 3), m."""
        return self._motion()["displacement"]

    @property
    def displacement_rate(self) -> Array:
        """Rate of the displacement, (nt, 3), m/s."""
        return self._motion()["displacement_rate"]

    @property
    def power(self) -> Array:
        """Power that the joint or the driver supplies to both bodies, (nt,), W.

        The power of a joint is zero within the accuracy of the time steps.
        """
        return self._motion()["power"]

    @property
    def work(self) -> Array:
        """Work on both bodies since the first saved time, (nt,), J, by the trapezoidal rule."""
        return _integral(self.power, self.time)

    @property
    def violation(self) -> Array:
        """Largest violation of the constraints of the joint or driver, (nt,), m or rad.

        Dropped redundant constraints are included.
        """
        return self._motion()["violation"]


def _integral(rate: Array, time: Array) -> Array:
    """Return the integral over time from the first saved time, (nt,)."""
    return np.asarray(cumulative_trapezoid(rate, time, initial=0.0), dtype=float)


def _empty_field() -> Array:
    """Return the value of a field that does not apply to an element."""
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class ElementHistory(HtmlView):
    """Forces, motion, power and energy of a load, spring, joint or driver over nt saved times.

    Fields that do not apply to an element are empty. The components of forces and moments refer to
    the `axes` of `Solution.element`, by default the global axes. Moments are about the point of the
    frame on which they act, or about the origin of the body frame for a distributed load.

    Attributes:
        name: Name of the element.
        time: Saved times, (nt,), s.
        force: Force on the body of the second frame, or of the only frame, (nt, 3), N.
        moment: Moment on this body, (nt, 3), N m.
        power: Power that the element supplies to the bodies, (nt,), W. That of an oil film includes
            the power that it supplies to the surface of a journal with a `journal_speed`.
        energy: Energy that the element stores, (nt,), J; zero for elements other than springs and
            bushings.
        first_force: Force on the body of the first frame, (nt, 3), N.
        first_moment: Moment on this body, (nt, 3), N m.
        length: Distance between the points of a `SpringDamper`, (nt,), m.
        length_rate: Rate of the length, (nt,), m/s.
        tension: Force of a `SpringDamper` that pulls its ends together, (nt,), N.
        displacement: Displacement along the axis of the element's joint, (nt,), m. A joint has the
            displacement in the axes of its first frame, (nt, 3), and a bushing the displacement
            from its neutral pose, (nt, 3).
        displacement_rate: Rate of the displacement, m/s.
        rotation: Rotation about the axis of the joint including full turns, (nt,), rad. A bushing
            has the rotation vector from its neutral pose, (nt, 3).
        rotation_rate: Rate of the rotation, rad/s.
        amplitude: Amplitude of a distributed load, (nt,).
        gap: Gap of each point of a contact, (nt, P), m; negative during a contact.
        gap_rate: Rates of the gaps, (nt, P), m/s.
        normal_force: Normal force at each point of a contact, (nt, P), N.
        film_thickness: Smallest film thickness of a bearing with an oil film, (nt,), m. The orbit
            of its journal is `displacement` in the axes of the bore, (nt, 3), and the dissipated
            power is −`power`.
        peak_pressure: Largest pressure of the oil film, (nt,), Pa.
        side_flow: Flow of oil out of both ends of the bearing, (nt,), m³/s.
        states: States of a load that has states, (nt, m).

    Example:
        >>> strut = mbd.SpringDamper("strut", ground.frame("pin"), ("bob", "tip"), 400.0, 5.0)
        >>> tip = {"pin": mbd.Frame(), "tip": mbd.Frame((1, 1, 0))}
        >>> bob = mbd.RigidBody("bob", 2.0, [0.01] * 3, (1, 0, 0), frames=tip)
        >>> system = mbd.System([ground, bob], [pin], loads=[strut], gravity=(0, -9.81, 0))
        >>> history = mbd.simulate(system, t_end=0.1, dt=1e-3).element("strut")
        >>> history.force.shape, history.tension.shape, history.length.shape
        ((101, 3), (101,), (101,))
        >>> bool(np.allclose(history.force, -history.first_force))
        True
    """

    name: str
    time: Array
    force: Array
    moment: Array
    power: Array
    energy: Array
    first_force: Array = field(default_factory=_empty_field)
    first_moment: Array = field(default_factory=_empty_field)
    length: Array = field(default_factory=_empty_field)
    length_rate: Array = field(default_factory=_empty_field)
    tension: Array = field(default_factory=_empty_field)
    displacement: Array = field(default_factory=_empty_field)
    displacement_rate: Array = field(default_factory=_empty_field)
    rotation: Array = field(default_factory=_empty_field)
    rotation_rate: Array = field(default_factory=_empty_field)
    amplitude: Array = field(default_factory=_empty_field)
    gap: Array = field(default_factory=_empty_field)
    gap_rate: Array = field(default_factory=_empty_field)
    normal_force: Array = field(default_factory=_empty_field)
    film_thickness: Array = field(default_factory=_empty_field)
    peak_pressure: Array = field(default_factory=_empty_field)
    side_flow: Array = field(default_factory=_empty_field)
    states: Array = field(default_factory=_empty_field)

    def _html_rows(self) -> list[tuple[str, str]]:
        rows = [
            ("element", self.name),
            ("times", f"{self.time[0]:g} to {self.time[-1]:g} s, {len(self.time)} saved"),
        ]
        for item in fields(self)[2:]:
            values = getattr(self, item.name)
            if values.size and values.ndim == 2:
                most = np.linalg.norm(values, axis=1).max()
                text = f"at most {most:.5g} {unit_of(item.name, values)} (magnitude)"
                rows.append((item.name, text))
            elif values.size:
                text = f"{values.min():.5g} to {values.max():.5g} {unit_of(item.name, values)}"
                rows.append((item.name, text))
        return rows

    @property
    def work(self) -> Array:
        """Work on the bodies since the first saved time, (nt,), J, by the trapezoidal rule."""
        return _integral(self.power, self.time)

    @property
    def dissipated(self) -> Array:
        """Energy that a contact has dissipated since the first saved time, (nt,), J.

        It is empty for other elements. It is computed from the saved times; save every step for an
        exact value.
        """
        if not self.gap.size:
            return _empty_field()
        return self.energy[0] - self.energy - self.work

    @property
    def impacts(self) -> tuple[Impact, ...]:
        """Impacts of a contact, in the order of time; empty for other elements."""
        if not self.gap.size:
            return ()
        histories = self.gap, self.gap_rate, self.normal_force, self.dissipated
        return find_impacts(self.time, *histories)

    __repr__ = short_repr


@dataclass(frozen=True, eq=False)
class Energies:
    """Energies of all bodies, springs and bushings over nt saved times.

    Attributes:
        time: Saved times, (nt,), s.
        kinetic: Kinetic energy, (nt,), J.
        elastic: Elastic energy, (nt,), J.
        gravity: Gravitational energy, (nt,), J.

    Example:
        >>> total = run.energies().total
        >>> bool(np.ptp(total) < 1e-4)
        True
    """

    time: Array
    kinetic: Array
    elastic: Array
    gravity: Array

    __repr__ = short_repr

    @property
    def total(self) -> Array:
        """Sum of the energies, (nt,), J."""
        return self.kinetic + self.elastic + self.gravity
