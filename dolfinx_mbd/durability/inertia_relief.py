"""Static load cases of a free body, in equilibrium with the inertia forces of its acceleration.

A wrench at an interface accelerates the body. In the frame of the body, the load and the inertia
forces of the rigid acceleration (a₀, α) are in equilibrium, and the elastic coordinates follow from

    K η = Σ D_kᵀ w_k + Σ A_j f_j − ∫ρΨᵀ (a₀ + α×x + ω×(ω×x))

with the stiffness K, the modes Ψ, the density ρ and the angular velocity ω. D_k is the motion of an
interface per mode and w_k its wrench; f_j is the work of a distributed load on the modes and A_j
its amplitude. No support is needed. Gravity and other uniform accelerations cause no stress.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import ReducedBody, static_errors
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.body.response import linearize_body
from dolfinx_mbd.body.response.linearized import interface_map, spin_loads
from dolfinx_mbd.checks import array, instance, reject, vector
from dolfinx_mbd.durability.recovery import Recovery
from dolfinx_mbd.errors import AccuracyWarning, InputError, warn
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.columns import ELASTIC, RIGID
from dolfinx_mbd.reduction.result import Reduction

__all__ = ["LoadCases", "inertia_relief"]

Array = NDArray[np.float64]

MISSING_ENERGY = 0.05
"""Fraction of the strain energy omitted by the modes above which `inertia_relief` warns."""


@dataclass(frozen=True, eq=False)
class LoadCases:
    """Static load cases of a body, which functions of stress accept as a history.

    Attributes:
        time: Numbers 0, 1, ... of the load cases, shape (nc,).
        eta: Elastic coordinates, shape (nc, n).
        omega: Angular velocity in body components, shape (nc, 3), rad/s.
        wrenches: Force and moment at each interface in body components, by name, shape (nc, 6), N
            and N m.
        acceleration: Acceleration of the origin of the body frame, shape (nc, 3), m/s².
        alpha: Angular acceleration in body components, shape (nc, 3), rad/s².

    Example:
        >>> pulled = mbd.durability.inertia_relief(bar, {"right": [1e3, 0, 0, 0, 0, 0]})
        >>> print((pulled.acceleration * bar.body.total_mass).round(6) + 0.0)
        [[1000.    0.    0.]]
    """

    time: Array
    eta: Array
    omega: Array
    wrenches: Mapping[str, Array]
    acceleration: Array
    alpha: Array

    __repr__ = short_repr


def inertia_relief(
    source: Reduction | Recovery | ReducedBody,
    wrenches: Mapping[str, ArrayLike] = MappingProxyType({}),
    *,
    amplitudes: Mapping[str, ArrayLike] = MappingProxyType({}),
    omega: ArrayLike = (0.0, 0.0, 0.0),
) -> LoadCases:
    """Return static load cases of a body that accelerates freely, without a simulation.

    The result is a history of one instant for each load case. Give it to `strength`, `recover`,
    `most_stressed` or `section_forces`. Displacements are small, and the geometric stiffness of the
    stresses is not included.

    Args:
        source: A reduced body, or a reduction. A reduction with `static_correction=True` gives the
            exact static stress of wrenches for any number of modes.
        wrenches: Force and moment at interfaces, by name, in body components, N and N m, shape (6,)
            or (nc, 6) for nc load cases. Other interfaces are free.
        amplitudes: Amplitudes of the distributed loads of the body, by name, numbers or shape
            (nc,).
        omega: Angular velocity in body components, shape (3,) or (nc, 3), rad/s.

    Raises:
        InputError: An interface or a load is unknown, or an array has the wrong shape.

    Warns:
        AccuracyWarning: The modes omit more than 5 % of the strain energy of a load case.

    Example:
        >>> braked = mbd.durability.inertia_relief(
        ...     bar, {"left": [[0, 500.0, 0, 0, 0, 0]]}, omega=(0, 0, 80.0)
        ... )
        >>> print(mbd.most_stressed(bar, braked, 1)[0].interface)
        left
    """
    instance("source", source, (Reduction, Recovery, ReducedBody))
    reduction = source.reduction if isinstance(source, Recovery) else source
    body = reduction if isinstance(reduction, ReducedBody) else reduction.body
    wrench_rows = _rows("wrenches", wrenches, [i.name for i in body.interfaces], 6)
    amplitude_rows = _rows("amplitudes", amplitudes, [p.name for p in body.loads], None)
    spin = np.atleast_2d(array("omega", omega))
    if spin.ndim != 2 or spin.shape[1] != 3:
        vector("omega", omega, unit="rad/s")
    # A load with one row applies to all load cases
    all_rows = (*wrench_rows.values(), *amplitude_rows.values(), spin)
    counts = {len(rows) for rows in all_rows} - {1}
    if len(counts) > 1:
        text = f"the loads have different numbers of load cases: {sorted(counts)}"
        raise InputError(text, argument="wrenches")
    count = counts.pop() if counts else 1
    spin = np.broadcast_to(spin, (count, 3))
    case_wrenches: dict[str, Array] = {i.name: np.zeros((count, 6)) for i in body.interfaces}
    case_wrenches |= {n: np.broadcast_to(rows, (count, 6)) for n, rows in wrench_rows.items()}
    case_amplitudes = {n: np.broadcast_to(rows, (count,)) for n, rows in amplitude_rows.items()}
    with np.errstate(over="ignore", invalid="ignore"):
        eta, rigid = _equilibrium(body, case_wrenches, case_amplitudes, spin)
    if not (np.isfinite(eta).all() and np.isfinite(rigid).all()):
        raise InputError("a load case is not finite: a load or an angular velocity is too large")
    if isinstance(reduction, ReducedBody) or reduction.residuals is None:
        _warn_of_missing_energy(body, case_wrenches, eta)
    cases = np.arange(count, dtype=float)
    return LoadCases(cases, eta, spin, case_wrenches, rigid[:, :3], rigid[:, 3:])


def _rows(argument: str, values: Any, valid: list[str], columns: int | None) -> dict[str, Array]:
    """Return the values of each name with one row for each load case.

    A row has `columns` numbers; it is a single number if `columns` is None.
    """
    instance(argument, values, Mapping)
    rows = {}
    for name, value in values.items():
        if name not in valid:
            names = ", ".join(map(repr, valid)) or "this body has none"
            reject(argument, name, f"names that the body has ({names})")
        label = f"{argument}[{name!r}]"
        numbers = array(label, value)
        if columns is None:
            numbers = np.atleast_1d(numbers)
            if numbers.ndim != 1:
                reject(label, value, "a number, or shape (nc,)")
        else:
            numbers = np.atleast_2d(numbers)
            if numbers.ndim != 2 or numbers.shape[1] != columns:
                reject(label, value, f"{columns} numbers, or shape (nc, {columns})")
        if not len(numbers):
            reject(label, value, "one or more load cases")
        rows[name] = numbers
    return rows


def _equilibrium(
    body: ReducedBody, wrenches: Mapping[str, Array], amplitudes: Mapping[str, Array], omega: Array
) -> tuple[Array, Array]:
    """Return elastic coordinates (nc, n) and rigid accelerations (a₀, α), shape (nc, 6)."""
    spin_products = np.stack([omega[:, i] * omega[:, j] for i, j in SPINS], axis=1)
    load: Array = spin_products @ spin_loads(body).T  # (nc, 6 + n): rigid motions, then modes
    for interface in body.interfaces:
        load = load + wrenches[interface.name] @ interface_map(body, interface.name)
    for name, amplitude in amplitudes.items():
        pattern = body.load_pattern(name)
        work = np.concatenate([pattern.force, pattern.moment, pattern.modes])
        load = load + amplitude[:, None] * work
    mass = linearize_body(body).mass
    rigid = np.asarray(np.linalg.solve(mass[RIGID, RIGID], load[:, RIGID].T).T, dtype=float)
    elastic: Array = load[:, ELASTIC] - rigid @ mass[RIGID, ELASTIC]
    if not body.num_modes:
        return elastic, rigid
    return np.asarray(np.linalg.solve(body.stiffness, elastic.T).T, dtype=float), rigid


def _warn_of_missing_energy(body: ReducedBody, wrenches: Mapping[str, Array], eta: Array) -> None:
    """Warn if the modes omit a large share of the strain energy due to the wrenches.

    If E_k is the missing energy due to component k of the wrenches alone, that of all components
    together is at most (Σ √E_k)². E_k is half the missing fraction of the work of a unit load,
    times the square of the component. If the reduction has omitted no elastic mode, the
    constraint modes represent self-equilibrated wrenches exactly. The missing energy then depends
    on the resultant only, and the bound also holds for a wrench with this resultant at one
    interface.
    """
    spins = len(SPINS)  # unit loads before those of the interfaces
    errors = list(static_errors(body).values())[spins:]
    if not errors or body.stiffening is None or body.stiffening.work is None:
        return
    roots = np.sqrt(np.maximum(errors * body.stiffening.work[spins:], 0.0)).reshape(-1, 6)
    loads = np.stack([wrenches[i.name] for i in body.interfaces])
    bounds = [np.einsum("ktc,kc->t", np.abs(loads), roots)]
    if not any(mode.frequency for mode in body.left_out):
        points = np.array([i.point for i in body.interfaces])
        for point, root in zip(points, roots, strict=True):
            arms = np.cross((points - point)[:, None], loads[:, :, :3])
            resultant = np.hstack([loads[:, :, :3].sum(0), (loads[:, :, 3:] + arms).sum(0)])
            bounds.append(np.abs(resultant) @ root)
    missing = 0.5 * np.min(bounds, axis=0) ** 2
    modal = 0.5 * np.einsum("ti,ij,tj->t", eta, body.stiffness, eta)
    total = missing + modal
    fraction = float((missing / np.where(total > 0, total, 1.0)).max())
    if fraction > MISSING_ENERGY:
        text = (
            f"the modes of body {body.name!r} leave out up to {100 * fraction:.3g} % of the strain "
            "energy of a load case: use more modes, or a reduction with static_correction=True"
        )
        limit = MISSING_ENERGY
        warn(AccuracyWarning(text, quantity="missing strain energy", value=fraction, limit=limit))
