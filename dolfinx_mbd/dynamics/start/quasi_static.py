"""Quasi-static start: elastic coordinates in equilibrium with the forces of the motion.

The unknowns are the elastic coordinates η. The constraints determine the other coordinates, Φ̇ = 0
determines their velocities v, and Φ̈ = 0 with the equations of motion at η̈ = 0 determines the
accelerations a and the multipliers λ. The elastic equations f(η) = 0 remain. Their derivative is

    df/dη = K X_q + C X_v + M X_a + Bᵀ X_λ   (elastic rows only),

where the matrices X are the derivatives of q, v, a and λ with respect to η, and K, C, M and B are
the matrices of a `Tangent`. A Newton correction is shortened until the next correction, computed
with the same derivative, is smaller (Deuflhard's natural monotonicity test). If this fails, the
loads are applied in steps: p f(η) + (1 − p) K₀ (η − η₀) = 0 is solved for p from 0 to 1, with the
stiffness K₀ at rest and the initial values η₀.

References:
    P. Deuflhard, Newton Methods for Nonlinear Problems, Springer 2004, chapters 3 and 5.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, lu_factor, lu_solve

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError, extent
from dolfinx_mbd.dynamics.assembly.rates import rate_rows, saddle, steady_accelerations
from dolfinx_mbd.dynamics.start.position_assembly import restore
from dolfinx_mbd.dynamics.stepping.convergence import Measure, row_groups
from dolfinx_mbd.errors import ModelRangeWarning, SolverError, warn
from dolfinx_mbd.mechanism.protocol import BodyState
from dolfinx_mbd.mechanism.system import System

_TOLERANCE = 1e-11  # largest residual relative to the forces on a body
_MAX_ITERATIONS = 30
_MIN_FRACTION = 1e-3  # smallest fraction of a correction that is tried
# Largest ratio of successive corrections at which the derivative is reused
_REUSE_CONTRACTION = 0.1
_MAX_CORRECTION = 0.3  # largest correction, rad or relative to the mechanism's size, at least 1 m
_MIN_LOAD_STEP = 1e-3  # smallest increment of p
_NEGLIGIBLE = 1e-6  # largest negligible deformation relative to the size of the mechanism
_DIFFERENCE_STEP = 1e-5  # displacement for finite differences relative to the same size
_ZERO = 1e-10  # derivatives of coordinates below this fraction of the largest one count as zero


class EquilibriumError(SolverError):
    """No equilibrium was found.

    Args:
        message: Text of the error.
        load: Fraction of the loads (0 to 1) up to which a quasi-static start found an equilibrium;
            None in other analyses. The error has an attribute with the same name.
    """

    def __init__(self, message: str, *, load: float | None = None) -> None:
        super().__init__(message)
        self.load = load


class _NoConvergence(Exception):
    """Newton's method does not converge from its starting point."""


class Balance:
    """Equilibrium of the elastic coordinates at a given time with given joint rates."""

    def __init__(self, eqs: Assembler, t: float, rates: Mapping[str, float]) -> None:
        self._eqs, self._t, self._rates = eqs, t, rates
        s = eqs.system
        self._measure = Measure(s)
        self._length = extent(eqs)
        is_rotation = row_groups(s)[s.rigid] % 3 == 1  # groups 3k + 1 are moments
        self._sizes = np.where(is_rotation, 1.0, max(self._length, 1.0))  # rad or m
        # Each elastic body with views of its coordinates and of the scale of its elastic equations
        self._bodies = [
            (body, eqs.q[q], eqs.scale[v][-body.num_elastic :])
            for body, q, v in zip(s.bodies, s.q_slices, s.v_slices, strict=True)
            if body.num_elastic
        ]
        self._names = " and ".join(repr(body.name) for body, *_ in self._bodies)
        self._v = eqs.v.copy()
        self._columns = np.zeros((s.num_velocities, len(s.elastic)))
        self._factor: tuple[Array, Any] | None = None
        self._load = 1.0
        self._start = self._elastic_coordinates()
        self._stiffness: Array = np.zeros((0, 0))

    def start(self, v: Array) -> None:
        """Compute the quasi-static state and its elastic rates from velocities v (nv,)."""
        self._v = v
        self._restore()
        with_rates = self._eqs.v.copy()
        self.settle(with_rates.copy())
        with_rates[self._eqs.system.elastic] = self.rate()
        self.settle_with_rates(with_rates)

    def settle(self, v: Array) -> None:
        """Compute the equilibrium near the current coordinates with the elastic rates of v (nv,).

        The other velocities are as close as possible to v.
        """
        self._v, start, self._load = v, self._eqs.q.copy(), 1.0
        self._restore()
        try:
            self._newton()
        except _NoConvergence:
            self._eqs.q[:] = start
            self._apply_in_steps()

    def settle_with_rates(self, v: Array) -> None:
        """Compute the equilibrium with elastic rates, or keep the equilibrium without them.

        The equilibrium without rates is kept if the equilibrium with rates is far away, because the
        rates are meaningless near an unstable equilibrium.
        """
        q, deformation, velocities = self._eqs.q.copy(), self._elastic_coordinates(), self._v
        try:
            self.settle(v)
            change = self._size(self._elastic_coordinates() - deformation)
            if change <= 0.5 * max(self._size(deformation), _NEGLIGIBLE * self._length):
                return
        except (AssemblyError, EquilibriumError):
            pass
        self._v = velocities
        self._restore(q)

    def rate(self) -> Array:
        """Return the elastic rates of the equilibrium, −(df/dη)⁻¹ ∂f/∂t, shape (n,).

        ∂f/∂t is a central difference along the motion of all other coordinates.
        """
        eqs, t, s = self._eqs, self._t, self._eqs.system
        # Time of a motion by 1e-3 (m or rad), but at most 1e-5 s: a driver may start from rest.
        # Round-off grows with the distance of a body from its origin, which the velocity shows.
        speed, distant = self._speed(), float(np.abs(eqs.v[s.rigid]).max(initial=0.0))
        motion = 1e-3 * np.cbrt(max(1.0, distant / max(1e-3, speed)))
        step = min(1e-5, float(motion) / max(1e-3, speed))
        q, v, a = eqs.q.copy(), eqs.v.copy(), eqs.a.copy()
        v[s.elastic] = a[s.elastic] = 0.0
        rows = []
        for h in (step, -step):
            eqs.move(q, h * v + 0.5 * h * h * a)
            restore(eqs, t + h, v + h * a, {}, s.rigid)
            eqs.residual(t + h)
            rows.append(eqs.rows[s.elastic].copy())
        self._restore(q)
        self._warn_if_unstable(self._differentiate())
        return self._solve((rows[1] - rows[0]) / (2 * step))

    def _speed(self) -> float:
        """Return the largest velocity, m/s or rad/s, of frames, and of bodies without frames."""
        eqs, s = self._eqs, self._eqs.system
        velocities: list[Array] = [eqs.frames.update_velocities().ravel()]
        velocities += [
            eqs.v[v][: len(eqs.v[v]) - body.num_elastic]
            for body, v, frames in zip(s.bodies, s.v_slices, s.frame_slices, strict=True)
            if frames.start == frames.stop
        ]
        return float(np.abs(np.concatenate(velocities)).max(initial=0.0))

    # ---- Newton's method ------------------------------------------------------------------------
    def _restore(self, q: Array | None = None) -> None:
        """Satisfy the constraints for given η̇ at the current coordinates or at q."""
        if q is not None:
            self._eqs.q[:] = q
        restore(self._eqs, self._t, self._v, self._rates, self._eqs.system.rigid)

    def _newton(self) -> None:
        """Iterate to balanced forces, with a factor that serves while errors decrease fast."""
        force, error = self._evaluate()
        for _ in range(_MAX_ITERATIONS):
            if error <= 1.0:
                return
            fresh = self._factor is None
            if fresh:
                self._differentiate()
            step = self._solve(-force)
            if self._measure.is_round_off(self._columns @ step, self._length):
                return
            outcome = self._advance(step, _MIN_FRACTION if fresh else 1.0)
            if outcome is not None:
                force, error, contraction = outcome
            elif fresh:
                raise _NoConvergence
            if outcome is None or contraction > _REUSE_CONTRACTION:
                self._factor = None
        raise _NoConvergence

    def _advance(self, step: Array, smallest: float) -> tuple[Array, float, float] | None:
        """Move by a correction or a fraction of it.

        Return the force, its error and the contraction of the corrections. If no fraction from
        `smallest` to 1 makes the next correction smaller, return None and do not move.
        """
        eqs, start = self._eqs, self._eqs.q.copy()
        move, size = self._columns @ step, self._size(step)
        largest = max(float((np.abs(move[eqs.system.rigid]) / self._sizes).max()), 1e-300)
        limit = _MAX_CORRECTION / largest
        fraction = min(1.0, limit)
        while np.isfinite(size) and fraction >= min(smallest, limit):
            try:
                eqs.move(start, fraction * move)
                self._restore()
                force, error = self._evaluate()
                next_size = self._size(self._solve(-force))
                if error <= 1.0 or next_size <= (1.0 - 0.5 * fraction) * size:
                    return force, error, next_size / size if fraction == 1.0 else 1.0
            except AssemblyError:
                pass
            fraction *= 0.5
        self._restore(start)
        self._evaluate()
        return None

    def _apply_in_steps(self) -> None:
        """Apply the loads in steps."""
        eqs = self._eqs
        self._start = self._elastic_coordinates()
        self._stiffness = self._stiffness_at_rest()
        converged, load, increase = eqs.q.copy(), 0.0, 0.5
        while load < 1.0:
            self._load = min(1.0, load + increase)
            self._factor = None
            try:
                self._restore()
                self._newton()
            except (_NoConvergence, AssemblyError):
                increase *= 0.25
                eqs.q[:] = converged
                if increase < _MIN_LOAD_STEP:
                    raise EquilibriumError(
                        f"there is no quasi-static equilibrium at t = {self._t:g} s: with more than"
                        f" {100 * load:.3g} % of the forces of the motion and the loads, the "
                        f"deformation of {self._names} has no equilibrium. The motion is too "
                        "fast, or a load too large, for the stiffness of the body; simulate with "
                        "elastic_start='undeformed'",
                        load=load,
                    ) from None
            else:
                converged, load, increase = eqs.q.copy(), self._load, 2.0 * increase

    # ---- the elastic equations and their derivative ---------------------------------------------
    def _elastic_coordinates(self) -> Array:
        """Return the elastic coordinates of all bodies, (n,)."""
        return np.concatenate([q[-body.num_elastic :] for body, q, _ in self._bodies])

    def _evaluate(self) -> tuple[Array, float]:
        """Return the elastic residual (n,) and its largest ratio to the tolerance."""
        eqs = self._eqs
        eqs.residual(self._t)
        force = eqs.rows[eqs.system.elastic].copy()
        if self._load < 1.0:
            force *= self._load
            force += (1.0 - self._load) * (
                self._stiffness @ (self._elastic_coordinates() - self._start)
            )
        if not np.isfinite(force).all():
            raise AssemblyError(f"forces at t = {self._t:g} s are not finite")
        stops = np.cumsum([body.num_elastic for body, *_ in self._bodies])
        parts = zip(self._bodies, np.split(force, stops[:-1]), strict=True)
        relative = [np.abs(part).max() / max(scale.max(), 1e-300) for (*_, scale), part in parts]
        return force, float(max(relative)) / _TOLERANCE

    def _stiffness_at_rest(self) -> Array:
        """Return the elastic stiffness of the bodies at rest, shape (n, n)."""
        blocks = []
        for body, q, _ in self._bodies:
            v, n = np.zeros(body.num_velocities), body.num_elastic
            wrenches = np.zeros((len(body.frame_names), 6))
            state = BodyState(self._t, q, v, v, np.zeros(3), wrenches)
            K, _, _ = body.tangent(state)
            blocks.append(K[-n:, -n:])
        return block_diag(*blocks)

    def _differentiate(self) -> Array:
        """Factorize df/dη, differentiate all coordinates with respect to η; return df/dη."""
        self._columns, derivative = elastic_derivative(
            self._eqs, self._t, self._rates, self._length
        )
        if self._load < 1.0:
            derivative = self._load * derivative + (1.0 - self._load) * self._stiffness
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `_advance` rejects corrections that are not finite
            self._factor = lu_factor(derivative, check_finite=False)
        return derivative

    def _warn_if_unstable(self, derivative: Array) -> None:
        """Warn if the equilibrium is unstable in one direction."""
        least = float(
            np.linalg.eigvals(np.linalg.solve(self._stiffness_at_rest(), derivative)).real.min()
        )
        if least < 0.0:
            text = (
                f"the quasi-static start at t = {self._t:g} s is an unstable equilibrium: in one "
                f"direction, the forces of the motion change the stiffness of {self._names} to "
                f"{least:.3g} times its value at rest. Only gyroscopic forces can stabilize the "
                "equilibrium; a slower motion or a stiffer body would be stable"
            )
            warn(ModelRangeWarning(text, quantity="static stiffness", value=least, limit=0.0))

    def _solve(self, force: Array) -> Array:
        """Solve with the last factorization of df/dη."""
        assert self._factor is not None
        return np.asarray(lu_solve(self._factor, force, check_finite=False))

    def _size(self, step: Array) -> float:
        """Return the norm of the displacements of a correction."""
        return float(np.linalg.norm(self._measure.lengths[self._eqs.system.elastic] * step))


def elastic_derivative(
    eqs: Assembler, t: float, rates: Mapping[str, float], length: float
) -> tuple[Array, Array]:
    """Return X_q (nv, n) and df/dη (n, n) at a state that satisfies the constraints.

    The derivatives of Φ̈ for zero accelerations are central differences; all others are exact.
    """
    s = eqs.system
    e, r, n = s.elastic, s.rigid, len(s.elastic)
    eqs.residual(t)
    tangent = eqs.tangent(t)
    K, C, M, B = tangent.K, tangent.C, tangent.M, tangent.B
    X_q, X_v, X_a = np.zeros((3, s.num_velocities, n))
    X_q[e] = np.eye(n)
    if len(B):
        X_q[r] = -np.linalg.lstsq(B[:, r], B[:, e], rcond=1e-10)[0]
    inertia, zero = M[np.ix_(r, r)], np.zeros((len(r), n))
    eqs.frames.update_velocities()
    rows = np.concatenate([B, rate_rows(eqs, rates)])
    rate_derivatives = [
        eqs.frames.axis_rate_derivative(name, s.joint(name).default_motion) for name in rates
    ]
    if len(rows):
        derivative = np.concatenate(
            [eqs.constraint_derivatives(eqs.v, t), *(row[None] for row in rate_derivatives)]
        )
        X_v[r], _ = saddle(inertia, rows[:, r], zero, -derivative @ X_q)
    bias, X_a[e] = _differences(eqs, t, X_q, X_v, length)
    lower = -(bias + eqs.constraint_derivatives(eqs.a) @ X_q + B[:, e] @ X_a[e])
    upper = (K @ X_q + C @ X_v + M @ X_a)[r]
    X_a[r], forces = saddle(inertia, B[:, r], -upper, lower)
    return X_q, (K @ X_q + C @ X_v + M @ X_a + B.T @ forces)[e]


def _differences(
    eqs: Assembler, t: float, X_q: Array, X_v: Array, length: float
) -> tuple[Array, Array]:
    """Differentiate Φ̈ for zero accelerations (nc, n) and steady elastic accelerations (n, n).

    Central differences with small displacements along the columns of X_q and X_v are used.
    Columns whose motions affect different constraints and bodies share their differences.
    """
    s = eqs.system
    nearby = Assembler(s)
    nearby.angles[:] = eqs.angles
    lengths = Measure(s).lengths[:, None]
    values = np.zeros((2, s.num_constraints + len(s.elastic), X_q.shape[1]))
    size = np.maximum(np.abs(lengths * X_q).max(axis=0), 1e-300)
    steps = _DIFFERENCE_STEP * length / size
    X_q, X_v = (np.where(np.abs(X) > _ZERO * np.abs(X).max(axis=0), X, 0.0) for X in (X_q, X_v))
    affected = _affected(s, (X_q != 0.0) | (X_v != 0.0))
    for group in _groups(affected):
        moves, speeds = (X[:, group] @ steps[group] for X in (X_q, X_v))
        for side, sign in enumerate((1.0, -1.0)):
            nearby.move(eqs.q, sign * moves)
            nearby.v[:] = eqs.v + sign * speeds
            nearby.update_poses(t)
            steady = steady_accelerations(nearby, s.rigid)[s.elastic]
            bias: Array = np.zeros(0)
            if s.num_constraints:
                _, bias = nearby.constraint_rates(t)
            values[side][:, group] = np.concatenate([bias, steady])[:, None]
    derivative = np.where(affected, values[0] - values[1], 0.0) / (2 * steps)
    return derivative[: s.num_constraints], derivative[s.num_constraints :]


def _affected(system: System, moved: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which results of `_differences` (nc + n, columns) motions affect.

    A constraint depends on the motions of two bodies, an elastic acceleration on those of one.

    Args:
        system: The mechanism.
        moved: Whether a column moves a coordinate, (nv, columns).
    """
    s, of_rate = system, np.zeros(system.num_velocities, dtype=np.int64)
    bodies = np.zeros((len(s.bodies), moved.shape[1]), dtype=bool)
    for k, part in enumerate(s.v_slices):
        bodies[k], of_rate[part] = moved[part].any(axis=0), k
    entries = bodies[s.frame_body[s.first]] | bodies[s.frame_body[s.second]]
    return np.concatenate([entries[s.row_entry], bodies[of_rate[s.elastic]]])


def _groups(affected: NDArray[np.bool_]) -> list[list[int]]:
    """Return groups of columns that have no nonzero row in common."""
    groups: list[tuple[list[int], NDArray[np.bool_]]] = []
    for j, rows in enumerate(affected.T):
        for members, taken in groups:
            if not (taken & rows).any():
                members.append(j)
                taken |= rows
                break
        else:
            groups.append(([j], rows.copy()))
    return [members for members, _ in groups]
