"""Equations of a periodic motion as a Fourier series, at equally spaced instants of the period.

The motion of each body is that of a reference motion, which turns at a constant speed about a fixed
axis of the body, followed by an increment x(t) of its coordinates: a displacement in global
components, a rotation vector in the turned axes, and elastic coordinates. x has the period T and H
harmonics. It is determined by its values x_k at N = 2H + 1 instants; ẋ = D x is the derivative of
the trigonometric polynomial through these values, a matrix product.

The angular velocity is ω = exp(x)ᵀΩ + T(x) ẋ for the reference Ω. Velocities v and accelerations
D v then follow. The unknowns are x_k and the multipliers λ_k; the equations of motion and the
constraints hold at the instants. Newton's method solves for the N m increments z_k that the
constraints permit. With Z_k as a basis of these increments and P = ∂v/∂z,

    Z_kᵀ (K_k Z_k δ_kj + C_k P_kj + M_k (D P)_kj) z_j = −Z_kᵀ f_k.

References:
    K. C. Hall, J. P. Thomas, W. S. Clark, Computation of unsteady nonlinear flows in cascades using
    a harmonic balance technique, AIAA Journal 40 (2002).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import scipy.linalg

from dolfinx_mbd.analyses.small_motions import increment_between
from dolfinx_mbd.analyses.unbalanced_forces import unbalanced
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.response.linearized import null_space
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.convergence import count_groups, row_groups
from dolfinx_mbd.kernels.rotations import exp_rotation, skew, tangent, tangent_derivative
from dolfinx_mbd.mechanism.system import State, System

__all__ = ["HarmonicEquations", "SingularEquations", "reference_spins"]

_RANK = 1e-10  # singular values of constraints below this fraction of the largest are ignored
_NEAR = 1e-6  # unbalanced force near which round-off may matter
_FREE = 1e-13  # reciprocal condition number below which the equations are singular


class SingularEquations(ValueError):
    """Error of singular equations.

    Its argument is the index of the coordinate that is free. If the number of free motions changes
    within the period, it is the coordinate with the largest unbalanced force.
    """


def reference_spins(system: System, states: Sequence[State], period: float) -> Array:
    """Return the constant angular velocities of the bodies in a period, as velocities (nv,).

    A body has one if it completes at least one turn.
    """
    spins = np.zeros(system.num_velocities)
    moves = [increment_between(system, a.q, b.q) for a, b in pairwise(states)]
    total = np.sum(moves, axis=0)
    for part in _rotations(system):
        angle = float(np.linalg.norm(total[part]))
        revolutions = round(angle / (2 * np.pi))
        if revolutions:
            spins[part] = 2 * np.pi * revolutions / period * total[part] / angle
    return spins


def _rotations(system: System) -> list[slice]:
    """Return the indices of the angular velocity of each body that has one."""
    return [
        slice(part.start + 3, part.start + 6)
        for body, part in zip(system.bodies, system.v_slices, strict=True)
        if body.num_coordinates > body.num_velocities
    ]


class HarmonicEquations:
    """The equations of a period, see the module.

    Args:
        system: The mechanism.
        states: States of a period of a first approximation, including its end.
        stride: Number of states for each instant.
        spins: Angular velocities of the reference motion, see `reference_spins`.

    Attributes:
        period: Period, s.
        time: The instants, (N,), s.
        derivative: D, (N, N), 1/s.
        x: Increments at the instants, (N, nv). States of loads have their values.
        lam: Multipliers, (N, nc).
        error: Largest unbalanced force, relative to the acting forces.
        violation: Largest violation of a constraint, m or rad.
        row: Index of the coordinate with the largest unbalanced force.
    """

    def __init__(self, system: System, states: Sequence[State], stride: int, spins: Array) -> None:
        self.system, self.spins = system, spins
        start, end = states[:-1:stride], states[-1]
        self.period, self.time = end.time - start[0].time, np.array([s.time for s in start])
        self.eqs, self.origin = Assembler(system), start[0].q.copy()
        self.fine_angles = np.array([state.angles for state in states])
        self.angles = self.fine_angles[:-1:stride]
        count = len(start)
        self.derivative = derivative_matrix(count, self.period)
        values = [self._increment(state) for state in [*start, end]]
        drift = np.arange(count)[:, None] / count * (values[-1] - values[0])
        self.x = np.array(values[:-1]) - drift
        self.lam = np.array([state.lam for state in start])
        self.error, self.violation, self.row = np.inf, np.inf, 0

    def _increment(self, state: State) -> Array:
        """Return the increment (nv,) from the reference motion to a state."""
        x = increment_between(self.system, self._reference(state.time), state.q)
        x[self.system.states] = state.v[self.system.states]
        return x

    def _reference(self, t: float) -> Array:
        """Return the coordinates of the reference motion."""
        self.eqs.move(self.origin, (t - float(self.time[0])) * self.spins)
        return self.eqs.q.copy()

    def velocities(self, x: Array, rate: Array) -> Array:
        """Return the velocities (..., nv) of increments and their rates."""
        v = rate.copy()
        v[..., self.system.states] = x[..., self.system.states]
        for part in _rotations(self.system):
            for k in np.ndindex(x.shape[:-1]):
                theta = np.ascontiguousarray(x[k][part])
                v[k][part] = tangent(theta) @ rate[k][part]
                v[k][part] += exp_rotation(theta).T @ self.spins[part]
        return v

    def put(self, t: float, x: Array, v: Array, a: Array, lam: Array, angles: Array) -> None:
        """Set the assembler to a point of the motion."""
        eqs, move = self.eqs, x.copy()
        move[self.system.states] = 0.0
        eqs.move(self._reference(t), move)
        eqs.v[:], eqs.a[:], eqs.lam[:], eqs.angles[:] = v, a, lam, angles

    def at_parameter(self, system: System, period: float) -> HarmonicEquations:
        """Return the equations of a similar mechanism with another period for the same motion."""
        other, ratio = copy.copy(self), period / self.period
        other.system, other.eqs, other.period = system, Assembler(system), period
        other.time, other.spins = self.time * ratio, np.asarray(self.spins / ratio)
        other.derivative = np.asarray(self.derivative / ratio)
        other.x, other.lam = self.x.copy(), self.lam.copy()
        return other

    def at_instants(self, count: int) -> HarmonicEquations:
        """Return the equations of the same motion at another odd number of instants."""
        other = copy.copy(self)
        other.time = self.time[0] + self.period * np.arange(count) / count
        other.derivative = derivative_matrix(count, self.period)
        other.x, other.lam = interpolated(self.x, count), interpolated(self.lam, count)
        steps = len(self.fine_angles) - 1
        fine = np.arange(steps + 1) / steps
        columns = [np.interp(np.arange(count) / count, fine, x) for x in self.fine_angles.T]
        other.angles = np.reshape(columns, (-1, count)).T
        return other

    def disturbances(self) -> tuple[tuple[Array, Array, Array], Array, Array, int]:
        """Return A₀, A₁, A₂ (N m, N m) of `harmonic_stability`, X (N, nv, m), D, number of motions.

        The states of loads follow after the free motions in each group of m unknowns.
        """
        self.evaluate()
        states, instants, D = self.system.states, np.arange(len(self.x)), self.derivative
        bases = []
        for k, _, _ in self._at_instants():
            free = len(self.x[0]) - len(states)
            B, M = self.eqs.constraint_matrix()[:, :free], self._M[k][:free, :free]
            basis = null_space(B, M) if len(B) else np.diag(np.diag(M) ** -0.5)
            bases.append(scipy.linalg.block_diag(basis, np.eye(len(states))))
        Z = np.array(bases)
        X, m = self._inverse @ Z, Z.shape[2]
        v_by_rate = np.zeros((len(instants), Z.shape[1], len(instants), m))
        v_by_rate[instants, :, instants] = self._by_rate @ X
        v_by_z = D[:, None, :, None] * np.einsum("kab,jbc->kajc", self._by_rate, X, optimize=True)
        v_by_z[instants, :, instants] += self._by_x @ Z

        def forces(stiffness: Array | None, speeds: Array | None, rates: Array | None) -> Array:
            """Return Zᵀ times the forces of displacements, speeds and their rates, (N m, N m)."""
            out = np.zeros_like(v_by_rate)
            if stiffness is not None:
                out[instants, :, instants] = stiffness @ Z
            if speeds is not None:
                out += np.einsum("kab,kbjc->kajc", self._C, speeds, optimize=True)
            if rates is not None:
                out += np.einsum("kab,kbjc->kajc", self._M, rates, optimize=True)
            return np.einsum("kab,kajc->kbjc", Z, out, optimize=True).reshape(
                len(instants) * m, len(instants) * m
            )

        # The rates of the velocities are (D + ∂/∂t) v: forces by powers of ∂/∂t
        D0, D1 = (np.tensordot(D, x, axes=(1, 0)) for x in (v_by_z, v_by_rate))
        matrices = (
            forces(self._K, v_by_z, D0),
            forces(None, v_by_rate, v_by_z + D1),
            forces(None, None, v_by_rate),
        )
        return matrices, X, D, m - len(states)

    def _at_instants(self) -> Iterator[tuple[int, float, Array]]:
        """Set the assembler to each instant; yield its index, its time and the rate of x."""
        rate = self.derivative @ self.x
        v = self.velocities(self.x, rate)
        a = self.derivative @ v
        for k, t in enumerate(map(float, self.time)):
            self.put(t, self.x[k], v[k], a[k], self.lam[k], self.angles[k])
            self.eqs.residual(t)
            yield k, t, rate[k]

    def unbalanced(self, t: float) -> tuple[int, float]:
        """Return the row of the largest residual, relative to the acting forces, and this ratio.

        Near the solution, the round-off of stiff springs is subtracted. With states of
        loads, the sizes of the terms of their equations count, too.
        """
        groups = row_groups(self.system)
        sizes = np.full(count_groups(self.system), 1e-300)
        np.maximum.at(sizes, groups, self.eqs.scale)
        ratios = np.abs(np.nan_to_num(self.eqs.rows, nan=np.inf)) / sizes[groups]
        row = int(np.argmax(ratios))
        if len(self.system.states) or ratios[row] < _NEAR:
            return unbalanced(self.eqs, t)
        return row, float(ratios[row])

    def forces(self) -> Array:
        """Return the unbalanced forces (N, nv) for the given multipliers."""
        return np.array([self.eqs.rows.copy() for _ in self._at_instants()])

    def evaluate(self) -> None:
        """Compute forces and their derivatives; set the multipliers, `error` and `violation`."""
        eqs, states = self.eqs, self.system.states
        self.error, self.violation, self.row = 0.0, 0.0, 0
        per_instant, numbers_of_free_motions = [], set()
        for k, t, rate in self._at_instants():
            B = eqs.constraint_matrix()
            if len(B):
                self.lam[k] -= np.linalg.lstsq(B.T, eqs.rows, rcond=_RANK)[0]
                eqs.lam[:] = self.lam[k]
                eqs.residual(t)
            row, error = self.unbalanced(t)
            if not error <= self.error:
                self.error, self.row = error, row
            self.violation = max(self.violation, float(np.abs(eqs.values).max(initial=0.0)))
            tangents = eqs.tangent(t)
            T, by_x, by_rate = self._velocity_derivatives(self.x[k], rate)
            basis = null_space(B, tangents.M) if len(B) else np.diag(np.diag(tangents.M) ** -0.5)
            # small changes that remove the violations of the constraints, (nv,)
            fit = -np.linalg.lstsq(B, eqs.values, rcond=_RANK)[0] if len(B) else np.zeros(len(T))
            numbers_of_free_motions.add(basis.shape[1])
            inverse = np.linalg.inv(T)
            K = tangents.K.copy()
            K[:, states] = 0.0
            per_instant.append(
                (eqs.rows.copy(), K, tangents.C, tangents.M, by_x @ inverse, by_rate, inverse,
                 basis, fit)
            )  # fmt: skip
        if len(numbers_of_free_motions) > 1:
            raise SingularEquations(self.row)
        arrays = (np.array(column) for column in zip(*per_instant, strict=True))
        self._rows, self._K, self._C, self._M, self._by_x, self._by_rate, *rest = arrays
        self._inverse, self._basis, self._fit = rest

    def _velocity_derivatives(self, x: Array, rate: Array) -> tuple[Array, Array, Array]:
        """Return δξ/δx for small rotations ξ, ∂v/∂x and ∂v/∂ẋ, (nv, nv) each."""
        n, states = len(x), self.system.states
        T, by_x, by_rate = np.eye(n), np.zeros((n, n)), np.eye(n)
        by_x[states, states], by_rate[states, states] = 1.0, 0.0
        for part in _rotations(self.system):
            theta = np.ascontiguousarray(x[part])
            rotation_tangent = tangent(theta)
            T[part, part] = by_rate[part, part] = rotation_tangent
            by_x[part, part] = tangent_derivative(theta, np.ascontiguousarray(rate[part]))
            by_x[part, part] += skew(exp_rotation(theta).T @ self.spins[part]) @ rotation_tangent
        return T, by_x, by_rate

    def linear_system(self) -> tuple[Array, Array]:
        """Return the matrix (N m, N m) and the right-hand side of Newton's method for z."""
        D, Z = self.derivative, self._basis
        count, _, m = Z.shape
        instants = np.arange(count)
        moves = self._inverse @ Z
        P = D[:, None, :, None] * np.einsum("kab,jbc->kajc", self._by_rate, moves, optimize=True)
        P[instants, :, instants] += self._by_x @ Z
        DP = np.tensordot(D, P, axes=(1, 0))
        forces = np.einsum("kab,kbjc->kajc", self._C, P, optimize=True)
        forces += np.einsum("kab,kbjc->kajc", self._M, DP, optimize=True)
        forces[instants, :, instants] += self._K @ Z
        J = np.einsum("kab,kajc->kbjc", Z, forces, optimize=True)
        fit = self._fit
        speeds = _times(self._by_x, fit) + _times(self._by_rate, D @ _times(self._inverse, fit))
        rest = self._rows + _times(self._K, fit) + _times(self._C, speeds)
        rest += _times(self._M, D @ speeds)
        return J.reshape(count * m, count * m), -self.projected(rest)

    def projected(self, forces: Array) -> Array:
        """Return Z_kᵀ f_k, shape (N m,), of forces (N, nv)."""
        return np.asarray(np.einsum("kab,ka->kb", self._basis, forces).ravel())

    def change(self, z: Array, *, fitted: bool = True) -> Array:
        """Return the change (N, nv) of x; with `fitted`, one that meets the constraints."""
        small = _times(self._basis, z.reshape(len(self._basis), -1))
        return _times(self._inverse, small + self._fit if fitted else small)

    def coordinates(self, change: Array) -> Array:
        """Return z (N m,) of a change (N, nv) of x."""
        small = np.linalg.solve(self._inverse, change[:, :, None])
        return np.asarray((np.linalg.pinv(self._basis) @ small).ravel())

    def correction(self) -> Array:
        """Return the change (N, nv) of the increments by Newton's method."""
        matrix, right = self.linear_system()
        if len(right):
            lu, pivots, _ = scipy.linalg.lapack.dgetrf(matrix)
            size = float(np.abs(matrix).sum(axis=0).max())
            condition, _ = scipy.linalg.lapack.dgecon(lu, size)
            if not condition > _FREE:
                raise SingularEquations(self._free_row(matrix))
            right = scipy.linalg.lu_solve((lu, pivots), right)
        return self.change(right)

    def _free_row(self, matrix: Array) -> int:
        """Return the coordinate that moves most in the motion without resistance."""
        count, n, m = self._basis.shape
        free = np.linalg.svd(matrix)[2][-1].reshape(count, m, 1)
        return int(np.argmax(np.abs(self._basis @ free).max(axis=(0, 2))))


def _times(matrices: Array, vectors: Array) -> Array:
    """Return the products of matrices (N, a, b) and vectors (N, b)."""
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])


def derivative_matrix(count: int, period: float) -> Array:
    """Return the derivative (N, N) of the trigonometric polynomial through N odd points, 1/s."""
    k = np.arange(count)
    difference = k[:, None] - k
    sines = np.sin(np.pi * difference / count)
    np.fill_diagonal(sines, 1.0)
    D = np.where(difference % 2 == 0, 0.5, -0.5) / sines * 2 * np.pi / period
    np.fill_diagonal(D, 0.0)
    return np.asarray(D)


def interpolated(values: Array, count: int) -> Array:
    """Return the trigonometric polynomial through values (N, ...) at `count` ≥ N instants."""
    c = np.fft.rfft(values, axis=0)
    return np.asarray(np.fft.irfft(c, count, axis=0) * (count / len(values)))
