"""Static equilibrium of a mechanism, at rest or turning steadily, and sequences of equilibria.

In the motions that the constraints leave the unbalanced forces g and their stiffness are the
projections of :mod:`~dolfinx_mbd.multibody.analyses.small_motions`.  Newton's method is used where
that stiffness is positive; elsewhere each of its principal directions is followed downhill by |k|
instead of k, so that the mechanism falls into an equilibrium rather than being drawn to one that
is unstable.  A step is bounded in length and shortened while it overshoots.

References:
    Y. Dauphin et al., Identifying and attacking the saddle point problem in high-dimensional
    non-convex optimization, 2014 (steps by |k|).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, increasing, instance, integer, number, vector
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.rotations import rotation_matrix
from dolfinx_mbd.multibody.analyses.linearization import unbalanced
from dolfinx_mbd.multibody.analyses.small_motions import (
    Axes,
    SmallMotions,
    free_directions,
    multipliers,
    small_motions,
)
from dolfinx_mbd.multibody.assembly.assembler import Assembler, AssemblyError, extent
from dolfinx_mbd.multibody.model.floating_body import FloatingBody
from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.results.solution import Solution
from dolfinx_mbd.multibody.start.consistent_state import move
from dolfinx_mbd.multibody.start.position_assembly import assemble, coordinates
from dolfinx_mbd.multibody.start.quasi_static import EquilibriumError

__all__ = ["EquilibriumError", "equilibrium", "quasi_static_motion"]

Array = NDArray[np.float64]

_TURN = 0.3  # longest step, rad, and in parts of the mechanism's length
_FLOOR = 1e-12  # of the greatest stiffness: below, a direction is taken for free


def equilibrium(
    system: SystemData,
    *,
    t: float = 0.0,
    spin: ArrayLike | None = None,
    q: ArrayLike | None = None,
    angles: ArrayLike | None = None,
    tolerance: float = 1e-9,
    max_iterations: int = 200,
) -> State:
    """The equilibrium into which a mechanism falls from where it is put together.

    Drivers and loads are held at time t.  An equilibrium at the start is returned as it is, stable
    or not: :func:`~dolfinx_mbd.multibody.linearize` tells.

    Args:
        system: The mechanism; constraints may repeat each other.
        t: Time, s.
        spin: Angular velocity of the whole about an axis through the global origin, shape (3,),
            rad/s: the equilibrium with the centrifugal forces.  None: at rest.
        q: Coordinates to start from, shape (nq,); None: the bodies' own.
        angles: Rotations of the joints there, shape (nj,), rad, from which turns are counted.
        tolerance: What may be left unbalanced, relative to the greatest force, moment and elastic
            force that act.
        max_iterations: Steps after which it is given up.

    Returns:
        The state with its reactions: at rest, or turning with the spin.

    Raises:
        EquilibriumError: If there is none that it finds; the message says what is not in balance.
        AssemblyError: If the mechanism cannot be put together.
        ValueError: If the spin is not three numbers, or the joints do not let the whole turn so.
    """
    instance("system", system, SystemData)
    t = number("t", t, unit="s")
    omega = np.zeros(3) if spin is None else vector("spin", spin, unit="rad/s")
    number("tolerance", tolerance, positive=True, high=1.0)
    integer("max_iterations", max_iterations, low=1)
    at = Assembler(system)
    at.q[:] = coordinates(system, q)
    if angles is not None:
        at.angles[:] = array("angles", angles, at.angles.shape)
    axes = Axes.common(system, omega)
    _restore(at, t)
    length = extent(at)
    for _ in range(max_iterations):
        motions, basis, force = _forces(at, t, axes)
        row, share = unbalanced(at)
        if share <= tolerance:
            return _state(at, t, omega)
        if not basis.shape[1]:
            break
        step = _step(motions, basis, force, system.rigid, length)
        _advance(at, t, axes, motions, basis @ step)
    raise EquilibriumError(
        f"no equilibrium at t = {t:g} s: {system.row_name(row)} is left with "
        f"{abs(at.rows[row]):.3g} (N or N m) unbalanced after {max_iterations} steps. A load may "
        "have nothing that holds against it, or the start (q) may be too far"
    )


def quasi_static_motion(
    system: SystemData, times: Iterable[float], *, spin: ArrayLike | None = None
) -> Solution:
    """A sequence of equilibria: drivers and loads move slowly, nothing has inertia.

    Each equilibrium starts from the one before.  Velocities and accelerations are those of the spin
    alone, not those of the drivers.

    Args:
        system: The mechanism.
        times: At which equilibria are found, increasing, s.
        spin: As of :func:`equilibrium`.

    Raises:
        EquilibriumError: If one is not found; the message says at which time.
        ValueError: If there are no times, or they do not increase.
    """
    states: list[State] = []
    for t in increasing("times", times, unit="s").tolist():
        last = states[-1] if states else None
        states.append(
            equilibrium(
                system,
                t=t,
                spin=spin,
                q=None if last is None else last.q,
                angles=None if last is None else last.angles,
            )
        )
    return Solution(system, states)


def _rates(at: Assembler, omega: Array) -> None:
    """Velocities and accelerations of the whole turning about the origin."""
    s = at.system
    at.v[:], at.a[:] = 0.0, 0.0
    for k, body in enumerate(s.bodies):
        if isinstance(body, FloatingBody):
            start, q = s.v_slices[k].start, at.q[s.q_slices[k]]
            at.v[start : start + 3] = np.cross(omega, q[:3])
            at.v[start + 3 : start + 6] = rotation_matrix(q[3:7]).T @ omega
            at.a[start : start + 3] = np.cross(omega, np.cross(omega, q[:3]))


def _forces(at: Assembler, t: float, axes: Axes) -> tuple[SmallMotions, Array, Array]:
    """Coefficients with the best reactions, free motions N, and the force Nᵀr along them."""
    _rates(at, axes.spin[0])
    at.lam[:] = 0.0
    motions = small_motions(at, t, axes)
    basis = free_directions(motions)
    at.lam[:] = multipliers(at, t, motions)
    motions = small_motions(at, t, axes)
    return motions, basis, basis.T @ (motions.resolve.T @ at.rows)


def _step(
    motions: SmallMotions, basis: Array, force: Array, rigid: NDArray[np.integer], length: float
) -> Array:
    """Newton's step where the stiffness is positive, else downhill by |k|; bounded, shape (m,)."""
    _, _, K = motions.reduced(basis)
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    largest = max(float(np.abs(values).max()), 1e-300)
    if values[0] > _FLOOR * largest:
        step = np.linalg.solve(K, -force)
    else:
        floor = _FLOOR * max(largest, float(np.abs(force).max()))
        step = vectors @ ((vectors.T @ -force) / np.maximum(np.abs(values), floor))
    move = np.abs(basis @ step)[rigid]
    # a step in metres counts in parts of the mechanism's length
    longest = float(np.maximum(move / max(length, 1.0), 0.0).max(initial=0.0))
    return step * min(1.0, _TURN / max(longest, 1e-300))


def _advance(at: Assembler, t: float, axes: Axes, motions: SmallMotions, step: Array) -> None:
    """Move along a step; shorter while the forces along it turn round and are no smaller."""
    start, angles = at.q.copy(), at.angles.copy()
    delta = motions.resolve @ step
    before = float(at.rows @ delta)
    for _ in range(12):
        at.q[:], at.angles[:] = start, angles
        move(at, delta)
        try:
            _restore(at, t)
        except AssemblyError:
            delta, before = 0.5 * delta, 0.5 * before
            continue
        moved, _, _ = _forces(at, t, axes)
        along = float((moved.resolve.T @ at.rows) @ (motions.resolve.T @ delta))
        if along <= 0.9 * abs(before) or abs(before) < 1e-300:
            break
        delta, before = 0.5 * delta, 0.5 * before
    at.angles[:] = at.joint_rotations()


def _restore(at: Assembler, t: float) -> None:
    """Positions that fulfil the constraints: of the bodies as they are, or by deforming them."""
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


def _state(at: Assembler, t: float, omega: Array) -> State:
    s = at.system
    if omega.any() and s.num_constraints:
        rate, _ = at.constraint_rates(t)
        off = np.abs(at.constraint_matrix(at.jacobians()) @ at.v + rate)
        row = int(np.argmax(off))
        if off[row] > 1e-9 * max(1.0, float(np.abs(at.v).max())):
            raise InputError(
                f"the mechanism does not turn with the spin {omega} rad/s as a whole: "
                f"{s.constraint_name(row)} would move at {off[row]:.3g} (m/s or rad/s)"
            )
    return at.state(t)
