"""Errors of the static response of a reduced body to unit loads.

The unit loads of geometric stiffening are used: the centrifugal loads per unit of each ω_iω_j, and
the six components of a unit wrench at each interface. Each is balanced by the inertia of the rigid
acceleration that it causes. With the load f, the displacement u of the full model and the modes Ψ,
the relative error of the strain energy of the static response is

    1 - fᵀΨ (ΨᵀKΨ)⁻¹ Ψᵀf / fᵀu.

It lies between 0 (exact) and 1 (the modes do not respond). For a component of a wrench this number
is also the relative error of the displacement at the point and in the direction of the load.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.checks import object_with
from dolfinx_mbd.errors import AccuracyWarning, warn

if TYPE_CHECKING:
    from dolfinx_mbd.body.reduced_body import ReducedBody


SUMMARY_LIMIT = 0.05
"""Error above which the summary of a body lists a unit load."""

STRETCH_LIMIT = 0.2
"""Share of the strain energy missing in a run above which `warn_of_stretch` warns.

The share is 1/6 for a rod that rotates about its centre, with the constraint modes of both ends.
"""

NEGLIGIBLE_STRETCH = 1e-6
"""Missing strain energy, relative to the kinetic energy of the rotation, that is negligible."""

NEGLIGIBLE_WORK = 1e-9
"""Work of a unit load, relative to the largest of its kind, below which the load is negligible."""

_COMPONENTS = ("force x", "force y", "force z", "moment x", "moment y", "moment z")


def unit_load_names(body: ReducedBody) -> list[str]:
    """Return the names of the unit loads, for example `spin zz` and `force x at left`."""
    spins = [f"spin {'xyz'[i]}{'xyz'[j]}" for i, j in SPINS]
    return spins + [
        f"{component} at {i.name}" for i in body.interfaces for component in _COMPONENTS
    ]


def unit_work(body: ReducedBody) -> Array:
    """Return the work Ψᵀf of the unit loads on the modes, shape (n, 6 + 6 interfaces), J.

    The work of the centrifugal load −∫ρ ω×(ω×x) is a contraction of the second moments; the work
    of a wrench is the motion of its interface. The reference condition must be the mean axis, so
    that the inertia of a rigid acceleration does no work on the modes.
    """
    H = body.second_moments[1:, 0]
    spins = np.zeros((body.num_modes, len(SPINS)))
    for c, (i, j) in enumerate(SPINS):
        products = H[:, i, j] + H[:, j, i]
        spins[:, c] = np.einsum("kaa->k", H) - H[:, i, i] if i == j else -products
    return np.hstack([spins, *[interface.motion.T for interface in body.interfaces]])


def static_errors(body: ReducedBody) -> dict[str, float]:
    """Return the relative error of the strain energy of the static response to each unit load.

    Args:
        body: A reduced body.

    Returns:
        The errors by name of the unit load, such as `spin zz` or `force x at left`. The dictionary
        is empty if the response of the full model is unknown: without geometric stiffening, or for
        a body from another program.

    Raises:
        InputTypeError: `body` is not a reduced body.

    Example:
        >>> errors = mbd.body.static_errors(body.truncated(1))
        >>> errors["force x at left"], errors["force y at left"]
        (0.0, 1.0)
    """
    object_with("body", body, "stiffness", "interfaces", "stiffening")
    if body.stiffening is None or body.stiffening.work is None:
        return {}
    full = body.stiffening.work
    work = unit_work(body)
    represented = np.zeros(len(full))
    if body.num_modes:
        represented = np.einsum("kc,kc->c", work, np.linalg.solve(body.stiffness, work))
    # Squares of spins, products of different spins, forces, and moments
    kinds = np.array([0, 0, 0, 1, 1, 1, *[2, 2, 2, 3, 3, 3] * len(body.interfaces)])
    largest = np.array([full[kinds == kind].max(initial=0.0) for kind in range(4)])[kinds]
    deforms = full > NEGLIGIBLE_WORK * largest
    errors = np.where(deforms, 1 - represented / np.where(deforms, full, 1.0), 0.0)
    names = unit_load_names(body)
    return {n: float(e) for n, e in zip(names, np.clip(errors, 0.0, 1.0), strict=True)}


def weighted_errors(body: ReducedBody) -> dict[str, float]:
    """Return the result of `static_errors` with the errors of spins weighted by their energy.

    The weight is the strain energy of the unit spin, relative to the largest one of its kind: the
    spin of a rod about its own axis hardly deforms the rod, so that its error does not matter.
    """
    errors = static_errors(body)
    if not errors or body.stiffening is None or body.stiffening.work is None:
        return errors
    energies = body.stiffening.work[: len(SPINS)].reshape(2, 3)
    largest = np.maximum(energies.max(axis=1, keepdims=True), np.finfo(float).tiny)
    weights = np.ones(len(errors))
    weights[: len(SPINS)] = (energies / largest).ravel()
    return {n: e * float(w) for (n, e), w in zip(errors.items(), weights, strict=True)}


def stretch_energies(body: ReducedBody, omega: Array, eta: Array) -> tuple[float, float, float]:
    """Return the largest energies of a body over time, for `warn_of_stretch`, J.

    Args:
        body: The body.
        omega: Angular velocities over time in body components, rad/s, shape (nt, 3).
        eta: Elastic coordinates over time, shape (nt, n).

    Returns:
        Upper bound of the strain energy of the omitted static response to centrifugal loads,
        strain energy of the modes, and kinetic energy of the rotation.
    """
    errors = list(static_errors(body).values())[: len(SPINS)]
    if not errors or body.stiffening is None or body.stiffening.work is None:
        return 0.0, 0.0, 0.0
    roots = np.sqrt(np.maximum(errors * body.stiffening.work[: len(SPINS)], 0.0))
    products = np.stack([omega[:, i] * omega[:, j] for i, j in SPINS], axis=1)
    missing = 0.5 * float((np.abs(products) @ roots).max(initial=0.0)) ** 2
    modal = 0.5 * float(np.einsum("ti,ij,tj->t", eta, body.stiffness, eta).max(initial=0.0))
    kinetic = 0.5 * np.einsum("ti,ij,tj->t", omega, body.central_inertia, omega)
    return missing, modal, float(kinetic.max(initial=0.0))


def warn_of_stretch(energies: Iterable[tuple[ReducedBody, tuple[float, float, float]]]) -> None:
    """Warn if the modes of a body omit a large part of its deformation due to its spin.

    The strain energy of the omitted static response to centrifugal loads is compared with the
    strain energy of the modes. There is no warning if the omitted energy is below a millionth of
    the kinetic energy of the rotation, because the strain is then of the order of a millionth.

    Args:
        energies: Bodies with the largest values of `stretch_energies` over time.
    """
    worst: tuple[float, ReducedBody | None] = (0.0, None)
    for body, (missing, modal, kinetic) in energies:
        if missing > NEGLIGIBLE_STRETCH * kinetic:
            worst = max(worst, (missing / (missing + modal), body), key=lambda pair: pair[0])
    fraction, inaccurate = worst
    if inaccurate is not None and fraction > STRETCH_LIMIT:
        text = (
            f"the {inaccurate.num_modes} modes of body {inaccurate.name!r} leave out "
            f"{100 * fraction:.3g} % of the strain energy of its deformation: its rotation does "
            "not lengthen it as much as it should. Use more modes, until one of them is axial, or "
            "give the load in `loads` with load_modes=True; body.summary() lists such unit loads"
        )
        warn(AccuracyWarning(text, quantity="missing stretch", value=fraction, limit=STRETCH_LIMIT))
