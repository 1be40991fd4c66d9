"""Equilibrium of mechanisms with mesh bodies, at rest or in steady rotation.

Newton's method uses the tangents of the deformed bodies, whose free nodes are condensed to the
frames. The unbalanced forces R₀ and the violations of the constraints at the start are removed in
steps: R(x) = (1 − p) R₀ is solved for p up to 1, with steps that are halved if Newton's method
fails, for example where a body buckles. In a steady rotation with Ω, R contains the forces of
inertia for √p Ω.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dolfinx_mbd.analyses.mesh_rotation import (
    check_can_rotate,
    check_rotation,
    phase,
    set_rotation,
    steady_stiffness,
)
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.assembly.rates import saddle
from dolfinx_mbd.dynamics.start.quasi_static import EquilibriumError
from dolfinx_mbd.dynamics.stepping.convergence import Measure, largest_coordinate
from dolfinx_mbd.dynamics.stepping.internal_unknowns import InternalUnknowns
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.mechanism.system import State

__all__ = ["mesh_equilibrium"]

_ITERATIONS = 12  # largest number of Newton corrections in a load step
_COARSE = 1e-6  # tolerance before the last load step
_SMALLEST = 2.0**-10  # smallest load step
_CLOSED = 1e-12  # largest violation of a constraint, relative to the size of the mechanism
_ROUND_OFF = 1e-14  # smallest correction that can reduce the error, relative to coordinates
_LARGEST = 0.7  # largest correction of a rotation, rad, or relative to the size of the mechanism


class _Start(NamedTuple):
    """Unbalanced forces and violations at the start; the load fraction p removes them as 1 − p."""

    rows: Array  # unbalanced forces, (nv,)
    values: Array  # violations of the constraints, (nc,)


class _Failure(Exception):
    """Newton's method does not converge in a load step."""


def mesh_equilibrium(eqs: Assembler, t: float, spin: Array, tolerance: float) -> State:
    """Return the equilibrium that is reached from the coordinates of the assembler.

    Args:
        eqs: Assembler with the initial coordinates.
        t: Time of drivers and loads, s.
        spin: Angular velocity of the whole mechanism, shape (3,), rad/s.
        tolerance: Largest unbalanced force, relative to the forces on the same body.

    Raises:
        EquilibriumError: A load step does not converge, or the forces change during the rotation.
            The field `load` is the fraction of the load that was reached.
        InputError: A body has no steady rotation.
    """
    eqs.system.check_no_states("the equilibrium of a mesh body")
    if spin.any():
        check_can_rotate(eqs.system, spin)
    eqs.lam[:] = 0.0
    nodes = InternalUnknowns(eqs.system, np.zeros(4))  # without parameters of time integration
    with nodes.statics(eqs.q):
        try:
            start = _store_unbalanced(eqs, t, nodes)
            done, step = 0.0, 1.0
            while done < 1.0:
                q, lam, unknowns = eqs.q.copy(), eqs.lam.copy(), nodes.static_unknowns()
                target = min(1.0, done + step)
                try:
                    _newton(eqs, t, nodes, np.sqrt(target) * spin, start, target, tolerance)
                except (_Failure, SolverError, np.linalg.LinAlgError) as error:
                    eqs.q[:], eqs.lam[:] = q, lam
                    nodes.return_to(unknowns)
                    step *= 0.5
                    if step < _SMALLEST:
                        raise EquilibriumError(
                            f"no equilibrium at t = {t:g} s: Newton's method fails at "
                            f"{100 * done:.3g} % of the load ({error}). A body buckles or snaps "
                            "through there, nothing resists a motion, or the load is too large "
                            "for the material",
                            load=done,
                        ) from None
                else:
                    done, step = target, 2.0 * step
        finally:
            nodes.set_offset(0.0)  # the forces of the nodes are complete again
        check_rotation(eqs, t, nodes, spin)
    eqs.update_poses(t)
    return eqs.state(t)


def _store_unbalanced(eqs: Assembler, t: float, nodes: InternalUnknowns) -> _Start:
    """Store the unbalanced forces of the nodes at rest; return those of the frames."""
    set_rotation(eqs, np.zeros(3))
    nodes.put(eqs)
    nodes.factorize(eqs)
    eqs.residual(t)
    nodes.store_offset()
    nodes.set_offset(1.0)
    eqs.residual(t)
    return _Start(eqs.rows.copy(), eqs.values.copy())


def _newton(
    eqs: Assembler,
    t: float,
    nodes: InternalUnknowns,
    spin: Array,
    start: _Start,
    p: float,
    tolerance: float,
) -> None:
    """Find the equilibrium with the part p of the load."""
    measure, system = Measure(eqs.system), eqs.system
    allowed = tolerance if p == 1.0 else max(tolerance, _COARSE)
    nodes.set_offset(1.0 - p)
    nodes.set_spin(spin)
    set_rotation(eqs, spin)
    nodes.put(eqs)
    settled = False
    for _ in range(_ITERATIONS):
        nodes.factorize(eqs)
        eqs.residual(t)
        eqs.rows -= (1.0 - p) * start.rows
        values = eqs.values - (1.0 - p) * start.values
        error = max(measure.residual(eqs, allowed, 0.0), nodes.error(allowed))
        closed = np.abs(values).max(initial=0.0) <= _CLOSED * max(system.size, 1.0)
        if not np.isfinite(error):
            raise _Failure("forces are not finite: a cell may be inverted")
        if (error <= 1.0 and closed) or settled:
            return
        tangent = eqs.tangent(t)
        # A rotation about the axis changes no force: the corrections do not contain it
        K, rotation = steady_stiffness(eqs, tangent, spin), phase(eqs, tangent.B, spin)
        constraint_changes = np.concatenate([-values, np.zeros(len(rotation))])
        B = np.concatenate([tangent.B, rotation])
        delta, multiplier_changes = saddle(K, B, -eqs.rows, constraint_changes)
        if not np.abs(delta * measure.lengths).max() <= _LARGEST * system.size:
            raise _Failure("a correction is too large")
        eqs.move(eqs.q.copy(), delta)
        eqs.lam += multiplier_changes[: len(values)]
        set_rotation(eqs, spin)
        size = nodes.correct(delta)
        nodes.put(eqs)
        # Corrections of the size of round-off cannot reduce the error further
        settled = size <= _ROUND_OFF * largest_coordinate(eqs)
    raise _Failure(f"{_ITERATIONS} iterations do not converge")
