"""The film of a bearing whose cavitation conserves the mass of oil."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.kernels.films.band import BANDWIDTH, UNKNOWNS
from dolfinx_mbd.kernels.films.bore_patterns import pattern_gradients
from dolfinx_mbd.kernels.films.fields import (
    ALONG,
    AROUND,
    ENTRAINED,
    LENGTH,
    RADIUS,
    SIDE_FLOW,
    STRESS,
    VISCOSITY,
    WEIGHT,
)
from dolfinx_mbd.kernels.films.mass_conserving import mass_conserving_solve, number_nodes
from dolfinx_mbd.kernels.films.mass_conserving_gradients import mass_conserving_gradients
from dolfinx_mbd.kernels.vector_operations import LANES
from dolfinx_mbd.mechanism.bearings.reynolds_grid import ReynoldsGrid
from dolfinx_mbd.mechanism.bearings.supply import OilSupply

__all__ = ["MassConservingGrid"]


class MassConservingGrid(ReynoldsGrid):
    """Pressure and content of an oil film whose cavitation conserves mass.

    `kernels.films.mass_conserving` describes the model, its film fraction ρ and its arrays, and
    `kernels.films.reynolds` the reduced pressure q.

    Args:
        values: Constants of the bearing in SI units, (20,), as described in `kernels.films.fields`.
        shape: Number of intervals around and along the bore.
        supply: Areas with prescribed pressure.

    Attributes:
        fraction: Part of the gap that is filled with oil at the last solution, (n, m+1).
    """

    def __init__(
        self, values: Array, shape: tuple[int, int], supply: Sequence[OilSupply] = ()
    ) -> None:
        super().__init__(values, shape, supply)
        number_nodes(self._fixed, self._number, self._size)
        self._band = np.zeros((self._size[UNKNOWNS], 2 * self._size[BANDWIDTH] + 1 + LANES))
        self._face, self._squeeze = np.ones_like(self._q), np.zeros_like(self._q)
        self._hold, self._old, self._dt = np.zeros_like(self._q), -np.ones_like(self._q), 0.0
        self._carry = np.ones_like(self._q)
        # Oil that flows around the bore through a supply arrives in a full film: its fraction is
        # not carried over the links and the nodes of supplies
        for i, j, i1, j1 in self._links[0]:
            is_around = j == j1
            if is_around:
                upstream = i if i1 == (i + 1) % shape[0] else i1
                self._carry[upstream, j] = 0.0
        supplied = self._fixed.copy()
        supplied[:, [0, -1]] = supplied[:, [1, -2]]
        self._carry[(supplied + np.roll(supplied, -1, axis=0)) > 0] = 0.0
        self._carry[:, [0, -1]] = self._carry[:, [1, -2]]

    def begin_step(self, content: Array, dt: float) -> None:
        """Begin a step; the next solutions are for its end.

        Args:
            content: Content before the step, (n, m+1), see `content`.
            dt: Length of the step, s; zero for a steady motion, which has no content before.
        """
        self._old[:], self._dt = content, dt

    def content(self) -> Array:
        """Return the thickness of the oil at the last solution, (n, m+1), m; −1 in full gaps."""
        return np.where(self.fraction < 1.0, self.oil_thickness(), -1.0)

    def oil_thickness(self) -> Array:
        """Return the thickness of the oil at the last solution, (n, m+1), m."""
        return np.asarray(self.fraction * self._flow[ENTRAINED])

    def state(self, g: Array) -> Array:
        """Return the state of the film with the film loads g (5,); see `ReynoldsGrid`."""
        state = super().state(g)
        state[SIDE_FLOW] = self._side_flow()
        return state

    def _find_pressure(self, h: Array, rate: Array, speed: float) -> int:
        """Solve for pressure and content; return the number of iterations, or −1."""
        iterations: int = mass_conserving_solve(
            h, rate, speed, self.values, self._fixed, self._free, self._number, self._size,
            self._q, self.fraction, self._face, self._squeeze, self._hold, self._old, self._dt,
            self._carry, self._flow, self._band, *self._links, self.pressures, self._slopes,
        )  # fmt: skip
        return iterations

    def _gradients(self, C: Array) -> tuple[Array, Array, Array]:
        """Return gradients of functionals C of the pressure; see `mass_conserving_gradients`."""
        gradients: tuple[Array, Array, Array] = mass_conserving_gradients(
            self._h, self._rate, self._speed, self.values, self._free, self._number, self._size,
            self._q, self.fraction, self._face, self._old, self._dt, self._carry, self._flow,
            self._band, *self._links, C,
        )  # fmt: skip
        return gradients

    def pattern_stiffness(self, C: Array, around: Array, along: Array, rate_factor: float) -> Array:
        """Return the derivatives of the forces on patterns, (A L, A L); see `ReynoldsGrid`."""
        by_gap, by_rate, _ = self._pattern_gradients(C, around, along, contact=True)
        return (by_gap + rate_factor * by_rate)[: C.shape[2]]

    def _pattern_gradients(
        self, C: Array, around: Array, along: Array, *, contact: bool
    ) -> tuple[Array, Array, Array]:
        """Return the gradients with respect to patterns of the gap, of its rate, and the speed."""
        by_gap, by_rate, by_speed = self._pressure_gradients(C, contact=contact)
        gap, rate = (pattern_gradients(by, around, along) for by in (by_gap, by_rate))
        return gap, rate, by_speed

    def _functionals(self, C: Array) -> Array:
        """Return the derivatives of functionals, and of the drag as the last one.

        C (n, m+1, k) are the weights of the pressures in the functionals. The result, of the shape
        (n, m+1, k+1), contains derivatives by q where the film is full, and by ρ elsewhere.
        """
        by_q = super()._functionals(C) * self._free[:, :, None]
        drag = self.values[VISCOSITY] * self.values[RADIUS] ** 2 * self._speed
        by_fraction = self._nodes[WEIGHT] * drag * self._flow[STRESS]
        by_fraction[:, 1] += by_fraction[:, 0]  # the nodes at the ends have ρ of their neighbours
        by_fraction[:, -2] += by_fraction[:, -1]
        by_fraction[self._free == 1] = 0.0
        if by_q.shape[2] == C.shape[2]:  # without a column for the drag
            return np.dstack([by_q, by_fraction])
        by_q[:, :, -1] += by_fraction
        return np.asarray(by_q)

    def _entrained(self, fraction: Array) -> Array:
        """Return 12 μ₀ times the flow from each node to the next one downstream, (n, m+1).

        `fraction` is the film fraction of the oil that flows.
        """
        c = 6.0 * self.values[VISCOSITY] * abs(self._speed) * self.values[RADIUS]
        c *= self.values[LENGTH] / (len(self.z) - 1)
        return np.asarray(c * fraction * self._face)

    def _filled_at_ends(self) -> float:
        """Return 12 μ₀ times the flow from supplies into the half cells at the ends."""
        filled = self._entrained(self._received() - self.fraction)
        return float(0.5 * filled[:, [0, -1]].sum())

    def _received(self) -> Array:
        """Return ρ of the oil that leaves each node when it reaches the next node, (n, m+1)."""
        carry = self._carry if self._speed >= 0.0 else np.roll(self._carry, 1, axis=0)
        return np.asarray(1.0 - carry * (1.0 - self.fraction))

    def _stored(self) -> Array:
        """Return 12 μ₀ times the rate of the content of each cell, (n, m+1)."""
        return np.asarray(self._squeeze - self._hold * (1.0 - self.fraction) * self._face)

    def filled_part(self) -> float:
        """Return the volume of oil over that of the gap at the last solution."""
        gap = self._flow[ENTRAINED].copy()
        gap[:, [0, -1]] *= 0.5
        return float((self.fraction * gap).sum() / gap.sum())

    def content_rate(self) -> float:
        """Return the rate of the volume of oil in the gap, m³/s."""
        stored = self._stored()
        stored[:, [0, -1]] *= 0.5
        return float(stored.sum() / (12.0 * self.values[VISCOSITY]))

    def supply_flow(self) -> float:
        """Return the flow of oil from the areas with prescribed pressure into the film, m³/s."""
        q, flow = self._q, self._flow
        supplied, downstream = self._fixed[:, 1:-1] == 1, 1 if self._speed >= 0.0 else -1
        around = flow[AROUND] * (q - np.roll(q, -1, axis=0))
        along = flow[ALONG, :, :-1] * (q[:, :-1] - q[:, 1:])
        received = self._received()
        net = around - np.roll(around, 1, axis=0) + self._stored()
        leaving, arriving = self._entrained(self.fraction), self._entrained(received)
        net += leaving - np.roll(arriving, downstream, axis=0)
        total = (net[:, 1:-1] + along[:, 1:] - along[:, :-1])[supplied].sum()
        # Oil that a supply adds between nodes
        total += (arriving - leaving)[:, 1:-1].sum() + self._filled_at_ends()
        return float((total + self._link_flow(to_ends=False)) / (12.0 * self.values[VISCOSITY]))

    def _side_flow(self) -> float:
        """Return the flow of oil out of both ends, m³/s."""
        flow, q = self._flow, self._q
        total = (flow[ALONG, :, 0] * (q[:, 1] - q[:, 0])).sum()
        total += (flow[ALONG, :, -2] * (q[:, -2] - q[:, -1])).sum()
        total -= 0.5 * self._stored()[:, [0, -1]].sum()
        total += self._filled_at_ends()
        return float((total + self._link_flow(to_ends=True)) / (12.0 * self.values[VISCOSITY]))
