"""Reynolds' equation on the surface of a bore, for rigid and for elastic surfaces.

An elastic bore adds its outward radial displacement w(θ, z) to the gap, and ẇ to its rate:

    grid = film.grid                        # film is a `FiniteBearing`
    h, rate = grid.gap(y, w, w_rate)        # y: motion of the journal (10,), w (n, m+1)
    p = grid.solve(h, rate, speed)          # film and asperities, Pa, (n, m+1)
    g, state = grid.loads()                 # loads of a rigid journal (5,), state of the film (4,)
    by_gap, by_rate, by_speed = grid.gradients(C)   # of f_k = Σ C_kij p_ij, for any C (k, n, m+1)
    dg = grid.load_derivatives()            # (5, 9) with respect to y, for constant w and ẇ

With w = Σ W_l η_l, the generalized force of the pressure on the coordinates is Σ W_l p A with the
areas A = `grid.areas`; take C_l = W_l A. Its derivative with respect to η is Σ by_gap W, and with
respect to η̇ it is Σ by_rate W. `load_gradients` returns the derivatives of the film loads g with
respect to h and ḣ at the nodes. dg/dη follows from them in the same way. If the W_l are products
of functions of the angle and of z, `pattern_derivatives` computes these sums. All of these methods
use the factors of the last call of `solve` and the arguments of this call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.kernels.films import bore_patterns, grid_loads, reynolds
from dolfinx_mbd.kernels.films.band import PADDING
from dolfinx_mbd.kernels.films.fields import (
    ALONG,
    AROUND,
    ASPERITIES,
    BARUS,
    CLEARANCE,
    DRAG,
    FILM,
    FRICTION_POWER,
    LENGTH,
    RADIUS,
    SOURCE,
    VISCOSITY,
    WEIGHT,
)
from dolfinx_mbd.kernels.films.reynolds_gradients import (
    reynolds_gradients,
    reynolds_pattern_gradients,
    reynolds_pattern_stiffness,
)
from dolfinx_mbd.mechanism.bearings.supply import OilSupply
from dolfinx_mbd.mechanism.bearings.supply_links import supply_links

__all__ = ["ReynoldsGrid"]


class ReynoldsGrid:
    """Pressure of an oil film on a grid around a bore and along its axis.

    The next solution starts from the active set of the last one. This set has no effect on results.

    Args:
        values: Constants of the bearing in SI units, (20,), as described in `kernels.films.fields`.
        shape: Number of intervals around and along the bore.
        supply: Areas with prescribed pressure.

    Attributes:
        theta: Angles of the nodes, (n,), rad.
        z: Axial positions of the nodes, with both ends, (m+1,), m.
        areas: Area of each node for integrals over the bore, (n, m+1), m².
        pressures: Pressure of film and asperities at the last solution, (2, n, m+1), Pa.
        fraction: Part of the gap that is filled with oil, (n, m+1); one by Reynolds' condition.

    Raises:
        SolverError: The active set did not converge.

    Example:
        >>> size = {"radius": 0.02, "length": 0.02, "clearance": 2e-5}  # m
        >>> grid = mbd.bearings.FiniteBearing("film", *ends, **size, oil=0.01).grid
        >>> h, rate = grid.gap(film.motion_vector((1e-5, 0.0), speed=300.0))
        >>> p = grid.solve(h, rate, 300.0)
        >>> p.shape, bool(p.min() == 0)
        ((64, 13), True)
    """

    def __init__(
        self, values: Array, shape: tuple[int, int], supply: Sequence[OilSupply] = ()
    ) -> None:
        n, m = shape
        self.values = values
        self.theta = 2.0 * math.pi * np.arange(n) / n
        self.z = np.linspace(-0.5 * values[LENGTH], 0.5 * values[LENGTH], m + 1)
        rule = np.ones(m + 1)  # Gregory's rule is exact for the parabola of a short bearing
        rule[:3] += (-0.625, 1 / 6, -1 / 24)
        rule[-3:] += (-1 / 24, 1 / 6, -0.625)
        self.areas: Array = np.tile(
            rule * 2.0 * math.pi * values[RADIUS] / n * values[LENGTH] / m, (n, 1)
        )
        self._nodes = np.array([self.z, self.areas[0]])
        directions = np.column_stack([np.cos(self.theta), np.sin(self.theta)])
        # Patterns of the gap by a motion of the journal, and the loads of a pressure
        self._rigid = directions, np.column_stack([np.ones(m + 1), self.z])
        levers = [self.areas, self.areas * self.z]
        self._forces = np.dstack([-d[:, None] * lever for lever in levers for d in directions.T])
        self._fixed, self._q = np.zeros((n, m + 1), np.int64), np.zeros((n, m + 1))
        self._fixed[:, [0, -1]] = 1
        alpha = values[BARUS]
        levels = [  # reduced pressures q
            -math.expm1(-alpha * area.pressure) / alpha if alpha else area.pressure
            for area in supply
        ]
        inside, links, ends = supply_links(self.theta, self.z, supply, levels)
        self._links = links, ends
        nodes = ~np.isnan(inside)
        self._fixed[nodes], self._q[nodes] = 1, inside[nodes]
        self._free = 1 - self._fixed
        # Arrays of the kernels, as described in `kernels.films.reynolds`
        self._number, self._size = np.zeros_like(self._fixed), np.zeros(2, np.int64)
        self._flow: Array = np.zeros((11, n, m + 1))
        self._band: Array = np.zeros(n * (m - 1) * (2 * m - 1 + PADDING))
        self.pressures, self._slopes = np.zeros((2, n, m + 1)), np.zeros((2, n, m + 1))
        self._still: Array = np.zeros((n, m + 1))  # displacement or rate of a rigid bore
        self.fraction: Array = np.ones((n, m + 1))
        self._h: Array = np.zeros((n, m + 1))  # arguments of the last solution
        self._rate: Array = np.zeros((n, m + 1))
        self._speeds: Array = np.zeros(1)

    @property
    def num_links(self) -> int:
        """Number of links between nodes and edges of supplies."""
        return len(self._links[0])

    @property
    def last_gap(self) -> Array:
        """Gap of the last solution, (n, m+1), m."""
        return self._h.copy()

    @property
    def _speed(self) -> float:
        """Rotation of the journal of the last solution, rad/s."""
        return float(self._speeds[0])

    def gap(
        self, motion: Array, w: Array | None = None, w_rate: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the gap and its rate at the nodes, (n, m+1), m and m/s.

        Args:
            motion: Motion of the journal, (10,), see `kernels.films.frames`.
            w: Outward radial displacement of the bore, (n, m+1), m; by default zero.
            w_rate: Its rate, (n, m+1), m/s; by default zero.
        """
        h, rate = np.empty((2, *self._still.shape))
        w, w_rate = self._still if w is None else w, self._still if w_rate is None else w_rate
        reynolds.film_gap(motion, self.values[CLEARANCE], self.z, w, w_rate, h, rate)
        return h, rate

    def pattern_gap(
        self, motion: Array, around: Array, along: Array, s: Array
    ) -> tuple[Array, Array]:
        """Return the gap and its rate for a displacement of the bore that consists of patterns.

        Args:
            motion: Motion of the journal, (10,).
            around: Factors of the patterns around the bore, (n, A).
            along: Factors of the patterns along the axis, (m+1, L).
            s: Coefficients of the patterns and their rates, (2, A L), m and m/s.
        """
        h, rate = np.empty((2, *self._still.shape))
        bore_patterns.pattern_gap(motion, self.values[CLEARANCE], self.z, around, along, s, h, rate)
        return h, rate

    def put_elastic_gap(
        self, y: Array, s: Array, point: Array, farthest: float, around: Array, along: Array
    ) -> int:
        """Store gap and rate of an elastic bore for `update_at_gap`; see `elastic_gap`.

        `farthest` is relative to the clearance.
        """
        limit = farthest * self.values[CLEARANCE]
        state: int = bore_patterns.elastic_gap(
            y, s, point, limit, self.values, self.z, around, along, self._h, self._rate
        )
        return state

    def pattern_forces(self, around: Array, along: Array) -> Array:
        """Return the forces (A L,) of the last pressures on coefficients of patterns, N."""
        forces: Array = bore_patterns.pattern_forces(self.pressures, self._nodes, around, along)
        return forces

    def solve(self, h: Array, rate: Array, speed: float) -> Array:
        """Return the pressure of film and asperities at the nodes, (n, m+1), Pa.

        Args:
            h: Gap, (n, m+1), m. It may be negative where the surfaces are pressed together.
            rate: Rate of the gap at fixed θ and z, (n, m+1), m/s.
            speed: Rotation of the journal relative to the bore, rad/s.
        """
        self.update(h, rate, speed)
        return np.asarray(self.pressures.sum(axis=0))

    def update(self, h: Array, rate: Array, speed: float) -> None:
        """Solve for the pressure as `solve`; `pressures` contains the result."""
        self._h[:], self._rate[:] = h, rate
        self.update_at_gap(speed)

    def update_at_gap(self, speed: float) -> None:
        """Solve for the pressure as `update`; the grid contains the gap and its rate."""
        self._speeds[0] = speed
        try:
            iterations = self._find_pressure(self._h, self._rate, speed)
        except ZeroDivisionError:  # a singular matrix, because values are out of range
            iterations = -1
        if iterations < 0:
            raise self.failure()

    def failure(self) -> SolverError:
        """Return the error of a film that has no solution; the next one starts with a full film."""
        self._free[:] = 1 - self._fixed
        return SolverError(
            "the cavitated area of an oil film did not converge; check that the film thickness and "
            "its rate are finite"
        )

    def _find_pressure(self, h: Array, rate: Array, speed: float) -> int:
        """Solve for the pressure; return the number of iterations, or −1."""
        iterations: int = reynolds.reynolds_solve(
            h, rate, speed, self.values, self._fixed, self._free, self._number, self._size,
            self._q, self._flow, self._band, *self._links, self.pressures, self._slopes,
        )  # fmt: skip
        return iterations

    def loads(self, *, contact: bool = True) -> tuple[Array, Array]:
        """Return the film loads (5,) and the state (4,) of the film, see `FilmBearing.film_loads`.

        The loads are those on a rigid journal, see `kernels.films.frames`.

        Args:
            contact: Whether the loads contain the pressure of the asperities at the nodes.
        """
        g = np.empty(5)
        self.write_loads(g, contact=contact)
        return g, self.state(g)

    def write_loads(self, g: Array, *, contact: bool) -> None:
        """Write the film loads of `loads` to g (5,)."""
        grid_loads.grid_loads(
            self._speed, self.values, self._nodes, self.pressures, self._slopes, self._flow,
            self.fraction, contact, g,
        )  # fmt: skip

    def write_elastic_loads(
        self, g: Array, s: Array, around: Array, along: Array, slope: Array
    ) -> None:
        """Write film loads and forces on s to g, see `elastic_loads` in `bore_patterns`."""
        bore_patterns.elastic_loads(
            s, slope, self._speed, self.values, self._nodes, self.pressures, self._slopes,
            self._flow, self.fraction, around, along, g,
        )  # fmt: skip

    def write_elastic_wrenches(
        self, out: Array, Q1: Array, y: Array, s: Array, around: Array, along: Array, slope: Array
    ) -> None:
        """Write wrenches and forces on s to out, see `elastic_wrenches` in `bore_patterns`."""
        bore_patterns.elastic_wrenches(
            Q1, y, s, slope, self.values, self._nodes, self.pressures, self._slopes, self._flow,
            self.fraction, around, along, out,
        )  # fmt: skip

    def state(self, g: Array) -> Array:
        """Return the state (4,) of the film with the film loads g (5,), see `loads`."""
        state: Array = grid_loads.film_state(
            self.values, self._h, self._q, self.pressures, self._flow, *self._links
        )
        state[FRICTION_POWER] += g[DRAG] * self._speed
        return state

    def gradients(self, C: Array) -> tuple[Array, Array, Array]:
        """Return ∂f_k/∂h and ∂f_k/∂ḣ at every node, and ∂f_k/∂Ω, of f_k = Σ C_kij p_ij.

        Args:
            C: Weights of the pressures of film and asperities, (k, n, m+1).

        Returns:
            ∂f/∂h (k, n, m+1), ∂f/∂ḣ (k, n, m+1) and ∂f/∂Ω (k,) with the speed Ω.
        """
        k = len(C)
        weights = np.ascontiguousarray(C.transpose(1, 2, 0))
        by_gap, by_rate, by_speed = self._pressure_gradients(weights, contact=True)
        return by_gap.transpose(2, 0, 1)[:k], by_rate.transpose(2, 0, 1)[:k], by_speed[:k]

    def _pressure_gradients(self, C: Array, *, contact: bool) -> tuple[Array, Array, Array]:
        """Return the results of `gradients` for weights C (n, m+1, k), with k as the last axis.

        If the drag torque depends on the pressure, this part of it is one more functional.
        """
        by_gap, by_rate, by_speed = self._gradients(self._functionals(C))
        solid = self._slopes[ASPERITIES]
        if contact and solid.any():
            by_gap[:, :, : C.shape[2]] += C * solid[:, :, None]
        return by_gap, by_rate, by_speed

    def _functionals(self, C: Array) -> Array:
        """Return the derivatives of functionals, and of the drag, by the reduced pressure q.

        C (n, m+1, k) are the weights of the pressures in the functionals. The result has the shape
        (n, m+1, k+1) if the drag depends on the pressure, otherwise (n, m+1, k).
        """
        by_q = C * self._slopes[FILM][:, :, None]
        if self.values[BARUS] == 0.0:
            return np.asarray(by_q)
        drag = grid_loads.drag_functional(
            self._speed, self.values, self._nodes, self._q, self._flow
        )
        return np.dstack([by_q, drag])

    def _drag_gradients(self, contact: bool) -> tuple[Array, float]:
        """Return ∂T/∂h (n, m+1) and ∂T/∂Ω of the drag torque T for constant pressures of oil."""
        by_gap = np.empty_like(self._still)
        by_speed = grid_loads.drag_gradients(
            self._speed, self.values, self._nodes, self._h, self.pressures, self._slopes,
            self.fraction, contact, by_gap,
        )  # fmt: skip
        return by_gap, by_speed

    def pattern_derivatives(
        self, C: Array, around: Array, along: Array, *, contact: bool = True
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives of functionals and of the drag by patterns of the gap.

        Args:
            C: Weights of the pressures in k functionals, (n, m+1, k).
            around: Factors of the patterns around the bore, (n, A).
            along: Factors of the patterns along the axis, (m+1, L).
            contact: Whether functionals and drag contain the pressure of the asperities.

        Returns:
            Derivatives by the coefficients of the patterns in the gap (k+1, A L), and in its rate
            (k+1, A L), and by the speed (k+1,).
        """
        k = C.shape[2]
        parts = self._pattern_gradients(C, around, along, contact=contact)
        drag_by_gap, drag_by_speed = self._drag_gradients(contact)
        if len(parts[2]) > k:  # the drag depends on the pressure
            gap, rate, speed = parts
        else:
            gap, rate = np.zeros((2, k + 1, around.shape[1] * along.shape[1]))
            speed = np.zeros(k + 1)
            for target, part in zip((gap, rate, speed), parts, strict=True):
                target[:k] = part
        gap[k] += (around.T @ drag_by_gap @ along).ravel()
        speed[k] += drag_by_speed
        return gap, rate, speed

    def pattern_stiffness(self, C: Array, around: Array, along: Array, rate_factor: float) -> Array:
        """Return the derivatives of forces on patterns by the gap, plus a factor times by its rate.

        Args:
            C: Products of the patterns and the areas of the nodes, (n, m+1, A L).
            around: Factors of the patterns around the bore, (n, A).
            along: Factors of the patterns along the axis, (m+1, L).
            rate_factor: Factor of the derivatives by the rates of the coefficients, 1/s.

        Returns:
            Derivatives of the forces of film and asperities by the coefficients, (A L, A L).
        """
        stiffness: Array = reynolds_pattern_stiffness(
            self._h, self._rate, self._speed, self.values, self._nodes[WEIGHT], self._number,
            self._size, self._q, self._slopes, self._flow, self._band, *self._links, around, along,
            rate_factor,
        )  # fmt: skip
        solid = self._slopes[ASPERITIES]
        if solid.any():
            stiffness += bore_patterns.pattern_gradients(C * solid[:, :, None], around, along)
        return stiffness

    def _pattern_gradients(
        self, C: Array, around: Array, along: Array, *, contact: bool
    ) -> tuple[Array, Array, Array]:
        """Return the results of `_pressure_gradients` by patterns, (k, A L), (k, A L) and (k,)."""
        solid = self._slopes[ASPERITIES]
        direct = C * solid[:, :, None] if contact and solid.any() else np.zeros((0, 0, 0))
        gradients: tuple[Array, Array, Array] = reynolds_pattern_gradients(
            self._h, self._rate, self._speed, self.values, self._number, self._size, self._q,
            self._flow, self._band, *self._links, self._functionals(C), direct, around, along,
        )  # fmt: skip
        return gradients

    def _gradients(self, C: Array) -> tuple[Array, Array, Array]:
        """Return the derivatives of functionals with the derivatives C (n, m+1, k) by q."""
        gradients: tuple[Array, Array, Array] = reynolds_gradients(
            self._h, self._rate, self._speed, self.values, self._number, self._size, self._q,
            self._flow, self._band, *self._links, C,
        )  # fmt: skip
        return gradients

    def load_gradients(self, *, contact: bool = True) -> tuple[Array, Array, Array]:
        """Return ∂g/∂h and ∂g/∂ḣ at every node, and ∂g/∂Ω, of the film loads g.

        The shapes are (5, n, m+1), (5, n, m+1) and (5,). For `contact` see `loads`.
        """
        parts = self._pressure_gradients(self._forces, contact=contact)
        gap, rate, speed = (
            np.zeros((5, *self._still.shape)),
            np.zeros((5, *self._still.shape)),
            np.zeros(5),
        )
        for target, part in zip((gap, rate, speed), parts, strict=True):
            target[: part.shape[-1]] = np.moveaxis(part, -1, 0)
        drag_by_gap, drag_by_speed = self._drag_gradients(contact)
        gap[DRAG] += drag_by_gap
        speed[DRAG] += drag_by_speed
        return gap, rate, speed

    def load_derivatives(self, *, contact: bool = True) -> Array:
        """Return the derivatives of the film loads with respect to the journal's motion, (5, 9).

        For `contact` see `loads`.
        """
        around, along = self._rigid
        *parts, speed = self.pattern_derivatives(self._forces, around, along, contact=contact)
        # The patterns are those of e_x, t_x, e_y and t_y, with the factors 1 and z along the axis
        return np.column_stack([*(-part[:, [0, 2, 1, 3]] for part in parts), speed])

    def supply_flow(self) -> float:
        """Return the flow of oil from the areas with prescribed pressure into the film, m³/s."""
        q, flow = self._q, self._flow
        supplied = self._fixed[:, 1:-1] == 1
        around = flow[AROUND] * (q - np.roll(q, -1, axis=0))  # from (i, j) to (i+1, j)
        along = flow[ALONG, :, :-1] * (q[:, :-1] - q[:, 1:])
        net = (around - np.roll(around, 1, axis=0))[:, 1:-1] + along[:, 1:] - along[:, :-1]
        total = (net + flow[SOURCE, :, 1:-1])[supplied].sum()
        return float((total + self._link_flow(to_ends=False)) / (12.0 * self.values[VISCOSITY]))

    def _link_flow(self, *, to_ends: bool) -> float:
        """Return 12 μ₀ times the flow from the edges of supplies, or of its part to the ends."""
        links, (_, level, conductance) = self._links[0], self._links[1].T
        i, j, i1, _ = links.T
        inside = (j > 0) & (j < len(self.z) - 1)
        selected = (i == i1) & ~inside if to_ends else (i == i1) | inside
        return float((conductance * (level - self._q[i, j]))[selected].sum())
