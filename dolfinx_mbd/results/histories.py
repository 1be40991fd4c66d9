"""Histories of bodies, joints, elements and energies over the saved times of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import number
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import HtmlView, short_repr
from dolfinx_mbd.kernels.rotations import rotation_rows
from dolfinx_mbd.results.impacts import Impact, find_impacts
from dolfinx_mbd.results.series import PartData

Array = NDArray[np.float64]

# The Python function without numba, which also accepts arrays of quaternions
_rows = getattr(rotation_rows, "py_func", rotation_rows)


def rotation_matrices(quaternions: ArrayLike) -> Array:
    """Return the rotation matrices (nt, 3, 3) of unit quaternions (nt, 4)."""
    components = np.asarray(quaternions, dtype=float)
    if components.shape == (1, 4):  # operations on single numbers are faster
        return np.array([_rows(*components[0].tolist())])
    return np.moveaxis(np.array(_rows(*np.moveaxis(components, -1, 0))), (0, 1), (-2, -1))


class History(HtmlView):
    """Quantities of one part of a mechanism over nt saved times, as attributes.

    Args:
        data: The quantities by name. Attributes that the class annotates and that do not apply to
            the part are empty.
    """

    _kind: ClassVar[str]
    name: str
    time: Array

    def __init__(self, data: PartData) -> None:
        self.name, self.time, self._data = data.name, data.time, data

    def __getattr__(self, key: str) -> Array:
        known = () if key.startswith("_") else (self._data.quantities, type(self).__annotations__)
        if any(key in names for names in known):
            return self._data.attribute(key)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {key!r}")

    def __repr__(self) -> str:
        return f"<{self.name}: {', '.join(self._data.keys())} at {len(self.time)} times>"

    def mean(self, key: str, span: float | None = None) -> float | Array:
        """Return the mean of a quantity over time, for example over the last cycle.

        Args:
            key: Name of the quantity or of a component, such as ``friction_power`` or ``force.x``.
            span: Duration before the last saved time, s; by default the whole history. Values
                between the saved times are interpolated linearly.

        Returns:
            The mean in the unit of the quantity: a number, or an array for a vector.

        Raises:
            InputError: The quantity is unknown, the history has only one time, or `span` is not
                positive or longer than the history.

        Example:
            >>> print(f"{run.body('bob').mean('kinetic_energy', span=0.1):.2f} J")
            15.97 J
        """
        values, time = self._data.series(key).values, self.time
        length = float(time[-1] - time[0])
        if not length > 0.0:
            raise InputError("a mean over time needs at least two saved times", argument="key")
        high = length * (1.0 + 1e-9)
        span = number("span", length if span is None else span, positive=True, high=high, unit="s")
        # An interval of the size of round-off would have no mean
        span = max(span, 1e-9 * length, 4 * float(np.spacing(abs(time[-1]))))
        start = max(float(time[-1]) - span, float(time[0]))
        k = int(np.searchsorted(time, start, side="right"))  # first saved time after the start
        fraction = (start - time[k - 1]) / (time[k] - time[k - 1])
        first = values[k - 1] + fraction * (values[k] - values[k - 1])
        inside, times = np.concatenate([first[None], values[k:]]), np.append(start, time[k:])
        mean = scipy.integrate.trapezoid(inside, times, axis=0) / (times[-1] - start)
        return float(mean) if np.ndim(mean) == 0 else np.asarray(mean)

    def _html_rows(self) -> list[tuple[str, str]]:
        """Return the titles and the texts of the table that notebooks show."""
        rows = [
            (self._kind, self.name),
            ("times", f"{self.time[0]:g} to {self.time[-1]:g} s, {len(self.time)} saved"),
        ]
        for series in self._data:
            values, unit = series.values, series.unit
            if values.ndim == 2:
                largest = np.linalg.norm(values, axis=1).max()
                rows.append((series.key, f"at most {largest:.5g} {unit} (magnitude)"))
            elif values.ndim == 1:
                text = f"{values.min():.5g} to {values.max():.5g} {unit}"
                rows.append((series.key, text))
        return rows


class BodyHistory(History):
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
        momentum: Linear momentum in global components, (nt, 3), kg m/s.
        angular_momentum: Angular momentum about the global origin in global components, (nt, 3),
            kg m²/s.
        kinetic_energy: Kinetic energy, (nt,), J.
        elastic_energy: Elastic energy of the deformation, (nt,), J.
        gravity_energy: Gravitational energy, (nt,), J.

    Example:
        >>> bob = run.body("bob")
        >>> print(bob.omega[-1].round(3))
        [ 0.     0.    -4.234]
        >>> print(f"{bob.kinetic_energy[-1]:.3f} J")
        18.017 J
    """

    _kind = "body"
    position: Array
    rotation: Array
    velocity: Array
    omega: Array
    acceleration: Array
    alpha: Array
    eta: Array
    eta_rate: Array
    eta_acceleration: Array
    momentum: Array
    angular_momentum: Array
    kinetic_energy: Array
    elastic_energy: Array
    gravity_energy: Array

    @property
    def wrenches(self) -> dict[str, Array]:
        """Forces and moments on the body at each interface, by name, (nt, 6), N and N m.

        Joints, drivers and loads exert these forces and moments at the interfaces and at the named
        points on which they act (frames of a rigid body). The components are in the body frame;
        moments are about the current point of the interface. Distributed loads and the forces of
        dropped redundant constraints are not included; with ``redundant="keep"`` the forces have
        minimum norm.
        """
        data, ends = self._data, (".force", ".moment")
        names = [key.removesuffix(ends[0]) for key in data.keys() if key.endswith(ends[0])]
        wrenches = {
            name: np.hstack([data.attribute(name + end) for end in ends])
            for name in names
            if all(name + end in data for end in ends)
        }
        if not wrenches:
            data.attribute("wrenches")  # raises an error if the run did not save them
        return wrenches


class JointHistory(History):
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
        rotation_rate: Rate of the rotation, (nt,), rad/s; NaN if x of the second frame is along the
            axis.
        displacement: Position of the second point relative to the first in the first frame,
            (nt, 3), m.
        displacement_rate: Rate of the displacement, (nt, 3), m/s.
        violation: Largest violation of the constraints of the joint or driver, (nt,), m or rad.
            Dropped redundant constraints are included.
        power: Power that the joint or the driver supplies to both bodies, (nt,), W. The power of a
            joint is zero within the accuracy of the time steps.
        work: Work on both bodies since the first saved time, (nt,), J, by the trapezoidal rule.

    Example:
        >>> history = run.joint("pin")
        >>> print(f"{history.rotation[-1]:.4f} rad, {history.force[-1, 1]:.3f} N")
        -1.1637 rad, 49.485 N
        >>> print(f"{history.rotation_rate[-1]:.3f} rad/s")
        -4.234 rad/s
    """

    _kind = "joint"
    force: Array
    moment: Array
    rotation: Array
    rotation_rate: Array
    displacement: Array
    displacement_rate: Array
    violation: Array
    power: Array
    work: Array


class ElementHistory(History):
    """Forces, motion, power and energy of a load, spring, joint or driver over nt saved times.

    Attributes that do not apply to an element are empty. An element may have further quantities,
    which its class declares. The components of forces and moments refer to
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
        gap: Gap of each point of a contact, (nt, points), m; negative during a contact.
        gap_rate: Rates of the gaps, (nt, points), m/s.
        normal_force: Normal force at each point of a contact, (nt, points), N.
        film_thickness: Smallest film thickness of a bearing with an oil film, (nt,), m. The orbit
            of its journal is `displacement` in the axes of the bore, (nt, 3).
        peak_pressure: Largest pressure of the oil film, (nt,), Pa.
        side_flow: Flow of oil out of both ends of the bearing, (nt,), m³/s.
        supply_flow: Flow of oil from grooves and holes into the film, (nt,), m³/s; `FiniteBearing`
            and `ElasticBearing` have it.
        friction_power: Power that the oil film and touching asperities turn into heat, (nt,), W. It
            is −`power`, plus the pressure times the flow of the supply, minus the rate of `energy`.
        states: States of a load that has states, (nt, m).
        work: Work on the bodies since the first saved time, (nt,), J, by the trapezoidal rule.
        dissipated: Energy that a contact has dissipated since the first saved time, (nt,), J. It is
            computed from the saved times; save every step for an exact value.

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

    _kind = "element"
    force: Array
    moment: Array
    power: Array
    work: Array
    energy: Array
    first_force: Array
    first_moment: Array
    length: Array
    length_rate: Array
    tension: Array
    displacement: Array
    displacement_rate: Array
    rotation: Array
    rotation_rate: Array
    amplitude: Array
    gap: Array
    gap_rate: Array
    normal_force: Array
    dissipated: Array
    film_thickness: Array
    peak_pressure: Array
    side_flow: Array
    supply_flow: Array
    friction_power: Array
    states: Array

    @property
    def impacts(self) -> tuple[Impact, ...]:
        """Impacts of a contact, in the order of time; empty for other elements."""
        if not self.gap.size:
            return ()
        histories = self.gap, self.gap_rate, self.normal_force, self.dissipated
        return find_impacts(self.time, *histories)


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
