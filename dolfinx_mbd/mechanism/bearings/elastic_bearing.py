"""Journal bearing with an elastic bore (elastohydrodynamic lubrication).

The outward displacement w = Σ s_a φ_a of the bore widens the gap, h = c − (e + z t)·n + w, with the
radial clearance c, the displacement e and the slope t of the journal and the radial direction n at
the angle θ. The pressure p of film and asperities acts on the coefficients s with the forces
∫ p φ_a dA. The coefficients are linear in the elastic coordinates η of the body, s = W η, so that η
receives the force Wᵀ∫ p φ dA in addition to the wrench on the frame of the interface. w does not
contain the motion of this frame, so that the virtual work of the pressure is counted only once.

In the shapes below, m is the number of the coefficients s, and the nodes of the grid have the shape
(nodes around, nodes along).

Shear by the pressure gradient acts on both surfaces with the couple ½ ∫ p ∂h/∂θ dA. Its part −½ ∫
(e + z t) × f dz, with the force f per length, is that of a round bore, see `kernels.films.frames`.
Its part ½ ∫ p ∂w/∂θ dA turns the journal; the opposite couple acts on the bore, because the
pressure on its inclined surface has the moment −∫ p ∂w/∂θ dA. This part is subtracted from the drag
torque.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.body import Bore
from dolfinx_mbd.checks import array, instance, reject
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.films.bore_patterns import NEW, UNUSABLE, elastic_slopes
from dolfinx_mbd.kernels.films.fields import DRAG, SPIN
from dolfinx_mbd.kernels.films.frames import gap_gradients
from dolfinx_mbd.mechanism.bearings.film_bearing import FARTHEST
from dolfinx_mbd.mechanism.bearings.finite_bearing import FiniteBearing
from dolfinx_mbd.mechanism.contact.elastic_bores import elastic_tangents
from dolfinx_mbd.mechanism.force_elements import FramePair

__all__ = ["ElasticBearing"]

_SIZE_TOLERANCE = 1e-3  # largest relative difference of the sizes of the bearing and of the bore


@dataclass(frozen=True, eq=False)
class ElasticBearing(FiniteBearing):
    """A journal bearing of finite length whose bore deforms with a flexible body.

    The first frame is an averaged interface of a body that is reduced with pressure modes
    (`InterfaceSpec.pressure_modes`).

    Attributes:
        name: Name in the system.
        first: Frame of the bore, an interface of a flexible body.
        second: Frame of the journal, with its z axis along the journal.
        radius: Radius, m; it equals the radius of the bore within 0.1 %.
        length: Length along the axis, m; it equals the length of the bore within 0.1 %.
        clearance: Radial clearance with the undeformed bore, m.
        oil: The oil, or its viscosity, Pa s.
        shape: Numbers of intervals around and along the bore; see `FiniteBearing`.
        supply: Grooves and holes with their pressures.
        cavitation: `reynolds` or `mass_conserving`; see `FiniteBearing`.
        bore: The elastic bore, `body.bore("big_end")` of the reduced body.
        asperities: Contact of the surfaces where the film is thin.

    Raises:
        InputError: An argument is invalid, or the bore does not have the size of the bearing.
            `System` raises it if the bore belongs to another body.
        SolverError: The iteration for the cavitated area did not converge.

    Example:
        >>> bore = mbd.body.Bore("left", 0.02, 0.02, np.zeros((7, 3, 2)))
        >>> size = {"radius": 0.02, "length": 0.02, "clearance": 2e-5}  # m
        >>> film = mbd.bearings.ElasticBearing("film", *ends, **size, oil=0.01, bore=bore)
        >>> loads, _, _ = film.film_loads(film.motion_vector((1e-5, 0), speed=300.0), False)
        >>> print(loads[:2].round(1))  # N, as for a rigid bore, because its modes are zero
        [-425.3  615.1]
    """

    __repr__ = short_repr

    bore: Bore | None = None
    # Patterns φ at the nodes: factors around, (nodes around, 1 + 2 harmonics), and along the bore,
    # (nodes along, 3); and φ times the areas of the nodes, (nodes around, nodes along, m), m²
    _around: Array = field(init=False, repr=False)
    _along: Array = field(init=False, repr=False)
    _weights: Array = field(init=False, repr=False)
    _surface: Array = field(init=False, repr=False)  # W, (m, modes)
    # Maps the coefficients of w to those of ∂w/∂θ, (m, m)
    _slope: Array = field(init=False, repr=False)
    _half: float = field(init=False, repr=False)  # half the length of the bore, m
    # Derivatives of the forces on s with respect to s and to ds/dt at the last solution, (2, m, m)
    _slopes: Array = field(init=False, repr=False)
    # Derivatives of the coefficients of the gap with respect to e and t, (m, 4)
    _by_journal: Array = field(init=False, repr=False)
    # Motion of the journal, s and ds/dt of the last solution, (10 + 2m,)
    _point: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        label = f"bearing {self.name!r}"
        bore = instance(f"{label}: bore", self.bore, Bore, "the bore of a body, body.bore('name')")
        for key in ("radius", "length"):
            size, expected = getattr(self, key), getattr(bore, key)
            if abs(size - expected) > _SIZE_TOLERANCE * expected:
                raise InputError(
                    f"{label}: {key} is {size:g} m, but bore {bore.name!r} has {expected:g} m",
                    argument=key,
                    value=size,
                    expected=f"{expected:g} m",
                )
        if bore.harmonics < 1:
            reject(f"{label}: bore", bore, "a bore with at least the first harmonic")
        assign(self, _half=0.5 * bore.length)
        around, along = bore.patterns(self.grid.theta, self.grid.z)
        patterns = np.einsum("ia,jl->alij", around, along).reshape(-1, *self.grid.areas.shape)
        surface = bore.displacement.reshape(len(patterns), -1)
        weights = np.ascontiguousarray((patterns * self.grid.areas).transpose(1, 2, 0))
        assign(self, _around=around, _along=along, _weights=weights)
        assign(self, _surface=surface, _point=np.full(10 + 2 * len(surface), np.nan))
        # Columns e_x, e_y, t_x, t_y: they change the coefficient of cos θ (x) or sin θ (y), times 1
        # (e) or 2z/length (t)
        by_journal, L = np.zeros((len(patterns), 4)), along.shape[1]
        for k, factor in enumerate((-1.0, -1.0, -self._half, -self._half)):
            by_journal[L * (1 + k % 2) + k // 2, k] = factor
        assign(self, _by_journal=by_journal, _slopes=np.zeros((2, len(patterns), len(patterns))))
        derivative = np.zeros((len(around.T), len(around.T)))
        for k in range(1, bore.harmonics + 1):
            derivative[2 * k - 1, 2 * k], derivative[2 * k, 2 * k - 1] = k, -k
        assign(self, _slope=np.kron(derivative, np.eye(along.shape[1])))

    @property
    def surface(self) -> Array:
        """Matrix W of the coefficients s = W η of w, shape (m, modes)."""
        return self._surface

    @property
    def group_key(self) -> Hashable:
        """Sizes of the arrays of a film without a content; see `FilmElement`."""
        if self.has_content:
            return None
        return self._around.shape, self._along.shape, self.grid.num_links

    def displacement(self, s: Array) -> Array:
        """Return the outward displacement w (m) at the nodes of the grid for its m coefficients s.

        The shape of the result is (nodes around, nodes along).
        """
        coefficients = s.reshape(self._around.shape[1], -1)
        return np.asarray(self._around @ coefficients @ self._along.T)

    def film_loads(
        self, motion: Array, derivatives: bool, surface: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Return loads, derivatives and state of the film; see `FilmBearing`.

        Args:
            motion: Motion (10,) of the journal.
            derivatives: Whether the derivatives are computed.
            surface: The m coefficients s of w, and their rates, (2, m); by default zero.

        Returns:
            Film loads (5,) and forces on s (m,); their derivatives with respect to the first nine
            entries of the motion, s and ṡ (5 + m, 9 + 2m); smallest gap, peak pressure, side flow
            and friction power.
        """
        s = self._coefficients(surface)
        g = self._elastic_loads(motion, s)
        m = len(self._surface)
        if not np.isfinite(g[0]):
            return g, np.full((5 + m, 9 + 2 * m), np.nan), np.full(4, np.nan)
        dg = self._slopes_of_loads(g, s) if derivatives else np.zeros((5 + m, 9 + 2 * m))
        # The power of friction needs the drag torque with the part that is subtracted from it
        loads = g[:5].copy()
        loads[DRAG] += 0.5 * g[5:] @ self._slope @ s[0]
        return g, dg, self.grid.state(loads)

    def _coefficients(self, surface: Array | None) -> Array:
        """Return the coefficients of w and their rates, (2, m), zero if they are not specified."""
        return np.zeros((2, len(self._surface))) if surface is None else surface

    def _elastic_loads(self, motion: Array, s: Array) -> Array:
        """Return film loads and forces on s, (5 + m,); NaN if they cannot be computed."""
        g = np.empty(5 + len(self._surface))
        if not self._solve_elastic(motion, s):
            g[:] = np.nan
            return g
        self.grid.write_elastic_loads(g, s, self._around, self._along, self._slope)
        return g

    def _slopes_of_loads(self, g: Array, s: Array) -> Array:
        """Return the derivatives of `_elastic_loads` at its last arguments, (5 + m, 9 + 2m)."""
        parts = self.grid.pattern_derivatives(self._weights, self._around, self._along)
        self._slopes[:] = parts[0][:-1], parts[1][:-1]
        dg: Array = elastic_slopes(*parts, g, s, self._slope, self._along.shape[1], self._half)
        return dg

    def pressure(self, motion: ArrayLike, surface: ArrayLike | None = None) -> Array:
        """Return the pressure (Pa) at the nodes of the grid; see `FiniteBearing`.

        The shape of the result is (nodes around, nodes along).

        Args:
            motion: Motion of the journal, (10,), for example from `motion_vector`.
            surface: The m coefficients s of w, and their rates, (2, m); by default zero.

        Raises:
            InputError: An argument has a wrong shape.
            SolverError: An argument is not finite, or the journal is far outside the bore.
        """
        shape = 2, len(self._surface)
        s = np.zeros(shape) if surface is None else array("surface", surface, shape)
        if not self._solve_elastic(array("motion", motion, (10,)), s):
            raise SolverError(
                f"bearing {self.name!r}: the pressure cannot be computed; check that motion and "
                "surface are finite and that the journal is in the bore"
            )
        return np.asarray(self.grid.pressures.sum(axis=0))

    def film_fraction(self, motion: ArrayLike, surface: ArrayLike | None = None) -> Array:
        """Return the part of the gap that is filled with oil at the nodes; see `FiniteBearing`.

        The shape of the result is (nodes around, nodes along).

        Args:
            motion: Motion of the journal, (10,), for example from `motion_vector`.
            surface: The m coefficients s of w, and their rates, (2, m); by default zero.

        Raises:
            InputError: An argument has a wrong shape.
            SolverError: An argument is not finite, or the journal is far outside the bore.
        """
        self.pressure(motion, surface)
        return self.grid.fraction.copy()

    def _forget(self) -> None:
        """Delete the stored solution."""
        self._point[:] = np.nan

    def _solve_elastic(self, motion: Array, s: Array) -> bool:
        """Solve for the pressure, unless the arguments have not changed.

        Return False if the loads cannot be computed, as `_is_usable` and for s that are not finite.
        """
        state = self.grid.put_elastic_gap(
            motion, s, self._point, FARTHEST, self._around, self._along
        )
        if state == NEW:
            try:
                self.grid.update_at_gap(float(motion[SPIN]))
            except SolverError:
                self._forget()
                raise
        return state != UNUSABLE

    def failure(self) -> SolverError:
        """Return the error of a film without a solution, and delete the last one."""
        self._forget()
        return self.grid.failure()

    def wrenches(self, pair: FramePair, surface: Array | None = None) -> Array:
        """Return forces and moments on both frames, then the forces on s, (12 + m,)."""
        y, s, out = (
            self.pair_motion(pair),
            self._coefficients(surface),
            np.empty(12 + len(self._surface)),
        )
        if self._solve_elastic(y, s):
            self.grid.write_elastic_wrenches(
                out, pair.Q1, y, s, self._around, self._along, self._slope
            )
        else:
            out[:] = np.nan
        return out

    def derivatives(self, pair: FramePair, surface: Array | None = None) -> tuple[Array, Array]:
        """Return the derivatives of the wrenches with respect to (poses, s) and (velocities, ṡ)."""
        s = self._coefficients(surface)
        g = self._elastic_loads(self.pair_motion(pair), s)
        if not np.isfinite(g[0]):
            return elastic_tangents(pair, g, np.full((len(g), 2 * len(g) - 1), np.nan))
        return elastic_tangents(pair, g, self._slopes_of_loads(g, s))

    def gap_stiffness(self, rate_factor: float, *, assembled: bool) -> Array:
        """Return the derivatives (m, m) of the forces on s; see `FilmElement`."""
        if assembled:
            return np.asarray(self._slopes[0] + rate_factor * self._slopes[1])
        return self.grid.pattern_stiffness(self._weights, self._around, self._along, rate_factor)

    @property
    def moves_gap(self) -> NDArray[np.bool_]:
        """Whether the journal changes each coefficient of the gap, (m,)."""
        return np.asarray(self._by_journal.any(axis=1))

    def write_gap_gradients(
        self, pair: FramePair, delay: float, gradients: Array, changes: Array
    ) -> None:
        """Write the derivatives of the coefficients of the gap by poses; see `FilmElement`."""
        gap_gradients(*pair, delay, self._by_journal, gradients, changes)

    def energy(self, pair: FramePair, surface: Array | None = None) -> float:
        """Return the elastic energy of touching asperities, J, without the bore."""
        return float((self.asperities.energy(self._gaps(pair, surface)) * self.grid.areas).sum())

    def smallest_gap(self, pair: FramePair, surface: Array | None = None) -> float:
        """Return the smallest gap at the nodes of the grid, m."""
        return float(self._gaps(pair, surface).min())

    def _gaps(self, pair: FramePair, surface: Array | None) -> Array:
        """Return the gaps (m) at the nodes of the grid, (nodes around, nodes along)."""
        s = self._coefficients(surface)
        return self.grid.pattern_gap(self.pair_motion(pair), self._around, self._along, s)[0]
