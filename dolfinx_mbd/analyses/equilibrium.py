"""Static equilibrium of a mechanism, at rest or in steady rotation, and sequences of equilibria.

The unknowns are the free motions of `small_motions`, with their unbalanced forces and stiffness.
Newton's method is used if the stiffness is positive definite. Otherwise |k| replaces the
eigenvalues k of the stiffness, so that the iteration moves towards a stable equilibrium and away
from unstable equilibria. Steps are bounded, and are shortened while they overshoot.

References:
    Y. Dauphin et al., Identifying and attacking the saddle point problem in high-dimensional
    non-convex optimization, 2014 (steps with |k|).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.analyses.linearization import constraint_speed, unbalanced
from dolfinx_mbd.analyses.mesh_equilibrium import mesh_equilibrium
from dolfinx_mbd.analyses.small_motions import (
    Axes,
    SmallMotions,
    balanced_motions,
    free_directions,
    steady_rates,
)
from dolfinx_mbd.checks import array, increasing, instance, integer, number, vector
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.start.position_assembly import assemble, coordinates
from dolfinx_mbd.dynamics.start.quasi_static import EquilibriumError
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.rotations import rotation_matrix
from dolfinx_mbd.mechanism.floating_body import FloatingBody
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.deformation_checks import check_deformation
from dolfinx_mbd.results.solution import Solution

Array = NDArray[np.float64]

_TURN = 0.3  # largest step, rad, or relative to the size of the mechanism
_CLOSED = 1e-9  # penetration at the end of a step to a contact, relative to the mechanism's size
_FLOOR = 1e-12  # eigenvalues of the stiffness below this fraction of the largest one count as zero


def equilibrium(
    system: System,
    *,
    t: float = 0.0,
    spin: ArrayLike | None = None,
    q: ArrayLike | None = None,
    angles: ArrayLike | None = None,
    tolerance: float = 1e-9,
    max_iterations: int = 200,
) -> State:
    """Find the equilibrium that a mechanism reaches from its initial position.

    Drivers and loads are evaluated at time t. If the initial position is an equilibrium, it is
    returned even if it is unstable; use `linearize` to determine its stability.

    Args:
        system: The mechanism; constraints may be redundant.
        t: Time, s.
        spin: Angular velocity of the whole mechanism about an axis through the global origin, shape
            (3,), rad/s. The spin causes centrifugal forces; by default the mechanism is at rest.
        q: Initial coordinates, shape (nq,); by default the initial coordinates of the bodies.
        angles: Initial rotations of the joints, shape (nj,), rad, by default zero. Full turns are
            counted from these rotations.
        tolerance: Largest unbalanced force, relative to the largest force, moment or elastic force
            on the same body.
        max_iterations: Maximum number of steps.

    Returns:
        The state with its reactions, at rest or rotating with the spin.

    Warns:
        ModelRangeWarning: A body deforms too much for the linear theory, or has no geometric
            stiffening and rotates too fast.

    Raises:
        EquilibriumError: No equilibrium was found; the message names the unbalanced equation.
        AssemblyError: The mechanism cannot be assembled.
        InputError: An argument is invalid, or the joints do not permit the spin.

    Example:
        >>> state = mbd.equilibrium(pendulum)
        >>> print(f"{np.degrees(state.angles[0]):.3f}°")
        -90.000°
    """
    instance("system", system, System)
    t = number("t", t, unit="s")
    omega = np.zeros(3) if spin is None else vector("spin", spin, unit="rad/s")
    number("tolerance", tolerance, positive=True, high=1.0)
    integer("max_iterations", max_iterations, low=1)
    at = Assembler(system)
    at.q[:] = coordinates(system, q)
    at.v[system.states] = system.initial_states
    if angles is not None:
        at.angles[:] = array("angles", angles, at.angles.shape)
    state = _search(at, t, omega, tolerance, max_iterations)
    check_deformation(system, [state])
    return state


def _search(
    at: Assembler, t: float, omega: Array, tolerance: float = 1e-9, max_iterations: int = 200
) -> State:
    """Return the equilibrium that is reached from the point of evaluation."""
    system = at.system
    if system.with_rigid_bodies is not system:
        if omega.any():
            raise InputError(
                "an equilibrium of a mechanism with bodies on their mesh is at rest; simulate the "
                "run-up to a spin with damping, or reduce the bodies",
                argument="spin",
                value=omega,
            )
        return mesh_equilibrium(at, t, tolerance)
    axes = Axes.common(system, omega)
    _restore(at, t)
    for _ in range(max_iterations):
        motions = _forces(at, t, axes)
        row, share = unbalanced(at, t)
        if share <= tolerance:
            _check_spin(at, t, omega)
            return at.state(t)
        basis = free_directions(motions)
        if not basis.shape[1]:
            break
        _advance(at, t, axes, motions, _step(motions, basis, at))
    raise EquilibriumError(
        f"no equilibrium at t = {t:g} s: {system.row_name(row)} is left with "
        f"{abs(at.rows[row]):.3g} (N or N m) unbalanced after {max_iterations} steps. Perhaps "
        "nothing resists a load, or the initial position (q) is too far from an equilibrium"
    )


def quasi_static_motion(
    system: System, times: Iterable[float], *, spin: ArrayLike | None = None
) -> Solution:
    """Find a sequence of equilibria for slowly changing drivers and loads, without inertia forces.

    Each equilibrium is computed from the previous one. Velocities and accelerations include the
    spin, but not the motion of the drivers.

    Args:
        system: The mechanism.
        times: Increasing times of the equilibria, s.
        spin: Angular velocity of the mechanism, see `equilibrium`; by default it is at rest.

    Returns:
        The equilibria as a solution.

    Raises:
        EquilibriumError: An equilibrium was not found; the message contains its time.
        InputError: There are no times, or they do not increase.

    Example:
        >>> run = mbd.analyses.quasi_static_motion(driven, [0.0, 0.1, 0.2])
        >>> print(run.joint("drive").moment[:, 2].round(3))  # 2 kg × 9.81 m/s² × 1 m × cos φ
        [19.62  19.229 18.071]
    """
    instance("system", system, System)
    omega = np.zeros(3) if spin is None else vector("spin", spin, unit="rad/s")
    at = Assembler(system)
    at.q[:] = coordinates(system)
    at.v[system.states] = system.initial_states
    states: list[State] = []
    for t in increasing("times", times, unit="s").tolist():
        states.append(_search(at, t, omega))
        at.angles[:] = states[-1].angles
    check_deformation(system, states)
    return Solution(system, states)


def _forces(at: Assembler, t: float, axes: Axes) -> SmallMotions:
    """Set velocities, accelerations and best-fit reactions; return the coefficients."""
    s, omega = at.system, axes.spin[0]
    at.v[: len(at.v) - len(s.states)] = 0.0
    for body, qs, vs in zip(s.bodies, s.q_slices, s.v_slices, strict=True):
        if isinstance(body, FloatingBody):
            q = at.q[qs]
            at.v[vs][:6] = *np.cross(omega, q[:3]), *(rotation_matrix(q[3:7]).T @ omega)
    at.a[:] = steady_rates(at, axes)
    return balanced_motions(at, t, axes)


def _step(motions: SmallMotions, basis: Array, at: Assembler) -> Array:
    """Return the increments (nv,) of a bounded Newton step.

    If the stiffness is not positive definite, its eigenvalues k are replaced by |k|. The states of
    loads are eliminated if their equations determine them as functions of the motion.
    """
    K = basis.T @ motions.statics @ basis
    force = basis.T @ (motions.resolve.T @ at.rows)
    count = K.shape[1] - len(motions.states)
    if len(motions.states):
        return _bounded(at, basis @ _step_with_states(K, force, count))
    return _bounded(at, basis @ _newton_step(K, force))


def _newton_step(K: Array, force: Array) -> Array:
    """Return the step to the equilibrium of a stiffness; eigenvalues k < 0 are replaced by |k|."""
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    largest = max(float(np.abs(values).max()), 1e-300)
    if values[0] > _FLOOR * largest:
        return np.asarray(np.linalg.solve(K, -force), dtype=float)
    floor = _FLOOR * max(largest, float(np.abs(force).max()))
    return np.asarray(vectors @ ((vectors.T @ -force) / np.maximum(np.abs(values), floor)))


def _step_with_states(K: Array, force: Array, count: int) -> Array:
    """Return a step of `count` motions and of the states of loads, which are the last unknowns."""
    by_states = K[count:, count:]
    singular = np.linalg.svd(by_states, compute_uv=False)
    if singular[-1] <= _FLOOR * max(singular[0], np.abs(K[count:]).max()):
        return np.asarray(np.linalg.lstsq(K, -force, rcond=_FLOOR)[0], dtype=float)
    follow = np.linalg.solve(by_states, K[count:, :count])
    rest = np.linalg.solve(by_states, force[count:])
    motion: Array = np.zeros(0)
    if count:
        part = K[:count, count:]
        motion = _newton_step(K[:count, :count] - part @ follow, force[:count] - part @ rest)
    return np.concatenate([motion, -rest - follow @ motion])


def _bounded(at: Assembler, increments: Array) -> Array:
    """Return increments (nv,), scaled if a displacement or rotation is large."""
    size = max(at.system.size, 1.0)
    longest = float(np.abs(increments[at.system.rigid]).max(initial=0.0)) / size
    return increments * min(1.0, _TURN / max(longest, 1e-300))


def _advance(at: Assembler, t: float, axes: Axes, motions: SmallMotions, step: Array) -> None:
    """Move by a step, halved while the force along the step changes sign and does not decrease.

    The step ends at the first contact that it closes. A longer step would be judged by invalid
    contact forces, for example if the teeth of gears pass through each other.
    """
    start, angles, states = at.q.copy(), at.angles.copy(), at.system.states
    delta, values = motions.resolve @ step, at.v[states].copy()
    bodies = slice(len(at.v) - len(states))
    delta *= _fraction_to_contact(at, delta)
    before = float(at.rows[bodies] @ delta[bodies])
    for _ in range(12):
        at.angles[:] = angles
        at.move(start, np.concatenate([delta[bodies], np.zeros(len(states))]))
        at.v[states] = values + delta[states]
        try:
            _restore(at, t)
            trial = _forces(at, t, axes)
            force, move = trial.resolve.T @ at.rows, motions.resolve.T @ delta
            along = float(force[bodies] @ move[bodies])
            if along <= 0.9 * abs(before) or abs(before) < 1e-300:
                break
        except AssemblyError:
            pass
        delta, before = 0.5 * delta, 0.5 * before
    at.angles[:] = at.frames.joint_rotations()


def _fraction_to_contact(at: Assembler, delta: Array) -> float:
    """Return the fraction of an increment (nv,) after which the first open gap closes, up to 1."""
    v = at.v.copy()
    at.v[:] = delta
    at.frames.update_velocities()
    states = at.loads.contact_states()
    at.v[:] = v
    at.frames.update_velocities()
    gaps, rates = states[:, 0], states[:, 1]
    closing = (gaps >= 0.0) & (gaps + rates < 0.0)
    ways = gaps[closing] + _CLOSED * at.system.size
    return min(1.0, float((ways / -rates[closing]).min(initial=1.0)))


def _restore(at: Assembler, t: float) -> None:
    """Satisfy the constraints by moving the bodies or, if that fails, by deforming them."""
    s = at.system
    q = at.q.copy()
    try:
        assemble(at, t, s.rigid)
    except AssemblyError:
        if not len(s.elastic):
            raise
        at.q[:] = q
        assemble(at, t, np.arange(s.num_velocities))
    at.update_poses(t)


def _check_spin(at: Assembler, t: float, omega: Array) -> None:
    """Raise an error if the constraints do not permit the mechanism to rotate as a whole."""
    s = at.system
    if not omega.any() or not s.num_constraints:
        return
    row, speed = constraint_speed(at, t)
    if speed > 1e-9 * max(1.0, float(np.abs(at.v).max())):
        raise InputError(
            f"the mechanism cannot rotate as a whole with the spin {omega} rad/s: "
            f"{s.constraint_name(row)} would move at {speed:.3g} (m/s or rad/s)"
        )
