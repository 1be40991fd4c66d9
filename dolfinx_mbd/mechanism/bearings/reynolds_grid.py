"""Reynolds' equation on the surface of a bore, for rigid and for elastic surfaces.

An elastic bore adds its outward radial displacement w(θ, z) to the gap, and ẇ to its rate:

    grid = film.grid                        # film is a `FiniteBearing`
    h, rate = grid.gap(y, w, w_rate)        # y: motion of the journal (10,), w (n, m+1)
    p = grid.solve(h, rate, speed)          # film and asperities, Pa, (n, m+1)
    g, facts = grid.loads()                 # loads of a rigid journal (5,), facts (4,)
    by_gap, by_rate, by_speed = grid.gradients(C)   # of f_k = Σ C_kij p_ij, for any C (k, n, m+1)
    dg = grid.load_derivatives()            # (5, 9) with respect to y, for constant w and ẇ

With w = Σ W_l η_l, the generalized force of the pressure on the coordinates is Σ W_l p A with the
areas A = `grid.areas`; take C_l = W_l A. Its derivative with respect to η is Σ by_gap W, and with
respect to η̇ it is Σ by_rate W. Its derivative with respect to the motion y is
`rigid_derivatives(by_gap, by_rate, by_speed, z)`. `load_gradients` returns the derivatives of the
film loads g with respect to h and ḣ at the nodes. dg/dη follows from them in the same way. All of
these methods use the factors of the last call of `solve` and the arguments of this call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.kernels.films import grid_loads, reynolds
from dolfinx_mbd.kernels.films.fields import (
    ALONG,
    AROUND,
    ASPERITIES,
    BARUS,
    CLEARANCE,
    DRAG,
    FILM,
    LENGTH,
    RADIUS,
    SOURCE,
    VISCOSITY,
)
from dolfinx_mbd.kernels.films.reynolds_gradients import reynolds_gradients
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
        >>> grid = mbd.bearings.FiniteBearing("film", *ends, 0.02, 0.02, 2e-5, 0.01).grid
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
        self._fixed, self._q = np.zeros((n, m + 1), np.int64), np.zeros((n, m + 1))
        self._fixed[:, [0, -1]] = 1
        alpha = values[BARUS]
        levels = [
            -math.expm1(-alpha * area.pressure) / alpha if alpha else area.pressure
            for area in supply
        ]
        inside, links, ends = supply_links(self.theta, self.z, supply, levels)
        self._links = links, ends
        nodes = ~np.isnan(inside)
        self._fixed[nodes], self._q[nodes] = 1, inside[nodes]
        self._free = 1 - self._fixed
        self._number, self._size = np.zeros_like(self._fixed), np.zeros(2, np.int64)
        self._flow: Array = np.zeros((9, n, m + 1))
        self._band: Array = np.zeros(n * (m - 1) * (2 * m - 1))
        self.pressures, self._slopes = np.zeros((2, n, m + 1)), np.zeros((2, n, m + 1))
        self._still: Array = np.zeros((n, m + 1))
        self.fraction: Array = np.ones((n, m + 1))
        self._h, self._rate, self._speed = self._still, self._still, 0.0

    @property
    def last_gap(self) -> Array:
        """Gap of the last solution, (n, m+1), m."""
        return self._h

    def gap(
        self, motion: Array, w: Array | None = None, w_rate: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the gap and its rate at the nodes, (n, m+1), m and m/s.

        Args:
            motion: Motion of the journal, (10,), see `kernels.films.frames`.
            w: Outward radial displacement of the bore, (n, m+1), m; by default zero.
            w_rate: Its rate, (n, m+1), m/s; by default zero.
        """
        h, rate = np.empty_like(self._still), np.empty_like(self._still)
        w, w_rate = self._still if w is None else w, self._still if w_rate is None else w_rate
        reynolds.film_gap(motion, self.values[CLEARANCE], self.z, w, w_rate, h, rate)
        return h, rate

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
        self._h, self._rate, self._speed = h, rate, speed
        try:
            sets = self._find_pressure(h, rate, speed)
        except ZeroDivisionError:  # a singular matrix, because values are out of range
            sets = -1
        total = grid_loads.film_pressures(self._q, h, self.values, self.pressures, self._slopes)
        if sets < 0 or not math.isfinite(total):
            self._free[:] = 1 - self._fixed
            raise SolverError(
                "the cavitated area of an oil film did not converge; check that the film thickness "
                "and its rate are finite"
            )

    def _find_pressure(self, h: Array, rate: Array, speed: float) -> int:
        """Solve for the reduced pressure; return the number of iterations, or −1."""
        sets: int = reynolds.reynolds_solve(
            h, rate, speed, self.values, self._fixed, self._free, self._number, self._size,
            self._q, self._flow, self._band, *self._links,
        )  # fmt: skip
        return sets

    def loads(self, *, contact: bool = True) -> tuple[Array, Array]:
        """Return the film loads (5,) and the state (4,) of the film, see `FilmBearing.film_loads`.

        The loads are those on a rigid journal, see `kernels.films.frames`.

        Args:
            contact: Whether the loads contain the pressure of the asperities at the nodes.
        """
        g, facts = grid_loads.grid_loads(
            self._speed, self.values, self._nodes, self._h, self._q, self._flow,
            *self._links, self.fraction, contact,
        )  # fmt: skip
        return g, facts

    def gradients(self, C: Array) -> tuple[Array, Array, Array]:
        """Return ∂f_k/∂h and ∂f_k/∂ḣ at every node, and ∂f_k/∂Ω, of f_k = Σ C_kij p_ij.

        Args:
            C: Weights of the pressures of film and asperities, (k, n, m+1).

        Returns:
            ∂f/∂h (k, n, m+1), ∂f/∂ḣ (k, n, m+1) and ∂f/∂Ω (k,).
        """
        by_gap, by_rate, by_speed = self.node_gradients(np.ascontiguousarray(C.transpose(1, 2, 0)))
        return by_gap.transpose(2, 0, 1), by_rate.transpose(2, 0, 1), by_speed

    def node_gradients(self, C: Array) -> tuple[Array, Array, Array]:
        """Return the results of `gradients` for weights C (n, m+1, k), with k as the last axis."""
        by_gap, by_rate, by_speed = self._gradients(C * self._slopes[FILM][:, :, None])
        by_gap += C * self._slopes[ASPERITIES][:, :, None]
        return by_gap, by_rate, by_speed

    def surface_gradients(self, C: Array) -> tuple[Array, Array, Array]:
        """Return the results of `node_gradients` for weights C (n, m+1, k), and those of the drag.

        The drag torque is the last of the k + 1 functionals.
        """
        k = C.shape[2]
        by_q = np.zeros((*C.shape[:2], k + 1))
        np.multiply(C, self._slopes[FILM][:, :, None], out=by_q[:, :, :k])
        by_q[:, :, k:] = self._drag_functional()
        by_gap, by_rate, by_speed = self._gradients(by_q)
        solid = self._slopes[ASPERITIES]
        if solid.any():
            by_gap[:, :, :k] += C * solid[:, :, None]
        by_speed[k] += grid_loads.add_drag_gradients(
            self._speed, self.values, self._nodes, self._h, self._q, self.fraction, by_gap
        )
        return by_gap, by_rate, by_speed

    def _gradients(self, C: Array) -> tuple[Array, Array, Array]:
        """Return the derivatives of functionals with the derivatives C (n, m+1, k) by q."""
        gradients: tuple[Array, Array, Array] = reynolds_gradients(
            self._h, self._rate, self._speed, self.values, self._number, self._size, self._q,
            self._flow, self._band, *self._links, C,
        )  # fmt: skip
        return gradients

    def _load_functionals(self) -> Array:
        """Return the derivatives (n, m+1, k) of the film loads with respect to q."""
        C = grid_loads.load_functionals(self.values, self._nodes, self._q, self._flow, self._speed)
        return np.asarray(C)

    def _drag_functional(self) -> Array | float:
        """Return the derivative (n, m+1, 1) of the drag with respect to q, or zero."""
        return self._load_functionals()[:, :, DRAG:] if self.values[BARUS] > 0.0 else 0.0

    def load_gradients(self, *, contact: bool = True) -> tuple[Array, Array, Array]:
        """Return ∂g/∂h and ∂g/∂ḣ at every node, and ∂g/∂Ω, of the film loads g.

        The shapes are (5, n, m+1), (5, n, m+1) and (5,). For `contact` see `loads`.
        """
        gap, rate, speed = self._gradients(self._load_functionals())
        gradients: tuple[Array, Array, Array] = grid_loads.add_direct_gradients(
            self._speed, self.values, self._nodes, self._h, self._q, self.fraction, contact,
            gap, rate, speed,
        )  # fmt: skip
        return gradients

    def load_derivatives(self, *, contact: bool = True) -> Array:
        """Return the derivatives of the film loads with respect to the journal's motion, (5, 9).

        For `contact` see `loads`.
        """
        derivatives: Array = grid_loads.rigid_load_derivatives(
            self._speed, self.values, self._nodes, self._h, self._q, self.fraction, contact,
            *self._gradients(self._load_functionals()),
        )  # fmt: skip
        return derivatives

    def supply_flow(self) -> float:
        """Return the flow of oil from the areas with prescribed pressure into the film, m³/s."""
        q, flow, total = self._q, self._flow, 0.0
        inner = self._fixed[:, 1:-1] == 1
        around = flow[AROUND] * (q - np.roll(q, -1, axis=0))  # from (i, j) to (i+1, j)
        along = flow[ALONG, :, :-1] * (q[:, :-1] - q[:, 1:])
        net = (around - np.roll(around, 1, axis=0))[:, 1:-1] + along[:, 1:] - along[:, :-1]
        total = (net + flow[SOURCE, :, 1:-1])[inner].sum()
        return float((total + self._link_flow(to_ends=False)) / (12.0 * self.values[VISCOSITY]))

    def _link_flow(self, *, to_ends: bool) -> float:
        """Return 12 μ₀ times the flow from the edges of supplies, or of that to the ends only."""
        links, (_, level, conductance) = self._links[0], self._links[1].T
        i, j, i1, _ = links.T
        inside = (j > 0) & (j < len(self.z) - 1)
        counts = (i == i1) & ~inside if to_ends else (i == i1) | inside
        return float((conductance * (level - self._q[i, j]))[counts].sum())
