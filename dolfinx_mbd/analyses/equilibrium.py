"""Static equilibrium of a mechanism, at rest or in steady rotation, and sequences of equilibria.

The unknowns are the free motions of `small_motions`, with their unbalanced forces and stiffness.
Newton's method is used if the stiffness is positive definite. Otherwise |k| replaces the
eigenvalues k of the stiffness, so that the iteration moves towards a stable equilibrium and away
from unstable equilibria. Steps are bounded, and are shortened while they overshoot.

In a steady rotation, gyroscopic forces can stabilize an equilibrium whose stiffness is indefinite,
such as that of an unbalanced rotor above its critical speed. Newton's method (`balance`) is
therefore tried first; its result is returned unless it is unstable and the iteration above finds
another equilibrium.

References:
    Y. Dauphin et al., Identifying and attacking the saddle point problem in high-dimensional
    non-convex optimization, 2014 (steps with |k|).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.analyses.balance import (
    bounded,
    check_steady,
    is_unstable,
    newton_balance,
    restore_constraints,
    set_and_linearize,
)
from dolfinx_mbd.analyses.mesh_equilibrium import mesh_equilibrium
from dolfinx_mbd.analyses.small_motions import Axes, SmallMotions, free_directions
from dolfinx_mbd.analyses.unbalanced_forces import constraint_speed, unbalanced
from dolfinx_mbd.checks import (
    array,
    choice,
    increasing,
    instance,
    integer,
    number,
    reject,
    vector,
)
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.start.consistent_state import consistent_state
from dolfinx_mbd.dynamics.start.position_assembly import coordinates
from dolfinx_mbd.dynamics.start.quasi_static import EquilibriumError
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.columns import GAP, GAP_RATE
from dolfinx_mbd.mechanism.floating_body import FloatingBody
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.deformation_checks import check_deformation
from dolfinx_mbd.results.solution import Solution

Array = NDArray[np.float64]

_PENETRATION = 1e-9  # of a gap that ends an iteration by closing, relative to the mechanism
_AT_REST = 1e-9  # speed of a rotor's origin, relative to the mechanism's size × largest velocity
_SPEED = 1e-9  # largest speed of a constraint in a steady rotation, relative to velocities
_HALVINGS = 12  # largest number of shorter steps
_OVERSHOOT = 0.9  # largest force along a step at its end, relative to that at its start
_FLOOR = 1e-12  # eigenvalues of the stiffness below this fraction of the largest one count as zero


def equilibrium(
    system: System,
    *,
    t: float = 0.0,
    spin: ArrayLike | None = None,
    axes: Literal["body", "global"] = "body",
    q: ArrayLike | None = None,
    angles: ArrayLike | None = None,
    tolerance: float = 1e-9,
    max_iterations: int = 200,
) -> State:
    """Find the equilibrium that a mechanism reaches from its initial position.

    Drivers and loads are evaluated at time t. If the initial position is an equilibrium, it is
    returned even if it is unstable; use `linearize` to determine its stability.

    With a spin, the result is a steady rotation of the whole mechanism, also above critical speeds
    of a rotor. If the nearest equilibrium is unstable, a stable one is searched for.

    A round and balanced rotor on fixed supports keeps its place while it rotates, also under
    gravity and on journal bearings. With ``axes="global"``, each body rotates about its axis with
    its initial angular velocity, and the deflection of a flexible body remains in its plane.

    Args:
        system: The mechanism; constraints may be redundant.
        t: Time, s.
        spin: Angular velocity of the whole mechanism about an axis through the global origin, shape
            (3,), rad/s. The spin causes centrifugal forces; by default the mechanism is at rest.
        axes: Axes in which the mechanism is at rest: ``body``, or ``global`` for rotors; their
            angular velocities are those of `consistent_state` at t = 0.
        q: Initial coordinates, shape (nq,); by default the initial coordinates of the bodies.
        angles: Initial rotations of the joints, shape (nj,), rad, by default zero. Full turns are
            counted from these rotations.
        tolerance: Largest unbalanced force, relative to the largest force, moment or elastic force
            on the same body.
        max_iterations: Maximum number of steps. Mechanisms with mesh bodies have steps of
            the load and of the squared spin instead.

    Returns:
        The state with its reactions, at rest or rotating with the spin.

    Warns:
        ModelRangeWarning: A body deforms too much for the linear theory, or has no geometric
            stiffening and rotates too fast.

    Raises:
        EquilibriumError: No equilibrium was found; the message names the unbalanced equation. Or
            forces change during the rotation, for example gravity across the axis.
        AssemblyError: The mechanism cannot be assembled.
        InputError: An argument is invalid, the joints do not permit the spin, or a flexible rotor
            is not round.

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
    eqs = Assembler(system)
    eqs.q[:] = coordinates(system, q)
    eqs.v[system.states] = system.initial_states
    if angles is not None:
        eqs.angles[:] = array("angles", angles, eqs.angles.shape)
    if choice("axes", axes, ("body", "global")) == "global":
        if spin is not None:
            reject("spin", spin, "None with axes='global', where the bodies have their own spins")
        return _rotor_equilibrium(eqs, t, tolerance, max_iterations)
    state = _search(eqs, t, omega, tolerance, max_iterations)
    if omega.any() and not system.has_mesh_bodies:  # `_search` has checked those
        check_steady(eqs, t, Axes.common(system, omega))
    check_deformation(system, [state])
    return state


def _rotor_equilibrium(eqs: Assembler, t: float, tolerance: float, max_iterations: int) -> State:
    """Return the equilibrium of bodies that rotate about axes that do not move."""
    system = eqs.system
    system.check_reduced("equilibrium(axes='global')")
    # The initial state defines the angular velocity of each body in its own axes, and the search
    # starts at the coordinates of `eqs`
    start = consistent_state(system, elastic_start="undeformed")
    for body, part in zip(system.bodies, system.v_slices, strict=True):
        origin_speed = (
            float(np.linalg.norm(start.v[part][:3])) if isinstance(body, FloatingBody) else 0.0
        )
        if origin_speed > _AT_REST * system.size * np.abs(start.v).max(initial=0.0):
            raise InputError(
                f"body {body.name!r} is not a rotor: the origin of its frame moves at "
                f"{origin_speed:.3g} m/s. An equilibrium in global axes needs bodies that rotate "
                "about their origins",
                argument="axes",
                value="global",
            )
    # common axes that do not rotate, and the rotation of each body relative to them
    axes = Axes.common(system, np.zeros(3)).with_rotors(system, start.q, start.v)
    restore_constraints(eqs, t)
    first = eqs.state(t)
    if not newton_balance(eqs, t, axes, tolerance):
        eqs.put(first)
        eqs.update_poses(t)
        _downhill(eqs, t, axes, tolerance, max_iterations)
    state = eqs.state(t)
    if system.num_constraints:
        row, speed = constraint_speed(eqs, t)
        if speed > _SPEED * max(1.0, float(np.abs(eqs.v).max())):
            raise InputError(
                f"the bodies cannot rotate about their axes: {system.constraint_name(row)} would "
                f"move at {speed:.3g} (m/s or rad/s)",
                argument="axes",
                value="global",
            )
    check_steady(eqs, t, axes)
    check_deformation(system, [state])
    return state


def _search(
    eqs: Assembler, t: float, omega: Array, tolerance: float = 1e-9, max_iterations: int = 200
) -> State:
    """Return the equilibrium that a search from the current state of `eqs` reaches."""
    system = eqs.system
    if system.has_mesh_bodies:
        state = mesh_equilibrium(eqs, t, omega, tolerance)
        _check_spin(eqs, t, omega)
        return state
    axes = Axes.common(system, omega)
    restore_constraints(eqs, t)
    start, candidate = eqs.state(t), None
    if omega.any():
        if newton_balance(eqs, t, axes, tolerance):
            _check_spin(eqs, t, omega)
            candidate = eqs.state(t)
            if not is_unstable(eqs, t, axes):
                return candidate
        eqs.put(start)
        eqs.update_poses(t)
    try:
        return _downhill(eqs, t, axes, tolerance, max_iterations)
    except (EquilibriumError, np.linalg.LinAlgError):
        if candidate is None:
            raise
        eqs.put(candidate)  # unstable, but in balance
        eqs.update_poses(t)
        return candidate


def _downhill(eqs: Assembler, t: float, axes: Axes, tolerance: float, max_iterations: int) -> State:
    """Return the equilibrium that is reached by steps towards stable equilibria."""
    system = eqs.system
    cause = "Perhaps nothing resists a load, or the initial position (q) is far from an equilibrium"
    for steps in range(max_iterations + 1):
        motions = set_and_linearize(eqs, t, axes)
        row, ratio = unbalanced(eqs, t)
        if ratio <= tolerance:
            _check_spin(eqs, t, axes.spin[0])
            return eqs.state(t)
        basis = free_directions(motions)
        if not basis.shape[1]:
            cause = "The constraints permit no motion; perhaps the tolerance is less than round-off"
            break
        if not np.isfinite(motions.stiffness).all():
            cause = "The stiffness is not finite there; start nearer to the equilibrium (q)"
            break
        if steps < max_iterations:
            _advance(eqs, t, axes, motions, _step(motions, basis, eqs))
    raise EquilibriumError(
        f"no equilibrium at t = {t:g} s: {system.row_name(row)} is left with "
        f"{abs(eqs.rows[row]):.3g} (N or N m) unbalanced after {steps} "
        f"step{'s' * (steps != 1)}. {cause}"
    )


def quasi_static_motion(
    system: System, times: Iterable[float], *, spin: ArrayLike | None = None
) -> Solution:
    """Find a sequence of equilibria, at rest or with a spin, for slowly changing drivers and loads.

    Each equilibrium is computed from the previous one. Velocities, accelerations and inertia forces
    are those of the spin alone: the motion of the drivers adds none.

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
    eqs = Assembler(system)
    eqs.q[:] = coordinates(system)
    eqs.v[system.states] = system.initial_states
    states: list[State] = []
    for t in increasing("times", times, unit="s").tolist():
        states.append(_search(eqs, t, omega))
        eqs.angles[:] = states[-1].angles
    check_deformation(system, states)
    return Solution(system, states)


def _step(motions: SmallMotions, basis: Array, eqs: Assembler) -> Array:
    """Return the increments (nv,) of a bounded Newton step.

    If the stiffness is not positive definite, its eigenvalues k are replaced by |k|. The states of
    loads are eliminated if their equations determine them as functions of the motion.
    """
    K = basis.T @ motions.statics @ basis
    force = basis.T @ (motions.to_increments.T @ eqs.rows)
    count = K.shape[1] - len(motions.states)
    if len(motions.states):
        return bounded(eqs, basis @ _step_with_states(K, force, count))
    return bounded(eqs, basis @ _newton_step(K, force))


def _newton_step(K: Array, force: Array) -> Array:
    """Return the step to the equilibrium of a stiffness; eigenvalues k < 0 are replaced by |k|."""
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    largest = max(float(np.abs(values).max()), 1e-300)
    if values[0] > _FLOOR * largest:
        return np.asarray(np.linalg.solve(K, -force), dtype=float)
    floor = _FLOOR * max(largest, float(np.abs(force).max()))  # keeps steps finite
    return np.asarray(vectors @ ((vectors.T @ -force) / np.maximum(np.abs(values), floor)))


def _step_with_states(K: Array, force: Array, num_motions: int) -> Array:
    """Return a step of the motions and of the states of loads, which are the last unknowns."""
    by_states = K[num_motions:, num_motions:]
    singular = np.linalg.svd(by_states, compute_uv=False)
    if singular[-1] <= _FLOOR * max(singular[0], np.abs(K[num_motions:]).max()):
        return np.asarray(np.linalg.lstsq(K, -force, rcond=_FLOOR)[0], dtype=float)
    by_motions = np.linalg.solve(by_states, K[num_motions:, :num_motions])
    state_changes = np.linalg.solve(by_states, force[num_motions:])
    motion: Array = np.zeros(0)
    if num_motions:
        coupling = K[:num_motions, num_motions:]
        motion = _newton_step(
            K[:num_motions, :num_motions] - coupling @ by_motions,
            force[:num_motions] - coupling @ state_changes,
        )
    return np.concatenate([motion, -state_changes - by_motions @ motion])


def _advance(eqs: Assembler, t: float, axes: Axes, motions: SmallMotions, step: Array) -> None:
    """Move by a step, halved while the force along the step changes sign and does not decrease.

    The step ends at the first contact that it closes. A longer step would be judged by invalid
    contact forces, for example if the teeth of gears pass through each other.
    """
    start, angles, states = eqs.q.copy(), eqs.angles.copy(), eqs.system.states
    delta, state_values = motions.to_increments @ step, eqs.v[states].copy()
    bodies = slice(len(eqs.v) - len(states))
    delta *= _fraction_to_contact(eqs, delta)
    # Residuals are forces that act against the step: negative now, positive after an overshoot
    before = float(eqs.rows[bodies] @ delta[bodies])
    for _ in range(_HALVINGS):
        eqs.angles[:] = angles
        eqs.move(start, np.concatenate([delta[bodies], np.zeros(len(states))]))
        eqs.v[states] = state_values + delta[states]
        try:
            restore_constraints(eqs, t)
            trial = set_and_linearize(eqs, t, axes)
            force, move = trial.to_increments.T @ eqs.rows, motions.to_increments.T @ delta
            after = float(force[bodies] @ move[bodies])
            if after <= _OVERSHOOT * abs(before) or abs(before) < 1e-300:
                break
        except AssemblyError:
            pass
        delta, before = 0.5 * delta, 0.5 * before
    eqs.angles[:] = eqs.frames.joint_rotations()


def _fraction_to_contact(eqs: Assembler, delta: Array) -> float:
    """Return the fraction of an increment (nv,) after which the first open gap closes, up to 1."""
    v = eqs.v.copy()
    eqs.v[:] = delta
    eqs.frames.update_velocities()
    states = eqs.loads.contact_states()
    eqs.v[:] = v
    eqs.frames.update_velocities()
    gaps, rates = states[:, GAP], states[:, GAP_RATE]
    closing = (gaps >= 0.0) & (gaps + rates < 0.0)
    distances = gaps[closing] + _PENETRATION * eqs.system.size
    return min(1.0, float((distances / -rates[closing]).min(initial=1.0)))


def _check_spin(eqs: Assembler, t: float, omega: Array) -> None:
    """Raise an error if the constraints do not permit the mechanism to rotate as a whole."""
    s = eqs.system
    if not omega.any() or not s.num_constraints:
        return
    row, speed = constraint_speed(eqs, t)
    if speed > _SPEED * max(1.0, float(np.abs(eqs.v).max())):
        raise InputError(
            f"the mechanism cannot rotate as a whole with the spin {omega} rad/s: "
            f"{s.constraint_name(row)} would move at {speed:.3g} (m/s or rad/s)"
        )
