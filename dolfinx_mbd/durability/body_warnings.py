"""Warnings of bodies and data for which strength or life is not valid."""

from __future__ import annotations

from collections.abc import Mapping

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.errors import AccuracyWarning, ModelRangeWarning, UnitsWarning, warn
from dolfinx_mbd.reduction.mode_tables import material_groups

__all__ = ["warn_of_prestress", "warn_of_several_materials", "warn_of_units"]

PLAUSIBLE_STRENGTHS = (1e5, 1e12)
"""Smallest and largest plausible strength of a material, Pa."""


def warn_of_units(owner: str, stresses: Mapping[str, float | None]) -> None:
    """Warn of strengths, Pa, that are implausible because of their unit; None is not checked.

    Args:
        owner: Material or argument to which the strengths belong, for the message.
        stresses: Strengths by name, Pa.
    """
    low, high = PLAUSIBLE_STRENGTHS
    for name, value in stresses.items():
        if value is not None and not low <= value <= high:
            text = (
                f"{owner}: {name} = {value:.4g} Pa is implausible; give stresses in Pa, for "
                "example 200e6 for 200 MPa"
            )
            limit = low if value < low else high
            warn(UnitsWarning(text, quantity=name, value=value, limit=limit))


def warn_of_prestress(body: ReducedBody, results: str, cure: str) -> None:
    """Warn of a prestress, which is not included in the results."""
    if "prestress" in body.provenance:
        text = (
            f"body {body.name!r} has a prestress ({body.provenance['prestress']}), whose stress is "
            f"not included in the {results}: {cure}"
        )
        warn(AccuracyWarning(text, quantity="prestress"))


def warn_of_several_materials(body: ReducedBody, data: str, cure: str) -> None:
    """Warn if the data of one material are used for a body of several materials."""
    groups = material_groups(body.provenance)
    if groups:
        text = (
            f"body {body.name!r} has several materials ({body.provenance['material']}), and {data} "
            f"is used for all of them: {cure}"
        )
        warn(ModelRangeWarning(text))
