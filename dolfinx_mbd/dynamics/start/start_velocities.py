"""Velocities at the start: those that bodies and joints specify, and the others that follow."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import instance, number
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.assembly.rates import rate_rows
from dolfinx_mbd.dynamics.stepping.convergence import Measure
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.system import System

__all__ = ["body_velocities", "joint_rates", "start_velocities"]

Index = NDArray[np.integer]

_RANK_TOLERANCE = 1e-10  # singular values below this fraction of the largest one count as zero
_RATE_TOLERANCE = 1e-7  # largest error of the initial velocities relative to the largest one


def joint_rates(
    system: System, rates: Mapping[str, float] | None, by_default: bool
) -> dict[str, float]:
    """Return the requested rates of joints, and with `by_default` those that the joints specify."""
    rates = dict(instance("rates", {} if rates is None else rates, Mapping))
    for name, rate in rates.items():
        number(f"rates[{name!r}]", rate)
        joint = system.joint(name)
        if not joint.motions:
            raise InputError(f"{joint.kind} joint {name!r} has no single rate to start with")
        if by_default and joint.rate not in (None, rate):
            raise InputError(
                f"joint {name!r} has the initial rate {joint.rate:g}, but the start specifies "
                f"{rate:g}; specify one of them",
                argument="rates",
                value=rate,
            )
    specified = {j.name: j.rate for j in system.joints if j.rate is not None}
    return {**specified, **rates} if by_default else rates


def body_velocities(system: System) -> Array:
    """Return the initial velocities of the bodies, (nv,); NaN where a body specifies none."""
    speeds = np.full(system.num_velocities, np.nan)
    for body, part in zip(system.bodies, system.v_slices, strict=True):
        if hasattr(body, "initial_velocities"):
            speeds[part] = body.initial_velocities()
    return speeds


def start_velocities(eqs: Assembler, t: float, rates: Mapping[str, float], speeds: Array) -> Array:
    """Return velocities (nv,) with some velocities of bodies and the rates of joints.

    `speeds` (nv,) contains NaN for unknown velocities. Unknown elastic rates are zero, and so are
    unknown velocities of bodies with known velocities if the joints permit this. The kinetic energy
    of the rigid motions of other bodies is as small as possible. Without known velocities of
    bodies, all velocities are zero.
    """
    s, v = eqs.system, np.zeros(len(speeds))
    v[s.elastic] = np.nan_to_num(speeds[s.elastic])
    states = speeds[s.states]
    v[s.states] = np.where(np.isnan(states), s.initial_states, states)
    preset = np.intersect1d(np.flatnonzero(np.isfinite(speeds)), s.rigid)
    if not preset.size:
        return v
    parts = zip(s.bodies, s.v_slices, strict=True)
    names = [repr(body.name) for body, part in parts if np.isfinite(speeds[part]).any()]
    eqs.update_poses(t)
    eqs.v[:], eqs.a[:], eqs.lam[:] = 0.0, 0.0, 0.0
    eqs.residual(t)
    tangent = eqs.tangent(t)
    rows = np.vstack([tangent.B, rate_rows(eqs, rates), np.eye(len(v))[preset]])[:, s.rigid]
    explicit, _ = eqs.constraint_rates(t)
    right = [-explicit, np.array([*rates.values()], dtype=float), speeds[preset]]
    values, mass = np.concatenate(right), tangent.M[np.ix_(s.rigid, s.rigid)]
    u = np.linalg.lstsq(rows, values, rcond=_RANK_TOLERANCE)[0]
    if np.abs(rows @ u - values).max() > _RATE_TOLERANCE * max(float(np.abs(values).max()), 1e-3):
        raise AssemblyError(
            f"the initial velocities of {', '.join(names)} contradict the constraints or each "
            f"other at t = {t:g} s; specify fewer velocities, and the others follow"
        )
    # All velocities u + free x satisfy the conditions. First the unknown velocities of bodies with
    # known ones are made as small as possible, then the kinetic energy of the rest
    free = null_space(rows, rcond=_RANK_TOLERANCE)
    unknown = np.isin(s.rigid, _unknown_of_known_bodies(s, speeds))
    weights = Measure(s).lengths[s.rigid][unknown]
    left, sizes, modes = np.linalg.svd(weights[:, None] * free[unknown])
    rank = int(np.sum(sizes > _RANK_TOLERANCE * weights.max(initial=0.0)))
    u -= free @ modes[:rank].T @ (left[:, :rank].T @ (weights * u[unknown]) / sizes[:rank])
    free = free @ modes[rank:].T
    u -= free @ np.linalg.lstsq(free.T @ mass @ free, free.T @ mass @ u, rcond=_RANK_TOLERANCE)[0]
    v[s.rigid] = u
    return v


def _unknown_of_known_bodies(system: System, speeds: Array) -> Index:
    """Return the unknown rigid velocities of bodies of which some rigid velocity is known."""
    indices: list[int] = []
    for part in system.v_slices:
        rigid = np.intersect1d(np.arange(part.start, part.stop), system.rigid)
        known = np.isfinite(speeds[rigid])
        if known.any():
            indices += rigid[~known].tolist()
    return np.array(indices, dtype=np.int64)
