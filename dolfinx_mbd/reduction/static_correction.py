"""Static correction (mode acceleration): the part of a displacement that the modes omit.

Statically, a load f causes the residual displacement r = u_f − Ψ (ΨᵀKΨ)⁻¹ Ψᵀf with K u_f = f. This
displacement is K-orthogonal to all modes Ψ. With the unit loads of `stiffening` and their factors g
over time, u = Σ ψ_k η_k + Σ r_j g_j. The accelerations of the frame need no extra term, because
each unit load includes its inertia relief. In statics u is exact for any number of modes.

References:
    Craig, Kurdila (2006), Fundamentals of Structural Dynamics, 2nd ed., §11.4 (mode acceleration).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.body.static_errors import unit_work
from dolfinx_mbd.checks import array, short
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.reduction.stiffening import WRENCH_INDICES, UnitCases


def residual_displacements(
    body: ReducedBody, modes: Array, cases: UnitCases, dim: int = 3
) -> Array:
    """Return the residual displacements r_j of the unit loads, shape (owned dofs, unit loads).

    The unit loads are the six spins and 6 (in the plane 3) wrench components for each interface.
    """
    if body.reference != "mean axis":
        raise InputError(
            f"a static correction needs the mean-axis reference; this body is {body.reference}",
            argument="body",
            value=body.reference,
            expected="mean axis",
        )
    work = plane_unit_work(body, dim)
    shape, expected = cases.displacements.shape, (len(modes), work.shape[1])
    if shape != expected:
        raise InputError(
            f"expected unit displacements of shape {expected}, got {shape}: they belong to another "
            "body or space",
            argument="cases",
            value=shape,
            expected=str(expected),
        )
    factors = np.linalg.solve(body.stiffness, work) if body.num_modes else work
    return np.asfortranarray(cases.displacements - modes @ factors)


def plane_unit_work(body: ReducedBody, dim: int) -> Array:
    """Return the work Ψᵀf_j of the unit loads on the modes, shape (n, unit loads).

    In the plane only three components of a wrench are unit loads.
    """
    wrenches = 6 + 6 * np.arange(len(body.interfaces))[:, None] + WRENCH_INDICES[dim]
    return np.asarray(unit_work(body)[:, [*range(6), *wrenches.ravel()]])


def unit_load_histories(body: ReducedBody, motion: Any, dim: int = 3) -> Array:
    """Return the factors g of the unit loads over time, shape (nt, unit loads).

    Args:
        body: The reduced body.
        motion: History with `time` (nt,). A rotating body needs `omega` (nt, 3) in body components,
            rad/s. Interface forces need `wrenches`, a mapping from each interface name to the force
            and the moment about the interface point that act on the body, in body components, N and
            N m, shape (nt, 6).
        dim: Number of components of a displacement.
    """
    count = len(motion.time)
    omega = array("omega", getattr(motion, "omega", np.zeros((count, 3))), (count, 3))
    names = [interface.name for interface in body.interfaces]
    wrenches = getattr(motion, "wrenches", None)
    if wrenches is None:
        wrenches = {name: np.zeros((count, 6)) for name in names}
    loaded = set(wrenches) - set(names) if isinstance(wrenches, Mapping) else set()
    points = [p.name for p in body.points if p.name in loaded]
    if points:
        raise InputError(
            f"forces act at the named points {', '.join(map(repr, points))}: static correction "
            "contains forces at interfaces only. Reduce the body with interfaces there, or without "
            "static_correction",
            argument="wrenches",
            value=points,
        )
    if not isinstance(wrenches, Mapping) or set(wrenches) != set(names):
        listed = ", ".join(map(repr, wrenches)) if isinstance(wrenches, Mapping) else ""
        raise InputError(
            f"wrenches: expected one for each of {', '.join(map(repr, names))}; got "
            f"{listed or short(wrenches)}",
            argument="wrenches",
            value=wrenches,
        )
    loads = [array(f"wrenches[{name!r}]", wrenches[name], (count, 6)) for name in names]
    spins = np.stack([omega[:, i] * omega[:, j] for i, j in SPINS], axis=1)
    return np.hstack([spins, *(load[:, WRENCH_INDICES[dim]] for load in loads)])
