"""Journal bearing of finite length: Reynolds' equation on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import array, choice, instance, integer, number
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.films.asperity_loads import asperity_loads
from dolfinx_mbd.kernels.films.fields import DRAG, FRICTION_POWER, SPIN
from dolfinx_mbd.mechanism.bearings.film_bearing import CONTACT_RULES, FilmBearing
from dolfinx_mbd.mechanism.bearings.mass_conserving_grid import MassConservingGrid
from dolfinx_mbd.mechanism.bearings.reynolds_grid import ReynoldsGrid
from dolfinx_mbd.mechanism.bearings.supply import Oil, OilSupply
from dolfinx_mbd.mechanism.force_elements import FilmElement, FramePair

__all__ = ["Cavitation", "FiniteBearing"]

Cavitation = Literal["reynolds", "mass_conserving"]
"""Condition where the film ruptures."""

_GRIDS: dict[str, type[ReynoldsGrid]] = {
    "reynolds": ReynoldsGrid,
    "mass_conserving": MassConservingGrid,
}
"""Classes of the grids by cavitation."""


@dataclass(frozen=True, eq=False)
class FiniteBearing(FilmBearing):
    """A journal bearing of any length, with cavitation, grooves and holes.

    Reynolds' equation is solved on a grid. The film ruptures where its pressure would be negative
    (Reynolds' boundary condition). With ``cavitation="mass_conserving"`` the oil of the
    ruptured film is conserved, so that the film forms again where enough oil arrives. Rotation of
    both bodies, squeeze film and misalignment are included.

    Attributes:
        name: Name in the system.
        first: Frame of the bore. Its origin is the centre and its z axis the axis of the bearing.
        second: Frame of the journal, with its z axis along the journal.
        radius: Radius, m.
        length: Length along the axis, m.
        clearance: Radial clearance, m.
        oil: The oil, or its viscosity, Pa s.
        shape: Numbers (n, m) of intervals around and along the bore; at least 12 and 4. The errors
            are proportional to the squares of the lengths of the intervals.
        supply: Grooves and holes with their pressures.
        cavitation: `reynolds`, or `mass_conserving` (Jakobsson, Floberg and Olsson), which needs a
            supply. In a run, the content of the ruptured film is that of a steady motion with the
            present rate of the gap.
        asperities: Contact of the surfaces where the film is thin.
        journal_speed: Rotation of the journal's surface relative to its frame, about the z axis of
            this frame, rad/s, for a rotor that is modelled without its rotation.

    Raises:
        InputError: An argument is invalid, for example a viscosity that is not positive, or
            supplies with different pressures overlap. `System` raises it if the initial film
            thickness is not positive.
        SolverError: The iteration for the cavitated area did not converge.

    Example:
        >>> film = mbd.bearings.FiniteBearing(
        ...     "film", *ends, 0.02, 0.02, 2e-5, 0.01
        ... )
        >>> loads, _, _ = film.film_loads(film.motion_vector((1e-5, 0), speed=300.0), False)
        >>> print(loads[:2].round(1))  # N, on the journal
        [-425.3  615.1]
    """

    __repr__ = short_repr

    oil: Oil | float = 0.0
    shape: tuple[int, int] = (64, 12)
    supply: Sequence[OilSupply] = ()
    cavitation: Cavitation = "reynolds"
    grid: ReynoldsGrid = field(init=False, repr=False)
    _motion: Array = field(init=False, repr=False)  # that of the last solution, (10,)
    _original: ReynoldsGrid = field(init=False, repr=False)  # grid of the film that this one copies

    def __post_init__(self) -> None:
        super().__post_init__()
        label = f"bearing {self.name!r}"
        oil = self.oil
        if not isinstance(oil, Oil):
            oil = Oil(number(f"{label}: viscosity", oil, positive=True, unit="Pa s"))
        self._check_units(oil.viscosity)
        shape = instance(f"{label}: shape", self.shape, (tuple, list))
        if len(shape) != 2:
            raise InputError(f"{label}: shape must have two entries", argument="shape")
        sizes = [
            integer(f"{label}: shape[{k}]", count, low=low, high=2000)
            for k, (count, low) in enumerate(zip(shape, (12, 4), strict=True))
        ]
        areas = tuple(instance(f"{label}: supply", self.supply, (tuple, list)))
        for area in areas:
            instance(f"{label}: every entry of supply", area, OilSupply)
            if abs(area.position) > 0.5 * self.length:
                raise InputError(
                    f"{label}: position of a supply must be inside the bearing, from "
                    f"{-0.5 * self.length:g} to {0.5 * self.length:g} m; got {area.position:g} m",
                    argument="supply",
                    value=area.position,
                )
            if area.round and (area.length or 0.0) > (1.0 + 1e-9) * self.length:
                raise InputError(
                    f"{label}: a round supply of {area.length:g} m along the axis is wider than "
                    f"the bearing of {self.length:g} m. Give OilSupply a length of at most this, "
                    "or round=False for a groove that is open at the ends of the bearing",
                    argument="supply",
                    value=area.length,
                    expected=f"at most {self.length:g} m",
                )
        choice(f"{label}: cavitation", self.cavitation, _GRIDS)
        if self.cavitation == "mass_conserving" and not areas:
            raise InputError(
                f"{label}: a film that conserves the mass of oil runs dry without a supply of oil; "
                "specify supply=[OilSupply(...)]",
                argument="supply",
                value=self.supply,
            )
        rough = self.asperities.flow_constants()
        values = np.r_[self._constants(oil.viscosity), oil.pressure_coefficient, rough]
        grid = _GRIDS[self.cavitation](values, (sizes[0], sizes[1]), areas)
        assign(self, oil=oil, supply=areas, grid=grid, _original=grid, _motion=np.full(10, np.nan))

    @property
    def has_content(self) -> bool:
        """Whether the oil in the gap before a step affects the film."""
        return isinstance(self.grid, MassConservingGrid)

    def for_run(self) -> FiniteBearing:
        """Return a copy of a film with a content, or in a group; see `FilmElement`."""
        if not (self.has_content or self.group_key):
            return self
        copy = replace(self)
        assign(copy, _original=self.grid)
        return copy

    def follow(self, film: FilmElement) -> bool:
        """Renew the copy if the film has a new grid; see `FilmElement`."""
        original = cast("FiniteBearing", film)
        if original.grid is self._original:
            return False
        vars(self).update(vars(original.for_run()))
        return True

    def begin_step(self, content: Array, dt: float) -> None:
        """Begin a step: the next evaluations are for its end.

        Args:
            content: Content at the start of the step, see `content`.
            dt: Length of the step, s.
        """
        assert isinstance(self.grid, MassConservingGrid)
        self.grid.begin_step(content.reshape(self.grid.areas.shape), dt)
        self._forget()

    @property
    def content(self) -> Array:
        """Thickness of the oil at the nodes after the last evaluation, m; −1 in full gaps."""
        assert isinstance(self.grid, MassConservingGrid)
        return self.grid.content().ravel()

    @property
    def oil_thickness(self) -> Array:
        """Oil thickness at the last evaluation divided by the clearance, as a flat array."""
        assert isinstance(self.grid, MassConservingGrid)
        return np.asarray(self.grid.oil_thickness().ravel() / self.clearance)

    def _forget(self) -> None:
        """Delete the stored solution."""
        self._motion[:] = np.nan

    def film_loads(self, motion: Array, derivatives: bool) -> tuple[Array, Array, Array]:
        """Return loads, derivatives and state of the film; see `FilmBearing`.

        `kernels.films.fields` lists the entries: five loads (`F_X` …), nine derivatives with
        respect to the motion without `AXIAL`, and four numbers of the state (`SMALLEST_GAP` …).
        """
        if not self._is_usable(motion):
            return np.full(5, np.nan), np.full((5, 9), np.nan), np.full(4, np.nan)
        g, film = self._loads(motion)
        dg: Array = np.zeros((5, 9))
        if derivatives:
            dg = self.grid.load_derivatives(contact=False)
            self._add_asperity_loads(motion, np.zeros(5), dg)
        state = self.grid.state(film)
        state[FRICTION_POWER] += (g[DRAG] - film[DRAG]) * motion[SPIN]
        return g, dg, state

    def _journal_loads(self, motion: Array) -> Array:
        """Return the film loads (5,) for a motion, or NaN if the journal is too far outside."""
        return self._loads(motion)[0] if self._is_usable(motion) else np.full(5, np.nan)

    def _loads(self, motion: Array) -> tuple[Array, Array]:
        """Return the loads of film and asperities together, and those of the film, (5,) each."""
        self._solve(motion)
        film = np.empty(5)
        self.grid.write_loads(film, contact=False)
        g = film.copy()
        self._add_asperity_loads(motion, g)
        return g, film

    def _add_asperity_loads(self, motion: Array, g: Array, dg: Array | None = None) -> None:
        """Add the loads of asperities to g (5,), and their derivatives to dg (5, 9) if present."""
        derivatives = dg is not None
        slopes = np.zeros((5, 9)) if dg is None else dg
        asperity_loads(motion, self.grid.values, *CONTACT_RULES, derivatives, g, slopes)

    def pressure(self, motion: ArrayLike) -> Array:
        """Return the pressure at the nodes of the grid, (n, m+1), Pa.

        The angles and positions of the nodes are `grid.theta` and `grid.z`.

        Args:
            motion: Motion of the journal, (10,), for example from `motion_vector`.

        Raises:
            InputError: The motion has a wrong shape.
        """
        self._solve(array("motion", motion, (10,)))
        return np.asarray(self.grid.pressures.sum(axis=0))

    def film_fraction(self, motion: ArrayLike) -> Array:
        """Return the part of the gap that is filled with oil at the nodes of the grid, (n, m+1).

        It is one everywhere unless `cavitation` is `mass_conserving`.

        Args:
            motion: Motion of the journal, (10,), for example from `motion_vector`.

        Raises:
            InputError: The motion has a wrong shape.
        """
        self.pressure(motion)
        return self.grid.fraction.copy()

    def motion(self, pair: FramePair, *arguments: Array) -> dict[str, ArrayLike]:
        """Return the displacement in the axes of the bore, its rate, and the state of the film."""
        quantities = super().motion(pair, *arguments) | {"supply_flow": self.grid.supply_flow()}
        if isinstance(self.grid, MassConservingGrid):
            quantities["content_rate"] = self.grid.content_rate()
            quantities["filled_part"] = self.grid.filled_part()
        return quantities

    def _solve(self, motion: Array) -> None:
        """Solve for the pressure, unless the motion has not changed."""
        if not (motion == self._motion).all():
            self._motion[:] = np.nan
            self.grid.update(*self.grid.gap(motion), float(motion[SPIN]))
            self._motion[:] = motion
