"""Small motions of an assembled mechanism: frequencies, damping ratios, modes, stability.

About an equilibrium, or about a steady motion in axes that turn with the mechanism, the equations
of motion are linear with constant coefficients
(:mod:`dolfinx_mbd.multibody.analyses.small_motions`).  The multipliers are projected out with the
null space of the constraints; the stiffness keeps what the reactions add (the second derivatives of
the constraints times the multipliers), so that a pendulum swings and a compressed strut buckles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import choice, instance, integer, vector
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.multibody.analyses.small_motions import (
    Axes,
    SmallMotions,
    free_directions,
    move_steadily,
    multipliers,
    small_motions,
    steady_rates,
)
from dolfinx_mbd.multibody.assembly.assembler import Assembler, extent
from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.start.consistent_state import check_state
from dolfinx_mbd.multibody.stepping.convergence import row_kinds

__all__ = ["LinearizedSystem", "SteadyError", "linearize"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_BALANCE = 1e-6  # of the forces that act: what may be left unbalanced in a steady state
_CONSTANT = 1e-7  # of the largest coefficient: what may change along a steady motion
_ZERO = 1e-7  # of the largest pole: double zeros of rigid motion come out as sqrt(round-off)
_GROWTH = 1e-9  # of the largest pole: real parts below are round-off


class SteadyError(SolverError, ValueError):
    """A state is neither an equilibrium nor a steady motion."""


@dataclass(frozen=True, eq=False)
class LinearizedSystem:
    """M z̈ + (C + G) ż + K z = 0 in the m coordinates that the constraints leave, and its poles.

    Attributes:
        system: The mechanism.
        state: What it is linearized about.
        mass: M, shape (m, m).
        damping: C, the symmetric part of what multiplies ż, shape (m, m).
        gyroscopic: G, the skew part, shape (m, m).
        stiffness: K with all geometric parts, shape (m, m); not symmetric where forces follow the
            motion.
        basis: Increments of all coordinates per unit of z, shape (nv, m): translations in global,
            rotations in body components, elastic coordinates.
        axes: ``body``, ``global`` or ``given``: the axes in which z has constant coefficients.
        poles: λ of z = e^{λt}, 1/s, those with Im λ ≥ 0 by |λ|, shape (p,).
        modes: Increments of all coordinates of each pole, largest component 1, shape (nv, p).
    """

    system: SystemData
    state: State
    mass: Array
    damping: Array
    gyroscopic: Array
    stiffness: Array
    basis: Array
    axes: str
    poles: Complex
    modes: Complex

    @property
    def frequencies(self) -> Array:
        """|λ|/2π of each pole, shape (p,), Hz."""
        return np.abs(self.poles) / (2 * np.pi)

    @property
    def damping_ratios(self) -> Array:
        """−Re λ/|λ| of each pole, shape (p,); 0 for λ = 0, ±1 for a real pole."""
        size = np.abs(self.poles)
        return 0.0 - np.where(size > 0, self.poles.real / np.where(size > 0, size, 1.0), 0.0)

    @property
    def stability(self) -> Literal["unstable", "neutral", "stable", "asymptotically stable"]:
        """What a small disturbance does.

        It grows (unstable); stays or drifts along a motion that nothing resists (neutral: a pole
        is zero); stays as small (stable); or dies out (asymptotically stable).
        """
        limit = _GROWTH * np.abs(self.poles).max(initial=0.0)
        if (self.poles.real > limit).any():
            return "unstable"
        if (self.poles == 0).any():
            return "neutral"
        return "stable" if (self.poles.real >= -limit).any() else "asymptotically stable"

    def mode(self, body: str, number: int) -> Complex:
        """A body's part of a mode: (δR global, δφ body, δη), shape (6+n,)."""
        part = self.system.v_slices[self.system.body_index(body)]
        return self.modes[part, integer("number", number, low=0, high=self.modes.shape[1] - 1)]

    def summary(self) -> str:
        """The poles as a table, with the body that moves most in kinetic energy."""
        at = Assembler(self.system)
        at.q[:], at.v[:], at.angles[:] = self.state.q, self.state.v, self.state.angles
        at.residual(self.state.time)
        M = at.tangent(self.state.time).M
        lines = [f"{self.stability}; {len(self.mass)} coordinates ({self.axes} axes)"]
        lines.append(f"{'':>3}{'Hz':>14}{'damping':>10}{'pole, 1/s':>28}  mostly")
        rows = zip(self.poles, self.frequencies, self.damping_ratios, strict=True)
        for k, (pole, frequency, ratio) in enumerate(rows):
            shares = [
                float(np.real(self.modes[s, k].conj() @ M[s, s] @ self.modes[s, k]))
                for s in self.system.v_slices
            ]
            name = self.system.bodies[int(np.argmax(shares))].name
            value = f"{pole.real:.5g} {pole.imag:+.5g}i"
            lines.append(f"{k + 1:>3}{frequency:>14.6g}{ratio:>10.4f}{value:>28}  {name}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<LinearizedSystem: {len(self.poles)} poles, {self.stability}>"


def linearize(
    system: SystemData,
    state: State,
    *,
    axes: Literal["auto", "body", "global"] | ArrayLike = "auto",
) -> LinearizedSystem:
    """Linearize a mechanism about an equilibrium or a steady motion.

    Positions and velocities are taken from the state; accelerations and reactions are those of the
    steady motion, and the state is refused if it is none.  Loads that depend on time are held at
    the state's time; so is a driver of a mechanism at rest.  Constraints that repeat each other may
    stay.

    Args:
        system: The mechanism.
        state: What to linearize about, of :func:`~dolfinx_mbd.multibody.analyses.equilibrium`,
            :func:`~dolfinx_mbd.multibody.consistent_state` or a simulation.
        axes: In which axes the motion is steady and its coefficients constant.  ``body``: those of
            each body, for a mechanism that turns as a whole.  ``global``: for rotors that are round
            on supports that stand.  Or the angular velocity of other axes, global components,
            shape (3,), rad/s: for a top in steady precession.  ``auto``: the first of ``body`` and
            ``global`` in which it is.

    Raises:
        SteadyError: If the forces do not balance, or the coefficients change along the motion.
        ValueError: If the state is that of another system, or nothing is free to move.
    """
    instance("system", system, SystemData)
    check_state("state", state, system)
    at = Assembler(system)
    at.q[:], at.v[:], at.angles[:] = state.q, state.v, state.angles
    bodies, fixed = Axes.of_bodies(system, at.q, at.v), Axes.common(system, np.zeros(3))
    choices = {"body": bodies, "global": fixed}
    if not isinstance(axes, str):
        choices = {"given": Axes.common(system, vector("axes", axes, unit="rad/s"))}
    elif choice("axes", axes, ("auto", "body", "global")) != "auto":
        choices = {axes: choices[axes]}
    reasons = []
    for name, chosen in choices.items():
        at.q[:], at.v[:] = state.q, state.v
        try:
            motions, basis = _steady(at, state.time, chosen)
        except SteadyError as error:
            reasons.append(f"in {name} axes {error}")
            continue
        return _solved(system, state, name, motions, basis)
    raise SteadyError(
        f"the state at t = {state.time:g} s is no equilibrium and no steady motion: "
        f"{'; '.join(reasons)}. Linearize about equilibrium(system), or a steady rotation"
    )


def _steady(at: Assembler, t: float, axes: Axes) -> tuple[SmallMotions, Array]:
    """Coefficients and free motions, after a check that the motion is steady in the axes."""
    s = at.system
    motions = _balanced(at, t, axes)
    basis = free_directions(motions)
    if not basis.shape[1]:
        raise InputError("nothing is free to move: the constraints hold every coordinate")
    speeds = np.abs(at.v)
    if not speeds.any():
        return motions, basis
    if s.num_constraints:
        rate, _ = at.constraint_rates(t)
        off = np.abs(motions.constraints @ (motions.resolve.T @ at.v) + rate)
        row = int(np.argmax(off))
        if off[row] > _BALANCE * speeds.max():
            raise SteadyError(f"{s.constraint_name(row)} moves at {off[row]:.3g} (m/s or rad/s)")
    if len(s.elastic) and speeds[s.elastic].max() > _BALANCE * speeds.max():
        raise SteadyError("bodies are changing their shape")
    fastest = float(speeds[s.rigid].max())
    step = 0.3 / fastest
    first = motions.reduced(basis)
    later = move_steadily(at, axes, step)
    moved = _balanced(at, t + step, later)
    if s.num_constraints:
        size = np.linalg.norm(moved.constraints, axis=1)[:, None] * np.linalg.norm(basis, axis=0)
        if (np.abs(moved.constraints @ basis) > _CONSTANT * size).any():
            raise SteadyError("the constraints change along the motion")
    for power, name, one, two in zip(
        range(3), ("inertia", "damping", "stiffness"), first, moved.reduced(basis), strict=True
    ):
        size = max(fastest**power, np.abs(one).max(), np.abs(two).max())
        if np.abs(one - two).max() > _CONSTANT * size:
            raise SteadyError(f"the {name} changes along the motion")
    return motions, basis


def _balanced(at: Assembler, t: float, axes: Axes) -> SmallMotions:
    """Coefficients with the accelerations and reactions of a steady motion, which must balance."""
    s = at.system
    at.a[:] = steady_rates(at, axes)
    at.lam[:] = 0.0
    at.lam[:] = multipliers(at, t, small_motions(at, t, axes))
    motions = small_motions(at, t, axes)
    length = extent(at)
    if len(at.values) and np.abs(at.values).max() > _BALANCE * length:
        row = int(np.argmax(np.abs(at.values)))
        raise SteadyError(f"{s.constraint_name(row)} is off by {abs(at.values[row]):.3g}")
    row, share = unbalanced(at)
    if share > _BALANCE:
        raise SteadyError(
            f"{s.row_name(row)} is not in balance ({abs(at.rows[row]):.3g} N or N m are left)"
        )
    return motions


def unbalanced(at: Assembler) -> tuple[int, float]:
    """Return the row least in balance, and what is left there over the forces on its body.

    These are the greatest sum of magnitudes of terms among the body's rows of the same kind.
    """
    s = at.system
    worst, row = 0.0, 0
    for body, part in zip(s.bodies, s.v_slices, strict=True):
        kinds = row_kinds(body)
        for kind in np.unique(kinds):
            rows = part.start + np.flatnonzero(kinds == kind)
            share = np.abs(np.nan_to_num(at.rows[rows], nan=np.inf))
            share /= max(float(at.scale[rows].max()), 1e-300)
            if share.max() > worst:
                worst, row = float(share.max()), int(rows[np.argmax(share)])
    return row, worst


def _solved(
    system: SystemData, state: State, axes: str, motions: SmallMotions, basis: Array
) -> LinearizedSystem:
    M, rate, K = motions.reduced(basis)
    poles, vectors = _poles(M, rate, K)
    modes = motions.resolve @ (basis @ vectors)
    for k in range(modes.shape[1]):
        modes[:, k] /= modes[np.argmax(np.abs(modes[:, k])), k]
    return LinearizedSystem(
        system=system,
        state=state,
        mass=M,
        damping=0.5 * (rate + rate.T),
        gyroscopic=0.5 * (rate - rate.T),
        stiffness=K,
        basis=motions.resolve @ basis,
        axes=axes,
        poles=poles,
        modes=modes,
    )


def _poles(M: Array, rate: Array, K: Array) -> tuple[Complex, Complex]:
    """Poles with Im λ ≥ 0 by size, and their vectors (m, p)."""
    m = len(M)
    size = float(np.abs(K).max())
    scale = max(np.sqrt(size), float(np.abs(rate).max()), 1e-300)
    symmetric = np.abs(K - K.T).max() <= 1e-9 * size
    if symmetric and np.abs(rate).max() <= 1e-13 * scale:
        squares, real = scipy.linalg.eigh(0.5 * (K + K.T), M)
        squares[np.abs(squares) <= _ZERO**2 * max(np.abs(squares).max(), 1e-300)] = 0.0
        roots = np.sqrt((-squares).astype(complex))  # i ω, or the growth of an instability
        twice = np.flatnonzero(squares < 0)  # real poles come as ± pairs
        values = np.concatenate([roots, -roots[twice]])
        vectors = np.concatenate([real, real[:, twice]], axis=1).astype(complex)
    else:
        inverse = np.linalg.inv(M)
        A = np.zeros((2 * m, 2 * m))
        A[:m, m:] = scale * np.eye(m)
        A[m:, :m] = -inverse @ K / scale
        A[m:, m:] = -inverse @ rate
        values, whole = np.linalg.eig(A)
        values = values.astype(complex)
        values[np.abs(values) <= _ZERO * np.abs(values).max(initial=0.0)] = 0.0
        keep = values.imag >= 0
        values, vectors = values[keep], whole[:m, keep].astype(complex)
        good = _independent(values == 0, vectors)
        values, vectors = values[good], vectors[:, good]
    order = np.argsort(np.abs(values), kind="stable")
    return values[order], vectors[:, order]


def _independent(zero: NDArray[np.bool_], vectors: Complex) -> NDArray[np.bool_]:
    """All poles but the second of a double zero (a motion that nothing resists)."""
    keep = np.ones(len(zero), dtype=bool)
    basis: Complex = np.zeros((len(vectors), 0), dtype=complex)
    for k in np.flatnonzero(zero):
        size = float(np.linalg.norm(vectors[:, k]))
        rest = vectors[:, k] / max(size, 1e-300)
        rest = rest - basis @ (basis.conj().T @ rest)
        left = float(np.linalg.norm(rest))
        keep[k] = left > 1e-4
        if keep[k]:
            basis = np.column_stack([basis, rest / left])
    return keep
