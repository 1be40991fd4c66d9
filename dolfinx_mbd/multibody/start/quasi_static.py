"""The quasi-static start: elastic coordinates in balance with the forces of the motion.

The elastic coordinates η are the unknowns. The positions q of the other coordinates follow from
the constraints, their velocities v from Φ̇ = 0, accelerations a and multipliers λ from Φ̈ = 0 and
the equations of motion at η̈ = 0; what is left are the elastic rows f(η) = 0. Newton's method uses
the derivative of f along all of them,

    df/dη = (K X_q + C X_v + M X_a + Bᵀ X_λ) of the elastic rows,

where the columns X are the derivatives of q, v, a and λ to η, from the differentiated constraints
and equations of motion. Corrections are shortened until the next one, with the same derivative, is
smaller (Deuflhard's natural monotonicity test). If that fails, the loads are applied in steps:
p f(η) + (1 − p) K₀ (η − η₀) = 0 for p from 0 to 1, which is the equilibrium of a body that is 1/p
times as stiff.

References:
    P. Deuflhard, Newton Methods for Nonlinear Problems, Springer 2004, chapters 3 and 5.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, lu_factor, lu_solve

from dolfinx_mbd.errors import ModelRangeWarning, SolverError, warn
from dolfinx_mbd.multibody.assembly.assembler import Assembler, AssemblyError, extent
from dolfinx_mbd.multibody.assembly.rates import rate_rows, saddle, steady_accelerations
from dolfinx_mbd.multibody.model.protocol import BodyState
from dolfinx_mbd.multibody.stepping.convergence import Measure

__all__ = ["Balance", "EquilibriumError"]

Array = NDArray[np.float64]
Restore = Callable[[Assembler, float, Array, Mapping[str, float]], None]

_TOLERANCE = 1e-11  # of the forces on a body
_ITERATIONS = 30
_SHORTEST = 1e-3  # part of a correction
_FAST = 0.1  # contraction up to which the derivative is used again
_TURN = 0.3  # longest correction, rad, and in parts of the mechanism's length
_LEAST_LOAD = 1e-3  # smallest increase of p
_SMALL = 1e-6  # of the mechanism's length: deformations that count as none
_DIFFERENCE = 1e-5  # of the mechanism's length: displacements of difference quotients


class EquilibriumError(SolverError):
    """No equilibrium was found.

    Attributes:
        load: Part of the loads (0 to 1) up to which a quasi-static start has an equilibrium; None
            if the error is not about such a start.
    """

    def __init__(self, message: str, *, load: float | None = None) -> None:
        super().__init__(message)
        self.load = load


class _Stalled(Exception):
    """Newton's method does not converge from where it started."""


class Balance:
    """The balance of the elastic coordinates with the motion at a time.

    Args:
        at: The point of evaluation; its coordinates are changed.
        t: Time, s.
        restore: Called with the point, a time, velocities (nv,) and rates of joints: sets all but
            the elastic coordinates so that the constraints and their derivatives are fulfilled,
            with the rates of the joints and η̇ of the velocities, and η̈ = 0.
        rates: Rates of joints by name.
    """

    def __init__(
        self, at: Assembler, t: float, restore: Restore, rates: Mapping[str, float]
    ) -> None:
        self._at, self._t, self._restore, self._rates = at, t, restore, rates
        s = at.system
        self._measure = Measure(s)
        self._length = extent(at)
        self._bodies = [
            (
                body,
                slice(q.stop - body.num_elastic, q.stop),
                slice(v.stop - body.num_elastic, v.stop),
            )
            for body, q, v in zip(s.bodies, s.q_slices, s.v_slices, strict=True)
            if body.num_elastic
        ]
        self._v = at.v.copy()
        self._columns = np.zeros((s.num_velocities, len(s.elastic)))
        self._factor: tuple[Array, Any] | None = None
        self._load = 1.0
        self._start = self._elastic()
        self._stiffness: Array = np.zeros((0, 0))

    def settle(self, v: Array) -> None:
        """Find the balance next to the point of evaluation.

        Args:
            v: Velocities (nv,): those of the elastic coordinates, and from which the others differ
                least.

        Raises:
            EquilibriumError: If there is none.
        """
        self._v, start, self._load = v, self._at.q.copy(), 1.0
        self._restore(self._at, self._t, v, self._rates)
        try:
            self._newton()
        except _Stalled:
            self._at.q[:] = start
            self._ramp()

    def settle_along(self, v: Array) -> None:
        """Find the balance with elastic rates, or stay at the balance without them.

        It stays if the balance with the rates is another one, as near an unstable balance, whose
        rates have no meaning.

        Args:
            v: Velocities (nv,) as those of `settle`, with elastic rates.
        """
        q, before, slow = self._at.q.copy(), self._elastic(), self._v
        try:
            self.settle(v)
            change = self._size(self._elastic() - before)
            if change <= 0.5 * max(self._size(before), _SMALL * self._length):
                return
        except (AssemblyError, EquilibriumError):
            pass
        self._at.q[:] = q
        self._restore(self._at, self._t, slow, self._rates)

    def rate(self) -> Array:
        """Return the rate of the elastic coordinates with which the balance moves, shape (n,).

        It is −(df/dη)⁻¹ ∂f/∂t, with a central difference of f along the motion of all others.
        """
        at, t, s = self._at, self._t, self._at.system
        # the motion of a thousandth of a radian, or (at rest, where a driver may run up) of 1e-5 s
        step = min(1e-5, 1e-3 / max(1e-3, float(np.abs(at.v[s.rigid]).max())))
        q, v, a = at.q.copy(), at.v.copy(), at.a.copy()
        v[s.elastic] = a[s.elastic] = 0.0
        rows = []
        for h in (step, -step):
            at.move(q, h * v + 0.5 * h * h * a)
            self._restore(at, t + h, v + h * a, {})
            at.residual(t + h)
            rows.append(at.rows[s.elastic].copy())
        at.q[:] = q
        self._restore(at, t, self._v, self._rates)
        slope = self._differentiate()
        self._warn_if_unstable(slope)
        return self._solve((rows[1] - rows[0]) / (2 * step))

    # ---- Newton's method ------------------------------------------------------------------------
    def _newton(self) -> None:
        force, error = self._evaluate()
        for _ in range(_ITERATIONS):
            if error <= 1.0:
                return
            fresh = self._factor is None
            if fresh:
                self._differentiate()
            step = self._solve(-force)
            if self._measure.is_round_off(self._columns @ step, self._length):
                return
            outcome = self._advance(step, _SHORTEST if fresh else 1.0)
            if outcome is not None:
                force, error, contraction = outcome
            elif fresh:
                raise _Stalled
            if outcome is None or contraction > _FAST:
                self._factor = None
        raise _Stalled

    def _advance(self, step: Array, shortest: float) -> tuple[Array, float, float] | None:
        """Move by a correction or a part of it.

        Return the force, its error and the contraction of the corrections, or None (and do not
        move) if no part of at least the shortest makes the next correction smaller.
        """
        at, start = self._at, self._at.q.copy()
        move, size = self._columns @ step, self._size(step)
        limit = (
            _TURN * max(self._length, 1.0) / max(float(np.abs(move[at.system.rigid]).max()), 1e-300)
        )
        part = min(1.0, limit)
        while np.isfinite(size) and part >= min(shortest, limit):
            try:
                at.move(start, part * move)
                self._restore(at, self._t, self._v, self._rates)
                force, error = self._evaluate()
                following = self._size(self._solve(-force))
                if error <= 1.0 or following <= (1.0 - 0.5 * part) * size:
                    return force, error, following / size if part == 1.0 else 1.0
            except AssemblyError:
                pass
            part *= 0.5
        at.q[:] = start
        self._restore(at, self._t, self._v, self._rates)
        self._evaluate()
        return None

    def _ramp(self) -> None:
        """Apply the loads in steps."""
        at, t = self._at, self._t
        self._start = self._elastic()
        self._stiffness = self._at_rest()
        good, done, increase = at.q.copy(), 0.0, 0.5
        while done < 1.0:
            self._load = min(1.0, done + increase)
            self._factor = None
            try:
                self._restore(at, t, self._v, self._rates)
                self._newton()
            except (_Stalled, AssemblyError):
                increase *= 0.25
                at.q[:] = good
                if increase < _LEAST_LOAD:
                    raise EquilibriumError(self._failure(done), load=done) from None
                continue
            good, done, increase = at.q.copy(), self._load, 2.0 * increase

    def _failure(self, load: float) -> str:
        names = " and ".join(repr(body.name) for body, *_ in self._bodies)
        return (
            f"there is no quasi-static equilibrium at t = {self._t:g} s: with more than "
            f"{100 * load:.3g} % of the forces of the motion and the loads, the deformation of "
            f"{names} finds no balance. The motion is too fast, or a load too large, for the "
            "stiffness of the body; simulate with elastic_start='undeformed'"
        )

    # ---- the elastic rows and their derivative --------------------------------------------------
    def _elastic(self) -> Array:
        return np.concatenate([self._at.q[q] for _, q, _ in self._bodies])

    def _evaluate(self) -> tuple[Array, float]:
        """Return the elastic rows (n,), and the greatest relative to a body's forces."""
        at = self._at
        at.residual(self._t)
        force = at.rows[at.system.elastic].copy()
        if self._load < 1.0:
            force *= self._load
            force += (1.0 - self._load) * (self._stiffness @ (self._elastic() - self._start))
        if not np.isfinite(force).all():
            raise AssemblyError(f"forces at t = {self._t:g} s are not finite")
        error, first = 0.0, 0
        for body, _, v in self._bodies:
            largest = float(np.abs(force[first : first + body.num_elastic]).max())
            error = max(error, largest / max(float(at.scale[v].max()), 1e-300) / _TOLERANCE)
            first += body.num_elastic
        return force, error

    def _at_rest(self) -> Array:
        """Return the elastic stiffness of the bodies at rest, shape (n, n)."""
        at, gravity = self._at, np.zeros(3)
        blocks = []
        for body, q, _ in self._bodies:
            own = at.q[q.stop - body.num_coordinates : q.stop]
            v, n = np.zeros(body.num_velocities), body.num_elastic
            wrenches = np.zeros((len(body.frame_names), 6))
            state = BodyState(self._t, own, v, v, gravity, wrenches)
            blocks.append(body.tangent(state)[0][-n:, -n:])
        return block_diag(*blocks)

    def _differentiate(self) -> Array:
        """Set the factors of df/dη and the derivatives of all coordinates to η; return df/dη."""
        at = self._at
        columns, slope = elastic_derivative(at, self._t, self._rates, self._length)
        if self._load < 1.0:
            slope = self._load * slope + (1.0 - self._load) * self._stiffness
        self._columns = columns
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # (a singular matrix gives corrections not finite)
            self._factor = lu_factor(slope, check_finite=False)
        return slope

    def _warn_if_unstable(self, slope: Array) -> None:
        """Warn if a direction exists in which the forces drive the bodies off the balance."""
        least = float(np.linalg.eigvals(np.linalg.solve(self._at_rest(), slope)).real.min())
        if least < 0.0:
            names = " and ".join(repr(body.name) for body, *_ in self._bodies)
            warn(
                ModelRangeWarning(
                    f"the quasi-static start at t = {self._t:g} s is an unstable equilibrium: the "
                    f"forces of the motion exceed the elastic stiffness of {names} ({least:.3g} "
                    "of it is left in one direction). Only gyroscopic forces can keep the body "
                    "there; a slower motion or a stiffer body would be stable",
                    quantity="static stiffness",
                    value=least,
                    limit=0.0,
                )
            )

    def _solve(self, force: Array) -> Array:
        assert self._factor is not None
        return np.asarray(lu_solve(self._factor, force, check_finite=False))

    def _size(self, step: Array) -> float:
        """Size of a correction: of its displacements."""
        return float(np.linalg.norm(self._measure.lengths[self._at.system.elastic] * step))


def elastic_derivative(
    at: Assembler, t: float, rates: Mapping[str, float], length: float
) -> tuple[Array, Array]:
    """Return X_q (nv, n) and df/dη (n, n) at a restored point of evaluation.

    Derivatives of Φ̈ at zero accelerations are central differences; all others are exact.
    """
    s = at.system
    e, r, n = s.elastic, s.rigid, len(s.elastic)
    at.residual(t)
    tangent = at.tangent(t)
    K, C, M, B = tangent.K, tangent.C, tangent.M, tangent.B
    X = np.zeros((3, s.num_velocities, n))  # of q, v, a
    X[0, e] = np.eye(n)
    if len(B):
        X[0, r] = -np.linalg.lstsq(B[:, r], B[:, e], rcond=1e-10)[0]
    inertia, none = M[np.ix_(r, r)], np.zeros((len(r), n))
    at.update_velocities()
    rows = np.concatenate([B, rate_rows(at, rates)])
    slopes = [at.axis_rate_slope(name, s.joint(name).axis_by_default) for name in rates]
    if len(rows):
        slope = np.concatenate([at.constraint_slopes(at.v, t), *(row[None] for row in slopes)])
        X[1, r] = saddle(inertia, rows[:, r], none, -slope @ X[0])[0]
    bias, X[2, e] = _differences(at, t, X, length)
    below = -(bias + at.constraint_slopes(at.a) @ X[0] + B[:, e] @ X[2, e])
    right = (K @ X[0] + C @ X[1] + M @ X[2])[r]
    X[2, r], forces = saddle(inertia, B[:, r], -right, below)
    return X[0], (K @ X[0] + C @ X[1] + M @ X[2] + B.T @ forces)[e]


def _differences(at: Assembler, t: float, X: Array, length: float) -> tuple[Array, Array]:
    """Derivatives of Φ̈ at zero accelerations (nc, n), and of steady elastic accelerations (n, n).

    Differences along the columns of X_q and X_v, of displacements that are a small part of the
    length of the mechanism.
    """
    s = at.system
    beside = Assembler(s)
    beside.angles[:] = at.angles
    lengths = Measure(s).lengths[:, None]
    out = np.zeros((2, s.num_constraints + len(s.elastic), X.shape[2]))
    size = np.maximum(np.abs(lengths * X[0]).max(axis=0), 1e-300)
    steps = _DIFFERENCE * length / size
    for j, h in enumerate(steps):
        for side, sign in enumerate((1.0, -1.0)):
            beside.move(at.q, sign * h * X[0, :, j])
            beside.v[:] = at.v + sign * h * X[1, :, j]
            beside.update_poses(t)
            steady = steady_accelerations(beside, s.rigid)[s.elastic]
            bias = beside.constraint_rates(t)[1] if s.num_constraints else np.zeros(0)
            out[side, :, j] = np.concatenate([bias, steady])
    slope = (out[0] - out[1]) / (2 * steps)
    return slope[: s.num_constraints], slope[s.num_constraints :]
