"""Base class of journal bearings with an oil film between two frames."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import instance, number, vector
from dolfinx_mbd.errors import InputError, UnitsWarning, warn
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.films.asperity_loads import asperity_loads
from dolfinx_mbd.kernels.films.fields import AXIAL, E_X, E_Y, SPIN, T_X, T_Y
from dolfinx_mbd.kernels.films.frames import film_motion, film_tangents, film_wrenches
from dolfinx_mbd.mechanism.bearings.asperities import Asperities
from dolfinx_mbd.mechanism.force_elements import FilmElement, FramePair
from dolfinx_mbd.mechanism.joints import FrameRef

__all__ = ["CONTACT_RULES", "FARTHEST", "FilmBearing", "gauss_points"]


def gauss_points(count: int, low: float = -1.0) -> Array:
    """Return points and weights of Gauss quadrature from `low` to 1, shape (2, count)."""
    points, weights = np.polynomial.legendre.leggauss(count)
    half = 0.5 * (1.0 - low)
    return np.array([low + half * (points + 1.0), half * weights])


#: Largest overlap of the surfaces for which loads are computed, relative to the clearance
FARTHEST = 1e3

#: Points and weights over the angles and along the axis where asperities touch
CONTACT_RULES = gauss_points(24), gauss_points(8)

# Sizes outside these limits suggest other units than SI
_MAX_RADIUS = 5.0  # m; the largest guide bearings of hydraulic turbines have about 2 m
_LENGTHS = (0.02, 100.0)  # of a bearing relative to its radius
_CLEARANCES = (1e-5, 0.05)  # relative to the radius; 5e-4 to 5e-3 are usual
# Pa s; air has 1.8e-5, light liquids have 2e-4, and oil of ISO VG 1500, the thickest class, has 1.4
# at 40 °C
_VISCOSITIES = (1e-5, 3.0)


@dataclass(frozen=True, eq=False)
class FilmBearing(FilmElement):
    """A journal bearing with an oil film; `ShortBearing` and `FiniteBearing` compute the film.

    Attributes:
        name: Name in the system.
        first: Frame of the bore. Its origin is the centre and its z axis the axis of the bearing.
        second: Frame of the journal, with its z axis along the journal.
        radius: Radius, m.
        length: Length along the axis, m.
        clearance: Radial clearance, m.
        asperities: Contact of the surfaces where the film is thin.
        journal_speed: Rotation of the journal's surface relative to its frame, about the z axis of
            this frame, rad/s, for a rotor that is modelled without its rotation.

    Warns:
        UnitsWarning: A size or the viscosity suggests other units than SI.

    Example:
        >>> size = {"radius": 0.02, "length": 0.01, "clearance": 2e-5}  # m
        >>> isinstance(mbd.bearings.ShortBearing("f", *ends, **size, viscosity=0.01), FilmBearing)
        True
    """

    name: str
    first: FrameRef
    second: FrameRef
    radius: float
    length: float
    clearance: float
    asperities: Asperities = field(default=Asperities(), kw_only=True)
    journal_speed: float = field(default=0.0, kw_only=True)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        self._check_ends()
        label = f"bearing {self.name!r}"
        for argument in ("radius", "length", "clearance"):
            number(f"{label}: {argument}", getattr(self, argument), positive=True, unit="m")
        if self.clearance >= 0.1 * self.radius:
            raise InputError(
                f"{label}: clearance must be the radial clearance, far below the radius of "
                f"{self.radius:g} m; got {self.clearance:g} m. Give both in m",
                argument="clearance",
                value=self.clearance,
            )
        number(f"{label}: journal_speed", self.journal_speed, unit="rad/s")
        instance(f"{label}: asperities", self.asperities, Asperities)
        if 4.0 * self.asperities.roughness >= self.clearance:
            raise InputError(
                f"{label}: the clearance of {self.clearance:g} m must exceed four times the "
                f"roughness of {self.asperities.roughness:g} m (asperities=...)",
                argument="clearance",
                value=self.clearance,
            )

    def _check_units(self, viscosity: float) -> None:
        """Warn about sizes (m) and a viscosity (Pa s) that suggest other units than SI."""
        r, lengths = self.radius, "Give all lengths in m"
        oil = "Give the dynamic viscosity in Pa s (1 cP = 1 mPa s = 1e-3 Pa s)"
        for what, value, unit, (low, high), cure in (
            ("radius", r, " m", (0.0, _MAX_RADIUS), lengths),
            ("length", self.length / r, " times the radius", _LENGTHS, lengths),
            ("clearance", self.clearance / r, " times the radius", _CLEARANCES, lengths),
            ("viscosity", viscosity, " Pa s", _VISCOSITIES, oil),
        ):
            if not low <= value <= high:
                text = f"bearing {self.name!r}: the {what} is {value:.3g}{unit}; "
                text += f"expected {low:g} to {high:g}{unit}. {cure}"
                limit = low if value < low else high
                warn(UnitsWarning(text, quantity=what, value=value, limit=limit))

    def _constants(self, viscosity: float) -> Array:
        """Return the constants of the film kernels, (8,)."""
        a = self.asperities
        asperities = [a.roughness, a.modulus, a.friction, a.sliding_speed]
        return np.array([self.radius, self.length, self.clearance, viscosity, *asperities])

    @abstractmethod
    def film_loads(self, motion: Array, derivatives: bool) -> tuple[Array, Array, Array]:
        """Return loads, derivatives and state of the film for a motion of the journal.

        Args:
            motion: Motion (10,) as described in `kernels.films.frames`.
            derivatives: Whether the derivatives are computed.

        Returns:
            Film loads (5,); their derivatives with respect to the first nine entries of the motion
            (5, 9), zero if not requested; smallest gap (m), peak pressure (Pa), side flow (m³/s)
            and friction power (W).
        """

    def _is_usable(self, motion: Array) -> bool:
        """Return whether loads can be computed; Newton iterates may be far outside the bore."""
        finite = math.isfinite(motion.sum())
        return finite and self._least_gap(motion) > -FARTHEST * self.clearance

    def motion_vector(
        self,
        eccentricity: ArrayLike,
        rate: ArrayLike = (0.0, 0.0),
        *,
        slope: ArrayLike = (0.0, 0.0),
        slope_rate: ArrayLike = (0.0, 0.0),
        speed: float = 0.0,
    ) -> Array:
        """Return the motion (10,) of the journal from its parts, in the axes of the bore.

        It is an argument of `film_loads` and of `FiniteBearing.pressure`.

        Args:
            eccentricity: Displacement of the journal's centre, (2,), m.
            rate: Its rate, (2,), m/s.
            slope: x and y components of the unit vector along the journal, (2,).
            slope_rate: Their rates, (2,), 1/s.
            speed: Rotation of the journal relative to the bore, rad/s.

        Raises:
            InputError: An argument is invalid.
        """
        parts = {
            "eccentricity": eccentricity,
            "slope": slope,
            "rate": rate,
            "slope_rate": slope_rate,
        }
        pairs = [vector(name, part, 2) for name, part in parts.items()]
        return np.concatenate([*pairs, [number("speed", speed, unit="rad/s"), 0.0]])

    def placed(self, pair: FramePair) -> FilmBearing:
        """Return the bearing; raise an error if the initial film thickness is not positive."""
        gap = self.smallest_gap(pair)
        if gap <= 0.0:
            raise InputError(
                f"bearing {self.name!r}: the film thickness at the start is {gap:.3g} m and must "
                f"be positive: the axis of the journal is {self.clearance - gap:.3g} m from the "
                f"axis of the bore, and the radial clearance is {self.clearance:.3g} m. Place the "
                "bodies closer, or check the frames"
            )
        return self

    def pair_motion(self, pair: FramePair) -> Array:
        """Return the motion (10,) of the journal; its spin includes `journal_speed`."""
        y: Array = film_motion(*pair)
        if self.journal_speed:
            opposite = pair.Q1[:, 2] @ pair.Q2[:, 2] < 0.0
            y[SPIN] += -self.journal_speed if opposite else self.journal_speed
        return y

    def wrenches(self, pair: FramePair) -> Array:
        """Return forces and moments on both frames."""
        y = self.pair_motion(pair)
        return film_wrenches(pair.Q1, y, self._journal_loads(y))

    def _journal_loads(self, motion: Array) -> Array:
        """Return the loads (5,) of `film_loads` alone."""
        return self.film_loads(motion, derivatives=False)[0]

    def derivatives(self, pair: FramePair) -> tuple[Array, Array]:
        """Return the derivatives of the wrenches."""
        g, dg, _ = self.film_loads(self.pair_motion(pair), derivatives=True)
        D, E = film_tangents(*pair, g, dg)
        return D, E

    def surface_power(self, wrenches: Array, *arguments: Any) -> float:
        """Return the power on the surface of the journal, which rotates at `journal_speed`, W."""
        pair: FramePair = arguments[0]
        moment = wrenches[9:12]  # on the journal
        return self.journal_speed * float(moment @ pair.Q2[:, 2])

    @property
    def least_thickness(self) -> float:
        """Roughness, m; a run warns of films that are thinner."""
        return self.asperities.roughness

    def energy(self, pair: FramePair) -> float:
        """Return the elastic energy of touching asperities, J; the film stores none."""
        loads, slopes = np.zeros(5), np.zeros((5, 9))
        y, values = film_motion(*pair), self._constants(viscosity=0.0)
        derivatives = False
        return float(asperity_loads(y, values, *CONTACT_RULES, derivatives, loads, slopes))

    def motion(self, pair: FramePair, *arguments: Array) -> dict[str, ArrayLike]:
        """Return the displacement in the axes of the bore, its rate, and the state of the film."""
        y = self.pair_motion(pair)
        derivatives = False
        _, _, state = self.film_loads(y, derivatives, *arguments)
        return self._film_quantities(pair, state)

    def smallest_gap(self, pair: FramePair) -> float:
        """Return the smallest gap at the ends of the bearing, m."""
        return self._least_gap(film_motion(*pair))

    def _least_gap(self, motion: Array) -> float:
        """Return the smallest gap of a bore without elastic deformation, m."""
        x, y, tx, ty = (float(motion[k]) for k in (E_X, E_Y, T_X, T_Y))
        ends = [math.hypot(x + z * tx, y + z * ty) for z in (-0.5 * self.length, 0.5 * self.length)]
        return self.clearance - max(ends)

    def _film_quantities(self, pair: FramePair, state: Array) -> dict[str, ArrayLike]:
        """Return the quantities of `motion` for the state (4,) of the film."""
        y = self.pair_motion(pair)
        gap, pressure, flow, friction = state
        # from the point where the journal's axis pierces the plane z = 0 to its frame
        d = y[[E_X, E_Y]] + y[AXIAL] * y[[T_X, T_Y]]
        relative_velocity = pair.u2[:3] - pair.u1[:3] - np.cross(pair.u1[3:], pair.p2 - pair.p1)
        return {
            "displacement": np.append(d, y[AXIAL]),
            "displacement_rate": pair.Q1.T @ relative_velocity,
            "film_thickness": gap,
            "peak_pressure": pressure,
            "side_flow": flow,
            "friction_power": friction,
        }
