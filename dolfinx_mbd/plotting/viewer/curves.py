"""Curves of a page: values over time below the scene, and orbits beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.checks import array
from dolfinx_mbd.plotting.viewer.data import block, outline, sampled_rows
from dolfinx_mbd.results.solution import Solution

__all__ = ["Signals", "curves_of"]

Signals = Mapping[str, ArrayLike] | None

_ORBIT_ERROR = 1 / 500
"""Permitted error of orbits relative to their size."""


def curves_of(run: Solution, signals: Signals, limit: int) -> list[dict[str, Any]]:
    """Return the curves of a run as JSON objects.

    Args:
        run: Result of a simulation.
        signals: Values over time, shape (nt,), and orbits, shape (nt, 2), by label; None for the
            magnitudes of the joint forces.
        limit: Largest number of points of an orbit.
    """
    if signals is None:
        signals = {
            f"{joint.name}: force (N)": np.linalg.norm(run.joint(joint.name).force, axis=1)
            for joint in run.system.joints
        }
    items = []
    for label, data in signals.items():
        values = _checked(f"signals[{label!r}]", data, len(run))
        if values.ndim == 1:
            time, values = outline(run.time, values)
            curve = {"values": block(values)}
        else:
            size = float(np.ptp(values, axis=0).max()) or 1.0
            rows = sampled_rows(run.time, values / (_ORBIT_ERROR * size), limit=limit)
            time, (x, y) = run.time[rows], values[rows].T
            curve = {"abscissa": block(x), "values": block(y)}
        items.append({"label": str(label), "time": block(time, "f8"), **curve})
    return items


def _checked(name: str, data: ArrayLike, count: int) -> Any:
    """Return values over time (count,) or an orbit (count, 2); raise an error for others."""
    values = array(name, data)
    if values.ndim == 2:
        return array(name, values, (count, 2))
    return array(name, values, (count,))
