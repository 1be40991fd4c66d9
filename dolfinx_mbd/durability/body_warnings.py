"""Warnings of bodies whose strength or life is not completely described by their stress modes."""

from __future__ import annotations

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.errors import AccuracyWarning, ModelRangeWarning, warn
from dolfinx_mbd.reduction.description import material_groups

__all__ = ["warn_of_prestress", "warn_of_several_materials"]


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
