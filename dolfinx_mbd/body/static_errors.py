"""Static response of a reduced body to unit loads: how much of it the modes do not represent.

The unit loads are those of geometric stiffening: the centrifugal loads of ω_iω_j = 1 and the six
components of a unit wrench at each interface, each balanced by the inertia of the rigid
acceleration that it causes. With the load f, the displacement u of the full model and the modes Ψ,
the relative error of the strain energy of the static response is

    1 - fᵀΨ (ΨᵀKΨ)⁻¹ Ψᵀf / fᵀu,

which lies between 0 (represented exactly) and 1 (the modes do not respond at all). For a wrench
component it is also the relative error of the displacement at its own point and in its direction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.checks import having
from dolfinx_mbd.errors import AccuracyWarning, warn

if TYPE_CHECKING:
    from dolfinx_mbd.body.reduced_body import ReducedBody

__all__ = ["LIMIT", "static_errors", "unit_load_names", "unit_work", "warn_of_statics"]

Array = NDArray[np.float64]

LIMIT = 0.05
"""Error of the energy above which the summary of a body lists a unit load."""

STRETCH_LIMIT = 0.9
"""Error of the energy above which a warning is given of the largest response to a spin."""

NEGLIGIBLE = 1e-9
"""Work of a unit load, over the largest of its kind, below which it does not deform the body."""

_WRENCH = ("force x", "force y", "force z", "moment x", "moment y", "moment z")


def unit_load_names(body: ReducedBody) -> list[str]:
    """Return the names of the unit loads, for example ``spin zz`` and ``force x at left``."""
    spins = [f"spin {'xyz'[i]}{'xyz'[j]}" for i, j in SPINS]
    return spins + [f"{component} at {i.name}" for i in body.interfaces for component in _WRENCH]


def unit_work(body: ReducedBody) -> Array:
    """Return the work of the unit loads on the modes Ψᵀf, shape (n, 6 + 6 interfaces).

    That of the centrifugal load −∫ρ ω×(ω×x) of ω_iω_j = 1 is a contraction of the second moments,
    that of a wrench the motion of its interface.

    Args:
        body: A body with mean-axis modes, on which the inertia of a rigid acceleration does no
            work.
    """
    H = body.second_moments[1:, 0]
    spins = np.zeros((body.num_modes, len(SPINS)))
    for c, (i, j) in enumerate(SPINS):
        both = H[:, i, j] + H[:, j, i]
        spins[:, c] = np.einsum("kaa->k", H) - H[:, i, i] if i == j else -both
    return np.hstack([spins, *[interface.motion.T for interface in body.interfaces]])


def static_errors(body: ReducedBody) -> dict[str, float]:
    """Return the relative error of the strain energy of the static response to each unit load.

    Args:
        body: A reduced body. Without geometric stiffening, or if it comes from another program,
            the response of the full model is unknown and the result is empty.

    Example:
        >>> errors = static_errors(body)  # doctest: +SKIP
        >>> errors["spin zz"]  # doctest: +SKIP
        0.9991
    """
    having("body", body, "stiffness", "interfaces", "stiffening")
    if body.stiffening is None or body.stiffening.work is None:
        return {}
    full = body.stiffening.work
    work = unit_work(body)
    held = np.zeros(len(full))
    if body.num_modes:
        held = np.einsum("kc,kc->c", work, np.linalg.solve(body.stiffness, work))
    kinds = np.array([0, 0, 0, 1, 1, 1, *[2, 2, 2, 3, 3, 3] * len(body.interfaces)])
    largest = np.array([full[kinds == kind].max(initial=0.0) for kind in range(4)])[kinds]
    deforms = full > NEGLIGIBLE * largest
    errors = np.where(deforms, 1 - held / np.where(deforms, full, 1.0), 0.0)
    names = unit_load_names(body)
    return {n: float(e) for n, e in zip(names, np.clip(errors, 0.0, 1.0), strict=True)}


def warn_of_statics(body: ReducedBody) -> None:
    """Warn if the modes do not stretch as the body does under the spin that stretches it most."""
    errors = static_errors(body)
    if not errors or body.stiffening is None or body.stiffening.work is None:
        return
    name = unit_load_names(body)[int(np.argmax(body.stiffening.work[:3]))]
    if errors[name] > STRETCH_LIMIT:
        text = (
            f"body {body.name!r}: its {body.num_modes} modes contain {100 * (1 - errors[name]):.2g}"
            f" % of the strain energy of the stretch under {name}: a fast rotation does not "
            "lengthen the body. Ask for more modes, until one of them is axial, or give the load "
            "in `loads` with load_modes=True; body.summary() lists all such unit loads"
        )
        warn(
            AccuracyWarning(
                text,
                quantity=f"error of the static response to {name}",
                value=errors[name],
                limit=STRETCH_LIMIT,
            )
        )
