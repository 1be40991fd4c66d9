"""Static response of a reduced body to unit loads: the part that the modes do not represent.

The unit loads are those of geometric stiffening: the centrifugal loads of ω_iω_j = 1 (rad/s)², and
the six components of a unit wrench at each interface. Each is balanced by the inertia of the rigid
acceleration that it causes. With the load f, the displacement u of the full model and the modes Ψ,
the relative error of the strain energy of the static response is

    1 - fᵀΨ (ΨᵀKΨ)⁻¹ Ψᵀf / fᵀu.

It lies between 0 (exact) and 1 (the modes do not respond). For a component of a wrench it is also
the relative error of the displacement at the point and in the direction of the load.
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

Array = NDArray[np.float64]

LIMIT = 0.05  # error above which the summary of a body lists a unit load
STRETCH_LIMIT = 0.9  # error of the largest response to a spin above which a warning is given
NEGLIGIBLE = 1e-9  # work of a unit load, relative to the largest of its kind, without deformation

_WRENCH = ("force x", "force y", "force z", "moment x", "moment y", "moment z")


def unit_load_names(body: ReducedBody) -> list[str]:
    """Return the names of the unit loads, for example `spin zz` and `force x at left`."""
    spins = [f"spin {'xyz'[i]}{'xyz'[j]}" for i, j in SPINS]
    return spins + [f"{component} at {i.name}" for i in body.interfaces for component in _WRENCH]


def unit_work(body: ReducedBody) -> Array:
    """Return the work Ψᵀf of the unit loads on the modes, shape (n, 6 + 6 interfaces), J.

    The work of the centrifugal load −∫ρ ω×(ω×x) is a contraction of the second moments; the work
    of a wrench is the motion of its interface. The frame must be that of mean axes, so that the
    inertia of a rigid acceleration does no work on the modes.
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
    having("body", body, "stiffness", "interfaces", "stiffening")
    if body.stiffening is None or body.stiffening.work is None:
        return {}
    full = body.stiffening.work
    work = unit_work(body)
    represented = np.zeros(len(full))
    if body.num_modes:
        represented = np.einsum("kc,kc->c", work, np.linalg.solve(body.stiffness, work))
    kinds = np.array([0, 0, 0, 1, 1, 1, *[2, 2, 2, 3, 3, 3] * len(body.interfaces)])
    largest = np.array([full[kinds == kind].max(initial=0.0) for kind in range(4)])[kinds]
    deforms = full > NEGLIGIBLE * largest
    errors = np.where(deforms, 1 - represented / np.where(deforms, full, 1.0), 0.0)
    names = unit_load_names(body)
    return {n: float(e) for n, e in zip(names, np.clip(errors, 0.0, 1.0), strict=True)}


def warn_of_statics(body: ReducedBody) -> None:
    """Warn if the modes do not represent the stretch under the spin that stretches most."""
    errors = static_errors(body)
    if not errors or body.stiffening is None or body.stiffening.work is None:
        return
    name = unit_load_names(body)[int(np.argmax(body.stiffening.work[:3]))]
    if errors[name] > STRETCH_LIMIT:
        text = (
            f"body {body.name!r}: its {body.num_modes} modes contain {100 * (1 - errors[name]):.2g}"
            f" % of the strain energy of the stretch under {name}: a fast rotation does not "
            "lengthen the body. Use more modes, until one of them is axial, or give the load "
            "in `loads` with load_modes=True; body.summary() lists all such unit loads"
        )
        quantity, value = f"error of the static response to {name}", errors[name]
        warn(AccuracyWarning(text, quantity=quantity, value=value, limit=STRETCH_LIMIT))
