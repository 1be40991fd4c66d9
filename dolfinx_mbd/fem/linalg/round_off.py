"""Errors of eigenvalues due to round-off in the stiffness matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import AccuracyWarning, warn

WARNING_LIMIT = 0.02  # largest relative error of the first frequency without a warning


def round_off(problem: Any, vectors: Array) -> Array:
    """Return estimates of the errors of eigenvalues ω² due to round-off in K, shape (k,).

    The estimate is four times the unit round-off times ψᵀ diag(K) ψ. For a slow mode ψ of a slender
    body, the other terms of ψᵀKψ cancel these diagonal terms almost completely. In strips that are
    1000 to 3300 times as long as thick, with one layer of cells, the largest error was 1.1 times
    the estimate.
    """
    diagonal = problem.stiffness.getDiagonal()
    local = np.einsum("i,ik,ik->k", diagonal.array_r, vectors, vectors)
    diagonal.destroy()
    total = problem.comm.bcast(problem.comm.reduce(local, root=0), root=0)
    return np.asarray(4 * np.finfo(float).eps * total)


def warn_of_round_off(squares: Array, errors: Array) -> None:
    """Warn if the relative change of the first frequency by round-off exceeds `WARNING_LIMIT`."""
    if not len(squares):
        return
    relative = errors[0] / max(2 * squares[0], errors[0])
    if relative > WARNING_LIMIT:
        frequency = np.sqrt(max(squares[0], 0.0)) / (2 * np.pi)
        text = (
            f"round-off may change the first frequency, {frequency:.4g} Hz, by "
            f"{100 * relative:.2g} %: the body is very thin for its length. Use larger cells, or "
            "a beam model"
        )
        quantity, value = "round-off of the first frequency", float(relative)
        warn(AccuracyWarning(text, quantity=quantity, value=value, limit=WARNING_LIMIT))
